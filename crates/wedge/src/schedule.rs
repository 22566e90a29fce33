//! Which peer is to be looked after, and when: an index, so that a packet costs nothing for those that it is not about.

use crate::peer::PeerState;
use crate::wedge::{TimerKind, Wedge};
use clock::Instant;
use multipath::{REST, ROUNDS};
use rand_core::CryptoRng;

impl Wedge {
    /// Something about a peer is new: it is looked after when the batch has been taken.
    pub(crate) fn touch(&mut self, index: usize) {
        if self.touched.insert(index) {
            self.allow_memory(index);
        }
    }

    /// Notes when a peer is due next; later than `after`, if that is given.
    pub(crate) fn rearm(&mut self, index: usize, after: Option<Instant>) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        for spi in std::mem::take(&mut peer.forgotten) {
            self.by_spi.remove(&spi);
        }
        let mut due = peer.next_deadline();
        self.count_memory(index);
        let Some(peer) = self.peers.get_mut(index) else { return };
        if let (Some((at, _)), Some(after)) = (&mut due, after)
            && *at <= after
        {
            self.counters.stuck_timers += 1;
            *at = after + REST;
        }
        let before = std::mem::replace(&mut peer.due, due);
        if before != due {
            if let Some((at, _)) = before {
                self.due.remove(&(at, index));
            }
            if let Some((at, _)) = due {
                self.due.insert((at, index));
            }
        }
    }

    /// Notes when the association side is due next, if it was asked for something.
    pub(crate) fn note_control(&mut self) {
        if std::mem::take(&mut self.host_was_asked) {
            self.control_due = self.host.poll_timeout();
        }
    }

    /// Does what is due. Afterwards the next deadline is later than `now`.
    pub(crate) fn do_what_is_due(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.drive_control(now, rng);
        let due: Vec<usize> = self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, index)| *index).collect();
        self.touched.extend(due);
        let mut seen = Vec::new();
        while let Some(index) = self.touched.pop_first() {
            if seen.contains(&index) {
                continue;
            }
            seen.push(index);
            for _ in 0..ROUNDS {
                self.look_after(now, rng, index);
                let next = self.peers.get_mut(index).and_then(PeerState::next_deadline);
                if next.is_none_or(|(at, _)| at > now) {
                    break;
                }
            }
        }
        // What was found of paths may be something to do at once for the association side, and news of that for peers.
        self.drive_control(now, rng);
        for index in std::mem::take(&mut self.touched) {
            self.look_after(now, rng, index);
            seen.push(index);
        }
        seen.extend(std::mem::take(&mut self.touched));
        for index in seen {
            self.rearm(index, Some(now));
        }
        self.note_control();
        if let Some((at, _)) = self.control_due.as_mut().filter(|(at, _)| *at <= now) {
            self.counters.stuck_timers += 1;
            *at = now + REST;
        }
    }

    /// Has the association side do what is due.
    fn drive_control(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        for _ in 0..ROUNDS {
            self.note_control();
            if self.control_due.is_none_or(|(at, _)| at > now) {
                break;
            }
            self.host.handle_timeout(now, rng);
            self.drive_host(now, rng);
        }
    }

    fn look_after(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        self.counters.peer_turns += 1;
        self.allow_memory(index);
        self.watch(now, index);
        if let Some(peer) = self.peers.get_mut(index) {
            peer.let_retired_go(now, &mut self.counters);
        }
        self.beat(now, rng, index);
        self.resolve_doubt(now, rng, index);
        self.look_after_the_dead(now, rng, index);
        self.release(now, rng, index);
        self.report(now, rng, index);
        self.deliver_due(now, index);
        self.end_idle(now, rng, index);
    }

    /// The next deadline of all.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, TimerKind)> {
        let control = self.control_due.map(|(at, kind)| (at, TimerKind::Control(kind)));
        let peers = self.due.first().and_then(|(_, index)| self.peers.get(*index)?.due);
        control.into_iter().chain(peers).min()
    }
}

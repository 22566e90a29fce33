//! Whether paths that carry something are alive: losses by age, silence, and what happens to what was in flight.

use crate::limits::LEAVING;
use crate::path::REPORT_SLACK;
use crate::sender::{Dispatch, Sender, Treatment};
use clock::Instant;
use recovery::RttEstimator;
use scheduler::PathId;

/// What the owner of the paths is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// A heartbeat is due on it at once: it is silent.
    Probe(PathId),
    /// It is dead: [`Sender::on_path_dead`] once its heartbeats know.
    Dead(PathId),
}

/// What was found of a path whose time has come.
enum Finding {
    Nothing,
    Probe,
    Dead,
}

impl<P> Sender<P> {
    /// Losses by age, and paths that are silent. What the owner is to do about them, those that are dead last.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<PathEvent> {
        let (mut events, mut dead) = (Vec::new(), Vec::new());
        for index in 0..self.paths.len() {
            self.lose_by_age(now, index);
            let Some(id) = self.paths.get(index).map(|path| path.id) else { continue };
            match self.look_for_life(now, index) {
                Finding::Nothing => self.probe_tail(now, index),
                Finding::Probe => events.push(PathEvent::Probe(id)),
                Finding::Dead => dead.push(PathEvent::Dead(id)),
            }
        }
        events.append(&mut dead);
        events
    }

    /// When a path's silence means something, or a gap is old enough to be a loss.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let paths = self.paths.iter().filter(|path| path.state.is_verified);
        let paths = paths.filter_map(|path| {
            let losses = path.control.as_ref().and_then(|control| control.sent.poll_timeout());
            let tail = path.control.as_ref().and_then(|control| control.tail_due(&path.state));
            [losses, tail, path.life_deadline()].into_iter().flatten().min()
        });
        paths.min()
    }

    /// When a pace allows a packet that waits in the send buffer.
    pub fn poll_pacing(&self) -> Option<Instant> {
        self.wake_at
    }

    /// When a packet of the queue of a path of configured rate may leave; `None` while none waits, or the peer has first to
    /// answer.
    pub fn poll_queues(&self) -> Option<Instant> {
        let paths = self.paths.iter().filter(|path| path.state.is_verified);
        let paths = paths.filter(|path| path.pacer.first().is_some_and(|wire| path.state.allows(wire)));
        paths.filter_map(|path| path.pacer.poll_timeout()).min()
    }

    /// When a gap of a path that was taken over from is old enough to be a loss.
    pub fn poll_retired(&self, id: PathId) -> Option<Instant> {
        self.any_path(id)?.control.as_ref()?.sent.poll_timeout()
    }

    /// Losses by age of a path that was taken over from.
    pub fn handle_retired(&mut self, now: Instant, id: PathId) {
        let control = self.retired.iter_mut().find(|path| path.id == id).and_then(|path| path.control.as_mut());
        if let Some(outcome) = control.map(|control| control.sent.handle_timeout(now)) {
            self.retransmit(outcome.retransmit);
        }
    }

    /// Nothing more will be heard of what a path has sent that was taken over from.
    pub fn rescue_retired(&mut self, now: Instant, id: PathId) {
        let control = self.retired.iter_mut().find(|path| path.id == id).and_then(|path| path.control.as_mut());
        if let Some(stranded) = control.map(|control| control.sent.give_up(now)) {
            self.rescue(stranded);
        }
    }

    /// A path has died: what it had in flight goes on the others.
    pub fn on_path_dead(&mut self, now: Instant, id: PathId) {
        let Some(control) = self.path_mut(id).and_then(|path| path.control.as_mut()) else { return };
        control.probed_at = None;
        let (slot, stranded) = (control.slot, control.sent.give_up(now));
        self.windows.set_open(slot, false);
        self.rescue(stranded);
        self.spared_until = now + LEAVING;
    }

    /// A path answers again.
    pub fn on_path_alive(&mut self, now: Instant, id: PathId) {
        if let Some(slot) = self.begin_anew(now, id) {
            self.windows.set_open(slot, true);
        }
    }

    /// A path is where it was not known to be, but still the one that it was: what was sent to where it was before is lost,
    /// and no sign of anything.
    pub fn on_path_moved(&mut self, now: Instant, id: PathId) {
        if let Some(slot) = self.begin_anew(now, id) {
            self.windows.set_open_again(slot);
        }
    }

    /// What was tried meanwhile is no sign of its silence, nor of what it does to packets now.
    fn begin_anew(&mut self, now: Instant, id: PathId) -> Option<crate::windows::Slot> {
        let control = self.path_mut(id)?.control.as_mut()?;
        control.probed_at = None;
        control.is_revived = true;
        control.sent.slept(now);
        let (slot, stranded) = (control.slot, control.sent.give_up(now));
        self.rescue(stranded);
        Some(slot)
    }

    /// A heartbeat was answered: the round trips of the path's heartbeats until now.
    pub fn on_heartbeat(&mut self, now: Instant, id: PathId, heartbeats: &RttEstimator) {
        let (Some(rtt), Some(least)) = (heartbeats.latest(), heartbeats.min()) else { return };
        let Self { paths, windows, .. } = self;
        let control = paths.iter_mut().find(|path| path.id == id).and_then(|path| path.control.as_mut());
        if let Some(control) = control {
            windows.queueing(now, control.slot, rtt.saturating_sub(least));
            control.answered(rtt);
        }
    }

    /// The clock has jumped: what is in flight from before says nothing of its path.
    pub fn on_clock_jump(&mut self, now: Instant) {
        for control in self.paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            control.probed_at = None;
            control.sent.slept(now);
        }
    }

    fn lose_by_age(&mut self, now: Instant, index: usize) {
        let control = self.paths.get_mut(index).and_then(|path| path.control.as_mut());
        let Some(control) = control else { return };
        let outcome = control.sent.handle_timeout(now);
        if outcome.lost > 0 {
            let (next, rtt) = (control.sent.next_of_window(), control.sent.rtt());
            self.windows.report(now, control.slot, &outcome, next, rtt, None);
            self.retransmit(outcome.retransmit);
        }
    }

    /// Sends the last packet of a path once more if something should have been heard of it.
    fn probe_tail(&mut self, now: Instant, index: usize) {
        let Some(path) = self.paths.get_mut(index) else { return };
        let Some(control) = &mut path.control else { return };
        if control.tail_due(&path.state).is_none_or(|due| due > now) {
            return;
        }
        control.is_tail_probed = true;
        let Some(mut packet) = control.sent.take_tail() else { return };
        packet.retransmissions += 1;
        self.counts.retransmitted += 1;
        path.pacer.sent(packet.wire, now);
        let treatment = Treatment::Windowed { place: None, is_followed: true };
        self.ready.push_back(Dispatch { path: path.id, packet, treatment });
    }

    /// Looks at a path that may be silent. Only a heartbeat without an answer shows that a snooped path is dead: a TCP
    /// acknowledges when it likes, or never.
    fn look_for_life(&mut self, now: Instant, index: usize) -> Finding {
        let is_snooping = self.is_snooping();
        let others = self.paths.iter().enumerate().filter(|(other, path)| *other != index && path.state.answers());
        // Whatever came from the peer could have brought what it knows of this path.
        let others: Vec<Instant> = others
            .filter_map(|(_, path)| Some(path.control.as_ref()?.sent.progress_at().max(path.state.heard_at)))
            .collect();
        let Some(path) = self.paths.get_mut(index) else { return Finding::Nothing };
        let (state, Some(control)) = (path.state, &mut path.control) else { return Finding::Nothing };
        let Some(since) = control.sent.silent_since() else {
            // Nobody waits for an answer any more. TCP inside may still acknowledge what it has kept.
            if !is_snooping {
                control.probed_at = None;
            }
            return Finding::Nothing;
        };
        if control.life_deadline(&state) > now {
            return Finding::Nothing;
        }
        let answered = others.iter().any(|at| *at > since);
        let loaded = control.is_unanswered(now, &state) && control.sent.rtt().srtt().is_some();
        // Where the peer's packets still come, its reports may be late behind the queue that they fill.
        let may_be_late = !control.is_revived && state.heard_at + REPORT_SLACK > now;
        let is_proof = answered && loaded && !may_be_late;
        if control.probed_at.is_none() && !is_proof {
            control.probed_at = Some(now);
            return Finding::Probe;
        }
        let answers = is_snooping && control.probed_at.is_some_and(|probed_at| state.answered_at >= probed_at);
        if !others.is_empty() && state.is_alive && !answers {
            return Finding::Dead;
        }
        control.probed_at = None;
        let (slot, flight, next) = (control.slot, control.sent.in_flight(), control.sent.next_of_window());
        if !state.is_alive && !is_snooping {
            // A TCP that has nothing waiting here when the path answers again would be silent until its own timer, which has
            // doubled all the while. What others have sent is late by then.
            let stranded = control.sent.give_up(now);
            let (kept, late): (Vec<_>, Vec<_>) = stranded.into_iter().partition(|packet| packet.meta.is_tcp());
            self.counts.given_up += late.len() as u64;
            self.rescue(kept);
            return Finding::Nothing;
        }
        // RFC 6298 §5.4 to §5.6, for the only path there is.
        self.counts.timeouts += 1;
        self.windows.timeout(now, slot, flight, next);
        let stranded = control.sent.give_up(now);
        self.retransmit(stranded);
        Finding::Nothing
    }
}

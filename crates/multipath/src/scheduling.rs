//! Paths for packets from any scheduler. One that compares arrivals is asked in `transmit`; here are the others: to them a path
//! is open or not, some let packets wait for one path alone, and one has every packet copied to all paths.

use crate::copies::CopyNumber;
use crate::packet::QueuedPacket;
use crate::path::SenderPath;
use crate::policy::PolicyId;
use crate::sender::{Dispatch, Feedback, LONGEST_QUEUE, Sender, Treatment};
use crate::transmit::Round;
use clock::Instant;
use scheduler::{Decision, PacketMeta, PathId, PathScheduler, PathView};
use std::collections::VecDeque;

/// What may wait in the queue of a path of configured rate at least, in bytes: a packet.
const LEAST_QUEUE: usize = 1_500;

impl<P: Clone> Sender<P> {
    /// The next packet, and its path.
    pub(crate) fn schedule(&mut self, now: Instant, round: Round) -> Option<Dispatch<P>> {
        self.look_at_paths(now);
        // What was lost leaves before what waits.
        if self.next_again().is_none()
            && let Some(dispatch) = self.poll_queue(now)
        {
            return Some(dispatch);
        }
        let Round { limits, mut room } = round;
        if room == 0 {
            self.scheduler.on_window_limited(now);
        }
        // What all paths send in the longest round trip: what waits for one path alone is where other flows cannot pass it.
        let longest = self.views.iter().map(|view| view.srtt.as_nanos()).max().unwrap_or_default();
        let in_longest = |view: &PathView| view.cwnd.saturating_mul(longest.div_ceil(view.srtt.as_nanos().max(1)));
        let most = self.views.iter().map(in_longest).fold(1, u64::saturating_add);
        while room > 0 && (self.next_again().is_some() || self.views.iter().map(|view| view.queued).sum::<u64>() < most)
        {
            let is_new = self.next_again().is_none();
            let decision = self.decide(now, room);
            let (Decision::Send(id) | Decision::Enqueue(id)) = decision else { break };
            let Some(mut packet) = self.next_packet(now, &limits) else { break };
            room = room.saturating_sub(packet.len());
            self.round = Some(Round { limits, room });
            if let Decision::Send(_) = decision {
                let others = self.views.iter().filter(|view| view.id != id).map(|view| (view.id, view.cwnd.max(1)));
                let others: Vec<(PathId, u64)> =
                    if is_new && self.sends_copies() { others.collect() } else { Vec::new() };
                self.copy_to(&others, &mut packet);
                return self.windowed(now, id, packet);
            }
            self.path_mut(id)?.queue.push_back(packet);
            self.views.iter_mut().filter(|view| view.id == id).for_each(|view| view.queued += 1);
            if !self.policies.is_empty() {
                if !self.prepare_next() {
                    break;
                }
                self.look_at_paths(now);
            }
        }
        if let Some(dispatch) = self.poll_queue(now) {
            return Some(dispatch);
        }
        self.wake_at = self.next_pair(now);
        None
    }

    /// The next packet that waits for one path alone.
    pub(crate) fn poll_assigned(&mut self, now: Instant) -> Option<Dispatch<P>> {
        self.look_at_paths(now);
        self.poll_queue(now)
    }

    /// What waits for one path alone goes first there, or it would be overtaken.
    fn poll_queue(&mut self, now: Instant) -> Option<Dispatch<P>> {
        let id = self.views.iter().find(|view| view.open && view.queued > 0)?.id;
        let is_copy = self.sends_copies();
        let path = self.path_mut(id)?;
        let packet = path.queue.pop_front()?;
        if !is_copy {
            return self.windowed(now, id, packet);
        }
        path.pacer.sent(packet.wire, now);
        Some(Dispatch { path: id, packet, treatment: Treatment::Copy })
    }

    /// What to do with the next packet.
    fn decide(&mut self, now: Instant, room: usize) -> Decision {
        let waiting = self.again.len() + self.buffer.packets();
        if waiting == 0 {
            return Decision::Blocked;
        }
        let len = self.next_again().map_or(1500, |packet| packet.wire);
        let packet = PacketMeta { len, unscheduled: waiting as u64, window: room as u64 };
        let view = |id: PathId| self.views.iter().find(|view| view.id == id);
        match self.scheduler.select(&packet, &self.views, now) {
            Decision::Send(id) if view(id).is_some_and(|view| view.open) => Decision::Send(id),
            // What was lost waits for no path: others wait for it.
            Decision::Enqueue(id) if self.next_again().is_none() && view(id).is_some() => Decision::Enqueue(id),
            Decision::Wait if self.next_again().is_none() && self.views.iter().any(|view| will_ask(view, now)) => {
                Decision::Wait
            }
            _ => self.fastest_open().map_or(Decision::Blocked, Decision::Send),
        }
    }

    /// The packet is one of several: copies of it wait for the `others`, so many packets for each at most, the newest of them.
    fn copy_to(&mut self, others: &[(PathId, u64)], packet: &mut QueuedPacket<P>) {
        if others.is_empty() {
            return;
        }
        self.number_copies(packet);
        for (id, most) in others {
            let Some(path) = self.path_mut(*id) else { continue };
            path.queue.push_back(packet.clone());
            while path.queue.len() as u64 > *most {
                path.queue.pop_front();
            }
        }
    }

    /// A packet that waits for nothing leaves on the path that was chosen, or where there are copies, on all that are open.
    pub(crate) fn leave_at_once(&mut self, now: Instant, id: PathId, mut packet: QueuedPacket<P>) {
        let others = self.views.iter().filter(|view| view.open && view.id != id).map(|view| view.id);
        let others: Vec<PathId> = if self.sends_copies() { others.collect() } else { Vec::new() };
        if !others.is_empty() {
            self.number_copies(&mut packet);
        }
        for other in others {
            self.leave_on(now, other, packet.clone());
        }
        self.leave_on(now, id, packet);
    }

    fn leave_on(&mut self, now: Instant, id: PathId, packet: QueuedPacket<P>) {
        if let Some(path) = self.path_mut(id) {
            path.pass_queue(now, packet.wire, packet.meta.opens_connection());
            self.ready.push_back(Dispatch { path: id, packet, treatment: Treatment::Urgent });
        }
    }
}

impl<P> Sender<P> {
    /// The path of a packet that waits in no send buffer. Where none answers there is nothing to lose by trying: the peer may
    /// be one that answers no echoes.
    pub(crate) fn choose_for_one(
        &mut self,
        now: Instant,
        (urgent, policy): (bool, Option<PolicyId>),
        wire: usize,
    ) -> Option<&mut SenderPath<P>> {
        let (allowed, compares_arrivals) = (self.allowed(policy), self.scheduler.needs().arrivals);
        let Self { paths, views, windows, .. } = self;
        views.clear();
        views.extend(paths.iter().filter_map(|path| {
            let is_usable = allowed.may_carry(path);
            let may = !urgent || path.state.allows(wire) && path.has_room_beyond(windows);
            // To who compares arrivals a queue is a delay, to others it is full or not.
            let has_room = urgent || compares_arrivals || path.pacer.queued() < longest_queue(path.pacer.rate());
            let view = path.view(is_usable && may && has_room, urgent, now, windows);
            (is_usable || compares_arrivals && allowed.has(path)).then_some(view)
        }));
        let meta = PacketMeta { len: wire, ..PacketMeta::default() };
        let id = match self.scheduler.select(&meta, &self.views, now) {
            Decision::Send(id) => id,
            // It can wait neither here nor for one path alone.
            _ => self.fastest_open()?,
        };
        self.path_mut(id)
    }

    /// The open path of the least round-trip time.
    fn fastest_open(&self) -> Option<PathId> {
        self.views.iter().filter(|view| view.open).min_by_key(|view| (view.srtt, view.id)).map(|view| view.id)
    }

    /// Whether the scheduler has every packet copied, and the peer tells copies.
    pub(crate) fn sends_copies(&self) -> bool {
        self.scheduler.needs().copies && self.feedback == Feedback::Reports
    }

    fn number_copies(&mut self, packet: &mut QueuedPacket<P>) {
        let CopyNumber(number) = self.next_copy;
        self.next_copy = CopyNumber(number.wrapping_add(1));
        packet.copy = Some(CopyNumber(number));
        packet.wire = self.wire(packet.len());
    }

    /// What waits for a path alone that is not usable any more goes on the others.
    pub(crate) fn reassign_stranded(&mut self) {
        let any_usable = self.any_usable();
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index).filter(|path| !path.queue.is_empty()) else { continue };
            // A policy may have let it wait for a backup.
            let stays = path.state.may_carry(any_usable) || !self.policies.is_empty() && path.state.answers();
            if !stays {
                let mut queue = std::mem::take(&mut path.queue);
                self.reassign(&mut queue);
            }
        }
    }

    /// What waited for one path alone goes on the others, but for copies: the others have them.
    pub(crate) fn reassign(&mut self, queue: &mut VecDeque<QueuedPacket<P>>) {
        let is_copies = self.sends_copies();
        for packet in queue.drain(..).filter(|_| !is_copies) {
            self.queue_again(packet);
        }
    }
}

/// Whether the path will be open in its time: an acknowledgment is to come, or its pace will allow the next packet.
fn will_ask(view: &PathView, now: Instant) -> bool {
    !view.open && (view.in_flight > 0 || view.free_at > now)
}

/// What may wait in the queue of a path of this rate in bit/s, in bytes.
fn longest_queue(rate: u64) -> usize {
    ((rate as f64 / 8.0 * LONGEST_QUEUE.as_secs_f64()) as usize).max(LEAST_QUEUE)
}

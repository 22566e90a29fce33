//! The sender of an association: a buffer for all its flows, a window and a pace for each path, and what happens to packets
//! that a path has lost.
//!
//! A packet that a path lost is sent once more, before all that waits: the peer's resequencer waits for it about that
//! long, so that the TCP inside, which would halve its window for all paths together, does not hear of what the
//! path's own window has answered already. What tells the TCP inside that it sends too much is the send buffer.

use crate::copies::CopyNumber;
use crate::feedback::RETRANSMISSIONS;
use crate::limits::Search;
use crate::order::Numbers;
use crate::packet::{FlowId, Meta, QueuedPacket};
use crate::path::{Control, PathState, SenderPath};
use crate::policy::{Policies, PolicyId};
use crate::reach::Reach;
use crate::send_buffer::SendBuffer;
use crate::sent_packets::Kind;
use crate::snooping::{Place, Snooping};
use crate::transmit::{Around, Binding, Round};
use crate::windows::{Slot, Windows};
use clock::{Duration, Instant};
use congestion::Rule;
use scheduler::{PathId, PathView, Scheduler};
use std::collections::VecDeque;

/// What waits and is sent nothing of for so long, while what goes past it leaves, is starved by that.
const STARVED: Duration = Duration::from_millis(100);
/// What opens connections goes past what waits while no more of it is ahead of the path's pace.
const CROWDED: Duration = Duration::from_millis(20);
/// Packets in which QUIC acknowledges are smaller, in bytes behind the inner IP header.
const LARGEST_ACKNOWLEDGMENT: usize = 200;
/// What may wait in the queues of paths of configured rates, as time: more is dropped, which tells the TCP inside that it has
/// reached their sum. Half of the least retransmission timer of common TCPs, so that waiting alone never expires it.
pub(crate) const LONGEST_QUEUE: Duration = Duration::from_millis(100);
/// Besides the difference of the paths, how much longer a packet that arrived early waits for those before it: bursts
/// and late timers.
const SLACK: Duration = Duration::from_millis(15);
/// The longest it waits. Together with [`LONGEST_QUEUE`] below the least retransmission timer.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// The longest that a received packet waits for those before it where lost packets come again.
pub(crate) const LONGEST_REPAIR: Duration = Duration::from_millis(500);

/// How a sender knows what has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// It does not: paths are sent to at their configured rates.
    #[default]
    None,
    /// The peer reports it.
    Reports,
    /// The peer's TCP acknowledges it inside.
    Snooping,
}

/// What a sender may hold, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// What waits for its paths.
    pub send_buffer: usize,
    /// What was sent and may have to be sent again.
    pub in_flight: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { send_buffer: 64 << 10, in_flight: 64 << 10 }
    }
}

/// What became of a packet that was handed to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits, or leaves with [`Sender::poll_urgent`].
    Taken,
    /// It was dropped: too much waits.
    Full,
    /// It was dropped: there is no path for it.
    NoPath,
}

/// Totals that the owner takes from time to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Packets that a path lost and that are sent again.
    pub retransmitted: u64,
    /// Packets that were lost again and left to the programs.
    pub given_up: u64,
    /// Packets moved to another path because theirs died, or carries far less all at once.
    pub rescheduled: u64,
    /// Paths that answered nothing for a retransmission timeout.
    pub timeouts: u64,
    /// Packets dropped because the paths had more to send than they may.
    pub queue_full: u64,
}

/// A packet that is to leave now. Once it has, the sender wants to know under which number: [`Sender::on_sent`].
#[derive(Clone, Debug)]
pub struct Dispatch<P> {
    /// The path that it takes.
    pub path: PathId,
    /// The packet.
    pub packet: QueuedPacket<P>,
    pub(crate) treatment: Treatment,
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// Past all that waits.
    Urgent,
    /// From the queue of a path of configured rate.
    Paced,
    /// A copy of what another path carries.
    Copy,
    /// From the send buffer; kept until the peer has it, if that will be known.
    Windowed { place: Option<Place>, is_followed: bool },
}

/// How long received packets wait for others before them.
#[derive(Clone, Debug, Default)]
pub struct Reordering {
    /// For those that are on their way.
    pub hold: Duration,
    /// How long a packet that is lost may take to come again; zero where it does not.
    pub repair: Duration,
    /// Numbers of the paths on which packets may be on their way to us.
    pub alive: Vec<u16>,
}

/// The sender of one association. `P` is what its packets carry.
#[derive(Debug)]
pub struct Sender<P> {
    pub(crate) feedback: Feedback,
    pub(crate) paths: Vec<SenderPath<P>>,
    /// Paths that are to take over from others of the same route.
    pub(crate) successors: Vec<SenderPath<P>>,
    /// Paths that others have taken over from, the oldest first.
    pub(crate) retired: Vec<SenderPath<P>>,
    pub(crate) windows: Windows,
    pub(crate) buffer: SendBuffer<P>,
    /// What a path has lost, in the order in which it left the send buffer.
    pub(crate) again: VecDeque<QueuedPacket<P>>,
    /// Which of them is next, where policies have a say; beyond all of them if none is.
    pub(crate) again_at: usize,
    /// Their bytes.
    pub(crate) again_bytes: usize,
    /// Packets that left the send buffer.
    pub(crate) taken: u64,
    pub(crate) numbers: Numbers,
    pub(crate) reach: Reach,
    pub(crate) snooping: Snooping,
    pub(crate) scheduler: Scheduler,
    pub(crate) policies: Policies,
    /// What the next packet that has copies is numbered by.
    pub(crate) next_copy: CopyNumber,
    /// Bytes that may be copied of what is sent again.
    pub(crate) copies: usize,
    pub(crate) views: Vec<PathView>,
    /// All paths that are usable, whether or not they have room, where it matters how far away they are.
    pub(crate) around: Vec<Around>,
    /// Bytes in flight on each path, and apart from them those that left on it before it had new keys.
    pub(crate) flights: Vec<(Slot, usize)>,
    pub(crate) memory: Memory,
    /// What leaves past all that waits.
    pub(crate) ready: VecDeque<Dispatch<P>>,
    /// Paths of configured rates whose queues are to be looked at.
    to_release: VecDeque<PathId>,
    /// What the send buffer has room for, in bytes, and since when.
    pub(crate) room: (f64, Instant),
    /// Whether windows are still to be found.
    pub(crate) search: Search,
    /// A path has died: until then what waits long does so because of that, and CoDel drops nothing of it.
    pub(crate) spared_until: Instant,
    /// What has to wait besides, where a path that is far away may be used, in bytes, and when that was.
    pub(crate) bridge: (f64, Instant),
    /// The path of thin flows.
    pub(crate) nearest: Option<PathId>,
    /// When a path that is waited for may send.
    pub(crate) wake_at: Option<Instant>,
    /// When something began to wait, or left.
    pub(crate) moved: Instant,
    /// Nothing goes past what waits any more, until nothing waits.
    is_starved: bool,
    /// Packets dropped by the send buffer that are counted already.
    pub(crate) dropped: u64,
    pub(crate) round: Option<Round>,
    pub(crate) binding: Binding,
    pub(crate) counts: SenderCounts,
}

impl<P> Sender<P> {
    /// Without paths.
    pub fn new(feedback: Feedback, rule: Rule) -> Self {
        let mut windows = Windows::new(rule);
        if feedback == Feedback::Snooping {
            windows.snoop();
        }
        Self {
            feedback,
            paths: Vec::new(),
            successors: Vec::new(),
            retired: Vec::new(),
            windows,
            buffer: SendBuffer::default(),
            again: VecDeque::new(),
            again_at: 0,
            again_bytes: 0,
            taken: 0,
            numbers: Numbers::default(),
            reach: Reach::default(),
            snooping: Snooping::default(),
            scheduler: Scheduler::default(),
            policies: Policies::default(),
            next_copy: CopyNumber(0),
            copies: 0,
            views: Vec::new(),
            around: Vec::new(),
            flights: Vec::new(),
            memory: Memory::default(),
            ready: VecDeque::new(),
            to_release: VecDeque::new(),
            room: (0.0, Instant::ZERO),
            search: Search::default(),
            spared_until: Instant::ZERO,
            bridge: (0.0, Instant::ZERO),
            nearest: None,
            wake_at: None,
            moved: Instant::ZERO,
            is_starved: false,
            dropped: 0,
            round: None,
            binding: Binding::default(),
            counts: SenderCounts::default(),
        }
    }

    /// Bytes of the outer packet in which so many are sealed, on whichever path.
    pub(crate) fn wire(&self, sealed: usize) -> usize {
        self.paths.first().map_or(0, |path| path.state.overhead.wire(sealed))
    }

    /// Bytes by which a number makes a packet longer at most.
    pub(crate) fn wire_of_number(&self) -> usize {
        let alignment = self.paths.first().map_or(1, |path| path.state.overhead.alignment.max(1));
        crate::order::HEADER.next_multiple_of(alignment)
    }

    /// With this scheduler in place of [`Scheduler::default`]. Towards a peer without reports one that sends copies sends
    /// none: nobody there would tell them.
    #[must_use]
    pub fn with_scheduler(self, scheduler: Scheduler) -> Self {
        Self { scheduler, ..self }
    }

    /// Another association with the same peer begins, or none.
    pub fn restart(&mut self, feedback: Feedback, rule: Rule) {
        // The scheduler stays; what breaks ties between equal paths goes on.
        let (scheduler, policies) = (std::mem::take(&mut self.scheduler), std::mem::take(&mut self.policies));
        *self = Self { scheduler, policies, memory: self.memory, ..Self::new(feedback, rule) };
    }

    /// How it knows what has arrived.
    pub fn feedback(&self) -> Feedback {
        self.feedback
    }

    /// What it may hold from now on.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Takes what was counted since the last call.
    pub fn take_counts(&mut self) -> SenderCounts {
        std::mem::take(&mut self.counts)
    }

    /// A path comes up, of this rate in bit/s until one is known.
    pub fn add_path(&mut self, now: Instant, id: PathId, state: PathState, rate: u64) {
        let control = self.has_windows().then(|| Control::new(now, self.windows.add(state.mtu), self.is_snooping()));
        self.paths.push(SenderPath::new(id, state, rate, control));
    }

    /// A path comes up that is to take over from another of the same route, whose keys are old.
    pub fn add_successor(&mut self, now: Instant, id: PathId, state: PathState, rate: u64, old: PathId) {
        let old = self.paths.iter().find(|path| path.id == old);
        let control = old.and_then(|old| old.control.as_ref()).map(|control| control.following(now));
        self.successors.push(SenderPath::new(id, state, rate, control));
    }

    /// One path takes over from another: with its window, its round-trip time, its pace and its queue.
    pub fn succeed(&mut self, now: Instant, old: PathId, new: PathId) {
        let Some(at) = self.successors.iter().position(|path| path.id == new) else { return };
        let Some(place) = self.paths.iter_mut().find(|path| path.id == old) else { return };
        let mut new = self.successors.remove(at);
        std::mem::swap(&mut new.pacer, &mut place.pacer);
        std::mem::swap(&mut new.queue, &mut place.queue);
        if let (Some(control), Some(before)) = (&mut new.control, &place.control) {
            control.take_over(now, before);
        }
        self.retired.push(std::mem::replace(place, new));
    }

    /// A path that was to take over is gone, or one that was taken over from.
    pub fn forget_path(&mut self, id: PathId) {
        self.successors.retain(|path| path.id != id);
        self.retired.retain(|path| path.id != id);
    }

    /// A path is gone: what it has not delivered goes on the others. What waited in its own queue is returned.
    pub fn remove_path(&mut self, now: Instant, id: PathId) -> Vec<QueuedPacket<P>> {
        let Some(at) = self.paths.iter().position(|path| path.id == id) else { return Vec::new() };
        let mut path = self.paths.remove(at);
        self.reassign(&mut path.queue);
        if let Some(control) = &mut path.control {
            self.windows.remove(control.slot);
            let stranded = control.sent.give_up(now);
            self.rescue(stranded);
        }
        path.pacer.take().into()
    }

    /// Takes what waits in the queue of a path of configured rate.
    pub fn take_queue(&mut self, id: PathId) -> Vec<QueuedPacket<P>> {
        self.path_mut(id).map_or_else(Vec::new, |path| path.pacer.take().into())
    }

    /// Takes all that was not delivered, oldest first: the association ends.
    pub fn drain(&mut self, now: Instant) -> Vec<QueuedPacket<P>> {
        let (mut packets, is_copies) = (Vec::new(), self.sends_copies());
        for path in self.paths.iter_mut().chain(&mut self.retired) {
            packets.extend(path.pacer.take());
            packets.extend(std::mem::take(&mut path.queue).into_iter().filter(|_| !is_copies));
            if let Some(control) = &mut path.control {
                packets.extend(control.sent.give_up(now));
            }
        }
        self.again_bytes = 0;
        packets.extend(std::mem::take(&mut self.again));
        for mut packet in self.buffer.drain() {
            packet.order = self.taken;
            self.taken += 1;
            packets.push(packet);
        }
        packets.sort_by_key(|packet| packet.order);
        packets
    }

    /// What is known of a path has changed.
    pub fn set_path(&mut self, id: PathId, state: PathState) {
        if let Some(path) = self.any_path_mut(id) {
            path.state = state;
        }
    }

    /// A path stands by, or does no longer: the coupled windows of the others do not count one that sends nothing.
    pub fn set_open(&mut self, id: PathId, is_open: bool) {
        let slot = self.paths.iter().find(|path| path.id == id).and_then(|path| Some(path.control.as_ref()?.slot));
        if let Some(slot) = slot {
            self.windows.set_open(slot, is_open);
        }
    }

    /// The queues of all paths of configured rates are looked at by the next [`Sender::poll_urgent`].
    pub fn release(&mut self) {
        self.to_release.extend(self.paths.iter().map(|path| path.id));
    }

    /// The next packet that waits for no window. Asked until there is none, after each [`Sender::enqueue`].
    pub fn poll_urgent(&mut self, now: Instant) -> Option<Dispatch<P>> {
        if let Some(dispatch) = self.ready.pop_front() {
            return Some(dispatch);
        }
        while let Some(id) = self.to_release.front().copied() {
            let path = self.path_mut(id);
            let path = path.filter(|path| path.pacer.first().is_some_and(|wire| path.state.allows(wire)));
            if let Some(packet) = path.and_then(|path| path.pacer.release(now)) {
                return Some(Dispatch { path: id, packet, treatment: Treatment::Paced });
            }
            self.to_release.pop_front();
        }
        None
    }

    /// A packet has left under this number of its path, the next one.
    pub fn on_sent(&mut self, now: Instant, dispatch: Dispatch<P>, number: u32) {
        let Dispatch { path: id, packet, treatment } = dispatch;
        let wire = packet.wire;
        let (kind, place) = match treatment {
            // Nothing follows on a connection that would tell its TCP soon of the loss: a timer of a second or more would.
            Treatment::Urgent if self.repairs_at_once(&packet) => (Kind::Retransmittable(packet), None),
            // What was lost of it is with others, or follows.
            Treatment::Urgent | Treatment::Copy => (Kind::InFlight, None),
            Treatment::Paced => (Kind::Uncounted, None),
            Treatment::Windowed { place, is_followed: true } => (Kind::Retransmittable(packet), place),
            Treatment::Windowed { place, is_followed: false } => (Kind::Uncounted, place),
        };
        if let Some(path) = self.path_mut(id) {
            path.left(now, number, wire, kind);
        }
        if let Some(place) = place {
            self.snooping.sent(now, place, id, number);
        }
    }

    /// A packet of the owner's own left on a path: a heartbeat, which is in flight, or a report, which is not.
    pub fn on_control_sent(&mut self, now: Instant, id: PathId, number: u32, wire: usize, is_in_flight: bool) {
        if let Some(path) = self.any_path_mut(id) {
            path.pass_queue(now, wire, false);
            path.left(now, number, wire, if is_in_flight { Kind::InFlight } else { Kind::Uncounted });
        }
    }

    /// Nothing is sent under this number of a path, the next one: who acknowledges it invents (RFC 9000 §21.4).
    pub fn on_skipped(&mut self, now: Instant, id: PathId, number: u32) {
        if let Some(control) = self.any_path_mut(id).and_then(|path| path.control.as_mut()) {
            control.sent.skipped(now, number);
        }
    }

    /// Whether a packet of so many bytes that has come of a flow acknowledges data of QUIC that go from here, as far as can be told.
    pub fn is_acknowledged_by(&self, flow: FlowId, bytes: usize) -> bool {
        bytes < LARGEST_ACKNOWLEDGMENT && self.reach.has_quic_data(flow)
    }

    /// How long received packets wait: a path's round-trip time bounds what is between it and another one-way, however unequal
    /// its directions are.
    pub fn reordering(&self) -> Reordering {
        let any_usable = self.any_usable();
        let in_use = || self.paths.iter().filter(|path| !any_usable || path.state.is_usable());
        // The peer may see less, or more, than this host does, and send on a backup. What left on old keys may still come.
        let alive = self.paths.iter().filter(|path| !any_usable || path.state.answers());
        let alive = alive.chain(&self.retired).map(|path| path.id.0).collect();
        let remote = |path: &SenderPath<P>| path.control.as_ref().map_or(Duration::ZERO, |c| c.sent.remote_rtt());
        let rtt = |path: &SenderPath<P>| path.srtt().unwrap_or(path.state.delay * 2).max(remote(path));
        let longest = in_use().map(rtt).max().unwrap_or_default();
        let shortest = in_use().map(rtt).min().unwrap_or_default();
        let variation = in_use().filter_map(|path| path.state.rttvar).max().unwrap_or_default();
        let hold = longest - shortest + variation * 4 + SLACK;
        if self.feedback != Feedback::Reports {
            return Reordering { hold: hold.min(LONGEST_HOLD), repair: Duration::ZERO, alive };
        }
        // A loss is reported when the next packet of its path arrives, and sent again on the fastest; and so is what is lost then.
        // Where packets overtake each other, the peer waits before it takes one for lost, as we do.
        let patience = |path: &SenderPath<P>| path.control.as_ref().map_or(Duration::ZERO, |c| c.sent.patience());
        let once = (longest + shortest) / 2 + in_use().map(patience).max().unwrap_or_default().max(SLACK);
        let repair = (once * u64::from(RETRANSMISSIONS)).min(LONGEST_REPAIR);
        Reordering { hold: (hold + repair).min(LONGEST_REPAIR), repair, alive }
    }

    pub(crate) fn has_windows(&self) -> bool {
        self.feedback != Feedback::None
    }

    pub(crate) fn is_snooping(&self) -> bool {
        self.feedback == Feedback::Snooping
    }

    pub(crate) fn any_usable(&self) -> bool {
        self.paths.iter().any(|path| path.state.is_usable())
    }

    pub(crate) fn path_mut(&mut self, id: PathId) -> Option<&mut SenderPath<P>> {
        self.paths.iter_mut().find(|path| path.id == id)
    }

    pub(crate) fn any_path_mut(&mut self, id: PathId) -> Option<&mut SenderPath<P>> {
        self.paths.iter_mut().chain(&mut self.successors).chain(&mut self.retired).find(|path| path.id == id)
    }

    pub(crate) fn any_path(&self, id: PathId) -> Option<&SenderPath<P>> {
        self.paths.iter().chain(&self.successors).chain(&self.retired).find(|path| path.id == id)
    }

    /// Bytes of what was sent and may have to be sent again.
    pub(crate) fn kept(&self) -> usize {
        let controls = self.paths.iter().chain(&self.retired).filter_map(|path| path.control.as_ref());
        let sent: usize = controls.map(|control| control.sent.kept()).sum();
        // Copies come and go with what they are copies of.
        let queues = self.paths.iter().filter(|_| !self.sends_copies());
        sent + queues.map(SenderPath::queued).sum::<usize>()
    }

    pub(crate) fn waits(&self) -> bool {
        !self.again.is_empty() || self.buffer.packets() > 0 || self.paths.iter().any(|path| !path.queue.is_empty())
    }

    fn hold(&mut self, now: Instant, packet: QueuedPacket<P>) {
        let limits = self.limits(now);
        if self.buffer.packets() == 0 {
            self.moved = now;
        }
        let priority = self.policies.of(packet.policy).priority;
        // Without reports the TCP inside has to learn of what is too much.
        let is_clamped = !self.is_snooping() && packet.meta.flow.is_some_and(|flow| self.reach.is_clamped(flow));
        self.buffer.push(now, packet, priority, is_clamped, &limits);
    }

    /// Whether a packet that leaves at once is sent again if it is lost: what opens a connection, and has no copy elsewhere.
    fn repairs_at_once(&self, packet: &QueuedPacket<P>) -> bool {
        self.feedback == Feedback::Reports && packet.copy.is_none() && packet.meta.opens_connection()
    }

    /// Whether what goes past has kept what waits from leaving: acknowledgments that come faster than the path takes them
    /// leave no room in its window. Then all wait, and flows take turns.
    fn is_starved(&mut self, now: Instant) -> bool {
        let waits = self.buffer.packets() > 0;
        self.is_starved = waits && (self.is_starved || now - self.moved > STARVED);
        self.is_starved
    }

    /// Whether more connections open at once than any path has time for: what opens this one then waits for its turn, or the
    /// crowd would overflow the network's queues and come again at the same second.
    fn is_crowded(&self, now: Instant, meta: &Meta) -> bool {
        let takes = |path: &SenderPath<P>| {
            path.state.is_usable() && path.has_room_beyond(&self.windows) && path.pacer.clear_at() <= now + CROWDED
        };
        meta.opens_connection() && self.any_usable() && !self.paths.iter().any(takes)
    }
}

impl<P: Clone> Sender<P> {
    /// Takes a packet. What is to leave at once is fetched by [`Sender::poll_urgent`].
    pub fn enqueue(&mut self, now: Instant, meta: Meta, payload: P) -> Enqueued {
        self.enqueue_under(now, meta, payload, None)
    }

    /// As [`Sender::enqueue`], under a policy.
    pub fn enqueue_under(&mut self, now: Instant, meta: Meta, payload: P, policy: Option<PolicyId>) -> Enqueued {
        let packet = |wire| QueuedPacket { policy, ..QueuedPacket::new(meta, payload, wire) };
        let wire = self.wire(meta.len);
        // Where only a multiple of what came may be sent, all waits in one queue.
        let has_credit = self.paths.iter().any(|path| path.state.is_verified && path.state.allows(wire));
        let must_wait = self.feedback == Feedback::Reports && (self.is_starved(now) || self.is_crowded(now, &meta));
        let urgent = has_credit && meta.is_urgent && !must_wait;
        // Of what is not TCP nothing is known without reports, so no window could tell when to send it.
        let has_window = self.feedback == Feedback::Reports || self.is_snooping() && meta.is_tcp();
        if !urgent && has_window {
            self.hold(now, packet(wire));
            return Enqueued::Taken;
        }
        if !urgent && self.queues_are_full() {
            return Enqueued::Full;
        }
        let Some(path) = self.choose_for_one(now, (urgent, policy), wire) else { return Enqueued::NoPath };
        let wire = path.state.overhead.wire(meta.len);
        let id = path.id;
        if !urgent {
            path.pacer.push(packet(wire));
            self.to_release.push_back(id);
        } else if path.pacer.clear_at() > now + LONGEST_QUEUE {
            self.counts.queue_full += 1;
        } else {
            // RFC 3168 §6.1.4 wants acknowledgments alone without a mark.
            let mut packet = packet(wire);
            packet.meta.ecn = queue::Ecn::NotEct;
            self.leave_at_once(now, id, packet);
        }
        Enqueued::Taken
    }
}

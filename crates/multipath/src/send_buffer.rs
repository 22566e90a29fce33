//! The send buffer: what programs have sent and no path takes yet. A queue per inner flow, served in turn, the flows
//! that send little first (FQ-CoDel, RFC 8290), so that a call beside a download does not wait behind it.
//!
//! Each queue is kept by CoDel (RFC 8289), with a target that leaves the kernel's TCP the queue it needs: below it are
//! windows that rise and fall, and a buffer that is empty when they are high wastes the paths.
//!
//! Packets of flows that understand marks are marked where others are dropped (RFC 8290 §4.1.2): what a program has to send again
//! comes behind all that waits.
//!
//! Policies may have flows go before or after the others: there is a turn for each priority.

use crate::packet::{FlowId, QueuedPacket};
use crate::policy::{PolicyId, Priority};
use crate::usual::LEAST_WAITING;
use clock::{Duration, Instant};
use queue::Ecn;
use queue::codel::{self, CoDel};
use queue::rounds::Rounds;
use std::collections::{BTreeMap, VecDeque};

/// What a flow may send in its turn.
const QUANTUM: u32 = 1514;
/// While others go first, so much of what leaves is of those that would have to wait for ever, in bytes: a packet in so many.
const YIELDED: u64 = 20 * QUANTUM as u64;

/// A flow under one policy. What belongs to no flow is one.
type Key = (Option<FlowId>, Option<PolicyId>);

/// How long packets may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of all flows together that are enough. Beyond, one packet is dropped in an interval: its sender needs a
    /// round trip to hear of it, and further losses in that time add no signal, but take long to retransmit.
    pub bytes: usize,
    /// Bytes of all flows together that are too many.
    pub most: usize,
    /// The same where the longest queue is of a flow that understands marks: until it hears of the first one, it sends on.
    pub most_marked: usize,
    /// Bytes of memory that they may take.
    pub memory: usize,
    /// What TCPs may fill whose receive windows we clamp, so that nothing is dropped.
    pub clamped: usize,
    /// How long the packets of a flow may wait.
    pub codel: codel::Parameters,
}

const NORMAL: usize = Priority::Normal as usize;

#[derive(Clone, Debug)]
struct Entry<P> {
    packet: QueuedPacket<P>,
    at: Instant,
    /// TCP sends it again: it is not dropped.
    again: bool,
}

impl<P> Entry<P> {
    /// Whether a mark says to its flow what a loss would.
    fn can_be_marked(&self) -> bool {
        let QueuedPacket { meta, is_marked, .. } = &self.packet;
        // What has neither number nor label has nowhere to carry it.
        matches!(meta.ecn, Ecn::Ect0 | Ecn::Ect1) && !is_marked && (meta.flow.is_some() || meta.is_short)
    }

    /// Whether a mark on it is heard, which it may have already.
    fn takes_mark(&self) -> bool {
        self.packet.is_marked || self.can_be_marked()
    }
}

#[derive(Clone, Debug)]
struct Queue<P> {
    packets: VecDeque<Entry<P>>,
    /// What TCP sends again, where it may go first: others wait for it.
    again: VecDeque<Entry<P>>,
    bytes: usize,
    codel: CoDel,
    /// A TCP whose receive window is clamped: it can send no more, and what it has sent was allowed when it did.
    is_clamped: bool,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        let (packets, again) = (VecDeque::new(), VecDeque::new());
        Self { packets, again, bytes: 0, codel: CoDel::default(), is_clamped: false }
    }
}

impl<P> Queue<P> {
    /// Whether data of a TCP from this sequence number on wait, to be sent for the first time.
    fn has(&self, sequence: u32) -> bool {
        let first = self.packets.iter().find(|entry| !entry.again);
        let first = first.and_then(|entry| entry.packet.meta.segment()).map(|segment| segment.seq);
        first.is_some_and(|first| sequence.wrapping_sub(first) as i32 >= 0)
    }

    /// Whether its flow takes a mark for a loss.
    fn understands_marks(&self) -> bool {
        self.packets.front().is_some_and(Entry::takes_mark)
    }

    /// Marks the first packet that can be; whether there is one.
    fn mark_first(&mut self) -> bool {
        let first = self.packets.iter_mut().find(|entry| entry.can_be_marked());
        first.map(|first| first.packet.is_marked = true).is_some()
    }
}

/// The buffer of one peer.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer<P> {
    /// The queues of the flows that are in `rounds`.
    queues: BTreeMap<Key, Queue<P>>,
    /// A turn for each priority, the first of which comes first.
    rounds: [Rounds<Key>; 3],
    /// Whose turn it is.
    tier: usize,
    /// Bytes that have left while others of less priority waited.
    preferred: u64,
    bytes: usize,
    packets: usize,
    dropped: u64,
    marked: u64,
    /// Until then one drop for all that is too much is enough.
    warned_until: Instant,
    /// How long the packet that left last had waited.
    sojourn: Duration,
}

impl<P> Default for SendBuffer<P> {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            rounds: std::array::from_fn(|_| Rounds::new(QUANTUM)),
            tier: NORMAL,
            preferred: 0,
            bytes: 0,
            packets: 0,
            dropped: 0,
            marked: 0,
            warned_until: Instant::ZERO,
            sojourn: Duration::ZERO,
        }
    }
}

impl<P> SendBuffer<P> {
    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a queue takes besides its packets, in bytes: its place in the tree, and room for four packets from the first on.
    const QUEUE: usize = 2 * (size_of::<Key>() + size_of::<Queue<P>>()) + 4 * size_of::<Entry<P>>();

    /// Bytes of memory that they take: small packets little more than their entries, and many flows of one packet each more than
    /// these.
    pub(crate) fn memory(&self) -> usize {
        let entries = self.packets.saturating_mul(size_of::<Entry<P>>());
        self.bytes.saturating_add(entries).saturating_add(self.queues.len().saturating_mul(Self::QUEUE))
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Packets dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets marked.
    pub(crate) fn marked(&self) -> u64 {
        self.marked
    }

    /// How long the packet that left last had waited.
    pub(crate) fn sojourn(&self) -> Duration {
        self.sojourn
    }

    /// Whether the next flow sends little, and is none of TCP's.
    pub(crate) fn next_is_thin(&self) -> bool {
        let new = self.first().filter(|(_, is_new)| *is_new);
        let queue = new.and_then(|(flow, _)| self.queues.get(&flow));
        queue.is_some_and(|queue| {
            let first = queue.packets.front();
            queue.bytes <= QUANTUM as usize && first.is_some_and(|entry| !entry.packet.meta.is_tcp())
        })
    }

    /// The next flow.
    pub(crate) fn next_flow(&self) -> Option<FlowId> {
        self.first().and_then(|((flow, _), _)| flow)
    }

    /// Flows of which something waits.
    pub(crate) fn flows(&self) -> usize {
        self.queues.len()
    }

    /// Whether something of a flow waits.
    pub(crate) fn has(&self, flow: FlowId) -> bool {
        self.of(flow).any(|queue| queue.bytes > 0)
    }

    /// Since when the oldest packet of the next flow waits.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        let (flow, _) = self.first()?;
        let queue = self.queues.get(&flow)?;
        queue.again.front().or(queue.packets.front()).map(|entry| entry.at)
    }

    /// Appends to the flow's queue. If there is no room any more the longest queue loses its first packet.
    ///
    /// A TCP whose window is clamped is spared here until what waits is too much for the memory: windows that fall leave more
    /// waiting than they allow, and a hole would be filled from behind all of it. What goes on waiting is CoDel's.
    ///
    /// What a TCP sends again while it still waits is passed over: the copy would arrive before what comes before it, and make
    /// that look lost. (Linux spares it likewise where the first copy has not left a queue of its own.)
    pub(crate) fn push(
        &mut self,
        now: Instant,
        packet: QueuedPacket<P>,
        priority: Priority,
        is_clamped: bool,
        limits: &Limits,
    ) {
        let flow = (packet.meta.flow, packet.policy);
        let queue = self.queues.entry(flow).or_insert_with(|| {
            let [urgent, normal, bulk] = &mut self.rounds;
            match priority {
                Priority::Urgent => urgent.begin(flow),
                Priority::Normal => normal.begin(flow),
                Priority::Bulk => bulk.begin(flow),
            }
            Queue::default()
        });
        let again = packet.meta.segment().is_some_and(|segment| segment.is_retransmission);
        if again && packet.meta.segment().is_some_and(|segment| queue.has(segment.seq)) {
            return;
        }
        self.bytes += packet.wire;
        self.packets += 1;
        queue.bytes += packet.wire;
        queue.is_clamped = is_clamped;
        // RFC 7323 §5.3: once a later timestamp has come, what has an earlier one is refused as old.
        let stamped = || packet.meta.segment().is_some_and(|segment| segment.has_timestamps);
        let waits_in_turn = !again || !queue.packets.is_empty() && stamped();
        let entry = Entry { packet, at: now, again };
        if waits_in_turn {
            queue.packets.push_back(entry);
        } else {
            queue.again.push_back(entry);
        }
        while self.bytes > limits.most
            || self.memory() > limits.memory
            || self.bytes > limits.bytes && now >= self.warned_until
        {
            // RFC 8290 §4.1.3, at the head: the sender hears of it sooner.
            // Of equal ones the one that came last, or it would always be the same.
            let no_memory = self.memory() > limits.memory;
            let of_each = if no_memory { size_of::<Entry<P>>() } else { 0 };
            let length = |queue: &Queue<P>| {
                let entries = (queue.packets.len() + queue.again.len()) * of_each;
                (queue.bytes + entries, queue.packets.front().map(|entry| entry.at))
            };
            let longest = self.queues.iter_mut().max_by_key(|(_, queue)| length(queue));
            // What is sent again goes last, but goes: programs must not fill the memory with it.
            let understands = longest.as_ref().is_some_and(|(_, queue)| queue.understands_marks());
            let most = if understands { limits.most_marked } else { limits.most };
            let too_many = self.bytes > most || no_memory;
            if !too_many && now < self.warned_until {
                break;
            }
            self.warned_until = now + limits.codel.interval;
            // Nor is a flow warned that has little waiting: all together may be too much, and none of a crowd could send less.
            let longest =
                longest.filter(|(_, queue)| too_many || !queue.is_clamped && queue.bytes as u64 > LEAST_WAITING);
            let Some((&flow, queue)) = longest else { break };
            if !too_many && queue.mark_first() {
                self.marked += 1;
                break;
            }
            let at = queue.packets.iter().position(|entry| !entry.again || too_many);
            let first = at.and_then(|at| queue.packets.remove(at));
            let Some(entry) = first.or_else(|| if too_many { queue.again.pop_front() } else { None }) else { break };
            queue.bytes -= entry.packet.wire;
            // A program that asks all ports of a host would leave an empty queue for each until its turn comes.
            if queue.bytes == 0 {
                self.queues.remove(&flow);
                self.rounds.iter_mut().for_each(|rounds| rounds.remove(flow));
            }
            self.bytes -= entry.packet.wire;
            self.packets -= 1;
            self.dropped += 1;
        }
    }

    /// Takes all that waits, flow by flow.
    pub(crate) fn drain(&mut self) -> Vec<QueuedPacket<P>> {
        let queues = std::mem::take(&mut self.queues);
        (self.bytes, self.packets) = (0, 0);
        self.rounds.iter_mut().for_each(Rounds::clear);
        self.tier = NORMAL;
        queues
            .into_values()
            .flat_map(|queue| queue.again.into_iter().chain(queue.packets))
            .map(|entry| entry.packet)
            .collect()
    }

    /// What a flow may have waiting more than it has, or less if it is negative, if it can be clamped: its part of what does no
    /// harm.
    pub(crate) fn room(&self, flow: FlowId, limits: &Limits) -> i64 {
        let waits = self.of(flow).map(|queue| queue.bytes).reduce(|a, b| a + b);
        let queues = self.queues.len() + usize::from(waits.is_none());
        (limits.clamped / queues) as i64 - waits.unwrap_or(0) as i64
    }

    /// The next packet, of whatever policy.
    pub(crate) fn pop(&mut self, now: Instant, limits: &Limits) -> Option<QueuedPacket<P>> {
        while let Some(flow) = self.rounds.get_mut(self.tier)?.turn() {
            if let Some(packet) = self.pop_of(now, flow, limits) {
                return Some(packet);
            }
        }
        None
    }

    /// Brings a flow to the front of which something waits and whose policy is free: which policy that is.
    pub(crate) fn prepare(&mut self, is_free: impl Fn(Option<PolicyId>) -> bool) -> Option<Option<PolicyId>> {
        let tiers = 0..self.rounds.len();
        let mut free = tiers.filter(|tier| self.turn_of(*tier, &is_free));
        let (first, later) = (free.next()?, free.next());
        self.tier = first;
        if let Some(later) = later.filter(|_| self.preferred >= YIELDED) {
            (self.tier, self.preferred) = (later, 0);
        }
        self.first().map(|((_, policy), _)| policy)
    }

    /// Brings such a flow to the front of a tier; those of which nothing waits end there, as in [`SendBuffer::pop`].
    fn turn_of(&mut self, tier: usize, is_free: impl Fn(Option<PolicyId>) -> bool) -> bool {
        while let Some(flow) = self.rounds.get_mut(tier).and_then(|rounds| rounds.turn_of(|flow| is_free(flow.1))) {
            if self.queues.get(&flow).is_some_and(|queue| queue.bytes > 0) {
                return true;
            }
            self.end(tier, flow);
        }
        false
    }

    /// The next packet of the flow that was brought to the front; none where CoDel lets none pass.
    pub(crate) fn pop_prepared(&mut self, now: Instant, limits: &Limits) -> Option<QueuedPacket<P>> {
        let (flow, _) = self.first()?;
        let packet = self.pop_of(now, flow, limits)?;
        self.preferred += packet.wire as u64;
        Some(packet)
    }

    fn pop_of(&mut self, now: Instant, flow: Key, limits: &Limits) -> Option<QueuedPacket<P>> {
        let Some(entry) = self.dequeue(now, flow, limits) else {
            self.end(self.tier, flow);
            return None;
        };
        self.sojourn = now - entry.at;
        self.rounds.get_mut(self.tier)?.spend(entry.packet.wire as u32);
        Some(entry.packet)
    }

    /// Nothing waits of the flow whose turn it is in a tier: its turn ends, and so does its queue where it has no other.
    fn end(&mut self, tier: usize, flow: Key) {
        if let Some(queue) = self.queues.get_mut(&flow) {
            queue.codel.empty();
        }
        if self.rounds.get_mut(tier).is_some_and(Rounds::end) {
            self.queues.remove(&flow);
        }
    }

    /// Whose turn it is next.
    fn first(&self) -> Option<(Key, bool)> {
        self.rounds.get(self.tier)?.first()
    }

    /// The queues of a flow.
    fn of(&self, flow: FlowId) -> impl Iterator<Item = &Queue<P>> {
        let all = (Some(flow), None)..=(Some(flow), Some(PolicyId(u8::MAX)));
        self.queues.range(all).map(|(_, queue)| queue)
    }

    fn take(&mut self, flow: Key) -> Option<Entry<P>> {
        let queue = self.queues.get_mut(&flow)?;
        let entry = queue.again.pop_front().or_else(|| queue.packets.pop_front())?;
        queue.bytes -= entry.packet.wire;
        self.bytes -= entry.packet.wire;
        self.packets -= 1;
        Some(entry)
    }

    /// The next packet of a flow that CoDel lets pass. What TCP sends again is never dropped here.
    fn dequeue(&mut self, now: Instant, flow: Key, limits: &Limits) -> Option<Entry<P>> {
        loop {
            let goes_first = self.queues.get(&flow).is_some_and(|queue| !queue.again.is_empty());
            let mut entry = self.take(flow)?;
            let queue = self.queues.get_mut(&flow)?;
            if goes_first {
                return Some(entry);
            }
            let (waited, left) = (now - entry.at, queue.bytes as u64);
            // What the least window lets a TCP have waiting is no queue that it could make shorter.
            if !queue.codel.is_due(&limits.codel, now, waited, left, LEAST_WAITING) || entry.again {
                return Some(entry);
            }
            queue.codel.acted(&limits.codel, now);
            // One that a full buffer has marked already says it for both.
            if entry.takes_mark() {
                self.marked += u64::from(!entry.packet.is_marked);
                entry.packet.is_marked = true;
                return Some(entry);
            }
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Class, Meta, Segment};
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        bytes: 1 << 20,
        most: 1 << 21,
        most_marked: 1 << 21,
        memory: 1 << 23,
        clamped: 1 << 20,
        codel: codel::Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) },
    };

    fn flow(local: u16) -> Option<FlowId> {
        Some(FlowId { protocol: 17, local, remote: 1 })
    }

    fn packet(flow: Option<FlowId>, number: u32, wire: usize) -> QueuedPacket<u32> {
        crate::packet::datagram(number, flow, wire)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_call_does_not_wait_behind_a_download() {
        let mut buffer = SendBuffer::default();
        (0..100).for_each(|number| buffer.push(at(0), packet(flow(1), number, 1500), Priority::Normal, false, &LIMITS));
        for _ in 0..3 {
            assert!(buffer.pop(at(0), &LIMITS).is_some());
        }
        buffer.push(at(1), packet(flow(2), 1000, 200), Priority::Normal, false, &LIMITS);
        assert_eq!(buffer.pop(at(1), &LIMITS).unwrap().payload, 1000);
    }

    #[test]
    fn two_downloads_share() {
        let mut buffer = SendBuffer::default();
        for number in 0..200 {
            buffer.push(at(0), packet(flow(1), number, 1500), Priority::Normal, false, &LIMITS);
            if number % 2 == 0 {
                buffer.push(at(0), packet(flow(2), 1000 + number, 1500), Priority::Normal, false, &LIMITS);
            }
        }
        let popped: Vec<u32> = (0..100).map(|_| buffer.pop(at(0), &LIMITS).unwrap().payload).collect();
        let second = popped.iter().filter(|number| **number >= 1000).count();
        assert!((48..=52).contains(&second), "{second}");
    }

    /// A segment of a TCP, handed to the buffer again or for the first time.
    fn segment(seq: u32, len: u32, is_retransmission: bool, has_timestamps: bool) -> QueuedPacket<u32> {
        let class = Class::Tcp(Segment { seq, len, syn: false, has_timestamps, is_retransmission });
        let flow = Some(FlowId { protocol: 6, local: 80, remote: 4000 });
        QueuedPacket::new(
            Meta { flow, len: 1000, is_urgent: false, class, ecn: Ecn::NotEct, is_short: false },
            seq,
            1400,
        )
    }

    #[test]
    fn what_is_sent_again_goes_first_unless_it_still_waits() {
        let mut buffer = SendBuffer::default();
        let first = u32::MAX - 1500;
        let push = |buffer: &mut SendBuffer<u32>, offset, len, again| {
            buffer.push(
                at(0),
                segment(first.wrapping_add(offset), len, again, false),
                Priority::Normal,
                false,
                &LIMITS,
            );
        };
        (0..3).for_each(|number| push(&mut buffer, 1000 * number, 1000, false));
        // A FIN.
        push(&mut buffer, 3000, 1, false);
        assert!(buffer.pop(at(0), &LIMITS).is_some());
        // The second and the third still wait, across the wrap; the first has left.
        [2, 1, 0].into_iter().for_each(|number| push(&mut buffer, 1000 * number, 1000, true));
        let left = std::iter::from_fn(|| buffer.pop(at(0), &LIMITS));
        let left: Vec<u32> = left.map(|packet| packet.payload.wrapping_sub(first)).collect();
        assert_eq!(left, [0, 1000, 2000, 3000]);
        assert_eq!((buffer.packets(), buffer.bytes(), buffer.dropped()), (0, 0, 0));
    }

    /// A TCP with timestamps: what overtakes has a later one, and the receiver refuses what it has overtaken.
    #[test]
    fn what_is_sent_again_overtakes_nothing_that_has_an_earlier_timestamp() {
        let mut buffer = SendBuffer::default();
        let limits = Limits { bytes: 10 * 1400, ..LIMITS };
        let push = |buffer: &mut SendBuffer<u32>, seq: u32, stamp: u32, again| {
            let packet = segment(seq, 1000, again, true);
            buffer.push(at(0), QueuedPacket { payload: stamp, ..packet }, Priority::Normal, false, &limits);
        };
        // The first of eleven is dropped, for they are too many.
        (0..11).for_each(|number| push(&mut buffer, 1000 * number, 10, false));
        push(&mut buffer, 0, 200, true);
        // What still waits does so once.
        push(&mut buffer, 3000, 200, true);
        let left: Vec<(u32, u32)> = std::iter::from_fn(|| buffer.pop(at(0), &limits))
            .map(|packet| (packet.meta.segment().unwrap().seq, packet.payload))
            .collect();
        let right: Vec<_> = (1..11).map(|number| (1000 * number, 10)).chain([(0, 200)]).collect();
        assert_eq!(left, right);
        // What has left is let through, also behind another that is sent again.
        push(&mut buffer, 12_000, 300, false);
        push(&mut buffer, 1000, 310, true);
        assert!(buffer.pop(at(0), &limits).is_some());
        push(&mut buffer, 2000, 310, true);
        assert_eq!((buffer.packets(), buffer.dropped()), (2, 1));
    }

    /// RFC 8289 §3: a queue that stays is reduced by drops that come ever sooner; one that drains is left alone.
    #[test]
    fn a_standing_queue_is_dropped_from_and_a_burst_is_not() {
        let mut buffer = SendBuffer::default();
        (0..50).for_each(|number| buffer.push(at(0), packet(flow(1), number, 1500), Priority::Normal, false, &LIMITS));
        (0..50).for_each(|ms| assert!(buffer.pop(at(ms), &LIMITS).is_some()));
        assert_eq!((buffer.dropped(), buffer.packets()), (0, 0));
        (0..100)
            .for_each(|number| buffer.push(at(100), packet(flow(1), number, 1500), Priority::Normal, false, &LIMITS));
        for ms in 100..1100 {
            buffer.push(at(ms), packet(flow(1), ms as u32, 1500), Priority::Normal, false, &LIMITS);
            assert!(buffer.pop(at(ms), &LIMITS).is_some());
        }
        assert!((3..40).contains(&buffer.dropped()), "{}", buffer.dropped());
    }

    /// A program asks all ports of a host that no path leads to: what is not kept leaves no queue behind.
    #[test]
    fn flows_of_one_packet_are_bounded_too() {
        let mut buffer = SendBuffer::default();
        let limits = Limits { memory: 1 << 20, ..LIMITS };
        for port in 0..20_000 {
            buffer.push(at(0), packet(flow(port), port.into(), 60), Priority::Normal, false, &limits);
            assert!(buffer.memory() <= limits.memory && buffer.flows() == buffer.packets());
        }
        let places: usize = buffer.queues.values().map(|queue| queue.packets.capacity()).sum();
        assert!(places * size_of::<Entry<u32>>() <= limits.memory, "{places}");
        let (kept, dropped) = (buffer.packets(), buffer.dropped());
        assert!(kept > 100 && kept as u64 + dropped == 20_000);
        assert_eq!(std::iter::from_fn(|| buffer.pop(at(0), &limits)).count(), kept);
        assert_eq!((buffer.flows(), buffer.memory()), (0, 0));
    }

    /// RFC 8290 §4.1.2: a flow that understands marks is marked where another is dropped from, until memory ends.
    #[test]
    fn who_understands_marks_loses_nothing_before_memory_ends() {
        for (ecn, lost) in [(Ecn::Ect0, false), (Ecn::Ect1, false), (Ecn::NotEct, true), (Ecn::Ce, true)] {
            let mut buffer = SendBuffer::default();
            let limits = Limits { bytes: 120_000, most: 240_000, most_marked: 360_000, ..LIMITS };
            let push = |buffer: &mut SendBuffer<u32>, ms, number| {
                let mut packet = packet(flow(1), number, 1500);
                packet.meta.ecn = ecn;
                buffer.push(at(ms), packet, Priority::Normal, false, &limits);
            };
            (0..100).for_each(|number| push(&mut buffer, 0, number));
            let mut signs = 0;
            for ms in 0..1000 {
                push(&mut buffer, ms, 100 + ms as u32);
                signs += u32::from(buffer.pop(at(ms), &limits).unwrap().mark() == Ecn::Ce);
            }
            assert_eq!((buffer.dropped() > 0, buffer.marked() > 0), (lost, !lost), "{ecn:?}");
            // What was marked before it came says nothing of this buffer.
            assert!((3..40).contains(&if lost { buffer.dropped() } else { signs.into() }), "{ecn:?}: {signs}");
            (0..200).for_each(|number| push(&mut buffer, 1000, 2000 + number));
            assert!(buffer.dropped() > 0 && buffer.bytes() <= if lost { limits.most } else { limits.most_marked });
        }
    }

    proptest! {
        /// A packet may be marked when the buffer fills, and be the one that CoDel has its turn on.
        #[test]
        fn two_signs_on_one_packet_are_no_loss(steps in prop::collection::vec((1u64..400, 0usize..40, 1usize..20), 50..200)) {
            let mut buffer = SendBuffer::default();
            let limits = Limits { bytes: 15_000, most: 30_000, most_marked: usize::MAX, memory: usize::MAX, ..LIMITS };
            let (mut now, mut number) = (0, 0);
            for (wait, pushed, popped) in steps {
                now += wait;
                for _ in 0..pushed {
                    let mut packet = packet(flow(1), number, 1500);
                    packet.meta.ecn = Ecn::Ect0;
                    buffer.push(at(now), packet, Priority::Normal, false, &limits);
                    number += 1;
                }
                (0..popped).for_each(|_| _ = buffer.pop(at(now), &limits));
            }
            prop_assert_eq!(buffer.dropped(), 0);
        }
    }

    /// With policies flows end as they do without, and leave their part of what may wait to the others.
    #[test]
    fn a_flow_of_which_nothing_waits_ends_with_policies_too() {
        for blocked in [None, Some(PolicyId(1))] {
            let mut buffer = SendBuffer::default();
            let mut of_blocked = packet(flow(9999), 0, 1500);
            of_blocked.policy = Some(PolicyId(1));
            buffer.push(at(0), of_blocked, Priority::Normal, false, &LIMITS);
            for port in 0..1000 {
                let tier = [Priority::Urgent, Priority::Normal, Priority::Bulk][usize::from(port % 3)];
                buffer.push(at(0), packet(flow(port), 0, 1500), tier, false, &LIMITS);
                while buffer.prepare(|policy| policy.is_none() || policy != blocked).is_some() {
                    assert!(buffer.pop_prepared(at(0), &LIMITS).is_some());
                }
            }
            let left = usize::from(blocked.is_some());
            assert_eq!((buffer.flows(), buffer.packets()), (left, left), "{blocked:?}");
            let alone = LIMITS.clamped / (left + 1);
            assert_eq!(buffer.room(flow(1).unwrap(), &LIMITS), alone as i64);
        }
    }

    /// Windows fall to a tenth while a TCP has waiting what it was allowed: it hears of that, and need not lose anything at once. Who
    /// does not hear of it loses one packet in an interval.
    #[test]
    fn a_clamped_tcp_loses_nothing_when_less_may_wait() {
        for (is_clamped, lost) in [(true, 0), (false, 1)] {
            let mut buffer = SendBuffer::default();
            let less = Limits { bytes: LIMITS.bytes / 10, most: LIMITS.most, ..LIMITS };
            for number in 0..600 {
                let limits = if number < 590 { &LIMITS } else { &less };
                buffer.push(at(0), packet(flow(1), number, 1500), Priority::Normal, is_clamped, limits);
            }
            assert_eq!(buffer.dropped(), lost);
        }
    }

    /// A crowd has more waiting than may wait, each flow no more than the least: whoever lost a packet would wait for a timer that
    /// has been doubled for as long as all the others take.
    #[test]
    fn a_crowd_of_small_flows_is_not_warned() {
        for (each, lost) in [(6, 0), (9, 1)] {
            let mut buffer = SendBuffer::default();
            let limits = Limits { bytes: 100_000, ..LIMITS };
            for port in 0..100 {
                for number in 0..each {
                    buffer.push(at(0), packet(flow(port), number, 1450), Priority::Normal, false, &limits);
                }
            }
            assert_eq!(buffer.dropped(), lost);
        }
    }

    proptest! {
        /// What goes in comes out once, or is counted as dropped, in the order of its flow; never more than fits is kept.
        #[test]
        fn nothing_is_lost_uncounted_or_out_of_order(steps in prop::collection::vec((0u16..4, 1usize..1500, 0u64..4), 1..300)) {
            let limits = Limits { bytes: 10_000, most: 20_000, most_marked: 20_000, ..LIMITS };
            let mut buffer = SendBuffer::default();
            let mut out: Vec<(u16, u32)> = Vec::new();
            let (mut now, mut pushed) = (at(0), 0);
            for (port, wire, action) in steps {
                now += Duration::from_millis(action);
                if action < 3 {
                    pushed += 1;
                    buffer.push(now, packet(flow(port), pushed, wire), Priority::Normal, false, &limits);
                    prop_assert!(buffer.bytes() <= limits.most);
                } else if let Some(packet) = buffer.pop(now, &limits) {
                    out.push((packet.meta.flow.map_or(0, |flow| flow.local), packet.payload));
                }
            }
            while let Some(packet) = buffer.pop(now, &limits) {
                out.push((packet.meta.flow.map_or(0, |flow| flow.local), packet.payload));
            }
            prop_assert_eq!((buffer.packets(), buffer.bytes()), (0, 0));
            prop_assert_eq!(out.len() as u64 + buffer.dropped(), u64::from(pushed));
            for port in 0..4 {
                let numbers: Vec<u32> = out.iter().filter(|(p, _)| *p == port).map(|(_, number)| *number).collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}

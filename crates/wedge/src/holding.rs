//! The holding buffer: what programs have sent and no path takes yet. A queue per inner flow, served in turn, the flows
//! that send little first (FQ-CoDel, RFC 8290), so that a call beside a download does not wait behind it.
//!
//! Each queue is kept by CoDel (RFC 8289), with a target that leaves the kernel's TCP the queue it needs: below it are
//! windows that rise and fall, and a buffer that is empty when they are high wastes the paths.

use crate::flows::FlowKey;
use crate::pacing::Waiting;
use clock::{Duration, Instant};
use queue::codel::{self, CoDel};
use std::collections::{BTreeMap, VecDeque};
use wire::ip::protocol;

/// What a flow may send in its turn.
const QUANTUM: i64 = 1514;

/// How long packets may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of all flows together that are enough. Beyond, one packet is dropped in an interval: its sender needs a
    /// round trip to hear of it, and further losses in that time tell it nothing, but take it long to repair.
    pub bytes: usize,
    /// Bytes of all flows together that are too many.
    pub most: usize,
    /// What TCPs may fill that can be told how much they may send, so that nothing is dropped.
    pub told: usize,
    /// How long the packets of a flow may wait.
    pub codel: codel::Parameters,
}

#[derive(Clone, Debug)]
struct Held {
    packet: Waiting,
    at: Instant,
    /// TCP sends it again: it is not dropped.
    again: bool,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Held>,
    /// What TCP sends again, where it may go first: others wait for it.
    again: VecDeque<Held>,
    bytes: usize,
    deficit: i64,
    codel: CoDel,
}

impl Queue {
    /// Whether data of a TCP from this sequence number on wait, to be sent for the first time.
    fn has(&self, sequence: u32) -> bool {
        let first = self.packets.iter().find(|held| !held.again);
        let first = first.and_then(|held| held.packet.segment()).map(|segment| segment.seq());
        first.is_some_and(|first| sequence.wrapping_sub(first) as i32 >= 0)
    }
}

/// The buffer of one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding {
    queues: BTreeMap<Option<FlowKey>, Queue>,
    /// Flows that have just begun to wait, then the others (RFC 8290 §4.2).
    new: VecDeque<Option<FlowKey>>,
    old: VecDeque<Option<FlowKey>>,
    bytes: usize,
    packets: usize,
    dropped: u64,
    /// Until then one drop for all that is too much is enough.
    warned_until: Instant,
    /// How long the packet that left last had waited.
    sojourn: Duration,
}

impl Holding {
    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Packets dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How long the packet that left last had waited.
    pub(crate) fn sojourn(&self) -> Duration {
        self.sojourn
    }

    /// Whether the next flow sends little, and is none of TCP's.
    pub(crate) fn next_is_thin(&self) -> bool {
        let queue = self.new.front().and_then(|key| self.queues.get(key));
        queue.is_some_and(|queue| {
            let first = queue.packets.front();
            queue.bytes <= QUANTUM as usize && first.is_some_and(|held| held.packet.next_header != protocol::TCP)
        })
    }

    /// Since when the oldest packet of the next flow waits.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        let key = self.new.front().or_else(|| self.old.front())?;
        let queue = self.queues.get(key)?;
        queue.again.front().or(queue.packets.front()).map(|held| held.at)
    }

    /// Appends to the flow's queue. If there is no room any more the longest queue loses its first packet.
    ///
    /// What a TCP sends again while it still waits is passed over: the copy would arrive before what comes before it, and make
    /// that look lost. (Linux spares it likewise where the first copy has not left a queue of its own.) `before` is the first
    /// sequence number of data that were here before.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        flow: Option<FlowKey>,
        packet: Waiting,
        before: Option<u32>,
        limits: &Limits,
    ) {
        let queue = self.queues.entry(flow).or_default();
        if before.is_some_and(|sequence| queue.has(sequence)) {
            return;
        }
        self.bytes += packet.wire;
        self.packets += 1;
        if queue.bytes == 0 && !self.new.contains(&flow) && !self.old.contains(&flow) {
            queue.deficit = QUANTUM;
            self.new.push_back(flow);
        }
        queue.bytes += packet.wire;
        let again = before.is_some();
        // RFC 7323 §5.3: once a later timestamp has come, what has an earlier one is refused as old.
        let stamped = || packet.segment().is_some_and(|segment| segment.timestamps().is_some());
        let waits_in_turn = !again || !queue.packets.is_empty() && stamped();
        let held = Held { packet, at: now, again };
        if waits_in_turn {
            queue.packets.push_back(held);
        } else {
            queue.again.push_back(held);
        }
        while self.bytes > limits.most || self.bytes > limits.bytes && now >= self.warned_until {
            self.warned_until = now + limits.codel.interval;
            // RFC 8290 §4.1.3, at the head: the sender hears of it sooner.
            // Of equal ones the one that came last, or it would always be the same.
            let length = |queue: &Queue| (queue.bytes, queue.packets.front().map(|held| held.at));
            let longest = self.queues.values_mut().max_by_key(|queue| length(queue));
            // What is sent again goes last, but goes: programs must not fill the memory with it.
            let too_many = self.bytes > limits.most;
            let first = |queue: &mut Queue| {
                let at = queue.packets.iter().position(|held| !held.again || too_many);
                let at = at.and_then(|at| queue.packets.remove(at));
                at.or_else(|| if too_many { queue.again.pop_front() } else { None })
            };
            let Some((queue, held)) = longest.and_then(|queue| first(queue).map(|held| (queue, held))) else {
                break;
            };
            queue.bytes -= held.packet.wire;
            self.bytes -= held.packet.wire;
            self.packets -= 1;
            self.dropped += 1;
        }
    }

    /// Takes all that waits, flow by flow.
    pub(crate) fn drain(&mut self) -> Vec<Waiting> {
        let queues = std::mem::take(&mut self.queues);
        (self.bytes, self.packets) = (0, 0);
        (self.new, self.old) = Default::default();
        queues
            .into_values()
            .flat_map(|queue| queue.again.into_iter().chain(queue.packets))
            .map(|held| held.packet)
            .collect()
    }

    /// What a flow may have waiting more than it has, or less if it is negative, if it can be told: its part of what does no
    /// harm.
    pub(crate) fn room(&self, flow: FlowKey, limits: &Limits) -> i64 {
        let waits = self.queues.get(&Some(flow)).map(|queue| queue.bytes);
        let queues = self.queues.len() + usize::from(waits.is_none());
        (limits.told / queues) as i64 - waits.unwrap_or(0) as i64
    }

    /// The next packet.
    pub(crate) fn pop(&mut self, now: Instant, limits: &Limits) -> Option<(Option<FlowKey>, Waiting)> {
        // Each turn ends with a packet, a flow that has none any more, or a quantum.
        for _ in 0..4 * (self.queues.len() + 1) {
            let is_new = !self.new.is_empty();
            let flow = *self.new.front().or_else(|| self.old.front())?;
            let Some(queue) = self.queues.get_mut(&flow) else {
                if is_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                continue;
            };
            if queue.deficit <= 0 {
                queue.deficit += QUANTUM;
                if is_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                self.old.push_back(flow);
                continue;
            }
            let before = self.packets;
            match self.dequeue(now, flow, limits) {
                Some(held) => {
                    self.sojourn = now - held.at;
                    if let Some(queue) = self.queues.get_mut(&flow) {
                        queue.deficit -= held.packet.wire as i64;
                    }
                    return Some((flow, held.packet));
                }
                None => {
                    debug_assert!(before >= self.packets, "packets appeared");
                    if is_new {
                        self.new.pop_front()
                    } else {
                        self.old.pop_front()
                    };
                    // RFC 8290 §4.2: a new flow goes through the old ones first, or it could starve them.
                    if is_new && !self.old.is_empty() {
                        self.old.push_back(flow);
                    } else {
                        self.queues.remove(&flow);
                    }
                }
            }
        }
        None
    }

    fn take(&mut self, flow: Option<FlowKey>) -> Option<Held> {
        let queue = self.queues.get_mut(&flow)?;
        let held = queue.again.pop_front().or_else(|| queue.packets.pop_front())?;
        queue.bytes -= held.packet.wire;
        self.bytes -= held.packet.wire;
        self.packets -= 1;
        Some(held)
    }

    /// The next packet of a flow that CoDel lets pass. What TCP sends again is never dropped here.
    fn dequeue(&mut self, now: Instant, flow: Option<FlowKey>, limits: &Limits) -> Option<Held> {
        loop {
            let goes_first = self.queues.get(&flow).is_some_and(|queue| !queue.again.is_empty());
            let held = self.take(flow);
            let queue = self.queues.get_mut(&flow)?;
            let Some(held) = held else {
                queue.codel.empty();
                return None;
            };
            if goes_first {
                return Some(held);
            }
            let (waited, left) = (now - held.at, queue.bytes as u64);
            if !queue.codel.is_due(&limits.codel, now, waited, left, QUANTUM as u64) || held.again {
                return Some(held);
            }
            queue.codel.acted(&limits.codel, now);
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Connections;
    use proptest::prelude::*;
    use wire::tcp;

    const LIMITS: Limits = Limits {
        bytes: 1 << 20,
        most: 1 << 21,
        told: 1 << 20,
        codel: codel::Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) },
    };

    fn flow(port: u16) -> Option<FlowKey> {
        let [a, b] = port.to_be_bytes();
        FlowKey::of(17, &[a, b, 0, 1, 0, 0, 0, 0], true)
    }

    fn packet(number: u32, wire: usize) -> Waiting {
        let payload = number.to_be_bytes().to_vec();
        Waiting::new(17, payload, wire, crate::Ecn::NotEct)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_call_does_not_wait_behind_a_download() {
        let mut holding = Holding::default();
        (0..100).for_each(|number| holding.push(at(0), flow(1), packet(number, 1500), None, &LIMITS));
        for _ in 0..3 {
            assert!(holding.pop(at(0), &LIMITS).is_some());
        }
        holding.push(at(1), flow(2), packet(1000, 200), None, &LIMITS);
        assert_eq!(holding.pop(at(1), &LIMITS).unwrap().1.payload, 1000u32.to_be_bytes());
    }

    #[test]
    fn two_downloads_share() {
        let mut holding = Holding::default();
        for number in 0..200 {
            holding.push(at(0), flow(1), packet(number, 1500), None, &LIMITS);
            if number % 2 == 0 {
                holding.push(at(0), flow(2), packet(1000 + number, 1500), None, &LIMITS);
            }
        }
        let popped: Vec<u32> = (0..100)
            .map(|_| u32::from_be_bytes(*holding.pop(at(0), &LIMITS).unwrap().1.payload.first_chunk().unwrap()))
            .collect();
        let second = popped.iter().filter(|number| **number >= 1000).count();
        assert!((48..=52).contains(&second), "{second}");
    }

    /// A segment of a TCP with so many bytes.
    fn segment(seq: u32, flags: tcp::Flags, data: usize) -> Waiting {
        let header =
            tcp::Header { src_port: 80, dst_port: 4000, seq, flags: tcp::Flags::ACK | flags, ..tcp::Header::default() };
        let (any, mut payload) = (std::net::Ipv6Addr::LOCALHOST.into(), Vec::new());
        header.emit(any, any, &vec![0; data], &mut payload).unwrap();
        Waiting::new(protocol::TCP, payload, 1400, crate::Ecn::NotEct)
    }

    #[test]
    fn what_is_sent_again_goes_first_unless_it_still_waits() {
        let (mut holding, mut connections) = (Holding::default(), Connections::default());
        let mut push = |holding: &mut Holding, seq: u32, flags, data| {
            let packet = segment(seq, flags, data);
            let flow = FlowKey::of(protocol::TCP, &packet.payload, true).unwrap();
            let before = connections.leaves(flow, &packet.segment().unwrap());
            holding.push(at(0), Some(flow), packet, before, &LIMITS);
        };
        let none = tcp::Flags::ACK;
        let first = u32::MAX - 1500;
        for number in 0..3 {
            push(&mut holding, first.wrapping_add(1000 * number), none, 1000);
        }
        push(&mut holding, first.wrapping_add(3000), tcp::Flags::FIN, 0);
        assert!(holding.pop(at(0), &LIMITS).is_some());
        // The second and the third still wait, across the wrap; the first has left.
        for number in [2, 1, 0] {
            push(&mut holding, first.wrapping_add(1000 * number), none, 1000);
        }
        let left = std::iter::from_fn(|| holding.pop(at(0), &LIMITS));
        let left: Vec<u32> = left.map(|(_, packet)| packet.segment().unwrap().seq().wrapping_sub(first)).collect();
        assert_eq!(left, [0, 1000, 2000, 3000]);
        assert_eq!((holding.packets(), holding.bytes(), holding.dropped()), (0, 0, 0));
    }

    /// A TCP with timestamps: what overtakes has a later one, and the receiver refuses what it has overtaken.
    #[test]
    fn what_is_sent_again_overtakes_nothing_that_has_an_earlier_timestamp() {
        let (mut holding, mut connections) = (Holding::default(), Connections::default());
        let limits = Limits { bytes: 5 * 1400, ..LIMITS };
        let mut push = |holding: &mut Holding, seq: u32, stamp: u32| {
            let [a, b, c, d] = stamp.to_be_bytes();
            let options = &[1, 1, 8, 10, a, b, c, d, 0, 0, 0, 0];
            let flags = tcp::Flags::ACK;
            let header = tcp::Header { src_port: 80, dst_port: 4000, seq, flags, options, ..tcp::Header::default() };
            let (any, mut payload) = (std::net::Ipv6Addr::LOCALHOST.into(), Vec::new());
            header.emit(any, any, &[0; 1000], &mut payload).unwrap();
            let packet = Waiting::new(protocol::TCP, payload, 1400, crate::Ecn::NotEct);
            let flow = FlowKey::of(protocol::TCP, &packet.payload, true).unwrap();
            let before = connections.leaves(flow, &packet.segment().unwrap());
            holding.push(at(0), Some(flow), packet, before, &limits);
        };
        // The first of six is dropped, for they are too many.
        (0..6).for_each(|number| push(&mut holding, 1000 * number, 10));
        push(&mut holding, 0, 200);
        // What still waits does so once.
        push(&mut holding, 3000, 200);
        let left: Vec<(u32, u32)> = std::iter::from_fn(|| holding.pop(at(0), &limits))
            .map(|(_, packet)| {
                let segment = packet.segment().unwrap();
                (segment.seq(), segment.timestamps().unwrap().0)
            })
            .collect();
        assert_eq!(left, [(1000, 10), (2000, 10), (3000, 10), (4000, 10), (5000, 10), (0, 200)]);
        // What has left is let through, also behind another that is sent again.
        push(&mut holding, 7000, 300);
        push(&mut holding, 1000, 310);
        assert!(holding.pop(at(0), &limits).is_some());
        push(&mut holding, 2000, 310);
        assert_eq!((holding.packets(), holding.dropped()), (2, 1));
    }

    /// RFC 8289 §3: a queue that stays is reduced by drops that come ever sooner; one that drains is left alone.
    #[test]
    fn a_standing_queue_is_dropped_from_and_a_burst_is_not() {
        let mut holding = Holding::default();
        (0..50).for_each(|number| holding.push(at(0), flow(1), packet(number, 1500), None, &LIMITS));
        (0..50).for_each(|ms| drop(holding.pop(at(ms), &LIMITS)));
        assert_eq!((holding.dropped(), holding.packets()), (0, 0));
        (0..100).for_each(|number| holding.push(at(100), flow(1), packet(number, 1500), None, &LIMITS));
        for ms in 100..1100 {
            holding.push(at(ms), flow(1), packet(ms as u32, 1500), None, &LIMITS);
            assert!(holding.pop(at(ms), &LIMITS).is_some());
        }
        assert!((3..40).contains(&holding.dropped()), "{}", holding.dropped());
    }

    proptest! {
        /// What goes in comes out once, or is counted as dropped, in the order of its flow; never more than fits is kept.
        #[test]
        fn nothing_is_lost_uncounted_or_out_of_order(steps in prop::collection::vec((0u16..4, 1usize..1500, 0u64..4), 1..300)) {
            let limits = Limits { bytes: 10_000, most: 20_000, ..LIMITS };
            let mut holding = Holding::default();
            let mut out: Vec<(usize, u32)> = Vec::new();
            let (mut now, mut pushed) = (at(0), 0);
            for (port, wire, action) in steps {
                now += Duration::from_millis(action);
                if action < 3 {
                    pushed += 1;
                    let mut packet = packet(pushed, wire);
                    packet.next_header = port as u8;
                    holding.push(now, flow(port), packet, None, &limits);
                    prop_assert!(holding.bytes() <= limits.most);
                } else if let Some((_, packet)) = holding.pop(now, &limits) {
                    out.push((packet.next_header.into(), u32::from_be_bytes(*packet.payload.first_chunk().unwrap())));
                }
            }
            while let Some((_, packet)) = holding.pop(now, &limits) {
                out.push((packet.next_header.into(), u32::from_be_bytes(*packet.payload.first_chunk().unwrap())));
            }
            prop_assert_eq!((holding.packets(), holding.bytes()), (0, 0));
            prop_assert_eq!(out.len() as u64 + holding.dropped(), u64::from(pushed));
            for port in 0..4 {
                let numbers: Vec<u32> = out.iter().filter(|(p, _)| *p == port).map(|(_, number)| *number).collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}

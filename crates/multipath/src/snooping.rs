//! What a peer that gives no feedback still tells: the acknowledgments of the TCP inside, which this host may read, for it
//! holds the keys. So the sender alone learns which path delivered what (ALGORITHMS §12.1, source A; the mHIP papers need
//! no more).
//!
//! Each TCP segment that leaves is remembered by its place in the sequence of its connection, with the path and the ESP
//! number that carried it. What an acknowledgment or its SACK blocks (RFC 2018) cover has arrived, and becomes the same
//! record that a Sinnet host would have reported. A segment that was sent again counts for the path that carried it
//! last, and tells no round-trip time (Karn).
//!
//! Less is known than from reports: a round trip holds the peer's delayed acknowledgment and what its resequencer waited,
//! and nothing is known of packets that are not TCP's. Those are not counted, wait for no window, and are sent as ever.

use crate::packet::{FlowId, Meta};
use clock::{Duration, Instant};
use scheduler::PathId;
use std::collections::BTreeMap;

/// Most connections that are followed; packets of others are not counted.
const FLOWS: usize = 1024;
/// Most segments that are remembered, of all connections together.
const SEGMENTS: usize = 1 << 15;
/// A connection that is silent for so long may be forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// The connections with one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snooping {
    flows: BTreeMap<FlowId, Connection>,
    segments: usize,
}

#[derive(Clone, Debug)]
struct Connection {
    /// By the place of the first byte, counted without wrapping around.
    sent: BTreeMap<u64, Sent>,
    /// The place behind all that was sent.
    next: u64,
    seen: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    path: PathId,
    number: u32,
    again: bool,
}

/// A segment with a place in the sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    flow: FlowId,
    sequence: u32,
    length: u32,
}

/// What a segment of the peer's TCP acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledgment<'a> {
    /// It ends the connection at once.
    pub resets: bool,
    /// The first sequence number that is missing, if it says one.
    pub ack: Option<u32>,
    /// What has arrived beyond (RFC 2018): first sequence number, and the one after the last.
    pub sacked: &'a [(u32, u32)],
}

/// What a path has delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// The path.
    pub path: PathId,
    /// First and last ESP number, from the highest down, not touching each other.
    pub ranges: Vec<(u32, u32)>,
    /// The highest was sent once only: its round trip means something.
    pub timed: bool,
}

impl Snooping {
    /// Where a packet that is about to leave belongs, if the peer's TCP will acknowledge it and there is room to
    /// remember it.
    pub(crate) fn place(&mut self, now: Instant, meta: &Meta) -> Option<Place> {
        let segment = meta.segment().filter(|segment| segment.len > 0)?;
        let flow = meta.flow?;
        if segment.syn {
            self.forget(flow);
        }
        let is_known = self.flows.contains_key(&flow);
        if self.segments >= SEGMENTS || !is_known && self.flows.len() >= FLOWS {
            self.sweep(now);
        }
        let fits = self.segments < SEGMENTS && (is_known || self.flows.len() < FLOWS);
        fits.then_some(Place { flow, sequence: segment.seq, length: segment.len })
    }

    /// It has left on a path under an ESP number.
    pub(crate) fn sent(&mut self, now: Instant, place: Place, path: PathId, number: u32) {
        let Place { flow, sequence, length } = place;
        // Room below, so that numbers before the first one stay positive.
        let first = (1 << 32) | u64::from(sequence);
        let connection =
            self.flows.entry(flow).or_insert_with(|| Connection { sent: BTreeMap::new(), next: first, seen: now });
        connection.seen = now;
        let start = connection.unwrap(sequence);
        let end = start + u64::from(length);
        let again = start < connection.next;
        connection.next = connection.next.max(end);
        if connection.sent.insert(start, Sent { end, path, number, again }).is_none() {
            self.segments += 1;
        }
    }

    /// A segment of the peer: what its acknowledgment says has arrived, by path.
    pub(crate) fn acknowledged(&mut self, now: Instant, flow: FlowId, segment: &Acknowledgment<'_>) -> Vec<Delivered> {
        let Some(connection) = self.flows.get_mut(&flow) else { return Vec::new() };
        if segment.resets {
            // Nothing more is going to be acknowledged: what is in flight is given up in its time.
            self.forget(flow);
            return Vec::new();
        }
        let Some(ack) = segment.ack else { return Vec::new() };
        connection.seen = now;
        let upto = connection.unwrap(ack);
        let mut arrived = Vec::new();
        if upto <= connection.next {
            while let Some(entry) = connection.sent.first_entry().filter(|entry| entry.get().end <= upto) {
                arrived.push(entry.remove());
            }
        }
        for (start, end) in segment.sacked.iter().copied() {
            let (start, end) = (connection.unwrap(start), connection.unwrap(end));
            if start >= end || end > connection.next {
                // A block of what was never sent, or the wrong way round.
                continue;
            }
            let inside = connection.sent.range(start..end).filter(|(_, sent)| sent.end <= end);
            let inside: Vec<u64> = inside.map(|(start, _)| *start).collect();
            arrived.extend(inside.iter().filter_map(|start| connection.sent.remove(start)));
        }
        self.segments -= arrived.len();
        by_path(arrived)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.segments * 2 * (size_of::<u64>() + size_of::<Sent>())
    }

    /// Segments remembered.
    pub(crate) fn segments(&self) -> usize {
        self.segments
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(connection) = self.flows.remove(&flow) {
            self.segments -= connection.sent.len();
        }
    }

    fn sweep(&mut self, now: Instant) {
        self.flows.retain(|_, connection| now - connection.seen < FORGET_AFTER);
        self.segments = self.flows.values().map(|connection| connection.sent.len()).sum();
    }
}

impl Connection {
    /// The place nearest to `next` that has these lower 32 bits.
    fn unwrap(&self, sequence: u32) -> u64 {
        self.next.saturating_add_signed(i64::from(sequence.wrapping_sub(self.next as u32) as i32))
    }
}

fn by_path(mut arrived: Vec<Sent>) -> Vec<Delivered> {
    arrived.sort_unstable_by_key(|sent| (sent.path, std::cmp::Reverse(sent.number)));
    let mut paths: Vec<Delivered> = Vec::new();
    for Sent { path, number, again, .. } in arrived {
        match paths.last_mut().filter(|last| last.path == path) {
            None => paths.push(Delivered { path, ranges: vec![(number, number)], timed: !again }),
            Some(known) => match known.ranges.last_mut() {
                Some((first, _)) if number.saturating_add(1) >= *first => *first = number.min(*first),
                _ => known.ranges.push((number, number)),
            },
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Class, Segment};
    use proptest::prelude::*;
    use queue::Ecn;

    const SEGMENT: u32 = 100;
    const FLOW: FlowId = FlowId { protocol: 6, local: 80, remote: 4000 };

    fn data(seq: u32) -> Meta {
        let class = Class::Tcp(Segment { seq, len: SEGMENT, ..Segment::default() });
        Meta { flow: Some(FLOW), len: SEGMENT as usize, is_urgent: false, class, ecn: Ecn::NotEct, is_short: false }
    }

    fn send(snoop: &mut Snooping, sequence: u32, path: u16, number: u32) {
        let place = snoop.place(Instant::ZERO, &data(sequence)).unwrap();
        snoop.sent(Instant::ZERO, place, PathId(path), number);
    }

    fn ack(number: u32, sacked: &[(u32, u32)]) -> Acknowledgment<'_> {
        Acknowledgment { ack: Some(number), sacked, resets: false }
    }

    fn hear(snoop: &mut Snooping, ack: &Acknowledgment<'_>) -> Vec<Delivered> {
        snoop.acknowledged(Instant::ZERO, FLOW, ack)
    }

    fn delivered(path: u16, ranges: &[(u32, u32)], timed: bool) -> Delivered {
        Delivered { path: PathId(path), ranges: ranges.to_vec(), timed }
    }

    /// A hole on one path, SACK for what is above it, the retransmission on the other, across the end of the numbers.
    #[test]
    fn paths_are_told_apart_and_a_retransmission_counts_for_its_own() {
        let mut snoop = Snooping::default();
        let at = |n: u32| (u32::MAX - 250).wrapping_add(n * SEGMENT);
        for n in 0..6 {
            send(&mut snoop, at(n), (n % 2) as u16, 10 + n / 2);
        }
        assert_eq!(hear(&mut snoop, &ack(at(1), &[])), [delivered(0, &[(10, 10)], true)]);
        // Number 1 is lost.
        let sacked = hear(&mut snoop, &ack(at(1), &[(at(2), at(6))]));
        assert_eq!(sacked, [delivered(0, &[(11, 12)], true), delivered(1, &[(11, 12)], true)]);
        assert_eq!(hear(&mut snoop, &ack(at(1), &[(at(2), at(6))])), []);
        send(&mut snoop, at(1), 0, 13);
        assert_eq!(hear(&mut snoop, &ack(at(6), &[])), [delivered(0, &[(13, 13)], false)]);
        assert_eq!(snoop.segments(), 0);
    }

    #[test]
    fn what_was_never_sent_is_not_acknowledged() {
        let mut snoop = Snooping::default();
        (0..4).for_each(|n| send(&mut snoop, n * SEGMENT, 0, n));
        assert_eq!(hear(&mut snoop, &ack(5 * SEGMENT, &[])), []);
        assert_eq!(hear(&mut snoop, &ack(0, &[(300, 600), (300, 100), (50, 250)])), [delivered(0, &[(1, 1)], true)]);
        assert_eq!(hear(&mut snoop, &Acknowledgment { resets: true, ..Acknowledgment::default() }), []);
        assert_eq!(snoop.segments(), 0);
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_not_followed() {
        let mut snoop = Snooping::default();
        (0..SEGMENTS as u32).for_each(|n| send(&mut snoop, n * SEGMENT, 0, n));
        assert!(snoop.place(Instant::ZERO, &data(SEGMENTS as u32 * SEGMENT)).is_none());
        assert!(snoop.place(Instant::ZERO, &Meta { class: Class::Datagram, ..data(0) }).is_none());
        let late = Instant::ZERO + FORGET_AFTER;
        assert!(snoop.place(late, &data(0)).is_some());
        assert_eq!(snoop.segments(), 0);
    }

    proptest! {
        /// However segments are spread, lost, sent again and acknowledged, each transmission is told of once at most, and
        /// when all is acknowledged nothing is left.
        #[test]
        fn nothing_is_told_twice(
            base: u32,
            steps in prop::collection::vec((0u32..40, 0u16..3, 0u32..40, 0u32..40), 1..80),
        ) {
            let mut snoop = Snooping::default();
            let at = |n: u32| base.wrapping_add(n * SEGMENT);
            (0..40).for_each(|n| send(&mut snoop, at(n), (n % 3) as u16, 1 + n));
            let (mut told, mut number) = (std::collections::BTreeSet::new(), 100);
            let mut note = |all: Vec<Delivered>| {
                for path in all {
                    prop_assert!(path.ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
                    for (first, last) in path.ranges {
                        for number in first..=last {
                            prop_assert!(told.insert((path.path, number)));
                        }
                    }
                }
                Ok(())
            };
            for (again, path, start, end) in steps {
                number += 1;
                send(&mut snoop, at(again), path, number);
                note(hear(&mut snoop, &ack(at(start.min(end) / 4), &[(at(start), at(end))])))?;
            }
            note(hear(&mut snoop, &ack(at(40), &[])))?;
            prop_assert_eq!(snoop.segments(), 0);
        }
    }
}

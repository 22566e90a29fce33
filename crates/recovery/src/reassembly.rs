//! The receiver's side: which packets have arrived, and the blocks of RFC 2018 that tell the sender.

use crate::bit_ring::BitRing;

/// Most blocks that fit beside a timestamp option (RFC 2018 §3).
pub const MAX_BLOCKS: usize = 3;

/// What an arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next one in order: so many packets are now in order, itself and what waited behind it.
    InOrder(u64),
    /// Above a hole.
    OutOfOrder,
    /// It had arrived before.
    Duplicate,
    /// Beyond the window given.
    OutsideWindow,
}

/// The packets that have arrived, by packet number.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    next: u64,
    /// One beyond the highest that arrived.
    high: u64,
    arrived: BitRing,
    /// Left edges' blocks reported last, the most recent first.
    recent: [(u64, u64); MAX_BLOCKS],
}

impl Reassembly {
    /// The next packet in order.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether packets wait above a hole.
    #[inline]
    pub fn has_hole(&self) -> bool {
        self.high > self.next
    }

    /// A packet arrived. Only `window` packets from the next in order on are accepted.
    #[inline]
    pub fn receive(&mut self, packet: u64, window: u64) -> Arrival {
        if packet == self.next && !self.has_hole() {
            self.next += 1;
            self.high = self.next;
            return Arrival::InOrder(1);
        }
        self.receive_with_holes(packet, window)
    }

    fn receive_with_holes(&mut self, packet: u64, window: u64) -> Arrival {
        if packet < self.next {
            return Arrival::Duplicate;
        }
        if packet - self.next >= window {
            return Arrival::OutsideWindow;
        }
        let before = self.next;
        if packet == before {
            let end = self.arrived.first_absent(before + 1, self.high).unwrap_or(self.high.max(before + 1));
            self.arrived.clear_range(before + 1, end);
            self.next = end;
            self.high = self.high.max(end);
            return Arrival::InOrder(end - before);
        }
        self.arrived.reserve(before, packet.max(self.high) + 1);
        if self.arrived.get(packet) {
            return Arrival::Duplicate;
        }
        self.arrived.set(packet);
        self.high = self.high.max(packet + 1);
        Arrival::OutOfOrder
    }

    /// The blocks to report after `packet` arrived (RFC 2018 §4): first the one it lies in, then those reported last.
    /// Returns how many of `blocks` were filled.
    pub fn blocks(&mut self, packet: u64, blocks: &mut [(u64, u64); MAX_BLOCKS]) -> usize {
        if !self.has_hole() {
            return 0;
        }
        if packet > self.next && packet < self.high && self.arrived.get(packet) {
            let (left, right) = (self.recent[0].0, self.recent[0].1);
            let block = if packet == right && left > self.next {
                // The usual case: the block of last time goes on.
                (left, self.arrived.first_absent(packet + 1, self.high).unwrap_or(self.high))
            } else {
                let right = self.arrived.first_absent(packet + 1, self.high).unwrap_or(self.high);
                (self.arrived.run_start(self.next + 1, packet), right)
            };
            self.remember(block);
        }
        let mut filled = 0;
        for (left, right) in self.recent {
            // What the cumulative acknowledgment has passed is no longer news.
            if left > self.next && right > left {
                blocks[filled] = (left, right);
                filled += 1;
            }
        }
        filled
    }

    /// Puts `block` first; those that it covers, and those that are in order by now, go.
    fn remember(&mut self, block: (u64, u64)) {
        let mut kept = [(0, 0); MAX_BLOCKS];
        kept[0] = block;
        let mut count = 1;
        for old in self.recent {
            let covered = old.0 >= block.0 && old.1 <= block.1;
            if old.0 > self.next && !covered && count < MAX_BLOCKS {
                kept[count] = old;
                count += 1;
            }
        }
        self.recent = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_are_reported_as_in_rfc_2018() {
        // RFC 2018 §5, case 3: of segments 5000..9500, the 2nd, 4th, 6th and 8th are lost. Here packets 0 to 7.
        let mut blocks = [(0, 0); MAX_BLOCKS];
        let mut receiver = Reassembly::default();
        let mut report = |packet: u64| {
            receiver.receive(packet, 100);
            let count = receiver.blocks(packet, &mut blocks);
            (receiver.next(), blocks[..count].to_vec())
        };
        assert_eq!(report(0), (1, vec![]));
        assert_eq!(report(2), (1, vec![(2, 3)]));
        assert_eq!(report(4), (1, vec![(4, 5), (2, 3)]));
        assert_eq!(report(6), (1, vec![(6, 7), (4, 5), (2, 3)]));
        // The 4th is received out of order ...
        assert_eq!(report(3), (1, vec![(2, 5), (6, 7)]));
        // ... and then the 2nd.
        assert_eq!(report(1), (5, vec![(6, 7)]));
    }

    proptest! {
        /// The oracle is an ordered set.
        #[test]
        fn arrivals_are_what_a_set_says(packets in prop::collection::vec(0u64..200, 1..400)) {
            let mut receiver = Reassembly::default();
            let mut set = BTreeSet::new();
            for packet in packets {
                let before = receiver.next();
                let arrival = receiver.receive(packet, 150);
                let expected = if packet < before || set.contains(&packet) {
                    Arrival::Duplicate
                } else if packet - before >= 150 {
                    Arrival::OutsideWindow
                } else {
                    set.insert(packet);
                    let next = (before..).find(|p| !set.contains(p)).unwrap();
                    if next > before { Arrival::InOrder(next - before) } else { Arrival::OutOfOrder }
                };
                prop_assert_eq!(arrival, expected);
                let mut blocks = [(0, 0); MAX_BLOCKS];
                let count = receiver.blocks(packet, &mut blocks);
                for (left, right) in &blocks[..count] {
                    prop_assert!(left < right && (*left..*right).all(|p| set.contains(&p)));
                    prop_assert!(*left > receiver.next());
                }
                if arrival == Arrival::OutOfOrder {
                    let (left, right) = blocks[0];
                    prop_assert!(left <= packet && packet < right);
                    prop_assert!(!set.contains(&(left - 1)) && !set.contains(&right), "a block is as long as can be");
                }
            }
        }
    }
}

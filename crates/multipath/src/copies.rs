//! Copies of a packet on several paths: the receiver takes the first that comes.

use recovery::BitRing;

/// The number that a packet has in common with its copies; it goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNumber(pub u32);

/// So many packets are looked back on. At 100,000 a second they are more than half a second, by which paths hardly differ.
const WINDOW: u64 = 1 << 16;

/// Which packets have come, of those that have copies.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    seen: BitRing,
    /// One more than the highest that has come, counted without going round; zero before the first.
    top: u64,
}

impl Copies {
    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        (self.seen.capacity() / 8) as usize
    }

    /// Whether the packet is the first of its number. One from before all that is looked back on is not: another was there
    /// long before.
    pub fn is_first(&mut self, CopyNumber(number): CopyNumber) -> bool {
        if self.top == 0 {
            // Room below, so that numbers before the first one stay positive.
            self.top = (1 << 32) | u64::from(number);
            self.seen.reserve(0, WINDOW);
        }
        // The number nearest to `top` that has these lower 32 bits.
        let ahead = number.wrapping_sub(self.top as u32) as i32;
        let number = self.top.saturating_add_signed(i64::from(ahead));
        if number >= self.top {
            let (before, top) = (self.top, number + 1);
            self.seen.clear_range(before.saturating_sub(WINDOW), before.min(top.saturating_sub(WINDOW)));
            self.top = top;
        }
        let is_first = number + WINDOW >= self.top && !self.seen.get(number);
        if is_first {
            self.seen.set(number);
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// A set of all numbers, and the highest of them.
        #[test]
        fn behaves_like_a_set_with_a_highest_member(
            start: u32,
            steps in prop::collection::vec((prop_oneof![
                6 => -100i64..100,
                2 => -(WINDOW as i64) - 80..100,
                1 => -3 * WINDOW as i64..3 * WINDOW as i64,
            ], any::<bool>()), 1..300),
        ) {
            let (mut copies, mut seen) = (Copies::default(), BTreeSet::new());
            let origin = (1i64 << 40) + i64::from(start);
            let mut position = origin;
            for (step, from_highest) in steps {
                let highest = seen.last().copied().unwrap_or(origin);
                position = (if from_highest { highest } else { position } + step).max(highest - (1 << 30));
                let is_recent = seen.is_empty() || position + WINDOW as i64 > highest;
                let expected = is_recent && seen.insert(position);
                prop_assert_eq!(copies.is_first(CopyNumber(position as u32)), expected, "{}", position);
            }
        }
    }
}

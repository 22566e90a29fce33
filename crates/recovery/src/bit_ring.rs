//! A set of packet numbers in a sliding window: one bit each, in a ring.

/// A bitmap over the packet numbers of a window. The owner keeps `base..top` no wider than [`BitRing::capacity`] by
/// calling [`BitRing::reserve`], and clears what leaves the window; bits outside of it are zero. Ranges are walked a
/// word of 64 packets at a time.
#[derive(Clone, Debug, Default)]
pub struct BitRing {
    words: Vec<u64>,
}

impl BitRing {
    /// How many consecutive packet numbers fit.
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Makes room for `base..top`, keeping what is in it. Allocates only when the window is wider than ever before.
    pub fn reserve(&mut self, base: u64, top: u64) {
        // One word to spare: the first and the last bits of the window may share a word otherwise.
        let wanted = top.saturating_sub(base).saturating_add(64);
        if wanted <= self.capacity() {
            return;
        }
        let words = usize::try_from(wanted.div_ceil(64)).unwrap_or(usize::MAX / 128).next_power_of_two();
        let old = std::mem::replace(&mut self.words, vec![0; words]);
        if old.is_empty() {
            return;
        }
        let first = base / 64;
        for word in first..first + old.len() as u64 {
            let (from, to) = (word as usize & (old.len() - 1), word as usize & (words - 1));
            self.words[to] = old[from];
        }
    }

    /// Whether `position` is in the set.
    #[inline]
    pub fn get(&self, position: u64) -> bool {
        self.word(position / 64) >> (position % 64) & 1 == 1
    }

    /// Adds one position.
    #[inline]
    pub fn set(&mut self, position: u64) {
        if let Some(index) = self.index(position / 64) {
            self.words[index] |= 1 << (position % 64);
        }
    }

    /// Removes one position.
    #[inline]
    pub fn clear(&mut self, position: u64) {
        if let Some(index) = self.index(position / 64) {
            self.words[index] &= !(1 << (position % 64));
        }
    }

    /// Adds `from..to` and returns how many of them are new.
    pub fn set_range(&mut self, from: u64, to: u64) -> u64 {
        let mut new = 0;
        for (word, mask) in masks(from, to) {
            if let Some(index) = self.index(word) {
                new += u64::from((mask & !self.words[index]).count_ones());
                self.words[index] |= mask;
            }
        }
        new
    }

    /// Removes `from..to` and returns how many of them were in the set.
    pub fn clear_range(&mut self, from: u64, to: u64) -> u64 {
        let mut gone = 0;
        for (word, mask) in masks(from, to) {
            if let Some(index) = self.index(word) {
                gone += u64::from((mask & self.words[index]).count_ones());
                self.words[index] &= !mask;
            }
        }
        gone
    }

    /// How many of `from..to` are in the set.
    pub fn count(&self, from: u64, to: u64) -> u64 {
        masks(from, to).map(|(word, mask)| u64::from((mask & self.word(word)).count_ones())).sum()
    }

    /// The first position of `from..to` that is not in the set.
    pub fn first_absent(&self, from: u64, to: u64) -> Option<u64> {
        masks(from, to).find_map(|(word, mask)| {
            let absent = mask & !self.word(word);
            (absent != 0).then(|| word * 64 + u64::from(absent.trailing_zeros()))
        })
    }

    /// The start of the run of present positions that ends right before `to`, not below `from`.
    pub fn run_start(&self, from: u64, to: u64) -> u64 {
        let mut end = to;
        while end > from {
            let word = (end - 1) / 64;
            let low = (word * 64).max(from);
            let absent = mask_of(low % 64, (end - 1) % 64) & !self.word(word);
            if absent != 0 {
                return word * 64 + 64 - u64::from(absent.leading_zeros());
            }
            end = low;
        }
        from
    }

    /// The position of the `n`-th present one (from 1) counted down from `to`, not below `from`.
    pub fn nth_from_top(&self, from: u64, to: u64, n: u64) -> Option<u64> {
        let (mut end, mut left) = (to, n);
        while end > from && left > 0 {
            let word = (end - 1) / 64;
            let low = (word * 64).max(from);
            let mut present = mask_of(low % 64, (end - 1) % 64) & self.word(word);
            let here = u64::from(present.count_ones());
            if here >= left {
                // Drop the highest `left - 1` bits, then the highest one left is it.
                for _ in 1..left {
                    present &= !(1 << (63 - present.leading_zeros()));
                }
                return Some(word * 64 + 63 - u64::from(present.leading_zeros()));
            }
            left -= here;
            end = low;
        }
        None
    }

    #[inline]
    fn index(&self, word: u64) -> Option<usize> {
        // The length is a power of two, or nothing.
        (!self.words.is_empty()).then(|| word as usize & (self.words.len() - 1))
    }

    #[inline]
    fn word(&self, word: u64) -> u64 {
        self.index(word).map_or(0, |index| self.words[index])
    }
}

/// Bits `low..=high` of a word.
fn mask_of(low: u64, high: u64) -> u64 {
    (u64::MAX << low) & (u64::MAX >> (63 - high))
}

/// The words that `from..to` touches, with the bits of each.
fn masks(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let (first, last) = (from / 64, if to > from { (to - 1) / 64 } else { 0 });
    let words = if to > from { first..last + 1 } else { 0..0 };
    words.map(move |word| {
        let low = if word == first { from % 64 } else { 0 };
        let high = if word == last { (to - 1) % 64 } else { 63 };
        (word, mask_of(low, high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The oracle is an ordered set.
        #[test]
        fn a_bit_ring_is_a_set_of_numbers(
            base in 0u64..1000,
            ops in prop::collection::vec((0u8..7, 0u64..300, 0u64..120), 1..60),
        ) {
            let mut ring = BitRing::default();
            let mut set = BTreeSet::new();
            ring.reserve(base, base + 10);
            for (op, offset, length) in ops {
                let (from, to) = (base + offset, base + offset + length);
                ring.reserve(base, base + 420);
                let range = || set.range(from..to).copied();
                match op {
                    0 => {
                        let new = (from..to).filter(|p| set.insert(*p)).count();
                        prop_assert_eq!(ring.set_range(from, to), new as u64);
                    }
                    1 => {
                        let gone = (from..to).filter(|p| set.remove(p)).count();
                        prop_assert_eq!(ring.clear_range(from, to), gone as u64);
                    }
                    2 => prop_assert_eq!(ring.count(from, to), range().count() as u64),
                    3 => prop_assert_eq!(ring.first_absent(from, to), (from..to).find(|p| !set.contains(p))),
                    4 => {
                        let start = (from..to).rev().find(|p| !set.contains(p)).map_or(from, |p| p + 1);
                        prop_assert_eq!(ring.run_start(from, to), start);
                    }
                    5 => {
                        let n = length % 5 + 1;
                        prop_assert_eq!(ring.nth_from_top(from, to, n), range().rev().nth(n as usize - 1));
                    }
                    _ => {
                        ring.set(from);
                        set.insert(from);
                        prop_assert!(ring.get(from));
                        ring.clear(to);
                        set.remove(&to);
                        prop_assert!(!ring.get(to));
                    }
                }
            }
        }

        #[test]
        fn growing_keeps_what_is_inside(base in 0u64..10_000, members in prop::collection::btree_set(0u64..60, 0..40)) {
            let mut ring = BitRing::default();
            ring.reserve(base, base + 60);
            members.iter().for_each(|m| ring.set(base + m));
            ring.reserve(base, base + 5_000);
            prop_assert_eq!(ring.count(base, base + 5_000), members.len() as u64);
            prop_assert!(members.iter().all(|m| ring.get(base + m)));
        }
    }
}

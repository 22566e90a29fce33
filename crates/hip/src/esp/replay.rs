//! The anti-replay window (RFC 4303 §3.4.3): which sequence numbers have been seen.
//!
//! A ring of words as in RFC 6479, so that the window moves without shifting bits. One word more than the window has
//! bits for, because the newest word is being filled while the oldest still counts.

/// Sequence numbers that the window looks back on, the highest included. RFC 4303 asks for 32 at least and 64 by default. At
/// a million packets a second 8192 are 8 ms of reordering, for 1 KiB of memory; WireGuard has as many.
pub(super) const WINDOW: u64 = 8192;

const WORDS: usize = WINDOW as usize / 64 + 1;

#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    highest: u64,
    /// On the heap: SAs are moved.
    seen: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        Self { highest: 0, seen: Box::new([0; WORDS]) }
    }

    /// The highest number accepted so far; 0 before the first.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The number of which a packet has the lower half (RFC 4303 appendix A2.1): the one that is nearest to the window. None
    /// where that is before the first.
    pub(super) fn whole(&self, lower: u32) -> Option<u64> {
        const TURN: u64 = 1 << 32;
        let oldest = self.highest.saturating_sub(WINDOW - 1);
        let here = oldest / TURN * TURN + u64::from(lower);
        if self.highest < WINDOW - 1 && u64::from(lower) > TURN - (WINDOW - self.highest) {
            return None;
        }
        Some(if here < oldest { here + TURN } else { here })
    }

    /// True if a packet with this number may still be accepted: inside the window or ahead of it, and not seen yet.
    pub(super) fn is_fresh(&self, sequence: u64) -> bool {
        // RFC 4303 §3.3.3: the first packet has number 1 and numbers never wrap, so 0 is never sent.
        if sequence == 0 {
            return false;
        }
        if sequence > self.highest {
            return true;
        }
        let (word, bit) = position(sequence);
        self.highest - sequence < WINDOW && self.seen[word] & bit == 0
    }

    /// Notes a number that [`ReplayWindow::is_fresh`] allowed and whose ICV was right.
    pub(super) fn mark(&mut self, sequence: u64) {
        if sequence > self.highest {
            let (old, new) = (self.highest / 64, sequence / 64);
            // Words that come into the window anew; all of them if it jumps further than its length.
            let steps = (new - old).min(WORDS as u64);
            for step in 0..steps {
                self.seen[(new - step) as usize % WORDS] = 0;
            }
            self.highest = sequence;
        }
        let (word, bit) = position(sequence);
        self.seen[word] |= bit;
    }
}

fn position(sequence: u64) -> (usize, u64) {
    ((sequence / 64) as usize % WORDS, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// RFC 4303 §3.4.3 word for word: a set of all numbers and the highest of them.
    #[derive(Default)]
    struct Model {
        seen: BTreeSet<u32>,
    }

    impl Model {
        fn accept(&mut self, sequence: u32) -> bool {
            let highest = self.seen.last().copied().unwrap_or(0);
            let in_window = u64::from(sequence) + WINDOW > u64::from(highest);
            sequence != 0 && in_window && self.seen.insert(sequence)
        }
    }

    fn accept(window: &mut ReplayWindow, sequence: impl Into<u64>) -> bool {
        let sequence = sequence.into();
        let fresh = window.is_fresh(sequence);
        if fresh {
            window.mark(sequence);
        }
        fresh
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_with_a_highest_member(
            start in prop_oneof![Just(0u32), any::<u32>(), Just(u32::MAX - 3 * WINDOW as u32)],
            steps in prop::collection::vec((prop_oneof![
                4 => -(WINDOW as i64) - 80..100,
                4 => -70i64..70,
                1 => -3 * (WINDOW as i64)..3 * (WINDOW as i64),
            ], any::<bool>()), 1..400),
        ) {
            let (mut window, mut model) = (ReplayWindow::new(), Model::default());
            let mut position = i64::from(start);
            for (step, from_highest) in steps {
                let base = if from_highest { window.highest() as i64 } else { position };
                position = (base + step).clamp(0, i64::from(u32::MAX));
                let sequence = position as u32;
                prop_assert_eq!(accept(&mut window, sequence), model.accept(sequence), "sequence {}", sequence);
            }
        }
    }

    #[test]
    fn the_window_is_exactly_as_long_as_it_says() {
        let mut window = ReplayWindow::new();
        assert!(accept(&mut window, 50_000_u64));
        assert!(!accept(&mut window, 50_000_u64), "a replay");
        assert!(!accept(&mut window, 50_000 - WINDOW), "just outside");
        assert!(accept(&mut window, 50_001 - WINDOW), "the oldest inside");
        assert!(!accept(&mut window, 50_001 - WINDOW));
        assert!(accept(&mut window, u32::MAX));
        assert!(!accept(&mut window, 49_999_u64));
    }

    /// RFC 4303 appendix A2.1 in its own words: Tl and Th, Bl, Seql.
    #[test]
    fn the_upper_half_is_that_of_the_appendix() {
        let lowers =
            [0, 1, 2, 100, 8_190, 8_191, 8_192, 1 << 31, u32::MAX - 9_000, u32::MAX - 8_191, u32::MAX - 1, u32::MAX];
        for highest in [0, 1, 8_190, 8_191, 8_192, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, (7 << 32) + 9_000] {
            let window = ReplayWindow { highest, ..ReplayWindow::new() };
            let (th, tl) = ((highest >> 32) as i64, highest as u32);
            let bl = tl.wrapping_sub(WINDOW as u32 - 1);
            for seql in lowers {
                let seqh = if u64::from(tl) >= WINDOW - 1 {
                    if seql >= bl { th } else { th + 1 }
                } else if seql >= bl {
                    th - 1
                } else {
                    th
                };
                let expected = u64::try_from(seqh).ok().map(|upper| upper << 32 | u64::from(seql));
                assert_eq!(window.whole(seql), expected, "{highest} {seql}");
            }
        }
    }
}

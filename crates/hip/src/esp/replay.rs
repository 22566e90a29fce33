//! The anti-replay window (RFC 4303 §3.4.3): which sequence numbers have been seen.
//!
//! A ring of words as in RFC 6479, so that the window moves without shifting bits. One word more than the window has
//! bits for, because the newest word is being filled while the oldest still counts.

/// Sequence numbers that the window looks back on, the highest included. RFC 4303 asks for 32 at least and 64 by default. At
/// a million packets a second 8192 are 8 ms of reordering, for 1 KiB of memory; WireGuard has as many.
pub(super) const WINDOW: u32 = 8192;

const WORDS: usize = WINDOW as usize / 64 + 1;

#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    highest: u32,
    /// On the heap: SAs are moved.
    seen: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub(super) fn new() -> Self {
        Self { highest: 0, seen: Box::new([0; WORDS]) }
    }

    /// The highest number accepted so far; 0 before the first.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// True if a packet with this number may still be accepted: inside the window or ahead of it, and not seen yet.
    pub(super) fn is_fresh(&self, sequence: u32) -> bool {
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
    pub(super) fn mark(&mut self, sequence: u32) {
        if sequence > self.highest {
            let (old, new) = (self.highest / 64, sequence / 64);
            // Words that come into the window anew; all of them if it jumps further than its length.
            let steps = (new - old).min(WORDS as u32);
            for step in 0..steps {
                self.seen[(new - step) as usize % WORDS] = 0;
            }
            self.highest = sequence;
        }
        let (word, bit) = position(sequence);
        self.seen[word] |= bit;
    }
}

fn position(sequence: u32) -> (usize, u64) {
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
            let in_window = u64::from(sequence) + u64::from(WINDOW) > u64::from(highest);
            sequence != 0 && in_window && self.seen.insert(sequence)
        }
    }

    fn accept(window: &mut ReplayWindow, sequence: u32) -> bool {
        let fresh = window.is_fresh(sequence);
        if fresh {
            window.mark(sequence);
        }
        fresh
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_with_a_highest_member(
            start in prop_oneof![Just(0u32), any::<u32>(), Just(u32::MAX - 3 * WINDOW)],
            steps in prop::collection::vec((prop_oneof![
                4 => -i64::from(WINDOW) - 80..100,
                4 => -70i64..70,
                1 => -3 * i64::from(WINDOW)..3 * i64::from(WINDOW),
            ], any::<bool>()), 1..400),
        ) {
            let (mut window, mut model) = (ReplayWindow::new(), Model::default());
            let mut position = i64::from(start);
            for (step, from_highest) in steps {
                let base = if from_highest { i64::from(window.highest()) } else { position };
                position = (base + step).clamp(0, i64::from(u32::MAX));
                let sequence = position as u32;
                prop_assert_eq!(accept(&mut window, sequence), model.accept(sequence), "sequence {}", sequence);
            }
        }
    }

    #[test]
    fn the_window_is_exactly_as_long_as_it_says() {
        let mut window = ReplayWindow::new();
        assert!(accept(&mut window, 50_000));
        assert!(!accept(&mut window, 50_000), "a replay");
        assert!(!accept(&mut window, 50_000 - WINDOW), "just outside");
        assert!(accept(&mut window, 50_001 - WINDOW), "the oldest inside");
        assert!(!accept(&mut window, 50_001 - WINDOW));
        assert!(accept(&mut window, u32::MAX));
        assert!(!accept(&mut window, 49_999));
    }
}

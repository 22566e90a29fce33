//! Copies of a packet on several paths: the receiver takes the first that comes.

use crate::order::Number;
use recovery::BitRing;

/// The number that a packet has in common with its copies; it goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNumber(pub u32);

/// So many packets are looked back on. At 100,000 a second they are more than half a second, by which paths hardly differ.
const WINDOW: u64 = 1 << 16;
/// And so many of a flow whose packets have numbers of their own: they take half a kilobyte.
const WINDOW_OF_FLOW: u64 = (1 << 12) - 64;

/// Which packets have come, of those that have copies.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    came: Came<32, WINDOW>,
}

impl Copies {
    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        (self.came.seen.capacity() / 8) as usize
    }

    /// Whether the packet is the first of its number. One from before all that is looked back on is not: another was there
    /// long before.
    pub fn is_first(&mut self, CopyNumber(number): CopyNumber) -> bool {
        self.came.note(number) == Novelty::New
    }
}

/// Which packets of a flow have come, by the numbers that put them in order: what was lost may be sent again on two paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct CopiesOfFlow {
    came: Came<16, WINDOW_OF_FLOW>,
}

impl CopiesOfFlow {
    /// False where this very packet has come. Nothing is known of one from before all that is looked back on. Numbers that begin anew say
    /// so for the first packets: of those none is kept back, and what came before them is forgotten.
    pub(crate) fn is_first(&mut self, number: Number) -> bool {
        let novelty = self.came.note(number.value.into());
        if number.is_early && novelty != Novelty::New {
            self.came = Came::default();
            self.came.note(number.value.into());
            return true;
        }
        novelty != Novelty::Known
    }
}

/// What is known of a number that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Novelty {
    /// It has not come.
    New,
    /// It has come.
    Known,
    /// It is from before all that is looked back on.
    Old,
}

/// Which numbers of so many bits have come, of the last ones.
#[derive(Clone, Debug, Default)]
struct Came<const BITS: u32, const WINDOW: u64> {
    seen: BitRing,
    /// One more than the highest that has come, counted without going round; zero before the first.
    top: u64,
}

impl<const BITS: u32, const WINDOW: u64> Came<BITS, WINDOW> {
    fn note(&mut self, number: u32) -> Novelty {
        if self.top == 0 {
            // Room below, so that numbers before the first one stay positive.
            self.top = (1 << BITS) | u64::from(number);
            self.seen.reserve(0, WINDOW);
        }
        // The number nearest to `top` that has these lower bits.
        let ahead = (number.wrapping_sub(self.top as u32) << (32 - BITS)) as i32 >> (32 - BITS);
        let number = self.top.saturating_add_signed(i64::from(ahead));
        if number >= self.top {
            let (before, top) = (self.top, number + 1);
            self.seen.clear_range(before.saturating_sub(WINDOW), before.min(top.saturating_sub(WINDOW)));
            self.top = top;
        }
        if number + WINDOW < self.top {
            return Novelty::Old;
        }
        let is_known = self.seen.get(number);
        self.seen.set(number);
        if is_known { Novelty::Known } else { Novelty::New }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// How far each packet is from the one before, or from the highest.
    fn steps(window: i64) -> impl Strategy<Value = Vec<(i64, bool)>> {
        let step = prop_oneof![6 => -100i64..100, 2 => -window - 80..100, 1 => -3 * window..3 * window];
        prop::collection::vec((step, any::<bool>()), 1..300)
    }

    proptest! {
        /// A set of all numbers, and the highest of them.
        #[test]
        fn behaves_like_a_set_with_a_highest_member(
            start: u32,
            steps in steps(WINDOW as i64),
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

        /// A flow's numbers go round sooner, and one from long before passes.
        #[test]
        fn of_a_flow_what_has_come_lately_is_known(
            start in 256u16..,
            steps in steps(WINDOW_OF_FLOW as i64),
        ) {
            let (mut copies, mut seen) = (CopiesOfFlow::default(), BTreeSet::new());
            let origin = (1i64 << 40) + i64::from(start);
            let mut position = origin;
            for (step, from_highest) in steps {
                let highest = seen.last().copied().unwrap_or(origin);
                position = (if from_highest { highest } else { position } + step).max(highest - (1 << 14));
                let is_recent = seen.is_empty() || position + WINDOW_OF_FLOW as i64 > highest;
                let expected = !is_recent || seen.insert(position);
                let number = Number { value: position as u16, is_early: false };
                prop_assert_eq!(copies.is_first(number), expected, "{}", position);
            }
        }

        /// A sender that has forgotten a flow begins with 0 again, wherever it was: nothing of that is taken for a copy.
        #[test]
        fn numbers_that_begin_anew_are_no_copies(before in 1u32..200_000, lost in 0u32..255) {
            let mut copies = CopiesOfFlow::default();
            let number = |n: u32| Number { value: n as u16, is_early: n < 256 };
            prop_assert!((0..before).all(|n| copies.is_first(number(n))));
            prop_assert!((lost..70_000).all(|n| copies.is_first(number(n))));
            prop_assert!(!copies.is_first(number(69_990)));
        }
    }
}

//! How hard the puzzles are: harder the more I2s cost this host something and come to nothing (RFC 7401 §4.1.1).

use std::collections::BTreeMap;

use clock::{Duration, Instant};

/// An I2 that came to nothing is forgotten after that time; so many weigh as one a time.
const FORGET: Duration = Duration::from_millis(250);
/// The most that is remembered, in I2s.
const MOST: u64 = 256;
/// So many may fail at once before puzzles become harder; twice as many for each further bit.
const FREE: u64 = 4;
/// Puzzles become easier again by one bit in such a time.
const CALM: Duration = Duration::from_secs(10);
/// A solution of the puzzle that was set before is accepted for so long: the Initiator may be at work on it.
const GRACE: Duration = Duration::from_secs(10);

/// K of the puzzles that are set now, and of those that were set shortly before.
pub(crate) struct Difficulty {
    easiest: u8,
    hardest: u8,
    now: u8,
    /// When `now` was set.
    since: Instant,
    /// Easier puzzles that are still accepted, and until when.
    older: BTreeMap<u8, Instant>,
    /// What failed, as the time that it takes to be forgotten.
    strain: Duration,
    strained_at: Instant,
}

impl Difficulty {
    /// Never easier than `easiest`, nor harder than `hardest`, bits.
    pub(crate) fn new(easiest: u8, hardest: u8) -> Self {
        Self {
            easiest,
            hardest: hardest.max(easiest),
            now: easiest,
            since: Instant::ZERO,
            older: BTreeMap::new(),
            strain: Duration::ZERO,
            strained_at: Instant::ZERO,
        }
    }

    /// K of the puzzles to set, bits.
    pub(crate) fn bits(&self) -> u8 {
        self.now
    }

    /// An I2 has solved its puzzle, and came to nothing.
    pub(crate) fn strain(&mut self, now: Instant) {
        let strain = self.strain_at(now).as_nanos().saturating_add(FORGET.as_nanos());
        self.strain = Duration::from_nanos(strain.min(FORGET.as_nanos().saturating_mul(MOST)));
        self.strained_at = now;
    }

    /// Follows the load: up at once, down slowly.
    pub(crate) fn follow(&mut self, now: Instant) {
        let wanted = self.wanted(now);
        let calm = now.saturating_since(self.since) >= CALM;
        let next = match wanted.cmp(&self.now) {
            std::cmp::Ordering::Greater => wanted,
            std::cmp::Ordering::Less if calm => self.now.saturating_sub(1),
            _ => return,
        };
        self.older.insert(self.now, now + GRACE);
        (self.now, self.since) = (next, now);
    }

    /// Whether a solution of so many bits is worth looking at.
    pub(crate) fn accepts(&self, now: Instant, bits: u8) -> bool {
        (self.now..=self.hardest).contains(&bits) || self.older.get(&bits).is_some_and(|until| now < *until)
    }

    fn strain_at(&self, now: Instant) -> Duration {
        self.strain.saturating_sub(now.saturating_since(self.strained_at))
    }

    fn wanted(&self, now: Instant) -> u8 {
        let failed = self.strain_at(now).as_nanos() / FORGET.as_nanos();
        // 4 failures: one bit; 8: two; 128: six.
        let more = (failed / FREE).checked_ilog2().map_or(0, |log| log + 1);
        let more = u8::try_from(more).unwrap_or(u8::MAX);
        self.easiest.saturating_add(more).min(self.hardest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn k_grows_with_failures_and_shrinks_with_time() {
        let mut difficulty = Difficulty::new(10, 16);
        (0..3).for_each(|_| difficulty.strain(at(1)));
        difficulty.follow(at(1));
        assert_eq!(difficulty.bits(), 10, "a few may fail");
        let mut last = 10;
        for _ in 0..1_000 {
            difficulty.strain(at(1));
            difficulty.follow(at(1));
            assert!(difficulty.bits() >= last);
            last = difficulty.bits();
        }
        assert_eq!(last, 16);
        // Who has a puzzle from before may still solve it, for a while and no longer.
        assert!(difficulty.accepts(at(10), 10) && !difficulty.accepts(at(11), 10));
        assert!(difficulty.accepts(at(11), 16) && !difficulty.accepts(at(11), 17));
        // Everything is forgotten after 64 s, and then it takes 10 s for each bit.
        for second in 65..200 {
            difficulty.follow(at(second));
        }
        assert_eq!(difficulty.bits(), 10);
    }

    #[test]
    fn a_configured_difficulty_above_the_hardest_stays() {
        let mut difficulty = Difficulty::new(20, 16);
        (0..1_000).for_each(|_| difficulty.strain(at(1)));
        difficulty.follow(at(1));
        assert_eq!(difficulty.bits(), 20);
    }
}

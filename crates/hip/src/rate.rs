//! How often something may happen: a burst at once, and from then on at a rate.

use clock::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;

/// What a token bucket gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per second in the long run. 0: none ever.
    pub per_second: u32,
    /// Tokens at once after a silence.
    pub burst: u32,
}

impl Rate {
    /// So many a second, and so many at once.
    pub const fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second, burst }
    }
}

/// A token bucket. It keeps what it lacks, as the time it takes to earn that; so a new one is full at every rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    debt: Duration,
    /// When the last token was taken.
    pub(crate) since: Instant,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { debt: Duration::ZERO, since: Instant::ZERO }
    }
}

impl Bucket {
    /// Whether there is a token.
    pub(crate) fn has(&self, now: Instant, rate: Rate) -> bool {
        let Some(each) = SECOND.checked_div(u64::from(rate.per_second)) else { return false };
        let most = each.saturating_mul(u64::from(rate.burst));
        self.debt(now).as_nanos().saturating_add(each) <= most
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        if !self.has(now, rate) {
            return false;
        }
        let each = SECOND.checked_div(u64::from(rate.per_second)).unwrap_or(SECOND);
        self.debt = Duration::from_nanos(self.debt(now).as_nanos().saturating_add(each));
        // A clock that goes back earns nothing.
        self.since = self.since.max(now);
        true
    }

    /// Takes so many tokens, if there are as many.
    pub(crate) fn take_many(&mut self, now: Instant, rate: Rate, count: usize) -> bool {
        let Some(each) = SECOND.checked_div(u64::from(rate.per_second)) else { return false };
        let most = each.saturating_mul(u64::from(rate.burst));
        let debt = each.saturating_mul(count as u64).saturating_add(self.debt(now).as_nanos());
        if debt > most {
            return false;
        }
        (self.debt, self.since) = (Duration::from_nanos(debt), self.since.max(now));
        true
    }

    /// Whether nothing is missing.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.debt(now) == Duration::ZERO
    }

    fn debt(&self, now: Instant) -> Duration {
        self.debt.saturating_sub(now.saturating_since(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let (mut bucket, rate) = (Bucket::default(), Rate::new(10, 3));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!((0..1_000).filter(|millis| bucket.take(at(*millis), rate)).count(), 3 + 9);
        // A long silence gives no more than a burst, and a clock that goes back nothing.
        assert_eq!((0..50).filter(|_| bucket.take(at(100_000), rate)).count(), 3);
        assert!(!bucket.take(at(0), rate));
        assert!((0..1_000).all(|millis| !bucket.take(at(millis), Rate::new(0, 3))), "none ever");
    }
}

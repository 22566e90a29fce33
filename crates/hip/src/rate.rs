//! How often something may happen: at once, and from then on.

use clock::{Duration, Instant};

/// A bucket of tokens: `burst` at once, and one more after each `interval`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    burst: u32,
    interval: Duration,
    left: u32,
    /// When it was the last time that tokens were added.
    since: Instant,
}

impl Rate {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval, left: burst, since: Instant::ZERO }
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let earned = now.saturating_since(self.since).as_nanos() / self.interval.as_nanos().max(1);
        if earned > 0 {
            self.left = self.left.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(self.burst);
            self.since = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_each_interval() {
        let mut rate = Rate::new(3, Duration::from_millis(100));
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!((0..1_000).filter(|millis| rate.take(at(*millis))).count(), 3 + 9);
        // A long silence gives no more than a burst, and a clock that goes back nothing.
        assert_eq!((0..50).filter(|_| rate.take(at(100_000))).count(), 3);
        assert!(!rate.take(at(0)));
    }
}

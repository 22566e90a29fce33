//! Virtual time, as a loop over events goes through it.

use crate::Instant;
use std::fmt;

/// Events at one instant before time stands still. What is delivered may be answered at once, and that again.
const MOST_AT_ONCE: u32 = 20_000;

/// The time of a world in which nothing happens between its events.
///
/// ```
/// use clock::{Duration, Instant, VirtualTime};
///
/// let (tick, end) = (Duration::from_millis(3), Instant::ZERO + Duration::from_millis(10));
/// let (mut time, mut next, mut ticks) = (VirtualTime::default(), Instant::ZERO + tick, 0);
/// while time.advance(Some(next), end)? {
///     (next, ticks) = (next + tick, ticks + 1);
/// }
/// assert_eq!((time.now(), ticks), (end, 3));
/// # Ok::<(), clock::StandsStill>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualTime {
    now: Instant,
    still: u32,
}

impl VirtualTime {
    /// The time of a world in which it is `now`.
    pub fn new(now: Instant) -> Self {
        Self { now, still: 0 }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// To the next event, where one is due by `end`: whether there is one. Where there is none, to `end`.
    ///
    /// # Errors
    /// Where something remains due however often it is served.
    pub fn advance(&mut self, next: Option<Instant>, end: Instant) -> Result<bool, StandsStill> {
        let Some(next) = next.filter(|next| *next <= end) else {
            (self.now, self.still) = (end.max(self.now), 0);
            return Ok(false);
        };
        self.still = if next > self.now { 0 } else { self.still + 1 };
        if self.still >= MOST_AT_ONCE {
            return Err(StandsStill { now: self.now, due: next });
        }
        self.now = next.max(self.now);
        Ok(true)
    }
}

/// Something remains due however often it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandsStill {
    /// Where time stands.
    pub now: Instant,
    /// Since when it is due.
    pub due: Instant,
}

impl fmt::Display for StandsStill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time stands still at {}: what is due at {} stays due, {MOST_AT_ONCE} times", self.now, self.due)
    }
}

impl std::error::Error for StandsStill {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;

    #[test]
    fn what_stays_due_is_an_error_and_what_ends_is_not() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut time = VirtualTime::new(at(0));
        let stands = (0..MOST_AT_ONCE + 1).find_map(|_| time.advance(Some(at(0)), at(10)).err());
        assert_eq!(stands, Some(StandsStill { now: at(0), due: at(0) }));
        let mut time = VirtualTime::default();
        // Late is at once, and time does not go back.
        assert_eq!(time.advance(Some(at(3)), at(10)), Ok(true));
        assert_eq!((time.advance(Some(at(1)), at(10)), time.now()), (Ok(true), at(3)));
        assert_eq!((time.advance(Some(at(11)), at(10)), time.now()), (Ok(false), at(10)));
        assert_eq!((time.advance(None, at(2)), time.now()), (Ok(false), at(10)));
    }
}

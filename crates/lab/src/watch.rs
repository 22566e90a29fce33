//! Downloads, watched: how much arrived when.

use std::time::{Duration, Instant};

/// What arrived of one download.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    bytes: u64,
    last: Duration,
    longest: Duration,
}

impl Watch {
    /// Nothing has arrived; what counts begins at `now`.
    pub(crate) fn new(now: Duration, bytes: u64) -> Self {
        Self { bytes, last: now, longest: Duration::ZERO }
    }

    /// By now so many bytes have arrived.
    pub(crate) fn see(&mut self, now: Duration, bytes: u64) {
        if bytes != self.bytes {
            // What comes before the first byte is a connection that opens, not one that stands still.
            if self.bytes > 0 {
                self.longest = self.longest.max(now.saturating_sub(self.last));
            }
            self.last = now;
            self.bytes = bytes;
        }
    }

    /// The longest time in which nothing arrived, if now is the end.
    pub(crate) fn stall(&self, end: Duration) -> Duration {
        self.longest.max(end.saturating_sub(self.last))
    }
}

/// Time since its making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "a laboratory happens in real time")]
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

//! A link that sends when a trace says so, in the form of Mahimahi (R. Netravali et al., USENIX ATC 2015): each entry is an
//! opportunity to send 1500 bytes, and the trace begins anew where it ends.

use std::sync::Arc;

use clock::{Duration, Instant};

/// What an opportunity carries, in bytes: parts of packets too, and several, but what is not used at once is lost.
const OPPORTUNITY: u32 = 1500;
const MILLISECOND: u64 = 1_000_000;

/// When a link can send 1500 bytes each, from its start on. It is as long as its last opportunity is late, then it begins anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Nanoseconds.
    times: Arc<[u64]>,
    period: u64,
}

/// Why times are no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// There is no opportunity.
    Empty,
    /// The opportunity at this place is earlier than the one before.
    NotAscending(usize),
    /// All opportunities are at once: the trace would begin anew without end.
    NoTime,
}

impl Trace {
    /// A trace with opportunities at these times in milliseconds, in ascending order.
    ///
    /// # Errors
    /// What of them is no trace.
    pub fn new(milliseconds: &[u32]) -> Result<Self, TraceError> {
        let last = *milliseconds.last().ok_or(TraceError::Empty)?;
        if let Some(before) = milliseconds.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::NotAscending(before + 1));
        }
        if last == 0 {
            return Err(TraceError::NoTime);
        }
        let times = milliseconds.iter().map(|at| u64::from(*at) * MILLISECOND).collect();
        Ok(Self { times, period: u64::from(last) * MILLISECOND })
    }

    /// How long it is.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// What it carries on average, in bit/s, at least 1.
    pub fn mean_rate(&self) -> u64 {
        let bits = self.times.len() as f64 * f64::from(OPPORTUNITY) * 8.0;
        ((bits / self.period().as_secs_f64()) as u64).max(1)
    }

    /// The longest time without an opportunity, and the place of the one that ends it; 0 is where the trace begins anew.
    pub fn longest_hole(&self) -> (Duration, usize) {
        let first = self.times.first().map_or(0, |first| *first);
        let holes = self.times.windows(2).zip(1..).map(|(pair, place)| (pair[1] - pair[0], place));
        let (hole, place) = holes.fold((first, 0), |most, hole| if hole.0 > most.0 { hole } else { most });
        (Duration::from_nanos(hole), place)
    }
}

/// A trace and how far it has been used.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Trace,
    /// When the trace began for the last time, and its next opportunity.
    begin: u64,
    next: usize,
    /// What is left of the opportunity at this instant.
    left: u32,
    at: u64,
}

impl Opportunities {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, begin: 0, next: 0, left: 0, at: 0 }
    }

    /// When a packet has been sent that is the next from `start` on.
    pub(crate) fn send(&mut self, start: Instant, bytes: u32) -> Instant {
        let start = start.as_nanos();
        if self.at != start {
            self.left = 0;
        }
        let mut rest = bytes;
        while rest > self.left {
            rest -= self.left;
            self.at = self.take(start);
            self.left = OPPORTUNITY;
        }
        self.left -= rest;
        Instant::from_nanos(self.at.max(start))
    }

    /// The time of the next opportunity that is not before `start`.
    fn take(&mut self, start: u64) -> u64 {
        let Trace { times, period } = &self.trace;
        if let Some(whole) = start.checked_sub(self.begin + period).map(|late| late / period).filter(|whole| *whole > 0)
        {
            self.begin += whole * period;
            self.next = 0;
        }
        loop {
            let begin = self.begin;
            let rest = times.get(self.next..).unwrap_or_default();
            self.next += rest.partition_point(|time| begin + time < start);
            if let Some(time) = times.get(self.next) {
                self.next += 1;
                return begin.saturating_add(*time);
            }
            self.begin = begin.saturating_add(*period);
            self.next = 0;
        }
    }
}

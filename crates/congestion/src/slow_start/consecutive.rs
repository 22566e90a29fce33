//! Samples in a row that tell of a queue.

use super::{SAMPLES, threshold};
use crate::delays::{COARSE, Scatter};
use clock::{Duration, Instant};

/// Where delays differ from packet to packet, what is longer by less than so many such differences met no queue: of two independent
/// directions that draw from a range, one of five is.
const SCATTERED: u64 = 3;

/// The samples of one path.
#[derive(Clone, Debug)]
pub(crate) struct Consecutive {
    spanning: bool,
    /// How many samples in a row met a queue, and since when.
    late: Option<(u32, Instant)>,
    scatter: Scatter,
}

impl Consecutive {
    pub(super) fn new(spanning: bool) -> Self {
        Self { spanning, late: None, scatter: Scatter::default() }
    }

    pub(super) fn finds_queue(&mut self, packets: f64, base: Duration, rtt: Duration, now: Instant) -> bool {
        self.scatter.on_rtt(rtt);
        let scatter = self.scatter.mean();
        // The queue itself differs by a packet from one sample to the next.
        let is_jitter = scatter.as_secs_f64() * packets > COARSE * rtt.as_secs_f64();
        let scatter = if is_jitter { scatter * SCATTERED } else { Duration::ZERO };
        let is_late = rtt.saturating_sub(base) >= threshold(base).max(scatter);
        self.late = is_late.then(|| self.late.map_or((1, now), |(samples, since)| (samples + 1, since)));
        self.late.is_some_and(|(samples, since)| samples >= SAMPLES && (!self.spanning || now - since >= rtt))
    }

    pub(super) fn interrupt(&mut self) {
        self.late = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(80);

    /// At which of these round-trip times, one each `step` milliseconds, slow start ends.
    fn ends_at(spanning: bool, step: u64, rtts: &[u64]) -> Option<usize> {
        let mut samples = Consecutive::new(spanning);
        let mut now = Instant::ZERO;
        rtts.iter().position(|ms| {
            now += Duration::from_millis(step);
            samples.finds_queue(10.0, BASE, Duration::from_millis(*ms), now)
        })
    }

    /// RFC 9406 §4.3: an eighth of 80 ms is 10 ms, and eight samples make a verdict.
    #[test]
    fn eight_late_samples_in_a_row_end_slow_start() {
        assert_eq!(ends_at(false, 1, &[90; 20]), Some(7));
        assert_eq!(ends_at(false, 1, &[89; 20]), None);
        let mut interrupted = [90; 20];
        interrupted[5] = 89;
        assert_eq!(ends_at(false, 1, &interrupted), Some(13));
    }

    /// Delays differ by 8 ms from packet to packet, where forty leave in a round trip; a queue adds 30 ms to all of them.
    #[test]
    fn delays_that_differ_are_no_queue_and_one_below_them_is() {
        let (mut samples, mut now) = (Consecutive::new(false), Instant::ZERO);
        let mut ends = |delays: [u64; 4]| {
            delays.into_iter().cycle().take(80).any(|ms| {
                now += Duration::from_millis(2);
                samples.finds_queue(40.0, BASE, BASE + Duration::from_millis(ms), now)
            })
        };
        assert!(!ends([2, 11, 3, 12]) && !ends([11, 20, 12, 19]));
        assert!(ends([41, 50, 42, 49]));
    }

    /// One of them early within a round trip, and the rest may have waited for other paths.
    #[test]
    fn samples_that_may_have_waited_for_others_span_a_round_trip() {
        assert_eq!(ends_at(true, 10, &[90; 20]), Some(9), "the first is 90 ms old at the tenth");
        assert_eq!(ends_at(true, 20, &[90; 20]), Some(7), "eight are needed still");
    }
}

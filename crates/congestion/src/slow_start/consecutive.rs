//! Samples in a row that tell of a queue.

use super::{RoundTrip, SAMPLES, threshold};
use crate::delays::{COARSE, Scatter};
use clock::{Duration, Instant};

/// Where delays differ from packet to packet, what is longer by less than so many such differences met no queue: of two independent
/// directions that draw from a range, one of five is.
const SCATTERED: u64 = 3;

/// CSS_ROUNDS of RFC 9406 §4.3: for so many rounds what was found is in doubt.
const DOUBTED: u32 = 5;

/// The samples of one path.
#[derive(Clone, Debug)]
pub(crate) struct Consecutive {
    spanning: bool,
    late: Option<Late>,
    scatter: Scatter,
    /// The least round trip that counts: a longer one than the path's, where what was found was none.
    base: Duration,
    found: Option<Found>,
}

/// Samples in a row that met a queue.
#[derive(Clone, Copy, Debug)]
struct Late {
    samples: u32,
    since: Instant,
    least: Duration,
}

/// A queue that was found, and that is in doubt.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The least round trip that told of it.
    least: Duration,
    /// At how many bytes slow start would have ended otherwise.
    ssthresh: f64,
    /// Rounds since, the present one included; none while what is reported left before.
    rounds: u32,
    /// The present round ends when this is acknowledged.
    round_end: u64,
    samples: u32,
    lowest: Duration,
    /// The window was full in it.
    is_full: bool,
}

impl Found {
    fn new(least: Duration, ssthresh: f64, round_end: u64) -> Self {
        Self { least, ssthresh, rounds: 0, round_end, samples: 0, lowest: Duration::MAX, is_full: false }
    }

    /// Whether the round that has ended met no queue although the window was full.
    fn is_none(&self) -> bool {
        self.rounds > 0 && self.is_full && self.samples >= SAMPLES && self.lowest < self.least
    }
}

impl Consecutive {
    pub(super) fn new(spanning: bool) -> Self {
        Self { spanning, late: None, scatter: Scatter::default(), base: Duration::ZERO, found: None }
    }

    pub(super) fn finds_queue(&mut self, packets: f64, base: Duration, rtt: Duration, now: Instant) -> bool {
        self.scatter.on_rtt(rtt);
        let (scatter, base) = (self.scatter.mean(), base.max(self.base));
        // The queue itself differs by a packet from one sample to the next.
        let is_jitter = scatter.as_secs_f64() * packets > COARSE * rtt.as_secs_f64();
        let scatter = if is_jitter { scatter * SCATTERED } else { Duration::ZERO };
        let is_late = rtt.saturating_sub(base) >= threshold(base).max(scatter);
        let Late { samples, since, least } = self.late.unwrap_or(Late { samples: 0, since: now, least: rtt });
        self.late = is_late.then_some(Late { samples: samples + 1, since, least: least.min(rtt) });
        is_late && samples + 1 >= SAMPLES && (!self.spanning || now - since >= rtt)
    }

    /// Slow start ends at this sample. Otherwise it would at so many bytes.
    pub(super) fn ended(&mut self, sample: &RoundTrip, ssthresh: f64) {
        let least = self.late.take().map_or(sample.rtt, |late| late.least);
        self.found = Some(Found::new(least, ssthresh, sample.next));
    }

    /// The path is not in slow start at this sample. Where it is to go on with that, because what ended it was no queue: at how many bytes it
    /// ends then. A queue stays while the window is as large (RFC 9406 §4.2). Where a link delays packets as it likes but lets none overtake
    /// another, those of a large window are late all alike, for a while.
    pub(super) fn resumes(&mut self, sample: &RoundTrip, is_full: bool) -> Option<f64> {
        self.late = None;
        let found = self.found.as_mut()?;
        if sample.upto > found.round_end {
            let Found { least, ssthresh, rounds, lowest, .. } = *found;
            if found.is_none() {
                (self.base, self.found) = (lowest, None);
                return Some(ssthresh);
            }
            if rounds == DOUBTED {
                self.found = None;
                return None;
            }
            *found = Found { rounds: rounds + 1, ..Found::new(least, ssthresh, sample.next) };
        }
        (found.samples, found.lowest) = (found.samples + 1, found.lowest.min(sample.rtt));
        found.is_full |= is_full;
        None
    }

    /// What was found is beyond doubt.
    pub(super) fn settle(&mut self) {
        (self.late, self.found) = (None, None);
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

    /// Slow start has ended by eight samples of 90 ms at a base of 80. Rounds of ten packets follow, of these lowest round trips and windows
    /// that are full or not: in which of them it goes on, counted from 1.
    fn goes_on_in(rounds: &[(u64, bool)]) -> Option<u64> {
        let (mut samples, mut upto) = (Consecutive::new(false), 0);
        let ms = Duration::from_millis;
        let mut sample = |rtt| {
            upto += 1;
            RoundTrip { upto, next: upto + 10, rtt: ms(rtt) }
        };
        let late = (0..8).filter(|at| samples.finds_queue(10.0, BASE, ms(90), Instant::ZERO + ms(*at))).count();
        assert_eq!(late, 1);
        samples.ended(&sample(90), 1e9);
        // What left before says nothing.
        assert!((0..10).all(|_| samples.resumes(&sample(70), true).is_none()));
        (1..).zip(rounds).find_map(|(round, (lowest, is_full))| {
            let went_on =
                (0..10).any(|at| samples.resumes(&sample(if at == 5 { *lowest } else { 95 }), *is_full).is_some());
            // A round is judged when the next one begins.
            went_on.then_some(round - 1)
        })
    }

    #[test]
    fn a_queue_that_is_gone_while_the_window_is_full_was_none() {
        assert_eq!(goes_on_in(&[(89, true), (95, true)]), Some(1));
        assert_eq!(goes_on_in(&[(95, true), (95, true), (89, true), (95, true)]), Some(3));
        assert_eq!(goes_on_in(&[(90, true); 9]), None, "as long as what was found");
        assert_eq!(goes_on_in(&[(80, false); 9]), None, "less is in flight");
        let mut after_five = [(90, true); 9];
        after_five[5] = (80, true);
        assert_eq!(goes_on_in(&after_five), None, "RFC 9406 §4.3: five rounds");
    }

    /// What turned out to be no queue does not end slow start again, and what is longer than that by an eighth does.
    #[test]
    fn after_a_mistake_round_trips_are_compared_with_those_that_were_none() {
        let mut samples = Consecutive::new(false);
        let ms = Duration::from_millis;
        samples.ended(&RoundTrip { upto: 1, next: 1, rtt: ms(95) }, 1e9);
        let resumed = (2..)
            .map(|upto| samples.resumes(&RoundTrip { upto, next: upto + 10, rtt: ms(88) }, true))
            .take(30)
            .flatten()
            .next();
        assert_eq!(resumed, Some(1e9));
        let mut ends = |rtt| (0..20).any(|at| samples.finds_queue(10.0, BASE, ms(rtt), Instant::ZERO + ms(at)));
        assert!(!ends(98) && ends(99));
    }

    /// After a loss there is no doubt.
    #[test]
    fn a_loss_settles_it() {
        let mut samples = Consecutive::new(false);
        samples.ended(&RoundTrip { upto: 1, next: 1, rtt: Duration::from_millis(95) }, 1e9);
        samples.settle();
        let low = |upto| RoundTrip { upto, next: upto + 10, rtt: BASE };
        assert!((2..60).all(|upto| samples.resumes(&low(upto), true).is_none()));
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

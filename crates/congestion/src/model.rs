//! What rules share that model the path: the highest rate of the last rounds, rounds themselves, and how many packets come at once.

use clock::Instant;

use crate::delivery::RateSample;

/// How many rounds the highest rate is remembered (`BtlBwFilterLen` of draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1.2).
const ROUNDS: usize = 10;

/// The highest value of the last ten rounds. Nothing is forgotten while nothing new is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    /// Round and highest value of it.
    highest: [(u64, f64); ROUNDS],
    value: f64,
}

impl WindowedMax {
    pub(crate) fn update(&mut self, round: u64, value: f64) {
        let place = &mut self.highest[(round % ROUNDS as u64) as usize];
        *place = if place.0 == round { (round, place.1.max(value)) } else { (round, value) };
        let fresh = self.highest.iter().filter(|(of, _)| of + ROUNDS as u64 > round);
        self.value = fresh.map(|(_, value)| *value).fold(0.0, f64::max);
    }

    pub(crate) fn get(&self) -> f64 {
        self.value
    }
}

/// Round trips, counted in packets: one is over when something is acknowledged that was sent after it began (draft-ietf-ccwg-bbr
/// §5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// What had been delivered when it began.
    from: u64,
    pub(crate) count: u64,
    /// The sample at hand is the first of one.
    pub(crate) is_start: bool,
}

impl Rounds {
    pub(crate) fn update(&mut self, sample: &RateSample) {
        self.is_start = !sample.interval.is_zero() && sample.prior_delivered >= self.from;
        if self.is_start {
            self.restart(sample.total);
            self.count += 1;
        }
    }

    /// A round begins now, when so much is delivered.
    pub(crate) fn restart(&mut self, total: u64) {
        self.from = total;
    }
}

/// How much more is acknowledged at once than the rate explains (§5.5.9 of the draft): receivers, and links that collect frames, are
/// silent for a while, and a window without room for that would be silent, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aggregation {
    since: Option<Instant>,
    /// Acknowledged since then, in bytes.
    acked: f64,
    /// The highest excess of the present and of the previous window of rounds.
    excess: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// The longest silence that the window has room for, in seconds.
    const LONGEST: f64 = 0.1;

    /// A window of rounds has `length` of them.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        sample: &RateSample,
        is_round: bool,
        length: u32,
        rate: f64,
        cwnd: f64,
    ) {
        if sample.acked == 0 || sample.interval.is_zero() {
            return;
        }
        if is_round {
            self.rounds += 1;
            if self.rounds >= length {
                self.rounds = 0;
                self.excess = [0.0, self.excess[0]];
            }
        }
        let since = *self.since.get_or_insert(now);
        let mut expected = rate * now.saturating_since(since).as_secs_f64();
        if self.acked <= expected {
            (self.since, self.acked, expected) = (Some(now), 0.0, 0.0);
        }
        self.acked += sample.acked as f64;
        self.excess[0] = self.excess[0].max((self.acked - expected).min(cwnd));
    }

    /// Idle time explains nothing.
    pub(crate) fn restart(&mut self, at: Instant) {
        (self.since, self.acked) = (Some(at), 0.0);
    }

    /// What the window needs besides, in bytes.
    pub(crate) fn excess(&self, rate: f64) -> f64 {
        self.excess[0].max(self.excess[1]).min(rate * Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use clock::Duration;

    use super::*;

    #[test]
    fn the_highest_of_ten_rounds_is_known() {
        let mut max = WindowedMax::default();
        for (round, value, highest) in [
            (1, 50.0, 50.0),
            (1, 40.0, 50.0),
            (2, 45.0, 50.0),
            (9, 30.0, 50.0),
            (10, 20.0, 50.0), // The tenth round still knows the first.
            (11, 20.0, 45.0),
            (12, 20.0, 30.0),
            (12, 60.0, 60.0),
            (21, 10.0, 60.0),
        ] {
            max.update(round, value);
            assert_eq!(max.get(), highest, "{round}");
        }
        // However long nothing is heard, the last is known; then the new is all there is.
        max.update(1_000, 5.0);
        assert_eq!(max.get(), 5.0);
    }

    fn sample(prior_delivered: u64, total: u64) -> RateSample {
        RateSample {
            interval: Duration::from_millis(100),
            prior_delivered,
            total,
            acked: 1_000,
            ..RateSample::default()
        }
    }

    #[test]
    fn a_round_ends_with_a_packet_that_was_sent_in_it() {
        let mut rounds = Rounds::default();
        let told = [(0, 1_000), (0, 2_000), (0, 3_000), (1_000, 4_000), (3_000, 5_000), (4_000, 6_000)];
        let starts = told.map(|(prior, total)| {
            rounds.update(&sample(prior, total));
            rounds.is_start
        });
        assert_eq!(starts, [true, false, false, true, false, true]);
        assert_eq!(rounds.count, 3);
    }

    /// A link of 1,000 bytes in 10 ms that delivers ten packets at once each 100 ms: nine more than expected.
    #[test]
    fn what_comes_at_once_is_known() {
        let mut aggregation = Aggregation::default();
        let mut now = Instant::ZERO;
        for index in 0..40 {
            if index % 10 == 0 {
                now += Duration::from_millis(100);
            }
            aggregation.update(now, &sample(0, 0), false, 5, 100_000.0, 50_000.0);
        }
        assert_eq!(aggregation.excess(100_000.0), 10_000.0);
        assert_eq!(aggregation.excess(50_000.0), 5_000.0, "a tenth of a second at most");
    }
}

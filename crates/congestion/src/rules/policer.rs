//! How BBR finds a token bucket on its way (T. Flach and others, *An Internet-wide analysis of traffic policing*, SIGCOMM 2016): two
//! stretches between losses in which a fifth of the packets and more was lost, at the same rate. That rate is kept for 48 rounds, and
//! nothing is probed. Linux's version 1 has it (`bbr_lt_bw_sampling`), the drafts do not.

use clock::Instant;

use crate::delivery::RateSample;
use crate::model::Rounds;

/// The least and the greatest length of a stretch in rounds.
const LENGTH: std::ops::RangeInclusive<u64> = 4..=16;
/// Lost for each packet delivered.
const LOSSY: f64 = 50.0 / 256.0;
/// Rates are the same within an eighth, or within 4 kbit/s.
const SAME: (f64, f64) = (1.0 / 8.0, 500.0);
/// Rounds for which the rate is kept.
const KEPT: u64 = 48;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    stretch: Option<Stretch>,
    lost: u64,
    /// The rate of the last stretch, in bytes per second.
    last: Option<f64>,
    /// The rate that is kept, and the round until which it is.
    kept: Option<(f64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Instant,
    delivered: u64,
    lost: u64,
    round: u64,
}

impl Policer {
    /// The rate to keep to, in bytes per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.kept.map(|(rate, _)| rate)
    }

    pub(super) fn reset(&mut self) {
        *self = Self { lost: self.lost, ..Self::default() };
    }

    /// Returns whether the rate is kept no longer, so that probing begins anew.
    pub(super) fn update(&mut self, now: Instant, sample: &RateSample, rounds: &Rounds, probes: bool) -> bool {
        self.lost += sample.newly_lost;
        if let Some((_, until)) = self.kept {
            let is_over = probes && rounds.count >= until;
            if is_over {
                self.reset();
            }
            return is_over;
        }
        let here = Stretch { since: now, delivered: sample.total, lost: self.lost, round: rounds.count };
        let Some(stretch) = self.stretch else {
            // From the first loss on: before it the bucket had tokens.
            self.stretch = (sample.newly_lost > 0).then_some(here);
            return false;
        };
        let length = rounds.count - stretch.round;
        if sample.is_app_limited || length > *LENGTH.end() {
            self.reset();
            return false;
        }
        let (lost, delivered) = ((self.lost - stretch.lost) as f64, (sample.total - stretch.delivered) as f64);
        let time = now.saturating_since(stretch.since).as_secs_f64();
        if length < *LENGTH.start() || sample.newly_lost == 0 || lost < LOSSY * delivered || time < 1e-3 {
            return false;
        }
        let rate = delivered / time;
        match self.last {
            Some(last) if (rate - last).abs() <= (SAME.0 * last).max(SAME.1) => {
                self.kept = Some(((rate + last) / 2.0, rounds.count + KEPT));
            }
            _ => (self.last, self.stretch) = (Some(rate), Some(here)),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use clock::Duration;

    use super::*;

    /// Ten packets a round of 100 ms, `lost` more of which are lost at its end.
    fn rounds(policer: &mut Policer, from: u64, to: u64, lost: u64) {
        for round in from..to {
            let mut rounds = Rounds::default();
            rounds.count = round;
            let now = Instant::ZERO + Duration::from_millis(100 * round);
            let sample = RateSample { total: 10_000 * round, newly_lost: 1_000 * lost, ..RateSample::default() };
            policer.update(now, &sample, &rounds, true);
        }
    }

    #[test]
    fn two_stretches_at_one_rate_tell_of_a_policer() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 9, 2);
        assert_eq!(policer.rate(), None, "one stretch of four rounds from the first loss on, and half of another");
        rounds(&mut policer, 9, 10, 2);
        assert_eq!(policer.rate(), Some(100_000.0));
        rounds(&mut policer, 10, 57, 0);
        assert!(policer.rate().is_some());
        rounds(&mut policer, 57, 58, 0);
        assert_eq!(policer.rate(), None, "after 48 rounds");
    }

    #[test]
    fn few_losses_do_not() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 100, 1);
        assert_eq!(policer.rate(), None);
    }
}

//! Which paths share a bottleneck: those whose queueing delays rise and fall together (in the spirit of RFC 8382, with
//! the round-trip times that reports give).
//!
//! Of two paths, with queueing delays `q` and `r` in bins of a twentieth of a second over the last seconds,
//!
//! `d = var(q - r) / (var q + var r)`
//!
//! is zero where both see one queue and one where they see two that have nothing to do with each other.

use clock::{Duration, Instant};
use std::collections::VecDeque;

/// The length of a bin.
const BIN: Duration = Duration::from_millis(50);
/// Bins remembered, and how many a verdict takes.
const BINS: (usize, usize) = (120, 40);
/// Between verdicts.
const VERDICT: u32 = 10;
/// Paths share a bottleneck when `d` falls below the first, and no more when it rises above the second.
const SHARED: (f64, f64) = (0.15, 0.5);
/// Queues that vary by less than this tell nothing; in square seconds.
const LEAST_VARIANCE: f64 = 1e-6;

/// The delays of one path.
#[derive(Clone, Debug, Default)]
struct Delays {
    /// Sum and number of the samples of this bin, in seconds.
    sum: f64,
    samples: u32,
    /// The mean of each bin; of one without samples that of the bin before.
    bins: VecDeque<f64>,
}

/// What is known of the bottlenecks of an association's paths, by their slots.
#[derive(Clone, Debug, Default)]
pub struct Bottlenecks {
    paths: Vec<Delays>,
    /// Pairs that share one, the lower slot first.
    shared: Vec<(usize, usize)>,
    bin_end: Instant,
    until_verdict: u32,
}

impl Bottlenecks {
    /// A round trip on a path had waited so long in queues. True if it is time to look at [`Bottlenecks::sharers`] anew.
    pub fn sample(&mut self, now: Instant, slot: usize, queueing: Duration) -> bool {
        if self.paths.len() <= slot {
            self.paths.resize_with(slot + 1, Delays::default);
        }
        if let Some(path) = self.paths.get_mut(slot) {
            path.sum += queueing.as_secs_f64();
            path.samples += 1;
        }
        if now < self.bin_end {
            return false;
        }
        self.bin_end = now + BIN;
        for path in &mut self.paths {
            let mean = match path.samples {
                0 => path.bins.back().copied().unwrap_or_default(),
                samples => path.sum / f64::from(samples),
            };
            (path.sum, path.samples) = (0.0, 0);
            path.bins.push_back(mean);
            if path.bins.len() > BINS.0 {
                path.bins.pop_front();
            }
        }
        self.until_verdict = self.until_verdict.saturating_sub(1);
        if self.until_verdict > 0 {
            return false;
        }
        self.until_verdict = VERDICT;
        self.judge();
        true
    }

    /// The path is another now.
    pub fn forget(&mut self, slot: usize) {
        self.shared.retain(|(a, b)| *a != slot && *b != slot);
        if let Some(path) = self.paths.get_mut(slot) {
            *path = Delays::default();
        }
    }

    /// Whether two paths share a bottleneck.
    pub fn are_shared(&self, one: usize, other: usize) -> bool {
        self.shared.contains(&(one.min(other), one.max(other)))
    }

    /// How many paths, this one included, share its bottleneck.
    pub fn sharers(&self, slot: usize) -> u32 {
        1 + self.shared.iter().filter(|(a, b)| *a == slot || *b == slot).count() as u32
    }

    fn judge(&mut self) {
        for (a, first) in self.paths.iter().enumerate() {
            for (b, second) in self.paths.iter().enumerate().skip(a + 1) {
                // The most recent bins of both.
                let count = first.bins.len().min(second.bins.len());
                let pairs = || first.bins.iter().rev().zip(second.bins.iter().rev());
                let (of_first, of_second) = (variance(pairs().map(|(q, _)| *q)), variance(pairs().map(|(_, r)| *r)));
                let is_known = self.shared.contains(&(a, b));
                if count < BINS.1 || of_first.max(of_second) < LEAST_VARIANCE {
                    continue;
                }
                let d = variance(pairs().map(|(q, r)| q - r)) / (of_first + of_second);
                if is_known && d > SHARED.1 {
                    self.shared.retain(|pair| *pair != (a, b));
                } else if !is_known && d < SHARED.0 {
                    self.shared.push((a, b));
                }
            }
        }
    }
}

fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saw-teeth of a queue that fills and drains: milliseconds at a time in milliseconds.
    fn saw(at: u64, period: u64, height: u64) -> Duration {
        Duration::from_micros(at % period * height * 1000 / period)
    }

    fn sharers(second: impl Fn(u64) -> Duration) -> u32 {
        let mut bottlenecks = Bottlenecks::default();
        for at in (0..10_000).step_by(8) {
            let now = Instant::ZERO + Duration::from_millis(at);
            bottlenecks.sample(now, 0, saw(at, 2_300, 60));
            bottlenecks.sample(now, 1, second(at));
        }
        bottlenecks.sharers(0)
    }

    #[test]
    fn one_queue_is_told_from_two() {
        assert_eq!(sharers(|at| saw(at, 2_300, 60)), 2);
        // The same queue seen half a round trip later.
        assert_eq!(sharers(|at| saw(at.saturating_sub(40), 2_300, 60)), 2);
        // Another, with a period of its own or the same in another phase, and one that is empty.
        assert_eq!(sharers(|at| saw(at, 1_700, 60)), 1);
        assert_eq!(sharers(|at| saw(at + 1_000, 2_300, 60)), 1);
        assert_eq!(sharers(|_| Duration::ZERO), 1);
    }

    #[test]
    fn a_path_that_moves_is_judged_anew() {
        let mut bottlenecks = Bottlenecks::default();
        for at in (0..20_000).step_by(8) {
            let now = Instant::ZERO + Duration::from_millis(at);
            bottlenecks.sample(now, 0, saw(at, 2_300, 60));
            bottlenecks.sample(now, 1, if at < 8_000 { saw(at, 2_300, 60) } else { saw(at, 1_700, 60) });
            if at == 7_992 {
                assert_eq!(bottlenecks.sharers(1), 2);
            }
        }
        assert_eq!(bottlenecks.sharers(1), 1);
    }
}

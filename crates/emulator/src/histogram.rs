//! How long things took, counted: how late an emulator was, how long packets were under way.

use clock::Duration;

/// A histogram of times: bins of equal width, and one for everything longer.
#[derive(Clone, Debug)]
pub struct Histogram {
    width: Duration,
    bins: Vec<u64>,
    count: u64,
    longest: Duration,
}

/// Bins of a histogram.
const BINS: usize = 10_000;

impl Histogram {
    /// With 10,000 bins of this width, more than zero.
    pub fn new(width: Duration) -> Self {
        Self { width, bins: vec![0; BINS + 1], count: 0, longest: Duration::ZERO }
    }

    /// Counts one.
    pub fn record(&mut self, time: Duration) {
        let bin = usize::try_from(time.as_nanos() / self.width.as_nanos().max(1)).unwrap_or(BINS).min(BINS);
        if let Some(count) = self.bins.get_mut(bin) {
            *count += 1;
        }
        self.count += 1;
        self.longest = self.longest.max(time);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest of all, exactly.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that a share `quantile` (0 to 1) of them did not exceed, rounded up to the width of a bin; zero without any.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let mut below = 0;
        for (count, bin) in self.bins.iter().take(BINS).zip(1u64..) {
            below += count;
            if below as f64 >= quantile * self.count as f64 {
                return Duration::from_nanos(self.width.as_nanos() * bin).min(self.longest);
            }
        }
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut histogram = Histogram::new(Duration::from_millis(1));
        assert_eq!(histogram.quantile(0.5), Duration::ZERO);
        (1..=100).rev().for_each(|micros| histogram.record(Duration::from_micros(micros * 1000 - 1)));
        assert_eq!(histogram.quantile(0.5), Duration::from_millis(50));
        assert_eq!(histogram.quantile(1.0), Duration::from_micros(99_999));
        histogram.record(Duration::from_secs(3600));
        assert_eq!((histogram.count(), histogram.quantile(0.9)), (101, Duration::from_millis(91)));
        assert_eq!(histogram.quantile(1.0), Duration::from_secs(3600));
    }
}

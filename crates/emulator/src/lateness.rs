//! How exact an emulation was: a histogram of how late things happened.

use clock::Duration;

/// A histogram of delays with bins of 10 µs up to 10 ms, and one for everything longer.
#[derive(Clone, Debug)]
pub struct Lateness {
    bins: Vec<u64>,
    count: u64,
    worst: Duration,
}

const BIN: Duration = Duration::from_micros(10);
const BINS: usize = 1000;

impl Default for Lateness {
    fn default() -> Self {
        Self { bins: vec![0; BINS + 1], count: 0, worst: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts one event that was late by `late`.
    pub fn record(&mut self, late: Duration) {
        let bin = usize::try_from(late.as_nanos() / BIN.as_nanos()).unwrap_or(BINS).min(BINS);
        if let Some(count) = self.bins.get_mut(bin) {
            *count += 1;
        }
        self.count += 1;
        self.worst = self.worst.max(late);
    }

    /// Events counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest of all, exactly.
    pub fn worst(&self) -> Duration {
        self.worst
    }

    /// The delay that a share `quantile` (0 to 1) of the events did not exceed, rounded up to 10 µs; zero without events.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let mut below = 0;
        for (count, bin) in self.bins.iter().zip(1u64..) {
            below += count;
            if below as f64 >= quantile * self.count as f64 {
                return Duration::from_nanos(BIN.as_nanos() * bin).min(self.worst);
            }
        }
        self.worst
    }
}

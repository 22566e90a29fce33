//! The retransmission timer's length: fine (RFC 6298) or in ticks of a coarse clock.

use clock::{Duration, Instant};
use recovery::{RttConfig, RttEstimator};

/// Which estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerConfig {
    /// RFC 6298 on round-trip times to the nanosecond, with the granularity as the least variance.
    Fine(RttConfig),
    /// Jacobson's integer arithmetic on round-trip times in whole ticks (V. Jacobson, *Congestion avoidance and
    /// control*, SIGCOMM 1988, appendix A), as BSD had it and ns-2 has it. The granularity is the tick.
    Coarse(RttConfig),
}

impl Default for TimerConfig {
    fn default() -> Self {
        Self::Fine(RttConfig::default())
    }
}

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) enum Timer {
    Fine(RttEstimator),
    Coarse(CoarseEstimator),
}

impl Timer {
    pub(crate) fn new(config: TimerConfig) -> Self {
        match config {
            TimerConfig::Fine(config) => Self::Fine(RttEstimator::new(config)),
            TimerConfig::Coarse(config) => Self::Coarse(CoarseEstimator::new(config)),
        }
    }

    /// An answer at `now` to what was sent at `sent`.
    #[inline]
    pub(crate) fn sample(&mut self, sent: Instant, now: Instant) {
        match self {
            Self::Fine(estimator) => estimator.sample(now - sent),
            Self::Coarse(estimator) => estimator.sample(sent, now),
        }
    }

    pub(crate) fn back_off(&mut self) {
        match self {
            Self::Fine(estimator) => estimator.back_off(),
            Self::Coarse(estimator) => estimator.back_off(),
        }
    }

    /// New data were acknowledged, though without a sample.
    #[inline]
    pub(crate) fn end_back_off(&mut self) {
        if let Self::Coarse(estimator) = self {
            estimator.backoff = 1;
        }
    }

    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        match self {
            Self::Fine(estimator) => estimator.rto(),
            Self::Coarse(estimator) => estimator.rto(),
        }
    }

    /// The variation of the round-trip time; zero without a sample.
    pub(crate) fn rttvar(&self) -> Duration {
        match self {
            Self::Fine(estimator) => estimator.rttvar().unwrap_or(Duration::ZERO),
            Self::Coarse(estimator) => estimator.config.granularity * u64::from(estimator.rttvar) / 4,
        }
    }

    /// The least round-trip time; zero without a sample. Coarse clocks know the smoothed one only.
    pub(crate) fn min_rtt(&self) -> Duration {
        match self {
            Self::Fine(estimator) => estimator.min().unwrap_or(Duration::ZERO),
            Self::Coarse(_) => self.srtt(),
        }
    }

    /// The smoothed round-trip time; zero without a sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Duration {
        match self {
            Self::Fine(estimator) => estimator.srtt().unwrap_or(Duration::ZERO),
            Self::Coarse(estimator) => estimator.config.granularity * u64::from(estimator.srtt) / 8,
        }
    }
}

/// Round-trip time in eighths of a tick, variation in quarters.
#[derive(Clone, Debug)]
pub(crate) struct CoarseEstimator {
    config: RttConfig,
    srtt: u32,
    rttvar: u32,
    /// The timer in ticks before back-off; `None` before the first sample.
    ticks: Option<u32>,
    backoff: u32,
}

impl CoarseEstimator {
    fn new(config: RttConfig) -> Self {
        Self { config, srtt: 0, rttvar: 0, ticks: None, backoff: 1 }
    }

    fn sample(&mut self, sent: Instant, now: Instant) {
        let tick = self.config.granularity.as_nanos().max(1);
        // Ticks of the clock that went by: those of a clock that ticks at whole multiples.
        let ticks = (now.as_nanos() / tick).saturating_sub(sent.as_nanos() / tick).clamp(1, 1 << 16) as u32;
        self.backoff = 1;
        if self.srtt == 0 {
            self.srtt = ticks << 3;
            self.rttvar = ticks << 1;
        } else {
            let delta = ticks.cast_signed() - (self.srtt >> 3).cast_signed();
            self.srtt = self.srtt.saturating_add_signed(delta).max(1);
            let delta = delta.abs() - (self.rttvar >> 2).cast_signed();
            self.rttvar = self.rttvar.saturating_add_signed(delta).max(1);
        }
        // Jacobson's srtt + 4 var in whole ticks: (8 srtt + 8·4 var) / 8.
        self.ticks = Some(((self.rttvar << 3) + self.srtt) >> 3);
    }

    fn back_off(&mut self) {
        if self.backoff < 64 || self.rto() < self.config.max_rto {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if self.backoff > 8 {
            // Backed off this far, the mean is not worth keeping; the next sample starts it anew.
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    fn rto(&self) -> Duration {
        let once = match self.ticks {
            None => self.config.initial_rto,
            Some(ticks) => (self.config.granularity * u64::from(ticks)).max(self.config.min_rto),
        };
        (once * u64::from(self.backoff)).min(self.config.max_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_clock_counts_ticks() {
        let config = RttConfig { granularity: Duration::from_millis(10), ..RttConfig::default() };
        let mut timer = Timer::new(TimerConfig::Coarse(config));
        assert_eq!(timer.rto(), Duration::from_secs(1));
        // From 5 ms to 105 ms, ten ticks go by: srtt 10, variation 5, so 10 + 4·5 = 30 ticks.
        timer.sample(Instant::from_nanos(5_000_000), Instant::from_nanos(105_000_000));
        assert_eq!(timer.srtt(), Duration::from_millis(100));
        assert_eq!(timer.rto(), Duration::from_millis(300));
        timer.back_off();
        assert_eq!(timer.rto(), Duration::from_millis(600));
        // 18 ticks: srtt 10 + 8/8 = 11; variation 5 + (8 - 5)/4 = 5.75; 11 + 23 = 34 ticks.
        timer.sample(Instant::from_nanos(5_000_000), Instant::from_nanos(185_000_000));
        assert_eq!(timer.rto(), Duration::from_millis(340));
    }
}

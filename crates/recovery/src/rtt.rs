//! Round-trip estimation and the retransmission timer: RFC 6298.

use clock::Duration;

/// The bounds of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// The timer before the first sample (RFC 6298 §2.1: 1 s).
    pub initial_rto: Duration,
    /// The least timer. RFC 6298 §2.4 has 1 s; Linux and this project 200 ms.
    pub min_rto: Duration,
    /// The greatest timer, also with back-off (RFC 6298 §2.5: at least 60 s).
    pub max_rto: Duration,
    /// The clock's granularity, the least that the variance adds.
    pub granularity: Duration,
}

impl Default for RttConfig {
    fn default() -> Self {
        Self {
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        }
    }
}

/// The smoothed round-trip time of one path, its variation, and the timer that follows from them.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RttConfig,
    samples: Option<Smoothed>,
    latest: Duration,
    min: Duration,
    rto: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    srtt: Duration,
    rttvar: Duration,
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new(config: RttConfig) -> Self {
        Self { config, samples: None, latest: Duration::ZERO, min: Duration::MAX, rto: config.initial_rto }
    }

    /// Takes a sample: the time from a packet to its answer. The caller keeps Karn's rule (RFC 6298 §3): none from an
    /// answer that may be to an earlier transmission. Ends a back-off.
    pub fn sample(&mut self, rtt: Duration) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        let smoothed = match self.samples {
            // RFC 6298 §2.2.
            None => Smoothed { srtt: rtt, rttvar: rtt / 2 },
            // RFC 6298 §2.3: the variation first, from the srtt before this sample; alpha = 1/8, beta = 1/4.
            Some(Smoothed { srtt, rttvar }) => {
                let error = srtt.max(rtt) - srtt.min(rtt);
                Smoothed { srtt: (srtt * 7 + rtt) / 8, rttvar: (rttvar * 3 + error) / 4 }
            }
        };
        self.samples = Some(smoothed);
        let rto = smoothed.srtt + (smoothed.rttvar * 4).max(self.config.granularity);
        self.rto = rto.max(self.config.min_rto).min(self.config.max_rto);
    }

    /// The timer expired: doubles it, up to the bound (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.config.max_rto);
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.samples.map(|smoothed| smoothed.srtt)
    }

    /// The mean deviation of the samples; `None` before the first.
    pub fn rttvar(&self) -> Option<Duration> {
        self.samples.map(|smoothed| smoothed.rttvar)
    }

    /// The last sample; `None` before the first.
    pub fn latest(&self) -> Option<Duration> {
        self.samples.map(|_| self.latest)
    }

    /// The least sample; `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        self.samples.map(|_| self.min)
    }

    /// The timer.
    pub fn rto(&self) -> Duration {
        self.rto
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(RttConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{numbers, vector};
    use proptest::prelude::*;

    fn assert_ms(ours: Duration, ms: f64) {
        assert!((ours.as_secs_f64() * 1e3 - ms).abs() < 1e-9 * ms, "{ours} is not {ms} ms");
    }

    #[test]
    fn rto_1() {
        let (input, output) = vector("rto.1");
        let seconds = |key: &str| Duration::from_secs_f64(input[key].as_f64().unwrap());
        let config = RttConfig {
            min_rto: seconds("rto_min"),
            max_rto: seconds("rto_max"),
            granularity: seconds("G"),
            ..RttConfig::default()
        };
        let mut estimator = RttEstimator::new(config);
        assert_eq!(estimator.rto(), Duration::from_secs(1));
        let trace = output["trace_srtt_var_rto"].as_array().unwrap();
        for (sample, expected) in numbers(&input["samples"]).into_iter().zip(trace) {
            estimator.sample(Duration::from_secs_f64(sample));
            let ours = [estimator.srtt().unwrap(), estimator.rttvar().unwrap(), estimator.rto()];
            for (ours, theirs) in ours.into_iter().zip(numbers(expected)) {
                assert_ms(ours, theirs * 1e3);
            }
        }
        estimator.back_off();
        assert_ms(estimator.rto(), output["after_one_backoff"].as_f64().unwrap() * 1e3);
        assert_eq!(estimator.min(), Some(Duration::from_millis(90)));
    }

    proptest! {
        #[test]
        fn the_timer_stays_within_its_bounds(samples in prop::collection::vec(any::<u64>(), 1..50), backs in 0u8..20) {
            let mut estimator = RttEstimator::default();
            let config = RttConfig::default();
            for sample in &samples {
                estimator.sample(Duration::from_nanos(sample % 100_000_000_000));
                prop_assert!(estimator.rto() >= config.min_rto && estimator.rto() <= config.max_rto);
            }
            (0..backs).for_each(|_| estimator.back_off());
            prop_assert!(estimator.rto() <= config.max_rto);
        }
    }
}

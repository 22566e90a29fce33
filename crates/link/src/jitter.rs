//! By how much longer or shorter than its delay a link takes for each packet.

use std::sync::Arc;

use clock::{Duration, Rng};

/// What is added to the delay of each packet, drawn anew for each. No packet takes less than no time.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JitterConfig {
    /// Nothing.
    #[default]
    None,
    /// Uniform from this much less to this much more.
    Uniform(Duration),
    /// Normal with mean 0 and this standard deviation.
    Normal(Duration),
    /// One of these, each as likely as the others; nothing if there is none.
    Samples(Arc<[Duration]>),
    /// Quantiles: probabilities in ascending order, each with the delay that is not exceeded with it; linear between them.
    Quantiles(Arc<[(f64, Duration)]>),
}

/// Draws with a stream of its own, so that losses are the same with and without it.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    config: JitterConfig,
    rng: Rng,
    /// Normal numbers come in pairs.
    spare: Option<f64>,
}

impl Jitter {
    pub(crate) fn new(config: JitterConfig, rng: &Rng) -> Self {
        // "jitter": another stream than that of losses, which is left where it is.
        let seed = rng.clone().next_u64() ^ 0x6a69_7474_6572;
        Self { config, rng: Rng::from_seed(seed), spare: None }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.config == JitterConfig::None
    }

    /// The least that a packet takes where the delay is `delay`.
    pub(crate) fn shortest(&self, delay: Duration) -> Duration {
        match &self.config {
            JitterConfig::None | JitterConfig::Samples(_) | JitterConfig::Quantiles(_) => delay,
            JitterConfig::Uniform(most) => delay.saturating_sub(*most),
            JitterConfig::Normal(_) => Duration::ZERO,
        }
    }

    /// How long the next packet takes where the delay is `delay`.
    pub(crate) fn draw(&mut self, delay: Duration) -> Duration {
        match &self.config {
            JitterConfig::None => delay,
            JitterConfig::Uniform(most) => (delay + most.mul_f64(2.0 * self.rng.unit())).saturating_sub(*most),
            JitterConfig::Normal(sigma) => {
                let sigma = *sigma;
                let number = self.normal();
                match number < 0.0 {
                    true => delay.saturating_sub(sigma.mul_f64(-number)),
                    false => delay + sigma.mul_f64(number),
                }
            }
            JitterConfig::Samples(samples) => {
                let at = self.rng.below(samples.len() as u64);
                delay + samples.get(at as usize).copied().unwrap_or_default()
            }
            JitterConfig::Quantiles(table) => delay + quantile(table, self.rng.unit()),
        }
    }

    /// A number of the standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.rng.unit()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.rng.unit()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}

/// The delay that is not exceeded with this probability.
fn quantile(table: &[(f64, Duration)], probability: f64) -> Duration {
    let after = table.partition_point(|(known, _)| *known <= probability);
    let (low, high) = (after.checked_sub(1).and_then(|before| table.get(before)), table.get(after));
    match (low, high) {
        (Some((p, low)), Some((q, high))) => *low + high.saturating_sub(*low).mul_f64((probability - p) / (q - p)),
        (Some((_, only)), None) | (None, Some((_, only))) => *only,
        (None, None) => Duration::ZERO,
    }
}

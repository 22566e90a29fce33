//! Whether the next packet is lost.

use clock::Rng;

use crate::LossConfig;
use crate::mrg32k3a::Mrg32k3a;

/// A loss process and its state.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    config: LossConfig,
    bad: bool,
    ns2: Option<Box<Mrg32k3a>>,
}

impl Loss {
    pub(crate) fn new(config: LossConfig) -> Self {
        let ns2 = match config {
            LossConfig::Ns2 { seed, .. } => Some(Box::new(Mrg32k3a::from_seed(seed))),
            _ => None,
        };
        Self { config, bad: false, ns2 }
    }

    /// Decides the fate of one packet.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> bool {
        match self.config {
            LossConfig::None => false,
            LossConfig::Random(p) => rng.chance(p),
            LossConfig::Ns2 { rate, .. } => self.ns2.as_mut().is_some_and(|numbers| numbers.unit() < rate),
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                if rng.chance(if self.bad { to_good } else { to_bad }) {
                    self.bad = !self.bad;
                }
                rng.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}

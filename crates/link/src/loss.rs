//! Whether the next packet is lost.

use clock::Rng;

use crate::LossConfig;

/// A loss process and its state.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    config: LossConfig,
    bad: bool,
}

impl Loss {
    pub(crate) fn new(config: LossConfig) -> Self {
        Self { config, bad: false }
    }

    /// Decides the fate of one packet.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> bool {
        match self.config {
            LossConfig::None => false,
            LossConfig::Random(p) => rng.chance(p),
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                if rng.chance(if self.bad { to_good } else { to_bad }) {
                    self.bad = !self.bad;
                }
                rng.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}

//! The usual rule of a tunnel's paths: [`Mhip`], where not every loss is congestion's. Which are, is told by whoever runs the rule
//! ([`Kind::bears_random_loss`]).

use crate::group::Group;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Kind, WindowRule};
use crate::rules::Mhip;

pub(super) const REFERENCE: Reference = Reference {
    name: "sinnet",
    increase: "1/w per packet on each path",
    decrease: "w/2 on the path of the loss, at least 2; w of a loss that is the link's own: no queue, and no less at a smaller window",
    source: "as `mhip`; `CoupledController` tells losses apart",
    section: ("6.7", "67-losses-of-the-links-own-sinnet-o"),
    tunables: &[],
};

/// mHIP's rule for links with losses of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sinnet {
    mhip: Mhip,
}

impl WindowRule for Sinnet {
    fn kind(&self) -> Kind {
        Kind { bears_random_loss: true, ..self.mhip.kind() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.mhip.increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        self.mhip.decrease(path, group, cause)
    }
}

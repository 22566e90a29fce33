//! The semi-coupled control: D. Wischik and others, NSDI 2011, §2.3. All windows grow as one Reno, `w_r += 1 / Σw`, and each
//! falls as a Reno, `w_r −= w_r / 2`. ALGORITHMS §4.9.

use super::coupled;
use crate::group::Group;
use crate::reference::{HALF, POINTS, Reference};
use crate::rule::{Backoff, Cause, Kind, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "semicoupled",
    increase: "1/Σw per packet",
    decrease: HALF,
    source: "Wischik and others, NSDI 2011, §2.3",
    section: POINTS,
    tunables: &[],
};

/// The semi-coupled control.
#[derive(Clone, Copy, Debug, Default)]
pub struct Semicoupled;

impl WindowRule for Semicoupled {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        coupled::increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        Backoff::to(group.path(path).flight / 2.0, group.floor(path))
    }
}

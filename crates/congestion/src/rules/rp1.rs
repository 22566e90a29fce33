//! Resource pooling for CMT-SCTP, first version: T. Dreibholz, M. Becke, J. Pulinthanath and E. Rathgeb, *Applying
//! TCP-friendly congestion control to concurrent multipath transfer*, IEEE AINA 2010. All paths together take what one
//! SCTP would; each has the share `q = s_P / Σs` of it, by thresholds. ALGORITHMS §4.2.

use crate::group::Group;
use crate::math::ceil;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::partial_bytes::PartialBytes;

pub(super) const REFERENCE: Reference = Reference {
    name: "rp1",
    increase: "q packets once w are acknowledged, q = s/Σs",
    decrease: "w − Σw/2, at least 1",
    source: "Dreibholz and others, AINA 2010",
    section: ("4.2", "42-rp-mp-v1-dreibholz-et-al-aina-2010-inet-cccv_cmtrpv1-c"),
    tunables: &[],
};

/// RP-MP-v1. Thresholds do not tell of unequal round-trip times, which is why [`Rp2`](crate::Rp2) superseded it.
#[derive(Clone, Debug, Default)]
pub struct Rp1 {
    partial: PartialBytes,
}

impl Rp1 {
    /// The share of `path` in the growth of the association, in (0, 1]. A threshold that no loss has set yet says nothing:
    /// shares are equal until all paths have one.
    pub fn share(&self, path: usize, group: Group<'_>) -> f64 {
        let counts = |(index, _): &(usize, f64)| *index == path || group.usable().any(|other| other.index == *index);
        let thresholds = || group.paths.iter().map(|path| path.ssthresh).enumerate().filter(counts);
        let sum: f64 = thresholds().map(|(_, ssthresh)| ssthresh).sum();
        if sum.is_finite() { group.path(path).ssthresh / sum } else { 1.0 / thresholds().count() as f64 }
    }
}

impl WindowRule for Rp1 {
    fn kind(&self) -> Kind {
        Kind { couples: true, family: Family::Sctp, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.partial.path_added();
    }

    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.partial.clear(path);
        ceil(self.share(path, group) * acked)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let state = group.path(path);
        if self.partial.count(path, state, acked) { ceil(self.share(path, group) * state.mss) } else { 0.0 }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        self.partial.clear(path);
        // The association gives up half of all its windows, on the path of the loss.
        let state = group.path(path);
        Backoff::to(ceil(state.cwnd - group.window_with(path) / 2.0), state.mss)
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.partial.count_unused(path, group.path(path), acked);
    }
}

//! Reno as SCTP has it: RFC 9260 §7.2, and M. Becke, T. Dreibholz, H. Adhari and E. Rathgeb, *On the fairness of
//! transport protocols in a multi-path environment*, IEEE ICC 2012, §III-B1 (`reno-sp`) and §III-B2 (`reno-mp`: the same
//! on each path, uncoupled). Windows are whole bytes. Goes with [`EngineConfig::sctp`](crate::EngineConfig::sctp).

use crate::group::Group;
use crate::math::ceil;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::partial_bytes::PartialBytes;

pub(super) const REFERENCE: Reference = Reference {
    name: "reno-sp",
    increase: "one packet once w packets are acknowledged (partial_bytes_acked)",
    decrease: "⌈w/2⌉, at least 4",
    source: "RFC 9260 §7.2.2 and §7.2.3; Becke and others, ICC 2012, §III-B1",
    section: ("3.2", "32-reno-sp-becke-et-al-iii-b1-rfc-4960-72-s"),
    tunables: &[],
};

pub(super) const OF_EACH_PATH: Reference = Reference {
    name: "reno-mp",
    increase: "as reno-sp, on each path",
    decrease: "⌈w/2⌉, at least 4",
    source: "Becke and others, ICC 2012, §III-B2",
    section: ("4.1", "41-reno-mp-uncoupled-s-iii-b2"),
    tunables: &[],
};

/// One packet more per window acknowledged, half the window after a loss, never a threshold below four packets.
#[derive(Clone, Debug, Default)]
pub struct RenoSp {
    partial: PartialBytes,
}

impl WindowRule for RenoSp {
    fn kind(&self) -> Kind {
        Kind { family: Family::Sctp, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.partial.path_added();
    }

    fn slow_start(&mut self, path: usize, _group: Group<'_>, acked: f64) -> f64 {
        self.partial.clear(path);
        acked
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let state = group.path(path);
        if self.partial.count(path, state, acked) { state.mss } else { 0.0 }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        self.partial.clear(path);
        // RFC 9260 §7.2.3: half the window, not of what is outstanding.
        let path = group.path(path);
        Backoff::to(ceil(path.cwnd / 2.0), 4.0 * path.mss)
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.partial.count_unused(path, group.path(path), acked);
    }
}

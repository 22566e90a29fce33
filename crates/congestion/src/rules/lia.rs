//! LIA, the linked increases of MPTCP: RFC 6356. The windows of all paths together grow as fast as one TCP's on the best
//! of the paths would, and none grows faster than a TCP:
//!
//! ```text
//! α = Σc · max(c_i / RTT_i²) / (Σ c_i / RTT_i)²,   c_i += min(α · a · MSS / Σc, a · MSS / c_i)
//! ```

use crate::group::Group;
use crate::reference::{HALF, Reference};
use crate::rule::{Backoff, Cause, Kind, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "lia",
    increase: "min(α/Σw, 1/w) per packet, α = Σw · max(w/RTT²) / (Σ w/RTT)²",
    decrease: HALF,
    source: "RFC 6356 §3, equations 1 and 2",
    section: ("4.5", "45-lia-rfc-6356-34-r"),
    tunables: &[],
};

/// LIA as RFC 6356 §3 has it: coupled in congestion avoidance only (ALGORITHMS §13 A9).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

/// `α / Σw`, with windows in packets: what one acknowledged packet adds to any path, in packets. `None` if no path has a
/// round-trip sample. RFC 6356 §4 lets it be computed once a round; it costs less than to remember when.
pub fn coupled_increase(group: Group<'_>) -> Option<f64> {
    let (mut best, mut rates) = (0.0_f64, 0.0);
    for path in group.usable() {
        let rate = path.packets / path.rtt;
        best = best.max(rate / path.rtt);
        rates += rate;
    }
    (rates > 0.0).then(|| best / (rates * rates))
}

/// `α` of RFC 6356 §3: how aggressive all paths together are; 1 as long as no path has a round-trip sample. Without a unit:
/// windows count in packets of their path, which for equal packets is the same as bytes (ALGORITHMS §13 A2).
pub fn alpha(group: Group<'_>) -> f64 {
    coupled_increase(group).map_or(1.0, |per_packet| per_packet * group.usable().map(|path| path.packets).sum::<f64>())
}

impl WindowRule for Lia {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let path = group.path(path);
        // RFC 6356 §3: never more than a TCP on the same path.
        coupled_increase(group).map_or(f64::INFINITY, |per_packet| per_packet * acked).min(path.reno(acked))
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        // RFC 6356 §3: as RFC 5681.
        Backoff::to(group.path(path).flight / 2.0, group.floor(path))
    }
}

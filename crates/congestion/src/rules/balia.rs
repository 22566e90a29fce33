//! BALIA, the balanced linked adaptation of MPTCP: Q. Peng, A. Walid, J. Hwang and S. Low, *Multipath TCP: analysis,
//! design, and implementation*, IEEE/ACM ToN 24(1), 2016, and draft-walid-mptcp-congestion-control-04 §2. With
//! `x_r = w_r / RTT_r` and `α_r = max x / x_r`, per acknowledged packet and at a loss
//!
//! ```text
//! w_r += x_r / RTT_r / (Σx)² · (1 + α_r)/2 · (4 + α_r)/5,   w_r −= w_r/2 · min(α_r, 1.5)
//! ```
//!
//! α is real; the kernel's module truncates it to a whole number.

use crate::group::{Group, Usable};
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Kind, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "balia",
    increase: "x/RTT/(Σx)² · (1+α)/2 · (4+α)/5 per packet, x = w/RTT, α = max(x)/x",
    decrease: "F·(1 − min(α, 1.5)/2)",
    source: "Peng and others, IEEE/ACM ToN 24(1), 2016; draft-walid-mptcp-congestion-control-04 §2",
    section: (
        "4.7",
        "47-balia-peng-walid-hwang-low-ton-2016-draft-walid-mptcp-congestion-control-04-2-kernel-mptcp_baliac-c",
    ),
    tunables: &[],
};

/// BALIA.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

/// The path at `index`, its α, and the sum of the rates; `None` without a round-trip sample.
fn rates(index: usize, group: Group<'_>) -> Option<(Usable, f64, f64)> {
    let (mut best, mut sum, mut own) = (0.0_f64, 0.0, None);
    for path in group.usable() {
        let rate = path.rate();
        best = best.max(rate);
        sum += rate;
        if path.index == index {
            own = Some(path);
        }
    }
    own.map(|path| (path, best / path.rate(), sum))
}

impl WindowRule for Balia {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let Some((own, alpha, sum)) = rates(path, group) else {
            return group.path(path).reno(acked);
        };
        acked * own.rate() / own.rtt / (sum * sum) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let alpha = rates(path, group).map_or(1.0, |(_, alpha, _)| alpha);
        // As RFC 5681, of what was outstanding.
        Backoff::to(group.path(path).flight * (1.0 - alpha.min(1.5) / 2.0), group.floor(path))
    }
}

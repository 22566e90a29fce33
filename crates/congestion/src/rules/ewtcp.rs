//! EWTCP, equally weighted TCP: M. Honda and others, *Multipath congestion control for shared bottleneck*, PFLDNeT 2009;
//! D. Wischik, C. Raiciu, A. Greenhalgh and M. Handley, NSDI 2011, §2.1. Each of n paths is a Reno that grows by `1/√n`
//! packets a round. The constant is the one of ALGORITHMS §4.9, which could not verify it: by the square-root formula, n
//! such paths through one bottleneck take `n^¾` of what one Reno takes.

use crate::group::Group;
use crate::reference::{HALF, POINTS, Reference};
use crate::rule::{Backoff, Cause, Kind, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "ewtcp",
    increase: "1/(w·√n) per packet",
    decrease: HALF,
    source: "Honda and others, PFLDNeT 2009; Wischik and others, NSDI 2011, §2.1",
    section: POINTS,
    tunables: &[],
};

/// EWTCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewtcp;

impl WindowRule for Ewtcp {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        group.path(path).reno(acked) / (group.count().max(1) as f64).sqrt()
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        Backoff::to(group.path(path).flight / 2.0, group.floor(path))
    }
}

//! EWTCP, equally weighted TCP: M. Honda and others, *Multipath congestion control for shared bottleneck*, PFLDNeT 2009;
//! D. Wischik, C. Raiciu, A. Greenhalgh and M. Handley, NSDI 2011, §2.1. Each of n paths is a Reno that grows by `1/√n`
//! packets a round, which makes n of them on one bottleneck as strong as one Reno. ALGORITHMS §4.9.

use crate::group::Group;
use crate::rule::{Backoff, Cause, WindowRule};

/// EWTCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewtcp;

impl WindowRule for Ewtcp {
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        group.path(path).reno(acked) / (group.count().max(1) as f64).sqrt()
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        Backoff::to(group.path(path).flight / 2.0, group.floor(path))
    }
}

//! Lowest round-trip time first: what MPTCP of Linux does unless told otherwise (C. Raiciu and others, *How hard can it
//! be? Designing and implementing a deployable Multipath TCP*, NSDI 2012).

use crate::{Decision, PacketMeta, PathScheduler, PathView, Reference, fastest};
use clock::Instant;

pub(super) const REFERENCE: Reference = Reference {
    name: "lowest-rtt",
    choice: "the open path of least RTT",
    source: "Raiciu and others, NSDI 2012; Linux mptcp_sched.c",
};

/// Of the open paths, the one with the least smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowestRtt;

impl PathScheduler for LowestRtt {
    #[inline]
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        fastest(paths.iter().filter(|path| path.open)).map_or(Decision::Blocked, |path| Decision::Send(path.id))
    }
}

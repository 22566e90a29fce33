//! Cheapest path first: paths have an order of cost, and what does not fit on one spills over to the next (MP-DCCP,
//! draft-ietf-tsvwg-multipath-dccp).

use crate::{Decision, PacketMeta, PathScheduler, PathView, Reference};
use clock::Instant;

pub(super) const REFERENCE: Reference = Reference {
    name: "cheapest-path-first",
    choice: "the first open path, in the order of their numbers",
    source: "draft-ietf-tsvwg-multipath-dccp",
};

/// The first open path, in the order of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheapestPathFirst;

impl PathScheduler for CheapestPathFirst {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let open = paths.iter().filter(|path| path.open).map(|path| path.id).min();
        open.map_or(Decision::Blocked, Decision::Send)
    }
}

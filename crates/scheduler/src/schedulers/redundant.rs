//! Redundant: every packet on every path, each at its own pace. For what must arrive early, at whatever cost.

use super::LowestRtt;
use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference};
use clock::Instant;

pub(super) const REFERENCE: Reference = Reference {
    name: "redundant",
    choice: "every packet on every path, each at its own pace; the first copy as lowest-rtt",
    source: "Linux mptcp_redundant.c",
};

/// New packets go to the fastest open path; the others follow ([`Needs::copies`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl PathScheduler for Redundant {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
        LowestRtt.select(packet, paths, now)
    }

    fn needs(&self) -> Needs {
        Needs { copies: true, ..Needs::NOTHING }
    }
}

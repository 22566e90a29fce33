//! Redundant: every packet on every path, each at its own pace. For what must arrive early, at whatever cost.

use crate::{Decision, LowestRtt, PacketMeta, PathScheduler, PathView};
use clock::Instant;

/// New packets go to the fastest open path; the others follow ([`PathScheduler::is_redundant`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl PathScheduler for Redundant {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
        LowestRtt.select(packet, paths, now)
    }

    fn is_redundant(&self) -> bool {
        true
    }
}

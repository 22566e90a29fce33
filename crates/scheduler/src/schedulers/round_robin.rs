//! Round robin: so many packets on one path, then as many on the next; paths that are not open are skipped.

use crate::{Decision, PacketMeta, PathId, PathScheduler, PathView, Reference};
use clock::Instant;

pub(super) const REFERENCE: Reference =
    Reference { name: "round-robin", choice: "the next open path, one packet each", source: "Linux mptcp_rr.c" };

/// The scheduler. Paths take turns in the order of their numbers.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    /// Packets a turn, at least 1.
    pub quota: u32,
    turn: Option<PathId>,
    left: u32,
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new(1)
    }
}

impl RoundRobin {
    /// With `quota` packets a turn.
    pub fn new(quota: u32) -> Self {
        Self { quota, turn: None, left: 0 }
    }
}

impl PathScheduler for RoundRobin {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let open = || paths.iter().filter(|path| path.open).map(|path| path.id);
        if self.left > 0
            && let Some(turn) = self.turn.filter(|turn| open().any(|id| id == *turn))
        {
            self.left -= 1;
            return Decision::Send(turn);
        }
        let after = open().filter(|id| self.turn.is_some_and(|turn| *id > turn)).min();
        let Some(next) = after.or_else(|| open().min()) else { return Decision::Blocked };
        self.turn = Some(next);
        self.left = self.quota.saturating_sub(1);
        Decision::Send(next)
    }
}

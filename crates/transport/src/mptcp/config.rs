//! The options of an MPTCP connection.

use std::sync::Arc;

use scheduler::{LowestRtt, Scheduler};

use crate::config::TcpConfig;
use crate::mhip::PathConfig;

/// One connection's options.
#[derive(Clone, Debug)]
pub struct MptcpConfig {
    /// What each subflow has as a TCP, and the rule that couples them. The receiver's window is the one that all share.
    pub tcp: Arc<TcpConfig>,
    /// The paths, at least one and at most [`MptcpConfig::MOST_PATHS`]. Only schedulers that go by delay and rate read
    /// what is known of them beforehand.
    pub paths: Vec<PathConfig>,
    /// Where new data go.
    pub scheduler: Scheduler,
    /// Opportunistic retransmission with penalisation.
    pub opportunistic: bool,
}

impl MptcpConfig {
    /// So many paths have a bit in what is noted of a packet.
    pub const MOST_PATHS: usize = 63;

    /// Over `paths`, with `tcp` on each, as MPTCP of Linux has it: lowest round-trip time first.
    pub fn new(tcp: TcpConfig, paths: Vec<PathConfig>) -> Self {
        Self { tcp: Arc::new(tcp), paths, scheduler: Scheduler::LowestRtt(LowestRtt), opportunistic: false }
    }

    /// How many subflows there are.
    pub(crate) fn count(&self) -> usize {
        self.paths.len().clamp(1, Self::MOST_PATHS)
    }
}

//! Which path a packet takes. A scheduler sees a snapshot of the paths and decides; it changes nothing.

mod fastest_path_first;

pub use fastest_path_first::FastestPathFirst;

use clock::{Duration, Instant};
use std::fmt;

/// The number of a path within its association; never used twice while the association lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// What a scheduler knows about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMeta {
    /// Bytes on the wire, with all headers around it.
    pub len: usize,
}

/// What a scheduler knows about a path at the moment of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Which path this is.
    pub id: PathId,
    /// Whether the path may take a packet now: it is alive, and neither its window nor its queue is full.
    pub open: bool,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Rate in bit/s of the path's bottleneck. A path of rate 0 is never chosen.
    pub rate: u64,
    /// When the last bit of what the path has been given so far will have been sent; in the past for an idle path.
    pub free_at: Instant,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Send it on this path. The owner of the paths counts it: `free_at = max(free_at, now) + 8·len/rate`.
    Send(PathId),
    /// No path is open.
    Blocked,
}

/// A way to choose a path for each packet. The order of packets within a path is never changed.
pub trait PathScheduler {
    /// Chooses for one packet. A scheduler may count on a packet being sent where it said.
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision;
}

//! Which path a packet takes. A scheduler sees a snapshot of the paths and decides; it changes nothing.
//!
//! [`Scheduler`] is any of them, by the name that scenario files write. A new one is a file in `schedulers/` and its lines
//! in that folder's `mod.rs`. What it needs beyond which paths are open it says itself ([`PathScheduler::needs`]); who owns the
//! paths has that, or refuses it ([`Scheduler::fitting`]).

mod custom;
mod reference;
mod schedulers;

pub use custom::{Custom, CustomScheduler};
pub use reference::{REFERENCE, Reference};
pub use schedulers::*;

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

/// What a scheduler knows about a packet, and about what waits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMeta {
    /// Bytes on the wire, with all headers around it.
    pub len: usize,
    /// Packets in the sender's buffer that no path has been given, with this one.
    pub unscheduled: u64,
    /// Bytes that the receiver's window still allows beyond what was sent, in packets of `len` bytes; [`u64::MAX`] where
    /// there is no such window.
    pub window: u64,
}

impl Default for PacketMeta {
    fn default() -> Self {
        Self { len: 0, unscheduled: 1, window: u64::MAX }
    }
}

/// What a scheduler knows about a path at the moment of a decision. Paths that are down are not among those it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathView {
    /// Which path this is.
    pub id: PathId,
    /// Whether the path may take a packet now: it is alive, neither its window nor its queue is full, and its pace allows it,
    /// but for who compares arrivals ([`Needs::arrivals`]).
    pub open: bool,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Rate in bit/s of the path's bottleneck; 0 if it is not known. [`FastestPathFirst`] never chooses a path of rate 0.
    pub rate: u64,
    /// When the last bit of what the path has been given so far will have been sent; in the past for an idle path.
    pub free_at: Instant,
    /// Smoothed round-trip time; zero without a sample.
    pub srtt: Duration,
    /// Variation of the round-trip time (RFC 6298).
    pub rttvar: Duration,
    /// Congestion window in packets.
    pub cwnd: u64,
    /// Slow-start threshold in packets; [`u64::MAX`] before the first loss.
    pub ssthresh: u64,
    /// Packets outstanding.
    pub in_flight: u64,
    /// Packets that wait for the path alone ([`Decision::Enqueue`]).
    pub queued: u64,
}

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Send it on this path. The owner of the paths counts it: `free_at = max(free_at, now) + 8·len/rate`.
    Send(PathId),
    /// It is for this path, which is not open: it waits there until it is.
    Enqueue(PathId),
    /// Keep it, though a path is open: a better one will be. Asked again at the next acknowledgment or timer.
    Wait,
    /// No path is open.
    Blocked,
}

/// A way to choose a path for each packet. The order of packets within a path is never changed.
pub trait PathScheduler {
    /// Chooses for one packet. A scheduler may count on a packet being sent where it said.
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision;

    /// The receiver's window, and no path, was what kept a packet back.
    fn on_window_limited(&mut self, _now: Instant) {}

    /// What it needs beyond which paths are open, their round-trip times and their rates.
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
}

/// What a scheduler needs beyond which paths are open, their round-trip times and their rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// It compares arrivals, by `delay`, `rate` and `free_at`: that a path has still to send what it was given before makes it
    /// later, and does not close it.
    pub arrivals: bool,
    /// The windows of the paths, and what is in flight in them.
    pub windows: bool,
    /// A queue of each path for what waits for it alone ([`Decision::Enqueue`]).
    pub queues: bool,
    /// Each path carries a copy of every packet, at its own pace; [`PathScheduler::select`] only chooses the first.
    pub copies: bool,
}

impl Needs {
    /// Nothing.
    pub const NOTHING: Self = Self { arrivals: false, windows: false, queues: false, copies: false };
    /// All that there is.
    pub const ALL: Self = Self { arrivals: true, windows: true, queues: true, copies: true };

    /// What a sender has whose paths have configured rates: neither windows nor a peer that tells copies.
    pub const OF_CONFIGURED_RATES: Self = Self { arrivals: true, ..Self::NOTHING };

    /// What of it is not in `has`, in words.
    fn beyond(self, has: Self) -> Option<&'static str> {
        let lacks = [
            (self.arrivals && !has.arrivals, "delays and rates of paths"),
            (self.windows && !has.windows, "windows"),
            (self.queues && !has.queues, "queues of single paths"),
            (self.copies && !has.copies, "receivers that tell copies"),
        ];
        lacks.into_iter().find_map(|(lacks, what)| lacks.then_some(what))
    }
}

/// The path of the least round-trip time; of those with the same one, the first.
fn fastest<'a>(paths: impl Iterator<Item = &'a PathView>) -> Option<&'a PathView> {
    paths.min_by_key(|path| (path.srtt, path.id))
}

//! Random per-packet processing delay at a host (S. Floyd and V. Jacobson, *On traffic phase effects in packet-switched
//! gateways*, 1992), which breaks the phase effects of drop-tail queues: packets of one flow would meet a full queue and those
//! of another never. Kernels on a quiet machine need it as much as simulated hosts: what they take for a packet varies by far
//! less than what a link takes.

use clock::{Duration, Instant};
use std::collections::BTreeMap;

/// A host takes at most the time of so many bytes on the slowest link of a route for a packet ...
const FULL_PACKET: u64 = 1500;
/// ... and at most this.
const LONGEST_PROCESSING: Duration = Duration::from_millis(1);

/// The longest that a host takes for a packet on a route whose slowest link has this rate, in bit/s.
pub fn longest_processing(slowest: u64) -> Duration {
    Duration::of_transmission(FULL_PACKET, slowest).min(LONGEST_PROCESSING)
}

/// Packets `P` that hosts `H` are processing. They leave in order; how long each takes is the caller's to draw.
#[derive(Debug)]
pub struct ProcessingJitter<H, P> {
    /// By host, when its last packet leaves; they leave in order.
    last: BTreeMap<H, Instant>,
    waiting: BTreeMap<(Instant, u64), P>,
    count: u64,
}

impl<H, P> Default for ProcessingJitter<H, P> {
    fn default() -> Self {
        Self { last: BTreeMap::new(), waiting: BTreeMap::new(), count: 0 }
    }
}

impl<H: Ord, P> ProcessingJitter<H, P> {
    /// A host takes `time` for a packet, or longer if one before it is still there.
    pub fn put(&mut self, now: Instant, host: H, time: Duration, packet: P) {
        let last = self.last.entry(host).or_insert(now);
        *last = (now + time).max(*last);
        self.count += 1;
        self.waiting.insert((*last, self.count), packet);
    }

    /// When the next packet leaves.
    pub fn next_event(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next packet that leaves by `now`, and when it does.
    pub fn poll(&mut self, now: Instant) -> Option<(Instant, P)> {
        let first = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), packet) = first.remove_entry();
        Some((at, packet))
    }
}

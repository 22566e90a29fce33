//! What is on a host's desk: packets that it is about to send. A computer takes some time for each, now more and now less;
//! without that, packets of one flow would meet a full queue and those of another never, only because of their phases (S.
//! Floyd and V. Jacobson, *On traffic phase effects in packet-switched gateways*, 1992, whose remedy this is). Kernels on a
//! quiet machine need it as much as simulated hosts: what they take for a packet varies by far less than what a link takes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use clock::{Duration, Instant, Rng};

/// Packets that wait until their hosts send them.
pub(crate) struct Desks<P> {
    rng: Rng,
    /// By address, when its last packet leaves; they leave in order.
    last: BTreeMap<IpAddr, Instant>,
    waiting: BTreeMap<(Instant, u64), P>,
    count: u64,
}

impl<P> Desks<P> {
    /// Empty ones.
    pub(crate) fn new(rng: Rng) -> Self {
        Self { rng, last: BTreeMap::new(), waiting: BTreeMap::new(), count: 0 }
    }

    /// The host with this address takes a time of at most `most` for a packet.
    pub(crate) fn put(&mut self, now: Instant, address: IpAddr, most: Duration, packet: P) {
        let last = self.last.entry(address).or_insert(now);
        *last = (now + most.mul_f64(self.rng.unit())).max(*last);
        self.count += 1;
        self.waiting.insert((*last, self.count), packet);
    }

    /// When the next packet leaves.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next packet.
    pub(crate) fn take(&mut self) -> Option<P> {
        self.waiting.pop_first().map(|(_, packet)| packet)
    }
}

//! When a path may send: the sender's queue of a path, released at the path's configured rate, so that the queue is
//! here, where packets can still be given to another path, and not in the network's first router.

use crate::packet::QueuedPacket;
use clock::{Duration, Instant};
use std::collections::VecDeque;

/// Of a configured rate, what is used: the links that are configured with exactly the rate they have would otherwise
/// keep whatever queue a burst has left in them for ever.
const USED: f64 = 0.975;

/// What a late timer may catch up with: packets that should have left meanwhile leave at once.
const CATCH_UP: Duration = Duration::from_millis(5);

/// What is used of a configured rate, in bit/s.
pub(crate) fn used(rate: u64) -> u64 {
    ((rate as f64 * USED) as u64).max(1)
}

/// The queue and the clock of one path.
#[derive(Clone, Debug)]
pub(crate) struct Pacer<P> {
    rate: u64,
    /// When all that was released has left at the path's rate.
    clear_at: Instant,
    queue: VecDeque<QueuedPacket<P>>,
    queued: usize,
}

impl<P> Pacer<P> {
    /// For a path of this rate in bit/s.
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate: used(rate), clear_at: Instant::ZERO, queue: VecDeque::new(), queued: 0 }
    }

    /// From now on packets are released at this rate in bit/s.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.rate = rate.max(1);
    }

    /// The rate at which packets are released, in bit/s.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// When the path has sent all that waits, too.
    pub(crate) fn free_at(&self, now: Instant) -> Instant {
        self.clear_at.max(now) + Duration::of_transmission(self.queued as u64, self.rate)
    }

    /// When the path has sent all that was released: what goes past the queue would leave then.
    pub(crate) fn clear_at(&self) -> Instant {
        self.clear_at
    }

    /// Bytes that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes of the packet that is next.
    pub(crate) fn first(&self) -> Option<usize> {
        self.queue.front().map(|packet| packet.wire)
    }

    /// Appends to the queue.
    pub(crate) fn push(&mut self, packet: QueuedPacket<P>) {
        self.queued += packet.wire;
        self.queue.push_back(packet);
    }

    /// The next packet if it may leave now; it counts as sent.
    pub(crate) fn release(&mut self, now: Instant) -> Option<QueuedPacket<P>> {
        if self.clear_at > now {
            return None;
        }
        let packet = self.queue.pop_front()?;
        self.queued -= packet.wire;
        self.sent(packet.wire, now);
        Some(packet)
    }

    /// Counts a packet that did not wait.
    pub(crate) fn sent(&mut self, wire: usize, now: Instant) {
        self.clear_at = self.clear_at.max(now - CATCH_UP) + Duration::of_transmission(wire as u64, self.rate);
    }

    /// When the next packet may leave; `None` while none waits.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.clear_at)
    }

    /// Takes all that waits, in order.
    pub(crate) fn take(&mut self) -> VecDeque<QueuedPacket<P>> {
        self.queued = 0;
        std::mem::take(&mut self.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(wire: usize) -> QueuedPacket<()> {
        crate::packet::datagram((), None, wire)
    }

    proptest! {
        /// However late the timers are, no more leaves in any span of time than the rate, what may be caught up with
        /// and one packet; and while packets wait, no less, if timers are no later than that.
        #[test]
        fn the_rate_holds_in_every_span(
            rate in 100_000u64..100_000_000,
            sizes in prop::collection::vec(60usize..1500, 1..200),
            lateness in prop::collection::vec(0u64..5_000_000, 1..50),
        ) {
            let mut pacer = Pacer::new(rate);
            let start = Instant::ZERO + Duration::from_secs(1);
            sizes.iter().for_each(|size| pacer.push(packet(*size)));
            let total: usize = sizes.iter().sum();
            let mut sent = Vec::new();
            let mut late = lateness.iter().cycle();
            let mut now = start;
            loop {
                while let Some(packet) = pacer.release(now) {
                    sent.push((now, packet.wire));
                }
                let Some(at) = pacer.poll_timeout() else { break };
                prop_assert!(at > now);
                now = at + Duration::from_nanos(*late.next().unwrap());
            }
            prop_assert_eq!(sent.len(), sizes.len());
            let transmission = |bytes: usize| bytes as f64 * 8.0 / pacer.rate() as f64;
            for first in 0..sent.len() {
                let mut bytes = 0;
                for last in first..sent.len() {
                    bytes += sent[last].1;
                    let span = (sent[last].0 - sent[first].0).as_secs_f64();
                    prop_assert!(transmission(bytes - sent[last].1) <= span + 0.005 + 1e-6);
                }
            }
            let all = (sent[sent.len() - 1].0 - start).as_secs_f64();
            prop_assert!(all <= transmission(total) + 0.005 + 1e-6);
        }
    }

    #[test]
    fn the_queue_counts_into_when_the_path_is_free() {
        let mut pacer = Pacer::new(1_000_000);
        let now = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(pacer.free_at(now), now);
        pacer.push(packet(1500));
        pacer.push(packet(1500));
        assert_eq!(pacer.free_at(now), now + Duration::of_transmission(3000, 975_000));
        assert_eq!(pacer.queued(), 3000);
        assert_eq!(pacer.take().len(), 2);
        assert_eq!((pacer.free_at(now), pacer.poll_timeout()), (now, None));
    }
}

//! Packets in the order of their arrival: what most disciplines are made of.

use std::collections::VecDeque;

use clock::{Duration, Instant};

use crate::Queued;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Fifo<P> {
    #[inline]
    pub(crate) fn push(&mut self, packet: Queued<P>) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    #[inline]
    pub(crate) fn packets(&self) -> usize {
        self.packets.len()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long the first packet has waited; no time if there is none.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |packet| now - packet.since)
    }

    pub(crate) fn clear(&mut self, drop: &mut impl FnMut(Queued<P>)) {
        self.bytes = 0;
        self.packets.drain(..).for_each(drop);
    }
}

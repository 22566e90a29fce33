//! The receiving side: a TCP receiver for each subflow, and over them the data in one order.

use clock::Instant;
use recovery::{Arrival, Reassembly};

use super::config::MptcpConfig;
use crate::config::TcpConfig;
use crate::mhip::PathArrivals;
use crate::packet::{BlockPool, Flags, Packet, expand};
use crate::receiver::{ReceiverStatistics, TcpReceiver};

/// The receiver.
#[derive(Clone, Debug)]
pub struct MptcpReceiver {
    subflows: Vec<TcpReceiver>,
    data: Reassembly,
    /// One beyond the highest place that arrived.
    high: u64,
    /// Places from the first missing one on that there is room for.
    window: u64,
    held: u64,
    most_held: u64,
    paths: Vec<PathArrivals>,
    statistics: ReceiverStatistics,
}

impl MptcpReceiver {
    /// The receiver for a sender with the same options.
    pub fn new(config: &MptcpConfig) -> Self {
        // The window is that of the data; the places of a subflow have none of their own (RFC 8684 §3.3.5).
        let subflow = TcpConfig { receiver_window: u32::MAX, ..(*config.tcp).clone() };
        let count = config.count();
        Self {
            subflows: vec![TcpReceiver::new(&subflow); count],
            data: Reassembly::default(),
            high: 0,
            window: u64::from(config.tcp.receiver_window).max(1),
            held: 0,
            most_held: 0,
            paths: vec![PathArrivals::default(); count],
            statistics: ReceiverStatistics::default(),
        }
    }

    /// Data packets delivered in order.
    pub fn delivered(&self) -> u64 {
        self.data.next()
    }

    /// Counters of the connection: what had arrived before on any path is a duplicate, and order is that of the data.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// What arrived on each path.
    pub fn paths(&self) -> &[PathArrivals] {
        &self.paths
    }

    /// The most packets that were held out of order at once.
    pub fn most_held(&self) -> u64 {
        self.most_held
    }

    /// A packet arrived. Ask for the acknowledgment with [`MptcpReceiver::poll_transmit`].
    #[inline]
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        let index = usize::from(packet.path);
        let (Some(subflow), Some(path)) = (self.subflows.get_mut(index), self.paths.get_mut(index)) else { return };
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        self.statistics.marked += u64::from(packet.flags.has(Flags::MARKED));
        path.packets += 1;
        path.bytes += u64::from(packet.bytes);
        if !subflow.is_syn(packet) {
            let place = expand(packet.blocks, self.data.next());
            match self.data.receive(place, self.window) {
                Arrival::InOrder(count) => {
                    path.new += 1;
                    self.held -= count - 1;
                }
                Arrival::OutOfOrder => {
                    path.new += 1;
                    self.held += 1;
                    self.most_held = self.most_held.max(self.held);
                }
                Arrival::Duplicate => self.statistics.duplicates += 1,
                Arrival::OutsideWindow => {
                    // Not kept, so not acknowledged by the subflow either.
                    path.refused += 1;
                    return;
                }
            }
            if place >= self.high {
                self.high = place + 1;
            } else if !packet.flags.has(Flags::RETRANSMISSION) {
                self.statistics.reordered += 1;
                path.reordered += 1;
            }
        }
        subflow.handle_input(now, packet);
    }

    /// Whether a deadline has passed: then [`MptcpReceiver::poll_transmit`] has acknowledgments.
    pub fn handle_timeout(&mut self, now: Instant) {
        for subflow in &mut self.subflows {
            subflow.handle_timeout(now);
        }
    }

    /// When [`MptcpReceiver::handle_timeout`] is to be called, if ever.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.subflows.iter().filter_map(TcpReceiver::poll_timeout).min()
    }

    /// The next acknowledgment to send now, if one is due; it returns on the path of what it answers.
    #[inline]
    pub fn poll_transmit(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        for (path, subflow) in (0..).zip(&mut self.subflows) {
            if let Some(mut answer) = subflow.poll_transmit(pool) {
                answer.path = path;
                answer.blocks = pool.put_data(answer.blocks, self.data.next() as u32);
                return Some(answer);
            }
        }
        None
    }
}

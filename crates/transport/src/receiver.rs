//! The receiving side of a TCP connection: what arrived, and when to say so.

use clock::{Duration, Instant};
use recovery::{Arrival, MAX_BLOCKS, Reassembly};

use crate::config::{Recovery, TcpConfig};
use crate::packet::{BlockPool, Blocks, Flags, NO_BLOCKS, Packet, expand};

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// Data packets that arrived.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// First transmissions that arrived after one sent later (RFC 4737 §3).
    pub reordered: u64,
    /// Packets that arrived marked.
    pub marked: u64,
}

/// A receiver: takes data, gives acknowledgments.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    reassembly: Reassembly,
    /// One beyond the highest position that arrived.
    high: u64,
    selective: bool,
    delay: Option<Duration>,
    /// In-order packets not acknowledged yet, and until when they wait.
    waiting: u32,
    deadline: Instant,
    /// An acknowledgment is due now, for this position.
    due: Option<u64>,
    /// The time to echo: of the first packet since the last acknowledgment (RFC 7323 §4.3).
    echo: Instant,
    /// Between a mark and the sender's answer (RFC 3168 §6.1.3).
    marked: bool,
    duplicate: bool,
    ack_size: u32,
    window: u64,
    statistics: ReceiverStatistics,
}

impl TcpReceiver {
    /// The receiver for a sender with the same options.
    pub fn new(config: &TcpConfig) -> Self {
        Self {
            reassembly: Reassembly::default(),
            high: 0,
            selective: config.recovery == Recovery::Sack,
            delay: config.delayed_ack,
            waiting: 0,
            deadline: Instant::FAR_FUTURE,
            due: None,
            echo: Instant::ZERO,
            marked: false,
            duplicate: false,
            ack_size: config.header_size,
            window: u64::from(config.receiver_window).max(1),
            statistics: ReceiverStatistics::default(),
        }
    }

    /// Data packets delivered in order, without the SYN.
    pub fn delivered(&self) -> u64 {
        self.reassembly.next().saturating_sub(1)
    }

    /// Whether `packet` is the SYN.
    #[inline]
    pub(crate) fn is_syn(&self, packet: &Packet) -> bool {
        packet.position == 0 && expand(0, self.reassembly.next()) == 0
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// A data packet arrived. Ask for the acknowledgment with [`TcpReceiver::poll_transmit`].
    #[inline]
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        let position = expand(packet.position, self.reassembly.next());
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        if packet.flags.has(Flags::REDUCED) {
            self.marked = false;
        }
        if packet.flags.has(Flags::MARKED) {
            self.marked = true;
            self.statistics.marked += 1;
        }
        if position >= self.high {
            self.high = position + 1;
        } else if !packet.flags.has(Flags::RETRANSMISSION) {
            self.statistics.reordered += 1;
        }
        let had_hole = self.reassembly.has_hole();
        let arrival = self.reassembly.receive(position, self.window);
        if self.waiting == 0 {
            self.echo = packet.time;
        }
        let at_once = match arrival {
            // RFC 5681 §4.2: at once when a hole is filled, fully or in part, and for what is out of order.
            Arrival::InOrder(_) => had_hole || position == 0,
            Arrival::OutOfOrder => {
                self.echo = packet.time;
                true
            }
            Arrival::Duplicate => {
                self.statistics.duplicates += 1;
                self.duplicate = true;
                self.echo = packet.time;
                true
            }
            Arrival::OutsideWindow => true,
        };
        self.waiting += 1;
        match self.delay {
            // RFC 1122 §4.2.3.2: at least every second packet.
            Some(delay) if !at_once && self.waiting < 2 => self.deadline = now + delay,
            _ => self.due = Some(position),
        }
    }

    /// Whether a deadline has passed: then [`TcpReceiver::poll_transmit`] has an acknowledgment.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.deadline {
            self.deadline = Instant::FAR_FUTURE;
            if self.waiting > 0 {
                self.due = Some(self.reassembly.next().saturating_sub(1));
            }
        }
    }

    /// When [`TcpReceiver::handle_timeout`] is to be called: the delayed acknowledgment is the only timer.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    /// The acknowledgment to send now, if one is due. Flow and hop are the caller's to set.
    #[inline]
    pub fn poll_transmit(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        let position = self.due.take()?;
        self.waiting = 0;
        self.deadline = Instant::FAR_FUTURE;
        let blocks = if self.selective && self.reassembly.has_hole() { self.blocks(position, pool) } else { NO_BLOCKS };
        let flags =
            Flags::ACK.with_if(Flags::ECHO, self.marked).with_if(Flags::DUPLICATE, std::mem::take(&mut self.duplicate));
        let next = self.reassembly.next();
        let bytes = self.ack_size;
        Some(Packet { time: self.echo, flow: 0, hop: 0, position: next as u32, blocks, bytes, flags, path: 0 })
    }

    fn blocks(&mut self, position: u64, pool: &mut BlockPool) -> u32 {
        let mut full = [(0, 0); MAX_BLOCKS];
        let count = self.reassembly.blocks(position, &mut full);
        if count == 0 {
            return NO_BLOCKS;
        }
        let blocks = full.map(|(left, right)| (left as u32, right as u32));
        pool.put(Blocks::new(count as u8, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(position: u32, ms: u64) -> Packet {
        let time = Instant::ZERO + Duration::from_millis(ms);
        Packet { time, flow: 0, hop: 0, position, blocks: NO_BLOCKS, bytes: 1500, flags: Flags::default(), path: 0 }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_lone_one_after_the_delay() {
        let mut receiver = TcpReceiver::new(&TcpConfig::default());
        let mut pool = BlockPool::default();
        receiver.handle_input(at(10), &data(0, 0));
        assert_eq!(receiver.poll_transmit(&mut pool).map(|p| p.position), Some(1)); // the SYN, at once
        receiver.handle_input(at(20), &data(1, 1));
        assert!(receiver.poll_transmit(&mut pool).is_none());
        receiver.handle_input(at(21), &data(2, 2));
        let ack = receiver.poll_transmit(&mut pool).unwrap();
        assert_eq!((ack.position, ack.time), (3, at(1))); // echoes the first of the two
        receiver.handle_input(at(30), &data(3, 3));
        assert_eq!(receiver.poll_timeout(), Some(at(70)));
        receiver.handle_timeout(at(70));
        assert_eq!(receiver.poll_transmit(&mut pool).map(|p| p.position), Some(4));
        assert_eq!(receiver.poll_timeout(), None);
    }

    #[test]
    fn holes_are_reported_at_once_with_blocks() {
        let mut receiver = TcpReceiver::new(&TcpConfig::default());
        let mut pool = BlockPool::default();
        receiver.handle_input(at(0), &data(0, 0));
        let _ = receiver.poll_transmit(&mut pool);
        receiver.handle_input(at(1), &data(2, 0));
        let ack = receiver.poll_transmit(&mut pool).unwrap();
        assert_eq!(ack.position, 1);
        assert_eq!(pool.take(ack.blocks).as_slice(), [(2, 3)]);
        receiver.handle_input(at(2), &data(1, 0));
        let ack = receiver.poll_transmit(&mut pool).unwrap();
        assert_eq!((ack.position, ack.blocks), (3, NO_BLOCKS));
        assert_eq!(receiver.statistics().reordered, 1);
        assert_eq!(receiver.delivered(), 2);
    }
}

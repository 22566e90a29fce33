//! The receiver: a bounded buffer of what is out of order, and acknowledgments that return on the path of the packet
//! that they answer, in the last generation with selective blocks and with what triggered them (SACK with SMART).

use clock::Instant;
use recovery::{Arrival, MAX_BLOCKS, Reassembly};

use super::config::{Generation, MhipConfig};
use super::heartbeats::{self, HEARTBEAT};
use crate::packet::{BlockPool, Blocks, Flags, NO_BLOCKS, Packet, expand};
use crate::receiver::ReceiverStatistics;

/// What the receiver did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// So many packets are in order now, this one and those that waited for it.
    Delivered(u64),
    /// It waits for what is missing before it.
    Waits,
    /// There was no room: as good as lost.
    Full,
    /// It had arrived before.
    Duplicate,
}

/// Packets out of order, up to a limit (ALGORITHMS §6.5, M15). The packet that fills the first hole is always taken.
#[derive(Clone, Debug, Default)]
pub struct ReceiveBuffer {
    reassembly: Reassembly,
    capacity: u64,
    held: u64,
    most: u64,
}

impl ReceiveBuffer {
    /// Room for `capacity` packets out of order.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// The first packet that is missing.
    pub fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// Packets held.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The most that were ever held at once.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Takes a packet, if there is room.
    pub fn receive(&mut self, position: u64) -> Stored {
        if position > self.next() && self.held >= self.capacity {
            return Stored::Full;
        }
        match self.reassembly.receive(position, u64::MAX) {
            Arrival::InOrder(run) => {
                self.held -= run - 1;
                Stored::Delivered(run)
            }
            Arrival::OutOfOrder => {
                self.held += 1;
                self.most = self.most.max(self.held);
                Stored::Waits
            }
            Arrival::Duplicate => Stored::Duplicate,
            Arrival::OutsideWindow => Stored::Full,
        }
    }
}

/// What arrived on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathArrivals {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets taken that had not arrived before.
    pub new: u64,
    /// First transmissions that arrived later than one sent after them, on whatever path (RFC 4737 §3). Of packets that
    /// arrive on two paths at the same instant none is later.
    pub reordered: u64,
    /// Packets refused because the buffer was full.
    pub refused: u64,
}

/// The receiver of any generation.
#[derive(Clone, Debug)]
pub struct MhipReceiver {
    buffer: ReceiveBuffer,
    /// One beyond the highest position that arrived, what it was before the present instant, and that instant.
    high: u64,
    high_before: u64,
    latest: Instant,
    selective: bool,
    ack_size: u32,
    answer: Option<Packet>,
    /// What triggered the answer; none for a packet that was refused.
    trigger: Option<u64>,
    paths: Vec<PathArrivals>,
    statistics: ReceiverStatistics,
}

impl MhipReceiver {
    /// The receiver for a sender with the same options.
    pub fn new(config: &MhipConfig) -> Self {
        Self {
            buffer: ReceiveBuffer::new(config.buffer()),
            high: 0,
            high_before: 0,
            latest: Instant::ZERO,
            selective: config.generation == Generation::Final,
            ack_size: config.tcp.header_size,
            answer: None,
            trigger: None,
            paths: vec![PathArrivals::default(); config.paths.len().max(1)],
            statistics: ReceiverStatistics::default(),
        }
    }

    /// Data packets delivered in order, without the SYN.
    pub fn delivered(&self) -> u64 {
        self.buffer.next().saturating_sub(1)
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// What arrived on each path.
    pub fn paths(&self) -> &[PathArrivals] {
        &self.paths
    }

    /// The most packets that were held out of order at once.
    pub fn most_held(&self) -> u64 {
        self.buffer.most()
    }

    /// A packet arrived: the answer to it is due.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        if packet.flags.has(HEARTBEAT) {
            self.answer = Some(heartbeats::answer(packet, self.buffer.next()));
            return;
        }
        let position = expand(packet.position, self.buffer.next());
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        let mut on_path = PathArrivals { packets: 1, bytes: packet.bytes.into(), ..PathArrivals::default() };
        if now > self.latest {
            (self.latest, self.high_before) = (now, self.high);
        }
        if position >= self.high {
            self.high = position + 1;
        } else if position < self.high_before && !packet.flags.has(Flags::RETRANSMISSION) {
            self.statistics.reordered += 1;
            on_path.reordered = 1;
        }
        let stored = self.buffer.receive(position);
        let mut flags = Flags::ACK;
        match stored {
            Stored::Delivered(_) | Stored::Waits => on_path.new = 1,
            Stored::Full => on_path.refused = 1,
            Stored::Duplicate => {
                self.statistics.duplicates += 1;
                flags = flags.with(Flags::DUPLICATE);
            }
        }
        if let Some(path) = self.paths.get_mut(usize::from(packet.path)) {
            path.packets += on_path.packets;
            path.bytes += on_path.bytes;
            path.new += on_path.new;
            path.reordered += on_path.reordered;
            path.refused += on_path.refused;
        }
        // What was refused is told of by the cumulative acknowledgment only: no SMART, nor an echo of its time.
        self.trigger = (stored != Stored::Full).then_some(position);
        self.answer = Some(Packet {
            time: packet.time,
            flow: 0,
            hop: 0,
            position: self.buffer.next() as u32,
            blocks: NO_BLOCKS,
            bytes: self.ack_size,
            flags: flags.with_if(Flags::REFUSED, stored == Stored::Full),
            path: packet.path,
        });
    }

    /// The acknowledgment to send now, if one is due. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        let mut answer = self.answer.take()?;
        if answer.flags.has(HEARTBEAT) {
            return Some(answer);
        }
        if self.selective && (self.buffer.held() > 0 || answer.flags.has(Flags::DUPLICATE)) {
            let mut full = [(0, 0); MAX_BLOCKS];
            let count = self.buffer.reassembly.blocks(self.trigger.unwrap_or(0), &mut full);
            let blocks = full.map(|(left, right)| (left as u32, right as u32));
            let trigger = self.trigger.map(|position| position as u32);
            answer.blocks = pool.put(Blocks::new(count as u8, blocks).with_trigger(trigger));
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes in whatever order, the buffer gives each packet once, in order, and holds its limit.
        #[test]
        fn everything_is_delivered_once(
            capacity in 0u64..9,
            arrivals in prop::collection::vec(0u64..24, 1..200),
        ) {
            let mut buffer = ReceiveBuffer::new(capacity);
            let mut held = std::collections::BTreeSet::new();
            let mut next = 0;
            for position in arrivals {
                let expected = if position < next || held.contains(&position) && held.len() < capacity as usize {
                    Stored::Duplicate
                } else if position == next {
                    let before = next;
                    next += 1;
                    while held.remove(&next) {
                        next += 1;
                    }
                    Stored::Delivered(next - before)
                } else if held.len() >= capacity as usize {
                    Stored::Full
                } else {
                    held.insert(position);
                    Stored::Waits
                };
                prop_assert_eq!(buffer.receive(position), expected);
                prop_assert_eq!((buffer.next(), buffer.held()), (next, held.len() as u64));
                prop_assert!(buffer.held() <= capacity);
            }
        }
    }
}

//! The receiver of SCTP: what arrived, in ranges, and SACKs that return on the path of the last packet.

use clock::{Duration, Instant};

use super::config::SctpConfig;
use super::report::MAX_GAPS;
use crate::mhip::PathArrivals;
use crate::packet::{BlockPool, Flags, NO_BLOCKS, Packet, expand};
use crate::receiver::ReceiverStatistics;

/// IPv4 header and common header.
const HEADERS: u32 = 20 + 12;
/// A SACK chunk without its blocks (RFC 9260 §3.3.4); the NR-SACK's has 4 bytes more.
const SACK: u32 = 16;
/// A HEARTBEAT ACK, also an INIT ACK here.
const HEARTBEAT_ACK: u32 = 44;

/// The receiver.
#[derive(Clone, Debug)]
pub struct SctpReceiver {
    /// The first TSN that has not arrived.
    next: u64,
    /// One beyond the highest that arrived.
    high: u64,
    /// What arrived beyond `next`: `left..right`, ascending, apart.
    ranges: Vec<(u64, u64)>,
    /// Chunks in `ranges`.
    beyond: u64,
    most_held: u64,
    ordered: bool,
    nr_sack: bool,
    /// DAC.
    patient: bool,
    delay: Option<Duration>,
    payload: u64,
    buffer: u64,
    /// Packets since the last SACK.
    waiting: u8,
    deadline: Instant,
    due: bool,
    heartbeat: bool,
    /// Time and path of the packet that the SACK answers.
    echo: Instant,
    path: u8,
    flags: Flags,
    paths: Vec<PathArrivals>,
    statistics: ReceiverStatistics,
}

impl SctpReceiver {
    /// The receiver for a sender with the same options.
    pub fn new(config: &SctpConfig) -> Self {
        Self {
            next: 1,
            high: 1,
            ranges: Vec::new(),
            beyond: 0,
            most_held: 0,
            ordered: config.ordered,
            nr_sack: config.nr_sack,
            patient: config.delayed_ack_for_cmt,
            delay: config.delayed_ack,
            payload: config.payload().into(),
            buffer: config.receive_buffer,
            waiting: 0,
            deadline: Instant::FAR_FUTURE,
            due: false,
            heartbeat: false,
            echo: Instant::ZERO,
            path: 0,
            flags: Flags::ACK,
            paths: vec![PathArrivals::default(); config.paths.max(1)],
            statistics: ReceiverStatistics::default(),
        }
    }

    /// Messages delivered to the application: in order or, unordered, all that arrived.
    pub fn delivered(&self) -> u64 {
        self.next - 1 + if self.ordered { 0 } else { self.beyond }
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// What arrived on each path.
    pub fn paths(&self) -> &[PathArrivals] {
        &self.paths
    }

    /// The most chunks that waited for others at once.
    pub fn most_held(&self) -> u64 {
        self.most_held
    }

    /// Chunks that wait for others before they can be delivered.
    fn held(&self) -> u64 {
        if self.ordered { self.beyond } else { 0 }
    }

    /// A packet arrived: data, or at position 0 a heartbeat or INIT.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        self.echo = packet.time;
        self.path = packet.path;
        let tsn = expand(packet.position, self.next);
        if packet.position == 0 && packet.bytes <= HEADERS + HEARTBEAT_ACK {
            self.heartbeat = true;
            return;
        }
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        let mut on_path = PathArrivals { packets: 1, bytes: packet.bytes.into(), ..PathArrivals::default() };
        if tsn >= self.high {
            self.high = tsn + 1;
        } else if !packet.flags.has(Flags::RETRANSMISSION) {
            self.statistics.reordered += 1;
            on_path.reordered = 1;
        }
        let had_gap = !self.ranges.is_empty();
        let mut at_once = self.delay.is_none();
        self.flags = Flags::ACK;
        let room = (self.held() + 1) * self.payload <= self.buffer;
        if self.has(tsn) {
            self.statistics.duplicates += 1;
            self.flags = self.flags.with(Flags::DUPLICATE);
            at_once = true; // RFC 9260 §6.2.
        } else if self.ordered && tsn > self.next && !room {
            on_path.refused = 1;
            self.flags = self.flags.with(Flags::REFUSED);
            at_once = true;
        } else {
            on_path.new = 1;
            self.insert(tsn);
            self.most_held = self.most_held.max(self.held());
            // RFC 9260 §6.7: what is missing is reported at once; not so with DAC.
            at_once |= !self.patient && (had_gap || !self.ranges.is_empty());
        }
        if let Some(path) = self.paths.get_mut(usize::from(packet.path)) {
            path.packets += on_path.packets;
            path.bytes += on_path.bytes;
            path.new += on_path.new;
            path.reordered += on_path.reordered;
            path.refused += on_path.refused;
        }
        self.waiting = self.waiting.saturating_add(1);
        if at_once || self.waiting >= 2 {
            self.due = true;
            self.deadline = Instant::FAR_FUTURE;
        } else if let Some(delay) = self.delay {
            self.deadline = self.deadline.min(now + delay);
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.deadline {
            self.deadline = Instant::FAR_FUTURE;
            self.due = true;
        }
    }

    /// When [`SctpReceiver::handle_timeout`] is to be called, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    /// The SACK or answer to a heartbeat to send now, if one is due. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        let heartbeat = std::mem::take(&mut self.heartbeat);
        if !heartbeat && !std::mem::take(&mut self.due) {
            return None;
        }
        let (number, report) = pool.report();
        report.heartbeat = heartbeat;
        report.packets = if heartbeat { 0 } else { std::mem::take(&mut self.waiting) };
        report.delivered = self.nr_sack && !self.ordered;
        report.window = self.buffer.saturating_sub(self.held() * self.payload);
        let bytes = if heartbeat {
            HEADERS + HEARTBEAT_ACK
        } else {
            let first = self.ranges.iter().take(MAX_GAPS);
            report.gaps.extend(first.map(|(left, right)| (*left as u32, *right as u32)));
            HEADERS + SACK + if self.nr_sack { 4 } else { 0 } + 4 * report.gaps.len() as u32
        };
        debug_assert_ne!(number, NO_BLOCKS);
        Some(Packet {
            time: self.echo,
            flow: 0,
            hop: 0,
            position: self.next as u32,
            blocks: number,
            bytes,
            flags: std::mem::replace(&mut self.flags, Flags::ACK),
            path: self.path,
        })
    }

    fn has(&self, tsn: u64) -> bool {
        tsn < self.next || {
            let after = self.ranges.partition_point(|(left, _)| *left <= tsn);
            after.checked_sub(1).and_then(|index| self.ranges.get(index)).is_some_and(|(_, right)| tsn < *right)
        }
    }

    /// Adds one that is not there.
    fn insert(&mut self, tsn: u64) {
        if tsn == self.next {
            self.next += 1;
            if let Some((left, right)) = self.ranges.first().copied()
                && left == self.next
            {
                self.next = right;
                self.beyond -= right - left;
                self.ranges.remove(0);
            }
            return;
        }
        self.beyond += 1;
        let after = self.ranges.partition_point(|(left, _)| *left <= tsn);
        let joins_before = after.checked_sub(1).filter(|before| self.ranges[*before].1 == tsn);
        let joins_after = self.ranges.get(after).is_some_and(|(left, _)| *left == tsn + 1);
        match (joins_before, joins_after) {
            (Some(before), true) => {
                self.ranges[before].1 = self.ranges[after].1;
                self.ranges.remove(after);
            }
            (Some(before), false) => self.ranges[before].1 += 1,
            (None, true) => self.ranges[after].0 = tsn,
            (None, false) => self.ranges.insert(after, (tsn, tsn + 1)),
        }
    }
}

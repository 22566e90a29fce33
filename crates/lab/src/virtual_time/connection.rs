//! A download by simulated TCP that speaks real packets: both ends, and what the client got.
//!
//! The endpoints are `transport`'s, which count packets and exchange plain values. Here each of these becomes an IP packet
//! with sequence numbers, options (RFC 7323 timestamps, RFC 2018 selective acknowledgments), checksums and data, and every packet
//! that arrives is read again. Unlike a web server's client, it is the server who opens the connection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use sha2::{Digest as _, Sha256};
use transport::{BlockPool, Flags, NO_BLOCKS, Packet, TcpConfig, TcpReceiver, TcpSender, expand};
use wire::ip::{self, IpPacket, protocol};
use wire::tcp::{self, Header, Segment};

use super::numbers::Numbers;
use super::pattern::Pattern;

/// The servers' port.
pub(crate) const SERVER_PORT: u16 = 8080;
/// The port of the client of the first flow; the others follow.
pub(crate) const CLIENT_PORT: u16 = 40_000;
/// The shift of windows (RFC 7323 §2). The receiver always offers all that the sender's configuration allows; what is between
/// them may offer less.
const WINDOW_SHIFT: u8 = 10;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

/// A connection, with its file.
pub(crate) struct Connection {
    addresses: [IpAddr; 2],
    client_port: u16,
    start: Instant,
    started: bool,
    numbers: Numbers,
    /// The client's own initial sequence number.
    client_isn: u32,
    sender: TcpSender,
    receiver: TcpReceiver,
    pool: BlockPool,
    /// Near which the sender's positions and acknowledgments are.
    sent: u64,
    acknowledged: u64,
    /// Whether data has arrived, so that acknowledgments of nothing are no answers to a SYN.
    synchronized: bool,
    pattern: Pattern,
    arrived: Arrived,
    /// Packets whose checksum was wrong.
    corrupt: u64,
}

/// What the client has got in order, and what waits for bytes before it.
struct Arrived {
    bytes: u64,
    held: BTreeMap<u64, Vec<u8>>,
    hash: Sha256,
    first: Option<Instant>,
    last: Instant,
    stall: Duration,
}

impl Connection {
    /// A connection that opens at `start`; `addresses` are those of the server and the client. `config.data` is the size of the file.
    pub(crate) fn new(number: u16, addresses: [IpAddr; 2], config: TcpConfig, start: Instant, mut rng: Rng) -> Self {
        let numbers =
            Numbers { isn: rng.next_u64() as u32, mss: config.mss().into(), total: config.data.unwrap_or(u64::MAX) };
        let (client_isn, pattern) = (rng.next_u64() as u32, Pattern(rng.next_u64()));
        Self {
            addresses,
            client_port: CLIENT_PORT.saturating_add(number),
            start,
            started: false,
            numbers,
            client_isn,
            receiver: TcpReceiver::new(&config),
            sender: TcpSender::new(Arc::new(config), rng),
            pool: BlockPool::default(),
            sent: 0,
            acknowledged: 0,
            synchronized: false,
            pattern,
            arrived: Arrived {
                bytes: 0,
                held: BTreeMap::new(),
                hash: Sha256::new(),
                first: None,
                last: start,
                stall: Duration::ZERO,
            },
            corrupt: 0,
        }
    }

    /// The port that tells it from others.
    pub(crate) fn client_port(&self) -> u16 {
        self.client_port
    }

    /// Its ends.
    pub(crate) fn address(&self, end: End) -> IpAddr {
        match end {
            End::Server => self.addresses[0],
            End::Client => self.addresses[1],
        }
    }

    /// Whether the client has the whole file.
    pub(crate) fn is_complete(&self) -> bool {
        self.arrived.bytes >= self.numbers.total
    }

    /// Bytes that the client's program got.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.bytes
    }

    /// When the first byte arrived.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.arrived.first
    }

    /// When the last one did; before the first, the start.
    pub(crate) fn last(&self) -> Instant {
        self.arrived.last
    }

    /// Stalls are counted anew from now.
    pub(crate) fn restart_stalls(&mut self, now: Instant) {
        self.arrived.stall = Duration::ZERO;
        self.arrived.last = now;
    }

    /// The longest time in which nothing arrived, if `end` is the end.
    pub(crate) fn stall(&self, end: Instant) -> Duration {
        let open = if self.is_complete() { Duration::ZERO } else { end.saturating_since(self.arrived.last) };
        self.arrived.stall.max(open)
    }

    /// Whether what arrived has the SHA-256 of as many bytes of the file.
    pub(crate) fn is_identical(&self) -> bool {
        let mut hash = Sha256::new();
        let mut block = Vec::new();
        let mut offset = 0;
        while offset < self.arrived.bytes {
            block.clear();
            let length = usize::try_from(self.arrived.bytes - offset).unwrap_or(usize::MAX).min(1 << 16);
            self.pattern.append(offset, length, &mut block);
            hash.update(&block);
            offset += length as u64;
        }
        self.corrupt == 0 && hash.finalize() == self.arrived.hash.clone().finalize()
    }

    /// An IP packet of this connection has arrived at one of its ends.
    pub(crate) fn handle_input(&mut self, now: Instant, end: End, packet: &IpPacket<'_>) {
        let Ok(segment) = Segment::parse(packet.payload()) else { return };
        if !segment.checksum_is_right(packet.src(), packet.dst()) {
            self.corrupt += 1;
            return;
        }
        let time = |stamp: u32| Instant::from_nanos(expand(stamp, now.as_nanos() / 1000).saturating_mul(1000));
        let (value, echo) = segment.timestamps().unwrap_or_default();
        let plain = Packet {
            time: time(if end == End::Client { value } else { echo }),
            flow: 0,
            hop: 0,
            position: 0,
            blocks: NO_BLOCKS,
            bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            flags: Flags::default(),
            path: 0,
        };
        match end {
            End::Client => self.data(now, plain, &segment),
            End::Server => self.acknowledgment(now, plain, &segment),
        }
    }

    fn data(&mut self, now: Instant, packet: Packet, segment: &Segment<'_>) {
        let mut position = 0;
        if !segment.flags().contains(tcp::Flags::SYN) {
            self.synchronized = true;
            let offset = self.numbers.offset_of(segment.seq(), self.arrived.bytes);
            position = self.numbers.position(offset);
            self.arrived.take(now, offset, segment.payload());
        }
        self.receiver.handle_input(now, &Packet { position: position as u32, ..packet });
    }

    fn acknowledgment(&mut self, now: Instant, packet: Packet, segment: &Segment<'_>) {
        let offset = self.numbers.offset_of(segment.ack(), self.acknowledged);
        self.acknowledged = self.acknowledged.max(offset.min(self.numbers.total));
        let position = |sequence| self.numbers.position(self.numbers.offset_of(sequence, self.acknowledged)) as u32;
        let blocks: Vec<(u32, u32)> =
            segment.sack_blocks().map(|block| (position(block.start), position(block.end))).collect();
        let acked = self.numbers.position(offset);
        let packet = Packet { position: acked as u32, flags: Flags::ACK, ..packet };
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        let shift = if segment.flags().contains(tcp::Flags::SYN) { 0 } else { WINDOW_SHIFT };
        self.sender.set_receiver_window(acked, (u64::from(segment.window()) << shift) / self.numbers.mss);
        self.sender.handle_input(now, &packet, &blocks);
    }

    /// Does what is due by now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if !self.started && now >= self.start {
            self.started = true;
            self.sender.start(now);
        }
        if self.sender.retransmission_deadline() <= now || self.sender.send_deadline() <= now {
            self.sender.handle_timeout(now);
        }
        self.receiver.handle_timeout(now);
    }

    /// When [`Connection::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Instant {
        if !self.started {
            return self.start;
        }
        let receiver = self.receiver.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        self.sender.retransmission_deadline().min(self.sender.send_deadline()).min(receiver)
    }

    /// The next IP packet, and the end that sends it.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(End, Vec<u8>)> {
        if let Some(packet) = self.sender.poll_transmit(now) {
            return Some((End::Server, self.data_packet(now, &packet)));
        }
        let packet = self.receiver.poll_transmit(&mut self.pool)?;
        Some((End::Client, self.acknowledgment_packet(now, &packet)))
    }

    fn data_packet(&mut self, now: Instant, packet: &Packet) -> Vec<u8> {
        let position = expand(packet.position, self.sent);
        self.sent = self.sent.max(position);
        let offset = self.numbers.offset(position);
        let mut options = Vec::new();
        let mut header = Header {
            src_port: SERVER_PORT,
            dst_port: self.client_port,
            seq: self.numbers.sequence(offset),
            ack: self.client_isn.wrapping_add(1),
            flags: tcp::Flags::ACK,
            window: u16::MAX,
            ..Header::default()
        };
        if position == 0 {
            (header.seq, header.ack, header.flags) = (self.numbers.isn, 0, tcp::Flags::SYN);
            self.open(&mut options);
        }
        timestamps(&mut options, now, Instant::ZERO);
        let mut data = Vec::new();
        self.pattern.append(offset, self.numbers.length(position), &mut data);
        self.emit(End::Server, &Header { options: &options, ..header }, &data)
    }

    fn acknowledgment_packet(&mut self, now: Instant, packet: &Packet) -> Vec<u8> {
        let near = self.numbers.position(self.arrived.bytes);
        let sequence = |low: u32| self.numbers.sequence(self.numbers.offset(expand(low, near)));
        let mut options = Vec::new();
        let mut header = Header {
            src_port: self.client_port,
            dst_port: SERVER_PORT,
            seq: self.client_isn.wrapping_add(1),
            ack: sequence(packet.position),
            flags: tcp::Flags::ACK,
            window: u16::MAX,
            ..Header::default()
        };
        let blocks = self.pool.take(packet.blocks);
        if !self.synchronized {
            (header.seq, header.flags) = (self.client_isn, tcp::Flags::SYN | tcp::Flags::ACK);
            self.open(&mut options);
        }
        timestamps(&mut options, now, packet.time);
        if let [_, ..] = blocks.as_slice() {
            // RFC 2018 §3, after two bytes of padding.
            let length = 2 + 8 * blocks.as_slice().len();
            options.extend([1, 1, 5, u8::try_from(length).unwrap_or(2)]);
            for (left, right) in blocks.as_slice() {
                options.extend(sequence(*left).to_be_bytes());
                options.extend(sequence(*right).to_be_bytes());
            }
        }
        self.emit(End::Client, &Header { options: &options, ..header }, &[])
    }

    /// The options of a SYN: segment size, window scale, selective acknowledgments.
    fn open(&self, options: &mut Vec<u8>) {
        let [high, low] = u16::try_from(self.numbers.mss).unwrap_or(u16::MAX).to_be_bytes();
        options.extend([2, 4, high, low, 1, 3, 3, WINDOW_SHIFT, 1, 1, 4, 2]);
    }

    fn emit(&self, end: End, header: &Header<'_>, data: &[u8]) -> Vec<u8> {
        let [from, to] = match end {
            End::Server => self.addresses,
            End::Client => [self.addresses[1], self.addresses[0]],
        };
        let mut segment = Vec::new();
        let mut packet = Vec::new();
        // Lengths are those of packets that fit links, and both addresses are of one family.
        let done = header
            .emit(from, to, data, &mut segment)
            .and_then(|()| ip::emit(from, to, protocol::TCP, segment.len(), &mut packet));
        debug_assert!(done.is_ok(), "{done:?}");
        packet.extend_from_slice(&segment);
        packet
    }
}

impl Arrived {
    fn take(&mut self, now: Instant, offset: u64, data: &[u8]) {
        if data.is_empty() || offset + (data.len() as u64) <= self.bytes {
            return;
        }
        if offset > self.bytes {
            self.held.insert(offset, data.to_vec());
            return;
        }
        if self.first.is_some() {
            self.stall = self.stall.max(now.saturating_since(self.last));
        }
        self.first.get_or_insert(now);
        self.last = now;
        self.append(offset, data);
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() <= self.bytes) {
            let (offset, data) = entry.remove_entry();
            self.append(offset, &data);
        }
    }

    fn append(&mut self, offset: u64, data: &[u8]) {
        let known = usize::try_from(self.bytes - offset).unwrap_or(usize::MAX);
        let new = data.get(known..).unwrap_or_default();
        self.hash.update(new);
        self.bytes += new.len() as u64;
    }
}

/// The timestamps option in ticks of a microsecond, as Linux has them where a route asks for it (RFC 7323 §5.4 wants 1 ms and
/// more for the sake of old segments, which here are told by 64-bit offsets). Rounded up, so that what is sent again never seems older than it is.
fn timestamps(options: &mut Vec<u8>, value: Instant, echo: Instant) {
    let ticks = |time: Instant| (time.as_nanos().div_ceil(1000) as u32).to_be_bytes();
    options.extend([1, 1, 8, 10]);
    options.extend(ticks(value));
    options.extend(ticks(echo));
}

//! What programs send and get: datagrams whose content nobody else could have made, and small TCP connections.

use crate::plan::Flow;
use clock::{Duration, Instant, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wire::ip::{self, IpPacket, protocol};
use wire::{Hit, Lsi, tcp, udp};

/// Every content begins so; nothing that leaves a host may have it in clear.
pub(crate) const MARK: [u8; 8] = *b"\x9dcle\x00ar\xd9";
/// Mark, sender, receiver, flow, number, length.
const HEAD: usize = 8 + 2 + 2 + 2 + 4 + 2;
/// Segments of a TCP under way.
const WINDOW: u32 = 8;
const SEGMENT: u16 = 900;
/// The first byte of the first segment has the number 0, the SYN before it this one.
const ISN: u32 = u32::MAX;
const LEAST_RTO: Duration = Duration::from_millis(400);
const MOST_RTO: Duration = Duration::from_secs(4);

/// The identities of a world, by host.
pub(crate) struct Names {
    pub(crate) hits: Vec<Hit>,
}

impl Names {
    /// What IPv4 programs call a host.
    pub(crate) fn lsi(host: usize) -> Lsi {
        let [_, a, b, c] = (host as u32).wrapping_add(1).to_be_bytes();
        Lsi([1, a, b, c])
    }

    /// Whose address it is.
    fn host(&self, address: IpAddr) -> Option<usize> {
        match address {
            IpAddr::V6(address) => self.hits.iter().position(|hit| hit.address() == address),
            IpAddr::V4(address) => (0..self.hits.len()).find(|host| Self::lsi(*host).address() == address),
        }
    }
}

/// What carries something from one host to another.
pub(crate) struct Stream {
    pub(crate) plan: Flow,
    number: u16,
    /// When it wants to send next.
    pub(crate) due: Instant,
    /// Datagrams or segments sent for the first time.
    pub(crate) sent: u32,
    /// Datagrams: when each was sent, and when it arrived first.
    pub(crate) times: Vec<(Instant, Option<Instant>)>,
    /// Deliveries that were not the first.
    pub(crate) again: u64,
    tcp: Tcp,
}

/// Both ends of a TCP connection.
#[derive(Default)]
struct Tcp {
    open: bool,
    una: u32,
    next: u32,
    rto: Duration,
    expected: u32,
    above: BTreeSet<u32>,
    /// Of segments that have come in part: where each part begins, and ends.
    pieces: BTreeMap<u32, BTreeMap<u32, usize>>,
}

/// Why something that was delivered is wrong.
pub(crate) type Wrong = String;

/// What came of a delivery.
pub(crate) enum Delivered {
    /// A packet of a flow.
    Flow(usize),
    /// Something that hosts say themselves.
    Notice,
}

impl Stream {
    pub(crate) fn new(number: usize, plan: Flow) -> Self {
        Self {
            due: Instant::ZERO + Duration::from_millis(plan.start_ms),
            number: number as u16,
            plan,
            sent: 0,
            times: Vec::new(),
            again: 0,
            tcp: Tcp { rto: LEAST_RTO, ..Tcp::default() },
        }
    }

    /// Segments of a TCP that the receiver has in order.
    pub(crate) fn progress(&self) -> u32 {
        self.tcp.expected
    }

    /// Whether everything that was to be sent has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.plan.tcp && self.tcp.una >= self.plan.packets
    }

    /// When a datagram that was sent at `since` or later arrived first.
    pub(crate) fn heard_since(&self, since: Instant) -> Option<Instant> {
        let first = self.times.partition_point(|(sent, _)| *sent < since);
        self.times.get(first..)?.iter().filter_map(|(_, heard)| *heard).min()
    }

    /// What is to be sent now, and when to ask again.
    pub(crate) fn send(&mut self, now: Instant, names: &Names, out: &mut Vec<Vec<u8>>) {
        if self.due > now {
            return;
        }
        if self.plan.tcp {
            self.send_segments(now, names, out);
            return;
        }
        if self.sent >= self.plan.packets {
            self.due = Instant::FAR_FUTURE;
            return;
        }
        let spread = u64::from(self.plan.bytes).max(1);
        let length = HEAD as u64 + Rng::from_seed(u64::from(self.sent)).below(spread);
        let data = self.content(self.sent, length as usize);
        let (from, to) = self.addresses(names);
        let ports = self.ports();
        if let Ok(packet) = udp::packet((from, ports.0), (to, ports.1), &data) {
            out.push(packet);
            self.times.push((now, None));
            self.sent += 1;
        }
        // After a jump of the clock nobody makes up for what was not sent.
        self.due = now + Duration::from_micros(self.plan.interval_us.max(100));
    }

    fn send_segments(&mut self, now: Instant, names: &Names, out: &mut Vec<Vec<u8>>) {
        let tcp = &mut self.tcp;
        if !tcp.open {
            tcp.rto = (tcp.rto * 2).min(MOST_RTO);
            self.due = now + tcp.rto;
            out.push(self.segment(names, ISN, 0, tcp::Flags::SYN, &[], false));
            return;
        }
        if tcp.una >= self.plan.packets {
            self.due = Instant::FAR_FUTURE;
            return;
        }
        // The timer has expired: everything again.
        tcp.next = tcp.una;
        tcp.rto = (tcp.rto * 2).min(MOST_RTO);
        self.due = now + tcp.rto;
        self.fill(names, out);
    }

    fn fill(&mut self, names: &Names, out: &mut Vec<Vec<u8>>) {
        while self.tcp.next < (self.tcp.una + WINDOW).min(self.plan.packets) {
            let number = self.tcp.next;
            let data = self.content(number, usize::from(SEGMENT));
            out.push(self.segment(names, number * u32::from(SEGMENT), 1, tcp::Flags::ACK, &data, false));
            self.tcp.next += 1;
            self.sent = self.sent.max(self.tcp.next);
        }
    }

    /// A packet of this flow was delivered to `host`; what its end answers is appended.
    fn receive(
        &mut self,
        now: Instant,
        host: usize,
        view: &IpPacket<'_>,
        names: &Names,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Wrong> {
        if view.protocol() == protocol::UDP {
            let datagram =
                udp::Datagram::parse(view.payload()).map_err(|error| format!("a broken datagram: {error}"))?;
            let number = self.check(datagram.payload())?;
            let Some((_, heard)) = self.times.get_mut(number as usize) else {
                return Err(format!("datagram {number} was never sent"));
            };
            match heard {
                None => *heard = Some(now),
                Some(_) => self.again += 1,
            }
            return Ok(());
        }
        let segment = tcp::Segment::parse(view.payload()).map_err(|error| format!("a broken segment: {error}"))?;
        if !segment.checksum_is_right(view.src(), view.dst()) {
            return Err("a TCP checksum is wrong".into());
        }
        if host == self.plan.to {
            self.receive_data(&segment, names, out)
        } else {
            self.receive_ack(now, &segment, names, out);
            Ok(())
        }
    }

    fn receive_data(&mut self, segment: &tcp::Segment<'_>, names: &Names, out: &mut Vec<Vec<u8>>) -> Result<(), Wrong> {
        if segment.flags().contains(tcp::Flags::SYN) {
            out.push(self.segment(names, ISN, 0, tcp::Flags::SYN | tcp::Flags::ACK, &[], true));
            return Ok(());
        }
        // A host may have cut it, for a path that carries less.
        let (number, at) = (segment.seq() / u32::from(SEGMENT), segment.seq() % u32::from(SEGMENT));
        let end = at as usize + segment.payload_len();
        let whole = self.content(number, usize::from(SEGMENT));
        if whole.get(at as usize..end) != Some(segment.payload()) || number >= self.sent {
            return Err(format!("segment {number} has the content of another"));
        }
        let tcp = &mut self.tcp;
        if number < tcp.expected || tcp.above.contains(&number) {
            self.again += u64::from(at == 0);
        } else {
            let pieces = tcp.pieces.entry(number).or_default();
            pieces.insert(at, end);
            let covered = pieces.iter().fold(
                0,
                |covered, (at, end)| {
                    if *at as usize <= covered { covered.max(*end) } else { covered }
                },
            );
            if covered >= usize::from(SEGMENT) {
                tcp.pieces.remove(&number);
                tcp.above.insert(number);
            }
        }
        while tcp.above.remove(&tcp.expected) {
            tcp.expected += 1;
        }
        let ack = tcp.expected * u32::from(SEGMENT);
        out.push(self.segment(names, 0, ack, tcp::Flags::ACK, &[], true));
        Ok(())
    }

    fn receive_ack(&mut self, now: Instant, segment: &tcp::Segment<'_>, names: &Names, out: &mut Vec<Vec<u8>>) {
        let tcp = &mut self.tcp;
        let ack = if segment.flags().contains(tcp::Flags::SYN) { 0 } else { segment.ack() / u32::from(SEGMENT) };
        let opened = !std::mem::replace(&mut tcp.open, true);
        if opened || ack > tcp.una && ack <= self.sent {
            tcp.una = ack.max(tcp.una);
            tcp.next = tcp.next.max(tcp.una);
            tcp.rto = LEAST_RTO;
            self.due = now + tcp.rto;
            self.fill(names, out);
        }
    }

    fn ports(&self) -> (u16, u16) {
        (1_000 + self.number, 30_000 + self.number)
    }

    fn addresses(&self, names: &Names) -> (IpAddr, IpAddr) {
        let address = |host: usize| match self.plan.six {
            true => names.hits.get(host).map_or(IpAddr::from([0; 16]), |hit| hit.address().into()),
            false => Names::lsi(host).address().into(),
        };
        (address(self.plan.from), address(self.plan.to))
    }

    fn segment(&self, names: &Names, seq: u32, ack: u32, flags: tcp::Flags, data: &[u8], back: bool) -> Vec<u8> {
        let (mut addresses, mut ports) = (self.addresses(names), self.ports());
        if back {
            (addresses, ports) = ((addresses.1, addresses.0), (ports.1, ports.0));
        }
        let header = tcp::Header {
            src_port: ports.0,
            dst_port: ports.1,
            seq,
            ack,
            flags,
            window: u16::MAX,
            ..tcp::Header::default()
        };
        let mut segment = Vec::with_capacity(20 + data.len());
        // Two addresses of one family and a short segment: it fits.
        let _ = header.emit(addresses.0, addresses.1, data, &mut segment);
        ip::packet(addresses.0, addresses.1, protocol::TCP, &segment).unwrap_or_default()
    }

    fn content(&self, number: u32, length: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(length.max(HEAD));
        data.extend(MARK);
        data.extend((self.plan.from as u16).to_be_bytes());
        data.extend((self.plan.to as u16).to_be_bytes());
        data.extend(self.number.to_be_bytes());
        data.extend(number.to_be_bytes());
        data.extend((length as u16).to_be_bytes());
        data.resize(length.max(HEAD), 0);
        Rng::from_seed(u64::from(number) << 32 | u64::from(self.number)).fill(&mut data[HEAD..]);
        data
    }

    /// The number of a content, which is that of this flow.
    fn check(&self, data: &[u8]) -> Result<u32, Wrong> {
        let number = data.get(14..18).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes);
        if data != self.content(number, data.len()) {
            return Err(format!("flow {} has got what was never sent: {} bytes", self.number, data.len()));
        }
        Ok(number)
    }
}

/// A host delivers a packet to its programs: which flow it belongs to, and what the programs answer.
pub(crate) fn deliver(
    now: Instant,
    host: usize,
    bytes: &[u8],
    names: &Names,
    streams: &mut [Stream],
    out: &mut Vec<Vec<u8>>,
) -> Result<Delivered, Wrong> {
    let view = IpPacket::parse(bytes).map_err(|error| format!("no IP packet: {error}"))?;
    let ports = match view.protocol() {
        protocol::UDP => {
            udp::Datagram::parse(view.payload()).map(|datagram| (datagram.src_port(), datagram.dst_port()))
        }
        protocol::TCP => tcp::Segment::parse(view.payload()).map(|segment| (segment.src_port(), segment.dst_port())),
        protocol::ICMP | protocol::ICMPV6 => return Ok(Delivered::Notice),
        other => return Err(format!("a packet of protocol {other}")),
    };
    let ports = ports.map_err(|error| format!("a broken packet: {error}"))?;
    let (source, target) = (ports.0.min(ports.1), ports.0.max(ports.1));
    let number = usize::from(source.wrapping_sub(1_000));
    let Some(stream) = streams.get_mut(number).filter(|stream| stream.ports() == (source, target)) else {
        return Err(format!("ports {ports:?} are no flow's"));
    };
    // Which end the packet was for, and who it says it is from.
    let (from, to) = match ports.0 < ports.1 {
        true => (stream.plan.from, stream.plan.to),
        false => (stream.plan.to, stream.plan.from),
    };
    if (names.host(view.src()), names.host(view.dst())) != (Some(from), Some(to)) || host != to {
        return Err(format!("host {host} was given a packet of flow {number} from {} to {}", view.src(), view.dst()));
    }
    stream.receive(now, host, &view, names, out)?;
    Ok(Delivered::Flow(number))
}

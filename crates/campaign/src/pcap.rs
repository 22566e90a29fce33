//! What crossed a link, as pcapng with real IPv4 and TCP, UDP or SCTP headers, so that Wireshark's analyses apply.
//!
//! The packets of the simulator have no bytes; their headers are made here. Payload, all zeros, is left out as with a snap
//! length (the headers give its length, and the checksums cover it).

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use clock::Instant;
use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use pcap_file::pcapng::PcapNgBlock;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

use crate::sctp_wire::{self, Chunk};

/// A packet as it left a link.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Number of the sending node in the scenario.
    pub from: u32,
    /// Number of the receiving node.
    pub to: u32,
    /// Number of the flow, the same in both directions.
    pub flow: u32,
    /// True in the direction of the flow's data.
    pub forward: bool,
    /// Length on the wire with all headers, in bytes.
    pub bytes: u32,
    /// ECN field of the IP header: 0 not capable, 1 or 2 capable, 3 congestion experienced (RFC 3168 §5).
    pub ecn: u8,
    /// What the packet carries.
    pub transport: Transport<'a>,
}

/// The transport header.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(Segment<'a>),
    /// UDP.
    Udp,
    /// SCTP.
    Sctp(Chunk<'a>),
}

/// The fields of a TCP header. Sequence numbers count bytes from 0 without wrapping; the header has their low 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// First byte of the payload.
    pub seq: u64,
    /// Next byte expected from the peer; `None` before there was any.
    pub ack: Option<u64>,
    /// Receiver window in bytes; the header has at most 65,535.
    pub window: u64,
    /// SACK blocks, first and one past the last byte (RFC 2018); at most four fit.
    pub sack: &'a [(u64, u64)],
    /// SYN flag.
    pub syn: bool,
    /// FIN flag.
    pub fin: bool,
    /// ECE flag (RFC 3168 §6.1).
    pub ece: bool,
    /// CWR flag (RFC 3168 §6.1).
    pub cwr: bool,
}

/// A pcapng file with the packets of one link.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    /// A packet under construction, kept for its memory.
    buffer: Vec<u8>,
    zeros: Vec<u8>,
}

impl<W: Write> std::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl<W: Write> Capture<W> {
    /// Begins a file with nanosecond timestamps from the start of the run; `interfaces` are the names of the directions of
    /// the link, numbered from 0.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W, interfaces: &[&str]) -> io::Result<Self> {
        let mut writer = PcapNgWriter::new(out).map_err(plain)?;
        for name in interfaces {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            writer.write_block(&interface.into_block()).map_err(plain)?;
        }
        Ok(Self { writer, buffer: Vec::new(), zeros: Vec::new() })
    }

    /// Notes that `packet` was delivered at `at` by the direction with the number `interface`.
    ///
    /// # Errors
    /// When the file cannot be written, or there is no such interface.
    pub fn record(&mut self, interface: u32, at: Instant, packet: &CapturedPacket<'_>) -> io::Result<()> {
        let wire = self.compose(packet)?;
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(at.as_nanos()),
            original_len: wire,
            data: Cow::Borrowed(&self.buffer),
            options: Vec::new(),
        };
        self.writer.write_block(&block.into_block()).map(drop).map_err(plain)
    }

    /// The file, with everything handed over to it.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }

    /// Puts the headers of `packet` into the buffer; returns its length on the wire.
    fn compose(&mut self, packet: &CapturedPacket<'_>) -> io::Result<u32> {
        let (mut source, mut destination) = (port(packet.flow), SERVER_PORT);
        if !packet.forward {
            std::mem::swap(&mut source, &mut destination);
        }
        self.buffer.clear();
        let wire = match packet.transport {
            Transport::Tcp(segment) => {
                let mut tcp = tcp_header(source, destination, &segment);
                let payload = payload_length(packet.bytes, Ipv4Header::MIN_LEN + tcp.header_len());
                let ip = ip_header(packet, IpNumber::TCP, tcp.header_len() + payload)?;
                tcp.checksum =
                    tcp.calc_checksum_ipv4(&ip, zeros(&mut self.zeros, payload)).map_err(io::Error::other)?;
                ip.write(&mut self.buffer)?;
                tcp.write(&mut self.buffer)?;
                ip.total_len
            }
            Transport::Udp => {
                let payload = payload_length(packet.bytes, Ipv4Header::MIN_LEN + UdpHeader::LEN);
                let ip = ip_header(packet, IpNumber::UDP, UdpHeader::LEN + payload)?;
                let zeros = zeros(&mut self.zeros, payload);
                let udp = UdpHeader::with_ipv4_checksum(source, destination, &ip, zeros).map_err(io::Error::other)?;
                ip.write(&mut self.buffer)?;
                udp.write(&mut self.buffer)?;
                ip.total_len
            }
            Transport::Sctp(chunk) => {
                let mut sctp = Vec::new();
                sctp_wire::write(&mut sctp, source, destination, &chunk);
                let ip = ip_header(packet, IpNumber::SCTP, sctp.len())?;
                ip.write(&mut self.buffer)?;
                self.buffer.append(&mut sctp);
                ip.total_len
            }
        };
        Ok(u32::from(wire))
    }
}

/// The port of every receiving end: one that belongs to no known protocol, so that no dissector guesses at the zeros.
const SERVER_PORT: u16 = 50_001;

/// A port of a sending end: ten thousands of flows between two nodes stay apart.
fn port(flow: u32) -> u16 {
    10_000 + (flow % 40_000) as u16
}

/// The nodes are 10.0.0.1 and up; what the port cannot tell apart of the flow's number the sender's address need not.
fn address(node: u32) -> [u8; 4] {
    let [_, a, b, c] = (node + 1).to_be_bytes();
    [10, a, b, c]
}

/// Bytes of payload in a packet of `bytes` on the wire; none if the headers alone are longer.
fn payload_length(bytes: u32, headers: usize) -> usize {
    (bytes as usize).min(usize::from(u16::MAX)).saturating_sub(headers)
}

fn zeros(zeros: &mut Vec<u8>, length: usize) -> &[u8] {
    if zeros.len() < length {
        zeros.resize(length, 0);
    }
    zeros.get(..length).unwrap_or_default()
}

fn ip_header(packet: &CapturedPacket<'_>, protocol: IpNumber, payload: usize) -> io::Result<Ipv4Header> {
    let length = u16::try_from(payload).map_err(io::Error::other)?;
    let mut ip =
        Ipv4Header::new(length, 64, protocol, address(packet.from), address(packet.to)).map_err(io::Error::other)?;
    ip.ecn = etherparse::IpEcn::try_new(packet.ecn & 3).map_err(io::Error::other)?;
    ip.header_checksum = ip.calc_header_checksum();
    Ok(ip)
}

fn tcp_header(source: u16, destination: u16, segment: &Segment<'_>) -> TcpHeader {
    let window = segment.window.min(u64::from(u16::MAX)) as u16;
    let mut tcp = TcpHeader::new(source, destination, segment.seq as u32, window);
    tcp.syn = segment.syn;
    tcp.fin = segment.fin;
    tcp.ece = segment.ece;
    tcp.cwr = segment.cwr;
    if let Some(ack) = segment.ack {
        tcp.ack = true;
        tcp.acknowledgment_number = ack as u32;
    }
    if let Some((first, rest)) = segment.sack.split_first() {
        let low = |&(begin, end): &(u64, u64)| (begin as u32, end as u32);
        let mut others = [None; 3];
        for (slot, block) in others.iter_mut().zip(rest) {
            *slot = Some(low(block));
        }
        let options = [
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::SelectiveAcknowledgement(low(first), others),
        ];
        // Two bytes, and 2 + 4·8 at most: fits into the 40 bytes of options.
        let fits = tcp.set_options(&options).is_ok();
        debug_assert!(fits);
    }
    tcp
}

fn plain(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

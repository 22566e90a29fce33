//! Inner packets as a grammar: TCP, UDP, ICMP and fragments with fields near what matters, in both families, and reports.

use crate::grammar::Near;
use arbitrary::Arbitrary;
use std::net::IpAddr;
use wire::Hit;
use wire::ip::protocol;
use wire::tcp::{Flags, Header};

/// What an IP packet carries.
#[derive(Arbitrary, Clone, Debug)]
pub enum Content {
    Tcp {
        ports: (u8, u8),
        seq: Near,
        ack: Near,
        flags: u8,
        window: u16,
        options: Vec<u8>,
        len: u16,
    },
    Udp {
        ports: (u8, u8),
        len: u16,
    },
    Icmp {
        kind: u8,
        code: u8,
        word: u32,
        data: Vec<u8>,
    },
    /// An error about a packet of the other side.
    IcmpError {
        kind: u8,
        code: u8,
        word: u32,
        quoted: (u8, u8),
        rest: Vec<u8>,
    },
    Fragment {
        protocol: u8,
        offset: u16,
        id: u32,
        data: Vec<u8>,
    },
    Raw {
        protocol: u8,
        data: Vec<u8>,
    },
}

/// Where the sequence numbers of TCP are near: just before they wrap around.
const SEQ: u32 = u32::MAX - 3000;

impl Content {
    /// The protocol and the payload of a packet between two addresses; checksums are right. `round` moves ports and numbers
    /// on, for many alike.
    pub fn emit(&self, from: IpAddr, to: IpAddr, round: u32) -> (u8, Vec<u8>) {
        let mut out = Vec::new();
        let port = |port: u8| 1000 + u16::from(port % 8);
        let protocol = match self {
            Self::Tcp { ports, seq, ack, flags, window, options, len } => {
                let mut options: Vec<u8> = options.iter().copied().take(40).collect();
                options.resize(options.len().next_multiple_of(4), 0);
                let header = Header {
                    src_port: port(ports.0).wrapping_add(round as u16),
                    dst_port: port(ports.1),
                    seq: seq.of(SEQ).wrapping_add(round.wrapping_mul(u32::from(len % 1400))),
                    ack: ack.of(SEQ),
                    flags: Flags(*flags),
                    window: *window,
                    urgent: 0,
                    options: &options,
                };
                let _ = header.emit(from, to, &vec![0; usize::from(len % 1400)], &mut out);
                protocol::TCP
            }
            Self::Udp { ports, len } => {
                let from = (from, port(ports.0).wrapping_add(round as u16));
                let _ = wire::udp::emit(from, (to, port(ports.1)), &vec![0; usize::from(len % 1400)], &mut out);
                protocol::UDP
            }
            Self::Icmp { kind, code, word, data } => icmp(from, to, (*kind, *code, *word), data, &mut out),
            Self::IcmpError { kind, code, word, quoted, rest } => {
                let mut data =
                    ip(to, from, protocol::UDP, &[[3, 232 + quoted.0 % 8], [3, 232 + quoted.1 % 8]].concat());
                data.extend_from_slice(rest);
                icmp(from, to, (*kind, *code, *word), &data, &mut out)
            }
            Self::Fragment { protocol, offset, id, data } => {
                out.extend_from_slice(&[*protocol, 0]);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&id.wrapping_add(round).to_be_bytes());
                out.extend_from_slice(data);
                44
            }
            Self::Raw { protocol, data } => {
                out.extend_from_slice(data);
                *protocol
            }
        };
        (protocol, out)
    }

    /// A whole packet.
    pub fn packet(&self, from: IpAddr, to: IpAddr, round: u32) -> Vec<u8> {
        let (protocol, payload) = self.emit(from, to, round);
        ip(from, to, protocol, &payload)
    }
}

fn icmp(from: IpAddr, to: IpAddr, (kind, code, word): (u8, u8, u32), data: &[u8], out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(&[kind, code, 0, 0]);
    out.extend_from_slice(&word.to_be_bytes());
    out.extend_from_slice(data);
    let (number, sum) = match (from, to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => (
            protocol::ICMPV6,
            wire::checksum::pseudo_v6(from, to, protocol::ICMPV6.into(), out.len() as u32).bytes(out),
        ),
        _ => (protocol::ICMP, wire::checksum::Sum::ZERO.bytes(out)),
    };
    let sum = sum.checksum().to_be_bytes();
    out[2..4].copy_from_slice(&sum);
    number
}

/// An IP packet with a header of ours; empty where the payload is too long.
pub fn ip(from: IpAddr, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    wire::ip::packet(from, to, protocol, payload).unwrap_or_default()
}

/// A UDP packet from HIT to HIT.
pub fn udp_v6(from: Hit, to: Hit, ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let (from, to) = (IpAddr::from(from.address()), IpAddr::from(to.address()));
    wire::udp::packet((from, ports.0), (to, ports.1), data).unwrap_or_default()
}

/// A record of a report.
#[derive(Arbitrary, Clone, Debug)]
pub struct Record {
    /// Which of the peer's SPIs, or any.
    pub spi: Result<u8, u32>,
    /// Beside what the host has sent.
    pub highest: Near,
    pub words: [u32; 2],
    /// Packets, bytes, CE, RTT.
    pub counts: [Near; 4],
    /// Each a gap and a length.
    pub ranges: Vec<(u16, u16)>,
}

/// A report as the wire has it, about SPIs of `known` on which about `sent` packets went.
pub fn report(records: &[Record], known: &[wire::Spi], sent: u32) -> Vec<u8> {
    let records = &records[..records.len().min(17)];
    let mut out = vec![1, records.len() as u8, 0, 0];
    for record in records {
        let spi = match record.spi {
            Ok(index) => known.get(usize::from(index) % known.len().max(1)).map_or(0, |spi| spi.0),
            Err(any) => any,
        };
        let [packets, bytes, ce, rtt] = record.counts;
        let words = [
            spi,
            record.highest.of(sent),
            record.words[0],
            record.words[1],
            packets.of(sent),
            bytes.of(sent.wrapping_mul(1000)),
            ce.of(0),
            rtt.of(10_000),
        ];
        out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        let ranges = &record.ranges[..record.ranges.len().min(32)];
        let first = ranges.first().map_or(1, |(_, length)| *length);
        out.extend_from_slice(&[ranges.len().max(1) as u8, 0]);
        out.extend_from_slice(&first.to_be_bytes());
        for (gap, length) in ranges.iter().skip(1) {
            out.extend(gap.to_be_bytes());
            out.extend(length.to_be_bytes());
        }
    }
    out
}

//! Between an IPv4 packet with LSIs and the IPv6 packet with HITs that stands for it: stateless translation after
//! RFC 7915, where both addresses are known from the association instead of being mapped.
//!
//! Checksums of TCP, UDP and echo messages are carried over incrementally (RFC 1624), so a packet that was damaged
//! stays recognisably damaged. Both ends of the translation are the two hosts themselves: the hop limit is not
//! decremented, and an ICMP error counts only when it is about a packet between the same two hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum::{self, Sum, pseudo_v6};
use crate::ip::{IpPacket, V4, V4_HEADER, V4Header, V6, V6_HEADER, V6Header, protocol};
use crate::{Malformed, icmp, tcp, udp};

/// IPv6 headers are longer than IPv4 headers by this many bytes; MTUs in errors move by it.
const HEADER_DIFFERENCE: u32 = (V6_HEADER - V4_HEADER) as u32;

/// Appends the IPv6 packet from `source` to `destination` that stands for an IPv4 packet (RFC 7915 §4). TCP, UDP,
/// echo messages and the ICMP errors with a counterpart are translated, other protocols are copied.
///
/// # Errors
/// [`Malformed`] when `packet` is not a whole IPv4 packet; [`Malformed::Fragment`] for fragments;
/// [`Malformed::Unsupported`] for ICMP without a counterpart and for protocols of one family only. Nothing is written then.
pub fn translate_4_to_6(
    packet: &[u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    atomically(out, |out| {
        let packet = V4::parse(packet)?;
        if packet.fragment().is_some() {
            return Err(Malformed::Fragment);
        }
        if only_in_v6(packet.protocol()) {
            return Err(Malformed::Unsupported);
        }
        let old = addresses_v4(&packet);
        let new = Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets());
        let at = out.len();
        header_6(&packet, source, destination).emit(0, out)?;
        match packet.protocol() {
            protocol::ICMP => icmp_4_to_6(&packet, source, destination, out)?,
            other => {
                let body = out.len();
                out.extend_from_slice(packet.payload());
                if let Some(datagram) = without_checksum(other, packet.payload())? {
                    // IPv6 has no UDP without a checksum; the whole packet is here, so it is made (RFC 7915 §4.5).
                    let sum = pseudo_v6(source, destination, protocol::UDP, datagram.len() as u32).bytes(datagram);
                    put(out, body + udp::CHECKSUM_AT, udp::never_zero(sum.checksum()));
                } else {
                    update_transport(other, out, body, old, new)?;
                }
            }
        }
        let length = u16::try_from(out.len() - at - V6_HEADER).map_err(|_| Malformed::Length)?;
        put(out, at + 4, length);
        Ok(())
    })
}

/// Appends the IPv4 packet from `source` to `destination` that stands for an IPv6 packet (RFC 7915 §5). The
/// counterpart of [`translate_4_to_6`]; extension headers are dropped.
///
/// # Errors
/// As [`translate_4_to_6`].
pub fn translate_6_to_4(
    packet: &[u8],
    source: Ipv4Addr,
    destination: Ipv4Addr,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    atomically(out, |out| {
        let packet = V6::parse(packet)?;
        if packet.fragment().is_some() {
            return Err(Malformed::Fragment);
        }
        if packet.protocol() == protocol::ICMP {
            return Err(Malformed::Unsupported);
        }
        let old = addresses_v6(&packet);
        let new = Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets());
        let at = out.len();
        // The lengths are known only after the translation: the header is written last into this space.
        out.resize(at + V4_HEADER, 0);
        match packet.protocol() {
            protocol::ICMPV6 => icmp_6_to_4(&packet, source, destination, out)?,
            other => {
                let body = out.len();
                out.extend_from_slice(packet.payload());
                update_transport(other, out, body, old, new)?;
            }
        }
        let header = header_4(&packet, source, destination).bytes(out.len() - at - V4_HEADER)?;
        if let Some(space) = out.get_mut(at..at + V4_HEADER) {
            space.copy_from_slice(&header);
        }
        Ok(())
    })
}

/// Numbers that in IPv6 are extension headers or its ICMP: an IPv4 payload of that number would be read as what it is not.
fn only_in_v6(number: u8) -> bool {
    matches!(number, protocol::HOP_BY_HOP | protocol::FRAGMENT | protocol::DESTINATION_OPTIONS | protocol::ICMPV6)
}

/// The bytes of a UDP datagram that has no checksum; `None` for everything else.
fn without_checksum(kind: u8, payload: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    if kind != protocol::UDP {
        return Ok(None);
    }
    let datagram = udp::Datagram::parse(payload)?;
    Ok(if datagram.checksum() == 0 { payload.get(..udp::HEADER + datagram.payload().len()) } else { None })
}

fn icmp_4_to_6(packet: &V4<'_>, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let message = icmp::Message::parse(packet.payload())?;
    let kind = match message.kind() {
        icmp::v4::ECHO_REQUEST => icmp::v6::ECHO_REQUEST,
        icmp::v4::ECHO_REPLY => icmp::v6::ECHO_REPLY,
        _ => {
            let (kind, code, word) = error_4_to_6(&message)?;
            if !message.checksum_is_right(packet.src().into(), packet.dst().into()) {
                return Err(Malformed::Checksum);
            }
            let mut quoted = Vec::with_capacity(message.body().len() + V6_HEADER);
            let IpPacket::V4(inner) = IpPacket::parse_quoted(message.body())? else { return Err(Malformed::Version) };
            if inner.src() != packet.dst() || inner.dst() != packet.src() {
                return Err(Malformed::Unsupported);
            }
            quote_4_to_6(&inner, destination, source, &mut quoted)?;
            let length = (icmp::HEADER + quoted.len()) as u32;
            let start = pseudo_v6(source, destination, protocol::ICMPV6, length);
            icmp::message(start, kind, code, word, &quoted, out);
            return Ok(());
        }
    };
    // ICMP has no pseudo-header, ICMPv6 has one: it is added to the sum.
    let pseudo = pseudo_v6(source, destination, protocol::ICMPV6, packet.payload().len() as u32);
    let old = Sum::ZERO.word(first_word(message.kind(), message.code()));
    let new = pseudo.word(first_word(kind, message.code()));
    let body = out.len();
    out.extend_from_slice(packet.payload());
    put(out, body, first_word(kind, message.code()));
    put(out, body + 2, checksum::update(message.checksum(), old, new));
    Ok(())
}

fn icmp_6_to_4(packet: &V6<'_>, source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let message = icmp::Message::parse(packet.payload())?;
    let kind = match message.kind() {
        icmp::v6::ECHO_REQUEST => icmp::v4::ECHO_REQUEST,
        icmp::v6::ECHO_REPLY => icmp::v4::ECHO_REPLY,
        _ => {
            let (kind, code, word) = error_6_to_4(&message)?;
            if !message.checksum_is_right(packet.src().into(), packet.dst().into()) {
                return Err(Malformed::Checksum);
            }
            let IpPacket::V6(inner) = IpPacket::parse_quoted(message.body())? else { return Err(Malformed::Version) };
            if inner.src() != packet.dst() || inner.dst() != packet.src() {
                return Err(Malformed::Unsupported);
            }
            let mut quoted = Vec::with_capacity(message.body().len());
            quote_6_to_4(&inner, destination, source, &mut quoted)?;
            quoted.truncate(576 - V4_HEADER - icmp::HEADER); // RFC 1812 §4.3.2.3
            icmp::message(Sum::ZERO, kind, code, word, &quoted, out);
            return Ok(());
        }
    };
    let pseudo = pseudo_v6(packet.src(), packet.dst(), protocol::ICMPV6, packet.payload().len() as u32);
    let old = pseudo.word(first_word(message.kind(), message.code()));
    let new = Sum::ZERO.word(first_word(kind, message.code()));
    let body = out.len();
    out.extend_from_slice(packet.payload());
    put(out, body, first_word(kind, message.code()));
    put(out, body + 2, checksum::update(message.checksum(), old, new));
    Ok(())
}

/// Type, code and word of the ICMPv6 error that stands for an ICMP error (RFC 7915 §4.2).
fn error_4_to_6(message: &icmp::Message<'_>) -> Result<(u8, u8, u32), Malformed> {
    use icmp::{v4, v6};
    Ok(match (message.kind(), message.code()) {
        (v4::UNREACHABLE, v4::PROTOCOL_UNREACHABLE) => {
            (v6::PARAMETER_PROBLEM, 1, 6) // unrecognised next header, which stands at byte 6
        }
        (v4::UNREACHABLE, v4::PORT_UNREACHABLE) => (v6::UNREACHABLE, v6::PORT_UNREACHABLE, 0),
        (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED) => {
            let mtu = (message.word() & 0xffff) + HEADER_DIFFERENCE;
            (v6::PACKET_TOO_BIG, 0, mtu.max(1280)) // no IPv6 link takes less
        }
        (v4::UNREACHABLE, 0 | 1 | 5..=8 | 11 | 12) => (v6::UNREACHABLE, v6::NO_ROUTE, 0),
        (v4::UNREACHABLE, 9 | 10 | 13 | 15) => (v6::UNREACHABLE, v6::PROHIBITED, 0),
        (v4::TIME_EXCEEDED, code) => (v6::TIME_EXCEEDED, code, 0),
        _ => return Err(Malformed::Unsupported),
    })
}

/// Type, code and word of the ICMP error that stands for an ICMPv6 error (RFC 7915 §5.2).
fn error_6_to_4(message: &icmp::Message<'_>) -> Result<(u8, u8, u32), Malformed> {
    use icmp::{v4, v6};
    Ok(match (message.kind(), message.code()) {
        (v6::UNREACHABLE, v6::PORT_UNREACHABLE) => (v4::UNREACHABLE, v4::PORT_UNREACHABLE, 0),
        (v6::UNREACHABLE, v6::PROHIBITED) => (v4::UNREACHABLE, v4::HOST_PROHIBITED, 0),
        (v6::UNREACHABLE, 0 | 2 | 3) => (v4::UNREACHABLE, v4::HOST_UNREACHABLE, 0),
        (v6::PACKET_TOO_BIG, _) => {
            let mtu = message.word().saturating_sub(HEADER_DIFFERENCE).min(0xffff);
            (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED, mtu)
        }
        (v6::TIME_EXCEEDED, code) => (v4::TIME_EXCEEDED, code, 0),
        (v6::PARAMETER_PROBLEM, 1) => (v4::UNREACHABLE, v4::PROTOCOL_UNREACHABLE, 0),
        _ => return Err(Malformed::Unsupported),
    })
}

/// The beginning of a packet inside an error, translated as a packet is, but possibly cut short (RFC 7915 §4.3).
fn quote_4_to_6(inner: &V4<'_>, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if inner.fragment().is_some() {
        return Err(Malformed::Fragment);
    }
    header_6(inner, source, destination).emit(inner.payload_len(), out)?;
    let body = out.len();
    out.extend_from_slice(inner.payload());
    let new = Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets());
    match inner.protocol() {
        protocol::ICMP => {
            let Some(&[kind @ (icmp::v4::ECHO_REQUEST | icmp::v4::ECHO_REPLY), code]) = inner.payload().first_chunk()
            else {
                return Err(Malformed::Unsupported);
            };
            let six = if kind == icmp::v4::ECHO_REQUEST { icmp::v6::ECHO_REQUEST } else { icmp::v6::ECHO_REPLY };
            put(out, body, first_word(six, code));
            let pseudo = pseudo_v6(source, destination, protocol::ICMPV6, inner.payload_len() as u32);
            let (old, new) = (Sum::ZERO.word(first_word(kind, code)), pseudo.word(first_word(six, code)));
            change(out, body + 2, |sum| checksum::update(sum, old, new));
        }
        other => _ = update_transport(other, out, body, addresses_v4(inner), new),
    }
    Ok(())
}

fn quote_6_to_4(inner: &V6<'_>, source: Ipv4Addr, destination: Ipv4Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    if inner.fragment().is_some() {
        return Err(Malformed::Fragment);
    }
    header_4(inner, source, destination).emit(inner.payload_len(), out)?;
    let body = out.len();
    out.extend_from_slice(inner.payload());
    let new = Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets());
    match inner.protocol() {
        protocol::ICMPV6 => {
            let Some(&[kind @ (icmp::v6::ECHO_REQUEST | icmp::v6::ECHO_REPLY), code]) = inner.payload().first_chunk()
            else {
                return Err(Malformed::Unsupported);
            };
            let four = if kind == icmp::v6::ECHO_REQUEST { icmp::v4::ECHO_REQUEST } else { icmp::v4::ECHO_REPLY };
            put(out, body, first_word(four, code));
            let pseudo = pseudo_v6(inner.src(), inner.dst(), protocol::ICMPV6, inner.payload_len() as u32);
            let (old, new) = (pseudo.word(first_word(kind, code)), Sum::ZERO.word(first_word(four, code)));
            change(out, body + 2, |sum| checksum::update(sum, old, new));
        }
        other => _ = update_transport(other, out, body, addresses_v6(inner), new),
    }
    Ok(())
}

/// Moves the checksum of the TCP or UDP packet at `body` from the addresses summed in `old` to those in `new`.
/// Protocol number and length stand in both pseudo-headers and cancel out. A UDP checksum of zero stays zero.
fn update_transport(kind: u8, out: &mut [u8], body: usize, old: Sum, new: Sum) -> Result<(), Malformed> {
    let changed = match kind {
        protocol::TCP => change(out, body + tcp::CHECKSUM_AT, |sum| checksum::update(sum, old, new)),
        protocol::UDP => change(out, body + udp::CHECKSUM_AT, |sum| {
            if sum == 0 { 0 } else { udp::never_zero(checksum::update(sum, old, new)) }
        }),
        _ => true,
    };
    if changed { Ok(()) } else { Err(Malformed::Truncated) }
}

fn addresses_v4(packet: &V4<'_>) -> Sum {
    Sum::ZERO.bytes(&packet.src().octets()).bytes(&packet.dst().octets())
}

fn addresses_v6(packet: &V6<'_>) -> Sum {
    Sum::ZERO.bytes(&packet.src().octets()).bytes(&packet.dst().octets())
}

fn header_6(packet: &V4<'_>, source: Ipv6Addr, destination: Ipv6Addr) -> V6Header {
    let view = IpPacket::V4(*packet);
    let protocol = if view.protocol() == protocol::ICMP { protocol::ICMPV6 } else { view.protocol() };
    V6Header {
        source,
        destination,
        protocol,
        traffic_class: view.traffic_class(),
        flow_label: 0,
        hop_limit: view.hop_limit(),
    }
}

fn header_4(packet: &V6<'_>, source: Ipv4Addr, destination: Ipv4Addr) -> V4Header {
    let view = IpPacket::V6(*packet);
    let protocol = if view.protocol() == protocol::ICMPV6 { protocol::ICMP } else { view.protocol() };
    V4Header {
        source,
        destination,
        protocol,
        traffic_class: view.traffic_class(),
        hop_limit: view.hop_limit(),
        identification: 0,
        dont_fragment: true, // as in IPv6; then the identification may be 0 (RFC 6864 §4.1)
    }
}

fn first_word(kind: u8, code: u8) -> u16 {
    u16::from_be_bytes([kind, code])
}

fn put(out: &mut [u8], at: usize, word: u16) {
    change(out, at, |_| word);
}

/// Replaces the 16-bit word at `at`; false when it is not there.
fn change(out: &mut [u8], at: usize, f: impl FnOnce(u16) -> u16) -> bool {
    let Some(word) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else { return false };
    *word = f(u16::from_be_bytes(*word)).to_be_bytes();
    true
}

/// Leaves `out` as it was when `f` fails.
fn atomically(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>) -> Result<(), Malformed>) -> Result<(), Malformed> {
    let before = out.len();
    let result = f(out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flags, Header};
    use proptest::prelude::*;

    const A4: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 1);
    const B4: Ipv4Addr = Ipv4Addr::new(1, 7, 8, 9);
    const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x21, 0x1111, 0x2222, 3, 4, 0x5555, 0x6667);
    const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x21, 0xffff, 0xeeee, 9, 8, 0x7777, 0x6666);

    fn v4(kind: u8, tc: u8, hops: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = V4Header { traffic_class: tc, hop_limit: hops, ..V4Header::new(A4, B4, kind) };
        header.emit(body.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(body);
        bytes
    }

    fn v6(kind: u8, tc: u8, hops: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = V6Header { traffic_class: tc, hop_limit: hops, ..V6Header::new(A6, B6, kind) };
        header.emit(body.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(body);
        bytes
    }

    /// The same upper-layer packet between the IPv4 and between the IPv6 addresses: the oracle of a translation.
    fn twins(kind: u8, tc: u8, hops: u8, write: impl Fn(bool, &mut Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        write(false, &mut four);
        write(true, &mut six);
        let kind6 = if kind == protocol::ICMP { protocol::ICMPV6 } else { kind };
        (v4(kind, tc, hops, &four), v6(kind6, tc, hops, &six))
    }

    fn both_ways(four: &[u8], six: &[u8]) {
        let mut out = b"before".to_vec();
        translate_4_to_6(four, A6, B6, &mut out).unwrap();
        assert_eq!(&out[6..], six);
        out.truncate(6);
        translate_6_to_4(six, A4, B4, &mut out).unwrap();
        assert_eq!(&out[6..], four);
    }

    fn ends(six: bool) -> (std::net::IpAddr, std::net::IpAddr) {
        if six { (A6.into(), B6.into()) } else { (A4.into(), B4.into()) }
    }

    #[test]
    fn a_number_that_only_the_other_family_reads_is_not_translated() {
        for number in [0, 44, 58, 60] {
            let refused = translate_4_to_6(&v4(number, 0, 64, &[6; 16]), A6, B6, &mut Vec::new());
            assert_eq!(refused, Err(Malformed::Unsupported), "{number}");
        }
        let refused = translate_6_to_4(&v6(protocol::ICMP, 0, 64, &[8; 16]), A4, B4, &mut Vec::new());
        assert_eq!(refused, Err(Malformed::Unsupported));
    }

    proptest! {
        #[test]
        fn tcp_there_and_back(seq: u32, tc: u8, hops: u8, data in proptest::collection::vec(any::<u8>(), 0..99)) {
            let (four, six) = twins(protocol::TCP, tc, hops, |six, out| {
                let (a, b) = ends(six);
                Header { src_port: 1, dst_port: 80, seq, flags: Flags::ACK, ..Header::default() }.emit(a, b, &data, out).unwrap();
            });
            both_ways(&four, &six);
        }

        #[test]
        fn udp_there_and_back(tc: u8, hops: u8, ports: (u16, u16), data in proptest::collection::vec(any::<u8>(), 0..99)) {
            let (four, six) = twins(protocol::UDP, tc, hops, |six, out| {
                let (a, b) = ends(six);
                udp::emit((a, ports.0), (b, ports.1), &data, out).unwrap();
            });
            both_ways(&four, &six);
            // Without a checksum over IPv4 it gets one over IPv6.
            let mut bare = four;
            bare[V4_HEADER + 6..V4_HEADER + 8].fill(0);
            let mut out = Vec::new();
            translate_4_to_6(&bare, A6, B6, &mut out).unwrap();
            prop_assert_eq!(out, six);
        }

        #[test]
        fn echo_there_and_back(word: u32, request: bool, data in proptest::collection::vec(any::<u8>(), 0..99)) {
            let (four, six) = twins(protocol::ICMP, 0, 64, |six, out| {
                if six {
                    let start = pseudo_v6(A6, B6, protocol::ICMPV6, 8 + data.len() as u32);
                    icmp::message(start, if request { 128 } else { 129 }, 0, word, &data, out);
                } else {
                    icmp::message(Sum::ZERO, if request { 8 } else { 0 }, 0, word, &data, out);
                }
            });
            both_ways(&four, &six);
        }

        #[test]
        fn a_translation_is_a_packet_of_the_same_protocol(
            number: u8,
            six: bool,
            body in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut out = Vec::new();
            let done = if six {
                translate_6_to_4(&v6(number, 0, 64, &body), A4, B4, &mut out)
            } else {
                translate_4_to_6(&v4(number, 0, 64, &body), A6, B6, &mut out)
            };
            if done.is_ok() && ![protocol::ICMP, protocol::ICMPV6].contains(&number) {
                // In IPv6 extension headers are stepped over, in IPv4 there are none.
                let old = V6::parse(&v6(number, 0, 64, &body)).map_or(number, |packet| packet.protocol());
                let packet = IpPacket::parse(&out).expect("a packet");
                prop_assert_eq!(packet.protocol(), if six { old } else { number });
                prop_assert_eq!(packet.src().is_ipv6(), !six);
            }
        }

        #[test]
        fn a_damaged_segment_stays_damaged(flip in 0usize..40, bit in 0u8..8) {
            let (mut four, _) = twins(protocol::TCP, 0, 64, |six, out| {
                let (a, b) = ends(six);
                Header { src_port: 1, dst_port: 80, ..Header::default() }.emit(a, b, &[5; 20], out).unwrap();
            });
            four[V4_HEADER + flip] ^= 1 << bit;
            let mut out = Vec::new();
            translate_4_to_6(&four, A6, B6, &mut out).unwrap();
            if let Ok(segment) = tcp::Segment::parse(IpPacket::parse(&out).unwrap().payload()) {
                prop_assert!(!segment.checksum_is_right(A6.into(), B6.into()));
            }
        }

        #[test]
        fn any_bytes_are_translated_or_refused(mut body in proptest::collection::vec(any::<u8>(), 0..90), kind in prop::sample::select(vec![1u8, 6, 17, 58, 132]), icmp_kind in 0u8..20) {
            if let (1 | 58, Some(first)) = (kind, body.first_mut()) { *first = icmp_kind; }
            let mut out = Vec::new();
            if translate_4_to_6(&v4(kind, 0, 64, &body), A6, B6, &mut out).is_err() { prop_assert!(out.is_empty()); }
            out.clear();
            if translate_6_to_4(&v6(kind, 0, 64, &body), A4, B4, &mut out).is_err() { prop_assert!(out.is_empty()); }
        }
    }

    /// B refuses a datagram from A: both forms of the refusal, each written from scratch.
    fn refusals(data: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (four, six) = twins(protocol::UDP, 0, 64, |six, out| {
            let (a, b) = ends(six);
            udp::emit((a, 1000), (b, 2000), data, out).unwrap();
        });
        let (mut error4, mut error6) = (Vec::new(), Vec::new());
        icmp::error_v4(&four, 3, 3, 0, B4, &mut error4).unwrap();
        icmp::error_v6(&six, 1, 4, 0, B6, &mut error6).unwrap();
        (error4, error6)
    }

    #[test]
    fn port_unreachable_there_and_back() {
        let (error4, error6) = refusals(b"data");
        let mut out = Vec::new();
        translate_4_to_6(&error4, B6, A6, &mut out).unwrap();
        assert_eq!(out, error6);
        out.clear();
        translate_6_to_4(&error6, B4, A4, &mut out).unwrap();
        assert_eq!(out, error4);
    }

    #[test]
    fn a_long_quotation_is_cut_and_keeps_its_checksums() {
        let (error4, error6) = refusals(&[9; 1100]);
        let mut out = Vec::new();
        translate_6_to_4(&error6, B4, A4, &mut out).unwrap();
        assert_eq!(out, error4); // 576 bytes of it
        out.clear();
        translate_4_to_6(&error4, B6, A6, &mut out).unwrap();
        let packet = IpPacket::parse(&out).unwrap();
        let error = icmp::IcmpError::parse(&packet).unwrap();
        let whole = icmp::IcmpError::parse(&IpPacket::parse(&error6).unwrap()).unwrap().quoted.to_vec();
        assert_eq!(error.quoted, &whole[..error.quoted.len()]);
    }

    #[test]
    fn mtus_move_by_the_difference_of_the_headers() {
        let six = v6(protocol::UDP, 0, 64, &[0; 1400]);
        let (mut error, mut out) = (Vec::new(), Vec::new());
        icmp::packet_too_big(&six, 1400, B6, &mut error).unwrap();
        translate_6_to_4(&error, B4, A4, &mut out).unwrap();
        let packet = IpPacket::parse(&out).unwrap();
        assert_eq!(icmp::IcmpError::parse(&packet).unwrap().mtu, Some(1380));

        let four = v4(protocol::UDP, 0, 64, &[0; 1400]);
        error.clear();
        out.clear();
        icmp::fragmentation_needed(&four, 1380, B4, &mut error).unwrap();
        translate_4_to_6(&error, B6, A6, &mut out).unwrap();
        let packet = IpPacket::parse(&out).unwrap();
        assert_eq!(icmp::IcmpError::parse(&packet).unwrap().mtu, Some(1400));
    }

    #[test]
    fn fragments_and_foreign_errors_are_refused() {
        let mut four = v4(protocol::UDP, 0, 64, &[0; 16]);
        four[6] = 0x20; // more fragments
        four[10..12].fill(0);
        let sum = Sum::ZERO.bytes(&four[..20]).checksum();
        four[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(translate_4_to_6(&four, A6, B6, &mut Vec::new()), Err(Malformed::Fragment));

        let (mut error4, _) = refusals(b"");
        // An error from somebody else, about a packet that went to B.
        let mut out = Vec::new();
        error4[15] = 77;
        error4[10..12].fill(0);
        let sum = Sum::ZERO.bytes(&error4[..20]).checksum();
        error4[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(translate_4_to_6(&error4, B6, A6, &mut out), Err(Malformed::Unsupported));
    }
}

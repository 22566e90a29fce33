//! ICMP (RFC 792) and ICMPv6 (RFC 4443): echo, and errors about a packet that cannot be sent on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Malformed;
use crate::checksum::{Sum, pseudo_v6};
use crate::ip::{IpPacket, V4_HEADER, V4Header, V6_HEADER, V6Header, protocol};

/// Bytes before the body: type, code, checksum and one word whose meaning depends on the type.
pub const HEADER: usize = 8;

/// Types of ICMP for IPv4 and their codes.
pub mod v4 {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Code of unreachable: no such host.
    pub const HOST_UNREACHABLE: u8 = 1;
    /// Code of unreachable: no such protocol.
    pub const PROTOCOL_UNREACHABLE: u8 = 2;
    /// Code of unreachable: nobody listens on the port.
    pub const PORT_UNREACHABLE: u8 = 3;
    /// Code of unreachable: too big and not to be fragmented (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Code of unreachable: forbidden by a filter (RFC 1812 §5.2.7.1).
    pub const HOST_PROHIBITED: u8 = 10;
}

/// Types of ICMPv6 and their codes.
pub mod v6 {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Code of unreachable: no route.
    pub const NO_ROUTE: u8 = 0;
    /// Code of unreachable: forbidden by a filter.
    pub const PROHIBITED: u8 = 1;
    /// Code of unreachable: the address does not answer.
    pub const ADDRESS_UNREACHABLE: u8 = 3;
    /// Code of unreachable: nobody listens on the port.
    pub const PORT_UNREACHABLE: u8 = 4;
}

/// A message of either version: which one, the IP header before it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    header: &'a [u8; HEADER],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a message. The checksum is not judged: see [`Message::checksum_is_right`].
    ///
    /// # Errors
    /// [`Malformed::Truncated`] for less than 8 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed::Truncated)?;
        Ok(Self { header, body })
    }

    /// The type.
    pub fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code.
    pub fn code(&self) -> u8 {
        self.header[1]
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The word after the checksum: identifier and sequence number of an echo, MTU of 'too big', pointer.
    pub fn word(&self) -> u32 {
        u32::from_be_bytes([self.header[4], self.header[5], self.header[6], self.header[7]])
    }

    /// What follows: the data of an echo, the packet an error is about.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// True when the checksum fits. ICMPv6 covers the addresses, ICMP for IPv4 does not.
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr) -> bool {
        let start = match (source, destination) {
            (IpAddr::V4(_), IpAddr::V4(_)) => Sum::ZERO,
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let Ok(length) = u32::try_from(HEADER + self.body.len()) else { return false };
                pseudo_v6(source, destination, protocol::ICMPV6, length)
            }
            _ => return false,
        };
        start.bytes(self.header).bytes(self.body).folded() == 0xffff
    }
}

/// An echo request or reply of ICMPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// True for a request, false for a reply.
    pub request: bool,
    /// Whose echo it is.
    pub identifier: u16,
    /// Which one of them.
    pub sequence: u16,
    /// Comes back unchanged.
    pub data: &'a [u8],
}

impl<'a> Echo<'a> {
    /// Reads the payload of an IPv6 packet as an echo; `None` for any other ICMPv6 message or a wrong checksum.
    pub fn parse(payload: &'a [u8], source: Ipv6Addr, destination: Ipv6Addr) -> Option<Self> {
        let message = Message::parse(payload).ok()?;
        let request = match (message.kind(), message.code()) {
            (v6::ECHO_REQUEST, 0) => true,
            (v6::ECHO_REPLY, 0) => false,
            _ => return None,
        };
        if !message.checksum_is_right(source.into(), destination.into()) {
            return None;
        }
        let word = message.word();
        Some(Self { request, identifier: (word >> 16) as u16, sequence: word as u16, data: message.body() })
    }

    /// Appends the ICMPv6 message, without an IPv6 header.
    ///
    /// # Errors
    /// [`Malformed::Length`] past 65,535 bytes; nothing is written then.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let kind = if self.request { v6::ECHO_REQUEST } else { v6::ECHO_REPLY };
        let word = u32::from(self.identifier) << 16 | u32::from(self.sequence);
        let length = u16::try_from(HEADER + self.data.len()).map_err(|_| Malformed::Length)?;
        message(pseudo_v6(source, destination, protocol::ICMPV6, length.into()), kind, 0, word, self.data, out);
        Ok(())
    }

    /// The reply to this request, with the same identifier, sequence number and data.
    #[must_use]
    pub fn reply(self) -> Self {
        Self { request: false, ..self }
    }
}

/// An error and the packet that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError<'a> {
    /// The type, in the numbers of the packet's version.
    pub kind: u8,
    /// The code.
    pub code: u8,
    /// The MTU in 'packet too big' and 'fragmentation needed'.
    pub mtu: Option<u32>,
    /// The beginning of the packet that the error is about, from its IP header on.
    pub quoted: &'a [u8],
}

impl<'a> IcmpError<'a> {
    /// Reads an IP packet as an ICMP or ICMPv6 error; `None` for anything else and for a wrong checksum.
    pub fn parse(packet: &IpPacket<'a>) -> Option<Self> {
        if packet.fragment().is_some() {
            return None;
        }
        let message = Message::parse(packet.payload()).ok()?;
        let (kind, code) = (message.kind(), message.code());
        let mtu = match (packet, packet.protocol()) {
            (IpPacket::V4(_), protocol::ICMP) if is_v4_error(kind) => {
                (kind == v4::UNREACHABLE && code == v4::FRAGMENTATION_NEEDED).then(|| message.word() & 0xffff)
            }
            // RFC 4443 §2.1: types below 128 are errors.
            (IpPacket::V6(_), protocol::ICMPV6) if kind < 128 => (kind == v6::PACKET_TOO_BIG).then(|| message.word()),
            _ => return None,
        };
        let right = message.checksum_is_right(packet.src(), packet.dst());
        right.then(|| Self { kind, code, mtu, quoted: message.body() })
    }

    /// True when the error says that nobody took the packet: 'unreachable' of any code but 'fragmentation needed'.
    pub fn is_unreachable(&self, version_six: bool) -> bool {
        if version_six { self.kind == v6::UNREACHABLE } else { self.kind == v4::UNREACHABLE && self.mtu.is_none() }
    }
}

/// Appends an IPv6 packet from `from` to the sender of `offending`: packet too big, the largest is `mtu` bytes
/// (RFC 4443 §3.2).
///
/// # Errors
/// As [`error_v6`].
pub fn packet_too_big(offending: &[u8], mtu: u32, from: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    error_v6(offending, v6::PACKET_TOO_BIG, 0, mtu, from, out)
}

/// Appends an IPv4 packet from `from` to the sender of `offending`: fragmentation needed, the next link takes `mtu`
/// bytes (RFC 1191 §4).
///
/// # Errors
/// As [`error_v4`].
pub fn fragmentation_needed(offending: &[u8], mtu: u16, from: Ipv4Addr, out: &mut Vec<u8>) -> Result<(), Malformed> {
    error_v4(offending, v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED, mtu.into(), from, out)
}

/// Appends a whole IPv6 packet with an ICMPv6 error about `offending`, quoted as far as 1,280 bytes allow.
///
/// # Errors
/// [`Malformed`] when `offending` is no IPv6 packet; [`Malformed::Unsupported`] when it must not be answered with an
/// error: it is one itself, has no single sender, or went to a multicast address (RFC 4443 §2.4 (e)).
pub fn error_v6(
    offending: &[u8],
    kind: u8,
    code: u8,
    word: u32,
    from: Ipv6Addr,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let IpPacket::V6(packet) = IpPacket::parse_quoted(offending)? else { return Err(Malformed::Version) };
    let to = packet.src();
    let about_error = packet.protocol() == protocol::ICMPV6 && packet.payload().first().is_none_or(|kind| *kind < 128);
    let multicast = packet.dst().is_multicast() && kind != v6::PACKET_TOO_BIG; // RFC 4443 §2.4 (e.3)
    if about_error || multicast || to.is_multicast() || to.is_unspecified() {
        return Err(Malformed::Unsupported);
    }
    let whole = IpPacket::V6(packet).len();
    let quoted = offending.get(..whole.min(1280 - V6_HEADER - HEADER)).unwrap_or_default();
    let length = HEADER + quoted.len();
    V6Header::new(from, to, protocol::ICMPV6).emit(length, out)?;
    message(pseudo_v6(from, to, protocol::ICMPV6, length as u32), kind, code, word, quoted, out);
    Ok(())
}

/// Appends a whole IPv4 packet with an ICMP error about `offending`, quoted as far as 576 bytes allow
/// (RFC 1812 §4.3.2.3).
///
/// # Errors
/// [`Malformed`] when `offending` is no IPv4 packet; [`Malformed::Unsupported`] when it must not be answered with an
/// error: it is one itself, is no first fragment, has no single sender or receiver (RFC 1122 §3.2.2).
pub fn error_v4(
    offending: &[u8],
    kind: u8,
    code: u8,
    word: u32,
    from: Ipv4Addr,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let IpPacket::V4(packet) = IpPacket::parse_quoted(offending)? else { return Err(Malformed::Version) };
    let to = packet.src();
    let about_error =
        packet.protocol() == protocol::ICMP && packet.payload().first().is_none_or(|kind| is_v4_error(*kind));
    let later = packet.fragment().is_some_and(|fragment| fragment.offset != 0);
    let no_single_host = packet.dst().is_multicast()
        || packet.dst().is_broadcast()
        || to.is_multicast()
        || to.is_broadcast()
        || to.is_unspecified();
    if about_error || later || no_single_host {
        return Err(Malformed::Unsupported);
    }
    let whole = IpPacket::V4(packet).len();
    let quoted = offending.get(..whole.min(576 - V4_HEADER - HEADER)).unwrap_or_default();
    V4Header::new(from, to, protocol::ICMP).emit(HEADER + quoted.len(), out)?;
    message(Sum::ZERO, kind, code, word, quoted, out);
    Ok(())
}

/// Appends a message whose checksum continues `start`, the pseudo-header's sum.
pub(crate) fn message(start: Sum, kind: u8, code: u8, word: u32, body: &[u8], out: &mut Vec<u8>) {
    let checksum = start.word(u16::from_be_bytes([kind, code])).long(word).bytes(body).checksum();
    out.extend_from_slice(&[kind, code]);
    out.extend_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&word.to_be_bytes());
    out.extend_from_slice(body);
}

/// Unreachable, source quench, redirect, time exceeded, parameter problem: the messages about another packet
/// (RFC 1122 §3.2.2).
pub(crate) fn is_v4_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp;
    use proptest::prelude::*;

    const A4: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 1);
    const B4: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 2);
    const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 1);
    const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 2);

    fn datagram_v6(data: &[u8]) -> Vec<u8> {
        udp::packet((A6.into(), 1), (B6.into(), 2), data).unwrap()
    }

    fn datagram_v4(data: &[u8]) -> Vec<u8> {
        udp::packet((A4.into(), 1), (B4.into(), 2), data).unwrap()
    }

    proptest! {
        #[test]
        fn echo_parse_after_emit_is_the_identity_and_etherparse_agrees(request: bool, identifier: u16, sequence: u16, data in proptest::collection::vec(any::<u8>(), 0..90)) {
            let echo = Echo { request, identifier, sequence, data: &data };
            let mut bytes = Vec::new();
            echo.emit(A6, B6, &mut bytes).unwrap();
            prop_assert_eq!(Echo::parse(&bytes, A6, B6), Some(echo));
            prop_assert_eq!(Echo::parse(&bytes, A6, A6), None);
            let header = etherparse::IcmpEchoHeader { id: identifier, seq: sequence };
            let kind = if request { etherparse::Icmpv6Type::EchoRequest(header) } else { etherparse::Icmpv6Type::EchoReply(header) };
            let theirs = etherparse::Icmpv6Header::with_checksum(kind, A6.octets(), B6.octets(), &data).unwrap();
            prop_assert_eq!(&bytes[..8], &theirs.to_bytes()[..]);
        }

        #[test]
        fn too_big_names_the_mtu_and_quotes_the_packet(length in 0usize..2000, mtu in 1280u32..9000) {
            let offending = datagram_v6(&vec![7; length]);
            let mut bytes = Vec::new();
            packet_too_big(&offending, mtu, B6, &mut bytes).unwrap();
            prop_assert!(bytes.len() <= 1280);
            let packet = IpPacket::parse(&bytes).unwrap();
            let error = IcmpError::parse(&packet).unwrap();
            prop_assert_eq!((packet.dst(), error.kind, error.mtu), (A6.into(), 2, Some(mtu)));
            prop_assert!(offending.starts_with(error.quoted) && error.quoted.len() >= offending.len().min(1232));
            let theirs = etherparse::Icmpv6Slice::from_slice(packet.payload()).unwrap();
            prop_assert!(theirs.is_checksum_valid(B6.octets(), A6.octets()));
            prop_assert_eq!(theirs.icmp_type(), etherparse::Icmpv6Type::PacketTooBig { mtu });
        }

        #[test]
        fn fragmentation_needed_names_the_mtu_and_quotes_the_packet(length in 0usize..2000, mtu in 576u16..9000) {
            let offending = datagram_v4(&vec![7; length]);
            let mut bytes = Vec::new();
            fragmentation_needed(&offending, mtu, B4, &mut bytes).unwrap();
            prop_assert!(bytes.len() <= 576);
            let packet = IpPacket::parse(&bytes).unwrap();
            let error = IcmpError::parse(&packet).unwrap();
            prop_assert_eq!((packet.dst(), error.kind, error.code, error.mtu), (A4.into(), 3, 4, Some(u32::from(mtu))));
            prop_assert!(offending.starts_with(error.quoted) && !error.is_unreachable(false));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), six: bool) {
            if let Some(first) = bytes.first_mut() { *first = if six { 0x60 } else { 0x45 }; }
            let _ = packet_too_big(&bytes, 1280, A6, &mut Vec::new());
            let _ = fragmentation_needed(&bytes, 576, A4, &mut Vec::new());
            if let Ok(packet) = IpPacket::parse_quoted(&bytes) { let _ = IcmpError::parse(&packet); }
        }
    }

    #[test]
    fn errors_are_not_answered_with_errors() {
        let mut error = Vec::new();
        packet_too_big(&datagram_v6(b""), 1280, B6, &mut error).unwrap();
        assert_eq!(packet_too_big(&error, 1280, A6, &mut Vec::new()), Err(Malformed::Unsupported));
        error.clear();
        fragmentation_needed(&datagram_v4(b""), 576, B4, &mut error).unwrap();
        assert_eq!(fragmentation_needed(&error, 576, A4, &mut Vec::new()), Err(Malformed::Unsupported));
        assert_eq!(packet_too_big(&error, 1280, A6, &mut Vec::new()), Err(Malformed::Version));
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut bytes = Vec::new();
        error_v6(&datagram_v6(b"x"), v6::UNREACHABLE, v6::PORT_UNREACHABLE, 0, B6, &mut bytes).unwrap();
        let packet = IpPacket::parse(&bytes).unwrap();
        assert!(IcmpError::parse(&packet).unwrap().is_unreachable(true));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(IcmpError::parse(&IpPacket::parse(&bytes).unwrap()), None);
    }
}

//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers: a checked view of a packet and emission of plain headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Malformed;
use crate::checksum::Sum;

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers") that are used here.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// ESP.
    pub const ESP: u8 = 50;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// HIP.
    pub const HIP: u8 = 139;
}

/// Bytes of an IPv4 header without options.
pub const V4_HEADER: usize = 20;
/// Bytes of the fixed IPv6 header.
pub const V6_HEADER: usize = 40;
/// What hosts send with (IANA "IP Parameters", the recommended default TTL).
pub const HOP_LIMIT: u8 = 64;

/// A whole IP packet: the view has been checked, so reading it cannot fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpPacket<'a> {
    /// IPv4.
    V4(V4<'a>),
    /// IPv6.
    V6(V6<'a>),
}

/// Which part of a fragmented packet this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where the part begins, in bytes from the start of the original payload.
    pub offset: u16,
    /// True unless it is the last part.
    pub more: bool,
    /// The number all parts of one packet share.
    pub identification: u32,
}

impl<'a> IpPacket<'a> {
    /// Reads a packet of either version. Bytes after the packet's own length are left out.
    ///
    /// # Errors
    /// [`Malformed`] for another version, a header that is cut or a length that does not fit, and for IPv4 a wrong
    /// header checksum.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match version(bytes)? {
            4 => V4::parse(bytes).map(Self::V4),
            _ => V6::parse(bytes).map(Self::V6),
        }
    }

    /// Reads the beginning of a packet, as ICMP errors quote it: the payload may be cut short, and the IPv4 header
    /// checksum is not judged.
    ///
    /// # Errors
    /// [`Malformed`] when even the header is not whole.
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match version(bytes)? {
            4 => V4::read(bytes, true).map(Self::V4),
            _ => V6::read(bytes, true).map(Self::V6),
        }
    }

    /// The source address.
    pub fn src(&self) -> IpAddr {
        match self {
            Self::V4(packet) => packet.src().into(),
            Self::V6(packet) => packet.src().into(),
        }
    }

    /// The destination address.
    pub fn dst(&self) -> IpAddr {
        match self {
            Self::V4(packet) => packet.dst().into(),
            Self::V6(packet) => packet.dst().into(),
        }
    }

    /// The upper-layer protocol: the number of what [`IpPacket::payload`] is.
    pub fn protocol(&self) -> u8 {
        match self {
            Self::V4(packet) => packet.protocol(),
            Self::V6(packet) => packet.protocol,
        }
    }

    /// What follows the IP headers.
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::V4(packet) => packet.payload,
            Self::V6(packet) => packet.payload,
        }
    }

    /// Bytes before the payload: header with options, or with extension headers.
    pub fn header_len(&self) -> usize {
        match self {
            Self::V4(packet) => V4_HEADER + packet.options.len(),
            Self::V6(packet) => V6_HEADER + packet.extensions.len(),
        }
    }

    /// Bytes of the whole packet as far as they are there.
    pub fn len(&self) -> usize {
        self.header_len() + self.payload().len()
    }

    /// True when nothing follows the headers.
    pub fn is_empty(&self) -> bool {
        self.payload().is_empty()
    }

    /// The time to live or hop limit.
    pub fn hop_limit(&self) -> u8 {
        match self {
            Self::V4(packet) => packet.header[8],
            Self::V6(packet) => packet.header[7],
        }
    }

    /// The type of service or traffic class: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        match self {
            Self::V4(packet) => packet.header[1],
            Self::V6(packet) => packet.header[0] << 4 | packet.header[1] >> 4,
        }
    }

    /// The Differentiated Services code point (RFC 2474), 0 to 63.
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// The ECN field (RFC 3168): 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Which fragment this is; `None` for a whole packet.
    pub fn fragment(&self) -> Option<Fragment> {
        match self {
            Self::V4(packet) => packet.fragment(),
            Self::V6(packet) => packet.fragment,
        }
    }
}

/// A checked IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V4<'a> {
    header: &'a [u8; V4_HEADER],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> V4<'a> {
    /// Reads an IPv4 packet and checks its header checksum.
    ///
    /// # Errors
    /// As [`IpPacket::parse`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let packet = Self::read(bytes, false)?;
        let sum = Sum::ZERO.bytes(packet.header).bytes(packet.options);
        if sum.folded() == 0xffff { Ok(packet) } else { Err(Malformed::Checksum) }
    }

    fn read(bytes: &'a [u8], quoted: bool) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<V4_HEADER>().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let options_len = header_len.checked_sub(V4_HEADER).ok_or(Malformed::Length)?;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let payload_len = total.checked_sub(header_len).ok_or(Malformed::Length)?;
        let (options, rest) = rest.split_at_checked(options_len).ok_or(Malformed::Truncated)?;
        let payload = cut(rest, payload_len, quoted)?;
        Ok(Self { header, options, payload })
    }

    /// The source address.
    pub fn src(&self) -> Ipv4Addr {
        let h = self.header;
        Ipv4Addr::new(h[12], h[13], h[14], h[15])
    }

    /// The destination address.
    pub fn dst(&self) -> Ipv4Addr {
        let h = self.header;
        Ipv4Addr::new(h[16], h[17], h[18], h[19])
    }

    /// The upper-layer protocol.
    pub fn protocol(&self) -> u8 {
        self.header[9]
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The length of the payload by the header; more than is there only in a quoted packet.
    pub fn payload_len(&self) -> usize {
        usize::from(u16::from_be_bytes([self.header[2], self.header[3]])).saturating_sub(V4_HEADER + self.options.len())
    }

    /// The identification field.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// True when routers must not fragment the packet.
    pub fn dont_fragment(&self) -> bool {
        self.header[6] & 0x40 != 0
    }

    /// Which fragment this is; `None` for a whole packet.
    pub fn fragment(&self) -> Option<Fragment> {
        let field = u16::from_be_bytes([self.header[6], self.header[7]]);
        let (more, offset) = (field & 0x2000 != 0, (field & 0x1fff) << 3);
        (more || offset != 0).then(|| Fragment { offset, more, identification: self.identification().into() })
    }
}

/// A checked IPv6 packet. Hop-by-hop and destination options and a fragment header are stepped over; any other
/// extension header counts as the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V6<'a> {
    header: &'a [u8; V6_HEADER],
    extensions: &'a [u8],
    protocol: u8,
    fragment: Option<Fragment>,
    payload: &'a [u8],
}

impl<'a> V6<'a> {
    /// Reads an IPv6 packet.
    ///
    /// # Errors
    /// As [`IpPacket::parse`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::read(bytes, false)
    }

    fn read(bytes: &'a [u8], quoted: bool) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<V6_HEADER>().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let body = cut(rest, usize::from(u16::from_be_bytes([header[4], header[5]])), quoted)?;
        let (mut protocol, mut at, mut fragment) = (header[6], 0usize, None);
        // Each step moves on by at least 8 bytes, so this ends.
        while let protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS | protocol::FRAGMENT = protocol {
            let rest = body.get(at..).ok_or(Malformed::Truncated)?;
            let extension = rest.first_chunk::<8>().ok_or(Malformed::Truncated)?;
            let length = if protocol == protocol::FRAGMENT {
                let field = u16::from_be_bytes([extension[2], extension[3]]);
                let identification = u32::from_be_bytes([extension[4], extension[5], extension[6], extension[7]]);
                // An atomic fragment (offset 0, no more) is a whole packet (RFC 6946).
                if field & 0xfff9 != 0 {
                    fragment = Some(Fragment { offset: field & 0xfff8, more: field & 1 != 0, identification });
                }
                8
            } else {
                8 + 8 * usize::from(extension[1])
            };
            if rest.len() < length {
                return Err(Malformed::Truncated);
            }
            protocol = extension[0];
            at += length;
            if fragment.is_some_and(|fragment| fragment.offset != 0) {
                break; // what follows is the middle of the payload
            }
        }
        let (extensions, payload) = body.split_at_checked(at).ok_or(Malformed::Truncated)?;
        Ok(Self { header, extensions, protocol, fragment, payload })
    }

    /// The source address.
    pub fn src(&self) -> Ipv6Addr {
        address(self.header, 8)
    }

    /// The destination address.
    pub fn dst(&self) -> Ipv6Addr {
        address(self.header, 24)
    }

    /// The protocol after the extension headers.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// What follows the extension headers.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The extension headers that were stepped over.
    pub fn extensions(&self) -> &'a [u8] {
        self.extensions
    }

    /// The length of the payload by the header; more than is there only in a quoted packet.
    pub fn payload_len(&self) -> usize {
        usize::from(u16::from_be_bytes([self.header[4], self.header[5]])).saturating_sub(self.extensions.len())
    }

    /// The flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.header[1] & 0x0f, self.header[2], self.header[3]])
    }

    /// Which fragment this is; `None` for a whole packet.
    pub fn fragment(&self) -> Option<Fragment> {
        self.fragment
    }
}

/// An IPv4 header to be written, without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V4Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// Type of service: DSCP and ECN.
    pub traffic_class: u8,
    /// Time to live.
    pub hop_limit: u8,
    /// Identification; 0 is right for packets that must not be fragmented (RFC 6864 §4.1).
    pub identification: u16,
    /// Forbids routers to fragment.
    pub dont_fragment: bool,
}

impl V4Header {
    /// That of a packet as hosts send it: whole, not to be fragmented, with the usual [`HOP_LIMIT`] and no marks.
    pub const fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Self {
        let (traffic_class, identification) = (0, 0);
        Self { source, destination, protocol, traffic_class, hop_limit: HOP_LIMIT, identification, dont_fragment: true }
    }

    /// Appends the 20 bytes of the header, checksum included, for a payload of `payload_len` bytes.
    ///
    /// # Errors
    /// [`Malformed::Length`] when the packet would pass 65,535 bytes; nothing is written then.
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.extend_from_slice(&self.bytes(payload_len)?);
        Ok(())
    }

    /// The 20 bytes of the header, checksum included.
    ///
    /// # Errors
    /// As [`V4Header::emit`].
    pub fn bytes(&self, payload_len: usize) -> Result<[u8; V4_HEADER], Malformed> {
        let total = payload_len.checked_add(V4_HEADER).and_then(|n| u16::try_from(n).ok()).ok_or(Malformed::Length)?;
        let mut header = [0; V4_HEADER];
        header[0] = 0x45;
        header[1] = self.traffic_class;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6] = if self.dont_fragment { 0x40 } else { 0 };
        header[8] = self.hop_limit;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.destination.octets());
        let checksum = Sum::ZERO.bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        Ok(header)
    }
}

/// An IPv6 header to be written, without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Upper-layer protocol.
    pub protocol: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label; only the low 20 bits are used.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

impl V6Header {
    /// That of a packet as hosts send it: with the usual [`HOP_LIMIT`], no marks and no flow label.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8) -> Self {
        Self { source, destination, protocol, traffic_class: 0, flow_label: 0, hop_limit: HOP_LIMIT }
    }

    /// Appends the 40 bytes of the header for a payload of `payload_len` bytes.
    ///
    /// # Errors
    /// [`Malformed::Length`] when the payload passes 65,535 bytes; nothing is written then.
    pub fn emit(&self, payload_len: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.extend_from_slice(&self.bytes(payload_len)?);
        Ok(())
    }

    /// The 40 bytes of the header for a payload of `payload_len` bytes.
    ///
    /// # Errors
    /// [`Malformed::Length`] when the payload passes 65,535 bytes.
    pub fn bytes(&self, payload_len: usize) -> Result<[u8; V6_HEADER], Malformed> {
        let length = u16::try_from(payload_len).map_err(|_| Malformed::Length)?;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        let mut header = [0; V6_HEADER];
        header[0..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&length.to_be_bytes());
        header[6] = self.protocol;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.source.octets());
        header[24..40].copy_from_slice(&self.destination.octets());
        Ok(header)
    }
}

/// Appends the header of a packet as hosts send it, [`V4Header::new`] or [`V6Header::new`] by the addresses.
///
/// # Errors
/// [`Malformed::Length`] for a payload that is too long, [`Malformed::Version`] for addresses of two families; nothing is
/// written then.
pub fn emit(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    emit_of(0, source, destination, protocol, payload_len, out)
}

/// As [`emit`], with this traffic class.
///
/// # Errors
/// As [`emit`].
pub fn emit_of(
    traffic_class: u8,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            V4Header { traffic_class, ..V4Header::new(source, destination, protocol) }.emit(payload_len, out)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            V6Header { traffic_class, ..V6Header::new(source, destination, protocol) }.emit(payload_len, out)
        }
        _ => Err(Malformed::Version),
    }
}

/// A whole packet as hosts send it, with this payload.
///
/// # Errors
/// As [`emit`].
pub fn packet(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut packet = Vec::with_capacity(V6_HEADER + payload.len());
    emit(source, destination, protocol, payload.len(), &mut packet)?;
    packet.extend_from_slice(payload);
    Ok(packet)
}

fn version(bytes: &[u8]) -> Result<u8, Malformed> {
    match bytes.first().map(|first| first >> 4) {
        Some(version @ (4 | 6)) => Ok(version),
        Some(_) => Err(Malformed::Version),
        None => Err(Malformed::Truncated),
    }
}

fn cut(rest: &[u8], length: usize, quoted: bool) -> Result<&[u8], Malformed> {
    let available = if quoted { length.min(rest.len()) } else { length };
    rest.get(..available).ok_or(Malformed::Truncated)
}

fn address(header: &[u8; V6_HEADER], at: usize) -> Ipv6Addr {
    let octets = header.get(at..).and_then(<[u8]>::first_chunk::<16>);
    octets.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4_header() -> impl Strategy<Value = V4Header> {
        any::<([u8; 4], [u8; 4], u8, u8, u8, u16, bool)>().prop_map(|(s, d, protocol, tc, ttl, id, df)| V4Header {
            source: s.into(),
            destination: d.into(),
            protocol,
            traffic_class: tc,
            hop_limit: ttl,
            identification: id,
            dont_fragment: df,
        })
    }

    fn v6_header() -> impl Strategy<Value = V6Header> {
        any::<([u8; 16], [u8; 16], u8, u8, u32, u8)>().prop_map(|(s, d, protocol, tc, label, hops)| V6Header {
            source: s.into(),
            destination: d.into(),
            // The three numbers that are stepped over would need a body that fits.
            protocol: if matches!(protocol, 0 | 44 | 60) { 6 } else { protocol },
            traffic_class: tc,
            flow_label: label & 0xf_ffff,
            hop_limit: hops,
        })
    }

    proptest! {
        #[test]
        fn v4_parse_after_emit_is_the_identity(header in v4_header(), payload in proptest::collection::vec(any::<u8>(), 0..100), padding in 0usize..9) {
            let mut bytes = Vec::new();
            header.emit(payload.len(), &mut bytes).unwrap();
            bytes.extend_from_slice(&payload);
            let whole = bytes.len();
            bytes.resize(whole + padding, 0xee);
            let IpPacket::V4(view) = IpPacket::parse(&bytes).unwrap() else { panic!("version") };
            let packet = IpPacket::V4(view);
            prop_assert_eq!(packet.payload(), &payload[..]);
            prop_assert_eq!((packet.len(), packet.fragment(), packet.header_len()), (whole, None, 20));
            let again = V4Header {
                source: view.src(), destination: view.dst(), protocol: packet.protocol(),
                traffic_class: packet.dscp() << 2 | packet.ecn(), hop_limit: packet.hop_limit(),
                identification: view.identification(), dont_fragment: view.dont_fragment(),
            };
            prop_assert_eq!(again, header);
        }

        #[test]
        fn v6_parse_after_emit_is_the_identity(header in v6_header(), payload in proptest::collection::vec(any::<u8>(), 0..100), padding in 0usize..9) {
            let mut bytes = Vec::new();
            header.emit(payload.len(), &mut bytes).unwrap();
            bytes.extend_from_slice(&payload);
            bytes.resize(bytes.len() + padding, 0xee);
            let IpPacket::V6(view) = IpPacket::parse(&bytes).unwrap() else { panic!("version") };
            let packet = IpPacket::V6(view);
            prop_assert_eq!(packet.payload(), &payload[..]);
            let again = V6Header {
                source: view.src(), destination: view.dst(), protocol: packet.protocol(),
                traffic_class: packet.dscp() << 2 | packet.ecn(), hop_limit: packet.hop_limit(), flow_label: view.flow_label(),
            };
            prop_assert_eq!(again, header);
        }

        #[test]
        fn headers_equal_those_of_etherparse(header in v6_header(), four in v4_header(), length in 0u16..1400) {
            let mut ours = Vec::new();
            header.emit(length.into(), &mut ours).unwrap();
            let theirs = etherparse::Ipv6Header {
                traffic_class: header.traffic_class,
                flow_label: header.flow_label.try_into().unwrap(),
                payload_length: length,
                next_header: header.protocol.into(),
                hop_limit: header.hop_limit,
                source: header.source.octets(),
                destination: header.destination.octets(),
            };
            prop_assert_eq!(&ours[..], &theirs.to_bytes()[..]);
            ours.clear();
            four.emit(length.into(), &mut ours).unwrap();
            let mut theirs = etherparse::Ipv4Header::new(length, four.hop_limit, four.protocol.into(), four.source.octets(), four.destination.octets()).unwrap();
            theirs.dscp = (four.traffic_class >> 2).try_into().unwrap();
            theirs.ecn = (four.traffic_class & 3).try_into().unwrap();
            theirs.identification = four.identification;
            theirs.dont_fragment = four.dont_fragment;
            theirs.header_checksum = theirs.calc_header_checksum();
            prop_assert_eq!(&ours[..], &theirs.to_bytes()[..]);
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x00]), next in prop::sample::select(vec![0u8, 44, 60, 6])) {
            if let Some(first) = bytes.first_mut() { *first = version; }
            if version == 0x60 && bytes.len() > 6 { bytes[4] = 0; bytes[6] = next; }
            let _ = IpPacket::parse(&bytes);
            if let Ok(packet) = IpPacket::parse_quoted(&bytes) {
                prop_assert!(packet.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn options_and_fragments_of_ipv6_are_stepped_over() {
        let header = V6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, protocol::HOP_BY_HOP);
        let mut bytes = Vec::new();
        header.emit(16 + 8 + 4, &mut bytes).unwrap();
        bytes.extend_from_slice(&[44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&[17, 0, 0x00, 0x09, 0, 0, 0, 7]); // offset 8, more, identification 7
        bytes.extend_from_slice(b"rest");
        let packet = IpPacket::parse(&bytes).unwrap();
        assert_eq!((packet.protocol(), packet.payload(), packet.header_len()), (17, &b"rest"[..], 64));
        assert_eq!(packet.fragment(), Some(Fragment { offset: 8, more: true, identification: 7 }));
        bytes.truncate(50);
        assert_eq!(IpPacket::parse(&bytes), Err(Malformed::Truncated));
    }

    #[test]
    fn a_wrong_ipv4_checksum_is_refused() {
        let header = V4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, protocol::TCP);
        let mut bytes = Vec::new();
        header.emit(0, &mut bytes).unwrap();
        assert!(IpPacket::parse(&bytes).is_ok());
        bytes[8] ^= 1;
        assert_eq!(IpPacket::parse(&bytes), Err(Malformed::Checksum));
        assert!(header.emit(65_516, &mut Vec::new()).is_err());
    }
}

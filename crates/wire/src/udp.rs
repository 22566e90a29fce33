//! UDP datagrams (RFC 768; over IPv6, RFC 8200 §8.1): a checked view and emission.

use std::net::IpAddr;

use crate::Malformed;
use crate::checksum::pseudo;
use crate::ip::{self, V6_HEADER, protocol};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Where the checksum stands in the header.
pub(crate) const CHECKSUM_AT: usize = 6;

/// A checked UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    header: &'a [u8; HEADER],
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a datagram; bytes past its length are left out. The checksum is not judged.
    ///
    /// # Errors
    /// [`Malformed`] when it is cut or its length impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed::Truncated)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload_len = length.checked_sub(HEADER).ok_or(Malformed::Length)?;
        let payload = rest.get(..payload_len).ok_or(Malformed::Truncated)?;
        Ok(Self { header, payload })
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The checksum field; 0 means that there is none, which only IPv4 allows in general.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// The data.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// True when the checksum fits the content between these addresses, or is absent over IPv4.
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr) -> bool {
        if self.checksum() == 0 {
            return source.is_ipv4() && destination.is_ipv4();
        }
        let Ok(length) = u32::try_from(HEADER + self.payload.len()) else { return false };
        pseudo(source, destination, protocol::UDP, length)
            .is_some_and(|sum| sum.bytes(self.header).bytes(self.payload).folded() == 0xffff)
    }
}

/// Appends a datagram with the checksum for these addresses.
///
/// # Errors
/// [`Malformed::Length`] past 65,535 bytes, [`Malformed::Version`] for addresses of two families; nothing is written
/// then.
pub fn emit(
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let length = u16::try_from(HEADER + payload.len()).map_err(|_| Malformed::Length)?;
    let sum = pseudo(source.0, destination.0, protocol::UDP, length.into()).ok_or(Malformed::Version)?;
    let mut header = [0; HEADER];
    header[0..2].copy_from_slice(&source.1.to_be_bytes());
    header[2..4].copy_from_slice(&destination.1.to_be_bytes());
    header[4..6].copy_from_slice(&length.to_be_bytes());
    let checksum = never_zero(sum.bytes(&header).bytes(payload).checksum());
    header[CHECKSUM_AT..8].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(payload);
    Ok(())
}

/// A whole IP packet with a datagram in it, as hosts send it.
///
/// # Errors
/// As [`emit`] and [`ip::emit`].
pub fn packet(source: (IpAddr, u16), destination: (IpAddr, u16), payload: &[u8]) -> Result<Vec<u8>, Malformed> {
    packet_of(0, source, destination, payload)
}

/// As [`packet`], with this traffic class.
///
/// # Errors
/// As [`packet`].
pub fn packet_of(
    traffic_class: u8,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    payload: &[u8],
) -> Result<Vec<u8>, Malformed> {
    let length = HEADER + payload.len();
    let mut packet = Vec::with_capacity(V6_HEADER + length);
    ip::emit_of(traffic_class, source.0, destination.0, protocol::UDP, length, &mut packet)?;
    emit(source, destination, payload, &mut packet)?;
    Ok(packet)
}

/// A computed checksum of zero is sent as all ones, the same number in ones' complement (RFC 768).
pub(crate) fn never_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity_and_etherparse_agrees(a: [u8; 4], b: [u8; 4], ports: (u16, u16), payload in proptest::collection::vec(any::<u8>(), 0..90)) {
            let (source, destination) = (IpAddr::from(a), IpAddr::from(b));
            let mut bytes = Vec::new();
            emit((source, ports.0), (destination, ports.1), &payload, &mut bytes).unwrap();
            let theirs = etherparse::UdpHeader::without_ipv4_checksum(ports.0, ports.1, payload.len()).unwrap();
            let checksum = theirs.calc_checksum_ipv4_raw(a, b, &payload).unwrap();
            bytes.extend_from_slice(b"padding");
            let view = Datagram::parse(&bytes).unwrap();
            prop_assert_eq!((view.src_port(), view.dst_port(), view.payload()), (ports.0, ports.1, &payload[..]));
            prop_assert!(view.checksum_is_right(source, destination));
            prop_assert_eq!(view.checksum(), checksum);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Datagram::parse(&bytes);
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_ones() {
        // The payload is chosen as the complement of all the rest, so that the checksum would be 0.
        let (a, b) = ((IpAddr::from([0, 0, 0, 0]), 0), (IpAddr::from([0, 0, 0, 0]), 0));
        let mut bytes = Vec::new();
        emit(a, b, &0xffda_u16.to_be_bytes(), &mut bytes).unwrap(); // 17 + 10 + 10 = 0x25
        assert_eq!(Datagram::parse(&bytes).unwrap().checksum(), 0xffff);
        assert!(Datagram::parse(&bytes).unwrap().checksum_is_right(a.0, b.0));
    }
}

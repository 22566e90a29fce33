//! The outside of ESP packets (RFC 4303 §2) and how HIP and ESP share UDP port 10500 (RFC 5770 §5.1 and §5.4, after
//! RFC 3948).

use crate::{Malformed, Spi};

/// Bytes of SPI and sequence number.
pub const HEADER: usize = 8;

/// The UDP port for HIP and ESP (RFC 5770 §11, IANA "hip-nat-t").
pub const UDP_PORT: u16 = 10500;

/// Four zero bytes stand before a HIP packet in a datagram, where ESP has its SPI, which is never zero (RFC 5770 §5.1).
pub const HIP_IN_UDP_MARKER: [u8; 4] = [0; 4];

/// A NAT keepalive is one byte 0xff (RFC 3948 §2.3).
pub const KEEPALIVE: [u8; 1] = [0xff];

/// The clear beginning of an ESP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspHeader {
    /// The security association at the receiver.
    pub spi: Spi,
    /// The low 32 bits of the sequence number.
    pub seq: u32,
}

impl EspHeader {
    /// Splits a packet into header and the rest: IV, ciphertext, ICV.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] for less than 8 bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (&[a, b, c, d, e, f, g, h], rest) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed::Truncated)?;
        Ok((Self { spi: Spi(u32::from_be_bytes([a, b, c, d])), seq: u32::from_be_bytes([e, f, g, h]) }, rest))
    }

    /// Appends the 8 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.spi.0.to_be_bytes());
        out.extend_from_slice(&self.seq.to_be_bytes());
    }
}

/// What a datagram on port 10500 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulated<'a> {
    /// A HIP packet, without the marker.
    Hip(&'a [u8]),
    /// An ESP packet, from its SPI on.
    Esp(&'a [u8]),
    /// Keeps a NAT's mapping alive; nothing to do.
    Keepalive,
    /// Neither: too short to be one of them.
    Malformed,
}

/// Tells what the content of a UDP datagram on port 10500 is.
pub fn classify(datagram: &[u8]) -> Encapsulated<'_> {
    if datagram == KEEPALIVE {
        return Encapsulated::Keepalive;
    }
    match datagram.strip_prefix(&HIP_IN_UDP_MARKER) {
        Some([]) => Encapsulated::Malformed,
        Some(packet) => Encapsulated::Hip(packet),
        None if datagram.len() >= HEADER => Encapsulated::Esp(datagram),
        None => Encapsulated::Malformed,
    }
}

/// Appends the content of a datagram that carries `packet`, a HIP packet.
pub fn emit_hip_in_udp(packet: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&HIP_IN_UDP_MARKER);
    out.extend_from_slice(packet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(spi in 1u32.., seq: u32, rest in proptest::collection::vec(any::<u8>(), 0..40)) {
            let header = EspHeader { spi: Spi(spi), seq };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(EspHeader::parse(&bytes), Ok((header, &rest[..])));
            prop_assert_eq!(classify(&bytes), Encapsulated::Esp(&bytes));
        }

        #[test]
        fn hip_comes_out_as_it_went_in(packet in proptest::collection::vec(any::<u8>(), 1..60)) {
            let mut bytes = Vec::new();
            emit_hip_in_udp(&packet, &mut bytes);
            prop_assert_eq!(classify(&bytes), Encapsulated::Hip(&packet));
        }
    }

    #[test]
    fn short_datagrams() {
        assert_eq!(classify(&[0xff]), Encapsulated::Keepalive);
        for bytes in [&[][..], &[0], &[0xfe], &[0; 4], &[1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(classify(bytes), Encapsulated::Malformed);
        }
        assert!(EspHeader::parse(&[0; 7]).is_err());
    }
}

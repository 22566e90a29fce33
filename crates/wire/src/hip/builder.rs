//! Emits HIP packets.

use std::net::IpAddr;

use super::parameter::{Parameter, kind, padded_len};
use super::{HEADER_LEN, IP_PROTOCOL, MAX_LEN, PacketKind};
use crate::{Hit, checksum};

/// A HIP packet under construction. Parameters have to be pushed in the order of their types; what a MAC or a signature
/// covers is what has been pushed before it.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    last: u16,
}

/// The parameters do not fit a HIP packet of 2048 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet would be longer than 2048 bytes")]
pub struct TooLong;

impl Builder {
    /// A packet without parameters.
    pub fn new(kind: PacketKind, sender: Hit, receiver: Hit) -> Self {
        let mut bytes = Vec::with_capacity(512);
        // RFC 7401 §5.1: no next header (59), length, type, version 2 with the fixed bit; checksum; controls.
        bytes.extend_from_slice(&[59, 4, kind as u8, 0x21, 0, 0, 0, 0]);
        bytes.extend_from_slice(&sender.0);
        bytes.extend_from_slice(&receiver.0);
        Self { bytes, last: 0 }
    }

    /// Sets the A bit of the controls, or not: the sender's identity is anonymous, and SHOULD NOT be stored (RFC 7401 §5.1.2).
    #[must_use]
    pub fn anonymous(mut self, is_anonymous: bool) -> Self {
        if let Some(controls) = self.bytes.get_mut(7) {
            *controls = u8::from(is_anonymous);
        }
        self
    }

    /// Appends a parameter.
    #[must_use]
    pub fn push(mut self, parameter: &Parameter) -> Self {
        debug_assert!(parameter.kind() >= self.last, "parameter {} out of order", parameter.kind());
        self.last = parameter.kind();
        parameter.emit(&mut self.bytes);
        self
    }

    /// Appends a parameter if there is one.
    #[must_use]
    pub fn push_some(self, parameter: Option<&Parameter>) -> Self {
        match parameter {
            Some(parameter) => self.push(parameter),
            None => self,
        }
    }

    /// What a HIP_MAC, HIP_SIGNATURE or HIP_SIGNATURE_2 that is pushed next covers.
    pub fn covered(&self) -> Vec<u8> {
        cover(self.bytes.clone())
    }

    /// What a HIP_MAC_2 that is pushed next covers.
    pub fn covered_with(&self, host_id: &Parameter) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        host_id.emit(&mut bytes);
        cover(bytes)
    }

    /// The packet, with a checksum of zero: right inside UDP (RFC 5770 §4.1), and [`set_checksum`] makes it right
    /// natively.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn finish(self) -> Result<Vec<u8>, TooLong> {
        if self.bytes.len() > MAX_LEN { Err(TooLong) } else { Ok(cover(self.bytes)) }
    }
}

/// Sets the checksum for a packet that goes natively between two addresses (RFC 7401 §5.1.1).
pub fn set_checksum(packet: &mut [u8], source: IpAddr, destination: IpAddr) {
    let sum = checksum(packet, source, destination);
    if let Some(field) = packet.get_mut(4..6) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Replaces the receiver's HIT, as for an R1 that was signed in advance.
pub fn set_receiver(packet: &mut [u8], receiver: Hit) {
    if let Some(field) = packet.get_mut(24..HEADER_LEN) {
        field.copy_from_slice(&receiver.0);
    }
}

/// Replaces opaque part and #I of the puzzle of an R1 that was signed in advance. Without a PUZZLE whose #I has the
/// length of `i` nothing happens.
pub fn set_puzzle(packet: &mut [u8], opaque: u16, i: &[u8]) {
    let mut at = HEADER_LEN;
    while let Some(&[t0, t1, l0, l1]) = packet.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if u16::from_be_bytes([t0, t1]) == kind::PUZZLE && len == 4 + i.len() {
            if let Some(field) = packet.get_mut(at + 6..at + 8 + i.len()) {
                field[..2].copy_from_slice(&opaque.to_be_bytes());
                field[2..].copy_from_slice(i);
            }
            return;
        }
        at += padded_len(len);
    }
}

/// Appends a parameter to a packet that was signed before; its type has to be greater than that of the signature. The
/// checksum becomes zero. False, and nothing is done, where it does not fit.
pub fn append(packet: &mut Vec<u8>, parameter: &Parameter) -> bool {
    let len = packet.len();
    parameter.emit(packet);
    if packet.len() > MAX_LEN {
        packet.truncate(len);
        return false;
    }
    *packet = cover(std::mem::take(packet));
    true
}

/// The length field set to what there is, the checksum to zero: the form in which packets are covered.
pub(super) fn cover(mut bytes: Vec<u8>) -> Vec<u8> {
    let units = (bytes.len() / 8).saturating_sub(1);
    if let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() {
        header[1] = units as u8;
        header[4] = 0;
        header[5] = 0;
    }
    bytes
}

/// The checksum of a packet between two addresses, whatever its checksum field holds. Addresses of different families
/// give a checksum that is never right.
pub(super) fn checksum(packet: &[u8], source: IpAddr, destination: IpAddr) -> u16 {
    let length = packet.len() as u32;
    match checksum::pseudo(source, destination, IP_PROTOCOL, length) {
        Some(sum) => {
            sum.bytes(packet.get(..4).unwrap_or_default()).bytes(packet.get(6..).unwrap_or_default()).checksum()
        }
        None => !packet.get(4..6).and_then(|field| field.try_into().ok()).map_or(0, u16::from_be_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hip::Packet;

    /// RFC 7401 appendix C.
    #[test]
    fn the_checksums_of_the_rfc() {
        for (source, destination, checksum) in
            [("2001:db8::1", "2001:db8::2", 0x1a5e_u16), ("192.0.2.1", "192.0.2.2", 0xf1ce)]
        {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let (a, b) = ("2001:20::1".parse().unwrap(), "2001:20::2".parse().unwrap());
            let mut bytes =
                Builder::new(PacketKind::I1, a, b).push(&Parameter::DhGroupList(vec![3, 4, 8])).finish().unwrap();
            set_checksum(&mut bytes, source, destination);
            let expected = [
                &[0x3b, 0x05, 0x01, 0x21][..],
                &checksum.to_be_bytes(),
                &[0, 0],
                &a.0,
                &b.0,
                &[0x01, 0xff, 0x00, 0x03, 0x03, 0x04, 0x08, 0x00],
            ]
            .concat();
            assert_eq!(bytes, expected);
            let packet = Packet::parse(&bytes).unwrap();
            assert!(packet.checksum_is_right(source, destination));
            assert!(!packet.checksum_is_right(destination, destination));
        }
    }
}

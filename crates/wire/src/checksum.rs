//! The Internet checksum (RFC 1071), over whole packets and incrementally (RFC 1624).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A running ones' complement sum of 16-bit big-endian words.
///
/// Pieces are added one after the other; every piece but the last must have an even length, as all headers have.
/// 2^32 full words fit before the sum could overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Nothing added yet.
    pub const ZERO: Self = Self(0);

    /// Adds a piece; an odd last byte is padded with zero on the right (RFC 1071 §4.1).
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        // 32-bit words into a 64-bit sum: folding at the end gives the same ones' complement sum (RFC 1071 §2 (C)),
        // and the loop vectorises.
        let mut sum = self.0;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        Self(fold_once(sum + u64::from(u32::from_be_bytes(last))))
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word))
    }

    /// Adds one 32-bit word.
    #[must_use]
    pub fn long(self, long: u32) -> Self {
        Self(self.0 + u64::from(long))
    }

    /// Adds an address, in either family.
    #[must_use]
    pub fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }

    /// The sum folded into 16 bits, not complemented. A packet that includes its checksum sums up to 0xffff.
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum: the complement of the folded sum.
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The pseudo-header of IPv4 (RFC 9293 §3.1): addresses, protocol and the length of the upper-layer packet in bytes.
pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u32) -> Sum {
    Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets()).word(u16::from(protocol)).long(length)
}

/// The pseudo-header of IPv6 (RFC 8200 §8.1): addresses, upper-layer protocol and length in bytes.
pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, length: u32) -> Sum {
    Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets()).word(u16::from(protocol)).long(length)
}

/// The pseudo-header for two addresses of the same family; `None` when the families differ.
pub fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, length: u32) -> Option<Sum> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Some(pseudo_v4(source, destination, protocol, length)),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Some(pseudo_v6(source, destination, protocol, length)),
        _ => None,
    }
}

/// The checksum after the words summed in `old` were replaced by those summed in `new`, without reading the rest of
/// the packet: HC' = ~(~HC + ~m + m') (RFC 1624 §3, equation 3). A checksum that was wrong stays wrong.
pub fn update(checksum: u16, old: Sum, new: Sum) -> u16 {
    Sum(new.0).word(!checksum).word(!old.folded()).checksum()
}

// Keeps the running sum far from overflow: 64 bits to at most 33.
fn fold_once(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, word by word with an end-around carry each: the second implementation.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            if sum > 0xffff {
                sum = (sum & 0xffff) + 1;
            }
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071() {
        // §3: bytes 00 01 f2 03 f4 f5 f6 f7 sum up to ddf2.
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.folded(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // §4: HC = 0xdd2f, m = 0x5555 becomes m' = 0x3285, HC' = 0x0000.
        assert_eq!(update(0xdd2f, Sum::ZERO.word(0x5555), Sum::ZERO.word(0x3285)), 0x0000);
    }

    proptest! {
        #[test]
        fn equals_the_word_by_word_sum(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(Sum::ZERO.bytes(&bytes).checksum(), naive(&bytes));
        }

        #[test]
        fn pieces_of_even_length_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..100) {
            let (a, b) = bytes.split_at((at * 2).min(bytes.len() & !1));
            prop_assert_eq!(Sum::ZERO.bytes(a).bytes(b).checksum(), naive(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(mut bytes in proptest::collection::vec(any::<u8>(), 20..100), new: [u8; 8]) {
            // All-zero packets have two representations of zero and do not occur: some word stays non-zero.
            bytes[18] |= 1;
            let before = Sum::ZERO.bytes(&bytes).checksum();
            let old = Sum::ZERO.bytes(&bytes[4..12]);
            bytes[4..12].copy_from_slice(&new);
            prop_assert_eq!(update(before, old, Sum::ZERO.bytes(&new)), naive(&bytes));
        }
    }
}

//! What a network reads and changes in the outermost IP header: the addresses, and explicit congestion notification (RFC 3168).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use link::Ecn;

/// The source and destination of an IPv4 or IPv6 packet.
pub(crate) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        // RFC 791 §3.1
        4 => {
            let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            let destination: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some((Ipv4Addr::from(source).into(), Ipv4Addr::from(destination).into()))
        }
        // RFC 8200 §3
        6 => {
            let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            let destination: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some((Ipv6Addr::from(source).into(), Ipv6Addr::from(destination).into()))
        }
        _ => None,
    }
}

/// What the packet says about congestion (RFC 3168 §5); nothing if it is no IP packet.
pub(crate) fn ecn_of(packet: &[u8]) -> Ecn {
    match packet {
        [first, second, ..] if first >> 4 == 4 => Ecn::of(*second),
        [first, second, ..] if first >> 4 == 6 => Ecn::of(second >> 4),
        _ => Ecn::NotEct,
    }
}

/// A number that packets of one flow share: of the same addresses and protocol, and of the same ports, or of the same SPI for
/// ESP. Fragments and IPv6 extension headers are not looked into.
pub(crate) fn flow_of(packet: &[u8]) -> u64 {
    let (protocol, addresses, payload) = match packet.first().map(|first| (first >> 4, first & 15)) {
        // RFC 791 §3.1: the header's length in words of four bytes.
        Some((4, words)) => (packet.get(9), packet.get(12..20), 4 * usize::from(words)),
        Some((6, _)) => (packet.get(6), packet.get(8..40), 40),
        _ => return 0,
    };
    // Both ports, or the SPI: the first four bytes of what follows.
    let ports = packet.get(payload..payload + 4).unwrap_or_default();
    let bytes = protocol.into_iter().chain(addresses.unwrap_or_default()).chain(ports);
    // FNV-1a.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Marks a packet that is capable of it: Congestion Experienced.
pub(crate) fn mark_congestion(packet: &mut [u8]) {
    match packet {
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*first, *second]);
            *second |= 0b11;
            let new = u16::from_be_bytes([*first, *second]);
            // RFC 1624 §3, equation 3: HC' = ~(~HC + ~m + m')
            let mut sum = u32::from(!u16::from_be_bytes([*high, *low])) + u32::from(!old) + u32::from(new);
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            [*high, *low] = (!(sum as u16)).to_be_bytes();
        }
        // IPv6 has no header checksum, and those above it leave the traffic class out (RFC 8200 §8.1).
        [first, second, ..] if *first >> 4 == 6 => *second |= 0b11_0000,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 791 §3.1, computed from the whole header.
    fn sums_to_nothing(header: &[u8]) -> bool {
        let sum: u64 = header.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1])).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded & 0xffff) + (folded >> 16) == 0xffff
    }

    proptest! {
        #[test]
        fn a_marked_header_has_the_right_checksum(mut header in prop::array::uniform20(any::<u8>()), ect in 1u8..=3) {
            header[0] = 0x45;
            header[1] = header[1] & !0b11 | ect;
            [header[10], header[11]] = [0, 0];
            let sum: u64 = header.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1])).sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            [header[10], header[11]] = (!(folded as u16)).to_be_bytes();
            prop_assert!(sums_to_nothing(&header) && ecn_of(&header) != Ecn::NotEct);
            mark_congestion(&mut header);
            prop_assert_eq!(ecn_of(&header), Ecn::Ce);
            prop_assert!(sums_to_nothing(&header));
        }

        #[test]
        fn nothing_that_is_no_packet_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = addresses(&bytes);
            let _ = (ecn_of(&bytes), flow_of(&bytes));
            mark_congestion(&mut bytes);
        }
    }

    #[test]
    fn the_traffic_class_of_ipv6_straddles_two_bytes() {
        // Traffic class 0xb9: DSCP 46, ECT(1).
        let mut header = [0x6b, 0x90, 0, 0];
        assert_eq!(ecn_of(&header), Ecn::Ect1);
        mark_congestion(&mut header);
        assert_eq!(header, [0x6b, 0xb0, 0, 0]);
        assert_eq!([ecn_of(&[0x6b, 0x80, 0, 0]), ecn_of(&[0x6b, 0xa0, 0, 0])], [Ecn::NotEct, Ecn::Ect0]);
    }

    /// Of the headers only what names the flow counts, and all of that.
    #[test]
    fn flows_differ_by_addresses_protocol_and_ports() {
        let v4 = [&[0x46, 0, 0, 60, 1, 2, 0, 0, 64, 17, 0, 0][..], &[10; 8], &[0; 4], &[1, 2, 3, 4, 5, 6]].concat();
        let v6 = [&[0x60, 0, 0, 0, 0, 9, 50, 64][..], &[7; 32], &[1, 2, 3, 4, 5, 6]].concat();
        for (packet, names) in [(v4, vec![9..10, 12..20, 24..28]), (v6, vec![6..7, 8..40, 40..44])] {
            for at in 1..packet.len() {
                let mut other = packet.clone();
                other[at] ^= 1;
                let is_named = names.iter().any(|range| range.contains(&at));
                assert_eq!(flow_of(&other) != flow_of(&packet), is_named, "{packet:?} {at}");
            }
        }
    }
}

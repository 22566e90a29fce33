//! Packets of either family, whole or damaged, between HITs and LSIs. What is translated is a packet for etherparse too,
//! of the other family, with the same transport payload and, where the checksum was right, a right checksum.
#![no_main]

use arbitrary::Arbitrary;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::packets::Content;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::translate::{translate_4_to_6, translate_6_to_4};

#[derive(Arbitrary, Debug)]
struct Input {
    six: bool,
    content: Content,
    /// Bytes changed: where, to what.
    damage: Vec<(u16, u8)>,
    /// Instead of all that.
    raw: Option<Vec<u8>>,
}

const A4: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 1);
const B4: Ipv4Addr = Ipv4Addr::new(1, 7, 8, 9);
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x21, 0x1111, 0x2222, 3, 4, 0x5555, 0x6667);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0x21, 0xffff, 0xeeee, 9, 8, 0x7777, 0x6666);

/// Of TCP and UDP: the payload, and whether the checksum is right, as etherparse sees it.
fn transport(packet: &[u8]) -> Option<(Vec<u8>, bool)> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (source, destination): (IpAddr, IpAddr) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        NetSlice::Arp(_) => return None,
    };
    match sliced.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            let right = match (source, destination) {
                (IpAddr::V4(a), IpAddr::V4(b)) => header.calc_checksum_ipv4_raw(a.octets(), b.octets(), tcp.payload()),
                (IpAddr::V6(a), IpAddr::V6(b)) => header.calc_checksum_ipv6_raw(a.octets(), b.octets(), tcp.payload()),
                _ => return None,
            };
            Some((tcp.payload().to_vec(), right.ok()? == header.checksum))
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let right = match (source, destination) {
                (IpAddr::V4(a), IpAddr::V4(b)) => header.calc_checksum_ipv4_raw(a.octets(), b.octets(), udp.payload()),
                (IpAddr::V6(a), IpAddr::V6(b)) => header.calc_checksum_ipv6_raw(a.octets(), b.octets(), udp.payload()),
                _ => return None,
            };
            Some((udp.payload().to_vec(), right.ok()? == header.checksum))
        }
        _ => None,
    }
}

fuzz_target!(|input: Input| {
    let Input { six, content, damage, raw } = input;
    let (from, to) = if six { (A6.into(), B6.into()) } else { (A4.into(), B4.into()) };
    let mut packet = content.packet(from, to, 0);
    for (at, byte) in damage {
        if let Some(place) = usize::from(at).checked_rem(packet.len()).and_then(|at| packet.get_mut(at)) {
            *place = byte;
        }
    }
    let packet = raw.unwrap_or(packet);
    let mut out = vec![0xee; 3];
    let done =
        if six { translate_6_to_4(&packet, A4, B4, &mut out) } else { translate_4_to_6(&packet, A6, B6, &mut out) };
    assert_eq!(out[..3], [0xee; 3], "what was there is changed");
    if done.is_err() {
        assert_eq!(out.len(), 3, "an error leaves something behind");
        return;
    }
    let out = &out[3..];
    let ours = wire::ip::IpPacket::parse(out).expect("a translation is a packet");
    assert_eq!(ours.src().is_ipv6(), !six);
    let Some((payload, right)) = transport(&packet) else { return };
    // Extension headers and options are etherparse's to follow or not: only what it reads on both sides is compared.
    if let Some((translated, still)) = transport(out) {
        assert_eq!(payload, translated, "the payload changes");
        assert!(!right || still, "a right checksum becomes a wrong one");
    }
});

//! Whole hosts over links that drop what is too large for them without a word: what they find, and what programs hear of it.

use crate::common;
use crate::common::{LSIS, Mailbox, Spec, World, ms, tcp_v6, udp_v4, udp_v6};
use clock::{Duration, Instant};
use link::ChangeKind;
use proptest::prelude::*;
use std::net::IpAddr;
use wedge::{PathStatus, WedgeEvent};
use wire::ip::{IpPacket, protocol};
use wire::{icmp, tcp};

const SPEC: Spec = Spec::new(8_000_000, ms(20));

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// From now on no link of a path takes more in a direction.
fn narrow(world: &mut World, path: usize, mtus: [u32; 2]) {
    let now = world.now;
    for (link, mtu) in world.links[path].iter_mut().zip(mtus) {
        link.change(now, ChangeKind::Mtu(Some(mtu)));
    }
}

/// Hosts that have found what their paths carry: by path, from a to b and from b to a.
fn settled(mtus: &[[u32; 2]], tune: impl Fn(&mut wedge::WedgeConfig)) -> (World, [Mailbox; 2]) {
    let mut world = World::configured(&vec![SPEC; mtus.len()], 10500, tune);
    for (path, mtus) in mtus.iter().enumerate() {
        narrow(&mut world, path, *mtus);
    }
    world.record = Some(Vec::new());
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    let [a, b] = &mut boxes;
    world.run(at(4_000), &mut [a, b]);
    boxes.iter_mut().for_each(|mailbox| mailbox.received.clear());
    (world, boxes)
}

fn paths(world: &World, side: usize) -> Vec<PathStatus> {
    let mut paths = world.hosts[side].status(world.now).peers[0].paths.clone();
    paths.sort_by(|a, b| a.local.cmp(&b.local));
    paths
}

/// What leaves in one piece or not at all, and is larger than the link takes, is a probe.
fn only_probes_are_too_large(world: &World, mtus: [u32; 2]) {
    for (side, mtu) in mtus.into_iter().enumerate() {
        let record = world.record.as_ref().unwrap().iter().filter(|(from, _)| *from == side);
        let too_large = record.filter(|(_, packet)| !packet.may_fragment && packet.bytes.len() + 28 > mtu as usize);
        let (too_large, probes) = (too_large.count() as u64, world.hosts[side].counters().mtu_probes_out);
        assert!(too_large <= probes, "{too_large} too large, {probes} probes");
    }
}

/// Packets of ICMP that tell of a size, and what they say.
fn told(mailbox: &Mailbox) -> Vec<Option<u32>> {
    let errors = mailbox.received.iter().filter_map(|(_, packet)| {
        let packet = IpPacket::parse(packet).unwrap();
        icmp::IcmpError::parse(&packet).map(|error| error.mtu)
    });
    errors.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each direction of each path has what its links carry, or a little less, whatever the other has; and nothing but probes is
    /// too large for it.
    #[test]
    fn hosts_find_what_their_paths_carry(there in 700u32..1600, back in 700u32..1600, cbc: bool) {
        let suites = |config: &mut wedge::WedgeConfig| {
            if cbc {
                config.hip.esp_suites = vec![hip::esp::EspSuite::Aes128CbcHmacSha256];
            }
        };
        let (world, _) = settled(&[[there, back]], suites);
        only_probes_are_too_large(&world, [there, back]);
        for (side, mtu) in [there, back].into_iter().enumerate() {
            let path = &paths(&world, side)[0];
            let (found, most) = (u32::from(path.mtu), mtu.min(1500));
            let padding = if cbc { 16 } else { 4 };
            prop_assert!(found <= most && found + 8 + 2 * padding > most, "{found} of {most}");
            prop_assert_eq!(&*path.mtu_state, "complete");
            prop_assert!(path.mtu_probes <= 40 && path.black_holes == 0, "{path:?}");
        }
    }
}

/// By hand for AES-GCM with implicit IVs on IPv4 and UDP: 1400 less 28, 8 of ESP and 16 of ICV leave 1348, a multiple of 4, less pad
/// length and next header 1346, less the number 1344; with the header that is not sent 1384, and of IPv4 1364.
#[test]
fn programs_are_told_what_fits() {
    let (mut world, mut boxes) = settled(&[[1400, 1400]], |config| {
        config.hip.esp_suites = vec![hip::esp::EspSuite::Aes128Gcm16];
    });
    assert_eq!(paths(&world, 0)[0].mtu, 1400);
    let (a, b) = (world.hit(0), world.hit(1));
    let mut v4 = |payload: usize| {
        let mut packet = udp_v4(LSIS[0], LSIS[1], (1, 3), &vec![0; payload - 28]);
        // Don't fragment, with the sum of the header adapted (RFC 1624).
        if packet[6] & 0x40 == 0 {
            packet[6] |= 0x40;
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = wire::checksum::update(sum, wire::checksum::Sum::ZERO, wire::checksum::Sum::ZERO.word(0x4000));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        boxes[0].to_send.push(packet);
    };
    v4(1364);
    v4(1365);
    boxes[0].to_send.push(udp_v6(a, b, (1, 1), &vec![0; 1384 - 48]));
    boxes[0].to_send.push(udp_v6(a, b, (1, 2), &vec![0; 1385 - 48]));
    let [left, right] = &mut boxes;
    world.run(at(4_500), &mut [left, right]);
    assert_eq!(told(&boxes[0]), [Some(1364), Some(1384)]);
    let mut lengths: Vec<_> = boxes[1].received.iter().map(|(_, packet)| packet.len()).collect();
    lengths.sort_unstable();
    // Both as IPv6: a new flow is offered so.
    assert_eq!(lengths, [1384, 1384]);
    assert_eq!(world.hosts[0].counters().too_big, 2);
    only_probes_are_too_large(&world, [1400, 1400]);
}

fn syn(announced: u16, flags: tcp::Flags, ports: (u16, u16)) -> (tcp::Header<'static>, [u8; 4]) {
    let [high, low] = announced.to_be_bytes();
    let header = tcp::Header { src_port: ports.0, dst_port: ports.1, flags, window: 1000, ..tcp::Header::default() };
    (header, [2, 4, high, low])
}

/// The narrowest path counts, and each host's way to the other: who is asked for a connection hears what fits back.
#[test]
fn a_syn_says_what_the_narrowest_path_carries() {
    let (mut world, mut boxes) = settled(&[[1500, 1500], [1400, 1000]], |config| {
        config.hip.esp_suites = vec![hip::esp::EspSuite::Aes128Gcm16];
    });
    let found: Vec<_> = paths(&world, 1).iter().map(|path| path.mtu).collect();
    assert!(found[0] == 1500 && (992..=1000).contains(&found[1]), "{found:?}");
    let (header, options) = syn(1426, tcp::Flags::SYN, (1, 2));
    boxes[0].to_send.push(tcp_v6(world.hit(0), world.hit(1), &tcp::Header { options: &options, ..header }, &[]));
    let [left, right] = &mut boxes;
    world.run(at(4_500), &mut [left, right]);
    let packet = IpPacket::parse(&boxes[1].received[0].1).unwrap();
    let segment = tcp::Segment::parse(packet.payload()).unwrap();
    assert!(segment.checksum_is_right(packet.src(), packet.dst()));
    // What is left of the outer packet, as above, without a header of TCP.
    let room = (found[1] - 28 - 8 - 16) / 4 * 4 - 2 - 2;
    assert_eq!(segment.mss(), Some(room - 20));
    assert_eq!((world.hosts[0].counters().mss_clamped, world.hosts[1].counters().mss_clamped), (1, 1));
}

/// IPv6 knows no less than 1280 bytes, so a segment that is larger than what such a path carries is cut; what is no TCP goes out in a
/// packet that may be cut on the way.
#[test]
fn what_nobody_can_be_told_is_cut() {
    let (mut world, mut boxes) = settled(&[[1000, 1000]], |_| ());
    let (a, b) = (world.hit(0), world.hit(1));
    let data: Vec<u8> = (0..1220).map(|n| (n / 5) as u8).collect();
    let header = tcp::Header { src_port: 3, dst_port: 4, seq: 77, flags: tcp::Flags::ACK, ..tcp::Header::default() };
    boxes[0].to_send.push(tcp_v6(a, b, &header, &data));
    boxes[0].to_send.push(udp_v6(a, b, (1, 1), &[0; 1232]));
    boxes[0].to_send.push(udp_v6(a, b, (1, 1), &[0; 1233]));
    world.record = Some(Vec::new());
    let [left, right] = &mut boxes;
    world.run(at(4_500), &mut [left, right]);
    let mut got = Vec::new();
    for (_, packet) in &boxes[1].received {
        let packet = IpPacket::parse(packet).unwrap();
        assert_eq!(packet.protocol(), protocol::TCP, "this link cuts nothing");
        let segment = tcp::Segment::parse(packet.payload()).unwrap();
        assert!(segment.checksum_is_right(IpAddr::V6(a.address()), IpAddr::V6(b.address())));
        assert_eq!(segment.seq(), 77 + got.len() as u32);
        got.extend_from_slice(segment.payload());
    }
    assert_eq!(got, data);
    assert_eq!(told(&boxes[0]), [Some(1280)]);
    let counters = world.hosts[0].counters();
    assert_eq!((counters.segments_cut, counters.too_big), (1, 1));
    // It is lost here, and sent three times more.
    assert_eq!((counters.oversized, counters.repaired), (4, 3));
    let record = world.record.as_ref().unwrap().iter().filter(|(side, _)| *side == 0);
    let cut_outside: Vec<_> =
        record.filter(|(_, packet)| packet.may_fragment).map(|(_, packet)| packet.bytes.len()).collect();
    assert!(cut_outside.len() == 4 && cut_outside.iter().all(|length| *length > 1000), "{cut_outside:?}");
}

/// RFC 8899 §4.3: a path carries less than it did, without a word; found within half a second of traffic, and programs are told.
#[test]
fn a_black_hole_is_found_under_traffic() {
    let (mut world, mut boxes) = settled(&[[1500, 1500]], |_| ());
    assert_eq!(paths(&world, 0)[0].mtu_state, "complete");
    world.events[0].clear();
    narrow(&mut world, 0, [1300, 1500]);
    let (a, b) = (world.hit(0), world.hit(1));
    let found_at = loop {
        // 200 packets in a second.
        boxes[0].to_send.push(udp_v6(a, b, (1, 1), &[0; 1360]));
        let [left, right] = &mut boxes;
        let next = world.now + Duration::from_millis(5);
        world.run(next, &mut [left, right]);
        if !told(&boxes[0]).is_empty() || world.now > at(10_000) {
            break world.now - at(4_000);
        }
    };
    assert!(found_at < ms(1_200), "{found_at}");
    let path = &paths(&world, 0)[0];
    assert!(path.mtu <= 1300 && path.mtu > 1300 - 8 - 32 && path.black_holes == 1 && path.alive, "{path:?}");
    let told_of = |event: &WedgeEvent| matches!(event, WedgeEvent::PathMtu { mtu, .. } if *mtu == path.mtu);
    assert!(world.events[0].iter().any(told_of), "{:?}", world.events[0]);
    // The other direction is as it was.
    assert_eq!(paths(&world, 1)[0].black_holes, 0);
    // Wide again, it is looked for after ten minutes.
    narrow(&mut world, 0, [1500, 1500]);
    let [left, right] = &mut boxes;
    world.run(world.now + multipath::RAISE_AFTER + ms(2_000), &mut [left, right]);
    assert!(paths(&world, 0)[0].mtu > 1480);
}

/// Losses and queues that overflow are no black hole.
#[test]
fn congestion_is_no_black_hole() {
    let (mut world, mut boxes) = settled(&[[1500, 1500]], |_| ());
    let (a, b) = (world.hit(0), world.hit(1));
    let mut now = world.now;
    for second in 0..20 {
        world.links[0][0].change(now, ChangeKind::Loss(link::LossConfig::Random(f64::from(second % 4) * 0.1)));
        for _ in 0..100 {
            // Twice what the link carries.
            boxes[0].to_send.extend((0..12).map(|_| udp_v6(a, b, (1, 1), &[0; 1360])));
            let [left, right] = &mut boxes;
            now += ms(10);
            world.run(now, &mut [left, right]);
        }
    }
    let path = &paths(&world, 0)[0];
    assert!(path.black_holes == 0 && path.mtu > 1480, "{path:?}");
}

/// A host that is no Sinnet gets no probes, and packets as they always were.
#[test]
fn others_are_sent_no_probes() {
    let (mut world, mut boxes) = settled(&[[1500, 1500]], |config| config.hip.feedback = false);
    let (a, b) = (world.hit(0), world.hit(1));
    boxes[0].to_send.push(udp_v6(a, b, (1, 1), &[0; 1360]));
    let [left, right] = &mut boxes;
    world.run(at(5_000), &mut [left, right]);
    assert_eq!(boxes[1].received.len(), 1);
    for side in 0..2 {
        assert_eq!(world.hosts[side].counters().mtu_probes_out, 0);
        assert_eq!(&*paths(&world, side)[0].mtu_state, "disabled");
    }
    assert!(world.record.unwrap().iter().all(|(_, packet)| packet.may_fragment));
}

/// What the configuration says, or the interface takes, is the most that is looked for; it may change.
#[test]
fn an_interface_bounds_the_search() {
    let (mut world, mut boxes) = settled(&[[1400, 1400]], |config| config.paths[0].mtu = 1300);
    assert!((1284..=1300).contains(&paths(&world, 0)[0].mtu));
    for (mtu, low, high) in [(1200, 1184, 1200), (1500, 1376, 1400), (576, 560, 576)] {
        let (now, address) = (world.now, common::locator(0, 0, 0).ip());
        let rng = &mut world.rngs[0];
        world.hosts[0].set_path_mtu(now, rng, address, mtu).unwrap();
        let [left, right] = &mut boxes;
        world.run(now + ms(2_000), &mut [left, right]);
        let found = paths(&world, 0)[0].mtu;
        assert!((low..=high).contains(&found), "{found} with {mtu}");
    }
    let record = world.record.as_ref().unwrap();
    assert!(record.iter().all(|(_, packet)| packet.bytes.len() + 28 <= 1500));
    let (now, address) = (world.now, common::locator(0, 0, 0).ip());
    assert!(world.hosts[0].set_path_mtu(now, &mut world.rngs[0], address, 100).is_err());
}

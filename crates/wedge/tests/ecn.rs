//! Marks of the inner and the outer header, from one host to the other. The oracle is RFC 6040: §4.1 for what leaves, and
//! §4.2, figure 4, for what arrives.

use crate::common::{Mailbox, Spec, World, ms, udp_v6};
use clock::Instant;
use hip::Route;
use wedge::{Datagram, Ecn, Transmit};
use wire::ip::IpPacket;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Two hosts that have begun to talk.
fn established(feedback: bool) -> World {
    let specs = [Spec::new(8_000_000, ms(10))];
    let mut world = World::configured(&specs, 10500, |config| config.hip.feedback = feedback);
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    let [a, b] = &mut boxes;
    world.run(at(3_000), &mut [a, b]);
    assert_eq!(boxes[1].received.len(), 1);
    world
}

/// A packet from a to b with this mark, and a DSCP that has to stay here.
fn packet(world: &World, ecn: Ecn, length: usize) -> Vec<u8> {
    let mut packet = udp_v6(world.hit(0), world.hit(1), (9, 9), &vec![7; length]);
    let class = 0b1011_1000 | ecn.bits();
    packet[0] = 6 << 4 | class >> 4;
    packet[1] = class << 4;
    packet
}

/// Sends a packet with `inner` in its header from a to b, on whose way `marked` happens to the outer header: the codepoint
/// that left, and what b's program gets.
fn carry(world: &mut World, inner: Ecn, marked: Ecn) -> (Ecn, Option<Ecn>) {
    let now = world.now;
    let packet = packet(world, inner, 500);
    world.hosts[0].handle_application(now, &mut world.rngs[0], [packet]);
    let mut out = Vec::new();
    world.hosts[0].poll_transmit(now, &mut out);
    let largest = out.iter().map(|transmit| transmit.bytes.len()).max().unwrap();
    let mut left = None;
    for Transmit { route, protocol, bytes, ecn, .. } in &out {
        let data = bytes.len() == largest;
        if data {
            left = Some(*ecn);
        } else {
            assert_eq!(*ecn, Ecn::NotEct, "control messages take no part");
        }
        let route = Route { local: route.remote, remote: route.local };
        let datagram = Datagram { route, protocol: *protocol, payload: bytes, ecn: if data { marked } else { *ecn } };
        world.hosts[1].handle_network(now, &mut world.rngs[1], &[datagram]);
    }
    let mut delivered = Vec::new();
    world.hosts[1].poll_deliver(&mut delivered);
    let told = delivered.first().map(|packet| {
        let view = IpPacket::parse(packet).unwrap();
        assert_eq!(view.dscp(), 0);
        Ecn::of(view.ecn())
    });
    world.run(now + ms(100), &mut [&mut Mailbox::default(), &mut Mailbox::default()]);
    (left.unwrap(), told)
}

const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

#[test]
fn between_sinnet_hosts_both_headers_count() {
    let table = [
        (Ecn::NotEct, [Some(Ecn::NotEct), Some(Ecn::NotEct), Some(Ecn::NotEct), None]),
        (Ecn::Ect0, [Some(Ecn::Ect0), Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)]),
        (Ecn::Ect1, [Some(Ecn::Ect1), Some(Ecn::Ect1), Some(Ecn::Ect1), Some(Ecn::Ce)]),
        (Ecn::Ce, [Some(Ecn::Ce); 4]),
    ];
    for (inner, row) in table {
        for (outer, expected) in ALL.into_iter().zip(row) {
            let mut world = established(true);
            assert_eq!(carry(&mut world, inner, outer), (inner, expected), "{inner:?} in {outer:?}");
            assert_eq!(world.hosts[1].counters().wrongly_marked, u64::from(expected.is_none()));
            // The peer reports the mark, and the path's window answers it.
            let measured = world.hosts[0].status(world.now).peers[0].paths[0].measured.unwrap();
            assert_eq!(measured.ce, u64::from(outer == Ecn::Ce));
        }
    }
}

#[test]
fn of_a_plain_hip_host_only_the_outer_header_is_known() {
    for inner in ALL {
        for outer in ALL {
            assert_eq!(carry(&mut established(false), inner, outer), (inner, Some(outer)));
        }
    }
}

/// A program sends twice what the path carries. The send buffer says so by marks, where they are understood (RFC 8290 §4.1.2), and they
/// are none of the path's.
#[test]
fn what_waits_too_long_is_marked_inside() {
    for (ecn, is_marked) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let mut world = established(true);
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        let start = world.now;
        for step in 0..1500 {
            boxes[0].to_send.extend((0..2).map(|_| packet(&world, ecn, 1000)));
            let [a, b] = &mut boxes;
            world.run(start + ms(step), &mut [a, b]);
        }
        let marks = boxes[1].received.iter().filter(|(_, packet)| IpPacket::parse(packet).unwrap().ecn() == 3);
        let status = world.hosts[0].status(world.now).peers.remove(0);
        let buffer = status.send_buffer.unwrap();
        assert_eq!((marks.count() > 3, buffer.marked > 3), (is_marked, is_marked), "{ecn:?}: {buffer:?}");
        assert_eq!(status.paths[0].measured.unwrap().ce, 0);
    }
}

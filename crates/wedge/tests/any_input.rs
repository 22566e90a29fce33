//! Whatever programs, networks and peers give to a wedge, it does not panic, its deadlines move on, and the association
//! still carries packets afterwards.

use crate::common::{LSIS, Mailbox, Spec, World, ms, udp_v6};
use clock::Instant;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use wedge::{Datagram, Protocol};
use wire::ip::V6Header;

#[derive(Clone, Debug)]
enum Input {
    /// From the program of a host: a packet to the other one with any protocol and content. The other gets it sealed.
    Inner { side: usize, six: bool, protocol: u8, content: Vec<u8> },
    /// From the program of a host: any bytes.
    Raw { side: usize, bytes: Vec<u8> },
    /// From the network.
    Outer { side: usize, protocol: u8, bytes: Vec<u8> },
    /// A packet sealed before, with one byte changed.
    Changed { at: usize, to: u8 },
    /// Time passes.
    Wait(u64),
}

fn input() -> impl Strategy<Value = Input> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    let protocol =
        prop_oneof![Just(6u8), Just(17), Just(58), Just(1), Just(0), Just(44), Just(60), Just(59), any::<u8>()];
    // ICMP types that matter come often, and TCP flags any way.
    let content =
        (bytes(), prop::option::of(prop_oneof![1u8..5, Just(128u8), Just(129)])).prop_map(|(mut bytes, kind)| {
            if let (Some(first), Some(kind)) = (bytes.first_mut(), kind) {
                *first = kind;
            }
            bytes
        });
    prop_oneof![
        4 => (0usize..2, any::<bool>(), protocol, content)
            .prop_map(|(side, six, protocol, content)| Input::Inner { side, six, protocol, content }),
        1 => (0usize..2, bytes()).prop_map(|(side, bytes)| Input::Raw { side, bytes }),
        1 => (0usize..2, 0u8..3, bytes()).prop_map(|(side, protocol, bytes)| Input::Outer { side, protocol, bytes }),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, to)| Input::Changed { at, to }),
        1 => (0u64..2_000).prop_map(Input::Wait),
    ]
}

fn v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, content: &[u8]) -> Vec<u8> {
    let unusual = V6Header::new(source, destination, protocol);
    let header = V6Header { traffic_class: 3, flow_label: 9, hop_limit: 1, ..unusual };
    let mut packet = Vec::new();
    header.emit(content.len(), &mut packet).unwrap();
    packet.extend_from_slice(content);
    packet
}

/// Makes the checksum of an ICMPv6 message right, so that it is looked at further.
fn with_checksum(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, mut content: Vec<u8>) -> Vec<u8> {
    if protocol == 58 && content.len() >= 4 {
        content[2..4].fill(0);
        let sum = wire::checksum::pseudo_v6(source, destination, 58, content.len() as u32).bytes(&content);
        content[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_association_survives_any_input(inputs in prop::collection::vec(input(), 1..60)) {
        let mut world = World::new(&[Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]);
        let hits = [world.hit(0).address(), world.hit(1).address()];
        let lsis: [Ipv4Addr; 2] = LSIS.map(|lsi| lsi.address());
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
        let [a, b] = &mut boxes;
        world.run(Instant::ZERO + ms(2_000), &mut [a, b]);
        prop_assert_eq!(boxes[1].received.len(), 1);
        world.record = Some(Vec::new());
        for input in inputs {
            let mut wait = 1;
            let now = world.now;
            match input {
                Input::Inner { side, six: true, protocol, content } => {
                    let (from, to) = (hits[side], hits[1 - side]);
                    let content = with_checksum(from, to, protocol, content);
                    boxes[side].to_send.push(v6(from, to, protocol, &content));
                }
                Input::Inner { side, six: false, protocol, content } => {
                    let (from, to) = (lsis[side].into(), lsis[1 - side].into());
                    boxes[side].to_send.push(wire::ip::packet(from, to, protocol, &content).unwrap());
                }
                Input::Raw { side, bytes } => boxes[side].to_send.push(bytes),
                Input::Outer { side, protocol, bytes } => {
                    let protocol = [Protocol::Udp, Protocol::Hip, Protocol::Esp][usize::from(protocol)];
                    let route = world.hosts[side].status(now).peers[0].paths[0].clone();
                    let route = hip::Route { local: route.local.parse().unwrap(), remote: route.remote.parse().unwrap() };
                    let datagram = Datagram { route, protocol, payload: &bytes, ecn: wedge::Ecn::Ce };
                    world.hosts[side].handle_network(now, &mut world.rngs[side], &[datagram]);
                }
                Input::Changed { at, to } => {
                    let record = world.record.as_ref().unwrap();
                    if let Some((from, transmit)) = record.get(at % record.len().max(1)) {
                        let (from, mut transmit) = (*from, transmit.clone());
                        let at = at / 7 % transmit.bytes.len();
                        transmit.bytes[at] = to;
                        let route = hip::Route { local: transmit.route.remote, remote: transmit.route.local };
                        let wedge::Transmit { protocol, ecn, .. } = transmit;
                        let datagram = Datagram { route, protocol, payload: &transmit.bytes, ecn };
                        world.hosts[1 - from].handle_network(now, &mut world.rngs[1 - from], &[datagram]);
                    }
                }
                Input::Wait(time) => wait = time,
            }
            let [a, b] = &mut boxes;
            world.run(now + ms(wait), &mut [a, b]);
        }
        boxes[1].received.clear();
        // A flow of its own, so that nothing above has a say in its family.
        let last = udp_v6(world.hit(0), world.hit(1), (65_000, 65_001), b"still there");
        boxes[0].to_send.push(last.clone());
        let end = world.now + ms(3_000);
        let [a, b] = &mut boxes;
        world.run(end, &mut [a, b]);
        prop_assert!(boxes[1].received.iter().any(|(_, packet)| *packet == last));
    }
}

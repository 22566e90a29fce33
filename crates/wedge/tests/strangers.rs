//! Peers for whom nobody has vouched, and peers that come and go.

use crate::common::{LSIS, Mailbox, Spec, World, locator, ms, tcp_v6, udp_v6};
use clock::Instant;
use wedge::PeerConfig;
use wire::{Hit, Lsi, icmp, tcp};

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Two hosts, of which the first takes only answers of the second.
fn world() -> World {
    let mut world = World::new(&[Spec::new(8_000_000, ms(10))]);
    let mut peer = PeerConfig::new("b", world.hit(1), LSIS[1], [locator(0, 1, 10500)]);
    peer.only_answers = true;
    world.hosts[0].add_peer(peer);
    world
}

fn run(world: &mut World, until: u64, from: [Vec<Vec<u8>>; 2]) -> [Vec<Vec<u8>>; 2] {
    let mut boxes = from.map(|to_send| Mailbox { to_send, ..Mailbox::default() });
    let [a, b] = &mut boxes;
    world.run(at(until), &mut [a, b]);
    boxes.map(|one| one.received.into_iter().map(|(_, packet)| packet).collect())
}

#[test]
fn of_a_stranger_programs_get_answers_and_nothing_else() {
    let mut world = world();
    let (a, b) = (world.hit(0), world.hit(1));
    let flags = |flags| tcp::Header { src_port: 80, dst_port: 4000, flags, ..tcp::Header::default() };
    let syn = tcp_v6(b, a, &flags(tcp::Flags::SYN), b"");
    let segment = tcp_v6(b, a, &flags(tcp::Flags::ACK), b"late");
    let mut request = Vec::new();
    let echo = icmp::Echo { request: true, identifier: 1, sequence: 1, data: b"who are you" };
    echo.emit(b.address(), a.address(), &mut request).unwrap();
    let request = wire::ip::packet(b.address().into(), a.address().into(), 58, &request).unwrap();
    // It begins, with nobody here.
    let [got, _] = run(&mut world, 3_000, [vec![], vec![syn.clone()]]);
    assert_eq!(got, Vec::<Vec<u8>>::new());
    // A program here asks, and is answered.
    let [_, asked] = run(&mut world, 6_000, [vec![udp_v6(a, b, (7, 9), b"question")], vec![]]);
    assert_eq!(asked, [udp_v6(a, b, (7, 9), b"question")]);
    let answer = udp_v6(b, a, (9, 7), b"answer");
    let others = [udp_v6(b, a, (9, 8), b"to another"), udp_v6(b, a, (8, 7), b"from another"), syn, request];
    let packets = others.iter().chain([&answer, &segment]).cloned().collect();
    let [got, _] = run(&mut world, 8_000, [vec![], packets]);
    // RFC 9293 §3.10.7.1: the kernel resets what belongs to no connection.
    assert_eq!(got, [answer, segment]);
    assert_eq!(world.hosts[0].counters().uninvited, 1 + others.len() as u64);
}

#[test]
fn ten_thousand_peers_one_after_the_other_take_the_place_of_one() {
    let mut world = world();
    let (b, now) = (world.hit(1), at(5_000));
    let first = udp_v6(world.hit(0), b, (7, 9), b"1");
    let before = run(&mut world, 5_000, [vec![first], vec![]])[1].len();
    assert_eq!((before, world.hosts[0].last_used(b).is_some()), (1, true));
    for number in 0..10_000_u32 {
        let [w, x, y, z] = number.to_be_bytes();
        let hit = Hit([0x20, 1, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, w, x, y, z]);
        world.hosts[0].add_peer(PeerConfig::new(number.to_string(), hit, Lsi([1, 1, y, z]), []));
        assert_eq!(world.hosts[0].status(now).peers.len(), 2);
        assert_eq!(world.hosts[0].last_used(hit), None);
        let [rng, _] = &mut world.rngs;
        world.hosts[0].remove_peer(now, rng, hit);
    }
    // Who stays is as before; and one that goes and comes again begins anew.
    let peers = world.hosts[0].status(now).peers;
    assert_eq!((peers.len(), peers[0].state.as_str()), (1, "ESTABLISHED"));
    let [rng, _] = &mut world.rngs;
    world.hosts[0].remove_peer(now, rng, b);
    assert_eq!((world.hosts[0].status(now).peers.len(), world.hosts[0].held_bytes()), (0, 0));
    world.hosts[0].add_peer(PeerConfig::new("b", b, LSIS[1], [locator(0, 1, 10500)]));
    let packet = udp_v6(world.hit(0), b, (7, 9), b"2");
    let [_, got] = run(&mut world, 12_000, [vec![packet.clone()], vec![]]);
    assert_eq!(got, [packet]);
}

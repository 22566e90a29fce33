//! Whole hosts that were told to begin inside UDP, over networks that let ESP pass without it, or do not.

use crate::common;
use crate::common::{Mailbox, Spec, World, ms, udp_v6};
use wedge::{Protocol, WedgeEvent};
use wire::esp::EspHeader;

const SPEC: Spec = Spec::new(20_000_000, ms(20));

fn hosts(spec: Spec, native_esp: [bool; 2]) -> World {
    let is_first = std::cell::Cell::new(true);
    let mut world = World::configured(&[spec], 10500, |config| {
        let side = usize::from(!is_first.replace(false));
        config.paths[0].native_esp = native_esp[side];
    });
    world.record = Some(Vec::new());
    world
}

/// Both programs send `many` datagrams every 10 ms, until so many milliseconds have passed. How many arrived of how many.
fn talk(world: &mut World, many: usize, milliseconds: u64) -> (usize, usize) {
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let mut sent = 0;
    let end = world.now + ms(milliseconds);
    while world.now < end {
        boxes[0].to_send.extend((0..many).map(|_| udp_v6(a, b, (1, 1), &[0; 1000])));
        boxes[1].to_send.extend((0..many).map(|_| udp_v6(b, a, (1, 1), &[0; 1000])));
        sent += 2 * many;
        let [left, right] = &mut boxes;
        world.run(world.now + ms(10), &mut [left, right]);
    }
    let [left, right] = &mut boxes;
    world.run(world.now + ms(300), &mut [left, right]);
    (boxes.iter().map(|mailbox| mailbox.received.len()).sum(), sent)
}

/// How many packets of ESP a host has sent since the last call, inside UDP and without.
fn counts(world: &mut World, side: usize) -> (usize, usize) {
    let record = world.record.as_mut().unwrap();
    let of = |protocol: Protocol| {
        let is_it = |(from, packet): &&(usize, wedge::Transmit)| {
            let is_esp = EspHeader::parse(&packet.bytes).is_ok_and(|(header, _)| header.spi.0 > 255);
            *from == side && packet.protocol == protocol && is_esp
        };
        record.iter().filter(is_it).count()
    };
    let counts = (of(Protocol::Udp), of(Protocol::Esp));
    record.retain(|(from, _)| *from != side);
    counts
}

fn has_died(world: &World) -> bool {
    world.events.iter().flatten().any(|event| matches!(event, WedgeEvent::PathDead { .. }))
}

fn sheds(world: &World) -> [bool; 2] {
    [0, 1].map(|side| world.hosts[side].status(world.now).peers[0].paths[0].sheds_udp)
}

#[test]
fn esp_leaves_without_udp_where_that_arrives() {
    let mut world = hosts(SPEC, [true; 2]);
    talk(&mut world, 2, 1_500);
    (0..2).for_each(|side| _ = counts(&mut world, side));
    assert_eq!(sheds(&world), [true; 2]);
    let (arrived, sent) = talk(&mut world, 2, 20_000);
    assert_eq!(arrived, sent);
    for side in 0..2 {
        let (inside, without) = counts(&mut world, side);
        // One heartbeat in 15 s, for NATs.
        assert!((1..=2).contains(&inside) && without > 4_000, "{inside}, {without}");
    }
    // What is counted is what the links have carried.
    let path = &world.hosts[0].status(world.now).peers[0].paths[0];
    let other = &world.hosts[1].status(world.now).peers[0].paths[0];
    assert_eq!((path.bytes_out, path.bytes_in), (other.bytes_in, other.bytes_out));
    assert!(!has_died(&world));
}

#[test]
fn nothing_leaves_without_udp_unless_the_host_can() {
    let mut world = hosts(SPEC, [false, true]);
    // It takes none either.
    world.blocks_esp[1] = true;
    let (arrived, sent) = talk(&mut world, 2, 3_000);
    assert_eq!(arrived, sent);
    assert_eq!(counts(&mut world, 0).1, 0);
    assert_eq!(sheds(&world), [false; 2]);
}

/// A firewall that knows UDP only, in one direction or both: three questions a minute, and nothing else is lost.
#[test]
fn what_does_not_pass_stays_in_udp() {
    for blocks in [[true, false], [false, true], [true, true]] {
        let mut world = hosts(SPEC, [true; 2]);
        world.blocks_esp = blocks;
        let (arrived, sent) = talk(&mut world, 2, 50_000);
        assert_eq!(arrived, sent);
        for side in 0..2 {
            let (_, without) = counts(&mut world, side);
            // Its own, and answers to those of the other that arrive.
            assert!((3..=6).contains(&without), "{blocks:?} {without}");
        }
        assert_eq!(sheds(&world), [false; 2]);
        assert!(!has_died(&world), "{blocks:?}");
    }
}

/// A firewall begins to drop it: everything is in UDP again before the path counts as dead, and is tried again after a minute.
#[test]
fn a_path_on_which_esp_is_lost_goes_on_in_udp() {
    for blocks in [[true, false], [true, true]] {
        let mut world = hosts(SPEC, [true; 2]);
        talk(&mut world, 1, 3_000);
        assert_eq!(sheds(&world), [true; 2]);
        world.blocks_esp = blocks;
        let (arrived, sent) = talk(&mut world, 1, 1_000);
        // What comes back may go twice, for nothing is heard of it.
        assert!(arrived + 60 >= sent, "{arrived} of {sent} with {blocks:?}");
        assert!(!sheds(&world)[0]);
        let (arrived, sent) = talk(&mut world, 1, 40_000);
        assert_eq!(arrived, sent, "{blocks:?}");
        assert!(!has_died(&world));
        world.blocks_esp = [false; 2];
        talk(&mut world, 1, 25_000);
        assert_eq!(sheds(&world), [true; 2]);
    }
}

/// Trains of segments, which only UDP has, are worth more than eight bytes where there is much to send.
#[test]
fn a_path_that_carries_much_is_in_udp() {
    let mut world = hosts(Spec::new(400_000_000, ms(5)), [true; 2]);
    talk(&mut world, 1, 2_000);
    assert_eq!(sheds(&world), [true; 2]);
    // 170 Mbit/s in both directions together.
    talk(&mut world, 100, 2_000);
    (0..2).for_each(|side| _ = counts(&mut world, side));
    talk(&mut world, 100, 1_000);
    for side in 0..2 {
        let (inside, without) = counts(&mut world, side);
        assert!(inside > 1_000 && without == 0, "{inside}, {without}");
    }
}

/// Everything for IP protocol 50 comes to a raw socket, and other programs speak ESP as well: what is not ours is nobody's fault.
#[test]
fn unknown_esp_without_udp_is_counted_and_answered_by_nothing() {
    let mut world = hosts(SPEC, [true; 2]);
    talk(&mut world, 1, 2_000);
    (0..2).for_each(|side| _ = counts(&mut world, side));
    let before = world.hosts[0].counters().unknown_spi;
    let (now, local) = (world.now, common::locator(0, 0, 10500));
    let route = hip::Route { local, remote: "192.0.2.9:0".parse().unwrap() };
    let payload = [&[0, 0, 9, 9][..], &[7; 100]].concat();
    for _ in 0..50 {
        let datagram = wedge::Datagram { route, protocol: Protocol::Esp, payload: &payload, ecn: wedge::Ecn::NotEct };
        world.hosts[0].handle_network(now, &mut world.rngs[0], &[datagram]);
    }
    let mut out = Vec::new();
    world.hosts[0].poll_transmit(now, &mut out);
    assert!(out.iter().all(|packet| packet.route.remote.ip() != route.remote.ip()), "{out:?}");
    assert_eq!(world.hosts[0].counters().unknown_spi - before, 50);
}

/// A NAT lets ESP pass and gives UDP another port: a heartbeat tells of that, and the path follows.
#[test]
fn a_path_without_udp_follows_a_nat() {
    let mut world = hosts(SPEC, [true; 2]);
    talk(&mut world, 1, 3_000);
    assert_eq!(sheds(&world), [true; 2]);
    world.nat = Some((0, 40_000));
    let (arrived, sent) = talk(&mut world, 1, 20_000);
    assert!(arrived + 20 >= sent, "{arrived} of {sent}");
    let path = &world.hosts[1].status(world.now).peers[0].paths[0];
    assert!(path.remote.ends_with(":40000"), "{path:?}");
    let (arrived, sent) = talk(&mut world, 1, 2_000);
    assert_eq!((arrived, sheds(&world)), (sent, [true; 2]));
    assert!(!has_died(&world));
}

//! Two hosts and the network between them: what arrives, by which path, and what happens when paths fail.

use crate::common::{LSIS, Mailbox, Program, Spec, World, ms, tcp_v6, udp_v4, udp_v6};
use clock::Instant;
use std::collections::BTreeMap;
use wedge::{Protocol, WedgeEvent};
use wire::ip::{self, IpPacket, protocol};
use wire::{icmp, tcp};

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn two_paths() -> [Spec; 2] {
    [Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]
}

/// Lets `packets` leave from a at `from`, one every `gap` microseconds, and runs to `end`.
fn spread(world: &mut World, programs: [&mut Mailbox; 2], packets: Vec<Vec<u8>>, gap: u64, end: Instant) {
    struct Paced<'a>(&'a mut Mailbox, std::collections::VecDeque<Vec<u8>>, u64, Instant);
    impl Program for Paced<'_> {
        fn receive(&mut self, now: Instant, packet: &[u8]) {
            self.0.receive(now, packet);
        }
        fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
            if now < self.3 {
                return Vec::new();
            }
            self.3 = now + clock::Duration::from_micros(self.2);
            self.1.pop_front().into_iter().collect()
        }
        fn deadline(&self) -> Option<Instant> {
            (!self.1.is_empty()).then_some(self.3)
        }
    }
    let [a, b] = programs;
    let start = world.now;
    let mut paced = Paced(a, packets.into(), gap, start);
    world.run(end, &mut [&mut paced, b]);
}

/// Two hosts that have exchanged a packet and opened their paths.
fn established(specs: &[Spec]) -> (World, [Mailbox; 2]) {
    begun(World::new(specs), specs)
}

/// The same where one of them is a plain HIP host: nothing is known of the paths but what is configured.
fn established_plain(specs: &[Spec]) -> (World, [Mailbox; 2]) {
    begun(World::configured(specs, 10500, |config| config.hip.feedback = false), specs)
}

fn begun(mut world: World, specs: &[Spec]) -> (World, [Mailbox; 2]) {
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    let [a, b] = &mut boxes;
    world.run(at(3_000), &mut [a, b]);
    assert_eq!(boxes[1].received.len(), 1, "{:?} {:?}", world.events, world.hosts[0].status(world.now));
    boxes[1].received.clear();
    for side in 0..2 {
        let status = world.hosts[side].status(world.now);
        assert_eq!(status.peers[0].paths.len(), specs.len(), "{status:?}");
        assert!(status.peers[0].paths.iter().all(|path| path.alive), "{status:?}");
    }
    (world, boxes)
}

#[test]
fn a_packet_to_a_hit_triggers_the_exchange_and_arrives_equal() {
    let mut world = World::new(&two_paths());
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let packet = udp_v6(world.hit(0), world.hit(1), (1000, 2000), b"the first packet waits");
    boxes[0].to_send.push(packet.clone());
    let [a, b] = &mut boxes;
    world.run(at(2_000), &mut [a, b]);
    assert_eq!(boxes[1].received.iter().map(|(_, packet)| packet).collect::<Vec<_>>(), [&packet]);
    assert!(world.events[0].contains(&WedgeEvent::Established { peer: "b".into() }));
    // And back.
    let answer = udp_v6(world.hit(1), world.hit(0), (2000, 1000), b"answer");
    boxes[1].to_send.push(answer.clone());
    let [a, b] = &mut boxes;
    world.run(at(2_100), &mut [a, b]);
    assert_eq!(boxes[0].received.last().map(|(_, packet)| packet), Some(&answer));
}

/// A minute of pings once arrived together when the peer was there at last.
#[test]
fn what_has_waited_for_long_is_not_delivered() {
    let mut world = World::new(&two_paths());
    world.links.iter_mut().flatten().for_each(|link| link.set_up(Instant::ZERO, false));
    let (mut a, mut b) = (Mailbox::default(), Mailbox::default());
    let packet = |world: &World, data: &[u8]| udp_v6(world.hit(0), world.hit(1), (1000, 2000), data);
    // The old ones leave no room, and give it up.
    a.to_send.extend((0..300).map(|_| packet(&world, b"old")));
    world.run(at(12_000), &mut [&mut a, &mut b]);
    a.to_send.push(packet(&world, b"new"));
    world.run(at(12_500), &mut [&mut a, &mut b]);
    world.links.iter_mut().flatten().for_each(|link| link.set_up(at(12_500), true));
    world.run(at(17_000), &mut [&mut a, &mut b]);
    let received: Vec<_> = b.received.iter().map(|(_, packet)| packet).collect();
    assert_eq!(received, [&packet(&world, b"new")]);
    let counters = world.hosts[0].status(world.now).counters;
    assert_eq!((counters.waiting_full, counters.waited_too_long), (44, 256));
}

/// A server that was started again has more to send at once than may wait. What its TCP sends again, and everything waits for,
/// comes last.
#[test]
fn what_came_last_waits_when_too_many_do() {
    let mut world = World::new(&two_paths());
    let (mut a, mut b) = (Mailbox::default(), Mailbox::default());
    let packet = |number: u16| udp_v6(world.hit(0), world.hit(1), (1000, 2000), &number.to_be_bytes());
    a.to_send.extend((0..300).map(packet));
    world.run(at(2_000), &mut [&mut a, &mut b]);
    let packet = |number: u16| udp_v6(world.hit(0), world.hit(1), (1000, 2000), &number.to_be_bytes());
    let mut received: Vec<_> = b.received.into_iter().map(|(_, packet)| packet).collect();
    let mut expected: Vec<_> = (44..300).map(packet).collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert_eq!(received, expected);
    assert_eq!(world.hosts[0].status(world.now).counters.waiting_full, 44);
}

#[test]
fn native_protocols_carry_the_same() {
    let mut world = World::configured(&two_paths(), 0, |_| ());
    world.record = Some(Vec::new());
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let packet = udp_v6(world.hit(0), world.hit(1), (1000, 2000), b"natively");
    boxes[0].to_send.push(packet.clone());
    let [a, b] = &mut boxes;
    world.run(at(2_000), &mut [a, b]);
    assert_eq!(boxes[1].received.first().map(|(_, packet)| packet), Some(&packet));
    let record = world.record.unwrap();
    assert!(record.iter().any(|(_, transmit)| transmit.protocol == Protocol::Hip));
    assert!(record.iter().any(|(_, transmit)| transmit.protocol == Protocol::Esp));
    assert!(record.iter().all(|(_, transmit)| transmit.protocol != Protocol::Udp));
}

/// Busy paths of 8 and 4 Mbit/s and equal delay carry bytes in the ratio of their rates, and all arrive within what
/// the sum of the rates takes.
#[test]
fn both_paths_are_used_in_the_ratio_of_their_rates() {
    let (mut world, mut boxes) = established_plain(&two_paths());
    let before = world.hosts[0].status(world.now);
    let packets: Vec<_> = (0..900u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 1300])).collect();
    // 1392 bytes on the wire (8 + 1300, ESP 8 + 8 + 2 + 2 + 16, UDP 8, IP 20) every 0.9 ms: 12.4 Mbit/s, of which
    // 11.7 can leave. The rest waits: after 900 packets for 46 ms.
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], packets, 900, at(5_000));
    assert_eq!(boxes[1].received.len(), 900);
    let after = world.hosts[0].status(world.now);
    let sent: Vec<u64> =
        (0..2).map(|path| after.peers[0].paths[path].packets_out - before.peers[0].paths[path].packets_out).collect();
    assert!((580..=640).contains(&sent[0]) && (285..=330).contains(&sent[1]), "{sent:?}");
    // No queue: all are there soon after the last left.
    assert!(boxes[1].received.last().unwrap().0 <= at(3_000 + 900 + 60));
    assert_eq!(after.counters.queue_full, 0);
}

#[test]
fn more_than_the_paths_carry_is_dropped_before_it_delays_what_follows() {
    let (mut world, mut boxes) = established_plain(&two_paths());
    let packets: Vec<_> = (0..1000u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 1300])).collect();
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], packets, 500, at(5_000));
    let received = &boxes[1].received;
    let counters = world.hosts[0].counters();
    assert_eq!(received.len() as u64 + counters.queue_full, 1000);
    // Twice what is carried was offered, for half a second.
    assert!((480..=650).contains(&received.len()), "{}", received.len());
    assert!(received.last().unwrap().0 <= at(3_000 + 500 + 100 + 60));
    // And no packet was lost in the network: the queue is ours.
    for link in world.links.iter_mut().flatten() {
        let statistics = *link.observe(world.now);
        assert_eq!(statistics.offered.packets, statistics.delivered.packets + link.inside() as u64);
    }
}

#[test]
fn ipv4_programs_talk_by_lsi() {
    let (mut world, mut boxes) = established(&two_paths());
    // a's program asks by IPv4; b's kernel has nobody on IPv6 and says so, and somebody on IPv4.
    let question = udp_v4(LSIS[0], LSIS[1], (1000, 53), b"question");
    boxes[0].to_send.push(question.clone());
    let [a, b] = &mut boxes;
    world.run(at(3_200), &mut [a, b]);
    let (_, offered) = boxes[1].received.pop().unwrap();
    assert_eq!(offered, udp_v6(world.hit(0), world.hit(1), (1000, 53), b"question"));
    let mut refusal = Vec::new();
    let code = icmp::v6::PORT_UNREACHABLE;
    icmp::error_v6(&offered, icmp::v6::UNREACHABLE, code, 0, world.hit(1).address(), &mut refusal).unwrap();
    boxes[1].to_send.push(refusal);
    let [a, b] = &mut boxes;
    world.run(at(3_201), &mut [a, b]);
    assert_eq!(boxes[1].received.pop().unwrap().1, question);
    boxes[1].to_send.push(udp_v4(LSIS[1], LSIS[0], (53, 1000), b"answer"));
    let [a, b] = &mut boxes;
    world.run(at(3_400), &mut [a, b]);
    assert_eq!(boxes[0].received.len(), 1);
    assert_eq!(boxes[0].received[0].1, udp_v4(LSIS[1], LSIS[0], (53, 1000), b"answer"));
    let counters = world.hosts[1].counters();
    assert_eq!((counters.offered_as_ipv4, counters.refusals_swallowed), (1, 1));
}

#[test]
fn a_refused_connection_is_offered_as_ipv4_and_if_refused_again_reset() {
    let (mut world, mut boxes) = established(&two_paths());
    let (a, b) = (world.hit(0), world.hit(1));
    let syn = tcp::Header { src_port: 1, dst_port: 80, seq: 9, flags: tcp::Flags::SYN, ..Default::default() };
    boxes[0].to_send.push(tcp_v6(a, b, &syn, &[]));
    let [left, right] = &mut boxes;
    world.run(at(3_100), &mut [left, right]);
    assert_eq!(boxes[1].received.pop().unwrap().1, tcp_v6(a, b, &syn, &[]));
    let flags = tcp::Flags::RST | tcp::Flags::ACK;
    let rst = tcp::Header { src_port: 80, dst_port: 1, ack: 10, flags, ..Default::default() };
    boxes[1].to_send.push(tcp_v6(b, a, &rst, &[]));
    let [left, right] = &mut boxes;
    world.run(at(3_200), &mut [left, right]);
    let (_, again) = boxes[1].received.pop().unwrap();
    let view = IpPacket::parse(&again).unwrap();
    assert_eq!((view.src(), view.dst()), (LSIS[0].address().into(), LSIS[1].address().into()));
    let segment = tcp::Segment::parse(view.payload()).unwrap();
    assert!(segment.checksum_is_right(view.src(), view.dst()) && segment.seq() == 9);
    assert!(boxes[0].received.is_empty(), "the refusal of IPv6 reached the peer");
    let mut reset = Vec::new();
    rst.emit(view.dst(), view.src(), &[], &mut reset).unwrap();
    boxes[1].to_send.push(ip::packet(view.dst(), view.src(), protocol::TCP, &reset).unwrap());
    let [left, right] = &mut boxes;
    world.run(at(3_300), &mut [left, right]);
    assert_eq!(boxes[0].received.pop().unwrap().1, tcp_v6(b, a, &rst, &[]));
}

#[test]
fn a_dead_path_is_left_and_taken_back() {
    let (mut world, mut boxes) = established_plain(&two_paths());
    let packets: Vec<_> = (0..5000u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 300])).collect();
    for side in 0..2 {
        world.links[0][side].set_up(at(3_000), false);
    }
    // 2.7 Mbit/s: the path that is left carries it.
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], packets, 1_000, at(5_500));
    let dead = |events: &[WedgeEvent]| events.iter().any(|event| matches!(event, WedgeEvent::PathDead { .. }));
    assert!(dead(&world.events[0]) && dead(&world.events[1]));
    let status = world.hosts[0].status(world.now);
    assert_eq!(status.peers[0].paths.iter().map(|path| path.alive).collect::<Vec<_>>(), [false, true]);
    // Everything from a second after the cut on has arrived.
    let numbers: Vec<u16> = boxes[1].received.iter().map(|(_, packet)| packet_port(packet)).collect();
    assert!((1_000..2_400).all(|n| numbers.contains(&n)));
    for side in 0..2 {
        world.links[0][side].set_up(at(5_500), true);
    }
    let before = world.sent[0][0];
    let more: Vec<_> = (0..2000u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 1000])).collect();
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], more, 1_000, at(8_000));
    assert!(world.events[0].iter().any(|event| matches!(event, WedgeEvent::PathAlive { .. })));
    assert!(world.hosts[0].status(world.now).peers[0].paths.iter().all(|path| path.alive));
    assert!(world.sent[0][0] - before > 500);
}

fn packet_port(packet: &[u8]) -> u16 {
    let view = IpPacket::parse(packet).unwrap();
    wire::udp::Datagram::parse(view.payload()).unwrap().dst_port()
}

#[test]
fn what_is_too_big_is_answered_with_the_size_that_fits() {
    let (mut world, mut boxes) = established(&two_paths());
    let (a, b) = (world.hit(0), world.hit(1));
    let mtu = usize::from(world.hosts[0].tun_mtu());
    // By hand for AES-GCM with implicit IVs: 1500 - 20 - 8 = 1472 for ESP; 8 header, 16 ICV leave 1448, a multiple of 4,
    // less pad length and next header 1446,
    // less the number 1444; with the header that is not sent 1484.
    assert_eq!((mtu, world.hosts[0].lsi_mtu()), (1484, 1464));
    boxes[0].to_send.push(udp_v6(a, b, (1, 1), &vec![0; mtu - 48]));
    boxes[0].to_send.push(udp_v6(a, b, (1, 2), &vec![0; mtu - 47]));
    boxes[0].to_send.push(udp_v4(LSIS[0], LSIS[1], (1, 3), &vec![0; 1464 - 28]));
    boxes[0].to_send.push(udp_v4(LSIS[0], LSIS[1], (1, 4), &vec![0; 1464 - 27]));
    world.record = Some(Vec::new());
    let [left, right] = &mut boxes;
    world.run(at(3_100), &mut [left, right]);
    let mut arrived: Vec<u16> = boxes[1].received.iter().map(|(_, packet)| packet_port(packet)).collect();
    arrived.sort_unstable(); // On two paths, of which either may be the faster.
    assert_eq!(arrived, [1, 3]);
    let answers: Vec<_> = boxes[0].received.iter().map(|(_, packet)| IpPacket::parse(packet).unwrap()).collect();
    let errors: Vec<_> = answers.iter().map(|answer| icmp::IcmpError::parse(answer).unwrap()).collect();
    assert_eq!(errors.iter().map(|error| error.mtu).collect::<Vec<_>>(), [Some(1484), Some(1464)]);
    assert_eq!(world.hosts[0].counters().too_big, 2);
    let largest = world.record.unwrap().iter().map(|(_, transmit)| transmit.bytes.len() + 28).max().unwrap();
    assert!(largest <= 1500 && largest > 1470, "{largest}");
}

/// What was opened is not moved: the header goes where there is room for it, and numbers are left in the room before it.
#[test]
fn what_is_delivered_has_room_in_front() {
    // What has not waited has no number of its own; what has copies always has one.
    for (scheduler, numbers) in [("fastest-path-first", 0), ("redundant", 8)] {
        let configured = World::configured(&two_paths(), 10500, |config| config.scheduler = scheduler.parse().unwrap());
        let (mut world, _) = begun(configured, &two_paths());
        let packet = udp_v6(world.hit(0), world.hit(1), (1, 1), &[7; 100]);
        let now = world.now;
        world.hosts[0].handle_application(now, &mut world.rngs[0], [packet.clone()]);
        let (mut out, mut delivered) = (Vec::new(), Vec::new());
        world.hosts[0].poll_transmit(now, &mut out);
        for transmit in &out {
            let route = hip::Route { local: transmit.route.remote, remote: transmit.route.local };
            let datagram =
                wedge::Datagram { route, protocol: transmit.protocol, payload: &transmit.bytes, ecn: transmit.ecn };
            world.hosts[1].handle_network(now, &mut world.rngs[1], &[datagram]);
        }
        world.hosts[1].poll_deliver(&mut delivered);
        let (bytes, start) = delivered.remove(0).into_parts();
        assert!(start >= wedge::HEADROOM + numbers, "{start}");
        assert_eq!(bytes[start + 40..], packet[40..]);
    }
}

#[test]
fn nonsense_is_counted_and_does_nothing() {
    let (mut world, mut boxes) = established(&two_paths());
    world.record = Some(Vec::new());
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (1, 1), &[7; 100]));
    let [a, b] = &mut boxes;
    world.run(at(3_100), &mut [a, b]);
    let record = world.record.take().unwrap();
    let (_, sealed) = record.iter().find(|(side, transmit)| *side == 0 && transmit.bytes.len() > 100).unwrap();
    let route = hip::Route { local: sealed.route.remote, remote: sealed.route.local };
    let mut give = |bytes: &[u8]| {
        let ecn = wedge::Ecn::NotEct;
        let datagram = wedge::Datagram { route, protocol: Protocol::Udp, payload: bytes, ecn };
        world.hosts[1].handle_network(at(3_200), &mut world.rngs[1], &[datagram]);
    };
    give(&sealed.bytes);
    for at in 4..sealed.bytes.len() {
        let mut bytes = sealed.bytes.clone();
        bytes[at] ^= 1;
        if at < 8 {
            bytes[4] = 0x40; // far ahead of the window
        }
        give(&bytes);
    }
    give(&[]);
    give(&[1, 2, 3]);
    give(&[0xff]);
    give(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    give(&sealed.bytes[..20]);
    let mut delivered = Vec::new();
    world.hosts[1].poll_deliver(&mut delivered);
    assert!(delivered.is_empty());
    let counters = world.hosts[1].counters();
    assert!(counters.bad_icv > 0 && counters.replayed > 0);
    assert_eq!((counters.malformed, counters.unknown_spi, counters.short_esp), (2, 1, 1));
    // The programs' side.
    let (a, b) = (world.hit(0), world.hit(1));
    let stranger = wire::Hit([0x20; 16]);
    let mut give = |packet: &[u8]| world.hosts[0].handle_application(at(3_200), &mut world.rngs[0], [packet.to_vec()]);
    give(&[]);
    give(&udp_v6(a, b, (1, 1), b"x")[..47]);
    give(&udp_v6(a, stranger, (1, 1), b"x"));
    give(&udp_v6(stranger, b, (1, 1), b"x"));
    let counters = world.hosts[0].counters();
    assert_eq!((counters.unreadable, counters.no_peer, counters.wrong_source), (2, 1, 1));
}

#[test]
fn keys_are_told_only_on_demand() {
    for keylog in [false, true] {
        let mut world = World::configured(&two_paths(), 10500, |config| config.keylog = keylog);
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
        let [a, b] = &mut boxes;
        world.run(at(3_000), &mut [a, b]);
        let lines = world.events[0].iter().filter(|event| matches!(event, WedgeEvent::KeyLog(_))).count();
        assert_eq!(lines, if keylog { 4 } else { 0 });
    }
}

#[test]
fn a_peer_that_forgot_the_association_is_asked_for_a_new_one() {
    let (mut world, mut boxes) = established(&two_paths());
    // b starts anew, with the same identity, and only answers.
    let fresh = World::new(&two_paths());
    let [_, b] = fresh.hosts;
    world.hosts[1] = b;
    let packets: Vec<_> = (0..300u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 100])).collect();
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], packets, 100_000, at(33_000));
    assert!(world.events[0].iter().any(|event| matches!(event, WedgeEvent::Closed { .. })));
    assert!(boxes[1].received.iter().any(|(_, packet)| packet_port(packet) == 290));
}

#[test]
fn programs_hear_of_a_peer_that_cannot_be_reached() {
    let mut world = World::configured(&two_paths(), 10500, |config| config.hip.max_tries = 2);
    for link in world.links.iter_mut().flatten() {
        link.set_up(Instant::ZERO, false);
    }
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    boxes[0].to_send.push(udp_v4(LSIS[0], LSIS[1], (9, 10), b"hello"));
    let [a, b] = &mut boxes;
    world.run(at(20_000), &mut [a, b]);
    assert!(world.events[0].iter().any(|event| matches!(event, WedgeEvent::Failed { .. })));
    let kinds: Vec<_> = boxes[0]
        .received
        .iter()
        .map(|(_, packet)| {
            let view = IpPacket::parse(packet).unwrap();
            (view.src().is_ipv6(), icmp::IcmpError::parse(&view).unwrap().is_unreachable(view.src().is_ipv6()))
        })
        .collect();
    assert_eq!(kinds, [(true, true), (false, true)]);
}

#[test]
fn seeded_loss_costs_what_it_takes_and_no_more() {
    let (mut world, mut boxes) =
        established_plain(&[Spec { loss: 0.05, ..two_paths()[0] }, Spec { loss: 0.05, ..two_paths()[1] }]);
    let packets: Vec<_> = (0..2000u16).map(|n| udp_v6(world.hit(0), world.hit(1), (1, n), &[0; 300])).collect();
    let [a, b] = &mut boxes;
    spread(&mut world, [a, b], packets, 1_000, at(6_000));
    // 5 % of 2000 is 100, with a standard deviation of 9.7.
    let lost = 2000 - boxes[1].received.len();
    assert!((60..=140).contains(&lost), "{lost}");
}

#[test]
fn all_is_closed_and_opened_again() {
    let (mut world, mut boxes) = established(&two_paths());
    let now = world.now;
    world.hosts[0].close_all(now, &mut world.rngs[0]);
    let [a, b] = &mut boxes;
    world.run(at(5_000), &mut [a, b]);
    assert!(world.hosts.iter().all(|host| host.is_closed()));
    boxes[1].to_send.push(udp_v6(world.hit(1), world.hit(0), (9, 9), b"again"));
    let [a, b] = &mut boxes;
    world.run(at(8_000), &mut [a, b]);
    assert_eq!(boxes[0].received.len(), 1, "{:?}", world.events);
}

/// RFC 8046 §5.6: before the peer has answered on a route for the second time, no more than three times as much goes there as
/// came from it, whatever waits.
#[test]
fn little_goes_where_the_peer_has_answered_once() {
    for port in [10500, 0] {
        let mut world = World::configured(&two_paths(), port, |config| {
            config.paths.iter_mut().for_each(|path| path.rate = None);
        });
        world.record = Some(Vec::new());
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        let (a, b) = (world.hit(0), world.hit(1));
        boxes[0].to_send.extend((0..200u16).map(|n| udp_v6(a, b, (1, n), &[0; 1_200])));
        let [left, right] = &mut boxes;
        world.run(at(3_000), &mut [left, right]);
        assert!(boxes[1].received.len() >= 90, "{}", boxes[1].received.len());
        let is_hip = |transmit: &wedge::Transmit| match transmit.protocol {
            Protocol::Udp => transmit.bytes.starts_with(&[0; 4]),
            other => other == Protocol::Hip,
        };
        let headers = if port == 0 { 20 } else { 28 };
        let (mut heard, mut answers, mut said) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut limited = 0;
        for (side, transmit) in world.record.take().unwrap() {
            let bytes = transmit.bytes.len() + headers;
            if side == 1 {
                *heard.entry(transmit.route.remote).or_insert(0) += bytes;
                *answers.entry(transmit.route.remote).or_insert(0) += u32::from(!is_hip(&transmit));
            } else if !is_hip(&transmit) {
                let (local, said) = (transmit.route.local, said.entry(transmit.route.local).or_insert(0));
                *said += bytes;
                if answers.get(&local).is_none_or(|answers| *answers == 0) {
                    limited += 1;
                    let heard = heard.get(&local).copied().unwrap_or(0);
                    assert!(*said <= 3 * heard, "{said} went where {heard} came from");
                }
            }
        }
        assert!(limited > 0);
    }
}

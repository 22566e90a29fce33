//! What a relay passes on, and what nobody can make it do; what the candidates of a peer can make a host do (RFC 9028 §4.5, §6).

use crate::common;
use std::net::{IpAddr, SocketAddr};

use crate::common::nat::{A, B, FULL_CONE, Net, PORT_RESTRICTED, Party, S, SECOND, SYMMETRIC, at};
use hip::Route;
use wire::hip::{Builder, Packet, PacketKind, Parameter, TransportAddress, append};

fn registered(seed: u64) -> Net {
    let mut net = Net::new([Some(PORT_RESTRICTED); 2], seed, |_, _| {});
    net.run(SECOND * 5);
    assert_eq!(net.parties[S].host.registrations(net.now).count(), 2);
    net.sent.clear();
    net
}

/// Hands a packet in, and takes what is sent for it.
fn give(net: &mut Net, to: usize, route: Route, packet: &[u8]) -> Vec<(Route, Vec<u8>)> {
    let now = net.now;
    let Party { host, rng, .. } = &mut net.parties[to];
    host.handle_packet(now, rng, route, packet);
    let mut sent = Vec::new();
    while let Some(control) = net.parties[to].host.poll_transmit() {
        sent.push((control.route, control.bytes));
    }
    sent
}

fn i1(net: &Net) -> Vec<u8> {
    let i1 = Builder::new(PacketKind::I1, net.hit(A), net.hit(B)).push(&Parameter::DhGroupList(vec![7]));
    i1.finish().unwrap()
}

/// Where the server sees its client.
fn seen(net: &Net, client: usize) -> SocketAddr {
    let hit = net.hit(client);
    net.parties[S].host.registrations(net.now).find(|(other, _)| *other == hit).unwrap().1
}

/// RFC 9028 §4.5: RELAY_FROM and RELAY_HMAC are believed of the relay that this host is registered with, and of nobody else.
#[test]
fn what_comes_by_a_relay_is_believed_of_the_relay_only() {
    let mut net = registered(1);
    let server = at("198.51.100.7");
    let asks = Route { local: server, remote: at("192.0.2.1") };
    let i1 = i1(&net);
    let passed = give(&mut net, S, asks, &i1);
    let [(way, passed)] = &passed[..] else { panic!("{} packets", passed.len()) };
    assert_eq!(way.remote, seen(&net, B));
    assert_eq!(Packet::parse(passed).unwrap().relay_from(), Some(&TransportAddress::udp(asks.remote)));

    let place = net.parties[B].uplinks[0].0;
    let honest = Route { local: place, remote: server };
    let answer = give(&mut net, B, honest, passed);
    let [(way, answer)] = &answer[..] else { panic!("{} answers", answer.len()) };
    assert_eq!(*way, honest, "back by the relay");
    assert_eq!(Packet::parse(answer).unwrap().relay_to().unwrap().in_udp(), Some(asks.remote));
    let elsewhere = Route { remote: at("192.0.2.66"), ..honest };
    assert!(give(&mut net, B, elsewhere, passed).is_empty(), "not from there");
    for byte in 0..passed.len() {
        let mut changed = passed.clone();
        changed[byte] ^= 0x40;
        let said = give(&mut net, B, honest, &changed);
        // Nobody looks at the checksum inside UDP, and at padding. Without RELAY_HMAC it is an I1 of the relay's own.
        let ignored = (4..6).contains(&byte) || byte + 4 >= passed.len();
        assert!(
            said.iter().all(|(_, said)| Packet::parse(said).unwrap().relay_to().is_none()) || ignored,
            "byte {byte}"
        );
    }
    let mut bare = i1;
    append(&mut bare, &Parameter::RelayFrom(TransportAddress::udp(at("192.0.2.1"))));
    append(&mut bare, &Parameter::RelayHmac(vec![0; 32]));
    assert!(give(&mut net, B, honest, &bare).is_empty());
}

/// A relay sends to where a client wants it to, and only on its word: what is changed on the way, comes from elsewhere or from
/// who is no client goes nowhere, and nobody can have it send to itself, to many, or to what is on its own machine.
#[test]
fn a_relay_sends_nowhere_but_for_its_clients() {
    let mut net = registered(2);
    let server = at("198.51.100.7");
    let asks = Route { local: server, remote: at("192.0.2.1") };
    let i1 = i1(&net);
    let passed = give(&mut net, S, asks, &i1).remove(0).1;
    let honest = Route { local: net.parties[B].uplinks[0].0, remote: server };
    let answer = give(&mut net, B, honest, &passed).remove(0).1;
    let client = Route { local: server, remote: seen(&net, B) };
    let sent = give(&mut net, S, client, &answer);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].0, asks, "to who has asked");
    for byte in 0..answer.len() {
        let mut changed = answer.clone();
        changed[byte] ^= 0x40;
        let ignored = (4..6).contains(&byte) || byte + 4 >= answer.len();
        let there = give(&mut net, S, client, &changed).iter().any(|(route, _)| route.remote == asks.remote);
        assert!(ignored || !there, "byte {byte}");
    }
    let elsewhere = Route { remote: at("192.0.2.66"), ..client };
    assert!(give(&mut net, S, elsewhere, &answer).is_empty());
    // RELAY_TO in a packet that nobody vouches for.
    let mut bare = i1;
    append(&mut bare, &Parameter::RelayTo(TransportAddress::udp(at("192.0.2.99"))));
    assert!(give(&mut net, S, client, &bare).is_empty());
    // The client itself is told an address that is none: it says so to its relay, which sends nothing.
    for (number, place) in
        ["224.0.0.1", "127.0.0.1", "198.51.100.7", "255.255.255.255", "0.0.0.0"].into_iter().enumerate()
    {
        let asks = Route { remote: at(place), ..asks };
        let i1 = self::i1(&net);
        let passed = give(&mut net, S, asks, &i1).remove(0).1;
        let answer = give(&mut net, B, honest, &passed).remove(0).1;
        assert!(give(&mut net, S, client, &answer).is_empty(), "{place}");
        assert_eq!(net.parties[S].host.counters().bad_places as usize, number + 1);
    }
}

/// A flood costs a MAC for each packet that is passed on, and that are few: of a source, and to a client.
#[test]
fn a_flood_is_not_passed_on() {
    let mut net = registered(3);
    let server = at("198.51.100.7");
    let hits = (net.hit(A), net.hit(B));
    let close = Builder::new(PacketKind::Close, hits.0, hits.1).push(&Parameter::EchoRequestSigned(vec![0; 16]));
    let close = close.finish().unwrap();
    let macs = net.parties[S].host.costs().macs;
    let passed = (0..10_000_u32).map(|number| {
        let [_, _, high, low] = number.to_be_bytes();
        let source = SocketAddr::from(([10, high, low, 1], 10_500));
        give(&mut net, S, Route { local: server, remote: source }, &close).len()
    });
    let passed: usize = passed.sum();
    // To one client: 400 at once.
    assert_eq!(passed, 400);
    assert_eq!(net.parties[S].host.costs().macs - macs, 400);
    assert!(net.parties[S].host.counters().over_share + net.parties[S].host.counters().over_budget == 9_600);
    // Others have not lost anything by it.
    let other = Builder::new(PacketKind::I1, hits.1, hits.0).push(&Parameter::DhGroupList(vec![7])).finish().unwrap();
    assert_eq!(give(&mut net, S, Route { local: server, remote: at("192.0.2.1") }, &other).len(), 1);
}

/// A host whose locators are everybody's but its own: to none of those that no host has goes anything, and to a third party
/// no more than a few checks, whatever is told how often.
#[test]
fn hostile_candidates_make_nobody_send_much() {
    let hostile = ["224.0.0.1", "127.0.0.1", "10.0.1.2", "10.0.2.2", "255.255.255.255", "0.0.0.0", "203.0.113.80"];
    let mut net = Net::new([Some(PORT_RESTRICTED); 2], 4, |side, config| {
        if side == B {
            config.locators.extend(hostile.map(at));
        }
    });
    net.run(SECOND * 5);
    net.sent.clear();
    net.connect(A, B);
    net.run(SECOND * 30);
    let to = |place: &str| {
        let place: IpAddr = place.parse().unwrap();
        net.sent.iter().filter(|(side, route, _)| *side == A && route.remote.ip() == place).collect::<Vec<_>>()
    };
    for place in &hostile[..6] {
        assert!(to(place).is_empty(), "{place}");
    }
    assert!(net.parties[A].host.counters().bad_places >= 6);
    // Five tries from each of two locators, and five more because checks come from there; and an answer, no longer, to each of those that B sends as if it were there.
    let third = to("203.0.113.80");
    let is_check =
        |(_, _, bytes): &&&(usize, Route, Vec<u8>)| Packet::parse(bytes).unwrap().candidate_priority().is_some();
    let checks = third.iter().filter(is_check).count();
    assert!((2..=20).contains(&checks), "{checks}");
    let bytes =
        |all: &mut dyn Iterator<Item = &(usize, Route, Vec<u8>)>| all.map(|(.., bytes)| bytes.len()).sum::<usize>();
    let answers = bytes(&mut third.iter().copied().filter(|sent| !is_check(&sent)));
    let forged = bytes(&mut net.sent.iter().filter(|(side, route, _)| *side == B && route.local == at("203.0.113.80")));
    assert!(answers <= forged, "{answers} bytes for {forged}");
    assert!(net.uplinks().iter().all(|used| used.len() == 2), "and the two have met");
}

/// With NATs that give each packet another port nobody can meet. It ends, costs little, and is told.
#[test]
fn nats_that_give_each_packet_another_port_are_given_up() {
    let mut net = Net::new([Some(FULL_CONE), Some(FULL_CONE)], 5, |_, _| {});
    net.run(SECOND * 5);
    net.nats.iter_mut().for_each(|nat| nat.mad = true);
    net.sent.clear();
    net.connect(A, B);
    net.run(SECOND * 100);
    assert!(net.sent.iter().filter(|(side, ..)| *side == A).count() < 200);
    assert!(net.paths(A, B).is_empty(), "{:?}", net.paths(A, B));
    let told = &net.parties[A].closed;
    assert!(told.iter().any(|reason| reason.contains("does not answer")), "{told:?}");
}

/// Two NATs of which each gives each destination another port, and lets nothing in but from there: no way past the relay.
#[test]
fn who_cannot_meet_hears_it() {
    let mut net = Net::new([Some(SYMMETRIC); 2], 6, |_, _| {});
    net.run(SECOND * 5);
    net.sent.clear();
    net.connect(A, B);
    net.run(SECOND * 20);
    assert!(net.paths(A, B).is_empty());
    assert!(
        net.parties[A].closed.iter().any(|reason| reason.contains("no way past the relay")),
        "{:?}",
        net.parties[A].closed
    );
    let checks = net.parties[A].host.counters().checks_out;
    assert!(checks <= 5 * 8, "two locators, four candidates, five tries: {checks}");
}

/// Who registers over and over costs no more than its share, and has one registration.
#[test]
fn ten_thousand_registrations_are_one() {
    let mut hand = common::by_hand::Hand::new(|config, peer| {
        let mut registrar = hip::Registrar::default();
        registrar.relay = true;
        config.registrar = Some(registrar);
        peer.may_register = true;
    });
    hand.exchange(&[]);
    let before = hand.side.host.costs().signatures;
    for seq in 0..10_000 {
        let asks = wire::hip::Registration { lifetime: 130, types: vec![1, 2] };
        let update = hand.sealed(PacketKind::Update, vec![Parameter::RegRequest(asks), Parameter::Seq(seq)]);
        hand.give(hand.route, &update);
    }
    assert_eq!(hand.side.host.registrations(hand.now).count(), 1);
    let counters = *hand.side.host.counters();
    assert!(counters.registrations <= 64 && counters.over_share >= 9_900, "{counters:?}");
    assert!(hand.side.host.costs().signatures - before <= 64);
}

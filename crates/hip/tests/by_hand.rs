//! What hosts may say that Sinnet does not: the RFCs are the oracle, and a host made by hand says it.

use crate::common;
use crate::common::by_hand::{Hand, locator};
use crate::common::{Pair, Side};
use clock::Duration;
use hip::{PathId, Peer, Route, State};
use std::net::{IpAddr, SocketAddr};
use wire::hip::{EspInfo, Locator, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

const SECOND: Duration = Duration::from_secs(1);

fn packet(bytes: &[u8]) -> Packet<'_> {
    Packet::parse(bytes).unwrap()
}

fn entry(address: SocketAddr, spi: Option<Spi>, lifetime: u32, preferred: bool) -> Locator {
    let IpAddr::V4(address) = address.ip() else { panic!("IPv4 here") };
    Locator { traffic: 0, preferred, lifetime, spi, address: address.to_ipv6_mapped() }
}

fn acks(said: &[(Route, Vec<u8>)]) -> Vec<u32> {
    said.iter().flat_map(|(_, bytes)| packet(bytes).ack().cloned().unwrap_or_default()).collect()
}

/// The answer to what a packet asks: its Update ID, and its echo.
fn answer(bytes: &[u8]) -> Vec<Parameter> {
    let packet = packet(bytes);
    let echo = Parameter::EchoResponseSigned(packet.echo_request_signed().unwrap().clone());
    vec![Parameter::Ack(vec![*packet.seq().unwrap()]), echo]
}

/// RFC 7401 §6.12: an UPDATE that a later one has overtaken is acknowledged, once and again; but what it says of locators does not
/// hold any more.
#[test]
fn an_overtaken_update_is_acknowledged_and_does_not_undo_the_later_one() {
    let mut hand = Hand::associated();
    let (spi, there) = (hand.spi, hand.route.remote);
    let told = |hand: &mut Hand, seq, preferred| {
        let set = Parameter::LocatorSet(vec![entry(there, Some(spi), 600, preferred)]);
        let update = hand.sealed(PacketKind::Update, vec![set, Parameter::Seq(seq)]);
        (hand.give(hand.route, &update), update)
    };
    assert_eq!(acks(&told(&mut hand, 1, true).0), [1]);
    assert!(hand.side.backups.is_empty());
    let (said, late) = told(&mut hand, 0, false);
    assert_eq!(acks(&said), [0]);
    assert!(hand.side.backups.is_empty(), "the later one says otherwise");
    let again = hand.give(hand.route, &late);
    assert_eq!((acks(&again), again[0].1 == said[0].1), (vec![0], true), "the same answer, which costs no signature");
    // One that came late and says what nothing later does, counts.
    assert_eq!(acks(&hand.update(vec![Parameter::Seq(7), Parameter::EchoRequestSigned(vec![1])])), [7]);
    assert_eq!(acks(&told(&mut hand, 5, false).0), [5]);
    assert_eq!(hand.side.backups, [PathId(0)]);
    // So old that nobody knows.
    assert_eq!(acks(&hand.update(vec![Parameter::Seq(107)])), [107]);
    assert_eq!(acks(&hand.update(vec![Parameter::Seq(43)])), []);
    assert_eq!(acks(&hand.update(vec![Parameter::Seq(44)])), [44]);
}

/// The same with a path that a later UPDATE has opened anew: that one stays.
#[test]
fn an_overtaken_opening_does_not_close_the_path_that_took_its_place() {
    let mut hand = Hand::associated();
    let there = Route { remote: locator("10.1.0.7"), ..hand.route };
    let open = |hand: &mut Hand, seq, spi| {
        let update = hand.sealed(PacketKind::Update, vec![hand.esp_info(Spi(0), Spi(spi)), Parameter::Seq(seq)]);
        hand.give(there, &update).remove(0).1
    };
    let first = open(&mut hand, 1, 0x3000);
    assert!(packet(&first).esp_info().is_some());
    let late = open(&mut hand, 0, 0x2000);
    assert_eq!((packet(&late).ack(), packet(&late).esp_info()), (Some(&vec![0]), None), "acknowledged, and refused");
    assert!(hand.side.paths.values().any(|(_, outbound, _)| outbound.spi() == Spi(0x3000)));
}

/// RFC 8046 §4: a locator whose lifetime has ended is not used where there is another. RFC 8046 §5.3: nor one that is not listed.
#[test]
fn locators_end_with_their_lifetime_or_with_an_empty_list() {
    let mut hand = Hand::associated();
    let (spi, there) = (hand.spi, hand.route.remote);
    let tell = |hand: &mut Hand, seq, lifetimes: &[u32]| {
        let set = lifetimes.iter().map(|lifetime| entry(there, Some(spi), *lifetime, true)).collect();
        let said = hand.update(vec![hand.esp_info(spi, spi), Parameter::LocatorSet(set), Parameter::Seq(seq)]);
        assert_eq!(acks(&said), [seq]);
    };
    tell(&mut hand, 0, &[10]);
    hand.wait(SECOND * 9);
    assert!(hand.side.backups.is_empty());
    hand.wait(SECOND * 2);
    assert_eq!(hand.side.backups, [PathId(0)], "deprecated");
    tell(&mut hand, 1, &[10]);
    assert!(hand.side.backups.is_empty(), "good again");
    hand.wait(SECOND * 5);
    tell(&mut hand, 2, &[u32::MAX]);
    hand.wait(SECOND * 60);
    assert!(hand.side.backups.is_empty(), "it has no end");
    tell(&mut hand, 3, &[]);
    assert_eq!(hand.side.backups, [PathId(0)], "no address is listed");
    tell(&mut hand, 4, &[u32::MAX - 1]);
    assert!(hand.side.backups.is_empty());
    // For no time at all is not listed either.
    tell(&mut hand, 5, &[0]);
    assert_eq!(hand.side.backups, [PathId(0)]);
    assert_eq!(
        (hand.side.paths.len(), hand.side.closed.len()),
        (1, 0),
        "where there is no other it is used all the same"
    );
}

/// RFC 8047 §4.2: an UPDATE about several security associations gets one answer, in the same order. A path at another address is
/// asked for there (RFC 8046 §5.4).
#[test]
fn several_security_associations_in_one_update() {
    let mut hand = Hand::associated();
    let (here, there) = (hand.route, Route { remote: locator("10.1.0.9"), ..hand.route });
    let at = |spi, place: Route| entry(place.remote, Some(Spi(spi)), 600, true);
    let set = vec![at(hand.spi.0, here), at(0x2000, here), at(0x3000, there)];
    let parameters = vec![
        hand.esp_info(Spi(0), Spi(0x2000)),
        hand.esp_info(Spi(0), Spi(0x3000)),
        Parameter::LocatorSet(set),
        Parameter::Seq(0),
        Parameter::EchoRequestSigned(vec![7; 8]),
    ];
    // The first is at the address of another path, which it takes the place of.
    let said = hand.update(parameters);
    let (to_there, to_here): (Vec<_>, Vec<_>) = said.iter().partition(|(route, _)| *route == there);
    assert_eq!((to_here.len(), to_there.len()), (1, 1));
    let answered = packet(&to_here[0].1);
    let infos: Vec<EspInfo> = answered.esp_infos().copied().collect();
    assert_eq!((answered.ack(), infos.len()), (Some(&vec![0]), 2));
    assert_eq!(answered.echo_response_signed(), Some(&vec![7; 8]));
    let mut pairs = Vec::new();
    for (info, spi) in infos.iter().zip([0x2000, 0x3000]) {
        // KEYMAT in the order of the ESP_INFOs (RFC 7402 §7).
        assert_eq!((info.old_spi, info.keymat_index), (Spi(0), hand.index));
        pairs.push(hand.next_pair(Spi(spi), info.new_spi));
    }
    assert!(hand.side.verified.is_empty(), "neither has been answered for");
    let (question, there_answer) = (answer(&to_here[0].1), answer(&to_there[0].1));
    hand.update(question);
    assert_eq!(hand.side.verified.len(), 1);
    let echo = hand.sealed(PacketKind::Update, there_answer);
    hand.give(here, &echo);
    assert_eq!(hand.side.verified.len(), 1, "an echo from elsewhere proves nothing");
    hand.give(there, &echo);
    assert_eq!(hand.side.verified.len(), 2);
    for (outbound, inbound) in &mut pairs {
        let (_, theirs_out, theirs_in) =
            hand.side.paths.values_mut().find(|(_, out, _)| out.spi() == inbound.spi()).unwrap();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        outbound.seal(17, b"there", &mut hand.rng, &mut sealed).unwrap();
        assert_eq!(theirs_in.open(&sealed, &mut opened), Ok(17));
        sealed.clear();
        opened.clear();
        theirs_out.seal(17, b"back", &mut hand.rng, &mut sealed).unwrap();
        assert_eq!((inbound.open(&sealed, &mut opened), &opened[..]), (Ok(17), &b"back"[..]));
    }
    // One that stays and one that ends, of RFC 8046 §5.3 cases 1 and 4.
    let said = hand.update(vec![
        hand.esp_info(Spi(0x2000), Spi(0x2000)),
        hand.esp_info(Spi(0x3000), Spi(0)),
        Parameter::LocatorSet(vec![at(0x2000, here), at(0x3000, there)]),
        Parameter::Seq(1),
    ]);
    assert_eq!(acks(&said), [1]);
    let left: Vec<Spi> = hand.side.paths.values().map(|(_, out, _)| out.spi()).collect();
    assert_eq!(left, [Spi(0x2000)]);
    // More than there may be: refused, and heard.
    let mut many: Vec<_> = (0..40).map(|spi| hand.esp_info(Spi(0), Spi(0x5000 + spi))).collect();
    many.push(Parameter::Seq(2));
    assert_eq!(acks(&hand.update(many)), [2]);
    assert!(hand.side.paths.len() <= 9);
}

/// RFC 8047 §4.2: the LOCATOR_SET of an I2. The path goes to the preferred locator once somebody answers there, and no more than three
/// times the I2 is sent to where nobody does (RFC 8046 §5.6).
#[test]
fn the_preferred_locator_of_an_i2_is_asked_and_followed() {
    for (address, asked) in [("10.1.0.8", true), ("224.0.0.7", false), ("255.255.255.255", false), ("127.0.0.1", false)]
    {
        let mut hand = Hand::new(|config, _| config.feedback = false);
        let there = Route { remote: locator(address), ..hand.route };
        let set = vec![entry(there.remote, None, 600, true), entry(hand.route.remote, None, 600, false)];
        hand.exchange(&[Parameter::LocatorSet(set)]);
        let question = hand.said.iter().find(|(route, _)| *route == there).map(|(_, bytes)| bytes.clone());
        assert_eq!(question.is_some(), asked, "{address}");
        hand.wait(SECOND * 60);
        let sent: usize = hand.said.iter().filter(|(route, _)| *route == there).map(|(_, bytes)| bytes.len()).sum();
        assert!(sent <= 3 * hand.i2_len, "{sent} bytes");
        let Some(question) = question else { continue };
        assert_eq!(hand.side.paths[&PathId(0)].0, hand.route);
        // Too late: it is asked no more. The next host answers in time.
        let mut hand = Hand::new(|config, _| config.feedback = false);
        let set = vec![entry(there.remote, None, 600, true), entry(hand.route.remote, None, 600, false)];
        hand.exchange(&[Parameter::LocatorSet(set)]);
        assert!(packet(&question).esp_info().is_some_and(|esp| esp.old_spi == esp.new_spi));
        let question = hand.said.iter().find(|(route, _)| *route == there).map(|(_, bytes)| bytes.clone()).unwrap();
        let echo = hand.sealed(PacketKind::Update, answer(&question));
        hand.give(there, &echo);
        assert_eq!(hand.side.paths[&PathId(0)].0, there);
    }
}

/// RFC 7401 §4.4.3, table 4: the peer has taken our I2, its R2 is lost, and it goes.
#[test]
fn a_close_in_i2_sent_is_answered() {
    let mut pair = Pair::usual(1);
    let mut i2s = 0;
    pair.connect(0);
    let until = pair.now + SECOND / 2;
    while pair.step(until, &mut |flying, fly| match packet(&flying.bytes).kind() {
        PacketKind::R2 => i2s += 1,
        _ => fly.push(flying),
    }) {}
    assert_eq!((i2s, pair.sides[0].state()), (1, State::I2Sent));
    let (now, peer, Side { host, rng, .. }) = (pair.now, pair.hit(0), &mut pair.sides[1]);
    host.close(now, rng, peer);
    pair.collect(1, &mut |flying, fly| fly.push(flying));
    pair.run(SECOND / 4);
    assert_eq!((pair.sides[0].state(), pair.sides[1].state()), (State::Closed, State::Unassociated));
    assert_eq!(pair.sides[0].failed.len(), 1, "{:?}", pair.sides[0].failed);
    pair.connect(0);
    pair.run(SECOND * 3);
    pair.check_paths(2);
}

/// RFC 7401 §4.1.8: a peer that does not know our HIT finds it out; nobody else does.
#[test]
fn an_opportunistic_i1_of_a_peer_is_answered() {
    let mut hand = Hand::new(|_, _| {});
    let said = hand.give(hand.route, &hand.i1(Hit::NULL));
    assert_eq!(packet(&said[0].1).kind(), PacketKind::R1);
    assert_eq!((packet(&said[0].1).sender(), packet(&said[0].1).receiver()), (hand.hit(), hand.identity.hit()));
    let mut other = hand.i1(Hit::NULL);
    other[8 + 15] ^= 1;
    assert_eq!(hand.give(hand.route, &other), []);
    let to_another = hand.i1(Hit([7; 16]));
    assert_eq!(hand.give(hand.route, &to_another), []);
}

/// The other half: who is asked answers, and what proves nothing is no answer.
#[test]
fn an_inquiry_finds_who_is_there() {
    let mut pair = Pair::usual(3);
    let places = vec![locator("10.1.0.2"), locator("10.2.0.2")];
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[0]);
    host.inquire(now, rng, places.clone());
    let mut sent = 0;
    let mut network = |mut flying: common::Flying, fly: &mut Vec<common::Flying>| {
        if flying.to == 1 {
            sent += 1;
        } else if sent == 1 {
            // The first answer has another signature.
            let end = flying.bytes.len() - 20;
            flying.bytes[end] ^= 1;
        }
        fly.push(flying);
    };
    pair.collect(0, &mut network);
    let until = pair.now + SECOND / 2;
    while pair.step(until, &mut network) {}
    assert_eq!(pair.sides[0].discovered, []);
    let until = pair.now + SECOND * 300;
    while pair.step(until, &mut network) {}
    assert!(pair.sides[0].discovered.iter().all(|hit| *hit == pair.hit(1)) && !pair.sides[0].discovered.is_empty());
    // After 0, 1, 3, 7, 15, 31 and 63 s, and then every 60 s.
    assert_eq!(sent, 7 + 3);
    assert!(pair.sides.iter().all(|side| side.paths.is_empty()), "nothing begins by itself");
    pair.sides[0].host.stop_inquiry(&places);
    assert_eq!(pair.sides[0].host.poll_timeout(), None);
}

/// RFC 7401 §6.8 asks nowhere that an R1 comes from where the I1 went. Where nobody else answers it is taken; from where the I1
/// went there is no waiting, so that who is elsewhere wins nothing by being first.
#[test]
fn an_r1_from_elsewhere_is_taken_where_no_other_comes() {
    for (both, expected) in [(false, locator("10.1.0.3")), (true, locator("10.1.0.2"))] {
        let mut pair = Pair::usual(4);
        let peer = pair.hit(1);
        let places = vec![locator("10.1.0.2")];
        let known = Peer::new(peer, places);
        let now = pair.now;
        pair.sides[0].host.add_peer(now, known);
        let mut i2s = Vec::new();
        pair.connect(0);
        let until = pair.now + SECOND * 3;
        let mut answered = 0;
        while pair.step(until, &mut |flying, fly| match packet(&flying.bytes).kind() {
            PacketKind::R1 if answered == 0 => {
                answered += 1;
                let elsewhere = Route { remote: locator("10.1.0.3"), ..flying.route };
                let copy = common::Flying { route: elsewhere, bytes: flying.bytes.clone(), at: flying.at, to: 0 };
                fly.push(copy);
                fly.extend(both.then_some(flying));
            }
            PacketKind::R1 => {}
            PacketKind::I2 => i2s.push(flying.route.local),
            _ => fly.push(flying),
        }) {}
        assert_eq!(i2s.first(), Some(&expected));
    }
}

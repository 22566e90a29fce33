//! What hosts other than Sinnet rely on: packets that have what the RFCs have in them and nothing else, and paths that move with
//! the security associations that they have. Two Sinnets are such hosts to each other where they give no feedback.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::common::{Flying, Pair, Side, addresses, config, generated, identities};
use clock::Duration;
use hip::dh::Group;
use hip::identity::Algorithm;
use hip::{HostConfig, PathId, Route, State};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wire::Hit;
use wire::hip::{Builder, Locator, Packet, PacketKind, Parameter, Puzzle, Signature, kind, set_puzzle, set_receiver};

const SECOND: Duration = Duration::from_secs(1);

fn locator(text: &str) -> SocketAddr {
    addresses(&[text], 10500)[0]
}

fn pair(ours: &[&str], theirs: &[&str], feedback: bool) -> Pair {
    let configs = [ours, theirs].map(|list| {
        let mut config = config(&addresses(list, 10500));
        config.feedback = feedback;
        config
    });
    Pair::new(identities(), configs, 1)
}

fn plain() -> Pair {
    pair(&["10.1.0.1"], &["10.1.0.2"], false)
}

fn kind_of(bytes: &[u8]) -> PacketKind {
    Packet::parse(bytes).unwrap().kind()
}

/// The numbers of a packet's parameters.
fn parameters(bytes: &[u8]) -> Vec<u16> {
    Packet::parse(bytes).unwrap().parameters().map(Parameter::kind).collect()
}

/// RFC 7401 §5.3.1. What a Sinnet adds comes only where that has not been answered, or to another Sinnet.
#[test]
fn the_first_i1_has_nothing_but_groups() {
    let mut pair = pair(&["10.1.0.1"], &["10.1.0.2"], true);
    let mut i1s = Vec::new();
    pair.exchange(&mut |flying, fly| {
        let is_i1 = kind_of(&flying.bytes) == PacketKind::I1;
        i1s.extend(is_i1.then(|| parameters(&flying.bytes)));
        // The first is lost.
        if !is_i1 || i1s.len() > 1 {
            fly.push(flying);
        }
    });
    assert_eq!(i1s[0], [kind::DH_GROUP_LIST]);
    assert_eq!((i1s.len(), i1s[1].len()), (2, 2));
    pair.check_paths(1);
    let peer = pair.hit(1);
    pair.sides[0].host.abandon(peer, "silence");
    i1s.clear();
    pair.exchange(&mut |flying, fly| {
        i1s.extend((kind_of(&flying.bytes) == PacketKind::I1).then(|| parameters(&flying.bytes)));
        fly.push(flying);
    });
    assert_eq!((i1s.len(), i1s[0].len()), (1, 2), "a Sinnet that is known is asked as one");
}

/// RFC 7401 §4.4.3, table 4: I2-SENT does not end because a fresh R1 is asked for.
#[test]
fn an_r2_that_comes_late_counts() {
    let mut pair = plain();
    let (mut late, mut asked) = (None, 0);
    let until = pair.now + SECOND * 5;
    pair.connect(0);
    while pair.step(until, &mut |flying, fly| match kind_of(&flying.bytes) {
        PacketKind::R2 => late = late.take().or(Some(flying)),
        // The Responder says nothing any more.
        PacketKind::I1 => asked += 1,
        _ if late.is_some() => {}
        _ => fly.push(flying),
    }) {}
    assert!(asked > 0, "a fresh R1 has been asked for");
    let Flying { route, bytes, .. } = late.unwrap();
    let Side { host, rng, .. } = &mut pair.sides[0];
    host.handle_packet(pair.now, rng, route, &bytes);
    pair.collect(0, &mut |_, _| {});
    pair.check_paths(1);
}

/// RFC 7401 §5.2.2: what is critical and may not be known is not for everybody. A Sinnet is told in the R2.
#[test]
fn other_locators_are_told_to_who_knows_of_locators() {
    for feedback in [false, true] {
        let mut pair = pair(&["10.1.0.1"], &["10.1.0.2", "10.2.0.2"], feedback);
        let mut told = Vec::new();
        pair.exchange(&mut |flying, fly| {
            let has = parameters(&flying.bytes).contains(&kind::LOCATOR_SET);
            told.extend(has.then(|| kind_of(&flying.bytes)));
            fly.push(flying);
        });
        assert!(!told.contains(&PacketKind::R1));
        assert_eq!(told.contains(&PacketKind::R2), feedback);
        assert_eq!(pair.sides[0].state(), State::Established);
    }
}

/// An R1 of the second host's in which a parameter is others.
fn with(pair: &Pair, r1: &[u8], number: u16, others: impl Fn(&Parameter) -> Vec<Parameter>) -> Vec<u8> {
    let [_, identity] = identities();
    let packet = Packet::parse(r1).unwrap();
    let puzzle = packet.puzzle().unwrap();
    let mut builder = Builder::new(PacketKind::R1, identity.hit(), Hit::NULL);
    for parameter in packet.parameters() {
        let parameter = match parameter {
            Parameter::HipSignature2(_) => break,
            Parameter::Puzzle(own) => Parameter::Puzzle(Puzzle { opaque: 0, i: vec![0; own.i.len()], ..own.clone() }),
            other => other.clone(),
        };
        let all = if parameter.kind() == number { others(&parameter) } else { vec![parameter] };
        builder = all.iter().fold(builder, Builder::push);
    }
    let bytes = identity.sign(&mut ChaCha20Rng::seed_from_u64(1), &builder.covered());
    let algorithm = identity.public().signature_algorithm();
    let mut changed = builder.push(&Parameter::HipSignature2(Signature { algorithm, bytes })).finish().unwrap();
    set_receiver(&mut changed, pair.hit(0));
    set_puzzle(&mut changed, puzzle.opaque, &puzzle.i);
    changed
}

/// RFC 7401 §5.2.10, §6.8 step 6: an R1 says which kinds of identities its host takes, and an Initiator of another goes away.
#[test]
fn an_r1_has_all_kinds_of_identities_and_is_asked_for_ours() {
    for algorithm in [Algorithm::EcdsaP384, Algorithm::Rsa] {
        let configs = ["10.1.0.1", "10.1.0.2"].map(|text| config(&addresses(&[text], 10500)));
        let mut pair = Pair::new([generated(algorithm, 1), generated(Algorithm::Rsa, 2)], configs, 1);
        let mut suites = Vec::new();
        pair.exchange(&mut |flying, fly| {
            suites.extend(Packet::parse(&flying.bytes).unwrap().hit_suite_list().cloned());
            fly.push(flying);
        });
        assert_eq!(suites, [[0x10, 0x20]], "its own first");
        pair.check_paths(1);
    }
    let mut pair = plain();
    let mut r1 = None;
    pair.exchange(&mut |flying, fly| match kind_of(&flying.bytes) {
        PacketKind::R1 => r1 = Some((flying.route, flying.bytes)),
        _ => fly.push(flying),
    });
    let (route, bytes) = r1.unwrap();
    let bytes = with(&pair, &bytes, kind::HIT_SUITE_LIST, |_| vec![Parameter::HitSuiteList(vec![0x30])]);
    let Side { host, rng, .. } = &mut pair.sides[0];
    host.handle_packet(pair.now, rng, route, &bytes);
    pair.collect(0, &mut |_, _| {});
    assert!(pair.sides[0].failed[0].contains("takes no identities"), "{:?}", pair.sides[0].failed);
}

/// RFC 8047 §4.2.8. The Responder's puzzle is for all its locators; Sinnet's is not, so the I2 is given to it as if it had come
/// to where it is.
#[test]
fn the_i2_goes_to_the_locator_that_an_r1_prefers() {
    let there = locator("10.1.0.3");
    for (preferred, traffic, reaches, expected) in
        [(true, 0, true, true), (true, 0, false, false), (true, 2, true, false), (false, 0, true, false)]
    {
        let mut pair = plain();
        let mut i2s = Vec::new();
        let address = |place: SocketAddr| match place.ip() {
            std::net::IpAddr::V4(address) => address.to_ipv6_mapped(),
            std::net::IpAddr::V6(address) => address,
        };
        let one = |address, preferred, traffic| Locator { traffic, preferred, lifetime: 60, spi: None, address };
        let set = vec![one(address(there), preferred, traffic), one(address(locator("10.1.0.2")), false, 0)];
        pair.connect(0);
        let until = pair.now + SECOND * 5;
        loop {
            let mut r1 = None;
            let more = pair.step(until, &mut |mut flying, fly| match kind_of(&flying.bytes) {
                PacketKind::R1 => r1 = Some(flying),
                PacketKind::I2 => {
                    i2s.push(flying.route.local);
                    let goes_there = flying.route.local == there;
                    flying.route.local = locator("10.1.0.2");
                    fly.extend((!goes_there || reaches).then_some(flying));
                }
                PacketKind::R2 if reaches && i2s.last() == Some(&there) => {
                    flying.route.remote = there;
                    fly.push(flying);
                }
                _ => fly.push(flying),
            });
            if let Some(mut flying) = r1 {
                let set = Parameter::LocatorSet(set.clone());
                flying.bytes = with(&pair, &flying.bytes, kind::PUZZLE, |puzzle| vec![set.clone(), puzzle.clone()]);
                pair.flying.push(flying);
            }
            if !more || !pair.sides[0].paths.is_empty() {
                break;
            }
        }
        assert_eq!(i2s[0] == there, preferred && traffic == 0);
        assert_eq!(pair.sides[0].state(), State::Established);
        let (route, ..) = pair.sides[0].paths[&PathId(0)];
        assert_eq!(route.remote, if expected { there } else { locator("10.1.0.2") });
    }
}

fn spis(pair: &Pair) -> Vec<BTreeSet<(wire::Spi, wire::Spi)>> {
    let all = |side: &Side| side.paths.values().map(|(_, out, inbound)| (out.spi(), inbound.spi())).collect();
    pair.sides.iter().map(all).collect()
}

/// RFC 8046 §3.2.1: the host that moves says so with ESP_INFO in which no SPI changes, and the other asks it back.
#[test]
fn a_path_moves_with_its_security_associations() {
    for side in 0..2 {
        for add_first in [false, true] {
            let mut pair = plain();
            pair.connect(0);
            pair.run(SECOND * 2);
            let before = spis(&pair);
            let (old, new) = (["10.1.0.1", "10.1.0.2"][side], ["10.9.0.1", "10.9.0.2"][side]);
            let mut shapes = Vec::new();
            let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
                shapes.push((flying.to, parameters(&flying.bytes)));
                if flying.route.local != locator(old) {
                    fly.push(flying);
                }
            };
            for step in 0..2 {
                let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[side]);
                match add_first == (step == 0) {
                    true => host.add_locator(now, rng, locator(new), false),
                    false => host.remove_locator(now, rng, locator(old).ip()),
                }
                // An Initiator that is told of both addresses opens a path at the second instead.
                if !add_first {
                    pair.collect(side, &mut network);
                    let until = pair.now + SECOND;
                    while pair.step(until, &mut network) {}
                }
            }
            pair.collect(side, &mut network);
            let until = pair.now + SECOND * 10;
            while pair.step(until, &mut network) {}
            pair.check_paths(1);
            assert!(pair.sides.iter().all(|side| side.established == 1 && side.closed.is_empty()));
            let (route, ..) = pair.sides[side].paths.values().next().unwrap();
            assert_eq!(route.local, locator(new));
            if add_first {
                continue;
            }
            assert_eq!(spis(&pair), before, "side {side}");
            use kind::{ACK, ECHO_REQUEST_SIGNED, ECHO_RESPONSE_SIGNED, ESP_INFO, LOCATOR_SET, SEQ};
            use kind::{HIP_MAC, HIP_SIGNATURE};
            // The last three, as in RFC 8046 figure 3.
            let last: Vec<_> = shapes.iter().rev().take(3).rev().cloned().collect();
            let expected = [
                (1 - side, vec![ESP_INFO, LOCATOR_SET, SEQ, HIP_MAC, HIP_SIGNATURE]),
                (side, vec![ESP_INFO, SEQ, ACK, ECHO_REQUEST_SIGNED, HIP_MAC, HIP_SIGNATURE]),
                (1 - side, vec![ACK, ECHO_RESPONSE_SIGNED, HIP_MAC, HIP_SIGNATURE]),
            ];
            assert_eq!(last, expected, "side {side}");
        }
    }
}

/// RFC 8046 §5.4, §5.6: until its owner has answered, an address gets no data, and no more than three times what was said of it.
#[test]
fn a_path_does_not_move_to_where_nobody_answers() {
    let mut pair = plain();
    pair.connect(0);
    pair.run(SECOND * 2);
    let victim = locator("10.9.0.1");
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[0]);
    host.remove_locator(now, rng, locator("10.1.0.1").ip());
    host.add_locator(now, rng, victim, false);
    let (mut said, mut got, mut seen) = (0, 0, BTreeSet::new());
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
        if flying.to == 0 {
            got += flying.bytes.len();
        } else {
            said += flying.bytes.len();
            // The first time only, and nobody is where it seems to come from.
            if seen.insert(Packet::parse(&flying.bytes).unwrap().seq().copied()) {
                fly.push(flying);
            }
        }
    };
    pair.collect(0, &mut network);
    let until = pair.now + SECOND * 60;
    while pair.step(until, &mut network) {}
    assert!(got > 0 && got <= 3 * said, "{got} for {said}");
    let routes: Vec<Route> = pair.sides[1].paths.values().map(|(route, ..)| *route).collect();
    assert!(routes.iter().all(|route| route.remote != victim), "{routes:?}");
}

/// A path that waits for a locator of this host is none.
#[test]
fn a_peer_that_is_gone_is_forgotten_all_the_same() {
    let mut pair = plain();
    pair.connect(0);
    pair.run(SECOND * 2);
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[1]);
    host.remove_locator(now, rng, locator("10.1.0.2").ip());
    pair.collect(1, &mut |_, _| {});
    let until = pair.now + SECOND * 200;
    while pair.step(until, &mut |_, _| {}) {}
    assert_eq!(pair.sides[1].closed.len(), 1, "without a locator the path does not wait for ever");
}

/// RFC 7401 §5.2.7: a host may have no other group than 3.
#[test]
fn every_group_of_rfc_7401_that_is_known_is_enough() {
    for group in Group::ALL {
        let configs = ["10.1.0.1", "10.1.0.2"].map(|text| HostConfig::new(vec![locator(text)]));
        let [mut a, b] = configs;
        a.groups = vec![group];
        let mut pair = Pair::new(identities(), [a, b], 1);
        pair.connect(0);
        pair.run(SECOND * 2);
        pair.check_paths(1);
    }
}

/// RFC 7401 §5.3.2: a value that an Initiator has used is not offered to the next.
#[test]
fn a_diffie_hellman_value_that_was_used_is_not_offered_again() {
    let mut pair = plain();
    let mut values = Vec::new();
    for _ in 0..4 {
        pair.connect(0);
        let until = pair.now + SECOND * 2;
        while pair.step(until, &mut |flying, fly| {
            let packet = Packet::parse(&flying.bytes).unwrap();
            if packet.kind() == PacketKind::R1 {
                values.push(packet.diffie_hellman().unwrap().public.clone());
            }
            fly.push(flying);
        }) {}
        pair.check_paths(1);
        let peer = pair.hit(1);
        pair.sides[0].host.abandon(peer, "again");
    }
    let different: BTreeSet<_> = values.iter().collect();
    assert_eq!((values.len(), different.len()), (4, 4));
}

/// RFC 7401 §4.4.3, table 7. A host that goes waits a second.
#[test]
fn a_close_that_is_lost_is_sent_again_and_nobody_is_let_in_any_more() {
    let mut pair = plain();
    pair.connect(0);
    pair.run(SECOND * 2);
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[1]);
    host.leave(now, rng);
    assert!(host.is_closing());
    let mut closes = 0;
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| match kind_of(&flying.bytes) {
        PacketKind::Close => {
            closes += 1;
            fly.extend((closes > 2).then_some(flying));
        }
        _ => fly.push(flying),
    };
    pair.collect(1, &mut network);
    let until = pair.now + SECOND;
    while pair.step(until, &mut network) {}
    assert_eq!(closes, 3);
    assert!(!pair.sides[1].host.is_closing());
    assert_eq!(pair.sides[0].closed, ["closed by the peer"]);
    pair.connect(0);
    pair.run(SECOND * 3);
    assert_eq!(pair.sides[1].established, 1);
}

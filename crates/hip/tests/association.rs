//! Associations between two hosts: the state machine of RFC 7401 §4.4 and the paths of RFC 8046 and RFC 8047, under
//! everything that a network does to packets.

use crate::common::{Flying, Pair, Side, addresses, config, generated, identities};
use clock::{Duration, Instant, Rng};
use hip::identity::Algorithm;
use hip::{PathId, Peer, State};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_base_exchange_and_a_path_for_each_further_locator() {
    let mut pair = Pair::usual(1);
    pair.connect(0);
    pair.run(SECOND * 2);
    assert_eq!([pair.sides[0].state(), pair.sides[1].state()], [State::Established; 2]);
    pair.check_paths(2);
    let routes: Vec<_> = pair.sides[0].paths.values().map(|(route, ..)| route.to_string()).collect();
    assert_eq!(routes, ["10.1.0.1 → 10.1.0.2", "10.2.0.1 → 10.2.0.2"]);
}

#[test]
fn as_many_paths_as_the_host_with_more_locators_has() {
    for (ours, theirs, paths) in [(1, 1, 1), (1, 3, 3), (3, 1, 3), (2, 3, 3), (3, 3, 3)] {
        let all = ["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.1.0.2", "10.2.0.2", "10.3.0.2"];
        let (a, b) = (addresses(&all[..ours], 10500), addresses(&all[3..3 + theirs], 10500));
        let mut pair = Pair::new(identities(), [config(&a), config(&b)], 7);
        pair.connect(0);
        pair.run(SECOND * 5);
        pair.check_paths(paths);
        let mut locals: Vec<_> = pair.sides[0].paths.values().map(|(route, ..)| route.local).collect();
        locals.sort();
        locals.dedup();
        assert_eq!(locals.len(), ours, "each locator is used");
    }
}

#[test]
fn every_kind_of_identity_natively_over_ipv6_with_a_harder_puzzle() {
    for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Rsa] {
        let (a, b) = (addresses(&["2001:db8::1"], 0), addresses(&["2001:db8::2"], 0));
        let mut configs = [config(&a), config(&b)];
        configs[1].puzzle_difficulty = 8;
        configs[1].groups = vec![hip::dh::Group::P384];
        configs[0].groups = vec![hip::dh::Group::P256, hip::dh::Group::P384];
        let mut pair = Pair::new([generated(algorithm, 1), generated(algorithm, 2)], configs, 3);
        pair.connect(0);
        pair.run(SECOND);
        pair.check_paths(1);
        assert_eq!(pair.sides[0].host.counters().bad_checksum, 0);
    }
}

/// As where a neighbour's address takes a second to be found: the I2 for the first R1 and the one for the second would cross the R2.
#[test]
fn two_i1s_that_arrive_together_cost_no_more_than_one() {
    for seed in 0..10 {
        let mut pair = Pair::usual(seed);
        let held = Instant::ZERO + Duration::from_millis(1_100);
        let mut i1s = 0;
        let mut network = |mut flying: Flying, fly: &mut Vec<Flying>| {
            let kind = wire::hip::Packet::parse(&flying.bytes).map(|packet| packet.kind());
            if kind == Ok(wire::hip::PacketKind::I1) {
                i1s += 1;
                flying.at = flying.at.max(held);
            }
            fly.push(flying);
        };
        let peer = pair.hit(1);
        let Side { host, rng, .. } = &mut pair.sides[0];
        host.connect(pair.now, rng, peer).unwrap();
        pair.collect(0, &mut network);
        // Two round trips of 40 ms, and time for the puzzle.
        while pair.step(held + Duration::from_millis(300), &mut network) {}
        assert_eq!(pair.sides.each_ref().map(|side| side.established), [1, 1], "seed {seed}");
        assert_eq!(i1s, 2);
    }
}

#[test]
fn two_i1s_that_cross_make_one_association() {
    for seed in 0..20 {
        let mut pair = Pair::usual(seed);
        pair.connect(0);
        pair.connect(1);
        pair.run(SECOND * 5);
        assert_eq!([pair.sides[0].state(), pair.sides[1].state()], [State::Established; 2]);
        pair.check_paths(2);
    }
}

/// A host that looks for its peer at the wrong place, as for one behind a NAT, still lets the peer in.
#[test]
fn an_i1_that_goes_nowhere_does_not_cross_the_peers() {
    for seeker in [0, 1] {
        let mut pair = Pair::usual(9);
        let (peer, nowhere) = (pair.hit(1 - seeker), addresses(&["10.9.0.9"], 10500));
        pair.sides[seeker].host.add_peer(pair.now, Peer::new(peer, nowhere.clone()));
        let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
            if flying.route.local != nowhere[0] {
                fly.push(flying);
            }
        };
        for side in [seeker, 1 - seeker] {
            let to = pair.hit(1 - side);
            let Side { host, rng, .. } = &mut pair.sides[side];
            host.connect(pair.now, rng, to).unwrap();
            pair.collect(side, &mut network);
        }
        while pair.step(Instant::ZERO + SECOND * 2, &mut network) {}
        assert_eq!([pair.sides[0].state(), pair.sides[1].state()], [State::Established; 2], "{seeker}");
    }
}

/// The puzzle that an I2 solves is known to nobody any more.
#[test]
fn a_responder_killed_before_the_i2_is_asked_for_another_puzzle() {
    let mut pair = Pair::usual(11);
    let hit = pair.hit(0);
    pair.connect(0);
    let until = Instant::ZERO + SECOND;
    // The R1 is on its way.
    while !pair.flying.iter().any(|flying| flying.to == 0) && pair.step(until, &mut |flying, fly| fly.push(flying)) {}
    let [_, identity] = identities();
    let mut again = config(&addresses(&["10.1.0.2", "10.2.0.2"], 10500));
    again.first_generation = 100;
    pair.sides[1] = Side::new(identity, again, 77);
    let locators = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
    pair.sides[1].host.add_peer(pair.now, Peer::new(hit, locators));
    pair.run(SECOND * 4);
    pair.check_paths(2);
}

/// The longest pause between two tries is four seconds.
#[test]
fn a_base_exchange_ends_also_where_a_round_trip_takes_nearly_four_seconds() {
    let mut pair = Pair::usual(12);
    let mut far = |mut flying: Flying, fly: &mut Vec<Flying>| {
        flying.at += Duration::from_millis(1900);
        fly.push(flying);
    };
    pair.exchange(&mut far);
    while pair.step(Instant::ZERO + SECOND * 75, &mut far) {}
    assert_eq!([pair.sides[0].established, pair.sides[1].established.min(1)], [1, 1], "{:?}", pair.sides[0].failed);
}

/// A later UPDATE of the peer overtakes its answer, and our echo is lost: the peer asks for it again.
#[test]
fn an_echo_is_given_again_also_to_an_answer_that_was_overtaken() {
    let a = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
    let b = addresses(&["10.1.0.2", "10.2.0.2"], 10500);
    let mut configs = [config(&a), config(&b)];
    configs[1].backups = vec![b[0].ip()];
    let mut pair = Pair::new(identities(), configs, 13);
    let mut lost = 0;
    pair.exchange(&mut |mut flying, fly| {
        let slow = flying.route.local == a[1] || flying.route.remote == a[1];
        flying.at += Duration::from_millis(if slow { 50 } else { 0 });
        let packet = wire::hip::Packet::parse(&flying.bytes).unwrap();
        if slow && flying.to == 1 && packet.ack().is_some() && lost == 0 {
            lost += 1;
        } else {
            fly.push(flying);
        }
    });
    assert_eq!(lost, 1);
    pair.run(SECOND);
    assert_eq!(pair.sides[1].verified.len(), 2);
}

#[test]
fn close_ends_it_on_both_sides_and_it_can_begin_anew() {
    let mut pair = Pair::usual(4);
    pair.connect(0);
    pair.run(SECOND * 2);
    let peer = pair.hit(1);
    let side = &mut pair.sides[0];
    side.host.close(pair.now, &mut side.rng, peer);
    pair.collect(0, &mut |flying, fly| fly.push(flying));
    pair.run(SECOND);
    assert_eq!([pair.sides[0].state(), pair.sides[1].state()], [State::Unassociated, State::Closed]);
    assert_eq!(pair.sides[1].closed, ["closed by the peer"]);
    pair.connect(1);
    pair.run(SECOND * 2);
    pair.check_paths(2);
}

#[test]
fn a_host_that_forgot_everything_begins_anew() {
    let mut pair = Pair::usual(5);
    pair.connect(0);
    pair.run(SECOND * 2);
    let peer = pair.hit(1);
    pair.sides[0].host.abandon(peer, "restarted");
    pair.connect(0);
    pair.run(SECOND * 2);
    assert_eq!(pair.sides[1].closed, ["the peer has begun anew"]);
    pair.check_paths(2);
}

#[test]
fn renewed_paths_have_new_keys_and_leave_nothing_behind() {
    let mut pair = Pair::usual(6);
    pair.connect(0);
    pair.run(SECOND * 2);
    for (side, path) in [(0, PathId(0)), (1, PathId(1))] {
        let old: Vec<_> = pair.sides[side].paths.values().map(|(_, out, _)| out.spi()).collect();
        let peer = pair.hit(1 - side);
        let now = pair.now;
        let it = &mut pair.sides[side];
        it.host.renew_path(now, &mut it.rng, peer, path);
        pair.collect(side, &mut |flying, fly| fly.push(flying));
        pair.run(SECOND);
        pair.check_paths(2);
        let new: Vec<_> = pair.sides[side].paths.values().map(|(_, out, _)| out.spi()).collect();
        assert_eq!(new.iter().filter(|spi| old.contains(spi)).count(), 1, "one of two is new");
    }
}

#[test]
fn the_next_pair_of_locators_is_tried_where_one_does_not_work() {
    let mut pair = Pair::usual(8);
    pair.connect(0);
    let until = pair.now + SECOND * 60;
    // 10.2.0.1 reaches 10.1.0.2 only.
    let works = |route: &hip::Route| {
        let ends = [route.local.ip().to_string(), route.remote.ip().to_string()];
        !ends.contains(&"10.2.0.2".to_string())
    };
    while pair.step(until, &mut |flying, fly| {
        if works(&flying.route) {
            fly.push(flying);
        }
    }) {}
    pair.check_paths(2);
}

/// Every control packet is lost with 30 %, sent twice with 30 %, and late with 30 %, in both directions.
#[test]
fn associations_survive_loss_duplication_and_reordering_of_every_packet() {
    let runs = std::env::var("RUNS").map_or(1_000, |runs| runs.parse().unwrap());
    let first = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + runs {
        let mut pair = Pair::usual(seed);
        let mut chance = Rng::from_seed(seed);
        let mut network = |mut flying: Flying, fly: &mut Vec<Flying>| {
            let copies = 1 + usize::from(chance.chance(0.3));
            for _ in 0..copies {
                let late = if chance.chance(0.3) { chance.below(3_000) } else { chance.below(20) };
                let at = flying.at + Duration::from_millis(late);
                if !chance.chance(0.3) {
                    fly.push(Flying { at, to: flying.to, route: flying.route, bytes: flying.bytes.clone() });
                }
            }
            flying.bytes.clear();
        };
        let both = seed % 4 == 0;
        pair.connect(0);
        if both {
            pair.connect(1);
        }
        // Until both have both paths: the time that this takes is not bounded by anything but luck.
        let until = pair.now + SECOND * 600;
        while pair.sides.iter().any(|side| side.verified.len() < 2) && pair.step(until, &mut network) {}
        let told = format!(
            "SEED={seed} RUNS=1 at {}: {:?}, failed {:?}",
            pair.now,
            pair.sides.each_ref().map(|side| (side.state(), side.paths.len(), side.verified.len())),
            pair.sides.each_ref().map(|side| side.failed.clone()),
        );
        assert!(pair.sides.iter().all(|side| side.verified.len() == 2), "{told}");
        assert_eq!([pair.sides[0].state(), pair.sides[1].state()], [State::Established; 2], "{told}");
        // What is still in flight arrives, and changes nothing any more.
        pair.run(SECOND * 30);
        pair.check_paths(2);
    }
}

//! Associations over time: keys are renewed, never run out and are never used twice; what crosses ends; and every state
//! has an end. The oracle is that a packet sealed by one host is opened by the other, and bounds on how long things take.

#![allow(clippy::needless_range_loop, clippy::semicolon_if_nothing_returned, reason = "sides are numbers")]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::common::{Flying, Pair, Side, addresses, config, identities};
use clock::{Duration, Instant, Rng};
use hip::esp::EspSuite;
use hip::{HostConfig, PathId, Route, State};
use wire::Spi;
use wire::hip::{Packet, PacketKind};

const SECOND: Duration = Duration::from_secs(1);
/// A packet there and one back.
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Two hosts with so many locators each. `sinnet`: both know that the other is one.
fn pair(seed: u64, locators: usize, sinnet: bool, change: impl Fn(&mut HostConfig)) -> Pair {
    let mut pair = strangers(seed, locators, sinnet, change);
    pair.connect(0);
    pair.run(SECOND * 5);
    pair
}

/// The same before they have met.
fn strangers(seed: u64, locators: usize, sinnet: bool, change: impl Fn(&mut HostConfig)) -> Pair {
    let lists = [["10.1.0.1", "10.2.0.1"], ["10.1.0.2", "10.2.0.2"]].map(|list| addresses(&list[..locators], 10500));
    let configs = lists.map(|list| {
        let mut config = config(&list);
        config.feedback = sinnet;
        change(&mut config);
        config
    });
    Pair::new(identities(), configs, seed)
}

fn host(
    pair: &mut Pair,
    side: usize,
    network: &mut dyn FnMut(Flying, &mut Vec<Flying>),
    act: impl FnOnce(Instant, &mut Side),
) {
    act(pair.now, &mut pair.sides[side]);
    pair.collect(side, network);
}

fn renew(pair: &mut Pair, side: usize, path: PathId) {
    let peer = pair.hit(1 - side);
    host(pair, side, &mut |flying, fly| fly.push(flying), |now, side| {
        side.host.renew_path(now, &mut side.rng, peer, path);
    });
}

fn spis(pair: &Pair, side: usize) -> BTreeSet<Spi> {
    pair.sides[side].paths.values().map(|(_, outbound, _)| outbound.spi()).collect()
}

fn except(dead: IpAddr) -> impl FnMut(Flying, &mut Vec<Flying>) {
    move |flying, fly| {
        if flying.route.local.ip() != dead && flying.route.remote.ip() != dead {
            fly.push(flying);
        }
    }
}

/// Every state that is no final one has an end.
#[track_caller]
fn check_deadlines(pair: &Pair) {
    for side in &pair.sides {
        let last = matches!(side.state(), State::Unassociated | State::Failed);
        assert!(last || side.host.poll_timeout().is_some(), "{} without a deadline", side.state());
    }
}

/// The audit's V7 and V9: a locator that does not work for days.
#[test]
fn a_dead_locator_uses_no_keys_up() {
    let dead: IpAddr = "10.2.0.2".parse().unwrap();
    for (sinnet, suite) in [true, false]
        .into_iter()
        .flat_map(|sinnet| [EspSuite::Aes128Gcm16, EspSuite::Aes256CbcHmacSha256].map(|suite| (sinnet, suite)))
    {
        let mut pair = strangers(7, 2, sinnet, |config| config.esp_suites = vec![suite]);
        pair.connect(0);
        for hours in [1, 6, 24] {
            // Not while the keys are renewed of themselves.
            let end = Instant::ZERO + SECOND * 3_600 * hours + SECOND * 300;
            while pair.step(end, &mut except(dead)) {}
            check_deadlines(&pair);
            // Either side's renewal ends. Where it is refused for an opening that is under way, which is given up after 11 s,
            // it is asked for again after eight, and once more.
            for side in 0..2 {
                let Some(&id) = pair.sides[side].paths.keys().next() else { panic!("no path after {hours} h") };
                let before = spis(&pair, side);
                renew(&mut pair, side, id);
                let until = pair.now + SECOND * 20;
                while pair.step(until, &mut except(dead)) {}
                assert_ne!(spis(&pair, side), before, "side {side} after {hours} h, Sinnet: {sinnet}");
                let until = pair.now + SECOND * 20;
                while pair.step(until, &mut except(dead)) {}
            }
        }
        // Then the Initiator moves.
        host(&mut pair, 0, &mut except(dead), |now, side| {
            side.host.add_locator(now, &mut side.rng, addresses(&["10.9.0.1"], 10500)[0], false);
            side.host.remove_locator(now, &mut side.rng, "10.1.0.1".parse().unwrap());
            side.host.remove_locator(now, &mut side.rng, "10.2.0.1".parse().unwrap());
        });
        let until = pair.now + SECOND * 20;
        while pair.step(until, &mut except(dead)) {}
        assert!(!pair.sides[0].verified.is_empty() && !pair.sides[1].verified.is_empty(), "Sinnet: {sinnet}");
    }
}

/// The audit's V7b: a link that flaps.
#[test]
fn a_link_that_flaps_becomes_a_path_each_time() {
    let second = addresses(&["10.2.0.1"], 10500)[0];
    for (sinnet, flaps) in [(true, 200), (false, 60)] {
        let mut pair = pair(8, 2, sinnet, |config| config.keymat_limit = 800);
        for flap in 1..=flaps {
            let mut calm = |flying, fly: &mut Vec<Flying>| fly.push(flying);
            host(&mut pair, 0, &mut calm, |now, side| side.host.remove_locator(now, &mut side.rng, second.ip()));
            pair.run(SECOND * 5);
            host(&mut pair, 0, &mut calm, |now, side| side.host.add_locator(now, &mut side.rng, second, false));
            pair.run(SECOND * 10);
            let there = |(route, ..): &(hip::Route, _, _)| route.local == second;
            assert!(pair.sides[0].paths.values().any(there), "Sinnet: {sinnet}, flap {flap}");
        }
        pair.run(SECOND * 10);
        pair.check_paths(2);
    }
}

/// The audit's V8: both renew the same path within a one-way delay (20 ms), and around it.
#[test]
fn renewals_that_cross_end_in_three_round_trips() {
    for sinnet in [true, false] {
        for offset in [0, 1, 10, 19, 20, 21, 30, 39, 41] {
            let mut pair = pair(9, 1, sinnet, |_| {});
            let before = [spis(&pair, 0), spis(&pair, 1)];
            let first = usize::from(offset % 2 == 0);
            renew(&mut pair, first, PathId(0));
            pair.run(Duration::from_millis(offset));
            let id = *pair.sides[1 - first].paths.keys().next().unwrap();
            renew(&mut pair, 1 - first, id);
            pair.run(ROUND_TRIP * 3);
            for side in 0..2 {
                let side = &pair.sides[side];
                let newest = side.verified.iter().max().unwrap();
                assert!(newest.0 > 0, "offset {offset}, Sinnet: {sinnet}");
            }
            pair.run(SECOND * 40);
            pair.check_paths(1);
            assert!((0..2).all(|side| spis(&pair, side).is_disjoint(&before[side])), "offset {offset}");
            assert_eq!(pair.sides.each_ref().map(|side| side.established), [1, 1]);
        }
    }
}

/// ESP between the two, a packet every 3 ms each way on a path that is no backup: how many could not be read.
fn traffic_while(pair: &mut Pair, time: Duration) -> (u32, u32) {
    let end = pair.now + time;
    let (mut sent, mut lost) = (0, 0);
    let mut air: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    while pair.now < end {
        let until = pair.now + Duration::from_millis(3);
        while pair.step(until, &mut |flying, fly| fly.push(flying)) {}
        for from in 0..2 {
            let Side { paths, verified, backups, rng, .. } = &mut pair.sides[from];
            let Some(id) = verified.iter().rev().find(|id| !backups.contains(id)) else { continue };
            let (_, outbound, _) = paths.get_mut(id).unwrap();
            let mut sealed = Vec::new();
            outbound.seal(17, b"on and on", rng, &mut sealed).unwrap();
            air.push((pair.now + Duration::from_millis(20), 1 - from, sealed));
            sent += 1;
        }
        let (due, stay) = std::mem::take(&mut air).into_iter().partition::<Vec<_>, _>(|(at, ..)| *at <= pair.now);
        air = stay;
        for (_, to, sealed) in due {
            let spi = Spi(u32::from_be_bytes(sealed[..4].try_into().unwrap()));
            let Side { paths, retired, .. } = &mut pair.sides[to];
            let mut all = paths.values_mut().map(|(_, _, inbound)| inbound).chain(retired);
            let here = all.find(|inbound| inbound.spi() == spi);
            lost += u32::from(here.is_none_or(|inbound| inbound.open(&sealed, &mut Vec::new()).is_err()));
        }
    }
    (sent, lost)
}

#[test]
fn keys_are_renewed_every_interval_without_a_lost_packet() {
    let mut pair = pair(10, 2, true, |config| config.rekey_interval = SECOND * 60);
    let mut seen = [spis(&pair, 0), spis(&pair, 1)];
    for minute in 1..=3 {
        let (sent, lost) = traffic_while(&mut pair, SECOND * 62);
        assert!(sent > 10_000);
        assert_eq!(lost, 0, "of {sent}");
        for side in 0..2 {
            let now = spis(&pair, side);
            assert!(now.is_disjoint(&seen[side]), "minute {minute}, side {side}");
            seen[side].extend(now);
        }
    }
    pair.run(SECOND * 5);
    pair.check_paths(2);
    assert_eq!(pair.sides.each_ref().map(|side| side.established), [1, 1], "without a base exchange");
}

#[test]
fn with_other_hosts_a_base_exchange_renews_them() {
    let mut pair = pair(11, 2, false, |config| config.rekey_interval = SECOND * 60);
    let before = [spis(&pair, 0), spis(&pair, 1)];
    let (sent, lost) = traffic_while(&mut pair, SECOND * 70);
    assert!(sent > 10_000);
    // The Responder forgets the old keys when the I2 is there: what is on its way then is lost, and what it had sent.
    assert!(lost < 60, "{lost} of {sent}");
    pair.run(SECOND * 5);
    pair.check_paths(2);
    assert!((0..2).all(|side| spis(&pair, side).is_disjoint(&before[side])));
    assert_eq!(pair.sides.each_ref().map(|side| side.established), [2, 2]);
}

#[test]
fn a_base_exchange_that_fails_leaves_the_association_as_it_was() {
    let mut pair = pair(12, 1, false, |config| config.rekey_interval = SECOND * 60);
    let before = spis(&pair, 0);
    let mut asked = 0;
    let until = pair.now + SECOND * 300;
    while pair.step(until, &mut |flying, fly| match Packet::parse(&flying.bytes).unwrap().kind() {
        PacketKind::I1 => asked += 1,
        _ => fly.push(flying),
    }) {}
    assert!(asked > 20);
    assert_eq!(spis(&pair, 0), before);
    assert_eq!(pair.sides[0].state(), State::Established);
    assert!(pair.sides[0].failed.is_empty() && pair.sides[0].closed.is_empty());
    pair.check_paths(1);
    pair.run(SECOND * 300);
    assert!(pair.sides[0].established >= 2, "and it is tried again");
    pair.run(SECOND * 5);
    pair.check_paths(1);
}

#[test]
fn a_base_exchange_for_new_keys_soon_takes_a_path_that_answers() {
    let mut pair = pair(31, 2, false, |_| {});
    let paths: Vec<Route> = pair.sides[0].paths.values().map(|(route, ..)| *route).collect();
    let (peer, began) = (pair.hit(1), pair.now);
    // Nobody answers on any other route, and for two seconds on none.
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
        let back = Route { local: flying.route.remote, remote: flying.route.local };
        if flying.at >= began + SECOND * 2 && (paths.contains(&flying.route) || paths.contains(&back)) {
            fly.push(flying);
        }
    };
    host(&mut pair, 0, &mut network, |now, side| side.host.rekey(now, &mut side.rng, peer));
    while pair.step(began + SECOND * 5, &mut network) {}
    assert_eq!(pair.sides[0].established, 2, "the third I1, three seconds after the first, is answered");
}

#[test]
fn on_request_all_paths_get_new_keys() {
    for sinnet in [true, false] {
        for side in 0..2 {
            let mut pair = pair(13, 2, sinnet, |_| {});
            let before = spis(&pair, side);
            let peer = pair.hit(1 - side);
            host(&mut pair, side, &mut |flying, fly| fly.push(flying), |now, side| {
                side.host.rekey(now, &mut side.rng, peer);
            });
            pair.run(SECOND * 5);
            pair.check_paths(2);
            assert!(spis(&pair, side).is_disjoint(&before), "side {side}, Sinnet: {sinnet}");
        }
    }
}

#[test]
fn without_a_path_an_association_ends_on_both_sides() {
    for gone in [[true, false], [false, true], [true, true]] {
        for sinnet in [true, false] {
            let mut pair = pair(14, 1, sinnet, |_| {});
            for side in (0..2).filter(|side| gone[*side]) {
                let address = format!("10.1.0.{}", side + 1).parse().unwrap();
                host(&mut pair, side, &mut |_, _| {}, |now, side| {
                    side.host.remove_locator(now, &mut side.rng, address)
                });
            }
            let until = pair.now + SECOND * 600;
            while pair.step(until, &mut |_, _| {}) {}
            check_deadlines(&pair);
            for side in (0..2).filter(|side| gone[*side]) {
                assert_eq!(pair.sides[side].state(), State::Unassociated, "{gone:?}, side {side}");
            }
        }
    }
}

#[test]
fn connect_begins_anew_where_no_path_has_come_back() {
    let mut pair = pair(15, 1, true, |_| {});
    let old: SocketAddr = addresses(&["10.1.0.1"], 10500)[0];
    host(&mut pair, 0, &mut |_, _| {}, |now, side| side.host.remove_locator(now, &mut side.rng, old.ip()));
    pair.run(SECOND * 3);
    host(&mut pair, 0, &mut |_, _| {}, |now, side| side.host.add_locator(now, &mut side.rng, old, false));
    assert_eq!(pair.sides[0].state(), State::Established);
    pair.connect(0);
    pair.run(SECOND);
    pair.check_paths(1);
    assert_eq!(pair.sides[0].closed, ["no path to the peer is left"]);
}

/// Anything at any time: renewals, new keys, locators that come and go, while packets are lost, doubled and late. All the
/// while no SPI and no key is used twice (the harness checks that) and every state has an end; afterwards both agree.
#[test]
fn any_mixture_of_renewals_ends_in_agreement() {
    let runs = std::env::var("RUNS").map_or(40, |runs| runs.parse().unwrap());
    let first = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + runs {
        let mut chance = Rng::from_seed(seed);
        let sinnet = seed % 2 == 0;
        let mut pair = pair(seed, 2, sinnet, |config| {
            config.rekey_interval = SECOND * 30;
            config.keymat_limit = 600;
        });
        let second = [addresses(&["10.2.0.1"], 10500)[0], addresses(&["10.2.0.2"], 10500)[0]];
        let mut weather = Rng::from_seed(!seed);
        let mut network = move |mut flying: Flying, fly: &mut Vec<Flying>| {
            for _ in 0..1 + u32::from(weather.chance(0.2)) {
                let late = if weather.chance(0.2) { weather.below(2_000) } else { weather.below(10) };
                let at = flying.at + Duration::from_millis(late);
                if !weather.chance(0.2) {
                    fly.push(Flying { at, to: flying.to, route: flying.route, bytes: flying.bytes.clone() });
                }
            }
            flying.bytes.clear();
        };
        for _ in 0..25 {
            let at = chance.below(2) as usize;
            let peer = pair.hit(1 - at);
            let paths: Vec<PathId> = pair.sides[at].paths.keys().copied().collect();
            let what = chance.below(8);
            let both = chance.chance(0.4);
            for side in if both { vec![0, 1] } else { vec![at] } {
                let peer = if side == at { peer } else { pair.hit(at) };
                host(&mut pair, side, &mut network, |now, it| match what {
                    0..=3 => paths.iter().for_each(|path| it.host.renew_path(now, &mut it.rng, peer, *path)),
                    4 => it.host.rekey(now, &mut it.rng, peer),
                    5 => it.host.remove_locator(now, &mut it.rng, second[side].ip()),
                    6 => it.host.add_locator(now, &mut it.rng, second[side], false),
                    _ => _ = it.host.connect(now, &mut it.rng, peer),
                });
            }
            let until = pair.now + Duration::from_millis(chance.below(6_000));
            while pair.step(until, &mut network) {
                check_deadlines(&pair);
            }
        }
        for side in 0..2 {
            let mut calm = |flying, fly: &mut Vec<Flying>| fly.push(flying);
            host(&mut pair, side, &mut calm, |now, it| it.host.add_locator(now, &mut it.rng, second[side], false));
        }
        pair.run(SECOND * 200);
        pair.connect(0);
        pair.run(SECOND * 100);
        // In the middle of nothing: no renewal is under way. Pairs of locators that were needed once may stay.
        let agree = |pair: &Pair| {
            let [a, b] = pair.sides.each_ref().map(|side| (side.paths.len(), side.verified.len()));
            a == b && a.0 == a.1 && a.0 >= 2
        };
        while !agree(&pair) && pair.now < Instant::ZERO + SECOND * 1_000 {
            pair.run(SECOND);
        }
        let told = format!(
            "SEED={seed} RUNS=1 at {}: {:?}",
            pair.now,
            pair.sides.each_ref().map(|side| {
                let routes = side.paths.iter().map(|(id, (route, ..))| (*id, route.to_string()));
                (side.state(), side.verified.clone(), routes.collect::<Vec<_>>())
            })
        );
        assert!(agree(&pair), "{told}");
        let count = pair.sides[0].paths.len();
        pair.check_paths(count);
    }
}

/// All but the openings of one host.
fn without_openings_of(side: usize) -> impl FnMut(Flying, &mut Vec<Flying>) {
    move |flying, fly| {
        let packet = Packet::parse(&flying.bytes).unwrap();
        let opens = packet.esp_info().is_some() && packet.ack().is_none();
        if flying.to == side || packet.kind() != PacketKind::Update || !opens {
            fly.push(flying);
        }
    }
}

/// The host whose opening counts where two cross, and the other.
fn greater(pair: &Pair) -> (usize, usize) {
    if pair.hit(0) > pair.hit(1) { (0, 1) } else { (1, 0) }
}

/// Keys end; a path where nobody answers can wait.
#[test]
fn a_renewal_does_not_wait_for_a_path_that_does_not_answer() {
    for sinnet in [true, false] {
        let dead: IpAddr = "10.2.0.2".parse().unwrap();
        let mut pair = strangers(20, 2, sinnet, |_| {});
        pair.connect(0);
        let until = pair.now + SECOND / 2;
        while pair.step(until, &mut except(dead)) {}
        let before = spis(&pair, 0);
        renew(&mut pair, 0, PathId(0));
        // The second try would be given up two seconds after it.
        let until = pair.now + SECOND * 3;
        while pair.step(until, &mut except(dead)) {}
        assert!(spis(&pair, 0).is_disjoint(&before), "Sinnet: {sinnet}");
        pair.run(SECOND * 15);
        pair.check_paths(2);
    }
}

/// The peer's has come, so the route works in that direction; ours has been lost three times.
#[test]
fn a_renewal_that_nobody_hears_refuses_the_peers_no_longer() {
    for sinnet in [true, false] {
        let mut pair = pair(21, 1, sinnet, |_| {});
        let (deaf, other) = greater(&pair);
        let before = spis(&pair, other);
        let peer = pair.hit(other);
        host(&mut pair, deaf, &mut without_openings_of(deaf), |now, side| {
            side.host.renew_path(now, &mut side.rng, peer, PathId(0));
        });
        let (mut asked, until) = (0, pair.now + SECOND * 6);
        while pair.now < until {
            let id = *pair.sides[other].paths.keys().next().unwrap();
            if spis(&pair, other) == before {
                let peer = pair.hit(deaf);
                let opened = pair.sides[other].host.counters().packets_out;
                host(&mut pair, other, &mut |flying, fly| fly.push(flying), |now, side| {
                    side.host.renew_path(now, &mut side.rng, peer, id);
                });
                asked += pair.sides[other].host.counters().packets_out - opened;
            }
            let next = pair.now + Duration::from_millis(10);
            while pair.step(next, &mut without_openings_of(deaf)) {}
        }
        assert!(spis(&pair, other).is_disjoint(&before), "Sinnet: {sinnet}");
        assert!(asked <= 5, "who is refused asks again once a second, and not {asked} times");
        pair.run(SECOND * 40);
        pair.check_paths(1);
    }
}

/// An opening that crossed renewals began anew each time, so the route after it had no turn.
#[test]
fn an_opening_that_gives_way_again_and_again_gives_up() {
    let dead: IpAddr = "10.2.0.2".parse().unwrap();
    let mut pair = strangers(22, 2, false, |_| {});
    let (renews, opens) = greater(&pair);
    pair.connect(opens);
    let until = pair.now + SECOND / 2;
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
        // What leads from one first locator to the other second, and back, is sound.
        let ends = [flying.route.local.ip(), flying.route.remote.ip()];
        if !ends.contains(&dead) || !ends.contains(&"10.2.0.1".parse().unwrap()) {
            fly.push(flying);
        }
    };
    while pair.step(until, &mut network) {}
    for _ in 0..10 {
        let id = *pair.sides[renews].paths.keys().next_back().unwrap();
        renew(&mut pair, renews, id);
        let until = pair.now + Duration::from_millis(3_200);
        while pair.step(until, &mut network) {}
    }
    assert!(pair.sides[opens].paths.len() >= 2, "{} path", pair.sides[opens].paths.len());
}

#[test]
fn a_renewal_follows_its_path_to_where_the_peer_is() {
    let mut pair = pair(23, 1, true, |_| {});
    let (peer, moved) = (pair.hit(0), addresses(&["10.1.0.1"], 40_000)[0]);
    let mut goes = Vec::new();
    for round in 0..2 {
        let mut note = |flying: Flying, _: &mut Vec<Flying>| goes.push(flying.route.local);
        if round == 0 {
            host(&mut pair, 1, &mut note, |now, side| {
                side.host.renew_path(now, &mut side.rng, peer, PathId(0));
                let route = side.paths[&PathId(0)].0;
                side.host.path_moved(peer, PathId(0), hip::Route { remote: moved, ..route });
            });
        }
        let until = pair.now + SECOND;
        while pair.step(until, &mut note) {}
    }
    assert_eq!(goes.last(), Some(&moved), "{goes:?}");
}

/// What a peer did not acknowledge for half a minute was told every 32 s, and kept keys from being renewed for as long.
#[test]
fn news_that_nobody_acknowledged_do_not_keep_keys_from_being_renewed() {
    let mut pair = pair(25, 2, true, |_| {});
    let mut one_way = |flying: Flying, fly: &mut Vec<Flying>| {
        if flying.to == 1 {
            fly.push(flying);
        }
    };
    host(&mut pair, 0, &mut one_way, |now, side| {
        let gone = side.paths.values().next_back().unwrap().0.local.ip();
        side.host.remove_locator(now, &mut side.rng, gone);
    });
    let until = pair.now + SECOND * 40;
    while pair.step(until, &mut one_way) {}
    let mut good = |flying: Flying, fly: &mut Vec<Flying>| fly.push(flying);
    let before = spis(&pair, 0);
    let id = *pair.sides[0].paths.keys().next().unwrap();
    renew(&mut pair, 0, id);
    let until = pair.now + SECOND * 5;
    while pair.step(until, &mut good) {}
    assert_ne!(spis(&pair, 0), before);
}

/// A path was left behind that only one of the two knew, and whose renewal the other refused for ever.
#[test]
fn a_path_that_is_renewed_before_it_is_proved_leaves_none_behind() {
    let mut pair = pair(24, 1, true, |_| {});
    let mut echo_lost = |flying: Flying, fly: &mut Vec<Flying>| {
        let packet = Packet::parse(&flying.bytes).unwrap();
        if packet.esp_info().is_some() || packet.seq().is_some() {
            fly.push(flying);
        }
    };
    renew(&mut pair, 1, PathId(0));
    let until = pair.now + Duration::from_millis(500);
    while pair.step(until, &mut echo_lost) {}
    let newest = *pair.sides[0].paths.keys().next_back().unwrap();
    assert_eq!((pair.sides[0].paths.len(), pair.sides[1].paths.len()), (2, 1));
    renew(&mut pair, 0, newest);
    pair.run(SECOND * 5);
    pair.check_paths(1);
}

/// Who refuses to renew a path that it does not have says which it has.
#[test]
fn a_path_that_only_one_host_has_ends_when_it_is_to_be_renewed() {
    let mut pair = pair(25, 2, true, |_| {});
    let peer = pair.hit(0);
    host(&mut pair, 1, &mut |flying, fly| fly.push(flying), |now, side| {
        side.host.drop_path(now, peer, PathId(1));
    });
    renew(&mut pair, 0, PathId(1));
    pair.run(SECOND * 5);
    pair.check_paths(2);
}

/// The refusal is news of our locators, and an opening that nobody answers may take half a minute (seed 763 of many hosts).
#[test]
fn which_paths_there_are_is_told_before_a_vain_opening_ends() {
    let mut pair = pair(28, 2, true, |_| {});
    let [initiator, responder] = [pair.hit(0), pair.hit(1)];
    host(&mut pair, 0, &mut without_openings_of(0), |now, side| {
        side.host.drop_path(now, responder, PathId(1));
    });
    let route = pair.sides[1].paths[&PathId(1)].0;
    let opened = pair.now + SECOND * 3;
    while pair.step(opened, &mut without_openings_of(0)) {}
    host(&mut pair, 1, &mut without_openings_of(0), |now, side| {
        side.host.renew_path(now, &mut side.rng, initiator, PathId(1));
    });
    let until = pair.now + SECOND * 5;
    while pair.step(until, &mut without_openings_of(0)) {}
    assert!(pair.sides[1].paths.values().all(|(other, ..)| *other != route), "the path without a peer is still there");
}

/// Only the answers are lost: the peer has the new path, and waits for an echo.
#[test]
fn a_renewal_that_is_given_up_is_given_up_by_both() {
    let mut pair = pair(26, 1, true, |_| {});
    let mut answers_lost = |flying: Flying, fly: &mut Vec<Flying>| {
        let packet = Packet::parse(&flying.bytes).unwrap();
        if packet.esp_info().is_none() || packet.ack().is_none() {
            fly.push(flying);
        }
    };
    let peer = pair.hit(1);
    host(&mut pair, 0, &mut answers_lost, |now, side| side.host.renew_path(now, &mut side.rng, peer, PathId(0)));
    // Four tries; the locators that are announced then end the path that is left.
    let until = pair.now + SECOND * 12;
    while pair.step(until, &mut answers_lost) {}
    pair.check_paths(1);
}

/// A NAT has given the opener another port while its UPDATE was answered: the answer went to the old one.
#[test]
fn a_renewal_whose_answer_went_to_an_old_mapping_is_asked_for_anew() {
    for sinnet in [true, false] {
        let mut pair = pair(27, 1, sinnet, |_| {});
        let before = spis(&pair, 0);
        let (old, new) = (addresses(&["10.1.0.1"], 10_500)[0], addresses(&["10.1.0.1"], 40_000)[0]);
        // What the opener sends comes from the new port 30 ms later, and then nothing gets in at the old one.
        let begin = pair.now + Duration::from_millis(30);
        let mut nat = |mut flying: Flying, fly: &mut Vec<Flying>| {
            let rebound = flying.at > begin;
            match (flying.to, rebound) {
                (1, true) => flying.route.remote = new,
                (0, true) if flying.route.local == old => return,
                // Inside it has the port that it always had.
                (0, _) => flying.route.local = old,
                _ => {}
            }
            fly.push(flying);
        };
        let peer = pair.hit(1);
        host(&mut pair, 0, &mut nat, |now, side| side.host.renew_path(now, &mut side.rng, peer, PathId(0)));
        let until = pair.now + SECOND * 4;
        while pair.step(until, &mut nat) {}
        assert!(spis(&pair, 0).is_disjoint(&before), "Sinnet: {sinnet}");
        assert_eq!(pair.sides[1].paths.len(), 1, "Sinnet: {sinnet}");
    }
}

//! What strangers may cost: floods of packets that each are right up to the check that costs most.

use crate::common;
use crate::common::{Pair, Side};
use clock::Duration;
use hip::budget::{Limit, Limits, Rate};
use hip::identity::Algorithm;
use hip::{Costs, Refused, Route, State};
use wire::hip::{Builder, HEADER_LEN, Notification, Packet, PacketKind, Parameter, Signature};

const SECOND: Duration = Duration::from_secs(1);

fn route(remote: &str) -> Route {
    Route { local: "10.1.0.2:10500".parse().unwrap(), remote: remote.parse().unwrap() }
}

/// Two hosts whose second one is limited as said.
fn pair(limits: Limits) -> Pair {
    let [a, mut b] = ["10.1.0.1", "10.1.0.2"].map(|address| common::config(&common::addresses(&[address], 10500)));
    b.limits = limits;
    Pair::new(common::identities(), [a, b], 1)
}

/// As if there were no budget: what the attacks do then.
fn unlimited() -> Limits {
    let rate = Rate::new(1_000_000, 1_000_000);
    let all = Limit { total: rate, prefix: rate };
    Limits { i1: all, i2: all, i2_again: all, r1: all, r1_bare: all, relayed: all, notify: all, replies: all }
}

/// Hands packets to the second host, 50,000 a second. What that cost.
fn flood(pair: &mut Pair, count: u32, mut packet: impl FnMut(u32) -> (Route, Vec<u8>)) -> Costs {
    let before = pair.sides[1].host.costs();
    for number in 0..count {
        pair.now += Duration::from_micros(20);
        let (route, bytes) = packet(number);
        let Side { host, rng, .. } = &mut pair.sides[1];
        host.handle_packet(pair.now, rng, route, &bytes);
        pair.collect(1, &mut |_, _| {});
    }
    pair.sides[1].host.costs().since(&before)
}

/// A NOTIFY in the name of the first host, with a signature that is none.
fn notify(pair: &Pair) -> Vec<u8> {
    Builder::new(PacketKind::Notify, pair.hit(0), pair.hit(1))
        .push(&Parameter::Notification(Notification { message: 24, data: Vec::new() }))
        .push(&Parameter::HipSignature(Signature { algorithm: 7, bytes: vec![1; 96] }))
        .finish()
        .unwrap()
}

#[test]
fn a_flood_of_notifies_costs_a_few_verifications() {
    for (limits, count, most) in [(Limits::default(), 100_000, 16), (unlimited(), 100, 100)] {
        let mut pair = pair(limits);
        pair.exchange(&mut |flying, fly| fly.push(flying));
        let forged = notify(&pair);
        // Two seconds, from as many networks as there are packets.
        let cost = flood(&mut pair, count, |number| {
            let remote = format!("{}.{}.{}.7:10500", 11 + number / 65536, number / 256 % 256, number % 256);
            (route(&remote), forged.clone())
        });
        let refused = pair.sides[1].host.counters().over_budget;
        assert!(cost.verifications <= most, "{cost:?}");
        assert_eq!(cost.verifications + refused, u64::from(count));
        assert_eq!((cost.hashes, cost.macs, cost.agreements, cost.signatures), (0, 0, 0, 0));
        assert_eq!(pair.sides[1].host.costs_of_strangers().verifications, cost.verifications);
        // Without a budget each one is verified: the state that this test is about.
        assert_eq!(count == 100, refused == 0);
        // The log hears of it once in a minute.
        let told = pair.sides[1].refused.iter().filter(|what| **what == Refused::OverBudget).count();
        assert_eq!(told, usize::from(refused > 0));
        pair.check_paths(1);
    }
}

#[test]
fn what_is_refused_is_told_once_a_minute() {
    let mut pair = pair(Limits::default());
    pair.exchange(&mut |flying, fly| fly.push(flying));
    let forged = notify(&pair);
    for _ in 0..10 {
        flood(&mut pair, 100, |_| (route("10.9.0.1:10500"), forged.clone()));
        pair.now += SECOND * 30;
    }
    let told = |what| pair.sides[1].refused.iter().filter(|told| **told == what).count();
    // Ten times in 300 s, every 30 s.
    assert_eq!((told(Refused::Signature), told(Refused::OverBudget)), (5, 5));
}

/// A host that has the first one's identity and sits somewhere else: it can do all that a stranger can who has seen a packet
/// of the first host, if its signatures are then destroyed.
fn attacker(pair: &Pair, address: &str, seed: u64) -> Side {
    let [identity, _] = common::identities();
    let mut side = Side::new(identity, common::config(&common::addresses(&[address], 10500)), seed);
    let locators = common::addresses(&["10.1.0.2"], 10500);
    side.host.add_peer(pair.now, hip::Peer::new(pair.hit(1), locators));
    side
}

fn sent(side: &mut Side) -> Vec<u8> {
    std::iter::from_fn(|| side.host.poll_transmit()).last().map(|control| control.bytes).unwrap_or_default()
}

/// Its I1 that is padded: the one after the first. Of those that are not, few are answered.
fn padded_i1(pair: &Pair, attacker: &mut Side) -> Vec<u8> {
    let peer = pair.hit(1);
    attacker.host.connect(pair.now, &mut attacker.rng, peer).unwrap();
    attacker.host.handle_timeout(pair.now + SECOND, &mut attacker.rng);
    sent(attacker)
}

/// What the second host answers to a packet from there.
fn answer(pair: &mut Pair, from: Route, packet: &[u8]) -> Vec<u8> {
    let side = &mut pair.sides[1];
    side.host.handle_packet(pair.now, &mut side.rng, from, packet);
    sent(side)
}

/// An I2 of that host whose puzzle is solved, and whose signature is wrong.
fn solved_i2(pair: &mut Pair, address: &str, seed: u64) -> (Route, Vec<u8>) {
    let mut attacker = attacker(pair, address, seed);
    let from = route(&format!("{address}:10500"));
    let i1 = padded_i1(pair, &mut attacker);
    let r1 = answer(pair, from, &i1);
    let back = Route { local: from.remote, remote: from.local };
    attacker.host.handle_packet(pair.now, &mut attacker.rng, back, &r1);
    while attacker.host.poll_timeout().is_some_and(|(_, kind)| kind == hip::TimerKind::Puzzle) {
        pair.now += Duration::from_millis(2);
        attacker.host.handle_timeout(pair.now, &mut attacker.rng);
    }
    let mut i2 = sent(&mut attacker);
    assert_eq!(Packet::parse(&i2).unwrap().kind(), PacketKind::I2);
    let at = i2.len() - 20;
    i2[at] ^= 1;
    (from, i2)
}

#[test]
fn one_solution_is_worth_a_few_agreements() {
    for (limits, count, most) in [(Limits::default(), 100_000, 6), (unlimited(), 50, 50)] {
        let mut pair = pair(limits);
        let (from, i2) = solved_i2(&mut pair, "10.9.0.1", 7);
        let cost = flood(&mut pair, count, |_| (from, i2.clone()));
        assert!(cost.agreements <= most && cost.agreements > 0, "{cost:?}");
        // RFC 7401 §4.1.1 asks for little work before: a MAC and a hash for each, and what the few cost that were looked at.
        let few = cost.agreements * 3;
        assert!(cost.hashes <= u64::from(count) && cost.macs <= u64::from(count) + few, "{cost:?}");
        assert_eq!(pair.sides[1].host.counters().over_budget == 0, count == 50);
        // The true peer is at another place, and gets in.
        pair.exchange(&mut |flying, fly| fly.push(flying));
        pair.check_paths(1);
    }
}

#[test]
fn many_solutions_make_puzzles_harder_and_leave_room_for_the_peer() {
    let mut pair = pair(Limits::default());
    let i2s: Vec<_> = (0..40).map(|number| solved_i2(&mut pair, &format!("10.9.{number}.1"), number)).collect();
    let cost = flood(&mut pair, 40, |number| i2s[number as usize].clone());
    // 20 at once are allowed in all.
    assert!((15..=21).contains(&cost.agreements), "{cost:?}");
    let mut attacker = attacker(&pair, "10.8.0.1", 1);
    let i1 = padded_i1(&pair, &mut attacker);
    let r1 = answer(&mut pair, route("10.8.0.1:10500"), &i1);
    let r1 = Packet::parse(&r1).unwrap();
    // 40 failures are 1 + floor(log2(40 / 4)) bits.
    assert_eq!(r1.puzzle().unwrap().difficulty, 1 + 4);
    pair.exchange(&mut |flying, fly| fly.push(flying));
    pair.check_paths(1);
    // What was solved with the old puzzle is worth nothing after ten seconds.
    pair.now += SECOND * 11;
    let before = pair.sides[1].host.counters().bad_puzzle;
    let cost = flood(&mut pair, 40, |number| i2s[number as usize].clone());
    assert_eq!((cost.agreements, pair.sides[1].host.counters().bad_puzzle - before), (0, 40));
}

/// A neighbour in the peer's own network, with solutions as fast as the budget takes them.
#[test]
fn a_neighbour_with_solved_puzzles_keeps_nobody_out() {
    let mut pair = pair(Limits::default());
    let i2s: Vec<_> = (0..40).map(|number| solved_i2(&mut pair, "10.1.0.9", number)).collect();
    let cost = flood(&mut pair, 40, |number| i2s[number as usize].clone());
    assert!((6..=9).contains(&cost.agreements), "{cost:?}");
    pair.connect(0);
    pair.run(Duration::from_millis(200));
    pair.check_paths(1);
}

/// An exchange during which somebody sends 50,000 packets a second to either host. How long it took, and what it cost them.
fn exchange_under(mut forge: impl FnMut(&mut Pair, u32, usize) -> Option<(Route, Vec<u8>)>) -> (Duration, Pair) {
    let mut pair = pair(Limits::default());
    // The flood has gone on for a while.
    let mut number = 0;
    let began = pair.now + SECOND;
    while pair.sides.iter().any(|side| side.verified.is_empty()) && pair.now < began + SECOND * 20 {
        if pair.now >= began && pair.sides[0].state() == State::Unassociated {
            pair.connect(0);
        }
        for _ in 0..50 {
            number += 1;
            for to in 0..2 {
                if let Some((route, bytes)) = forge(&mut pair, number, to) {
                    let side = &mut pair.sides[to];
                    side.host.handle_packet(pair.now, &mut side.rng, route, &bytes);
                    // Answers to forged sources go nowhere.
                    let peer = if to == 0 { "10.1.0.2:10500" } else { "10.1.0.1:10500" };
                    pair.collect(to, &mut |flying, fly| {
                        if flying.route.local.to_string() == peer {
                            fly.push(flying);
                        }
                    });
                }
            }
        }
        pair.run(Duration::from_millis(1));
    }
    pair.check_paths(1);
    (pair.now.saturating_since(began), pair)
}

fn source(number: u32) -> String {
    format!("{}.{}.{}.7:10500", 11 + number / 65536 % 100, number / 256 % 256, number % 256)
}

fn to_host(to: usize, remote: &str) -> Route {
    Route { local: format!("10.1.0.{}:10500", to + 1).parse().unwrap(), remote: remote.parse().unwrap() }
}

#[test]
fn floods_of_every_kind_keep_nobody_out() {
    let packet = |pair: &Pair, kind: PacketKind, to: usize| {
        Builder::new(kind, pair.hit(1 - to), pair.hit(to))
            .push(&Parameter::HipMac(vec![7; 48]))
            .push(&Parameter::HipSignature(Signature { algorithm: 7, bytes: vec![1; 96] }))
            .finish()
            .unwrap()
    };
    // Every source there is, and the peer's own.
    for own in [false, true] {
        for kind in [PacketKind::I1, PacketKind::Notify, PacketKind::Update, PacketKind::Close, PacketKind::R2] {
            let (took, pair) = exchange_under(|pair, number, to| {
                let remote = if own { format!("10.1.0.{}:10500", 2 - to) } else { source(number) };
                let bytes = match kind {
                    PacketKind::I1 => Builder::new(kind, pair.hit(1 - to), pair.hit(to))
                        .push(&Parameter::DhGroupList(vec![7]))
                        .finish()
                        .unwrap(),
                    _ => packet(pair, kind, to),
                };
                Some((to_host(to, &remote), bytes))
            });
            assert!(took <= SECOND * 4, "{kind:?}: {took}");
            for side in &pair.sides {
                let (cost, seconds) = (side.host.costs_of_strangers(), took.as_secs_f64() + 1.0);
                // 4 notices a second and 8 at once; and the R1s of another difficulty or generation.
                assert!(cost.public_key() as f64 <= 4.0 * seconds + 20.0, "{kind:?}: {cost:?}");
            }
        }
    }
}

/// An R1 that somebody has fetched for himself: its signature is right, its puzzle is for another place.
fn stolen_r1(pair: &mut Pair, number: u32) -> Vec<u8> {
    let mut attacker = attacker(pair, "10.9.0.1", u64::from(number));
    let peer = pair.hit(1);
    attacker.host.connect(pair.now, &mut attacker.rng, peer).unwrap();
    let i1 = sent(&mut attacker);
    answer(pair, route("10.9.0.1:10500"), &i1)
}

#[test]
fn stolen_and_forged_r1s_keep_nobody_out() {
    let mut stolen = Vec::new();
    for forged in [false, true] {
        for remote in ["10.9.0.1:10500", "10.1.0.2:10500"] {
            let (took, pair) = exchange_under(|pair, number, to| {
                if number == 1 {
                    stolen = stolen_r1(pair, number);
                    if forged {
                        let at = stolen.len() - 60;
                        stolen[at] ^= 1;
                    }
                }
                (to == 0).then(|| (to_host(0, remote), stolen.clone()))
            });
            assert!(took <= SECOND * 2, "{remote}, forged {forged}: {took}");
            let cost = pair.sides[0].host.costs_of_strangers();
            assert!(cost.verifications <= 40, "{remote}, forged {forged}: {cost:?}");
        }
    }
}

/// One stolen R1 a second, also with a Responder that does not know our cookie.
#[test]
fn a_stolen_r1_a_second_costs_seconds_and_no_i2_goes_elsewhere() {
    for plain in [false, true] {
        for remote in ["10.9.0.1:10500", "10.1.0.2:10500"] {
            let [mut a, b] =
                ["10.1.0.1", "10.1.0.2"].map(|address| common::config(&common::addresses(&[address], 10500)));
            a.i1_length = if plain { 0 } else { 512 };
            let mut pair = Pair::new(common::identities(), [a, b], 1);
            pair.connect(0);
            let mut number = 0;
            while pair.sides.iter().any(|side| side.verified.is_empty())
                && pair.now < clock::Instant::ZERO + SECOND * 30
            {
                number += 1;
                let r1 = stolen_r1(&mut pair, number);
                let side = &mut pair.sides[0];
                side.host.handle_packet(pair.now, &mut side.rng, to_host(0, remote), &r1);
                let mut elsewhere = 0;
                pair.collect(0, &mut |flying, fly| {
                    elsewhere += usize::from(flying.route.local.to_string() != "10.1.0.2:10500");
                    fly.push(flying);
                });
                assert_eq!(elsewhere, 0, "an I2 to where no I1 went");
                pair.run(SECOND);
            }
            pair.check_paths(1);
            assert!(number <= 6, "{remote}, plain {plain}: {number} s");
        }
    }
}

#[test]
fn an_unproven_address_gets_at_most_three_times_what_it_sent() {
    let eight = ["10.1.0.2", "10.2.0.2", "10.3.0.2", "10.4.0.2", "10.5.0.2", "10.6.0.2", "10.7.0.2", "10.8.0.2"];
    for algorithm in [Algorithm::EcdsaP384, Algorithm::Rsa] {
        let [a, b] = [&["10.1.0.1"][..], &eight].map(|all| {
            let mut config = common::config(&common::addresses(all, 10500));
            config.groups = vec![hip::dh::Group::P384];
            config
        });
        let mut pair = Pair::new([1, 2].map(|seed| common::generated(algorithm, seed)), [a, b], 1);
        pair.connect(0);
        // RFC 7401 §5.3.1.
        let i1 = pair.flying.remove(0).bytes;
        assert_eq!(i1.len(), HEADER_LEN + 8);
        let again = pair.now + SECOND;
        while pair.flying.is_empty() {
            assert!(pair.step(again, &mut |flying, fly| fly.push(flying)));
        }
        let i1 = pair.flying.remove(0).bytes;
        assert!(i1.len() <= 512);
        let r1 = answer(&mut pair, route("10.9.0.1:10500"), &i1);
        assert_eq!(Packet::parse(&r1).unwrap().kind(), PacketKind::R1);
        assert!(r1.len() <= 3 * i1.len(), "{algorithm:?}: {} for {}", r1.len(), i1.len());
        // Hosts that do not pad get an answer, too, but a flood of such I1s does not.
        let i1 = Builder::new(PacketKind::I1, pair.hit(0), pair.hit(1))
            .push(&Parameter::DhGroupList(vec![8]))
            .finish()
            .unwrap();
        assert!(!answer(&mut pair, route("10.9.0.1:10500"), &i1).is_empty());
        let (mut bytes_in, mut bytes_out) = (0, 0);
        for number in 0..50_000 {
            pair.now += Duration::from_micros(20);
            let side = &mut pair.sides[1];
            side.host.handle_packet(pair.now, &mut side.rng, route(&source(number)), &i1);
            bytes_in += i1.len();
            bytes_out +=
                std::iter::from_fn(|| side.host.poll_transmit()).map(|control| control.bytes.len()).sum::<usize>();
        }
        assert!(bytes_out > 0 && bytes_out < bytes_in / 10, "{bytes_out} for {bytes_in}");
    }
}

#[test]
fn a_hard_puzzle_is_solved_in_slices() {
    let mut pair = pair(Limits::default());
    let mut configs = ["10.1.0.1", "10.1.0.2"].map(|address| common::config(&common::addresses(&[address], 10500)));
    configs[1].puzzle_difficulty = 14;
    pair.sides = Pair::new(common::identities(), configs.clone(), 1).sides;
    pair.connect(0);
    let (mut last, mut calls) = (Costs::default(), 0);
    while pair.sides[0].verified.is_empty() && pair.now < clock::Instant::ZERO + SECOND * 10 {
        // `step` sees to it that no deadline is due after `handle_timeout`.
        pair.step(pair.now + SECOND, &mut |flying, fly| fly.push(flying));
        let cost = pair.sides[0].host.costs();
        // 3 µs a hash: a millisecond.
        assert!(cost.since(&last).hashes <= 300, "{:?}", cost.since(&last));
        (last, calls) = (cost, calls + 1);
    }
    pair.run(SECOND);
    pair.check_paths(1);
    // 2^14 hashes on average, of which a tenth is enough with probability 0.1.
    assert!(calls > 8, "{calls}");

    // Harder ones than configured are refused with a reason.
    configs[1].puzzle_difficulty = 17;
    let mut pair = Pair::new(common::identities(), configs, 1);
    pair.connect(0);
    pair.run(SECOND);
    assert!(pair.sides[0].failed[0].contains("puzzle of difficulty 17"), "{:?}", pair.sides[0].failed);
}

#[test]
fn a_responder_whose_clock_was_set_back_is_let_in_after_seconds() {
    let mut pair = pair(Limits::default());
    let [_, identity] = common::identities();
    let config = common::config(&common::addresses(&["10.1.0.2"], 10500));
    let peer = hip::Peer::new(pair.hit(0), common::addresses(&["10.1.0.1"], 10500));
    let restarted = |identity, first_generation| {
        let mut config = config.clone();
        config.first_generation = first_generation;
        let mut side = Side::new(identity, config, first_generation);
        side.host.add_peer(clock::Instant::ZERO, peer.clone());
        side
    };
    pair.sides[1] = restarted(identity, 1_000);
    pair.exchange(&mut |flying, fly| fly.push(flying));
    pair.check_paths(1);
    let [_, identity] = common::identities();
    pair.sides[1] = restarted(identity, 10);
    let hit = pair.hit(1);
    pair.sides[0].host.abandon(hit, "silence");
    pair.connect(0);
    let mut number = 0;
    while pair.sides[0].verified.is_empty() && number < 30 {
        pair.run(SECOND);
        number += 1;
    }
    // I1s go out after 0, 1 and 3 s, and the third R1 is believed.
    assert!((3..=5).contains(&number), "{number} s");
    assert!(pair.sides[0].refused.contains(&Refused::WentBack));
    pair.check_paths(1);
}

#[test]
fn old_r1s_that_are_replayed_keep_nobody_out() {
    let mut pair = pair(Limits::default());
    let old = stolen_r1(&mut pair, 1);
    // Two generations later.
    pair.now += SECOND * 130;
    _ = stolen_r1(&mut pair, 2);
    pair.now += SECOND * 130;
    pair.exchange(&mut |flying, fly| fly.push(flying));
    let hit = pair.hit(1);
    for _ in 0..3 {
        pair.sides[0].host.abandon(hit, "again");
        pair.connect(0);
        // It is there before any true R1 can be.
        let side = &mut pair.sides[0];
        side.host.handle_packet(pair.now, &mut side.rng, to_host(0, "10.1.0.2:10500"), &old);
        pair.run(SECOND);
        pair.check_paths(1);
    }
}

/// Both ways: the one that begins, and the one that is begun with.
#[test]
fn twenty_restarts_in_a_row_are_not_refused() {
    for starts in [0, 1] {
        let mut pair = pair(Limits::default());
        for number in 0..20 {
            pair.connect(0);
            pair.run(Duration::from_millis(500));
            pair.check_paths(1);
            let fresh = self::pair(Limits::default());
            let [a, b] = fresh.sides;
            pair.sides[starts] = if starts == 0 { a } else { b };
            if starts == 1 {
                let hit = pair.hit(1);
                pair.sides[0].host.abandon(hit, "silence");
            }
            assert!(pair.sides[0].failed.is_empty(), "restart {number}");
        }
    }
}

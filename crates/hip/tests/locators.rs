//! Locators that come and go under associations (RFC 8046 §3.2, §5; RFC 8047 §4). The oracle is which locators there are:
//! in the end each path joins two of them, both hosts know the same paths, and none is left without one.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::common::{Flying, Pair, Side, addresses, config, identities};
use clock::{Duration, Rng};

const SECOND: Duration = Duration::from_secs(1);

fn locator(text: &str) -> SocketAddr {
    addresses(&[text], 10500)[0]
}

/// The usual two, associated, and a network in which only what is sent to `places` arrives.
struct World {
    pair: Pair,
    places: [BTreeSet<SocketAddr>; 2],
}

impl World {
    fn new(seed: u64, ours: &[&str], theirs: &[&str]) -> Self {
        let lists = [addresses(ours, 10500), addresses(theirs, 10500)];
        let mut pair = Pair::new(identities(), lists.each_ref().map(|list| config(list)), seed);
        pair.connect(0);
        pair.run(SECOND * 5);
        Self { pair, places: lists.map(|list| list.into_iter().collect()) }
    }

    fn change(&mut self, side: usize, remove: &[&str], add: &[&str]) {
        let (now, Side { host, rng, .. }) = (self.pair.now, &mut self.pair.sides[side]);
        for text in remove {
            host.remove_locator(now, rng, locator(text).ip());
            self.places[side].remove(&locator(text));
        }
        for text in add {
            host.add_locator(now, rng, locator(text), false);
            self.places[side].insert(locator(text));
        }
        self.pair.collect(side, &mut |flying, fly| fly.push(flying));
    }

    /// A name server tells the first host where the second is.
    fn name(&mut self, place: SocketAddr) {
        let peer = hip::Peer::new(self.pair.hit(1), vec![place]);
        self.pair.sides[0].host.add_peer(self.pair.now, peer);
    }

    fn run(&mut self, time: Duration, mut weather: impl FnMut(Flying) -> Vec<Flying>) {
        let until = self.pair.now + time;
        let places = self.places.clone();
        let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
            let sound = places[flying.to].contains(&flying.route.local);
            fly.extend(if sound { weather(flying) } else { Vec::new() });
        };
        // What was on its way before the change arrives nowhere.
        self.pair.flying.retain(|flying| places[flying.to].contains(&flying.route.local));
        while self.pair.step(until, &mut network) {}
    }

    /// Both hosts have these paths, and no others; they carry packets both ways.
    #[track_caller]
    fn check(&mut self, count: usize) {
        let told = self
            .pair
            .sides
            .each_ref()
            .map(|side| side.paths.values().map(|(route, ..)| route.to_string()).collect::<Vec<_>>());
        for side in 0..2 {
            let locals: BTreeSet<_> = self.pair.sides[side].paths.values().map(|(route, ..)| route.local).collect();
            assert!(locals.is_subset(&self.places[side]), "a path from nowhere: {told:?}");
            if self.places[side].len() >= self.places[1 - side].len() || side == 0 {
                assert_eq!(locals, self.places[side], "each locator has a path: {told:?}");
            }
        }
        assert_eq!(told.each_ref().map(Vec::len), [count; 2], "{told:?}");
        self.pair.check_paths(count);
    }
}

/// The first host is behind a NAT, which lets in from `place` only after something was sent there.
fn behind_nat(place: SocketAddr) -> impl FnMut(Flying) -> Vec<Flying> {
    let mut asked = false;
    move |flying| {
        asked |= flying.to == 1 && flying.route.local == place;
        if flying.to == 0 && flying.route.remote == place && !asked { Vec::new() } else { vec![flying] }
    }
}

fn calm(flying: Flying) -> Vec<Flying> {
    vec![flying]
}

#[test]
fn an_address_is_exchanged_for_another_on_either_side() {
    for side in 0..2 {
        let mut world = World::new(1, &["10.1.0.1", "10.2.0.1"], &["10.1.0.2", "10.2.0.2"]);
        let (old, new) = if side == 0 { ("10.2.0.1", "10.3.0.1") } else { ("10.2.0.2", "10.3.0.2") };
        world.change(side, &[old], &[new]);
        world.run(SECOND * 2, calm);
        world.check(2);
        assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
    }
}

#[test]
fn an_address_may_come_long_after_another_went() {
    for side in 0..2 {
        let mut world = World::new(2, &["10.1.0.1", "10.2.0.1"], &["10.1.0.2", "10.2.0.2"]);
        let (old, new) = if side == 0 { ("10.2.0.1", "10.3.0.1") } else { ("10.2.0.2", "10.3.0.2") };
        world.change(side, &[old], &[]);
        world.run(SECOND * 20, calm);
        // As many paths as the host with more locators has.
        world.check(2);
        world.change(side, &[], &[new]);
        world.run(SECOND * 20, calm);
        world.check(2);
    }
}

/// RFC 8046 §5.3: what the peer says it has may be nobody's, or ours. Only an Initiator goes where it has heard nothing from.
#[test]
fn nothing_is_sent_to_what_is_no_address_of_a_host() {
    for place in ["224.0.0.77", "255.255.255.255", "0.0.0.0", "127.0.0.1", "ff02::1", "::1"] {
        let mut world = World::new(8, &["10.1.0.1", "fd00::1"], &["10.1.0.2", "fd00::2"]);
        world.change(1, &[], &[place]);
        let place = locator(place);
        world.run(SECOND * 5, |flying| {
            assert_ne!(flying.route.local, place);
            vec![flying]
        });
        assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "{place}");
    }
}

/// RFC 7401 §6.11: the first is 0.
#[test]
fn update_ids_begin_with_zero() {
    let lists = [addresses(&["10.1.0.1", "10.2.0.1"], 10500), addresses(&["10.1.0.2", "10.2.0.2"], 10500)];
    let mut pair = Pair::new(identities(), lists.each_ref().map(|list| config(list)), 9);
    pair.connect(0);
    let mut first = [None; 2];
    let mut world = World { pair, places: lists.map(|list| list.into_iter().collect()) };
    world.run(SECOND * 5, |flying| {
        let packet = wire::hip::Packet::parse(&flying.bytes).unwrap();
        if let (Some(seq), first) = (packet.seq(), &mut first[1 - flying.to]) {
            first.get_or_insert(*seq);
        }
        vec![flying]
    });
    assert_eq!(first, [Some(0), Some(0)]);
}

#[test]
fn a_third_address_is_a_third_path() {
    for side in 0..2 {
        let mut world = World::new(3, &["10.1.0.1", "10.2.0.1"], &["10.1.0.2", "10.2.0.2"]);
        world.change(side, &[], &[["10.3.0.1", "10.3.0.2"][side]]);
        world.run(SECOND * 2, calm);
        world.check(3);
    }
}

#[test]
fn a_host_that_moves_keeps_its_association() {
    for side in 0..2 {
        let mut world = World::new(4, &["10.1.0.1"], &["10.1.0.2"]);
        let (old, new) = if side == 0 { ("10.1.0.1", "10.9.0.1") } else { ("10.1.0.2", "10.9.0.2") };
        world.change(side, &[old], &[]);
        assert!(world.pair.sides[side].paths.is_empty());
        world.run(SECOND * 30, calm);
        world.change(side, &[], &[new]);
        world.run(SECOND * 20, calm);
        world.check(1);
        assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
    }
}

#[test]
fn without_any_path_the_association_is_given_up_so_that_it_can_begin_anew() {
    let mut world = World::new(5, &["10.1.0.1"], &["10.1.0.2"]);
    world.places[1].clear();
    world.change(0, &["10.1.0.1"], &["10.9.0.1"]);
    world.run(SECOND * 60, calm);
    assert_eq!(world.pair.sides[0].closed, ["no path to the peer is left"]);
    world.places[1].insert(locator("10.1.0.2"));
    world.pair.connect(0);
    world.run(SECOND * 30, calm);
    world.check(1);
}

#[test]
fn a_base_exchange_outlives_the_address_it_began_at() {
    for after in [10, 30, 50, 70] {
        let list = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
        let peer = addresses(&["10.1.0.2"], 10500);
        let pair = Pair::new(identities(), [config(&list), config(&peer)], after);
        let mut world = World { pair, places: [list.into_iter().collect(), peer.into_iter().collect()] };
        world.pair.connect(0);
        world.run(Duration::from_millis(after), calm);
        world.change(0, &["10.1.0.1"], &[]);
        world.run(SECOND * 30, calm);
        world.check(1);
    }
}

/// The peer's locators were wrong when the exchange began, and somebody has put them right.
#[test]
fn a_base_exchange_goes_on_where_the_peer_is_now() {
    let lists = [["10.1.0.1"], ["10.1.0.2"]].map(|list| addresses(&list, 10500));
    let pair = Pair::new(identities(), lists.each_ref().map(|list| config(list)), 31);
    let mut world = World { pair, places: lists.map(|list| list.into_iter().collect()) };
    let hit = world.pair.hit(1);
    let peer = |text: &str| hip::Peer::new(hit, vec![locator(text)]);
    world.pair.sides[0].host.add_peer(world.pair.now, peer("10.1.0.9"));
    world.pair.connect(0);
    world.run(SECOND * 5, calm);
    assert_eq!(world.pair.sides[0].established, 0);
    world.pair.sides[0].host.add_peer(world.pair.now, peer("10.1.0.2"));
    // The longest pause between two tries is four seconds.
    world.run(SECOND * 5, calm);
    assert_eq!(world.pair.sides[0].established, 1);
}

/// A NAT lets nothing in from where its host has never sent to, so the news of a move must come from a name server.
#[test]
fn a_responder_that_has_moved_is_found_where_it_is_said_to_be() {
    let mut world = World::new(3, &["10.1.0.1"], &["10.1.0.2"]);
    let new = locator("10.1.0.3");
    world.change(1, &["10.1.0.2"], &["10.1.0.3"]);
    world.pair.flying.clear();
    let mut nat = behind_nat(new);
    world.run(Duration::from_millis(500), &mut nat);
    world.name(new);
    world.run(Duration::from_millis(700), &mut nat);
    world.check(1);
    assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
}

/// What the Responder said of its locators before it moved comes in after the name server has told where it is now.
#[test]
fn old_news_of_a_responder_that_has_moved_costs_no_second() {
    for pause in (0..100).step_by(5) {
        let mut world = World::new(pause, &["10.1.0.1"], &["10.1.0.2"]);
        world.change(1, &[], &["10.2.0.2"]);
        world.run(Duration::from_millis(pause), calm);
        world.change(1, &["10.1.0.2", "10.2.0.2"], &["10.1.0.3"]);
        world.name(locator("10.1.0.3"));
        let (now, Side { host, rng, .. }) = (world.pair.now, &mut world.pair.sides[0]);
        host.handle_timeout(now, rng);
        world.pair.collect(0, &mut |flying, fly| fly.push(flying));
        world.run(Duration::from_millis(900), calm);
        world.check(1);
        assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
    }
}

/// The same while new keys were asked for where the peer is not any more: that is not asked again first.
#[test]
fn new_keys_where_the_peer_was_do_not_come_before_where_it_is() {
    let mut world = World::new(3, &["10.1.0.1"], &["10.1.0.2"]);
    let (hit, new) = (world.pair.hit(1), locator("10.1.0.3"));
    world.change(1, &["10.1.0.2"], &["10.1.0.3"]);
    let (now, Side { host, rng, paths, .. }) = (world.pair.now, &mut world.pair.sides[0]);
    let path = *paths.keys().next().unwrap();
    host.renew_path(now, rng, hit, path);
    world.pair.flying.clear();
    let mut nat = behind_nat(new);
    world.run(Duration::from_millis(100), &mut nat);
    world.name(new);
    world.run(Duration::from_millis(700), &mut nat);
    for side in &world.pair.sides {
        let joins = |route: &hip::Route| route.local == new || route.remote == new;
        assert!(side.paths.values().any(|(route, ..)| joins(route)), "no path to where the peer is");
    }
    world.run(SECOND * 10, &mut nat);
    world.check(1);
    assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
}

/// A Responder whose peer is behind a NAT knows of no place to begin anew at; only the peer can bring a path back.
#[test]
fn an_association_that_cannot_be_begun_anew_is_not_ended_for_that() {
    let mut world = World::new(5, &["10.1.0.1"], &["10.1.0.2"]);
    let hit = world.pair.hit(0);
    world.pair.sides[1].host.add_peer(world.pair.now, hip::Peer::new(hit, Vec::new()));
    let there = std::mem::take(&mut world.places[0]);
    world.change(1, &["10.1.0.2"], &["10.1.0.3"]);
    world.run(SECOND * 4, calm);
    let (now, Side { host, rng, .. }) = (world.pair.now, &mut world.pair.sides[1]);
    assert!(host.connect(now, rng, hit).is_err());
    world.places[0] = there;
    world.run(SECOND * 30, calm);
    world.check(1);
    assert_eq!(world.pair.sides.each_ref().map(|side| side.established), [1, 1], "the association stays");
}

#[test]
fn backups_are_known_to_the_peer() {
    for (side, path, slow) in (0..8).map(|n| (n % 2, n / 2 % 2, n / 4)) {
        let a = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
        let b = addresses(&["10.1.0.2", "10.2.0.2"], 10500);
        let slow = a[slow].ip();
        let mut configs = [config(&a), config(&b)];
        configs[side].backups = vec![configs[side].locators[path].ip()];
        let backup = configs[side].locators[path];
        let mut pair = Pair::new(identities(), configs, 6);
        pair.connect(0);
        let until = pair.now + SECOND * 3;
        // On one of the ways each packet takes longer, so that some overtake others.
        while pair.step(until, &mut |mut flying, fly| {
            let slow = flying.route.remote.ip() == slow || flying.route.local.ip() == slow;
            flying.at += Duration::from_millis(if slow { 5 } else { 0 });
            fly.push(flying);
        }) {}
        pair.check_paths(2);
        let peer = &pair.sides[1 - side];
        let routes: Vec<_> = peer.backups.iter().map(|path| peer.paths[path].0.remote).collect();
        assert_eq!(routes, [backup], "side {side}, path {path}, slow {slow}");
        assert!(pair.sides[side].backups.is_empty(), "nobody else wants one");
    }
}

/// The Responder tells its locators after each path that is opened, for it wants one as a backup. On the first path that
/// is faster than the answers on the others (campaign, seeds 51 and 113).
#[test]
fn locators_that_overtake_an_answer_do_not_undo_it() {
    let a = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
    let b = addresses(&["10.1.0.2", "10.2.0.2", "10.3.0.2"], 10500);
    let mut configs = [config(&a), config(&b)];
    configs[1].backups = vec![b[2].ip()];
    let mut pair = Pair::new(identities(), configs, 6);
    pair.connect(0);
    let until = pair.now + SECOND * 5;
    let mut packets = 0;
    while pair.step(until, &mut |mut flying, fly| {
        let fast = flying.route.remote == b[0] || flying.route.local == b[0];
        flying.at += Duration::from_millis(if fast { 0 } else { 60 });
        fly.push(flying);
        packets += 1;
    }) {}
    pair.check_paths(3);
    assert!(packets < 60, "{packets} packets");
}

/// Addresses come and go on both sides while packets are lost, doubled and late. Then the weather is fine again.
#[test]
fn both_hosts_agree_after_any_changes_in_any_weather() {
    let runs = std::env::var("RUNS").map_or(200, |runs| runs.parse().unwrap());
    let first = std::env::var("SEED").map_or(0, |seed| seed.parse().unwrap());
    let pool = [["10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"], ["10.1.0.2", "10.2.0.2", "10.3.0.2", "10.4.0.2"]];
    for seed in first..first + runs {
        let mut chance = Rng::from_seed(seed);
        let mut world = World::new(seed, &pool[0][..2], &pool[1][..2]);
        for _ in 0..6 {
            let side = chance.below(2) as usize;
            let text = pool[side][chance.below(4) as usize];
            let there = world.places[side].contains(&locator(text));
            // Where no address is left on either side nobody could find the other.
            if there && world.places[side].len() > 1 {
                world.change(side, &[text], &[]);
            } else if !there {
                world.change(side, &[], &[text]);
            }
            let time = Duration::from_millis(chance.below(4_000));
            world.run(time, |mut flying| {
                if chance.chance(0.2) {
                    return Vec::new();
                }
                let mut all = Vec::new();
                if chance.chance(0.2) {
                    all.push(Flying { bytes: flying.bytes.clone(), ..flying });
                }
                if chance.chance(0.2) {
                    flying.at += Duration::from_millis(chance.below(2_000));
                }
                all.push(flying);
                all
            });
        }
        world.run(SECOND * 300, calm);
        let told = format!(
            "SEED={seed} RUNS=1: {:?} {:?}",
            world.places,
            world.pair.sides.each_ref().map(|side| {
                (side.closed.clone(), side.paths.values().map(|(route, ..)| route.to_string()).collect::<Vec<_>>())
            })
        );
        for side in 0..2 {
            let locals: BTreeSet<_> = world.pair.sides[side].paths.values().map(|(route, ..)| route.local).collect();
            assert!(locals.is_subset(&world.places[side]), "a path from nowhere: {told}");
        }
        let locals: BTreeSet<_> = world.pair.sides[0].paths.values().map(|(route, ..)| route.local).collect();
        assert_eq!(locals, world.places[0], "{told}");
        assert_eq!(world.pair.sides[0].paths.len(), world.pair.sides[1].paths.len(), "{told}");
        let count = world.pair.sides[0].paths.len();
        assert!(count >= world.places[0].len().max(world.places[1].len()), "{told}");
        world.pair.check_paths(count);
    }
}

/// Two hosts of which the first is told of other locators of the second than there are.
fn told(seed: u64, ours: &[&str], theirs: &[&str], configured: &[&str]) -> World {
    let lists = [addresses(ours, 10500), addresses(theirs, 10500)];
    let pair = Pair::new(identities(), lists.each_ref().map(|list| config(list)), seed);
    let mut world = World { pair, places: lists.map(|list| list.into_iter().collect()) };
    let peer = hip::Peer::new(world.pair.hit(1), addresses(configured, 10500));
    world.pair.sides[0].host.add_peer(world.pair.now, peer);
    world
}

/// An R1 says where its host is now.
#[test]
fn where_the_peer_says_that_it_is_comes_before_where_it_is_configured() {
    let mut world = told(30, &["10.1.0.1", "10.2.0.1"], &["10.1.0.2", "10.2.0.3"], &["10.1.0.2", "10.2.0.2"]);
    world.pair.connect(0);
    world.run(SECOND, calm);
    world.check(2);
}

/// The addresses that an R1 has told were forgotten with the last of our own.
#[test]
fn where_the_peer_is_stays_known_when_the_only_locator_changes() {
    let mut world = told(31, &["10.1.0.1"], &["10.1.0.2", "10.2.0.3"], &["10.1.0.2"]);
    let second = locator("10.2.0.3");
    world.pair.connect(0);
    world.run(SECOND * 5, |flying| {
        let silent = [flying.route.local, flying.route.remote].contains(&second);
        if silent { Vec::new() } else { vec![flying] }
    });
    assert_eq!(world.pair.sides[0].paths.len(), 1);
    world.change(0, &["10.1.0.1"], &["10.1.0.9"]);
    world.run(SECOND * 10, calm);
    world.check(2);
}

/// The Initiator knows the Responder's locators from its R1, which may be older than the newest of them.
#[test]
fn a_locator_that_came_while_the_r1_was_answered_is_told() {
    let mut world = told(32, &["10.1.0.1"], &["10.1.0.2"], &["10.1.0.2"]);
    world.pair.connect(0);
    // The I1 and the R1 take a round trip; the I2 is under way.
    world.run(Duration::from_millis(25), calm);
    assert!(world.pair.sides[0].paths.is_empty(), "the exchange is over already");
    world.change(1, &[], &["10.2.0.2"]);
    world.run(SECOND * 2, calm);
    world.check(2);
}

/// An announcement that nobody has acknowledged for long is told to where the peer was, when a name server says where it is.
#[test]
fn news_to_where_the_peer_was_do_not_keep_from_where_it_is() {
    let mut world = World::new(33, &["10.1.0.1", "10.1.0.9"], &["10.1.0.2"]);
    world.change(0, &["10.1.0.9"], &[]);
    world.run(SECOND * 6, |_| Vec::new());
    let new = locator("10.1.0.3");
    world.change(1, &["10.1.0.2"], &["10.1.0.3"]);
    world.pair.flying.clear();
    let mut nat = behind_nat(new);
    world.run(Duration::from_millis(100), &mut nat);
    world.name(new);
    world.run(Duration::from_millis(700), &mut nat);
    let joins = |(route, ..): &(hip::Route, _, _)| route.remote == new;
    assert!(world.pair.sides[0].paths.values().any(joins), "no path to where the peer is");
}

/// A server tells the address of a bridge for containers, which leads nowhere. Each pair with it once cost 11 s.
#[test]
fn a_locator_that_leads_nowhere_keeps_no_path_from_its_place_for_long() {
    for seed in 0..4 {
        let mut world = World::new(seed, &["10.1.0.1"], &["10.2.0.1"]);
        let dead = ["172.17.0.1", "172.18.0.1"];
        for text in dead {
            world.change(1, &[], &[text]);
            world.places[1].remove(&locator(text));
        }
        world.run(SECOND / 2, calm);
        world.change(0, &[], &["10.1.1.1"]);
        // Three pairs lead nowhere at most before the one that is wanted, and each costs a retransmission's time.
        world.run(SECOND * 7 / 2, calm);
        let locals: BTreeSet<_> = world.pair.sides[0].paths.values().map(|path| path.0.local).collect();
        assert_eq!(locals, world.places[0], "seed {seed}");
    }
}

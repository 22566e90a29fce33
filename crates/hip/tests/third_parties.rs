//! What an authenticated peer, or an observer with what was recorded, can make a host send to an address whose owner has
//! never answered there (RFC 8046 §5.6; RFC 9000 §8.1, §21.5), and what replays cost. The oracle is who owns which address.

use std::net::SocketAddr;

use crate::common::{Pair, Side, addresses, config, identities};
use clock::Duration;
use hip::{PathId, Peer, Route, State};
use wire::hip::{Builder, Notification, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

const SECOND: Duration = Duration::from_secs(1);

fn kind(bytes: &[u8]) -> PacketKind {
    Packet::parse(bytes).unwrap().kind()
}

fn victim() -> SocketAddr {
    "203.0.113.9:10500".parse().unwrap()
}

/// Hands a packet to a host; what the host says to it, by where it goes.
fn give(pair: &mut Pair, to: usize, route: Route, bytes: &[u8]) -> Vec<(Route, Vec<u8>)> {
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[to]);
    host.handle_packet(now, rng, route, bytes);
    let mut said = Vec::new();
    pair.collect(to, &mut |flying, _| {
        let route = Route { local: flying.route.remote, remote: flying.route.local };
        said.push((route, flying.bytes));
    });
    said
}

/// An association with one path, and the UPDATE with which side 0 would open the second, as side 1 would get it.
fn caught_update() -> (Pair, Route, Vec<u8>) {
    let mut pair = Pair::usual(1);
    pair.connect(0);
    let mut caught = None;
    let until = pair.now + SECOND;
    while pair.step(until, &mut |flying, fly| {
        if flying.to == 1 && kind(&flying.bytes) == PacketKind::Update {
            caught.get_or_insert((flying.route, flying.bytes));
        } else {
            fly.push(flying);
        }
    }) {}
    let (route, update) = caught.unwrap();
    pair.flying.clear();
    (pair, route, update)
}

fn reversed(route: Route) -> Route {
    Route { local: route.remote, remote: route.local }
}

fn verified(pair: &Pair, side: usize) -> Vec<SocketAddr> {
    pair.sides[side].verified.iter().map(|id| pair.sides[side].paths[id].0.remote).collect()
}

#[test]
fn an_answer_is_repeated_where_it_went_first_and_nowhere_else() {
    let (mut pair, honest, update) = caught_update();
    let spoofed = Route { remote: victim(), ..honest };
    let first = give(&mut pair, 1, spoofed, &update);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, spoofed);
    let mine = pair.sides[1].paths[&PathId(0)].0;
    for other in [mine, honest] {
        assert_eq!(give(&mut pair, 1, other, &update), [], "the nonce and the SPI for one address told to another");
    }
    let again = give(&mut pair, 1, spoofed, &update);
    assert_eq!(again, first);
}

#[test]
fn an_echo_from_elsewhere_proves_nothing() {
    let (mut pair, honest, update) = caught_update();
    let spoofed = Route { remote: victim(), ..honest };
    let answer = give(&mut pair, 1, spoofed, &update).remove(0).1;
    // An accomplice at the address tells the peer what came there.
    let said = give(&mut pair, 0, reversed(honest), &answer);
    let echo = said.iter().find(|(_, bytes)| Packet::parse(bytes).unwrap().echo_response_signed().is_some()).unwrap();
    let mine = pair.sides[1].paths[&PathId(0)].0;
    for other in [mine, honest] {
        give(&mut pair, 1, other, &echo.1);
        assert!(!verified(&pair, 1).contains(&victim()));
    }
    give(&mut pair, 1, spoofed, &echo.1);
    assert!(verified(&pair, 1).contains(&victim()), "but from where it was asked for it does");
}

#[test]
fn a_renewal_from_elsewhere_is_a_new_path_without_proof() {
    let mut pair = Pair::usual(2);
    pair.connect(0);
    pair.run(SECOND * 3);
    let (now, peer) = (pair.now, pair.hit(1));
    let Side { host, rng, .. } = &mut pair.sides[0];
    host.renew_path(now, rng, peer, PathId(0));
    let mut update = None;
    pair.collect(0, &mut |flying, _| update = Some((flying.route, flying.bytes)));
    let (honest, update) = update.unwrap();
    let spoofed = Route { remote: victim(), ..honest };
    let mut sent: usize = give(&mut pair, 1, spoofed, &update).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(!verified(&pair, 1).contains(&victim()));
    assert!(pair.sides[1].paths.contains_key(&PathId(0)), "the old one stays until the new one is proven");
    // Nobody answers there; for as long as the offer stands.
    let until = pair.now + SECOND * 60;
    while pair.step(until, &mut |flying, fly| {
        if flying.route.local == victim() {
            sent += flying.bytes.len();
        } else {
            fly.push(flying);
        }
    }) {}
    assert!(sent <= 3 * update.len(), "{sent} bytes for {} of its own", update.len());
    assert!(!pair.sides[1].paths.values().any(|(route, ..)| route.remote == victim()), "and is then forgotten");
    pair.check_paths(2);
}

#[test]
fn esp_proves_a_path_on_its_own_route_while_its_spi_is_a_secret() {
    let (mut pair, honest, update) = caught_update();
    let spoofed = Route { remote: victim(), ..honest };
    give(&mut pair, 1, spoofed, &update);
    let (peer, id) = (pair.hit(0), PathId(1));
    let host = &mut pair.sides[1].host;
    assert!(!host.path_proved(peer, id, honest));
    assert!(host.path_proved(peer, id, spoofed));

    // The SPI of an offer that stands is told on another route: it could be known by whoever has never been there.
    let (mut pair, honest, update) = caught_update();
    let spoofed = Route { remote: victim(), ..honest };
    give(&mut pair, 1, spoofed, &update);
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[1]);
    host.add_locator(now, rng, addresses(&["10.3.0.2"], 10500)[0], false);
    let mut told = false;
    pair.collect(1, &mut |flying, _| {
        told |= Packet::parse(&flying.bytes).unwrap().locator_set().is_some();
    });
    assert!(told);
    assert!(!pair.sides[1].host.path_proved(peer, id, spoofed));
}

/// The signature is destroyed, the MAC is not: so it shows whether the signature was looked at.
fn without_signature(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    bytes
}

#[test]
fn a_replayed_update_costs_a_mac_and_is_answered_on_its_route_only() {
    let mut pair = Pair::usual(3);
    pair.connect(0);
    let mut seen = Vec::new();
    let until = pair.now + SECOND * 3;
    while pair.step(until, &mut |flying, fly| {
        if kind(&flying.bytes) == PacketKind::Update {
            seen.push((flying.to, flying.route, flying.bytes.clone()));
        }
        fly.push(flying);
    }) {}
    assert!(seen.len() >= 3);
    for (to, route, bytes) in seen {
        let before = *pair.sides[to].host.counters();
        let spoofed = Route { remote: victim(), ..route };
        assert_eq!(give(&mut pair, to, spoofed, &without_signature(&bytes)), []);
        assert_eq!(give(&mut pair, to, spoofed, &bytes), []);
        let after = pair.sides[to].host.counters();
        assert_eq!((after.replayed - before.replayed, after.bad_signature - before.bad_signature), (2, 0));
        for (there, _) in give(&mut pair, to, route, &bytes) {
            assert_eq!(there, route);
        }
    }
}

#[test]
fn a_replayed_close_costs_a_mac_and_is_answered_on_its_route_only() {
    let mut pair = Pair::usual(4);
    pair.connect(0);
    pair.run(SECOND * 3);
    let (now, peer) = (pair.now, pair.hit(1));
    let Side { host, rng, .. } = &mut pair.sides[0];
    host.close(now, rng, peer);
    let mut close = None;
    pair.collect(0, &mut |flying, _| close = Some((flying.route, flying.bytes)));
    let (route, close) = close.unwrap();
    let first = give(&mut pair, 1, route, &close);
    assert_eq!(first.len(), 1);
    let spoofed = Route { remote: victim(), ..route };
    assert_eq!(give(&mut pair, 1, spoofed, &close), []);
    assert_eq!(give(&mut pair, 1, spoofed, &without_signature(&close)), []);
    assert_eq!(pair.sides[1].host.counters().bad_signature, 0);
    assert_eq!(give(&mut pair, 1, route, &close), first, "the same bytes: nothing is signed again");
    let mut again = 0;
    for _ in 0..10_000 {
        pair.now += Duration::from_millis(1);
        again += give(&mut pair, 1, route, &close).len();
    }
    assert!((1..=14).contains(&again), "{again} in ten seconds");
    assert_eq!(give(&mut pair, 0, reversed(route), &first[0].1), []);
    assert_eq!(pair.sides[0].state(), State::Unassociated);
}

/// Side 1 has been killed and started again, with these locators of its peer.
fn restart(pair: &mut Pair, locators: Vec<SocketAddr>) {
    let [_, identity] = identities();
    let mut again = config(&addresses(&["10.1.0.2", "10.2.0.2"], 10500));
    again.first_generation = 100;
    let hit = pair.hit(0);
    pair.sides[1] = Side::new(identity, again, 77);
    pair.sides[1].host.add_peer(pair.now, Peer::new(hit, locators));
}

fn unknown(pair: &mut Pair, route: Route, spi: Spi, len: usize) -> Vec<Vec<u8>> {
    let (now, Side { host, rng, .. }) = (pair.now, &mut pair.sides[1]);
    host.unknown_spi(now, rng, route, spi, len);
    let mut said = Vec::new();
    pair.collect(1, &mut |flying, fly| {
        said.push(flying.bytes.clone());
        fly.push(flying);
    });
    said
}

#[test]
fn a_restarted_host_begins_anew_with_the_peer_whose_esp_it_cannot_read() {
    let mut pair = Pair::usual(5);
    pair.connect(0);
    pair.run(SECOND * 3);
    restart(&mut pair, addresses(&["10.1.0.1", "10.2.0.1"], 10500));
    let (route, outbound, _) = &pair.sides[0].paths[&PathId(0)];
    let (route, spi) = (reversed(*route), outbound.spi());
    let mut begun = 0;
    for _ in 0..1_000 {
        begun += unknown(&mut pair, route, spi, 100).len();
    }
    assert_eq!(begun, 1, "one I1 for any number of packets");
    pair.run(SECOND);
    pair.check_paths(2);
    assert_eq!(pair.sides[0].closed, ["the peer has begun anew"]);
}

#[test]
fn a_restarted_host_tells_one_that_it_cannot_find_and_that_one_doubts() {
    let mut pair = Pair::usual(6);
    pair.connect(0);
    pair.run(SECOND * 3);
    restart(&mut pair, Vec::new());
    let (way, outbound, _) = &pair.sides[0].paths[&PathId(0)];
    let (way, spi) = (*way, outbound.spi());
    assert_eq!(unknown(&mut pair, reversed(way), spi, 40), Vec::<Vec<u8>>::new(), "never more than what came");
    let hint = unknown(&mut pair, reversed(way), spi, 60).remove(0);
    assert!(hint.len() + 4 <= 60);
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.sides[0].doubted, [PathId(0)]);
    // A hint is believed by nobody: the association stands, and the hint that does not fit is not even told.
    assert_eq!(pair.sides[0].state(), State::Established);
    give(&mut pair, 0, way, &hint);
    assert_eq!(pair.sides[0].doubted.len(), 1, "once a second");
    pair.now += SECOND * 2;
    give(&mut pair, 0, Route { remote: victim(), ..way }, &hint);
    let invented = Builder::new(PacketKind::Notify, pair.hit(1), Hit::NULL)
        .push(&Parameter::Notification(Notification { message: 8203, data: vec![1, 2, 3, 4] }))
        .finish()
        .unwrap();
    give(&mut pair, 0, way, &invented);
    assert_eq!(pair.sides[0].doubted.len(), 1);
    give(&mut pair, 0, way, &hint);
    assert_eq!(pair.sides[0].doubted.len(), 2);
    let mut told = 0;
    for _ in 0..10_000 {
        pair.now += Duration::from_millis(1);
        told += unknown(&mut pair, reversed(way), spi, 100).len();
    }
    assert!((1..=108).contains(&told), "{told} hints in ten seconds");
}

/// What an I1 of a restarted peer meets at a host that is still associated.
#[test]
fn a_restarted_peer_is_let_in_at_once() {
    let mut pair = Pair::usual(7);
    pair.connect(0);
    pair.run(SECOND * 3);
    restart(&mut pair, addresses(&["10.1.0.1", "10.2.0.1"], 10500));
    pair.connect(1);
    pair.run(SECOND);
    pair.check_paths(2);
}

/// One opening is one path, from however many addresses it comes.
#[test]
fn copies_of_an_opening_make_no_more_paths() {
    let (mut pair, honest, update) = caught_update();
    for port in 1..200 {
        let spoofed = Route { remote: SocketAddr::new(victim().ip(), port), ..honest };
        give(&mut pair, 1, spoofed, &update);
    }
    assert_eq!(pair.sides[1].paths.len(), 2);
    assert_eq!(pair.sides[1].host.counters().replayed, 198);
}

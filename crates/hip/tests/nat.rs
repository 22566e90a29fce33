//! Two hosts that are each behind NATs, with two uplinks each (RFC 9028). Which of them can meet is what RFC 4787 and RFC 8445
//! say of the kinds of their NATs.

use crate::common;
use crate::common::nat::{A, B, FULL_CONE, Kind, Net, PORT_RESTRICTED, RESTRICTED, S, SECOND, SYMMETRIC};
use clock::Duration;
use hip::{Route, State};
use testkit::World;
use wire::hip::{PacketKind, Parameter};

/// Each uplink of both has a path.
fn met(net: &Net) -> bool {
    net.uplinks().iter().all(|used| used.len() == 2)
}

/// Both are registered; A begins. How long it takes until each of the uplinks has a path.
fn meet(kinds: [Option<Kind>; 2], seed: u64, loss: f64) -> (Net, Option<Duration>) {
    let mut net = Net::new(kinds, seed, |_, _| {});
    net.run(SECOND * 5);
    assert!([A, B].iter().all(|side| net.state(*side, S) == State::Established));
    net.loss = loss;
    net.connect(A, B);
    let began = net.now;
    let done = net.run_until(began + SECOND * 20, met);
    let time = done.then(|| net.now.saturating_since(began));
    (net, time)
}

/// Each kind of NAT that gives an inside address one port keeps nobody from meeting, whatever it lets in (RFC 8445 §2.1); and a
/// NAT with a port for each destination does not where the other one lets in what comes from any port.
#[test]
fn two_paths_through_two_nats_each() {
    let kinds = [
        [Some(FULL_CONE), Some(FULL_CONE)],
        [Some(RESTRICTED), Some(RESTRICTED)],
        [Some(PORT_RESTRICTED), Some(PORT_RESTRICTED)],
        [Some(FULL_CONE), Some(PORT_RESTRICTED)],
        [Some(SYMMETRIC), Some(FULL_CONE)],
        [Some(FULL_CONE), Some(SYMMETRIC)],
        [Some(SYMMETRIC), Some(RESTRICTED)],
        [Some(RESTRICTED), Some(SYMMETRIC)],
        [Some(PORT_RESTRICTED), None],
        [None, Some(SYMMETRIC)],
    ];
    for (number, kinds) in kinds.into_iter().enumerate() {
        let (net, time) = meet(kinds, number as u64, 0.0);
        let time = time.unwrap_or_else(|| panic!("{kinds:?}: {:?} {:?}", net.paths(A, B), net.parties[A].closed));
        assert!(time < SECOND * 3, "{kinds:?} after {time:?}");
        let relay = common::nat::at("198.51.100.7");
        assert!(net.paths(A, B).iter().all(|route| route.remote != relay), "straight");
        // A has at most two pairs for each of the four candidates of B, and as many for where B was not expected.
        assert!(net.parties[A].host.counters().checks_out <= 5 * 16);
    }
}

/// RFC 9028 §4.5: the packets of the exchange, and what the relay adds to them.
#[test]
fn the_exchange_goes_by_the_relay() {
    let (net, _) = meet([Some(PORT_RESTRICTED), Some(PORT_RESTRICTED)], 40, 0.0);
    for kind in [PacketKind::I1, PacketKind::I2] {
        let passed = net.sent_of(S, kind);
        let [(_, passed)] = &passed[..] else { panic!("{kind:?}: {}", passed.len()) };
        let from = passed.relay_from().unwrap().in_udp().unwrap();
        assert!([11, 12].contains(&match from.ip() {
            std::net::IpAddr::V4(v4) => v4.octets()[3],
            std::net::IpAddr::V6(_) => 0,
        }));
        assert!(passed.relay_hmac().is_some() && passed.from().is_none());
    }
    for kind in [PacketKind::R1, PacketKind::R2] {
        let all = net.sent_of(B, kind);
        let (_, answer) = all.iter().find(|(_, packet)| packet.receiver() == net.hit(A)).unwrap();
        assert!(answer.relay_to().is_some() && answer.relay_hmac().is_some());
        let all = net.sent_of(S, kind);
        let (route, passed) = all.iter().find(|(_, packet)| packet.sender() == net.hit(B)).unwrap();
        assert_eq!(passed.relay_to().unwrap().in_udp(), Some(route.remote));
        assert!(passed.relay_hmac().is_none());
    }
    // Where it was seen is told to who registers, in R2 and for each further uplink (RFC 9028 §5.6, §5.12).
    let told = |packet: &wire::hip::Packet<'_>| {
        packet.reg_from().is_some() || packet.parameters().any(|one| matches!(one, Parameter::MappedAddress(_)))
    };
    assert!(
        net.sent_of(S, PacketKind::R2)
            .iter()
            .filter(|(_, packet)| packet.sender() == net.hit(S))
            .all(|(_, r2)| told(r2))
    );
}

/// The relay is gone, and nobody misses it.
#[test]
fn who_has_met_needs_no_relay() {
    let (mut net, time) = meet([Some(PORT_RESTRICTED), Some(PORT_RESTRICTED)], 50, 0.0);
    assert!(time.is_some());
    net.run(SECOND);
    let before = net.paths(A, B);
    assert_eq!(before.len(), 2);
    net.dead.insert(S);
    net.run(SECOND * 50);
    assert_eq!(net.paths(A, B), before);
    assert_eq!((net.state(A, B), net.state(B, A)), (State::Established, State::Established));
    assert!(net.parties[A].closed.is_empty(), "{:?}", net.parties[A].closed);
}

/// RFC 9028 §4.9: an uplink that comes later has a NAT of its own. The server sees it, the peer hears of it, and both make way.
#[test]
fn an_uplink_that_comes_is_found_through_its_nat() {
    let mut net = Net::new([Some(PORT_RESTRICTED); 2], 60, |side, config| {
        if side == A {
            config.locators.pop();
        }
    });
    net.run(SECOND * 5);
    net.connect(A, B);
    net.run(SECOND * 10);
    assert_eq!(net.uplinks()[0].len(), 1);
    let second = net.parties[A].uplinks[1].0;
    let now = net.now;
    let common::nat::Party { host, rng, .. } = &mut net.parties[A];
    host.add_locator(now, rng, second, false);
    assert!(net.run_until(now + SECOND * 3, met), "{:?}", net.paths(A, B));
    // And one that goes takes its paths along, and no others.
    let first = net.parties[A].uplinks[0].0;
    let now = net.now;
    let common::nat::Party { host, rng, .. } = &mut net.parties[A];
    host.remove_locator(now, rng, first.ip());
    net.run(SECOND * 10);
    assert_eq!(net.uplinks()[0].iter().collect::<Vec<_>>(), [&second]);
    assert_eq!(net.uplinks()[1].len(), 2, "both of the peer's have a path: {:?}", net.paths(A, B));
}

/// RFC 9028 §4.12: where there is no way past the relay it carries the data, if its owner wants that, as much as he has set, and
/// for its clients only. A NAT that behaves from then on is found out, and the relay is needed no more.
#[test]
fn data_goes_by_a_relay_that_carries_it_for_want_of_another_way() {
    for kinds in [[SYMMETRIC, SYMMETRIC], [SYMMETRIC, PORT_RESTRICTED], [PORT_RESTRICTED, SYMMETRIC]] {
        let mut net = Net::new(kinds.map(Some), 70, |side, config| {
            if side == S {
                config.registrar.as_mut().unwrap().data = 100_000;
            }
        });
        // The heartbeats that keep mappings are the data plane's.
        net.nats.iter_mut().for_each(|nat| nat.timeout = SECOND * 600);
        net.run(SECOND * 5);
        let began = net.now;
        net.connect(A, B);
        let relay = common::nat::at("198.51.100.7");
        let by_relay = |net: &Net, side, peer| net.paths(side, peer).iter().any(|route| route.remote == relay);
        let done = net.run_until(began + SECOND * 3, |net| by_relay(net, A, B) && by_relay(net, B, A));
        assert!(done, "{kinds:?}: {:?} {:?}", net.paths(A, B), net.parties[A].closed);
        net.run(SECOND * 10);
        assert_eq!((net.paths(A, B).len(), net.paths(B, A).len()), (1, 1));
        // What each sends with the other's SPI gets to the other, and nobody else's does.
        let now = net.now;
        let mut seen = Vec::new();
        for (side, peer) in [(A, B), (B, A)] {
            let hit = net.hit(side);
            let (path, spi) = net.parties[peer].spis.iter().find(|((other, _), _)| *other == hit).unwrap();
            assert!(net.parties[peer].paths[path].1);
            let (spi, local) = (*spi, net.paths(side, peer)[0].local);
            let nat = net.parties[side].uplinks.iter().find(|(place, _)| *place == local).unwrap().1.unwrap();
            seen.push((spi, net.nats[nat].out(now, local, relay)));
        }
        for ((spi, from), (_, to)) in [(seen[0], seen[1]), (seen[1], seen[0])] {
            let server = &mut net.parties[S].host;
            let route = Route { local: relay, remote: from };
            assert_eq!(server.carry(now, route, spi, 100), Some(Some(Route { local: relay, remote: to })));
            let elsewhere = Route { remote: common::nat::at("192.0.2.66"), ..route };
            assert_eq!(server.carry(now, elsewhere, spi, 100), None);
            assert_eq!(server.carry(now, route, wire::Spi(spi.0 ^ 1), 100), None);
        }
        // 64 KiB at once, and 100 kB each second.
        let carried = |net: &mut Net, now| {
            let route = Route { local: relay, remote: seen[0].1 };
            (0..1_000).filter(|_| net.parties[S].host.carry(now, route, seen[0].0, 1_000) == Some(None)).count()
        };
        let refused = carried(&mut net, now);
        assert!((1_000 - 65..=1_000 - 64).contains(&refused), "{refused}");
        let refused = carried(&mut net, now + SECOND / 2);
        assert!((1_000 - 51..=1_000 - 49).contains(&refused), "{refused}");
        // Somebody has made the better NAT let in whatever comes.
        let better = net.nats.iter_mut().filter(|nat| nat.kind == PORT_RESTRICTED);
        if better.map(|nat| nat.kind = FULL_CONE).count() == 0 {
            continue;
        }
        net.run(SECOND * 80);
        assert!(met(&net) && !by_relay(&net, A, B) && !by_relay(&net, B, A), "{:?}", net.paths(A, B));
    }
}

/// Whatever is lost and reordered.
#[test]
fn losses_delay_it_and_no_more() {
    let mut times = Vec::new();
    for seed in 0..40 {
        let (net, time) = meet([Some(PORT_RESTRICTED), Some(PORT_RESTRICTED)], 1_000 + seed, 0.1);
        times.push(time.unwrap_or_else(|| panic!("{seed}: {:?} {:?}", net.paths(A, B), net.parties[A].closed)));
    }
    times.sort();
    // An exchange by a relay is eight packets on their way, of which half the time one is lost, and asked for after a second.
    assert!(times[times.len() / 2] < SECOND * 4, "{times:?}");
}

//! Mappings of NATs that change, hosts that are started again, keys that are renewed under traffic, in virtual time. The
//! oracles are the clock, the link and the receiver.

use crate::common::stream::{Receiver, Sender};
use crate::common::{LSIS, Mailbox, Program, Spec, World, locator, ms, udp_v6};
use clock::{Duration, Instant};
use link::ChangeKind;
use rand_core::SeedableRng;
use wedge::{Protocol, WedgeEvent};

const SEGMENT: usize = 1380;
const RATE: u64 = 8_000_000;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Sends a datagram every so often and notes when each comes.
struct Ticker {
    packet: Option<Vec<u8>>,
    next: Instant,
    heard: Vec<Instant>,
}

const TICK: Duration = ms(100);

impl Ticker {
    fn new(packet: Option<Vec<u8>>, from: Instant) -> Self {
        Self { packet, next: from, heard: Vec::new() }
    }
    /// The first that came from this time on, as time since then.
    fn first_after(&self, from: Instant) -> Option<Duration> {
        self.heard.iter().find(|at| **at > from).map(|at| *at - from)
    }
}

impl Program for Ticker {
    fn receive(&mut self, now: Instant, _packet: &[u8]) {
        self.heard.push(now);
    }
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + TICK;
        self.packet.iter().cloned().collect()
    }
    fn deadline(&self) -> Option<Instant> {
        self.packet.as_ref().map(|_| self.next)
    }
}

fn specs(paths: usize) -> Vec<Spec> {
    vec![Spec::new(RATE, ms(20)); paths]
}

fn established(paths: usize) -> World {
    let mut world = World::configured(&specs(paths), 10500, |config| {
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    let [a, b] = &mut boxes;
    world.run(at(3_000), &mut [a, b]);
    assert_eq!(boxes[1].received.len(), 1);
    assert!((0..2).all(|side| world.hosts[side].status(world.now).peers[0].paths.len() == paths));
    world
}

fn tickers(world: &World, senders: [bool; 2]) -> [Ticker; 2] {
    let packet = |side: usize| udp_v6(world.hit(side), world.hit(1 - side), (50, 51), b"tick");
    [0, 1].map(|side| Ticker::new(senders[side].then(|| packet(side)), world.now))
}

/// A NAT before the Initiator gives its first path another port and forgets the one before. The path is back in two seconds,
/// whoever sends, whether there is another or not, and it is the same association.
#[test]
fn a_rebound_path_is_back_in_two_seconds() {
    for paths in [1, 2] {
        for senders in [[true, false], [true, true], [false, true]] {
            let mut world = established(paths);
            let [mut a, mut b] = tickers(&world, senders);
            world.run(at(5_000), &mut [&mut a, &mut b]);
            world.nat = Some((0, 23456));
            world.run(at(65_000), &mut [&mut a, &mut b]);
            for (side, ticker) in [(1, &a), (0, &b)] {
                if senders[side] {
                    let again = ticker.first_after(at(5_050));
                    assert!(again.is_some_and(|again| again < ms(2_000)), "{paths} {senders:?} {side}: {again:?}");
                }
            }
            let status = world.hosts[1].status(world.now).peers.remove(0);
            let remotes: Vec<_> = status.paths.iter().map(|path| (path.remote.clone(), path.alive)).collect();
            assert_eq!(remotes.len(), paths);
            assert!(remotes.contains(&("10.0.0.1:23456".to_owned(), true)), "{paths} {senders:?}: {remotes:?}");
            let ended = |event: &WedgeEvent| matches!(event, WedgeEvent::Closed { .. });
            assert!(!world.events.iter().flatten().any(ended), "{:?}", world.events);
        }
    }
}

/// Two hosts have had nothing to say for minutes, and their heartbeats are rare. Meanwhile a NAT forgets a mapping, or the first path
/// dies. As soon as there is traffic it is found out as fast as ever, whoever speaks.
#[test]
fn what_happened_in_silence_is_found_out_with_the_first_traffic() {
    for senders in [[true, false], [true, true], [false, true]] {
        for (dies, offset) in [false, true].into_iter().flat_map(|dies| [0, 4_000, 9_000, 14_500].map(|at| (dies, at)))
        {
            let mut world = established(2);
            let [mut a, mut b] = tickers(&world, [false, false]);
            world.run(at(200_000 + offset), &mut [&mut a, &mut b]);
            if dies {
                let now = world.now;
                world.links[0].iter_mut().for_each(|link| link.change(now, ChangeKind::Down));
            } else {
                world.nat = Some((0, 23456));
            }
            world.run(at(201_000 + offset), &mut [&mut a, &mut b]);
            let began = world.now;
            let [mut a, mut b] = tickers(&world, senders);
            world.run(began + ms(2_000), &mut [&mut a, &mut b]);
            for (side, ticker) in [(1, &a), (0, &b)].into_iter().filter(|(side, _)| senders[*side]) {
                let case = format!("{senders:?}, {dies}, {offset}, from {side}");
                let heard = ticker.heard.len();
                // 20 in two seconds.
                assert!(
                    ticker.first_after(began).is_some_and(|first| first < ms(1_000)) && heard >= 10,
                    "{case}: {heard}"
                );
            }
            if dies {
                for host in (0..2).filter(|host| senders[*host]) {
                    let told = world.events[host].iter().any(|event| matches!(event, WedgeEvent::PathDead { .. }));
                    assert!(told, "{senders:?}, {offset}: {host}");
                }
            }
        }
    }
}

/// A TCP goes on over a mapping that changes.
#[test]
fn a_transfer_goes_on_over_a_rebound_path() {
    let mut world = established(1);
    let (a, b) = (world.hit(0), world.hit(1));
    let (mut sender, mut receiver) = (Sender::new(b, a, SEGMENT), Receiver::new(a, b, SEGMENT));
    world.run(at(8_000), &mut [&mut receiver, &mut sender]);
    world.nat = Some((0, 4_000));
    world.run(at(14_000), &mut [&mut receiver, &mut sender]);
    let after = receiver.goodput(at(10_000), at(14_000));
    assert!(after > 0.8 * RATE as f64, "{after}");
}

/// What is authentic but comes from elsewhere moves nothing by itself, and nothing goes there but one small question.
#[test]
fn a_copied_packet_moves_nothing() {
    let mut world = established(1);
    let [mut a, mut b] = tickers(&world, [true, true]);
    world.run(at(4_000), &mut [&mut a, &mut b]);
    world.record = Some(Vec::new());
    world.run(at(4_150), &mut [&mut a, &mut b]);
    let (_, copied) = world.record.take().unwrap().into_iter().rfind(|(side, _)| *side == 0).unwrap();
    let elsewhere = std::net::SocketAddr::from(([203, 0, 113, 9], 10500));
    let route = hip::Route { local: locator(0, 1, 10500), remote: elsewhere };
    let datagram =
        wedge::Datagram { route, protocol: copied.protocol, payload: &copied.bytes, ecn: wedge::Ecn::NotEct };
    let now = world.now;
    world.hosts[1].handle_network(now, &mut world.rngs[1], &[datagram]);
    world.record = Some(Vec::new());
    world.run(at(8_000), &mut [&mut a, &mut b]);
    let there: Vec<usize> = world
        .record
        .take()
        .unwrap()
        .iter()
        .filter(|(_, transmit)| transmit.route.remote == elsewhere)
        .map(|(_, transmit)| transmit.bytes.len() + 28)
        .collect();
    assert!(there.iter().sum::<usize>() <= 3 * (copied.bytes.len() + 28) && there.len() <= 1, "{there:?}");
    let status = world.hosts[1].status(world.now).peers.remove(0);
    assert_eq!(status.paths[0].remote, "10.0.0.1:10500");
    assert!(status.paths[0].alive);
}

/// One host is killed and starts again with nothing; only one of the two sends. In two seconds packets get through.
#[test]
fn a_restart_costs_two_seconds_whoever_sends() {
    for killed in [0, 1] {
        for sender in [0, 1] {
            let mut world = established(2);
            let mut senders = [false; 2];
            senders[sender] = true;
            let [mut a, mut b] = tickers(&world, senders);
            world.run(at(6_000), &mut [&mut a, &mut b]);
            let mut fresh = World::configured(&specs(2), 10500, |config| {
                config.hip.first_generation = 100;
                config.paths.iter_mut().for_each(|path| path.rate = None);
            });
            std::mem::swap(&mut world.hosts[killed], &mut fresh.hosts[killed]);
            // Another start, other random numbers.
            world.rngs[killed] = rand_chacha::ChaCha20Rng::from_seed([77; 32]);
            world.run(at(12_000), &mut [&mut a, &mut b]);
            let heard = if sender == 0 { &b } else { &a };
            // What was under way when it was killed may still come, and is nobody's.
            let again = heard.first_after(at(6_100));
            assert!(again.is_some_and(|again| again < ms(2_000)), "{killed} killed, {sender} sends: {again:?}");
        }
    }
}

/// A server is killed and takes a while to start again; its client, behind a NAT, is where it cannot know. However long
/// nothing was sent before, as when a TCP waits for its timer: in two seconds of its start packets get through.
#[test]
fn a_server_that_cannot_find_its_client_is_found_in_two_seconds() {
    for quiet in [0, 200, 500, 800, 950] {
        for down in [50, 400, 900, 1_300] {
            let mut world = established(1);
            let [mut a, mut b] = tickers(&world, [false, true]);
            let killed = at(6_000 + quiet);
            world.run(at(6_000), &mut [&mut a, &mut b]);
            let nothing = &mut [Mailbox::default(), Mailbox::default()];
            let [one, other] = nothing;
            world.run(killed, &mut [one, other]);
            let fresh = || {
                World::configured(&specs(1), 10500, |config| {
                    config.hip.first_generation = 100;
                    config.paths.iter_mut().for_each(|path| path.rate = None);
                })
            };
            // Nobody that the client knows is there.
            let [somebody, _] = fresh().hosts;
            world.hosts[1] = somebody;
            world.run(killed + ms(down), &mut [one, other]);
            let [_, mut server] = fresh().hosts;
            server.add_peer(wedge::PeerConfig::new("a", world.hit(0), LSIS[0], []));
            world.hosts[1] = server;
            world.rngs[1] = rand_chacha::ChaCha20Rng::from_seed([77; 32]);
            b.next = world.now;
            let before = a.heard.len();
            world.run(killed + ms(down + 5_000), &mut [&mut a, &mut b]);
            let again = a.heard.get(before).map(|heard| *heard - (killed + ms(down)));
            assert!(again.is_some_and(|again| again < ms(1_500)), "quiet for {quiet}, down for {down}: {again:?}");
        }
    }
}

/// A TCP goes on when the daemon below the receiver is started again, and what waited is not lost.
#[test]
fn a_transfer_goes_on_over_a_restart() {
    let mut world = established(1);
    let (a, b) = (world.hit(0), world.hit(1));
    let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
    world.run(at(6_000), &mut [&mut sender, &mut receiver]);
    let fresh = World::configured(&specs(1), 10500, |config| {
        config.hip.first_generation = 100;
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    let [_, again] = fresh.hosts;
    world.hosts[1] = again;
    world.rngs[1] = rand_chacha::ChaCha20Rng::from_seed([77; 32]);
    world.run(at(12_000), &mut [&mut sender, &mut receiver]);
    let after = receiver.goodput(at(8_500), at(12_000));
    assert!(after > 0.75 * RATE as f64, "{after}");
}

/// Keys are renewed every 300 packets in the middle of a transfer: nothing is lost by it, and it costs next to nothing.
#[test]
fn renewals_under_traffic_lose_nothing() {
    // Of one host, and of both at once: 0 and 1 are the hosts.
    for (paths, sides) in [(1, &[0][..]), (1, &[1]), (1, &[0, 1]), (2, &[0]), (2, &[1]), (2, &[0, 1])] {
        let run = |renew_at: u32| {
            let mut world = World::configured(&specs(paths), 10500, |config| {
                if sides.iter().any(|side| config.lsi == LSIS[*side]) {
                    config.renew_at = renew_at;
                }
                config.paths.iter_mut().for_each(|path| path.rate = None);
            });
            let (a, b) = (world.hit(0), world.hit(1));
            let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
            world.run(at(30_000), &mut [&mut sender, &mut receiver]);
            let renewed = world.events[0].iter().filter(|event| matches!(event, WedgeEvent::PathDown { .. })).count();
            (receiver.goodput(at(5_000), at(30_000)), sender.timeouts, renewed, *world.hosts[1].counters())
        };
        let (without, _, none, _) = run(u32::MAX);
        let (with, timeouts, renewed, counters) = run(300);
        assert_eq!(none, 0);
        assert!(renewed > 30, "{renewed} by {sides:?} on {paths}");
        assert!(with >= 0.95 * without, "{with} of {without}, {renewed} renewals by {sides:?} on {paths}");
        assert_eq!((counters.unknown_spi, timeouts), (0, 0), "{renewed} renewals by {sides:?} on {paths}");
    }
}

/// A host loses its only path just after it got new keys, with something left to be told of the old ones: there is nothing
/// to tell it on, and no deadline for that.
#[test]
fn what_cannot_be_told_of_old_keys_keeps_nobody_awake() {
    for wait in 0..10 {
        let mut world = World::configured(&specs(1), 10500, |config| {
            config.renew_at = 300;
            config.paths.iter_mut().for_each(|path| path.rate = None);
        });
        let (a, b) = (world.hit(0), world.hit(1));
        let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
        let renewed = |event: &WedgeEvent| matches!(event, WedgeEvent::PathDown { .. });
        while !world.events[0].iter().any(renewed) {
            let next = world.now + ms(1);
            world.run(next, &mut [&mut sender, &mut receiver]);
        }
        let gone = world.now + ms(wait);
        world.run(gone, &mut [&mut sender, &mut receiver]);
        world.hosts[0].remove_path(gone, &mut world.rngs[0], locator(0, 0, 10500).ip());
        world.run(gone + ms(1_500), &mut [&mut sender, &mut receiver]);
        assert_eq!(world.hosts[0].counters().stuck_timers, 0, "{wait} ms after a renewal");
    }
}

/// Asking for new keys where nobody answers keeps the other paths waiting for theirs.
#[test]
fn a_path_that_does_not_answer_is_not_asked_for_new_keys() {
    const RENEW_AT: u32 = 40;
    let mut world = World::configured(&specs(2), 10500, |config| {
        config.paths.iter_mut().for_each(|path| path.rate = None);
        if config.lsi == LSIS[1] {
            config.renew_at = RENEW_AT;
        }
    });
    // The Initiator, which is the other host, opens a dead path anew once.
    let mut senders = tickers(&world, [true, false]);
    let sent = |world: &World| {
        let status = world.hosts[1].status(world.now).peers.remove(0);
        status
            .paths
            .iter()
            .find(|path| path.local == locator(1, 1, 10500).to_string())
            .map_or(0, |path| path.packets_out)
    };
    let [a, b] = &mut senders;
    // Just before the end of its keys nothing gets through on the second path.
    while sent(&world) + 15 < u64::from(RENEW_AT) {
        let next = world.now + ms(50);
        assert!(next < at(20_000));
        world.run(next, &mut [a, b]);
    }
    world.links[1].iter_mut().for_each(|link| link.change(world.now, ChangeKind::Down));
    world.record = Some(Vec::new());
    world.run(world.now + ms(12_000), &mut [a, b]);
    assert!(sent(&world) > u64::from(RENEW_AT), "{}", sent(&world));
    let asked = world.record.iter().flatten().filter(|(from, packet)| {
        *from == 1
            && packet.protocol == Protocol::Udp
            && packet.route.local == locator(1, 1, 10500)
            && packet.bytes.starts_with(&[0; 4])
    });
    assert_eq!(asked.count(), 0);
}

/// A host with a thousand other peers, who do nothing, does no more for each packet.
#[test]
fn idle_peers_cost_a_packet_nothing() {
    let turns = |idle: u16| {
        let mut world = established(1);
        for number in 0..idle {
            let [high, low] = number.to_be_bytes();
            let mut hit = world.hit(1);
            (hit.0[14], hit.0[15]) = (hit.0[14] ^ (high | 1), low);
            let lsi = wire::Lsi([1, 1, high, low]);
            world.hosts[0].add_peer(wedge::PeerConfig::new(format!("idle{number}"), hit, lsi, []));
        }
        let before = world.hosts[0].counters().peer_turns;
        let [mut a, mut b] = tickers(&world, [true, true]);
        world.run(at(13_000), &mut [&mut a, &mut b]);
        (world.hosts[0].counters().peer_turns - before, b.heard.len())
    };
    let (alone, heard) = turns(0);
    assert!(heard >= 95 && alone > 50, "{heard} {alone}");
    assert_eq!(turns(1_000), (alone, heard));
}

/// Where a client with one link is: its network, of which there are many, and the server has an address of its own.
struct Walk {
    world: World,
    at: usize,
}

impl Walk {
    fn path(number: usize) -> wedge::LocalPath {
        wedge::LocalPath::new(format!("link{number}"), locator(number, 0, 10500))
    }

    /// In the first of so many networks.
    fn new(networks: usize, seed: u64) -> Self {
        let mut world = World::configured(&specs(networks), 10500, |config| {
            config.paths.truncate(1);
            config.paths.iter_mut().for_each(|path| path.rate = None);
        });
        world.meshed = true;
        world.rngs = [seed, seed + 1_000].map(rand_chacha::ChaCha20Rng::seed_from_u64);
        let (a, b) = (world.hit(0), world.hit(1));
        // The server knows who comes, and not from where.
        world.hosts[0].add_peer(wedge::PeerConfig::new("b", b, LSIS[1], [locator(0, 1, 10500)]));
        world.hosts[1].add_peer(wedge::PeerConfig::new("a", a, LSIS[0], []));
        Self { world, at: 0 }
    }

    fn join(&mut self, number: usize) {
        let (now, [host, _], [rng, _]) = (self.world.now, &mut self.world.hosts, &mut self.world.rngs);
        host.add_path(now, rng, Self::path(number)).unwrap();
        // Nothing that is sent to the address before gets there.
        self.at = number;
    }

    fn leave(&mut self, number: usize) {
        let (now, [host, _], [rng, _]) = (self.world.now, &mut self.world.hosts, &mut self.world.rngs);
        host.remove_path(now, rng, locator(number, 0, 10500).ip());
        self.world.links[number].iter_mut().for_each(|link| link.change(now, ChangeKind::Down));
    }
}

/// A client walks through twenty addresses under a download, in 40 s: the next is there up to 300 ms before the last is gone, or
/// after. Whatever the order and the moment, nothing stands still for a second, it stays one association, and keys and paths do
/// not pile up.
#[test]
fn a_client_walks_through_twenty_addresses() {
    const NETWORKS: usize = 20;
    for seed in 0..8 {
        let mut walk = Walk::new(NETWORKS, seed);
        let (a, b) = (walk.world.hit(0), walk.world.hit(1));
        // The client is the first host, and downloads.
        let (mut receiver, mut sender) = (Receiver::new(a, b, SEGMENT), Sender::new(b, a, SEGMENT));
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        boxes[0].to_send.push(udp_v6(a, b, (9, 9), b"hello"));
        let [left, right] = &mut boxes;
        walk.world.run(at(2_000), &mut [left, right]);
        let mut chance = clock::Rng::from_seed(seed);
        let mut begun = None;
        for next in 1..NETWORKS {
            let moment = at(2_000 * next as u64 + 2_000) + ms(500).mul_f64(chance.unit());
            walk.world.run(moment, &mut [&mut receiver, &mut sender]);
            begun.get_or_insert(moment);
            let gap = ms(300).mul_f64(chance.unit());
            let (last, makes_first) = (walk.at, chance.chance(0.5));
            if makes_first {
                walk.join(next);
            } else {
                walk.leave(last);
            }
            walk.world.run(moment + gap, &mut [&mut receiver, &mut sender]);
            if makes_first { walk.leave(last) } else { walk.join(next) }
        }
        let end = at(2_000 * NETWORKS as u64 + 4_000);
        walk.world.run(end, &mut [&mut receiver, &mut sender]);
        let from = begun.unwrap();
        let times = receiver.progress.iter().map(|(time, _)| *time).filter(|time| *time > from - ms(500));
        let times: Vec<Instant> = times.chain([end]).collect();
        let stall = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(stall < ms(1_000), "seed {seed}: {stall:?}");
        let goodput = receiver.goodput(from, end);
        // Headers, up to 300 ms of two seconds without an address, and what it takes to find the new path's rate.
        assert!(goodput > 0.5 * RATE as f64, "seed {seed}: {goodput}");
        let events = walk.world.events.iter().flatten();
        let begun = events.clone().filter(|event| matches!(event, WedgeEvent::Established { .. })).count();
        assert_eq!(begun, 2, "seed {seed}: once on each side");
        for (side, host) in walk.world.hosts.iter().enumerate() {
            let peer = host.status(end).peers.remove(0);
            let paths: Vec<_> = peer.paths.iter().map(|path| (path.local.clone(), path.remote.clone())).collect();
            let ends = [locator(NETWORKS - 1, 0, 10500).to_string(), locator(0, 1, 10500).to_string()];
            assert_eq!(paths, [(ends[side].clone(), ends[1 - side].clone())], "seed {seed}");
        }
    }
}

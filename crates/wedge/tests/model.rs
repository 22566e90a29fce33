//! Two wedges over random networks that lose, repeat, reorder, fail and change, whose clocks jump and whose
//! configuration changes, and what must hold whatever happens: nothing is delivered that was not sent, packets come twice
//! only where a path was taken for lost, memory is bounded, timers do not spin, and once the network is good again
//! packets get through.
//!
//! A run follows from its seed. `SINNET_MODEL_SEEDS` is how many seeds to run, or `FIRST..END` which; what fails prints
//! its seed.

use crate::common::stream::{Receiver, Sender};
use crate::common::{LSIS, Program, Spec, Weather, World, ms, udp_v4, udp_v6};
use clock::{Duration, Instant, Rng};
use link::{ChangeKind, Link, LinkConfig, LossConfig, QueueConfig};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wedge::{PeerConfig, Status, WedgeEvent};
use wire::ip::{IpPacket, protocol};
use wire::{Hit, tcp};

/// How many seeds are run where nobody says.
const SEEDS: u64 = 80;
/// Looks at what must hold at any time are so far apart.
const SLICE: Duration = Duration::from_millis(20);
/// Between packets that show whether anything gets through.
const PROBE: Duration = Duration::from_millis(50);
/// Nothing may be stuck for longer once the network is good: a host gives up a peer that is silent for fifteen seconds,
/// a base exchange takes some more, and its retransmissions wait for four seconds at most.
const RECOVERED: Duration = Duration::from_secs(30);
/// And a TCP inside, whose retransmission timer has doubled meanwhile.
const TCP_RECOVERED: Duration = Duration::from_secs(45);
/// The flow of the probes; the others are below.
const PROBES: u16 = 99;
const SEGMENT: usize = 1200;

/// A flow of numbered packets.
struct Flow {
    number: u16,
    six: bool,
    interval: Duration,
    most: u64,
    next: Instant,
    until: Instant,
    sent: u32,
}

/// All programs of a host.
struct Programs {
    hits: (Hit, Hit),
    side: usize,
    rng: Rng,
    flows: Vec<Flow>,
    /// When each probe was sent.
    probes: Vec<Instant>,
    /// How often each packet was delivered, by flow and number, and when first.
    received: BTreeMap<(u16, u32), (u32, Instant)>,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    /// How often each segment was sent and delivered, by its place in the stream.
    segments_sent: BTreeMap<u32, u32>,
    segments: BTreeMap<u32, u32>,
    /// Segments delivered for the first time although a later one had been.
    overtaken: u64,
    highest: u32,
    to_send: Vec<Vec<u8>>,
}

/// What a packet of a flow carries: nobody else could have made it.
fn content(side: usize, flow: u16, number: u32, length: usize) -> Vec<u8> {
    let mut data = number.to_be_bytes().to_vec();
    data.extend((length as u16).to_be_bytes());
    data.resize(length.max(6), 0);
    Rng::from_seed(side as u64 | u64::from(flow) << 1 | u64::from(number) << 17).fill(&mut data[6..]);
    data
}

impl Programs {
    fn new(side: usize, hits: (Hit, Hit), mut rng: Rng, storm: Instant) -> Self {
        let count = rng.below(4) as u16;
        let mut flows: Vec<Flow> = (0..count)
            .map(|number| {
                let next = Instant::ZERO + ms(rng.below(3_000));
                // Of 24 kbit/s to some Mbit/s.
                let interval = Duration::from_secs_f64(0.2 * 0.005f64.powf(rng.unit()));
                let most = 20 + rng.below(1_200);
                Flow { number, six: rng.chance(0.7), interval, most, next, until: storm, sent: 0 }
            })
            .collect();
        let until = Instant::FAR_FUTURE;
        flows.push(Flow { number: PROBES, six: true, interval: PROBE, most: 10, next: Instant::ZERO, until, sent: 0 });
        Self {
            hits,
            side,
            rng,
            flows,
            probes: Vec::new(),
            received: BTreeMap::new(),
            sender: None,
            receiver: None,
            segments_sent: BTreeMap::new(),
            segments: BTreeMap::new(),
            overtaken: 0,
            highest: 0,
            to_send: Vec::new(),
        }
    }

    /// Probes sent from `from` on, and those of them that the other side has.
    fn through(&self, other: &Self, from: Instant, until: Instant) -> (u32, u32, Option<Instant>) {
        let first = self.probes.partition_point(|at| *at < from);
        let last = self.probes.partition_point(|at| *at < until);
        let heard = |number: &usize| other.received.get(&(PROBES, *number as u32)).map(|(_, at)| *at);
        let arrived = (first..last).filter_map(|number| heard(&number));
        ((last - first) as u32, arrived.clone().count() as u32, arrived.min())
    }
}

impl Program for Programs {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        let view = IpPacket::parse(packet).expect("a whole packet");
        match view.protocol() {
            protocol::TCP => {
                let segment = tcp::Segment::parse(view.payload()).expect("a whole segment");
                assert!(segment.checksum_is_right(view.src(), view.dst()));
                if segment.payload_len() > 0 {
                    let place = segment.seq() / SEGMENT as u32;
                    let times = self.segments.entry(place).or_default();
                    *times += 1;
                    self.overtaken += u64::from(*times == 1 && place < self.highest);
                    self.highest = self.highest.max(place);
                }
                if let Some(end) = &mut self.sender {
                    end.receive(now, packet);
                }
                if let Some(end) = &mut self.receiver {
                    end.receive(now, packet);
                }
            }
            protocol::UDP => {
                let datagram = wire::udp::Datagram::parse(view.payload()).expect("a whole datagram");
                let data = datagram.payload();
                let number = u32::from_be_bytes(*data.first_chunk().unwrap());
                let flow = datagram.dst_port() - 2_000;
                assert_eq!(datagram.src_port(), 1_000 + flow);
                assert!(data == content(1 - self.side, flow, number, data.len()), "this was never sent");
                let (times, _) = self.received.entry((flow, number)).or_insert((0, now));
                *times += 1;
            }
            // The wedge's own words: unreachable, too big.
            protocol::ICMP | protocol::ICMPV6 => {}
            other => panic!("a packet of protocol {other}"),
        }
    }

    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut packets = std::mem::take(&mut self.to_send);
        let (from, to) = self.hits;
        for flow in &mut self.flows {
            while flow.next <= now && flow.next < flow.until {
                let data = content(self.side, flow.number, flow.sent, 6 + self.rng.below(flow.most) as usize);
                let ports = (1_000 + flow.number, 2_000 + flow.number);
                packets.push(if flow.six {
                    udp_v6(from, to, ports, &data)
                } else {
                    udp_v4(LSIS[self.side], LSIS[1 - self.side], ports, &data)
                });
                if flow.number == PROBES {
                    self.probes.push(now);
                }
                flow.sent += 1;
                flow.next += flow.interval;
                if flow.next + flow.interval * 20 < now {
                    // The clock has jumped: nobody makes up for a second.
                    flow.next = now + flow.interval;
                }
            }
        }
        let streams =
            self.sender.iter_mut().map(|end| end.send(now)).chain(self.receiver.iter_mut().map(|r| r.send(now)));
        for packet in streams.flatten() {
            if let Ok(view) = IpPacket::parse(&packet)
                && let Ok(segment) = tcp::Segment::parse(view.payload())
                && segment.payload_len() > 0
            {
                *self.segments_sent.entry(segment.seq() / SEGMENT as u32).or_default() += 1;
            }
            packets.push(packet);
        }
        packets
    }

    fn deadline(&self) -> Option<Instant> {
        let flows = self.flows.iter().filter(|flow| flow.next < flow.until).map(|flow| flow.next);
        flows.chain(self.sender.as_ref().and_then(Program::deadline)).min()
    }
}

/// What was seen at any time.
#[derive(Default)]
struct Seen {
    /// Most of all windows together, in bytes, by side.
    windows: [u64; 2],
    bridges: [u64; 2],
    /// What the windows carry in 0.3 s: while they are found so much may wait twice, of 512 kB at most.
    searches: [u64; 2],
}

fn link(rng: &mut Rng, fast: f64) -> LinkConfig {
    let rate = 1e5 * (fast / 1e5).powf(rng.unit());
    let loss = match rng.below(4) {
        0 => LossConfig::Random(0.2 * rng.unit() * rng.unit()),
        1 => LossConfig::GilbertElliott { to_bad: 0.02, to_good: 0.2, loss_good: 0.0, loss_bad: rng.unit() },
        _ => LossConfig::None,
    };
    LinkConfig {
        rate: Some(rate as u64),
        delay: Duration::from_secs_f64(0.3 * rng.unit() * rng.unit()),
        queue: QueueConfig::Packets(4 + rng.below(200) as u32),
        loss,
        ..LinkConfig::default()
    }
}

/// What the wedge must keep at any time, whatever the network does.
fn inspect(world: &World, seen: &mut Seen, before: &mut [(u64, u64); 2]) {
    for (side, host) in world.hosts.iter().enumerate() {
        let status = host.status(world.now);
        let peer = &status.peers[0];
        let measured = || peer.paths.iter().filter_map(|path| path.measured);
        let windows: u64 = measured().map(|path| path.cwnd).sum();
        seen.windows[side] = seen.windows[side].max(windows);
        let most = seen.windows[side];
        assert!(windows < 64 << 20, "windows of {windows}");
        if let Some(buffer) = peer.send_buffer {
            // Windows may have been larger between two looks, and what they needed room for leaves in seconds.
            // Besides, what the paths deliver while the first packet of a distant one is on its way, which is no more than in the
            // longest round trip.
            let longest = peer.paths.iter().filter_map(|path| path.srtt_ms).fold(0.0, f64::max) * 1e-3;
            let rate: u64 = measured().map(|path| path.delivery_rate).sum();
            let bridge = &mut seen.bridges[side];
            *bridge = (*bridge).max((rate as f64 / 8.0 * longest) as u64);
            let timed = peer.paths.iter().filter_map(|path| Some((path.measured?.cwnd as f64, path.srtt_ms?)));
            let carried: f64 = timed.map(|(cwnd, rtt)| cwnd / rtt * 300.0).sum();
            let search = &mut seen.searches[side];
            *search = (*search).max(carried.min(512e3) as u64);
            let bound = (4 * most).max(2 * *search).max(128_000) + 2 * *bridge + 1_600;
            assert!(buffer.bytes as u64 <= bound, "{buffer:?}, windows of {most}");
            // What is sent again besides: no more than was under way.
            assert!(buffer.packets as u64 <= bound / 60 + most / 60, "{buffer:?}");
        }
        for path in &peer.paths {
            assert!(path.queued <= 64_000_000 / 8 / 10, "{path:?}");
            if let Some(path) = path.measured {
                // Heartbeats and acknowledgments may come on top.
                assert!(path.in_flight as u64 <= most + 100_000, "{path:?}");
                assert!(path.remembered < 1 << 16, "{path:?}");
            }
        }
        assert!(peer.held_bytes <= (8 << 20) * peer.flows.max(1) && peer.held_bytes <= 16 << 20, "{}", peer.held_bytes);
        let counters = host.counters();
        // Numbers are skipped, and nobody here lies.
        assert_eq!((counters.invented_acknowledgments, counters.stuck_timers), (0, 0));
        assert!(host.held_bytes() <= 48 << 20, "{}", host.held_bytes());
        let packets = counters.network_in + counters.network_out + counters.application_in + counters.application_out;
        let (timers, count) = (world.timers[side] - before[side].0, packets - before[side].1);
        before[side] = (world.timers[side], packets);
        // A timer per packet for its pace, one for its order, and what goes on without packets.
        assert!(timers <= 60 + 4 * count, "{timers} timers for {count} packets in {SLICE:?}");
    }
}

fn states(world: &World) -> Vec<Status> {
    world.hosts.iter().map(|host| host.status(world.now)).collect()
}

fn peer(world: &World, side: usize, paths: &[u8]) -> PeerConfig {
    let other = 1 - side;
    let address = |path: &u8| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, *path, other as u8 + 1)), 10500);
    PeerConfig::new(["a", "b"][other], world.hit(other), LSIS[other], paths.iter().map(address))
}

/// What happens to the network and the hosts in a storm.
fn mishap(world: &mut World, rng: &mut Rng, fast: f64) {
    let (now, paths) = (world.now, world.links.len() as u64);
    let path = rng.below(paths) as usize;
    let side = rng.below(2) as usize;
    let change = |world: &mut World, rng: &mut Rng, what: ChangeKind| {
        // One direction now and then.
        let both = rng.chance(0.7);
        (0..2).filter(|from| both || *from == side).for_each(|from| world.links[path][from].change(now, what));
    };
    match rng.below(16) {
        0..=3 => change(world, rng, ChangeKind::Down),
        4..=7 => change(world, rng, ChangeKind::Up),
        8 | 9 => {
            let rate = 1e5 * (fast / 1e5).powf(rng.unit());
            change(world, rng, ChangeKind::Rate(Some(rate as u64)));
        }
        10 => {
            let delay = ms(rng.below(300));
            change(world, rng, ChangeKind::Delay(delay));
        }
        11 => {
            let loss = LossConfig::Random(0.2 * rng.unit());
            change(world, rng, ChangeKind::Loss(loss));
        }
        12 => {
            // Of a little, of some seconds as in a suspended machine, of an hour.
            let jump = ms([300, 5_000, 3_600_000][rng.below(3) as usize]);
            match rng.below(3) {
                0 => world.now += jump,
                _ => world.ahead[side] += jump,
            }
        }
        13 => {
            let known: Vec<u8> = (0..paths as u8).filter(|_| rng.chance(0.6)).collect();
            let known = if known.is_empty() { vec![path as u8] } else { known };
            let peer = peer(world, side, &known);
            world.hosts[side].add_peer(peer);
        }
        14 if rng.chance(0.3) => {
            let own = world.now + world.ahead[side];
            world.hosts[side].close_all(own, &mut world.rngs[side]);
        }
        _ => {
            for weather in &mut world.weather {
                weather.twice = 0.1 * rng.unit();
            }
        }
    }
}

fn run(seed: u64) -> Duration {
    let mut rng = Rng::from_seed(seed);
    let paths = 1 + rng.below(4) as usize;
    let tcp = rng.chance(0.6);
    let fast = if tcp { 2e7 } else { 1e8 };
    let links: Vec<[LinkConfig; 2]> = (0..paths)
        .map(|_| {
            let there = link(&mut rng, fast);
            // Some are asymmetric.
            let back = if rng.chance(0.7) { there.clone() } else { link(&mut rng, fast) };
            [there, back]
        })
        .collect();
    let specs: Vec<Spec> = links.iter().map(|[l, _]| Spec::new(l.rate.unwrap(), l.delay)).collect();
    let rule = ["sinnet", "lia", "olia", "balia", "cubic"][rng.below(5) as usize];
    let told = rng.chance(0.3);
    let feedback = rng.chance(0.8);
    let mut world = World::configured(&specs, 10500, |config| {
        config.hip.feedback = feedback;
        config.congestion = rule.parse().unwrap();
        config.paths.iter_mut().filter(|_| !told).for_each(|path| path.rate = None);
    });
    world.meshed = true;
    world.rngs = [2 * seed, 2 * seed + 1].map(ChaCha20Rng::seed_from_u64);
    world.rng = Rng::from_seed(rng.next_u64());
    world.links = links.into_iter().map(|pair| pair.map(|l| Link::new(l, Rng::from_seed(rng.next_u64())))).collect();
    let disorder = rng.chance(0.3);
    for weather in &mut world.weather {
        let late = if disorder { (0.1 * rng.unit(), ms(rng.below(60))) } else { (0.0, Duration::ZERO) };
        *weather = Weather { twice: if rng.chance(0.3) { 0.05 * rng.unit() } else { 0.0 }, late };
    }
    let storm = Instant::ZERO + ms(3_000 + rng.below(7_000));
    let (a, b) = (world.hit(0), world.hit(1));
    let mut left = Programs::new(0, (a, b), Rng::from_seed(rng.next_u64()), storm);
    let mut right = Programs::new(1, (b, a), Rng::from_seed(rng.next_u64()), storm);
    if tcp {
        left.sender = Some(Sender::new(a, b, SEGMENT));
        right.receiver = Some(Receiver::new(b, a, SEGMENT));
    }
    let mut seen = Seen::default();
    let mut before = [(0, 0); 2];
    let mut slice = |world: &mut World, left: &mut Programs, right: &mut Programs, end: Instant| {
        while world.now < end {
            world.run((world.now + SLICE).min(end), &mut [left, right]);
            inspect(world, &mut seen, &mut before);
        }
    };
    // The storm.
    let mishaps = rng.chance(0.85);
    while world.now < storm {
        let next = world.now + ms(20 + rng.below(1_200));
        slice(&mut world, &mut left, &mut right, next.min(storm));
        if mishaps && world.now < storm {
            mishap(&mut world, &mut rng, fast);
        }
    }
    // The network is good again, and both know all of each other's locators.
    let good = world.now;
    for pair in &mut world.links {
        for link in pair {
            let (rate, delay) = (link.rate().unwrap_or_default(), link.delay());
            link.change(good, ChangeKind::Up);
            link.change(good, ChangeKind::Loss(LossConfig::None));
            link.change(good, ChangeKind::Rate(Some(rate.max(500_000))));
            link.change(good, ChangeKind::Delay(delay.min(ms(100))));
        }
    }
    world.weather.iter_mut().for_each(|weather| *weather = Weather::default());
    let all: Vec<u8> = (0..paths as u8).collect();
    for side in 0..2 {
        let peer = peer(&world, side, &all);
        world.hosts[side].add_peer(peer);
    }
    let both = |left: &Programs, right: &Programs, from: Instant, until: Instant| {
        [left.through(right, from, until), right.through(left, from, until)]
    };
    let recovered = loop {
        let next = world.now + ms(100);
        slice(&mut world, &mut left, &mut right, next);
        let [there, back] = both(&left, &right, good, Instant::FAR_FUTURE);
        if let (Some(there), Some(back)) = (there.2, back.2) {
            break there.max(back);
        }
        assert!(world.now < good + RECOVERED, "stuck: {:#?}", states(&world));
    };
    // Who is told rates keeps to them, and learns nothing without feedback: if the links have others by now, a TCP fills the
    // queues of the network, and a short one drops what comes beside it.
    let believes = told && !feedback;
    // Queues that were full, and what TCP had to wait for, drain; then all that is sent arrives.
    let calm = world.now + ms(2_000);
    // The longest queue of the slowest link holds some five seconds.
    slice(&mut world, &mut left, &mut right, calm + ms(if tcp { 8_000 } else { 2_500 }));
    let [there, back] = both(&left, &right, calm, calm + ms(1_500));
    for (sent, arrived, _) in [there, back] {
        // Short queues that a TCP fills lose a few.
        assert!(
            arrived * 100
                >= sent
                    * if tcp && believes {
                        20
                    } else if tcp {
                        60
                    } else {
                        95
                    },
            "{arrived} of {sent} after the storm: {:#?}",
            states(&world)
        );
    }
    if tcp {
        let progress = |right: &Programs| right.receiver.as_ref().unwrap().progress.last().unwrap().1;
        let reached = progress(&right);
        while progress(&right) < reached + 20 {
            let next = world.now + ms(200);
            slice(&mut world, &mut left, &mut right, next);
            assert!(
                world.now < good + TCP_RECOVERED,
                "TCP is stuck at {reached}: {:#?}",
                world.hosts[0].status(world.now)
            );
        }
    }
    twice(&world, [&left, &right]);
    let status = world.hosts[1].status(world.now).peers.remove(0);
    // What was dropped before it was numbered, or with its association, or as the very first of its flow with a path, TCP
    // sends again behind what was not.
    let counters = world.hosts[0].counters();
    let dropped = counters.queue_full
        + counters.waiting_full
        + counters.no_association
        + counters.rescheduled
        + counters.waited_too_long;
    let ended = world.events.iter().flatten().any(|event| matches!(event, WedgeEvent::Closed { .. }));
    if feedback && !ended && dropped + status.proven_losses + status.expired_holes == 0 {
        assert!(right.overtaken == 0, "{} out of order: {:#?}", right.overtaken, states(&world));
    }
    recovered - good
}

/// A packet is sent a second time where it was taken for lost, and again where it was under way on a path that died.
fn twice(world: &World, programs: [&Programs; 2]) {
    for side in 0..2 {
        let (from, to) = (programs[side], programs[1 - side]);
        let counters = world.hosts[side].counters();
        // The pieces of a segment count as the segment each.
        let again = counters.repaired + counters.rescheduled + counters.segments_cut;
        // Once, repaired three times, and rescued from dead paths three times.
        let most = 7;
        let udp: u64 = to.received.values().map(|(times, _)| u64::from(times - 1)).sum();
        let mut tcp = 0;
        assert!(to.received.values().all(|(times, _)| *times <= most), "{most}");
        for (place, times) in &to.segments {
            let sent = from.segments_sent.get(place).copied().unwrap_or_default();
            assert!(sent > 0, "segment {place} was never sent");
            assert!(*times <= sent * most, "segment {place} was sent {sent} times and came {times} times");
            tcp += u64::from(times.saturating_sub(sent));
        }
        assert!(udp + tcp <= again, "{udp} and {tcp} came twice, {again} were sent again");
    }
}

/// Silence that was asked about in one flight counted in the next, and acknowledgments that came faster than a path carries
/// them piled up there, or kept all else from it (2341).
#[test]
fn seeds_that_failed_once() {
    for seed in [2089, 2312, 2341, 3494] {
        run(seed);
    }
}

#[test]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "which seed failed, and how long it took at most")]
fn nothing_is_forged_doubled_or_stuck_whatever_the_network_does() {
    let seeds = std::env::var("SINNET_MODEL_SEEDS").unwrap_or_default();
    let seeds = match seeds.split_once("..") {
        Some((first, end)) => first.parse().unwrap()..end.parse().unwrap(),
        None => 0..seeds.parse().unwrap_or(SEEDS),
    };
    let mut slowest = Duration::ZERO;
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let result = std::panic::catch_unwind(|| run(seed));
        match result {
            Ok(took) => slowest = slowest.max(took),
            Err(_) => {
                eprintln!(
                    "to see it again: SINNET_MODEL_SEEDS={seed}..{} cargo test -p sinnet-wedge --test all model",
                    seed + 1
                );
                failed.push(seed);
                if failed.len() == 10 {
                    break;
                }
            }
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?} failed");
    println!("seeds {seeds:?}: packets got through {slowest:?} after the network was good again at the latest");
}

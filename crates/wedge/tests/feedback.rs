//! Two hosts that give each other feedback: what is measured, and what happens when paths fail or lose.

use crate::common::stream::{Receiver, Sender};
use crate::common::{Mailbox, Program, Spec, World, locator, ms, udp_v6};
use clock::{Duration, Instant, Rng};
use congestion::{Backoff, Cause, Group, Rule, WindowRule};
use link::{Link, LinkConfig, QueueConfig};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::sync::{Arc, Mutex};
use wedge::{PathStatus, WedgeEvent};
use wire::ip::IpPacket;

const SEGMENT: usize = 1380;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Nobody has told the rates.
fn unconfigured(specs: &[Spec]) -> World {
    World::configured(specs, 10500, |config| config.paths.iter_mut().for_each(|path| path.rate = None))
}

/// Under the usual rule, which bears the losses that are a link's own.
fn usual(specs: &[Spec]) -> World {
    World::configured(specs, 10500, |config| {
        config.congestion = multipath::usual_rule();
        config.paths.iter_mut().for_each(|path| path.rate = None);
    })
}

fn download(world: &World) -> (Sender, Receiver) {
    let (a, b) = (world.hit(0), world.hit(1));
    (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT))
}

fn paths(world: &World) -> Vec<PathStatus> {
    world.hosts[0].status(world.now).peers[0].paths.clone()
}

/// The longest time without anything in order, in seconds, between two instants in milliseconds.
fn longest_stall(receiver: &Receiver, from: u64, to: u64) -> f64 {
    let late = receiver.progress.iter().filter(|(time, _)| (at(from)..=at(to)).contains(time));
    let times: Vec<f64> = late.map(|(time, _)| time.as_secs_f64()).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

#[test]
fn rates_and_round_trips_are_measured() {
    let mut world = unconfigured(&[Spec::new(8_000_000, ms(30)), Spec::new(2_000_000, ms(10))]);
    let (mut sender, mut receiver) = download(&world);
    world.run(at(8_000), &mut [&mut sender, &mut receiver]);
    for (path, (rate, rtt)) in paths(&world).iter().zip([(8e6, 60.0), (2e6, 20.0)]) {
        let measured = path.measured.unwrap();
        assert!((measured.delivery_rate as f64 / rate - 1.0).abs() < 0.1, "{path:?}");
        // The queue of the link is one and a half times what fits into a round trip.
        let srtt = path.srtt_ms.unwrap();
        assert!(srtt >= rtt && srtt <= 2.6 * rtt + 20.0, "{path:?}");
        assert_eq!((measured.spurious, measured.reordered), (0, 0));
    }
    assert!(world.hosts[0].counters().bad_feedback == 0 && world.hosts[0].counters().feedback_in > 500);
    // Small: less than a twentieth of what they report of.
    let back: u64 = world.hosts[1].status(world.now).peers[0].paths.iter().map(|path| path.bytes_out).sum();
    let there: u64 = paths(&world).iter().map(|path| path.bytes_out).sum();
    assert!(back < there / 5, "{back} for {there}, with TCP's acknowledgments");
}

/// Sends datagrams, so many at once.
struct Flood {
    datagram: Vec<u8>,
    train: usize,
    every: Duration,
    next: Instant,
}

impl Program for Flood {
    fn receive(&mut self, _now: Instant, _packet: &[u8]) {}
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + self.every;
        vec![self.datagram.clone(); self.train]
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

#[test]
fn a_window_grows_by_a_packet_in_a_round_trip_however_seldom_reports_are_read() {
    // RFC 5681 §3.1. A busy machine reads several reports at once.
    for nap in [0, 20, 50] {
        let mut world = World::configured(&[Spec::new(8_000_000, ms(30))], 10500, |config| {
            config.congestion = "mhip".parse().unwrap();
            config.paths[0].rate = None;
        });
        world.naps = [ms(nap), ms(0)];
        let datagram = udp_v6(world.hit(0), world.hit(1), (7, 7), &[0; 1300]);
        let mut flood = Flood { datagram, train: 1, every: Duration::from_micros(500), next: Instant::ZERO };
        let (mut grown, mut round_trips, mut before) = (0.0, 0.0, f64::MAX);
        for time in (5_000..20_000).step_by(100) {
            world.run(at(time), &mut [&mut flood, &mut Mailbox::default()]);
            let path = &paths(&world)[0];
            let cwnd = path.measured.unwrap().cwnd as f64 / 1500.0;
            // Without reductions, and without the round trip after each, in which nothing grows.
            if cwnd > before {
                grown += cwnd - before;
                round_trips += 100.0 / path.srtt_ms.unwrap();
            }
            before = cwnd;
        }
        assert!(round_trips > 50.0, "{round_trips} with naps of {nap} ms");
        let growth = grown / round_trips;
        assert!((0.8..=1.1).contains(&growth), "{growth} with naps of {nap} ms");
    }
}

#[test]
fn a_rate_that_changes_tenfold_is_followed() {
    let mut world = unconfigured(&[Spec::new(10_000_000, ms(20)), Spec::new(1_000_000, ms(20))]);
    let (mut sender, mut receiver) = download(&world);
    world.run(at(6_000), &mut [&mut sender, &mut receiver]);
    for side in 0..2 {
        world.links[0][side].set_rate(at(6_000), Some(1_000_000));
    }
    world.run(at(9_000), &mut [&mut sender, &mut receiver]);
    let rate = paths(&world)[0].measured.unwrap().delivery_rate;
    assert!((800_000..1_300_000).contains(&rate), "{rate}");
    for side in 0..2 {
        world.links[0][side].set_rate(at(9_000), Some(10_000_000));
    }
    world.run(at(20_000), &mut [&mut sender, &mut receiver]);
    let goodput = receiver.goodput(at(12_000), at(20_000));
    assert!(goodput > 0.7 * 11e6 * 0.93, "{goodput}");
}

/// As QUIC's acknowledgments are: a loss is one of a hundred packets, however few bytes these have together.
#[test]
fn small_packets_of_a_link_that_loses_do_not_wait() {
    let mut world = usual(&[Spec { loss: 0.02, ..Spec::new(50_000_000, ms(20)) }]);
    let datagram = udp_v6(world.hit(0), world.hit(1), (7, 7), &[0; 60]);
    let mut flood = Flood { datagram, train: 1, every: Duration::from_micros(500), next: Instant::ZERO };
    let mut mailbox = Mailbox::default();
    world.run(at(10_000), &mut [&mut flood, &mut mailbox]);
    let late = mailbox.received.iter().filter(|(time, _)| *time >= at(9_000)).count();
    assert!(late > 1_900, "{late} of 2,000");
    let window = paths(&world)[0].measured.unwrap().cwnd;
    assert!(window >= 15_000, "{window}");
}

/// The last packets before a pause are lost, or the report of them: that is no silence.
#[test]
fn what_is_lost_before_a_pause_kills_no_path() {
    for seed in 0..4 {
        let mut world = usual(&[Spec { loss: 0.02, ..Spec::new(50_000_000, ms(20)) }; 2]);
        world.rngs = [2 * seed, 2 * seed + 1].map(ChaCha20Rng::seed_from_u64);
        let datagram = udp_v6(world.hit(0), world.hit(1), (7, 7), &[0; 1300]);
        let mut flood = Flood { datagram, train: 60, every: ms(55), next: Instant::ZERO };
        world.run(at(2_000), &mut [&mut flood, &mut Mailbox::default()]);
        world.events.iter_mut().for_each(Vec::clear);
        world.run(at(40_000), &mut [&mut flood, &mut Mailbox::default()]);
        let dead = world.events[0].iter().filter(|event| matches!(event, WedgeEvent::PathDead { .. })).count();
        assert_eq!(dead, 0, "seed {seed}");
    }
}

#[test]
fn a_path_that_dies_under_load_is_left_soon_and_taken_back() {
    for victim in 0..2 {
        let mut world = unconfigured(&[Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]);
        let (mut sender, mut receiver) = download(&world);
        world.run(at(5_000), &mut [&mut sender, &mut receiver]);
        world.events.iter_mut().for_each(Vec::clear);
        for side in 0..2 {
            world.links[victim][side].set_up(at(5_000), false);
        }
        world.run(at(5_250), &mut [&mut sender, &mut receiver]);
        let dead = |event: &WedgeEvent| matches!(event, WedgeEvent::PathDead { .. });
        assert!(world.events[0].iter().any(dead), "{:?}", paths(&world));
        world.run(at(9_000), &mut [&mut sender, &mut receiver]);
        let stall = longest_stall(&receiver, 4_900, 5_450);
        assert!(stall <= 0.2, "{stall}");
        // The TCP inside has a window for two paths, and hears by losses that there is one: each takes it a round trip
        // through the queues.
        let stall = longest_stall(&receiver, 1_000, 9_000);
        assert!(stall <= 0.3, "{stall}");
        let left = [4e6, 8e6][victim];
        let goodput = receiver.goodput(at(6_000), at(9_000));
        assert!(goodput > 0.8 * left * 0.93, "{goodput}");
        for side in 0..2 {
            world.links[victim][side].set_up(at(9_000), true);
        }
        world.run(at(16_000), &mut [&mut sender, &mut receiver]);
        assert!(paths(&world).iter().all(|path| path.alive));
        let goodput = receiver.goodput(at(12_000), at(16_000));
        assert!(goodput > 0.85 * 12e6 * 0.93, "{goodput}");
        assert_eq!(sender.timeouts, 0, "the TCP inside has noticed");
    }
}

/// Never slower than the best path alone, also with one that loses or is far away.
#[test]
fn a_bad_second_path_does_no_harm() {
    let good = Spec::new(8_000_000, ms(20));
    let run = |specs: &[Spec]| {
        let mut world = unconfigured(specs);
        let (mut sender, mut receiver) = download(&world);
        world.run(at(40_000), &mut [&mut sender, &mut receiver]);
        receiver.goodput(at(5_000), at(40_000))
    };
    let alone = run(&[good]);
    for bad in [Spec { loss: 0.05, ..Spec::new(4_000_000, ms(20)) }, Spec::new(4_000_000, ms(200))] {
        let both = run(&[good, bad]);
        assert!(both >= 0.95 * alone, "{bad:?}: {both} with it, {alone} without");
    }
}

/// Two programs of a host at once: one of a TCP, and a call that sends a packet every so often.
struct Both<'a> {
    download: &'a mut dyn Program,
    call: Vec<Vec<u8>>,
    every: Duration,
    next: Instant,
    /// When calls' packets arrived, and which.
    heard: Vec<(Instant, u16)>,
}

impl Program for Both<'_> {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        let view = IpPacket::parse(packet).unwrap();
        match wire::udp::Datagram::parse(view.payload()) {
            Ok(datagram) if view.protocol() == wire::ip::protocol::UDP => {
                self.heard.push((now, datagram.dst_port()));
            }
            _ => self.download.receive(now, packet),
        }
    }
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut packets = self.download.send(now);
        if now >= self.next && !self.call.is_empty() {
            packets.push(self.call.remove(0));
            self.next = now + self.every;
        }
        packets
    }
    fn deadline(&self) -> Option<Instant> {
        let call = (!self.call.is_empty()).then_some(self.next);
        call.into_iter().chain(self.download.deadline()).min()
    }
}

/// The mean over a call of 1 Mbit/s of its jitter, in seconds.
fn jitter_beside_a_download(seed: u64) -> f64 {
    let mut world = unconfigured(&[Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]);
    world.rngs = [2 * seed, 2 * seed + 1].map(ChaCha20Rng::seed_from_u64);
    let (mut sender, mut receiver) = download(&world);
    let (a, b) = (world.hit(0), world.hit(1));
    let call: Vec<_> = (0..5_000u16).map(|n| udp_v6(a, b, (7, n), &[0; 250])).collect();
    let (next, every) = (at(5_000), ms(2));
    let mut left = Both { download: &mut sender, call, every, next, heard: Vec::new() };
    let mut right = Both { download: &mut receiver, call: Vec::new(), every, next, heard: Vec::new() };
    world.run(at(18_000), &mut [&mut left, &mut right]);
    let heard = std::mem::take(&mut right.heard);
    let numbers: std::collections::BTreeSet<u16> = heard.iter().map(|(_, n)| *n).collect();
    assert!(5_000 - numbers.len() <= 5, "{} lost", 5_000 - numbers.len());
    assert!(receiver.goodput(at(6_000), at(15_000)) > 0.85 * 11e6 * 0.93);
    // RFC 3550 §6.4.1: the mean deviation of the spacing.
    let (mut jitter, mut sum) = (0.0f64, 0.0);
    for pair in heard.windows(2) {
        let sent = (f64::from(pair[1].1) - f64::from(pair[0].1)) * 0.002;
        let spacing = (pair[1].0 - pair[0].0).as_secs_f64() - sent;
        jitter += (spacing.abs() - jitter) / 16.0;
        sum += jitter;
    }
    sum / (heard.len() - 1) as f64
}

/// One call has 4.4 to 9.4 ms, and 6.7 on average of ten; 7.1 before numbers were skipped at random, whatever the seed.
#[test]
fn a_call_beside_a_download_feels_nothing() {
    let jitters: Vec<f64> = (50..56).map(jitter_beside_a_download).collect();
    assert!(jitters.iter().sum::<f64>() / (jitters.len() as f64) < 0.010, "{jitters:?}");
}

/// A download's acknowledgments are more than the slow direction takes, and go past what waits: a call on it had gaps of two
/// to fifteen seconds.
#[test]
fn acknowledgments_leave_room_for_others() {
    for (fast, rate, delay, packets) in
        [(20_000_000, 600_000, 180, 20), (10_000_000, 300_000, 180, 8), (10_000_000, 400_000, 50, 8)]
    {
        let mut world = unconfigured(&[Spec::new(fast, ms(delay))]);
        let (delay, queue) = (ms(delay), QueueConfig::Packets(packets));
        let slow = LinkConfig { rate: Some(rate), delay, queue, ..LinkConfig::default() };
        world.links[0][1] = Link::new(slow, Rng::from_seed(1));
        let (mut sender, mut receiver) = download(&world);
        let (a, b) = (world.hit(0), world.hit(1));
        let call: Vec<_> = (0..400u16).map(|n| udp_v6(b, a, (7, n), &[0; 20])).collect();
        let (next, every) = (at(5_000), ms(50));
        let mut left = Both { download: &mut sender, call: Vec::new(), every, next, heard: Vec::new() };
        let mut right = Both { download: &mut receiver, call, every, next, heard: Vec::new() };
        world.run(at(30_000), &mut [&mut left, &mut right]);
        let heard = left.heard.iter().map(|(_, n)| n).collect::<std::collections::BTreeSet<_>>().len();
        assert!(heard >= 380, "{heard} of 400 over {rate} bit/s");
        let gaps = left.heard.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64());
        let longest = gaps.fold(0.0, f64::max);
        assert!(longest < 0.6, "silent for {longest} s over {rate} bit/s");
    }
}

#[test]
fn a_peer_that_is_no_sinnet_host_hears_nothing_of_it() {
    let specs = [Spec::new(8_000_000, ms(30))];
    let hosts = [true, false].map(|feedback| World::configured(&specs, 10500, |c| c.hip.feedback = feedback).hosts);
    let [[a, _], [_, b]] = hosts;
    let mut world = World::new(&specs);
    world.hosts = [a, b];
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
    let [left, right] = &mut boxes;
    world.run(at(3_000), &mut [left, right]);
    assert_eq!(boxes[1].received.len(), 1);
    assert!(world.hosts.iter().all(|host| !host.status(world.now).peers[0].feedback));
    assert!(world.hosts.iter().all(|host| host.counters().feedback_out == 0));
}

/// What two hosts send in a minute from then on, on each of two paths: packets, and bytes with the IP header.
fn minute(world: &mut World, boxes: &mut [Mailbox; 2]) -> [(usize, usize); 2] {
    let (end, [left, right]) = (world.now + Duration::from_secs(60), boxes);
    world.record = Some(Vec::new());
    world.run(end, &mut [left, right]);
    let record = world.record.take().unwrap();
    [0, 1].map(|path| {
        let ends = [locator(path, 0, 10500), locator(path, 1, 10500)];
        let on = record.iter().filter(|(_, sent)| ends.contains(&sent.route.local));
        // IPv4 and UDP (RFC 791 §3.1, RFC 768).
        on.fold((0, 0), |(packets, bytes), (_, sent)| (packets + 1, bytes + sent.bytes.len() + 28))
    })
}

/// Heartbeats of hosts that have nothing to say are rare, for links may be paid by the byte: a question every two seconds, its
/// answer and reports of them; after a minute one in 15 seconds (RFC 8445 §11), until there is something to say again.
#[test]
fn two_idle_hosts_leave_each_other_alone() {
    let mut world = unconfigured(&[Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]);
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    for _ in 0..2 {
        boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
        let (end, [left, right]) = (world.now + Duration::from_secs(5), &mut boxes);
        world.run(end, &mut [left, right]);
        for (path, (packets, bytes)) in minute(&mut world, &mut boxes).into_iter().enumerate() {
            assert!((190..=220).contains(&packets) && bytes < 24_000, "{path}: {packets} packets, {bytes} bytes");
        }
        // The second minute to the fourth.
        for _ in 2..5 {
            for (path, (packets, bytes)) in minute(&mut world, &mut boxes).into_iter().enumerate() {
                assert!((21..=35).contains(&packets) && bytes < 3_700, "{path}: {packets} packets, {bytes} bytes");
            }
        }
    }
}

/// A Reno that tells what it draws first.
#[derive(Clone, Debug)]
struct Drawing(Arc<Mutex<Vec<u64>>>);

impl WindowRule for Drawing {
    fn seed(&mut self, mut rng: Rng) {
        self.0.lock().unwrap().push(rng.next_u64());
    }
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        group.path(path).reno(acked)
    }
    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        Backoff::to(group.path(path).cwnd / 2.0, group.path(path).mss)
    }
}

/// Each end of an association draws otherwise, and a run that is repeated draws the same.
#[test]
fn rules_that_draw_have_a_stream_of_their_own() {
    let draws = || {
        let draws = Arc::new(Mutex::new(Vec::new()));
        let mut world = World::configured(&[Spec::new(8_000_000, ms(20))], 10500, |config| {
            config.congestion = Rule::custom("drawing", Drawing(draws.clone()));
        });
        let (mut sender, mut receiver) = download(&world);
        world.run(at(2000), &mut [&mut sender, &mut receiver]);
        std::mem::take(&mut *draws.lock().unwrap())
    };
    let first = draws();
    assert!(first.len() == 2 && first[0] != first[1], "{first:?}");
    assert_eq!(draws(), first);
}

//! Every scheduler in whole hosts: a download over unequal paths does not stall, and packets go where the scheduler's
//! definition says. Each expectation is wrong for others of them.

use crate::common::stream::{Receiver, Sender};
use crate::common::{Mailbox, Program, Spec, World, locator, ms, udp_v6};
use clock::{Duration, Instant};
use scheduler::Scheduler;
use wedge::Transmit;
use wire::ip::IpPacket;

const SLOW: Spec = Spec::new(10_000_000, ms(30));
const FAST: Spec = Spec::new(20_000_000, ms(10));
/// One from another continent.
const FAR: Spec = Spec::new(10_000_000, ms(100));

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Hosts with this scheduler that measure their paths.
fn world(name: &str, specs: &[Spec]) -> World {
    World::configured(specs, 10500, |config| {
        config.scheduler = name.parse().unwrap();
        config.paths.iter_mut().for_each(|path| path.rate = None);
    })
}

/// What is missing is waited for 500 ms at most: who stalls for longer sends nothing. The TCP inside has no timeout.
#[test]
fn a_download_over_unequal_paths_does_not_stall() {
    for name in Scheduler::NAMES {
        let mut world = world(name, &[SLOW, FAST]);
        let mut sender = Sender::new(world.hit(0), world.hit(1), 1380);
        let mut receiver = Receiver::new(world.hit(1), world.hit(0), 1380);
        world.run(at(10_000), &mut [&mut sender, &mut receiver]);
        let goodput = receiver.goodput(at(2_000), at(10_000)) / 1e6;
        let times: Vec<Instant> = receiver.progress.iter().map(|(time, _)| *time).filter(|t| *t > at(2_000)).collect();
        let stall = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        // Headers take 6 % of full packets. Who sends everything everywhere gets what one path carries, the others more.
        let bounds = if *name == "redundant" { 0.85 * 20.0..20.0 } else { 20.0..30.0 };
        assert!(bounds.contains(&goodput), "{name}: {goodput}");
        assert!(stall < ms(400), "{name}: {stall:?}");
        assert_eq!(sender.timeouts, 0, "{name}");
    }
}

/// Sends datagrams of 1,000 bytes, numbered, one in each interval.
struct Call {
    from: wire::Hit,
    to: wire::Hit,
    interval: Duration,
    next: Instant,
    sent: u32,
}

impl Program for Call {
    fn receive(&mut self, _now: Instant, _packet: &[u8]) {}
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + self.interval;
        self.sent += 1;
        let mut payload = vec![0; 952];
        payload[..4].copy_from_slice(&self.sent.to_be_bytes());
        vec![udp_v6(self.from, self.to, (5000, 5000), &payload)]
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

/// What became of a call.
struct Told {
    /// Packets of each path, as parts of the call's.
    shares: Vec<f64>,
    /// How often each packet arrived, and how long the first took.
    arrivals: Vec<(u32, Duration)>,
}

fn call(mut world: World, interval: Duration) -> Told {
    let mut call = Call { from: world.hit(0), to: world.hit(1), interval, next: at(100), sent: 0 };
    let mut inbox = Mailbox::default();
    world.run(at(2_000), &mut [&mut call, &mut inbox]);
    let first = call.sent;
    world.record = Some(Vec::new());
    world.run(at(8_000), &mut [&mut call, &mut inbox]);
    let (record, last) = (world.record.take().unwrap(), call.sent);
    world.run(at(8_300), &mut [&mut call, &mut inbox]);
    let share = |path| {
        let ours = |sent: &Transmit| sent.route.local == locator(path, 0, 10500) && sent.bytes.len() > 900;
        record.iter().filter(|(side, sent)| *side == 0 && ours(sent)).count() as f64 / f64::from(last - first)
    };
    let mut arrivals = vec![(0, Duration::ZERO); (last - first) as usize];
    for (time, packet) in &inbox.received {
        let IpPacket::V6(packet) = IpPacket::parse(packet).unwrap() else { continue };
        let Some(number) = packet.payload().get(8..12).and_then(|number| number.first_chunk()) else { continue };
        let number = u32::from_be_bytes(*number);
        if (first + 1..=last).contains(&number) {
            let (times, delay) = &mut arrivals[(number - first - 1) as usize];
            if *times == 0 {
                *delay = *time - (at(100) + interval * u64::from(number - 1));
            }
            *times += 1;
        }
    }
    Told { shares: vec![share(0), share(1)], arrivals }
}

/// It is less than one path could carry alone.
#[test]
fn a_call_goes_where_the_definition_says() {
    for (name, expected) in [
        // The quicker one; cheapest is the first that is configured.
        ("fastest-path-first", [0.0, 1.0]),
        ("lowest-rtt", [0.0, 1.0]),
        ("blest", [0.0, 1.0]),
        ("ecf", [0.0, 1.0]),
        ("sttf", [0.0, 1.0]),
        ("otias", [0.0, 1.0]),
        ("cheapest-path-first", [1.0, 0.0]),
        ("round-robin", [0.5, 0.5]),
        ("redundant", [1.0, 1.0]),
    ] {
        let told = call(world(name, &[SLOW, FAST]), ms(2));
        for (share, expected) in told.shares.iter().zip(expected) {
            // What was under way at the beginning and the end.
            assert!((share - expected).abs() < 0.01, "{name}: {:?}", told.shares);
        }
        assert!(told.arrivals.iter().all(|(times, _)| *times == 1), "{name}: not each arrives once");
    }
    // Alike paths are given alike parts by who lays places out ahead, whatever their round-trip times differ by.
    let daps = call(world("daps", &[FAST, FAST]), ms(2)).shares;
    assert!(daps.iter().all(|share| (0.4..0.6).contains(share)), "{daps:?}");
}

/// Where rates are configured, one path has twice the other's.
#[test]
fn weights_are_rates() {
    for (name, expected) in [("weighted", [1.0 / 3.0, 2.0 / 3.0]), ("round-robin", [0.5, 0.5])] {
        let world = World::configured(&[SLOW, FAST], 10500, |config| {
            config.scheduler = name.parse().unwrap();
            config.hip.feedback = false;
        });
        let told = call(world, ms(2));
        for (share, expected) in told.shares.iter().zip(expected) {
            assert!((share - expected).abs() < 0.01, "{name}: {:?}", told.shares);
        }
    }
}

/// Of two copies hardly ever both are lost, and nobody has to wait until one is sent again.
#[test]
fn copies_spare_the_wait_for_what_is_lost() {
    let late = |name: &str| {
        // Half of what a window at this loss carries: 1.22/√0.03 = 7 packets a round trip (Mathis and others, 1997).
        let told = call(world(name, &[Spec { loss: 0.03, ..SLOW }, Spec { loss: 0.03, ..FAST }]), ms(20));
        // A packet without copies comes twice where it was sent again though it was not lost.
        assert!(name != "redundant" || told.arrivals.iter().all(|(times, _)| *times <= 1), "{name}: twice");
        // Later than the slower path alone would be.
        let late = told.arrivals.iter().filter(|(times, delay)| *times == 0 || *delay > ms(35)).count();
        late as f64 / told.arrivals.len() as f64
    };
    let (redundant, lowest_rtt) = (late("redundant"), late("lowest-rtt"));
    // Expected are 0.03² and 0.03 of 300, and what waits for the window: with nine seeds up to 2.3 % and at least 3.3 %.
    assert!(redundant * 2.0 < lowest_rtt && lowest_rtt > 0.01, "{redundant}, {lowest_rtt}");
}

/// So many datagrams at once over a near and a far path, each 8 bytes longer than the one before: those that took the far one.
fn burst(name: &str, packets: usize, memory: usize) -> Vec<usize> {
    let mut world = World::configured(&[FAST, FAR], 10500, |config| {
        config.scheduler = name.parse().unwrap();
        config.memory = memory;
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    let (mut outbox, mut inbox) = (Mailbox::default(), Mailbox::default());
    let (a, b) = (world.hit(0), world.hit(1));
    let datagram = |number: usize| udp_v6(a, b, (5000, 5000), &vec![0; 200 + 8 * number]);
    // Some before, so that round-trip times are known.
    for step in 0..20 {
        outbox.to_send = vec![datagram(0)];
        world.run(at(1_000 + 50 * step), &mut [&mut outbox, &mut inbox]);
    }
    world.run(at(3_000), &mut [&mut outbox, &mut inbox]);
    (world.record, inbox.received) = (Some(Vec::new()), Vec::new());
    outbox.to_send = (0..packets).map(datagram).collect();
    world.run(at(5_000), &mut [&mut outbox, &mut inbox]);
    assert_eq!(inbox.received.len(), packets, "{name}: not all arrived");
    let far = locator(1, 0, 10500);
    let sent = world.record.unwrap().into_iter().filter(|(side, sent)| *side == 0 && sent.route.local == far);
    // The flow has a label: ESP takes 8 bytes before and 16 and a padded trailer behind, the label and numbers 2, 4 or 8.
    sent.filter(|(_, sent)| sent.bytes.len() > 220).map(|(_, sent)| (sent.bytes.len() - 228) / 8).collect()
}

/// A small file is through on the near path before one packet is on the far one: who reckons with that keeps to it, though
/// its window is full; who does not, does not.
#[test]
fn a_burst_waits_for_the_near_path_where_the_scheduler_reckons_so() {
    let usual = 256 << 20;
    // ECF does not wait for the k last, if k/w of the far path takes no two round trips of the near one: 2 · 20/200 · 10 of 40.
    for (name, last) in [("ecf", 2), ("sttf", 0), ("otias", 0), ("daps", 0)] {
        let far = burst(name, 40, usual);
        assert!(far.iter().all(|number| *number >= 40 - last), "{name}: {far:?}");
    }
    for name in ["lowest-rtt", "round-robin", "weighted", "cheapest-path-first", "redundant", "blest"] {
        let far = burst(name, 40, usual);
        assert!(far.iter().any(|number| *number < 30), "{name}: {far:?}");
    }
    // BLEST keeps to it where the far path's packets would take the room of the near one's.
    let (blest, lowest_rtt) = (burst("blest", 40, 1 << 18), burst("lowest-rtt", 40, 1 << 18));
    assert!(blest.is_empty() && !lowest_rtt.is_empty(), "{blest:?}, {lowest_rtt:?}");
    // Of a larger one the far path is given what arrives there as early: the end of it.
    let far = burst("otias", 90, usual);
    assert!(!far.is_empty() && far.iter().all(|number| *number > 40), "{far:?}");
    assert!(burst("lowest-rtt", 90, usual).iter().any(|number| *number < 40));
}

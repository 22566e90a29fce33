//! What a peer with all keys can make a host hold. The oracle is the bound that the crate's page gives.

use crate::common::liar::Liar;
use crate::common::{Mailbox, Spec, World, ms, udp_v6};
use clock::Instant;
use hip::Route;
use hip::feedback::NEXT_HEADER;
use wedge::{Datagram, Transmit};

const MEMORY: usize = 8 << 20;
const LEAST_SHARE: usize = 256 << 10;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Host a, and a peer that says what it likes.
struct Hostile {
    world: World,
    like: Transmit,
    /// The last that it has heard of a.
    heard: Transmit,
    sent: usize,
}

impl Hostile {
    fn new() -> Self {
        let mut world = World::configured(&[Spec::new(100_000_000, ms(10))], 10500, |config| {
            config.paths.iter_mut().for_each(|path| path.rate = None);
            (config.keylog, config.memory) = (true, MEMORY);
        });
        world.liar = Some(Liar::new(1));
        let mut boxes = [Mailbox::default(), Mailbox::default()];
        boxes[0].to_send.push(udp_v6(world.hit(0), world.hit(1), (9, 9), b"hello"));
        let [a, b] = &mut boxes;
        world.run(at(2_000), &mut [a, b]);
        world.record = Some(Vec::new());
        boxes[1].to_send.push(udp_v6(world.hit(1), world.hit(0), (9, 9), b"hello"));
        let [a, b] = &mut boxes;
        world.run(at(2_100), &mut [a, b]);
        let is_esp = |transmit: &Transmit| !transmit.bytes.starts_with(&[0; 4]);
        let record = world.record.take().unwrap();
        let last =
            |of: usize| record.iter().rfind(|(side, transmit)| *side == of && is_esp(transmit)).unwrap().1.clone();
        Self { like: last(1), heard: last(0), world, sent: 0 }
    }

    /// A numbered packet of a flow.
    fn say(&mut self, now: Instant, flow: u16, number: u16, is_early: bool, length: usize) {
        let mut payload = vec![if is_early { 3 } else { 2 }, 17];
        payload.extend(number.to_be_bytes());
        let (a, b) = (self.world.hit(0).address(), self.world.hit(1).address());
        let mut datagram = Vec::new();
        wire::udp::emit((b.into(), flow), (a.into(), 8_000), &vec![1; length], &mut datagram).unwrap();
        payload.extend(datagram);
        self.sent += payload.len();
        self.send(now, &payload);
    }

    /// A report: all came until the last, and the round trip took so long.
    fn report(&mut self, now: Instant, rtt_us: u32) {
        let report = [&[1, 1, 0, 0][..], &self.record_of_all(rtt_us)].concat();
        self.send(now, &report);
    }

    fn record_of_all(&self, rtt_us: u32) -> Vec<u8> {
        let word = |at: usize| u32::from_be_bytes(*self.heard.bytes[at..].first_chunk().unwrap());
        let words = [word(0), word(4), 0, 0, 1, 0, 0, rtt_us];
        let mut record: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        record.extend([1, 0, 0, 1]);
        record
    }

    fn send(&mut self, now: Instant, payload: &[u8]) {
        let sealed = self.world.liar.as_mut().unwrap().seal(&self.like, NEXT_HEADER, payload);
        let route = Route { local: self.like.route.remote, remote: self.like.route.local };
        let datagram = Datagram { route, protocol: sealed.protocol, payload: &sealed.bytes, ecn: sealed.ecn };
        let World { hosts, rngs, .. } = &mut self.world;
        hosts[0].handle_network(now, &mut rngs[0], &[datagram]);
    }

    /// Bytes held, after what is due was done and the rest taken away.
    fn held(&mut self, now: Instant) -> usize {
        let World { hosts, rngs, .. } = &mut self.world;
        if hosts[0].poll_timeout().is_some_and(|(due, _)| due <= now) {
            hosts[0].handle_timeout(now, &mut rngs[0]);
        }
        hosts[0].poll_deliver(&mut Vec::new());
        hosts[0].poll_transmit(now, &mut Vec::new());
        hosts[0].held_bytes()
    }
}

/// Many flows, each with a hole and as much behind it as there is room for.
#[test]
fn what_waits_for_holes_is_bounded_in_bytes() {
    let mut hostile = Hostile::new();
    let now = hostile.world.now;
    let mut most = 0;
    for flow in 0..100 {
        hostile.say(now, 1_000 + flow, 0, true, 10);
        for number in 0..200 {
            hostile.say(now, 1_000 + flow, 1_001 + number, false, 1_200);
            most = most.max(hostile.world.hosts[0].held_bytes());
        }
        hostile.held(now);
    }
    assert!(hostile.sent > 2 * MEMORY, "{}", hostile.sent);
    // A fourth for one peer.
    assert!(most <= MEMORY / 4 + LEAST_SHARE, "{most}");
    assert!(hostile.world.hosts[0].counters().given_up_for_memory > 0);
}

/// It acknowledges nothing while programs send it all they can, in many flows: of small packets the books take most.
#[test]
fn what_waits_for_a_silent_peer_is_bounded_in_bytes() {
    for (payload, steps) in [(1_200, 400), (1, 8_000)] {
        send_to_a_silent_peer(payload, steps);
    }
}

fn send_to_a_silent_peer(payload: usize, steps: u16) {
    let mut hostile = Hostile::new();
    let (a, b) = (hostile.world.hit(0), hostile.world.hit(1));
    let start = hostile.world.now;
    let (mut sent, mut most) = (0, 0);
    for step in 0..steps {
        let packets: Vec<_> = (0..50).map(|n| udp_v6(a, b, (n * 8 + step % 8, 7), &vec![0; payload])).collect();
        sent += packets.iter().map(Vec::len).sum::<usize>();
        let now = start + ms(u64::from(step));
        let World { hosts, rngs, .. } = &mut hostile.world;
        hosts[0].handle_application(now, &mut rngs[0], packets);
        most = most.max(hosts[0].held_bytes());
        hostile.held(now);
    }
    assert!(sent > 2 * MEMORY, "{sent}");
    // A fourth of its share waits, a fourth is in flight; none has come.
    assert!(most <= MEMORY / 8 + LEAST_SHARE, "{most}");
}

/// Thousands of flows with a packet each that may be offered again.
#[test]
fn flows_are_bounded_in_bytes() {
    let mut hostile = Hostile::new();
    let now = hostile.world.now;
    for flow in 0..20_000 {
        hostile.say(now, flow, 0, true, 1_200);
        let held = hostile.world.hosts[0].held_bytes();
        assert!(held <= MEMORY / 4 + LEAST_SHARE, "{flow} {held}");
    }
    assert!(hostile.sent > 2 * MEMORY);
}

/// A report costs a look at what is under way for each path that it is about, and no path twice.
#[test]
fn a_report_tells_of_a_path_once() {
    let mut hostile = Hostile::new();
    let now = hostile.world.now;
    let record = hostile.record_of_all(20_000);
    for copies in [1u8, 16] {
        let before = *hostile.world.hosts[0].counters();
        let report = [&[1, copies, 0, 0][..], &record.repeat(copies.into())].concat();
        hostile.send(now, &report);
        let after = *hostile.world.hosts[0].counters();
        assert_eq!(after.feedback_in - before.feedback_in, 1);
        assert_eq!(after.bad_feedback - before.bad_feedback, u64::from(copies) - 1);
    }
}

/// It says that its round trips take ten seconds, and one hole is filled now and then: all the rest goes in its time.
#[test]
fn nothing_is_held_for_longer_than_it_may() {
    let mut hostile = Hostile::new();
    let start = hostile.world.now;
    hostile.report(start, 10_000_000);
    for flow in 0..20 {
        hostile.say(start, 1_000 + flow, 0, true, 10);
        (0..30).for_each(|number| hostile.say(start, 1_000 + flow, 1_001 + 2 * number, false, 1_000));
    }
    let full = hostile.held(start);
    assert!(full > 600_000, "{full}");
    for step in 1..=70 {
        let now = start + ms(10 * step);
        if step % 5 == 0 {
            (0..20).for_each(|flow| hostile.say(now, 1_000 + flow, (step / 5) as u16, false, 10));
        }
        let status = hostile.world.hosts[0].status(now).peers.remove(0);
        if step > 51 {
            assert!(status.held_bytes < 100_000, "{step} {}", status.held_bytes);
        }
        hostile.held(now);
    }
}

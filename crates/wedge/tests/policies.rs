//! Policies for programs, in whole hosts and virtual time: which paths flows take, who goes first, and who does not pass. The
//! oracles are the links, the receivers and what RFCs say of ICMP.

use crate::common::stream::{Receiver, Sender};
use crate::common::{LSIS, Mailbox, Program, Spec, World, locator, ms, udp_v4, udp_v6};
use clock::{Duration, Instant};
use link::ChangeKind;
use scheduler::Scheduler;
use wedge::{Policy, Priority, Transmit};
use wire::ip::IpPacket;
use wire::{Hit, icmp};

const SEGMENT: usize = 1380;
const RATE: u64 = 10_000_000;
/// A video's port and rate.
const VIDEO: (u16, u64) = (5004, 4_000_000);
/// The ports of the flow that policies are about, of the sender and the receiver.
const CHOSEN: (u16, u16) = (8080, 50_000);

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn policy(tune: impl FnOnce(&mut Policy)) -> Policy {
    let mut policy = Policy::new();
    tune(&mut policy);
    policy
}

/// That of [`CHOSEN`].
fn chosen(tune: impl FnOnce(&mut Policy)) -> Policy {
    policy(|policy| {
        (policy.protocol, policy.ports) = (Some(wire::ip::protocol::TCP), vec![8000..=8100]);
        tune(policy);
    })
}

/// Hosts that measure their paths and have these policies.
fn world(paths: usize, scheduler: &str, policies: &[Policy]) -> World {
    World::configured(&vec![Spec::new(RATE, ms(15)); paths], 10500, |config| {
        config.scheduler = scheduler.parse().unwrap();
        config.policies = policies.to_vec();
        config.paths.iter_mut().for_each(|path| path.rate = None);
    })
}

/// Several programs on one host.
struct All<'a>(Vec<&'a mut dyn Program>);

impl Program for All<'_> {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        self.0.iter_mut().for_each(|program| program.receive(now, packet));
    }
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.0.iter_mut().flat_map(|program| program.send(now)).collect()
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.iter().filter_map(|program| program.deadline()).min()
    }
}

/// A download from a to b.
fn download(world: &World, ports: (u16, u16)) -> (Sender, Receiver) {
    let (a, b) = (world.hit(0), world.hit(1));
    let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
    (sender.ports, receiver.ports) = (ports, ports);
    (sender, receiver)
}

/// How many full packets a has sent on each path.
fn full_packets(record: &[(usize, Transmit)], paths: usize) -> Vec<usize> {
    let on = |path| {
        let is = |sent: &Transmit| sent.route.local == locator(path, 0, 10500) && sent.bytes.len() > SEGMENT;
        record.iter().filter(|(side, sent)| *side == 0 && is(sent)).count()
    };
    (0..paths).map(on).collect()
}

fn mbits(receiver: &Receiver, from: u64, to: u64) -> f64 {
    receiver.goodput(at(from), at(to)) / 1e6
}

/// Under every scheduler: what has one path takes one path, and gets what that carries.
#[test]
fn a_flow_takes_the_paths_that_it_is_given() {
    let second = chosen(|policy| policy.paths = vec!["link1".to_owned()]);
    for name in Scheduler::NAMES {
        let mut world = world(2, name, std::slice::from_ref(&second));
        let (mut sender, mut receiver) = download(&world, CHOSEN);
        // Until there is a second path it takes the first.
        world.run(at(1_000), &mut [&mut sender, &mut receiver]);
        world.record = Some(Vec::new());
        world.run(at(8_000), &mut [&mut sender, &mut receiver]);
        let sent = full_packets(&world.record.take().unwrap(), 2);
        assert_eq!(sent[0], 0, "{name}: {sent:?}");
        // Headers take 6 % of full packets.
        let goodput = mbits(&receiver, 3_000, 8_000);
        assert!((0.85 * 10.0..10.0).contains(&goodput), "{name}: {goodput}");
        assert_eq!(sender.timeouts, 0, "{name}");
    }
}

/// Others take what is left of both, at once: who may take one path alone does not keep them waiting when it has no room.
#[test]
fn others_are_not_kept_from_the_paths() {
    for name in ["fastest-path-first", "lowest-rtt", "ecf"] {
        let second = chosen(|policy| policy.paths = vec!["link1".to_owned()]);
        let mut world = world(2, name, &[second]);
        let (mut bound, mut at_bound) = download(&world, CHOSEN);
        let (mut free, mut at_free) = download(&world, (80, 4000));
        let mut senders = All(vec![&mut bound, &mut free]);
        let mut receivers = All(vec![&mut at_bound, &mut at_free]);
        world.run(at(12_000), &mut [&mut senders, &mut receivers]);
        let (bound, free) = (mbits(&at_bound, 4_000, 12_000), mbits(&at_free, 4_000, 12_000));
        assert!(bound + free > 0.85 * 20.0, "{name}: {bound} and {free}");
        // All of the first and, at worst, none of the second; a fair queue would give it half of that.
        assert!(free > 0.85 * 10.0 && bound > 0.85 * 4.0, "{name}: {bound} and {free}");
    }
}

/// The path of a flow dies: it takes the others, unless it is to have no other; and it is back when the path is.
#[test]
fn where_its_path_is_dead_a_flow_takes_the_others_or_waits() {
    for strict in [false, true] {
        let second = chosen(|policy| (policy.paths, policy.strict) = (vec!["link1".to_owned()], strict));
        let mut world = world(2, "fastest-path-first", &[second]);
        let (mut bound, mut at_bound) = download(&world, CHOSEN);
        let (mut free, mut at_free) = download(&world, (80, 4000));
        let mut senders = All(vec![&mut bound, &mut free]);
        let mut receivers = All(vec![&mut at_bound, &mut at_free]);
        world.run(at(4_000), &mut [&mut senders, &mut receivers]);
        let (down, up) = (world.now, at(12_000));
        world.links[1].iter_mut().for_each(|link| link.change(down, ChangeKind::Down));
        world.run(up, &mut [&mut senders, &mut receivers]);
        world.links[1].iter_mut().for_each(|link| link.change(up, ChangeKind::Up));
        world.run(at(24_000), &mut [&mut senders, &mut receivers]);
        let (without, with) = (mbits(&at_bound, 6_000, 12_000), mbits(&at_bound, 18_000, 24_000));
        let free = mbits(&at_free, 6_000, 12_000);
        if strict {
            assert!(without == 0.0 && free > 0.85 * 10.0, "{without} and {free}");
        } else {
            assert!(without > 0.85 * 3.0 && without + free > 0.85 * 10.0, "{without} and {free}");
        }
        assert!(with > 0.85 * 4.0, "{strict}: {with} when the path is back");
    }
}

/// A backup that a policy names is used by its flows, and by no others.
#[test]
fn a_backup_that_is_named_is_used() {
    let bulk = chosen(|policy| policy.paths = vec!["link1".to_owned()]);
    let mut world = World::configured(&[Spec::new(RATE, ms(15)); 2], 10500, |config| {
        config.policies = vec![bulk.clone()];
        config.paths.iter_mut().for_each(|path| path.rate = None);
        config.paths[1].backup = true;
    });
    let (mut bound, mut at_bound) = download(&world, CHOSEN);
    let (mut free, mut at_free) = download(&world, (80, 4000));
    let mut senders = All(vec![&mut bound, &mut free]);
    let mut receivers = All(vec![&mut at_bound, &mut at_free]);
    world.run(at(10_000), &mut [&mut senders, &mut receivers]);
    let both = (mbits(&at_bound, 4_000, 10_000), mbits(&at_free, 4_000, 10_000));
    assert!(both.0 > 0.85 * 10.0 && both.1 > 0.85 * 10.0, "{both:?}");
}

/// Sends datagrams of 1,000 bytes, one in each interval, with the time in them.
struct Call {
    hits: (Hit, Hit),
    port: u16,
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
        let mut payload = vec![0; 952];
        payload[..8].copy_from_slice(&self.next.as_nanos().to_be_bytes());
        self.next += self.interval;
        self.sent += 1;
        vec![udp_v6(self.hits.0, self.hits.1, (self.port, self.port), &payload)]
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

#[derive(Default)]
struct Delays(Vec<Duration>);

impl Program for Delays {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        let IpPacket::V6(packet) = IpPacket::parse(packet).unwrap() else { return };
        // The port of its sender.
        if packet.payload().starts_with(&VIDEO.0.to_be_bytes())
            && let Some(sent) = packet.payload().get(8..16).and_then(|sent| sent.first_chunk())
        {
            self.0.push(now - Instant::from_nanos(u64::from_be_bytes(*sent)));
        }
    }
    fn send(&mut self, _now: Instant) -> Vec<Vec<u8>> {
        Vec::new()
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// How many of the packets of a video of 4 Mbit/s get through beside four programs that each send 5 on a path of 10 and hear of
/// nothing, and how late the latest of 99 % of them is.
fn beside_floods(policies: &[Policy]) -> (f64, Duration) {
    let mut world = world(1, "fastest-path-first", policies);
    let hits = (world.hit(0), world.hit(1));
    let call = |(port, rate), next| Call { hits, port, interval: Duration::of_transmission(1000, rate), next, sent: 0 };
    let mut floods: Vec<_> = (0..4).map(|number| call((6000 + number, 5_000_000), at(1_000))).collect();
    let mut video = call(VIDEO, at(4_000));
    let mut delays = Delays::default();
    let mut senders: Vec<&mut dyn Program> = vec![&mut video];
    senders.extend(floods.iter_mut().map(|flood| flood as &mut dyn Program));
    world.run(at(12_000), &mut [&mut All(senders), &mut delays]);
    let arrived = delays.0.len() as f64 / f64::from(video.sent);
    delays.0.sort_unstable();
    (arrived, delays.0[delays.0.len() * 99 / 100])
}

/// In turn with four others it has a fifth of the path, half of what it sends. First, or with the others last, it has all it sends,
/// in the 15 ms of the path, the 45 ms of its queue, and 10 ms for its turn.
#[test]
fn what_is_urgent_does_not_wait() {
    let (in_turn, late) = beside_floods(&[]);
    assert!(in_turn < 0.6 && late > ms(70), "{in_turn} {late:?}");
    let urgent = policy(|policy| {
        (policy.protocol, policy.ports, policy.priority) = (Some(17), vec![VIDEO.0..=VIDEO.0], Priority::Urgent);
    });
    let bulk = policy(|policy| (policy.ports, policy.priority) = (vec![6000..=6999], Priority::Bulk));
    for policy in [urgent, bulk] {
        let (first, late) = beside_floods(std::slice::from_ref(&policy));
        assert!(first > 0.99 && late < ms(70), "{first} {late:?} {policy:?}");
    }
}

/// What comes last has what others leave: a twentieth beside a download that takes all it gets.
#[test]
fn bulk_has_what_others_leave() {
    let bulk = chosen(|policy| policy.priority = Priority::Bulk);
    let mut world = world(1, "fastest-path-first", &[bulk]);
    let (mut last, mut at_last) = download(&world, CHOSEN);
    let (mut first, mut at_first) = download(&world, (80, 4000));
    world.run(at(4_000), &mut [&mut last, &mut at_last]);
    let mut senders = All(vec![&mut last, &mut first]);
    let mut receivers = All(vec![&mut at_last, &mut at_first]);
    world.run(at(14_000), &mut [&mut senders, &mut receivers]);
    let alone = mbits(&at_last, 2_000, 4_000);
    let (last, first) = (mbits(&at_last, 7_000, 14_000), mbits(&at_first, 7_000, 14_000));
    assert!(alone > 0.85 * 10.0, "{alone}");
    assert!(first > 0.85 * 9.0 && last > 0.0 && last < 0.12 * 10.0, "{first} and {last}");
}

/// What is not to pass does not, and its program is told in its family; all else passes.
#[test]
fn what_may_not_pass_is_refused() {
    let refused = policy(|policy| (policy.protocol, policy.ports, policy.through) = (Some(17), vec![53..=53], false));
    let mut world = world(1, "fastest-path-first", &[refused]);
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(a, b, (4000, 53), b"no"));
    boxes[0].to_send.push(udp_v4(LSIS[0], LSIS[1], (4000, 53), b"no"));
    let [left, right] = &mut boxes;
    world.run(at(1_000), &mut [left, right]);
    assert!(right.received.is_empty());
    assert_eq!(world.sent[0], [0, 0], "not even a base exchange begins");
    assert_eq!(world.hosts[0].counters().prohibited, 2);
    let told: Vec<(u8, u8)> = left
        .received
        .iter()
        .map(|(_, packet)| {
            let packet = IpPacket::parse(packet).unwrap();
            let message = icmp::Message::parse(packet.payload()).unwrap();
            (message.kind(), message.code())
        })
        .collect();
    // RFC 4443 §3.1: destination unreachable, prohibited; RFC 1122 §3.2.2.1: host administratively prohibited.
    assert_eq!(told, [(1, 1), (3, 10)]);
    left.to_send.push(udp_v6(a, b, (4000, 54), b"yes"));
    world.run(at(3_000), &mut [left, right]);
    assert_eq!(right.received.len(), 1);
    // And from now on without policies.
    world.hosts[0].set_policies(Vec::new());
    left.to_send.push(udp_v6(a, b, (4000, 53), b"yes"));
    world.run(at(4_000), &mut [left, right]);
    assert_eq!(right.received.len(), 2);
}

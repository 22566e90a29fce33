//! The whole core over links in virtual time, without a byte: a program that fills its budget, a sender, two paths, a receiver
//! whose reports travel back on the paths.

use clock::{Duration, Instant, Rng};
use link::{JitterConfig, Link, LinkConfig, LossConfig, QueueConfig};
use multipath::{
    Asks, Class, Ecn, Enqueued, Feedback, FlowId, Memory, Meta, Number, Overhead, PathEvent, PathState, ReceivedPacket,
    Report, Reporter, ReportingPath, Resequencing, Segment, Sender,
};
use scheduler::PathId;
use std::collections::{BTreeSet, VecDeque};
use testkit::World;

const FLOW: FlowId = FlowId { protocol: 6, local: 80, remote: 4000 };
const OVERHEAD: Overhead = Overhead::AES_GCM_IN_UDP;
const PAYLOAD: usize = 1_400;

#[derive(Clone, Debug)]
enum Frame {
    Data { number: u32, order: Number, packet: u64, wire: usize },
    Reports(Vec<(PathId, Report)>),
}

struct Hosts {
    now: Instant,
    sender: Sender<u64>,
    reporter: Reporter,
    resequencing: Resequencing<u64>,
    forward: Vec<Link<Frame>>,
    back: Vec<Link<Frame>>,
    states: Vec<PathState>,
    sent: Vec<u32>,
    reports: u32,
    enqueued: u64,
    ecn: Ecn,
    most: u64,
    /// Packets that the program may have outstanding, and when it hears of what has arrived in order; never, if it waits for nothing.
    window: u64,
    acknowledged: u64,
    announced: u64,
    acks: VecDeque<(Instant, u64)>,
    delivered: Vec<u64>,
    events: Vec<PathEvent>,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

impl Hosts {
    /// Paths of these rates in bit/s and one-way delays in ms, each with a queue of one round trip at its rate.
    fn new(paths: &[(u64, u64)], most: u64) -> Self {
        let mut sender = Sender::new(Feedback::Reports, "mhip".parse().unwrap());
        sender.set_memory(Memory { send_buffer: 16 << 20, in_flight: 16 << 20 });
        let link = |(rate, delay): (u64, u64), seed| {
            let delay = Duration::from_millis(delay);
            let queue = QueueConfig::Bytes((rate as f64 / 8.0 * 2.0 * delay.as_secs_f64()) as u64);
            Link::new(LinkConfig { rate: Some(rate), delay, queue, ..LinkConfig::default() }, Rng::from_seed(seed))
        };
        let state = |delay| PathState {
            is_verified: true,
            is_alive: true,
            allowance: u64::MAX,
            overhead: OVERHEAD,
            mtu: 1500,
            delay: Duration::from_millis(delay),
            srtt: Some(Duration::from_millis(2 * delay)),
            rttvar: Some(Duration::from_millis(delay)),
            ..PathState::default()
        };
        let states: Vec<PathState> = paths.iter().map(|(_, delay)| state(*delay)).collect();
        for (id, state) in (0..).zip(&states) {
            sender.add_path(Instant::ZERO, PathId(id), *state, multipath::UNKNOWN_RATE);
        }
        Self {
            now: Instant::ZERO,
            sender,
            reporter: Reporter::default(),
            resequencing: Resequencing::default(),
            forward: paths.iter().map(|path| link(*path, 1)).collect(),
            back: paths.iter().map(|path| link(*path, 2)).collect(),
            sent: vec![0; states.len()],
            states,
            reports: 0,
            enqueued: 0,
            ecn: Ecn::NotEct,
            most,
            window: u64::MAX,
            acknowledged: 0,
            announced: 0,
            acks: VecDeque::new(),
            delivered: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The program sends what its receive window, clamped to the budget, allows; then what may leaves.
    fn offer_and_send(&mut self) {
        let now = self.now;
        let may = |world: &mut Self| world.enqueued - world.acknowledged < world.window;
        while self.enqueued < self.most && may(self) && self.sender.budget(now, FLOW) > 0 {
            let seq = (self.enqueued * PAYLOAD as u64) as u32;
            let class = Class::Tcp(Segment { seq, len: PAYLOAD as u32, ..Segment::default() });
            let meta = Meta { flow: Some(FLOW), len: PAYLOAD, is_urgent: false, class, ecn: self.ecn, is_short: false };
            assert_eq!(self.sender.enqueue(now, meta, self.enqueued), Enqueued::Taken);
            self.enqueued += 1;
        }
        while let Some(dispatch) = self.sender.poll_transmit(now) {
            let (path, packet) = (usize::from(dispatch.path.0), &dispatch.packet);
            self.sent[path] += 1;
            let (number, order, wire) = (self.sent[path], packet.number.unwrap(), packet.wire);
            assert_eq!(wire, OVERHEAD.wire(PAYLOAD + multipath::NUMBER));
            let frame = Frame::Data { number, order, packet: packet.payload, wire };
            let _ = self.forward[path].offer(now, frame, wire as u32);
            self.sender.on_sent(now, dispatch, number);
        }
        let path = |id| ReportingPath { id: PathId(id), is_verified: true, srtt: None, least: None };
        let active: Vec<ReportingPath> = (0..self.states.len() as u16).map(path).collect();
        while let Some((on, reports)) = self.reporter.poll_report(now, &active, &[]) {
            let bytes = OVERHEAD.wire(multipath::message_len(reports.iter().map(|(_, report)| report)));
            let _ = self.back[usize::from(on.0)].offer(now, Frame::Reports(reports), bytes as u32);
        }
    }

    /// The part of the paths' sum that payloads took.
    fn goodput(&self, from: usize, span: Duration, rates: u64) -> f64 {
        let wire = (OVERHEAD.wire(PAYLOAD + multipath::NUMBER)) as f64;
        (self.delivered.len() - from) as f64 * wire * 8.0 / span.as_secs_f64() / rates as f64
    }
}

impl World for Hosts {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.forward.iter().chain(&self.back).filter_map(Link::next_event).min()
    }

    fn deliver(&mut self) {
        let now = self.now;
        for path in 0..self.states.len() {
            let id = PathId(path as u16);
            while let Some(Frame::Data { number, order, packet, wire }) = self.forward[path].poll(now) {
                let received = ReceivedPacket { number, wire, is_marked: false, asks: Asks::Soon };
                self.reporter.on_packet(now, id, received, self.sender.srtt(id));
                let reordering = self.sender.reordering();
                if self.resequencing.is_first(FLOW, order) {
                    let position = order.position(id);
                    self.resequencing.offer(now, FLOW, position, (packet, PAYLOAD), &reordering, &mut self.delivered);
                }
            }
            while let Some(Frame::Reports(reports)) = self.back[path].poll(now) {
                self.reports += 1;
                self.states[path].heard_at = now;
                self.sender.set_path(id, self.states[path]);
                for (of, report) in reports {
                    self.sender.on_report(now, of, of == id, &report).unwrap();
                }
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let reports = (0..).zip(&self.states).filter_map(|(id, _)| self.reporter.poll_timeout(PathId(id)));
        let ack = self.acks.front().map(|(at, _)| *at);
        let timers = [self.sender.poll_timeout(), self.sender.poll_pacing(), self.resequencing.poll_timeout(), ack];
        reports.chain(timers.into_iter().flatten()).min()
    }

    fn handle_timers(&mut self) {
        let mut ready = Vec::new();
        self.resequencing.handle_timeout(self.now, &mut ready);
        self.delivered.extend(ready.into_iter().map(|(_, packet)| packet));
        if self.sender.poll_timeout().is_none_or(|due| due > self.now) {
            return;
        }
        for event in self.sender.handle_timeout(self.now) {
            self.events.push(event);
            // A question is answered by nobody: the path is silent.
            if let PathEvent::Dead(id) = event {
                let state = &mut self.states[usize::from(id.0)];
                state.is_alive = false;
                self.sender.set_path(id, *state);
                self.sender.on_path_dead(self.now, id);
            }
        }
    }

    fn collect(&mut self) {
        if self.delivered.len() as u64 > self.announced && self.window < u64::MAX {
            let way_back = self.states.iter().map(|state| state.delay).min().unwrap();
            self.announced = self.delivered.len() as u64;
            self.acks.push_back((self.now + way_back, self.announced));
        }
        while let Some((_, ack)) = self.acks.front().filter(|(at, _)| *at <= self.now).copied() {
            self.acks.pop_front();
            self.acknowledged = ack;
        }
        self.offer_and_send();
    }
}

/// No more than the links carry can arrive; a Reno with a queue of a round trip keeps its link full (G. Appenzeller and
/// others, 2004), so hardly less does, however unequal the paths are.
#[test]
fn two_paths_are_filled_and_delivered_in_order() {
    for paths in [[(50_000_000, 10), (50_000_000, 30)], [(8_000_000, 15), (24_000_000, 40)]] {
        let mut world = Hosts::new(&paths, u64::MAX);
        world.run_to(at(3_000));
        let begun = world.delivered.len();
        world.run_to(at(10_000));
        let sum = paths.iter().map(|(rate, _)| rate).sum();
        assert!(world.goodput(0, Duration::from_secs(10), sum) <= 1.0, "{paths:?}: more than the links carry");
        let part = world.goodput(begun, Duration::from_secs(7), sum);
        assert!(part > 0.93, "{part} of {paths:?}");
        // Where a queue overflows, reports have no room for all holes, and some of what has arrived is sent again.
        let mut seen = BTreeSet::new();
        let first: Vec<u64> = world.delivered.iter().copied().filter(|packet| seen.insert(*packet)).collect();
        assert!(world.delivered.len() - first.len() < world.delivered.len() / 1_000, "{paths:?}: duplicates");
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "{paths:?}: out of order");
        // What is lost is sent once more: only what is lost twice is missing.
        let missing = 1.0 - first.len() as f64 / (first.last().unwrap() + 1) as f64;
        assert!(missing < 0.001, "{missing} of {paths:?}");
    }
}

/// A window of `W` bytes gives no more than `W/T` where a packet is acknowledged after `T`. On the near path alone the program
/// below gets all of it, with the distant one as well 32 Mbit/s at most, were it used.
#[test]
fn a_distant_path_takes_nothing_from_a_program_with_a_small_window() {
    let mut world = Hosts { window: 1_000, ..Hosts::new(&[(50_000_000, 20), (50_000_000, 320)], u64::MAX) };
    world.run_to(at(5_000));
    let (begun, distant) = (world.delivered.len(), world.sent[1]);
    world.run_to(at(12_000));
    let part = world.goodput(begun, Duration::from_secs(7), 50_000_000);
    assert!(part > 0.98, "{part} of the near path");
    assert!(world.sent[1] - distant < 10, "{} packets", world.sent[1] - distant);
    // With a window of what both paths hold it is used.
    let mut world = Hosts { window: 5_000, ..Hosts::new(&[(50_000_000, 20), (50_000_000, 320)], u64::MAX) };
    world.run_to(at(20_000));
    let begun = world.delivered.len();
    world.run_to(at(30_000));
    let part = world.goodput(begun, Duration::from_secs(10), 50_000_000);
    assert!(part > 1.2, "{part} of the near path");
}

/// What the near path has lost is sent again there, also if its window has room only when more has arrived: on the distant one it
/// would take half a second, and the program's timer is shorter.
#[test]
fn what_was_lost_does_not_go_on_a_distant_path() {
    let mut world = Hosts { window: 60, ..Hosts::new(&[(50_000_000, 20), (50_000_000, 320)], u64::MAX) };
    let loss = LossConfig::Random(0.005);
    let config = LinkConfig { rate: Some(50_000_000), delay: Duration::from_millis(20), loss, ..LinkConfig::default() };
    world.forward[0] = Link::new(config, Rng::from_seed(7));
    world.run_to(at(2_000));
    let distant = world.sent[1];
    let (mut before, mut since) = (world.delivered.len(), 2_000);
    for now in (2_010..10_000).step_by(10) {
        world.run_to(at(now));
        if world.delivered.len() > before {
            (before, since) = (world.delivered.len(), now);
        }
        assert!(now - since < 200, "nothing for {} ms", now - since);
    }
    assert!(
        world.sender.take_counts().retransmitted > 20 && world.sent[1] - distant < 5,
        "{}",
        world.sent[1] - distant
    );
}

/// What the near path delivers before the farther one has delivered a packet ends no later than on the near path alone: what arrives first
/// of a flight tells no rate, and each flight of slow start is twice the one before.
#[test]
fn a_short_transfer_does_not_wait_for_a_farther_path() {
    for (near, far) in [(5, 25), (10, 30), (20, 40), (20, 60), (20, 320)] {
        let more: &[u64] = if far == 320 { &[300, 1_000] } else { &[] };
        for packets in [20, 30, 60, 100].iter().chain(more).copied() {
            let ends = |paths: &[(u64, u64)]| {
                let mut world = Hosts::new(paths, packets);
                let mut millis = 0;
                while world.delivered.len() < packets as usize {
                    millis += 1;
                    assert!(millis < 3_000, "{} of {packets}", world.delivered.len());
                    world.run_to(at(millis));
                }
                millis
            };
            let (alone, both) = (ends(&[(50_000_000, near)]), ends(&[(50_000_000, near), (50_000_000, far)]));
            assert!(both <= alone + 1, "{near} and {far} ms, {packets} packets: {both} ms, {alone} ms without");
        }
    }
}

/// Nothing follows the last packet of a transfer, so no report tells that it is lost. It is sent again after a round trip, an eighth of
/// one or 10 ms, and the 10 ms by which a report may be late. What is not lost is sent once.
#[test]
fn a_last_packet_that_is_lost_is_sent_again_after_a_round_trip() {
    for (rate, delay) in [(50_000_000, 1), (50_000_000, 10), (5_000_000, 30), (10_000_000, 60), (50_000_000, 250)] {
        let mut world = Hosts::new(&[(rate, delay)], 5);
        world.run_to(at(10_000));
        assert_eq!((world.delivered.len(), world.sent[0]), (5, 5), "{rate} bit/s, {delay} ms: all is there");
        let transmission = 1500 * 8 * 1_000 / rate + 1;
        let round_trip = 2 * (delay + transmission);
        let most = round_trip + (round_trip / 8).max(10) + 10 + delay + transmission;
        world.most += 1;
        world.forward[0].set_up(world.now, false);
        world.run_to(at(10_001));
        world.forward[0].set_up(world.now, true);
        world.run_to(at(10_000 + most));
        assert_eq!((world.delivered.len(), world.sent[0]), (6, 7), "{rate} bit/s, {delay} ms: within {most} ms");
    }
}

/// Of a transfer whose second path breaks in its midst, all arrives: what was in flight there goes on the first.
#[test]
fn nothing_is_missing_when_a_path_breaks() {
    let packets = 10_000;
    for broken_at in [700, 1_130, 1_871] {
        let mut world = Hosts::new(&[(20_000_000, 20), (20_000_000, 20)], packets);
        // At half of the rate the send buffer is long for a while: it marks then, where it would drop what nobody here sends again.
        world.ecn = Ecn::Ect0;
        world.run_to(at(broken_at));
        assert!(world.enqueued < packets, "it ended too soon");
        world.forward[1].set_up(world.now, false);
        world.back[1].set_up(world.now, false);
        world.run_to(at(20_000));
        assert!(!world.states[1].is_alive && world.states[0].is_alive);
        let mut delivered = world.delivered.clone();
        delivered.sort_unstable();
        assert!(delivered.iter().copied().eq(0..packets), "{} of {packets}", delivered.len());
        assert!(world.sender.take_counts().rescheduled > 0);
    }
}

/// A path dies whenever it likes, also with the packet that was sent again because the other one had lost it: who waits for it waits no
/// longer than it takes to find out that a path is dead.
#[test]
fn a_path_that_dies_takes_no_repair_with_it() {
    // The round trip, what reports may be late by, and the queue of the path that is left.
    let most = 60 + 45 + 60;
    for broken_at in (3_000..4_500).step_by(10) {
        let mut world = Hosts::new(&[(8_000_000, 30), (4_000_000, 30)], u64::MAX);
        world.run_to(at(broken_at - 100));
        let first = world.delivered.len();
        let (mut before, mut since) = (first, broken_at - 100);
        for now in broken_at - 99..broken_at + 600 {
            if now == broken_at {
                world.forward[0].set_up(world.now, false);
                world.back[0].set_up(world.now, false);
            }
            world.run_to(at(now));
            if world.delivered.len() > before {
                (before, since) = (world.delivered.len(), now);
            }
            assert!(now - since <= most, "died after {broken_at} ms: nothing for {} ms, {most} may be", now - since);
        }
        let last = world.delivered.get(first..).unwrap();
        assert_eq!(last.iter().collect::<BTreeSet<_>>().len(), last.len(), "nothing comes twice");
    }
}

/// Reports come behind the queue that the peer's own packets fill. While those come on a path, nothing is proof that it is dead.
#[test]
fn a_path_on_which_the_peer_sends_is_asked_before_it_is_dead() {
    for (heard, first) in [(false, PathEvent::Dead(PathId(1))), (true, PathEvent::Probe(PathId(1)))] {
        let mut world = Hosts::new(&[(20_000_000, 20), (20_000_000, 20)], u64::MAX);
        world.run_to(at(1_000));
        world.events.clear();
        world.forward[1].set_up(world.now, false);
        for millis in 1_001..1_500 {
            if heard {
                world.states[1].heard_at = world.now;
                world.sender.set_path(PathId(1), world.states[1]);
            }
            world.run_to(at(millis));
        }
        assert_eq!(world.events.first(), Some(&first));
        assert!(!world.states[1].is_alive, "nobody answers what it asks");
    }
}

/// What the second path has in flight takes it 1.2 s once it carries a tenth, and a program whose window holds a round trip and a half
/// waits for it. The first path alone carries 50 of the 52 Mbit/s that are left.
#[test]
fn a_program_does_not_wait_for_a_path_that_carries_a_tenth_all_at_once() {
    let mut world = Hosts { window: 600, ..Hosts::new(&[(50_000_000, 20), (20_000_000, 30)], u64::MAX) };
    world.run_to(at(4_000));
    world.sender.take_counts();
    let begun = world.delivered.len();
    world.forward[1].set_rate(at(4_000), Some(2_000_000));
    world.run_to(at(5_000));
    let mut seen = BTreeSet::new();
    let new = world.delivered[begun..].iter().filter(|packet| seen.insert(**packet)).count();
    let part = new as f64 * OVERHEAD.wire(PAYLOAD) as f64 * 8.0 / 50_000_000.0;
    let counts = world.sender.take_counts();
    assert!(part > 0.8 && counts.rescheduled > 0 && counts.rescheduled < 300, "{part} of the first path, {counts:?}");
}

/// Packets of the second path overtake each other by up to twice the jitter, so its losses are found out that much later, and come again
/// before the receiver gives up: what is lost twice, one packet of 40,000 there, may be missing.
#[test]
fn what_is_lost_where_packets_overtake_each_other_is_waited_for() {
    for (seed, jitter) in (0..12).zip([8, 15, 25, 40].into_iter().cycle()) {
        let mut world = Hosts::new(&[(300_000_000, 8), (30_000_000, 45)], u64::MAX);
        let far = |seed| {
            let jitter = JitterConfig::Uniform(Duration::from_millis(jitter));
            let (delay, queue) = (Duration::from_millis(45), QueueConfig::Bytes(400_000));
            let loss = LossConfig::Random(0.005);
            let config = LinkConfig {
                rate: Some(30_000_000),
                delay,
                queue,
                jitter,
                loss,
                reorder: true,
                ..LinkConfig::default()
            };
            Link::new(config, Rng::from_seed(seed))
        };
        (world.forward[1], world.back[1]) = (far(2 * seed), far(2 * seed + 1));
        world.run_to(at(5_000));
        let statistics = world.resequencing.statistics();
        let holes = statistics.proven_losses + statistics.expired;
        assert!(holes <= 1 && world.sent[1] > 500, "{jitter} ms, seed {seed}: {statistics:?}, {} there", world.sent[1]);
    }
}

/// There is neither a clock nor a random number in it.
#[test]
fn the_same_run_is_the_same_to_the_last_packet() {
    let run = || {
        let mut world = Hosts::new(&[(10_000_000, 10), (5_000_000, 25)], u64::MAX);
        world.run_to(at(4_000));
        (world.delivered, world.sent, world.reports)
    };
    assert_eq!(run(), run());
}

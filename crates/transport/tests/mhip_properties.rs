//! What holds for mHIP over any network: all data arrive, once and in order, whatever is lost, late or cut; the global
//! window is the sum of the paths'; no data but a probe are sent on a closed path; and it ends.

use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use proptest::prelude::*;
use testkit::Moment;
use transport::mhip::{Generation, Growth, MhipConfig, PathConfig, PathStatus};
use transport::{Flags, FlowConfig, Packet, Sender, expand};

/// One path of the network: its delay, how much that varies (so that it even reorders), loss there and back, and from
/// when until when it carries nothing.
#[derive(Clone, Debug)]
struct Way {
    delay: Duration,
    jitter: Duration,
    loss: f64,
    cut: Option<(Instant, Instant)>,
}

struct Network {
    ways: Vec<Way>,
    random: Rng,
}

impl Network {
    fn new(ways: Vec<Way>, seed: u64) -> Self {
        Self { ways, random: Rng::from_seed(seed) }
    }

    fn carry(&mut self, now: Instant, packet: &Packet) -> Option<Duration> {
        let way = &self.ways[usize::from(packet.path)];
        let cut = way.cut.is_some_and(|(from, to)| now >= from && now < to);
        if cut || self.random.chance(way.loss) {
            return None;
        }
        let jitter = Duration::from_nanos(self.random.below(way.jitter.as_nanos().max(1)));
        Some(way.delay + jitter)
    }
}

/// Signalling packets have both marks, data and their acknowledgments never.
fn is_heartbeat(packet: &Packet) -> bool {
    packet.flags.has(Flags::DUPLICATE.with(Flags::REFUSED))
}

/// Long after any timer.
const NEVER: Duration = Duration::from_secs(200_000);

/// What has to hold at each moment.
struct Observer {
    is_simple: bool,
    packets: u64,
    /// The paths before the packet that is about to be sent.
    before: Vec<PathStatus>,
    /// The packet that has to be answered.
    arrived: Option<Packet>,
    delivered: u64,
}

impl Observer {
    fn observe(&mut self, moment: Moment<'_>) {
        match moment {
            Moment::Asked(sender) => {
                self.before = sender.paths();
                self.windows_add_up(sender);
            }
            Moment::Sent(sender, packet) => {
                let path = usize::from(packet.path);
                let (before, after) = (&self.before[path], &sender.paths()[path]);
                let is_probe = after.counters.probes == before.counters.probes + 1;
                assert!(
                    before.open || is_heartbeat(packet) || is_probe,
                    "packet {} is no probe, but its path is closed",
                    packet.position
                );
                assert!(self.before.iter().any(|path| path.open));
            }
            Moment::Received(receiver, packet) => {
                assert!(receiver.delivered() >= self.delivered && receiver.delivered() <= self.packets);
                self.delivered = receiver.delivered();
                assert!(self.arrived.replace(*packet).is_none(), "a packet was not answered");
            }
            Moment::Answered(_, answer) => {
                let packet = self.arrived.take().expect("an answer answers a packet");
                // A heartbeat may come before the SYN.
                let next = expand(answer.position, self.delivered);
                assert!(next == self.delivered + 1 || next == 0 && is_heartbeat(&packet));
                assert_eq!(answer.path, packet.path);
            }
        }
    }

    fn windows_add_up(&self, sender: &Sender) {
        if !self.is_simple {
            let (cwnd, ssthresh, ..) = sender.state();
            assert_eq!(cwnd, self.before.iter().map(|path| path.cwnd).sum::<f64>());
            assert_eq!(ssthresh, self.before.iter().map(|path| path.ssthresh).sum::<f64>());
            assert!(self.before.iter().all(|path| path.cwnd >= 1.0));
        }
    }
}

/// Runs until all is acknowledged and returns when that was.
fn run(config: MhipConfig, mut network: Network, packets: u64) -> Instant {
    let is_simple = config.generation == Generation::Simple;
    let mut observer = Observer { is_simple, packets, before: Vec::new(), arrived: None, delivered: 0 };
    let outcome = testkit::connect_observed(
        &FlowConfig::Mhip(Arc::new(config)),
        NEVER,
        &mut |now, packet| network.carry(now, packet),
        &mut |moment| observer.observe(moment),
    );
    assert_eq!(outcome.receiver.delivered(), packets);
    outcome.finished.expect("it ends")
}

fn way() -> impl Strategy<Value = Way> {
    let cut = prop::option::of((0u64..3_000, prop_oneof![1u64..5_000, Just(NEVER.as_millis())]));
    (1u64..200, 0u64..60, 0.0..0.3f64, cut).prop_map(|(delay, jitter, loss, cut)| Way {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss,
        cut: cut.map(|(from, length)| {
            let from = Instant::ZERO + Duration::from_millis(from);
            (from, from + Duration::from_millis(length))
        }),
    })
}

fn config(generation: Generation, ways: &[Way], packets: u64) -> MhipConfig {
    let path = |way: &Way| PathConfig { delay: way.delay, back: way.delay, rate: 4_000_000 };
    let mut config = MhipConfig::new(generation, ways.iter().map(path).collect());
    config.tcp.receiver_window = 64;
    config.tcp.data = Some(packets * u64::from(config.tcp.mss()));
    config
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_time: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn everything_arrives_over_any_network(
        generation in prop_oneof![Just(Generation::Simple), Just(Generation::TwoLevel), Just(Generation::Final)],
        growth in prop_oneof![Just(Growth::PerPath), Just(Growth::Coupled), Just(Growth::Lia)],
        per_bottleneck in any::<bool>(),
        mut ways in prop::collection::vec(way(), 1..4),
        packets in 1u64..150,
        dupthresh in 1u32..12,
        addr in prop::option::of(0.1..0.95f64),
        buffer in prop::option::of(0u32..40),
        jitter in 0u64..3,
        seed in any::<u64>(),
    ) {
        // At least one path comes back.
        if let Some((_, to)) = &mut ways[0].cut {
            *to = (*to).min(Instant::ZERO + Duration::from_secs(10));
        }
        let mut config = MhipConfig { growth, per_bottleneck, ..config(generation, &ways, packets) };
        if generation != Generation::Simple {
            config.dupthresh = dupthresh;
            config.addr = addr;
            config.receive_buffer = buffer;
        }
        config.tcp.send_jitter = Duration::from_millis(jitter);
        run(config, Network::new(ways, seed), packets);
    }
}

/// Over ideal paths nothing is sent twice, and the time is what the windows allow.
#[test]
fn ideal_paths_lose_nothing() {
    for generation in [Generation::Simple, Generation::TwoLevel, Generation::Final] {
        let way = Way { delay: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0.0, cut: None };
        let ways = vec![way; 2];
        let config = config(generation, &ways, 400);
        let end = run(config, Network::new(ways, 1), 400);
        // SYN, then 2, 4, 8, 16, 32 and 64 packets, four more windows of 64 and the rest: 12 round trips of 40 ms.
        assert!(end.as_secs_f64() < 13.5 * 0.04, "{generation:?}: {end}");
    }
}

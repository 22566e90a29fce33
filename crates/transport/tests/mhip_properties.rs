//! What holds for mHIP over any network: all data arrive, once and in order, whatever is lost, late or cut; the global
//! window is the sum of the paths'; no data but a probe are sent on a closed path; and it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use proptest::prelude::*;
use transport::mhip::{Generation, Growth, MhipConfig, MhipReceiver, MhipSender, PathConfig};
use transport::{BlockPool, Flags, Packet, expand};

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
    /// By time, and by a number where that is the same.
    under_way: BTreeMap<(Instant, u64), Packet>,
    number: u64,
}

impl Network {
    fn new(ways: Vec<Way>, seed: u64) -> Self {
        Self { ways, random: Rng::from_seed(seed), under_way: BTreeMap::new(), number: 0 }
    }

    fn carry(&mut self, now: Instant, packet: Packet) -> bool {
        let way = &self.ways[usize::from(packet.path)];
        let cut = way.cut.is_some_and(|(from, to)| now >= from && now < to);
        if cut || self.random.chance(way.loss) {
            return false;
        }
        let jitter = Duration::from_nanos(self.random.below(way.jitter.as_nanos().max(1)));
        self.number += 1;
        self.under_way.insert((now + way.delay + jitter, self.number), packet);
        true
    }
}

/// Signalling packets have both marks, data and their acknowledgments never.
fn is_heartbeat(packet: &Packet) -> bool {
    packet.flags.has(Flags::DUPLICATE.with(Flags::REFUSED))
}

/// Long after any timer.
const NEVER: Duration = Duration::from_secs(200_000);

/// Runs until all is acknowledged and returns when that was.
fn run(config: MhipConfig, mut network: Network, packets: u64) -> Result<Instant, TestCaseError> {
    let config = Arc::new(config);
    let mut sender = MhipSender::new(&config, Rng::from_seed(9));
    let mut receiver = MhipReceiver::new(&config);
    let mut pool = BlockPool::default();
    let mut now = Instant::ZERO;
    let mut delivered = 0;
    let mut timed_out = false;
    sender.start(now);
    loop {
        let mut burst = 0;
        loop {
            let before = sender.paths();
            let Some(packet) = sender.poll_transmit(now) else { break };
            let path = usize::from(packet.path);
            let after = sender.paths();
            prop_assert!(
                before[path].open
                    || is_heartbeat(&packet)
                    || after[path].counters.probes == before[path].counters.probes + 1,
                "packet {} is no probe, but its path is closed",
                packet.position
            );
            prop_assert!(before.iter().any(|path| path.open));
            network.carry(now, packet);
            burst += 1;
            prop_assert!(burst < 10_000, "sends without end");
        }
        if config.generation != Generation::Simple {
            let (cwnd, ssthresh, ..) = sender.state();
            let paths = sender.paths();
            prop_assert_eq!(cwnd, paths.iter().map(|path| path.cwnd).sum::<f64>());
            prop_assert_eq!(ssthresh, paths.iter().map(|path| path.ssthresh).sum::<f64>());
            prop_assert!(paths.iter().all(|path| path.cwnd >= 1.0));
        }
        if sender.is_complete() {
            prop_assert_eq!(receiver.delivered(), packets);
            return Ok(now);
        }
        let deadline = sender.deadlines().into_iter().min().unwrap_or(Instant::FAR_FUTURE);
        let next = network.under_way.first_key_value().map(|(key, _)| key.0);
        let at = next.map_or(deadline, |next| next.min(deadline));
        prop_assert!(
            at > now || next == Some(at) || !timed_out,
            "after a timeout the next one does not lie in the future"
        );
        timed_out = false;
        prop_assert!(at < Instant::ZERO + NEVER, "nothing will happen any more");
        now = at;
        if next == Some(at)
            && let Some((_, packet)) = network.under_way.pop_first()
        {
            if packet.flags.has(Flags::ACK) {
                let blocks = pool.take(packet.blocks);
                sender.handle_input(now, &packet, &blocks);
            } else {
                receiver.handle_input(now, &packet);
                prop_assert!(receiver.delivered() >= delivered && receiver.delivered() <= packets);
                delivered = receiver.delivered();
                let answer = receiver.poll_transmit(&mut pool).unwrap();
                // A heartbeat may come before the SYN.
                let next = expand(answer.position, delivered);
                prop_assert!(next == delivered + 1 || next == 0 && is_heartbeat(&packet));
                prop_assert_eq!(answer.path, packet.path);
                if !network.carry(now, answer) {
                    pool.take(answer.blocks);
                }
            }
        } else {
            sender.handle_timeout(now);
            timed_out = true;
        }
    }
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
        run(config, Network::new(ways, seed), packets)?;
    }
}

/// Over ideal paths nothing is sent twice, and the time is what the windows allow.
#[test]
fn ideal_paths_lose_nothing() {
    for generation in [Generation::Simple, Generation::TwoLevel, Generation::Final] {
        let way = Way { delay: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0.0, cut: None };
        let ways = vec![way; 2];
        let config = config(generation, &ways, 400);
        let end = run(config, Network::new(ways, 1), 400).unwrap();
        // SYN, then 2, 4, 8, 16, 32 and 64 packets, four more windows of 64 and the rest: 12 round trips of 40 ms.
        assert!(end.as_secs_f64() < 13.5 * 0.04, "{generation:?}: {end}");
    }
}

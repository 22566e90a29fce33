//! MPTCP over networks that lose, delay, reorder and fail as they like: all data arrive, once and in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use congestion::Rule;
use proptest::prelude::*;
use scheduler::Scheduler;
use testkit::{Fate, Moment, Outcome};
use transport::mhip::PathConfig;
use transport::mptcp::MptcpConfig;
use transport::{Details, Flags, FlowConfig, Packet, Recovery, TcpConfig, UndoBy};

/// Ten virtual hours.
const LIMIT: Duration = Duration::from_secs(36_000);

/// Runs until all data are acknowledged, or for [`LIMIT`]. Counts the first transmissions that were sent on a path after one
/// of a later place.
fn connect_counting(config: &Arc<MptcpConfig>, fate: &mut Fate<'_>) -> (Outcome, u64) {
    let (mut disorder, mut highest) = (0, vec![0; config.paths.len()]);
    let mut observer = |moment: Moment<'_>| {
        let Moment::Sent(_, packet) = moment else { return };
        if packet.position > 0 && !packet.flags.has(Flags::RETRANSMISSION) {
            let highest = &mut highest[usize::from(packet.path)];
            disorder += u64::from(packet.blocks < *highest);
            *highest = packet.blocks.max(*highest);
        }
    };
    let outcome = testkit::connect_observed(&FlowConfig::Mptcp(Arc::clone(config)), LIMIT, fate, &mut observer);
    (outcome, disorder)
}

fn connect(config: &Arc<MptcpConfig>, fate: &mut Fate<'_>) -> Outcome {
    testkit::connect(&FlowConfig::Mptcp(Arc::clone(config)), LIMIT, fate)
}

fn paths(count: usize) -> Vec<PathConfig> {
    let delay = Duration::from_millis(20);
    vec![PathConfig { delay, back: delay, rate: 10_000_000 }; count]
}

fn config(tcp: TcpConfig, count: usize, scheduler: &str) -> MptcpConfig {
    MptcpConfig { scheduler: scheduler.parse::<Scheduler>().unwrap(), ..MptcpConfig::new(tcp, paths(count)) }
}

proptest! {
    /// The oracle is the application: so many bytes were to be sent, and so many arrived in order, whatever a path loses,
    /// however it delays, and even if all but one fail at some time for good.
    #[test]
    fn all_data_arrive_over_any_network(
        scheduler in prop::sample::select(Scheduler::NAMES.to_vec()),
        rule in prop::sample::select(Rule::NAMES.to_vec()),
        recovery in prop::sample::select(vec![Recovery::Reno, Recovery::NewReno, Recovery::Sack]),
        details in prop::sample::select(vec![Details::Rfc, Details::Rfc, Details::Ns2]),
        undo in prop::sample::select(vec![UndoBy::Never, UndoBy::Eifel, UndoBy::DuplicateReports]),
        opportunistic in any::<bool>(),
        count in 1usize..5,
        jitter in 0u64..3,
        window in 1u32..300,
        data in 1u64..400_000,
        loss in prop::collection::vec(0.0..0.3_f64, 4),
        delay in prop::collection::vec(1u64..200, 4),
        spread in 0u64..40,
        fails in prop::collection::vec(prop::option::of(0u64..3000), 4),
        survivor in 0usize..4,
        seed in any::<u64>(),
    ) {
        let base = match details {
            Details::Rfc => TcpConfig { recovery, ..TcpConfig::default() },
            Details::Ns2 => TcpConfig::ns2(recovery),
        };
        let tcp = TcpConfig {
            rule: rule.parse::<Rule>().unwrap(),
            undo,
            timestamps: base.timestamps || undo == UndoBy::Eifel,
            send_jitter: Duration::from_millis(jitter),
            receiver_window: window,
            data: Some(data),
            ..base
        };
        let mss = u64::from(tcp.mss());
        let config = Arc::new(MptcpConfig { opportunistic, ..config(tcp, count, scheduler) });
        let mut random = Rng::from_seed(seed);
        let (outcome, disorder) = connect_counting(&config, &mut |now, packet| {
            let path = usize::from(packet.path);
            let failed = fails[path].is_some_and(|at| now >= Instant::ZERO + Duration::from_millis(at));
            if failed && path != survivor % count {
                return None;
            }
            (!random.chance(loss[path])).then(|| Duration::from_millis(delay[path] + random.below(spread + 1)))
        });
        prop_assert!(outcome.finished.is_some(), "stuck at {} packets", outcome.receiver.delivered());
        prop_assert_eq!(outcome.receiver.delivered(), data.div_ceil(mss));
        // New data are sent in order on each path; what waits for a path that fails is sent late by another.
        if !["sttf", "otias", "daps"].contains(&scheduler) {
            prop_assert_eq!(disorder, 0);
        }
        let (sent, arrived) = (outcome.sender.counters(), outcome.receiver.statistics());
        prop_assert!(arrived.packets <= sent.sent);
        let status = outcome.sender.paths();
        prop_assert_eq!(status.iter().map(|path| path.counters.sent).sum::<u64>(), sent.sent);
        let new: u64 = outcome.receiver.paths().iter().map(|path| path.new).sum();
        prop_assert_eq!(new, data.div_ceil(mss));
        prop_assert!(outcome.receiver.most_held() < u64::from(window));
    }

    /// With one path MPTCP is TCP, packet for packet, whatever the scheduler.
    #[test]
    fn with_one_path_it_is_tcp(
        scheduler in prop::sample::select(Scheduler::NAMES.to_vec()),
        rule in prop::sample::select(vec!["newreno", "cubic", "lia", "olia", "balia"]),
        recovery in prop::sample::select(vec![Recovery::NewReno, Recovery::Sack]),
        details in prop::sample::select(vec![Details::Rfc, Details::Ns2]),
        jitter in 0u64..3,
        window in 2u32..200,
        data in 1u64..400_000,
        loss in 0.0..0.2_f64,
        spread in 0u64..30,
        seed in any::<u64>(),
    ) {
        let base = match details {
            Details::Rfc => TcpConfig { recovery, ..TcpConfig::default() },
            Details::Ns2 => TcpConfig::ns2(recovery),
        };
        let tcp = TcpConfig {
            rule: rule.parse::<Rule>().unwrap(),
            send_jitter: Duration::from_millis(jitter),
            receiver_window: window,
            data: Some(data),
            ..base
        };
        let trace = |mptcp: bool| {
            let mut random = Rng::from_seed(seed);
            let mut trace = Vec::new();
            let mut fate = |now: Instant, packet: &Packet| {
                trace.push((now, packet.position, packet.bytes, packet.flags));
                (!random.chance(loss)).then(|| Duration::from_millis(20 + random.below(spread + 1)))
            };
            if mptcp {
                connect(&Arc::new(config(tcp.clone(), 1, scheduler)), &mut fate);
            } else {
                testkit::connect(&FlowConfig::Tcp(Arc::new(tcp.clone())), LIMIT, &mut fate);
            }
            trace
        };
        let (ours, tcps) = (trace(true), trace(false));
        if let Some(at) = (0..ours.len().max(tcps.len())).find(|i| ours.get(*i) != tcps.get(*i)) {
            let near = at.saturating_sub(12)..at + 3;
            prop_assert!(false, "{:#?} {:#?}", ours.get(near.clone()), tcps.get(near));
        }
    }
}

/// RFC 8684 §3.3.6: what a path owes when it fails, the other carries, long before the failed one is heard of again.
#[test]
fn a_path_that_fails_costs_a_timeout() {
    let tcp = TcpConfig { data: Some(3_000_000), receiver_window: 400, ..TcpConfig::default() };
    for name in Scheduler::NAMES {
        let config = Arc::new(config(tcp.clone(), 2, name));
        let outcome = connect(&config, &mut |now, packet| {
            let failed = packet.path == 1 && now >= Instant::ZERO + Duration::from_millis(300);
            (!failed).then(|| Duration::from_millis(if packet.path == 0 { 20 } else { 10 }))
        });
        let paths = outcome.sender.paths();
        assert_eq!(outcome.receiver.delivered(), 2055, "{name}");
        let finished = outcome.finished.unwrap() - Instant::ZERO;
        // The timer of RFC 6298 is a second at least; the first after the failure starts what is sent again.
        assert!(finished < Duration::from_secs(4), "{name}: {finished}");
        // Where everything is on both paths, the data are there before the timer runs out.
        if paths[1].counters.sent > 5 && *name != "redundant" {
            assert!(paths[1].counters.closings == 1 && !paths[1].open, "{name}");
        }
    }
}

/// NSDI 2012 §4.2: a receiver's window smaller than what the paths hold lets the slow path stop the fast one; opportunistic
/// retransmission and penalisation get most of the fast path's rate back.
#[test]
fn opportunistic_retransmission_helps_with_small_windows() {
    let seconds = |opportunistic| {
        // A fast path, and a slow one with a long queue.
        let tcp = TcpConfig { data: Some(6_000_000), receiver_window: 60, ..TcpConfig::default() };
        let config = Arc::new(MptcpConfig { opportunistic, ..config(tcp, 2, "lowest-rtt") });
        let mut free = [Instant::ZERO; 2];
        let outcome = connect(&config, &mut |now, packet| {
            if packet.flags.has(Flags::ACK) {
                return Some(Duration::from_millis(10));
            }
            let path = usize::from(packet.path);
            let rate = [20_000_000, 500_000][path];
            free[path] = free[path].max(now) + Duration::of_transmission(packet.bytes.into(), rate);
            Some(free[path] + Duration::from_millis([10, 100][path]) - now)
        });
        (outcome.finished.unwrap() - Instant::ZERO).as_secs_f64()
    };
    let (without, with) = (seconds(false), seconds(true));
    // The fast path alone would take 2.5 s.
    assert!(with < 0.8 * without && with < 2.9, "{with} {without}");
}

/// Each path carries each packet, and the connection is as fast as its fastest path; the other is dead weight only.
#[test]
fn redundant_sends_everything_everywhere() {
    let tcp = TcpConfig { data: Some(300_000), ..TcpConfig::default() };
    let config = Arc::new(config(tcp, 2, "redundant"));
    let mut carried = [BTreeSet::new(), BTreeSet::new()];
    let outcome = connect(&config, &mut |_, packet| {
        if !packet.flags.has(Flags::ACK) && packet.position > 0 {
            carried[usize::from(packet.path)].insert(packet.blocks);
        }
        Some(Duration::from_millis(10))
    });
    assert_eq!(outcome.receiver.delivered(), 206);
    assert!(carried.iter().all(|places| places.len() > 190), "{} {}", carried[0].len(), carried[1].len());
    assert_eq!(carried[0].union(&carried[1]).count(), 206);
}

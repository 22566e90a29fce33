//! What holds for any sequence of events: windows are numbers and not below a packet, thresholds have their floors, one
//! path is a New Reno where ALGORITHMS §4 says so, coupled paths add up, and the goals of RFC 6356 as bounds.

use crate::common::Bench;
use clock::{Duration, Instant, Rng};
use congestion::lia::{alpha, coupled_increase};
use congestion::{
    Acked, Cause, Congestion, Controller, EngineConfig, Olia, Rp2, Rule, SlowStartTest, Undo, WindowRounding,
    WindowRule,
};
use proptest::prelude::*;

const MSS: u32 = 1000;

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

/// One event on one of several paths.
#[derive(Clone, Debug)]
struct Event {
    path: usize,
    kind: u8,
    packets: u64,
    /// Parts of the window that are outstanding.
    used: f64,
    /// Round-trip time and time since the last event.
    rtt: Duration,
    pause: Duration,
}

fn event(rtts: std::ops::Range<u64>) -> impl Strategy<Value = Event> {
    (0usize..4, 0u8..24, 1u64..5, 0.5f64..1.2, rtts, 0u64..200).prop_map(|(path, kind, packets, used, rtt, pause)| {
        Event { path, kind, packets, used, rtt: Duration::from_micros(rtt), pause: Duration::from_millis(pause) }
    })
}

/// Plays events to a controller of `paths` paths. `whole` leaves no flight different from the window.
struct Player<R> {
    controller: Controller<R>,
    now: Instant,
    position: u64,
    whole: bool,
}

impl<R: WindowRule> Player<R> {
    fn new(rule: R, config: EngineConfig, paths: usize, whole: bool) -> Self {
        let mut controller = Controller::new(rule, config);
        controller.seed(Rng::from_seed(1));
        for _ in 0..paths {
            controller.add_path(MSS);
        }
        Self { controller, now: Instant::ZERO, position: 1, whole }
    }

    /// Takes over windows that have come apart by the last bit: that decides between slow start and avoidance.
    fn align<S: WindowRule>(&mut self, other: &Player<S>) {
        self.controller.set_cwnd(0, other.controller.cwnd(0));
        self.controller.set_ssthresh(0, other.controller.ssthresh(0));
    }

    fn play(&mut self, event: &Event) {
        let controller = &mut self.controller;
        let path = event.path % controller.paths().len();
        self.now += event.pause;
        self.position += event.packets;
        let flight = controller.cwnd(path) * if self.whole { 1.0 } else { event.used };
        let sign = |cause| Congestion { cause, flight, next: self.position };
        match event.kind {
            0 => drop(controller.on_congestion(path, &sign(Cause::Loss), self.now)),
            1 => drop(controller.on_congestion(path, &sign(Cause::Timeout), self.now)),
            2 => drop(controller.on_congestion(path, &sign(Cause::Ecn), self.now)),
            3 | 4 => drop(controller.on_spurious(path, Undo::Restore, self.now)),
            5 => controller.on_idle(path, self.now),
            6 => {
                let open = controller.paths()[path].open;
                controller.set_open(path, !open);
            }
            7 => controller.path_changed(path),
            kind => {
                let acked = Acked {
                    bytes: event.packets * u64::from(MSS),
                    flight: flight.ceil() as u64,
                    upto: self.position,
                    next: self.position + 3,
                    rtt: (kind > 8).then_some(event.rtt),
                    srtt: event.rtt,
                };
                if kind == 9 {
                    let other = (path + 1) % controller.paths().len();
                    let both = [(path, acked), (other, acked)];
                    controller.on_acks(&both[..if other == path { 1 } else { 2 }], self.now);
                } else {
                    controller.on_ack(path, &acked, self.now);
                }
            }
        }
    }
}

fn any_rule() -> impl Strategy<Value = String> {
    let more = [
        "rp2:blocking=off",
        "lia-byte:coupled_slow_start=off",
        "olia:ranking=l2/rtt",
        "mhip:growth=coupled",
        "mhip:growth=lia",
        "daimd:needs_loss=off,ageing=64,statistic=mean",
        "daimd-balia:hold=10,high=0.3",
        "vegas:divisor=base",
        "compound:tuning=off",
        "cdg:scale=0.1",
    ];
    prop::sample::select(Rule::NAMES.iter().copied().chain(more).map(str::to_owned).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn a_window_is_a_number_of_at_least_one_packet(
        name in any_rule(),
        sctp in any::<bool>(),
        whole_packets in any::<bool>(),
        paths in 1usize..5,
        events in prop::collection::vec(event(0..3_000_000), 1..300),
    ) {
        let base = if sctp { EngineConfig::sctp(congestion::InitialWindow::Shared(2), 100_000) } else { EngineConfig::default() };
        let rounding = if whole_packets { WindowRounding::WholePacketThreshold } else { WindowRounding::Exact };
        let mut player = Player::new(rule(&name), EngineConfig { rounding, ..base }, paths, false);
        for event in &events {
            player.play(event);
            for path in player.controller.paths() {
                prop_assert!(path.cwnd >= path.mss && path.cwnd.is_finite(), "{name}: {}", path.cwnd);
                prop_assert!(path.ssthresh >= path.mss, "{name}: {}", path.ssthresh);
            }
            let open = player.controller.paths().iter().filter(|path| path.open);
            let sum: f64 = open.map(|path| path.cwnd).sum();
            prop_assert!((player.controller.association_window() - sum).abs() < 1e-6);
        }
    }

    /// ALGORITHMS §4, first line. The oracle is the other rule; a path that closes has no siblings either.
    #[test]
    fn one_path_is_a_new_reno(
        name in prop::sample::select(vec!["lia", "olia", "balia", "ewtcp", "coupled", "semicoupled"]),
        events in prop::collection::vec(event(1_000..300_000), 1..400),
    ) {
        let config = EngineConfig::default();
        let mut ours = Player::new(rule(name), config, 1, false);
        let mut reno = Player::new(rule("newreno"), config, 1, false);
        for event in &events {
            ours.play(event);
            reno.play(event);
            let (a, b) = (ours.controller.cwnd(0), reno.controller.cwnd(0));
            prop_assert!((a - b).abs() <= 1e-9 * b, "{name}: {a} is not {b}");
            ours.align(&reno);
        }
    }

    /// The same for mHIP, whose losses halve the window rather than what is outstanding, and of DAIMD as long as no
    /// queue builds up.
    #[test]
    fn one_path_in_full_use_is_a_new_reno(
        name in prop::sample::select(vec![
            "mhip", "mhip:growth=coupled", "mhip:growth=lia", "daimd", "daimd-olia", "daimd-balia",
        ]),
        events in prop::collection::vec(event(100_000..100_900), 1..400),
    ) {
        let config = EngineConfig::default();
        let mut ours = Player::new(rule(name), config, 1, true);
        let mut reno = Player::new(rule("newreno"), config, 1, true);
        for event in &events {
            ours.play(event);
            reno.play(event);
            let (a, b) = (ours.controller.cwnd(0), reno.controller.cwnd(0));
            prop_assert!((a - b).abs() <= 1e-9 * b, "{name}: {a} is not {b}");
            ours.align(&reno);
        }
    }

    /// The rules of SCTP with one path grow as its Reno between losses, to the byte.
    #[test]
    fn one_path_is_a_reno_of_sctp(
        name in prop::sample::select(vec!["reno-mp", "rp1", "rp2", "lia-byte"]),
        events in prop::collection::vec(event(1_000..300_000), 1..400),
    ) {
        let config = EngineConfig::sctp(congestion::InitialWindow::Rfc3390, 20_000);
        let mut ours = Player::new(rule(name), config, 1, false);
        let mut reno = Player::new(rule("reno-sp"), config, 1, false);
        for event in events.iter().filter(|event| event.kind > 7) {
            ours.play(event);
            reno.play(event);
            prop_assert_eq!(ours.controller.cwnd(0), reno.controller.cwnd(0));
        }
    }

    /// RP-MP-v1 and the byte form of LIA fall as Reno too, where no floor binds.
    #[test]
    fn one_path_falls_as_a_reno_of_sctp(
        name in prop::sample::select(vec!["rp1", "lia-byte"]),
        events in prop::collection::vec(event(1_000..300_000), 1..400),
    ) {
        let config = EngineConfig::sctp(congestion::InitialWindow::Rfc3390, 100_000);
        let mut ours = Player::new(rule(name), config, 1, false);
        let mut reno = Player::new(rule("reno-sp"), config, 1, false);
        for event in &events {
            if event.kind < 3 && reno.controller.cwnd(0) < 9.0 * f64::from(MSS) {
                continue;
            }
            ours.play(event);
            reno.play(event);
            prop_assert_eq!(ours.controller.cwnd(0), reno.controller.cwnd(0));
        }
    }

    /// The layer does nothing where delays tell nothing: DAIMD over a rule is the rule, on any number of paths.
    #[test]
    fn a_layer_without_delays_is_the_rule_below(
        pair in prop::sample::select(vec![("daimd", "lia"), ("daimd-olia", "olia"), ("daimd-balia", "balia")]),
        paths in 1usize..5,
        events in prop::collection::vec(event(100_000..100_900), 1..300),
    ) {
        let config = EngineConfig { initial_window: congestion::InitialWindow::Packets(40), ..EngineConfig::default() };
        let (mut layer, mut below) = (Player::new(rule(pair.0), config, paths, true), Player::new(rule(pair.1), config, paths, true));
        for event in &events {
            let path = event.path % paths;
            // Its floor is two packets, theirs one.
            if event.kind < 3 && below.controller.cwnd(path) < 8.0 * f64::from(MSS) {
                continue;
            }
            layer.play(event);
            below.play(event);
            for path in 0..paths {
                prop_assert_eq!(layer.controller.cwnd(path), below.controller.cwnd(path));
            }
        }
    }
}

/// Windows in packets and round-trip times in seconds.
fn several_paths() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((2.0f64..500.0, 0.002f64..0.5), 1..6)
}

fn bench<R: WindowRule>(rule: R, paths: &[(f64, f64)]) -> Bench<R> {
    let paths: Vec<_> = paths.iter().map(|&(w, rtt)| (w * 1e3, w * 1e3, rtt)).collect();
    Bench::new(rule, MSS, &paths)
}

/// What one packet adds on each path, in packets, if all grow from the same windows.
fn increases(text: &str, paths: &[(f64, f64)]) -> Vec<f64> {
    (0..paths.len()).map(|path| bench(rule(text), paths).grow(path) / 1e3).collect()
}

/// The window of a Reno that loses as often as path `i` does in equilibrium: increase and decrease balance where
/// `increase = p · w/2`, and Reno's window is `√(2/p)`.
fn reno_window(w: f64, increase: f64) -> f64 {
    (w / increase).sqrt()
}

proptest! {
    /// RFC 6356 §1: goal 1, improve throughput: at least what a TCP on the best path would have. Goal 2, do no harm: on
    /// no path more than a TCP there. Both in the equilibrium of the square-root formula.
    #[test]
    fn lia_meets_the_goals_of_rfc_6356(paths in several_paths()) {
        let increases = increases("lia", &paths);
        let total: f64 = paths.iter().map(|(w, rtt)| w / rtt).sum();
        let mut best = 0.0_f64;
        for (&(w, rtt), more) in paths.iter().zip(&increases) {
            prop_assert!(*more <= 1.0 / w * (1.0 + 1e-6), "goal 2");
            best = best.max(reno_window(w, *more) / rtt);
        }
        prop_assert!(total >= best * (1.0 - 1e-6), "goal 1: {total} and {best}");
        // Where the caps of goal 2 do not bind, no more than that either.
        let bound = increases.iter().zip(&paths).any(|(more, (w, _))| more * w > 1.0 - 1e-6);
        prop_assert!(bound || total <= best * (1.0 + 1e-6));
    }

    /// With `Σ(w/RTT) ≤ √(max(w/RTT²)) · Σ√w` and `Σ(w/RTT)² ≥ max(w/RTT²) · min(w)`.
    #[test]
    fn alpha_is_within_its_bounds(paths in several_paths()) {
        let bench = bench(rule("lia"), &paths);
        let group = bench.controller.group(Instant::ZERO);
        let windows: f64 = paths.iter().map(|(w, _)| w).sum();
        prop_assert!((coupled_increase(group).unwrap() * windows - alpha(group)).abs() < 1e-9 * alpha(group));
        let roots: f64 = paths.iter().map(|(w, _)| w.sqrt()).sum();
        let smallest = paths.iter().map(|(w, _)| *w).fold(f64::INFINITY, f64::min);
        prop_assert!(alpha(group) >= windows / (roots * roots) * (1.0 - 1e-6));
        prop_assert!(alpha(group) <= windows / smallest * (1.0 + 1e-6));
    }

    /// Khalili and others: ε moves windows between paths and makes none.
    #[test]
    fn the_epsilons_of_olia_add_up_to_nothing(
        paths in several_paths(),
        acked in prop::collection::vec(0u64..2000, 6),
    ) {
        let mut bench = bench(Olia::default(), &paths);
        for (path, packets) in acked.iter().take(paths.len()).enumerate() {
            bench.acked(path, packets * 1000, 0.0, None);
        }
        let group = bench.controller.group(Instant::ZERO);
        let epsilons: Vec<f64> = (0..paths.len()).map(|path| bench.controller.rule().epsilon(path, group)).collect();
        prop_assert!(epsilons.iter().sum::<f64>().abs() < 1e-9, "{epsilons:?}");
        prop_assert!(epsilons.iter().all(|epsilon| epsilon.abs() <= 1.0 / paths.len() as f64 + 1e-12));
    }

    /// Resource pooling: shares are of one whole, and a loss costs half of the bandwidth of all, as long as the path has
    /// that much.
    #[test]
    fn resource_pooling_shares_one_whole(paths in several_paths()) {
        let bench = bench(Rp2::default(), &paths);
        let group = bench.controller.group(Instant::ZERO);
        let shares: Vec<f64> = (0..paths.len()).map(|path| bench.controller.rule().share(path, group)).collect();
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        for (path, share) in shares.iter().enumerate() {
            let lost = bench.controller.rule().decrease_factor(path, group) * share;
            prop_assert!((lost - 0.5).abs() < 1e-9);
        }
        let shares: Vec<f64> = {
            let bench = self::bench(congestion::Rp1::default(), &paths);
            (0..paths.len()).map(|path| bench.controller.rule().share(path, bench.controller.group(Instant::ZERO))).collect()
        };
        prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// In a round of equal round-trip times the coupled and semi-coupled controls, and mHIP so coupled, add one packet to
    /// all windows together; uncoupled ones a packet to each; EWTCP √n.
    #[test]
    fn the_bundle_grows_by_so_much_in_a_round(windows in prop::collection::vec(2.0f64..500.0, 1..6)) {
        let paths: Vec<_> = windows.iter().map(|w| (*w, 0.1)).collect();
        let n = paths.len() as f64;
        for (text, packets) in [
            ("coupled", 1.0), ("semicoupled", 1.0), ("mhip:growth=coupled", 1.0), ("newreno", n), ("mhip", n), ("ewtcp", n.sqrt()),
        ] {
            let all: f64 = windows.iter().zip(increases(text, &paths)).map(|(w, more)| w * more).sum();
            prop_assert!((all - packets).abs() < 1e-6, "{text}: {all}");
        }
    }

    /// Peng and others, theorem 1: with equal windows and round-trip times BALIA is as friendly as one TCP: n paths of a
    /// bottleneck take what one Reno takes.
    #[test]
    fn equal_paths_of_balia_and_lia_are_one_reno(w in 2.0f64..500.0, n in 1usize..6, rtt in 0.002f64..0.5) {
        let paths = vec![(w, rtt); n];
        for text in ["balia", "lia", "olia"] {
            let more = increases(text, &paths)[0];
            prop_assert!((reno_window(w, more) - n as f64 * w).abs() < 1e-6 * w, "{text}");
        }
    }

    /// All paths of one acknowledgment grow by the windows before it: the order of the paths does not matter.
    #[test]
    fn one_acknowledgment_of_several_paths_has_no_order(
        name in prop::sample::select(vec!["rp1", "rp2", "lia-byte", "lia", "olia", "balia", "ewtcp", "coupled", "semicoupled", "mhip:growth=coupled"]),
        paths in several_paths(),
    ) {
        let grown = |reverse: bool| {
            let mut bench = bench(rule(name), &paths);
            let mut acked: Vec<(usize, Acked)> = paths.iter().enumerate().map(|(path, &(w, rtt))| {
                let (bytes, rtt) = ((w * 1e3).ceil() as u64, Duration::from_secs_f64(rtt));
                (path, Acked { bytes, flight: bytes, upto: 0, next: 9, rtt: Some(rtt), srtt: rtt })
            }).collect();
            if reverse {
                acked.reverse();
            }
            bench.controller.on_acks(&acked, Instant::ZERO);
            bench.windows()
        };
        prop_assert_eq!(grown(false), grown(true));
    }
}

/// The least threshold in packets, with one path and with two: two (RFC 5681 §3.1, equation 4), but for those of which ALGORITHMS
/// §4.10 has others in its last column.
#[test]
fn floors() {
    let others = [
        ("reno-sp", 4.0, 4.0),
        ("reno-mp", 4.0, 4.0),
        ("rp1", 1.0, 1.0),
        ("rp2", 1.0, 1.0),
        ("lia-byte", 1.0, 1.0),
        ("lia", 2.0, 1.0),
        ("olia", 2.0, 1.0),
        ("balia", 2.0, 1.0),
        ("ewtcp", 2.0, 1.0),
        ("coupled", 2.0, 1.0),
        ("semicoupled", 2.0, 1.0),
    ];
    for name in Rule::NAMES {
        let other = others.iter().find(|(other, ..)| other == name);
        let (_, alone, with_a_sibling) = other.copied().unwrap_or((name, 2.0, 2.0));
        for (paths, floor) in [(1, alone), (2, with_a_sibling)] {
            let mut bench = bench(rule(name), &vec![(1.0, 0.1); paths]);
            for _ in 0..3 {
                bench.congestion(0, Cause::Timeout);
                assert_eq!(bench.controller.cwnd(0), 1e3, "{name}");
                assert_eq!(bench.controller.ssthresh(0), floor * 1e3, "{name} of {paths}");
            }
        }
    }
}

/// ALGORITHMS §13 A5.
#[test]
fn at_the_threshold_sctp_starts_slowly_and_tcp_does_not() {
    for (test, more) in [(SlowStartTest::BelowOrEqual, 1000.0), (SlowStartTest::Below, 100.0)] {
        let config = EngineConfig { initial_ssthresh: 10e3, slow_start_test: test, ..EngineConfig::default() };
        let mut controller = Controller::new(rule("newreno"), config);
        controller.add_path(MSS);
        assert_eq!(controller.cwnd(0), 10e3);
        let acked = Acked { bytes: 1000, flight: 10_000, upto: 1, next: 2, rtt: None, srtt: Duration::ZERO };
        controller.on_ack(0, &acked, Instant::ZERO);
        assert_eq!(controller.cwnd(0), 10e3 + more);
    }
}

//! The check vectors of mHIP's two-level control (ALGORITHMS §6.3 and §6.4), computed by an independent program.

mod common;

use clock::{Duration, Instant};
use common::{Bench, assert_near, number, numbers, seconds, vector};
use congestion::mhip::{allowable_delay, engine};
use congestion::{Cause, Controller, Growth, Mhip, Undo};
use serde_json::Value;

/// Windows and thresholds of both paths, and of the association.
#[track_caller]
fn assert_state(bench: &Bench<Mhip>, state: &[Value]) {
    for (path, (cwnd, ssthresh)) in numbers(&state[0]).into_iter().zip(numbers(&state[1])).enumerate() {
        assert_near(bench.controller.cwnd(path), cwnd);
        assert_near(bench.controller.ssthresh(path), ssthresh);
    }
    assert_near(bench.controller.association_window(), number(&state[2][0]));
    assert_near(bench.controller.association_ssthresh(), number(&state[2][1]));
}

#[test]
fn mhip2_1_two_levels_and_the_delay_due_to_reordering() {
    let (input, output) = vector("mhip2.1");
    let (w, ssthresh) = (numbers(&input["w"]), numbers(&input["ssthresh"]));
    let rtt = number(&input["min_rtt"]);
    let mut bench = Bench::new(Mhip::default(), 1, &[(w[0], ssthresh[0], rtt), (w[1], ssthresh[1], rtt)]);
    let trace: Vec<&[Value]> =
        output["trace"].as_array().unwrap().iter().map(|step| &step.as_array().unwrap()[1..]).collect();
    let addr = allowable_delay(bench.controller.group(bench.now)).unwrap();
    assert_eq!(addr, seconds(number(&input["addr"])));
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);

    bench.grow(0);
    assert_state(&bench, trace[0]);
    bench.grow(1);
    assert_state(&bench, trace[1]);
    bench.now = at(1000);
    assert!(bench.congestion(0, Cause::Loss));
    assert_state(&bench, trace[2]);
    let restored = bench.controller.on_spurious(0, Undo::RestoreWithin(addr), at(1050));
    assert_eq!(restored, trace[3][0].as_bool().unwrap());
    assert_state(&bench, &trace[3][1..]);
    bench.now = at(2000);
    assert!(bench.congestion(1, Cause::Loss));
    let restored = bench.controller.on_spurious(1, Undo::RestoreWithin(addr), at(2200));
    assert_eq!(restored, trace[4][0].as_bool().unwrap());
    assert_state(&bench, &trace[4][1..]);
    // Too late is for good.
    assert!(!bench.controller.on_spurious(1, Undo::RestoreWithin(addr), at(2200)));
}

#[test]
fn mhip2_2_growth_in_a_round_trip() {
    let (input, output) = vector("mhip2.2");
    let w = numbers(&input["w"]);
    // One packet adds so much, and a window of packets is acknowledged in a round trip.
    let per_round = |growth: Growth, path: usize| {
        let paths = [(w[0], w[0], 0.12), (w[1], w[1], 0.12)];
        w[path] * Bench::new(Mhip { growth, ..Mhip::default() }, 1, &paths).grow(path)
    };
    let all = |growth| per_round(growth, 0) + per_round(growth, 1);
    assert!((all(Growth::PerPath) - number(&output["per_path_per_rtt"])).abs() < 1e-9);
    assert!((all(Growth::Coupled) - number(&output["coupled_per_rtt"])).abs() < 1e-9);
    let path0 = per_round(Growth::Coupled, 0);
    assert!((path0 - number(&output["path0_coupled_per_rtt"])).abs() < 1e-9);
    // At equal round-trip times RFC 6356 has α = w_max / Σw packets for all.
    assert!((all(Growth::Lia) - 40.0 / 60.0).abs() < 1e-9);
}

/// Paths through one bottleneck grow as one Reno, by one packet a round trip; one with a bottleneck of its own as another.
#[test]
fn those_that_share_a_bottleneck_grow_as_one() {
    let windows = [(10.0, 5.0, 0.1), (30.0, 5.0, 0.1), (20.0, 5.0, 0.1)];
    let rule = Mhip { growth: Growth::PerBottleneck, bundles: vec![0, 0, 2] };
    let per_round = |path: usize| windows[path].0 * Bench::new(rule.clone(), 1, &windows).grow(path);
    assert!((per_round(0) - 0.25).abs() < 1e-9 && (per_round(1) - 0.75).abs() < 1e-9);
    assert!((per_round(2) - 1.0).abs() < 1e-9);
}

/// ALGORITHMS §13 M18, and slow start that counts packets, not acknowledgments.
#[test]
fn the_association_shares_its_first_window_and_its_receiver_window() {
    let mut controller = Controller::new(Mhip::default(), engine(3, 720_000, 2));
    controller.add_path(1000);
    controller.add_path(1000);
    assert_eq!(controller.association_window(), 4000.0);
    assert_eq!(controller.association_ssthresh(), 720_000.0);
    let acked = congestion::Acked {
        bytes: 2000,
        flight: 2000,
        upto: 1,
        next: 3,
        rtt: Some(Duration::from_millis(120)),
        srtt: Duration::from_millis(120),
    };
    controller.on_ack(1, &acked, Instant::ZERO);
    assert_eq!(controller.cwnd(1), 4000.0);
    assert_eq!(controller.cwnd(0), 2000.0);
}

/// A timeout is the path's own affair as well (ALGORITHMS §13 M16).
#[test]
fn a_timeout_leaves_the_other_path() {
    let mut bench = Bench::new(Mhip::default(), 1, &[(40.0, 30.0, 0.12), (20.0, 25.0, 0.12)]);
    bench.congestion(0, Cause::Timeout);
    assert_eq!(bench.windows(), [1.0, 20.0]);
    assert_eq!(bench.controller.ssthresh(0), 20.0);
    assert_eq!(bench.controller.ssthresh(1), 25.0);
}

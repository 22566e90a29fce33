//! The check vectors of mHIP's two-level control (ALGORITHMS §6.3 and §6.4), computed by an independent program.

use crate::common::{Bench, assert_near, number, numbers, vector};
use congestion::{Cause, Growth, Mhip, Undo};
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

/// What reordering across paths does to a reduction (ADDR) is tested with its owner, in `transport`.
#[test]
fn mhip2_1_two_levels() {
    let (input, output) = vector("mhip2.1");
    let (w, ssthresh) = (numbers(&input["w"]), numbers(&input["ssthresh"]));
    let rtt = number(&input["min_rtt"]);
    let mut bench = Bench::new(Mhip::default(), 1, &[(w[0], ssthresh[0], rtt), (w[1], ssthresh[1], rtt)]);
    let trace: Vec<&[Value]> =
        output["trace"].as_array().unwrap().iter().map(|step| &step.as_array().unwrap()[1..]).collect();
    bench.grow(0);
    assert_state(&bench, trace[0]);
    bench.grow(1);
    assert_state(&bench, trace[1]);
    assert!(bench.congestion(0, Cause::Loss));
    assert_state(&bench, trace[2]);
    assert!(bench.controller.on_spurious(0, Undo::Restore, bench.now));
    assert_state(&bench, &trace[3][1..]);
    assert!(!bench.controller.on_spurious(0, Undo::Restore, bench.now), "once");
}

#[test]
fn mhip2_2_growth_in_a_round_trip() {
    let (input, output) = vector("mhip2.2");
    let w = numbers(&input["w"]);
    // One packet adds so much, and a window of packets is acknowledged in a round trip.
    let per_round = |growth: Growth, path: usize| {
        let paths = [(w[0], w[0], 0.12), (w[1], w[1], 0.12)];
        w[path] * Bench::new(Mhip { growth }, 1, &paths).grow(path)
    };
    let all = |growth| per_round(growth, 0) + per_round(growth, 1);
    assert!((all(Growth::PerPath) - number(&output["per_path_per_rtt"])).abs() < 1e-9);
    assert!((all(Growth::Coupled) - number(&output["coupled_per_rtt"])).abs() < 1e-9);
    let path0 = per_round(Growth::Coupled, 0);
    assert!((path0 - number(&output["path0_coupled_per_rtt"])).abs() < 1e-9);
    // At equal round-trip times RFC 6356 has α = w_max / Σw packets for all.
    assert!((all(Growth::Lia) - 40.0 / 60.0).abs() < 1e-9);
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

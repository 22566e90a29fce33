//! The check vectors of the engine and of the rules for a single path (ALGORITHMS §1, §2.5, §3.1, §3.3, §3.4), computed by
//! an independent program.

use crate::common::{assert_near, number, vector};
use clock::{Duration, Instant};
use congestion::{
    Acked, Cause, Congestion, Controller, Cubic, Divisor, EngineConfig, InitialWindow, NewReno, Undo, Vegas, WindowRule,
};

/// A controller of one path with this window and threshold in bytes.
fn with<R: WindowRule>(rule: R, mss: u32, cwnd: f64, ssthresh: f64) -> Controller<R> {
    let config = EngineConfig { initial_ssthresh: ssthresh, ..EngineConfig::default() };
    let mut controller = Controller::new(rule, config);
    controller.add_path(mss);
    controller.set_cwnd(0, cwnd);
    controller
}

fn acked(bytes: u64, flight: f64, upto: u64, next: u64) -> Acked {
    Acked { bytes, flight: flight as u64, upto, next, rtt: None, srtt: Duration::ZERO }
}

#[test]
fn iw_1() {
    let (input, output) = vector("iw.1");
    for (mss, window) in input["mss"].as_array().unwrap().iter().zip(output["rfc3390"].as_array().unwrap()) {
        assert_near(InitialWindow::Rfc3390.bytes(number(mss)), number(window));
    }
}

#[test]
fn reno_1_and_2() {
    for id in ["reno.1", "reno.2"] {
        let (input, output) = vector(id);
        let cwnd = number(&input["cwnd"]);
        let mss = u32::try_from(input["mss"].as_u64().unwrap()).unwrap();
        let mut controller = with(NewReno, mss, cwnd, number(&input["ssthresh"]));
        // A round ends with the first acknowledgment; New Reno does nothing then.
        controller.on_ack(0, &acked(input["acked"].as_u64().unwrap(), cwnd, 1, 2), Instant::ZERO);
        assert_near(controller.cwnd(0), number(&output["cwnd"]));
    }
}

#[test]
fn reno_3_threshold() {
    let (input, output) = vector("reno.3");
    let flight = number(&input["flight"]);
    let mut controller = with(NewReno, 1460, flight, f64::INFINITY);
    let event = Congestion { cause: Cause::Loss, flight, next: 30_000 };
    assert!(controller.on_congestion(0, &event, Instant::ZERO));
    assert_near(controller.ssthresh(0), number(&output["ssthresh"]));
    // One reduction per window of data; a timeout reduces again.
    assert!(!controller.on_congestion(0, &event, Instant::ZERO));
    assert!(controller.on_congestion(0, &Congestion { cause: Cause::Timeout, ..event }, Instant::ZERO));
    assert_near(controller.cwnd(0), 1460.0);
}

#[test]
fn cubic_3() {
    let (input, output) = vector("cubic.3");
    let prior = number(&input["prev_w_max"]);
    // A first loss at the previous plateau, then one at the given window, below it.
    let mut controller = with(Cubic::default(), 1, prior, 1.0);
    let loss = |flight| Congestion { cause: Cause::Loss, flight, next: 10 };
    controller.on_congestion(0, &loss(prior), Instant::ZERO);
    controller.on_ack(0, &acked(1, 1.0, 10, 20), Instant::ZERO);
    let cwnd = number(&input["cwnd"]);
    controller.set_cwnd(0, cwnd);
    controller.on_congestion(0, &loss(cwnd), Instant::ZERO);
    assert_near(controller.ssthresh(0), number(&output["ssthresh"]));
    assert_near(controller.cwnd(0), number(&output["cwnd"]));
    // The plateau shows in where the curve goes: K seconds after the epoch the window is w_max = 68.
    controller.on_ack(0, &acked(1, 56.0, 20, 21), Instant::ZERO);
    let k = (f64::cbrt((number(&output["w_max"]) - 56.0) / 0.4) * 1e9) as u64;
    let mut now = Instant::ZERO;
    let mut sequence = 21;
    while now.as_nanos() < k {
        now += Duration::from_millis(5);
        sequence += 1;
        controller.on_ack(0, &acked(1, controller.cwnd(0), sequence, sequence + 1), now);
    }
    assert!((controller.cwnd(0) - number(&output["w_max"])).abs() < 0.5, "{}", controller.cwnd(0));
}

#[test]
fn vegas_1() {
    let (input, output) = vector("vegas.1");
    let base = number(&input["base"]);
    let rtts = input["rtt"].as_array().unwrap();
    for (rtt, out) in rtts.iter().zip(output["out"].as_array().unwrap()) {
        let rtt = number(rtt);
        assert_near(Vegas::default().queued(number(&input["cwnd"]), base, rtt), number(&out[1]));
        let mut controller = with(Vegas::default(), 1, number(&input["cwnd"]), number(&input["ssthresh"]));
        // One sample sets the base, in a round of its own; then a round of samples.
        let sample = |seconds: f64, upto| Acked {
            rtt: Some(Duration::from_secs_f64(seconds)),
            srtt: Duration::from_secs_f64(seconds),
            ..acked(1, 20.0, upto, 10)
        };
        controller.on_ack(0, &Acked { next: 10, flight: 0, ..sample(base, 1) }, Instant::ZERO);
        for upto in 2..=11 {
            controller.on_ack(0, &sample(rtt, upto), Instant::ZERO);
        }
        assert_near(controller.cwnd(0), number(&out[0]));
    }
}

#[test]
fn vegas_2() {
    let (input, output) = vector("vegas.2");
    let rule = Vegas { divisor: Divisor::BaseRtt };
    let diff = rule.queued(number(&input["cwnd"]), number(&input["base"]), number(&input["rtt"]));
    assert_near(diff, number(&output["diff"]));
}

#[test]
fn eifel_1() {
    let (input, output) = vector("eifel.1");
    // pipe_prev is the larger of flight and threshold before the cut.
    let pipe_prev = number(&input["pipe_prev"]);
    let config =
        EngineConfig { initial_window: InitialWindow::Rfc3390, initial_ssthresh: 14_600.0, ..EngineConfig::default() };
    let mut controller = Controller::new(NewReno, config);
    controller.add_path(1460);
    controller.set_cwnd(0, pipe_prev);
    controller.on_congestion(0, &Congestion { cause: Cause::Timeout, flight: pipe_prev, next: 1 }, Instant::ZERO);
    let undo = Undo::Eifel { flight: input["flight"].as_u64().unwrap(), acked: input["acked"].as_u64().unwrap() };
    assert!(controller.on_spurious(0, undo, Instant::ZERO));
    assert_near(controller.cwnd(0), number(&output["cwnd"]));
    assert_near(controller.ssthresh(0), number(&output["ssthresh"]));
    assert!(!controller.on_spurious(0, undo, Instant::ZERO), "a reduction is undone once");
}

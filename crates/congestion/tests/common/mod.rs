//! What the tests of the rules share.

use clock::{Duration, Instant};
use congestion::{Acked, Cause, Congestion, Controller, EngineConfig, SlowStartTest, WindowRule};
use serde_json::Value;

/// Input and output of a check vector, computed by an independent program.
pub(crate) fn vector(id: &str) -> (Value, Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap();
    (vector["input"].clone(), vector["output"].clone())
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

pub(crate) fn mss(input: &Value) -> u32 {
    u32::try_from(input["mss"].as_u64().unwrap()).unwrap()
}

/// Equal as far as the vectors are printed.
#[track_caller]
pub(crate) fn assert_near(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-3), "{ours} is not {theirs}");
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A controller and what is sent on its paths.
pub(crate) struct Bench<R> {
    pub(crate) controller: Controller<R>,
    pub(crate) now: Instant,
    next: Vec<u64>,
}

impl<R: WindowRule> Bench<R> {
    /// Paths with these windows and thresholds in bytes and round-trip times in seconds. A threshold equal to the window
    /// is congestion avoidance.
    pub(crate) fn new(rule: R, mss: u32, paths: &[(f64, f64, f64)]) -> Self {
        let config = EngineConfig { slow_start_test: SlowStartTest::Below, ..EngineConfig::default() };
        let mut bench = Self { controller: Controller::new(rule, config), now: Instant::ZERO, next: Vec::new() };
        for &(cwnd, ssthresh, rtt) in paths {
            let path = bench.controller.add_path(mss);
            bench.next.push(1);
            bench.controller.set_cwnd(path, cwnd);
            bench.controller.set_ssthresh(path, ssthresh);
            bench.round(path, rtt, 1, false);
        }
        bench
    }

    /// An acknowledgment within a round.
    pub(crate) fn acked(&mut self, path: usize, bytes: u64, flight: f64, rtt: Option<f64>) {
        let rtt = rtt.map(seconds);
        let acked = Acked {
            bytes,
            flight: flight as u64,
            upto: 0,
            next: self.next[path],
            rtt,
            srtt: rtt.unwrap_or(Duration::ZERO),
        };
        self.controller.on_ack(path, &acked, self.now);
    }

    /// One whole packet of a full window, and what it adds in bytes.
    pub(crate) fn grow(&mut self, path: usize) -> f64 {
        let state = &self.controller.paths()[path];
        let (mss, before) = (state.mss, state.cwnd);
        self.acked(path, mss as u64, before, None);
        self.controller.cwnd(path) - before
    }

    /// A round with so many samples of one round-trip time, on a path whose window is `full` or not used at all.
    pub(crate) fn round(&mut self, path: usize, rtt: f64, samples: u32, full: bool) {
        let flight = if full { self.controller.cwnd(path) } else { 0.0 };
        for _ in 1..samples {
            self.acked(path, 1, flight, Some(rtt));
        }
        let upto = self.next[path];
        self.next[path] += 1;
        let rtt = seconds(rtt);
        let next = self.next[path];
        let acked = Acked { bytes: 1, flight: flight as u64, upto, next, rtt: Some(rtt), srtt: rtt };
        self.controller.on_ack(path, &acked, self.now);
        // The round ends with the first acknowledgment of what was sent from now on.
        self.next[path] += 1;
    }

    /// A sign of congestion with a full window outstanding.
    pub(crate) fn congestion(&mut self, path: usize, cause: Cause) -> bool {
        let flight = self.controller.cwnd(path);
        let event = Congestion { cause, flight, next: self.next[path] };
        self.controller.on_congestion(path, &event, self.now)
    }

    /// All that was outstanding at the reduction is acknowledged.
    pub(crate) fn recovered(&mut self, path: usize) {
        let upto = self.next[path];
        self.next[path] += 1;
        let acked = Acked { bytes: 1, flight: 1, upto, next: self.next[path], rtt: None, srtt: Duration::ZERO };
        self.controller.on_ack(path, &acked, self.now);
        self.next[path] += 1;
    }

    pub(crate) fn windows(&self) -> Vec<f64> {
        self.controller.paths().iter().map(|path| path.cwnd).collect()
    }
}

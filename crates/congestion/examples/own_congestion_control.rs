//! A congestion control of one's own, beside Reno: Scalable TCP (T. Kelly, ACM CCR 33(2), 2003), which grows by a hundredth of
//! what is acknowledged and falls by an eighth.
//!
//! `cargo run -p sinnet-congestion --example own_congestion_control`

#![allow(clippy::print_stdout, reason = "a program that tells a person")]

use clock::{Duration, Instant};
use congestion::{Acked, Backoff, Cause, Congestion, Controller, EngineConfig, Group, Rule, WindowRule};

/// The arithmetic is all that a rule is; slow start, recovery and undo are the engine's.
#[derive(Clone, Debug)]
struct Scalable;

impl WindowRule for Scalable {
    fn increase(&mut self, _path: usize, _group: Group<'_>, acked: f64) -> f64 {
        0.01 * acked
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let path = group.path(path);
        Backoff::to(0.875 * path.flight, 2.0 * path.mss)
    }
}

/// Packets in flight, round by round, on a path that holds `most`: what is more is lost.
fn windows(rule: Rule, most: f64, rounds: u64) -> Vec<f64> {
    const MSS: u32 = 1500;
    let rtt = Duration::from_millis(100);
    let mut controller =
        Controller::new(rule, EngineConfig { byte_counting_limit: f64::INFINITY, ..EngineConfig::default() });
    let path = controller.add_path(MSS);
    let round = |round| {
        let now = Instant::ZERO + rtt * round;
        let flight = controller.cwnd(path);
        let acked = Acked {
            bytes: flight as u64,
            flight: flight as u64,
            upto: round,
            next: round + 1,
            rtt: Some(rtt),
            srtt: rtt,
        };
        if flight > most * f64::from(MSS) {
            controller.on_congestion(path, &Congestion { cause: Cause::Loss, flight, next: round }, now);
        }
        controller.on_ack(path, &acked, now);
        flight / f64::from(MSS)
    };
    (1..=rounds).map(round).collect()
}

fn main() {
    // Whoever takes a `Rule` takes this one: a simulated TCP, a path of the tunnel.
    for rule in [Rule::custom("scalable", Scalable), "newreno".parse().expect("a rule of the registry")] {
        let name = rule.name();
        let windows = windows(rule, 1000.0, 1500);
        let late = windows.get(500..).unwrap_or_default();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        println!("{name:>10}: {mean:.0} of 1000 packets in flight on average");
    }
}

//! What an acknowledgment costs under each rule: nanoseconds of processor time, for associations of one, two and four
//! paths in congestion avoidance.
//!
//! `cargo bench -p sinnet-congestion --bench rules`

use clock::{Duration, Instant};
use congestion::{Acked, Controller, EngineConfig, Rule};

const ACKS: u64 = 2_000_000;

/// Processor time of this thread in seconds (nanoseconds in the first field, proc_pid_schedstat(5)).
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn nanoseconds(rule: &str, paths: usize) -> f64 {
    let rule: Rule = rule.parse().unwrap_or_else(|error| panic!("{error}"));
    let config = EngineConfig { initial_ssthresh: 20e3, ..EngineConfig::default() };
    let mut controller = Controller::new(rule, config);
    for _ in 0..paths {
        controller.add_path(1000);
    }
    let start = cpu();
    for number in 0..ACKS {
        let path = number as usize % paths;
        let rtt = Duration::from_micros(50_000 + 10_000 * path as u64 + number % 97);
        let flight = controller.cwnd(path).min(1e6) as u64;
        let acked = Acked { bytes: 1000, flight, upto: number, next: number + 50, rtt: Some(rtt), srtt: rtt };
        controller.on_ack(path, &acked, Instant::from_nanos(number * 10_000));
    }
    (cpu() - start) / ACKS as f64 * 1e9
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn main() {
    println!("{:14} {:>8} {:>8} {:>8}", "ns per ack", "1 path", "2 paths", "4 paths");
    for rule in Rule::NAMES {
        let [one, two, four] = [1, 2, 4].map(|paths| nanoseconds(rule, paths));
        println!("{rule:14} {one:8.1} {two:8.1} {four:8.1}");
    }
}

//! How fast: bottleneck packets per second of processor time, one thread, for a dumbbell of N New Reno flows with a fair
//! share of 1 Mbit/s each, 30 ms, packets of 1250 bytes, a queue of 1.5 bandwidth-delay products, 60 s.
//!
//! `cargo bench -p sinnet-simulator --bench dumbbell -- [N ...] [access|chain] [jitter] [seconds=60]`. With `access`, every flow has links of
//! its own at both ends (1 ms, ten times the bottleneck), as in `benches/ns2_dumbbell.tcl`; without, all flows share
//! the two ends, as one `[[flow]]` with `count = N` does, and with `chain` these links as well. With `jitter`, senders wait
//! up to 2 ms, as in the profile of ns-2. `benches/peers.sh` puts ns-2 beside it.

use std::sync::Arc;

use clock::{Duration, Instant};
use link::{LinkConfig, QueueConfig};
use simulator::{Plan, RunOptions, Simulation};
use transport::{Recovery, TcpConfig};

fn plan(flows: u32, topology: &str, jitter: bool, seconds: u64) -> Plan {
    let mut plan = Plan::new(Duration::from_secs(seconds));
    let rate = u64::from(flows) * 1_000_000;
    let delay = Duration::from_millis(30);
    let round_trip = if topology == "shared" { 0.060 } else { 0.064 };
    let queue = (1.5 * rate as f64 * round_trip / 10_000.0).round().max(5.0) as u32;
    let bottleneck =
        LinkConfig { rate: Some(rate), delay, queue: QueueConfig::Packets(queue - 1), ..LinkConfig::default() };
    let there = plan.link("bottleneck", bottleneck);
    let back = plan.link("back", LinkConfig { rate: Some(rate), delay, ..LinkConfig::default() });
    let send_jitter = Duration::from_millis(if jitter { 2 } else { 0 });
    let config = Arc::new(TcpConfig { send_jitter, ..TcpConfig::ns2(Recovery::NewReno) });
    let side = LinkConfig { rate: Some(10 * rate), delay: Duration::from_millis(1), ..LinkConfig::default() };
    let mut ends = Vec::new();
    for flow in 0..flows {
        let start = Instant::ZERO + Duration::from_secs_f64(f64::from(flow) / f64::from(flows));
        if topology == "access" || (topology == "chain" && flow == 0) {
            ends = (0..4).map(|i| plan.link(format!("access {flow} {i}"), side.clone())).collect();
        }
        match ends[..] {
            [a, b, c, d] => plan.tcp(format!("f{flow}"), &[a, there, b], &[c, back, d], start, &config),
            _ => plan.tcp(format!("f{flow}"), &[there], &[back], start, &config),
        };
    }
    plan
}

/// Processor time of this thread in seconds (nanoseconds in the first field, proc_pid_schedstat(5)).
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// Largest resident memory of this process so far, in MB.
fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<u32> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let topology = ["access", "chain"].into_iter().find(|word| has(word)).unwrap_or("shared");
    let jitter = has("jitter");
    let seconds = arguments.iter().find_map(|a| a.strip_prefix("seconds=")?.parse().ok()).unwrap_or(60);
    if sizes.is_empty() {
        sizes = vec![10, 100, 1_000, 10_000];
    }
    for flows in sizes {
        let plan = plan(flows, topology, jitter, seconds);
        // Short runs are repeated; the fastest counts, as the least disturbed by the rest of the machine.
        let repeats = (20_000 / flows / seconds as u32).clamp(1, 20);
        let mut best = f64::INFINITY;
        let mut packets = 0;
        let mut events = 0;
        for _ in 0..repeats {
            let before = cpu();
            let result = Simulation::new(&plan, 1).run(&RunOptions::default());
            best = best.min(cpu() - before);
            packets = result.links[0].delivered;
            events = result.events;
        }
        println!(
            "{{\"simulator\":\"sinnet\",\"flows\":{flows},\"topology\":\"{topology}\",\"bottleneck_packets\":{packets},\"events\":{events},\
             \"cpu_s\":{best:.3},\"packets_per_cpu_s\":{:.0},\"peak_mb\":{:.1}}}",
            packets as f64 / best,
            memory()
        );
    }
}

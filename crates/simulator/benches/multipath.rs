//! What several subflows cost: packets per second of processor time, one thread, of MPTCP with LIA over two paths beside
//! two TCP flows over the same links. Packets are those that all links deliver, data and acknowledgments.
//!
//! `cargo bench -p sinnet-simulator --bench multipath -- [flows=20] [seconds=60]`.

use std::sync::Arc;

use clock::{Duration, Instant};
use congestion::Rule;
use link::{LinkConfig, QueueConfig};
use simulator::{Plan, PlannedFlow, PlannedPath, RunOptions, Simulation};
use transport::mhip::PathConfig;
use transport::mptcp::MptcpConfig;
use transport::{FlowConfig, TcpConfig};

const RATE: u64 = 10_000_000;
const DELAY: Duration = Duration::from_millis(20);

/// `flows` pairs of paths, each path with links of its own; on each pair one MPTCP connection, or two of TCP.
fn plan(flows: u32, seconds: u64, traffic: &dyn Fn() -> Option<FlowConfig>) -> Plan {
    let mut plan = Plan::new(Duration::from_secs(seconds));
    let tcp = Arc::new(TcpConfig::default());
    for flow in 0..flows {
        let start = Instant::ZERO + Duration::from_millis(u64::from(flow));
        let mut path = |number| {
            let queue = QueueConfig::Packets(50);
            let there = LinkConfig { rate: Some(RATE), delay: DELAY, queue, ..LinkConfig::default() };
            let back = LinkConfig { rate: Some(RATE), delay: DELAY, ..LinkConfig::default() };
            let forward = vec![plan.link(format!("there {flow} {number}"), there)];
            PlannedPath { forward, reverse: vec![plan.link(format!("back {flow} {number}"), back)] }
        };
        let paths = vec![path(0), path(1)];
        match traffic() {
            Some(traffic) => {
                plan.flows.push(PlannedFlow {
                    name: format!("f{flow}"),
                    paths,
                    start,
                    stop: None,
                    traffic,
                    association: None,
                    processing: false,
                });
            }
            None => {
                for (number, path) in paths.into_iter().enumerate() {
                    plan.tcp(format!("f{flow}.{number}"), &path.forward, &path.reverse, start, &tcp);
                }
            }
        }
    }
    plan
}

/// Processor time of this thread in seconds (nanoseconds in the first field, proc_pid_schedstat(5)).
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn main() {
    let number = |key: &str, usual: u64| {
        std::env::args().find_map(|argument| argument.strip_prefix(key)?.parse().ok()).unwrap_or(usual)
    };
    let (flows, seconds) = (number("flows=", 20) as u32, number("seconds=", 60));
    let known = PathConfig { delay: DELAY, back: DELAY, rate: RATE };
    let mptcp = |rule: &str, scheduler: &str| {
        let rule: Rule = rule.parse().unwrap_or(Rule::NewReno(congestion::NewReno));
        let config = MptcpConfig::new(TcpConfig { rule, ..TcpConfig::default() }, vec![known; 2]);
        let scheduler = scheduler.parse().unwrap_or(config.scheduler);
        FlowConfig::Mptcp(Arc::new(MptcpConfig { scheduler, ..config }))
    };
    let cases = [
        ("tcp", ""),
        ("newreno", "lowest-rtt"),
        ("lia", "lowest-rtt"),
        ("olia", "lowest-rtt"),
        ("balia", "lowest-rtt"),
        ("lia", "fastest-path-first"),
        ("lia", "blest"),
    ];
    let plans =
        cases.map(|(rule, scheduler)| plan(flows, seconds, &|| (rule != "tcp").then(|| mptcp(rule, scheduler))));
    // In turns, the fastest of each counts, as the least disturbed by the rest of the machine.
    let mut best = [(f64::INFINITY, 0); 7];
    for _ in 0..7 {
        for (plan, best) in plans.iter().zip(&mut best) {
            let before = cpu();
            let result = Simulation::new(plan, 1).run(&RunOptions::default());
            *best = (best.0.min(cpu() - before), result.packets);
        }
    }
    let rate = |(seconds, packets): (f64, u64)| packets as f64 / seconds;
    let tcp = best.first().copied().map_or(f64::NAN, rate);
    for ((rule, scheduler), best) in cases.into_iter().zip(best) {
        let (packets, rate) = (best.1, rate(best));
        println!(
            "{{\"rule\":\"{rule}\",\"scheduler\":\"{scheduler}\",\"packets\":{packets},\"cpu_s\":{:.3},\
             \"packets_per_cpu_s\":{rate:.0},\"of_tcp\":{:.3}}}",
            best.0,
            rate / tcp
        );
    }
}

//! Held against ns-2.35, the simulator of the papers: `vectors/ns2` (its README names every setting).

#![expect(clippy::print_stdout, reason = "how near each point is, with --nocapture")]

use std::collections::BTreeMap;
use std::sync::Arc;

use clock::{Duration, Instant};
use link::{LinkConfig, LossConfig, QueueConfig};
use serde_json::Value;
use simulator::{Plan, RunOptions, RunResult, Simulation};
use transport::{Recovery, TcpConfig};

const WIRE: f64 = 1250.0;

fn runs(kind: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ns2/ns2_newreno_sack.json");
    // Another file of the same kind can be named, for runs that are not in the repository.
    let path = std::env::var("SINNET_NS2_RUNS").unwrap_or_else(|_| path.to_owned());
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all["runs"].as_array().unwrap().iter().filter(|run| run["kind"] == kind).cloned().collect()
}

fn number(run: &Value, key: &str) -> f64 {
    run["params"][key].as_f64().unwrap_or_else(|| panic!("no {key} in {run}"))
}

fn optional(run: &Value, key: &str) -> Option<f64> {
    run["params"][key].as_f64()
}

fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// The topology of `ns2_oracle.tcl`: one bottleneck; with two flows, access links of their own.
fn plan(run: &Value) -> Plan {
    let mut plan = Plan::new(Duration::from_secs(60));
    let (rate, delay) = ((number(run, "bw") * 1e6) as u64, number(run, "d"));
    let seed = optional(run, "seed").unwrap_or(1.0) as u64;
    let loss = optional(run, "loss").map_or(LossConfig::None, |rate| LossConfig::Ns2 { rate, seed });
    // ns-2 refuses a packet when `q - 1` wait.
    let queue = QueueConfig::Packets(number(run, "q") as u32 - 1);
    let bottleneck = LinkConfig { rate: Some(rate), delay: ms(delay), queue, loss, changes: Vec::new() };
    let back = LinkConfig { queue: QueueConfig::Unlimited, loss: LossConfig::None, ..bottleneck.clone() };
    let (there, back) = (plan.link("bottleneck", bottleneck), plan.link("back", back));
    let recovery = if run["params"]["tcp"] == "Sack1" { Recovery::Sack } else { Recovery::NewReno };
    let mut config = TcpConfig::ns2(recovery);
    config.receiver_window = number(run, "win") as u32;
    // ns-2 begins with a threshold of one receiver's window.
    config.engine.initial_ssthresh = number(run, "win") * f64::from(config.mss());
    config.send_jitter = Duration::from_secs_f64(optional(run, "over").unwrap_or(0.0));
    let config = Arc::new(config);
    if optional(run, "flows").unwrap_or(1.0) == 1.0 {
        plan.tcp("flow 0", &[there], &[back], Instant::ZERO, &config);
        return plan;
    }
    for flow in 0..2_u32 {
        let extra = if flow == 0 { 1.0 } else { (number(run, "rttratio") * (delay + 2.0) - delay) / 2.0 };
        let access = LinkConfig { rate: Some(1_000_000_000), delay: ms(extra), ..LinkConfig::default() };
        let links: Vec<u32> = (0..4).map(|i| plan.link(format!("access {flow} {i}"), access.clone())).collect();
        let start = Instant::ZERO + Duration::from_secs_f64(f64::from(flow) * number(run, "start2"));
        let (forward, reverse) = ([links[0], there, links[1]], [links[2], back, links[3]]);
        plan.tcp(format!("flow {flow}"), &forward, &reverse, start, &config);
    }
    plan
}

fn simulate(run: &Value) -> RunResult {
    let seed = optional(run, "seed").unwrap_or(1.0) as u64;
    Simulation::new(&plan(run), seed).run(&RunOptions::default())
}

/// Goodput as ns-2's script counts it: packets acknowledged, over the whole time.
fn goodput(result: &RunResult, flow: usize) -> f64 {
    result.flows[flow].delivered as f64 * WIRE * 8.0 / result.virtual_s / 1e6
}

fn ns2_goodput(run: &Value, flow: usize) -> f64 {
    run["flows"][flow]["goodput_wire_mbps"].as_f64().unwrap()
}

/// What a point is called when it is off.
fn label(run: &Value) -> String {
    run["params"].to_string()
}

#[test]
fn a_single_flow_is_as_in_ns2() {
    let (mut points, mut off_by_2, mut bad) = (0, 0, Vec::new());
    for run in runs("single") {
        let result = simulate(&run);
        let (ours, theirs) = (goodput(&result, 0), ns2_goodput(&run, 0));
        let error = ours / theirs - 1.0;
        let again = result.flows[0].retransmissions as f64;
        let again_ns2 = run["flows"][0]["rexmit_pkts"].as_f64().unwrap();
        points += 1;
        off_by_2 += usize::from(error.abs() > 0.02);
        let again_is_off = (again - again_ns2).abs() > (0.15 * again_ns2).max(10.0);
        if error.abs() > 0.05 || again_is_off {
            bad.push(format!("{} goodput {ours:.4} {theirs:.4} retransmissions {again} {again_ns2}", label(&run)));
        }
    }
    println!("{points} points, {off_by_2} off by more than 2 %, {} too far off", bad.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(off_by_2 * 20 <= points, "{off_by_2} of {points} are off by more than 2 %");
}

/// Runs alike but for the seed, by their other parameters.
fn by_parameters(kind: &str) -> BTreeMap<String, Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for run in runs(kind) {
        let mut parameters = run["params"].clone();
        parameters.as_object_mut().unwrap().remove("seed");
        groups.entry(parameters.to_string()).or_default().push(run);
    }
    groups
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// With ns-2's random numbers the same packets are lost, so that each run compares with its own.
#[test]
fn random_loss_costs_what_it_costs_in_ns2() {
    let mut bad = Vec::new();
    for (label, runs) in by_parameters("random_loss") {
        let theirs = mean(runs.iter().map(|run| ns2_goodput(run, 0)));
        let ours: Vec<f64> = runs.iter().map(|run| goodput(&simulate(run), 0)).collect();
        println!("{label}: {ours:.4?} {:.4?}", runs.iter().map(|run| ns2_goodput(run, 0)).collect::<Vec<_>>());
        let ours = mean(ours.into_iter());
        let line = format!("{label} {ours:.4} {theirs:.4} ({:+.1} %)", (ours / theirs - 1.0) * 100.0);
        println!("{line}");
        if (ours / theirs - 1.0).abs() > 0.1 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn two_flows_fill_the_link_as_in_ns2() {
    let mut bad = Vec::new();
    for run in runs("two_flows").iter().chain(&runs("two_flows_jitter")) {
        let result = simulate(run);
        let (ours, theirs) = (goodput(&result, 0) + goodput(&result, 1), ns2_goodput(run, 0) + ns2_goodput(run, 1));
        let line = format!("{} {ours:.4} {theirs:.4} ({:+.1} %)", label(run), (ours / theirs - 1.0) * 100.0);
        println!("{line} shares {:.3} {:.3}", goodput(&result, 0) / ours, ns2_goodput(run, 0) / theirs);
        if (ours / theirs - 1.0).abs() > 0.02 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn two_flows_share_the_link_as_in_ns2() {
    let mut bad = Vec::new();
    for (label, runs) in by_parameters("two_flows_jitter") {
        let theirs = mean(runs.iter().map(|run| ns2_goodput(run, 0) / (ns2_goodput(run, 0) + ns2_goodput(run, 1))));
        let ours = mean((1..=20).map(|seed| {
            let result = Simulation::new(&plan(&runs[0]), seed).run(&RunOptions::default());
            goodput(&result, 0) / (goodput(&result, 0) + goodput(&result, 1))
        }));
        let line = format!("{label} share {ours:.3} {theirs:.3}");
        println!("{line}");
        if (ours - theirs).abs() > 0.1 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

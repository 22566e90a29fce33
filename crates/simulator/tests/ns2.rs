//! Held against ns-2.35, the simulator of the papers: `vectors/ns2` (its README names every setting).

#![expect(clippy::print_stdout, reason = "how near each point is, with --nocapture")]

use std::collections::BTreeMap;

use serde_json::Value;
use simulator::{RunOptions, RunResult};

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

/// The topology of `ns2_oracle.tcl`, as a scenario file: one bottleneck; with two flows, access links of their own.
fn scenario_file(run: &Value) -> String {
    let (rate, delay, queue) = (number(run, "bw"), number(run, "d"), number(run, "q"));
    let loss = optional(run, "loss").map_or(String::new(), |loss| format!("loss = {loss}"));
    let congestion = if run["params"]["tcp"] == "Sack1" { "sack" } else { "newreno" };
    let mut file = format!(
        r#"
        name = "as in ns-2"
        duration = "60s"
        [[link]]
        from = "r1"
        to = "r2"
        rate = "{rate}Mbit/s"
        delay = "{delay}ms"
        queue = "{queue}p"
        {loss}
        [[link]]
        from = "r2"
        to = "r1"
        rate = "{rate}Mbit/s"
        delay = "{delay}ms"
        "#
    );
    let flows = optional(run, "flows").unwrap_or(1.0) as u32;
    for flow in 0..flows {
        let (from, to) = if flows == 1 { ("r1".into(), "r2".into()) } else { (format!("a{flow}"), format!("b{flow}")) };
        if flows > 1 {
            let extra = if flow == 0 { 1.0 } else { (number(run, "rttratio") * (delay + 2.0) - delay) / 2.0 };
            for (one, other) in [(&from, "r1"), (&to, "r2")] {
                file += &format!(
                    "\n[[link]]\nbetween = [\"{one}\", \"{other}\"]\nrate = \"1Gbit/s\"\ndelay = \"{extra}ms\"\n"
                );
            }
        }
        let start = f64::from(flow) * optional(run, "start2").unwrap_or(0.0);
        file += &format!(
            r#"
            [[flow]]
            from = "{from}"
            to = "{to}"
            protocol = "tcp"
            congestion = "{congestion}"
            profile = "ns2"
            packet_size = 1250
            receiver_window = "{}p"
            start = "{start}s"
            "#,
            number(run, "win"),
        );
    }
    file
}

fn simulate_with(run: &Value, seed: u64) -> RunResult {
    let file = scenario_file(run);
    let scenario = scenario::parse(&file, "ns2.toml").unwrap_or_else(|error| panic!("{error}"));
    simulator::run(&scenario, seed, &RunOptions::default()).unwrap()
}

fn simulate(run: &Value) -> RunResult {
    simulate_with(run, optional(run, "seed").unwrap_or(1.0) as u64)
}

/// Goodput as ns-2's script counts it: packets acknowledged, over the whole time.
fn goodput(result: &RunResult, flow: usize) -> f64 {
    result.flows[flow].delivered as f64 * WIRE * 8.0 / result.virtual_s / 1e6
}

fn ns2_goodput(run: &Value, flow: usize) -> f64 {
    run["flows"][flow]["goodput_wire_mbps"].as_f64().unwrap()
}

/// A row of docs/validation.md: how near the points of a kind are. Of other runs than those of the repository it is only printed.
fn row(kind: &str, what: &str, mut errors: Vec<f64>) {
    errors.sort_by(f64::total_cmp);
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    let within = errors.iter().filter(|error| **error <= 0.01).count();
    let [median, worst] = [errors.len() / 2, errors.len() - 1].map(|at| percent(errors[at]));
    let row = format!("| {kind} | {what} | {} | {within} | {median} | {worst} |", errors.len());
    println!("{row}");
    if std::env::var_os("SINNET_NS2_RUNS").is_none() {
        let told = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md")).unwrap();
        assert!(told.contains(&row), "docs/validation.md has another row than\n{row}");
    }
}

/// What a point is called when it is off.
fn label(run: &Value) -> String {
    run["params"].to_string()
}

#[test]
fn a_single_flow_is_as_in_ns2() {
    let (mut points, mut off_by_2, mut bad, mut errors) = (0, 0, Vec::new(), Vec::new());
    for run in runs("single") {
        let result = simulate(&run);
        let (ours, theirs) = (goodput(&result, 0), ns2_goodput(&run, 0));
        let error = ours / theirs - 1.0;
        let again = result.flows[0].retransmissions as f64;
        let again_ns2 = run["flows"][0]["rexmit_pkts"].as_f64().unwrap();
        points += 1;
        errors.push(error.abs());
        off_by_2 += usize::from(error.abs() > 0.02);
        let again_is_off = (again - again_ns2).abs() > (0.15 * again_ns2).max(10.0);
        if error.abs() > 0.05 || again_is_off {
            bad.push(format!("{} goodput {ours:.4} {theirs:.4} retransmissions {again} {again_ns2}", label(&run)));
        }
    }
    println!("{points} points, {off_by_2} off by more than 2 %, {} too far off", bad.len());
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(off_by_2 * 20 <= points, "{off_by_2} of {points} are off by more than 2 %");
    row("one flow", "goodput", errors);
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
    let (mut bad, mut errors) = (Vec::new(), Vec::new());
    for (label, runs) in by_parameters("random_loss") {
        let theirs = mean(runs.iter().map(|run| ns2_goodput(run, 0)));
        let ours: Vec<f64> = runs.iter().map(|run| goodput(&simulate(run), 0)).collect();
        println!("{label}: {ours:.4?} {:.4?}", runs.iter().map(|run| ns2_goodput(run, 0)).collect::<Vec<_>>());
        errors.extend(runs.iter().zip(&ours).map(|(run, ours)| (ours / ns2_goodput(run, 0) - 1.0).abs()));
        let ours = mean(ours.into_iter());
        let line = format!("{label} {ours:.4} {theirs:.4} ({:+.1} %)", (ours / theirs - 1.0) * 100.0);
        println!("{line}");
        if (ours / theirs - 1.0).abs() > 0.1 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    row("one flow, random loss", "goodput, run by run", errors);
}

/// Over the seeds of a point: with them the random waiting times differ, between the two simulators too.
#[test]
fn two_flows_fill_the_link_as_in_ns2() {
    let (mut bad, mut errors) = (Vec::new(), Vec::new());
    for (label, runs) in by_parameters("two_flows").into_iter().chain(by_parameters("two_flows_jitter")) {
        let theirs = mean(runs.iter().map(|run| ns2_goodput(run, 0) + ns2_goodput(run, 1)));
        let ours = mean((1..=5).map(|seed| {
            let result = simulate_with(&runs[0], seed);
            goodput(&result, 0) + goodput(&result, 1)
        }));
        let line = format!("{label} {ours:.4} {theirs:.4} ({:+.1} %)", (ours / theirs - 1.0) * 100.0);
        println!("{line}");
        errors.push((ours / theirs - 1.0).abs());
        if (ours / theirs - 1.0).abs() > 0.02 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    row("two flows", "sum of goodputs, mean over seeds", errors);
}

#[test]
fn two_flows_share_the_link_as_in_ns2() {
    let (mut bad, mut errors) = (Vec::new(), Vec::new());
    for (label, runs) in by_parameters("two_flows_jitter") {
        let theirs = mean(runs.iter().map(|run| ns2_goodput(run, 0) / (ns2_goodput(run, 0) + ns2_goodput(run, 1))));
        let ours = mean((1..=10).map(|seed| {
            let result = simulate_with(&runs[0], seed);
            goodput(&result, 0) / (goodput(&result, 0) + goodput(&result, 1))
        }));
        let line = format!("{label} share {ours:.3} {theirs:.3}");
        println!("{line}");
        errors.push((ours - theirs).abs());
        if (ours - theirs).abs() > 0.1 {
            bad.push(line);
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    row("two flows", "share of the first, mean over seeds, in percentage points", errors);
}

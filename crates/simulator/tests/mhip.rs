//! Multipath HIP in the simulator: scenario files with its keys, paths that keep apart, and the experiments of the papers
//! that have a closed form or a bound.

use clock::{Duration, Instant};
use link::QueueConfig;
use scenario::{Document, Scenario};
use simulator::{RunOptions, RunResult, run};
use transport::FlowConfig;
use transport::mhip::Attribution;

fn papers(name: &str) -> Document {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/papers/");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}{name}")).map_err(|error| error.to_string());
    let text = read(name).unwrap();
    Document::load(&text, name, &mut |base, _| Ok((base.to_owned(), read(base)?))).unwrap()
}

fn scenario(name: &str, settings: &[&str]) -> Scenario {
    let mut document = papers(name);
    for setting in settings {
        document.set(setting).unwrap();
    }
    document.scenario().unwrap()
}

fn runs(scenario: &Scenario, seeds: u64) -> Vec<RunResult> {
    (1..=seeds).map(|seed| run(scenario, seed, &RunOptions::default()).unwrap()).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

/// Vector mhip.bdp: the reference network.
#[test]
fn the_reference_network_is_that_of_the_vector() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == "mhip.bdp").unwrap();
    let output = &vector["output"];
    let scenario = scenario("reference.toml", &[]);
    let queues = output["q_1_5_link_rtt"].as_array().unwrap();
    let plan = simulator::plan(&scenario, 1).unwrap();
    let FlowConfig::Mhip(mhip) = &plan.flows[0].traffic else { panic!() };
    for (path, name) in [(0, "n0-n2"), (1, "n0-n3")] {
        let directed = scenario.directed();
        let link = directed.iter().find(|link| link.name == name).unwrap();
        assert_eq!(link.config.queue, QueueConfig::Packets(queues[path].as_u64().unwrap() as u32));
        let transmission = output["tx_ms"][path].as_f64().unwrap() / 1e3;
        let one_way = output["one_way"].as_f64().unwrap();
        // The transmission on the link that is not counted as the bottleneck belongs to the path's delay.
        assert!((mhip.paths[path].delay.as_secs_f64() - one_way - transmission).abs() < 1e-9);
        let round_trip = scenario.path_round_trip(&scenario.flows[0].paths[path]);
        assert_eq!(round_trip, Duration::from_secs_f64(output["rtt"].as_f64().unwrap()));
    }
}

/// FPF over paths without other traffic: nothing comes out of order, and together they give what they give alone.
#[test]
fn paths_add_up_in_order() {
    for (first, second) in [(10, 10), (8, 4), (7, 3), (5, 2), (1, 10)] {
        let rates = [format!("link.n0-n2,n2-n1.rate={first}Mbit/s"), format!("link.n0-n3,n3-n1.rate={second}Mbit/s")];
        let result = run(&scenario("two-network.toml", &[&rates[0], &rates[1]]), 1, &RunOptions::default()).unwrap();
        let flow = &result.flows[0];
        assert_eq!((flow.reordered, flow.retransmissions, flow.losses), (0, 0, 0), "{first} + {second}");
        // Payload is 1250 of 1290 bytes; 0.4 s are lost at the start at most.
        let capacity = f64::from(first + second) * 1250.0 / 1290.0;
        let active = flow.end_s - flow.start_s;
        assert!(flow.goodput_mbps <= capacity && flow.goodput_mbps > capacity * (1.0 - 0.4 / active));
        assert!((flow.paths.iter().map(|path| path.goodput_mbps).sum::<f64>() - flow.goodput_mbps).abs() < 0.01);
        assert_eq!(flow.paths.iter().map(|path| path.sent).sum::<u64>(), flow.sent);
    }
}

/// Two equal paths start as fast as one of their rate: packets sent at the same instant arrive in order, so that each opens the
/// window. After the handshake windows of 2 to 64 packets take a round trip each; then both links are busy to the end, but for
/// what is under way then.
#[test]
fn two_equal_paths_start_as_fast_as_one() {
    let result = run(&scenario("two-network.toml", &["flow.mhip.start=0s"]), 1, &RunOptions::default()).unwrap();
    let (data, answer) = (1290.0 * 8.0 / 10e6, 40.0 * 8.0 / 10e6);
    let (handshake, round_trip) = (0.04 + 4.0 * answer, 0.04 + 2.0 * (data + answer));
    let busy = 10.0 - (handshake + 6.0 * round_trip + round_trip / 2.0);
    let expected = 126.0 + 2.0 * busy / data;
    let delivered = result.flows[0].delivered as f64;
    assert!((delivered - expected).abs() < 8.0, "{delivered} packets instead of {expected}");
}

/// Paper [1], V-C: closing and probing save retransmissions and losses, and bring goodput.
#[test]
fn cross_traffic_is_avoided() {
    let [without, with] =
        ["cross-traffic.toml", "cross-traffic-avoided.toml"].map(|name| runs(&scenario(name, &[]), 8));
    let of = |runs: &[RunResult], value: fn(&simulator::FlowResult) -> f64| {
        mean(runs.iter().map(|run| value(&run.flows[0])))
    };
    assert!(of(&with, |flow| flow.goodput_mbps) > 1.1 * of(&without, |flow| flow.goodput_mbps));
    assert!(of(&with, |flow| flow.losses as f64) < of(&without, |flow| flow.losses as f64));
    assert!(of(&with, |flow| flow.retransmissions as f64) < of(&without, |flow| flow.retransmissions as f64));
    assert!(of(&with, |flow| flow.paths.iter().map(|path| path.closings).sum::<u64>() as f64) > 1.0);
    for run in &with {
        let paths = &run.flows[0].paths;
        assert!(paths.iter().all(|path| path.probes >= path.closings), "{paths:?}");
    }
    for run in &without {
        assert!(run.flows[0].paths.iter().all(|path| path.closings == 0 && path.probes == 0));
    }
}

/// The final generation takes about what a TCP takes on the path that they share, and all of one without competition.
#[test]
fn the_final_generation_is_friendly() {
    let runs = runs(&scenario("reference.toml", &[]), 25);
    let of = |path: fn(&RunResult) -> f64| mean(runs.iter().map(path));
    let (mhip, tcp) = (of(|run| run.flows[0].paths[0].throughput_mbps), of(|run| run.flows[1].throughput_mbps));
    assert!((0.85..1.1).contains(&(mhip / tcp)), "{mhip} beside {tcp} Mbit/s");
    let alone = run(&scenario("steady-state.toml", &[]), 1, &RunOptions::default()).unwrap();
    assert!((7.5..=8.0).contains(&alone.flows[0].paths[0].throughput_mbps));
}

/// Every way of growth takes its share of a bottleneck that three paths have in common with a TCP: three shares, or less, or
/// one.
#[test]
fn growth_decides_on_the_share_of_a_bundle() {
    let share = |growth: &str| {
        let growth = format!("flow.mhip.growth={growth}");
        let runs = runs(&scenario("shared-network.toml", &[&growth]), 20);
        mean(runs.iter().map(|run| run.flows[0].throughput_mbps / run.flows[1].throughput_mbps))
    };
    let [per_path, coupled, lia, one] = ["per_path", "coupled", "lia", "per_bottleneck"].map(share);
    assert!((2.4..3.3).contains(&per_path), "{per_path}");
    // One packet more a round trip for the bundle, but each loss halves one window of three only: (2 − b)/2b with b = 1/6
    // instead of 1/2, the square root of 11/3.
    assert!((1.4..2.2).contains(&coupled), "{coupled}");
    assert!(lia < coupled, "{lia} and {coupled}");
    assert!((0.9..1.1).contains(&one), "{one}");
}

/// What arrives on the slow path is acknowledged first by what follows it on the fast one. Still it counts as an answer of
/// the slow path, which a probe opens and on which losses are noticed.
#[test]
fn a_slow_path_is_heard_behind_a_fast_one() {
    let slow =
        ["link.n0-n2,n2-n1.delay=30ms", "link.n0-n3,n3-n1.delay=3ms", "link.n0-n2,n2-n1.loss=0.02", "duration=60s"];
    for seed in 1..=10 {
        let result = run(&scenario("steady-state.toml", &slow), seed, &RunOptions::default()).unwrap();
        let path = &result.flows[0].paths[0];
        // M. Mathis and others, CCR 27(3), 1997: 1250 bytes, 0.126 s, a part 0.04 of packets lost on two links.
        let model = 1250.0 * 8.0 / 0.126 * (1.5_f64 / 0.04).sqrt() / 1e6;
        assert!(path.throughput_mbps > 0.4 * model, "{} of {model} Mbit/s with seed {seed}", path.throughput_mbps);
        assert!(result.flows[0].timeouts < 60, "{} timeouts with seed {seed}", result.flows[0].timeouts);
    }
}

#[test]
fn a_small_receive_buffer_makes_it_gentle() {
    let share = |buffer: &str| {
        let buffer = format!("flow.mhip.receive_buffer={buffer}");
        let runs = runs(&scenario("friendliness-network.toml", &[&buffer]), 3);
        assert!(buffer.contains("720") || runs.iter().all(|run| run.flows[0].most_held <= 40));
        mean(runs.iter().map(|run| run.flows[0].paths[0].throughput_mbps))
    };
    assert!(share("40p") < 0.5 * share("720p"));
}

/// Runs repeat, with several paths too, and the warm-up is left out of the counters of paths.
#[test]
fn runs_repeat_and_leave_the_warm_up_out() {
    let options = RunOptions::every(Duration::from_millis(100));
    let whole = scenario("reference.toml", &[]);
    let results = [run(&whole, 3, &options).unwrap(), run(&whole, 3, &options).unwrap()];
    assert_eq!(results[0], results[1]);
    let late = run(&scenario("reference.toml", &["warm_up=5s"]), 3, &options).unwrap();
    let [all, measured] = [&results[0], &late].map(|result| &result.flows[0].paths);
    let before = &results[0].series.iter().find(|sample| sample.time_s >= 5.0).unwrap().flows[0].paths;
    for ((all, measured), before) in all.iter().zip(measured).zip(before) {
        assert_eq!(all.sent, measured.sent + before.sent);
        let megabits = before.arrived_bytes as f64 * 8e-6;
        let flow = &results[0].flows[0];
        let total = all.throughput_mbps * (flow.end_s - flow.start_s);
        assert!((total - megabits - measured.throughput_mbps * 15.0).abs() < 1e-6);
    }
}

/// What the keys ask for, or a sentence.
#[test]
fn keys_are_checked() {
    let error = |setting: &str| {
        let mut document = papers("reference.toml");
        document.set(setting).unwrap();
        match document.scenario() {
            Ok(scenario) => simulator::plan(&scenario, 1).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert!(error("flow.mhip.generation=4").contains("4 is too large"));
    assert!(error("flow.tcp.generation=1").contains("`generation` is not for \"tcp\""));
    assert!(error("flow.mhip.growth=cubic").contains("not known here"));
    for key in ["marking=true", "congestion=lia", "ecn=true", "undo=eifel", "timestamps=true", "delayed_ack=true"] {
        assert!(error(&format!("flow.mhip.{key}")).contains("is not for \"mhip\" of generations 2 and 3"), "{key}");
    }
    assert!(error("flow.mhip.inside=udp").contains("it is for \"sinnet\""));
    assert!(error("flow.mhip.addr=2").contains("no probability"));
    assert!(error("flow.mhip.probe_interval=0s").contains("no probe"));
    assert!(error("flow.mhip.signalling=0s").contains("at every instant"));
    assert!(error("flow.mhip.signalling=true").contains("false or a time"));
    assert!(error("flow.mhip.duplicates=both").contains("not known here"));
    assert!(error("flow.mhip.scheduler=round-robin").contains("one scheduler"));
    let mut document = papers("reference.toml");
    for setting in [
        "generation=2",
        "growth=lia",
        "dupthresh=5",
        "addr=0.5",
        "receive_buffer=99p",
        "probe_interval=2s",
        "signalling=false",
        "duplicates=same_path",
    ] {
        document.set(&format!("flow.mhip.{setting}")).unwrap();
    }
    let plan = simulator::plan(&document.scenario().unwrap(), 1).unwrap();
    let FlowConfig::Mhip(mhip) = &plan.flows[0].traffic else { panic!() };
    assert_eq!((mhip.dupthresh, mhip.addr, mhip.receive_buffer), (5, Some(0.5), Some(99)));
    assert_eq!(mhip.probe_interval, Duration::from_secs(2));
    assert_eq!((mhip.heartbeat, mhip.attribution), (None, Attribution::SamePath));
    assert_eq!(plan.flows[0].paths.len(), 2);
    assert!(plan.flows[0].start < Instant::ZERO + Duration::from_secs(1));
}

//! What MPTCP is known to do: RFC 6356's goals on simple networks, what paper 4 found, failures of paths, and TCP as the
//! case of one path.

use simulator::{RunOptions, RunResult};

fn run(text: &str, seed: u64) -> RunResult {
    let scenario = scenario::parse(text, "mptcp.toml").unwrap_or_else(|error| panic!("{error}"));
    simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn mean(text: &str, seeds: u64, value: impl Fn(&RunResult) -> f64) -> f64 {
    (1..=seeds).map(|seed| value(&run(text, seed))).sum::<f64>() / seeds as f64
}

/// Two paths without a common link, of 8 and 4 Mbit/s.
fn disjoint(flow: &str, changes: &str) -> String {
    format!(
        r#"
        name = "disjoint"
        duration = "60s"
        warm_up = "10s"
        [[link]]
        between = ["s", "r1"]
        rate = "8Mbit/s"
        delay = "20ms"
        queue = "1bdp"
        [[link]]
        between = ["r1", "d"]
        delay = "1ms"
        [[link]]
        between = ["s", "r2"]
        rate = "4Mbit/s"
        delay = "30ms"
        queue = "1bdp"
        {changes}
        [[link]]
        between = ["r2", "d"]
        delay = "1ms"
        [[flow]]
        name = "bundle"
        from = "s"
        to = "d"
        protocol = "mptcp"
        paths = [["s", "r1", "d"], ["s", "r2", "d"]]
        {flow}
        "#
    )
}

/// Paper 4, scenario 2: both paths of one flow and that of a single-path flow through one bottleneck with RED.
fn shared(rate: &str, delay: &str, rule: &str) -> String {
    let red = r#"{ kind = "red", min = "30p", max = "90p", probability = 0.1 }"#;
    format!(
        r#"
        name = "shared"
        duration = "120s"
        warm_up = "20s"
        [[link]]
        between = ["s", "r1"]
        [[link]]
        between = ["s", "r2"]
        [[link]]
        between = ["t", "q1"]
        [[link]]
        between = ["r1", "q1"]
        [[link]]
        between = ["r2", "q1"]
        [[link]]
        between = ["q1", "q2"]
        rate = "{rate}"
        delay = "{delay}"
        queue = {red}
        [[link]]
        between = ["q2", "d"]
        [[link]]
        between = ["q2", "u"]
        [[flow]]
        name = "bundle"
        from = "s"
        to = "d"
        protocol = "mptcp"
        congestion = "{rule}"
        paths = [["s", "r1", "q1", "q2", "d"], ["s", "r2", "q1", "q2", "d"]]
        start = ["0s", "1s"]
        [[flow]]
        name = "single"
        from = "t"
        to = "u"
        protocol = "tcp"
        congestion = "sack"
        start = ["0s", "1s"]
        "#
    )
}

/// RFC 6356 §2, goal 1 and more: without a common bottleneck a bundle gets what all its paths have. Fully coupled control
/// moves everything to the path that loses least, so it gets only more than the best path.
#[test]
fn disjoint_paths_add_up() {
    for (rule, least) in
        [("newreno", 11.4), ("lia", 11.4), ("olia", 11.4), ("balia", 11.0), ("ewtcp", 11.4), ("coupled", 8.5)]
    {
        let result = run(&disjoint(&format!("congestion = \"{rule}\""), ""), 1);
        let bundle = &result.flows[0];
        assert!(bundle.throughput_mbps > least && bundle.throughput_mbps <= 12.0, "{rule}: {}", bundle.throughput_mbps);
        let paths: f64 = bundle.paths.iter().map(|path| path.throughput_mbps).sum();
        assert!((paths - bundle.throughput_mbps).abs() < 1e-9);
        assert_eq!(bundle.paths.iter().map(|path| path.sent).sum::<u64>(), bundle.sent);
    }
}

/// RFC 6356 §2, goal 2: on a shared bottleneck a bundle takes not more than one TCP. Uncoupled control takes what its
/// subflows would, fully coupled control what one would.
#[test]
fn a_shared_bottleneck_is_shared() {
    for (rule, low, high) in [
        ("newreno", 1.8, 2.3),
        ("lia", 0.9, 1.3),
        ("olia", 0.8, 1.2),
        ("balia", 0.8, 1.2),
        ("coupled", 0.8, 1.15),
        ("ewtcp", 1.2, 1.8),
    ] {
        let text = shared("10Mbit/s", "20ms", rule);
        let ratio = mean(&text, 3, |run| run.flows[0].goodput_mbps / run.flows[1].goodput_mbps);
        assert!((low..=high).contains(&ratio), "{rule}: {ratio}");
    }
}

/// Paper 4, §VII-A and figure 3: what MPTCP takes beyond its share grows as the delay shrinks and with the rate; 3 to 12
/// Mbit/s at 100 Mbit/s and 1 ms.
#[test]
fn the_excess_grows_as_the_delay_shrinks() {
    let excess =
        |rate, delay| mean(&shared(rate, delay, "lia"), 4, |run| run.flows[0].goodput_mbps - run.flows[1].goodput_mbps);
    let [slow, far, near] =
        [("20Mbit/s", "1ms"), ("100Mbit/s", "10ms"), ("100Mbit/s", "1ms")].map(|(r, d)| excess(r, d));
    assert!(slow < near && far < near, "{slow} {far} {near}");
    assert!((3.0..=12.0).contains(&near), "{near}");
}

/// With room at the receiver, every scheduler that uses the paths for different data gets their sum, and the redundant one
/// the rate of the best. DAPS lays packets out ahead by delays, which grow with the queues, and leaves some of it.
#[test]
fn schedulers_use_what_there_is() {
    for name in scheduler::Scheduler::NAMES {
        let result = run(&disjoint(&format!("scheduler = \"{name}\"\nreceiver_window = \"1000p\""), ""), 1);
        let goodput = result.flows[0].goodput_mbps;
        let (low, high) = match *name {
            "redundant" => (7.4, 7.8),
            "daps" => (9.0, 11.7),
            _ => (11.3, 11.7),
        };
        assert!((low..=high).contains(&goodput), "{name}: {goodput}");
    }
}

/// With a receiver's window below what the paths hold, whoever goes by round-trip times is not slower than the best path
/// alone, which is what round robin is; BLEST and OTIAS hold little out of order.
#[test]
fn a_small_window_is_for_those_who_look() {
    let with = |name: &str| {
        let flow = format!("scheduler = \"{name}\"\nreceiver_window = \"40p\"");
        run(&disjoint(&flow, ""), 1).flows[0].clone()
    };
    for name in ["lowest-rtt", "blest", "ecf", "sttf", "otias", "fastest-path-first"] {
        let flow = with(name);
        assert!(flow.goodput_mbps > 7.7, "{name}: {}", flow.goodput_mbps);
    }
    assert!(with("round-robin").goodput_mbps < 7.5);
    let held = ["blest", "lowest-rtt"].map(|name| with(name).most_held);
    assert!(held[0] < held[1], "{held:?}");
}

/// A path that goes down for ten seconds: the other carries everything meanwhile, and it is taken back.
#[test]
fn a_path_may_go_and_come_back() {
    let down = "[[link.change]]\nat = \"20s\"\ndown = true\n[[link.change]]\nat = \"30s\"\nup = true";
    for name in scheduler::Scheduler::NAMES {
        let flow = format!("scheduler = \"{name}\"\nreceiver_window = \"1000p\"\namount = \"50MB\"");
        let result = run(&disjoint(&flow, down), 1);
        let bundle = &result.flows[0];
        assert!(bundle.completed, "{name}");
        // At the lone rate of the first path it would take 51 s.
        assert!(bundle.end_s < if *name == "redundant" { 54.0 } else { 50.0 }, "{name}: {}", bundle.end_s);
        assert!(bundle.paths[1].closings >= 1 && bundle.paths[0].closings == 0, "{name}");
        let without = run(&disjoint(&flow, ""), 1);
        assert!(without.flows[0].completed && without.flows[0].end_s <= bundle.end_s, "{name}");
    }
}

/// With one path the run is TCP's, event for event.
#[test]
fn one_path_is_tcp() {
    let text = disjoint("", "").replace("[\"s\", \"r2\", \"d\"]", "").replace("queue", "loss = 0.001\nqueue");
    let mptcp = run(&text, 7);
    let tcp = run(&text.replace("\"mptcp\"", "\"tcp\""), 7);
    assert_eq!(mptcp.digest, tcp.digest);
    let (ours, theirs) = (&mptcp.flows[0], &tcp.flows[0]);
    assert!(ours.retransmissions > 10);
    assert_eq!(
        (ours.delivered, ours.sent, ours.retransmissions, ours.timeouts, ours.reductions, ours.rtt),
        (theirs.delivered, theirs.sent, theirs.retransmissions, theirs.timeouts, theirs.reductions, theirs.rtt)
    );
    assert_eq!(ours.paths.len(), 1);
}

#[test]
fn the_example_of_the_repository_runs() {
    let result = run(include_str!("../../../scenarios/sim/mptcp.toml"), 1);
    let bundle = &result.flows[0];
    assert!(bundle.paths[1].closings >= 1 && bundle.paths[1].goodput_mbps > 3.0, "{:?}", bundle.paths[1]);
    assert!(bundle.goodput_mbps + result.flows[1].goodput_mbps > 21.0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = shared("10Mbit/s", "20ms", "olia").replace("120s", "30s");
    assert_eq!(run(&text, 3), run(&text, 3));
    assert_ne!(run(&text, 3).digest, run(&text, 4).digest);
}

#[test]
fn what_cannot_be_is_told() {
    let told = |text: &str| {
        let scenario = scenario::parse(text, "mptcp.toml").map_err(|error| error.to_string());
        scenario.and_then(|scenario| simulator::plan(&scenario, 1).map(drop).map_err(|error| error.to_string()))
    };
    for (flow, sentence) in [
        ("scheduler = \"blets\"", "no scheduler is called \"blets\""),
        ("scheduler = \"blets\"", "did you mean \"blest\"?"),
        ("congestion = \"lai\"", "no congestion control of MPTCP is called \"lai\""),
        ("congestion = \"mhip\"", "no congestion control of MPTCP is called \"mhip\""),
        ("congestion = \"daimd:high=2\"", "its value must be a number from 0 to 1"),
        ("marking = true", "`marking` is not for \"mptcp\""),
        ("opportunistic = 1", "true or false"),
    ] {
        let error = told(&disjoint(flow, "")).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
    let one = disjoint("congestion = \"lia\"", "").replace("[\"s\", \"r2\", \"d\"]", "");
    assert!(told(&one).unwrap_err().contains("\"lia\" couples the paths of a flow, and here there is one"));
    let tcp = disjoint("opportunistic = true", "").replace("\"mptcp\"", "\"tcp\"");
    assert!(told(&tcp).unwrap_err().contains("`opportunistic` is not for \"tcp\""));
}

/// Paper 5, by the acceptance test of ALGORITHMS §5.3, and the same for the layer over other rules, which the paper leaves
/// open: nothing is lost on idle paths, and beside Reno delays cut the window so that the bundle gets less than by losses
/// alone, but is not starved, and each subflow less than the Reno beside it.
#[test]
fn delays_cut_what_losses_would() {
    let of = |file: &str, rule: &str| {
        let path = format!("{}/../../scenarios/papers/{file}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.replace("congestion = \"daimd\"", &format!("congestion = \"{rule}\""));
        text.split("[sweep]").next().unwrap_or_default().to_owned()
    };
    for (layer, below) in [("daimd", "lia"), ("daimd-olia", "olia"), ("daimd-balia", "balia")] {
        let idle = run(&of("daimd-idle-a", layer), 1);
        assert_eq!(idle.flows[0].losses, 0, "{layer}");
        // What is left of 15 Mbit/s without headers is 14.28.
        assert!(idle.flows[0].goodput_mbps > 14.0, "{layer}: {}", idle.flows[0].goodput_mbps);
        let (with, without) = (of("daimd-capacity", layer), of("daimd-capacity", below));
        let total = |text: &str| mean(text, 6, |run| run.flows[0].goodput_mbps);
        let ratio = total(&with) / total(&without);
        assert!((0.6..0.9).contains(&ratio), "{layer}: {ratio}");
        for path in 0..2 {
            let part = mean(&with, 6, |run| run.flows[0].paths[path].goodput_mbps / run.flows[path + 1].goodput_mbps);
            assert!(part < 1.0, "{layer}: {part} on path {path}");
        }
    }
}

/// A path whose rule counts bytes grows again from a window of one packet.
#[test]
fn resource_pooling_leaves_no_path_behind() {
    let result = run(&shared("20Mbit/s", "1ms", "rp2"), 1);
    let paths: Vec<f64> = result.flows[0].paths.iter().map(|path| path.goodput_mbps).collect();
    let ratio = paths[0] / paths[1];
    assert!((0.4..2.5).contains(&ratio), "{paths:?}");
    let ratio = result.flows[0].goodput_mbps / result.flows[1].goodput_mbps;
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
}

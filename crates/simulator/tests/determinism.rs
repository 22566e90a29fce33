//! The same scenario and seed give the same run; components do not touch each other's randomness.

use simulator::{RunOptions, RunResult};

fn run(text: &str, seed: u64) -> RunResult {
    let scenario = scenario::parse(text, "determinism.toml").unwrap_or_else(|error| panic!("{error}"));
    simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn dumbbell(congestion: &str, queue: &str, loss: &str, more: &str) -> String {
    format!(
        r#"
        name = "dumbbell"
        duration = "10s"
        [[link]]
        between = ["s", "r"]
        rate = "100Mbit/s"
        delay = "1ms"
        [[link]]
        between = ["r", "d"]
        rate = "8Mbit/s"
        delay = "20ms"
        queue = {queue}
        loss = {loss}
        [[link]]
        between = ["x", "y"]
        rate = "2Mbit/s"
        delay = "10ms"
        queue = "20p"
        loss = 0.01
        [[flow]]
        name = "many"
        count = 5
        from = "s"
        to = "d"
        protocol = "tcp"
        congestion = "{congestion}"
        packet_size = 1250
        start = ["0s", "1s"]
        {more}
        "#
    )
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let red = r#"{ kind = "red", min = "5p", max = "15p", probability = 0.1 }"#;
    let bursts = "{ to_bad = 0.005, to_good = 0.3, loss_good = 0, loss_bad = 0.5 }";
    for congestion in ["reno", "newreno", "sack", "cubic", "vegas"] {
        for (queue, loss) in [("\"1.5bdp\"", "0.001"), (red, "0"), ("{ kind = \"codel\" }", bursts)] {
            let text = dumbbell(congestion, queue, loss, "");
            let (one, two, other) = (run(&text, 1), run(&text, 1), run(&text, 2));
            assert_eq!(one, two);
            assert_ne!(one.digest, other.digest);
            assert!(one.flows.iter().all(|flow| flow.goodput_mbps > 0.1), "{congestion} {queue}");
            let all: f64 = one.flows.iter().map(|flow| flow.goodput_mbps).sum();
            assert!(all > 4.0 && all < 8.0, "{congestion} {queue} {loss}: {all} Mbit/s");
        }
    }
}

/// Links and flows have streams of their own, so a flow elsewhere changes nothing here.
#[test]
fn another_flow_leaves_the_randomness_of_the_others_alone() {
    let alone = run(&dumbbell("newreno", "\"1bdp\"", "0.002", ""), 3);
    let elsewhere = r#"
        [[flow]]
        name = "elsewhere"
        count = 2
        from = "x"
        to = "y"
        protocol = "tcp"
        start = ["0s", "1s"]
        [[flow]]
        name = "noise"
        from = "x"
        to = "y"
        protocol = "udp"
        rate = "1Mbit/s"
        on_off = { on = "100ms", off = "200ms", times = "exponential" }
    "#;
    let more = run(&dumbbell("newreno", "\"1bdp\"", "0.002", elsewhere), 3);
    assert_eq!(alone.flows[..5], more.flows[..5]);
    assert_eq!(alone.links[..4], more.links[..4]);
    assert!(more.flows[5..].iter().all(|flow| flow.delivered > 100));
}

/// Whatever a scenario is, packets are conserved and nothing arrives that was not sent.
#[test]
fn packets_are_conserved() {
    for (seed, congestion) in ["reno", "newreno", "sack", "cubic", "vegas"].iter().enumerate() {
        let result = run(&dumbbell(congestion, "\"10p\"", "0.02", ""), seed as u64);
        for flow in &result.flows {
            assert!(flow.sent >= flow.delivered + flow.duplicates, "{flow:?}");
            assert!(flow.sent <= flow.delivered + flow.duplicates + flow.losses + 1 + 300, "{flow:?}");
            assert!(flow.retransmissions >= flow.duplicates, "{flow:?}");
        }
        for link in &result.links {
            assert!(link.offered >= link.delivered + link.queue_drops + link.link_losses, "{link:?}");
            assert!(link.utilisation <= 1.0 + 1e-9, "{link:?}");
        }
    }
}

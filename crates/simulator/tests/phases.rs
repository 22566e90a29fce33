//! Phase effects of drop-tail queues (S. Floyd and V. Jacobson, *On traffic phase effects in packet-switched gateways*, 1992).

use simulator::RunOptions;

/// What two CUBICs alike get through one link of 8 Mbit/s and 15 ms, of which the second is `farther` away, in Mbit/s.
fn share(farther: &str, processing: &str, seed: u64) -> [f64; 2] {
    let text = format!(
        r#"
        name = "two alike"
        duration = "330s"
        warm_up = "30s"
        processing = "{processing}"
        [[link]]
        between = ["r", "b"]
        rate = "8Mbit/s"
        delay = "15ms"
        queue = "1.5bdp"
        [[link]]
        between = ["near", "r"]
        rate = "1Gbit/s"
        [[link]]
        between = ["far", "r"]
        rate = "1Gbit/s"
        delay = "{farther}"
        [[flow]]
        from = "near"
        to = "b"
        protocol = "tcp"
        profile = "linux"
        [[flow]]
        from = "far"
        to = "b"
        protocol = "tcp"
        profile = "linux"
        start = ["0s", "1s"]
        "#
    );
    let scenario = scenario::parse(&text, "phases.toml").unwrap_or_else(|error| panic!("{error}"));
    let result = simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    [0, 1].map(|flow| result.flows[flow].goodput_mbps)
}

/// Of four seeds the mean part of the second flow in what both get.
fn part_of_second(farther: &str, processing: &str) -> f64 {
    let parts = (1..=4).map(|seed| share(farther, processing, seed)).map(|[near, far]| far / (near + far));
    parts.sum::<f64>() / 4.0
}

/// Within 10 %: neither gets more than 1.1 times what the other gets.
#[test]
fn flows_alike_share_alike_where_the_times_of_hosts_wander() {
    for farther in ["0ms", "1ms", "2ms", "4ms"] {
        let part = part_of_second(farther, "wander");
        assert!((1.0 / 2.1..=1.1 / 2.1).contains(&part), "{farther}: {part}");
    }
}

/// The effect is there to be removed, and a random time of up to a packet does not: one flow gets half as much again.
#[test]
fn a_random_time_of_up_to_a_packet_is_not_enough() {
    for processing in ["usual", "auto"] {
        let part = part_of_second("2ms", processing);
        assert!(part > 0.58, "{processing}: {part}");
        let part = part_of_second("0ms", processing);
        assert!((part - 0.5).abs() < 0.025, "{processing}: {part}");
    }
}

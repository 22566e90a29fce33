//! What the congestion controls and the managed queues are known to do.

use simulator::{RunOptions, RunResult};

fn run(text: &str, seed: u64) -> RunResult {
    let scenario = scenario::parse(text, "algorithms.toml").unwrap_or_else(|error| panic!("{error}"));
    simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn bottleneck(duration: &str, link: &str, flow: &str) -> String {
    format!(
        r#"
        name = "bottleneck"
        duration = "{duration}"
        warm_up = "20s"
        [[link]]
        from = "s"
        to = "d"
        {link}
        [[link]]
        from = "d"
        to = "s"
        delay = "30ms"
        [[flow]]
        from = "s"
        to = "d"
        protocol = "tcp"
        packet_size = 1250
        {flow}
        "#
    )
}

/// Brakmo and Peterson 1995: a lone Vegas keeps between α = 2 and β = 4 packets in the queue, and the link full.
#[test]
fn vegas_keeps_two_to_four_packets_in_the_queue() {
    let link = "rate = \"10Mbit/s\"\ndelay = \"30ms\"\nqueue = \"200p\"";
    let result = run(&bottleneck("60s", link, "congestion = \"vegas\"\ndelayed_ack = false"), 1);
    assert!(result.links[0].utilisation > 0.99, "{}", result.links[0].utilisation);
    // Behind k packets, of which one is being sent, k wait with the new one.
    let queued = result.links[0].queue.mean;
    assert!((2.0..=4.1).contains(&queued), "{queued}");
    assert_eq!(result.flows[0].retransmissions, 0);
}

/// RFC 9438 §5.1, equation (5): the mean window is (C (3+β) / (4 (1−β)))^¼ · RTT^¾ / p^¾ for periodic losses; with
/// independent ones it comes out somewhat differently, so the band is wide. New Reno would be at 122 packets, below it.
#[test]
fn cubic_follows_its_response_function() {
    let link = "rate = \"10Gbit/s\"\ndelay = \"70ms\"\nloss = 0.0001";
    let result = run(&bottleneck("2000s", link, "congestion = \"cubic\"\ndelayed_ack = false"), 1);
    let window = f64::powf(0.4 * 3.7 / (4.0 * 0.3), 0.25) * f64::powf(0.1 / 0.0001, 0.75);
    let ours = result.flows[0].mean_cwnd;
    assert!((ours / window - 1.0).abs() < 0.2, "{ours} is not {window}");
}

/// CUBIC as in ns-3's `tcp-validation`: 50 Mbit/s, 50 ms, CoDel of 5 and 100 ms. The windows before each reduction, in packets,
/// and when it came.
fn validation(flow: &str) -> Vec<(f64, f64)> {
    let link = "rate = \"50Mbit/s\"\ndelay = \"25ms\"\nqueue = { kind = \"codel\", limit = \"1000p\" }";
    let text = bottleneck("25s", link, &format!("congestion = \"cubic\"\nreceiver_window = \"100000p\"\n{flow}"));
    let text = text.replace("warm_up = \"20s\"\n", "").replace("packet_size = 1250", "packet_size = 1500");
    let text = text.replace("delay = \"30ms\"", "delay = \"25ms\"");
    let scenario = scenario::parse(&text, "validation.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions::every(clock::Duration::from_millis(1));
    let result = simulator::run(&scenario, 1, &options).unwrap_or_else(|error| panic!("{error}"));
    let windows: Vec<(f64, f64)> = result.series.iter().map(|sample| (sample.time_s, sample.flows[0].cwnd)).collect();
    windows.windows(2).filter(|pair| pair[1].1 < pair[0].1 - 1.0).map(|pair| pair[0]).collect()
}

/// The figures of ns-3, whose flow starts at 5 s: slow start ends at 511 packets, three reductions leave 173 after 0.803 s, and
/// the maxima that follow are 236 and 234. When these come is not compared: ns-3 has them without the Reno-friendly region
/// (RFC 9438 §4.3), which is what leads here. When CoDel drops depends on each packet, and ours start later, for
/// acknowledgments are delayed.
#[test]
fn cubic_has_the_windows_that_ns_3_validates() {
    let maxima = validation("");
    let [slow_start, _, third, rest @ ..] = &maxima[..] else { panic!("{maxima:?}") };
    assert!((slow_start.1 / 511.0 - 1.0).abs() < 0.05 && (slow_start.0 - 0.459).abs() < 0.2, "{maxima:?}");
    assert!((third.1 * 0.7 / 173.0 - 1.0).abs() < 0.03 && (third.0 - 0.803).abs() < 0.2, "{maxima:?}");
    assert!(rest.len() >= 3 && rest.iter().all(|(_, cwnd)| (cwnd / 235.0 - 1.0).abs() < 0.03), "{maxima:?}");
}

/// CUBIC as in ns-3's `ns3tcp-cubic-test-suite`: 1,448 bytes of data in a packet, FQ-CoDel of 5 and 100 ms. The windows each
/// millisecond, in packets.
fn suite(delay: &str, rate: &str, change: &str) -> Vec<(f64, f64)> {
    let text = format!(
        r#"
        name = "suite"
        duration = "20s"
        [[link]]
        from = "s"
        to = "d"
        rate = "{rate}"
        delay = "{delay}"
        queue = {{ kind = "fq_codel" }}
        {change}
        [[link]]
        from = "d"
        to = "s"
        delay = "{delay}"
        [[flow]]
        from = "s"
        to = "d"
        protocol = "tcp"
        profile = "linux"
        packet_size = 1500
        start = "100ms"
        "#
    );
    let scenario = scenario::parse(&text, "suite.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions::every(clock::Duration::from_millis(1));
    let result = simulator::run(&scenario, 1, &options).unwrap_or_else(|error| panic!("{error}"));
    result.series.iter().map(|sample| (sample.time_s, sample.flows[0].cwnd)).collect()
}

/// The least and the greatest window from one time to another.
fn range(windows: &[(f64, f64)], from: f64, to: f64) -> (f64, f64) {
    let those = windows.iter().filter(|(time, _)| (from..to).contains(time)).map(|(_, cwnd)| *cwnd);
    those.fold((f64::MAX, 0.0), |(least, greatest), cwnd| (least.min(cwnd), greatest.max(cwnd)))
}

/// ns-3's own bounds hold without any slack, though it paces and ours does not. Its bounds for CUBIC without fast convergence, and
/// without the Reno-friendly region, are not asked: ours always has both (RFC 9438 §4.3, §4.7).
#[test]
fn cubic_stays_within_the_bounds_of_ns_3() {
    let (least, greatest) = range(&suite("2.5ms", "100Mbit/s", ""), 1.0, 19.0);
    assert!(least >= 60.0 && greatest <= 110.0, "{least} to {greatest}");
    // Twice the rate from 10 s on: the Reno-friendly region finds it within three seconds, without it CUBIC takes seven.
    let doubled = "[[link.change]]\nat = \"10s\"\nrate = \"100Mbit/s\"";
    let windows = suite("10ms", "50Mbit/s", doubled);
    assert!(range(&windows, 9.0, 10.0).1 < 150.0, "nothing is found before");
    let (least, greatest) = range(&windows, 13.0, 15.0);
    assert!(least >= 150.0 && greatest <= 220.0, "{least} to {greatest}");
}

/// Without SACK much of what is outstanding behind a hole has arrived: as RFC 5681 counts FlightSize, CUBIC once raised its
/// window by losses, from 545 to 1,242 packets, until its timer ran out.
#[test]
fn a_loss_never_raises_the_window() {
    let before = validation("delayed_ack = false");
    assert!(before.len() > 4 && before.iter().all(|(_, cwnd)| *cwnd <= before[0].1), "{before:?}");
}

/// RFC 3168 with RED: congestion is told by marks, so hardly anything is dropped or sent again.
#[test]
fn marks_replace_drops() {
    let queue = r#"queue = { kind = "red", min = "10p", max = "30p", probability = 0.1, limit = "200p", ecn = ECN }"#;
    let link = format!("rate = \"10Mbit/s\"\ndelay = \"30ms\"\n{queue}");
    let flow = "count = 4\nstart = [\"0s\", \"1s\"]\necn = ";
    let with = run(&bottleneck("80s", &link.replace("ECN", "true"), &format!("{flow}true")), 1);
    let without = run(&bottleneck("80s", &link.replace("ECN", "false"), &format!("{flow}false")), 1);
    let sum = |result: &RunResult, of: fn(&simulator::FlowResult) -> u64| result.flows.iter().map(of).sum::<u64>();
    assert!(with.links[0].marked > 100);
    assert_eq!((without.links[0].marked, sum(&without, |flow| flow.marked)), (0, 0));
    assert!(sum(&without, |flow| flow.retransmissions) > 100);
    assert!(sum(&with, |flow| flow.retransmissions) * 20 < sum(&without, |flow| flow.retransmissions));
    // From the start, and with nothing under way at the end, what the queue marks is what the receivers see.
    let whole = bottleneck("32s", &link.replace("ECN", "true"), &format!("{flow}true\nstop = \"30s\""));
    let whole = run(&whole.replace("warm_up = \"20s\"\n", ""), 1);
    assert_eq!(sum(&whole, |flow| flow.marked), whole.links[0].marked);
    for result in [with, without] {
        assert!(result.links[0].utilisation > 0.8, "{}", result.links[0].utilisation);
    }
}

/// RFC 8289, 8290, 8033, 9332: each holds the queue's delay near its target of 5 or 15 ms where drop-tail fills whatever there is.
#[test]
fn managed_queues_hold_the_delay() {
    let link = |queue: &str| format!("rate = \"10Mbit/s\"\ndelay = \"30ms\"\nqueue = {queue}");
    let tail = run(&bottleneck("80s", &link("\"300p\""), "congestion = \"newreno\""), 1);
    let managed = [("codel", 15.0), ("fq_codel", 15.0), ("pie", 25.0), ("dualpi2", 25.0)];
    for (queue, median) in managed {
        let result =
            run(&bottleneck("80s", &link(&format!("{{ kind = \"{queue}\" }}")), "congestion = \"newreno\""), 1);
        let link = &result.links[0];
        // At 1 ms a packet.
        assert!(link.queue.p50 < median, "{queue}: {:?}", link.queue);
        assert!(tail.links[0].queue.mean > 5.0 * link.queue.mean, "{queue}: {:?}", link.queue);
        assert!(link.utilisation > 0.75, "{queue}: {}", link.utilisation);
        assert!(link.queue_drops > 0 && link.queue_drops <= result.flows[0].losses, "{queue}: {}", link.queue_drops);
    }
}

/// The sum of flows over one bottleneck is the bottleneck, and flows alike get alike, within what a minute can tell.
#[test]
fn flows_alike_share_alike() {
    for congestion in ["reno", "newreno", "sack", "cubic"] {
        let link = "rate = \"20Mbit/s\"\ndelay = \"30ms\"\nqueue = \"1bdp\"";
        let flow = format!("count = 4\nstart = [\"0s\", \"5s\"]\nsend_jitter = \"1ms\"\ncongestion = \"{congestion}\"");
        let result = run(&bottleneck("220s", link, &flow), 1);
        let rates: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_wire_mbps).collect();
        let sum: f64 = rates.iter().sum();
        assert!(sum > 19.0 && sum <= 20.0, "{congestion}: {rates:?}");
        assert!(rates.iter().all(|rate| (rate / 5.0 - 1.0).abs() < 0.25), "{congestion}: {rates:?}");
    }
}

/// Every rule for single paths is one of TCP's, those that draw do so from the seed of the run, and those that couple are told so.
#[test]
fn tcp_takes_every_rule_for_one_path() {
    let text = |rule: &str| {
        format!(
            r#"
            name = "rule"
            duration = "20s"
            [[link]]
            between = ["a", "b"]
            rate = "10Mbit/s"
            delay = "20ms"
            queue = "1bdp"
            [[flow]]
            name = "one"
            from = "a"
            to = "b"
            protocol = "tcp"
            congestion = "{rule}"
            "#
        )
    };
    let digest = |rule: &str, seed| {
        let scenario = scenario::parse(&text(rule), "rule.toml").unwrap_or_else(|error| panic!("{error}"));
        let result = simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert!(result.flows[0].goodput_mbps > 7.0, "{rule}: {}", result.flows[0].goodput_mbps);
        result.digest
    };
    for rule in ["cubic", "compound", "vegas"] {
        assert_eq!(digest(rule, 1), digest(rule, 2), "{rule}: nothing is random here");
    }
    for rule in ["cdg", "hd", "chd"] {
        assert_eq!(digest(rule, 1), digest(rule, 1));
        assert_ne!(digest(rule, 1), digest(rule, 2), "{rule} draws");
    }
    for (rule, sentence) in [
        ("lia", "\"lia\" couples paths, and TCP has one"),
        ("reno-sp", "no congestion control of TCP is called \"reno-sp\""),
        ("chd:threshold=no", "its value must be a time in seconds from 0 to 10"),
    ] {
        let scenario = scenario::parse(&text(rule), "rule.toml").unwrap_or_else(|error| panic!("{error}"));
        let error = simulator::run(&scenario, 1, &RunOptions::default()).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
}

//! What can be worked out on paper.

use clock::{Duration, Instant, Streams};
use link::Link;
use simulator::{Observer, RunOptions, RunResult, Simulation};
use transport::Packet;

fn scenario(text: &str) -> scenario::Scenario {
    scenario::parse(text, "closed_form.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, seed: u64) -> RunResult {
    simulator::run(&scenario(text), seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_near(ours: f64, exact: f64, tolerance: f64) {
    assert!((ours / exact - 1.0).abs() <= tolerance, "{ours} is not {exact}");
}

#[derive(Default)]
struct Arrivals(Vec<Instant>);

impl Observer for Arrivals {
    fn delivered(&mut self, now: Instant, _link: u32, _packet: &Packet, _blocks: &[(u32, u32)]) {
        self.0.push(now);
    }
}

#[test]
fn a_packet_of_1500_bytes_takes_12_ms_at_1_mbit_per_s() {
    let text = r#"
        name = "one packet"
        duration = "1s"
        [[link]]
        from = "s"
        to = "d"
        rate = "1Mbit/s"
        [[flow]]
        from = "s"
        to = "d"
        protocol = "udp"
        rate = "1Mbit/s"
        packet_size = 1500
        amount = "1p"
    "#;
    let plan = simulator::plan(&scenario(text), 1).unwrap();
    let mut arrivals = Arrivals::default();
    let result = Simulation::new(&plan, 1).run_observed(&RunOptions::default(), &mut arrivals);
    assert_eq!(arrivals.0, [Instant::ZERO + Duration::from_millis(12)]);
    assert_eq!((result.packets, result.flows[0].delivered, result.flows[0].completed), (1, 1, true));
}

/// W/RTT, with the round trip of a full packet there and an acknowledgment back.
#[test]
fn a_window_limited_flow_gets_w_per_round_trip() {
    for (congestion, window) in [("newreno", 20), ("sack", 7), ("cubic", 20), ("reno", 3)] {
        let result = run(
            &format!(
                r#"
                name = "window"
                duration = "61s"
                warm_up = "1s"
                [[link]]
                between = ["s", "d"]
                rate = "100Mbit/s"
                delay = "25ms"
                [[flow]]
                from = "s"
                to = "d"
                protocol = "tcp"
                profile = "ns2"
                congestion = "{congestion}"
                packet_size = 1250
                receiver_window = "{window}p"
                "#
            ),
            1,
        );
        let round_trip = 0.05 + 1250.0 * 8.0 / 1e8 + 40.0 * 8.0 / 1e8;
        let exact = f64::from(window) * 1250.0 * 8.0 / round_trip / 1e6;
        // The window that is under way when the measurement ends: at most one in 1200.
        assert_near(result.flows[0].goodput_wire_mbps, exact, 1.0 / 1200.0);
        assert_near(result.flows[0].rtt.mean, round_trip * 1e3, 1e-6);
        assert_eq!(result.flows[0].retransmissions, 0);
    }
}

/// A flow with enough window fills the link, and the queue holds what the path does not.
#[test]
fn a_standing_queue_is_the_window_less_what_the_path_holds() {
    let result = run(
        r#"
        name = "queue"
        duration = "21s"
        warm_up = "1s"
        [[link]]
        between = ["s", "d"]
        rate = "10Mbit/s"
        delay = "20ms"
        [[flow]]
        from = "s"
        to = "d"
        protocol = "tcp"
        profile = "ns2"
        packet_size = 1250
        receiver_window = "100p"
        "#,
        1,
    );
    let (link, flow) = (&result.links[0], &result.flows[0]);
    assert_near(link.utilisation, 1.0, 1e-4);
    assert_near(flow.goodput_wire_mbps, 10.0, 1e-3);
    // 100 packets of 1 ms each are 100 ms: the round trip is full to the last packet.
    assert_near(flow.rtt.mean, 100.0, 1e-3);
    // 40 ms of them, less an acknowledgment's 0.032 ms, fly; one is being sent.
    assert_near(link.queue.mean, 100.0 - 40.0 - 1.0, 0.02);
}

/// M. Mathis, J. Semke, J. Mahdavi, T. Ott, *The macroscopic behavior of the TCP congestion avoidance algorithm*, CCR
/// 27(3), 1997: MSS/RTT · C/√p, with C = √(3/2) for an acknowledgment per packet. (Losses that are independent instead
/// of periodic raise C to 1.31; the round trip of each recovery, and timeouts, take that back where losses are many.)
#[test]
fn random_loss_follows_the_square_root_law() {
    for (loss, seconds) in [(0.0001, 4000.0), (0.001, 1500.0), (0.01, 600.0)] {
        let result = run(
            &format!(
                r#"
                name = "square root"
                duration = "{seconds}s"
                warm_up = "{}s"
                [[link]]
                from = "s"
                to = "d"
                rate = "1Gbit/s"
                delay = "50ms"
                loss = {loss}
                [[link]]
                from = "d"
                to = "s"
                delay = "50ms"
                [[flow]]
                from = "s"
                to = "d"
                protocol = "tcp"
                congestion = "sack"
                delayed_ack = false
                packet_size = 1250
                "#,
                seconds / 20.0
            ),
            7,
        );
        let packets = result.flows[0].goodput_wire_mbps * 1e6 / 8.0 / 1250.0;
        let c = packets * 0.1 * f64::sqrt(loss);
        assert!((c / f64::sqrt(1.5) - 1.0).abs() < 0.1, "C is {c} at {loss}");
    }
}

/// LIA beside Reno where a path is shared: rates at which every window grows as fast as RED cuts it.
#[test]
fn lia_shares_as_its_equations_have_it_until_the_shared_path_is_the_better_one() {
    let file = include_str!("../../../scenarios/papers/fairness-3-network.toml");
    let bottleneck = |mbps: f64| fairness::Bottleneck {
        rate: mbps * 1e6 / 12_000.0,
        round_trip: 0.02,
        min: 30.0,
        max: 90.0,
        probability: 0.1,
    };
    for beta in [20.0, 40.0] {
        let mut document = scenario::Document::parse(file, "fairness-3-network.toml").unwrap();
        for set in [
            "flow.f0.congestion=lia-byte".to_owned(),
            "duration=140s".to_owned(),
            format!("link.beta.rate={beta}Mbit/s"),
        ] {
            document.set(&set).unwrap();
        }
        let result = simulator::run(&document.scenario().unwrap(), 1, &RunOptions::default()).unwrap();
        let rates = fairness::lia_beside_reno(&bottleneck(20.0), &bottleneck(beta));
        let goodput = |packets: f64| packets * 1452.0 * 8.0 / 1e6;
        assert_near(result.flows[0].goodput_mbps, goodput(rates.own + rates.shared), 0.06);
        assert_near(result.flows[1].goodput_mbps, goodput(rates.single), 0.06);
    }
}

/// Packets of constant rate over a link that varies, pauses or follows a trace come out as of a link that is moved by hand with
/// the same random stream, whether they may overtake each other or not.
#[test]
fn a_simulated_link_is_the_link() {
    let jitter = "rate = \"1Mbit/s\"\njitter = \"20ms\"";
    let pause = "[[link.change]]\nat = \"1s\"\nevery = \"2s\"\nrate = \"0bit/s\"\n\
                 [[link.change]]\nat = \"1.5s\"\nevery = \"2s\"\nrate = \"1Mbit/s\"\ndelay = \"20ms\"";
    for (reorder, queue, keys) in [
        (false, "50p", jitter),
        (true, "50p", jitter),
        (true, "3p", jitter),
        (false, "50p", "trace = \"8\\n9\\n40\\n41\\n\""),
        (true, "50p", "trace = \"8\\n9\\n40\\n41\\n\"\njitter = { normal = \"9ms\" }"),
        (false, "9p", "rate = \"1Mbit/s\"\nschedule = \"lte\""),
        (false, "50p", "rate = \"1Mbit/s\"\nschedule = \"starlink\""),
        (true, "50p", &format!("{jitter}\n{pause}")),
    ] {
        let (keys, change) =
            keys.split_once("[[").map_or((keys, String::new()), |(keys, rest)| (keys, format!("[[{rest}")));
        let text = format!(
            r#"
            name = "jitter"
            duration = "20s"
            [[link]]
            from = "s"
            to = "d"
            {keys}
            delay = "20ms"
            reorder = {reorder}
            queue = "{queue}"
            loss = {{ rate = 0.1, burst = 2 }}
            {change}
            [[flow]]
            from = "s"
            to = "d"
            protocol = "udp"
            rate = "990kbit/s"
            packet_size = 1000
            "#
        );
        let plan = simulator::plan(&scenario(&text), 3).unwrap();
        let mut seen = Numbered::default();
        let _ = Simulation::new(&plan, 3).run_observed(&RunOptions::default(), &mut seen);
        assert!(seen.delivered.len() > 1500, "{keys}: {}", seen.delivered.len());
        assert_eq!(seen.delivered.is_sorted_by_key(|(_, number)| *number), !reorder, "{keys}");

        let mut link = Link::new(plan.links[0].config.clone(), Streams::new(3).stream("link s-d"));
        let mut expected = Vec::new();
        let end = Instant::ZERO + Duration::from_secs(20);
        for limit in seen.offered.iter().map(|(at, _)| *at).chain([end]) {
            while let Some(next) = link.next_event().filter(|next| *next <= limit) {
                expected.extend(std::iter::from_fn(|| link.poll(next)).map(|number| (next, number)));
            }
            if let Some((at, number)) = seen.offered.get(link.statistics().offered.packets as usize) {
                let _ = link.offer(*at, *number, 1000);
            }
        }
        assert!(seen.delivered == expected, "reorder = {reorder}, {keys}");
    }
}

/// When each packet was offered, and came out.
#[derive(Default)]
struct Numbered {
    offered: Vec<(Instant, u32)>,
    delivered: Vec<(Instant, u32)>,
}

impl Observer for Numbered {
    fn offered(&mut self, now: Instant, _link: u32, packet: &Packet) {
        self.offered.push((now, packet.position));
    }

    fn delivered(&mut self, now: Instant, _link: u32, packet: &Packet, _blocks: &[(u32, u32)]) {
        self.delivered.push((now, packet.position));
    }
}

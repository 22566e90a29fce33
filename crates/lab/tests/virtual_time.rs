//! The laboratory in virtual time. Oracles: what the links carry less the bytes of headers, SHA-256, and that a run can be replayed.

use lab::{Hosts, Options, Progress, Report};

const TWO_PATHS: &str = include_str!("../../../scenarios/lab/two-paths.toml");
const THREE_PATHS: &str = include_str!("../../../scenarios/lab/three-paths.toml");
const CUT: &str = include_str!("../../../scenarios/lab/cut.toml");

/// Each path alone, and all together.
fn run(text: &str) -> Report {
    run_some(text, false)
}

/// Without each path alone if only all `together` matter.
fn run_some(text: &str, together: bool) -> Report {
    let scenario = scenario::parse(text, "scenario.toml").expect("a scenario");
    let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together };
    lab::run(&scenario, &options, &mut Progress::silent()).expect("a report")
}

#[test]
fn together_the_paths_carry_their_sum() {
    for (text, links) in [(TWO_PATHS, vec![8.0, 4.0]), (THREE_PATHS, vec![2.0, 4.0, 5.0])] {
        let report = run(text);
        assert!(report.virtual_time && report.sha256_equal, "{report:?}");
        assert_eq!(report.single_mbps.len(), links.len());
        for (single, link) in report.single_mbps.iter().zip(&links) {
            // Headers outside and inside of ESP take 9 % of full packets at most; slow start and its losses take the rest.
            assert!((0.7 * link..*link).contains(single), "{report:?}");
        }
        assert!(report.together_mbps < links.iter().sum(), "{report:?}");
        assert!(report.ratio.is_some_and(|ratio| ratio >= 0.9), "{report:?}");
    }
}

#[test]
fn a_cut_is_survived() {
    let report = run(CUT);
    assert!(report.disturbed && report.sha256_equal, "{report:?}");
    assert!((4.0..12.0).contains(&report.together_mbps), "{report:?}");
    assert!(report.longest_stall_ms > 0.0);
}

/// The faster of two paths dies: what was in flight there goes on the other, behind nothing and with nothing dropped of what waits,
/// so a TCP inside stands still for as long as it takes to find out, and no longer.
#[test]
fn a_path_that_dies_holds_nothing_up() {
    const PATH_DIES: &str = include_str!("../../../scenarios/lab/bench/path-dies.toml");
    for (seed, inside) in [(1, "cubic"), (2, "cubic"), (3, "cubic"), (2, "bbr"), (3, "bbr")] {
        let text = PATH_DIES.replace("seed = 1", &format!("seed = {seed}"));
        let report = run_some(&format!("{text}congestion = \"{inside}\"\n"), true);
        assert!(report.longest_stall_ms <= 200.0, "{inside}, seed {seed}: {report:?}");
    }
}

/// What a TCP CUBIC gets over one path of 100 Mbit/s.
fn one_path(delay: &str, link: &str, protocol: &str) -> f64 {
    let text = format!(
        r#"
        name = "one path"
        duration = "6s"
        warm_up = "2s"
        processing = "auto"
        [[link]]
        between = ["server", "client"]
        rate = "100Mbit/s"
        delay = "{delay}"
        {link}
        [[flow]]
        name = "download"
        from = "server"
        to = "client"
        protocol = "{protocol}"
        paths = [["server", "client"]]
        congestion = "cubic"
        "#
    );
    run_some(&text, true).together_mbps
}

/// A path of 4 ms whose queue holds half a bandwidth-delay product: 25 kB. It carries what it does for a TCP that hears of each second
/// packet, but for headers (4 %) and how losses fall.
#[test]
fn a_short_path_with_a_short_queue_carries_what_it_does_for_a_tcp() {
    let goodput = |protocol| one_path("2ms", "queue = \"0.5bdp\"", protocol);
    let (tcp, sinnet) = (goodput("tcp"), goodput("sinnet"));
    assert!(sinnet >= 0.92 * tcp, "{sinnet} of {tcp}");
}

/// A link that delays packets as it likes, but lets none overtake another, carries as much. What is behind a late packet is late, too,
/// which slow start takes for a queue, until it is gone though as much is in flight.
#[test]
fn jitter_keeps_no_window_small() {
    let steady = one_path("30ms", "", "sinnet");
    for jitter in ["6ms", "15ms"] {
        let goodput = one_path("30ms", &format!("jitter = \"{jitter}\""), "sinnet");
        assert!(goodput >= 0.9 * steady, "{goodput} with a jitter of {jitter}, {steady} without");
    }
}

/// The two paths, with something else inside, or more of it.
fn with(keys: &str) -> String {
    // What comes to its end is measured as a whole.
    let warm_up = if keys.contains("inside") { "\nwarm_up = \"1s\"" } else { "" };
    TWO_PATHS
        .replace("duration = \"12s\"", &format!("duration = \"4s\"{warm_up}"))
        .replace("protocol = \"sinnet\"", &format!("protocol = \"sinnet\"\n{keys}"))
}

/// Copies of everything on both paths carry no more than the better path does, but more than the slower one; all others carry
/// more than either.
#[test]
fn a_scenario_chooses_the_scheduler() {
    for name in scheduler::Scheduler::NAMES {
        let report = run(&with(&format!("scheduler = \"{name}\"")));
        assert!(report.sha256_equal, "{name}: {report:?}");
        let [better, slower] = report.single_mbps[..] else { panic!("{report:?}") };
        let bounds = if *name == "redundant" { slower..8.0 } else { better..12.0 };
        assert!(bounds.contains(&report.together_mbps), "{name}: {report:?}");
        assert!(report.longest_stall_ms < 400.0, "{name}: {report:?}");
    }
}

#[test]
fn a_call_alone_takes_what_light_takes() {
    let report = run(&with("inside = \"udp\"\nrate = \"400kbit/s\"\npacket_size = 500"));
    let [call] = report.flows.as_slice() else { panic!("{report:?}") };
    let told = call.datagrams.as_ref().expect("datagrams");
    // 10 ms apart, from the end of the warm-up to a second before the end.
    assert_eq!((told.sent, told.lost, told.reordered), (200, 0, 0), "{told:?}");
    assert!((call.mbps - 0.4).abs() < 0.004, "{call:?}");
    // 30 ms of propagation, and at most 1.1 ms on the slower link and twice a host's millisecond.
    assert!(told.delay_ms.median >= 30.0 && told.delay_ms.longest < 33.2, "{told:?}");
    assert!(told.jitter_ms.longest < 2.0, "{told:?}");
    for path in &report.paths {
        assert!(path.there_ms.longest < 33.2 && path.back_ms.longest < 33.2, "{report:?}");
    }
}

#[test]
fn echoes_alone_take_the_round_trip() {
    let report = run(&with("inside = \"ping\""));
    let told = report.flows[0].datagrams.as_ref().expect("datagrams");
    assert_eq!((told.sent, told.lost), (40, 0), "{told:?}");
    assert!(told.delay_ms.median >= 60.0 && told.delay_ms.longest < 65.0, "{told:?}");
}

#[test]
fn many_connections_complete() {
    let report = run(&with("count = 100\namount = \"8kB\""));
    let [crowd] = report.flows.as_slice() else { panic!("{report:?}") };
    assert_eq!((crowd.connections, crowd.complete, report.sha256_equal), (100, 100, true), "{report:?}");
    assert_eq!(report.single_mbps.len(), 2);
}

#[test]
fn what_a_laboratory_cannot_do_it_says() {
    let error = |text: &str| {
        let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together: true };
        match scenario::parse(text, "scenario.toml") {
            Ok(scenario) => {
                lab::run(&scenario, &options, &mut Progress::silent()).expect_err("no laboratory").to_string()
            }
            Err(error) => error.to_string(),
        }
    };
    let ping = "[[flow]]\nname = \"ping\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"sinnet\"\ninside = \"ping\"\n";
    let ping = format!("{ping}paths = [[\"b\", \"r1\", \"a\"], [\"b\", \"r2\", \"a\"]]\n");
    assert!(error(&(with("count = 9\namount = \"8kB\"\n") + &ping)).contains("are to come to their end"));
    assert!(error(&with("inside = \"udp\"\nrate = \"1Mbit/s\"\npacket_size = 50")).contains("56 bytes"));
    assert!(
        error(&with("inside = \"ping\"\namount = \"1MB\""))
            .contains("`amount` is not for \"sinnet\" with echo requests inside")
    );
}

#[test]
fn a_seed_replays_a_run() {
    let short =
        TWO_PATHS.replace("duration = \"12s\"", "duration = \"3s\"").replace("queue =", "loss = 0.002\nqueue =");
    let other = short.replace("seed = 1", "seed = 2");
    assert_eq!(run(&short), run(&short));
    assert_ne!(run(&short).together_mbps.to_bits(), run(&other).together_mbps.to_bits());
}

//! Rules and schedulers from outside of the registries.

use clock::Instant;
use congestion::{Backoff, Cause, Group, NewReno, Rule, WindowRule};
use scheduler::{Decision, LowestRtt, PacketMeta, PathScheduler, PathView, Scheduler};
use simulator::{Outside, RunOptions, RunResult, Simulation};

/// New Reno, and a pace.
#[derive(Clone, Debug)]
struct Paced(Option<u64>);

impl WindowRule for Paced {
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        NewReno.increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        NewReno.decrease(path, group, cause)
    }

    fn pace(&self, _path: usize) -> Option<u64> {
        self.0
    }
}

#[derive(Clone, Debug)]
struct Mine;

impl PathScheduler for Mine {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
        LowestRtt.select(packet, paths, now)
    }
}

struct Ours;

impl Outside for Ours {
    fn rule(&self, name: &str) -> Option<Rule> {
        match name {
            "ours" => Some(Rule::custom("ours", Paced(None))),
            "paced" => Some(Rule::custom("paced", Paced(Some(2_000_000)))),
            _ => None,
        }
    }

    fn scheduler(&self, name: &str) -> Option<Scheduler> {
        (name == "mine").then(|| Scheduler::custom("mine", Mine))
    }
}

const LINKS: &str = r#"
name = "outside"
duration = "20s"
[[link]]
between = ["s", "a"]
rate = "5Mbit/s"
delay = "10ms"
queue = "1bdp"
[[link]]
between = ["s", "b"]
rate = "5Mbit/s"
delay = "30ms"
queue = "1bdp"
loss = 0.001
[[link]]
between = ["a", "d"]
[[link]]
between = ["b", "d"]
[[flow]]
name = "f"
from = "s"
to = "d"
"#;

fn run(flow: &str) -> RunResult {
    let scenario = scenario::parse(&format!("{LINKS}{flow}"), "outside.toml").unwrap();
    let plan = simulator::plan_with(&scenario, 7, &Ours).unwrap();
    Simulation::new(&plan, 7).run(&RunOptions::default())
}

const PATHS: &str = r#"paths = [["s", "a", "d"], ["s", "b", "d"]]"#;

#[test]
fn the_same_rule_from_outside_gives_the_same_run() {
    for protocol in [
        "protocol = \"tcp\"",
        &format!("protocol = \"mptcp\"\n{PATHS}"),
        &format!("protocol = \"sinnet\"\ninitial_window = \"2p\"\n{PATHS}"),
    ] {
        let known = if protocol.contains("\"tcp\"") { "sack" } else { "newreno" };
        let (ours, known) = ["ours", known].map(|rule| run(&format!("{protocol}\ncongestion = \"{rule}\""))).into();
        assert_eq!(ours.digest, known.digest, "{protocol}");
        let asked = run(&format!("{protocol}\ncongestion = \"cubic\""));
        assert_ne!(ours.digest, asked.digest, "another rule is another run: {protocol}");
    }
}

#[test]
fn the_same_scheduler_from_outside_gives_the_same_run() {
    let flow = |scheduler| {
        run(&format!("protocol = \"mptcp\"\n{PATHS}\nscheduler = \"{scheduler}\"\nreceiver_window = \"20p\""))
    };
    assert_eq!(flow("mine").digest, flow("lowest-rtt").digest);
    assert_ne!(flow("mine").digest, flow("round-robin").digest);
}

/// The oracle is the pace: 2 Mbit/s of packets on a path that has 5.
#[test]
fn nothing_leaves_faster_than_the_pace() {
    let paced = run("protocol = \"tcp\"\ncongestion = \"paced\"");
    assert!((1.95..=2.0).contains(&paced.flows[0].throughput_mbps), "{}", paced.flows[0].throughput_mbps);
    assert_eq!(paced.flows[0].losses, 0, "no queue was ever full");
    let both = run(&format!("protocol = \"mptcp\"\n{PATHS}\ncongestion = \"paced\""));
    let paths = &both.flows[0].paths;
    assert!((1.9..=2.0).contains(&paths[0].throughput_mbps), "{}", paths[0].throughput_mbps);
    assert!(paths[1].throughput_mbps <= 2.0);
}

#[test]
fn what_nobody_knows_is_told_as_ever() {
    let text = format!("{LINKS}protocol = \"tcp\"\ncongestion = \"theirs\"");
    let scenario = scenario::parse(&text, "outside.toml").unwrap();
    let told = simulator::plan_with(&scenario, 7, &Ours).unwrap_err();
    assert_eq!(told, simulator::plan(&scenario, 7).unwrap_err());
}

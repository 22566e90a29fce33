//! The core in the simulator against the data plane that has it, to the byte, in virtual time.

use lab::{Hosts, Options, Progress};

fn both(scenario: &scenario::Scenario, runs: u32) -> lab::Comparison {
    let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together: true };
    let sides = [Hosts::Simulated, Hosts::Virtual];
    lab::compare(scenario, sides, Some(runs), &options, &mut Progress::silent()).unwrap()
}

/// What hosts can be configured with does the same in both.
#[test]
fn what_hosts_are_configured_with_is_simulated() {
    for setting in ["scheduler=redundant", "scheduler=daps", "rates=configured", "path_congestion=lia"] {
        let file = format!("{}/../../scenarios/lab/bench/eight-four.toml", env!("CARGO_MANIFEST_DIR"));
        let mut document = scenario::Document::parse(&std::fs::read_to_string(&file).unwrap(), &file).unwrap();
        document.set(&format!("flow.1.{setting}")).unwrap();
        let comparison = both(&document.scenario().unwrap(), 1);
        assert!(comparison.agree, "{setting}: {comparison}");
    }
}

/// Of the scenarios that are measured between kernels, some that differ in what they show.
#[test]
fn simulated_hosts_do_what_virtual_ones_do() {
    // Of a link that loses 5 % at random single runs differ by 6 %.
    for (name, runs) in [("eight-four", 1), ("two-four-five", 1), ("lossy-second", 4), ("path-dies", 1)] {
        let file = format!("{}/../../scenarios/lab/bench/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).unwrap();
        let scenario = scenario::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
        let comparison = both(&scenario, runs);
        assert_eq!(comparison.sides, ["sim", "virtual"]);
        assert!(comparison.rows.iter().any(|row| row.what == "together"), "{comparison}");
        assert!(comparison.agree, "{comparison}");
    }
}

//! The core in the simulator against the data plane that has it, to the byte, in virtual time.

use lab::{Hosts, Options, Progress};

/// Of the scenarios that are measured between kernels, some that differ in what they show.
#[test]
fn simulated_hosts_do_what_virtual_ones_do() {
    let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together: true };
    for name in ["eight-four", "two-four-five", "lossy-second", "path-dies"] {
        let file = format!("{}/../../scenarios/lab/bench/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).unwrap();
        let scenario = scenario::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
        let sides = [Hosts::Simulated, Hosts::Virtual];
        let comparison = lab::compare(&scenario, sides, 1, &options, &mut Progress::silent()).unwrap();
        assert_eq!(comparison.sides, ["sim", "virtual"]);
        assert!(comparison.rows.iter().any(|row| row.what == "together"), "{comparison}");
        assert!(comparison.agree, "{comparison}");
    }
}

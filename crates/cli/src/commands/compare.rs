//! `sinnet compare`: a scenario between two kinds of hosts.

use std::path::PathBuf;

use lab::{Hosts, Options, Progress};

use super::Failure;
use super::lab::{failure, read};
use crate::output;

/// Run a scenario between hosts of two kinds, and print both side by side with their deviation. The exit status is 0 where
/// goodput agrees within 10 % and, of competing flows, friendliness within 0.15; otherwise 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario file.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// What is compared with what: "real" hosts in namespaces, "virtual" ones with the same data plane, or "sim", its core in the
    /// packet simulator. Only "real" needs rights.
    #[arg(long, value_name = "ONE,OTHER", default_value = "virtual,real", value_parser = sides)]
    between: [Hosts; 2],
    /// Runs of each, with seeds that follow each other; what is compared are the means. Without it there are as many as tell on
    /// which side of its bound each figure is, with a confidence of 95 %, and ten at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Set a key of the scenario: duration=10s, link.a-b.rate=4Mbit/s. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Keep captures, key logs and the daemons' logs in this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.between.contains(&Hosts::Real) {
        // Before anything else, because it must happen while there is one thread.
        lab::become_root().map_err(failure)?;
    }
    let scenario = read(&arguments.scenario, &arguments.assignments)?;
    let options = Options { directory: arguments.out.clone(), ..Options::new().map_err(failure)? };
    let comparison = lab::compare(&scenario, arguments.between, arguments.runs, &options, &mut Progress::on_stderr())
        .map_err(failure)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&comparison).map_err(|error| Failure::failed(error.to_string()))?;
        output::result(&json)?;
    } else {
        output::result(&comparison.to_string())?;
    }
    if comparison.agree { Ok(()) } else { Err(Failure::failed("the two do not agree")) }
}

fn sides(written: &str) -> Result<[Hosts; 2], String> {
    let all = [Hosts::Real, Hosts::Virtual, Hosts::Simulated];
    let side = |word: &str| all.into_iter().find(|hosts| hosts.name() == word.trim());
    let sides = written.split_once(',').and_then(|(one, other)| Some([side(one)?, side(other)?]));
    sides.ok_or_else(|| "two of real, virtual and sim are needed: sim,virtual".to_owned())
}

//! `sinnet lab`: a scenario in real time, or in virtual time with the same data plane.

use std::path::{Path, PathBuf};

use lab::{Hosts, LabError, Options, Progress};
use scenario::{Document, Scenario};

use super::Failure;
use crate::output;

/// Run a scenario in real time: network namespaces, emulated links, real daemons and real programs. Several flows compete,
/// and are measured between the scenario's warm-up and its end.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario file.
    scenario: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Keep captures, key log and the daemons' logs in this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run it in virtual time: the same data plane and links between simulated TCPs, without kernels and programs. Needs no
    /// rights, and gives the same result each time.
    #[arg(long = "virtual")]
    virtual_time: bool,
    /// Only all paths together, and no path alone.
    #[arg(long)]
    together: bool,
    /// Set a key of the scenario: duration=10s, link.a-b.rate=4Mbit/s. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.virtual_time {
        // Before anything else, because it must happen while there is one thread.
        lab::become_root().map_err(failure)?;
    }
    let scenario = read(&arguments.scenario, &arguments.assignments)?;
    scenario.remarks().for_each(output::error);
    let options = Options {
        directory: arguments.out.clone(),
        hosts: if arguments.virtual_time { Hosts::Virtual } else { Hosts::Real },
        together: arguments.together,
        ..Options::new().map_err(failure)?
    };
    let report = lab::run(&scenario, &options, &mut Progress::on_stderr()).map_err(failure)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&report).map_err(|error| Failure::failed(error.to_string()))?;
        return output::result(&json);
    }
    output::result(lab::table(std::slice::from_ref(&report)).trim_end())
}

/// Reads a scenario file, and works in what the command line sets.
pub(super) fn read(path: &Path, assignments: &[String]) -> Result<Scenario, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("the scenario {name} cannot be read: {error}")))?;
    let document = Document::load(&text, &name, &mut scenario::read_beside);
    let scenario = document.and_then(|mut document| {
        assignments.iter().try_for_each(|assignment| document.set(assignment))?;
        document.scenario()
    });
    scenario.map_err(|error| Failure::input(error.to_string()))
}

/// What the person can put right has exit status 2.
pub(super) fn failure(error: LabError) -> Failure {
    match error {
        LabError::Scenario(_) | LabError::MissingProgram { .. } | LabError::Forbidden { .. } => {
            Failure::input(error.to_string())
        }
        _ => Failure::failed(error.to_string()),
    }
}

//! `sinnet compare`: a scenario in virtual and in real time.

use std::path::PathBuf;

use lab::{Options, Progress};

use super::Failure;
use super::lab::{failure, read};
use crate::output;

/// Run a scenario in virtual time and in the laboratory, and print both side by side with their deviation. The exit status is
/// 0 where goodput agrees within 10 % and, of competing flows, friendliness within 0.15; otherwise 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario file.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Runs of each, with seeds that follow each other; what is compared are the means.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Keep captures, key logs and the daemons' logs in this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Before anything else, because it must happen while there is one thread.
    lab::become_root().map_err(failure)?;
    let scenario = read(&arguments.scenario)?;
    let options = Options { directory: arguments.out.clone(), ..Options::new().map_err(failure)? };
    let comparison = lab::compare(&scenario, arguments.runs, &options, &mut Progress::on_stderr()).map_err(failure)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&comparison).map_err(|error| Failure::failed(error.to_string()))?;
        output::result(&json)?;
    } else {
        output::result(&comparison.to_string())?;
    }
    if comparison.agree { Ok(()) } else { Err(Failure::failed("virtual and real time do not agree")) }
}

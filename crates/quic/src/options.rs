//! The command line: a scenario of the laboratory, its download by QUIC.

use std::path::PathBuf;

use lab::{Hosts, Progress, Report};

use crate::{Congestion, Quic};

/// Run a scenario of the laboratory, its main download by QUIC in place of TCP: in virtual time, or between kernels.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The scenario file.
    pub scenario: PathBuf,
    /// The server's congestion control: cubic, newreno or bbr.
    #[arg(long, default_value = "cubic")]
    pub congestion: Congestion,
    /// Between kernels, with this program `sinnet` as their daemons; in virtual time without it.
    #[arg(long, value_name = "SINNET")]
    pub real: Option<PathBuf>,
    /// Only all paths together, and no path alone.
    #[arg(long)]
    pub together: bool,
    /// Keep captures, key log and a trace of the hosts in this directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a key of the scenario: duration=10s, link.a-b.rate=4Mbit/s. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub assignments: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// A sentence about what is wrong with the scenario, or why it does not run.
pub fn run(options: &Options, progress: &mut Progress) -> Result<Report, String> {
    let name = options.scenario.display().to_string();
    let text = std::fs::read_to_string(&options.scenario)
        .map_err(|error| format!("the scenario {name} cannot be read: {error}"))?;
    let mut document =
        scenario::Document::load(&text, &name, &mut scenario::read_beside).map_err(|error| error.to_string())?;
    options
        .assignments
        .iter()
        .try_for_each(|assignment| document.set(assignment))
        .map_err(|error| error.to_string())?;
    let scenario = document.scenario().map_err(|error| error.to_string())?;
    // Programs are started in directories of their own.
    let real = options
        .real
        .as_ref()
        .map(|program| program.canonicalize().map_err(|error| format!("the program {}: {error}", program.display())));
    let real = real.transpose()?;
    let executable = lab::Options::new().map_err(|error| error.to_string())?.executable;
    let guest = Quic { congestion: options.congestion, executable };
    let how = lab::Options {
        directory: options.out.clone(),
        hosts: if real.is_some() { Hosts::Real } else { Hosts::Virtual },
        executable: real.unwrap_or_default(),
        together: options.together,
    };
    lab::run_with(&scenario, &how, Some(&guest), progress).map_err(|error| error.to_string())
}

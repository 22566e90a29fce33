//! `sinnet demo`: the main job, shown.

use std::path::PathBuf;

use lab::{Hosts, LabError, Options, Progress};

use super::{Failure, lab::failure};
use crate::output;

/// Show the main job: one TCP connection over two and over three paths, and over two of which one is cut.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where captures, key logs and summary.json go.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    out: PathBuf,
    /// Run it in virtual time, which is also what happens where the system allows no network namespaces.
    #[arg(long = "virtual")]
    virtual_time: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut progress = Progress::on_stderr();
    // Before anything else, because it must happen while there is one thread.
    let virtual_time = arguments.virtual_time
        || match lab::become_root() {
            Ok(()) => false,
            Err(error @ LabError::Forbidden { .. }) => {
                progress.say(&format!("{error}.\nSo the same scenarios run in virtual time now."));
                true
            }
            Err(error) => return Err(failure(error)),
        };
    let hosts = if virtual_time { Hosts::Virtual } else { Hosts::Real };
    let options = Options { directory: Some(arguments.out.clone()), hosts, ..Options::new().map_err(failure)? };
    let demo = lab::demo(&options, &mut progress).map_err(failure)?;
    output::result(&format!("\n{demo}"))?;
    if demo.passed() { Ok(()) } else { Err(Failure::failed("the demonstration did not show what it should")) }
}

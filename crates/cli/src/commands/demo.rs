//! `sinnet demo`: the main job, shown.

use std::path::PathBuf;

use lab::{Options, Progress};

use super::{Failure, lab::failure};
use crate::output;

/// Show the main job: one TCP connection over two and over three paths, and over two of which one is cut.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where captures, key logs and summary.json go.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Before anything else, because it must happen while there is one thread.
    lab::become_root().map_err(failure)?;
    let options = Options { directory: Some(arguments.out.clone()), ..Options::new().map_err(failure)? };
    let demo = lab::demo(&options, &mut Progress::on_stderr()).map_err(failure)?;
    output::result(&format!("\n{demo}"))?;
    if demo.passed() { Ok(()) } else { Err(Failure::failed("the demonstration did not show what it should")) }
}

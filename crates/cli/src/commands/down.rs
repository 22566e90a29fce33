//! `sinnet down`: ends a running daemon.

use std::path::PathBuf;

use super::Failure;

/// End the running Sinnet; it closes its associations first.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The control socket of the one that is meant.
    #[arg(long, value_name = "PATH", default_value = daemon::control::DEFAULT_PATH)]
    control: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    daemon::control::down(&arguments.control).map_err(|error| Failure::failed(error.to_string()))
}

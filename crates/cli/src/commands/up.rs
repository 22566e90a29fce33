//! `sinnet up`: the daemon, in the foreground.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use daemon::{UpError, UpOptions};
use tracing_subscriber::EnvFilter;

use super::Failure;
use crate::output;

/// Run until Ctrl-C, SIGTERM or `sinnet down`. SINNET_LOG sets what is told, for example to `debug`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// The control socket, instead of the configuration's.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Append the keys of every ESP security association to FILE, in the format that Wireshark loads (esp_sa). Whoever can
    /// read the file can read the traffic.
    #[arg(long, value_name = "FILE")]
    esp_keylog: Option<PathBuf>,
    /// Only read the configuration and the key, and say whether they are right.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.check {
        let summary = daemon::check(&arguments.config).map_err(failure)?;
        return output::result(&format!("{} is right: {summary}", arguments.config.display()));
    }
    let filter = EnvFilter::try_from_env("SINNET_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let options = UpOptions { control: arguments.control.clone(), esp_keylog: arguments.esp_keylog.clone() };
    daemon::up(&arguments.config, &options).map_err(failure)
}

fn failure(error: UpError) -> Failure {
    match error {
        UpError::Configuration(_) | UpError::Unreadable { .. } => Failure::input(error.to_string()),
        UpError::Setup(_) | UpError::Loop(_) => Failure::failed(error.to_string()),
    }
}

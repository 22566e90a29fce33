//! `sinnet relay`: a server by which hosts behind NATs meet.

use std::path::PathBuf;

use daemon::UpOptions;

use super::Failure;
use super::up;

/// Be a rendezvous server and relay (RFC 8004, RFC 9028) for the peers of a configuration, and nothing else: it has no device
/// for programs, needs no privileges, and carries no data unless `data` of [rendezvous] says how much. Run until Ctrl-C, SIGTERM or `sinnet down`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration: `identity` and the [[peer]] that may register, or those in `clients` of [rendezvous].
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// The control socket, instead of the configuration's.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    up::log();
    let options = UpOptions { control: arguments.control.clone(), relay_only: true, ..UpOptions::default() };
    daemon::up(&arguments.config, &options).map_err(up::failure)
}

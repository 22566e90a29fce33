//! `sinnet clean`: takes back what a daemon leaves on purpose.

use super::Failure;
use crate::output;

/// Remove the packet filter and the unreachable routes that stay after a daemon, so that nothing goes to identities in clear, and
/// put /etc/resolv.conf back where a daemon had to leave its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Wait until the daemon that has started this has gone, and put /etc/resolv.conf back.
    #[arg(long, hide = true)]
    after_daemon: bool,
}

pub(crate) fn run(Arguments { after_daemon }: &Arguments) -> Result<(), Failure> {
    if *after_daemon {
        return daemon::host_resolver::guard().map_err(|error| Failure::failed(error.to_string()));
    }
    output::result(&daemon::clean().map_err(Failure::failed)?)
}

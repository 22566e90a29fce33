//! `sinnet hosts`: names for programs where no resolver asks Sinnet.

use std::path::PathBuf;

use super::{Failure, up};
use crate::output;

/// Print the HITs, LSIs and names of a configuration as lines for /etc/hosts. No daemon has to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The configuration.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let hosts = daemon::hosts(&arguments.config).map_err(up::failure)?;
    let line = |(address, name): (std::net::IpAddr, String)| match name.as_str() {
        // A host without a name is told all the same: peers want its HIT.
        "" => format!("# {address} is this host\n"),
        name => format!("{address} {name}\n"),
    };
    output::result(hosts.into_iter().map(line).collect::<String>().trim_end())
}

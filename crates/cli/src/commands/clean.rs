//! `sinnet clean`: takes back what a daemon leaves on purpose.

use super::Failure;
use crate::output;

/// Remove the packet filter and the unreachable routes that stay after a daemon, so that nothing goes to identities in clear.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(Arguments {}: &Arguments) -> Result<(), Failure> {
    output::result(&daemon::clean().map_err(Failure::failed)?)
}

//! `sinnet man` and `sinnet completions`: what belongs to an installation, made from the commands themselves.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;

use super::Failure;
use crate::output;

/// Write the manual pages, one for each command, to a directory such as /usr/local/share/man/man1.
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The directory; it is made if need be.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let written =
        fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(crate::Arguments::command(), directory));
    written.map_err(|error| Failure::input(format!("writing manual pages to {}: {error}", directory.display())))
}

pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "sinnet", &mut text);
    output::result(String::from_utf8_lossy(&text).trim_end())
}

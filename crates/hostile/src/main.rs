//! `tools/hostile`: the command line of the attacks.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match hostile::run(&hostile::Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Where even that fails there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "hostile: {error}");
            ExitCode::from(2)
        }
    }
}

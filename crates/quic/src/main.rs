//! `cargo run -p sinnet-quic -- lab FILE`: QUIC in the place of TCP; prints the report as JSON. `friendliness`: random networks.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use lab::Progress;

/// Downloads by QUIC, for measurements.
#[derive(Debug, clap::Parser)]
#[command(name = "quic")]
enum Command {
    Lab(quic::Options),
    Friendliness(quic::Friendliness),
    Serve(quic::Serve),
    Fetch(quic::Fetch),
}

impl Command {
    /// What it prints.
    fn run(&self) -> Result<String, String> {
        match self {
            Self::Lab(options) => {
                if options.real.is_some() {
                    lab::become_root().map_err(|error| error.to_string())?;
                }
                let report = quic::run(options, &mut Progress::on_stderr())?;
                serde_json::to_string_pretty(&report).map_err(|error| error.to_string())
            }
            Self::Friendliness(options) => options.run(),
            Self::Serve(options) => options.run().map(|()| String::new()),
            Self::Fetch(options) => options.run().map(|times| format!("{:.6} {:.6}", times.first, times.last)),
        }
    }
}

fn main() -> ExitCode {
    let told = Command::parse().run();
    match told.and_then(|told| writeln!(std::io::stdout().lock(), "{told}").map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even that fails there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "quic: {error}");
            ExitCode::FAILURE
        }
    }
}

//! `cargo run -p sinnet-quic -- FILE`: QUIC in the place of TCP; prints the report as JSON.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use lab::Progress;

fn main() -> ExitCode {
    let report = quic::run(&quic::Options::parse(), &mut Progress::on_stderr());
    let json = report.and_then(|report| serde_json::to_string_pretty(&report).map_err(|error| error.to_string()));
    match json.and_then(|json| writeln!(std::io::stdout().lock(), "{json}").map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even that fails there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "quic: {error}");
            ExitCode::FAILURE
        }
    }
}

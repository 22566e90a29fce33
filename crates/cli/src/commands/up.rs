//! `sinnet up`: the daemon, in the foreground.

use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use daemon::{UpError, UpOptions};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing_subscriber::EnvFilter;

use super::Failure;

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
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    log();
    let options = UpOptions {
        control: arguments.control.clone(),
        esp_keylog: arguments.esp_keylog.clone(),
        ..UpOptions::default()
    };
    daemon::up(&arguments.config, &options).map_err(failure)
}

/// The log of a daemon.
pub(super) fn log() {
    let filter = EnvFilter::try_from_env("SINNET_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(|| Patient)
        // They would go to the standard error, which may be what failed, and end the program.
        .log_internal_errors(false)
        .init();
}

/// The standard error for a program that is not to wait for its readers, nor to end with them: what cannot be written at once
/// is lost.
struct Patient;

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stderr = io::stderr();
        let mut fds = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
        let ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        // A pipe with room has room for a line (PIPE_BUF, pipe(7)).
        if ready {
            // Where that fails nobody is left to be told.
            let _ = stderr.lock().write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn failure(error: UpError) -> Failure {
    match error {
        UpError::Configuration(_) | UpError::Unreadable { .. } => Failure::input(error.to_string()),
        UpError::Setup(_) | UpError::Loop(_) => Failure::failed(error.to_string()),
    }
}

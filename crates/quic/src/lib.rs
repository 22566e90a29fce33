//! QUIC (RFC 9000) as programs have it: downloads by quinn, for measurements in the laboratory. No part of what ships.
//!
//! quinn's state machine does no I/O and takes the time as an argument, so [`Quic`] runs in virtual time, too, with real
//! handshakes and encrypted packets. Between kernels [`Serve`] and [`Fetch`] are programs with quinn's own sockets.

mod conversation;
mod friendliness;
mod options;
mod programs;
mod tls;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use lab::{Conversation, Guest, Program, Served};

pub use friendliness::Friendliness;
pub use options::{Options, run};
pub use programs::{Fetch, Serve, Times};

/// Congestion controls that quinn has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 9438), which it has unless configured otherwise.
    #[default]
    Cubic,
    /// NewReno (RFC 9002).
    NewReno,
    /// BBR version 1; quinn calls it experimental.
    Bbr,
}

const NAMES: [(&str, Congestion); 3] =
    [("cubic", Congestion::Cubic), ("newreno", Congestion::NewReno), ("bbr", Congestion::Bbr)];

impl FromStr for Congestion {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, congestion)| *congestion);
        known.ok_or_else(|| format!("there is no \"{name}\", but cubic, newreno and bbr"))
    }
}

/// A download by QUIC, as quinn is configured by default but for its congestion control.
#[derive(Clone, Debug, Default)]
pub struct Quic {
    /// The server's.
    pub congestion: Congestion,
    /// The program that has [`Serve`] and [`Fetch`] as `serve` and `fetch`, to be run between kernels.
    pub executable: PathBuf,
}

impl Quic {
    fn name(&self) -> &'static str {
        NAMES.iter().find(|(_, congestion)| *congestion == self.congestion).map_or("", |(name, _)| name)
    }

    fn program(&self, what: &str, port: u16, certificate: &Path) -> Program {
        let certificate = certificate.to_string_lossy();
        let options = [what, "--congestion", self.name(), "--port", &port.to_string(), "--certificate", &certificate];
        Program::new(self.executable.to_string_lossy()).args(options)
    }
}

impl Guest for Quic {
    fn congestion(&self) -> String {
        format!("quic-{}", self.name())
    }

    fn download(&self, ends: [SocketAddr; 2], bytes: u64, seed: u64) -> Result<Box<dyn Conversation>, String> {
        Ok(Box::new(conversation::Download::new(self.congestion, ends, bytes, seed)?))
    }

    fn server(&self, file: &Path, port: u16, ready: &Path) -> Program {
        self.program("serve", port, ready).args([file.to_string_lossy()])
    }

    fn client(&self, from: &Served<'_>, copy: &Path, patience: Duration) -> Program {
        let seconds = patience.as_secs().to_string();
        self.program("fetch", from.port, from.ready).args(["--patience", &seconds, from.host, &copy.to_string_lossy()])
    }
}

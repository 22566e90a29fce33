//! QUIC (RFC 9000) as programs have it: downloads by quinn, for measurements in the laboratory. No part of what ships.
//!
//! quinn's state machine does no I/O and takes the time as an argument, so [`Quic`] runs in virtual time, too, with real
//! handshakes and encrypted packets.

mod conversation;
mod options;
mod tls;

use std::net::SocketAddr;
use std::str::FromStr;

use lab::{Conversation, Guest};

pub use options::{Options, run};

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
#[derive(Clone, Copy, Debug, Default)]
pub struct Quic {
    /// The server's.
    pub congestion: Congestion,
}

impl Guest for Quic {
    fn congestion(&self) -> String {
        let name = NAMES.iter().find(|(_, congestion)| *congestion == self.congestion).map_or("", |(name, _)| name);
        format!("quic-{name}")
    }

    fn download(&self, ends: [SocketAddr; 2], bytes: u64, seed: u64) -> Result<Box<dyn Conversation>, String> {
        Ok(Box::new(conversation::Download::new(self.congestion, ends, bytes, seed)?))
    }
}

//! Where packets go.

use std::fmt;
use std::net::SocketAddr;

/// The UDP port of HIP and of the ESP packets that share it (RFC 5770 §4.1).
pub const UDP_PORT: u16 = 10500;

/// The two locators of a path, as seen from this host. The port says how packets are carried: 0 means natively, IP
/// protocols 139 (HIP) and 50 (ESP); any other means inside UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// This host's locator.
    pub local: SocketAddr,
    /// The peer's locator.
    pub remote: SocketAddr,
}

impl Route {
    /// True where packets are carried inside UDP.
    pub fn in_udp(&self) -> bool {
        self.remote.port() != 0
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.local.ip(), self.remote.ip())
    }
}

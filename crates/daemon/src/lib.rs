//! The Sinnet daemon: TUN, sockets, timers, names, control. It moves packets between the kernel and [`wedge::Wedge`] and
//! decides nothing about a protocol.
//!
//! It starts with the privileges to create a TUN device and to bind sockets to devices (root, or `CAP_NET_ADMIN` and
//! `CAP_NET_RAW`, and `CAP_NET_BIND_SERVICE` for names), and gives them up before the first packet, with everything else that
//! its loop does not need ([`privileges`]).
//!
//! The configuration can be read without running anything; errors point at the line:
//!
//! ```
//! let text = "identity = \"a.pem\"\n[[peer]]\nname = \"b.hip\"\nhit = \"2001:20::1\"\nlocators = [\"192.0.2.7\"]\n";
//! let config = daemon::config::parse(text, "sinnet.toml").unwrap();
//! assert_eq!(config.peers[0].name, "b.hip");
//! let error = daemon::config::parse(&text.replace("name", "nmae"), "sinnet.toml").unwrap_err();
//! assert_eq!((error.line(), error.help()), (3, Some("did you mean `name`?")));
//! ```

pub mod config;
pub mod confinement;
pub mod control;
pub mod counters;
pub mod device;
pub mod dns;
pub mod firewall;
pub mod host_resolver;
pub mod keylog;
pub mod keys;
pub mod learned;
pub mod links;
pub mod metrics;
pub mod names;
pub mod netlink;
mod network;
mod opportunistic;
pub mod privileges;
mod reload;
mod reverse_path;
mod runtime;
mod senders;
mod servers;
pub mod sockets;
mod start;
pub mod status;
pub mod time;
mod told;
mod uplinks;
mod visitors;
mod watch;

pub use network::clean;
pub use start::{Checked, UpError, UpOptions, check, hosts, up};

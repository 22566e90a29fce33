//! Scenario files: one format, one parser, for virtual and for real time.
//!
//! ```
//! let scenario = scenario::parse(
//!     r#"
//!     name = "one flow"
//!     duration = "20s"
//!     [[link]]
//!     between = ["s", "d"]
//!     rate = "8Mbit/s"
//!     delay = "30ms"
//!     queue = "1.5bdp"
//!     [[flow]]
//!     from = "s"
//!     to = "d"
//!     protocol = "tcp"
//!     packet_size = 1250
//!     "#,
//!     "one.toml",
//! )
//! .unwrap();
//! // 8 Mbit/s over 60 ms are 48 packets of 1250 bytes.
//! assert_eq!(scenario.directed()[0].config.queue, link::QueueConfig::Packets(72));
//! ```
//!
//! # The format
//!
//! At the top: `name`, `duration`, `warm_up` (not measured), `seed`, `extends` (a base file), `[sweep]`.
//!
//! `[[link]]`: `between = ["a", "b"]` for both directions alike, or `from` and `to` for one; `name`; `rate`
//! ("8Mbit/s", absent or "unlimited": infinitely fast); `delay`; `queue`: "50p", "64kB", "100ms", "1.5bdp",
//! "unlimited" (also when absent) or a table with `kind = "red"` or `"codel"`; `loss`: 0.01, "1%", or a table
//! `to_bad`, `to_good`, `loss_good`, `loss_bad` (Gilbert-Elliott, per packet); `[[link.change]]` with `at` and any of
//! `rate`, `delay`, `loss`, `down = true`, `up = true`. Nodes are what links name. There is at most one link from one
//! node to another, since paths name nodes; two cables between two hosts are two routers.
//!
//! `[[flow]]`: `from`, `to`, `protocol`, `name`, `congestion`, `profile`, `scheduler`, `count`, `paths` (absent: the
//! shortest), `packet_size`, `receiver_window`, `amount`, `start` and `stop` (a time, or `["0s", "1s"]` for a random
//! one), `start_with` (the name of a flow, to start when that one does); for TCP itself `delayed_ack` (false, true or a time), `initial_window`, `ecn`, `timestamps`, `undo` ("never",
//! "eifel", "dsack"), `min_rto`, `send_jitter`, `header_size` (bytes of a packet that are not data); for mHIP `inside` ("tcp"; in the
//! lab also "udp", at the flow's `rate`, and "ping"), and in the simulator
//! `generation` (1, 2, 3), `growth` ("per_path", "coupled", "lia", "per_bottleneck"), `dupthresh`, `addr` (false, true or a part of the
//! least round-trip time), `receive_buffer` ("453p"), `marking`, `probe_interval`; for MPTCP `opportunistic`; for SCTP `ordered`, `nr_sack`, `send_buffer`,
//! `rtx` ("rtx_same", "rtx_cwnd", "rtx_ssthresh", "rtx_fpf"), `path_max_retrans`, `heartbeat`, `max_burst`, and for CMT-SCTP
//! `sfr`, `cuc` ("none", "v1", "v2"), `dac`, `strict_windows`, `splitting` ("none", "sender", "receiver", "both"); for UDP `rate` and `on_off = { on, off, times = "fixed" or "exponential" }`.
//!
//! `[[node]]`: `name` and `locators`, one for all links of the node or one for each: for `sinnet fairness`, which gives nodes
//! locators of its own where a file does not.
//!
//! `[sweep]`: keys like `"link.a-r1.rate"`, `"flow.*.congestion"` or `seed`, each with a list of values.

mod canonical;
mod document;
mod host;
mod mhip;
mod mptcp;
mod read;
mod reader;
mod scenario;
mod sctp;
mod spec;
mod tcp;
mod tree;
mod units;

use diagnostic::Diagnostic;

pub use document::{Document, Point, ReadBase};
pub use host::HostSpec;
pub use mhip::{GrowthSpec, Inside, MhipSpec};
pub use mptcp::MptcpSpec;
pub use scenario::{Directed, Scenario};
pub use sctp::{CucSpec, RtxSpec, SctpSpec};
pub use spec::{Amount, CoDelSpec, FlowSpec, Limit, LinkSpec, Moment, NodeIndex, OnOff, Protocol, QueueSpec, RedSpec};

pub use tcp::{TcpSpec, UndoSpec};

/// Reads a file that is one scenario by itself.
///
/// # Errors
/// What is wrong first, with line, column and what would be right. `extends` needs [`Document::load`], a `[sweep]`
/// [`Document::points`].
pub fn parse(text: &str, name: &str) -> Result<Scenario, Diagnostic> {
    Document::parse(text, name)?.scenario()
}

/// A time as files write it, such as "30ms"; `None` for any other text.
pub fn time(text: &str) -> Option<clock::Duration> {
    units::time(text).ok()
}

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
//! [`schema`] has a row for each key: its type, default, meaning, and the engines that honour it. `docs/scenarios.md` is made of it.

mod canonical;
mod document;
mod files;
mod host;
mod jitter;
mod loss;
mod mhip;
mod mptcp;
mod queue;
mod read;
mod scenario;
pub mod schema;
mod sctp;
mod sinnet;
mod spec;
mod tcp;
mod trace;

use text::Diagnostic;

pub use document::{Document, Point, ReadBase, read_beside};
pub use host::HostSpec;
pub use mhip::{DuplicatesSpec, GrowthSpec, MarkingSpec, MhipSpec};
pub use mptcp::MptcpSpec;
pub use scenario::{Directed, Scenario};
pub use sctp::{CucSpec, RtxSpec, SctpSpec};
pub use sinnet::{Association, Inside, Rates, SinnetSpec};
pub use spec::{Amount, FlowSpec, Limit, LinkSpec, Moment, NodeIndex, OnOff, Protocol, QueueSpec};

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
pub fn time(written: &str) -> Option<clock::Duration> {
    text::units::time(written).ok()
}

//! What one association sends and receives over several paths. It knows no bytes: what a packet carries is a parameter, what
//! has to be known of it is its [`Meta`].
//!
//! - [`SendBuffer`]: what no path takes yet, a queue for each flow.
//! - [`Windows`], [`Pacer`]: how much a path may carry, and how fast.
//! - [`SentPackets`]: what a path has sent, and what a [`Report`] of it, or [`Snooping`] in its place, tells.
//! - [`Received`]: what a path has received, and when to report it.
//! - [`Numbers`]: the order of a flow's packets.

mod order;
mod pacing;
mod packet;
mod received;
mod report;
mod send_buffer;
mod sent_packets;
mod snooping;
mod windows;

pub use order::{HEADER as NUMBER, Number, Numbers};
pub use pacing::Pacer;
pub use packet::{Class, Ecn, FlowId, Meta, QueuedPacket, Segment};
pub use received::{Gap, Received};
pub use report::{RANGES, Report};
pub use send_buffer::{Limits, SendBuffer};
pub use sent_packets::{AckOutcome, Counts, InvalidReport, Kind, SentPackets};
pub use snooping::{Acknowledgment, Delivered, Place, Snooping};
pub use windows::{Slot, Windows};

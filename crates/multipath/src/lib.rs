//! The sender and the receiver of one association over several paths. They know no bytes: what a packet carries is
//! a parameter, what has to be known of it is its [`Meta`]. Time is an argument, and there is no randomness.
//!
//! [`Sender`] takes packets, says which of them leaves now and on which path ([`Dispatch`]), is told under which number it has,
//! and hears from [`Report`]s, or from the acknowledgments of the TCP inside, what became of it. What its owner knows of a path
//! is a [`PathState`]. The receiver's side is a [`Reporter`], which says what has come on each path, and [`Resequencing`], which
//! puts the packets of each flow in order.

mod feedback;
mod liveness;
mod order;
mod pacing;
mod packet;
mod path;
mod received;
mod report;
mod reporter;
mod resequencing;
mod send_buffer;
mod sender;
mod sent_packets;
mod snooping;
mod transmit;
mod windows;

pub use liveness::PathEvent;
pub use order::{HEADER as NUMBER, Number};
pub use packet::{Class, Ecn, FlowId, Meta, QueuedPacket, Segment};
pub use path::{Overhead, PathState, PathStatistics};
pub use report::{RANGES, Report};
pub use reporter::{ReceivedPacket, Reporter, ReportingPath};
pub use resequencing::Resequencing;
pub use sender::{BufferStatus, Dispatch, Enqueued, Feedback, Memory, Reordering, Sender, SenderCounts};
pub use sent_packets::{Counts, InvalidReport};
pub use snooping::Acknowledgment;
pub use transmit::UNKNOWN_RATE;

//! The sender and the receiver of one association over several paths. They know no bytes: what a packet carries is
//! a parameter, what has to be known of it is its [`Meta`]. Time is an argument, and there is no randomness.
//!
//! [`Sender`] takes packets, says which of them leaves now and on which path ([`Dispatch`]), learns the number of each,
//! and hears from [`Report`]s, or from the acknowledgments of the TCP inside, what became of it. What its owner knows of a path
//! is a [`PathState`]. The receiver's side is a [`Reporter`], which says what has come on each path, and [`Resequencing`], which
//! puts the packets of each flow in order. [`Heartbeat`] tells whether a path is alive, [`PathMtu`] which packets are too large for it.
//!
//! ```
//! use clock::{Duration, Instant};
//! use multipath::{Class, Ecn, Enqueued, Feedback, Meta, PathState, Report, Sender, UNKNOWN_RATE};
//! use scheduler::PathId;
//!
//! let now = Instant::ZERO + Duration::from_secs(1);
//! let mut sender = Sender::new(Feedback::Reports, "mhip".parse()?);
//! let state =
//!     PathState { is_verified: true, is_alive: true, allowance: u64::MAX, mtu: 1500, ..PathState::default() };
//! sender.add_path(now, PathId(1), state, UNKNOWN_RATE);
//!
//! let meta = Meta { flow: None, len: 1200, is_urgent: false, class: Class::Datagram, ecn: Ecn::NotEct, is_short: false };
//! assert_eq!(sender.enqueue(now, meta, "payload"), Enqueued::Taken);
//! let dispatch = sender.poll_transmit(now).unwrap();
//! assert_eq!((dispatch.path, dispatch.packet.payload), (PathId(1), "payload"));
//!
//! // It left as packet 1 of its path, and arrived.
//! sender.on_sent(now, dispatch, 1);
//! let report = Report { highest: 1, packets: 1, ranges: vec![(1, 1)], ..Report::default() };
//! sender.on_report(now + Duration::from_millis(40), PathId(1), true, &report)?;
//! assert_eq!(sender.srtt(PathId(1)), Some(Duration::from_millis(40)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bunches;
mod copies;
mod equal;
mod feedback;
mod heartbeat;
mod limits;
mod liveness;
mod order;
mod overtaking;
mod pacing;
mod packet;
mod path;
mod path_mtu;
mod policy;
mod reach;
mod received;
mod release;
mod report;
mod reporter;
mod resequencing;
mod scheduling;
mod send_buffer;
mod sender;
mod sent_packets;
mod snooping;
mod status;
mod stretch;
mod transmit;
mod usual;
mod windows;

pub use bunches::Bunches;
pub use copies::{Copies, CopyNumber};
pub use heartbeat::{Change, Heartbeat};
pub use liveness::PathEvent;
pub use order::{COPY_HEADER as COPY_NUMBER, HEADER as NUMBER, Number};
pub use packet::{Class, FlowId, Meta, QueuedPacket, Segment};
pub use path::{Overhead, PathState, PathStatistics};
pub use path_mtu::{
    BASE_PLPMTU, GRANULARITY, MAX_PROBES, MIN_PLPMTU, MtuCounts, MtuPhase, PathMtu, Probe, RAISE_AFTER,
};
pub use policy::{FlowPolicy, PolicyId, Priority};
pub use queue::Ecn;
pub use report::{RANGES, Report, message_len};
pub use reporter::{Asks, ReceivedPacket, Reporter, ReportingPath};
pub use resequencing::Resequencing;
pub use sender::{Dispatch, Enqueued, Feedback, Memory, Reordering, Sender, SenderCounts};
pub use sent_packets::{Counts, InvalidReport};
pub use snooping::Acknowledgment;
pub use status::BufferStatus;
pub use transmit::UNKNOWN_RATE;
pub use usual::{
    FIRST_WINDOW, HEARTBEAT, LARGEST_URGENT_ICMP, MEMORY, REST, ROUNDS, SHARE, SKIPPED, clamped_window, inner_room,
    left_out, usual_rule,
};

//! Multipath TCP (RFC 8684): one connection over several subflows, each with its own sequence of packets, its own loss
//! recovery and timer; one sequence of data over all of them, one receiver's window, coupled congestion control.
//!
//! - A subflow is what a TCP connection is here, with the same code: with one path, MPTCP is TCP, packet for packet.
//! - Each data packet carries its place in the data (the data sequence mapping, §3.3.1), each acknowledgment the first
//!   place that is missing (the data acknowledgment, §3.3.2). The receiver's window counts from there (§3.3.5).
//! - New data go where a scheduler says. A subflow repairs its losses itself.
//! - A subflow whose timer runs out may have failed: what it owes is sent on the others too (§3.3.6), and it gets new data
//!   when it has answered again.
//! - As an option, when the receiver's window keeps a path idle, the packet that holds it back is sent again there, and the
//!   path that it was on pays with half its window (C. Raiciu and others, *How hard can it be? Designing and implementing a
//!   deployable Multipath TCP*, NSDI 2012, §4.2).

mod config;
mod data;
mod receiver;
mod sender;

pub use config::MptcpConfig;
pub use receiver::MptcpReceiver;
pub use sender::MptcpSender;

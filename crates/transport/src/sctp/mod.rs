//! SCTP (RFC 9260) over one path, over several of which one is in use, or over several at once: CMT-SCTP, with the rules
//! that J. R. Iyengar, P. D. Amer and R. Stewart found (*Concurrent multipath transfer using SCTP multihoming over
//! independent end-to-end paths*, IEEE/ACM ToN 14(5), 2006) and what grew around them since: SFR, CUC, DAC, NR-SACK,
//! divided buffers, policies for retransmissions, coupled congestion control.
//!
//! A packet carries one DATA chunk; its position is the TSN, from 1 on. Position 0 is the INIT, and a HEARTBEAT on any
//! path: they confirm a path (RFC 9260 §5.4) before it carries data. The first DATA travel with the COOKIE ECHO, so the
//! association costs one round trip. Receivers never take back what they have acknowledged.

mod chunks;
mod config;
mod receiver;
mod report;
mod rules;
mod sender;

pub use config::{CwndUpdate, Retransmission, SctpConfig, Splitting};
pub use receiver::SctpReceiver;
pub(crate) use report::Reports;
pub use report::{MAX_GAPS, Report};
pub use rules::{Buffers, News, missing_reports};
pub use sender::SctpSender;

//! What a report brings, or why it is not taken.

use crate::packet::QueuedPacket;
use clock::Duration;

/// What a report brought.
#[derive(Debug)]
pub(crate) struct AckOutcome<P> {
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// In flight before.
    pub flight: u64,
    /// The most that was in flight lately, where the caller knows.
    pub peak: u64,
    /// What part of a round trip it came early, on a shorter path.
    pub early: f64,
    /// All before this number is acknowledged or lost.
    pub upto: u64,
    /// A round-trip time.
    pub rtt: Option<Duration>,
    /// Packets lost.
    pub lost: u32,
    /// Of them, what may be sent again.
    pub retransmit: Vec<QueuedPacket<P>>,
    /// Packets that had been taken for lost.
    pub spurious: u32,
    /// Packets behind which others had arrived before.
    pub reordered: u32,
    /// New packets with CE.
    pub ce: u32,
}

impl<P> Default for AckOutcome<P> {
    fn default() -> Self {
        Self {
            acked: 0,
            packets: 0,
            flight: 0,
            peak: 0,
            early: 0.0,
            upto: 0,
            rtt: None,
            lost: 0,
            retransmit: Vec::new(),
            spurious: 0,
            reordered: 0,
            ce: 0,
        }
    }
}

/// Why a report is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReport {
    /// It says what cannot be.
    Impossible,
    /// It acknowledges a number under which nothing was sent: who says that invents (RFC 9000 §21.4).
    Invented,
}

impl std::fmt::Display for InvalidReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Impossible => "the report says what cannot be",
            Self::Invented => "the report acknowledges a packet that was never sent",
        })
    }
}

impl std::error::Error for InvalidReport {}

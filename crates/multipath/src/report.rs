//! What a receiver tells the sender about one path. Its bytes are the business of whoever carries it.

use clock::Duration;

/// Most ranges in a report; older ones are told no more.
pub const RANGES: usize = 24;

/// What is known of one path by its receiver. Packets and bytes count since the path began and wrap around.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The highest number received; the first is 1.
    pub highest: u32,
    /// Since it arrived.
    pub delay: Duration,
    /// When it arrived by the receiver's clock, in microseconds that wrap around.
    pub arrival: u32,
    /// Packets received.
    pub packets: u32,
    /// Bytes received, outer headers included.
    pub bytes: u32,
    /// Packets with Congestion Experienced (RFC 3168).
    pub ce: u32,
    /// The path's round-trip time as the receiver measures it, zero where it does not know.
    pub rtt: Duration,
    /// Received numbers, first and last, from the highest down, not touching each other.
    pub ranges: Vec<(u32, u32)>,
}

/// Bytes of the message with these reports inside ESP: its head, of each report its numbers with the first range, and four for each
/// further range. The format is the business of whoever carries it.
pub fn message_len<'a>(reports: impl IntoIterator<Item = &'a Report>) -> usize {
    let record = |report: &Report| 36 + 4 * report.ranges.len().saturating_sub(1);
    4 + reports.into_iter().map(record).sum::<usize>()
}

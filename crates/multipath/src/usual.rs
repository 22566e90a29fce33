//! What every host of Sinnet has unless its configuration says otherwise, whether its packets have bytes or are simulated.

use crate::path::Overhead;
use crate::sender::Memory;
use clock::Duration;
use congestion::Rule;

/// Packets that programs' TCPs may send at first, of which the routes to peers tell: no less than most paths have use for.
/// What may wait and what may be in flight is said by [`clamped_window`]; a TCP that has to find it out itself grows slowly
/// where packets of a longer path make its round trip longer, for it takes that for a queue (HyStart, RFC 9406 §4.2).
pub const FIRST_WINDOW: u32 = 2048;
/// The least window that a TCP hears of, in bytes: some packets, so that acknowledgments, which can open the window, go on.
pub(crate) const LEAST_WINDOW: i64 = 6_000;
/// What a TCP has waiting, in bytes on the wire, of which the window is the least: that, headers, and what it had sent before it heard.
pub(crate) const LEAST_WAITING: u64 = 2 * LEAST_WINDOW as u64;
/// One in so many numbers of a path is not used, at random, where the peer tells which have arrived: who acknowledges one of
/// these invents acknowledgments (RFC 9000 §21.4).
pub const SKIPPED: u32 = 256;
/// Larger packets of ICMP, in bytes behind the inner IP header, wait with the data.
pub const LARGEST_URGENT_ICMP: usize = 256;
/// A timer that is due again when it was served is served so many times at once ...
pub const ROUNDS: usize = 4;
/// ... and then again after this: nothing may keep a host busy with itself.
pub const REST: Duration = Duration::from_millis(1);
/// Bytes of a heartbeat inside ESP: an echo request of ICMPv6 (RFC 4443 §4.1), with what tells whose it is.
pub const HEARTBEAT: usize = 8 + 26;
/// The bytes that a host holds for all its peers together: 256 MiB.
pub const MEMORY: usize = 256 << 20;
/// Of all memory the part that one peer may have.
pub const SHARE: usize = 4;

/// The rule by which the windows of paths grow and shrink.
pub fn usual_rule() -> Rule {
    Rule::Sinnet(congestion::Sinnet::default())
}

/// The window in bytes that a TCP on this host is to hear of, of which so much is outstanding and which may have so much more
/// waiting, or less if that is negative: see [`Sender::budget`](crate::Sender::budget).
pub fn clamped_window(outstanding: u32, budget: i64) -> u64 {
    (i64::from(outstanding) + budget).max(LEAST_WINDOW).cast_unsigned()
}

impl Memory {
    /// What a sender may hold where its peer may have so many bytes in all: half of these are for what has come.
    pub fn of_share(share: usize) -> Self {
        Self { send_buffer: share / 4, in_flight: share / 4 }
    }
}

impl Overhead {
    /// IPv4, UDP, and ESP with AES-GCM and implicit IVs (RFC 768, RFC 3948, RFC 4303 §2, RFC 4106, RFC 8750).
    pub const AES_GCM_IN_UDP: Self = Self { fixed: 20 + 8 + 8 + 16, trailer: 2, alignment: 4 };
    /// The same with AES-CBC and HMAC-SHA-256 (RFC 3602 §3, RFC 4868 §2.6), the suite that takes most.
    pub const AES_CBC_IN_UDP: Self = Self { fixed: 20 + 8 + 8 + 16 + 16, trailer: 2, alignment: 16 };

    /// The most bytes that fit a whole packet of so many.
    pub fn room(self, mtu: usize) -> usize {
        let alignment = self.alignment.max(1);
        (mtu.saturating_sub(self.fixed) / alignment * alignment).saturating_sub(self.trailer)
    }
}

/// Bytes that a header of so many takes less where the peer has given the flow a label: that of TCP with timestamps or without
/// options, and that of UDP. TCP's takes still less while what it acknowledges `rests`, as it does where all data go the other way.
pub fn left_out(header: usize, rests: bool) -> usize {
    let acknowledges = if rests { 6 } else { 0 };
    match header {
        32 => 17 + acknowledges,
        20 => 9 + acknowledges,
        8 => 8,
        _ => 0,
    }
}

/// What follows the inner IP header of the largest packets of programs, in bytes, where the outer ones may have `mtu`.
pub fn inner_room(mtu: u16) -> usize {
    Overhead::AES_GCM_IN_UDP.room(mtu.into()).saturating_sub(crate::order::HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_room_for_fits_and_no_byte_more_does() {
        for overhead in [Overhead::AES_GCM_IN_UDP, Overhead::AES_CBC_IN_UDP] {
            for mtu in 200..1600 {
                let room = overhead.room(mtu);
                assert!(overhead.wire(room) <= mtu && overhead.wire(room + 1) > mtu, "{overhead:?} {mtu}");
            }
        }
    }
}

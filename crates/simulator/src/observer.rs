//! Looking on: captures and traces.

use clock::Instant;
use link::DropReason;
use transport::Packet;

/// Is shown every packet at every link. The empty observer `()` costs nothing.
pub trait Observer {
    /// `packet` was offered to `link` (its index in the result).
    #[inline]
    fn offered(&mut self, _now: Instant, _link: u32, _packet: &Packet) {}

    /// `packet` came out of `link` at the far end; an acknowledgment with these selective blocks.
    #[inline]
    fn delivered(&mut self, _now: Instant, _link: u32, _packet: &Packet, _blocks: &[(u32, u32)]) {}

    /// `packet` was dropped by `link`.
    #[inline]
    fn dropped(&mut self, _now: Instant, _link: u32, _packet: &Packet, _reason: DropReason) {}

    /// Called every few milliseconds of virtual time; false ends the run here, and the result is of the time until now.
    #[inline]
    fn go_on(&mut self, _now: Instant) -> bool {
        true
    }
}

impl Observer for () {}

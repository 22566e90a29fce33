//! Looking on: captures and traces.

use clock::Instant;
use link::DropReason;
use transport::Packet;

/// Is shown every packet at every link. The empty observer `()` costs nothing.
pub trait Observer {
    /// `packet` was offered to `link` (its index in the result).
    #[inline]
    fn offered(&mut self, _now: Instant, _link: u32, _packet: &Packet) {}

    /// `packet` came out of `link` at the far end.
    #[inline]
    fn delivered(&mut self, _now: Instant, _link: u32, _packet: &Packet) {}

    /// `packet` was dropped by `link`.
    #[inline]
    fn dropped(&mut self, _now: Instant, _link: u32, _packet: &Packet, _reason: DropReason) {}
}

impl Observer for () {}

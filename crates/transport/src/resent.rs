//! Retransmissions under way, and which of them are lost (RACK, RFC 8985 §6.2).
//!
//! RFC 6675 waits for the retransmission timer when a retransmission is lost. What was sent later and has arrived tells it a
//! round trip after the retransmission.

use std::collections::VecDeque;

use clock::{Duration, Instant};

/// The retransmissions under way of one sequence of packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resent {
    /// Positions, in the order in which they were sent, and when.
    sent: VecDeque<(u64, Instant)>,
    /// When the newest packet was sent of those that have arrived.
    newest: Instant,
}

impl Resent {
    /// The packet at `position` is sent again.
    pub(crate) fn on_sent(&mut self, position: u64, now: Instant) {
        self.sent.push_back((position, now));
    }

    /// A packet that was sent at `sent` has arrived.
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: Instant) {
        self.newest = self.newest.max(sent);
    }

    /// The next retransmission that is lost: a packet that was sent later than it, and by more than `late`, has arrived.
    /// `is_under_way` tells whether that of a position, sent at a time, is waited for still.
    pub(crate) fn next_lost(&mut self, late: Duration, is_under_way: impl Fn(u64, Instant) -> bool) -> Option<u64> {
        while let Some((position, sent)) = self.sent.front().copied() {
            let is_under_way = is_under_way(position, sent);
            if is_under_way && sent + late >= self.newest {
                return None;
            }
            self.sent.pop_front();
            if is_under_way {
                return Some(position);
            }
        }
        None
    }

    /// None is waited for any more; what has arrived is not forgotten.
    pub(crate) fn clear(&mut self) {
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// RFC 8985 §6.2: sent again at 210 ms, with a window of reordering of 25 ms; what was sent 25 ms later arrives, then what
    /// was sent later than that.
    #[test]
    fn a_retransmission_is_lost_when_what_was_sent_later_has_come() {
        let mut resent = Resent::default();
        let late = Duration::from_millis(25);
        resent.on_sent(1, at(210));
        resent.on_sent(2, at(212));
        resent.on_delivered(at(235));
        assert_eq!(resent.next_lost(late, |_, _| true), None);
        resent.on_delivered(at(236));
        resent.on_delivered(at(230)); // What was sent before and comes late tells nothing.
        assert_eq!(resent.next_lost(late, |_, _| true), Some(1));
        assert_eq!(resent.next_lost(late, |_, _| true), None);
        resent.on_delivered(at(300));
        assert_eq!(resent.next_lost(late, |position, _| position != 2), None, "it has arrived");
        assert_eq!(resent.next_lost(late, |_, _| true), None, "and is forgotten");
    }
}

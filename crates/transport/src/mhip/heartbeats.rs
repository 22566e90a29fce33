//! HIP's signalling packets, by which mHIP knows its paths (paper 3, §III-B, 2): small packets outside of TCP's sequence, on
//! every path, also a closed one, answered at once. What is late or lost of them costs TCP nothing.

use std::collections::VecDeque;

use clock::{Duration, Instant};

use super::forecast::Expected;
use crate::packet::{Flags, NO_BLOCKS, Packet};

/// The mark of a heartbeat and of its answer. No data have both, and an acknowledgment of data never.
pub(super) const HEARTBEAT: Flags = Flags::DUPLICATE.with(Flags::REFUSED);

/// What was not answered within so many intervals will not be.
const PATIENCE: u64 = 40;

/// When heartbeats are due, and what was expected of those under way.
#[derive(Clone, Debug)]
pub(super) struct Heartbeats {
    interval: Option<Duration>,
    paths: usize,
    next: Instant,
    /// Of those due now, so many paths have none yet.
    left: usize,
    under_way: VecDeque<(usize, Instant, Expected)>,
}

impl Heartbeats {
    /// One on each of `paths` every `interval`; none if `None`.
    pub(super) fn new(interval: Option<Duration>, paths: usize) -> Self {
        Self { interval, paths, next: Instant::FAR_FUTURE, left: 0, under_way: VecDeque::new() }
    }

    /// Whether there are any.
    pub(super) fn are_sent(&self) -> bool {
        self.interval.is_some()
    }

    /// The connection opens.
    pub(super) fn start(&mut self, now: Instant) {
        self.next = self.interval.map_or(Instant::FAR_FUTURE, |interval| now + interval);
    }

    /// When the next are due.
    pub(super) fn deadline(&self) -> Instant {
        self.next
    }

    /// There are no more.
    pub(super) fn stop(&mut self) {
        *self = Self::new(None, self.paths);
    }

    /// Time has come to `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some(interval) = self.interval.filter(|_| now >= self.next) else { return };
        self.next = now + interval;
        self.left = self.paths;
        while self.under_way.front().is_some_and(|(_, sent, _)| now.saturating_since(*sent) > interval * PATIENCE) {
            self.under_way.pop_front();
        }
    }

    /// The next path that is to have one now.
    pub(super) fn due(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        Some(self.left)
    }

    /// One departs on `path`: the packet, of `bytes`.
    pub(super) fn depart(&mut self, path: usize, now: Instant, bytes: u32, expected: Expected) -> Packet {
        self.under_way.push_back((path, now, expected));
        Packet { time: now, flow: 0, hop: 0, position: 0, blocks: NO_BLOCKS, bytes, flags: HEARTBEAT, path: path as u8 }
    }

    /// The one that was sent on `path` at `sent` is answered: what was expected of it, once.
    pub(super) fn answered(&mut self, path: usize, sent: Instant) -> Option<Expected> {
        let index = self.under_way.iter().position(|(on, at, _)| *on == path && *at == sent)?;
        self.under_way.remove(index).map(|(_, _, expected)| expected)
    }
}

/// The answer to a heartbeat, by a receiver that misses `next`.
pub(super) fn answer(heartbeat: &Packet, next: u64) -> Packet {
    Packet { flags: HEARTBEAT.with(Flags::ACK), position: next as u32, ..*heartbeat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_one_each_interval() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let expected = Expected { leaves: at(1), arrives: at(2) };
        let mut heartbeats = Heartbeats::new(Some(Duration::from_millis(50)), 2);
        heartbeats.start(at(10));
        heartbeats.handle_timeout(at(59));
        assert_eq!((heartbeats.due(), heartbeats.deadline()), (None, at(60)));
        heartbeats.handle_timeout(at(60));
        assert_eq!([heartbeats.due(), heartbeats.due(), heartbeats.due()], [Some(1), Some(0), None]);
        assert_eq!(heartbeats.deadline(), at(110));
        let packet = heartbeats.depart(1, at(60), 40, expected);
        let answer = answer(&packet, 7);
        assert!(answer.flags.has(HEARTBEAT) && answer.flags.has(Flags::ACK) && answer.position == 7);
        assert_eq!(heartbeats.answered(0, at(60)), None);
        assert_eq!(heartbeats.answered(1, at(60)), Some(expected));
        assert_eq!(heartbeats.answered(1, at(60)), None);
        heartbeats.stop();
        heartbeats.start(at(70));
        assert_eq!((heartbeats.deadline(), heartbeats.are_sent()), (Instant::FAR_FUTURE, false));
    }
}

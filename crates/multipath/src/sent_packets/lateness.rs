//! By how much packets come behind later ones on a path: jitter on a radio link, or links side by side.
//!
//! The time by which one is late is seen twice: between the sending of it and of the later ones that have come, and between the
//! reports of these and of it. A queue that drains makes the one long, for what was sent a while later comes soon after it; a
//! report that is lost makes the other long. The shorter of both is the path's.

use crate::sender::LONGEST_REPAIR;
use clock::{Duration, Instant};
use std::collections::VecDeque;

/// A stretch lasts so long, and for so many packets. The greatest lateness of two is what is known: one that was measured amiss is
/// forgotten.
const STRETCH: (Duration, u64) = (Duration::from_secs(5), 500);
/// When later packets had come is remembered for so long: nothing waits longer for what is late.
const REMEMBERED: Duration = LONGEST_REPAIR;

/// How late packets of a path are.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    /// Reports of later packets than before: the highest number of each, and when it came.
    passes: VecDeque<(u64, Instant)>,
    /// The greatest of this stretch and of the one before.
    greatest: [Duration; 2],
    /// When this stretch began, and packets that have come since.
    since: Instant,
    packets: u64,
}

impl Lateness {
    pub(super) fn new(now: Instant) -> Self {
        Self { passes: VecDeque::new(), greatest: [Duration::ZERO; 2], since: now, packets: 0 }
    }

    /// The same path, where numbers begin anew.
    pub(super) fn following(&self) -> Self {
        Self { passes: VecDeque::new(), ..*self }
    }

    /// All up to this number, or some of it, has come.
    pub(super) fn passed(&mut self, now: Instant, highest: u64) {
        self.passes.push_back((highest, now));
        while self.passes.len() > 1 && self.passes.front().is_some_and(|(_, at)| now - *at > REMEMBERED) {
            self.passes.pop_front();
        }
    }

    /// For how long a later packet than this one has been known to have come.
    pub(super) fn overdue(&self, now: Instant, number: u64) -> Duration {
        let later = self.passes.partition_point(|(highest, _)| *highest <= number);
        self.passes.get(later).map_or(Duration::ZERO, |(_, at)| now - *at)
    }

    /// A packet has come that was sent so much before the latest that had.
    pub(super) fn came_late(&mut self, now: Instant, number: u64, before: Duration) {
        let late = before.min(self.overdue(now, number));
        self.greatest[0] = self.greatest[0].max(late);
    }

    /// A packet has come.
    pub(super) fn came(&mut self, now: Instant) {
        self.packets += 1;
        if self.packets >= STRETCH.1 && now - self.since >= STRETCH.0 {
            (self.since, self.packets) = (now, 0);
            self.greatest = [Duration::ZERO, self.greatest[0]];
        }
    }

    /// The greatest that is known of late.
    pub(super) fn greatest(&self) -> Duration {
        self.greatest[0].max(self.greatest[1])
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.passes.len().saturating_mul(size_of::<(u64, Instant)>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One sent at 0 comes 5 ms after one sent at 60, of which the report came at 100: a queue has drained. And one sent at 60, with a
    /// later one sent at 65, is reported 90 ms later: its first reports were lost.
    #[test]
    fn a_queue_that_drains_and_a_report_that_is_lost_are_no_lateness() {
        let ms = Duration::from_millis;
        let mut lateness = Lateness::new(at(0));
        lateness.passed(at(100), 7);
        lateness.came_late(at(105), 6, ms(60));
        assert_eq!(lateness.greatest(), ms(5));
        lateness.passed(at(110), 9);
        lateness.came_late(at(200), 8, ms(6));
        assert_eq!(lateness.greatest(), ms(6));
        assert_eq!((lateness.overdue(at(200), 6), lateness.overdue(at(200), 9)), (ms(100), ms(0)));
    }

    #[test]
    fn what_was_once_is_forgotten_and_what_happens_again_is_not() {
        let ms = Duration::from_millis;
        let mut lateness = Lateness::new(at(0));
        lateness.passed(at(0), 1_000_000);
        lateness.came_late(at(400), 1, ms(300));
        let mut after = |seconds: std::ops::Range<u64>| {
            for now in (seconds.start * 1_000..seconds.end * 1_000).step_by(5) {
                lateness.came(at(now));
                lateness.passed(at(now), 1_000_000 + now);
                lateness.came_late(at(now), 1_000_000 + now - 20, ms(15));
            }
            lateness.greatest()
        };
        assert_eq!((after(1..7), after(7..13)), (ms(300), ms(15)));
    }
}

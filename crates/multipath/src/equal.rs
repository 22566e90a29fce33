//! Round trips of a flow that are made equal: an acknowledgment of what went on a near path is held until one of a distant path may have
//! come.
//!
//! BBR's window is made for the least round trip that it knows. When it has seen none as short for 10 s, it looks: it sends no more than
//! four packets for 200 ms, and takes the least of what it sees then (`bbr_update_min_rtt` of Linux' `tcp_bbr.c`;
//! draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.5). If that is the distant path's, its window is large enough for both paths, and it
//! probes for more as it would on the distant one alone. As long as it knows a shorter one, later acknowledgments only leave it less.
//!
//! So nothing is held before the look. A flow that stops may be looking: from there on its acknowledgments are held, and that stays if it
//! has few packets outstanding for long enough.

use clock::{Duration, Instant};
use std::collections::VecDeque;

/// Of the data that were sent within this time, the first are remembered.
const SPACING: Duration = Duration::from_millis(1);
/// So many of them at most.
const REMEMBERED: usize = 512;
/// A flow has stopped that has sent nothing for so long while its packets were acknowledged, ...
const STOPPED: Duration = Duration::from_millis(5);
/// ... with more than so many outstanding. It looks for the least round trip if it has no more outstanding afterwards, ...
const FEW: u32 = 8;
/// ... for so long, from its next packet on.
const LOOKS: Duration = Duration::from_millis(100);
/// One that sends nothing for so long has nothing to send.
const IDLE: Duration = Duration::from_millis(500);

/// What is known of a flow's round trips.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    /// Where data ended that are not acknowledged, and when the program sent them.
    sent: VecDeque<(u32, Instant)>,
    /// Where the last data ended, when they were sent, and the most that a packet had.
    end: u32,
    sent_at: Instant,
    largest: u32,
    acked: u32,
    /// Before this no acknowledgment leaves.
    due: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// They are as they come.
    #[default]
    Own,
    /// It has stopped then, and sent the next packet then.
    Stops(Instant, Option<Instant>),
    /// They are made equal.
    Equal,
}

impl RoundTrips {
    /// The program has sent `len` bytes of new data then, up to this number.
    pub(crate) fn sent(&mut self, end: u32, len: u32, at: Instant) {
        (self.end, self.sent_at, self.largest) = (end, at, self.largest.max(len));
        if self.sent.back().is_none_or(|(_, before)| at >= *before + SPACING) {
            if self.sent.len() >= REMEMBERED {
                self.sent.pop_front();
            }
            self.sent.push_back((end, at));
        }
        if let State::Stops(since, next) = self.state {
            let next = next.unwrap_or(at);
            self.state = match self.outstanding() > FEW || at - since > IDLE {
                true => State::Own,
                false if at - next >= LOOKS => State::Equal,
                false => State::Stops(since, Some(next)),
            };
        }
    }

    /// Packets that are not acknowledged.
    fn outstanding(&self) -> u32 {
        self.end.wrapping_sub(self.acked).div_ceil(self.largest.max(1))
    }

    /// All up to `ack` is acknowledged now: until when that is held, where the distant path's round trip is `round`. `is_held` if what came
    /// lately was held: then it is no sign that nothing is sent.
    pub(crate) fn acknowledged(&mut self, now: Instant, ack: u32, round: Duration, is_held: bool) -> Option<Instant> {
        self.acked = ack;
        if self.state == State::Own && !is_held && now - self.sent_at > STOPPED && self.outstanding() > FEW {
            self.state = State::Stops(now, None);
        }
        let mut sent_at = None;
        while let Some((_, at)) = self.sent.front().filter(|(end, _)| ack.wrapping_sub(*end) as i32 >= 0) {
            sent_at = Some(*at);
            self.sent.pop_front();
        }
        if self.state == State::Own {
            return None;
        }
        if let Some(at) = sent_at {
            self.due = self.due.max(at + SPACING + round);
        }
        Some(self.due).filter(|due| *due > now)
    }

    /// Whether they are made equal.
    pub(crate) fn are_equal(&self) -> bool {
        self.state == State::Equal
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<(u32, Instant)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    const MSS: u32 = 1_000;
    const NEAR: u64 = 10;
    const ROUND: Duration = Duration::from_millis(50);

    /// A program that has sent a packet each millisecond, each of which is acknowledged after [`NEAR`] ms, until 1,000 ms.
    struct Program {
        trips: RoundTrips,
        end: u32,
    }

    impl Program {
        fn new() -> Self {
            let mut program = Self { trips: RoundTrips::default(), end: 0 };
            for now in 0..1_000 {
                assert_eq!(program.round(now, 1, NEAR), None);
            }
            program
        }

        fn send(&mut self, now: u64, packets: u32) {
            for _ in 0..packets {
                self.end += MSS;
                self.trips.sent(self.end, MSS, at(now));
            }
        }

        /// So many packets leave now, and one that left `ago` ms before is acknowledged.
        fn round(&mut self, now: u64, packets: u32, ago: u64) -> Option<Instant> {
            self.send(now, packets);
            let acked = self.end.saturating_sub(ago as u32 * packets * MSS);
            self.trips.acknowledged(at(now), acked, ROUND, false)
        }

        /// It sends no more from 1,000 ms on until all but four of 30 packets are acknowledged; then four at a time, until `until`.
        fn looks(&mut self, until: u64) {
            self.send(1_000, 20);
            let first = self.end - 30 * MSS;
            for n in 1..=30 {
                self.trips.acknowledged(at(1_005 + u64::from(n)), first + n * MSS, ROUND, false);
            }
            let mut now = 1_036;
            while now < until {
                self.send(now, 4);
                now += 50;
                self.trips.acknowledged(at(now), self.end, ROUND, false);
            }
        }
    }

    /// `bbr_update_min_rtt` of Linux' `tcp_bbr.c`: four packets for 200 ms. By then all round trips are as long as the distant path's, and
    /// later.
    #[test]
    fn a_program_that_looks_for_the_least_round_trip_sees_the_distant_paths() {
        let mut program = Program::new();
        program.looks(1_240);
        assert!(program.trips.are_equal());
        for now in 1_300..1_500 {
            program.send(now, 1);
            let held = program.trips.acknowledged(at(now), program.end, ROUND, false);
            assert_eq!(held, Some(at(now) + ROUND + SPACING), "{now}");
        }
    }

    /// From the first packets on that it stopped after: the least of the round trips that it sees is not the near path's.
    #[test]
    fn acknowledgments_are_held_as_soon_as_it_stops() {
        let mut program = Program::new();
        program.send(1_000, 20);
        let acked = |program: &mut Program, now, of: u32| {
            let ack = program.end - (29 - of) * MSS;
            program.trips.acknowledged(at(now), ack, ROUND, false)
        };
        assert_eq!(acked(&mut program, 1_004, 1), None);
        assert_eq!(acked(&mut program, 1_006, 12), Some(at(1_000) + ROUND + SPACING));
    }

    #[test]
    fn a_program_that_goes_on_has_its_own_round_trips() {
        // It was silent, and has many outstanding again.
        let mut program = Program::new();
        program.looks(1_100);
        program.send(1_110, 40);
        assert!(!program.trips.are_equal());
        assert_eq!(program.trips.acknowledged(at(1_120), program.end, ROUND, false), None);
        // It had nothing to send.
        let mut program = Program::new();
        program.looks(1_040);
        program.send(2_000, 1);
        assert_eq!(program.trips.acknowledged(at(2_010), program.end, ROUND, false), None);
        // It has sent no more than a few packets at a time ever, as one that is slow does.
        let mut slow = RoundTrips::default();
        for n in 1..100 {
            let now = 20 * u64::from(n);
            slow.sent(n * MSS, MSS, at(now));
            assert_eq!(slow.acknowledged(at(now + 10), (n - n.min(4)) * MSS, ROUND, false), None, "{n}");
        }
        // What was held is acknowledged at once, after a silence that tells nothing.
        let mut program = Program::new();
        program.send(1_000, 20);
        assert_eq!(program.trips.acknowledged(at(1_030), program.end - 10 * MSS, ROUND, true), None);
    }

    /// Nothing is acknowledged for two seconds.
    #[test]
    fn no_more_is_remembered_than_may_be() {
        let mut program = Program::new();
        (1_000..3_000).for_each(|now| program.send(now, 1));
        assert_eq!(program.trips.sent.len(), REMEMBERED);
        assert!(program.trips.memory() < 2 * REMEMBERED * size_of::<(u32, Instant)>());
    }

    #[test]
    fn numbers_wrap_around() {
        let mut trips = RoundTrips::default();
        let numbers = (0..30).map(|n: u32| (u32::MAX - 10 * MSS).wrapping_add(n * MSS));
        numbers.clone().for_each(|end| trips.sent(end, MSS, at(0)));
        for end in numbers {
            trips.acknowledged(at(1), end, ROUND, false);
        }
        assert_eq!((trips.outstanding(), trips.sent.len()), (0, 0));
    }
}

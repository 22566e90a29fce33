//! Puts the packets of one TCP flow, that came over several paths, back in order, so that the receiver's unmodified
//! TCP does not take reordering for loss.
//!
//! The order is that of TCP's own sequence numbers, so no number of ours is on the wire. A packet above a hole waits
//!
//! - until the hole is filled;
//! - or until every path has delivered something of the flow from above the hole: each path is a FIFO, so what is
//!   missing is not under way on any of them. It is lost, TCP is to hear of it at once, and waiting would only delay that;
//! - or for as long as it was told when it came, which is how much later the slowest path may be; longer only while holes
//!   before it are being filled with what was sent again, and then no longer than all may wait at most: who fills one hole
//!   now and then must not make the rest stay for ever.
//!
//! What is below the next byte in order, a retransmission, passes at once and is never dropped: TCP can still use it.
//! So each packet offered comes out exactly once.

use clock::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// What a segment is to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The start of a connection (SYN): it and what follows it have nothing to do with what was before.
    Start,
    /// One of the first packets of a connection that started at this sequence number: those before it may be under way on
    /// slower paths.
    Early(u32),
    /// It has a place in the sequence: data, FIN, or an RST, which must not overtake the data before it.
    InSequence,
    /// It passes at once: an acknowledgment without data.
    Unordered,
}

/// Where a segment belongs, and how it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The path on which it came.
    pub path: u16,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// How much of the sequence it occupies: bytes of data, one for SYN, one for FIN.
    pub length: u32,
    /// What it is.
    pub role: Role,
}

/// What the resequencer has seen and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResequencerStatistics {
    /// Packets that had to wait.
    pub held: u64,
    /// Holes given up because every path had delivered something above them.
    pub proven_losses: u64,
    /// Holes given up because a packet above them had waited its time.
    pub expired: u64,
    /// Holes given up because there was no room to wait.
    pub overflowed: u64,
    /// Packets from below the next byte in order.
    pub late: u64,
}

/// A connection whose start is no further back than this is the one that an early packet belongs to.
const BEGUN: u32 = 1 << 26;

/// The resequencer of one flow in one direction; `P` is a packet.
#[derive(Clone, Debug)]
pub struct Resequencer<P> {
    capacity: usize,
    /// The longest that anything waits.
    longest: Duration,
    /// The next byte in order, counted without wrapping around; `None` before the first segment.
    next: Option<u64>,
    held: BTreeMap<Key, Held<P>>,
    deadlines: BTreeSet<(Instant, Key)>,
    /// When each came.
    came: BTreeSet<(Instant, Key)>,
    bytes: usize,
    arrivals: u64,
    /// The highest start of a segment that each path has delivered.
    highest: Vec<(u16, u64)>,
    /// How long what is lost for certain may take to come again.
    repair: Duration,
    /// The hole that is, and until when it is waited for.
    proven: Option<(u64, Instant)>,
    /// When the first hole, or a part of it, was filled last.
    filled_at: Option<Instant>,
    statistics: ResequencerStatistics,
}

/// Sequence number and, where two are the same, order of arrival.
type Key = (u64, u64);

#[derive(Clone, Debug)]
struct Held<P> {
    end: u64,
    came: Instant,
    deadline: Instant,
    bytes: usize,
    packet: P,
}

impl<P> Resequencer<P> {
    /// Holds at most `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self::bounded(capacity, Duration::MAX)
    }

    /// Holds at most `capacity` bytes, and nothing for longer than `longest`, whatever is told when it comes.
    pub fn bounded(capacity: usize, longest: Duration) -> Self {
        Self {
            capacity,
            longest,
            next: None,
            held: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            came: BTreeSet::new(),
            bytes: 0,
            arrivals: 0,
            highest: Vec::new(),
            repair: Duration::ZERO,
            proven: None,
            filled_at: None,
            statistics: ResequencerStatistics::default(),
        }
    }

    /// From now on what is lost is sent again by the path's sender and takes so long; zero where nobody does that.
    pub fn set_repair(&mut self, repair: Duration) {
        self.repair = repair;
    }

    /// Takes a packet of `bytes` bytes and appends to `out` what may go now. The packet waits for `hold` at most, and
    /// only while a path of `alive` may still bring what is before it.
    #[expect(
        clippy::too_many_arguments,
        reason = "the packet, its time, and what is known of the paths; all differ per call"
    )]
    pub fn offer(
        &mut self,
        now: Instant,
        position: Position,
        packet: P,
        bytes: usize,
        hold: Duration,
        alive: &[u16],
        out: &mut Vec<P>,
    ) {
        let Position { path, sequence, length, role } = position;
        if role == Role::Unordered {
            out.push(packet);
            return;
        }
        let next = match (role, self.next) {
            (Role::Early(start), Some(next)) if (next as u32).wrapping_sub(start) < BEGUN => next,
            (Role::Early(start), _) => self.restart(start, out),
            (Role::Start, _) | (_, None) => self.restart(sequence, out),
            (_, Some(next)) => next,
        };
        self.next = Some(next);
        // The number nearest to `next` that has these lower 32 bits.
        let ahead = sequence.wrapping_sub(next as u32) as i32;
        let start = next.saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(length);
        self.note(path, start, alive);
        if start <= next {
            if end <= next && length > 0 {
                self.statistics.late += 1;
            } else if !self.held.is_empty() {
                self.filled_at = Some(now);
            }
            out.push(packet);
            self.advance(end, out);
        } else {
            while self.bytes.saturating_add(bytes) > self.capacity && !self.held.is_empty() {
                self.statistics.overflowed += 1;
                self.give_up_hole(out);
            }
            self.hold(now, (start, end), packet, bytes, hold);
            // Room may have been made by giving up the hole right before this one.
            let next = self.next.unwrap_or(next);
            self.advance(next, out);
        }
        self.release_proven(now, alive, out);
        self.handle_timeout(now, out);
    }

    /// Appends to `out` what has waited long enough.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<P>) {
        while let Some(deadline) = self.poll_timeout().filter(|deadline| *deadline <= now) {
            if self.expiry() == Some(deadline) {
                self.statistics.expired += 1;
            } else {
                self.statistics.proven_losses += 1;
            }
            self.give_up_hole(out);
        }
    }

    /// When the first waiting packet has waited long enough.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let repair = self.proven.filter(|(hole, _)| Some(*hole) == self.next && !self.held.is_empty());
        self.expiry().into_iter().chain(repair.map(|(_, until)| until)).min()
    }

    /// When the first packet has waited its time. While holes are filled one after the other, as after the death of a path
    /// that had much under way, the next is waited for as long as for one that is lost for certain; but whatever came is
    /// out within the longest time.
    fn expiry(&self) -> Option<Instant> {
        let ((deadline, _), (came, _)) = (self.deadlines.first()?, self.came.first()?);
        let patient = self.filled_at.map_or(*deadline, |at| (at + self.repair).max(*deadline));
        Some(patient.min(*came + self.longest))
    }

    /// Gives up the first hole to make room: appends what waited behind it to `out`. False where nothing waits.
    pub fn relieve(&mut self, out: &mut Vec<P>) -> bool {
        let waits = !self.held.is_empty();
        if waits {
            self.statistics.overflowed += 1;
            self.give_up_hole(out);
        }
        waits
    }

    /// Appends to `out` all that waits, in order.
    pub fn flush(&mut self, out: &mut Vec<P>) {
        while !self.held.is_empty() {
            self.give_up_hole(out);
        }
    }

    /// How many packets wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was seen and done.
    pub fn statistics(&self) -> &ResequencerStatistics {
        &self.statistics
    }

    /// From now on `start` is the next in order, and counted from there.
    fn restart(&mut self, start: u32, out: &mut Vec<P>) -> u64 {
        self.flush(out);
        self.highest.clear();
        self.filled_at = None;
        // Room below, so that numbers before the first one stay positive.
        (1 << 32) | u64::from(start)
    }

    /// The path has delivered a segment that starts at `start`.
    fn note(&mut self, path: u16, start: u64, alive: &[u16]) {
        match self.highest.iter_mut().find(|(known, _)| *known == path) {
            Some((_, highest)) => *highest = (*highest).max(start),
            None => {
                self.highest.retain(|(known, _)| alive.contains(known));
                self.highest.push((path, start));
            }
        }
    }

    fn hold(&mut self, now: Instant, (start, end): (u64, u64), packet: P, bytes: usize, hold: Duration) {
        let key = (start, self.arrivals);
        self.arrivals += 1;
        let deadline = now + hold;
        self.deadlines.insert((deadline, key));
        self.came.insert((now, key));
        self.held.insert(key, Held { end, came: now, deadline, bytes, packet });
        self.bytes += bytes;
        self.statistics.held += 1;
    }

    /// All bytes before `end` are out: so may be what follows without a hole.
    fn advance(&mut self, end: u64, out: &mut Vec<P>) {
        let mut next = self.next.unwrap_or(end).max(end);
        while let Some(entry) = self.held.first_entry() {
            let key = *entry.key();
            if key.0 > next {
                break;
            }
            let held = entry.remove();
            self.deadlines.remove(&(held.deadline, key));
            self.came.remove(&(held.came, key));
            self.bytes -= held.bytes;
            next = next.max(held.end);
            out.push(held.packet);
        }
        self.next = Some(next);
    }

    fn give_up_hole(&mut self, out: &mut Vec<P>) {
        if let Some(((start, _), _)) = self.held.first_key_value() {
            let start = *start;
            self.advance(start, out);
        }
    }

    /// Gives up the first hole while every path of `alive` has delivered something from above it, and where lost
    /// packets come again, that time has passed.
    fn release_proven(&mut self, now: Instant, alive: &[u16], out: &mut Vec<P>) {
        while let (Some(next), false) = (self.next, self.held.is_empty()) {
            let above = |path: &u16| self.highest.iter().any(|(known, highest)| known == path && *highest > next);
            if alive.is_empty() || !alive.iter().all(above) {
                return;
            }
            if !self.repair.is_zero() {
                if self.proven.is_none_or(|(hole, _)| hole != next) {
                    self.proven = Some((next, now + self.repair));
                }
                return;
            }
            self.statistics.proven_losses += 1;
            self.give_up_hole(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{numbers, vector};
    use proptest::prelude::*;

    const HOLD: Duration = Duration::from_millis(50);
    const NOTHING: [u32; 0] = [];

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn data(path: u16, sequence: u32) -> Position {
        Position { path, sequence, length: 100, role: Role::InSequence }
    }

    /// Offers packets named by their sequence number; what comes out.
    fn offer(r: &mut Resequencer<u32>, now: Instant, position: Position) -> Vec<u32> {
        let mut out = Vec::new();
        r.offer(now, position, position.sequence, position.length as usize, HOLD, &[0, 1], &mut out);
        out
    }

    /// Hole 1 is filled, hole 4 expires, 4 passes late.
    #[test]
    fn reseq_1() {
        let (input, output) = vector("reseq.1");
        let events = |value: &serde_json::Value| {
            let event = |event: &serde_json::Value| {
                let [at, number] = numbers(event).try_into().unwrap();
                (ms((at * 1e3).round() as u64), number as u32)
            };
            value.as_array().unwrap().iter().map(event).collect::<Vec<_>>()
        };
        let hold = Duration::from_secs_f64(input["hold_s"].as_f64().unwrap());
        let mut r = Resequencer::new(10_000);
        let (mut out, mut result) = (Vec::new(), Vec::new());
        for (now, number) in events(&input["arrivals"]) {
            if let Some(deadline) = r.poll_timeout().filter(|deadline| *deadline < now) {
                r.handle_timeout(deadline, &mut out);
                result.extend(out.drain(..).map(|number| (deadline, number)));
            }
            r.offer(now, data(0, number * 100), number, 100, hold, &[0, 1], &mut out);
            result.extend(out.drain(..).map(|number| (now, number)));
        }
        assert_eq!(result, events(&output["deliveries"]));
    }

    #[test]
    fn a_hole_that_fills_is_waited_for() {
        let mut r = Resequencer::new(10_000);
        assert_eq!(offer(&mut r, ms(0), data(0, 0)), [0]);
        assert_eq!(offer(&mut r, ms(1), data(0, 200)), NOTHING);
        assert_eq!(offer(&mut r, ms(2), data(0, 300)), NOTHING);
        assert_eq!(r.poll_timeout(), Some(ms(51)));
        assert_eq!(offer(&mut r, ms(30), data(1, 100)), [100, 200, 300]);
        assert_eq!((r.poll_timeout(), r.held()), (None, 0));
    }

    #[test]
    fn a_hole_below_what_every_path_delivered_is_a_loss() {
        let mut r = Resequencer::new(10_000);
        assert_eq!(offer(&mut r, ms(0), data(0, 0)), [0]);
        assert_eq!(offer(&mut r, ms(1), data(0, 200)), NOTHING);
        assert_eq!(offer(&mut r, ms(2), data(1, 300)), [200, 300]);
        assert_eq!(r.statistics().proven_losses, 1);
        // Its retransmission passes at once.
        assert_eq!(offer(&mut r, ms(90), data(1, 100)), [100]);
        assert_eq!(r.statistics().late, 1);
        assert_eq!(offer(&mut r, ms(91), data(0, 400)), [400]);
    }

    #[test]
    fn the_first_packets_of_a_connection_may_overtake_each_other() {
        let mut r = Resequencer::new(10_000);
        let early = |path, sequence| Position { role: Role::Early(0), ..data(path, sequence) };
        assert_eq!(offer(&mut r, ms(0), early(0, 200)), NOTHING);
        assert_eq!(offer(&mut r, ms(1), early(0, 300)), NOTHING);
        assert_eq!(offer(&mut r, ms(40), early(1, 0)), [0]);
        assert_eq!(offer(&mut r, ms(41), early(1, 100)), [100, 200, 300]);
        // What is far from there begins another one.
        for sequence in (400..BEGUN + 500).step_by(1 << 24) {
            offer(&mut r, ms(100), data(0, sequence));
            offer(&mut r, ms(200), data(1, sequence + 1));
        }
        r.flush(&mut Vec::new());
        assert_eq!(offer(&mut r, ms(300), early(0, 100)), NOTHING);
        assert_eq!(offer(&mut r, ms(301), early(1, 0)), [0, 100]);
    }

    #[test]
    fn the_wait_is_bounded() {
        let mut r = Resequencer::new(10_000);
        offer(&mut r, ms(0), data(0, 0));
        offer(&mut r, ms(1), data(0, 200));
        offer(&mut r, ms(20), data(0, 400));
        let mut out = Vec::new();
        r.handle_timeout(ms(50), &mut out);
        assert_eq!(out, NOTHING);
        r.handle_timeout(ms(51), &mut out);
        assert_eq!(out, [200]);
        r.handle_timeout(ms(70), &mut out);
        assert_eq!(out, [200, 400]);
        assert_eq!(r.statistics().expired, 2);
    }

    #[test]
    fn while_holes_are_filled_by_repairs_the_wait_goes_on() {
        let mut r = Resequencer::new(100_000);
        r.set_repair(Duration::from_millis(20));
        offer(&mut r, ms(0), data(0, 0));
        for hole in 1..20 {
            offer(&mut r, ms(1), data(0, 200 * hole));
        }
        // One is filled every 10 ms, long beyond what each could wait; then no more.
        for hole in 0..15 {
            assert_eq!(offer(&mut r, ms(10 + 10 * u64::from(hole)), data(1, 200 * hole + 100)).len(), 2);
        }
        assert_eq!((r.poll_timeout(), r.statistics().expired), (Some(ms(170)), 0));
        let mut out = Vec::new();
        r.handle_timeout(ms(170), &mut out);
        assert_eq!((out.len(), r.held()), (4, 0));
    }

    /// A peer fills one hole before each deadline, and says that repairs take long. What came at the start is out in time.
    #[test]
    fn nothing_waits_longer_than_the_longest_time() {
        let mut r = Resequencer::bounded(100_000, Duration::from_millis(400));
        r.set_repair(Duration::from_secs(10));
        offer(&mut r, ms(0), data(0, 0));
        for hole in 1..300 {
            offer(&mut r, ms(0), data(0, 200 * hole));
        }
        let mut out = Vec::new();
        for (hole, at) in (0..).zip((40..400).step_by(40)) {
            out.extend(offer(&mut r, ms(at), data(0, 200 * hole + 100)));
        }
        assert_eq!(r.poll_timeout(), Some(ms(400)));
        r.handle_timeout(ms(400), &mut out);
        assert_eq!((out.len(), r.held(), r.bytes()), (299 + 9, 0, 0));
    }

    #[test]
    fn what_does_not_fit_pushes_the_oldest_hole_out() {
        let mut r = Resequencer::new(250);
        offer(&mut r, ms(0), data(0, 0));
        assert_eq!(offer(&mut r, ms(0), data(0, 200)), NOTHING);
        assert_eq!(offer(&mut r, ms(0), data(0, 400)), NOTHING);
        assert_eq!(offer(&mut r, ms(0), data(0, 600)), [200]);
        assert_eq!(r.statistics().overflowed, 1);
    }

    #[test]
    fn acknowledgments_and_new_connections_do_not_wait_and_a_reset_keeps_its_place() {
        let mut r = Resequencer::new(10_000);
        offer(&mut r, ms(0), data(0, 0));
        assert_eq!(offer(&mut r, ms(0), data(0, 200)), NOTHING);
        let ack = Position { path: 1, sequence: 900, length: 0, role: Role::Unordered };
        assert_eq!(offer(&mut r, ms(0), ack), [900]);
        let reset = Position { path: 0, sequence: 300, length: 0, role: Role::InSequence };
        assert_eq!(offer(&mut r, ms(0), reset), NOTHING);
        assert_eq!(offer(&mut r, ms(0), data(1, 100)), [100, 200, 300]);
        assert_eq!(offer(&mut r, ms(0), data(0, 700)), NOTHING);
        let syn = Position { path: 1, sequence: 5, length: 1, role: Role::Start };
        assert_eq!(offer(&mut r, ms(0), syn), [700, 5]);
        assert_eq!(offer(&mut r, ms(0), data(0, 6)), [6]);
    }

    /// Packets over FIFO paths: each takes a path, is sent at its time and arrives after the path's delay at that time,
    /// though not before its predecessors. What arrives, in order of arrival: (time, number, path).
    fn arrivals(delays: &[Vec<u64>], choices: &[usize], lost: &[bool]) -> Vec<(u64, usize, u16)> {
        let mut busy = vec![0; delays.len()];
        let mut all: Vec<_> = choices
            .iter()
            .enumerate()
            .map(|(number, choice)| {
                let path = choice % delays.len();
                let sent = number as u64 * 1_000_000;
                let arrival = (sent + delays[path][number % delays[path].len()]).max(busy[path]);
                busy[path] = arrival;
                (arrival, number, path as u16)
            })
            .filter(|(_, number, _)| *number == 0 || !lost.get(*number).copied().unwrap_or(false))
            .collect();
        all.sort_unstable();
        all
    }

    /// Runs them; (time out, number) of each, and the statistics.
    fn run(
        arrivals: &[(u64, usize, u16)],
        first: u32,
        capacity: usize,
        hold: u64,
        alive: &[u16],
    ) -> (Vec<(u64, usize)>, ResequencerStatistics) {
        let mut r = Resequencer::new(capacity);
        let mut result = Vec::new();
        let mut out = Vec::new();
        let syn = Position { path: 0, sequence: first.wrapping_sub(1), length: 1, role: Role::Start };
        r.offer(Instant::ZERO, syn, 0, 40, Duration::ZERO, alive, &mut out);
        out.clear();
        for (at, number, path) in arrivals {
            while let Some(deadline) = r.poll_timeout().filter(|deadline| deadline.as_nanos() < *at) {
                r.handle_timeout(deadline, &mut out);
                result.extend(out.drain(..).map(|number| (deadline.as_nanos(), number)));
            }
            let sequence = first.wrapping_add(*number as u32 * 100);
            r.offer(
                Instant::from_nanos(*at),
                data(*path, sequence),
                *number,
                100,
                Duration::from_nanos(hold),
                alive,
                &mut out,
            );
            result.extend(out.drain(..).map(|number| (*at, number)));
        }
        while let Some(deadline) = r.poll_timeout() {
            r.handle_timeout(deadline, &mut out);
            result.extend(out.drain(..).map(|number| (deadline.as_nanos(), number)));
        }
        assert_eq!(r.held(), 0);
        (result, *r.statistics())
    }

    proptest! {
        /// Exactly once and within the bound, whatever comes.
        #[test]
        fn everything_comes_out_once_and_in_time(
            delays in prop::collection::vec(prop::collection::vec(0u64..200_000_000, 1..5), 1..4),
            choices in prop::collection::vec(0usize..4, 1..80),
            lost in prop::collection::vec(prop::bool::weighted(0.1), 80),
            first in any::<u32>(),
            capacity in 0usize..3000,
            hold in 0u64..100_000_000,
        ) {
            let arrivals = arrivals(&delays, &choices, &lost);
            let (result, _) = run(&arrivals, first, capacity, hold, &[0, 1, 2, 3]);
            let mut numbers: Vec<_> = result.iter().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            let mut expected: Vec<_> = arrivals.iter().map(|(_, number, _)| *number).collect();
            expected.sort_unstable();
            prop_assert_eq!(numbers, expected);
            for (at, number, _) in &arrivals {
                let out = result.iter().find(|(_, n)| n == number).unwrap().0;
                prop_assert!(out >= *at && out <= at + hold);
            }
        }

        /// Without loss and with FIFO paths whose delays differ by less than the hold, all comes out in order, and
        /// what arrives in order is not delayed at all.
        #[test]
        fn order_is_restored(
            delays in prop::collection::vec(prop::collection::vec(0u64..50_000_000, 1..5), 1..4),
            choices in prop::collection::vec(0usize..4, 1..80),
            first in any::<u32>(),
        ) {
            let arrivals = arrivals(&delays, &choices, &[]);
            let alive: Vec<u16> = (0..delays.len() as u16).collect();
            let (result, statistics) = run(&arrivals, first, usize::MAX, 50_000_000, &alive);
            prop_assert!(result.iter().map(|(_, number)| *number).eq(0..choices.len()));
            prop_assert_eq!(statistics.proven_losses + statistics.expired, 0);
            // The definition: a packet is out when it and all before it have arrived.
            let mut latest = 0;
            for (out, number) in result {
                latest = latest.max(arrivals.iter().find(|a| a.1 == number).unwrap().0);
                prop_assert_eq!(out, latest);
            }
        }

        /// With FIFO paths a proof is never wrong: with a hold that never expires, nothing is ever late.
        #[test]
        fn no_proof_is_false(
            delays in prop::collection::vec(prop::collection::vec(0u64..200_000_000, 1..5), 1..4),
            choices in prop::collection::vec(0usize..4, 1..80),
            lost in prop::collection::vec(prop::bool::weighted(0.1), 80),
        ) {
            let arrivals = arrivals(&delays, &choices, &lost);
            let alive: Vec<u16> = (0..delays.len() as u16).collect();
            let (result, statistics) = run(&arrivals, 7, usize::MAX, 1_000_000_000_000, &alive);
            prop_assert!(result.windows(2).all(|pair| pair[0].1 < pair[1].1));
            prop_assert_eq!(statistics.late, 0);
        }
    }
}

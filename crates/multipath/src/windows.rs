//! The windows of an association's paths: any rule of `congestion`, over all of them at once, fed by reports.

use crate::sent_packets::AckOutcome;
use clock::{Duration, Instant};
use congestion::{Acked, Cause, Congestion, CoupledController, Doubt, EngineConfig, RoundTrip, Rule, Share, SlowStart};
use recovery::RttEstimator;

/// The pace in windows per round trip, in slow start and after: Linux' `tcp_pacing_ss_ratio` and `_ca_ratio`.
const GAIN: (f64, f64) = (2.0, 1.2);
/// The round-trip time that a first window is spread over before one is known.
const FIRST_RTT: Duration = Duration::from_millis(50);

/// The index of a path's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Bytes in flight on some of the paths.
pub(crate) fn in_flight(flights: &[(Slot, usize)], on: impl Fn(Slot) -> bool) -> usize {
    flights.iter().filter(|(slot, _)| on(*slot)).map(|(_, flight)| flight).sum()
}

/// All windows of one association.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    paths: CoupledController<Rule>,
    /// Acknowledgments are inferred from the inner TCP and may be late because of other paths.
    is_snooping: bool,
    /// Slots of paths that are gone.
    free: Vec<Slot>,
}

impl Windows {
    /// Without paths.
    pub(crate) fn new(rule: Rule) -> Self {
        let config = EngineConfig {
            // Packets are paced, so one report may open the window for as many as it acknowledges.
            byte_counting_limit: f64::INFINITY,
            slow_start: SlowStart::Consecutive { spanning: false },
            ..EngineConfig::default()
        };
        Self { paths: CoupledController::new(rule, config, Share::Equal), is_snooping: false, free: Vec::new() }
    }

    /// A window for a path whose packets have at most so many bytes.
    pub(crate) fn add(&mut self, mtu: u16) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.paths.control_mut().set_open(slot.0, true);
                self.paths.restart(slot.0);
                slot
            }
            None => Slot(self.paths.add_path(mtu.into())),
        }
    }

    /// The path is gone.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.paths.close(slot.0);
        self.free.push(slot);
    }

    /// The path does not answer, or does again.
    pub(crate) fn set_open(&mut self, slot: Slot, open: bool) {
        if open {
            self.set_open_again(slot);
            self.paths.revive(slot.0);
        } else {
            self.paths.close(slot.0);
        }
    }

    /// The path answers again, and is the one that it was.
    pub(crate) fn set_open_again(&mut self, slot: Slot) {
        self.paths.control_mut().set_open(slot.0, true);
    }

    /// From now on paths are measured by what TCP acknowledges inside.
    pub(crate) fn snoop(&mut self) {
        self.is_snooping = true;
        // Nothing is repaired here: the TCP inside sees every loss, and answers it.
        self.paths.answer_all_losses();
        self.paths.control_mut().set_slow_start(SlowStart::Consecutive { spanning: true });
    }

    /// An answer to a heartbeat had waited so long in queues: TCP's acknowledgments cannot tell, for what was put in order
    /// behind the slowest path is late on all of them.
    pub(crate) fn queueing(&mut self, now: Instant, slot: Slot, queueing: Duration) {
        if self.is_snooping {
            self.paths.on_queueing(slot.0, queueing, now);
        }
    }

    /// The rule's name.
    pub(crate) fn rule(&self) -> &'static str {
        self.paths.control().rule().name()
    }

    /// The window in bytes.
    pub(crate) fn window(&self, slot: Slot) -> f64 {
        self.paths.control().cwnd(slot.0)
    }

    /// Which part of the packets the link loses whatever the window; zero where that is not known.
    pub(crate) fn own_loss(&self, slot: Slot) -> f64 {
        self.paths.own_loss(slot.0)
    }

    /// The threshold in bytes, infinite before the first loss.
    pub(crate) fn threshold(&self, slot: Slot) -> f64 {
        self.paths.control().ssthresh(slot.0)
    }

    fn mss(&self, slot: Slot) -> f64 {
        self.paths.control().paths().get(slot.0).map_or(1500.0, |path| path.mss)
    }

    /// How often the window was reduced, and how often that was taken back.
    pub(crate) fn reductions(&self, slot: Slot) -> (u64, u64) {
        self.paths.control().reductions(slot.0)
    }

    /// How fast to send, in bit/s. Where reports are earlier than a round trip by the factor `earliness`, they would let out more
    /// than a TCP with the same window sends in one: there the pace is the limit instead.
    pub(crate) fn pace(&self, slot: Slot, srtt: Option<Duration>, earliness: f64) -> u64 {
        let window = self.window(slot);
        let gain = if window < self.threshold(slot) / 2.0 { GAIN.0 } else { (GAIN.1 / earliness).max(1.0) };
        let srtt = srtt.unwrap_or(FIRST_RTT).max(Duration::from_micros(100)).as_secs_f64();
        (gain * window * 8.0 / srtt) as u64
    }

    /// What a report brought. `busy` is the most that was in flight since the last one, if packets waited.
    pub(crate) fn report<P>(
        &mut self,
        now: Instant,
        slot: Slot,
        outcome: &AckOutcome<P>,
        next: u64,
        rtt: &RttEstimator,
        busy: Option<usize>,
    ) {
        let Slot(path) = slot;
        self.paths.control_mut().set_rto(path, rtt.rto());
        if let Some(rtt) = outcome.rtt {
            self.paths.on_rtt(path, rtt, now);
        }
        if outcome.reordered > 0 {
            self.paths.on_reordered(path, outcome.reordered);
        }
        // What another path has overtaken looks lost to TCP inside: when snooping, one that arrives is enough.
        if self.paths.on_late(path, outcome.spurious, self.is_snooping, now) && outcome.lost == 0 {
            self.paths.on_spurious(path, now);
        }
        if outcome.lost > 0 || outcome.ce > 0 {
            let cause = if outcome.lost > 0 { Cause::Loss } else { Cause::Ecn };
            // A TCP with this window would know a round trip after the packet was sent, and its reduction answers what is lost until then.
            let next = next + (self.window(slot) * outcome.early / self.mss(slot)) as u64;
            let event = Congestion { cause, flight: outcome.flight.max(outcome.peak) as f64, next };
            let doubt = Doubt { missing: outcome.lost, until: Instant::FAR_FUTURE };
            self.paths.on_congestion(path, &event, doubt, now);
        }
        let base = self.paths.control().paths().get(path).map_or(Duration::MAX, |path| path.base_rtt);
        if let Some(rtt) = outcome.rtt {
            if !self.is_snooping && base != Duration::MAX {
                self.paths.on_queueing(path, rtt.saturating_sub(base), now);
            }
            self.paths.control_mut().on_round_trip(path, &RoundTrip { upto: outcome.upto, next, rtt }, now);
        }
        if outcome.acked > 0 || outcome.rtt.is_some() {
            // Reports tell of many packets at once, and pacing spaces what fills the window again: whether the window
            // was the limit is known from what waited, and from how much was in flight at most: in slow start half of
            // it, as in Linux, since the window may have doubled within a round trip; else what the pace fills.
            let window = self.window(slot);
            let filled = if window < self.threshold(slot) { 2.0 } else { GAIN.1 };
            let is_limit = busy.is_some_and(|top| top as f64 * filled >= window);
            let flight = match is_limit {
                true => outcome.flight.max(window as u64),
                // The path was full, but another had room.
                false if self.is_snooping => outcome.flight.min(window as u64 / 4),
                false => outcome.flight,
            };
            let srtt = rtt.srtt().unwrap_or_default();
            let acked = Acked { bytes: outcome.acked, flight, upto: outcome.upto, next, rtt: outcome.rtt, srtt };
            self.paths.on_ack(path, &acked, now);
            self.paths.on_arrived(path, outcome.packets);
        }
    }

    /// Nothing was acknowledged for a retransmission timeout.
    pub(crate) fn timeout(&mut self, now: Instant, slot: Slot, flight: usize, next: u64) {
        // As Linux does it: the threshold follows from the window, not from what programs happened to have in flight, and
        // is held while nothing gets through (RFC 5681 §3.1).
        let (window, threshold) = (self.window(slot), self.threshold(slot));
        let event = Congestion { cause: Cause::Timeout, flight: (flight as f64).max(window), next };
        // One that arrives shows that the path was slow, not silent (RFC 5682 §2).
        self.paths.on_congestion(slot.0, &event, Doubt { missing: 1, until: Instant::FAR_FUTURE }, now);
        if window <= self.mss(slot) {
            self.paths.control_mut().set_ssthresh(slot.0, threshold);
        }
    }

    /// Nothing was sent for long.
    pub(crate) fn idle(&mut self, now: Instant, slot: Slot) {
        self.paths.control_mut().on_idle(slot.0, now);
    }

    /// Whether no new data go out on the path, because of the rule or because it rests; what was lost may be sent again.
    pub(crate) fn is_blocked(&self, slot: Slot, now: Instant) -> bool {
        self.paths.blocked_until(slot.0) > now
    }

    /// When the first of the blocked paths is open again.
    pub(crate) fn unblocked_at(&self, now: Instant) -> Option<Instant> {
        (0..self.paths.control().paths().len()).map(|path| self.paths.blocked_until(path)).filter(|at| *at > now).min()
    }

    /// Whether a packet of `next` bytes has no room in the path's window, where so much is in flight on each path. A path that is alone
    /// has room while less than the window is in flight. Paths that are one flow have no more in flight together than their windows
    /// are together, as a TCP: a part of a packet more on each of them would be much where windows are of few packets, and one less on
    /// each of them, too. One packet always has room.
    pub(crate) fn is_full(&self, slot: Slot, next: usize, flights: &[(Slot, usize)]) -> bool {
        let (window, flight) = (self.window(slot), in_flight(flights, |other| other == slot));
        if flight as f64 >= window || flight == 0 || (flight + next) as f64 <= window || self.sharers(slot) == 1 {
            return flight as f64 >= window;
        }
        let carries = |path: &usize| flights.iter().any(|(slot, _)| slot.0 == *path);
        let windows: f64 = self.paths.together(slot.0).filter(carries).map(|path| self.window(Slot(path))).sum();
        (in_flight(flights, |other| self.paths.are_one(slot.0, other.0)) + next) as f64 > windows
    }

    /// Whether packets wait in a queue of the path.
    pub(crate) fn has_queue(&self, slot: Slot) -> bool {
        self.paths.has_queue(slot.0)
    }

    /// Whether the path rests, because another carries through the same bottleneck.
    pub(crate) fn rests(&self, slot: Slot) -> bool {
        self.paths.rests(slot.0)
    }

    /// How many paths share this one's bottleneck, this one included.
    pub(crate) fn sharers(&self, slot: Slot) -> u32 {
        self.paths.sharers(slot.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1500;

    /// Two paths out of slow start with ten packets each, whose queues are known for ten seconds.
    fn two(second: impl Fn(u64) -> u64) -> (Windows, [Slot; 2]) {
        let mut windows = Windows::new("mhip".parse().unwrap());
        let slots = [windows.add(MSS), windows.add(MSS)];
        for slot in slots {
            windows.paths.control_mut().set_cwnd(slot.0, 10.0 * f64::from(MSS));
            windows.paths.control_mut().set_ssthresh(slot.0, 10.0 * f64::from(MSS));
        }
        for millis in (0..10_000).step_by(10) {
            for (slot, queue) in [(slots[0], millis % 2_300), (slots[1], second(millis))] {
                let rtt = Duration::from_micros(40_000 + queue * 30);
                let mut estimator = RttEstimator::default();
                estimator.sample(rtt);
                let outcome = AckOutcome { rtt: Some(rtt), ..AckOutcome::<()>::default() };
                windows.report(at(millis), slot, &outcome, 100, &estimator, None);
            }
        }
        (windows, slots)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn packets(windows: &Windows, slots: [Slot; 2]) -> [f64; 2] {
        slots.map(|slot| windows.window(slot) / f64::from(MSS))
    }

    fn lost(windows: &mut Windows, millis: u64, slot: Slot, upto: u64) {
        let outcome = AckOutcome { lost: 1, flight: 10 * u64::from(MSS), upto, ..AckOutcome::<()>::default() };
        windows.report(at(millis), slot, &outcome, upto + 10, &RttEstimator::default(), None);
    }

    /// What had been taken for lost.
    fn came(windows: &mut Windows, millis: u64, slot: Slot) {
        windows.report(
            at(millis),
            slot,
            &AckOutcome::<()> { spurious: 1, upto: 97, ..AckOutcome::<()>::default() },
            110,
            &RttEstimator::default(),
            None,
        );
    }

    /// RFC 5681 §3.1: no more is in flight than the window, which more than one path could each exceed by a part of a packet.
    #[test]
    fn paths_that_are_one_flow_have_no_more_in_flight_than_their_windows() {
        for (phase, are_one) in [(0, true), (1_000, false)] {
            let (mut windows, slots) = two(|millis| (millis + phase) % 2_300);
            for slot in slots {
                windows.paths.control_mut().set_cwnd(slot.0, 2.5 * f64::from(MSS));
            }
            let is_full = |flights: [usize; 2], next| {
                windows.is_full(slots[0], next, &[(slots[0], flights[0]), (slots[1], flights[1])])
            };
            assert!(!is_full([1500, 3750], 1500), "two packets fit");
            assert!(!is_full([3000, 3000], 1500), "half of a third one and half of another's");
            assert_eq!(is_full([3000, 4500], 1500), are_one, "the other has its half");
            assert!(!is_full([3000, 3750], 700), "a small one fits");
            assert!(is_full([3750, 0], 100));
            // What left before the path had new keys is in flight on it as well.
            assert!(windows.is_full(slots[0], 1500, &[(slots[0], 2250), (slots[0], 2250)]));
            windows.paths.control_mut().set_cwnd(slots[0].0, 1000.0);
            assert!(!windows.is_full(slots[0], 1500, &[(slots[0], 0), (slots[1], 3750)]), "one always may be");
        }
    }

    /// RFC 6582 §3.2: one reduction answers what is lost until all that was sent before it is acknowledged. A TCP, which hears of a loss
    /// four tenths of a round trip later, would have sent four tenths of a window by then.
    #[test]
    fn one_reduction_answers_what_a_tcp_would_have_sent_until_it_knew() {
        for (early, expected) in [(0.0, [1, 2]), (0.4, [1, 1])] {
            let mut windows = Windows::new("newreno".parse().unwrap());
            let slot = windows.add(MSS);
            windows.paths.control_mut().set_cwnd(slot.0, 10.0 * f64::from(MSS));
            windows.paths.control_mut().set_ssthresh(slot.0, 10.0 * f64::from(MSS));
            let mut report = |acked: u64, lost, upto| {
                let outcome = AckOutcome { acked, lost, early, flight: 15_000, upto, ..AckOutcome::<()>::default() };
                windows.report(at(upto), slot, &outcome, upto + 10, &RttEstimator::default(), None);
                windows.reductions(slot).0
            };
            let first = report(0, 1, 90);
            report(1_500, 0, 102);
            assert_eq!([first, report(0, 1, 103)], expected);
            report(1_500, 0, 114);
            assert_eq!(report(0, 1, 115), expected[1] + 1, "it answers no more than that");
        }
    }

    #[test]
    fn paths_through_one_bottleneck_are_halved_together_and_once() {
        let (mut windows, slots) = two(|millis| millis % 2_300);
        assert_eq!(slots.map(|slot| windows.sharers(slot)), [2, 2]);
        lost(&mut windows, 10_000, slots[0], 95);
        assert_eq!(packets(&windows, slots), [5.0, 5.0]);
        // What the other had in flight then was in the same queue.
        lost(&mut windows, 10_020, slots[1], 99);
        assert_eq!(packets(&windows, slots), [5.0, 5.0]);
        // That it came after all says nothing of what the first has lost.
        came(&mut windows, 10_030, slots[1]);
        assert_eq!(packets(&windows, slots), [5.0, 5.0]);
        came(&mut windows, 10_040, slots[0]);
        assert_eq!(packets(&windows, slots), [10.0, 10.0]);
    }

    #[test]
    fn a_path_that_lost_itself_stays_halved_when_the_other_had_not() {
        let (mut windows, slots) = two(|millis| millis % 2_300);
        lost(&mut windows, 10_000, slots[0], 95);
        lost(&mut windows, 10_020, slots[1], 99);
        came(&mut windows, 10_030, slots[0]);
        assert_eq!(packets(&windows, slots), [10.0, 5.0]);
    }

    #[test]
    fn paths_of_their_own_are_halved_alone() {
        let (mut windows, slots) = two(|millis| millis % 1_700);
        assert_eq!(slots.map(|slot| windows.sharers(slot)), [1, 1]);
        lost(&mut windows, 10_000, slots[0], 95);
        assert_eq!(packets(&windows, slots), [5.0, 10.0]);
        lost(&mut windows, 10_020, slots[1], 99);
        assert_eq!(packets(&windows, slots), [5.0, 5.0]);
        came(&mut windows, 10_030, slots[0]);
        assert_eq!(packets(&windows, slots), [10.0, 5.0]);
    }
}

//! The windows of an association's paths: any rule of `congestion`, over all of them at once, fed by reports.
//!
//! Added to the rule is the end of slow start by delay (HyStart++, RFC 9406 §4.2), because what the first overshoot
//! loses, the resequencer of the peer has to wait for.

use crate::sent::News;
use clock::{Duration, Instant};
use congestion::{
    Acked, Backoff, BadTunable, Bottlenecks, Cause, Congestion, Controller, EngineConfig, Group, Round, RoundDecision,
    Rule, Undo, WindowRule,
};

/// The pace in windows per round trip, in slow start and after: Linux' `tcp_pacing_ss_ratio` and `_ca_ratio`.
const GAIN: (f64, f64) = (2.0, 1.2);
/// The round-trip time that a first window is spread over before one is known.
const FIRST_RTT: Duration = Duration::from_millis(50);
/// MIN_RTT_THRESH, MAX_RTT_THRESH, MIN_RTT_DIVISOR and N_RTT_SAMPLE of RFC 9406 §4.3.
const HYSTART: (Duration, Duration, u64, u32) = (Duration::from_millis(4), Duration::from_millis(16), 8, 8);

/// The index of a path's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// All windows of one association.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    controller: Controller<Sharing>,
    bottlenecks: Bottlenecks,
    notes: Vec<Notes>,
    /// What is acknowledged is known from inside, where it may have waited for other paths.
    by_ear: bool,
    /// Slots of paths that are gone.
    free: Vec<Slot>,
}

/// What is noted of a path besides its window.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    /// So many of the packets whose loss the last reduction answered have to arrive after all to show that it was wrong. None
    /// if nothing can: a path that was given up for dead begins anew, whatever becomes of what it had under way.
    doubtful: u32,
    /// So many round-trip times in a row were longer than without a queue, since then.
    late: Option<(u32, Instant)>,
    /// The sequence number of its next packet, at the last report.
    next: u64,
    /// The path whose loss it answered last, if it was another's.
    because: Option<Slot>,
}

impl Windows {
    /// Without paths.
    pub(crate) fn new(rule: Rule) -> Self {
        // Packets are paced, so one report may open the window for as many as it acknowledges.
        let config = EngineConfig { byte_counting_limit: f64::INFINITY, ..EngineConfig::default() };
        Self {
            controller: Controller::new(Sharing { rule, shares: Vec::new() }, config),
            bottlenecks: Bottlenecks::default(),
            notes: Vec::new(),
            by_ear: false,
            free: Vec::new(),
        }
    }

    /// A window for a path whose packets have at most so many bytes.
    pub(crate) fn add(&mut self, mtu: u16) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.controller.set_open(slot.0, true);
                self.restart(slot);
                slot
            }
            None => {
                self.notes.push(Notes::default());
                Slot(self.controller.add_path(mtu.into()))
            }
        }
    }

    /// The path is gone.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.controller.set_open(slot.0, false);
        self.free.push(slot);
    }

    /// The path does not answer, or does again.
    pub(crate) fn set_open(&mut self, slot: Slot, open: bool) {
        self.controller.set_open(slot.0, open);
        if open {
            self.restart(slot);
        }
    }

    /// The path answers again, and is the one that it was.
    pub(crate) fn set_open_again(&mut self, slot: Slot) {
        self.controller.set_open(slot.0, true);
    }

    /// From now on paths are measured by what TCP acknowledges inside.
    pub(crate) fn listen(&mut self) {
        self.by_ear = true;
    }

    /// An answer to a heartbeat had waited so long in queues: TCP's acknowledgments cannot tell, for what was put in order
    /// behind the slowest path is late on all of them.
    pub(crate) fn queueing(&mut self, now: Instant, slot: Slot, queueing: Duration) {
        if self.by_ear && self.bottlenecks.sample(now, slot.0, queueing) {
            self.share();
        }
    }

    /// The rule's name.
    pub(crate) fn rule(&self) -> &'static str {
        self.controller.rule().rule.name()
    }

    /// The window in bytes.
    pub(crate) fn window(&self, slot: Slot) -> f64 {
        self.controller.cwnd(slot.0)
    }

    /// The threshold in bytes, infinite before the first loss.
    pub(crate) fn threshold(&self, slot: Slot) -> f64 {
        self.controller.ssthresh(slot.0)
    }

    /// How fast to send, in bit/s.
    pub(crate) fn pace(&self, slot: Slot, srtt: Option<Duration>) -> u64 {
        let window = self.window(slot);
        let gain = if window < self.threshold(slot) / 2.0 { GAIN.0 } else { GAIN.1 };
        let srtt = srtt.unwrap_or(FIRST_RTT).max(Duration::from_micros(100)).as_secs_f64();
        (gain * window * 8.0 / srtt) as u64
    }

    /// What a report brought. `busy` is the most that was under way since the last one, if packets waited.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        slot: Slot,
        news: &News,
        next: u64,
        srtt: Option<Duration>,
        busy: Option<usize>,
    ) {
        let Slot(path) = slot;
        let Some(notes) = self.notes.get_mut(path) else { return };
        let doubtful = notes.doubtful;
        let left = doubtful.saturating_sub(news.spurious);
        notes.doubtful = left;
        // What another path has overtaken looks lost to TCP inside: by ear, one that arrives is enough.
        let enough = if self.by_ear { 1 } else { doubtful };
        notes.next = next;
        let is_own = notes.because.is_none();
        if doubtful > 0 && news.spurious >= enough && news.lost == 0 && is_own {
            self.controller.on_spurious(path, Undo::Restore, now);
            for other in self.of_one_bottleneck(slot) {
                // Unless it has lost packets of its own since.
                if self.notes.get(other).is_some_and(|notes| notes.because == Some(slot) && notes.doubtful == 0) {
                    self.controller.on_spurious(other, Undo::Restore, now);
                }
            }
        }
        if news.lost > 0 || news.ce > 0 {
            let cause = if news.lost > 0 { Cause::Loss } else { Cause::Ecn };
            let flight = news.flight.max(news.peak) as f64;
            let event = Congestion { cause, flight, next };
            let is_new = self.controller.on_congestion(path, &event, now);
            self.doubt(slot, if is_new { 0 } else { left } + news.lost);
            if is_new {
                self.together(now, slot, cause);
            }
        }
        let base = self.controller.paths().get(path).map_or(Duration::MAX, |path| path.base_rtt);
        if let Some(rtt) = news.rtt
            && !self.by_ear
            && base != Duration::MAX
            && self.bottlenecks.sample(now, path, rtt.saturating_sub(base))
        {
            self.share();
        }
        if let Some(rtt) = news.rtt.filter(|_| base != Duration::MAX) {
            self.end_slow_start(now, slot, rtt, base);
        }
        if news.acked > 0 || news.rtt.is_some() {
            // Reports tell of many packets at once, and pacing spaces what fills the window again: whether the window
            // was the limit is known from what waited, and from how much was under way at most: in slow start half of
            // it, as in Linux, since the window may have doubled within a round trip; else what the pace fills.
            let window = self.window(slot);
            let filled = if window < self.threshold(slot) { 2.0 } else { GAIN.1 };
            let is_limit = busy.is_some_and(|top| top as f64 * filled >= window);
            let flight = match is_limit {
                true => news.flight.max(window as u64),
                // The path was full, but another had room.
                false if self.by_ear => news.flight.min(window as u64 / 4),
                false => news.flight,
            };
            let srtt = srtt.unwrap_or_default();
            let acked = Acked { bytes: news.acked, flight, upto: news.upto, next, rtt: news.rtt, srtt };
            self.controller.on_ack(path, &acked, now);
        }
    }

    /// Nothing was acknowledged for a retransmission timeout.
    pub(crate) fn timeout(&mut self, now: Instant, slot: Slot, flight: usize, next: u64) {
        // As Linux does it: the threshold follows from the window, not from what programs happened to have under way, and
        // is held while nothing gets through (RFC 5681 §3.1).
        let (window, threshold) = (self.window(slot), self.threshold(slot));
        // One that arrives shows that the path was slow, not silent (RFC 5682 §2).
        self.doubt(slot, 1);
        self.blame(slot, None);
        let mss = self.controller.paths().get(slot.0).map_or(1500.0, |path| path.mss);
        let event = Congestion { cause: Cause::Timeout, flight: (flight as f64).max(window), next };
        self.controller.on_congestion(slot.0, &event, now);
        if window <= mss {
            self.controller.set_ssthresh(slot.0, threshold);
        }
    }

    /// Nothing was sent for long.
    pub(crate) fn idle(&mut self, now: Instant, slot: Slot) {
        self.controller.on_idle(slot.0, now);
    }

    /// Rules that treat each path as a TCP of its own leave it to us that paths through one bottleneck are one TCP
    /// together, as those of a Congestion Manager are (RFC 3124 §2): of n, each grows by an n-th of a Reno's packet in a
    /// round trip, and what one of them loses all answer, once in a round trip. Were only their growth divided (by n²,
    /// M. Honda and others, *Multipath congestion control for shared bottleneck*, 2009), they would get a TCP's rate where
    /// every packet is as likely to be lost as any other, but half of it where a full queue hits all of them at once.
    fn share(&mut self) {
        if !self.are_separate_tcps() {
            return;
        }
        let sharers = (0..self.controller.paths().len()).map(|path| self.bottlenecks.sharers(path));
        self.controller.rule_mut().shares = sharers.map(|sharers| 1.0 / f64::from(sharers)).collect();
    }

    /// The rule knows nothing of other paths.
    fn are_separate_tcps(&self) -> bool {
        matches!(self.controller.rule().rule, Rule::Mhip(_) | Rule::NewReno(_))
    }

    /// The other paths through the bottleneck of this one, as far as it is left to us.
    fn of_one_bottleneck(&self, Slot(path): Slot) -> Vec<usize> {
        let others = (0..self.notes.len()).filter(|other| self.bottlenecks.are_shared(path, *other));
        if self.are_separate_tcps() { others.collect() } else { Vec::new() }
    }

    /// What one path has lost, others through its bottleneck answer, too.
    fn together(&mut self, now: Instant, slot: Slot, cause: Cause) {
        self.blame(slot, None);
        for other in self.of_one_bottleneck(slot) {
            let next = self.notes.get(other).map_or(0, |notes| notes.next);
            let event = Congestion { cause, flight: self.window(Slot(other)), next };
            if self.controller.on_congestion(other, &event, now) {
                self.blame(Slot(other), Some(slot));
                self.doubt(Slot(other), 0);
            }
        }
    }

    /// Notes whose loss the path answered.
    fn blame(&mut self, Slot(path): Slot, because: Option<Slot>) {
        if let Some(notes) = self.notes.get_mut(path) {
            notes.because = because;
        }
    }

    /// How many paths share this one's bottleneck, this one included.
    pub(crate) fn sharers(&self, slot: Slot) -> u32 {
        self.bottlenecks.sharers(slot.0)
    }

    /// Slow start ends when a queue is seen. RFC 9406 looks at the least of all samples of a round, and so sees it when it is
    /// a round old and the window twice what fits; with samples that do not wait for the receiver as many in a row will do.
    /// By ear they may wait for another path: then it is a round trip without an early one.
    fn end_slow_start(&mut self, now: Instant, slot: Slot, rtt: Duration, base: Duration) {
        let (window, by_ear) = (self.window(slot), self.by_ear);
        let is_slow_start = window < self.threshold(slot);
        let Some(Notes { late, .. }) = self.notes.get_mut(slot.0) else { return };
        let (least, most, divisor, enough) = HYSTART;
        let is_late = is_slow_start && rtt.saturating_sub(base) >= (base / divisor).max(least).min(most);
        *late = is_late.then(|| late.map_or((1, now), |(samples, since)| (samples + 1, since)));
        if late.is_some_and(|(samples, since)| samples >= enough && (!by_ear || now - since >= rtt)) {
            self.controller.set_ssthresh(slot.0, window);
        }
    }

    fn doubt(&mut self, Slot(path): Slot, packets: u32) {
        if let Some(notes) = self.notes.get_mut(path) {
            notes.doubtful = packets;
        }
    }

    fn restart(&mut self, slot: Slot) {
        self.doubt(slot, 0);
        self.blame(slot, None);
        self.controller.path_changed(slot.0);
        self.bottlenecks.forget(slot.0);
        let mss = self.controller.paths().get(slot.0).map_or(1500.0, |path| path.mss);
        self.controller.end_recovery(slot.0);
        self.controller.set_cwnd(slot.0, congestion::InitialWindow::Rfc6928.bytes(mss));
        // What it carried before, or did not carry any more when it failed, is no measure of what it does now.
        self.controller.set_ssthresh(slot.0, f64::INFINITY);
    }
}

/// A rule whose growth paths through one bottleneck divide.
#[derive(Clone, Debug)]
struct Sharing {
    rule: Rule,
    /// By path, what part of a TCP its growth is.
    shares: Vec<f64>,
}

impl WindowRule for Sharing {
    fn path_added(&mut self, path: usize) {
        self.rule.path_added(path);
        self.shares.resize(path + 1, 1.0);
    }
    fn path_changed(&mut self, path: usize) {
        self.rule.path_changed(path);
    }
    fn seed(&mut self, rng: clock::Rng) {
        self.rule.seed(rng);
    }
    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        self.rule.tune(name, value)
    }
    fn acknowledged(&mut self, path: usize, group: Group<'_>, acked: &Acked) -> bool {
        self.rule.acknowledged(path, group, acked)
    }
    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.rule.slow_start(path, group, acked)
    }
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.rule.increase(path, group, acked) * self.shares.get(path).copied().unwrap_or(1.0)
    }
    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        self.rule.decrease(path, group, cause)
    }
    fn on_round(&mut self, path: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        self.rule.on_round(path, group, round)
    }
    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.rule.limited(path, group, acked);
    }
    fn undone(&mut self, path: usize, group: Group<'_>) {
        self.rule.undone(path, group);
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
            windows.controller.set_cwnd(slot.0, 10.0 * f64::from(MSS));
            windows.controller.set_ssthresh(slot.0, 10.0 * f64::from(MSS));
        }
        for millis in (0..10_000).step_by(10) {
            for (slot, queue) in [(slots[0], millis % 2_300), (slots[1], second(millis))] {
                let rtt = Some(Duration::from_micros(40_000 + queue * 30));
                windows.report(at(millis), slot, &News { rtt, ..News::default() }, 100, rtt, None);
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
        let news = News { lost: 1, flight: 10 * u64::from(MSS), upto, ..News::default() };
        windows.report(at(millis), slot, &news, upto + 10, None, None);
    }

    /// What had been taken for lost.
    fn came(windows: &mut Windows, millis: u64, slot: Slot) {
        windows.report(at(millis), slot, &News { spurious: 1, upto: 97, ..News::default() }, 110, None, None);
    }

    #[test]
    fn paths_through_one_bottleneck_are_halved_together_and_once() {
        let (mut windows, slots) = two(|millis| millis % 2_300);
        assert_eq!(slots.map(|slot| windows.sharers(slot)), [2, 2]);
        lost(&mut windows, 10_000, slots[0], 95);
        assert_eq!(packets(&windows, slots), [5.0, 5.0]);
        // What the other had under way then was in the same queue.
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

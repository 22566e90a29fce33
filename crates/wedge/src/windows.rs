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
        next: u32,
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
        if doubtful > 0 && news.spurious >= enough && news.lost == 0 {
            self.controller.on_spurious(path, Undo::Restore, now);
        }
        if news.lost > 0 || news.ce > 0 {
            let cause = if news.lost > 0 { Cause::Loss } else { Cause::Ecn };
            let flight = news.flight.max(news.peak) as f64;
            let event = Congestion { cause, flight, next: next.into() };
            let of_before = if self.controller.on_congestion(path, &event, now) { 0 } else { left };
            self.doubt(slot, of_before + news.lost);
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
            let acked =
                Acked { bytes: news.acked, flight, upto: news.upto.into(), next: next.into(), rtt: news.rtt, srtt };
            self.controller.on_ack(path, &acked, now);
        }
    }

    /// Nothing was acknowledged for a retransmission timeout.
    pub(crate) fn timeout(&mut self, now: Instant, slot: Slot, flight: usize, next: u32) {
        // As Linux does it: the threshold follows from the window, not from what programs happened to have under way, and
        // is held while nothing gets through (RFC 5681 §3.1).
        let (window, threshold) = (self.window(slot), self.threshold(slot));
        // One that arrives shows that the path was slow, not silent (RFC 5682 §2).
        self.doubt(slot, 1);
        let mss = self.controller.paths().get(slot.0).map_or(1500.0, |path| path.mss);
        let event = Congestion { cause: Cause::Timeout, flight: (flight as f64).max(window), next: next.into() };
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
    /// together: of n, each grows by 1/n² of a Reno's packet in a round trip and so gets an n-th of a Reno's rate, which
    /// goes with the square root (M. Honda and others, *Multipath congestion control for shared bottleneck*, 2009).
    fn share(&mut self) {
        let shares = (0..self.controller.paths().len()).map(|path| f64::from(self.bottlenecks.sharers(path)));
        let shares: Vec<f64> = shares.map(|sharers| 1.0 / (sharers * sharers)).collect();
        let rule = self.controller.rule_mut();
        if matches!(rule.rule, Rule::Mhip(_) | Rule::NewReno(_)) {
            rule.shares = shares;
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

//! The two levels of windows (papers 2 and 3, §IV-B; ALGORITHMS §6.3, §6.4): one for each path, and for the whole their
//! sum, which is computed and never stored, so that it cannot be anything else (M9). The arithmetic is that of
//! [`congestion::Mhip`]; this knows which packets a reduction was for.

use clock::{Duration, Instant};
use congestion::{
    Acked, Bottlenecks, Cause, Congestion, Controller, EngineConfig, Growth, InitialWindow, Mhip, SlowStartTest, Undo,
    WindowRounding,
};

/// The windows of a flow's paths, in packets: to the controller a packet is a byte.
#[derive(Clone, Debug)]
pub struct Windows {
    control: Controller<Mhip>,
    /// For [`Growth::PerBottleneck`].
    bottlenecks: Bottlenecks,
    /// Of each path the last reduction, while it may still be taken back.
    tokens: Vec<Option<Token>>,
}

/// A reduction that may turn out needless.
#[derive(Clone, Debug)]
struct Token {
    until: Instant,
    /// What was missing: all of it must turn out to have been late only.
    holes: Vec<u64>,
}

impl Windows {
    /// Windows and thresholds, a pair for each path.
    pub fn new(paths: &[(f64, f64)], growth: Growth) -> Self {
        // Which packets count, and which losses belong to one reduction, the owner knows.
        let config = EngineConfig {
            initial_window: InitialWindow::Packets(1),
            initial_ssthresh: f64::INFINITY,
            byte_counting_limit: f64::INFINITY,
            window_limited_growth: false,
            slow_start_test: SlowStartTest::Below,
            rounding: WindowRounding::Exact,
        };
        let mut control = Controller::new(Mhip { growth, ..Mhip::default() }, config);
        for (cwnd, ssthresh) in paths {
            let path = control.add_path(1);
            control.set_cwnd(path, *cwnd);
            control.set_ssthresh(path, *ssthresh);
        }
        Self { control, bottlenecks: Bottlenecks::default(), tokens: vec![None; paths.len()] }
    }

    /// The window of a path; there is no path beyond the last.
    #[inline]
    pub fn cwnd(&self, path: usize) -> f64 {
        self.control.paths().get(path).map_or(0.0, |path| path.cwnd)
    }

    /// The slow-start threshold of a path.
    #[inline]
    pub fn ssthresh(&self, path: usize) -> f64 {
        self.control.paths().get(path).map_or(0.0, |path| path.ssthresh)
    }

    /// The global window.
    pub fn total(&self) -> f64 {
        self.control.association_window()
    }

    /// The global threshold.
    pub fn total_ssthresh(&self) -> f64 {
        self.control.association_ssthresh()
    }

    /// A packet that was sent on `path` is acknowledged: its window grows. `srtt` is the path's smoothed round-trip time;
    /// zero without a sample.
    #[inline]
    pub fn on_acknowledged(&mut self, path: usize, srtt: Duration, now: Instant) {
        if path < self.tokens.len() {
            let rtt = (!srtt.is_zero()).then_some(srtt);
            self.control.on_ack(path, &Acked { bytes: 1, flight: 0, upto: 0, next: 0, rtt, srtt }, now);
        }
    }

    /// A packet has waited so long in the queues of `path`.
    #[inline]
    pub fn on_queueing(&mut self, path: usize, queueing: Duration, now: Instant) {
        if self.control.rule().growth != Growth::PerBottleneck || !self.bottlenecks.sample(now, path, queueing) {
            return;
        }
        let lowest = |path| (0..path).find(|other| self.bottlenecks.are_shared(*other, path)).unwrap_or(path);
        self.control.rule_mut().bundles = (0..self.tokens.len()).map(lowest).collect();
    }

    /// Whether a loss on one path is one on the other too: only with [`Growth::PerBottleneck`].
    pub fn are_bundled(&self, one: usize, other: usize) -> bool {
        self.control.rule().bundle(one) == self.control.rule().bundle(other)
    }

    /// The path and those bundled with it.
    pub fn bundle(&self, path: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.tokens.len()).filter(move |other| self.are_bundled(path, *other))
    }

    /// The packet at `hole`, sent on `path`, is missing: half the window of that path, and of those bundled with it. Until
    /// `until` it may turn out to have been late only.
    pub fn on_missing(&mut self, path: usize, hole: u64, until: Instant, now: Instant) {
        if let Some(token) = self.tokens.get_mut(path) {
            *token = Some(Token { until, holes: vec![hole] });
            for other in self.bundle(path).collect::<Vec<_>>() {
                self.reduce(other, Cause::Loss, now);
            }
        }
    }

    /// Another packet of the same window of `path` is missing: no further reduction, but a reason for the last.
    pub fn on_also_missing(&mut self, path: usize, hole: u64) {
        if let Some(token) = self.tokens.get_mut(path).and_then(Option::as_mut) {
            token.holes.push(hole);
        }
    }

    /// The packet at `hole` is acknowledged at `now`. If it was missing and comes in time it must be the original: then,
    /// if nothing else was missing, the reduction is taken back, without loss of what has grown since. Returns the path
    /// whose reduction that was.
    pub fn on_arrived(&mut self, hole: u64, now: Instant) -> Option<usize> {
        let is_for_it = |slot: &Option<Token>| slot.as_ref().is_some_and(|token| token.holes.contains(&hole));
        let path = self.tokens.iter().position(is_for_it)?;
        let slot = self.tokens.get_mut(path)?;
        let token = slot.as_mut()?;
        if now > token.until {
            *slot = None;
            return None;
        }
        token.holes.retain(|missing| *missing != hole);
        if !token.holes.is_empty() {
            return None;
        }
        *slot = None;
        let bundled: Vec<usize> = self.bundle(path).collect();
        let restored = bundled.into_iter().filter(|other| self.control.on_spurious(*other, Undo::Restore, now)).count();
        (restored > 0).then_some(path)
    }

    /// Nothing sent on `path` was acknowledged for too long (M16); `again` if that is so since the last time, which
    /// leaves the threshold (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, path: usize, again: bool, now: Instant) {
        let Some(token) = self.tokens.get_mut(path) else { return };
        *token = None;
        let ssthresh = self.control.ssthresh(path);
        self.reduce(path, Cause::Timeout, now);
        if again {
            self.control.set_ssthresh(path, ssthresh);
        }
    }

    fn reduce(&mut self, path: usize, cause: Cause, now: Instant) {
        let flight = self.control.cwnd(path);
        self.control.on_congestion(path, &Congestion { cause, flight, next: 0 }, now);
        self.control.end_recovery(path);
    }
}

//! The two levels of windows (papers 2 and 3, §IV-B; ALGORITHMS §6.3, §6.4): one for each path, and for the whole their
//! sum, which is computed and never stored, so that it cannot be anything else (M9). The arithmetic is that of
//! [`congestion::Mhip`]; this knows which packets a reduction was for.

use clock::{Duration, Instant};
use congestion::{
    Acked, Cause, Congestion, CoupledController, Doubt, EngineConfig, Growth, InitialWindow, Mhip, Share,
    SlowStartTest, WindowRounding,
};

/// The windows of a flow's paths, in packets: to the controller a packet is a byte.
#[derive(Clone, Debug)]
pub struct Windows {
    paths: CoupledController<Mhip>,
    /// Paths through one bottleneck are one flow together.
    per_bottleneck: bool,
    /// Of each path what was missing when its window fell last: all of it must turn out to have been late only.
    holes: Vec<Vec<u64>>,
}

impl Windows {
    /// Windows and thresholds, a pair for each path. `per_bottleneck`: paths through one bottleneck grow as one Reno, which a loss
    /// halves as a whole.
    pub fn new(paths: &[(f64, f64)], growth: Growth, per_bottleneck: bool) -> Self {
        // Which packets count, and which losses belong to one reduction, the owner knows.
        let config = EngineConfig {
            initial_window: InitialWindow::Packets(1),
            byte_counting_limit: f64::INFINITY,
            window_limited_growth: false,
            slow_start_test: SlowStartTest::Below,
            rounding: WindowRounding::Exact,
            ..EngineConfig::default()
        };
        let control = CoupledController::new(Mhip { growth }, config, Share::ByWindow);
        let mut control = if per_bottleneck { control } else { control.uncoupled() };
        for (cwnd, ssthresh) in paths {
            let path = control.add_path(1);
            control.control_mut().set_cwnd(path, *cwnd);
            control.control_mut().set_ssthresh(path, *ssthresh);
        }
        Self { paths: control, per_bottleneck, holes: vec![Vec::new(); paths.len()] }
    }

    /// The window of a path; there is no path beyond the last.
    #[inline]
    pub fn cwnd(&self, path: usize) -> f64 {
        self.paths.control().paths().get(path).map_or(0.0, |path| path.cwnd)
    }

    /// The slow-start threshold of a path.
    #[inline]
    pub fn ssthresh(&self, path: usize) -> f64 {
        self.paths.control().paths().get(path).map_or(0.0, |path| path.ssthresh)
    }

    /// The global window.
    pub fn total(&self) -> f64 {
        self.paths.control().association_window()
    }

    /// The global threshold.
    pub fn total_ssthresh(&self) -> f64 {
        self.paths.control().association_ssthresh()
    }

    /// A packet that was sent on `path` is acknowledged: its window grows. `srtt` is the path's smoothed round-trip time;
    /// zero without a sample.
    #[inline]
    pub fn on_acknowledged(&mut self, path: usize, srtt: Duration, now: Instant) {
        if path < self.holes.len() {
            let rtt = (!srtt.is_zero()).then_some(srtt);
            self.paths.on_ack(path, &Acked { bytes: 1, flight: 0, upto: 0, next: 0, rtt, srtt }, now);
        }
    }

    /// A packet has waited so long in the queues of `path`.
    #[inline]
    pub fn on_queueing(&mut self, path: usize, queueing: Duration, now: Instant) {
        if self.per_bottleneck {
            self.paths.on_queueing(path, queueing, now);
        }
    }

    /// Whether a loss on one path is one on the other too: only with `per_bottleneck`.
    pub fn are_bundled(&self, one: usize, other: usize) -> bool {
        self.paths.are_one(one, other)
    }

    /// The path and those bundled with it.
    pub fn bundle(&self, path: usize) -> impl Iterator<Item = usize> + '_ {
        self.paths.together(path)
    }

    /// The packet at `hole`, sent on `path`, is missing: half the window of that path, and of those bundled with it. Until
    /// `until` it may turn out to have been late only.
    pub fn on_missing(&mut self, path: usize, hole: u64, until: Instant, now: Instant) {
        if let Some(holes) = self.holes.get_mut(path) {
            *holes = vec![hole];
            self.reduce(path, Cause::Loss, Doubt { missing: 1, until }, now);
        }
    }

    /// Another packet of the same window of `path` is missing: no further reduction, but a reason for the last.
    pub fn on_also_missing(&mut self, path: usize, hole: u64) {
        if let Some(holes) = self.holes.get_mut(path).filter(|holes| !holes.is_empty()) {
            holes.push(hole);
            self.paths.on_also_missing(path, Doubt { missing: 1, ..Doubt::NONE });
        }
    }

    /// The packet at `hole` is acknowledged at `now`. If it was missing and comes in time (ADDR, ALGORITHMS §6.4) it must be the
    /// original: then, if nothing else was missing, the reduction is taken back, without loss of what has grown since. Returns
    /// the path whose reduction that was.
    pub fn on_arrived(&mut self, hole: u64, now: Instant) -> Option<usize> {
        let path = self.holes.iter().position(|holes| holes.contains(&hole))?;
        let holes = self.holes.get_mut(path)?;
        holes.retain(|missing| *missing != hole);
        (self.paths.on_late(path, 1, false, now) && self.paths.on_spurious(path, now)).then_some(path)
    }

    /// Nothing sent on `path` was acknowledged for too long (M16); `again` if that is so since the last time, which
    /// leaves the threshold (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, path: usize, again: bool, now: Instant) {
        let Some(holes) = self.holes.get_mut(path) else { return };
        holes.clear();
        let ssthresh = self.ssthresh(path);
        self.reduce(path, Cause::Timeout, Doubt::NONE, now);
        if again {
            self.paths.control_mut().set_ssthresh(path, ssthresh);
        }
    }

    fn reduce(&mut self, path: usize, cause: Cause, doubt: Doubt, now: Instant) {
        let event = Congestion { cause, flight: self.cwnd(path), next: 0 };
        self.paths.on_congestion(path, &event, doubt, now);
        for path in 0..self.holes.len() {
            self.paths.control_mut().end_recovery(path);
        }
    }
}

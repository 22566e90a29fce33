//! The two levels of windows (papers 2 and 3, §IV-B; ALGORITHMS §6.3, §6.4): one for each path, and for the whole their
//! sum, which is computed and never stored, so that it cannot be anything else (M9).

use clock::{Duration, Instant};

use super::config::Growth;

/// The windows of a flow's paths, in packets.
#[derive(Clone, Debug)]
pub struct Windows {
    paths: Vec<Window>,
    growth: Growth,
}

#[derive(Clone, Debug)]
struct Window {
    cwnd: f64,
    ssthresh: f64,
    srtt: Duration,
    /// The last reduction, while it may still be taken back.
    token: Option<Token>,
}

/// A reduction that may turn out needless.
#[derive(Clone, Debug)]
struct Token {
    cwnd: f64,
    ssthresh: f64,
    until: Instant,
    /// What was missing: all of it must turn out to have been late only.
    holes: Vec<u64>,
}

/// The least threshold, in packets (M10).
const LEAST: f64 = 2.0;

impl Windows {
    /// Windows and thresholds, a pair for each path.
    pub fn new(paths: &[(f64, f64)], growth: Growth) -> Self {
        let window = |(cwnd, ssthresh): &(f64, f64)| Window {
            cwnd: cwnd.max(1.0),
            ssthresh: *ssthresh,
            srtt: Duration::ZERO,
            token: None,
        };
        Self { paths: paths.iter().map(window).collect(), growth }
    }

    /// The window of a path; 0 for one that there is not.
    #[inline]
    pub fn cwnd(&self, path: usize) -> f64 {
        self.paths.get(path).map_or(0.0, |window| window.cwnd)
    }

    /// The slow-start threshold of a path.
    #[inline]
    pub fn ssthresh(&self, path: usize) -> f64 {
        self.paths.get(path).map_or(0.0, |window| window.ssthresh)
    }

    /// The global window.
    pub fn total(&self) -> f64 {
        self.paths.iter().map(|window| window.cwnd).sum()
    }

    /// The global threshold.
    pub fn total_ssthresh(&self) -> f64 {
        self.paths.iter().map(|window| window.ssthresh).sum()
    }

    /// The smoothed round-trip time of a path, for [`Growth::Lia`].
    pub fn set_srtt(&mut self, path: usize, srtt: Duration) {
        if let Some(window) = self.paths.get_mut(path) {
            window.srtt = srtt;
        }
    }

    /// A packet that was sent on `path` is acknowledged.
    #[inline]
    pub fn on_acknowledged(&mut self, path: usize) {
        let total = self.total();
        let alpha = if self.growth == Growth::Lia { self.alpha(total) } else { 0.0 };
        let Some(window) = self.paths.get_mut(path) else { return };
        window.cwnd += if window.cwnd < window.ssthresh {
            1.0
        } else {
            match self.growth {
                Growth::PerPath => 1.0 / window.cwnd,
                Growth::Coupled => 1.0 / total,
                Growth::Lia => (alpha / total).min(1.0 / window.cwnd),
            }
        };
    }

    /// RFC 6356 §3, equation (2), over the paths with a round-trip time; 1 while there is none.
    fn alpha(&self, total: f64) -> f64 {
        let (mut best, mut sum) = (0.0f64, 0.0);
        for window in self.paths.iter().filter(|window| !window.srtt.is_zero()) {
            let rtt = window.srtt.as_secs_f64();
            best = best.max(window.cwnd / (rtt * rtt));
            sum += window.cwnd / rtt;
        }
        if sum > 0.0 { total * best / (sum * sum) } else { 1.0 }
    }

    /// The packet at `hole`, sent on `path`, is missing: half the window of that path, and of no other. Until `until` it
    /// may turn out to have been late only.
    pub fn on_missing(&mut self, path: usize, hole: u64, until: Instant) {
        let Some(window) = self.paths.get_mut(path) else { return };
        window.token = Some(Token { cwnd: window.cwnd, ssthresh: window.ssthresh, until, holes: vec![hole] });
        window.ssthresh = (window.cwnd / 2.0).max(LEAST);
        window.cwnd = window.ssthresh;
    }

    /// Another packet of the same window of `path` is missing: no further reduction, but a reason for the last.
    pub fn on_also_missing(&mut self, path: usize, hole: u64) {
        if let Some(token) = self.paths.get_mut(path).and_then(|window| window.token.as_mut()) {
            token.holes.push(hole);
        }
    }

    /// The packet at `hole` is acknowledged at `now`. If it was missing and comes in time it must be the original: then,
    /// if nothing else was missing, the reduction is taken back, without loss of what has grown since. Returns the path
    /// whose reduction that was.
    pub fn on_arrived(&mut self, hole: u64, now: Instant) -> Option<usize> {
        let with_token = |window: &&mut Window| window.token.as_ref().is_some_and(|token| token.holes.contains(&hole));
        let (path, window) = self.paths.iter_mut().enumerate().find(|(_, window)| with_token(&window))?;
        let token = window.token.as_mut()?;
        if now > token.until {
            window.token = None;
            return None;
        }
        token.holes.retain(|missing| *missing != hole);
        if !token.holes.is_empty() {
            return None;
        }
        window.cwnd = window.cwnd.max(token.cwnd);
        window.ssthresh = window.ssthresh.max(token.ssthresh);
        window.token = None;
        Some(path)
    }

    /// Nothing sent on `path` was acknowledged for too long (M16); `again` if that is so since the last time, which
    /// leaves the threshold (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, path: usize, again: bool) {
        let Some(window) = self.paths.get_mut(path) else { return };
        if !again {
            window.ssthresh = (window.cwnd / 2.0).max(LEAST);
        }
        window.cwnd = 1.0;
        window.token = None;
    }
}

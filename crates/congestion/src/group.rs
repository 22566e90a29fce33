//! What a rule sees: the paths of one association.

use clock::{Duration, Instant};

/// The state of one path that rules read. Only the engine writes it.
#[derive(Clone, Debug)]
pub struct Path {
    /// Congestion window in bytes.
    pub cwnd: f64,
    /// Slow-start threshold in bytes; infinite until the first loss.
    pub ssthresh: f64,
    /// Largest payload of one packet, in bytes.
    pub mss: f64,
    /// Bytes outstanding before the event that is being handled.
    pub flight: f64,
    /// Smoothed round-trip time; zero while there is no sample.
    pub srtt: Duration,
    /// Lowest round-trip time seen; [`Duration::MAX`] while there is no sample.
    pub base_rtt: Duration,
    /// Highest round-trip time seen; zero while there is no sample.
    pub top_rtt: Duration,
    /// True from a reduction until what was outstanding at that time is acknowledged.
    pub in_recovery: bool,
    /// False once the path is closed; closed paths are left out of [`Group::usable`].
    pub open: bool,
}

impl Path {
    /// The window in packets of `mss` bytes.
    pub fn packets(&self) -> f64 {
        self.cwnd / self.mss
    }

    /// The smoothed round-trip time in seconds, if there is a sample.
    pub fn rtt(&self) -> Option<f64> {
        (!self.srtt.is_zero()).then(|| self.srtt.as_secs_f64())
    }
}

/// The paths of one association at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// Every path by index, also closed ones and those without a round-trip sample.
    pub paths: &'a [Path],
    /// The time of the event.
    pub now: Instant,
}

impl<'a> Group<'a> {
    /// The path at `index`. Rules are only called for paths that exist.
    pub fn path(&self, index: usize) -> &'a Path {
        &self.paths[index]
    }

    /// Open paths that have a round-trip sample, with their indices. A path without one is left out of every sum and
    /// maximum of a coupled rule.
    pub fn usable(&self) -> impl Iterator<Item = (usize, &'a Path)> + use<'a> {
        self.paths.iter().enumerate().filter(|(_, path)| path.open && !path.srtt.is_zero())
    }
}

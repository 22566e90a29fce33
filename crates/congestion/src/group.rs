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
    /// What one packet is to the arithmetic of an uncoupled rule, in bytes: `mss`, or where paths through one bottleneck are one
    /// flow together a part of it, so that each counts the packets of a part of a flow.
    pub unit: f64,
    /// Bytes outstanding before the event that is being handled.
    pub flight: f64,
    /// Smoothed round-trip time; zero while there is no sample.
    pub srtt: Duration,
    /// Lowest round-trip time seen; [`Duration::MAX`] while there is no sample.
    pub base_rtt: Duration,
    /// Highest round-trip time that two samples in a row have reached; zero before. An acknowledgment that a receiver held
    /// back alone (RFC 1122 §4.2.3.2), or that met somebody's burst, tells nothing of how long the queue can be.
    pub top_rtt: Duration,
    /// The lower of the last two round-trip samples: what [`Self::top_rtt`] is the highest of; zero before there are two.
    pub steady_rtt: Duration,
    /// The retransmission timeout, for rules that block a path for so long.
    pub rto: Duration,
    /// True from a reduction until what was outstanding at that time is acknowledged.
    pub in_recovery: bool,
    /// The loss that is answered may be the link's own: packets met no queue lately, or the link is known to lose some. False where
    /// nobody looks.
    pub loss_is_doubtful: bool,
    /// False while the path is closed; closed paths are left out of [`Group::usable`].
    pub open: bool,
}

impl Path {
    pub(crate) fn new(cwnd: f64, ssthresh: f64, mss: f64) -> Self {
        Self {
            cwnd,
            ssthresh,
            mss,
            unit: mss,
            flight: 0.0,
            srtt: Duration::ZERO,
            base_rtt: Duration::MAX,
            top_rtt: Duration::ZERO,
            steady_rtt: Duration::ZERO,
            rto: Duration::from_secs(1), // RFC 6298 §2.1: before there is a sample.
            in_recovery: false,
            loss_is_doubtful: false,
            open: true,
        }
    }

    fn is_usable(&self) -> bool {
        self.open && !self.srtt.is_zero()
    }

    /// The window in packets of [`Self::unit`] bytes.
    pub fn packets(&self) -> f64 {
        self.cwnd / self.unit
    }

    /// The smoothed round-trip time in seconds, if there is a sample.
    pub fn rtt(&self) -> Option<f64> {
        (!self.srtt.is_zero()).then(|| self.srtt.as_secs_f64())
    }

    /// What Reno adds for `acked` bytes: RFC 5681 §3.1 equation (3), without its rounding to whole bytes.
    pub fn reno(&self, acked: f64) -> f64 {
        acked * self.unit / self.cwnd
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

/// What a coupled rule reads of one path, in packets of that path and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usable {
    /// The path's index.
    pub index: usize,
    /// The window in packets.
    pub packets: f64,
    /// The smoothed round-trip time in seconds.
    pub rtt: f64,
}

impl Usable {
    /// The rate that window and round-trip time make, in packets per second.
    pub fn rate(&self) -> f64 {
        self.packets / self.rtt
    }
}

impl<'a> Group<'a> {
    /// The path at `index`. Rules are only called for paths that exist.
    pub fn path(&self, index: usize) -> &'a Path {
        &self.paths[index]
    }

    /// Open paths that have a round-trip sample. A path without one is left out of every sum and maximum of a coupled
    /// rule.
    pub fn usable(&self) -> impl Iterator<Item = Usable> + Clone + use<'a> {
        self.paths.iter().enumerate().filter(|(_, path)| path.is_usable()).map(|(index, path)| Usable {
            index,
            packets: path.packets(),
            rtt: path.srtt.as_secs_f64(),
        })
    }

    /// How many paths are [usable](Self::usable).
    pub fn count(&self) -> usize {
        self.paths.iter().filter(|path| path.is_usable()).count()
    }

    /// The usable paths together with the one at `index`, which sends something and therefore counts: windows in bytes.
    pub fn window_with(&self, index: usize) -> f64 {
        self.paths
            .iter()
            .enumerate()
            .filter(|(i, path)| *i == index || path.is_usable())
            .map(|(_, path)| path.cwnd)
            .sum()
    }

    /// The least threshold of the path at `index` after a loss, in bytes: two packets (RFC 5681 §3.1); one where there
    /// are siblings, as MPTCP of Linux has it.
    pub fn floor(&self, index: usize) -> f64 {
        let packets = if self.count() > 1 { 1.0 } else { 2.0 };
        packets * self.path(index).mss
    }

    /// The lowest round-trip time of any open path, if there is a sample.
    pub fn base_rtt(&self) -> Option<Duration> {
        self.paths.iter().filter(|path| path.is_usable()).map(|path| path.base_rtt).min()
    }
}

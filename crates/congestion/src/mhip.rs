//! The two-level control of multipath HIP: D. Polishchuk and A. Gurtov, *Improving TCP-friendliness for mHIP*, 2010 and
//! later. Each path has a window and a threshold; those of the association are their sums
//! ([`Controller::association_window`](crate::Controller::association_window)), never stored. A loss halves the window of
//! the path that the missing packet was sent on and leaves the others. ALGORITHMS §6.3.
//!
//! What was reordering across paths and no loss is taken back by ADDR, the allowable delay due to reordering (§6.4): the
//! original arriving sooner than [`allowable_delay`] after the cut cannot be the retransmission. That is
//! [`Undo::RestoreWithin`](crate::Undo::RestoreWithin).

use clock::Duration;

use crate::engine::{EngineConfig, InitialWindow};
use crate::group::Group;
use crate::lia::coupled_increase;
use crate::rule::{Backoff, Cause, WindowRule};
use crate::tunable::{BadTunable, word};

/// ADDR as a part of the lowest round-trip time of all paths (ALGORITHMS §13 M12).
pub const ADDR: f64 = 0.9;

/// How the windows of the paths grow, where the papers can be read in more than one way (ALGORITHMS §13 M7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Each as a Reno: "cumulative increase of the per-flow windows".
    #[default]
    PerPath,
    /// All together as one Reno: "bundle behaves as a single TCP".
    Coupled,
    /// By RFC 6356, for comparison.
    Lia,
    /// Those that share a bottleneck as one Reno, which a loss halves as a whole; others each as a Reno.
    PerBottleneck,
}

/// mHIP's rule.
#[derive(Clone, Debug, Default)]
pub struct Mhip {
    /// How the windows grow.
    pub growth: Growth,
    /// Of [`Growth::PerBottleneck`], by path: the lowest path with the same bottleneck. A path that is not here has one of
    /// its own.
    pub bundles: Vec<usize>,
}

impl Mhip {
    /// The lowest path that has the bottleneck of `path`.
    pub fn bundle(&self, path: usize) -> usize {
        self.bundles.get(path).copied().unwrap_or(path)
    }
}

/// For so long after a cut it may be taken back. `None` without a round-trip sample.
pub fn allowable_delay(group: Group<'_>) -> Option<Duration> {
    group.base_rtt().map(|base| base.mul_f64(ADDR))
}

/// The engine for an association over `paths` paths of which the peer takes `receiver_window` bytes: first windows and
/// thresholds are shares of one association's (ALGORITHMS §13 M18), and slow start counts every packet acknowledged.
pub fn engine(first_window_packets: u32, receiver_window: u64, paths: u32) -> EngineConfig {
    let paths = paths.max(1);
    EngineConfig {
        initial_window: InitialWindow::Packets(first_window_packets.div_ceil(paths).max(1)),
        initial_ssthresh: receiver_window as f64 / f64::from(paths),
        byte_counting_limit: f64::INFINITY,
        ..EngineConfig::default()
    }
}

impl WindowRule for Mhip {
    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "growth" {
            return Err(BadTunable::Unknown { known: &["growth"] });
        }
        let words = [
            ("per_path", Growth::PerPath),
            ("coupled", Growth::Coupled),
            ("lia", Growth::Lia),
            ("per_bottleneck", Growth::PerBottleneck),
        ];
        self.growth = word(value, &words, "per_path, coupled, lia or per_bottleneck")?;
        Ok(())
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let reno = group.path(path).reno(acked);
        match self.growth {
            Growth::PerPath => reno,
            Growth::Coupled => crate::coupled::increase(path, group, acked),
            Growth::PerBottleneck => {
                let bundle = self.bundle(path);
                let mates = (0..group.paths.len()).filter(|mate| self.bundle(*mate) == bundle);
                acked * group.path(path).mss / mates.map(|mate| group.path(mate).cwnd).sum::<f64>()
            }
            Growth::Lia => coupled_increase(group).map_or(f64::INFINITY, |per_packet| per_packet * acked).min(reno),
        }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        // ALGORITHMS §13 M10: half the window, and the threshold with it.
        let path = group.path(path);
        Backoff::to(path.cwnd / 2.0, 2.0 * path.mss)
    }
}

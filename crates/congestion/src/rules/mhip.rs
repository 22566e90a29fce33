//! The two-level control of multipath HIP: D. Polishchuk and A. Gurtov, *Improving TCP-friendliness for mHIP*, 2010 and
//! later. Each path has a window and a threshold; those of the association are their sums
//! ([`Controller::association_window`](crate::Controller::association_window)), never stored. A loss halves the window of
//! the path that the missing packet was sent on and leaves the others. ALGORITHMS §6.3.

use crate::group::Group;
use crate::reference::{Reference, tunable};
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::lia::coupled_increase;
use crate::tunable::{BadTunable, word};

pub(super) const REFERENCE: Reference = Reference {
    name: "mhip",
    increase: "1/w per packet on each path",
    decrease: "w/2 on the path of the loss, at least 2",
    source: "Polishchuk and Gurtov, Improving TCP-friendliness for mHIP, 2010",
    section: ("6.3", "63-v2v3-two-level-control-so"),
    tunables: &[tunable(
        "growth",
        "per_path, coupled or lia",
        "per_path",
        "Each path as a Reno, all as one (1/Σw), or by RFC 6356.",
    )],
};

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
}

/// mHIP's rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mhip {
    /// How the windows grow.
    pub growth: Growth,
}

impl WindowRule for Mhip {
    fn kind(&self) -> Kind {
        Kind { couples: self.growth != Growth::PerPath, family: Family::Tunnel, ..Kind::default() }
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "growth" {
            return Err(BadTunable::Unknown { known: &["growth"] });
        }
        let words = [("per_path", Growth::PerPath), ("coupled", Growth::Coupled), ("lia", Growth::Lia)];
        self.growth = word(value, &words, "per_path, coupled or lia")?;
        Ok(())
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let reno = group.path(path).reno(acked);
        match self.growth {
            Growth::PerPath => reno,
            Growth::Coupled => crate::rules::coupled::increase(path, group, acked),
            Growth::Lia => coupled_increase(group).map_or(f64::INFINITY, |per_packet| per_packet * acked).min(reno),
        }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        // ALGORITHMS §13 M10: half the window, and the threshold with it.
        let path = group.path(path);
        Backoff::to(path.cwnd / 2.0, 2.0 * path.mss)
    }
}

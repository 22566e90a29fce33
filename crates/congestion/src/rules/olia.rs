//! OLIA, the opportunistic linked increases of MPTCP: R. Khalili, N. Gast, M. Popović and J.-Y. Le Boudec, *MPTCP is not
//! Pareto-optimal*, IEEE/ACM ToN 21(5), 2013, and draft-khalili-mptcp-congestion-control-05 §2. Per acknowledged packet
//!
//! ```text
//! w_r += (w_r / RTT_r²) / (Σ w_p / RTT_p)² + ε_r / w_r
//! ```
//!
//! where ε moves traffic from the paths with the largest windows to the best ones whose windows are small.

use smallvec::SmallVec;

use crate::engine::Acked;
use crate::group::{Group, Usable};
use crate::reference::{HALF, Reference, Tunable, tunable};
use crate::rule::{Backoff, Cause, Kind, WindowRule};
use crate::tunable::{BadTunable, word};

pub(super) const RANKING: Tunable = tunable(
    "ranking",
    "l/rtt2 or l2/rtt",
    "l/rtt2",
    "How paths are ranked by the bytes ℓ between losses: ℓ/RTT², or ℓ²/RTT.",
);

pub(super) const REFERENCE: Reference = Reference {
    name: "olia",
    increase: "(w/RTT²)/(Σ w/RTT)² + ε/w per packet; ε > 0 on the best paths whose windows are not largest, < 0 on \
               the largest",
    decrease: HALF,
    source: "Khalili and others, IEEE/ACM ToN 21(5), 2013; draft-khalili-mptcp-congestion-control-05 §2",
    section: ("4.6", "46-olia-khalili-et-al-ton-2013-draft-khalili-mptcp-congestion-control-05-2-kernel-mptcp_oliac-c"),
    tunables: &[RANKING],
};

/// How the paths are ranked by the bytes `ℓ` that they carry between losses. The sources differ (ALGORITHMS §13 A7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// `ℓ / RTT²`, as the Linux kernel: monotone in the rate that the square-root formula gives.
    #[default]
    OverSquaredRtt,
    /// `ℓ² / RTT`, as INET.
    SquaredOverRtt,
}

/// OLIA.
#[derive(Clone, Debug, Default)]
pub struct Olia {
    /// How the paths are ranked.
    pub ranking: Ranking,
    losses: SmallVec<[BetweenLosses; 2]>,
}

/// Bytes acknowledged between the last two losses, and since the last one.
#[derive(Clone, Copy, Debug, Default)]
struct BetweenLosses {
    before: f64,
    since: f64,
}

/// Two scores that differ by no more than this, relatively, are equal.
const TIE: f64 = 1e-12;

impl Olia {
    fn score(&self, path: &Usable) -> f64 {
        let losses = self.losses[path.index];
        let between = losses.before.max(losses.since);
        match self.ranking {
            Ranking::OverSquaredRtt => between / (path.rtt * path.rtt),
            Ranking::SquaredOverRtt => between * between / path.rtt,
        }
    }

    /// `ε` of the path at `index`: positive for the best paths with small windows, negative for the largest windows if
    /// there are such, zero otherwise.
    pub fn epsilon(&self, index: usize, group: Group<'_>) -> f64 {
        let (mut best, mut largest, mut count) = (0.0_f64, 0.0_f64, 0.0);
        for path in group.usable() {
            best = best.max(self.score(&path));
            // Whole packets, as the kernel has them: real windows are never equal.
            largest = largest.max(path.packets.floor());
            count += 1.0;
        }
        let (mut collected, mut maxima, mut epsilon) = (0.0, 0.0, (false, false));
        for path in group.usable() {
            let is_largest = path.packets.floor() == largest;
            let is_collected = self.score(&path) >= best * (1.0 - TIE) && !is_largest;
            maxima += f64::from(u8::from(is_largest));
            collected += f64::from(u8::from(is_collected));
            if path.index == index {
                epsilon = (is_collected, is_largest);
            }
        }
        match epsilon {
            (true, _) => 1.0 / (count * collected),
            (false, true) if collected > 0.0 => -1.0 / (count * maxima),
            _ => 0.0,
        }
    }

    /// Packets that one acknowledged packet adds to the path at `index`.
    pub fn per_packet(&self, index: usize, group: Group<'_>) -> f64 {
        let (mut rates, mut own) = (0.0, None);
        for path in group.usable() {
            rates += path.rate();
            if path.index == index {
                own = Some(path);
            }
        }
        match own {
            Some(path) => path.rate() / path.rtt / (rates * rates) + self.epsilon(index, group) / path.packets,
            // Without a round-trip sample nothing is coupled.
            None => 1.0 / group.path(index).packets(),
        }
    }
}

impl WindowRule for Olia {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.losses.push(BetweenLosses::default());
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "ranking" {
            return Err(BadTunable::Unknown { known: &["ranking"] });
        }
        let words = [("l/rtt2", Ranking::OverSquaredRtt), ("l2/rtt", Ranking::SquaredOverRtt)];
        self.ranking = word(value, &words, "l/rtt2 or l2/rtt")?;
        Ok(())
    }

    fn acknowledged(&mut self, path: usize, _group: Group<'_>, acked: &Acked) -> bool {
        self.losses[path].since += acked.bytes as f64;
        false
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        acked * self.per_packet(path, group)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let losses = &mut self.losses[path];
        if losses.since > 0.0 {
            (losses.before, losses.since) = (losses.since, 0.0);
        }
        Backoff::to(group.path(path).flight / 2.0, group.floor(path))
    }
}

//! How fair a run was: measured rates beside expected ones. `ALGORITHMS.md` §10; RFC 6356 §2.

use crate::{Allocation, jain};

/// Whose rates an index counts. It belongs beside the number: the same run is fair to flows or to sub-flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Flows.
    Flow,
    /// Sub-flows.
    Subflow,
}

impl Account {
    /// "flow" or "sub-flow".
    pub fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Subflow => "sub-flow",
        }
    }

    /// Jain's index of `rates` in this unit of account.
    pub fn jain(self, rates: &Allocation) -> Option<f64> {
        jain(match self {
            Self::Flow => &rates.flows,
            Self::Subflow => &rates.subflows,
        })
    }
}

/// The friendliness factor `FF = T / T_TCP` (mHIP papers 2 and 3): 1 takes what a TCP in its place gets. `None` beside a
/// TCP that got nothing.
pub fn friendliness(rate: f64, tcp: f64) -> Option<f64> {
    (tcp > 0.0 && rate.is_finite()).then(|| rate / tcp)
}

/// TCP-compatible: not noticeably more than a TCP would get, by `tolerance` (`ALGORITHMS.md` §10: 0.05), and not much less
/// (half).
pub fn is_tcp_compatible(rate: f64, tcp: f64, tolerance: f64) -> bool {
    rate <= tcp * (1.0 + tolerance) && rate >= tcp * 0.5
}

/// TCP-equivalent: the same rate in the same conditions, each alone.
pub fn is_tcp_equivalent(rate_alone: f64, tcp_alone: f64, tolerance: f64) -> bool {
    (rate_alone - tcp_alone).abs() <= tcp_alone * tolerance
}

/// TCP-equal share: the same rate while competing: the confidence interval of the friendliness factor contains 1, or the
/// factor is within `tolerance` of it.
pub fn is_tcp_equal_share(factor: f64, half_width: f64, tolerance: f64) -> bool {
    let off = (factor - 1.0).abs();
    off <= half_width || off <= tolerance
}

/// TCP-fair: beside `others` flows no more than one share of `capacity` in `others + 1`.
pub fn is_tcp_fair(rate: f64, capacity: f64, others: usize, tolerance: f64) -> bool {
    rate <= capacity / (others as f64 + 1.0) * (1.0 + tolerance)
}

/// What RFC 6356 §2 wants of a flow with several paths, each goal true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goals {
    /// At least as much as a flow of one path would get on the best of them.
    pub improves_throughput: bool,
    /// On no path more than a flow of one path would take there.
    pub does_no_harm: bool,
    /// No larger part of its traffic on a path that is more congested. `None` with one path.
    pub balances_congestion: Option<bool>,
}

/// The rates of one flow's sub-flows, what a flow of one path would get on each path, and how congested (by its part of
/// packets lost) each path is.
pub fn goals(subflows: &[f64], single: &[f64], congestion: &[f64], tolerance: f64) -> Goals {
    let total: f64 = subflows.iter().sum();
    let best = single.iter().fold(0.0_f64, |most, rate| most.max(*rate));
    let paths: Vec<(f64, f64)> = subflows.iter().copied().zip(congestion.iter().copied()).collect();
    let inverted = |(rate, loss): &(f64, f64)| {
        paths
            .iter()
            .any(|(other, other_loss)| *loss > other_loss * (1.0 + tolerance) && *rate > other * (1.0 + tolerance))
    };
    Goals {
        improves_throughput: total >= best * (1.0 - tolerance),
        does_no_harm: subflows.iter().zip(single).all(|(rate, single)| *rate <= single * (1.0 + tolerance)),
        balances_congestion: (paths.len() > 1).then(|| !paths.iter().any(inverted)),
    }
}

/// How far a run is from what a notion expects, `Δ = (B − B*) / ρ`.
#[derive(Clone, Debug, PartialEq)]
pub struct Deviation {
    /// Of each flow's total, signed.
    pub flows: Vec<f64>,
    /// Of each sub-flow, signed.
    pub subflows: Vec<f64>,
    /// The mean of the flows' absolute values.
    pub mean: f64,
    /// The largest of the flows' absolute values.
    pub most: f64,
}

/// The deviation of `measured` from `expected`, in parts of `capacity` (the link or the sum of links that is meant, above
/// zero). `None` where the two are not about the same flows.
pub fn deviation(measured: &Allocation, expected: &Allocation, capacity: f64) -> Option<Deviation> {
    let same = measured.flows.len() == expected.flows.len() && measured.subflows.len() == expected.subflows.len();
    if !same || capacity.is_nan() || capacity <= 0.0 {
        return None;
    }
    let off = |ours: &[f64], theirs: &[f64]| -> Vec<f64> {
        ours.iter().zip(theirs).map(|(ours, theirs)| (ours - theirs) / capacity).collect()
    };
    let flows = off(&measured.flows, &expected.flows);
    let sum: f64 = flows.iter().map(|off| off.abs()).sum();
    Some(Deviation {
        mean: sum / flows.len().max(1) as f64,
        most: flows.iter().fold(0.0_f64, |most, off| most.max(off.abs())),
        subflows: off(&measured.subflows, &expected.subflows),
        flows,
    })
}

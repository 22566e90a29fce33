//! The fully coupled control: F. Kelly and T. Voice, ACM CCR 35(2), 2005; H. Han and others, IEEE/ACM ToN 14(6), 2006;
//! as packets in D. Wischik and others, NSDI 2011, §2.2. All windows together behave as one Reno:
//! `w_r += 1 / Σw` for a packet acknowledged, `w_r −= Σw / 2` at a loss. It puts all on the least congested paths and
//! flaps between equal ones; a point of reference (ALGORITHMS §4.9).

use crate::group::Group;
use crate::reference::{POINTS, Reference};
use crate::rule::{Backoff, Cause, Kind, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "coupled",
    increase: "1/Σw per packet",
    decrease: "(w − Σw/2)·F/w, at least 1",
    source: "Kelly and Voice, ACM CCR 35(2), 2005; Wischik and others, NSDI 2011, §2.2",
    section: POINTS,
    tunables: &[],
};

/// The fully coupled control.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coupled;

/// What Reno would add if all windows were one, in bytes.
pub(crate) fn increase(path: usize, group: Group<'_>, acked: f64) -> f64 {
    acked * group.path(path).mss / group.window_with(path)
}

impl WindowRule for Coupled {
    fn kind(&self) -> Kind {
        Kind { couples: true, ..Kind::default() }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let state = group.path(path);
        let window = state.cwnd - group.window_with(path) / 2.0;
        // As RFC 5681, in proportion to what was outstanding.
        Backoff::to(window * state.flight / state.cwnd, group.floor(path))
    }
}

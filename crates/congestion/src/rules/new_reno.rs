//! New Reno's window: RFC 5681 §3.1, in bytes.

use crate::group::Group;
use crate::reference::{HALF, RENO, Reference};
use crate::rule::{Backoff, Cause, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "newreno",
    increase: RENO,
    decrease: HALF,
    source: "RFC 5681 §3.1, equations 3 and 4",
    section: ("3.1", "31-reno--newreno-bytes-rfc-5681-31-r"),
    tunables: &[],
};

/// One packet more per round trip, half as many after a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno;

impl WindowRule for NewReno {
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        group.path(path).reno(acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        // RFC 5681 §3.1 equation (4): half of what was outstanding, not of the window.
        let path = group.path(path);
        Backoff::to(path.flight / 2.0, 2.0 * path.mss)
    }
}

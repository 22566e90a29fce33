//! MPTCP's LIA in whole bytes, as CMT-SCTP runs it: M. Becke, T. Dreibholz, H. Adhari and E. Rathgeb, *On the fairness of
//! transport protocols in a multi-path environment*, IEEE ICC 2012, §III-B4. Unlike RFC 6356 it couples slow start too.
//!
//! The paper prints `â` with bytes and packets mixed, which is MSS·α, so that the minimum always binds and nothing is
//! coupled. Here α is without a unit (ALGORITHMS §4.4, §13 A2).

use crate::group::Group;
use crate::math::ceil;
use crate::reference::{Reference, SWITCH, tunable};
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::lia::alpha;
use crate::rules::partial_bytes::PartialBytes;
use crate::tunable::{BadTunable, switch};

pub(super) const REFERENCE: Reference = Reference {
    name: "lia-byte",
    increase: "min(⌈α·w/Σw⌉, 1) packets once w are acknowledged, α as of lia, in bytes",
    decrease: "⌈w/2⌉, at least 1",
    source: "Becke and others, ICC 2012, §III-B4",
    section: ("4.4", "44-mptcp-lia-byte-form-becke-iii-b4-inet-cccv_cmt_lia-sc"),
    tunables: &[tunable("coupled_slow_start", SWITCH, "on", "Slow start is coupled, too.")],
};

/// LIA, grown once a window as SCTP does.
#[derive(Clone, Debug)]
pub struct LiaByte {
    /// Slow start is coupled as well (ALGORITHMS §13 A9).
    pub coupled_slow_start: bool,
    partial: PartialBytes,
}

impl Default for LiaByte {
    fn default() -> Self {
        Self { coupled_slow_start: true, partial: PartialBytes::default() }
    }
}

/// `min(⌈c · α · bytes / Σc⌉, bytes)`, at least one byte.
fn coupled(path: usize, group: Group<'_>, bytes: f64) -> f64 {
    let share = group.path(path).cwnd * alpha(group) / group.window_with(path);
    ceil(share * bytes).max(1.0).min(bytes)
}

impl WindowRule for LiaByte {
    fn kind(&self) -> Kind {
        Kind { couples: true, family: Family::Sctp, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.partial.path_added();
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "coupled_slow_start" {
            return Err(BadTunable::Unknown { known: &["coupled_slow_start"] });
        }
        self.coupled_slow_start = switch(value)?;
        Ok(())
    }

    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.partial.clear(path);
        if self.coupled_slow_start { coupled(path, group, acked) } else { acked }
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let state = group.path(path);
        if self.partial.count(path, state, acked) { coupled(path, group, state.mss) } else { 0.0 }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        self.partial.clear(path);
        let path = group.path(path);
        Backoff::to(ceil(path.cwnd / 2.0), path.mss)
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.partial.count_unused(path, group.path(path), acked);
    }
}

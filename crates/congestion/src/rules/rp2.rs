//! Resource pooling for CMT-SCTP, second version: T. Dreibholz, M. Becke, H. Adhari and E. Rathgeb, *On the impact of
//! congestion control for concurrent multipath transfer on the transport layer*, ConTEL 2011; M. Becke and others, ICC
//! 2012, §III-B3. With bandwidths `b_P = c_P / RTT_P`, a path grows by its share `î_P = b_P / Σb` and falls by
//! `d̂_P = max(½, ½ Σb / b_P)`: half of the bandwidth of all. ALGORITHMS §4.3.
//!
//! The paper of 2012 prints `c_P` alone as the numerator of `î`, a misprint by its unit (ALGORITHMS §13 A3).

use clock::Duration;

use crate::group::Group;
use crate::math::ceil;
use crate::reference::{Reference, SWITCH, tunable};
use crate::rule::{Backoff, Cause, Family, Kind, WindowRule};
use crate::rules::partial_bytes::PartialBytes;
use crate::tunable::{BadTunable, number, switch};

pub(super) const REFERENCE: Reference = Reference {
    name: "rp2",
    increase: "î packets once w are acknowledged, î = b/Σb, b = w/RTT",
    decrease: "w − ⌈d·w⌉, d = max(½, Σb/(2b)), at least 1",
    source: "Dreibholz and others, ConTEL 2011; Becke and others, ICC 2012, §III-B3",
    section: ("4.3", "43-rp-mp-v2-becke-iii-b3-dreibholz-et-al-contel-2011-inet-cccv_cmtrpv2-sc"),
    tunables: &[
        tunable(
            "blocking",
            SWITCH,
            "on",
            "After a loss that leaves less than a packet the path sends no new data for some time.",
        ),
        tunable("timeouts", "a number of timeouts from 0 to 1000", "1", "That time, in retransmission timeouts."),
    ],
};

/// RP-MP-v2.
#[derive(Clone, Debug)]
pub struct Rp2 {
    /// A path that should have fallen below one packet sends no new data for a while. Only after losses that
    /// acknowledgments told of (ALGORITHMS §13 A4). On, as the argument of the paper needs; INET leaves it off.
    pub blocking: bool,
    /// For how many retransmission timeouts a path is blocked.
    pub timeouts: f64,
    partial: PartialBytes,
}

impl Default for Rp2 {
    fn default() -> Self {
        Self { blocking: true, timeouts: 1.0, partial: PartialBytes::default() }
    }
}

impl Rp2 {
    /// `î`: the share of `path` in the growth of the association, in (0, 1]. A path without a round-trip sample has no
    /// bandwidth yet and grows as if it were alone.
    pub fn share(&self, path: usize, group: Group<'_>) -> f64 {
        bandwidths(path, group).map_or(1.0, |(own, all)| own / all)
    }

    /// `d̂`: by how many of its windows `path` falls, at least ½.
    pub fn decrease_factor(&self, path: usize, group: Group<'_>) -> f64 {
        bandwidths(path, group).map_or(0.5, |(own, all)| (0.5 * all / own).max(0.5))
    }
}

/// The bandwidth of `path`, and of all, in bytes per second.
fn bandwidths(path: usize, group: Group<'_>) -> Option<(f64, f64)> {
    let mut own = None;
    let mut all = 0.0;
    for usable in group.usable() {
        let bandwidth = group.path(usable.index).cwnd / usable.rtt;
        all += bandwidth;
        if usable.index == path {
            own = Some(bandwidth);
        }
    }
    own.map(|own| (own, all))
}

impl WindowRule for Rp2 {
    fn kind(&self) -> Kind {
        Kind { couples: true, family: Family::Sctp, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.partial.path_added();
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        match name {
            "blocking" => self.blocking = switch(value)?,
            "timeouts" => self.timeouts = number(value, 0.0, 1000.0, "a number of timeouts from 0 to 1000")?,
            _ => return Err(BadTunable::Unknown { known: &["blocking", "timeouts"] }),
        }
        Ok(())
    }

    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.partial.clear(path);
        ceil(self.share(path, group) * acked)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let state = group.path(path);
        if self.partial.count(path, state, acked) { ceil(self.share(path, group) * state.mss) } else { 0.0 }
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        self.partial.clear(path);
        let factor = self.decrease_factor(path, group);
        let path = group.path(path);
        let window = path.cwnd - ceil(factor * path.cwnd);
        let block = self.blocking && cause != Cause::Timeout && window < path.mss;
        let block = if block { path.rto.mul_f64(self.timeouts) } else { Duration::ZERO };
        Backoff { window, floor: path.mss, block }
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.partial.count_unused(path, group.path(path), acked);
    }
}

//! OTIAS, out-of-order transmission for in-order arrival (F. Yang, Q. Wang, P. D. Amer, *Out-of-order transmission for
//! in-order arrival scheduling for multipath TCP*, WAINA 2014).
//!
//! A packet goes to the path on which it arrives earliest, `(⌊wait/w⌋ + ½)·RTT` with
//! `wait = max(0, queued − (w − in flight))`, even if it has to wait there.

use super::sttf::on;
use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference};
use clock::{Duration, Instant};

pub(super) const REFERENCE: Reference = Reference {
    name: "otias",
    choice: "the least (⌊wait/w⌋ + ½)·RTT, wait = max(0, queued + in flight − w); also on a path that is not open",
    source: "Yang, Wang and Amer, WAINA 2014",
};

/// The scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Otias;

impl Otias {
    /// When a packet given to the path arrives, from now.
    pub fn transfer_time(path: &PathView) -> Duration {
        let cwnd = path.cwnd.max(1);
        let wait = (path.queued + path.in_flight).saturating_sub(cwnd);
        path.srtt * (wait / cwnd) + path.srtt / 2
    }
}

impl PathScheduler for Otias {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let best = paths.iter().min_by_key(|path| (Self::transfer_time(path), path.id));
        best.map_or(Decision::Blocked, on)
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, queues: true, ..Needs::NOTHING }
    }
}

//! STTF, shortest transfer time first (P. Hurtig, K.-J. Grinnemo, A. Brunstrom, S. Ferlin, Ö. Alay, N. Kuhn, *Low-latency
//! scheduling in MPTCP*, IEEE/ACM ToN 27(1), 2019).
//!
//! Each path's time to deliver one more packet behind those that wait for it, in rounds in which its window grows; the
//! least wins even if its window is full.

use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference};
use clock::{Duration, Instant};

pub(super) const REFERENCE: Reference = Reference {
    name: "sttf",
    choice: "the least time to deliver what waits for the path and one packet more, in rounds of RTT in which w grows; also on a \
           path that is not open",
    source: "Hurtig and others, IEEE/ACM ToN 27(1), 2019",
};

/// The scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sttf;

impl Sttf {
    /// When a packet behind the `queued` ones of the path arrives, from now: half a round trip if the window has room;
    /// else whole rounds, in which the window doubles up to the threshold and grows by one above it, and half of one.
    pub fn transfer_time(path: &PathView) -> Duration {
        let mut left = path.queued + 1;
        let free = path.cwnd.saturating_sub(path.in_flight);
        if left <= free {
            return path.srtt / 2;
        }
        left -= free;
        let grow = |cwnd: u64| if cwnd <= path.ssthresh { cwnd.saturating_mul(2) } else { cwnd.saturating_add(1) };
        let mut rounds = 1;
        let mut cwnd = grow(path.cwnd.max(1));
        while left > cwnd {
            left -= cwnd;
            rounds += 1;
            cwnd = grow(cwnd);
        }
        path.srtt * rounds + path.srtt / 2
    }
}

impl PathScheduler for Sttf {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let best = paths.iter().min_by_key(|path| (Self::transfer_time(path), path.id));
        best.map_or(Decision::Blocked, on)
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, queues: true, ..Needs::NOTHING }
    }
}

/// Now, if the path is open; else when it is.
pub(crate) fn on(path: &PathView) -> Decision {
    if path.open { Decision::Send(path.id) } else { Decision::Enqueue(path.id) }
}

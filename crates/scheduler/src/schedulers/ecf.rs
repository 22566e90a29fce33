//! ECF, earliest completion first (Y. Lim, E. M. Nahum, D. Towsley, R. J. Gibbens, *ECF: an MPTCP path scheduler to manage
//! heterogeneous paths*, CoNEXT 2017).
//!
//! When the fastest path f is full and a slower one s is not, the packet waits for f if all k packets that are to be sent
//! would be through on f before one on s is, and s would not make up for it:
//!
//! `(1 + k/w_f)·RTT_f < (1 + β·waiting)·(RTT_s + δ)` and `k/w_s·RTT_s ≥ 2·RTT_f + δ`, `δ = max(σ_f, σ_s)`.

use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference, fastest};
use clock::Instant;

pub(super) const REFERENCE: Reference = Reference {
    name: "ecf",
    choice: "as lowest-rtt, but waits for f rather than use s if (1 + k/w_f)·RTT_f < (1 + β·waiting)·(RTT_s + δ) and k/w_s·RTT_s ≥ \
           2·RTT_f + δ; k packets to send, δ = max(σ_f, σ_s), β = 0.25",
    source: "Lim and others, CoNEXT 2017; Linux mptcp_ecf.c",
};

/// The hysteresis β.
const BETA: f64 = 0.25;

/// The scheduler, and whether it waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecf {
    waiting: bool,
}

impl Ecf {
    /// One that has waited already, or not.
    pub fn new(waiting: bool) -> Self {
        Self { waiting }
    }

    /// Whether it waits for the fastest path.
    pub fn is_waiting(&self) -> bool {
        self.waiting
    }
}

impl PathScheduler for Ecf {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let Some(slow) = fastest(paths.iter().filter(|path| path.open)) else { return Decision::Blocked };
        let Some(fast) = fastest(paths.iter()).filter(|fast| fast.id != slow.id) else {
            return Decision::Send(slow.id);
        };
        let k = packet.unscheduled as f64;
        let (rtt_f, rtt_s) = (fast.srtt.as_secs_f64(), slow.srtt.as_secs_f64());
        let delta = fast.rttvar.max(slow.rttvar).as_secs_f64();
        let hysteresis = if self.waiting { 1.0 + BETA } else { 1.0 };
        if (1.0 + k / fast.cwnd.max(1) as f64) * rtt_f < hysteresis * (rtt_s + delta) {
            if k / slow.cwnd.max(1) as f64 * rtt_s >= 2.0 * rtt_f + delta {
                self.waiting = true;
                return Decision::Wait;
            }
        } else {
            self.waiting = false;
        }
        Decision::Send(slow.id)
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, ..Needs::NOTHING }
    }
}

//! BLEST, blocking estimation (S. Ferlin, Ö. Alay, O. Mehani, R. Boreli, *BLEST: blocking estimation-based MPTCP scheduler
//! for heterogeneous networks*, IFIP Networking 2016).
//!
//! When the fastest path f is full and a slower one s is not, a packet on s would hold back the receiver's window for a
//! round trip of s, in which f could send
//!
//! `X = MSS·(w_f + (r − 1)/2)·r`, `r = RTT_s/RTT_f`
//!
//! bytes. If `λ·X` does not fit into what the window leaves beside the bytes of s, the packet waits for f.

use crate::{Decision, Needs, PacketMeta, PathScheduler, PathView, Reference, fastest};
use clock::{Duration, Instant};

pub(super) const REFERENCE: Reference = Reference {
    name: "blest",
    choice: "as lowest-rtt, but waits for the fastest path f rather than use s where λ·MSS·(w_f + (r−1)/2)·r is more than the window \
           leaves beside s, r = RTT_s/RTT_f",
    source: "Ferlin and others, IFIP Networking 2016; Linux mptcp_blest.c",
};

/// The bounds of λ and its steps, as MPTCP of Linux has them.
const LEAST: f64 = 1.0;
const MOST: f64 = 1.3;
const UP: f64 = 0.04;
const DOWN: f64 = 0.01;

/// The scheduler, with its λ.
#[derive(Clone, Copy, Debug)]
pub struct Blest {
    lambda: f64,
    /// When λ was last corrected, and whether the window was the limit since.
    corrected: Instant,
    limited: bool,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: LEAST, corrected: Instant::ZERO, limited: false }
    }
}

impl Blest {
    /// The correction factor λ of the estimate.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// Once a round trip of the fastest path: up if the estimate was too low, slowly down if not.
    fn correct(&mut self, round_trip: Duration, now: Instant) {
        if now.saturating_since(self.corrected) < round_trip {
            return;
        }
        self.corrected = now;
        let step = if std::mem::take(&mut self.limited) { UP } else { -DOWN };
        self.lambda = (self.lambda + step).clamp(LEAST, MOST);
    }
}

impl PathScheduler for Blest {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
        let Some(slow) = fastest(paths.iter().filter(|path| path.open)) else { return Decision::Blocked };
        let Some(fast) = fastest(paths.iter()).filter(|fast| fast.id != slow.id) else {
            return Decision::Send(slow.id);
        };
        self.correct(fast.srtt, now);
        if fast.srtt.is_zero() || fast.srtt >= slow.srtt {
            return Decision::Send(slow.id);
        }
        let mss = packet.len as f64;
        let ratio = slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64();
        let on_fast = mss * (fast.cwnd as f64 + (ratio - 1.0) / 2.0) * ratio;
        let on_slow = mss * (slow.in_flight + 1) as f64;
        let waits = on_fast * self.lambda > packet.window as f64 - on_slow;
        if waits { Decision::Wait } else { Decision::Send(slow.id) }
    }

    fn on_window_limited(&mut self, _now: Instant) {
        self.limited = true;
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, ..Needs::NOTHING }
    }
}

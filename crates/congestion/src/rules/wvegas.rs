//! wVegas, weighted Vegas of MPTCP: Y. Cao, M. Xu and X. Fu, *Delay-based congestion control for multipath TCP*, IEEE ICNP
//! 2012, and draft-xu-mptcp-congestion-control. The paths share ten packets in queues by their rates; a path whose queue
//! has doubled drains it, to see the lowest round-trip time again. ALGORITHMS §4.8.

use smallvec::SmallVec;

use crate::group::Group;
use crate::reference::{HALF, Reference};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};

pub(super) const REFERENCE: Reference = Reference {
    name: "wvegas",
    increase: "once a round, diff = ⌊w·(RTT−base)/RTT⌋: +1 if diff < α, −1 if diff > α, α = max(2, ⌊10·x/Σx⌋), x = \
               w/RTT",
    decrease: HALF,
    source: "Cao, Xu and Fu, IEEE ICNP 2012; draft-xu-mptcp-congestion-control",
    section: ("4.8", "48-wvegas-cao-xu-fu-icnp-2012-draft-xu-mptcp-congestion-control-kernel-mptcp_wvegasc-c"),
    tunables: &[],
};

/// Packets in queues of all paths together, and least of one.
const TOTAL_ALPHA: f64 = 10.0;
const LEAST_ALPHA: f64 = 2.0;
/// Packets in the queue that end slow start.
const GAMMA: f64 = 1.0;
/// The least window in packets.
const FLOOR: f64 = 2.0;

/// wVegas.
#[derive(Clone, Debug, Default)]
pub struct Wvegas {
    paths: SmallVec<[State; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Packets that the path aims to have in its queue.
    alpha: f64,
    /// The lowest queueing delay since the last drain, in seconds; 0 for none.
    queue_delay: f64,
    /// Packets per second in the last round of congestion avoidance. The kernel's module notes it only when `alpha` is
    /// about to change; a share of rates of which some were never noted is none, so here it is noted each round.
    rate: f64,
}

const START: State = State { alpha: LEAST_ALPHA, queue_delay: 0.0, rate: 0.0 };

impl Wvegas {
    /// How many packets `path` aims to have in its queue.
    pub fn target(&self, path: usize) -> f64 {
        self.paths[path].alpha
    }

    /// The lowest queueing delay of `path` since it last drained its queue, in seconds; 0 for none.
    pub fn queue_delay(&self, path: usize) -> f64 {
        self.paths[path].queue_delay
    }
}

impl WindowRule for Wvegas {
    fn kind(&self) -> Kind {
        Kind { couples: true, reads_delay: true, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.paths.push(START);
    }

    fn path_changed(&mut self, path: usize) {
        self.paths[path] = START;
    }

    fn increase(&mut self, _path: usize, _group: Group<'_>, _acked: f64) -> f64 {
        0.0 // Once a round, in `on_round`.
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        if cause == Cause::Timeout {
            self.paths[path].rate = 0.0;
        }
        let path = group.path(path);
        Backoff::to(path.flight / 2.0, FLOOR * path.mss)
    }

    fn on_round(&mut self, index: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        let path = group.path(index);
        let (w, base) = (path.packets(), path.base_rtt.as_secs_f64());
        let rtt = match round.mean_rtt() {
            Some(rtt) if round.samples >= 3 => rtt,
            // Too few samples to tell a queue from noise: Reno's packet per round.
            _ => {
                let cwnd = (!round.slow_start).then_some(path.cwnd + path.mss);
                return RoundDecision::set(cwnd, None);
            }
        };
        // In whole packets, as in the kernel: a real number would never be what the path aims at, and never at rest.
        let queued = (w * (rtt - base) / rtt).floor();
        let decide = |w: f64, shrinks: bool| {
            let cwnd = w.max(FLOOR) * path.mss;
            // A window that shrinks does not fall back into slow start.
            let ssthresh = shrinks.then_some(path.ssthresh.min(cwnd - path.mss));
            RoundDecision::set(Some(cwnd), ssthresh)
        };
        if round.slow_start {
            if queued <= GAMMA {
                return RoundDecision::default();
            }
            return decide(w.min((w * base / rtt).floor() + 1.0), true);
        }
        self.paths[index].rate = w / rtt;
        if queued >= self.paths[index].alpha {
            let rates: f64 = group.usable().map(|path| self.paths[path.index].rate).sum();
            let weight = if rates > 0.0 { w / rtt / rates } else { 1.0 };
            self.paths[index].alpha = (TOTAL_ALPHA * weight).floor().max(LEAST_ALPHA);
        }
        let state = &mut self.paths[index];
        let mut next = w;
        if queued > state.alpha {
            next -= 1.0;
        } else if queued < state.alpha {
            next += 1.0;
        }
        let delay = rtt - base;
        if delay > 0.0 {
            if state.queue_delay == 0.0 || state.queue_delay > delay {
                state.queue_delay = delay;
            }
            // The kernel's test is also true for 0 ≥ 2·0, and again and again on the way from an empty queue to the one that the
            // path aims at, which it then never reaches. There is something to drain beyond that.
            if delay >= 2.0 * state.queue_delay && queued > state.alpha {
                next *= base / (2.0 * rtt);
                state.queue_delay = 0.0;
            }
        }
        decide(next, next < w)
    }
}

//! TCP Vegas: L. Brakmo and L. Peterson, *TCP Vegas: end to end congestion avoidance on a global Internet*, IEEE JSAC
//! 13(8), 1995. The window aims at α to β packets in the queue, which it reads from the round-trip time.

use crate::group::Group;
use crate::reference::{HALF, Reference, tunable};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::tunable::{BadTunable, word};

pub(super) const REFERENCE: Reference = Reference {
    name: "vegas",
    increase: "once a round, diff = w·(RTT−base)/RTT: +1 if diff < 2, −1 if diff > 4",
    decrease: HALF,
    source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
    section: ("3.4", "34-tcp-vegas-brakmo--peterson-1995-linux-tcp_vegasc-c"),
    tunables: &[tunable(
        "divisor",
        "rtt or base",
        "rtt",
        "What RTT − base is divided by: the paper's, or that of Linux.",
    )],
};

/// Fewest and most packets to keep in the queue, and the most of slow start.
const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
const GAMMA: f64 = 1.0;
/// The least window in packets.
const FLOOR: f64 = 2.0;

/// What the difference of round-trip times is divided by (ALGORITHMS §13 A8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Divisor {
    /// The round-trip time of the round, as in the paper.
    #[default]
    Rtt,
    /// The lowest round-trip time, as in Linux.
    BaseRtt,
}

/// Vegas' rule: decides once a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vegas {
    /// The form of the estimate of queued packets.
    pub divisor: Divisor,
}

impl Vegas {
    /// How many packets of a window of `packets` wait in queues, at round-trip times in seconds.
    pub fn queued(&self, packets: f64, base: f64, rtt: f64) -> f64 {
        let divisor = if self.divisor == Divisor::Rtt { rtt } else { base };
        packets * (rtt - base) / divisor
    }
}

impl WindowRule for Vegas {
    fn kind(&self) -> Kind {
        Kind { reads_delay: true, ..Kind::default() }
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "divisor" {
            return Err(BadTunable::Unknown { known: &["divisor"] });
        }
        self.divisor = word(value, &[("rtt", Divisor::Rtt), ("base", Divisor::BaseRtt)], "rtt or base")?;
        Ok(())
    }

    fn increase(&mut self, _path: usize, _group: Group<'_>, _acked: f64) -> f64 {
        0.0 // Once a round, in `on_round`.
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
        let path = group.path(path);
        Backoff::to(path.flight / 2.0, FLOOR * path.mss)
    }

    fn on_round(&mut self, path: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        let path = group.path(path);
        if round.samples < 3 {
            // Too few samples to tell a queue from noise: Reno's packet per round.
            let cwnd = (!round.slow_start).then_some(path.cwnd + path.mss);
            return RoundDecision::set(cwnd, None);
        }
        let (base, rtt) = (path.base_rtt.as_secs_f64(), round.min_rtt.as_secs_f64());
        let w = path.packets();
        let diff = self.queued(w, base, rtt);
        if round.slow_start {
            if diff <= GAMMA {
                return RoundDecision::default();
            }
            // The queue builds up: leave slow start with what the path holds without one.
            let cwnd = w.min((w * base / rtt).floor() + 1.0).max(FLOOR) * path.unit;
            return RoundDecision::set(Some(cwnd), Some(path.ssthresh.min(cwnd)));
        }
        let step = if diff > BETA {
            -1.0
        } else if diff < ALPHA {
            1.0
        } else {
            0.0
        };
        let cwnd = (w + step).max(FLOOR) * path.unit;
        // A window that shrinks does not fall back into slow start.
        RoundDecision::set(Some(cwnd), Some(path.ssthresh.min(cwnd)))
    }
}

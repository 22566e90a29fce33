//! CDG, CAIA delay gradient: D. Hayes and G. Armitage, *Revisiting TCP congestion control using delay gradients*, IFIP
//! Networking 2011. Reno that cuts its window to 0.7 with a probability that grows with the gradient of the round-trip
//! time from round to round, and that takes a loss for congestion only where the queue seems full. A shadow window keeps
//! what delay cuts gave away, so that loss-based neighbours do not take it all. ALGORITHMS §3.5.

use clock::Rng;

use crate::group::Group;
use crate::math::one_minus_exp_of_minus;
use crate::reference::{RENO, Reference, tunable};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::tunable::{BadTunable, number};

pub(super) const REFERENCE: Reference = Reference {
    name: "cdg",
    increase: RENO,
    decrease: "F/2 of a loss at a full queue, otherwise w; once a round 0.7·w with probability 1 − exp(−g/G), g the mean gradient of \
               the round-trip time over 8 rounds",
    source: "Hayes and Armitage, IFIP Networking 2011",
    section: ("3.5", "35-cdg-hayes--armitage-2011-freebsd-cc_cdgc-linux-tcp_cdgc-c"),
    tunables: &[tunable("scale", "a gradient in milliseconds a round from 0.001 to 1000", "3", "G.")],
};

/// Rounds in the moving average of gradients.
const ROUNDS: usize = 8;
/// Delay cuts in a row that did not shorten the queue, and so many more are then left out.
const INEFFECTUAL: u32 = 5;
/// The part of the window that a delay cut leaves.
const BETA: f64 = 0.7;

/// CDG.
#[derive(Clone, Debug)]
pub struct Cdg {
    /// `G`: the gradient in milliseconds a round at which the probability of a cut is 63 %. 3 as in the code of FreeBSD.
    pub scale: f64,
    rng: Rng,
    paths: Vec<State>, // Not inline: it would make every rule as large.
}

impl Default for Cdg {
    fn default() -> Self {
        Self { scale: 3.0, rng: Rng::from_seed(0), paths: Vec::new() }
    }
}

/// The moving average of the last gradients, zero before.
#[derive(Clone, Copy, Debug, Default)]
struct Gradients {
    ring: [f64; ROUNDS],
    oldest: usize,
    mean: f64,
}

impl Gradients {
    fn push(&mut self, gradient: f64) {
        let oldest = std::mem::replace(&mut self.ring[self.oldest], gradient);
        self.oldest = (self.oldest + 1) % ROUNDS;
        self.mean += (gradient - oldest) / ROUNDS as f64;
    }
}

/// What the gradients tell of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Queue {
    #[default]
    Unknown,
    Empty,
    Rising,
    Falling,
    Full,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// Lowest and highest round-trip time of the previous round, in milliseconds.
    previous: Option<(f64, f64)>,
    lowest: Gradients,
    highest: Gradients,
    queue: Queue,
    /// The shadow window in bytes. What it is before the first delay cut does not matter: that raises it to the window.
    shadow: f64,
    /// The window was cut by delay, and the round after it is not over.
    cut: bool,
    cuts_in_a_row: u32,
    left_out: u32,
}

impl Cdg {
    /// The probability to cut at a gradient in milliseconds a round.
    pub fn probability(&self, gradient: f64) -> f64 {
        one_minus_exp_of_minus(gradient / self.scale)
    }
}

impl WindowRule for Cdg {
    fn kind(&self) -> Kind {
        Kind { reads_delay: true, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.paths.push(State::default());
    }

    fn path_changed(&mut self, path: usize) {
        self.paths[path] = State::default();
    }

    fn seed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        if name != "scale" {
            return Err(BadTunable::Unknown { known: &["scale"] });
        }
        self.scale = number(value, 1e-3, 1e3, "a gradient in milliseconds a round from 0.001 to 1000")?;
        Ok(())
    }

    fn slow_start(&mut self, path: usize, _group: Group<'_>, acked: f64) -> f64 {
        self.paths[path].shadow += acked;
        acked
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let more = group.path(path).reno(acked);
        self.paths[path].shadow += more;
        more
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let state = &mut self.paths[path];
        let path = group.path(path);
        state.previous = None; // Rounds within recovery are not measured, and a gradient is from one round to the next.
        let floor = 2.0 * path.mss;
        let half = path.flight / 2.0;
        match cause {
            Cause::Timeout => {
                state.shadow /= 2.0;
                Backoff::to(half, floor)
            }
            Cause::Loss if state.queue != Queue::Full || state.cut => Backoff::to(path.cwnd, floor),
            Cause::Loss => {
                // A loss opens nothing: the shadow is capped, as in Linux.
                state.shadow = (state.shadow / 2.0).min(path.cwnd);
                Backoff::to(state.shadow.max(half), floor)
            }
            Cause::Ecn | Cause::Delay => Backoff::to(half, floor),
        }
    }

    fn on_round(&mut self, index: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        if round.samples == 0 {
            return RoundDecision::default();
        }
        let state = &mut self.paths[index];
        let (lowest, highest) = (round.min_rtt.as_secs_f64() * 1e3, round.max_rtt.as_secs_f64() * 1e3);
        let previous = state.previous.replace((lowest, highest));
        // The gradient of the round after a cut is the cut's own doing.
        let after_cut = std::mem::replace(&mut state.cut, false);
        let (Some(previous), false) = (previous, after_cut) else {
            return RoundDecision::default();
        };
        let raw = (lowest - previous.0, highest - previous.1);
        state.lowest.push(raw.0);
        state.highest.push(raw.1);
        let mean = (state.lowest.mean, state.highest.mean);
        state.queue = match mean {
            (low, high) if low > 0.0 && high <= 0.0 => Queue::Full,
            (low, high) if low >= 0.0 && high < 0.0 => Queue::Empty,
            (low, high) if low > 0.0 && high > 0.0 => Queue::Rising,
            (low, high) if low < 0.0 && high < 0.0 => Queue::Falling,
            _ => state.queue,
        };
        if state.queue == Queue::Empty {
            state.shadow = 0.0;
        }
        if mean.0 < 0.0 || mean.1 < 0.0 {
            (state.cuts_in_a_row, state.left_out) = (0, 0);
        }
        let gradient = if round.slow_start { raw } else { mean };
        let gradient = if gradient.0 > 0.0 { gradient.0 } else { gradient.1 };
        let probability = one_minus_exp_of_minus(gradient / self.scale);
        if probability == 0.0 || !self.rng.chance(probability) {
            return RoundDecision::default();
        }
        if state.left_out > 0 {
            state.left_out -= 1;
            return RoundDecision::default();
        }
        state.cuts_in_a_row += 1;
        if state.cuts_in_a_row == INEFFECTUAL {
            (state.cuts_in_a_row, state.left_out) = (0, INEFFECTUAL);
        }
        state.cut = true;
        let path = group.path(index);
        state.shadow = state.shadow.max(path.cwnd);
        RoundDecision::early((BETA * path.cwnd).max(2.0 * path.mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{number, vector};

    /// The inner value that the engine does not show.
    #[test]
    fn the_moving_average_is_that_of_the_vector() {
        let (input, output) = vector("cdg.2");
        assert_eq!(number(&input["a"]), ROUNDS as f64);
        let mut gradients = Gradients { mean: number(&input["prev_gbar"]), ..Gradients::default() };
        gradients.ring[0] = number(&input["oldest_g"]);
        gradients.push(number(&input["new_g"]));
        assert!((gradients.mean - number(&output["gbar"])).abs() < 1e-12);
    }
}

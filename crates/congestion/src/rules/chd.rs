//! CHD, delay-based AIMD as CAIA has it: D. Hayes and G. Armitage, *Improved coexistence and loss tolerance for delay based
//! TCP congestion control*, IEEE LCN 2010; FreeBSD `cc_chd`. The probability of [`Hd`], but one decision a round
//! trip, by its longest delay; a loss at a short queue is not congestion; and a shadow window keeps what delay cuts gave
//! away, so that loss-based neighbours do not take it all. ALGORITHMS §3.6.

use clock::Rng;

use crate::group::Group;
use crate::reference::{FRACTION, RENO, Reference, Tunable, tunable};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::rules::hd;
use crate::rules::hd::Hd;
use crate::tunable::BadTunable;

const TUNABLES: [Tunable; 3] = [
    hd::TUNABLES[0],
    hd::TUNABLES[1],
    tunable("highest_probability", FRACTION, "0.5", "That probability, per round trip."),
];

pub(super) const REFERENCE: Reference = Reference {
    name: "chd",
    increase: RENO,
    decrease: "F/2, and w at a queue below the threshold; once a round w/2 with the probability of hd",
    source: "Hayes and Armitage, IEEE LCN 2010",
    section: ("3.6", hd::HAMILTON),
    tunables: &TUNABLES,
};

/// The highest probability of a cut, per round.
const HIGHEST_PROBABILITY: f64 = 0.5;

/// CHD.
#[derive(Clone, Debug)]
pub struct Chd {
    curve: Box<Hd>, // Not inline, as the paths: it would make every rule as large.
    rng: Rng,
    paths: Vec<State>,
}

impl Default for Chd {
    fn default() -> Self {
        let mut curve = Box::<Hd>::default();
        curve.highest_probability = HIGHEST_PROBABILITY;
        Self { curve, rng: Rng::from_seed(0), paths: Vec::new() }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The longest queueing delay of the last round, in seconds; none before there was one.
    delay: Option<f64>,
    /// What the window would be without delay cuts, in bytes; zero while there was none.
    shadow: f64,
}

impl WindowRule for Chd {
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
        self.curve.tune(name, value)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        let more = group.path(path).reno(acked);
        let shadow = &mut self.paths[path].shadow;
        if *shadow > 0.0 {
            *shadow += more;
        }
        more
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let state = &mut self.paths[path];
        let path = group.path(path);
        let floor = 2.0 * path.mss;
        let short = state.delay.is_some_and(|delay| delay < self.curve.threshold);
        if cause == Cause::Loss && short {
            return Backoff::to(path.cwnd, floor);
        }
        if cause == Cause::Timeout {
            state.shadow = 0.0;
            return Backoff::to(path.flight / 2.0, floor);
        }
        // A loss opens nothing: the shadow is capped.
        let half = (state.shadow / 2.0).max(path.flight / 2.0).min(path.cwnd);
        state.shadow = 0.0;
        Backoff::to(half, floor)
    }

    fn on_round(&mut self, index: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        if round.samples == 0 {
            return RoundDecision::default();
        }
        let path = group.path(index);
        let base = path.base_rtt.as_secs_f64();
        let delay = round.max_rtt.as_secs_f64() - base;
        let state = &mut self.paths[index];
        state.delay = Some(delay);
        let probability = self.curve.probability(delay, path.top_rtt.as_secs_f64() - base);
        if probability == 0.0 || !self.rng.chance(probability) {
            return RoundDecision::default();
        }
        state.shadow = state.shadow.max(path.cwnd);
        RoundDecision::early((path.cwnd / 2.0).max(2.0 * path.mss))
    }
}

#[cfg(test)]
mod tests {
    use clock::{Duration, Instant};

    use super::*;
    use crate::engine::{Acked, Congestion, Controller, EngineConfig};

    /// A round whose only sample is `ms`, of a path that is in full use.
    fn round(control: &mut Controller<Chd>, position: &mut u64, ms: u64) {
        *position += 2;
        let rtt = Duration::from_millis(ms);
        let flight = control.cwnd(0) as u64;
        let acked = Acked { bytes: 1, flight, upto: *position, next: *position + 1, rtt: Some(rtt), srtt: rtt };
        control.on_ack(0, &acked, Instant::ZERO);
    }

    fn control() -> (Controller<Chd>, u64) {
        let mut control = Controller::new(Chd::default(), EngineConfig::default());
        control.add_path(1000);
        control.set_cwnd(0, 100e3);
        control.set_ssthresh(0, 100e3);
        let mut position = 0;
        for ms in [100, 200, 200] {
            round(&mut control, &mut position, ms); // The longest queue is 100 ms, at which nothing happens.
        }
        (control, position)
    }

    fn lose(control: &mut Controller<Chd>, next: u64) {
        let event = Congestion { cause: Cause::Loss, flight: control.cwnd(0), next };
        control.on_congestion(0, &event, Instant::ZERO);
    }

    /// The vector `hd.1` at 60 ms of 100: half of the highest probability, which is ½ a round.
    #[test]
    fn a_quarter_of_the_rounds_with_sixty_milliseconds_cuts() {
        let (mut control, mut position) = control();
        let trials = 4000;
        let mut cuts = 0.0;
        for _ in 0..trials {
            control.set_cwnd(0, 100e3);
            round(&mut control, &mut position, 160);
            cuts += f64::from(u8::from(control.cwnd(0) < 60e3));
        }
        let (mean, deviation) = (0.25 * f64::from(trials), (0.1875 * f64::from(trials)).sqrt());
        assert!((cuts - mean).abs() < 4.0 * deviation, "{cuts} cuts, expected {mean}");
    }

    #[test]
    fn a_loss_at_a_short_queue_is_no_congestion_and_one_at_a_long_queue_gives_back_what_delay_took() {
        let (mut control, mut position) = control();
        round(&mut control, &mut position, 104);
        let before = control.cwnd(0);
        lose(&mut control, position);
        assert_eq!(control.cwnd(0), before);
        position += 4;
        round(&mut control, &mut position, 104); // Ends recovery.
        while control.cwnd(0) > before / 2.0 + 1e3 {
            control.set_cwnd(0, before);
            round(&mut control, &mut position, 120); // At the threshold every second round cuts.
        }
        round(&mut control, &mut position, 200);
        lose(&mut control, position);
        assert!(
            (control.cwnd(0) - before / 2.0).abs() < 1e3,
            "half of what it was before the cut: {}",
            control.cwnd(0)
        );
    }
}

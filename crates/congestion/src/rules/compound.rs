//! Compound TCP: K. Tan, J. Song, Q. Zhang and M. Sridharan, *A compound TCP approach for high-speed and long distance
//! networks*, IEEE INFOCOM 2006 and Microsoft TR-2005-86. The window is Reno's and a second one that grows fast as long as
//! there is no queue and shrinks by the packets that wait in one. ALGORITHMS §3.7.

use smallvec::SmallVec;

use crate::group::{Group, Path};
use crate::reference::{Reference, SWITCH, tunable};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::tunable::{BadTunable, number, switch};

pub(super) const REFERENCE: Reference = Reference {
    name: "compound",
    increase: "1/w per packet; once a round, from w = 38 on, diff = w·(1−base/RTT): + w^¾/8 − 1 if diff < γ, − diff otherwise, in a \
               second window d",
    decrease: "(w−d)/2 + max(0, w/2 − (w−d)/2)",
    source: "Tan and others, IEEE INFOCOM 2006; Microsoft TR-2005-86 §3.2 and §4.3",
    section: ("3.7", "37-compound-tcp-tan-song-zhang-sridharan-2006-tr-2005-86-a-linux-port-read-cr"),
    tunables: &[
        tunable("gamma", "a number of packets from 1 to 1e6", "30", "γ at the start."),
        tunable("tuning", SWITCH, "on", "γ follows what waited in the queue at a loss, from 5 to 30."),
    ],
};

/// The growth of the second window in a round is `ALPHA · win^¾ − 1`.
const ALPHA: f64 = 0.125;
/// The part of the window that a loss takes.
const BETA: f64 = 0.5;
/// By how much the second window shrinks for a packet in the queue.
const ZETA: f64 = 1.0;
/// The second window is used from this window on; packets.
const LOW_WINDOW: f64 = 38.0;
/// Bounds of the threshold, and the weight of a new value.
const GAMMA: (f64, f64) = (5.0, 30.0);
const LAMBDA: f64 = 0.25;

/// Compound TCP.
#[derive(Clone, Debug)]
pub struct Compound {
    /// Packets in the queue from which the second window shrinks: at first, and always without `tuning`.
    pub gamma: f64,
    /// The threshold follows the queue that Reno's window alone makes before losses, which keeps flows apart that have
    /// little buffer (TR-2005-86 §4.3).
    pub tuning: bool,
    paths: SmallVec<[State; 1]>,
}

impl Default for Compound {
    fn default() -> Self {
        Self { gamma: GAMMA.1, tuning: true, paths: SmallVec::new() }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The second window in packets; a part of the congestion window.
    second: f64,
    /// The threshold in packets.
    gamma: f64,
    /// Packets of Reno's window that waited in the queue in the last round.
    queued: f64,
    /// The second window before the last reduction, for undo.
    before: f64,
}

impl Compound {
    /// The second window of `path` in packets.
    pub fn second_window(&self, path: usize) -> f64 {
        self.paths[path].second
    }

    /// The second window after a round of a whole window of `win` packets, at round-trip times in seconds.
    pub fn next_second_window(second: f64, win: f64, gamma: f64, base: f64, rtt: f64) -> f64 {
        let queued = win * (1.0 - base / rtt);
        if queued < gamma {
            let root = win.sqrt();
            second + (ALPHA * root * root.sqrt() - 1.0).max(0.0) // win^¾
        } else {
            (second - ZETA * queued).max(0.0)
        }
    }
}

impl State {
    /// What is outside of the rule may have lowered the window.
    fn second_of(&self, path: &Path) -> f64 {
        self.second.min(path.packets())
    }
}

impl WindowRule for Compound {
    fn kind(&self) -> Kind {
        Kind { reads_delay: true, ..Kind::default() }
    }

    fn path_added(&mut self, _path: usize) {
        self.paths.push(State { gamma: self.gamma, ..State::default() });
    }

    fn unit_changed(&mut self, path: usize, ratio: f64) {
        let State { second, queued, before, .. } = &mut self.paths[path];
        for packets in [second, queued, before] {
            *packets *= ratio;
        }
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        match name {
            "gamma" => self.gamma = number(value, 1.0, 1e6, "a number of packets from 1 to 1e6")?,
            "tuning" => self.tuning = switch(value)?,
            _ => return Err(BadTunable::Unknown { known: &["gamma", "tuning"] }),
        }
        Ok(())
    }

    fn slow_start(&mut self, path: usize, _group: Group<'_>, acked: f64) -> f64 {
        self.paths[path].second = 0.0;
        acked
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        // TR-2005-86 §3.2: a packet of Reno's window per whole window.
        group.path(path).reno(acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let state = &mut self.paths[path];
        let path = group.path(path);
        let (win, second) = (path.packets(), state.second_of(path));
        let reno = win - second;
        state.before = second;
        if self.tuning {
            let wanted = 0.75 * state.queued;
            state.gamma = ((1.0 - LAMBDA) * state.gamma + LAMBDA * wanted).clamp(GAMMA.0, GAMMA.1);
        }
        let floor = 2.0 * path.mss;
        if cause == Cause::Timeout {
            state.second = 0.0;
            return Backoff::to(path.flight / 2.0, floor);
        }
        // As RFC 5681, in proportion to what was outstanding.
        let used = path.flight / path.cwnd;
        state.second = used * (win * (1.0 - BETA) - reno / 2.0).max(0.0);
        Backoff::to((used * reno / 2.0 + state.second) * path.unit, floor)
    }

    fn on_round(&mut self, index: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        let state = &mut self.paths[index];
        let path = group.path(index);
        let Some(rtt) = round.mean_rtt() else {
            return RoundDecision::default();
        };
        let (win, second) = (path.packets(), state.second_of(path));
        let base = path.base_rtt.as_secs_f64();
        state.queued = (win - second) * (1.0 - base / rtt);
        if round.slow_start || win < LOW_WINDOW {
            return RoundDecision::default();
        }
        let next = Self::next_second_window(second, win, state.gamma, base, rtt);
        if next > second && !round.full {
            return RoundDecision::default();
        }
        state.second = next;
        RoundDecision::set(Some(path.cwnd + (next - second) * path.unit), None)
    }

    fn undone(&mut self, path: usize, _group: Group<'_>) {
        let state = &mut self.paths[path];
        state.second = state.second.max(state.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{number, vector};
    use clock::{Duration, Instant};

    /// A rule with a second window, and the path of one packet a byte that it belongs to.
    fn with(reno: f64, second: f64, base: f64) -> (Compound, Path) {
        let mut rule = Compound { tuning: false, ..Compound::default() };
        rule.path_added(0);
        rule.paths[0].second = second;
        let win = reno + second;
        let base_rtt = Duration::from_secs_f64(base);
        (rule, Path { flight: win, srtt: base_rtt, base_rtt, ..Path::new(win, 1.0, 1.0) })
    }

    #[test]
    fn rounds_are_those_of_the_vectors() {
        for id in ["ctcp.1", "ctcp.2"] {
            let (input, output) = vector(id);
            let (reno, second) = (number(&input["cwnd"]), number(&input["dwnd"]));
            let (mut rule, path) = with(reno, second, number(&input["base"]));
            let rtt = Duration::from_secs_f64(number(&input["rtt"]));
            let round = Round { min_rtt: rtt, max_rtt: rtt, sum_rtt: rtt, samples: 1, slow_start: false, full: true };
            let decision = rule.on_round(0, Group { paths: &[path], now: Instant::ZERO }, &round);
            let expected = number(&output["dwnd"]);
            assert!((rule.second_window(0) - expected).abs() < 1e-9, "{id}: {}", rule.second_window(0));
            assert!((decision.cwnd.unwrap() - (reno + expected)).abs() < 1e-9);
            let queued = (reno + second) * (1.0 - number(&input["base"]) / number(&input["rtt"]));
            assert!((queued - number(&output["diff"])).abs() < 1e-9);
        }
    }

    #[test]
    fn a_loss_is_that_of_the_vector() {
        let (input, output) = vector("ctcp.3");
        assert_eq!(number(&input["beta"]), BETA);
        let (mut rule, path) = with(number(&input["cwnd"]), number(&input["dwnd"]), 0.1);
        let backoff = rule.decrease(0, Group { paths: &[path], now: Instant::ZERO }, Cause::Loss);
        assert!((rule.second_window(0) - number(&output["dwnd"])).abs() < 1e-9);
        assert!((backoff.window - number(&output["cwnd"]) - number(&output["dwnd"])).abs() < 1e-9);
    }

    #[test]
    fn the_threshold_stays_within_its_bounds() {
        let (mut rule, path) = with(10.0, 0.0, 0.1);
        rule.tuning = true;
        let rtt = Duration::from_millis(200);
        let round = Round { min_rtt: rtt, max_rtt: rtt, sum_rtt: rtt, samples: 1, slow_start: false, full: true };
        for loss in 1..40 {
            let paths = [path.clone()];
            let group = Group { paths: &paths, now: Instant::ZERO };
            rule.on_round(0, group, &round);
            rule.decrease(0, group, Cause::Loss);
            // Five packets of Reno's window wait; three quarters of that are below the least threshold.
            let geometric = (1..=loss).fold(30.0_f64, |gamma, _| (0.75 * gamma + 0.25 * 3.75).max(5.0));
            assert!((rule.paths[0].gamma - geometric).abs() < 1e-9);
        }
        assert_eq!(rule.paths[0].gamma, 5.0);
    }
}

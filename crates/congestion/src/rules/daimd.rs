//! DAIMD, a layer of early delay-based reductions over a coupled control: R. González, J. Pradilla, M. Esteve and C. Palau,
//! *Hybrid delay-based congestion control for multipath TCP*, MELECON 2016. The increase and the loss are those of the
//! rule below (LIA in the paper); when delays tell of congestion the window falls to 0.7.
//!
//! The paper does not say when delays tell of congestion. This is the reconstruction of ALGORITHMS §5.2 (§13 A1): with the
//! lowest round-trip time `m` of the round, and the lowest and highest of the connection,
//!
//! ```text
//! q = (m − base) / (top − base)            0 for an empty queue, 1 for a full one
//! q ≤ low: armed;   armed and q ≥ high: cut once, disarmed
//! ```
//!
//! so one congestion epoch brings one cut, and others who keep the queue full cannot starve the flow. It waits for a first
//! loss, which shows what a full queue is. The highest is one that two samples in a row reach: a receiver holds a lone packet's
//! acknowledgment back for tens of milliseconds, and with such a sample for `top` no queue would ever seem full.

use crate::engine::Acked;
use crate::group::Group;
use crate::reference::{FRACTION, Reference, SWITCH, Tunable, tunable};
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::rules::lia::Lia;
use crate::rules::olia;
use crate::tunable::{BadTunable, number, switch, word};

const LAYER: [Tunable; 9] = [
    tunable("high", FRACTION, "0.8", "The window is cut when q reaches this."),
    tunable("low", FRACTION, "0.5", "The next cut is possible once q has been this or less."),
    tunable("delay_factor", FRACTION, "0.7", "The part of the window that such a cut leaves."),
    tunable(
        "loss_factor",
        FRACTION,
        "",
        "The part of what was in flight that a loss leaves; not set, the rule below decides.",
    ),
    tunable(
        "span",
        "a time in seconds from 0 to 60",
        "0.001",
        "A path on which top − base is less than this tells nothing.",
    ),
    tunable("statistic", "lowest, mean or highest", "lowest", "The round-trip time of a round that counts."),
    tunable("needs_loss", SWITCH, "on", "No cut before a first loss has shown what a full queue is."),
    tunable(
        "ageing",
        "a number of rounds from 0 to 1e9",
        "0",
        "top − base shrinks by one part in so many each round; 0 is never.",
    ),
    tunable(
        "hold",
        "a number of rounds from 0 to 1e9; 0 waits until the queue fell",
        "0",
        "Rounds after a cut without another.",
    ),
];

const OLIA_LAYER: [Tunable; 10] = {
    let [a, b, c, d, e, f, g, h, i] = LAYER;
    [a, b, c, d, e, f, g, h, i, olia::RANKING]
};

pub(super) const OVER_LIA: Reference = Reference {
    name: "daimd",
    increase: "as lia",
    decrease: "as lia; 0.7·w once q = (m−base)/(top−base) ≥ 0.8, m the least round-trip time of the round, not \
               again before q ≤ 0.5; at least 2",
    source: "González and others, MELECON 2016; when delays tell of congestion is a reconstruction",
    section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
    tunables: &LAYER,
};

pub(super) const OVER_OLIA: Reference = Reference {
    name: "daimd-olia",
    increase: "as olia",
    decrease: "as olia; by delay as daimd",
    source: "as daimd, over olia",
    section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
    tunables: &OLIA_LAYER,
};

pub(super) const OVER_BALIA: Reference = Reference {
    name: "daimd-balia",
    increase: "as balia",
    decrease: "as balia; by delay as daimd",
    source: "as daimd, over balia",
    section: ("5.2", "52-reconstruction-daimd-r-o--armed-threshold-on-normalised-queueing-delay"),
    tunables: &LAYER,
};

/// Which round-trip time of a round counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// The lowest.
    #[default]
    Lowest,
    /// The mean.
    Mean,
    /// The highest.
    Highest,
}

/// What ends the time after a cut in which there is no other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Rearm {
    /// The queue has fallen to `low`.
    #[default]
    QueueFell,
    /// So many rounds have passed.
    Rounds(u32),
}

/// The tunables of [`Daimd`], in the order of ALGORITHMS §5.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DaimdConfig {
    /// The normalised queueing delay at which the window is cut, 0 to 1.
    pub high: f64,
    /// The one at which the next cut becomes possible, 0 to `high`.
    pub low: f64,
    /// The part of the window that a delay cut leaves.
    pub delay_factor: f64,
    /// The part of what was outstanding that a loss leaves; as the rule below has it if `None`.
    pub loss_factor: Option<f64>,
    /// A path whose round-trip times differ by less than this tells nothing; in seconds.
    pub span: f64,
    /// Which round-trip time of a round counts.
    pub statistic: Statistic,
    /// Wait for a first loss.
    pub needs_loss: bool,
    /// The highest round-trip time is forgotten by one part in so many each round; 0 for never.
    pub ageing: f64,
    /// What ends the time after a cut.
    pub rearm: Rearm,
}

impl Default for DaimdConfig {
    fn default() -> Self {
        Self {
            high: 0.8,
            low: 0.5,
            delay_factor: 0.7,
            loss_factor: None,
            span: 0.001,
            statistic: Statistic::Lowest,
            needs_loss: true,
            ageing: 0.0,
            rearm: Rearm::QueueFell,
        }
    }
}

/// The layer over the rule `R`.
#[derive(Clone, Debug, Default)]
pub struct Daimd<R = Lia> {
    config: Box<DaimdConfig>, // Not inline, as the paths: it would make every rule as large.
    rule: R,
    paths: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The highest round-trip time of two samples in a row, in seconds.
    top: f64,
    armed: bool,
    seen_loss: bool,
    /// Rounds since the last cut.
    rounds: u32,
}

const START: State = State { top: 0.0, armed: true, seen_loss: false, rounds: 0 };

impl<R> Daimd<R> {
    /// The layer with these tunables over `rule`.
    pub fn new(config: DaimdConfig, rule: R) -> Self {
        Self { config: Box::new(config), rule, paths: Vec::new() }
    }

    /// True if the next round with a full queue cuts the window of `path`.
    pub fn is_armed(&self, path: usize) -> bool {
        self.paths[path].armed
    }

    /// Whether delays cut the window after this round.
    fn detects(&mut self, path: usize, base: f64, round: &Round) -> bool {
        let (state, config) = (&mut self.paths[path], &*self.config);
        let Some(mean) = round.mean_rtt() else {
            return false;
        };
        if config.ageing > 0.0 {
            let aged = state.top - (state.top - base) / config.ageing;
            state.top = aged.max(round.min_rtt.as_secs_f64());
        }
        state.rounds = state.rounds.saturating_add(1);
        let span = state.top - base;
        if round.slow_start || (config.needs_loss && !state.seen_loss) || span < config.span || span <= 0.0 {
            return false;
        }
        let rtt = match config.statistic {
            Statistic::Lowest => round.min_rtt.as_secs_f64(),
            Statistic::Mean => mean,
            Statistic::Highest => round.max_rtt.as_secs_f64(),
        };
        let queue = (rtt - base) / span;
        state.armed |= match config.rearm {
            Rearm::QueueFell => queue <= config.low,
            Rearm::Rounds(rounds) => state.rounds > rounds,
        };
        let cut = state.armed && queue >= config.high;
        if cut {
            (state.armed, state.rounds) = (false, 0);
        }
        cut
    }
}

impl<R: WindowRule> WindowRule for Daimd<R> {
    fn kind(&self) -> Kind {
        Kind { reads_delay: true, ..self.rule.kind() }
    }

    fn path_added(&mut self, path: usize) {
        self.paths.push(START);
        self.rule.path_added(path);
    }

    fn path_changed(&mut self, path: usize) {
        self.paths[path] = START;
        self.rule.path_changed(path);
    }

    fn seed(&mut self, rng: clock::Rng) {
        self.rule.seed(rng);
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
        const FRACTION: &str = "a number from 0 to 1";
        const STATISTICS: [(&str, Statistic); 3] =
            [("lowest", Statistic::Lowest), ("mean", Statistic::Mean), ("highest", Statistic::Highest)];
        let fraction = || number(value, 0.0, 1.0, FRACTION);
        let config = &mut *self.config;
        match name {
            "high" => config.high = fraction()?,
            "low" => config.low = fraction()?,
            "delay_factor" => config.delay_factor = fraction()?,
            "loss_factor" => config.loss_factor = Some(fraction()?),
            "span" => config.span = number(value, 0.0, 60.0, "a time in seconds from 0 to 60")?,
            "statistic" => config.statistic = word(value, &STATISTICS, "lowest, mean or highest")?,
            "needs_loss" => config.needs_loss = switch(value)?,
            "ageing" => config.ageing = number(value, 0.0, 1e9, "a number of rounds from 0 to 1e9")?,
            "hold" => {
                let rounds = number(value, 0.0, 1e9, "a number of rounds from 0 to 1e9; 0 waits until the queue fell")?;
                config.rearm = if rounds < 1.0 { Rearm::QueueFell } else { Rearm::Rounds(rounds as u32) };
            }
            _ => {
                return self.rule.tune(name, value).map_err(|error| match error {
                    BadTunable::Unknown { .. } => BadTunable::Unknown {
                        known: &[
                            "high",
                            "low",
                            "delay_factor",
                            "loss_factor",
                            "span",
                            "statistic",
                            "needs_loss",
                            "ageing",
                            "hold",
                        ],
                    },
                    error @ BadTunable::Value { .. } => error,
                });
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, path: usize, group: Group<'_>, acked: &Acked) -> bool {
        let top = &mut self.paths[path].top;
        *top = top.max(group.path(path).steady_rtt.as_secs_f64());
        self.rule.acknowledged(path, group, acked)
    }

    fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.rule.slow_start(path, group, acked)
    }

    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        self.rule.increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        self.paths[path].seen_loss |= cause != Cause::Delay;
        let mut backoff = self.rule.decrease(path, group, cause);
        let path = group.path(path);
        if let Some(factor) = self.config.loss_factor {
            backoff.window = factor * path.flight;
        }
        backoff.floor = backoff.floor.max(2.0 * path.mss);
        backoff
    }

    fn on_round(&mut self, path: usize, group: Group<'_>, round: &Round) -> RoundDecision {
        let decision = self.rule.on_round(path, group, round);
        let state = group.path(path);
        if !self.detects(path, state.base_rtt.as_secs_f64(), round) {
            return decision;
        }
        // Nothing is retransmitted and nothing recovers: the window closes until enough has been acknowledged.
        RoundDecision::early((self.config.delay_factor * state.cwnd).max(2.0 * state.mss))
    }

    fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
        self.rule.limited(path, group, acked);
    }

    fn undone(&mut self, path: usize, group: Group<'_>) {
        self.rule.undone(path, group);
    }
}

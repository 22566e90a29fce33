//! BBR, version 3: draft-ietf-ccwg-bbr, and the branch `v3` of github.com/google/bbr, whose numbers stand here where the two differ.
//! As version 1 it models the path by the highest rate of delivery and the lowest round-trip time; other than that, what it puts
//! in flight has bounds that losses teach it, it probes less often, and it leaves room for others between. ALGORITHMS §3.9.
//!
//! Its answer to marks is left out: it is for paths below 5 ms whose queues mark early, and off elsewhere.

use clock::{Duration, Instant, Rng};

use crate::delivery::{LostPacket, RateDecision, RateSample};
use crate::group::Group;
use crate::model::{Aggregation, Rounds};
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Kind, WindowRule};
use crate::rules::bbr::{DRAINED, GROWTH, LEAST, ROUNDS_WITHOUT_GROWTH, Repair, bits, burst, whole_packets};
use crate::rules::bounds::{Bounds, are_too_many, in_flight_at_loss};

pub(super) const REFERENCE: Reference = Reference {
    name: "bbr3",
    increase: "up to 2·B·D, B the highest rate of 2 cycles and D the lowest RTT of 10 s; paced at g·B, g = 2.77 until B stands for \
               3 rounds or losses exceed 2 %, 1/2.885 until B·D is in flight, then cycles of 0.91, 1, 1 and 1.25, each after 2 to \
               3 s or min(63, B·D) rounds; B·D/2 for 200 ms each 5 s",
    decrease: "of more than 2 % while it probes: max(what was in flight then, 0.7·B·D) as the most; between probes, once a round: \
               0.7 of the bounds of rate and window, or what the round delivered",
    source: "draft-ietf-ccwg-bbr; github.com/google/bbr, branch `v3`",
    section: ("3.9", "39-bbr-version-3-draft-ietf-ccwg-bbr-googlebbr-branch-v3-rc"),
    tunables: &[],
};

/// 4·ln 2: at this gain what is sent doubles each round, as an unpaced slow start does.
const STARTUP: f64 = 2.77;
const DRAIN: f64 = 1.0 / 2.885;
/// How long the lowest round-trip time is believed, and after how long the path is drained to see it again.
const RTT_MEMORY: Duration = Duration::from_secs(10);
const RTT_PROBE: Duration = Duration::from_secs(5);
/// The least and the greatest time between two probes, and their distance in rounds at most: those of a Reno of 25 Mbit/s and 30 ms.
const PROBE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));
const PROBE_ROUNDS: f64 = 63.0;
/// Acknowledgments with losses in a round that end the start.
const LOSS_EVENTS: u32 = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Startup,
    Drain,
    /// Below the rate of the path, until others have room.
    Down,
    /// At the rate of the path.
    Cruise,
    /// The same without room for others: probing from less in flight would find less than there is.
    Refill,
    /// Above it.
    Up,
    ProbeRtt,
}

/// What acknowledgments are those of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acks {
    #[default]
    Other,
    Refilling,
    ProbeStarting,
    Probe,
    ProbeStopping,
}

/// BBR, version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    rng: Rng,
    paths: Vec<State>, // Not inline: it would make every rule as large.
}

impl Default for Bbr3 {
    fn default() -> Self {
        Self { rng: Rng::from_seed(0), paths: Vec::new() }
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    mode: Mode,
    rounds: Rounds,
    /// The highest rate of the previous cycle and of the present one, in bytes per second.
    rates: [f64; 2],
    bounds: Bounds,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The lowest of the last five seconds.
    recent_rtt: Option<Duration>,
    recent_rtt_at: Instant,
    drained_until: Option<Instant>,
    drained_round: bool,
    restarted: bool,
    /// The rate that the next rounds are compared with, and how many have not exceeded it.
    full: f64,
    full_rounds: u32,
    is_full_now: bool,
    is_full: bool,
    loss_events: u32,
    /// Of the present phase of probing.
    since: Instant,
    wait: Duration,
    rounds_waited: u32,
    acks: Acks,
    /// Samples are those of a probe: what is lost of it tells of the most that fits.
    is_probe: bool,
    was_too_high: bool,
    stopped_early: bool,
    /// Packets that are acknowledged for each by which the long-term bound grows, and since it last grew.
    slope: f64,
    slope_rounds: u32,
    probed: f64,
    aggregation: Aggregation,
    repair: Repair,
    prior: f64,
    first_window: f64,
    pace: Option<u64>,
    mss: f64,
}

impl State {
    fn highest(&self) -> f64 {
        self.rates[0].max(self.rates[1])
    }

    fn rate(&self) -> f64 {
        self.highest().min(self.bounds.rate)
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (STARTUP, 2.0),
            Mode::Drain => (DRAIN, 2.0),
            Mode::Up => (1.25, 2.25),
            Mode::Down => (0.91, 2.0),
            Mode::Cruise | Mode::Refill => (1.0, 2.0),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// `gain` bandwidth-delay products of `rate`, in bytes.
    fn product(&self, rate: f64, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt else { return self.first_window };
        whole_packets(gain * rate * min_rtt.as_secs_f64(), self.mss) * self.mss
    }

    /// The same with room for bursts.
    fn with_bursts(&self, bytes: f64) -> f64 {
        let least = (3.0 * burst(self.pace)).max(LEAST);
        bytes.max(least * self.mss) + if self.mode == Mode::Up { 2.0 * self.mss } else { 0.0 }
    }

    fn in_flight(&self, rate: f64) -> f64 {
        self.with_bursts(self.product(rate, 1.0))
    }

    fn target(&self, cwnd: f64) -> f64 {
        self.in_flight(self.rate()).min(cwnd)
    }

    fn compare_from(&mut self, rate: f64) {
        (self.full, self.full_rounds, self.is_full_now) = (rate, 0, false);
    }

    fn start_refill(&mut self, total: u64) {
        self.bounds.forget_short_term();
        (self.slope_rounds, self.probed, self.stopped_early) = (0, 0.0, false);
        self.acks = Acks::Refilling;
        self.rounds.restart(total);
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, now: Instant, sample: &RateSample, cwnd: f64) {
        self.acks = Acks::ProbeStarting;
        self.rounds.restart(sample.total);
        self.since = now;
        self.compare_from(sample.rate().unwrap_or(0.0));
        self.mode = Mode::Up;
        self.raise_slope(cwnd);
    }

    fn start_down(&mut self, now: Instant, total: u64, rng: &mut Rng) {
        self.bounds.forget_round();
        self.slope = f64::INFINITY;
        self.rounds_waited = rng.below(2) as u32;
        self.wait = PROBE.0 + Duration::from_nanos(rng.below((PROBE.1 - PROBE.0).as_nanos()));
        self.since = now;
        self.acks = Acks::ProbeStopping;
        self.rounds.restart(total);
        self.mode = Mode::Down;
    }

    fn start_cruise(&mut self) {
        if self.bounds.short_term.is_finite() {
            self.bounds.short_term = self.bounds.short_term.min(self.bounds.long_term);
        }
        self.mode = Mode::Cruise;
    }

    /// Each round of a probe that finds room doubles what it adds.
    fn raise_slope(&mut self, cwnd: f64) {
        self.slope = (cwnd / self.mss / f64::from(1_u32 << self.slope_rounds)).floor().max(1.0);
        self.slope_rounds = (self.slope_rounds + 1).min(30);
    }

    /// A probe has put too much in flight: `in_flight` when that showed.
    fn is_too_high(
        &mut self,
        in_flight: f64,
        is_app_limited: bool,
        now: Instant,
        total: u64,
        cwnd: f64,
        rng: &mut Rng,
    ) {
        self.was_too_high = true;
        self.is_probe = false;
        if !is_app_limited {
            self.bounds.cut_long_term(in_flight, self.target(cwnd));
        }
        if self.mode == Mode::Up {
            self.start_down(now, total, rng);
        }
    }

    fn measure(&mut self, now: Instant, sample: &RateSample, cwnd: f64) {
        self.rounds.update(sample);
        self.rounds_waited += u32::from(self.rounds.is_start);
        self.bounds.begin(sample);
        if let Some(rate) = sample.rate() {
            if !sample.is_app_limited || rate >= self.highest() {
                self.rates[1] = self.rates[1].max(rate);
            }
            let probes = matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up);
            self.bounds.adapt(sample, probes, cwnd, self.highest());
        }
        let window = if self.is_full { 5 } else { 1 };
        let rate = self.rate();
        self.aggregation.update(now, sample, self.rounds.is_start, window, rate, cwnd);
    }

    /// Whether the path is full, and the queue of that drained.
    fn fill(&mut self, now: Instant, sample: &RateSample, rng: &mut Rng) {
        if !self.is_full {
            self.loss_events += u32::from(sample.newly_lost > 0);
            let lossy = self.repair == Repair::Loss && self.loss_events >= LOSS_EVENTS;
            if self.bounds.is_round && lossy && are_too_many(sample.lost, sample.tx_in_flight) {
                self.is_full = true;
                self.bounds.long_term = self.in_flight(self.highest()).max(self.bounds.latest);
            }
            if self.bounds.is_round {
                self.loss_events = 0;
            }
        }
        if !self.is_full_now && !sample.is_app_limited {
            let rate = sample.rate().unwrap_or(0.0);
            if rate >= GROWTH * self.full {
                self.compare_from(rate);
            } else if self.rounds.is_start {
                self.full_rounds += 1;
                self.is_full_now = self.full_rounds >= ROUNDS_WITHOUT_GROWTH;
                self.is_full |= self.is_full_now;
            }
        }
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.bounds.forget_round();
        }
        if self.mode == Mode::Drain && sample.in_flight as f64 <= self.in_flight(self.highest()) {
            self.start_down(now, sample.total, rng);
        }
    }

    /// What the acknowledgments of a probe, or after it, tell of the long-term bound. Returns whether another probe begins.
    fn adapt_long_term(&mut self, now: Instant, sample: &RateSample, cwnd: f64, rng: &mut Rng) -> bool {
        if self.acks == Acks::ProbeStarting && self.rounds.is_start {
            self.acks = Acks::Probe;
        }
        if self.acks == Acks::ProbeStopping && self.rounds.is_start {
            self.is_probe = false;
            self.acks = Acks::Other;
            if self.probes_bandwidth() {
                // The highest rate of the cycle is known now.
                if !sample.is_app_limited && self.rates[1] > 0.0 {
                    self.rates = [self.rates[1], 0.0];
                }
                // It stopped at a bound that has turned out not to be one.
                if self.stopped_early && !self.was_too_high {
                    self.start_refill(sample.total);
                    return true;
                }
            }
        }
        let in_flight = sample.tx_in_flight as f64;
        if are_too_many(sample.lost, sample.tx_in_flight) {
            if self.is_probe {
                self.is_too_high(in_flight, sample.is_app_limited, now, sample.total, cwnd, rng);
            }
        } else if self.bounds.long_term.is_finite() {
            self.bounds.long_term = self.bounds.long_term.max(in_flight);
            if self.mode == Mode::Up {
                self.raise_long_term(sample, cwnd);
            }
        }
        false
    }

    fn raise_long_term(&mut self, sample: &RateSample, cwnd: f64) {
        if !sample.is_window_limited || cwnd < self.bounds.long_term {
            return;
        }
        self.probed += sample.acked as f64 / self.mss;
        let more = (self.probed / self.slope).floor();
        if more > 0.0 {
            self.probed -= more * self.slope;
            self.bounds.long_term += more * self.mss;
        }
        if self.rounds.is_start {
            self.raise_slope(cwnd);
        }
    }

    fn next_phase(&mut self, now: Instant, sample: &RateSample, cwnd: f64, rng: &mut Rng) {
        if !self.is_full || self.adapt_long_term(now, sample, cwnd, rng) {
            return;
        }
        let in_flight = sample.prior_in_flight as f64;
        match self.mode {
            Mode::Down | Mode::Cruise => {
                let waited = now.saturating_since(self.since) > self.wait;
                let rounds = PROBE_ROUNDS.min(self.target(cwnd) / self.mss);
                let room = self.bounds.with_headroom(self.mss).min(self.in_flight(self.highest()));
                if waited || f64::from(self.rounds_waited) >= rounds {
                    self.start_refill(sample.total);
                } else if self.mode == Mode::Down && in_flight <= room {
                    self.start_cruise();
                }
            }
            Mode::Refill if self.rounds.is_start => {
                self.is_probe = true;
                self.start_up(now, sample, cwnd);
            }
            Mode::Up => {
                let reached = self.was_too_high && in_flight >= self.bounds.long_term;
                let bounded = sample.is_window_limited && cwnd >= self.bounds.long_term;
                if reached {
                    self.stopped_early = true;
                } else if bounded {
                    // The bound keeps the rate from growing, not the path.
                    self.compare_from(sample.rate().unwrap_or(0.0));
                }
                if reached || (!bounded && self.is_full_now) {
                    self.was_too_high = false;
                    self.start_down(now, sample.total, rng);
                }
            }
            _ => {}
        }
    }

    /// The lowest round-trip time, which is seen only where no queue is. Returns the window to go on with, in bytes.
    fn probe_rtt(&mut self, now: Instant, sample: &RateSample, cwnd: f64, rng: &mut Rng) -> f64 {
        let is_due = self.recent_rtt.is_some() && now.saturating_since(self.recent_rtt_at) > RTT_PROBE;
        if let Some(rtt) = sample.rtt
            && (self.recent_rtt.is_none_or(|min| rtt < min) || (is_due && !sample.is_ack_delayed))
        {
            (self.recent_rtt, self.recent_rtt_at) = (Some(rtt), now);
        }
        let expired = now.saturating_since(self.min_rtt_at) > RTT_MEMORY;
        if let Some(recent) = self.recent_rtt
            && (self.min_rtt.is_none_or(|min| recent <= min) || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (Some(recent), self.recent_rtt_at);
        }
        if is_due && !self.restarted && self.mode != Mode::ProbeRtt {
            self.save(cwnd);
            self.mode = Mode::ProbeRtt;
            self.drained_until = None;
            self.acks = Acks::ProbeStopping;
            self.rounds.restart(sample.total);
        }
        if sample.delivered > 0 {
            self.restarted = false;
        }
        if self.mode != Mode::ProbeRtt {
            return cwnd;
        }
        match self.drained_until {
            None if sample.in_flight as f64 <= self.drained() => {
                self.drained_until = Some(now + DRAINED);
                self.drained_round = false;
                self.rounds.restart(sample.total);
            }
            None => {}
            Some(until) => {
                self.drained_round |= self.rounds.is_start;
                if self.drained_round && now > until {
                    self.recent_rtt_at = now;
                    self.bounds.forget_short_term();
                    if self.is_full {
                        self.start_down(now, sample.total, rng);
                        self.start_cruise();
                    } else {
                        self.mode = Mode::Startup;
                    }
                    return cwnd.max(self.prior);
                }
            }
        }
        cwnd
    }

    /// The window that drains the path.
    fn drained(&self) -> f64 {
        self.product(self.rate(), 0.5).max(LEAST * self.mss)
    }

    fn save(&mut self, cwnd: f64) {
        let is_good = self.repair == Repair::Nothing && self.mode != Mode::ProbeRtt;
        self.prior = if is_good { cwnd } else { self.prior.max(cwnd) };
    }

    fn window(&self, sample: &RateSample, cwnd: f64) -> f64 {
        let (_, gain) = self.gains();
        let least = LEAST * self.mss;
        let mut window = cwnd;
        if sample.acked > 0 {
            let rate = self.rate();
            let target = self.with_bursts(self.product(rate, gain) + self.aggregation.excess(rate));
            let more = window + sample.acked as f64;
            if self.is_full {
                window = more.min(target);
            } else if window < target || window < 2.0 * self.first_window {
                window = more;
            }
            window = window.max(least);
        }
        let bound = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.long_term,
            Mode::Cruise => self.bounds.with_headroom(self.mss),
            Mode::ProbeRtt => self.bounds.with_headroom(self.mss).min(self.drained()),
            Mode::Startup | Mode::Drain => f64::INFINITY,
        };
        window.min(bound.min(self.bounds.short_term).max(least))
    }

    fn set_pace(&mut self, sample: &RateSample, cwnd: f64) {
        let (gain, _) = self.gains();
        let pace = bits(gain * self.rate());
        match (self.pace, sample.rtt) {
            (None, Some(rtt)) => {
                self.pace = Some(bits(STARTUP * cwnd / rtt.max(Duration::from_micros(1)).as_secs_f64()));
            }
            (Some(before), _) if self.is_full || pace > before => self.pace = Some(pace.max(1)),
            _ => {}
        }
    }
}

impl WindowRule for Bbr3 {
    fn kind(&self) -> Kind {
        Kind { reads_rate: true, ..Kind::default() }
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

    fn slow_start(&mut self, _path: usize, _group: Group<'_>, _acked: f64) -> f64 {
        0.0
    }

    fn increase(&mut self, _path: usize, _group: Group<'_>, _acked: f64) -> f64 {
        0.0
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let (state, path) = (&mut self.paths[path], group.path(path));
        if matches!(cause, Cause::Loss | Cause::Timeout) {
            state.save(path.cwnd);
            state.bounds.save();
            state.repair = Repair::Loss;
        }
        if cause == Cause::Timeout {
            state.repair = Repair::Timeout;
            state.compare_from(0.0);
            let probes = matches!(state.mode, Mode::Startup | Mode::Refill | Mode::Up);
            if !probes && state.bounds.short_term.is_infinite() {
                state.bounds.short_term = path.cwnd.max(state.prior);
            }
        }
        Backoff::to(path.cwnd, 2.0 * path.mss)
    }

    fn undone(&mut self, path: usize, _group: Group<'_>) {
        let state = &mut self.paths[path];
        state.compare_from(0.0);
        state.bounds.restore();
        // The window is restored as after a timeout.
        state.repair = Repair::Timeout;
    }

    fn lost(&mut self, path: usize, group: Group<'_>, packet: &LostPacket) {
        let (state, cwnd) = (&mut self.paths[path], group.path(path).cwnd);
        state.bounds.on_lost(packet);
        if state.is_probe && are_too_many(packet.lost, packet.tx_in_flight) {
            let in_flight = in_flight_at_loss(packet);
            state.is_too_high(in_flight, packet.is_app_limited, group.now, packet.total, cwnd, &mut self.rng);
        }
    }

    fn sampled(&mut self, path: usize, group: Group<'_>, sample: &RateSample) -> RateDecision {
        let (state, rng, now) = (&mut self.paths[path], &mut self.rng, group.now);
        let path = group.path(path);
        let mut cwnd = path.cwnd;
        state.mss = path.mss;
        if state.first_window == 0.0 {
            state.first_window = cwnd;
        }
        if !path.in_recovery && std::mem::take(&mut state.repair) == Repair::Timeout {
            cwnd = cwnd.max(state.prior);
        }
        if let Some(at) = sample.restarted {
            state.restarted = true;
            state.aggregation.restart(at);
        }
        state.measure(now, sample, cwnd);
        state.fill(now, sample, rng);
        state.next_phase(now, sample, cwnd, rng);
        let cwnd = state.probe_rtt(now, sample, cwnd, rng);
        state.set_pace(sample, cwnd);
        let cwnd = state.window(sample, cwnd);
        state.bounds.end(sample);
        RateDecision { cwnd, is_low: state.mode == Mode::ProbeRtt }
    }

    fn pace(&self, path: usize) -> Option<u64> {
        self.paths[path].pace
    }
}

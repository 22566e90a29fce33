//! BBR, version 1: N. Cardwell and others, *BBR: congestion-based congestion control*, ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; Linux's `net/ipv4/tcp_bbr.c`. The highest rate of delivery and the lowest
//! round-trip time are the model of the path; the pace follows the one, the window twice their product, and losses do not matter.
//! ALGORITHMS §3.8.
//!
//! Of Linux's details, those are left out that follow from segmentation offload: a burst is one packet, or two above 1.2 Mbit/s.

use clock::{Duration, Instant, Rng};

use crate::delivery::{RateDecision, RateSample};
use crate::group::Group;
use crate::model::{Aggregation, Rounds, WindowedMax};
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Kind, WindowRule};
use crate::rules::policer::Policer;

pub(super) const REFERENCE: Reference = Reference {
    name: "bbr",
    increase: "up to 2·B·D, B the highest rate of 10 rounds and D the lowest RTT of 10 s; paced at g·B, g = 2.885 until B stands \
               for 3 rounds, 1/2.885 until B·D is in flight, then 1.25, 0.75, 1, 1, 1, 1, 1, 1 for D each; 4 packets for 200 ms each 10 s",
    decrease: "F for a round, then what it was",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux, `tcp_bbr.c`",
    section: ("3.8", "38-bbr-version-1-draft-cardwell-iccrg-bbr-congestion-control-00-linux-tcp_bbrc-rc"),
    tunables: &[],
};

/// 2/ln 2: the least gain at which what is sent doubles each round.
const HIGH: f64 = 2.885;
/// The gains of the phases of [`Mode::ProbeBandwidth`], each as long as the lowest round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The rate that is paced at is so much of what is estimated, lest a queue stays.
pub(super) const MARGIN: f64 = 0.99;
/// The least window, and that of [`Mode::ProbeRtt`], in packets.
pub(super) const LEAST: f64 = 4.0;
/// Rates that grow by less in three rounds are those of a path that is full.
pub(super) const GROWTH: f64 = 1.25;
pub(super) const ROUNDS_WITHOUT_GROWTH: u32 = 3;
/// How long the lowest round-trip time is believed, and how long the path is drained to see it again.
const RTT_MEMORY: Duration = Duration::from_secs(10);
pub(super) const DRAINED: Duration = Duration::from_millis(200);
/// Rounds of a window of [`Aggregation`].
const AGGREGATION: u32 = 5;
/// Until there is a round-trip time (Linux).
const FIRST_RTT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// What losses are being repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repair {
    #[default]
    Nothing,
    Loss,
    Timeout,
}

/// BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    rng: Rng,
    paths: Vec<State>, // Not inline: it would make every rule as large.
}

impl Default for Bbr {
    fn default() -> Self {
        Self { rng: Rng::from_seed(0), paths: Vec::new() }
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    mode: Mode,
    rounds: Rounds,
    /// Bytes per second.
    bandwidth: WindowedMax,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// When the path has been drained for long enough, once little is in flight; and whether that was for a round.
    drained_until: Option<Instant>,
    drained_round: bool,
    restarted: bool,
    /// The rate that the next rounds are compared with, and how many have not exceeded it.
    full: f64,
    full_rounds: u32,
    is_full: bool,
    phase: usize,
    phase_since: Instant,
    aggregation: Aggregation,
    policer: Policer,
    repair: Repair,
    was: Repair,
    conserves: bool,
    /// The window before repair, or before the path was drained, in bytes.
    prior: f64,
    /// Bits per second.
    pace: Option<u64>,
}

/// The bandwidth-delay product in whole packets, and room for bursts at both ends.
pub(super) fn whole_packets(bytes: f64, mss: f64) -> f64 {
    (bytes / mss - 1e-9).ceil()
}

/// The pace of a rate in bytes per second, in bit/s.
pub(super) fn bits(rate: f64) -> u64 {
    (rate * 8.0 * MARGIN) as u64
}

/// Packets that leave together (`bbr_min_tso_segs` of Linux).
pub(super) fn burst(pace: Option<u64>) -> f64 {
    if pace.is_some_and(|pace| pace < 1_200_000) { 1.0 } else { 2.0 }
}

impl State {
    fn rate(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH,
            Mode::Drain => 1.0 / HIGH,
            Mode::ProbeBandwidth if self.policer.rate().is_none() => CYCLE[self.phase],
            Mode::ProbeBandwidth | Mode::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH,
            Mode::ProbeBandwidth => 2.0,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// `gain` bandwidth-delay products of `rate`, and `more` bytes, in whole packets with room for bursts.
    fn target(&self, rate: f64, gain: f64, more: f64, mss: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt else { return 10.0 };
        let packets = whole_packets(gain * rate * min_rtt.as_secs_f64(), mss) + (more / mss).floor();
        let packets = 2.0 * ((packets + 3.0 * burst(self.pace)) / 2.0).ceil();
        // However small the product is, probing has to put more in flight.
        if self.mode == Mode::ProbeBandwidth && self.phase == 0 { packets + 2.0 } else { packets }
    }

    fn measure(&mut self, now: Instant, sample: &RateSample, cwnd: f64, rng: &mut Rng) {
        self.rounds.update(sample);
        if self.rounds.is_start {
            self.conserves = false;
        }
        if let Some(rate) = sample.rate() {
            let probes = self.mode == Mode::ProbeBandwidth;
            if self.policer.update(now, sample, &self.rounds, probes) {
                self.enter_cycle(now, rng);
            }
            // An application's rate tells of the path only if it is higher than what is known.
            if !sample.is_app_limited || rate >= self.bandwidth.get() {
                self.bandwidth.update(self.rounds.count, rate);
            }
        }
        let rate = self.rate();
        self.aggregation.update(now, sample, self.rounds.is_start, AGGREGATION, rate, cwnd);
    }

    fn enter_cycle(&mut self, now: Instant, rng: &mut Rng) {
        self.mode = Mode::ProbeBandwidth;
        // Any phase but the second: flows that start together are not to probe together.
        self.phase = (CYCLE.len() - rng.below(7) as usize) % CYCLE.len();
        self.phase_since = now;
    }

    fn next_phase(&mut self, now: Instant, sample: &RateSample, mss: f64) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let is_over = self.min_rtt.is_none_or(|min_rtt| now.saturating_since(self.phase_since) > min_rtt);
        let (gain, in_flight) = (self.pacing_gain(), sample.prior_in_flight as f64 / mss);
        let rate = self.bandwidth.get();
        let ends = if gain > 1.0 {
            let has_filled = in_flight + burst(self.pace) >= self.target(rate, gain, 0.0, mss);
            is_over && (sample.newly_lost > 0 || has_filled)
        } else if gain < 1.0 {
            is_over || in_flight <= self.target(rate, 1.0, 0.0, mss)
        } else {
            is_over
        };
        if ends {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_since = now;
        }
    }

    /// Whether the path is full, and the queue of that drained.
    fn fill(&mut self, now: Instant, sample: &RateSample, mss: f64, rng: &mut Rng) {
        if !self.is_full && self.rounds.is_start && !sample.is_app_limited {
            if self.bandwidth.get() >= GROWTH * self.full {
                (self.full, self.full_rounds) = (self.bandwidth.get(), 0);
            } else {
                self.full_rounds += 1;
                self.is_full = self.full_rounds >= ROUNDS_WITHOUT_GROWTH;
            }
        }
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        let in_flight = sample.in_flight as f64 / mss;
        if self.mode == Mode::Drain && in_flight <= self.target(self.bandwidth.get(), 1.0, 0.0, mss) {
            self.enter_cycle(now, rng);
        }
    }

    /// The lowest round-trip time, which is seen only where no queue is. Returns the window to go on with, in bytes.
    fn probe_rtt(&mut self, now: Instant, sample: &RateSample, cwnd: f64, mss: f64, rng: &mut Rng) -> f64 {
        let expired = self.min_rtt.is_some() && now.saturating_since(self.min_rtt_at) > RTT_MEMORY;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|min| rtt <= min) || (expired && !sample.is_ack_delayed))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save(cwnd);
            self.drained_until = None;
        }
        if sample.delivered > 0 {
            self.restarted = false;
        }
        if self.mode != Mode::ProbeRtt {
            return cwnd;
        }
        match self.drained_until {
            None if sample.in_flight as f64 <= LEAST * mss => {
                self.drained_until = Some(now + DRAINED);
                self.drained_round = false;
                self.rounds.restart(sample.total);
            }
            None => {}
            Some(until) => {
                self.drained_round |= self.rounds.is_start;
                if self.drained_round && now > until {
                    self.min_rtt_at = now;
                    if self.is_full {
                        self.enter_cycle(now, rng);
                    } else {
                        self.mode = Mode::Startup;
                    }
                    return cwnd.max(self.prior);
                }
            }
        }
        cwnd
    }

    fn save(&mut self, cwnd: f64) {
        let is_good = self.was == Repair::Nothing && self.mode != Mode::ProbeRtt;
        self.prior = if is_good { cwnd } else { self.prior.max(cwnd) };
    }

    /// The window, in packets.
    fn window(&mut self, sample: &RateSample, cwnd: f64, mss: f64) -> f64 {
        let [acked, lost, in_flight] =
            [sample.acked, sample.newly_lost, sample.in_flight].map(|bytes| bytes as f64 / mss);
        let mut packets = cwnd / mss;
        if acked > 0.0 {
            packets = (packets - lost).max(1.0);
            if self.repair == Repair::Loss && self.was == Repair::Nothing {
                // One round of what is acknowledged, no more: what else was lost is not known yet.
                self.conserves = true;
                self.rounds.restart(sample.total);
                packets = in_flight + acked;
            } else if self.repair == Repair::Nothing && self.was != Repair::Nothing {
                packets = packets.max(self.prior / mss);
                self.conserves = false;
            }
            self.was = self.repair;
            if self.conserves {
                packets = packets.max(in_flight + acked);
            } else {
                let excess = if self.is_full { self.aggregation.excess(self.rate()) } else { 0.0 };
                let target = self.target(self.rate(), self.window_gain(), excess, mss);
                if self.is_full {
                    packets = (packets + acked).min(target);
                } else if packets < target || (sample.total as f64) < 10.0 * mss {
                    packets += acked;
                }
                packets = packets.max(LEAST);
            }
        }
        if self.mode == Mode::ProbeRtt { packets.min(LEAST) } else { packets }
    }

    fn set_pace(&mut self, sample: &RateSample, cwnd: f64) {
        let pace = bits(self.pacing_gain() * self.rate());
        match self.pace {
            None => {
                let rtt = sample.rtt.unwrap_or(FIRST_RTT).max(Duration::from_micros(1));
                self.pace = Some(bits(HIGH * cwnd / rtt.as_secs_f64()));
            }
            Some(before) if self.is_full || pace > before => self.pace = Some(pace.max(1)),
            Some(_) => {}
        }
    }
}

impl WindowRule for Bbr {
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
        match cause {
            Cause::Loss => {
                state.save(path.cwnd);
                state.repair = Repair::Loss;
            }
            Cause::Timeout => {
                state.save(path.cwnd);
                (state.repair, state.was) = (Repair::Timeout, Repair::Timeout);
                state.full = 0.0;
            }
            Cause::Ecn | Cause::Delay => {}
        }
        Backoff::to(path.cwnd, 2.0 * path.mss)
    }

    fn undone(&mut self, path: usize, _group: Group<'_>) {
        let state = &mut self.paths[path];
        (state.full, state.full_rounds) = (0.0, 0);
        state.policer.reset();
    }

    fn sampled(&mut self, path: usize, group: Group<'_>, sample: &RateSample) -> RateDecision {
        let (state, rng, now) = (&mut self.paths[path], &mut self.rng, group.now);
        let path = group.path(path);
        let mss = path.mss;
        if !path.in_recovery {
            state.repair = Repair::Nothing;
        }
        if let Some(at) = sample.restarted {
            state.restarted = true;
            state.aggregation.restart(at);
        }
        state.measure(now, sample, path.cwnd, rng);
        state.next_phase(now, sample, mss);
        state.fill(now, sample, mss, rng);
        let cwnd = state.probe_rtt(now, sample, path.cwnd, mss, rng);
        state.set_pace(sample, cwnd);
        RateDecision { cwnd: state.window(sample, cwnd, mss) * mss, is_low: state.mode == Mode::ProbeRtt }
    }

    fn pace(&self, path: usize) -> Option<u64> {
        self.paths[path].pace
    }
}

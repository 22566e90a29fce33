//! Generation 1 (paper 1; paper 3 §III-B): a TCP New Reno, untouched, whose packets go out on the path where they are
//! expected first. One marked packet a path and round trip tells whether the expectation is right; a path that is
//! congested by that, or from which TCP misses a packet, is closed, and probed until it opens again: with a packet of data
//! (paper 1, §IV-F), or by heartbeats, which also keep what is expected of paths up to date (paper 3, §III-B).

use std::collections::VecDeque;

use clock::{Instant, Rng};
use recovery::RttEstimator;

use super::config::{MhipConfig, PathCounters, PathStatus, Since};
use super::forecast::{Expected, Forecast};
use super::heartbeats::{HEARTBEAT, Heartbeats};
use super::path_states::{Closing, Mark, PathState, PathStates};
use crate::packet::{Blocks, Flags, Packet, expand};
use crate::sender::TcpSender;

/// After so many timeouts in a row a path is closed.
const STALLS: u32 = 2;

/// The position of a mark that is a heartbeat: none of TCP's.
const OUTSIDE: u64 = u64::MAX;

/// The sender.
#[derive(Clone, Debug)]
pub(crate) struct SimpleSender {
    pub(crate) tcp: TcpSender,
    pub(crate) forecast: Forecast,
    pub(crate) states: PathStates,
    heartbeats: Heartbeats,
    /// The first packet not acknowledged, and from it on the path of each packet that was sent.
    una: u64,
    assigned: VecDeque<u8>,
    paths: Vec<OnPath>,
    /// Timeouts since something was acknowledged.
    stalls: u32,
    config: std::sync::Arc<MhipConfig>,
    since: Since,
}

#[derive(Clone, Debug)]
struct OnPath {
    flight: u64,
    rtt: RttEstimator,
    counters: PathCounters,
}

impl SimpleSender {
    pub(crate) fn new(config: &std::sync::Arc<MhipConfig>, random: Rng) -> Self {
        let path = OnPath { flight: 0, rtt: RttEstimator::new(config.rtt()), counters: PathCounters::default() };
        Self {
            tcp: TcpSender::new(std::sync::Arc::new(config.tcp.clone()), random),
            forecast: Forecast::new(&config.paths, config.tcp.packet_size),
            states: PathStates::new(config.paths.len(), config.probe_interval),
            heartbeats: Heartbeats::new(config.heartbeat, config.paths.len()),
            una: 0,
            assigned: VecDeque::new(),
            paths: vec![path; config.paths.len().max(1)],
            stalls: 0,
            config: std::sync::Arc::clone(config),
            since: Since(Instant::ZERO),
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.since = Since(now);
        self.tcp.start(now);
        self.heartbeats.start(now);
    }

    pub(crate) fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &Blocks) {
        self.account(now);
        if packet.flags.has(HEARTBEAT) {
            self.heartbeat(now, packet.path.into(), packet.time);
            return;
        }
        let ack = expand(packet.position, self.una);
        let sent = self.assigned.len() as u64;
        if let Some(path) = self.paths.get_mut(usize::from(packet.path))
            && packet.time <= now
        {
            path.rtt.sample(now - packet.time);
            self.forecast.sample(packet.path.into(), now - packet.time);
        }
        self.judge_probe(now, packet.path.into(), packet.time);
        if ack > self.una && ack <= self.una + sent {
            self.judge_marks(now, ack);
            self.stalls = 0;
            for path in self.assigned.drain(..(ack - self.una) as usize) {
                if let Some(path) = self.paths.get_mut(usize::from(path)) {
                    path.flight = path.flight.saturating_sub(1);
                }
            }
            self.una = ack;
            for (index, path) in self.paths.iter().enumerate() {
                self.forecast.at_most(index, now, path.flight, self.config.tcp.packet_size);
            }
        }
        let before = self.tcp.counters().reductions;
        self.tcp.handle_input(now, packet, blocks.as_slice());
        if self.tcp.counters().reductions > before
            && let Some(path) = self.assigned.front().copied()
        {
            // Indicator 1: the duplicate acknowledgments of a packet that went this way.
            self.congested(usize::from(path), now);
        }
    }

    /// The heartbeat that was sent on `path` at `sent` is answered.
    fn heartbeat(&mut self, now: Instant, path: usize, sent: Instant) {
        let Some(expected) = self.heartbeats.answered(path, sent) else { return };
        if !self.judge_probe(now, path, sent) {
            self.forecast.correct(path, expected, now, self.config.gain);
        }
    }

    /// Indicator 2, for all marks that `ack` covers (paper 1, §IV-G).
    fn judge_marks(&mut self, now: Instant, ack: u64) {
        let regular = ack == self.una + 1;
        for path in 0..self.paths.len() {
            let Some(mark) = self.states.observed(path).filter(|mark| mark.position < ack) else { continue };
            let probe = matches!(self.states.get(path), Some(PathState::Probing { .. }));
            if regular || probe {
                self.judge(now, path, &mark);
            } else {
                self.states.unmark(path); // Which path is congested, a cumulative one does not tell.
            }
        }
    }

    /// Nothing but a probe is sent on a closed path: an answer that comes back on it tells of the probe, whatever is
    /// missing on other paths. Whether it was one.
    fn judge_probe(&mut self, now: Instant, path: usize, sent: Instant) -> bool {
        match self.states.get(path) {
            Some(PathState::Probing { probe }) if probe.sent == sent => {
                self.judge(now, path, &probe);
                true
            }
            _ => false,
        }
    }

    /// Whether a marked packet was late. Either way its path's delay is known better now (§IV-E).
    fn judge(&mut self, now: Instant, path: usize, mark: &Mark) {
        let Some(limit) = self.noticeable(path) else { return };
        let excess = self.forecast.excess(path, mark.expected, now);
        self.forecast.correct(path, mark.expected, now, self.config.gain);
        if excess > limit {
            self.congested(path, now);
        } else if !self.states.reopen(path) {
            self.states.unmark(path);
        } else {
            self.forecast.restart(path, now);
        }
    }

    /// The excess that tells of congestion, in seconds (M1).
    fn noticeable(&self, path: usize) -> Option<f64> {
        let round_trip = self.forecast.round_trip(path).as_secs_f64();
        let transmission = self.forecast.transmission(path, self.config.tcp.packet_size);
        Some(self.config.marking?.noticeable(round_trip, transmission))
    }

    fn congested(&mut self, path: usize, now: Instant) -> Closing {
        let Some(counters) = self.paths.get_mut(path).map(|path| &mut path.counters) else { return Closing::Already };
        counters.reductions += 1;
        if !self.config.closing {
            self.states.unmark(path);
            return Closing::Refused;
        }
        let closing = self.states.close(path, now);
        counters.closings += u64::from(closing == Closing::Closed);
        closing
    }

    pub(crate) fn deadlines(&self) -> [Instant; 2] {
        [self.tcp.retransmission_deadline(), self.tcp.send_deadline().min(self.heartbeats.deadline())]
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.account(now);
        if self.tcp.is_complete() {
            self.heartbeats.stop();
        }
        self.heartbeats.handle_timeout(now);
        let before = self.tcp.counters().timeouts;
        self.tcp.handle_timeout(now);
        if self.tcp.counters().timeouts > before {
            self.stalls += 1;
            // Once may be the end of a long recovery; twice in a row nothing comes through (as M16).
            if self.stalls >= STALLS
                && self.config.closing
                && let Some(path) = self.assigned.front().copied().map(usize::from)
                && let Some(state) = self.paths.get_mut(path)
                && self.states.give_up(path, now)
            {
                state.counters.reductions += 1;
                state.counters.closings += 1;
            }
            for path in 0..self.paths.len() {
                if let Some(PathState::Probing { probe }) = self.states.get(path)
                    && probe.position != OUTSIDE
                {
                    self.states.close(path, now);
                }
                self.states.unmark(path);
            }
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(path) = self.heartbeats.due() {
            let expected = self.expected_of_heartbeat(now, path);
            return Some(self.heartbeats.depart(path, now, self.config.tcp.header_size, expected));
        }
        let mut packet = self.tcp.poll_transmit(now)?;
        let again = packet.flags.has(Flags::RETRANSMISSION);
        let position = expand(packet.position, self.una);
        let index = position.saturating_sub(self.una) as usize;
        // A probe is never a duplicate (§IV-F).
        let due = if again || position == 0 || self.heartbeats.are_sent() { None } else { self.states.due(now) };
        let open = |path| self.states.is_open(path);
        let path = match due {
            Some(due) => self.forecast.choose_or_probe(now, packet.bytes, due, open),
            None => self.forecast.choose(now, packet.bytes, open),
        }
        .unwrap_or(0);
        let probed = due.filter(|due| *due == path);
        let expected = self.forecast.depart(path, now, packet.bytes);
        if again {
            self.sent_again(position, now);
        } else {
            let mark = Mark { position, sent: now, expected };
            if probed.is_some() {
                self.states.probe(path, mark);
            } else if self.config.marking.is_some() && position > 0 {
                self.states.mark(path, mark);
            }
        }
        packet.path = path as u8;
        match self.assigned.get_mut(index) {
            Some(assigned) => {
                let old = std::mem::replace(assigned, packet.path);
                if let Some(old) = self.paths.get_mut(usize::from(old)) {
                    old.flight = old.flight.saturating_sub(1);
                }
            }
            None => self.assigned.push_back(packet.path),
        }
        if let Some(state) = self.paths.get_mut(path) {
            state.flight += 1;
            state.counters.sent += 1;
            state.counters.retransmissions += u64::from(again);
            state.counters.probes += u64::from(probed.is_some());
        }
        Some(packet)
    }

    /// What is expected of a heartbeat on a path; on a closed one that is due to be probed it is the probe.
    fn expected_of_heartbeat(&mut self, now: Instant, path: usize) -> Expected {
        if let Some(PathState::Probing { probe }) = self.states.get(path)
            && now.saturating_since(probe.sent) >= self.config.probe_interval
        {
            self.states.close(path, probe.sent); // Lost: the next one now.
        }
        let expected = self.forecast.depart_aside(path, now, self.config.tcp.header_size);
        if !self.states.is_due(path, now) {
            return expected;
        }
        let expected = self.forecast.as_idle(path, expected);
        self.states.probe(path, Mark { position: OUTSIDE, sent: now, expected });
        if let Some(state) = self.paths.get_mut(path) {
            state.counters.probes += 1;
        }
        expected
    }

    /// What is sent again tells nothing any more; a probe has failed (M5).
    fn sent_again(&mut self, position: u64, now: Instant) {
        for path in 0..self.paths.len() {
            if self.states.observed(path).is_some_and(|mark| mark.position == position) {
                self.states.unmark(path);
                if !self.states.is_open(path) {
                    self.states.close(path, now);
                }
            }
        }
    }

    fn account(&mut self, now: Instant) {
        let step = self.since.step(now);
        for path in &mut self.paths {
            path.counters.cwnd_seconds += path.flight as f64 * step;
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = PathStatus> + '_ {
        self.paths.iter().enumerate().map(|(index, path)| PathStatus {
            cwnd: path.flight as f64,
            ssthresh: 0.0,
            flight: path.flight,
            srtt: path.rtt.srtt().unwrap_or_default(),
            open: self.states.is_open(index),
            counters: path.counters,
        })
    }
}

//! Generations 2 and 3 (papers 2 and 3, §IV): a window for each path under a global window that is their sum.
//!
//! Packets keep their order in the sender's buffer until a path has room; of those that have, the one is taken where the
//! packet is expected first. What is missing costs the path it was sent on, and no other. Generation 2 learns of it as
//! New Reno does, by three duplicate acknowledgments of whatever path. Generation 3 counts only what was sent later on
//! the same path, waits for more of them, and takes back a reduction when what was missing was only late.

use std::sync::Arc;

use clock::{Duration, Histogram, Instant, Rng};

use super::config::{Attribution, MhipConfig, PathCounters, PathStatus, Since};
use super::forecast::Forecast;
use super::heartbeats::{HEARTBEAT, Heartbeats};
use super::outstanding::{Acknowledged, Outstanding};
use super::path_states::{Closing, Mark, PathState, PathStates};
use super::windows::Windows;
use crate::packet::{Blocks, Flags, NO_BLOCKS, Packet, expand};
use crate::sender::SenderCounters;
use crate::timer::Timer;

/// After so many timeouts in a row a path is closed (M16).
const TIMEOUTS: u32 = 2;

/// The sender.
#[derive(Clone, Debug)]
pub(crate) struct TwoLevelSender {
    config: Arc<MhipConfig>,
    windows: Windows,
    outstanding: Outstanding,
    forecast: Forecast,
    heartbeats: Heartbeats,
    states: PathStates,
    paths: Vec<OnPath>,
    /// The next new packet; one beyond the last.
    next: u64,
    end: u64,
    started: bool,
    /// To be sent again at once, whatever the windows.
    urgent: Option<u64>,
    /// Duplicate acknowledgments of [`Attribution::AnyPath`].
    dupacks: u32,
    /// New Reno's recovery is under way until all before this is acknowledged; none begins until more than that is.
    recover: u64,
    recovering: bool,
    /// It has seen a partial acknowledgment.
    partial: bool,
    retransmit_at: Instant,
    send_at: Instant,
    waited: bool,
    random: Option<Box<Rng>>,
    newly: Vec<Acknowledged>,
    counters: SenderCounters,
    rtt: Histogram,
    since: Since,
    /// When averages began, and the integral of the windows then.
    began: (Instant, f64),
}

#[derive(Clone, Debug)]
struct OnPath {
    timer: Timer,
    /// Transmissions of the path before this one belong to a window that was reduced already.
    cut: u64,
    /// Timeouts since something arrived.
    timeouts: u32,
    /// The path's window was the limit before the event at hand.
    full: bool,
    /// When data were sent on it last.
    sent: Option<Instant>,
    counters: PathCounters,
}

impl TwoLevelSender {
    pub(crate) fn new(config: &Arc<MhipConfig>, random: Rng) -> Self {
        let count = config.paths.len().max(1);
        let mss = f64::from(config.tcp.mss());
        // M18: the first window divided among the paths, and each a part of the receiver's window as its threshold.
        let first = (config.tcp.engine.initial_window.bytes(mss) / mss / count as f64).ceil();
        let threshold = f64::from(config.tcp.receiver_window) / count as f64;
        let path = OnPath {
            timer: Timer::new(config.tcp.timer),
            cut: 0,
            timeouts: 0,
            full: false,
            sent: None,
            counters: PathCounters::default(),
        };
        Self {
            windows: Windows::new(&vec![(first, threshold); count], config.growth, config.per_bottleneck),
            outstanding: Outstanding::new(count),
            forecast: Forecast::new(&config.paths, config.tcp.packet_size),
            heartbeats: Heartbeats::new(config.heartbeat, config.paths.len()),
            states: PathStates::new(count, config.probe_interval),
            paths: vec![path; count],
            next: 0,
            end: config.tcp.data.map_or(u64::MAX, |data| data.div_ceil(u64::from(config.tcp.mss())) + 1),
            started: false,
            urgent: None,
            dupacks: 0,
            recover: 0,
            recovering: false,
            partial: false,
            retransmit_at: Instant::FAR_FUTURE,
            send_at: Instant::FAR_FUTURE,
            waited: false,
            random: (!config.tcp.send_jitter.is_zero()).then(|| Box::new(random)),
            newly: Vec::new(),
            counters: SenderCounters::default(),
            rtt: Histogram::default(),
            since: Since(Instant::ZERO),
            began: (Instant::ZERO, 0.0),
            config: Arc::clone(config),
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.started = true;
        self.since = Since(now);
        self.began = (now, 0.0);
        self.heartbeats.start(now);
    }

    pub(crate) fn stop(&mut self) {
        self.end = self.end.min(self.next);
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.started && self.outstanding.una() >= self.end
    }

    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    pub(crate) fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    pub(crate) fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    pub(crate) fn restart_averages(&mut self, now: Instant) {
        self.account(now);
        self.rtt = Histogram::default();
        self.began = (now, self.cwnd_seconds());
    }

    pub(crate) fn mean_cwnd(&self, now: Instant) -> f64 {
        let rest = self.windows.total() * (now - self.since.0).as_secs_f64();
        let time = (now - self.began.0).as_secs_f64();
        if time > 0.0 { (self.cwnd_seconds() + rest - self.began.1) / time } else { self.windows.total() }
    }

    fn cwnd_seconds(&self) -> f64 {
        self.paths.iter().map(|path| path.counters.cwnd_seconds).sum()
    }

    pub(crate) fn flight(&self) -> u64 {
        self.outstanding.max() - self.outstanding.una()
    }

    /// The smoothed round-trip time of the path of the first unacknowledged packet.
    pub(crate) fn srtt(&self) -> Duration {
        self.paths.get(self.oldest()).map_or(Duration::ZERO, |path| path.timer.srtt())
    }

    fn oldest(&self) -> usize {
        self.outstanding.last_sent(self.outstanding.una()).map_or(0, |(path, _)| path)
    }

    pub(crate) fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &Blocks) {
        let before = self.outstanding.una();
        let ack = expand(packet.position, before);
        if ack > self.outstanding.max() || !self.started || packet.time > now {
            return;
        }
        if packet.flags.has(HEARTBEAT) {
            let path = usize::from(packet.path);
            if let Some(expected) = self.heartbeats.answered(path, packet.time) {
                self.forecast.correct(path, expected, now, self.config.gain);
            }
            return;
        }
        self.account(now);
        for (index, path) in self.paths.iter_mut().enumerate() {
            // ALGORITHMS §1 rule 1.
            let (flight, cwnd) = together(&self.outstanding, &self.windows, index);
            path.full = !self.config.tcp.engine.window_limited_growth || flight as f64 + 1.0 > cwnd;
        }
        let came_on = usize::from(packet.path);
        if !packet.flags.has(Flags::REFUSED) {
            let trigger = blocks.trigger().map(|trigger| expand(trigger, before));
            self.answered(now, came_on, packet.time, trigger);
        }
        let mut newly = std::mem::take(&mut self.newly);
        self.outstanding.advance(ack, &mut newly);
        for (left, right) in blocks.as_slice() {
            self.outstanding.sack(expand(*left, ack), expand(*right, ack), &mut newly);
        }
        for acknowledged in &newly {
            self.outstanding.arrived(acknowledged.path, acknowledged.order, !acknowledged.again);
        }
        self.outstanding.settle();
        let mut forgiven = false;
        for acknowledged in newly.drain(..) {
            forgiven |= self.acknowledged(now, acknowledged);
        }
        self.newly = newly;
        let advanced = self.outstanding.una() > before;
        if advanced {
            self.rtt.record((now - packet.time).as_nanos());
        }
        let progress = match self.config.attribution {
            Attribution::AnyPath => self.new_reno(now, before, ack, forgiven),
            Attribution::SamePath => {
                self.passed(now, came_on);
                advanced
            }
        };
        if progress {
            self.restart_timer(now);
        }
    }

    /// What an answer tells of its path.
    fn answered(&mut self, now: Instant, path: usize, sent: Instant, trigger: Option<u64>) {
        let Some(state) = self.paths.get_mut(path) else { return };
        state.timer.sample(sent, now);
        state.timeouts = 0;
        self.forecast.sample(path, now - sent);
        self.windows.on_queueing(path, (now - sent).saturating_sub(self.forecast.round_trip(path)), now);
        self.outstanding.answer(path, sent, trigger);
        if let Some(expected) = self.forecast.answered(path, sent) {
            self.forecast.correct(path, expected, now, self.config.gain);
        }
        self.forecast.at_most(path, now, self.outstanding.in_flight(path), self.config.tcp.packet_size);
        if let Some(PathState::Probing { probe }) = self.states.get(path)
            && probe.sent == sent
        {
            self.states.reopen(path);
            self.forecast.restart(path, now);
        }
    }

    /// The window of the packet's path grows. Returns whether the packet had been given up too early.
    fn acknowledged(&mut self, now: Instant, packet: Acknowledged) -> bool {
        let forgiven = self.windows.on_arrived(packet.position, now);
        if let Some(path) = forgiven {
            self.counters.undone += 1;
            for (other, state) in self.paths.iter_mut().enumerate() {
                if self.windows.are_bundled(path, other) {
                    state.counters.undone += u64::from(other == path);
                    state.cut = 0;
                }
            }
        }
        if let Some(path) = self.paths.get(packet.path)
            && path.full
            && packet.order >= path.cut
            && packet.position > 0
        {
            self.windows.on_acknowledged(packet.path, path.timer.srtt(), now);
        }
        forgiven.is_some()
    }

    /// Rule A: duplicate acknowledgments, of whatever path, and recovery as New Reno has it (RFC 6582). Returns whether the
    /// timer starts anew.
    fn new_reno(&mut self, now: Instant, before: u64, ack: u64, forgiven: bool) -> bool {
        let (una, max) = (self.outstanding.una(), self.outstanding.max());
        if una > before {
            self.dupacks = 0;
            if !self.recovering {
                return true;
            }
            self.recovering = una < self.recover && !forgiven;
            if !self.recovering {
                // Paths whose windows were not halved have sent new packets between the retransmissions. So the duplicates that
                // those call forth, if they were needless, come in even after what was sent before the recovery: RFC 6582 §3.2
                // step 1, which keeps them from starting the next one, has to hold for all that was sent until now.
                self.recover = max;
                return true;
            }
            if self.outstanding.lose(una) {
                self.urgent = Some(una); // A partial acknowledgment: the next hole.
            }
            // RFC 6582 §4, the impatient variant: a timeout is better than many losses repaired one a round trip.
            return !std::mem::replace(&mut self.partial, true);
        }
        if una == max || ack < una {
            return false;
        }
        self.dupacks += 1;
        if !self.recovering && self.dupacks == self.threshold(max - una) && una > self.recover {
            self.recovering = true;
            self.partial = false;
            self.recover = max;
            if let Some((path, order)) = self.outstanding.last_sent(una) {
                self.missing(now, path, una, order);
            }
            return true;
        }
        false
    }

    /// Rule B: what was passed on its own path.
    fn passed(&mut self, now: Instant, path: usize) {
        let threshold = self.threshold(self.outstanding.in_flight(path));
        while let Some(transmission) = self.outstanding.passed_by(path, threshold) {
            if self.outstanding.give_up(path, &transmission) {
                self.reduce(now, path, transmission.position, transmission.order);
            }
        }
    }

    fn threshold(&self, flight: u64) -> u32 {
        // More than is outstanding would never come (ALGORITHMS §2.5).
        let most = u32::try_from(flight * 9 / 10).unwrap_or(u32::MAX);
        self.config.dupthresh.min(most.max(3)).max(1)
    }

    fn missing(&mut self, now: Instant, path: usize, hole: u64, order: u64) {
        if self.outstanding.lose(hole) {
            self.reduce(now, path, hole, order);
        }
    }

    /// The dupack action: once for a window of its path.
    fn reduce(&mut self, now: Instant, path: usize, hole: u64, order: u64) {
        let Some(state) = self.paths.get_mut(path) else { return };
        if let Some(PathState::Probing { probe }) = self.states.get(path)
            && probe.position == hole
        {
            self.states.close(path, now);
        }
        if order < state.cut {
            self.windows.on_also_missing(path, hole);
            return;
        }
        state.counters.reductions += 1;
        self.counters.reductions += 1;
        for (other, state) in self.paths.iter_mut().enumerate() {
            if self.windows.are_bundled(path, other) {
                state.cut = self.outstanding.next_order(other);
            }
        }
        let until = match self.config.addr {
            Some(part) => now + self.forecast.least_round_trip().mul_f64(part),
            None => Instant::ZERO,
        };
        self.windows.on_missing(path, hole, until, now);
        self.urgent.get_or_insert(hole);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.account(now);
        if self.is_complete() {
            self.heartbeats.stop();
        }
        self.heartbeats.handle_timeout(now);
        if now >= self.send_at {
            self.send_at = Instant::FAR_FUTURE;
            self.waited = true;
        }
        if now >= self.retransmit_at {
            self.time_out(now);
        }
    }

    /// M16: it is the path of the first unacknowledged packet that failed. New Reno's timer does not wait for the retransmissions
    /// of a long recovery (RFC 6582 §4): what was sent again on another path only now has not failed there.
    fn time_out(&mut self, now: Instant) {
        let una = self.outstanding.una();
        let path = match self.config.attribution {
            Attribution::AnyPath => self.outstanding.failed(una, now, self.rto()).unwrap_or(0),
            Attribution::SamePath => self.oldest(),
        };
        self.counters.timeouts += 1;
        self.counters.reductions += 1;
        let next_order = self.outstanding.next_order(path);
        if let Some(state) = self.paths.get_mut(path) {
            state.timer.back_off();
            state.timeouts += 1;
            state.cut = next_order;
            state.counters.reductions += 1;
            self.windows.on_timeout(path, state.timeouts > 1, now);
            let probing = matches!(self.states.get(path), Some(PathState::Probing { .. }));
            let closed = if probing {
                self.states.close(path, now) == Closing::Closed
            } else {
                state.timeouts >= TIMEOUTS && self.states.give_up(path, now)
            };
            state.counters.closings += u64::from(closed && !probing);
        }
        self.outstanding.lose_path(path);
        self.outstanding.lose(una);
        self.urgent = Some(una);
        self.recovering = false;
        self.recover = self.outstanding.max();
        self.dupacks = 0;
        self.retransmit_at = now + self.rto();
    }

    fn rto(&self) -> Duration {
        let timer = |path: &OnPath| path.timer.rto();
        self.paths.get(self.oldest()).map_or(self.config.rtt().initial_rto, timer)
    }

    /// RFC 6298 §5.2, §5.3.
    fn restart_timer(&mut self, now: Instant) {
        self.retransmit_at = if self.flight() > 0 { now + self.rto() } else { Instant::FAR_FUTURE };
    }

    pub(crate) fn deadlines(&self) -> [Instant; 2] {
        [self.retransmit_at, self.send_at.min(self.heartbeats.deadline())]
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.started {
            return None;
        }
        while let Some(path) = self.heartbeats.due() {
            if self.tells_of_itself(path, now) {
                continue;
            }
            let bytes = self.config.tcp.header_size;
            let expected = self.forecast.depart_aside(path, now, bytes);
            return Some(self.heartbeats.depart(path, now, bytes, expected));
        }
        if let Some(hole) = self.urgent.take().filter(|hole| *hole == 0 || self.outstanding.is_lost(*hole)) {
            let bytes = self.size(hole);
            let (states, paths) = (&self.states, &self.paths);
            // Not where nothing has arrived since a timeout, if there is another path (M16, M19).
            let suspect = |path: usize| paths.get(path).is_some_and(|path| path.timeouts > 0);
            let path = self.forecast.choose(now, bytes, |path| states.is_open(path) && !suspect(path));
            let path = path.or_else(|| self.forecast.choose(now, bytes, |path| states.is_open(path)));
            return Some(self.emit(now, hole, path.unwrap_or(0), false));
        }
        let chosen = self.choose(now);
        if chosen.is_none() {
            self.waited = false;
        }
        let (position, path, probe) = chosen?;
        Some(self.emit(now, position, path, probe))
    }

    /// Whether data are under way on `path`, or were just now: their answers tell as much.
    fn tells_of_itself(&self, path: usize, now: Instant) -> bool {
        let sent = self.paths.get(path).and_then(|path| path.sent);
        let just_now =
            sent.zip(self.config.heartbeat).is_some_and(|(sent, interval)| now.saturating_since(sent) < interval);
        just_now || self.outstanding.in_flight(path) > 0
    }

    /// The next packet of the sender's buffer, and a path that has room for it.
    fn choose(&mut self, now: Instant) -> Option<(u64, usize, bool)> {
        let una = self.outstanding.una();
        let lost = self.outstanding.first_lost();
        let window = u64::from(self.config.tcp.receiver_window).max(1);
        let new = self.next < self.end && self.next < una + window && (una > 0 || self.next == 0);
        let position = lost.or(new.then_some(self.next))?;
        if lost.is_none()
            && position > 0
            && let Some(path) = self.states.due(now)
        {
            return Some((position, path, true));
        }
        let (outstanding, windows, states) = (&self.outstanding, &self.windows, &self.states);
        // The level of the whole stream: what a path has lost of its window, no other sends before as much has left the network.
        let flight: u64 = (0..self.paths.len()).map(|path| outstanding.in_flight(path)).sum();
        if flight as f64 + 1.0 > windows.total() {
            return None;
        }
        // Of windows that are one it is the sum of which a part of a packet is nothing.
        let room = |path| {
            let (flight, cwnd) = together(outstanding, windows, path);
            let own = (outstanding.in_flight(path) as f64) < windows.cwnd(path);
            own && flight < cwnd as u64 && states.is_open(path)
        };
        let path = self.forecast.choose(now, self.config.tcp.packet_size, room)?;
        if self.waits(now) { None } else { Some((position, path, false)) }
    }

    /// Whether what could be sent has to wait its random time first.
    fn waits(&mut self, now: Instant) -> bool {
        let Some(random) = &mut self.random else { return false };
        if !self.waited && self.send_at == Instant::FAR_FUTURE {
            let most = self.config.tcp.send_jitter.as_nanos();
            self.send_at = now + Duration::from_nanos(1 + random.below(most));
        }
        !self.waited
    }

    fn emit(&mut self, now: Instant, position: u64, path: usize, probe: bool) -> Packet {
        let again = position < self.outstanding.max();
        let bytes = self.size(position);
        let expected = self.forecast.depart(path, now, bytes);
        if probe && self.states.probe(path, Mark { position, sent: now, expected }) {
            // What was sent before the path was closed does not count against it.
            self.outstanding.lose_path(path);
        }
        self.outstanding.send(position, path, now);
        self.next = self.next.max(position + 1);
        self.counters.sent += 1;
        self.counters.retransmissions += u64::from(again);
        if let Some(state) = self.paths.get_mut(path) {
            state.sent = Some(now);
            state.counters.sent += 1;
            state.counters.retransmissions += u64::from(again);
            state.counters.probes += u64::from(probe);
        }
        // RFC 6675 §6, the careful variant: with duplicates counted for each path a hole may be found late, and its retransmission
        // be under way when the time of the original is over.
        let careful = again && position == self.outstanding.una() && self.config.attribution == Attribution::SamePath;
        if careful || self.retransmit_at == Instant::FAR_FUTURE {
            self.retransmit_at = now + self.rto();
        }
        Packet {
            time: now,
            flow: 0,
            hop: 0,
            position: position as u32,
            blocks: NO_BLOCKS,
            bytes,
            flags: Flags::default().with_if(Flags::RETRANSMISSION, again),
            path: path as u8,
        }
    }

    fn size(&self, position: u64) -> u32 {
        let tcp = &self.config.tcp;
        let mss = u64::from(tcp.mss());
        match tcp.data {
            _ if position == 0 => tcp.header_size,
            Some(data) if position * mss > data => tcp.header_size + (data - (position - 1) * mss) as u32,
            _ => tcp.packet_size,
        }
    }

    fn account(&mut self, now: Instant) {
        let step = self.since.step(now);
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.counters.cwnd_seconds += self.windows.cwnd(index) * step;
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = PathStatus> + '_ {
        self.paths.iter().enumerate().map(|(index, path)| PathStatus {
            cwnd: self.windows.cwnd(index),
            ssthresh: self.windows.ssthresh(index),
            flight: self.outstanding.in_flight(index),
            srtt: path.timer.srtt(),
            open: self.states.is_open(index),
            counters: path.counters,
        })
    }
}

/// What is under way on a path and those bundled with it, in packets, and what their windows are together.
#[inline]
fn together(outstanding: &Outstanding, windows: &Windows, path: usize) -> (u64, f64) {
    windows
        .bundle(path)
        .fold((0, 0.0), |(flight, cwnd), path| (flight + outstanding.in_flight(path), cwnd + windows.cwnd(path)))
}

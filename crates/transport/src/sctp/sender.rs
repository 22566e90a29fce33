//! The sender of SCTP: which chunk goes on which path when, and what SACKs and timers make of windows.

use std::sync::Arc;

use clock::{Duration, Histogram, Instant};
use congestion::{Acked, Cause, Congestion, Controller, Rule};
use recovery::RttEstimator;
use smallvec::SmallVec;

use super::chunks::{Chunks, Detection};
use super::config::{CwndUpdate, Retransmission, SctpConfig};
use super::report::Report;
use super::rules::Buffers;
use crate::mhip::{PathCounters, PathStatus};
use crate::packet::{Flags, NO_BLOCKS, Packet, expand};
use crate::sender::SenderCounters;

/// Bytes of a HEARTBEAT, and of an INIT with the usual parameters, with IPv4 and common header.
const HEARTBEAT: u32 = 76;

/// The sender.
#[derive(Clone, Debug)]
pub struct SctpSender {
    config: Arc<SctpConfig>,
    controller: Controller<Rule>,
    chunks: Chunks,
    paths: Vec<OnPath>,
    /// One beyond the last TSN.
    end: u64,
    started: bool,
    established: bool,
    /// The receiver's window as last advertised, in bytes.
    window: u64,
    /// To be sent again at once, whatever the window (RFC 9260 §7.2.4).
    urgent: Option<u64>,
    /// The path whose turn it is.
    turn: usize,
    /// A path that is blocked may send again.
    send_at: Instant,
    counters: SenderCounters,
    rtt: Histogram,
    /// Windows are integrated up to here.
    since: Instant,
    /// When averages began, and the integral of the windows then.
    began: (Instant, f64),
}

#[derive(Clone, Debug)]
struct OnPath {
    timer: RttEstimator,
    /// T3-rtx, or T1 of the INIT.
    retransmit_at: Instant,
    heartbeat_at: Instant,
    heartbeat_due: bool,
    /// Answered once (RFC 9260 §5.4).
    confirmed: bool,
    active: bool,
    /// Timeouts in a row.
    errors: u32,
    /// Chunks that may be outstanding until the next acknowledgment (Max.Burst).
    burst: u64,
    last_sent: Instant,
    counters: PathCounters,
}

impl SctpSender {
    /// A sender that has not started.
    pub fn new(config: &Arc<SctpConfig>) -> Self {
        let count = config.paths.clamp(1, usize::from(u8::MAX));
        let mut controller = Controller::new(config.rule.clone(), config.engine);
        let path = OnPath {
            timer: RttEstimator::new(config.timer),
            retransmit_at: Instant::FAR_FUTURE,
            heartbeat_at: Instant::FAR_FUTURE,
            heartbeat_due: false,
            confirmed: false,
            active: true,
            errors: 0,
            burst: u64::MAX,
            last_sent: Instant::ZERO,
            counters: PathCounters::default(),
        };
        for index in 0..count {
            controller.add_path(config.payload());
            controller.set_rto(index, path.timer.rto());
            // Coupled sums are over paths in use.
            controller.set_open(index, false);
        }
        Self {
            controller,
            chunks: Chunks::new(count),
            paths: vec![path; count],
            end: config.data.map_or(u64::MAX, |data| data.div_ceil(config.payload().into()) + 1),
            started: false,
            established: false,
            window: config.receive_buffer,
            urgent: None,
            turn: 0,
            send_at: Instant::FAR_FUTURE,
            counters: SenderCounters::default(),
            rtt: Histogram::default(),
            since: Instant::ZERO,
            began: (Instant::ZERO, 0.0),
            config: Arc::clone(config),
        }
    }

    /// Sends the INIT.
    pub fn start(&mut self, now: Instant) {
        self.started = true;
        self.since = now;
        self.began = (now, 0.0);
        if let Some(path) = self.paths.first_mut() {
            path.heartbeat_due = true;
        }
    }

    /// The application has no more data.
    pub fn stop(&mut self) {
        self.end = self.end.min(self.chunks.next());
    }

    /// Whether all data are acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.established && self.chunks.una() >= self.end
    }

    /// Counters.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Round-trip times, in nanoseconds: one sample for each round trip of a path.
    pub fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// The congestion control, for status and tests.
    pub fn controller(&self) -> &Controller<Rule> {
        &self.controller
    }

    /// A SACK or the answer to a heartbeat arrived.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet, report: &Report) {
        if !self.started || packet.time > now {
            return;
        }
        self.account(now);
        if report.heartbeat {
            self.confirm(now, usize::from(packet.path), now - packet.time);
        }
        let cumulative = expand(packet.position, self.chunks.una());
        if !self.established || cumulative > self.chunks.next() {
            return;
        }
        self.chunks.begin();
        let advanced = self.chunks.advance(cumulative);
        for (left, right) in &report.gaps {
            self.chunks.sack(expand(*left, cumulative), expand(*right, cumulative), report.delivered);
        }
        self.chunks.settle();
        if cumulative >= self.chunks.una() {
            self.window = report.window;
        }
        self.grow(now, advanced);
        self.detect(now, report.packets);
        self.release_bursts();
    }

    /// An INIT or HEARTBEAT was answered.
    fn confirm(&mut self, now: Instant, index: usize, rtt: Duration) {
        let Some(path) = self.paths.get_mut(index) else { return };
        path.timer.sample(rtt);
        path.errors = 0;
        path.heartbeat_at = Instant::FAR_FUTURE;
        path.heartbeat_due = false;
        let rto = path.timer.rto();
        if !path.confirmed || !path.active {
            path.confirmed = true;
            path.active = true;
            self.controller.set_open(index, true);
            // So that coupled rules know its bandwidth from its first window on.
            let known = Acked {
                bytes: 0,
                flight: 0,
                upto: self.chunks.first_unacked(index, true),
                next: self.chunks.next(),
                rtt: Some(rtt),
                srtt: path.timer.srtt().unwrap_or(rtt),
            };
            self.controller.on_ack(index, &known, now);
        }
        self.controller.set_rto(index, rto);
        if !self.established {
            self.established = true;
            for (other, path) in self.paths.iter_mut().enumerate() {
                path.retransmit_at = Instant::FAR_FUTURE;
                path.heartbeat_due = other != index;
            }
        }
    }

    /// What arrived: round-trip times, timers, windows.
    fn grow(&mut self, now: Instant, advanced: bool) {
        let payload = u64::from(self.config.payload());
        let next = self.chunks.next();
        let mut acked: SmallVec<[(usize, Acked); 4]> = SmallVec::new();
        for (index, path) in self.paths.iter_mut().enumerate() {
            let news = self.chunks.news(index);
            if news.chunks == 0 {
                continue;
            }
            path.errors = 0;
            let sample = news.timed.map(|sent| now - sent);
            if let Some(rtt) = sample {
                path.timer.sample(rtt);
                self.rtt.record(rtt.as_nanos());
                self.controller.set_rto(index, path.timer.rto());
            }
            // RFC 9260 §6.3.2, R2 and R3, for each path by itself.
            if self.chunks.outstanding_on(index) == 0 {
                path.retransmit_at = Instant::FAR_FUTURE;
            } else if news.first {
                path.retransmit_at = now + path.timer.rto();
            }
            let (grows, upto) = match self.config.cwnd_update {
                CwndUpdate::Cumulative => (advanced, self.chunks.first_unacked(index, true)),
                CwndUpdate::PathV1 => (news.first, self.chunks.first_unacked(index, true)),
                CwndUpdate::PathV2 => (news.either, self.chunks.first_unacked(index, false)),
            };
            if !grows && sample.is_none() {
                continue;
            }
            let srtt = path.timer.srtt().unwrap_or(Duration::ZERO);
            let bytes = if grows { news.chunks * payload } else { 0 };
            acked.push((index, Acked { bytes, flight: news.flight * payload, upto, next, rtt: sample, srtt }));
        }
        // All paths see what the windows were before.
        self.controller.on_acks(&acked, now);
    }

    /// What is missing: fast retransmission, and the window of the path it was lost on.
    fn detect(&mut self, now: Instant, packets: u8) {
        let detection = Detection {
            split: self.config.split_fast_retransmit,
            dac: self.config.delayed_ack_for_cmt,
            packets,
            threshold: self.config.missing_reports,
        };
        for index in 0..self.paths.len() {
            let flight = self.chunks.outstanding_on(index);
            let recovering = self.controller.in_recovery(index);
            let Some(first) = self.chunks.find_missing(index, recovering, &detection) else { continue };
            if self.reduce(now, index, Cause::Loss, flight) {
                self.urgent = self.urgent.or(Some(first));
            }
        }
    }

    fn reduce(&mut self, now: Instant, index: usize, cause: Cause, flight: u64) -> bool {
        let flight = (flight * u64::from(self.config.payload())) as f64;
        let event = Congestion { cause, flight, next: self.chunks.next() };
        let reduced = self.controller.on_congestion(index, &event, now);
        if reduced {
            self.counters.reductions += 1;
            if let Some(path) = self.paths.get_mut(index) {
                path.counters.reductions += 1;
            }
        }
        reduced
    }

    /// RFC 9260 §6.1 D.
    fn release_bursts(&mut self) {
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.burst = self.chunks.outstanding_on(index) + u64::from(self.config.max_burst);
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.account(now);
        if now >= self.send_at {
            self.send_at = Instant::FAR_FUTURE;
        }
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index) else { continue };
            if now >= path.heartbeat_at {
                // RFC 9260 §5.4, §8.3: a path that is not confirmed is tried as the timer has it, an inactive one seldom.
                path.heartbeat_at = Instant::FAR_FUTURE;
                path.heartbeat_due = true;
                if !path.confirmed {
                    path.timer.back_off();
                }
            }
            if now >= path.retransmit_at {
                path.retransmit_at = Instant::FAR_FUTURE;
                self.counters.timeouts += 1;
                if self.established { self.time_out(now, index) } else { self.repeat_init(index) }
            }
        }
        self.release_bursts();
    }

    /// T1: another path may work (RFC 9260 §5.1).
    fn repeat_init(&mut self, index: usize) {
        let next = (index + 1) % self.paths.len().max(1);
        for path in &mut self.paths {
            path.timer.back_off();
        }
        if let Some(path) = self.paths.get_mut(next) {
            path.heartbeat_due = true;
        }
    }

    /// T3-rtx of one path (RFC 9260 §6.3.3).
    fn time_out(&mut self, now: Instant, index: usize) {
        let flight = self.chunks.outstanding_on(index);
        self.reduce(now, index, Cause::Timeout, flight);
        self.chunks.lose_path(index);
        let others = self.usable().any(|other| other != index);
        let Some(path) = self.paths.get_mut(index) else { return };
        path.timer.back_off();
        path.errors += 1;
        self.controller.set_rto(index, path.timer.rto());
        // RFC 9260 §8.2. The last path that works is kept, whatever happens there.
        if path.errors > self.config.path_max_retrans && others && path.active {
            path.active = false;
            path.counters.closings += 1;
            path.heartbeat_at = now + self.config.heartbeat + path.timer.rto();
            self.controller.set_open(index, false);
        }
    }

    /// Paths that may carry data.
    fn usable(&self) -> impl Iterator<Item = usize> {
        let usable = |(_, path): &(usize, &OnPath)| path.confirmed && path.active;
        self.paths.iter().enumerate().filter(usable).map(|(index, _)| index)
    }

    /// When a timer runs out, and when a blocked path may send again; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub fn deadlines(&self) -> [Instant; 2] {
        let timers = self.paths.iter().map(|path| path.retransmit_at.min(path.heartbeat_at));
        [timers.min().unwrap_or(Instant::FAR_FUTURE), self.send_at]
    }

    /// The next packet to send now, if any, with its path. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.started {
            return None;
        }
        if let Some(index) = self.paths.iter().position(|path| path.heartbeat_due) {
            return Some(self.emit_heartbeat(now, index));
        }
        if !self.established {
            return None;
        }
        if let Some(tsn) = self.chunks.first_lost()
            && let Some((tsn, index)) = self.retransmission(tsn)
        {
            let first = self.chunks.send_again(tsn, index, now);
            if let Some(path) = self.paths.get_mut(index)
                && first
            {
                path.retransmit_at = Instant::FAR_FUTURE; // RFC 9260 §7.2.4 (4): starts anew.
            }
            return Some(self.emit(now, tsn, index, true));
        }
        let index = self.path_for_new(now)?;
        self.turn = (index + 1) % self.paths.len().max(1);
        self.idle(now, index);
        let tsn = self.chunks.send_new(index, now);
        Some(self.emit(now, tsn, index, false))
    }

    fn has_room(&self, index: usize) -> bool {
        let outstanding = self.chunks.outstanding_on(index);
        let bytes = outstanding * u64::from(self.config.payload());
        let burst = self.paths.get(index).map_or(0, |path| path.burst);
        if outstanding == 0 {
            return true;
        }
        // RFC 9260 §6.1 B: less than a window, so that the last packet may go beyond it.
        let exceeds = (bytes + u64::from(self.config.payload())) as f64 > self.controller.cwnd(index);
        (bytes as f64) < self.controller.cwnd(index)
            && outstanding < burst
            && !(exceeds && self.config.strict_windows && self.paths.len() > 1 && !self.has_room_in_all())
    }

    /// Whether one packet more stays within the windows of all paths together.
    fn has_room_in_all(&self) -> bool {
        let bytes = (self.chunks.outstanding() + 1) * u64::from(self.config.payload());
        bytes as f64 <= self.controller.association_window()
    }

    /// What is to be sent again now, and on which path.
    fn retransmission(&mut self, first: u64) -> Option<(u64, usize)> {
        if let Some(urgent) = self.urgent.take().filter(|tsn| self.chunks.is_lost(*tsn)) {
            return Some((urgent, self.path_again(urgent)?));
        }
        let index = self.path_again(first)?;
        self.has_room(index).then_some((first, index))
    }

    /// The policy for retransmissions.
    fn path_again(&self, tsn: u64) -> Option<usize> {
        let before = self.chunks.path_of(tsn);
        if self.config.retransmission == Retransmission::Same && self.usable().any(|index| index == before) {
            return Some(before);
        }
        let mut best: Option<(f64, usize)> = None;
        for index in self.usable() {
            let value = match self.config.retransmission {
                Retransmission::Same => 0.0,
                Retransmission::Cwnd => self.controller.cwnd(index),
                Retransmission::Ssthresh => self.controller.ssthresh(index),
                Retransmission::FastestPathFirst => -self.arrival(index),
            };
            // Among equals the one it was on: then nothing is moved needlessly.
            if best.is_none_or(|(most, _)| value > most || value == most && index == before) {
                best = Some((value, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// When a packet would be expected at the receiver, from now, in seconds: what is outstanding goes before it.
    fn arrival(&self, index: usize) -> f64 {
        let Some(srtt) = self.paths.get(index).and_then(|path| path.timer.srtt()) else { return f64::INFINITY };
        let bytes = (self.chunks.outstanding_on(index) + 1) * u64::from(self.config.payload());
        let excess = (bytes as f64 - self.controller.cwnd(index)).max(0.0);
        srtt.as_secs_f64() * (0.5 + excess / self.controller.cwnd(index))
    }

    /// The path for the next new chunk, if there is one and any path may take it.
    fn path_for_new(&mut self, now: Instant) -> Option<usize> {
        let payload = u64::from(self.config.payload());
        if self.chunks.next() >= self.end || (self.chunks.kept() + 1) * payload > self.config.send_buffer {
            return None;
        }
        let outstanding = self.chunks.outstanding();
        // RFC 9260 §6.1 A: one chunk may probe a closed window.
        let room = self.window.saturating_sub(outstanding * payload) >= payload;
        if !room && (outstanding > 0 || self.chunks.first_lost().is_some()) {
            return None;
        }
        let count = self.paths.len();
        let paths = self.usable().count() as u64;
        let primary = self.usable().next();
        self.send_at = Instant::FAR_FUTURE;
        for step in 0..count {
            let index = (self.turn + step) % count;
            let usable = self.paths.get(index).is_some_and(|path| path.confirmed && path.active);
            if !usable || (!self.config.concurrent && Some(index) != primary) || !self.has_room(index) {
                continue;
            }
            let buffers = Buffers {
                send: self.config.send_buffer,
                advertised: self.window.saturating_sub(outstanding * payload),
                queued: self.chunks.queued_on(index) * payload,
                outstanding: self.chunks.outstanding_on(index) * payload,
                outstanding_all: outstanding * payload,
                mtu: payload,
                paths,
            };
            if !buffers.allow(self.config.splitting) {
                continue;
            }
            let blocked = self.controller.blocked_until(index);
            if blocked > now {
                self.send_at = self.send_at.min(blocked);
                continue;
            }
            return Some(index);
        }
        None
    }

    /// RFC 9260 §7.2.1: after a pause the window is not what it was.
    fn idle(&mut self, now: Instant, index: usize) {
        let Some(path) = self.paths.get(index) else { return };
        let pause = now.saturating_since(path.last_sent);
        if self.chunks.outstanding_on(index) == 0 && path.counters.sent > 0 && pause > path.timer.rto() {
            self.controller.on_idle(index, now);
        }
    }

    fn emit(&mut self, now: Instant, tsn: u64, index: usize, again: bool) -> Packet {
        self.counters.sent += 1;
        self.counters.retransmissions += u64::from(again);
        if let Some(path) = self.paths.get_mut(index) {
            path.counters.sent += 1;
            path.counters.retransmissions += u64::from(again);
            path.last_sent = now;
            if path.retransmit_at == Instant::FAR_FUTURE {
                path.retransmit_at = now + path.timer.rto();
            }
        }
        Packet {
            time: now,
            flow: 0,
            hop: 0,
            position: tsn as u32,
            blocks: NO_BLOCKS,
            bytes: self.config.packet_size,
            flags: Flags::default().with_if(Flags::RETRANSMISSION, again),
            path: index as u8,
        }
    }

    /// An INIT, or a HEARTBEAT.
    fn emit_heartbeat(&mut self, now: Instant, index: usize) -> Packet {
        if let Some(path) = self.paths.get_mut(index) {
            path.heartbeat_due = false;
            let rto = path.timer.rto();
            if self.established {
                path.counters.probes += 1;
                path.heartbeat_at = now + if path.confirmed { self.config.heartbeat + rto } else { rto };
            } else {
                path.retransmit_at = now + rto;
            }
        }
        Packet {
            time: now,
            flow: 0,
            hop: 0,
            position: 0,
            blocks: NO_BLOCKS,
            bytes: HEARTBEAT,
            flags: Flags::default(),
            path: index as u8,
        }
    }

    /// Integrates the windows up to `now`.
    fn account(&mut self, now: Instant) {
        let step = now.saturating_since(self.since).as_secs_f64();
        self.since = now;
        let payload = f64::from(self.config.payload());
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.counters.cwnd_seconds += step * self.controller.cwnd(index) / payload;
        }
    }

    fn cwnd_seconds(&self) -> f64 {
        self.paths.iter().map(|path| path.counters.cwnd_seconds).sum()
    }

    fn total(&self) -> f64 {
        self.controller.association_window() / f64::from(self.config.payload())
    }

    /// Averages and distributions begin anew; those of paths are totals and stay.
    pub fn restart_averages(&mut self, now: Instant) {
        self.account(now);
        self.rtt = Histogram::default();
        self.began = (now, self.cwnd_seconds());
    }

    /// The sum of the windows in packets, averaged since the last [`SctpSender::restart_averages`].
    pub fn mean_cwnd(&self, now: Instant) -> f64 {
        let rest = self.total() * now.saturating_since(self.since).as_secs_f64();
        let time = now.saturating_since(self.began.0).as_secs_f64();
        if time > 0.0 { (self.cwnd_seconds() + rest - self.began.1) / time } else { self.total() }
    }

    /// Windows and thresholds of all paths in packets, packets outstanding, smoothed round-trip time of the first path.
    pub fn state(&self) -> (f64, f64, u64, Duration) {
        let ssthresh = self.controller.association_ssthresh() / f64::from(self.config.payload());
        let srtt = self.paths.first().and_then(|path| path.timer.srtt()).unwrap_or(Duration::ZERO);
        (self.total(), ssthresh, self.chunks.outstanding(), srtt)
    }

    /// The paths.
    pub fn paths(&self) -> Vec<PathStatus> {
        let payload = f64::from(self.config.payload());
        let status = |(index, path): (usize, &OnPath)| PathStatus {
            cwnd: self.controller.cwnd(index) / payload,
            ssthresh: self.controller.ssthresh(index) / payload,
            flight: self.chunks.outstanding_on(index),
            srtt: path.timer.srtt().unwrap_or(Duration::ZERO),
            open: path.confirmed && path.active,
            counters: path.counters,
        };
        self.paths.iter().enumerate().map(status).collect()
    }
}

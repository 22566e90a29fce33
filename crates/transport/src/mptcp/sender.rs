//! The sending side: subflows under one controller, and a scheduler that gives them the data.

use std::collections::VecDeque;
use std::sync::Arc;

use clock::{Duration, Histogram, Instant, Rng, Streams};
use congestion::{Controller, Rule};
use scheduler::{Decision, PacketMeta, PathId, PathScheduler, PathView, Scheduler};

use super::config::MptcpConfig;
use super::data::Data;
use crate::mhip::{PathCounters, PathStatus};
use crate::packet::{Blocks, Flags, Packet, expand};
use crate::sender::SenderCounters;
use crate::subflow::{Step, Subflow};

/// The sender. After each `handle_…` call, take packets with [`MptcpSender::poll_transmit`] until there are none.
#[derive(Clone, Debug)]
pub struct MptcpSender {
    config: Arc<MptcpConfig>,
    control: Controller<Rule>,
    paths: Vec<Path>,
    data: Data,
    scheduler: Scheduler,
    redundant: bool,
    /// Kept between decisions.
    views: Vec<PathView>,
    /// When a path that its rule has blocked may be given data.
    unblocked_at: Instant,
    /// Round-trip times in nanoseconds, one for each acknowledgment of new data, since averages began.
    rtt: Histogram,
    /// When averages began, and the integral of the windows then, in packet-seconds.
    began: (Instant, f64),
}

/// A subflow, and what it carries.
#[derive(Clone, Debug)]
struct Path {
    flow: Subflow,
    /// The place of each outstanding packet among the data, from position `first` on.
    mapping: VecDeque<u64>,
    first: u64,
    /// Places that wait for this path.
    queue: VecDeque<u64>,
    /// Of a redundant scheduler: all places before it are carried.
    cursor: u64,
    /// It may have failed: its timer ran out, and nothing has come back since.
    down: bool,
    penalised: Instant,
    free_at: Instant,
    /// Packets that another path had carried before; times that it went down; packets sent meanwhile.
    copies: u64,
    closings: u64,
    probes: u64,
}

impl Path {
    fn is_established(&self) -> bool {
        self.flow.una() > 0
    }

    fn deadline(&self) -> Instant {
        self.flow.retransmission_deadline().min(self.flow.send_deadline())
    }
}

impl MptcpSender {
    /// A sender that has not started. `random` is for the jitter of its subflows, and for rules that draw.
    pub fn new(config: &Arc<MptcpConfig>, mut random: Rng) -> Self {
        let tcp = &config.tcp;
        let mut control = Controller::new(tcp.rule.clone(), tcp.engine);
        // The first subflow draws what a TCP would.
        let streams = Streams::new(random.clone().next_u64());
        control.seed(streams.stream("rule"));
        let path = |index: usize| {
            let number = control.add_path(tcp.mss());
            let random = if index == 0 {
                std::mem::replace(&mut random, Rng::from_seed(0))
            } else {
                streams.stream(&format!("subflow {index}"))
            };
            Path {
                flow: Subflow::new(number, Arc::clone(tcp), random),
                mapping: VecDeque::new(),
                first: 1,
                queue: VecDeque::new(),
                cursor: 0,
                down: false,
                penalised: Instant::ZERO,
                free_at: Instant::ZERO,
                copies: 0,
                closings: 0,
                probes: 0,
            }
        };
        let paths: Vec<Path> = (0..config.count()).map(path).collect();
        let end = tcp.data.map_or(u64::MAX, |data| data.div_ceil(u64::from(tcp.mss())));
        Self {
            views: Vec::with_capacity(paths.len()),
            paths,
            control,
            data: Data::new(end, u64::from(tcp.receiver_window).max(1)),
            redundant: config.scheduler.needs().copies,
            scheduler: config.scheduler.clone(),
            config: Arc::clone(config),
            unblocked_at: Instant::FAR_FUTURE,
            rtt: Histogram::default(),
            began: (Instant::ZERO, 0.0),
        }
    }

    /// Opens the connection on the first path; the others join when it is there (RFC 8684 §3.2), or take over if nobody
    /// answers on it.
    pub fn start(&mut self, now: Instant) {
        if let Some(path) = self.paths.first_mut() {
            path.flow.start(now);
        }
        self.restart_averages(now);
    }

    /// The application has no more data: what is outstanding is still delivered.
    pub fn stop(&mut self) {
        self.data.stop();
    }

    /// Whether all data are acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.data.is_complete() && self.paths.iter().any(Path::is_established)
    }

    /// An acknowledgment arrived.
    #[inline]
    pub fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &Blocks) {
        let index = usize::from(packet.path);
        let Some(path) = self.paths.get_mut(index) else { return };
        if std::mem::take(&mut path.down) {
            self.control.set_open(index, true);
        }
        let joins = !path.is_established();
        if path.flow.handle_input(now, packet, blocks.as_slice(), &mut self.control) {
            self.rtt.record((now - packet.time).as_nanos());
            let una = path.flow.una();
            while path.first < una {
                path.first += 1;
                let Some(place) = path.mapping.pop_front() else { break };
                self.data.arrived(place);
            }
            if joins {
                self.join(now);
            }
        }
        self.data.advance(expand(blocks.data(), self.data.una()));
        // What happened on one path may let the others send.
        self.unblocked_at = Instant::FAR_FUTURE;
        for other in self.paths.iter_mut().enumerate().filter(|(other, _)| *other != index) {
            other.1.flow.wake();
        }
    }

    /// The paths that have not started do.
    #[cold]
    fn join(&mut self, now: Instant) {
        for path in self.paths.iter_mut().filter(|path| !path.flow.is_started()) {
            path.flow.start(now);
        }
    }

    /// When a retransmission timer runs out, and when waiting data may be sent; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub fn deadlines(&self) -> [Instant; 2] {
        if self.is_complete() {
            return [Instant::FAR_FUTURE; 2]; // What subflows still miss, nobody does.
        }
        let mut deadlines = [Instant::FAR_FUTURE, self.unblocked_at];
        for path in &self.paths {
            deadlines[0] = deadlines[0].min(path.flow.retransmission_deadline());
            deadlines[1] = deadlines[1].min(path.flow.send_deadline());
        }
        deadlines
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index).filter(|path| now >= path.deadline()) else { continue };
            let before = path.flow.counters().timeouts;
            // The rule reckons with the path that it reduces.
            self.control.set_open(index, true);
            path.flow.handle_timeout(now, &mut self.control);
            if path.flow.counters().timeouts > before {
                self.timed_out(index, now);
            } else if path.down {
                self.control.set_open(index, false);
            }
        }
        if self.paths.len() > 1 || now >= self.unblocked_at {
            for path in &mut self.paths {
                path.flow.wake();
            }
        }
        self.unblocked_at = Instant::FAR_FUTURE;
    }

    /// RFC 8684 §3.3.6: a path that does not answer may have failed; what it owes is sent on the others too.
    fn timed_out(&mut self, index: usize, now: Instant) {
        if self.paths.len() == 1 {
            return;
        }
        let Some(path) = self.paths.get_mut(index) else { return };
        if !path.is_established() {
            self.join(now);
            return;
        }
        if !path.down {
            path.closings += 1;
        }
        path.down = true;
        self.control.set_open(index, false);
        for (position, place) in (path.first..).zip(&path.mapping) {
            if !path.flow.is_sacked(position) {
                self.data.ask_again(*place);
            }
        }
        for place in path.queue.drain(..) {
            self.data.ask_again(place);
        }
    }

    /// Whether `path` is given data: those that may have failed are, if all have.
    #[inline]
    fn is_usable(&self, path: &Path) -> bool {
        path.is_established() && (!path.down || self.paths.iter().all(|p| p.down || !p.is_established()))
    }

    /// The next packet to send now, if any, with its path. Flow and hop are the caller's to set.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.is_complete() {
            return None;
        }
        let mut open = 0_u64;
        for index in 0..self.paths.len() {
            let more = self.has_data_for(index, now);
            let Some(path) = self.paths.get_mut(index) else { break };
            match path.flow.poll(now, more, &self.control) {
                Step::Send(packet) => return Some(self.label(index, packet, false)),
                Step::New if path.flow.next() == 0 => {
                    let syn = path.flow.emit_next(now);
                    return Some(Packet { path: index as u8, ..syn });
                }
                Step::New => match path.queue.pop_front() {
                    Some(place) => return Some(self.send(index, place, now)),
                    None => open |= 1 << index,
                },
                Step::Nothing => {}
            }
        }
        if self.data.is_window_limited() {
            self.note_window_limited(now);
        }
        if open == 0 {
            return None;
        }
        let chosen = self.schedule(open, now);
        if chosen.is_none() {
            for path in &mut self.paths {
                path.flow.rest();
            }
        }
        let (index, place) = chosen?;
        Some(self.send(index, place, now))
    }

    /// Whether there is something that path `index` could be given now.
    #[inline]
    fn has_data_for(&mut self, index: usize, now: Instant) -> bool {
        let Some(path) = self.paths.get(index) else { return false };
        if !path.is_established() {
            return path.flow.next() == 0;
        }
        let blocked_until = self.control.blocked_until(index);
        if blocked_until > now {
            self.unblocked_at = self.unblocked_at.min(blocked_until);
            return false;
        }
        if !path.queue.is_empty() {
            return true;
        }
        if path.down && !self.is_usable(path) {
            return false;
        }
        self.data.has_new()
            || (self.redundant && self.catch_up(index).is_some())
            || (self.data.asks_again() && self.data.next_again(1 << index).is_some())
            || self.may_overtake(index)
    }

    /// Whether the receiver's window is the limit, and the packet that holds it back was not on path `index` yet.
    #[inline]
    fn may_overtake(&self, index: usize) -> bool {
        self.config.opportunistic
            && self.data.is_window_limited()
            && self.data.carriers(self.data.una()) & (1 << index) == 0
    }

    /// Which path sends what, of the `open` ones.
    fn schedule(&mut self, open: u64, now: Instant) -> Option<(usize, u64)> {
        if self.data.asks_again()
            && let Some(place) = self.data.next_again(open)
        {
            self.data.done_again(place);
            return Some((self.fastest(open & !self.data.carriers(place))?, place));
        }
        if self.redundant
            && let Some(copy) = self.next_copy(open)
        {
            return Some(copy);
        }
        if !self.data.has_new() {
            return self.overtake(open, now);
        }
        loop {
            let most_queued = self.look(open, now);
            let backlog = (self.data.end() - self.data.next()).min(most_queued.max(1));
            let packet = PacketMeta {
                len: self.config.tcp.packet_size as usize,
                unscheduled: backlog,
                window: self.data.room().saturating_mul(self.config.tcp.packet_size.into()),
            };
            let queued: u64 = self.views.iter().map(|view| view.queued).sum();
            if queued >= most_queued || !self.data.has_new() {
                return None; // As much as a sender's buffer holds waits for paths already.
            }
            match self.scheduler.select(&packet, &self.views, now) {
                Decision::Send(PathId(id)) if open & (1 << id) != 0 => return Some((id.into(), self.data.take_new())),
                Decision::Enqueue(PathId(id)) => {
                    let place = self.data.take_new();
                    if let Some(path) = self.paths.get_mut(usize::from(id)) {
                        path.queue.push_back(place);
                    }
                }
                _ if self.is_waiting() => return None,
                // Nothing would ever ask again.
                _ => return Some((self.fastest(open)?, self.data.take_new())),
            }
        }
    }

    /// What the scheduler is to see. Returns how many packets a sender's buffer holds: what all paths send in the longest
    /// round-trip time (RFC 8684 §3.3.5 asks for twice that, half of which is outstanding).
    fn look(&mut self, open: u64, now: Instant) -> u64 {
        self.views.clear();
        let mss = f64::from(self.config.tcp.mss());
        let all_down = self.paths.iter().all(|path| path.down || !path.is_established());
        let mut longest = Duration::ZERO;
        for (index, path) in self.paths.iter().enumerate() {
            if !path.is_established() || (path.down && !all_down) {
                continue;
            }
            let known = self.config.paths.get(index);
            let threshold = self.control.ssthresh(index) / mss;
            let srtt = path.flow.srtt();
            longest = longest.max(srtt);
            self.views.push(PathView {
                id: PathId(index as u16),
                open: open & (1 << index) != 0,
                delay: known.map_or(srtt / 2, |known| known.delay),
                rate: known.map_or(0, |known| known.rate),
                free_at: path.free_at.max(now),
                srtt,
                rttvar: path.flow.rttvar(),
                cwnd: (self.control.cwnd(index) / mss) as u64,
                ssthresh: if threshold.is_finite() { threshold as u64 } else { u64::MAX },
                in_flight: path.flow.flight(),
                queued: path.queue.len() as u64,
            });
        }
        let rounds = |srtt: Duration| longest.as_nanos().div_ceil(srtt.as_nanos().max(1)).clamp(1, 1000);
        self.views.iter().map(|view| view.cwnd.max(1) * rounds(view.srtt)).sum()
    }

    /// Of a redundant scheduler: the next packet that one of the `open` paths has not carried.
    fn next_copy(&mut self, open: u64) -> Option<(usize, u64)> {
        let open = (0..self.paths.len()).filter(|index| open & (1 << index) != 0);
        open.into_iter().find_map(|index| Some((index, self.catch_up(index)?)))
    }

    /// The first packet that path `index` has not carried.
    fn catch_up(&mut self, index: usize) -> Option<u64> {
        let path = self.paths.get_mut(index)?;
        path.cursor = path.cursor.max(self.data.una());
        while path.cursor < self.data.next() && self.data.carriers(path.cursor) & (1 << index) != 0 {
            path.cursor += 1;
        }
        (path.cursor < self.data.next()).then_some(path.cursor)
    }

    /// Opportunistic retransmission: the packet that holds the window back goes out on the fastest of the `open` paths that
    /// has not carried it, and the slower ones that have pay for it, once a round trip.
    fn overtake(&mut self, open: u64, now: Instant) -> Option<(usize, u64)> {
        if !self.config.opportunistic || !self.data.is_window_limited() {
            return None;
        }
        let place = self.data.una();
        let carriers = self.data.carriers(place);
        let fast = self.fastest(open & !carriers)?;
        let srtt = self.paths.get(fast)?.flow.srtt();
        let mss = f64::from(self.config.tcp.mss());
        for (index, path) in self.paths.iter_mut().enumerate() {
            let slow = path.flow.srtt();
            if carriers & (1 << index) == 0 || slow <= srtt || now.saturating_since(path.penalised) < slow {
                continue;
            }
            path.penalised = now;
            self.control.set_cwnd(index, self.control.cwnd(index) / 2.0);
            let threshold = self.control.ssthresh(index);
            if threshold.is_finite() {
                self.control.set_ssthresh(index, (threshold / 2.0).max(2.0 * mss));
            }
        }
        Some((fast, place))
    }

    /// The receiver's window is the limit: the scheduler hears of it if a path has room.
    #[cold]
    fn note_window_limited(&mut self, now: Instant) {
        let mss = f64::from(self.config.tcp.mss());
        let has_room = |(index, path): (usize, &Path)| {
            path.is_established() && ((path.flow.flight() + 1) as f64) * mss <= self.control.cwnd(index)
        };
        if self.paths.iter().enumerate().any(has_room) {
            self.scheduler.on_window_limited(now);
        }
    }

    /// The path of the least round-trip time, of those in the set.
    fn fastest(&self, set: u64) -> Option<usize> {
        let paths = self.paths.iter().enumerate().filter(|(index, _)| set & (1 << index) != 0);
        paths.min_by_key(|(_, path)| path.flow.srtt()).map(|(index, _)| index)
    }

    /// Whether an acknowledgment or a timer is still to come.
    fn is_waiting(&self) -> bool {
        self.paths.iter().any(|path| path.deadline() != Instant::FAR_FUTURE)
    }

    /// `place` goes out on path `index`, which has room for it.
    #[inline]
    fn send(&mut self, index: usize, place: u64, now: Instant) -> Packet {
        let copy = self.data.carry(place, index);
        // The index is one of the paths': all callers have looked it up.
        let path = &mut self.paths[index];
        path.mapping.push_back(place);
        path.copies += u64::from(copy);
        let packet = path.flow.emit_next(now);
        if self.scheduler.needs().arrivals
            && let Some(known) = self.config.paths.get(index)
        {
            let time = Duration::of_transmission(packet.bytes.into(), known.rate.max(1));
            path.free_at = path.free_at.max(now) + time;
        }
        self.label(index, packet, copy)
    }

    /// A packet of path `index` with its place among the data.
    #[inline]
    fn label(&mut self, index: usize, mut packet: Packet, copy: bool) -> Packet {
        packet.path = index as u8;
        let Some(path) = self.paths.get_mut(index) else { return packet };
        path.probes += u64::from(path.down);
        let position = expand(packet.position, path.first);
        let place = position.checked_sub(path.first).and_then(|at| path.mapping.get(at as usize)).copied();
        let Some(place) = place else {
            return packet; // The SYN has none.
        };
        packet.blocks = place as u32;
        packet.flags = packet.flags.with_if(Flags::RETRANSMISSION, copy);
        if place + 1 == self.data.end() {
            packet.bytes = self.config.tcp.last_size();
        }
        packet
    }

    /// Counters of all subflows together.
    pub fn counters(&self) -> SenderCounters {
        let mut all = SenderCounters::default();
        for path in &self.paths {
            let counters = path.flow.counters();
            all.sent += counters.sent;
            all.retransmissions += counters.retransmissions + path.copies;
            all.timeouts += counters.timeouts;
            all.reductions += counters.reductions;
            all.undone += counters.undone;
        }
        all
    }

    /// Round-trip times in nanoseconds, one for each acknowledgment of new data since the averages began.
    pub fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// Averages begin anew; those of paths are totals and stay.
    pub fn restart_averages(&mut self, now: Instant) {
        self.rtt = Histogram::default();
        self.began = (now, self.cwnd_seconds(now));
    }

    /// The sum of the windows in packets, averaged since the last [`MptcpSender::restart_averages`].
    pub fn mean_cwnd(&self, now: Instant) -> f64 {
        let (begin, before) = self.began;
        let time = (now - begin).as_secs_f64();
        if time > 0.0 { (self.cwnd_seconds(now) - before) / time } else { self.state().0 }
    }

    fn cwnd_seconds(&self, now: Instant) -> f64 {
        let started = self.paths.iter().filter(|path| path.flow.is_started());
        started.map(|path| path.flow.cwnd_seconds(now, &self.control)).sum()
    }

    /// Windows and thresholds in packets and packets outstanding, of all subflows together, and the least smoothed
    /// round-trip time.
    pub fn state(&self) -> (f64, f64, u64, Duration) {
        let mss = f64::from(self.config.tcp.mss());
        let (mut cwnd, mut ssthresh, mut flight) = (0.0, 0.0, 0);
        for (index, path) in self.paths.iter().enumerate().filter(|(_, path)| path.flow.is_started()) {
            cwnd += self.control.cwnd(index) / mss;
            ssthresh += self.control.ssthresh(index) / mss;
            flight += path.flow.flight();
        }
        let srtt = self.paths.iter().map(|path| path.flow.srtt()).filter(|srtt| !srtt.is_zero()).min();
        (cwnd, ssthresh, flight, srtt.unwrap_or(Duration::ZERO))
    }

    /// The paths.
    pub fn paths(&self) -> Vec<PathStatus> {
        let mss = f64::from(self.config.tcp.mss());
        let status = |(index, path): (usize, &Path)| {
            let counters = path.flow.counters();
            PathStatus {
                cwnd: self.control.cwnd(index) / mss,
                ssthresh: self.control.ssthresh(index) / mss,
                flight: path.flow.flight(),
                srtt: path.flow.srtt(),
                open: path.is_established() && !path.down,
                counters: PathCounters {
                    sent: counters.sent,
                    retransmissions: counters.retransmissions + path.copies,
                    reductions: counters.reductions,
                    undone: counters.undone,
                    closings: path.closings,
                    probes: path.probes,
                    cwnd_seconds: path.flow.accounted_cwnd_seconds(),
                },
            }
        };
        self.paths.iter().enumerate().map(status).collect()
    }
}

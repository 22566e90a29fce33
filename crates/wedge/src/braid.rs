//! The sender's side towards a peer that gives feedback: a holding buffer for all its flows, a window and a pace for
//! each path, and what happens to packets that a path has lost.
//!
//! A packet that a path lost is sent once more, before all that waits: the peer's resequencer waits for it about that
//! long, so that the TCP inside, which would halve its window for all paths together, does not hear of what the
//! path's own window has answered already. What tells the TCP inside that it sends too much is the holding buffer.

use crate::Transmit;
use crate::config::UNKNOWN_RATE;
use crate::flows::flow_of;
use crate::heartbeat::Heartbeat;
use crate::path::Path;
use crate::payload::Payload;
use crate::peer::PeerState;
use crate::status::{Counters, HoldingStatus, Measured};
use crate::wedge::TimerKind;
use clock::{Duration, Instant};
use congestion::Rule;
use multipath::{
    Acknowledgment, Delivered, Ecn, FlowId, InvalidReport, Kind, Limits, Numbers, Pacer, QueuedPacket, Received,
    Report, SendBuffer, SentPackets, Slot, Snooping, Windows,
};
use queue::codel;
use rand_core::CryptoRng;
use scheduler::{Decision, PacketMeta, PathScheduler, PathView};
use std::collections::VecDeque;
use wire::Spi;
use wire::ip::{V6, protocol};
use wire::tcp;

/// The least that the holding buffer holds before it drops, in bytes.
const LEAST_BUFFER: f64 = 64_000.0;
/// Room that windows no longer need, for one has fallen or its path has died, goes away in this time (to 1/e): the TCP
/// inside has to hear of less once, not lose all that is suddenly too much.
const LEAVING: Duration = Duration::from_secs(2);
/// How much may wait, in times of the paths' windows and of their round-trip time: a Reno inside that has lost a packet
/// halves the sum of what waits and what is under way, and if less waited than that, the paths would have nothing to
/// send. Other flows do not wait behind it.
const ENOUGH: f64 = 1.5;
/// Of that, what TCPs may fill that can be told: they follow the windows at once, and are not to meet CoDel.
pub(crate) const TOLD: f64 = 0.75;
/// CoDel's target and interval are at least these (RFC 8289 §4.2, §4.3).
const LEAST_CODEL: codel::Parameters =
    codel::Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
/// A packet may be lost so often and is sent again.
const REPAIRS: u8 = 1;
/// What may be under way on a path that does not answer, in bytes, where no path does.
const TRY: f64 = 3_000.0;
/// So often it may have been under way on a path that died: paths that die and come back again and again must not send
/// the same packets for ever.
const RESCUES: u8 = 3;
/// A number that no path has.
const NO_PATH: scheduler::PathId = scheduler::PathId(u16::MAX);
/// With no more than this waiting, a packet rather waits for the fastest path than takes a slower one.
const PATIENT_BYTES: usize = 3_100;
/// ... nor longer than this.
const PATIENT_TIME: Duration = Duration::from_millis(2);
/// What a thin flow may send beyond a window that is full, in bytes.
const SPARE: f64 = 3_000.0;
/// A path whose round-trip time is longer by this is another one for a thin flow.
const FARTHER: Duration = Duration::from_millis(20);
/// For so long at most a packet that its pace allows waits for the next one.
const PAIR: Duration = Duration::from_millis(4);
/// Packets other than TCP's that waited no longer than this are delivered as they come: a call's.
const UNORDERED: Duration = Duration::from_millis(5);
/// What waits and is sent nothing of for so long, while what goes past it leaves, is starved by that.
const STARVED: Duration = Duration::from_millis(100);
/// What reports may be late by: their own pace, and timers.
const REPORT_SLACK: Duration = Duration::from_millis(35);
/// A TCP may keep an acknowledgment for so long: half of what RFC 9293 §3.8.6.3 allows, and what common ones do at most.
const DELAYED_ACK: Duration = Duration::from_millis(250);
/// A path that was idle for so long begins anew.
const IDLE: Duration = Duration::from_secs(1);

/// The windows of a peer and what waits for them.
pub(crate) struct Braid {
    pub windows: Windows,
    pub holding: SendBuffer<Payload>,
    /// What a path has lost, in the order in which it left the holding buffer.
    repairs: VecDeque<QueuedPacket<Payload>>,
    /// Their bytes.
    repair_bytes: usize,
    /// Packets that left the holding buffer.
    taken: u64,
    numbers: Numbers,
    /// Where the peer gives no feedback.
    pub snoop: Option<Snooping>,
    /// What the holding buffer has room for, in bytes, and since when.
    room: (f64, Instant),
    /// The path of thin flows.
    nearest: Option<scheduler::PathId>,
    /// When a path that is waited for may send.
    wake_at: Option<Instant>,
    /// When something began to wait, or left.
    moved: Instant,
    /// Nothing goes past what waits any more, until nothing waits.
    is_starved: bool,
    /// Bytes dropped by the holding buffer that are counted already.
    dropped: u64,
    /// For how long packets waited, and did not, since the association began: which loop binds.
    pub binding: Binding,
}

/// Which of the two loops was the limit, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Binding {
    /// The windows of the paths: packets waited.
    pub paths: Duration,
    /// The programs: nothing waited.
    pub programs: Duration,
    since: Option<(Instant, bool)>,
}

/// What a path with feedback has besides.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub slot: Slot,
    pub sent: SentPackets<Payload>,
    pub received: Received,
    /// Only what TCP acknowledges inside is heard of.
    is_snooped: bool,
    /// Packets waited while the window or the pace was the limit.
    busy: bool,
    /// The most that was under way since the last report, in bytes.
    top_flight: usize,
    /// The same over some round trips: an older one counts a little less with each report.
    peak: usize,
    /// A report has come since the path had its turn to send. Those that come together, as they do where a host was late, are
    /// of the same time, and each tells of what then was under way.
    is_told: bool,
    /// A question is out to a path that is silent.
    pub asked: Option<Instant>,
    last_sent: Instant,
}

impl Braid {
    fn new(rule: Rule) -> Self {
        Self {
            windows: Windows::new(rule),
            holding: SendBuffer::default(),
            repairs: VecDeque::new(),
            repair_bytes: 0,
            taken: 0,
            numbers: Numbers::default(),
            snoop: None,
            room: (0.0, Instant::ZERO),
            nearest: None,
            wake_at: None,
            moved: Instant::ZERO,
            is_starved: false,
            dropped: 0,
            binding: Binding::default(),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let packets = self.holding.packets() + self.repairs.len();
        self.holding.bytes() + self.repair_bytes + packets * size_of::<QueuedPacket<Payload>>() + self.numbers.memory()
    }

    /// A snapshot.
    pub(crate) fn status(&self) -> HoldingStatus {
        let Binding { paths, programs, .. } = self.binding;
        let all = (paths + programs).as_secs_f64();
        HoldingStatus {
            packets: self.holding.packets() + self.repairs.len(),
            bytes: self.holding.bytes(),
            delay_ms: self.holding.sojourn().as_secs_f64() * 1e3,
            dropped: self.holding.dropped(),
            paths_bind: if all > 0.0 { paths.as_secs_f64() / all } else { 0.0 },
        }
    }

    /// The next packet to be sent: what was lost before what waits. What has waited gets its number.
    fn next(&mut self, now: Instant, limits: &Limits) -> Option<QueuedPacket<Payload>> {
        if let Some(packet) = self.repairs.pop_front() {
            self.repair_bytes -= packet.wire;
            return Some(packet);
        }
        let mut packet = self.holding.pop(now, limits)?;
        self.moved = now;
        packet.order = self.taken;
        self.taken += 1;
        let waited = packet.meta.is_tcp() || self.holding.sojourn() > UNORDERED;
        // The number carries the flow's mark along; without one the peer takes the flow for one that has none.
        let waited = waited || packet.meta.ecn != Ecn::NotEct;
        if let Some(flow) = packet.meta.flow.filter(|_| waited && self.snoop.is_none()) {
            packet.number = Some(self.numbers.next(flow));
            packet.wire += multipath::NUMBER;
        } else if self.snoop.is_none() {
            packet.meta.ecn = Ecn::NotEct;
        }
        Some(packet)
    }

    /// Takes all that waits, in no order.
    pub(crate) fn drain(&mut self) -> Vec<QueuedPacket<Payload>> {
        self.repair_bytes = 0;
        let mut all: Vec<QueuedPacket<Payload>> = std::mem::take(&mut self.repairs).into();
        for mut packet in self.holding.drain() {
            packet.order = self.taken;
            self.taken += 1;
            all.push(packet);
        }
        all
    }

    /// Queues a packet to be sent again, the older the sooner: the peer's programs wait for it.
    fn again(&mut self, packet: QueuedPacket<Payload>) {
        let at = self.repairs.partition_point(|other| other.order <= packet.order);
        self.repair_bytes += packet.wire;
        self.repairs.insert(at, packet);
    }

    /// Bytes that have to be allowed for the next packet to be sent: its own, or where several wait, those of any.
    fn next_wire(&self, largest: usize) -> usize {
        match (self.repairs.front(), self.repairs.len() + self.holding.packets()) {
            (Some(packet), _) => packet.wire,
            (None, 1) => self.holding.bytes() + multipath::NUMBER,
            _ => largest,
        }
    }

    /// Whether what goes past has kept what waits from leaving: acknowledgments that come faster than the path takes them
    /// leave no room in its window. Then all wait, and flows take turns.
    pub(crate) fn is_starved(&mut self, now: Instant) -> bool {
        let waits = self.holding.packets() > 0;
        self.is_starved = waits && (self.is_starved || now - self.moved > STARVED);
        self.is_starved
    }

    fn waits(&self) -> bool {
        !self.repairs.is_empty() || self.holding.packets() > 0
    }
}

impl Binding {
    fn note(&mut self, now: Instant, waits: bool) {
        if let Some((since, waited)) = self.since {
            *(if waited { &mut self.paths } else { &mut self.programs }) += now - since;
        }
        self.since = Some((now, waits));
    }
}

impl Control {
    /// For a path of the same route with new keys, while this one is still in use.
    pub(crate) fn following(&self, now: Instant) -> Self {
        Self { sent: SentPackets::new(now), received: Received::default(), asked: None, ..self.clone_without_log(now) }
    }

    fn clone_without_log(&self, now: Instant) -> Self {
        let Self { slot, is_snooped, busy, top_flight, peak, is_told, last_sent, .. } = *self;
        let (sent, received) = (SentPackets::new(now), Received::default());
        Self { slot, sent, received, is_snooped, busy, top_flight, peak, is_told, asked: None, last_sent }
    }

    /// The path before has ended: its measurements go on here.
    pub(crate) fn take_over(&mut self, now: Instant, before: &Self) {
        let received = std::mem::take(&mut self.received);
        *self = Self { received, sent: before.sent.following(now), ..before.clone_without_log(now) };
    }

    /// Whether only what TCP acknowledges inside is heard of.
    pub(crate) fn is_snooped(&self) -> bool {
        self.is_snooped
    }

    /// How long a packet takes there at the least, if what is under way leaves at the rate at which packets arrived lately:
    /// round trips tell of a queue only when it has been there for as long.
    fn forecast(&self) -> Duration {
        let (base, rate) = (self.sent.rtt().min(), self.sent.rate());
        let Some(base) = base.filter(|_| rate > 0) else { return Duration::ZERO };
        let queue = Duration::of_transmission(self.sent.in_flight() as u64, rate).saturating_sub(base);
        base / 2 + queue
    }

    /// How long silence lasts before it means something: a round trip as it may be now, and what reports are late by.
    fn patience(&self, heartbeat: &Heartbeat) -> Duration {
        let (told, beaten) = (self.sent.rtt(), heartbeat.rtt());
        let lateness = match (told.latest(), beaten.srtt(), beaten.rttvar()) {
            (Some(latest), ..) => latest + self.sent.jitter() * 4,
            (None, Some(srtt), Some(rttvar)) => srtt + rttvar * 4,
            _ => return Duration::from_secs(1),
        };
        lateness + REPORT_SLACK
    }
}

impl PeerState {
    /// The base exchange has ended.
    pub(crate) fn begin(&mut self, feedback: bool, learns: bool, rule: Rule) {
        self.braid = (feedback || learns).then(|| Box::new(Braid::new(rule)));
        if let Some(braid) = self.braid.as_mut().filter(|_| !feedback) {
            braid.snoop = Some(Snooping::default());
            braid.windows.listen();
        }
    }

    /// A segment of the peer's TCP came: without feedback, what it acknowledges is what paths have delivered.
    pub(crate) fn snooped(&mut self, now: Instant, flow: FlowId, heard: &Acknowledgment<'_>, counters: &mut Counters) {
        let Some(snoop) = self.braid.as_mut().and_then(|braid| braid.snoop.as_mut()) else { return };
        for Delivered { path: id, ranges, timed } in snoop.acknowledged(now, flow, heard) {
            let Some(path) = self.paths.iter().chain(&self.retired).find(|path| path.id == id) else { continue };
            let highest = ranges.first().map_or(0, |(_, last)| *last);
            let (spi, report) = (path.outbound.spi(), Report { highest, ranges, ..Report::default() });
            // Nothing of it is impossible: what was sent on a path is still known there, or is passed over.
            let _ = self.record(now, if timed { id } else { NO_PATH }, spi, &report, counters);
        }
    }

    /// What a new path needs, where there is feedback.
    pub(crate) fn control(&mut self, now: Instant, mtu: u16) -> Option<Control> {
        let braid = self.braid.as_mut()?;
        Some(Control {
            slot: braid.windows.add(mtu),
            sent: SentPackets::new(now),
            received: Received::default(),
            is_snooped: braid.snoop.is_some(),
            busy: false,
            top_flight: 0,
            is_told: false,
            peak: 0,
            asked: None,
            last_sent: now,
        })
    }

    /// A path is gone: what it has not delivered goes on the others.
    pub(crate) fn detach(&mut self, now: Instant, path: &mut Path, counters: &mut Counters) {
        if let (Some(control), Some(braid)) = (&mut path.control, &mut self.braid) {
            braid.windows.remove(control.slot);
            rescue(braid, control.sent.give_up(now), counters);
        }
    }

    /// Takes a packet for the holding buffer.
    pub(crate) fn hold(&mut self, now: Instant, packet: QueuedPacket<Payload>) {
        let limits = self.limits(now);
        let Some(braid) = &mut self.braid else { return };
        if braid.holding.packets() == 0 {
            braid.moved = now;
        }
        braid.holding.push(now, packet, &limits);
    }

    /// Tells the sender of what a segment of the peer's acknowledges to send no more than may wait here.
    pub(crate) fn narrow(&mut self, now: Instant, packet: &mut [u8]) {
        let Ok(view) = V6::parse(packet) else { return };
        if view.protocol() != protocol::TCP || view.fragment().is_some() {
            return;
        }
        let at = packet.len() - view.payload().len();
        let Some(flow) = flow_of(protocol::TCP, view.payload(), false) else { return };
        let Ok(segment) = tcp::Segment::parse(view.payload()) else { return };
        let flags = segment.flags();
        if flags.contains(tcp::Flags::SYN) {
            self.connections.opens(flow, &segment, false);
        } else if !flags.contains(tcp::Flags::ACK) {
            return;
        }
        let limits = self.limits(now);
        let room = match &self.braid {
            Some(braid) => braid.holding.room(flow, &limits),
            None => self.room(),
        };
        if let Some(window) = self.connections.narrower(flow, &segment, room)
            && let Some(segment) = packet.get_mut(at..)
        {
            tcp::set_window(segment, window);
        }
    }

    /// Sends what windows and paces allow.
    pub(crate) fn pump(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        let (limits, kept) = (self.limits(now), self.kept_bytes());
        let Some(braid) = &mut self.braid else { return };
        braid.wake_at = None;
        braid.binding.note(now, braid.waits());
        for control in self.paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            if std::mem::take(&mut control.is_told) {
                (control.busy, control.top_flight) = (false, 0);
            }
        }
        let any_alive = self.paths.iter().any(Path::is_usable);
        let mut room = self.share.under_way().saturating_sub(kept);
        while braid.waits() && room > 0 {
            self.views.clear();
            for path in &mut self.paths {
                let usable = if any_alive { path.is_usable() } else { path.verified };
                let usable = usable && path.credit.allows(braid.next_wire(path.way.mtu.into()));
                let Some(control) = path.control.as_mut().filter(|_| usable) else { continue };
                let (told, beaten) = (control.sent.rtt().srtt(), path.heartbeat.rtt().srtt());
                // By ear round trips are told with what the peer's TCP waited for, and heartbeats are rare.
                let srtt =
                    if braid.snoop.is_some() { [told, beaten].into_iter().flatten().min() } else { told.or(beaten) };
                if control.sent.in_flight() == 0 && now - control.last_sent > IDLE {
                    control.last_sent = now;
                    braid.windows.idle(now, control.slot);
                }
                let window = if any_alive || braid.snoop.is_some() { braid.windows.window(control.slot) } else { TRY };
                let before = Self::under_way_before(&self.retired, control);
                if (control.sent.in_flight() + before) as f64 >= window {
                    // Losses are not repaired where nothing is told: a path is not filled further while another has room.
                    control.busy |= braid.snoop.is_none();
                    continue;
                }
                let pace = braid.windows.pace(control.slot, srtt);
                // What is not TCP shares the pace, and is not to be slowed by windows that know nothing of it.
                let least = path.way.rate.unwrap_or(UNKNOWN_RATE);
                let pace = if braid.snoop.is_some() { pace.max(least) } else { pace };
                let pace = path.way.rate.map_or(pace, |cap| pace.min(Pacer::<Payload>::new(cap).rate()));
                path.pacer.set_rate(pace);
                // What little was sent so far is no rate of the path's.
                let rate = control.sent.rate().max(path.pacer.rate());
                let forecast = if braid.snoop.is_some() { Duration::ZERO } else { control.forecast() };
                let delay = srtt.map_or(path.way.delay, |srtt| forecast.max(srtt / 2));
                let free_at = path.pacer.clear_at();
                self.views.push(PathView { id: path.id, open: true, delay, rate, free_at, ..PathView::default() });
            }
            let thin = braid.repairs.is_empty() && braid.holding.next_is_thin();
            let near = if thin { nearest(braid, &self.paths) } else { None };
            let len = braid.repairs.front().map_or(1500, |packet| packet.wire);
            let meta = PacketMeta { len, ..PacketMeta::default() };
            let choice = match near {
                Some(id) => Decision::Send(id),
                None => self.scheduler.select(&meta, &self.views, now),
            };
            let Decision::Send(mut id) = choice else { break };
            let late = |view: &PathView| view.free_at > now;
            if near.is_none() && self.views.iter().any(|view| view.id == id && late(view)) {
                let waited = braid.holding.waits_since().is_some_and(|since| now - since > PATIENT_TIME);
                let patient = braid.repairs.is_empty() && !waited && braid.holding.bytes() <= PATIENT_BYTES;
                if patient {
                    braid.wake_at = self.views.iter().filter(|view| late(view)).map(|view| view.free_at).min();
                    break;
                }
                for view in &mut self.views {
                    view.open = !late(view);
                }
                match self.scheduler.select(&meta, &self.views, now) {
                    Decision::Send(ready) => id = ready,
                    _ => {
                        // A peer that does not put in order is not to get more out of order.
                        let most = if braid.snoop.is_some() { Duration::ZERO } else { PAIR };
                        let pair =
                            |view: &PathView| view.free_at + most.min(Duration::of_transmission(1500, view.rate));
                        braid.wake_at = self.views.iter().map(pair).min();
                        break;
                    }
                }
            }
            let Some(packet) = braid.next(now, &limits) else { break };
            let Some(path) = self.paths.iter_mut().find(|path| path.id == id) else { break };
            let place = match &mut braid.snoop {
                Some(snoop) => snoop.place(now, &packet.meta),
                None => None,
            };
            let is_followed = place.is_some() || braid.snoop.is_none();
            room = room.saturating_sub(packet.len());
            if path.send_held(now, packet, is_followed, rng, out).is_err() {
                counters.exhausted += 1;
            } else if let (Some(snoop), Some(place)) = (&mut braid.snoop, place) {
                snoop.sent(now, place, path.id, path.outbound.sequence());
            }
        }
        let waits = braid.waits();
        for control in self.paths.iter_mut().filter_map(|path| path.control.as_mut()) {
            control.busy |= waits;
        }
        braid.binding.note(now, waits);
        counters.queue_full += braid.holding.dropped() - braid.dropped;
        braid.dropped = braid.holding.dropped();
    }

    /// Takes a record of the peer's, which came on the path of number `came_on`.
    pub(crate) fn record(
        &mut self,
        now: Instant,
        came_on: scheduler::PathId,
        spi: Spi,
        report: &Report,
        counters: &mut Counters,
    ) -> Result<(), InvalidReport> {
        let Some(braid) = &mut self.braid else { return Ok(()) };
        let mut known = self.paths.iter_mut().chain(&mut self.retired);
        let Some(path) = known.find(|path| path.outbound.spi() == spi) else {
            // A path that is gone here already, or never was.
            counters.unknown_feedback += 1;
            return Ok(());
        };
        let own_way = path.id == came_on;
        let Some(control) = &mut path.control else { return Ok(()) };
        let mut news = control.sent.on_report(now, report, own_way)?;
        let mut busy = None;
        if news.acked > 0 {
            control.asked = None;
            control.is_told = true;
            control.peak = control.top_flight.max(control.peak - control.peak / 32);
            busy = control.busy.then_some(control.top_flight);
        }
        // Of packets that come and go in bursts few may be under way when a loss is told: it is no smaller window's loss.
        news.peak = control.peak as u64;
        let (next, srtt) = (control.sent.next_of_window(), control.sent.rtt().srtt());
        braid.windows.report(now, control.slot, &news, next, srtt, busy);
        repair(braid, news.retransmit, counters);
        self.refresh();
        Ok(())
    }

    /// When a path's silence means something, a report is due, or a pace allows a packet.
    pub(crate) fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        let braid = self.braid.as_ref()?;
        let wake = braid.wake_at.map(|at| (at, TimerKind::Pacing));
        let paths = self.paths.iter().filter(|path| path.verified);
        let paths = paths.filter_map(|path| {
            let control = path.control.as_ref()?;
            let life = control.sent.silent_since().map(|_| control.life_deadline(&path.heartbeat));
            [control.received.poll_timeout(), control.sent.poll_timeout(), life].into_iter().flatten().min()
        });
        wake.into_iter().chain(paths.map(|at| (at, TimerKind::Feedback))).min()
    }

    /// What is known of a path.
    pub(crate) fn measured(&self, path: &Path) -> Option<Measured> {
        let (braid, control) = (self.braid.as_ref()?, path.control.as_ref()?);
        let counts = control.sent.counts();
        let ssthresh = braid.windows.threshold(control.slot);
        Some(Measured {
            delivery_rate: control.sent.rate(),
            cwnd: braid.windows.window(control.slot) as u64,
            ssthresh: ssthresh.is_finite().then_some(ssthresh as u64),
            in_flight: control.sent.in_flight(),
            remembered: control.sent.remembered(),
            sharers: braid.windows.sharers(control.slot),
            rttvar_ms: control.sent.rtt().rttvar().map(|rttvar| rttvar.as_secs_f64() * 1e3),
            delivered: counts.delivered,
            lost: counts.lost,
            spurious: counts.spurious,
            reordered: counts.reordered,
            ce: counts.ce,
        })
    }

    fn limits(&mut self, now: Instant) -> Limits {
        let Some(braid) = &mut self.braid else {
            return Limits { bytes: 0, most: 0, told: 0, codel: LEAST_CODEL };
        };
        let controls = || self.paths.iter().filter(|path| path.is_usable()).filter_map(|path| path.control.as_ref());
        let windows: f64 = controls().map(|control| braid.windows.window(control.slot)).sum();
        let rtt = controls().filter_map(|control| control.sent.rtt().srtt()).max().unwrap_or_default();
        let wanted = windows * ENOUGH;
        let enough = wanted.max(LEAST_BUFFER);
        let (room, since) = braid.room;
        // Without feedback what a path has lost comes again from inside, and has to be told soon.
        let kept =
            if braid.snoop.is_some() { 0.0 } else { (-(now - since).as_secs_f64() / LEAVING.as_secs_f64()).exp() };
        let room = enough.max(room * kept);
        braid.room = (room, now);
        let most = (2 * room as usize).min(self.share.send_buffer());
        Limits {
            bytes: (room as usize).min(most / 2),
            most,
            // Of slow paths the least that the buffer holds would stay longer than CoDel's target. But by ear it is the TCP
            // inside that repairs, and paths are not to run dry while its own window falls.
            told: (TOLD * if braid.snoop.is_some() { enough } else { wanted }) as usize,
            codel: codel::Parameters {
                target: LEAST_CODEL.target.max(rtt.mul_f64(ENOUGH)),
                interval: LEAST_CODEL.interval.max(rtt * 4),
            },
        }
    }
}

impl Control {
    /// Reports follow each other by less than [`REPORT_SLACK`] while packets arrive. So a path is silent when nothing was
    /// acknowledged for longer, although the oldest packet under way is a round trip older than that.
    pub(crate) fn life_deadline(&self, heartbeat: &Heartbeat) -> Instant {
        let patience = self.patience(heartbeat);
        if let Some(asked) = self.asked {
            let answered = self.is_snooped && heartbeat.answered_at() >= asked;
            return asked + patience + if answered { DELAYED_ACK } else { Duration::ZERO };
        }
        let (Some(oldest), Some(progress)) = (self.sent.oldest_at(), self.sent.silent_since()) else {
            return Instant::FAR_FUTURE;
        };
        (oldest + patience).max(progress + REPORT_SLACK.max((self.sent.gap() * 3).min(patience)))
    }

    /// Notes a packet that was sealed.
    pub(crate) fn sealed(&mut self, now: Instant, sequence: u32, wire: usize, content: Kind<Payload>) {
        let content = match content {
            Kind::InFlight if self.is_snooped => Kind::Uncounted,
            content => content,
        };
        if !matches!(content, Kind::Uncounted) {
            self.last_sent = now;
            if self.sent.in_flight() == 0 {
                // The question was about another flight.
                self.asked = None;
            }
        }
        self.sent.sent(now, sequence, wire, content);
        self.top_flight = self.top_flight.max(self.sent.in_flight());
    }
}

/// Where a thin flow's next packet goes: on the path of the shortest round trip, and on the same one while it is not much
/// longer than another. Jumping between queues, which windows that open now here and now there would make it do, is jitter to
/// a call; what little it sends finds room.
fn nearest(braid: &mut Braid, paths: &[Path]) -> Option<scheduler::PathId> {
    let near = paths.iter().filter(|path| path.is_usable()).filter_map(|path| {
        let control = path.control.as_ref()?;
        let has_room = (control.sent.in_flight() as f64) < braid.windows.window(control.slot) + SPARE;
        let has_room = has_room && path.credit.allows(braid.next_wire(path.way.mtu.into()));
        has_room.then_some((path.srtt()?, path.id))
    });
    let (least, best) = near.clone().min()?;
    let kept = near.clone().find(|(srtt, id)| Some(*id) == braid.nearest && *srtt < least + FARTHER);
    braid.nearest = Some(kept.map_or(best, |(_, id)| id));
    braid.nearest
}

/// Queues what was under way on a path that died.
pub(crate) fn rescue(braid: &mut Braid, packets: Vec<QueuedPacket<Payload>>, counters: &mut Counters) {
    for mut packet in packets {
        packet.rescues += 1;
        if packet.rescues <= RESCUES {
            counters.rescheduled += 1;
            braid.again(packet);
        } else {
            counters.given_up += 1;
        }
    }
}

/// Queues what may be sent again; the rest is left to the programs.
pub(crate) fn repair(braid: &mut Braid, packets: Vec<QueuedPacket<Payload>>, counters: &mut Counters) {
    if braid.snoop.is_some() {
        // The TCP inside has seen the same acknowledgments, and does it itself.
        return;
    }
    for mut packet in packets {
        if packet.retransmissions < REPAIRS {
            packet.retransmissions += 1;
            counters.repaired += 1;
            braid.again(packet);
        } else {
            counters.given_up += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Connections;

    #[test]
    fn what_left_first_is_sent_again_first() {
        let mut braid = Braid::new(crate::WedgeConfig::default_congestion());
        for order in [4, 7, 1, 4, 9, 2] {
            let payload = Payload::copy(protocol::TCP, &[]);
            let meta = payload.meta(Ecn::NotEct, &mut Connections::default());
            braid.again(QueuedPacket { order, ..QueuedPacket::new(meta, payload, 1500) });
        }
        let limits = Limits { bytes: 0, most: 0, told: 0, codel: LEAST_CODEL };
        let left: Vec<u64> =
            std::iter::from_fn(|| braid.next(Instant::ZERO, &limits)).map(|packet| packet.order).collect();
        assert_eq!(left, [1, 2, 4, 4, 7, 9]);
    }
}

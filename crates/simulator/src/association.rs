//! Two hosts of Sinnet as they ship, without bytes: the sender, the reports and the order of `multipath`, and around them what
//! the daemon's data plane does when a program's packet leaves, one comes from the network, or time has passed.
//!
//! The association is there when its first flow starts; the exchange of keys takes no time and no packets.

use clock::{Duration, Instant, Rng};
use congestion::{InitialWindow, Rule, WindowRule as _};
use multipath::{
    Asks, Bunches, Change, Class, Copies, CopyNumber, Dispatch, Ecn, Enqueued, Feedback, FlowId, HEARTBEAT, Heartbeat,
    Memory, Meta, Number, Overhead, PathEvent, PathState, ReceivedPacket, Reordering, Report, Reporter, ReportingPath,
    Resequencing, SKIPPED, Segment, Sender, UNKNOWN_RATE,
};
use recovery::{Position, Role};
use scheduler::{PathId, PathScheduler as _, Scheduler};
use transport::mhip::{PathArrivals, PathCounters, PathStatus};
use transport::{Blocks, Flags, FlowConfig, NO_BLOCKS, Packet, TcpConfig, expand};

/// The options of an association.
#[derive(Clone, Debug)]
pub struct AssociationConfig {
    /// The largest packet on its paths, in bytes.
    pub mtu: u16,
    /// The rule by which the windows of paths grow and shrink.
    pub rule: Rule,
    /// By what a host chooses the path of a packet.
    pub scheduler: Scheduler,
    /// Whether the hosts are told the rate of each path's slowest link, pace packets at it, and measure nothing.
    pub rates_configured: bool,
}

impl Default for AssociationConfig {
    /// As the daemon has it, over Ethernet.
    fn default() -> Self {
        Self { mtu: 1500, rule: multipath::usual_rule(), scheduler: Scheduler::default(), rates_configured: false }
    }
}

impl AssociationConfig {
    /// What follows the inner IP header of the largest packets of programs, in bytes.
    pub(crate) fn inner_room(&self) -> usize {
        let copies = if self.scheduler.needs().copies { multipath::COPY_NUMBER } else { 0 };
        multipath::inner_room(self.mtu).saturating_sub(copies)
    }

    /// The TCP of a program: its packets fit those of paths, and its first window is that of the routes to peers.
    pub fn tcp_inside(&self, rule: Rule) -> TcpConfig {
        let mut tcp = TcpConfig::linux(rule, self.inner_room() as u32 + IP_HEADER, IP_HEADER);
        tcp.engine.initial_window = InitialWindow::Packets(multipath::FIRST_WINDOW);
        tcp
    }
}

/// The inner IP header, which ESP does not carry (BEET, RFC 7402 §3.2), in bytes.
pub(crate) const IP_HEADER: u32 = 40;
/// ESP in UDP with the suite that two hosts of Sinnet agree on.
const OVERHEAD: Overhead = Overhead::AES_GCM_IN_UDP;
/// The window of a SYN is not scaled (RFC 7323 §2.2), others go by steps of so many bytes.
const UNSCALED: u64 = 65_535;
const WINDOW_STEP: u64 = 1 << 10;

/// A packet of a flow, with the blocks of selective acknowledgment that it may have.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) packet: Packet,
    pub(crate) blocks: Option<Box<Blocks>>,
}

/// What an outer packet carries.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Data(Inside, Option<Number>, Option<CopyNumber>, Ecn),
    Reports(Vec<(PathId, Report)>),
    Heartbeat { nonce: u64, is_answer: bool },
}

/// An outer packet.
#[derive(Clone, Debug)]
pub(crate) struct Outer {
    pub(crate) path: u8,
    /// Its number on its path.
    pub(crate) number: u32,
    /// Bytes on the wire.
    pub(crate) wire: usize,
    pub(crate) content: Content,
}

impl Outer {
    /// Whether queues may mark it.
    pub(crate) fn is_ecn_capable(&self) -> bool {
        matches!(self.content, Content::Data(.., ecn) if ecn != Ecn::NotEct)
    }
}

/// A flow inside, as the host at which its data begin knows it.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    /// Its number in the simulation.
    pub(crate) flow: u32,
    number: u32,
    kind: Kind,
    /// One beyond the highest position sent.
    high: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tcp { mss: u32, headers: u32 },
    Udp { headers: u32 },
    Echo,
}

impl Inner {
    /// The flow of this number in the simulation, with this place among those of the association.
    pub(crate) fn new(flow: u32, number: u32, traffic: &FlowConfig) -> Self {
        let kind = match traffic {
            FlowConfig::Tcp(tcp) => Kind::Tcp { mss: tcp.mss(), headers: tcp.header_size },
            FlowConfig::Echo(_) => Kind::Echo,
            FlowConfig::Udp(udp) => Kind::Udp { headers: udp.header_size },
            _ => Kind::Udp { headers: 0 },
        };
        Self { flow, number, kind, high: 0 }
    }

    fn id(&self, end: usize) -> FlowId {
        let protocol = match self.kind {
            Kind::Tcp { .. } => 6,
            Kind::Udp { .. } => 17,
            Kind::Echo => 58,
        };
        let (a, b) = (self.number as u16, (self.number >> 16) as u16);
        let (local, remote) = if end == 0 { (a, b) } else { (b, a) };
        FlowId { protocol, local, remote }
    }

    /// Whether a packet is an acknowledgment of TCP, without data.
    fn is_bare_ack(&self, packet: &Packet) -> bool {
        matches!(self.kind, Kind::Tcp { .. }) && packet.flags.has(Flags::ACK)
    }

    /// Up to which number a packet that is such a one, and tells of no holes, acknowledges all.
    fn acknowledged(&self, packet: &Inside) -> Option<u32> {
        let Kind::Tcp { mss, headers } = self.kind else { return None };
        let is_bare = self.is_bare_ack(&packet.packet) && packet.blocks.is_none();
        let next = expand(packet.packet.position, self.high);
        is_bare.then(|| sequence((mss, headers), next, &packet.packet).0)
    }

    /// What the core has to know of a packet that leaves this end: what the daemon reads from its headers.
    pub(crate) fn meta(&mut self, end: usize, packet: &Packet) -> Meta {
        let len = packet.bytes.saturating_sub(IP_HEADER) as usize;
        let is_ack = packet.flags.has(Flags::ACK);
        let ecn = if packet.flags.has(Flags::ECN_CAPABLE) { Ecn::Ect0 } else { Ecn::NotEct };
        let mut meta =
            Meta { flow: Some(self.id(end)), len, is_urgent: false, class: Class::Datagram, ecn, is_short: false };
        match self.kind {
            Kind::Tcp { headers, .. } if is_ack => {
                meta.is_urgent = true;
                // With blocks of selective acknowledgment the header goes whole.
                meta.is_short = packet.bytes == headers;
                meta.class = Class::Tcp(Segment { has_timestamps: true, ..Segment::default() });
            }
            Kind::Tcp { mss, headers } => {
                let position = expand(packet.position, self.high);
                let is_retransmission = position > 0 && position < self.high;
                self.high = self.high.max(position + 1);
                let syn = position == 0;
                meta.is_urgent = syn;
                meta.is_short = !syn;
                let (seq, len) = sequence((mss, headers), position, packet);
                meta.class = Class::Tcp(Segment { seq, len, syn, has_timestamps: true, is_retransmission });
            }
            Kind::Udp { .. } => meta.is_short = true,
            Kind::Echo => {
                meta.is_urgent = len <= multipath::LARGEST_URGENT_ICMP;
                // As the daemon has it, only what asks is a flow.
                meta.flow = meta.flow.filter(|_| !is_ack);
            }
        }
        meta.len -= if meta.is_short { self.left_out(!is_ack) } else { 0 };
        meta
    }

    /// Bytes that headers take less where the flow has a label, as it has but for its first packets.
    fn left_out(&self, rests: bool) -> usize {
        match self.kind {
            Kind::Tcp { headers, .. } | Kind::Udp { headers } => {
                multipath::left_out(headers.saturating_sub(IP_HEADER) as usize, rests)
            }
            Kind::Echo => 0,
        }
    }
}

/// The number of the first byte of a packet of TCP data, and how many numbers it takes.
fn sequence((mss, headers): (u32, u32), position: u64, packet: &Packet) -> (u32, u32) {
    if position == 0 {
        return (0, 1);
    }
    // The first byte after the SYN has number 1.
    let seq = (position - 1).wrapping_mul(mss.into()).wrapping_add(1) as u32;
    (seq, packet.bytes.saturating_sub(headers))
}

/// A path as one end has it.
#[derive(Debug)]
struct EndPath {
    heartbeat: Heartbeat,
    /// One-way, as configured.
    delay: Duration,
    /// In bit/s, where it is configured.
    rate: Option<u64>,
    /// The last number used.
    sent: u32,
    /// The integral of the window in byte-seconds until `since`, from when on it has been `cwnd`.
    cwnd_seconds: f64,
    cwnd: f64,
    since: Instant,
    /// Deaths.
    closings: u64,
    probes: u64,
}

/// What was counted of a flow on a path: at the end where it left, and where it arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    sent: u64,
    retransmissions: u64,
    arrivals: PathArrivals,
}

/// One of the two hosts.
#[derive(Debug)]
pub(crate) struct End {
    /// 0 for the one at which data begin.
    end: usize,
    config: AssociationConfig,
    sender: Sender<Inside>,
    reporter: Reporter,
    resequencing: Resequencing<Inside>,
    bunches: Bunches<Inside>,
    order: Reordering,
    copies: Copies,
    paths: Vec<EndPath>,
    /// The sender knows what the paths are like.
    is_told: bool,
    rng: Rng,
    /// By flow, path by path.
    counted: Vec<Counted>,
    /// By flow, one beyond the highest position that arrived.
    high: Vec<u64>,
    /// What is to be sent, and what is for programs.
    pub(crate) out: Vec<Outer>,
    pub(crate) delivered: Vec<Inside>,
}

impl End {
    /// A host without an association yet, over paths of these one-way delays and rates in bit/s.
    pub(crate) fn new(
        end: usize,
        config: &AssociationConfig,
        paths: &[(Duration, Option<u64>)],
        flows: usize,
        rng: Rng,
    ) -> Self {
        let path = |(delay, rate): &(Duration, Option<u64>)| EndPath {
            heartbeat: Heartbeat::new(Instant::ZERO),
            delay: *delay,
            rate: rate.filter(|_| config.rates_configured),
            sent: 0,
            cwnd_seconds: 0.0,
            cwnd: 0.0,
            since: Instant::ZERO,
            closings: 0,
            probes: 0,
        };
        Self {
            end,
            config: config.clone(),
            sender: Sender::new(Feedback::None, config.rule.clone()),
            reporter: Reporter::default(),
            resequencing: Resequencing::default(),
            bunches: Bunches::default(),
            order: Reordering::default(),
            copies: Copies::default(),
            counted: vec![Counted::default(); flows * paths.len()],
            high: vec![0; flows],
            paths: paths.iter().map(path).collect(),
            is_told: false,
            rng,
            out: Vec::new(),
            delivered: Vec::new(),
        }
    }

    /// The base exchange has ended, and all paths are there.
    pub(crate) fn open(&mut self, now: Instant) {
        let mut rule = self.config.rule.clone();
        rule.seed(Rng::from_seed(self.rng.next_u64()));
        let feedback = if self.config.rates_configured { Feedback::None } else { Feedback::Reports };
        self.sender = Sender::new(feedback, rule).with_scheduler(self.config.scheduler.clone());
        self.sender.set_memory(Memory::of_share(multipath::MEMORY / multipath::SHARE));
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index) else { break };
            (path.heartbeat, path.since) = (Heartbeat::new(now), now);
            let state = self.state(index);
            self.sender.add_path(now, id_of(index), state, state.rate.unwrap_or(UNKNOWN_RATE));
        }
        self.is_told = false;
        self.refresh();
    }

    /// A packet of a program leaves; `None` once it is taken.
    pub(crate) fn handle_application(&mut self, now: Instant, meta: Meta, packet: Inside) {
        self.sync();
        if self.sender.enqueue(now, meta, packet) == Enqueued::Taken {
            self.traffic(now);
        }
        while let Some(dispatch) = self.sender.poll_urgent(now) {
            self.leave(now, dispatch);
        }
        self.settle(now);
    }

    /// A packet comes from the network. `inner` is the flow of its data.
    pub(crate) fn handle_network(&mut self, now: Instant, outer: Outer, is_marked: bool, inner: Option<&Inner>) {
        let Outer { path, number, wire, content } = outer;
        let (index, id) = (usize::from(path), id_of(path.into()));
        let Some(here) = self.paths.get(index) else { return };
        let srtt = self.sender.srtt(id).or(here.heartbeat.rtt().srtt());
        let asks = match &content {
            Content::Reports(_) => Asks::Never,
            Content::Data(inside, ..) if inner.is_some_and(|inner| inner.is_bare_ack(&inside.packet)) => Asks::Later,
            _ => Asks::Soon,
        };
        if !self.config.rates_configured {
            self.reporter.on_packet(now, id, ReceivedPacket { number, wire, is_marked, asks }, srtt);
            self.is_told = false;
        }
        match content {
            Content::Reports(reports) => {
                for (of, report) in reports {
                    let taken = self.sender.on_report(now, of, of == id, &report);
                    debug_assert!(taken.is_ok(), "{taken:?}");
                }
                self.refresh();
                self.note_windows(now);
            }
            Content::Heartbeat { nonce, is_answer: false } => {
                let answer = Content::Heartbeat { nonce, is_answer: true };
                self.send_control(now, index, HEARTBEAT, true, answer);
            }
            Content::Heartbeat { nonce, is_answer: true } => self.answered(now, index, nonce),
            Content::Data(mut packet, number, copy, ecn) => {
                self.traffic(now);
                if copy.is_some_and(|copy| !self.copies.is_first(copy)) {
                    return self.settle(now);
                }
                // RFC 6040 §4.2. What may not be marked no queue has marked.
                packet.packet.flags =
                    packet.packet.flags.with_if(Flags::MARKED, is_marked && ecn != Ecn::NotEct || ecn == Ecn::Ce);
                let Some(inner) = inner else { return };
                if number.is_some_and(|number| !self.resequencing.is_first(inner.id(self.end), number)) {
                    return self.settle(now);
                }
                let place =
                    number.map_or_else(|| self.place_in_tcp(inner, id, &packet.packet), |n| Some(n.position(id)));
                self.count_arrival(inner, index, wire, &packet.packet);
                let id_inside = inner.id(self.end);
                let bare_ack = inner.acknowledged(&packet);
                if let Some(until) = bare_ack.and_then(|ack| self.sender.holds_acknowledgment(now, id_inside, ack)) {
                    let bytes = packet.packet.bytes as usize;
                    self.bunches.hold(id_inside, until, (packet, bytes));
                    return self.settle(now);
                }
                self.delivered.append(&mut self.bunches.take(id_inside));
                match place {
                    Some(position) => {
                        let bytes = packet.packet.bytes as usize;
                        let Self { resequencing, order, delivered, .. } = self;
                        resequencing.offer(now, id_inside, position, (packet, bytes), order, delivered);
                    }
                    None => self.delivered.push(packet),
                }
            }
        }
        self.settle(now);
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..multipath::ROUNDS {
            self.watch(now);
            self.beat(now);
            self.sender.release();
            self.settle(now);
            let mut ready = Vec::new();
            self.resequencing.handle_timeout(now, &mut ready);
            self.bunches.handle_timeout(now, &mut ready);
            self.delivered.extend(ready.into_iter().map(|(_, packet)| packet));
            if self.deadline() > now {
                break;
            }
        }
        self.note_windows(now);
    }

    /// When [`End::handle_timeout`] is to be called; `was_called` if it just was.
    pub(crate) fn next_deadline(&mut self, now: Instant, was_called: bool) -> Instant {
        self.sync();
        let at = self.deadline();
        if was_called && at <= now { now + multipath::REST } else { at.max(now) }
    }

    fn deadline(&self) -> Instant {
        let beats = self.paths.iter().map(|path| path.heartbeat.poll_timeout());
        let reports = (0..self.paths.len()).filter_map(|index| self.reporter.poll_timeout(id_of(index)));
        let rest = [
            self.sender.poll_pacing(),
            self.sender.poll_queues(),
            self.sender.poll_timeout(),
            self.resequencing.poll_timeout(),
            self.bunches.poll_timeout(),
        ];
        beats.chain(reports).chain(rest.into_iter().flatten()).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// What this acknowledgment acknowledges everything below of, and the window in bytes of which the flow's TCP hears with it.
    pub(crate) fn window(&mut self, now: Instant, inner: &Inner, ack: &Packet) -> (u64, u64) {
        let next = expand(ack.position, inner.high);
        let Kind::Tcp { mss, .. } = inner.kind else { return (next, u64::MAX) };
        self.sync();
        let budget = self.sender.budget(now, inner.id(self.end));
        if next <= 1 {
            return (next, multipath::clamped_window(0, budget).min(UNSCALED));
        }
        let outstanding = inner.high.saturating_sub(next).saturating_mul(mss.into());
        let outstanding = u32::try_from(outstanding).unwrap_or(u32::MAX);
        (next, multipath::clamped_window(outstanding, budget).next_multiple_of(WINDOW_STEP))
    }

    /// What there is to tell of the paths, of the share that one flow has in what they carried.
    pub(crate) fn path_states(&self, now: Instant, inner: &Inner) -> Vec<PathStatus> {
        let mtu = f64::from(self.config.mtu);
        let counted = self.counted.chunks(self.paths.len().max(1)).nth(inner.number as usize).unwrap_or_default();
        let state = |(index, (path, counted)): (usize, (&EndPath, &Counted))| {
            let known = self.sender.path_statistics(id_of(index));
            let cwnd_seconds = path.cwnd_seconds + path.cwnd * now.saturating_since(path.since).as_secs_f64();
            PathStatus {
                cwnd: known.map_or(0.0, |known| known.cwnd / mtu),
                ssthresh: known.map_or(f64::INFINITY, |known| known.ssthresh / mtu),
                flight: known.map_or(0, |known| known.in_flight as u64 / u64::from(self.config.mtu)),
                srtt: self.sender.srtt(id_of(index)).or(path.heartbeat.rtt().srtt()).unwrap_or_default(),
                open: path.heartbeat.is_alive(),
                counters: PathCounters {
                    sent: counted.sent,
                    retransmissions: counted.retransmissions,
                    reductions: known.map_or(0, |known| known.reductions),
                    undone: known.map_or(0, |known| known.undone),
                    closings: path.closings,
                    probes: path.probes,
                    cwnd_seconds: cwnd_seconds / mtu,
                },
            }
        };
        self.paths.iter().zip(counted).enumerate().map(state).collect()
    }

    /// What of a flow has arrived on each path.
    pub(crate) fn arrivals(&self, inner: &Inner) -> Vec<PathArrivals> {
        let counted = self.counted.chunks(self.paths.len().max(1)).nth(inner.number as usize).unwrap_or_default();
        counted.iter().map(|counted| counted.arrivals).collect()
    }

    fn state(&self, index: usize) -> PathState {
        let Some(path) = self.paths.get(index) else { return PathState::default() };
        let rtt = path.heartbeat.rtt();
        PathState {
            is_verified: true,
            is_alive: path.heartbeat.is_alive(),
            is_standby: false,
            allowance: u64::MAX,
            overhead: OVERHEAD,
            mtu: self.config.mtu,
            rate: path.rate,
            delay: path.delay,
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            answered_at: path.heartbeat.answered_at(),
            heard_at: self.reporter.heard_at(id_of(index)),
        }
    }

    /// Tells the sender what its paths are like now.
    fn sync(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        for index in 0..self.paths.len() {
            let state = self.state(index);
            self.sender.set_path(id_of(index), state);
        }
    }

    fn refresh(&mut self) {
        self.sync();
        self.order = self.sender.reordering();
    }

    /// A program's packet came or went.
    fn traffic(&mut self, now: Instant) {
        self.paths.iter_mut().for_each(|path| path.heartbeat.traffic(now));
    }

    /// What windows and paces allow, and the reports that are due.
    fn settle(&mut self, now: Instant) {
        self.sync();
        while let Some(dispatch) = self.sender.poll_transmit(now) {
            self.leave(now, dispatch);
        }
        self.report(now);
    }

    fn report(&mut self, now: Instant) {
        let is_due = |index| self.reporter.poll_timeout(id_of(index)).is_some_and(|due| due <= now);
        if !(0..self.paths.len()).any(is_due) {
            return;
        }
        let path = |(index, path): (usize, &EndPath)| {
            let id = id_of(index);
            let srtt = self.sender.srtt(id).or(path.heartbeat.rtt().srtt());
            ReportingPath { id, is_verified: true, srtt, least: path.heartbeat.rtt().min() }
        };
        let active: Vec<ReportingPath> = self.paths.iter().enumerate().map(path).collect();
        while let Some((on, reports)) = self.reporter.poll_report(now, &active, &[]) {
            let bytes = multipath::message_len(reports.iter().map(|(_, report)| report));
            self.send_control(now, on.0.into(), bytes, false, Content::Reports(reports));
        }
    }

    fn leave(&mut self, now: Instant, dispatch: Dispatch<Inside>) {
        let index = usize::from(dispatch.path.0);
        let number = self.next_number(now, index);
        let packet = &dispatch.packet;
        let outer = Outer {
            path: dispatch.path.0 as u8,
            number,
            wire: packet.wire,
            content: Content::Data(packet.payload.clone(), packet.number, packet.copy, packet.mark()),
        };
        let is_again = packet.retransmissions > 0 || packet.rescues > 0;
        if !packet.payload.packet.flags.has(Flags::ACK)
            && let Some(flow) = packet.meta.flow
            && let Some(counted) = self.counted.get_mut(place_of(self.end, flow) * self.paths.len() + index)
        {
            counted.sent += 1;
            counted.retransmissions += u64::from(is_again);
        }
        self.out.push(outer);
        self.sender.on_sent(now, dispatch, number);
    }

    /// Sends a message of the host's own, which waits for nothing.
    fn send_control(&mut self, now: Instant, index: usize, len: usize, is_in_flight: bool, content: Content) {
        let number = self.next_number(now, index);
        let wire = OVERHEAD.wire(len);
        self.out.push(Outer { path: index as u8, number, wire, content });
        self.sender.on_control_sent(now, id_of(index), number, wire, is_in_flight);
    }

    /// The number of the next packet of a path; one in some is passed over.
    fn next_number(&mut self, now: Instant, index: usize) -> u32 {
        let skips = !self.config.rates_configured && self.rng.below(SKIPPED.into()) == 0;
        let Some(path) = self.paths.get_mut(index) else { return 0 };
        if skips {
            path.sent += 1;
            self.sender.on_skipped(now, id_of(index), path.sent);
        }
        path.sent += 1;
        path.sent
    }

    /// Losses by age, and paths that are silent.
    fn watch(&mut self, now: Instant) {
        self.sync();
        for event in self.sender.handle_timeout(now) {
            self.is_told = false;
            match event {
                PathEvent::Probe(id) => {
                    if let Some(path) = self.paths.get_mut(usize::from(id.0)) {
                        path.heartbeat.hurry(now);
                    }
                }
                PathEvent::Dead(id) => {
                    if let Some(path) = self.paths.get_mut(usize::from(id.0)) {
                        path.heartbeat.kill(now);
                    }
                    self.on_path_dead(now, id);
                }
            }
        }
    }

    /// Sends the heartbeats that are due.
    fn beat(&mut self, now: Instant) {
        let mut dead = Vec::new();
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index).filter(|path| path.heartbeat.poll_timeout() <= now) else {
                continue;
            };
            path.heartbeat.delivered(self.sender.delivered_at(id_of(index)).unwrap_or_default());
            let nonce = self.rng.next_u64();
            self.is_told = false;
            let Some(change) = path.heartbeat.handle_timeout(now, nonce) else { continue };
            path.probes += u64::from(!path.heartbeat.is_alive());
            self.send_control(now, index, HEARTBEAT, true, Content::Heartbeat { nonce, is_answer: false });
            if change == Some(Change::Died) {
                dead.push(id_of(index));
            }
        }
        for id in dead {
            self.on_path_dead(now, id);
        }
    }

    fn on_path_dead(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.paths.get_mut(usize::from(id.0)) {
            path.closings += 1;
        }
        self.sender.on_path_dead(now, id);
        self.refresh();
    }

    /// A heartbeat was answered.
    fn answered(&mut self, now: Instant, index: usize, nonce: u64) {
        let Some(path) = self.paths.get_mut(index) else { return };
        let change = path.heartbeat.answered(now, nonce);
        self.is_told = false;
        self.sender.on_heartbeat(now, id_of(index), path.heartbeat.rtt());
        if change == Some(Change::Revived) {
            self.sender.on_path_alive(now, id_of(index));
        }
        self.refresh();
    }

    /// The place of data in their TCP, which is all the order there is where the sender gives no numbers.
    fn place_in_tcp(&self, inner: &Inner, id: PathId, packet: &Packet) -> Option<Position> {
        let Kind::Tcp { mss, headers } = inner.kind else { return None };
        if !self.config.rates_configured || packet.flags.has(Flags::ACK) {
            return None;
        }
        let position = expand(packet.position, *self.high.get(inner.number as usize)?);
        let (sequence, length) = sequence((mss, headers), position, packet);
        let role = if position == 0 { Role::Start } else { Role::InSequence };
        Some(Position { path: id.0, sequence, length, role })
    }

    fn count_arrival(&mut self, inner: &Inner, index: usize, wire: usize, packet: &Packet) {
        let number = inner.number as usize;
        let Some(high) = self.high.get_mut(number).filter(|_| !packet.flags.has(Flags::ACK)) else { return };
        let position = expand(packet.position, *high);
        let is_late = position < *high;
        *high = (*high).max(position + 1);
        let Some(counted) = self.counted.get_mut(number * self.paths.len() + index) else { return };
        let arrivals = &mut counted.arrivals;
        arrivals.packets += 1;
        arrivals.new += 1;
        arrivals.bytes += wire as u64;
        arrivals.reordered += u64::from(is_late && !packet.flags.has(Flags::RETRANSMISSION));
    }

    /// Windows may have changed.
    fn note_windows(&mut self, now: Instant) {
        for (index, path) in self.paths.iter_mut().enumerate() {
            path.cwnd_seconds += path.cwnd * now.saturating_since(path.since).as_secs_f64();
            path.since = now;
            path.cwnd = self.sender.path_statistics(id_of(index)).map_or(0.0, |known| known.cwnd);
        }
    }
}

/// Paths are numbered as the scenario gives them.
fn id_of(index: usize) -> PathId {
    PathId(index as u16)
}

/// The place of a flow among those of the association.
fn place_of(end: usize, flow: FlowId) -> usize {
    let (low, high) = if end == 0 { (flow.local, flow.remote) } else { (flow.remote, flow.local) };
    usize::from(high) << 16 | usize::from(low)
}

/// Without blocks: they are kept apart while it is inside.
pub(crate) fn bare(packet: Packet) -> Packet {
    Packet { blocks: if packet.flags.has(Flags::ACK) { NO_BLOCKS } else { packet.blocks }, ..packet }
}

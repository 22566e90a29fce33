//! One peer: its paths, its flows, and what waits until there is a path.

use crate::config::{PeerConfig, WedgeConfig};
use crate::flows::{Family, Flows, Order};
use crate::labels::{Announced, Assigned};
use crate::memory::Share;
use crate::packet::Packet;
use crate::path::Path;
use crate::payload::Payload;
use crate::policy::PeerPolicies;
use crate::status::{Counters, PathStatus, PeerStatus};
use crate::wedge::TimerKind;
use crate::window_clamp::Connections;
use crate::{Transmit, WedgeEvent};
use clock::{Duration, Instant};
use multipath::{Change, Copies, Feedback, FlowId, Number, QueuedPacket, Reordering, Reporter, Sender};
use rand_core::CryptoRng;
use scheduler::{PathId, PathScheduler as _, Scheduler};
use std::collections::VecDeque;
use wire::ip::protocol;
use wire::{Hit, Spi};

/// Packets that wait for the base exchange.
const WAITING_PACKETS: usize = 256;
/// They wait for so long: longer than a base exchange of which two packets are lost. Who sent an older one has given it up,
/// or has sent it again.
const WAITS_FOR: Duration = Duration::from_secs(5);

/// When nothing at all has come back for so long although packets were sent, the peer has forgotten the association.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// A peer.
pub(crate) struct PeerState {
    pub config: PeerConfig,
    pub paths: Vec<Path>,
    /// Paths that are to take over from others of the same route.
    pub successors: Vec<Path>,
    /// Paths that others have taken over from, the oldest first.
    pub retired: Vec<Path>,
    /// SPIs of paths that nothing is expected on any more.
    pub forgotten: Vec<Spi>,
    /// Since when the peer may have forgotten the association.
    pub doubt: Option<Instant>,
    /// Until then it has not.
    pub certain_until: Instant,
    /// Bytes that it was found to hold last, and what it may hold.
    pub held: usize,
    pub share: Share,
    /// When it is due, as noted in the index of all peers.
    pub due: Option<(Instant, TimerKind)>,
    pub flows: Flows,
    /// What holds for some of them.
    pub policies: PeerPolicies,
    /// The TCP connections of programs.
    pub connections: Connections,
    /// What waits for a path, and since when.
    waiting: VecDeque<(Instant, Payload)>,
    /// How long packets that have come wait for others.
    pub order: Reordering,
    /// What has come from it, path by path.
    pub reporter: Reporter,
    /// Which of the packets have come that it sends on several paths.
    pub copies: Copies,
    /// It can send headers in short, and so its flows are assigned labels.
    pub takes_labels: bool,
    /// It has short numbers.
    pub short_numbers: bool,
    /// The labels of flows that come from it.
    pub assigned: Assigned,
    /// The labels of flows that go to it.
    pub announced: Announced,
    /// Since when packets were sent and nothing came back.
    pub(crate) silent_since: Option<Instant>,
    /// Since when there is an association, if there is one.
    pub(crate) since: Option<Instant>,
    /// When a program's packet came or went last, or the association began.
    pub(crate) used_at: Instant,
    /// It goes when it was not used for so long: it is a guest.
    pub(crate) idle: Option<Duration>,
    /// The place is nobody's.
    pub(crate) is_vacant: bool,
    /// It has answered a heartbeat in this association.
    echoes: bool,
    /// Packets may have copies, whose numbers take room.
    pub has_copies: bool,
    /// What goes to it.
    pub sender: Sender<Payload>,
}

impl PeerState {
    /// Without an association.
    pub(crate) fn new(config: PeerConfig, scheduler: Scheduler) -> Self {
        Self {
            config,
            paths: Vec::new(),
            successors: Vec::new(),
            retired: Vec::new(),
            forgotten: Vec::new(),
            doubt: None,
            certain_until: Instant::ZERO,
            held: 0,
            share: Share::default(),
            due: None,
            flows: Flows::new(Share::default().flows()),
            policies: PeerPolicies::default(),
            connections: Connections::default(),
            waiting: VecDeque::new(),
            order: Reordering::default(),
            reporter: Reporter::default(),
            copies: Copies::default(),
            takes_labels: false,
            short_numbers: false,
            assigned: Assigned::default(),
            announced: Announced::default(),
            silent_since: None,
            since: None,
            used_at: Instant::ZERO,
            idle: None,
            is_vacant: false,
            echoes: false,
            has_copies: scheduler.needs().copies,
            sender: Sender::new(Feedback::None, WedgeConfig::default_congestion()).with_scheduler(scheduler),
        }
    }

    /// Whether the peer reports what arrives.
    pub(crate) fn gives_feedback(&self) -> bool {
        self.sender.feedback() == Feedback::Reports
    }

    /// Whether there is a path to send data on.
    pub(crate) fn is_reachable(&self) -> bool {
        self.paths.iter().any(|path| path.verified)
    }

    /// The path of this number.
    pub(crate) fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.id == id)
    }

    /// A packet of a flow arrived on a path; appends to `out` what is to be delivered now. How many holes were given up for
    /// want of memory.
    pub(crate) fn inbound(
        &mut self,
        now: Instant,
        key: FlowId,
        (path, number): (PathId, Option<Number>),
        (packet, bare_ack): (Packet, Option<u32>),
        out: &mut Vec<(Family, Packet)>,
    ) -> u64 {
        let order = match number {
            Some(number) => Order::Numbered(number),
            None if self.gives_feedback() => Order::AsTheyCome,
            None => Order::OfTcp,
        };
        self.flows.inbound(now, key, path, packet, (order, &self.order), out);
        let until = bare_ack.and_then(|ack| self.sender.holds_acknowledgment(now, key, ack));
        self.flows.bunch(key, until, out);
        self.flows.relieve(out)
    }

    /// Keeps a packet until there is a path; false if another had to go for it, or it itself. The oldest goes: what a TCP sends
    /// last is what it has lost, and everything else waits for that. What was in flight when an association ended stays, for
    /// the peer may have nothing older.
    pub(crate) fn wait(&mut self, now: Instant, payload: Payload) -> bool {
        let waiting = self.waiting.len();
        if waiting == WAITING_PACKETS {
            self.waiting.pop_front();
        }
        if waiting <= WAITING_PACKETS {
            self.waiting.push_back((now, payload));
        }
        waiting < WAITING_PACKETS
    }

    /// Packets that may be kept from one association to the next.
    pub(crate) const KEPT_PACKETS: usize = 2048;

    /// Puts a packet before those that wait.
    pub(crate) fn wait_first(&mut self, now: Instant, payload: Payload) {
        self.waiting.push_front((now, payload));
    }

    /// When it has to be looked after, and why.
    pub(crate) fn next_deadline(&mut self) -> Option<(Instant, TimerKind)> {
        self.sync();
        let paths = self.paths.iter().filter(|path| path.verified);
        let beats = paths.clone().map(|path| (path.heartbeat.poll_timeout(), TimerKind::Heartbeat));
        let probes = paths.clone().filter(|path| path.answers()).map(|path| path.mtu.poll_timeout());
        let probes = probes.filter(|at| *at < Instant::FAR_FUTURE).map(|at| (at, TimerKind::Heartbeat));
        let reports = paths.filter_map(|path| self.reporter.poll_timeout(path.id)).map(|at| (at, TimerKind::Feedback));
        let pacing = [self.sender.poll_pacing(), self.sender.poll_queues()].into_iter().flatten();
        let pacing = pacing.map(|at| (at, TimerKind::Pacing));
        let silence = self.sender.poll_timeout().map(|at| (at, TimerKind::Feedback));
        let flows = self.flows.poll_timeout().map(|at| (at, TimerKind::Resequencing));
        let doubt = self.doubt_deadline().map(|at| (at, TimerKind::Heartbeat));
        let idle = self.idle_deadline().map(|at| (at, TimerKind::Heartbeat));
        let retired = self.retirement_deadline().map(|at| (at, TimerKind::Feedback));
        beats
            .chain(probes)
            .chain(reports)
            .chain(pacing)
            .chain(flows)
            .chain(doubt)
            .chain(idle)
            .chain(retired)
            .chain(silence)
            .min()
    }

    /// What waits for a path.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Payload> {
        self.waiting.iter().map(|(_, payload)| payload)
    }

    /// Takes what waits for a path.
    pub(crate) fn take_waiting(&mut self) -> impl Iterator<Item = Payload> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, payload)| payload)
    }

    /// Drops what has waited for too long; how many packets.
    pub(crate) fn give_up_waiting(&mut self, now: Instant) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|(since, _)| now - *since <= WAITS_FOR);
        (before - self.waiting.len()) as u64
    }

    /// Does what is due: heartbeats, packets of the queues, and what has waited long enough to be delivered is left to
    /// the caller.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        own: Hit,
        counters: &mut Counters,
        events: &mut VecDeque<WedgeEvent>,
        out: &mut Vec<Transmit>,
    ) -> Vec<QueuedPacket<Payload>> {
        let hits = (own.address(), self.config.hit.address());
        let gives_feedback = self.gives_feedback();
        let mut stranded = Vec::new();
        let mut dead = Vec::new();
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get_mut(index).filter(|path| path.verified) else { continue };
            if path.heartbeat.poll_timeout() > now {
                continue;
            }
            path.heartbeat.delivered(self.sender.delivered_at(path.id).unwrap_or_default());
            let asks_natively = self.look_at_native(now, index);
            let Some(path) = self.paths.get_mut(index) else { continue };
            let nonce = rng.next_u64();
            let Some(change) = path.heartbeat.handle_timeout(now, nonce) else { continue };
            counters.heartbeats_out += 1;
            let (id, name, route) = (path.id, path.name.clone(), path.route);
            let usual = path.outbound.numbers();
            if !gives_feedback {
                path.try_numbers();
            }
            if let Some(message) = path.question(nonce, hits, 0) {
                // It fails but for an SA that is used up, and that is counted where data meets it.
                let _ = self.send_control(now, id, (protocol::ICMPV6, &message), true, rng, out);
            }
            if let Some(path) = self.paths.get_mut(index) {
                path.outbound.count_in(usual);
            }
            if asks_natively {
                self.ask_natively(now, rng, (hits, id), out);
            }
            if change == Some(Change::Died) {
                dead.push(id);
                stranded.extend(self.sender.take_queue(id));
                events.push_back(WedgeEvent::PathDead { peer: self.config.name.clone(), path: id, name, route });
            }
        }
        for id in dead {
            self.on_path_dead(now, id);
        }
        self.probe(now, rng, hits, counters, out);
        self.tell_mtus(events);
        self.count(counters);
        stranded
    }

    /// An answer to a heartbeat came on a path.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        id: PathId,
        nonce: u64,
        counters: &mut Counters,
        events: &mut VecDeque<WedgeEvent>,
    ) {
        if self.probe_answered(now, id, nonce, counters) || self.native_answered(now, id, nonce) {
            return;
        }
        let gives_feedback = self.gives_feedback();
        let Some(path) = self.path_mut(id) else { return };
        counters.heartbeats_answered += 1;
        let asked = path.heartbeat.is_asked(nonce);
        path.credit.is_proven |= asked;
        if asked && gives_feedback {
            // Before, no more may go there than a multiple of what has come, and others answer as they like.
            path.mtu.begin(now);
        }
        let change = path.heartbeat.answered(now, nonce);
        let (name, route) = (path.name.clone(), path.route);
        self.echoes |= asked;
        self.on_heartbeat(now, id);
        let Some(path) = self.path_mut(id) else { return };
        if change == Some(Change::Revived) {
            path.standby = false;
            self.sender.on_path_alive(now, id);
            self.count(counters);
            events.push_back(WedgeEvent::PathAlive { peer: self.config.name.clone(), path: id, name, route });
        }
        self.refresh(now);
    }

    /// Something authentic came from the peer.
    pub(crate) fn heard(&mut self) {
        self.silent_since = None;
    }

    /// A program's packet came or went. Heartbeats and reports are none, or two hosts would keep each other busy with
    /// nothing else.
    pub(crate) fn traffic(&mut self, now: Instant) {
        self.used_at = now;
        for path in &mut self.paths {
            path.heartbeat.traffic(now);
        }
    }

    /// Whether the peer seems to have forgotten the association.
    pub(crate) fn is_lost(&self, now: Instant) -> bool {
        let none_alive = !self.paths.is_empty() && !self.paths.iter().any(|path| path.heartbeat.is_alive());
        none_alive && self.silent_since.is_some_and(|since| now - since >= GIVE_UP_AFTER)
    }

    /// Looks again at which paths there are and how they differ.
    pub(crate) fn refresh(&mut self, now: Instant) {
        let answers = self.echoes || self.gives_feedback();
        self.paths.iter_mut().for_each(|path| path.credit.applies = answers);
        self.bar_paths();
        self.choose_backups(now);
        self.sync();
        self.order = self.sender.reordering();
    }

    /// Forgets paths and flows' state that belongs to an association.
    pub(crate) fn disassociate(&mut self) -> Vec<Path> {
        self.silent_since = None;
        self.since = None;
        self.doubt = None;
        self.sender.restart(Feedback::None, WedgeConfig::default_congestion());
        self.echoes = false;
        self.reporter = Reporter::default();
        self.order.alive.clear();
        let mut all = std::mem::take(&mut self.paths);
        all.append(&mut self.successors);
        all.append(&mut self.retired);
        all
    }

    /// A snapshot.
    pub(crate) fn status(&self, now: Instant, identity: String, state: String) -> PeerStatus {
        let (waiting, statistics) = (&self.flows.resequencing, self.flows.resequencing.statistics());
        let feedback = self.sender.feedback();
        PeerStatus {
            name: self.config.name.clone(),
            hit: self.config.hit.to_string(),
            lsi: self.config.lsi.to_string(),
            identity,
            state,
            age_s: self.since.map(|since| now.saturating_since(since).as_secs_f64()),
            flows: self.flows.len(),
            held_packets: waiting.packets(),
            held_bytes: waiting.bytes(),
            memory: self.held_bytes(),
            resequenced: statistics.held,
            proven_losses: statistics.proven_losses,
            expired_holes: statistics.expired,
            feedback: self.gives_feedback(),
            snooped: (feedback == Feedback::Snooping).then(|| self.sender.snooped_segments()),
            congestion: (feedback != Feedback::None).then(|| self.sender.rule().to_owned()),
            scheduler: self.sender.scheduler().to_owned(),
            send_buffer: (feedback != Feedback::None).then(|| self.buffer_status()),
            paths: self.paths.iter().map(|path| self.path_status(path)).collect(),
        }
    }

    fn path_status(&self, path: &Path) -> PathStatus {
        PathStatus {
            srtt_ms: self.srtt(path).map(|srtt| srtt.as_secs_f64() * 1e3),
            queued: self.sender.queued(path.id),
            measured: self.measured(path.id),
            ..path.status()
        }
    }
}

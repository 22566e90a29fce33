//! One peer: its paths, its flows, and what waits until there is a path.

use crate::braid::{Braid, TOLD};
use crate::config::PeerConfig;
use crate::connections::Connections;
use crate::flows::{Family, Flows, Order, Reordering};
use crate::heartbeat::Change;
use crate::memory::Share;
use crate::path::Path;
use crate::payload::Payload;
use crate::status::{Counters, PathStatus, PeerStatus};
use crate::wedge::TimerKind;
use crate::{Transmit, WedgeEvent};
use clock::{Duration, Instant};
use multipath::{Ecn, FlowId, Kind, Number, QueuedPacket, Snooping};
use rand_core::CryptoRng;
use scheduler::{Decision, FastestPathFirst, PacketMeta, PathId, PathScheduler, PathView};
use std::collections::VecDeque;
use wire::{Hit, Spi};

/// What may wait for the paths, as time: more is dropped, which tells the TCP inside that it has reached their sum. Half
/// of the least retransmission timer of common TCPs, so that waiting alone never expires it.
const LONGEST_QUEUE: Duration = Duration::from_millis(100);
/// And at least so many bytes, for paths slower than ten packets in that time.
const LEAST_QUEUE: u64 = 16_000;
/// Packets that wait for the base exchange.
const WAITING_PACKETS: usize = 256;

/// Besides the difference of the paths, how much longer a packet that arrived early waits for those before it: bursts
/// and late timers.
const SLACK: Duration = Duration::from_millis(15);
/// The longest it waits. Together with [`LONGEST_QUEUE`] below the least retransmission timer.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// The same where lost packets come again. Nothing of a peer is kept from programs for longer.
pub(crate) const LONGEST_REPAIR: Duration = Duration::from_millis(400);
/// What waits for others fits in here, per flow.
const HELD_BYTES: usize = 8 << 20;

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
    /// The TCP connections of programs.
    pub connections: Connections,
    pub(crate) scheduler: FastestPathFirst,
    pub(crate) views: Vec<PathView>,
    waiting: VecDeque<Payload>,
    /// Numbers of the paths on which packets may be under way to us.
    pub alive: Vec<u16>,
    pub hold: Duration,
    /// How long a packet that is lost may take to come again.
    repair: Duration,
    /// Since when packets were sent and nothing came back.
    pub(crate) silent_since: Option<Instant>,
    /// It has answered a heartbeat in this association.
    echoes: bool,
    /// Where the peer gives feedback.
    pub braid: Option<Box<Braid>>,
}

impl PeerState {
    /// Without an association.
    pub(crate) fn new(config: PeerConfig) -> Self {
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
            flows: Flows::new(),
            connections: Connections::default(),
            scheduler: FastestPathFirst::default(),
            views: Vec::new(),
            waiting: VecDeque::new(),
            alive: Vec::new(),
            hold: Duration::ZERO,
            repair: Duration::ZERO,
            silent_since: None,
            echoes: false,
            braid: None,
        }
    }

    /// Whether the peer reports what arrives.
    pub(crate) fn gives_feedback(&self) -> bool {
        self.braid.as_ref().is_some_and(|braid| braid.snoop.is_none())
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
        packet: Vec<u8>,
        out: &mut Vec<(Family, Vec<u8>)>,
    ) -> u64 {
        let order = match (number, &self.braid) {
            (Some(number), _) => Order::Numbered(number),
            (None, Some(braid)) if braid.snoop.is_none() => Order::AsTheyCome,
            (None, _) => Order::OfTcp,
        };
        let reordering =
            Reordering { order, hold: self.hold, repair: self.repair, alive: &self.alive, capacity: HELD_BYTES };
        self.flows.inbound(now, key, path, packet, reordering, out);
        self.flows.relieve(self.share.flows(), out)
    }

    /// Keeps a packet until there is a path; false if there are too many.
    pub(crate) fn wait(&mut self, payload: Payload) -> bool {
        let fits = self.waiting.len() < WAITING_PACKETS;
        if fits {
            self.waiting.push_back(payload);
        }
        fits
    }

    /// Packets that may be kept from one association to the next.
    pub(crate) const KEPT_PACKETS: usize = 2048;

    /// Puts a packet before those that wait.
    pub(crate) fn wait_first(&mut self, payload: Payload) {
        self.waiting.push_front(payload);
    }

    /// When it has to be looked after, and why.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, TimerKind)> {
        let paths = self.paths.iter().filter(|path| path.verified);
        let beats = paths.clone().map(|path| (path.heartbeat.poll_timeout(), TimerKind::Heartbeat));
        let pacing = paths.filter_map(|path| Some((path.queue_deadline()?, TimerKind::Pacing)));
        let flows = self.flows.poll_timeout().map(|at| (at, TimerKind::Resequencing));
        let doubt = self.doubt_deadline().map(|at| (at, TimerKind::Heartbeat));
        let retired = self.retirement_deadline().map(|at| (at, TimerKind::Feedback));
        beats.chain(pacing).chain(flows).chain(doubt).chain(retired).chain(self.poll_timeout()).min()
    }

    /// What waits for a path.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Payload> {
        self.waiting.iter()
    }

    /// Takes what waits for a path.
    pub(crate) fn take_waiting(&mut self) -> VecDeque<Payload> {
        std::mem::take(&mut self.waiting)
    }

    /// Gives a packet to a path: to its queue, or where nothing may come before it, out.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        ecn: Ecn,
        payload: Payload,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        // Where only that may be sent which was heard three times, all waits in one queue.
        let meta = payload.meta(ecn, &mut self.connections);
        let wire = self.paths.first().map_or(0, |path| path.wire_len(meta.len));
        let has_credit = self.paths.iter().any(|path| path.verified && path.credit.allows(wire));
        let urgent = has_credit
            && meta.is_urgent
            && !self.braid.as_mut().is_some_and(|braid| braid.snoop.is_none() && braid.is_starved(now));
        let snooping = self.braid.as_ref().is_some_and(|braid| braid.snoop.is_some());
        // Of what is not TCP nothing is heard without feedback, so no window could tell when to send it.
        if !urgent && self.braid.is_some() && (!snooping || meta.is_tcp()) {
            self.silent_since.get_or_insert(now);
            for path in &mut self.paths {
                path.heartbeat.traffic(now);
            }
            return self.hold(now, QueuedPacket::new(meta, payload, wire));
        }
        if !urgent && self.queue_is_full() {
            counters.queue_full += 1;
            return;
        }
        self.silent_since.get_or_insert(now);
        // Where no path answers, there is nothing to lose by trying: the peer may be one that answers no echoes.
        let any_alive = self.paths.iter().any(Path::is_usable);
        self.views.clear();
        let windows = self.braid.as_ref().map(|braid| &braid.windows);
        self.views.extend(self.paths.iter().map(|path| {
            let is_open = if any_alive { path.is_usable() } else { path.verified };
            let may = !urgent || path.credit.allows(wire) && path.has_room_beyond(windows);
            path.view(is_open && may, urgent, now)
        }));
        let Decision::Send(id) =
            self.scheduler.select(&PacketMeta { len: wire, ..PacketMeta::default() }, &self.views, now)
        else {
            *(if self.is_reachable() { &mut counters.queue_full } else { &mut counters.no_association }) += 1;
            return;
        };
        for path in &mut self.paths {
            path.heartbeat.traffic(now);
        }
        let Some(path) = self.path_mut(id) else { return };
        if urgent {
            if path.pacer.clear_at() > now + LONGEST_QUEUE {
                counters.queue_full += 1;
            } else if path.send_now(now, payload.next_header, payload.bytes(), Kind::InFlight, rng, out).is_err() {
                counters.exhausted += 1;
            }
            return;
        }
        let wire = path.wire_len(meta.len);
        path.pacer.push(QueuedPacket::new(meta, payload, wire));
        if path.release(now, rng, out).is_err() {
            counters.exhausted += 1;
        }
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
        let mut stranded = Vec::new();
        let mut changed = false;
        let mut dead = Vec::new();
        for (index, path) in self.paths.iter_mut().enumerate().filter(|(_, path)| path.verified) {
            if path.heartbeat.poll_timeout() > now {
                continue;
            }
            let nonce = rng.next_u64();
            let Some(change) = path.heartbeat.handle_timeout(now, nonce) else { continue };
            counters.heartbeats_out += 1;
            path.beat(now, nonce, hits, rng, out);
            if change == Some(Change::Died) {
                changed = true;
                dead.push(index);
                stranded.extend(path.pacer.take());
                events.push_back(WedgeEvent::PathDead {
                    peer: self.config.name.clone(),
                    path: path.id,
                    name: path.name.clone(),
                    route: path.route,
                });
            }
        }
        for index in dead {
            self.path_died(now, index, counters);
        }
        if changed {
            self.refresh();
        }
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
        let Some(path) = self.path_mut(id) else { return };
        counters.heartbeats_answered += 1;
        let asked = path.heartbeat.is_asked(nonce);
        path.credit.is_proven |= asked;
        let change = path.heartbeat.answered(now, nonce);
        let (name, route) = (path.name.clone(), path.route);
        self.echoes |= asked;
        self.beaten(now, id);
        let Some(path) = self.path_mut(id) else { return };
        if change == Some(Change::Revived) {
            path.standby = false;
            self.raise(now, id, counters);
            events.push_back(WedgeEvent::PathAlive { peer: self.config.name.clone(), path: id, name, route });
        }
        self.refresh();
    }

    /// Something authentic came from the peer.
    pub(crate) fn heard(&mut self) {
        self.silent_since = None;
    }

    /// A program's packet came or went. Heartbeats and reports are none, or two hosts would keep each other busy with
    /// nothing else.
    pub(crate) fn traffic(&mut self, now: Instant) {
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
    pub(crate) fn refresh(&mut self) {
        let answers = self.echoes || self.gives_feedback();
        self.paths.iter_mut().for_each(|path| path.credit.applies = answers);
        self.choose_backups();
        let any_alive = self.paths.iter().any(Path::is_usable);
        let in_use = || self.paths.iter().filter(|path| !any_alive || path.is_usable());
        // The peer may see less, or more, than this host does, and send on a backup.
        self.alive = self.paths.iter().filter(|path| !any_alive || path.answers()).map(|path| path.id.0).collect();
        // What left on old keys may still come.
        self.alive.extend(self.retired.iter().map(|path| path.id.0));
        // A path's round-trip time bounds what is between it and another one-way, however unequal its directions are.
        let remote = |path: &Path| path.control.as_ref().map_or(Duration::ZERO, |control| control.sent.remote_rtt());
        let rtt = |path: &Path| path.srtt().unwrap_or(path.way.delay * 2).max(remote(path));
        let longest = in_use().map(rtt).max().unwrap_or_default();
        let shortest = in_use().map(rtt).min().unwrap_or_default();
        let variation = in_use().filter_map(|path| path.heartbeat.rtt().rttvar()).max().unwrap_or_default();
        self.hold = longest - shortest + variation * 4 + SLACK;
        self.repair = Duration::ZERO;
        if self.gives_feedback() {
            // A loss is told when the next packet of its path arrives, and sent again on the fastest.
            self.repair = ((longest + shortest) / 2 + SLACK).min(LONGEST_REPAIR);
            self.hold = (self.hold + self.repair).min(LONGEST_REPAIR);
        } else {
            self.hold = self.hold.min(LONGEST_HOLD);
        }
    }

    /// Forgets paths and flows' state that belongs to an association.
    pub(crate) fn disassociate(&mut self) -> Vec<Path> {
        self.silent_since = None;
        self.doubt = None;
        self.braid = None;
        self.echoes = false;
        self.alive.clear();
        let mut all = std::mem::take(&mut self.paths);
        all.append(&mut self.successors);
        all.append(&mut self.retired);
        all
    }

    /// A snapshot.
    pub(crate) fn status(&self, state: String) -> PeerStatus {
        let statistics = self.flows.statistics();
        let (held_packets, held_bytes) = self.flows.waiting();
        PeerStatus {
            name: self.config.name.clone(),
            hit: self.config.hit.to_string(),
            lsi: self.config.lsi.to_string(),
            state,
            flows: self.flows.len(),
            held_packets,
            held_bytes,
            memory: self.held_bytes(),
            resequenced: statistics.held,
            proven_losses: statistics.proven_losses,
            expired_holes: statistics.expired,
            feedback: self.gives_feedback(),
            snooped: self.braid.as_ref().and_then(|braid| braid.snoop.as_ref()).map(Snooping::segments),
            congestion: self.braid.as_ref().map(|braid| braid.windows.rule().to_owned()),
            holding: self.braid.as_ref().map(|braid| braid.status()),
            paths: self
                .paths
                .iter()
                .map(|path| PathStatus { measured: self.measured(path), ..path.status() })
                .collect(),
        }
    }

    fn queue_is_full(&self) -> bool {
        let (queued, limit) = self.queue();
        queued >= limit
    }

    /// What a TCP may have waiting in the queues of paths more than there is; less if it is negative.
    pub(crate) fn room(&self) -> i64 {
        let (queued, limit) = self.queue();
        (limit as f64 * TOLD) as i64 - queued as i64
    }

    /// What waits in the queues of paths, and what may, in bytes.
    fn queue(&self) -> (u64, u64) {
        let any_alive = self.paths.iter().any(Path::is_usable);
        let in_use = || self.paths.iter().filter(|path| if any_alive { path.is_usable() } else { path.verified });
        let queued: usize = in_use().map(|path| path.pacer.queued()).sum();
        let rate: u64 = in_use().map(|path| path.pacer.rate()).fold(0, u64::saturating_add);
        let limit = (rate as f64 / 8.0 * LONGEST_QUEUE.as_secs_f64()) as u64;
        (queued as u64, limit.max(LEAST_QUEUE))
    }
}

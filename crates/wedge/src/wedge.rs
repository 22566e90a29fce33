//! The host: its peers, the way in and the way out, and what drives them.

use crate::config::{LocalPath, PeerConfig, WedgeConfig};
use crate::event::WedgeEvent;
use crate::native_esp::NativeEsp;
use crate::numbers;
use crate::packet::Packet;
use crate::path::{Credit, Path, Traffic, outer_header, overhead};
use crate::path_mtu::LEAST_V6;
use crate::peer::PeerState;
use crate::policy::Policy;
use crate::status::{Counters, IdentityStatus, Status};
use crate::{Datagram, Ecn, Protocol, Transmit};
use clock::Instant;
use hip::esp::Numbers;
use hip::feedback::Features;
use hip::identity::HostIdentity;
use hip::{Host, HostError, Peer, Route};
use multipath::{Heartbeat, PathMtu};
use rand_core::CryptoRng;
use scheduler::{PathId, PathScheduler};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use wire::esp::{Encapsulated, classify, emit_hip_in_udp};
use wire::ip::{V4_HEADER, V6_HEADER};
use wire::{Hit, Lsi, Spi};

/// Why a wedge or a peer was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WedgeError {
    /// The association side refused its configuration.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Every path needs an address of its own.
    #[error("the paths {0} and {1} have the same address; give each its own, or leave one out")]
    SameAddress(String, String),
    /// A rate of zero.
    #[error("the rate of path {0} is zero; give what its link carries")]
    NoRate(String),
    /// The paths' MTU leaves no room.
    #[error("the MTU of path {0} leaves no room for packets; 576 is the least that makes sense")]
    NoRoom(String),
}

/// Why [`Wedge::handle_timeout`] wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// The association side: see [`hip::TimerKind`].
    Control(hip::TimerKind),
    /// A packet may leave on its path.
    Pacing,
    /// A path's heartbeat is due.
    Heartbeat,
    /// A packet has waited long enough for those before it.
    Resequencing,
    /// A report is due, or one from the peer is overdue.
    Feedback,
}

/// A host with all its associations and the packets that pass through them.
pub struct Wedge {
    pub(crate) config: WedgeConfig,
    /// Those of the configuration, for all peers to share.
    pub(crate) policies: Arc<[Policy]>,
    pub(crate) host: Host,
    pub(crate) hit: Hit,
    /// The largest inner payload: what follows an IPv6 header without extensions.
    pub(crate) max_payload: usize,
    pub(crate) peers: Vec<PeerState>,
    pub(crate) by_hit: BTreeMap<Hit, usize>,
    pub(crate) by_lsi: BTreeMap<Lsi, usize>,
    pub(crate) by_spi: BTreeMap<Spi, (usize, PathId)>,
    pub(crate) counters: Counters,
    pub(crate) transmit: Vec<Transmit>,
    pub(crate) deliver: Vec<Packet>,
    pub(crate) events: VecDeque<WedgeEvent>,
    /// Bytes that are held for all peers, as counted last.
    pub(crate) held: usize,
    /// Peers by when they are due.
    pub(crate) due: BTreeSet<(Instant, usize)>,
    /// Peers that something was about since they were looked after.
    pub(crate) touched: BTreeSet<usize>,
    /// When the association side is due, and whether that may have changed.
    pub(crate) control_due: Option<(Instant, hip::TimerKind)>,
    pub(crate) host_was_asked: bool,
    /// Where the HIP packet that is being taken came from, and its bytes with the outer headers.
    pub(crate) hip_heard: Option<(Route, usize)>,
    /// The latest time that it was told.
    pub(crate) seen: Instant,
}

impl Wedge {
    /// A host without peers. Paths may come later ([`Wedge::add_path`]).
    ///
    /// # Errors
    /// [`WedgeError`] for a configuration that cannot work.
    pub fn new(identity: HostIdentity, config: WedgeConfig, rng: &mut dyn CryptoRng) -> Result<Self, WedgeError> {
        let max_payload = check(&config)?;
        let (locators, backups, keylog) = (config.locators(), config.backups(), config.keylog);
        let mut hip = config.hip.clone();
        (hip.locators, hip.backups, hip.keylog) = (locators, backups, keylog);
        hip.guests = config.guests.as_ref().map(|guests| {
            let mut admitted = hip::Guests::anybody(guests.lsis.len());
            admitted.hits.clone_from(&guests.hits);
            admitted
        });
        let host = Host::new(identity, hip, rng)?;
        Ok(Self {
            hit: host.hit(),
            policies: config.policies.as_slice().into(),
            config,
            host,
            max_payload,
            peers: Vec::new(),
            by_hit: BTreeMap::new(),
            by_lsi: BTreeMap::new(),
            by_spi: BTreeMap::new(),
            counters: Counters::default(),
            transmit: Vec::new(),
            deliver: Vec::new(),
            events: VecDeque::new(),
            held: 0,
            due: BTreeSet::new(),
            touched: BTreeSet::new(),
            control_due: None,
            host_was_asked: true,
            hip_heard: None,
            seen: Instant::ZERO,
        })
    }

    /// Lets a peer in. One of the same HIT is configured anew and keeps its association.
    pub fn add_peer(&mut self, peer: PeerConfig) {
        self.host_was_asked = true;
        let mut known = Peer::new(peer.hit, peer.locators.iter().map(|locator| locator.address).collect());
        known.routes = peer.routes.iter().map(|route| route.route).collect();
        known.via.clone_from(&peer.via);
        (known.registers, known.may_begin, known.may_register) = (peer.registers, peer.may_begin, peer.may_register);
        self.host.add_peer(self.seen, known);
        let (hit, lsi) = (peer.hit, peer.lsi);
        let index = match self.by_hit.get(&hit).and_then(|index| Some((*index, self.peers.get_mut(*index)?))) {
            Some((index, known)) => {
                self.by_lsi.retain(|_, other| *other != index);
                // A guest that is configured stays.
                (known.config, known.idle) = (peer, None);
                index
            }
            None => {
                let mut new = PeerState::new(peer, self.config.scheduler.clone());
                new.set_policies(&self.policies);
                self.place(new)
            }
        };
        self.by_hit.insert(hit, index);
        self.by_lsi.insert(lsi, index);
        // A peer with which this host registers has something to be done, whatever else happens.
        self.note_control();
    }

    /// Lets a peer in no more. An association with it ends without a word.
    pub fn remove_peer(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        self.host.remove_peer(peer);
        self.drive_host(now, rng);
        if let Some(index) = self.by_hit.get(&peer).copied() {
            self.vacate(index);
        }
        self.settle(now, rng);
    }

    /// A peer gets a place: one that is free, since the others are known by theirs, or a new one.
    pub(crate) fn place(&mut self, mut peer: PeerState) -> usize {
        match self.peers.iter_mut().enumerate().find(|(_, place)| place.is_vacant) {
            Some((index, place)) => {
                (peer.due, peer.held) = (place.due, place.held);
                *place = peer;
                index
            }
            None => {
                self.peers.push(peer);
                self.peers.len() - 1
            }
        }
    }

    /// A place is nobody's any more; what its peer held is free again as soon as that is looked at.
    pub(crate) fn vacate(&mut self, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let mut place = PeerState::new(peer.config.clone(), self.config.scheduler.clone());
        (place.is_vacant, place.due, place.held) = (true, peer.due, peer.held);
        *peer = place;
        self.by_hit.retain(|_, other| *other != index);
        self.by_lsi.retain(|_, other| *other != index);
        self.by_spi.retain(|_, (other, _)| *other != index);
        self.touch(index);
    }

    /// What is to hold for flows from now on, in place of [`WedgeConfig::policies`]. What waits may go by either.
    pub fn set_policies(&mut self, policies: Vec<Policy>) {
        self.policies = policies.as_slice().into();
        self.config.policies = policies;
        for peer in &mut self.peers {
            peer.set_policies(&self.policies);
        }
    }

    /// When a packet to or from a program was last of a peer, as far as that is remembered.
    pub fn last_used(&self, peer: Hit) -> Option<Instant> {
        self.peers.get(*self.by_hit.get(&peer)?)?.flows.last_seen()
    }

    /// Asks who is at these addresses, until [`Wedge::stop_inquiry`]: each answer is a [`WedgeEvent::Discovered`]. See
    /// [`hip::Host::inquire`] for what that proves.
    pub fn inquire(&mut self, now: Instant, rng: &mut dyn CryptoRng, locators: Vec<SocketAddr>) {
        self.note_time(now);
        self.host.inquire(now, rng, locators);
        self.drive_host(now, rng);
        self.settle(now, rng);
    }

    /// Asks there no more.
    pub fn stop_inquiry(&mut self, locators: &[SocketAddr]) {
        self.host_was_asked = true;
        self.host.stop_inquiry(locators);
    }

    /// Begins to associate with a peer, although no program has anything to say to it yet. Nothing happens where there is an
    /// association, or no way to the peer.
    pub fn connect(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        self.note_time(now);
        // Without a way there is nothing to be done.
        let _ = self.host.connect(now, rng, peer);
        self.drive_host(now, rng);
        self.settle(now, rng);
    }

    /// The peers that are registered here, where this host is a rendezvous server, by their names, and where they are.
    pub fn registrations(&self, now: Instant) -> Vec<(String, SocketAddr)> {
        let name = |hit: Hit| {
            self.by_hit.get(&hit).and_then(|index| self.peers.get(*index)).map(|peer| peer.config.name.clone())
        };
        self.host.registrations(now).map(|(hit, place)| (name(hit).unwrap_or_else(|| hit.to_string()), place)).collect()
    }

    /// This host's identity.
    pub fn hit(&self) -> Hit {
        self.hit
    }

    /// The largest IPv6 packet, HIT to HIT, that all paths may carry, and no less than any link of IPv6 (RFC 8200 §5): the MTU of
    /// the TUN device. In bytes. What a path carries is found out later, and told to programs then.
    pub fn tun_mtu(&self) -> u16 {
        u16::try_from((self.max_payload + V6_HEADER).max(LEAST_V6)).unwrap_or(u16::MAX)
    }

    /// The largest IPv4 packet, LSI to LSI, that all paths may carry: the MTU of routes to LSIs. In bytes.
    pub fn lsi_mtu(&self) -> u16 {
        u16::try_from(self.max_payload + V4_HEADER).unwrap_or(u16::MAX)
    }

    /// Takes a batch of IP packets from local programs. They are kept as they are until they have been sent, so their memory
    /// should be no more than they need.
    pub fn handle_application(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) {
        self.note_time(now);
        for packet in packets {
            self.counters.application_in += 1;
            self.outbound(now, rng, packet);
        }
        self.settle(now, rng);
    }

    /// Takes a batch of datagrams from the network.
    pub fn handle_network(&mut self, now: Instant, rng: &mut dyn CryptoRng, datagrams: &[Datagram<'_>]) {
        self.note_time(now);
        for datagram in datagrams {
            self.counters.network_in += 1;
            let (route, way) = (datagram.route, (datagram.route, datagram.protocol));
            match (datagram.protocol, datagram.payload) {
                (Protocol::Hip, packet) => self.inbound_hip(now, rng, route, packet),
                (Protocol::Esp, packet) => self.inbound_esp(now, rng, way, packet, datagram.ecn),
                (Protocol::Udp, content) => match classify(content) {
                    Encapsulated::Hip(packet) => self.inbound_hip(now, rng, route, packet),
                    Encapsulated::Esp(packet) => self.inbound_esp(now, rng, way, packet, datagram.ecn),
                    Encapsulated::Keepalive => {}
                    Encapsulated::Malformed => self.counters.malformed += 1,
                },
            }
        }
        self.settle(now, rng);
    }

    /// Does what is due. Afterwards the next deadline is later than `now`.
    pub fn handle_timeout(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.note_time(now);
        self.do_what_is_due(now, rng);
    }

    /// When [`Wedge::handle_timeout`] is to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        self.next_deadline()
    }

    /// Appends what is to be sent to the network, in order, a batch.
    pub fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<Transmit>) {
        self.counters.network_out += self.transmit.len() as u64;
        out.append(&mut self.transmit);
    }

    /// Appends the IP packets for local programs, in order, a batch.
    pub fn poll_deliver(&mut self, out: &mut Vec<Packet>) {
        self.counters.application_out += self.deliver.len() as u64;
        out.append(&mut self.deliver);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WedgeEvent> {
        self.events.pop_front()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The cryptographic operations of the association side since this host was made.
    pub fn costs(&self) -> hip::Costs {
        self.host.costs()
    }

    /// A snapshot.
    pub fn status(&self, now: Instant) -> Status {
        let states: BTreeMap<Hit, String> =
            self.host.associations().map(|association| (association.peer, association.state.to_string())).collect();
        let state = |peer: &PeerState| states.get(&peer.config.hit).cloned().unwrap_or_default();
        let of = |peer: &PeerState| peer.status(now, self.hit.to_string(), state(peer));
        Status {
            hit: self.hit.to_string(),
            lsi: self.config.lsi.to_string(),
            identities: vec![self.identity_status()],
            peers: self.peers.iter().filter(|peer| !peer.is_vacant).map(of).collect(),
            counters: self.counters,
            control: *self.host.counters(),
        }
    }

    fn identity_status(&self) -> IdentityStatus {
        IdentityStatus {
            name: self.config.name.clone(),
            hit: self.hit.to_string(),
            lsi: self.config.lsi.to_string(),
            anonymous: self.host.is_anonymous(),
        }
    }

    /// Closes all associations; some packets are to be sent afterwards, and answers to be waited for a little.
    pub fn close_all(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        let peers: Vec<Hit> = self.peers.iter().map(|peer| peer.config.hit).collect();
        for peer in peers {
            self.host.close(now, rng, peer);
        }
        self.drive_host(now, rng);
        self.settle(now, rng);
    }

    /// Closes all associations for good: none begins any more. Until [`Wedge::is_leaving`] is false again, what is lost of it
    /// is sent again.
    pub fn leave(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.host.leave(now, rng);
        self.drive_host(now, rng);
        self.settle(now, rng);
    }

    /// Whether a peer has not answered the farewell yet.
    pub fn is_leaving(&self) -> bool {
        self.host.is_closing()
    }

    /// Whether any association is left.
    pub fn is_closed(&self) -> bool {
        self.peers.iter().all(|peer| peer.paths.is_empty())
    }

    /// Carries out what the association side asks for.
    pub(crate) fn drive_host(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.host_was_asked = true;
        while let Some(event) = self.host.poll_event() {
            self.handle_event(now, rng, event);
        }
        while let Some(control) = self.host.poll_transmit() {
            let transmit = if control.route.in_udp() {
                let mut bytes = Vec::with_capacity(control.bytes.len() + 4);
                emit_hip_in_udp(&control.bytes, &mut bytes);
                Transmit {
                    route: control.route,
                    protocol: Protocol::Udp,
                    bytes,
                    ecn: Ecn::NotEct,
                    may_fragment: true,
                    is_alone: false,
                }
            } else {
                Transmit {
                    route: control.route,
                    protocol: Protocol::Hip,
                    bytes: control.bytes,
                    ecn: Ecn::NotEct,
                    may_fragment: true,
                    is_alone: false,
                }
            };
            self.transmit.push(transmit);
        }
    }

    fn handle_event(&mut self, now: Instant, rng: &mut dyn CryptoRng, event: hip::Event) {
        use hip::Event::{Admitted, Departed, Discovered, Registered, RegistrationRefused};
        use hip::Event::{Closed, Doubted, Established, Failed, Notified, Opening, Refused, Unanswered};
        use hip::Event::{PathBackup, PathDown, PathMoved, PathUp, PathVerified};
        if let Discovered { hit, route } = event {
            return self.events.push_back(WedgeEvent::Discovered { hit, route });
        }
        match event {
            Admitted { peer } => return self.admit(peer),
            Departed { peer } => return self.depart(peer),
            _ => {}
        }
        if let Refused { what, route, peer } = event {
            let peer = peer.map(|hit| match self.by_hit.get(&hit).and_then(|index| self.peers.get(*index)) {
                Some(peer) => peer.config.name.clone(),
                None => hit.to_string(),
            });
            return self.events.push_back(WedgeEvent::Refused { peer, route, what });
        }
        let (Established { peer: hit, .. }
        | Unanswered { peer: hit, .. }
        | Opening { peer: hit, .. }
        | PathUp { peer: hit, .. }
        | PathVerified { peer: hit, .. }
        | PathMoved { peer: hit, .. }
        | PathBackup { peer: hit, .. }
        | PathDown { peer: hit, .. }
        | Doubted { peer: hit, .. }
        | Closed { peer: hit, .. }
        | Notified { peer: hit, .. }
        | Registered { peer: hit, .. }
        | RegistrationRefused { peer: hit, .. }
        | Failed { peer: hit, .. }) = &event
        else {
            return;
        };
        let Some(index) = self.by_hit.get(hit).copied() else { return };
        self.touch(index);
        let Some(peer) = self.peers.get_mut(index) else { return };
        let name = peer.config.name.clone();
        match event {
            Established { feedback, .. } => {
                // Where all rates are configured they are kept, and nothing has to be learned.
                let learns = self.config.paths.iter().any(|path| path.rate.is_none());
                peer.begin(now, feedback, learns, self.config.congestion.clone());
                self.events.push_back(WedgeEvent::Established { peer: name });
            }
            PathUp { path: id, route, mut outbound, mut inbound, verified, .. } => {
                let parameters = self.config.parameters(&peer.config, route);
                let local = self.config.paths.iter().find(|path| path.locator.ip() == route.local.ip());
                let backup = local.is_some_and(|path| path.backup);
                let local = local.map_or_else(|| route.local.ip().to_string(), |path| path.name.clone());
                let (us, them) = (route.local.ip(), route.remote.ip());
                let lines = [outbound.keylog_line(us, them), inbound.keylog_line(them, us)];
                self.events.extend(lines.into_iter().flatten().map(WedgeEvent::KeyLog));
                self.events.push_back(WedgeEvent::PathUp { peer: name, path: id, name: local.clone(), route });
                self.by_spi.insert(inbound.spi(), (index, id));
                if peer.gives_feedback() {
                    // A Sinnet, which has these.
                    inbound.expect_numbers(Numbers::Short);
                } else if let Some(numbers) = peer.paths.iter().find_map(|path| path.inbound.numbers()) {
                    outbound.count_in(numbers);
                }
                let old = peer.predecessor(route);
                let heard = self.hip_heard.filter(|(from, _)| *from == route).map_or(0, |(_, bytes)| bytes);
                let header = outer_header(route.remote.is_ipv4(), route.in_udp());
                let mtu = PathMtu::new(parameters.mtu, overhead(header, outbound.suite()));
                let path = Path {
                    id,
                    route,
                    name: local,
                    parameters,
                    verified,
                    backup,
                    peers_backup: false,
                    standby: false,
                    outbound,
                    inbound,
                    heartbeat: Heartbeat::new(now),
                    mtu,
                    told_mtu: None,
                    native: NativeEsp::default(),
                    traffic: Traffic::default(),
                    credit: Credit::new(heard),
                    rebinding: None,
                    is_confirmed: false,
                    predecessor: None,
                    retirement: None,
                    is_reopened: false,
                    unheard: 0,
                };
                match old {
                    Some(old) => peer.prepare(path, old, now),
                    None => peer.add_path(now, path),
                }
                peer.refresh(now);
                self.flush_waiting(now, rng, index);
            }
            PathVerified { path, .. } => self.verify(now, rng, index, path),
            PathMoved { path, route, .. } => self.moved(now, rng, index, (path, route)),
            Doubted { .. } => self.doubt(now, index),
            PathBackup { path, backup, .. } => peer.set_backup(now, path, backup),
            PathDown { path: id, .. } => {
                if let Some(at) = peer.successors.iter().position(|path| path.id == id) {
                    // The peer has never used it.
                    let path = peer.successors.remove(at);
                    peer.sender.forget_path(id);
                    peer.reporter.forget_path(id);
                    self.by_spi.remove(&path.inbound.spi());
                    return;
                }
                if peer.succeed(now, id, &mut self.counters) {
                    self.events.push_back(WedgeEvent::PathDown { peer: name, path: id });
                    return;
                }
                let Some(at) = peer.paths.iter().position(|path| path.id == id) else { return };
                let path = peer.paths.remove(at);
                let stranded = peer.sender.remove_path(now, id);
                peer.reporter.forget_path(id);
                peer.count(&mut self.counters);
                peer.refresh(now);
                self.by_spi.remove(&path.inbound.spi());
                self.events.push_back(WedgeEvent::PathDown { peer: name, path: id });
                self.send_again(now, rng, index, stranded);
            }
            Closed { reason, .. } => {
                for path in peer.disassociate() {
                    self.by_spi.remove(&path.inbound.spi());
                }
                self.events.push_back(WedgeEvent::Closed { peer: name, reason });
            }
            Unanswered { routes, .. } => {
                let mut places: Vec<_> = routes.iter().map(|route| route.remote).collect();
                places.sort_unstable();
                places.dedup();
                self.events.push_back(WedgeEvent::Unanswered { peer: name, places, own: self.hit });
            }
            Opening { route, .. } => self.events.push_back(WedgeEvent::Opening { peer: name, route }),
            Notified { message, .. } => self.events.push_back(WedgeEvent::Notified { peer: name, message }),
            Failed { reason, .. } => {
                for path in peer.disassociate() {
                    self.by_spi.remove(&path.inbound.spi());
                }
                self.events.push_back(WedgeEvent::Failed { peer: name, reason });
                self.refuse_waiting(index);
            }
            Registered { lifetime, .. } => self.events.push_back(WedgeEvent::Registered { peer: name, lifetime }),
            RegistrationRefused { reason, .. } => {
                self.events.push_back(WedgeEvent::RegistrationRefused { peer: name, reason });
            }
            Refused { .. } | Discovered { .. } | Admitted { .. } | Departed { .. } => {}
        }
    }

    /// The peer is known to receive on a path.
    pub(crate) fn verify(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize, id: PathId) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let Some(path) = peer.any_path_mut(id).filter(|path| !path.verified) else { return };
        path.verified = true;
        path.heartbeat.traffic(now);
        peer.refresh(now);
        self.flush_waiting(now, rng, index);
    }
}

/// The largest inner payload that fits all paths with any of the suites.
fn check(config: &WedgeConfig) -> Result<usize, WedgeError> {
    let mut least = usize::MAX;
    for (index, path) in config.paths.iter().enumerate() {
        if let Some(other) = config.paths.iter().take(index).find(|other| other.locator.ip() == path.locator.ip()) {
            return Err(WedgeError::SameAddress(other.name.clone(), path.name.clone()));
        }
        least = least.min(room(config, path)?);
    }
    if config.paths.is_empty() {
        // They come later; what is usual fits most.
        least = room(config, &LocalPath::new("", (Ipv6Addr::UNSPECIFIED, hip::UDP_PORT).into()))?;
    }
    Ok(least)
}

/// The largest inner payload that fits a path to a Sinnet host. To others it may be less: programs are told of that ([`crate::path_mtu`]).
pub(crate) fn room(config: &WedgeConfig, path: &LocalPath) -> Result<usize, WedgeError> {
    if path.rate == Some(0) {
        return Err(WedgeError::NoRate(path.name.clone()));
    }
    let header = outer_header(path.locator.is_ipv4(), path.locator.port() != 0);
    let space = usize::from(path.mtu).saturating_sub(header);
    let features = config.hip.feedback.then(|| Features::own(config.keylog));
    let payloads = config.hip.esp_suites.iter().map(|suite| suite.between(features).max_payload(space));
    // A host without feedback is one of any kind to its peers, and any suite may be chosen.
    let payload = if features.is_some() { payloads.max() } else { payloads.min() }.unwrap_or(0);
    let numbers = match features {
        Some(_) if config.scheduler.needs().copies => numbers::ROOM,
        Some(features) => numbers::of_whole(features.short_numbers),
        None => 0,
    };
    let payload = payload.saturating_sub(numbers);
    // Below this not even a TCP header with its options and some data fits.
    if payload < 100 { Err(WedgeError::NoRoom(path.name.clone())) } else { Ok(payload) }
}

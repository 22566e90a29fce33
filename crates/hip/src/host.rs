//! One host identity and all its associations: packets and time in; packets, events and the next deadline out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use clock::Instant;
use rand_core::CryptoRng;
use wire::hip::{Packet, PacketKind, set_checksum};
use wire::{Hit, Spi};

use crate::asking::Asked;
use crate::association::{Association, AssociationView, I1Sent, PeerRecord, Phase, Retry};
use crate::budget::{Budget, Class};
use crate::carrying::Carrier;
use crate::checks::Uplinks;
use crate::config::{HostConfig, Peer, SpiClass};
use crate::costs::{Costs, Meter};
use crate::event::{Control, Counters, Event, TimerKind};
use crate::guests::Present;
use crate::hint::{Hints, is_hint};
use crate::identity::HostIdentity;
use crate::inquiry::Inquiry;
use crate::locators::give_way;
use crate::notice::Allowance;
use crate::r1::R1Pool;
use crate::refused::RefusalLog;
use crate::relay::Behind;
use crate::rendezvous;
use crate::route::Route;
use crate::session::Forged;

/// A HIP host without I/O (RFC 7401). It answers the base exchanges of configured peers, begins one when asked to,
/// and as Initiator opens a path for each further locator (RFC 8046, RFC 8047).
pub struct Host {
    pub(crate) identity: HostIdentity,
    pub(crate) config: HostConfig,
    pub(crate) r1s: R1Pool,
    pub(crate) peers: BTreeMap<Hit, PeerRecord>,
    pub(crate) out: Output,
    /// This host is going: no association begins any more.
    pub(crate) leaving: bool,
    /// Places whose identities are asked for.
    pub(crate) inquiries: Vec<Inquiry>,
    /// Where our servers see us that are behind NATs: by locator.
    pub(crate) mapped: BTreeMap<SocketAddr, SocketAddr>,
    /// Numbers of our uplinks, which peers hear.
    pub(crate) uplinks: Uplinks,
    pub(crate) guests: Present,
    /// What this host passes on of others' data.
    pub(crate) carrier: Carrier,
}

/// What waits to be polled, and what is counted on the way.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) transmit: VecDeque<Control>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    pub(crate) notices: Allowance,
    pub(crate) budget: Budget,
    pub(crate) refusals: RefusalLog,
    pub(crate) meter: Arc<Meter>,
    /// What packets have cost that were refused, or that prove nothing.
    pub(crate) strangers: Costs,
    pub(crate) hints: Hints,
    /// The SPIs at which we receive, all of this class.
    pub(crate) spis: BTreeSet<Spi>,
    pub(crate) spi_class: SpiClass,
    /// Where the packet at hand comes from that a relay has passed on.
    pub(crate) behind: Option<Behind>,
}

/// Why a [`Host`] cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The Host Identity and its signature do not fit a HIP packet.
    #[error("the host identity is too long for a HIP packet; RSA keys may have up to 4096 bits")]
    IdentityTooLong,
    /// No group, cipher or suite is left.
    #[error("the list of {0} is empty; leave it out for the default")]
    Empty(&'static str),
    /// The puzzle takes too long.
    #[error("the puzzle difficulty {0} is too great; at most {max}", max = HostConfig::MAX_DIFFICULTY)]
    Difficulty(u8),
}

/// Why a base exchange cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody of that identity is configured.
    #[error("{0} is not among the peers")]
    UnknownPeer(Hit),
    /// There is no pair of locators.
    #[error("{0} has no locator of an address family that this host has a locator of")]
    NoRoute(Hit),
}

impl Host {
    /// A host. Signs the first R1s, which takes a few milliseconds per group.
    ///
    /// # Errors
    /// [`HostError`] where the configuration cannot work.
    pub fn new(identity: HostIdentity, config: HostConfig, rng: &mut dyn CryptoRng) -> Result<Self, HostError> {
        for (empty, name) in [
            (config.groups.is_empty(), "Diffie-Hellman groups"),
            (config.ciphers.is_empty(), "HIP ciphers"),
            (config.esp_suites.is_empty(), "ESP suites"),
        ] {
            if empty {
                return Err(HostError::Empty(name));
            }
        }
        let hardest = config.puzzle_difficulty.max(config.max_difficulty);
        if hardest > HostConfig::MAX_DIFFICULTY {
            return Err(HostError::Difficulty(hardest));
        }
        let out = Output { spi_class: config.spis, ..Output::default() };
        let r1s = R1Pool::new(&identity, &config, out.meter.clone(), rng).map_err(|_| HostError::IdentityTooLong)?;
        let (peers, mapped, inquiries, uplinks, guests, carrier) = Default::default();
        Ok(Self { identity, config, r1s, peers, out, leaving: false, inquiries, mapped, uplinks, guests, carrier })
    }

    /// This host's HIT.
    pub fn hit(&self) -> Hit {
        self.identity.hit()
    }

    /// Whether its identity is one that no directory lists.
    pub fn is_anonymous(&self) -> bool {
        self.identity.is_anonymous()
    }

    /// Lets a peer in. A peer that is known gets the new locators, and keeps its association; a base exchange that waits
    /// for its R1 goes on at the new ones, and the Initiator of an association opens paths there.
    pub fn add_peer(&mut self, now: Instant, peer: Peer) {
        self.is_guest_no_more(peer.hit);
        match self.peers.get_mut(&peer.hit) {
            Some(record) => {
                let all = routes(&self.config, &peer, &[]);
                let asked = ways(&self.config, &peer);
                let has_moved = !peer.locators.iter().all(|remote| record.peer.locators.contains(remote));
                match &mut record.phase {
                    Phase::I1Sent(sent) => {
                        sent.routes = asked;
                        if has_moved {
                            sent.retry.at = now;
                        }
                    }
                    Phase::Up(up) if up.initiator => {
                        if has_moved {
                            give_way(&mut self.out, up, now, &self.config, 0, |_| true);
                            // An UPDATE with our locators may be going to where the peer was.
                            if up.announcement.is_some() {
                                up.announce();
                            }
                        }
                        up.learn(all, now);
                    }
                    _ => {}
                }
                record.peer = peer;
            }
            None => {
                self.peers.insert(peer.hit, PeerRecord::new(peer));
            }
        }
    }

    /// Lets a peer in no more. An association with it ends without a word.
    pub fn remove_peer(&mut self, peer: Hit) {
        self.is_guest_no_more(peer);
        if let Some(mut record) = self.peers.remove(&peer) {
            self.out.end(&mut record, "it is no peer any more");
        }
    }

    /// Begins a base exchange with a peer; does nothing where one is under way or the association is up and has had a
    /// path a moment ago, nor after [`Host::leave`].
    ///
    /// # Errors
    /// [`ConnectError`]: the peer is not known, or cannot be reached from here.
    pub fn connect(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) -> Result<(), ConnectError> {
        let record = self.peers.get_mut(&peer).ok_or(ConnectError::UnknownPeer(peer))?;
        // A path that is lost is usually opened again in a round trip; after that there is nothing to wait for.
        let patience = self.config.retransmission * 2;
        match &record.phase {
            _ if self.leaving => return Ok(()),
            Phase::I1Sent(_) | Phase::Solving(_) | Phase::I2Sent(_) => return Ok(()),
            Phase::Up(up) if up.is_meeting() => return Ok(()),
            Phase::Up(up) if up.pathless.is_none_or(|(since, _)| now < since + patience) => return Ok(()),
            _ => {}
        }
        let routes = ways(&self.config, &record.peer);
        let first = *routes.first().ok_or(ConnectError::NoRoute(peer))?;
        if matches!(record.phase, Phase::Up(_)) {
            self.out.end(record, "no path to the peer is left");
        }
        let mut asked = Asked::new(rng, record.is_sinnet);
        self.out.send(first, asked.i1(&self.config, &self.identity, peer, first));
        record.notice = None;
        record.phase = Phase::I1Sent(I1Sent { routes, retry: Retry::new(now, &self.config), asked, i2: None });
        Ok(())
    }

    /// Forgets the association with a peer without a word to it, as when nothing has come back for long. Its paths go
    /// down with [`Event::Closed`]; [`Host::connect`] begins anew.
    pub fn abandon(&mut self, peer: Hit, reason: &str) {
        if let Some(record) = self.peers.get_mut(&peer) {
            self.out.end(record, reason);
        }
        self.see_off(peer);
    }

    /// Takes a HIP packet that came in on `route`, without the zero bytes that precede it inside UDP. Whatever is
    /// wrong with it is counted, and changes nothing.
    pub fn handle_packet(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &[u8]) {
        let before = self.out.meter.read();
        let proves = self.dispatch(now, rng, route, packet);
        if !proves {
            let cost = self.out.meter.read().since(&before);
            self.out.strangers.add(&cost);
        }
    }

    /// Returns true if the packet was taken, and showed that a peer has sent it.
    fn dispatch(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &[u8]) -> bool {
        self.out.counters.packets_in += 1;
        let packet = match Packet::parse(packet) {
            Ok(packet) => packet,
            Err(_) => {
                self.out.refuse(now, Refusal::Malformed, route, None);
                return false;
            }
        };
        // RFC 5770 §4.1: inside UDP the checksum is not used.
        if !route.in_udp() && !packet.checksum_is_right(route.remote.ip(), route.local.ip()) {
            self.out.counters.bad_checksum += 1;
            return false;
        }
        if is_hint(&packet) {
            if let Err(refusal) = self.on_hint(now, route, &packet) {
                self.out.refuse(now, refusal, route, Some(packet.sender()));
            }
            return false;
        }
        if let Some(passed) = self.pass_on(now, route, &packet) {
            if let Err(refusal) = passed {
                self.out.refuse(now, refusal, route, Some(packet.sender()));
            }
            return false;
        }
        match self.behind(now, route, &packet) {
            Ok(None) => self.take_own(now, rng, route, &packet),
            Ok(Some(behind)) => self.take_relayed(now, rng, behind, &packet),
            Err(refusal) => {
                self.out.refuse(now, refusal, route, Some(packet.sender()));
                false
            }
        }
    }

    /// A packet that a relay has passed on: what it costs is its sender's, and the answer goes back by the relay.
    fn take_relayed(&mut self, now: Instant, rng: &mut dyn CryptoRng, behind: Behind, packet: &Packet<'_>) -> bool {
        let first = self.out.transmit.len();
        self.out.behind = Some(behind);
        let proves = self.take_own(now, rng, behind.route, packet);
        self.out.behind = None;
        self.answer_by_relay(first, packet.sender(), behind);
        if let Some(record) = self.peers.get_mut(&packet.sender()).filter(|_| proves) {
            record.behind = Some(behind);
        }
        proves
    }

    /// A packet for us, if it is: true if it was taken, and showed that a peer has sent it.
    fn take_own(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &Packet<'_>) -> bool {
        // RFC 7401 §4.1.8: who does not know our HIT asks with none. Only peers are answered.
        let is_for_us =
            packet.receiver() == self.hit() || packet.receiver() == Hit::NULL && packet.kind() == PacketKind::I1;
        if !is_for_us {
            self.out.refuse(now, Refusal::NotForUs, route, Some(packet.sender()));
            return false;
        }
        let sender = packet.sender();
        // Nobody finds an anonymous identity by asking for it, not even that it is here. Whom it has asked itself may have done so
        // at the same moment (RFC 7401 §4.4.3), or know nothing of it any more.
        let begins = matches!(packet.kind(), PacketKind::I1 | PacketKind::I2);
        if begins && self.identity.is_anonymous() && !self.is_talking_to(sender) {
            self.out.refuse(now, Refusal::NotForUs, route, Some(sender));
            return false;
        }
        if packet.kind() == PacketKind::R1 && self.is_inquired(route, sender) {
            if let Err(refusal) = self.on_inquired(now, route, packet) {
                self.out.refuse(now, refusal, route, Some(sender));
            }
            return false;
        }
        if !self.peers.contains_key(&sender) && !self.welcome(packet) {
            self.out.refuse(now, Refusal::Stranger, route, Some(sender));
            self.explain(now, rng, route, packet, Refusal::Stranger);
            return false;
        }
        let proves = self.take(now, rng, route, packet);
        self.see_off(sender);
        proves
    }

    /// Whether there is an association with a peer, or a base exchange that this host has begun.
    fn is_talking_to(&self, peer: Hit) -> bool {
        let phase = self.peers.get(&peer).map(|record| &record.phase);
        matches!(phase, Some(Phase::I1Sent(_) | Phase::Solving(_) | Phase::I2Sent(_) | Phase::Up(_)))
    }

    /// Takes a packet of a peer's. Returns true if it showed that the peer has sent it.
    fn take(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &Packet<'_>) -> bool {
        let sender = packet.sender();
        if let Some(parameter) = packet.unknown_critical() {
            self.out.counters.unknown_critical += 1;
            self.explain_critical(now, rng, route, packet, parameter);
            return false;
        }
        let taken = match packet.kind() {
            PacketKind::I1 | PacketKind::I2 if self.leaving => Err(Refusal::Unexpected),
            PacketKind::I1 => self.on_i1(now, rng, route, packet),
            PacketKind::R1 => self.on_r1(now, rng, route, packet),
            PacketKind::I2 => self.on_i2(now, rng, route, packet),
            PacketKind::R2 => self.on_r2(now, rng, route, packet),
            PacketKind::Update => self.on_update(now, rng, route, packet),
            PacketKind::Notify => self.on_notify(now, route, packet),
            PacketKind::Close => self.on_close(now, rng, route, packet),
            PacketKind::CloseAck => self.on_close_ack(packet),
        };
        if let Err(refusal) = taken {
            self.out.refuse(now, refusal, route, Some(sender));
            self.explain(now, rng, route, packet, refusal);
        }
        // Anybody can send an I1, or a NOTIFY again that the peer has sent once.
        taken.is_ok() && !matches!(packet.kind(), PacketKind::I1 | PacketKind::Notify)
    }

    /// Does what is due: sends again, tries the next route, forgets.
    pub fn handle_timeout(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.solve_puzzles(now, rng);
        let peers: Vec<Hit> = self.peers.keys().copied().collect();
        for peer in peers {
            self.retry_exchange(now, rng, peer);
            self.keep_fresh(now, rng, peer);
            self.retry_updates(now, peer);
            self.retry_close(now, peer);
            self.keep_registered(now, rng, peer);
            self.keep_checking(now, rng, peer);
            self.open_paths(now, rng, peer);
            self.see_off(peer);
        }
        self.retry_inquiries(now);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Control> {
        while let Some(control) = self.out.transmit.pop_front() {
            if let Some(control) = self.by_relay(control) {
                return Some(control);
            }
        }
        None
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }

    /// When [`Host::handle_timeout`] is to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        let phases = self.peers.values().filter_map(|record| record.phase.deadline());
        let enrolments = self.peers.values().filter(|_| !self.leaving).filter_map(PeerRecord::enrolment_deadline);
        phases.chain(enrolments).chain(self.inquiry_deadline()).min()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.out.counters
    }

    /// The present generation of this host's R1s. Who stores it and gives a greater one as [`HostConfig::first_generation`] after
    /// a restart is not taken for somebody who replays, whatever the clock says.
    pub fn r1_generation(&self) -> u64 {
        self.r1s.generation_number()
    }

    /// The cryptographic operations done since this host was made.
    pub fn costs(&self) -> Costs {
        self.out.meter.read()
    }

    /// Of [`Host::costs`], what packets have caused that were refused, and those that prove nothing: I1 and NOTIFY.
    pub fn costs_of_strangers(&self) -> Costs {
        self.out.strangers
    }

    /// How things stand with each peer.
    pub fn associations(&self) -> impl Iterator<Item = AssociationView> {
        self.peers.iter().map(|(&peer, record)| {
            let up = match (&record.phase, &record.standby) {
                (Phase::Up(up), _) | (_, Some(up)) => Some(up),
                _ => None,
            };
            AssociationView {
                peer,
                state: up.map_or_else(|| record.phase.state(), |up| up.state()),
                paths: up.iter().flat_map(|up| &up.paths).map(|path| (path.id, path.route)).collect(),
            }
        })
    }
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    /// As malformed, but authentic.
    Syntax,
    Unexpected,
    /// For another HIT than ours.
    NotForUs,
    /// Of no peer of ours.
    Stranger,
    Puzzle,
    Mac,
    Signature,
    DiffieHellman,
    Replayed,
    /// No Diffie-Hellman group that both have.
    Group,
    /// No HIP cipher.
    Cipher,
    /// No ESP suite.
    Suite,
    /// Not the algorithm that both would have chosen.
    Downgraded,
    /// A puzzle that takes too long.
    TooHard,
    /// More than strangers may cost.
    OverBudget,
    /// The peer asks for more public-key operations than its share.
    Share,
    /// It crossed an opening of ours that counts.
    Crossed,
    /// A path more than there may be.
    TooMany,
    /// An address where no host is, or where this one is.
    BadPlace,
    /// An R1 from where no I1 went.
    Elsewhere,
    /// An R1 of an older generation than one before.
    WentBack,
}

impl From<Forged> for Refusal {
    fn from(forged: Forged) -> Self {
        match forged {
            Forged::Mac => Self::Mac,
            Forged::Signature => Self::Signature,
        }
    }
}

impl Output {
    pub(crate) fn send(&mut self, route: Route, mut bytes: Vec<u8>) {
        if !route.in_udp() {
            set_checksum(&mut bytes, route.local.ip(), route.remote.ip());
        }
        self.counters.packets_out += 1;
        self.transmit.push_back(Control { route, bytes });
    }

    pub(crate) fn send_again(&mut self, route: Route, bytes: &[u8]) {
        self.counters.retransmissions += 1;
        self.send(route, bytes.to_vec());
    }

    /// Counts a packet that is refused; an event, unless there was one for the same reason lately.
    pub(crate) fn refuse(&mut self, now: Instant, refusal: Refusal, route: Route, peer: Option<Hit>) {
        self.count(refusal);
        self.events.extend(self.refusals.event(now, refusal, route, peer));
    }

    fn count(&mut self, refusal: Refusal) {
        let counters = &mut self.counters;
        *match refusal {
            Refusal::Malformed | Refusal::Syntax => &mut counters.malformed,
            Refusal::NotForUs => &mut counters.not_for_us,
            Refusal::Stranger => &mut counters.unknown_peer,
            Refusal::Unexpected => &mut counters.unexpected,
            Refusal::Puzzle => &mut counters.bad_puzzle,
            Refusal::Mac => &mut counters.bad_mac,
            Refusal::Signature => &mut counters.bad_signature,
            Refusal::DiffieHellman => &mut counters.bad_diffie_hellman,
            Refusal::Replayed | Refusal::WentBack => &mut counters.replayed,
            Refusal::Elsewhere => &mut counters.wrong_route,
            Refusal::Crossed => &mut counters.crossed,
            Refusal::OverBudget => &mut counters.over_budget,
            Refusal::Share => &mut counters.over_share,
            Refusal::TooMany => &mut counters.too_many,
            Refusal::BadPlace => &mut counters.bad_places,
            Refusal::Group | Refusal::Cipher | Refusal::Suite | Refusal::Downgraded | Refusal::TooHard => {
                &mut counters.no_common_algorithm
            }
        } += 1;
    }

    /// An SPI at which nothing is received yet.
    pub(crate) fn new_spi(&mut self, rng: &mut dyn CryptoRng) -> Spi {
        loop {
            let spi = Spi(rng.next_u32());
            // RFC 4303 §2.1: 0 to 255 are reserved.
            if spi.0 > 255 && self.spi_class.has(spi) && self.spis.insert(spi) {
                return spi;
            }
        }
    }

    /// Whether strangers may cost one operation of a class more; `known`: the source is one of the peer's own.
    pub(crate) fn affords(
        &mut self,
        now: Instant,
        config: &HostConfig,
        class: Class,
        route: Route,
        known: bool,
    ) -> Result<(), Refusal> {
        let source = self.behind.map_or(route.remote.ip(), |behind| behind.place.ip());
        let taken = self.budget.take(now, &config.limits, class, source, known);
        if taken { Ok(()) } else { Err(Refusal::OverBudget) }
    }

    /// The packet at hand has come by a relay.
    pub(crate) fn is_relayed(&self) -> bool {
        self.behind.is_some()
    }

    /// Ends what there is with a peer, whatever it is.
    pub(crate) fn end(&mut self, record: &mut PeerRecord, reason: &str) {
        self.end_phase(record, reason);
        if let Some(up) = record.standby.take() {
            self.end_association(record.peer.hit, &up, reason);
        }
    }

    /// Ends the state with a peer; an association that a base exchange is to replace goes on.
    pub(crate) fn end_phase(&mut self, record: &mut PeerRecord, reason: &str) {
        let phase = std::mem::replace(&mut record.phase, Phase::Unassociated);
        phase.i2().into_iter().for_each(|sent| _ = self.spis.remove(&sent.spi_in));
        if let Phase::Up(up) = phase {
            self.end_association(record.peer.hit, &up, reason);
        }
    }

    /// Frees what an association holds, and tells that it has ended.
    pub(crate) fn end_association(&mut self, peer: Hit, up: &Association, reason: &str) {
        up.spis().for_each(|spi| _ = self.spis.remove(&spi));
        self.events.push_back(Event::Closed { peer, reason: reason.to_owned() });
    }

    /// The base exchange with a peer has failed.
    pub(crate) fn fail(&mut self, record: &mut PeerRecord, reason: String) {
        self.counters.failed += 1;
        if self.go_on(record) {
            return;
        }
        self.end(record, &reason);
        record.phase = Phase::Failed;
        self.events.push_back(Event::Failed { peer: record.peer.hit, reason });
    }
}

/// The pairs of locators between this host and a peer, the best first: each of ours with one of the peer's before any
/// is used twice.
pub(crate) fn routes(config: &HostConfig, peer: &Peer, learned: &[IpAddr]) -> Vec<Route> {
    if !peer.routes.is_empty() {
        return peer.routes.clone();
    }
    let mut remotes = peer.locators.clone();
    for &address in learned.iter().filter(|address| is_place(**address, peer)) {
        if let Some(first) = peer.locators.first().or(peer.via.first())
            && !remotes.iter().any(|remote| remote.ip() == address)
        {
            remotes.push((address, first.port()).into());
        }
    }
    let count = config.locators.len().max(remotes.len());
    let mut found = Vec::new();
    for shift in 0..count {
        for index in 0..count {
            let pair = (
                config.locators.get(index % config.locators.len().max(1)),
                remotes.get((index + shift) % remotes.len().max(1)),
            );
            if let (Some(&local), Some(&remote)) = pair
                && local.is_ipv4() == remote.is_ipv4()
                && (local.port() == 0) == (remote.port() == 0)
                && !found.contains(&Route { local, remote })
            {
                found.push(Route { local, remote });
            }
        }
    }
    found
}

/// The pairs of locators to ask a peer on.
pub(crate) fn ways(config: &HostConfig, peer: &Peer) -> Vec<Route> {
    let mut all = routes(config, peer, &[]);
    for way in rendezvous::ways(config, peer) {
        if !all.contains(&way) {
            all.push(way);
        }
    }
    all
}

/// Whether a peer may be at an address that it tells: one of a host (RFC 8046 §5.3), and not ours but where the peer is known to
/// be on this machine.
pub(crate) fn is_place(address: IpAddr, peer: &Peer) -> bool {
    let is_nobody = address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !is_nobody && (!address.is_loopback() || peer.locators.iter().any(|known| known.ip().is_loopback()))
}

/// An address as LOCATOR_SET carries it.
pub(crate) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

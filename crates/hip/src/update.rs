//! UPDATE: what the peer has to say while the association is up (RFC 7401 §6.11, §6.12). How paths are opened is in
//! `opening`, what is said of locators in `locators`.
//!
//! The order of the checks is the defence: the MAC, then whether the packet has anything to say that has not been
//! heard, then whether the peer has public-key operations left, then the signature. So a packet that an observer sends
//! again costs a MAC, whatever its source address; and an answer that is given again goes where it went first.

use std::net::IpAddr;

use clock::Instant;
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, EspInfo, Locator, Packet, PacketKind, Parameter, PeerPermission, TransportAddress, append};
use wire::{Hit, Spi};

use crate::association::{Announcement, Answer, Association, CREDIT, MAX_OFFERS, Order, PeerRecord, Phase, WORK};
use crate::config::{HostConfig, Peer};
use crate::event::Event;
use crate::exchange::{identity_of, unmapped};
use crate::host::{Host, Output, Refusal, routes};
use crate::identity::HostIdentity;
use crate::locators::{self, give_way};
use crate::registration::RELAY_HIP;
use crate::route::Route;
use crate::session::Session;

/// What handling one packet of an association needs of its host.
pub(crate) struct Turn<'a> {
    pub(crate) out: &'a mut Output,
    pub(crate) identity: &'a HostIdentity,
    pub(crate) config: &'a HostConfig,
    pub(crate) rng: &'a mut dyn CryptoRng,
    pub(crate) now: Instant,
    pub(crate) peer: Hit,
    /// Where the packet came from.
    pub(crate) route: Route,
    /// The peer wants to know where we see it.
    pub(crate) tells_mapped: bool,
    /// What the answer asks of the relay that it goes by.
    pub(crate) permission: Option<PeerPermission>,
}

impl Host {
    /// Tells that a valid ESP packet has come in for a path, on `route`; whether that proves that the peer receives at
    /// the path's remote locator. It does where it came on the path's own route, and its SPI was told to that route
    /// only (RFC 8046 §5.4): from anywhere else it may be sent by somebody who has never been there.
    pub fn path_proved(&mut self, peer: Hit, path: PathId, route: Route) -> bool {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return false };
        up.confirmed = true;
        let offer = up.offers.iter().position(|offer| offer.path == path);
        if offer.is_some_and(|index| up.offers.get(index).is_some_and(|offer| offer.exposed)) {
            return false;
        }
        match up.paths.iter_mut().find(|known| known.id == path && known.route == route) {
            Some(known) => known.verified = true,
            None => return false,
        }
        if let Some(index) = offer {
            conclude(&mut self.out, up, peer, index);
        }
        true
    }

    /// Gives a path new keys and new SPIs, as before its sequence numbers end. A path with another number comes up on
    /// the same route, then this one goes down.
    pub fn renew_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit, path: PathId) {
        if let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase)
            && up.paths.iter().any(|other| other.id == path && other.refused_until <= now)
            && !up.is_renewing(path)
        {
            up.renewals.push_back(path);
        }
        self.open_paths(now, rng, peer);
    }

    /// Gives up a path from which nothing has come back for long. As Initiator the host will try its route, and the
    /// others that are free, again.
    pub fn drop_path(&mut self, now: Instant, peer: Hit, path: PathId) {
        if let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) {
            if let Some(route) = up.paths.iter().find(|other| other.id == path).map(|other| other.route) {
                up.postpone(route, now, self.config.path_retry);
            }
            remove(&mut self.out, up, peer, path);
            up.meet_again(now, &self.config);
            up.note_paths(now, &self.config);
        }
    }

    pub(crate) fn on_update(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let peer = packet.sender();
        let others = packet.reg_request().map_or(0, |_| self.registrations_but(peer, now));
        let Self { out, identity, config, peers, .. } = self;
        let record = peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let decision = record.decide(config, packet, route, others, now);
        let tells_mapped = tells_mapped(record, now, route, packet);
        let PeerRecord { peer: known, phase: Phase::Up(up), .. } = record else { return Err(Refusal::Unexpected) };
        up.session.check_mac(packet)?;
        let contents = Contents::of(up, route, packet);
        let mut turn = Turn { out, identity, config, rng: &mut *rng, now, peer, route, tells_mapped, permission: None };
        if !contents.is_any() {
            turn.repeat(up, packet);
            return Err(Refusal::Replayed);
        }
        if !up.work.take(now, WORK) {
            return Err(Refusal::Share);
        }
        up.session.check_signature(packet)?;
        // RFC 8046 §4.3: a host identity in it is the peer's.
        if let Some(host_id) = packet.host_id() {
            identity_of(host_id, peer)?;
        }
        up.confirmed = true;
        turn.explain_locators(packet);
        let decision = decision.filter(|_| contents.seq.is_some() && !contents.late);
        let answer = decision.as_ref().map_or(&[][..], |decision| &decision.answer);
        let taken = turn.take(up, known, packet, &contents, answer);
        let registers = contents.registers;
        if registers {
            up.asking = None;
        }
        if let Some(set) = packet.locator_set().filter(|_| taken.is_ok()) {
            if up.initiator && up.checks.is_none() {
                let learned: Vec<_> = set.iter().map(|locator| unmapped(locator.address)).collect();
                up.learn(routes(config, known, &learned), now);
            }
            up.note_lifetimes(&mut self.out, peer, set, now);
        }
        if let Some(record) = self.peers.get_mut(&peer) {
            decision.iter().for_each(|decision| record.note(&mut self.out, decision));
            if registers && !record.enrolled(&mut self.out, now, packet) {
                record.unheard(now);
            }
        }
        let serves = |record: &PeerRecord| record.peer.registers && route.in_udp();
        if let Some(seen) = packet.mapped_address().or(packet.reg_from())
            && taken.is_ok()
            && self.peers.get(&peer).is_some_and(serves)
        {
            self.note_mapped(now, route.local, seen);
        }
        if taken.is_err() {
            // Where the peer's paths are not ours, it hears which are before the next is opened.
            self.announce_locators(now, rng, peer);
        }
        self.keep_checking(now, rng, peer);
        self.open_paths(now, rng, peer);
        taken
    }

    /// As Initiator: begins to open the next path, if one is wanted and its turn has come. Then, and as Responder, tells
    /// the peer our locators where there is contents.
    pub(crate) fn open_paths(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        self.open_path(now, rng, peer);
        self.announce_locators(now, rng, peer);
        // What is told may have come to its end just now.
        self.open_path(now, rng, peer);
        if let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) {
            up.note_paths(now, &self.config);
        }
    }
}

/// What is told with a LOCATOR_SET.
#[derive(Clone, Copy)]
pub(crate) enum Told<'a> {
    /// Where the path is that the packet opens.
    Opened,
    /// All there is; and which paths are to lead to one of them, and so are not gone although they are not listed.
    All(&'a [PathId]),
}

/// What an UPDATE has to say that has not been heard yet.
struct Contents {
    /// Its Update ID is one that has not come before.
    seq: Option<u32>,
    /// A later one has come.
    late: bool,
    /// It is the echo of the offers that went out under this Update ID of ours, from where they went.
    proves: Option<u32>,
    /// It answers our opening, from where that went.
    opens: bool,
    /// It acknowledges our locators.
    heard: bool,
    /// It acknowledges our request to be registered.
    registers: bool,
    /// It is the echo of a question of ours under this Update ID, from where paths are to lead.
    moves: Option<u32>,
    /// It is the echo of a connectivity check, on the way that is checked.
    works: Option<Route>,
    /// It acknowledges our candidates.
    knows: bool,
}

impl Contents {
    fn of(up: &Association, route: Route, packet: &Packet<'_>) -> Self {
        let acks = packet.ack().map_or(&[][..], Vec::as_slice);
        let echoed = |nonce: &Vec<u8>| {
            packet
                .parameters()
                .any(|parameter| matches!(parameter, Parameter::EchoResponseSigned(echo) if echo == nonce))
        };
        let answers = |seq: u32, nonce: &Vec<u8>, there: Route| acks.contains(&seq) && there == route && echoed(nonce);
        let heard = |telling: &Announcement| acks.iter().any(|ack| telling.seqs.contains(ack));
        let seq = packet.seq().copied();
        let offered = up.offers.iter().find(|offer| answers(offer.seq, &offer.nonce, offer.route));
        let asked = up.moves.iter().find(|there| answers(there.seq, &there.nonce, there.route));
        Self {
            seq: seq.filter(|seq| up.order(*seq) != Order::Known),
            late: seq.is_some_and(|seq| up.order(seq) == Order::Overtaken),
            proves: offered.map(|offer| offer.seq),
            opens: up.opening.as_ref().is_some_and(|own| answers(own.seq, &own.nonce, own.route)),
            heard: up.announcement.as_ref().is_some_and(heard),
            registers: up.asking.as_ref().is_some_and(|asking| acks.contains(&asking.seq)),
            moves: asked.map(|there| there.seq),
            works: up.checks.as_ref().and_then(|checks| checks.answered(acks, route, echoed)),
            knows: up.checks.as_ref().is_some_and(|checks| checks.is_heard(acks)),
        }
    }

    fn is_any(&self) -> bool {
        self.seq.is_some()
            || self.proves.is_some()
            || self.opens
            || self.heard
            || self.registers
            || self.moves.is_some()
            || self.works.is_some()
            || self.knows
    }
}

/// What an UPDATE says of security associations (RFC 8046 §5.3). It may be about several (RFC 8047 §4.2).
struct Infos {
    /// The peer's SPIs of those that stay.
    unchanged: Vec<Spi>,
    /// New ones, and those with new keys.
    fresh: Vec<EspInfo>,
    /// Those that end.
    ended: Vec<Spi>,
}

impl Infos {
    /// `opened`: the packet has answered our opening, which was all it is about.
    fn of(packet: &Packet<'_>, opened: bool) -> Self {
        let all = || packet.esp_infos().filter(|_| !opened).take(MAX_OFFERS);
        let (is_same, is_end) = (|esp: &&EspInfo| esp.old_spi == esp.new_spi, |esp: &&EspInfo| esp.new_spi == Spi(0));
        Self {
            unchanged: all().filter(is_same).map(|esp| esp.old_spi).collect(),
            fresh: all().filter(|esp| !is_same(esp) && !is_end(esp)).copied().collect(),
            ended: all().filter(|esp| !is_same(esp) && is_end(esp)).map(|esp| esp.old_spi).collect(),
        }
    }
}

impl Turn<'_> {
    /// Does what an authentic UPDATE asks for.
    fn take(
        &mut self,
        up: &mut Association,
        known: &Peer,
        packet: &Packet<'_>,
        contents: &Contents,
        registration: &[Parameter],
    ) -> Result<(), Refusal> {
        if let Some(seq) = contents.seq {
            // Whatever becomes of it, the same packet is not looked at again.
            up.note_update(seq);
        }
        while let Some(index) = up.offers.iter().position(|offer| contents.proves == Some(offer.seq)) {
            self.proved(up, index);
        }
        while let Some(index) = up.moves.iter().position(|there| contents.moves == Some(there.seq)) {
            self.moved(up, index);
        }
        if let Some(route) = contents.works {
            up.works(self.out, self.now, route);
        }
        if contents.knows
            && let Some(checks) = &mut up.checks
        {
            checks.heard();
        }
        let opened = contents.opens && self.complete(up, packet)?;
        if contents.heard {
            up.announcement = None;
        }
        let Some(&seq) = packet.seq() else { return Ok(()) };
        if contents.seq.is_none() {
            if opened {
                // Overtaken on the way by a later UPDATE: the peer still waits for its echo.
                let answer = self.acknowledge(up, packet, seq)?;
                self.reply(up, seq, answer);
            }
            return Err(Refusal::Replayed);
        }
        if contents.late && up.is_superseded(packet, seq, self.route) {
            // RFC 7401 §6.12: it is acknowledged all the same; what came after it says what holds.
            let answer = self.acknowledge(up, packet, seq)?;
            self.reply(up, seq, answer);
            return Err(Refusal::Replayed);
        }
        let Infos { unchanged, fresh, ended } = Infos::of(packet, opened);
        // An answer to an UPDATE of ours that was given up: without our echo the peer forgets the path.
        if packet.ack().is_some() && !(fresh.is_empty() && ended.is_empty()) {
            return Err(Refusal::Unexpected);
        }
        let answer = if !fresh.is_empty() {
            let answer = self.accept(up, known, packet, &fresh, seq);
            if let Some(set) = packet.locator_set().filter(|_| answer.is_ok()) {
                locators::take(self.out, up, self.peer, set, None);
            }
            self.or_acknowledge(up, packet, seq, answer)?
        } else if !unchanged.is_empty() {
            // RFC 8046 §5.3, case 1: the security associations stay, and the locators change.
            let answer = self.readdress(up, known, packet, &unchanged, seq);
            self.or_acknowledge(up, packet, seq, answer)?
        } else {
            up.hear_candidates(self.out, self.now, self.config, known, packet);
            up.hear_check(self.now, self.config, self.route, packet);
            if let Some(set) = packet.locator_set().filter(|_| ended.is_empty()) {
                self.listen(up, &known.locators, seq, set, if opened { Told::Opened } else { Told::All(&[]) });
            }
            self.acknowledge_with(up, packet, seq, registration)?
        };
        self.reply(up, seq, answer);
        // RFC 8046 §5.3, case 4.
        ended.into_iter().for_each(|spi| self.give_up(up, spi));
        Ok(())
    }

    /// An answer; or where there is none an acknowledgment without ESP_INFO: heard, and refused.
    fn or_acknowledge(
        &mut self,
        up: &mut Association,
        packet: &Packet<'_>,
        seq: u32,
        answer: Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        if answer.is_err() {
            let acknowledgment = self.acknowledge(up, packet, seq)?;
            self.reply(up, seq, acknowledgment);
        }
        answer
    }

    fn reply(&mut self, up: &mut Association, seq: u32, answer: Vec<u8>) {
        self.out.send(self.route, answer.clone());
        up.remember(Answer { seq, route: self.route, packet: answer });
    }

    /// An UPDATE came again: so does our answer, on the same route, and to one that is not verified no more than it has
    /// earned.
    fn repeat(&mut self, up: &mut Association, packet: &Packet<'_>) {
        let here = self.route;
        let Some(&seq) = packet.seq() else { return };
        let Some(answer) = up.answers.iter().find(|answer| answer.seq == seq && answer.route == here) else { return };
        let offer = up.offers.iter_mut().find(|offer| offer.asked == seq).map(|offer| &mut offer.credit);
        let there = up.moves.iter_mut().find(|there| there.asked == seq && there.route == here);
        if let Some(credit) = offer.or(there.map(|there| &mut there.credit)) {
            *credit = credit.saturating_add(CREDIT * packet.bytes().len());
            match credit.checked_sub(answer.packet.len()) {
                Some(left) => *credit = left,
                None => return,
            }
        }
        self.out.send_again(here, &answer.packet);
    }

    /// The peer's locators are told, all of them unless the packet opens a path.
    pub(crate) fn listen(
        &mut self,
        up: &mut Association,
        configured: &[std::net::SocketAddr],
        seq: u32,
        set: &[Locator],
        told: Told<'_>,
    ) {
        let Told::All(moving) = told else { return locators::take(self.out, up, self.peer, set, None) };
        locators::take(self.out, up, self.peer, set, Some(moving));
        up.announced = Some((seq, set.to_vec()));
        // The peer takes for a path what is none here any more: it has to hear that.
        let ours = |spi: Spi| up.paths.iter().any(|path| path.spi_out == spi);
        if set.iter().filter_map(|locator| locator.spi).any(|spi| spi.0 != 0 && !ours(spi)) {
            up.announce();
        }
        // Behind NATs addresses are found by checks.
        if up.initiator && up.checks.is_none() {
            let learned: Vec<_> = set.iter().map(|locator| unmapped(locator.address)).collect();
            up.review_remotes(configured, &learned, self.now, self.config.path_retry);
            // An address without a path is better tried at once than any pair that shares its ends.
            let opening = up.opening.as_ref().map(|opening| opening.route.remote.ip());
            let used = |remote: &IpAddr| {
                opening == Some(*remote) || up.paths.iter().any(|path| path.route.remote.ip() == *remote)
            };
            let tries = u32::from(learned.iter().all(used));
            if up.is_answered(set) {
                return;
            }
            give_way(self.out, up, self.now, self.config, tries, |remote| learned.contains(&remote));
        }
    }

    /// The answer to an UPDATE that wants no more than to be heard.
    pub(crate) fn acknowledge(&mut self, up: &Association, packet: &Packet<'_>, seq: u32) -> Result<Vec<u8>, Refusal> {
        self.acknowledge_with(up, packet, seq, &[])
    }

    /// The same with what there is to say about a registration.
    fn acknowledge_with(
        &mut self,
        up: &Association,
        packet: &Packet<'_>,
        seq: u32,
        registration: &[Parameter],
    ) -> Result<Vec<u8>, Refusal> {
        let builder = Builder::new(PacketKind::Update, self.identity.hit(), self.peer).push(&Parameter::Ack(vec![seq]));
        let builder = registration.iter().fold(builder, Builder::push);
        self.seal_answer(&up.session, builder, packet)
    }

    /// The answer to a packet: with its echoes, of which those behind the signature are for middleboxes (RFC 7401 §5.2.21).
    pub(crate) fn seal_answer(
        &mut self,
        session: &Session,
        builder: Builder,
        packet: &Packet<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let mapped = self.tells_mapped.then(|| Parameter::MappedAddress(TransportAddress::udp(self.route.remote)));
        let permission = self.permission.take().map(Parameter::PeerPermission);
        let builder = echoes(builder, packet).push_some(mapped.as_ref()).push_some(permission.as_ref());
        let mut bytes = self.seal(session, builder)?;
        for parameter in packet.parameters() {
            if let Parameter::EchoRequestUnsigned(echo) = parameter {
                // An answer without room for it is still an answer.
                _ = append(&mut bytes, &Parameter::EchoResponseUnsigned(echo.clone()));
            }
        }
        Ok(bytes)
    }

    pub(crate) fn seal(&mut self, session: &Session, builder: Builder) -> Result<Vec<u8>, Refusal> {
        session.seal(builder, self.identity, &mut *self.rng).map_err(|_| Refusal::Malformed)
    }
}

/// Whether the peer wants to know where we see it: who is our client, because there may be a NAT before each of its uplinks, and
/// who checks a way (RFC 9028 §5.12).
fn tells_mapped(record: &PeerRecord, now: Instant, route: Route, packet: &Packet<'_>) -> bool {
    let is_client = || record.is_served(now, RELAY_HIP).is_some();
    route.in_udp() && (packet.candidate_priority().is_some() || is_client())
}

pub(crate) fn remove(out: &mut Output, up: &mut Association, peer: Hit, path: PathId) {
    if let Some(index) = up.paths.iter().position(|other| other.id == path) {
        let gone = up.paths.remove(index);
        out.spis.remove(&gone.spi_in);
        up.remember_remote(gone.route.remote);
        up.offers.retain(|offer| offer.path != path);
        up.moves.retain(|there| there.path != path);
        out.events.push_back(Event::PathDown { peer, path });
    }
}

/// The peer is known to be on the path of an offer, which is settled; what the path replaces goes.
pub(crate) fn conclude(out: &mut Output, up: &mut Association, peer: Hit, offer: usize) {
    if let Some(old) = up.offers.remove(offer).replaces {
        supersede(out, up, peer, old);
    }
}

/// Removes a path that has been replaced, and what that one was to replace, which has not been proven before.
pub(crate) fn supersede(out: &mut Output, up: &mut Association, peer: Hit, path: PathId) {
    let mut next = Some(path);
    while let Some(path) = next {
        next = up.offers.iter().find(|offer| offer.path == path).and_then(|offer| offer.replaces);
        remove(out, up, peer, path);
    }
}

/// Sends the peer's echo requests back (RFC 7401 §6.12.1).
fn echoes(mut builder: Builder, packet: &Packet<'_>) -> Builder {
    for parameter in packet.parameters() {
        if let Parameter::EchoRequestSigned(echo) = parameter {
            builder = builder.push(&Parameter::EchoResponseSigned(echo.clone()));
        }
    }
    builder
}

//! How a path is opened, verified and renewed (RFC 7402 §5.1.1, §6.8 to §6.10; RFC 8046 §5; RFC 8047 §4).
//!
//! ```text
//! opener                                                       other host
//!   ── ESP_INFO, LOCATOR_SET, SEQ n, ECHO_REQUEST ──────────────▶            from the new locator to the chosen one
//!   ◀────────── ESP_INFO, SEQ m, ACK n, ECHO_REQUEST, ECHO_RESPONSE ──       the opener may send from here on
//!   ── ACK m, ECHO_RESPONSE ────────────────────────────────────▶            and now the other host
//! ```
//!
//! Each of the two has seen its own nonce come back on that very route before it sends data there; until then the other
//! host sends at most three times what came from it. The Initiator of the association opens the paths, one after the
//! other, since Update IDs have to arrive in order.
//!
//! **Keys.** Between two Sinnets each of the first two packets has a DIFFIE_HELLMAN as well: the keys of a path are drawn
//! at index 0 of a KEYMAT of its own, which nobody keeps. So keys never run out, no key depends on what became of another
//! attempt, and those of a path that is renewed are gone for good. With other hosts keys are drawn from the KEYMAT of the
//! base exchange. The index in an offer only says where its sender would begin; the answer has the greater of that and
//! of where the other host would (RFC 7402 §6.8 to §6.10), and both draw there: the other host when it answers, the
//! opener when the answer comes. Either draws only behind all that it has drawn before, so that no key seals twice. An
//! attempt that nobody answered has taken nothing; what has been taken for an answer that got lost is 0.3 to 1.6 % of it,
//! and when a fifth is left a base exchange gives new ones (`rekey`).
//!
//! **Crossing.** Of two openings that cross and renew the same path (or where keys come from one KEYMAT, of any two)
//! that of the host with the greater HIT counts. It refuses the other's by an acknowledgment without ESP_INFO; the other
//! takes its own back when it sees the first. A refusal is an answer in any case: silence would be asked again. But who
//! has sent its own several times in vain refuses nothing for it: the peer's has come, so its route is the one that works.
//!
//! **Dead ends.** An opening that is not answered in time is sent again only where no other pair of locators waits that has
//! never been tried; it has its turn later.
//!
//! **Keys first.** An opening that has been sent several times in vain gives way to a renewal of other keys: those end.
//!
//! **Make before break.** The opener sends on a renewed path from the answer on, the other host when the opener has proved
//! it; each says then that the old one is down. What is still on its way there is taken by whoever holds the security
//! associations (crate `wedge`).

use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, DiffieHellman, EspInfo, Packet, PacketKind, Parameter, PeerPermission, TransportAddress};
use wire::{Hit, Spi};

use crate::association::{
    Association, CREDIT, Candidate, MAX_CANDIDATES, MAX_OFFERS, MAX_PATHS, Offer, Opening, Path, Phase, Retry,
    is_later, nonce,
};
use crate::config::Peer;
use crate::dh::EphemeralSecret;
use crate::event::Event;
use crate::exchange::{security_associations, unmapped};
use crate::host::{Host, Refusal, is_place};
use crate::keymat::EspKeyPair;
use crate::locators::{self, give_way, locators_in_use};
use crate::route::Route;
use crate::update::{Turn, conclude, remove, supersede};

/// When a renewal that the peer has refused is tried again.
const REFUSED: Duration = Duration::from_secs(8);
/// After this number of packets without an answer an opening is worth less than another.
const VAIN: u32 = 2;

/// The keys of a path, where they begin in KEYMAT, and our half of the exchange that they come from.
struct Agreed {
    keys: EspKeyPair,
    index: u16,
    public: Option<Parameter>,
}

/// A path that the peer opens or renews, before it is answered.
struct Accepted {
    /// What the answer says of it.
    own: EspInfo,
    keys: EspKeyPair,
    spi_out: Spi,
    replaces: Option<PathId>,
    /// The peer is known to receive there.
    is_known: bool,
    route: Route,
}

impl Host {
    /// Begins to open the next path, if one is wanted and its turn has come.
    pub(crate) fn open_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let hit = self.identity.hit();
        self.renew_first(now, peer);
        let Some(record) = self.peers.get_mut(&peer) else { return };
        let Phase::Up(up) = &mut record.phase else { return };
        // Without a path our locators go to where the peer was; a candidate that is due may be where the peer is.
        let is_due = |candidate: &Candidate| !candidate.stale && candidate.not_before <= now;
        if up.announcement.is_some() && up.initiator && up.paths.is_empty() && up.candidates.iter().any(is_due) {
            up.announce();
        }
        if let Some(announcement) = up.announcement.as_mut().filter(|_| !up.renewals.is_empty()) {
            // Keys that are to be renewed wait for it, and their path is in use. So it is not told as seldom as to nobody.
            announcement.retry.at = announcement.retry.at.min(now + self.config.max_retransmission);
        }
        if up.opening.is_some() || up.announcement.is_some() || !up.has_keys() {
            return;
        }
        let Some((route, replaces, old_spi)) = up.next_opening(now, &record.peer.locators) else { return };
        let spi_in = self.out.new_spi(rng);
        let secret = up.renews.then(|| {
            up.session.meter.agreement();
            Box::new(EphemeralSecret::generate(up.session.group, rng))
        });
        // RFC 7402 §5.1.1: 0 with a new Diffie-Hellman value.
        let index = if up.renews { 0 } else { up.session.keymat_next };
        let (seq, nonce) = (up.next_update_id(), nonce(rng));
        up.expose_offers();
        let builder = Builder::new(PacketKind::Update, hit, peer)
            .push(&Parameter::EspInfo(EspInfo { keymat_index: index, old_spi, new_spi: spi_in }))
            .push(&Parameter::LocatorSet(locators_in_use(up, &self.config, Some((route, spi_in)))))
            .push(&Parameter::Seq(seq))
            .push_some(secret.as_deref().map(public).as_ref())
            .push(&Parameter::EchoRequestSigned(nonce.clone()));
        let Ok(packet) = up.session.seal(builder, &self.identity, rng) else {
            // More locators than fit into a packet.
            self.out.spis.remove(&spi_in);
            return up.postpone(route, now, self.config.path_retry);
        };
        self.out.send(route, packet.clone());
        if replaces.is_none() {
            self.out.events.push_back(Event::Opening { peer, route });
        }
        let asked = up.asked.take().filter(|(path, _)| Some(*path) == replaces);
        let retry = asked.map_or_else(|| Retry::new(now, &self.config), |(_, retry)| retry);
        up.opening = Some(Opening { route, seq, nonce, secret, index, spi_in, packet, retry, replaces });
    }

    /// Where a renewal waits, an opening that seems to be in vain gives way.
    fn renew_first(&mut self, now: Instant, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        let is_vain =
            |opening: &Opening| opening.retry.tries > VAIN || opening.retry.tries == VAIN && opening.retry.at <= now;
        let Association { renewals, paths, .. } = &mut **up;
        renewals.retain(|id| paths.iter().any(|path| path.id == *id));
        if !up.renewals.is_empty() && up.opening.as_ref().is_some_and(is_vain) {
            give_way(&mut self.out, up, now, &self.config, 0, |_| true);
        }
    }

    /// Sends UPDATEs again, or gives a path up.
    pub(crate) fn retry_updates(&mut self, now: Instant, peer: Hit) {
        self.renew_first(now, peer);
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        up.expire(&mut self.out, peer, now);
        let tries = VAIN..self.config.max_update_tries;
        let asks_anew = |opening: &mut Opening| {
            opening.retry.at <= now && tries.contains(&opening.retry.tries) && opening.replaces.is_some()
        };
        if let Some(mut opening) = up.opening.take_if(asks_anew)
            && let Some(path) = opening.replaces
        {
            // Where a NAT has a new mapping the answer went to the old one, and is given again nowhere else. So it is
            // asked for under another Update ID.
            self.out.spis.remove(&opening.spi_in);
            opening.retry.again(now, &self.config);
            self.out.counters.retransmissions += 1;
            up.asked = Some((path, opening.retry));
            up.renewals.push_front(path);
        }
        if up.lets_untried_go_first(now)
            && let Some(opening) = up.opening.take()
        {
            self.out.spis.remove(&opening.spi_in);
            up.postpone(opening.route, now, self.config.path_retry);
        }
        if let Some(opening) = up.opening.as_mut().filter(|opening| opening.retry.at <= now) {
            if opening.retry.tries < self.config.max_update_tries {
                opening.retry.again(now, &self.config);
                self.out.send_again(opening.route, &opening.packet);
            } else {
                let (route, spi_in, replaces) = (opening.route, opening.spi_in, opening.replaces);
                up.opening = None;
                if replaces.is_some() {
                    // The peer may wait for our echo, and would renew nothing meanwhile.
                    up.announce();
                }
                self.out.spis.remove(&spi_in);
                up.postpone(route, now, self.config.path_retry);
                if up.paths.is_empty() && up.candidates.iter().all(|candidate| candidate.failures > 0) {
                    return self.forget_unreachable(peer);
                }
            }
        }
        let mut lost = Vec::new();
        for offer in up.offers.iter_mut().filter(|offer| offer.retry.at <= now) {
            // Twice as patient as who opens: it may have the path up already, and only its echo is lost.
            if offer.retry.tries >= 2 * self.config.max_update_tries {
                lost.push(offer.path);
                continue;
            }
            offer.retry.again(now, &self.config);
            if let Some(left) = offer.credit.checked_sub(offer.packet.len()).filter(|_| !offer.packet.is_empty()) {
                offer.credit = left;
                self.out.send_again(offer.route, &offer.packet);
            }
        }
        for path in lost {
            remove(&mut self.out, up, peer, path);
            up.announce();
        }
        up.retry_moves(&mut self.out, now, &self.config);
    }
}

impl Turn<'_> {
    /// The peer's echo has come back from where our offer went.
    pub(crate) fn proved(&mut self, up: &mut Association, index: usize) {
        let Some(path) = up.offers.get(index).map(|offer| offer.path) else { return };
        if let Some(path) = up.paths.iter_mut().find(|other| other.id == path) {
            path.verified = true;
        }
        self.out.events.push_back(Event::PathVerified { peer: self.peer, path });
        conclude(self.out, up, self.peer, index);
    }

    /// The peer has answered our UPDATE: the path is there, or is refused.
    pub(crate) fn complete(&mut self, up: &mut Association, packet: &Packet<'_>) -> Result<bool, Refusal> {
        let Some(opening) = up.opening.take() else { return Err(Refusal::Unexpected) };
        let esp = packet.esp_info().copied().filter(|esp| esp.new_spi.0 > 255);
        let keys = esp.and_then(|esp| self.agree(up, &opening, packet, esp.keymat_index));
        let (Some(esp), Some(keys)) = (esp, keys) else {
            self.out.counters.refused_by_peer += 1;
            self.out.spis.remove(&opening.spi_in);
            up.postpone(opening.route, self.now, self.config.path_retry);
            if let Some(path) = up.paths.iter_mut().find(|path| Some(path.id) == opening.replaces) {
                path.renew_at = self.now + REFUSED;
                path.refused_until = self.now + self.config.retransmission;
            }
            return Ok(false);
        };
        let overtaken = up.announced.as_ref().filter(|(seq, _)| packet.seq().is_some_and(|own| is_later(*seq, *own)));
        let told = overtaken.map(|(_, set)| set.clone()).unwrap_or_default();
        let by_spi = told.iter().any(|locator| locator.spi.is_some());
        if by_spi && !told.iter().any(|locator| locator.spi == Some(esp.new_spi)) {
            // What the peer has said after this answer does not have the path any more.
            self.out.spis.remove(&opening.spi_in);
            up.postpone(opening.route, self.now, self.config.path_retry);
            return Err(Refusal::Unexpected);
        }
        if let Some(candidate) = up.candidates.iter_mut().find(|candidate| candidate.route == opening.route) {
            candidate.failures = 0;
        }
        let spis = (opening.spi_in, esp.new_spi);
        self.up_path(up, opening.route, keys, spis, true);
        locators::take(self.out, up, self.peer, &told, None);
        let by_relay = up.paths.iter().find(|path| Some(path.route) == up.relay).map(|path| path.id);
        if let Some(old) = opening.replaces {
            supersede(self.out, up, self.peer, old);
        } else if let Some(path) = by_relay.filter(|_| Some(opening.route) != up.relay) {
            // It is needed no more.
            remove(self.out, up, self.peer, path);
            up.announce();
        } else if let Some(needless) = up.needless_path() {
            remove(self.out, up, self.peer, needless);
            up.announce();
        }
        Ok(true)
    }

    /// The keys of a path that the peer has answered, if they can be agreed on.
    fn agree(
        &mut self,
        up: &mut Association,
        opening: &Opening,
        packet: &Packet<'_>,
        answered: u16,
    ) -> Option<EspKeyPair> {
        let hit = self.identity.hit();
        match (&opening.secret, packet.diffie_hellman()) {
            (Some(secret), Some(theirs)) if theirs.group == up.session.group.number() => {
                up.session.meter.agreement();
                let kij = secret.agree(&theirs.public).ok()?;
                up.session.fresh_esp(&kij, hit).map(|(keys, ..)| keys)
            }
            (None, None) => {
                // RFC 7402 §6.10: the greater of the two.
                let keys = up.session.draw_esp(answered.max(opening.index), hit);
                up.drawn(self.now);
                keys
            }
            _ => None,
        }
    }

    /// A new path, and its event.
    fn up_path(
        &mut self,
        up: &mut Association,
        route: Route,
        keys: EspKeyPair,
        (spi_in, spi_out): (Spi, Spi),
        verified: bool,
    ) -> PathId {
        let renew_at = up.renewal_time(self.now, self.config);
        let refused_until = Instant::ZERO;
        let id = PathId(0);
        let path = up.add_path(Path {
            id,
            route,
            spi_in,
            spi_out,
            backup: false,
            deprecated: false,
            spare: false,
            verified,
            renew_at,
            refused_until,
            stranded: false,
        });
        let (outbound, inbound) = security_associations(up.session.suite, keys, (spi_in, spi_out), self.config.keylog);
        self.out.events.push_back(Event::PathUp { peer: self.peer, path, route, outbound, inbound, verified });
        path
    }

    /// The keys of a path that the peer opens, from where it begins in KEYMAT and behind what may be drawn there.
    fn keys_for(
        &mut self,
        up: &mut Association,
        packet: &Packet<'_>,
        (offered, skip): (u16, u16),
    ) -> Result<Agreed, Refusal> {
        let hit = self.identity.hit();
        let Some(theirs) = packet.diffie_hellman() else {
            let index = offered.max(up.session.keymat_next).saturating_add(skip);
            let keys = Some(index).filter(|_| up.has_keys()).and_then(|index| up.session.draw_esp(index, hit));
            up.drawn(self.now);
            return Ok(Agreed { keys: keys.ok_or(Refusal::Syntax)?, index, public: None });
        };
        if offered != 0 {
            // RFC 7402 §6.9.
            return Err(Refusal::Syntax);
        }
        if theirs.group != up.session.group.number() {
            return Err(Refusal::Group);
        }
        (0..2).for_each(|_| up.session.meter.agreement());
        let secret = EphemeralSecret::generate(up.session.group, self.rng);
        let kij = secret.agree(&theirs.public).map_err(|_| Refusal::DiffieHellman)?;
        let (keys, keymat, next) = up.session.fresh_esp(&kij, hit).ok_or(Refusal::Syntax)?;
        if !up.renews {
            (up.session.keymat, up.session.keymat_next) = (keymat, next);
        }
        Ok(Agreed { keys, index: 0, public: Some(public(&secret)) })
    }

    /// Of two openings that cross one has to give way. How much of KEYMAT the peer may have drawn for ours.
    fn settle_crossing(&mut self, up: &mut Association, replaces: Option<PathId>) -> Result<u16, Refusal> {
        let counts = |opening: &Opening| !up.renews || replaces.is_some() && opening.replaces == replaces;
        let greater = self.identity.hit() > self.peer;
        let Some(own) = up.opening.take_if(|own| counts(own) && (!greater || own.retry.tries > VAIN)) else {
            return if up.opening.as_ref().is_some_and(counts) { Err(Refusal::Crossed) } else { Ok(0) };
        };
        self.out.spis.remove(&own.spi_in);
        let other = own.replaces.filter(|path| Some(*path) != replaces);
        other.into_iter().for_each(|path| up.renewals.push_front(path));
        if own.retry.tries > 1 && own.replaces.is_none() {
            // Or the next would be the same, and no other have its turn.
            up.postpone(own.route, self.now, self.config.path_retry);
        }
        if !greater {
            return Ok(0);
        }
        // The peer may have taken ours, and has to hear that it is none.
        up.announce();
        Ok(if up.renews { 0 } else { up.session.pair_len() })
    }

    /// The peer opens paths, or renews them: their security associations, and the answer. There is one ESP_INFO for each, in the
    /// peer's order; a path that is elsewhere than where the packet came from is asked for there.
    pub(crate) fn accept(
        &mut self,
        up: &mut Association,
        known: &Peer,
        packet: &Packet<'_>,
        infos: &[EspInfo],
        seq: u32,
    ) -> Result<Vec<u8>, Refusal> {
        let (hit, peer, route) = (self.identity.hit(), self.peer, self.route);
        if up.offers.len() + infos.len() > MAX_OFFERS || up.paths.len() + infos.len() > MAX_PATHS {
            return Err(Refusal::TooMany);
        }
        if infos.len() > 1 && packet.diffie_hellman().is_some() {
            // The keys of one pair follow from an exchange (RFC 7402 §6.10).
            return Err(Refusal::Syntax);
        }
        let behind = self.out.behind;
        if behind.is_some_and(|behind| !behind.carries) || behind.is_some() && infos.len() > 1 {
            // The relay carries no data of ours.
            return Err(Refusal::Unexpected);
        }
        let (accepted, public) = self.all_keyed(up, known, packet, infos)?;
        let (ours, nonce) = (up.update_id, nonce(self.rng));
        let is_here = accepted.iter().any(|one| one.route == route);
        let mut builder = Builder::new(PacketKind::Update, hit, peer);
        for one in &accepted {
            builder = builder.push(&Parameter::EspInfo(one.own));
        }
        let builder = builder
            .push_some(is_here.then_some(Parameter::Seq(ours)).as_ref())
            .push(&Parameter::Ack(vec![seq]))
            .push_some(public.as_ref())
            .push_some(is_here.then(|| Parameter::EchoRequestSigned(nonce.clone())).as_ref());
        self.permission = behind.zip(accepted.first()).map(|(behind, one)| PeerPermission {
            relay: TransportAddress::udp(route.remote),
            peer: TransportAddress::udp(behind.place),
            outbound: one.spi_out,
            inbound: one.own.new_spi,
        });
        let answer = self.seal_answer(&up.session, builder, packet).inspect_err(|_| {
            accepted.iter().for_each(|one| _ = self.out.spis.remove(&one.own.new_spi));
        })?;
        if is_here {
            up.next_update_id();
        }
        // Where the peer opens a route anew it has lost the path that was there.
        let opens = |route: Route| accepted.iter().any(|one| one.replaces.is_none() && one.route == route);
        let stale: Vec<PathId> = up.paths.iter().filter(|path| opens(path.route)).map(|path| path.id).collect();
        stale.into_iter().for_each(|path| remove(self.out, up, peer, path));
        self.offer(up, accepted, (ours, nonce, &answer), seq, CREDIT * packet.bytes().len())?;
        if !self.config.backups.is_empty() {
            // The answer has no room for a preference of ours.
            up.announce();
        }
        Ok(answer)
    }

    /// What the peer opens or renews, each with its keys, and our half of an exchange if there is one; nothing where one is refused.
    fn all_keyed(
        &mut self,
        up: &mut Association,
        known: &Peer,
        packet: &Packet<'_>,
        infos: &[EspInfo],
    ) -> Result<(Vec<Accepted>, Option<Parameter>), Refusal> {
        let mut accepted: Vec<Accepted> = Vec::new();
        let mut public = None;
        for esp in infos {
            let place = if infos.len() > 1 { self.place_of(known, packet, esp.new_spi) } else { self.route };
            match self.keyed(up, packet, esp, place) {
                Ok((one, half)) => {
                    accepted.push(one);
                    public = public.or(half);
                }
                Err(refusal) => {
                    accepted.iter().for_each(|one| _ = self.out.spis.remove(&one.own.new_spi));
                    return Err(refusal);
                }
            }
        }
        Ok((accepted, public))
    }

    /// The accepted paths wait for the peer's acknowledgment, for which the answer asks by its number and nonce, or for one that
    /// is asked for at a path's own place. For so many bytes there is credit.
    fn offer(
        &mut self,
        up: &mut Association,
        accepted: Vec<Accepted>,
        (ours, nonce, answer): (u32, Vec<u8>, &[u8]),
        asked: u32,
        credit: usize,
    ) -> Result<(), Refusal> {
        let mut left = credit;
        let mut is_first = true;
        for one in accepted {
            let Accepted { own, keys, spi_out, replaces, is_known, route } = one;
            let path = self.up_path(up, route, keys, (own.new_spi, spi_out), false);
            let is_here = route == self.route;
            let (seq, nonce, packet) = if is_here {
                // It goes out, and is sent again, once for all.
                let packet = if std::mem::take(&mut is_first) { answer.to_vec() } else { Vec::new() };
                (ours, nonce.clone(), packet)
            } else {
                self.ask_there(up, route, own.new_spi, &mut left)?
            };
            let credit = match (is_here, is_known) {
                (false, _) => 0,
                (true, true) => usize::MAX,
                (true, false) => credit.saturating_sub(packet.len()),
            };
            let retry = Retry::new(self.now, self.config);
            // Elsewhere its SPI is told with the question.
            let exposed = !is_here;
            up.offers.push(Offer { path, route, seq, nonce, packet, retry, replaces, asked, credit, exposed });
        }
        Ok(())
    }

    /// Asks the peer at the place of a path that it opens from elsewhere, as long as there is credit for it.
    fn ask_there(
        &mut self,
        up: &mut Association,
        place: Route,
        spi: Spi,
        left: &mut usize,
    ) -> Result<(u32, Vec<u8>, Vec<u8>), Refusal> {
        let (seq, nonce) = (up.next_update_id(), nonce(self.rng));
        let own = EspInfo { keymat_index: up.session.keymat_next, old_spi: spi, new_spi: spi };
        let builder = Builder::new(PacketKind::Update, self.identity.hit(), self.peer)
            .push(&Parameter::EspInfo(own))
            .push(&Parameter::Seq(seq))
            .push(&Parameter::EchoRequestSigned(nonce.clone()));
        let question = self.seal(&up.session, builder)?;
        if let Some(rest) = left.checked_sub(question.len()) {
            *left = rest;
            self.out.send(place, question.clone());
        }
        Ok((seq, nonce, question))
    }

    /// Where the path of an SPI is that the peer opens together with others: at the locator that has the SPI, or else here.
    fn place_of(&self, known: &Peer, packet: &Packet<'_>, spi: Spi) -> Route {
        let bound = packet.locator_set().into_iter().flatten().find(|locator| locator.spi == Some(spi));
        let address = bound.map(|locator| unmapped(locator.address));
        let fits = |address: &IpAddr| address.is_ipv4() == self.route.local.is_ipv4() && is_place(*address, known);
        let remote = address.filter(fits).map(|address| (address, self.route.remote.port()).into());
        remote.map_or(self.route, |remote| Route { remote, ..self.route })
    }

    /// One path that the peer opens or renews, with its keys, and our half of an exchange if there is one.
    fn keyed(
        &mut self,
        up: &mut Association,
        packet: &Packet<'_>,
        esp: &EspInfo,
        route: Route,
    ) -> Result<(Accepted, Option<Parameter>), Refusal> {
        let replaced = up.paths.iter().find(|path| esp.old_spi.0 != 0 && path.spi_out == esp.old_spi);
        let (replaces, old_spi) = (replaced.map(|path| path.id), replaced.map_or(Spi(0), |path| path.spi_in));
        // A peer that has proved that it receives here gets as many answers as it takes; from elsewhere it is as new.
        let is_known = replaced.is_some_and(|path| path.verified && path.route == route);
        if esp.old_spi.0 != 0 && replaces.is_none() {
            // The peer takes for a path what is none here any more: it has to hear that, before an opening in vain ends.
            give_way(self.out, up, self.now, self.config, VAIN - 1, |_| true);
            up.announce();
            return Err(Refusal::Malformed);
        }
        if esp.new_spi.0 < 256 {
            return Err(Refusal::Malformed);
        }
        let skip = self.settle_crossing(up, replaces)?;
        // Who asks again has given up what it asked for before.
        let earlier = up.offers.iter().filter(|offer| replaces.is_some() && offer.replaces == replaces);
        let earlier: Vec<PathId> = earlier.map(|offer| offer.path).collect();
        earlier.into_iter().for_each(|path| remove(self.out, up, self.peer, path));
        let Agreed { keys, index, public } = self.keys_for(up, packet, (esp.keymat_index, skip))?;
        let own = EspInfo { keymat_index: index, old_spi, new_spi: self.out.new_spi(self.rng) };
        Ok((Accepted { own, keys, spi_out: esp.new_spi, replaces, is_known, route }, public))
    }
}

/// Our half of an exchange.
fn public(secret: &EphemeralSecret) -> Parameter {
    Parameter::DiffieHellman(DiffieHellman { group: secret.group().number(), public: secret.public_value() })
}

impl Association {
    /// Leaves a route alone for a while: twice as long after each failure.
    pub(crate) fn postpone(&mut self, route: Route, now: Instant, first: clock::Duration) {
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.route == route) {
            candidate.not_before = now + first * (1 << candidate.failures.min(6));
            candidate.failures = candidate.failures.saturating_add(1);
        }
    }

    /// Whether the opening was not answered in time, and a pair of locators that has never been tried waits behind it. Many
    /// lead nowhere, as those of the bridges of containers.
    fn lets_untried_go_first(&self, now: Instant) -> bool {
        let due = self.opening.as_ref().filter(|opening| opening.retry.at <= now && opening.replaces.is_none());
        let Some(opening) = due else { return false };
        let is_untried = |other: &Candidate| other.failures == 0 && !other.stale && other.not_before <= now;
        self.free_candidates().any(|(_, other)| is_untried(other) && other.route != opening.route)
    }

    /// What to open next: its route, the path whose keys it renews, and that path's SPI. New keys come first, but not those
    /// of a path to where the peer is not said to be any more, before where it is said to be was tried once: it may not
    /// answer, and behind a NAT the peer cannot reach us until we have sent something there.
    fn next_opening(&mut self, now: Instant, said: &[SocketAddr]) -> Option<(Route, Option<PathId>, Spi)> {
        let is_said = |route: &Route| said.iter().any(|locator| locator.ip() == route.remote.ip());
        let renewal = self.renewals.front().and_then(|id| self.paths.iter().find(|path| path.id == *id));
        let left = renewal.is_some_and(|path| !is_said(&path.route));
        let fresh = self.due_candidate(now).and_then(|index| self.candidates.get(index));
        let fresh =
            fresh.map(|new| (new.failures == 0 && !new.stale && is_said(&new.route), (new.route, None, Spi(0))));
        if let Some((true, new)) = fresh.filter(|_| left) {
            return Some(new);
        }
        let renewal = self.next_renewal().map(|path| (path.route, Some(path.id), path.spi_in));
        renewal.or(fresh.map(|(_, new)| new))
    }

    pub(crate) fn learn(&mut self, routes: Vec<Route>, now: Instant) {
        for route in routes {
            let known = self.candidates.iter().any(|candidate| candidate.route == route);
            if !known && self.candidates.len() < MAX_CANDIDATES {
                let stale = self.candidates.iter().any(|other| other.route.remote == route.remote && other.stale);
                self.candidates.push(Candidate { stale, ..Candidate::new(route, now) });
            }
        }
    }
}

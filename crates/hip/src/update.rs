//! UPDATE: paths are opened, verified and renewed (RFC 7401 §6.11, §6.12; RFC 7402 §5.1.1, §6.8 to §6.10; RFC 8046 §5;
//! RFC 8047 §4).
//!
//! ```text
//! opener                                                       other host
//!   ── ESP_INFO, LOCATOR_SET, SEQ n, ECHO_REQUEST ──────────────▶            from the new locator to the chosen one
//!   ◀────────── ESP_INFO, SEQ m, ACK n, ECHO_REQUEST, ECHO_RESPONSE ──       the opener may send from here on
//!   ── ACK m, ECHO_RESPONSE ────────────────────────────────────▶            and now the other host
//! ```
//!
//! Each of the two has seen its own nonce come back on that very route before it sends data there. The Initiator of the
//! association opens the paths, one after the other, since Update IDs have to arrive in order.

use std::net::IpAddr;

use clock::Instant;
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, EspInfo, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

use crate::association::{Announcement, Association, Candidate, Offer, Opening, Phase, Retry, nonce};
use crate::config::HostConfig;
use crate::event::Event;
use crate::exchange::{security_associations, unmapped};
use crate::host::{Host, Output, Refusal, routes};
use crate::identity::HostIdentity;
use crate::keymat::EspKeyPair;
use crate::locators::{self, give_way, locators_in_use};
use crate::route::Route;
use crate::session::Session;

impl Host {
    /// Tells that a valid ESP packet has come in on a path that was not verified. Its SPI was told to that route only,
    /// so the peer has got it there (RFC 8046 §5.4).
    pub fn path_proved(&mut self, peer: Hit, path: PathId) {
        if let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) {
            up.confirmed = true;
            up.offers.retain(|offer| offer.path != path);
        }
    }

    /// Gives a path new keys and new SPIs, as before its sequence numbers end. A path with another number comes up on
    /// the same route, then this one goes down.
    pub fn renew_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit, path: PathId) {
        if let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase)
            && up.paths.iter().any(|other| other.id == path)
            && !up.renewals.contains(&path)
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
        }
    }

    pub(crate) fn on_update(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (hit, peer) = (self.identity.hit(), packet.sender());
        let record = self.peers.get_mut(&peer).ok_or(Refusal::Unexpected)?;
        let Phase::Up(up) = &mut record.phase else { return Err(Refusal::Unexpected) };
        up.session.check(packet)?;
        up.confirmed = true;

        let acks = packet.ack().map_or(&[][..], Vec::as_slice);
        let echoed = |nonce: &Vec<u8>| {
            packet
                .parameters()
                .any(|parameter| matches!(parameter, Parameter::EchoResponseSigned(echo) if echo == nonce))
        };
        if let Some(index) = up.offers.iter().position(|offer| acks.contains(&offer.seq) && echoed(&offer.nonce)) {
            let offer = up.offers.remove(index);
            self.out.events.push_back(Event::PathVerified { peer, path: offer.path });
            if let Some(old) = offer.replaces {
                remove(&mut self.out, up, peer, old);
            }
        }
        let opened = match &up.opening {
            Some(opening) if acks.contains(&opening.seq) && echoed(&opening.nonce) && opening.route == route => {
                complete(&mut self.out, up, now, &self.config, packet)?;
                true
            }
            _ => false,
        };

        let heard = |telling: &Announcement| acks.iter().any(|ack| telling.seqs.contains(ack));
        if up.announcement.as_ref().is_some_and(heard) {
            up.announcement = None;
        }

        let Some(&seq) = packet.seq() else {
            self.open_paths(now, rng, peer);
            return Ok(());
        };
        if up.peer_update_id.is_some_and(|last| seq <= last) {
            if let Some((_, answer)) = up.answers.iter().find(|(old, _)| *old == seq) {
                self.out.send_again(route, answer);
            } else if opened {
                // Overtaken on the way by a later UPDATE: the peer still waits for its echo.
                let builder = Builder::new(PacketKind::Update, hit, peer).push(&Parameter::Ack(vec![seq]));
                let answer = seal(&up.session, echoes(builder, packet), &self.identity, rng)?;
                self.out.send(route, answer);
            }
            self.open_paths(now, rng, peer);
            return Err(Refusal::Replayed);
        }
        let answer = match packet.esp_info() {
            Some(esp) if !opened => {
                // An answer to an UPDATE of ours that was given up: without our echo the peer forgets the path.
                if packet.ack().is_some() || packet.diffie_hellman().is_some() {
                    return Err(Refusal::Unexpected);
                }
                let answer = accept(&mut self.out, up, now, rng, &self.identity, &self.config, route, packet, esp)?;
                if let Some(set) = packet.locator_set() {
                    locators::take(&mut self.out, up, peer, set, false);
                }
                answer
            }
            _ => {
                if let Some(set) = packet.locator_set() {
                    locators::take(&mut self.out, up, peer, set, !opened);
                    if !opened {
                        up.told = Some((seq, set.clone()));
                    }
                }
                if up.initiator
                    && let Some(set) = packet.locator_set()
                {
                    let learned: Vec<_> = set.iter().map(|locator| unmapped(locator.address)).collect();
                    if !opened {
                        up.review_remotes(&record.peer.locators, &learned, now, self.config.path_retry);
                        // An address without a path is better tried at once than any pair that shares its ends.
                        let opening = up.opening.as_ref().map(|opening| opening.route.remote.ip());
                        let used = |remote: &IpAddr| {
                            opening == Some(*remote) || up.paths.iter().any(|path| path.route.remote.ip() == *remote)
                        };
                        let tries = u32::from(learned.iter().all(used));
                        give_way(&mut self.out, up, now, &self.config, tries, |remote| learned.contains(&remote));
                    }
                    up.learn(routes(&self.config, &record.peer, &learned), now);
                }
                let builder =
                    echoes(Builder::new(PacketKind::Update, hit, peer).push(&Parameter::Ack(vec![seq])), packet);
                up.session.seal(builder, &self.identity, rng).map_err(|_| Refusal::Malformed)?
            }
        };
        self.out.send(route, answer.clone());
        up.remember(seq, answer);
        self.open_paths(now, rng, peer);
        Ok(())
    }

    /// As Initiator: begins to open the next path, if one is wanted and its turn has come. Then, and as Responder, tells
    /// the peer our locators where there is news.
    pub(crate) fn open_paths(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        self.open_path(now, rng, peer);
        self.announce_locators(now, rng, peer);
    }

    fn open_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let hit = self.identity.hit();
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if up.opening.is_some() || up.announcement.is_some() {
            return;
        }
        let renewal = up.renewals.pop_front().and_then(|id| up.paths.iter().find(|path| path.id == id));
        let (route, replaces, old_spi) = match (renewal, up.due_candidate(now)) {
            (Some(path), _) => (path.route, Some(path.id), path.spi_in),
            (None, Some(index)) => (up.candidates[index].route, None, Spi(0)),
            (None, None) => return,
        };
        let spi_in = self.out.new_spi(rng);
        let esp_index = up.session.keymat_next;
        up.update_id = up.update_id.wrapping_add(1);
        let (seq, nonce) = (up.update_id, nonce(rng));
        let builder = Builder::new(PacketKind::Update, hit, peer)
            .push(&Parameter::EspInfo(EspInfo { keymat_index: esp_index, old_spi, new_spi: spi_in }))
            .push(&Parameter::LocatorSet(locators_in_use(up, &self.config, Some((route, spi_in)))))
            .push(&Parameter::Seq(seq))
            .push(&Parameter::EchoRequestSigned(nonce.clone()));
        let keys = up.session.draw_esp(esp_index, hit);
        let (Some(keys), Ok(packet)) = (keys, up.session.seal(builder, &self.identity, rng)) else {
            // The KEYMAT has ended: only a new base exchange gives more keys.
            self.out.spis.remove(&spi_in);
            up.candidates.clear();
            up.renewals.clear();
            return;
        };
        self.out.send(route, packet.clone());
        let retry = Retry::new(now, &self.config);
        up.opening = Some(Opening { route, seq, nonce, keys, spi_in, packet, retry, replaces });
    }

    /// Sends UPDATEs again, or gives a path up.
    pub(crate) fn retry_updates(&mut self, now: Instant, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if let Some(opening) = up.opening.as_mut().filter(|opening| opening.retry.at <= now) {
            if opening.retry.tries < self.config.max_update_tries {
                opening.retry.again(now, &self.config);
                self.out.send_again(opening.route, &opening.packet);
            } else {
                let (route, spi_in) = (opening.route, opening.spi_in);
                up.opening = None;
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
            if offer.retry.tries < 2 * self.config.max_update_tries {
                offer.retry.again(now, &self.config);
                self.out.send_again(offer.route, &offer.packet);
            } else {
                lost.push(offer.path);
            }
        }
        for path in lost {
            remove(&mut self.out, up, peer, path);
            up.announce();
        }
    }
}

/// The peer has answered our UPDATE: the path is there.
fn complete(
    out: &mut Output,
    up: &mut Association,
    now: Instant,
    config: &HostConfig,
    packet: &Packet<'_>,
) -> Result<(), Refusal> {
    let peer = packet.sender();
    let esp = *packet.esp_info().filter(|esp| esp.new_spi.0 > 255).ok_or(Refusal::Malformed)?;
    let Some(opening) = up.opening.take() else { return Err(Refusal::Unexpected) };
    let overtaken = up.told.as_ref().filter(|(seq, _)| packet.seq().is_some_and(|own| own < seq));
    let told = overtaken.map(|(_, set)| set.clone()).unwrap_or_default();
    let by_spi = told.iter().any(|locator| locator.spi.is_some());
    if by_spi && !told.iter().any(|locator| locator.spi == Some(esp.new_spi)) {
        // What the peer has said after this answer does not have the path any more.
        out.spis.remove(&opening.spi_in);
        up.postpone(opening.route, now, config.path_retry);
        return Err(Refusal::Unexpected);
    }
    if let Some(candidate) = up.candidates.iter_mut().find(|candidate| candidate.route == opening.route) {
        candidate.failures = 0;
    }
    up_path(out, up, peer, opening.route, opening.keys, esp.new_spi, opening.spi_in, true);
    locators::take(out, up, peer, &told, false);
    if let Some(old) = opening.replaces {
        remove(out, up, peer, old);
    } else if let Some(needless) = up.needless_path() {
        remove(out, up, peer, needless);
        up.announce();
    }
    Ok(())
}

/// The peer opens a path, or renews one: its security associations, and the answer.
#[allow(clippy::too_many_arguments, reason = "the parts of a host that an answer is made of")]
fn accept(
    out: &mut Output,
    up: &mut Association,
    now: Instant,
    rng: &mut dyn CryptoRng,
    identity: &HostIdentity,
    config: &HostConfig,
    route: Route,
    packet: &Packet<'_>,
    esp: &EspInfo,
) -> Result<Vec<u8>, Refusal> {
    let (hit, peer) = (identity.hit(), packet.sender());
    let seq = *packet.seq().ok_or(Refusal::Malformed)?;
    let replaced = up.paths.iter().find(|path| esp.old_spi.0 != 0 && path.spi_out == esp.old_spi);
    let (replaces, old_spi) = (replaced.map(|path| path.id), replaced.map_or(Spi(0), |path| path.spi_in));
    if esp.old_spi.0 != 0 && replaces.is_none() || esp.new_spi.0 < 256 {
        return Err(Refusal::Malformed);
    }
    let keys = up.session.draw_esp(esp.keymat_index, hit).ok_or(Refusal::Malformed)?;
    let spi_in = out.new_spi(rng);
    let ours = up.update_id.wrapping_add(1);
    let nonce = nonce(rng);
    let builder = Builder::new(PacketKind::Update, hit, peer)
        .push(&Parameter::EspInfo(EspInfo { keymat_index: esp.keymat_index, old_spi, new_spi: spi_in }))
        .push(&Parameter::Seq(ours))
        .push(&Parameter::Ack(vec![seq]))
        .push(&Parameter::EchoRequestSigned(nonce.clone()));
    let answer = seal(&up.session, echoes(builder, packet), identity, rng).inspect_err(|_| {
        out.spis.remove(&spi_in);
    })?;
    up.update_id = ours;
    // Where the peer opens a route anew it has lost the path that was there.
    let stale: Vec<PathId> =
        up.paths.iter().filter(|path| path.route == route && replaces.is_none()).map(|path| path.id).collect();
    stale.into_iter().for_each(|path| remove(out, up, peer, path));
    let path = up_path(out, up, peer, route, keys, esp.new_spi, spi_in, replaces.is_some());
    let retry = Retry::new(now, config);
    if !config.backups.is_empty() {
        // The answer has no room for a preference of ours.
        up.announce();
    }
    up.offers.push(Offer { path, route, seq: ours, nonce, packet: answer.clone(), retry, replaces });
    Ok(answer)
}

fn seal(
    session: &Session,
    builder: Builder,
    identity: &HostIdentity,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<u8>, Refusal> {
    session.seal(builder, identity, rng).map_err(|_| Refusal::Malformed)
}

/// A new path, and the news of it.
#[allow(clippy::too_many_arguments, reason = "what a path is made of")]
fn up_path(
    out: &mut Output,
    up: &mut Association,
    peer: Hit,
    route: Route,
    keys: EspKeyPair,
    spi_out: Spi,
    spi_in: Spi,
    verified: bool,
) -> PathId {
    let path = up.add_path(route, spi_in, spi_out);
    let (outbound, inbound) = security_associations(up.session.suite, keys.outbound, spi_out, keys.inbound, spi_in);
    out.events.push_back(Event::PathUp { peer, path, route, outbound, inbound, verified });
    path
}

pub(crate) fn remove(out: &mut Output, up: &mut Association, peer: Hit, path: PathId) {
    if let Some(index) = up.paths.iter().position(|other| other.id == path) {
        let gone = up.paths.remove(index);
        out.spis.remove(&gone.spi_in);
        up.remember_remote(gone.route.remote);
        up.offers.retain(|offer| offer.path != path);
        out.events.push_back(Event::PathDown { peer, path });
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

impl Association {
    /// Leaves a route alone for a while: twice as long after each failure.
    pub(crate) fn postpone(&mut self, route: Route, now: Instant, first: clock::Duration) {
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.route == route) {
            candidate.not_before = now + first * (1 << candidate.failures.min(6));
            candidate.failures += 1;
        }
    }

    pub(crate) fn learn(&mut self, routes: Vec<Route>, now: Instant) {
        for route in routes {
            if !self.candidates.iter().any(|candidate| candidate.route == route) {
                let stale = self.candidates.iter().any(|other| other.route.remote == route.remote && other.stale);
                self.candidates.push(Candidate { route, failures: 0, not_before: now, stale });
            }
        }
    }
}

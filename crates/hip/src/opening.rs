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

use clock::Instant;
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, EspInfo, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

use crate::association::{
    Association, CREDIT, Candidate, MAX_CANDIDATES, MAX_OFFERS, MAX_PATHS, Offer, Opening, Phase, Retry, nonce,
};
use crate::event::Event;
use crate::exchange::security_associations;
use crate::host::{Host, Output, Refusal};
use crate::keymat::EspKeyPair;
use crate::locators::{self, locators_in_use};
use crate::route::Route;
use crate::update::{Turn, echoes, remove};

impl Host {
    /// Begins to open the next path, if one is wanted and its turn has come.
    pub(crate) fn open_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
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
        up.expose_offers();
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
            if offer.retry.tries >= 2 * self.config.max_update_tries {
                lost.push(offer.path);
                continue;
            }
            offer.retry.again(now, &self.config);
            if let Some(left) = offer.credit.checked_sub(offer.packet.len()) {
                offer.credit = left;
                self.out.send_again(offer.route, &offer.packet);
            }
        }
        for path in lost {
            remove(&mut self.out, up, peer, path);
            up.announce();
        }
    }
}

impl Turn<'_> {
    /// The peer's echo has come back from where our offer went.
    pub(crate) fn proved(&mut self, up: &mut Association, index: usize) {
        let offer = up.offers.remove(index);
        if let Some(path) = up.paths.iter_mut().find(|path| path.id == offer.path) {
            path.verified = true;
        }
        self.out.events.push_back(Event::PathVerified { peer: self.peer, path: offer.path });
        if let Some(old) = offer.replaces {
            remove(self.out, up, self.peer, old);
        }
    }

    /// The peer has answered our UPDATE: the path is there.
    pub(crate) fn complete(&mut self, up: &mut Association, packet: &Packet<'_>) -> Result<(), Refusal> {
        let esp = *packet.esp_info().filter(|esp| esp.new_spi.0 > 255).ok_or(Refusal::Malformed)?;
        let Some(opening) = up.opening.take() else { return Err(Refusal::Unexpected) };
        let overtaken = up.told.as_ref().filter(|(seq, _)| packet.seq().is_some_and(|own| own < seq));
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
        up_path(self.out, up, self.peer, opening.route, opening.keys, spis, true);
        locators::take(self.out, up, self.peer, &told, false);
        if let Some(old) = opening.replaces {
            remove(self.out, up, self.peer, old);
        } else if let Some(needless) = up.needless_path() {
            remove(self.out, up, self.peer, needless);
            up.announce();
        }
        Ok(())
    }

    /// The peer opens a path, or renews one: its security associations, and the answer.
    pub(crate) fn accept(
        &mut self,
        up: &mut Association,
        packet: &Packet<'_>,
        esp: &EspInfo,
        seq: u32,
    ) -> Result<Vec<u8>, Refusal> {
        let (hit, peer, route) = (self.identity.hit(), self.peer, self.route);
        if up.offers.len() >= MAX_OFFERS || up.paths.len() >= MAX_PATHS {
            return Err(Refusal::TooMany);
        }
        let replaced = up.paths.iter().find(|path| esp.old_spi.0 != 0 && path.spi_out == esp.old_spi);
        let (replaces, old_spi) = (replaced.map(|path| path.id), replaced.map_or(Spi(0), |path| path.spi_in));
        // Who has proved that it receives at a route need not do it again; to renew a path from elsewhere proves nothing.
        let verified = replaced.is_some_and(|path| path.verified && path.route == route);
        if esp.old_spi.0 != 0 && replaces.is_none() || esp.new_spi.0 < 256 {
            return Err(Refusal::Malformed);
        }
        let keys = up.session.draw_esp(esp.keymat_index, hit).ok_or(Refusal::Malformed)?;
        let spi_in = self.out.new_spi(self.rng);
        let ours = up.update_id.wrapping_add(1);
        let nonce = nonce(self.rng);
        let builder = Builder::new(PacketKind::Update, hit, peer)
            .push(&Parameter::EspInfo(EspInfo { keymat_index: esp.keymat_index, old_spi, new_spi: spi_in }))
            .push(&Parameter::Seq(ours))
            .push(&Parameter::Ack(vec![seq]))
            .push(&Parameter::EchoRequestSigned(nonce.clone()));
        let answer = self.seal(&up.session, echoes(builder, packet)).inspect_err(|_| {
            self.out.spis.remove(&spi_in);
        })?;
        up.update_id = ours;
        // Where the peer opens a route anew it has lost the path that was there.
        let stale = up.paths.iter().filter(|path| path.route == route && replaces.is_none());
        let stale: Vec<PathId> = stale.map(|path| path.id).collect();
        stale.into_iter().for_each(|path| remove(self.out, up, peer, path));
        let path = up_path(self.out, up, peer, route, keys, (spi_in, esp.new_spi), verified);
        if !self.config.backups.is_empty() {
            // The answer has no room for a preference of ours.
            up.announce();
        }
        let credit = if verified { usize::MAX } else { CREDIT * packet.bytes().len() };
        up.offers.push(Offer {
            path,
            route,
            seq: ours,
            nonce,
            packet: answer.clone(),
            retry: Retry::new(self.now, self.config),
            replaces,
            asked: seq,
            credit: credit.saturating_sub(answer.len()),
            exposed: false,
        });
        Ok(answer)
    }
}

/// A new path, and the news of it.
fn up_path(
    out: &mut Output,
    up: &mut Association,
    peer: Hit,
    route: Route,
    keys: EspKeyPair,
    (spi_in, spi_out): (Spi, Spi),
    verified: bool,
) -> PathId {
    let path = up.add_path(route, spi_in, spi_out, verified);
    let (outbound, inbound) = security_associations(up.session.suite, keys.outbound, spi_out, keys.inbound, spi_in);
    out.events.push_back(Event::PathUp { peer, path, route, outbound, inbound, verified });
    path
}

impl Association {
    /// Leaves a route alone for a while: twice as long after each failure.
    pub(crate) fn postpone(&mut self, route: Route, now: Instant, first: clock::Duration) {
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.route == route) {
            candidate.not_before = now + first * (1 << candidate.failures.min(6));
            candidate.failures = candidate.failures.saturating_add(1);
        }
    }

    pub(crate) fn learn(&mut self, routes: Vec<Route>, now: Instant) {
        for route in routes {
            let known = self.candidates.iter().any(|candidate| candidate.route == route);
            if !known && self.candidates.len() < MAX_CANDIDATES {
                let stale = self.candidates.iter().any(|other| other.route.remote == route.remote && other.stale);
                self.candidates.push(Candidate { route, failures: 0, not_before: now, stale });
            }
        }
    }
}

//! A path that leads elsewhere with the security associations that it has (RFC 8046 §3.2.1, §5.3 case 1, §5.4).
//!
//! ```text
//! host that moves                                            other host
//!   ── ESP_INFO, LOCATOR_SET, SEQ n, (ECHO_REQUEST) ───────────▶
//!   ◀────────── ESP_INFO, SEQ m, ACK n, ECHO_REQUEST, (ECHO_RESPONSE) ──
//!   ── ACK m, ECHO_RESPONSE ────────────────────────────────▶            from here on data goes there
//! ```
//!
//! In each ESP_INFO the old SPI is the new one, and no key changes. Between two Sinnets a path has keys of its own, and a host
//! that moves opens another; hosts other than Sinnet may have no more than one pair of security associations. So to them a
//! Sinnet that moves does as the RFC has it, too, with the last path that it has.

use std::net::{IpAddr, SocketAddr};

use clock::Instant;
use scheduler::PathId;
use wire::hip::{Builder, EspInfo, Locator, Packet, PacketKind, Parameter};
use wire::{Hit, Spi};

use crate::association::{Association, CREDIT, Move, Retry, nonce};
use crate::config::{HostConfig, Peer};
use crate::event::Event;
use crate::exchange::unmapped;
use crate::host::{Output, Refusal, is_place};
use crate::route::Route;
use crate::update::{Told, Turn, conclude, remove};

/// A locator for HIP packets alone (RFC 8046 §4).
const SIGNALING_ONLY: u8 = 1;

impl Turn<'_> {
    /// The peer says where the paths of these SPIs lead now, or answers when we have said so. Our answer.
    pub(crate) fn readdress(
        &mut self,
        up: &mut Association,
        known: &Peer,
        packet: &Packet<'_>,
        spis: &[Spi],
        seq: u32,
    ) -> Result<Vec<u8>, Refusal> {
        let find = |spi: &Spi| up.paths.iter().find(|path| path.spi_out == *spi);
        let found: Option<Vec<_>> = spis.iter().map(|spi| find(spi).map(|path| (path.id, path.spi_in, *spi))).collect();
        let Some(found) = found else {
            // The peer takes for a path what is none here any more: it has to hear that.
            up.announce();
            return Err(Refusal::Malformed);
        };
        let Some(set) = packet.locator_set() else { return self.acknowledge(up, packet, seq) };
        let ids: Vec<PathId> = found.iter().map(|(id, ..)| *id).collect();
        self.listen(up, &known.locators, seq, set, Told::All(&ids));
        up.moves.retain(|other| !ids.contains(&other.path));
        // Who has spoken from there is asked and answered in one.
        let (ours, nonce) = (up.update_id, nonce(self.rng));
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        let mut builder = Builder::new(PacketKind::Update, self.identity.hit(), self.peer);
        for (id, spi_in, spi) in found {
            builder = builder.push(&stays(up, spi_in));
            let now_at = up.paths.iter().find(|path| path.id == id).map(|path| (path.route, path.verified));
            match destination(self.route, known, spi, set) {
                Some(there) if now_at != Some((there, true)) && there == self.route => here.push(id),
                Some(there) if now_at != Some((there, true)) => elsewhere.push((id, spi_in, there)),
                _ => {}
            }
        }
        let asks = !here.is_empty();
        let builder = builder
            .push_some(asks.then_some(Parameter::Seq(ours)).as_ref())
            .push(&Parameter::Ack(vec![seq]))
            .push_some(asks.then(|| Parameter::EchoRequestSigned(nonce.clone())).as_ref());
        let answer = self.seal_answer(&up.session, builder, packet)?;
        let mut left = CREDIT * packet.bytes().len();
        if asks {
            up.next_update_id();
            left = left.saturating_sub(answer.len());
        }
        for (index, path) in here.into_iter().enumerate() {
            // It is sent again once for all.
            let packet = if index == 0 { answer.clone() } else { Vec::new() };
            let (retry, route, nonce) = (Retry::new(self.now, self.config), self.route, nonce.clone());
            up.moves.push(Move { path, route, seq: ours, nonce, packet, retry, asked: seq, credit: left });
        }
        for (path, spi_in, route) in elsewhere {
            self.ask_at(up, (path, spi_in), route, seq, &mut left)?;
        }
        Ok(answer)
    }

    /// Asks whether the peer is where it says that a path leads, as long as there is credit for it.
    fn ask_at(
        &mut self,
        up: &mut Association,
        (path, spi_in): (PathId, Spi),
        route: Route,
        asked: u32,
        left: &mut usize,
    ) -> Result<(), Refusal> {
        let (seq, nonce) = (up.update_id, nonce(self.rng));
        let builder = Builder::new(PacketKind::Update, self.identity.hit(), self.peer)
            .push(&stays(up, spi_in))
            .push(&Parameter::Seq(seq))
            .push(&Parameter::EchoRequestSigned(nonce.clone()));
        let packet = self.seal(&up.session, builder)?;
        up.next_update_id();
        let Some(rest) = left.checked_sub(packet.len()) else { return Ok(()) };
        *left = rest;
        self.out.send(route, packet.clone());
        let retry = Retry::new(self.now, self.config);
        // What is left is shared with the others.
        up.moves.push(Move { path, route, seq, nonce, packet, retry, asked, credit: rest });
        *left = 0;
        Ok(())
    }

    /// The LOCATOR_SET of an I2 (RFC 8047 §4.2): where the peer is, too, and where it wants the data.
    pub(crate) fn meet(&mut self, up: &mut Association, known: &Peer, packet: &Packet<'_>) {
        let Some(set) = packet.locator_set() else { return };
        let port = self.route.remote.port();
        let places = set.iter().rev().map(|locator| unmapped(locator.address));
        for address in places.filter(|address| is_place(*address, known) && *address != self.route.remote.ip()) {
            up.remember_remote((address, port).into());
        }
        up.note_lifetimes(self.out, self.peer, set, self.now);
        let Some((id, spi_in, spi)) = up.paths.first().map(|path| (path.id, path.spi_in, path.spi_out)) else { return };
        let there =
            destination(self.route, known, spi, set).filter(|there| *there != self.route && known.routes.is_empty());
        if let Some(there) = there {
            let mut left = CREDIT * packet.bytes().len();
            // The association is there without it.
            let _ = self.ask_at(up, (id, spi_in), there, 0, &mut left);
        }
    }

    /// The peer's echo has come from where it says that a path leads.
    pub(crate) fn moved(&mut self, up: &mut Association, index: usize) {
        let Move { path, route, .. } = up.moves.remove(index);
        up.relocate(self.out, self.peer, path, route);
    }

    /// The peer no longer has the security association of this SPI.
    pub(crate) fn give_up(&mut self, up: &mut Association, spi: Spi) {
        let Some(path) = up.paths.iter().find(|path| path.spi_out == spi) else { return };
        let (id, route) = (path.id, path.route);
        up.postpone(route, self.now, self.config.path_retry);
        remove(self.out, up, self.peer, id);
    }
}

/// Where the peer wants the data of an SPI, if it may be there. Where it has spoken from is as good as what it prefers, and
/// behind a NAT it does not know where that is.
fn destination(here: Route, known: &Peer, spi: Spi, set: &[Locator]) -> Option<Route> {
    let address = |locator: &Locator| unmapped(locator.address);
    let data =
        set.iter().filter(|locator| locator.spi.is_none_or(|own| own == spi) && locator.traffic != SIGNALING_ONLY);
    let preferred: Vec<IpAddr> = data.filter(|locator| locator.preferred).map(address).collect();
    let is_told = set.iter().any(|locator| address(locator) == here.remote.ip() && locator.traffic != SIGNALING_ONLY);
    if preferred.contains(&here.remote.ip()) || here.in_udp() && !is_told {
        return Some(here);
    }
    let fits = |address: &IpAddr| address.is_ipv4() == here.local.is_ipv4() && is_place(*address, known);
    let there = preferred.into_iter().find(fits).map(|address| (address, here.remote.port()).into());
    there.map(|remote| Route { remote, ..here }).or(is_told.then_some(here))
}

/// That a security association stays as it is.
fn stays(up: &Association, spi: Spi) -> Parameter {
    Parameter::EspInfo(EspInfo { keymat_index: up.session.keymat_next, old_spi: spi, new_spi: spi })
}

impl Association {
    /// A path leads elsewhere from now on, and the peer is known to be there.
    pub(crate) fn relocate(&mut self, out: &mut Output, peer: Hit, path: PathId, route: Route) {
        if !self.lead(path, route) {
            return;
        }
        if let Some(index) = self.offers.iter().position(|offer| offer.path == path) {
            // Our answer to the peer's UPDATE for this path went to where the peer was, so its echo is not taken from here.
            conclude(out, self, peer, index);
        }
        out.events.push_back(Event::PathMoved { peer, path, route });
    }

    /// Whether the path is known, which leads there now.
    pub(crate) fn lead(&mut self, path: PathId, route: Route) -> bool {
        let Some(known) = self.paths.iter_mut().find(|other| other.id == path) else { return false };
        let before = std::mem::replace(&mut known.route, route);
        (known.verified, known.stranded) = (true, false);
        if self.checks.is_some()
            && let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.route == before)
        {
            // The same way, behind a NAT that has another address for it.
            candidate.route = route;
        }
        if before.remote != route.remote {
            self.remember_remote(before.remote);
        }
        // What is under way for it would go where nobody is.
        if let Some(opening) = self.opening.as_mut().filter(|opening| opening.replaces == Some(path)) {
            opening.route = route;
        }
        true
    }

    /// Asks again whether the peer is where it says, as often and as much as may be sent there.
    pub(crate) fn retry_moves(&mut self, out: &mut Output, now: Instant, config: &HostConfig) {
        // As patient as who waits for the echo of an offer.
        self.moves.retain(|there| there.retry.at > now || there.retry.tries < 2 * config.max_update_tries);
        for there in self.moves.iter_mut().filter(|there| there.retry.at <= now) {
            there.retry.again(now, config);
            let left = there.credit.checked_sub(there.packet.len()).filter(|_| !there.packet.is_empty());
            if let Some(left) = left {
                there.credit = left;
                out.send_again(there.route, &there.packet);
            }
        }
    }

    /// For hosts other than Sinnet: that the security associations stay as they are. RFC 8046 §5.3 tells what follows from a
    /// LOCATOR_SET only where there is an ESP_INFO.
    pub(crate) fn unchanged(&self, route: Route) -> Option<Parameter> {
        let mut paths = self.paths.iter().filter(|path| !self.renews && !path.stranded);
        let path = paths.clone().find(|path| path.route == route).or_else(|| paths.next())?;
        let (index, spi) = (self.session.keymat_next, path.spi_in);
        Some(Parameter::EspInfo(EspInfo { keymat_index: index, old_spi: spi, new_spi: spi }))
    }

    /// The locators of this host that paths to a host other than Sinnet leave from are `gone`: one of the paths leaves from
    /// another, or waits for one. Which path that is, if none is left otherwise.
    pub(crate) fn keep_one(
        &mut self,
        out: &mut Output,
        peer: Hit,
        config: &HostConfig,
        gone: impl Fn(&Route) -> bool,
    ) -> Option<PathId> {
        if self.renews || self.paths.iter().any(|path| !path.stranded && !gone(&path.route)) {
            return None;
        }
        let path = self.paths.first_mut()?;
        let (id, route) = (path.id, path.route);
        path.stranded = true;
        let fits = |local: &SocketAddr| {
            local.is_ipv4() == route.remote.is_ipv4() && (local.port() == 0) == (route.remote.port() == 0)
        };
        if let Some(&local) = config.locators.iter().find(|local| fits(local)) {
            self.relocate(out, peer, id, Route { local, ..route });
        }
        Some(id)
    }
}

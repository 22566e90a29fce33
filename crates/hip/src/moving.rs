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
    /// The peer says where the path of this SPI leads now, or answers when we have said so. Our answer.
    pub(crate) fn readdress(
        &mut self,
        up: &mut Association,
        known: &Peer,
        packet: &Packet<'_>,
        spi: Spi,
        seq: u32,
    ) -> Result<Vec<u8>, Refusal> {
        let Some(path) = up.paths.iter().find(|path| path.spi_out == spi) else {
            // The peer takes for a path what is none here any more: it has to hear that.
            up.announce();
            return Err(Refusal::Malformed);
        };
        let (id, spi_in, now_at) = (path.id, path.spi_in, (path.route, path.verified));
        let Some(set) = packet.locator_set() else { return self.acknowledge(up, packet, seq) };
        self.listen(up, &known.locators, seq, set, Told::All(Some(id)));
        let there = destination(self.route, known, spi, set);
        up.moves.retain(|other| other.path != id);
        let esp = EspInfo { keymat_index: up.session.keymat_next, old_spi: spi_in, new_spi: spi_in };
        let (hit, peer) = (self.identity.hit(), self.peer);
        let update = || Builder::new(PacketKind::Update, hit, peer).push(&Parameter::EspInfo(esp));
        let acknowledged = |builder: Builder| builder.push(&Parameter::Ack(vec![seq]));
        if there.is_none_or(|there| now_at == (there, true)) {
            return self.seal_answer(&up.session, acknowledged(update()), packet);
        }
        let route = there.unwrap_or(self.route);
        let (ours, nonce) = (up.update_id, nonce(self.rng));
        let asks = Parameter::EchoRequestSigned(nonce.clone());
        let question = update().push(&Parameter::Seq(ours));
        // Who has spoken from there is asked and answered in one.
        let (question, answer) = if route == self.route {
            let both = self.seal_answer(&up.session, acknowledged(question).push(&asks), packet)?;
            (both.clone(), both)
        } else {
            let question = self.seal(&up.session, question.push(&asks))?;
            let answer = self.seal_answer(&up.session, acknowledged(update()), packet)?;
            self.out.send(route, question.clone());
            (question, answer)
        };
        up.next_update_id();
        let credit = (CREDIT * packet.bytes().len()).saturating_sub(question.len());
        let retry = Retry::new(self.now, self.config);
        up.moves.push(Move { path: id, route, seq: ours, nonce, packet: question, retry, asked: seq, credit });
        Ok(answer)
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
            if let Some(left) = there.credit.checked_sub(there.packet.len()) {
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

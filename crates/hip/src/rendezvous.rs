//! Rendezvous (RFC 8004): a host that is registered with a server is found by an I1 that goes there. The server passes it on
//! with the address that it came from, and the answer goes straight to that.
//!
//! ```text
//! Initiator                     server                      registered host
//!   ── I1 ────────────────────────▶
//!                                   ── I1, FROM, RVS_HMAC ─────▶
//!   ◀────────────────────────────────────────── R1, VIA_RVS ──
//!   ── I2 ─────────────────────────────────────────────────────▶
//! ```
//!
//! FROM has no port. Inside UDP the server adds RELAY_FROM, the parameter of RFC 9028 §5.6 that has one.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use clock::Instant;
use wire::hip::{Packet, Parameter, TransportAddress, append};

use crate::association::Phase;
use crate::budget::Class;
use crate::config::{HostConfig, Peer};
use crate::exchange::unmapped;
use crate::host::{Host, Refusal, is_place, mapped};
use crate::registration::RENDEZVOUS;
use crate::route::{Route, UDP_PORT};

/// A relayed I1.
pub(crate) struct Relayed {
    /// Where the answer goes.
    pub(crate) route: Route,
    /// The server's address, which the answer tells.
    pub(crate) server: Ipv6Addr,
}

impl Host {
    /// Passes an I1 on to the peer that it is for, if that is registered here (RFC 8004 §4.2). Nothing where it is not.
    pub(crate) fn relay(&mut self, now: Instant, route: Route, i1: &Packet<'_>) -> Option<Result<(), Refusal>> {
        let peer = i1.receiver();
        let up = self.peers.get(&peer)?.is_served(now, RENDEZVOUS)?;
        let there = up.any_route()?;
        if i1.sender() == peer || i1.from().is_some() || i1.rvs_hmac().is_some() {
            // Of other servers nothing is known.
            return Some(Err(Refusal::Malformed));
        }
        if let Err(refusal) = self.out.affords(now, &self.config, Class::I1, route, false) {
            return Some(Err(refusal));
        }
        let up = self.peers.get(&peer)?.registration(now)?;
        let from = mapped(route.remote.ip());
        let mut bytes = i1.bytes().to_vec();
        let mut fits = true;
        if route.in_udp() {
            fits &= append(&mut bytes, &Parameter::RelayFrom(TransportAddress::udp(route.remote)));
        }
        fits &= append(&mut bytes, &Parameter::From(from));
        self.out.meter.mac();
        let mac = up.session.rhash.hmac(&up.session.keys.ours.integrity, &[&bytes]);
        fits &= append(&mut bytes, &Parameter::RvsHmac(mac));
        if !fits {
            return Some(Err(Refusal::Malformed));
        }
        self.out.counters.relayed += 1;
        self.out.send(there, bytes);
        Some(Ok(()))
    }

    /// Whether a server has passed this I1 on, and where it comes from then. Who is not registered cannot tell, and takes none
    /// (RFC 8004 §4.3.1).
    pub(crate) fn relayed(&self, now: Instant, route: Route, i1: &Packet<'_>) -> Result<Option<Relayed>, Refusal> {
        let Some(from) = i1.from() else {
            return if i1.rvs_hmac().is_some() { Err(Refusal::Malformed) } else { Ok(None) };
        };
        let mac = i1.rvs_hmac().ok_or(Refusal::Mac)?;
        let covered = i1.covered_by_rvs_hmac().ok_or(Refusal::Mac)?;
        let server = self.peers.values().find_map(|record| {
            let Phase::Up(up) = &record.phase else { return None };
            let registered = record.peer.registers && record.enrolment.until.is_some_and(|until| until > now);
            let is_there = || up.paths.iter().any(|path| path.route.remote == route.remote);
            (registered && is_there()).then_some(&up.session)
        });
        let session = server.ok_or(Refusal::Unexpected)?;
        self.out.meter.mac();
        if !session.rhash.hmac_verify(&session.keys.theirs.integrity, &[&covered], mac) {
            return Err(Refusal::Mac);
        }
        let address = unmapped(*from);
        let known = self.peers.get(&i1.sender()).ok_or(Refusal::Stranger)?;
        if !is_place(address, &known.peer) || self.config.locators.iter().any(|own| own.ip() == address) {
            return Err(Refusal::Malformed);
        }
        let port = if route.in_udp() { port(i1, *from) } else { 0 };
        let local = local(&self.config, route.local, address).ok_or(Refusal::Unexpected)?;
        let there = Route { local, remote: (address, port).into() };
        Ok(Some(Relayed { route: there, server: mapped(route.remote.ip()) }))
    }
}

/// The port that an I1 comes from which a server has passed on.
fn port(i1: &Packet<'_>, from: Ipv6Addr) -> u16 {
    let told = i1.relay_from().filter(|told| told.address == from);
    told.and_then(TransportAddress::in_udp).map_or(UDP_PORT, |place| place.port())
}

/// Our end of the way to an address: where the I1 came to, or else a locator of the address's family.
pub(crate) fn local(config: &HostConfig, here: SocketAddr, address: IpAddr) -> Option<SocketAddr> {
    let fits = |local: &SocketAddr| local.is_ipv4() == address.is_ipv4() && (local.port() == 0) == (here.port() == 0);
    std::iter::once(here).chain(config.locators.iter().copied()).find(fits)
}

/// Where an I1 to a peer goes that is found by servers: each locator of ours with each of theirs.
pub(crate) fn ways(config: &HostConfig, peer: &Peer) -> Vec<Route> {
    let fits = |route: &Route| {
        let Route { local, remote } = route;
        local.is_ipv4() == remote.is_ipv4() && (local.port() == 0) == (remote.port() == 0)
    };
    let all = peer.via.iter().flat_map(|&remote| config.locators.iter().map(move |&local| Route { local, remote }));
    all.filter(fits).collect()
}

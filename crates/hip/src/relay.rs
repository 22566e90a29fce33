//! The control relay (RFC 9028 §4.5, §4.8): HIP packets between a host behind a NAT and whoever asks for it at its server. All
//! of it is inside UDP.
//!
//! ```text
//! Initiator                     relay                       registered host
//!   ── I1 ────────────────────────▶
//!                                   ── I1, RELAY_FROM, RELAY_HMAC ───▶
//!                                   ◀──────── R1, RELAY_TO, RELAY_HMAC ──
//!   ◀──────────────── R1, RELAY_TO ──
//! ```
//!
//! I2, R2 and whatever follows go the same way, until there is a path. The relay remembers nobody but those that are registered:
//! where an answer goes is in it. RFC 9028 has no RELAY_HMAC in answers; with one nobody can have the relay send to where he
//! likes. So either way costs a MAC, and what is passed on is bounded for each source, each client, and in all.

use std::net::{IpAddr, SocketAddr};

use clock::Instant;
use wire::Hit;
use wire::hip::{Packet, PacketKind, Parameter, TransportAddress, append};

use crate::association::{Association, Phase};
use crate::budget::Class;
use crate::config::{HostConfig, Peer};
use crate::event::Control;
use crate::host::{Host, Refusal, is_place};
use crate::rate::Rate;
use crate::registration::{RELAY_ESP, RELAY_HIP};
use crate::rendezvous::local;
use crate::route::Route;

/// Packets to and from one client: enough for some exchanges at a time.
const CLIENT: Rate = Rate::new(200, 400);

/// Where a peer is whose packets come by a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The relay's identity, and the way to it.
    relay: Hit,
    pub(crate) route: Route,
    /// The peer as the relay sees it.
    pub(crate) place: SocketAddr,
    /// The relay passes on our data, too.
    pub(crate) carries: bool,
}

/// The relay.
impl Host {
    /// Passes on what is for a client, or from one. Nothing where it is neither.
    pub(crate) fn pass_on(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Option<Result<(), Refusal>> {
        if self.leaving || packet.receiver() == self.hit() {
            return None;
        }
        if packet.relay_to().is_some() {
            return self.pass_from(now, route, packet);
        }
        let client = self.peers.get(&packet.receiver())?;
        if route.in_udp() && client.is_served(now, RELAY_HIP).is_some() {
            return Some(self.pass_to(now, route, packet));
        }
        if packet.kind() == PacketKind::I1 { self.relay(now, route, packet) } else { None }
    }

    fn pass_to(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Result<(), Refusal> {
        let client = packet.receiver();
        if packet.sender() == client || packet.from().is_some() || packet.relay_from().is_some() {
            // Of other servers nothing is known.
            return Err(Refusal::Malformed);
        }
        let class = if packet.kind() == PacketKind::I1 { Class::I1 } else { Class::Relayed };
        self.out.affords(now, &self.config, class, route, false)?;
        self.take_share(now, client)?;
        let up = self.peers.get(&client).and_then(|record| record.is_served(now, RELAY_HIP));
        let up = up.ok_or(Refusal::Unexpected)?;
        let there = up.any_route().filter(Route::in_udp).ok_or(Refusal::Unexpected)?;
        let bytes = with_mac(up, packet.bytes(), &Parameter::RelayFrom(TransportAddress::udp(route.remote)));
        self.out.counters.relayed += 1;
        self.out.send(there, bytes.ok_or(Refusal::Malformed)?);
        Ok(())
    }

    fn pass_from(&mut self, now: Instant, route: Route, packet: &Packet<'_>) -> Option<Result<(), Refusal>> {
        let up = self.peers.get(&packet.sender())?.is_served(now, RELAY_HIP)?;
        if !up.paths.iter().any(|path| path.route.remote == route.remote) {
            return Some(Err(Refusal::Elsewhere));
        }
        Some(self.check_mac_of(up, packet).and_then(|bytes| {
            let place = packet.relay_to().and_then(TransportAddress::in_udp).ok_or(Refusal::BadPlace)?;
            let client = self.peers.get(&packet.sender()).ok_or(Refusal::Unexpected)?;
            let local = self.may_send_to(place, &client.peer, route)?;
            self.take_share(now, packet.sender())?;
            if let Some(permission) = packet.peer_permission() {
                self.permit(now, route.remote, packet.sender(), place, permission)?;
            }
            self.out.counters.relayed += 1;
            self.out.send(Route { local, remote: place }, bytes);
            Ok(())
        }))
    }

    /// Our end of the way to where a client wants something to go, if that may be a host's place, and not ours.
    fn may_send_to(&self, place: SocketAddr, client: &Peer, route: Route) -> Result<SocketAddr, Refusal> {
        if !is_place(place.ip(), client) || self.is_ours(place.ip()) {
            return Err(Refusal::BadPlace);
        }
        local(&self.config, route.local, place.ip()).ok_or(Refusal::BadPlace)
    }

    fn take_share(&mut self, now: Instant, client: Hit) -> Result<(), Refusal> {
        let registered = self.peers.get_mut(&client).and_then(|record| record.registered.as_mut());
        let taken = registered.is_some_and(|registered| registered.passed.take(now, CLIENT));
        if taken { Ok(()) } else { Err(Refusal::Share) }
    }
}

/// The client.
impl Host {
    /// Whether a packet for us has come by our relay, and where its sender is then.
    pub(crate) fn behind(&self, now: Instant, route: Route, packet: &Packet<'_>) -> Result<Option<Behind>, Refusal> {
        if packet.relay_hmac().is_none() {
            return Ok(None);
        }
        let from = packet.relay_from().ok_or(Refusal::Malformed)?;
        let relay = self.peers.iter().find_map(|(&hit, record)| {
            let Phase::Up(up) = &record.phase else { return None };
            let enrolment = record.enrolment;
            let is_served = enrolment.services.has(RELAY_HIP) && enrolment.until.is_some_and(|until| until > now);
            let is_there = || up.paths.iter().any(|path| path.route.remote == route.remote);
            (record.peer.registers && is_served && is_there()).then_some((hit, up, enrolment.services.has(RELAY_ESP)))
        });
        let (relay, up, carries) = relay.ok_or(Refusal::Unexpected)?;
        self.check_mac_of(up, packet)?;
        let place = from.in_udp().ok_or(Refusal::BadPlace)?;
        Ok(Some(Behind { relay, route, place, carries }))
    }

    /// What was queued since `first` for a peer goes back the way that its packet came.
    pub(crate) fn answer_by_relay(&mut self, first: usize, peer: Hit, behind: Behind) {
        let Self { out, peers, .. } = self;
        let Some(up) = peers.get(&behind.relay).and_then(association) else { return };
        for control in out.transmit.iter_mut().skip(first) {
            let is_answer = control.route == behind.route && receiver(&control.bytes) == Some(peer);
            if let Some(bytes) = is_answer.then(|| addressed(up, &control.bytes, behind.place)).flatten() {
                control.bytes = bytes;
            }
        }
    }

    /// A packet as it leaves: with the address if it goes by a relay of ours. None where it cannot.
    pub(crate) fn by_relay(&self, control: Control) -> Option<Control> {
        let behind = receiver(&control.bytes).and_then(|peer| self.peers.get(&peer)).and_then(|record| record.behind);
        let Some(behind) = behind.filter(|behind| behind.route == control.route) else { return Some(control) };
        if Packet::parse(&control.bytes).is_ok_and(|packet| packet.relay_to().is_some()) {
            return Some(control);
        }
        let up = self.peers.get(&behind.relay).and_then(association)?;
        let bytes = addressed(up, &control.bytes, behind.place)?;
        Some(Control { bytes, ..control })
    }
}

impl Host {
    /// Checks RELAY_HMAC. What it covers.
    fn check_mac_of(&self, up: &Association, packet: &Packet<'_>) -> Result<Vec<u8>, Refusal> {
        let mac = packet.relay_hmac().ok_or(Refusal::Mac)?;
        let covered = packet.covered_by_relay_hmac().ok_or(Refusal::Mac)?;
        self.out.meter.mac();
        let is_right = up.session.rhash.hmac_verify(&up.session.keys.theirs.integrity, &[&covered], mac);
        if is_right { Ok(covered) } else { Err(Refusal::Mac) }
    }

    /// Whether an address is one of this host's.
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        is_own(&self.config, address)
    }
}

/// Whether an address is one of this host's.
pub(crate) fn is_own(config: &HostConfig, address: IpAddr) -> bool {
    config.locators.iter().any(|own| own.ip().to_canonical() == address.to_canonical())
}

/// The association with a relay.
fn association(record: &crate::association::PeerRecord) -> Option<&Association> {
    match (&record.phase, &record.standby) {
        (Phase::Up(up), _) | (_, Some(up)) => Some(up),
        _ => None,
    }
}

/// The receiver of a packet of ours.
fn receiver(packet: &[u8]) -> Option<Hit> {
    Some(Hit(packet.get(24..40)?.try_into().ok()?))
}

/// An answer with where it is to go.
fn addressed(up: &Association, packet: &[u8], place: SocketAddr) -> Option<Vec<u8>> {
    with_mac(up, packet, &Parameter::RelayTo(TransportAddress::udp(place)))
}

/// The packet with one more parameter and RELAY_HMAC, if it has room for them.
fn with_mac(up: &Association, packet: &[u8], parameter: &Parameter) -> Option<Vec<u8>> {
    let mut bytes = packet.to_vec();
    let mut fits = append(&mut bytes, parameter);
    up.session.meter.mac();
    let mac = up.session.rhash.hmac(&up.session.keys.ours.integrity, &[&bytes]);
    fits &= append(&mut bytes, &Parameter::RelayHmac(mac));
    fits.then_some(bytes)
}

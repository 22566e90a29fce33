//! Hosts, the NATs before their uplinks (RFC 4787), and a network that loses and reorders.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use hip::{Event, Host, HostConfig, PathId, Peer, Registrar, Route, State};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use testkit::World;
use wire::hip::{Packet, PacketKind};
use wire::{Hit, Spi};

use super::{arrived, config, generated, time_out};
use hip::identity::Algorithm;

pub const SECOND: Duration = Duration::from_secs(1);
/// The two that want to meet, and their server.
pub const A: usize = 0;
pub const B: usize = 1;
pub const S: usize = 2;

/// What a NAT's mapping of an inside address depends on, and what it lets in (RFC 4787 §4.1, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Nothing,
    Address,
    AddressAndPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub mapping: On,
    pub filter: On,
}

pub const FULL_CONE: Kind = Kind { mapping: On::Nothing, filter: On::Nothing };
pub const RESTRICTED: Kind = Kind { mapping: On::Nothing, filter: On::Address };
pub const PORT_RESTRICTED: Kind = Kind { mapping: On::Nothing, filter: On::AddressAndPort };
pub const SYMMETRIC: Kind = Kind { mapping: On::AddressAndPort, filter: On::AddressAndPort };

fn of(on: On, place: SocketAddr) -> (Option<IpAddr>, Option<u16>) {
    match on {
        On::Nothing => (None, None),
        On::Address => (Some(place.ip()), None),
        On::AddressAndPort => (Some(place.ip()), Some(place.port())),
    }
}

type Key = (Option<IpAddr>, Option<u16>);

pub struct Nat {
    pub public: IpAddr,
    pub kind: Kind,
    /// A mapping ends after so long without a packet from inside.
    pub timeout: Duration,
    /// Each packet gets another port.
    pub mad: bool,
    next_port: u16,
    /// The outside port, by the inside and what the mapping depends on; and when it was last used.
    mappings: BTreeMap<(SocketAddr, Key), (u16, Instant)>,
    /// Who may send to a port.
    allowed: BTreeSet<(u16, Key)>,
}

impl Nat {
    pub fn new(public: &str, kind: Kind) -> Self {
        Self {
            public: public.parse().unwrap(),
            kind,
            timeout: SECOND * 60,
            mad: false,
            next_port: 20_000,
            mappings: BTreeMap::new(),
            allowed: BTreeSet::new(),
        }
    }

    pub fn out(&mut self, now: Instant, inside: SocketAddr, to: SocketAddr) -> SocketAddr {
        let key = (inside, of(self.kind.mapping, to));
        let timeout = self.timeout;
        let known = self.mappings.get(&key).filter(|(_, used)| now.saturating_since(*used) < timeout && !self.mad);
        let port = known.map_or_else(
            || {
                self.next_port += 7;
                self.next_port
            },
            |(port, _)| *port,
        );
        self.mappings.insert(key, (port, now));
        self.allowed.insert((port, of(self.kind.filter, to)));
        (self.public, port).into()
    }

    fn inward(&self, now: Instant, from: SocketAddr, port: u16) -> Option<SocketAddr> {
        let is_live = |used: Instant| now.saturating_since(used) < self.timeout;
        let found = self.mappings.iter().find(|(_, (known, used))| *known == port && is_live(*used));
        let ((inside, _), _) = found?;
        let is_open = self.kind.filter == On::Nothing;
        (is_open || self.allowed.contains(&(port, of(self.kind.filter, from)))).then_some(*inside)
    }
}

pub struct Party {
    pub host: Host,
    pub rng: ChaCha20Rng,
    /// Its places, and which NAT is before each.
    pub uplinks: Vec<(SocketAddr, Option<usize>)>,
    pub paths: BTreeMap<(Hit, PathId), (Route, bool)>,
    /// At which its paths are received.
    pub spis: BTreeMap<(Hit, PathId), Spi>,
    pub told: Vec<String>,
    /// Why associations ended.
    pub closed: Vec<String>,
}

type Flying = (Instant, SocketAddr, SocketAddr, Option<usize>, Vec<u8>);

pub struct Net {
    pub now: Instant,
    pub parties: Vec<Party>,
    pub nats: Vec<Nat>,
    /// Packets under way: when, from where as its receiver sees it, to where as its sender sees it.
    flying: Vec<Flying>,
    /// All that was sent: by whom, on which route.
    pub sent: Vec<(usize, Route, Vec<u8>)>,
    pub loss: f64,
    pub dead: BTreeSet<usize>,
    rng: ChaCha20Rng,
}

pub fn at(place: &str) -> SocketAddr {
    SocketAddr::from((place.parse::<IpAddr>().unwrap(), 10_500))
}

impl World for Net {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.flying.iter().map(|(at, ..)| *at).min()
    }

    fn deliver(&mut self) {
        if let Some((_, source, to, near, bytes)) = arrived(&mut self.flying, self.now, |(at, ..)| *at) {
            self.arrive(source, to, near, &bytes);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let live = (0..self.parties.len()).filter(|side| !self.dead.contains(side));
        live.filter_map(|side| self.parties[side].host.poll_timeout()).map(|(at, _)| at).min()
    }

    fn handle_timers(&mut self) {
        for side in (0..self.parties.len()).filter(|side| !self.dead.contains(side)) {
            let Party { host, rng, .. } = &mut self.parties[side];
            time_out(host, rng, self.now);
        }
    }

    fn collect(&mut self) {
        for side in 0..self.parties.len() {
            let party = &mut self.parties[side];
            while let Some(event) = party.host.poll_event() {
                match event {
                    Event::PathUp { peer, path, route, verified, inbound, .. } => {
                        party.spis.insert((peer, path), inbound.spi());
                        party.paths.insert((peer, path), (route, verified));
                    }
                    Event::PathVerified { peer, path } => {
                        party.paths.get_mut(&(peer, path)).unwrap().1 = true;
                    }
                    Event::PathMoved { peer, path, route } => {
                        party.paths.insert((peer, path), (route, true));
                    }
                    Event::PathDown { peer, path } => _ = party.paths.remove(&(peer, path)),
                    Event::Closed { peer, reason } => {
                        party.paths.retain(|(other, _), _| *other != peer);
                        party.closed.push(reason);
                    }
                    Event::Failed { reason, .. } => party.closed.push(reason),
                    other => party.told.push(format!("{other:?}")),
                }
            }
            let mut out = Vec::new();
            while let Some(control) = party.host.poll_transmit() {
                out.push(control);
            }
            for control in out {
                self.send(side, control.route, control.bytes);
            }
        }
    }
}

impl Net {
    /// A and B with two uplinks each, and before each a NAT of the kind of its host; None: none. Both are registered with S.
    pub fn new(kinds: [Option<Kind>; 2], seed: u64, set: impl Fn(usize, &mut HostConfig)) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut nats = Vec::new();
        let mut places: Vec<Vec<(SocketAddr, Option<usize>)>> = Vec::new();
        for (side, kind) in kinds.into_iter().enumerate() {
            let mut uplinks = Vec::new();
            for number in 1..=2 {
                let public = format!("198.51.100.{}", 10 * (side + 1) + number);
                uplinks.push(match kind {
                    Some(kind) => {
                        nats.push(Nat::new(&public, kind));
                        (at(&format!("10.{side}.{number}.2")), Some(nats.len() - 1))
                    }
                    None => (at(&public), None),
                });
            }
            places.push(uplinks);
        }
        places.push(vec![(at("198.51.100.7"), None)]);
        let server = places[S][0].0;
        let identities: Vec<_> = (0..3).map(|side| generated(Algorithm::EcdsaP256, 100 * seed + side)).collect();
        let hits: Vec<Hit> = identities.iter().map(|identity| identity.hit()).collect();
        let mut parties = Vec::new();
        for (side, identity) in identities.into_iter().enumerate() {
            let locators: Vec<_> = places[side].iter().map(|(place, _)| *place).collect();
            let mut config = config(&locators);
            if side == S {
                let mut registrar = Registrar::default();
                registrar.relay = true;
                config.registrar = Some(registrar);
            }
            set(side, &mut config);
            let mut rng = ChaCha20Rng::seed_from_u64(rng.next_u64());
            let mut host = Host::new(identity, config, &mut rng).unwrap();
            if side == S {
                for hit in &hits[..S] {
                    let mut peer = Peer::new(*hit, Vec::new());
                    peer.may_register = true;
                    host.add_peer(Instant::ZERO, peer);
                }
            } else {
                let mut peer = Peer::new(hits[S], vec![server]);
                peer.registers = true;
                host.add_peer(Instant::ZERO, peer);
                let mut peer = Peer::new(hits[1 - side], Vec::new());
                peer.via = vec![server];
                host.add_peer(Instant::ZERO, peer);
            }
            let (paths, spis, told, closed) = Default::default();
            parties.push(Party { host, rng, uplinks: places[side].clone(), paths, spis, told, closed });
        }
        let (flying, sent, dead) = Default::default();
        Self { now: Instant::ZERO, parties, nats, flying, sent, loss: 0.0, dead, rng }
    }

    pub fn hit(&self, side: usize) -> Hit {
        self.parties[side].host.hit()
    }

    pub fn chance(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / f64::from(u32::MAX)
    }

    fn send(&mut self, side: usize, route: Route, bytes: Vec<u8>) {
        self.sent.push((side, route, bytes.clone()));
        if self.dead.contains(&side) || self.chance() < self.loss {
            return;
        }
        let nat = self.parties[side].uplinks.iter().find(|(place, _)| *place == route.local).and_then(|(_, nat)| *nat);
        // Behind the same NAT packets go straight.
        let inside = |(place, other): &(SocketAddr, Option<usize>)| *place == route.remote && *other == nat;
        let is_near = nat.is_some() && self.parties.iter().flat_map(|party| &party.uplinks).any(inside);
        let source = match nat.filter(|_| !is_near) {
            Some(nat) => self.nats[nat].out(self.now, route.local, route.remote),
            None => route.local,
        };
        // 20 to 30 ms: what is sent within 10 ms may change its order.
        let delay = Duration::from_micros(20_000 + self.rng.next_u64() % 10_000);
        self.flying.push((self.now + delay, source, route.remote, nat.filter(|_| is_near), bytes));
    }

    fn arrive(&mut self, source: SocketAddr, to: SocketAddr, near: Option<usize>, bytes: &[u8]) {
        let place = match self.nats.iter().find(|nat| nat.public == to.ip()) {
            Some(nat) => match nat.inward(self.now, source, to.port()) {
                Some(inside) => inside,
                None => return,
            },
            None => to,
        };
        let is_private = |place: &SocketAddr| matches!(place.ip(), IpAddr::V4(v4) if v4.is_private());
        if is_private(&to) && near.is_none() {
            return;
        }
        let owner = self.parties.iter().position(|party| party.uplinks.iter().any(|(own, _)| *own == place));
        if let Some(owner) = owner.filter(|owner| !self.dead.contains(owner)) {
            let Party { host, rng, .. } = &mut self.parties[owner];
            host.handle_packet(self.now, rng, Route { local: place, remote: source }, bytes);
        }
    }

    pub fn connect(&mut self, from: usize, to: usize) {
        let (now, peer) = (self.now, self.hit(to));
        let Party { host, rng, .. } = &mut self.parties[from];
        host.connect(now, rng, peer).unwrap();
        self.collect();
    }

    pub fn run(&mut self, time: Duration) {
        self.run_for(time);
    }

    pub fn state(&self, side: usize, peer: usize) -> State {
        let hit = self.hit(peer);
        self.parties[side].host.associations().find(|view| view.peer == hit).unwrap().state
    }

    /// The verified paths from one to another.
    pub fn paths(&self, side: usize, peer: usize) -> Vec<Route> {
        let hit = self.hit(peer);
        let all = self.parties[side].paths.iter().filter(|((other, _), (_, verified))| *other == hit && *verified);
        all.map(|(_, (route, _))| *route).collect()
    }

    /// The uplinks of both that paths lead over: of A's as A sees it, of B's as B sees it.
    pub fn uplinks(&self) -> [BTreeSet<SocketAddr>; 2] {
        [(A, B), (B, A)].map(|(side, peer)| self.paths(side, peer).iter().map(|route| route.local).collect())
    }

    pub fn sent_of(&self, side: usize, kind: PacketKind) -> Vec<(Route, Packet<'_>)> {
        let all = self.sent.iter().filter(|(from, ..)| *from == side);
        let all = all.map(|(_, route, bytes)| (*route, Packet::parse(bytes).unwrap()));
        all.filter(|(_, packet)| packet.kind() == kind).collect()
    }
}

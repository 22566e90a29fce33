//! Two hosts and a network in memory: packets in flight carry the instant of their arrival, and whoever tests decides
//! what becomes of them.
#![allow(unreachable_pub, reason = "tests are no interface")]

pub mod by_hand;
pub mod nat;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use clock::{Duration, Instant, VirtualTime};
use hip::esp::{EspSuite, InboundSa, OutboundSa};
use hip::identity::{Algorithm, HostIdentity};
use hip::{Event, Host, HostConfig, PathId, Peer, Refused, Route, State};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use testkit::World;
use wire::{Hit, Spi};

/// A host with what it was told.
pub struct Side {
    pub host: Host,
    pub rng: ChaCha20Rng,
    pub paths: BTreeMap<PathId, (Route, OutboundSa, InboundSa)>,
    /// Paths that may be sent on.
    pub verified: Vec<PathId>,
    /// Paths that the peer wants as backups.
    pub backups: Vec<PathId>,
    /// What was received at before: packets may still be on their way.
    pub retired: Vec<InboundSa>,
    /// All SPIs at which the host has received, and a print of each key with which it has sent.
    pub spis: BTreeSet<Spi>,
    pub keys: BTreeSet<Vec<u8>>,
    pub established: u32,
    pub closed: Vec<String>,
    pub failed: Vec<String>,
    /// Paths of which somebody says that the peer has forgotten them.
    pub doubted: Vec<PathId>,
    /// The numbers of the peer's notices.
    pub notices: Vec<u16>,
    /// What was told about packets that were refused.
    pub refused: Vec<Refused>,
    /// How often it was told that the peer has not answered for a while.
    pub unanswered: u32,
    /// What rendezvous servers have said: how long they serve us, or why not.
    pub registered: Vec<Result<Duration, u8>>,
    /// Who has answered an inquiry.
    pub discovered: Vec<Hit>,
}

/// A packet on its way.
pub struct Flying {
    pub at: Instant,
    pub to: usize,
    pub route: Route,
    pub bytes: Vec<u8>,
}

/// What becomes of a packet: it flies on, or others do.
pub type Decide<'a> = dyn FnMut(Flying, &mut Vec<Flying>) + 'a;

/// The two of them.
pub struct Pair {
    pub now: Instant,
    pub sides: [Side; 2],
    pub flying: Vec<Flying>,
}

pub fn addresses(list: &[&str], port: u16) -> Vec<SocketAddr> {
    list.iter().map(|address| (address.parse::<std::net::IpAddr>().unwrap(), port).into()).collect()
}

pub fn identities() -> [HostIdentity; 2] {
    testkit::IDENTITIES.map(|pem| HostIdentity::from_pem(pem).unwrap())
}

pub fn generated(algorithm: Algorithm, seed: u64) -> HostIdentity {
    HostIdentity::generate(algorithm, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
}

/// A configuration that costs a test little: the small group, an easy puzzle.
pub fn config(locators: &[SocketAddr]) -> HostConfig {
    let mut config = HostConfig::new(locators.to_vec());
    config.groups = vec![hip::dh::Group::P256];
    config.puzzle_difficulty = 1;
    config
}

impl Side {
    pub fn new(identity: HostIdentity, config: HostConfig, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let host = Host::new(identity, config, &mut rng).unwrap();
        Self {
            host,
            rng,
            paths: BTreeMap::new(),
            verified: Vec::new(),
            backups: Vec::new(),
            retired: Vec::new(),
            spis: BTreeSet::new(),
            keys: BTreeSet::new(),
            established: 0,
            closed: Vec::new(),
            failed: Vec::new(),
            doubted: Vec::new(),
            notices: Vec::new(),
            refused: Vec::new(),
            unanswered: 0,
            registered: Vec::new(),
            discovered: Vec::new(),
        }
    }

    pub fn state(&self) -> State {
        self.host.associations().next().unwrap().state
    }

    /// No SPI and no key is ever used twice. Of AES-GCM the ciphertext of zeros under the first number is the keystream,
    /// which is another for each key.
    fn note_keys(&mut self, outbound: &mut OutboundSa, inbound: &InboundSa) {
        assert!(self.spis.insert(inbound.spi()), "an SPI is used twice");
        if outbound.suite() == EspSuite::Aes128Gcm16 {
            let mut sealed = Vec::new();
            outbound.seal(59, &[0; 64], &mut self.rng, &mut sealed).unwrap();
            assert!(self.keys.insert(sealed[16..80].to_vec()), "a key is used twice");
        }
    }

    pub fn take_events(&mut self) {
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Established { .. } => self.established += 1,
                Event::PathUp { path, route, mut outbound, inbound, verified, .. } => {
                    self.note_keys(&mut outbound, &inbound);
                    self.paths.insert(path, (route, outbound, inbound));
                    if verified {
                        self.verified.push(path);
                    }
                }
                Event::PathMoved { path, route, .. } => {
                    self.paths.get_mut(&path).unwrap().0 = route;
                    if !self.verified.contains(&path) {
                        self.verified.push(path);
                    }
                }
                Event::PathVerified { path, .. } if self.verified.contains(&path) => {}
                Event::PathVerified { path, .. } => self.verified.push(path),
                Event::PathDown { path, .. } => {
                    self.retired.extend(self.paths.remove(&path).map(|(_, _, inbound)| inbound));
                    self.verified.retain(|other| *other != path);
                }
                Event::Closed { reason, .. } => {
                    self.paths.clear();
                    self.verified.clear();
                    self.closed.push(reason);
                }
                Event::Failed { reason, .. } => self.failed.push(reason),
                Event::PathBackup { path, backup, .. } => {
                    self.backups.retain(|other| *other != path);
                    if backup {
                        self.backups.push(path);
                    }
                }
                Event::Doubted { path, .. } => self.doubted.push(path),
                Event::Notified { message, .. } => self.notices.push(message),
                Event::Refused { what, .. } => self.refused.push(what),
                Event::Unanswered { .. } => self.unanswered += 1,
                Event::Registered { lifetime, .. } => self.registered.push(Ok(lifetime)),
                Event::RegistrationRefused { reason, .. } => self.registered.push(Err(reason)),
                Event::Discovered { hit, .. } => self.discovered.push(hit),
                Event::Opening { .. } | Event::Admitted { .. } | Event::Departed { .. } => {}
            }
        }
    }
}

/// The two of them while somebody decides.
struct Decided<'a, 'b> {
    pair: &'a mut Pair,
    network: &'a mut Decide<'b>,
}

impl World for Decided<'_, '_> {
    fn now(&mut self) -> &mut Instant {
        &mut self.pair.now
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.pair.flying.iter().map(|flying| flying.at).min()
    }

    fn deliver(&mut self) {
        let Pair { now, sides, flying } = &mut *self.pair;
        let Some(Flying { to, route, bytes, .. }) = arrived(flying, *now, |flying| flying.at) else { return };
        let Side { host, rng, .. } = &mut sides[to];
        host.handle_packet(*now, rng, route, &bytes);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.pair.sides.iter().filter_map(|side| side.host.poll_timeout()).map(|(at, _)| at).min()
    }

    fn handle_timers(&mut self) {
        let now = self.pair.now;
        self.pair.sides.iter_mut().for_each(|Side { host, rng, .. }| time_out(host, rng, now));
    }

    fn collect(&mut self) {
        (0..2).for_each(|side| self.pair.collect(side, self.network));
    }
}

/// Takes what arrives first, if it has by now.
pub fn arrived<T>(flying: &mut Vec<T>, now: Instant, at: impl Fn(&T) -> Instant) -> Option<T> {
    let (index, first) = flying.iter().enumerate().min_by_key(|(_, packet)| at(packet))?;
    (at(first) <= now).then(|| flying.remove(index))
}

/// Timers of a host that are due go off, and none is due any more.
pub fn time_out(host: &mut Host, rng: &mut ChaCha20Rng, now: Instant) {
    if host.poll_timeout().is_some_and(|(at, _)| at <= now) {
        host.handle_timeout(now, rng);
        if let Some((at, kind)) = host.poll_timeout() {
            assert!(at > now, "{kind:?} is still due");
        }
    }
}

impl Pair {
    /// Two hosts that know each other, with these locators.
    pub fn new(identities: [HostIdentity; 2], configs: [HostConfig; 2], seed: u64) -> Self {
        let hits = identities.each_ref().map(HostIdentity::hit);
        let locators = configs.each_ref().map(|config| config.locators.clone());
        let mut seed = seed << 1;
        let mut sides = identities
            .into_iter()
            .zip(configs)
            .map(|(identity, config)| {
                seed += 1;
                Side::new(identity, config, seed)
            })
            .collect::<Vec<_>>()
            .into_iter();
        let mut sides = [sides.next().unwrap(), sides.next().unwrap()];
        sides[0].host.add_peer(Instant::ZERO, Peer::new(hits[1], locators[1].clone()));
        sides[1].host.add_peer(Instant::ZERO, Peer::new(hits[0], locators[0].clone()));
        Self { now: Instant::ZERO, sides, flying: Vec::new() }
    }

    /// The usual two: recorded identities, two IPv4 locators each, inside UDP.
    pub fn usual(seed: u64) -> Self {
        let a = addresses(&["10.1.0.1", "10.2.0.1"], 10500);
        let b = addresses(&["10.1.0.2", "10.2.0.2"], 10500);
        Self::new(identities(), [config(&a), config(&b)], seed)
    }

    pub fn hit(&self, side: usize) -> Hit {
        self.sides[side].host.hit()
    }

    pub fn connect(&mut self, side: usize) {
        let peer = self.hit(1 - side);
        let Side { host, rng, .. } = &mut self.sides[side];
        host.connect(self.now, rng, peer).unwrap();
        self.collect(side, &mut |flying, fly| fly.push(flying));
    }

    /// The first host begins; two seconds of that, in which `network` decides what flies on.
    pub fn exchange(&mut self, network: &mut Decide<'_>) {
        let peer = self.hit(1);
        let Side { host, rng, .. } = &mut self.sides[0];
        host.connect(self.now, rng, peer).unwrap();
        self.collect(0, network);
        let until = self.now + Duration::from_secs(2);
        while self.step(until, network) {}
    }

    /// Takes what a host has to say; `network` decides what flies on.
    pub fn collect(&mut self, side: usize, network: &mut Decide<'_>) {
        self.sides[side].take_events();
        while let Some(control) = self.sides[side].host.poll_transmit() {
            let route = Route { local: control.route.remote, remote: control.route.local };
            let at = self.now + Duration::from_millis(20);
            network(Flying { at, to: 1 - side, route, bytes: control.bytes }, &mut self.flying);
        }
    }

    /// Delivers the next packet, or lets the next deadline pass, if that is not after `until`.
    pub fn step(&mut self, until: Instant, network: &mut Decide<'_>) -> bool {
        let mut time = VirtualTime::new(self.now);
        Decided { pair: self, network }.step(&mut time, until)
    }

    /// Runs without loss for a time.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until, &mut |flying, fly| fly.push(flying)) {}
    }

    /// Both have the same paths, and on each a packet sealed by one is opened by the other, in both directions.
    pub fn check_paths(&mut self, count: usize) {
        let [a, b] = &mut self.sides;
        assert_eq!((a.paths.len(), b.paths.len()), (count, count), "paths of the two");
        for (from, to) in [(0, 1), (1, 0)] {
            let [a, b] = &mut self.sides;
            let (sender, receiver) = if from < to { (a, b) } else { (b, a) };
            assert_eq!(sender.verified.len(), count, "paths that may be sent on");
            for (route, outbound, _) in sender.paths.values_mut() {
                let (mut sealed, mut opened) = (Vec::new(), Vec::new());
                outbound.seal(17, b"over and out", &mut sender.rng, &mut sealed).unwrap();
                let there = receiver
                    .paths
                    .values_mut()
                    .find(|(other, ..)| other.local == route.remote && other.remote == route.local);
                let (_, _, inbound) = there.expect("the same path at the peer");
                assert_eq!(inbound.open(&sealed, &mut opened).unwrap(), 17);
                assert_eq!(opened, b"over and out");
            }
        }
    }
}

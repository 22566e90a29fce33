//! Two hosts, a and b, joined by links in virtual time. Path i joins a's locator 10.0.i.1 with b's 10.0.i.2; nothing
//! else is joined.
#![allow(unreachable_pub, reason = "tests are no interface")]

pub mod liar;
pub mod stream;

use clock::{Duration, Instant, Rng, Streams};
use hip::Route;
use hip::identity::HostIdentity;
use link::{Link, LinkConfig, LossConfig, ProcessingJitter, QueueConfig};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use testkit::World as _;
use wedge::{Datagram, Ecn, LocalPath, PeerConfig, Protocol, Transmit, Wedge, WedgeConfig, WedgeEvent};
use wire::{Hit, Lsi};

pub const LSIS: [Lsi; 2] = [Lsi([1, 0, 0, 1]), Lsi([1, 0, 0, 2])];

/// The port that marks packets of rivals.
const RIVALS: u16 = 7;

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What joins the hosts: the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub rate: u64,
    /// One way.
    pub delay: Duration,
    pub loss: f64,
}

impl Spec {
    pub const fn new(rate: u64, delay: Duration) -> Self {
        Self { rate, delay, loss: 0.0 }
    }
}

/// A program's side of a host: what it is given, and what it says then.
pub trait Program {
    /// The host delivers a packet.
    fn receive(&mut self, now: Instant, packet: &[u8]);
    /// What it sends by `now`.
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>>;
    /// When it wants to be asked again.
    fn deadline(&self) -> Option<Instant>;
}

/// Keeps what it is given and says what it is told.
#[derive(Default)]
pub struct Mailbox {
    pub received: Vec<(Instant, Vec<u8>)>,
    pub to_send: Vec<Vec<u8>>,
}

impl Program for Mailbox {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        self.received.push((now, packet.to_vec()));
    }
    fn send(&mut self, _now: Instant) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.to_send)
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// A TCP connection that takes a link beside the paths.
pub struct Rival {
    pub link: usize,
    pub begins: Instant,
    pub sender: stream::Sender,
    pub receiver: stream::Receiver,
}

impl Rival {
    /// Wire bytes of IPv4, UDP and ESP less those of the inner header, so that segments are as large as those of the paths.
    const HEADERS: u32 = 20;
}

pub struct World {
    pub now: Instant,
    pub hosts: [Wedge; 2],
    pub rngs: [ChaCha20Rng; 2],
    /// By path, then by sender.
    pub links: Vec<[Link<Transmit>; 2]>,
    /// Which of the links each path takes: its own, or one that it shares.
    pub via: Vec<usize>,
    /// TCP connections outside of the tunnel, and the link that each takes.
    pub rivals: Vec<Rival>,
    pub events: [Vec<WedgeEvent>; 2],
    /// Datagrams on each link so far, and those of them that were ESP.
    pub sent: Vec<[u64; 2]>,
    /// Everything sent, if asked for.
    pub record: Option<Vec<(usize, Transmit)>>,
    /// What happens to packets behind each link.
    pub weather: Vec<Weather>,
    /// Chance in it.
    pub rng: Rng,
    /// Packets that are late: when they arrive, and their sender.
    astray: Vec<(Instant, usize, Transmit)>,
    /// The most that a sender takes for a packet, now more and now less ([`ProcessingJitter`]).
    pub max_processing: Duration,
    /// What waits for that, by sender: link, side, size.
    processing: ProcessingJitter<usize, (usize, usize, Transmit, u32)>,
    /// So often each host looks at what has arrived, and then at all of it; zero: at once.
    pub naps: [Duration; 2],
    /// By host, what it has not looked at yet.
    unread: [Vec<(Route, Transmit)>; 2],
    /// How much each host's clock is ahead of [`World::now`].
    pub ahead: [Duration; 2],
    /// Timers of each host that went off.
    pub timers: [u64; 2],
    /// Each locator reaches each other, by the link of a's.
    pub meshed: bool,
    /// A NAT before a: on a link its port is this one, and nothing to another gets through.
    pub nat: Option<(usize, u16)>,
    /// No packet of IP protocol 50 gets through: from a, from b.
    pub blocks_esp: [bool; 2],
    /// Changes what a host says; the hosts have to log their keys.
    pub liar: Option<liar::Liar>,
}

/// What a network does besides queueing and losing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Probability that a packet arrives twice.
    pub twice: f64,
    /// Probability that a packet is late, and by how much at most.
    pub late: (f64, Duration),
}

/// By the world's clock.
fn back(at: Instant, ahead: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(ahead.as_nanos()))
}

pub fn locator(path: usize, side: usize, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, side as u8 + 1)), port)
}

pub fn identities() -> [HostIdentity; 2] {
    testkit::IDENTITIES.map(|pem| HostIdentity::from_pem(pem).unwrap())
}

impl World {
    pub fn new(specs: &[Spec]) -> Self {
        Self::configured(specs, 10500, |_| ())
    }

    pub fn configured(specs: &[Spec], port: u16, tune: impl Fn(&mut WedgeConfig)) -> Self {
        let mut rngs = [1, 2].map(ChaCha20Rng::seed_from_u64);
        let identities = identities();
        let hits = [identities[0].hit(), identities[1].hit()];
        let mut side = 0;
        let hosts = identities.map(|identity| {
            let paths = specs.iter().enumerate().map(|(path, spec)| {
                let mut link = LocalPath::new(format!("link{path}"), locator(path, side, port));
                (link.rate, link.delay) = (Some(spec.rate), spec.delay);
                link
            });
            let mut config = WedgeConfig::new(LSIS[side], paths.collect());
            (config.hip.puzzle_difficulty, config.hip.groups) = (1, vec![hip::dh::Group::P256]);
            config.congestion = "lia".parse().unwrap();
            tune(&mut config);
            let mut wedge = Wedge::new(identity, config, &mut rngs[side]).unwrap();
            let other = 1 - side;
            let addresses = (0..specs.len()).map(|path| locator(path, other, port));
            wedge.add_peer(PeerConfig::new(["a", "b"][other], hits[other], LSIS[other], addresses));
            side += 1;
            wedge
        });
        let streams = Streams::new(7);
        let links = specs.iter().enumerate().map(|(path, spec)| {
            [0, 1].map(|side| {
                // 1.5 times what fits into a round trip.
                let queue = (spec.rate as f64 / 8.0 * spec.delay.as_secs_f64() * 2.0 * 1.5) as u64;
                let config = LinkConfig {
                    rate: Some(spec.rate),
                    delay: spec.delay,
                    queue: QueueConfig::Bytes(queue.max(6000)),
                    loss: if spec.loss > 0.0 { LossConfig::Random(spec.loss) } else { LossConfig::None },
                    ..LinkConfig::default()
                };
                Link::new(config, streams.stream(&format!("link {path} {side}")))
            })
        });
        Self {
            now: Instant::ZERO,
            hosts,
            rngs,
            links: links.collect(),
            via: (0..specs.len()).collect(),
            rivals: Vec::new(),
            events: [Vec::new(), Vec::new()],
            sent: vec![[0; 2]; specs.len()],
            record: None,
            weather: vec![Weather::default(); specs.len()],
            rng: streams.stream("weather"),
            astray: Vec::new(),
            max_processing: Duration::ZERO,
            processing: ProcessingJitter::default(),
            naps: [Duration::ZERO; 2],
            unread: Default::default(),
            ahead: [Duration::ZERO; 2],
            timers: [0; 2],
            meshed: false,
            nat: None,
            blocks_esp: [false; 2],
            liar: None,
        }
    }

    pub fn hit(&self, side: usize) -> Hit {
        self.hosts[side].hit()
    }

    /// Runs until `end` with a program on each side.
    pub fn run(&mut self, end: Instant, programs: &mut [&mut dyn Program; 2]) {
        Running { world: self, programs }.run_to(end);
    }

    /// What has arrived over a link, and what the network does to it.
    fn pass(&mut self, path: usize, from: usize, transmit: Transmit) {
        let now = self.now;
        let Route { local, remote } = transmit.route;
        if local.port() == RIVALS {
            let rival = &mut self.rivals[usize::from(remote.port())];
            let end: &mut dyn Program = if from == 0 { &mut rival.receiver } else { &mut rival.sender };
            return end.receive(now, &transmit.bytes);
        }
        let Weather { twice, late } = self.weather[path];
        if self.rng.chance(twice) {
            self.arrive(from, transmit.clone());
        }
        if self.rng.chance(late.0) {
            let by = late.1.mul_f64(self.rng.unit());
            return self.astray.push((now + by, from, transmit));
        }
        self.arrive(from, transmit);
    }

    fn send_of_rivals(&mut self) {
        for number in 0..self.rivals.len() {
            let rival = &mut self.rivals[number];
            if rival.begins > self.now {
                continue;
            }
            for (side, packets) in [rival.sender.send(self.now), rival.receiver.send(self.now)].into_iter().enumerate()
            {
                for bytes in packets {
                    let mut route = Route { local: locator(0, side, RIVALS), remote: locator(0, 1 - side, 0) };
                    route.remote.set_port(number as u16);
                    let size = bytes.len() as u32 - 40 + 20 + Rival::HEADERS;
                    let (protocol, ecn) = (Protocol::Esp, Ecn::NotEct);
                    let transmit = Transmit { route, protocol, bytes, ecn, may_fragment: true, is_alone: false };
                    self.leave(2 + number, self.rivals[number].link, side, transmit, size);
                }
            }
        }
    }

    /// The other host receives what `from` has sent.
    fn arrive(&mut self, from: usize, transmit: Transmit) {
        let Route { mut local, mut remote } = transmit.route;
        let has_ports = transmit.protocol != Protocol::Esp;
        if let Some((path, port)) = self.nat.filter(|_| has_ports) {
            let inside = locator(path, 0, 10500);
            if from == 0 && local == inside {
                local.set_port(port);
            } else if from == 1 && remote.ip() == inside.ip() {
                if remote.port() != port {
                    return;
                }
                remote = inside;
            }
        }
        if !has_ports {
            if self.blocks_esp[from] {
                return;
            }
            local.set_port(0);
        }
        self.unread[1 - from].push((Route { local: remote, remote: local }, transmit));
        if self.naps[1 - from].is_zero() {
            self.read(1 - from);
        }
    }

    /// A host takes what it has not looked at.
    fn read(&mut self, side: usize) {
        let unread = std::mem::take(&mut self.unread[side]);
        let datagrams: Vec<Datagram<'_>> = unread
            .iter()
            .map(|(route, Transmit { protocol, ecn, bytes, .. })| Datagram {
                route: *route,
                protocol: *protocol,
                payload: bytes,
                ecn: *ecn,
            })
            .collect();
        let own = self.now + self.ahead[side];
        self.hosts[side].handle_network(own, &mut self.rngs[side], &datagrams);
    }

    fn transmit(&mut self, side: usize, mut transmit: Transmit) {
        if let Some(liar) = &mut self.liar {
            liar.pass(side, &mut transmit);
        }
        if let Some(record) = &mut self.record {
            record.push((side, transmit.clone()));
        }
        let Route { local, remote } = transmit.route;
        let number = |address: SocketAddr, side: usize| {
            (0..self.links.len()).find(|path| address.ip() == locator(*path, side, 0).ip())
        };
        let (Some(ours), Some(theirs)) = (number(local, side), number(remote, 1 - side)) else { return };
        if ours != theirs && !self.meshed {
            return;
        }
        let path = if side == 0 { ours } else { theirs };
        self.sent[path][side] += 1;
        let headers = 20 + if transmit.protocol == Protocol::Udp { 8 } else { 0 };
        let bytes = (transmit.bytes.len() + headers) as u32;
        self.leave(side, self.via[path], side, transmit, bytes);
    }

    fn leave(&mut self, sender: usize, link: usize, side: usize, transmit: Transmit, size: u32) {
        if self.max_processing.is_zero() {
            // A full queue drops.
            let _ = self.links[link][side].offer(self.now, transmit, size);
            return;
        }
        let time = self.max_processing.mul_f64(self.rng.unit());
        self.processing.put(self.now, 2 * sender + side, time, (link, side, transmit, size));
    }
}

/// The hosts with a program on each.
struct Running<'a, 'b> {
    world: &'a mut World,
    programs: &'a mut [&'b mut dyn Program; 2],
}

impl testkit::World for Running<'_, '_> {
    fn now(&mut self) -> &mut Instant {
        &mut self.world.now
    }

    fn next_arrival(&self) -> Option<Instant> {
        let world = &*self.world;
        let links = world.links.iter().flatten().filter_map(Link::next_event);
        let astray = world.astray.iter().map(|(at, ..)| *at);
        let rivals = world.rivals.iter().map(|rival| match rival.begins {
            begins if begins > world.now => begins,
            _ => rival.sender.deadline().unwrap_or(Instant::FAR_FUTURE),
        });
        let naps = world.naps.iter().zip(&world.unread).filter(|(_, unread)| !unread.is_empty());
        let reading = naps.map(|(nap, _)| {
            let nap = nap.as_nanos();
            Instant::from_nanos((world.now.as_nanos() / nap + 1) * nap)
        });
        links.chain(astray).chain(rivals).chain(world.processing.next_event()).chain(reading).min()
    }

    fn deliver(&mut self) {
        let world = &mut *self.world;
        let now = world.now;
        while let Some((_, (link, side, transmit, size))) = world.processing.poll(now) {
            // A full queue drops.
            let _ = world.links[link][side].offer(now, transmit, size);
        }
        for path in 0..world.links.len() {
            for from in 0..2 {
                while let Some(transmit) = world.links[path][from].poll(now) {
                    world.pass(path, from, transmit);
                }
            }
        }
        while let Some(index) = world.astray.iter().position(|(at, ..)| *at <= now) {
            let (_, from, transmit) = world.astray.remove(index);
            world.arrive(from, transmit);
        }
        for side in 0..2 {
            let nap = world.naps[side];
            if !nap.is_zero() && now.as_nanos().is_multiple_of(nap.as_nanos()) {
                world.read(side);
            }
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let timers = self.world.hosts.iter().zip(self.world.ahead);
        let timers = timers.filter_map(|(host, ahead)| Some(back(host.poll_timeout()?.0, ahead)));
        timers.chain(self.programs.iter().filter_map(|program| program.deadline())).min()
    }

    fn handle_timers(&mut self) {
        let World { now, hosts, rngs, ahead, timers, .. } = &mut *self.world;
        for (side, host) in hosts.iter_mut().enumerate() {
            let own = *now + ahead[side];
            if host.poll_timeout().is_some_and(|(at, _)| at <= own) {
                timers[side] += 1;
                host.handle_timeout(own, &mut rngs[side]);
                assert!(host.poll_timeout().is_none_or(|(at, _)| at > own));
            }
        }
    }

    fn collect(&mut self) {
        let Self { world, programs } = self;
        world.send_of_rivals();
        for (side, program) in programs.iter_mut().enumerate() {
            let (now, own) = (world.now, world.now + world.ahead[side]);
            // Answers to what is delivered may be followed by deliveries: a refused flow.
            for _ in 0..4 {
                let mut delivered = Vec::new();
                world.hosts[side].poll_deliver(&mut delivered);
                delivered.iter().for_each(|packet| program.receive(now, packet));
                let packets = program.send(now);
                world.hosts[side].handle_application(own, &mut world.rngs[side], packets);
            }
            while let Some(event) = world.hosts[side].poll_event() {
                if let (Some(liar), WedgeEvent::KeyLog(line)) = (&mut world.liar, &event) {
                    liar.learn(line);
                }
                world.events[side].push(event);
            }
            let mut out = Vec::new();
            world.hosts[side].poll_transmit(own, &mut out);
            out.into_iter().for_each(|transmit| world.transmit(side, transmit));
        }
    }
}

/// A UDP packet from HIT to HIT.
pub fn udp_v6(from: Hit, to: Hit, ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    wire::udp::packet((from.address().into(), ports.0), (to.address().into(), ports.1), data).unwrap()
}

/// A UDP packet from LSI to LSI.
pub fn udp_v4(from: Lsi, to: Lsi, ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    wire::udp::packet((from.address().into(), ports.0), (to.address().into(), ports.1), data).unwrap()
}

/// A TCP packet from HIT to HIT.
pub fn tcp_v6(from: Hit, to: Hit, header: &wire::tcp::Header<'_>, data: &[u8]) -> Vec<u8> {
    let (from, to) = (from.address().into(), to.address().into());
    let mut segment = Vec::new();
    header.emit(from, to, data, &mut segment).unwrap();
    wire::ip::packet(from, to, wire::ip::protocol::TCP, &segment).unwrap()
}

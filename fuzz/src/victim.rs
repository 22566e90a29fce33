//! A whole host with one hostile peer, and the network between them, which loses nothing.

use crate::grammar::Edit;
use crate::hostile::Hostile;
use crate::memory::Watch;
use clock::{Duration, Instant};
use hip::dh::Group;
use hip::Route;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use wedge::{Datagram, Ecn, LocalPath, PeerConfig, Protocol, Wedge, WedgeConfig};
use wire::esp::{Encapsulated, classify, emit_hip_in_udp};
use wire::hip::PacketKind;
use wire::icmp::Echo;
use wire::ip::protocol;
use wire::{Hit, Lsi};

/// The host's LSI and the peer's.
pub const LSIS: [Lsi; 2] = [Lsi([1, 0, 0, 1]), Lsi([1, 0, 0, 2])];
/// What the host may hold for all peers, in bytes.
const MEMORY: usize = 16 << 20;
/// One peer may have so much of it, by the documentation of `wedge`.
const SHARE: usize = MEMORY / 4 + (256 << 10);
/// And so much in the tables that have bounds of their own there: 16,384 connections of 60 bytes, and for each of 4,096 flows half a
/// kilobyte about its window and 24 bytes for its number.
const TABLES: usize = 16_384 * 60 + 4_096 * (512 + 24);
/// The heap may grow by so much for one peer, in bytes: its share, as much again for what the books are kept in, and what is
/// on its way through.
pub const HEAP: usize = 2 * SHARE + (4 << 20);
/// Most packets in one run.
const PACKETS: u32 = 16_384;

/// The host, its peer, and the time.
pub struct Victim {
    pub wedge: Wedge,
    pub peer: Hostile,
    pub now: Instant,
    rng: ChaCha20Rng,
    /// What programs were given.
    pub delivered: Vec<wedge::Packet>,
    /// Bytes that went to the network.
    pub sent: u64,
    /// Packets of the peer that a run may still have.
    left: u32,
    watch: Watch,
    /// The peer answers heartbeats.
    pub alive: bool,
}

fn locator(net: u8, host: u8) -> SocketAddr {
    SocketAddr::from(([10, net % 4, 0, host], 10500))
}

/// A route from the peer to the host: both have two addresses, others are invented.
pub fn route(choice: u8) -> Route {
    Route { local: locator(choice & 3, 2 + (choice >> 4 & 3)), remote: locator(choice >> 2 & 1, 1) }
}

impl Victim {
    pub fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let identity = Hostile::identity(1);
        let path = |net| {
            let mut path = LocalPath::new(format!("link{net}"), locator(net, 1));
            path.delay = Duration::from_millis(5);
            path
        };
        let mut config = WedgeConfig::new(LSIS[0], vec![path(0), path(1)]);
        (config.hip.puzzle_difficulty, config.hip.groups) = (0, vec![Group::P256]);
        config.memory = MEMORY;
        let mut wedge = Wedge::new(identity, config, &mut rng).expect("a host");
        let peer = Hostile::new(wedge.hit());
        wedge.add_peer(PeerConfig::new("hostile", peer.hit(), LSIS[1], [0, 1].map(|net| locator(net, 2))));
        Self {
            wedge,
            peer,
            now: Instant::ZERO + Duration::from_secs(1),
            rng,
            delivered: Vec::new(),
            sent: 0,
            left: PACKETS,
            watch: Watch::new(),
            alive: true,
        }
    }

    /// Host and peer have agreed on keys, with the peer as Initiator or as Responder.
    pub fn established(peer_begins: bool) -> Self {
        let mut victim = Self::new();
        victim.exchange(peer_begins, [&[], &[], &[], &[]]);
        assert!(victim.peer.is_up() && !victim.peer.outbound.is_empty(), "an honest exchange fails");
        victim.watch = Watch::new();
        victim
    }

    /// A base exchange, with edits of I1, R1, I2 and R2.
    pub fn exchange(&mut self, peer_begins: bool, [i1, r1, i2, r2]: [&[Edit]; 4]) {
        if peer_begins {
            let bytes = self.peer.i1(i1);
            self.hip(route(0), &bytes);
            let Some(answer) = self.last(PacketKind::R1) else { return };
            if let Some(bytes) = self.peer.i2(&answer, i2) {
                self.hip(route(0), &bytes);
            }
        } else {
            let packet = crate::packets::udp_v6(self.wedge.hit(), self.peer.hit(), (7, 9), b"hello");
            self.program(&packet);
            if self.last(PacketKind::I1).is_none() {
                return;
            }
            let bytes = self.peer.r1(r1);
            self.hip(route(0), &bytes);
            let Some(answer) = self.last(PacketKind::I2) else { return };
            if let Some(bytes) = self.peer.r2(&answer, r2) {
                self.peer.learn_from_i2(route(0), &answer);
                self.hip(route(0), &bytes);
            }
        }
    }

    /// The last packet of a kind that the host has sent.
    pub fn last(&self, kind: PacketKind) -> Option<Vec<u8>> {
        self.peer.heard.iter().rev().find(|(heard, ..)| *heard == kind).map(|(.., bytes)| bytes.clone())
    }

    /// The host receives a HIP packet. `route` leads from the peer to it.
    pub fn hip(&mut self, route: Route, bytes: &[u8]) {
        let mut datagram = Vec::with_capacity(bytes.len() + 4);
        emit_hip_in_udp(bytes, &mut datagram);
        self.udp(route, &datagram);
    }

    /// The host receives an ESP packet that opens. False where there is no path, or a run has had its packets.
    pub fn esp(&mut self, path: u8, next_header: u8, payload: &[u8]) -> bool {
        let Some((route, sealed)) = self.peer.esp(path, next_header, payload) else { return false };
        self.udp(route, &sealed);
        self.left > 0
    }

    fn udp(&mut self, route: Route, payload: &[u8]) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return;
        }
        let route = Route { local: route.remote, remote: route.local };
        let datagram = Datagram { route, protocol: Protocol::Udp, payload, ecn: Ecn::NotEct };
        self.wedge.handle_network(self.now, &mut self.rng, &[datagram]);
        self.settle();
    }

    /// A program of the host sends a packet. False where a run has had its packets.
    pub fn program(&mut self, packet: &[u8]) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            self.wedge.handle_application(self.now, &mut self.rng, [packet.to_vec()]);
            self.settle();
        }
        self.left > 0
    }

    /// Time passes; at most a minute.
    pub fn wait(&mut self, time: Duration) {
        let end = self.now + time.min(Duration::from_secs(60));
        for _ in 0..2_000 {
            match self.wedge.poll_timeout() {
                Some((at, _)) if at <= end => {
                    self.now = self.now.max(at);
                    self.wedge.handle_timeout(self.now, &mut self.rng);
                    self.settle();
                }
                _ => break,
            }
        }
        self.now = self.now.max(end);
        self.wedge.handle_timeout(self.now, &mut self.rng);
        self.settle();
        let next = self.wedge.poll_timeout();
        assert!(next.is_none_or(|(at, _)| at > self.now), "a deadline in the past: {next:?}, now {}", self.now);
    }

    /// The peer hears what the host says.
    fn settle(&mut self) {
        for _ in 0..4 {
            let mut out = Vec::new();
            self.wedge.poll_transmit(self.now, &mut out);
            let mut beats = Vec::new();
            for transmit in out {
                self.sent += transmit.bytes.len() as u64;
                assert!(transmit.bytes.len() <= 1472, "a datagram that fits no path: {}", transmit.bytes.len());
                let Encapsulated::Hip(hip) = classify(&transmit.bytes) else {
                    beats.extend(self.peer.open(&transmit.bytes));
                    continue;
                };
                let back = Route { local: transmit.route.remote, remote: transmit.route.local };
                self.peer.hear(back, hip.to_vec());
            }
            self.wedge.poll_deliver(&mut self.delivered);
            if self.delivered.len() > 64 {
                self.delivered.drain(..self.delivered.len() - 64);
            }
            while self.wedge.poll_event().is_some() {}
            if !(self.alive && self.pong(&beats)) {
                break;
            }
        }
        let held = self.wedge.held_bytes();
        assert!(held <= SHARE + TABLES, "the host says that it holds {held} bytes for one peer");
        self.watch.assert_below(HEAP, "a host with one hostile peer");
    }

    /// The peer answers heartbeats. Whether there were any.
    fn pong(&mut self, packets: &[(u8, Vec<u8>)]) -> bool {
        let (from, to) = (self.wedge.hit().address(), self.peer.hit().address());
        let mut any = false;
        for (next_header, payload) in packets {
            if *next_header != protocol::ICMPV6 {
                continue;
            }
            let mut answer = Vec::new();
            let Some(echo) = Echo::parse(payload, from, to).filter(|echo| echo.request) else { continue };
            if echo.reply().emit(to, from, &mut answer).is_err() {
                continue;
            }
            // The path is in the data, but an answer on any is read.
            for path in 0..2 {
                if let Some((route, sealed)) = self.peer.esp(path, protocol::ICMPV6, &answer) {
                    let route = Route { local: route.remote, remote: route.local };
                    let datagram = Datagram { route, protocol: Protocol::Udp, payload: &sealed, ecn: Ecn::NotEct };
                    self.wedge.handle_network(self.now, &mut self.rng, &[datagram]);
                    any = true;
                }
            }
        }
        any
    }

    /// What always has to hold of the host, whatever its peer does.
    pub fn check(&self) {
        let status = self.wedge.status(self.now);
        let paths = status.peers.iter().map(|peer| peer.paths.len()).max().unwrap_or(0);
        assert!(paths <= 32, "{paths} paths to one peer");
    }

    /// The host's HIT and the peer's.
    pub fn hits(&self) -> [Hit; 2] {
        [self.wedge.hit(), self.peer.hit()]
    }
}

impl Default for Victim {
    fn default() -> Self {
        Self::new()
    }
}

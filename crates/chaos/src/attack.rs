//! The attacker: off the path, observer, on the path, and a peer with all keys.

use crate::forge;
use crate::network::{Packet, bystander};
use crate::plan::{Attack, Plan, Source};
use crate::property::Property;
use crate::tap::Tap;
use crate::world::{Task, World};
use clock::{Duration, Instant, Rng};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wedge::{Ecn, Protocol};
use wire::hip::PacketKind;

/// An observer remembers so many packets.
const REMEMBERED: usize = 256;
/// Nothing is held for longer, in a host that waits for what is missing.
const LONGEST_HOLD: Duration = Duration::from_millis(700);

/// What the attacker knows and does.
pub(crate) struct Attacker {
    pub(crate) rng: Rng,
    /// Somebody will replay something.
    records: bool,
    seen: VecDeque<Packet>,
    corrupt: BTreeMap<(usize, usize), u32>,
    running: Vec<Running>,
    /// Hosts that steal addresses: the bystander's, and what the host takes for its own there.
    thieves: BTreeMap<usize, (u8, SocketAddr)>,
    /// Packets that a hostile host has made, by number: when they arrived.
    pub(crate) hoard: BTreeMap<u64, Option<Instant>>,
    /// Numbers used beyond those of the host's own wedge, by SA.
    pub(crate) ahead: BTreeMap<(usize, u32), u32>,
}

struct Running {
    attack: Attack,
    done: u32,
}

impl Attacker {
    pub(crate) fn new(plan: &Plan) -> Self {
        let replays = plan.events.iter().map(|event| &event.fault).chain(&plan.epilogue);
        let records =
            replays.into_iter().any(|fault| matches!(fault, crate::plan::Fault::Attack(Attack::Replay { .. })));
        Self {
            rng: Rng::from_seed(plan.seed ^ 0xa77a_c4e5),
            records,
            seen: VecDeque::new(),
            corrupt: BTreeMap::new(),
            running: Vec::new(),
            thieves: BTreeMap::new(),
            hoard: BTreeMap::new(),
            ahead: BTreeMap::new(),
        }
    }

    /// Nothing more is done.
    pub(crate) fn stop(&mut self) {
        self.running.clear();
        self.corrupt.clear();
        self.thieves.clear();
    }

    /// A host sleeps: what it holds waits for so long through no fault of its own.
    pub(crate) fn hoard_sleeps(&mut self, host: usize, tap: &Tap, time: Duration) {
        let held = self.hoard.iter_mut().filter(|(tag, _)| tap.sas.contains_key(&(host, (**tag >> 32) as u32)));
        held.filter_map(|(_, at)| at.as_mut()).for_each(|at| *at += time);
    }

    /// A packet passes by.
    pub(crate) fn observe(&mut self, packet: &Packet) {
        if self.records {
            if self.seen.len() == REMEMBERED {
                self.seen.pop_front();
            }
            self.seen.push_back(packet.clone());
        }
    }

    /// Changes a bit of a packet, where that is to be done.
    pub(crate) fn corrupt(&mut self, from: usize, to: Option<usize>, packet: &mut Packet) {
        let Some(left) = to.and_then(|to| self.corrupt.get_mut(&(from, to))).filter(|left| **left > 0) else { return };
        *left -= 1;
        let at = self.rng.below(packet.bytes.len() as u64) as usize;
        if let Some(byte) = packet.bytes.get_mut(at) {
            *byte ^= 1 << self.rng.below(8);
            packet.author = None;
        }
    }

    /// Where a thief sends a packet in truth: nothing where the host is none, or the packet is from another address.
    pub(crate) fn stolen(&self, host: usize, packet: &Packet, own: SocketAddr) -> Option<Vec<Packet>> {
        let &(number, fake) = self.thieves.get(&host)?;
        if packet.source.ip() != fake.ip() {
            return None;
        }
        let spoofed = Packet { source: bystander(number), author: None, ..packet.clone() };
        let true_one = Packet { source: own, ..packet.clone() };
        Some(match packet.kind() {
            Some(PacketKind::Update) => vec![spoofed, true_one],
            Some(_) => vec![true_one],
            None => Vec::new(),
        })
    }

    /// At which address a thief takes a packet.
    pub(crate) fn taken_at(&self, host: usize, packet: &Packet) -> Option<SocketAddr> {
        let (_, fake) = self.thieves.get(&host)?;
        (packet.kind() == Some(PacketKind::Update) && forge::has_esp_info(packet)).then_some(*fake)
    }
}

impl World {
    /// An attack begins.
    pub(crate) fn begin_attack(&mut self, attack: Attack) {
        match attack {
            Attack::Corrupt { from, to, packets } => _ = self.attacker.corrupt.insert((from, to), packets),
            Attack::StealAddress { host, bystander } => self.steal(host, bystander),
            _ => {
                self.attacker.running.push(Running { attack, done: 0 });
                let number = self.attacker.running.len() - 1;
                self.attack_again(number);
            }
        }
    }

    /// The next packet of an attack.
    pub(crate) fn attack_again(&mut self, number: usize) {
        let Some(running) = self.attacker.running.get_mut(number) else { return };
        let (attack, done) = (running.attack, running.done);
        running.done += 1;
        let (count, pause) = match attack {
            Attack::Forge { count, interval_us, .. } => (count, Duration::from_micros(interval_us.max(20))),
            Attack::Replay { count, .. } => (count, Duration::from_millis(3)),
            Attack::Optimistic { reports, interval_us, .. } => (reports, Duration::from_micros(interval_us.max(200))),
            Attack::Gibberish { reports, .. } => (reports, Duration::from_millis(2)),
            Attack::Sequence { .. } => (1, Duration::ZERO),
            Attack::Hoard { times, refresh_ms, .. } => {
                (times.saturating_add(1), Duration::from_millis(refresh_ms.max(1)))
            }
            Attack::Corrupt { .. } | Attack::StealAddress { .. } => return,
        };
        if done >= count {
            return;
        }
        self.strike(attack, done);
        self.schedule(self.now + pause, Task::Attack(number));
    }

    fn strike(&mut self, attack: Attack, done: u32) {
        match attack {
            Attack::Forge { to, claims, what, source, .. } => {
                let Some(packet) = self.forged(to, claims, what, source) else { return };
                self.enter(packet);
            }
            Attack::Replay { pick, to, source, .. } => self.replay(pick, to, source),
            Attack::Optimistic { host, victim, .. } => {
                let Some(report) = forge::optimistic(&self.tap, host, victim) else { return };
                self.speak(host, victim, hip::feedback::NEXT_HEADER, &report);
            }
            Attack::Gibberish { host, victim, .. } => {
                let mut report = forge::optimistic(&self.tap, host, victim).unwrap_or_else(|| vec![1, 1, 0, 0]);
                let changes = 1 + self.attacker.rng.below(8);
                for _ in 0..changes {
                    let at = self.attacker.rng.below(report.len() as u64) as usize;
                    report[at] = self.attacker.rng.next_u64() as u8;
                }
                self.speak(host, victim, hip::feedback::NEXT_HEADER, &report);
            }
            // What comes after the largest number shows whether anybody counts on from it.
            Attack::Sequence { host, victim, number } => [0, 1, 5, 0, 3].into_iter().for_each(|below| {
                self.speak_numbered(host, victim, 59, &[], Some(number.saturating_sub(below)));
            }),
            Attack::Hoard { host, victim, flows, packets, .. } => self.hoard(host, victim, flows, packets, done),
            Attack::Corrupt { .. } | Attack::StealAddress { .. } => {}
        }
    }

    /// An observer sends a packet again.
    fn replay(&mut self, pick: u32, to: Option<usize>, source: Source) {
        let seen = &self.attacker.seen;
        let Some(mut packet) = seen.get(pick as usize % seen.len().max(1)).cloned() else { return };
        packet.author = None;
        if let Source::Bystander(number) = source {
            let port = packet.source.port();
            packet.source = SocketAddr::new(bystander(number).ip(), port);
        }
        if let Some(address) = to.and_then(|to| self.nodes.get(to)).and_then(|node| node.interfaces.first()) {
            packet.destination = SocketAddr::new(address.public(), packet.destination.port());
        }
        self.enter(packet);
    }

    /// A hostile host says that it has got an address, which is a bystander's.
    fn steal(&mut self, host: usize, number: u8) {
        let now = self.now;
        self.disturb(host);
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_awake() && node.plan.hostile) else { return };
        let Some(mut path) = node.path(0) else { return };
        let fake = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, host as u8, 99, number)), path.locator.port());
        let old = self.attacker.thieves.insert(host, (number, fake));
        let own = node.time.shows(now);
        path.locator = fake;
        path.name = "stolen".into();
        if let Some(wedge) = &mut node.wedge {
            if let Some((_, old)) = old {
                wedge.remove_path(own, &mut node.rng, old.ip());
            }
            // An address that no other path has.
            let _ = wedge.add_path(own, &mut node.rng, path);
        }
        self.touch(host);
    }

    /// A hostile host sends an ESP packet that its wedge has not made.
    pub(crate) fn speak(&mut self, host: usize, victim: usize, next_header: u8, payload: &[u8]) {
        self.speak_numbered(host, victim, next_header, payload, None);
    }

    fn speak_numbered(&mut self, host: usize, victim: usize, next_header: u8, payload: &[u8], number: Option<u32>) {
        if !self.nodes.get(host).is_some_and(|node| node.plan.hostile && node.is_awake()) {
            return;
        }
        let Some((key, sa)) = forge::sa(&self.tap, host, victim) else { return };
        let ahead = self.attacker.ahead.entry(key).or_default();
        *ahead += 1;
        let next = number.unwrap_or_else(|| sa.highest.saturating_add(*ahead));
        let Some(bytes) = forge::seal(&sa.keys, key.1, next, next_header, payload) else { return };
        if let Some(sa) = self.tap.sas.get_mut(&key) {
            sa.packets += 1;
        }
        let Some(source) = self.nodes[host].interfaces.first().map(|interface| interface.address) else { return };
        let Some(to) = self.nodes.get(victim).and_then(|node| node.interfaces.first()) else { return };
        let destination = SocketAddr::new(to.public(), to.address.port());
        let protocol = if source.port() == 0 { Protocol::Esp } else { Protocol::Udp };
        let packet = Packet { source, destination, protocol, ecn: Ecn::NotEct, bytes, author: None };
        self.enter(packet);
    }

    /// Numbered packets of many flows behind a hole, and later one for each that fills a bit of it.
    fn hoard(&mut self, host: usize, victim: usize, flows: u16, packets: u16, done: u32) {
        if done == 0 {
            // "My round-trip time is ten seconds."
            if let Some(mut report) = forge::optimistic(&self.tap, host, victim) {
                report[4 + 4 * 7..4 + 4 * 8].copy_from_slice(&10_000_000_u32.to_be_bytes());
                self.speak(host, victim, hip::feedback::NEXT_HEADER, &report);
            }
        }
        for flow in 0..flows.min(64) {
            let numbers = match done {
                0 => (0..1).chain(1_001..1_001 + packets.min(512)),
                _ => (done as u16..done as u16 + 1).chain(0..0),
            };
            for number in numbers {
                let Some((key, sa)) = forge::sa(&self.tap, host, victim) else { return };
                let ahead = self.attacker.ahead.get(&key).copied().unwrap_or_default();
                let tag = u64::from(key.1) << 32 | u64::from(sa.highest.saturating_add(ahead + 1));
                let Some(payload) =
                    forge::numbered(&self.names, (host, victim), flow, (number, done == 0 && number == 0), tag)
                else {
                    return;
                };
                self.attacker.hoard.insert(tag, None);
                self.speak(host, victim, hip::feedback::NEXT_HEADER, &payload);
            }
        }
    }

    /// Something that nobody has sent arrives at a host.
    pub(crate) fn hoard_arrives(&mut self, packet: &Packet) {
        let Some(Ok(head)) = packet.esp().and_then(|esp| esp.get(..8)).map(<[u8; 8]>::try_from) else { return };
        if let Some(at @ None) = self.attacker.hoard.get_mut(&u64::from_be_bytes(head)) {
            *at = Some(self.now);
        }
    }

    /// A packet of a hostile host is delivered: how long was it kept?
    pub(crate) fn hoarded(&mut self, host: usize, packet: &[u8]) {
        let Some(tag) = forge::tag(packet) else { return };
        let Some(Some(arrived)) = self.attacker.hoard.get(&tag).copied() else { return };
        let (held, at) = (self.now.saturating_since(arrived), self.at_ms());
        self.judge
            .check(at, Property::R1, held <= LONGEST_HOLD, || format!("host {host} has held a packet for {held:?}"));
    }
}

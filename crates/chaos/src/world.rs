//! Hosts, links and time.

use crate::attack::Attacker;
use crate::network::{Packet, drops};
use crate::node::{Node, hits};
use crate::plan::{Block, Flow, Plan};
use crate::property::{Judge, Property};
use crate::tap::{Pair, Tap, key_line};
use crate::traffic::{self, Names, Stream};
use clock::{Duration, Instant, Rng, VirtualTime};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use wedge::{Datagram, Transmit, WedgeEvent};
use wire::hip::PacketKind;

/// What is to be done at a time.
pub(crate) enum Task {
    /// A flow may send.
    Stream(usize),
    /// A packet arrives late.
    Late(Packet),
    /// An event of the plan.
    Event(usize),
    /// A host starts.
    Boot(usize),
    /// A host wakes up.
    Wake(usize),
    /// The attacker goes on.
    Attack(usize),
}

/// Something that a host told of.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) at: Instant,
    pub(crate) host: usize,
    pub(crate) event: WedgeEvent,
}

/// Everything there is.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Instant,
    pub(crate) names: Names,
    pub(crate) nodes: Vec<Node>,
    pub(crate) streams: Vec<Stream>,
    /// How many of the streams are the plan's; the others are probes.
    pub(crate) flows: usize,
    /// Who has an address, and on which interface.
    pub(crate) addresses: BTreeMap<IpAddr, (usize, usize)>,
    pub(crate) firewalls: BTreeMap<(usize, usize), Block>,
    /// Where peers are configured to be, by host.
    pub(crate) locators: Vec<Vec<SocketAddr>>,
    /// The faults are over.
    pub(crate) calm: bool,
    /// What attackers make crosses the links, and is gone before the host that it is for.
    pub(crate) shielded: bool,
    pub(crate) weather: (f64, f64, u64),
    pub(crate) rng: Rng,
    pub(crate) judge: Judge,
    pub(crate) tap: Tap,
    pub(crate) attacker: Attacker,
    pub(crate) told: Vec<Told>,
    /// For a person, where one asks: events, and packets of HIP.
    pub(crate) story: Option<Vec<String>>,
    /// By host: when something was last done to it that may end associations.
    pub(crate) disturbed: Vec<Instant>,
    /// By host and peer: associations that have ended.
    pub(crate) ended: BTreeMap<(usize, usize), usize>,
    /// By host: public-key operations for strangers, and since when they are counted.
    pub(crate) charged: BTreeMap<usize, (u64, Instant)>,
    tasks: BTreeMap<(Instant, u64), Task>,
    next_task: u64,
    dirty: Vec<bool>,
}

impl World {
    /// The world of a plan, before anything has happened.
    ///
    /// # Errors
    /// A sentence, where the plan makes no world.
    pub(crate) fn new(plan: &Plan) -> Result<Self, String> {
        let mut rng = Rng::from_seed(plan.seed ^ 0xc4a0_5000);
        let mut nodes: Vec<Node> =
            plan.hosts.iter().enumerate().map(|(number, host)| Node::new(number, host, &mut rng)).collect();
        let names = Names { hits: hits(nodes.len()) };
        let locators: Vec<Vec<SocketAddr>> = nodes.iter().map(Node::locators).collect();
        for (number, node) in nodes.iter_mut().enumerate() {
            node.boot(Instant::ZERO, number, plan, &names, &locators)?;
        }
        let count = nodes.len();
        let mut streams: Vec<Flow> = plan.flows.clone();
        let flows = streams.len();
        for (pair, &(a, b)) in plan.pairs.iter().enumerate() {
            for (from, to) in [(a, b), (b, a)] {
                streams.push(Flow {
                    from,
                    to,
                    tcp: false,
                    six: true,
                    interval_us: plan.probe_ms.max(1) * 1_000,
                    bytes: 8,
                    start_ms: pair as u64 * 3 % plan.probe_ms.max(1),
                    packets: u32::MAX,
                });
            }
        }
        let mut world = Self {
            now: Instant::ZERO,
            names,
            nodes,
            streams: streams.into_iter().enumerate().map(|(number, flow)| Stream::new(number, flow)).collect(),
            flows,
            addresses: BTreeMap::new(),
            firewalls: BTreeMap::new(),
            locators,
            calm: false,
            shielded: false,
            weather: (0.0, 0.0, 0),
            rng,
            judge: Judge::default(),
            tap: Tap::default(),
            attacker: Attacker::new(plan),
            told: Vec::new(),
            story: None,
            disturbed: vec![Instant::ZERO; count],
            charged: BTreeMap::new(),
            ended: BTreeMap::new(),
            tasks: BTreeMap::new(),
            next_task: 0,
            dirty: vec![true; count],
            plan: plan.clone(),
        };
        world.note_addresses();
        world.tap.hostile.extend((0..count).filter(|host| plan.hosts[*host].hostile));
        for number in 0..world.streams.len() {
            world.schedule(world.streams[number].due, Task::Stream(number));
        }
        for (number, event) in plan.events.iter().enumerate() {
            world.schedule(Instant::ZERO + Duration::from_millis(event.at), Task::Event(number));
        }
        Ok(world)
    }

    pub(crate) fn at_ms(&self) -> u64 {
        self.now.as_nanos() / 1_000_000
    }

    pub(crate) fn schedule(&mut self, at: Instant, task: Task) {
        self.tasks.insert((at.max(self.now), self.next_task), task);
        self.next_task += 1;
    }

    /// Runs until `end`, or until something is found.
    pub(crate) fn run(&mut self, end: Instant) {
        let mut time = VirtualTime::new(self.now);
        while self.judge.finding.is_none() {
            self.step();
            let is_due = time.advance(Some(self.next()), end);
            self.judge.check(self.at_ms(), Property::R4, is_due.is_ok(), || format!("{is_due:?}"));
            self.now = time.now();
            if is_due != Ok(true) {
                return;
            }
        }
    }

    fn next(&self) -> Instant {
        let tasks = self.tasks.first_key_value().map(|((at, _), _)| *at);
        let nodes = self.nodes.iter().filter(|node| node.is_awake()).map(|node| node.deadline);
        let interfaces = self.nodes.iter().flat_map(|node| &node.interfaces);
        let links = interfaces.flat_map(|interface| [interface.out.next_event(), interface.inward.next_event()]);
        nodes.chain(links.flatten()).chain(tasks).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Everything that happens now.
    fn step(&mut self) {
        while let Some(entry) = self.tasks.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let task = entry.remove();
            self.perform(task);
        }
        for host in 0..self.nodes.len() {
            for number in 0..self.nodes[host].interfaces.len() {
                while let Some(packet) = self.nodes[host].interfaces[number].out.poll(self.now) {
                    self.cross(host, packet);
                }
                while let Some(packet) = self.nodes[host].interfaces[number].inward.poll(self.now) {
                    self.arrive(host, number, &packet);
                }
            }
        }
        for host in 0..self.nodes.len() {
            if self.nodes[host].is_awake() && self.nodes[host].deadline <= self.now {
                self.time_out(host);
            }
            if std::mem::take(&mut self.dirty[host]) {
                self.serve(host);
            }
        }
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Stream(number) => self.send_stream(number),
            Task::Late(packet) => self.enter(packet),
            Task::Event(number) => {
                if let Some(event) = self.plan.events.get(number).cloned() {
                    self.happen(&event.fault);
                }
            }
            Task::Boot(host) => self.boot(host),
            Task::Wake(host) => {
                let now = self.now;
                // Who was killed in its sleep may sleep again by now.
                let over = |node: &&mut Node| node.asleep.is_some_and(|until| until <= now);
                if let Some(node) = self.nodes.get_mut(host).filter(over) {
                    node.asleep = None;
                    node.note_deadline();
                }
            }
            Task::Attack(number) => self.attack_again(number),
        }
    }

    pub(crate) fn boot(&mut self, host: usize) {
        let Self { nodes, plan, names, locators, now, .. } = self;
        let Some(node) = nodes.get_mut(host) else { return };
        // The first start with the same configuration succeeded.
        let booted = node.boot(*now, host, plan, names, locators);
        let at = self.at_ms();
        self.judge.check(at, Property::P1, booted.is_ok(), || format!("host {host} does not start: {booted:?}"));
        self.dirty[host] = true;
    }

    fn time_out(&mut self, host: usize) {
        let (now, at) = (self.now, self.at_ms());
        let node = &mut self.nodes[host];
        let own = node.time.shows(now);
        let Some(wedge) = &mut node.wedge else { return };
        wedge.handle_timeout(own, &mut node.rng);
        node.timers += 1;
        let next = wedge.poll_timeout();
        self.judge.check(at, Property::R4, next.is_none_or(|(at, _)| at > own), || {
            format!("host {host}: after handle_timeout({own:?}) the next deadline is {next:?}")
        });
        self.dirty[host] = true;
    }

    /// What came of the last call: deliveries, events and packets of a host.
    fn serve(&mut self, host: usize) {
        let now = self.now;
        let own = self.nodes[host].time.shows(now);
        // Answers to what is delivered may be followed by deliveries.
        for _ in 0..8 {
            let node = &mut self.nodes[host];
            let Some(wedge) = &mut node.wedge else { return };
            let mut delivered = Vec::new();
            wedge.poll_deliver(&mut delivered);
            if delivered.is_empty() {
                break;
            }
            let answers = self.deliver(host, &delivered);
            let node = &mut self.nodes[host];
            let Some(wedge) = &mut node.wedge else { return };
            wedge.handle_application(own, &mut node.rng, answers);
        }
        self.listen(host);
        let mut out = Vec::new();
        let node = &mut self.nodes[host];
        let Some(wedge) = &mut node.wedge else { return };
        wedge.poll_transmit(own, &mut out);
        node.note_deadline();
        out.into_iter().for_each(|transmit| self.transmit(host, transmit));
    }

    fn deliver(&mut self, host: usize, delivered: &[wedge::Packet]) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        let at = self.at_ms();
        for packet in delivered {
            if self.is_of_hostile(host, packet) {
                self.hoarded(host, packet);
                continue;
            }
            let Self { judge, names, streams, .. } = self;
            let outcome = traffic::deliver(self.now, host, packet, names, streams, &mut answers);
            judge.check(at, Property::S1, outcome.is_ok(), || {
                outcome.as_ref().err().map_or_else(String::new, |wrong| format!("host {host}: {wrong}"))
            });
            if let Ok(traffic::Delivered::Flow(number)) = outcome {
                let due = self.streams[number].due;
                if self.streams[number].plan.tcp {
                    self.schedule(due, Task::Stream(number));
                }
            }
        }
        answers
    }

    /// Whether it says that a hostile host has sent it; whatever that says is its own.
    fn is_of_hostile(&self, host: usize, packet: &[u8]) -> bool {
        let Ok(view) = wire::ip::IpPacket::parse(packet) else { return false };
        self.plan.hosts.iter().enumerate().any(|(other, plan)| {
            let hit = self.names.hits.get(other).map(|hit| IpAddr::from(hit.address()));
            let lsi = IpAddr::from(Names::lsi(other).address());
            plan.hostile && other != host && (Some(view.src()) == hit || view.src() == lsi)
        })
    }

    /// Takes what a host tells.
    fn listen(&mut self, host: usize) {
        let (now, at_ms) = (self.now, self.at_ms());
        let mut lines = Vec::new();
        while let Some(event) = self.nodes[host].wedge.as_mut().and_then(wedge::Wedge::poll_event) {
            match &event {
                WedgeEvent::KeyLog(line) => lines.extend(key_line(line)),
                WedgeEvent::PathUp { peer, path, .. } => {
                    let mut last = lines.drain(..);
                    if let (Some(outbound), Some(inbound), Some(peer)) = (last.next(), last.next(), number(peer)) {
                        let pair = Pair { outbound, inbound };
                        self.tap.path_up(&mut self.judge, at_ms, host, peer, *path, pair);
                    }
                }
                _ => {}
            }
            if !matches!(event, WedgeEvent::KeyLog(_)) {
                if let Some(story) = &mut self.story {
                    story.push(format!("{at_ms:>9} host {host}: {event}"));
                }
                self.told.push(Told { at: now, host, event });
            }
        }
    }

    fn send_stream(&mut self, number: usize) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        let before = stream.due;
        let mut packets = Vec::new();
        stream.send(self.now, &self.names, &mut packets);
        let (due, from, changed) = (stream.due, stream.plan.from, stream.due != before);
        if changed && due < Instant::FAR_FUTURE {
            self.schedule(due, Task::Stream(number));
        }
        self.give(from, packets);
    }

    /// Programs of a host send packets.
    pub(crate) fn give(&mut self, host: usize, packets: Vec<Vec<u8>>) {
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_awake()) else { return };
        let own = node.time.shows(self.now);
        if let Some(wedge) = node.wedge.as_mut().filter(|_| !packets.is_empty()) {
            wedge.handle_application(own, &mut node.rng, packets);
            self.dirty[host] = true;
        }
    }

    /// A host does something of its own.
    pub(crate) fn touch(&mut self, host: usize) {
        if let Some(dirty) = self.dirty.get_mut(host) {
            *dirty = true;
        }
    }

    /// A host hands a packet to one of its links.
    fn transmit(&mut self, host: usize, transmit: Transmit) {
        let Transmit { route, protocol, bytes, ecn, .. } = transmit;
        let (source, destination) = (route.local, route.remote);
        let mut packet = Packet { source, destination, protocol, ecn, bytes, author: Some(host) };
        let Self { tap, judge, addresses, names, now, nodes, .. } = self;
        let place = addresses.get(&destination.ip()).copied();
        let owner = place.map(|(owner, _)| owner);
        let is_open = |(owner, number): (usize, usize)| nodes[owner].interfaces[number].is_open(*now, destination);
        // Who has an address behind a NAT that has forgotten its port is not there, and can renew nothing.
        let renew_at = if place.is_some_and(is_open) { nodes[host].plan.renew_at } else { 0 };
        let receiver = |hip| wire::hip::Packet::parse(hip).ok().map(|hip| hip.receiver());
        let peer = packet.hip().and_then(receiver).and_then(|hit| names.hits.iter().position(|other| *other == hit));
        tap.sent(judge, *now, host, &packet, (peer, owner), renew_at);
        self.tell_packet(host, &packet);
        if let Some(own) = self.nodes[host].interfaces.first().map(|first| first.address)
            && let Some(copies) = self.attacker.stolen(host, &packet, own)
        {
            return copies.into_iter().for_each(|copy| self.enter(copy));
        }
        let node = &mut self.nodes[host];
        let interface = node.interfaces.iter_mut().find(|interface| interface.address.ip() == source.ip());
        let Some(interface) = interface.filter(|interface| interface.plugged) else { return };
        packet.source = interface.translate_out(self.now, destination);
        let size = packet.size();
        // A full queue, or a link that is down, drops.
        let _ = interface.out.offer(self.now, packet, size);
    }

    fn tell_packet(&mut self, host: usize, packet: &Packet) {
        let at_ms = self.at_ms();
        let Some(story) = &mut self.story else { return };
        let Some(Ok(hip)) = packet.hip().map(wire::hip::Packet::parse) else { return };
        let (from, to) = (packet.source.ip(), packet.destination.ip());
        story.push(format!(
            "{at_ms:>9} host {host}: {:?} {from} → {to} seq {:?} ack {:?} {:?}",
            hip.kind(),
            hip.seq(),
            hip.ack(),
            hip.esp_info()
        ));
    }

    /// A packet has left a host's link and is between the hosts.
    fn cross(&mut self, host: usize, mut packet: Packet) {
        let to = self.addresses.get(&packet.destination.ip()).map(|(owner, _)| *owner);
        if let Some(block) = to.and_then(|to| self.firewalls.get(&(host, to)))
            && drops(*block, &packet)
        {
            return;
        }
        self.attacker.observe(&packet);
        self.attacker.corrupt(host, to, &mut packet);
        let (twice, late, late_ms) = self.weather;
        if self.rng.chance(twice) {
            self.enter(packet.clone());
        }
        if self.rng.chance(late) {
            let by = Duration::from_millis(self.rng.below(late_ms.max(1)));
            return self.schedule(self.now + by, Task::Late(packet));
        }
        self.enter(packet);
    }

    /// A packet is given to the link of whom it is for.
    pub(crate) fn enter(&mut self, packet: Packet) {
        let now = self.now;
        let Some(&(host, number)) = self.addresses.get(&packet.destination.ip()) else { return };
        let Some(interface) = self.nodes.get_mut(host).and_then(|node| node.interfaces.get_mut(number)) else { return };
        if interface.lets_in(now, packet.destination, packet.source) {
            let size = packet.size();
            let _ = interface.inward.offer(now, packet, size);
        }
    }

    /// A packet has come to a host.
    fn arrive(&mut self, host: usize, number: usize, packet: &Packet) {
        let now = self.now;
        let node = &mut self.nodes[host];
        let interface = &node.interfaces[number];
        if node.wedge.is_none() || node.asleep.is_some() || !interface.plugged {
            return;
        }
        let public_ip = interface.public();
        // What was under way to an address that has changed.
        if packet.destination.ip() != public_ip || self.shielded && packet.author.is_none() {
            return;
        }
        match packet.author {
            // What begins an association is no sign of one.
            Some(_) if matches!(packet.kind(), Some(PacketKind::I1 | PacketKind::R1)) => {}
            Some(author) => _ = self.tap.heard.insert((host, author), now),
            None => {
                self.tap.spoofed(host, packet);
                self.hoard_arrives(packet);
            }
        }
        let node = &mut self.nodes[host];
        let local = self.attacker.taken_at(host, packet).unwrap_or(node.interfaces[number].address);
        let route = hip::Route { local, remote: packet.source };
        let own = node.time.shows(now);
        let datagram = Datagram { route, protocol: packet.protocol, payload: &packet.bytes, ecn: packet.ecn };
        let Some(wedge) = &mut node.wedge else { return };
        let before = wedge.costs();
        wedge.handle_network(own, &mut node.rng, &[datagram]);
        self.dirty[host] = true;
        if packet.author.is_none() {
            let cost = wedge.costs().since(&before);
            self.charge(host, &cost);
        }
    }

    /// Looks up anew who has which address.
    pub(crate) fn note_addresses(&mut self) {
        let before = std::mem::take(&mut self.addresses);
        for (host, node) in self.nodes.iter().enumerate() {
            for (number, interface) in node.interfaces.iter().enumerate().filter(|(_, interface)| interface.plugged) {
                self.addresses.insert(interface.public(), (host, number));
            }
        }
        for (address, (host, _)) in before {
            if !self.addresses.contains_key(&address) {
                self.tap.former.insert((address, host), self.now);
            }
        }
    }
}

/// The host of a peer's name.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.strip_prefix('h')?.parse().ok()
}

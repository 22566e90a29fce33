//! What lies between hosts: access links, translators of addresses, firewalls, and who has which address.

use crate::plan::{Access, Block, LinkFault, Nat, Way};
use clock::{Duration, Instant, Rng};
use link::{ChangeKind, Link, LinkConfig, LossConfig, QueueConfig};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wedge::{Ecn, Protocol};
use wire::hip::{Packet as HipPacket, PacketKind};

/// A packet under way, with the addresses of its outer header.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
    /// The host that sent it as it is; nothing where somebody else did.
    pub(crate) author: Option<usize>,
}

impl Packet {
    /// The HIP packet in it.
    pub(crate) fn hip(&self) -> Option<&[u8]> {
        hip(self.protocol, &self.bytes)
    }

    /// The ESP packet in it.
    pub(crate) fn esp(&self) -> Option<&[u8]> {
        match self.protocol {
            Protocol::Esp => Some(&self.bytes),
            Protocol::Udp if self.bytes.len() >= 8 && !self.bytes.starts_with(&[0; 4]) => Some(&self.bytes),
            _ => None,
        }
    }

    /// Its kind, where it is HIP.
    pub(crate) fn kind(&self) -> Option<PacketKind> {
        HipPacket::parse(self.hip()?).ok().map(|packet| packet.kind())
    }

    /// Bytes with the outer headers.
    pub(crate) fn size(&self) -> u32 {
        let headers = if self.source.is_ipv4() { 20 } else { 40 } + if self.protocol == Protocol::Udp { 8 } else { 0 };
        (self.bytes.len() + headers) as u32
    }
}

/// The HIP packet in what a protocol carries.
pub(crate) fn hip(protocol: Protocol, bytes: &[u8]) -> Option<&[u8]> {
    match protocol {
        Protocol::Hip => Some(bytes),
        Protocol::Udp => bytes.strip_prefix(&[0; 4]).filter(|packet| !packet.is_empty()),
        Protocol::Esp => None,
    }
}

/// An address of somebody who takes no part (RFC 5737).
pub(crate) fn bystander(number: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, number)), hip::UDP_PORT)
}

/// Whether an address is a bystander's.
pub(crate) fn is_bystander(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[..3] == [203, 0, 113])
}

/// The translator before an access link.
#[derive(Debug)]
struct Translator {
    plan: Nat,
    public: IpAddr,
    next_port: u16,
    /// By remote address, or for all: the public port, and when it was used last.
    mappings: BTreeMap<Option<SocketAddr>, (u16, Instant)>,
}

impl Translator {
    /// For whom a public port is open: one remote address, or `None` for all.
    fn remotes(&self, now: Instant, port: u16) -> impl Iterator<Item = Option<SocketAddr>> {
        let timeout = Duration::from_millis(self.plan.timeout_ms);
        let is_open = move |(public, used): &(u16, Instant)| *public == port && now.saturating_since(*used) < timeout;
        self.mappings.iter().filter(move |(_, mapping)| is_open(mapping)).map(|(remote, _)| *remote)
    }
}

/// An access link of a host.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The host's address on it.
    pub(crate) address: SocketAddr,
    /// How often it has changed.
    generation: u8,
    /// Whether the host has it.
    pub(crate) plugged: bool,
    pub(crate) out: Link<Packet>,
    pub(crate) inward: Link<Packet>,
    nat: Option<Translator>,
    plan: Access,
}

impl Interface {
    /// The access link `number` of host `host`.
    pub(crate) fn new(host: usize, number: usize, plan: &Access, native: bool, rng: &mut Rng) -> Self {
        let port = if native { 0 } else { hip::UDP_PORT };
        let mut link = || {
            let loss = if plan.loss > 0.0 { LossConfig::Random(plan.loss) } else { LossConfig::None };
            let config = LinkConfig {
                rate: Some(plan.rate.max(8_000)),
                delay: Duration::from_micros(plan.delay_us),
                queue: QueueConfig::Packets(plan.queue.max(2)),
                loss,
                ..LinkConfig::default()
            };
            Link::new(config, Rng::from_seed(rng.next_u64()))
        };
        let nat = plan.nat.map(|nat| Translator {
            plan: nat,
            public: Ipv4Addr::new(100, 64, host as u8, number as u8 + 1).into(),
            next_port: 20_000,
            mappings: BTreeMap::new(),
        });
        Self {
            address: SocketAddr::new(address(host, number, 0), port),
            generation: 0,
            plugged: true,
            out: link(),
            inward: link(),
            nat,
            plan: plan.clone(),
        }
    }

    /// Where others find it.
    pub(crate) fn public(&self) -> IpAddr {
        self.nat.as_ref().map_or(self.address.ip(), |nat| nat.public)
    }

    /// Whether a translator stands before it.
    pub(crate) fn is_translated(&self) -> bool {
        self.nat.is_some()
    }

    /// The host gets another address here.
    pub(crate) fn readdress(&mut self, host: usize, number: usize) {
        self.generation = self.generation.wrapping_add(1);
        self.address.set_ip(address(host, number, self.generation));
        if let Some(nat) = &mut self.nat {
            nat.mappings.clear();
        }
    }

    /// The translator forgets everything.
    pub(crate) fn rebind(&mut self) {
        if let Some(nat) = &mut self.nat {
            nat.mappings.clear();
        }
    }

    /// The source that others see of what the host sends from here.
    pub(crate) fn translate_out(&mut self, now: Instant, remote: SocketAddr) -> SocketAddr {
        let Some(nat) = &mut self.nat else { return self.address };
        let timeout = Duration::from_millis(nat.plan.timeout_ms);
        nat.mappings.retain(|_, (_, used)| now.saturating_since(*used) < timeout);
        let key = nat.plan.symmetric.then_some(remote);
        let next = &mut nat.next_port;
        let mapping = nat.mappings.entry(key).or_insert_with(|| {
            *next = next.checked_add(1).unwrap_or(20_000);
            (*next, now)
        });
        mapping.1 = now;
        SocketAddr::new(nat.public, mapping.0)
    }

    /// Whether what was sent to `destination` gets to the host.
    pub(crate) fn lets_in(&self, now: Instant, destination: SocketAddr, source: SocketAddr) -> bool {
        let Some(nat) = &self.nat else { return destination.port() == self.address.port() };
        nat.remotes(now, destination.port()).any(|remote| remote.is_none_or(|remote| remote == source))
    }

    /// Whether a packet to `destination` would find somebody there: behind a NAT, not before the host has sent something.
    pub(crate) fn is_open(&self, now: Instant, destination: SocketAddr) -> bool {
        self.nat.as_ref().is_none_or(|nat| nat.remotes(now, destination.port()).next().is_some())
    }

    /// Changes the links of one direction or of both.
    pub(crate) fn change(&mut self, now: Instant, way: Way, what: LinkFault) {
        let kind = match what {
            LinkFault::Down => ChangeKind::Down,
            LinkFault::Up => ChangeKind::Up,
            LinkFault::Loss(loss) if loss > 0.0 => ChangeKind::Loss(LossConfig::Random(loss.min(1.0))),
            LinkFault::Loss(_) => ChangeKind::Loss(LossConfig::None),
            LinkFault::Delay(micros) => ChangeKind::Delay(Duration::from_micros(micros)),
            LinkFault::Rate(rate) => ChangeKind::Rate(Some(rate.max(8_000))),
        };
        if way != Way::In {
            self.out.change(now, kind);
        }
        if way != Way::Out {
            self.inward.change(now, kind);
        }
    }

    /// The link is as good as it gets.
    pub(crate) fn heal(&mut self, now: Instant) {
        let plan = self.plan.clone();
        for what in [
            LinkFault::Up,
            LinkFault::Loss(0.0),
            LinkFault::Rate(plan.rate.max(1_000_000)),
            LinkFault::Delay(plan.delay_us.min(100_000)),
        ] {
            self.change(now, Way::Both, what);
        }
    }
}

fn address(host: usize, interface: usize, generation: u8) -> IpAddr {
    Ipv4Addr::new(10, host as u8, interface as u8, generation.wrapping_add(1)).into()
}

/// Whether a firewall drops a packet.
pub(crate) fn drops(block: Block, packet: &Packet) -> bool {
    match block {
        Block::Nothing => false,
        Block::Hip => packet.hip().is_some(),
        Block::Esp => packet.esp().is_some(),
        Block::Updates => packet.kind() == Some(PacketKind::Update),
        Block::LongerThan(bytes) => packet.size() > u32::from(bytes),
        Block::All => true,
    }
}

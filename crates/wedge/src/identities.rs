//! Several identities of one host (RFC 7401 §7): a [`Wedge`] for each, behind one set of sockets and one TUN device.
//!
//! A HIP packet is for the identity of the HIT that it names, an ESP packet for the one whose class its SPI is of, and a
//! program's packet for the one from whose HIT or LSI it comes. What is for nobody is the first one's: opportunistic I1s, and what a
//! rendezvous server passes on. Each may cost strangers' packets what one host may ([`hip::budget`]), and there are at most
//! [`Identities::MOST`]; what peers may have them hold ([`WedgeConfig::memory`]) they share.

use crate::config::{LocalPath, WedgeConfig};
use crate::event::WedgeEvent;
use crate::policy::Policy;
use crate::status::Status;
use crate::wedge::{TimerKind, Wedge, WedgeError};
use crate::{Datagram, Protocol, Transmit};
use clock::Instant;
use hip::identity::HostIdentity;
use hip::{Route, SpiClass};
use rand_core::CryptoRng;
use std::collections::BTreeSet;
use std::net::IpAddr;
use wire::esp::{Encapsulated, EspHeader, classify};
use wire::hip::{Packet, PacketKind, hits};
use wire::ip::IpPacket;
use wire::{Hit, Lsi, Spi};

/// Why identities cannot be those of one host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentitiesError {
    /// One of them cannot work.
    #[error(transparent)]
    Wedge(#[from] WedgeError),
    /// Two are the same.
    #[error("two identities of this host have the HIT {0}; leave one out")]
    SameHit(Hit),
    /// Two have one LSI.
    #[error("two identities of this host have the LSI {0}; give each its own")]
    SameLsi(Lsi),
    /// More than [`Identities::MOST`].
    #[error("a host has at most {most} identities", most = Identities::MOST)]
    TooMany,
}

/// The identities of a host, the first of which is for all that names none.
pub struct Identities {
    first: Wedge,
    others: Vec<Wedge>,
}

/// Whose a packet of the network is.
enum Reader {
    /// The one of this number.
    One(usize),
    /// Those that have this peer.
    PeersOf(Hit),
}

impl From<Wedge> for Identities {
    fn from(first: Wedge) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl Identities {
    /// The most identities of a host.
    pub const MOST: usize = 8;

    /// A host with a first identity and others, which have the same paths.
    ///
    /// # Errors
    /// [`IdentitiesError`] where these cannot be together.
    pub fn new(
        first: (HostIdentity, WedgeConfig),
        others: Vec<(HostIdentity, WedgeConfig)>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, IdentitiesError> {
        let count = 1 + others.len();
        let of = u16::try_from(count).ok().filter(|_| count <= Self::MOST).ok_or(IdentitiesError::TooMany)?;
        let (mut hits, mut lsis) = (BTreeSet::new(), BTreeSet::new());
        let mut make = |number: u8, (identity, mut config): (HostIdentity, WedgeConfig)| {
            if !hits.insert(identity.hit()) {
                return Err(IdentitiesError::SameHit(identity.hit()));
            }
            if !lsis.insert(config.lsi) {
                return Err(IdentitiesError::SameLsi(config.lsi));
            }
            config.hip.spis = SpiClass::new(number, of);
            config.memory /= count;
            Ok(Wedge::new(identity, config, rng)?)
        };
        let first = make(0, first)?;
        let others = (1..).zip(others).map(|(number, other)| make(number, other)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { first, others })
    }

    /// The one for all that names none.
    pub fn first(&mut self) -> &mut Wedge {
        &mut self.first
    }

    /// The one of this number; 0 is the first.
    pub fn get(&mut self, number: usize) -> Option<&mut Wedge> {
        self.iter_mut().nth(number)
    }

    fn iter(&self) -> impl Iterator<Item = &Wedge> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Wedge> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// The largest IPv6 packet, as [`Wedge::tun_mtu`].
    pub fn tun_mtu(&self) -> u16 {
        self.iter().map(Wedge::tun_mtu).min().unwrap_or_default()
    }

    /// The largest IPv4 packet, as [`Wedge::lsi_mtu`].
    pub fn lsi_mtu(&self) -> u16 {
        self.iter().map(Wedge::lsi_mtu).min().unwrap_or_default()
    }

    /// Takes a batch of IP packets from local programs, each for the identity that it comes from.
    pub fn handle_application(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) {
        if self.others.is_empty() {
            return self.first.handle_application(now, rng, packets);
        }
        let mut each: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 1 + self.others.len()];
        for packet in packets {
            if let Some(one) = each.get_mut(self.speaker(&packet)) {
                one.push(packet);
            }
        }
        for (wedge, packets) in self.iter_mut().zip(each).filter(|(_, packets)| !packets.is_empty()) {
            wedge.handle_application(now, rng, packets);
        }
    }

    /// The number of the identity from which a program's packet comes; the first tells what is wrong with one from nobody.
    fn speaker(&self, packet: &[u8]) -> usize {
        let source = match IpPacket::parse(packet) {
            Ok(view) => view.src(),
            Err(_) => return 0,
        };
        let is_own = |wedge: &Wedge| match source {
            IpAddr::V6(source) => wedge.hit == Hit::from(source),
            IpAddr::V4(source) => wedge.config.lsi == Lsi::from(source),
        };
        self.iter().position(is_own).unwrap_or(0)
    }

    /// Takes a batch of datagrams from the network, each for the identity that it is for.
    pub fn handle_network(&mut self, now: Instant, rng: &mut dyn CryptoRng, datagrams: &[Datagram<'_>]) {
        if self.others.is_empty() {
            return self.first.handle_network(now, rng, datagrams);
        }
        let mut each: Vec<Vec<Datagram<'_>>> = vec![Vec::new(); 1 + self.others.len()];
        for datagram in datagrams {
            match self.reader(datagram) {
                Reader::One(number) => each.get_mut(number).into_iter().for_each(|one| one.push(*datagram)),
                Reader::PeersOf(peer) => {
                    let all = self.iter().zip(&mut each).filter(|(wedge, _)| wedge.by_hit.contains_key(&peer));
                    all.for_each(|(_, one)| one.push(*datagram));
                }
            }
        }
        for (wedge, datagrams) in self.iter_mut().zip(each).filter(|(_, datagrams)| !datagrams.is_empty()) {
            wedge.handle_network(now, rng, &datagrams);
        }
    }

    fn reader(&self, datagram: &Datagram<'_>) -> Reader {
        match (datagram.protocol, datagram.payload) {
            (Protocol::Hip, packet) => self.reader_of_hip(packet),
            (Protocol::Esp, packet) => self.reader_of_esp(datagram.route, packet),
            (Protocol::Udp, content) => match classify(content) {
                Encapsulated::Hip(packet) => self.reader_of_hip(packet),
                Encapsulated::Esp(packet) => self.reader_of_esp(datagram.route, packet),
                Encapsulated::Keepalive | Encapsulated::Malformed => Reader::One(0),
            },
        }
    }

    fn reader_of_hip(&self, packet: &[u8]) -> Reader {
        let Some((sender, receiver)) = hits(packet) else { return Reader::One(0) };
        let knows_sender = || self.iter().any(|wedge| wedge.by_hit.contains_key(&sender));
        let is_notify = || Packet::parse(packet).is_ok_and(|packet| packet.kind() == PacketKind::Notify);
        match self.iter().position(|wedge| wedge.hit == receiver) {
            Some(number) => Reader::One(number),
            // A peer that has forgotten an association does not know whose it was.
            None if receiver == Hit::NULL && knows_sender() && is_notify() => Reader::PeersOf(sender),
            None => Reader::One(0),
        }
    }

    fn reader_of_esp(&self, route: Route, packet: &[u8]) -> Reader {
        let Ok((EspHeader { spi, .. }, _)) = EspHeader::parse(packet) else { return Reader::One(0) };
        let is_of_class = |wedge: &Wedge| wedge.config.hip.spis.has(spi);
        Reader::One(self.iter().position(is_of_class).filter(|_| !self.is_carried(route, spi)).unwrap_or(0))
    }

    /// Whether the first carries ESP packets of this SPI for others, which have chosen it.
    fn is_carried(&self, route: Route, spi: Spi) -> bool {
        self.first.host.carries(route, spi) && !self.others.iter().any(|wedge| wedge.by_spi.contains_key(&spi))
    }

    /// Does what is due. Afterwards the next deadline is later than `now`.
    pub fn handle_timeout(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        for wedge in self.iter_mut() {
            if wedge.poll_timeout().is_some_and(|(at, _)| at <= now) {
                wedge.handle_timeout(now, rng);
            }
        }
    }

    /// When [`Identities::handle_timeout`] is to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        self.iter().filter_map(Wedge::poll_timeout).min()
    }

    /// Appends what is to be sent to the network, as [`Wedge::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<Transmit>) {
        self.iter_mut().for_each(|wedge| wedge.poll_transmit(now, out));
    }

    /// Appends the IP packets for local programs, as [`Wedge::poll_deliver`].
    pub fn poll_deliver(&mut self, out: &mut Vec<crate::Packet>) {
        self.iter_mut().for_each(|wedge| wedge.poll_deliver(out));
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WedgeEvent> {
        self.iter_mut().find_map(Wedge::poll_event)
    }

    /// There is a further access link, as [`Wedge::add_path`]; all of them have it, or none.
    ///
    /// # Errors
    /// [`WedgeError`] where it cannot be.
    pub fn add_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, path: LocalPath) -> Result<(), WedgeError> {
        // What one refuses the first does, since all have the same paths and suites.
        self.iter_mut().try_for_each(|wedge| wedge.add_path(now, rng, path.clone()))
    }

    /// An access link takes packets of another size, as [`Wedge::set_path_mtu`].
    ///
    /// # Errors
    /// [`WedgeError::NoRoom`] where it cannot carry packets.
    pub fn set_path_mtu(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        address: IpAddr,
        mtu: u16,
    ) -> Result<(), WedgeError> {
        self.iter_mut().try_for_each(|wedge| wedge.set_path_mtu(now, rng, address, mtu))
    }

    /// An access link is gone, as [`Wedge::remove_path`].
    pub fn remove_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, address: IpAddr) {
        self.iter_mut().for_each(|wedge| wedge.remove_path(now, rng, address));
    }

    /// What is to hold for flows from now on, as [`Wedge::set_policies`].
    pub fn set_policies(&mut self, policies: &[Policy]) {
        self.iter_mut().for_each(|wedge| wedge.set_policies(policies.to_vec()));
    }

    /// Closes all associations for good, as [`Wedge::leave`].
    pub fn leave(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        self.iter_mut().for_each(|wedge| wedge.leave(now, rng));
    }

    /// Whether a peer has not answered the farewell yet.
    pub fn is_leaving(&self) -> bool {
        self.iter().any(Wedge::is_leaving)
    }

    /// A snapshot of all: the first's HIT and LSI, the peers of each in turn, and what was counted by all together.
    pub fn status(&self, now: Instant) -> Status {
        let mut all = self.first.status(now);
        for other in self.others.iter().map(|wedge| wedge.status(now)) {
            all.identities.extend(other.identities);
            all.peers.extend(other.peers);
            all.counters.add(&other.counters);
            all.control.add(&other.control);
        }
        all
    }
}

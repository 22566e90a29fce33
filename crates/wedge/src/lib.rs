//! The data plane between application packets and ESP packets on paths, without I/O: a [`Wedge`] takes IP packets from
//! a TUN device and datagrams from sockets, in batches, and gives the same back. Time and randomness are arguments.
//!
//! Out: the association of a packet is found by its destination, a HIT or an LSI; LSI packets are brought into their
//! HIT form; the inner IPv6 header is left out (BEET mode, RFC 7402 §3.2); the scheduler gives the packet to a path,
//! which releases it at its configured rate and seals it with its own security association. In: the SPI names
//! association and path; the header is put back; packets of a TCP connection are put in order; the packet is delivered
//! in the family that the local program speaks. A host of several identities is a wedge for each ([`Identities`]).
//!
//! # What a peer can make us hold
//!
//! Flows, what waits for paths and what may have to be sent again take no more than [`WedgeConfig::memory`] (256 MiB) for all
//! peers together, but for 256 KiB that each configured peer may always have. One peer may have a fourth of it (64 MiB), and
//! never more than is free: half for its flows, a fourth for what waits for its paths, a fourth for what was sent and may have
//! to be sent again. The other rows of the table are bounded for each configured peer by their own figures alone:
//! [`Wedge::held_bytes`] counts them, too, and they leave less to the rest, but are not refused for want of memory. What
//! associations take (crate `hip`) is not counted, nor what was not fetched yet of a batch.
//!
//! | what | most | beyond |
//! |---|---|---|
//! | packets that wait for others before them | 8 MiB a flow, the peer's half, 500 ms | delivered out of order, the one whose time ends first first |
//! | flows | 4,096 a peer, the peer's half | not remembered: delivered as they come |
//! | first packets of flows that may be offered again as IPv4 | one a flow, the peer's half | not offered again |
//! | the send buffer | 3 times the windows, the peer's fourth | dropped at the head of the longest queue |
//! | packets sent and not acknowledged | the windows, the peer's fourth | nothing more is sent |
//! | records of packets sent | 65,536 a path | the oldest are forgotten |
//! | packets that wait for one path alone, by some schedulers | as many as the windows, with the row before | left in the send buffer; of copies the oldest are dropped |
//! | what is known of the windows of flows | 4,096 a peer | all is forgotten |
//! | labels of flows | 1,024 a peer and direction | headers go whole |
//! | which packets with copies have come | 16 KiB a peer | copies of older ones are dropped |
//! | packets that wait for an association | 256, and 2,048 kept from the one before | dropped, the newest first |
//! | connections | 16,384 a peer | those idle longest are forgotten |
//! | segments followed by snooping | 32,768 a peer | not counted |
//! | paths that others have taken over from | 32 a peer, 2 s | the oldest end |
//!
//! The owner of a [`Wedge`] moves packets and calls it when it asks for that; the package `sinnet` has the whole loop of two hosts
//! (`examples/two_hosts.rs`). The first packet to a peer begins a base exchange, and waits for it:
//!
//! ```
//! use clock::Instant;
//! use hip::identity::{Algorithm, HostIdentity};
//! use rand_chacha::ChaCha20Rng;
//! use rand_core::SeedableRng;
//! use wedge::{LocalPath, PeerConfig, Protocol, Wedge, WedgeConfig};
//! use wire::hip::{Packet, PacketKind};
//! use wire::{Lsi, udp};
//!
//! let mut rng = ChaCha20Rng::seed_from_u64(1);
//! let identity = HostIdentity::generate(Algorithm::EcdsaP256, &mut rng)?;
//! let peer = HostIdentity::generate(Algorithm::EcdsaP256, &mut rng)?.hit();
//! let links = vec![LocalPath::new("fibre", "192.0.2.1:10500".parse()?), LocalPath::new("radio", "198.51.100.1:10500".parse()?)];
//! let mut wedge = Wedge::new(identity, WedgeConfig::new(Lsi([198, 18, 0, 1]), links), &mut rng)?;
//! wedge.add_peer(PeerConfig::new("b.hip", peer, Lsi([198, 18, 0, 2]), ["192.0.2.9:10500".parse()?]));
//!
//! let packet = udp::packet((wedge.hit().address().into(), 4000), (peer.address().into(), 9), b"hello")?;
//! wedge.handle_application(Instant::ZERO, &mut rng, [packet]);
//! let mut sent = Vec::new();
//! wedge.poll_transmit(Instant::ZERO, &mut sent);
//! assert!(!sent.is_empty() && sent.iter().all(|transmit| transmit.protocol == Protocol::Udp));
//! // RFC 5770 §5.4: four bytes of zeros tell HIP from ESP.
//! let first = Packet::parse(&sent[0].bytes[4..])?;
//! assert_eq!((first.kind(), first.receiver()), (PacketKind::I1, peer));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backup;
mod config;
mod doubt;
mod ecn;
mod event;
mod feedback;
mod flows;
mod guests;
mod heartbeat;
mod identities;
mod inbound;
mod jump;
mod labels;
mod locators;
mod memory;
mod native_esp;
mod numbers;
mod outbound;
mod packet;
mod path;
mod path_mtu;
mod payload;
mod peer;
mod policy;
mod rebinding;
mod renewal;
mod report;
mod schedule;
mod sending;
mod status;
mod wedge;
mod window_clamp;

pub use config::{GuestConfig, LocalPath, PeerConfig, PeerLocator, PeerRoute, WedgeConfig};
pub use event::WedgeEvent;
pub use identities::{Identities, IdentitiesError};
pub use multipath::{Ecn, FIRST_WINDOW, Priority};
pub use packet::{HEADROOM, Packet};
pub use policy::Policy;
pub use status::{Counters, IdentityStatus, Measured, PathStatus, PeerStatus, SendBufferStatus, Status};
pub use wedge::{TimerKind, Wedge, WedgeError};

use hip::Route;

/// How a packet is carried outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// The content of a UDP datagram, HIP or ESP (RFC 5770 §5).
    Udp,
    /// IP protocol 139.
    Hip,
    /// IP protocol 50.
    Esp,
}

/// Something that arrived from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// At which of our locators, and from where.
    pub route: Route,
    /// How it was carried.
    pub protocol: Protocol,
    /// What follows the outer IP header and, for UDP, the UDP header.
    pub payload: &'a [u8],
    /// The outer IP header's mark.
    pub ecn: Ecn,
}

/// Something to send to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// From which of our locators to where.
    pub route: Route,
    /// How it is carried.
    pub protocol: Protocol,
    /// What follows the outer IP header and, for UDP, the UDP header.
    pub bytes: Vec<u8>,
    /// What the outer IP header says about marks.
    pub ecn: Ecn,
    /// It may be cut on the way: HIP packets (RFC 7401 §5.1.3), and ESP while nothing is known of the path's MTU, or where a program
    /// cannot be told. Otherwise it has to arrive in one piece or not at all: "don't fragment".
    pub may_fragment: bool,
    /// It leaves in no train of segments (GSO): a probe, or what is to tell that a probe was lost. A device on the way that gets a train
    /// whole, as virtual ones do, drops all of it for the first that is too large.
    pub is_alone: bool,
}

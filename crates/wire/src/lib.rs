//! Packets on the wire: HIP (RFC 7401), ESP (RFC 4303), and what is read of IP, TCP, UDP and ICMP headers.
//!
//! Packets are read through checked views, which cannot fail later, and written from plain structs.
//!
//! ```
//! use std::net::IpAddr;
//! use wire::ip::{self, IpPacket};
//! use wire::udp::{self, Datagram};
//!
//! let (a, b): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
//! let bytes = udp::packet((a, 4000), (b, 9), b"hello")?;
//! let packet = IpPacket::parse(&bytes)?;
//! assert_eq!((packet.src(), packet.protocol(), packet.hop_limit()), (a, ip::protocol::UDP, 64));
//! let datagram = Datagram::parse(packet.payload())?;
//! assert!(datagram.checksum_is_right(a, b) && datagram.payload() == b"hello");
//! // Nothing from a network can panic.
//! assert!(IpPacket::parse(&bytes[..19]).is_err());
//! # Ok::<(), wire::Malformed>(())
//! ```

pub mod checksum;
pub mod esp;
pub mod hip;
pub mod icmp;
mod id;
pub mod ip;
mod malformed;
pub mod short;
pub mod tcp;
pub mod translate;
pub mod udp;

pub use id::{Hit, Lsi, Spi};
pub use malformed::Malformed;

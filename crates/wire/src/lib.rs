//! Packets on the wire: HIP (RFC 7401), ESP (RFC 4303), and what is read of IP, TCP, UDP and ICMP headers.

pub mod checksum;
pub mod esp;
pub mod hip;
pub mod icmp;
mod id;
pub mod ip;
mod malformed;
pub mod tcp;
pub mod translate;
pub mod udp;

pub use id::{Hit, Lsi, Spi};
pub use malformed::Malformed;

//! Packets on the wire: HIP (RFC 7401), ESP (RFC 4303), and what is read of IP, TCP, UDP and ICMP headers.

mod id;

pub use id::{Hit, Lsi, Spi};

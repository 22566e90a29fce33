//! HIP packets (RFC 7401 §5): a checked view ([`Packet`]), the parameters it carries ([`Parameter`]), and a
//! [`Builder`] that emits them. Which bytes a MAC or a signature covers is decided here, once, for both directions.

mod builder;
mod packet;
mod parameter;

pub use builder::{Builder, TooLong, append, set_checksum, set_puzzle, set_receiver};
pub use packet::{Packet, PacketError, PacketKind, hits};
pub use parameter::{
    Candidate, DiffieHellman, EspInfo, HostId, Locator, Notification, Parameter, ParameterError, PeerPermission,
    Puzzle, RegFailed, RegInfo, Registration, Signature, Solution, TransportAddress, kind, lifetime_seconds,
};

/// The fixed part of a HIP packet, bytes.
pub const HEADER_LEN: usize = 40;
/// The longest HIP packet: Header Length counts units of 8 bytes after the first 8 in one byte (RFC 7401 §5.1).
pub const MAX_LEN: usize = 256 * 8;
/// The IP protocol number of HIP (RFC 7401 §5.1).
pub const IP_PROTOCOL: u8 = 139;

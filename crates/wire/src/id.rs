//! What a host, a program's address and a security association are called: HIT, LSI, SPI.

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A Host Identity Tag: the hash of a host's public key in the shape of an IPv6 address (RFC 7401 §3.1, an ORCHIDv2
/// of RFC 7343, prefix 2001:20::/28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hit(pub [u8; 16]);

impl Hit {
    /// No identity: the receiver of an opportunistic I1.
    pub const NULL: Self = Self([0; 16]);

    /// True inside 2001:20::/28, the prefix of ORCHIDv2 (RFC 7343 §1.2).
    pub fn is_orchid(&self) -> bool {
        self.0[..3] == [0x20, 0x01, 0x00] && self.0[3] & 0xf0 == 0x20
    }

    /// The ORCHID Generation Algorithm number, the four bits after the prefix: the HIT suite (RFC 7401 §5.2.10).
    pub fn suite(&self) -> u8 {
        self.0[3] & 0x0f
    }

    /// As an IPv6 address.
    pub fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.0)
    }
}

impl From<Ipv6Addr> for Hit {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Hit> for Ipv6Addr {
    fn from(hit: Hit) -> Self {
        hit.address()
    }
}

impl FromStr for Hit {
    type Err = AddrParseError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Ipv6Addr>().map(Self::from)
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// A Local Scope Identifier: an IPv4 address that stands for a host identity on this machine only (RFC 5338 §3.2), for programs
/// that know no IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsi(pub [u8; 4]);

impl Lsi {
    /// As an IPv4 address.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.0)
    }
}

impl From<Ipv4Addr> for Lsi {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.octets())
    }
}

impl From<Lsi> for Ipv4Addr {
    fn from(lsi: Lsi) -> Self {
        lsi.address()
    }
}

impl FromStr for Lsi {
    type Err = AddrParseError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Ipv4Addr>().map(Self::from)
    }
}

impl fmt::Display for Lsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// A Security Parameters Index: names an ESP security association at its receiver (RFC 4303 §2.1). Values below 256
/// are reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spi(pub u32);

impl fmt::Display for Spi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

//! The parameter with which two Sinnet hosts find that they may give each other feedback about the paths.
//!
//! Its number is of those for experiments (RFC 7401 §5.2.1: 32768 to 49151), and even: hosts that do not know it skip
//! it. An R1 offers feedback, under its signature; an I2 that repeats the parameter, under its MAC, accepts. From then on
//! both may send ESP packets of next header [`NEXT_HEADER`], which other hosts never see.
//!
//! The parameter is a version and a byte of [`Features`]: an R1 has those of its host, an I2 those that both have.

use crate::config::HostConfig;
use wire::hip::{Packet, Parameter};

/// SINNET_FEEDBACK.
pub const PARAMETER: u16 = 0x9e5e;

/// The version of what is said in ESP packets; the content of the parameter.
const VERSION: u8 = 1;

/// ESP's next header of what only Sinnet hosts say to each other: one of those for experiments (RFC 3692 §2.1). Where both have
/// [`Features::short_numbers`], 148 to 251 are theirs as well.
pub const NEXT_HEADER: u8 = 253;

/// What two hosts that give feedback can do besides. Hosts that know none of them send a zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// AES-GCM without the IV in packets, for it is the sequence number (RFC 8750).
    pub implicit_iv: bool,
    /// Headers of flows in short, for receivers that have asked for it.
    pub short_headers: bool,
    /// Numbers of packets without a header of their own: ESP's next header says of what.
    pub short_numbers: bool,
}

impl Features {
    /// Those of a host. One that keeps its keys for Wireshark has none, for Wireshark knows none.
    pub fn own(keylog: bool) -> Self {
        Self { implicit_iv: !keylog, short_headers: !keylog, short_numbers: !keylog }
    }

    fn of_bits(bits: u8) -> Self {
        Self { implicit_iv: bits & 1 != 0, short_headers: bits & 2 != 0, short_numbers: bits & 4 != 0 }
    }

    fn bits(self) -> u8 {
        u8::from(self.implicit_iv) | u8::from(self.short_headers) << 1 | u8::from(self.short_numbers) << 2
    }

    fn shared(self, other: Self) -> Self {
        Self::of_bits(self.bits() & other.bits())
    }
}

/// The parameter.
pub(crate) fn offer(features: Features) -> Parameter {
    Parameter::Unknown { kind: PARAMETER, contents: vec![VERSION, features.bits(), 0, 0] }
}

/// What a packet offers, where it has the parameter, of our version.
pub(crate) fn offered(packet: &Packet<'_>) -> Option<Features> {
    packet.parameters().find_map(|parameter| match parameter {
        Parameter::Unknown { kind: PARAMETER, contents } if contents.first() == Some(&VERSION) => {
            Some(Features::of_bits(contents.get(1).copied().unwrap_or(0)))
        }
        _ => None,
    })
}

/// What both hosts have, where this one wants feedback and a packet of the other offers it.
pub(crate) fn agreed(config: &HostConfig, packet: &Packet<'_>) -> Option<Features> {
    let theirs = offered(packet).filter(|_| config.feedback)?;
    Some(Features::own(config.keylog).shared(theirs))
}

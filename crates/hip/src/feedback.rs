//! The parameter with which two Sinnet hosts find that they may give each other feedback about the paths.
//!
//! Its number is of those for experiments (RFC 7401 §5.2.1: 32768 to 49151), and even: hosts that do not know it skip
//! it. An R1 offers feedback, under its signature; an I2 that repeats the parameter, under its MAC, accepts. From then on
//! both may send ESP packets of next header [`NEXT_HEADER`], which other hosts never see.

use wire::hip::{Packet, Parameter};

/// SINNET_FEEDBACK.
pub const PARAMETER: u16 = 0x9e5e;

/// The version of what is said in ESP packets; the content of the parameter.
const VERSION: u8 = 1;

/// ESP's next header of what only Sinnet hosts say to each other: one of those for experiments (RFC 3692 §2.1).
pub const NEXT_HEADER: u8 = 253;

/// The parameter.
pub(crate) fn offer() -> Parameter {
    Parameter::Unknown { kind: PARAMETER, contents: vec![VERSION, 0, 0, 0] }
}

/// Whether a packet has the parameter, of our version.
pub(crate) fn is_offered(packet: &Packet<'_>) -> bool {
    packet.parameters().any(|parameter| match parameter {
        Parameter::Unknown { kind: PARAMETER, contents } => contents.first() == Some(&VERSION),
        _ => false,
    })
}

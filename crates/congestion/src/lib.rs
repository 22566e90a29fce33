//! Congestion control: one engine, one file per rule.
//!
//! [`Controller`] owns the phases of additive increase and multiplicative decrease (RFC 5681): slow start, recovery
//! epochs, timeouts, undo, floors, growth only when the window was the limit. A [`WindowRule`] is the arithmetic of one
//! algorithm. One controller serves all paths of an association, and every call of a rule sees them as a [`Group`],
//! because a coupled rule has to see the siblings; a single-path rule is the case of one path.
//!
//! Windows are real numbers of bytes: an increase of 27 bytes per acknowledgment is the normal case. The room knows no
//! packet format, no socket and no clock, and uses + − × ÷ √ only, so a run is the same on every machine.
//!
//! A new rule is a file, and a line in `registry.rs`.

mod balia;
mod bottleneck;
mod cdg;
mod chd;
mod compound;
mod coupled;
mod coupling;
mod cubic;
mod custom;
pub mod daimd;
mod engine;
mod ewtcp;
mod group;
mod hd;
mod host;
pub mod lia;
mod lia_byte;
mod math;
mod mhip;
mod new_reno;
mod olia;
mod partial_bytes;
mod registry;
mod reno_sp;
mod rp1;
mod rp2;
mod rule;
mod semicoupled;
mod slow_start;
mod tunable;
#[cfg(test)]
mod vector;
mod vegas;
mod wvegas;

pub use balia::Balia;
pub use bottleneck::Bottlenecks;
pub use cdg::Cdg;
pub use compound::Compound;
pub use coupled::Coupled;
pub use coupling::{CoupledController, Doubt, Share};
pub use cubic::Cubic;
pub use custom::{Custom, CustomRule};
pub use daimd::{Daimd, DaimdConfig};
pub use engine::{Acked, Congestion, Controller, EngineConfig, InitialWindow, SlowStartTest, Undo, WindowRounding};
pub use ewtcp::Ewtcp;
pub use group::{Group, Path, Usable};
pub use hd::Hd;
pub use host::{Host, Unfit};
pub use lia::Lia;
pub use lia_byte::LiaByte;
pub use mhip::{Growth, Mhip};
pub use new_reno::NewReno;
pub use olia::{Olia, Ranking};
pub use registry::{Rule, UnknownRule};
pub use reno_sp::RenoSp;
pub use rp1::Rp1;
pub use rp2::Rp2;
pub use rule::{Backoff, Cause, Family, Kind, Round, RoundDecision, WindowRule};
pub use semicoupled::Semicoupled;
pub use slow_start::{RoundTrip, SlowStart};
pub use tunable::BadTunable;
pub use vegas::{Divisor, Vegas};
pub use wvegas::Wvegas;

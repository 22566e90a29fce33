//! Congestion control: one engine, one file per rule.
//!
//! [`Controller`] owns the phases of additive increase and multiplicative decrease (RFC 5681): slow start, recovery
//! epochs, timeouts, undo, floors, growth only when the window was the limit. A [`WindowRule`] is the arithmetic of one
//! algorithm. One controller serves all paths of an association, and every call of a rule sees them as a [`Group`],
//! because a coupled rule has to see the siblings; a single-path rule is the case of one path.
//!
//! Rules that model the path are another kind ([`Kind::reads_rate`]): a [`Delivery`] samples how fast packets arrive, and window and
//! pace are the rule's own.
//!
//! Windows are real numbers of bytes: an increase of 27 bytes per acknowledgment is the normal case. The room knows no
//! packet format, no socket and no clock, and uses + − × ÷ √ only, so a run is the same on every machine.
//!
//! A new rule is a file in `rules/`, two lines in `rules/mod.rs`, its module and its name.
//!
//! ```
//! use clock::{Duration, Instant};
//! use congestion::{Acked, Cause, Congestion, Controller, EngineConfig, Rule};
//!
//! let mut controller = Controller::new("newreno".parse::<Rule>()?, EngineConfig::default());
//! let path = controller.add_path(1_460);
//! let before = controller.cwnd(path);
//! let rtt = Some(Duration::from_millis(50));
//! let flight = before as u64;
//! let acked = Acked { bytes: 1_460, flight, upto: 1, next: 11, rtt, srtt: Duration::from_millis(50) };
//! controller.on_ack(path, &acked, Instant::ZERO);
//! assert_eq!(controller.cwnd(path), before + 1_460.0, "slow start, RFC 5681 §3.1");
//! let loss = Congestion { cause: Cause::Loss, flight: 14_600.0, next: 11 };
//! controller.on_congestion(path, &loss, Instant::ZERO);
//! assert_eq!(controller.ssthresh(path), 7_300.0, "half of what was in flight, RFC 5681 equation (4)");
//! # Ok::<(), congestion::UnknownRule>(())
//! ```
//!
//! `examples/own_congestion_control.rs` is a rule from outside of the crate.

mod bottleneck;
mod coincidence;
mod correlation;
mod coupling;
mod custom;
mod delays;
mod delivery;
mod engine;
mod fair_queue;
mod group;
mod host;
mod math;
mod model;
mod random_loss;
mod reference;
mod rule;
mod rules;
mod slow_start;
mod tunable;
#[cfg(test)]
mod vector;

pub use bottleneck::Bottlenecks;
pub use coupling::{CoupledController, Doubt, Share};
pub use custom::{Custom, CustomRule};
pub use delivery::{Delivery, LostPacket, RateDecision, RateSample, SentPacket};
pub use engine::{Acked, Congestion, Controller, EngineConfig, InitialWindow, SlowStartTest, Undo, WindowRounding};
pub use group::{Group, Path, Usable};
pub use host::{Host, Unfit};
pub use reference::{REFERENCE, Reference, Tunable};
pub use rule::{Backoff, Cause, Family, Kind, Round, RoundDecision, WindowRule};
pub use rules::*;
pub use slow_start::{RoundTrip, SlowStart};
pub use tunable::BadTunable;

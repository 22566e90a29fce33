//! A campaign of faults and attacks over whole Sinnet hosts, in virtual time, and the properties that have to hold
//! whatever happens.
//!
//! A [`Plan`] says everything that a run depends on: hosts, links, traffic, each fault and each attack with its time.
//! [`draw()`] makes one from a seed; [`run()`] runs it, and tells which [`Property`] did not hold, and how often each was
//! looked at in a state in which it could have failed; [`shrink()`] makes a failing plan smaller.
//!
//! ```
//! let plan = chaos::draw(1, chaos::Shape::Two);
//! let outcome = chaos::run(&plan);
//! assert_eq!(outcome.finding, None);
//! assert!(outcome.tally.of(chaos::Property::S1) > 0);
//! ```

mod attack;
mod draw;
mod faults;
mod forge;
mod health;
mod inspect;
mod network;
mod node;
mod property;
mod run;
mod shrink;
mod tap;
mod traffic;
mod world;

pub mod campaign;
pub mod plan;

pub use draw::{Shape, draw};
pub use plan::Plan;
pub use property::{Finding, Property, Tally};
pub use run::{Outcome, catch_panics, run, run_twice, story};
pub use shrink::shrink;

//! Time and chance as values: [`Instant`] and [`Duration`] in integer nanoseconds, and [`Streams`], seeded random
//! streams that are independent per component. Nothing in here reads a clock or asks the system for randomness:
//! both are arguments, so that one printed seed replays a run.

mod random;
mod time;

pub use random::{Rng, Streams};
pub use time::{Duration, Instant};

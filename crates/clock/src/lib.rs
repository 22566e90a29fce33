//! Time and chance as values: [`Instant`] and [`Duration`] in integer nanoseconds, [`Histogram`] of many of them, and
//! [`Streams`], seeded random streams that are independent per component; [`VirtualTime`] goes from event to event. Nothing in here reads a clock or asks the system
//! for randomness: both are arguments, so that one printed seed replays a run.
//!
//! ```
//! use clock::{Duration, Instant, Streams};
//!
//! let sent = Instant::ZERO + Duration::from_millis(30);
//! let arrived = sent + Duration::of_transmission(1500, 8_000_000);
//! assert_eq!((arrived - sent).as_secs_f64(), 0.0015);
//! // What a component draws follows from the seed and its name, whoever else draws.
//! let draw = |name| Streams::new(7).stream(name).next_u64();
//! assert_eq!(draw("link a"), draw("link a"));
//! assert_ne!(draw("link a"), draw("link b"));
//! ```

mod histogram;
mod random;
mod time;
mod virtual_time;

pub use histogram::Histogram;
pub use random::{Rng, Streams};
pub use time::{Duration, Instant};
pub use virtual_time::{StandsStill, VirtualTime};

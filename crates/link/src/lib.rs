//! What a link does to packets: rate or trace, delay, jitter, queue, loss, outage.
//!
//! [`Link`] is **one** direction of a link. It knows nothing of real or virtual time: the simulator moves it by its
//! event queue, the emulator by the system's clock, both with the same three calls, [`Link::offer`], [`Link::poll`]
//! and [`Link::next_event`]. [`ProcessingJitter`] holds packets before their first link.
//!
//! ```
//! use clock::{Duration, Instant, Rng};
//! use link::{Link, LinkConfig};
//!
//! let config = LinkConfig { rate: Some(1_000_000), delay: Duration::from_millis(30), ..LinkConfig::default() };
//! let mut link = Link::new(config, Rng::from_seed(1));
//! link.offer(Instant::ZERO, "packet", 1500).unwrap();
//! // 12 ms to send 1500 bytes at 1 Mbit/s, 30 ms to get there.
//! let arrival = Instant::ZERO + Duration::from_millis(42);
//! assert_eq!(link.next_event(), Some(arrival));
//! assert_eq!(link.poll(arrival), Some("packet"));
//! ```

mod config;
mod jitter;
mod link;
mod loss;
mod mrg32k3a;
mod processing;
mod schedule;
mod statistics;
mod trace;

pub use config::{Change, ChangeKind, LinkConfig, LossConfig};
pub use jitter::JitterConfig;
pub use link::{DropReason, Dropped, Link};
pub use processing::{Processing, ProcessingHost, ProcessingJitter, ProcessingTimes};
pub use queue::{
    CoDelConfig, DualPi2Config, Ecn, FqCoDelConfig, PieConfig, QueueConfig, RedConfig, Setting as QueueSetting,
};
pub use schedule::Schedule;
pub use statistics::{Count, LinkStatistics};
pub use trace::{Trace, TraceError};

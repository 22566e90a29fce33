//! Queue disciplines: what waits, what goes next, what is dropped or marked.
//!
//! A [`QueueDiscipline`] holds packets of any type `P` and knows of each only what a [`Queued`] says. It reads no clock and has no
//! timer: what it does regularly it makes up for at the next call, each step at its own instant. [`QueueConfig`] is the registry:
//! a new discipline is a file in `disciplines/` and its lines in that folder's `mod.rs`.
//!
//! ```
//! use clock::{Duration, Instant, Rng};
//! use queue::{Discipline, Queued, QueueConfig, QueueDiscipline, Transmitter};
//!
//! let mut queue = Discipline::new(QueueConfig::Packets(1), &mut Rng::from_seed(1));
//! let busy = Transmitter { is_idle: false, rate: Some(1_000_000) };
//! let at = |ms| Instant::ZERO + Duration::from_millis(ms);
//! assert!(queue.enqueue(Queued::new("first", 1500, at(0)), 7, busy, &mut |_| {}).is_ok());
//! assert!(queue.enqueue(Queued::new("second", 1500, at(1)), 7, busy, &mut |_| {}).is_err());
//! assert_eq!(queue.dequeue(at(12), &mut |_| {}).map(|queued| queued.packet), Some("first"));
//! ```
//!
//! [`codel::CoDel`] and [`rounds::Rounds`] are CoDel and deficit round robin by themselves, without packets, for who keeps
//! packets in a way of his own.

mod discipline;
mod disciplines;
mod fifo;
mod pi;
mod reference;
pub mod rounds;

pub use discipline::{Cause, Config, Dropped, Ecn, Key, QueueDiscipline, Queued, Setting, Transmitter};
pub use disciplines::*;
pub use reference::{REFERENCE, Reference};

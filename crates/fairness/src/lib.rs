//! What a fair share is, how fair a share was, and how sure we are of a measured number.
//!
//! - [`statistics`]: mean, standard deviation, Student's confidence interval, percentiles, the warm-up of a series.
//! - [`jain`]: Jain's index of a set of shares.
//! - [`Network`]: links and routes, with the allocations that max-min and proportional fairness expect on them.
//!
//! Definitions follow `ALGORITHMS.md` §10 (fairness) and §11 (statistics), and `vectors/algorithms/vectors.json` checks them.

mod index;
mod max_min;
mod network;
mod proportional;
pub mod statistics;

pub use index::jain;
pub use network::{Network, NetworkError};

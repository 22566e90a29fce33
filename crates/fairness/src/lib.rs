//! What a fair share is, how fair a share was, and how sure we are of a measured number.
//!
//! - [`statistics`]: mean, standard deviation, Student's confidence interval, percentiles, the warm-up of a series.
//! - [`jain`]: Jain's index of a set of shares.
//! - [`Network`]: links and routes, with the allocations that max-min and proportional fairness expect on them.
//! - [`Topology`]: locators, nodes, links and paths, from which networks come.
//! - [`Notion`]: what a fair share is, with the [`Allocation`] it expects; [`planes`] and [`line()`] of fair allocations.
//! - [`metrics`]: how fair a run was.
//! - [`lia_beside_reno`]: what the equations of LIA come to in scenario 3.
//!
//! Definitions follow `ALGORITHMS.md` §10 (fairness) and §11 (statistics), and `vectors/algorithms/vectors.json` checks them.
//!
//! ```
//! use fairness::{Network, jain};
//!
//! // A flow over two links of 10, and one over each alone: max-min gives all the same, proportional fairness less to the
//! // one that uses both.
//! let network = Network::new(&[10.0, 10.0], &[vec![0, 1], vec![0], vec![1]])?;
//! assert_eq!(network.max_min(&[1.0; 3])?, [5.0, 5.0, 5.0]);
//! let proportional = network.proportional(&[0, 1, 2], &[1.0; 3])?;
//! assert!((proportional[0] - 10.0 / 3.0).abs() < 1e-6);
//! assert_eq!(jain(&[5.0, 5.0, 0.0]), Some(2.0 / 3.0));
//! # Ok::<(), fairness::NetworkError>(())
//! ```

mod equilibrium;
mod index;
mod lexicographic;
mod max_min;
pub mod metrics;
mod network;
mod notion;
mod plane;
mod proportional;
pub mod statistics;
mod topology;

pub use equilibrium::{Bottleneck, Equilibrium, lia_beside_reno};
pub use index::jain;
pub use network::{Network, NetworkError};
pub use notion::{Allocation, Notion};
pub use plane::{Plane, line, planes, scenario_1, scenario_2, scenario_3};
pub use topology::{MOST_PATHS, Path, Topology, TopologyError};

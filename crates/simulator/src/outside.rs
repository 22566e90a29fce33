//! Algorithms from outside of these crates.

use congestion::Rule;
use scheduler::Scheduler;

/// Congestion controls and schedulers that are of no registry, by the names that a scenario writes. `()` has none.
///
/// Each flow gets a clone of what is returned here ([`Rule::custom`], [`Scheduler::custom`]).
pub trait Outside {
    /// The rule of this name, for TCP, MPTCP, and TCP through a tunnel.
    fn rule(&self, _name: &str) -> Option<Rule> {
        None
    }

    /// The scheduler of this name, for MPTCP.
    fn scheduler(&self, _name: &str) -> Option<Scheduler> {
        None
    }
}

impl Outside for () {}

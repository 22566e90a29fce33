//! What the reference tells of each scheduler: how it chooses, and where that comes from.

use crate::Scheduler;

/// A scheduler in formulas.
///
/// Of a path, `RTT` is the smoothed round-trip time, `σ` its variation, `D` the one-way delay, `B` the rate, `w` the window in packets;
/// `S` is the size of the packet. A path is open if it may take a packet now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The name of the scheduler.
    pub name: &'static str,
    /// The path that it chooses.
    pub choice: &'static str,
    /// Paper or draft, or whose rule it is.
    pub source: &'static str,
}

impl Scheduler {
    /// The scheduler in formulas.
    pub fn reference(&self) -> Option<&'static Reference> {
        REFERENCE.iter().find(|reference| reference.name == self.name())
    }
}

/// All schedulers, in the order of [`Scheduler::NAMES`].
pub const REFERENCE: &[Reference] = crate::schedulers::REFERENCE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduler_is_in_the_reference() {
        let names: Vec<&str> = REFERENCE.iter().map(|reference| reference.name).collect();
        assert_eq!(names, Scheduler::NAMES);
        assert!(Scheduler::default().reference().is_some_and(|reference| reference.choice.contains("8S/B")));
    }
}

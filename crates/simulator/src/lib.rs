//! Virtual time: the event queue, the topology, measurement.

mod result;

pub use result::{Distribution, FlowResult, FlowSample, LinkResult, LinkSample, RunResult, Sample};

/// What a run does beside its scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunOptions {
    /// Take a [`Sample`] so often; never if `None`.
    pub interval: Option<clock::Duration>,
}

//! Virtual time: the event queue, the topology, measurement.
//!
//! [`Simulation`] runs a [`Plan`] (links, routes, flows by index) from one seed and gives a [`RunResult`]. The same
//! plan and seed give the same result on every machine: time is in whole nanoseconds, what happens at the same instant
//! has a fixed order, and every component has a random stream of its own that follows from its name.
//!
//! ```
//! let text = r#"
//! name = "two flows"
//! duration = "20s"
//! warm_up = "5s"
//! [[link]]
//! between = ["server", "client"]
//! rate = "10Mbit/s"
//! delay = "10ms"
//! queue = "1bdp"
//! [[flow]]
//! count = 2
//! protocol = "tcp"
//! from = "server"
//! to = "client"
//! start = ["0s", "1s"]
//! "#;
//! let scenario = scenario::parse(text, "two-flows.toml")?;
//! let result = simulator::run(&scenario, 1, &simulator::RunOptions::default())?;
//! let sum: f64 = result.flows.iter().map(|flow| flow.goodput_mbps).sum();
//! assert!((9.0..10.0).contains(&sum), "{sum}: the link is full, less the headers");
//! # Ok::<(), text::Diagnostic>(())
//! ```

mod association;
mod from_scenario;
mod mhip;
mod mptcp;
mod observer;
mod outside;
mod plan;
mod queue;
mod report;
mod result;
mod rules;
mod sctp;
mod simulation;
mod sinnet;
mod stations;

pub use association::AssociationConfig;
pub use from_scenario::{plan, plan_with};
pub use observer::Observer;
pub use outside::Outside;
pub use plan::{Plan, PlannedAssociation, PlannedFlow, PlannedLink, PlannedPath};
pub use result::{
    Distribution, FlowResult, FlowSample, LinkResult, LinkSample, PathResult, PathSample, RunResult, Sample,
};
pub use simulation::Simulation;

/// What a run does beside its scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOptions {
    /// Take a [`Sample`] so often; never if `None`.
    pub interval: Option<clock::Duration>,
    /// Samples are of these flows, indices of [`RunResult::flows`]; of all if `None`.
    pub flows: Option<Vec<usize>>,
}

impl RunOptions {
    /// A sample of all flows so often.
    pub fn every(interval: clock::Duration) -> Self {
        Self { interval: Some(interval), flows: None }
    }
}

/// Runs `scenario` once with `seed`.
///
/// # Errors
/// What the simulator cannot do, where the file asks for it.
pub fn run(scenario: &scenario::Scenario, seed: u64, options: &RunOptions) -> Result<RunResult, text::Diagnostic> {
    Ok(Simulation::new(&plan(scenario, seed)?, seed).run(options))
}

//! The laboratory in real time: a scenario file becomes network namespaces, emulated links, real daemons and real programs.
//!
//! In virtual time it needs neither rights nor programs:
//!
//! ```
//! let text = r#"
//! name = "two paths"
//! duration = "3s"
//! [[link]]
//! between = ["a", "b"]
//! rate = "8Mbit/s"
//! delay = "10ms"
//! queue = "1.5bdp"
//! [[link]]
//! between = ["a", "r"]
//! rate = "4Mbit/s"
//! delay = "10ms"
//! queue = "1.5bdp"
//! [[link]]
//! between = ["r", "b"]
//! [[flow]]
//! protocol = "sinnet"
//! from = "a"
//! to = "b"
//! paths = [["a", "b"], ["a", "r", "b"]]
//! "#;
//! let scenario = scenario::parse(text, "two-paths.toml")?;
//! let options = lab::Options { hosts: lab::Hosts::Virtual, together: true, ..lab::Options::new()? };
//! let report = lab::run(&scenario, &options, &mut lab::Progress::silent())?;
//! assert!(report.sha256_equal && report.together_mbps > 8.0, "more than one path carries");
//! # Ok::<(), lab::LabError>(())
//! ```

mod compare;
mod daemons;
mod datagrams;
mod demo;
mod error;
mod guest;
mod interrupt;
mod kernel;
mod measure;
mod namespace;
mod plan;
mod privilege;
mod probe;
mod progress;
mod real;
mod report;
mod run;
mod simulated;
mod site;
mod topology;
mod transfer;
mod virtual_time;
mod watch;
mod wireshark;
mod wiring;

pub use compare::{Comparison, Row, compare};
pub use datagrams::{DatagramReport, Quantiles};
pub use demo::{Demo, demo, table};
pub use error::LabError;
pub use guest::{Conversation, End, Guest, Served};
pub use multipath::Ecn;
pub use namespace::{Namespace, Program, Running};
pub use privilege::become_root;
pub use progress::Progress;
pub use report::{FlowReport, PathReport, Report};
pub use run::{Hosts, Options, run, run_with};

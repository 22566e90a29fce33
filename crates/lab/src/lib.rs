//! The laboratory in real time: a scenario file becomes network namespaces, emulated links, real daemons and real programs.

mod demo;
mod error;
mod interrupt;
mod mhip;
mod namespace;
mod plan;
mod privilege;
mod progress;
mod report;
mod run;
mod site;
mod topology;
mod transfer;
mod wireshark;

pub use demo::{Demo, demo, table};
pub use error::LabError;
pub use namespace::{Namespace, Program, Running};
pub use privilege::become_root;
pub use progress::Progress;
pub use report::Report;
pub use run::{Options, run};

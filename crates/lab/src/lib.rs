//! The laboratory in real time: a scenario file becomes network namespaces, emulated links, real daemons and real programs.

mod compare;
mod daemons;
mod datagrams;
mod demo;
mod error;
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
pub use namespace::{Namespace, Program, Running};
pub use privilege::become_root;
pub use progress::Progress;
pub use report::{FlowReport, PathReport, Report};
pub use run::{Options, run};

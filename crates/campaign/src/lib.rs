//! Campaigns: one scenario over many seeds and over the points of its sweep, on all cores, stored so that a second start
//! runs only what is missing.

#[expect(dead_code, reason = "the scenario is not connected yet")]
mod execute;
mod files;
mod metrics;
mod pcap;
mod report;
mod series;
mod store;
mod table;
mod text;
mod trace;
mod workers;

pub use execute::{Options, Progress};
pub use files::StoreError;
pub use pcap::{Capture, CapturedPacket, Segment, Transport};
pub use report::{FlowGroup, PointReport, Report};
pub use store::Origin;
pub use table::{Table, Values};

//! Campaigns: one scenario over many seeds and over the points of its sweep, on all cores, stored so that a second start
//! runs only what is missing.

mod campaign;
mod execute;
mod fair;
mod files;
mod metrics;
mod pcap;
mod report;
mod sctp_wire;
mod series;
mod store;
mod table;
mod text;
mod trace;
mod workers;

pub use campaign::{Campaign, CampaignError, Seeds};
pub use execute::{Options, Progress};
pub use fair::{Expectation, FairnessReport};
pub use files::StoreError;
pub use pcap::{Capture, CapturedPacket, Segment, Transport};
pub use report::{FlowGroup, PointReport, Report};
pub use sctp_wire::Chunk;
pub use store::{Origin, digest_of};
pub use table::{Table, Values};

//! Campaigns: one scenario over many seeds and over the points of its sweep, on all cores, stored so that a second start
//! runs only what is missing.
//!
//! ```
//! use std::num::{NonZeroU32, NonZeroUsize};
//! use std::sync::atomic::AtomicBool;
//!
//! use campaign::{Campaign, Options, Origin, Seeds};
//!
//! let text = r#"
//! name = "rates"
//! duration = "5s"
//! [[link]]
//! between = ["server", "client"]
//! delay = "10ms"
//! queue = "50p"
//! [[flow]]
//! protocol = "tcp"
//! from = "server"
//! to = "client"
//! [sweep]
//! "link.server-client.rate" = ["2Mbit/s", "4Mbit/s"]
//! "#;
//! let seeds = Seeds { first: None, count: NonZeroU32::new(3) };
//! let campaign = Campaign::parse(text, "rates.toml", &[], seeds)?;
//! assert_eq!(campaign.runs(), 6);
//! let options = Options {
//!     threads: NonZeroUsize::MIN,
//!     out: None,
//!     interval: None,
//!     pcap: false,
//!     origin: Origin { version: "1".into(), program: "example".into() },
//! };
//! let report = campaign.run(&options, &AtomicBool::new(false), |_| ())?;
//! assert_eq!(report.points.len(), 2);
//! # Ok::<(), campaign::CampaignError>(())
//! ```

mod campaign;
mod columns;
mod cost;
mod execute;
mod fair;
mod files;
mod merge;
mod metrics;
mod pcap;
mod report;
mod sctp_wire;
mod series;
mod shard;
mod store;
mod table;
mod text;
mod trace;
pub mod workers;

pub use campaign::{Campaign, CampaignError, Missing, Plugged, Plugins, Seeds};
pub use columns::{Column, SECTIONS, Section};
pub use cost::packets;
pub use execute::{Options, Progress, Series, Tables};
pub use fair::{Expectation, FairnessReport};
pub use files::StoreError;
pub use merge::{Contents, Merged, contents, merge};
pub use pcap::{Capture, CapturedPacket, Segment, Transport};
pub use report::{FlowGroup, PointReport, Report};
pub use sctp_wire::Chunk;
pub use shard::Shard;
pub use store::{Origin, digest_of};
pub use table::{Table, Values};

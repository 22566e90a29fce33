//! What a laboratory measured.

use std::path::PathBuf;

use serde::Serialize;

use crate::datagrams::{DatagramReport, Quantiles};

/// The result of one scenario. Rates are goodput in Mbit/s: bytes of the file, over the time from its first byte to its last, those of single
/// paths and of all together measured the same way; of flows that compete, what arrived between warm-up and end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub name: String,
    /// Whether it ran in virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// Each path alone, through Sinnet. Not measured where flows compete.
    pub single_mbps: Vec<f64>,
    /// The sum of these.
    pub sum_mbps: f64,
    /// All paths together.
    pub together_mbps: f64,
    /// `together_mbps` over `sum_mbps`.
    pub ratio: Option<f64>,
    /// Whether every file arrived as it was. In virtual time the file is a pattern drawn from the seed, which no web server
    /// and no disk has seen; where flows compete, what arrived is compared with the beginning of the file.
    pub sha256_equal: bool,
    /// The longest time in which nothing of the file arrived, of the run over all paths, in milliseconds.
    pub longest_stall_ms: f64,
    /// The flows of the run over all paths, the one that all is about first.
    pub flows: Vec<FlowReport>,
    /// The paths of the main flow while it was measured over all of them: how long packets were under way on their links.
    pub paths: Vec<PathReport>,
    /// Friendliness: what the flow over several paths got over what a competing TCP flow got on average.
    pub ff: Option<f64>,
    /// The same for the paths only that share a link with a competing TCP flow: the part of the goodput counted that the bytes on
    /// these paths are of those on all.
    pub ff_shared: Option<f64>,
    /// Whether links changed while all paths were used together, so that `ratio` compares with links that were there all the time.
    pub disturbed: bool,
    /// How late the emulator was at worst for 99 of 100 packets, in microseconds; 0 in virtual time.
    pub emulator_late_p99_us: u64,
    /// Where captures, key log and daemons' logs are; absent when they were not kept.
    pub directory: Option<PathBuf>,
    /// One capture per path.
    pub captures: Vec<PathBuf>,
    /// The keys of the ESP packets in the captures.
    pub esp_keylog: Option<PathBuf>,
}

/// What one flow got.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// Its name in the scenario.
    pub name: String,
    /// What carried it.
    pub protocol: &'static str,
    /// The congestion control that its TCP really used.
    pub congestion: String,
    /// Its goodput.
    pub mbps: f64,
    /// The longest time in which nothing of it arrived, in milliseconds.
    pub longest_stall_ms: f64,
    /// Its connections.
    pub connections: u32,
    /// Connections over which the file arrived whole; where flows compete, nobody waits for that, and there is none.
    pub complete: u32,
    /// What became of the datagrams of a call or of echo requests.
    pub datagrams: Option<DatagramReport>,
}

/// How long packets were under way, from device to device: propagation, and queues of links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathReport {
    /// From the server.
    pub there_ms: Quantiles,
    /// From the client.
    pub back_ms: Quantiles,
}

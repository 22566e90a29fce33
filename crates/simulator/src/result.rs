//! What a run gives: plain data, for tables, files and tests.

use serde::{Deserialize, Serialize};

/// The outcome of one run of a scenario with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed that replays the run.
    pub seed: u64,
    /// Virtual time simulated, in seconds.
    pub virtual_s: f64,
    /// Processor time that it took, in seconds. The only number of a run that is not a function of scenario and seed;
    /// zero unless the caller measures it.
    pub cpu_s: f64,
    /// Packets delivered by all links together.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
    /// A hash over every delivery of the run (when, where, what): equal for equal runs, on every machine.
    pub digest: u64,
    /// Flows, in the order of the scenario, with `count = N` unrolled.
    pub flows: Vec<FlowResult>,
    /// Links, in the order of the scenario; both directions of a duplex link, forward first.
    pub links: Vec<LinkResult>,
    /// Samples at [`crate::RunOptions::interval`]; empty without one.
    pub series: Vec<Sample>,
}

/// What became of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The name in the scenario, with its number for `count = N`.
    pub name: String,
    /// Payload delivered in order to the application, in Mbit/s over the time the flow was active.
    pub goodput_mbps: f64,
    /// The same packets counted with their headers, as sizes on the wire.
    pub goodput_wire_mbps: f64,
    /// Everything that arrived at the receiver on the wire, duplicates too, in Mbit/s over the time the flow was active.
    pub throughput_mbps: f64,
    /// When the flow started, in seconds.
    pub start_s: f64,
    /// When the flow ended (all data acknowledged, or the end of the run), in seconds.
    pub end_s: f64,
    /// Whether all of a limited amount of data was acknowledged.
    pub completed: bool,
    /// Data packets in order at the receiver.
    pub delivered: u64,
    /// Data packets sent, retransmissions too.
    pub sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Packets of the flow (data and acknowledgments) dropped by queues and links.
    pub losses: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the congestion window.
    pub reductions: u64,
    /// Data packets that arrived after one sent later (RFC 4737), retransmissions not counted.
    pub reordered: u64,
    /// Retransmissions that had arrived before.
    pub duplicates: u64,
    /// Data packets that arrived with a congestion mark.
    pub marked: u64,
    /// Round-trip times as acknowledgments show them.
    pub rtt: Distribution,
    /// The congestion window, averaged over the time the flow was active, in packets.
    pub mean_cwnd: f64,
    /// Reductions that were taken back as needless.
    pub undone: u64,
    /// The most packets that the receiver held out of order at once, where that is counted (multipath).
    pub most_held: u64,
    /// The paths of a flow that may have several, in the order of the scenario; empty for TCP and UDP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
}

/// What became of one path of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// Payload that arrived on this path and had not arrived before, in Mbit/s over the time the flow was active.
    pub goodput_mbps: f64,
    /// Everything that arrived on it, as sizes on the wire, in Mbit/s over the time the flow was active.
    pub throughput_mbps: f64,
    /// Data packets that arrived on it and had not arrived before.
    pub delivered: u64,
    /// Data packets sent on it, retransmissions too.
    pub sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Data packets dropped by its queues and links.
    pub losses: u64,
    /// Reductions of its window; for mHIP's first generation, indications of its congestion.
    pub reductions: u64,
    /// Reductions that were taken back as needless.
    pub undone: u64,
    /// Data packets that arrived on it after one sent later on any path (RFC 4737), retransmissions not counted.
    pub reordered: u64,
    /// Data packets that arrived but found no room in the receiver's buffer.
    pub refused: u64,
    /// How often it was closed.
    pub closings: u64,
    /// Probes of it while it was closed.
    pub probes: u64,
    /// Its window, averaged over the time the flow was active, in packets; packets outstanding where it has none.
    pub mean_cwnd: f64,
    /// Its smoothed round-trip time at the end, in milliseconds.
    pub srtt_ms: f64,
}

/// A distribution in milliseconds (round-trip times) or packets (queues).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many samples.
    pub samples: u64,
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 95 % lie below.
    pub p95: f64,
    /// 99 % lie below.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

/// What became of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// The name in the scenario, with `>` or `<` for the direction of a duplex link.
    pub name: String,
    /// Bits sent over bits that could have been sent, from 0 to 1; 0 for a link without a rate.
    pub utilisation: f64,
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Bytes delivered at the far end.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full, or before that by its discipline.
    pub queue_drops: u64,
    /// Packets lost on the link itself: random loss and outages.
    pub link_losses: u64,
    /// Packets that the queue marked instead of dropping.
    pub marked: u64,
    /// Packets waiting, sampled at a fixed interval.
    pub queue: Distribution,
}

/// One sample of the time series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The time, in seconds.
    pub time_s: f64,
    /// Flows, as in [`RunResult::flows`], or those of [`crate::RunOptions::flows`].
    pub flows: Vec<FlowSample>,
    /// Links, as in [`RunResult::links`].
    pub links: Vec<LinkSample>,
}

/// One flow at one instant. Counters are totals since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSample {
    /// The congestion window in packets.
    pub cwnd: f64,
    /// The slow-start threshold in packets; infinite before the first loss.
    pub ssthresh: f64,
    /// Packets outstanding.
    pub flight: u64,
    /// The smoothed round-trip time in milliseconds; 0 without a sample.
    pub srtt_ms: f64,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Bytes of data packets that arrived at the receiver, on the wire.
    pub arrived_bytes: u64,
    /// The paths, as in [`FlowResult::paths`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathSample>,
}

/// One path of a flow at one instant. Counters are totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathSample {
    /// Its congestion window in packets; packets outstanding where it has none.
    pub cwnd: f64,
    /// Its slow-start threshold in packets; 0 where it has none.
    pub ssthresh: f64,
    /// Packets outstanding on it.
    pub flight: u64,
    /// Its smoothed round-trip time in milliseconds; 0 without a sample.
    pub srtt_ms: f64,
    /// Whether it is used for more than probes.
    pub open: bool,
    /// Bytes of data packets that arrived on it, on the wire.
    pub arrived_bytes: u64,
    /// Packets sent on it.
    pub sent: u64,
}

/// One link at one instant. Counters are totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Packets waiting.
    pub queue: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Packets dropped, for whatever reason.
    pub drops: u64,
}

//! The numbers of a run that are summed up over seeds, each with one name for tables, JSON and Parquet.

use fairness::jain;
use simulator::{Distribution, FlowResult, LinkResult, RunResult};

use crate::table::{Table, Values};

/// A named number of a `T`.
pub(crate) type Metric<T> = (&'static str, fn(&T) -> f64);

/// Per flow.
pub(crate) const FLOW: &[Metric<FlowResult>] = &[
    ("goodput_mbps", |flow| flow.goodput_mbps),
    ("goodput_wire_mbps", |flow| flow.goodput_wire_mbps),
    ("throughput_mbps", |flow| flow.throughput_mbps),
    ("start_s", |flow| flow.start_s),
    ("end_s", |flow| flow.end_s),
    ("completed", |flow| f64::from(u8::from(flow.completed))),
    ("delivered", |flow| flow.delivered as f64),
    ("sent", |flow| flow.sent as f64),
    ("retransmissions", |flow| flow.retransmissions as f64),
    ("losses", |flow| flow.losses as f64),
    ("timeouts", |flow| flow.timeouts as f64),
    ("reductions", |flow| flow.reductions as f64),
    ("reordered", |flow| flow.reordered as f64),
    ("duplicates", |flow| flow.duplicates as f64),
    ("marked", |flow| flow.marked as f64),
    ("rtt_mean_ms", |flow| known(&flow.rtt, flow.rtt.mean)),
    ("rtt_min_ms", |flow| known(&flow.rtt, flow.rtt.min)),
    ("rtt_p50_ms", |flow| known(&flow.rtt, flow.rtt.p50)),
    ("rtt_p95_ms", |flow| known(&flow.rtt, flow.rtt.p95)),
    ("rtt_p99_ms", |flow| known(&flow.rtt, flow.rtt.p99)),
    ("rtt_max_ms", |flow| known(&flow.rtt, flow.rtt.max)),
    ("mean_cwnd", |flow| flow.mean_cwnd),
];

/// Per link and direction.
pub(crate) const LINK: &[Metric<LinkResult>] = &[
    ("utilisation", |link| link.utilisation),
    ("offered", |link| link.offered as f64),
    ("delivered", |link| link.delivered as f64),
    ("delivered_bytes", |link| link.delivered_bytes as f64),
    ("queue_drops", |link| link.queue_drops as f64),
    ("link_losses", |link| link.link_losses as f64),
    ("marked", |link| link.marked as f64),
    ("queue_mean", |link| known(&link.queue, link.queue.mean)),
    ("queue_p50", |link| known(&link.queue, link.queue.p50)),
    ("queue_p95", |link| known(&link.queue, link.queue.p95)),
    ("queue_p99", |link| known(&link.queue, link.queue.p99)),
    ("queue_max", |link| known(&link.queue, link.queue.max)),
];

/// Per run: over all its flows.
pub(crate) const TOTAL: &[Metric<RunResult>] = &[
    ("goodput_mbps", |run| sum(run, |flow| flow.goodput_mbps)),
    ("throughput_mbps", |run| sum(run, |flow| flow.throughput_mbps)),
    ("jain", |run| {
        // The unit of account is the flow.
        let shares: Vec<f64> = run.flows.iter().map(|flow| flow.goodput_mbps).collect();
        jain(&shares).unwrap_or(f64::NAN)
    }),
    ("delivered", |run| sum(run, |flow| flow.delivered as f64)),
    ("sent", |run| sum(run, |flow| flow.sent as f64)),
    ("retransmissions", |run| sum(run, |flow| flow.retransmissions as f64)),
    ("losses", |run| sum(run, |flow| flow.losses as f64)),
    ("timeouts", |run| sum(run, |flow| flow.timeouts as f64)),
    ("reordered", |run| sum(run, |flow| flow.reordered as f64)),
];

fn sum(run: &RunResult, value: fn(&FlowResult) -> f64) -> f64 {
    run.flows.iter().map(value).sum()
}

/// A number of a distribution, or NaN if nothing was measured.
fn known(distribution: &Distribution, value: f64) -> f64 {
    if distribution.samples > 0 { value } else { f64::NAN }
}

/// What tells the rows of one run from those of another: the first columns of each table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    pub(crate) run: String,
    pub(crate) seed: u64,
    pub(crate) parameters: Vec<(String, Parameter)>,
}

/// The value of a swept key: a number where all values of the key are numbers, so that a column has one type.
#[derive(Clone, Debug)]
pub(crate) enum Parameter {
    Number(f64),
    Text(String),
}

impl Label {
    /// Adds the columns `run`, `seed` and one per parameter.
    pub(crate) fn begin(&self, table: Table) -> Table {
        let table = table.with("run", Values::Same(self.run.clone())).with("seed", Values::SameCount(self.seed));
        self.parameters.iter().fold(table, |table, (name, value)| {
            let values = match value {
                Parameter::Number(number) => Values::SameFloat(*number),
                Parameter::Text(text) => Values::Same(text.clone()),
            };
            table.with(name.clone(), values)
        })
    }
}

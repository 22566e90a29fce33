//! The numbers of a run that are summed up over seeds, each with one name for tables, JSON and Parquet. `columns` says what they are.

use fairness::jain;
use simulator::{Distribution, FlowResult, LinkResult, PathResult, RunResult};
use text::units;

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

/// Per path of a flow that may have several.
pub(crate) const PATH: &[Metric<PathResult>] = &[
    ("goodput_mbps", |path| path.goodput_mbps),
    ("throughput_mbps", |path| path.throughput_mbps),
    ("delivered", |path| path.delivered as f64),
    ("sent", |path| path.sent as f64),
    ("retransmissions", |path| path.retransmissions as f64),
    ("losses", |path| path.losses as f64),
    ("reductions", |path| path.reductions as f64),
    ("reordered", |path| path.reordered as f64),
    ("mean_cwnd", |path| path.mean_cwnd),
    ("srtt_ms", |path| path.srtt_ms),
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

/// What the values of a swept key are: (kind, number) where it is a number, with the unit that goes with it.
fn measured(value: &str) -> Option<(&'static str, f64)> {
    let plain = || value.parse::<f64>().ok().map(|number| ("", number));
    let time = || units::time(value).ok().map(|time| ("s", time.as_secs_f64()));
    let rate = || units::rate(value).ok().map(|rate| ("bit/s", rate as f64));
    let bytes = || units::bytes(value).ok().map(|bytes| ("B", bytes as f64));
    let packets = || units::packets(value).ok().map(|packets| ("p", f64::from(packets)));
    plain().or_else(time).or_else(rate).or_else(bytes).or_else(packets)
}

/// The values of one swept key as numbers, if all of them are, and of one unit: seconds, bit/s, bytes or packets.
pub(crate) fn numbers<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Vec<f64>> {
    let measured = values.into_iter().map(measured).collect::<Option<Vec<_>>>()?;
    let unit = measured.first().map(|(unit, _)| *unit);
    measured.iter().all(|(other, _)| Some(*other) == unit).then(|| measured.iter().map(|(_, number)| *number).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_one_unit_are_numbers_that_sort() {
        let of = |values: &[&str]| numbers(values.iter().copied());
        assert_eq!(of(&["1s", "10ms", "200us"]), Some(vec![1.0, 0.01, 0.0002]));
        assert_eq!(of(&["800kbit/s", "2Mbit/s"]), Some(vec![8e5, 2e6]));
        assert_eq!(of(&["64kB", "100B"]), Some(vec![64_000.0, 100.0]));
        assert_eq!(of(&["50p", "100p"]), Some(vec![50.0, 100.0]));
        assert_eq!(of(&["0.1", "1"]), Some(vec![0.1, 1.0]));
        for mixed in [&["1s", "1"][..], &["50p", "64kB"], &["cubic", "reno"], &["1.5bdp", "1p"]] {
            assert_eq!(of(mixed), None, "{mixed:?}");
        }
    }
}

//! The experiments, a file for each group of them.

mod beyond;
mod beyond_cubic;
mod friendliness;
pub(crate) mod random;
mod secure;
mod shared;

use clock::Duration;
use simulator::{FlowResult, RunResult, Sample};

use crate::estimate::Measured;
use crate::experiment::Experiment;
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};

/// All experiments, in the order of the report.
pub(crate) const ALL: &[&[Experiment]] =
    &[secure::ALL, friendliness::ALL, shared::ALL, beyond::ALL, beyond_cubic::ALL, random::ALL];

/// What mHIP's throughput on Path1 of the reference network is, in each run: all that n2-n1 delivers but the competing
/// TCP's part.
fn on_path1(point: &PointView<'_>) -> Vec<f64> {
    share(point, "n2-n1", "tcp")
}

/// The same for Path2, with UDP's part of n0-n3.
fn on_path2(point: &PointView<'_>) -> Vec<f64> {
    share(point, "n0-n3", "udp")
}

/// The throughput on a link of the flow "mhip", Mbit/s over the time it was active, where all but `other` is its.
fn share(point: &PointView<'_>, link: &str, other: &str) -> Vec<f64> {
    let warm_up = point.scenario().map_or(0.0, |scenario| scenario.warm_up.as_secs_f64());
    let active = |flow: &FlowResult| flow.end_s - flow.start_s.max(warm_up);
    point.values(|run| {
        let flow = |name: &str| run.flows.iter().find(|flow| flow.name == name);
        let bytes = run.links.iter().find(|candidate| candidate.name == link)?.delivered_bytes as f64;
        let other = flow(other).map_or(0.0, |other| other.throughput_mbps * active(other));
        let mhip = flow("mhip")?;
        Some((bytes * 8e-6 - other) / active(mhip))
    })
}

/// One number of every run of a case without a sweep.
fn flow(results: &Results, case: &str, name: &str, value: impl Fn(&FlowResult) -> f64) -> Vec<f64> {
    results.point(case).map(|point| point.flow(name, value)).unwrap_or_default()
}

/// Throughput of each flow over bins of 0.1 s in the first seed's run, as the papers draw it.
fn rates(figure: Figure, point: Option<PointView<'_>>) -> Figure {
    let Some(run) = point.and_then(|point| point.series(Duration::from_millis(100))) else { return figure };
    let names: Vec<String> = run.flows.iter().map(|flow| flow.name.clone()).collect();
    names.iter().enumerate().fold(figure, |figure, (index, name)| {
        figure.with(
            name.clone(),
            Style::Line,
            binned(&run, |sample| sample.flows.get(index).map(|flow| flow.delivered_bytes)),
        )
    })
}

/// Mbit/s of what a counter of bytes gained from sample to sample.
fn binned(run: &RunResult, bytes: impl Fn(&Sample) -> Option<u64>) -> Vec<(f64, f64)> {
    let pairs = run.series.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        let gained = bytes(after)?.saturating_sub(bytes(before)?) as f64;
        Some((after.time_s, gained * 8e-6 / (after.time_s - before.time_s)))
    });
    pairs.collect()
}

/// Whether one number is clearly below another: the means, the intervals being shown beside.
fn below(a: Option<Measured>, b: Option<Measured>) -> Option<bool> {
    Some(a?.mean < b?.mean)
}

/// "0.894 [0.880, 0.908]".
fn shown(measured: Option<Measured>) -> String {
    let short = crate::row::short;
    measured.map_or_else(
        || "not measured".to_owned(),
        |m| format!("{} [{}, {}]", short(m.mean), short(m.low), short(m.high)),
    )
}

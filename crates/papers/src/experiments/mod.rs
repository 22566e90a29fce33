//! The experiments, a file for each group of them.

mod beyond;
mod beyond_cubic;
mod beyond_others;
mod daimd;
mod fairness;
mod friendliness;
pub(crate) mod random;
pub(crate) mod rules;
mod secure;
mod shared;
mod which;

use clock::Duration;
use simulator::{FlowResult, RunResult, Sample};

use crate::estimate::Measured;
use crate::experiment::Experiment;
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};

/// All experiments, in the order of the report.
pub(crate) const ALL: &[&[Experiment]] = &[
    secure::ALL,
    friendliness::ALL,
    shared::ALL,
    fairness::ALL,
    daimd::ALL,
    beyond::ALL,
    beyond_cubic::ALL,
    beyond_others::ALL,
    random::ALL,
    rules::ALL,
    which::ALL,
];

/// Why what ships is not run where a paper has figures, and where none has.
const NO_MHIP: &str = "there is no mHIP in it";
const IN_NO_PAPER: &str = "it is run where a paper prints figures";

/// As the papers average throughput in their figures.
const BIN: Duration = Duration::from_millis(100);

/// mHIP's throughput on Path1, in each run.
fn on_path1(point: &PointView<'_>) -> Vec<f64> {
    on_path(point, 0)
}

/// mHIP's throughput on one of its paths, in each run.
fn on_path(point: &PointView<'_>, path: usize) -> Vec<f64> {
    point.values(|run| {
        let flow = run.flows.iter().find(|flow| flow.name == "mhip")?;
        Some(flow.paths.get(path)?.throughput_mbps)
    })
}

/// Throughput on the wire. What ships counts it on its paths, since its flows are what travels inside.
fn throughput(flow: &FlowResult) -> f64 {
    if flow.paths.is_empty() { flow.throughput_mbps } else { flow.paths.iter().map(|path| path.throughput_mbps).sum() }
}

/// One number of every run of a case without a sweep.
fn flow(results: &Results, case: &str, name: &str, value: impl Fn(&FlowResult) -> f64) -> Vec<f64> {
    results.point(case).map(|point| point.flow(name, value)).unwrap_or_default()
}

/// Throughput of each flow, and of each path of mHIP, over bins of 0.1 s in the first seed's run, as the papers draw it.
fn rates(figure: Figure, point: Option<PointView<'_>>) -> Figure {
    let Some(run) = point.and_then(|point| point.series(BIN)) else { return figure };
    let mut figure = figure;
    for (index, flow) in run.flows.iter().enumerate() {
        for path in 0..flow.paths.len() {
            let arrived = |sample: &Sample| Some(sample.flows.get(index)?.paths.get(path)?.arrived_bytes);
            figure = figure.with(format!("{} on Path{}", flow.name, path + 1), Style::Line, binned(&run, arrived));
        }
        if flow.paths.is_empty() {
            let arrived = |sample: &Sample| Some(sample.flows.get(index)?.arrived_bytes);
            figure = figure.with(flow.name.clone(), Style::Line, binned(&run, arrived));
        }
    }
    figure
}

/// The windows of all paths and of single-path flows in the first seed's run.
fn windows(point: Option<PointView<'_>>) -> Option<Figure> {
    let run = point.and_then(|point| point.series(BIN))?;
    let mut figure = Figure::new("Congestion windows", "The same run; packets.", "time, s", "window, packets");
    let line = |window: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
        run.series.iter().filter_map(|sample| Some((sample.time_s, window(sample)?))).collect()
    };
    for (index, flow) in run.flows.iter().enumerate() {
        for path in 0..flow.paths.len() {
            let points = line(&|sample| Some(sample.flows.get(index)?.paths.get(path)?.cwnd));
            figure = figure.with(format!("{} on Path{}", flow.name, path + 1), Style::Step, points);
        }
        let points = line(&|sample| Some(sample.flows.get(index)?.cwnd));
        if flow.paths.is_empty() && points.iter().any(|point| point.1 > 0.0) {
            figure = figure.with(flow.name.clone(), Style::Step, points);
        }
    }
    Some(figure)
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

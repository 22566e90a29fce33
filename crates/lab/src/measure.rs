//! What is measured in one run, by whichever laboratory, and what runs a scenario takes.

use std::path::Path;
use std::time::Duration;

use clock::Histogram;

use crate::datagrams::{DatagramReport, Quantiles};
use crate::plan::{Kind, Plan, Protocol};
use crate::progress::Progress;
use crate::report::{FlowReport, PathReport, Report};
use crate::run::{Hosts, Options};
use crate::site::capture_file;
use crate::{LabError, wireshark};

/// One run of a scenario.
pub(crate) struct Run {
    pub(crate) name: String,
    /// Which paths of the main flow are there, by number.
    pub(crate) paths: Vec<usize>,
    /// Whether links change in it and packets are kept.
    pub(crate) full: bool,
}

/// What one flow of a run gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transfer {
    /// Goodput.
    pub(crate) mbps: f64,
    /// Bytes that `mbps` counts.
    pub(crate) bytes: u64,
    /// The time that it counts them over.
    pub(crate) seconds: f64,
    /// Whether the file arrived as it was.
    pub(crate) sha256_equal: bool,
    /// The longest time in which nothing arrived.
    pub(crate) stall: Duration,
    /// The congestion control that was really used.
    pub(crate) congestion: String,
    /// Connections over which everything arrived.
    pub(crate) complete: u32,
    /// Of what is no download.
    pub(crate) datagrams: Option<DatagramReport>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// By flow of the plan.
    pub(crate) flows: Vec<Transfer>,
    /// Bytes that arrived from the server of each distinct path while goodput was measured.
    pub(crate) path_bytes: Vec<u64>,
    /// By distinct path, how long packets were under way there and back in that time.
    pub(crate) transits: Vec<[Histogram; 2]>,
    /// How late the emulator was for 99 of 100 packets, in microseconds.
    pub(crate) late_p99_us: u64,
}

/// Where runs happen: in real or in virtual time.
pub(crate) trait Laboratory {
    /// Does one run.
    fn measure(&mut self, run: &Run, progress: &mut Progress) -> Result<Measured, LabError>;
}

/// What a transfer fills of the time given to it: the rest is slow start and the overhead of headers.
const SHARE: f64 = 0.8;
/// A file is at least so long, in bytes: below that a transfer is all start.
const SMALLEST: u64 = 100_000;
/// The rate assumed for a path that has none, in bit/s.
const ASSUMED: u64 = 200_000_000;

/// The size of the file of a flow over paths with these numbers, in bytes. A flow that competes has more than it can fetch, and
/// what is no download has none.
pub(crate) fn file_size(plan: &Plan, flow: usize, run: &Run) -> u64 {
    if plan.flows.get(flow).is_some_and(|flow| !flow.kind.is_download()) {
        return 0;
    }
    let used = plan.paths_of(flow).iter().enumerate().filter(|(path, _)| flow != 0 || run.paths.contains(path));
    let rate: u64 = used.map(|(_, path)| plan.rate(&path.there).unwrap_or(ASSUMED)).sum();
    let whole = rate as f64 / 8.0 * plan.duration.as_secs_f64();
    if plan.is_timed() {
        // What goes up and down by itself may carry more than its rate for a while.
        let whole = if plan.links.iter().any(|link| link.schedule.is_some() || link.trace.is_some()) {
            3.0 * whole
        } else {
            whole
        };
        return whole.max(SMALLEST as f64) as u64;
    }
    plan.flows.get(flow).and_then(|flow| flow.size).unwrap_or(((whole * SHARE) as u64).max(SMALLEST))
}

/// How long packets were under way on the routes of a network, which come in pairs, there and back.
pub(crate) fn pairs<'a>(transits: impl Iterator<Item = &'a Histogram>) -> Vec<[Histogram; 2]> {
    let transits: Vec<&Histogram> = transits.collect();
    transits.as_chunks().0.iter().map(|[there, back]| [(*there).clone(), (*back).clone()]).collect()
}

/// All the runs of a scenario: each path alone, unless the options say otherwise, then all together; of flows that compete, all together only.
pub(crate) fn run_all(
    plan: &Plan,
    laboratory: &mut impl Laboratory,
    options: &Options,
    progress: &mut Progress,
) -> Result<Report, LabError> {
    let directory = options.directory.as_deref();
    progress.say(&plan.name);
    let all: Vec<usize> = (0..plan.paths().len()).collect();
    let mut runs: Vec<Run> = Vec::new();
    if !plan.competes() && !options.together {
        runs.extend(all.iter().map(|path| Run {
            name: format!("path {} alone", path + 1),
            paths: vec![*path],
            full: false,
        }));
    }
    let name = match plan.flow().protocol {
        _ if plan.competes() => "all flows together",
        // TCP has one path. The run is done again, with the changes that the scenario may have.
        Protocol::Tcp => "once more, with all changes",
        Protocol::Sinnet | Protocol::Mptcp => "all paths together",
    };
    let full = Run { name: name.to_owned(), paths: all.clone(), full: true };
    let mut late_p99_us = 0;
    let mut measure = |run: &Run, progress: &mut Progress| {
        let measured = laboratory.measure(run, progress)?;
        late_p99_us = late_p99_us.max(measured.late_p99_us);
        tell(plan, run, &measured, progress);
        Ok::<_, LabError>(measured)
    };
    let singles = runs.iter().map(|run| measure(run, progress)).collect::<Result<Vec<_>, _>>()?;
    let together = measure(&full, progress)?;

    let main = |measured: &Measured| measured.flows.first().map_or(0.0, |flow| flow.mbps);
    let single_mbps: Vec<f64> = singles.iter().map(main).collect();
    // The sum of nothing is -0.
    let sum_mbps = single_mbps.iter().sum::<f64>() + 0.0;
    let kept = |file: std::path::PathBuf| Some(file).filter(|file| file.exists());
    let captures = directory.iter().flat_map(|directory| all.iter().map(|path| capture_file(directory, *path)));
    let (ff, ff_shared) = friendliness(plan, &together).map_or((None, None), |(ff, shared)| (Some(ff), shared));
    Ok(Report {
        name: plan.name.clone(),
        virtual_time: options.hosts != Hosts::Real,
        ratio: (sum_mbps > 0.0).then(|| main(&together) / sum_mbps),
        sum_mbps,
        together_mbps: main(&together),
        sha256_equal: singles.iter().chain([&together]).flat_map(|run| &run.flows).all(|flow| flow.sha256_equal),
        single_mbps,
        longest_stall_ms: together.flows.first().map_or(0.0, |flow| milliseconds(flow.stall)),
        flows: reports(plan, &together),
        paths: path_reports(plan, &together),
        ff,
        ff_shared,
        disturbed: !plan.changes.is_empty(),
        emulator_late_p99_us: late_p99_us,
        captures: captures.filter_map(kept).collect(),
        esp_keylog: directory.map(wireshark::keylog_file).and_then(kept),
        directory: directory.map(Path::to_owned),
    })
}

fn reports(plan: &Plan, measured: &Measured) -> Vec<FlowReport> {
    let both = plan.flows.iter().zip(&measured.flows);
    both.map(|(flow, transfer)| FlowReport {
        name: flow.name.clone(),
        protocol: flow.protocol.name(),
        congestion: transfer.congestion.clone(),
        mbps: transfer.mbps,
        longest_stall_ms: milliseconds(transfer.stall),
        connections: flow.kind.connections(),
        complete: transfer.complete,
        datagrams: transfer.datagrams.clone(),
    })
    .collect()
}

fn path_reports(plan: &Plan, measured: &Measured) -> Vec<PathReport> {
    let quantiles = |transits: &Histogram| Quantiles::new(|part| transits.quantile(part) * 1e-9);
    // The paths of the main flow are the first of the distinct ones.
    let paths = measured.transits.iter().take(plan.paths().len());
    paths.map(|[there, back]| PathReport { there_ms: quantiles(there), back_ms: quantiles(back) }).collect()
}

/// The friendliness factor of the flows over several paths to the TCP flows, T(flow)/T(TCP), for all of their paths together and
/// for those that share a link with TCP.
fn friendliness(plan: &Plan, measured: &Measured) -> Option<(f64, Option<f64>)> {
    let rates = |bundle: bool| -> Vec<f64> {
        let both = plan.flows.iter().zip(&measured.flows);
        let both = both.filter(|(flow, _)| flow.kind.is_download());
        both.filter(|(flow, _)| (flow.protocol != Protocol::Tcp) == bundle).map(|(_, flow)| flow.mbps).collect()
    };
    let (bundle, tcp) = (rates(true), rates(false));
    let mean = tcp.iter().sum::<f64>() / tcp.len() as f64;
    if bundle.is_empty() || mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let total: f64 = bundle.iter().sum();
    let competing: Vec<_> = plan
        .flows
        .iter()
        .enumerate()
        .filter(|(_, flow)| flow.protocol == Protocol::Tcp)
        .flat_map(|(index, _)| plan.paths_of(index))
        .collect();
    // Between the same addresses the bytes of one flow cannot be told from those of the other.
    let mixed = plan.paths().iter().any(|path| competing.iter().any(|other| other.ends == path.ends));
    let shares = |path: &crate::topology::PathPlan| {
        competing.iter().any(|other| other.there.iter().any(|wire| path.there.contains(wire)))
    };
    let bytes = |shared_only: bool| -> u64 {
        let paths = plan.paths().iter().zip(&measured.path_bytes);
        paths.filter(|(path, _)| !shared_only || shares(path)).map(|(_, bytes)| *bytes).sum()
    };
    let part = bytes(true) as f64 / bytes(false) as f64;
    Some((total / mean, (!mixed && part.is_finite()).then(|| total * part / mean)))
}

fn tell(plan: &Plan, run: &Run, measured: &Measured, progress: &mut Progress) {
    for (flow, transfer) in plan.flows.iter().zip(&measured.flows) {
        let of = if plan.competes() { format!("{}, {}", flow.name, flow.protocol.name()) } else { run.name.clone() };
        if let Some(datagrams) = &transfer.datagrams {
            progress.end(&format!("  {of}: {datagrams}"));
            continue;
        }
        let complete = match flow.kind {
            Kind::ParallelDownloads(count) => format!("{} of {count} files ", transfer.complete),
            _ => String::new(),
        };
        progress.end(&format!(
            "  {of}: {:.2} Mbit/s ({:.1} MB in {:.1} s, {}), {}",
            transfer.mbps,
            transfer.bytes as f64 / 1e6,
            transfer.seconds,
            transfer.congestion,
            complete + if transfer.sha256_equal { "identical" } else { "NOT identical" }
        ));
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

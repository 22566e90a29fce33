//! The laboratory in the packet simulator: the core of the shipped hosts over the same links, without a byte.

use std::ops::Range;
use std::sync::Arc;

use clock::{Duration, Instant};
use congestion::{Host, Rule};
use link::{Change, LinkConfig};
use simulator::{
    AssociationConfig, FlowResult, Plan as Simulated, PlannedAssociation, PlannedFlow, PlannedPath, RunOptions,
    RunResult, Simulation,
};
use transport::{EchoConfig, FlowConfig, TcpConfig, UdpConfig};
use wire::ip::{V4_HEADER, V6_HEADER};

use crate::LabError;
use crate::measure::{Laboratory, Measured, Run, Transfer, file_size};
use crate::plan::{FlowPlan, Kind, OPENING, Plan, Protocol};
use crate::progress::Progress;
use crate::site::MTU;
use crate::topology::PathPlan;

/// The resolution of stalls.
const SAMPLE: Duration = Duration::from_millis(10);

/// Hosts in the simulator, built anew for each run.
pub(crate) struct InSimulator<'a> {
    plan: &'a Plan,
    rules: Vec<Rule>,
}

impl<'a> InSimulator<'a> {
    /// For the flows of a plan.
    ///
    /// # Errors
    /// When the simulator does not have a flow's congestion control.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self, LabError> {
        let rule = |flow: &FlowPlan| {
            let unfit = |error: congestion::Unfit| LabError::Program {
                program: flow.congestion.clone(),
                message: error.to_string(),
            };
            Host::Tcp.rule(&flow.congestion).map_err(unfit)
        };
        Ok(Self { plan, rules: plan.flows.iter().map(rule).collect::<Result<_, _>>()? })
    }

    /// What is simulated in a run, and which of its flows are of which flow of the plan.
    fn build(&self, run: &Run) -> (Simulated, Vec<Range<usize>>) {
        let plan = self.plan;
        let mut simulated = Simulated::new(if plan.is_timed() { plan.duration } else { plan.patience() });
        simulated.warm_up = plan.warm_up;
        simulated.processing = plan.processing;
        for (index, link) in plan.links.iter().enumerate() {
            let changes = plan.changes.iter().filter(|change| run.full && change.link == index);
            let changes = changes.map(|change| Change { at: Instant::ZERO + change.after, what: change.what });
            simulated.link(format!("link {index}"), LinkConfig { changes: changes.collect(), ..link.clone() });
        }
        let config = AssociationConfig {
            mtu: plan.least_mtu(MTU),
            rule: plan.path_rule().unwrap_or_else(|| AssociationConfig::default().rule),
            scheduler: plan.flow().scheduler.parse().unwrap_or_default(),
            rates_configured: plan.flow().rates_configured,
        };
        if plan.flow().protocol == Protocol::Sinnet {
            let used = plan.paths().iter().enumerate().filter(|(index, _)| run.paths.contains(index));
            let paths = used.map(|(_, path)| planned(path)).collect();
            simulated.associations.push(PlannedAssociation { name: "hosts".into(), paths, config: config.clone() });
        }
        let mut ranges = Vec::new();
        for (index, flow) in plan.flows.iter().enumerate() {
            let first = simulated.flows.len();
            let is_inside = flow.protocol == Protocol::Sinnet;
            let path = if index == 0 { run.paths.first().copied().unwrap_or_default() } else { 0 };
            let paths =
                if is_inside { Vec::new() } else { plan.paths_of(index).get(path).map(planned).into_iter().collect() };
            let traffic = self.traffic(index, flow, &config, file_size(plan, index, run));
            let start = if plan.competes() { Instant::ZERO + flow.start } else { Instant::ZERO };
            for copy in 0..flow.kind.connections() {
                simulated.flows.push(PlannedFlow {
                    name: if copy == 0 { flow.name.clone() } else { format!("{}.{copy}", flow.name) },
                    paths: Vec::clone(&paths),
                    start: start + OPENING * copy.into(),
                    stop: None,
                    traffic: traffic.clone(),
                    association: is_inside.then_some(0),
                    processing: true,
                });
            }
            ranges.push(first..simulated.flows.len());
        }
        (simulated, ranges)
    }

    fn traffic(&self, index: usize, flow: &FlowPlan, config: &AssociationConfig, size: u64) -> FlowConfig {
        let header = V6_HEADER as u32;
        match flow.kind {
            Kind::Download | Kind::ParallelDownloads(_) => {
                let rule = self.rules.get(index).cloned().unwrap_or(TcpConfig::default().rule);
                let tcp = match flow.protocol {
                    Protocol::Sinnet => config.tcp_inside(rule),
                    _ => TcpConfig::linux(rule, MTU.into(), V4_HEADER as u32),
                };
                FlowConfig::Tcp(Arc::new(TcpConfig { data: Some(size), ..tcp }))
            }
            Kind::ConstantBitRate { bytes, interval } => FlowConfig::Udp(UdpConfig {
                rate: (f64::from(bytes) * 8.0 / interval.as_secs_f64()) as u64,
                packet_size: bytes,
                header_size: header + wire::udp::HEADER as u32,
                pauses: None,
                data: None,
            }),
            Kind::Ping { interval } => FlowConfig::Echo(EchoConfig::ping(interval, header)),
        }
    }

    fn transfer(
        &self,
        index: usize,
        flow: &FlowPlan,
        range: &Range<usize>,
        result: &RunResult,
    ) -> Result<Transfer, LabError> {
        let flows = result.flows.get(range.clone()).unwrap_or_default();
        let completed = flows.iter().filter(|flow| flow.completed).count();
        let (mbps, bytes, seconds) = match flow.kind {
            _ if self.plan.is_timed() => {
                let seconds = (self.plan.duration - self.plan.warm_up).as_secs_f64();
                let is_download = flow.kind.is_download();
                // Of datagrams whole packets count.
                let rate = |flow: &FlowResult| if is_download { flow.goodput_mbps } else { flow.goodput_wire_mbps };
                let mbps = flows.iter().map(rate).sum::<f64>();
                (mbps, mbps * seconds * 1e6 / 8.0, seconds)
            }
            _ => {
                let bytes: f64 =
                    flows.iter().map(|flow| flow.goodput_mbps * (flow.end_s - flow.start_s) * 1e6 / 8.0).sum();
                let start = flows.iter().map(|flow| flow.start_s).fold(f64::INFINITY, f64::min);
                let end = flows.iter().map(|flow| flow.end_s).fold(0.0, f64::max);
                if flows.len() == 1 && completed == 0 {
                    let what = format!("{bytes:.0} bytes of {} arrived, not all", flow.name);
                    return Err(LabError::Timeout { what, seconds: end as u64 });
                }
                (bytes * 8.0 / 1e6 / (end - start), bytes, end - start)
            }
        };
        Ok(Transfer {
            mbps,
            bytes: bytes as u64,
            seconds,
            // There are no bytes that could be others.
            sha256_equal: completed == flows.len() || self.plan.is_timed(),
            stall: stall(index, flows.first().map_or(0.0, |flow| flow.end_s), result, self.plan.warm_up.as_secs_f64()),
            congestion: if flow.kind.is_download() { flow.congestion.clone() } else { String::new() },
            complete: u32::try_from(completed).unwrap_or(u32::MAX),
            datagrams: None,
        })
    }
}

impl Laboratory for InSimulator<'_> {
    fn measure(&mut self, run: &Run, progress: &mut Progress) -> Result<Measured, LabError> {
        let (simulated, ranges) = self.build(run);
        progress.begin(&run.name, file_size(self.plan, 0, run));
        // Of a thousand connections stalls are told of the first: samples of all would be gigabytes.
        let options =
            RunOptions { flows: Some(ranges.iter().map(|range| range.start).collect()), ..RunOptions::every(SAMPLE) };
        let result = Simulation::new(&simulated, self.plan.seed).run(&options);
        let both = self.plan.flows.iter().zip(&ranges).enumerate();
        let flows = both.map(|(index, (flow, range))| self.transfer(index, flow, range, &result));
        let flows = flows.collect::<Result<_, _>>()?;
        let mut path_bytes = vec![0; self.plan.paths().len()];
        for flow in &result.flows {
            for (sum, path) in path_bytes.iter_mut().zip(&flow.paths) {
                *sum += (path.throughput_mbps * 1e6 / 8.0 * (flow.end_s - flow.start_s)) as u64;
            }
        }
        Ok(Measured { flows, path_bytes, transits: Vec::new(), late_p99_us: 0 })
    }
}

fn planned(path: &PathPlan) -> PlannedPath {
    let links = |hops: &[usize]| hops.iter().map(|hop| *hop as u32).collect();
    PlannedPath { forward: links(&path.there), reverse: links(&path.back) }
}

/// The longest time in which nothing of a sampled flow arrived, from its first byte, and from `from`, to its `end`.
fn stall(flow: usize, end: f64, result: &RunResult, from: f64) -> std::time::Duration {
    let samples = result.series.iter().filter(|sample| sample.time_s >= from && sample.time_s <= end);
    let (mut longest, mut last) = (0.0_f64, None);
    for sample in samples {
        let bytes = sample.flows.get(flow).map_or(0, |flow| flow.delivered_bytes);
        match last {
            Some((before, since)) if before == bytes => longest = longest.max(sample.time_s - since),
            _ if bytes > 0 => last = Some((bytes, sample.time_s)),
            _ => {}
        }
    }
    std::time::Duration::from_secs_f64(longest)
}

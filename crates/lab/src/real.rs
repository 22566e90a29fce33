//! A laboratory in real time: namespaces, daemons, programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use clock::Streams;

use crate::error::Step;
use crate::guest::Guest;
use crate::interrupt::pause;
use crate::measure::{Laboratory, Measured, Run, Transfer, file_size, pairs};
use crate::plan::{FlowPlan, Kind, Plan, Protocol};
use crate::probe::{Ends, Probe};
use crate::progress::Progress;
use crate::run::Options;
use crate::site::Site;
use crate::transfer::{Fetch, Server, Service};
use crate::watch::{Stopwatch, Watch};
use crate::{LabError, daemons, kernel, wireshark};

/// How often downloads are looked at: what a stall is exact to.
const LOOK: Duration = Duration::from_millis(5);

/// Real hosts, built anew for each run.
pub(crate) struct Real<'a> {
    plan: &'a Plan,
    options: &'a Options,
    /// Downloads in place of the main flow's program.
    guest: Option<&'a dyn Guest>,
    scratch: &'a Path,
    identities: Option<daemons::Identities>,
}

/// Servers, by host and port.
type Servers<'a> = BTreeMap<(usize, u16), Server<'a>>;

/// A flow, with all that belongs to it.
struct Flow<'a> {
    plan: &'a FlowPlan,
    /// By which it fetches, if it is a download.
    server: Option<&'a Server<'a>>,
    fetch: Option<Fetch>,
    /// What it is, if it is none.
    probe: Option<Probe>,
    watch: Option<Watch>,
    begun_with: u64,
    congestion: String,
}

impl<'a> Real<'a> {
    /// `scratch` is a directory for what is of use only now.
    pub(crate) fn new(
        plan: &'a Plan,
        options: &'a Options,
        guest: Option<&'a dyn Guest>,
        scratch: &'a Path,
    ) -> Result<Self, LabError> {
        let sinnet = plan.flow().protocol == Protocol::Sinnet;
        let identities = sinnet.then(|| daemons::Identities::generate(scratch)).transpose()?;
        Ok(Self { plan, options, guest, scratch, identities })
    }

    /// Servers for all downloads, and one for the first word between two hosts with Sinnet.
    fn serve(&self, site: &Site, run: &Run, scratch: &Path) -> Result<Servers<'a>, LabError> {
        // By host and port the largest of the files that flows want.
        let mut wanted = BTreeMap::new();
        if self.identities.is_some() {
            wanted.insert((self.plan.flow().from, Service::Http.port()), (Service::Http, 0));
        }
        for (index, flow) in self.plan.flows.iter().enumerate() {
            if let Some(service) = self.service(index, flow) {
                let (_, size) = wanted.entry((flow.from, service.port())).or_insert((service, 0));
                *size = file_size(self.plan, index, run).max(*size);
            }
        }
        let streams = Streams::new(self.plan.seed);
        let start = |(key, (service, size)): ((usize, u16), (Service<'a>, u64))| {
            let (host, _) = key;
            let mut rng = streams.stream(&format!("{} {host} {}", run.name, service.name()));
            Ok((key, Server::start(site.host(host)?, scratch, size, &mut rng, service)?))
        };
        wanted.into_iter().map(start).collect()
    }

    /// How the files of a flow are served, if it is a download.
    fn service(&self, index: usize, flow: &FlowPlan) -> Option<Service<'a>> {
        if let Some(guest) = self.guest.filter(|_| index == 0) {
            return Some(Service::Guest(guest));
        }
        match (flow.kind, flow.protocol) {
            (Kind::ParallelDownloads(_), _) => Some(Service::ParallelDownloads),
            (Kind::Download, Protocol::Mptcp) => Some(Service::Mptcp),
            (Kind::Download, _) => Some(Service::Http),
            (Kind::ConstantBitRate { .. } | Kind::Ping { .. }, _) => None,
        }
    }

    /// The name or address under which the client of a flow finds the server.
    fn address(&self, flow: usize, run: &Run) -> String {
        let plan = self.plan;
        if plan.flows.get(flow).is_some_and(|flow| flow.protocol == Protocol::Sinnet) {
            return daemons::server_name(plan);
        }
        let path = if flow == 0 { run.paths.first().copied().unwrap_or_default() } else { 0 };
        plan.paths_of(flow).get(path).map_or_else(String::new, |path| plan.topology.address(path.ends[0]).to_string())
    }
}

impl Laboratory for Real<'_> {
    fn measure(&mut self, run: &Run, progress: &mut Progress) -> Result<Measured, LabError> {
        let plan = self.plan;
        let kept = self.options.directory.as_deref().filter(|_| run.full);
        let scratch = self.scratch.join(run.name.replace(' ', "-"));
        fs::create_dir_all(&scratch).step("making a directory")?;
        let site = Site::build(&plan.topology, plan.links.clone(), plan.processing, plan.seed, kept)?;
        kernel::prepare(plan, &site, &run.paths)?;
        let servers = self.serve(&site, run, &scratch)?;

        let mut daemons = None;
        if let Some(identities) = &self.identities {
            if let Some(directory) = kept {
                wireshark::prepare(directory)?;
            }
            let keylog = kept.map(wireshark::keylog_file);
            let files = daemons::Files {
                executable: &self.options.executable,
                scratch: &scratch,
                logs: kept.unwrap_or(&scratch),
                keylog: keylog.as_deref(),
            };
            let mut both = daemons::Daemons::start(plan, &site, identities, &run.paths, &files)?;
            // The first connection makes the association; paths are added to it after that.
            Server::fetch_small(site.host(plan.flow().to)?, &daemons::server_name(plan), Duration::from_secs(15))?;
            both.wait_for_paths(run.paths.len())?;
            daemons = Some(both);
        }

        progress.begin(&run.name, file_size(plan, 0, run));
        if run.full {
            site.schedule(&plan.changes);
        }
        let flows = plan.flows.iter().enumerate().map(|(index, flow)| {
            let server = self.service(index, flow).and_then(|service| servers.get(&(flow.from, service.port())));
            Flow { plan: flow, server, fetch: None, probe: None, watch: None, begun_with: 0, congestion: String::new() }
        });
        let mut flows: Vec<Flow<'_>> = flows.collect();
        let result = match plan.is_timed() {
            true => self.compete(&site, run, &mut flows, &scratch, progress),
            false => self.complete(&site, run, &mut flows, &scratch, progress),
        };
        if let (Some(daemons), Some(directory)) = (&daemons, kept) {
            daemons.save_status(directory);
        }
        drop(flows);
        drop(daemons);
        drop(servers);
        let summary = site.close()?;
        let (flows, path_bytes) = result?;
        let transits = pairs(summary.transits.iter());
        Ok(Measured { flows, path_bytes, transits, late_p99_us: (summary.lateness.quantile(0.99) / 1e3) as u64 })
    }
}

impl Real<'_> {
    /// Starts what flow number `index` does. Times are those of `clock`.
    fn start(
        &self,
        site: &Site,
        run: &Run,
        index: usize,
        flow: &mut Flow<'_>,
        clock: Stopwatch,
        scratch: &Path,
    ) -> Result<(), LabError> {
        let [from, to] = [site.host(flow.plan.from)?, site.host(flow.plan.to)?];
        if let Some(server) = flow.server {
            let patience = Duration::from_nanos(self.plan.patience().as_nanos());
            let copy = scratch.join(format!("fetched{index}"));
            let count = flow.plan.kind.connections();
            flow.fetch = Some(server.fetch(to, &self.address(index, run), copy, count, patience)?);
        } else if let Some(identities) = &self.identities {
            let ends = Ends { from, to, address: identities.client()? };
            flow.probe = Probe::start(flow.plan.kind, index, &ends, clock, scratch)?;
        }
        Ok(())
    }

    /// Downloads to their end.
    fn complete(
        &self,
        site: &Site,
        run: &Run,
        flows: &mut [Flow<'_>],
        scratch: &Path,
        progress: &Progress,
    ) -> Result<(Vec<Transfer>, Vec<u64>), LabError> {
        let [flow] = flows else { return Ok((Vec::new(), Vec::new())) };
        let before = site.delivered_bytes();
        let clock = Stopwatch::start();
        self.start(site, run, 0, flow, clock, scratch)?;
        let (Some(mut fetch), Some(server)) = (flow.fetch.take(), flow.server) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let connections = flow.plan.kind.connections();
        let size = server.size() * u64::from(connections);
        let mut watch = Watch::new(clock.elapsed(), 0);
        let mut end = Duration::ZERO;
        while !fetch.has_ended()? {
            let arrived = fetch.arrived();
            progress.at(arrived);
            if arrived > 0 && flow.congestion.is_empty() {
                flow.congestion = server.congestion(site.host(flow.plan.from)?)?;
            }
            if arrived < size {
                end = clock.elapsed();
            }
            watch.see(clock.elapsed(), arrived);
            pause(LOOK)?;
        }
        let (copy, arrived) = (fetch.copy().to_owned(), fetch.arrived());
        let fetched = fetch.finish(size)?;
        let complete = match fetched.complete {
            Some(complete) => complete,
            None => u32::from(server.is_copied(&copy, false)?),
        };
        let transfer = Transfer {
            mbps: arrived as f64 * 8.0 / fetched.seconds.max(f64::MIN_POSITIVE) / 1e6,
            bytes: arrived,
            seconds: fetched.seconds,
            sha256_equal: complete == connections,
            stall: watch.stall(end),
            congestion: flow.congestion.clone(),
            complete,
            datagrams: None,
        };
        Ok((vec![transfer], difference(site.delivered_bytes(), &before)))
    }

    /// All flows at the same time, each from its start; measured between warm-up and end.
    fn compete(
        &self,
        site: &Site,
        run: &Run,
        flows: &mut [Flow<'_>],
        scratch: &Path,
        progress: &Progress,
    ) -> Result<(Vec<Transfer>, Vec<u64>), LabError> {
        let plan = self.plan;
        let [warm_up, duration] = [plan.warm_up, plan.duration].map(|time| Duration::from_nanos(time.as_nanos()));
        let clock = Stopwatch::start();
        let mut before = None;
        let mut measured_from = warm_up;
        loop {
            let now = clock.elapsed();
            if before.is_none() && now >= warm_up {
                before = Some(site.delivered_bytes());
                site.restart_transits();
                measured_from = now;
            }
            for (index, flow) in flows.iter_mut().enumerate() {
                let start = Duration::from_nanos(flow.plan.start.as_nanos());
                if flow.fetch.is_none() && flow.probe.is_none() && now >= start {
                    self.start(site, run, index, flow, clock, scratch)?;
                }
                let arrived = flow.fetch.as_ref().map(Fetch::arrived);
                if index == 0 {
                    progress.at(arrived.unwrap_or_else(|| flow.probe.as_ref().map_or(0, Probe::arrived_bytes)));
                }
                let (Some(arrived), Some(server)) = (arrived, flow.server) else { continue };
                match &mut flow.watch {
                    Some(watch) => watch.see(now, arrived),
                    None if before.is_some() => {
                        flow.watch = Some(Watch::new(now, arrived));
                        flow.begun_with = arrived;
                    }
                    None => {}
                }
                if before.is_some() && arrived > 0 && flow.congestion.is_empty() {
                    flow.congestion = server.congestion(site.host(flow.plan.from)?)?;
                }
                if flow.fetch.as_mut().map_or(Ok(false), Fetch::has_ended)? {
                    // It has more to fetch than fits the time, so this is a failure, and the client says of what.
                    let failure = flow.fetch.take().map(|fetch| fetch.finish(server.size()));
                    failure.transpose()?;
                    let message = "the whole file arrived before the scenario was over".to_owned();
                    return Err(LabError::Program { program: format!("flow {}", flow.plan.name), message });
                }
            }
            if now >= duration {
                break;
            }
            pause(LOOK)?;
        }
        let end = clock.elapsed();
        let bytes = difference(site.delivered_bytes(), &before.unwrap_or_default());
        let transfers = flows.iter_mut().map(|flow| flow.end(measured_from, end)).collect::<Result<_, _>>()?;
        Ok((transfers, bytes))
    }
}

impl Flow<'_> {
    /// Ends it, and tells what it got between two moments.
    fn end(&mut self, from: Duration, to: Duration) -> Result<Transfer, LabError> {
        let seconds = (to - from).as_secs_f64();
        let mbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
        let mut transfer = Transfer {
            mbps: 0.0,
            bytes: 0,
            seconds,
            sha256_equal: true,
            stall: Duration::ZERO,
            congestion: self.congestion.clone(),
            complete: 0,
            datagrams: None,
        };
        if let (Some(fetch), Some(server)) = (self.fetch.take(), self.server) {
            transfer.bytes = fetch.arrived().saturating_sub(self.begun_with);
            transfer.stall = self.watch.as_ref().map_or(Duration::ZERO, |watch| watch.stall(to));
            let copy = fetch.copy().to_owned();
            // It is stopped; what has arrived stays.
            drop(fetch);
            transfer.sha256_equal = server.is_copied(&copy, true)?;
            // Each may be as long as the scenario; the disk is shared.
            let _ = fs::remove_file(copy);
        }
        if let Some(probe) = self.probe.take() {
            let datagrams = probe.finish()?;
            transfer.bytes = datagrams.bytes_between(from, to);
            transfer.stall = datagrams.stall(from, to);
            transfer.datagrams = Some(datagrams.report(from, to));
        }
        transfer.mbps = mbps(transfer.bytes);
        Ok(transfer)
    }
}

fn difference(now: Vec<u64>, before: &[u64]) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
}

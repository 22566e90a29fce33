//! A laboratory in real time: namespaces, daemons, programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Streams;

use crate::error::Step;
use crate::interrupt::pause;
use crate::measure::{Laboratory, Measured, Run, Transfer, file_size};
use crate::plan::{Plan, Protocol};
use crate::progress::Progress;
use crate::run::Options;
use crate::site::Site;
use crate::transfer::{Fetch, Server};
use crate::watch::{Stopwatch, Watch};
use crate::{LabError, kernel, mhip, wireshark};

/// How often downloads are looked at: what a stall is exact to.
const LOOK: Duration = Duration::from_millis(5);

/// Real hosts, built anew for each run.
pub(crate) struct Real<'a> {
    plan: &'a Plan,
    options: &'a Options,
    scratch: &'a Path,
    identities: Option<mhip::Identities>,
}

/// A download, with all that belongs to it.
struct Download<'a> {
    fetch: Option<Fetch>,
    server: &'a Server,
    watch: Option<Watch>,
    begun_with: u64,
    congestion: String,
}

impl<'a> Real<'a> {
    /// `scratch` is a directory for what is of use only now.
    pub(crate) fn new(plan: &'a Plan, options: &'a Options, scratch: &'a Path) -> Result<Self, LabError> {
        let mhip = plan.flow().protocol == Protocol::Mhip;
        let identities = mhip.then(|| mhip::Identities::generate(scratch)).transpose()?;
        Ok(Self { plan, options, scratch, identities })
    }

    /// Web servers for all flows, and by flow the one it uses.
    fn serve(&self, site: &Site, run: &Run, scratch: &Path) -> Result<(Vec<Server>, Vec<usize>), LabError> {
        let mut servers = Vec::new();
        let mut known: Vec<(usize, bool)> = Vec::new();
        let mut used = Vec::new();
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let key = (flow.from, flow.protocol == Protocol::Mptcp);
            if !known.contains(&key) {
                // The largest of the files that flows from this host want.
                let same = self.plan.flows.iter().enumerate();
                let same = same.filter(|(_, other)| (other.from, other.protocol == Protocol::Mptcp) == key);
                let size = same.map(|(index, _)| file_size(self.plan, index, run)).max().unwrap_or_default();
                let mut rng = Streams::new(self.plan.seed).stream(&format!("{} {index}", run.name));
                servers.push(Server::start(site.host(flow.from)?, scratch, size, &mut rng, key.1)?);
                known.push(key);
            }
            used.push(known.iter().position(|other| *other == key).unwrap_or_default());
        }
        Ok((servers, used))
    }

    /// The name or address under which the client of a flow finds the server.
    fn address(&self, flow: usize, run: &Run) -> String {
        let plan = self.plan;
        if plan.flows.get(flow).is_some_and(|flow| flow.protocol == Protocol::Mhip) {
            return mhip::server_name(plan);
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
        let site = Site::build(&plan.topology, plan.links.clone(), plan.seed, kept)?;
        kernel::prepare(plan, &site, &run.paths)?;
        let (servers, used) = self.serve(&site, run, &scratch)?;

        let mut daemons = None;
        if let Some(identities) = &self.identities {
            if let Some(directory) = kept {
                wireshark::prepare(directory)?;
            }
            let keylog = kept.map(wireshark::keylog_file);
            let files = mhip::Files {
                executable: &self.options.executable,
                scratch: &scratch,
                logs: kept.unwrap_or(&scratch),
                keylog: keylog.as_deref(),
            };
            let mut both = mhip::Daemons::start(plan, &site, identities, &run.paths, &files)?;
            // The first connection makes the association; paths are added to it after that.
            Server::fetch_small(site.host(plan.flow().to)?, &mhip::server_name(plan), Duration::from_secs(15))?;
            both.wait_for_paths(run.paths.len())?;
            daemons = Some(both);
        }

        progress.begin(&run.name, file_size(plan, 0, run));
        if run.full {
            site.schedule(&plan.changes);
        }
        let mut downloads = Vec::new();
        for server in used.iter().filter_map(|server| servers.get(*server)) {
            downloads.push(Download { fetch: None, server, watch: None, begun_with: 0, congestion: String::new() });
        }
        let copies = |flow: usize| scratch.join(format!("fetched{flow}"));
        let result = match plan.competes() {
            true => self.compete(&site, run, &mut downloads, copies, progress),
            false => self.complete(&site, run, &mut downloads, copies, progress),
        };
        if let (Some(daemons), Some(directory)) = (&daemons, kept) {
            daemons.save_status(directory);
        }
        drop(downloads);
        drop(daemons);
        drop(servers);
        let summary = site.close()?;
        let (flows, path_bytes) = result?;
        Ok(Measured { flows, path_bytes, late_p99_us: summary.lateness.quantile(0.99).as_micros() })
    }
}

impl Real<'_> {
    fn fetch(
        &self,
        site: &Site,
        run: &Run,
        flow: usize,
        download: &Download<'_>,
        copy: PathBuf,
    ) -> Result<Fetch, LabError> {
        let patience = Duration::from_secs_f64(self.plan.duration.as_secs_f64() * 5.0 + 10.0);
        let client = self.plan.flows.get(flow).map_or(0, |flow| flow.to);
        download.server.fetch(site.host(client)?, &self.address(flow, run), copy, patience)
    }

    /// One download, to its end.
    fn complete(
        &self,
        site: &Site,
        run: &Run,
        downloads: &mut [Download<'_>],
        copies: impl Fn(usize) -> PathBuf,
        progress: &Progress,
    ) -> Result<(Vec<Transfer>, Vec<u64>), LabError> {
        let Some(download) = downloads.first_mut() else { return Ok((Vec::new(), Vec::new())) };
        let size = file_size(self.plan, 0, run);
        let before = site.delivered_bytes();
        let clock = Stopwatch::start();
        let mut fetch = self.fetch(site, run, 0, download, copies(0))?;
        let mut watch = Watch::new(clock.elapsed(), 0);
        let mut end = Duration::ZERO;
        while !fetch.has_ended()? {
            let arrived = fetch.arrived();
            progress.at(arrived);
            if arrived > 0 && download.congestion.is_empty() {
                download.congestion = kernel::used(site.host(self.plan.flow().from)?, download.server.port())?;
            }
            if arrived < size {
                end = clock.elapsed();
            }
            watch.see(clock.elapsed(), arrived);
            pause(LOOK)?;
        }
        let fetched = fetch.finish(size)?;
        let transfer = Transfer {
            mbps: size as f64 * 8.0 / fetched.seconds / 1e6,
            bytes: size,
            seconds: fetched.seconds,
            sha256_equal: download.server.is_copied(&copies(0), false)?,
            stall: watch.stall(end),
            congestion: download.congestion.clone(),
        };
        Ok((vec![transfer], difference(site.delivered_bytes(), &before)))
    }

    /// All downloads at the same time, each from its start; measured between warm-up and end.
    fn compete(
        &self,
        site: &Site,
        run: &Run,
        downloads: &mut [Download<'_>],
        copies: impl Fn(usize) -> PathBuf,
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
                measured_from = now;
            }
            for (index, download) in downloads.iter_mut().enumerate() {
                let start =
                    plan.flows.get(index).map_or(Duration::ZERO, |flow| Duration::from_nanos(flow.start.as_nanos()));
                if download.fetch.is_none() && now >= start {
                    download.fetch = Some(self.fetch(site, run, index, download, copies(index))?);
                }
                let arrived = download.fetch.as_ref().map_or(0, Fetch::arrived);
                if index == 0 {
                    progress.at(arrived);
                }
                match &mut download.watch {
                    Some(watch) => watch.see(now, arrived),
                    None if before.is_some() => {
                        download.watch = Some(Watch::new(now, arrived));
                        download.begun_with = arrived;
                        let host = plan.flows.get(index).map_or(0, |flow| flow.from);
                        download.congestion = kernel::used(site.host(host)?, download.server.port())?;
                    }
                    None => {}
                }
                if download.fetch.as_mut().map_or(Ok(false), Fetch::has_ended)? {
                    // It has more to fetch than fits the time, so this is a failure, and the client says of what.
                    let name = plan.flows.get(index).map_or("", |flow| flow.name.as_str());
                    let failure = download.fetch.take().map(|fetch| fetch.finish(file_size(plan, index, run)));
                    failure.transpose()?;
                    let message = "the whole file arrived before the scenario was over".to_owned();
                    return Err(LabError::Program { program: format!("flow {name}"), message });
                }
            }
            if now >= duration {
                break;
            }
            pause(LOOK)?;
        }
        let end = clock.elapsed();
        let bytes = difference(site.delivered_bytes(), &before.unwrap_or_default());
        let seconds = (end - measured_from).as_secs_f64();
        let mut transfers = Vec::new();
        for (index, download) in downloads.iter_mut().enumerate() {
            let Some(fetch) = download.fetch.take() else { continue };
            let bytes = fetch.arrived().saturating_sub(download.begun_with);
            let copy = fetch.copy().to_owned();
            // It is stopped; what has arrived stays.
            drop(fetch);
            transfers.push(Transfer {
                mbps: bytes as f64 * 8.0 / seconds / 1e6,
                bytes,
                seconds,
                sha256_equal: download.server.is_copied(&copy, true)?,
                stall: download.watch.as_ref().map_or(Duration::ZERO, |watch| watch.stall(end)),
                congestion: download.congestion.clone(),
            });
            // Each may be as long as the scenario; the disk is shared.
            let _ = fs::remove_file(copies(index));
        }
        Ok((transfers, bytes))
    }
}

fn difference(now: Vec<u64>, before: &[u64]) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
}

//! Runs a plan: each path alone, then all together.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Streams;
use emulator::Lateness;
use scenario::Scenario;

use crate::error::Step;
use crate::plan::{Plan, Protocol};
use crate::privilege::check_programs;
use crate::progress::Progress;
use crate::report::Report;
use crate::site::{Site, capture_file};
use crate::transfer::{Server, Transfer};
use crate::{LabError, interrupt, mhip, wireshark};

/// How a laboratory runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where captures, key log and logs stay; without it they are removed at the end.
    pub directory: Option<PathBuf>,
    /// The program `sinnet`, to be started as the daemons; usually this very program.
    pub executable: PathBuf,
}

impl Options {
    /// This program's own daemons, and nothing is kept.
    ///
    /// # Errors
    /// When the system does not tell what program this is.
    pub fn new() -> Result<Self, LabError> {
        Ok(Self { directory: None, executable: std::env::current_exe().step("finding this program's file")? })
    }
}

/// Runs a scenario: each path of its flow alone, then all together with the changes of the scenario.
///
/// # Errors
/// [`LabError::Forbidden`] without the right to make namespaces, [`LabError::Scenario`] for what a laboratory cannot do,
/// and when a program is missing or fails.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut Progress) -> Result<Report, LabError> {
    let plan = Plan::new(scenario)?;
    check_programs()?;
    interrupt::listen()?;
    run_plan(&plan, options, progress)
}

/// What a transfer fills of the time given to it: the rest is slow start and the overhead of headers.
const SHARE: f64 = 0.8;
/// A file is at least so long, in bytes: below that a transfer is all start.
const SMALLEST: u64 = 100_000;
/// The rate assumed for a path that has none, in bit/s.
const ASSUMED: u64 = 200_000_000;

fn run_plan(plan: &Plan, options: &Options, progress: &mut Progress) -> Result<Report, LabError> {
    let temporary = tempfile::Builder::new().prefix("sinnet-lab-").tempdir().step("making a temporary directory")?;
    if let Some(directory) = &options.directory {
        fs::create_dir_all(directory).step(format!("making the directory {}", directory.display()))?;
    }
    progress.say(&plan.name);
    let mut lab = Lab { plan, options, scratch: temporary.path(), identities: None, lateness: Vec::new() };
    if plan.flow.protocol == Protocol::Mhip {
        lab.identities = Some(mhip::Identities::generate(temporary.path())?);
    }
    let all: Vec<usize> = (0..plan.paths().len()).collect();
    let mut singles = Vec::new();
    for path in &all {
        singles.push(lab.measure(&format!("path {} alone", path + 1), &[*path], false, progress)?);
    }
    let together = match plan.flow.protocol {
        Protocol::Mhip => lab.measure("all paths together", &all, true, progress)?,
        // TCP has one path. The run is done again, with the changes that the scenario may have.
        Protocol::Tcp => lab.measure("once more, with all changes", &[0], true, progress)?,
    };
    let single_mbps: Vec<f64> = singles.iter().map(|single| single.mbps).collect();
    let sum_mbps: f64 = match plan.flow.protocol {
        Protocol::Mhip => single_mbps.iter().sum(),
        Protocol::Tcp => single_mbps.first().copied().unwrap_or_default(),
    };
    let kept = |file: PathBuf| Some(file).filter(|file| file.exists());
    let captures = options.directory.iter().flat_map(|directory| all.iter().map(|path| capture_file(directory, *path)));
    Ok(Report {
        name: plan.name.clone(),
        single_mbps,
        sum_mbps,
        together_mbps: together.mbps,
        ratio: together.mbps / sum_mbps,
        sha256_equal: together.sha256_equal && singles.iter().all(|single| single.sha256_equal),
        disturbed: !plan.changes.is_empty(),
        emulator_late_p99_us: lab
            .lateness
            .iter()
            .map(|lateness| lateness.quantile(0.99).as_micros())
            .max()
            .unwrap_or(0),
        captures: captures.filter_map(kept).collect(),
        esp_keylog: options.directory.as_deref().map(wireshark::keylog_file).and_then(kept),
        directory: options.directory.clone(),
    })
}

struct Lab<'a> {
    plan: &'a Plan,
    options: &'a Options,
    scratch: &'a Path,
    identities: Option<mhip::Identities>,
    lateness: Vec<Lateness>,
}

impl Lab<'_> {
    /// One transfer over the paths with these numbers. The one over all of them is recorded, and its links change.
    fn measure(
        &mut self,
        name: &str,
        paths: &[usize],
        full: bool,
        progress: &mut Progress,
    ) -> Result<Transfer, LabError> {
        let plan = self.plan;
        let kept = self.options.directory.as_deref().filter(|_| full);
        let scratch = self.scratch.join(name.replace(' ', "-"));
        fs::create_dir_all(&scratch).step("making a directory")?;
        let site = Site::build(&plan.topology, plan.links.clone(), plan.seed, kept)?;
        let (server, client) = (site.host(plan.flow.from)?, site.host(plan.flow.to)?);

        let used = plan.paths().iter().enumerate().filter(|(path, _)| paths.contains(path));
        let rate: u64 = used.map(|(_, path)| plan.rate(&path.there).unwrap_or(ASSUMED)).sum();
        let fitting = (rate as f64 / 8.0 * plan.duration.as_secs_f64() * SHARE) as u64;
        let size = plan.flow.size.unwrap_or(fitting.max(SMALLEST));
        let mut rng = Streams::new(plan.seed).stream(name);
        let web = Server::start(server, &scratch, size, &mut rng)?;

        let mut daemons = None;
        let host = match (plan.flow.protocol, &self.identities) {
            (Protocol::Mhip, Some(identities)) => {
                let keylog = kept.map(wireshark::keylog_file);
                if let Some(directory) = kept {
                    wireshark::prepare(directory)?;
                }
                let files = mhip::Files {
                    executable: &self.options.executable,
                    scratch: &scratch,
                    logs: kept.unwrap_or(&scratch),
                    keylog: keylog.as_deref(),
                };
                daemons = Some(mhip::Daemons::start(plan, &site, identities, paths, &files)?);
                mhip::server_name(plan)
            }
            _ => {
                let path = paths.first().and_then(|path| plan.paths().get(*path));
                path.map_or_else(String::new, |path| plan.topology.address(path.ends[0]).to_string())
            }
        };
        // The first connection makes the association; paths are added to it after that.
        Server::fetch_small(client, &host, Duration::from_secs(15))?;
        if let Some(daemons) = &mut daemons {
            daemons.wait_for_paths(paths.len())?;
        }

        progress.begin(name, size);
        if full {
            site.schedule(&plan.changes);
        }
        let patience = Duration::from_secs_f64(plan.duration.as_secs_f64() * 5.0 + 10.0);
        let result = web.fetch(client, &host, &scratch, patience, progress);
        if let (Some(daemons), Some(directory)) = (&daemons, kept) {
            daemons.save_status(directory);
        }
        drop(daemons);
        drop(web);
        let summary = site.close()?;
        self.lateness.push(summary.lateness);
        let transfer = result?;
        progress.end(&format!(
            "  {name}: {:.2} Mbit/s ({:.1} MB in {:.1} s), {}",
            transfer.mbps,
            size as f64 / 1e6,
            transfer.seconds,
            if transfer.sha256_equal { "identical" } else { "NOT identical" }
        ));
        Ok(transfer)
    }
}

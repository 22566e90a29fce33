//! Runs a scenario, in real or in virtual time.

use std::fs;
use std::path::PathBuf;

use scenario::Scenario;
use scenario::schema::Engine;

use crate::error::Step;
use crate::guest::Guest;
use crate::measure::run_all;
use crate::plan::{Kind, Plan};
use crate::privilege::check_programs;
use crate::progress::Progress;
use crate::real::Real;
use crate::report::Report;
use crate::simulated::InSimulator;
use crate::virtual_time::Virtual;
use crate::{LabError, interrupt};

/// What hosts a scenario runs between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Network namespaces with their kernels, programs and daemons, in real time.
    Real,
    /// The data plane of the daemons over the same links in virtual time, between simulated TCPs instead of kernels and
    /// programs. They need no rights and no programs.
    Virtual,
    /// The core of these, without bytes, in the packet simulator.
    Simulated,
}

impl Hosts {
    /// A word for tables and directories.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Virtual => "virtual",
            Self::Simulated => "sim",
        }
    }
}

/// How a laboratory runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where captures, key log and logs stay; without it they are removed at the end.
    pub directory: Option<PathBuf>,
    /// The program `sinnet`, to be started as the daemons; usually this very program.
    pub executable: PathBuf,
    /// Between which hosts.
    pub hosts: Hosts,
    /// Only the run over all paths, none over a single one.
    pub together: bool,
}

impl Options {
    /// This program's own daemons, in real time, and nothing is kept.
    ///
    /// # Errors
    /// When the system does not tell what program this is.
    pub fn new() -> Result<Self, LabError> {
        let executable = std::env::current_exe().step("finding this program's file")?;
        Ok(Self { directory: None, executable, hosts: Hosts::Real, together: false })
    }
}

/// Runs a scenario: each path of its flow alone, then all together with the changes of the scenario; of several flows, all
/// together, measured between the scenario's warm-up and its end.
///
/// # Errors
/// [`LabError::Forbidden`] without the right to make namespaces, [`LabError::Scenario`] for what a laboratory cannot do,
/// and when a program is missing or fails.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut Progress) -> Result<Report, LabError> {
    run_with(scenario, options, None, progress)
}

/// Runs a scenario as [`run`] does, and its main flow's single download by another program than TCP.
///
/// # Errors
/// As [`run`], and when the program fails, or is not there for these hosts.
pub fn run_with(
    scenario: &Scenario,
    options: &Options,
    guest: Option<&dyn Guest>,
    progress: &mut Progress,
) -> Result<Report, LabError> {
    scenario.check_for(if options.hosts == Hosts::Real { Engine::Lab } else { Engine::LabVirtual })?;
    let plan = Plan::new(scenario)?;
    let directory = options.directory.as_deref();
    if let Some(directory) = directory {
        fs::create_dir_all(directory).step(format!("making the directory {}", directory.display()))?;
    }
    interrupt::listen()?;
    if let Some(guest) = guest.filter(|_| options.hosts == Hosts::Simulated) {
        let message = "it needs packets with bytes: in virtual time, or between kernels".to_owned();
        return Err(LabError::Program { program: guest.congestion(), message });
    }
    let guest = guest.filter(|_| plan.flow().kind == Kind::Download);
    match options.hosts {
        Hosts::Virtual => {
            let mut hosts = Virtual::new(&plan, scenario, directory, guest)?;
            return run_all(&plan, &mut hosts, options, progress);
        }
        Hosts::Simulated => return run_all(&plan, &mut InSimulator::new(&plan)?, options, progress),
        Hosts::Real => {}
    }
    check_programs(&plan)?;
    let temporary = tempfile::Builder::new().prefix("sinnet-lab-").tempdir().step("making a temporary directory")?;
    let mut laboratory = Real::new(&plan, options, guest, temporary.path())?;
    run_all(&plan, &mut laboratory, options, progress)
}

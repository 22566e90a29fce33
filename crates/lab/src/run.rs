//! Runs a scenario, in real or in virtual time.

use std::fs;
use std::path::PathBuf;

use scenario::Scenario;
use scenario::schema::Engine;

use crate::error::Step;
use crate::measure::run_all;
use crate::plan::Plan;
use crate::privilege::check_programs;
use crate::progress::Progress;
use crate::real::Real;
use crate::report::Report;
use crate::virtual_time::Virtual;
use crate::{LabError, interrupt};

/// How a laboratory runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where captures, key log and logs stay; without it they are removed at the end.
    pub directory: Option<PathBuf>,
    /// The program `sinnet`, to be started as the daemons; usually this very program.
    pub executable: PathBuf,
    /// Virtual time: the same data plane over the same links, between two simulated TCPs instead of kernels and programs.
    /// Needs no rights and no programs.
    pub virtual_time: bool,
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
        Ok(Self { directory: None, executable, virtual_time: false, together: false })
    }
}

/// Runs a scenario: each path of its flow alone, then all together with the changes of the scenario; of several flows, all
/// together, measured between the scenario's warm-up and its end.
///
/// # Errors
/// [`LabError::Forbidden`] without the right to make namespaces, [`LabError::Scenario`] for what a laboratory cannot do,
/// and when a program is missing or fails.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut Progress) -> Result<Report, LabError> {
    scenario.check_for(if options.virtual_time { Engine::LabVirtual } else { Engine::Lab })?;
    let plan = Plan::new(scenario)?;
    let directory = options.directory.as_deref();
    if let Some(directory) = directory {
        fs::create_dir_all(directory).step(format!("making the directory {}", directory.display()))?;
    }
    interrupt::listen()?;
    if options.virtual_time {
        let mut laboratory = Virtual::new(&plan, scenario, directory)?;
        return run_all(&plan, &mut laboratory, options, progress);
    }
    check_programs(&plan)?;
    let temporary = tempfile::Builder::new().prefix("sinnet-lab-").tempdir().step("making a temporary directory")?;
    let mut laboratory = Real::new(&plan, options, temporary.path())?;
    run_all(&plan, &mut laboratory, options, progress)
}

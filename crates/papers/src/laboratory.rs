//! Running the cases that experiments need.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use campaign::{Campaign, Options, Origin, Seeds};
use scenario::Point;

use crate::PapersError;
use crate::case::{Case, case};
use crate::cost;
use crate::experiment::Experiment;
use crate::results::Results;

/// How cases are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Independent runs of each point; random networks are run once each.
    pub seeds: NonZeroU32,
    /// Runs at the same time.
    pub threads: NonZeroUsize,
    /// Where finished runs are kept.
    pub out: PathBuf,
    /// The program, so that runs of another build are not taken for its own.
    pub origin: Origin,
}

/// How far the laboratory is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The case under way.
    pub case: &'a str,
    /// Runs of all cases.
    pub runs: usize,
    /// Finished by now.
    pub finished: usize,
    /// Work done, from 0 to 1 of all.
    pub fraction: f64,
}

/// The cases of some experiments, checked and ready to be run.
pub struct Laboratory {
    prepared: Vec<Prepared>,
}

struct Prepared {
    case: Case,
    campaign: Campaign,
    points: Vec<Point>,
    /// Packets that its runs will move, about.
    work: f64,
}

impl Laboratory {
    /// Reads the scenarios of `experiments`.
    ///
    /// # Errors
    /// Anything in a scenario that makes no sense.
    pub fn prepare(experiments: &[&Experiment], seeds: NonZeroU32) -> Result<Self, PapersError> {
        let ids: BTreeSet<&str> = experiments.iter().flat_map(|experiment| experiment.cases).copied().collect();
        let prepared = ids.into_iter().map(|id| Prepared::of(case(id)?, seeds)).collect::<Result<_, _>>()?;
        Ok(Self { prepared })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.prepared.iter().map(|prepared| prepared.campaign.runs()).sum()
    }

    /// Seconds that all runs would take on `threads` processors, about, from the speed of a short one. What is kept from
    /// an earlier start is not subtracted.
    ///
    /// # Errors
    /// None, unless the scenario that is timed is broken.
    pub fn estimate(&self, settings: &Settings) -> Result<f64, PapersError> {
        let sample = Prepared::of(case("steady-state-tcp")?, NonZeroU32::MIN)?;
        let options = Options { out: None, ..options(settings, sample.case) };
        let report = sample.campaign.run(&options, &AtomicBool::new(false), |_| {})?;
        let seconds: f64 = report.points.iter().flat_map(|point| &point.runs).map(|run| run.cpu_s).sum();
        let work: f64 = self.prepared.iter().map(|prepared| prepared.work).sum();
        Ok(work / sample.work * seconds / settings.threads.get() as f64)
    }

    /// Runs what is missing. Once `stop` is set, it ends with what is finished, now or in an earlier start.
    ///
    /// # Errors
    /// When results cannot be stored, or those stored not be used.
    pub fn run(
        &self,
        settings: &Settings,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress<'_>),
    ) -> Result<Results, PapersError> {
        let mut results = Results::default();
        let total: f64 = self.prepared.iter().map(|prepared| prepared.work).sum();
        let (mut work, mut finished) = (0.0, 0);
        for prepared in &self.prepared {
            let report = prepared.campaign.run(&options(settings, prepared.case), stop, |tick| {
                progress(Progress {
                    case: prepared.case.id,
                    runs: self.runs(),
                    finished: finished + tick.finished,
                    fraction: (work + prepared.work * tick.fraction) / total,
                });
            })?;
            work += prepared.work;
            finished += prepared.campaign.runs();
            results.add(prepared.case.id, prepared.points.iter().cloned().zip(report.points).collect());
        }
        Ok(results)
    }
}

impl Prepared {
    fn of(case: Case, seeds: NonZeroU32) -> Result<Self, PapersError> {
        let points = case.points()?;
        let count = if case.is_random() { NonZeroU32::MIN } else { seeds };
        let seeds = Seeds { first: None, count: Some(count) };
        let campaign = Campaign::of_points(case.text(), points.clone(), seeds)?;
        let mut work = 0.0;
        for point in &points {
            work += cost::packets(&point.document.scenario()?) * f64::from(count.get());
        }
        Ok(Self { case, campaign, points, work })
    }
}

fn options(settings: &Settings, case: Case) -> Options {
    Options {
        threads: settings.threads,
        out: Some(settings.out.join(case.id)),
        interval: None,
        pcap: false,
        origin: settings.origin.clone(),
    }
}

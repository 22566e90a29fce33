//! Running the cases that experiments need.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use campaign::{Campaign, Options, Origin, PointReport, Seeds};
use scenario::Point;

use crate::PapersError;
use crate::case::{Case, case};
use crate::experiment::{Experiment, Ships};
use crate::results::Results;

/// How much longer a packet of what ships takes than one of the papers' mHIP, about.
const SHIPPED: f64 = 4.0;

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
    shipped: Shipped,
}

/// The cases in which what ships takes the place of mHIP. Many of their points differ only in settings of mHIP: each scenario is run
/// once, for all of them.
struct Shipped {
    /// Its points are the scenarios; `None` if there are none.
    runs: Option<Prepared>,
    /// Per case, its points and the number of the scenario of each.
    cases: Vec<(&'static str, Vec<(Point, usize)>)>,
}

struct Prepared {
    /// The case, also the directory of its results.
    id: &'static str,
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
        Ok(Self { prepared, shipped: Shipped::of(experiments, seeds)? })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.all().map(|prepared| prepared.campaign.runs()).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Prepared> {
        self.prepared.iter().chain(&self.shipped.runs)
    }

    /// Seconds that all runs would take on `threads` processors, about, from the speed of a short one. What is kept from
    /// an earlier start is not subtracted.
    ///
    /// # Errors
    /// None, unless the scenario that is timed is broken.
    pub fn estimate(&self, settings: &Settings) -> Result<f64, PapersError> {
        let sample = Prepared::of(case("steady-state-tcp")?, NonZeroU32::MIN)?;
        let options = Options { out: None, ..options(settings, sample.id) };
        let report = sample.campaign.run(&options, &AtomicBool::new(false), |_| {})?;
        let seconds: f64 = report.points.iter().flat_map(|point| &point.runs).map(|run| run.cpu_s).sum();
        let work: f64 = self.all().map(|prepared| prepared.work).sum();
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
        let (mut results, mut shipped) = (Results::default(), Results::default());
        let total: f64 = self.all().map(|prepared| prepared.work).sum();
        let (mut work, mut finished) = (0.0, 0);
        let mut run = |prepared: &Prepared| -> Result<Vec<PointReport>, PapersError> {
            let report = prepared.campaign.run(&options(settings, prepared.id), stop, |tick| {
                progress(Progress {
                    case: prepared.id,
                    runs: self.runs(),
                    finished: finished + tick.finished,
                    fraction: (work + prepared.work * tick.fraction) / total,
                });
            })?;
            work += prepared.work;
            finished += prepared.campaign.runs();
            Ok(report.points)
        };
        for prepared in &self.prepared {
            results.add(prepared.id, prepared.points.iter().cloned().zip(run(prepared)?).collect());
        }
        let reports = self.shipped.runs.as_ref().map(run).transpose()?.unwrap_or_default();
        for (case, points) in &self.shipped.cases {
            let of = |(point, number): &(Point, usize)| Some((point.clone(), reports.get(*number)?.clone()));
            shipped.add(case, points.iter().filter_map(of).collect());
        }
        Ok(results.with_shipped(shipped))
    }
}

impl Shipped {
    fn of(experiments: &[&Experiment], seeds: NonZeroU32) -> Result<Self, PapersError> {
        let mut ids = BTreeSet::new();
        for experiment in experiments {
            if let Ships::In(cases) = experiment.ships {
                ids.extend(cases.iter().copied());
            }
        }
        let mut known = BTreeMap::new();
        let mut scenarios = Vec::new();
        let mut cases = Vec::new();
        for id in ids {
            let mut points = Vec::new();
            for point in case(id)?.shipped()? {
                let number = *known.entry(point.document.to_toml()).or_insert_with(|| {
                    let values = vec![("scenario".to_owned(), (scenarios.len() + 1).to_string())];
                    scenarios.push(Point { values, document: point.document.clone() });
                    scenarios.len() - 1
                });
                points.push((point, number));
            }
            cases.push((id, points));
        }
        let runs = if scenarios.is_empty() { None } else { Some(Prepared::new("what-ships", "", scenarios, seeds)?) };
        let runs = runs.map(|runs| Prepared { work: runs.work * SHIPPED, ..runs });
        Ok(Self { runs, cases })
    }
}

impl Prepared {
    fn of(case: Case, seeds: NonZeroU32) -> Result<Self, PapersError> {
        let count = if case.is_random() { NonZeroU32::MIN } else { seeds };
        Self::new(case.id, case.text(), case.points()?, count)
    }

    fn new(id: &'static str, text: &str, points: Vec<Point>, count: NonZeroU32) -> Result<Self, PapersError> {
        let seeds = Seeds { first: None, count: Some(count) };
        let campaign = Campaign::of_points(text, points.clone(), seeds)?;
        let mut work = 0.0;
        for point in &points {
            work += campaign::packets(&point.document.scenario()?) * f64::from(count.get());
        }
        Ok(Self { id, campaign, points, work })
    }
}

fn options(settings: &Settings, id: &str) -> Options {
    Options {
        threads: settings.threads,
        out: Some(settings.out.join(id)),
        interval: None,
        pcap: false,
        origin: settings.origin.clone(),
    }
}

//! From a scenario file and what the command line says to the runs of a campaign, and their simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clock::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};
use scenario::{Document, Scenario};
use simulator::{Observer, Outside, Plan, RunOptions, RunResult, Simulation};
use text::Diagnostic;
use transport::{FlowConfig, Packet};

use crate::execute::{self, Job, Options, Point, Progress, Series, Watch};
use crate::fair::Expectation;
use crate::files::StoreError;
use crate::report::{FlowGroup, Report};
use crate::shard::Shard;
use crate::store::Origin;
use crate::trace::{FlowEnds, TracedLink};

/// Why a campaign cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CampaignError {
    /// The scenario file cannot be read.
    #[error("{}: {what}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The scenario makes no sense.
    #[error(transparent)]
    Scenario(#[from] Diagnostic),
    /// More runs than anybody waits for.
    #[error("{runs} runs are more than {MOST_RUNS}: take fewer seeds, or sweep over fewer values")]
    TooManyRuns {
        /// How many were asked for.
        runs: u64,
    },
    /// More samples than memory holds.
    #[error(
        "a sample every {} s gives {rows} rows a run, more than {MOST_ROWS}: take a longer --interval",
        .interval.as_secs_f64()
    )]
    TooManySamples {
        /// Time between samples.
        interval: Duration,
        /// Rows of the longest time series.
        rows: u64,
    },
    /// Results cannot be stored, or those stored not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An algorithm from outside has failed.
    #[error("seed {seed}, {:.6} s of virtual time: {what}", .at.as_secs_f64())]
    Plugin {
        /// The seed of the run that was given up.
        seed: u64,
        /// When it failed.
        at: Duration,
        /// What it said.
        what: String,
    },
}

/// Most runs of a campaign.
const MOST_RUNS: u64 = 1_000_000;
/// Most rows of a time series: about a gigabyte of memory for the run under way.
const MOST_ROWS: u64 = 20_000_000;

/// Which seeds are run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeds {
    /// The first one; the scenario's own if `None`.
    pub first: Option<u64>,
    /// How many, one after the other; one if `None`.
    pub count: Option<NonZeroU32>,
}

/// A run that is not stored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Missing<'a> {
    /// Its place among the runs of the campaign, as for [`Campaign::part`].
    pub place: usize,
    /// The swept keys and their values.
    pub parameters: &'a [(String, String)],
    /// The seed.
    pub seed: u64,
}

/// Algorithms from outside, which the scenario names.
pub trait Plugins: Send + Sync {
    /// Those of the run with this seed, which share nothing with those of another.
    fn begin(&self, seed: u64) -> Box<dyn Plugged>;

    /// Calls `run`, a whole run, on the thread on which it goes: who has to prepare that thread does it here.
    fn around(&self, run: &mut dyn FnMut()) {
        run();
    }
}

/// The algorithms from outside of one run.
pub trait Plugged: Outside {
    /// When one of them failed and what it said: the run is given up and not stored.
    fn failure(&self) -> Option<(Instant, String)> {
        None
    }
}

impl Plugged for () {}

impl Plugins for () {
    fn begin(&self, _seed: u64) -> Box<dyn Plugged> {
        Box::new(())
    }
}

/// A scenario over the points of its sweep and over seeds, checked and ready to be run.
pub struct Campaign {
    name: String,
    text: String,
    /// What is the same in all runs, as TOML; empty where points are no sweep.
    settings: String,
    points: Vec<Point>,
    scenarios: Vec<Scenario>,
    /// Other programs run the rest of it.
    is_part: bool,
    plugins: Arc<dyn Plugins>,
}

impl Campaign {
    /// Reads the scenario at `path`, and what it extends from beside it; works in `assignments` (`key=value`).
    ///
    /// # Errors
    /// A file that cannot be read; anything in any point of the sweep that makes no sense.
    pub fn load(path: &Path, assignments: &[String], seeds: Seeds) -> Result<Self, CampaignError> {
        let text = read(path).map_err(|what| CampaignError::Unreadable { path: path.to_owned(), what })?;
        Self::parse(&text, &path.to_string_lossy(), assignments, seeds)
    }

    /// As [`Campaign::load`], from a text that is called `name`.
    ///
    /// # Errors
    /// Anything in any point of the sweep that makes no sense.
    pub fn parse(text: &str, name: &str, assignments: &[String], seeds: Seeds) -> Result<Self, CampaignError> {
        Self::parse_with(text, name, assignments, seeds, Arc::new(()))
    }

    /// As [`Campaign::parse`], where flows may also name what is among the `plugins`. A name has to change with the algorithm:
    /// what is stored is found again by it.
    ///
    /// # Errors
    /// Anything in any point of the sweep that makes no sense.
    pub fn parse_with(
        text: &str,
        name: &str,
        assignments: &[String],
        seeds: Seeds,
        plugins: Arc<dyn Plugins>,
    ) -> Result<Self, CampaignError> {
        let mut document = Document::load(text, name, &mut scenario::read_beside)?;
        let extends_nothing = Document::parse(text, name).is_ok();
        for assignment in assignments {
            document.set(assignment)?;
        }
        // The file as it is, with its comments, where it says all; otherwise what was really run.
        let made_of = if extends_nothing && assignments.is_empty() {
            text.to_owned()
        } else {
            let set = assignments.iter().map(|assignment| format!(" --set {assignment:?}")).collect::<String>();
            format!("# {name}{set}, with what it extends\n{}", document.to_toml())
        };
        let mut campaign = Self::made_of(&made_of, document.points()?, seeds, plugins)?;
        campaign.settings = settings(document);
        Ok(campaign)
    }

    /// A campaign over `points` that need not be the product of a sweep; points with the same values are one. `text` is
    /// what they come from, to be kept beside the results.
    ///
    /// # Errors
    /// Anything in any point that makes no sense.
    pub fn of_points(text: &str, points: Vec<scenario::Point>, seeds: Seeds) -> Result<Self, CampaignError> {
        Self::made_of(text, points, seeds, Arc::new(()))
    }

    fn made_of(
        text: &str,
        points: Vec<scenario::Point>,
        seeds: Seeds,
        plugins: Arc<dyn Plugins>,
    ) -> Result<Self, CampaignError> {
        let mut campaign = Self {
            name: String::new(),
            text: text.to_owned(),
            settings: String::new(),
            points: Vec::new(),
            scenarios: Vec::new(),
            is_part: false,
            plugins,
        };
        let count = seeds.count.map_or(1, |count| u64::from(count.get()));
        let runs = (points.len() as u64).saturating_mul(count);
        if runs > MOST_RUNS {
            return Err(CampaignError::TooManyRuns { runs });
        }
        let mut known = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for point in points {
            let scenario = point.document.scenario()?;
            // A sweep over seeds is not one over scenarios: its runs are averaged. The command line's seeds replace it.
            let parameters: Vec<(String, String)> =
                point.values.iter().filter(|(key, _)| key != "seed").map(unquoted).collect();
            let first = seeds.first.unwrap_or(scenario.seed);
            let index = known.get(&parameters).copied().unwrap_or(campaign.points.len());
            let wanted: Vec<u64> =
                (0..count).map(|i| first.wrapping_add(i)).filter(|&seed| seen.insert((index, seed))).collect();
            if let Some(point) = campaign.points.get_mut(index) {
                point.seeds.extend(wanted);
                continue;
            }
            // What only the simulator can refuse is refused before the first run.
            let plan = simulator::plan_with(&scenario, first, campaign.plugins.begin(first).as_ref())?;
            campaign.name.clone_from(&scenario.name);
            known.insert(parameters.clone(), index);
            campaign.points.push(Point {
                parameters,
                text: without_seed(point.document),
                seeds: wanted,
                groups: scenario.flows.iter().map(group).collect(),
                ends: ends(&scenario, &plan),
                links: links(&scenario),
                duration: scenario.duration,
                work: crate::cost::packets(&scenario),
            });
            campaign.scenarios.push(scenario);
        }
        Ok(campaign)
    }

    /// What each notion of fairness expects of each point.
    ///
    /// # Errors
    /// Sources that send more than a link has; a path that nothing limits.
    pub fn expectations(&self) -> Result<Vec<Expectation>, CampaignError> {
        self.scenarios.iter().map(|scenario| Expectation::of(scenario).map_err(CampaignError::from)).collect()
    }

    /// What is right but may not be meant, in a sentence each: queues without a limit, links that carry nothing for long.
    pub fn remark(&self) -> Option<String> {
        let links: BTreeSet<&str> = self.scenarios.iter().flat_map(Scenario::queues_without_limit).collect();
        let names = links.into_iter().collect::<Vec<_>>().join(", ");
        let queues = (!names.is_empty()).then(|| {
            format!("without a `queue`, everything may wait at {names}: queue = \"1bdp\" is usual, \"unlimited\" says that it is meant")
        });
        let others: BTreeSet<&str> = self.scenarios.iter().flat_map(Scenario::remarks).collect();
        let all: Vec<String> = queues.into_iter().chain(others.into_iter().map(str::to_owned)).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// The points of the sweep, in the order in which they are run: of each the values that it sets, and its seeds.
    pub fn points(&self) -> impl Iterator<Item = (&[(String, String)], &[u64])> {
        self.points.iter().map(|point| (point.parameters.as_slice(), point.seeds.as_slice()))
    }

    /// Only the runs of one shard. They are stored like those of the whole campaign; the tables over all runs are written by
    /// the whole campaign, which finds the others' runs.
    #[must_use]
    pub fn only(self, shard: Shard) -> Self {
        self.part(|place| shard.takes(place))
    }

    /// As [`Campaign::only`], the runs whose places `takes` names: they are counted from 0, point by point and seed by seed.
    #[must_use]
    pub fn part(mut self, takes: impl Fn(usize) -> bool) -> Self {
        let mut places = 0..;
        for point in &mut self.points {
            point.seeds.retain(|_| places.next().is_some_and(&takes));
        }
        self.is_part = true;
        self
    }

    /// What the files of each run are called in a store, in the order of their places.
    pub fn names(&self, origin: &Origin) -> Vec<String> {
        self.job().names(origin)
    }

    /// The runs that are not stored in `options.out` yet.
    ///
    /// # Errors
    /// When what is stored cannot be used.
    pub fn missing(&self, options: &Options) -> Result<Vec<Missing<'_>>, CampaignError> {
        let missing = self.job().missing(options)?.into_iter();
        let missing = missing.filter_map(|(place, (point, seed))| {
            Some(Missing { place, parameters: &self.points.get(point)?.parameters, seed })
        });
        Ok(missing.collect())
    }

    /// How many runs it has.
    pub fn runs(&self) -> usize {
        self.points.iter().map(|point| point.seeds.len()).sum()
    }

    /// Runs what is not stored yet, on `options.threads` threads. Once `stop` is set, runs under way are given up; what was
    /// finished by then is stored and in the report. `progress` is called on this thread several times a second.
    ///
    /// # Errors
    /// When results cannot be stored, or those stored not be used. Runs finished by then stay stored.
    pub fn run(
        &self,
        options: &Options,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<Report, CampaignError> {
        self.run_and_keep(options, stop, |_, _| (), progress)
    }

    /// As [`Campaign::run`]; `keep` is given the time series of each run, with its place, when it is finished. They are sampled
    /// also where nothing is stored. It is called on the threads of the runs, and not for what was found stored.
    ///
    /// # Errors
    /// When results cannot be stored, or those stored not be used. Runs finished by then stay stored.
    pub fn run_and_keep(
        &self,
        options: &Options,
        stop: &AtomicBool,
        keep: impl Fn(usize, &Series) + Sync,
        progress: impl FnMut(Progress),
    ) -> Result<Report, CampaignError> {
        if let Some(interval) = options.interval {
            let rows = self.points.iter().map(|point| rows(point, interval)).max().unwrap_or(0);
            if rows > MOST_ROWS {
                return Err(CampaignError::TooManySamples { interval, rows });
            }
        }
        let simulate = |point: usize, seed, interval, watch: &mut Watch<'_>| {
            let plugged = self.plugins.begin(seed);
            let mut result = Ok(None);
            if let Some(scenario) = self.scenarios.get(point) {
                self.plugins.around(&mut || result = simulate(scenario, seed, interval, plugged.as_ref(), watch));
            }
            result
        };
        execute::execute(&self.job(), options, stop, simulate, keep, progress)
    }

    fn job(&self) -> Job<'_> {
        let Self { name, text, settings, points, is_part, .. } = self;
        Job { name, text, settings, points, is_part: *is_part }
    }
}

/// What tells the runs of one campaign from another's: all but seeds and the values of a sweep, which may grow.
fn settings(mut document: Document) -> String {
    let swept = document.swept();
    for key in &swept {
        // Swept, its own value decides nothing; that it is one of the swept keys is noted.
        let _ = document.set(&format!("{key}=\"swept\""));
    }
    without_seed(document)
}

/// Rows of a run's longest time series.
fn rows(point: &Point, interval: Duration) -> u64 {
    let samples = point.duration.as_nanos() / interval.as_nanos().max(1);
    samples.saturating_mul(point.ends.len().max(point.links.len()) as u64)
}

/// One run; `None` if it was given up.
fn simulate(
    scenario: &Scenario,
    seed: u64,
    interval: Option<Duration>,
    plugged: &dyn Plugged,
    watch: &mut Watch<'_>,
) -> Result<Option<RunResult>, CampaignError> {
    let begin = processor_time();
    let plan = simulator::plan_with(scenario, seed, plugged)?;
    let mut observer = Watching { watch, plugged, given_up: false };
    let options = RunOptions { interval, flows: None };
    let simulation = Simulation::new(&plan, seed);
    // Who looks at packets is chosen once, so that the usual run does not ask at every one of them.
    let mut result = if observer.watch.tracer.is_some() {
        simulation.run_observed(&options, &mut Capturing(&mut observer))
    } else {
        simulation.run_observed(&options, &mut observer)
    };
    result.cpu_s = (processor_time() - begin).max(0.0);
    let given_up = observer.given_up;
    if let Some((at, what)) = plugged.failure() {
        return Err(CampaignError::Plugin { seed, at: at - Instant::ZERO, what });
    }
    Ok((!given_up).then_some(result))
}

struct Watching<'a, 'b> {
    watch: &'a mut Watch<'b>,
    plugged: &'a dyn Plugged,
    given_up: bool,
}

impl Observer for Watching<'_, '_> {
    fn go_on(&mut self, now: Instant) -> bool {
        self.given_up |= !self.watch.tick(now.as_nanos()) || self.plugged.failure().is_some();
        !self.given_up
    }
}

struct Capturing<'a, 'b, 'c>(&'a mut Watching<'b, 'c>);

impl Observer for Capturing<'_, '_, '_> {
    fn delivered(&mut self, now: Instant, link: u32, packet: &Packet, blocks: &[(u32, u32)]) {
        if let Some(tracer) = &mut self.0.watch.tracer {
            tracer.delivered(now, link, packet, blocks);
        }
    }

    fn go_on(&mut self, now: Instant) -> bool {
        self.0.go_on(now)
    }
}

/// Processor time of this thread, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())
}

fn unquoted((key, value): &(String, String)) -> (String, String) {
    (key.clone(), value.trim_matches('"').to_owned())
}

/// The scenario as TOML. The seed is not part of it: a run has its own, and the same one is found under any list of seeds.
fn without_seed(mut document: Document) -> String {
    // The key is at the top, where it can always be set.
    let _ = document.set("seed=0");
    document.to_toml()
}

fn group(flow: &scenario::FlowSpec) -> FlowGroup {
    FlowGroup { name: flow.name.clone(), count: flow.count as usize }
}

/// Nodes, sizes and windows of each flow, `count` unrolled as in the results.
fn ends(scenario: &Scenario, plan: &Plan) -> Vec<FlowEnds> {
    let specs = scenario.flows.iter().flat_map(|flow| std::iter::repeat_n(flow, flow.count as usize));
    let ends = specs.zip(&plan.flows).map(|(spec, planned)| {
        // What travels in an association is seen as ESP in UDP.
        let (mss, window) = match &planned.traffic {
            _ if planned.association.is_some() => (None, 0),
            FlowConfig::Tcp(tcp) => (Some(tcp.mss()), u64::from(tcp.receiver_window) * u64::from(tcp.mss())),
            FlowConfig::Mhip(mhip) => {
                (Some(mhip.tcp.mss()), u64::from(mhip.tcp.receiver_window) * u64::from(mhip.tcp.mss()))
            }
            FlowConfig::Mptcp(mptcp) => {
                (Some(mptcp.tcp.mss()), u64::from(mptcp.tcp.receiver_window) * u64::from(mptcp.tcp.mss()))
            }
            FlowConfig::Sctp(sctp) => (Some(sctp.payload()), sctp.receive_buffer),
            FlowConfig::Udp(_) | FlowConfig::Echo(_) => (None, 0),
        };
        let sctp = matches!(planned.traffic, FlowConfig::Sctp(_));
        FlowEnds { from: spec.from as u32, to: spec.to as u32, mss, window, sctp }
    });
    ends.collect()
}

/// The directed links, both directions of a duplex link under its name.
fn links(scenario: &Scenario) -> Vec<TracedLink> {
    let link = |directed: scenario::Directed| TracedLink {
        link: scenario.links.get(directed.link).map_or_else(String::new, |link| link.name.clone()),
        direction: directed.name,
    };
    scenario.directed().into_iter().map(link).collect()
}

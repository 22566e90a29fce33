//! The work of a campaign: which runs are missing, running them, storing each as it is finished.
//!
//! What simulates is an argument, so that going on, stopping and storing are tested without a simulator.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clock::Duration;
use fairness::statistics::Estimate;
use simulator::RunResult;

use crate::files::{StoreError, directory};
use crate::metrics::{FLOW, LINK, Label, Metric, PATH, Parameter, TOTAL, numbers};
use crate::report::{FlowGroup, PointReport, Report};
use crate::series;
use crate::store::{Origin, Spec, Store};
use crate::table::{Table, Values};
use crate::trace::{FlowEnds, TracedLink, Tracer};
use crate::workers::{Tick, for_each};

/// How a campaign is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs at the same time.
    pub threads: NonZeroUsize,
    /// Where results are stored, if anywhere.
    pub out: Option<PathBuf>,
    /// Time between samples of the time series, for a store or [`Campaign::run_and_keep`](crate::Campaign::run_and_keep).
    pub interval: Option<Duration>,
    /// Whether to store what crossed each link.
    pub pcap: bool,
    /// What the results come from.
    pub origin: Origin,
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Runs of the campaign.
    pub runs: usize,
    /// Of these, found finished from an earlier start.
    pub found: usize,
    /// Finished by now, with those found.
    pub finished: usize,
    /// Virtual time of the runs that were missing, as a fraction from 0 to 1 of what they have to do.
    pub fraction: f64,
}

/// One point of the sweep, as far as running and storing have to know it.
pub(crate) struct Point {
    pub(crate) parameters: Vec<(String, String)>,
    /// The scenario with everything worked in.
    pub(crate) text: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) groups: Vec<FlowGroup>,
    /// Per flow.
    pub(crate) ends: Vec<FlowEnds>,
    /// The directed links, in the order of the results.
    pub(crate) links: Vec<TracedLink>,
    pub(crate) duration: Duration,
    /// Packets that one of its runs moves, about.
    pub(crate) work: f64,
}

/// A run of a campaign: the number of its point, and its seed.
type Run = (usize, u64);

/// A campaign without what simulates.
pub(crate) struct Job<'a> {
    pub(crate) name: &'a str,
    /// The scenario that is run, with its sweep.
    pub(crate) text: &'a str,
    /// What is the same in all runs.
    pub(crate) settings: &'a str,
    pub(crate) points: &'a [Point],
    /// Other programs run the rest of it, into the same store maybe.
    pub(crate) is_part: bool,
}

impl<'a> Job<'a> {
    /// All runs: a point and a seed each.
    fn runs(&self) -> Vec<Run> {
        let of_point = |(index, point): (usize, &'a Point)| point.seeds.iter().map(move |&seed| (index, seed));
        self.points.iter().enumerate().flat_map(of_point).collect()
    }

    fn spec(&self, (point, seed): Run, options: &Options) -> Option<(&'a Point, Spec<'a>)> {
        let point = self.points.get(point)?;
        let interval = options.interval.map(Duration::as_nanos);
        Some((point, Spec { scenario: &point.text, seed, interval, pcap: options.pcap && options.out.is_some() }))
    }

    /// The runs that are not stored in `options.out` yet: their places, a point and a seed each.
    pub(crate) fn missing(&self, options: &Options) -> Result<Vec<(usize, Run)>, StoreError> {
        let store = options.out.as_ref().map(|root| Store::existing(root, self, options.origin.clone())).transpose()?;
        let runs = self.runs().into_iter().enumerate();
        let Some(store) = store.flatten() else { return Ok(runs.collect()) };
        let mut missing = Vec::new();
        for (place, run) in runs {
            if let Some((_, spec)) = self.spec(run, options)
                && store.load(&spec)?.is_none()
            {
                missing.push((place, run));
            }
        }
        Ok(missing)
    }

    /// What the files of each run are called.
    pub(crate) fn names(&self, origin: &Origin) -> Vec<String> {
        let text = |point: usize| self.points.get(point).map_or("", |point| &point.text);
        self.runs().into_iter().map(|(point, seed)| origin.name(text(point), seed)).collect()
    }
}

/// What looks on while a run goes: writes captures, counts virtual time, and tells when to give up.
pub(crate) struct Watch<'a> {
    pub(crate) tracer: Option<Tracer>,
    done_ns: &'a AtomicU64,
    counted_ns: u64,
    stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// Counts the virtual time up to `now_ns`; false when the run should be given up.
    pub(crate) fn tick(&mut self, now_ns: u64) -> bool {
        self.done_ns.fetch_add(now_ns.saturating_sub(self.counted_ns), Ordering::Relaxed);
        self.counted_ns = self.counted_ns.max(now_ns);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// The time series of one run: a row per sample and flow, path or link.
#[derive(Clone, Debug)]
pub struct Series {
    /// What applications got.
    pub flows: Table,
    /// What congestion control knew.
    pub paths: Table,
    /// What links and queues had.
    pub links: Table,
}

/// Runs what is missing. `simulate(point, seed, interval, watch)` gives a run's result, or `None` if it was given up.
pub(crate) fn execute<E: From<StoreError> + Send>(
    job: &Job<'_>,
    options: &Options,
    stop: &AtomicBool,
    simulate: impl Fn(usize, u64, Option<Duration>, &mut Watch<'_>) -> Result<Option<RunResult>, E> + Sync,
    keep: impl Fn(usize, &Series) + Sync,
    mut progress: impl FnMut(Progress),
) -> Result<Report, E> {
    let store = match &options.out {
        Some(root) => Some(Store::open(root, job, options.origin.clone())?),
        None => None,
    };
    let interval = options.interval;
    let runs = job.runs();
    let spec = |index: usize| job.spec(*runs.get(index)?, options);
    let mut results: Vec<Option<RunResult>> = vec![None; runs.len()];
    if let Some(store) = &store {
        for (index, slot) in results.iter_mut().enumerate() {
            if let Some((_, spec)) = spec(index) {
                *slot = store.load(&spec)?;
            }
        }
    }
    let mut missing: Vec<usize> =
        (0..runs.len()).filter(|&index| results.get(index).is_some_and(Option::is_none)).collect();
    // The longest begin first: one that began last would be waited for on one processor.
    missing.sort_by_cached_key(|&index| Reverse(spec(index).map_or(0, |(point, _)| point.work as u64)));
    let found = runs.len() - missing.len();
    let total_ns: f64 = missing.iter().filter_map(|&index| spec(index)).map(|(point, _)| ns(point)).sum();
    let done_ns = AtomicU64::new(0);
    let types = parameter_types(job.points.iter().map(|point| point.parameters.as_slice()));

    let perform = |position: usize| -> Result<Option<RunResult>, E> {
        let Some((index, (point, spec))) = missing.get(position).and_then(|&index| Some((index, spec(index)?))) else {
            return Ok(None);
        };
        let captures = store.as_ref().filter(|_| spec.pcap).map(|store| store.captures(&spec));
        let tracer = match &captures {
            Some(target) => {
                target.parent().map(directory).transpose()?;
                Some(Tracer::new(target, &point.links, point.ends.clone())?)
            }
            None => None,
        };
        let mut watch = Watch { tracer, done_ns: &done_ns, counted_ns: 0, stop };
        let number = runs.get(index).map_or(0, |run| run.0);
        let Some(mut result) = simulate(number, spec.seed, interval, &mut watch)? else { return Ok(None) };
        watch.tick(point.duration.as_nanos());
        let series = interval.map(|_| {
            let label = label(&options.origin, &spec, point, &types);
            Series {
                flows: series::flows(&label, &result),
                paths: series::paths(&label, &result),
                links: series::links(&label, &result),
            }
        });
        if let Some(series) = &series {
            keep(index, series);
        }
        if let Some(store) = &store {
            let files = match (watch.tracer, captures) {
                (Some(tracer), Some(target)) => tracer.finish(&target)?,
                _ => Vec::new(),
            };
            store.save(&spec, &result, series.as_ref(), &files)?;
        }
        // Stored, it need not stay in memory; reports do without it.
        result.series = Vec::new();
        Ok(Some(result))
    };
    let mut finished = found;
    let outcome = for_each(missing.len(), options.threads, stop, perform, |tick| {
        finished += usize::from(matches!(tick, Tick::Finished));
        let fraction = if total_ns > 0.0 { done_ns.load(Ordering::Relaxed) as f64 / total_ns } else { 1.0 };
        progress(Progress { runs: runs.len(), found, finished, fraction: fraction.min(1.0) });
    });
    for (&index, result) in missing.iter().zip(outcome.results) {
        if let Some(slot) = results.get_mut(index) {
            *slot = result;
        }
    }
    // The tables over all runs have to wait for the other parts.
    if let Some(store) = store.as_ref().filter(|_| !job.is_part) {
        let rows = results.iter().enumerate().filter_map(|(index, result)| {
            let (point, spec) = spec(index)?;
            Some((label(&options.origin, &spec, point, &types), result.as_ref()?))
        });
        store.summarise(summaries(&rows.collect::<Vec<_>>()), job.text)?;
    }
    if let Some(error) = outcome.error {
        return Err(error);
    }
    Ok(report(job, options, results, outcome.stopped))
}

fn ns(point: &Point) -> f64 {
    point.duration.as_nanos() as f64
}

fn report(job: &Job<'_>, options: &Options, results: Vec<Option<RunResult>>, stopped: bool) -> Report {
    let mut results = results.into_iter();
    let points = job.points.iter().map(|point| PointReport {
        parameters: point.parameters.clone(),
        groups: point.groups.clone(),
        runs: results.by_ref().take(point.seeds.len()).flatten().collect(),
    });
    let points = points.collect();
    Report { scenario: job.name.into(), version: options.origin.version.clone(), points, stopped }
}

/// Per parameter, whether all its values are numbers, or quantities of one unit.
fn parameter_types<'a>(points: impl Iterator<Item = &'a [(String, String)]> + Clone) -> Vec<bool> {
    let parameters = points.clone().next().map_or(0, <[_]>::len);
    let values =
        |index: usize| points.clone().filter_map(move |point| point.get(index)).map(|(_, value)| value.as_str());
    (0..parameters).map(|index| numbers(values(index)).is_some()).collect()
}

/// The values of swept keys, as numbers where `types` says so.
fn typed(parameters: &[(String, String)], types: &[bool]) -> Vec<(String, Parameter)> {
    let typed = parameters.iter().zip(types).map(|((key, value), &is_number)| {
        let number = numbers([value.as_str()]).and_then(|numbers| numbers.first().copied()).filter(|_| is_number);
        (key.clone(), number.map_or_else(|| Parameter::Text(value.clone()), Parameter::Number))
    });
    typed.collect()
}

fn label(origin: &Origin, spec: &Spec<'_>, point: &Point, types: &[bool]) -> Label {
    let parameters = typed(&point.parameters, types);
    Label { run: origin.name(spec.scenario, spec.seed), seed: spec.seed, parameters }
}

/// The tables over all runs: a row per run, per run and flow, per run and link.
fn summaries(runs: &[(Label, &RunResult)]) -> [Table; 3] {
    let mut total = columns(runs, |_| 1);
    total = total
        .with("virtual_s", Values::Float(runs.iter().map(|(_, run)| run.virtual_s).collect()))
        .with("packets", Values::Count(runs.iter().map(|(_, run)| run.packets).collect()))
        .with("events", Values::Count(runs.iter().map(|(_, run)| run.events).collect()))
        .with("digest", Values::Text(runs.iter().map(|(_, run)| format!("{:016x}", run.digest)).collect()));
    for (name, metric) in TOTAL {
        total = total.with(*name, Values::Float(runs.iter().map(|(_, run)| metric(run)).collect()));
    }
    let flows = parts(runs, "flow", |run| &run.flows, |flow| &flow.name, FLOW);
    let links = parts(runs, "link", |run| &run.links, |link| &link.name, LINK);
    [total, flows, links]
}

/// The finished runs as tables, with the columns of the store's files but for `run`.
#[derive(Clone, Debug)]
pub struct Tables {
    /// A row per run.
    pub runs: Table,
    /// A row per run and flow.
    pub flows: Table,
    /// A row per run, flow and path, of flows that may have several. No file of a store has them.
    pub paths: Table,
    /// A row per run and link.
    pub links: Table,
}

impl Report {
    /// The finished runs as tables.
    pub fn tables(&self) -> Tables {
        let types = self.types();
        let rows = self.points.iter().flat_map(|point| {
            let parameters = typed(&point.parameters, &types);
            let label = move |seed| Label { run: String::new(), seed, parameters: parameters.clone() };
            point.runs.iter().map(move |run| (label(run.seed), run))
        });
        let rows: Vec<_> = rows.collect();
        let [runs, flows, links] = summaries(&rows).map(|table| table.without("run"));
        Tables { runs, flows, paths: paths(&rows).without("run"), links }
    }

    /// Means over the seeds with their 95 % intervals, a row per point, flow or link, and metric: the numbers of the JSON's
    /// `summary`. What is of all flows together is called `total`.
    pub fn summary(&self) -> Table {
        let types = self.types();
        let mut rows = Vec::new();
        for point in &self.points {
            let parameters = typed(&point.parameters, &types);
            let mut add = |of, name: &str, metric, estimate| {
                rows.push((parameters.clone(), of, name.to_owned(), metric, estimate));
            };
            for (metric, value) in TOTAL {
                add("total", "total", *metric, point.estimate(|run| Some(value(run))));
            }
            let first = point.runs.first();
            for (index, flow) in first.map_or(&[][..], |run| &run.flows).iter().enumerate() {
                for (metric, value) in FLOW {
                    add("flow", &flow.name, *metric, point.estimate(|run| run.flows.get(index).map(value)));
                }
            }
            for (index, link) in first.map_or(&[][..], |run| &run.links).iter().enumerate() {
                for (metric, value) in LINK {
                    add("link", &link.name, *metric, point.estimate(|run| run.links.get(index).map(value)));
                }
            }
        }
        let labels: Vec<_> = rows
            .iter()
            .map(|(parameters, ..)| Label { run: String::new(), seed: 0, parameters: parameters.clone() })
            .collect();
        let number = |value: fn(&Estimate) -> Option<f64>| {
            let values = rows.iter().map(|(.., estimate)| estimate.as_ref().and_then(value).unwrap_or(f64::NAN));
            Values::Float(values.collect())
        };
        labelled(&labels.iter().collect::<Vec<_>>())
            .without("run")
            .without("seed")
            .with("of", Values::Text(rows.iter().map(|(_, of, ..)| (*of).to_owned()).collect()))
            .with("name", Values::Text(rows.iter().map(|(_, _, name, ..)| name.clone()).collect()))
            .with("metric", Values::Text(rows.iter().map(|(.., metric, _)| (*metric).to_owned()).collect()))
            .with("mean", number(|estimate| Some(estimate.mean)))
            .with("sd", number(|estimate| estimate.sd))
            .with("ci95", number(|estimate| estimate.half_width))
    }

    fn types(&self) -> Vec<bool> {
        parameter_types(self.points.iter().map(|point| point.parameters.as_slice()))
    }
}

/// A row per run, flow and path.
fn paths(runs: &[(Label, &RunResult)]) -> Table {
    let all = || {
        let flows = runs.iter().flat_map(|(_, run)| &run.flows);
        flows.flat_map(|flow| flow.paths.iter().enumerate().map(move |(number, path)| (flow, number as u64, path)))
    };
    let mut table = columns(runs, |run| run.flows.iter().map(|flow| flow.paths.len()).sum())
        .with("flow", Values::Text(all().map(|(flow, ..)| flow.name.clone()).collect()))
        .with("path", Values::Count(all().map(|(_, number, _)| number).collect()));
    for (name, metric) in PATH {
        table = table.with(*name, Values::Float(all().map(|(.., path)| metric(path)).collect()));
    }
    table
}

fn parts<T>(
    runs: &[(Label, &RunResult)],
    kind: &str,
    items: fn(&RunResult) -> &Vec<T>,
    name: fn(&T) -> &String,
    metrics: &[Metric<T>],
) -> Table {
    let all = || runs.iter().flat_map(|(_, run)| items(run));
    let mut table =
        columns(runs, |run| items(run).len()).with(kind, Values::Text(all().map(|item| name(item).clone()).collect()));
    for (name, metric) in metrics {
        table = table.with(*name, Values::Float(all().map(metric).collect()));
    }
    table
}

/// The columns that tell runs apart, each run's repeated for its `rows`.
fn columns(runs: &[(Label, &RunResult)], rows: impl Fn(&RunResult) -> usize) -> Table {
    let each = runs.iter().flat_map(|(label, run)| std::iter::repeat_n(label, rows(run)));
    labelled(&each.collect::<Vec<_>>())
}

/// The columns of these labels, a row each.
fn labelled(rows: &[&Label]) -> Table {
    let each = || rows.iter();
    let mut table = Table::new()
        .with("run", Values::Text(each().map(|label| label.run.clone()).collect()))
        .with("seed", Values::Count(each().map(|label| label.seed).collect()));
    let parameters = rows.first().map_or(&[][..], |label| &label.parameters);
    for (index, (key, kind)) in parameters.iter().enumerate() {
        let values = each().filter_map(|label| label.parameters.get(index));
        let values = match kind {
            Parameter::Number(_) => Values::Float(
                values
                    .map(|(_, value)| if let Parameter::Number(number) = value { *number } else { f64::NAN })
                    .collect(),
            ),
            Parameter::Text(_) => Values::Text(
                values
                    .map(|(_, value)| if let Parameter::Text(text) = value { text.clone() } else { String::new() })
                    .collect(),
            ),
        };
        table = table.with(key.clone(), values);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::{FlowResult, Sample};
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;

    fn points(seeds: u64) -> Vec<Point> {
        let point = |loss: &str| Point {
            parameters: vec![("loss".into(), loss.into())],
            text: format!("loss = {loss}"),
            seeds: (1..=seeds).collect(),
            groups: vec![FlowGroup { name: "f".into(), count: 1 }],
            ends: vec![],
            links: vec![],
            duration: Duration::from_secs(1),
            work: 1.0,
        };
        vec![point("0.1"), point("0.2")]
    }

    fn options(out: Option<&Path>) -> Options {
        let origin = Origin { version: "1".into(), program: "p".into() };
        let threads = NonZeroUsize::new(2).unwrap();
        Options {
            threads,
            out: out.map(Path::to_owned),
            interval: Some(Duration::from_millis(500)),
            pcap: false,
            origin,
        }
    }

    /// Goodput is a function of point and seed.
    fn result(point: usize, seed: u64) -> RunResult {
        let goodput_mbps = (point * 100) as f64 + seed as f64;
        let flow = FlowResult { name: "f".into(), goodput_mbps, ..FlowResult::default() };
        let sample = Sample { time_s: 0.5, flows: vec![Default::default()], links: vec![] };
        RunResult { seed, flows: vec![flow], series: vec![sample], ..RunResult::default() }
    }

    /// Runs seeds 1 to `seeds` of both points, setting `stop` after `patience` simulated runs; tells how many there were.
    fn run(out: Option<&Path>, seeds: u64, patience: usize) -> (Report, usize) {
        let points = points(seeds);
        let job = Job { name: "s", text: "text", settings: "", points: &points, is_part: false };
        let (simulated, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let simulate = |point, seed, _, watch: &mut Watch<'_>| {
            if simulated.fetch_add(1, Ordering::SeqCst) >= patience {
                stop.store(true, Ordering::SeqCst);
            }
            Ok::<_, StoreError>(watch.tick(500_000_000).then(|| result(point, seed)))
        };
        let mut last = None;
        let report =
            execute(&job, &options(out), &stop, simulate, |_, _| (), |progress| last = Some(progress)).unwrap();
        if let Some(last) = last.filter(|_| !report.stopped) {
            assert_eq!((last.finished, last.runs, last.fraction), (2 * seeds as usize, 2 * seeds as usize, 1.0));
        }
        (report, simulated.into_inner())
    }

    #[test]
    fn results_are_in_the_order_of_points_and_seeds() {
        let (report, simulated) = run(None, 5, usize::MAX);
        assert_eq!(simulated, 10);
        for (number, point) in report.points.iter().enumerate() {
            let goodputs: Vec<f64> = point.runs.iter().map(|run| run.flows[0].goodput_mbps).collect();
            let expected: Vec<f64> = (1..=5).map(|seed| f64::from(100 * number as u32 + seed)).collect();
            assert_eq!(goodputs, expected);
        }
    }

    #[test]
    fn the_longest_runs_begin_first_and_results_keep_their_places() {
        let mut points = points(2);
        points[1].work = 2.0;
        let job = Job { name: "s", text: "text", settings: "", points: &points, is_part: false };
        let begun = std::sync::Mutex::new(Vec::new());
        let simulate = |point, seed, _, _: &mut Watch<'_>| {
            begun.lock().unwrap().push((point, seed));
            Ok::<_, StoreError>(Some(result(point, seed)))
        };
        let one = Options { threads: NonZeroUsize::MIN, ..options(None) };
        let report = execute(&job, &one, &AtomicBool::new(false), simulate, |_, _| (), |_| ()).unwrap();
        assert_eq!(begun.into_inner().unwrap(), [(1, 1), (1, 2), (0, 1), (0, 2)]);
        let first = |point: usize| report.points[point].runs[0].flows[0].goodput_mbps;
        assert_eq!([first(0), first(1)], [1.0, 101.0]);
    }

    #[test]
    fn only_missing_runs_are_run() {
        let out = tempfile::tempdir().unwrap();
        let (first, simulated) = run(Some(out.path()), 2, usize::MAX);
        assert_eq!(simulated, 4);
        let (again, simulated) = run(Some(out.path()), 2, usize::MAX);
        assert_eq!(simulated, 0);
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&first).unwrap());
        let (_, simulated) = run(Some(out.path()), 3, usize::MAX);
        assert_eq!(simulated, 2);
    }

    #[test]
    fn a_stopped_campaign_keeps_what_is_finished_and_goes_on() {
        let out = tempfile::tempdir().unwrap();
        let (report, _) = run(Some(out.path()), 4, 3);
        let kept: usize = report.points.iter().map(|point| point.runs.len()).sum();
        assert!(report.stopped && (1..8).contains(&kept), "{kept}");
        let (report, simulated) = run(Some(out.path()), 4, usize::MAX);
        assert_eq!(simulated, 8 - kept);
        assert!(!report.stopped && report.points.iter().all(|point| point.runs.len() == 4));
        let hidden = std::fs::read_dir(out.path().join("flows")).unwrap();
        assert_eq!(hidden.count(), 8, "one file a run, and nothing unfinished");
    }
}

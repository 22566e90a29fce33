//! From scenario files to runs: sweeps, seeds, base files, and that threads and the order of work change nothing.

use std::fs;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use campaign::{Campaign, CampaignError, Options, Origin, Plugged, Plugins, Report, Seeds};
use clock::Instant;
use congestion::{Backoff, Cause, Group, NewReno, Rule, WindowRule};
use simulator::{Outside, RunOptions, Simulation};

const TWO_FLOWS: &str = r#"
name = "two flows"
duration = "3s"
seed = 7
[[link]]
between = ["s", "d"]
rate = "2Mbit/s"
delay = "10ms"
queue = "20p"
loss = 0.001
[[flow]]
name = "f"
count = 2
from = "s"
to = "d"
protocol = "tcp"
start = ["0s", "1s"]
"#;

fn options(threads: usize, out: Option<&Path>) -> Options {
    let origin = Origin { version: "1".into(), program: "p".into() };
    let threads = NonZeroUsize::new(threads).unwrap();
    Options { threads, out: out.map(Path::to_owned), interval: None, pcap: false, origin }
}

fn seeds(count: u32) -> Seeds {
    Seeds { first: None, count: NonZeroU32::new(count) }
}

fn run(text: &str, wanted: Seeds, options: &Options) -> (Report, usize) {
    let campaign = Campaign::parse(text, "two.toml", &[], wanted).unwrap();
    let mut found = 0;
    let report = campaign.run(options, &AtomicBool::new(false), |progress| found = progress.found).unwrap();
    (report, found)
}

/// The oracle is the simulator itself, called directly and one run after the other.
#[test]
fn threads_and_order_change_nothing() {
    let scenario = scenario::parse(TWO_FLOWS, "two.toml").unwrap();
    let digest = |seed| {
        let plan = simulator::plan(&scenario, seed).unwrap();
        Simulation::new(&plan, seed).run(&RunOptions::default()).digest
    };
    for threads in [1, 4] {
        let (report, _) = run(TWO_FLOWS, seeds(6), &options(threads, None));
        let runs = &report.points[0].runs;
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [7, 8, 9, 10, 11, 12]);
        for run in runs {
            assert_eq!(run.digest, digest(run.seed), "seed {}", run.seed);
        }
    }
}

#[test]
fn captures_and_samples_do_not_change_a_run() {
    let out = tempfile::tempdir().unwrap();
    let (plain, _) = run(TWO_FLOWS, seeds(1), &options(1, None));
    let interval = Some(clock::Duration::from_millis(10));
    let watched = Options { pcap: true, interval, ..options(1, Some(out.path())) };
    let (watched, _) = run(TWO_FLOWS, seeds(1), &watched);
    assert_eq!(watched.points[0].runs[0].digest, plain.points[0].runs[0].digest);
}

#[test]
fn a_sweep_over_seeds_is_averaged_like_any_seeds() {
    let swept = format!("{TWO_FLOWS}[sweep]\nseed = [7, 8, 9]\n\"flow.f.congestion\" = [\"newreno\", \"cubic\"]\n");
    let (report, _) = run(&swept, Seeds::default(), &options(2, None));
    assert_eq!(report.points.len(), 2);
    assert_eq!(report.points[0].parameters, [("flow.f.congestion".to_owned(), "newreno".to_owned())]);
    for point in &report.points {
        assert_eq!(point.runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [7, 8, 9]);
    }
}

#[test]
fn one_more_value_runs_only_what_is_new() {
    let out = tempfile::tempdir().unwrap();
    let with = |values: &str| format!("{TWO_FLOWS}[sweep]\n\"link.s-d.loss\" = {values}\n");
    let options = options(2, Some(out.path()));
    let (first, found) = run(&with("[0, 0.01]"), seeds(2), &options);
    assert_eq!((found, first.points.len()), (0, 2));
    let (second, found) = run(&format!("# a comment\n{}", with("[0, 0.001, 0.01]")), seeds(2), &options);
    assert_eq!((found, second.points.len()), (4, 3));
    // What was found took no time.
    let mut before = first.points[1].runs.clone();
    before.iter_mut().for_each(|run| run.cpu_s = 0.0);
    assert_eq!(second.points[2].runs, before);
}

#[test]
fn a_base_file_is_found_beside_the_one_that_extends_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("base.toml"), TWO_FLOWS).unwrap();
    let path = directory.path().join("cubic.toml");
    fs::write(&path, "extends = \"base.toml\"\nduration = \"1s\"\n").unwrap();
    let campaign = Campaign::load(&path, &["flow.f.count=3".to_owned()], seeds(1)).unwrap();
    let report = campaign.run(&options(1, None), &AtomicBool::new(false), |_| {}).unwrap();
    let run = &report.points[0].runs[0];
    assert_eq!((run.virtual_s, run.flows.len()), (1.0, 3));
}

#[test]
fn what_nobody_waits_for_is_refused() {
    let refused = |text: &str, wanted| Campaign::parse(text, "two.toml", &[], wanted).err().unwrap();
    assert!(matches!(refused(TWO_FLOWS, seeds(u32::MAX)), CampaignError::TooManyRuns { runs: 4_294_967_295 }));
    let out = tempfile::tempdir().unwrap();
    let campaign = Campaign::parse(TWO_FLOWS, "two.toml", &[], seeds(1)).unwrap();
    let options = Options { interval: Some(clock::Duration::from_nanos(1)), ..options(1, Some(out.path())) };
    let error = campaign.run(&options, &AtomicBool::new(false), |_| {}).unwrap_err();
    assert!(error.to_string().contains("longer --interval"), "{error}");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

/// New Reno that fails at its first loss in the run with this seed, if there is one.
#[derive(Clone, Debug)]
struct Fragile {
    fails: bool,
    failed: Arc<Mutex<Option<Instant>>>,
}

impl WindowRule for Fragile {
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
        NewReno.increase(path, group, acked)
    }

    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
        let mut failed = self.failed.lock().unwrap();
        if self.fails && failed.is_none() {
            *failed = Some(group.now);
        }
        NewReno.decrease(path, group, cause)
    }
}

struct FailsAt(Option<u64>);

impl Plugins for FailsAt {
    fn begin(&self, seed: u64) -> Box<dyn Plugged> {
        Box::new(Fragile { fails: self.0 == Some(seed), failed: Arc::default() })
    }
}

impl Outside for Fragile {
    fn rule(&self, name: &str) -> Option<Rule> {
        (name == "fragile").then(|| Rule::custom("fragile", self.clone()))
    }
}

impl Plugged for Fragile {
    fn failure(&self) -> Option<(Instant, String)> {
        self.failed.lock().unwrap().map(|at| (at, "it broke".to_owned()))
    }
}

#[test]
fn a_rule_from_outside_that_fails_ends_its_run_and_stores_nothing_of_it() {
    let out = tempfile::tempdir().unwrap();
    let plugged = |fails| {
        let text = format!("{TWO_FLOWS}congestion = \"fragile\"\n");
        Campaign::parse_with(&text, "two.toml", &[], seeds(3), Arc::new(FailsAt(fails))).unwrap()
    };
    let stop = AtomicBool::new(false);
    let failed = plugged(Some(8)).run(&options(1, Some(out.path())), &stop, |_| ()).unwrap_err();
    let CampaignError::Plugin { seed: 8, at, what } = &failed else { panic!("{failed}") };
    assert!(!at.is_zero() && what == "it broke", "{failed}");
    assert!(failed.to_string().starts_with("seed 8, "), "{failed}");
    let whole = plugged(None);
    let missing = whole.missing(&options(1, Some(out.path()))).unwrap();
    assert_eq!(missing.iter().map(|run| (run.place, run.seed)).collect::<Vec<_>>(), [(1, 8), (2, 9)]);
    // Where it does not fail it is New Reno.
    let report = plugged(None).run(&options(1, None), &stop, |_| ()).unwrap();
    let (known, _) = run(&format!("{TWO_FLOWS}congestion = \"sack\"\n"), seeds(3), &options(1, None));
    let digests = |report: &Report| report.points[0].runs.iter().map(|run| run.digest).collect::<Vec<_>>();
    assert_eq!(digests(&report), digests(&known));
}

#[test]
fn parts_by_place_are_the_runs_of_the_whole() {
    let whole = Campaign::parse(TWO_FLOWS, "two.toml", &[], seeds(5)).unwrap();
    let origin = options(1, None).origin;
    let names = whole.names(&origin);
    let part = Campaign::parse(TWO_FLOWS, "two.toml", &[], seeds(5)).unwrap().part(|place| place % 3 == 1);
    assert_eq!(part.names(&origin), [names[1].clone(), names[4].clone()]);
    let out = tempfile::tempdir().unwrap();
    part.run(&options(1, Some(out.path())), &AtomicBool::new(false), |_| ()).unwrap();
    let missing = whole.missing(&options(1, Some(out.path()))).unwrap();
    assert_eq!(missing.iter().map(|run| run.place).collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn series_are_kept_where_nothing_is_stored() {
    let campaign = Campaign::parse(TWO_FLOWS, "two.toml", &[], seeds(2)).unwrap();
    let options = Options { interval: Some(clock::Duration::from_millis(500)), ..options(2, None) };
    let rows = Mutex::new(Vec::new());
    let keep = |place, series: &campaign::Series| rows.lock().unwrap().push((place, series.flows.rows()));
    campaign.run_and_keep(&options, &AtomicBool::new(false), keep, |_| ()).unwrap();
    let mut rows = rows.into_inner().unwrap();
    rows.sort_unstable();
    // Two flows every half second of three.
    assert_eq!(rows, [(0, 12), (1, 12)]);
}

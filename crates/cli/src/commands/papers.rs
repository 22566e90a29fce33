//! `sinnet papers`: the experiments of the papers, published beside measured.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use campaign::Origin;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use papers::{Experiment, Laboratory, PapersError, Published, Results, Row, Settings};

use super::sim::{INTERRUPTED, stop_on_signals};
use super::{Failure, sim};
use crate::output;

/// Longer than this is asked about, in seconds.
const LONG: f64 = 3600.0;
pub(super) const STEPS: u64 = 10_000;

/// Reproduce the experiments of the papers on multipath HIP: published beside measured, with a verdict. Finished runs are kept
/// and not run again by the same program.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the experiments.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run experiments and print published, measured, accepted range and verdict, and the relations.
    Run {
        #[command(flatten)]
        run: Run,
        /// Fail where the red rows are not those that are known, with their reasons, for 3 seeds.
        #[arg(long)]
        check: bool,
    },
    /// Run what is missing and write one HTML file that opens without a network.
    Report(Run),
}

#[derive(Debug, clap::Args)]
// A variant of this name has a group of its own.
#[group(id = "experiments")]
struct Run {
    /// Experiments, or groups of them such as mhip-friendliness; all if none is given.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Independent runs of each setting.
    #[arg(long, value_name = "K", default_value = "25")]
    seeds: NonZeroU32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where finished runs are kept, and the report is written.
    #[arg(long, value_name = "DIR", default_value = "sinnet-papers")]
    out: PathBuf,
    /// Run also what takes hours.
    #[arg(long)]
    yes: bool,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Some(Action::List { json }) => list(*json),
        Some(Action::Run { run, check }) => measure(run, *check),
        Some(Action::Report(run)) => report(run),
        None => list(false),
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let published = published()?;
    if json {
        let entries: Vec<_> = papers::all()
            .map(|experiment| {
                let paper = published.get(experiment.id).map(|published| published.paper);
                serde_json::json!({"id": experiment.id, "paper": paper, "title": experiment.title})
            })
            .collect();
        return output::json(&entries);
    }
    let mut text = String::new();
    for experiment in papers::all() {
        let place = published.get(experiment.id).map_or_else(
            || "no paper".to_owned(),
            |published| format!("paper [{}] {}", published.paper, published.place),
        );
        text.push_str(&format!("{:34} {:46} {place}\n", experiment.id, experiment.title));
    }
    output::result(text.trim_end())
}

fn measure(run: &Run, check: bool) -> Result<(), Failure> {
    let (experiments, results, stopped) = results(run)?;
    let rows = rows(&experiments, &results)?;
    if run.json {
        output::json(&rows)?;
    } else {
        output::result(&papers::table(&rows))?;
    }
    match stopped {
        Some(stopped) => Err(stopped),
        None if check => compare(&rows),
        None => Ok(()),
    }
}

/// Whether the red rows are the known ones.
fn compare(rows: &[Row]) -> Result<(), Failure> {
    let differences = papers::differences(rows, &papers::reasons().map_err(failure)?);
    if differences.is_empty() {
        return Ok(());
    }
    let list = "the list of known red rows is crates/papers/assets/reasons.toml, for 3 seeds";
    Err(Failure::failed(format!("{}\n{list}", differences.join("\n"))))
}

fn report(run: &Run) -> Result<(), Failure> {
    let (experiments, results, stopped) = results(run)?;
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    let ids: String = run.ids.iter().map(|id| format!(" {id}")).collect();
    let command = format!("sinnet papers report{ids} --seeds {}", run.seeds);
    let page = papers::report(&experiments, &results, env!("CARGO_PKG_VERSION"), &command).map_err(failure)?;
    let path = run.out.join("report.html");
    std::fs::write(&path, page).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    if run.json {
        return output::json(&rows(&experiments, &results)?);
    }
    output::result(&format!("{}", path.display()))
}

fn rows(experiments: &[&Experiment], results: &Results) -> Result<Vec<Row>, Failure> {
    let published = published()?;
    Ok(experiments
        .iter()
        .flat_map(|experiment| papers::evaluate(experiment, published.get(experiment.id), results).0)
        .collect())
}

type Measured = (Vec<&'static Experiment>, Results, Option<Failure>);

/// Runs what is missing; the failure tells of what was stopped before the end.
fn results(run: &Run) -> Result<Measured, Failure> {
    let experiments = papers::find(&run.ids).map_err(failure)?;
    let settings = Settings {
        seeds: run.seeds,
        threads: run.threads.unwrap_or_else(sim::processors),
        out: run.out.clone(),
        origin: Origin::here(),
    };
    let laboratory = Laboratory::prepare(&experiments, run.seeds).map_err(failure)?;
    let seconds = laboratory.estimate(&settings).map_err(failure)?;
    if seconds > LONG && !run.yes {
        let message = format!(
            "{} runs would take about {}: take fewer --seeds or name some experiments, or say --yes",
            laboratory.runs(),
            long(seconds)
        );
        return Err(Failure::input(message));
    }
    let stop = stop_on_signals()?;
    let bar = bar();
    bar.println(format!("{} runs, about {} where none is kept from before", laboratory.runs(), long(seconds)));
    let results = laboratory.run(&settings, &stop, |progress| {
        bar.set_position((progress.fraction * STEPS as f64) as u64);
        bar.set_message(format!("{}: {} of {} runs", progress.case, progress.finished, progress.runs));
    });
    bar.finish_and_clear();
    let results = results.map_err(failure)?;
    let stopped = stop.load(std::sync::atomic::Ordering::Relaxed).then(|| {
        let message = "stopped: what is finished is kept; the same command runs the rest".to_owned();
        Failure { message, exit: INTERRUPTED }
    });
    Ok((experiments, results, stopped))
}

/// A bar on the standard error, where that is a terminal.
pub(super) fn bar() -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(STEPS), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}  {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// "40 seconds", "12 minutes", "3.5 hours".
fn long(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} seconds"),
        s if s < 6000.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

fn published() -> Result<BTreeMap<String, Published>, Failure> {
    let all = papers::published().map_err(failure)?;
    Ok(all.into_iter().map(|published| (published.id.clone(), published)).collect())
}

fn failure(error: PapersError) -> Failure {
    Failure::input(error.to_string())
}

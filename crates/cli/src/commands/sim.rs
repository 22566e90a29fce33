//! `sinnet sim`: a scenario in virtual time, over seeds and sweeps.

use std::collections::BTreeMap;
use std::env;
use std::io::IsTerminal as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use campaign::{Campaign, CampaignError, Options, Origin, Progress, Seeds, Shard};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::{Failure, cluster};
use crate::output;

/// Exit status after Ctrl-C, as shells have it: 128 + SIGINT.
pub(super) const INTERRUPTED: u8 = 130;
/// The bar counts in thousandths of the virtual time to be simulated.
const STEPS: u64 = 1000;

/// Run a scenario in virtual time, once per seed and point of its sweep, on all cores, and print what each flow and link
/// got. With --out, Ctrl-C keeps what is finished, and the same command goes on from there.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    runs: Runs,
    /// Store results in DIR, as Parquet with the scenario and version that made them. What DIR has already is not run again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Store what crossed each link in DIR/pcap, for Wireshark.
    #[arg(long, requires = "out")]
    pcap: bool,
    /// Time between the samples of the stored time series, such as 10ms.
    #[arg(long, value_name = "T", requires = "out", default_value = "100ms", value_parser = interval)]
    interval: clock::Duration,
    /// Print a row per run and flow, comma-separated.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Check the scenario, list the points of its sweep with their seeds, and run nothing.
    #[arg(long, conflicts_with_all = ["csv", "out"])]
    dry_run: bool,
    /// Run the K-th of N parts, for a cluster; all may write to one DIR. auto/N takes K from SLURM_ARRAY_TASK_ID or
    /// JOB_COMPLETION_INDEX. Without it, the same command then finds all runs and writes the tables over them.
    #[arg(long, value_name = "K/N", requires = "out", conflicts_with = "csv", value_parser = shard)]
    shard: Option<Shard>,
    /// Print a script that runs this command as an array of N Slurm jobs, and run nothing.
    #[arg(long, value_name = "N", requires = "out", conflicts_with_all = ["shard", "print_k8s"])]
    print_slurm: Option<NonZeroU32>,
    /// Print a Kubernetes Job of N pods that run this command, and run nothing.
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "shard")]
    print_k8s: Option<NonZeroU32>,
}

impl Arguments {
    /// The same command without what says how many of its runs are run where.
    fn words(&self) -> Vec<String> {
        let mut words = self.runs.words();
        if let Some(out) = &self.out {
            words.extend(["--out".to_owned(), out.to_string_lossy().into_owned()]);
            words.extend(["--interval".to_owned(), format!("{}s", self.interval.as_secs_f64())]);
        }
        words.extend(self.pcap.then(|| "--pcap".to_owned()));
        words
    }
}

/// What is run, how often, and how it is told: the same for all that runs a scenario.
#[derive(Debug, clap::Args)]
pub(super) struct Runs {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// The seed, or the first of them, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run so many seeds, one after the other from the first.
    #[arg(long, value_name = "K")]
    seeds: Option<NonZeroU32>,
    /// Set a key of the scenario: duration=60s, link.a-b.rate=4Mbit/s, flow.*.congestion=cubic. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Runs {
    /// The runs that are asked for.
    pub(super) fn campaign(&self) -> Result<Campaign, Failure> {
        let seeds = Seeds { first: self.seed, count: self.seeds };
        Campaign::load(&self.scenario, &self.assignments, seeds).map_err(failure)
    }

    /// The words that ask for them, after the name of a command.
    fn words(&self) -> Vec<String> {
        let mut words = vec![self.scenario.to_string_lossy().into_owned()];
        words.extend(self.seed.into_iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
        words.extend(self.seeds.into_iter().flat_map(|seeds| ["--seeds".to_owned(), seeds.to_string()]));
        words.extend(self.assignments.iter().flat_map(|assignment| ["--set".to_owned(), assignment.clone()]));
        words
    }

    /// Runs at the same time.
    pub(super) fn threads(&self) -> NonZeroUsize {
        self.threads.unwrap_or_else(processors)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let campaign = arguments.runs.campaign()?;
    if arguments.dry_run {
        return list(&campaign, arguments.runs.json);
    }
    let words = || arguments.words();
    if let Some(jobs) = arguments.print_slurm {
        return output::result(&cluster::slurm(jobs, &program()?, words())?);
    }
    if let Some(jobs) = arguments.print_k8s {
        return output::result(&cluster::kubernetes(jobs, words()));
    }
    let campaign = match arguments.shard {
        Some(shard) => campaign.only(shard),
        None => campaign,
    };
    let options = Options {
        threads: arguments.runs.threads(),
        out: arguments.out.clone(),
        interval: arguments.out.as_ref().map(|_| arguments.interval),
        pcap: arguments.pcap,
        origin: Origin::here(),
    };
    if let Some(remark) = campaign.remark() {
        output::error(&remark);
    }
    let stop = stop_on_signals()?;
    let bar = bar();
    let report = campaign.run(&options, &stop, |progress| show(&bar, &progress));
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    if let Some(shard) = arguments.shard {
        // Means over a part of the runs would be taken for those of all.
        let finished: usize = report.points.iter().map(|point| point.runs.len()).sum();
        match arguments.runs.json {
            true => output::json(
                &serde_json::json!({"shard": shard.to_string(), "runs": campaign.runs(), "finished": finished}),
            )?,
            false => output::result(&format!("shard {shard}: {finished} of {} runs stored", campaign.runs()))?,
        }
    } else if arguments.csv {
        output::result(report.csv().trim_end())?;
    } else if arguments.runs.json {
        output::json(&report)?;
    } else {
        output::result(report.to_string().trim_end())?;
    }
    if report.stopped {
        let kept: usize = report.points.iter().map(|point| point.runs.len()).sum();
        let rest = if arguments.out.is_some() {
            "the same command runs the rest"
        } else {
            "with --out DIR they could be kept"
        };
        let message = format!("stopped: {kept} of {} runs are finished; {rest}", campaign.runs());
        return Err(Failure { message, exit: INTERRUPTED });
    }
    Ok(())
}

/// What would be run.
fn list(campaign: &Campaign, json: bool) -> Result<(), Failure> {
    if json {
        let points: Vec<_> = campaign
            .points()
            .map(|(values, seeds)| {
                let values: BTreeMap<_, _> = values.iter().cloned().collect();
                serde_json::json!({"parameters": values, "seeds": seeds})
            })
            .collect();
        return output::json(&serde_json::json!({"runs": campaign.runs(), "points": points}));
    }
    let mut text = match campaign.runs() {
        1 => "1 run\n".to_owned(),
        runs => format!("{runs} runs\n"),
    };
    for (values, seeds) in campaign.points() {
        let values: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let values = if values.is_empty() { "the scenario as it is".to_owned() } else { values.join(", ") };
        let seeds = match seeds {
            [seed] => format!("seed {seed}"),
            [first, .., last] => format!("{} seeds, {first} to {last}", seeds.len()),
            [] => "no seed".to_owned(),
        };
        text.push_str(&format!("{values}: {seeds}\n"));
    }
    output::result(text.trim_end())
}

/// As many as the machine has.
pub(super) fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The first signal asks for an end, a second one does not ask.
pub(super) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    Ok(stop)
}

/// A bar on the standard error, where that is a terminal.
fn bar() -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(STEPS), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}  {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    bar.set_position((progress.fraction * STEPS as f64) as u64);
    let Progress { runs, found, finished, .. } = progress;
    let found = if *found > 0 { format!(", {found} from before") } else { String::new() };
    bar.set_message(format!("{finished} of {runs} runs{found}"));
}

fn shard(text: &str) -> Result<Shard, String> {
    Shard::parse(text, |name| env::var(name).ok())
}

/// The file of this program.
fn program() -> Result<String, Failure> {
    let path =
        env::current_exe().map_err(|error| Failure::failed(format!("this program cannot find itself: {error}")))?;
    Ok(path.to_string_lossy().into_owned())
}

pub(super) fn interval(text: &str) -> Result<clock::Duration, String> {
    match scenario::time(text) {
        Some(time) if !time.is_zero() => Ok(time),
        _ => Err("a time above zero is needed, such as 10ms or 0.5s".to_owned()),
    }
}

pub(super) fn failure(error: CampaignError) -> Failure {
    Failure::input(error.to_string())
}

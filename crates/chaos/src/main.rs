//! `cargo chaos`: runs seeds of the campaign, replays and shrinks what they find.

use chaos::campaign::{Batch, Journal, conduct};
use chaos::{Plan, Property, Shape, campaign, draw, run_twice, shrink, story};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Faults and attacks over whole Sinnet hosts in virtual time, and what has to hold whatever happens.
///
/// Exit code 0: nothing was found; 1: something was; 2: it could not be run.
#[derive(Debug, Parser)]
#[command(name = "chaos", version)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000, conflicts_with = "replay")]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Hosts: 2 to 32, or 0 for three to eight by the seed.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=32))]
    hosts: u8,
    /// Two hosts for a virtual day, or with one seed in eight a week.
    #[arg(long, conflicts_with = "hosts")]
    long: bool,
    /// Threads; all cores where it is left out.
    #[arg(long)]
    jobs: Option<usize>,
    /// End after so many findings.
    #[arg(long, default_value_t = 10)]
    findings: usize,
    /// Look for findings of this property alone, such as S4.
    #[arg(long)]
    property: Option<Property>,
    /// Keep finished batches in this file, and go on from it.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Run the plan in this file, or of this seed.
    #[arg(long, value_name = "FILE|SEED")]
    replay: Option<String>,
    /// Make a replayed plan that fails smaller, and print it.
    #[arg(long, requires = "replay")]
    shrink: bool,
    /// Print the plan of a replay as JSON, and do not run it.
    #[arg(long, requires = "replay")]
    print: bool,
    /// Tell what happens in a replay: faults, events of hosts, packets of HIP.
    #[arg(long, requires = "replay")]
    story: bool,
    /// JSON instead of sentences.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn shape(&self) -> Shape {
        match (self.long, self.hosts) {
            (true, _) => Shape::Long,
            (_, 0) => Shape::Many,
            (_, 1 | 2) => Shape::Two,
            (_, hosts) => Shape::Hosts(hosts.into()),
        }
    }

    fn options(&self) -> String {
        match self.shape() {
            Shape::Two => String::new(),
            Shape::Long => " --long".into(),
            Shape::Many => " --hosts 0".into(),
            Shape::Hosts(hosts) => format!(" --hosts {hosts}"),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    chaos::catch_panics();
    let done = match &arguments.replay {
        Some(what) => replay(&arguments, what),
        None => seeds(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            tell(&format!("chaos: {sentence}"));
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "for the person at the terminal")]
fn tell(text: &str) {
    eprintln!("{text}");
}

#[expect(clippy::print_stdout, reason = "the result")]
fn print(text: &str) {
    println!("{text}");
}

/// Notices Ctrl-C; a second one ends the process at once.
fn interrupt() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag)).map_err(|e| e.to_string())?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(|error| error.to_string())?;
    }
    Ok(flag)
}

fn seeds(arguments: &Arguments) -> Result<bool, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let job = campaign::Job {
        first: arguments.first,
        seeds: arguments.seeds,
        shape: arguments.shape(),
        jobs: arguments.jobs.unwrap_or(cores),
        findings: arguments.findings,
        property: arguments.property,
    };
    let stop = interrupt()?;
    let mut journal = match &arguments.resume {
        Some(path) => Some(Journal::open(path, &job).map_err(|error| error.to_string())?),
        None => None,
    };
    let bar = ProgressBar::new(job.seeds);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} seeds, {per_sec}, {eta} left {msg}") {
        bar.set_style(style);
    }
    let mut told = 0;
    let total = conduct(&job, journal.as_mut(), &stop, |total| {
        bar.set_position(total.seeds);
        for (seed, finding) in total.findings.get(told..).unwrap_or_default() {
            bar.suspend(|| {
                tell(&format!("seed {seed}: {finding}\n  cargo chaos{} --replay {seed} --shrink", arguments.options()));
            });
        }
        told = total.findings.len();
    });
    let total = total.map_err(|error| format!("the file of finished batches: {error}"))?;
    bar.finish_and_clear();
    if arguments.json {
        print(&serde_json::to_string(&total).map_err(|error| error.to_string())?);
    } else {
        print(&table(&total));
    }
    if stop.load(Ordering::Relaxed) {
        tell("interrupted; finished batches are kept where --resume names a file");
    }
    Ok(total.findings.is_empty())
}

/// What was looked at, and how often; what never was is red.
fn table(total: &Batch) -> String {
    let hours = total.virtual_ms as f64 / 3_600_000.0;
    let mut text = format!("{} seeds, {} packets, {hours:.1} virtual hours\n", total.seeds, total.packets);
    for property in Property::ALL {
        let (count, found) =
            (total.tally.of(property), total.findings.iter().filter(|(_, f)| f.property == property).count());
        let row = format!("{property}  {count:>12}  {:<62}", property.text());
        text += &match (count, found) {
            (_, 1..) => format!("{}\n", console(&format!("{row} {found} FOUND"))),
            (0, _) => format!("{}\n", console(&format!("{row} never looked at"))),
            _ => format!("{row}\n"),
        };
    }
    text
}

fn console(text: &str) -> String {
    format!("\x1b[31m{text}\x1b[0m")
}

fn replay(arguments: &Arguments, what: &str) -> Result<bool, String> {
    let plan: Plan = match what.parse() {
        Ok(seed) => draw(seed, arguments.shape()),
        Err(_) => {
            let text = std::fs::read_to_string(what).map_err(|error| format!("{what}: {error}"))?;
            serde_json::from_str(&text).map_err(|error| format!("{what}: {error}"))?
        }
    };
    let json = |plan: &Plan| serde_json::to_string_pretty(plan).map_err(|error| error.to_string());
    if arguments.print {
        print(&json(&plan)?);
        return Ok(true);
    }
    if arguments.story {
        story(&plan).iter().for_each(|line| print(line));
    }
    let outcome = run_twice(&plan);
    if arguments.json {
        print(&serde_json::to_string(&outcome).map_err(|error| error.to_string())?);
    }
    let Some(finding) = outcome.finding else {
        tell(&format!("nothing was found; {} packets, hash {:x}", outcome.packets, outcome.hash));
        return Ok(true);
    };
    tell(&finding.to_string());
    if arguments.shrink {
        let stop = interrupt()?;
        let small = shrink(&plan, finding.property, 2_000, |_, _| stop.load(Ordering::Relaxed));
        tell(&format!("{} of {} events are left", small.events.len(), plan.events.len()));
        print(&json(&small)?);
    }
    Ok(false)
}

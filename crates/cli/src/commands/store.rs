//! `sinnet store`: what `sinnet sim --out` has stored, on one machine or on many.

use std::collections::BTreeMap;
use std::path::PathBuf;

use campaign::{Options, Origin};

use super::Failure;
use super::sim::{self, Runs};
use crate::output;

/// Look at stored campaigns, and make one of several.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Status(Status),
    Missing(ListMissing),
    Merge(Merge),
}

/// Tell what a directory of `sinnet sim --out` holds.
#[derive(Debug, clap::Args)]
struct Status {
    /// The directory.
    #[arg(value_name = "DIR")]
    store: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// List the runs of a campaign that are not stored yet. Exit status 1 if there are any.
#[derive(Debug, clap::Args)]
struct ListMissing {
    #[command(flatten)]
    runs: Runs,
    /// Where they are to be.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Time between the samples of the stored time series.
    #[arg(long, value_name = "T", default_value = "100ms", value_parser = sim::interval)]
    interval: clock::Duration,
}

/// Copy the runs of several directories into one. Each file is compared with what its run wrote.
#[derive(Debug, clap::Args)]
struct Merge {
    /// Where all are to be; made if it is not there.
    #[arg(value_name = "INTO")]
    into: PathBuf,
    /// Where they are; nothing is changed there.
    #[arg(value_name = "FROM", required = true)]
    from: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Status(arguments) => status(arguments),
        Command::Missing(arguments) => missing(arguments),
        Command::Merge(arguments) => merge(arguments),
    }
}

fn status(arguments: &Status) -> Result<(), Failure> {
    let contents = campaign::contents(&arguments.store).map_err(|error| Failure::input(error.to_string()))?;
    if arguments.json {
        return output::json(&contents);
    }
    let mut text = format!(
        "{}, version {}\n{}, {:.1} MB of series and captures\n",
        contents.scenario,
        contents.version,
        runs(contents.runs),
        contents.bytes as f64 / 1e6
    );
    for (count, what) in [
        (contents.of_other_programs, "of other builds of the program"),
        (contents.incomplete, "lack a file: they are run again"),
    ] {
        if count > 0 {
            text.push_str(&format!("{} {what}\n", runs(count)));
        }
    }
    if !contents.has_summary {
        text.push_str("no tables over all runs yet: `sinnet sim` without --shard writes them\n");
    }
    output::result(text.trim_end())
}

fn missing(arguments: &ListMissing) -> Result<(), Failure> {
    let campaign = arguments.runs.campaign()?;
    let options = Options {
        threads: arguments.runs.threads(),
        out: Some(arguments.out.clone()),
        interval: Some(arguments.interval),
        pcap: false,
        origin: Origin::here(),
    };
    let missing = campaign.missing(&options).map_err(sim::failure)?;
    if arguments.runs.json {
        let each = missing.iter().map(|run| {
            let values: BTreeMap<_, _> = run.parameters.iter().cloned().collect();
            serde_json::json!({"parameters": values, "seed": run.seed})
        });
        output::json(&serde_json::json!({"runs": campaign.runs(), "missing": each.collect::<Vec<_>>()}))?;
    } else {
        let mut text = format!("{} of {} are missing\n", missing.len(), runs(campaign.runs()));
        for run in &missing {
            let values: String = run.parameters.iter().map(|(key, value)| format!(" {key}={value}")).collect();
            text.push_str(&format!("seed {}{values}\n", run.seed));
        }
        output::result(text.trim_end())?;
    }
    match missing.len() {
        0 => Ok(()),
        _ => Err(Failure::failed("the same command as `sinnet sim` runs them")),
    }
}

fn merge(arguments: &Merge) -> Result<(), Failure> {
    let merged =
        campaign::merge(&arguments.into, &arguments.from).map_err(|error| Failure::input(error.to_string()))?;
    if arguments.json {
        return output::json(&merged);
    }
    output::result(&format!(
        "{} added, {} there already; the same `sinnet sim` without --shard writes the tables over all",
        runs(merged.added),
        merged.there
    ))
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

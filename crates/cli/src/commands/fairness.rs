//! `sinnet fairness`: what each notion of fairness expects of a scenario, beside what its runs measure.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use campaign::{Campaign, CampaignError, FairnessReport, Options, Seeds};

use super::Failure;
use super::sim::{INTERRUPTED, origin, processors, stop_on_signals};
use crate::output;

/// Print the allocation that each notion of fairness expects of a scenario (link-centric by sub-flow and by flow,
/// network-centric, proportional) next to what `sinnet sim` measures, with Jain's index and the goals of RFC 6356.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// The seed, or the first of them, instead of the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run so many seeds, one after the other from the first.
    #[arg(long, value_name = "K")]
    seeds: Option<NonZeroU32>,
    /// Set a key of the scenario, as for `sinnet sim`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seeds = Seeds { first: arguments.seed, count: arguments.seeds };
    let campaign = Campaign::load(&arguments.scenario, &arguments.assignments, seeds).map_err(failure)?;
    // What makes no sense is told before the first run.
    let expectations = campaign.expectations().map_err(failure)?;
    let options = Options {
        threads: arguments.threads.unwrap_or_else(processors),
        out: None,
        interval: None,
        pcap: false,
        origin: origin(false)?,
    };
    let stop = stop_on_signals()?;
    let report = campaign.run(&options, &stop, |_| {}).map_err(failure)?;
    let fairness = FairnessReport::new(expectations, &report);
    if arguments.json {
        output::json(&fairness.to_json())?;
    } else {
        output::result(fairness.to_string().trim_end())?;
    }
    if report.stopped {
        return Err(Failure { message: "stopped: not all runs are finished".to_owned(), exit: INTERRUPTED });
    }
    Ok(())
}

fn failure(error: CampaignError) -> Failure {
    Failure::input(error.to_string())
}

//! `sinnet fairness`: what each notion of fairness expects of a scenario, beside what its runs measure.

use campaign::{CampaignError, FairnessReport, Options, Origin};

use super::Failure;
use super::sim::{INTERRUPTED, Runs, stop_on_signals};
use crate::output;

/// Print the allocation that each notion of fairness expects of a scenario (link-centric by sub-flow and by flow,
/// network-centric, proportional) next to what `sinnet sim` measures, with Jain's index and the goals of RFC 6356.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    runs: Runs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let campaign = arguments.runs.campaign()?;
    // What makes no sense is told before the first run.
    let expectations = campaign.expectations().map_err(failure)?;
    let options =
        Options { threads: arguments.runs.threads(), out: None, interval: None, pcap: false, origin: Origin::here() };
    let stop = stop_on_signals()?;
    let report = campaign.run(&options, &stop, |_| {}).map_err(failure)?;
    let fairness = FairnessReport::new(expectations, &report);
    if arguments.runs.json {
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

//! `sinnet friendliness`: what senders get over random networks beside others, with what a TCP in their place gets.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use campaign::Origin;
use clap::ValueEnum;
use clock::Duration;
use papers::friendliness::{How, Measurement, Sender, Shared, UnknownSender, lines, table};

use super::sim::{INTERRUPTED, processors, stop_on_signals};
use super::{Failure, papers as bars};
use crate::output;

/// Measure friendliness over random networks: the part that a sender gets of a bottleneck over that of the one beside it, with that
/// of a TCP in its place. Networks have two or three paths of 3 to 30 Mbit/s and 6 to 60 ms one way, drop-tail queues of 0.2 to 5
/// bandwidth-delay products, RED, CoDel, FQ-CoDel or PIE; in half of them all paths go through one bottleneck.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many networks.
    #[arg(long, value_name = "N", default_value = "60")]
    networks: NonZeroU32,
    /// What all is drawn from.
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Who is measured: sinnet, tcp, mptcp or cmt-sctp, with a congestion control after a colon if it is not the usual one.
    #[arg(long, value_name = "SENDERS", value_delimiter = ',', default_value = "sinnet,tcp:cubic")]
    tested: Vec<String>,
    /// Beside whom, one after the other; of several paths, all are shared.
    #[arg(long, value_name = "SENDERS", value_delimiter = ',', default_value = "tcp:reno,tcp:cubic")]
    beside: Vec<String>,
    /// The TCPs that travel inside of sinnet.
    #[arg(long, value_name = "TCPS", value_delimiter = ',', default_value = "cubic")]
    inside: Vec<String>,
    /// How many compete with the one that is measured.
    #[arg(long, value_name = "N", default_value = "1")]
    rivals: NonZeroU32,
    /// Only networks in which that much is shared.
    #[arg(long, value_name = "WHAT")]
    shared: Option<WhatIsShared>,
    /// How long is measured.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time)]
    duration: Duration,
    /// How long before nothing is measured.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    warm_up: Duration,
    /// How long hosts take for a packet, as `processing` of a scenario.
    #[arg(long, value_name = "HOW", default_value = "wander")]
    processing: String,
    /// Also a line for each queue discipline, and for what is shared.
    #[arg(long)]
    each: bool,
    /// Print JSON: the lines, and what came of each network.
    #[arg(long)]
    json: bool,
    /// Keep finished runs in DIR: the same command goes on from there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhatIsShared {
    /// The first path's bottleneck.
    First,
    /// One bottleneck of all paths.
    All,
}

fn time(text: &str) -> Result<Duration, String> {
    let time = scenario::time(text).filter(|time| *time <= Duration::from_secs(86_400));
    time.ok_or_else(|| "write a time up to a day, as \"120s\"".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let senders =
        |texts: &[String]| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Sender>, UnknownSender>>();
    let unknown = |error: UnknownSender| Failure::input(error.to_string());
    let measurement = Measurement {
        seed: arguments.seed,
        networks: arguments.networks.get().into(),
        only: arguments.shared.map(|shared| match shared {
            WhatIsShared::First => Shared::First,
            WhatIsShared::All => Shared::All,
        }),
        tested: senders(&arguments.tested).map_err(unknown)?,
        beside: senders(&arguments.beside).map_err(unknown)?,
        inside: arguments.inside.clone(),
        rivals: arguments.rivals.get(),
        warm_up: arguments.warm_up,
        measured: arguments.duration,
        processing: arguments.processing.clone(),
    };
    let how = How {
        threads: arguments.threads.unwrap_or_else(processors),
        out: arguments.out.clone(),
        origin: Origin::here(),
    };
    let stop = stop_on_signals()?;
    let bar = bars::bar();
    let outcomes = measurement.run(&how, &stop, |part| bar.set_position((part * bars::STEPS as f64) as u64));
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|error| Failure::input(error.to_string()))?;
    let lines = lines(&outcomes, arguments.each);
    if arguments.json {
        output::json(&serde_json::json!({ "lines": lines, "networks": outcomes }))?;
    } else {
        output::result(table(&lines).trim_end())?;
    }
    if stop.load(Ordering::Relaxed) {
        let message = "stopped: with --out, the same command runs the rest".to_owned();
        return Err(Failure { message, exit: INTERRUPTED });
    }
    Ok(())
}

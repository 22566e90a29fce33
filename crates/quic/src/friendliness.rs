//! Friendliness over random networks with QUIC inside: those of `sinnet friendliness`, in the virtual laboratory.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;

use campaign::Origin;
use campaign::workers::{Tick, for_each};
use clock::Duration;
use indicatif::ProgressBar;
use lab::{Guest as _, Hosts, Progress};
use papers::friendliness::{How, InLaboratory, Measurement, Outcome, Sender, UnknownSender, lines, table};

use crate::{Congestion, Quic};

/// Measure friendliness over the random networks of `sinnet friendliness` in the virtual laboratory, with QUIC inside; a CUBIC in its place
/// is the simulator's. Goodput counts.
#[derive(Debug, clap::Args)]
pub struct Friendliness {
    /// How many networks.
    #[arg(long, value_name = "N", default_value = "40")]
    networks: NonZeroU32,
    /// What all is drawn from.
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,
    /// Beside which TCPs, one after the other.
    #[arg(long, value_name = "SENDERS", value_delimiter = ',', default_value = "tcp:reno,tcp:cubic")]
    beside: Vec<String>,
    /// The server's congestion control: cubic, newreno or bbr.
    #[arg(long, default_value = "cubic")]
    congestion: Congestion,
    /// How long is measured.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    duration: Duration,
    /// How long before nothing is measured.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    warm_up: Duration,
    /// Also a line for each queue discipline, and for what is shared.
    #[arg(long)]
    each: bool,
    /// Print JSON: the lines, and what came of each network.
    #[arg(long)]
    json: bool,
    /// Runs at the same time; as many as there are processors if not given.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

fn time(text: &str) -> Result<Duration, String> {
    scenario::time(text).ok_or_else(|| "write a time, as \"60s\"".to_owned())
}

impl Friendliness {
    /// What it prints.
    ///
    /// # Errors
    /// A sentence about what is wrong with the options, or why a network does not run.
    pub fn run(&self) -> Result<String, String> {
        let senders =
            |texts: &[String]| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Sender>, UnknownSender>>();
        let senders = |texts: &[String]| senders(texts).map_err(|error| error.to_string());
        let sinnet = Measurement {
            seed: self.seed,
            networks: self.networks.get().into(),
            only: None,
            tested: senders(&["sinnet".to_owned()])?,
            beside: senders(&self.beside)?,
            inside: vec![String::new()],
            rivals: 1,
            warm_up: self.warm_up,
            measured: self.duration,
            processing: "wander".to_owned(),
        };
        let in_place = Measurement { tested: senders(&["tcp:cubic".to_owned()])?, ..sinnet.clone() };
        let threads = self.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
        let mut outcomes = self.all(&sinnet, threads)?;
        let how = How { threads, out: None, origin: Origin::here() };
        let tcp = in_place.run(&how, &AtomicBool::new(false), |_| {}).map_err(|error| error.to_string())?;
        outcomes.extend(tcp);
        let lines = lines(&outcomes, self.each);
        if self.json {
            let told = serde_json::json!({ "lines": lines, "networks": outcomes });
            return serde_json::to_string_pretty(&told).map_err(|error| error.to_string());
        }
        Ok(table(&lines).trim_end().to_owned())
    }

    /// What came of all networks, several at a time.
    fn all(&self, measurement: &Measurement, threads: NonZeroUsize) -> Result<Vec<Outcome>, String> {
        let networks = measurement.in_laboratory().map_err(|error| error.to_string())?;
        let bar = ProgressBar::new(networks.len() as u64);
        let one = |index: usize| networks.get(index).map(|network| self.one(network)).transpose();
        let look = |tick| bar.inc(u64::from(matches!(tick, Tick::Finished)));
        let done = for_each(networks.len(), threads, &AtomicBool::new(false), one, look);
        bar.finish_and_clear();
        done.error.map_or_else(|| Ok(done.results.into_iter().flatten().collect()), Err)
    }

    fn one(&self, network: &InLaboratory<'_>) -> Result<Outcome, String> {
        let guest = Quic { congestion: self.congestion, executable: PathBuf::new() };
        let scenario = network.document.scenario().map_err(|error| error.to_string())?;
        let how = lab::Options { directory: None, hosts: Hosts::Virtual, executable: PathBuf::new(), together: true };
        let report =
            lab::run_with(&scenario, &how, Some(&guest), &mut Progress::silent()).map_err(|error| error.to_string())?;
        let rivals: Vec<f64> = report.flows.iter().skip(1).map(|flow| flow.mbps).collect();
        let outcome = report.ff_shared.and_then(|factor| network.outcome(&guest.congestion(), factor, &rivals));
        outcome.ok_or_else(|| format!("nothing has arrived in {}", report.name))
    }
}

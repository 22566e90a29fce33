//! How friendly senders are over random networks: what each gets beside a TCP, with what a TCP in its place gets.
//!
//! Networks have two or three paths of 3 to 30 Mbit/s and 6 to 60 ms one way; in half of them the first path's bottleneck is shared
//! with the competitor, in the other half all paths go through one. Queues are drop-tail of 0.2 to 5 bandwidth-delay products in six of
//! ten, else RED, CoDel, FQ-CoDel or PIE. The friendliness factor is what the tested sender gets of what it shares, over what the
//! competitor gets.

mod network;
mod sender;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use campaign::{Campaign, Options, Origin, Seeds};
use clock::Duration;
use fairness::jain;
use scenario::{Document, Point};
use simulator::{FlowResult, RunResult};

use crate::PapersError;
use network::Network;

pub use network::Shared;
pub use sender::{Sender, UnknownSender};
pub use table::{Line, Share, lines, table};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What all is drawn from.
    pub seed: u64,
    /// How many networks.
    pub networks: u64,
    /// Only those in which this is shared.
    pub only: Option<Shared>,
    /// Who is tested, each in every network.
    pub tested: Vec<Sender>,
    /// Who competes with it, one after the other.
    pub beside: Vec<Sender>,
    /// What travels inside of those tested that carry something: the names of TCPs.
    pub inside: Vec<String>,
    /// How many of them compete.
    pub rivals: u32,
    /// How long nothing is measured, and how long it is then; whole seconds.
    pub warm_up: Duration,
    /// See `warm_up`.
    pub measured: Duration,
    /// The random times of hosts, as scenario files have them.
    pub processing: String,
}

/// What came of one network.
#[derive(Clone, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The network's number.
    pub network: u64,
    /// What it is like.
    pub about: String,
    /// "the first path" or "all paths".
    pub shared: &'static str,
    /// The discipline of its queues.
    pub queue: &'static str,
    /// Who was tested.
    pub tested: String,
    /// What travelled inside, if anything.
    pub inside: Option<String>,
    /// Who competed.
    pub beside: String,
    /// What the tested one got of what is shared over what the competitor got on average, on the wire.
    pub factor: f64,
    /// Jain's index of all that compete.
    pub jain: f64,
    /// What crossed what is shared, Mbit/s on the wire.
    pub sum: f64,
}

/// How it is run.
#[derive(Clone, Debug)]
pub struct How {
    /// Runs at the same time.
    pub threads: NonZeroUsize,
    /// Where finished runs are kept, if anywhere.
    pub out: Option<PathBuf>,
    /// The program, so that runs of another build are not taken for its own.
    pub origin: Origin,
}

/// A network for the laboratory, in which Sinnet carries a program of one's own beside others.
#[derive(Debug)]
pub struct InLaboratory<'a> {
    /// The scenario.
    pub document: Document,
    place: Place<'a>,
}

impl InLaboratory<'_> {
    /// The part that Sinnet got of what is shared, over that of each competitor, with their goodput in Mbit/s; `inside` is the name of
    /// the program that it carried. `None` where nobody got anything.
    pub fn outcome(&self, inside: &str, factor: f64, rivals: &[f64]) -> Option<Outcome> {
        let mean = rivals.iter().sum::<f64>() / rivals.len() as f64;
        self.place.outcome_of(Some(inside), factor * mean, rivals)
    }
}

/// One run's place among all.
#[derive(Debug)]
struct Place<'a> {
    network: Network,
    tested: &'a Sender,
    inside: Option<&'a str>,
    beside: &'a Sender,
}

impl Measurement {
    fn places(&self) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for number in 1..=self.networks {
            let network = Network::draw(self.seed, number);
            if self.only.is_some_and(|only| only != network.shared) {
                continue;
            }
            for beside in &self.beside {
                for tested in &self.tested {
                    let carried: Vec<Option<&str>> = match tested.carries() {
                        true => self.inside.iter().map(|inside| Some(inside.as_str())).collect(),
                        false => vec![None],
                    };
                    for inside in carried {
                        places.push(Place { network: network.clone(), tested, inside, beside });
                    }
                }
            }
        }
        places
    }

    /// The networks for the laboratory, in which those tested that carry something carry a program of one's own.
    ///
    /// # Errors
    /// A sender that the simulator does not have.
    pub fn in_laboratory(&self) -> Result<Vec<InLaboratory<'_>>, PapersError> {
        let mut networks = Vec::new();
        for place in self.places() {
            if place.tested.carries() {
                let document = place.network.in_laboratory(self, place.tested, place.beside)?;
                networks.push(InLaboratory { document, place });
            }
        }
        Ok(networks)
    }

    /// Measures what is not kept yet. Once `stop` is set, what is finished is given; `progress` hears of the part that is.
    ///
    /// # Errors
    /// A sender that the simulator does not have; when results cannot be stored.
    pub fn run(
        &self,
        how: &How,
        stop: &AtomicBool,
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<Outcome>, PapersError> {
        let places = self.places();
        let mut points = Vec::with_capacity(places.len());
        for place in &places {
            let document = place.network.scenario(self, (place.tested, place.inside), place.beside)?;
            let values = [
                ("network", place.network.number.to_string()),
                ("beside", place.beside.to_string()),
                ("tested", place.tested.to_string()),
                ("inside", place.inside.unwrap_or("nothing").to_owned()),
            ];
            points.push(Point { values: values.map(|(key, value)| (key.to_owned(), value)).into(), document });
        }
        let campaign = Campaign::of_points("", points, Seeds::default())?;
        let report = campaign.run(&options(how), stop, |tick| progress(tick.fraction))?;
        let runs = report.points.iter().map(|point| point.runs.first());
        Ok(places.iter().zip(runs).filter_map(|(place, run)| place.outcome(run?)).collect())
    }
}

fn options(how: &How) -> Options {
    Options { threads: how.threads, out: how.out.clone(), interval: None, pcap: false, origin: how.origin.clone() }
}

impl Place<'_> {
    fn outcome(&self, run: &RunResult) -> Option<Outcome> {
        // Where both have several paths all of them are shared.
        let is_all = self.network.shared == Shared::All || self.beside.is_multipath();
        let rate = |flow: &FlowResult| match flow.paths.first() {
            None => flow.throughput_mbps,
            Some(_) if is_all => flow.paths.iter().map(|path| path.throughput_mbps).sum(),
            Some(first) => first.throughput_mbps,
        };
        let tested = rate(run.flows.iter().find(|flow| flow.name == "tested")?);
        let rivals: Vec<f64> = run.flows.iter().filter(|flow| flow.name.starts_with("beside")).map(rate).collect();
        self.outcome_of(self.inside, tested, &rivals)
    }

    /// So much of what is shared the tested one got, and its competitors.
    fn outcome_of(&self, inside: Option<&str>, tested: f64, rivals: &[f64]) -> Option<Outcome> {
        let mean = rivals.iter().sum::<f64>() / rivals.len() as f64;
        let all: Vec<f64> = rivals.iter().copied().chain([tested]).collect();
        Some(Outcome {
            network: self.network.number,
            about: self.network.describe(),
            shared: self.network.shared.name(),
            queue: self.network.discipline.name(),
            tested: self.tested.to_string(),
            inside: inside.map(str::to_owned),
            beside: self.beside.to_string(),
            factor: tested / mean,
            jain: jain(&all)?,
            sum: all.iter().sum(),
        })
    }
}

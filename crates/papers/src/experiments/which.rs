//! Which control should one use? Argued from what the other experiments measured, so that the advice changes with them.

use super::rules::{factor, over_fair, rules};
use super::shared::bundle;
use super::{IN_NO_PAPER, shown};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::results::Results;
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[Experiment {
    id: "beyond/which-control",
    title: "Which control should I use?",
    setup: "The experiments on harm, on scenario 3, on queues and on the shared bottleneck, read together. Nothing is simulated \
            for this page alone.",
    cases: &["beyond-harm", "beyond-scenario-3", "beyond-queues", "beyond-shared-red"],
    ships: Ships::Not(IN_NO_PAPER),
    evaluate: advise,
    figures: |_| Vec::new(),
}];

/// A rule with a number.
type Ranked<'a> = Vec<(&'a str, Measured)>;

/// The nearest to 1 first.
fn nearest_to_one(mut ranked: Ranked<'_>) -> Ranked<'_> {
    let distance = |measured: &Measured| (measured.mean - 1.0).abs();
    ranked.sort_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    ranked
}

fn beside_one<'a>(results: &'a Results, delay: &str) -> Ranked<'a> {
    let at = |rule: &str| results.at("beyond-harm", &[("f0.congestion", rule), ("delay", delay)]);
    let all = rules(results, "beyond-harm").into_iter();
    all.filter_map(|rule| Some((rule, at(rule).and_then(|point| factor(&point))?))).collect()
}

fn listed(ranked: &Ranked<'_>) -> String {
    let entries: Vec<String> = ranked.iter().map(|(rule, measured)| format!("{rule} {:.2}", measured.mean)).collect();
    entries.join(", ")
}

fn advise(results: &Results, out: &mut Evaluation) {
    let (short, usual) = (nearest_to_one(beside_one(results, "1ms")), nearest_to_one(beside_one(results, "10ms")));
    if let (Some((first, _)), Some((worst, most))) = (short.first(), short.last()) {
        out.notes.push(format!(
            "If your paths may meet in one bottleneck with other people's connections, take {first}: at 1 ms of delay, where the \
             rules differ most, it is nearest to one share of a single path ({}); at 10 ms the order is {}. Do not take {worst}: \
             it takes {} shares.",
            listed(&short),
            listed(&usual),
            shown(Some(*most)),
        ));
    }
    let balanced = rules(results, "beyond-scenario-3").into_iter();
    let balanced = nearest_to_one(balanced.filter_map(|rule| Some((rule, over_fair(results, rule)?))).collect());
    if let Some((first, measured)) = balanced.first() {
        out.notes.push(format!(
            "If you have a path of your own beside a shared one, {first} leaves the shared path to those who have no other most \
             nearly as the network-centric notion wants it: {} of its share, from 10 to 80 Mbit/s of the shared path. The means \
             of all: {}.",
            shown(Some(*measured)),
            listed(&balanced),
        ));
    }
    let queue = |rule: &str| {
        let point = results.at("beyond-queues", &[("congestion", rule)])?;
        Some((
            Measured::of(&point.link("sa-da", |link| link.queue.p50 * 1.2))?,
            Measured::of(&point.flow("mptcp", |f| f.goodput_mbps))?,
        ))
    };
    let queues = results.points("beyond-queues").filter_map(|point| point.value("congestion"));
    let queues: Vec<_> = queues.filter_map(|rule| Some((rule, queue(rule)?))).collect();
    let most = queues.iter().map(|(_, (_, rate))| rate.mean).fold(0.0, f64::max);
    let shortest = |least: f64| {
        let enough = queues.iter().filter(move |(_, (_, rate))| rate.mean >= least * most);
        enough.min_by(|a, b| a.1.0.mean.total_cmp(&b.1.0.mean)).copied()
    };
    if let (Some((full, (median, rate))), Some((least, (waiting, slow))), Some((lia, _))) =
        (shortest(0.98), shortest(0.0), queue("lia"))
    {
        let but = if least == full {
            String::new()
        } else {
            format!(" {least} has the shortest queue of all, {:.0} ms, at {:.2} Mbit/s.", waiting.mean, slow.mean)
        };
        out.notes.push(format!(
            "If waiting matters more than shares, take {full}: at full rate ({:.2} Mbit/s) a packet waits {:.0} ms, in the median, \
             instead of {:.0} ms under LIA, where the queue holds two bandwidth-delay products.{but} All medians: {}.",
            rate.mean,
            median.mean,
            lia.mean,
            queues.iter().map(|(rule, (delay, _))| format!("{rule} {:.0} ms", delay.mean)).collect::<Vec<_>>().join(", ")
        ));
    }
    let growth = |name: &str| results.at("beyond-shared-red", &[("growth", name)]).and_then(|point| bundle(&point));
    if let (Some(own), Some(lia)) = (growth("per_path"), growth("lia")) {
        out.notes.push(format!(
            "For mHIP, growth \"per_path\" is right only where the paths have no bottleneck in common: where they meet, it takes \
             {:.2} shares, and growth \"lia\" {:.2}. Where it is not known, take \"lia\".",
            own.mean, lia.mean
        ));
    }
}

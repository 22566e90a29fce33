//! What papers \[4\] and \[5\] leave open: every rule beside a single path, against every other, on scenario 3, and the queues.

use std::collections::BTreeSet;

use fairness::{Notion, line};
use scenario::Point;
use simulator::LinkResult;

use super::{IN_NO_PAPER, shown};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "beyond/harm",
        title: "Every rule beside a single path",
        setup: "CMT-SCTP with two sub-flows under each rule and an SCTP of one path share 20 Mbit/s with RED.",
        cases: &["beyond-harm"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: harm,
        figures: harm_figures,
    },
    Experiment {
        id: "beyond/matrix",
        title: "Every rule against every other",
        setup: "Two multi-path flows, each with two sub-flows and a rule of its own, share 20 Mbit/s with RED: among them \
                RP-MP-v2 against the rule of MPTCP. Both have the same of everything, so each pair is run once, for both.",
        cases: &["beyond-matrix"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: matrix,
        figures: matrix_figures,
    },
    Experiment {
        id: "beyond/scenario-3",
        title: "Every rule beside the network-centric line",
        setup: "A path of 20 Mbit/s alone and one of 10 to 80 Mbit/s shared with a single-path flow, under each rule and for \
                mHIP of the final generation.",
        cases: &["beyond-scenario-3", "beyond-scenario-3-mhip"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: scenario_3,
        figures: scenario_3_figures,
    },
    Experiment {
        id: "beyond/queues",
        title: "Queues",
        setup: "MPTCP alone on paths of 10 and 5 Mbit/s whose queues hold two bandwidth-delay products, under rules that watch \
                delay and rules that do not.",
        cases: &["beyond-queues"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: queues,
        figures: |_| Vec::new(),
    },
];

/// Payload of a packet over its size.
const PAYLOAD: f64 = 1452.0 / 1500.0;
const ALPHA: f64 = 20.0;

fn goodput(point: &PointView<'_>, flow: &str) -> Vec<f64> {
    point.flow(flow, |flow| flow.goodput_mbps)
}

/// The first flow's goodput over the second's.
pub(super) fn factor(point: &PointView<'_>) -> Option<Measured> {
    Measured::ratio(&goodput(point, "f0"), &goodput(point, "f1"))
}

/// The rules of a case, in the order of its sweep.
pub(super) fn rules<'a>(results: &'a Results, case: &str) -> Vec<&'a str> {
    let mut rules = Vec::new();
    for rule in results.points(case).filter_map(|point| point.value("f0.congestion")) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

fn harm(results: &Results, out: &mut Evaluation) {
    for point in results.points("beyond-harm") {
        let (rule, delay) = (point.value("congestion").unwrap_or("?"), point.value("delay").unwrap_or("?"));
        out.further(format!("{rule}, {delay}: multi-path over single-path flow"), "1", None, factor(&point));
    }
    out.notes.push(
        "1 is the share of one SCTP; uncoupled rules take two. The shorter the delay, the more the least window of one packet \
         on each path weighs."
            .to_owned(),
    );
}

fn harm_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Share beside a single path",
        "1 does no harm. Means and 95 % intervals.",
        "one-way delay of the bottleneck, ms",
        "multi-path over single-path flow",
    );
    for rule in rules(results, "beyond-harm") {
        let points = results.points("beyond-harm").filter(|point| point.value("congestion") == Some(rule));
        let line: Vec<_> = points.filter_map(|point| Some((point.number("delay")?, factor(&point)?))).collect();
        figure = figure.measured(rule, &line);
    }
    vec![figure.with("one share", Style::Dashed, vec![(1.0, 1.0), (50.0, 1.0)])]
}

/// Jain's index of the two flows of each run.
fn jain(point: &PointView<'_>) -> Option<Measured> {
    let pairs = goodput(point, "f0").into_iter().zip(goodput(point, "f1"));
    let values: Vec<f64> = pairs.filter_map(|(a, b)| fairness::jain(&[a, b])).collect();
    Measured::of(&values)
}

/// Of a sweep over both flows' rules, which have the same of everything else, each pair of rules once.
pub(crate) fn each_pair_once(points: Vec<Point>) -> Vec<Point> {
    let mut pairs = BTreeSet::new();
    let is_new = |point: &Point| {
        let mut rules: Vec<&String> = point.values.iter().map(|(_, rule)| rule).collect();
        rules.sort_unstable();
        pairs.insert(rules.into_iter().cloned().collect::<Vec<_>>())
    };
    let is_first: Vec<bool> = points.iter().map(is_new).collect();
    points.into_iter().zip(is_first).filter_map(|(point, is_first)| is_first.then_some(point)).collect()
}

/// The runs of one rule against another, and the first one's goodput over the other's.
fn against<'a>(results: &'a Results, rule: &str, other: &str) -> Option<(PointView<'a>, Measured)> {
    let at = |first, second| results.at("beyond-matrix", &[("f0.congestion", first), ("f1.congestion", second)]);
    if let Some(point) = at(rule, other) {
        return Some((point, factor(&point)?));
    }
    let point = at(other, rule)?;
    Some((point, Measured::ratio(&goodput(&point, "f1"), &goodput(&point, "f0"))?))
}

fn matrix(results: &Results, out: &mut Evaluation) {
    let all_rules = rules(results, "beyond-matrix");
    for rule in &all_rules {
        let pairs = || all_rules.iter().filter_map(|other| Some((other, against(results, rule, other)?)));
        let factors: Vec<String> = pairs().map(|(other, (_, factor))| format!("{:.2} {other}", factor.mean)).collect();
        let all: Vec<_> = pairs().map(|(_, (_, factor))| factor).collect();
        out.further(format!("{rule}: its goodput over that of each rule"), "1", None, Measured::spread(&all));
        let indices: Vec<_> = pairs().filter_map(|(_, (point, _))| jain(&point)).collect();
        out.further(format!("{rule}: Jain's index of the two flows"), "1", None, Measured::spread(&indices));
        out.notes.push(format!("{rule} over: {}.", factors.join(", ")));
    }
    let pair = against(results, "rp-mp-v2", "lia-byte").map(|(_, factor)| factor);
    out.further("RP-MP-v2 over MPTCP's rule, in one network", "1", None, pair);
}

fn matrix_figures(results: &Results) -> Vec<Figure> {
    let all = rules(results, "beyond-matrix");
    let names: Vec<String> = all.iter().enumerate().map(|(i, rule)| format!("{} {rule}", i + 1)).collect();
    let mut figure = Figure::new(
        "Each rule over each other",
        format!(
            "A line is one rule; at each place its goodput over that of the rule with this number: {}.",
            names.join(", ")
        ),
        "the other rule",
        "goodput over the other's",
    );
    for rule in &all {
        let others = all.iter().enumerate();
        let line: Vec<_> =
            others.filter_map(|(place, other)| Some(((place + 1) as f64, against(results, rule, other)?.1))).collect();
        figure = figure.measured(*rule, &line);
    }
    vec![figure]
}

/// The rates of beta with the goodput of the multi-path flow: of a rule, or of mHIP.
fn multi(results: &Results, rule: Option<&str>) -> Vec<(f64, Measured)> {
    let case = if rule.is_some() { "beyond-scenario-3" } else { "beyond-scenario-3-mhip" };
    let points = results.points(case).filter(|point| rule.is_none() || point.value("congestion") == rule);
    points.filter_map(|point| Some((point.number("rate")?, Measured::of(&goodput(&point, "f0"))?))).collect()
}

fn fair_totals(betas: &[f64]) -> Vec<(f64, f64)> {
    let fair = line(Notion::NetworkFlow, betas, |beta| fairness::scenario_3(ALPHA, beta)).unwrap_or_default();
    fair.iter().filter_map(|(beta, fair)| Some((*beta, fair.flows.first()? * PAYLOAD))).collect()
}

/// Each point over the network-centric share.
fn ratios(line: &[(f64, Measured)]) -> Vec<Measured> {
    let fair = fair_totals(&line.iter().map(|point| point.0).collect::<Vec<_>>());
    let ratio = |((_, got), (_, fair)): (&(f64, Measured), (f64, f64))| Measured {
        mean: got.mean / fair,
        low: got.low / fair,
        high: got.high / fair,
        ..*got
    };
    line.iter().zip(fair).map(ratio).collect()
}

/// The goodput of a rule's multi-path flow over its network-centric share, as a spread over beta.
pub(super) fn over_fair(results: &Results, rule: &str) -> Option<Measured> {
    Measured::spread(&ratios(&multi(results, Some(rule))))
}

fn scenario_3(results: &Results, out: &mut Evaluation) {
    let mut all: Vec<(String, Vec<(f64, Measured)>)> = rules(results, "beyond-scenario-3")
        .into_iter()
        .map(|rule| (rule.to_owned(), multi(results, Some(rule))))
        .collect();
    all.push(("mHIP, final generation".to_owned(), multi(results, None)));
    for (name, line) in all {
        let ratio = Measured::spread(&ratios(&line));
        out.further(format!("{name}: its goodput over the network-centric share"), "1", None, ratio);
    }
    out.notes
        .push("The spread is over beta = 10, 20, 40 and 80 Mbit/s; above 1 the multi-path flow takes more.".to_owned());
}

fn scenario_3_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "The multi-path flow's goodput",
        "Broken: the network-centric share.",
        "rate of beta, Mbit/s",
        "Mbit/s",
    );
    for rule in rules(results, "beyond-scenario-3") {
        figure = figure.measured(rule, &multi(results, Some(rule)));
    }
    figure = figure.measured("mHIP, final generation", &multi(results, None));
    vec![figure.with("network-centric", Style::Dashed, fair_totals(&[10.0, 20.0, 30.0, 40.0, 60.0, 80.0]))]
}

fn queues(results: &Results, out: &mut Evaluation) {
    // Milliseconds that a packet of 1500 bytes takes at 10 Mbit/s.
    const TRANSMISSION: f64 = 1.2;
    type Quantile = fn(&LinkResult) -> f64;
    let quantiles: [(&str, Quantile); 3] =
        [("median", |link| link.queue.p50), ("95 %", |link| link.queue.p95), ("99 %", |link| link.queue.p99)];
    let mut medians = Vec::new();
    for point in results.points("beyond-queues") {
        let rule = point.value("congestion").unwrap_or("?");
        for (name, quantile) in quantiles {
            let delay = Measured::of(&point.link("sa-da", |link| quantile(link) * TRANSMISSION));
            if name == "median" {
                medians.extend(delay.map(|delay| (rule, delay)));
            }
            out.further(format!("{rule}: {name} of the waiting time on the path of 10 Mbit/s"), "ms", None, delay);
        }
        let total = Measured::of(&point.flow("mptcp", |flow| flow.goodput_mbps));
        out.further(format!("{rule}: goodput of both paths"), "", None, total);
    }
    let of = |name: &str| medians.iter().find(|(rule, _)| *rule == name).map(|(_, delay)| *delay);
    out.relation(
        "DAIMD keeps the queue shorter than LIA",
        super::below(of("daimd"), of("lia")),
        format!("medians {} and {} ms", shown(of("daimd")), shown(of("lia"))),
    );
}

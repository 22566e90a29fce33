//! What the papers did not show: the reference experiment on random networks.

use clock::Streams;
use fairness::statistics::quantile;
use scenario::{Document, Point};

use super::IN_NO_PAPER;
use crate::PapersError;
use crate::draw::logarithmic;
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[Experiment {
    id: "beyond/random-networks",
    title: "Random networks",
    setup: "The reference experiment on 100 networks with rates of 1 to 50 Mbit/s, propagation delays of 5 to 150 ms and \
            queues of 0.5 to 3 bandwidth-delay products, each with its own seed; for each generation, and with a New Reno in \
            its place, without and with SACK. The competing TCP is a New Reno; generation 3, which has SACK, also runs \
            beside one with SACK. The two that compete enter alike, and other people's packets take a twentieth. Each runs \
            for so long that windows are halved eight times.",
    cases: &["random-1", "random-2", "random-3", "random-3-sack", "random-sack", "random-tcp"],
    ships: Ships::Not(IN_NO_PAPER),
    evaluate,
    figures,
}];

/// How many networks there are.
const NETWORKS: u64 = 100;
/// Mbit/s; evenly on a scale of logarithms, so that slow networks are as many as fast ones.
const RATES: (f64, f64) = (1.0, 50.0);
/// One-way propagation delay of a path, ms; evenly on a scale of logarithms.
const DELAYS: (f64, f64) = (5.0, 150.0);
/// Of a packet.
const BITS: f64 = 10_000.0;
/// In bandwidth-delay products, evenly.
const QUEUES: (f64, f64) = (0.5, 3.0);

/// So many times windows are halved while it is measured, and in how much of it before; but s at least.
const HALVINGS: (f64, f64) = (8.0, 2.0);
const LEAST: (f64, f64) = (60.0, 15.0);
/// The part of the time in which other people use the bottleneck, and how many packets they send at once on average.
const OTHERS: (f64, f64) = (0.05, 2.0);

/// The networks drawn from the pattern `document`.
pub(crate) fn points(document: &Document) -> Result<Vec<Point>, PapersError> {
    (1..=NETWORKS).map(|number| Ok(network(document, number)?)).collect()
}

fn network(document: &Document, number: u64) -> Result<Point, text::Diagnostic> {
    let mut rng = Streams::new(number).stream("random network");
    let mut document = document.clone();
    let mut windows = 0.0;
    for links in ["n0-n2,n4-n2,n2-n1", "n0-n3,n3-n1"] {
        let rate = logarithmic(&mut rng, RATES);
        let delay = logarithmic(&mut rng, DELAYS);
        let queue = rng.range(QUEUES.0, QUEUES.1);
        document.set(&format!("link.{links}.rate={:.0}kbit/s", rate * 1e3))?;
        // The delay in whole microseconds, half of it a link.
        document.set(&format!("link.{links}.delay={:.0}us", delay / 2.0 * 1e3))?;
        document.set(&format!("link.{links}.queue={queue:.3}bdp"))?;
        // What the path and its queue hold, in packets; and how long it is then, in seconds.
        let round_trip = (1.0 + queue) * 2.0 * delay / 1e3;
        let holds = round_trip * rate * 1e6 / BITS;
        // What the paths and both queues of each hold, as in the reference experiment.
        windows += holds * (1.0 + 2.0 * queue) / (1.0 + queue);
        if links.starts_with("n0-n2") {
            let on = OTHERS.1 * BITS / rate;
            document.set(&format!("flow.others.rate={:.0}kbit/s", rate * 1e3))?;
            document.set(&format!("flow.others.on_off.on={on:.0}us"))?;
            document.set(&format!("flow.others.on_off.off={:.0}us", on * (1.0 - OTHERS.0) / OTHERS.0))?;
            // Each of the two has half of it, halves that, and grows by a packet in a round trip.
            let halving = holds / 4.0 * round_trip;
            let (measured, before) = ((HALVINGS.0 * halving).max(LEAST.0), (HALVINGS.1 * halving).max(LEAST.1));
            document.set(&format!("duration={:.1}s", before + measured))?;
            document.set(&format!("warm_up={before:.1}s"))?;
            document.set(&format!("flow.udp.start={:.1}s", before + 0.2 * measured))?;
            document.set(&format!("flow.udp.stop={:.1}s", before + 0.5 * measured))?;
        } else {
            document.set(&format!("flow.udp.rate={:.0}kbit/s", rate * 1e3))?;
        }
    }
    document.set(&format!("flow.tested,tcp.receiver_window={:.0}p", windows.ceil().max(16.0)))?;
    document.set(&format!("seed={number}"))?;
    Ok(Point { values: vec![("network".to_owned(), number.to_string())], document })
}

/// The throughput on Path1 of the flow that is tested.
fn tested(point: &PointView<'_>) -> Vec<f64> {
    point.values(|run| {
        let flow = run.flows.iter().find(|flow| flow.name == "tested")?;
        Some(flow.paths.first().map_or(flow.throughput_mbps, |path| path.throughput_mbps))
    })
}

/// Sorted friendliness factors of one generation, one a network.
fn factors(results: &Results, case: &str) -> Vec<f64> {
    let one = |values: Vec<f64>| values.first().copied();
    let points = results
        .points(case)
        .filter_map(|point| Some(one(tested(&point))? / one(point.flow("tcp", |flow| flow.throughput_mbps))?));
    let mut factors: Vec<f64> = points.collect();
    factors.sort_by(f64::total_cmp);
    factors
}

const TESTED: [(&str, &str); 6] = [
    ("random-1", "generation 1"),
    ("random-2", "generation 2"),
    ("random-3", "generation 3"),
    ("random-3-sack", "generation 3 beside New Reno with SACK"),
    ("random-sack", "New Reno with SACK"),
    ("random-tcp", "New Reno"),
];

fn evaluate(results: &Results, out: &mut Evaluation) {
    for (case, name) in TESTED {
        let sorted = factors(results, case);
        let last = case == "random-3";
        out.further(format!("median FF, {name}"), "1", last.then_some([0.9, 1.1]), median(&sorted));
        let inside = sorted.iter().filter(|factor| (0.7..=1.4).contains(*factor)).count();
        let fraction = inside as f64 / sorted.len().max(1) as f64;
        let (low, high) = wilson(inside, sorted.len());
        let fraction =
            (!sorted.is_empty()).then_some(Measured { mean: fraction, low, high, seeds: sorted.len(), spread: false });
        out.further(format!("networks with FF in 0.7 to 1.4, {name}"), "1", last.then_some([0.9, 1.0]), fraction);
        for p in [0.05, 0.95] {
            let value = quantile(&sorted, p);
            let value = value.map(|mean| Measured { mean, low: mean, high: mean, seeds: sorted.len(), spread: false });
            out.further(format!("{:.0} % quantile of FF, {name}", p * 100.0), "1", None, value);
        }
    }
}

/// The median with its interval from order statistics (ranks n/2 ± 0.98·√n).
fn median(sorted: &[f64]) -> Option<Measured> {
    let n = sorted.len() as f64;
    let mean = quantile(sorted, 0.5)?;
    let half = 0.98 / n.sqrt();
    Some(Measured {
        mean,
        low: quantile(sorted, 0.5 - half)?,
        high: quantile(sorted, 0.5 + half)?,
        seeds: sorted.len(),
        spread: false,
    })
}

/// 95 % interval of a proportion (E. B. Wilson, "Probable inference", J. Am. Stat. Assoc. 22, 1927).
fn wilson(count: usize, of: usize) -> (f64, f64) {
    let (n, z) = (of.max(1) as f64, 1.959_964);
    let p = count as f64 / n;
    let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    (centre - half, centre + half)
}

fn figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Distribution of the friendliness factor",
        "For each generation, and for New Reno in its place, the part of networks with at most this factor; factors above 4 lie outside the picture. A steep line through 1 at 0.5 is what is wanted.",
        "friendliness factor on Path1",
        "part of networks",
    );
    for (case, name) in TESTED {
        let sorted = factors(results, case);
        let n = sorted.len() as f64;
        let steps = sorted.into_iter().enumerate().map(|(i, factor)| (factor, (i + 1) as f64 / n));
        let steps = steps.filter(|(factor, _)| *factor <= 4.0).collect();
        figure = figure.with(name, Style::Step, steps);
    }
    vec![figure]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_as_statsmodels_gives_it() {
        // statsmodels.stats.proportion.proportion_confint(90, 100, method="wilson")
        let (low, high) = wilson(90, 100);
        assert!((low - 0.825_634).abs() < 1e-5 && (high - 0.944_771).abs() < 1e-5, "{low} {high}");
    }
}

//! What the papers did not show: the reference experiment on random networks.

use clock::{Rng, Streams};
use fairness::statistics::quantile;
use scenario::{Document, Point};

use super::on_path1;
use crate::PapersError;
use crate::estimate::Measured;
use crate::experiment::Experiment;
use crate::figure::{Figure, Style};
use crate::results::Results;
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[Experiment {
    id: "beyond/random-networks",
    title: "Random networks",
    setup: "The reference experiment on 100 networks with rates of 1 to 50 Mbit/s, propagation delays of 5 to 150 ms and \
            queues of 0.5 to 3 bandwidth-delay products, each with its own seed; for each generation.",
    cases: &["random-1", "random-2", "random-3"],
    evaluate,
    figures,
}];

/// How many networks there are.
const NETWORKS: u64 = 100;
/// Mbit/s; evenly on a scale of logarithms, so that slow networks are as many as fast ones.
const RATES: (f64, f64) = (1.0, 50.0);
/// One-way propagation delay of a path, ms; evenly on a scale of logarithms.
const DELAYS: (f64, f64) = (5.0, 150.0);
/// In bandwidth-delay products, evenly.
const QUEUES: (f64, f64) = (0.5, 3.0);

/// The networks drawn from the pattern `document`.
pub(crate) fn points(document: &Document) -> Result<Vec<Point>, PapersError> {
    (1..=NETWORKS).map(|number| Ok(network(document, number)?)).collect()
}

fn network(document: &Document, number: u64) -> Result<Point, diagnostic::Diagnostic> {
    let mut rng = Streams::new(number).stream("random network");
    let mut document = document.clone();
    let mut windows = Vec::new();
    for (links, twin) in [("n0-n2,n2-n1", ",n1-n4"), ("n0-n3,n3-n1", "")] {
        let rate = logarithmic(&mut rng, RATES);
        let delay = logarithmic(&mut rng, DELAYS);
        let queue = uniform(&mut rng, QUEUES);
        document.set(&format!("link.{links}.rate={:.0}kbit/s", rate * 1e3))?;
        // The delay in whole microseconds, half of it a link; TCP's second link is like mHIP's, so that their round trips are equal.
        document.set(&format!("link.{links}{twin}.delay={:.0}us", delay / 2.0 * 1e3))?;
        document.set(&format!("link.{links}.queue={queue:.3}bdp"))?;
        // Twice what the path and its queue hold, as in the reference experiment.
        windows.push(2.0 * (1.0 + queue) * rate * 1e6 * 2.0 * delay / 1e3 / 8.0 / 1250.0);
        if twin.is_empty() {
            document.set(&format!("flow.udp.rate={:.0}kbit/s", rate * 1e3))?;
        }
    }
    let window = windows.iter().sum::<f64>().ceil().max(16.0);
    document.set(&format!("flow.mhip,tcp.receiver_window={window:.0}p"))?;
    document.set(&format!("seed={number}"))?;
    Ok(Point { values: vec![("network".to_owned(), number.to_string())], document })
}

fn unit(rng: &mut Rng) -> f64 {
    rng.below(1 << 53) as f64 / (1_u64 << 53) as f64
}

fn uniform(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * unit(rng)
}

fn logarithmic(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    uniform(rng, (low.ln(), high.ln())).exp()
}

/// Sorted friendliness factors of one generation, one a network.
fn factors(results: &Results, case: &str) -> Vec<f64> {
    let one = |values: Vec<f64>| values.first().copied();
    let points = results
        .points(case)
        .filter_map(|point| Some(one(on_path1(&point))? / one(point.flow("tcp", |flow| flow.throughput_mbps))?));
    let mut factors: Vec<f64> = points.collect();
    factors.sort_by(f64::total_cmp);
    factors
}

const GENERATIONS: [(&str, &str); 3] =
    [("random-1", "generation 1"), ("random-2", "generation 2"), ("random-3", "generation 3")];

fn evaluate(results: &Results, out: &mut Evaluation) {
    for (case, name) in GENERATIONS {
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
        "For each generation, the part of networks with at most this factor; factors above 4 lie outside the picture. A steep line through 1 at 0.5 is what is wanted.",
        "friendliness factor on Path1",
        "part of networks",
    );
    for (case, name) in GENERATIONS {
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

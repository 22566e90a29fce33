//! Papers \[2\] and \[3\]: several paths that meet in one bottleneck, and several connections of mHIP.

use super::{rates, shown, throughput};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "mhip-fairness/shared-bottleneck",
        title: "A shared bottleneck",
        setup: "Three paths of one connection and a New Reno meet in one link; all have the same round-trip time. 20 \
                combinations of rate, delay and queue, each with four ways of growth of the windows.",
        cases: &["shared-bottleneck"],
        ships: Ships::In(&["shared-bottleneck"]),
        evaluate: shared,
        figures: shared_figures,
    },
    Experiment {
        id: "mhip-friendliness/six-connections",
        title: "Six connections",
        setup: "Six connections of mHIP over three common paths of 8, 4 and 4 Mbit/s.",
        cases: &["six-connections"],
        ships: Ships::In(&["six-connections"]),
        evaluate: six,
        figures: six_figures,
    },
];

/// The growth of generation 3.
const OWN: &str = "per_path";
const GROWTHS: [&str; 4] = ["per_path", "coupled", "lia", "per_bottleneck"];
const ACCEPT: [f64; 2] = [0.90, 1.08];

/// The throughput of the bundle over that of the TCP beside it.
pub(super) fn bundle(point: &PointView<'_>) -> Option<Measured> {
    Measured::ratio(&point.flow("mhip", throughput), &point.flow("tcp", throughput))
}

fn factors(results: &Results, growth: &str) -> Vec<Measured> {
    let points = results.points("shared-bottleneck").filter(|point| point.value("growth") == Some(growth));
    points.filter_map(|point| bundle(&point)).collect()
}

/// The mean throughput of the paths over that of the TCP beside them, for each path characteristics.
fn paths(results: &Results, growth: &str) -> Vec<Measured> {
    let each = |m: Measured| Measured { mean: m.mean / 3.0, low: m.low / 3.0, high: m.high / 3.0, ..m };
    factors(results, growth).into_iter().map(each).collect()
}

fn shared(results: &Results, out: &mut Evaluation) {
    let own = factors(results, OWN);
    out.quantity("friendliness factor of the bundle, over many path characteristics", Measured::spread(&own));
    let each = paths(results, "per_path");
    out.further(
        "friendliness factor of the paths, on average, with growth \"per_path\"",
        "1",
        Some(ACCEPT),
        Measured::spread(&each),
    );
    for growth in GROWTHS {
        let factors = factors(results, growth);
        let inside = factors.iter().filter(|factor| factor.accepted(ACCEPT)).count();
        out.further(format!("the same with growth \"{growth}\""), "1", None, Measured::spread(&factors));
        out.further(
            format!("path characteristics of {} with FF in 0.90 to 1.08, growth \"{growth}\"", factors.len()),
            "settings",
            None,
            Measured::of(&[inside as f64]).filter(|_| !factors.is_empty()),
        );
    }
    out.notes.push(
        "The paper calls the observed factor one of \"flows\". Read as the factor of each path beside TCP, its interval is what \
         uncoupled growth gives: three paths take three shares. Read as the factor of the bundle, the paths have to be one TCP \
         where they meet. Growth of one packet a round trip for the whole bundle (\"coupled\") is not enough, because a loss \
         halves one window of three only: with equal probabilities of loss it settles at 1.9 shares. \"lia\" would settle at \
         one, but at a drop-tail queue it is mostly he who grows that loses, and who grows less takes more. What \
         gives the bundle one share is \"per_bottleneck\", which is in no paper: paths whose queueing delays rise and fall together (in the spirit of RFC 8382) grow together by \
         one packet a round trip, and a loss on one halves all; paths with bottlenecks of their own are each a Reno. It is \
         not judged, and not the growth of generation 3: on two idle paths of the same delays saw-teeth fall into step, and \
         are taken for one queue (7.2 instead of 7.9 Mbit/s in the steady state)."
            .to_owned(),
    );
    let spread = Measured::spread(&own);
    let detail = format!("FF of the bundle {}", shown(spread));
    out.relation(
        "the bundle of three takes the share of one TCP, not of three",
        spread.map(|spread| (spread.mean - 1.0).abs() < (spread.mean - 3.0).abs()),
        detail,
    );
}

fn shared_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Friendliness of the bundle",
        "One point for each of 20 path characteristics, in the order of the sweep.",
        "path characteristics",
        "friendliness factor of the bundle",
    );
    for growth in GROWTHS {
        let points: Vec<_> =
            factors(results, growth).into_iter().enumerate().map(|(i, f)| ((i + 1) as f64, f)).collect();
        figure = figure.measured(growth, &points);
    }
    let one = Figure::new("One run", "Fig. 10: bins of 0.1 s.", "time, s", "Mbit/s");
    let point = results.points("shared-bottleneck").find(|point| point.value("growth") == Some(OWN));
    vec![figure, rates(one, point)]
}

fn six(results: &Results, out: &mut Evaluation) {
    let Some(point) = results.point("six-connections") else {
        out.quantity("friendliness factor of each connection against the mean of the others", None);
        return;
    };
    let each: Vec<Vec<f64>> = point.runs().iter().map(factors_of_run).collect();
    let of = |choose: fn(f64, f64) -> f64| {
        let ends: Vec<f64> = each.iter().filter_map(|factors| factors.iter().copied().reduce(choose)).collect();
        Measured::of(&ends).map(|ends| ends.mean)
    };
    let mean = Measured::of(&each.concat());
    let spread = mean.zip(of(f64::min).zip(of(f64::max))).map(|(mean, (low, high))| Measured {
        low,
        high,
        seeds: point.runs().len(),
        spread: true,
        ..mean
    });
    out.quantity("friendliness factor of each connection against the mean of the others", spread);
    out.notes
        .push("The ends of the spread are the least and the greatest of the six, averaged over the runs.".to_owned());
}

/// Each flow's throughput over the mean of the others.
fn factors_of_run(run: &simulator::RunResult) -> Vec<f64> {
    let rates: Vec<f64> = run.flows.iter().map(throughput).collect();
    let total: f64 = rates.iter().sum();
    rates.iter().map(|rate| rate / ((total - rate) / (rates.len() as f64 - 1.0))).collect()
}

fn six_figures(results: &Results) -> Vec<Figure> {
    let figure = Figure::new("Six connections", "Fig. 8: one run, bins of 0.1 s.", "time, s", "Mbit/s");
    let mut sorted = Figure::new(
        "Factors of all runs",
        "The factor of each connection against the mean of the others, sorted within its run.",
        "place within the run",
        "friendliness factor",
    );
    if let Some(point) = results.point("six-connections") {
        let mut points = Vec::new();
        for run in point.runs() {
            let mut factors = factors_of_run(run);
            factors.sort_by(f64::total_cmp);
            points.extend(factors.into_iter().enumerate().map(|(i, factor)| ((i + 1) as f64, factor)));
        }
        sorted = sorted.with("runs", Style::Points, points);
    }
    vec![rates(figure, results.point("six-connections")), sorted]
}

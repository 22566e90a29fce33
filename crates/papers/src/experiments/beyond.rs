//! What the papers did not show: settings of mHIP one by one.

use super::friendliness::factor;
use super::shown;
use crate::estimate::Measured;
use crate::experiment::Experiment;
use crate::figure::Figure;
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "beyond/dupthresh",
        title: "How many duplicate acknowledgments are a loss",
        setup: "The reference experiment with the final generation; dupthresh from 3 to 16.",
        cases: &["beyond-dupthresh"],
        evaluate: |results, out| swept(results, "beyond-dupthresh", "dupthresh", out),
        figures: dupthresh_figures,
    },
    Experiment {
        id: "beyond/addr",
        title: "Without ADDR",
        setup: "The reference experiment with the final generation; windows restored or not when a reduction was needless.",
        cases: &["beyond-addr"],
        evaluate: |results, out| swept(results, "beyond-addr", "addr", out),
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/growth",
        title: "How the windows grow",
        setup: "The reference experiment with the final generation; each path like a New Reno, the bundle like one, or LIA.",
        cases: &["beyond-growth"],
        evaluate: |results, out| swept(results, "beyond-growth", "growth", out),
        figures: |_| Vec::new(),
    },
];

/// FF, totals and retransmissions at each value of a key.
fn swept(results: &Results, case: &str, key: &str, out: &mut Evaluation) {
    for point in results.points(case) {
        let value = point.value(key).unwrap_or("?");
        out.further(format!("friendliness factor, {key} {value}"), "1", None, factor(&point));
        out.further(format!("total throughput of mHIP, {key} {value}"), "", None, total(&point));
        out.further(format!("retransmissions of mHIP, {key} {value}"), "packets", None, retransmissions(&point));
    }
}

fn total(point: &PointView<'_>) -> Option<Measured> {
    Measured::of(&point.flow("mhip", |flow| flow.throughput_mbps))
}

fn retransmissions(point: &PointView<'_>) -> Option<Measured> {
    Measured::of(&point.flow("mhip", |flow| flow.retransmissions as f64))
}

fn dupthresh_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Friendliness over dupthresh",
        "Means and 95 % intervals.",
        "duplicate acknowledgments that are a loss",
        "friendliness factor on Path1",
    );
    let points = results.points("beyond-dupthresh");
    let line: Vec<_> = points.filter_map(|point| Some((point.number("dupthresh")?, factor(&point)?))).collect();
    figure = figure.measured(format!("measured, from {}", shown(line.first().map(|point| point.1))), &line);
    vec![figure]
}

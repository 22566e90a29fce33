//! What the papers did not show: settings of mHIP one by one.

use super::friendliness::factor;
use super::shared::bundle;
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
        setup: "The final generation in the reference network, windows without limit; dupthresh from 3 to 16.",
        cases: &["beyond-dupthresh"],
        evaluate: |results, out| swept(results, "beyond-dupthresh", "dupthresh", out),
        figures: dupthresh_figures,
    },
    Experiment {
        id: "beyond/addr",
        title: "Without ADDR",
        setup: "The final generation in the reference network, receiver windows without limit; windows restored or not when a \
                reduction was needless.",
        cases: &["beyond-addr"],
        evaluate: |results, out| swept(results, "beyond-addr", "addr", out),
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/growth",
        title: "How the windows grow",
        setup: "The final generation in the reference network, receiver windows without limit; each path like a New Reno, the \
                bundle like one, or LIA.",
        cases: &["beyond-growth"],
        evaluate: |results, out| swept(results, "beyond-growth", "growth", out),
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/receiver-window",
        title: "Appropriate receiver windows",
        setup: "The reference experiment with receiver windows from the bandwidth-delay product to 720 packets, the same for \
                mHIP and TCP: the papers say only that they are appropriate.",
        cases: &["beyond-receiver-window"],
        evaluate: receiver_window,
        figures: receiver_window_figures,
    },
    Experiment {
        id: "beyond/shared-red",
        title: "RED at the shared bottleneck",
        setup: "Three paths of one connection and a New Reno meet in one link with RED, which drops every packet with the \
                same probability, whoever sends it.",
        cases: &["beyond-shared-red"],
        evaluate: |results, out| {
            for point in results.points("beyond-shared-red") {
                let growth = point.value("growth").unwrap_or("?");
                out.further(format!("FF of the bundle, growth \"{growth}\""), "1", None, bundle(&point));
            }
        },
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

fn receiver_window(results: &Results, out: &mut Evaluation) {
    for point in results.points("beyond-receiver-window") {
        let (generation, window) =
            (point.value("generation").unwrap_or("?"), point.value("receiver_window").unwrap_or("?"));
        out.further(format!("friendliness factor, generation {generation}, {window}"), "1", None, factor(&point));
        out.further(format!("total throughput of mHIP, generation {generation}, {window}"), "", None, total(&point));
    }
}

fn receiver_window_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Friendliness over the receivers' windows",
        "Means and 95 % intervals.",
        "receiver windows, packets",
        "friendliness factor on Path1",
    );
    for generation in ["1", "2", "3"] {
        let points = results
            .points("beyond-receiver-window")
            .filter(|point| point.value("generation") == Some(generation))
            .filter_map(|point| Some((point.number("receiver_window")?, factor(&point)?)));
        figure = figure.measured(format!("generation {generation}"), &points.collect::<Vec<_>>());
    }
    vec![figure]
}

//! What the papers did not show: the same experiments with CUBIC, which most hosts speak today, as the competing TCP.

use super::friendliness::{buffer_figure, factor, receive_buffer};
use super::shared::bundle;
use super::{IN_NO_PAPER, flow, on_path1, shown};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::Results;
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "beyond/cubic",
        title: "CUBIC instead of New Reno",
        setup: "The network of paper [3] for each generation, the steady state and the shared bottleneck, with CUBIC (RFC 9438, \
                SACK) as the competing TCP.",
        cases: &[
            "beyond-cubic",
            "beyond-cubic-shared",
            "beyond-cubic-steady",
            "steady-state",
            "simple",
            "two-level",
            "reference",
        ],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: cubic,
        figures: cubic_figures,
    },
    Experiment {
        id: "beyond/cubic-receive-buffer",
        title: "CUBIC and the receive buffer",
        setup: "The sweep of the receive buffer with CUBIC as the competing TCP.",
        cases: &["beyond-cubic-buffer"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: |results, out| receive_buffer(results, "beyond-cubic-buffer", out),
        figures: |results| vec![buffer_figure(results, "beyond-cubic-buffer", "As Fig. 5, beside CUBIC.")],
    },
];

fn cubic(results: &Results, out: &mut Evaluation) {
    for point in results.points("beyond-cubic") {
        let generation = point.value("generation").unwrap_or("?");
        out.further(format!("friendliness factor, generation {generation}"), "1", None, factor(&point));
        let tcp = Measured::of(&point.flow("tcp", |flow| flow.throughput_mbps));
        out.further(format!("throughput of CUBIC, generation {generation}"), "", None, tcp);
        let total = Measured::of(&point.flow("mhip", |flow| flow.throughput_mbps));
        out.further(format!("total throughput of mHIP, generation {generation}"), "", None, total);
    }
    let mhip = results.point("steady-state").map(|point| on_path1(&point)).unwrap_or_default();
    let alone = flow(results, "beyond-cubic-steady", "tcp", |flow| flow.throughput_mbps);
    out.further("steady state: CUBIC alone on Path1", "", None, Measured::of(&alone));
    out.further("steady state: mHIP / CUBIC on Path1", "1", None, Measured::ratio(&mhip, &alone));
    for point in results.points("beyond-cubic-shared") {
        let growth = point.value("growth").unwrap_or("?");
        out.further(format!("shared bottleneck: FF of the bundle, growth \"{growth}\""), "1", None, bundle(&point));
    }
}

fn cubic_figures(results: &Results) -> Vec<Figure> {
    let line = |points: Vec<(f64, Option<Measured>)>| -> Vec<(f64, Measured)> {
        points.into_iter().filter_map(|(x, measured)| Some((x, measured?))).collect()
    };
    let cubic = line(
        results
            .points("beyond-cubic")
            .map(|point| (point.number("generation").unwrap_or(0.0), factor(&point)))
            .collect(),
    );
    let cases = [(1.0, "simple"), (2.0, "two-level"), (3.0, "reference")];
    let reno = line(cases.iter().map(|(x, case)| (*x, results.point(case).and_then(|point| factor(&point)))).collect());
    let figure = Figure::new(
        "Friendliness of the three generations",
        "Means and 95 % intervals.",
        "generation",
        "friendliness factor on Path1",
    );
    let name = format!("beside CUBIC, generation 3 {}", shown(cubic.last().map(|point| point.1)));
    vec![figure.measured("beside New Reno", &reno).measured(name, &cubic).with(
        "the share of one TCP",
        Style::Dashed,
        vec![(1.0, 1.0), (3.0, 1.0)],
    )]
}

//! What the papers did not show: settings of mHIP one by one.

use simulator::FlowResult;

use super::friendliness::factor;
use super::shared::bundle;
use super::{IN_NO_PAPER, on_path1};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::Figure;
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "beyond/dupthresh",
        title: "How many duplicate acknowledgments are a loss",
        setup: "The final generation in the reference network; dupthresh from 3 to 16, where duplicates of the same path count, and \
                where all do.",
        cases: &["beyond-dupthresh"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: |results, out| {
            swept(results, "beyond-dupthresh", &["duplicates", "dupthresh"], out);
            out.notes.push(SAME_PATH.to_owned());
        },
        figures: dupthresh_figures,
    },
    Experiment {
        id: "beyond/addr",
        title: "Without ADDR",
        setup: "The final generation in the reference network; windows restored or not when a reduction was needless, where \
                duplicates of the same path count, and where all do.",
        cases: &["beyond-addr"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: |results, out| {
            swept(results, "beyond-addr", &["duplicates", "addr"], out);
            out.notes.push(SAME_PATH.to_owned());
        },
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/growth",
        title: "How the windows grow",
        setup: "The final generation in the reference network; each path like a New Reno, the \
                bundle like one, or LIA.",
        cases: &["beyond-growth"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: |results, out| swept(results, "beyond-growth", &["growth"], out),
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/receiver-window",
        title: "Appropriate receiver windows",
        setup: "The reference experiment with receiver windows from the bandwidth-delay product to 720 packets, the same for \
                mHIP and TCP: the papers say only that they are appropriate.",
        cases: &["beyond-receiver-window"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: receiver_window,
        figures: receiver_window_figures,
    },
    Experiment {
        id: "beyond/printed-share",
        title: "Receiver windows of the printed shares",
        setup: "The reference experiment with receiver windows of the rates that the paper prints, 98 packets for mHIP and 49 for \
                TCP, and queues of 1.5 times the path's bandwidth-delay product. Nothing is lost on the shared link: the windows \
                decide, so that nothing of it is judged.",
        cases: &["printed-share"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: printed_share,
        figures: |_| Vec::new(),
    },
    Experiment {
        id: "beyond/shared-red",
        title: "RED at the shared bottleneck",
        setup: "Three paths of one connection and a New Reno meet in one link with RED, which drops every packet with the \
                same probability, whoever sends it.",
        cases: &["beyond-shared-red"],
        ships: Ships::Not(IN_NO_PAPER),
        evaluate: |results, out| {
            for point in results.points("beyond-shared-red") {
                let growth = point.value("growth").unwrap_or("?");
                out.further(format!("FF of the bundle, growth \"{growth}\""), "1", None, bundle(&point));
            }
        },
        figures: |_| Vec::new(),
    },
];

/// Why generation 3 has less use of both than the papers say.
const SAME_PATH: &str = "A path keeps its packets in order, so a duplicate of the same path never tells of reordering, but of a \
     loss. Where only those count, as paper [3] has it with SACK, that replaces what a raised dupthresh and ADDR are for: both \
     have next to nothing to do. Where all duplicates count, as in paper [2], both act.";

/// FF, totals, retransmissions and reductions taken back at each value of the swept keys.
fn swept(results: &Results, case: &str, keys: &[&str], out: &mut Evaluation) {
    for point in results.points(case) {
        let values: Vec<String> = keys.iter().map(|key| format!("{key} {}", point.value(key).unwrap_or("?"))).collect();
        let at = values.join(", ");
        out.further(format!("friendliness factor, {at}"), "1", None, factor(&point));
        out.further(format!("total throughput of mHIP, {at}"), "", None, total(&point));
        out.further(format!("retransmissions of mHIP, {at}"), "packets", None, retransmissions(&point));
        let undone = Measured::of(&point.flow("mhip", |flow| flow.undone as f64));
        out.further(format!("reductions of mHIP taken back, {at}"), "1", None, undone);
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
    for (duplicates, name) in [("same_path", "duplicates of the same path"), ("any_path", "all duplicates")] {
        let points = results.points("beyond-dupthresh").filter(|point| point.value("duplicates") == Some(duplicates));
        let line: Vec<_> = points.filter_map(|point| Some((point.number("dupthresh")?, factor(&point)?))).collect();
        figure = figure.measured(name, &line);
    }
    vec![figure]
}

fn printed_share(results: &Results, out: &mut Evaluation) {
    for point in results.points("printed-share") {
        let generation = point.value("generation").unwrap_or("?");
        let of = |flow: &str, value: fn(&FlowResult) -> f64| Measured::of(&point.flow(flow, value));
        out.further(format!("friendliness factor, generation {generation}"), "1", None, factor(&point));
        out.further(format!("mHIP on Path1, generation {generation}"), "", None, Measured::of(&on_path1(&point)));
        out.further(
            format!("the competing TCP, generation {generation}"),
            "",
            None,
            of("tcp", |flow| flow.throughput_mbps),
        );
        out.further(format!("total of mHIP, generation {generation}"), "", None, total(&point));
        let lost = of("tcp", |flow| flow.losses as f64);
        out.further(format!("packets that the competing TCP loses, generation {generation}"), "packets", None, lost);
    }
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

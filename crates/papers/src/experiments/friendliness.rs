//! Papers \[2\] and \[3\]: how friendly each generation is to the TCP and the UDP that share its paths.

use simulator::FlowResult;

use super::{flow, on_path, on_path1, rates, shown, throughput, windows};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "mhip-friendliness/simple",
        title: "Simple congestion control",
        setup: "mHIP of the first generation over 8 and 4 Mbit/s, a New Reno on the first path, UDP on the second from 5 \
                to 11 s; receiver windows of all that the paths and their queues hold, so that loss decides.",
        cases: &["simple"],
        ships: Ships::In(&["simple"]),
        evaluate: |results, out| {
            reference(results, "simple", out);
            let factor = friendliness(results, "simple");
            above_one(factor, "with simple congestion control mHIP is too aggressive: FF > 1", out);
            out.notes.extend([WINDOWS.to_owned(), SIMPLE.to_owned()]);
        },
        figures: |results| paths(results, "simple", "Fig. 2"),
    },
    Experiment {
        id: "mhip-friendliness/two-level",
        title: "Two-level congestion control",
        setup: "The same network; a window for each path, dupthresh 3.",
        cases: &["two-level"],
        ships: Ships::In(&["two-level"]),
        evaluate: |results, out| {
            reference(results, "two-level", out);
            let factor = friendliness(results, "two-level");
            out.relation(
                "two-level control without reordering tolerance is too lenient: FF < 1",
                factor.map(|factor| factor.mean < 1.0),
                format!("FF = {}", shown(factor)),
            );
            out.notes.push(TWO_LEVEL.to_owned());
        },
        figures: |results| paths(results, "two-level", "Fig. 4"),
    },
    Experiment {
        id: "mhip-friendliness/two-level-final",
        title: "Two-level control that tolerates reordering",
        setup: "The same network; two-level control with dupthresh 6 and ADDR, as the second paper ends: acknowledgments are \
                cumulative, and every duplicate counts.",
        cases: &["two-level-final"],
        ships: Ships::In(&["two-level-final"]),
        evaluate: |results, out| reference(results, "two-level-final", out),
        figures: |results| paths(results, "two-level-final", "Fig. 5 and 6"),
    },
    Experiment {
        id: "mhip-friendliness/final",
        title: "The final mHIP",
        setup: "The same network; tolerance of reordering, windows restored, SACK with SMART, a receive buffer.",
        cases: &["reference", "simple", "two-level", "udp-interval", "udp-interval-8"],
        ships: Ships::In(&["reference", "udp-interval", "udp-interval-8"]),
        evaluate: final_generation,
        figures: final_figures,
    },
    Experiment {
        id: "mhip-friendliness/receive-buffer",
        title: "Friendliness and the receive buffer",
        setup: "The same network, with receiver windows of 720 packets, since more than 360 are to be out of order; the receiver \
                holds from a few to 720 of them.",
        cases: &["receive-buffer"],
        ships: Ships::Not(NO_BUFFER),
        evaluate: |results, out| receive_buffer(results, "receive-buffer", out),
        figures: |results| vec![buffer_figure(results, "receive-buffer", "Fig. 5.")],
    },
    Experiment {
        id: "mhip-friendliness/steady-state",
        title: "Steady state",
        setup: "mHIP alone on the two paths, and New Reno alone on the first of them, after the first 5 s.",
        cases: &["steady-state", "steady-state-tcp"],
        ships: Ships::In(&["steady-state"]),
        evaluate: steady_state,
        figures: steady_figures,
    },
];

/// Why what ships is not run over sizes of the receive buffer.
const NO_BUFFER: &str = "it has no such buffer: what is out of order is released after a time, not dropped";

/// What the paper leaves open, and what was chosen.
const WINDOWS: &str = "Receiver windows, \"appropriate … to allow maximum throughput\", and queues of 1.5 times the bandwidth-delay product \
     \"of the link\" decide most here. A link's round trip is half of its path's, so queues hold 72 and 36 packets; both flows have \
     windows of what mHIP's paths and queues hold together, 360 packets, so that loss decides. The printed rates come out where \
     windows are the printed shares and nothing is lost (\"Receiver windows of the printed shares\"); other windows are under \
     \"Appropriate receiver windows\".";
const SIMPLE: &str = "The paper does not tell how often signalling packets are sent, how much of an error is believed, and what is \
     noticeably late: every 50 ms, a quarter, and later by more than a quarter of the round trip. Every duplicate reaches New \
     Reno, as it does in a TCP above an unchanged layer.";
const TWO_LEVEL: &str = "Needless halving because of reordering, the paper's own explanation, is what duplicates of all paths give. \
     What more is halved depends on what the paper leaves to New Reno. No reduction for the duplicates that needless \
     retransmissions themselves call forth, which in one path's New Reno the rule on \"recover\" prevents, and here only if it \
     holds for all that was sent until the recovery is over. A timeout is a matter of the path that lost the packet, not of the one on which it was sent \
     again just before. The global window limits the whole stream, as the paper has it, besides the paths' own.";

/// mHIP's throughput on Path1 over that of the TCP beside it.
pub(super) fn factor(point: &PointView<'_>) -> Option<Measured> {
    Measured::ratio(&on_path1(point), &point.flow("tcp", throughput))
}

fn friendliness(results: &Results, case: &str) -> Option<Measured> {
    results.point(case).and_then(|point| factor(&point))
}

fn above_one(factor: Option<Measured>, text: &str, out: &mut Evaluation) {
    out.relation(text, factor.map(|factor| factor.mean > 1.0), format!("FF = {}", shown(factor)));
}

/// The quantities that every generation has in the reference experiment.
fn reference(results: &Results, case: &str, out: &mut Evaluation) {
    let path1 = results.point(case).map(|point| on_path1(&point)).unwrap_or_default();
    out.quantity("throughput of mHIP on Path1", Measured::of(&path1));
    out.quantity("throughput of the competing TCP", Measured::of(&flow(results, case, "tcp", throughput)));
    out.quantity("friendliness factor on Path1", friendliness(results, case));
    out.quantity("total throughput of mHIP", Measured::of(&flow(results, case, "mhip", throughput)));
    out.further("retransmissions of mHIP", "packets", None, count(results, case, |flow| flow.retransmissions as f64));
    out.further("timeouts of mHIP", "1", None, count(results, case, |flow| flow.timeouts as f64));
    out.further("reductions of mHIP taken back", "1", None, count(results, case, |flow| flow.undone as f64));
    let lost = Measured::of(&flow(results, case, "tcp", |flow| flow.losses as f64));
    out.further("packets that the competing TCP loses", "packets", None, lost);
}

fn count(results: &Results, case: &str, value: fn(&FlowResult) -> f64) -> Option<Measured> {
    Measured::of(&flow(results, case, "mhip", value))
}

fn final_generation(results: &Results, out: &mut Evaluation) {
    reference(results, "reference", out);
    let (last, first) = (flow(results, "reference", "mhip", throughput), flow(results, "simple", "mhip", throughput));
    let cost = Measured::ratio(&last, &first);
    let cost = cost.map(|c| Measured { mean: 1.0 - c.mean, low: 1.0 - c.high, high: 1.0 - c.low, ..c });
    out.quantity("cost of friendliness: 1 - total(final) / total(simple)", cost);

    beside_udp(results, out);

    let [simple, two_level, last] = ["simple", "two-level", "reference"].map(|case| friendliness(results, case));
    let detail = format!("{} < {} < {}", shown(two_level), shown(last), shown(simple));
    let ordered = super::below(two_level, last).zip(super::below(last, simple)).map(|(a, b)| a && b);
    out.relation("FF(two-level) < FF(final) < FF(simple)", ordered, detail);
    let distance = |factor: Option<Measured>| factor.map(|factor| (factor.mean - 1.0).abs());
    let closest = distance(last)
        .zip(distance(simple).zip(distance(two_level)))
        .map(|(last, (simple, two_level))| last < simple && last < two_level);
    let shown = [last, simple, two_level].map(|factor| distance(factor).map_or("?".into(), |d| format!("{d:.3}")));
    out.relation(
        "FF(final) is the closest to 1",
        closest,
        format!("|FF - 1|: final {}, simple {}, two-level {}", shown[0], shown[1], shown[2]),
    );
}

/// The second path while UDP crosses it: 4 Mbit/s as in the set-up, and 8, which the printed rates need.
fn beside_udp(results: &Results, out: &mut Evaluation) {
    for (case, on) in [("udp-interval", "Path2"), ("udp-interval-8", "a Path2 of 8 Mbit/s")] {
        let path2 = results.point(case).map(|point| on_path(&point, 1)).unwrap_or_default();
        let udp = flow(results, case, "udp", throughput);
        let factor = Measured::ratio(&path2, &udp);
        out.further(format!("factor against the UDP cross-traffic on {on}, 5-11 s"), "1", None, factor);
        out.further(format!("mHIP on {on}, 5-11 s"), "", None, Measured::of(&path2));
        out.further(format!("UDP on {on}, 5-11 s"), "", None, Measured::of(&udp));
    }
    out.notes.push(
        "The printed pair of 4.20 and 3.98 Mbit/s on Path2 needs a link of 8.18 Mbit/s; the link of the set-up has 4. What \
         the set-up gives is in the rows of mHIP and UDP on Path2, which add up to no more than the link; beside them is what a \
         link of 8 Mbit/s gives, which is not judged, since it was chosen by the printed rates."
            .to_owned(),
    );
}

/// Throughput on Path1 over time, and the windows.
fn paths(results: &Results, case: &str, place: &str) -> Vec<Figure> {
    let caption = format!("{place}: one run, bins of 0.1 s.");
    let figure = Figure::new("Throughput over time", caption, "time, s", "Mbit/s");
    let point = results.point(case);
    [Some(rates(figure, point)), windows(point)].into_iter().flatten().collect()
}

fn final_figures(results: &Results) -> Vec<Figure> {
    let mut figures = paths(results, "reference", "Fig. 6 and 7");
    let mut figure = Figure::new(
        "Friendliness of the three generations",
        "Means and 95 % intervals; 1 is the share of one TCP.",
        "generation",
        "friendliness factor on Path1",
    );
    let cases = [(1.0, "simple"), (2.0, "two-level"), (3.0, "reference")];
    let points: Vec<_> = cases.iter().filter_map(|(x, case)| Some((*x, friendliness(results, case)?))).collect();
    figure = figure.measured("measured", &points);
    figures.push(figure.with("printed", Style::Points, vec![(1.0, 1.11), (2.0, 0.89), (3.0, 1.02)]));
    figures
}

/// FF over the size of the buffer, in the order of the sweep.
fn curve(results: &Results, case: &str) -> Vec<(f64, Measured)> {
    results.points(case).filter_map(|point| Some((point.number("receive_buffer")?, factor(&point)?))).collect()
}

pub(super) fn receive_buffer(results: &Results, case: &str, out: &mut Evaluation) {
    let curve = curve(results, case);
    // Where the means, and the ends of the intervals, come to 1 for the first time.
    let crossing = |value: fn(&Measured) -> f64| {
        curve.windows(2).find_map(|pair| {
            let [(x0, a), (x1, b)] = pair else { return None };
            let (a, b) = (value(a), value(b));
            (a < 1.0 && b >= 1.0).then(|| x0 + (1.0 - a) / (b - a) * (x1 - x0))
        })
    };
    let crossed = crossing(|m| m.mean).map(|mean| Measured {
        mean,
        low: crossing(|m| m.high).unwrap_or(0.0),
        high: crossing(|m| m.low).unwrap_or(f64::INFINITY),
        seeds: curve.first().map_or(0, |(_, m)| m.seeds),
        spread: false,
    });
    out.quantity("buffer at which FF = 1", crossed);
    let ends = curve.first().zip(curve.last());
    let detail = format!("FF from {} to {}", shown(ends.map(|e| e.0.1)), shown(ends.map(|e| e.1.1)));
    out.relation("FF rises with the buffer", ends.map(|(first, last)| first.1.high < last.1.low), detail);
    // The most that a buffer without a limit of its own ever held.
    let held = results.points(case).last().map(|point| point.flow("mhip", |flow| flow.most_held as f64));
    let held = held.and_then(|held| held.into_iter().reduce(f64::max));
    let beyond: Vec<_> = curve.iter().filter(|(buffer, _)| held.is_some_and(|held| *buffer >= held)).collect();
    let (holds, detail) = match beyond.as_slice() {
        [(x, a), .., (y, b)] => (
            Some((a.mean - b.mean).abs() <= 0.02),
            format!(
                "{} at {x} packets, {} at {y}; no more than {} were held",
                shown(Some(*a)),
                shown(Some(*b)),
                held.unwrap_or(0.0)
            ),
        ),
        _ => (None, String::new()),
    };
    out.relation("FF stays flat once the buffer holds all reordered packets", holds, detail);
}

pub(super) fn buffer_figure(results: &Results, case: &str, place: &str) -> Figure {
    let curve = curve(results, case);
    let ends = curve.first().zip(curve.last()).map(|(a, b)| vec![(a.0, 1.0), (b.0, 1.0)]).unwrap_or_default();
    let caption = format!("{place} Means and 95 % intervals.");
    Figure::new(
        "Friendliness over the receive buffer",
        caption,
        "receive buffer, packets",
        "friendliness factor on Path1",
    )
    .measured("measured", &curve)
    .with("the share of one TCP", Style::Dashed, ends)
}

fn steady_state(results: &Results, out: &mut Evaluation) {
    let mhip = results.point("steady-state").map(|point| on_path1(&point)).unwrap_or_default();
    let tcp = flow(results, "steady-state-tcp", "tcp", throughput);
    out.quantity("throughput of mHIP on Path1, steady state", Measured::of(&mhip));
    out.quantity("throughput of TCP on the same path, steady state", Measured::of(&tcp));
    // Throughput is counted on the wire; these are the same packets without their headers.
    let payload = results.point("steady-state").map(|point| {
        point.values(|run| {
            run.flows.iter().find(|flow| flow.name == "mhip")?.paths.first().map(|path| path.goodput_mbps)
        })
    });
    out.further("payload of mHIP on Path1, steady state", "", None, payload.and_then(|values| Measured::of(&values)));
    let payload = flow(results, "steady-state-tcp", "tcp", |flow| flow.goodput_mbps);
    out.further("payload of TCP on the same path, steady state", "", None, Measured::of(&payload));
    let ratio = Measured::ratio(&mhip, &tcp);
    let detail = format!("mHIP / TCP = {}", shown(ratio));
    out.relation(
        "TCP-compatible: mHIP takes no more than TCP (up to the interval)",
        ratio.map(|r| r.low <= 1.0),
        detail.clone(),
    );
    out.relation("TCP-equivalent: within 2 percent", ratio.map(|r| (r.mean - 1.0).abs() <= 0.02), detail);
}

fn steady_figures(results: &Results) -> Vec<Figure> {
    let figure = Figure::new("Alone", "Fig. 8: one run each, bins of 0.1 s.", "time, s", "Mbit/s");
    let figure = rates(figure, results.point("steady-state"));
    vec![rates(figure, results.point("steady-state-tcp"))]
}

//! Papers \[2\] and \[3\]: how friendly each generation is to the TCP and the UDP that share its paths.

use simulator::FlowResult;

use super::{flow, on_path, on_path1, rates, shown, windows};
use crate::estimate::Measured;
use crate::experiment::Experiment;
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "mhip-friendliness/simple",
        title: "Simple congestion control",
        setup: "mHIP of the first generation over 8 and 4 Mbit/s, a New Reno on the first path, UDP on the second from 5 \
                to 11 s; receiver windows of the share of each, 98 and 49 packets.",
        cases: &["simple"],
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
        id: "mhip-friendliness/final",
        title: "The final mHIP",
        setup: "The same network; tolerance of reordering, windows restored, SACK with SMART, a receive buffer.",
        cases: &["reference", "simple", "two-level", "udp-interval"],
        evaluate: final_generation,
        figures: final_figures,
    },
    Experiment {
        id: "mhip-friendliness/receive-buffer",
        title: "Friendliness and the receive buffer",
        setup: "The same network, with receiver windows without limit; the receiver holds from a few to 720 packets out of \
                order.",
        cases: &["receive-buffer"],
        evaluate: |results, out| receive_buffer(results, "receive-buffer", out),
        figures: |results| vec![buffer_figure(results, "receive-buffer", "Fig. 5.")],
    },
    Experiment {
        id: "mhip-friendliness/steady-state",
        title: "Steady state",
        setup: "mHIP alone on the two paths, and New Reno alone on the first of them, after the first 5 s.",
        cases: &["steady-state", "steady-state-tcp"],
        evaluate: steady_state,
        figures: steady_figures,
    },
];

/// What the paper leaves open, and what comes of each way to read it.
const WINDOWS: &str = "Receiver windows, \"appropriate … to allow maximum throughput\": here what a share of 4 Mbit/s needs on each \
     path, so that nothing overflows by itself (for the steady state, all of them). It decides most: nothing that the paper prints for Path1 is above 4 Mbit/s. With \
     windows without limit, as under \"Appropriate receiver windows\", TCP's slow start fills the queue of Path1 and what mHIP \
     loses then it does not get back in 20 s. The 453 packets out of order of Fig. 5 do not fit into such windows: that \
     experiment has others.";
const SIMPLE: &str = "How often HIP's signalling packets tell the delays of paths, and how much of an error is believed: every 50 \
     ms, a quarter; FF is 1.17 with 20 ms, 1.07 with 100, 0.94 with 200, and 1.05 to 1.16 with an eighth to a half; 0.78 without \
     them, with probes of data as in paper [1]. What is noticeably late: by half of the round trip; by a whole one is the same, \
     by a quarter 0.87. Which duplicates reach New Reno: those of packets that went the way of what is missing, since the layer \
     below knows the paths; with all of them FF is 0.77 and mHIP's total 4.0 Mbit/s. With windows without limit it is 0.13. None \
     of these, by itself or with others, brought more than 0.6 there: a scheduler that reads the queues from the links, no \
     halving when a path is closed instead, queues of 1.5 times a link's own product.";
const TWO_LEVEL: &str = "Needless halving because of reordering, the paper's own explanation, is what duplicates of all paths give. \
     What more is halved depends on what the paper leaves to New Reno, from FF 0.70 with none of the following to 0.94 with all of \
     them. No reduction for the duplicates that needless retransmissions themselves call forth, which in one path's New Reno the \
     rule on \"recover\" prevents, and here only if it holds for all that was sent until the recovery is over: without that each \
     reduction brings several more, FF 0.82. A timeout is a matter of the path that lost the packet, not of the one on which it was sent again \
     just before: without that, FF 0.75. The global window limits the whole stream, as the paper has it, besides the paths' own: \
     without that, 0.965. The competing TCP cannot have its printed 3.98 Mbit/s beside an mHIP with its printed 3.56: its \
     window of 49 packets gives 4.03 through an empty queue, and 0.12 less is the cost of its own slow start.";

fn throughput(flow: &FlowResult) -> f64 {
    flow.throughput_mbps
}

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

    let interval = results.point("udp-interval");
    let path2 = interval.map(|point| on_path(&point, 1)).unwrap_or_default();
    let udp = flow(results, "udp-interval", "udp", throughput);
    out.quantity("factor against the UDP cross-traffic on Path2, 5-11 s", Measured::ratio(&path2, &udp));
    out.further("mHIP on Path2, 5-11 s", "", None, Measured::of(&path2));
    out.further("UDP on Path2, 5-11 s", "", None, Measured::of(&udp));
    out.notes.push(
        "The printed pair of 4.20 and 3.98 Mbit/s on Path2 needs a link of 8.18 Mbit/s; the link of the set-up has 4. What \
         the set-up gives is in the rows of mHIP and UDP on Path2, which add up to no more than the link."
            .to_owned(),
    );

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

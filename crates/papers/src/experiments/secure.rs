//! Paper \[1\]: several paths as one, without and with cross-traffic.

use simulator::PathResult;

use super::{binned, shown};
use crate::estimate::{Measured, r_squared};
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "secure-multipath/ideal-two-path",
        title: "Two ideal paths",
        setup: "A file over two disjoint paths, each of 1 to 10 Mbit/s, beside the same file over one path.",
        cases: &["two-paths", "one-path", "one-path-mhip"],
        ships: Ships::In(&["two-paths", "one-path-mhip"]),
        evaluate: two_paths,
        figures: two_paths_figures,
    },
    Experiment {
        id: "secure-multipath/ideal-three-path",
        title: "Three ideal paths",
        setup: "Paths of 4 and 5 Mbit/s, and a third one of 1 to 10 Mbit/s.",
        cases: &["three-paths", "two-paths", "one-path"],
        ships: Ships::In(&["three-paths", "two-paths"]),
        evaluate: three_paths,
        figures: three_paths_figures,
    },
    Experiment {
        id: "secure-multipath/cross-traffic",
        title: "Cross-traffic, and avoiding it",
        setup: "Paths of 5, 4 and 2 Mbit/s; UDP takes most of each for a while; with and without marking, closing and \
                probing of paths. Probes are packets of data, one a second, as in this paper; beside them, not judged, \
                signalling packets every 50 ms, as paper [3] has it.",
        cases: &["cross-traffic", "cross-traffic-avoided", "cross-traffic-signalling", "cross-network"],
        ships: Ships::In(&["cross-traffic-avoided"]),
        evaluate: cross_traffic,
        figures: cross_traffic_figures,
    },
];

/// A number of a path.
type OfPath = fn(&PathResult) -> f64;

/// What is counted of paths.
const PATHS: [(&str, OfPath); 2] =
    [("closings of paths", |path| path.closings as f64), ("probes", |path| path.probes as f64)];

/// Bytes of a packet on the wire.
const PACKET: u64 = 1290;
const PATH1: &str = "n0-n2,n2-n1.rate";
const PATH2: &str = "n0-n3,n3-n1.rate";
const PATH3: &str = "n0-n4,n4-n1.rate";

fn goodput(point: &PointView<'_>) -> Vec<f64> {
    point.flow("mhip", |flow| flow.goodput_mbps)
}

/// The same with headers: the paper's "packets of 1250 bytes" may be whole packets.
fn whole(point: &PointView<'_>, flow: &str) -> Vec<f64> {
    point.flow(flow, |flow| flow.goodput_wire_mbps)
}

/// The goodput of TCP over one path of this rate, in each run.
fn single(results: &Results, rate: f64) -> Vec<f64> {
    let point = results.points("one-path").find(|point| point.number(PATH1) == Some(rate));
    point.map(|point| point.flow("tcp", |flow| flow.goodput_mbps)).unwrap_or_default()
}

fn add(all: &[Vec<f64>]) -> Vec<f64> {
    let length = all.iter().map(Vec::len).min().unwrap_or(0);
    (0..length).map(|run| all.iter().filter_map(|values| values.get(run)).sum()).collect()
}

/// R² of goodput over the sum of the rates, one value per run, from points `(sum, goodput of each run)`.
fn linearity(points: &[(f64, Vec<f64>)]) -> Option<Measured> {
    let runs = points.iter().map(|(_, values)| values.len()).min()?;
    let fits = (0..runs).filter_map(|run| {
        let line: Vec<_> = points.iter().filter_map(|(x, values)| Some((*x, *values.get(run)?))).collect();
        r_squared(&line)
    });
    Measured::of(&fits.collect::<Vec<_>>())
}

fn two_paths(results: &Results, out: &mut Evaluation) {
    let both = results.at("two-paths", &[(PATH1, "10Mbit/s"), (PATH2, "10Mbit/s")]);
    out.quantity("goodput, 10 + 10", both.and_then(|point| Measured::of(&goodput(&point))));
    let alone = results.at("one-path-mhip", &[(PATH1, "10Mbit/s")]);
    let alone = alone.and_then(|point| Measured::of(&point.flow("tcp", |flow| flow.goodput_mbps)));
    out.quantity("goodput, 10 + 0 (one path)", alone);
    let whole = both.and_then(|point| Measured::of(&whole(&point, "mhip")));
    out.further("10 + 10, packets counted whole", "", None, whole);
    let alone = results.at("one-path-mhip", &[(PATH1, "10Mbit/s")]);
    out.further(
        "10 + 0, packets counted whole",
        "",
        None,
        alone.and_then(|point| Measured::of(&self::whole(&point, "tcp"))),
    );

    let (mut ratios, mut grid, mut reordered) = (Vec::new(), Vec::new(), Vec::new());
    for point in results.points("two-paths") {
        let (Some(a), Some(b)) = (point.number(PATH1), point.number(PATH2)) else { continue };
        let got = goodput(&point);
        ratios.extend(Measured::ratio(&got, &add(&[single(results, a), single(results, b)])));
        reordered.push(point.flow("mhip", |flow| flow.reordered as f64));
        grid.push((a + b, got));
    }
    for point in results.points("one-path-mhip") {
        let Some(rate) = point.number(PATH1) else { continue };
        grid.push((rate, point.flow("tcp", |flow| flow.goodput_mbps)));
    }
    out.quantity("goodput / sum of the two single-path goodputs, over the whole grid", Measured::spread(&ratios));
    let mean = Measured::spread(&ratios).map(|spread| Measured { low: spread.mean, high: spread.mean, ..spread });
    out.further("the same ratio, mean over the grid", "1", Some([0.98, 1.01]), mean);
    out.quantity("packets received out of order", Measured::of(&add(&reordered)));
    let fit = linearity(&grid);
    out.relation(
        "goodput grows linearly with the sum of the bandwidths (R² >= 0.995 over the grid)",
        fit.map(|fit| fit.mean >= 0.995),
        format!("R² = {}", shown(fit)),
    );
}

fn two_paths_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Goodput over the rates of both paths",
        "Fig. 5 as lines: each is one rate of Path2. The broken line is the sum of the two rates for Path2 of 10 Mbit/s.",
        "rate of Path1, Mbit/s",
        "goodput, Mbit/s",
    );
    for rate in [1.0, 2.0, 4.0, 6.0, 8.0, 10.0] {
        let line = results.points("two-paths").filter(|point| point.number(PATH2) == Some(rate));
        let line: Vec<_> =
            line.filter_map(|point| Some((point.number(PATH1)?, Measured::of(&goodput(&point))?))).collect();
        figure = figure.measured(format!("Path2 {rate} Mbit/s"), &line);
    }
    let alone: Vec<_> = results
        .points("one-path-mhip")
        .filter_map(|point| Some((point.number(PATH1)?, Measured::of(&point.flow("tcp", |flow| flow.goodput_mbps))?)))
        .collect();
    vec![figure.measured("Path1 alone", &alone).with(
        "sum, Path2 10 Mbit/s",
        Style::Dashed,
        vec![(1.0, 11.0), (10.0, 20.0)],
    )]
}

fn three_paths(results: &Results, out: &mut Evaluation) {
    for (rate, name) in
        [(2.0, "goodput, single path 2"), (4.0, "goodput, single path 4"), (5.0, "goodput, single path 5")]
    {
        out.quantity(name, Measured::of(&single(results, rate)));
    }
    let three = results.at("three-paths", &[(PATH3, "2Mbit/s")]).map(|point| goodput(&point)).unwrap_or_default();
    out.quantity("goodput, 2 + 4 + 5", Measured::of(&three));
    for rate in [2.0, 4.0, 5.0] {
        let point = results.points("one-path").find(|point| point.number(PATH1) == Some(rate));
        let whole = point.and_then(|point| Measured::of(&whole(&point, "tcp")));
        out.further(format!("single path {rate}, packets counted whole"), "", None, whole);
    }
    let all = results.at("three-paths", &[(PATH3, "2Mbit/s")]);
    out.further(
        "2 + 4 + 5, packets counted whole",
        "",
        None,
        all.and_then(|point| Measured::of(&whole(&point, "mhip"))),
    );
    let sum = add(&[single(results, 2.0), single(results, 4.0), single(results, 5.0)]);
    out.quantity("goodput / sum of singles, 2 + 4 + 5", Measured::ratio(&three, &sum));

    let line: Vec<_> =
        results.points("three-paths").filter_map(|point| Some((point.number(PATH3)?, goodput(&point)))).collect();
    let fit = linearity(&line);
    out.relation(
        "with 4 and 5 fixed, goodput is linear in the third path's bandwidth (R² >= 0.995)",
        fit.map(|fit| fit.mean >= 0.995),
        format!("R² = {}", shown(fit)),
    );
    let two = results.at("two-paths", &[(PATH1, "4Mbit/s"), (PATH2, "5Mbit/s")]).map(|point| goodput(&point));
    let ten = results.at("three-paths", &[(PATH3, "10Mbit/s")]).map(|point| goodput(&point));
    let ratio = two.zip(ten).and_then(|(two, ten)| Measured::ratio(&ten, &two));
    out.relation(
        "a third path of 10 Mbit/s more than doubles the goodput of 4 + 5",
        ratio.map(|ratio| ratio.mean > 2.0),
        format!("{} times as much", shown(ratio)),
    );
}

fn three_paths_figures(results: &Results) -> Vec<Figure> {
    let line: Vec<_> = results
        .points("three-paths")
        .filter_map(|point| Some((point.number(PATH3)?, Measured::of(&goodput(&point))?)))
        .collect();
    let two = results.at("two-paths", &[(PATH1, "4Mbit/s"), (PATH2, "5Mbit/s")]);
    let level = two.and_then(|point| Measured::of(&goodput(&point))).map(|two| two.mean);
    let level = level.map(|mean| vec![(1.0, mean), (10.0, mean)]).unwrap_or_default();
    let figure = Figure::new("Adding a third path", "Fig. 7.", "rate of Path3, Mbit/s", "goodput, Mbit/s");
    vec![figure.measured("three paths", &line).with("paths of 4 and 5 Mbit/s alone", Style::Dashed, level)]
}

fn cross_traffic(results: &Results, out: &mut Evaluation) {
    let of = |case: &str| results.point(case).map(|point| goodput(&point)).unwrap_or_default();
    let (none, crossed, avoided) = (of("cross-network"), of("cross-traffic"), of("cross-traffic-avoided"));
    out.quantity("goodput, no cross-traffic", Measured::of(&none));
    out.quantity("goodput, cross-traffic, no congestion avoidance", Measured::of(&crossed));
    out.quantity("goodput, cross-traffic, marking + path closing + probing", Measured::of(&avoided));
    let gain = Measured::ratio(&avoided, &crossed);
    let gain = gain.map(|g| Measured { mean: g.mean - 1.0, low: g.low - 1.0, high: g.high - 1.0, ..g });
    out.quantity("gain of the technique", gain);
    let signalling = of("cross-traffic-signalling");
    out.further("goodput, the technique with signalling", "", None, Measured::of(&signalling));
    for (case, name) in [("cross-traffic-avoided", "data"), ("cross-traffic-signalling", "signalling")] {
        for (what, count) in PATHS {
            let sum = |flow: &simulator::FlowResult| flow.paths.iter().map(count).sum::<f64>();
            let sum = Measured::of(&super::flow(results, case, "mhip", sum));
            out.further(format!("{what}, probing with {name}"), "1", None, sum);
        }
    }
    type Count = fn(&simulator::FlowResult) -> f64;
    let counts: [(&str, Count); 2] =
        [("drops", |flow| flow.losses as f64), ("retransmissions", |flow| flow.retransmissions as f64)];
    for (name, count) in counts {
        let with = Measured::of(&super::flow(results, "cross-traffic-avoided", "mhip", count));
        let without = Measured::of(&super::flow(results, "cross-traffic", "mhip", count));
        out.relation(
            format!("the technique lowers {name}"),
            super::below(with, without),
            format!("{} with, {} without", shown(with), shown(without)),
        );
    }
}

fn cross_traffic_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Sending rate under cross-traffic",
        "Fig. 9: what leaves n0 for mHIP over bins of 0.1 s, one run. UDP crosses from 1 to 2, 3 to 5 and 3.5 to 6 s.",
        "time, s",
        "Mbit/s",
    );
    for (case, name) in [
        ("cross-traffic", "no congestion avoidance"),
        ("cross-traffic-avoided", "marking, closing, probing"),
        ("cross-traffic-signalling", "the same with signalling"),
    ] {
        let Some(run) = results.point(case).and_then(|point| point.series(super::BIN)) else { continue };
        let points = binned(&run, |sample| {
            let sent: u64 = sample.flows.first()?.paths.iter().map(|path| path.sent).sum();
            Some(sent * PACKET)
        });
        figure = figure.with(name, Style::Line, points);
    }
    vec![figure]
}

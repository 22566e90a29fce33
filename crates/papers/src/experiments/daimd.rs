//! Paper \[5\]: DAIMD beside LIA, on idle paths and beside Reno.

use super::{NO_MHIP, shown, windows};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::Figure;
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "daimd/idle",
        title: "DAIMD on idle paths",
        setup: "MPTCP with DAIMD or LIA over two idle paths; 60 s, of which the first 5 are not measured.",
        cases: &["daimd-idle-a", "daimd-idle-b"],
        ships: Ships::Not(NO_MHIP),
        evaluate: idle,
        figures: |results| {
            let mut figures = window_figures(results, "daimd-idle-a", "Fig. 2");
            figures.extend(window_figures(results, "daimd-idle-b", "Fig. 3"));
            figures
        },
    },
    Experiment {
        id: "daimd/shared-with-reno",
        title: "DAIMD beside Reno",
        setup: "MPTCP with DAIMD or LIA over two paths, on each of them a Reno flow; 60 s, of which the first 5 are not \
                measured.",
        cases: &["daimd-capacity", "daimd-delay", "daimd-equal"],
        ships: Ships::Not(NO_MHIP),
        evaluate: beside_reno,
        figures: |results| {
            let mut figures = window_figures(results, "daimd-capacity", "Fig. 4");
            figures.extend(window_figures(results, "daimd-delay", "Fig. 5"));
            figures.extend(window_figures(results, "daimd-equal", "Fig. 6"));
            figures
        },
    },
];

fn at<'a>(results: &'a Results, case: &str, rule: &str) -> Option<PointView<'a>> {
    results.at(case, &[("congestion", rule)])
}

/// Goodput on a path, or of both, in each run.
fn goodput(point: &PointView<'_>, path: Option<usize>) -> Vec<f64> {
    point.values(|run| {
        let flow = run.flows.iter().find(|flow| flow.name == "mptcp")?;
        match path {
            Some(path) => Some(flow.paths.get(path)?.goodput_mbps),
            None => Some(flow.goodput_mbps),
        }
    })
}

fn measured(point: Option<PointView<'_>>, path: Option<usize>) -> Option<Measured> {
    Measured::of(&goodput(&point?, path))
}

fn losses(point: Option<PointView<'_>>) -> Vec<f64> {
    point.map(|point| point.flow("mptcp", |flow| flow.losses as f64)).unwrap_or_default()
}

fn idle(results: &Results, out: &mut Evaluation) {
    for (letter, case) in [("a", "daimd-idle-a"), ("b", "daimd-idle-b")] {
        let daimd = at(results, case, "daimd");
        out.quantity(format!("({letter}) path A, DAIMD"), measured(daimd, Some(0)));
        out.quantity(format!("({letter}) path B, DAIMD"), measured(daimd, Some(1)));
        out.quantity(format!("({letter}) total"), measured(daimd, None));
        out.further(format!("({letter}) total, LIA"), "", None, measured(at(results, case, "lia"), None));
        out.further(
            format!("({letter}) packets lost after slow start, LIA"),
            "packets",
            None,
            Measured::of(&losses(at(results, case, "lia"))),
        );
    }
    let both = losses(at(results, "daimd-idle-a", "daimd"));
    let other = losses(at(results, "daimd-idle-b", "daimd"));
    let sum: Vec<f64> = both.iter().zip(&other).map(|(a, b)| a + b).collect();
    out.quantity("packets lost after slow start, DAIMD", Measured::of(&sum));
    let [daimd, lia] = ["daimd", "lia"].map(|rule| at(results, "daimd-idle-a", rule).and_then(|point| swing(&point)));
    let text = |of: fn(&Swing) -> f64| {
        let [daimd, lia] =
            [&daimd, &lia].map(|swing| swing.as_ref().map_or("?".to_owned(), |s| format!("{:.3}", of(s))));
        format!("DAIMD {daimd}, LIA {lia} (path A of (a), first seed)")
    };
    let pair = daimd.as_ref().zip(lia.as_ref());
    out.relation(
        "the window of DAIMD oscillates with a smaller peak-to-peak than LIA's",
        pair.map(|(daimd, lia)| daimd.swing < lia.swing),
        text(|s| s.swing),
    );
    out.relation(
        "and with a higher frequency",
        pair.map(|(daimd, lia)| daimd.frequency > lia.frequency),
        text(|s| s.frequency),
    );
    out.relation("and peaks slightly lower", pair.map(|(daimd, lia)| daimd.peak < lia.peak), text(|s| s.peak));
}

/// How a window moves: packets from the least to the greatest, reductions a second, the greatest.
struct Swing {
    swing: f64,
    frequency: f64,
    peak: f64,
}

fn swing(point: &PointView<'_>) -> Option<Swing> {
    let run = point.series(super::BIN)?;
    let index = run.flows.iter().position(|flow| flow.name == "mptcp")?;
    // What happens before the first ten seconds are over is slow start and what follows from it.
    let samples = run.series.iter().filter(|sample| sample.time_s >= 10.0);
    let window: Vec<f64> = samples.filter_map(|sample| Some(sample.flows.get(index)?.paths.first()?.cwnd)).collect();
    let low = window.iter().copied().fold(f64::INFINITY, f64::min);
    let peak = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cuts = window.windows(2).filter(|pair| matches!(pair, [a, b] if *b < 0.85 * *a)).count();
    let seconds = window.len() as f64 * super::BIN.as_secs_f64();
    (!window.is_empty()).then(|| Swing { swing: peak - low, frequency: cuts as f64 / seconds, peak })
}

const SETTINGS: [(&str, &str); 3] =
    [("capacity", "daimd-capacity"), ("delay", "daimd-delay"), ("equal", "daimd-equal")];

fn beside_reno(results: &Results, out: &mut Evaluation) {
    for (name, case) in SETTINGS {
        for (rule, title) in [("daimd", "DAIMD"), ("lia", "LIA")] {
            let point = at(results, case, rule);
            let parts = [Some(0), Some(1), None].map(|path| measured(point, path));
            out.parts(format!("{name}: {title} A, B, total"), &parts);
        }
        let point = at(results, case, "daimd");
        let reno = ["reno-a", "reno-b"]
            .map(|flow| point.and_then(|point| Measured::of(&point.flow(flow, |flow| flow.goodput_mbps))));
        out.parts(format!("{name}: Reno beside DAIMD A, B"), &reno);
    }
    for (name, case) in SETTINGS {
        let (daimd, lia) = (at(results, case, "daimd"), at(results, case, "lia"));
        let reno = |path: &str| daimd.and_then(|point| Measured::of(&point.flow(path, |flow| flow.goodput_mbps)));
        let (a, b) = (measured(daimd, Some(0)), measured(daimd, Some(1)));
        let less = super::below(a, reno("reno-a")).zip(super::below(b, reno("reno-b"))).map(|(a, b)| a && b);
        let detail =
            format!("{} and {} beside {} and {}", shown(a), shown(b), shown(reno("reno-a")), shown(reno("reno-b")));
        out.relation(format!("{name}: each subflow of DAIMD takes less than the Reno beside it"), less, detail);
        let (ours, theirs) = (measured(daimd, None), measured(lia, None));
        out.relation(
            format!("{name}: DAIMD's total is below LIA's"),
            super::below(ours, theirs),
            format!("{} and {}", shown(ours), shown(theirs)),
        );
        if name != "equal" {
            let worse = |point: Option<PointView<'_>>| {
                let point = point?;
                Measured::ratio(&goodput(&point, Some(1)), &goodput(&point, None))
            };
            for (point, rule) in [(daimd, "DAIMD"), (lia, "LIA")] {
                out.further(format!("{name}: part of {rule} on the worse path"), "1", None, worse(point));
            }
            out.relation(
                format!("{name}: DAIMD puts a smaller part of its traffic on the worse path than LIA"),
                super::below(worse(daimd), worse(lia)),
                format!("{} and {}", shown(worse(daimd)), shown(worse(lia))),
            );
        }
        let (ours, theirs) = (Measured::of(&losses(daimd)), Measured::of(&losses(lia)));
        out.relation(
            format!("{name}: DAIMD loses fewer packets than LIA"),
            super::below(ours, theirs),
            format!("{} and {}", shown(ours), shown(theirs)),
        );
    }
}

fn window_figures(results: &Results, case: &str, place: &str) -> Vec<Figure> {
    let rules = [("daimd", "DAIMD"), ("lia", "LIA")];
    rules
        .into_iter()
        .filter_map(|(rule, title)| {
            let mut figure = windows(at(results, case, rule))?;
            figure.title = format!("Windows, {title}");
            figure.caption = format!("{place}: {case}, one run.");
            Some(figure)
        })
        .collect()
}

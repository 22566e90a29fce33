//! Paper \[4\]: rules for several paths in CMT-SCTP, at a shared bottleneck and beside a path of one's own.

use fairness::{Bottleneck, Network, NetworkError, Notion, lia_beside_reno, line};

use super::{NO_MHIP, shown};
use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::figure::{Figure, Style};
use crate::results::{PointView, Results};
use crate::row::Evaluation;

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        id: "multipath-fairness/scenario-2",
        title: "Two sub-flows and a single path through one bottleneck",
        setup: "CMT-SCTP with two sub-flows and SCTP through one bottleneck of 5 to 100 Mbit/s with RED; 300 s after 20 s.",
        cases: &["fairness-2", "fairness-2-single", "fairness-2-delay"],
        ships: Ships::Not(NO_MHIP),
        evaluate: scenario_2,
        figures: scenario_2_figures,
    },
    Experiment {
        id: "multipath-fairness/scenario-3",
        title: "A path of one's own and a shared one",
        setup: "CMT-SCTP over alpha = 20 Mbit/s, alone, and beta = 1 to 100 Mbit/s, shared with SCTP; 300 s after 20 s.",
        cases: &["fairness-3", "fairness-3-single"],
        ships: Ships::Not(NO_MHIP),
        evaluate: scenario_3,
        figures: scenario_3_figures,
    },
    Experiment {
        id: "multipath-fairness/expected",
        title: "What is fair",
        setup: "The allocations that the notions of fairness expect, computed and not simulated; beta = 4 Mbit/s.",
        cases: &[],
        ships: Ships::Not(NO_MHIP),
        evaluate: expected,
        figures: expected_figures,
    },
];

/// Names in scenario files and in the paper.
const RULES: [(&str, &str); 3] = [("reno-mp", "Reno-MP"), ("rp-mp-v2", "RP-MP-v2"), ("lia-byte", "MPTCP")];
/// Payload of a packet over its size: what of a rate is goodput at most.
const PAYLOAD: f64 = 1452.0 / 1500.0;
/// Mbit/s of the shared link where fair allocations are computed (Fig. 2).
const BETA: f64 = 4.0;
/// Mbit/s of the path that scenario 3 leaves to the multi-path flow alone.
const ALPHA: f64 = 20.0;

fn goodput(point: &PointView<'_>, flow: &str) -> Vec<f64> {
    point.flow(flow, |flow| flow.goodput_mbps)
}

fn difference(point: &PointView<'_>) -> Vec<f64> {
    goodput(point, "f0").iter().zip(goodput(point, "f1")).map(|(multi, single)| multi - single).collect()
}

/// The part of both that the first flow gets.
fn share(point: &PointView<'_>) -> Option<Measured> {
    let (multi, single) = (goodput(point, "f0"), goodput(point, "f1"));
    let both: Vec<f64> = multi.iter().zip(&single).map(|(multi, single)| multi + single).collect();
    Measured::ratio(&multi, &both)
}

fn of_rule<'a>(results: &'a Results, case: &str, rule: &'a str) -> impl Iterator<Item = PointView<'a>> {
    results.points(case).filter(move |point| point.value("congestion") == Some(rule))
}

/// B0 − B1 of a rule at every rate and delay that is simulated: `(rate, delay in ms, difference)`.
fn differences(results: &Results, rule: &str) -> Vec<(f64, f64, Measured)> {
    let usual = of_rule(results, "fairness-2", rule).map(|point| (10.0, point));
    let swept = of_rule(results, "fairness-2-delay", rule).filter_map(|point| Some((point.number("delay")?, point)));
    let all = usual.chain(swept);
    let mut all: Vec<_> = all
        .filter_map(|(delay, point)| Some((point.number("rate")?, delay, Measured::of(&difference(&point))?)))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
    all
}

fn at(all: &[(f64, f64, Measured)], rate: f64, delay: f64) -> Option<Measured> {
    all.iter().find(|(r, d, _)| *r == rate && *d == delay).map(|(.., measured)| *measured)
}

fn scenario_2(results: &Results, out: &mut Evaluation) {
    let shares: Vec<_> = results.points("fairness-2-single").filter_map(|point| share(&point)).collect();
    out.quantity("Reno-SP: share of F0", Measured::spread(&shares));
    let shares: Vec<_> = of_rule(results, "fairness-2", "reno-mp").filter_map(|point| share(&point)).collect();
    out.quantity("Reno-MP: share of the multi-path flow", Measured::spread(&shares));
    for (rule, name) in [("rp-mp-v2", "RP-MP-v2"), ("lia-byte", "MPTCP")] {
        let shares: Vec<_> = of_rule(results, "fairness-2", rule).filter_map(|point| share(&point)).collect();
        out.further(format!("{name}: share of the multi-path flow"), "1", None, Measured::spread(&shares));
    }

    let pooled = differences(results, "rp-mp-v2");
    let below = pooled.iter().filter(|(.., difference)| difference.mean < 0.0).count();
    let text = pooled.iter().map(|(rate, delay, d)| format!("{} at {rate} Mbit/s and {delay} ms", shown(Some(*d))));
    let text = text.collect::<Vec<_>>().join(", ");
    let members: Vec<_> = pooled.iter().map(|(.., difference)| *difference).collect();
    out.quantity("RP-MP-v2: B0 - B1", Measured::spread(&members));
    let mptcp = differences(results, "lia-byte");
    out.quantity("MPTCP: B0 - B1 at alpha = 100 Mbit/s and 1 ms", at(&mptcp, 100.0, 1.0));

    let some = !pooled.is_empty();
    out.relation(
        "RP-MP-v2: B0 - B1 is mostly below 0",
        some.then_some(2 * below > pooled.len()),
        format!("{below} of {}: {text}", pooled.len()),
    );
    let [narrow, wide] = [20.0, 100.0].map(|rate| at(&mptcp, rate, 1.0));
    out.relation(
        "MPTCP: B0 - B1 grows with alpha",
        super::below(narrow, wide),
        format!("at 1 ms: {} at 20, {} at 100 Mbit/s", shown(narrow), shown(wide)),
    );
    let [short, usual, long] = [1.0, 10.0, 30.0].map(|delay| at(&mptcp, 100.0, delay));
    out.relation(
        "MPTCP: B0 - B1 grows as the delay shrinks",
        super::below(usual, short).zip(super::below(long, usual)).map(|(a, b)| a && b),
        format!("at 100 Mbit/s: {} at 1 ms, {} at 10 ms, {} at 30 ms", shown(short), shown(usual), shown(long)),
    );
    let delays = [1.0, 10.0, 30.0].map(|delay| at(&pooled, 100.0, delay));
    let spread = Measured::spread(&delays.into_iter().flatten().collect::<Vec<_>>());
    out.relation(
        "RP-MP-v2: the delay has a negligible effect (less than 5 percent of alpha)",
        spread.map(|spread| spread.high - spread.low < 5.0),
        format!("at 100 Mbit/s from 1 to 30 ms: {}", shown(spread)),
    );
}

fn scenario_2_figures(results: &Results) -> Vec<Figure> {
    let mut throughput = Figure::new(
        "Payload throughput",
        "Fig. 3(a): F0 is the multi-path flow; with Reno-SP it uses one path.",
        "rate of the bottleneck alpha, Mbit/s",
        "Mbit/s",
    );
    let line = |points: Vec<PointView<'_>>, flow: &str| -> Vec<(f64, Measured)> {
        points.iter().filter_map(|point| Some((point.number("rate")?, Measured::of(&goodput(point, flow))?))).collect()
    };
    for (flow, name) in [("f0", "F0"), ("f1", "F1")] {
        for (rule, title) in RULES {
            throughput = throughput
                .measured(format!("{title}, {name}"), &line(of_rule(results, "fairness-2", rule).collect(), flow));
        }
        throughput =
            throughput.measured(format!("Reno-SP, {name}"), &line(results.points("fairness-2-single").collect(), flow));
    }
    let mut figures = vec![throughput];
    for (rule, title, place) in [("rp-mp-v2", "RP-MP-v2", "Fig. 3(b)"), ("lia-byte", "MPTCP", "Fig. 3(c)")] {
        let mut figure = Figure::new(
            format!("B0 - B1 for {title}"),
            format!("{place}: how much more the multi-path flow gets; above 0 it is too aggressive."),
            "rate of the bottleneck alpha, Mbit/s",
            "B0 - B1, Mbit/s",
        );
        let all = differences(results, rule);
        for delay in [1.0, 10.0, 30.0] {
            let line = all.iter().filter(|(_, d, _)| *d == delay).map(|(rate, _, measured)| (*rate, *measured));
            figure = figure.measured(format!("{delay} ms"), &line.collect::<Vec<_>>());
        }
        figures.push(figure);
    }
    figures
}

/// A rate of beta with the goodputs of both flows, in each run.
type OverBeta = (f64, Vec<f64>, Vec<f64>);

/// All rates of beta with a rule.
fn over_beta(results: &Results, rule: &str) -> Vec<OverBeta> {
    of_rule(results, "fairness-3", rule)
        .filter_map(|point| Some((point.number("rate")?, goodput(&point, "f0"), goodput(&point, "f1"))))
        .collect()
}

/// The rate of beta from which on the single-path flow gets more than the multi-path flow, for good. The interval is where
/// the ends of the differences' intervals cross.
fn crossing(line: &[OverBeta]) -> Option<Measured> {
    let differences: Vec<(f64, Measured)> = line
        .iter()
        .filter_map(|(rate, multi, single)| {
            let difference: Vec<f64> = single.iter().zip(multi).map(|(single, multi)| single - multi).collect();
            Some((*rate, Measured::of(&difference)?))
        })
        .collect();
    let last = |value: fn(&Measured) -> f64| {
        differences.windows(2).rev().find_map(|pair| {
            let [(x0, a), (x1, b)] = pair else { return None };
            let (a, b) = (value(a), value(b));
            (a <= 0.0 && b > 0.0).then(|| x0 - a / (b - a) * (x1 - x0))
        })
    };
    let mean = last(|m| m.mean)?;
    let seeds = differences.first()?.1.seeds;
    Some(Measured {
        mean,
        low: last(|m| m.high).unwrap_or(mean),
        high: last(|m| m.low).unwrap_or(mean),
        seeds,
        spread: false,
    })
}

/// The rate of beta in Mbit/s from which on LIA's equations give the multi-path flow no more than the single-path flow.
fn equal_from() -> Option<f64> {
    // As in the scenario files: packets of 1500 bytes, 10 ms each way, the paper's RED.
    let link = |mbps: f64| Bottleneck {
        rate: mbps * 1e6 / 12_000.0,
        round_trip: 0.02,
        min: 30.0,
        max: 90.0,
        probability: 0.1,
    };
    (200..=1000).map(|tenths| f64::from(tenths) / 10.0).find(|beta| {
        let rates = lia_beside_reno(&link(ALPHA), &link(*beta));
        rates.own + rates.shared <= rates.single * 1.001
    })
}

fn scenario_3(results: &Results, out: &mut Evaluation) {
    let reno = of_rule(results, "fairness-3", "reno-mp").collect::<Vec<_>>();
    let alpha: Vec<_> = reno
        .iter()
        .filter_map(|point| {
            let path = point.values(|run| Some(run.flows.first()?.paths.first()?.goodput_mbps));
            let all = vec![ALPHA * PAYLOAD; path.len()];
            Measured::ratio(&path, &all)
        })
        .collect();
    out.quantity("Reno-MP: multi-path flow on alpha", Measured::spread(&alpha));
    let half: Vec<_> = reno
        .iter()
        .filter_map(|point| {
            let single = goodput(point, "f1");
            let all = vec![point.number("rate")? * PAYLOAD; single.len()];
            Measured::ratio(&single, &all)
        })
        .collect();
    out.quantity("Reno-MP: single-path flow", Measured::spread(&half));
    for (rule, title) in [("rp-mp-v2", "RP-MP-v2"), ("lia-byte", "MPTCP")] {
        out.quantity(
            format!("{title}: beta from which the single-path flow exceeds the multi-path flow"),
            crossing(&over_beta(results, rule)),
        );
    }
    out.further(
        "MPTCP: beta from which LIA's equations give both flows the same",
        "Mbit/s",
        None,
        exact(equal_from().as_ref()),
    );
    let own: Vec<_> = of_rule(results, "fairness-3", "rp-mp-v2")
        .filter(|point| point.number("rate") == Some(100.0))
        .filter_map(|point| {
            let path = point.values(|run| Some(run.flows.first()?.paths.first()?.goodput_mbps));
            let all = vec![ALPHA * PAYLOAD; path.len()];
            Measured::ratio(&path, &all)
        })
        .collect();
    out.further("RP-MP-v2: part of alpha in use at beta = 100 Mbit/s", "1", None, own.first().copied());
    out.notes.push(
        "RP-MP-v2 leaves part of alpha idle where beta is large: after a loss on alpha it takes half of the bandwidth of both \
         paths from alpha's window, which is more than half of what is there. That is the rule as printed."
            .to_owned(),
    );
    // On its best path a single-path flow would have alpha alone, or what it gets of beta beside another one.
    let mut worst: Option<(f64, String)> = None;
    for (rule, title) in RULES {
        for (rate, multi, _) in over_beta(results, rule) {
            let Some(got) = Measured::of(&multi) else { continue };
            let beside = results.points("fairness-3-single").find(|point| point.number("rate") == Some(rate));
            let beside = beside.and_then(|point| Measured::of(&goodput(&point, "f0")));
            let best = beside.map_or(ALPHA * PAYLOAD, |beside| beside.mean.max(ALPHA * PAYLOAD));
            if worst.as_ref().is_none_or(|(ratio, _)| got.mean / best < *ratio) {
                worst = Some((
                    got.mean / best,
                    format!("least with {title} at beta = {rate} Mbit/s: {} of {best:.1}", shown(Some(got))),
                ));
            }
        }
    }
    let detail = worst.as_ref().map_or_else(String::new, |(_, text)| text.clone());
    out.relation(
        "the multi-path flow never gets less than a single-path flow would on its best path (within 10 percent)",
        worst.map(|(ratio, _)| ratio >= 0.9),
        detail,
    );
    let halves = Measured::spread(&half);
    let detail = format!("part of beta that the single-path flow takes: {}", shown(halves));
    out.relation(
        "Reno-MP stays at the link-centric sub-flow allocation (half of beta, within 15 percent)",
        halves.map(|halves| halves.low >= 0.425 && halves.high <= 0.575),
        detail,
    );
}

fn scenario_3_figures(results: &Results) -> Vec<Figure> {
    let mut figure = Figure::new(
        "Payload throughput over beta",
        "Fig. 4: F0 is the multi-path flow with alpha = 20 Mbit/s of its own. Broken: the network-centric allocation.",
        "rate of beta, Mbit/s",
        "Mbit/s",
    );
    let mut rates = Vec::new();
    for (rule, title) in RULES {
        let line = over_beta(results, rule);
        rates = line.iter().map(|(rate, ..)| *rate).collect();
        let of = |choose: fn(&OverBeta) -> &Vec<f64>| -> Vec<(f64, Measured)> {
            line.iter().filter_map(|point| Some((point.0, Measured::of(choose(point))?))).collect()
        };
        figure = figure.measured(format!("{title}, F0"), &of(|point| &point.1));
        figure = figure.measured(format!("{title}, F1"), &of(|point| &point.2));
    }
    let fair = line(Notion::NetworkFlow, &rates, |beta| fairness::scenario_3(ALPHA, beta)).unwrap_or_default();
    let of = |flow: usize| -> Vec<(f64, f64)> {
        fair.iter().filter_map(|(beta, fair)| Some((*beta, fair.flows.get(flow)? * PAYLOAD))).collect()
    };
    let (multi, single) = (of(0), of(1));
    vec![figure.with("network-centric, F0", Style::Dashed, multi).with("network-centric, F1", Style::Dashed, single)]
}

/// An allocation of scenario 3: B00, B01, B10.
fn allocation(notion: Notion, alpha: f64, beta: f64) -> Option<Vec<f64>> {
    let (network, owners) = fairness::scenario_3(alpha, beta).ok()?;
    Some(notion.allocate(&network, &owners, &[None; 3]).ok()?.subflows)
}

/// A computed number, which has no interval.
fn exact(value: Option<&f64>) -> Option<Measured> {
    value.map(|value| Measured { mean: *value, low: *value, high: *value, seeds: 0, spread: false })
}

fn expected(_: &Results, out: &mut Evaluation) {
    let settings = [
        (
            "scenario 3, network-centric, alpha = 2, beta = 4: B00, B01, B10",
            Notion::NetworkFlow,
            2.0,
            0,
            [2.0, 1.0, 3.0].as_slice(),
        ),
        ("scenario 3, network-centric, alpha >= 4, beta = 4: B01, B10", Notion::NetworkFlow, 4.0, 1, &[0.0, 4.0]),
        ("scenario 3, link-centric, beta = 4: B01, B10", Notion::LinkFlow, 2.0, 1, &[2.0, 2.0]),
    ];
    for (name, notion, alpha, first, printed) in settings {
        let got = allocation(notion, alpha, BETA).unwrap_or_default();
        let got = got.get(first..).unwrap_or_default();
        out.parts(name, &(0..printed.len()).map(|index| exact(got.get(index))).collect::<Vec<_>>());
        let equal =
            got.len() == printed.len() && got.iter().zip(printed).all(|(got, printed)| (got - printed).abs() < 1e-6);
        out.relation(format!("{name}: as printed"), Some(equal), String::new());
    }
    let more = allocation(Notion::NetworkFlow, 7.0, BETA).unwrap_or_default();
    let holds = matches!(more.as_slice(), [_, shared, single] if shared.abs() < 1e-6 && (single - 4.0).abs() < 1e-6);
    out.relation("scenario 3, network-centric: nothing changes above alpha = 4", Some(holds), String::new());
    let scenarios = [fairness::scenario_1(BETA), fairness::scenario_2(BETA), fairness::scenario_3(BETA / 2.0, BETA)];
    let mut worst: f64 = 0.0;
    for (network, owners) in scenarios.iter().flatten() {
        for notion in [Notion::LinkSubflow, Notion::LinkFlow, Notion::NetworkFlow] {
            let Ok(fair) = notion.allocate(network, owners, &vec![None; owners.len()]) else { continue };
            let planes = fairness::planes(network, owners, notion).unwrap_or_default();
            worst = planes.iter().map(|plane| plane.distance(&fair.subflows).abs()).fold(worst, f64::max);
        }
    }
    out.relation(
        "scenarios 1 to 3: what a notion expects lies on its line or plane",
        Some(worst < 1e-6),
        format!("at most {worst:.1e} Mbit/s beside it"),
    );
}

/// Where flow 1 gets its fair share, over what flow 0 gets in sub-flows of the same rate: the planes of a notion, cut.
fn section(notion: Notion, (network, owners): &(Network, Vec<usize>)) -> Vec<Vec<(f64, f64)>> {
    let siblings = owners.iter().filter(|owner| **owner == 0).count().max(1) as f64;
    let at = |plane: &fairness::Plane, total: f64, other: f64| {
        let rates: Vec<f64> = owners.iter().map(|owner| if *owner == 0 { total / siblings } else { other }).collect();
        plane.distance(&rates)
    };
    let planes = fairness::planes(network, owners, notion).unwrap_or_default();
    let lines = planes.iter().filter_map(|plane| {
        // A condition among the sub-flows of one flow says nothing of the other.
        let slope = -at(plane, 1.0, 0.0) / at(plane, 0.0, 1.0);
        slope.is_finite().then(|| vec![(0.0, 0.0), (BETA.min(BETA / slope), BETA.min(BETA / slope) * slope)])
    });
    let mut lines: Vec<_> = lines.collect();
    lines.dedup();
    lines
}

/// Fig. 2(a) and 2(b): a line, and planes, of which the one with sub-flows of the same rate is drawn.
fn section_figure(title: &str, caption: &str, scenario: Result<(Network, Vec<usize>), NetworkError>) -> Option<Figure> {
    let scenario = scenario.ok()?;
    let mut figure = Figure::new(title, caption, "flow 0 in all, Mbit/s", "flow 1, Mbit/s");
    for (notion, style) in
        [(Notion::LinkSubflow, Style::Dashed), (Notion::LinkFlow, Style::Line), (Notion::NetworkFlow, Style::Line)]
    {
        for line in section(notion, &scenario) {
            figure = figure.with(notion.name(), style, line);
        }
    }
    Some(figure.with("all of the link", Style::Dashed, vec![(0.0, BETA), (BETA, 0.0)]))
}

fn expected_figures(_: &Results) -> Vec<Figure> {
    let alphas: Vec<f64> = (1..=120).map(|step| f64::from(step) * 0.05).collect();
    let mut figure = Figure::new(
        "Fair shares of beta",
        "Fig. 2(c): beta = 4 Mbit/s; B01 is the multi-path flow's part of beta, B10 the single-path flow's.",
        "alpha, Mbit/s",
        "Mbit/s",
    );
    for (notion, style) in [(Notion::NetworkFlow, Style::Line), (Notion::LinkFlow, Style::Dashed)] {
        let shares = line(notion, &alphas, |alpha| fairness::scenario_3(alpha, BETA)).unwrap_or_default();
        for (route, name) in [(1, "B01"), (2, "B10")] {
            let points = shares.iter().filter_map(|(alpha, fair)| Some((*alpha, *fair.subflows.get(route)?))).collect();
            figure = figure.with(format!("{name}, {}", notion.name()), style, points);
        }
    }
    let lines = section_figure(
        "Fairness line of scenario 1",
        "Fig. 2(a): two flows of one path on a link of 4 Mbit/s. Where a line meets the broken one, nothing is left over.",
        fairness::scenario_1(BETA),
    );
    let planes = section_figure(
        "Fairness planes of scenario 2",
        "Fig. 2(b): flow 0 has two sub-flows on the link; the planes where these are equal. By sub-flows, flow 0 gets two thirds.",
        fairness::scenario_2(BETA),
    );
    lines.into_iter().chain(planes).chain([figure]).collect()
}

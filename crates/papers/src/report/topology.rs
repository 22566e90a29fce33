//! A drawing of a scenario's network: nodes in columns along the ways of flows, flows as coloured lines.

use std::fmt::Write as _;

use scenario::{NodeIndex, Scenario};

const STEP: f64 = 210.0;
const LANE: f64 = 104.0;
const RADIUS: f64 = 15.0;
/// Flows side by side on a link.
const APART: f64 = 5.0;
/// Colours of flows, also of the first series of charts; readable on light and on dark.
const COLOURS: [&str; 6] = ["#3b82c4", "#d9822b", "#3f9c54", "#c0504d", "#8b6fc0", "#7f7f7f"];

/// The drawing of the network that `scenarios` (the points of a sweep) share, as SVG. What is swept is a range.
pub(super) fn drawing(scenarios: &[Scenario]) -> String {
    let Some(scenario) = scenarios.first() else { return String::new() };
    let places = places(scenario);
    let (width, height) = places.iter().fold((0.0_f64, 0.0_f64), |(w, h), (x, y)| (w.max(*x), h.max(*y)));
    let (width, height) = (width + 60.0, height + 52.0 + 22.0 * scenario.flows.len() as f64);
    let mut svg = format!(
        "<svg class=\"topology\" viewBox=\"0 0 {width:.0} {height:.0}\" style=\"max-width:{width:.0}px\" role=\"img\" \
         aria-label=\"network\">"
    );
    let place = |node: NodeIndex| places.get(node).copied().unwrap_or((0.0, 0.0));
    for link in &scenario.links {
        let ((x1, y1), (x2, y2)) = (place(link.from), place(link.to));
        let _ = write!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"link\"/>");
    }
    for (number, flow) in scenario.flows.iter().enumerate() {
        let colour = COLOURS.get(number % COLOURS.len()).copied().unwrap_or_default();
        for (which, path) in flow.paths.iter().enumerate() {
            let shift = (number as f64 + 0.3 * which as f64) * APART + 4.0;
            let points: Vec<String> = path
                .iter()
                .map(|&node| {
                    let (x, y) = place(node);
                    format!("{x:.1},{:.1}", y + shift)
                })
                .collect();
            let _ = write!(svg, "<polyline points=\"{}\" stroke=\"{colour}\" class=\"flow\"/>", points.join(" "));
        }
        let y = height - 14.0 - 22.0 * (scenario.flows.len() - 1 - number) as f64;
        let count = if flow.count > 1 { format!(" × {}", flow.count) } else { String::new() };
        let _ = write!(
            svg,
            "<line x1=\"20\" x2=\"44\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" class=\"flow\"/>\
             <text x=\"52\" y=\"{y:.1}\" class=\"left\">{}{count}: {}, {} to {}</text>",
            y - 4.0,
            y - 4.0,
            super::escaped(&flow.name),
            flow.protocol.name(),
            node_name(scenario, flow.from),
            node_name(scenario, flow.to),
        );
    }
    for node in 0..scenario.nodes.len() {
        let (x, y) = place(node);
        let _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\"/><text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + 4.5,
            node_name(scenario, node)
        );
    }
    // Last, so that no line crosses a label.
    for (index, link) in scenario.links.iter().enumerate() {
        let ((x1, y1), (x2, y2)) = (place(link.from), place(link.to));
        let angle = ((y2 - y1) / (x2 - x1)).atan().to_degrees();
        let angle = if angle.is_finite() { angle } else { 0.0 };
        let (x, y) = (f64::midpoint(x1, x2), f64::midpoint(y1, y2));
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" transform=\"rotate({angle:.1} {x:.1} {y:.1})\">{}</text>",
            y - 9.0,
            label(scenarios, index)
        );
    }
    svg.push_str("</svg>");
    svg
}

fn node_name(scenario: &Scenario, node: NodeIndex) -> String {
    scenario.nodes.get(node).map(|name| super::escaped(name)).unwrap_or_default()
}

/// Rate and delay of a link, as ranges over the sweep.
fn label(scenarios: &[Scenario], link: usize) -> String {
    let links = || scenarios.iter().filter_map(|scenario| scenario.links.get(link));
    let rates = range(links().filter_map(|link| Some(link.rate? as f64 / 1e6)), "Mbit/s");
    let delays = range(links().map(|link| link.delay.as_secs_f64() * 1e3), "ms").filter(|delay| delay != "0 ms");
    [rates, delays].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn range(values: impl Iterator<Item = f64>, unit: &str) -> Option<String> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    let shown = |value: f64| ((value * 10.0).round() / 10.0).to_string();
    match (low, high) {
        (low, _) if !low.is_finite() => None,
        (low, high) if low == high => Some(format!("{} {unit}", shown(low))),
        (low, high) => Some(format!("{} to {} {unit}", shown(low), shown(high))),
    }
}

/// Where nodes are: columns by the longest way of any flow to them, the nodes of a column below each other.
fn places(scenario: &Scenario) -> Vec<(f64, f64)> {
    let nodes = scenario.nodes.len();
    let mut column = vec![0_usize; nodes];
    let paths = || scenario.flows.iter().flat_map(|flow| &flow.paths);
    // Ways that cross each other in both directions would push each other on without end.
    for _ in 0..nodes {
        for hop in paths().flat_map(|path| path.windows(2)) {
            let [from, to] = hop else { continue };
            let next = column.get(*from).map_or(0, |column| column + 1).min(nodes);
            if let Some(column) = column.get_mut(*to) {
                *column = next.max(*column);
            }
        }
    }
    let tallest = (0..=nodes).map(|depth| column.iter().filter(|c| **c == depth).count()).max().unwrap_or(1);
    let mut used = vec![0_usize; nodes + 1];
    let place = |&depth: &usize| {
        let members = column.iter().filter(|c| **c == depth).count();
        let row = used.get_mut(depth).map_or(0, |row| {
            *row += 1;
            *row - 1
        });
        let y = 40.0 + LANE * ((tallest - members) as f64 / 2.0 + row as f64);
        (40.0 + STEP * depth as f64, y)
    };
    column.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_and_link_is_drawn_once() {
        let text = include_str!("../../scenarios/one-network.toml");
        let scenario = scenario::parse(text, "one-network.toml").unwrap();
        let svg = drawing(std::slice::from_ref(&scenario));
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("class=\"link\"").count(), 2);
        assert_eq!(svg.matches("10 Mbit/s, 10 ms").count(), 2);
        let places = places(&scenario);
        assert!(places.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(drawing(&[]), "");
    }
}

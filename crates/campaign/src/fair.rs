//! What each notion of fairness expects of a scenario, beside what its runs measured.
//!
//! Nodes become sets of locators as M. Becke and others define them (ICC 2012, §III-A): those that the file gives, or one
//! for each link of a node where flows begin or end, and one for every other node. Capacities are the rates of links as the
//! file gives them, before any change. UDP sources take what they send; flows that share the rest are taken as endless.

use std::collections::BTreeMap;
use std::fmt;

use fairness::metrics::{Account, Deviation, Goals, deviation, friendliness, goals};
use fairness::statistics::Estimate;
use fairness::{Allocation, Network, NetworkError, Notion, Topology, TopologyError};
use scenario::{NodeIndex, Protocol, Scenario};
use serde_json::{Value, json};
use simulator::{FlowResult, RunResult};
use text::Diagnostic;

use crate::report::{PointReport, Report};

/// Rates of flows within this of each other are the same (`ALGORITHMS.md` §10).
const TOLERANCE: f64 = 0.05;
/// More paths than this are not named one by one.
const MOST_NAMED: usize = 20;

/// What is expected of one scenario, in Mbit/s on the wire.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// One for each of [`Notion::ALL`].
    allocations: Vec<Allocation>,
    flows: Vec<FlowShape>,
    /// The flow of each sub-flow.
    owners: Vec<usize>,
    /// The capacity of all links that flows use, together.
    capacity: f64,
}

#[derive(Clone, Debug)]
struct FlowShape {
    name: String,
    udp: bool,
    /// The nodes of each path, and its bandwidth.
    paths: Vec<(String, f64)>,
    /// What a flow of one path would get on each.
    single: Vec<f64>,
    /// All loop-free paths between its ends, and the bandwidth of each.
    all_paths: Vec<(String, f64)>,
    /// Flows of one path that it competes with.
    rivals: Vec<usize>,
    /// Bytes on the wire for each byte of payload.
    overhead: f64,
}

impl Expectation {
    /// What each notion expects of `scenario`.
    ///
    /// # Errors
    /// Sources that send more than a link has; a path that nothing limits; what is no network.
    pub fn of(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let names = Locators::new(scenario);
        let refuse = |error: TopologyError| scenario.error_in_flow(0, "paths", error.to_string(), None);
        let topology = names.topology(scenario).map_err(refuse)?;
        let mut paths = Vec::new();
        let mut fixed = Vec::new();
        let mut flows = Vec::new();
        let mut specs = Vec::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let refuse = |error: TopologyError| scenario.error_in_flow(index, "paths", error.to_string(), None);
            let own = flow
                .paths
                .iter()
                .map(|path| topology.path(&names.along(scenario, path)))
                .collect::<Result<Vec<_>, _>>()
                .map_err(refuse)?;
            let udp = flow.protocol == Protocol::Udp;
            let mean = |rate: u64| {
                let part = flow.on_off.map_or(1.0, |times| {
                    let (on, off) = (times.on.as_secs_f64(), times.off.as_secs_f64());
                    on / (on + off)
                });
                rate as f64 / 1e6 * part
            };
            let (from, to) = (&scenario.nodes[flow.from], &scenario.nodes[flow.to]);
            let shown = |path: &fairness::Path| (topology.names(path).join(" "), topology.bandwidth(path));
            // Only for information: a network with too many paths to list is a network all the same.
            let all = topology.paths(from, to).unwrap_or_default();
            let shape = FlowShape {
                name: flow.name.clone(),
                udp,
                paths: own.iter().map(shown).collect(),
                single: Vec::new(),
                all_paths: all.iter().map(shown).collect(),
                rivals: Vec::new(),
                overhead: overhead(flow),
            };
            for number in 1..=flow.count {
                let name = if flow.count > 1 { format!("{}.{number}", flow.name) } else { flow.name.clone() };
                fixed.extend(own.iter().map(|_| if udp { flow.rate.map(mean) } else { None }));
                flows.push(FlowShape { name, ..shape.clone() });
                paths.push(own.clone());
                specs.push(index);
            }
        }
        let limits = |error: TopologyError| match error {
            TopologyError::Network(NetworkError::EmptyRoute { route }) => {
                let flow = paths.iter().enumerate().flat_map(|(flow, own)| own.iter().map(move |_| flow)).nth(route);
                let flow = flow.and_then(|flow| specs.get(flow)).copied().unwrap_or(0);
                let help = "a link with a `rate` on each of its paths".to_owned();
                scenario.error_in_flow(flow, "paths", "nothing limits this flow, so there is no fair share", Some(help))
            }
            other => refuse(other),
        };
        let (network, owners) = topology.network(&paths).map_err(limits)?;
        let limited = topology.limited_links();
        let demand = |error: NetworkError| match error {
            NetworkError::Infeasible { link, demanded, capacity } => {
                let route =
                    (0..owners.len()).find(|route| fixed[*route].is_some() && network.routes()[*route].contains(&link));
                let flow = route.and_then(|route| specs.get(owners[route])).copied().unwrap_or(0);
                let (from, to) = limited.get(link).copied().unwrap_or_default();
                let message =
                    format!("sources send {demanded} Mbit/s over the link from {from} to {to}, which has {capacity}");
                scenario.error_in_flow(flow, "rate", message, Some("lower rates, or a faster link".to_owned()))
            }
            other => scenario.error_in_flow(0, "paths", other.to_string(), None),
        };
        let allocate = |notion: Notion| notion.allocate(&network, &owners, &fixed).map_err(demand);
        let allocations = Notion::ALL.into_iter().map(allocate).collect::<Result<Vec<_>, _>>()?;
        for flow in 0..flows.len() {
            flows[flow].rivals = rivals(&network, &owners, flow, &flows);
            if flows[flow].paths.len() > 1 {
                flows[flow].single = single(&network, &owners, &fixed, flow).map_err(demand)?;
            }
        }
        let used = |link: usize| network.routes().iter().any(|route| route.contains(&link));
        let capacity =
            (0..network.capacities().len()).filter(|link| used(*link)).map(|link| network.capacities()[link]).sum();
        Ok(Self { allocations, flows, owners, capacity })
    }

    /// What `run` measured, on the wire as the expected rates are.
    fn measured(&self, run: &RunResult) -> Allocation {
        let mut rates = Vec::new();
        for (shape, flow) in self.flows.iter().zip(&run.flows) {
            if flow.paths.len() == shape.paths.len() && shape.paths.len() > 1 {
                rates.extend(flow.paths.iter().map(|path| path.goodput_mbps * shape.overhead));
            } else {
                rates.push(flow.goodput_wire_mbps);
                rates.extend(shape.paths.iter().skip(1).map(|_| 0.0));
            }
        }
        let mut measured = Allocation::of(rates, &self.owners);
        // In order: what is delivered counts for a flow, what arrived for its paths.
        for (total, flow) in measured.flows.iter_mut().zip(&run.flows) {
            *total = flow.goodput_wire_mbps;
        }
        measured
    }
}

fn overhead(flow: &scenario::FlowSpec) -> f64 {
    let headers = match flow.protocol {
        Protocol::Sctp | Protocol::CmtSctp => 48,
        Protocol::Udp => 28,
        _ => 40,
    };
    let size = flow.packet_size.unwrap_or(if flow.protocol == Protocol::Mhip { 1250 } else { 1500 });
    f64::from(size) / f64::from(size.saturating_sub(headers).max(1))
}

/// Flows of one path that share a link with `flow`, UDP sources not counted.
fn rivals(network: &Network, owners: &[usize], flow: usize, flows: &[FlowShape]) -> Vec<usize> {
    let links = |flow: usize| {
        let own = owners.iter().zip(network.routes()).filter(move |(owner, _)| **owner == flow);
        own.flat_map(|(_, route)| route.iter().copied())
    };
    (0..flows.len())
        .filter(|other| *other != flow && flows[*other].paths.len() == 1 && !flows[*other].udp)
        .filter(|other| links(*other).any(|link| links(flow).any(|own| own == link)))
        .collect()
}

/// What a flow in place of `flow` that had only one of its paths would get there, link by link; RFC 6356 compares with it.
fn single(network: &Network, owners: &[usize], fixed: &[Option<f64>], flow: usize) -> Result<Vec<f64>, NetworkError> {
    let own: Vec<usize> = (0..owners.len()).filter(|route| owners[*route] == flow).collect();
    let alone = |kept: &usize| {
        let here: Vec<usize> = (0..owners.len()).filter(|route| owners[*route] != flow || route == kept).collect();
        let routes: Vec<Vec<usize>> = here.iter().map(|route| network.routes()[*route].clone()).collect();
        let rates: Vec<Option<f64>> = here.iter().map(|route| fixed[*route]).collect();
        let owners: Vec<usize> = here.iter().map(|route| owners[*route]).collect();
        let network = Network::new(network.capacities(), &routes)?;
        let found = Notion::LinkFlow.allocate(&network, &owners, &rates)?;
        Ok(here.iter().position(|route| route == kept).map_or(0.0, |at| found.subflows[at]))
    };
    own.iter().map(alone).collect()
}

/// The names of locators.
struct Locators {
    /// By node and position of the link in the file.
    of: BTreeMap<(NodeIndex, usize), String>,
    nodes: Vec<(String, Vec<String>)>,
}

impl Locators {
    fn new(scenario: &Scenario) -> Self {
        let ends: Vec<NodeIndex> = scenario.flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
        let mut of = BTreeMap::new();
        let mut nodes = Vec::new();
        for (node, name) in scenario.nodes.iter().enumerate() {
            let given = scenario.hosts.iter().find(|host| host.node == node).map(|host| &host.locators);
            let at: Vec<usize> = (0..scenario.links.len())
                .filter(|link| scenario.links[*link].from == node || scenario.links[*link].to == node)
                .collect();
            let mut locators = Vec::new();
            for (number, link) in at.iter().enumerate() {
                let locator = match given {
                    Some(given) => given.get(number).or(given.first()).cloned().unwrap_or_default(),
                    None if ends.contains(&node) && at.len() > 1 => format!("{name}.{}", number + 1),
                    None => name.clone(),
                };
                of.insert((node, *link), locator.clone());
                if !locators.contains(&locator) {
                    locators.push(locator);
                }
            }
            nodes.push((name.clone(), locators));
        }
        Self { of, nodes }
    }

    fn topology(&self, scenario: &Scenario) -> Result<Topology, TopologyError> {
        let mut links = Vec::new();
        for directed in scenario.directed() {
            let rate = directed.config.rate.map_or(f64::INFINITY, |rate| rate as f64 / 1e6);
            let name = |node| self.of.get(&(node, directed.link)).cloned().unwrap_or_default();
            links.push((name(directed.from), name(directed.to), rate));
        }
        // Inside of a node nothing limits what is passed on.
        for (_, locators) in &self.nodes {
            for from in locators {
                for to in locators.iter().filter(|to| *to != from) {
                    links.push((from.clone(), to.clone(), f64::INFINITY));
                }
            }
        }
        Topology::new(&self.nodes, &links)
    }

    /// The locators along a path of nodes.
    fn along(&self, scenario: &Scenario, path: &[NodeIndex]) -> Vec<String> {
        let mut locators: Vec<String> = Vec::new();
        for hop in path.windows(2) {
            let joins = |link: &scenario::LinkSpec| {
                (link.from, link.to) == (hop[0], hop[1]) || link.duplex && (link.to, link.from) == (hop[0], hop[1])
            };
            let Some(link) = scenario.links.iter().position(joins) else { continue };
            for node in hop {
                if let Some(locator) = self.of.get(&(*node, link))
                    && locators.last() != Some(locator)
                {
                    locators.push(locator.clone());
                }
            }
        }
        locators
    }
}

/// Expected beside measured, for each point of a campaign.
#[derive(Clone, Debug)]
pub struct FairnessReport {
    scenario: String,
    points: Vec<PointFairness>,
}

#[derive(Clone, Debug)]
struct PointFairness {
    parameters: Vec<(String, String)>,
    runs: usize,
    expected: Expectation,
    flows: Vec<Option<Estimate>>,
    subflows: Vec<Option<Estimate>>,
    /// Jain's index by flow and by sub-flow.
    jain: [Option<Estimate>; 2],
    /// The deviation of the means from each notion.
    deviations: Vec<Option<Deviation>>,
    /// RFC 6356, and the friendliness factor, of each flow of several paths.
    verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug)]
struct Verdict {
    flow: usize,
    goals: Goals,
    friendliness: Option<f64>,
}

impl FairnessReport {
    /// Puts `expectations`, one for each point, beside what `report` measured there.
    pub fn new(expectations: Vec<Expectation>, report: &Report) -> Self {
        let points = expectations.into_iter().zip(&report.points);
        Self {
            scenario: report.scenario.clone(),
            points: points.map(|(expected, point)| PointFairness::new(expected, point)).collect(),
        }
    }

    /// All of it as JSON; rates in Mbit/s on the wire.
    pub fn to_json(&self) -> Value {
        json!({ "scenario": self.scenario, "points": self.points.iter().map(PointFairness::to_json).collect::<Vec<_>>() })
    }
}

impl PointFairness {
    fn new(expected: Expectation, point: &PointReport) -> Self {
        let measured: Vec<Allocation> = point.runs.iter().map(|run| expected.measured(run)).collect();
        let over = |value: &dyn Fn(&Allocation) -> Option<f64>| {
            Estimate::of(&measured.iter().filter_map(value).collect::<Vec<_>>())
        };
        let flow = |at: usize| over(&|run| run.flows.get(at).copied());
        let subflow = |at: usize| over(&|run| run.subflows.get(at).copied());
        let flows: Vec<_> = (0..expected.flows.len()).map(flow).collect();
        let subflows: Vec<_> = (0..expected.owners.len()).map(subflow).collect();
        let jain = [Account::Flow, Account::Subflow].map(|account| over(&|run| account.jain(run)));
        let mean = |estimates: &[Option<Estimate>]| -> Vec<f64> {
            estimates.iter().map(|estimate| estimate.map_or(0.0, |estimate| estimate.mean)).collect()
        };
        let means = Allocation { flows: mean(&flows), subflows: mean(&subflows) };
        let deviations = expected.allocations.iter().map(|fair| deviation(&means, fair, expected.capacity)).collect();
        let verdict = |(index, shape): (usize, &FlowShape)| {
            let own: Vec<f64> = (0..expected.owners.len())
                .filter(|route| expected.owners[*route] == index)
                .map(|route| means.subflows[route])
                .collect();
            let rivals: Vec<f64> = shape.rivals.iter().map(|rival| means.flows[*rival]).collect();
            let rival = fairness::statistics::mean(&rivals);
            Verdict {
                flow: index,
                goals: goals(&own, &shape.single, &congestion(point, index, own.len()), TOLERANCE),
                friendliness: rival.and_then(|rival| friendliness(means.flows[index], rival)),
            }
        };
        let several = expected.flows.iter().enumerate().filter(|(_, shape)| shape.paths.len() > 1);
        let verdicts = several.map(verdict).collect();
        let (parameters, runs) = (point.parameters.clone(), point.runs.len());
        Self { parameters, runs, expected, flows, subflows, jain, deviations, verdicts }
    }

    fn to_json(&self) -> Value {
        let notions = |value: &dyn Fn(&Allocation) -> f64| -> Value {
            Notion::ALL
                .iter()
                .zip(&self.expected.allocations)
                .map(|(notion, fair)| (notion.name(), value(fair)))
                .collect()
        };
        let estimate = |estimate: &Option<Estimate>| {
            estimate.map(|estimate| json!({ "mean": estimate.mean, "sd": estimate.sd, "ci95": estimate.half_width }))
        };
        let flows = self.expected.flows.iter().enumerate().map(|(index, shape)| {
            let routes = (0..self.expected.owners.len()).filter(|route| self.expected.owners[*route] == index);
            let subflows = routes.zip(&shape.paths).enumerate().map(|(number, (route, (path, bandwidth)))| {
                json!({
                    "path": path, "bandwidth": bandwidth, "single_path_share": shape.single.get(number),
                    "expected": notions(&|fair| fair.subflows[route]), "measured": estimate(&self.subflows[route]),
                })
            });
            let all = shape
                .all_paths
                .iter()
                .take(MOST_NAMED)
                .map(|(path, bandwidth)| json!({ "path": path, "bandwidth": bandwidth }));
            let verdict = self.verdicts.iter().find(|verdict| verdict.flow == index);
            json!({
                "name": shape.name,
                "expected": notions(&|fair| fair.flows[index]),
                "measured": estimate(&self.flows[index]),
                "subflows": subflows.collect::<Vec<_>>(),
                "paths": shape.all_paths.len(),
                "loop_free_paths": all.collect::<Vec<_>>(),
                "friendliness": verdict.and_then(|verdict| verdict.friendliness),
                "rfc6356": verdict.map(|verdict| json!({
                    "improves_throughput": verdict.goals.improves_throughput,
                    "does_no_harm": verdict.goals.does_no_harm,
                    "balances_congestion": verdict.goals.balances_congestion,
                })),
            })
        });
        let deviations: Value = Notion::ALL
            .iter()
            .zip(&self.deviations)
            .map(|(notion, off)| {
                let off = off.as_ref();
                (notion.name(), json!(off.map(|off| json!({ "flows": off.flows, "subflows": off.subflows, "mean": off.mean, "most": off.most }))))
            })
            .collect();
        json!({
            "parameters": self.parameters.iter().cloned().collect::<BTreeMap<_, _>>(),
            "runs": self.runs,
            "flows": flows.collect::<Vec<_>>(),
            "jain": { "flow": estimate(&self.jain[0]), "sub-flow": estimate(&self.jain[1]) },
            "deviation": deviations,
        })
    }
}

/// The part of its packets that each path of a flow lost, over all runs.
fn congestion(point: &PointReport, flow: usize, paths: usize) -> Vec<f64> {
    let of = |path: usize| {
        let flows = point.runs.iter().filter_map(|run| run.flows.get(flow));
        let counts = flows.filter_map(|flow: &FlowResult| flow.paths.get(path)).map(|path| (path.losses, path.sent));
        let (lost, sent) = counts.fold((0, 0), |(lost, sent), (more, of)| (lost + more, sent + of));
        if sent > 0 { lost as f64 / sent as f64 } else { 0.0 }
    };
    (0..paths).map(of).collect()
}

impl fmt::Display for FairnessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.scenario)?;
        writeln!(f, "Mbit/s on the wire: what each notion of fairness expects, and what was measured.")?;
        for point in &self.points {
            let parameters: Vec<String> =
                point.parameters.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let plural = if point.runs == 1 { "" } else { "s" };
            writeln!(
                f,
                "\n{}{}{} run{plural}",
                parameters.join(", "),
                if parameters.is_empty() { "" } else { ": " },
                point.runs
            )?;
            point.table(f)?;
        }
        Ok(())
    }
}

impl PointFairness {
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![[
            "flow".to_owned(),
            "link, sub-flow".into(),
            "link, flow".into(),
            "network".into(),
            "proportional".into(),
            "measured".into(),
        ]];
        let cells = |name: String, expected: &dyn Fn(&Allocation) -> f64, measured: &Option<Estimate>| {
            let mut row = [name, String::new(), String::new(), String::new(), String::new(), shown(measured)];
            for (cell, fair) in row.iter_mut().skip(1).zip(&self.expected.allocations) {
                *cell = format!("{:.2}", expected(fair));
            }
            row
        };
        for (index, shape) in self.expected.flows.iter().enumerate() {
            rows.push(cells(shape.name.clone(), &|fair| fair.flows[index], &self.flows[index]));
            let routes = (0..self.expected.owners.len()).filter(|route| self.expected.owners[*route] == index);
            for (route, (path, _)) in routes.zip(&shape.paths).filter(|_| shape.paths.len() > 1) {
                rows.push(cells(format!("  {path}"), &|fair| fair.subflows[route], &self.subflows[route]));
            }
        }
        let mut mean = [
            String::from("mean deviation %"),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ];
        for (cell, off) in mean.iter_mut().skip(1).zip(&self.deviations) {
            *cell = off.as_ref().map_or("-".to_owned(), |off| format!("{:.1}", 100.0 * off.mean));
        }
        rows.push(mean);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        for row in &rows {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "Jain's index: {} by flow, {} by sub-flow.", shown(&self.jain[0]), shown(&self.jain[1]))?;
        for Verdict { flow, goals, friendliness } in &self.verdicts {
            let name = &self.expected.flows[*flow].name;
            let yes = |yes: bool| if yes { "yes" } else { "no" };
            write!(
                f,
                "{name}: RFC 6356: improves throughput {}, does no harm {}",
                yes(goals.improves_throughput),
                yes(goals.does_no_harm)
            )?;
            if let Some(balances) = goals.balances_congestion {
                write!(f, ", balances congestion {}", yes(balances))?;
            }
            match friendliness {
                Some(factor) => writeln!(f, "; friendliness factor {factor:.3}.")?,
                None => writeln!(f, "; no flow of one path competes with it.")?,
            }
        }
        Ok(())
    }
}

fn shown(estimate: &Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, half_width: Some(half), .. }) => format!("{mean:.2} ± {half:.2}"),
        Some(Estimate { mean, .. }) => format!("{mean:.2}"),
        None => "-".to_owned(),
    }
}

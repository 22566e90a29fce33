//! A whole scenario, checked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use clock::Duration;
use link::{Change, ChangeKind, LinkConfig, Processing, QueueConfig, QueueSetting};
use text::Diagnostic;

use crate::host::{self, HostSpec};
use crate::read::{self, MOST_FLOWS, Nodes};
use crate::schema::{self, Engine, Table};
use crate::spec::*;
use text::reader::{self, Reader};
use text::toml::{Node, Value};

/// A scenario that makes sense: every path leads over links that exist, every number is in its range.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// How long it runs; more than zero.
    pub duration: Duration,
    /// Measurement starts after this; less than the duration.
    pub warm_up: Duration,
    /// Replays a run.
    pub seed: u64,
    /// How long hosts take for a packet.
    pub processing: Processing,
    /// The names of the nodes, in the order in which links name them.
    pub nodes: Vec<String>,
    /// The links in the order of the file.
    pub links: Vec<LinkSpec>,
    /// The flows in the order of the file.
    pub flows: Vec<FlowSpec>,
    /// Locators, of the nodes for which the file gives them.
    pub hosts: Vec<HostSpec>,
    tree: Node,
}

/// One direction of a link, ready to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Directed {
    /// Position in [`Scenario::links`].
    pub link: usize,
    /// "a-r1" for the direction of the file, "r1-a" for the way back.
    pub name: String,
    /// The sending end.
    pub from: NodeIndex,
    /// The receiving end.
    pub to: NodeIndex,
    /// What the link does, the queue's length resolved.
    pub config: LinkConfig,
}

impl Scenario {
    pub(crate) fn from_tree(tree: &Node) -> Result<Self, Diagnostic> {
        schema::check(tree, Table::Scenario, None)?;
        let table = Reader::new(Table::Scenario.what(), tree)?;
        let name = table.need("name", "name = \"two paths\"", |node| reader::text(node, "\"two paths\""))?.to_owned();
        let duration_entry = table.required("duration", "duration = \"20s\"")?;
        let duration = reader::time(&duration_entry.node)?;
        if duration.is_zero() {
            return Err(duration_entry.node.place.error("a scenario of no time shows nothing", None));
        }
        let warm_up = match table.optional("warm_up") {
            None => Duration::ZERO,
            Some(entry) => match reader::time(&entry.node)? {
                warm_up if warm_up < duration => warm_up,
                _ => return Err(entry.node.place.error("nothing is left to measure after the warm-up", None)),
            },
        };
        let seed = table.read("seed", |node| reader::whole(node, 0, i64::MAX as u64))?;
        let processing = table.read("processing", read::processing)?;
        let (link_nodes, flow_nodes) = (table.tables("link")?, table.tables("flow")?);
        let host_nodes = table.tables("node")?;
        let place = table.place();
        if link_nodes.is_empty() {
            return Err(place.error("a scenario needs at least one [[link]]", None));
        }

        let mut nodes = Nodes::default();
        let links =
            link_nodes.iter().map(|node| read::link(node, &mut nodes, duration)).collect::<Result<Vec<_>, _>>()?;
        let ends = check_links(&links, link_nodes, &nodes)?;
        let hosts = host::hosts(host_nodes, &nodes, &links)?;
        let mut flows = Vec::new();
        for (index, node) in flow_nodes.iter().enumerate() {
            flows.push(read::flow(node, index + 1, &nodes)?);
        }
        start_together(&mut flows, flow_nodes)?;
        check_flows(&mut flows, flow_nodes, &links, &ends, &nodes)?;
        Ok(Self {
            name,
            duration,
            warm_up,
            seed: seed.unwrap_or(1),
            processing: processing.unwrap_or_default(),
            nodes: nodes.names,
            links,
            flows,
            hosts,
            tree: tree.clone(),
        })
    }

    /// Whether `engine` honours every key of the file.
    ///
    /// # Errors
    /// Points at the first key that it does not, and says what would be right.
    pub fn check_for(&self, engine: Engine) -> Result<(), Diagnostic> {
        schema::check(&self.tree, Table::Scenario, Some(engine))
    }

    /// Names of links that have a rate and say nothing of their queue, which has no limit then.
    pub fn queues_without_limit(&self) -> Vec<&str> {
        let Value::Table(root) = &self.tree.value else { return Vec::new() };
        let Some(Value::Array(tables)) = root.get("link").map(|entry| &entry.node.value) else { return Vec::new() };
        let silent = |node: &Node| matches!(&node.value, Value::Table(table) if table.get("queue").is_none());
        let limited = self.links.iter().zip(tables).filter(|(link, node)| link.rate.is_some() && silent(node));
        limited.map(|(link, _)| link.name.as_str()).collect()
    }

    /// What is right in the links but may not be meant, in sentences: long times in which one carries nothing.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.links.iter().flat_map(|link| &link.remarks).map(String::as_str)
    }

    /// An error that points at `key` of flow number `flow` (from 0), or at the flow where it has no such key: for
    /// what only the laboratory that runs the scenario can know.
    pub fn error_in_flow(
        &self,
        flow: usize,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        self.error_at("flow", flow, key, message.into(), help)
    }

    /// An error that points at `key` at the top of the file, or at its beginning where it has no such key.
    pub fn error_at_top(&self, key: &str, message: impl Into<String>, help: Option<String>) -> Diagnostic {
        error_in(&self.tree, key, message.into(), help)
    }

    /// An error that points at `key` of link number `link` (from 0), as [`Scenario::error_in_flow`].
    pub fn error_in_link(
        &self,
        link: usize,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Diagnostic {
        self.error_at("link", link, key, message.into(), help)
    }

    fn error_at(&self, list: &str, index: usize, key: &str, message: String, help: Option<String>) -> Diagnostic {
        let element = match &self.tree.value {
            Value::Table(table) => table.get(list).and_then(|entry| match &entry.node.value {
                Value::Array(nodes) => nodes.get(index),
                _ => None,
            }),
            _ => None,
        };
        error_in(element.unwrap_or(&self.tree), key, message, help)
    }

    /// The round trip without queues that a link's "bdp" refers to: the longest of the routes of flows that use the
    /// link in either direction, there and back; without a flow, twice the link's own delay.
    pub fn round_trip(&self, link: usize) -> Duration {
        let ends = ends(&self.links);
        let routes = self.flows.iter().flat_map(|flow| &flow.paths).filter(|path| {
            path.windows(2)
                .any(|hop| ends.get(&(hop[0], hop[1])) == Some(&link) || ends.get(&(hop[1], hop[0])) == Some(&link))
        });
        let longest = routes.map(|path| self.path_round_trip(path)).max();
        longest.unwrap_or_else(|| self.links.get(link).map_or(Duration::ZERO, |link| link.delay * 2))
    }

    /// The delays of all links of a path, there and back; a missing way back counts as the way there.
    pub fn path_round_trip(&self, path: &[NodeIndex]) -> Duration {
        let ends = ends(&self.links);
        let delay = |from, to| ends.get(&(from, to)).map(|link| self.links[*link].delay);
        path.windows(2).fold(Duration::ZERO, |sum, hop| {
            let there = delay(hop[0], hop[1]).unwrap_or_default();
            sum + there + delay(hop[1], hop[0]).unwrap_or(there)
        })
    }

    /// Bytes of a full packet of the first flow that uses a link; 1500 without one.
    fn packet_size(&self, link: usize) -> u32 {
        let ends = ends(&self.links);
        let uses = |flow: &&FlowSpec| {
            flow.paths
                .iter()
                .flat_map(|path| path.windows(2))
                .any(|hop| ends.get(&(hop[0], hop[1])) == Some(&link) || ends.get(&(hop[1], hop[0])) == Some(&link))
        };
        self.flows.iter().find(uses).map_or(1500, FlowSpec::wire_size)
    }

    /// All directions of all links, ready to be built, in the order of the file, each way back after its way there.
    ///
    /// "1.5bdp" becomes a limit in packets: 1.5 · rate · [round trip](Scenario::round_trip) over the packet size of
    /// the first flow on the link (1500 bytes without one), rounded, at least 1. "100ms" becomes the bytes that the
    /// link sends in that time, or as many packets where the discipline counts these. Of a link that begins without a rate the first one it
    /// gets counts; one that never has any needs no queue.
    pub fn directed(&self) -> Vec<Directed> {
        let mut all = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let config = LinkConfig {
                rate: link.rate,
                trace: link.trace.clone(),
                schedule: link.schedule,
                delay: link.delay,
                jitter: link.jitter.clone(),
                reorder: link.reorder,
                queue: self.queue(index, link),
                loss: link.loss,
                mtu: link.mtu,
                changes: link.changes.clone(),
            };
            let name = |from: NodeIndex, to: NodeIndex| format!("{}-{}", self.nodes[from], self.nodes[to]);
            let (from, to) = (link.from, link.to);
            if link.duplex {
                all.push(Directed { link: index, name: name(from, to), from, to, config: config.clone() });
                all.push(Directed { link: index, name: name(to, from), from: to, to: from, config });
            } else {
                all.push(Directed { link: index, name: name(from, to), from, to, config });
            }
        }
        all
    }

    fn queue(&self, index: usize, link: &LinkSpec) -> QueueConfig {
        let later = |change: &Change| match change.what {
            ChangeKind::Rate(rate) => rate.filter(|rate| *rate > 0),
            _ => None,
        };
        let Some(rate) = link.rate.or_else(|| link.changes.iter().find_map(later)) else {
            return QueueConfig::Unlimited;
        };
        let packets = |limit| self.in_packets(index, limit, rate);
        match &link.queue {
            QueueSpec::Unlimited => QueueConfig::Unlimited,
            QueueSpec::DropTail(Limit::Bytes(bytes)) => QueueConfig::Bytes(*bytes),
            QueueSpec::DropTail(Limit::Time(time)) => {
                QueueConfig::Bytes((time.as_secs_f64() * rate as f64 / 8.0).round() as u64)
            }
            QueueSpec::DropTail(limit) => QueueConfig::Packets(packets(*limit)),
            QueueSpec::Managed { config, limits } => {
                let mut config = *config;
                for (name, limit) in limits {
                    match config.setting(name) {
                        Some(QueueSetting::Limit(value)) => *value = packets(*limit),
                        Some(QueueSetting::Average(value)) => *value = packets(*limit).into(),
                        _ => {}
                    }
                }
                config.set_packet_bytes(self.packet_size(index));
                config
            }
        }
    }

    fn in_packets(&self, link: usize, limit: Limit, rate: u64) -> u32 {
        let size = f64::from(self.packet_size(link));
        let packets = match limit {
            Limit::Packets(packets) => return packets,
            Limit::Bytes(bytes) => bytes as f64 / size,
            Limit::Time(time) => time.as_secs_f64() * rate as f64 / 8.0 / size,
            Limit::Bdp(times) => times * self.round_trip(link).as_secs_f64() * rate as f64 / 8.0 / size,
        };
        (packets.round() as u32).max(1)
    }
}

/// An error at the value of `key` of a table, or at the table.
fn error_in(element: &Node, key: &str, message: String, help: Option<String>) -> Diagnostic {
    let place = match &element.value {
        Value::Table(table) => table.get(key).map_or(&element.place, |entry| &entry.node.place),
        _ => &element.place,
    };
    place.error(message, help)
}

type Ends = BTreeMap<(NodeIndex, NodeIndex), usize>;

/// Which link leads from one node to the next.
fn ends(links: &[LinkSpec]) -> Ends {
    let mut ends = Ends::new();
    for (index, link) in links.iter().enumerate() {
        ends.insert((link.from, link.to), index);
        if link.duplex {
            ends.insert((link.to, link.from), index);
        }
    }
    ends
}

/// Paths name nodes, so between two nodes there is at most one link in each direction.
fn check_links(links: &[LinkSpec], places: &[Node], nodes: &Nodes) -> Result<Ends, Diagnostic> {
    let mut seen = Ends::new();
    let mut names = BTreeSet::new();
    for (index, (link, node)) in links.iter().zip(places).enumerate() {
        let mut both = vec![(link.from, link.to)];
        if link.duplex {
            both.push((link.to, link.from));
        }
        for (from, to) in both {
            if seen.insert((from, to), index).is_some() {
                let message =
                    format!("there is a link from \"{}\" to \"{}\" already", nodes.names[from], nodes.names[to]);
                let help = "paths name nodes: put another node between the two, such as a router \"r2\"".to_owned();
                return Err(node.place.error(message, Some(help)));
            }
        }
        if !names.insert(&link.name) {
            return Err(node.place.error(format!("another link is called \"{}\"", link.name), None));
        }
    }
    Ok(seen)
}

/// Resolves `start_with`.
fn start_together(flows: &mut [FlowSpec], places: &[Node]) -> Result<(), Diagnostic> {
    let entry = |node: &Node, key: &str| match &node.value {
        Value::Table(table) => table.get(key).cloned(),
        _ => None,
    };
    for (index, node) in places.iter().enumerate() {
        let Some(with) = entry(node, "start_with") else { continue };
        let name = reader::text(&with.node, "\"download\"")?;
        let Some(leader) = flows.iter().position(|flow| flow.name == name) else {
            let help = format!("there is {}", text::alternatives(flows.iter().map(|flow| flow.name.as_str())));
            return Err(with.node.place.error(format!("no flow is called \"{name}\""), Some(help)));
        };
        if leader == index || places.get(leader).is_some_and(|node| entry(node, "start_with").is_some()) {
            let message = format!("\"{name}\" has no start of its own");
            return Err(with.node.place.error(message, Some("name a flow that says when it starts".to_owned())));
        }
        if flows.get(leader).is_some_and(|flow| flow.count > 1) {
            let message = format!("the flows \"{name}\" start one by one");
            return Err(with.node.place.error(message, Some("name a flow that is alone".to_owned())));
        }
        if let Some(start) = entry(node, "start") {
            return Err(start.key_place.error("`start` and `start_with` exclude each other", None));
        }
        let start = flows.get(leader).map(|flow| flow.start);
        if let (Some(flow), Some(start)) = (flows.get_mut(index), start) {
            flow.start = start;
            flow.start_with = Some(leader);
        }
    }
    Ok(())
}

fn check_flows(
    flows: &mut [FlowSpec],
    places: &[Node],
    links: &[LinkSpec],
    ends: &Ends,
    nodes: &Nodes,
) -> Result<(), Diagnostic> {
    let mut names = BTreeSet::new();
    let mut total = 0;
    for (flow, node) in flows.iter_mut().zip(places) {
        let entry = |key: &str| match &node.value {
            Value::Table(table) => table.get(key).map(|entry| &entry.node),
            _ => None,
        };
        if !names.insert(flow.name.clone()) {
            let place = entry("name").map_or(&node.place, |name| &name.place);
            return Err(place.error(format!("another flow is called \"{}\"", flow.name), None));
        }
        total += u64::from(flow.count);
        if total > MOST_FLOWS {
            let place = entry("count").map_or(&node.place, |count| &count.place);
            return Err(place.error(format!("{total} flows in sum are more than {MOST_FLOWS}"), None));
        }
        match entry("paths") {
            Some(Node { value: Value::Array(written), .. }) => {
                for (path, written) in flow.paths.iter().zip(written) {
                    check_path(path, written, flow, ends, nodes)?;
                }
            }
            _ => {
                let path = shortest(flow.from, flow.to, links, ends, nodes.names.len());
                flow.paths = vec![path.ok_or_else(|| {
                    let (from, to) = (&nodes.names[flow.from], &nodes.names[flow.to]);
                    node.place.error(format!("no links lead from \"{from}\" to \"{to}\""), None)
                })?];
            }
        }
        for path in &flow.paths {
            check_way_back(path, entry("paths").unwrap_or(node), flow, ends, nodes)?;
        }
        let many = !matches!(flow.protocol, Protocol::Tcp | Protocol::Udp);
        if flow.paths.len() > 1 && !many {
            let place = entry("paths").map_or(&node.place, |paths| &paths.place);
            let help = "several paths are for \"sinnet\", \"mhip\", \"mptcp\", \"sctp\" and \"cmt-sctp\"".to_owned();
            return Err(place.error(format!("\"{}\" uses one path", flow.protocol.name()), Some(help)));
        }
    }
    Ok(())
}

fn check_path(
    path: &[NodeIndex],
    written: &Node,
    flow: &FlowSpec,
    ends: &Ends,
    nodes: &Nodes,
) -> Result<(), Diagnostic> {
    let hop_place = |at: usize| match &written.value {
        Value::Array(hops) => hops.get(at).map_or(&written.place, |hop| &hop.place),
        _ => &written.place,
    };
    let name = |node: NodeIndex| &nodes.names[node];
    if path.first() != Some(&flow.from) {
        let help = format!("the flow starts from \"{}\"", name(flow.from));
        return Err(hop_place(0).error("a path begins where its flow starts", Some(help)));
    }
    if path.last() != Some(&flow.to) {
        let help = format!("the flow leads to \"{}\"", name(flow.to));
        return Err(hop_place(path.len() - 1).error("a path ends where its flow leads", Some(help)));
    }
    let mut seen = BTreeSet::new();
    for (at, node) in path.iter().enumerate() {
        if !seen.insert(node) {
            return Err(hop_place(at).error(format!("the path comes to \"{}\" twice", name(*node)), None));
        }
    }
    for (at, hop) in path.windows(2).enumerate() {
        if !ends.contains_key(&(hop[0], hop[1])) {
            let next: Vec<_> =
                ends.keys().filter(|(from, _)| *from == hop[0]).map(|(_, to)| name(*to).as_str()).collect();
            let help = format!("links lead from \"{}\" to {}", name(hop[0]), text::alternatives(next));
            let message = format!("no link leads from \"{}\" to \"{}\"", name(hop[0]), name(hop[1]));
            return Err(hop_place(at + 1).error(message, Some(help)));
        }
    }
    Ok(())
}

/// Acknowledgments take the way back; UDP needs none.
fn check_way_back(
    path: &[NodeIndex],
    place: &Node,
    flow: &FlowSpec,
    ends: &Ends,
    nodes: &Nodes,
) -> Result<(), Diagnostic> {
    let missing = path.windows(2).find(|hop| !ends.contains_key(&(hop[1], hop[0])));
    match missing {
        Some(hop) if flow.protocol != Protocol::Udp => {
            let (from, to) = (&nodes.names[hop[1]], &nodes.names[hop[0]]);
            let help = format!("add a [[link]] with from = \"{from}\" and to = \"{to}\"");
            let message = format!("acknowledgments cannot get back: no link leads from \"{from}\" to \"{to}\"");
            Err(place.place.error(message, Some(help)))
        }
        _ => Ok(()),
    }
}

/// Fewest links; among these least delay; among these the first by the order of nodes.
fn shortest(from: NodeIndex, to: NodeIndex, links: &[LinkSpec], ends: &Ends, nodes: usize) -> Option<Vec<NodeIndex>> {
    // Level by level, so that all predecessors of a level are final before it is entered.
    let mut best: Vec<Option<(usize, Duration, NodeIndex)>> = vec![None; nodes];
    *best.get_mut(from)? = Some((0, Duration::ZERO, from));
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let (hops, delay, _) = best[node]?;
        for ((_, next), link) in ends.range((node, 0)..=(node, usize::MAX)) {
            let candidate = (hops + 1, delay + links[*link].delay, node);
            match best[*next] {
                None => {
                    best[*next] = Some(candidate);
                    queue.push_back(*next);
                }
                Some(known) if (candidate.0, candidate.1) < (known.0, known.1) => best[*next] = Some(candidate),
                Some(_) => {}
            }
        }
    }
    let mut path = vec![to];
    while *path.last()? != from {
        path.push(best[*path.last()?]?.2);
    }
    path.reverse();
    Some(path)
}

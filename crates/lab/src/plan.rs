//! A scenario as the laboratory sees it: what is built, what happens to it, and who talks to whom.

use clock::Duration;
use link::{ChangeKind, LinkConfig};
use scenario::{Amount, FlowSpec, Moment, Scenario};

use crate::LabError;
use crate::topology::{PathPlan, Topology, Wire};

/// One scenario, ready to be run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// How long each transfer may take, about.
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) topology: Topology,
    /// What each wire of the topology does. Without changes.
    pub(crate) links: Vec<LinkConfig>,
    /// What changes after the start of the transfer over all paths.
    pub(crate) changes: Vec<PlannedChange>,
    pub(crate) flow: FlowPlan,
}

/// A change of a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedChange {
    /// After the start of the transfer.
    pub(crate) after: Duration,
    /// The wire, by its place in [`Plan::links`].
    pub(crate) link: usize,
    /// What happens to it.
    pub(crate) what: ChangeKind,
}

/// The download that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowPlan {
    /// The server, as an index into [`Topology::hosts`].
    pub(crate) from: usize,
    /// The client.
    pub(crate) to: usize,
    /// What carries it.
    pub(crate) protocol: Protocol,
    /// The size of the file in bytes, where the scenario says it.
    pub(crate) size: Option<u64>,
}

/// What carries a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TCP inside Sinnet, over all paths of the flow.
    Mhip,
    /// TCP alone, over the only path of the flow.
    Tcp,
}

impl Plan {
    /// Plans for what a laboratory can do: one flow, `mhip` or `tcp`.
    ///
    /// # Errors
    /// Points at what in the scenario a laboratory cannot do.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, LabError> {
        let [flow] = scenario.flows.as_slice() else {
            let help = "leave one [[flow]] in the file; `sinnet sim` runs any number".to_owned();
            let message = format!("the laboratory runs one flow at a time, and here are {}", scenario.flows.len());
            return Err(scenario.error_in_flow(1, "name", message, Some(help)).into());
        };
        let (protocol, start) = (check(scenario, flow)?, start(flow));
        let name = |node: usize| scenario.nodes.get(node).cloned().unwrap_or_default();
        let directed = scenario.directed();
        let wires: Vec<Wire> = directed.iter().map(|link| Wire { from: name(link.from), to: name(link.to) }).collect();
        let paths: Vec<Vec<String>> =
            flow.paths.iter().map(|path| path.iter().map(|node| name(*node)).collect()).collect();
        let topology =
            Topology::plan(&wires, &[paths]).map_err(|message| scenario.error_in_flow(0, "paths", message, None))?;
        let host = |node: usize| topology.hosts.iter().position(|host| *host == name(node)).unwrap_or_default();
        let changes = directed.iter().enumerate().flat_map(|(link, directed)| {
            directed.config.changes.iter().map(move |change| PlannedChange {
                after: change.at.saturating_since(start),
                link,
                what: change.what,
            })
        });
        Ok(Self {
            name: scenario.name.clone(),
            duration: scenario.duration,
            seed: scenario.seed,
            changes: changes.collect(),
            links: directed.iter().map(|link| LinkConfig { changes: Vec::new(), ..link.config.clone() }).collect(),
            flow: FlowPlan {
                from: host(flow.from),
                to: host(flow.to),
                protocol,
                size: match flow.amount {
                    None | Some(Amount::Unlimited) => None,
                    Some(Amount::Bytes(bytes)) => Some(bytes),
                    Some(Amount::Packets(packets)) => Some(packets.saturating_mul(flow.wire_size().into())),
                },
            },
            topology,
        })
    }

    /// The paths of the flow, from the server to the client.
    pub(crate) fn paths(&self) -> &[PathPlan] {
        self.topology.flows.first().map_or(&[], Vec::as_slice)
    }

    /// The rate of one direction of a path: that of its slowest link, in bit/s. `None` without any limit.
    pub(crate) fn rate(&self, hops: &[usize]) -> Option<u64> {
        self.along(hops).filter_map(|link| link.rate).min()
    }

    /// The propagation delay of one direction of a path.
    pub(crate) fn delay(&self, hops: &[usize]) -> Duration {
        Duration::from_nanos(self.along(hops).map(|link| link.delay.as_nanos()).sum())
    }

    fn along<'a>(&'a self, hops: &'a [usize]) -> impl Iterator<Item = &'a LinkConfig> {
        hops.iter().filter_map(|hop| self.links.get(*hop))
    }
}

/// What carries the flow, if the laboratory can do all that it asks for.
fn check(scenario: &Scenario, flow: &FlowSpec) -> Result<Protocol, LabError> {
    let error = |key: &str, message: &str, help: &str| {
        Err(scenario.error_in_flow(0, key, message, Some(help.to_owned())).into())
    };
    if flow.count != 1 {
        return error("count", "the laboratory runs one flow at a time", "leave `count` out, or use `sinnet sim`");
    }
    if flow.congestion.is_some() || flow.profile.is_some() {
        let help = "leave `congestion` and `profile` out, or use `sinnet sim`";
        return error(
            if flow.congestion.is_some() { "congestion" } else { "profile" },
            "in the laboratory the kernel's own TCP is at work",
            help,
        );
    }
    if flow.scheduler.as_deref().is_some_and(|scheduler| scheduler != "fastest-path-first") {
        return error(
            "scheduler",
            "the laboratory's Sinnet has one scheduler",
            "write scheduler = \"fastest-path-first\" or leave it out",
        );
    }
    match flow.protocol {
        scenario::Protocol::Mhip => Ok(Protocol::Mhip),
        scenario::Protocol::Tcp => Ok(Protocol::Tcp),
        _ => error(
            "protocol",
            "the laboratory has no programs for this protocol",
            "possible are \"mhip\" and \"tcp\"; `sinnet sim` knows the others",
        ),
    }
}

fn start(flow: &FlowSpec) -> clock::Instant {
    match flow.start {
        Moment::At(start) | Moment::Between(start, _) => start,
    }
}

//! A scenario as the laboratory sees it: what is built, what happens to it, and who talks to whom.

use clock::Duration;
use link::{ChangeKind, LinkConfig};

use crate::topology::{PathPlan, Topology};

/// One scenario, ready to be run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// How long each transfer may take, about.
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) topology: Topology,
    /// Per link of the scenario: from its first node to its second, and back. Without changes.
    pub(crate) links: Vec<[LinkConfig; 2]>,
    /// What changes after the start of the transfer over all paths.
    pub(crate) changes: Vec<PlannedChange>,
    pub(crate) flow: FlowPlan,
}

/// A change of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlannedChange {
    /// After the start of the transfer.
    pub(crate) after: Duration,
    /// The link, by its place in [`Plan::links`], and the direction: 0 from its first node to its second, 1 back.
    pub(crate) direction: (usize, usize),
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
}

/// What carries a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TCP inside Sinnet, over all paths of the flow.
    Mhip,
    /// TCP alone, over the first path of the flow.
    Tcp,
}

impl Plan {
    /// The paths of the flow, from the server to the client.
    pub(crate) fn paths(&self) -> &[PathPlan] {
        self.topology.flows.first().map_or(&[], Vec::as_slice)
    }

    /// The rate of a path from the server to the client or, `reverse`, back: that of its slowest link, in bit/s. `None` without any limit.
    pub(crate) fn rate(&self, path: &PathPlan, reverse: bool) -> Option<u64> {
        self.along(path, reverse).filter_map(|link| link.rate).min()
    }

    /// The propagation delay of a path.
    pub(crate) fn delay(&self, path: &PathPlan, reverse: bool) -> Duration {
        Duration::from_nanos(self.along(path, reverse).map(|link| link.delay.as_nanos()).sum())
    }

    fn along<'a>(&'a self, path: &'a PathPlan, reverse: bool) -> impl Iterator<Item = &'a LinkConfig> {
        path.hops.iter().filter_map(move |(link, forward)| {
            let [there, back] = self.links.get(*link)?;
            Some(if *forward == reverse { back } else { there })
        })
    }
}

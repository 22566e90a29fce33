//! What is simulated, resolved to indices: links in one direction, flows with their routes.

use std::sync::Arc;

use clock::{Duration, Instant};
use link::{LinkConfig, Processing};
use transport::{FlowConfig, TcpConfig};

use crate::association::AssociationConfig;

/// A topology with its flows. [`crate::Simulation::new`] runs it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Directed links.
    pub links: Vec<PlannedLink>,
    /// Flows.
    pub flows: Vec<PlannedFlow>,
    /// Associations of Sinnet hosts, in which flows may travel.
    pub associations: Vec<PlannedAssociation>,
    /// How long the run is.
    pub duration: Duration,
    /// What happens before this is not measured.
    pub warm_up: Duration,
    /// How long hosts take for a packet, of flows with [`PlannedFlow::processing`] and of associations.
    pub processing: Processing,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct PlannedLink {
    /// Its name; its random stream follows from it.
    pub name: String,
    /// What it does.
    pub config: LinkConfig,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct PlannedFlow {
    /// Its name; its random stream follows from it.
    pub name: String,
    /// Its paths, at least one; a protocol of a single path uses the first.
    pub paths: Vec<PlannedPath>,
    /// When it starts.
    pub start: Instant,
    /// When its application stops, if before the end.
    pub stop: Option<Instant>,
    /// What it sends.
    pub traffic: FlowConfig,
    /// The association in which it travels, by index, over that one's paths instead of its own.
    pub association: Option<u32>,
    /// Whether its hosts take a random time for each packet that they send, up to [`Plan::processing`] (S. Floyd and V. Jacobson, *On traffic phase effects in packet-switched gateways*, 1992).
    pub processing: bool,
}

/// An association of two hosts of Sinnet. Their packets take a random time at the hosts, as those of
/// [`PlannedFlow::processing`].
#[derive(Clone, Debug)]
pub struct PlannedAssociation {
    /// Its name; its random streams follow from it.
    pub name: String,
    /// Its paths, from the host at which the data of its flows begin.
    pub paths: Vec<PlannedPath>,
    /// What its hosts are configured with.
    pub config: AssociationConfig,
}

/// One path of a flow. Acknowledgments return on the path of the packet that they answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedPath {
    /// The links from sender to receiver, by index. A path without any delivers nothing.
    pub forward: Vec<u32>,
    /// The links from receiver to sender.
    pub reverse: Vec<u32>,
}

impl Plan {
    /// A plan without links and flows.
    pub fn new(duration: Duration) -> Self {
        Self { duration, ..Self::default() }
    }

    /// Adds one direction of a link and returns its index.
    pub fn link(&mut self, name: impl Into<String>, config: LinkConfig) -> u32 {
        self.links.push(PlannedLink { name: name.into(), config });
        (self.links.len() - 1) as u32
    }

    /// Adds a TCP flow over `forward` and back over `reverse` and returns its index.
    pub fn tcp(
        &mut self,
        name: impl Into<String>,
        forward: &[u32],
        reverse: &[u32],
        start: Instant,
        config: &Arc<TcpConfig>,
    ) -> usize {
        self.flows.push(PlannedFlow {
            name: name.into(),
            paths: vec![PlannedPath { forward: forward.to_vec(), reverse: reverse.to_vec() }],
            start,
            stop: None,
            traffic: FlowConfig::Tcp(Arc::clone(config)),
            association: None,
            processing: false,
        });
        self.flows.len() - 1
    }
}

//! The network of a topology: the same for real and for virtual time.

use clock::Streams;
use emulator::{LinkId, Network, RouteId};
use link::{LinkConfig, Processing};

use crate::topology::Topology;

/// A network and the names of its parts.
pub(crate) struct Wiring {
    pub(crate) network: Network,
    /// By wire of the topology.
    pub(crate) links: Vec<LinkId>,
    /// By distinct path: there and back.
    pub(crate) routes: Vec<[RouteId; 2]>,
}

impl Wiring {
    /// Joins the attachments of `topology`, which are the network's ports, by `links`, which has what each wire does; hosts take
    /// up to `processing` for a packet.
    pub(crate) fn new(topology: &Topology, links: Vec<LinkConfig>, processing: Processing, seed: u64) -> Self {
        let streams = Streams::new(seed);
        let mut network = Network::new().with_random_processing(processing, streams.stream("desks"));
        let links = links.into_iter().enumerate();
        let links: Vec<_> =
            links.map(|(index, link)| network.add_link(link, streams.stream(&format!("link {index}")))).collect();
        let paths = topology.distinct_paths().into_iter();
        let routes = paths.map(|path| {
            let [from, to] = path.ends;
            let [first, last] = [topology.address(from), topology.address(to)];
            let along = |hops: &[usize]| hops.iter().filter_map(|hop| links.get(*hop).copied()).collect();
            [
                network.add_route(first, last, along(&path.there), to),
                network.add_route(last, first, along(&path.back), from),
            ]
        });
        let routes = routes.collect();
        Self { network, links, routes }
    }
}

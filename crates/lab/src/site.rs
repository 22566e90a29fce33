//! A topology, built: hosts, devices, routes and the emulator between them.

use std::path::{Path, PathBuf};

use emulator::{Emulator, LinkId, Port, Recording, RouteId, Summary};
use link::{LinkConfig, Processing};

use crate::error::Step;
use crate::plan::PlannedChange;
use crate::topology::Topology;
use crate::wiring::Wiring;
use crate::{LabError, Namespace};

/// The MTU of access links, in bytes: Ethernet's.
pub(crate) const MTU: u16 = 1500;

/// What the kernel may hold back on a device, in packets. The emulator reads at once, so that queues belong to links and not to the kernel; this
/// is for moments at which it comes late. (Netlink sets it for root of a user namespace too, the older ioctl does not.)
const KERNEL_QUEUE: u32 = 2000;

/// Hosts on a running network. Everything disappears when it is dropped.
pub(crate) struct Site {
    // The emulator first: it is stopped before the hosts go.
    emulator: Emulator,
    hosts: Vec<Namespace>,
    host_routes: Vec<Vec<String>>,
    links: Vec<LinkId>,
    routes: Vec<[RouteId; 2]>,
}

impl Site {
    /// Builds hosts and network. `links` has what each wire of the topology does, and hosts take up to `processing` for a packet.
    /// With `captures` each path of each flow leaves a pcap file in that directory.
    pub(crate) fn build(
        topology: &Topology,
        links: Vec<LinkConfig>,
        processing: Processing,
        seed: u64,
        captures: Option<&Path>,
    ) -> Result<Self, LabError> {
        let Wiring { network, links, routes } = Wiring::new(topology, links, processing, seed);
        let recordings = routes.iter().enumerate().flat_map(|(index, pair)| {
            captures.map(|directory| Recording { routes: pair.to_vec(), file: capture_file(directory, index) })
        });
        let recordings: Vec<Recording> = recordings.collect();
        let hosts = topology.hosts.iter().map(|name| Namespace::create(name)).collect::<Result<Vec<_>, _>>()?;
        let mut ports = Vec::new();
        for attachment in &topology.attachments {
            let (device, address) = (attachment.device.clone(), attachment.address);
            let host = at(&hosts, attachment.host)?;
            ports.push(host.run(move || Port::open(&device, address, MTU))?.step("opening a TUN device")?);
        }
        for (index, host) in hosts.iter().enumerate() {
            host.ip(&host_setup(topology, index))?;
        }
        let emulator = Emulator::start(network, ports, &recordings).step("starting the emulator")?;
        let host_routes = (0..topology.hosts.len()).map(|host| host_routes(topology, host)).collect();
        Ok(Self { emulator, hosts, host_routes, links, routes })
    }

    /// The host at a place of [`Topology::hosts`].
    pub(crate) fn host(&self, index: usize) -> Result<&Namespace, LabError> {
        at(&self.hosts, index)
    }

    /// The routes of a host, as `ip` was told.
    pub(crate) fn routes_from(&self, host: usize) -> &[String] {
        self.host_routes.get(host).map_or(&[], Vec::as_slice)
    }

    /// Changes links as planned, counting from now.
    pub(crate) fn schedule(&self, changes: &[PlannedChange]) {
        let known = |change: &PlannedChange| Some((change.after, *self.links.get(change.link)?, change.what));
        self.emulator.schedule(changes.iter().filter_map(known));
    }

    /// Bytes that arrived so far from the server of each distinct path.
    pub(crate) fn delivered_bytes(&self) -> Vec<u64> {
        self.routes.iter().map(|[there, _]| self.emulator.delivered_bytes(*there)).collect()
    }

    /// Counts anew how long packets are under way.
    pub(crate) fn restart_transits(&self) {
        self.emulator.restart_transits();
    }

    /// Stops the network, then the hosts with all their programs.
    pub(crate) fn close(self) -> Result<Summary, LabError> {
        self.emulator.stop().step("stopping the emulator")
    }
}

/// The capture of the distinct path with this number.
pub(crate) fn capture_file(directory: &Path, path: usize) -> PathBuf {
    directory.join(format!("path{}.pcap", path + 1))
}

fn at(hosts: &[Namespace], index: usize) -> Result<&Namespace, LabError> {
    hosts.get(index).ok_or_else(|| LabError::Io {
        step: format!("finding host {index}"),
        cause: std::io::ErrorKind::NotFound.into(),
    })
}

/// What `ip` must be told on one host: who sends from an access link's address sends over that link, and the addresses
/// at the other ends of paths are reached over them.
fn host_setup(topology: &Topology, host: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, (_, attachment)) in topology.attachments_of(host).enumerate() {
        lines.push(format!("link set dev {} txqueuelen {KERNEL_QUEUE}", attachment.device));
        lines.push(format!("rule add from {} lookup {}", attachment.address, TABLE + number));
    }
    lines.extend(host_routes(topology, host));
    lines
}

/// The first of the routing tables that belong to one access link each.
const TABLE: usize = 100;

/// The routes of one host.
fn host_routes(topology: &Topology, host: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, (index, attachment)) in topology.attachments_of(host).enumerate() {
        let (device, address) = (&attachment.device, attachment.address);
        lines.push(format!("route append default dev {device} src {address} table {}", TABLE + number));
        for path in topology.distinct_paths() {
            let peer = match path.ends {
                [own, peer] | [peer, own] if own == index => topology.address(peer),
                _ => continue,
            };
            // The first path to an address is the one for programs that do not choose.
            lines.push(format!("route append {peer}/32 dev {device} src {address}"));
        }
    }
    lines
}

//! What a wedge and its peers are configured with.

use clock::Duration;
use hip::{HostConfig, Route};
use std::net::{IpAddr, SocketAddr};
use wire::{Hit, Lsi};

/// The configuration of a [`crate::Wedge`]: begin with [`WedgeConfig::new`] and set what is to be different.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WedgeConfig {
    /// What people call this identity of the host; empty where it has no name.
    pub name: String,
    /// The association side; its locators are replaced by those of `paths`.
    pub hip: HostConfig,
    /// This host's own LSI, as local IPv4 programs see it.
    pub lsi: Lsi,
    /// The access links, the best first.
    pub paths: Vec<LocalPath>,
    /// How the windows of paths grow and shrink where the peer gives feedback.
    pub congestion: congestion::Rule,
    /// Which path a packet takes.
    pub scheduler: scheduler::Scheduler,
    /// What is to hold for some flows, the first that fits; at most [`crate::Policy::MOST`].
    pub policies: Vec<crate::Policy>,
    /// Who may come that is no peer; nobody unless this says so.
    pub guests: Option<GuestConfig>,
    /// Hand out the keys of each security association as a [`crate::WedgeEvent::KeyLog`]: for the user's own eyes only.
    pub keylog: bool,
    /// The most bytes that are held for all peers together: see the crate's page. A fourth of it for any one of them.
    pub memory: usize,
    /// A security association that has sent so many packets gets new keys. Tests make it small.
    pub renew_at: u32,
}

impl LocalPath {
    /// An access link of which nothing is known but where it is: no configured rate, 50 ms to the peers, an MTU of 1500 bytes.
    pub fn new(name: impl Into<String>, locator: SocketAddr) -> Self {
        let PathParameters { rate, delay, .. } = UNKNOWN;
        Self { name: name.into(), locator, rate, delay, mtu: 1500, backup: false, native_esp: false }
    }
}

/// One access link of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalPath {
    /// What people call it.
    pub name: String,
    /// This host's address on it, and the port: 10500 for UDP encapsulation, 0 for the native protocols.
    pub locator: SocketAddr,
    /// The most to send on it, in bit/s, counted in whole IP packets. To a peer that gives no feedback it is also the
    /// least, and without it a guess is.
    pub rate: Option<u64>,
    /// One-way propagation delay to the peers.
    pub delay: Duration,
    /// MTU of the outer interface in bytes.
    pub mtu: u16,
    /// It carries data only where no other path works; towards a Sinnet peer in both directions.
    pub backup: bool,
    /// With a port in `locator`: ESP can leave and arrive without UDP as well ([`Protocol::Esp`](crate::Protocol::Esp)), and does
    /// to a Sinnet peer, where heartbeats show that it arrives.
    pub native_esp: bool,
}

/// A host to talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerConfig {
    /// What people and programs call it.
    pub name: String,
    /// Its identity.
    pub hit: Hit,
    /// What local IPv4 programs call it.
    pub lsi: Lsi,
    /// Where it can be reached, the best first.
    pub locators: Vec<PeerLocator>,
    /// The pairs of locators to use, instead of those that would be chosen.
    pub routes: Vec<PeerRoute>,
    /// Rendezvous servers that know where it is (RFC 8004), with the port as in [`LocalPath::locator`].
    pub via: Vec<SocketAddr>,
    /// It is a rendezvous server, and this host registers there.
    pub registers: bool,
    /// Whether it may begin an association. Otherwise only this host does.
    pub may_begin: bool,
    /// It may register here, where this host is one.
    pub may_register: bool,
    /// Nobody has vouched for it: of what it sends only answers get to programs, to what they have begun.
    pub only_answers: bool,
}

impl PeerConfig {
    /// A peer that can be reached at these addresses, the best first.
    pub fn new(name: impl Into<String>, hit: Hit, lsi: Lsi, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let locators = addresses.into_iter().map(PeerLocator::new).collect();
        let (routes, via) = (Vec::new(), Vec::new());
        Self {
            name: name.into(),
            hit,
            lsi,
            locators,
            routes,
            via,
            registers: false,
            may_begin: true,
            may_register: false,
            only_answers: false,
        }
    }
}

/// Hosts that are no peers and may come all the same, as peers for as long as they stay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuestConfig {
    /// Their HITs, or the beginnings of these in bits; empty for anybody.
    pub hits: Vec<(Hit, u8)>,
    /// What local IPv4 programs call them, each in turn; there are no more guests at a time than LSIs.
    pub lsis: Vec<Lsi>,
    /// A guest with whom no program has exchanged a packet for so long has to go.
    pub idle: Duration,
}

impl GuestConfig {
    /// Anybody, as many as there are LSIs, until ten minutes after the last packet.
    pub fn anybody(lsis: Vec<Lsi>) -> Self {
        Self { hits: Vec::new(), lsis, idle: Duration::from_secs(600) }
    }
}

/// A locator of a peer and what is known of the path there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerLocator {
    /// The address, with the port as in [`LocalPath::locator`].
    pub address: SocketAddr,
    /// The most that the path to it carries, in bit/s, where that is less than the local rate.
    pub rate: Option<u64>,
    /// One-way delay to it, instead of that of the local path.
    pub delay: Option<Duration>,
}

impl PeerLocator {
    /// A locator of which nothing is known but where it is.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, rate: None, delay: None }
    }
}

/// A pair of locators and what is known of the path between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerRoute {
    /// The pair.
    pub route: Route,
    /// Its rate in bit/s, instead of that of the local path.
    pub rate: Option<u64>,
    /// Its one-way delay, instead of that of the local path.
    pub delay: Option<Duration>,
}

impl PeerRoute {
    /// A pair of locators with the rate and delay of the local path.
    pub fn new(route: Route) -> Self {
        Self { route, rate: None, delay: None }
    }
}

/// What is known of the path from one locator to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathParameters {
    /// bit/s, where it is configured.
    pub rate: Option<u64>,
    /// One-way.
    pub delay: Duration,
    /// Bytes.
    pub mtu: u16,
    /// See [`LocalPath::native_esp`].
    pub native_esp: bool,
}

impl WedgeConfig {
    /// The usual bound of memory for all peers together, in bytes: 256 MiB.
    pub const MEMORY: usize = multipath::MEMORY;
    /// When keys are usually renewed, in packets: at a fourth of the sequence numbers. 10 Gbit/s of the smallest packets, ten
    /// million a second, leave more than five minutes for it.
    pub const RENEW_AT: u32 = 1 << 30;

    /// A host with these access links, the best first, and all else as usual.
    pub fn new(lsi: Lsi, paths: Vec<LocalPath>) -> Self {
        Self {
            name: String::new(),
            hip: HostConfig::default(),
            lsi,
            paths,
            congestion: Self::default_congestion(),
            scheduler: scheduler::Scheduler::default(),
            policies: Vec::new(),
            guests: None,
            keylog: false,
            memory: Self::MEMORY,
            renew_at: Self::RENEW_AT,
        }
    }

    /// The rule for windows where none is chosen.
    pub fn default_congestion() -> congestion::Rule {
        multipath::usual_rule()
    }

    pub(crate) fn locators(&self) -> Vec<SocketAddr> {
        self.paths.iter().map(|path| path.locator).collect()
    }

    pub(crate) fn backups(&self) -> Vec<IpAddr> {
        self.paths.iter().filter(|path| path.backup).map(|path| path.locator.ip()).collect()
    }

    /// What the configuration says of a route to a peer.
    pub(crate) fn parameters(&self, peer: &PeerConfig, route: Route) -> PathParameters {
        // A path that the peer opened may use another local port, or an address we do not know.
        let local = self.paths.iter().find(|path| path.locator.ip() == route.local.ip());
        let PathParameters { rate, delay, mtu, native_esp } = local.map_or(UNKNOWN, |path| PathParameters {
            rate: path.rate,
            delay: path.delay,
            mtu: path.mtu,
            native_esp: path.native_esp,
        });
        if let Some(exact) = peer.routes.iter().find(|known| known.route == route) {
            return PathParameters { rate: exact.rate.or(rate), delay: exact.delay.unwrap_or(delay), mtu, native_esp };
        }
        let remote = peer.locators.iter().find(|locator| locator.address.ip() == route.remote.ip());
        PathParameters {
            rate: [remote.and_then(|locator| locator.rate), rate].into_iter().flatten().min(),
            delay: remote.and_then(|locator| locator.delay).unwrap_or(delay),
            mtu,
            native_esp,
        }
    }
}

/// Rate, delay and MTU where nothing is configured: usable, and modest.
const UNKNOWN: PathParameters =
    PathParameters { rate: None, delay: Duration::from_millis(50), mtu: 1280, native_esp: false };

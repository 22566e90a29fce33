//! From a configuration file to a running daemon: everything that needs privileges, then giving them up, then the loop.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use hip::identity::{Algorithm, HostIdentity};
use hip::{Registrar, Route};
use rand_core::CryptoRng;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use text::Diagnostic;
use wedge::{GuestConfig, Identities, LocalPath, PeerConfig, PeerLocator, PeerRoute, Policy, Protocol, WedgeConfig};
use wire::Lsi;

use crate::config::{self, Config, Congestion, Encapsulation, HostResolver};
use crate::confinement::Files;
use crate::control::{self, Access, Control};
use crate::device::{Device, DeviceConfig, OtherIdentity};
use crate::dns::Names;
use crate::dns::resolver::{Resolver, Settings};
use crate::keylog::KeyLog;
use crate::learned::LearnedPeers;
use crate::links::{self, Link, Resolved};
use crate::metrics::Metrics;
use crate::names::Responder;
use crate::netlink::Monitor;
use crate::opportunistic::Strangers;
use crate::reload::Reload;
use crate::reverse_path::ReversePath;
use crate::runtime::Runtime;
use crate::senders::Senders;
use crate::sockets::PathSocket;
use crate::time::{self, Clock};
use crate::uplinks::Uplinks;
use crate::watch::{State, Watch};
use crate::{host_resolver, netlink, network, opportunistic, privileges};

/// What the command line adds to the configuration.
#[derive(Clone, Debug, Default)]
pub struct UpOptions {
    /// Where the control socket shall be; wins over the configuration.
    pub control: Option<PathBuf>,
    /// Where to write the keys of the security associations, in the format that Wireshark loads.
    pub esp_keylog: Option<PathBuf>,
    /// Only be a relay for the peers: without a device for programs, and so without privileges.
    pub relay_only: bool,
}

/// Why a daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The configuration file cannot be read.
    #[error("the configuration {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The configuration is wrong.
    #[error(transparent)]
    Configuration(Box<Diagnostic>),
    /// The system did not give what is needed; the sentence says what to do.
    #[error("{0}")]
    Setup(String),
    /// The loop ended.
    #[error("the daemon had to end: {0}")]
    Loop(#[from] io::Error),
}

impl From<Diagnostic> for UpError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Configuration(Box::new(diagnostic))
    }
}

/// A configuration with its keys.
struct Loaded {
    config: Config,
    identity: HostIdentity,
    /// Of [`Config::identities`]; those that are made at the start are not there yet.
    others: Vec<Option<HostIdentity>>,
}

/// What [`check`] has found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What the configuration is for, in a sentence.
    pub summary: String,
    /// What is right but may not be meant, or is not there now; each a sentence.
    pub remarks: Vec<String>,
}

/// Reads the configuration at `path` and the key it names, and looks at the interfaces of this machine. Needs no privileges.
///
/// # Errors
/// What is wrong with the file or the key.
pub fn check(path: &Path) -> Result<Checked, UpError> {
    let Loaded { config, identity, .. } = load(path)?;
    Senders::find(&config.policies)?;
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let paths = match config.paths.len() {
        0 => "every interface a path".to_owned(),
        paths => count(paths, "path"),
    };
    let (hit, (lsi, _)) = (identity.hit(), config.assign_lsis(identity.hit()));
    let mut summary = format!("{paths}, {}, HIT {hit}, LSI {lsi}", count(config.peers.len(), "peer"));
    for other in &config.identities {
        let what = if other.anonymous { "anonymous".to_owned() } else { format!("HIT {}", other.hit) };
        let lsi = other.lsi.map(|lsi| format!(", LSI {lsi}")).unwrap_or_default();
        summary += &format!("; {}: {what}{lsi}", other.name);
    }
    let mut remarks = config.remarks();
    // Where not even that is allowed nothing can be said about it.
    if let Ok(interfaces) = netlink::interfaces() {
        let Resolved { links, missing } = links::resolve(&config, &interfaces);
        let here = links.iter().map(|link| format!("{} {}", link.name, link.address)).collect::<Vec<_>>();
        remarks.extend(ReversePath::read().remarks(&config, &interfaces, &links));
        remarks.extend(missing.iter().map(|missing| format!("{missing}\nit becomes a path when it is there")));
        remarks.push(match here.as_slice() {
            [] => "no interface of this machine has an address now: Sinnet starts, and waits for one".to_owned(),
            some => format!("paths here and now: {}", some.join(", ")),
        });
    }
    Ok(Checked { summary, remarks })
}

/// The identities that the configuration at `path` knows, as /etc/hosts has them: HIT or LSI, and the name. This host comes
/// first, with no name if it has none.
///
/// # Errors
/// What is wrong with the file or the key.
pub fn hosts(path: &Path) -> Result<Vec<(IpAddr, String)>, UpError> {
    let Loaded { config, identity, .. } = load(path)?;
    let (lsi, peer_lsis) = config.assign_lsis(identity.hit());
    let own = (identity.hit(), lsi, config.name.clone().unwrap_or_default());
    // Of an anonymous one nobody knows the HIT yet.
    let others = config.identities.iter().filter(|other| !other.anonymous);
    let others = others.filter_map(|other| Some((other.hit, other.lsi?, other.name.clone())));
    let peers = config.peers.iter().zip(peer_lsis).map(|(peer, lsi)| (peer.hit, lsi, peer.name.clone()));
    let lines = |(hit, lsi, name): (wire::Hit, Lsi, String)| {
        [(IpAddr::V6(hit.address()), name.clone()), (IpAddr::V4(lsi.address()), name)]
    };
    Ok(std::iter::once(own).chain(others).chain(peers).flat_map(lines).collect())
}

/// Runs a daemon with the configuration at `path` until SIGINT, SIGTERM or a request ends it.
///
/// # Errors
/// [`UpError`], with a sentence that says what to do.
pub fn up(path: &Path, options: &UpOptions) -> Result<(), UpError> {
    // Before there is a key in it.
    if let Err(error) = privileges::hide_memory() {
        tracing::warn!(%error, "keys in memory are not kept out of core dumps");
    }
    let Loaded { mut config, identity, others } = load(path)?;
    if options.relay_only {
        serve_only(&mut config)?;
    } else {
        config.senders = Senders::find(&config.policies)?;
    }
    let runs_as = privileges::identity(config.user.as_deref()).map_err(UpError::Setup)?;
    // Before anything is set up that a signal would leave behind.
    let catch =
        |signals: &[i32]| signals_of(signals).map_err(|error| UpError::Setup(format!("catching signals: {error}")));
    let (signals, hangups) = (catch(&[SIGINT, SIGTERM])?, catch(&[SIGHUP])?);
    let clock = Clock::start();
    let mut random = time::random().map_err(|error| UpError::Setup(format!("no randomness: {error}")))?;
    // Before the first look, so that nothing is missed after it.
    let monitor =
        Monitor::open().map_err(|error| UpError::Setup(format!("listening for changes of addresses: {error}")))?;
    let interfaces =
        netlink::interfaces().map_err(|error| UpError::Setup(format!("asking for the interfaces: {error}")))?;
    let Resolved { links, missing } = links::resolve(&config, &interfaces);
    if links.is_empty() {
        tracing::warn!("no access link has an address yet: is the network up? They become paths when they have one");
    }
    for error in &missing {
        tracing::warn!("{}; it becomes a path when it is there", error.message());
    }
    let reverse_path = ReversePath::read();
    for remark in reverse_path.remarks(&config, &interfaces, &links) {
        tracing::warn!("{remark}");
    }
    let hit = identity.hit();
    let others = complete(&mut config, others, &mut random)?;
    let (lsi, peer_lsis) = config.assign_lsis(hit);
    config.guest_pool = config.guest_lsis(lsi, &peer_lsis);
    let held = [&peer_lsis[..], &config.guest_pool].concat();
    let reserved = config.reserve_lsis(lsi, &held);
    // What has a route: the peers that there are, and those that may come or to whom names will lead.
    let routed = [held, reserved.clone()].concat();

    // The control socket first: it also keeps a second daemon from starting.
    let control_path =
        options.control.as_ref().or(config.control.as_ref()).map_or(Path::new(control::DEFAULT_PATH), |path| path);
    let group = config.control_group.as_deref().map(privileges::group).transpose().map_err(UpError::Setup)?;
    let access =
        Access { user: runs_as.user, group: group.unwrap_or(runs_as.group), everyone: config.control_everyone };
    let control = Control::listen(control_path, access).map_err(|error| control_failure(control_path, &error))?;
    let keylog = options.esp_keylog.as_deref().map(open_keylog).transpose()?;

    if config.accept.as_ref().is_some_and(|accept| accept.hits.is_empty()) {
        tracing::warn!("anybody may come: what programs of this host listen on with its HIT or LSI is open to all");
    }
    let strangers = Strangers::open(&config, path.parent().unwrap_or(Path::new(""))).map_err(UpError::Setup)?;

    // Before there is any address of ours that a stranger could speak to.
    let has_device = !options.relay_only;
    let protect = || network::protect(&config, &interfaces, (hit, lsi), &routed).map_err(UpError::Setup);
    let firewall = if has_device { protect()? } else { None };

    let mut wedge_config = wedge_config(&config, lsi, &links);
    wedge_config.keylog = keylog.is_some();
    wedge_config.guests = config.accept.as_ref().map(|accept| {
        let mut guests = GuestConfig::anybody(config.guest_pool.clone());
        (guests.hits, guests.idle) = (accept.hits.clone(), accept.idle);
        guests
    });
    wedge_config.name = config.name.clone().unwrap_or_default();
    let others = others.into_iter().zip(&config.identities).map(|(identity, other)| {
        let mut own = wedge_config.clone();
        // Who is no peer of ours meets the first, and so do those who register here.
        (own.guests, own.hip.registrar) = (None, None);
        own.name.clone_from(&other.name);
        own.lsi = other.lsi.unwrap_or(own.lsi);
        (identity, own)
    });
    let others = others.collect();
    let mut wedge = Identities::new((identity, wedge_config), others, &mut random)
        .map_err(|error| UpError::Setup(format!("this configuration cannot work: {error}")))?;
    for (peer, lsi) in config.peers.iter().zip(&peer_lsis) {
        add_peer(&mut wedge, peer, peer_config(&config, peer, *lsi, &links));
    }

    let mut sockets = shared_sockets(&config)?;
    for link in &links {
        open_sockets(&config, link, &mut sockets).map_err(|(local, error)| socket_failure(link, local, &error))?;
    }
    let device_config = DeviceConfig {
        name: config.device.clone(),
        hit,
        lsi,
        peers: of_first(&config, &peer_lsis, &routed),
        others: device_identities(&config, &peer_lsis),
        mtu: wedge.tun_mtu(),
        lsi_mtu: wedge.lsi_mtu(),
    };
    let open = || Device::open(&device_config).map_err(|error| device_failure(&config.device, &error));
    let device = has_device.then(open).transpose()?;
    let watch = || {
        watch(&config, hit, lsi, &routed)
            .map_err(|error| UpError::Setup(format!("listening for changes of routes: {error}")))
    };
    let watch = has_device.then(watch).transpose()?;
    let responder = if config.dns.enabled && has_device { respond(&config, hit, lsi, &peer_lsis) } else { None };
    let metrics = config.metrics.map(listen_for_metrics).transpose()?;
    if responder.is_none() && config.dns.resolver != HostResolver::Leave {
        return Err(UpError::Setup("the host's resolver cannot be made to ask us: we have no port 53".to_owned()));
    }
    let host_resolver = host_resolver::set(&config, lsi).map_err(UpError::Setup)?;
    // The kernel may let a thread oversleep by 50 µs to save power; a paced packet is due when it is due.
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!(%error, "timers stay coarse");
    }
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Editors replace files; but what root could read beside it is not for a daemon that somebody else steers.
    let readable = match file.parent() {
        Some(directory) if runs_as.user != 0 => directory.to_owned(),
        _ => file.clone(),
    };
    let files = Files {
        remove: control_path.parent().map(Path::to_owned).into_iter().collect(),
        read: vec![readable],
        connect: config.dns.upstream.iter().map(SocketAddr::port).collect(),
    };
    let confined = privileges::confine(&runs_as, &files).map_err(|error| confine_failure(&runs_as, &error))?;
    if rustix::process::geteuid().is_root() {
        tracing::warn!("runs as root, if without its capabilities: `useradd --system sinnet` makes a user to run as");
    }
    tracing::info!("confined: {confined}");

    tracing::info!(
        %hit, %lsi, device = config.device, mtu = device_config.mtu, control = %control_path.display(),
        "ready"
    );
    for other in &config.identities {
        let anonymous = if other.anonymous { ", which is anonymous and another after each start" } else { "" };
        let lsi = other.lsi.map(|lsi| format!(" with the LSI {lsi}")).unwrap_or_default();
        tracing::info!("{} is {}{lsi}{anonymous}", other.name, other.hit);
    }
    let reload = Reload { path: file, own: (hit, lsi) };
    let learned = LearnedPeers::new(reserved);
    let uplinks = Uplinks { config, peer_lsis, links, monitor, reverse_path };
    let runtime = Runtime {
        clock,
        started: time::seconds_since_1970(),
        random,
        wedge,
        device,
        firewall,
        watch,
        uplinks,
        reload,
        sockets,
        responder,
        control,
        metrics,
        signals,
        hangups,
        keylog,
        confined,
        strangers,
        learned,
        _host_resolver: host_resolver,
    };
    Ok(runtime.run()?)
}

/// Makes the identities that are made at the start.
fn complete(
    config: &mut Config,
    others: Vec<Option<HostIdentity>>,
    random: &mut dyn CryptoRng,
) -> Result<Vec<HostIdentity>, UpError> {
    let mut all = Vec::new();
    for (other, identity) in config.identities.iter_mut().zip(others) {
        let make = |_| UpError::Setup(format!("no key could be made for \"{}\"; start again", other.name));
        let identity = match identity {
            Some(identity) => identity,
            None => HostIdentity::generate(Algorithm::EcdsaP384, random).map_err(make)?.anonymous(),
        };
        other.hit = identity.hit();
        all.push(identity);
    }
    Ok(all)
}

/// Of the LSIs that have routes, peers first, those that lead to the first identity.
fn of_first(config: &Config, peer_lsis: &[Lsi], routed: &[Lsi]) -> Vec<Lsi> {
    let others: Vec<Lsi> =
        config.peers.iter().zip(peer_lsis).filter(|(peer, _)| peer.speaks_as != 0).map(|(_, lsi)| *lsi).collect();
    routed.iter().copied().filter(|lsi| !others.contains(lsi)).collect()
}

/// What the device has to know of the other identities.
fn device_identities(config: &Config, peer_lsis: &[Lsi]) -> Vec<OtherIdentity> {
    let others = (1..).zip(&config.identities).filter_map(|(number, other)| {
        Some(OtherIdentity { hit: other.hit, lsi: other.lsi?, peers: config.peers_of(number, peer_lsis) })
    });
    others.collect()
}

/// Lets a peer in, by the identity of ours that it knows.
pub(crate) fn add_peer(wedge: &mut Identities, configured: &config::PeerConfig, peer: PeerConfig) {
    if let Some(wedge) = wedge.get(configured.speaks_as) {
        wedge.add_peer(peer);
    }
}

/// Makes a configuration that of a relay.
fn serve_only(config: &mut Config) -> Result<(), UpError> {
    if !config.identities.is_empty() {
        let told = "a relay is one identity: leave out [[other_identity]], or run it with a file of its own";
        return Err(UpError::Setup(told.to_owned()));
    }
    if config.encapsulation == Encapsulation::Native {
        let told = "a relay is of use inside UDP only: leave out `encapsulation = \"native\"`";
        return Err(UpError::Setup(told.to_owned()));
    }
    config.rendezvous.get_or_insert_default().relay = true;
    // There are no programs whose names could be asked for.
    config.dns.resolver = HostResolver::Leave;
    Ok(())
}

/// Watches what [`Device::open`] has set up.
fn watch(config: &Config, hit: wire::Hit, lsi: Lsi, peers: &[Lsi]) -> io::Result<Watch> {
    let hits = config.peers.iter().map(|peer| IpAddr::V6(peer.hit.address()));
    let lsis = peers.iter().map(|lsi| IpAddr::V4(lsi.address()));
    let others = config.identities.iter().flat_map(|other| {
        [Some(IpAddr::V6(other.hit.address())), other.lsi.map(|lsi| IpAddr::V4(lsi.address()))].into_iter().flatten()
    });
    let of_others = config.peers.iter().filter(|peer| peer.speaks_as != 0);
    Ok(Watch {
        monitor: Monitor::with_routes()?,
        device: config.device.clone(),
        own: [IpAddr::V6(hit.address()), lsi.address().into()].into_iter().chain(others).collect(),
        exact: of_others.map(|peer| peer.hit.address().into()).collect(),
        peers: hits.chain(lsis).collect(),
        next: None,
        state: State::Right,
    })
}

fn load(path: &Path) -> Result<Loaded, UpError> {
    let text = std::fs::read_to_string(path).map_err(|source| UpError::Unreadable { path: path.to_owned(), source })?;
    let mut config = config::parse(&text, &path.display().to_string())?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let identity = config.read_identity(directory)?;
    let others = config.read_other_identities(directory, identity.hit())?;
    config.read_peer_identities(directory)?;
    opportunistic::recall(&mut config, directory).map_err(UpError::Setup)?;
    config.check_peers(identity.hit())?;
    config.settle_lsis(identity.hit());
    Ok(Loaded { config, identity, others })
}

/// A locator of ours as [`Route`] has it: the port says how packets travel.
pub(crate) fn locator(config: &Config, address: IpAddr) -> SocketAddr {
    match config.encapsulation {
        Encapsulation::Auto | Encapsulation::Udp => SocketAddr::new(address, config.port),
        Encapsulation::Native => SocketAddr::new(address, 0),
    }
}

/// A locator of a peer.
pub(crate) fn remote(config: &Config, known: &config::LocatorConfig) -> SocketAddr {
    match config.encapsulation {
        Encapsulation::Auto | Encapsulation::Udp => SocketAddr::new(known.address, known.port.unwrap_or(hip::UDP_PORT)),
        Encapsulation::Native => SocketAddr::new(known.address, 0),
    }
}

/// What the configuration says of this host.
fn wedge_config(config: &Config, lsi: Lsi, links: &[Link]) -> WedgeConfig {
    let mut wedge = WedgeConfig::new(lsi, links.iter().map(|link| local_path(config, link)).collect());
    wedge.hip.esp_suites.clone_from(&config.esp_suites);
    wedge.hip.groups.clone_from(&config.groups);
    wedge.hip.puzzle_difficulty = config.puzzle_difficulty;
    wedge.hip.encrypts_identity = config.encrypt_identity;
    wedge.hip.first_generation = time::seconds_since_1970();
    wedge.hip.rekey_interval = config.rekey_interval;
    wedge.hip.registrar = config.rendezvous.as_ref().map(|rendezvous| {
        let mut registrar = Registrar::default();
        registrar.most = rendezvous.most.into();
        registrar.relay = rendezvous.relay;
        registrar.data = u32::try_from(rendezvous.data / 8).unwrap_or(u32::MAX);
        registrar
    });
    wedge.renew_at = config.rekey_packets;
    wedge.policies = policies(config);
    wedge.scheduler.clone_from(&config.scheduler);
    match &config.congestion {
        Congestion::Measured(rule) => wedge.congestion = rule.clone(),
        Congestion::ConfiguredRates => wedge.hip.feedback = false,
    }
    wedge
}

/// The policies, with the HITs of those peers that are known by now.
pub(crate) fn policies(config: &Config) -> Vec<Policy> {
    let hit = |name: &String| config.peers.iter().find(|peer| peer.name == *name).map(|peer| peer.hit);
    let of = |configured: &config::PolicyConfig| {
        let mut policy = configured.policy.clone();
        policy.peers = configured.peers.as_ref().map(|names| names.iter().filter_map(hit).collect());
        // Who is not told apart is in no policy that gets here.
        policy.marks = config.senders.marks(configured).unwrap_or_else(|_| Some(Vec::new()));
        policy
    };
    config.policies.iter().map(of).collect()
}

pub(crate) fn local_path(config: &Config, link: &Link) -> LocalPath {
    let mut path = LocalPath::new(link.name.clone(), locator(config, link.address));
    (path.rate, path.delay, path.mtu, path.backup) = (link.rate, link.delay, link.mtu, link.backup);
    path.native_esp = config.encapsulation == Encapsulation::Auto;
    path
}

pub(crate) fn peer_config(config: &Config, peer: &config::PeerConfig, lsi: Lsi, links: &[Link]) -> PeerConfig {
    let routes = peer.routes.iter().filter_map(|route| {
        let name = &config.paths.get(route.from)?.name;
        let local = locator(config, links.iter().find(|link| link.name == *name)?.address);
        let end = peer.locators.iter().find(|known| known.address == route.to)?;
        let mut known = PeerRoute::new(Route { local, remote: remote(config, end) });
        (known.rate, known.delay) = (route.rate, route.delay);
        Some(known)
    });
    let locators = peer.locators.iter().map(|configured| {
        let mut known = PeerLocator::new(remote(config, configured));
        (known.rate, known.delay) = (configured.rate, configured.delay);
        known
    });
    let mut known = PeerConfig::new(peer.name.clone(), peer.hit, lsi, []);
    (known.locators, known.routes) = (locators.collect(), routes.collect());
    known.via = peer.via.iter().map(|server| remote(config, server)).collect();
    known.registers = peer.register;
    let is_client = |rendezvous: &config::RendezvousConfig| {
        rendezvous.clients.as_ref().is_none_or(|clients| clients.contains(&peer.name))
    };
    known.may_register = config.rendezvous.as_ref().is_some_and(is_client);
    known
}

/// The sockets that all paths share, where there are such: raw sockets of the native protocols.
///
/// # Errors
/// A sentence where they cannot be opened.
fn shared_sockets(config: &Config) -> Result<Vec<PathSocket>, UpError> {
    let mut sockets = Vec::new();
    let is_only_native = config.encapsulation == Encapsulation::Native;
    let protocols: &[Protocol] = match config.encapsulation {
        Encapsulation::Auto => &[Protocol::Esp],
        Encapsulation::Udp => &[],
        Encapsulation::Native => &[Protocol::Hip, Protocol::Esp],
    };
    for (is_v4, protocol) in [true, false].into_iter().flat_map(|v4| protocols.iter().map(move |which| (v4, *which))) {
        match PathSocket::open_native(protocol, is_v4) {
            Ok(socket) => sockets.push(socket),
            Err(error) if is_only_native && error.kind() == io::ErrorKind::PermissionDenied => {
                let why = "a raw socket for the native protocols cannot be opened";
                return Err(UpError::Setup(format!("{why}: {error}; this needs root or CAP_NET_RAW: try sudo")));
            }
            // A machine without IPv6 has no such address either.
            Err(error) => tracing::info!(%error, "no native protocols over IPv{}", if is_v4 { 4 } else { 6 }),
        }
    }
    Ok(sockets)
}

/// A link has sockets from now on.
pub(crate) fn open_sockets(
    config: &Config,
    link: &Link,
    sockets: &mut Vec<PathSocket>,
) -> Result<(), (SocketAddr, io::Error)> {
    let local = locator(config, link.address);
    let interface = if link.device.is_some() { link.interface } else { 0 };
    if config.encapsulation != Encapsulation::Native {
        sockets.push(PathSocket::open(local, interface).map_err(|error| (local, error))?);
    }
    let joined = sockets.iter_mut().map(|socket| socket.join(local, interface)).filter(|joined| *joined).count();
    let is_missing = config.encapsulation == Encapsulation::Native && joined == 0;
    if is_missing { Err((local, io::ErrorKind::Unsupported.into())) } else { Ok(()) }
}

/// And none any more.
pub(crate) fn close_sockets(config: &Config, link: &Link, sockets: &mut Vec<PathSocket>) {
    let local = locator(config, link.address);
    sockets.retain_mut(|socket| !socket.leave(local));
}

/// The names of this host and its peers; of so many of these there are routes to the LSIs.
pub(crate) fn names_of(config: &Config, (hit, lsi): (wire::Hit, Lsi), peers: &[Lsi], routed: usize) -> Names {
    let mut names = Names::default();
    let own = config.name.iter().map(|name| (name, hit, Some(lsi)));
    let own = own.chain(config.identities.iter().map(|other| (&other.name, other.hit, other.lsi)));
    let peers = config.peers.iter().zip(peers).enumerate();
    let peers = peers.map(|(index, (peer, lsi))| (&peer.name, peer.hit, Some(*lsi).filter(|_| index < routed)));
    for (name, hit, lsi) in own.chain(peers) {
        if let Err(error) = names.add(name, hit, lsi) {
            tracing::warn!("{error}");
        }
    }
    names
}

/// A daemon without names is of use, so this is not an error.
fn respond(config: &Config, hit: wire::Hit, lsi: Lsi, peer_lsis: &[Lsi]) -> Option<Responder> {
    let names = names_of(config, (hit, lsi), peer_lsis, config.peers.len());
    let settings = Settings {
        servers: config.dns.upstream.clone(),
        hip_records: config.dns.hip_records,
        trusted: config.dns.trusted,
        lsi_range: config.lsi_range,
    };
    match Responder::listen(lsi, Resolver::new(names, settings)) {
        Ok(responder) => Some(responder),
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::PermissionDenied => "without CAP_NET_BIND_SERVICE nobody but root may listen on port 53",
                io::ErrorKind::AddrInUse => {
                    "another program has port 53 of all addresses: let it listen on its own ones"
                }
                _ => "port 53 cannot be listened on",
            };
            tracing::warn!(
                %error,
                "no names at {lsi}: {why}; `sinnet hosts` prints lines for /etc/hosts, and enabled = false in [dns] says that this is meant"
            );
            None
        }
    }
}

/// A stream that becomes readable when one of `signals` comes.
fn signals_of(signals: &[i32]) -> io::Result<UnixStream> {
    let (readable, writable) = UnixStream::pair()?;
    readable.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, writable.try_clone()?)?;
    }
    Ok(readable)
}

fn confine_failure(identity: &privileges::Identity, error: &io::Error) -> UpError {
    let name = &identity.name;
    UpError::Setup(format!("giving up privileges as the user {name}: {error}; `user = \"root\"` keeps the user"))
}

fn open_keylog(path: &Path) -> Result<KeyLog, UpError> {
    KeyLog::open(path)
        .map_err(|error| UpError::Setup(format!("the key log {} cannot be opened: {error}", path.display())))
}

fn listen_for_metrics(address: SocketAddr) -> Result<Metrics, UpError> {
    Metrics::listen(address)
        .map_err(|error| UpError::Setup(format!("metrics cannot be told at {address}: {error}; change `metrics`")))
}

fn control_failure(path: &Path, error: &io::Error) -> UpError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "`sinnet down` ends it, or --control PATH lets this one stand beside it",
        io::ErrorKind::PermissionDenied => "start as root, or choose another place with --control PATH",
        io::ErrorKind::NotFound => "its directory, or the one that has it, is not there",
        _ => "--control PATH chooses another place",
    };
    UpError::Setup(format!("the control socket {} cannot be used: {error}; {remedy}", path.display()))
}

fn socket_failure(link: &Link, local: SocketAddr, error: &io::Error) -> UpError {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has the port: is another Sinnet running?",
        io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_RAW: try sudo",
        _ => "",
    };
    UpError::Setup(format!("the path \"{}\" cannot use {local}: {error}{remedy}", link.name))
}

fn device_failure(name: &str, error: &io::Error) -> UpError {
    const EACCES: i32 = 13;
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied if error.raw_os_error() == Some(EACCES) => {
            "; this user may not open /dev/net/tun: try sudo"
        }
        io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_ADMIN: try sudo",
        io::ErrorKind::NotFound => "; the kernel has no TUN devices: `sudo modprobe tun` may help",
        io::ErrorKind::ResourceBusy => "; another program has it: choose another name in [tun]",
        _ => "",
    };
    UpError::Setup(format!("the TUN device {name} cannot be set up: {error}{remedy}"))
}

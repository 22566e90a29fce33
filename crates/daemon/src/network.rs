//! What the daemon does to this network namespace, and how it sees that it may: the packet filter, and that nobody else is
//! there who speaks for identities.

use std::io;
use std::net::IpAddr;

use wire::{Hit, Lsi};

use crate::config::Config;
use crate::device::{HIT_PREFIX, hit_prefix};
use crate::firewall::{self, Firewall, FirewallConfig};
use crate::host_resolver;
use crate::netlink::{self, Interface};

/// Puts up the packet filter, before anything else of ours is up; none where the configuration says so.
///
/// # Errors
/// A sentence with a remedy: without privileges, without nftables, or where another daemon runs.
pub(crate) fn protect(
    config: &Config,
    interfaces: &[Interface],
    own: (Hit, Lsi),
    peers: &[Lsi],
) -> Result<Option<Firewall>, String> {
    let hits: Vec<Hit> = std::iter::once(own.0).chain(config.identities.iter().map(|other| other.hit)).collect();
    let lsis: Vec<Lsi> = std::iter::once(own.1).chain(config.other_lsis()).collect();
    let exists = |name: &str| interfaces.iter().any(|interface| interface.name == name);
    if exists(&config.device) {
        return Err(format!(
            "there is an interface {} already: if another Sinnet runs, `sinnet down` ends it; otherwise choose another name in [tun]",
            config.device
        ));
    }
    alone(interfaces, own.0)?;
    unused(config, interfaces, &lsis, peers)?;
    stay_closed(own.0, lsis.iter().chain(peers)).map_err(|error| {
        format!("the unreachable routes cannot be set up: {error}; this needs root or CAP_NET_ADMIN: try sudo")
    })?;
    if !config.firewall {
        tracing::warn!(
            "no packet filter: whoever is on a link of this host can send cleartext as any identity, unless another filter \
             drops what has a HIT or an LSI on other interfaces than {}",
            config.device
        );
        return Ok(None);
    }
    let tables = firewall::devices().map_err(|error| failure(&error))?;
    let (running, stale): (Vec<String>, Vec<String>) = tables.into_iter().partition(|device| exists(device));
    if let Some(device) = running.first() {
        return Err(another(device));
    }
    let marked = config.senders.marked();
    let device = &config.device;
    let filter = FirewallConfig { device, hits: &hits, lsis: &lsis, peers, forward: config.forward, marked: &marked };
    Firewall::install(&filter, &stale).map(Some).map_err(|error| failure(&error))
}

/// Wherever no route leads to identities, packets to them go nowhere. These routes outlive us.
fn stay_closed<'a>(hit: Hit, mut lsis: impl Iterator<Item = &'a Lsi>) -> io::Result<()> {
    netlink::make_unreachable(hit_prefix(hit), HIT_PREFIX)?;
    lsis.try_for_each(|lsi| netlink::make_unreachable(lsi.address().into(), 32))
}

/// Nobody else may have a route to identities: of two daemons each would take the other's packets.
fn alone(interfaces: &[Interface], hit: Hit) -> Result<(), String> {
    for address in [hit_prefix(hit), hit.address().into()] {
        let way = netlink::route_to(address).map_err(|error| format!("asking for the route to {address}: {error}"))?;
        if let Some(way) = way.filter(|way| way.local || way.prefix >= HIT_PREFIX) {
            return Err(another(&name_of(interfaces, way.interface)));
        }
    }
    Ok(())
}

/// An LSI must not be the address of anybody else.
fn unused(config: &Config, interfaces: &[Interface], own: &[Lsi], peers: &[Lsi]) -> Result<(), String> {
    /// A default route may be in two halves, or more; who has a route to more than this means the Internet.
    const INTERNET: u8 = 8;
    let resolvers = resolvers();
    let names = std::iter::once("this host").chain(config.identities.iter().map(|other| &*other.name));
    let names = names.chain(config.peers.iter().map(|peer| &*peer.name)).chain(std::iter::repeat("a guest"));
    for (lsi, name) in own.iter().chain(peers).copied().zip(names) {
        let address = IpAddr::V4(lsi.address());
        let remedy = format!("choose another `lsi`, or another `lsi_range` than {}", config.lsi_range);
        let way = netlink::route_to(address).map_err(|error| format!("asking for the route to {address}: {error}"))?;
        if let Some(way) = way.filter(|way| way.local || way.prefix > INTERNET) {
            let over = name_of(interfaces, way.interface);
            return Err(format!("the LSI {lsi} of {name} is already in use on this host, over {over}: {remedy}"));
        }
        // Our own may be where our own names are answered.
        let own_names = config.dns.enabled && Some(&lsi) == own.first();
        if resolvers.contains(&address) && !own_names {
            return Err(format!("the LSI {lsi} of {name} is this host's name server: {remedy}"));
        }
    }
    Ok(())
}

/// The name servers of this host, and those behind systemd's.
fn resolvers() -> Vec<IpAddr> {
    let files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap_or_default() + "\n").collect();
    text.lines().filter_map(|line| line.strip_prefix("nameserver")?.trim().parse().ok()).collect()
}

fn name_of(interfaces: &[Interface], index: Option<u32>) -> String {
    let interface = interfaces.iter().find(|interface| Some(interface.index) == index);
    interface.map_or_else(|| "another interface".to_owned(), |interface| interface.name.clone())
}

/// Removes what a daemon leaves so that nothing goes out in clear after it: the packet filter and the unreachable routes.
///
/// # Errors
/// A sentence with a remedy: while a daemon runs, or without privileges.
pub fn clean() -> Result<String, String> {
    let interfaces = netlink::interfaces().map_err(|error| format!("asking for the interfaces: {error}"))?;
    let devices = firewall::devices().map_err(|error| failure(&error))?;
    if let Some(device) = devices.iter().find(|device| interfaces.iter().any(|interface| interface.name == **device)) {
        return Err(format!("a Sinnet runs on {device}: `sinnet down` ends it"));
    }
    let resolver = host_resolver::restore()
        .map_err(|error| format!("/etc/resolv.conf cannot be put back: {error}; this needs root: try sudo"))?;
    firewall::remove(&devices).map_err(|error| failure(&error))?;
    let routes = netlink::remove_unreachable()
        .map_err(|error| format!("the unreachable routes cannot be removed: {error}; this needs root: try sudo"))?;
    let resolver = if resolver { ", and /etc/resolv.conf is what it was" } else { "" };
    Ok(format!("{} packet filters and {routes} routes are removed{resolver}", devices.len()))
}

/// Two daemons would take each other's packets.
fn another(device: &str) -> String {
    format!(
        "another Sinnet runs in this network namespace, on {device}: one is the most there can be; `sinnet down` ends it, \
         and one in a namespace of its own can stand beside it"
    )
}

fn failure(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "; this needs root or CAP_NET_ADMIN: try sudo",
        _ => {
            "; without nftables (`sudo modprobe nf_tables` may help) strangers could speak for identities; firewall = false in \
             [tun] says that another filter keeps them from it"
        }
    };
    format!("the packet filter cannot be set up: {error}{remedy}")
}

//! The access links while the daemon runs: when an interface or an address appears, disappears or changes, the paths
//! follow. Nothing here needs privileges: since Linux 5.7 anyone may bind a fresh socket to a device, and the raw sockets of the
//! native protocols are open already.

use std::net::IpAddr;

use clock::Instant;
use rand_core::CryptoRng;
use wedge::Identities;
use wire::Lsi;

use crate::config::Config;
use crate::links::{self, Link};
use crate::netlink::{self, Monitor};
use crate::reverse_path::ReversePath;
use crate::sockets::PathSocket;
use crate::start::{add_peer, close_sockets, local_path, open_sockets, peer_config};

/// What is configured, and what there is of it.
#[derive(Debug)]
pub(crate) struct Uplinks {
    pub(crate) config: Config,
    /// The peers' LSIs, in the order of the configuration.
    pub(crate) peer_lsis: Vec<Lsi>,
    pub(crate) links: Vec<Link>,
    pub(crate) monitor: Monitor,
    pub(crate) reverse_path: ReversePath,
}

impl Uplinks {
    /// Looks whether anything has changed, and lets sockets and paths follow.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        wedge: &mut Identities,
        sockets: &mut Vec<PathSocket>,
    ) {
        if !self.monitor.turn() {
            return;
        }
        let interfaces = match netlink::interfaces() {
            Ok(interfaces) => interfaces,
            // The next change is another chance.
            Err(error) => return tracing::warn!(%error, "asking for the interfaces"),
        };
        let there = links::resolve(&self.config, &interfaces).links;
        self.resize(now, random, wedge, &there);
        let change = Change::between(&self.links, &there);
        if change.gone.is_empty() && change.new.is_empty() {
            return;
        }
        // A new address before the loss of the old one: so a host that moves is never without a locator. The same address
        // on another interface has to leave the first one before.
        let (moved, gone): (Vec<_>, Vec<_>) =
            change.gone.into_iter().partition(|gone| change.new.iter().any(|new| new.address == gone.address));
        for link in moved {
            self.remove(now, random, wedge, sockets, &link);
        }
        for remark in self.reverse_path.remarks(&self.config, &interfaces, &change.new) {
            tracing::warn!("{remark}");
        }
        for link in change.new {
            self.add(now, random, wedge, sockets, link);
        }
        for link in gone {
            self.remove(now, random, wedge, sockets, &link);
        }
    }

    /// Interfaces take packets of other sizes than they did.
    fn resize(&mut self, now: Instant, random: &mut dyn CryptoRng, wedge: &mut Identities, there: &[Link]) {
        for link in &mut self.links {
            let Some(new) = there.iter().find(|new| key(new) == key(link) && new.mtu != link.mtu) else { continue };
            link.mtu = new.mtu;
            match wedge.set_path_mtu(now, random, link.address, link.mtu) {
                Ok(()) => tracing::info!("{} on {} takes packets of {} bytes now", link.address, link.name, link.mtu),
                Err(error) => tracing::warn!("{} on {}: {error}", link.address, link.name),
            }
        }
    }

    fn add(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        wedge: &mut Identities,
        sockets: &mut Vec<PathSocket>,
        link: Link,
    ) {
        if let Err((_, error)) = open_sockets(&self.config, &link, sockets) {
            return tracing::warn!("{} on {} is no path: {error}", link.address, link.name);
        }
        let path = local_path(&self.config, &link);
        self.links.push(link);
        self.tell_routes(wedge);
        let Some(link) = self.links.last() else { return };
        match wedge.add_path(now, random, path) {
            Ok(()) => tracing::info!("{} on {} is there and is used", link.address, link.name),
            Err(error) => {
                tracing::warn!("{} on {} is no path: {error}", link.address, link.name);
                close_sockets(&self.config, link, sockets);
                self.links.pop();
            }
        }
    }

    fn remove(
        &mut self,
        now: Instant,
        random: &mut dyn CryptoRng,
        wedge: &mut Identities,
        sockets: &mut Vec<PathSocket>,
        link: &Link,
    ) {
        tracing::warn!("{} on {} is gone and is not used any more", link.address, link.name);
        close_sockets(&self.config, link, sockets);
        self.links.retain(|other| other != link);
        self.tell_routes(wedge);
        wedge.remove_path(now, random, link.address);
    }

    /// Configured pairs of locators begin at the addresses that there are.
    fn tell_routes(&self, wedge: &mut Identities) {
        for (peer, lsi) in self.config.peers.iter().zip(&self.peer_lsis) {
            if !peer.routes.is_empty() {
                add_peer(wedge, peer, peer_config(&self.config, peer, *lsi, &self.links));
            }
        }
    }
}

/// A path is the same while its name, its address and its interface are: one of the same name that was unplugged between is
/// another, and what is bound to the one before reaches nobody.
fn key(link: &Link) -> (&str, IpAddr, Option<&str>, u32) {
    (&link.name, link.address, link.device.as_deref(), link.interface)
}

/// What is different.
#[derive(Debug, Default)]
struct Change {
    gone: Vec<Link>,
    new: Vec<Link>,
}

impl Change {
    fn between(old: &[Link], new: &[Link]) -> Self {
        let lacks = |list: &[Link], link: &Link| !list.iter().any(|other| key(other) == key(link));
        Self {
            gone: old.iter().filter(|link| lacks(new, link)).cloned().collect(),
            new: new.iter().filter(|link| lacks(old, link)).cloned().collect(),
        }
    }
}

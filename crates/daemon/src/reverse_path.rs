//! Linux' reverse-path filter (RFC 3704 §2.2, `net.ipv4.conf.*.rp_filter`). Where it is strict, what comes over an interface is
//! dropped unless the answer would go out over the same one, which on a host with one default route is true of one access link
//! only: the others send and hear nothing.

use std::net::{IpAddr, Ipv4Addr};

use crate::config::Config;
use crate::links::Link;
use crate::netlink::{self, Interface};

/// What is asked where no peer's address is known: somewhere in the Internet (TEST-NET-2, RFC 5737).
const ANYWHERE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// What holds for all interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReversePath {
    /// The least filter of any interface: 0 is none, 1 is strict, 2 is loose.
    all: i32,
}

impl ReversePath {
    /// Reads it, which a confined daemon cannot do any more.
    pub(crate) fn read() -> Self {
        let all = std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter");
        Self { all: all.ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default() }
    }

    /// Says of each of `links` that hears nothing of a peer because of its filter, and what mends it.
    pub(crate) fn remarks(self, config: &Config, interfaces: &[Interface], links: &[Link]) -> Vec<String> {
        let v4 = |address| if let IpAddr::V4(address) = address { Some(address) } else { None };
        let known =
            config.peers.iter().map(|peer| peer.locators.iter().filter_map(|locator| v4(locator.address)).collect());
        let known: Vec<Vec<Ipv4Addr>> = known.filter(|addresses: &Vec<_>| !addresses.is_empty()).collect();
        links.iter().filter_map(|link| self.remark(link, interfaces, &known)).collect()
    }

    fn remark(self, link: &Link, interfaces: &[Interface], peers: &[Vec<Ipv4Addr>]) -> Option<String> {
        let IpAddr::V4(own) = link.address else { return None };
        let interface = interfaces.iter().find(|interface| interface.index == link.interface)?;
        // ip-sysctl: the larger of both holds.
        if interface.reverse_path_filter.max(self.all) != 1 {
            return None;
        }
        let name = &interface.name;
        let way_to = |address: Ipv4Addr| netlink::route_from(Some(own), address.into()).ok().flatten()?.interface;
        let is_heard = |address: &Ipv4Addr| way_to(*address) == Some(interface.index);
        let dark = peers.iter().find(|addresses| !addresses.iter().any(is_heard));
        let (whom, over) = match dark.and_then(|addresses| addresses.first()) {
            Some(address) => (address.to_string(), way_to(*address)),
            None if peers.is_empty() && !is_heard(&ANYWHERE) => {
                ("hosts in the Internet".to_owned(), Some(way_to(ANYWHERE)?))
            }
            None => return None,
        };
        let over = over.and_then(|over| interfaces.iter().find(|interface| interface.index == over));
        let why = match over {
            Some(over) => format!("the route from {own} to {whom} leads over {}", over.name),
            None => format!("there is no route from {own} to {whom}"),
        };
        Some(format!(
            "the kernel drops what {whom} sends to {name}, because its reverse-path filter is strict and {why}; \
             `sudo sysctl -w net.ipv4.conf.{name}.rp_filter=2` makes the filter loose, a line in /etc/sysctl.d for good"
        ))
    }
}

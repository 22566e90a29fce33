//! What the daemon does to this network namespace, and how it sees that it may: the packet filter, and that nobody else is
//! there who speaks for identities.

use std::io;

use wire::{Hit, Lsi};

use crate::config::Config;
use crate::firewall::{self, Firewall, FirewallConfig};
use crate::netlink::Interface;

/// Puts up the packet filter, before anything else of ours is up; none where the configuration says so.
///
/// # Errors
/// A sentence with a remedy: without privileges, without nftables, or where another daemon runs.
pub(crate) fn protect(
    config: &Config,
    interfaces: &[Interface],
    hit: Hit,
    (lsi, peers): (Lsi, &[Lsi]),
) -> Result<Option<Firewall>, String> {
    let exists = |name: &str| interfaces.iter().any(|interface| interface.name == name);
    if exists(&config.device) {
        return Err(format!(
            "there is an interface {} already: if another Sinnet runs, `sinnet down` ends it; otherwise choose another name in [tun]",
            config.device
        ));
    }
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
    let filter = FirewallConfig { device: &config.device, hit, lsi, peers, forward: config.forward };
    Firewall::install(&filter, &stale).map(Some).map_err(|error| failure(&error))
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

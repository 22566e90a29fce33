//! Which interface of this machine each configured path is.

use std::net::IpAddr;

use clock::Duration;
use diagnostic::Diagnostic;

use crate::config::{Config, PathConfig};
use crate::netlink::Interface;

/// A path with everything known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it is called.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// The interface that its packets are bound to.
    pub device: Option<String>,
    /// The largest IP packet, in bytes.
    pub mtu: u16,
    /// Out of this host, in bit/s.
    pub rate: Option<u64>,
    /// One way.
    pub delay: Duration,
}

/// Finds each path's interface and address. With several paths, each is bound to its interface, because the kernel would
/// route them all by their destination; the one path of a host goes where the kernel sends it, unless the configuration
/// names the interface.
///
/// # Errors
/// Points at the path whose address or interface is not there, or that shares one.
pub fn resolve(config: &Config, interfaces: &[Interface]) -> Result<Vec<Link>, Diagnostic> {
    let mut links: Vec<(Link, u32)> = Vec::new();
    for path in &config.paths {
        let (interface, address) = find(config, path, interfaces)?;
        if let Some((other, _)) = links.iter().find(|(_, index)| *index == interface.index) {
            return Err(config.path_error(
                path,
                format!(
                    "the paths \"{}\" and \"{}\" are both on the interface {}",
                    other.name, path.name, interface.name
                ),
                "each path needs an access link of its own: leave one of them out".to_owned(),
            ));
        }
        let carries = u16::try_from(interface.mtu).unwrap_or(u16::MAX);
        let link = Link {
            name: path.name.clone(),
            address,
            device: (path.interface.is_some() || config.paths.len() > 1).then(|| interface.name.clone()),
            mtu: path.mtu.map_or(carries, |mtu| mtu.min(carries)),
            rate: path.rate,
            delay: path.delay,
        };
        links.push((link, interface.index));
    }
    Ok(links.into_iter().map(|(link, _)| link).collect())
}

fn find<'a>(
    config: &Config,
    path: &PathConfig,
    interfaces: &'a [Interface],
) -> Result<(&'a Interface, IpAddr), Diagnostic> {
    let Some(name) = &path.interface else {
        let address = path.address;
        return interfaces
            .iter()
            .find_map(|interface| Some((interface, address.filter(|address| interface.addresses.contains(address))?)))
            .ok_or_else(|| {
                let shown = address.map(|address| address.to_string()).unwrap_or_default();
                let help = format!("it has {}", listed(interfaces.iter().flat_map(|interface| &interface.addresses)));
                config.path_error(path, format!("this machine does not have the address {shown}"), help)
            });
    };
    let interface = interfaces.iter().find(|interface| interface.name == *name).ok_or_else(|| {
        let help = format!("there are {}", listed(interfaces.iter().map(|interface| &interface.name)));
        config.path_error(path, format!("this machine has no interface \"{name}\""), help)
    })?;
    let found = match path.address {
        Some(address) => interface.addresses.contains(&address).then_some(address),
        None => interface.addresses.iter().copied().find(|address| usable(config, *address)),
    };
    found.map(|address| (interface, address)).ok_or_else(|| {
        let message = match path.address {
            Some(address) => format!("the interface \"{name}\" does not have the address {address}"),
            None => format!("the interface \"{name}\" has no address that reaches a peer"),
        };
        let help = if interface.addresses.is_empty() {
            "it has none: is it up and configured?".to_owned()
        } else {
            format!("it has {}", listed(&interface.addresses))
        };
        config.path_error(path, message, help)
    })
}

/// An address that can be told to others and is of the family of some peer's locator.
fn usable(config: &Config, address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let mut locators = config.peers.iter().flat_map(|peer| &peer.locators).peekable();
    let nobody = locators.peek().is_none();
    !link_local && (nobody || locators.any(|locator| locator.address.is_ipv4() == address.is_ipv4()))
}

fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Interface> {
        let interface = |index, name: &str, mtu, addresses: &[&str]| Interface {
            index,
            name: name.to_owned(),
            mtu,
            addresses: addresses.iter().map(|address| address.parse().expect("an address")).collect(),
        };
        vec![
            interface(1, "lo", 65536, &["127.0.0.1"]),
            interface(2, "eth0", 1500, &["fe80::1", "2001:db8::1", "192.0.2.10", "192.0.2.11"]),
            interface(3, "wwan0", 1420, &["169.254.1.1", "203.0.113.10"]),
            interface(4, "down0", 1500, &[]),
        ]
    }

    fn links(paths: &[&str]) -> Result<Vec<Link>, Diagnostic> {
        let mut text = "identity = \"a.pem\"\n".to_owned();
        for (number, path) in paths.iter().enumerate() {
            text += &format!("[[path]]\nname = \"p{number}\"\nrate = \"8Mbit/s\"\ndelay = \"3ms\"\n{path}\n");
        }
        text += "[[peer]]\nname = \"b\"\nhit = \"2001:22::b\"\nlocators = [\"198.51.100.7\"]\n";
        resolve(&crate::config::parse(&text, "a.toml").expect("right"), &machine())
    }

    #[test]
    fn several_paths_are_bound_to_their_interfaces() {
        let links = links(&["address = \"192.0.2.11\"\nmtu = 9000", "interface = \"wwan0\""]).expect("links");
        let short: Vec<_> = links.iter().map(|l| (l.address.to_string(), l.device.as_deref(), l.mtu)).collect();
        let expected =
            [("192.0.2.11".to_owned(), Some("eth0"), 1500), ("203.0.113.10".to_owned(), Some("wwan0"), 1420)];
        assert_eq!(short, expected);
    }

    #[test]
    fn the_one_path_of_a_host_goes_where_the_kernel_sends_it_unless_its_interface_is_named() {
        let device = |path| links(&[path]).expect("links").remove(0).device;
        assert_eq!(device("address = \"192.0.2.10\""), None);
        assert_eq!(device("address = \"192.0.2.10\"\ninterface = \"eth0\"").as_deref(), Some("eth0"));
    }

    #[test]
    fn what_is_not_of_this_machine_points_at_its_place() {
        // The first path's own key stands in line 6, the second's in line 11.
        for (paths, line, message, help) in [
            (&["address = \"192.0.2.99\""][..], 6, "does not have the address 192.0.2.99", "192.0.2.10"),
            (&["interface = \"eth9\""], 6, "no interface \"eth9\"", "lo, eth0, wwan0"),
            (&["interface = \"down0\""], 6, "no address that reaches a peer", "is it up"),
            (&["address = \"192.0.2.10\"\ninterface = \"wwan0\""], 6, "does not have the address", "203.0.113.10"),
            (&["address = \"192.0.2.10\"", "address = \"192.0.2.11\""], 11, "both on the interface eth0", "leave one"),
        ] {
            let error = links(paths).expect_err("wrong");
            assert_eq!(error.line(), line, "{error}");
            assert!(error.message().contains(message), "{error}");
            assert!(error.help().unwrap_or_default().contains(help), "{error}");
        }
    }
}

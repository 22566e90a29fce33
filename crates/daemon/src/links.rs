//! Which interface of this machine each configured path is, or where none is configured, which interfaces are paths. Asked
//! again whenever an interface or an address has changed.

use std::net::IpAddr;

use clock::Duration;
use text::Diagnostic;
use wire::{Hit, Lsi};

use crate::config::{Config, InterfacesConfig, PathConfig};
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
    /// The kernel's number of the interface that has the address.
    pub interface: u32,
    /// The largest IP packet, in bytes.
    pub mtu: u16,
    /// Out of this host, in bit/s.
    pub rate: Option<u64>,
    /// One way.
    pub delay: Duration,
    /// It carries data only where no other path works.
    pub backup: bool,
}

/// The paths that there are now.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Those that can be used.
    pub links: Vec<Link>,
    /// What keeps the others from that.
    pub missing: Vec<Diagnostic>,
}

/// Finds each path's interface and address. With several paths, each is bound to its interface, because the kernel would
/// route them all by their destination; the one path of a host goes where the kernel sends it, unless the configuration
/// names the interface. Of a path whose address or interface is not there, or that shares one, an error tells.
pub fn resolve(config: &Config, interfaces: &[Interface]) -> Resolved {
    if config.paths.is_empty() {
        return Resolved { links: automatic(config, interfaces), missing: Vec::new() };
    }
    let mut links: Vec<(Link, u32)> = Vec::new();
    let mut missing = Vec::new();
    for path in &config.paths {
        match configured(config, path, interfaces, &links) {
            Ok(link) => links.push(link),
            Err(error) => missing.push(error),
        }
    }
    Resolved { links: links.into_iter().map(|(link, _)| link).collect(), missing }
}

fn configured(
    config: &Config,
    path: &PathConfig,
    interfaces: &[Interface],
    links: &[(Link, u32)],
) -> Result<(Link, u32), Diagnostic> {
    let (interface, address) = find(config, path, interfaces)?;
    if let Some((other, _)) = links.iter().find(|(_, index)| *index == interface.index) {
        let message =
            format!("the paths \"{}\" and \"{}\" are both on the interface {}", other.name, path.name, interface.name);
        let help = "each path needs an access link of its own: leave one of them out".to_owned();
        return Err(path.place.error(message, Some(help)));
    }
    let carries = carries(interface);
    let link = Link {
        name: path.name.clone(),
        address,
        device: (path.interface.is_some() || config.paths.len() > 1).then(|| interface.name.clone()),
        interface: interface.index,
        mtu: path.mtu.map_or(carries, |mtu| mtu.min(carries)),
        rate: path.rate,
        delay: path.delay,
        backup: path.backup,
    };
    Ok((link, interface.index))
}

/// Each interface that leads anywhere, with an address of each family: a peer may have others than we were told.
fn automatic(config: &Config, interfaces: &[Interface]) -> Vec<Link> {
    let is_hit = |address: &IpAddr| matches!(address, IpAddr::V6(address) if Hit::from(*address).is_orchid());
    let is_lsi = |address: &IpAddr| matches!(address, IpAddr::V4(address) if config.lsi_range.has(Lsi::from(*address)));
    let mut links = Vec::new();
    for running in [true, false] {
        for interface in interfaces.iter().filter(|interface| interface.running == running) {
            // A Sinnet's own device is no access link of another, and a tunnel between identities leads through it.
            let own = interface.name == config.device || interface.addresses.iter().any(is_hit);
            let inside = interface.tunnel.iter().any(|end| is_hit(end) || is_lsi(end));
            if own
                || inside
                || interface.loopback
                || InterfacesConfig::lists(&config.interfaces.ignore, &interface.name)
            {
                continue;
            }
            let mut families = [true, false].into_iter().filter_map(|v4| {
                let of_family = |address: &&IpAddr| address.is_ipv4() == v4 && !is_link_local(**address);
                interface.global.iter().find(of_family)
            });
            let first = families.next();
            for (address, suffix) in first.into_iter().map(|a| (a, "")).chain(families.map(|a| (a, "/6"))) {
                links.push(Link {
                    name: format!("{}{suffix}", interface.name),
                    address: *address,
                    device: Some(interface.name.clone()),
                    interface: interface.index,
                    mtu: config.interfaces.mtu.map_or(carries(interface), |mtu| mtu.min(carries(interface))),
                    rate: None,
                    delay: crate::config::UNKNOWN_DELAY,
                    backup: InterfacesConfig::lists(&config.interfaces.backup, &interface.name),
                });
            }
        }
    }
    links
}

fn carries(interface: &Interface) -> u16 {
    u16::try_from(interface.mtu).unwrap_or(u16::MAX)
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
                path.place.error(format!("this machine does not have the address {shown}"), Some(help))
            });
    };
    let interface = interfaces.iter().find(|interface| interface.name == *name).ok_or_else(|| {
        let help = format!("there are {}", listed(interfaces.iter().map(|interface| &interface.name)));
        path.place.error(format!("this machine has no interface \"{name}\""), Some(help))
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
        path.place.error(message, Some(help))
    })
}

/// An address that can be told to others and is of the family of some peer's locator.
fn usable(config: &Config, address: IpAddr) -> bool {
    let mut locators = config.peers.iter().flat_map(|peer| &peer.locators).peekable();
    let nobody = locators.peek().is_none();
    let fits = nobody || locators.any(|locator| locator.address.is_ipv4() == address.is_ipv4());
    fits && !is_link_local(address)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Interface> {
        let interface = |index, name: &str, mtu, addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().expect("an address")).collect();
            let global = |a: &&IpAddr| !["127.", "169.", "fe80"].iter().any(|local| a.to_string().starts_with(local));
            Interface {
                index,
                name: name.to_owned(),
                mtu,
                up: true,
                loopback: name == "lo",
                running: name != "idle0",
                global: addresses.iter().filter(global).copied().collect(),
                addresses,
                tunnel: Vec::new(),
                reverse_path_filter: 0,
            }
        };
        vec![
            interface(1, "lo", 65536, &["127.0.0.1"]),
            interface(2, "eth0", 1500, &["fe80::1", "2001:db8::1", "192.0.2.10", "192.0.2.11"]),
            interface(3, "wwan0", 1420, &["169.254.1.1", "203.0.113.10"]),
            interface(4, "down0", 1500, &[]),
            interface(5, "idle0", 1500, &["192.0.2.77"]),
            interface(6, "sinnet0", 1400, &["198.18.0.1", "2001:22::1"]),
            interface(7, "sinnet7", 1400, &["198.18.0.7", "2001:22::7"]),
            interface(8, "docker0", 1500, &["172.17.0.1"]),
        ]
    }

    fn links(paths: &[&str]) -> Result<Vec<Link>, Diagnostic> {
        let mut text = "identity = \"a.pem\"\n".to_owned();
        for (number, path) in paths.iter().enumerate() {
            text += &format!("[[path]]\nname = \"p{number}\"\nrate = \"8Mbit/s\"\ndelay = \"3ms\"\n{path}\n");
        }
        text += "[[peer]]\nname = \"b\"\nhit = \"2001:22::b\"\nlocators = [\"198.51.100.7\"]\n";
        let mut resolved = resolve(&crate::config::parse(&text, "a.toml").expect("right"), &machine());
        if resolved.missing.is_empty() { Ok(resolved.links) } else { Err(resolved.missing.remove(0)) }
    }

    fn found(text: &str) -> Vec<(String, String, bool)> {
        let text = format!("identity = \"a.pem\"\n{text}");
        let resolved = resolve(&crate::config::parse(&text, "a.toml").expect("right"), &machine());
        assert!(resolved.missing.is_empty());
        let short = |link: Link| {
            assert!(link.device.is_some_and(|device| link.name.starts_with(&device)));
            (link.name, link.address.to_string(), link.backup)
        };
        resolved.links.into_iter().map(short).collect()
    }

    #[test]
    fn where_no_path_is_configured_every_interface_that_leads_anywhere_is_one() {
        let peer = |locators| format!("[[peer]]\nname = \"b\"\nhit = \"2001:22::b\"\nlocators = [{locators}]\n");
        let own = |list: &[(&str, &str, bool)]| -> Vec<(String, String, bool)> {
            list.iter().map(|(name, address, backup)| ((*name).to_owned(), (*address).to_owned(), *backup)).collect()
        };
        let text = "[interfaces]\nignore = [\"dock*\"]\nbackup = [\"wwan0\"]\n".to_owned();
        // What has no carrier comes last. A host listens in both families, whatever it was told of its peers: who was told
        // an IPv6 address of this host finds it there.
        let expected = [
            ("eth0", "192.0.2.10", false),
            ("eth0/6", "2001:db8::1", false),
            ("wwan0", "203.0.113.10", true),
            ("idle0", "192.0.2.77", false),
        ];
        for locators in [None, Some("\"198.51.100.7\""), Some("\"2001:db8::7\"")] {
            let peer = locators.map(peer).unwrap_or_default();
            assert_eq!(found(&(text.clone() + &peer)), own(&expected), "{locators:?}");
        }
        // Containers' bridges are none unless the list says so.
        let docker = |text| found(text).iter().any(|(name, ..)| name == "docker0");
        assert!(!docker("") && !docker("[interfaces]\nbackup = [\"wwan0\"]\n"));
        assert!(docker("[interfaces]\nignore = []\n"));
    }

    #[test]
    fn tunnels_between_identities_are_no_access_links() {
        let config = crate::config::parse("identity = \"a.pem\"\n", "a.toml").expect("right");
        let mut machine = machine();
        let tunnel = |ends: [&str; 2]| ends.map(|end| end.parse().expect("an address")).to_vec();
        let names = |machine: &[Interface]| {
            resolve(&config, machine).links.into_iter().map(|link| link.name).collect::<Vec<_>>()
        };
        machine[2].tunnel = tunnel(["192.0.2.10", "198.51.100.7"]);
        assert!(names(&machine).contains(&"wwan0".to_owned()), "a tunnel elsewhere is one");
        for ends in [["2001:22::1", "2001:22::7"], ["198.18.0.1", "198.19.0.7"]] {
            machine[2].tunnel = tunnel(ends);
            assert!(!names(&machine).contains(&"wwan0".to_owned()), "{ends:?}");
        }
    }

    #[test]
    fn the_largest_packet_of_all_interfaces_is_configured_at_once() {
        let text = "identity = \"a.pem\"\n[interfaces]\nmtu = 1430\n";
        let links = resolve(&crate::config::parse(text, "a.toml").expect("right"), &machine()).links;
        let mtus: Vec<_> = links.iter().map(|link| (&*link.name, link.mtu)).collect();
        assert_eq!(mtus, [("eth0", 1430), ("eth0/6", 1430), ("wwan0", 1420), ("idle0", 1430)]);
    }

    #[test]
    fn a_path_that_is_not_there_yet_keeps_no_other_from_use() {
        let text = "identity = \"a.pem\"\n[[path]]\nname = \"x\"\ninterface = \"eth9\"\n[[path]]\nname = \"y\"\n\
                    address = \"203.0.113.10\"\nbackup = true\n";
        let resolved = resolve(&crate::config::parse(text, "a.toml").expect("right"), &machine());
        assert_eq!(resolved.links.iter().map(|link| (&*link.name, link.backup)).collect::<Vec<_>>(), [("y", true)]);
        assert_eq!(resolved.missing.iter().map(Diagnostic::line).collect::<Vec<_>>(), [4]);
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

//! The sections of the file, and what must hold between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clock::Duration;
use congestion::Host;
use hip::dh::Group;
use hip::esp::EspSuite;
use hip::{HostConfig, UDP_PORT};
use scheduler::{Needs, Scheduler};
use text::reader::{self, At, Reader, at};
use text::toml::{Node, Place, Value};
use text::{Diagnostic, alternatives, did_you_mean};
use wedge::WedgeConfig;
use wire::{Hit, Lsi};

use super::units::{delay, lifetime, rate};
use super::{
    Config, Congestion, Encapsulation, InterfacesConfig, LocatorConfig, LsiRange, PathConfig, PeerConfig,
    RendezvousConfig, RouteConfig, accept, identities, keys, policies,
};
use crate::senders::Senders;

/// One way, where it is not configured: of a peer that gives no feedback it is all that is known before heartbeats.
pub(crate) const UNKNOWN_DELAY: Duration = Duration::from_millis(25);
/// Where identities that were found out are kept, beside the configuration.
pub(super) const KNOWN_HITS: &str = "known-hits";
// Examples, as messages tell them.
const IDENTITY: &str = "identity = \"a.pem\", a file that `sinnet keygen --out a.pem` makes";
const NAME: &str = "name = \"b.hip\"";
const ADDRESS: &str = "\"192.0.2.10\" or \"2001:db8::7\"";
const LOCATOR: &str =
    "\"192.0.2.10\" or \"2001:db8::7\", or with a UDP port \"192.0.2.10:4500\", \"[2001:db8::7]:4500\"";
const LSI: &str = "lsi = \"198.18.0.2\", an IPv4 address in `lsi_range`; HIPL's are in lsi_range = \"1.0.0.0/8\"";
const LSI_RANGE: &str = "lsi_range = \"198.18.0.0/15\", /8 to /24: addresses that nothing else here has";
const HIT: &str =
    "hit = \"2001:20::1\", an IPv6 address in 2001:20::/28, as `sinnet keygen` printed it on the peer's machine";

const PUBLIC: &str = "identity = \"b.pub\", a public key in PEM";

pub(super) const SUITES: [(&str, EspSuite); 5] = [
    ("aes-128-gcm-16", EspSuite::Aes128Gcm16),
    ("aes-128-cbc-hmac-sha-256", EspSuite::Aes128CbcHmacSha256),
    ("aes-256-cbc-hmac-sha-256", EspSuite::Aes256CbcHmacSha256),
    ("aes-128-ccm-16", EspSuite::Aes128Ccm16),
    ("null-hmac-sha-256", EspSuite::NullHmacSha256),
];
pub(super) const GROUPS: [(&str, Group); 6] = [
    ("p-384", Group::P384),
    ("p-256", Group::P256),
    ("p-521", Group::P521),
    ("modp-3072", Group::Modp3072),
    ("modp-2048", Group::Modp2048),
    ("modp-1536", Group::Modp1536),
];
pub(super) const ENCAPSULATIONS: [(&str, Encapsulation); 3] =
    [("auto", Encapsulation::Auto), ("udp", Encapsulation::Udp), ("native", Encapsulation::Native)];

/// A table that has no other keys than the table of keys says.
pub(super) fn table<'a>(what: &'static str, node: &'a Node) -> Result<Reader<'a>, Diagnostic> {
    Reader::strict(what, node, keys::of(what))
}

pub(super) fn read(root: &Node) -> Result<Config, Diagnostic> {
    let file = table("the file", root)?;
    let text = |key, example| file.read(key, |node| reader::text(node, example));
    let identity = file.need("identity", IDENTITY, at(|node| reader::text(node, IDENTITY).map(PathBuf::from)))?;
    let name = file.read("name", at(dns_name))?;
    let lsi_range = file.read("lsi_range", |node| reader::parsed(node, LSI_RANGE, str::parse))?;
    let lsi_range = lsi_range.unwrap_or(LsiRange::DEFAULT);
    let lsi = file.read("lsi", at(|node| lsi(node, lsi_range)))?;
    let control = text("control", "control = \"/run/sinnet/a.sock\"")?.map(PathBuf::from);
    let control_group = text("control_group", "control_group = \"sinnet\"")?.map(str::to_owned);
    let control_everyone = file.read("control_everyone", reader::boolean)?.unwrap_or(false);
    let user = text("user", "user = \"sinnet\"")?.map(str::to_owned);
    let metrics = metrics(&file)?;
    let example = format!("congestion = \"lia\"; there are {}", alternatives(congestions()));
    let congestion = file.read("congestion", at(|node| reader::parsed(node, &example, congestion)))?;
    let paths = paths(&file)?;
    let interfaces = interfaces(&file, &paths)?;
    if let Some(At { value: Congestion::ConfiguredRates, place }) = &congestion {
        let wrong = match paths.iter().find(|path| path.rate.is_none()) {
            Some(path) => Some(format!("the path {:?} has no rate to be configured by", path.name)),
            None => paths.is_empty().then(|| "there is no [[path]] that could have a rate".to_owned()),
        };
        if let Some(wrong) = wrong {
            let help = "give every [[path]] a rate, or leave `congestion` out".to_owned();
            return Err(place.error(wrong, Some(help)));
        }
    }
    let congestion = congestion
        .map_or_else(|| Congestion::Measured(WedgeConfig::default_congestion()), |congestion| congestion.value);
    let scheduler = scheduler(&file, &congestion)?;
    let Tun { device, forward, firewall } = tun(&file)?;
    let Esp { suites: esp_suites, encapsulation, port, rekey_packets, rekey_interval } = esp(&file)?;
    let (groups, puzzle_difficulty, encrypt_identity) = hip(&file)?;
    let dns = super::dns::read(file.read("dns", |node| table("[dns]", node))?.as_ref(), lsi_range)?;
    let mut seen = Seen::default();
    if let Some(name) = &name {
        seen.name(name)?;
    }
    if let Some(lsi) = &lsi {
        seen.lsi(lsi)?;
    }
    let others = identities::read(&file, lsi_range, &mut seen)?;
    let first = name.as_ref().map(|name| &*name.value);
    let mut peers = Vec::new();
    for node in file.tables("peer")? {
        let (mut peer, speaker) = peer(node, &paths, lsi_range, encapsulation, &mut seen)?;
        if let Some(node) = speaker {
            peer.speaks_as = identities::speaker(node, first, &others)?;
            if let Some(other) = peer.speaks_as.checked_sub(1).and_then(|at| others.get(at)) {
                let is_placed = !peer.locators.is_empty() || !peer.via.is_empty();
                let how = (is_placed, peer.opportunistic);
                identities::check_speaker((&node.place, other), &peer.name, how)?;
            }
        }
        peers.push(peer);
    }
    let rendezvous = rendezvous(&file, &peers, encapsulation)?;
    let policies = policies::read(&file, &peers, &paths, firewall)?;
    let accept = accept::read(&file)?;
    let known_hits = text("known_hits", "known_hits = \"known-hits\", a file")?.map(PathBuf::from);
    let (peers, unknown) = peers.into_iter().partition(|peer| peer.hit != Hit::NULL);
    Ok(Config {
        name: name.map(|name| name.value),
        identities: others,
        lsi_range,
        lsi: lsi.map(|lsi| lsi.value),
        control,
        control_group,
        control_everyone,
        user,
        metrics,
        congestion,
        scheduler,
        device,
        forward,
        firewall,
        paths,
        interfaces,
        peers,
        unknown,
        known_hits: known_hits.unwrap_or_else(|| PathBuf::from(KNOWN_HITS)),
        rendezvous,
        accept,
        guest_pool: Vec::new(),
        policies,
        senders: Senders::default(),
        esp_suites,
        encapsulation,
        port,
        rekey_packets,
        rekey_interval,
        groups,
        puzzle_difficulty,
        encrypt_identity,
        dns,
        identity,
    })
}

fn metrics(file: &Reader<'_>) -> Result<Option<SocketAddr>, Diagnostic> {
    let parse = |text: &str| text.parse::<SocketAddr>().map_err(|_| format!("\"{text}\" is no address with a port"));
    let example = "metrics = \"127.0.0.1:9480\", an address of this machine and a port";
    let exposed = file.read("metrics_exposed", reader::boolean)?.unwrap_or(false);
    file.read("metrics", |node| match reader::parsed(node, example, parse)? {
        address if exposed || address.ip().is_loopback() => Ok(address),
        address => {
            let message = format!("who reaches {} would read with whom this host talks", address.ip());
            let help = "use 127.0.0.1, or say that it is meant: metrics_exposed = true".to_owned();
            Err(node.place.error(message, Some(help)))
        }
    })
}

/// What may stand for `congestion`.
pub(super) fn congestions() -> Vec<&'static str> {
    Host::Tunnel.rules().into_iter().chain(["configured-rates"]).collect()
}

fn congestion(text: &str) -> Result<Congestion, String> {
    match text {
        "configured-rates" => Ok(Congestion::ConfiguredRates),
        rule => Host::Tunnel.rule(rule).map(Congestion::Measured).map_err(|unfit| unfit.to_string()),
    }
}

fn scheduler(file: &Reader<'_>, congestion: &Congestion) -> Result<Scheduler, Diagnostic> {
    let has = match congestion {
        Congestion::Measured(_) => Needs::ALL,
        Congestion::ConfiguredRates => Needs::OF_CONFIGURED_RATES,
    };
    let (known, whose) = (alternatives(Scheduler::fitting_names(has)), has != Needs::ALL);
    let whose = if whose { "with congestion = \"configured-rates\" " } else { "" };
    let example = format!("scheduler = \"lowest-rtt\"; {whose}there are {known}");
    let fitting = |name: &str| Scheduler::fitting(name, has).map_err(|unfit| unfit.to_string());
    Ok(file.read("scheduler", |node| reader::parsed(node, &example, fitting))?.unwrap_or_default())
}

fn paths(file: &Reader<'_>) -> Result<Vec<PathConfig>, Diagnostic> {
    let mut paths: Vec<PathConfig> = Vec::new();
    for node in file.tables("path")? {
        let section = table("[[path]]", node)?;
        let name = section.need("name", "name = \"dsl\"", at(|node| reader::text(node, "\"dsl\"")))?;
        if paths.iter().any(|path| path.name == name.value) {
            let message = format!("two paths are called \"{}\"", name.value);
            return Err(name.place.error(message, Some("give each a name of its own".to_owned())));
        }
        let address = section.read("address", at(|node| reader::parsed(node, ADDRESS, address)))?;
        let interface = section.read("interface", at(|node| reader::text(node, "\"eth0\"")))?;
        // Two paths on one link would share its rate and its fate while the scheduler counts on two of each.
        for other in &paths {
            let help = || Some("each path needs an access link of its own".to_owned());
            if let Some(address) = address.as_ref().filter(|address| other.address == Some(address.value)) {
                let message = format!("the paths \"{}\" and \"{}\" have one address", other.name, name.value);
                return Err(address.place.error(message, help()));
            }
            if let Some(interface) = interface.as_ref().filter(|own| other.interface.as_deref() == Some(own.value)) {
                let message = format!("the paths \"{}\" and \"{}\" are on one interface", other.name, name.value);
                return Err(interface.place.error(message, help()));
            }
        }
        let place = match (&address, &interface) {
            (Some(At { place, .. }), _) | (None, Some(At { place, .. })) => place.clone(),
            (None, None) => {
                let example = "address = \"192.0.2.10\" or interface = \"eth0\", which says which link it is";
                section.required("address", example)?.node.place.clone()
            }
        };
        paths.push(PathConfig {
            name: name.value.to_owned(),
            address: address.map(|address| address.value),
            interface: interface.map(|interface| interface.value.to_owned()),
            rate: section.read("rate", rate)?,
            delay: section.read("delay", delay)?.unwrap_or(UNKNOWN_DELAY),
            mtu: section.read("mtu", mtu)?,
            backup: section.read("backup", reader::boolean)?.unwrap_or(false),
            place,
        });
    }
    Ok(paths)
}

fn mtu(node: &Node) -> Result<u16, Diagnostic> {
    let help = "the largest IP packet of the link in bytes, from 576 to 65535, as in mtu = 1500";
    reader::whole(node, 576, u16::MAX).map_err(|error| error.with_help(help))
}

fn interfaces(file: &Reader<'_>, paths: &[PathConfig]) -> Result<InterfacesConfig, Diagnostic> {
    let Some(section) = file.read("interfaces", |node| table("[interfaces]", node))? else {
        return Ok(InterfacesConfig::default());
    };
    if !paths.is_empty() {
        let help = "leave out [interfaces], or every [[path]]".to_owned();
        return Err(section.place().error("[interfaces] is for files without [[path]]", Some(help)));
    }
    let names = |node: &Node| {
        let example = "[\"wwan0\", \"docker*\"], names of interfaces";
        let parse = |text: &str| match text {
            "" => Err("this is not a name".to_owned()),
            name => Ok(name.to_owned()),
        };
        reader::list(node, example)?.iter().map(|name| reader::parsed(name, example, parse)).collect()
    };
    let usual = InterfacesConfig::default();
    Ok(InterfacesConfig {
        ignore: section.read("ignore", names)?.unwrap_or(usual.ignore),
        backup: section.read("backup", names)?.unwrap_or(usual.backup),
        mtu: section.read("mtu", mtu)?,
    })
}

struct Tun {
    device: String,
    forward: bool,
    firewall: bool,
}

fn tun(file: &Reader<'_>) -> Result<Tun, Diagnostic> {
    let default = || "sinnet0".to_owned();
    let Some(tun) = file.read("tun", |node| table("[tun]", node))? else {
        return Ok(Tun { device: default(), forward: false, firewall: true });
    };
    let parse = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 15 || !name.chars().all(allowed) || name.starts_with('.') {
            return Err(format!("\"{name}\" cannot be the name of an interface"));
        }
        Ok(name.to_owned())
    };
    let example = "name = \"sinnet0\", at most 15 letters and digits";
    Ok(Tun {
        device: tun.read("name", |node| reader::parsed(node, example, parse))?.unwrap_or_else(default),
        forward: tun.read("forward", reader::boolean)?.unwrap_or(false),
        firewall: tun.read("firewall", reader::boolean)?.unwrap_or(true),
    })
}

struct Esp {
    suites: Vec<EspSuite>,
    encapsulation: Encapsulation,
    port: u16,
    rekey_packets: u32,
    rekey_interval: Duration,
}

fn esp(file: &Reader<'_>) -> Result<Esp, Diagnostic> {
    let HostConfig { esp_suites, rekey_interval, .. } = HostConfig::default();
    let Some(esp) = file.read("esp", |node| table("[esp]", node))? else {
        return Ok(Esp {
            suites: esp_suites,
            encapsulation: Encapsulation::Auto,
            port: UDP_PORT,
            rekey_packets: WedgeConfig::RENEW_AT,
            rekey_interval,
        });
    };
    let suites = esp.read("suites", |node| choices(node, &SUITES))?.unwrap_or(esp_suites);
    let encapsulation = esp.read("encapsulation", |node| reader::word(node, &ENCAPSULATIONS))?;
    let encapsulation = encapsulation.unwrap_or(Encapsulation::Auto);
    let port = |node: &Node| {
        let help =
            "a UDP port from 1 to 65535, as in port = 4500; peers that know it write locators = [\"192.0.2.10:4500\"]";
        match encapsulation {
            Encapsulation::Auto | Encapsulation::Udp => {
                reader::whole(node, 1, u16::MAX).map_err(|error| error.with_help(help))
            }
            Encapsulation::Native => Err(node.place.error("the native protocols have no ports", Some(help.to_owned()))),
        }
    };
    let rekey_packets = |node: &Node| {
        let help = "a number of packets from 10000 to 1073741824, the default";
        reader::whole(node, 10_000, WedgeConfig::RENEW_AT).map_err(|error| error.with_help(help))
    };
    Ok(Esp {
        suites,
        encapsulation,
        port: esp.read("port", port)?.unwrap_or(UDP_PORT),
        rekey_packets: esp.read("rekey_packets", rekey_packets)?.unwrap_or(WedgeConfig::RENEW_AT),
        rekey_interval: esp.read("rekey", lifetime)?.unwrap_or(rekey_interval),
    })
}

fn hip(file: &Reader<'_>) -> Result<(Vec<Group>, u8, bool), Diagnostic> {
    let HostConfig { groups, puzzle_difficulty, .. } = HostConfig::default();
    let Some(hip) = file.read("hip", |node| table("[hip]", node))? else {
        return Ok((groups, puzzle_difficulty, false));
    };
    let groups = hip.read("groups", |node| choices(node, &GROUPS))?.unwrap_or(groups);
    let puzzle = |node: &Node| {
        let help = "a number of bits from 0 (no work for the peer) to 22 (seconds); each bit doubles it";
        reader::whole(node, 0, HostConfig::MAX_DIFFICULTY).map_err(|error| error.with_help(help))
    };
    let encrypt_identity = hip.read("encrypt_identity", reader::boolean)?.unwrap_or(false);
    Ok((groups, hip.read("puzzle", puzzle)?.unwrap_or(puzzle_difficulty), encrypt_identity))
}

/// Who may be a client of this host's rendezvous service.
fn rendezvous(
    file: &Reader<'_>,
    peers: &[PeerConfig],
    encapsulation: Encapsulation,
) -> Result<Option<RendezvousConfig>, Diagnostic> {
    let Some(section) = file.read("rendezvous", |node| table("[rendezvous]", node))? else { return Ok(None) };
    let clients = section.read("clients", |node| {
        let example = "clients = [\"a.hip\"], names of peers";
        let client = |node: &Node| {
            let name = reader::text(node, example)?;
            match peers.iter().find(|peer| peer.name.eq_ignore_ascii_case(name)) {
                Some(peer) if peer.speaks_as != 0 => {
                    let message =
                        format!("\"{name}\" speaks with another identity than that of this server, the first");
                    Err(node.place.error(message, Some("leave it out, or its `as`".to_owned())))
                }
                Some(peer) => Ok(peer.name.clone()),
                None => {
                    let help = did_you_mean(name, peers.iter().map(|peer| peer.name.as_str()));
                    let help = help.unwrap_or_else(|| "a client is one of the [[peer]]".to_owned());
                    Err(node.place.error(format!("there is no peer \"{name}\""), Some(help)))
                }
            }
        };
        reader::list(node, example)?.iter().map(client).collect::<Result<Vec<_>, _>>()
    })?;
    let most = |node: &Node| {
        let help = "a number of registrations from 1 to 10000";
        reader::whole(node, 1, 10_000).map_err(|error| error.with_help(help))
    };
    let most = section.read("most", most)?.unwrap_or(RendezvousConfig::default().most);
    let relay = section.read("relay", at(reader::boolean))?.filter(|relay| relay.value);
    if let Some(At { place, .. }) = relay.as_ref().filter(|_| encapsulation == Encapsulation::Native) {
        let help = "leave out `encapsulation = \"native\"`: what passes NATs is inside UDP".to_owned();
        return Err(place.error("a relay is of use inside UDP only".to_owned(), Some(help)));
    }
    let data = section.read("data", |node| {
        let help = "a rate from \"10 kbit/s\" to \"1 Gbit/s\", as in data = \"20 Mbit/s\"";
        let data = rate(node)?;
        let fits = (10_000..=1_000_000_000).contains(&data);
        if fits {
            Ok(data)
        } else {
            Err(node.place.error("a relay does not carry that".to_owned(), Some(help.to_owned())))
        }
    })?;
    Ok(Some(RendezvousConfig { clients, most, relay: relay.is_some(), data: data.unwrap_or(0) }))
}

/// What may be there once only, among this host and its peers.
#[derive(Default)]
pub(super) struct Seen {
    names: BTreeSet<String>,
    hits: BTreeMap<Hit, String>,
    lsis: BTreeSet<Lsi>,
}

impl Seen {
    pub(super) fn name(&mut self, name: &At<String>) -> Result<(), Diagnostic> {
        if self.names.insert(name.value.to_ascii_lowercase()) {
            return Ok(());
        }
        let message = format!("two hosts are called \"{}\"", name.value);
        Err(name.place.error(message, Some("give each a name of its own".to_owned())))
    }

    fn hit(&mut self, hit: &At<Hit>, name: &str) -> Result<(), Diagnostic> {
        let Some(other) = self.hits.insert(hit.value, name.to_owned()) else { return Ok(()) };
        let message = format!("the peers \"{other}\" and \"{name}\" have one HIT");
        let help = "a HIT is one host: put all its locators into one [[peer]]".to_owned();
        Err(hit.place.error(message, Some(help)))
    }

    pub(super) fn lsi(&mut self, lsi: &At<Lsi>) -> Result<(), Diagnostic> {
        if self.lsis.insert(lsi.value) {
            return Ok(());
        }
        let message = format!("two hosts have the LSI {}", lsi.value.address());
        Err(lsi.place.error(message, Some("leave `lsi` out, and each gets one of its own".to_owned())))
    }
}

/// A peer, and what is said of the identity that speaks with it.
fn peer<'a>(
    node: &'a Node,
    paths: &[PathConfig],
    lsi_range: LsiRange,
    encapsulation: Encapsulation,
    seen: &mut Seen,
) -> Result<(PeerConfig, Option<&'a Node>), Diagnostic> {
    let section = table("[[peer]]", node)?;
    let name = section.need("name", NAME, at(dns_name))?;
    seen.name(&name)?;
    let opportunistic = section.read("opportunistic", at(reader::boolean))?;
    let file = section.read("identity", at(|node| reader::text(node, PUBLIC).map(PathBuf::from)))?;
    let opportunistic = opportunistic.filter(|opportunistic| opportunistic.value);
    let hit = match (&opportunistic, &file) {
        (None, None) => section.need("hit", HIT, at(hit))?,
        (None, Some(At { place, .. })) if section.read("hit", at(hit))?.is_some() => {
            let help = "leave `identity` out, or `hit`, which follows from it".to_owned();
            return Err(place.error(format!("the HIT of \"{}\" is there already", name.value), Some(help)));
        }
        (Some(At { place, .. }), _) if file.is_some() || section.read("hit", at(hit))?.is_some() => {
            let help = "leave `opportunistic` out: whose HIT is known is asked by it".to_owned();
            return Err(place.error(format!("the HIT of \"{}\" is there already", name.value), Some(help)));
        }
        (Some(At { place, .. }), _) | (None, Some(At { place, .. })) => At { value: Hit::NULL, place: place.clone() },
    };
    if hit.value != Hit::NULL {
        seen.hit(&hit, &name.value)?;
    }
    let lsi = section.read("lsi", at(|node| lsi(node, lsi_range)))?;
    if let Some(lsi) = &lsi {
        seen.lsi(lsi)?;
    }
    let list =
        section.read("locators", at(|node| reader::list(node, "locators = [\"198.51.100.7\", \"203.0.113.7\"]")))?;
    if let Some(list) = list.as_ref().filter(|list| list.value.is_empty()) {
        let help =
            "for example locators = [\"198.51.100.7\"]; without the key only the peer can begin, from wherever it is";
        return Err(list.place.error(format!("the peer \"{}\" has no address", name.value), Some(help.to_owned())));
    }
    let mut locators: Vec<LocatorConfig> = Vec::new();
    for node in list.into_iter().flat_map(|list| list.value) {
        let locator = locator(node, lsi_range, encapsulation)?;
        if locators.iter().any(|other| other.address == locator.address) {
            let message = format!("the peer \"{}\" has the address {} twice", name.value, locator.address);
            return Err(node.place.error(message, Some("name each address once".to_owned())));
        }
        reachable(&node.place, locator.address, paths)?;
        locators.push(locator);
    }
    let register = section.read("register", at(reader::boolean))?.filter(|register| register.value);
    let needs = |place: &Place, why: &str| {
        let help = "give it `locators`, its addresses".to_owned();
        Err(place.error(format!("\"{}\" has no address where it could be {why}", name.value), Some(help)))
    };
    match (&register, hit.value == Hit::NULL) {
        (Some(At { place, .. }), _) if locators.is_empty() => return needs(place, "asked to be our rendezvous server"),
        (_, true) if locators.is_empty() && file.is_none() => return needs(&hit.place, "asked who it is"),
        _ => {}
    }
    let via = section.read("via", |node| {
        let example = "via = [\"198.51.100.9\"], addresses of rendezvous servers";
        let server = |node: &Node| {
            let (address, port) =
                reader::parsed(node, example, |text| locator_address(text, lsi_range, encapsulation))?;
            reachable(&node.place, address, paths)?;
            Ok(LocatorConfig { address, port, rate: None, delay: None })
        };
        reader::list(node, example)?.iter().map(server).collect::<Result<Vec<_>, _>>()
    })?;
    let routes = section.read("routes", |node| {
        let list = reader::list(node, "routes = [{ from = \"dsl\", to = \"198.51.100.7\" }]")?;
        list.iter().map(|node| route(node, paths, &locators)).collect::<Result<Vec<_>, _>>()
    })?;
    let speaker = section.read("as", Ok)?;
    let peer = PeerConfig {
        name: name.value,
        hit: hit.value,
        lsi: lsi.map(|lsi| lsi.value),
        locators,
        routes: routes.unwrap_or_default(),
        via: via.unwrap_or_default(),
        register: register.is_some(),
        identity: file.map(|file| file.value),
        opportunistic: opportunistic.is_some(),
        speaks_as: 0,
        name_place: name.place,
        hit_place: hit.place,
    };
    Ok((peer, speaker))
}

/// An address that no path can reach by its family is a mistake. A path known only by its interface may reach any, and so
/// may paths that are found.
fn reachable(place: &Place, to: IpAddr, paths: &[PathConfig]) -> Result<(), Diagnostic> {
    if paths.is_empty() || paths.iter().any(|path| path.address.is_none_or(|from| from.is_ipv4() == to.is_ipv4())) {
        return Ok(());
    }
    let family = if to.is_ipv4() { "IPv4" } else { "IPv6" };
    let message = format!("no [[path]] of this host has an {family} address");
    Err(place.error(message, Some(format!("{to} cannot be reached without one"))))
}

fn locator(node: &Node, lsi_range: LsiRange, encapsulation: Encapsulation) -> Result<LocatorConfig, Diagnostic> {
    let read = |node: &Node| reader::parsed(node, LOCATOR, |text| locator_address(text, lsi_range, encapsulation));
    if matches!(node.value, Value::String(_)) {
        let (address, port) = read(node)?;
        return Ok(LocatorConfig { address, port, rate: None, delay: None });
    }
    let section = table("a locator", node)?;
    let (address, port) = section.need("address", "address = \"192.0.2.10\"", read)?;
    Ok(LocatorConfig { address, port, rate: section.read("rate", rate)?, delay: section.read("delay", delay)? })
}

fn route(node: &Node, paths: &[PathConfig], locators: &[LocatorConfig]) -> Result<RouteConfig, Diagnostic> {
    let section = table("a route", node)?;
    let from = section.need("from", "from = \"dsl\", the name of a [[path]]", |node| {
        let name = reader::text(node, "\"dsl\"")?;
        let names = || paths.iter().map(|path| path.name.as_str());
        names().position(|path| path == name).ok_or_else(|| {
            let known = || format!("the paths are {}", names().collect::<Vec<_>>().join(", "));
            let help = did_you_mean(name, names()).unwrap_or_else(known);
            node.place.error(format!("there is no path \"{name}\""), Some(help))
        })
    })?;
    let to = section.need("to", "to = \"198.51.100.7\"", at(|node| reader::parsed(node, ADDRESS, address)))?;
    if !locators.iter().any(|locator| locator.address == to.value) {
        let help = "a route ends at one of the peer's `locators`".to_owned();
        return Err(to.place.error(format!("{} is no locator of this peer", to.value), Some(help)));
    }
    let own = paths.get(from).and_then(|path| path.address);
    if let Some(own) = own.filter(|own| own.is_ipv4() != to.value.is_ipv4()) {
        let message = format!("{own} and {} are of different families", to.value);
        let help = "both ends of a route are IPv4, or both are IPv6".to_owned();
        return Err(section.place().error(message, Some(help)));
    }
    Ok(RouteConfig { from, to: to.value, rate: section.read("rate", rate)?, delay: section.read("delay", delay)? })
}

/// At least one of the known words, the best first.
fn choices<T: Copy + PartialEq>(node: &Node, known: &[(&'static str, T)]) -> Result<Vec<T>, Diagnostic> {
    let names = keys::names(known);
    let mut chosen = Vec::new();
    for item in reader::list(node, &format!("{names:?}"))? {
        let value = reader::word(item, known)?;
        if chosen.contains(&value) {
            let message = format!("{} is there twice", reader::shown(item));
            return Err(item.place.error(message, Some("name each once, the best first".to_owned())));
        }
        chosen.push(value);
    }
    if chosen.is_empty() {
        let help = format!("at least one of {}", names.join(", "));
        return Err(node.place.error("nothing is chosen here", Some(help)));
    }
    Ok(chosen)
}

/// Where a peer is: an address of the network, with a UDP port if there is one.
fn locator_address(text: &str, lsis: LsiRange, encapsulation: Encapsulation) -> Result<(IpAddr, Option<u16>), String> {
    let (address, port) = match text.parse::<SocketAddr>() {
        Ok(place) => (address(&place.ip().to_string())?, Some(place.port())),
        Err(_) => (address(text)?, None),
    };
    match port {
        Some(0) => return Err(format!("\"{text}\" has no port that packets could go to")),
        Some(port) if encapsulation == Encapsulation::Native => {
            return Err(format!("the native protocols of [esp] have no ports, and so no {port}"));
        }
        _ => {}
    }
    let is_identity = match address {
        IpAddr::V4(address) => lsis.has(Lsi::from(address)),
        IpAddr::V6(address) => Hit::from(address).is_orchid(),
    };
    if is_identity {
        return Err(format!("{address} is an identity, which programs use, and no place in the network"));
    }
    if address.is_loopback() {
        return Err(format!("{address} is this host itself"));
    }
    Ok((address, port))
}

fn address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| format!("\"{text}\" is no IP address"))?;
    if address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Err(format!("{address} is no address of a host"));
    }
    Ok(address)
}

pub(super) fn lsi(node: &Node, range: LsiRange) -> Result<Lsi, Diagnostic> {
    reader::parsed(node, LSI, |text| {
        let lsi: Lsi = text.parse().map_err(|_| format!("\"{text}\" is no IPv4 address"))?;
        if range.has(lsi) { Ok(lsi) } else { Err(format!("{text} is no LSI: not a host in {range}")) }
    })
}

fn hit(node: &Node) -> Result<Hit, Diagnostic> {
    reader::parsed(node, HIT, |text| {
        let hit: Hit = text.parse().map_err(|_| format!("\"{text}\" is no HIT"))?;
        if hit.is_orchid() { Ok(hit) } else { Err(format!("\"{text}\" is an IPv6 address but no HIT")) }
    })
}

pub(super) fn dns_name(node: &Node) -> Result<String, Diagnostic> {
    reader::parsed(node, NAME, |text| crate::dns::parse_name(text).map(|_| text.trim_end_matches('.').to_owned()))
}

//! The sections of the file, and what must hold between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clock::Duration;
use congestion::Host;
use hip::dh::Group;
use hip::esp::EspSuite;
use hip::{HostConfig, UDP_PORT};
use scheduler::{Needs, Scheduler};
use text::Diagnostic;
use wedge::WedgeConfig;
use wire::{Hit, Lsi};

use super::reader::{At, Item, Section, Source};
use super::units::{parse_delay, parse_lifetime, parse_rate};
use super::{
    Config, Congestion, Encapsulation, InterfacesConfig, LocatorConfig, LsiRange, PathConfig, PeerConfig, RouteConfig,
};

const RATE: &str = "as in rate = \"8Mbit/s\"";
const DELAY: &str = "as in delay = \"30ms\", one way";
/// One way, where it is not configured: of a peer that gives no feedback it is all that is known before heartbeats.
pub(crate) const UNKNOWN_DELAY: Duration = Duration::from_millis(25);
const REKEY: &str = "after how long paths get new keys, from 10s to 168h, as in rekey = \"1h\"";
const ADDRESS: &str = "an IPv4 or IPv6 address, as in \"192.0.2.10\"";
const LOCATOR: &str =
    "an IPv4 or IPv6 address, as in \"192.0.2.10\", or with a UDP port \"192.0.2.10:4500\", \"[2001:db8::7]:4500\"";
const MTU: &str = "the largest IP packet of the link in bytes, from 1280 to 65535, as in mtu = 1500";
const LSI: &str =
    "an LSI is an IPv4 address in `lsi_range`, as in lsi = \"198.18.0.2\"; HIPL's are in lsi_range = \"1.0.0.0/8\"";
const LSI_RANGE: &str = "addresses that nothing else here has, /8 to /24, as in lsi_range = \"198.18.0.0/15\"";
const HIT: &str = "`sinnet keygen` printed it on the peer's machine: an IPv6 address in 2001:20::/28";

pub(super) const SUITES: [(&str, EspSuite); 3] = [
    ("aes-128-gcm-16", EspSuite::Aes128Gcm16),
    ("aes-128-cbc-hmac-sha-256", EspSuite::Aes128CbcHmacSha256),
    ("aes-256-cbc-hmac-sha-256", EspSuite::Aes256CbcHmacSha256),
];
pub(super) const GROUPS: [(&str, Group); 4] =
    [("p-384", Group::P384), ("p-256", Group::P256), ("modp-3072", Group::Modp3072), ("modp-1536", Group::Modp1536)];
pub(super) const ENCAPSULATIONS: [(&str, Encapsulation); 2] =
    [("udp", Encapsulation::Udp), ("native", Encapsulation::Native)];

pub(super) fn read(source: Source) -> Result<Config, Diagnostic> {
    let mut file = source.table()?;
    let identity =
        file.required_text("identity", "identity = \"a.pem\", a file that `sinnet keygen --out a.pem` makes")?;
    let identity = At { value: PathBuf::from(identity.value), span: identity.span };
    let name = file.parsed("name", "as in name = \"a.hip\"", dns_name)?;
    let lsi_range = file.parsed("lsi_range", LSI_RANGE, str::parse::<LsiRange>)?;
    let lsi_range = lsi_range.map_or(LsiRange::DEFAULT, |range| range.value);
    let lsi = file.parsed("lsi", LSI, |text| lsi(text, lsi_range))?;
    let control = file.text("control")?.map(|path| PathBuf::from(path.value));
    let control_group = file.text("control_group")?.map(|group| group.value);
    let control_everyone = file.flag("control_everyone")?.unwrap_or(false);
    let user = file.text("user")?.map(|user| user.value);
    let metrics = metrics(&mut file)?;
    let help = format!("as in congestion = \"lia\"; there are {}", text::alternatives(congestions()));
    let congestion = file.parsed("congestion", &help, congestion)?;
    let paths = paths(&mut file)?;
    let interfaces = interfaces(&mut file, &paths)?;
    if let Some(At { value: Congestion::ConfiguredRates, span }) = &congestion {
        let help = "give every [[path]] a rate, or leave `congestion` out";
        if paths.is_empty() {
            return Err(source.error(span, "there is no [[path]] that could have a rate", help));
        }
        if let Some(path) = paths.iter().find(|path| path.rate.is_none()) {
            let message = format!("the path {:?} has no rate to be configured by", path.name);
            return Err(source.error(span, message, help));
        }
    }
    let congestion = congestion
        .map_or_else(|| Congestion::Measured(WedgeConfig::default_congestion()), |congestion| congestion.value);
    let scheduler = scheduler(&mut file, &congestion)?;
    let Tun { device, forward, firewall } = tun(&mut file)?;
    let Esp { suites: esp_suites, encapsulation, port, rekey_packets, rekey_interval } = esp(&mut file)?;
    let (groups, puzzle_difficulty) = hip(&mut file)?;
    let dns = match file.section("dns", "[dns]")? {
        Some(mut dns) => dns.flag("enabled")?.unwrap_or(true),
        None => true,
    };
    let mut seen = Seen::default();
    if let Some(name) = &name {
        seen.name(&source, name)?;
    }
    if let Some(lsi) = &lsi {
        seen.lsi(&source, lsi)?;
    }
    let peers = file
        .sections("peer", "[[peer]]")?
        .into_iter()
        .map(|section| peer(section, &paths, lsi_range, encapsulation, &mut seen))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Config {
        name: name.map(|name| name.value),
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
        esp_suites,
        encapsulation,
        port,
        rekey_packets,
        rekey_interval,
        groups,
        puzzle_difficulty,
        dns,
        identity,
        source: source.clone(),
    })
}

fn metrics(file: &mut Section<'_>) -> Result<Option<SocketAddr>, Diagnostic> {
    let parse = |text: &str| text.parse::<SocketAddr>().map_err(|_| format!("\"{text}\" is no address with a port"));
    let help = "an address of this machine and a port, as in metrics = \"127.0.0.1:9480\"";
    let address = file.parsed("metrics", help, parse)?;
    let exposed = file.flag("metrics_exposed")?.unwrap_or(false);
    if let Some(At { value, span }) = address.as_ref().filter(|address| !exposed && !address.value.ip().is_loopback()) {
        let message = format!("who reaches {} would read with whom this host talks", value.ip());
        return Err(file.source().error(
            span,
            message,
            "use 127.0.0.1, or say that it is meant: metrics_exposed = true",
        ));
    }
    Ok(address.map(|address| address.value))
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

fn scheduler(file: &mut Section<'_>, congestion: &Congestion) -> Result<Scheduler, Diagnostic> {
    let has = match congestion {
        Congestion::Measured(_) => Needs::ALL,
        Congestion::ConfiguredRates => Needs::OF_CONFIGURED_RATES,
    };
    let (known, whose) = (text::alternatives(Scheduler::fitting_names(has)), has != Needs::ALL);
    let whose = if whose { "with congestion = \"configured-rates\" " } else { "" };
    let help = format!("as in scheduler = \"lowest-rtt\"; {whose}there are {known}");
    let fitting = |name: &str| Scheduler::fitting(name, has).map_err(|unfit| unfit.to_string());
    Ok(file.parsed("scheduler", &help, fitting)?.map(|scheduler| scheduler.value).unwrap_or_default())
}

fn paths(file: &mut Section<'_>) -> Result<Vec<PathConfig>, Diagnostic> {
    let sections = file.sections("path", "[[path]]")?;
    let mut paths: Vec<PathConfig> = Vec::new();
    for mut section in sections {
        let source = section.source();
        let name = section.required_text("name", "as in name = \"dsl\"")?;
        if let Some(other) = paths.iter().find(|path| path.name == name.value) {
            return Err(source.error(
                &name.span,
                format!("two paths are called \"{}\"", other.name),
                "give each a name of its own",
            ));
        }
        let address = section.parsed("address", ADDRESS, address)?;
        let interface = section.text("interface")?;
        let span = match (&address, &interface) {
            (Some(address), _) => address.span.clone(),
            (None, Some(interface)) => interface.span.clone(),
            (None, None) => {
                return Err(section
                    .missing("address", "address = \"192.0.2.10\" or interface = \"eth0\" says which link it is"));
            }
        };
        // Two paths on one link would share its rate and its fate while the scheduler counts on two of each.
        for other in &paths {
            let help = "each path needs an access link of its own";
            if let Some(address) = address.as_ref().filter(|address| other.address == Some(address.value)) {
                let message = format!("the paths \"{}\" and \"{}\" have one address", other.name, name.value);
                return Err(source.error(&address.span, message, help));
            }
            if let Some(interface) = interface.as_ref().filter(|own| other.interface.as_ref() == Some(&own.value)) {
                let message = format!("the paths \"{}\" and \"{}\" are on one interface", other.name, name.value);
                return Err(source.error(&interface.span, message, help));
            }
        }
        let rate = section.parsed("rate", RATE, parse_rate)?;
        let delay = section.parsed("delay", DELAY, parse_delay)?;
        let mtu = mtu(&mut section)?;
        let backup = section.flag("backup")?.unwrap_or(false);
        paths.push(PathConfig {
            name: name.value,
            address: address.map(|address| address.value),
            interface: interface.map(|interface| interface.value),
            rate: rate.map(|rate| rate.value),
            delay: delay.map_or(UNKNOWN_DELAY, |delay| delay.value),
            mtu,
            backup,
            span,
        });
    }
    Ok(paths)
}

fn mtu(section: &mut Section<'_>) -> Result<Option<u16>, Diagnostic> {
    let mtu = section.number::<u16>("mtu", MTU)?;
    match mtu {
        Some(At { value, span }) if value < 1280 => {
            Err(section.source().error(&span, format!("an MTU of {value} is too small"), MTU))
        }
        mtu => Ok(mtu.map(|mtu| mtu.value)),
    }
}

fn interfaces(file: &mut Section<'_>, paths: &[PathConfig]) -> Result<InterfacesConfig, Diagnostic> {
    let Some(mut section) = file.section("interfaces", "[interfaces]")? else {
        return Ok(InterfacesConfig::default());
    };
    let source = section.source();
    if !paths.is_empty() {
        let help = "leave out [interfaces], or every [[path]]";
        return Err(source.error(section.span(), "[interfaces] is for files without [[path]]", help));
    }
    let mut names = |key: &str| {
        let help = format!("names of interfaces, as in {key} = [\"wwan0\", \"docker*\"]");
        let Some(list) = section.list(key, &help)? else { return Ok(None) };
        let name = |item: &Item<'_>| {
            let text = item.as_text().filter(|text| !text.is_empty());
            let wrong = || source.error(&item.span(), "this is not a name", help.as_str());
            text.map(str::to_owned).ok_or_else(wrong)
        };
        list.value.iter().map(name).collect::<Result<Vec<_>, Diagnostic>>().map(Some)
    };
    let usual = InterfacesConfig::default();
    let (ignore, backup) = (names("ignore")?.unwrap_or(usual.ignore), names("backup")?.unwrap_or(usual.backup));
    Ok(InterfacesConfig { ignore, backup, mtu: mtu(&mut section)? })
}

struct Tun {
    device: String,
    forward: bool,
    firewall: bool,
}

fn tun(file: &mut Section<'_>) -> Result<Tun, Diagnostic> {
    let default = || "sinnet0".to_owned();
    let Some(mut tun) = file.section("tun", "[tun]")? else {
        return Ok(Tun { device: default(), forward: false, firewall: true });
    };
    let help = "at most 15 letters and digits, as in name = \"sinnet0\"";
    let name = tun.parsed("name", help, |name| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 15 || !name.chars().all(allowed) || name.starts_with('.') {
            return Err(format!("\"{name}\" cannot be the name of an interface"));
        }
        Ok(name.to_owned())
    })?;
    Ok(Tun {
        device: name.map_or_else(default, |name| name.value),
        forward: tun.flag("forward")?.unwrap_or(false),
        firewall: tun.flag("firewall")?.unwrap_or(true),
    })
}

struct Esp {
    suites: Vec<EspSuite>,
    encapsulation: Encapsulation,
    port: u16,
    rekey_packets: u32,
    rekey_interval: Duration,
}

fn esp(file: &mut Section<'_>) -> Result<Esp, Diagnostic> {
    let HostConfig { esp_suites, rekey_interval, .. } = HostConfig::default();
    let Some(mut esp) = file.section("esp", "[esp]")? else {
        return Ok(Esp {
            suites: esp_suites,
            encapsulation: Encapsulation::Udp,
            port: UDP_PORT,
            rekey_packets: WedgeConfig::RENEW_AT,
            rekey_interval,
        });
    };
    let suites = choices(&mut esp, "suites", &SUITES)?.unwrap_or(esp_suites);
    let encapsulation = esp.parsed("encapsulation", &one_of(&ENCAPSULATIONS), |text| choice(text, &ENCAPSULATIONS))?;
    let encapsulation = encapsulation.map_or(Encapsulation::Udp, |encapsulation| encapsulation.value);
    let help =
        "a UDP port from 1 to 65535, as in port = 4500; peers that know it write locators = [\"192.0.2.10:4500\"]";
    let port = esp.number::<u16>("port", help)?;
    if let Some(port) = port.as_ref().filter(|port| port.value == 0 || encapsulation == Encapsulation::Native) {
        let message = match encapsulation {
            Encapsulation::Udp => "there is no UDP port 0",
            Encapsulation::Native => "the native protocols have no ports",
        };
        return Err(esp.source().error(&port.span, message, help));
    }
    let help = "a number of packets from 10000 to 1073741824, the default";
    let rekey = esp.number::<u32>("rekey_packets", help)?;
    if let Some(rekey) = rekey.as_ref().filter(|rekey| !(10_000..=WedgeConfig::RENEW_AT).contains(&rekey.value)) {
        return Err(esp.source().error(&rekey.span, "keys cannot be renewed after so many packets", help));
    }
    let interval = esp.parsed("rekey", REKEY, parse_lifetime)?;
    Ok(Esp {
        suites,
        encapsulation,
        port: port.map_or(UDP_PORT, |port| port.value),
        rekey_packets: rekey.map_or(WedgeConfig::RENEW_AT, |rekey| rekey.value),
        rekey_interval: interval.map_or(rekey_interval, |interval| interval.value),
    })
}

fn hip(file: &mut Section<'_>) -> Result<(Vec<Group>, u8), Diagnostic> {
    let HostConfig { groups, puzzle_difficulty, .. } = HostConfig::default();
    let Some(mut hip) = file.section("hip", "[hip]")? else {
        return Ok((groups, puzzle_difficulty));
    };
    let groups = choices(&mut hip, "groups", &GROUPS)?.unwrap_or(groups);
    let help = "a number of bits from 0 (no work for the peer) to 22 (seconds); each bit doubles it";
    let puzzle = hip.number::<u8>("puzzle", help)?;
    if let Some(puzzle) = puzzle.as_ref().filter(|puzzle| puzzle.value > HostConfig::MAX_DIFFICULTY) {
        return Err(hip.source().error(&puzzle.span, "no peer would solve such a puzzle in time", help));
    }
    Ok((groups, puzzle.map_or(puzzle_difficulty, |puzzle| puzzle.value)))
}

/// What may be there once only, among this host and its peers.
#[derive(Default)]
struct Seen {
    names: BTreeMap<String, ()>,
    hits: BTreeMap<Hit, String>,
    lsis: BTreeMap<Lsi, ()>,
}

impl Seen {
    fn name(&mut self, source: &Source, name: &At<String>) -> Result<(), Diagnostic> {
        match self.names.insert(name.value.to_ascii_lowercase(), ()) {
            None => Ok(()),
            Some(()) => {
                let message = format!("two hosts are called \"{}\"", name.value);
                Err(source.error(&name.span, message, "give each a name of its own"))
            }
        }
    }

    fn hit(&mut self, source: &Source, hit: &At<Hit>, name: &str) -> Result<(), Diagnostic> {
        match self.hits.insert(hit.value, name.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let message = format!("the peers \"{other}\" and \"{name}\" have one HIT");
                Err(source.error(&hit.span, message, "a HIT is one host: put all its locators into one [[peer]]"))
            }
        }
    }

    fn lsi(&mut self, source: &Source, lsi: &At<Lsi>) -> Result<(), Diagnostic> {
        match self.lsis.insert(lsi.value, ()) {
            None => Ok(()),
            Some(()) => {
                let message = format!("two hosts have the LSI {}", lsi.value.address());
                Err(source.error(&lsi.span, message, "leave `lsi` out, and each gets one of its own"))
            }
        }
    }
}

fn peer(
    mut section: Section<'_>,
    paths: &[PathConfig],
    lsi_range: LsiRange,
    encapsulation: Encapsulation,
    seen: &mut Seen,
) -> Result<PeerConfig, Diagnostic> {
    let source = section.source();
    let name = section
        .parsed("name", "as in name = \"b.hip\"", dns_name)?
        .ok_or_else(|| section.missing("name", "as in name = \"b.hip\""))?;
    seen.name(source, &name)?;
    let hit = section.parsed("hit", HIT, hit)?.ok_or_else(|| section.missing("hit", HIT))?;
    seen.hit(source, &hit, &name.value)?;
    let lsi = section.parsed("lsi", LSI, |text| lsi(text, lsi_range))?;
    if let Some(lsi) = &lsi {
        seen.lsi(source, lsi)?;
    }
    let help = "as in locators = [\"198.51.100.7\", \"203.0.113.7\"]";
    let list = section.list("locators", help)?;
    if let Some(list) = list.as_ref().filter(|list| list.value.is_empty()) {
        let help = format!("{help}; without the key only the peer can begin, from wherever it is");
        return Err(source.error(&list.span, format!("the peer \"{}\" has no address", name.value), help));
    }
    let mut locators: Vec<LocatorConfig> = Vec::new();
    for item in list.into_iter().flat_map(|list| list.value) {
        let span = item.span();
        let locator = locator(source, item, lsi_range, encapsulation)?;
        if locators.iter().any(|other| other.address == locator.address) {
            let message = format!("the peer \"{}\" has the address {} twice", name.value, locator.address);
            return Err(source.error(&span, message, "name each address once"));
        }
        reachable(source, &span, locator.address, paths)?;
        locators.push(locator);
    }
    let help = "as in routes = [{ from = \"dsl\", to = \"198.51.100.7\" }]";
    let routes = match section.list("routes", help)? {
        None => Vec::new(),
        Some(list) => list.value.into_iter().map(|item| route(item, paths, &locators)).collect::<Result<_, _>>()?,
    };
    Ok(PeerConfig {
        name: name.value,
        hit: hit.value,
        lsi: lsi.map(|lsi| lsi.value),
        locators,
        routes,
        name_span: name.span,
        hit_span: hit.span,
    })
}

/// An address that no path can reach by its family is a mistake. A path known only by its interface may reach any, and so
/// may paths that are found.
fn reachable(
    source: &Source,
    span: &std::ops::Range<usize>,
    to: IpAddr,
    paths: &[PathConfig],
) -> Result<(), Diagnostic> {
    if paths.is_empty() || paths.iter().any(|path| path.address.is_none_or(|from| from.is_ipv4() == to.is_ipv4())) {
        return Ok(());
    }
    let family = if to.is_ipv4() { "IPv4" } else { "IPv6" };
    Err(source.error(
        span,
        format!("no [[path]] of this host has an {family} address"),
        format!("{to} cannot be reached without one"),
    ))
}

fn locator(
    source: &Source,
    item: Item<'_>,
    lsi_range: LsiRange,
    encapsulation: Encapsulation,
) -> Result<LocatorConfig, Diagnostic> {
    let parse = |text: &str| place(text, lsi_range, encapsulation);
    if let Some(text) = item.as_text() {
        let (address, port) = parse(text).map_err(|message| source.error(&item.span(), message, LOCATOR))?;
        return Ok(LocatorConfig { address, port, rate: None, delay: None });
    }
    let mut section = item.section("a locator")?;
    let place = section.parsed("address", LOCATOR, parse)?.ok_or_else(|| section.missing("address", LOCATOR))?;
    let (address, port) = place.value;
    Ok(LocatorConfig {
        address,
        port,
        rate: section.parsed("rate", RATE, parse_rate)?.map(|rate| rate.value),
        delay: section.parsed("delay", DELAY, parse_delay)?.map(|delay| delay.value),
    })
}

fn route(item: Item<'_>, paths: &[PathConfig], locators: &[LocatorConfig]) -> Result<RouteConfig, Diagnostic> {
    let mut section = item.section("a route")?;
    let source = section.source();
    let names = || paths.iter().map(|path| format!("\"{}\"", path.name)).collect::<Vec<_>>().join(", ");
    let from = section.required_text("from", "the name of a [[path]] of this file")?;
    let index = paths.iter().position(|path| path.name == from.value).ok_or_else(|| {
        source.error(&from.span, format!("there is no path \"{}\"", from.value), format!("the paths are {}", names()))
    })?;
    let to = section.parsed("to", ADDRESS, address)?.ok_or_else(|| section.missing("to", ADDRESS))?;
    if !locators.iter().any(|locator| locator.address == to.value) {
        let message = format!("{} is no locator of this peer", to.value);
        return Err(source.error(&to.span, message, "a route ends at one of the peer's `locators`"));
    }
    let own = paths.get(index).and_then(|path| path.address);
    if let Some(own) = own.filter(|own| own.is_ipv4() != to.value.is_ipv4()) {
        let message = format!("{own} and {} are of different families", to.value);
        return Err(source.error(section.span(), message, "both ends of a route are IPv4, or both are IPv6"));
    }
    Ok(RouteConfig {
        from: index,
        to: to.value,
        rate: section.parsed("rate", RATE, parse_rate)?.map(|rate| rate.value),
        delay: section.parsed("delay", DELAY, parse_delay)?.map(|delay| delay.value),
    })
}

fn choices<T: Copy + PartialEq>(
    section: &mut Section<'_>,
    key: &str,
    known: &[(&str, T)],
) -> Result<Option<Vec<T>>, Diagnostic> {
    let help = one_of(known);
    let Some(list) = section.list(key, &format!("a list; {help}"))? else { return Ok(None) };
    let source = section.source();
    let mut chosen = Vec::new();
    for item in &list.value {
        let text = item.as_text().ok_or_else(|| source.error(&item.span(), "this is not a text", help.as_str()))?;
        let value = choice(text, known).map_err(|message| source.error(&item.span(), message, help.as_str()))?;
        if chosen.contains(&value) {
            return Err(source.error(
                &item.span(),
                format!("\"{text}\" is there twice"),
                "name each once, the best first",
            ));
        }
        chosen.push(value);
    }
    if chosen.is_empty() {
        return Err(source.error(&list.span, format!("`{key}` is empty"), help));
    }
    Ok(Some(chosen))
}

fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    known
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("\"{text}\" is not known"))
}

fn one_of<T>(known: &[(&str, T)]) -> String {
    let names = known.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>();
    format!("possible are {}", names.join(", "))
}

/// Where a peer is: an address of the network, with a UDP port if there is one.
fn place(text: &str, lsis: LsiRange, encapsulation: Encapsulation) -> Result<(IpAddr, Option<u16>), String> {
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

fn lsi(text: &str, range: LsiRange) -> Result<Lsi, String> {
    let lsi: Lsi = text.parse().map_err(|_| format!("\"{text}\" is no IPv4 address"))?;
    if range.has(lsi) { Ok(lsi) } else { Err(format!("{text} is no LSI: not a host in {range}")) }
}

fn hit(text: &str) -> Result<Hit, String> {
    let hit: Hit = text.parse().map_err(|_| format!("\"{text}\" is no HIT"))?;
    if !hit.is_orchid() {
        return Err(format!("\"{text}\" is an IPv6 address but no HIT"));
    }
    Ok(hit)
}

fn dns_name(text: &str) -> Result<String, String> {
    crate::dns::parse_name(text).map(|_| text.trim_end_matches('.').to_owned())
}

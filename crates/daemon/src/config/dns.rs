//! The section `[dns]`.

use std::net::{IpAddr, SocketAddr};

use text::Diagnostic;
use text::reader::{self, At, Reader, at};
use text::toml::Node;
use wire::{Hit, Lsi};

use super::{DnsConfig, HipRecords, HostResolver, LsiRange};

pub(super) const HIP_RECORDS: [(&str, HipRecords); 3] =
    [("signed", HipRecords::Signed), ("any", HipRecords::Any), ("off", HipRecords::Off)];
pub(super) const RESOLVERS: [(&str, HostResolver); 3] = [
    ("leave", HostResolver::Leave),
    ("systemd-resolved", HostResolver::SystemdResolved),
    ("resolv.conf", HostResolver::ResolvConf),
];
const UPSTREAM: &str =
    "upstream = [\"127.0.0.1\"], addresses of name servers, with a port where it is not 53: \"[2001:db8::1]:5353\"";

/// What the section says, or what holds without it.
pub(super) fn read(dns: Option<&Reader<'_>>, lsi_range: LsiRange) -> Result<DnsConfig, Diagnostic> {
    let Some(dns) = dns else { return Ok(DnsConfig::default()) };
    let usual = DnsConfig::default();
    let upstream = dns.read("upstream", |node| upstream(node, lsi_range))?.unwrap_or_default();
    let peers = |node: &Node| {
        let help = "a number of peers from 1 to 1024";
        reader::whole(node, 1, 1024).map_err(|error| error.with_help(help))
    };
    let enabled = dns.read("enabled", reader::boolean)?.unwrap_or(true);
    let resolver = dns.read("resolver", at(|node| reader::word(node, &RESOLVERS)))?;
    if let Some(At { place, .. }) = resolver.as_ref().filter(|wanted| wanted.value != HostResolver::Leave)
        && (upstream.is_empty() || !enabled)
    {
        let help = "say whom to ask: upstream = [\"192.0.2.53\"]; or leave `resolver` out".to_owned();
        return Err(place.error("this host would know no names but those of peers", Some(help)));
    }
    Ok(DnsConfig {
        enabled,
        resolver: resolver.map_or(usual.resolver, |resolver| resolver.value),
        upstream,
        hip_records: dns.read("hip_records", |node| reader::word(node, &HIP_RECORDS))?.unwrap_or(usual.hip_records),
        trusted: dns.read("trusted", reader::boolean)?.unwrap_or(false),
        peers: dns.read("peers", peers)?.unwrap_or(usual.peers),
    })
}

fn upstream(node: &Node, lsi_range: LsiRange) -> Result<Vec<SocketAddr>, Diagnostic> {
    let mut servers: Vec<SocketAddr> = Vec::new();
    for node in reader::list(node, UPSTREAM)? {
        let server = reader::parsed(node, UPSTREAM, |text| server(text, lsi_range))?;
        if servers.contains(&server) {
            return Err(node.place.error(format!("{server} is there twice"), Some("name each once".to_owned())));
        }
        servers.push(server);
    }
    Ok(servers)
}

fn server(text: &str, lsi_range: LsiRange) -> Result<SocketAddr, String> {
    let server = match text.parse::<SocketAddr>() {
        Ok(server) => server,
        Err(_) => SocketAddr::new(text.parse().map_err(|_| format!("\"{text}\" is no address"))?, 53),
    };
    let address = server.ip();
    if server.port() == 0 || address.is_unspecified() || address.is_multicast() {
        return Err(format!("nobody can be asked at {server}"));
    }
    // Questions would come back to us, or go through a tunnel that begins with one.
    let is_identity = match address {
        IpAddr::V4(address) => lsi_range.has(Lsi::from(address)),
        IpAddr::V6(address) => Hit::from(address).is_orchid(),
    };
    if is_identity {
        return Err(format!("{address} is an identity: questions would go round, or wait for themselves"));
    }
    Ok(server)
}

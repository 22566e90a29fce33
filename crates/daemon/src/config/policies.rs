//! `[[policy]]` and `[[group]]`: what is to hold for flows of this host's programs.

use std::ops::RangeInclusive;

use text::reader::{self, At, Reader, at};
use text::toml::Node;
use text::{Diagnostic, did_you_mean};
use wedge::{Policy, Priority};
use wire::ip::protocol;

use super::sections::table;
use super::{PathConfig, PeerConfig};

pub(super) const PROTOCOLS: [(&str, u8); 4] =
    [("tcp", protocol::TCP), ("udp", protocol::UDP), ("sctp", protocol::SCTP), ("icmp", protocol::ICMPV6)];
pub(super) const PRIORITIES: [(&str, Priority); 3] =
    [("urgent", Priority::Urgent), ("normal", Priority::Normal), ("bulk", Priority::Bulk)];

/// What is to hold for some flows; the peers are known by their names until their HITs are.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// All but the peers and the senders.
    pub policy: Policy,
    /// The names of the peers that it is about; `None` for all.
    pub peers: Option<Vec<String>>,
    /// Whose sockets the packets come from, a name or a number; `None` for all.
    pub(crate) user: Option<At<String>>,
    /// The cgroup of these sockets, below the root, without a slash in front or at the end; `None` for all.
    pub(crate) cgroup: Option<At<String>>,
}

/// A name for several peers.
struct Group {
    name: String,
    peers: Vec<String>,
}

/// Reads all of both. Peers whose HITs are not known yet are peers, too.
pub(super) fn read(
    file: &Reader<'_>,
    peers: &[PeerConfig],
    paths: &[PathConfig],
    firewall: bool,
) -> Result<Vec<PolicyConfig>, Diagnostic> {
    let mut groups: Vec<Group> = Vec::new();
    for node in file.tables("group")? {
        let group = group(node, peers, &groups)?;
        groups.push(group);
    }
    let nodes = file.tables("policy")?;
    if let Some(node) = nodes.get(Policy::MOST) {
        let message = format!("there are more than {} policies", Policy::MOST);
        let help = "one policy takes several ports, peers, groups and paths".to_owned();
        return Err(node.place.error(message, Some(help)));
    }
    let policies = nodes.iter().map(|node| policy(node, peers, &groups, paths)).collect::<Result<Vec<_>, _>>()?;
    let asks = policies.iter().find_map(|policy| policy.user.as_ref().or(policy.cgroup.as_ref()));
    if let Some(At { place, .. }) = asks.filter(|_| !firewall) {
        let help = "leave out `firewall = false`, or tell them by ports".to_owned();
        return Err(place.error("only the packet filter of [tun] sees who sends", Some(help)));
    }
    Ok(policies)
}

fn group(node: &Node, peers: &[PeerConfig], groups: &[Group]) -> Result<Group, Diagnostic> {
    let section = table("[[group]]", node)?;
    let name = section.need("name", "name = \"offices\"", at(|node| reader::text(node, "\"offices\"")))?;
    let is = |other: &str| other.eq_ignore_ascii_case(name.value);
    if groups.iter().any(|group| is(&group.name)) || peers.iter().any(|peer| is(&peer.name)) {
        let message = format!("\"{}\" is the name of a group or a peer already", name.value);
        return Err(name.place.error(message, Some("give each a name of its own".to_owned())));
    }
    let example = "peers = [\"b.hip\", \"c.hip\"], names of [[peer]]";
    let peers = section.need("peers", example, |node| {
        filled(node, example)?.iter().map(|node| named(node, example, peers, &[])).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Group { name: name.value.to_owned(), peers: peers.concat() })
}

fn policy(
    node: &Node,
    peers: &[PeerConfig],
    groups: &[Group],
    paths: &[PathConfig],
) -> Result<PolicyConfig, Diagnostic> {
    let section = table("[[policy]]", node)?;
    let example = "to = [\"b.hip\", \"offices\"], names of [[peer]] or [[group]]";
    let to = section.read("to", |node| {
        filled(node, example)?.iter().map(|node| named(node, example, peers, groups)).collect::<Result<Vec<_>, _>>()
    })?;
    let mut policy = Policy::new();
    let number = section.read("protocol", at(|node| reader::word(node, &PROTOCOLS)))?;
    policy.protocol = number.as_ref().map(|number| number.value);
    policy.ports = section.read("ports", ports)?.unwrap_or_default();
    if let Some(At { value: protocol::ICMPV6, place }) = number.as_ref().filter(|_| !policy.ports.is_empty()) {
        let help = "leave out `ports`, or have a policy for each".to_owned();
        return Err(place.error("ICMP has no ports", Some(help)));
    }
    let user = section.read("user", at(user))?;
    let cgroup = section.read("cgroup", at(cgroup))?;
    let chosen = section.read("paths", at(|node| names_of_paths(node, paths)))?;
    let strict = section.read("strict", at(reader::boolean))?;
    let priority = section.read("priority", at(|node| reader::word(node, &PRIORITIES)))?;
    let through = section.read("through", at(reader::boolean))?;
    let help = "a policy has paths = [\"dsl\"], priority = \"bulk\" or through = false";
    if let Some(At { place, .. }) = strict.as_ref().filter(|_| chosen.is_none()) {
        return Err(place.error("there are no `paths` to be strict about", Some(help.to_owned())));
    }
    if through.as_ref().is_some_and(|through| !through.value) {
        let besides = [chosen.as_ref().map(|at| &at.place), priority.as_ref().map(|at| &at.place)];
        if let Some(place) = besides.into_iter().flatten().next() {
            let help = "leave this out, or `through`".to_owned();
            return Err(place.error("what does not pass has no path and no priority", Some(help)));
        }
    } else if chosen.is_none() && priority.is_none() {
        // One that says nothing is good for one thing: to keep those that follow from these flows.
        let says_so = through.is_some();
        if !says_so {
            let help = format!("{help}; through = true says that those below do not count for these flows");
            return Err(section.place().error("this policy says of its flows nothing", Some(help)));
        }
    }
    policy.paths = chosen.map(|chosen| chosen.value).unwrap_or_default();
    policy.strict = strict.is_some_and(|strict| strict.value);
    policy.priority = priority.map(|priority| priority.value).unwrap_or_default();
    policy.through = through.is_none_or(|through| through.value);
    Ok(PolicyConfig { policy, peers: to.map(|to| to.concat()), user, cgroup })
}

/// A user's name, or a number in the same quotes.
fn user(node: &Node) -> Result<String, Diagnostic> {
    let example = "user = \"backup\", a name, or \"1000\", a number";
    let parse = |text: &str| match text.parse::<u64>() {
        _ if text.is_empty() => Err("this is no user".to_owned()),
        // What is left is nobody (chown(2)).
        Ok(number) if number >= u32::MAX.into() => Err(format!("users have numbers below {}", u32::MAX)),
        _ => Ok(text.to_owned()),
    };
    reader::parsed(node, example, parse)
}

/// A cgroup's path below the root.
fn cgroup(node: &Node) -> Result<String, Diagnostic> {
    let example = "cgroup = \"backup.slice\", its path below /sys/fs/cgroup";
    let parse = |text: &str| {
        let path = text.trim_matches('/');
        if path.split('/').any(|name| ["", ".", ".."].contains(&name)) {
            return Err(format!("\"{text}\" is no path of a cgroup below the root"));
        }
        Ok(path.to_owned())
    };
    reader::parsed(node, example, parse)
}

/// A list that has something in it.
fn filled<'a>(node: &'a Node, example: &str) -> Result<&'a [Node], Diagnostic> {
    match reader::list(node, example)? {
        [] => Err(node.place.error("nothing is in this list", Some(format!("for example {example}")))),
        some => Ok(some),
    }
}

/// The peers that go by a name, or belong to a group of that name.
fn named(node: &Node, example: &str, peers: &[PeerConfig], groups: &[Group]) -> Result<Vec<String>, Diagnostic> {
    let name = reader::text(node, example)?;
    if let Some(peer) = peers.iter().find(|peer| peer.name.eq_ignore_ascii_case(name)) {
        return Ok(vec![peer.name.clone()]);
    }
    if let Some(group) = groups.iter().find(|group| group.name.eq_ignore_ascii_case(name)) {
        return Ok(group.peers.clone());
    }
    let known = peers.iter().map(|peer| peer.name.as_str()).chain(groups.iter().map(|group| group.name.as_str()));
    let what = if groups.is_empty() { "peer" } else { "peer or group" };
    let help = did_you_mean(name, known).unwrap_or_else(|| example.to_owned());
    Err(node.place.error(format!("there is no {what} \"{name}\""), Some(help)))
}

/// Ports, and ranges of them.
fn ports(node: &Node) -> Result<Vec<RangeInclusive<u16>>, Diagnostic> {
    let example = "ports = [\"5060\", \"16384-32767\"], of either end";
    let parse = |text: &str| {
        let wrong = || format!("\"{text}\" is neither a port nor a range of ports");
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
        let (low, high) = (port(low)?, port(high)?);
        if low > high { Err(format!("\"{text}\" ends before it begins")) } else { Ok(low..=high) }
    };
    filled(node, example)?.iter().map(|node| reader::parsed(node, example, parse)).collect()
}

/// Names of paths. Those that are found are known by what they are called once they are there.
fn names_of_paths(node: &Node, paths: &[PathConfig]) -> Result<Vec<String>, Diagnostic> {
    let example = "paths = [\"dsl\"], names of [[path]] or of interfaces, as in \"wwan*\"";
    let one = |node: &Node| {
        let name = reader::text(node, example)?;
        let names = || paths.iter().map(|path| path.name.as_str());
        let is = |path: &str| name.strip_suffix('*').map_or(path == name, |beginning| path.starts_with(beginning));
        if name.is_empty() || !paths.is_empty() && !names().any(is) {
            let known = || format!("the paths are {}", names().collect::<Vec<_>>().join(", "));
            let help =
                if name.is_empty() { example.to_owned() } else { did_you_mean(name, names()).unwrap_or_else(known) };
            return Err(node.place.error(format!("there is no path \"{name}\""), Some(help)));
        }
        Ok(name.to_owned())
    };
    filled(node, example)?.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<PolicyConfig>, Diagnostic> {
        let peer = |name: &str, hit: &str| format!("[[peer]]\nname = \"{name}\"\nhit = \"2001:22::{hit}\"\n");
        let path = |name: &str| format!("[[path]]\nname = \"{name}\"\ninterface = \"{name}0\"\n");
        let begin =
            ["identity = \"a.pem\"\n".to_owned(), path("dsl"), path("lte"), peer("b.hip", "b"), peer("c.hip", "c")];
        Ok(super::super::parse(&(begin.concat() + text), "a.toml")?.policies)
    }

    #[test]
    fn a_policy_says_what_holds_for_which_flows() {
        let text = "[[group]]\nname = \"offices\"\npeers = [\"C.hip\", \"b.hip\"]\n\
                    [[policy]]\nto = [\"offices\"]\nprotocol = \"tcp\"\nports = [\"22\", \"8000-8100\"]\npaths = [\"l*\"]\n\
                    strict = true\npriority = \"bulk\"\n[[policy]]\nprotocol = \"icmp\"\nthrough = false\n";
        let all = parse(text).expect("right");
        let [first, second] = &all[..] else { panic!("{all:?}") };
        assert_eq!(first.peers, Some(vec!["c.hip".to_owned(), "b.hip".to_owned()]));
        let Policy { protocol, ports, paths, strict, priority, through, .. } = &first.policy;
        assert_eq!((*protocol, &ports[..], &paths[..]), (Some(6), &[22..=22, 8000..=8100][..], &["l*".to_owned()][..]));
        assert_eq!((*strict, *priority, *through), (true, Priority::Bulk, true));
        assert_eq!((second.policy.protocol, second.policy.through, &second.peers), (Some(58), false, &None));
    }

    #[test]
    fn what_is_wrong_is_said_at_its_place() {
        for (text, message, help) in [
            ("to = [\"d.hip\"]\npriority = \"bulk\"", "no peer \"d.hip\"", "b.hip"),
            ("to = []\npriority = \"bulk\"", "nothing is in this list", "offices"),
            ("paths = [\"dls\"]", "no path \"dls\"", "dsl"),
            ("paths = [\"eth*\"]", "no path \"eth*\"", "dsl, lte"),
            ("paths = [\"dsl\"]\nports = [\"0\"]", "neither a port nor a range", "5060"),
            ("paths = [\"dsl\"]\nports = [\"20-10\"]", "ends before it begins", "5060"),
            ("protocol = \"icmp\"\nports = [\"7\"]\nthrough = false", "ICMP has no ports", "leave out"),
            ("protocol = \"tpc\"\nthrough = false", "tpc", "tcp"),
            ("priority = \"high\"", "high", "urgent"),
            ("protocol = \"tcp\"", "says of its flows nothing", "through = true"),
            ("strict = true\npriority = \"bulk\"", "no `paths` to be strict about", "paths = "),
            ("paths = [\"dsl\"]\nthrough = false", "has no path and no priority", "leave this out"),
            ("user = \"\"\nthrough = false", "no user", "backup"),
            ("user = \"4294967295\"\nthrough = false", "numbers below", "1000"),
            ("cgroup = \"/\"\nthrough = false", "no path of a cgroup", "backup.slice"),
            ("cgroup = \"a/../b\"\nthrough = false", "no path of a cgroup", "/sys/fs/cgroup"),
            ("user = \"u\"\nthrough = false\n[tun]\nfirewall = false", "only the packet filter", "firewall"),
            ("port = [\"7\"]\npaths = [\"dsl\"]", "port", "ports"),
        ] {
            let error = parse(&format!("[[policy]]\n{text}\n")).expect_err(text);
            assert!(error.message().contains(message), "{text}: {error}");
            assert!(error.help().unwrap_or_default().contains(help), "{text}: {error}");
        }
        let many = "[[policy]]\nthrough = false\n".repeat(Policy::MOST + 1);
        assert!(parse(&many).is_err_and(|error| error.message().contains("more than 63")));
        let twice = "[[group]]\nname = \"B.hip\"\npeers = [\"c.hip\"]\n";
        assert!(parse(twice).is_err_and(|error| error.message().contains("group or a peer already")));
    }
}

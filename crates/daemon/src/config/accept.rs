//! `[accept]`: who may come that is no peer.

use clock::Duration;
use text::Diagnostic;
use text::reader::{self, Reader, at};
use text::toml::Node;
use wire::Hit;

use super::sections::table;
use super::units::idle;

/// Hosts that nobody has configured and that may come all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptConfig {
    /// Their HITs, or the beginnings of these in bits; empty for anybody.
    pub hits: Vec<(Hit, u8)>,
    /// The most at a time.
    pub most: u16,
    /// How long one may be silent.
    pub idle: Duration,
}

pub(super) fn read(file: &Reader<'_>) -> Result<Option<AcceptConfig>, Diagnostic> {
    let Some(section) = file.read("accept", |node| table("[accept]", node))? else { return Ok(None) };
    let anybody = section.read("anybody", at(reader::boolean))?;
    let hits = section.read("hits", at(hits))?;
    let hits = match (anybody.filter(|anybody| anybody.value), hits) {
        (Some(_), None) => Vec::new(),
        (None, Some(hits)) => hits.value,
        (Some(anybody), Some(_)) => {
            let help = "leave out `anybody`, or `hits`".to_owned();
            return Err(anybody.place.error("where anybody may come no HIT has to be named", Some(help)));
        }
        (None, None) => {
            let help = "anybody = true, or hits = [\"2001:22:86f6::/48\"]".to_owned();
            return Err(section.place().error("[accept] does not say who may come", Some(help)));
        }
    };
    let most = |node: &Node| {
        let help = "a number of guests from 1 to 1000, as in most = 32; the LSI range has to have room for them";
        reader::whole(node, 1, 1000).map_err(|error| error.with_help(help))
    };
    let most = section.read("most", most)?.unwrap_or(32);
    let idle = section.read("idle", idle)?.unwrap_or(Duration::from_secs(600));
    Ok(Some(AcceptConfig { hits, most, idle }))
}

fn hits(node: &Node) -> Result<Vec<(Hit, u8)>, Diagnostic> {
    const EXAMPLE: &str = "hits = [\"2001:22:86f6:fa34:9e42:503d:5eb9:f5a9\", \"2001:22:86f6::/48\"]";
    let parse = |text: &str| {
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        let hit: Hit = address.parse().map_err(|_| format!("\"{text}\" is neither a HIT nor the beginning of one"))?;
        let length: u8 = length.parse().map_err(|_| format!("/{length} is no number of bits"))?;
        match length {
            _ if !hit.is_orchid() => Err(format!("\"{text}\" is an IPv6 address but no HIT")),
            28..=128 => Ok((hit, length)),
            _ => Err(format!("/{length} is not between /28, which is all HITs, and /128, which is one")),
        }
    };
    match reader::list(node, EXAMPLE)? {
        [] => Err(node.place.error("nothing is in this list", Some(format!("for example {EXAMPLE}")))),
        some => some.iter().map(|node| reader::parsed(node, EXAMPLE, parse)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<AcceptConfig>, Diagnostic> {
        Ok(super::super::parse(&format!("identity = \"a.pem\"\n{text}"), "a.toml")?.accept)
    }

    #[test]
    fn who_may_come_is_said_and_nobody_else_does() {
        assert_eq!(parse(""), Ok(None));
        let anybody = parse("[accept]\nanybody = true\nmost = 7\nidle = \"1h\"\n").expect("right").expect("there");
        assert_eq!((anybody.hits, anybody.most, anybody.idle), (Vec::new(), 7, Duration::from_secs(3600)));
        let some = parse("[accept]\nhits = [\"2001:22::7\", \"2001:21:ff::/48\"]\n").expect("right").expect("there");
        let hit = |text: &str| text.parse::<Hit>().expect("a HIT");
        assert_eq!(some.hits, [(hit("2001:22::7"), 128), (hit("2001:21:ff::"), 48)]);
        for (text, message) in [
            ("", "does not say who may come"),
            ("anybody = false", "does not say who may come"),
            ("anybody = true\nhits = [\"2001:22::7\"]", "no HIT has to be named"),
            ("hits = []", "nothing is in this list"),
            ("hits = [\"2001:db8::7\"]", "no HIT"),
            ("hits = [\"2001:22::/20\"]", "/20 is not between"),
            ("anybody = true\nmost = 0", "0"),
            ("anybody = true\nidle = \"1s\"", "too small"),
        ] {
            let error = parse(&format!("[accept]\n{text}\n")).expect_err(text);
            assert!(error.message().contains(message), "{text}: {error}");
            assert!(error.help().is_some(), "{text}");
        }
    }

    #[test]
    fn guests_have_lsis_of_their_own() {
        for range in ["198.18.0.0/15", "10.7.7.0/24"] {
            let text = format!("identity = \"a.pem\"\nlsi_range = \"{range}\"\n[accept]\nanybody = true\nmost = 100\n");
            let config = super::super::parse(&text, "a.toml").expect("right");
            let (own, peers) = config.assign_lsis("2001:22::a".parse().expect("a HIT"));
            let guests = config.guest_lsis(own, &peers);
            let different: std::collections::BTreeSet<_> = guests.iter().chain([&own]).collect();
            assert_eq!(different.len(), 101);
            assert!(guests.iter().all(|lsi| config.lsi_range.has(*lsi)));
        }
    }
}

//! `[[other_identity]]`: what this host is beside its `identity` (RFC 7401 §7).

use std::path::{Path, PathBuf};

use hip::identity::HostIdentity;
use text::reader::{self, At, Reader, at};
use text::toml::{Node, Place};
use text::{Diagnostic, did_you_mean};
use wedge::Identities;
use wire::{Hit, Lsi};

use super::sections::{Seen, dns_name, lsi, table};
use super::{Config, LsiRange, read_identity};

const KEY: &str = "identity = \"work.pem\", a file that `sinnet keygen --out work.pem` makes";

/// One more identity of this host.
#[derive(Clone, Debug)]
pub struct IdentityConfig {
    /// What it is called, by people and the DNS.
    pub name: String,
    /// Its HIT, once the key is read or made.
    pub hit: Hit,
    /// Its LSI; once the file is read there is one.
    pub lsi: Option<Lsi>,
    /// It is made anew at each start, and only begins.
    pub anonymous: bool,
    key: Option<At<PathBuf>>,
}

pub(super) fn read(file: &Reader<'_>, range: LsiRange, seen: &mut Seen) -> Result<Vec<IdentityConfig>, Diagnostic> {
    let nodes = file.tables("other_identity")?;
    if let Some(node) = nodes.get(Identities::MOST - 1) {
        let message = format!("more than {} identities are too many for one host", Identities::MOST);
        return Err(node.place.error(message, Some("leave some out".to_owned())));
    }
    nodes.iter().map(|node| identity(node, range, seen)).collect()
}

fn identity(node: &Node, range: LsiRange, seen: &mut Seen) -> Result<IdentityConfig, Diagnostic> {
    let section = table("[[other_identity]]", node)?;
    let name = section.need("name", "name = \"work.hip\"", at(dns_name))?;
    seen.name(&name)?;
    let anonymous = section.read("anonymous", at(reader::boolean))?.filter(|anonymous| anonymous.value);
    let read = at(|node| reader::text(node, KEY).map(PathBuf::from));
    let key = match &anonymous {
        None => Some(section.need("identity", KEY, read)?),
        Some(_) => section.read("identity", read)?,
    };
    if let (Some(key), Some(_)) = (&key, &anonymous) {
        let message = format!("\"{}\" is anonymous, and such an identity is made anew at each start", name.value);
        return Err(key.place.error(message, Some("leave `identity` out, or `anonymous`".to_owned())));
    }
    let lsi = section.read("lsi", at(|node| lsi(node, range)))?;
    if let Some(lsi) = &lsi {
        seen.lsi(lsi)?;
    }
    let (name, lsi) = (name.value, lsi.map(|lsi| lsi.value));
    Ok(IdentityConfig { name, hit: Hit::NULL, lsi, anonymous: anonymous.is_some(), key })
}

/// Which of our identities speaks with a peer: 0 is the first.
pub(super) fn speaker(node: &Node, first: Option<&str>, others: &[IdentityConfig]) -> Result<usize, Diagnostic> {
    let name = reader::text(node, "as = \"work.hip\", the `name` of an [[other_identity]]")?;
    let names = || first.into_iter().chain(others.iter().map(|other| &*other.name));
    let is_first = first.is_some_and(|first| first.eq_ignore_ascii_case(name));
    let other = others.iter().position(|other| other.name.eq_ignore_ascii_case(name));
    match other.map(|at| at + 1).or(is_first.then_some(0)) {
        Some(number) => Ok(number),
        None => {
            let known = || match names().collect::<Vec<_>>().as_slice() {
                [] => "there is no [[other_identity]]; leave `as` out for the one that there is".to_owned(),
                names => format!("they are {}; leave `as` out for the first", names.join(", ")),
            };
            let help = did_you_mean(name, names()).unwrap_or_else(known);
            Err(node.place.error(format!("this host has no identity \"{name}\""), Some(help)))
        }
    }
}

/// A peer that an identity of ours speaks with which is not the first.
pub(super) fn check_speaker(
    (place, other): (&Place, &IdentityConfig),
    peer: &str,
    (is_placed, is_opportunistic): (bool, bool),
) -> Result<(), Diagnostic> {
    if is_opportunistic {
        let message = format!("who \"{peer}\" is would be asked by the first identity, and not by \"{}\"", other.name);
        return Err(place.error(message, Some("leave `as` out, or give the peer's `hit` or `identity`".to_owned())));
    }
    if other.anonymous && !is_placed {
        let message = format!("\"{}\" is anonymous and only begins, but \"{peer}\" has no address", other.name);
        return Err(place.error(message, Some("give it `locators`, its addresses, or `via`".to_owned())));
    }
    Ok(())
}

impl Config {
    /// Reads the keys of the other identities; an anonymous one has none yet. A relative path is relative to `directory`.
    ///
    /// # Errors
    /// Points at the `identity` whose file cannot be read, or whose HIT is another's.
    pub(crate) fn read_other_identities(
        &mut self,
        directory: &Path,
        own: Hit,
    ) -> Result<Vec<Option<HostIdentity>>, Diagnostic> {
        let (mut keys, mut known) = (Vec::new(), vec![(own, "the first identity".to_owned())]);
        for other in &mut self.identities {
            let Some(key) = &other.key else {
                keys.push(None);
                continue;
            };
            let identity = read_identity(directory, key)?;
            other.hit = identity.hit();
            if let Some((hit, before)) = known.iter().find(|(hit, _)| *hit == other.hit) {
                let message = format!("\"{}\" is {before} once more: both have the HIT {hit}", other.name);
                let help = "`sinnet keygen --out FILE` makes another; or leave this one out".to_owned();
                return Err(key.place.error(message, Some(help)));
            }
            known.push((other.hit, format!("\"{}\"", other.name)));
            keys.push(Some(identity));
        }
        Ok(keys)
    }

    /// Gives LSIs to the other identities that have none; an anonymous one has the same after each start.
    pub(crate) fn settle_lsis(&mut self, own: Hit) {
        let (own, peers) = self.assign_lsis(own);
        let mut taken: Vec<Lsi> = self.other_lsis().chain(peers).chain([own]).collect();
        let range = self.lsi_range;
        for (other, number) in self.identities.iter_mut().zip(0..) {
            let mut place = other.hit;
            if other.anonymous {
                // In the second third of the range.
                place = Hit([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x40, number]);
            }
            let lsi = *other.lsi.get_or_insert_with(|| range.free(&place, &taken));
            taken.push(lsi);
        }
    }

    /// The LSIs of the other identities, as far as they have some.
    pub(crate) fn other_lsis(&self) -> impl Iterator<Item = Lsi> {
        self.identities.iter().filter_map(|other| other.lsi)
    }

    /// Each identity of this host, with the peers that it speaks with; of these their HITs and LSIs.
    pub(crate) fn peers_of(&self, number: usize, lsis: &[Lsi]) -> Vec<(Hit, Lsi)> {
        let peers = self.peers.iter().zip(lsis).filter(|(peer, _)| peer.speaks_as == number);
        peers.map(|(peer, lsi)| (peer.hit, *lsi)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    const GOOD: &str = r#"identity = "a.pem"
name = "a.hip"

[[other_identity]]
name = "work.hip"
identity = "work.pem"

[[other_identity]]
name = "ghost.hip"
anonymous = true

[[peer]]
name = "b.hip"
hit = "2001:22::b"

[[peer]]
name = "c.hip"
hit = "2001:22::c"
as = "Work.hip"

[[peer]]
name = "d.hip"
hit = "2001:22::d"
locators = ["192.0.2.4"]
as = "ghost.hip"

[[peer]]
name = "e.hip"
hit = "2001:22::e"
as = "a.hip"
"#;

    #[test]
    fn each_peer_has_the_identity_that_is_said() {
        let config = parse(GOOD, "a.toml").expect("right");
        let speakers: Vec<_> = config.peers.iter().map(|peer| peer.speaks_as).collect();
        assert_eq!(speakers, [0, 1, 2, 0]);
        let others: Vec<_> = config.identities.iter().map(|other| (&*other.name, other.anonymous)).collect();
        assert_eq!(others, [("work.hip", false), ("ghost.hip", true)]);
    }

    #[test]
    fn what_is_wrong_is_told_at_its_place() {
        let wrong = [
            (
                "\"Work.hip\"",
                "\"wrk.hip\"",
                (19, 6),
                "this host has no identity \"wrk.hip\"",
                "did you mean \"work.hip\"?",
            ),
            (
                "\"Work.hip\"",
                "\"x\"",
                (19, 6),
                "no identity \"x\"",
                "they are a.hip, work.hip, ghost.hip; leave `as` out",
            ),
            ("anonymous = true\n", "", (8, 1), "[[other_identity]] needs `identity`", "sinnet keygen --out work.pem"),
            (
                "anonymous = true\n",
                "anonymous = true\nidentity = \"x\"\n",
                (11, 12),
                "made anew at each start",
                "leave",
            ),
            ("locators = [\"192.0.2.4\"]\n", "", (24, 6), "\"ghost.hip\" is anonymous and only begins", "`locators`"),
            ("hit = \"2001:22::d\"", "opportunistic = true", (25, 6), "would be asked by the first identity", "`hit`"),
            ("\"ghost.hip\"\nanon", "\"Work.hip\"\nanon", (9, 8), "two hosts are called \"Work.hip\"", "of its own"),
            ("\"2001:22::d\"", "\"2001:22::c\"", (23, 7), "\"c.hip\" and \"d.hip\" have one HIT", "one [[peer]]"),
            ("anonymous = true", "anonymous = true\nlsi = \"10.0.0.1\"", (11, 7), "10.0.0.1 is no LSI", "lsi_range"),
            (
                "identity = \"work.pem\"\n",
                "identity = \"work.pem\"\nlsi = \"198.18.0.7\"\n[[other_identity]]\nname = \"x\"\nanonymous = true\nlsi = \"198.18.0.7\"\n",
                (11, 7),
                "two hosts have the LSI 198.18.0.7",
                "leave `lsi` out",
            ),
        ];
        for (old, new, place, message, help) in wrong {
            assert!(GOOD.contains(old), "{old}");
            let error = parse(&GOOD.replacen(old, new, 1), "a.toml").expect_err(new);
            assert_eq!((error.line(), error.column()), place, "{error}");
            assert!(error.message().contains(message), "{error}");
            assert!(error.help().unwrap_or_default().contains(help), "{error}");
        }
        let many = "[[other_identity]]\nname = \"x\"\nanonymous = true\n".repeat(Identities::MOST);
        let many = many.split("\"x\"").enumerate().map(|(number, text)| format!("{text}\"x{number}\""));
        let many = format!("identity = \"a.pem\"\n{}", many.collect::<String>().trim_end_matches("\"x8\""));
        let error = parse(&many, "a.toml").expect_err("too many");
        assert_eq!((error.line(), error.column()), (23, 1), "{error}");
        assert!(error.message().contains("more than 8 identities"), "{error}");
    }

    #[test]
    fn keys_are_read_and_are_different() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, pem: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            let file = directory.path().join(name);
            std::fs::write(&file, pem).expect("writes");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        };
        let [first, second] = testkit::IDENTITIES;
        let own = HostIdentity::from_pem(first).expect("a key").hit();
        let mut config = parse(GOOD, "a.toml").expect("right");
        let error = config.read_other_identities(directory.path(), own).expect_err("no file");
        assert_eq!((error.line(), error.column()), (6, 12), "{error}");
        write("work.pem", first);
        let error = config.read_other_identities(directory.path(), own).expect_err("the same");
        assert_eq!((error.line(), error.column()), (6, 12), "{error}");
        assert!(error.message().contains("\"work.hip\" is the first identity once more"), "{error}");
        write("work.pem", second);
        let keys = config.read_other_identities(directory.path(), own).expect("right");
        let hit = HostIdentity::from_pem(second).expect("a key").hit();
        assert_eq!((keys.len(), config.identities[0].hit, keys[1].is_none()), (2, hit, true));
        // A peer of ours is none of us.
        let text = GOOD.replace("2001:22::c", &hit.to_string());
        let mut config = parse(&text, "a.toml").expect("right");
        config.read_other_identities(directory.path(), own).expect("right");
        let error = config.check_peers(own).expect_err("ours");
        assert!(error.message().contains("\"c.hip\" has the HIT of this host's own identity \"work.hip\""), "{error}");
    }

    #[test]
    fn each_identity_has_an_lsi_of_its_own_and_the_others_keep_theirs() {
        let own = "2001:22::a".parse().expect("a HIT");
        let mut config = parse(GOOD, "a.toml").expect("right");
        let before = config.assign_lsis(own);
        // That of b, and so the next that is free.
        config.identities[0].hit = "2001:22::1:0:b".parse().expect("a HIT");
        config.settle_lsis(own);
        assert_eq!(config.assign_lsis(own), before);
        assert_eq!(config.identities[0].lsi, Some(Lsi([198, 18, 0, 15])));
        let ghost = config.identities[1].lsi.expect("one");
        let taken = [&before.1[..], &config.guest_lsis(before.0, &before.1), &config.reserve_lsis(before.0, &before.1)];
        assert!(!taken.concat().contains(&ghost) && ghost != before.0);
    }
}

//! SIGHUP: the configuration is read again, and its peers are taken over. All else was set up with privileges that are given up
//! by now, and changes with a restart, which TCP connections survive. For the same reason a new peer has no route to its LSI yet:
//! programs reach it by its name or HIT, over IPv6.

use std::path::{Path, PathBuf};

use wedge::Identities;
use wire::{Hit, Lsi};

use crate::config::{self, Config};
use crate::names::Responder;
use crate::start::{add_peer, names_of, peer_config, policies};
use crate::uplinks::Uplinks;

/// Where the configuration is.
#[derive(Clone, Debug)]
pub(crate) struct Reload {
    pub(crate) path: PathBuf,
    pub(crate) own: (Hit, Lsi),
}

impl Reload {
    /// Reads it again. What has changed, in a sentence.
    ///
    /// # Errors
    /// A sentence; everything stays as it is.
    pub(crate) fn turn(
        &self,
        uplinks: &mut Uplinks,
        wedge: &mut Identities,
        responder: Option<&mut Responder>,
        reserved: &[Lsi],
    ) -> Result<String, String> {
        let new = read(&self.path)?;
        let new = adopted(&uplinks.config, new)?;
        for policy in &new.policies {
            uplinks.config.senders.marks(policy).map_err(|error| error.to_string())?;
        }
        new.check_peers(self.own.0).map_err(|error| error.to_string())?;
        let Merged { config, lsis, routed, told } =
            merge(&uplinks.config, &uplinks.peer_lsis, (self.own.1, reserved), new)?;
        for (peer, lsi) in config.peers.iter().zip(&lsis) {
            let now = peer_config(&config, peer, *lsi, &uplinks.links);
            let known = uplinks.config.peers.iter().find(|known| known.hit == peer.hit);
            if known.is_none_or(|known| peer_config(&uplinks.config, known, *lsi, &uplinks.links) != now) {
                add_peer(wedge, peer, now);
            }
        }
        if let Some(responder) = responder {
            responder.resolver().rename(names_of(&config, self.own, &lsis, routed));
        }
        uplinks.config.peers = config.peers;
        uplinks.config.rendezvous = config.rendezvous;
        let before = policies(&uplinks.config);
        uplinks.config.policies = config.policies;
        if policies(&uplinks.config) != before {
            wedge.set_policies(&policies(&uplinks.config));
        }
        uplinks.peer_lsis = lsis;
        Ok(told)
    }
}

/// Those whose HITs have been found out have them in the file that is read again, too.
///
/// # Errors
/// A sentence: keys are read, and made, at the start.
fn adopted(old: &Config, mut new: Config) -> Result<Config, String> {
    let names = |config: &Config| config.identities.iter().map(|other| other.name.clone()).collect::<Vec<_>>();
    if names(old) != names(&new) {
        return Err("its [[other_identity]] are others than before, which needs a restart".to_owned());
    }
    new.identities.clone_from(&old.identities);
    for unknown in std::mem::take(&mut new.unknown) {
        match old.peers.iter().find(|known| known.opportunistic && known.name == unknown.name) {
            Some(known) => new.peers.push(unknown.of(known.hit)),
            None => new.unknown.push(unknown),
        }
    }
    Ok(new)
}

fn read(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read by the daemon's user: {error}", path.display()))?;
    let mut config = config::parse(&text, &path.display().to_string()).map_err(|error| error.to_string())?;
    config.read_peer_identities(path.parent().unwrap_or(Path::new(""))).map_err(|error| error.to_string())?;
    Ok(config)
}

/// The peers of before and of now.
struct Merged {
    config: Config,
    lsis: Vec<Lsi>,
    /// So many of them have routes to their LSIs: they come first.
    routed: usize,
    told: String,
}

/// Those of before keep their place and their LSI; who is gone from the file stays until a restart.
fn merge(old: &Config, old_lsis: &[Lsi], (own, reserved): (Lsi, &[Lsi]), mut new: Config) -> Result<Merged, String> {
    let paths = |config: &Config| config.paths.iter().map(|path| path.name.clone()).collect::<Vec<_>>();
    if paths(old) != paths(&new) {
        return Err("its [[path]] have other names than before, which needs a restart".to_owned());
    }
    let mut told = Vec::new();
    let mut peers = Vec::new();
    for known in &old.peers {
        match new.peers.iter().position(|peer| peer.hit == known.hit) {
            Some(at) => {
                let mut peer = new.peers.remove(at);
                if peer.speaks_as != known.speaks_as {
                    told.push(format!("{} knows another identity of ours after a restart", peer.name));
                    peer.speaks_as = known.speaks_as;
                }
                peers.push(peer);
            }
            None => {
                told.push(format!("{} is gone from it, and stays until a restart", known.name));
                peers.push(known.clone());
            }
        }
    }
    let mut lsis = old_lsis.to_vec();
    let routed = peers.len();
    told.extend(new.unknown.iter().map(|peer| format!("{} is asked who it is after a restart", peer.name)));
    for peer in new.peers {
        if peer.speaks_as != 0 {
            // Nobody has the right any more to make the route that says from which HIT programs send.
            told.push(format!("{} is new, and waits for a restart as it does not know our first identity", peer.name));
            continue;
        }
        told.push(format!("{} is new, over IPv6 until a restart", peer.name));
        let others = lsis.iter().chain(&old.guest_pool).chain(reserved);
        let taken: Vec<Lsi> = others.copied().chain([own]).chain(old.other_lsis()).collect();
        lsis.push(peer.lsi.filter(|lsi| !taken.contains(lsi)).unwrap_or_else(|| old.lsi_range.free(&peer.hit, &taken)));
        peers.push(peer);
    }
    let told = if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) };
    let mut config = old.clone();
    config.rendezvous = new.rendezvous;
    config.policies = new.policies;
    config.peers = peers;
    Ok(Merged { config, lsis, routed, told: format!("SIGHUP: the peers of the configuration are taken over{told}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(peers: &[(&str, &str, &str)]) -> Config {
        let mut text = "identity = \"a.pem\"\n".to_owned();
        for (name, hit, locator) in peers {
            text += &format!("[[peer]]\nname = \"{name}\"\nhit = \"2001:22::{hit}\"\nlocators = [\"{locator}\"]\n");
        }
        config::parse(&text, "a.toml").expect("right")
    }

    #[test]
    fn known_peers_keep_their_lsis_and_new_ones_come_after_them() {
        let old = config(&[("b.hip", "b", "192.0.2.2"), ("c.hip", "c", "192.0.2.3")]);
        let own: Hit = "2001:22::a".parse().expect("a HIT");
        let (own, lsis) = old.assign_lsis(own);
        // One that would get the LSI of b by its HIT, b elsewhere and of another name, and no c.
        let new = config(&[("d.hip", "1:0:0:b", "192.0.2.4"), ("bb.hip", "b", "192.0.2.9")]);
        let merged = merge(&old, &lsis, (own, &[]), new).expect("fits");
        let names: Vec<_> = merged.config.peers.iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!((names, merged.routed), (vec!["bb.hip", "c.hip", "d.hip"], 2));
        assert_eq!(merged.lsis[..2], lsis);
        assert!(!lsis.contains(&merged.lsis[2]) && merged.lsis[2] != own);
        assert_eq!(merged.config.peers[0].locators[0].address.to_string(), "192.0.2.9");
        assert!(
            merged.told.contains("c.hip is gone from it") && merged.told.contains("d.hip is new"),
            "{}",
            merged.told
        );
    }

    /// Nobody has the right any more to make a key's address, or a route that says from which HIT programs send.
    #[test]
    fn other_identities_need_a_restart() {
        let file = |name: &str, speaks_as: &str, peers: &str| {
            let text = format!(
                "identity = \"a.pem\"\n[[other_identity]]\nname = \"{name}\"\nidentity = \"w.pem\"\n\
                 [[peer]]\nname = \"b.hip\"\nhit = \"2001:22::b\"\n{speaks_as}\n{peers}"
            );
            config::parse(&text, "a.toml").expect("right")
        };
        let mut old = file("work.hip", "as = \"work.hip\"", "");
        old.identities[0].hit = "2001:22::e".parse().expect("a HIT");
        old.settle_lsis("2001:22::a".parse().expect("a HIT"));
        let (own, lsis) = old.assign_lsis("2001:22::a".parse().expect("a HIT"));
        assert!(adopted(&old, file("play.hip", "", "")).is_err_and(|told| told.contains("restart")));
        let new = "[[peer]]\nname = \"c.hip\"\nhit = \"2001:22::c\"\nas = \"work.hip\"\n\
                   [[peer]]\nname = \"d.hip\"\nhit = \"2001:22::1:0:e\"\n";
        let new = adopted(&old, file("work.hip", "", new)).expect("fits");
        assert_eq!(new.identities[0].hit, old.identities[0].hit);
        let merged = merge(&old, &lsis, (own, &[]), new).expect("fits");
        let peers: Vec<_> = merged.config.peers.iter().map(|peer| (&*peer.name, peer.speaks_as)).collect();
        assert_eq!(peers, [("b.hip", 1), ("d.hip", 0)]);
        assert_ne!(Some(merged.lsis[1]), old.identities[0].lsi);
        for told in ["b.hip knows another identity of ours after a restart", "c.hip is new, and waits for a restart"] {
            assert!(merged.told.contains(told), "{}", merged.told);
        }
    }

    #[test]
    fn other_paths_need_a_restart() {
        let old = config(&[]);
        let text = "identity = \"a.pem\"\n[[path]]\nname = \"x\"\ninterface = \"eth0\"\n";
        let new = config::parse(text, "a.toml").expect("right");
        assert!(merge(&old, &[], (Lsi([198, 18, 0, 1]), &[]), new).is_err_and(|told| told.contains("restart")));
    }
}

//! Peers whose HITs are not configured (RFC 7401 §4.1.8). As with ssh, the first identity that is proven at a peer's addresses is
//! the peer's, and is kept in a file; whoever has another one there later is refused.
//!
//! An answer to an I1 to nobody proves little, so the HIT counts once a base exchange that this host has begun, with that HIT and at
//! that address, has come to its end. Until then the host may not begin one with us.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use clock::Instant;
use rand_core::CryptoRng;
use wedge::{Wedge, WedgeEvent};
use wire::{Hit, Lsi};

use crate::config::{Config, PeerConfig};
use crate::dns::Names;
use crate::start::{names_of, peer_config, policies, remote};
use crate::uplinks::Uplinks;

/// Gives the peers of the configuration the HITs that were found out before.
///
/// # Errors
/// A sentence with the line of the file that is wrong.
pub(crate) fn recall(config: &mut Config, directory: &Path) -> Result<(), String> {
    if config.unknown.is_empty() {
        return Ok(());
    }
    let path = directory.join(&config.known_hits);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("the HITs that were found out, {}, cannot be read: {error}", path.display())),
    };
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(hit)) = (words.next(), words.next()) else { continue };
        let wrong = |why: &str| format!("{}, line {}: {why}; remove the line", path.display(), number + 1);
        let hit: Hit = hit.parse().ok().filter(Hit::is_orchid).ok_or_else(|| wrong("this is no HIT"))?;
        let Some(at) = config.unknown.iter().position(|peer| peer.name == name) else { continue };
        if let Some(other) = config.peers.iter().find(|peer| peer.hit == hit) {
            return Err(wrong(&format!("the HIT is that of the peer \"{}\"", other.name)));
        }
        let known = config.unknown.remove(at).of(hit);
        config.peers.push(known);
    }
    Ok(())
}

/// Peers whose HITs are found out, and the file where they are kept.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    file: Option<File>,
    /// Where it is, for messages.
    path: String,
    /// Nobody has answered for them.
    unknown: Vec<PeerConfig>,
    /// Somebody has, and a base exchange is under way.
    tentative: Vec<PeerConfig>,
    /// So many peers have routes to their LSIs.
    routed: usize,
}

/// What is needed to act.
pub(crate) struct Hosts<'a> {
    pub(crate) now: Instant,
    pub(crate) own: (Hit, Lsi),
    pub(crate) random: &'a mut dyn CryptoRng,
    pub(crate) wedge: &'a mut Wedge,
    pub(crate) uplinks: &'a mut Uplinks,
    /// LSIs that nobody else may have.
    pub(crate) reserved: &'a [Lsi],
}

/// A sentence for the log.
pub(crate) enum News {
    /// There is a peer more.
    Known(String),
    Warning(String),
}

impl Strangers {
    /// Opens the file, as long as there is a right to. It is its owner's to write, and no secret.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn open(config: &Config, directory: &Path) -> Result<Self, String> {
        let path = directory.join(&config.known_hits);
        let shown = path.display().to_string();
        let mut strangers = Self { path: shown, routed: config.peers.len(), ..Self::default() };
        if config.unknown.is_empty() {
            return Ok(strangers);
        }
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(flags).open(&path);
        strangers.file = Some(file.map_err(|error| {
            format!(
                "the file for HITs that are found out, {}, cannot be written: {error}; change `known_hits`",
                path.display()
            )
        })?);
        strangers.unknown.clone_from(&config.unknown);
        Ok(strangers)
    }

    /// Asks all of them who they are.
    pub(crate) fn ask(&self, now: Instant, random: &mut dyn CryptoRng, wedge: &mut Wedge, uplinks: &Uplinks) {
        self.unknown.iter().for_each(|peer| wedge.inquire(now, random, places(&uplinks.config, peer)));
    }

    /// All names, as far as they have HITs.
    pub(crate) fn names(&self, uplinks: &Uplinks, own: (Hit, Lsi)) -> Names {
        names_of(&uplinks.config, own, &uplinks.peer_lsis, self.routed)
    }

    /// Takes what concerns them.
    pub(crate) fn hear(&mut self, event: &WedgeEvent, hosts: &mut Hosts<'_>) -> Option<News> {
        match event {
            WedgeEvent::Discovered { hit, route } => self.discovered(*hit, route.remote.ip(), hosts),
            WedgeEvent::Established { peer } => self.established(peer, hosts),
            WedgeEvent::Failed { peer, .. } | WedgeEvent::Closed { peer, .. } => self.failed(peer, hosts),
            WedgeEvent::Unanswered { peer, .. } => {
                // Perhaps somebody else is where it was.
                let config = &hosts.uplinks.config;
                let known = config.peers.iter().find(|known| known.opportunistic && known.name == *peer)?;
                hosts.wedge.inquire(hosts.now, hosts.random, places(config, known));
                None
            }
            _ => None,
        }
    }

    fn discovered(&mut self, hit: Hit, place: IpAddr, hosts: &mut Hosts<'_>) -> Option<News> {
        let is_there = |peer: &&PeerConfig| peer.locators.iter().any(|known| known.address == place);
        let config = &hosts.uplinks.config;
        if let Some(known) = config.peers.iter().filter(|peer| peer.opportunistic).find(is_there) {
            hosts.wedge.stop_inquiry(&places(config, known));
            return (known.hit != hit).then(|| {
                News::Warning(format!(
                    "at {place} is {hit}, but {} was {} when it was found out: somebody else may answer for it, and is \
                     refused; if it has a new identity, remove its line from {} and start again",
                    known.name, known.hit, self.path
                ))
            });
        }
        let peer = self.unknown.iter().find(is_there)?;
        if self.tentative.iter().any(|other| other.name == peer.name || other.hit == hit) {
            return None;
        }
        let other = config.peers.iter().find(|other| other.hit == hit).map(|other| other.name.as_str());
        let is_own = hit == hosts.own.0 || config.identities.iter().any(|own| own.hit == hit);
        if let Some(other) = other.or(is_own.then_some("this host")) {
            let told = format!("at {place}, where {} is asked who it is, is {other}", peer.name);
            return Some(News::Warning(told));
        }
        let known = peer.of(hit);
        let mut asked = peer_config(config, &known, self.lsi(hosts, hit), &hosts.uplinks.links);
        // Who has answered is no peer yet.
        asked.may_begin = false;
        hosts.wedge.add_peer(asked);
        hosts.wedge.connect(hosts.now, hosts.random, hit);
        self.tentative.push(known);
        None
    }

    fn established(&mut self, name: &str, hosts: &mut Hosts<'_>) -> Option<News> {
        let config = &hosts.uplinks.config;
        if let Some(known) = config.peers.iter().find(|peer| peer.opportunistic && peer.name == name) {
            hosts.wedge.stop_inquiry(&places(config, known));
            return None;
        }
        let at = self.tentative.iter().position(|peer| peer.name == name)?;
        let known = self.tentative.remove(at);
        self.unknown.retain(|peer| peer.name != name);
        hosts.wedge.stop_inquiry(&places(config, &known));
        let lsi = self.lsi(hosts, known.hit);
        hosts.wedge.add_peer(peer_config(config, &known, lsi, &hosts.uplinks.links));
        let hit = known.hit;
        hosts.uplinks.config.peers.push(known);
        hosts.uplinks.peer_lsis.push(lsi);
        if !hosts.uplinks.config.policies.is_empty() {
            // Those that are about it know it by its name.
            hosts.wedge.set_policies(policies(&hosts.uplinks.config));
        }
        let line = format!("{name} {hit}\n");
        let kept = self.file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()));
        Some(match kept {
            Ok(()) => News::Known(format!(
                "{name} is {hit}, and nobody else from now on: kept in {}; it is reached over IPv6, and after a restart by \
                 its LSI, too",
                self.path
            )),
            Err(error) => {
                News::Known(format!("{name} is {hit} until a restart; {} cannot be written: {error}", self.path))
            }
        })
    }

    /// Who has answered was not who it said.
    fn failed(&mut self, name: &str, hosts: &mut Hosts<'_>) -> Option<News> {
        let at = self.tentative.iter().position(|peer| peer.name == name)?;
        let peer = self.tentative.remove(at);
        hosts.wedge.remove_peer(hosts.now, hosts.random, peer.hit);
        None
    }

    /// The LSI of a peer that comes while we run.
    fn lsi(&self, hosts: &Hosts<'_>, hit: Hit) -> Lsi {
        let pool = &hosts.uplinks.config.guest_pool;
        let others = hosts.uplinks.peer_lsis.iter().chain(pool).chain(hosts.reserved);
        let ours = hosts.uplinks.config.other_lsis().chain([hosts.own.1]);
        let taken: Vec<Lsi> = others.copied().chain(ours).collect();
        hosts.uplinks.config.lsi_range.free(&hit, &taken)
    }
}

/// Where a peer is asked.
fn places(config: &Config, peer: &PeerConfig) -> Vec<SocketAddr> {
    peer.locators.iter().map(|known| remote(config, known)).collect()
}

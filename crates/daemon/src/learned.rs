//! Peers that are known by a HIP record of the DNS (RFC 8005): there are so many at most, their LSIs have had routes since the
//! start, and they end when their records have and no program has used them for a while.
//!
//! Nobody has vouched for them but the DNS, so they reach no program that has not spoken to them first.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use wedge::{PeerConfig, Wedge};
use wire::{Hit, Lsi};

use crate::config::{Config, LocatorConfig};
use crate::dns::resolver::{Found, Resolver};
use crate::start::remote;
use crate::told::Told;
use crate::uplinks::Uplinks;

/// So long nothing may have been sent or received before a peer ends.
const DISUSE: Duration = Duration::from_secs(600);
/// Between two looks for peers that end.
const INTERVAL: Duration = Duration::from_secs(30);
/// Names of one identity, so that whoever gives a name of his to another's identity does not keep its own ones away.
const MOST_NAMES: usize = 4;

/// A name with a HIP record, as the status shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LearnedName {
    /// The name.
    pub name: String,
    /// The identity that it has.
    pub hit: String,
    /// What IPv4 programs get.
    pub lsi: String,
    /// Whether a server that is believed has said that the record is signed.
    pub signed: bool,
    /// For how long the record holds yet, in seconds.
    pub holds_s: u64,
}

#[derive(Debug)]
struct Place {
    locators: Vec<IpAddr>,
    via: Vec<IpAddr>,
    signed: bool,
    until: Instant,
}

#[derive(Debug)]
struct Learned {
    lsi: Lsi,
    since: Instant,
    places: BTreeMap<String, Place>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct LearnedPeers {
    /// The LSIs that there are for them.
    lsis: Vec<Lsi>,
    peers: BTreeMap<Hit, Learned>,
    looked: Instant,
    /// Names that were given no peer because there were too many.
    refused: u64,
}

/// What is needed to act.
pub(crate) struct Host<'a> {
    pub(crate) now: Instant,
    pub(crate) own: (Hit, Lsi),
    pub(crate) random: &'a mut dyn CryptoRng,
    pub(crate) wedge: &'a mut Wedge,
    pub(crate) uplinks: &'a Uplinks,
}

/// What has become of a name.
enum Learnt {
    /// It leads to an identity that was known before; with its LSI, if there is a route.
    Known(Option<Lsi>),
    /// To a new peer. A peer that had to go for it is asked for again.
    New { lsi: Lsi, gone: Option<Hit> },
}

impl LearnedPeers {
    pub(crate) fn new(lsis: Vec<Lsi>) -> Self {
        Self { lsis, ..Self::default() }
    }

    /// LSIs that nobody else may have.
    pub(crate) fn lsis(&self) -> &[Lsi] {
        &self.lsis
    }

    /// Names that were given no peer because there were too many.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// A name has an identity: programs hear of it, and the log does once.
    pub(crate) fn introduce(&mut self, found: &Found, host: &mut Host<'_>, resolver: &mut Resolver, log: &mut Told) {
        let (name, now) = (told(&found.name), host.now);
        match self.learn(found, host) {
            Ok(learnt) => {
                let (lsi, is_new) = match learnt {
                    Learnt::Known(lsi) => (lsi, false),
                    Learnt::New { lsi, gone } => {
                        gone.into_iter().for_each(|gone| resolver.forget(gone));
                        (Some(lsi), true)
                    }
                };
                resolver.accept(now, found, lsi);
                if is_new && log.may(now, "learned", 30).is_some() {
                    let signed = if found.signed { "signed" } else { "not signed" };
                    let via = if found.via.is_empty() { "" } else { ", and its rendezvous servers" };
                    tracing::info!(
                        "{name} is {} by its HIP record, which is {signed}, at {:?}{via}",
                        found.hit,
                        found.locators
                    );
                }
            }
            Err(why) => {
                resolver.refuse(now, &found.name, now + INTERVAL);
                if log.may(now, "no room", 1).is_some() {
                    tracing::warn!("{name} is resolved as if it had no HIP record: {why}");
                }
            }
        }
    }

    /// A name has an identity.
    ///
    /// # Errors
    /// A sentence: there are too many.
    fn learn(&mut self, found: &Found, host: &mut Host<'_>) -> Result<Learnt, String> {
        let Uplinks { config, peer_lsis, .. } = host.uplinks;
        if found.hit == host.own.0 {
            return Ok(Learnt::Known(Some(host.own.1)));
        }
        if let Some(other) = config.identities.iter().find(|other| other.hit == found.hit) {
            return Ok(Learnt::Known(other.lsi));
        }
        // Where a configured peer is, its configuration says.
        if let Some(at) = config.peers.iter().position(|peer| peer.hit == found.hit) {
            return Ok(Learnt::Known(peer_lsis.get(at).copied()));
        }
        let is_new = !self.peers.contains_key(&found.hit);
        let mut gone = None;
        if is_new && self.peers.len() >= self.lsis.len() {
            gone = self.make_room(host);
            if gone.is_none() {
                self.refused += 1;
                return Err(format!("all {} places for peers of HIP records are in use", self.lsis.len()));
            }
        }
        let lsi = self.peers.get(&found.hit).map_or_else(|| self.free(found.hit), |peer| Some(peer.lsi));
        let lsi = lsi.ok_or("no LSI is left")?;
        let peer = self.peers.entry(found.hit);
        let peer = peer.or_insert_with(|| Learned { lsi, since: host.now, places: BTreeMap::new() });
        let name = told(&found.name);
        let place = Place {
            locators: found.locators.clone(),
            via: found.via.clone(),
            signed: found.signed,
            until: host.now + found.ttl,
        };
        if !peer.places.contains_key(&name) && peer.places.len() >= MOST_NAMES {
            // The one that ends first.
            let first = peer.places.iter().min_by_key(|(_, place)| place.until).map(|(name, _)| name.clone());
            first.map(|first| peer.places.remove(&first));
        }
        peer.places.insert(name, place);
        host.wedge.add_peer(peer.config(config, found.hit));
        Ok(if is_new { Learnt::New { lsi, gone } } else { Learnt::Known(Some(lsi)) })
    }

    /// Lets go who is not used any more; the names of those are to be asked for again.
    pub(crate) fn turn(&mut self, host: &mut Host<'_>) -> Vec<Hit> {
        if host.now.saturating_since(self.looked) < INTERVAL {
            return Vec::new();
        }
        self.looked = host.now;
        let (now, wedge, configured) = (host.now, &*host.wedge, &host.uplinks.config.peers);
        let ends: Vec<Hit> = self
            .peers
            .iter()
            .filter(|(hit, peer)| {
                peer.places.values().all(|place| place.until <= now) && peer.is_idle(now, wedge, **hit)
                    || configured.iter().any(|other| other.hit == **hit)
            })
            .map(|(hit, _)| *hit)
            .collect();
        for hit in &ends {
            self.end(*hit, host);
        }
        ends
    }

    /// The names, as the status shows them.
    pub(crate) fn status(&self, now: Instant) -> Vec<LearnedName> {
        let names = self.peers.iter().flat_map(|(hit, peer)| {
            peer.places.iter().map(move |(name, place)| LearnedName {
                name: name.clone(),
                hit: hit.to_string(),
                lsi: peer.lsi.to_string(),
                signed: place.signed,
                holds_s: place.until.saturating_since(now).as_nanos() / 1_000_000_000,
            })
        });
        names.collect()
    }

    /// Ends the peer that was used longest ago, if any was not for a while.
    fn make_room(&mut self, host: &mut Host<'_>) -> Option<Hit> {
        let (now, wedge) = (host.now, &*host.wedge);
        let used = |(hit, peer): &(&Hit, &Learned)| wedge.last_used(**hit).unwrap_or(peer.since).max(peer.since);
        let idle = self.peers.iter().filter(|(hit, peer)| peer.is_idle(now, wedge, **hit));
        let hit = *idle.min_by_key(used)?.0;
        self.end(hit, host);
        Some(hit)
    }

    fn end(&mut self, hit: Hit, host: &mut Host<'_>) {
        self.peers.remove(&hit);
        // One that is configured now stays a peer.
        if !host.uplinks.config.peers.iter().any(|peer| peer.hit == hit) {
            host.wedge.remove_peer(host.now, host.random, hit);
        }
    }

    /// The LSI that an identity gets: the same again after a restart, where no other has it.
    fn free(&self, hit: Hit) -> Option<Lsi> {
        let [.., x, y, z] = hit.0;
        let start = u32::from_be_bytes([0, x, y, z]) as usize % self.lsis.len().max(1);
        let (before, after) = self.lsis.split_at_checked(start)?;
        after.iter().chain(before).copied().find(|lsi| self.peers.values().all(|peer| peer.lsi != *lsi))
    }
}

impl Learned {
    fn is_idle(&self, now: Instant, wedge: &Wedge, hit: Hit) -> bool {
        let used = wedge.last_used(hit).unwrap_or(self.since).max(self.since);
        now.saturating_since(used) >= DISUSE
    }

    fn config(&self, config: &Config, hit: Hit) -> PeerConfig {
        let places = |of: fn(&Place) -> &[IpAddr]| {
            let mut all: Vec<SocketAddr> = Vec::new();
            for address in self.places.values().flat_map(of) {
                let place = remote(config, &LocatorConfig { address: *address, port: None, rate: None, delay: None });
                if !all.contains(&place) {
                    all.push(place);
                }
            }
            all
        };
        let name = self.places.keys().next().cloned().unwrap_or_default();
        let mut peer = PeerConfig::new(name, hit, self.lsi, places(|place| &place.locators));
        peer.via = places(|place| &place.via);
        // It may begin an association: two that do at once have to end as one (RFC 7401 §4.4.3).
        peer.only_answers = true;
        peer
    }
}

/// A name as people write it.
pub(crate) fn told(name: &hickory_proto::rr::Name) -> String {
    name.to_ascii().trim_end_matches('.').to_owned()
}

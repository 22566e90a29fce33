//! Locators that come and go while associations are up (RFC 8046 §3.2, §5; RFC 8047 §4).
//!
//! The paths of a locator that is gone go down at once on this side. The peer is told all locators that are left by an
//! UPDATE with a LOCATOR_SET, and drops the paths whose SPIs are not among them: SPIs, because addresses may have been
//! translated on the way. To a new locator the Initiator of the association opens a path; the Responder announces it, and
//! the Initiator does.
//!
//! The bit 'preferred' of a locator is 0 where its host wants data there only if nothing else works.

use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::hip::{Builder, Locator, PacketKind, Parameter};
use wire::{Hit, Spi};

use crate::association::{Announcement, Association, I1Sent, MAX_CANDIDATES, Opening, Phase, Retry};
use crate::config::HostConfig;
use crate::event::Event;
use crate::exchange::unmapped;
use crate::host::{Host, Output, mapped, routes, ways};
use crate::route::Route;
use crate::update::remove;

/// A lifetime of so many seconds, 136 years, has no end (RFC 8046 §4 has no word for that; it is what hosts send).
const UNLIMITED: u32 = u32::MAX;
/// Where a peer does not acknowledge our locators for long, they are sent that much more seldom.
const SELDOM: u64 = 8;
/// Of the Update IDs under which locators were sent, so many may still be acknowledged.
const ANSWERABLE: usize = 8;
/// Addresses of the peer that are remembered after their paths are gone.
const FORMER: usize = 8;

impl Host {
    /// This host can be reached at another locator from now on. Associations get paths there; nothing happens where it is
    /// known already.
    pub fn add_locator(&mut self, now: Instant, rng: &mut dyn CryptoRng, locator: SocketAddr, backup: bool) {
        if self.config.locators.iter().any(|known| known.ip() == locator.ip()) {
            return;
        }
        self.config.locators.push(locator);
        self.config.backups.retain(|address| *address != locator.ip());
        if backup {
            self.config.backups.push(locator.ip());
        }
        for (&peer, record) in &mut self.peers {
            self.out.go_on(record);
            match &mut record.phase {
                Phase::Up(up) if up.initiator => {
                    if up.keep_one(&mut self.out, peer, &self.config, |_| false).is_some() {
                        up.announce();
                    }
                    give_way(&mut self.out, up, now, &self.config, 0, |_| true);
                    if up.checks.is_some() {
                        continue;
                    }
                    let remotes = up.remotes();
                    up.learn(routes(&self.config, &record.peer, &remotes), now);
                }
                Phase::Up(up) => {
                    up.keep_one(&mut self.out, peer, &self.config, |_| false);
                    up.announce();
                }
                Phase::I1Sent(sent) => sent.routes = ways(&self.config, &record.peer),
                _ => {}
            }
        }
        self.tell_candidates_anew(now);
        self.tell_all(now, rng);
    }

    /// This host cannot be reached at an address any more. Its paths go down.
    pub fn remove_locator(&mut self, now: Instant, rng: &mut dyn CryptoRng, address: IpAddr) {
        let known = self.config.locators.len();
        self.config.locators.retain(|locator| locator.ip() != address);
        if self.config.locators.len() == known {
            return;
        }
        self.config.backups.retain(|backup| *backup != address);
        for (&peer, record) in &mut self.peers {
            let gone = |route: &Route| route.local.ip() == address;
            self.out.go_on(record);
            if record.phase.route().is_some_and(|route| gone(&route)) {
                // The puzzle belongs to the route; another one needs a fresh R1, and asks for it at once.
                let retry = Retry { at: now, tries: record.phase.tries(), ..Retry::new(now, &self.config) };
                let asked = record.phase.asked().cloned().unwrap_or_default();
                self.out.end_phase(record, "");
                let routes = ways(&self.config, &record.peer);
                record.phase = Phase::I1Sent(I1Sent { routes, retry, asked, i2: None });
                continue;
            }
            match &mut record.phase {
                Phase::Up(up) => {
                    if let Some(opening) = up.opening.take_if(|opening| gone(&opening.route)) {
                        self.out.spis.remove(&opening.spi_in);
                    }
                    if up.relay.as_ref().is_some_and(gone) {
                        up.relay = up.relay.and_then(|relay| {
                            let left = self.config.locators.iter();
                            let local = left.copied().find(|local| local.is_ipv4() == relay.remote.is_ipv4())?;
                            Some(Route { local, ..relay })
                        });
                    }
                    let mut free = up.candidates.extract_if(.., |candidate| gone(&candidate.route)).collect::<Vec<_>>();
                    // Where the peer is stays known where this was the last of our locators.
                    free.retain(|candidate| !candidate.stale);
                    free.iter().rev().for_each(|candidate| up.remember_remote(candidate.route.remote));
                    let lost: Vec<_> = up.paths.iter().filter(|path| gone(&path.route)).map(|path| path.id).collect();
                    if !lost.is_empty() || !up.initiator {
                        up.announce();
                    }
                    let kept = up.keep_one(&mut self.out, peer, &self.config, gone);
                    let lost = lost.into_iter().filter(|path| Some(*path) != kept);
                    lost.for_each(|path| remove(&mut self.out, up, peer, path));
                }
                Phase::I1Sent(sent) => sent.routes = ways(&self.config, &record.peer),
                _ => {}
            }
        }
        self.tell_candidates_anew(now);
        self.tell_all(now, rng);
    }

    fn tell_all(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        let peers: Vec<Hit> = self.peers.keys().copied().collect();
        for peer in peers {
            self.open_paths(now, rng, peer);
            self.keep_checking(now, rng, peer);
        }
    }

    /// Tells a peer this host's locators, if they have changed and nothing else is under way.
    pub(crate) fn announce_locators(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if up.announce && up.announcement.is_none() && up.opening.is_none() {
            // An Initiator without a path opens one first.
            if up.paths.is_empty() && up.initiator {
                return;
            }
            up.announce = false;
            let retry = Retry { at: now, tries: 0, wait: self.config.retransmission };
            up.announcement = Some(Announcement { seqs: Vec::new(), retry });
        }
        let Some(announcement) = up.announcement.as_ref().filter(|announcement| announcement.retry.at <= now) else {
            return;
        };
        let mut retry = announcement.retry;
        // As patient as who waits for the echo of an offer: a path may be what is broken.
        let long = retry.tries >= 2 * self.config.max_update_tries;
        if long && up.paths.is_empty() {
            return self.forget_unreachable(peer);
        }
        let ways = up.ways(&self.config);
        let Some(&route) = ways.get(retry.tries as usize % ways.len().max(1)) else {
            // Not before there is a locator again.
            up.announcement = None;
            up.announce = true;
            return;
        };
        // Sealed anew each time: what was overtaken by a later UPDATE would be refused as old (RFC 7401 §6.12).
        let seq = up.next_update_id();
        up.expose_offers();
        let builder = Builder::new(PacketKind::Update, self.identity.hit(), peer)
            .push_some(up.unchanged(route).as_ref())
            .push(&Parameter::LocatorSet(all_locators(up, &self.config)))
            .push(&Parameter::Seq(seq));
        let Ok(packet) = up.session.seal(builder, &self.identity, rng) else {
            // More locators than fit into a packet.
            up.announcement = None;
            return;
        };
        if retry.tries == 0 {
            retry = Retry::new(now, &self.config);
        } else {
            retry.again(now, &self.config);
            self.out.counters.retransmissions += 1;
        }
        if long {
            retry.at = now + self.config.max_retransmission * SELDOM;
        }
        if let Some(announcement) = &mut up.announcement {
            announcement.retry = retry;
            announcement.seqs.push(seq);
            let old = announcement.seqs.len().saturating_sub(ANSWERABLE);
            announcement.seqs.drain(..old);
        }
        self.out.send(route, packet);
    }

    /// There is no path, and none can be opened: the peer may have forgotten everything. Who wants to talk to it begins
    /// anew.
    pub(crate) fn forget_unreachable(&mut self, peer: Hit) {
        if let Some(record) = self.peers.get_mut(&peer) {
            self.out.end(record, "no path to the peer is left");
        }
    }
}

/// There is something new to try: an opening that leads to where the peer is not, or was sent more than `tries` times,
/// waits.
pub(crate) fn give_way(
    out: &mut Output,
    up: &mut Association,
    now: Instant,
    config: &HostConfig,
    tries: u32,
    is_there: impl Fn(IpAddr) -> bool,
) {
    let vain = |opening: &mut Opening| opening.retry.tries > tries || !is_there(opening.route.remote.ip());
    if let Some(opening) = up.opening.take_if(vain) {
        out.spis.remove(&opening.spi_in);
        up.renewals.extend(opening.replaces);
        // The peer may have the path already, and has to hear that it is none.
        up.announce();
        if is_there(opening.route.remote.ip()) {
            up.postpone(opening.route, now, config.path_retry);
        }
    }
}

/// Takes the peer's locators: forgets the paths that it no longer has, and notes which of them it wants as backups. In an
/// UPDATE that opens a path only those in use are listed, so nothing follows from what is missing there. `complete`: all are
/// listed, and which paths are about to lead to one of them.
pub(crate) fn take(out: &mut Output, up: &mut Association, peer: Hit, set: &[Locator], complete: Option<&[PathId]>) {
    if let Some(moving) = complete.filter(|_| !set.is_empty()) {
        let by_spi = set.iter().any(|locator| locator.spi.is_some());
        let listed = |spi: Spi, address: IpAddr| {
            set.iter().any(|locator| match by_spi {
                true => locator.spi == Some(spi),
                false => unmapped(locator.address) == address,
            })
        };
        let gone = up.paths.iter().filter(|path| !listed(path.spi_out, path.route.remote.ip()));
        let gone: Vec<PathId> = gone.map(|path| path.id).filter(|id| !moving.contains(id)).collect();
        gone.into_iter().for_each(|path| remove(out, up, peer, path));
    }
    for path in &mut up.paths {
        if let Some(locator) = set.iter().find(|locator| locator.spi == Some(path.spi_out)) {
            path.backup = !locator.preferred;
        }
    }
    if complete.is_some() && set.is_empty() {
        // RFC 8046 §5.3: what is not listed is deprecated, and nothing is. There is no other address to use instead.
        up.paths.iter_mut().for_each(|path| path.deprecated = true);
    }
    up.tell_spare(out, peer);
}

/// Our locators in use, each with the SPI that is received there (RFC 8046 §4).
pub(crate) fn locators_in_use(up: &Association, config: &HostConfig, opening: Option<(Route, Spi)>) -> Vec<Locator> {
    let all = up.paths.iter().map(|path| (path.route, path.spi_in)).chain(opening);
    all.map(|(route, spi)| locator(config, route.local.ip(), Some(spi))).collect()
}

/// Where this host can be reached, before there are paths. The first is that which the peer has found.
pub(crate) fn announced(config: &HostConfig) -> Vec<Locator> {
    config.locators.iter().map(|own| locator(config, own.ip(), None)).collect()
}

/// All our locators, also those without a path.
fn all_locators(up: &Association, config: &HostConfig) -> Vec<Locator> {
    let mut set = locators_in_use(up, config, None);
    // Without a path no SPI would tell the peer that it has none either. 0 is nobody's (RFC 4303 §2.1).
    let none = up.paths.is_empty().then_some(Spi(0));
    for free in &config.locators {
        let address = mapped(free.ip());
        if !set.iter().any(|locator| locator.address == address) {
            set.push(locator(config, free.ip(), none));
        }
    }
    set
}

fn locator(config: &HostConfig, address: IpAddr, spi: Option<Spi>) -> Locator {
    let preferred = !config.backups.contains(&address);
    Locator { traffic: 0, preferred, lifetime: u32::MAX, spi, address: mapped(address) }
}

impl Association {
    /// The peer is to be told our locators. What it was being told before is out of date.
    pub(crate) fn announce(&mut self) {
        self.announce = true;
        self.announcement = None;
    }

    /// Notes how long the peer's addresses are good (RFC 8046 §4). Those that are told are good again.
    pub(crate) fn note_lifetimes(&mut self, out: &mut Output, peer: Hit, set: &[Locator], now: Instant) {
        for locator in set {
            let address = unmapped(locator.address);
            self.lifetimes.retain(|(known, _)| *known != address);
            if locator.lifetime < UNLIMITED {
                self.lifetimes.push((address, now + Duration::from_secs(locator.lifetime.into())));
                let over = self.lifetimes.len().saturating_sub(MAX_CANDIDATES);
                self.lifetimes.drain(..over);
            }
            let there = self.paths.iter_mut().filter(|path| path.route.remote.ip() == address);
            there.for_each(|path| path.deprecated = false);
        }
        self.tell_spare(out, peer);
    }

    /// Addresses whose lifetime has ended are deprecated: nothing is sent there where there is another (RFC 8046 §4, §5.5).
    pub(crate) fn expire(&mut self, out: &mut Output, peer: Hit, now: Instant) {
        for (address, _) in self.lifetimes.extract_if(.., |(_, until)| *until <= now) {
            let there = self.paths.iter_mut().filter(|path| path.route.remote.ip() == address);
            there.for_each(|path| path.deprecated = true);
            let there = self.candidates.iter_mut().filter(|candidate| candidate.route.remote.ip() == address);
            there.for_each(|candidate| candidate.stale = true);
        }
        self.tell_spare(out, peer);
    }

    /// Tells of which paths it has changed that they are for data only where no other works.
    pub(crate) fn tell_spare(&mut self, out: &mut Output, peer: Hit) {
        for path in &mut self.paths {
            let spare = path.backup || path.deprecated;
            if std::mem::replace(&mut path.spare, spare) != spare {
                out.events.push_back(Event::PathBackup { peer, path: path.id, backup: spare });
            }
        }
    }

    /// Whether the peer, who tells these locators, has answered our opening: it has an SPI there that is no path's of ours.
    /// The answer may take longer than what was told on a faster path. An opening that gave way to that would be followed
    /// by the next, whose answer is overtaken by the next locators, without an end.
    pub(crate) fn is_answered(&self, told: &[Locator]) -> bool {
        let ours = |spi: Spi| spi.0 == 0 || self.paths.iter().any(|path| path.spi_out == spi);
        self.opening.as_ref().is_some_and(|opening| {
            let there = |locator: &&Locator| unmapped(locator.address) == opening.route.remote.ip();
            told.iter().filter(there).filter_map(|locator| locator.spi).any(|spi| !ours(spi))
        })
    }

    /// Remembers where the peer was, for the time without a path.
    pub(crate) fn remember_remote(&mut self, remote: SocketAddr) {
        self.former.retain(|former| *former != remote);
        self.former.insert(0, remote);
        self.former.truncate(FORMER);
    }

    /// Where the peer is, or where nothing is known of that, was.
    fn remotes(&self) -> Vec<IpAddr> {
        let candidates = self.candidates.iter().map(|candidate| candidate.route.remote.ip());
        let known: Vec<_> = self.paths.iter().map(|path| path.route.remote.ip()).chain(candidates).collect();
        if known.is_empty() { self.former.iter().map(SocketAddr::ip).collect() } else { known }
    }

    /// As Initiator: the peer has told all its locators. Those that it no longer has are not tried any more; where they
    /// are configured, after the others, because addresses may have been translated on the way. Those that it has are
    /// tried soon.
    pub(crate) fn review_remotes(
        &mut self,
        configured: &[SocketAddr],
        told: &[IpAddr],
        now: Instant,
        pause: clock::Duration,
    ) {
        let known = |remote: &SocketAddr| configured.contains(remote) || told.contains(&remote.ip());
        self.candidates.retain(|candidate| known(&candidate.route.remote));
        for candidate in &mut self.candidates {
            if !told.contains(&candidate.route.remote.ip()) {
                candidate.not_before = candidate.not_before.max(now + pause);
                candidate.stale = true;
            } else if candidate.failures > 0 || candidate.stale {
                (candidate.failures, candidate.not_before, candidate.stale) = (0, now, false);
            }
        }
    }

    /// The routes on which the peer may hear of us: those of the paths, or without one any there may be.
    fn ways(&self, config: &HostConfig) -> Vec<Route> {
        if !self.paths.is_empty() {
            return self.paths.iter().filter(|path| !path.stranded).map(|path| path.route).collect();
        }
        if let Some(relay) = self.relay {
            return vec![relay];
        }
        let fits = |local: SocketAddr, remote: SocketAddr| {
            local.is_ipv4() == remote.is_ipv4() && (local.port() == 0) == (remote.port() == 0)
        };
        let locals = || config.locators.iter().copied();
        let pairs = self.former.iter().flat_map(|&remote| locals().map(move |local| Route { local, remote }));
        pairs.filter(|route| fits(route.local, route.remote)).collect()
    }
}

//! Peers that may have forgotten the association, and paths that stay dead.
//!
//! A host that was started again cannot prove that it has lost its keys: its hint could be anybody's. So it is not
//! believed but checked: heartbeats go out at once, and only if none is answered a new association begins. What waited, or
//! was in flight, is kept for it.

use crate::path::Path;
use crate::peer::PeerState;
use crate::wedge::Wedge;
use clock::{Duration, Instant};
use rand_core::CryptoRng;
use scheduler::PathId;

/// An answer may take so long, or three round trips: time for four heartbeats, of which three may be lost. TCP inside has
/// a timer of its own that doubles while nothing gets through.
const PATIENCE: Duration = Duration::from_millis(500);
/// So long after a doubt that was wrong no other is raised: hints cost nobody anything.
const CERTAIN: Duration = Duration::from_secs(1);
/// A path that has been dead for so long is opened anew by who opens paths: the peer may have given it up, or a NAT may let
/// nothing through any more.
const REOPEN_AFTER: Duration = Duration::from_secs(3);
/// And one that has been dead for so long, while others work, is given up, that another may take its place.
const DROP_AFTER: Duration = Duration::from_secs(30);

impl PeerState {
    /// When what has been doubted is certain.
    pub(crate) fn doubt_deadline(&self) -> Option<Instant> {
        let longest = self.paths.iter().filter_map(|path| self.srtt(path)).max().unwrap_or_default();
        self.doubt.map(|since| since + PATIENCE.max(longest * 3))
    }

    /// Takes what was not delivered out of the association that ends, for the next one.
    pub(crate) fn keep(&mut self, now: Instant) -> u64 {
        let mut packets = self.sender.drain(now);
        // What waits already came later.
        packets.truncate(PeerState::KEPT_PACKETS);
        let kept = packets.len() as u64;
        for packet in packets.into_iter().rev() {
            self.wait_first(now, packet.payload);
        }
        kept
    }
}

impl Wedge {
    /// Somebody says that the peer does not know our packets.
    pub(crate) fn doubt(&mut self, now: Instant, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        if peer.paths.is_empty() || peer.doubt.is_some() || now < peer.certain_until {
            return;
        }
        self.counters.doubts += 1;
        peer.doubt = Some(now);
        for path in &mut peer.paths {
            path.heartbeat.traffic(now);
            path.heartbeat.doubt(now);
        }
    }

    /// Whether the doubt was right.
    pub(crate) fn resolve_doubt(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let Some(since) = peer.doubt else { return };
        if peer.paths.iter().any(|path| path.heartbeat.has_answered_since(since)) {
            peer.doubt = None;
            peer.certain_until = now + CERTAIN;
        } else if peer.doubt_deadline().is_some_and(|at| at <= now) {
            self.begin_anew(now, rng, index, "the peer does not know it any more");
        }
    }

    /// Ends the association with a peer that has forgotten it, and begins another.
    pub(crate) fn begin_anew(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize, reason: &str) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let hit = peer.config.hit;
        self.counters.rescheduled += peer.keep(now);
        self.host.abandon(hit, reason);
        self.drive_host(now, rng);
        if self.host.connect(now, rng, hit).is_err() {
            self.refuse_waiting(index);
        }
        self.drive_host(now, rng);
    }

    /// Opens paths anew that stay dead, or gives them up.
    pub(crate) fn look_after_the_dead(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let hit = peer.config.hit;
        let others_work = peer.paths.iter().any(|path| path.answers());
        let (mut reopened, mut dropped) = (Vec::new(), Vec::new());
        for path in &mut peer.paths {
            let Some(since) = path.heartbeat.dead_since() else {
                path.is_reopened = false;
                continue;
            };
            if others_work && now - since >= DROP_AFTER {
                dropped.push(path.id);
            } else if now - since >= REOPEN_AFTER && !std::mem::replace(&mut path.is_reopened, true) {
                reopened.push(path.id);
            }
        }
        if reopened.is_empty() && dropped.is_empty() {
            return;
        }
        // What waits to take over has the same route, and nothing has come on it either.
        let waits = |path: &&Path| path.predecessor.is_some_and(|old| dropped.contains(&old));
        let waiting: Vec<PathId> = peer.successors.iter().filter(waits).map(|path| path.id).collect();
        dropped.extend(waiting);
        let opens = self.host.is_initiator(hit) == Some(true);
        for path in reopened.into_iter().filter(|_| opens) {
            self.host.renew_path(now, rng, hit, path);
        }
        for path in dropped {
            self.host.drop_path(now, hit, path);
        }
        self.drive_host(now, rng);
    }
}

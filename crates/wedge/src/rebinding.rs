//! A peer that is suddenly somewhere else: a NAT before it has forgotten a path and given it another port, or another address.
//!
//! Something authentic on a path's SPI from elsewhere moves nothing: anybody on the way can copy a packet and send it from
//! anywhere, and a peer can name another's address. But a question goes there at once, a heartbeat whose nonce nobody can
//! guess, and no more bytes than three times those that came (RFC 8046 §5.6). Where the answer comes from there, the path is
//! there, and until a second answer no more data go there than that.

use crate::native_esp::NativeEsp;
use crate::path::Credit;
use crate::wedge::Wedge;
use crate::{Transmit, WedgeEvent};
use clock::{Duration, Instant};
use hip::Route;
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::ip::protocol;

/// Between two questions to one place, and between one place and another.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Where the peer may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rebinding {
    route: Route,
    nonce: u64,
    asked_at: Instant,
    credit: Credit,
}

impl Wedge {
    /// An authentic packet of so many bytes came on a path's SPI, but not from where the path leads.
    pub(crate) fn ask_elsewhere(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        index: usize,
        id: PathId,
        route: Route,
        wire: usize,
    ) {
        self.counters.elsewhere += 1;
        let own = self.hit.address();
        let Some(peer) = self.peers.get_mut(index) else { return };
        let to = peer.config.hit.address();
        let id = peer.in_use(id);
        let Some(path) = peer.coming_path_mut(id) else { return };
        if route.local != path.route.local || route.in_udp() != path.route.in_udp() {
            return;
        }
        // Without ports nobody could tell where the path leads by now.
        if path.sheds_udp() {
            path.native.give_up(now);
        }
        let known = path.rebinding;
        let is_early = known.is_some_and(|known| now - known.asked_at < ASK_AGAIN);
        let mut asked = match known {
            Some(known) if known.route == route => known,
            Some(_) if is_early => return,
            _ => {
                let credit = Credit { applies: true, ..Credit::default() };
                Rebinding { route, nonce: rng.next_u64(), asked_at: Instant::ZERO, credit }
            }
        };
        asked.credit.heard = asked.credit.heard.saturating_add(wire as u64);
        let is_due = asked.asked_at == Instant::ZERO || !is_early;
        if is_due {
            let mut question: Vec<Transmit> = Vec::new();
            let said = path.credit.said;
            let own_route = std::mem::replace(&mut path.route, route);
            if let Some(message) = path.question(asked.nonce, (own, to), 0) {
                let _ = peer.send_control(now, id, (protocol::ICMPV6, &message), true, rng, &mut question);
            }
            let Some(path) = peer.coming_path_mut(id) else { return };
            path.route = own_route;
            path.credit.said = said;
            let bytes: usize = question.iter().map(|transmit| path.header_len() + transmit.bytes.len()).sum();
            if asked.credit.allows(bytes) {
                asked.credit.said += bytes as u64;
                asked.asked_at = now;
                self.counters.heartbeats_out += 1;
                self.transmit.append(&mut question);
            }
        }
        if let Some(path) = peer.coming_path_mut(id) {
            path.rebinding = Some(asked);
        }
    }

    /// A heartbeat was answered on a path's SPI, but not from where the path leads.
    pub(crate) fn answered_elsewhere(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        index: usize,
        (id, route): (PathId, Route),
        nonce: u64,
    ) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let hit = peer.config.hit;
        let Some(path) = peer.coming_path_mut(id) else { return };
        let is_there = |asked: &Rebinding| asked.route == route && asked.nonce == nonce;
        let Some(asked) = path.rebinding.filter(is_there) else { return };
        if let Some(before) = path.predecessor {
            // The peer has the new keys, and its echo of our UPDATE came from where that did not go.
            peer.succeed(now, before, &mut self.counters);
        }
        let Some(path) = peer.path_mut(id) else { return };
        path.credit = asked.credit;
        self.counters.heartbeats_answered += 1;
        self.moved(now, rng, index, (id, route));
        self.host.path_moved(hit, id, route);
        self.drive_host(now, rng);
        self.flush_waiting(now, rng, index);
    }

    /// A path leads elsewhere from now on.
    pub(crate) fn moved(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize, (id, route): (PathId, Route)) {
        let local = self.config.paths.iter().find(|path| path.locator.ip() == route.local.ip());
        let local = local.map_or_else(|| route.local.ip().to_string(), |path| path.name.clone());
        let Some(peer) = self.peers.get_mut(index) else { return };
        let name = peer.config.name.clone();
        let parameters = self.config.parameters(&peer.config, route);
        let Some(path) = peer.any_path_mut(id).filter(|path| path.route != route) else { return };
        let is_same_address = path.route.remote.ip() == route.remote.ip() && path.route.local == route.local;
        if path.route.local != route.local {
            (path.name, path.parameters) = (local, parameters);
        }
        path.rebinding = None;
        path.route = route;
        path.native = NativeEsp::default();
        if !is_same_address {
            path.mtu.forget(path.parameters.mtu, path.overhead());
            path.told_mtu = None;
        }
        path.verified = true;
        path.standby = false;
        let _ = path.heartbeat.moved(now);
        path.heartbeat.traffic(now);
        let path_name = path.name.clone();
        self.counters.paths_moved += 1;
        // Another address is another way, of which nothing is known; another port of the same NAT is none. What the old
        // one had in flight is lost.
        if let Some(peer) = self.peers.get_mut(index) {
            if is_same_address {
                peer.sender.on_path_moved(now, id);
            } else {
                peer.sender.on_path_alive(now, id);
            }
            peer.count(&mut self.counters);
            peer.refresh(now);
        }
        self.events.push_back(WedgeEvent::PathMoved { peer: name, path: id, name: path_name, route });
        self.flush_waiting(now, rng, index);
    }
}

//! Guests: hosts that are no peers and may come all the same. While one stays it is a peer like others; then its place, its LSI and
//! its memory are the next one's.

use crate::config::PeerConfig;
use crate::event::WedgeEvent;
use crate::peer::PeerState;
use crate::wedge::Wedge;
use clock::Instant;
use rand_core::CryptoRng;
use wire::{Hit, Lsi};

impl Wedge {
    /// The association side lets somebody in.
    pub(crate) fn admit(&mut self, hit: Hit) {
        let Some(guests) = &self.config.guests else { return };
        if self.by_hit.contains_key(&hit) {
            return;
        }
        let idle = guests.idle;
        let is_free = |lsi: &Lsi| !self.by_lsi.contains_key(lsi);
        // There are as many as guests at a time.
        let Some(lsi) = guests.lsis.iter().copied().find(is_free) else { return };
        let name = hit.to_string();
        let mut guest = PeerState::new(PeerConfig::new(name.clone(), hit, lsi, []), self.config.scheduler.clone());
        guest.set_policies(&self.policies);
        guest.idle = Some(idle);
        let index = self.place(guest);
        self.by_hit.insert(hit, index);
        self.by_lsi.insert(lsi, index);
        self.touch(index);
        self.events.push_back(WedgeEvent::Admitted { peer: name, lsi });
    }

    /// The association side has forgotten a guest.
    pub(crate) fn depart(&mut self, hit: Hit) {
        let Some(index) = self.by_hit.get(&hit).copied() else { return };
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.idle.is_some()) else { return };
        let name = peer.config.name.clone();
        self.vacate(index);
        self.events.push_back(WedgeEvent::Departed { peer: name });
    }

    /// A guest with whom no program has had anything to do for long has to go.
    pub(crate) fn end_idle(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get(index) else { return };
        if peer.idle_deadline().is_some_and(|at| at <= now) {
            let hit = peer.config.hit;
            self.host.close(now, rng, hit);
            self.drive_host(now, rng);
        }
    }
}

impl PeerState {
    /// When it has to go, if it is a guest that is here.
    pub(crate) fn idle_deadline(&self) -> Option<Instant> {
        self.since.and(self.idle).map(|idle| self.used_at + idle)
    }
}

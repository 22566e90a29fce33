//! Hosts that nobody has configured and that may come all the same, where this host lets them (RFC 7401 §7: access control lists
//! with wildcards). They only begin: where they are nobody knows before. What a stranger costs before it has proved an identity
//! is what any costs, out of the same budgets and without state; then it takes one of a bounded number of places, until its
//! association ends.

use std::collections::{BTreeMap, VecDeque};

use wire::Hit;
use wire::hip::{Packet, PacketKind};

use crate::association::{PeerRecord, Phase};
use crate::config::Peer;
use crate::event::Event;
use crate::host::Host;

/// Guests that are gone and whose old packets still do not count.
const FORMER: usize = 4096;

/// Who may come without being configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guests {
    /// Their HITs, or the beginnings of these in bits; empty for anybody.
    pub hits: Vec<(Hit, u8)>,
    /// The most of them at a time, those included that are just going.
    pub most: usize,
}

impl Guests {
    /// Anybody, so many at a time.
    pub fn anybody(most: usize) -> Self {
        Self { hits: Vec::new(), most }
    }

    fn admit(&self, hit: Hit) -> bool {
        let bits = u128::from_be_bytes(hit.0);
        let begins = |(prefix, length): &(Hit, u8)| {
            let mask = u128::MAX.checked_shl(128 - u32::from(*length).min(128)).unwrap_or(0);
            (bits ^ u128::from_be_bytes(prefix.0)) & mask == 0
        };
        hit.is_orchid() && (self.hits.is_empty() || self.hits.iter().any(begins))
    }
}

/// Those that are there, and what is remembered of others.
#[derive(Debug, Default)]
pub(crate) struct Present {
    count: usize,
    /// How many associations each of them has had, so that an I2 of one of these ends nothing and begins nothing.
    former: BTreeMap<Hit, u64>,
    order: VecDeque<Hit>,
}

impl Host {
    /// Whether a packet of somebody who is no peer may be taken: then he is a guest, until [`Host::see_off`].
    pub(crate) fn welcome(&mut self, packet: &Packet<'_>) -> bool {
        let sender = packet.sender();
        let begins = matches!(packet.kind(), PacketKind::I1 | PacketKind::I2);
        let admits = self.config.guests.as_ref().is_some_and(|guests| {
            begins && !self.leaving && self.guests.count < guests.most && sender != self.hit() && guests.admit(sender)
        });
        if admits {
            let epoch = self.guests.former.get(&sender).copied().unwrap_or(0);
            let record = PeerRecord { epoch, is_guest: true, ..PeerRecord::new(Peer::new(sender, Vec::new())) };
            self.peers.insert(sender, record);
            self.guests.count += 1;
        }
        admits
    }

    /// A guest with whom there is nothing any more is forgotten.
    pub(crate) fn see_off(&mut self, peer: Hit) {
        let is_over = |record: &&PeerRecord| {
            record.is_guest && record.standby.is_none() && matches!(record.phase, Phase::Unassociated | Phase::Failed)
        };
        let Some(epoch) = self.peers.get(&peer).filter(is_over).map(|record| record.epoch) else { return };
        self.peers.remove(&peer);
        self.guests.count = self.guests.count.saturating_sub(1);
        if epoch == self.guests.former.get(&peer).copied().unwrap_or(0) {
            // It has been no more than somebody who asks.
            return;
        }
        let Present { former, order, .. } = &mut self.guests;
        if former.insert(peer, epoch).is_none() {
            order.push_back(peer);
        }
        if order.len() > FORMER
            && let Some(oldest) = order.pop_front()
        {
            former.remove(&oldest);
        }
        self.out.events.push_back(Event::Departed { peer });
    }

    /// Somebody who was a guest is configured, or forgotten at once.
    pub(crate) fn is_guest_no_more(&mut self, peer: Hit) {
        if let Some(record) = self.peers.get_mut(&peer)
            && std::mem::take(&mut record.is_guest)
        {
            self.guests.count = self.guests.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_compared_bit_by_bit() {
        let hit = |text: &str| text.parse::<Hit>().unwrap();
        let guests = |prefix: &str, length| Guests { hits: vec![(hit(prefix), length)], most: 1 };
        for (length, admits) in [(0, true), (28, true), (31, true), (32, false), (128, false), (200, false)] {
            assert_eq!(guests("2001:23::1", length).admit(hit("2001:22::1")), admits, "{length}");
        }
        assert!(guests("2001:22::1", 128).admit(hit("2001:22::1")) && Guests::anybody(1).admit(hit("2001:2f::7")));
        assert!(!Guests::anybody(1).admit(hit("2001:db8::1")), "no HIT");
    }
}

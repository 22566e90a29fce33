//! The data relay (RFC 9028 §4.12): ESP packets of a client that has found no other way to a peer. Only where the server's owner
//! wants it, and no more than he has set.
//!
//! The client answers an UPDATE that opens a path by the relay with a PEER_PERMISSION in it: which SPIs the two use, and where the
//! peer is. RELAY_HMAC vouches for it, so nobody but a client can have the relay carry anything, and nothing goes to where no
//! HIP packet of the client's has gone. RFC 9028 has an UPDATE of its own for that, and a port for each client; here the SPI and
//! the place that a packet comes from say whose it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clock::{Duration, Instant};
use wire::hip::PeerPermission;
use wire::{Hit, Spi};

use crate::host::{Host, Refusal};
use crate::rate::{Bucket, Rate};
use crate::registration::RELAY_ESP;
use crate::rendezvous::local;
use crate::route::Route;

/// Directions of security associations of one client: eight paths, or four and their successors.
const MOST_OF_CLIENT: usize = 16;
/// And of all.
const MOST: usize = 8_192;
/// Without a packet for so long a direction is forgotten. Heartbeats come more often.
const IDLE: Duration = Duration::from_secs(60);
/// What may come at once, of a second's bytes: a twentieth, and no less than some packets.
const BURST: u32 = 20;
const LEAST_BURST: u32 = 64 * 1024;

/// What is carried.
#[derive(Default)]
pub(crate) struct Carrier {
    /// By where a packet comes from, and its SPI.
    flows: BTreeMap<(SocketAddr, Spi), Flow>,
    bytes: Bucket,
}

/// One direction of a pair of security associations.
struct Flow {
    client: Hit,
    /// Where its packets go; none: to the client, wherever that is.
    to: Option<SocketAddr>,
    last: Instant,
}

impl Carrier {
    /// Forgets what is not used, and the oldest of a client that has too many. Whether there is room for two more.
    fn make_room(&mut self, now: Instant, client: Hit) -> bool {
        self.flows.retain(|_, flow| now.saturating_since(flow.last) < IDLE);
        while self.flows.values().filter(|flow| flow.client == client).count() + 2 > MOST_OF_CLIENT {
            let own = self.flows.iter().filter(|(_, flow)| flow.client == client);
            let Some(oldest) = own.min_by_key(|(key, flow)| (flow.last, **key)).map(|(key, _)| *key) else { break };
            self.flows.remove(&oldest);
        }
        self.flows.len() + 2 <= MOST
    }
}

impl Host {
    /// A client wants its data to and from a peer carried. `peer`: where its packet is passed on to.
    pub(crate) fn permit(
        &mut self,
        now: Instant,
        from: SocketAddr,
        client: Hit,
        peer: SocketAddr,
        permission: &PeerPermission,
    ) -> Result<(), Refusal> {
        if self.peers.get(&client).and_then(|record| record.is_served(now, RELAY_ESP)).is_none() {
            return Err(Refusal::Unexpected);
        }
        let (ours, theirs) = (permission.outbound, permission.inbound);
        // RFC 4303 §2.1: SPIs to 255 are reserved.
        if permission.peer.in_udp() != Some(peer) || ours.0 < 256 || theirs.0 < 256 {
            return Err(Refusal::BadPlace);
        }
        let keys = [(from, ours), (peer, theirs)];
        // RFC 9028 §4.12.3: two clients that use one SPI towards the same place.
        let taken = |key| self.carrier.flows.get(key).is_some_and(|flow: &Flow| flow.client != client);
        if keys.iter().any(taken) {
            return Err(Refusal::Unexpected);
        }
        if !self.carrier.make_room(now, client) {
            return Err(Refusal::TooMany);
        }
        for (key, to) in keys.into_iter().zip([Some(peer), None]) {
            self.carrier.flows.insert(key, Flow { client, to, last: now });
        }
        Ok(())
    }

    /// Whether [`Host::carry`] has to do with such a packet.
    pub fn carries(&self, route: Route, spi: Spi) -> bool {
        self.carrier.flows.contains_key(&(route.remote, spi))
    }

    /// Where an ESP packet of `len` bytes goes that has come on `route` and is not for this host. None: it is nothing that this
    /// host carries. Nowhere: it is more than this host carries.
    pub fn carry(&mut self, now: Instant, route: Route, spi: Spi, len: usize) -> Option<Option<Route>> {
        let data = self.config.registrar.map_or(0, |registrar| registrar.data);
        let flow = self.carrier.flows.get_mut(&(route.remote, spi)).filter(|_| data > 0 && !self.leaving)?;
        let up = self.peers.get(&flow.client)?.is_served(now, RELAY_ESP)?;
        flow.last = now;
        let rate = Rate::new(data, (data / BURST).max(LEAST_BURST));
        if !self.carrier.bytes.take_many(now, rate, len) {
            self.out.counters.not_carried += 1;
            return Some(None);
        }
        let there = match flow.to {
            Some(place) => local(&self.config, route.local, place.ip()).map(|local| Route { local, remote: place }),
            None => up.any_route(),
        };
        self.out.counters.carried += u64::from(there.is_some());
        Some(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_bounded_for_each_client_and_in_all() {
        let mut carrier = Carrier::default();
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let client = |number: u16| Hit([number.to_be_bytes(); 8].concat().try_into().unwrap());
        let take = |carrier: &mut Carrier, now: u64, number: u16, spi: u32| {
            let there = carrier.make_room(at(now), client(number));
            for spi in [spi, spi + 1].into_iter().filter(|_| there) {
                let flow = Flow { client: client(number), to: None, last: at(now) };
                carrier.flows.insert((([192, 0, 2, 1], number).into(), Spi(spi)), flow);
            }
            there
        };
        // The oldest go.
        for number in 0..1_000 {
            assert!(take(&mut carrier, u64::from(number), 1, 2 * number));
        }
        assert_eq!(carrier.flows.len(), MOST_OF_CLIENT);
        assert!(carrier.flows.keys().all(|(_, spi)| spi.0 >= 2_000 - MOST_OF_CLIENT as u32));
        // 8,192 of all, until some have been silent for a minute.
        let all = (1..2_000).flat_map(|number| (0..8).map(move |pair| (number, 2 * pair)));
        let taken = all.filter(|(number, spi)| take(&mut carrier, 1_000, *number, 10_000 + spi)).count();
        assert!(taken >= MOST / 2 && carrier.flows.len() <= MOST, "{taken}");
        assert!(!take(&mut carrier, 1_000, 3_000, 0));
        assert!(take(&mut carrier, 62_000, 3_000, 0));
        assert_eq!(carrier.flows.len(), 2);
    }
}

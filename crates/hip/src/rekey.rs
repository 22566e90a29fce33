//! Keys do not live for ever, nor does any state.
//!
//! With a Sinnet peer a path gets new keys in an UPDATE with a new Diffie-Hellman exchange, each path by itself
//! (`opening`). With other hosts nothing is sure but the base exchange: it is done while the association goes on, which
//! the new one replaces when it is there. If it fails the association stands as it was, and it is tried again later.
//!
//! How soon: after [`HostConfig::rekey_interval`], when less than a fifth of KEYMAT is left, and when asked. The packets of
//! an SA are counted by who sends them (crate `wedge`), who asks at half of the 2^32 numbers: at 10 Gbit/s of packets of 64
//! bytes that is after 144 s, and leaves 144 s for a renewal, which takes a round trip, and 27 s where all but the last of
//! its packets are lost.

use clock::{Duration, Instant};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::Hit;

use crate::asking::Asked;
use crate::association::{I1Sent, PeerRecord, Phase, Retry};
use crate::host::{Host, Output, routes};
use crate::route::Route;

#[cfg(doc)]
use crate::config::HostConfig;

/// When a renewal that came to nothing is tried again, at least.
const AGAIN: Duration = Duration::from_secs(20);
/// And a base exchange.
const AGAIN_EXCHANGE: Duration = Duration::from_secs(120);

impl Host {
    /// Gives all paths to a peer new keys, from new Diffie-Hellman exchanges.
    pub fn rekey(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if up.renews {
            up.renewals = up.paths.iter().map(|path| path.id).collect();
            self.open_paths(now, rng, peer);
        } else {
            self.exchange_again(now, rng, peer);
        }
    }

    /// Does what is due about keys, and about an association without a path.
    pub(crate) fn keep_fresh(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if up.pathless.is_some_and(|(_, until)| until <= now) {
            return self.forget_unreachable(peer);
        }
        if !up.renews {
            if up.rekey_at <= now {
                self.exchange_again(now, rng, peer);
            }
            return;
        }
        let again = now + (self.config.rekey_interval / 8).max(AGAIN);
        let mut due: Vec<PathId> = Vec::new();
        for path in up.paths.iter_mut().filter(|path| path.renew_at <= now) {
            path.renew_at = again;
            due.push(path.id);
        }
        due.retain(|path| !up.is_renewing(*path));
        up.renewals.extend(due);
    }

    /// Begins a base exchange while the association goes on.
    fn exchange_again(&mut self, now: Instant, rng: &mut dyn CryptoRng, peer: Hit) {
        let Some(record) = self.peers.get_mut(&peer) else { return };
        let Phase::Up(up) = &mut record.phase else { return };
        up.rekey_at = now + (self.config.rekey_interval / 8).max(AGAIN_EXCHANGE);
        let mut ways: Vec<Route> = up.paths.iter().map(|path| path.route).collect();
        for route in routes(&self.config, &record.peer, &[]) {
            if !ways.contains(&route) {
                ways.push(route);
            }
        }
        let Some(&first) = ways.first() else { return };
        let mut asked = Asked::new(rng, record.is_sinnet);
        self.out.send(first, asked.i1(&self.config, &self.identity, peer, first));
        let next = Phase::I1Sent(I1Sent { routes: ways, retry: Retry::new(now, &self.config), asked, i2: None });
        if let Phase::Up(up) = std::mem::replace(&mut record.phase, next) {
            record.standby = Some(up);
        }
        self.out.counters.rekeys_by_exchange += 1;
    }
}

impl Output {
    /// Gives up a base exchange that was to replace an association, which goes on; whether there is one.
    pub(crate) fn go_on(&mut self, record: &mut PeerRecord) -> bool {
        let Some(up) = record.standby.take() else { return false };
        let before = std::mem::replace(&mut record.phase, Phase::Up(up));
        before.i2().into_iter().for_each(|sent| _ = self.spis.remove(&sent.spi_in));
        true
    }
}

//! What the data plane tells of where the peer is.

use scheduler::PathId;
use wire::Hit;

use crate::association::Phase;
use crate::host::Host;
use crate::route::Route;
use crate::update::conclude;

impl Host {
    /// The peer has answered on a path from another locator than the path had, to a question that only its receiver could
    /// answer: a NAT before it has given it another port. From now on the path is there.
    pub fn path_moved(&mut self, peer: Hit, path: PathId, route: Route) {
        let Some(Phase::Up(up)) = self.peers.get_mut(&peer).map(|record| &mut record.phase) else { return };
        if !up.lead(path, route) {
            return;
        }
        // Our answer to the peer's UPDATE for this path went to where the peer was, so its echo is not taken from here.
        if let Some(index) = up.offers.iter().position(|offer| offer.path == path) {
            conclude(&mut self.out, up, peer, index);
        }
    }

    /// Whether this host has begun the association with a peer, and so opens its paths; `None` where there is none.
    pub fn is_initiator(&self, peer: Hit) -> Option<bool> {
        match &self.peers.get(&peer)?.phase {
            Phase::Up(up) => Some(up.initiator),
            _ => None,
        }
    }
}

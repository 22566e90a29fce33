//! What peers can make this host hold: see the crate's page for the numbers.

use crate::connections::Connections;
use crate::numbers::Numbers;
use crate::path::Path;
use crate::peer::PeerState;
use crate::snoop::Snoop;
use crate::wedge::Wedge;

/// A peer always may hold so much, in bytes, however much others hold: some round trips of a slow path.
const LEAST_SHARE: usize = 256 << 10;
/// Of all memory the part that one peer may have.
const SHARE: usize = 4;

/// What a peer may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(usize);

impl Default for Share {
    fn default() -> Self {
        Self(LEAST_SHARE)
    }
}

impl Share {
    /// Its flows, and what of them waits for other packets, in bytes.
    pub(crate) fn flows(self) -> usize {
        self.0 / 2
    }

    /// What waits for its paths, in bytes.
    pub(crate) fn send_buffer(self) -> usize {
        self.0 / 4
    }

    /// What was sent and may have to be sent again, in bytes.
    pub(crate) fn under_way(self) -> usize {
        self.0 / 4
    }
}

impl PeerState {
    /// Bytes that are held for the peer, the tables of what it does included.
    pub(crate) fn held_bytes(&self) -> usize {
        let paths = self.paths.iter().chain(&self.successors).chain(&self.retired);
        let paths: usize = paths.map(Path::memory).sum();
        let waiting: usize = self.waiting().map(|(_, payload)| payload.len() + size_of::<(u8, Vec<u8>)>()).sum();
        let braid = self.braid.as_ref().map_or(0, |braid| {
            let snoop = braid.snoop.as_ref().map_or(0, Snoop::memory);
            braid.memory() + snoop
        });
        [self.flows.bytes(), paths, waiting, braid, self.connections.memory()]
            .into_iter()
            .fold(0, usize::saturating_add)
    }

    /// Bytes of what was sent and may have to be sent again.
    pub(crate) fn kept_bytes(&self) -> usize {
        let controls = self.paths.iter().chain(&self.retired).filter_map(|path| path.control.as_ref());
        controls.map(|control| control.sent.kept()).sum()
    }
}

impl Path {
    fn memory(&self) -> usize {
        let sent = self.control.as_ref().map_or(0, |control| control.sent.memory());
        size_of::<Self>() + sent + self.pacer.queued()
    }
}

impl Connections {
    /// Bytes that they take.
    pub(crate) fn memory(&self) -> usize {
        self.len() * Self::SIZE
    }
}

impl Numbers {
    /// Bytes that they take.
    pub(crate) fn memory(&self) -> usize {
        self.len() * Self::SIZE
    }
}

impl Snoop {
    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.segments() * Self::SIZE
    }
}

impl Wedge {
    /// Bytes that are held for all peers: packets that wait for others or for paths, those that may have to be sent again,
    /// and what is remembered of them. No more than [`crate::WedgeConfig::memory`], but for 256 KiB that each peer with an
    /// association may always have.
    pub fn held_bytes(&self) -> usize {
        self.peers.iter().map(PeerState::held_bytes).sum()
    }

    /// Counts again what is held for a peer.
    pub(crate) fn count_memory(&mut self, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let held = peer.held_bytes();
        let before = std::mem::replace(&mut peer.held, held);
        self.held = self.held.saturating_sub(before).saturating_add(held);
    }

    /// What a peer may hold now: a fixed part of all, and no more than is still free, so that who comes later finds room,
    /// and many who want all of it get the same (dynamic thresholds, A. Choudhury and E. Hahne, 1998).
    pub(crate) fn allow_memory(&mut self, index: usize) {
        let free = self.config.memory.saturating_sub(self.held);
        let share = Share((self.config.memory / SHARE).min(free).max(LEAST_SHARE));
        if let Some(peer) = self.peers.get_mut(index) {
            peer.share = share;
        }
    }
}

//! What peers can make this host hold: see the crate's page for the numbers.

use crate::path::Path;
use crate::payload::Payload;
use crate::peer::PeerState;
use crate::wedge::Wedge;
use crate::window_clamp::Connections;
use multipath::{Memory, SHARE};

/// A peer always may hold so much, in bytes, however much others hold: some round trips of a slow path.
const LEAST_SHARE: usize = 256 << 10;

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

    /// What its sender may hold.
    pub(crate) fn of_sender(self) -> Memory {
        Memory::of_share(self.0)
    }
}

impl PeerState {
    /// Bytes that are held for the peer, the tables of what it does included.
    pub(crate) fn held_bytes(&self) -> usize {
        let paths = self.paths.iter().chain(&self.successors).chain(&self.retired);
        let paths = paths.count().saturating_mul(size_of::<Path>());
        let waiting: usize = self.waiting().map(|payload| payload.bytes().len() + size_of::<Payload>()).sum();
        [
            self.flows.bytes(),
            paths,
            waiting,
            self.sender.memory(),
            self.connections.memory(),
            self.copies.memory(),
            self.assigned.memory(),
            self.announced.memory(),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}

impl Connections {
    /// Bytes that they take.
    pub(crate) fn memory(&self) -> usize {
        self.len() * Self::SIZE
    }
}

impl Wedge {
    /// Bytes that are held for all peers: packets that wait for others or for paths, those that may have to be sent again,
    /// and what is remembered of them. The crate's page says which of these [`crate::WedgeConfig::memory`] bounds.
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
            peer.share_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::flow_of;
    use crate::numbers::Header;
    use crate::{LocalPath, PeerConfig, WedgeConfig};
    use clock::{Duration, Instant};
    use hip::identity::HostIdentity;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use scheduler::PathId;
    use wire::{Hit, Lsi};

    const MEMORY: usize = 8 << 20;
    const PEERS: u8 = 40;

    fn host_of_many() -> Wedge {
        let pem = include_str!("../../../vectors/hip/capture-ecdsa-p384/a.pem");
        let path = LocalPath::new("link", "10.0.0.1:10500".parse().unwrap());
        let config = WedgeConfig { memory: MEMORY, ..WedgeConfig::new(Lsi([1, 0, 0, 1]), vec![path]) };
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut wedge = Wedge::new(HostIdentity::from_pem(pem).unwrap(), config, &mut rng).unwrap();
        for peer in 0..PEERS {
            let (hit, lsi) = (Hit([peer + 1; 16]), Lsi([1, 0, 1, peer]));
            wedge.add_peer(PeerConfig::new(peer.to_string(), hit, lsi, []));
        }
        for peer in &mut wedge.peers {
            (peer.order.alive, peer.order.hold) = (vec![0, 1], Duration::from_secs(1));
        }
        wedge
    }

    /// Many peers, all hostile: holes with as much behind them as there is room for, in turn and one after the other.
    #[test]
    fn many_peers_together_are_bounded() {
        for in_turn in [true, false] {
            let mut wedge = host_of_many();
            let (rounds, peers) = (1_500, usize::from(PEERS));
            let mut most = 0;
            for step in 0..rounds * peers {
                let (peer, round) = if in_turn { (step % peers, step / peers) } else { (step / rounds, step % rounds) };
                let [a, b] = ((round / 200) as u16).to_be_bytes();
                let key = flow_of(17, &[a, b, 0, 7, 0, 0, 0, 0], false).unwrap();
                let [c, d] = ((round % 200) as u16 + 1_000).to_be_bytes();
                let kind = if round % 200 == 0 { [3, 17, 0, 0] } else { [2, 17, c, d] };
                let number = Header::parse(hip::feedback::NEXT_HEADER, &kind, true).unwrap().0.number;
                wedge.touch(peer);
                let state = &mut wedge.peers[peer];
                state.inbound(Instant::ZERO, key, (PathId(0), number), (vec![0; 1_200].into(), None), &mut Vec::new());
                wedge.count_memory(peer);
                wedge.touched.clear();
                most = most.max(wedge.held);
            }
            assert_eq!(wedge.held, wedge.held_bytes());
            assert!(most > MEMORY / 2, "{most}: they did not try");
            assert!(most <= MEMORY + peers * LEAST_SHARE, "{most}");
        }
    }

    /// A program of the host that looks through all ports of a peer, which never answers.
    #[test]
    fn flows_that_the_peer_never_answers_are_bounded() {
        let mut wedge = host_of_many();
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let [own, peer] = [[1, 0, 0, 1], [1, 0, 1, 0]].map(std::net::IpAddr::from);
        for port in 1..=10_000 {
            let packet = wire::udp::packet((own, 7), (peer, port), b"hello").unwrap();
            wedge.handle_application(Instant::ZERO, &mut rng, [packet]);
            let held = wedge.held_bytes();
            assert!(held <= MEMORY / SHARE + LEAST_SHARE, "{held}");
        }
        assert!(wedge.peers.iter().any(|peer| peer.flows.bytes() > MEMORY / SHARE / 2 - 2_000), "it did not try");
    }
}

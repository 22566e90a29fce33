//! Fastest path first (FPF): the path on which the packet arrives earliest.
//!
//! With the one-way delay `D_i`, the rate `B_i` and the time `t_free_i` at which path i has sent all it was given, a
//! packet of `S` bytes at time `t` would arrive at
//!
//! `eta_i = max(t_free_i, t) + D_i + 8·S / B_i`.
//!
//! The least one is chosen. Of paths with the same one, that whose last packet arrives earliest, then that whose last
//! packet is the oldest (mHIP, BROADNETS 2009, §IV-C). It equals EDPF (K. Chebrolu, B. Raman, R. R. Rao, *A network
//! layer approach to enable TCP over multiple interfaces*, Wireless Networks 11, 2005) where the path's own queue is
//! the only one.

use crate::{Decision, Needs, PacketMeta, PathId, PathScheduler, PathView, Reference};
use clock::{Duration, Instant};

pub(super) const REFERENCE: Reference = Reference {
    name: "fastest-path-first",
    choice: "the least max(t_free, now) + D + 8S/B, where t_free is when the path has sent what it was given",
    source: "Gurtov and Polishchuk, BROADNETS 2009, §IV-C; Chebrolu and others, Wireless Networks 11, 2005 (EDPF)",
};

/// The scheduler. Its own state is what breaks ties; times are compared in whole nanoseconds, so ties are reproducible.
#[derive(Clone, Debug, Default)]
pub struct FastestPathFirst {
    packets: u64,
    last: Vec<Last>,
}

/// The last packet of a path.
#[derive(Clone, Copy, Debug)]
struct Last {
    path: PathId,
    eta: Instant,
    packet: u64,
}

impl FastestPathFirst {
    fn last(&self, path: PathId) -> Option<(Instant, u64)> {
        // None, a path never used, compares less than any: minus infinity.
        self.last.iter().find(|last| last.path == path).map(|last| (last.eta, last.packet))
    }
}

impl PathScheduler for FastestPathFirst {
    fn select(&mut self, packet: &PacketMeta, paths: &[PathView], now: Instant) -> Decision {
        let best = paths
            .iter()
            .filter(|path| path.open && path.rate > 0)
            .map(|path| (eta(packet.len, path, now), self.last(path.id), path.id))
            .min();
        let Some((eta, _, path)) = best else { return Decision::Blocked };
        let last = Last { path, eta, packet: self.packets };
        self.packets += 1;
        match self.last.iter_mut().find(|entry| entry.path == path) {
            Some(entry) => *entry = last,
            None => {
                // Numbers of paths are not used again, so what is not among the paths any more is history.
                self.last.retain(|entry| paths.iter().any(|path| path.id == entry.path));
                self.last.push(last);
            }
        }
        Decision::Send(path)
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..Needs::NOTHING }
    }
}

fn eta(len: usize, path: &PathView, now: Instant) -> Instant {
    path.free_at.max(now) + path.delay + Duration::of_transmission(len as u64, path.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u16, rate: u64, delay_ms: u64) -> PathView {
        PathView { id: PathId(id), open: true, delay: Duration::from_millis(delay_ms), rate, ..PathView::default() }
    }

    #[test]
    fn without_an_open_path_it_is_blocked() {
        let mut fpf = FastestPathFirst::default();
        let meta = PacketMeta { len: 1500, ..PacketMeta::default() };
        assert_eq!(fpf.select(&meta, &[], Instant::ZERO), Decision::Blocked);
        let closed = PathView { open: false, ..path(0, 1_000_000, 1) };
        assert_eq!(fpf.select(&meta, &[closed, path(1, 0, 1)], Instant::ZERO), Decision::Blocked);
        assert_eq!(fpf.select(&meta, &[closed, path(2, 1, 99)], Instant::ZERO), Decision::Send(PathId(2)));
    }

    #[test]
    fn history_of_paths_that_are_gone_is_forgotten() {
        let mut fpf = FastestPathFirst::default();
        for id in 0..1000 {
            let meta = PacketMeta { len: 1, ..PacketMeta::default() };
            assert_eq!(fpf.select(&meta, &[path(id, 1000, 0)], Instant::ZERO), Decision::Send(PathId(id)));
        }
        assert_eq!(fpf.last.len(), 1);
    }
}

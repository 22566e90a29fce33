//! A clock that jumps: a machine that was suspended, or a process that was stopped.
//!
//! Whatever was in flight then has waited for us and not for the network. Without a word about that a round trip of an
//! hour would be measured, and with it every patience become hours; and a peer that was never asked would be given up for
//! its silence.

use crate::wedge::Wedge;
use clock::{Duration, Instant};

/// A timer that is late by more is no busy machine's.
const LATE: Duration = Duration::from_secs(1);

impl Wedge {
    /// Time is `now`, says the owner. After a jump all measurements that span it are forgotten.
    pub(crate) fn note_time(&mut self, now: Instant) {
        let passed = now - self.seen;
        self.seen = self.seen.max(now);
        if passed < LATE || self.poll_timeout().is_none_or(|(due, _)| now - due < LATE) {
            return;
        }
        self.counters.clock_jumps += 1;
        self.touched.extend(0..self.peers.len());
        for peer in &mut self.peers {
            peer.silent_since = peer.silent_since.map(|_| now);
            for path in &mut peer.paths {
                path.heartbeat.slept(now);
                path.mtu.renewed(now);
            }
            peer.sender.on_clock_jump(now);
            peer.assigned.on_clock_jump(now);
        }
    }
}

//! What has waited for a repaired packet leaves a little at a time, where the receiver has not offered room for all of it.
//!
//! A TCP offers its receive buffer, and what waits has been sent within that. A socket for datagrams takes what its program has not read
//! yet, 212,992 bytes by Linux' default with some overhead for each packet, and drops the rest: a repair takes a round trip, in which a
//! path of 100 Mbit/s and 40 ms brings half a megabyte. So it leaves somewhat more quickly than more comes, as does what comes at once
//! because somebody before was busy.

use clock::{Duration, Instant};
use std::collections::VecDeque;

/// What leaves at once, in bytes: a fifth of that buffer, with the overhead of packets.
const BURST: f64 = 24_000.0;
/// For each byte that comes so many more leave, ...
const MORE: f64 = 0.5;
/// ... or so many in a second, if that is more: 40 Mbit/s.
const LEAST: f64 = 5_000_000.0;
/// Over this time it is averaged how many come.
const AVERAGED: Duration = Duration::from_millis(20);
/// When something waits there is a look at it after this time, ...
const TICK: Duration = Duration::from_millis(1);
/// ... and one that comes later makes good no more than this.
const PAUSE: Duration = Duration::from_millis(2);

/// What of a flow is in order and waits for its turn.
#[derive(Clone, Debug)]
pub(crate) struct Release<P> {
    waiting: VecDeque<(P, usize)>,
    bytes: usize,
    /// Bytes that may leave, and when they were counted.
    budget: f64,
    counted_at: Instant,
    /// Bytes that come in a second, and when that was.
    rate: f64,
    came_at: Instant,
}

impl<P> Default for Release<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            budget: BURST,
            counted_at: Instant::ZERO,
            rate: 0.0,
            came_at: Instant::ZERO,
        }
    }
}

impl<P> Release<P> {
    /// A packet of so many bytes came.
    pub(crate) fn came(&mut self, now: Instant, bytes: usize) {
        let average = AVERAGED.as_secs_f64();
        self.rate = self.rate * (-(now - self.came_at).as_secs_f64() / average).exp() + bytes as f64 / average;
        self.came_at = now;
    }

    /// These are next in order.
    pub(crate) fn extend(&mut self, packets: impl Iterator<Item = (P, usize)>) {
        for (packet, bytes) in packets {
            self.bytes += bytes;
            self.waiting.push_back((packet, bytes));
        }
    }

    /// Hands out what may leave by now.
    pub(crate) fn let_go(&mut self, now: Instant, mut leaves: impl FnMut(P)) {
        let passed = (now - self.counted_at).as_secs_f64();
        let rate = self.rate + LEAST.max(self.rate * MORE);
        self.budget = self.budget.min(BURST) + passed.min(PAUSE.as_secs_f64()) * rate;
        self.counted_at = now;
        // One of more than a burst leaves when nothing else has.
        while self.waiting.front().is_some_and(|(_, bytes)| self.budget >= (*bytes as f64).min(BURST)) {
            let Some((packet, bytes)) = self.waiting.pop_front() else { break };
            self.budget -= bytes as f64;
            self.bytes = self.bytes.saturating_sub(bytes);
            leaves(packet);
        }
    }

    /// Hands out all of it.
    pub(crate) fn clear(&mut self, mut leaves: impl FnMut(P)) {
        self.bytes = 0;
        self.waiting.drain(..).for_each(|(packet, _)| leaves(packet));
    }

    /// When more may leave.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.counted_at + TICK)
    }

    /// Packets that wait.
    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket of Linux' usual buffer, whose program reads 400 Mbit/s, loses nothing of a flow of 200 Mbit/s a packet of which comes
    /// again after 60 ms, and has all of it soon after.
    #[test]
    fn what_waited_does_not_overflow_a_usual_socket() {
        let (buffer, overhead) = (212_992, 2304 - 1420);
        let (mut release, mut held, mut unread, mut most) = (Release::default(), Vec::new(), 0usize, 0);
        let mut behind = None;
        for micros in 0..250_000u64 {
            let now = Instant::from_nanos(micros * 1000);
            let mut left = 0;
            if micros % 57 == 0 {
                held.push(((), 1420));
                release.came(now, 1420);
            }
            if !(10_000..70_000).contains(&micros) {
                release.extend(held.drain(..));
            }
            if micros % 57 == 0 || release.poll_timeout().is_some_and(|at| at <= now) {
                release.let_go(now, |()| left += 1);
            }
            unread = (unread + left * (1420 + overhead)).saturating_sub(50 * (1420 + overhead) / 1420);
            most = most.max(unread);
            if micros > 70_000 && release.packets() == 0 {
                behind.get_or_insert(micros);
            }
        }
        assert!(most < buffer, "{most} bytes are unread");
        // 1.5 MB at 100 Mbit/s.
        assert!(behind.is_some_and(|at| at < 200_000), "{behind:?}");
    }
}

//! How much may wait: in the send buffer by the windows, in the queues of paths by configured rates.

use crate::packet::FlowId;
use crate::send_buffer::Limits;
use crate::sender::{LONGEST_QUEUE, Sender};
use crate::usual::LEAST_WAITING;
use clock::{Duration, Instant};
use queue::codel;

/// The least that the send buffer holds before it drops, in bytes.
const LEAST_BUFFER: f64 = 64_000.0;
/// Room that windows no longer need, for one has fallen or its path has died, goes away in this time (to 1/e): the TCP
/// inside has to hear of less once, not lose all that is suddenly too much.
pub(crate) const LEAVING: Duration = Duration::from_secs(2);
/// Windows that have grown by so much ...
const GROWN: f64 = 1.25;
/// ... within this time have not found yet what paths carry. ...
const SEARCH: Duration = Duration::from_secs(3);
/// ... Where none of them fills a queue meanwhile, what they carry in so long may wait, ...
const AHEAD_FOR: Duration = Duration::from_millis(600);
/// ... but no more than so many bytes: a program that left slow start because of windows would not follow when they grow.
const AHEAD: f64 = 1_024_000.0;
/// How much may wait, in times of the paths' windows and of their round-trip time: a Reno inside that has lost a packet
/// halves the sum of what waits and what is in flight, and if less waited than that, the paths would have nothing to
/// send. Other flows do not wait behind it.
const ENOUGH: f64 = 1.5;
/// While the first packet of a distant path is on its way no acknowledgment lets programs send more: they have so many times what
/// the faster paths deliver meanwhile waiting besides, ...
const BRIDGE: f64 = 1.0;
/// ... for so long after a flow could have used it.
const BRIDGED: Duration = Duration::from_secs(1);
/// Share of the send buffer that TCP flows may fill whose receive window we clamp: they follow the windows at once, and are
/// not to meet CoDel.
const CLAMPED: f64 = 0.75;
/// CoDel's target and interval are at least these (RFC 8289 §4.3).
const LEAST_CODEL: codel::Parameters =
    codel::Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
/// CoDel's target is at most this, however slow the rates that are configured.
const LONGEST_TARGET: Duration = Duration::from_secs(1);
/// What may wait in the queues of paths of configured rates at least, in bytes: for those slower than ten packets in
/// [`LONGEST_QUEUE`].
const LEAST_QUEUE: u64 = 16_000;

/// Whether windows are still to be found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Search {
    /// The most that they have been, in bytes, and since when.
    most: (f64, Instant),
}

impl Search {
    /// The windows are so many bytes together.
    fn goes_on(&mut self, now: Instant, windows: f64) -> bool {
        let (most, since) = self.most;
        if windows > GROWN * most {
            self.most = (windows, now);
        } else if windows < most / 2.0 {
            self.most = (windows, since);
        }
        now - self.most.1 < SEARCH
    }
}

impl<P> Sender<P> {
    /// How many bytes a TCP may have waiting more than it has, or less if it is negative: what its receive window is clamped
    /// to.
    pub fn budget(&mut self, now: Instant, flow: FlowId) -> i64 {
        let limits = self.limits(now);
        if self.has_windows() {
            let room = self.buffer.room(flow, &limits);
            self.reach.allows(flow, room);
            return room;
        }
        let (queued, limit) = self.queues();
        (limit as f64 * CLAMPED) as i64 - queued as i64
    }

    /// The receiver of a flow offers so many bytes, before its window is clamped.
    pub fn on_offered(&mut self, flow: FlowId, bytes: u64) {
        self.reach.offers(flow, bytes);
    }

    pub(crate) fn queues_are_full(&self) -> bool {
        let (queued, limit) = self.queues();
        queued >= limit
    }

    /// What waits in the queues of paths of configured rates, and what may, in bytes.
    fn queues(&self) -> (u64, u64) {
        let any_usable = self.any_usable();
        let in_use = || self.paths.iter().filter(|path| path.state.may_carry(any_usable));
        let queued: usize = in_use().map(|path| path.pacer.queued()).sum();
        let rate: u64 = in_use().map(|path| path.pacer.rate()).fold(0, u64::saturating_add);
        let limit = (rate as f64 / 8.0 * LONGEST_QUEUE.as_secs_f64()) as u64;
        (queued as u64, limit.max(LEAST_QUEUE))
    }

    /// What the send buffer may hold now.
    pub(crate) fn limits(&mut self, now: Instant) -> Limits {
        let usable = || self.paths.iter().filter(|path| path.state.is_usable());
        let controls = || usable().filter_map(|path| path.control.as_ref());
        let windows: f64 = controls().map(|control| self.windows.window(control.slot)).sum();
        let rtt = controls().filter_map(|control| control.sent.rtt().srtt()).max().unwrap_or_default();
        let pace = usable().map(|path| path.pacer.rate()).fold(0, u64::saturating_add);
        let is_capped = usable().any(|path| path.state.rate.is_some());
        let (bridge, at) = self.bridge;
        let bridge = if now - at < BRIDGED { bridge * BRIDGE } else { 0.0 };
        let has_queue = controls().any(|control| self.windows.has_queue(control.slot));
        let wanted = windows * ENOUGH + bridge / CLAMPED;
        // A window can be clamped no further than to the least, and a flow that loses of that waits for its timer.
        let crowd = self.buffer.flows() as f64 * LEAST_WAITING as f64;
        let is_searching = self.search.goes_on(now, windows) && !has_queue && !self.is_snooping();
        let (least, ahead) = if is_searching {
            let timed = controls().filter_map(|control| Some((control.slot, control.sent.rtt().srtt()?.as_secs_f64())));
            let rate: f64 = timed.map(|(slot, rtt)| self.windows.window(slot) / rtt).sum();
            ((rate * AHEAD_FOR.as_secs_f64()).clamp(LEAST_BUFFER, AHEAD), AHEAD_FOR)
        } else {
            (LEAST_BUFFER, Duration::ZERO)
        };
        let enough = wanted.max(least).max(crowd);
        let (room, since) = self.room;
        // Without reports the TCP inside retransmits what a path has lost, and has to learn of it soon.
        let room = if self.is_snooping() || room <= enough {
            enough
        } else {
            enough.max(room * (-(now - since).as_secs_f64() / LEAVING.as_secs_f64()).exp())
        };
        self.room = (room, now);
        let bytes = (room as usize).min(self.memory.send_buffer / 2);
        // Paths that are slower than their windows, because a rate is configured, take longer for what programs may have waiting.
        let drained = Duration::of_transmission(wanted as u64, pace.max(1)).min(LONGEST_TARGET);
        let drained = if is_capped { drained } else { Duration::ZERO };
        // What waits for less than it takes to follow the paths that are left was put there by the one that died.
        let spared = if now < self.spared_until { LEAVING } else { Duration::ZERO };
        Limits {
            bytes,
            most: 2 * bytes,
            // Until slow start answers a mark, what is outstanding doubles: what waits, and what is in flight.
            most_marked: 3 * bytes,
            memory: self.memory.send_buffer,
            // Of slow paths the least that the buffer holds would stay longer than CoDel's target. But when snooping it is the
            // TCP inside that retransmits, and paths are not to run dry while its own window falls.
            clamped: (CLAMPED * if self.is_snooping() { enough } else { wanted }) as usize,
            codel: codel::Parameters {
                target: LEAST_CODEL.target.max(rtt.mul_f64(ENOUGH)).max(drained).max(spared).max(ahead),
                interval: LEAST_CODEL.interval.max(rtt * 4),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_when_they_grow_no_more() {
        let mut search = Search::default();
        let mut goes_on =
            |millis: u64, windows: f64| search.goes_on(Instant::ZERO + Duration::from_millis(millis), windows);
        assert!(goes_on(0, 30_000.0) && goes_on(2_900, 20_000.0), "at first");
        assert!(goes_on(2_950, 40_000.0) && goes_on(5_900, 45_000.0), "after they have grown by a third");
        assert!(!goes_on(5_960, 45_000.0), "a little more is no growth");
        assert!(!goes_on(6_000, 22_000.0) && !goes_on(6_100, 44_000.0), "nor what they were before");
        assert!(
            !goes_on(7_000, 15_000.0) && goes_on(7_100, 30_000.0),
            "where they have fallen by more than half they are found anew"
        );
    }
}

//! Controlled Delay (RFC 8289): the time a packet has waited decides, when it leaves.

use clock::{Duration, Instant};

use crate::discipline::{ECN, INTERVAL, LIMIT, TARGET, parameters};
use crate::fifo::Fifo;
use crate::reference::Reference;
use crate::{Cause, Dropped, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "codel",
    rule: "at departure, once t ≥ target for an interval: drops or marks, again after interval/√count, until t < \
           target",
    source: "RFC 8289 §4 and §5",
};

/// What CoDel aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Waiting time that is fine (RFC 8289 §4.2: 5 ms).
    pub target: Duration,
    /// For so long the waiting time may stay above the target (RFC 8289 §4.3: 100 ms).
    pub interval: Duration,
}

/// The state of one queue (RFC 8289 §5.1), without its packets.
///
/// For each packet that leaves, [`CoDel::is_due`] says whether it is to be dropped or marked. Who does so calls [`CoDel::acted`]
/// and, after a drop, asks again about the next packet: this is the loop of RFC 8289 §5.5, packet by packet. Who spares a
/// packet lets it pass, and the next one is due instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoDel {
    /// When the waiting time will have been above the target for an interval.
    first_above: Option<Instant>,
    dropping: bool,
    /// `next` has still to be moved on, if the queue is not good by then.
    just_acted: bool,
    next: Instant,
    count: u32,
    last_count: u32,
}

impl CoDel {
    /// The queue has been found empty (RFC 8289 §5.6).
    pub fn empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
        self.just_acted = false;
    }

    /// Whether the packet that leaves at `now`, after it has waited for `waited`, is to be dropped or marked. Not more bytes
    /// `left` behind it than the longest packet has, `mtu`, are a good queue whatever they have waited (RFC 8289 §5.4).
    pub fn is_due(&mut self, parameters: &Parameters, now: Instant, waited: Duration, left: u64, mtu: u64) -> bool {
        let bad = self.has_been_above(parameters, now, waited, left <= mtu);
        if !self.dropping {
            return bad;
        }
        if std::mem::take(&mut self.just_acted) && bad {
            self.next += self.gap(parameters);
        }
        self.dropping = bad;
        bad && now >= self.next
    }

    /// The packet that was due has been dropped or marked.
    pub fn acted(&mut self, parameters: &Parameters, now: Instant) {
        if self.dropping {
            self.count = self.count.saturating_add(1);
            self.just_acted = true;
            return;
        }
        self.dropping = true;
        // Soon after the last time, the rate that was right then is a good start (RFC 8289 §4.3).
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now - self.next < parameters.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.next = now + self.gap(parameters);
        self.last_count = self.count;
    }

    fn has_been_above(&mut self, parameters: &Parameters, now: Instant, waited: Duration, is_short: bool) -> bool {
        if waited < parameters.target || is_short {
            self.first_above = None;
            return false;
        }
        let first_above = *self.first_above.get_or_insert(now + parameters.interval);
        now >= first_above
    }

    /// The control law (RFC 8289 §4.3): interval / sqrt(count).
    fn gap(&self, parameters: &Parameters) -> Duration {
        parameters.interval.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }
}

/// Controlled Delay (RFC 8289): drops or marks at departure, by the time packets have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Waiting time that is fine.
    pub target: Duration,
    /// For so long the waiting time may stay above the target.
    pub interval: Duration,
    /// Most packets that may wait.
    pub limit: u32,
    /// Marks packets that are ECN-capable instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// RFC 8289 §4.2 and §4.3: 5 ms and 100 ms.
    fn default() -> Self {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Self { target, interval, limit: u32::MAX, ecn: false }
    }
}

parameters! { CoDelConfig = "codel" {
    target: Time, TARGET;
    interval: Time, INTERVAL;
    limit: Limit, LIMIT;
    ecn: Switch, ECN;
} }

/// A queue that CoDel keeps short.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    config: CoDelConfig,
    managed: Managed<P>,
    /// Bytes of the longest packet so far.
    largest: u32,
}

impl<P> Queue<P> {
    /// An empty queue.
    pub(crate) fn new(config: CoDelConfig) -> Self {
        Self { config, managed: Managed::default(), largest: 0 }
    }
}

impl<P> QueueDiscipline<P> for Queue<P> {
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        _: u64,
        transmitter: Transmitter,
        _: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        self.largest = self.largest.max(packet.bytes);
        if self.packets() >= self.config.limit as usize && !transmitter.is_idle {
            return Err(Dropped { packet, cause: Cause::Full });
        }
        self.managed.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        let CoDelConfig { target, interval, ecn, .. } = self.config;
        self.managed.pop(now, &Parameters { target, interval }, self.largest, ecn, drop)
    }

    fn packets(&self) -> usize {
        self.managed.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.managed.fifo.bytes()
    }

    fn clear(&mut self, _: Instant, drop: &mut impl FnMut(Queued<P>)) {
        self.managed.clear(drop);
    }
}

/// Packets in the order of their arrival, with a CoDel.
#[derive(Clone, Debug)]
pub(crate) struct Managed<P> {
    pub(crate) fifo: Fifo<P>,
    codel: CoDel,
}

impl<P> Default for Managed<P> {
    fn default() -> Self {
        Self { fifo: Fifo::default(), codel: CoDel::default() }
    }
}

impl<P> Managed<P> {
    /// The next packet that CoDel lets pass, with a mark or without.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        parameters: &Parameters,
        largest: u32,
        marks: bool,
        drop: &mut impl FnMut(Dropped<P>),
    ) -> Option<Queued<P>> {
        while let Some(mut packet) = self.fifo.pop() {
            if !self.codel.is_due(parameters, now, now - packet.since, self.fifo.bytes(), largest.into()) {
                return Some(packet);
            }
            self.codel.acted(parameters, now);
            if marks && packet.mark() {
                return Some(packet);
            }
            drop(Dropped { packet, cause: Cause::Early });
        }
        self.codel.empty();
        None
    }

    pub(crate) fn clear(&mut self, drop: &mut impl FnMut(Queued<P>)) {
        self.codel.empty();
        self.fifo.clear(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: Parameters = Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn vector_wedge_2() {
        for (count, gap) in [(1, 0.1), (2, 0.070_710_678_118_7), (3, 0.057_735_026_919), (4, 0.05)] {
            let codel = CoDel { count, ..CoDel::default() };
            assert!((codel.gap(&RFC).as_secs_f64() - gap).abs() < 1e-9);
        }
    }

    /// The instants in ms at which a packet is dropped, if one leaves each millisecond of `range`.
    fn drops(codel: &mut CoDel, range: std::ops::Range<u64>, spare: impl Fn(u64) -> bool) -> Vec<u64> {
        let waited = Duration::from_millis(20);
        let mut drops = Vec::new();
        for ms in range {
            while codel.is_due(&RFC, at(ms), waited, 100_000, 1500) && !spare(ms) {
                codel.acted(&RFC, at(ms));
                drops.push(ms);
            }
        }
        drops
    }

    /// RFC 8289 §4.3: an interval above the target, then gaps of interval / sqrt(n), each up to the next departure.
    #[test]
    fn drops_follow_the_control_law() {
        let drops = drops(&mut CoDel::default(), 0..2000, |_| false);
        let mut due = 100.0;
        for (drop, n) in drops.iter().zip(1u32..) {
            assert_eq!(*drop, f64::ceil(due) as u64, "drop {n}");
            due += 100.0 / f64::from(n).sqrt();
        }
        assert!(drops.len() > 50);
    }

    /// RFC 8289 §4.3: what begins again within 16 intervals begins with the rate at which it ended.
    #[test]
    fn a_queue_that_grows_again_soon_is_dropped_from_faster() {
        for (pause, faster) in [(500, true), (3000, false)] {
            let mut codel = CoDel::default();
            let before = drops(&mut codel, 0..1000, |_| false).len() as f64;
            assert!(!codel.is_due(&RFC, at(1000), Duration::from_millis(1), 100_000, 1500));
            let after = drops(&mut codel, 1000 + pause..2500 + pause, |_| false);
            let first_gap = (after[1] - after[0]) as f64;
            let expected = if faster { 100.0 / (before - 1.0).sqrt() } else { 100.0 };
            assert!((first_gap - expected).abs() <= 1.0, "{first_gap} {expected}");
        }
    }

    /// RFC 8289 §5.4 and §5.6: what waits less, a packet or less behind it, or an empty queue ends it all.
    #[test]
    fn a_good_queue_is_left_alone() {
        for end in 0..3 {
            let mut codel = CoDel::default();
            assert!(!drops(&mut codel, 0..1000, |_| false).is_empty());
            match end {
                0 => assert!(!codel.is_due(&RFC, at(1000), Duration::from_micros(4999), 100_000, 1500)),
                1 => assert!(!codel.is_due(&RFC, at(1000), Duration::from_millis(20), 1500, 1500)),
                _ => codel.empty(),
            }
            assert_eq!(drops(&mut codel, 1001..1101, |_| false), []);
            assert_eq!(drops(&mut codel, 1101..1102, |_| false), [1101]);
        }
    }

    #[test]
    fn a_packet_that_is_spared_passes_its_turn_on() {
        let drops = drops(&mut CoDel::default(), 0..300, |ms| ms < 150);
        assert_eq!(drops, [150, 250]);
    }
}

//! Whether two paths lose at the same times more often than by chance: both do where one queue overflows for both.
//!
//! A path's losses within a round trip are one event, and two events coincide if they are less than three quarters of a round trip apart.
//! Paths that have nothing in common lose independently: with `r` events in a second on one path, an event of the other coincides with
//! one of them with probability `1 − e^(−2dr)` where `d` is that distance. Of paths that share a queue a part of the events coincides
//! besides. How many do is weighed by the logarithm of the likelihood ratio of the two: `k ln(s/e) − (s − e)` for `k` that coincide where
//! chance gives `e`, and one queue `s`, both Poisson. Older events count less.

use clock::{Duration, Instant};

/// In that time an event comes to count a part of 1/e.
const MEMORY: f64 = 100.0;
/// How far apart two events are that coincide at most, as a part of the longer round trip, and at least.
const DISTANCE: (f64, f64) = (0.75, 0.02);
/// What part of the events coincides of the path that has fewer, besides those that do by chance, where both share a queue. At drop-tail
/// queues of a quarter of a bandwidth-delay product and more it was 0.13 to 0.7.
const SHARE: f64 = 0.25;
/// Losses so soon after one another are one event, or within a round trip.
const EVENT: Duration = Duration::from_millis(50);

/// When one path lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// When it was first heard of.
    since: Option<Instant>,
    /// The last loss.
    last: Option<Instant>,
    /// When the last event was at the bottleneck, in seconds, and the round trip then.
    event: Option<f64>,
    srtt: f64,
    /// Events, older ones less.
    count: f64,
}

impl Losses {
    /// The path carries.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Packets were found lost, `srtt` being the round trip and `way` the time from the bottleneck back. True if this is a new event.
    pub(crate) fn lost(&mut self, now: Instant, srtt: Duration, way: Duration) -> bool {
        let last = self.last.replace(now);
        if last.is_some_and(|last| now.saturating_since(last) <= srtt.max(EVENT)) {
            return false;
        }
        self.heard(now);
        let at = now.as_secs_f64() - way.as_secs_f64();
        self.count = 1.0 + self.count_at(at);
        (self.event, self.srtt) = (Some(at), srtt.as_secs_f64());
        true
    }

    /// Events, older ones less.
    fn count_at(&self, at: f64) -> f64 {
        self.count * self.event.map_or(0.0, |event| fade(at - event))
    }

    /// Events in a second. One more than there were, because few say little.
    fn rate(&self, at: f64) -> f64 {
        let age = self.since.map_or(0.0, |since| at - since.as_secs_f64()).max(1.0);
        (self.count_at(at) + 1.0) / (MEMORY * (1.0 - fade(age)))
    }
}

/// What part of an event is left after so many seconds.
fn fade(seconds: f64) -> f64 {
    (-seconds.max(0.0) / MEMORY).exp()
}

/// The events of two paths that coincide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coincidences {
    /// When the last event of either path was, in seconds.
    last: Option<f64>,
    /// The last two that coincide.
    pair: Option<[f64; 2]>,
    /// How many there were, and how many chance gives; older ones less.
    count: f64,
    expected: f64,
    /// Events of the path that has fewer, older ones less.
    fewer: f64,
}

impl Coincidences {
    /// An event began on `one` of the two paths.
    pub(crate) fn count(&mut self, one: &Losses, other: &Losses) {
        let Some(at) = one.event else { return };
        let fade = self.last.map_or(1.0, |last| fade(at - last));
        let distance = (DISTANCE.0 * one.srtt.max(other.srtt)).max(DISTANCE.1);
        // Each event of either path is half of a chance to coincide.
        self.expected = self.expected * fade + (1.0 - (-2.0 * distance * other.rate(at)).exp()) / 2.0;
        let is_free = |event: &f64| !self.pair.is_some_and(|pair| pair.contains(event));
        let partner = other.event.filter(|event| (at - event).abs() <= distance).filter(is_free);
        self.count *= fade;
        if let Some(partner) = partner {
            self.count += 1.0;
            self.pair = Some([at, partner]);
        }
        (self.last, self.fewer) = (Some(at), one.count.min(other.count_at(at)));
    }

    /// By how much better one queue explains them than chance: the logarithm of the likelihood ratio, below zero where it does not.
    pub(crate) fn evidence(&self) -> f64 {
        let Self { count, expected, fewer, .. } = *self;
        let more = SHARE * fewer;
        if expected > 0.0 { count * (1.0 + more / expected).ln() - more } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(80);

    /// The highest evidence within so many seconds and that at the end, of two paths whose events follow one another by chance, `own` in a
    /// second on each path; in `common` others a second one queue overflows, and either path loses with probability one half, within a
    /// round trip.
    fn evidence(seed: u64, seconds: f64, own: f64, common: f64) -> (f64, f64) {
        let mut rng = clock::Streams::new(seed).stream("losses");
        let mut events = Vec::new();
        let mut draw = |rate: f64, paths: &dyn Fn(&mut clock::Rng) -> Vec<usize>| {
            let mut at = 0.0;
            loop {
                at -= (1.0 - rng.unit()).ln() / rate;
                if at > seconds {
                    return;
                }
                for path in paths(&mut rng) {
                    events.push((at + rng.range(0.0, RTT.as_secs_f64() / 2.0), path));
                }
            }
        };
        draw(own, &|_| vec![0]);
        draw(own, &|_| vec![1]);
        draw(common, &|rng| (0..2).filter(|_| rng.chance(0.5)).collect());
        events.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let (mut paths, mut both, mut highest) = ([Losses::default(); 2], Coincidences::default(), 0.0f64);
        paths.iter_mut().for_each(|path| path.heard(Instant::ZERO));
        for (at, path) in events {
            let now = Instant::ZERO + Duration::from_secs_f64(at);
            if paths[path].lost(now, RTT, Duration::ZERO) {
                both.count(&paths[path], &paths[1 - path]);
                highest = highest.max(both.evidence());
            }
        }
        (highest, both.evidence())
    }

    /// A ratio of e^8.8 comes by chance at most once in 6,600 independent looks (Markov's inequality); the memory makes those of ten
    /// minutes some six.
    #[test]
    fn independent_losses_are_evidence_of_two_queues() {
        for rate in [0.05, 0.3, 1.0, 5.0] {
            let mut last = 0.0;
            for seed in 0..50 {
                let (highest, end) = evidence(seed, 600.0, rate, 0.0);
                assert!(highest < 8.8, "seed {seed}, {rate} a second: {highest}");
                last += end / 50.0;
            }
            assert!(last < 0.0, "{rate} a second: {last}");
        }
    }

    /// Of 43 events that count on each path, 13 coincide besides the 2.5 of chance: the evidence is 15 ± 6.
    #[test]
    fn losses_of_one_queue_are_evidence_of_one() {
        let found = (0..50).filter(|seed| evidence(*seed, 200.0, 0.2, 0.6).1 > 5.0).count();
        assert!(found >= 42, "{found} of 50");
    }

    /// What belongs to one event, or has counted already, does not count again.
    #[test]
    fn an_event_counts_once() {
        let (mut paths, mut both) = ([Losses::default(); 2], Coincidences::default());
        let mut lose = |millis: u64, path: usize| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            let is_new = paths[path].lost(now, RTT, Duration::ZERO);
            if is_new {
                both.count(&paths[path], &paths[1 - path]);
            }
            (is_new, both.count.round())
        };
        assert_eq!(lose(10_000, 0), (true, 0.0));
        assert_eq!(lose(10_030, 1), (true, 1.0));
        assert_eq!(lose(10_060, 0), (false, 1.0));
        assert_eq!(lose(10_115, 1), (true, 1.0));
        assert_eq!(lose(11_000, 0), (true, 1.0));
        assert_eq!(lose(11_070, 1), (true, 1.0), "too late");
    }
}

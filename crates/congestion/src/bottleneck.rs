//! Which paths share a bottleneck: those whose queueing delays rise and fall together, or that lose at the same times (in the spirit of
//! RFC 8382, with the round-trip times that reports give).
//!
//! Delays are averaged over bins of a tenth of a second. Two paths are compared by the correlation `c` of the changes from bin to
//! bin, in which older ones count less. It is near one where both see one queue, and near zero where they see two that have nothing to
//! do with each other, though both fill slowly and empty at once. What varies besides, from packet to packet, makes it smaller, but
//! not zero: at a short queue it is as small as that of two queues which one program fills. There losses tell (see
//! [`crate::coincidence`]), and both are weighed together: `c` as `z²/2`, where `z` is `c` in standard deviations of what chance gives,
//! which is the logarithm of a likelihood ratio as well.
//!
//! Paths that were once taken for one flow answer losses together, and then their queues do fall together, wherever they are. But
//! one queue changes by as many milliseconds for both. So changes of unlike size take away from what `c` says: `(ln r / σ)²/2` for sizes
//! in the ratio `r`, as of a normal distribution, though no more than all of it: of jitter alone losses still tell.

use crate::coincidence::{Coincidences, Losses};
use crate::correlation::{Correlation, Mean, Slots};
use clock::{Duration, Instant};

/// How long a bin is, and how long at most: it goes on until each path in use has [`SAMPLES`] in it.
const BIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));
/// See [`BIN`].
const SAMPLES: u32 = 3;
/// Changes that a verdict takes.
const CHANGES: f64 = 40.0;
/// Paths share a bottleneck when the evidence rises above the first, and no more when it falls below the second. With `c` of 100 changes
/// alone that is 0.42 and 0.15.
const SHARED: (f64, f64) = (8.8, 1.1);
/// Two paths have one queue where the evidence of their losses is above the first, or `c` above the second. Where two such were suspect of
/// having queues of their own (`crate::fair_queue`), a tenth of those with FQ-CoDel had more than 0.7, and nine tenths of those with PIE
/// and CoDel; 70 % of those with drop-tail had more losses in common than 1.5, and none of those with FQ-CoDel.
const ONE_QUEUE: (f64, f64) = (1.5, 0.7);
/// The first of them where both paths were full for long: few losses coincide by chance, and windows that fell together because of that
/// are full at the same times again. After a minute 4 % of the pairs with FQ-CoDel that had not been found had more than this, and 68 % of
/// those with drop-tail.
const FOR_LONG: f64 = 4.0;
/// The standard deviation `σ` of the logarithm of the ratio of both sizes where paths share a queue. Over 100 random networks without
/// jitter of the links it was 0.07; two of three pairs with queues of their own had a logarithm beyond 0.45.
const LIKE_SIZES: f64 = 0.15;
/// Changes that are smaller on average tell nothing; in seconds.
const LEAST: f64 = 0.3e-3;
/// A change counts as at most so many of the average: an outage is one event, however long its queue.
const LARGEST: f64 = 2.0;
/// A path of which nothing is heard in so many bins shares nothing.
const SILENT: u32 = 20;
/// Paths that begin together double their windows together, and the queues that they have then shrink together: bins in which a window doubles
/// are no evidence, nor are so many after them.
const SETTLED: u32 = 10;

/// The delays of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    /// Sum and number of the samples of this bin, in seconds.
    sum: f64,
    samples: u32,
    /// The mean of the last bin that had any, in seconds.
    mean: Option<f64>,
    /// The change into this bin, as far as it counts, and how large changes are on average.
    change: f64,
    size: Mean,
    /// Bins without samples since there were any.
    silent: u32,
    /// Its window doubles in this bin; and bins in all since none did.
    doubles: bool,
    settled: u32,
    losses: Losses,
}

/// What two paths have in common.
#[derive(Clone, Copy, Debug)]
struct Pair {
    slots: Slots,
    changes: Correlation,
    losses: Coincidences,
    is_shared: bool,
    /// Delays alone say so.
    agrees: bool,
}

/// What is known of the bottlenecks of an association's paths, by their slots.
#[derive(Clone, Debug, Default)]
pub struct Bottlenecks {
    paths: Vec<Delays>,
    pairs: Vec<Pair>,
    /// The first of the paths that each one shares a bottleneck with, be it by way of others.
    first: Vec<usize>,
    bin_start: Instant,
}

impl Bottlenecks {
    /// A path has not found its window yet, and doubles it.
    pub fn doubles(&mut self, slot: usize) {
        if let Some(path) = self.paths.get_mut(slot) {
            path.doubles = true;
        }
    }

    /// A round trip on a path had waited so long in queues. True if it is time to look at [`Bottlenecks::sharers`] anew.
    pub fn sample(&mut self, now: Instant, slot: usize, queueing: Duration) -> bool {
        if self.paths.len() <= slot {
            let first = self.paths.len();
            self.paths.resize_with(slot + 1, Delays::default);
            self.pairs.extend(Slots::added(first, slot).map(Pair::new));
        }
        if let Some(path) = self.paths.get_mut(slot) {
            path.sum += queueing.as_secs_f64();
            path.samples += 1;
            path.losses.heard(now);
        }
        let age = now.saturating_since(self.bin_start);
        if age < BIN.0 || (age < BIN.1 && self.paths.iter().any(|path| path.silent < SILENT && path.samples < SAMPLES))
        {
            return false;
        }
        self.bin_start = now;
        self.paths.iter_mut().for_each(Delays::end_bin);
        self.judge();
        true
    }

    /// Packets of a path were lost; its round trip is `srtt`, and at least `base`. True if it is time to look at
    /// [`Bottlenecks::sharers`] anew.
    pub fn lost(&mut self, now: Instant, slot: usize, (srtt, base): (Duration, Duration)) -> bool {
        let path = self.paths.get_mut(slot).filter(|path| path.is_settled());
        let is_new = path.is_some_and(|path| path.losses.lost(now, srtt, base / 2));
        if !is_new {
            return false;
        }
        let Self { paths, pairs, .. } = self;
        for pair in pairs.iter_mut().filter(|pair| pair.slots.have(slot)) {
            let other = if pair.slots.low == slot { pair.slots.high } else { pair.slots.low };
            if let (Some(one), Some(other)) = (paths.get(slot), paths.get(other)) {
                pair.losses.count(&one.losses, &other.losses);
                pair.judge();
            }
        }
        self.regroup();
        true
    }

    /// The path is another now.
    pub fn forget(&mut self, slot: usize) {
        for pair in &mut self.pairs {
            if pair.slots.have(slot) {
                *pair = Pair::new(pair.slots);
            }
        }
        self.regroup();
        if let Some(path) = self.paths.get_mut(slot) {
            *path = Delays::default();
        }
    }

    /// Whether two paths share a bottleneck.
    pub fn are_shared(&self, one: usize, other: usize) -> bool {
        self.first.get(one).is_some_and(|first| self.first.get(other) == Some(first))
    }

    /// Whether the delays of two paths rise and fall together, whatever they lose.
    pub fn delays_agree(&self, one: usize, other: usize) -> bool {
        self.pair(one, other).is_some_and(|pair| pair.agrees)
    }

    /// Whether all packets of two paths wait in one queue, and not each path's in its own of one bottleneck, which hosts' times make alike.
    /// Of paths that were full `for_long` more has to say so.
    pub fn are_one_queue(&self, one: usize, other: usize, for_long: bool) -> bool {
        self.pair(one, other).is_some_and(|pair| {
            let (losses, delays) = (pair.losses.evidence(), pair.changes.of(CHANGES));
            losses > if for_long { FOR_LONG } else { ONE_QUEUE.0 } || delays.is_some_and(|c| c > ONE_QUEUE.1)
        })
    }

    fn pair(&self, one: usize, other: usize) -> Option<&Pair> {
        let slots = Slots { low: one.min(other), high: one.max(other) };
        self.pairs.iter().find(|pair| pair.slots == slots)
    }

    /// How many paths, this one included, share its bottleneck.
    pub fn sharers(&self, slot: usize) -> u32 {
        (0..self.first.len()).filter(|other| self.are_shared(slot, *other)).count().max(1) as u32
    }

    /// Where one path shares a bottleneck with each of two others, these do, too.
    fn regroup(&mut self) {
        let Self { paths, pairs, first, .. } = self;
        first.clear();
        first.extend(0..paths.len());
        for pair in pairs.iter().filter(|pair| pair.is_shared) {
            let of = |slot: usize| first.get(slot).copied().unwrap_or(slot);
            let (low, high) = (of(pair.slots.low), of(pair.slots.high));
            let (kept, left) = (low.min(high), low.max(high));
            first.iter_mut().filter(|first| **first == left).for_each(|first| *first = kept);
        }
    }

    /// Counts the changes into the last bin.
    fn judge(&mut self) {
        let Self { paths, pairs, .. } = self;
        for pair in pairs {
            let (Some(one), Some(other)) = (paths.get(pair.slots.low), paths.get(pair.slots.high)) else { continue };
            if one.silent >= SILENT || other.silent >= SILENT {
                *pair = Pair::new(pair.slots);
            } else if one.size.value.max(other.size.value) >= LEAST && one.is_settled() && other.is_settled() {
                pair.count(one.change, other.change);
            }
        }
        self.regroup();
    }
}

impl Delays {
    fn is_settled(&self) -> bool {
        self.settled > SETTLED
    }

    fn end_bin(&mut self) {
        let mean = (self.samples > 0).then(|| self.sum / f64::from(self.samples));
        let change = mean.zip(self.mean).map_or(0.0, |(now, before)| now - before);
        self.size.count(change.abs());
        let most = LARGEST * self.size.value;
        self.change = change.clamp(-most, most);
        self.silent = if mean.is_some() { 0 } else { self.silent + 1 };
        self.settled = if std::mem::take(&mut self.doubles) { 0 } else { self.settled.saturating_add(1) };
        (self.sum, self.samples, self.mean) = (0.0, 0, mean.or(self.mean));
    }
}

impl Pair {
    fn new(slots: Slots) -> Self {
        Self {
            slots,
            changes: Correlation::default(),
            losses: Coincidences::default(),
            is_shared: false,
            agrees: false,
        }
    }

    fn count(&mut self, one: f64, other: f64) {
        self.changes.count(one, other);
        self.judge();
    }

    fn judge(&mut self) {
        let z = self.changes.of(CHANGES).map_or(0.0, |c| c.max(0.0) / self.changes.chance());
        let (one, other) = self.changes.sizes();
        let unlike = if one.min(other) > 0.0 { (one / other).ln() / LIKE_SIZES } else { 0.0 };
        let (delays, losses) = ((z * z - unlike * unlike).max(0.0) / 2.0, self.losses.evidence());
        let is_enough = |evidence: f64, before: bool| evidence > if before { SHARED.1 } else { SHARED.0 };
        self.agrees = is_enough(delays, self.agrees);
        self.is_shared = is_enough(delays + losses, self.is_shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saw-teeth of a queue that fills and drains: milliseconds at a time in milliseconds.
    fn saw(at: u64, period: u64, height: u64) -> Duration {
        Duration::from_micros(at % period * height * 1000 / period)
    }

    fn sharers(second: impl Fn(u64) -> Duration) -> u32 {
        let mut bottlenecks = Bottlenecks::default();
        for at in (0..10_000).step_by(8) {
            let now = Instant::ZERO + Duration::from_millis(at);
            bottlenecks.sample(now, 0, saw(at, 2_300, 60));
            bottlenecks.sample(now, 1, second(at));
        }
        bottlenecks.sharers(0)
    }

    #[test]
    fn one_queue_is_told_from_two() {
        assert_eq!(sharers(|at| saw(at, 2_300, 60)), 2);
        // The same queue seen half a round trip later.
        assert_eq!(sharers(|at| saw(at.saturating_sub(40), 2_300, 60)), 2);
        // Another, with a period of its own or the same in another phase, and one that is empty.
        assert_eq!(sharers(|at| saw(at, 1_700, 60)), 1);
        assert_eq!(sharers(|at| saw(at + 1_000, 2_300, 60)), 1);
        assert_eq!(sharers(|_| Duration::ZERO), 1);
    }

    #[test]
    fn a_path_of_which_nothing_is_heard_shares_nothing() {
        let mut bottlenecks = Bottlenecks::default();
        for at in (0..30_000).step_by(8) {
            let now = Instant::ZERO + Duration::from_millis(at);
            bottlenecks.sample(now, 0, saw(at, 2_300, 60));
            if at < 10_000 {
                bottlenecks.sample(now, 1, saw(at, 2_300, 60));
            }
            if at == 10_000 {
                assert_eq!(bottlenecks.sharers(0), 2);
            }
        }
        assert_eq!(bottlenecks.sharers(0), 1);
    }

    /// Two queues wander about. The first path waits in the first of them, the second so many times as long in each as `second` says; and
    /// either waits up to so many milliseconds more from packet to packet.
    fn is_found(seed: u64, second: [f64; 2], more: [f64; 2]) -> bool {
        let mut rng = clock::Streams::new(seed).stream("delays");
        let (mut bottlenecks, mut queues) = (Bottlenecks::default(), [10.0, 10.0]);
        for at in (0..60_000).step_by(10) {
            for queue in &mut queues {
                *queue = (*queue + rng.range(-1.0, 1.0)).clamp(0.0, 20.0);
            }
            let waits = [queues[0], second[0] * queues[0] + second[1] * queues[1]];
            for path in 0..2 {
                let delay = Duration::from_secs_f64((waits[path] + rng.range(0.0, more[path])) / 1e3);
                bottlenecks.sample(Instant::ZERO + Duration::from_millis(at), path, delay);
            }
        }
        assert_eq!(bottlenecks.delays_agree(1, 0), bottlenecks.sharers(0) == 2, "seed {seed}");
        bottlenecks.sharers(0) == 2
    }

    #[test]
    fn a_queue_is_found_among_other_delays() {
        for seed in 1..=20 {
            assert!(is_found(seed, [1.0, 0.0], [10.0, 10.0]), "seed {seed}");
            assert!(is_found(seed, [1.0, 0.0], [0.1, 10.0]), "seed {seed}, jitter on one");
            assert!(!is_found(seed, [0.0, 1.0], [10.0, 10.0]), "seed {seed}, two queues");
        }
    }

    /// Both go together, with a `c` of 0.6; but one changes by 0.4 of what the other does.
    #[test]
    fn queues_that_change_by_unlike_times_are_two() {
        for seed in 1..=20 {
            assert!(!is_found(seed, [0.24, 0.32], [0.1, 0.1]), "seed {seed}");
        }
    }

    /// Two queues that slow start fills in the same second, that drain in the next, and wander about by themselves from then on.
    #[test]
    fn what_begins_together_need_not_share() {
        for seed in 1..=20 {
            let mut rng = clock::Streams::new(seed).stream("delays");
            let (mut bottlenecks, mut queues) = (Bottlenecks::default(), [10.0, 10.0]);
            for at in (0..20_000_u64).step_by(10) {
                let now = Instant::ZERO + Duration::from_millis(at);
                for (path, queue) in queues.iter_mut().enumerate() {
                    *queue = (*queue + rng.range(-1.0, 1.0)).clamp(0.0, 20.0);
                    let begins = if at < 1_000 { at / 10 } else { 200_u64.saturating_sub(at / 10) };
                    if at < 1_000 {
                        bottlenecks.doubles(path);
                    }
                    bottlenecks.sample(now, path, Duration::from_secs_f64((*queue + begins as f64) / 1e3));
                }
                assert_eq!(bottlenecks.sharers(0), 1, "seed {seed}, {at} ms");
            }
        }
    }

    /// Queues too short to be seen, and three paths: two lose when one of them overflows, the third once at a time of its own.
    #[test]
    fn paths_that_lose_together_share_a_bottleneck() {
        let (rtt, mut bottlenecks) = (Duration::from_millis(60), Bottlenecks::default());
        let lose = |bottlenecks: &mut Bottlenecks, from: u64, paths: [usize; 2]| {
            for at in (from..from + 30_000).step_by(10) {
                let now = Instant::ZERO + Duration::from_millis(at);
                for path in 0..3 {
                    bottlenecks.sample(now, path, Duration::ZERO);
                }
                for path in 0..3 {
                    let (period, after) = if paths.contains(&path) { (1_500, 10 * path as u64) } else { (1_900, 700) };
                    if at % period == after {
                        bottlenecks.lost(now, path, (rtt, rtt));
                    }
                }
            }
        };
        lose(&mut bottlenecks, 0, [0, 1]);
        assert_eq!([0, 1, 2].map(|path| bottlenecks.sharers(path)), [2, 2, 1]);
        // The third with the second, and so with the first.
        lose(&mut bottlenecks, 30_000, [1, 2]);
        assert_eq!([0, 1, 2].map(|path| bottlenecks.sharers(path)), [3, 3, 3]);
        assert!(bottlenecks.are_shared(2, 0) && !bottlenecks.delays_agree(1, 0));
        bottlenecks.forget(1);
        assert_eq!([0, 1, 2].map(|path| bottlenecks.sharers(path)), [1, 1, 1]);
    }

    #[test]
    fn a_path_that_moves_is_judged_anew() {
        let mut bottlenecks = Bottlenecks::default();
        for at in (0..40_000).step_by(8) {
            let now = Instant::ZERO + Duration::from_millis(at);
            bottlenecks.sample(now, 0, saw(at, 2_300, 60));
            bottlenecks.sample(now, 1, if at < 8_000 { saw(at, 2_300, 60) } else { saw(at, 1_700, 60) });
            if at == 7_992 {
                assert_eq!(bottlenecks.sharers(1), 2);
            }
        }
        assert_eq!(bottlenecks.sharers(1), 1);
    }
}

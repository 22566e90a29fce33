//! Which paths go through one bottleneck that has a queue for each flow (fair queuing, as in RFC 8290). Each of them would get a flow's
//! part there, however small their windows are together. So one of them carries, and the others rest.
//!
//! Two paths are suspect if both are full, have the same rate, which changes all the time, and either one has less when the other has
//! more, or they are known to share a bottleneck by their delays, or their rates stay alike; but not where delays or losses show one queue
//! for both ([`crate::Bottlenecks`]). Then the farther one rests on trial. If the nearer one has more soon, and in the end the few packets
//! that are still sent on the other do not wait as long as its own, the bottleneck is such a one, and nothing is sent on the other any more.
//! From time to time a path that rests carries again for a moment. If the other has no less then, both carry from then on.

use crate::correlation::{Correlation, Slots, weight};
use clock::{Duration, Instant};

/// How long a bin is in which rates are counted.
const BIN: Duration = Duration::from_millis(500);
/// The first bins in which a path is full do not count: its window is still growing.
const GROWS: f64 = 10.0;
/// A suspicion takes so many changes of rates from bin to bin, and a correlation so many standard deviations below what chance gives.
const CHANGES: f64 = 20.0;
/// See [`CHANGES`].
const CHANCE: f64 = 2.0;
/// By what part a rate counts less in the mean with each one that follows.
const RATE_FADE: f64 = 0.05;
/// Two rates are the same if neither is so many times the other.
const SAME: f64 = 4.0 / 3.0;
/// ... and alike that are no farther apart than this after so many bins in which both paths were full: queues of their own give flows the
/// same rate.
const ALIKE: (f64, f64) = (1.1, 60.0);
/// The root mean square of the changes, as a part of the rate, of a path beside flows that answer congestion, at least. Where a path has
/// its bottleneck for itself the rate is steady.
const VARIES: f64 = 0.03;
/// A path is full in a bin if at least this part of its bytes was acknowledged while the window was the limit.
const FULL: f64 = 0.9;
/// The end of a trial. Its first part up to [`SOON`] does not count.
const TRIAL: Duration = Duration::from_secs(6);
/// When a trial ends early that does not look well. Its first part up to [`AT_FIRST`] does not count.
const SOON: Duration = Duration::from_millis(2500);
/// See [`SOON`].
const AT_FIRST: Duration = Duration::from_millis(500);
/// How long a path that rests carries again, to see whether it still has to rest. The first third does not count.
const VISIT: Duration = Duration::from_secs(3);
/// How long a path rests before its first visit. It is twice as long after each visit, up to the second of these.
const REST: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// What the path that carries has more while the other rests, as a part of what that one had. It is a half beside one flow of others and
/// a third beside two. Half of this is enough at [`SOON`].
const GAIN: f64 = 0.15;
/// What it has less again on a visit, at the least. In 500 random networks it was 0.3 to 0.9 where all paths had such a bottleneck in common,
/// and a fifth of what had come by chance elsewhere was below this.
const LOST: f64 = 0.2;
/// The packets of a path that rests have been in the other's queue if they wait for more than this part of the time that the other's wait.
const OWN: f64 = 0.85;
/// How long after a trial in vain the next one may begin. It is twice as long after each, up to [`LONGEST`]. Where each flow has a queue,
/// one trial in four is in vain by chance: the queue of the path that carries happens to be short.
const PATIENCE: Duration = Duration::from_secs(20);
/// See [`PATIENCE`].
const LONGEST: Duration = Duration::from_secs(1800);
/// If the path that carries has less than this part of what it had when the other began to rest, something has changed.
const LEAST: f64 = 0.5;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The first path rests from now on, and the other carries.
    Rest(usize, usize),
    /// The path carries again.
    Carry(usize),
    /// The same after a trial in which both were found to be in one queue: what the other has more by now is too much.
    CarryAsBefore(usize, usize),
}

/// What a path has carried until some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    at: Instant,
    /// All bytes, and those that were acknowledged while the window was full.
    bytes: (f64, f64),
    /// The sum of the times for which packets have waited in queues, in seconds, and their number.
    waits: (f64, f64),
}

/// What a path does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Role {
    #[default]
    Carries,
    /// It rests on trial.
    Tries(Rest),
    /// It rests, for so long.
    Rests(Rest, Duration),
    /// It carries for a moment, after so long a rest.
    Visits(Rest, Duration),
}

/// Why a path rests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rest {
    /// The path that carries instead.
    beside: usize,
    /// When this role began.
    since: Instant,
    /// What `beside` had before this role began, in bytes per second.
    rate: f64,
    /// What the path itself had before it began to rest, in bytes per second.
    own: f64,
    /// What `beside` had carried when the part of this role began that counts.
    from: Mark,
    /// The same of the path itself.
    own_from: Mark,
    /// The reason was that both share a bottleneck by their delays. Then they may have one queue in it.
    is_shared: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    role: Role,
    /// Bytes that were acknowledged in this bin, and of those with the window full.
    bin: (f64, f64),
    /// The rate of the last bin in bytes per second, if the path was full.
    rate: Option<f64>,
    /// The mean of such rates, of which older ones count less.
    mean: f64,
    /// For how many bins it has been full.
    bins: f64,
    /// All that it has carried, and when it was heard of last.
    carried: Mark,
    /// When it may rest at the earliest.
    patient_until: Instant,
    /// How long that was after the last trial in vain.
    patience: Duration,
}

/// The changes of two paths.
#[derive(Clone, Copy, Debug)]
struct Pair {
    slots: Slots,
    changes: Correlation,
}

/// What is known of an association's paths, by their slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct FairQueues {
    paths: Vec<State>,
    pairs: Vec<Pair>,
    bin_start: Instant,
}

/// What others know of paths.
pub(crate) trait Known {
    /// The round-trip time of a path in seconds.
    fn rtt(&self, slot: usize) -> f64;
    /// Whether two paths share a bottleneck by their delays.
    fn delays_agree(&self, one: usize, other: usize) -> bool;
    /// Whether two paths have one queue for both, by their delays or losses. Of paths that were full `for_long` more has to say so.
    fn are_one_queue(&self, one: usize, other: usize, for_long: bool) -> bool;
}

impl FairQueues {
    /// So many bytes were acknowledged on a path, with the window full or not.
    pub(crate) fn acked(&mut self, now: Instant, slot: usize, bytes: f64, is_full: bool) {
        if self.paths.len() <= slot {
            let first = self.paths.len();
            self.paths.resize_with(slot + 1, State::default);
            let new = |slots| Pair { slots, changes: Correlation::default() };
            self.pairs.extend(Slots::added(first, slot).map(new));
        }
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.carried.at = now;
        for (all, full) in [&mut path.bin, &mut path.carried.bytes] {
            *all += bytes;
            *full += if is_full { bytes } else { 0.0 };
        }
    }

    /// A round trip on a path had waited so long in queues.
    pub(crate) fn queued(&mut self, slot: usize, queueing: Duration) {
        if let Some(path) = self.paths.get_mut(slot) {
            path.carried.waits.0 += queueing.as_secs_f64();
            path.carried.waits.1 += 1.0;
        }
    }

    /// Whether a path rests.
    pub(crate) fn rests(&self, slot: usize) -> bool {
        self.paths.get(slot).is_some_and(|path| path.role.is_rest())
    }

    /// Until when nothing is to be sent on a path unless more is heard of the one that carries. After its trial the packets of a path that
    /// rests would tell nothing, and take what is another flow's.
    pub(crate) fn silent_until(&self, slot: usize, known: &impl Known) -> Option<Instant> {
        let Role::Rests(rest, _) = self.paths.get(slot)?.role else { return None };
        Some(self.paths.get(rest.beside)?.carried.at + silence(rest.beside, known))
    }

    /// The path is another now, or does not answer. Those that rested because of it carry again.
    pub(crate) fn forget(&mut self, slot: usize) -> Vec<Step> {
        for pair in self.pairs.iter_mut().filter(|pair| pair.slots.have(slot)) {
            pair.changes = Correlation::default();
        }
        let is_of = |other: &usize| {
            self.paths
                .get(*other)
                .and_then(|path| path.role.rest())
                .is_some_and(|rest| *other == slot || rest.beside == slot)
        };
        let of: Vec<usize> = (0..self.paths.len()).filter(is_of).collect();
        let steps = of.into_iter().filter_map(|other| self.carry(other)).collect();
        if let Some(path) = self.paths.get_mut(slot) {
            *path = State::default();
        }
        steps
    }

    fn carry(&mut self, slot: usize) -> Option<Step> {
        let rests = self.rests(slot);
        self.paths.get_mut(slot)?.role = Role::Carries;
        rests.then_some(Step::Carry(slot))
    }

    /// What is to be done now, if anything is.
    pub(crate) fn step(&mut self, now: Instant, known: &impl Known) -> Option<Step> {
        if now.saturating_since(self.bin_start) >= BIN {
            self.end_bin(now);
            if let Some((slot, beside, is_shared)) = self.suspects(now, known) {
                return self.begin(now, slot, beside, is_shared);
            }
        }
        (0..self.paths.len()).find_map(|slot| self.go_on(now, slot, known))
    }

    fn end_bin(&mut self, now: Instant) {
        let seconds = now.saturating_since(self.bin_start).as_secs_f64();
        self.bin_start = now;
        let mut changes = Vec::with_capacity(self.paths.len());
        for path in &mut self.paths {
            let (all, full) = std::mem::take(&mut path.bin);
            let before = path.rate;
            // What a path has less because it rests is no sign that another has more.
            path.rate = (!path.role.is_rest() && all > 0.0 && full >= FULL * all).then_some(all / seconds);
            path.bins = if path.rate.is_some() { path.bins + 1.0 } else { 0.0 };
            if let Some(rate) = path.rate {
                path.mean += weight(path.bins).max(RATE_FADE) * (rate - path.mean);
            }
            changes.push(path.rate.zip(before).filter(|_| path.bins > GROWS).map(|(rate, before)| rate - before));
        }
        for pair in &mut self.pairs {
            if let (Some(Some(one)), Some(Some(other))) = (changes.get(pair.slots.low), changes.get(pair.slots.high)) {
                pair.changes.count(*one, *other);
            }
        }
    }

    /// Two suspect paths, the one that is to rest first, and whether the reason is that they share a bottleneck by their delays.
    fn suspects(&self, now: Instant, known: &impl Known) -> Option<(usize, usize, bool)> {
        if self.is_trying() {
            return None;
        }
        let carries = |slot: usize| {
            let able = |path: &&State| path.role == Role::Carries && path.bins >= GROWS && now >= path.patient_until;
            self.paths.get(slot).filter(able)
        };
        let is_found = self.paths.iter().any(|path| matches!(path.role, Role::Rests(..)));
        self.pairs.iter().find_map(|pair| {
            let Slots { low, high } = pair.slots;
            let (one, other) = carries(low).zip(carries(high))?;
            let is_same = (1.0 / SAME..SAME).contains(&(one.mean / other.mean));
            let (c, sizes) = (pair.changes.of(CHANGES)?, pair.changes.sizes());
            let varies = sizes.0 > VARIES * one.mean && sizes.1 > VARIES * other.mean;
            let (is_opposed, is_shared) =
                (c < -CHANCE * pair.changes.chance() || is_found, known.delays_agree(low, high));
            let for_long = one.bins.min(other.bins) >= ALIKE.1;
            // That alone is tried half as often.
            let waits = |path: &State| now >= path.patient_until + path.patience;
            let is_alike = (1.0 / ALIKE.0..ALIKE.0).contains(&(one.mean / other.mean));
            let is_alike = is_alike && for_long && waits(one) && waits(other);
            let (rests, carries) = if known.rtt(low) > known.rtt(high) { (low, high) } else { (high, low) };
            let has_reason = is_opposed || is_shared || is_alike;
            let is_suspect = is_same && varies && has_reason && !known.are_one_queue(low, high, for_long);
            is_suspect.then_some((rests, carries, is_shared && !is_opposed))
        })
    }

    /// Whether a path is being tried: one at a time.
    fn is_trying(&self) -> bool {
        self.paths.iter().any(|path| matches!(path.role, Role::Tries(_) | Role::Visits(..)))
    }

    fn begin(&mut self, now: Instant, slot: usize, beside: usize, is_shared: bool) -> Option<Step> {
        let (other, path) = (*self.paths.get(beside)?, self.paths.get_mut(slot)?);
        let from = Mark { at: now, ..other.carried };
        let own_from = path.carried;
        path.role =
            Role::Tries(Rest { beside, since: now, rate: other.mean, own: path.mean, from, own_from, is_shared });
        Some(Step::Rest(slot, beside))
    }

    /// What the path that carries has more than before, as a part of what the one that rests had. `None` where it is not full.
    fn gain(&self, now: Instant, rest: &Rest) -> Option<f64> {
        let Mark { bytes: (all, full), .. } = self.paths.get(rest.beside)?.carried;
        let (all, full) = (all - rest.from.bytes.0, full - rest.from.bytes.1);
        let rate = all / now.saturating_since(rest.from.at).as_secs_f64().max(1e-3);
        (all > 0.0 && full >= FULL * all).then(|| (rate - rest.rate) / rest.own.max(1.0))
    }

    /// Whether packets of a path that rests may have been in a queue of their own.
    fn may_have_own_queue(&self, slot: usize, rest: &Rest) -> bool {
        let mean = |slot: usize, from: &Mark| {
            let waits = self.paths.get(slot).map_or((0.0, 0.0), |path| path.carried.waits);
            (waits.0 - from.waits.0) / (waits.1 - from.waits.1).max(1.0)
        };
        !rest.is_shared || mean(slot, &rest.own_from) < OWN * mean(rest.beside, &rest.from)
    }

    fn go_on(&mut self, now: Instant, slot: usize, known: &impl Known) -> Option<Step> {
        let role = self.paths.get(slot)?.role;
        let rest = role.rest()?;
        let carried = self.paths.get(rest.beside)?.carried;
        let State { mean, bins, .. } = *self.paths.get(rest.beside)?;
        if now.saturating_since(carried.at) > silence(rest.beside, known) || bins >= GROWS && mean < LEAST * rest.rate {
            return self.carry(slot);
        }
        let (from, own_from) = (Mark { at: now, ..carried }, self.paths.get(slot)?.carried);
        let age = now.saturating_since(rest.since);
        let (role, step) = match role {
            Role::Carries => return None,
            Role::Tries(rest) => {
                let is_soon = age < TRIAL;
                if age < AT_FIRST {
                    (Role::Tries(Rest { from, own_from, ..rest }), None)
                } else if is_soon && (age < SOON || rest.from.at >= rest.since + SOON) {
                    return None;
                } else if self.gain(now, &rest).is_none_or(|gain| gain < if is_soon { GAIN / 2.0 } else { GAIN })
                    || !is_soon && !self.may_have_own_queue(slot, &rest)
                {
                    let path = self.paths.get_mut(slot)?;
                    path.patience = (path.patience * 2).clamp(PATIENCE, LONGEST);
                    path.patient_until = now + path.patience;
                    path.role = Role::Carries;
                    return Some(if rest.is_shared {
                        Step::CarryAsBefore(slot, rest.beside)
                    } else {
                        Step::Carry(slot)
                    });
                } else if is_soon {
                    (Role::Tries(Rest { from, own_from, ..rest }), None)
                } else {
                    (Role::Rests(Rest { since: now, from, ..rest }, REST.0), None)
                }
            }
            Role::Rests(_, long) if age < long || self.is_trying() => return None,
            Role::Rests(rest, long) => {
                let Some(gain) = self.gain(now, &rest) else { return self.carry(slot) };
                let rate = rest.rate + gain * rest.own;
                (Role::Visits(Rest { since: now, rate, from, ..rest }, long), Some(Step::Carry(slot)))
            }
            Role::Visits(rest, long) => {
                if age < VISIT / 3 {
                    (Role::Visits(Rest { from, ..rest }, long), None)
                } else if age < VISIT {
                    return None;
                } else if self.gain(now, &rest).is_none_or(|gain| gain > -LOST) {
                    return self.carry(slot);
                } else {
                    (
                        Role::Rests(Rest { since: now, from, ..rest }, (long * 2).min(REST.1)),
                        Some(Step::Rest(slot, rest.beside)),
                    )
                }
            }
        };
        self.paths.get_mut(slot)?.role = role;
        step
    }
}

/// So long without an acknowledgment, and a path does not carry any more.
fn silence(slot: usize, known: &impl Known) -> Duration {
    Duration::from_secs_f64(2.0 * known.rtt(slot)).max(BIN / 2)
}

impl Role {
    fn is_rest(self) -> bool {
        matches!(self, Self::Tries(_) | Self::Rests(..))
    }

    fn rest(self) -> Option<Rest> {
        match self {
            Self::Carries => None,
            Self::Tries(rest) | Self::Rests(rest, _) | Self::Visits(rest, _) => Some(rest),
        }
    }
}

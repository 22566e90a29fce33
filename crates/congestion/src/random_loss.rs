//! Which losses of a path are congestion's, and which are the link's own: radio, mostly.
//!
//! A full queue is seen: round trips are long where it drops. And what a queue, or a policer without one, drops, it drops for the
//! rate: at less of it there is no loss. A link's own losses come whatever the rate, and without a queue. So
//!
//! - a loss while packets wait is answered, as ever;
//! - what is lost although nothing waits, and although the window is well below the one that lost before, is the link's own. How
//!   often that is, is known from there, and from nowhere else;
//! - what is lost although nothing waits, at larger windows, is borne while that explains as many losses as there are. Where nothing was lost at smaller
//!   windows, that is not at all: a policer and a shallow buffer are answered as ever;
//! - where several losses at small windows have told how many are the link's own, so many are borne with a short queue, too;
//! - a reduction after which the losses went on did not help, and is taken back, once for each such window;
//! - a window that grows to a quarter more than the one that lost, without another loss, was not too large: that loss was the link's;
//! - where losses are known to be the link's own, the window grows as in slow start up to what is small, and after each of them
//!   beyond that as in conservative slow start, to half as much again, or to half of one that was seen to be too large, and slowly to
//!   near one at which a queue stood. That is believed for so many losses, for it may have been chance, and then the window grows past it slowly;
//! - a window of no more than the first one is small, also while nothing is known of queues, and packets that overtake each other
//!   stand in no queue;
//! - more than a twentieth of the packets, by more than chance, is answered, whatever else is seen: others may be behind the same
//!   policer.
//!
//! That losses are told apart by what delays say goes back to S. Biaz and N. Vaidya (*Discriminating congestion losses from wireless
//! losses using inter-arrival times at the receiver*, 1999); that neither delay nor loss alone does it, and that a lower rate has to
//! show it, is why there are both conditions here.

use clock::{Duration, Instant};

use crate::delays::Delays;
use crate::group::Path;

/// Of the window that lost last, what is too small to have lost for its size.
const SMALL: f64 = 0.7;
/// ... and so is the first window of RFC 6928, in packets: whoever begins sends it without asking. A Reno that loses 2 % of its
/// packets has a window of nine (√(3/2p), M. Mathis and others, 1997), and would stay there.
const FIRST: f64 = 10.0;
/// Losses at small windows that tell that a reduction did not help.
const TELLING: f64 = 2.0;
/// A window that lost was not too large if it grows to so many times as much without another loss.
const PASSED: f64 = 1.25;
/// After a loss that is known to be the link's own the window grows quicker to so many times as much, to see whether more of it
/// loses more, ...
const PROBE: f64 = 1.5;
/// ... or where one was seen to be too large, to this part of that.
const SAFE: f64 = 0.5;
/// It grows by this part of itself in a round trip, as in the conservative slow start of RFC 9406 §4.2, ...
const QUICK: f64 = 1.0 / 4.0;
/// ... and by this one from [`SAFE`] to near a window at which a queue stood, and past it: what is more than the link takes is lost before
/// anybody knows.
const SLOW: f64 = 1.0 / 32.0;
/// Those are like it.
const NEAR: std::ops::Range<f64> = 0.85..PASSED;
/// A window is believed to be too large until so many losses have been borne, and for twice as many when one like it is seen to be,
/// up to the second number.
const BELIEVED: (f64, f64) = (32.0, 512.0);
/// As many losses as small windows explain are chance up to so many standard deviations of that number, and one more, ...
const DEVIATIONS: f64 = 3.0;
/// ... up to so many at windows that are [`NEAR`] one that was seen to be too large, ...
const FEWER: f64 = 2.5;
/// ... but not more than this part of all packets, and [`DEVIATIONS`] of that, and one.
const MOST: f64 = 0.05;
/// Packets that are looked at for that.
const RECENT: f64 = 200.0;
/// What is known of small windows is of so many packets at most, so that it is of this path as it is now.
const REMEMBERED: f64 = 4_000.0;
/// Where so many losses at small windows have told how many are the link's own, as many are borne ...
const SURE: f64 = 5.0;
/// ... up to so many times the delays that are no queue: a window that carries all that the link does keeps some packets in its queue.
const MILD: u64 = 2;
/// A window that lost again after a reduction from it was taken back is a limit, and so are those up to this many times it.
const LIKE: std::ops::Range<f64> = 0.5..1.25;
/// A queue overtakes nobody: where so much of what arrives, and so many packets more, come behind later packets, delays differ for
/// another reason.
const REORDERED: (f64, f64) = (0.1, 4.0);
/// What a loss is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Congestion's, or nobody can tell.
    Answer,
    /// The link's own.
    Bear,
    /// The link's own, and so were those that the last reductions answered: window and threshold had so many bytes.
    TakeBack { cwnd: f64, ssthresh: f64 },
}

/// Packets, how many of them were lost, and how many came behind later ones.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: f64,
    lost: f64,
    reordered: f64,
}

/// The window that was seen to be too large last: a queue stood, or more was lost than is the link's own.
#[derive(Clone, Copy, Debug, Default)]
struct Proven {
    /// In bytes; zero while there is none.
    cwnd: f64,
    /// A queue stood when it lost; else more was lost than is the link's own.
    has_queue: bool,
    /// Losses that may still be borne until it is believed no more.
    left: f64,
    /// How many there were at first.
    believed: f64,
}

impl Proven {
    /// The window in bytes while it is believed to be too large, or zero.
    fn believed(&self) -> f64 {
        if self.left > 0.0 { self.cwnd } else { 0.0 }
    }

    /// Whether a window of so many bytes is like it.
    fn is_near(&self, cwnd: f64) -> bool {
        NEAR.contains(&(cwnd / self.cwnd.max(1.0)))
    }
}

/// Packets whose loss was borne, and that may still arrive: what comes later than a round trip does not come.
#[derive(Clone, Copy, Debug, Default)]
struct Borne {
    packets: u32,
    /// How many of them were lost at small windows.
    at_small: u32,
    until: Instant,
}

impl Borne {
    /// So many more, that may arrive until then.
    fn add(&mut self, packets: u32, at_small: u32, now: Instant, until: Instant) {
        let before = if now > self.until { Self::default() } else { *self };
        *self = Self { packets: before.packets + packets, at_small: before.at_small + at_small, until };
    }

    /// So many have arrived. Returns how many of them were among those that were borne, and how many of these at small windows: those at
    /// larger ones first.
    fn arrived(&mut self, late: u32, now: Instant) -> (u32, u32) {
        if now > self.until {
            return (0, 0);
        }
        let borne = late.min(self.packets);
        self.packets -= borne;
        let at_small = self.at_small.saturating_sub(self.packets);
        self.at_small -= at_small;
        (borne, at_small)
    }
}

/// What is known of the losses of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct RandomLoss {
    delays: Delays,
    /// All packets lately: of this stretch and the one before.
    recent: [Tally; 2],
    /// At windows that are small or were passed, without a queue.
    small: Tally,
    /// What the window has grown from since the last reduction, in bytes.
    from: f64,
    /// The largest window in bytes that is known to be too large, or to lose no more than smaller ones; zero while none is.
    limit: f64,
    proven: Proven,
    /// What was lost at `limit` without a queue, and what has arrived since, while nothing else was lost.
    since_limit: Tally,
    /// The largest window and threshold before the last reductions, while they may turn out to have helped nothing.
    before: Option<(f64, f64)>,
    /// Lost since then although the window was small.
    unhelped: f64,
    /// The window to which one was taken back last.
    taken_back_to: f64,
    borne: Borne,
}

impl RandomLoss {
    /// A round trip was measured; `path` is as before it.
    pub(crate) fn on_rtt(&mut self, rtt: Duration, path: &Path, now: Instant) {
        let is_reordered = self.is_reordered();
        self.delays.on_rtt(rtt, path, is_reordered, now);
    }

    /// Whether a loss may be the link's own.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.delays.are_quiet() || self.is_known()
    }

    /// The path was silent, and answers again. It may be another, but is not likely to: its losses are what they were.
    pub(crate) fn revived(&mut self) {
        let Self { small, recent, limit, proven, .. } = *self;
        let delays = self.delays.revived();
        *self = Self { delays, small, recent, limit, proven, ..Self::default() };
    }

    /// Whether a queue stands on the path, as far as anything is known.
    pub(crate) fn has_queue(&self) -> bool {
        self.delays.are_known() && !self.delays.are_quiet()
    }

    /// Whether packets overtake each other.
    fn is_reordered(&self) -> bool {
        let [a, b] = self.recent;
        a.reordered + b.reordered > REORDERED.0 * (a.packets + b.packets) + REORDERED.1
    }

    /// So many packets have arrived behind later ones.
    pub(crate) fn on_reordered(&mut self, packets: u32) {
        self.recent[0].reordered += f64::from(packets);
    }

    /// So many packets were acknowledged.
    pub(crate) fn on_acked(&mut self, packets: f64, path: &Path) {
        self.recent[0].packets += packets;
        // What a larger window has lost is found out when it is smaller already.
        if self.recent[0].packets >= RECENT.max(path.cwnd.max(self.limit) / path.mss) {
            self.recent = [Tally::default(), self.recent[0]];
        }
        if !self.delays.are_quiet() || path.in_recovery {
            return;
        }
        self.since_limit.packets += packets;
        if self.since_limit.lost > 0.0 && path.cwnd >= PASSED * self.limit {
            let Tally { packets, lost, .. } = std::mem::take(&mut self.since_limit);
            (self.small.packets, self.small.lost) = (self.small.packets + packets, self.small.lost + lost);
        }
        if path.cwnd >= PASSED * self.proven.cwnd && !self.is_high() {
            self.proven.left = 0.0;
        }
        if self.is_small(path) {
            self.small.packets += packets;
            if self.small.packets > REMEMBERED {
                self.small = Tally { packets: self.small.packets / 2.0, lost: self.small.lost / 2.0, reordered: 0.0 };
            }
            return;
        }
        if self.limit > 0.0 && path.cwnd >= self.from / SMALL {
            // No more was lost than at smaller windows: this one is no limit either.
            (self.limit, self.from) = (self.limit.max(path.cwnd), path.cwnd);
        }
    }

    /// Whether the window is too small to lose for its size.
    fn is_small(&self, path: &Path) -> bool {
        path.cwnd <= (SMALL * self.limit).max(FIRST * path.mss)
    }

    /// Up to what window slow start goes on after a loss that was borne, in bytes: to where windows are too small to have lost for
    /// their size, once losses there have told how many are the link's own.
    pub(crate) fn room(&self, path: &Path) -> f64 {
        if self.is_known() { path.ssthresh.max(SMALL * self.limit) } else { path.ssthresh }
    }

    /// Up to what window it grows quicker after a loss that was borne, in bytes (see [`PROBE`]), and by which part of itself in a round
    /// trip.
    pub(crate) fn probed(&self, path: &Path) -> (f64, f64) {
        let (believed, near, more) = (self.proven.believed(), NEAR.start * self.proven.cwnd, PROBE * path.cwnd);
        if !self.is_known() {
            (0.0, 0.0)
        } else if believed > 0.0 && (path.cwnd < SAFE * believed || !self.proven.has_queue) {
            (SAFE * believed, QUICK)
        } else if believed > 0.0 {
            (more.min(near), SLOW)
        } else if path.cwnd < near {
            (more.min(near), QUICK)
        } else {
            (more, if self.proven.is_near(path.cwnd) { SLOW } else { QUICK })
        }
    }

    /// Whether losses at windows that are small, or that were passed, have told how many are the link's own.
    fn is_known(&self) -> bool {
        self.small.lost >= 1.0
    }

    /// How many of the link's packets are lost whatever the window, as far as that is known.
    pub(crate) fn own(&self) -> f64 {
        if self.is_known() { self.small.lost / self.small.packets.max(1.0) } else { 0.0 }
    }

    /// So many packets were found lost, outside of recovery.
    pub(crate) fn judge(&mut self, lost: u32, path: &Path, now: Instant) -> Verdict {
        let count = f64::from(lost);
        self.recent[0].lost += count;
        let is_first = !self.delays.are_known() && path.ssthresh.is_infinite() && path.cwnd <= FIRST * path.mss;
        if is_first && !self.is_high() {
            self.bear(lost, 0, now);
            return Verdict::Bear;
        }
        self.since_limit = Tally::default();
        if !self.delays.are_quiet() || self.is_high() {
            let is_known_well = self.small.lost >= SURE && !self.is_high() && self.is_explained(path);
            if is_known_well && self.delays.show_no_queue(path, MILD, self.is_reordered()) {
                self.bear(lost, 0, now);
                return Verdict::Bear;
            }
            if self.is_known() {
                self.on_proven(path.cwnd);
            }
            return Verdict::Answer;
        }
        if self.is_small(path) {
            self.small.lost += count;
            self.unhelped += count;
            self.bear(lost, lost, now);
            let unhelped = self.before.filter(|_| self.unhelped >= TELLING);
            self.before = self.before.filter(|_| unhelped.is_none());
            return unhelped.map_or(Verdict::Bear, |(cwnd, ssthresh)| Verdict::TakeBack { cwnd, ssthresh });
        }
        if !self.is_known() {
            self.since_limit.lost = count;
            return Verdict::Answer;
        }
        if !self.is_explained(path) {
            self.on_proven(path.cwnd);
            return Verdict::Answer;
        }
        self.bear(lost, 0, now);
        Verdict::Bear
    }

    /// So many losses are borne, of which so many were found at a small window.
    fn bear(&mut self, lost: u32, at_small: u32, now: Instant) {
        self.proven.left -= f64::from(lost);
        self.borne.add(lost, at_small, now, now + self.delays.last().unwrap_or_default());
    }

    /// Whether what was lost lately is no more than the link's own losses would be. Of late only: many packets that passed at smaller
    /// windows would explain whatever is lost at this one.
    fn is_explained(&self, path: &Path) -> bool {
        let (packets, lately) = self.lately();
        let explained = self.small.lost / self.small.packets.max(1.0) * packets;
        // Of few packets at small windows little is known.
        let unsure = (packets / self.small.packets.max(1.0)).min(1.0);
        let deviations = if self.proven.is_near(path.cwnd) { FEWER } else { DEVIATIONS };
        lately <= by_chance(explained, explained * (1.0 + unsure), deviations)
    }

    /// A window of so many bytes was too large. One that is not much smaller than the one that is known may have been so because of
    /// that, a moment before.
    fn on_proven(&mut self, cwnd: f64) {
        let (before, has_queue) = (self.proven, !self.delays.are_quiet());
        if cwnd > before.believed() || cwnd <= SAFE * before.believed() {
            let is_like = LIKE.contains(&(cwnd / before.cwnd.max(1.0)));
            let believed = if is_like { (before.believed * 2.0).min(BELIEVED.1) } else { BELIEVED.0 };
            self.proven = Proven { cwnd, has_queue, left: believed, believed };
        }
    }

    /// So many packets were found lost that the last reduction has answered.
    pub(crate) fn on_also_lost(&mut self, lost: u32) {
        self.recent[0].lost += f64::from(lost);
    }

    /// Packets that arrived lately, and packets that were lost.
    fn lately(&self) -> (f64, f64) {
        let [a, b] = self.recent;
        (a.packets + b.packets, a.lost + b.lost)
    }

    fn is_high(&self) -> bool {
        let (packets, lost) = self.lately();
        let most = MOST * (packets + lost);
        lost > by_chance(most, most, DEVIATIONS)
    }

    /// The window of `cwnd` bytes was reduced for a loss or a timeout, or for another sign, which needs no proof; `ssthresh` was its
    /// threshold.
    pub(crate) fn on_reduced(&mut self, cwnd: f64, ssthresh: f64, is_loss: bool) {
        let is_limit = LIKE.contains(&(cwnd / self.taken_back_to.max(1.0)));
        let may_be_wrong = is_loss && self.delays.are_quiet() && !is_limit && !self.is_high();
        let before = self.before.unwrap_or((cwnd, ssthresh));
        self.before = may_be_wrong.then_some((before.0.max(cwnd), before.1.max(ssthresh)));
        (self.limit, self.from) = (cwnd, SMALL * cwnd);
        self.unhelped = 0.0;
    }

    /// The last reduction was taken back; the window is so many bytes again.
    pub(crate) fn on_taken_back(&mut self, cwnd: f64) {
        self.taken_back_to = cwnd;
    }

    /// So many packets have arrived that had been taken for lost. Returns how many of them a reduction had answered.
    pub(crate) fn on_late(&mut self, late: u32, now: Instant) -> u32 {
        let mut rest = f64::from(late);
        for Tally { lost, .. } in &mut self.recent {
            let less = lost.min(rest);
            (*lost, rest) = (*lost - less, rest - less);
        }
        let (borne, at_small) = self.borne.arrived(late, now);
        self.since_limit.lost = (self.since_limit.lost - f64::from(late - borne)).max(0.0);
        for lost in [&mut self.unhelped, &mut self.small.lost] {
            *lost = (*lost - f64::from(at_small)).max(0.0);
        }
        late - borne
    }
}

/// How many losses chance makes of so many that are expected, with this variance.
fn by_chance(expected: f64, variance: f64, deviations: f64) -> f64 {
    expected + deviations * variance.sqrt() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_late_was_lost_at_a_large_window_while_any_was() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut borne = Borne::default();
        borne.add(1, 1, at(0), at(100));
        borne.add(2, 0, at(50), at(150));
        assert_eq!(borne.arrived(1, at(60)), (1, 0));
        assert_eq!(borne.arrived(3, at(70)), (2, 1), "no more than were borne");
        borne.add(2, 2, at(80), at(180));
        assert_eq!(borne.arrived(1, at(200)), (0, 0), "a round trip later");
        borne.add(1, 0, at(210), at(300));
        assert_eq!(borne.arrived(2, at(220)), (1, 0), "those of before do not come any more");
    }
}

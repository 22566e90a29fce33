//! Paths through one bottleneck are one flow together, as those of a Congestion Manager are (RFC 3124 §2), under rules that treat
//! each path as a flow of its own.
//!
//! Of n paths, each counts packets of an n-th ([`Path::unit`](crate::Path::unit)): a Reno so grows by an n-th of a packet in a
//! round trip, a CUBIC along the curve of an n-th of the window. And what one of them loses all answer, once in a round trip.
//! Were only their growth divided (by n², M. Honda and others, *Multipath congestion control for shared bottleneck*, 2009), they
//! would get a TCP's rate where every packet is as likely to be lost as any other, but half of it where a full queue hits all
//! of them at once.
//!
//! Rules that couple paths themselves ([`Kind::couples`](crate::Kind)) see to it themselves.

use clock::{Duration, Instant};

use crate::bottleneck::Bottlenecks;
use crate::engine::{Acked, Congestion, Controller, EngineConfig, Undo};
use crate::rule::{Cause, WindowRule};

/// What part of the one flow each path through a bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// An n-th: after losses that all answer, their windows become equal.
    Equal,
    /// As large as its window is among theirs, so that the sum grows by one packet in a round trip wherever packets are
    /// acknowledged: mHIP's global window (ALGORITHMS §13 M7).
    ByWindow,
}

/// What would show that a reduction was an error: that all that was missing arrives after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Packets that were taken for lost.
    pub missing: u32,
    /// Later arrivals may be those of retransmissions, and show nothing.
    pub until: Instant,
}

impl Doubt {
    /// Nothing can show it.
    pub const NONE: Self = Self { missing: 0, until: Instant::ZERO };
}

/// What is known of the last reduction of a path.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    doubt: Doubt,
    /// The path whose loss it answered, if it was another's.
    because: Option<usize>,
}

const UNDOUBTED: Reduction = Reduction { doubt: Doubt::NONE, because: None };

/// A [`Controller`] whose paths answer congestion together where they share a bottleneck.
#[derive(Clone, Debug)]
pub struct CoupledController<R> {
    control: Controller<R>,
    share: Share,
    /// Whether that is left to us: the rule does not couple paths itself, and the owner asks for it.
    couples: bool,
    bottlenecks: Bottlenecks,
    reductions: Vec<Reduction>,
}

impl<R: WindowRule> CoupledController<R> {
    /// A controller without paths.
    pub fn new(rule: R, config: EngineConfig, share: Share) -> Self {
        let couples = !rule.kind().couples;
        let control = Controller::new(rule, config);
        Self { control, share, couples, bottlenecks: Bottlenecks::default(), reductions: Vec::new() }
    }

    /// The same, with paths that are alone whatever they share.
    #[must_use]
    pub fn uncoupled(self) -> Self {
        Self { couples: false, ..self }
    }

    /// Adds a path for packets of at most `mss` bytes and returns its index.
    pub fn add_path(&mut self, mss: u32) -> usize {
        self.reductions.push(UNDOUBTED);
        self.control.add_path(mss)
    }

    /// The windows, rule and state of the paths.
    #[inline]
    pub fn control(&self) -> &Controller<R> {
        &self.control
    }

    /// The same, for what concerns one path alone.
    pub fn control_mut(&mut self) -> &mut Controller<R> {
        &mut self.control
    }

    /// `path` begins anew.
    pub fn restart(&mut self, path: usize) {
        self.control.restart(path);
        self.bottlenecks.forget(path);
        self.set_reduction(path, UNDOUBTED);
    }

    /// A round trip on `path` has waited so long in queues.
    #[inline]
    pub fn on_queueing(&mut self, path: usize, queueing: Duration, now: Instant) {
        if self.bottlenecks.sample(now, path, queueing) && self.couples {
            for path in 0..self.reductions.len() {
                self.set_share(path);
            }
        }
    }

    /// How many paths share the bottleneck of `path`, this one included.
    pub fn sharers(&self, path: usize) -> u32 {
        self.bottlenecks.sharers(path)
    }

    /// Whether a loss on one of these paths is one on the other, too.
    #[inline]
    pub fn are_one(&self, one: usize, other: usize) -> bool {
        one == other || (self.couples && self.bottlenecks.are_shared(one, other))
    }

    /// `path` and those that are one flow with it.
    pub fn together(&self, path: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.reductions.len()).filter(move |other| self.are_one(path, *other))
    }

    /// Data were acknowledged on `path`.
    #[inline]
    pub fn on_ack(&mut self, path: usize, acked: &Acked, now: Instant) {
        if self.share == Share::ByWindow && self.couples {
            self.set_share(path);
        }
        self.control.on_ack(path, acked, now);
    }

    /// A sign of congestion on `path`, and what would show that it was none. Returns whether windows were reduced: that of `path`,
    /// and but for a timeout, which is the path's own affair, those of the paths that are one flow with it. What is missing
    /// without a further reduction is one more reason for the last.
    pub fn on_congestion(&mut self, path: usize, event: &Congestion, doubt: Doubt, now: Instant) -> bool {
        if !self.control.on_congestion(path, event, now) {
            self.on_also_missing(path, doubt);
            return false;
        }
        self.set_reduction(path, Reduction { doubt, because: None });
        if event.cause == Cause::Timeout {
            return true;
        }
        for other in 0..self.reductions.len() {
            if other == path || !self.are_one(path, other) {
                continue;
            }
            let event =
                Congestion { flight: self.control.cwnd(other), next: self.control.next(other), cause: event.cause };
            if self.control.on_congestion(other, &event, now) {
                self.set_reduction(other, Reduction { doubt: Doubt::NONE, because: Some(path) });
            }
        }
        true
    }

    /// What else is missing on `path` of the window of data that its last reduction answered.
    pub fn on_also_missing(&mut self, path: usize, more: Doubt) {
        if let Some(Reduction { doubt, .. }) = self.reductions.get_mut(path) {
            *doubt = Doubt { missing: doubt.missing + more.missing, until: doubt.until.max(more.until) };
        }
    }

    /// So many of the packets that were missing on `path` have arrived after all. Returns whether that shows that its last
    /// reduction was an error: all of them have come, or with `one_is_enough` any.
    pub fn on_late(&mut self, path: usize, late: u32, one_is_enough: bool, now: Instant) -> bool {
        let Some(Reduction { doubt, because }) = self.reductions.get_mut(path) else { return false };
        if now > doubt.until {
            doubt.missing = 0;
        }
        let enough = if one_is_enough { doubt.missing.min(1) } else { doubt.missing };
        doubt.missing = doubt.missing.saturating_sub(late);
        enough > 0 && late >= enough && because.is_none()
    }

    /// The last reduction of `path` was an error: it is taken back there, and where it was answered, too, by paths that have
    /// lost nothing of their own since. Returns whether there was one.
    pub fn on_spurious(&mut self, path: usize, now: Instant) -> bool {
        let mut undone = self.control.on_spurious(path, Undo::Restore, now);
        for other in 0..self.reductions.len() {
            let is_answer = |reduction: &Reduction| reduction.because == Some(path) && reduction.doubt.missing == 0;
            if self.are_one(path, other) && self.reductions.get(other).is_some_and(is_answer) {
                undone |= self.control.on_spurious(other, Undo::Restore, now);
            }
        }
        undone
    }

    fn set_reduction(&mut self, path: usize, reduction: Reduction) {
        if let Some(last) = self.reductions.get_mut(path) {
            *last = reduction;
        }
    }

    fn set_share(&mut self, path: usize) {
        let Some(state) = self.control.paths().get(path) else { return };
        let unit = match self.share {
            Share::Equal => state.mss / f64::from(self.bottlenecks.sharers(path)),
            Share::ByWindow if self.bottlenecks.sharers(path) == 1 => state.mss,
            Share::ByWindow => {
                let all: f64 = self.together(path).map(|other| self.control.cwnd(other)).sum();
                state.mss * state.cwnd / all
            }
        };
        self.control.set_unit(path, unit);
    }
}

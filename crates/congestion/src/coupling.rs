//! Paths through one bottleneck are one flow together, as those of a Congestion Manager are (RFC 3124 §2), under rules that treat
//! each path as a flow of its own.
//!
//! Of n paths that are equally far, each counts packets of an n-th ([`Path::unit`](crate::Path::unit)): a Reno so grows by an n-th of a
//! packet in a round trip, a CUBIC along the curve of an n-th of the window. And what one of them loses all answer, once in a round trip.
//! Were only their growth divided (by n², M. Honda and others, *Multipath congestion control for shared bottleneck*, 2009), they
//! would get a TCP's rate where every packet is as likely to be lost as any other, but half of it where a full queue hits all
//! of them at once.
//!
//! Rules that couple paths themselves ([`Kind::couples`](crate::Kind)) see to it themselves.

use clock::{Duration, Instant};

use crate::bottleneck::Bottlenecks;
use crate::correlation::Mean;
use crate::engine::{Acked, Congestion, Controller, EngineConfig, Undo, is_full};
use crate::fair_queue::{FairQueues, Known, Step};
use crate::random_loss::{RandomLoss, Verdict};
use crate::rule::{Cause, WindowRule};

/// What part of the one flow each path through a bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The same for all, so that together they have the rate of a TCP on the quickest of them (RFC 6356 §2): an n-th where all are
    /// equally far, more where some are farther. After losses that all answer, their windows become equal.
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
    /// What the window and the round trip of each path allow, in bytes per second: the mean of the last bins of [`Bottlenecks`].
    rates: Vec<Mean>,
    /// Of each path, which of its losses are the link's own; nothing where all losses are answered.
    random_loss: Option<Vec<RandomLoss>>,
    /// Nothing where paths never rest.
    fair_queues: Option<FairQueues>,
    /// What there was before a path had to rest.
    rested: Vec<Rested>,
}

/// Bytes that there were before a path had to rest.
#[derive(Clone, Copy, Debug, Default)]
struct Rested {
    cwnd: f64,
    ssthresh: f64,
    /// The window of the path that carries instead.
    other: f64,
}

/// The window of a path that rests on trial, in packets: enough to see whether it is there and how long its queue is.
const RESTING: f64 = 2.0;

/// A part that is not larger or smaller by more than this, as a logarithm, is left as it is: a mean changes a little in each bin.
const LIKE: f64 = 0.03;

impl<R: WindowRule> CoupledController<R> {
    /// A controller without paths.
    pub fn new(rule: R, config: EngineConfig, share: Share) -> Self {
        let kind = rule.kind();
        let (couples, random_loss) = (!kind.couples, kind.bears_random_loss.then(Vec::new));
        let control = Controller::new(rule, config);
        let fair_queues = (couples && share == Share::Equal).then(FairQueues::default);
        let bottlenecks = Bottlenecks::default();
        Self {
            control,
            share,
            couples,
            bottlenecks,
            reductions: Vec::new(),
            rates: Vec::new(),
            random_loss,
            fair_queues,
            rested: Vec::new(),
        }
    }

    /// The same, with paths that are alone whatever they share.
    #[must_use]
    pub fn uncoupled(self) -> Self {
        Self { couples: false, fair_queues: None, ..self }
    }

    /// From now on every loss is answered, whatever the rule says, and no path rests: the owner cannot tell what is whose, or somebody
    /// else answers losses.
    pub fn answer_all_losses(&mut self) {
        (self.random_loss, self.fair_queues) = (None, None);
    }

    /// Adds a path for packets of at most `mss` bytes and returns its index.
    pub fn add_path(&mut self, mss: u32) -> usize {
        self.reductions.push(UNDOUBTED);
        self.rates.push(Mean::default());
        self.rested.push(Rested::default());
        self.random_loss.iter_mut().for_each(|paths| paths.push(RandomLoss::default()));
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

    /// Which part of the packets of `path` its link loses whatever the window; zero where that is not known.
    pub fn own_loss(&self, path: usize) -> f64 {
        self.random_loss.as_ref().and_then(|paths| paths.get(path)).map_or(0.0, RandomLoss::own)
    }

    /// `path` begins anew.
    pub fn restart(&mut self, path: usize) {
        self.revive(path);
        if let Some(losses) = self.random_loss_mut(path) {
            *losses = RandomLoss::default();
        }
    }

    /// `path` answers again after a silence: it begins anew, but which of its losses are its own is known.
    pub fn revive(&mut self, path: usize) {
        self.release(path);
        self.control.restart(path);
        self.bottlenecks.forget(path);
        self.set_reduction(path, UNDOUBTED);
        self.rates[path] = Mean::default();
        if let Some(losses) = self.random_loss_mut(path) {
            losses.revived();
        }
    }

    /// `path` is closed, and none rests because of it any more.
    pub fn close(&mut self, path: usize) {
        self.release(path);
        self.control.set_open(path, false);
    }

    /// `path` is another now: whatever rested because of it carries again.
    fn release(&mut self, path: usize) {
        for step in self.fair_queues.as_mut().map(|queues| queues.forget(path)).unwrap_or_default() {
            self.take(step);
        }
    }

    /// A round trip was measured on `path`; before whatever else the same report tells.
    #[inline]
    pub fn on_rtt(&mut self, path: usize, rtt: Duration, now: Instant) {
        let Self { control, random_loss, .. } = self;
        if let (Some(state), Some(losses)) = (control.paths().get(path), of(random_loss, path)) {
            losses.on_rtt(rtt, state, now);
        }
    }

    /// So many packets of `path` have arrived behind later ones; before whatever else the same report tells.
    pub fn on_reordered(&mut self, path: usize, packets: u32) {
        if let Some(losses) = self.random_loss_mut(path) {
            losses.on_reordered(packets);
        }
    }

    /// A round trip on `path` has waited so long in queues.
    #[inline]
    pub fn on_queueing(&mut self, path: usize, queueing: Duration, now: Instant) {
        if self.control.pace(path).is_none() && self.control.ssthresh(path).is_infinite() {
            self.bottlenecks.doubles(path);
        }
        if self.bottlenecks.sample(now, path, queueing) && self.couples {
            self.note_rates();
            self.set_shares();
        }
        self.fair_queues.iter_mut().for_each(|queues| queues.queued(path, queueing));
    }

    /// Packets of `path` were lost, whatever that is answered with.
    fn on_lost(&mut self, path: usize, now: Instant) {
        let Some(state) = self.control.paths().get(path).filter(|state| state.base_rtt != Duration::MAX) else {
            return;
        };
        if self.bottlenecks.lost(now, path, (state.srtt, state.base_rtt)) {
            self.set_shares();
        }
    }

    /// How many paths share the bottleneck of `path`, this one included.
    pub fn sharers(&self, path: usize) -> u32 {
        self.bottlenecks.sharers(path)
    }

    /// Whether packets of `path` wait in a queue, as far as its round trips tell; `true` under a rule that does not look at them.
    pub fn has_queue(&self, path: usize) -> bool {
        self.random_loss.as_ref().and_then(|losses| losses.get(path)).is_none_or(RandomLoss::has_queue)
    }

    /// Whether `path` rests, because another carries through the same bottleneck.
    pub fn rests(&self, path: usize) -> bool {
        self.fair_queues.as_ref().is_some_and(|queues| queues.rests(path))
    }

    /// Until when no new data are to leave on `path`: the rule says so, or it rests and another carries. That time may become later.
    pub fn blocked_until(&self, path: usize) -> Instant {
        let known = Paths { control: &self.control, bottlenecks: &self.bottlenecks };
        let silent = self.fair_queues.as_ref().and_then(|queues| queues.silent_until(path, &known));
        silent.unwrap_or(Instant::ZERO).max(self.control.blocked_until(path))
    }

    /// Whether a loss on one of these paths is one on the other, too.
    #[inline]
    pub fn are_one(&self, one: usize, other: usize) -> bool {
        one == other
            || (self.couples && self.bottlenecks.are_shared(one, other) && !self.rests(one) && !self.rests(other))
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
        let is_full = is_full(&self.control.paths()[path], acked.flight as f64);
        self.control.on_ack(path, acked, now);
        // Who has a pace has no window that could be made smaller.
        if let Some(queues) = self.fair_queues.as_mut().filter(|_| self.control.pace(path).is_none()) {
            queues.acked(now, path, acked.bytes as f64, is_full);
            let step = queues.step(now, &Paths { control: &self.control, bottlenecks: &self.bottlenecks });
            step.into_iter().for_each(|step| self.take(step));
        }
        if self.rests(path) {
            self.rest(path);
        }
    }

    /// So many packets of `path` were acknowledged, however few bytes they had: losses are counted likewise. After
    /// [`CoupledController::on_ack`].
    pub fn on_arrived(&mut self, path: usize, packets: u32) {
        let Self { control, random_loss, .. } = self;
        if let (Some(state), Some(losses)) = (control.paths().get(path), of(random_loss, path)) {
            losses.on_acked(f64::from(packets), state);
        }
    }

    /// A sign of congestion on `path`, and what would show that it was none. Returns whether windows were reduced: that of `path`,
    /// and but for a timeout, which is the path's own affair, those of the paths that are one flow with it. What is missing
    /// without a further reduction is one more reason for the last.
    ///
    /// Under a rule that [bears random loss](crate::Kind) one that is the link's own reduces nothing.
    pub fn on_congestion(&mut self, path: usize, event: &Congestion, doubt: Doubt, now: Instant) -> bool {
        if event.cause == Cause::Loss && self.couples {
            self.on_lost(path, now);
        }
        match self.judge(path, event, doubt, now) {
            Verdict::Answer => {}
            Verdict::Bear => {
                let Self { control, random_loss, .. } = self;
                if let (Some(state), Some(losses)) = (control.paths().get(path), of(random_loss, path)) {
                    let (room, probed) = (losses.room(state), losses.probed(state));
                    control.set_ssthresh(path, room);
                    control.borne(path, probed, now);
                }
                return false;
            }
            Verdict::TakeBack { cwnd, ssthresh } => {
                self.take_back(path, (cwnd, ssthresh), now);
                return false;
            }
        }
        let before = (self.control.cwnd(path), self.control.ssthresh(path));
        if !self.reduce(path, event, now) {
            self.on_also_missing(path, doubt);
            return false;
        }
        self.set_reduction(path, Reduction { doubt, because: None });
        self.on_reduced(path, before, event.cause == Cause::Loss);
        if event.cause == Cause::Timeout {
            return true;
        }
        for other in 0..self.reductions.len() {
            if other == path || !self.are_one(path, other) {
                continue;
            }
            let event =
                Congestion { flight: self.control.cwnd(other), next: self.control.next(other), cause: event.cause };
            let before = (self.control.cwnd(other), self.control.ssthresh(other));
            if self.reduce(other, &event, now) {
                self.set_reduction(other, Reduction { doubt: Doubt::NONE, because: Some(path) });
                self.on_reduced(other, before, false);
            }
        }
        true
    }

    /// The rule's answer to a sign of congestion on `path`, and whether there was one.
    fn reduce(&mut self, path: usize, event: &Congestion, now: Instant) -> bool {
        let is_doubtful = self.random_loss_mut(path).is_some_and(|losses| losses.is_doubtful());
        self.control.set_loss_doubtful(path, is_doubtful);
        self.control.on_congestion(path, event, now)
    }

    /// What a sign of congestion on `path` is, where some are not.
    fn judge(&mut self, path: usize, event: &Congestion, doubt: Doubt, now: Instant) -> Verdict {
        let Self { control, random_loss, .. } = self;
        let (Some(state), Some(losses)) = (control.paths().get(path), of(random_loss, path)) else {
            return Verdict::Answer;
        };
        if event.cause != Cause::Loss {
            return Verdict::Answer;
        }
        if state.in_recovery {
            losses.on_also_lost(doubt.missing);
            return Verdict::Answer;
        }
        losses.judge(doubt.missing, state, now)
    }

    /// The last reductions of `path` did not help: the window is of so many bytes again, and grows as it did then. Slow start goes on
    /// only where no other reduction has ended it, and ends as any other with a queue.
    fn take_back(&mut self, path: usize, (window, ssthresh): (f64, f64), now: Instant) {
        let is_own = self.reductions.get(path).is_some_and(|reduction| reduction.because.is_none());
        if !is_own || !self.on_spurious(path, now) {
            return;
        }
        let cwnd = window.max(self.control.cwnd(path));
        self.control.set_cwnd(path, cwnd);
        let goes_on = ssthresh.is_infinite();
        self.control.set_ssthresh(path, if goes_on { ssthresh } else { cwnd.min(self.control.ssthresh(path)) });
        if let Some(losses) = self.random_loss_mut(path) {
            losses.on_taken_back(cwnd);
        }
    }

    /// The window of `path` was reduced; window and threshold had so many bytes before.
    fn on_reduced(&mut self, path: usize, (cwnd, ssthresh): (f64, f64), is_loss: bool) {
        if let Some(losses) = self.random_loss_mut(path) {
            losses.on_reduced(cwnd, ssthresh, is_loss);
        }
    }

    fn random_loss_mut(&mut self, path: usize) -> Option<&mut RandomLoss> {
        of(&mut self.random_loss, path)
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
        let late = self.random_loss_mut(path).map_or(late, |losses| losses.on_late(late, now));
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

    /// A path rests, or carries again what it did.
    fn take(&mut self, step: Step) {
        match step {
            Step::Rest(path, beside) => {
                let (cwnd, ssthresh) = (self.control.cwnd(path), self.control.ssthresh(path));
                self.rested[path] = Rested { cwnd, ssthresh, other: self.control.cwnd(beside) };
                self.rest(path);
            }
            Step::Carry(path) => self.carry(path),
            Step::CarryAsBefore(path, beside) => {
                // And what the other has lost they both have.
                let Rested { cwnd, ssthresh, other } = self.rested[path];
                let now = self.control.cwnd(beside).min(other);
                self.rested[path] = Rested { cwnd: cwnd * now / other, ssthresh: ssthresh * now / other, other };
                self.control.set_cwnd(beside, now);
                self.carry(path);
            }
        }
        self.set_shares();
    }

    fn carry(&mut self, path: usize) {
        let Rested { cwnd, ssthresh, .. } = self.rested[path];
        self.control.set_cwnd(path, cwnd);
        self.control.set_ssthresh(path, ssthresh);
    }

    fn rest(&mut self, path: usize) {
        let window = RESTING * self.control.paths()[path].mss;
        self.control.set_cwnd(path, window);
        self.control.set_ssthresh(path, window);
    }

    fn set_shares(&mut self) {
        for path in 0..self.reductions.len() {
            self.set_share(path);
        }
    }

    fn set_share(&mut self, path: usize) {
        let Some(state) = self.control.paths().get(path) else { return };
        let unit = match self.share {
            Share::Equal => {
                let unit = state.mss * self.equal_part(path);
                let is_like = unit < state.mss && (unit / state.unit).ln().abs() < LIKE;
                if is_like { state.unit } else { unit }
            }
            Share::ByWindow if self.bottlenecks.sharers(path) == 1 => state.mss,
            Share::ByWindow => {
                let all: f64 = self.together(path).map(|other| self.control.cwnd(other)).sum();
                state.mss * state.cwnd / all
            }
        };
        self.control.set_unit(path, unit);
    }

    fn note_rates(&mut self) {
        for path in 0..self.rates.len() {
            let state = &self.control.paths()[path];
            if let Some(rtt) = state.rtt().filter(|_| !self.rests(path)) {
                self.rates[path].count(state.cwnd / rtt);
            }
        }
    }

    /// What part of a flow `path` is where all have the same: together they have what a flow has on the best of them (RFC 6356 §2). With
    /// the same part each, and losses in common, windows are equal where they grow by time, and as 1/RTT where they grow by round trips:
    /// what they are tells which.
    fn equal_part(&self, path: usize) -> f64 {
        let rates = self.together(path).map(|other| self.rates[other].value);
        let (all, least, sum, most) = rates.fold((0, f64::INFINITY, 0.0, 0.0), |(all, least, sum, most), rate| {
            (all + 1, rate.min(least), sum + rate, rate.max(most))
        });
        if least > 0.0 { most / sum } else { 1.0 / f64::from(all) }
    }
}

/// The round-trip times and bottlenecks of paths.
struct Paths<'a, R> {
    control: &'a Controller<R>,
    bottlenecks: &'a Bottlenecks,
}

impl<R: WindowRule> Known for Paths<'_, R> {
    fn rtt(&self, slot: usize) -> f64 {
        self.control.paths().get(slot).and_then(|path| path.rtt()).unwrap_or_default()
    }

    fn delays_agree(&self, one: usize, other: usize) -> bool {
        self.bottlenecks.delays_agree(one, other)
    }

    fn are_one_queue(&self, one: usize, other: usize, for_long: bool) -> bool {
        self.bottlenecks.are_one_queue(one, other, for_long)
    }
}

fn of(random_loss: &mut Option<Vec<RandomLoss>>, path: usize) -> Option<&mut RandomLoss> {
    random_loss.as_mut()?.get_mut(path)
}

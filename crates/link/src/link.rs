//! One direction of a link.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng};
use queue::{Cause, Discipline, Ecn, QueueDiscipline, Queued, Transmitter};

use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::schedule::Course;
use crate::trace::Opportunities;
use crate::{Change, ChangeKind, LinkConfig, LinkStatistics, LossConfig};

/// One direction of a link with packets of type `P`.
///
/// A packet waits in the queue, is serialised at the rate, propagates for the delay, and can then be taken out with
/// [`Link::poll`]. The queue may change the order of packets, if its discipline does, and the delay, if it varies and
/// [`LinkConfig::reorder`] allows it.
///
/// Time only moves forward: no call may pass an earlier `now` than a call before it. What happened inside between two
/// calls is made up for at the next call, each step at its own instant, so there is **one** pending event however many
/// packets are inside, and none at all for the end of a transmission.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// What has left the queue: what flies, in the order of arrival, and, last, what is being sent (if `done` is not the far
    /// future). Of what flies, `since` is when it arrives.
    ahead: VecDeque<Queued<P>>,
    /// When the packet being sent will have been sent; the far future if none is.
    done: Instant,
    /// The first instant at which something happens inside, or changes.
    next_step: Instant,
    next_change: Instant,
    last_arrival: Instant,
    rate: Option<u64>,
    delay: Duration,
    /// How long the packet being sent will fly; the delay, unless that varies.
    flight: Duration,
    varies: bool,
    reorder: bool,
    /// The rate is 0: what comes waits.
    is_paused: bool,
    has_trace: bool,
    /// How long the packet being sent takes in all.
    sending_time: Duration,
    /// How long a packet of so many bytes takes: most are as long as the one before.
    last_time: (u32, Duration),
    queue: Discipline<P>,
    /// The largest packet, in bytes.
    mtu: u32,
    up: bool,
    lossy: bool,
    /// Up, infinitely fast, without delay or loss, and with a queue that has nothing to say to a packet that need not wait.
    is_instant: bool,
    /// Whether there is anything for [`Link::poll_discarded`].
    has_discarded: bool,
    statistics: LinkStatistics,
    rest: Box<Rest<P>>,
}

/// What is seldom needed.
#[derive(Clone, Debug)]
struct Rest<P> {
    changes: VecDeque<Change>,
    course: Option<Course>,
    trace: Option<Opportunities>,
    loss: Loss,
    jitter: Jitter,
    rng: Rng,
    discarded: Option<VecDeque<Dropped<P>>>,
}

/// A packet that did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Why.
    pub reason: DropReason,
}

/// Why a packet did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The queue's discipline dropped it before the queue was full.
    Early,
    /// Lost after it was sent.
    Loss,
    /// The link was down.
    Outage,
    /// It was larger than the link takes.
    TooBig,
}

impl<P> Link<P> {
    /// A link that is up and empty. `rng` decides losses; give each link its own.
    pub fn new(config: LinkConfig, mut rng: Rng) -> Self {
        let LinkConfig { rate, trace, schedule, delay, jitter, reorder, queue, loss, mtu, mut changes } = config;
        let jitter = Jitter::new(jitter, &rng);
        let course = schedule.zip(rate).map(|(schedule, rate)| Course::new(schedule, rate, delay, &rng));
        let trace = trace.map(Opportunities::new);
        changes.sort_by_key(|change| change.at);
        let mut link = Self {
            ahead: VecDeque::new(),
            done: Instant::FAR_FUTURE,
            next_step: Instant::FAR_FUTURE,
            next_change: Instant::FAR_FUTURE,
            last_arrival: Instant::ZERO,
            rate,
            delay,
            flight: delay,
            varies: !jitter.is_none(),
            reorder,
            is_paused: false,
            has_trace: trace.is_some(),
            sending_time: Duration::ZERO,
            last_time: (0, Duration::ZERO),
            queue: Discipline::new(queue, &mut rng),
            mtu: mtu.unwrap_or(u32::MAX),
            up: true,
            lossy: loss != LossConfig::None,
            is_instant: false,
            has_discarded: false,
            statistics: LinkStatistics::default(),
            rest: Box::new(Rest {
                changes: changes.into(),
                course,
                trace,
                loss: Loss::new(loss),
                jitter,
                rng,
                discarded: None,
            }),
        };
        link.find_next_change();
        link.see_whether_instant();
        link
    }

    /// Keeps the packets that are lost inside the link for [`Link::poll_discarded`], for owners that have to give
    /// them back to a pool. Without this they are dropped where they are lost.
    #[must_use]
    pub fn keeping_discarded(mut self) -> Self {
        self.rest.discarded = Some(VecDeque::new());
        self
    }

    /// Gives a packet of `bytes` bytes on the wire to the link: one of flow 0, which understands no marks.
    ///
    /// # Errors
    /// As [`Link::offer_of`].
    pub fn offer(&mut self, now: Instant, packet: P, bytes: u32) -> Result<(), Dropped<P>> {
        self.offer_of(now, packet, bytes, 0, Ecn::NotEct)
    }

    /// Gives a packet of `bytes` bytes on the wire to the link, one of `flow`, and says whether it may be marked instead of
    /// dropped.
    ///
    /// # Errors
    /// The packet comes back when the queue does not take it, the link is down, or the packet is too large for it.
    #[inline]
    pub fn offer_of(&mut self, now: Instant, packet: P, bytes: u32, flow: u64, ecn: Ecn) -> Result<(), Dropped<P>> {
        self.advance(now);
        self.statistics.offered.add(bytes);
        if !self.up {
            return Err(self.refuse(packet, bytes, DropReason::Outage));
        }
        if bytes > self.mtu {
            return Err(self.refuse(packet, bytes, DropReason::TooBig));
        }
        let is_idle = !self.is_sending() && !self.is_paused; // then nothing waits either
        if is_idle && self.queue.ignores_idle() {
            self.start(now, Queued::new(packet, bytes, now).with_ecn(ecn));
        } else {
            let transmitter = Transmitter { is_idle, rate: self.rate };
            let packet = Queued::new(packet, bytes, now).with_ecn(ecn);
            let Self { queue, statistics, rest, has_discarded, .. } = self;
            let drop = &mut |dropped| *has_discarded |= discard(statistics, rest, dropped);
            if let Err(dropped) = queue.enqueue(packet, flow, transmitter, drop) {
                return Err(self.refuse(dropped.packet.packet, bytes, dropped.cause.into()));
            }
            if is_idle {
                self.start_next(now);
            }
            self.statistics.most_waiting = self.statistics.most_waiting.max(self.waiting_packets());
        }
        if is_idle {
            self.advance(now); // an infinitely fast link is done at once
        }
        Ok(())
    }

    /// Carries a packet of `bytes` bytes that would arrive now: on an empty link that is infinitely fast and has neither delay nor
    /// loss. Says whether it did; then the packet has been offered and polled as far as the link is concerned.
    #[inline]
    pub fn carry_at_once(&mut self, now: Instant, bytes: u32) -> bool {
        self.is_instant && self.carry(now, bytes)
    }

    fn carry(&mut self, now: Instant, bytes: u32) -> bool {
        self.advance(now);
        // A change may have come, and nobody is overtaken.
        if !self.is_instant || self.inside() > 0 || bytes > self.mtu {
            return false;
        }
        self.statistics.offered.add(bytes);
        self.statistics.sent.add(bytes);
        self.statistics.delivered.add(bytes);
        true
    }

    #[cold]
    fn refuse(&mut self, packet: P, bytes: u32, reason: DropReason) -> Dropped<P> {
        self.statistics.count_drop(reason, bytes);
        Dropped { packet, reason }
    }

    /// The next packet that has arrived at the far end by `now`, in the order of arrival.
    pub fn poll(&mut self, now: Instant) -> Option<P> {
        self.poll_ecn(now).map(|(packet, _)| packet)
    }

    /// As [`Link::poll`], and says whether the packet was marked on this link (CE of RFC 3168).
    pub fn poll_ecn(&mut self, now: Instant) -> Option<(P, bool)> {
        self.advance(now);
        if self.flying() == 0 || self.ahead.front()?.since > now {
            return None;
        }
        let Queued { packet, bytes, is_marked, .. } = self.ahead.pop_front()?;
        self.statistics.delivered.add(bytes);
        Some((packet, is_marked))
    }

    /// The next packet that was lost inside; always `None` unless the link was made with
    /// [`Link::keeping_discarded`].
    pub fn poll_discarded(&mut self, now: Instant) -> Option<Dropped<P>> {
        self.advance(now);
        let next = self.rest.discarded.as_mut()?.pop_front();
        self.has_discarded = next.is_some();
        next
    }

    /// Whether [`Link::poll_discarded`] has something, as of the last call.
    #[inline]
    pub fn has_discarded(&self) -> bool {
        self.has_discarded
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty. After a poll that returned `None` it is
    /// later than that poll's `now`. The packet expected then may turn out to be lost or delayed further.
    ///
    /// Where [`Link::is_unsteady`] it may be earlier than a call before said, because a packet offered since comes first.
    pub fn next_event(&self) -> Option<Instant> {
        if self.flying() > 0 {
            let first = self.ahead.front()?.since;
            // Later ones never overtake it, unless the link lets them.
            return Some(if self.reorder { first.min(self.next_arrival()) } else { first });
        }
        let next = self.next_arrival();
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Nothing that is being sent or waits arrives earlier; the far future if there is nothing, or it waits without end.
    fn next_arrival(&self) -> Instant {
        if !self.is_sending() {
            let waits = self.is_paused && self.queue.packets() > 0;
            return if waits { self.next_change } else { Instant::FAR_FUTURE };
        }
        let mut flight = self.flight;
        if self.varies && self.queue.packets() > 0 {
            // The next packet may overtake the one being sent, or that one is lost.
            flight = flight.min(self.shortest_delay());
        }
        // A change may move that arrival, so it is looked at anew then.
        (self.done + flight).max(self.last_arrival).min(self.next_change)
    }

    /// The least that a packet flies by the delay of now; the delay itself, unless that varies.
    pub fn shortest_delay(&self) -> Duration {
        if self.varies { self.rest.jitter.shortest(self.delay) } else { self.delay }
    }

    /// Changes the link now.
    pub fn change(&mut self, now: Instant, what: ChangeKind) {
        self.advance(now);
        self.apply(now, what);
        self.find_next_step();
        self.advance(now);
    }

    /// Changes the rate from the next packet on; see [`ChangeKind::Rate`].
    pub fn set_rate(&mut self, now: Instant, rate: Option<u64>) {
        self.change(now, ChangeKind::Rate(rate));
    }

    /// Changes the delay; see [`ChangeKind::Delay`].
    pub fn set_delay(&mut self, now: Instant, delay: Duration) {
        self.change(now, ChangeKind::Delay(delay));
    }

    /// Takes the link down or brings it up; see [`ChangeKind::Down`].
    pub fn set_up(&mut self, now: Instant, up: bool) {
        self.change(now, if up { ChangeKind::Up } else { ChangeKind::Down });
    }

    /// Brings queue and counters up to `now`, for a measurement.
    pub fn observe(&mut self, now: Instant) -> &LinkStatistics {
        self.advance(now);
        &self.statistics
    }

    /// Counters as of the last call.
    pub fn statistics(&self) -> &LinkStatistics {
        &self.statistics
    }

    /// Packets that wait, without the one being sent, as of the last call.
    pub fn waiting_packets(&self) -> u32 {
        u32::try_from(self.queue.packets()).unwrap_or(u32::MAX)
    }

    /// Bytes that wait, without the packet being sent, as of the last call.
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Packets in the link, from the queue to the far end, as of the last call.
    pub fn inside(&self) -> usize {
        self.ahead.len() + self.queue.packets()
    }

    /// Whether a packet may arrive before one that was offered earlier would have: because delays vary, or packets overtake.
    #[inline]
    pub fn is_unsteady(&self) -> bool {
        self.reorder || self.varies
    }

    /// True unless the link is down, as of the last call.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The rate in bits per second, as of the last call; `None` is infinitely fast. That of a trace is its mean.
    pub fn rate(&self) -> Option<u64> {
        if self.is_paused { Some(0) } else { self.rate }
    }

    /// The propagation delay as of the last call.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    #[inline]
    fn is_sending(&self) -> bool {
        self.done != Instant::FAR_FUTURE
    }

    /// How many packets propagate.
    #[inline]
    fn flying(&self) -> usize {
        self.ahead.len() - usize::from(self.is_sending())
    }

    /// Makes up for everything up to and including `now`, each step at its own instant.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if now >= self.next_step {
            self.catch_up(now);
        }
    }

    /// Ends because every step takes away a change or a packet.
    fn catch_up(&mut self, now: Instant) {
        while self.next_step <= now {
            // Of a change and the end of a transmission at the same instant the change comes first.
            if self.next_change > self.done {
                self.finish();
            } else if let Some(Change { at, what }) = self.rest.pop_change() {
                self.apply(at, what);
                self.find_next_change();
            } else {
                return; // the far future itself
            }
        }
    }

    #[inline]
    fn find_next_step(&mut self) {
        self.next_step = self.done.min(self.next_change);
    }

    fn find_next_change(&mut self) {
        self.next_change = self.rest.next_change();
        self.find_next_step();
    }

    /// The last bit of the packet being sent is on its way; the next packet follows at once.
    #[inline]
    fn finish(&mut self) {
        let done = std::mem::replace(&mut self.done, Instant::FAR_FUTURE);
        let Some(packet) = self.ahead.back_mut() else { return };
        self.statistics.sent.add(packet.bytes);
        self.statistics.busy += self.sending_time;
        if self.lossy && self.rest.loss.next(&mut self.rest.rng) {
            self.lose_last(DropReason::Loss);
        } else if self.reorder {
            packet.since = done + self.flight;
            self.let_overtake();
        } else {
            packet.since = (done + self.flight).max(self.last_arrival);
            self.last_arrival = packet.since;
        }
        self.start_next(done);
    }

    /// What was sent last takes its place among what flies.
    #[cold]
    fn let_overtake(&mut self) {
        let Some(packet) = self.ahead.pop_back() else { return };
        let place = self.ahead.iter().rposition(|other| other.since <= packet.since).map_or(0, |before| before + 1);
        self.ahead.insert(place, packet);
    }

    /// Sends what the queue has next, if it has anything.
    #[inline]
    fn start_next(&mut self, at: Instant) {
        if self.is_paused {
            return self.find_next_step();
        }
        let Self { queue, statistics, rest, has_discarded, .. } = self;
        match queue.dequeue(at, &mut |dropped| *has_discarded |= discard(statistics, rest, dropped)) {
            Some(packet) => self.start(at, packet),
            None => self.find_next_step(),
        }
    }

    /// `packet` is being sent from now on.
    #[inline]
    fn start(&mut self, at: Instant, packet: Queued<P>) {
        let bytes = packet.bytes;
        if packet.is_marked {
            self.statistics.marked.add(bytes);
        }
        if self.last_time.0 != bytes {
            let time = self.rate.map_or(Duration::ZERO, |rate| Duration::of_transmission(bytes.into(), rate));
            self.last_time = (bytes, time);
        }
        if self.varies {
            self.flight = self.rest.jitter.draw(self.delay);
        }
        let time = if self.has_trace { self.rest.time_by_trace(at, bytes) } else { self.last_time.1 };
        self.done = at + time;
        self.sending_time = time;
        self.ahead.push_back(packet);
        self.find_next_step();
    }

    fn apply(&mut self, at: Instant, what: ChangeKind) {
        match what {
            ChangeKind::Rate(Some(0)) => self.is_paused = true,
            ChangeKind::Rate(rate) => {
                self.rate = rate;
                self.last_time = (0, Duration::ZERO); // No packet has 0 bytes, or it takes no time.
                if std::mem::take(&mut self.is_paused) && !self.is_sending() {
                    self.start_next(at);
                }
            }
            ChangeKind::Delay(delay) => {
                self.delay = delay;
                self.flight = if self.varies { self.rest.jitter.draw(delay) } else { delay };
            }
            ChangeKind::Loss(loss) => {
                self.lossy = loss != LossConfig::None;
                self.rest.loss = Loss::new(loss);
            }
            ChangeKind::Mtu(mtu) => self.mtu = mtu.unwrap_or(u32::MAX),
            ChangeKind::Up => self.up = true,
            ChangeKind::Down => {
                self.up = false;
                if self.is_sending() {
                    self.done = Instant::FAR_FUTURE;
                    self.lose_last(DropReason::Outage);
                }
                let Self { queue, statistics, rest, has_discarded, .. } = self;
                queue.clear(at, &mut |packet| {
                    statistics.count_drop(DropReason::Outage, packet.bytes);
                    *has_discarded |= rest.keep(packet.packet, DropReason::Outage);
                });
            }
        }
        self.see_whether_instant();
    }

    fn see_whether_instant(&mut self) {
        let is_fast = self.rate.is_none() && self.delay.is_zero() && !self.varies && !self.has_trace && !self.is_paused;
        self.is_instant = self.up && is_fast && !self.lossy && self.queue.ignores_idle();
    }

    /// What was sent last, or is being sent, gets lost.
    #[cold]
    fn lose_last(&mut self, reason: DropReason) {
        let Some(Queued { packet, bytes, .. }) = self.ahead.pop_back() else { return };
        self.statistics.count_drop(reason, bytes);
        self.has_discarded |= self.rest.keep(packet, reason);
    }
}

impl<P> Rest<P> {
    fn next_change(&self) -> Instant {
        let planned = self.changes.front().map_or(Instant::FAR_FUTURE, |change| change.at);
        self.course.as_ref().map_or(planned, |course| planned.min(course.next_change()))
    }

    /// The next change, a planned one before one that the link makes by itself.
    fn pop_change(&mut self) -> Option<Change> {
        let next = self.next_change();
        match &mut self.course {
            Some(course) if self.changes.front().is_none_or(|change| change.at > next) => course.pop(),
            _ => self.changes.pop_front(),
        }
    }

    /// How long a packet takes that is the next from `at` on.
    #[cold]
    fn time_by_trace(&mut self, at: Instant, bytes: u32) -> Duration {
        self.trace.as_mut().map_or(Duration::ZERO, |trace| trace.send(at, bytes).saturating_since(at))
    }

    /// Keeps a lost packet, if the owner wants it; says whether he does.
    fn keep(&mut self, packet: P, reason: DropReason) -> bool {
        let Some(discarded) = &mut self.discarded else { return false };
        discarded.push_back(Dropped { packet, reason });
        true
    }
}

/// The queue has dropped a packet that it had taken in.
#[cold]
fn discard<P>(statistics: &mut LinkStatistics, rest: &mut Rest<P>, dropped: queue::Dropped<P>) -> bool {
    let reason = dropped.cause.into();
    statistics.count_drop(reason, dropped.packet.bytes);
    rest.keep(dropped.packet.packet, reason)
}

impl From<Cause> for DropReason {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Full => Self::QueueFull,
            Cause::Early => Self::Early,
        }
    }
}

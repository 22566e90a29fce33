//! One direction of a link.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng};

use crate::loss::Loss;
use crate::queue::{Discipline, Verdict};
use crate::{Change, ChangeKind, LinkConfig, LinkStatistics, LossConfig};

/// One direction of a link with packets of type `P`.
///
/// A packet waits in the queue, is serialised at the rate, propagates for the delay, and can then be taken out with
/// [`Link::poll`]. The order of packets never changes.
///
/// Time only moves forward: no call may pass an earlier `now` than a call before it. What happened inside between two
/// calls is made up for at the next call, each step at its own instant, so there is **one** pending event however many
/// packets are inside, and none at all for the end of a transmission.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// Everything inside, in order: what flies, what is being sent (if `done` is not the far future), what waits.
    inside: VecDeque<Inside<P>>,
    flying: usize,
    /// When the packet being sent will have been sent; the far future if none is.
    done: Instant,
    /// The first instant at which something happens inside, or changes.
    next_step: Instant,
    next_change: Instant,
    last_arrival: Instant,
    waiting_bytes: u64,
    rate: Option<u64>,
    delay: Duration,
    /// How long the packet being sent takes in all.
    sending_time: Duration,
    /// How long a packet of so many bytes takes: most are as long as the one before.
    last_time: (u32, Duration),
    queue: Discipline,
    up: bool,
    lossy: bool,
    statistics: LinkStatistics,
    rest: Box<Rest<P>>,
}

/// What is seldom needed.
#[derive(Clone, Debug)]
struct Rest<P> {
    changes: VecDeque<Change>,
    loss: Loss,
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
    /// RED or CoDel dropped it.
    Early,
    /// Lost after it was sent.
    Loss,
    /// The link was down.
    Outage,
}

#[derive(Clone, Debug)]
struct Inside<P> {
    packet: P,
    bytes: u32,
    mark: Mark,
    /// While it waits, since when; while it flies, when it arrives.
    at: Instant,
}

/// What ECN says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    NotCapable,
    Capable,
    Marked,
}

impl<P> Link<P> {
    /// A link that is up and empty. `rng` decides losses; give each link its own.
    pub fn new(config: LinkConfig, mut rng: Rng) -> Self {
        let LinkConfig { rate, delay, queue, loss, mut changes } = config;
        changes.sort_by_key(|change| change.at);
        let mut link = Self {
            inside: VecDeque::new(),
            flying: 0,
            done: Instant::FAR_FUTURE,
            next_step: Instant::FAR_FUTURE,
            next_change: Instant::FAR_FUTURE,
            last_arrival: Instant::ZERO,
            waiting_bytes: 0,
            rate,
            delay,
            sending_time: Duration::ZERO,
            last_time: (0, Duration::ZERO),
            queue: Discipline::new(queue, &mut rng),
            up: true,
            lossy: loss != LossConfig::None,
            statistics: LinkStatistics::default(),
            rest: Box::new(Rest { changes: changes.into(), loss: Loss::new(loss), rng, discarded: None }),
        };
        link.find_next_change();
        link
    }

    /// Keeps the packets that are lost inside the link for [`Link::poll_discarded`], for owners that have to give
    /// them back to a pool. Without this they are dropped where they are lost.
    #[must_use]
    pub fn keeping_discarded(mut self) -> Self {
        self.rest.discarded = Some(VecDeque::new());
        self
    }

    /// Gives a packet of `bytes` bytes on the wire to the link.
    ///
    /// # Errors
    /// The packet comes back when the queue does not take it or the link is down.
    pub fn offer(&mut self, now: Instant, packet: P, bytes: u32) -> Result<(), Dropped<P>> {
        self.offer_ecn(now, packet, bytes, false)
    }

    /// As [`Link::offer`], and says whether the packet may be marked instead of dropped (ECT of RFC 3168).
    ///
    /// # Errors
    /// As [`Link::offer`].
    #[inline]
    pub fn offer_ecn(&mut self, now: Instant, packet: P, bytes: u32, capable: bool) -> Result<(), Dropped<P>> {
        self.advance(now);
        self.statistics.offered.add(bytes);
        let mut mark = if capable { Mark::Capable } else { Mark::NotCapable };
        let idle = !self.is_sending(); // then nothing waits either
        let refusal = if !self.up {
            Some(DropReason::Outage)
        } else {
            match self.judge_arrival(now, bytes, capable, idle) {
                Verdict::Pass => None,
                Verdict::Mark => {
                    self.statistics.marked.add(bytes);
                    mark = Mark::Marked;
                    None
                }
                Verdict::DropEarly => Some(DropReason::Early),
                Verdict::DropFull => Some(DropReason::QueueFull),
            }
        };
        if let Some(reason) = refusal {
            self.statistics.count_drop(reason, bytes);
            return Err(Dropped { packet, reason });
        }
        self.inside.push_back(Inside { packet, bytes, mark, at: now });
        if idle {
            self.start(now, bytes);
            self.advance(now); // an infinitely fast link is done at once
        } else {
            self.waiting_bytes += u64::from(bytes);
            self.statistics.most_waiting = self.statistics.most_waiting.max(self.waiting_packets());
        }
        Ok(())
    }

    /// The next packet that has arrived at the far end by `now`, in the order of the offers.
    pub fn poll(&mut self, now: Instant) -> Option<P> {
        self.poll_ecn(now).map(|(packet, _)| packet)
    }

    /// As [`Link::poll`], and says whether the packet was marked on this link (CE of RFC 3168).
    pub fn poll_ecn(&mut self, now: Instant) -> Option<(P, bool)> {
        self.advance(now);
        if self.flying == 0 || self.inside.front()?.at > now {
            return None;
        }
        let Inside { packet, bytes, mark, .. } = self.inside.pop_front()?;
        self.flying -= 1;
        self.statistics.delivered.add(bytes);
        Some((packet, mark == Mark::Marked))
    }

    /// The next packet that was lost inside; always `None` unless the link was made with
    /// [`Link::keeping_discarded`].
    pub fn poll_discarded(&mut self, now: Instant) -> Option<Dropped<P>> {
        self.advance(now);
        self.rest.discarded.as_mut()?.pop_front()
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty. After a poll that returned `None` it is
    /// later than that poll's `now`. The packet expected then may turn out to be lost or delayed further.
    pub fn next_event(&self) -> Option<Instant> {
        if self.flying > 0 {
            return Some(self.inside.front()?.at); // later ones never overtake it
        }
        if !self.is_sending() {
            return None;
        }
        let arrival = (self.done + self.delay).max(self.last_arrival);
        // A change may move that arrival, so it is looked at anew then.
        Some(arrival.min(self.next_change))
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
        u32::try_from(self.inside.len() - self.flying - usize::from(self.is_sending())).unwrap_or(u32::MAX)
    }

    /// Bytes that wait, without the packet being sent, as of the last call.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Packets in the link, from the queue to the far end, as of the last call.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// True unless the link is down, as of the last call.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The rate in bits per second, as of the last call; `None` is infinitely fast.
    pub fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// The propagation delay as of the last call.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    #[inline]
    fn is_sending(&self) -> bool {
        self.done != Instant::FAR_FUTURE
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
            } else if let Some(Change { at, what }) = self.rest.changes.pop_front() {
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
        self.next_change = self.rest.changes.front().map_or(Instant::FAR_FUTURE, |change| change.at);
        self.find_next_step();
    }

    /// The last bit of the packet being sent is on its way; the next packet follows at once.
    #[inline]
    fn finish(&mut self) {
        let done = std::mem::replace(&mut self.done, Instant::FAR_FUTURE);
        let Some(packet) = self.inside.get_mut(self.flying) else { return };
        let bytes = packet.bytes;
        self.statistics.sent.add(bytes);
        self.statistics.busy += self.sending_time;
        if self.lossy && self.rest.loss.next(&mut self.rest.rng) {
            self.discard(self.flying, DropReason::Loss);
        } else {
            packet.at = (done + self.delay).max(self.last_arrival);
            self.last_arrival = packet.at;
            self.flying += 1;
        }
        self.start_next(done);
    }

    /// Takes the first packet from the queue that its discipline lets pass.
    #[inline]
    fn start_next(&mut self, at: Instant) {
        while let Some(next) = self.inside.get_mut(self.flying) {
            let bytes = next.bytes;
            self.waiting_bytes -= u64::from(bytes);
            let verdict = match &mut self.queue {
                Discipline::CoDel(codel) => {
                    codel.departure(at, at - next.at, self.waiting_bytes, next.mark == Mark::Capable)
                }
                Discipline::DropTail { .. } | Discipline::Red(_) => Verdict::Pass,
            };
            match verdict {
                Verdict::Pass => return self.start(at, bytes),
                Verdict::Mark => {
                    next.mark = Mark::Marked;
                    self.statistics.marked.add(bytes);
                    return self.start(at, bytes);
                }
                Verdict::DropEarly | Verdict::DropFull => self.discard(self.flying, DropReason::Early),
            }
        }
        self.emptied(at);
        self.find_next_step();
    }

    /// The first packet that does not fly, of `bytes` bytes, is being sent from now on.
    #[inline]
    fn start(&mut self, at: Instant, bytes: u32) {
        if self.last_time.0 != bytes {
            let time = self.rate.map_or(Duration::ZERO, |rate| Duration::of_transmission(bytes.into(), rate));
            self.last_time = (bytes, time);
        }
        self.done = at + self.last_time.1;
        self.sending_time = self.last_time.1;
        self.find_next_step();
    }

    /// Nothing waits and nothing is being sent.
    fn emptied(&mut self, at: Instant) {
        match &mut self.queue {
            Discipline::DropTail { .. } => {}
            Discipline::Red(red) => red.idle(at),
            Discipline::CoDel(codel) => codel.empty(),
        }
    }

    fn judge_arrival(&mut self, now: Instant, bytes: u32, capable: bool, idle: bool) -> Verdict {
        let waiting = self.waiting_packets();
        match &mut self.queue {
            Discipline::DropTail { .. } if idle => Verdict::Pass, // it does not wait
            Discipline::DropTail { packets, bytes: limit } => {
                let room = waiting < *packets && self.waiting_bytes.saturating_add(bytes.into()) <= *limit;
                if room { Verdict::Pass } else { Verdict::DropFull }
            }
            Discipline::Red(red) => {
                let verdict = red.arrival(now, waiting, self.rate, capable);
                if idle && matches!(verdict, Verdict::DropEarly | Verdict::DropFull) {
                    red.idle(now); // the transmitter stays idle
                }
                verdict
            }
            Discipline::CoDel(codel) => match codel.arrival(waiting, bytes) {
                _ if idle => Verdict::Pass,
                verdict => verdict,
            },
        }
    }

    fn apply(&mut self, at: Instant, what: ChangeKind) {
        match what {
            ChangeKind::Rate(rate) => {
                self.rate = rate;
                self.last_time = (0, Duration::ZERO); // No packet has 0 bytes, or it takes no time.
            }
            ChangeKind::Delay(delay) => self.delay = delay,
            ChangeKind::Loss(loss) => {
                self.lossy = loss != LossConfig::None;
                self.rest.loss = Loss::new(loss);
            }
            ChangeKind::Up => self.up = true,
            ChangeKind::Down => {
                self.up = false;
                self.waiting_bytes = 0;
                if self.is_sending() {
                    self.done = Instant::FAR_FUTURE;
                    self.emptied(at);
                }
                while self.inside.len() > self.flying {
                    self.discard(self.flying, DropReason::Outage);
                }
            }
        }
    }

    /// Takes the packet at `index` out of the link.
    #[cold]
    fn discard(&mut self, index: usize, reason: DropReason) {
        let Some(Inside { packet, bytes, .. }) = self.inside.remove(index) else { return };
        self.statistics.count_drop(reason, bytes);
        if let Some(discarded) = &mut self.rest.discarded {
            discarded.push_back(Dropped { packet, reason });
        }
    }
}

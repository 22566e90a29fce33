//! One direction of a link.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng};

use crate::loss::Loss;
use crate::queue::{Discipline, Verdict};
use crate::{Change, ChangeKind, LinkConfig, LinkStatistics};

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
    rate: Option<u64>,
    delay: Duration,
    queue: Discipline,
    loss: Loss,
    changes: VecDeque<Change>,
    up: bool,
    rng: Rng,

    waiting: VecDeque<Waiting<P>>,
    waiting_bytes: u64,
    sending: Option<Sending<P>>,
    flying: VecDeque<Flying<P>>,
    last_arrival: Instant,
    discarded: Option<VecDeque<Dropped<P>>>,
    statistics: LinkStatistics,
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
struct Waiting<P> {
    packet: P,
    bytes: u32,
    mark: Mark,
    since: Instant,
}

/// What ECN says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    NotCapable,
    Capable,
    Marked,
}

#[derive(Clone, Debug)]
struct Sending<P> {
    packet: P,
    bytes: u32,
    marked: bool,
    time: Duration,
    done: Instant,
}

#[derive(Clone, Debug)]
struct Flying<P> {
    packet: P,
    bytes: u32,
    marked: bool,
    arrival: Instant,
}

impl<P> Link<P> {
    /// A link that is up and empty. `rng` decides losses; give each link its own.
    pub fn new(config: LinkConfig, mut rng: Rng) -> Self {
        let LinkConfig { rate, delay, queue, loss, mut changes } = config;
        changes.sort_by_key(|change| change.at);
        Self {
            rate,
            delay,
            queue: Discipline::new(queue, &mut rng),
            loss: Loss::new(loss),
            changes: changes.into(),
            up: true,
            rng,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: None,
            flying: VecDeque::new(),
            last_arrival: Instant::ZERO,
            discarded: None,
            statistics: LinkStatistics::default(),
        }
    }

    /// Keeps the packets that are lost inside the link for [`Link::poll_discarded`], for owners that have to give
    /// them back to a pool. Without this they are dropped where they are lost.
    #[must_use]
    pub fn keeping_discarded(mut self) -> Self {
        self.discarded = Some(VecDeque::new());
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
    pub fn offer_ecn(&mut self, now: Instant, packet: P, bytes: u32, capable: bool) -> Result<(), Dropped<P>> {
        self.advance(now);
        self.statistics.offered.add(bytes);
        let mut mark = if capable { Mark::Capable } else { Mark::NotCapable };
        let idle = self.sending.is_none(); // then nothing waits either
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
        if idle {
            self.start(now, packet, bytes, mark == Mark::Marked);
            self.advance(now); // an infinitely fast link is done at once
        } else {
            self.waiting.push_back(Waiting { packet, bytes, mark, since: now });
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
        if self.flying.front()?.arrival > now {
            return None;
        }
        let Flying { packet, bytes, marked, .. } = self.flying.pop_front()?;
        self.statistics.delivered.add(bytes);
        Some((packet, marked))
    }

    /// The next packet that was lost inside; always `None` unless the link was made with
    /// [`Link::keeping_discarded`].
    pub fn poll_discarded(&mut self, now: Instant) -> Option<Dropped<P>> {
        self.advance(now);
        self.discarded.as_mut()?.pop_front()
    }

    /// When to call [`Link::poll`] next; `None` while the link is empty. After a poll that returned `None` it is
    /// later than that poll's `now`. The packet expected then may turn out to be lost or delayed further.
    pub fn next_event(&self) -> Option<Instant> {
        if let Some(first) = self.flying.front() {
            return Some(first.arrival); // later ones never overtake it
        }
        let arrival = (self.sending.as_ref()?.done + self.delay).max(self.last_arrival);
        // A change may move that arrival, so it is looked at anew then.
        Some(self.changes.front().map_or(arrival, |change| change.at.min(arrival)))
    }

    /// Changes the link now.
    pub fn change(&mut self, now: Instant, what: ChangeKind) {
        self.advance(now);
        self.apply(now, what);
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
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// Bytes that wait, without the packet being sent, as of the last call.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Packets in the link, from the queue to the far end, as of the last call.
    pub fn inside(&self) -> usize {
        self.waiting.len() + usize::from(self.sending.is_some()) + self.flying.len()
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

    /// Makes up for everything up to and including `now`, each step at its own instant. Ends because every step takes
    /// away a change or a packet.
    fn advance(&mut self, now: Instant) {
        loop {
            let done = self.sending.as_ref().map(|sending| sending.done);
            match self.changes.front() {
                Some(change) if change.at <= now && done.is_none_or(|done| change.at <= done) => {
                    let Change { at, what } = *change;
                    self.changes.pop_front();
                    self.apply(at, what);
                }
                _ if done.is_some_and(|done| done <= now) => self.finish(),
                _ => return,
            }
        }
    }

    /// The last bit of the packet being sent is on its way; the next packet follows at once.
    fn finish(&mut self) {
        let Some(Sending { packet, bytes, marked, time, done }) = self.sending.take() else { return };
        self.statistics.sent.add(bytes);
        self.statistics.busy += time;
        if self.loss.next(&mut self.rng) {
            self.discard(packet, bytes, DropReason::Loss);
        } else {
            let arrival = (done + self.delay).max(self.last_arrival);
            self.last_arrival = arrival;
            self.flying.push_back(Flying { packet, bytes, marked, arrival });
        }
        self.start_next(done);
    }

    /// Takes the first packet from the queue that its discipline lets pass.
    fn start_next(&mut self, at: Instant) {
        while let Some(Waiting { packet, bytes, mark, since }) = self.waiting.pop_front() {
            self.waiting_bytes -= u64::from(bytes);
            let verdict = match &mut self.queue {
                Discipline::CoDel(codel) => codel.departure(at, at - since, self.waiting_bytes, mark == Mark::Capable),
                Discipline::DropTail { .. } | Discipline::Red(_) => Verdict::Pass,
            };
            match verdict {
                Verdict::Pass => return self.start(at, packet, bytes, mark == Mark::Marked),
                Verdict::Mark => {
                    self.statistics.marked.add(bytes);
                    return self.start(at, packet, bytes, true);
                }
                Verdict::DropEarly | Verdict::DropFull => self.discard(packet, bytes, DropReason::Early),
            }
        }
        self.emptied(at);
    }

    fn start(&mut self, at: Instant, packet: P, bytes: u32, marked: bool) {
        let time = self.rate.map_or(Duration::ZERO, |rate| Duration::of_transmission(bytes.into(), rate));
        self.sending = Some(Sending { packet, bytes, marked, time, done: at + time });
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
            ChangeKind::Rate(rate) => self.rate = rate,
            ChangeKind::Delay(delay) => self.delay = delay,
            ChangeKind::Loss(loss) => self.loss = Loss::new(loss),
            ChangeKind::Up => self.up = true,
            ChangeKind::Down => {
                self.up = false;
                self.waiting_bytes = 0;
                if let Some(Sending { packet, bytes, .. }) = self.sending.take() {
                    self.discard(packet, bytes, DropReason::Outage);
                    self.emptied(at);
                }
                while let Some(Waiting { packet, bytes, .. }) = self.waiting.pop_front() {
                    self.discard(packet, bytes, DropReason::Outage);
                }
            }
        }
    }

    fn discard(&mut self, packet: P, bytes: u32, reason: DropReason) {
        self.statistics.count_drop(reason, bytes);
        if let Some(discarded) = &mut self.discarded {
            discarded.push_back(Dropped { packet, reason });
        }
    }
}

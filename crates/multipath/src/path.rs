//! One path as the sender sees it: what its owner says of it, and what was found out.

use crate::pacing::Pacer;
use crate::packet::QueuedPacket;
use crate::reach::NEAR;
use crate::sent_packets::{Counts, Kind, SentPackets};
use crate::windows::{Slot, Windows};
use clock::{Duration, Instant};
use scheduler::{PathId, PathView};
use std::collections::VecDeque;

/// What may be in flight beyond a full window, in bytes: some hundreds of acknowledgments.
const BEYOND_WINDOW: f64 = 64_000.0;
/// So many bytes in flight are heartbeats and answers to the peer's, of which reports tell later.
const NO_QUEUE: usize = 500;
/// What reports may be late by: their own pace, and timers.
pub(crate) const REPORT_SLACK: Duration = Duration::from_millis(35);
/// With this many packets unanswered, be they acknowledgments, and nothing coming from the peer, missing reports alone are proof of
/// failure: no probe is needed.
const UNDER_LOAD: usize = 4;
/// ... if they were sent over at least half of this, in which several reports would have come.
const SEVERAL_REPORTS: Duration = Duration::from_millis(10);
/// A TCP may keep an acknowledgment for so long: half of what RFC 9293 §3.8.6.3 allows, and what common ones do at most.
const DELAYED_ACK: Duration = Duration::from_millis(250);
/// How long silence is waited out while no round-trip time is known.
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(1);

/// What the headers around a payload take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Headers before the payload and the check value behind it.
    pub fixed: usize,
    /// What follows the payload and is padded together with it: two bytes in ESP (RFC 4303 §2).
    pub trailer: usize,
    /// What the padded length is a multiple of; 0 and 1 mean no padding.
    pub alignment: usize,
}

impl Overhead {
    /// Bytes of the whole outer IP packet that carries so many.
    pub fn wire(self, payload: usize) -> usize {
        self.fixed + (payload + self.trailer).next_multiple_of(self.alignment.max(1))
    }
}

/// What the owner of a path knows of it and the sender has to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathState {
    /// The peer is known to receive there.
    pub is_verified: bool,
    /// It answers heartbeats.
    pub is_alive: bool,
    /// It is a backup, and others work.
    pub is_standby: bool,
    /// Bytes of whole packets that may be sent now; [`u64::MAX`] where nothing limits them (RFC 8046 §5.6).
    pub allowance: u64,
    /// What is around a payload there.
    pub overhead: Overhead,
    /// The largest whole packet, in bytes.
    pub mtu: u16,
    /// The configured rate in bit/s, if there is one.
    pub rate: Option<u64>,
    /// One-way delay while nothing is measured.
    pub delay: Duration,
    /// Heartbeats' smoothed round-trip time, and its variation.
    pub srtt: Option<Duration>,
    /// See [`PathState::srtt`].
    pub rttvar: Option<Duration>,
    /// When a heartbeat was answered last.
    pub answered_at: Instant,
    /// When something new came from the peer on it.
    pub heard_at: Instant,
}

impl PathState {
    /// Whether data could be sent on it.
    pub fn answers(&self) -> bool {
        self.is_verified && self.is_alive
    }

    /// Whether data may be sent on it now.
    pub fn is_usable(&self) -> bool {
        self.answers() && !self.is_standby
    }

    /// Whether packets may go on it: where no path is usable, those whose peer is known to receive there are tried.
    pub(crate) fn may_carry(&self, any_usable: bool) -> bool {
        if any_usable { self.is_usable() } else { self.is_verified }
    }

    /// Whether so many bytes may be sent now.
    pub fn allows(&self, bytes: usize) -> bool {
        bytes as u64 <= self.allowance
    }
}

/// What is known of a path from reports.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathStatistics {
    /// Delivery rate in bit/s, outer headers included; the greatest of the last round trips.
    pub delivery_rate: u64,
    /// Congestion window in bytes.
    pub cwnd: f64,
    /// Slow-start threshold in bytes, infinite before the first loss.
    pub ssthresh: f64,
    /// Bytes in flight.
    pub in_flight: usize,
    /// Packets sent that are remembered.
    pub remembered: usize,
    /// How many paths, this one included, share its bottleneck.
    pub sharers: u32,
    /// It rests, because another carries through the same bottleneck, which has a queue for each flow.
    pub rests: bool,
    /// How often the window was reduced: by losses here, and on paths that share the bottleneck.
    pub reductions: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// The variation of the round-trip time.
    pub rttvar: Option<Duration>,
    /// Totals.
    pub counts: Counts,
}

/// A path of the sender.
#[derive(Clone, Debug)]
pub(crate) struct SenderPath<P> {
    pub(crate) id: PathId,
    pub(crate) state: PathState,
    pub(crate) pacer: Pacer<P>,
    /// What waits for this path alone, as a scheduler has decided: its window or its pace has no room.
    pub(crate) queue: VecDeque<QueuedPacket<P>>,
    /// The policies to whose packets it is closed, a bit each.
    pub(crate) barred: u64,
    /// Where paths have windows.
    pub(crate) control: Option<Control<P>>,
}

/// What a path with a window has besides.
#[derive(Clone, Debug)]
pub(crate) struct Control<P> {
    pub(crate) slot: Slot,
    pub(crate) sent: SentPackets<P>,
    /// Only what TCP acknowledges inside is known of it.
    pub(crate) is_snooped: bool,
    /// Packets waited while the window or the pace was the limit.
    pub(crate) busy: bool,
    /// The most that was in flight since the last report, in bytes.
    pub(crate) top_flight: usize,
    /// The same over some round trips: an older one counts a little less with each report.
    pub(crate) peak: usize,
    /// A report has come since the path had its turn to send. Those that come together, as they do where a host was late, are
    /// of the same time, and each tells of what then was in flight.
    pub(crate) is_reported: bool,
    /// When a heartbeat was asked for because the path is silent.
    pub(crate) probed_at: Option<Instant>,
    /// The last packet was sent once more because nothing was heard of it, and nothing has been heard since.
    pub(crate) is_tail_probed: bool,
    /// It answers heartbeats again after a silence, or leads elsewhere, and no report has come since.
    pub(crate) is_revived: bool,
    pub(crate) last_sent: Instant,
    /// It was in its first slow start when the paths were looked at last.
    pub(crate) is_starting: bool,
    /// The round trip since the path was empty, until the smoothed one has come near it.
    since_empty: Option<Duration>,
}

impl<P> SenderPath<P> {
    pub(crate) fn new(id: PathId, state: PathState, rate: u64, control: Option<Control<P>>) -> Self {
        Self { id, state, pacer: Pacer::new(rate), queue: VecDeque::new(), barred: 0, control }
    }

    /// The smoothed round-trip time, by reports or by heartbeats.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.control.as_ref().and_then(|control| control.sent.rtt().srtt()).or(self.state.srtt)
    }

    /// Whether what does not wait for the window, as acknowledgments, may be sent. A path that is slower than they come would
    /// otherwise fill with them, for they are not paced.
    pub(crate) fn has_room_beyond(&self, windows: &Windows) -> bool {
        let Some(control) = &self.control else { return true };
        control.sent.in_flight() as f64 <= windows.window(control.slot) + BEYOND_WINDOW
    }

    /// The path as a scheduler sees it where rates are configured. What does not wait in the queue (`past_queue`) leaves
    /// earlier.
    pub(crate) fn view(&self, open: bool, past_queue: bool, now: Instant, windows: &Windows) -> PathView {
        let free_at = if past_queue { self.pacer.clear_at() } else { self.pacer.free_at(now) };
        PathView { open, delay: self.state.delay, rate: self.pacer.rate(), free_at, ..self.measured(windows) }
    }

    /// What is measured of the path, as a scheduler sees it: in full packets.
    pub(crate) fn measured(&self, windows: &Windows) -> PathView {
        let (reported, mtu) = (self.control.as_ref().map(|control| control.sent.rtt()), self.state.mtu.max(1));
        let packets = |bytes: f64| if bytes.is_finite() { (bytes / f64::from(mtu)) as u64 } else { u64::MAX };
        let rttvar = reported.and_then(|rtt| rtt.rttvar()).or(self.state.rttvar);
        let view = PathView {
            id: self.id,
            srtt: self.srtt().unwrap_or(self.state.delay * 2),
            rttvar: rttvar.unwrap_or_default(),
            queued: self.queue.len() as u64,
            ..PathView::default()
        };
        let Some(control) = &self.control else { return view };
        PathView {
            cwnd: packets(windows.window(control.slot)),
            ssthresh: packets(windows.threshold(control.slot)),
            in_flight: control.sent.in_flight().div_ceil(mtu.into()) as u64,
            ..view
        }
    }

    /// A packet that does not wait is about to leave. Under a window it delays what waits, but not further than what waits is
    /// delayed already: acknowledgments and reports may come faster than the pace, and data would never have its turn. What opens
    /// a connection `always` counts.
    pub(crate) fn pass_queue(&mut self, now: Instant, wire: usize, always: bool) {
        if always || self.control.is_none() || self.pacer.clear_at() <= now {
            self.pacer.sent(wire, now);
        }
    }

    /// Notes a packet that left under this number.
    pub(crate) fn left(&mut self, now: Instant, number: u32, wire: usize, kind: Kind<P>) {
        if let Some(control) = &mut self.control {
            control.left(now, number, wire, kind);
        }
    }

    /// When the path's silence means something.
    pub(crate) fn life_deadline(&self) -> Option<Instant> {
        let control = self.control.as_ref()?;
        control.sent.silent_since().map(|_| control.life_deadline(&self.state))
    }

    /// Bytes that wait for this path alone.
    pub(crate) fn queued(&self) -> usize {
        self.queue.iter().map(|packet| packet.wire).sum()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.control.as_ref().map_or(0, |control| control.sent.memory()) + self.pacer.queued() + self.queued()
    }
}

impl<P> Control<P> {
    pub(crate) fn new(now: Instant, slot: Slot, is_snooped: bool) -> Self {
        Self {
            slot,
            sent: SentPackets::new(now),
            is_snooped,
            busy: false,
            top_flight: 0,
            peak: 0,
            is_reported: false,
            probed_at: None,
            is_tail_probed: false,
            is_revived: false,
            last_sent: now,
            is_starting: false,
            since_empty: None,
        }
    }

    /// For a path of the same route with new keys, while this one is still in use.
    pub(crate) fn following(&self, now: Instant) -> Self {
        let Self { slot, is_snooped, busy, top_flight, peak, is_reported, last_sent, .. } = *self;
        Self { busy, top_flight, peak, is_reported, last_sent, ..Self::new(now, slot, is_snooped) }
    }

    /// The path before has ended: its measurements go on here.
    pub(crate) fn take_over(&mut self, now: Instant, before: &Self) {
        *self = Self { sent: before.sent.following(now), ..before.following(now) };
    }

    /// How long a packet takes there at the least, if what is in flight leaves at the rate at which packets arrived lately:
    /// round trips tell of a queue only when it has been there for as long.
    pub(crate) fn forecast(&self) -> Duration {
        self.queue().map_or(Duration::ZERO, |(base, queue)| base / 2 + queue)
    }

    /// The least round trip, and how much longer what is in flight takes at the rate at which packets arrived lately, where both are known.
    pub(crate) fn queue(&self) -> Option<(Duration, Duration)> {
        let (base, rate) = (self.sent.rtt().min()?, self.sent.full_rate());
        // In the first slow start twice as much is in flight as was delivered in the round trip before, and no queue has it.
        let rate = if self.is_starting { rate.saturating_mul(2) } else { rate };
        let takes = (rate > 0).then(|| Duration::of_transmission(self.sent.in_flight() as u64, rate))?;
        Some((base, takes.saturating_sub(base)))
    }

    /// How long a packet takes there one way, of this smoothed round trip. Snooped round trips forecast nothing.
    pub(crate) fn delay(&self, srtt: Duration) -> Duration {
        let forecast = if self.is_snooped { Duration::ZERO } else { self.forecast() };
        forecast.max(self.round_trip(srtt) / 2)
    }

    /// The round trip as it is now. The smoothed one of a path that has nothing to carry any more stays what it was in its queue, and
    /// nothing would go there.
    pub(crate) fn round_trip(&self, srtt: Duration) -> Duration {
        self.since_empty.map_or(srtt, |rtt| rtt.min(srtt))
    }

    /// A heartbeat was answered after so long. A path whose rate fell is not tried again on the word of one.
    pub(crate) fn answered(&mut self, rtt: Duration) {
        if self.sent.in_flight() <= NO_QUEUE {
            self.since_empty = self.since_empty.or(self.sent.rtt().srtt());
            self.measured(rtt);
        }
    }

    /// A report has told how long it took.
    pub(crate) fn measured(&mut self, rtt: Duration) {
        let Some(before) = self.since_empty else { return };
        self.since_empty = Some((before + rtt) / 2).filter(|rtt| self.is_nearer(*rtt));
    }

    /// Whether a round trip is shorter than the smoothed one by more than jitter makes it.
    fn is_nearer(&self, rtt: Duration) -> bool {
        self.sent.rtt().srtt().is_some_and(|srtt| rtt + NEAR * 2 < srtt)
    }

    /// By what factor reports of the path are earlier than a round trip on it. What TCP acknowledges inside tells of no path how
    /// long it took.
    pub(crate) fn earliness(&self) -> f64 {
        if self.is_snooped { 1.0 } else { self.sent.earliness() }
    }

    /// How long silence lasts before it means something: a round trip as it may be now, and what reports are late by.
    fn patience(&self, state: &PathState) -> Duration {
        let lateness = match (self.sent.rtt().latest(), state.srtt, state.rttvar) {
            (Some(latest), ..) => latest + self.sent.jitter() * 4,
            (None, Some(srtt), Some(rttvar)) => srtt + rttvar * 4,
            _ => return UNKNOWN_PATIENCE,
        };
        lateness + REPORT_SLACK
    }

    /// Reports follow each other by less than [`REPORT_SLACK`] while packets arrive. So a path is silent when nothing was
    /// acknowledged for longer, although the oldest packet in flight is a round trip older than that.
    pub(crate) fn life_deadline(&self, state: &PathState) -> Instant {
        let patience = self.patience(state);
        if let Some(probed_at) = self.probed_at {
            let answered = self.is_snooped && state.answered_at >= probed_at;
            return probed_at + patience + if answered { DELAYED_ACK } else { Duration::ZERO };
        }
        let mut unanswered = self.sent.unanswered();
        let (Some(oldest), Some(progress)) = (unanswered.next(), self.sent.silent_since()) else {
            return Instant::FAR_FUTURE;
        };
        let soonest = oldest + SEVERAL_REPORTS;
        // Where packets are few, the last that makes a proof is sooner than the answer to a probe would be.
        let enough = unanswered.nth(UNDER_LOAD - 2).filter(|at| *at < soonest + patience);
        let silence = progress + REPORT_SLACK.max((self.sent.gap() * 3).min(patience));
        (enough.map_or(soonest, |at| at.max(soonest)) + patience).max(silence)
    }

    /// When the last packet is to be sent once more: that it is lost shows only when something later is reported (RFC 8985 §7).
    pub(crate) fn tail_due(&self, state: &PathState) -> Option<Instant> {
        let may = state.answers() && !self.is_snooped && !self.is_tail_probed;
        if may { self.sent.tail_due() } else { None }
    }

    /// Whether several packets should have been reported by now, in several reports: a link that loses packets loses the last ones
    /// before a pause, or the report of them.
    pub(crate) fn is_unanswered(&self, now: Instant, state: &PathState) -> bool {
        let patience = self.patience(state);
        let mut overdue = self.sent.unanswered().take_while(|at| *at + patience <= now);
        overdue.next().is_some_and(|first| {
            let (packets, last) = overdue.fold((1, first), |(packets, _), at| (packets + 1, at));
            packets >= UNDER_LOAD && last >= first + SEVERAL_REPORTS / 2
        })
    }

    fn left(&mut self, now: Instant, number: u32, wire: usize, kind: Kind<P>) {
        let kind = match kind {
            Kind::InFlight if self.is_snooped => Kind::Uncounted,
            kind => kind,
        };
        if !matches!(kind, Kind::Uncounted) {
            self.last_sent = now;
            if self.sent.in_flight() == 0 {
                // The question was about another flight.
                (self.probed_at, self.is_tail_probed) = (None, false);
            }
        }
        self.sent.sent(now, number, wire, kind);
        self.top_flight = self.top_flight.max(self.sent.in_flight());
    }
}

//! What a path has sent and what became of it: acknowledged, lost, or in flight, for any traffic. Reports are taken in
//! [`reports`], losses are found here.
//!
//! A path is a FIFO, so a gap is a loss once a few packets from behind it have arrived (RFC 5681 §3.2), or once it is an
//! eighth of a round-trip time older than something that has (RFC 8985 §6.2, RFC 9002 §6.1). On a path that is seen to be none
//! time alone tells, as in RFC 8985: what overtakes a packet was sent within the time by which delays differ, and is the more the
//! faster the path is.

mod fall;
mod kept;
mod lateness;
mod outcome;
mod reports;

use fall::Lately;
use kept::Kept;
use lateness::Lateness;
pub(crate) use outcome::AckOutcome;
pub use outcome::InvalidReport;

use crate::feedback::RETRANSMISSIONS;
use crate::packet::QueuedPacket;
use crate::received::LATEST;
use crate::sender::LONGEST_REPAIR;
use clock::{Duration, Instant};
use recovery::RttEstimator;
use std::collections::{BTreeMap, VecDeque};

/// Packets from behind a gap that prove a loss where none has come late, and wherever that was.
const THRESHOLD: (u64, u64) = (3, 1000);
/// What was lost has to be found and to come again while the receiver waits for it: a quarter of that time at most, or a round trip.
const MOST_SPREAD: Duration = Duration::from_nanos(LONGEST_REPAIR.as_nanos() / 4);
/// The least time before a gap is a loss by age alone: timers, and the granularity of reports.
const AGE: Duration = Duration::from_millis(10);
/// A round trip that is not known yet.
const UNKNOWN: Duration = Duration::from_millis(100);
/// What is settled is remembered for so many packets more: a loss may turn out to be none, and a report may come late.
const KEPT: usize = 1024;
/// Most records; a peer that does not report cannot make it more.
const MOST: usize = 1 << 16;
/// Among so many records is that of the packet in flight that was sent last, or nobody waits for it.
const TAIL: usize = 8;
/// Room for fewer records than this is not given back.
const LEAST_ROOM: usize = 512;
/// The factor by which reports are taken to be earlier than a round trip, at most.
const MOST_EARLY: f64 = 4.0;

/// What a packet is to the window.
#[derive(Clone, Debug)]
pub(crate) enum Kind<P> {
    /// A report, or what nothing will be heard of: it is not in flight, and nobody waits for it.
    Uncounted,
    /// It is in flight, but not worth sending again: a heartbeat, a pure acknowledgment.
    InFlight,
    /// It is in flight, and may be sent again.
    Retransmittable(QueuedPacket<P>),
}

/// The record of a packet.
#[derive(Clone, Debug)]
struct Sent {
    at: Instant,
    wire: u32,
    kind: Record,
    state: State,
    /// Bytes delivered when it was sent, and when the last of them were.
    delivered: (u64, Instant),
    /// The first packet of its flight: where the rate at which they were sent is measured from.
    first_at: Instant,
    /// It belongs to the beginning of a flight: what is delivered until it arrives is less than a path carries.
    is_beginning: bool,
}

/// A [`Kind`] whose packet is kept elsewhere, at this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Uncounted,
    InFlight,
    Retransmittable(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Delivered,
    Lost,
    /// Nothing was sent under this number.
    Skipped,
}

impl Sent {
    fn is_in_flight(&self) -> bool {
        self.state == State::InFlight && self.kind != Record::Uncounted
    }

    /// It is lost, and noted as such; what may be sent again of it.
    fn lose<P>(&mut self, number: u64, lost: &mut BTreeMap<u64, Self>, kept: &mut Kept<P>) -> Option<QueuedPacket<P>> {
        self.state = State::Lost;
        let again = match self.kind {
            Record::Retransmittable(place) => {
                self.kind = Record::InFlight;
                kept.take(place)
            }
            Record::Uncounted | Record::InFlight => None,
        };
        lost.insert(number, self.clone());
        again
    }
}

/// The sender's side of one path.
#[derive(Clone, Debug)]
pub(crate) struct SentPackets<P> {
    /// From the first that is in flight on.
    packets: VecDeque<Sent>,
    /// The sequence number of the first of them. Numbers have 64 bits here: the one after the last of a security
    /// association does not fit into 32.
    open: u64,
    /// When those were sent that came before, as far as they are remembered. No more is kept of most: with a thousand
    /// associations whole records would fill every cache.
    settled: VecDeque<Instant>,
    /// What was taken for lost, of all that is remembered.
    lost: BTreeMap<u64, Sent>,
    /// Under what numbers nothing was sent, of all that is remembered, in order.
    skipped: VecDeque<u64>,
    /// What the numbers of windows are ahead of these: all that was sent before this security association.
    offset: u64,
    in_flight: usize,
    /// What may be sent again.
    kept: Kept<P>,
    highest: Option<(u64, Instant)>,
    delivered: u64,
    delivered_at: Instant,
    /// What will have been delivered with all that was sent while the path was not full: the beginning of a flight.
    begun: u64,
    first_at: Instant,
    lateness: Lateness,
    rtt: RttEstimator,
    /// From a packet's leaving to the first report of it, smoothed.
    ack_delay: Option<Duration>,
    /// The highest sequence number that gave a round-trip time.
    timed: u64,
    /// By how much a round-trip time differs from the one before, smoothed.
    jitter: Duration,
    /// Greatest delivery rate of this and the last period, in bit/s, and when this one began.
    rate: (u64, u64, Instant),
    /// The same of the times in which the path was full: what programs had little of to send is no rate of it.
    full_rate: (u64, u64, Instant),
    /// So many bytes are delivered in a round trip at least where it is, and in flight; and packets wait.
    filled: u64,
    waits: bool,
    lately: Lately,
    counts: Counts,
    /// Of the last report: packets with CE, and all.
    ce: u32,
    packets_reported: u32,
    /// When something was acknowledged last, as if receivers did not wait, or sent after all was.
    progress_at: Instant,
    /// When the peer has told last that something had arrived.
    reported_at: Instant,
    /// How long it was between acknowledgments on the path itself lately, the longest counting for some time.
    gap: Duration,
    /// The receiver's own round-trip time.
    remote_rtt: Duration,
    loss_at: Option<Instant>,
    /// What was sent before gives no round-trip time: the clock has jumped since.
    slept_at: Instant,
}

/// Totals of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that the peer has received.
    pub delivered: u64,
    /// Packets taken for lost.
    pub lost: u64,
    /// Of those, packets that arrived after all.
    pub spurious: u64,
    /// Packets behind which others had arrived before.
    pub reordered: u64,
    /// Packets with Congestion Experienced.
    pub ce: u64,
}

impl<P> SentPackets<P> {
    /// Nothing yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            packets: VecDeque::new(),
            open: 1,
            settled: VecDeque::new(),
            lost: BTreeMap::new(),
            skipped: VecDeque::new(),
            offset: 0,
            in_flight: 0,
            kept: Kept::default(),
            highest: None,
            delivered: 0,
            delivered_at: now,
            begun: 0,
            first_at: now,
            lateness: Lateness::new(now),
            rtt: RttEstimator::default(),
            ack_delay: None,
            timed: 0,
            jitter: Duration::ZERO,
            rate: (0, 0, now),
            full_rate: (0, 0, now),
            filled: u64::MAX,
            waits: false,
            lately: Lately::new(now),
            counts: Counts::default(),
            ce: 0,
            packets_reported: 0,
            progress_at: now,
            reported_at: Instant::ZERO,
            gap: Duration::ZERO,
            remote_rtt: Duration::ZERO,
            loss_at: None,
            slept_at: Instant::ZERO,
        }
    }

    /// What goes on with other keys on the same path: its measurements, and windows' numbers where these end.
    pub(crate) fn following(&self, now: Instant) -> Self {
        Self {
            offset: self.next_of_window(),
            lateness: self.lateness.following(),
            rtt: self.rtt.clone(),
            ack_delay: self.ack_delay,
            jitter: self.jitter,
            rate: self.rate,
            full_rate: self.full_rate,
            counts: self.counts,
            reported_at: self.reported_at,
            gap: self.gap,
            remote_rtt: self.remote_rtt,
            slept_at: self.slept_at,
            delivered: self.delivered,
            ..Self::new(now)
        }
    }

    /// A packet was sealed with this number, the one after the last.
    pub(crate) fn sent(&mut self, now: Instant, sequence: u32, wire: usize, kind: Kind<P>) {
        self.begin_at(sequence.into());
        let wire = u32::try_from(wire).unwrap_or(u32::MAX);
        let kind = match kind {
            Kind::Uncounted => Record::Uncounted,
            Kind::InFlight => Record::InFlight,
            Kind::Retransmittable(packet) => Record::Retransmittable(self.kept.put(packet)),
        };
        let counts = kind != Record::Uncounted;
        if self.in_flight == 0 && counts {
            (self.first_at, self.delivered_at, self.progress_at) = (now, now, now);
            self.lately = Lately::new(now);
        }
        if counts {
            self.in_flight += wire as usize;
            if (self.in_flight as u64) < self.filled {
                self.begun = self.delivered + self.in_flight as u64;
            }
        }
        self.push(now, wire, kind, State::InFlight);
        self.prune();
    }

    /// Nothing is sent under this number, the one after the last.
    pub(crate) fn skipped(&mut self, now: Instant, sequence: u32) {
        self.begin_at(sequence.into());
        self.skipped.push_back(sequence.into());
        self.push(now, 0, Record::Uncounted, State::Skipped);
        self.prune();
    }

    fn begin_at(&mut self, sequence: u64) {
        if sequence != self.next() {
            // Only if numbers were passed over elsewhere; what was before cannot be matched any more.
            self.packets.clear();
            self.settled.clear();
            self.lost.clear();
            self.skipped.clear();
            (self.open, self.in_flight) = (sequence, 0);
            self.kept = Kept::default();
        }
    }

    fn push(&mut self, now: Instant, wire: u32, kind: Record, state: State) {
        let (delivered, first_at) = ((self.delivered, self.delivered_at), self.first_at);
        let is_beginning = self.delivered < self.begun;
        self.packets.push_back(Sent { at: now, wire, kind, state, delivered, first_at, is_beginning });
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let records = self.packets.len().saturating_add(self.lost.len()).saturating_mul(size_of::<Sent>());
        let numbers = self.lost.len().saturating_add(self.skipped.len()).saturating_mul(size_of::<u64>());
        let times = self.settled.len().saturating_mul(size_of::<Instant>());
        records
            .saturating_add(numbers)
            .saturating_add(times)
            .saturating_add(self.lateness.memory())
            .saturating_add(self.kept.memory())
    }

    /// Bytes that are held for packets which may have to be sent again.
    pub(crate) fn kept(&self) -> usize {
        self.kept.held()
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Packets of which there is a report.
    pub(crate) fn remembered(&self) -> usize {
        self.settled.len() + self.packets.len()
    }

    /// The number of the first packet that is remembered.
    fn base(&self) -> u64 {
        self.open - self.settled.len() as u64
    }

    /// The number of the next packet.
    fn next(&self) -> u64 {
        self.open + self.packets.len() as u64
    }

    /// The number of the next packet as windows count: on from what was sent before with other keys.
    pub(crate) fn next_of_window(&self) -> u64 {
        self.offset + self.next()
    }

    /// Round-trip times by reports.
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// By what factor a round trip is longer than it takes until packets are reported, from 1 to [`MOST_EARLY`]: reports of a
    /// long path come back on a shorter one, too.
    pub(crate) fn earliness(&self) -> f64 {
        let (Some(srtt), Some(ack_delay)) = (self.rtt.srtt(), self.ack_delay) else { return 1.0 };
        (srtt.as_secs_f64() / ack_delay.as_secs_f64().max(1e-6)).clamp(1.0, MOST_EARLY)
    }

    /// By how much a round-trip time differs from the one before, smoothed: a queue that grows steadily is none, though it
    /// is a variation to RFC 6298's estimator.
    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// How much later than a round trip a packet that is not acknowledged is taken for lost, at the latest.
    pub(crate) fn patience(&self) -> Duration {
        self.thresholds().1
    }

    /// The smoothed round trip, or what it is taken to be.
    fn round_trip(&self) -> Duration {
        self.rtt.srtt().unwrap_or(UNKNOWN)
    }

    /// How much later than later ones a packet may come, and how much later than a round trip it may be reported.
    fn thresholds(&self) -> (Duration, Duration) {
        let srtt = self.round_trip();
        // RFC 8985 §6.2 has no more than a round trip. Those that are measured here are short where delays differ, for what
        // overtakes others is reported first.
        let spread = self.lateness.greatest();
        let spread = (spread + spread / 8).min(srtt.max(MOST_SPREAD));
        // Where packets overtake each other, reports do so, too.
        let variation = if spread.is_zero() { Duration::ZERO } else { self.rtt.rttvar().unwrap_or_default() * 4 };
        (spread, AGE.max(srtt / 8).max(spread + variation))
    }

    /// By how much packets come behind later ones.
    pub(crate) fn lateness(&self) -> Duration {
        self.lateness.greatest()
    }

    /// What the peer measures.
    pub(crate) fn remote_rtt(&self) -> Duration {
        self.remote_rtt
    }

    /// The delivery rate in bit/s, zero while it is not known.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.0.max(self.rate.1)
    }

    /// The delivery rate in bit/s of when the path was full last, zero while it is not known.
    pub(crate) fn full_rate(&self) -> u64 {
        let known = self.full_rate.0.max(self.full_rate.1);
        // A path that is not full carries at least what it carries now: with less it would never be filled again.
        if known > 0 { known.max(self.rate()) } else { 0 }
    }

    /// The path is full where packets wait and so many bytes are delivered in the time from a packet's leaving to the report of it.
    pub(crate) fn set_full(&mut self, from: u64, waits: bool) {
        (self.filled, self.waits) = (from, waits);
    }

    /// Totals.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How long packets have been in flight without anything being acknowledged.
    pub(crate) fn silent_since(&self) -> Option<Instant> {
        (self.in_flight > 0).then_some(self.progress_at)
    }

    /// How long it was between acknowledgments on the path itself lately.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    /// When the packets in flight were sent of which later ones have not arrived, the oldest first: what others have overtaken is
    /// lost or late, and tells nothing of silence.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = Instant> {
        let next = self.highest.map_or(self.open, |(highest, _)| self.open.max(highest + 1));
        let later = self.packets.iter().skip((next - self.open) as usize);
        later.filter(|packet| packet.is_in_flight()).map(|packet| packet.at)
    }

    /// Of the packets in flight the oldest that may be sent again, and when it was sent. What others there are before it are few.
    pub(crate) fn oldest(&self) -> Option<(Instant, &QueuedPacket<P>)> {
        self.waiting().take(8).find_map(|sent| match sent.kind {
            Record::Retransmittable(place) => Some((sent.at, self.kept.get(place)?)),
            _ => None,
        })
    }

    fn waiting(&self) -> impl Iterator<Item = &Sent> {
        self.packets.iter().filter(|packet| packet.is_in_flight())
    }

    /// When something should have been heard of the packet that was sent last, if it is in flight and may be sent again.
    pub(crate) fn tail_due(&self) -> Option<Instant> {
        let (sent, place) = self.tail()?;
        let sent_at = self.packets.get(sent)?.at;
        // Without a number the peer's program might get it twice.
        self.kept.get(place).filter(|packet| packet.number.is_some() && packet.retransmissions < RETRANSMISSIONS)?;
        let srtt = self.rtt.srtt()?.max(self.rtt.latest()?);
        Some((sent_at + srtt).max(self.progress_at) + self.patience() + LATEST)
    }

    /// The packet that was sent last, to be sent once more: it is still in flight, but no longer kept for that.
    pub(crate) fn take_tail(&mut self) -> Option<QueuedPacket<P>> {
        let (sent, place) = self.tail()?;
        self.packets.get_mut(sent)?.kind = Record::InFlight;
        self.kept.take(place)
    }

    /// Of the packet in flight that was sent last, if it may be sent again: where its record is, and where it is kept.
    fn tail(&self) -> Option<(usize, u32)> {
        let mut latest = self.packets.iter().enumerate().rev().take(TAIL);
        let (at, sent) = latest.find(|(_, packet)| packet.is_in_flight())?;
        let Record::Retransmittable(place) = sent.kind else { return None };
        Some((at, place))
    }

    /// When the peer has told last that something had arrived.
    pub(crate) fn reported_at(&self) -> Instant {
        self.reported_at
    }

    /// When something was acknowledged last.
    pub(crate) fn progress_at(&self) -> Instant {
        self.progress_at
    }

    /// When a gap is old enough to be a loss.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.loss_at
    }

    /// Finds losses by age.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> AckOutcome<P> {
        let mut outcome =
            AckOutcome { flight: self.in_flight as u64, upto: self.offset + self.open, ..AckOutcome::default() };
        if self.loss_at.is_some_and(|at| at <= now) {
            self.detect(now, &mut outcome);
            self.prune();
            outcome.upto = self.offset + self.open;
        }
        outcome
    }

    /// Gives all up that is in flight: the path is dead or silent. What may be sent again, in order.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<QueuedPacket<P>> {
        let mut stranded = Vec::new();
        for (packet, number) in self.packets.iter_mut().zip(self.open..) {
            if packet.state != State::InFlight {
                continue;
            }
            stranded.extend(packet.lose(number, &mut self.lost, &mut self.kept));
            self.counts.lost += u64::from(packet.kind != Record::Uncounted);
        }
        self.in_flight = 0;
        self.loss_at = None;
        (self.rate, self.full_rate) = ((0, 0, now), (0, 0, now));
        self.gap = Duration::ZERO;
        self.progress_at = now;
        self.prune();
        stranded
    }

    /// The clock has jumped, or the path was dead: what is in flight from before says nothing of it.
    pub(crate) fn slept(&mut self, now: Instant) {
        self.slept_at = now;
        self.progress_at = now;
    }

    /// When the packet of this number was sent, if that is remembered.
    fn sent_at(&self, sequence: u64) -> Option<Instant> {
        match sequence.checked_sub(self.open) {
            Some(at) => self.packets.get(at as usize).map(|packet| packet.at),
            None => self.settled.get(sequence.checked_sub(self.base())? as usize).copied(),
        }
    }

    /// Finds losses. What is in flight is never further below the highest than the thresholds, once this was done: so it
    /// costs what was acknowledged since, and that.
    fn detect(&mut self, now: Instant, outcome: &mut AckOutcome<P>) {
        self.loss_at = None;
        let Some((highest, highest_at)) = self.highest else { return };
        let srtt = self.round_trip();
        let (spread, patience) = self.thresholds();
        let below = |skipped: &VecDeque<u64>, number: u64| skipped.partition_point(|skip| *skip < number) as u64;
        let skips = below(&self.skipped, highest);
        let upto = (highest.saturating_sub(self.open) as usize).min(self.packets.len());
        for (packet, sequence) in self.packets.range_mut(..upto).zip(self.open..) {
            if packet.state != State::InFlight {
                continue;
            }
            // By age relative to what has arrived: the time from then on is the path's own.
            let due = highest_at.max(packet.at) + srtt + patience;
            let distance = highest - sequence - (skips - below(&self.skipped, sequence));
            let was_passed = distance >= THRESHOLD.0 && highest_at.saturating_since(packet.at) >= spread;
            // For how long it may still be late and not lost.
            let left = was_passed.then(|| spread.saturating_sub(self.lateness.overdue(now, sequence)));
            let is_lost = left == Some(Duration::ZERO) || distance >= THRESHOLD.1;
            if !is_lost && due > now {
                let due = left.map_or(due, |left| due.min(now + left));
                self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
                continue;
            }
            outcome.retransmit.extend(packet.lose(sequence, &mut self.lost, &mut self.kept));
            if packet.kind != Record::Uncounted {
                outcome.lost += 1;
                self.counts.lost += 1;
                self.in_flight -= packet.wire as usize;
            }
        }
    }

    fn prune(&mut self) {
        while let Some(packet) = self.packets.front().filter(|packet| packet.state != State::InFlight) {
            self.settled.push_back(packet.at);
            self.packets.pop_front();
            self.open += 1;
        }
        let most = KEPT.min(MOST.saturating_sub(self.packets.len()));
        self.settled.drain(..self.settled.len().saturating_sub(most));
        for _ in MOST..self.packets.len() {
            let Some(packet) = self.packets.pop_front() else { break };
            self.open += 1;
            if packet.state == State::InFlight && packet.kind != Record::Uncounted {
                self.in_flight -= packet.wire as usize;
            }
            if let Record::Retransmittable(place) = packet.kind {
                self.kept.take(place);
            }
        }
        let base = self.base();
        while self.lost.first_key_value().is_some_and(|(lost, _)| *lost < base) {
            self.lost.pop_first();
        }
        while self.skipped.front().is_some_and(|skipped| *skipped < base) {
            self.skipped.pop_front();
        }
        // A burst does not take its room for ever.
        if self.packets.capacity() > LEAST_ROOM.max(self.packets.len() * 4) {
            self.packets.shrink_to(self.packets.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn report(ranges: &[(u32, u32)], packets: u32) -> Report {
        Report {
            highest: ranges.first().map_or(0, |range| range.1),
            packets,
            ranges: ranges.to_vec(),
            ..Report::default()
        }
    }

    /// RFC 9000 §21.4: the number alone, in the middle of a range, and as the highest.
    #[test]
    fn who_acknowledges_a_skipped_number_is_found_out_and_nothing_is_taken() {
        let mut log = SentPackets::<()>::new(at(0));
        for number in 1..=9 {
            match number {
                4 | 9 => log.skipped(at(0), number),
                _ => log.sent(at(0), number, 100, Kind::InFlight),
            }
        }
        for ranges in [&[(4, 4)][..], &[(1, 8)], &[(5, 9)], &[(9, 9)], &[(6, 8), (3, 4)]] {
            assert_eq!(log.on_report(at(40), &report(ranges, 1), true).unwrap_err(), InvalidReport::Invented);
        }
        assert_eq!((log.in_flight(), log.counts().delivered), (700, 0));
        let outcome = log.on_report(at(40), &report(&[(5, 8), (1, 3)], 7), true).unwrap();
        assert_eq!((outcome.acked, outcome.lost, log.in_flight()), (700, 0, 0));
    }

    /// RFC 5681 §3.2: a loss is one when three packets from behind it have arrived, however many numbers between them carried
    /// none.
    #[test]
    fn a_skipped_number_is_no_packet_from_behind_a_gap() {
        for skipped in [false, true] {
            let mut log = SentPackets::<()>::new(at(0));
            let mut number = 0;
            let mut send = |log: &mut SentPackets<()>, skip: bool| {
                number += 1;
                if skip {
                    log.skipped(at(0), number);
                } else {
                    log.sent(at(0), number, 100, Kind::InFlight);
                }
            };
            send(&mut log, false);
            for _ in 0..3 {
                send(&mut log, skipped);
                send(&mut log, false);
            }
            let up_to =
                |numbers: &[u32]| report(&numbers.iter().map(|n| (*n, *n)).collect::<Vec<_>>(), numbers.len() as u32);
            let (two, three) = if skipped { (vec![5, 3], vec![7, 5, 3]) } else { (vec![3, 2], vec![4, 3, 2]) };
            assert_eq!(log.on_report(at(30), &up_to(&two), true).unwrap().lost, 0, "{skipped}");
            assert_eq!(log.on_report(at(31), &up_to(&three), true).unwrap().lost, 1, "{skipped}");
        }
    }

    /// Every other packet takes 20 ms longer, whatever the rate: none is lost, and none is taken for lost once that is known.
    #[test]
    fn what_overtakes_others_at_one_rate_proves_no_loss_at_twenty_times_that() {
        let mut log = SentPackets::<()>::new(at(0));
        let micros = |micros: u64| Instant::ZERO + Duration::from_micros(micros);
        let (mut events, mut time) = (Vec::new(), 0);
        for number in 1..=6_000_u32 {
            time += if number <= 1_000 { 1_000 } else { 50 };
            events.push((time, number, true));
            events.push((time + 30_000 + 20_000 * u64::from(number % 2), number, false));
        }
        events.sort_unstable();
        let mut learned = 0;
        let mut highest = 0;
        for (time, number, is_sent) in events {
            if is_sent {
                log.sent(micros(time), number, 1500, Kind::InFlight);
                if number == 1_000 {
                    learned = log.counts().lost;
                }
                continue;
            }
            highest = highest.max(number);
            let report = Report { highest, packets: 1, ranges: vec![(number, number)], ..Report::default() };
            log.on_report(micros(time), &report, true).unwrap();
        }
        let counts = log.counts();
        assert_eq!((counts.lost - learned, counts.delivered), (0, 6_000), "{counts:?}");
    }

    /// Every other packet takes 10 ms longer. One that has not come so long after later ones is lost, and no sooner: also where these were
    /// sent much later, and come soon after what a queue had held up.
    #[test]
    fn what_comes_later_than_any_has_is_lost_and_what_a_queue_held_up_is_not() {
        let mut log = SentPackets::<()>::new(at(0));
        let mut reports = Vec::new();
        for number in 1..=1_000_u32 {
            log.sent(at(number.into()), number, 1500, Kind::InFlight);
            reports.push((u64::from(number) + 30 + 10 * u64::from(number % 2), number));
        }
        reports.sort_unstable();
        let mut highest = 0;
        for (time, number) in reports {
            highest = highest.max(number);
            let report = Report { highest, packets: 1, ranges: vec![(number, number)], ..Report::default() };
            log.on_report(at(time), &report, true).unwrap();
        }
        let known = log.counts().lost;
        log.sent(at(2_000), 1_001, 1500, Kind::InFlight);
        (1_002..=1_005).for_each(|number| log.sent(at(2_040), number, 1500, Kind::InFlight));
        log.on_report(at(2_070), &report(&[(1_002, 1_005)], 1_000), true).unwrap();
        let due = log.poll_timeout().unwrap();
        assert!(due > at(2_078) && due < at(2_082), "{due:?}");
        assert_eq!(log.handle_timeout(at(2_078)).lost + (log.counts().lost - known) as u32, 0);
        assert_eq!(log.handle_timeout(due).lost, 1);
    }

    /// A link of 2 Mbit/s that is full, and then is one of 20 Mbit/s, of which a program uses four.
    #[test]
    fn a_path_that_is_not_full_is_known_to_carry_what_it_carries() {
        let mut log = SentPackets::<()>::new(at(0));
        let (mut left, mut number) = (VecDeque::new(), 0);
        let mut run = |log: &mut SentPackets<()>, from: u64, gap: usize| {
            for now in (from..from + 1_000).step_by(gap) {
                number += 1;
                log.sent(at(now), number, 1500, Kind::InFlight);
                left.push_back((now + 40, number));
                while let Some((_, arrived)) = left.front().copied().filter(|(due, _)| *due <= now) {
                    left.pop_front();
                    log.on_report(at(now), &report(&[(1, arrived)], arrived), true).unwrap();
                }
            }
            log.full_rate()
        };
        assert_eq!(run(&mut log, 0, 3), 0, "nothing has filled it");
        log.set_full(0, true);
        let full = run(&mut log, 1_000, 6);
        log.set_full(0, false);
        let (slow, fast) = (run(&mut log, 2_000, 12), run(&mut log, 3_000, 3));
        assert!((1_900_000..2_600_000).contains(&full) && slow == full, "{full} {slow}");
        assert!((3_600_000..4_400_000).contains(&fast), "{fast}");
    }

    /// A window of ten packets leaves at once, and the path carries one in a millisecond. Of the first that arrive none has been in flight
    /// for longer than the next, and what they tell would be a rate of a few packets in a round trip.
    #[test]
    fn the_beginning_of_a_flight_tells_no_rate() {
        let mut log = SentPackets::<()>::new(at(0));
        log.set_full(10 * 1500 / 4, true);
        (1..=10).for_each(|number| log.sent(at(0), number, 1500, Kind::InFlight));
        let mut rates = Vec::new();
        for number in 1..=20 {
            let now = at(20 + u64::from(number));
            log.on_report(now, &report(&[(1, number)], number), true).unwrap();
            log.sent(now, 10 + number, 1500, Kind::InFlight);
            rates.push(log.full_rate());
        }
        let (begins, goes_on) = rates.split_at(10);
        assert!(begins.iter().all(|rate| *rate == 0), "{begins:?}");
        // Ten packets in the 21 to 30 ms that each of the second ten takes.
        assert!(goes_on.last().is_some_and(|rate| (4_000_000..6_000_000).contains(rate)), "{goes_on:?}");
    }

    /// While a path dies, what is reported of it comes on others. How seldom tells nothing of how long a path that lives is silent.
    #[test]
    fn gaps_are_those_between_reports_on_the_path_itself() {
        for on_own_path in [true, false] {
            let mut log = SentPackets::<()>::new(at(0));
            (1..=60).for_each(|number| log.sent(at(0), number, 100, Kind::InFlight));
            for number in 1..=50 {
                log.on_report(at(40 + 3 * u64::from(number)), &report(&[(1, number)], number), true).unwrap();
            }
            assert_eq!(log.gap(), Duration::from_millis(3));
            log.on_report(at(240), &report(&[(1, 51)], 51), on_own_path).unwrap();
            assert_eq!(log.gap() >= Duration::from_millis(50), on_own_path);
        }
    }

    /// A packet is missing, and later ones have come: that is a loss, or one that is late, but no silence.
    #[test]
    fn what_was_overtaken_is_no_sign_of_silence() {
        let mut log = SentPackets::<()>::new(at(0));
        (1..=4).for_each(|number| log.sent(at(number), number as u32, 100, Kind::InFlight));
        assert_eq!(log.unanswered().next(), Some(at(1)));
        log.on_report(at(40), &report(&[(2, 3)], 2), true).unwrap();
        assert_eq!(log.unanswered().next(), Some(at(4)));
        log.on_report(at(41), &report(&[(2, 4)], 3), true).unwrap();
        assert_eq!(log.unanswered().next(), None);
        log.sent(at(50), 5, 100, Kind::InFlight);
        assert_eq!(log.unanswered().next(), Some(at(50)));
    }

    proptest! {
        /// Near the last number of a security association and anywhere else, whatever is sent, skipped and reported: bytes under
        /// way are those that were sent and not acknowledged or lost, and memory is of what there is.
        #[test]
        fn books_are_kept_to_the_last_number(
            below in 0u32..60,
            steps in prop::collection::vec((0u8..4, 0u32..60, 0u32..60, 0u64..40), 1..120),
        ) {
            let mut log = SentPackets::<()>::new(at(0));
            let mut number = u32::MAX - below;
            let (mut sent, mut settled, mut now) = (0u64, 0u64, 0);
            for (what, a, b, pause) in steps {
                now += pause;
                match what {
                    0 | 1 if number < u32::MAX => {
                        number += 1;
                        let packet = crate::packet::datagram((), None, 100);
                        log.sent(at(now), number, 100, Kind::Retransmittable(packet));
                        sent += 100;
                    }
                    2 if number < u32::MAX && a < 10 => {
                        number += 1;
                        log.skipped(at(now), number);
                    }
                    3 => {
                        let last = number - a.min(60);
                        let ranges = [(last - b, last), (last.saturating_sub(b + 4), last - b - 2)];
                        if let Ok(outcome) = log.on_report(at(now), &report(&ranges, 1), true) {
                            settled += outcome.acked + 100 * u64::from(outcome.lost);
                            prop_assert_eq!(outcome.retransmit.len() as u32, outcome.lost);
                        }
                    }
                    _ => {
                        let outcome = log.handle_timeout(at(now));
                        settled += 100 * u64::from(outcome.lost);
                        prop_assert!(log.poll_timeout().is_none_or(|due| due > at(now)));
                    }
                }
                prop_assert_eq!(log.in_flight() as u64, sent - settled);
                let packets = ((sent - settled) / 100) as usize;
                prop_assert_eq!(log.kept(), packets * (100 + size_of::<Option<QueuedPacket<()>>>()));
            }
        }
    }
}

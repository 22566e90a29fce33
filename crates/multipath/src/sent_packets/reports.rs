//! Takes the peer's reports of one path: what has arrived, round-trip times, delivery rates.

use super::{AckOutcome, InvalidReport, Record, Sent, SentPackets, State};
use crate::report::Report;
use clock::{Duration, Instant};

/// Delivery rates are the greatest of so many round-trip times.
const RATE_ROUNDS: u64 = 5;
/// ... but of no longer than this, or of so many of the least round-trip time: one that a queue makes long tells nothing of how long
/// a rate holds.
const RATE_TIME: Duration = Duration::from_secs(1);
/// The longest round-trip time that a peer's own measurement is believed: it decides how long packets wait here.
const BELIEVED: Duration = Duration::from_millis(800);

impl<P> SentPackets<P> {
    /// Takes the peer's report of this path; `on_own_path` if it came back on this path, so that its round trip is the path's.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        report: &Report,
        on_own_path: bool,
    ) -> Result<AckOutcome<P>, InvalidReport> {
        self.check(now, report)?;
        let highest = u64::from(report.highest);
        let sent_at = self.sent_at(highest);
        let mut outcome = AckOutcome { flight: self.in_flight as u64, ..AckOutcome::default() };
        let previous = self.highest;
        if previous.is_none_or(|(before, _)| highest > before) {
            if let Some(at) = sent_at {
                self.highest = Some((highest, at));
                self.lateness.passed(now, highest);
            }
            // No more can have been marked than have arrived.
            outcome.ce = report.ce.saturating_sub(self.ce).min(report.packets.saturating_sub(self.packets_reported));
            self.counts.ce += u64::from(outcome.ce);
            (self.ce, self.packets_reported) = (report.ce, report.packets);
            self.remote_rtt = report.rtt.min(BELIEVED);
        }
        if on_own_path {
            self.time(now, report, sent_at, &mut outcome);
        }
        let newest = self.acknowledge(now, report, previous, &mut outcome);
        if let Some(Sent { at, delivered: (delivered, delivered_at), first_at, is_beginning, .. }) = newest {
            // A report on another path is late; the packets in it had arrived before.
            let reported_at = self.progress_at.max(now - report.delay);
            // Reports on other paths are seldom, and the only ones while this one dies.
            let gap = if on_own_path { reported_at - self.progress_at } else { Duration::ZERO };
            self.gap = gap.max(self.gap - self.gap / 8);
            (self.progress_at, self.reported_at) = (reported_at, reported_at);
            self.delivered_at = now;
            let taken = now - at;
            self.ack_delay = Some(self.ack_delay.map_or(taken, |before| (before * 7 + taken) / 8));
            self.first_at = at;
            // draft-cheng-iccrg-delivery-rate-estimation: the slower of sending and acknowledging.
            let interval = (now - delivered_at).max(at - first_at);
            self.sample_rate(now, self.delivered - delivered, interval, is_beginning);
            if let Some(rate) = self.fallen(now, outcome.acked, outcome.rtt) {
                (self.rate, self.full_rate) = ((rate, 0, now), (rate, 0, now));
            }
        }
        self.detect(now, &mut outcome);
        self.prune();
        outcome.upto = self.offset + self.open;
        Ok(outcome)
    }

    /// Whether a report says what can be.
    fn check(&self, now: Instant, report: &Report) -> Result<(), InvalidReport> {
        let highest = u64::from(report.highest);
        // RFC 9002 §2's "acknowledged what was never sent" is an attack or a fault, on an authentic channel too.
        if highest >= self.next() || highest == 0 || report.packets > report.highest {
            return Err(InvalidReport::Impossible);
        }
        // An answer before the question, or a time from the future.
        if self.sent_at(highest).is_some_and(|at| report.delay > now - at) {
            return Err(InvalidReport::Impossible);
        }
        let is_invented = |first: u64, last: u64| {
            let at = self.skipped.partition_point(|skipped| *skipped < first);
            self.skipped.get(at).is_some_and(|skipped| *skipped <= last)
        };
        let mut ranges = report.ranges.iter();
        if is_invented(highest, highest) || ranges.any(|(first, last)| is_invented((*first).into(), (*last).into())) {
            return Err(InvalidReport::Invented);
        }
        Ok(())
    }

    /// Takes the round-trip time of a report. A report that comes back on a slow path has nothing else that is new where one
    /// on a fast path came before it.
    fn time(&mut self, now: Instant, report: &Report, sent_at: Option<Instant>, outcome: &mut AckOutcome<P>) {
        let Some(at) = sent_at.filter(|at| u64::from(report.highest) > self.timed && *at >= self.slept_at) else {
            return;
        };
        self.timed = report.highest.into();
        let rtt = (now - at).saturating_sub(report.delay);
        if !rtt.is_zero() {
            let before = self.rtt.latest().unwrap_or(rtt);
            self.jitter = (self.jitter * 7 + (rtt.max(before) - rtt.min(before))) / 8;
            self.rtt.sample(rtt);
            outcome.rtt = Some(rtt);
        }
    }

    /// Takes the ranges of a report, and finds the packet that was sent last of what it acknowledges for the first time. What was settled
    /// before is passed over, so that a report costs what it brings: a peer may repeat itself.
    fn acknowledge(
        &mut self,
        now: Instant,
        report: &Report,
        previous: Option<(u64, Instant)>,
        outcome: &mut AckOutcome<P>,
    ) -> Option<Sent> {
        let mut newest = None;
        for (first, last) in &report.ranges {
            let (first, last) = (u64::from(*first).max(self.base()), u64::from(*last).min(self.next() - 1));
            if first > last {
                continue;
            }
            let late: Vec<u64> = self.lost.range(first..=last).map(|(number, _)| *number).collect();
            for sequence in late.into_iter().chain(first.max(self.open)..=last) {
                self.arrived(now, sequence, previous, outcome, &mut newest);
            }
        }
        newest
    }

    /// The packet of this number has arrived.
    fn arrived(
        &mut self,
        now: Instant,
        sequence: u64,
        previous: Option<(u64, Instant)>,
        outcome: &mut AckOutcome<P>,
        newest: &mut Option<Sent>,
    ) {
        let record = sequence.checked_sub(self.open).and_then(|at| self.packets.get_mut(at as usize));
        let packet = match self.lost.remove(&sequence) {
            Some(lost) => {
                if let Some(record) = record {
                    record.state = State::Delivered;
                }
                if lost.kind != Record::Uncounted {
                    outcome.spurious += 1;
                    self.counts.spurious += 1;
                }
                lost
            }
            None => {
                let Some(record) = record.filter(|record| record.state == State::InFlight) else { return };
                record.state = State::Delivered;
                if record.kind != Record::Uncounted {
                    self.in_flight -= record.wire as usize;
                    outcome.acked += u64::from(record.wire);
                    outcome.packets += 1;
                }
                if let Record::Retransmittable(place) = record.kind {
                    record.kind = Record::InFlight;
                    self.kept.take(place);
                }
                record.clone()
            }
        };
        let counts = packet.kind != Record::Uncounted;
        self.counts.delivered += 1;
        self.lateness.came(now);
        if let Some((_, highest_at)) = previous.filter(|(highest, _)| sequence < *highest) {
            self.counts.reordered += 1;
            outcome.reordered += 1;
            self.lateness.came_late(now, sequence, highest_at.saturating_since(packet.at));
        }
        if counts {
            self.delivered += u64::from(packet.wire);
            if newest.as_ref().is_none_or(|newest| packet.at >= newest.at) {
                *newest = Some(packet);
            }
        }
    }

    fn sample_rate(&mut self, now: Instant, bytes: u64, interval: Duration, is_beginning: bool) {
        let srtt = self.round_trip().max(Duration::from_millis(1));
        // Shorter than a quarter of a round trip is a burst of reports, not a rate.
        let is_rate = interval >= srtt / 4 && !interval.is_zero();
        let rate = if is_rate { (bytes as f64 * 8.0 / interval.as_secs_f64()) as u64 } else { 0 };
        let least = self.rtt.min().unwrap_or(srtt);
        let period = (srtt * RATE_ROUNDS).min(RATE_TIME.max(least * RATE_ROUNDS));
        let is_full = self.waits && bytes >= self.filled && !is_beginning;
        let full = Some(&mut self.full_rate).filter(|_| is_full);
        for known in [Some(&mut self.rate), full].into_iter().flatten() {
            if now - known.2 > period {
                *known = (0, known.0, now);
            }
            known.0 = known.0.max(rate);
        }
    }
}

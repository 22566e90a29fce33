//! What a path has received, as its sender wants to know it, and when it is time to say so.

use crate::report::{RANGES, Report};
use crate::reporter::Asks;
use clock::{Duration, Instant};

/// A report follows a packet after this part of a round-trip time, and [`LATEST`] at most.
const PART: u64 = 8;
/// What asks for a report later, as acknowledgments do, has it after so long: they open no window, and what is said of each would take more
/// of a path than it is worth.
pub(crate) const LATEST: Duration = Duration::from_millis(10);
/// From the second full packet on a report follows at once, as in TCP (RFC 5681 §4.2) and QUIC (RFC 9000 §13.2.2), but for [`APART`].
const SECOND: usize = 2_000;
/// Such reports are [`PART`] of a round trip apart, within these bounds. Rarer ones open a window in leaps: what then leaves together finds
/// the places in a full queue that its own flow has just left, loses less than others there, and takes more than its share; and a queue
/// that is shorter than a leap overflows.
const APART: (Duration, Duration) = (Duration::from_micros(250), Duration::from_millis(2));
/// After a gap the report follows at once, but for this: gaps come in bursts.
const AFTER_GAP: Duration = Duration::from_millis(1);
/// Interval at which a path's last report is repeated on the other paths, since its own way back may be broken. The copy is
/// never newer, or the other paths' reports would be more acknowledgments to this one, and a sender of two paths would take
/// more on each from a TCP than one that has only this.
pub(crate) const ELSEWHERE: Duration = Duration::from_millis(20);
/// The same on a path that is so much nearer that the copy comes first: a loss is repaired that much earlier.
const NEARER: Duration = Duration::from_millis(5);

/// How long a range that does not change is reported: the sender skips numbers, so there are always old ones, and tens of
/// reports have had it by then.
const REPORTED_FOR: Duration = Duration::from_secs(1);
/// Ranges that are kept: where packets overtake each other there are as many as packets come in the time by which delays differ.
const KEPT: usize = 256;

/// Sequence numbers received without a gap.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    last: u32,
    /// When the last of them came.
    at: Instant,
}

/// The receiver's side of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// From the highest down.
    ranges: Vec<Range>,
    highest_at: Instant,
    packets: u32,
    bytes: u32,
    ce: u32,
    due: Option<Instant>,
    /// Bytes that came since the last report and ask for one.
    unreported: usize,
    reported_at: Option<Instant>,
    /// The last report that was not repeated on another path, and when the highest number in it had arrived.
    last_report: Option<(Report, Instant)>,
    elsewhere_at: Instant,
}

impl Received {
    /// An authentic packet arrived, `bytes` with its outer headers. Reports themselves are noted but ask for none.
    pub(crate) fn packet(&mut self, now: Instant, sequence: u32, bytes: usize, ce: bool) -> Gap {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes as u32);
        self.ce = self.ce.wrapping_add(u32::from(ce));
        let before = self.highest();
        if sequence > before {
            self.highest_at = now;
        }
        self.note(now, sequence);
        Gap(sequence > before.saturating_add(1) || sequence < before)
    }

    /// A packet of so many bytes asks for a report, soon if there is a gap before it.
    pub(crate) fn ask(&mut self, now: Instant, bytes: usize, asks: Asks, gap: Gap, srtt: Option<Duration>) {
        let part = srtt.map_or(APART.1, |srtt| srtt / PART);
        let apart = part.clamp(APART.0, APART.1);
        let usual = match asks {
            Asks::Never => return,
            Asks::Later => LATEST,
            Asks::Soon => {
                self.unreported += bytes;
                part.clamp(APART.0, LATEST)
            }
        };
        let after = |pause| self.reported_at.map_or(now, |at| (at + pause).max(now));
        let at = match gap {
            Gap(true) => after(apart.min(AFTER_GAP)),
            Gap(false) if self.unreported >= SECOND => after(apart),
            Gap(false) => now + usual,
        };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// When something new came on this path.
    pub(crate) fn heard_at(&self) -> Instant {
        self.highest_at
    }

    /// When the next report about this path is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// A report is due at once: it carries the reports of a path that cannot send its own any more.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// The report on this path itself.
    pub(crate) fn take_report(&mut self, now: Instant, rtt: Option<Duration>) -> Report {
        self.due = None;
        self.unreported = 0;
        self.reported_at = Some(now);
        let report = self.report(now, rtt);
        self.last_report = Some((report.clone(), self.highest_at));
        report
    }

    /// The last report, for another path, which may be much nearer, if it is time for that.
    pub(crate) fn take_repeated(&mut self, now: Instant, is_near: bool) -> Option<Report> {
        let pause = if is_near { NEARER } else { ELSEWHERE };
        if now - self.elsewhere_at < pause {
            return None;
        }
        let (report, highest_at) = self.last_report.take()?;
        self.elsewhere_at = now;
        Some(Report { delay: now - highest_at, ..report })
    }

    fn highest(&self) -> u32 {
        self.ranges.first().map_or(0, |range| range.last)
    }

    fn report(&mut self, now: Instant, rtt: Option<Duration>) -> Report {
        let highest = self.highest();
        self.ranges.retain(|range| now - range.at < REPORTED_FOR || range.last == highest);
        let since = self.reported_since();
        let reported = |range: &&Range| range.last == highest || range.at >= since;
        let recent = self.ranges.iter().filter(reported).take(RANGES);
        Report {
            highest,
            delay: now - self.highest_at,
            arrival: (self.highest_at.as_nanos() / 1000) as u32,
            packets: self.packets,
            bytes: self.bytes,
            ce: self.ce,
            rtt: rtt.unwrap_or_default(),
            ranges: recent.map(|range| (range.first, range.last)).collect(),
        }
    }

    /// Of more ranges than a report has room for, those go into it that have changed since then: earlier reports had the others.
    fn reported_since(&self) -> Instant {
        let Some(excess) = self.ranges.len().checked_sub(RANGES) else { return Instant::ZERO };
        let mut changes: Vec<Instant> = self.ranges.iter().skip(1).map(|range| range.at).collect();
        changes.sort_unstable();
        changes.get(excess).copied().unwrap_or(Instant::ZERO)
    }

    fn note(&mut self, now: Instant, sequence: u32) {
        // The place of the first range that begins at or below it; nearly always the very first.
        let at = self.ranges.iter().position(|range| range.first <= sequence).unwrap_or(self.ranges.len());
        if self.ranges.get(at).is_some_and(|range| sequence <= range.last) {
            return;
        }
        let follows = self.ranges.get(at).is_some_and(|range| range.last.checked_add(1) == Some(sequence));
        let precedes =
            |above: &usize| self.ranges.get(*above).is_some_and(|range| range.first.checked_sub(1) == Some(sequence));
        let above = at.checked_sub(1).filter(precedes);
        match (follows, above) {
            (true, Some(above)) => {
                let below = self.ranges.remove(at);
                if let Some(range) = self.ranges.get_mut(above) {
                    (range.first, range.at) = (below.first, now);
                }
            }
            (true, None) => {
                if let Some(range) = self.ranges.get_mut(at) {
                    (range.last, range.at) = (sequence, now);
                }
            }
            (false, Some(above)) => {
                if let Some(range) = self.ranges.get_mut(above) {
                    (range.first, range.at) = (sequence, now);
                }
            }
            (false, None) => {
                self.ranges.insert(at, Range { first: sequence, last: sequence, at: now });
                self.ranges.truncate(KEPT);
            }
        }
    }
}

/// Whether a packet came out of sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap(bool);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The ranges are those of the set of all numbers that came.
        #[test]
        fn the_ranges_are_the_numbers_received(numbers in prop::collection::vec(1u32..40, 1..60)) {
            let mut received = Received::default();
            numbers.iter().for_each(|number| { received.packet(Instant::ZERO, *number, 100, false); });
            let set: BTreeSet<u32> = numbers.iter().copied().collect();
            let told: BTreeSet<u32> = received.ranges.iter().flat_map(|range| range.first..=range.last).collect();
            prop_assert_eq!(told, set);
            prop_assert!(received.ranges.windows(2).all(|pair| pair[1].last + 1 < pair[0].first));
        }

        /// The numbers of a security association end at 2^32 - 1 (RFC 4303 §3.3.3), and that is no special one.
        #[test]
        fn the_last_numbers_are_as_good_as_any(below in prop::collection::vec(0u32..40, 1..60)) {
            let at_end: Vec<u32> = below.iter().map(|below| u32::MAX - below).collect();
            let mut received = Received::default();
            at_end.iter().for_each(|number| { received.packet(Instant::ZERO, *number, 100, false); });
            let set: BTreeSet<u32> = at_end.iter().copied().collect();
            let report = received.take_report(Instant::ZERO, None);
            prop_assert_eq!(report.ranges.iter().flat_map(|(first, last)| *first..=*last).collect::<BTreeSet<_>>(), set);
        }
    }

    /// Every other packet comes 60 ms late, so that there are more ranges than a report has room for: each number is in some
    /// report.
    #[test]
    fn what_fills_the_oldest_gaps_is_reported() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut arrivals: Vec<(u64, u32)> = (1..=300).map(|n| (u64::from(n) + 60 * u64::from(n % 2), n)).collect();
        arrivals.sort_unstable();
        let (mut received, mut reported) = (Received::default(), BTreeSet::new());
        for (ms, number) in arrivals {
            received.packet(at(ms), number, 1000, false);
            let report = received.take_report(at(ms), None);
            assert!(
                report.ranges.len() <= RANGES && report.ranges.first().is_some_and(|(_, last)| *last == report.highest)
            );
            assert!(report.ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
            reported.extend(report.ranges.iter().flat_map(|(first, last)| *first..=*last));
        }
        assert_eq!(reported, (1..=300).collect());
    }

    #[test]
    fn a_gap_and_a_second_packet_are_told_at_once_and_the_rest_in_an_eighth_of_a_round_trip() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut received = Received::default();
        let srtt = Some(Duration::from_millis(40));
        let gap = received.packet(at(10), 1, 1000, false);
        received.ask(at(10), 1000, Asks::Soon, gap, srtt);
        assert_eq!(received.poll_timeout(), Some(at(15)));
        let gap = received.packet(at(12), 3, 1000, false);
        received.ask(at(12), 1000, Asks::Soon, gap, srtt);
        assert_eq!(received.poll_timeout(), Some(at(12)));
        let report = received.take_report(at(12), None);
        assert_eq!((report.highest, report.ranges, report.packets, report.bytes), (3, vec![(3, 3), (1, 1)], 2, 2000));
        assert_eq!(received.poll_timeout(), None);
        // It is repeated on another path, once.
        received.packet(at(13), 5, 1000, false);
        let copy = received.take_repeated(at(20), false).unwrap();
        assert_eq!((copy.highest, copy.packets, copy.delay), (3, 2, Duration::from_millis(8)));
        assert_eq!(received.take_repeated(at(100), false), None);
        for (sequence, due) in [(6, 18), (7, 14)] {
            let gap = received.packet(at(13), sequence, 1000, false);
            received.ask(at(13), 1000, Asks::Soon, gap, srtt);
            assert_eq!(received.poll_timeout(), Some(at(due)));
        }
    }

    /// A bare acknowledgment is reported after 10 ms; a report never is.
    #[test]
    fn acknowledgments_are_reported_later_than_data() {
        for (rtt, asks, due) in [
            (16, Asks::Soon, Some(2)),
            (16, Asks::Later, Some(10)),
            (60, Asks::Later, Some(10)),
            (16, Asks::Never, None),
        ] {
            let at = |ms| Instant::ZERO + Duration::from_millis(ms);
            let mut received = Received::default();
            let gap = received.packet(at(0), 1, 80, false);
            received.ask(at(0), 80, asks, gap, Some(Duration::from_millis(rtt)));
            assert_eq!(received.poll_timeout(), due.map(at), "{rtt} {asks:?}");
        }
    }

    /// A packet comes each 100 us, 120 Mbit/s. The round trip is in ms, the time from one report to the next in us.
    #[test]
    fn reports_are_an_eighth_of_a_round_trip_apart() {
        let cases =
            [(Some(1), 300), (Some(4), 500), (Some(8), 1000), (Some(16), 2000), (Some(400), 2000), (None, 2000)];
        for (rtt, apart) in cases {
            let srtt = rtt.map(Duration::from_millis);
            let (mut received, mut reports) = (Received::default(), Vec::new());
            for number in 1..=1000 {
                let now = Instant::ZERO + Duration::from_micros(100) * u64::from(number);
                while let Some(due) = received.poll_timeout().filter(|due| *due < now) {
                    received.take_report(due, srtt);
                    reports.push(due);
                }
                let gap = received.packet(now, number, 1500, false);
                received.ask(now, 1500, Asks::Soon, gap, srtt);
            }
            let usual = (reports[reports.len() - 1] - reports[9]) / (reports.len() as u64 - 10);
            assert_eq!(usual.as_nanos().div_ceil(100_000) * 100, apart, "{rtt:?}");
        }
    }
}

//! What is on its way: each packet's fate, and on each path the transmissions in the order in which they went out.
//!
//! A path keeps its packets in order. So when one of its transmissions is answered, those that went out before it on the
//! same path, and were not, are missing, as soon as enough later ones are answered (M13, rule B).

use std::collections::{BTreeSet, VecDeque};

use clock::{Duration, Instant};
use recovery::BitRing;

/// One transmission of a packet on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) position: u64,
    pub(crate) sent: Instant,
    /// Its number among those of its path.
    pub(crate) order: u64,
}

/// What is known of a packet that is not acknowledged with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    /// Acknowledged selectively.
    Arrived,
    /// Deemed lost, to be sent again.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    fate: Fate,
    /// The path of the first transmission.
    first: u8,
    /// Of the latest transmission.
    path: u8,
    order: u64,
    sent: Instant,
    /// It is not the first.
    again: bool,
}

#[derive(Clone, Debug, Default)]
struct Transit {
    /// Not passed by a later one of the path.
    line: VecDeque<Transmission>,
    /// Passed by so many.
    passed: Vec<(Transmission, u32)>,
    next_order: u64,
}

impl Record {
    fn acknowledged(&self, position: u64) -> Acknowledged {
        Acknowledged { position, path: self.path.into(), order: self.order, again: self.again }
    }
}

/// All packets from the first unacknowledged one on.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    una: u64,
    records: VecDeque<Record>,
    paths: Vec<Transit>,
    lost: BTreeSet<u64>,
    /// Those of the records that were acknowledged selectively: acknowledgments repeat what earlier ones have told.
    arrived: BitRing,
}

/// A packet newly acknowledged: where and as what number of its path it was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) position: u64,
    pub(crate) path: usize,
    pub(crate) order: u64,
    /// It was sent more than once: which of the transmissions arrived, this does not tell.
    pub(crate) again: bool,
}

impl Outstanding {
    pub(crate) fn new(paths: usize) -> Self {
        Self {
            una: 0,
            records: VecDeque::new(),
            paths: vec![Transit::default(); paths.max(1)],
            lost: BTreeSet::new(),
            arrived: BitRing::default(),
        }
    }

    /// The first packet that is not acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// One beyond the last packet that was ever sent.
    #[inline]
    pub(crate) fn max(&self) -> u64 {
        self.una + self.records.len() as u64
    }

    /// Transmissions under way on a path, as far as is known.
    #[inline]
    pub(crate) fn in_flight(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |transit| (transit.line.len() + transit.passed.len()) as u64)
    }

    /// The number that the next transmission on a path gets.
    pub(crate) fn next_order(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |transit| transit.next_order)
    }

    /// The first packet deemed lost.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// Whether a packet is deemed lost and waits to be sent again.
    pub(crate) fn is_lost(&self, position: u64) -> bool {
        self.lost.contains(&position)
    }

    /// Where, and as what number of its path, a packet was sent last.
    pub(crate) fn last_sent(&self, position: u64) -> Option<(usize, u64)> {
        self.record(position).map(|record| (usize::from(record.path), record.order))
    }

    /// The path that failed if a packet is still missing at `now`, the latest transmission being overdue after `patience`: the
    /// path of that one, but if it is under way still, the one that the packet was sent on first.
    pub(crate) fn failed(&self, position: u64, now: Instant, patience: Duration) -> Option<usize> {
        let record = self.record(position)?;
        let overdue = now.saturating_since(record.sent) >= patience;
        Some(usize::from(if overdue { record.path } else { record.first }))
    }

    #[inline]
    fn record(&self, position: u64) -> Option<&Record> {
        self.records.get(usize::try_from(position.checked_sub(self.una)?).ok()?)
    }

    /// `position` departs on `path`: the next new packet, or one deemed lost.
    pub(crate) fn send(&mut self, position: u64, path: usize, now: Instant) {
        let Some(transit) = self.paths.get_mut(path) else { return };
        let order = transit.next_order;
        transit.next_order += 1;
        transit.line.push_back(Transmission { position, sent: now, order });
        let path = path as u8;
        let record = Record { fate: Fate::InFlight, first: path, path, order, sent: now, again: false };
        match self.records.get_mut((position - self.una) as usize) {
            Some(old) => {
                *old = Record { again: true, first: old.first, ..record };
                self.lost.remove(&position);
            }
            None => {
                self.records.push_back(record);
                self.arrived.reserve(self.una, self.max());
            }
        }
    }

    /// An acknowledgment came back on `path`, of a packet sent at `sent`, that is `position` if it says so and the first
    /// else: that transmission has arrived. What it acknowledges says nothing of which: acknowledgments on two paths may
    /// cross, so that one that was a duplicate when it was sent is the first to tell of more.
    pub(crate) fn answer(&mut self, path: usize, sent: Instant, position: Option<u64>) {
        let matches = |transmission: &Transmission| {
            transmission.sent == sent && position.is_none_or(|position| position == transmission.position)
        };
        let Some(transit) = self.paths.get(path) else { return };
        let first = transit.line.partition_point(|transmission| transmission.sent < sent);
        let line = transit.line.range(first..).take_while(|transmission| transmission.sent == sent);
        let mut all = transit.passed.iter().map(|(transmission, _)| transmission).chain(line);
        if let Some(order) = all.find(|transmission| matches(transmission)).map(|transmission| transmission.order) {
            self.arrived(path, order, true);
        }
    }

    /// Transmission `order` of `path` has arrived: if it is `telling`, it has passed those that went out before it and
    /// have not. Its acknowledgment may be the first to come back, or that of a later packet on a faster path.
    pub(crate) fn arrived(&mut self, path: usize, order: u64, telling: bool) {
        let Some(transit) = self.paths.get_mut(path) else { return };
        if let Some(index) = transit.passed.iter().position(|(transmission, _)| transmission.order == order) {
            transit.passed.remove(index);
        } else {
            let index = transit.line.partition_point(|transmission| transmission.order < order);
            if transit.line.get(index).is_none_or(|transmission| transmission.order != order) {
                return;
            }
            if !telling {
                transit.line.remove(index);
                return;
            }
            let (una, records) = (self.una, &self.records);
            let before = transit.line.drain(..=index).filter(|transmission| transmission.order < order);
            let missing = before.filter(|transmission| is_open(una, records, transmission.position));
            transit.passed.extend(missing.map(|transmission| (transmission, 0)));
        }
        if telling {
            let earlier = transit.passed.iter_mut().filter(|(transmission, _)| transmission.order < order);
            earlier.for_each(|(_, by)| *by += 1);
        }
    }

    /// Everything below `ack` is acknowledged; `newly` is told of what was not before.
    pub(crate) fn advance(&mut self, ack: u64, newly: &mut Vec<Acknowledged>) {
        while self.una < ack {
            let Some(record) = self.records.pop_front() else { break };
            if record.fate == Fate::Arrived {
                self.arrived.clear(self.una);
            } else {
                newly.push(record.acknowledged(self.una));
            }
            if record.fate == Fate::Lost {
                self.lost.remove(&self.una);
            }
            self.una += 1;
        }
    }

    /// The packets from `left` to before `right` have arrived.
    pub(crate) fn sack(&mut self, left: u64, right: u64, newly: &mut Vec<Acknowledged>) {
        let (mut from, right) = (left.max(self.una), right.min(self.max()));
        while from < right
            && let Some(position) = self.arrived.first_absent(from, right)
        {
            from = position + 1;
            self.arrived.set(position);
            let Some(record) = self.records.get_mut((position - self.una) as usize) else { break };
            if record.fate == Fate::Lost {
                self.lost.remove(&position);
            }
            record.fate = Fate::Arrived;
            newly.push(record.acknowledged(position));
        }
    }

    /// After acknowledgments: what has arrived is not under way.
    pub(crate) fn settle(&mut self) {
        let (una, records) = (self.una, &self.records);
        for transit in &mut self.paths {
            while transit.line.front().is_some_and(|first| !is_open(una, records, first.position)) {
                transit.line.pop_front();
            }
            if !transit.passed.is_empty() {
                transit.passed.retain(|(transmission, _)| is_open(una, records, transmission.position));
            }
        }
    }

    /// A packet on `path` that was passed by `threshold` later ones, if any.
    pub(crate) fn passed_by(&self, path: usize, threshold: u32) -> Option<Transmission> {
        let transit = self.paths.get(path)?;
        transit.passed.iter().find(|(_, by)| *by >= threshold).map(|(transmission, _)| *transmission)
    }

    /// The packet's latest transmission is deemed lost. False if it was not under way.
    pub(crate) fn lose(&mut self, position: u64) -> bool {
        let Some(index) = position.checked_sub(self.una) else { return false };
        let Some(record) = self.records.get_mut(index as usize) else { return false };
        if record.fate != Fate::InFlight {
            return false;
        }
        record.fate = Fate::Lost;
        self.lost.insert(position);
        if let Some(transit) = self.paths.get_mut(usize::from(record.path)) {
            transit.passed.retain(|(transmission, _)| transmission.order != record.order);
            let at = transit.line.partition_point(|transmission| transmission.order < record.order);
            if transit.line.get(at).is_some_and(|transmission| transmission.order == record.order) {
                transit.line.remove(at);
            }
        }
        true
    }

    /// A transmission that was passed is given up; of a packet that was not sent again since, that is its loss.
    pub(crate) fn give_up(&mut self, path: usize, transmission: &Transmission) -> bool {
        if self.last_sent(transmission.position) == Some((path, transmission.order)) {
            return self.lose(transmission.position);
        }
        if let Some(transit) = self.paths.get_mut(path) {
            transit.passed.retain(|(passed, _)| passed.order != transmission.order);
        }
        false
    }

    /// All that was sent last on `path`, and has not arrived, is deemed lost.
    pub(crate) fn lose_path(&mut self, path: usize) {
        if let Some(transit) = self.paths.get_mut(path) {
            transit.line.clear();
            transit.passed.clear();
        }
        for (position, record) in (self.una..).zip(&mut self.records) {
            if usize::from(record.path) == path && record.fate == Fate::InFlight {
                record.fate = Fate::Lost;
                self.lost.insert(position);
            }
        }
    }
}

/// Whether a packet is neither acknowledged with all before it nor selectively.
#[inline]
fn is_open(una: u64, records: &VecDeque<Record>, position: u64) -> bool {
    position.checked_sub(una).and_then(|index| records.get(index as usize)).is_some_and(|r| r.fate != Fate::Arrived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Acknowledgments repeat what others have told: each packet is newly acknowledged once. The oracle is a set.
        #[test]
        fn each_packet_is_acknowledged_once(
            sent in 1u64..300,
            told in prop::collection::vec((0u64..320, 0u64..90, 0u64..40), 1..40),
        ) {
            let mut outstanding = Outstanding::new(1);
            (0..sent).for_each(|position| outstanding.send(position, 0, Instant::ZERO));
            let (mut newly, mut all, mut una) = (Vec::new(), BTreeSet::new(), 0);
            for (left, length, advance) in told {
                una = (una + advance).min(sent);
                outstanding.advance(una, &mut newly);
                outstanding.sack(left, left + length, &mut newly);
                all.extend((0..una).chain(left..(left + length).min(sent)));
            }
            let mut positions: Vec<u64> = newly.iter().map(|acknowledged| acknowledged.position).collect();
            positions.sort_unstable();
            prop_assert_eq!(positions, all.into_iter().collect::<Vec<_>>());
        }
    }

    /// Path 0 is slow: its packets 0 to 4, of which 1 is lost, are acknowledged on path 1, by what follows them there.
    #[test]
    fn what_is_acknowledged_behind_another_path_has_passed_what_is_missing() {
        let at = |us: u64| Instant::from_nanos(us * 1000);
        let mut outstanding = Outstanding::new(2);
        for position in 0..6 {
            outstanding.send(position, usize::from(position == 5), at(position));
        }
        let mut newly = Vec::new();
        outstanding.advance(1, &mut newly);
        outstanding.sack(2, 6, &mut newly);
        for acknowledged in &newly {
            outstanding.arrived(acknowledged.path, acknowledged.order, !acknowledged.again);
        }
        outstanding.settle();
        assert_eq!(outstanding.passed_by(0, 3).map(|missing| missing.position), Some(1));
        assert_eq!(outstanding.passed_by(0, 4), None);
        // Their own answers come later and count no more.
        outstanding.answer(0, at(4), Some(4));
        assert_eq!(outstanding.passed_by(0, 4), None);
        assert_eq!((outstanding.in_flight(0), outstanding.in_flight(1)), (1, 0));
    }

    #[test]
    fn what_was_sent_again_only_now_failed_where_it_was_sent_first() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut outstanding = Outstanding::new(2);
        outstanding.send(0, 1, at(0));
        let patience = Duration::from_millis(200);
        assert_eq!(outstanding.failed(0, at(200), patience), Some(1));
        assert!(outstanding.lose(0));
        outstanding.send(0, 0, at(150));
        assert_eq!(outstanding.failed(0, at(349), patience), Some(1));
        assert_eq!(outstanding.failed(0, at(350), patience), Some(0));
        assert_eq!(outstanding.failed(1, at(350), patience), None);
    }

    #[test]
    fn what_was_sent_twice_tells_of_no_loss() {
        let mut outstanding = Outstanding::new(2);
        let now = Instant::ZERO;
        (0..3).for_each(|position| outstanding.send(position, 0, now));
        assert!(outstanding.lose(0));
        outstanding.send(0, 1, now);
        outstanding.send(3, 1, now);
        let mut newly = Vec::new();
        outstanding.advance(1, &mut newly);
        assert!(newly.iter().all(|acknowledged| acknowledged.again && acknowledged.path == 1));
        for acknowledged in &newly {
            outstanding.arrived(acknowledged.path, acknowledged.order, !acknowledged.again);
        }
        assert!(outstanding.passed_by(0, 1).is_none() && outstanding.passed_by(1, 1).is_none());
        assert_eq!((outstanding.in_flight(0), outstanding.in_flight(1)), (2, 1));
    }
}

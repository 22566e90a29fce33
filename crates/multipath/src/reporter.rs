//! The receiver's side of all paths: which report leaves when, and on which path.

use crate::received::{ELSEWHERE, Received};
use crate::report::Report;
use clock::{Duration, Instant};
use scheduler::PathId;
use std::collections::BTreeMap;

/// A path on which reports may leave, or that they are about.
#[derive(Clone, Copy, Debug)]
pub struct ReportingPath {
    /// The path.
    pub id: PathId,
    /// The peer is known to receive there: reports may leave on it.
    pub is_verified: bool,
    /// Its round-trip time as this host measures it.
    pub srtt: Option<Duration>,
    /// The least of them: without what waits in queues.
    pub least: Option<Duration>,
}

impl ReportingPath {
    /// Whether a report of the other path comes earlier on this one by far, whatever waits in queues.
    fn is_nearer_than(&self, other: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (self.least, other.least) else { return false };
        theirs >= ours * 2 && theirs - ours > ELSEWHERE
    }
}

/// What has come on each path of an association.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    received: BTreeMap<PathId, Received>,
}

impl Reporter {
    /// An authentic packet came on a path, of so many bytes with its outer headers. Reports themselves ask for none
    /// ([`Asks::Never`]): one of them would be followed by another for ever.
    pub fn on_packet(&mut self, now: Instant, id: PathId, packet: ReceivedPacket, srtt: Option<Duration>) {
        let ReceivedPacket { number, wire, is_marked, asks } = packet;
        let received = self.received.entry(id).or_default();
        let gap = received.packet(now, number, wire, is_marked);
        received.ask(now, wire, asks, gap, srtt);
    }

    /// A path is gone.
    pub fn forget_path(&mut self, id: PathId) {
        self.received.remove(&id);
    }

    /// When something new came on a path.
    pub fn heard_at(&self, id: PathId) -> Instant {
        self.received.get(&id).map_or(Instant::ZERO, Received::heard_at)
    }

    /// When a report about a path is due.
    pub fn poll_timeout(&self, id: PathId) -> Option<Instant> {
        self.received.get(&id)?.poll_timeout()
    }

    /// The next report that is due: the path that it leaves on, and the records in it, that path's first. `retired` are paths that
    /// others have taken over from; what came on them is reported on another. Asked until there is none.
    pub fn poll_report(
        &mut self,
        now: Instant,
        active: &[ReportingPath],
        retired: &[PathId],
    ) -> Option<(PathId, Vec<(PathId, Report)>)> {
        let is_due = |received: &Received| received.poll_timeout().is_some_and(|due| due <= now);
        let old_is_due = retired.iter().filter_map(|id| self.received.get(id)).any(is_due);
        let mut able = active.iter().filter(|path| path.is_verified);
        if old_is_due && let Some(path) = able.clone().next() {
            self.received.entry(path.id).or_default().hurry(now);
        }
        let on = able.find(|path| self.received.get(&path.id).is_some_and(is_due))?;
        let mut reports = Vec::with_capacity(active.len());
        reports.push((on.id, self.received.get_mut(&on.id)?.take_report(now, on.srtt)));
        for id in retired {
            if let Some(old) = self.received.get_mut(id).filter(|old| old.poll_timeout().is_some()) {
                reports.push((*id, old.take_report(now, None)));
            }
        }
        for other in active.iter().filter(|other| other.id != on.id) {
            let is_near = on.is_nearer_than(other);
            let report = self.received.get_mut(&other.id).and_then(|received| received.take_repeated(now, is_near));
            reports.extend(report.map(|report| (other.id, report)));
        }
        Some((on.id, reports))
    }
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket {
    /// Its number on its path.
    pub number: u32,
    /// Bytes of the whole outer IP packet.
    pub wire: usize,
    /// Its outer header says that congestion was experienced (RFC 3168).
    pub is_marked: bool,
    /// When it wants to be reported.
    pub asks: Asks,
}

/// When a packet wants to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Its report may open a window, or tell of a loss.
    Soon,
    /// It is a bare acknowledgment of TCP or QUIC: a report tells its sender that the path is there, and no more.
    Later,
    /// It is a report itself.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn packet(number: u32) -> ReceivedPacket {
        ReceivedPacket { number, wire: 1500, is_marked: false, asks: Asks::Soon }
    }

    fn path(id: u16) -> ReportingPath {
        ReportingPath { id: PathId(id), is_verified: true, srtt: None, least: None }
    }

    /// What came on a path twice as far away is reported on the near one as soon as that has a report 5 ms after the last copy, and 20 ms
    /// where it is less far.
    #[test]
    fn a_near_path_tells_sooner_of_a_distant_one() {
        for (near, distant, apart) in [(15, 20, 20), (9, 29, 20), (50, 90, 20), (15, 60, 5), (50, 120, 5)] {
            let mut reporter = Reporter::default();
            let with = |id, rtt| ReportingPath { least: Some(Duration::from_millis(rtt)), ..path(id) };
            let (near, distant) = (with(1, near), with(2, distant));
            let mut copies = Vec::new();
            for ms in 100..200 {
                [(near, 2 * ms), (distant, ms)].iter().for_each(|(path, number)| {
                    reporter.on_packet(at(ms), path.id, packet(*number as u32), path.srtt);
                });
                while let Some((on, reports)) = reporter.poll_report(at(ms), &[near, distant], &[]) {
                    copies.extend((on == near.id && reports.len() == 2).then_some(ms));
                }
            }
            let mut pauses: Vec<u64> = copies.windows(2).map(|pair| pair[1] - pair[0]).collect();
            pauses.sort_unstable();
            let usual = pauses[pauses.len() / 2];
            assert!((apart..apart + 4).contains(&usual), "{near:?} {distant:?}: {pauses:?}");
        }
    }

    /// What was reported on a path is repeated on another once; what came on an old path leaves on a new one at once.
    #[test]
    fn a_report_leaves_on_its_own_path_and_old_paths_borrow_one() {
        let mut reporter = Reporter::default();
        let active = [path(1), path(2)];
        [1, 2].into_iter().for_each(|number| reporter.on_packet(at(0), PathId(1), packet(number), None));
        assert_eq!(reporter.poll_timeout(PathId(1)), Some(at(0)));
        let (on, reports) = reporter.poll_report(at(0), &active, &[]).unwrap();
        assert_eq!((on, reports.len(), reports[0].1.ranges.as_slice()), (PathId(1), 1, &[(1, 2)][..]));
        assert!(reporter.poll_report(at(0), &active, &[]).is_none());
        reporter.on_packet(at(30), PathId(2), packet(1), None);
        let (on, reports) = reporter.poll_report(at(60), &active, &[]).unwrap();
        let of: Vec<PathId> = reports.iter().map(|(id, _)| *id).collect();
        assert_eq!((on, of), (PathId(2), vec![PathId(2), PathId(1)]));
        [1, 2].into_iter().for_each(|number| reporter.on_packet(at(70), PathId(7), packet(number), None));
        let (on, reports) = reporter.poll_report(at(70), &active, &[PathId(7)]).unwrap();
        assert!(reports.iter().any(|(id, report)| *id == PathId(7) && report.highest == 2));
        assert_eq!(on, PathId(1));
        assert!(reporter.poll_report(at(70), &active, &[PathId(7)]).is_none());
    }
}

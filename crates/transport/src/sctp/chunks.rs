//! The sender's memory of DATA chunks: where each was sent last, what has arrived, what is missing.
//!
//! TSNs of a path are kept apart in three lists, each ascending: first transmissions that nothing later has passed yet
//! (`fresh`), those that something passed (`holes`), and retransmissions (`again`). So a SACK costs what it tells of,
//! whatever the window.

use std::collections::{BTreeSet, VecDeque};

use clock::Instant;
use recovery::BitRing;

use super::rules::{News, missing_reports};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Under way.
    Outstanding,
    /// To be sent again.
    Lost,
    /// Arrived.
    Acked,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    sent: Instant,
    path: u8,
    state: State,
    /// Sent more than once.
    again: bool,
    /// RFC 9260 §7.2.4: a chunk is retransmitted fast at most once.
    fast: bool,
    missing: u8,
    /// The sender need not keep it.
    freed: bool,
}

/// What a SACK told of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathNews {
    /// Newly acknowledged chunks that were last sent on the path.
    pub(crate) chunks: u64,
    lowest: u64,
    highest: u64,
    /// When the last of these was sent.
    latest: Instant,
    /// Chunks outstanding on the path before.
    pub(crate) flight: u64,
    /// The path's first unacknowledged chunk was acknowledged.
    pub(crate) first: bool,
    /// Its first unacknowledged first transmission was acknowledged, or its first retransmission.
    pub(crate) either: bool,
    /// A chunk that was sent once and timed.
    pub(crate) timed: Option<Instant>,
}

impl PathNews {
    fn news(&self) -> Option<News> {
        (self.chunks > 0).then_some(News { lowest: self.lowest, highest: self.highest })
    }
}

#[derive(Clone, Debug, Default)]
struct OnPath {
    fresh: VecDeque<u64>,
    holes: VecDeque<u64>,
    again: VecDeque<u64>,
    outstanding: u64,
    /// Chunks in the sender's buffer that were last sent here.
    queued: u64,
    /// The highest TSN that has arrived of those last sent here.
    highest: u64,
    /// The chunk whose round trip is measured.
    timed: Option<u64>,
}

/// All chunks from the first unacknowledged one on.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    una: u64,
    chunks: VecDeque<Chunk>,
    acked: BitRing,
    lost: BTreeSet<u64>,
    paths: Vec<OnPath>,
    news: Vec<PathNews>,
    outstanding: u64,
    kept: u64,
}

/// How missing chunks are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detection {
    pub(crate) split: bool,
    pub(crate) dac: bool,
    pub(crate) packets: u8,
    pub(crate) threshold: u32,
}

impl Chunks {
    pub(crate) fn new(paths: usize) -> Self {
        Self {
            una: 1,
            chunks: VecDeque::new(),
            acked: BitRing::default(),
            lost: BTreeSet::new(),
            paths: vec![OnPath::default(); paths],
            news: vec![PathNews::default(); paths],
            outstanding: 0,
            kept: 0,
        }
    }

    /// The first TSN that is not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next new TSN.
    pub(crate) fn next(&self) -> u64 {
        self.una + self.chunks.len() as u64
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub(crate) fn outstanding_on(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |path| path.outstanding)
    }

    /// Chunks that may have to be sent again, so that the sender keeps them.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    pub(crate) fn queued_on(&self, path: usize) -> u64 {
        self.paths.get(path).map_or(0, |path| path.queued)
    }

    /// The first that is to be sent again.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    pub(crate) fn is_lost(&self, tsn: u64) -> bool {
        self.lost.contains(&tsn)
    }

    /// The path that a chunk was last sent on.
    pub(crate) fn path_of(&self, tsn: u64) -> usize {
        self.chunk(tsn).map_or(0, |chunk| usize::from(chunk.path))
    }

    fn chunk(&self, tsn: u64) -> Option<&Chunk> {
        self.chunks.get(usize::try_from(tsn.checked_sub(self.una)?).ok()?)
    }

    fn chunk_mut(&mut self, tsn: u64) -> Option<&mut Chunk> {
        self.chunks.get_mut(usize::try_from(tsn.checked_sub(self.una)?).ok()?)
    }

    /// A new chunk goes out on `path`; returns its TSN.
    pub(crate) fn send_new(&mut self, path: usize, now: Instant) -> u64 {
        let tsn = self.next();
        let sent = Chunk {
            sent: now,
            path: path as u8,
            state: State::Outstanding,
            again: false,
            fast: false,
            missing: 0,
            freed: false,
        };
        self.chunks.push_back(sent);
        self.acked.reserve(self.una, tsn + 1);
        self.outstanding += 1;
        self.kept += 1;
        if let Some(path) = self.paths.get_mut(path) {
            path.fresh.push_back(tsn);
            path.outstanding += 1;
            path.queued += 1;
            path.timed.get_or_insert(tsn);
        }
        tsn
    }

    /// A lost chunk goes out again, on `path`. Returns whether it is the first unacknowledged one there.
    pub(crate) fn send_again(&mut self, tsn: u64, path: usize, now: Instant) -> bool {
        if !self.lost.remove(&tsn) {
            return false;
        }
        let Some(chunk) = self.chunk_mut(tsn) else { return false };
        let before = usize::from(chunk.path);
        chunk.path = path as u8;
        chunk.state = State::Outstanding;
        chunk.sent = now;
        chunk.again = true;
        chunk.missing = 0;
        self.outstanding += 1;
        if let Some(state) = self.paths.get_mut(before) {
            state.queued -= 1;
            state.timed = state.timed.filter(|timed| *timed != tsn);
            for list in [&mut state.fresh, &mut state.holes, &mut state.again] {
                if let Ok(index) = list.binary_search(&tsn) {
                    list.remove(index);
                }
            }
        }
        self.tidy(before);
        let Some(path) = self.paths.get_mut(path) else { return false };
        path.queued += 1;
        path.outstanding += 1;
        let at = path.again.partition_point(|other| *other < tsn);
        path.again.insert(at, tsn);
        let first = [path.fresh.front(), path.holes.front(), path.again.front()].into_iter().flatten().min();
        first == Some(&tsn)
    }

    /// Before a SACK is taken in.
    pub(crate) fn begin(&mut self) {
        for (news, path) in self.news.iter_mut().zip(&self.paths) {
            *news = PathNews { flight: path.outstanding, lowest: u64::MAX, ..PathNews::default() };
        }
    }

    /// All before `cumulative` has arrived. Returns whether that is news.
    pub(crate) fn advance(&mut self, cumulative: u64) -> bool {
        let before = self.una;
        while self.una < cumulative {
            self.acknowledge(self.una, true);
            self.chunks.pop_front();
            self.acked.clear(self.una);
            self.una += 1;
        }
        self.una > before
    }

    /// `left..right` has arrived; `delivered` if the receiver cannot take it back.
    pub(crate) fn sack(&mut self, left: u64, right: u64, delivered: bool) {
        let right = right.min(self.next());
        let mut from = left.max(self.una);
        while from < right
            && let Some(tsn) = self.acked.first_absent(from, right)
        {
            self.acknowledge(tsn, delivered);
            from = tsn + 1;
        }
    }

    fn acknowledge(&mut self, tsn: u64, freed: bool) {
        let Some(chunk) = self.chunk_mut(tsn) else { return };
        let was = *chunk;
        chunk.state = State::Acked;
        chunk.freed |= freed;
        let index = usize::from(was.path);
        let (Some(path), Some(news)) = (self.paths.get_mut(index), self.news.get_mut(index)) else { return };
        if freed && !was.freed {
            path.queued -= 1;
            self.kept -= 1;
        }
        if was.state == State::Acked {
            return;
        }
        self.acked.set(tsn);
        if was.state == State::Outstanding {
            path.outstanding -= 1;
            self.outstanding -= 1;
        } else {
            self.lost.remove(&tsn);
        }
        path.highest = path.highest.max(tsn);
        news.chunks += 1;
        news.lowest = news.lowest.min(tsn);
        news.highest = news.highest.max(tsn);
        news.latest = news.latest.max(was.sent);
        if path.timed == Some(tsn) {
            path.timed = None;
            if !was.again {
                news.timed = Some(was.sent); // Karn: of one sent once only.
            }
        }
    }

    /// After a SACK: CUC. The lists of each path begin with what is unacknowledged, so its pseudo-cumulative
    /// acknowledgment advances when what a list began with has arrived.
    pub(crate) fn settle(&mut self) {
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get(index) else { continue };
            let arrived = |tsn: Option<&u64>| tsn.is_some_and(|tsn| !self.waits(*tsn));
            // What was passed comes before what was not.
            let (once, again) = (path.holes.front().or(path.fresh.front()), path.again.front());
            let first = arrived([once, again].into_iter().flatten().min());
            let either = arrived(once) || arrived(again);
            if let Some(news) = self.news.get_mut(index) {
                (news.first, news.either) = (first, either);
            }
            self.tidy(index);
        }
    }

    /// Removes what has arrived from the fronts of a path's lists.
    fn tidy(&mut self, index: usize) {
        let Self { una, chunks, paths, .. } = self;
        let Some(path) = paths.get_mut(index) else { return };
        for list in [&mut path.fresh, &mut path.holes, &mut path.again] {
            while list.front().is_some_and(|tsn| !waits(chunks, *una, *tsn)) {
                list.pop_front();
            }
        }
    }

    /// Whether a chunk has not arrived.
    fn waits(&self, tsn: u64) -> bool {
        waits(&self.chunks, self.una, tsn)
    }

    /// What the last SACK told of a path.
    pub(crate) fn news(&self, path: usize) -> PathNews {
        self.news.get(path).copied().unwrap_or_default()
    }

    /// The first unacknowledged TSN of a path, `next` if there is none; of first transmissions only, or of all.
    pub(crate) fn first_unacked(&self, path: usize, all: bool) -> u64 {
        let Some(path) = self.paths.get(path) else { return self.next() };
        let again = path.again.front().filter(|_| all);
        [path.fresh.front(), path.holes.front(), again].into_iter().flatten().min().copied().unwrap_or(self.next())
    }

    /// Counts the missing reports of the last SACK on `path`; what has enough of them is lost. `recovering`: the path
    /// recovers from a loss. Returns the first one lost.
    pub(crate) fn find_missing(&mut self, path: usize, recovering: bool, detection: &Detection) -> Option<u64> {
        let all = self
            .news
            .iter()
            .filter_map(PathNews::news)
            .reduce(|a, b| News { lowest: a.lowest.min(b.lowest), highest: a.highest.max(b.highest) });
        let only_path = self.news.iter().filter(|news| news.chunks > 0).count() == 1;
        let own = self.news(path);
        let latest = if detection.split { Some(own.latest) } else { self.news.iter().map(|news| news.latest).max() };
        let mut news = if detection.split { own.news() } else { all }?;
        // RFC 9260 §7.2.4: in fast recovery a SACK that advances reports all that it shows missing.
        if recovering && own.first {
            news.highest = news.highest.max(self.paths.get(path)?.highest);
        }
        let reports =
            |tsn| missing_reports(tsn, Some(news), only_path, detection.dac && detection.split, detection.packets);
        let state = self.paths.get_mut(path)?;
        let passes_nothing = state.fresh.front().is_none_or(|tsn| *tsn >= news.highest);
        if passes_nothing && state.holes.is_empty() && state.again.is_empty() {
            return None;
        }
        let mut fresh = std::mem::take(&mut state.fresh);
        let mut holes = std::mem::take(&mut state.holes);
        let again = std::mem::take(&mut state.again);
        while let Some(tsn) = fresh.front().copied().filter(|tsn| *tsn < news.highest) {
            fresh.pop_front();
            if self.waits(tsn) {
                holes.push_back(tsn);
            }
        }
        holes.retain(|tsn| self.waits(*tsn));
        let mut first = None;
        for tsn in holes.iter().copied() {
            if self.count(tsn, reports(tsn), detection.threshold) {
                first = first.or(Some(tsn));
            }
        }
        for tsn in again.iter().copied() {
            // What was sent before the retransmission tells nothing of it.
            let passed = self.chunk(tsn).is_some_and(|chunk| Some(chunk.sent) < latest);
            if passed && self.count(tsn, reports(tsn), detection.threshold) {
                first = first.min(Some(tsn)).or(Some(tsn));
            }
        }
        if let Some(state) = self.paths.get_mut(path) {
            (state.fresh, state.holes, state.again) = (fresh, holes, again);
        }
        first
    }

    /// Adds missing reports to a chunk; returns whether it is lost now.
    fn count(&mut self, tsn: u64, reports: u32, threshold: u32) -> bool {
        let Some(chunk) = self.chunk_mut(tsn).filter(|chunk| chunk.state == State::Outstanding && !chunk.fast) else {
            return false;
        };
        chunk.missing = chunk.missing.saturating_add(u8::try_from(reports).unwrap_or(u8::MAX));
        if u32::from(chunk.missing) < threshold {
            return false;
        }
        chunk.fast = true;
        self.lose(tsn);
        true
    }

    fn lose(&mut self, tsn: u64) {
        let Some(chunk) = self.chunk_mut(tsn).filter(|chunk| chunk.state == State::Outstanding) else { return };
        chunk.state = State::Lost;
        let path = usize::from(chunk.path);
        self.lost.insert(tsn);
        self.outstanding -= 1;
        if let Some(path) = self.paths.get_mut(path) {
            path.outstanding -= 1;
            path.timed = path.timed.filter(|timed| *timed != tsn);
        }
    }

    /// The timer of `path` ran out: all that is outstanding there is to be sent again (RFC 9260 §6.3.3 E3).
    pub(crate) fn lose_path(&mut self, path: usize) {
        let Some(state) = self.paths.get(path) else { return };
        let lists = state.holes.iter().chain(&state.fresh).chain(&state.again);
        let tsns: Vec<u64> = lists.copied().filter(|tsn| self.path_of(*tsn) == path).collect();
        for tsn in tsns {
            self.lose(tsn);
        }
    }
}

/// Whether `tsn` of `chunks`, which begin with `una`, has not arrived.
fn waits(chunks: &VecDeque<Chunk>, una: u64, tsn: u64) -> bool {
    let index = tsn.checked_sub(una).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| chunks.get(index)).is_some_and(|chunk| chunk.state != State::Acked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector cuc.1: TSNs 1, 3, 5 on one path while 2 and 4, on another, stay away.
    #[test]
    fn cuc_1() {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../../../../vectors/algorithms/vectors.json")).unwrap();
        let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == "cuc.1").unwrap();
        let on_path = vector["input"]["sent_on_path"].as_array().unwrap();
        let mut chunks = Chunks::new(2);
        for tsn in 1..=5u64 {
            let path = usize::from(!on_path.iter().any(|on_path| on_path.as_u64() == Some(tsn)));
            assert_eq!(chunks.send_new(path, Instant::ZERO), tsn);
        }
        let expected = vector["output"]["window_may_grow"].as_array().unwrap();
        for (sack, expected) in vector["input"]["sacks"].as_array().unwrap().iter().zip(expected) {
            chunks.begin();
            for tsn in sack.as_array().unwrap().iter().filter_map(serde_json::Value::as_u64) {
                if tsn == chunks.una() {
                    chunks.advance(tsn + 1);
                } else {
                    chunks.sack(tsn, tsn + 1, false);
                }
            }
            chunks.settle();
            assert_eq!(chunks.news(0).first, expected.as_bool().unwrap(), "{sack}");
        }
    }

    /// CUC version 2: while the first chunk is being sent again, first transmissions have their own beginning.
    #[test]
    fn a_retransmission_does_not_hold_first_transmissions_up() {
        let mut chunks = Chunks::new(1);
        for _ in 1..=5 {
            chunks.send_new(0, Instant::ZERO);
        }
        let detection = Detection { split: true, dac: false, packets: 1, threshold: 3 };
        for tsn in [2, 3, 4] {
            chunks.begin();
            chunks.sack(tsn, tsn + 1, false);
            chunks.settle();
            assert!(!chunks.news(0).either);
            assert_eq!(chunks.find_missing(0, false, &detection), (tsn == 4).then_some(1));
        }
        chunks.send_again(1, 0, Instant::ZERO);
        assert_eq!((chunks.first_unacked(0, true), chunks.first_unacked(0, false)), (1, 5));
        chunks.begin();
        chunks.sack(5, 6, false);
        chunks.settle();
        assert_eq!((chunks.news(0).first, chunks.news(0).either), (false, true));
        chunks.begin();
        assert!(chunks.advance(6));
        chunks.settle();
        assert_eq!((chunks.news(0).first, chunks.news(0).either), (true, true));
        assert_eq!((chunks.outstanding(), chunks.kept()), (0, 0));
    }
}

//! Open, closed and probed paths (mHIP, paper 1 §IV-E and §IV-F; paper 3 §III-B).
//!
//! ```text
//! Open          -- packet m departs, marked ------------------> Open with mark m     (one mark a path)
//! Open, mark m  -- m acknowledged in order, in time ----------> Open                 (the next packet is marked)
//! Open, mark m  -- m acknowledged in order, too late ---------> Closed
//! Open, mark m  -- a cumulative acknowledgment covers m ------> Open                 (it tells nothing)
//! Open          -- a packet that went this way is missing ----> Closed
//! Closed        -- the interval is over, a probe departs ------> Probing
//! Probing       -- the probe arrived in time -----------------> Open
//! Probing       -- too late, missing, or a timeout -----------> Closed
//! ```
//!
//! The last open path is never closed (M6); when nothing comes through on it any more, another takes its place. A mark on a closed path, two marks on a path, and a bundle without an open
//! path cannot be expressed outside of this file.

use clock::{Duration, Instant};

use super::forecast::Expected;

/// A packet under observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which packet.
    pub position: u64,
    /// When it departed.
    pub sent: Instant,
    /// What was expected of it.
    pub expected: Expected,
}

/// The state of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// In use.
    Open {
        /// The packet under observation.
        mark: Option<Mark>,
    },
    /// Deemed congested.
    Closed {
        /// New data may probe it from then on.
        probe_at: Instant,
    },
    /// A probe is on its way.
    Probing {
        /// The probe.
        probe: Mark,
    },
}

/// What became of a wish to close a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is closed now; also a probed one.
    Closed,
    /// It was closed already.
    Already,
    /// It is the last open one and stays so.
    Refused,
}

/// The states of all paths of a flow, at least one of which is open.
#[derive(Clone, Debug)]
pub struct PathStates {
    states: Vec<PathState>,
    open: usize,
    interval: Duration,
}

impl PathStates {
    /// So many paths (at least one), all open, to be probed at `interval` when closed.
    pub fn new(paths: usize, interval: Duration) -> Self {
        let paths = paths.max(1);
        Self { states: vec![PathState::Open { mark: None }; paths], open: paths, interval }
    }

    /// The state of a path; there is no path beyond the last.
    pub fn get(&self, path: usize) -> Option<PathState> {
        self.states.get(path).copied()
    }

    /// Whether a path carries ordinary data.
    #[inline]
    pub fn is_open(&self, path: usize) -> bool {
        matches!(self.states.get(path), Some(PathState::Open { .. }))
    }

    /// How many paths are open, at least one.
    #[inline]
    pub fn open(&self) -> usize {
        self.open
    }

    /// The packet under observation on a path: a mark or a probe.
    pub fn observed(&self, path: usize) -> Option<Mark> {
        match self.get(path)? {
            PathState::Open { mark } => mark,
            PathState::Probing { probe } => Some(probe),
            PathState::Closed { .. } => None,
        }
    }

    /// Marks a departing packet, unless the path is not open or has a mark.
    pub fn mark(&mut self, path: usize, new: Mark) {
        if let Some(PathState::Open { mark: mark @ None }) = self.states.get_mut(path) {
            *mark = Some(new);
        }
    }

    /// The mark of an open path is over: acknowledged in time, or void.
    pub fn unmark(&mut self, path: usize) {
        if let Some(PathState::Open { mark }) = self.states.get_mut(path) {
            *mark = None;
        }
    }

    /// The path is congested, or the probe says it still is: closes it until the next probe.
    pub fn close(&mut self, path: usize, now: Instant) -> Closing {
        let closed = PathState::Closed { probe_at: now + self.interval };
        match self.states.get_mut(path) {
            Some(state @ PathState::Open { .. }) if self.open > 1 => {
                *state = closed;
                self.open -= 1;
                Closing::Closed
            }
            Some(PathState::Open { mark }) => {
                *mark = None;
                Closing::Refused
            }
            Some(state @ PathState::Probing { .. }) => {
                *state = closed;
                Closing::Closed
            }
            _ => Closing::Already,
        }
    }

    /// Nothing comes through on `path`: closes it, even if it is the last open one; then the path that has been closed
    /// for longest, or is being probed, opens in its place. False if it is the only path, or was not open.
    pub fn give_up(&mut self, path: usize, now: Instant) -> bool {
        if !self.is_open(path) {
            return false;
        }
        if self.open == 1 {
            let since = |state: &PathState| match state {
                PathState::Open { .. } => None,
                PathState::Closed { probe_at } => Some(*probe_at),
                PathState::Probing { probe } => Some(probe.sent),
            };
            let closed = self.states.iter_mut().filter_map(|state| Some((since(state)?, state)));
            let Some((_, other)) = closed.min_by_key(|(since, _)| *since) else { return false };
            *other = PathState::Open { mark: None };
            self.open += 1;
        }
        self.close(path, now) == Closing::Closed
    }

    /// A closed path whose time has come to be probed.
    #[inline]
    pub fn due(&self, now: Instant) -> Option<usize> {
        if self.open == self.states.len() {
            return None;
        }
        (0..self.states.len()).find(|path| self.is_due(*path, now))
    }

    /// Whether `path` is closed and its time has come to be probed.
    pub fn is_due(&self, path: usize, now: Instant) -> bool {
        matches!(self.states.get(path), Some(PathState::Closed { probe_at }) if *probe_at <= now)
    }

    /// A probe goes out on a closed path. False if it was not closed.
    pub fn probe(&mut self, path: usize, probe: Mark) -> bool {
        match self.states.get_mut(path) {
            Some(state @ PathState::Closed { .. }) => {
                *state = PathState::Probing { probe };
                true
            }
            _ => false,
        }
    }

    /// The probe arrived in time. False if none was on its way.
    pub fn reopen(&mut self, path: usize) -> bool {
        match self.states.get_mut(path) {
            Some(state @ PathState::Probing { .. }) => {
                *state = PathState::Open { mark: None };
                self.open += 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(s: u64) -> Instant {
        Instant::ZERO + SECOND * s
    }

    fn packet(position: u64) -> Mark {
        Mark { position, sent: at(0), expected: Expected { leaves: at(0), arrives: at(1) } }
    }

    #[test]
    fn a_path_closes_is_probed_and_opens() {
        let mut states = PathStates::new(2, SECOND);
        states.mark(0, packet(1));
        states.mark(0, packet(2));
        assert_eq!(states.observed(0), Some(packet(1)));
        assert_eq!(states.close(0, at(5)), Closing::Closed);
        assert_eq!((states.is_open(0), states.observed(0), states.due(at(5))), (false, None, None));
        assert_eq!(states.close(1, at(5)), Closing::Refused);
        assert_eq!(states.due(at(6)), Some(0));
        assert!(states.probe(0, packet(9)) && !states.probe(0, packet(10)));
        assert_eq!(states.close(0, at(7)), Closing::Closed); // the probe was late
        assert_eq!(states.due(at(7)), None);
        assert!(states.probe(0, packet(11)) && states.reopen(0) && !states.reopen(0));
        assert!(states.is_open(0));
        assert_eq!(states.close(0, at(8)), Closing::Closed);
        assert!(states.give_up(1, at(9)) && states.is_open(0) && !states.is_open(1));
        assert!(!PathStates::new(1, SECOND).give_up(0, at(9)));
    }

    proptest! {
        #[test]
        fn one_path_is_always_open_and_none_closed_is_marked(
            paths in 1usize..5,
            steps in prop::collection::vec((0u8..7, 0usize..5, 0u64..9), 0..200),
        ) {
            let mut states = PathStates::new(paths, SECOND);
            for (step, path, time) in steps {
                match step {
                    0 | 1 => { states.close(path, at(time)); }
                    2 => states.mark(path, packet(time)),
                    3 => { states.probe(path, packet(time)); }
                    4 => { states.reopen(path); }
                    5 => { states.give_up(path, at(time)); }
                    _ => states.unmark(path),
                }
                let open = (0..paths).filter(|path| states.is_open(*path)).count();
                prop_assert!(open >= 1 && open == states.open());
            }
        }
    }
}

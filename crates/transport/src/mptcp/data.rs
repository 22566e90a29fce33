//! The data of a connection as its sender sees them: what was acknowledged, what each packet was carried by, and what has
//! to be carried once more. Places count packets of data, from 0.

use std::collections::{BTreeSet, VecDeque};

/// The bit of a packet that is known to have arrived; the others are of paths.
const ARRIVED: u64 = 1 << 63;

/// The data.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// The first place not acknowledged; the next new one; one beyond the last.
    una: u64,
    next: u64,
    end: u64,
    /// Most places outstanding: the receiver's window.
    window: u64,
    /// From `una` on, the paths that have carried each place.
    carried: VecDeque<u64>,
    /// Places to be carried once more, by a path that has not carried them.
    again: BTreeSet<u64>,
}

impl Data {
    pub(crate) fn new(end: u64, window: u64) -> Self {
        Self { una: 0, next: 0, end, window, carried: VecDeque::new(), again: BTreeSet::new() }
    }

    /// The first place not acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next new place.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// One beyond the last place; [`u64::MAX`] if there is no last one.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.una >= self.end
    }

    /// There will be no more than were sent already.
    pub(crate) fn stop(&mut self) {
        self.end = self.end.min(self.next);
    }

    /// Places that the window still allows.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        (self.una + self.window).saturating_sub(self.next)
    }

    /// Whether there are new data, and the window allows them.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.next < self.end && self.room() > 0
    }

    /// Whether there are new data, but the window does not allow them.
    #[inline]
    pub(crate) fn is_window_limited(&self) -> bool {
        self.next < self.end && self.room() == 0
    }

    /// Takes the next new place.
    #[inline]
    pub(crate) fn take_new(&mut self) -> u64 {
        self.carried.push_back(0);
        self.next += 1;
        self.next - 1
    }

    /// `path` carries `place`. Returns whether another had carried it before.
    #[inline]
    pub(crate) fn carry(&mut self, place: u64, path: usize) -> bool {
        let Some(carried) = self.slot(place) else { return true };
        let before = *carried;
        *carried |= 1 << path;
        before != 0
    }

    /// `place` has arrived, as the acknowledgment of a subflow tells.
    #[inline]
    pub(crate) fn arrived(&mut self, place: u64) {
        if let Some(carried) = self.slot(place) {
            *carried |= ARRIVED;
        }
    }

    /// All before `place` is acknowledged.
    #[inline]
    pub(crate) fn advance(&mut self, place: u64) {
        let place = place.min(self.next);
        if place <= self.una {
            return;
        }
        self.carried.drain(..((place - self.una) as usize).min(self.carried.len()));
        self.una = place;
        if !self.again.is_empty() {
            self.again = self.again.split_off(&place);
        }
    }

    /// The paths that have carried `place`, which is outstanding; all of them once it has arrived.
    #[inline]
    pub(crate) fn carriers(&self, place: u64) -> u64 {
        let index = place.checked_sub(self.una).map(|index| index as usize);
        let carried = index.and_then(|index| self.carried.get(index)).copied().unwrap_or(ARRIVED);
        if carried & ARRIVED == 0 { carried } else { u64::MAX }
    }

    /// `place` is to be carried by another path too.
    pub(crate) fn ask_again(&mut self, place: u64) {
        if self.carriers(place) != u64::MAX {
            self.again.insert(place);
        }
    }

    /// Whether something waits to be carried again, by whichever path.
    #[inline]
    pub(crate) fn asks_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The first place to be carried again that one of `paths` has not carried. What has arrived meanwhile is dropped.
    pub(crate) fn next_again(&mut self, paths: u64) -> Option<u64> {
        let mut arrived = None;
        let found = self.again.iter().copied().find(|place| {
            let carriers = self.carriers(*place);
            if carriers == u64::MAX {
                arrived = Some(*place);
            }
            paths & !carriers != 0
        });
        if let Some(place) = arrived {
            self.again.remove(&place);
        }
        found
    }

    /// `place` is carried again, or need not be.
    pub(crate) fn done_again(&mut self, place: u64) {
        self.again.remove(&place);
    }

    #[inline]
    fn slot(&mut self, place: u64) -> Option<&mut u64> {
        let index = place.checked_sub(self.una)?;
        self.carried.get_mut(index as usize)
    }
}

//! Deficit round robin with flows that have just begun first (RFC 8290 §4.2): whose turn it is, without the packets.

use std::collections::VecDeque;

/// The flows that have packets, each by its key.
#[derive(Clone, Debug)]
pub struct Rounds<K> {
    quantum: i64,
    /// Flows that have just begun to wait, each with the bytes that it may still send in its turn; then the others.
    new: VecDeque<(K, i64)>,
    old: VecDeque<(K, i64)>,
}

impl<K: Copy + PartialEq> Rounds<K> {
    /// Each flow may send `quantum` bytes in its turn, at least 1, and the rest of its last packet.
    pub fn new(quantum: u32) -> Self {
        Self { quantum: i64::from(quantum.max(1)), new: VecDeque::new(), old: VecDeque::new() }
    }

    /// A flow that was not there begins to wait.
    pub fn begin(&mut self, flow: K) {
        self.new.push_back((flow, self.quantum));
    }

    /// The flow that comes next, if its turn is not over, and whether it has just begun.
    pub fn first(&self) -> Option<(K, bool)> {
        let new = self.new.front().map(|(flow, _)| (*flow, true));
        new.or_else(|| self.old.front().map(|(flow, _)| (*flow, false)))
    }

    /// The flow whose turn it is; turns that are over end here.
    pub fn turn(&mut self) -> Option<K> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let (flow, credit) = list.front_mut()?;
            if *credit > 0 {
                return Some(*flow);
            }
            let next = (*flow, *credit + self.quantum);
            list.pop_front();
            self.old.push_back(next);
        }
    }

    /// As [`Rounds::turn`], of the flows for which it holds; the others keep their order.
    pub fn turn_of(&mut self, is: impl Fn(&K) -> bool) -> Option<K> {
        loop {
            let position = |list: &VecDeque<(K, i64)>| list.iter().position(|(flow, _)| is(flow));
            let (was_new, next) = match position(&self.new) {
                Some(at) => (true, self.new.remove(at)),
                None => (false, position(&self.old).and_then(|at| self.old.remove(at))),
            };
            let (flow, credit) = next?;
            if credit > 0 {
                // What comes first is at the front of the new ones, if there are any.
                let list = if was_new || !self.new.is_empty() { &mut self.new } else { &mut self.old };
                list.push_front((flow, credit));
                return Some(flow);
            }
            self.old.push_back((flow, credit + self.quantum));
        }
    }

    /// The flow whose turn it is sends a packet of so many bytes.
    pub fn spend(&mut self, bytes: u32) {
        if let Some((_, credit)) = self.new.front_mut().or(self.old.front_mut()) {
            *credit -= i64::from(bytes);
        }
    }

    /// The flow whose turn it is has nothing to send. Says whether it is gone: a new one goes through the old ones first, or it
    /// could starve them by beginning again and again.
    pub fn end(&mut self) -> bool {
        let Some(flow) = self.new.pop_front() else { return self.old.pop_front().is_some() };
        if self.old.is_empty() {
            return true;
        }
        self.old.push_back(flow);
        false
    }

    /// Nothing waits any more of this flow, whether or not it has its turn.
    pub fn remove(&mut self, flow: K) {
        self.new.retain(|(key, _)| *key != flow);
        self.old.retain(|(key, _)| *key != flow);
    }

    /// Nothing waits any more.
    pub fn clear(&mut self) {
        self.new.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shreedhar and Varghese 1995, theorem 2: what two flows that always have something have sent never differs by more than a
    /// quantum and two packets.
    #[test]
    fn flows_share_by_bytes_whatever_their_packets() {
        let sizes = [40u32, 1500, 576, 9000];
        let mut rounds = Rounds::new(1514);
        (0..sizes.len()).for_each(|flow| rounds.begin(flow));
        let mut sent = [0i64; 4];
        for _ in 0..100_000 {
            let flow = rounds.turn().unwrap();
            rounds.spend(sizes[flow]);
            sent[flow] += i64::from(sizes[flow]);
            for (a, b) in [(0, 1), (1, 2), (2, 3), (0, 3)] {
                let bound = 1514 + 2 * i64::from(sizes[a].max(sizes[b]));
                assert!((sent[a] - sent[b]).abs() <= bound, "{sent:?}");
            }
        }
    }

    /// RFC 8290 §4.2: a flow that begins comes first, for a quantum; when it has nothing more it comes after the others once.
    #[test]
    fn who_begins_comes_first_and_then_last() {
        let mut rounds = Rounds::new(1500);
        rounds.begin('a');
        rounds.begin('b');
        for expected in ['a', 'b', 'a', 'b'] {
            assert_eq!(rounds.turn(), Some(expected));
            rounds.spend(1500);
        }
        rounds.begin('c');
        assert_eq!((rounds.first(), rounds.turn()), (Some(('c', true)), Some('c')));
        rounds.spend(100);
        assert_eq!(rounds.turn(), Some('c'));
        assert!(!rounds.end(), "it could begin again at once and starve the others");
        assert_eq!(rounds.first(), Some(('b', false)), "whose turn is over");
        for expected in ['a', 'c', 'b'] {
            assert_eq!(rounds.turn(), Some(expected));
            assert!(rounds.end());
        }
        assert_eq!(rounds.turn(), None);
    }

    /// The same bound among those that may send; who may not loses nothing of its turn.
    #[test]
    fn who_may_not_send_keeps_nobody_waiting() {
        let sizes = [40u32, 1500, 576, 9000];
        let mut rounds = Rounds::new(1514);
        (0..sizes.len()).for_each(|flow| rounds.begin(flow));
        let mut sent = [0i64; 4];
        for step in 0..100_000 {
            // The first and the last begin again and again to be kept from sending.
            let may = |flow: &usize| step % 100 < 50 || [1, 2].contains(flow);
            let flow = rounds.turn_of(may).unwrap();
            assert!(may(&flow) && rounds.first().map(|(first, _)| first) == Some(flow));
            rounds.spend(sizes[flow]);
            sent[flow] += i64::from(sizes[flow]);
            assert!((sent[1] - sent[2]).abs() <= 1514 + 2 * 1500, "{sent:?}");
        }
        assert!(sent.iter().all(|sent| *sent > 0), "{sent:?}");
        assert_eq!(rounds.turn_of(|flow| *flow > 9), None);
    }
}

//! The event queue: a heap with four children a node, ordered by time and then by component.
//!
//! A component (a link, a timer) has at most a few pending events, so the queue is as long as there are components, not
//! packets. The usual event is that of a busy link, which comes back soon: it replaces the top and seldom sinks far.

use clock::Instant;

/// Something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// When.
    pub(crate) at: Instant,
    /// Whose: what is due at the same time comes in the order of components, so that a run has one order.
    pub(crate) component: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EventQueue {
    heap: Vec<Event>,
}

const CHILDREN: usize = 4;

impl EventQueue {
    /// The next event.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Event> {
        self.heap.first().copied()
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.heap.push(event);
        let mut index = self.heap.len() - 1;
        while index > 0 {
            let parent = (index - 1) / CHILDREN;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[index] = self.heap[parent];
            index = parent;
        }
        self.heap[index] = event;
    }

    /// Takes the next event away.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first().copied() else {
            return Some(last);
        };
        self.sink(last);
        Some(first)
    }

    /// Puts `event` in the place of the next one.
    #[inline]
    pub(crate) fn replace(&mut self, event: Event) {
        if self.heap.is_empty() {
            self.heap.push(event);
        } else {
            self.sink(event);
        }
    }

    /// Puts `event` at the top, and from there where it belongs.
    #[inline]
    fn sink(&mut self, event: Event) {
        let heap = self.heap.as_mut_slice();
        let mut index = 0;
        loop {
            let first = index * CHILDREN + 1;
            let Some(children) = heap.get(first..(first + CHILDREN).min(heap.len()).max(first)) else { break };
            let Some((offset, least)) = children.iter().copied().enumerate().min_by_key(|(_, child)| *child) else {
                break;
            };
            if event <= least {
                break;
            }
            heap[index] = least;
            index = first + offset;
        }
        heap[index] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is a sorted list.
        #[test]
        fn events_come_in_order(ops in prop::collection::vec((0u8..4, 0u64..50, 0u32..9), 1..300)) {
            let mut queue = EventQueue::default();
            let mut list: Vec<Event> = Vec::new();
            for (op, at, component) in ops {
                let event = Event { at: Instant::from_nanos(at), component };
                match op {
                    0 | 1 => {
                        queue.push(event);
                        list.push(event);
                    }
                    2 => {
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(queue.pop(), first);
                    }
                    _ => {
                        if !list.is_empty() {
                            list.remove(0);
                        }
                        queue.replace(event);
                        list.push(event);
                    }
                }
                list.sort();
                prop_assert_eq!(queue.peek(), list.first().copied());
            }
        }
    }
}

//! The event queue: a calendar of short days, ordered by time and then by when an event was entered.
//!
//! Components (links, timers) have at most a few pending events each, most of them due soon. An event lies in the list
//! of its day, found without comparisons; a day is put in order when it comes. What is due beyond the year waits in a
//! heap. The length of a day follows the events, so that few fall on one (R. Brown, *Calendar queues: a fast O(1)
//! priority queue implementation for the simulation event set problem*, CACM 31(10), 1988).

use clock::Instant;

/// Something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// When.
    pub(crate) at: Instant,
    /// What is due at the same time comes in this order, so that a run has one.
    pub(crate) order: u32,
    /// Whose.
    pub(crate) component: u32,
}

/// Days of a year.
const DAYS: u64 = 1 << 13;
/// So few events need no calendar: they are kept in order as if all were today's.
const FEW: usize = 64;
/// A day with more is cut.
const MANY: usize = 2 * FEW;
/// The end of a list.
const NONE: u32 = u32::MAX;
/// After so many days with events their length is looked at.
const REVIEW: u32 = 1 << 12;
/// The place of timers among what is due at the same instant: set long before, they come first.
const TIMERS_FIRST: u32 = 0;

#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// What is left of today, the next event last. Nothing elsewhere is due earlier than any of it.
    today: Vec<Event>,
    /// The number of today, counted from time zero; all elsewhere is of later days.
    day: u64,
    /// Today is cut when it has more events.
    many: usize,
    /// A day has 2^shift nanoseconds.
    shift: u32,
    /// For each day of the year from tomorrow on, the first of its events in `nodes`, and a bit if there is any.
    first: Vec<u32>,
    occupied: Vec<u64>,
    nodes: Vec<Node>,
    free: u32,
    /// Events in `nodes`.
    pending: usize,
    later: Heap,
    /// Days and events since the last review.
    days: u32,
    events: u32,
    /// The last number that an event of a packet got.
    turn: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    event: Event,
    next: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            today: Vec::new(),
            day: 0,
            many: MANY,
            shift: 16,
            first: vec![NONE; DAYS as usize],
            occupied: vec![0; DAYS as usize / 64],
            nodes: Vec::new(),
            free: NONE,
            pending: 0,
            later: Heap::default(),
            days: 0,
            events: 0,
            turn: TIMERS_FIRST,
        }
    }
}

impl EventQueue {
    /// Adds a timer's event, as [`EventQueue::push`] does.
    #[inline]
    pub(crate) fn push_timer(&mut self, at: Instant, component: u32) {
        self.push(Event { at, order: TIMERS_FIRST, component });
    }

    /// Adds a packet's event, as [`EventQueue::push`] does. Of what is due at the same instant the one comes first that has
    /// waited for it the longest, as in ns-2, so that packets sent one after the other at the same instant, on paths that are
    /// alike, arrive in that order.
    #[inline]
    pub(crate) fn push_in_turn(&mut self, at: Instant, component: u32) {
        self.turn = self.turn.wrapping_add(1).max(TIMERS_FIRST + 1);
        self.push(Event { at, order: self.turn, component });
    }

    /// Adds an event that is not due before the last one taken.
    #[inline]
    fn push(&mut self, event: Event) {
        let day = event.at.as_nanos() >> self.shift;
        let few = self.today.len() < FEW && self.pending == 0 && self.later.heap.is_empty();
        if day <= self.day || few {
            // Most are due soon, and so have few before them.
            let place = self.today.iter().rposition(|other| *other > event).map_or(0, |index| index + 1);
            self.today.insert(place, event);
            self.day = self.day.max(day);
            if self.today.len() > self.many {
                self.spill();
            }
        } else {
            self.place(event);
        }
    }

    /// Takes the next event, if it is due before `limit`.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: Instant) -> Option<Event> {
        if self.today.is_empty() {
            self.turn_page(limit);
        }
        let event = *self.today.last()?;
        if event.at >= limit {
            return None;
        }
        self.today.pop();
        Some(event)
    }

    /// Today has become too long: it ends with the day of its middle event, or before its first one.
    #[cold]
    fn spill(&mut self) {
        let day_of = |event: &Event, shift| event.at.as_nanos() >> shift;
        let shift = self.shift;
        let middle = self.today.get(self.today.len() / 2).map_or(0, |event| day_of(event, shift));
        let first = self.today.last().map_or(0, |event| day_of(event, shift));
        let last = if middle > first { middle } else { first.saturating_sub(1) };
        let keep_from = self.today.partition_point(|event| day_of(event, shift) > last);
        let mut rest = std::mem::take(&mut self.today);
        let keep = rest.split_off(keep_from);
        // The year begins earlier now, so all of it is entered anew.
        self.empty_calendar(&mut rest);
        self.today = keep;
        self.day = last;
        self.many = MANY.max(2 * self.today.len());
        for event in rest {
            self.place(event);
        }
    }

    /// Moves all events of the calendar to `to`; today has to be empty.
    fn empty_calendar(&mut self, to: &mut Vec<Event>) {
        for slot in 0..self.first.len() {
            self.empty_slot(slot);
        }
        to.append(&mut self.today);
    }

    /// Puts an event of a day after today where it belongs.
    #[inline]
    fn place(&mut self, event: Event) {
        let day = event.at.as_nanos() >> self.shift;
        if day.saturating_sub(self.day) < DAYS { self.enter(day, event) } else { self.later.push(event) }
    }

    #[inline]
    fn enter(&mut self, day: u64, event: Event) {
        let slot = (day % DAYS) as usize;
        let node = Node { event, next: self.first[slot] };
        self.first[slot] = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            let place = &mut self.nodes[index as usize];
            self.free = place.next;
            *place = node;
            index
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.pending += 1;
    }

    /// Goes on to the next day with events, if it begins before `limit`.
    fn turn_page(&mut self, limit: Instant) {
        if self.days >= REVIEW {
            self.review();
        }
        let later = self.later.peek().map(|event| event.at.as_nanos() >> self.shift);
        let soon = self.next_occupied();
        let Some(day) = soon.into_iter().chain(later).min() else { return };
        if day << self.shift >= limit.as_nanos() {
            return;
        }
        self.day = day;
        while let Some(event) = self.later.peek() {
            let due = event.at.as_nanos() >> self.shift;
            if due.saturating_sub(day) >= DAYS {
                break;
            }
            self.later.pop();
            if due <= day { self.today.push(event) } else { self.enter(due, event) }
        }
        self.empty_slot((day % DAYS) as usize);
        self.days += 1;
        self.events += self.today.len() as u32;
        self.many = MANY.max(2 * self.today.len());
        if self.today.len() > 1 {
            self.today.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Moves the events of a slot to `today`.
    #[inline]
    fn empty_slot(&mut self, slot: usize) {
        let mut index = std::mem::replace(&mut self.first[slot], NONE);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            self.today.push(node.event);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = index;
            index = next;
            self.pending -= 1;
        }
    }

    /// The next day after today that has events in the calendar.
    #[inline]
    fn next_occupied(&self) -> Option<u64> {
        if self.pending == 0 {
            return None;
        }
        let words = self.occupied.len() as u64;
        let start = self.day + 1;
        let (word, bit) = (start % DAYS / 64, start % 64);
        for offset in 0..=words {
            let mut bits = self.occupied[((word + offset) % words) as usize];
            if offset == 0 {
                bits &= u64::MAX << bit;
            }
            if bits != 0 {
                return Some(start - bit + offset * 64 + u64::from(bits.trailing_zeros()));
            }
        }
        None
    }

    /// Makes days longer if most have but one event, shorter if many have many. Only between days.
    #[cold]
    fn review(&mut self) {
        let per_day = f64::from(self.events) / f64::from(self.days);
        (self.days, self.events) = (0, 0);
        let shift = if per_day > 5.0 {
            self.shift.saturating_sub(1)
        } else if per_day < 1.25 {
            (self.shift + 1).min(30)
        } else {
            return;
        };
        let mut all = Vec::new();
        let last_day_ends = (self.day + 1) << self.shift;
        self.empty_calendar(&mut all);
        self.shift = shift;
        // All events are after the day that has gone by.
        self.day = (last_day_ends >> shift).saturating_sub(1);
        for event in all {
            self.push(event);
        }
    }
}

/// A heap with four children a node, for what is due much later.
#[derive(Clone, Debug, Default)]
struct Heap {
    heap: Vec<Event>,
}

const CHILDREN: usize = 4;

impl Heap {
    #[inline]
    fn peek(&self) -> Option<Event> {
        self.heap.first().copied()
    }

    fn push(&mut self, event: Event) {
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

    fn pop(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        if self.heap.is_empty() {
            return;
        }
        let heap = self.heap.as_mut_slice();
        let mut index = 0;
        loop {
            let first = index * CHILDREN + 1;
            let children = heap.get(first..(first + CHILDREN).min(heap.len())).unwrap_or(&[]);
            let Some((offset, least)) = children.iter().copied().enumerate().min_by_key(|(_, child)| *child) else {
                break;
            };
            if last <= least {
                break;
            }
            heap[index] = least;
            index = first + offset;
        }
        heap[index] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is a sorted list. Distances from a nanosecond to minutes, so that days change their length and
        /// events go through the heap.
        #[test]
        fn events_come_in_order(
            seeds in prop::collection::vec((0u32..38, 0u64..1000, 0u32..9, 0usize..3), 1..400),
            fewer in 0usize..2,
            repeats in 1usize..40,
        ) {
            let mut queue = EventQueue::default();
            let mut list = std::collections::BTreeSet::new();
            let mut now = 0_u64;
            for (scale, part, component, pops) in seeds.iter().copied().cycle().take(seeds.len() * repeats) {
                let at = now + ((part << scale) >> 10);
                let event = Event { at: Instant::from_nanos(at), order: component / 3, component };
                if list.insert(event) {
                    queue.push(event);
                }
                for _ in 0..pops.saturating_sub(fewer) {
                    let first = list.pop_first();
                    prop_assert_eq!(queue.pop_before(Instant::FAR_FUTURE), first);
                    now = first.map_or(now, |event| event.at.as_nanos());
                }
            }
            while let Some(first) = list.pop_first() {
                prop_assert_eq!(queue.pop_before(first.at), None);
                prop_assert_eq!(queue.pop_before(Instant::FAR_FUTURE), Some(first));
            }
            prop_assert_eq!(queue.pop_before(Instant::FAR_FUTURE), None);
        }
    }
}

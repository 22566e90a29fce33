//! Acknowledgments of a TCP that are let go together: its program takes what they tell at once for one burst of the path (see
//! [`crate::stretch`]).

use crate::packet::FlowId;
use clock::Instant;
use std::collections::{BTreeMap, VecDeque};

/// The acknowledgments that are held, by flow.
#[derive(Debug)]
pub struct Bunches<P> {
    flows: BTreeMap<FlowId, Bunch<P>>,
    /// Bytes that are held.
    bytes: usize,
}

/// The acknowledgments of a flow, in the order in which they came, each with its bytes and until when it is held: none leaves before an
/// earlier one.
type Bunch<P> = VecDeque<(P, usize, Instant)>;

impl<P> Default for Bunches<P> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), bytes: 0 }
    }
}

impl<P> Bunches<P> {
    /// Holds a packet of so many bytes behind those of its flow.
    pub fn hold(&mut self, flow: FlowId, until: Instant, (packet, bytes): (P, usize)) {
        let bunch = self.flows.entry(flow).or_default();
        let until = bunch.back().map_or(until, |(_, _, last)| until.max(*last));
        bunch.push_back((packet, bytes, until));
        self.bytes += bytes;
    }

    /// Takes those of a flow, in the order in which they came: something has come that waits for nothing.
    pub fn take(&mut self, flow: FlowId) -> Vec<P> {
        if self.flows.is_empty() {
            return Vec::new();
        }
        let packets = self.flows.remove(&flow).unwrap_or_default();
        self.bytes -= packets.iter().map(|(_, bytes, _)| bytes).sum::<usize>();
        packets.into_iter().map(|(packet, _, _)| packet).collect()
    }

    /// Appends to `out` those whose time has come, and whose they are.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(FlowId, P)>) {
        let Self { flows, bytes } = self;
        flows.retain(|flow, bunch| {
            let due = bunch.iter().take_while(|(_, _, until)| *until <= now).count();
            for (packet, size, _) in bunch.drain(..due) {
                *bytes -= size;
                out.push((*flow, packet));
            }
            !bunch.is_empty()
        });
    }

    /// Appends to `out` all of them, for want of memory.
    pub fn relieve(&mut self, out: &mut Vec<(FlowId, P)>) {
        self.handle_timeout(Instant::FAR_FUTURE, out);
    }

    /// When the first of them are let go.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.flows.values().filter_map(VecDeque::front).map(|(_, _, until)| *until).min()
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Duration;

    const FLOW: FlowId = FlowId { protocol: 6, local: 80, remote: 4000 };
    const OTHER: FlowId = FlowId { protocol: 6, local: 80, remote: 4001 };

    #[test]
    fn what_is_held_leaves_together_in_order_and_is_counted() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let (mut bunches, mut out) = (Bunches::default(), Vec::new());
        assert_eq!((bunches.poll_timeout(), bunches.take(FLOW)), (None, Vec::new()));
        for number in 0..4 {
            bunches.hold(FLOW, at(50 + number), (number, 100));
            bunches.hold(OTHER, at(20), (10 + number, 60));
        }
        assert_eq!((bunches.poll_timeout(), bunches.bytes()), (Some(at(20)), 640));
        bunches.handle_timeout(at(19), &mut out);
        assert!(out.is_empty());
        bunches.handle_timeout(at(20), &mut out);
        assert_eq!(out, [(OTHER, 10), (OTHER, 11), (OTHER, 12), (OTHER, 13)]);
        assert_eq!((bunches.poll_timeout(), bunches.bytes()), (Some(at(50)), 400));
        assert_eq!((bunches.take(FLOW), bunches.take(FLOW), bunches.bytes()), (vec![0, 1, 2, 3], Vec::new(), 0));
    }
}

//! The numbers by which a receiver puts packets in order: of each inner flow, not of the association.
//!
//! One number for the whole association would make every flow wait for the losses of all others, and a packet that the
//! send buffer drops, or that never waited, a hole for everybody. A flow's own number costs the same few bytes, is
//! given when the packet leaves the send buffer, so that what is dropped there leaves no hole, and works for what has
//! no sequence numbers of its own, or hides them. Packets that did not wait (a call, a name look-up, an
//! acknowledgment) have none, and are delivered as they come.

use crate::copies::CopyNumber;
use crate::packet::FlowId;
use recovery::{Position, Role};
use scheduler::PathId;
use std::collections::BTreeMap;

/// Bytes that a number takes on the wire. Two more have the first 256 packets of a flow whose header goes in short, and those of a peer
/// that has no short numbers.
pub const HEADER: usize = 2;
/// Bytes that the number of its copies takes besides, with what it is a copy of.
pub const COPY_HEADER: usize = 6;
/// So many are the first of a flow: that one of them has overtaken others shows.
const FIRST: u32 = 256;
/// Flows whose numbers are remembered; if there are more, all begin anew.
const FLOWS: usize = 4096;

/// Bytes that the numbers of a packet take on the wire. One that has copies has room for its place, too.
pub(crate) fn header(number: Option<Number>, copy: Option<CopyNumber>) -> usize {
    match (number, copy) {
        (_, Some(_)) => HEADER + COPY_HEADER,
        (Some(_), None) => HEADER,
        (None, None) => 0,
    }
}

/// The sender's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    next: BTreeMap<FlowId, u32>,
}

/// The number of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// It goes round after 65,535.
    pub value: u16,
    /// It is one of the first of its flow.
    pub is_early: bool,
}

impl Numbers {
    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.next.len() * 2 * (size_of::<FlowId>() + size_of::<u32>())
    }

    /// The number of the flow's next packet.
    pub(crate) fn next(&mut self, flow: FlowId) -> Number {
        if self.next.len() >= FLOWS && !self.next.contains_key(&flow) {
            self.next.clear();
        }
        let next = self.next.entry(flow).or_default();
        let number = Number { value: *next as u16, is_early: *next < FIRST };
        // The number has 16 bits; that it is no longer one of the first stays known.
        *next = if *next == u32::MAX { 1 << 16 } else { *next + 1 };
        number
    }
}

impl Number {
    /// The place for a resequencer, whose numbers have 32 bits: ours are the upper ones, and wrap around with them.
    pub fn position(self, path: PathId) -> Position {
        let role = if self.is_early { Role::Early(0) } else { Role::InSequence };
        Position { path: path.0, sequence: u32::from(self.value) << 16, length: 1 << 16, role }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::{Duration, Instant};
    use recovery::Resequencer;

    #[test]
    fn a_flow_is_numbered_alone_and_its_numbers_go_round() {
        let flow = |local| FlowId { protocol: 17, local, remote: 1 };
        let mut numbers = Numbers::default();
        let mut resequencer = Resequencer::new(1 << 20);
        let hold = Duration::from_secs(1);
        let mut out = Vec::new();
        for count in 0..200_000u32 {
            // The other flow's numbers are no concern of this one's, and every two packets change places.
            numbers.next(flow(9));
            let pair = [2 * count, 2 * count + 1].map(|n| (n, numbers.next(flow(1))));
            for at in [1, 0] {
                let (n, number) = pair[at];
                let position = number.position(PathId(at as u16));
                assert_eq!(position.role == Role::Early(0), n < 256);
                resequencer.offer(Instant::ZERO, position, n, 1, hold, &[0, 1], &mut out);
            }
        }
        assert!(out.into_iter().eq(0..400_000));
    }
}

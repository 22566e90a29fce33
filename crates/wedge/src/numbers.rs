//! The numbers by which a peer that gives feedback puts packets in order: of each inner flow, not of the association.
//!
//! One number for the whole association would make every flow wait for the losses of all others, and a packet that the
//! holding buffer drops, or that never waited, a hole for everybody. A flow's own number costs the same four bytes, is
//! given when the packet leaves the holding buffer, so that what is dropped there leaves no hole, and works for what has
//! no sequence numbers of its own, or hides them. Packets that did not wait (a call, a name look-up, an
//! acknowledgment) have none, and are delivered as they come.
//!
//! ```text
//! ECN (4 bits) | kind (4 bits): 2, or 3 for the first 256 of a flow | next header (1) | number (2) | payload
//! ```

use crate::ecn::Ecn;
use crate::flows::FlowKey;
use recovery::{Position, Role};
use scheduler::PathId;
use std::collections::BTreeMap;

/// Bytes before the payload.
pub(crate) const HEADER: usize = 4;
/// The kinds.
const NUMBERED: u8 = 2;
const EARLY: u8 = 3;
/// So many are the first of a flow: that one of them has overtaken others shows.
const FIRST: u32 = 256;
/// Flows whose numbers are remembered; if there are more, all begin anew.
const FLOWS: usize = 4096;

/// The sender's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    next: BTreeMap<FlowKey, u32>,
}

/// The number of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    number: u16,
    is_early: bool,
    ecn: Ecn,
}

impl Numbers {
    /// Bytes of one, and of its place in the table.
    pub(crate) const SIZE: usize = 2 * (size_of::<FlowKey>() + size_of::<u32>());

    /// How many flows are numbered.
    pub(crate) fn len(&self) -> usize {
        self.next.len()
    }

    /// The header of the flow's next packet.
    pub(crate) fn header(&mut self, flow: FlowKey, next_header: u8, ecn: Ecn) -> [u8; HEADER] {
        if self.next.len() >= FLOWS && !self.next.contains_key(&flow) {
            self.next.clear();
        }
        let next = self.next.entry(flow).or_default();
        let kind = if *next < FIRST { EARLY } else { NUMBERED };
        let [a, b] = (*next as u16).to_be_bytes();
        // The number has 16 bits; that it is no longer one of the first stays known.
        *next = if *next == u32::MAX { 1 << 16 } else { *next + 1 };
        [ecn.bits() << 4 | kind, next_header, a, b]
    }
}

impl Number {
    /// Reads the header: the payload's protocol, and its number. `None` where it is something else.
    pub(crate) fn parse(message: &[u8]) -> Option<(u8, Self)> {
        let [first, next_header, a, b] = *message.first_chunk::<HEADER>()?;
        let (kind, ecn) = (first & 0x0f, first >> 4);
        let number = u16::from_be_bytes([a, b]);
        let known = matches!(kind, NUMBERED | EARLY) && ecn < 4;
        known.then_some((next_header, Self { number, is_early: kind == EARLY, ecn: Ecn::of(ecn) }))
    }

    /// What the inner IP header said about marks when it left.
    pub(crate) fn ecn(self) -> Ecn {
        self.ecn
    }

    /// The place for a resequencer, whose numbers have 32 bits: ours are the upper ones, and wrap around with them.
    pub(crate) fn position(self, path: PathId) -> Position {
        let role = if self.is_early { Role::Early(0) } else { Role::InSequence };
        Position { path: path.0, sequence: u32::from(self.number) << 16, length: 1 << 16, role }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::{Duration, Instant};
    use recovery::Resequencer;

    #[test]
    fn a_flow_is_numbered_alone_and_its_numbers_go_round() {
        let key = |port: u8| FlowKey::of(17, &[0, port, 0, 1], true).unwrap();
        let mut numbers = Numbers::default();
        let mut resequencer = Resequencer::new(1 << 20);
        let hold = Duration::from_secs(1);
        let mut out = Vec::new();
        for count in 0..200_000u32 {
            // The other flow's numbers are no concern of this one's, and every two packets change places.
            numbers.header(key(9), 17, Ecn::NotEct);
            let pair =
                [2 * count, 2 * count + 1].map(|n| (n, Number::parse(&numbers.header(key(1), 6, Ecn::Ect0)).unwrap()));
            for at in [1, 0] {
                let (n, (next_header, number)) = pair[at];
                assert_eq!((next_header, number.ecn()), (6, Ecn::Ect0));
                let position = number.position(PathId(at as u16));
                assert_eq!(position.role == Role::Early(0), n < 256);
                resequencer.offer(Instant::ZERO, position, n, 1, hold, &[0, 1], &mut out);
            }
        }
        assert!(out.into_iter().eq(0..400_000));
        assert_eq!(Number::parse(&[1, 0, 0, 0]), None);
    }
}

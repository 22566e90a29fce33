//! The number of a packet in its flow, as it stands before the payload inside ESP, where the peer gives feedback.
//!
//! ```text
//! ECN (4 bits) | kind (4 bits): 2, or 3 for the first 256 of a flow | next header (1) | number (2) | payload
//! ```

use multipath::{Ecn, Number};

/// Bytes before the payload.
pub(crate) const HEADER: usize = multipath::NUMBER;
/// The kinds.
const NUMBERED: u8 = 2;
const EARLY: u8 = 3;

/// The header of a packet of this protocol, with the mark of its inner IP header.
pub(crate) fn emit(number: Number, next_header: u8, ecn: Ecn) -> [u8; HEADER] {
    let kind = if number.is_early { EARLY } else { NUMBERED };
    let [a, b] = number.value.to_be_bytes();
    [ecn.bits() << 4 | kind, next_header, a, b]
}

/// Reads the header: the payload's protocol, its number, and its mark. `None` where it is something else.
pub(crate) fn parse(message: &[u8]) -> Option<(u8, Number, Ecn)> {
    let [first, next_header, a, b] = *message.first_chunk::<HEADER>()?;
    let (kind, ecn) = (first & 0x0f, first >> 4);
    let number = Number { value: u16::from_be_bytes([a, b]), is_early: kind == EARLY };
    let known = matches!(kind, NUMBERED | EARLY) && ecn < 4;
    known.then_some((next_header, number, Ecn::of(ecn)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(value: u16, is_early: bool, next_header: u8, ecn in 0u8..4) {
            let (number, ecn) = (Number { value, is_early }, Ecn::of(ecn));
            prop_assert_eq!(parse(&emit(number, next_header, ecn)), Some((next_header, number, ecn)));
        }
    }

    /// As earlier versions sent it.
    #[test]
    fn the_bytes_are_those_of_the_wire_format() {
        let number = Number { value: 0x1234, is_early: true };
        assert_eq!(emit(number, 6, Ecn::Ect0), [0x23, 6, 0x12, 0x34]);
        assert_eq!(emit(Number { is_early: false, ..number }, 17, Ecn::NotEct), [0x02, 17, 0x12, 0x34]);
        assert_eq!(parse(&[1, 0, 0, 0]), None);
        assert_eq!(parse(&[0x42, 6, 0, 0]), None);
    }
}

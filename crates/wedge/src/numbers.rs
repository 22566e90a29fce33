//! What stands before the payload inside ESP, where the peer gives feedback: the packet's numbers, and what it is.
//!
//! ```text
//! ECN (4 bits) | kind (4 bits) | next header (1) | number (2) | copy number (4), if the kind has one | payload
//! ```
//!
//! | kind | number in the flow | has copies |
//! |---|---|---|
//! | 2 | yes | no |
//! | 3 | yes, of the first 256 | no |
//! | 4 | yes | yes |
//! | 5 | yes, of the first 256 | yes |
//! | 6 | none | yes |
//!
//! Where the payload's header is in short (see [`crate::labels`]), its label takes the place of its protocol:
//!
//! ```text
//! label, upper bits (2 bits) | ECN (2 bits) | 1 (1 bit) | has no number (1 bit) | has copies (1 bit) | of the first 256 (1 bit)
//!     | label, lower bits (1) | number (2), if it has one | copy number (4), if it has one | header in short | payload
//! ```

use crate::labels::LABELS;
use multipath::{COPY_NUMBER, CopyNumber, Ecn, NUMBER, Number};

/// Bytes before the payload at most.
pub(crate) const ROOM: usize = NUMBER + COPY_NUMBER;

/// The bit that says that there is a label.
const HAS_LABEL: u8 = 8;
const HAS_NO_NUMBER: u8 = 4;
const HAS_COPIES: u8 = 2;

/// What the payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A packet of this protocol, with its header.
    Protocol(u8),
    /// A packet of the flow that has this label, with its header in short.
    Label(u16),
}

/// What stands before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// What follows.
    pub what: What,
    /// Its place in its flow.
    pub number: Option<Number>,
    /// What it has in common with its copies; one of the two is there, or a label.
    pub copy: Option<CopyNumber>,
    /// The mark of its inner IP header.
    pub ecn: Ecn,
}

impl Header {
    /// Bytes that it takes.
    pub(crate) fn len(&self) -> usize {
        let copy = if self.copy.is_some() { COPY_NUMBER } else { 0 };
        match (self.what, self.number) {
            (What::Label(_), None) => NUMBER - size_of::<u16>() + copy,
            _ => NUMBER + copy,
        }
    }

    /// Its bytes, of which [`Header::len`] count.
    pub(crate) fn bytes(&self) -> [u8; ROOM] {
        let is_early = u8::from(self.number.is_some_and(|number| number.is_early));
        let number = self.number.map_or(0, |number| number.value).to_be_bytes();
        let [c, d, e, f] = self.copy.map_or(0, |CopyNumber(copy)| copy).to_be_bytes();
        let (first, second) = match self.what {
            What::Label(label) => {
                let copies = if self.copy.is_some() { HAS_COPIES } else { 0 };
                let none = if self.number.is_none() { HAS_NO_NUMBER } else { 0 };
                let [upper, lower] = label.to_be_bytes();
                (upper << 6 | self.ecn.bits() << 4 | HAS_LABEL | none | copies | is_early, lower)
            }
            What::Protocol(next_header) => {
                let kind = match (self.number, self.copy) {
                    (Some(_), None) => 2 | is_early,
                    (Some(_), Some(_)) => 4 | is_early,
                    (None, _) => 6,
                };
                (self.ecn.bits() << 4 | kind, next_header)
            }
        };
        let [a, b] = number;
        match (self.what, self.number) {
            (What::Label(_), None) => [first, second, c, d, e, f, 0, 0],
            _ => [first, second, a, b, c, d, e, f],
        }
    }

    /// Reads it. `None` where it is something else.
    pub(crate) fn parse(message: &[u8]) -> Option<Self> {
        let [first, second] = *message.first_chunk()?;
        let (kind, upper) = (first & 0x0f, first >> 4);
        let (what, has_number, has_copies) = if kind & HAS_LABEL != 0 {
            let label = u16::from_be_bytes([upper >> 2, second]);
            (What::Label(label), kind & HAS_NO_NUMBER == 0, kind & HAS_COPIES != 0)
        } else {
            if !(2..=6).contains(&kind) || upper >= 4 {
                return None;
            }
            (What::Protocol(second), kind != 6, kind >= 4)
        };
        let is_there = has_number || matches!(what, What::Protocol(_));
        let (value, rest) =
            if is_there { message.get(2..)?.split_first_chunk()? } else { (&[0; 2], message.get(2..)?) };
        let number = Number { value: u16::from_be_bytes(*value), is_early: kind & 1 == 1 };
        let copy = if has_copies { Some(CopyNumber(u32::from_be_bytes(*rest.first_chunk()?))) } else { None };
        Some(Self { what, number: has_number.then_some(number), copy, ecn: Ecn::of(upper & 3) })
    }
}

const _: () = assert!(LABELS == 1 << 10, "a label has ten bits");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(header: &Header) -> Vec<u8> {
        header.bytes()[..header.len()].to_vec()
    }

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(
            number in prop::option::of((any::<u16>(), any::<bool>())),
            copy in prop::option::of(any::<u32>()),
            what in prop_oneof![any::<u8>().prop_map(What::Protocol), (0..LABELS).prop_map(What::Label)],
            ecn in 0u8..4,
        ) {
            prop_assume!(number.is_some() || copy.is_some() || matches!(what, What::Label(_)));
            let number = number.map(|(value, is_early)| Number { value, is_early });
            let header = Header { what, number, copy: copy.map(CopyNumber), ecn: Ecn::of(ecn) };
            let bytes = emitted(&header);
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[..bytes.len() - 1]), None);
        }
    }

    /// Those without copies as earlier versions sent them.
    #[test]
    fn the_bytes_are_those_of_the_wire_format() {
        let number = Number { value: 0x1234, is_early: true };
        let header = Header { what: What::Protocol(6), number: Some(number), copy: None, ecn: Ecn::Ect0 };
        assert_eq!(emitted(&header), [0x23, 6, 0x12, 0x34]);
        let late = Header { number: Some(Number { is_early: false, ..number }), what: What::Protocol(17), ..header };
        assert_eq!(emitted(&Header { ecn: Ecn::NotEct, ..late }), [0x02, 17, 0x12, 0x34]);
        let copied = Header { copy: Some(CopyNumber(0x0506_0708)), ..header };
        assert_eq!(emitted(&copied), [0x25, 6, 0x12, 0x34, 5, 6, 7, 8]);
        assert_eq!(emitted(&Header { number: None, ..copied }), [0x26, 6, 0, 0, 5, 6, 7, 8]);
        let labelled = Header { what: What::Label(0x2ab), ..copied };
        assert_eq!(emitted(&labelled), [0xab, 0xab, 0x12, 0x34, 5, 6, 7, 8]);
        assert_eq!(emitted(&Header { copy: None, number: None, ..labelled }), [0xac, 0xab]);
        assert_eq!(Header::parse(&[1, 0, 0, 0]), None);
        assert_eq!(Header::parse(&[7, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Header::parse(&[0x42, 6, 0, 0]), None);
    }
}

//! The numbers of a packet, as they stand before the payload inside ESP, where the peer gives feedback.
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

use multipath::{CopyNumber, Ecn, Number};

/// Bytes before the payload at most.
pub(crate) const ROOM: usize = multipath::NUMBER + multipath::COPY_NUMBER;

/// What stands before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The payload's protocol.
    pub next_header: u8,
    /// Its place in its flow.
    pub number: Option<Number>,
    /// What it has in common with its copies; one of the two is there.
    pub copy: Option<CopyNumber>,
    /// The mark of its inner IP header.
    pub ecn: Ecn,
}

impl Header {
    /// Bytes that it takes.
    pub(crate) fn len(&self) -> usize {
        if self.copy.is_some() { ROOM } else { multipath::NUMBER }
    }

    /// Writes it to the beginning of `out`, as far as that goes.
    pub(crate) fn emit(&self, out: &mut [u8]) {
        let kind = match (self.number, self.copy) {
            (Some(number), None) => 2 | u8::from(number.is_early),
            (Some(number), Some(_)) => 4 | u8::from(number.is_early),
            (None, _) => 6,
        };
        let [a, b] = self.number.map_or(0, |number| number.value).to_be_bytes();
        let [c, d, e, f] = self.copy.map_or(0, |CopyNumber(copy)| copy).to_be_bytes();
        let bytes = [self.ecn.bits() << 4 | kind, self.next_header, a, b, c, d, e, f];
        out.iter_mut().zip(bytes).take(self.len()).for_each(|(out, byte)| *out = byte);
    }

    /// Reads it. `None` where it is something else.
    pub(crate) fn parse(message: &[u8]) -> Option<Self> {
        let [first, next_header, a, b] = *message.first_chunk()?;
        let (kind, ecn) = (first & 0x0f, first >> 4);
        if !(2..=6).contains(&kind) || ecn >= 4 {
            return None;
        }
        let number = Number { value: u16::from_be_bytes([a, b]), is_early: kind & 1 == 1 };
        let copy = match kind {
            2 | 3 => None,
            _ => Some(CopyNumber(u32::from_be_bytes(*message.get(multipath::NUMBER..)?.first_chunk()?))),
        };
        Some(Self { next_header, number: (kind != 6).then_some(number), copy, ecn: Ecn::of(ecn) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(header: &Header) -> Vec<u8> {
        let mut bytes = vec![0; header.len()];
        header.emit(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(
            number in prop::option::of((any::<u16>(), any::<bool>())),
            copy in prop::option::of(any::<u32>()),
            next_header: u8,
            ecn in 0u8..4,
        ) {
            prop_assume!(number.is_some() || copy.is_some());
            let number = number.map(|(value, is_early)| Number { value, is_early });
            let header = Header { next_header, number, copy: copy.map(CopyNumber), ecn: Ecn::of(ecn) };
            let bytes = emitted(&header);
            prop_assert_eq!(Header::parse(&bytes), Some(header));
            prop_assert_eq!(Header::parse(&bytes[..bytes.len() - 1]), None);
        }
    }

    /// Those without copies as earlier versions sent them.
    #[test]
    fn the_bytes_are_those_of_the_wire_format() {
        let number = Number { value: 0x1234, is_early: true };
        let header = Header { next_header: 6, number: Some(number), copy: None, ecn: Ecn::Ect0 };
        assert_eq!(emitted(&header), [0x23, 6, 0x12, 0x34]);
        let late = Header { number: Some(Number { is_early: false, ..number }), next_header: 17, ..header };
        assert_eq!(emitted(&Header { ecn: Ecn::NotEct, ..late }), [0x02, 17, 0x12, 0x34]);
        let copied = Header { copy: Some(CopyNumber(0x0506_0708)), ..header };
        assert_eq!(emitted(&copied), [0x25, 6, 0x12, 0x34, 5, 6, 7, 8]);
        assert_eq!(emitted(&Header { number: None, ..copied }), [0x26, 6, 0, 0, 5, 6, 7, 8]);
        assert_eq!(Header::parse(&[1, 0, 0, 0]), None);
        assert_eq!(Header::parse(&[7, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Header::parse(&[0x42, 6, 0, 0]), None);
    }
}

//! What stands before the payload inside ESP, where the peer gives feedback: the packet's numbers, and what it is.
//!
//! Of what is most of all traffic, ESP's next header says that, in numbers that IANA has not assigned, where both hosts have
//! [`short_numbers`](hip::feedback::Features::short_numbers):
//!
//! ```text
//! number in the flow (2) | payload
//! ```
//!
//! | next header | payload |
//! |---|---|
//! | 148 + ECN | TCP |
//! | 152 + ECN | TCP, of the first 256 of its flow |
//! | 156 + ECN | UDP |
//! | 160 + ECN | UDP, of the first 256 of its flow |
//! | 164 + 2 · label (+ 1: ECT(0)) | of a flow with one of the first 44 labels (see [`crate::labels`]), with its header in short |
//!
//! All else has a header, behind the next header 253:
//!
//! ```text
//! ECN (4 bits) | kind (4 bits) | next header (1) | number (2), but for kind 0 | copy number (4), if the kind has one | payload
//! ```
//!
//! | kind | number in the flow | has copies |
//! |---|---|---|
//! | 0 | none: of a protocol whose number is one of these next headers | no |
//! | 2 | yes | no |
//! | 3 | yes, of the first 256 | no |
//! | 4 | yes | yes |
//! | 5 | yes, of the first 256 | yes |
//! | 6 | none | yes |
//!
//! Where the payload's header is in short, its label takes the place of its protocol:
//!
//! ```text
//! label, upper bits (2 bits) | ECN (2 bits) | 1 (1 bit) | has no number (1 bit) | has copies (1 bit) | of the first 256 (1 bit)
//!     | label, lower bits (1) | number (2), if it has one | copy number (4), if it has one | header in short | payload
//! ```

use crate::labels::LABELS;
use hip::feedback::NEXT_HEADER;
use multipath::{COPY_NUMBER, CopyNumber, Ecn, NUMBER, Number};
use std::ops::RangeInclusive;
use wire::ip::protocol;

/// Bytes that say what a number is of, where ESP's next header does not.
const WHAT: usize = 2;
/// Bytes of the number of copies.
const COPY: usize = 4;
/// Bytes before the payload at most.
pub(crate) const ROOM: usize = WHAT + NUMBER + COPY;

/// The next headers that say what follows a number.
const NEXT_HEADERS: RangeInclusive<u8> = 148..=251;
/// The first of them that is of a label.
const LABELLED: u8 = 164;
/// So many labels, the first ones, have next headers.
pub(crate) const SHORTEST: u16 = 44;

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
    /// What it has in common with its copies.
    pub copy: Option<CopyNumber>,
    /// The mark of its inner IP header.
    pub ecn: Ecn,
}

/// A header in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emitted {
    /// ESP's next header.
    pub next_header: u8,
    bytes: [u8; ROOM],
    len: usize,
}

impl Emitted {
    /// What stands before the payload.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn of(next_header: u8, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; ROOM];
        bytes.iter_mut().zip(parts.iter().copied().flatten()).for_each(|(to, from)| *to = *from);
        Self { next_header, bytes, len: parts.iter().map(|part| part.len()).sum() }
    }
}

/// The most bytes before a payload that goes with its whole header and has no copies.
pub(crate) fn of_whole(short_numbers: bool) -> usize {
    NUMBER + if short_numbers { 0 } else { WHAT }
}

impl Header {
    /// What ESP's next header says of it, where that says all but the number.
    fn in_next_header(&self) -> Option<(u8, Number)> {
        let (Some(number), None) = (self.number, self.copy) else { return None };
        let early = if number.is_early { 4 } else { 0 };
        let next_header = match (self.what, self.ecn) {
            (What::Protocol(protocol::TCP), ecn) => *NEXT_HEADERS.start() + early + ecn.bits(),
            (What::Protocol(protocol::UDP), ecn) => *NEXT_HEADERS.start() + 8 + early + ecn.bits(),
            (What::Label(label), Ecn::NotEct | Ecn::Ect0) if !number.is_early => {
                let label = u8::try_from(label).ok().filter(|_| label < SHORTEST)?;
                LABELLED + 2 * label + u8::from(self.ecn == Ecn::Ect0)
            }
            _ => return None,
        };
        Some((next_header, number))
    }

    /// Its bytes. For a peer that has short numbers they are as few as can be.
    pub(crate) fn emit(&self, short_numbers: bool) -> Emitted {
        if short_numbers && let Some((next_header, number)) = self.in_next_header() {
            return Emitted::of(next_header, &[&number.value.to_be_bytes()]);
        }
        if let Self { what: What::Protocol(protocol), number: None, copy: None, .. } = *self {
            let is_taken = NEXT_HEADERS.contains(&protocol) || protocol == NEXT_HEADER;
            return match short_numbers && is_taken {
                true => Emitted::of(NEXT_HEADER, &[&[0, protocol]]),
                false => Emitted::of(protocol, &[]),
            };
        }
        let is_early = u8::from(self.number.is_some_and(|number| number.is_early));
        let (what, has_place) = match self.what {
            What::Label(label) => {
                let copies = if self.copy.is_some() { HAS_COPIES } else { 0 };
                let none = if self.number.is_none() { HAS_NO_NUMBER } else { 0 };
                let [upper, lower] = label.to_be_bytes();
                let first = upper << 6 | self.ecn.bits() << 4 | HAS_LABEL | none | copies | is_early;
                ([first, lower], self.number.is_some())
            }
            What::Protocol(next_header) => {
                let kind = match (self.number, self.copy) {
                    (Some(_), None) => 2 | is_early,
                    (Some(_), Some(_)) => 4 | is_early,
                    (None, _) => 6,
                };
                ([self.ecn.bits() << 4 | kind, next_header], true)
            }
        };
        let number = self.number.map_or(0, |number| number.value).to_be_bytes();
        let copy = self.copy.map(|CopyNumber(copy)| copy.to_be_bytes());
        let number = if has_place { &number[..] } else { &[] };
        Emitted::of(NEXT_HEADER, &[&what, number, copy.as_ref().map_or(&[], |copy| &copy[..])])
    }

    /// Reads what a peer sent that has short numbers or not, and how many bytes it has. `None` where it is something else: behind the
    /// next header [`NEXT_HEADER`] a message of the peer's own, behind another one a packet of that protocol.
    pub(crate) fn parse(next_header: u8, message: &[u8], short_numbers: bool) -> Option<(Self, usize)> {
        if next_header != NEXT_HEADER {
            let is_one = short_numbers && NEXT_HEADERS.contains(&next_header);
            let value = u16::from_be_bytes(*message.first_chunk().filter(|_| is_one)?);
            let (what, is_early, ecn) = match next_header.checked_sub(LABELLED) {
                Some(label) => {
                    (What::Label((label / 2).into()), false, [Ecn::NotEct, Ecn::Ect0][usize::from(label % 2)])
                }
                None => {
                    let which = next_header - NEXT_HEADERS.start();
                    let protocol = if which & 8 == 0 { protocol::TCP } else { protocol::UDP };
                    (What::Protocol(protocol), which & 4 != 0, Ecn::of(which & 3))
                }
            };
            return Some((Self { what, number: Some(Number { value, is_early }), copy: None, ecn }, NUMBER));
        }
        let ([first, second], rest) = message.split_first_chunk::<WHAT>()?;
        let (kind, upper) = (first & 0x0f, first >> 4);
        let (what, has_number, has_copies) = if kind & HAS_LABEL != 0 {
            let label = u16::from_be_bytes([upper >> 2, *second]);
            (What::Label(label), kind & HAS_NO_NUMBER == 0, kind & HAS_COPIES != 0)
        } else {
            if !matches!(kind, 0 | 2..=6) || upper >= 4 || kind == 0 && !short_numbers {
                return None;
            }
            (What::Protocol(*second), !matches!(kind, 0 | 6), kind >= 4)
        };
        let has_place = has_number || kind == 6;
        let (value, rest) = if has_place { rest.split_first_chunk()? } else { (&[0; NUMBER], rest) };
        let number = Number { value: u16::from_be_bytes(*value), is_early: kind & 1 == 1 };
        let copy = if has_copies { Some(CopyNumber(u32::from_be_bytes(*rest.first_chunk()?))) } else { None };
        let len = WHAT + if has_place { NUMBER } else { 0 } + if has_copies { COPY } else { 0 };
        Some((Self { what, number: has_number.then_some(number), copy, ecn: Ecn::of(upper & 3) }, len))
    }
}

const _: () = assert!(LABELS == 1 << 10, "a label has ten bits");
const _: () = assert!(ROOM == NUMBER + COPY_NUMBER, "copies take what senders count");
const _: () = assert!(LABELLED as u16 + 2 * SHORTEST - 1 == *NEXT_HEADERS.end() as u16, "each has two next headers");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(
            number in prop::option::of((any::<u16>(), any::<bool>())),
            copy in prop::option::of(any::<u32>()),
            what in prop_oneof![
                prop::sample::select(vec![6, 17]).prop_map(What::Protocol),
                any::<u8>().prop_map(What::Protocol),
                (0..LABELS).prop_map(What::Label),
                (0..50_u16).prop_map(What::Label),
            ],
            ecn in 0u8..4,
            short_numbers: bool,
        ) {
            let number = number.map(|(value, is_early)| Number { value, is_early });
            let is_bare = number.is_none() && copy.is_none() && matches!(what, What::Protocol(_));
            let ecn = if is_bare { Ecn::NotEct } else { Ecn::of(ecn) };
            let header = Header { what, number, copy: copy.map(CopyNumber), ecn };
            let emitted = header.emit(short_numbers);
            let parsed = Header::parse(emitted.next_header, emitted.bytes(), short_numbers);
            if is_bare && emitted.bytes().is_empty() {
                prop_assert_eq!((What::Protocol(emitted.next_header), parsed), (what, None));
            } else {
                prop_assert_eq!(parsed, Some((header, emitted.bytes().len())));
                let cut = &emitted.bytes()[..emitted.bytes().len() - 1];
                prop_assert_eq!(Header::parse(emitted.next_header, cut, short_numbers), None);
            }
            let whole = matches!(what, What::Protocol(6 | 17)) && copy.is_none();
            prop_assert!(!whole || emitted.bytes().len() <= of_whole(short_numbers));
        }

        /// What a program's packet of any protocol is taken for, it is.
        #[test]
        fn no_two_packets_have_the_same_bytes(a: (u8, bool, u8), b: (u8, bool, u8)) {
            let emitted = [a, b].map(|(protocol, is_numbered, ecn)| {
                let number = is_numbered.then_some(Number { value: 7, is_early: false });
                let ecn = if is_numbered { Ecn::of(ecn) } else { Ecn::NotEct };
                let header = Header { what: What::Protocol(protocol), number, copy: None, ecn };
                (header, header.emit(true))
            });
            let [(one, first), (other, second)] = emitted;
            prop_assert!(one == other || first != second);
        }
    }

    /// Those with a next header of 253 as earlier versions sent them.
    #[test]
    fn the_bytes_are_those_of_the_wire_format() {
        let number = Number { value: 0x1234, is_early: true };
        let header = Header { what: What::Protocol(6), number: Some(number), copy: None, ecn: Ecn::Ect0 };
        let late = Header { number: Some(Number { is_early: false, ..number }), what: What::Protocol(17), ..header };
        let unmarked = Header { ecn: Ecn::NotEct, ..late };
        let copied = Header { copy: Some(CopyNumber(0x0506_0708)), ..header };
        let labelled = Header { what: What::Label(0x2ab), ..copied };
        let expected: [(Header, &[u8]); 6] = [
            (header, &[0x23, 6, 0x12, 0x34]),
            (unmarked, &[0x02, 17, 0x12, 0x34]),
            (copied, &[0x25, 6, 0x12, 0x34, 5, 6, 7, 8]),
            (Header { number: None, ..copied }, &[0x26, 6, 0, 0, 5, 6, 7, 8]),
            (labelled, &[0xab, 0xab, 0x12, 0x34, 5, 6, 7, 8]),
            (Header { copy: None, number: None, ..labelled }, &[0xac, 0xab]),
        ];
        for (header, bytes) in expected {
            let emitted = header.emit(false);
            assert_eq!((emitted.next_header, emitted.bytes()), (NEXT_HEADER, bytes));
        }
        let short = |header: Header| (header.emit(true).next_header, header.emit(true).bytes().to_vec());
        assert_eq!(short(header), (154, vec![0x12, 0x34]));
        assert_eq!(short(unmarked), (156, vec![0x12, 0x34]));
        assert_eq!(short(Header { what: What::Label(43), ..late }), (251, vec![0x12, 0x34]));
        assert_eq!(short(Header { what: What::Label(43), ..header }), (NEXT_HEADER, vec![0x29, 43, 0x12, 0x34]));
        assert_eq!(short(Header { what: What::Label(44), ..late }), (NEXT_HEADER, vec![0x28, 44, 0x12, 0x34]));
        assert_eq!(short(copied).0, NEXT_HEADER);
        let bare = Header { what: What::Protocol(200), number: None, copy: None, ecn: Ecn::NotEct };
        assert_eq!(short(bare), (NEXT_HEADER, vec![0, 200]));
        assert_eq!(bare.emit(false).next_header, 200);
        for (message, short_numbers) in
            [(&[1, 0, 0, 0][..], true), (&[7, 0, 0, 0, 0, 0, 0, 0], true), (&[0x42, 6, 0, 0], true), (&[0, 200], false)]
        {
            assert_eq!(Header::parse(NEXT_HEADER, message, short_numbers), None);
        }
        assert_eq!(Header::parse(154, &[0x12, 0x34], false), None);
    }
}

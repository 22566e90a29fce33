//! TCP segments (RFC 9293): a checked view with the options that are read on the way (MSS, window scale, SACK of
//! RFC 2018, timestamps of RFC 7323), and emission.

use std::net::IpAddr;

use crate::Malformed;
use crate::checksum::{self, Sum, pseudo};
use crate::ip::protocol;

/// Bytes of a TCP header without options.
pub const HEADER: usize = 20;
/// Where the window stands in the header.
const WINDOW_AT: usize = 14;
/// Where the checksum stands in the header.
pub(crate) const CHECKSUM_AT: usize = 16;

/// The control bits (RFC 9293 §3.1; ECN bits of RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// True when every bit of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A checked TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    header: &'a [u8; HEADER],
    options: &'a [u8],
    payload: &'a [u8],
}

/// One block of a selective acknowledgment: the sequence numbers `start` up to, not including, `end` have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// The sequence number after the last.
    pub end: u32,
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Maximum segment size, in bytes.
    Mss(u16),
    /// Window scale: a shift of 0 to 14 bits.
    WindowScale(u8),
    /// SACK is understood.
    SackPermitted,
    /// SACK blocks, 8 bytes each; see [`Segment::sack_blocks`].
    Sack(&'a [u8]),
    /// Timestamp value and echo reply.
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The clock value that is echoed.
        echo: u32,
    },
    /// Any other option: its kind and content.
    Other(u8, &'a [u8]),
}

impl<'a> Segment<'a> {
    /// Reads a segment. The checksum is not judged: see [`Segment::checksum_is_right`].
    ///
    /// # Errors
    /// [`Malformed`] when the header is cut or its length impossible.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Malformed::Truncated)?;
        let options_len = (usize::from(header[12] >> 4) * 4).checked_sub(HEADER).ok_or(Malformed::Length)?;
        let (options, payload) = rest.split_at_checked(options_len).ok_or(Malformed::Truncated)?;
        Ok(Self { header, options, payload })
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// Sequence number of the first byte, or of the SYN.
    pub fn seq(&self) -> u32 {
        u32::from_be_bytes([self.header[4], self.header[5], self.header[6], self.header[7]])
    }

    /// The next sequence number that the sender expects; counts when [`Flags::ACK`] is set.
    pub fn ack(&self) -> u32 {
        u32::from_be_bytes([self.header[8], self.header[9], self.header[10], self.header[11]])
    }

    /// Control bits.
    pub fn flags(&self) -> Flags {
        Flags(self.header[13])
    }

    /// The window field as it stands, not scaled.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[16], self.header[17]])
    }

    /// The urgent pointer.
    pub fn urgent(&self) -> u16 {
        u16::from_be_bytes([self.header[18], self.header[19]])
    }

    /// The data.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Bytes of data.
    pub fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// The sequence space the segment takes: data plus one each for SYN and FIN (RFC 9293 §3.4).
    pub fn sequence_len(&self) -> usize {
        let flags = self.flags();
        self.payload.len() + usize::from(flags.contains(Flags::SYN)) + usize::from(flags.contains(Flags::FIN))
    }

    /// The bytes of the options.
    pub fn option_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// The options in order. A malformed option ends the list (RFC 9293 §3.2 asks for robustness).
    pub fn options(&self) -> Options<'a> {
        Options(self.options)
    }

    /// The maximum segment size that a SYN announces.
    pub fn mss(&self) -> Option<u16> {
        self.options().find_map(|option| if let TcpOption::Mss(mss) = option { Some(mss) } else { None })
    }

    /// The blocks of the SACK option, up to four, in the order the receiver gave them.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + use<'a> {
        let bytes =
            self.options().find_map(|option| if let TcpOption::Sack(bytes) = option { Some(bytes) } else { None });
        bytes.unwrap_or_default().as_chunks::<8>().0.iter().map(|b| SackBlock {
            start: u32::from_be_bytes([b[0], b[1], b[2], b[3]]),
            end: u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        })
    }

    /// Timestamp value and echo reply.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options().find_map(|option| match option {
            TcpOption::Timestamps { value, echo } => Some((value, echo)),
            _ => None,
        })
    }

    /// True when the checksum fits the content between these addresses; false also for addresses of two families.
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr) -> bool {
        let length = HEADER + self.options.len() + self.payload.len();
        let Ok(length) = u32::try_from(length) else { return false };
        pseudo(source, destination, protocol::TCP, length)
            .is_some_and(|sum| sum.bytes(self.header).bytes(self.options).bytes(self.payload).folded() == 0xffff)
    }
}

/// Changes the window field of a segment, and its checksum with it (RFC 1624). What is no segment is left as it is.
pub fn set_window(segment: &mut [u8], window: u16) {
    let Ok(view) = Segment::parse(segment) else { return };
    let sum = checksum::update(view.checksum(), Sum::ZERO.word(view.window()), Sum::ZERO.word(window));
    let Some(header) = segment.first_chunk_mut::<HEADER>() else { return };
    header[WINDOW_AT..WINDOW_AT + 2].copy_from_slice(&window.to_be_bytes());
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Makes the MSS that a SYN announces (RFC 9293 §3.7.1) no more than `mss`, and changes its checksum with it (RFC 1624). Whether it
/// was more. What is no segment, or has no such option, is left as it is.
pub fn clamp_mss(segment: &mut [u8], mss: u16) -> bool {
    let Ok(view) = Segment::parse(segment) else { return false };
    let Some(announced) = view.mss().filter(|announced| *announced > mss) else { return false };
    // Where its two bytes are: behind the options that precede it, its kind and its length.
    let mut options = view.options();
    let mut at = None;
    while let Some(option) = options.next() {
        if let TcpOption::Mss(_) = option {
            at = (HEADER + view.option_bytes().len() - options.0.len()).checked_sub(2);
            break;
        }
    }
    let Some(at) = at else { return false };
    // Option words may stand across the words of the checksum.
    let sums = |bytes: [u8; 2]| match at % 2 {
        0 => Sum::ZERO.word(u16::from_be_bytes(bytes)),
        _ => Sum::ZERO.word(u16::from(bytes[0])).word(u16::from(bytes[1]) << 8),
    };
    let checksum = checksum::update(view.checksum(), sums(announced.to_be_bytes()), sums(mss.to_be_bytes()));
    if let Some(bytes) = segment.get_mut(at..at + 2) {
        bytes.copy_from_slice(&mss.to_be_bytes());
    }
    if let Some(bytes) = segment.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) {
        bytes.copy_from_slice(&checksum.to_be_bytes());
    }
    true
}

/// Cuts a segment into several of at most `most` bytes, header and options included, all about as long: what a network device does
/// that segments for its host. Each is appended to `room` bytes of zeros. Empty where that cannot be: what begins or
/// resets a connection, what is urgent, or a header that leaves no room.
pub fn cut(segment: &Segment<'_>, most: usize, room: usize, source: IpAddr, destination: IpAddr) -> Vec<Vec<u8>> {
    /// Less data in a segment than this are not worth it.
    const LEAST: usize = 64;
    let flags = segment.flags();
    let data = most.saturating_sub(HEADER + segment.option_bytes().len());
    let whole = [Flags::SYN, Flags::RST, Flags::URG].into_iter().any(|flag| flags.contains(flag));
    if whole || data < LEAST || segment.payload().is_empty() {
        return Vec::new();
    }
    let count = segment.payload_len().div_ceil(data);
    let pieces = segment.payload().chunks(segment.payload_len().div_ceil(count));
    let mut done = 0_u32;
    let mut out = Vec::with_capacity(count);
    for piece in pieces {
        let (is_first, is_last) = (out.is_empty(), out.len() + 1 == count);
        // FIN and PSH belong to the last byte; CWR is said once (RFC 3168 §6.1.2).
        let without = if is_last { 0 } else { Flags::FIN.0 | Flags::PSH.0 } | if is_first { 0 } else { Flags::CWR.0 };
        let header = Header {
            src_port: segment.src_port(),
            dst_port: segment.dst_port(),
            seq: segment.seq().wrapping_add(done),
            ack: segment.ack(),
            flags: Flags(flags.0 & !without),
            window: segment.window(),
            urgent: segment.urgent(),
            options: segment.option_bytes(),
        };
        let mut bytes = Vec::with_capacity(room + most);
        bytes.resize(room, 0);
        if header.emit(source, destination, piece, &mut bytes).is_err() {
            return Vec::new();
        }
        done = done.wrapping_add(piece.len() as u32);
        out.push(bytes);
    }
    out
}

/// Iterator over the options of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        loop {
            let (&kind, rest) = self.0.split_first()?;
            match kind {
                0 => {
                    self.0 = &[];
                    return None;
                }
                1 => self.0 = rest,
                _ => {
                    let length = rest.first().map(|&length| usize::from(length));
                    let content = length.and_then(|length| self.0.get(2..length));
                    let Some((content, length)) = content.zip(length) else {
                        self.0 = &[];
                        return None;
                    };
                    self.0 = self.0.get(length..).unwrap_or_default();
                    return Some(match (kind, content) {
                        (2, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
                        (3, &[shift]) => TcpOption::WindowScale(shift.min(14)), // RFC 7323 §2.3
                        (4, &[]) => TcpOption::SackPermitted,
                        (5, blocks) if blocks.len() % 8 == 0 => TcpOption::Sack(blocks),
                        (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
                            value: u32::from_be_bytes([a, b, c, d]),
                            echo: u32::from_be_bytes([e, f, g, h]),
                        },
                        _ => TcpOption::Other(kind, content),
                    });
                }
            }
        }
    }
}

/// A TCP header to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// The options, padded to a multiple of 4 bytes, 40 at most.
    pub options: &'a [u8],
}

impl Header<'_> {
    /// Appends header and payload with the checksum for these addresses.
    ///
    /// # Errors
    /// [`Malformed::Length`] for options of a wrong length or a segment past 65,535 bytes, [`Malformed::Version`] for
    /// addresses of two families; nothing is written then.
    pub fn emit(
        &self,
        source: IpAddr,
        destination: IpAddr,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let header_len = HEADER + self.options.len();
        if !header_len.is_multiple_of(4) || header_len > 60 {
            return Err(Malformed::Length);
        }
        let length = u16::try_from(header_len + payload.len()).map_err(|_| Malformed::Length)?;
        let sum = pseudo(source, destination, protocol::TCP, length.into()).ok_or(Malformed::Version)?;
        let mut header = [0; HEADER];
        header[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.to_be_bytes());
        header[12] = (header_len as u8 / 4) << 4;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        let checksum = sum.bytes(&header).bytes(self.options).bytes(payload).checksum();
        header[CHECKSUM_AT..18].copy_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(self.options);
        out.extend_from_slice(payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0x20, 1, 2, 3, 4, 5, 6));
    const B: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0x20, 6, 5, 4, 3, 2, 1));

    proptest! {
        /// The option alone is different, wherever it stands, and the checksum fits.
        #[test]
        fn an_mss_is_made_less_and_nothing_else_is(before in 0usize..7, announced: u16, mss: u16, payload in proptest::collection::vec(any::<u8>(), 0..9)) {
            let mut options = vec![1; before];
            options.extend([2, 4]);
            options.extend(announced.to_be_bytes());
            options.extend([3, 3, 7]);
            options.resize(options.len().next_multiple_of(4), 1);
            let header = Header { seq: 7, flags: Flags::SYN, options: &options, ..Header::default() };
            let mut bytes = Vec::new();
            header.emit(A, B, &payload, &mut bytes).unwrap();
            let mut clamped = bytes.clone();
            prop_assert_eq!(clamp_mss(&mut clamped, mss), announced > mss);
            let view = Segment::parse(&clamped).unwrap();
            prop_assert!(view.checksum_is_right(A, B));
            prop_assert_eq!(view.mss(), Some(announced.min(mss)));
            let at = HEADER + before + 2;
            clamped[at..at + 2].copy_from_slice(&announced.to_be_bytes());
            clamped[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&bytes[CHECKSUM_AT..CHECKSUM_AT + 2]);
            prop_assert_eq!(clamped, bytes);
        }

        #[test]
        fn whatever_is_clamped_is_not_broken(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), mss: u16) {
            clamp_mss(&mut bytes, mss);
        }

        /// Together they are the segment: the same bytes at the same numbers, no longer than may be, and each with its checksum.
        #[test]
        fn pieces_are_the_segment(length in 1usize..3_000, most in 120usize..1_500, flags: u8, seq: u32, words in proptest::collection::vec(any::<[u8; 4]>(), 0..=10)) {
            let options = words.concat();
            let payload: Vec<u8> = (0..length).map(|n| (n / 7) as u8).collect();
            let header = Header { src_port: 1, dst_port: 2, seq, ack: 5, flags: Flags(flags), window: 9, urgent: 0, options: &options };
            let mut bytes = Vec::new();
            header.emit(A, B, &payload, &mut bytes).unwrap();
            let whole = Segment::parse(&bytes).unwrap();
            let pieces = cut(&whole, most, 3, A, B);
            let indivisible = [Flags::SYN, Flags::RST, Flags::URG].into_iter().any(|flag| Flags(flags).contains(flag));
            if indivisible || most < 20 + options.len() + 64 {
                prop_assert!(pieces.is_empty());
                return Ok(());
            }
            let mut together = Vec::new();
            for (number, piece) in pieces.iter().enumerate() {
                let view = Segment::parse(&piece[3..]).unwrap();
                prop_assert!(piece.len() - 3 <= most && view.checksum_is_right(A, B));
                prop_assert_eq!(view.seq(), seq.wrapping_add(together.len() as u32));
                prop_assert_eq!((view.ack(), view.window(), view.option_bytes()), (5, 9, &options[..]));
                let is_last = number + 1 == pieces.len();
                for flag in [Flags::FIN, Flags::PSH] {
                    prop_assert_eq!(view.flags().contains(flag), is_last && Flags(flags).contains(flag));
                }
                prop_assert_eq!(view.flags().contains(Flags::CWR), number == 0 && Flags(flags).contains(Flags::CWR));
                together.extend_from_slice(view.payload());
            }
            prop_assert_eq!(together, payload);
        }

        #[test]
        fn parse_after_emit_is_the_identity(ports: (u16, u16), numbers: (u32, u32), flags: u8, window: u16, urgent: u16,
                words in proptest::collection::vec(any::<[u8; 4]>(), 0..=10), payload in proptest::collection::vec(any::<u8>(), 0..90)) {
            let options = words.concat();
            let header = Header { src_port: ports.0, dst_port: ports.1, seq: numbers.0, ack: numbers.1, flags: Flags(flags), window, urgent, options: &options };
            let mut bytes = Vec::new();
            header.emit(A, B, &payload, &mut bytes).unwrap();
            let view = Segment::parse(&bytes).unwrap();
            prop_assert!(view.checksum_is_right(A, B));
            let again = Header { src_port: view.src_port(), dst_port: view.dst_port(), seq: view.seq(), ack: view.ack(),
                flags: view.flags(), window: view.window(), urgent: view.urgent(), options: view.option_bytes() };
            prop_assert_eq!(again, header);
            prop_assert_eq!(view.payload(), &payload[..]);
            prop_assert!(view.options().count() <= 40);

            // etherparse, a second implementation, reads the same and finds the same checksum.
            let (theirs, rest) = etherparse::TcpHeader::from_slice(&bytes).unwrap();
            let (IpAddr::V6(a), IpAddr::V6(b)) = (A, B) else { unreachable!() };
            prop_assert_eq!((theirs.sequence_number, theirs.acknowledgment_number, theirs.window_size), (view.seq(), view.ack(), view.window()));
            prop_assert_eq!((theirs.syn, theirs.ack, theirs.rst), (flags & 2 != 0, flags & 16 != 0, flags & 4 != 0));
            // It knows no reserved bits, which we leave zero, so the sums cover the same bytes.
            prop_assert_eq!(theirs.calc_checksum_ipv6_raw(a.octets(), b.octets(), rest).unwrap(), view.checksum());

            let mut changed = bytes.clone();
            set_window(&mut changed, !window);
            let view = Segment::parse(&changed).unwrap();
            prop_assert!(view.checksum_is_right(A, B));
            prop_assert_eq!(view.window(), !window);
            set_window(&mut changed, window);
            prop_assert_eq!(changed, bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(segment) = Segment::parse(&bytes) {
                prop_assert!(segment.options().count() <= 40);
                prop_assert!(segment.sack_blocks().count() <= 4);
                let _ = (segment.mss(), segment.timestamps(), segment.checksum_is_right(A, B));
            }
        }
    }

    #[test]
    fn the_options_of_a_linux_syn_and_of_an_ack_with_sack() {
        // As Linux sends them: MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
        let options = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
        let mut bytes = Vec::new();
        Header { flags: Flags::SYN, options: &options, ..Header::default() }.emit(A, B, &[], &mut bytes).unwrap();
        let syn = Segment::parse(&bytes).unwrap();
        assert_eq!((syn.mss(), syn.timestamps(), syn.sequence_len()), (Some(1460), Some((9, 0)), 1));
        assert!(syn.options().any(|option| option == TcpOption::WindowScale(7)));
        assert!(syn.options().any(|option| option == TcpOption::SackPermitted));

        let mut options = vec![1, 1, 5, 18];
        for number in [10u32, 20, 40, 50] {
            options.extend_from_slice(&number.to_be_bytes());
        }
        bytes.clear();
        Header { flags: Flags::ACK, options: &options, ..Header::default() }.emit(A, B, &[], &mut bytes).unwrap();
        let blocks: Vec<_> = Segment::parse(&bytes).unwrap().sack_blocks().collect();
        assert_eq!(blocks, [SackBlock { start: 10, end: 20 }, SackBlock { start: 40, end: 50 }]);
    }
}

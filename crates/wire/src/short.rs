//! Headers of TCP and UDP in short, between two ends that both know the flow: what is the same in each of its packets is left out.
//!
//! ```text
//! of TCP: flags (1) | sequence number (4) [ | window (2) | acknowledgment number (4) ] [ | TSval (2 or 4) | TSecr (2 or 4) ]
//! of UDP: nothing
//! ```
//!
//! While a download goes on, its sender has nothing new to acknowledge: window and acknowledgment number are left out while they are
//! those by which the flow is known, and the flag SYN, which no header in short has, says so.
//! Of timestamps the lower halves are enough where a clock is as slow as most are; one that counts microseconds has whole ones.
//! Lengths follow from the packet's, and the checksum is made anew. A header that has anything else in it goes whole: urgent data,
//! reserved bits, SYN, and options but timestamps that are padded as RFC 7323 appendix A has them.

use crate::checksum::pseudo_v6;
use crate::ip::protocol;
use crate::tcp::{self, Flags, Segment};
use crate::udp;
use std::net::Ipv6Addr;

/// NOP, NOP, and the kind and length of the timestamps that follow.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// TCP's header with timestamps.
const WITH_TIMESTAMPS: usize = tcp::HEADER + 12;
/// Bytes of a header of TCP in short, without timestamps and what it acknowledges.
const PLAIN: usize = 5;
/// Bytes of window and acknowledgment number.
const ACKNOWLEDGES: usize = 6;
/// Bytes that a header in short takes at most: that of TCP with whole timestamps.
pub const LONGEST: usize = PLAIN + ACKNOWLEDGES + 8;
/// Bytes by which a whole header is longer than one in short, at most.
pub const MOST_SAVED: usize = WITH_TIMESTAMPS - PLAIN - 4;
/// The flag that says that window and acknowledgment number are left out.
const RESTS: u8 = Flags::SYN.0;

/// What is the same in the headers of a flow, or nearly so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// TCP or UDP.
    pub protocol: u8,
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// What its sender acknowledges, where it is TCP.
    pub acknowledges: Acknowledges,
    /// Its timestamps.
    pub timestamps: Timestamps,
}

/// What a TCP says of the other direction: as it is in the header, zero in a flow that is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledges {
    /// The window.
    pub window: u16,
    /// The acknowledgment number.
    pub number: u32,
}

impl Acknowledges {
    fn bytes(self) -> [u8; ACKNOWLEDGES] {
        let ([a, b], [c, d, e, f]) = (self.window.to_be_bytes(), self.number.to_be_bytes());
        [a, b, c, d, e, f]
    }
}

/// The timestamps of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// There are none.
    #[default]
    None,
    /// They go in halves, for they differ by less than 2¹⁵ from this TSval and this TSecr.
    Near(u32, u32),
    /// They go as they are.
    Whole,
}

/// A header in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    bytes: [u8; LONGEST],
    len: usize,
    whole: usize,
}

impl Short {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Bytes of the whole header, in whose place it stands.
    pub fn whole(&self) -> usize {
        self.whole
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// The number nearest to `around` that has this lower half.
fn nearest(around: u32, lower: u16) -> u32 {
    around.wrapping_add_signed(i32::from(lower.wrapping_sub(around as u16).cast_signed()))
}

impl Template {
    /// Of a packet, which begins with its header; `None` where that cannot be short.
    pub fn of(protocol: u8, packet: &[u8]) -> Option<Self> {
        let (timestamps, acknowledges) = match protocol {
            protocol::TCP => of_segment(packet)?,
            protocol::UDP if half(packet, 4).map(usize::from) == Some(packet.len()) => Default::default(),
            _ => return None,
        };
        Some(Self { protocol, source: half(packet, 0)?, destination: half(packet, 2)?, acknowledges, timestamps })
    }

    /// Bytes of a whole header, and of one in short that has these flags first.
    fn lengths(&self, flags: u8) -> (usize, usize) {
        let plain = PLAIN + if flags & RESTS == 0 { ACKNOWLEDGES } else { 0 };
        match (self.protocol, self.timestamps) {
            (protocol::UDP, _) => (udp::HEADER, 0),
            (_, Timestamps::None) => (tcp::HEADER, plain),
            (_, Timestamps::Near(..)) => (WITH_TIMESTAMPS, plain + 4),
            (_, Timestamps::Whole) => (WITH_TIMESTAMPS, plain + 8),
        }
    }

    /// The header of a packet in short, where it can be, and the packet is the flow's.
    pub fn shorten(&self, packet: &[u8]) -> Option<Short> {
        let own = Self::of(self.protocol, packet)?;
        let stamps = match (self.timestamps, own.timestamps) {
            (Timestamps::None, Timestamps::None) => [0; 8],
            (Timestamps::Whole, Timestamps::Near(value, echo)) => {
                let [v, e] = [value, echo].map(u32::to_be_bytes);
                [v[0], v[1], v[2], v[3], e[0], e[1], e[2], e[3]]
            }
            (Timestamps::Near(near_value, near_echo), Timestamps::Near(value, echo)) => {
                if nearest(near_value, value as u16) != value || nearest(near_echo, echo as u16) != echo {
                    return None;
                }
                let [v, e] = [value, echo].map(|whole| (whole as u16).to_be_bytes());
                [v[0], v[1], e[0], e[1], 0, 0, 0, 0]
            }
            _ => return None,
        };
        if (own.source, own.destination) != (self.source, self.destination) {
            return None;
        }
        if self.protocol == protocol::UDP {
            return Some(Short { bytes: [0; LONGEST], len: 0, whole: udp::HEADER });
        }
        let [_, _, _, _, s0, s1, s2, s3, .., flags, _, _] = *packet.first_chunk::<16>()?;
        let rests = own.acknowledges == self.acknowledges;
        let flags = flags | if rests { RESTS } else { 0 };
        let acknowledges = own.acknowledges.bytes();
        let acknowledges = if rests { &[][..] } else { &acknowledges };
        let (whole, len) = self.lengths(flags);
        let mut bytes = [0; LONGEST];
        let parts = [&[flags, s0, s1, s2, s3][..], acknowledges, &stamps];
        bytes.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        Some(Short { bytes, len, whole })
    }

    /// Whether a packet, which begins with its header in short, is an acknowledgment of TCP and nothing else.
    pub fn is_bare_ack(&self, packet: &[u8]) -> bool {
        let ends = Flags::FIN.0 | Flags::RST.0;
        let is_one = |flags: &u8| flags & ends == 0 && packet.len() == self.lengths(*flags).1;
        self.protocol == protocol::TCP && packet.first().is_some_and(is_one)
    }

    /// Puts the whole header back of a packet whose header in short begins at `at`, between these addresses. Where it begins: there
    /// must be [`MOST_SAVED`] bytes in front. `None` where there are not, or the packet is cut; then it is not to be used.
    pub fn restore(&self, bytes: &mut [u8], at: usize, (from, to): (Ipv6Addr, Ipv6Addr)) -> Option<usize> {
        let flags = bytes.get(at).copied().unwrap_or_default();
        let (whole, len) = self.lengths(flags);
        let mut short = [0; LONGEST];
        short.get_mut(..len)?.copy_from_slice(bytes.get(at..at + len)?);
        let start = (at + len).checked_sub(whole)?;
        let packet = bytes.get_mut(start..)?;
        let length = u32::try_from(packet.len()).ok()?;
        let ports = [self.source, self.destination].map(u16::to_be_bytes);
        packet.get_mut(..4)?.copy_from_slice(ports.as_flattened());
        if self.protocol == protocol::UDP {
            let [a, b] = u16::try_from(length).ok()?.to_be_bytes();
            packet.get_mut(4..udp::HEADER)?.copy_from_slice(&[a, b, 0, 0]);
        } else {
            let (numbers, rest) = short.split_first_chunk::<PLAIN>()?;
            let (acknowledges, rest) = match flags & RESTS {
                0 => rest.split_first_chunk().map(|(own, rest)| (*own, rest))?,
                _ => (self.acknowledges.bytes(), rest),
            };
            let ([_, s0, s1, s2, s3], [w0, w1, a0, a1, a2, a3]) = (*numbers, acknowledges);
            let [a, b, c, d, e @ ..] = *rest.first_chunk::<8>()?;
            let offset = (whole as u8 / 4) << 4;
            packet.get_mut(4..12)?.copy_from_slice(&[s0, s1, s2, s3, a0, a1, a2, a3]);
            packet.get_mut(12..tcp::HEADER)?.copy_from_slice(&[offset, flags & !RESTS, w0, w1, 0, 0, 0, 0]);
            let stamps = match self.timestamps {
                Timestamps::None => None,
                Timestamps::Whole => Some([[a, b, c, d], e]),
                Timestamps::Near(value, echo) => {
                    let halves = [(value, [a, b]), (echo, [c, d])];
                    Some(halves.map(|(near, half)| nearest(near, u16::from_be_bytes(half)).to_be_bytes()))
                }
            };
            if let Some([value, echo]) = stamps {
                let options = packet.get_mut(tcp::HEADER..WITH_TIMESTAMPS)?;
                options.copy_from_slice([TIMESTAMPS, value, echo].as_flattened());
            }
        }
        let checksum = pseudo_v6(from, to, self.protocol, length).bytes(packet).checksum();
        let (checksum_at, checksum) = match self.protocol {
            protocol::UDP => (udp::CHECKSUM_AT, udp::never_zero(checksum)),
            _ => (tcp::CHECKSUM_AT, checksum),
        };
        packet.get_mut(checksum_at..checksum_at + 2)?.copy_from_slice(&checksum.to_be_bytes());
        Some(start)
    }
}

/// The timestamps of a segment, and what it acknowledges; `None` where it has anything that a header in short has not.
fn of_segment(segment: &[u8]) -> Option<(Timestamps, Acknowledges)> {
    let view = Segment::parse(segment).ok()?;
    // Behind the header's length, half a byte is reserved (RFC 9293 §3.1).
    let is_reserved_zero = segment.get(12)? & 0x0f == 0;
    if !is_reserved_zero || view.urgent() != 0 || view.flags().0 & (Flags::SYN | Flags::URG).0 != 0 {
        return None;
    }
    let options = view.option_bytes();
    let acknowledges = Acknowledges { window: view.window(), number: view.ack() };
    if options.is_empty() {
        return Some((Timestamps::None, acknowledges));
    }
    let is_padded = options.starts_with(&TIMESTAMPS) && tcp::HEADER + options.len() == WITH_TIMESTAMPS;
    let (value, echo) = view.timestamps().filter(|_| is_padded)?;
    Some((Timestamps::Near(value, echo), acknowledges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::{IpPacket, V6_HEADER};
    use proptest::prelude::*;
    use std::net::IpAddr;

    const FROM: Ipv6Addr = Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 1);
    const TO: Ipv6Addr = Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 2);

    /// The bytes of a segment, by another implementation.
    fn segment(timestamps: Option<(u32, u32)>, change: impl Fn(&mut etherparse::TcpHeader), data: &[u8]) -> Vec<u8> {
        use etherparse::TcpOptionElement::{Noop, Timestamp};
        let mut header = etherparse::TcpHeader::new(4000, 443, 0x0102_0304, 500);
        (header.ack, header.acknowledgment_number) = (true, 0x0506_0708);
        if let Some((value, echo)) = timestamps {
            header.set_options(&[Noop, Noop, Timestamp(value, echo)]).unwrap();
        }
        change(&mut header);
        header.checksum = header.calc_checksum_ipv6_raw(FROM.octets(), TO.octets(), data).unwrap();
        let mut bytes = Vec::new();
        header.write(&mut bytes).unwrap();
        bytes.extend_from_slice(data);
        bytes
    }

    fn restored(template: &Template, short: &Short, packet: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xee; MOST_SAVED];
        bytes.extend_from_slice(short.bytes());
        bytes.extend_from_slice(&packet[short.whole()..]);
        let start = template.restore(&mut bytes, MOST_SAVED, (FROM, TO)).unwrap();
        bytes.split_off(start)
    }

    proptest! {
        #[test]
        fn what_is_restored_is_what_was_shortened(
            timestamps: Option<(u32, u32)>,
            moved in (-0x8000_i32..0x8000, -0x8000_i32..0x8000),
            (seq, flags) in any::<(u32, [bool; 6])>(),
            // Those of the first segment, or others.
            (ack, window) in prop_oneof![Just((0x0506_0708, 500)), any::<(u32, u16)>()],
            data in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let first = segment(timestamps, |_| (), b"first");
            let template = Template::of(protocol::TCP, &first).unwrap();
            let later = timestamps.map(|(a, b)| (a.wrapping_add_signed(moved.0), b.wrapping_add_signed(moved.1)));
            let packet = segment(later, |header| {
                (header.sequence_number, header.acknowledgment_number, header.window_size) = (seq, ack, window);
                [header.fin, header.rst, header.psh, header.ack, header.ece, header.cwr] = flags;
            }, &data);
            let short = template.shorten(&packet).unwrap();
            let rests = if (ack, window) == (0x0506_0708, 500) { 6 } else { 0 };
            prop_assert_eq!(short.whole() - short.bytes().len(), rests + if later.is_some() { 17 } else { 9 });
            prop_assert_eq!(&restored(&template, &short, &packet), &packet);
            if later.is_some() {
                let whole = Template { timestamps: Timestamps::Whole, ..template };
                let short = whole.shorten(&packet).unwrap();
                prop_assert_eq!(short.whole() - short.bytes().len(), rests + 13);
                prop_assert_eq!(restored(&whole, &short, &packet), packet);
            }
        }

        #[test]
        fn a_datagram_needs_no_header(ports: (u16, u16), data in prop::collection::vec(any::<u8>(), 0..90)) {
            let packet = udp::packet((IpAddr::V6(FROM), ports.0), (IpAddr::V6(TO), ports.1), &data).unwrap();
            let packet = IpPacket::parse(&packet).unwrap().payload();
            let template = Template::of(protocol::UDP, packet).unwrap();
            let short = template.shorten(packet).unwrap();
            prop_assert_eq!((short.bytes().len(), short.whole()), (0, 8));
            prop_assert_eq!(restored(&template, &short, packet), packet);
        }

        /// Whatever comes is read or refused; what is read is as long as it was, but for the header.
        #[test]
        fn any_bytes_are_restored_or_refused(
            protocol in prop::sample::select(vec![protocol::TCP, protocol::UDP]),
            timestamps in prop_oneof![
                Just(Timestamps::None),
                Just(Timestamps::Whole),
                any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps::Near(value, echo)),
            ],
            mut bytes in prop::collection::vec(any::<u8>(), 0..90),
            at in 0usize..100,
        ) {
            let acknowledges = Acknowledges { window: 3, number: 4 };
            let template = Template { protocol, source: 1, destination: 2, acknowledges, timestamps };
            let (before, flags) = (bytes.len(), bytes.get(at).copied().unwrap_or_default());
            if let Some(start) = template.restore(&mut bytes, at, (FROM, TO)) {
                let (whole, len) = template.lengths(flags);
                prop_assert!(start + whole == at + len && at + len <= before && bytes.len() == before);
                prop_assert!(protocol == protocol::UDP || Template::of(protocol, &bytes[start..]).is_none_or(|of| of.source == 1));
            }
        }
    }

    /// Nothing that a header in short could not say.
    #[test]
    fn what_is_unusual_goes_whole() {
        let plain = segment(Some((7, 9)), |_| (), b"data");
        let template = Template::of(protocol::TCP, &plain).unwrap();
        assert_eq!(template.timestamps, Timestamps::Near(7, 9));
        assert!(template.shorten(&plain).is_some());
        let others = [
            segment(Some((7, 9)), |header| header.syn = true, b""),
            segment(Some((7, 9)), |header| header.urg = true, b"data"),
            segment(Some((7, 9)), |header| header.urgent_pointer = 3, b"data"),
            segment(Some((7, 9)), |header| header.ns = true, b"data"),
            segment(None, |_| (), b"data"),
            segment(Some((7 + 0x8000, 9)), |_| (), b"data"),
            segment(Some((7, 9u32.wrapping_sub(0x8001))), |_| (), b"data"),
            segment(Some((7, 9)), |header| header.source_port = 4001, b"data"),
            segment(Some((7, 9)), |header| header.destination_port = 80, b"data"),
            segment(None, |header| header.set_options_raw(&[8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 1]).unwrap(), b"data"),
            segment(None, |header| header.set_options_raw(&[1, 1, 5, 10, 0, 0, 0, 7, 0, 0, 0, 9]).unwrap(), b"data"),
        ];
        for other in others {
            assert_eq!(template.shorten(&other), None, "{other:?}");
        }
        let datagram = udp::packet((IpAddr::V6(FROM), 1), (IpAddr::V6(TO), 2), b"data").unwrap();
        assert!(Template::of(protocol::UDP, &datagram[V6_HEADER..]).is_some());
        assert_eq!(Template::of(protocol::UDP, &[&datagram[V6_HEADER..], b"behind"].concat()), None);
        assert_eq!(Template::of(protocol::ICMPV6, &datagram[V6_HEADER..]), None);
    }
}

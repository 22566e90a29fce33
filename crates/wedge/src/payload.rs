//! A packet of a program on its way out: read once, for what the core has to know of it.

use crate::flows::flow_of;
use crate::labels::Announced;
use crate::numbers::{Header, ROOM, What};
use crate::window_clamp::Connections;
use clock::Instant;
use multipath::{Class, CopyNumber, Ecn, LARGEST_URGENT_ICMP, Meta, Number, PolicyId, Segment};
use wire::ip::protocol;
use wire::short::{self, Short};
use wire::{icmp, tcp, udp};

/// Versions 1 and 2 of QUIC (RFC 9000 §15, RFC 9369 §3.1).
const QUIC: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];

/// Whether a datagram has the header by which connections of QUIC begin (RFC 9000 §17.2). The fixed bit need not be set (RFC 9287).
fn begins_quic(datagram: &[u8]) -> bool {
    // The form and the fixed bit; then the version.
    let Some(([first], version)) = datagram.split_first_chunk() else { return false };
    first & 0x80 != 0 && QUIC.iter().any(|known| version.starts_with(known))
}

/// Bytes before a body at most.
const HEAD: usize = ROOM + short::LONGEST;

/// What is sealed: numbers and a header in short, if the packet has them, and a body behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed<'a> {
    /// ESP's next header.
    pub next_header: u8,
    head: [u8; HEAD],
    len: usize,
    body: &'a [u8],
}

impl Sealed<'_> {
    /// Its two parts.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [self.head.get(..self.len).unwrap_or_default(), self.body]
    }
}

/// What follows the inner IPv6 header of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// ESP's next header: the protocol of what follows.
    pub next_header: u8,
    /// The packet as it came, and where what follows its header begins.
    bytes: Vec<u8>,
    start: usize,
    /// Its label and its header in short, if it goes so.
    short: Option<(u16, Short)>,
    /// What holds for it, if anything does.
    pub policy: Option<PolicyId>,
}

impl Payload {
    /// What follows the first `header` bytes of a packet.
    pub(crate) fn behind(next_header: u8, packet: Vec<u8>, header: usize) -> Self {
        let start = header.min(packet.len());
        Self { next_header, bytes: packet, start, short: None, policy: None }
    }

    /// The same under a policy.
    pub(crate) fn under(self, policy: Option<PolicyId>) -> Self {
        Self { policy, ..self }
    }

    /// All after the inner header.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The same, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// What is sealed, for a peer that has short numbers or not.
    pub(crate) fn sealed(
        &self,
        (number, copy): (Option<Number>, Option<CopyNumber>),
        ecn: Ecn,
        short_numbers: bool,
    ) -> Sealed<'_> {
        let bytes = self.bytes();
        let (what, short, body) = match &self.short {
            Some((label, short)) => {
                (What::Label(*label), short.bytes(), bytes.get(short.whole()..).unwrap_or_default())
            }
            None => (What::Protocol(self.next_header), &[][..], bytes),
        };
        let header = Header { what, number, copy, ecn }.emit(short_numbers);
        let mut head = [0; HEAD];
        let parts = [header.bytes(), short];
        head.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        Sealed { next_header: header.next_header, head, len: header.bytes().len() + short.len(), body }
    }

    /// Whether its header goes in short.
    pub(crate) fn is_short(&self) -> bool {
        self.short.is_some()
    }

    /// The header goes in short, where the peer has announced a label of the flow and that can be.
    pub(crate) fn shorten(&mut self, now: Instant, meta: &mut Meta, announced: &mut Announced) {
        self.short = meta.flow.and_then(|flow| announced.shorten(now, flow, self.bytes()));
        if let Some((_, short)) = &self.short {
            meta.len = self.bytes().len() - short.whole() + short.bytes().len();
            meta.is_short = true;
        }
    }

    /// What the core has to know of it; notes what its TCP has sent.
    pub(crate) fn meta(&self, ecn: Ecn, connections: &mut Connections) -> Meta {
        let (payload, flow) = (self.bytes(), flow_of(self.next_header, self.bytes(), true));
        let mut meta =
            Meta { flow, len: payload.len(), is_urgent: false, class: Class::Datagram, ecn, is_short: false };
        match self.next_header {
            protocol::TCP => {
                let Ok(segment) = tcp::Segment::parse(payload) else { return meta };
                let flags = segment.flags();
                // FIN and RST come after data; what is sent again looks like data.
                let ends = flags.contains(tcp::Flags::FIN) || flags.contains(tcp::Flags::RST);
                meta.is_urgent = segment.payload_len() == 0 && !ends;
                meta.class = Class::Tcp(Segment {
                    seq: segment.seq(),
                    len: u32::try_from(segment.sequence_len()).unwrap_or(0),
                    syn: flags.contains(tcp::Flags::SYN),
                    has_timestamps: segment.timestamps().is_some(),
                    is_retransmission: flow.is_some_and(|flow| connections.leaves(flow, &segment)),
                });
            }
            protocol::ICMPV6 => {
                meta.is_urgent = payload.len() <= LARGEST_URGENT_ICMP && icmp::Message::parse(payload).is_ok();
            }
            protocol::UDP if payload.get(udp::HEADER..).is_some_and(begins_quic) => meta.class = Class::Quic,
            _ => {}
        }
        meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ip::V6_HEADER;

    /// The client's Initial of RFC 9001 appendix A.2, that of RFC 9369 appendix A.2, a short header (A.5), and version negotiation
    /// (RFC 9000 §17.2.1).
    #[test]
    fn connections_of_quic_begin_with_a_long_header_of_a_known_version() {
        let first = |bytes: &[u8]| {
            let mut packet = vec![0; V6_HEADER + udp::HEADER];
            packet.extend_from_slice(bytes);
            let class =
                Payload::behind(protocol::UDP, packet, V6_HEADER).meta(Ecn::NotEct, &mut Connections::default());
            class.class == Class::Quic
        };
        assert!(first(&[0xc0, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 8]));
        assert!(first(&[0xd7, 0x6b, 0x33, 0x43, 0xcf, 8, 0x83, 0x94, 0xc8, 0xf0]));
        assert!(!first(&[0x4c, 0xfe, 0x41, 0x89, 0x65, 0x5e, 0x5c, 0xd5, 0x5c, 0x41]));
        assert!(!first(&[0x80, 0, 0, 0, 0, 8]) && !first(&[0xc0, 0, 0]) && !first(&[]));
    }

    #[test]
    fn a_number_goes_before_the_payload() {
        let packet: Vec<u8> = (0..60).collect();
        for header in [20, 40] {
            let payload = Payload::behind(17, packet.clone(), header);
            assert_eq!(payload.bytes(), &packet[header..]);
            let bare = payload.sealed((None, None), Ecn::Ect0, true);
            assert_eq!((bare.next_header, bare.parts()), (17, [&[], &packet[header..]]));
            for (copy, short_numbers) in [(None, false), (None, true), (Some(CopyNumber(7)), true)] {
                let number = Some(Number { value: 0x0102, is_early: false });
                let numbers = Header { what: What::Protocol(17), number, copy, ecn: Ecn::Ect0 };
                let sealed = payload.sealed((number, copy), Ecn::Ect0, short_numbers);
                let [head, body] = sealed.parts();
                let parsed = Header::parse(sealed.next_header, head, short_numbers);
                assert_eq!((parsed, body), (Some((numbers, head.len())), &packet[header..]));
            }
        }
    }
}

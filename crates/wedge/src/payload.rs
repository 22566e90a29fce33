//! A packet of a program on its way out: read once, for what the core has to know of it, and kept with room for its number.

use crate::flows::flow_of;
use crate::numbers::{Header, ROOM};
use crate::window_clamp::Connections;
use hip::feedback::NEXT_HEADER;
use multipath::{Class, CopyNumber, Ecn, LARGEST_URGENT_ICMP, Meta, Number, PolicyId, Segment};
use wire::ip::protocol;
use wire::{icmp, tcp, udp};

/// Versions 1 and 2 of QUIC (RFC 9000 §15, RFC 9369 §3.1).
const QUIC: [[u8; 4]; 2] = [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];

/// Whether a datagram has the header by which connections of QUIC begin (RFC 9000 §17.2). The fixed bit need not be set (RFC 9287).
fn begins_quic(datagram: &[u8]) -> bool {
    // The form and the fixed bit; then the version.
    let Some(([first], version)) = datagram.split_first_chunk() else { return false };
    first & 0x80 != 0 && QUIC.iter().any(|known| version.starts_with(known))
}

/// What follows the inner IPv6 header of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    /// ESP's next header: the protocol of what follows.
    pub next_header: u8,
    /// The packet as it came: what was its header is room for numbers, so that they move nothing.
    bytes: Vec<u8>,
    start: usize,
    /// What holds for it, if anything does.
    pub policy: Option<PolicyId>,
}

impl Payload {
    /// What follows the first `header` bytes of a packet: at least as many as numbers take, as every IP header is.
    pub(crate) fn behind(next_header: u8, packet: Vec<u8>, header: usize) -> Self {
        debug_assert!(header >= ROOM, "numbers have no room");
        let start = header.min(packet.len());
        Self { next_header, bytes: packet, start, policy: None }
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

    /// What is sealed, and its next header: the numbers go before the payload.
    pub(crate) fn sealed_bytes(
        &mut self,
        (number, copy): (Option<Number>, Option<CopyNumber>),
        ecn: Ecn,
    ) -> (u8, &[u8]) {
        let header = Header { next_header: self.next_header, number, copy, ecn };
        let at = self.start.checked_sub(header.len()).filter(|_| number.is_some() || copy.is_some());
        let Some(at) = at else { return (self.next_header, self.bytes()) };
        if let Some(room) = self.bytes.get_mut(at..self.start) {
            header.emit(room);
        }
        (NEXT_HEADER, self.bytes.get(at..).unwrap_or_default())
    }

    /// What the core has to know of it; notes what its TCP has sent.
    pub(crate) fn meta(&self, ecn: Ecn, connections: &mut Connections) -> Meta {
        let (payload, flow) = (self.bytes(), flow_of(self.next_header, self.bytes(), true));
        let mut meta = Meta { flow, len: payload.len(), is_urgent: false, class: Class::Datagram, ecn };
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
            let mut payload = Payload::behind(17, packet.clone(), header);
            assert_eq!(payload.bytes(), &packet[header..]);
            assert_eq!(payload.sealed_bytes((None, None), Ecn::Ect0), (17, &packet[header..]));
            for copy in [None, Some(CopyNumber(7))] {
                let number = Some(Number { value: 0x0102, is_early: false });
                let numbers = Header { next_header: 17, number, copy, ecn: Ecn::Ect0 };
                let (next_header, sealed) = payload.sealed_bytes((number, copy), Ecn::Ect0);
                assert_eq!((next_header, Header::parse(sealed)), (NEXT_HEADER, Some(numbers)));
                assert_eq!(&sealed[numbers.len()..], &packet[header..]);
            }
            assert_eq!(payload.bytes(), &packet[header..]);
        }
    }
}

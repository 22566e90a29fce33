//! A packet of a program on its way out: read once, for what the core has to know of it, and kept with room for its number.

use crate::flows::flow_of;
use crate::numbers::{Header, ROOM};
use crate::window_clamp::Connections;
use hip::feedback::NEXT_HEADER;
use multipath::{Class, CopyNumber, Ecn, LARGEST_URGENT_ICMP, Meta, Number, PolicyId, Segment};
use wire::ip::protocol;
use wire::{icmp, tcp};

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
            _ => {}
        }
        meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

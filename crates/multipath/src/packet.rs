//! What the core has to know of a packet. Whoever carries bytes reads it from them once, where they come in.

use crate::copies::CopyNumber;
use crate::order::Number;
use crate::policy::PolicyId;
use queue::Ecn;

/// A flow between two hosts: its protocol and its ports, or what it has in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// The IP protocol.
    pub protocol: u8,
    /// This host's port.
    pub local: u16,
    /// The peer's port.
    pub remote: u16,
}

impl FlowId {
    /// Whether it is TCP's.
    pub(crate) fn is_tcp(self) -> bool {
        self.protocol == 6
    }
}

/// Where a TCP segment belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number of its first byte.
    pub seq: u32,
    /// What it takes of the sequence: its data, SYN and FIN.
    pub len: u32,
    /// It begins a connection.
    pub syn: bool,
    /// It carries timestamps (RFC 7323 §3).
    pub has_timestamps: bool,
    /// It has data, and all of them were handed to the sender before.
    pub is_retransmission: bool,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A segment of a TCP: the peer's TCP is going to acknowledge it, if it takes anything of the sequence.
    Tcp(Segment),
    /// A packet by which a connection of QUIC begins (RFC 9000 §17.2): the others of its flow are QUIC's, too, but do not say so.
    Quic,
    /// Anything else.
    Datagram,
}

/// What the core has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its flow, where it has one.
    pub flow: Option<FlowId>,
    /// Bytes of what is sealed: all after the inner IP header.
    pub len: usize,
    /// Others wait for it, and it is small: an acknowledgment, a SYN, an ICMP message. It goes before data that waits.
    pub is_urgent: bool,
    /// What it is.
    pub class: Class,
    /// What its IP header says about marks.
    pub ecn: Ecn,
    /// Its header goes in short, and says that without a number, too.
    pub is_short: bool,
}

impl Meta {
    /// Whether it is a TCP's SYN.
    pub(crate) fn opens_connection(&self) -> bool {
        self.segment().is_some_and(|segment| segment.syn)
    }

    /// Of a TCP: what it sends.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.class {
            Class::Tcp(segment) => Some(segment),
            Class::Quic | Class::Datagram => None,
        }
    }

    /// Whether it is a TCP's.
    pub fn is_tcp(&self) -> bool {
        matches!(self.class, Class::Tcp(_))
    }
}

/// A packet that waits to be sent, or that may have to be sent again.
#[derive(Clone, Debug)]
pub struct QueuedPacket<P> {
    /// What is carried.
    pub payload: P,
    /// What is known of it.
    pub meta: Meta,
    /// Its place among the packets of its flow, where it is sent with one.
    pub number: Option<Number>,
    /// What it has in common with its copies on other paths, where there are any.
    pub copy: Option<CopyNumber>,
    /// The policy that holds for it, if there is one.
    pub policy: Option<PolicyId>,
    /// Bytes of the whole outer IP packet.
    pub wire: usize,
    /// How many packets left the send buffer before it.
    pub order: u64,
    /// Bytes of its flow that left the send buffer before it.
    pub place: u64,
    /// The send buffer has marked it, in place of a loss.
    pub is_marked: bool,
    /// How often it was lost and sent again.
    pub retransmissions: u8,
    /// How often it was in flight on a path that died.
    pub rescues: u8,
}

impl<P> QueuedPacket<P> {
    /// A packet that has not been sent yet, of so many bytes with all headers.
    pub fn new(meta: Meta, payload: P, wire: usize) -> Self {
        Self {
            payload,
            meta,
            number: None,
            copy: None,
            policy: None,
            wire,
            order: 0,
            place: 0,
            is_marked: false,
            retransmissions: 0,
            rescues: 0,
        }
    }

    /// Bytes of what is sealed, its numbers included.
    pub fn len(&self) -> usize {
        self.meta.len + crate::order::header(self.number, self.copy)
    }

    /// What its inner header is to say about marks.
    pub fn mark(&self) -> Ecn {
        if self.is_marked { Ecn::Ce } else { self.meta.ecn }
    }

    /// Whether nothing is sealed but a header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A packet of so many bytes for tests, which carries `payload`.
#[cfg(test)]
pub(crate) fn datagram<P>(payload: P, flow: Option<FlowId>, wire: usize) -> QueuedPacket<P> {
    let meta = Meta { flow, len: wire, is_urgent: false, class: Class::Datagram, ecn: Ecn::NotEct, is_short: false };
    QueuedPacket::new(meta, payload, wire)
}

#[cfg(test)]
mod tests {
    use super::Ecn;

    #[test]
    fn bits_are_those_of_rfc_3168() {
        for (bits, ecn) in [(0b00, Ecn::NotEct), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce)] {
            assert_eq!(Ecn::of(0b1011_1000 | bits), ecn);
            assert_eq!(ecn.bits(), bits);
        }
    }
}

//! The TCP connections of this host's programs, as far as what waits for paths has to know them: what was sent before, and
//! how much more the peer lets them send.
//!
//! That is made less where enough waits: the sender is on this host, and hears of the peer's window through us. A TCP whose
//! packets are dropped instead has a hole to fill, and the program at the other end gets nothing for a round trip. So a
//! program's TCP need not look for what the paths carry: the clamped window says so, from its first packet on.

use crate::flows::flow_of;
use crate::peer::PeerState;
use clock::Instant;
use multipath::{FlowId, clamped_window};
use std::collections::BTreeMap;
use wire::ip::{V6, protocol};
use wire::tcp::{self, Flags, Segment, TcpOption};

/// Connections that are remembered. When there are more, those that have sent nothing while half as many began are forgotten.
const MOST: usize = 16_384;
/// The option of Multipath TCP (RFC 8684 §3), whose windows are not those of one connection.
const MULTIPATH: u8 = 30;

/// By flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    known: BTreeMap<FlowId, Connection>,
    /// How many have begun.
    begun: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// The sequence number after the highest that was sent.
    end: Option<u32>,
    /// Of our SYN: whether windows may be scaled (RFC 7323 §2.2).
    ours: Option<bool>,
    /// Of the peer's SYN: by how many bits its windows are shifted.
    theirs: Option<Option<u8>>,
    /// How many connections had begun when it sent something last.
    used: usize,
}

impl Connections {
    /// A segment of a program is to be sent. Whether it has data that were here before.
    pub(crate) fn leaves(&mut self, flow: FlowId, segment: &Segment<'_>) -> bool {
        self.opens(flow, segment, true);
        let known = self.entry(flow);
        let end = segment.seq().wrapping_add(segment.sequence_len() as u32);
        let ahead = known.end.is_none_or(|known| end.wrapping_sub(known) as i32 > 0);
        if ahead {
            known.end = Some(end);
        }
        !ahead && segment.payload_len() > 0
    }

    /// Connections begin with this, if it is a SYN.
    pub(crate) fn opens(&mut self, flow: FlowId, segment: &Segment<'_>, outbound: bool) {
        if !segment.flags().contains(Flags::SYN) {
            return;
        }
        let known = self.entry(flow);
        if !segment.flags().contains(Flags::ACK) {
            *known = Connection { used: known.used, ..Connection::default() };
        }
        if segment.options().any(|option| matches!(option, TcpOption::Other(MULTIPATH, _))) {
            return;
        }
        let shift = segment.options().find_map(|option| match option {
            // RFC 7323 §2.3: no more than 14 bits.
            TcpOption::WindowScale(shift) => Some(shift.min(14)),
            _ => None,
        });
        if outbound {
            // Without the data that it may carry, which are still to be sent.
            (known.ours, known.end) = (Some(shift.is_some()), Some(segment.seq().wrapping_add(1)));
        } else {
            known.theirs = Some(shift);
        }
    }

    /// Whether the beginning of a connection was seen, so that its windows are understood.
    fn is_understood(&self, flow: FlowId, is_syn: bool) -> bool {
        self.known.get(&flow).is_some_and(|known| known.theirs.is_some() && (is_syn || known.ours.is_some()))
    }

    /// What the window field of this segment of the peer's has to be for this many bytes, or less if it is negative, to be
    /// sent beyond what is outstanding; `None` if it may stay as it is, or the connection's beginning was not seen.
    pub(crate) fn clamped(&self, flow: FlowId, segment: &Segment<'_>, room: i64) -> Option<u16> {
        let Connection { end, ours, theirs, .. } = *self.known.get(&flow)?;
        let theirs = theirs?;
        let (shift, outstanding) = if segment.flags().contains(Flags::SYN) {
            // Nothing is outstanding, and this window is not scaled (RFC 7323 §2.2).
            (0, 0)
        } else {
            // Both ends have to say that they scale.
            let ours = ours?;
            (theirs.filter(|_| ours).unwrap_or(0), u32::try_from(end?.wrapping_sub(segment.ack()) as i32).ok()?)
        };
        let allowed = clamped_window(outstanding, room);
        let clamped = u16::try_from(allowed.div_ceil(1 << shift)).ok()?;
        (clamped < segment.window()).then_some(clamped)
    }

    /// What the peer offers with this segment, in bytes; nothing in a SYN, whose window is a first one.
    fn offered(&self, flow: FlowId, segment: &Segment<'_>) -> Option<u64> {
        let Connection { ours: Some(ours), theirs: Some(theirs), .. } = *self.known.get(&flow)? else { return None };
        let shift = theirs.filter(|_| ours).unwrap_or(0);
        (!segment.flags().contains(Flags::SYN)).then(|| u64::from(segment.window()) << shift)
    }

    /// Bytes of one, and of its place in the table.
    pub(crate) const SIZE: usize = 2 * (size_of::<FlowId>() + size_of::<Connection>());

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    fn entry(&mut self, flow: FlowId) -> &mut Connection {
        if !self.known.contains_key(&flow) {
            self.begun += 1;
            if self.known.len() >= MOST {
                let begun = self.begun;
                self.known.retain(|_, connection| begun - connection.used < MOST / 2);
            }
            if self.known.len() >= MOST {
                self.known.clear();
            }
        }
        let connection = self.known.entry(flow).or_default();
        connection.used = self.begun;
        connection
    }
}

impl PeerState {
    /// Tells the sender of what a segment of the peer's acknowledges to send no more than may wait here.
    pub(crate) fn clamp_window(&mut self, now: Instant, packet: &mut [u8]) {
        let Ok(view) = V6::parse(packet) else { return };
        if view.protocol() != protocol::TCP || view.fragment().is_some() {
            return;
        }
        let at = packet.len() - view.payload().len();
        let Some(flow) = flow_of(protocol::TCP, view.payload(), false) else { return };
        let Ok(segment) = Segment::parse(view.payload()) else { return };
        let flags = segment.flags();
        if flags.contains(Flags::SYN) {
            self.connections.opens(flow, &segment, false);
        } else if !flags.contains(Flags::ACK) {
            return;
        }
        if !self.connections.is_understood(flow, flags.contains(Flags::SYN)) {
            return;
        }
        self.sync();
        if let Some(offered) = self.connections.offered(flow, &segment) {
            self.sender.on_offered(flow, offered);
        }
        let budget = self.sender.budget(now, flow);
        if let Some(window) = self.connections.clamped(flow, &segment, budget)
            && let Some(segment) = packet.get_mut(at..)
        {
            tcp::set_window(segment, window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::tcp::Header;

    const FLOW: [u16; 2] = [80, 4000];

    fn bytes(
        outbound: bool,
        flags: Flags,
        (seq, ack): (u32, u32),
        window: u16,
        options: &[u8],
        data: usize,
    ) -> Vec<u8> {
        let [a, b] = FLOW;
        let (src_port, dst_port) = if outbound { (a, b) } else { (b, a) };
        let header = Header { src_port, dst_port, seq, ack, flags, window, urgent: 0, options };
        let mut bytes = Vec::new();
        let any = std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        header.emit(any, any, &vec![0; data], &mut bytes).unwrap();
        bytes
    }

    fn flow() -> FlowId {
        flow_of(protocol::TCP, &bytes(true, Flags::ACK, (0, 0), 0, &[], 0), true).unwrap()
    }

    /// A connection whose ends have just offered these shifts.
    fn opened(ours: &[u8], theirs: &[u8], isn: u32) -> Connections {
        let mut connections = Connections::default();
        let mut open = |outbound, flags, options: &[u8]| {
            let segment = bytes(outbound, flags, (isn, 0), 1000, options, 0);
            connections.opens(flow(), &Segment::parse(&segment).unwrap(), outbound);
        };
        open(true, Flags::SYN, ours);
        open(false, Flags::SYN | Flags::ACK, theirs);
        connections
    }

    /// One that has sent so many bytes from `isn + 1` on, too.
    fn connection(ours: &[u8], theirs: &[u8], isn: u32, sent: usize) -> Connections {
        let mut connections = opened(ours, theirs, isn);
        let payload = bytes(true, Flags::ACK, (isn.wrapping_add(1), 0), 0, &[], sent);
        let segment = Segment::parse(&payload).unwrap();
        assert!(!connections.leaves(flow(), &segment));
        assert!(connections.leaves(flow(), &segment));
        connections
    }

    fn clamped(connections: &Connections, ack: u32, window: u16, room: i64) -> Option<u16> {
        let segment = bytes(false, Flags::ACK, (0, ack), window, &[], 0);
        connections.clamped(flow(), &Segment::parse(&segment).unwrap(), room)
    }

    const SCALE: [u8; 4] = [1, 3, 3, 7];

    proptest! {
        /// RFC 7323 §2.2: the right edge is what is outstanding and the room, to the next multiple of the scale; wherever
        /// sequence numbers wrap, and whatever the room is.
        #[test]
        fn the_edge_is_what_is_outstanding_and_the_room(isn: u32, sent in 1usize..60_000, acked in 0u32..60_000, window: u16, room in -200_000i64..200_000) {
            let connections = connection(&SCALE, &SCALE, isn, sent);
            let ack = isn.wrapping_add(1).wrapping_add(acked);
            let result = clamped(&connections, ack, window, room);
            let Some(outstanding) = (sent as i64).checked_sub(acked.into()).filter(|left| *left >= 0) else {
                prop_assert_eq!(result, None);
                return Ok(());
            };
            let edge = (outstanding + room).max(6_000);
            match result {
                Some(advertised) => {
                    prop_assert!(advertised < window);
                    let offered = i64::from(advertised) << 7;
                    prop_assert!(offered >= edge && offered < edge + 128);
                }
                None => prop_assert!((i64::from(window) << 7) < edge + 128),
            }
        }
    }

    #[test]
    fn what_is_in_use_is_remembered_among_many_that_end() {
        let mut connections = opened(&SCALE, &SCALE, 0);
        for number in 0..3 * MOST {
            let mut other = bytes(true, Flags::SYN, (0, 0), 1000, &SCALE, 0);
            let port = (number as u16).to_be_bytes();
            other.splice(0..4, [port[0], port[1], (number >> 16) as u8, 9]);
            let segment = Segment::parse(&other).unwrap();
            connections.opens(flow_of(protocol::TCP, &other, true).unwrap(), &segment, true);
            if number % 100 == 0 {
                let data = bytes(true, Flags::ACK, (1, 0), 0, &[], 1000);
                connections.leaves(flow(), &Segment::parse(&data).unwrap());
            }
            assert!(connections.known.len() <= MOST);
        }
        assert!(clamped(&connections, 1, u16::MAX, 0).is_some());
    }

    #[test]
    fn the_first_windows_are_narrowed_too() {
        for isn in [0, u32::MAX] {
            let connections = opened(&SCALE, &SCALE, isn);
            let syn = bytes(false, Flags::SYN | Flags::ACK, (0, isn.wrapping_add(1)), 64_240, &SCALE, 0);
            let of_syn = |room| connections.clamped(flow(), &Segment::parse(&syn).unwrap(), room);
            // RFC 7323 §2.2: the window of a SYN is never scaled.
            assert_eq!(
                [of_syn(48_000), of_syn(-1), of_syn(64_240), of_syn(100_000)],
                [Some(48_000), Some(6_000), None, None]
            );
            assert_eq!(clamped(&connections, isn.wrapping_add(1), u16::MAX, 48_000), Some(375));
        }
    }

    #[test]
    fn windows_are_scaled_only_if_both_ends_say_so() {
        let outstanding = |ours: &[u8], theirs: &[u8]| clamped(&connection(ours, theirs, 0, 20_000), 1, u16::MAX, 0);
        assert_eq!(outstanding(&SCALE, &SCALE), Some(157));
        assert_eq!(outstanding(&SCALE, &[]), Some(20_000));
        assert_eq!(outstanding(&[], &SCALE), Some(20_000));
    }

    #[test]
    fn what_is_not_known_stays_as_it_is() {
        let mut late = Connections::default();
        let payload = bytes(true, Flags::ACK, (1, 0), 0, &[], 20_000);
        late.leaves(flow(), &Segment::parse(&payload).unwrap());
        assert_eq!(clamped(&late, 1, u16::MAX, 0), None);
        let multipath = [30, 4, 1, 0, 1, 3, 3, 7];
        assert_eq!(clamped(&connection(&multipath, &multipath, 0, 20_000), 1, u16::MAX, 0), None);
    }
}

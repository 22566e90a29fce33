//! What is remembered of each flow of a peer: whether the local program speaks IPv6 (HIT) or IPv4 (LSI), and the
//! resequencing of what comes in.
//!
//! A flow that the peer begins is offered to the local stack as IPv6 first. Should the stack refuse it, with an RST or
//! an ICMP 'unreachable', the refusal is swallowed and the packet offered again as IPv4 from the peer's LSI. The first
//! packet of the local program settles the question. A flow that was forgotten is settled again in the same way.

use crate::labels::Candidate;
use crate::packet::Packet;
use clock::{Duration, Instant};
use multipath::{Bunches, FlowId, Number, Reordering, Resequencing};
use recovery::{Position, Role};
use scheduler::PathId;
use std::collections::BTreeMap;
use wire::ip::{IpPacket, protocol};
use wire::{icmp, tcp};

/// Most flows remembered per peer.
const CAPACITY: usize = 4096;
/// What a flow takes besides its packets, and a packet that waits besides its bytes, in bytes: places in tables.
const FLOW: usize = 1024;
const HELD: usize = 192;
/// A flow without packets for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// The same when there are too many.
const FORGET_AFTER_WHEN_FULL: Duration = Duration::from_secs(30);
/// Between two searches for flows to forget.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// What a local program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv6, with HITs.
    Six,
    /// IPv4, with LSIs.
    Four,
}

/// The flow of a packet that leaves (`outbound`) or arrives; `None` where there are no ports.
pub(crate) fn flow_of(protocol: u8, payload: &[u8], outbound: bool) -> Option<FlowId> {
    let (source, destination) = match protocol {
        protocol::TCP | protocol::UDP | protocol::SCTP => {
            let [a, b, c, d] = *payload.first_chunk::<4>()?;
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        }
        protocol::ICMPV6 => {
            let message = icmp::Message::parse(payload).ok()?;
            let identifier = (message.word() >> 16) as u16;
            match (message.kind(), outbound) {
                (icmp::v6::ECHO_REQUEST, true) => (identifier, 0),
                (icmp::v6::ECHO_REPLY, false) => (0, identifier),
                _ => return None,
            }
        }
        _ => return None,
    };
    let (local, remote) = if outbound { (source, destination) } else { (destination, source) };
    Some(FlowId { protocol, local, remote })
}

/// The flow of the packet that an ICMP error quotes. `outbound` tells which way that packet went.
pub(crate) fn flow_of_quoted(quoted: &[u8], outbound: bool) -> Option<FlowId> {
    let packet = IpPacket::parse_quoted(quoted).ok()?;
    flow_of(packet.protocol(), packet.payload(), outbound)
}

struct Flow {
    family: Family,
    /// The local program has answered, or begun.
    settled: bool,
    seen: Instant,
    /// What the local program's packets are marked with; 0 as long as none is (see [`crate::Policy::marks`]).
    mark: u8,
    /// The first packet offered, until it is settled.
    offered: Option<Packet>,
    /// When it is assigned a label.
    candidate: Candidate,
}

/// The flows of one peer.
pub(crate) struct Flows {
    flows: BTreeMap<FlowId, Flow>,
    /// What waits for packets before it.
    pub resequencing: Resequencing<Packet>,
    /// Acknowledgments that are let go together.
    bunches: Bunches<Packet>,
    swept_at: Instant,
    /// Bytes that all of it takes, but for what waits.
    bytes: usize,
    /// What may be taken: beyond it no new flow is remembered, and what waits has to leave.
    most: usize,
}

/// What to do with a refusal of the local stack.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is meant: it goes to the peer.
    Pass,
    /// It must not reach the peer; there is nothing else to do.
    Swallow,
    /// As before, and this IPv6 packet is to be offered as IPv4.
    OfferAgain(Packet),
}

/// What a packet's place is known by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// The number that the peer gave it.
    Numbered(Number),
    /// The sequence numbers of TCP; there is nothing else.
    OfTcp,
    /// It has none: the peer would have numbered it.
    AsTheyCome,
}

impl Flows {
    /// None yet, and so many bytes for them.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            flows: BTreeMap::new(),
            resequencing: Resequencing::default(),
            bunches: Bunches::default(),
            swept_at: Instant::ZERO,
            bytes: 0,
            most,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is such a flow.
    pub(crate) fn knows(&self, key: FlowId) -> bool {
        self.flows.contains_key(&key)
    }

    /// When a flow that comes is assigned a label.
    pub(crate) fn candidate(&mut self, key: FlowId) -> Option<&mut Candidate> {
        self.flows.get_mut(&key).map(|flow| &mut flow.candidate)
    }

    /// When a packet of any of them was seen last.
    pub(crate) fn last_seen(&self) -> Option<Instant> {
        self.flows.values().map(|flow| flow.seen).max()
    }

    /// Bytes that they take: packets that wait, those that may be offered again, and the table.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.resequencing.bytes() + self.bunches.bytes()
    }

    /// When something of it has waited long enough.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.resequencing.poll_timeout(), self.bunches.poll_timeout()].into_iter().flatten().min()
    }

    /// Holds until then what of a flow is to be delivered. Where nothing is to be held, what was held of the flow is delivered before it.
    pub(crate) fn bunch(&mut self, key: FlowId, until: Option<Instant>, ready: &mut Vec<(Family, Packet)>) {
        if let Some(until) = until {
            for (_, packet) in ready.drain(..) {
                let bytes = packet.len() + HELD;
                self.bunches.hold(key, until, (packet, bytes));
            }
            return;
        }
        let held = self.bunches.take(key);
        if !held.is_empty() {
            let family = self.family(key);
            ready.splice(0..0, held.into_iter().map(|packet| (family, packet)));
        }
    }

    /// They may take so many bytes from now on.
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Makes room until no more bytes are taken than may be: what would be given up soonest is given up first, and so
    /// delivered out of order. How many holes it took.
    pub(crate) fn relieve(&mut self, out: &mut Vec<(Family, Packet)>) -> u64 {
        let (mut holes, mut ready) = (0, Vec::new());
        if self.bytes() > self.most {
            self.bunches.relieve(&mut ready);
        }
        while self.bytes() > self.most
            && let Some(is_hole) = self.resequencing.relieve(&mut ready)
        {
            holes += u64::from(is_hole);
        }
        out.extend(ready.into_iter().map(|(key, packet)| (self.family(key), packet)));
        holes
    }

    /// A packet of the local program: it settles the family.
    pub(crate) fn outbound(&mut self, now: Instant, key: FlowId, family: Family) {
        if let Some(flow) = self.entry(now, key, family) {
            flow.family = family;
            flow.settled = true;
            let offered = flow.offered.take().map_or(0, |packet| packet.len());
            self.bytes = self.bytes.saturating_sub(offered);
        }
    }

    /// A packet of the flow leaves, marked so. What it counts as: what the kernel sends by itself, as after a program has closed
    /// its socket, has no mark, and is its program's all the same.
    pub(crate) fn marked(&mut self, key: FlowId, mark: u8) -> u8 {
        let Some(flow) = self.flows.get_mut(&key) else { return mark };
        if mark != 0 {
            flow.mark = mark;
        }
        flow.mark
    }

    /// The local stack refuses a packet of the peer that it was given as IPv6.
    pub(crate) fn refused(&mut self, key: FlowId) -> Refusal {
        match self.flows.get_mut(&key) {
            Some(flow) if flow.family == Family::Four => Refusal::Swallow,
            Some(flow) if !flow.settled => match flow.offered.take() {
                Some(packet) => {
                    flow.family = Family::Four;
                    self.bytes = self.bytes.saturating_sub(packet.len());
                    Refusal::OfferAgain(packet)
                }
                None => Refusal::Pass,
            },
            _ => Refusal::Pass,
        }
    }

    /// The family in which an arriving packet of the flow is delivered, without noting anything.
    pub(crate) fn family(&self, key: FlowId) -> Family {
        self.flows.get(&key).map_or(Family::Six, |flow| flow.family)
    }

    /// A packet of the peer, `packet` in its IPv6 form, arrived on `path`. Appends to `out` what is to be delivered
    /// now, in the order and with the family in which it is.
    pub(crate) fn inbound(
        &mut self,
        now: Instant,
        key: FlowId,
        path: PathId,
        packet: Packet,
        (order, reordering): (Order, &Reordering),
        out: &mut Vec<(Family, Packet)>,
    ) {
        let room = self.most.saturating_sub(self.bytes());
        let Some(flow) = self.entry(now, key, Family::Six) else {
            out.push((Family::Six, packet));
            return;
        };
        let mut taken = 0;
        if !flow.settled && flow.family == Family::Six && flow.offered.is_none() && packet.len() <= room {
            flow.offered = Some(packet.clone());
            taken = packet.len();
        }
        let family = flow.family;
        self.bytes += taken;
        let position = match order {
            Order::Numbered(number) if !self.resequencing.is_first(key, number) => return,
            Order::Numbered(number) => Some(number.position(path)),
            Order::OfTcp => position(key, &packet, path),
            Order::AsTheyCome => None,
        };
        let Some(position) = position else {
            out.push((family, packet));
            return;
        };
        let (bytes, mut ready) = (packet.len() + HELD, Vec::new());
        self.resequencing.offer(now, key, position, (packet, bytes), reordering, &mut ready);
        out.extend(ready.into_iter().map(|packet| (family, packet)));
    }

    /// Appends to `out` what has waited long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(Family, Packet)>) {
        let mut ready = Vec::new();
        self.resequencing.handle_timeout(now, &mut ready);
        self.bunches.handle_timeout(now, &mut ready);
        out.extend(ready.into_iter().map(|(key, packet)| (self.family(key), packet)));
    }

    /// The flow, new ones with this family; `None` when there are too many.
    fn entry(&mut self, now: Instant, key: FlowId, family: Family) -> Option<&mut Flow> {
        if !self.flows.contains_key(&key) {
            if now - self.swept_at >= SWEEP_INTERVAL {
                self.swept_at = now;
                self.forget(now, FORGET_AFTER);
                if self.flows.len() >= CAPACITY {
                    self.forget(now, FORGET_AFTER_WHEN_FULL);
                }
            }
            if self.flows.len() >= CAPACITY || self.bytes().saturating_add(FLOW) > self.most {
                return None;
            }
            self.bytes += FLOW;
            let flow =
                Flow { family, settled: false, seen: now, mark: 0, offered: None, candidate: Candidate::default() };
            self.flows.insert(key, flow);
        }
        let flow = self.flows.get_mut(&key)?;
        flow.seen = now;
        Some(flow)
    }

    fn forget(&mut self, now: Instant, after: Duration) {
        let Self { flows, bytes, resequencing, .. } = self;
        flows.retain(|key, flow| {
            // What waits in a resequencer has a deadline much shorter than this: nothing is lost.
            let keep = now - flow.seen < after;
            if !keep {
                resequencing.forget(*key);
                let offered = flow.offered.as_ref().map_or(0, |packet| packet.len());
                *bytes = bytes.saturating_sub(FLOW + offered);
            }
            keep
        });
    }
}

/// Where a TCP segment belongs; `None` for what is not one.
fn position(key: FlowId, packet: &[u8], path: PathId) -> Option<Position> {
    if key.protocol != protocol::TCP {
        return None;
    }
    let packet = IpPacket::parse(packet).ok().filter(|packet| packet.fragment().is_none())?;
    let segment = tcp::Segment::parse(packet.payload()).ok()?;
    let flags = segment.flags();
    let length = u32::try_from(segment.sequence_len()).ok()?;
    let role = if flags.contains(tcp::Flags::SYN) {
        Role::Start
    } else if length > 0 || flags.contains(tcp::Flags::RST) {
        Role::InSequence
    } else {
        Role::Unordered
    };
    Some(Position { path: path.0, sequence: segment.seq(), length, role })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    /// More than any of the tests needs.
    const ROOM: usize = 16 << 20;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn udp(number: u8) -> Packet {
        let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        wire::udp::packet((a.into(), 7), (b.into(), 80), &[number]).unwrap().into()
    }

    fn key(local: u16) -> FlowId {
        FlowId { protocol: protocol::UDP, local, remote: 7 }
    }

    fn inbound(flows: &mut Flows, key: FlowId, packet: Packet) -> Vec<(Family, Packet)> {
        let mut out = Vec::new();
        let hold = Duration::from_millis(30);
        let reordering = Reordering { hold, repair: Duration::ZERO, alive: vec![0, 1] };
        flows.inbound(ms(1), key, PathId(0), packet, (Order::OfTcp, &reordering), &mut out);
        out
    }

    #[test]
    fn a_refused_flow_is_offered_again_as_ipv4_and_stays_that() {
        let mut flows = Flows::new(ROOM);
        assert_eq!(flow_of(protocol::UDP, &udp(1)[40..], false), Some(key(80)));
        assert_eq!(flow_of_quoted(&udp(1), false), Some(key(80)));
        assert_eq!(flows.refused(key(80)), Refusal::Pass);
        assert_eq!(inbound(&mut flows, key(80), udp(1)), [(Family::Six, udp(1))]);
        assert_eq!(flows.refused(key(80)), Refusal::OfferAgain(udp(1)));
        assert_eq!(flows.refused(key(80)), Refusal::Swallow);
        assert_eq!(inbound(&mut flows, key(80), udp(2)), [(Family::Four, udp(2))]);
        flows.outbound(ms(2), key(80), Family::Four);
        assert_eq!(inbound(&mut flows, key(80), udp(3)), [(Family::Four, udp(3))]);
    }

    /// What is held leaves in its time, before what waits for nothing, or for want of memory, and is counted.
    #[test]
    fn acknowledgments_are_held_and_let_go_together() {
        let held = || {
            let mut flows = Flows::new(ROOM);
            flows.outbound(ms(1), key(80), Family::Four);
            let empty = flows.bytes();
            for number in 1..=3 {
                let mut ready = inbound(&mut flows, key(80), udp(number));
                flows.bunch(key(80), Some(ms(50)), &mut ready);
                assert!(ready.is_empty());
            }
            assert_eq!((flows.poll_timeout(), flows.bytes() - empty), (Some(ms(50)), 3 * (udp(1).len() + HELD)));
            (flows, empty)
        };
        let three: Vec<_> = (1..=3).map(|number| (Family::Four, udp(number))).collect();
        let (mut flows, empty) = held();
        let mut out = Vec::new();
        flows.handle_timeout(ms(49), &mut out);
        assert!(out.is_empty());
        flows.handle_timeout(ms(50), &mut out);
        assert_eq!((&out, flows.bytes()), (&three, empty));
        let (mut flows, empty) = held();
        let mut ready = inbound(&mut flows, key(80), udp(4));
        flows.bunch(key(80), None, &mut ready);
        assert_eq!((&ready[..3], &ready[3..], flows.bytes()), (&three[..], &[(Family::Four, udp(4))][..], empty));
        let (mut flows, empty) = held();
        flows.allow(flows.bytes() - 1);
        let mut out = Vec::new();
        assert_eq!((flows.relieve(&mut out), &out, flows.bytes()), (0, &three, empty));
    }

    #[test]
    fn a_flow_that_the_program_answered_or_began_is_settled() {
        let mut flows = Flows::new(ROOM);
        inbound(&mut flows, key(80), udp(1));
        flows.outbound(ms(2), key(80), Family::Six);
        assert_eq!(flows.refused(key(80)), Refusal::Pass);
        flows.outbound(ms(2), key(81), Family::Four);
        assert_eq!(flows.family(key(81)), Family::Four);
        assert_eq!(flows.family(key(82)), Family::Six);
    }

    #[test]
    fn a_mark_stays_until_there_is_another() {
        let mut flows = Flows::new(ROOM);
        assert_eq!(flows.marked(key(80), 3), 3);
        flows.outbound(ms(1), key(80), Family::Six);
        assert_eq!([0, 3, 0, 4, 0].map(|mark| flows.marked(key(80), mark)), [0, 3, 3, 4, 4]);
        assert_eq!(flows.marked(key(81), 0), 0);
    }

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_idle() {
        let mut flows = Flows::new(ROOM);
        for port in 0..5000 {
            flows.outbound(ms(20_000), key(port), Family::Four);
        }
        assert_eq!(flows.len(), CAPACITY);
        assert_eq!(inbound(&mut flows, key(5000), udp(1)), [(Family::Six, udp(1))]);
        flows.outbound(ms(60_000), key(5000), Family::Four);
        assert_eq!(flows.len(), 1);
        assert_eq!(flows.family(key(5000)), Family::Four);
        assert_eq!(flows.family(key(0)), Family::Six);
    }
}

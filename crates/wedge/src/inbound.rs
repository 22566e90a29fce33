//! The way in: from an ESP packet to a packet for a program.

use crate::ecn::decapsulate;
use crate::flows::{Family, Flows, flow_of, flow_of_quoted};
use crate::heartbeat::{Beat, DATA};
use crate::labels::arriving;
use crate::numbers::{Header, What};
use crate::packet::{HEADROOM, Packet};
use crate::path::outer_header;
use crate::peer::PeerState;
use crate::report;
use crate::status::Counters;
use crate::wedge::Wedge;
use crate::{Protocol, Transmit};
use clock::Instant;
use hip::Route;
use hip::esp::OpenError;
use hip::feedback::NEXT_HEADER;
use multipath::{Acknowledgment, Asks, Ecn, Number, ReceivedPacket};
use rand_core::CryptoRng;
use scheduler::PathId;
use wire::Spi;
use wire::esp::EspHeader;
use wire::icmp::{Echo, IcmpError};
use wire::ip::{IpPacket, V6, V6_HEADER, V6Header, protocol};
use wire::short::{self, Template};
use wire::tcp;
use wire::translate::translate_6_to_4;

/// ESP's next header of a dummy packet (RFC 4303 §2.6).
const NO_NEXT_HEADER: u8 = 59;
/// What is free before a payload that is opened: its header may be in short.
const BEFORE: usize = HEADROOM + V6_HEADER + short::MOST_SAVED;

/// How a packet of a flow came.
#[derive(Clone, Copy)]
struct Came {
    path: PathId,
    route: Route,
    protocol: Protocol,
    number: Option<Number>,
    /// Its header was in short.
    is_short: bool,
}

/// A packet of others that this host passes on as it is.
fn carried(route: Route, packet: &[u8], ecn: Ecn) -> Transmit {
    Transmit { route, protocol: Protocol::Udp, bytes: packet.to_vec(), ecn, may_fragment: true, is_alone: false }
}

/// Whether a packet belongs to what a program here has begun, as far as can be told: of TCP all but what begins a connection,
/// for a program may be silent longer than its flow is remembered; heartbeats, and errors that quote a packet of ours.
fn answers(flows: &Flows, view: &V6<'_>) -> bool {
    if view.fragment().is_some() {
        // It may hide what it is.
        return false;
    }
    if view.protocol() == protocol::ICMPV6 {
        let beats = Echo::parse(view.payload(), view.src(), view.dst());
        if beats.is_some_and(|echo| Beat::parse(echo.data).is_some()) {
            return true;
        }
        if let Some(error) = IcmpError::parse(&IpPacket::V6(*view)) {
            return flow_of_quoted(error.quoted, true).is_some_and(|key| flows.knows(key));
        }
    }
    if view.protocol() == protocol::TCP {
        return tcp::Segment::parse(view.payload()).is_ok_and(|segment| {
            let flags = segment.flags();
            let begins = flags.contains(tcp::Flags::SYN) && !flags.contains(tcp::Flags::ACK);
            !begins || flow_of(protocol::TCP, view.payload(), false).is_some_and(|key| flows.knows(key))
        });
    }
    flow_of(view.protocol(), view.payload(), false).is_some_and(|key| flows.knows(key))
}

/// When an authentic payload wants to be reported.
fn asks(next_header: u8, payload: &[u8], peer: &PeerState) -> Asks {
    let PeerState { assigned, sender, .. } = peer;
    let is_bare_ack = |protocol, payload: &[u8]| match protocol {
        protocol::TCP => tcp::Segment::parse(payload)
            .is_ok_and(|segment| !segment.flags().contains(tcp::Flags::RST) && segment.sequence_len() == 0),
        protocol::UDP => {
            let flow = flow_of(protocol, payload, false);
            flow.is_some_and(|flow| sender.is_acknowledged_by(flow, payload.len()))
        }
        _ => false,
    };
    let is_bare_ack = match (next_header, Header::parse(next_header, payload, peer.short_numbers)) {
        (_, Some((header, len))) => {
            let behind = payload.get(len..).unwrap_or_default();
            match header.what {
                What::Protocol(protocol) => is_bare_ack(protocol, behind),
                What::Label(label) => assigned.template(label).is_some_and(|template| {
                    let flow = arriving(&template);
                    template.is_bare_ack(behind) || sender.is_acknowledged_by(flow, behind.len())
                }),
            }
        }
        (NEXT_HEADER, None) if payload.first() == Some(&report::KIND) => return Asks::Never,
        _ => is_bare_ack(next_header, payload),
    };
    if is_bare_ack { Asks::Later } else { Asks::Soon }
}

impl Counters {
    /// An ESP packet was refused.
    fn refused(&mut self, error: OpenError) {
        *match error {
            OpenError::Short => &mut self.short_esp,
            OpenError::UnknownSpi => &mut self.unknown_spi,
            OpenError::Replay => &mut self.replayed,
            OpenError::BadIcv => &mut self.bad_icv,
            OpenError::BadPadding => &mut self.bad_padding,
        } += 1;
    }
}

impl Wedge {
    /// Takes a HIP packet.
    pub(crate) fn inbound_hip(&mut self, now: Instant, rng: &mut dyn CryptoRng, route: Route, packet: &[u8]) {
        let bytes = outer_header(route.remote.is_ipv4(), route.in_udp()) + packet.len();
        self.hip_heard = Some((route, bytes));
        self.host.handle_packet(now, rng, route, packet);
        self.drive_host(now, rng);
        self.hip_heard = None;
    }

    /// An SPI that is none of ours: a packet that this host carries for others, or one of an association that is no more.
    fn not_for_here(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        route: Route,
        spi: Spi,
        packet: &[u8],
        outer: Ecn,
    ) {
        if let Some(there) = self.host.carry(now, route, spi, packet.len()) {
            return self.transmit.extend(there.map(|route| carried(route, packet, outer)));
        }
        self.counters.unknown_spi += 1;
        self.host.unknown_spi(now, rng, route, spi, packet.len());
        self.drive_host(now, rng);
    }

    /// Takes an ESP packet.
    pub(crate) fn inbound_esp(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        (route, protocol): (Route, Protocol),
        packet: &[u8],
        outer: Ecn,
    ) {
        let Ok((header, _)) = EspHeader::parse(packet) else {
            self.counters.short_esp += 1;
            return;
        };
        let Some((index, id)) = self.by_spi.get(&header.spi).copied() else {
            if protocol == Protocol::Esp && route.local.port() != 0 {
                // All ESP of this address comes here, that of other programs as well: nobody may be told that it is unknown.
                self.counters.unknown_spi += 1;
                return;
            }
            return self.not_for_here(now, rng, route, header.spi, packet, outer);
        };
        self.touch(index);
        let Some(peer) = self.peers.get_mut(index) else { return };
        let gives_feedback = peer.gives_feedback();
        let srtt = peer.sender.srtt(id);
        let Some(path) = peer.any_path_mut(id) else { return };
        // The payload lands behind the space for its header, and stays there.
        let mut inner = Vec::with_capacity(BEFORE + packet.len());
        inner.resize(BEFORE, 0);
        let next_header = match path.inbound.open(packet, &mut inner) {
            Ok(next_header) => next_header,
            Err(error) => return self.counters.refused(error),
        };
        path.follow_numbers();
        let route = path.route_of(route, protocol);
        path.received(packet.len(), route, protocol);
        let (wire, srtt) = (path.header_len() + packet.len(), srtt.or(path.heartbeat.rtt().srtt()));
        let is_own_way = path.route == route;
        let is_news = is_own_way && !path.is_confirmed;
        path.is_confirmed |= is_own_way;
        let (verified, before) = (path.verified, path.predecessor);
        if gives_feedback {
            let asks = asks(next_header, inner.get(BEFORE..).unwrap_or_default(), peer);
            let received = ReceivedPacket { number: header.seq, wire, is_marked: outer == Ecn::Ce, asks };
            peer.reporter.on_packet(now, id, received, srtt);
        }
        peer.heard();
        if let Some(before) = before.filter(|_| is_own_way) {
            // The peer has the new keys.
            peer.succeed(now, before, &mut self.counters);
        }
        // It ends the state R2-SENT (RFC 7401 §4.4.3); and what is authentic on this SPI, from where the SPI was told and
        // from nowhere else, shows that the peer is there (RFC 8046 §5.4).
        let proved = (is_news || !verified) && self.host.path_proved(peer.config.hit, id, route);
        if proved && !verified {
            self.verify(now, rng, index, id);
        }
        if is_news {
            self.drive_host(now, rng);
        }
        if !is_own_way {
            self.ask_elsewhere(now, rng, index, id, route, wire);
        }
        if next_header != NO_NEXT_HEADER {
            self.inbound_payload(now, rng, (index, id), (route, protocol), (next_header, inner), outer);
        }
    }

    /// Takes the payload of an authentic ESP packet, which begins at `BEFORE`.
    fn inbound_payload(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        (index, id): (usize, PathId),
        (route, protocol): (Route, Protocol),
        (mut next_header, mut inner): (u8, Vec<u8>),
        outer: Ecn,
    ) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let mut start = BEFORE;
        let mut came = Came { path: id, route, protocol, number: None, is_short: false };
        let mut inner_ecn = peer.gives_feedback().then_some(Ecn::NotEct);
        // RFC 7402 §3.2, BEET: the header is rebuilt from the HITs of the association.
        let (source, destination) = (peer.config.hit.address(), self.hit.address());
        let message = inner.get(BEFORE..).unwrap_or_default();
        let header = Header::parse(next_header, message, peer.short_numbers);
        if header.is_none() && next_header == NEXT_HEADER {
            return self.inbound_feedback(now, rng, index, id, message);
        }
        if let Some((header, len)) = header {
            if header.copy.is_some_and(|copy| !peer.copies.is_first(copy)) {
                return;
            }
            start += len;
            (came.number, inner_ecn) = (header.number, Some(header.ecn));
            match header.what {
                What::Protocol(protocol) => next_header = protocol,
                What::Label(label) => {
                    let Some(template) = peer.assigned.template(label) else {
                        self.counters.unknown_labels += 1;
                        return;
                    };
                    let Some(restored) = template.restore(&mut inner, start, (source, destination)) else {
                        self.counters.bad_payload += 1;
                        return;
                    };
                    (start, next_header, came.is_short) = (restored, template.protocol, true);
                }
            }
        }
        let Some(ecn) = decapsulate(inner_ecn, outer) else {
            self.counters.wrongly_marked += 1;
            return;
        };
        let header = V6Header { traffic_class: ecn.bits(), ..V6Header::new(source, destination, next_header) };
        let header = header.bytes(inner.len().saturating_sub(start));
        let (Ok(header), Some(space)) = (header, inner.get_mut(start - V6_HEADER..start)) else {
            self.counters.bad_payload += 1;
            return;
        };
        space.copy_from_slice(&header);
        let packet = Packet::behind(inner, start - V6_HEADER);
        self.inbound_packet(now, rng, index, came, packet);
    }

    /// Appends what has waited long enough to what is to be delivered.
    pub(crate) fn deliver_due(&mut self, now: Instant, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let mut ready = Vec::new();
        peer.flows.handle_timeout(now, &mut ready);
        for (family, packet) in ready {
            self.deliver(now, index, family, packet);
        }
    }

    fn inbound_packet(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize, came: Came, packet: Packet) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let Ok(view) = V6::parse(&packet) else {
            self.counters.bad_payload += 1;
            return;
        };
        if peer.config.only_answers && !answers(&peer.flows, &view) {
            self.counters.uninvited += 1;
            return;
        }
        if view.fragment().is_some() {
            // Fragments have no counterpart in the other family, and only the first has ports.
            peer.traffic(now);
            return self.deliver(now, index, Family::Six, packet);
        }
        let is_icmp = view.protocol() == protocol::ICMPV6;
        if is_icmp
            && let Some(echo) = Echo::parse(view.payload(), view.src(), view.dst())
            && let Some(beat) = Beat::parse(echo.data)
        {
            return self.inbound_beat(now, rng, index, came, echo, beat);
        }
        peer.traffic(now);
        if is_icmp && let Some(error) = IcmpError::parse(&IpPacket::V6(view)) {
            let key = flow_of_quoted(error.quoted, true);
            let family = key.map_or(Family::Six, |key| peer.flows.family(key));
            return self.deliver(now, index, family, packet);
        }
        let Some(key) = flow_of(view.protocol(), view.payload(), false) else {
            return self.deliver(now, index, Family::Six, packet);
        };
        let mut bare_ack = None;
        if view.protocol() == protocol::TCP
            && let Ok(segment) = tcp::Segment::parse(view.payload())
        {
            let sacked: Vec<(u32, u32)> = segment.sack_blocks().map(|block| (block.start, block.end)).collect();
            let flags = segment.flags();
            // What tells of holes is for those who wait for them.
            let is_bare_ack = flags == tcp::Flags::ACK && segment.payload_len() == 0 && sacked.is_empty();
            bare_ack = is_bare_ack.then_some(segment.ack());
            let ack = flags.contains(tcp::Flags::ACK).then_some(segment.ack());
            let heard = Acknowledgment { resets: flags.contains(tcp::Flags::RST), ack, sacked: &sacked };
            peer.on_acknowledgment(now, key, &heard, &mut self.counters);
        }
        if peer.takes_labels
            && let Some(candidate) = peer.flows.candidate(key)
        {
            peer.assigned.came(now, candidate, came.is_short, || Template::of(view.protocol(), view.payload()));
        }
        let mut ready = Vec::new();
        self.counters.given_up_for_memory +=
            peer.inbound(now, key, (came.path, came.number), (packet, bare_ack), &mut ready);
        for (family, packet) in ready {
            self.deliver(now, index, family, packet);
        }
    }

    /// A heartbeat of the peer is answered on its path, an answer to ours noted.
    fn inbound_beat(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        index: usize,
        Came { path: id, route, protocol: as_it_came, .. }: Came,
        echo: Echo<'_>,
        beat: Beat,
    ) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        if !echo.request {
            // Only what comes back on the path shows that the path is one.
            match peer.coming_path_mut(id).filter(|_| beat.path == id.0).map(|path| path.route == route) {
                Some(true) => peer.answered(now, id, beat.nonce, &mut self.counters, &mut self.events),
                Some(false) => self.answered_elsewhere(now, rng, index, (id, route), beat.nonce),
                None => {}
            }
            return;
        }
        self.counters.heartbeats_in += 1;
        let (from, to) = (self.hit.address(), peer.config.hit.address());
        let mut message = Vec::new();
        // Without the padding of a probe: only its way here is measured.
        let reply = Echo { data: echo.data.get(..DATA).unwrap_or(echo.data), ..echo.reply() };
        if reply.emit(from, to, &mut message).is_err() {
            return;
        }
        if let Some(path) = peer.any_path_mut(id) {
            path.next_leaves(as_it_came);
        }
        if peer.send_control(now, id, (protocol::ICMPV6, &message), true, rng, &mut self.transmit).is_err() {
            self.counters.exhausted += 1;
        }
    }

    /// Hands a packet to the local stack in the family its program speaks.
    fn deliver(&mut self, now: Instant, index: usize, family: Family, mut packet: Packet) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        peer.clamp_window(now, &mut packet);
        peer.clamp_inbound(&mut packet, &mut self.counters);
        if family == Family::Six {
            self.deliver.push(packet);
            return;
        }
        let (from, to) = (peer.config.lsi.address(), self.config.lsi.address());
        let mut translated = Vec::with_capacity(HEADROOM + packet.len());
        translated.resize(HEADROOM, 0);
        match translate_6_to_4(&packet, from, to, &mut translated) {
            Ok(()) => self.deliver.push(Packet::behind(translated, HEADROOM)),
            Err(_) => self.counters.bad_payload += 1,
        }
    }
}

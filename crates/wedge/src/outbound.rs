//! The way out: from a program's IP packet to a path's queue.

use crate::flows::{Family, Refusal, flow_of, flow_of_quoted};
use crate::path::Path;
use crate::payload::Payload;
use crate::policy::Outgoing;
use crate::wedge::Wedge;
use clock::Instant;
use multipath::{Ecn, PolicyId, QueuedPacket};
use rand_core::CryptoRng;
use std::net::IpAddr;
use wire::icmp::{self, IcmpError};
use wire::ip::{self, IpPacket, V4, V4_HEADER, V6, V6_HEADER, protocol};
use wire::translate::{translate_4_to_6, translate_6_to_4};
use wire::{Hit, Lsi, tcp};

impl Wedge {
    /// Takes one packet of a program.
    pub(crate) fn outbound(&mut self, now: Instant, rng: &mut dyn CryptoRng, mut packet: Vec<u8>) {
        match IpPacket::parse(&packet) {
            Ok(IpPacket::V6(view)) => {
                let Some((index, policy)) = self.outbound_v6(now, &packet, &view) else { return };
                // RFC 7402 §3.2, BEET: all after the inner header goes; ESP's next header is what was the inner header's.
                let Some(next_header) = packet.get(6).copied() else { return };
                let (ecn, end) = (Ecn::of(IpPacket::V6(view).ecn()), IpPacket::V6(view).len());
                packet.truncate(end);
                let payload = Payload::behind(next_header, packet, V6_HEADER).under(policy);
                self.outbound_payload(now, rng, index, ecn, payload);
            }
            Ok(IpPacket::V4(view)) => self.outbound_v4(now, rng, &packet, &view),
            Err(_) => self.counters.unreadable += 1,
        }
    }

    /// The peer to which an IPv6 packet goes, if it does, and the policy that holds for it.
    fn outbound_v6(&mut self, now: Instant, packet: &[u8], view: &V6<'_>) -> Option<(usize, Option<PolicyId>)> {
        let Some(index) = self.by_hit.get(&Hit::from(view.dst())).copied() else {
            self.counters.no_peer += 1;
            self.answer_unreachable(packet);
            return None;
        };
        self.touch(index);
        if Hit::from(view.src()) != self.hit {
            self.counters.wrong_source += 1;
            return None;
        }
        let payload = view.extensions().len() + view.payload().len();
        let device = usize::from(self.tun_mtu());
        let most = if payload + V6_HEADER > device { Some(device) } else { self.peers.get(index)?.too_big_v6(payload) };
        if let Some(most) = most {
            self.answer_too_big(packet, most);
            return None;
        }
        let policy = self.permitted(index, packet, IpPacket::V6(*view))?;
        (!self.is_refusal(now, index, view)).then_some((index, policy))
    }

    fn outbound_v4(&mut self, now: Instant, rng: &mut dyn CryptoRng, packet: &[u8], view: &V4<'_>) {
        let Some(index) = self.by_lsi.get(&Lsi::from(view.dst())).copied() else {
            self.counters.no_peer += 1;
            return self.answer_unreachable(packet);
        };
        self.touch(index);
        if Lsi::from(view.src()) != self.config.lsi {
            self.counters.wrong_source += 1;
            return;
        }
        let Some(policy) = self.permitted(index, packet, IpPacket::V4(*view)) else { return };
        let Some(peer) = self.peers.get_mut(index) else { return };
        let (payload, device) = (view.payload().len(), self.max_payload);
        let most =
            if payload > device { Some(device + V4_HEADER) } else { peer.too_big_v4(payload, !view.dont_fragment()) };
        if let Some(most) = most {
            return self.answer_too_big(packet, most);
        }
        let mut translated = Vec::with_capacity(packet.len() + V6_HEADER);
        let hits = (self.hit.address(), peer.config.hit.address());
        if translate_4_to_6(packet, hits.0, hits.1, &mut translated).is_err() {
            self.counters.unreadable += 1;
            return;
        }
        let next_header = translated.get(6).copied().unwrap_or(protocol::TCP);
        let payload = Payload::behind(next_header, translated, V6_HEADER).under(policy);
        if let Some(key) = flow_of(next_header, payload.bytes(), true) {
            peer.flows.outbound(now, key, Family::Four);
        }
        self.outbound_payload(now, rng, index, Ecn::of(IpPacket::V4(*view).ecn()), payload);
    }

    /// The policy that holds for a packet; `None` where it forbids the packet, which its program hears by ICMP.
    fn permitted(&mut self, index: usize, packet: &[u8], view: IpPacket<'_>) -> Option<Option<PolicyId>> {
        let peer = self.peers.get_mut(index).filter(|peer| !peer.policies.is_empty());
        let Some(peer) = peer else { return Some(None) };
        // The same flows in both families.
        let number = if view.protocol() == protocol::ICMP { protocol::ICMPV6 } else { view.protocol() };
        let is_later = view.fragment().is_some_and(|fragment| fragment.offset != 0);
        let payload = if is_later { &[][..] } else { view.payload() };
        let mut dscp = view.dscp();
        if peer.policies.read_marks()
            && let Some(key) = flow_of(number, payload, true)
        {
            dscp = peer.flows.marked(key, dscp);
        }
        let (policy, passes) = peer.policies.find(&Outgoing { protocol: number, dscp, payload });
        if passes {
            return Some(policy);
        }
        self.counters.prohibited += 1;
        let mut answer = Vec::new();
        // RFC 4443 §3.1, RFC 1122 §3.2.2.1: communication is administratively prohibited.
        let made = match view.dst() {
            IpAddr::V6(to) => icmp::error_v6(packet, icmp::v6::UNREACHABLE, icmp::v6::PROHIBITED, 0, to, &mut answer),
            IpAddr::V4(to) => {
                icmp::error_v4(packet, icmp::v4::UNREACHABLE, icmp::v4::HOST_PROHIBITED, 0, to, &mut answer)
            }
        };
        if made.is_ok() {
            self.deliver.push(answer.into());
        }
        None
    }

    /// Whether an IPv6 packet of the local stack refuses a flow that is, or is now offered as, IPv4. Notes whose flow
    /// the packet is if not.
    fn is_refusal(&mut self, now: Instant, index: usize, view: &V6<'_>) -> bool {
        let Some(peer) = self.peers.get_mut(index) else { return false };
        if view.fragment().is_some_and(|fragment| fragment.offset != 0) {
            return false;
        }
        let error = IcmpError::parse(&IpPacket::V6(*view)).filter(|error| error.is_unreachable(true));
        let key = match &error {
            Some(error) => flow_of_quoted(error.quoted, false),
            None => flow_of(view.protocol(), view.payload(), true),
        };
        let Some(key) = key else { return false };
        let resets = view.protocol() == protocol::TCP
            && tcp::Segment::parse(view.payload()).is_ok_and(|segment| segment.flags().contains(tcp::Flags::RST));
        if error.is_none() && !resets {
            peer.flows.outbound(now, key, Family::Six);
            return false;
        }
        match peer.flows.refused(key) {
            Refusal::Pass => return false,
            Refusal::Swallow => {}
            Refusal::OfferAgain(packet) => {
                let (from, to) = (peer.config.lsi.address(), self.config.lsi.address());
                let mut translated = Vec::with_capacity(packet.len());
                if translate_6_to_4(&packet, from, to, &mut translated).is_ok() {
                    self.counters.offered_as_ipv4 += 1;
                    self.deliver.push(translated.into());
                }
            }
        }
        self.counters.refusals_swallowed += 1;
        true
    }

    /// Sends what follows the inner header to a peer, or has it wait for the association.
    fn outbound_payload(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize, ecn: Ecn, payload: Payload) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let hit = peer.config.hit;
        if peer.is_lost(now) {
            self.begin_anew(now, rng, index, "nothing has come back from the peer for long");
        }
        let Some(peer) = self.peers.get_mut(index) else { return };
        if peer.is_reachable() {
            let Self { counters, transmit, hit: own, .. } = self;
            return peer.send_fitting(now, rng, *own, ecn, payload, counters, transmit);
        }
        self.counters.waited_too_long += peer.give_up_waiting(now);
        if !peer.wait(now, payload) {
            self.counters.waiting_full += 1;
        }
        if self.host.connect(now, rng, hit).is_err() {
            self.refuse_waiting(index);
        }
        self.drive_host(now, rng);
    }

    /// Sends what waited for a path.
    pub(crate) fn flush_waiting(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.is_reachable()) else { return };
        self.counters.waited_too_long += peer.give_up_waiting(now);
        for payload in peer.take_waiting() {
            // What begins a flow is not marked (RFC 3168 §6.1.1).
            peer.send_fitting(now, rng, self.hit, Ecn::NotEct, payload, &mut self.counters, &mut self.transmit);
        }
    }

    /// There is no association: tells the programs whose packets waited for it.
    pub(crate) fn refuse_waiting(&mut self, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        let waiting = peer.take_waiting();
        let (own, hit) = (self.hit.address().into(), peer.config.hit.address().into());
        let (lsi, own_lsi) = (peer.config.lsi.address(), self.config.lsi.address());
        for waiting in waiting {
            self.counters.no_association += 1;
            let (next_header, payload) = (waiting.next_header, waiting.bytes());
            let Ok(packet) = ip::packet(own, hit, next_header, payload) else { continue };
            let family = flow_of(next_header, payload, true).map(|key| peer.flows.family(key));
            let mut error = Vec::new();
            let code = icmp::v6::ADDRESS_UNREACHABLE;
            if icmp::error_v6(&packet, icmp::v6::UNREACHABLE, code, 0, peer.config.hit.address(), &mut error).is_err() {
                continue;
            }
            if family == Some(Family::Four) {
                let mut translated = Vec::new();
                if translate_6_to_4(&error, lsi, own_lsi, &mut translated).is_ok() {
                    self.deliver.push(translated.into());
                }
            } else {
                self.deliver.push(error.into());
            }
        }
    }

    /// Sends the heartbeats that are due; packets of paths that died go to the others.
    pub(crate) fn beat(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Self { peers, hit, counters, transmit, events, .. } = self;
        let Some(peer) = peers.get_mut(index) else { return };
        let stranded = peer.handle_timeout(now, rng, *hit, counters, events, transmit);
        // Asking on a path that does not answer would only keep the others waiting.
        let any_answers = peer.paths.iter().any(Path::answers);
        let asked = peer.paths.iter().filter(|path| path.answers() || !any_answers);
        let used_up =
            asked.filter(|path| path.outbound.sequence() >= self.config.renew_at && !peer.has_successor(path.id));
        let used_up: Vec<_> = used_up.map(|path| (peer.config.hit, path.id)).collect();
        if !used_up.is_empty() {
            for (hit, path) in used_up {
                self.host.renew_path(now, rng, hit, path);
            }
            self.drive_host(now, rng);
        }
        self.send_again(now, rng, index, stranded);
    }

    /// Gives packets that waited for a path to others.
    pub(crate) fn send_again(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        index: usize,
        packets: Vec<QueuedPacket<Payload>>,
    ) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        for QueuedPacket { payload, meta, .. } in packets {
            self.counters.rescheduled += 1;
            peer.send(now, rng, meta.ecn, payload, &mut self.counters, &mut self.transmit);
        }
    }

    /// Sends what the paths' queues may send now.
    pub(crate) fn release(&mut self, now: Instant, rng: &mut dyn CryptoRng, index: usize) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        peer.sender.release();
        peer.transmit(now, rng, &mut self.counters, &mut self.transmit);
    }

    fn answer_too_big(&mut self, packet: &[u8], most: usize) {
        self.counters.too_big += 1;
        let mut answer = Vec::new();
        let made = match IpPacket::parse(packet).map(|view| view.dst()) {
            Ok(IpAddr::V6(to)) => icmp::packet_too_big(packet, most as u32, to, &mut answer),
            Ok(IpAddr::V4(to)) => {
                icmp::fragmentation_needed(packet, u16::try_from(most).unwrap_or(u16::MAX), to, &mut answer)
            }
            Err(error) => Err(error),
        };
        if made.is_ok() {
            self.deliver.push(answer.into());
        }
    }

    fn answer_unreachable(&mut self, packet: &[u8]) {
        let mut answer = Vec::new();
        let made = match IpPacket::parse(packet).map(|view| view.dst()) {
            Ok(IpAddr::V6(to)) => icmp::error_v6(packet, icmp::v6::UNREACHABLE, icmp::v6::NO_ROUTE, 0, to, &mut answer),
            Ok(IpAddr::V4(to)) => {
                icmp::error_v4(packet, icmp::v4::UNREACHABLE, icmp::v4::HOST_UNREACHABLE, 0, to, &mut answer)
            }
            Err(error) => Err(error),
        };
        if made.is_ok() {
            self.deliver.push(answer.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LocalPath, PeerConfig, WedgeConfig};
    use hip::identity::HostIdentity;
    use multipath::Number;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use wire::udp;

    /// A packet is taken with its memory, and its payload does not move until it is sealed.
    #[test]
    fn the_payload_of_a_packet_stays_where_it_is() {
        let pem = include_str!("../../../vectors/hip/capture-ecdsa-p384/a.pem");
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let path = LocalPath::new("link", "10.0.0.1:10500".parse().unwrap());
        let config = WedgeConfig::new(Lsi([1, 0, 0, 1]), vec![path]);
        let mut wedge = Wedge::new(HostIdentity::from_pem(pem).unwrap(), config, &mut rng).unwrap();
        let (hit, lsi) = (Hit([7; 16]), Lsi([1, 0, 0, 7]));
        wedge.add_peer(PeerConfig::new("b", hit, lsi, ["10.0.0.7:10500".parse().unwrap()]));
        let packet = udp::packet((wedge.hit().address().into(), 9), (hit.address().into(), 9), &[7; 1_000]).unwrap();
        let at = packet[V6_HEADER..].as_ptr();
        wedge.handle_application(Instant::ZERO, &mut rng, [packet]);
        // There is no association yet.
        let mut waiting = wedge.peers[0].take_waiting();
        let payload = waiting.next().unwrap();
        assert_eq!((payload.bytes().len(), payload.bytes().as_ptr()), (1_008, at));
        let number = Some(Number { value: 1, is_early: false });
        assert_eq!(payload.sealed((number, None), Ecn::NotEct, true).parts()[1].as_ptr(), at);
    }
}

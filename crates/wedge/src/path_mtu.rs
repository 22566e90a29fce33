//! What paths carry at most, and what is done with packets of programs that are larger.
//!
//! [`multipath::PathMtu`] decides when a probe leaves and what its answer means; a probe is a heartbeat with padding, to which a
//! Sinnet answers without it. Only towards a Sinnet is anything looked for.
//!
//! Programs hear of it in two ways. The MSS of a SYN that passes, in either direction, is made what the narrowest path in use may
//! carry: as long as a search goes on, what it may still find, because an MSS is said once and Linux makes segments smaller
//! at once where it is told, never larger. A packet that is too large when the search has ended is answered by ICMP. What
//! nobody can be told is not lost either: while the search goes on, and where IPv6 knows no less than 1280 bytes, a segment of
//! TCP is cut into several, as a network device does, and all else goes out as it did before there were probes, with
//! fragmentation allowed.

use crate::path::Path;
use crate::payload::Payload;
use crate::peer::PeerState;
use crate::status::Counters;
use crate::{Protocol, Transmit, WedgeEvent, numbers};
use clock::Instant;
use multipath::{Ecn, MtuPhase, Probe};
use rand_core::CryptoRng;
use scheduler::PathId;
use std::collections::VecDeque;
use std::net::Ipv6Addr;
use wire::Hit;
use wire::ip::{V4_HEADER, V6, V6_HEADER, protocol};
use wire::tcp::{self, Flags, Segment};

/// The least that a link of IPv6 carries (RFC 8200 §5), and the least of which Linux lets itself be told.
pub(crate) const LEAST_V6: usize = 1280;
/// The least path MTU that Linux takes from ICMP in IPv4 (ip-sysctl, `min_pmtu`).
const LEAST_V4: usize = 552;

/// What the paths in use carry behind the inner header, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Of the narrowest.
    pub now: usize,
    /// What it may turn out to be.
    pub upper: usize,
    /// Whether its search has ended.
    pub is_settled: bool,
}

impl Path {
    /// Bytes of an inner payload that fit `limit` bytes of outer packet.
    pub(crate) fn room_in(&self, limit: u16, numbers: usize) -> usize {
        self.overhead().room(limit.into()).saturating_sub(numbers)
    }
}

impl PeerState {
    /// What may stand before a payload.
    fn numbers(&self) -> usize {
        match (self.gives_feedback(), self.has_copies) {
            (false, _) => 0,
            (true, false) => numbers::of_whole(self.short_numbers),
            (true, true) => numbers::ROOM,
        }
    }

    /// What fits the paths in use; `None` without any.
    pub(crate) fn room(&self) -> Option<Room> {
        let numbers = self.numbers();
        let any_usable = self.paths.iter().any(|path| path.answers() && !path.standby);
        let in_use =
            self.paths.iter().filter(|path| if any_usable { path.answers() && !path.standby } else { path.verified });
        let rooms = in_use.map(|path| Room {
            now: path.room_in(path.mtu.limit(), numbers),
            upper: path.room_in(path.mtu.upper(), numbers),
            is_settled: path.mtu.is_settled() || path.mtu.phase() == MtuPhase::Disabled,
        });
        rooms.reduce(|a, b| {
            let narrowest = if (b.now, b.is_settled) < (a.now, a.is_settled) { b } else { a };
            Room { upper: a.upper.min(b.upper), ..narrowest }
        })
    }

    /// The MTU of which a program is to hear whose packet has so many bytes behind its IPv6 header, if that is too large.
    pub(crate) fn too_big_v6(&self, payload: usize) -> Option<usize> {
        let room = self.room().filter(|room| room.is_settled)?;
        let mtu = (room.now + V6_HEADER).max(LEAST_V6);
        (payload + V6_HEADER > mtu).then_some(mtu)
    }

    /// The same of IPv4. What may be cut on the way is not too large.
    pub(crate) fn too_big_v4(&self, payload: usize, may_fragment: bool) -> Option<usize> {
        let room = self.room().filter(|room| room.is_settled && !may_fragment)?;
        let mtu = (room.now + V4_HEADER).max(LEAST_V4);
        (payload + V4_HEADER > mtu).then_some(mtu)
    }

    /// Sends a program's packet, as several where it has to be.
    #[expect(clippy::too_many_arguments, reason = "those of `send`")]
    pub(crate) fn send_fitting(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        own: Hit,
        ecn: Ecn,
        mut payload: Payload,
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        let pieces = self.fit(&mut payload, own, counters);
        if pieces.is_empty() {
            return self.send(now, rng, ecn, payload, counters, out);
        }
        for piece in pieces {
            self.send(now, rng, ecn, piece, counters, out);
        }
    }

    /// Prepares a program's packet for paths: a SYN says what they carry, and a segment that is too long is cut. Nothing where the
    /// packet goes as it is.
    fn fit(&self, payload: &mut Payload, own: Hit, counters: &mut Counters) -> Vec<Payload> {
        if payload.next_header != protocol::TCP {
            return Vec::new();
        }
        let Some(room) = self.room() else { return Vec::new() };
        counters.mss_clamped += u64::from(clamp_mss(payload.bytes_mut(), room));
        if payload.bytes().len() <= room.now {
            return Vec::new();
        }
        let Ok(segment) = Segment::parse(payload.bytes()) else { return Vec::new() };
        let (from, to) = (own.address().into(), self.config.hit.address().into());
        let pieces = tcp::cut(&segment, room.now, V6_HEADER, from, to);
        counters.segments_cut += u64::from(!pieces.is_empty());
        let policy = payload.policy;
        let of = |piece| Payload::behind(protocol::TCP, piece, V6_HEADER).under(policy);
        pieces.into_iter().map(of).collect()
    }

    /// A SYN of the peer tells the program here what the paths carry.
    pub(crate) fn clamp_inbound(&self, packet: &mut [u8], counters: &mut Counters) {
        let Ok(view) = V6::parse(packet) else { return };
        if view.protocol() != protocol::TCP || view.fragment().is_some() {
            return;
        }
        let at = packet.len() - view.payload().len();
        let Some(segment) = packet.get_mut(at..) else { return };
        let is_syn = Segment::parse(segment).is_ok_and(|segment| segment.flags().contains(Flags::SYN));
        if is_syn && let Some(room) = self.room() {
            counters.mss_clamped += u64::from(clamp_mss(segment, room));
        }
    }

    /// Sends the probes that are due.
    pub(crate) fn probe(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        hits: (Ipv6Addr, Ipv6Addr),
        counters: &mut Counters,
        out: &mut Vec<Transmit>,
    ) {
        for index in 0..self.paths.len() {
            let Some(path) = self.paths.get(index).filter(|path| path.answers() && path.mtu.poll_timeout() <= now)
            else {
                continue;
            };
            let (id, srtt) = (path.id, self.srtt(path));
            let Some(path) = self.paths.get_mut(index) else { continue };
            let before = path.mtu.counts().black_holes;
            let probes = path.mtu.handle_timeout(now, srtt);
            counters.black_holes += path.mtu.counts().black_holes - before;
            let bytes: usize = probes.iter().map(|probe| usize::from(probe.size)).sum();
            if !path.credit.allows(bytes + path.wire_len(0)) {
                path.mtu.postpone(now);
                continue;
            }
            for Probe { size } in probes {
                let nonce = rng.next_u64();
                let Some(path) = self.paths.get_mut(index) else { break };
                path.mtu.sent(nonce, size);
                let room = path.room_in(size, 0);
                let Some(message) = path.question(nonce, hits, room) else { continue };
                counters.mtu_probes_out += u64::from(size > 0);
                // What fits inside UDP fits without it.
                path.next_leaves(Protocol::Udp);
                let from = out.len();
                // Nothing is concluded from its loss: it is in no window. An SA that is used up is counted where data meet it.
                let _ = self.send_control(now, id, (protocol::ICMPV6, &message), false, rng, out);
                for transmit in out.iter_mut().skip(from) {
                    (transmit.may_fragment, transmit.is_alone) = (false, true);
                }
            }
        }
    }

    /// An answer to a probe came on a path. Whether it was one.
    pub(crate) fn probe_answered(&mut self, now: Instant, id: PathId, nonce: u64, counters: &mut Counters) -> bool {
        let Some(path) = self.path_mut(id).filter(|path| path.mtu.is_asked(nonce)) else { return false };
        let before = path.mtu.counts().answered;
        path.mtu.answered(now, nonce);
        counters.mtu_probes_answered += path.mtu.counts().answered - before;
        true
    }

    /// Tells of what was found.
    pub(crate) fn tell_mtus(&mut self, events: &mut VecDeque<WedgeEvent>) {
        for path in &mut self.paths {
            let found = path.mtu.plpmtu().filter(|_| path.mtu.is_settled());
            let (Some(found), before) = (found, path.told_mtu.unwrap_or(path.mtu.most())) else { continue };
            if found != before {
                path.told_mtu = Some(found);
                events.push_back(WedgeEvent::PathMtu {
                    peer: self.config.name.clone(),
                    path: path.id,
                    name: path.name.clone(),
                    route: path.route,
                    mtu: found,
                });
            }
        }
    }
}

/// A SYN announces no more than may fit. Whether it did.
fn clamp_mss(segment: &mut [u8], room: Room) -> bool {
    let is_syn = Segment::parse(segment).is_ok_and(|segment| segment.flags().contains(Flags::SYN));
    // RFC 6691 §2: the MSS counts no options.
    let mss = u16::try_from(room.upper.saturating_sub(tcp::HEADER)).unwrap_or(u16::MAX);
    is_syn && mss > 0 && tcp::clamp_mss(segment, mss)
}

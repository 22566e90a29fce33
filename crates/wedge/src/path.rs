//! One path of an association: its security associations, its queue, its heartbeats.

use crate::braid::Control;
use crate::config::Way;
use crate::heartbeat::{Beat, Heartbeat};
use crate::payload::Payload;
use crate::rebinding::Rebinding;
use crate::renewal::Retirement;
use crate::status::PathStatus;
use crate::{Protocol, Transmit};
use clock::{Duration, Instant};
use hip::Route;
use hip::esp::{Exhausted, InboundSa, OutboundSa};
use multipath::{Ecn, Kind, Pacer, QueuedPacket, Windows};
use rand_core::CryptoRng;
use scheduler::{PathId, PathView};
use std::net::Ipv6Addr;
use wire::icmp::Echo;
use wire::ip::{V4_HEADER, V6_HEADER, protocol};
use wire::udp;

/// What may be under way beyond a full window, in bytes: some hundreds of acknowledgments.
const BEYOND_WINDOW: f64 = 64_000.0;

/// RFC 9000 §8: three times what came from an address that is not validated.
const CREDIT: u64 = 3;
/// One in so many sequence numbers is not used, at random, where the peer tells which have arrived: who acknowledges one of
/// these invents acknowledgments (RFC 9000 §21.4).
const SKIPPED: u32 = 256;

/// A path that has its pair of security associations.
pub(crate) struct Path {
    pub id: PathId,
    pub route: Route,
    pub name: String,
    pub way: Way,
    /// The peer is known to receive at the remote locator.
    pub verified: bool,
    /// It carries data only where no other path works: this host wants it so.
    pub backup: bool,
    /// The peer wants it so.
    pub peers_backup: bool,
    /// It is a backup, and others work.
    pub standby: bool,
    pub outbound: OutboundSa,
    pub inbound: InboundSa,
    pub pacer: Pacer<Payload>,
    pub heartbeat: Heartbeat,
    pub traffic: Traffic,
    pub credit: Credit,
    /// Where the peer may be by now, if something of it came from elsewhere.
    pub rebinding: Option<Rebinding>,
    /// The path that it takes over from.
    pub predecessor: Option<PathId>,
    /// When it ends, if another has taken over.
    pub retirement: Option<Retirement>,
    /// It is dead and was opened anew.
    pub is_reopened: bool,
    /// The association side knows that something came.
    pub is_confirmed: bool,
    /// Where the peer gives feedback.
    pub control: Option<Control>,
}

/// What a path has carried, in whole outer IP packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub packets_in: u64,
}

/// What may be sent to a locator whose owner has shown once only that it is there (RFC 8046 §5.6): three times what came from
/// there, until an answer to a heartbeat comes from it. A peer that was somewhere could otherwise have us send anything to
/// who is there now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit {
    /// Whether it counts: a peer that answers no echoes has nothing else to show than it has shown.
    pub applies: bool,
    /// A heartbeat was answered from there.
    pub is_proven: bool,
    /// Bytes that came from there, in whole outer IP packets, and those that went there.
    pub heard: u64,
    pub said: u64,
}

impl Credit {
    /// After so many bytes of HIP came from there.
    pub(crate) fn new(heard: usize) -> Self {
        Self { heard: heard as u64, ..Self::default() }
    }

    /// Whether so many bytes may be sent now.
    pub(crate) fn allows(&self, bytes: usize) -> bool {
        self.is_proven || !self.applies || self.said.saturating_add(bytes as u64) <= self.heard.saturating_mul(CREDIT)
    }
}

/// Bytes of the outer headers before an ESP packet.
pub(crate) fn outer_header(route_is_v4: bool, in_udp: bool) -> usize {
    (if route_is_v4 { V4_HEADER } else { V6_HEADER }) + if in_udp { udp::HEADER } else { 0 }
}

impl Path {
    /// Whether data may be sent on it now.
    pub(crate) fn is_usable(&self) -> bool {
        self.answers() && !self.standby
    }

    /// Whether data could be sent on it.
    pub(crate) fn answers(&self) -> bool {
        self.verified && self.heartbeat.is_alive()
    }

    /// Whether reports may be sent on it.
    pub(crate) fn can_report(&self) -> bool {
        self.verified && self.control.is_some()
    }

    /// Whether what does not wait for the window, as acknowledgments, may be sent. A path that is slower than they come would
    /// otherwise fill with them, for they are not paced.
    pub(crate) fn has_room_beyond(&self, windows: Option<&Windows>) -> bool {
        match (&self.control, windows) {
            (Some(control), Some(windows)) => {
                control.sent.in_flight() as f64 <= windows.window(control.slot) + BEYOND_WINDOW
            }
            _ => true,
        }
    }

    /// Whether either host wants it only where no other path works.
    pub(crate) fn is_backup(&self) -> bool {
        self.backup || self.peers_backup
    }

    /// Bytes of the outer IP packet for an inner payload of this many bytes.
    pub(crate) fn wire_len(&self, payload: usize) -> usize {
        self.header_len() + self.outbound.sealed_len(payload)
    }

    /// The path as a scheduler sees it. What does not wait in the queue (`past_queue`) leaves earlier.
    pub(crate) fn view(&self, open: bool, past_queue: bool, now: Instant) -> PathView {
        let free_at = if past_queue { self.pacer.clear_at() } else { self.pacer.free_at(now) };
        PathView { id: self.id, open, delay: self.way.delay, rate: self.pacer.rate(), free_at, ..PathView::default() }
    }

    /// Seals and hands out what may leave now.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        while self.pacer.first().is_some_and(|wire| self.credit.allows(wire))
            && let Some(QueuedPacket { mut payload, meta, wire, .. }) = self.pacer.release(now)
        {
            let (next_header, payload) = payload.sealed_bytes(None, meta.ecn);
            self.seal(now, next_header, payload, meta.ecn, rng, out)?;
            if let Some(control) = &mut self.control {
                control.sealed(now, self.outbound.sequence(), wire, Kind::Uncounted);
            }
        }
        Ok(())
    }

    /// Seals and hands out a packet that does not wait.
    pub(crate) fn send_now(
        &mut self,
        now: Instant,
        next_header: u8,
        payload: &[u8],
        content: Kind<Payload>,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        let wire = self.wire_len(payload.len());
        // Under a window it delays what waits, but not further than what waits is delayed already: acknowledgments and
        // reports may come faster than the pace, and data would never have its turn.
        if self.control.is_none() || self.pacer.clear_at() <= now {
            self.pacer.sent(wire, now);
        }
        // Control messages, and what RFC 3168 §6.1.4 wants without a mark: acknowledgments alone.
        self.seal(now, next_header, payload, Ecn::NotEct, rng, out)?;
        if let Some(control) = &mut self.control {
            control.sealed(now, self.outbound.sequence(), wire, content);
        }
        Ok(())
    }

    /// Seals and hands out a packet of the holding buffer, and keeps it until the peer has it, if that will be known.
    pub(crate) fn send_held(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket<Payload>,
        is_followed: bool,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        self.pacer.sent(packet.wire, now);
        let (next_header, payload) = packet.payload.sealed_bytes(packet.number, packet.meta.ecn);
        self.seal(now, next_header, payload, packet.meta.ecn, rng, out)?;
        if let Some(control) = &mut self.control {
            let wire = packet.wire;
            let content = if is_followed { Kind::Retransmittable(packet) } else { Kind::Uncounted };
            control.sealed(now, self.outbound.sequence(), wire, content);
        }
        Ok(())
    }

    /// Sends an echo request to the peer (RFC 4443 §4.1), HIT to HIT.
    pub(crate) fn beat(
        &mut self,
        now: Instant,
        nonce: u64,
        (from, to): (Ipv6Addr, Ipv6Addr),
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) {
        let data = Beat { path: self.id.0, nonce }.emit();
        let echo = Echo { request: true, identifier: self.id.0, sequence: nonce as u16, data: &data };
        let mut message = Vec::new();
        // Neither can fail but for an SA that is used up, and that is counted where data meets it.
        if echo.emit(from, to, &mut message).is_ok() {
            let _ = self.send_now(now, protocol::ICMPV6, &message, Kind::InFlight, rng, out);
        }
    }

    /// When the next packet of its queue may leave; `None` while none waits, or the peer has first to answer.
    pub(crate) fn queue_deadline(&self) -> Option<Instant> {
        self.pacer.first().filter(|wire| self.credit.allows(*wire)).and(self.pacer.poll_timeout())
    }

    /// The smoothed round-trip time, by reports or by heartbeats.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.control.as_ref().and_then(|control| control.sent.rtt().srtt()).or(self.heartbeat.rtt().srtt())
    }

    /// Counts an ESP packet of `esp` bytes that was accepted, and came on this route.
    pub(crate) fn received(&mut self, esp: usize, route: Route) {
        let bytes = (self.header_len() + esp) as u64;
        self.traffic.packets_in += 1;
        self.traffic.bytes_in += bytes;
        if route == self.route {
            self.credit.heard += bytes;
        }
    }

    /// A snapshot.
    pub(crate) fn status(&self) -> PathStatus {
        PathStatus {
            id: self.id.0,
            name: self.name.clone(),
            local: self.route.local.to_string(),
            remote: self.route.remote.to_string(),
            alive: self.answers(),
            backup: self.is_backup(),
            standby: self.standby,
            rate: self.way.rate,
            srtt_ms: self.srtt().map(|srtt| srtt.as_secs_f64() * 1e3),
            bytes_out: self.traffic.bytes_out,
            bytes_in: self.traffic.bytes_in,
            packets_out: self.traffic.packets_out,
            packets_in: self.traffic.packets_in,
            queued: self.pacer.queued(),
            measured: None,
        }
    }

    pub(crate) fn header_len(&self) -> usize {
        outer_header(self.route.remote.is_ipv4(), self.route.in_udp())
    }

    fn seal(
        &mut self,
        now: Instant,
        next_header: u8,
        payload: &[u8],
        ecn: Ecn,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        if let Some(control) = self.control.as_mut().filter(|control| !control.is_snooped())
            && rng.next_u32() < u32::MAX / SKIPPED
        {
            control.sent.skipped(now, self.outbound.skip()?);
        }
        let mut bytes = Vec::with_capacity(self.outbound.sealed_len(payload.len()));
        self.outbound.seal(next_header, payload, rng, &mut bytes)?;
        self.traffic.packets_out += 1;
        let wire = (self.header_len() + bytes.len()) as u64;
        self.traffic.bytes_out += wire;
        self.credit.said += wire;
        let protocol = if self.route.in_udp() { Protocol::Udp } else { Protocol::Esp };
        out.push(Transmit { route: self.route, protocol, bytes, ecn });
        Ok(())
    }
}

//! One path of an association: its security associations, its queue, its heartbeats.

use crate::braid::Control;
use crate::config::Way;
use crate::ecn::Ecn;
use crate::heartbeat::Heartbeat;
use crate::pacing::{Pacer, Waiting};
use crate::sent::Content;
use crate::status::PathStatus;
use crate::{Protocol, Transmit};
use clock::{Duration, Instant};
use hip::Route;
use hip::esp::{Exhausted, InboundSa, OutboundSa};
use rand_core::CryptoRng;
use scheduler::{PathId, PathView};
use wire::ip::{V4_HEADER, V6_HEADER};
use wire::udp;

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
    pub pacer: Pacer,
    pub heartbeat: Heartbeat,
    pub traffic: Traffic,
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
        while let Some(Waiting { next_header, payload, ecn, wire, .. }) = self.pacer.release(now) {
            self.seal(next_header, &payload, ecn, rng, out)?;
            if let Some(control) = &mut self.control {
                control.sealed(now, self.outbound.sequence(), wire, Content::Report);
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
        content: Content,
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
        self.seal(next_header, payload, Ecn::NotEct, rng, out)?;
        if let Some(control) = &mut self.control {
            control.sealed(now, self.outbound.sequence(), wire, content);
        }
        Ok(())
    }

    /// Seals and hands out a packet of the holding buffer, and keeps it until the peer has it, if that will be known.
    pub(crate) fn send_held(
        &mut self,
        now: Instant,
        packet: Waiting,
        is_followed: bool,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        self.pacer.sent(packet.wire, now);
        self.seal(packet.next_header, &packet.payload, packet.ecn, rng, out)?;
        if let Some(control) = &mut self.control {
            let wire = packet.wire;
            let content = if is_followed { Content::Data(packet) } else { Content::Report };
            control.sealed(now, self.outbound.sequence(), wire, content);
        }
        Ok(())
    }

    /// The smoothed round-trip time, by reports or by heartbeats.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.control.as_ref().and_then(|control| control.sent.rtt().srtt()).or(self.heartbeat.rtt().srtt())
    }

    /// Counts an ESP packet of `esp` bytes that was accepted.
    pub(crate) fn received(&mut self, esp: usize) {
        self.traffic.packets_in += 1;
        self.traffic.bytes_in += (self.header_len() + esp) as u64;
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
        next_header: u8,
        payload: &[u8],
        ecn: Ecn,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<(), Exhausted> {
        let mut bytes = Vec::with_capacity(self.outbound.sealed_len(payload.len()));
        self.outbound.seal(next_header, payload, rng, &mut bytes)?;
        self.traffic.packets_out += 1;
        self.traffic.bytes_out += (self.header_len() + bytes.len()) as u64;
        let protocol = if self.route.in_udp() { Protocol::Udp } else { Protocol::Esp };
        out.push(Transmit { route: self.route, protocol, bytes, ecn });
        Ok(())
    }
}

//! One path of an association: its security associations, its queue, its heartbeats.

use crate::config::PathParameters;
use crate::heartbeat::Beat;
use crate::native_esp::NativeEsp;
use crate::rebinding::Rebinding;
use crate::renewal::Retirement;
use crate::status::PathStatus;
use crate::{Protocol, Transmit};
use clock::Instant;
use hip::Route;
use hip::esp::{EspSuite, Exhausted, InboundSa, OutboundSa};
use multipath::{Ecn, Heartbeat, Overhead, PathMtu, PathState, SKIPPED};
use rand_core::CryptoRng;
use scheduler::PathId;
use std::net::Ipv6Addr;
use wire::icmp::{self, Echo};
use wire::ip::{V4_HEADER, V6_HEADER};
use wire::udp;

/// RFC 9000 §8: three times what came from an address that is not validated.
const CREDIT: u64 = 3;
/// Pad length and next header (RFC 4303 §2).
const ESP_TRAILER: usize = 2;

/// The number under which a packet was sealed and left, and one before it under which none was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub skipped: Option<u32>,
    pub number: u32,
    /// Bytes of the whole outer packet.
    pub wire: usize,
}

/// A path that has its pair of security associations.
pub(crate) struct Path {
    pub id: PathId,
    pub route: Route,
    pub name: String,
    pub parameters: PathParameters,
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
    pub heartbeat: Heartbeat,
    /// The largest packet that it carries.
    pub mtu: PathMtu,
    /// What was told of that last, in bytes.
    pub told_mtu: Option<u16>,
    /// Whether its packets leave without UDP.
    pub native: NativeEsp,
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
    /// Heartbeats to a peer that has not shown how long its numbers are.
    pub unheard: u32,
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
        bytes as u64 <= self.left()
    }

    /// How many bytes may be sent now.
    pub(crate) fn left(&self) -> u64 {
        if self.is_proven || !self.applies {
            return u64::MAX;
        }
        self.heard.saturating_mul(CREDIT).saturating_sub(self.said)
    }
}

/// Bytes of the outer headers before an ESP packet.
pub(crate) fn outer_header(route_is_v4: bool, in_udp: bool) -> usize {
    (if route_is_v4 { V4_HEADER } else { V6_HEADER }) + if in_udp { udp::HEADER } else { 0 }
}

/// What is around a payload: so many bytes of outer headers, and what ESP adds.
pub(crate) fn overhead(header: usize, suite: EspSuite) -> Overhead {
    let (trailer, alignment) = (ESP_TRAILER, suite.alignment());
    Overhead { fixed: header + suite.sealed_len(0) - trailer.next_multiple_of(alignment), trailer, alignment }
}

impl Path {
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

    /// What is around a payload.
    pub(crate) fn overhead(&self) -> Overhead {
        overhead(self.header_len(), self.outbound.suite())
    }

    /// What the sender has to know of it, when something new had come on it last.
    pub(crate) fn state(&self, heard_at: Instant) -> PathState {
        let rtt = self.heartbeat.rtt();
        PathState {
            is_verified: self.verified,
            is_alive: self.heartbeat.is_alive(),
            is_standby: self.standby,
            allowance: self.credit.left(),
            overhead: self.overhead(),
            mtu: self.mtu.limit(),
            rate: self.parameters.rate,
            delay: self.parameters.delay,
            srtt: rtt.srtt(),
            rttvar: rtt.rttvar(),
            answered_at: self.heartbeat.answered_at(),
            heard_at,
        }
    }

    /// A host with numbers of 64 bits takes no others, and may wait for us to begin. So where nothing has come of a host that is
    /// no Sinnet for two heartbeats, every other one is sent with those.
    pub(crate) fn try_numbers(&mut self) {
        if self.inbound.numbers().is_none() {
            let is_other = self.unheard >= 2 && self.unheard.is_multiple_of(2);
            self.unheard = self.unheard.saturating_add(1);
            let usual = self.outbound.numbers();
            self.outbound.count_in(if is_other { usual.other() } else { usual });
        }
    }

    /// Ours are as long as those that the peer had last.
    pub(crate) fn follow_numbers(&mut self) {
        if let Some(numbers) = self.inbound.numbers() {
            self.outbound.count_in(numbers);
        }
    }

    /// An echo request to the peer (RFC 4443 §4.1), HIT to HIT, of so many bytes if that is more than it needs.
    pub(crate) fn question(&self, nonce: u64, (from, to): (Ipv6Addr, Ipv6Addr), bytes: usize) -> Option<Vec<u8>> {
        let mut data = Beat { path: self.id.0, nonce }.emit().to_vec();
        data.resize(data.len().max(bytes.saturating_sub(icmp::HEADER)), 0);
        let echo = Echo { request: true, identifier: self.id.0, sequence: nonce as u16, data: &data };
        let mut message = Vec::new();
        echo.emit(from, to, &mut message).is_ok().then_some(message)
    }

    /// Counts an ESP packet of `esp` bytes that was accepted, and came on this route.
    pub(crate) fn received(&mut self, esp: usize, route: Route, protocol: Protocol) {
        let bytes = (self.header_in(protocol) + esp) as u64;
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
            sheds_udp: self.sheds_udp(),
            alive: self.answers(),
            backup: self.is_backup(),
            standby: self.standby,
            rate: self.parameters.rate,
            srtt_ms: None,
            bytes_out: self.traffic.bytes_out,
            bytes_in: self.traffic.bytes_in,
            packets_out: self.traffic.packets_out,
            packets_in: self.traffic.packets_in,
            queued: 0,
            mtu: self.mtu.limit(),
            mtu_state: self.mtu.phase().name().to_owned(),
            mtu_probes: self.mtu.counts().probes,
            black_holes: self.mtu.counts().black_holes,
            measured: None,
        }
    }

    pub(crate) fn header_len(&self) -> usize {
        outer_header(self.route.remote.is_ipv4(), self.route.in_udp())
    }

    /// Bytes of the outer headers of a packet that goes so.
    fn header_in(&self, protocol: Protocol) -> usize {
        outer_header(self.route.remote.is_ipv4(), protocol == Protocol::Udp)
    }

    /// Seals a packet and hands it out. `skips` where the peer tells which numbers have arrived.
    pub(crate) fn seal(
        &mut self,
        (next_header, payload, ecn): (u8, [&[u8]; 2], Ecn),
        skips: bool,
        rng: &mut dyn CryptoRng,
        out: &mut Vec<Transmit>,
    ) -> Result<Left, Exhausted> {
        let skipped = if skips && rng.next_u32() < u32::MAX / SKIPPED { Some(self.outbound.skip()?) } else { None };
        let len = payload.iter().map(|part| part.len()).sum();
        let mut bytes = Vec::with_capacity(self.outbound.sealed_len(len));
        self.outbound.seal_parts(next_header, payload, rng, &mut bytes)?;
        self.traffic.packets_out += 1;
        let wire = self.header_len() + bytes.len();
        let protocol = self.leaves();
        self.traffic.bytes_out += (self.header_in(protocol) + bytes.len()) as u64;
        self.credit.said += wire as u64;
        let may_fragment = self.mtu.plpmtu().is_none_or(|plpmtu| wire > usize::from(plpmtu));
        out.push(Transmit { route: self.route, protocol, bytes, ecn, may_fragment, is_alone: false });
        Ok(Left { skipped, number: self.outbound.sequence(), wire })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4303 §2: what the core takes a packet for is as long as the packet that is sealed.
    #[test]
    fn the_overhead_is_that_of_sealed_packets() {
        for suite in EspSuite::KNOWN.into_iter().chain([EspSuite::Aes128Gcm16Iiv]) {
            let overhead = overhead(28, suite);
            for payload in 0..200 {
                assert_eq!(overhead.wire(payload), 28 + suite.sealed_len(payload), "{suite:?} {payload}");
            }
        }
    }

    /// What the simulator takes for these is what packets have.
    #[test]
    fn packets_are_as_long_as_simulated_ones() {
        assert_eq!(overhead(28, EspSuite::Aes128Gcm16Iiv), Overhead::AES_GCM_IN_UDP);
        for suite in [EspSuite::Aes128CbcHmacSha256, EspSuite::Aes256CbcHmacSha256] {
            assert_eq!(overhead(28, suite), Overhead::AES_CBC_IN_UDP);
        }
        let path = crate::LocalPath::new("link", "10.0.0.1:10500".parse().unwrap());
        let config = crate::WedgeConfig::new(wire::Lsi([198, 18, 0, 1]), Vec::new());
        for mtu in [576, 1280, 1500, 9000] {
            let path = crate::LocalPath { mtu, ..path.clone() };
            let room = crate::wedge::room(&config, &path).unwrap();
            assert_eq!(room, multipath::inner_room(mtu));
        }
        let beat = Beat { path: 1, nonce: 2 }.emit();
        let mut message = Vec::new();
        let any = Ipv6Addr::LOCALHOST;
        Echo { request: true, identifier: 1, sequence: 2, data: &beat }.emit(any, any, &mut message).unwrap();
        assert_eq!(message.len(), multipath::HEARTBEAT);
    }
}

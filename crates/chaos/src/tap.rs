//! What an observer who sees everything knows: which packets left, under which keys, and what came back.

use crate::network::{Packet, is_bystander};
use crate::property::{Judge, Property};
use crate::traffic::MARK;
use clock::{Duration, Instant};
use hip::PathId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wire::hip::{Packet as HipPacket, PacketKind};

/// After an address has gone to somebody else, data may go there for so long.
const FORMER: Duration = Duration::from_millis(2_500);
/// In a good network a renewal takes no longer: retransmissions, and one after the other where there are more paths.
const RENEWED: Duration = Duration::from_secs(10);
/// Answers that are longer than three times what asked for them: so many bytes at once, and so many a second.
const ANSWERS: (u64, u64) = (10_000, 5_000);

/// A security association, by receiver and SPI.
#[derive(Clone, Debug)]
pub(crate) struct Sa {
    pub(crate) sender: usize,
    pub(crate) keys: SaKeys,
    /// Whether the sender, and whether the receiver, has told of it.
    told: [bool; 2],
    /// The last sequence number that the sender used, and how many packets there are.
    pub(crate) highest: u32,
    pub(crate) packets: u64,
    /// When it was to be renewed.
    due: Option<Instant>,
    /// The how many-th it is.
    pub(crate) since: usize,
}

/// The keys of a security association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SaKeys {
    pub(crate) encryption: Vec<u8>,
    pub(crate) authentication: Vec<u8>,
}

/// A pair of security associations as a host tells of it.
pub(crate) struct Pair {
    pub(crate) outbound: (u32, SaKeys),
    pub(crate) inbound: (u32, SaKeys),
}

/// Everything that was seen.
#[derive(Default)]
pub(crate) struct Tap {
    pub(crate) hash: u64,
    pub(crate) packets: u64,
    pub(crate) sas: BTreeMap<(usize, u32), Sa>,
    /// Keys that a host may seal with, and for which security association.
    keys: BTreeMap<Vec<u8>, (usize, u32)>,
    /// Hosts that may lie.
    pub(crate) hostile: BTreeSet<usize>,
    /// Since when the network is good.
    calm: Option<Instant>,
    /// By sender and SPI: the receiver.
    outbound: BTreeMap<(usize, u32), usize>,
    /// By host, peer and path: the SPI at which the host receives.
    pub(crate) inbound: BTreeMap<(usize, usize, PathId), u32>,
    /// By host and peer: when it sent an I2 or R2 last.
    pub(crate) exchanged: BTreeMap<(usize, usize), Instant>,
    /// By receiver and sender: when something authentic arrived last.
    pub(crate) heard: BTreeMap<(usize, usize), Instant>,
    /// Who had an address, and until when.
    pub(crate) former: BTreeMap<(IpAddr, usize), Instant>,
    /// By address that is nobody's, and by host: bytes that pretend to come from there, bytes that went there, and those
    /// of them that were data.
    pub(crate) strangers: BTreeMap<(IpAddr, usize), (u64, u64, u64)>,
}

/// Reads a line of Wireshark's `esp_sa`.
pub(crate) fn key_line(line: &str) -> Option<(u32, SaKeys)> {
    let fields: Vec<&str> = line.split(',').map(|field| field.trim_matches('"')).collect();
    let hex = |text: &str| -> Option<Vec<u8>> {
        let digits = text.trim_start_matches("0x");
        (0..digits.len() / 2).map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()).collect()
    };
    let spi = u32::from_str_radix(fields.get(3)?.trim_start_matches("0x"), 16).ok()?;
    Some((spi, SaKeys { encryption: hex(fields.get(5)?)?, authentication: hex(fields.get(7)?)? }))
}

impl Tap {
    /// A host has a path.
    pub(crate) fn path_up(
        &mut self,
        judge: &mut Judge,
        at_ms: u64,
        host: usize,
        peer: usize,
        path: PathId,
        pair: Pair,
    ) {
        let (out, inward) = (pair.outbound, pair.inbound);
        self.inbound.insert((host, peer, path), inward.0);
        self.outbound.insert((host, out.0), peer);
        self.tell(judge, at_ms, (peer, out.0), host, 0, out.1);
        self.tell(judge, at_ms, (host, inward.0), peer, 1, inward.1);
    }

    fn tell(&mut self, judge: &mut Judge, at_ms: u64, key: (usize, u32), sender: usize, end: usize, keys: SaKeys) {
        // Keys that were drawn for an offer which its sender has given up seal nothing, and may be drawn again there.
        if end == 0 {
            let secret = [&keys.encryption[..], &keys.authentication[..]].concat();
            let other = *self.keys.entry(secret).or_insert(key);
            judge
                .check(at_ms, Property::S2, other == key, || format!("SAs {other:x?} and {key:x?} have the same keys"));
        }
        let Some(known) = self.sas.get_mut(&key) else {
            let told = [end == 0, end == 1];
            let since = self.sas.len();
            self.sas.insert(key, Sa { sender, keys, told, highest: 0, packets: 0, due: None, since });
            return;
        };
        let fresh = !std::mem::replace(&mut known.told[end], true);
        judge.check(at_ms, Property::S2, fresh && known.sender == sender, || format!("SPI {:x} twice", key.1));
        judge.check(at_ms, Property::S5, known.keys == keys, || {
            format!("hosts {sender} and {} have different keys for SPI {:x}", key.0, key.1)
        });
    }

    /// A host sends a packet; `peer` is for whom it is, where it is HIP, and `owner` has the address that it goes to.
    pub(crate) fn sent(
        &mut self,
        judge: &mut Judge,
        now: Instant,
        host: usize,
        packet: &Packet,
        (peer, owner): (Option<usize>, Option<usize>),
        renew_at: u32,
    ) {
        let at_ms = now.as_nanos() / 1_000_000;
        self.packets += 1;
        self.note(host, packet);
        let clear = packet.bytes.windows(MARK.len()).any(|window| window == MARK);
        let known = packet.hip().is_some() || packet.esp().is_some() || packet.bytes == [0xff];
        judge.check(at_ms, Property::S7, known && !clear, || format!("host {host} sent {:02x?}", packet.bytes));
        let to = packet.destination.ip();
        if let Some(hip) = packet.hip() {
            if let Some(peer) = peer
                && let Ok(parsed) = HipPacket::parse(hip)
                && matches!(parsed.kind(), PacketKind::I2 | PacketKind::R2)
            {
                self.exchanged.insert((host, peer), now);
            }
        } else if let Some(esp) = packet.esp() {
            self.sent_esp(judge, now, host, packet, esp, (owner, renew_at));
        }
        if is_bystander(to) {
            let (in_bytes, out_bytes, _) = self.strangers.entry((to, host)).or_default();
            *out_bytes += u64::from(packet.size());
            let (came, went) = (*in_bytes, *out_bytes);
            let besides = ANSWERS.0 + ANSWERS.1 * at_ms / 1_000;
            judge.check(at_ms, Property::R3, went <= 3 * came + besides, || {
                format!("host {host} has sent {went} bytes to {to}, from where {came} came")
            });
        }
    }

    fn sent_esp(
        &mut self,
        judge: &mut Judge,
        now: Instant,
        host: usize,
        packet: &Packet,
        esp: &[u8],
        (owner, renew_at): (Option<usize>, u32),
    ) {
        let at_ms = now.as_nanos() / 1_000_000;
        let word = |at: usize| esp.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes);
        let (spi, number) = (word(0), word(4));
        let Some(&peer) = self.outbound.get(&(host, spi)) else { return };
        let Some(sa) = self.sas.get_mut(&(peer, spi)) else { return };
        let before = std::mem::replace(&mut sa.highest, number);
        sa.packets += 1;
        judge.check(at_ms, Property::S2, number > before, || {
            format!("host {host} sent number {number} after {before} under SPI {spi:x}")
        });
        // A renewal takes two (RFC 7401 §6.11): who lies about where it is need not answer, and who is not there cannot.
        // That such a path or peer is given up is asked by L1 and L2.
        let lies = self.hostile.contains(&host) || self.hostile.contains(&peer);
        let heard = self.heard.get(&(host, peer)).is_some_and(|heard| now.saturating_since(*heard) <= RENEWED);
        if renew_at > 0 && number >= renew_at && owner == Some(peer) && heard && !lies {
            let due = *sa.due.get_or_insert(now);
            judge.check(at_ms, Property::L3, self.calm.is_none_or(|calm| now - due.max(calm) <= RENEWED), || {
                format!(
                    "host {host} has sent {number} packets under SPI {spi:x}, which was to be renewed at {renew_at}"
                )
            });
        }
        let to = packet.destination.ip();
        if owner == Some(peer) {
            return judge.check(at_ms, Property::S4, true, String::new);
        }
        let until = self.former.get(&(to, peer)).map_or(Instant::ZERO, |until| *until + FORMER);
        if now < until {
            return;
        }
        let (came, _, data) = self.strangers.entry((to, host)).or_default();
        *data += u64::from(packet.size());
        let (came, data) = (*came, *data);
        // RFC 8046 §5.6: without an answer no more than what came from there.
        judge.check(at_ms, Property::S4, !is_bystander(to) || data <= 3 * came, || {
            format!("host {host} sent {data} bytes of data for host {peer} to {to}, from where {came} bytes came")
        });
    }

    /// From now on, keys that are to be renewed are renewed soon.
    pub(crate) fn judge_renewals(&mut self, now: Instant) {
        self.calm = Some(now);
    }

    /// A packet that was not sent by who has its source address arrives at a host.
    pub(crate) fn spoofed(&mut self, host: usize, packet: &Packet) {
        if is_bystander(packet.source.ip()) {
            self.strangers.entry((packet.source.ip(), host)).or_default().0 += u64::from(packet.size());
        }
    }

    fn note(&mut self, host: usize, packet: &Packet) {
        let mut mix = |word: u64| {
            self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        };
        mix(host as u64 | (packet.bytes.len() as u64) << 16 | u64::from(packet.destination.port()) << 32);
        let mut chunks = packet.bytes.chunks_exact(8);
        for chunk in &mut chunks {
            mix(chunk.try_into().map_or(0, u64::from_le_bytes));
        }
        chunks.remainder().iter().for_each(|byte| mix(u64::from(*byte)));
    }
}

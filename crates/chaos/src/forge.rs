//! Packets that no honest host would make.

use crate::network::{Packet, bystander, hip};
use crate::plan::{Forgery, Source};
use crate::tap::{Sa, SaKeys, Tap};
use crate::traffic::Names;
use crate::world::World;
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit, inout::InOutBuf};
use std::net::SocketAddr;
use wedge::{Ecn, Protocol};
use wire::hip::{Builder, Notification, Packet as HipPacket, PacketKind, Parameter, Signature, set_checksum};
use wire::ip::{IpPacket, protocol};
use wire::udp;

/// Ports of a hoard.
const HOARD: (u16, u16) = (7_000, 8_000);
const TAG: [u8; 8] = *b"hoarding";

/// Whether a HIP packet offers or changes a security association.
pub(crate) fn has_esp_info(packet: &Packet) -> bool {
    packet.hip().and_then(|hip| HipPacket::parse(hip).ok()).is_some_and(|hip| hip.esp_info().is_some())
}

/// The security association on which `from` has sent most recently to `to`, if its suite is one that we can seal with.
pub(crate) fn sa(tap: &Tap, from: usize, to: usize) -> Option<((usize, u32), Sa)> {
    let of = tap.sas.iter().filter(|((receiver, _), sa)| *receiver == to && sa.sender == from && sa.packets > 0);
    let (key, sa) = of.max_by_key(|(_, sa)| sa.since)?;
    (sa.keys.encryption.len() == 20 && sa.keys.authentication.is_empty()).then(|| (*key, sa.clone()))
}

/// An ESP packet of AES-128-GCM with any number (RFC 4106 §3, §4).
pub(crate) fn seal(keys: &SaKeys, spi: u32, number: u32, next_header: u8, payload: &[u8]) -> Option<Vec<u8>> {
    let (key, salt) = keys.encryption.split_at_checked(16)?;
    let cipher = Aes128Gcm::new_from_slice(key).ok()?;
    let head = [spi.to_be_bytes(), number.to_be_bytes()].concat();
    let iv = u64::from(number).to_be_bytes();
    let nonce: [u8; 12] = [salt, &iv].concat().try_into().ok()?;
    let padding = (4 - (payload.len() + 2) % 4) % 4;
    let mut text = payload.to_vec();
    text.extend((1..=padding as u8).chain([padding as u8, next_header]));
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &head, InOutBuf::from(&mut text[..])).ok()?;
    Some([&head[..], &iv, &text, &tag[..]].concat())
}

/// A report that everything that `to` has sent has arrived at `from`, whichever way.
pub(crate) fn optimistic(tap: &Tap, from: usize, to: usize) -> Option<Vec<u8>> {
    let sent = tap.sas.iter().filter(|((receiver, _), sa)| *receiver == from && sa.sender == to && sa.packets > 0);
    let mut sent: Vec<_> = sent.collect();
    sent.sort_by_key(|(_, sa)| std::cmp::Reverse(sa.since));
    sent.truncate(8);
    if sent.is_empty() {
        return None;
    }
    let mut report = vec![1, sent.len() as u8, 0, 0];
    for ((_, spi), sa) in sent {
        let words = [*spi, sa.highest, 0, 0, sa.highest, sa.highest.wrapping_mul(1_200), 0, 20_000];
        words.iter().for_each(|word| report.extend(word.to_be_bytes()));
        report.extend([1, 0]);
        report.extend((sa.highest.min(60_000) as u16).to_be_bytes());
    }
    Some(report)
}

/// A packet of a flow with a number, as one Sinnet sends it to another.
pub(crate) fn numbered(
    names: &Names,
    (from, to): (usize, usize),
    flow: u16,
    (number, early): (u16, bool),
    tag: u64,
) -> Option<Vec<u8>> {
    let (from, to) = (names.hits.get(from)?.address(), names.hits.get(to)?.address());
    let data = [&TAG[..], &tag.to_be_bytes(), &[0; 400]].concat();
    let mut datagram = Vec::new();
    udp::emit((from.into(), HOARD.0 + flow), (to.into(), HOARD.1), &data, &mut datagram).ok()?;
    Some([&[if early { 3 } else { 2 }, protocol::UDP][..], &number.to_be_bytes(), &datagram].concat())
}

/// The tag of such a packet where it is delivered.
pub(crate) fn tag(packet: &[u8]) -> Option<u64> {
    let view = IpPacket::parse(packet).ok()?;
    let data = udp::Datagram::parse(view.payload()).ok()?.payload();
    data.strip_prefix(&TAG)?.first_chunk().map(|tag| u64::from_be_bytes(*tag))
}

impl World {
    /// A packet by somebody without keys that speaks for `claims`.
    pub(crate) fn forged(&mut self, to: usize, claims: usize, what: Forgery, source: Source) -> Option<Packet> {
        let target = self.nodes.get(to)?.interfaces.first()?;
        let destination = SocketAddr::new(target.public(), target.address.port());
        let speaks = self.nodes.get(claims)?.interfaces.first()?;
        let source = match source {
            Source::Claimed => SocketAddr::new(speaks.public(), speaks.address.port()),
            Source::Bystander(number) => SocketAddr::new(bystander(number).ip(), target.address.port()),
        };
        let native = destination.port() == 0;
        let hits = (*self.names.hits.get(claims)?, *self.names.hits.get(to)?);
        let rng = &mut self.attacker.rng;
        let mut junk = |length: usize| {
            let mut bytes = vec![0; length];
            rng.fill(&mut bytes);
            bytes
        };
        let (protocol, bytes) = match what {
            Forgery::Noise => {
                let length = 1 + junk(1)[0] as usize;
                (if native { Protocol::Esp } else { Protocol::Udp }, junk(length))
            }
            Forgery::Esp => {
                let mut spis = self.tap.sas.keys().filter(|(receiver, _)| *receiver == to).map(|(_, spi)| *spi);
                let spi = spis.next_back().unwrap_or(0x1234_5678);
                let rest = junk(80);
                (if native { Protocol::Esp } else { Protocol::Udp }, [&spi.to_be_bytes()[..], &rest].concat())
            }
            Forgery::I1 => (Protocol::Hip, i1(hits)?),
            Forgery::Hip(kind) => (Protocol::Hip, signed(hits, kind, &mut junk)?),
        };
        let mut packet = Packet { source, destination, protocol, ecn: Ecn::NotEct, bytes, author: None };
        if packet.protocol == Protocol::Hip {
            if native {
                set_checksum(&mut packet.bytes, source.ip(), destination.ip());
            } else {
                packet.protocol = Protocol::Udp;
                packet.bytes = [&[0; 4], &packet.bytes[..]].concat();
            }
        }
        debug_assert!(what == Forgery::Noise || what == Forgery::Esp || hip(packet.protocol, &packet.bytes).is_some());
        Some(packet)
    }
}

type Hits = (wire::Hit, wire::Hit);

fn i1((from, to): Hits) -> Option<Vec<u8>> {
    let groups = vec![::hip::dh::Group::P256.number()];
    Builder::new(PacketKind::I1, from, to).push(&Parameter::DhGroupList(groups)).finish().ok()
}

/// A packet of the right shape whose MAC and signature are random.
fn signed((from, to): Hits, kind: u8, junk: &mut dyn FnMut(usize) -> Vec<u8>) -> Option<Vec<u8>> {
    use PacketKind::{Close, CloseAck, I1, I2, Notify, R1, R2, Update};
    let kind = [R1, I2, R2, Update, Notify, Close, CloseAck, I1][usize::from(kind) % 8];
    let mut builder = Builder::new(kind, from, to);
    builder = match kind {
        Update => builder.push(&Parameter::Seq(u32::from(junk(1)[0]))).push(&Parameter::EchoRequestSigned(junk(16))),
        Notify => builder.push(&Parameter::Notification(Notification { message: 44, data: Vec::new() })),
        Close => builder.push(&Parameter::EchoRequestSigned(junk(16))),
        CloseAck => builder.push(&Parameter::EchoResponseSigned(junk(16))),
        _ => builder,
    };
    if !matches!(kind, Notify | R1 | I1) {
        builder = builder.push(&Parameter::HipMac(junk(48)));
    }
    let signature = Signature { algorithm: ::hip::identity::ALGORITHM_ECDSA, bytes: junk(64) };
    builder.push(&Parameter::HipSignature(signature)).finish().ok()
}

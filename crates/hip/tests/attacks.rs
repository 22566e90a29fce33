//! What an attacker on the path can do to an exchange: nothing but keep it from happening.

use crate::common;
use crate::common::{Flying, Pair};
use clock::Duration;
use hip::State;
use hip::dh::Group;
use wire::hip::{HEADER_LEN, Packet, PacketKind};

/// What nothing covers, and nobody uses inside UDP: the checksum, and the padding after a signature of 96 bytes.
fn uncovered(at: usize, len: usize) -> bool {
    (4..6).contains(&at) || at >= len - 2
}

/// The same where something follows the signature, at `end`.
fn signature_padding(at: usize, end: usize) -> bool {
    (4..6).contains(&at) || (end - 2..end).contains(&at)
}

/// Runs an exchange in which `change` is done to every packet of one kind that one host sends.
fn exchange_with(mut change: impl FnMut(PacketKind, usize, &mut Vec<u8>)) -> Pair {
    let mut pair = Pair::usual(1);
    let mut network = |mut flying: Flying, fly: &mut Vec<Flying>| {
        let kind = Packet::parse(&flying.bytes).unwrap().kind();
        change(kind, flying.to, &mut flying.bytes);
        fly.push(flying);
    };
    pair.exchange(&mut network);
    pair
}

/// All packets of an undisturbed exchange: kind, receiver, length.
fn undisturbed() -> Vec<(PacketKind, usize, usize)> {
    let mut packets = Vec::new();
    exchange_with(|kind, to, bytes| packets.push((kind, to, bytes.len()))).check_paths(2);
    packets.dedup();
    packets
}

#[test]
fn no_changed_byte_of_any_packet_leads_to_a_wrong_key() {
    let packets = undisturbed();
    let kinds: Vec<_> = packets.iter().map(|(kind, ..)| *kind).collect();
    use PacketKind::{I1, I2, R1, R2, Update};
    assert_eq!(kinds, [I1, R1, I2, R2, Update, Update, Update]);
    for (number, &(kind, to, len)) in packets.iter().enumerate() {
        // Three UPDATEs: the first and the last go the same way, and differ in length.
        for at in 0..len {
            // Neither a fixed bit nor always the same: every bit of the packet's bytes has its turn somewhere.
            let flip = 1 << ((at * 5 + number) % 8);
            let mut changed = 0;
            let mut pair = exchange_with(|other, receiver, bytes| {
                // Of the UPDATEs that go the same way, one; of all others also what is sent again.
                if other == kind && receiver == to && (bytes.len() == len || kind != Update) {
                    bytes[at] ^= flip;
                    changed += 1;
                }
            });
            assert!(changed > 0);
            let told = format!("{kind:?} (packet {number}), byte {at} ^ {flip:#04x}");
            let (a, b) = (pair.sides[0].state(), pair.sides[1].state());
            match kind {
                // Nothing protects an I1. The exchange may take place or not, but never with keys that differ.
                I1 if a == State::Established => pair.check_paths(2),
                _ if kind != R1 && uncovered(at, len) => pair.check_paths(2),
                R1 if signature_padding(at, len) => pair.check_paths(2),
                I1 | R1 => assert!(pair.sides.iter().all(|side| side.paths.is_empty()), "{told}: {a} {b}"),
                I2 => assert!(pair.sides.iter().all(|side| side.paths.is_empty()), "{told}: {a} {b}"),
                // The Responder has been told nothing wrong, and waits; the Initiator believes nobody.
                R2 => assert_eq!((a, b), (State::I2Sent, State::R2Sent), "{told}"),
                _ => {
                    // The first path stands. The second is not used by whoever did not get the peer's proof.
                    assert_eq!(a, State::Established, "{told}");
                    assert_eq!(pair.sides[to].verified.len(), 1, "{told}");
                }
            }
        }
    }
}

#[test]
fn a_group_struck_from_the_i1_is_noticed() {
    let exchange = |strike: bool| {
        let groups = vec![Group::P384, Group::P256];
        let configs = ["10.1.0.1", "10.1.0.2"].map(|address| {
            let mut config = common::config(&common::addresses(&[address], 10500));
            config.groups = groups.clone();
            config
        });
        let mut pair = Pair::new(common::identities(), configs, 1);
        let mut network = |mut flying: Flying, fly: &mut Vec<Flying>| {
            if strike && Packet::parse(&flying.bytes).unwrap().kind() == PacketKind::I1 {
                // DH_GROUP_LIST is the only parameter: P-384 becomes a group that nobody has.
                assert_eq!(flying.bytes[HEADER_LEN + 4], 8);
                flying.bytes[HEADER_LEN + 4] = 99;
            }
            fly.push(flying);
        };
        pair.exchange(&mut network);
        (pair.sides[0].state(), pair.sides[0].host.counters().no_common_algorithm > 0)
    };
    assert_eq!(exchange(false), (State::Established, false));
    assert_eq!(exchange(true), (State::I1Sent, true));
}

#[test]
fn replays_of_a_whole_exchange_change_nothing() {
    let mut pair = Pair::usual(1);
    let mut seen: Vec<(usize, hip::Route, Vec<u8>)> = Vec::new();
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
        seen.push((flying.to, flying.route, flying.bytes.clone()));
        fly.push(flying);
    };
    pair.exchange(&mut network);
    pair.check_paths(2);
    for (to, route, bytes) in &seen {
        let side = &mut pair.sides[*to];
        side.host.handle_packet(pair.now, &mut side.rng, *route, bytes);
        pair.collect(*to, &mut |_, _| {});
    }
    pair.check_paths(2);
    assert_eq!(pair.sides.each_ref().map(|side| side.established), [1, 1]);

    // Nor after the association has ended: the I2 solves a puzzle that is not the Responder's any more.
    let peer = pair.hit(0);
    pair.sides[1].host.abandon(peer, "forgotten");
    for (to, route, bytes) in seen.iter().filter(|(to, ..)| *to == 1) {
        let side = &mut pair.sides[*to];
        side.host.handle_packet(pair.now, &mut side.rng, *route, bytes);
        pair.collect(*to, &mut |_, _| {});
    }
    assert_eq!(pair.sides[1].state(), State::Unassociated);
}

#[test]
fn a_flood_of_i2s_costs_a_hash_each_and_keeps_nothing() {
    let mut pair = Pair::usual(1);
    let mut i2 = Vec::new();
    let mut network = |flying: Flying, fly: &mut Vec<Flying>| {
        if Packet::parse(&flying.bytes).unwrap().kind() == PacketKind::I2 {
            i2.push((flying.route, flying.bytes));
        } else {
            fly.push(flying);
        }
    };
    let peer = pair.hit(1);
    let side = &mut pair.sides[0];
    side.host.connect(pair.now, &mut side.rng, peer).unwrap();
    pair.collect(0, &mut network);
    let until = pair.now + Duration::from_millis(500);
    while pair.step(until, &mut network) {}
    let (route, bytes) = i2.pop().unwrap();
    let at = bytes.windows(4).position(|window| window[..2] == [1, 65]).unwrap();
    let responder = &mut pair.sides[1];
    for number in 0..10_000_u32 {
        let mut forged = bytes.clone();
        // Another #J each time; with K = 1 every second one would do, so #I as well.
        forged[at + 8..at + 12].copy_from_slice(&number.to_be_bytes());
        responder.host.handle_packet(pair.now, &mut responder.rng, route, &forged);
    }
    assert_eq!(responder.host.counters().bad_puzzle, 10_000);
    assert_eq!(responder.state(), State::Unassociated);
    assert!(responder.host.poll_transmit().is_none());
    responder.host.handle_packet(pair.now, &mut responder.rng, route, &bytes);
    assert_eq!(responder.state(), State::R2Sent, "the true one is still welcome");
}

//! What a host says about packets that it refuses. The numbers are those of the IANA registry "Host Identity Protocol (HIP)
//! Parameters, Notify Message Types".

use crate::common::{Flying, Pair, Side, addresses, config, identities};
use clock::Duration;
use hip::HostConfig;
use hip::cipher::HipCipher;
use hip::dh::Group;
use hip::esp::EspSuite;
use wire::hip::{Packet, PacketKind};

const SECOND: Duration = Duration::from_secs(1);

fn pair(change: impl FnOnce(&mut [HostConfig; 2])) -> Pair {
    let mut configs = ["10.1.0.1", "10.1.0.2"].map(|address| config(&addresses(&[address], 10500)));
    change(&mut configs);
    Pair::new(identities(), configs, 1)
}

/// The first host begins; what `change` does to each packet happens. All NOTIFYs that flew.
fn run(pair: &mut Pair, mut change: impl FnMut(PacketKind, &mut Vec<u8>)) -> Vec<u16> {
    let mut notices = Vec::new();
    let mut network = |mut flying: Flying, fly: &mut Vec<Flying>| {
        let packet = Packet::parse(&flying.bytes).unwrap();
        let kind = packet.kind();
        notices.extend(packet.notification().map(|notification| notification.message));
        change(kind, &mut flying.bytes);
        fly.push(flying);
    };
    pair.exchange(&mut network);
    notices
}

#[test]
fn an_offer_without_anything_in_common_is_refused_with_its_number() {
    type Change = fn(&mut [HostConfig; 2]);
    let cases: [(Change, u16); 3] = [
        (|configs| configs[1].groups = vec![Group::P384], 14),
        (
            |configs| {
                configs[0].ciphers = vec![HipCipher::Aes256Cbc];
                configs[1].ciphers = vec![HipCipher::Aes128Cbc];
            },
            16,
        ),
        (
            |configs| {
                configs[0].esp_suites = vec![EspSuite::Aes128Gcm16];
                configs[1].esp_suites = vec![EspSuite::Aes256CbcHmacSha256];
            },
            18,
        ),
    ];
    for (change, number) in cases {
        let mut pair = pair(change);
        assert_eq!(run(&mut pair, |_, _| {}), [number]);
        assert_eq!(pair.sides[0].failed.len(), 1);
        assert_eq!(pair.sides[0].host.counters().notices_out, 1);
        // The Responder keeps no state by which to believe it.
        assert_eq!(pair.sides[1].host.counters().unexpected, 1);
    }
}

#[test]
fn an_exchange_that_succeeds_is_silent() {
    let mut pair = pair(|_| {});
    assert_eq!(run(&mut pair, |_, _| {}), []);
    pair.check_paths(1);
}

/// Flips a bit of a part of each I2.
fn change_i2(part: fn(&Packet<'_>) -> Vec<u8>) -> impl FnMut(PacketKind, &mut Vec<u8>) {
    move |kind, bytes| {
        if kind == PacketKind::I2 {
            let part = part(&Packet::parse(bytes).unwrap());
            let at = bytes.windows(part.len()).position(|window| window == part).unwrap();
            bytes[at] ^= 1;
        }
    }
}

#[test]
fn a_changed_i2_is_refused_with_its_number_and_the_exchange_goes_on() {
    let mac = change_i2(|packet| packet.hip_mac().unwrap().clone());
    let signature = change_i2(|packet| packet.hip_signature().unwrap().bytes.clone());
    let mut pair = pair(|_| {});
    let mut notices = run(&mut pair, mac);
    notices.dedup();
    assert_eq!((notices.as_slice(), pair.sides[0].notices[0]), ([28].as_slice(), 28));
    let mut other = self::pair(|_| {});
    let mut notices = run(&mut other, signature);
    notices.dedup();
    assert_eq!((notices.as_slice(), other.sides[0].notices[0]), ([24].as_slice(), 24));
    for mut pair in [pair, other] {
        // A notice changes nothing: the next I2 that arrives as it was completes the exchange.
        pair.run(SECOND * 10);
        pair.check_paths(1);
    }
}

#[test]
fn strangers_are_told_so_but_not_often() {
    let mut pair = pair(|_| {});
    let locators = addresses(&["10.1.0.2"], 10500);
    let [_, identity] = identities();
    pair.sides[1] = Side::new(identity, config(&locators), 9);
    let mut i1s = Vec::new();
    let notices = run(&mut pair, |kind, bytes| {
        if kind == PacketKind::I1 {
            i1s.push(bytes.clone());
        }
    });
    assert!(!notices.is_empty() && notices.iter().all(|notice| *notice == 42), "{notices:?}");
    assert_eq!(pair.sides[0].notices, notices);
    // What is heard decides nothing, but if the exchange fails it is told.
    assert!(pair.sides[0].failed.is_empty());
    pair.run(SECOND * 100);
    assert!(pair.sides[0].failed[0].contains("does not have our identity"), "{:?}", pair.sides[0].failed);
    let route = hip::Route { local: locators[0], remote: "10.1.0.1:10500".parse().unwrap() };
    // RFC 7401 §4.1.5: the first I1, which is that of any host, has not been answered.
    let told = pair.sides[1].host.counters().notices_out;
    let Side { host, rng, .. } = &mut pair.sides[1];
    host.handle_packet(pair.now, rng, route, &i1s[0]);
    assert_eq!(pair.sides[1].host.counters().notices_out, told);
    // A flood of a thousand a second for ten seconds.
    let before = pair.sides[1].host.counters().notices_out;
    for _ in 0..10_000 {
        pair.now += Duration::from_millis(1);
        let Side { host, rng, .. } = &mut pair.sides[1];
        host.handle_packet(pair.now, rng, route, &i1s[1]);
    }
    let sent = pair.sides[1].host.counters().notices_out - before;
    assert!((10..=14).contains(&sent), "{sent}");
}

#[test]
fn a_notice_that_was_changed_is_not_heard() {
    let mut pair = pair(|_| {});
    let [_, identity] = identities();
    pair.sides[1] = Side::new(identity, config(&addresses(&["10.1.0.2"], 10500)), 9);
    run(&mut pair, |kind, bytes| {
        if kind == PacketKind::Notify {
            let at = bytes.windows(2).position(|window| window == [0, 42]).unwrap();
            bytes[at + 1] = 44;
        }
    });
    assert_eq!(pair.sides[0].notices, []);
    assert!(pair.sides[0].host.counters().bad_signature > 0);
}

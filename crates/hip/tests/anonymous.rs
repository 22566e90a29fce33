//! An anonymous identity (RFC 7401 §7): the A bit in all that it says (§5.1.2), and nobody finds it by asking.

use crate::common;
use crate::common::{Flying, Pair, Side, addresses, config, identities};
use clock::Duration;
use hip::identity::HostIdentity;
use hip::{Refused, Route, State};
use wire::Hit;
use wire::hip::{Builder, HostId, PacketKind, Parameter, Signature, set_receiver};

/// The first of the two is anonymous.
fn pair() -> Pair {
    pair_of(identities())
}

fn pair_of([a, b]: [HostIdentity; 2]) -> Pair {
    let configs = [&["10.1.0.1", "10.2.0.1"], &["10.1.0.2", "10.2.0.2"]];
    Pair::new([a.anonymous(), b], configs.map(|list| config(&addresses(list, 10500))), 1)
}

/// A packet's type, and the A bit: of the 16 bits of the controls, behind the checksum, the last (RFC 7401 §5.1, §5.1.2).
fn kind_and_bit(bytes: &[u8]) -> (u8, u8) {
    (bytes[2], bytes[7] & 1)
}

#[test]
fn the_a_bit_is_in_all_that_an_anonymous_identity_says() {
    let mut pair = pair();
    let mut said: [Vec<(u8, u8)>; 2] = Default::default();
    let mut note = |flying: Flying, fly: &mut Vec<Flying>| {
        said[1 - flying.to].push(kind_and_bit(&flying.bytes));
        fly.push(flying);
    };
    pair.exchange(&mut note);
    pair.check_paths(2);
    let peer = pair.hit(1);
    let Side { host, rng, .. } = &mut pair.sides[0];
    host.close(pair.now, rng, peer);
    pair.collect(0, &mut note);
    let until = pair.now + Duration::from_secs(1);
    while pair.step(until, &mut note) {}
    // I1, I2, UPDATE, CLOSE; and R1, R2, UPDATE, CLOSE_ACK.
    for (said, kinds, bit) in [(&said[0], [1, 3, 16, 18], 1), (&said[1], [2, 4, 16, 19], 0)] {
        assert!(kinds.iter().all(|kind| said.iter().any(|(one, _)| one == kind)), "{said:?}");
        assert!(said.iter().all(|(_, one)| *one == bit), "{said:?}");
    }
}

#[test]
fn who_asks_for_an_anonymous_identity_hears_nothing() {
    let [a, b] = identities();
    let [c, d] = identities();
    // Where both begin at once, the one of the greater HIT answers (RFC 7401 §4.4.3).
    for mut pair in [pair_of([a, b]), pair_of([d, c])] {
        asks_in_vain(&mut pair);
    }
}

fn asks_in_vain(pair: &mut Pair) {
    let (anonymous, peer) = (pair.hit(0), pair.hit(1));
    pair.connect(1);
    let mut answers = 0;
    let mut count = |flying: Flying, fly: &mut Vec<Flying>| {
        answers += u32::from(flying.to == 1);
        fly.push(flying);
    };
    let until = pair.now + Duration::from_secs(10);
    while pair.step(until, &mut count) {}
    // Nor who asks whoever is there, or who is no peer; nor somebody whose packets have an SPI that it does not know.
    let Side { host, rng, .. } = &mut pair.sides[0];
    let route = Route { local: "10.1.0.1:10500".parse().unwrap(), remote: "10.9.0.9:10500".parse().unwrap() };
    for (sender, receiver) in [(peer, Hit::NULL), (Hit([7; 16]), anonymous)] {
        let groups = Parameter::DhGroupList(vec![7]);
        let padding = Parameter::Unknown { kind: 32_768, contents: vec![0; 400] };
        let i1 = Builder::new(PacketKind::I1, sender, receiver).push(&groups).push(&padding).finish().unwrap();
        host.handle_packet(pair.now, rng, route, &i1);
    }
    host.unknown_spi(pair.now, rng, route, wire::Spi(0x1234_5678), 1_000);
    pair.collect(0, &mut count);
    assert_eq!((answers, pair.sides[0].host.counters().packets_out), (0, 0));
    assert_eq!(pair.sides[1].state(), State::I1Sent);
    assert!(pair.sides[0].refused.contains(&Refused::NotForUs), "{:?}", pair.sides[0].refused);
    // It begins all the same, also with who asks at that moment.
    pair.connect(0);
    let mut check = |flying: Flying, fly: &mut Vec<Flying>| {
        assert_eq!(kind_and_bit(&flying.bytes).1, u8::from(flying.to == 1));
        fly.push(flying);
    };
    let until = pair.now + Duration::from_secs(10);
    while pair.step(until, &mut check) {}
    assert_eq!(pair.sides[0].state(), State::Established);
}

/// The signed beginning of an R1.
fn r1(identity: &HostIdentity, is_anonymous: bool, receiver: Hit, side: &mut Side) -> Vec<u8> {
    let (public, algorithm) = (identity.public(), identity.public().algorithm_number());
    let host_id = HostId { algorithm, identity: public.encoded().to_vec(), domain_type: 0, domain: Vec::new() };
    let builder = Builder::new(PacketKind::R1, identity.hit(), Hit::NULL).anonymous(is_anonymous);
    let builder = builder.push(&Parameter::HostId(host_id));
    let bytes = identity.sign(&mut side.rng, &builder.covered());
    let mut r1 = builder.push(&Parameter::HipSignature2(Signature { algorithm, bytes })).finish().unwrap();
    set_receiver(&mut r1, receiver);
    r1
}

/// RFC 7401 §5.1.2: anonymous identities SHOULD NOT be stored, and that is what an inquiry is for.
#[test]
fn an_anonymous_identity_is_not_found_out() {
    for is_anonymous in [true, false] {
        let mut pair = Pair::usual(1);
        let place = "10.1.0.9:10500".parse().unwrap();
        let Side { host, rng, .. } = &mut pair.sides[0];
        host.inquire(pair.now, rng, vec![place]);
        let route = host.poll_transmit().unwrap().route;
        assert_eq!(route.remote, place);
        let somebody = common::generated(hip::identity::Algorithm::EcdsaP256, 9);
        let (receiver, side) = (pair.hit(0), &mut pair.sides[0]);
        let r1 = r1(&somebody, is_anonymous, receiver, side);
        let Side { host, rng, .. } = side;
        host.handle_packet(pair.now, rng, route, &r1);
        side.take_events();
        assert_eq!(side.discovered.contains(&somebody.hit()), !is_anonymous);
    }
}

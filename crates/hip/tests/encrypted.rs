//! An Initiator that hides its HOST_ID in ENCRYPTED (RFC 7401 §5.2.18): one made by hand, and Sinnet where it is configured to.

use crate::common::{Pair, addresses, config, identities};
use hip::budget::{Limit, Limits, Rate};
use hip::cipher::HipCipher;
use hip::dh::{EphemeralSecret, Group};
use hip::keymat::Keymat;
use hip::{Route, State, puzzle};
use wire::Spi;
use wire::hip::{Builder, DiffieHellman, EspInfo, HostId, Packet, PacketKind, Parameter, Signature, Solution, kind};

/// The I2 that answers the second host's R1, and where its ENCRYPTED is.
fn i2(pair: &mut Pair, route: Route) -> (Vec<u8>, std::ops::Range<usize>) {
    let (a, b) = (pair.hit(0), pair.hit(1));
    let [identity, _] = identities();
    let i1 = Builder::new(PacketKind::I1, a, b).push(&Parameter::DhGroupList(vec![7])).finish().unwrap();
    let side = &mut pair.sides[1];
    side.host.handle_packet(pair.now, &mut side.rng, route, &i1);
    let r1 = side.host.poll_transmit().unwrap().bytes;
    let r1 = Packet::parse(&r1).unwrap();
    let rng = &mut pair.sides[0].rng;
    let (puzzle, rhash) = (r1.puzzle().unwrap(), hip::rhash::Rhash::of_hit(&b).unwrap());
    let j = puzzle::solve(rhash, &puzzle.i, a, b, puzzle.difficulty, 1_000, rng).unwrap();
    let secret = EphemeralSecret::generate(Group::P256, rng);
    let shared = secret.agree(&r1.diffie_hellman().unwrap().public).unwrap();
    let keymat = Keymat::new(rhash, &shared, &puzzle.i, &j, &a, &b);
    let cipher = HipCipher::Aes256Cbc;
    let keys = keymat.hip_keys(cipher, &a, &b).unwrap();
    let mut plain = Vec::new();
    Parameter::HostId(HostId {
        algorithm: identity.public().algorithm_number(),
        identity: identity.public().encoded().to_vec(),
        domain_type: 0,
        domain: Vec::new(),
    })
    .emit(&mut plain);
    let encrypted = cipher.encrypt(&keys.ours.encryption, rng, &plain);
    let keymat_index = keymat.first_esp_index(cipher);
    let builder = Builder::new(PacketKind::I2, a, b)
        .push(&Parameter::EspInfo(EspInfo { keymat_index, old_spi: Spi(0), new_spi: Spi(0x1000) }))
        .push(&Parameter::R1Counter(*r1.r1_counter().unwrap()))
        .push(&Parameter::Solution(Solution {
            difficulty: puzzle.difficulty,
            opaque: puzzle.opaque,
            i: puzzle.i.clone(),
            j,
        }))
        .push(&Parameter::DiffieHellman(DiffieHellman { group: 7, public: secret.public_value() }))
        .push(&Parameter::HipCipher(vec![cipher.number()]))
        .push(&Parameter::Encrypted(encrypted.clone()))
        .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
        .push(&Parameter::EspTransform(r1.esp_transform().unwrap()[..1].to_vec()));
    let mac = rhash.hmac(&keys.ours.integrity, &[&builder.covered()]);
    let builder = builder.push(&Parameter::HipMac(mac));
    let bytes = identity.sign(rng, &builder.covered());
    let algorithm = identity.public().signature_algorithm();
    let i2 = builder.push(&Parameter::HipSignature(Signature { algorithm, bytes })).finish().unwrap();
    let at = i2.windows(encrypted.len()).position(|window| window == encrypted).unwrap();
    (i2, at..at + encrypted.len())
}

/// What is inside ENCRYPTED is not looked at before HIP_MAC, which covers it as it is on the wire, is found right: no answer
/// tells anything about it.
#[test]
fn a_changed_ciphertext_is_never_more_than_a_wrong_mac() {
    let all = Limit { total: Rate::new(10_000, 10_000), prefix: Rate::new(10_000, 10_000) };
    let limits = Limits { i2: all, i2_again: all, ..Limits::default() };
    let [a, mut b] = ["10.1.0.1", "10.1.0.2"].map(|address| config(&addresses(&[address], 10500)));
    b.limits = limits;
    let mut pair = Pair::new(identities(), [a, b], 1);
    let route = Route { local: "10.1.0.2:10500".parse().unwrap(), remote: "10.1.0.1:10500".parse().unwrap() };
    let (right, encrypted) = i2(&mut pair, route);
    let mut changed = 0;
    for at in encrypted {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        let side = &mut pair.sides[1];
        side.host.handle_packet(pair.now, &mut side.rng, route, &wrong);
        changed += 1;
        let counters = side.host.counters();
        assert_eq!((counters.bad_mac, counters.bad_signature, counters.malformed), (changed, 0, 0), "byte {at}");
    }
    assert!(changed > 100);
    let side = &mut pair.sides[1];
    side.host.handle_packet(pair.now, &mut side.rng, route, &right);
    assert_eq!(pair.sides[1].state(), State::R2Sent, "as it was it is taken");
}

/// Who is on the way sees a HIT and no key, and only where that is configured; the Responder sees whose it is. Initiators alone
/// hide: an R1 is for everybody.
#[test]
fn an_initiator_hides_its_key_where_it_is_configured_to() {
    for (hides, ciphers) in [(false, HipCipher::Aes256Cbc), (true, HipCipher::Aes256Cbc), (true, HipCipher::Aes128Cbc)]
        .map(|(h, c)| (h, vec![c]))
    {
        let mut configs = ["10.1.0.1", "10.1.0.2"].map(|address| config(&addresses(&[address], 10500)));
        configs.iter_mut().for_each(|config| config.encrypts_identity = hides);
        configs[0].ciphers.clone_from(&ciphers);
        let identities = identities();
        let keys = [0, 1].map(|side: usize| identities[side].public().encoded().to_vec());
        let mut pair = Pair::new(identities, configs, 5);
        pair.connect(0);
        let (mut seen, mut i2s) = ([0, 0], 0);
        let until = pair.now + clock::Duration::from_secs(2);
        while pair.step(until, &mut |flying, fly| {
            let packet = Packet::parse(&flying.bytes).unwrap();
            for (seen, key) in seen.iter_mut().zip(&keys) {
                *seen += flying.bytes.windows(key.len()).filter(|window| window == key).count();
            }
            if packet.kind() == PacketKind::I2 {
                i2s += 1;
                let told = (packet.host_id().is_some(), packet.encrypted().map(|bytes| bytes.len() % 16));
                // An IV and whole blocks of AES (RFC 7401 §5.2.18).
                assert_eq!(told, if hides { (false, Some(0)) } else { (true, None) });
            }
            fly.push(flying);
        }) {}
        pair.check_paths(1);
        assert_eq!((i2s, seen), (1, [usize::from(!hides), 1]), "{hides} {ciphers:?}");
    }
}

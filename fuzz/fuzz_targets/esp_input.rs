//! Any bytes as the content of a datagram: ESP, HIP or neither. Without the key nothing may be opened, and a packet of
//! ours that was changed anywhere is refused.
#![no_main]

use hip::esp::{EspKeys, EspSuite, InboundSa, OutboundSa};
use libfuzzer_sys::fuzz_target;
use rand_core::SeedableRng;
use wire::Spi;

fuzz_target!(|input: (u8, u16, u8, Vec<u8>)| {
    let (suite, at, flip, bytes) = input;
    let _ = wire::esp::classify(&bytes);
    let suite = EspSuite::ALL[usize::from(suite) % EspSuite::ALL.len()];
    let keys = EspKeys {
        encryption: vec![1; suite.encryption_key_len()].into(),
        authentication: vec![2; suite.authentication_key_len()].into(),
    };
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    let mut outbound = OutboundSa::new(suite, Spi(0x1000), &keys);
    let mut inbound = InboundSa::new(suite, Spi(0x1000), &keys);

    let mut opened = Vec::new();
    assert!(inbound.open(&bytes, &mut opened).is_err(), "a packet was forged");
    let mut named = Spi(0x1000).0.to_be_bytes().to_vec();
    named.extend_from_slice(&bytes);
    assert!(inbound.open(&named, &mut opened).is_err(), "a packet was forged");
    assert!(opened.is_empty());

    let mut sealed = Vec::new();
    outbound.seal(6, &bytes, &mut rng, &mut sealed).expect("the first packet of a security association");
    let at = usize::from(at) % sealed.len();
    sealed[at] ^= flip;
    match inbound.open(&sealed, &mut opened) {
        Ok(next_header) => assert!(flip == 0 && next_header == 6 && opened == bytes),
        Err(_) => assert!(flip != 0 && opened.is_empty()),
    }
});

//! Properties of sealing and opening, published vectors, and the arithmetic of lengths. Other implementations speak in
//! `tests/scapy_esp.rs`, `tests/wireshark_esp.rs` and `tests/capture_crypto.rs`.

use super::*;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use zeroize::Zeroizing;

const SPI: Spi = Spi(0x1234_5678);

fn keys(suite: EspSuite) -> EspKeys {
    let bytes = |len: usize, first: u8| Zeroizing::new((first..).take(len).collect::<Vec<u8>>());
    EspKeys {
        encryption: bytes(suite.encryption_key_len(), 1),
        authentication: bytes(suite.authentication_key_len(), 90),
    }
}

fn pair(suite: EspSuite) -> (OutboundSa, InboundSa) {
    (OutboundSa::new(suite, SPI, &keys(suite)), InboundSa::new(suite, SPI, &keys(suite)))
}

fn suites() -> impl Strategy<Value = EspSuite> {
    prop::sample::select([&EspSuite::ALL[..], &[EspSuite::Aes128Gcm16Iiv]].concat())
}

fn seal(sa: &mut OutboundSa, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    sa.seal(next_header, payload, &mut ChaCha20Rng::seed_from_u64(payload.len() as u64), &mut packet).unwrap();
    packet
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

proptest! {
    /// Whatever is sealed is opened as it was, behind what the output held before; and once only.
    #[test]
    fn opening_inverts_sealing(suite in suites(), next_header: u8, payload in prop::collection::vec(any::<u8>(), 0..1600), before: Vec<u8>) {
        let (mut outbound, mut inbound) = pair(suite);
        for sequence in 1..4 {
            let mut packet = before.clone();
            outbound.seal(next_header, &payload, &mut ChaCha20Rng::seed_from_u64(7), &mut packet).unwrap();
            prop_assert_eq!(&packet[..before.len()], &before);
            let packet = &packet[before.len()..];
            prop_assert_eq!(packet.len(), suite.sealed_len(payload.len()));
            prop_assert_eq!(&packet[..8], [SPI.0.to_be_bytes(), u32::to_be_bytes(sequence)].concat());
            prop_assert_eq!(outbound.sequence(), sequence);
            let mut opened = before.clone();
            prop_assert_eq!(inbound.open(packet, &mut opened), Ok(next_header));
            prop_assert_eq!(&opened, &[&before[..], &payload].concat());
            prop_assert_eq!(inbound.open(packet, &mut opened), Err(OpenError::Replay));
            prop_assert_eq!(opened.len(), before.len() + payload.len());
        }
    }

    /// One changed bit anywhere, and the packet is refused, leaves nothing in the output and does not move the window.
    #[test]
    fn any_change_is_refused(suite in suites(), payload in prop::collection::vec(any::<u8>(), 0..100), place: prop::sample::Index, bit in 0u8..8) {
        let (mut outbound, mut inbound) = pair(suite);
        let packet = seal(&mut outbound, 6, &payload);
        let at = place.index(packet.len());
        let mut changed = packet.clone();
        changed[at] ^= 1u8 << bit;
        let mut opened = vec![1, 2, 3];
        let expected = match at {
            0..4 => OpenError::UnknownSpi,
            // Number 0 is never fresh.
            4..8 if changed[4..8] == [0; 4] => OpenError::Replay,
            _ => OpenError::BadIcv,
        };
        prop_assert_eq!(inbound.open(&changed, &mut opened), Err(expected));
        prop_assert_eq!(&opened, &[1, 2, 3]);
        prop_assert_eq!(inbound.highest(), 0);
        prop_assert_eq!(inbound.open(&packet, &mut opened), Ok(6));
    }

    #[test]
    fn truncated_and_extended_packets_are_refused(suite in suites(), len in 0usize..200, cut in 1usize..60) {
        let (mut outbound, mut inbound) = pair(suite);
        let packet = seal(&mut outbound, 6, &vec![9; len]);
        let mut opened = Vec::new();
        prop_assert!(inbound.open(&packet[..packet.len().saturating_sub(cut)], &mut opened).is_err());
        prop_assert!(inbound.open(&[&packet[..], &vec![0; cut]].concat(), &mut opened).is_err());
        prop_assert!(opened.is_empty());
    }

    #[test]
    fn any_bytes_are_refused(suite in suites(), bytes in prop::collection::vec(any::<u8>(), 0..100), with_spi: bool) {
        let (_, mut inbound) = pair(suite);
        let mut bytes = bytes;
        if with_spi && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&SPI.0.to_be_bytes());
        }
        let mut opened = Vec::new();
        prop_assert!(inbound.open(&bytes, &mut opened).is_err());
        prop_assert!(opened.is_empty());
    }

    /// By the definition: the largest payload that fits, found by trying.
    #[test]
    fn max_payload_is_the_largest_that_fits(suite in suites(), space in 0usize..2000) {
        let fits = (0..=space).take_while(|payload| suite.sealed_len(*payload) <= space).last();
        prop_assert_eq!(suite.max_payload(space), fits.unwrap_or(0));
    }

    /// The trailer of a text against a description from its front.
    #[test]
    fn the_trailer_is_what_was_appended(payload: Vec<u8>, padding in 0u8..=255, next_header: u8) {
        let mut text = payload.clone();
        text.extend(1..=padding);
        text.extend([padding, next_header]);
        prop_assert_eq!(trailer(&text), Some((payload.len(), next_header)));
        if padding > 0 {
            text[payload.len() + usize::from(padding) / 2] ^= 0x40;
            prop_assert_eq!(trailer(&text), None);
        }
    }
}

/// RFC 8750 §4: but for the IV, which is not there, a packet is what it is where the IV is the sequence number.
#[test]
fn an_implicit_iv_leaves_out_the_explicit_one_and_nothing_else() {
    for numbers in [Numbers::Short, Numbers::Long] {
        let sas = [EspSuite::Aes128Gcm16, EspSuite::Aes128Gcm16Iiv].map(|suite| pair(suite).0);
        let mut packets = sas.map(|mut sa| {
            sa.count_in(numbers);
            seal(&mut sa, 6, b"once");
            seal(&mut sa, 6, b"twice")
        });
        assert_eq!(packets[0].drain(8..16).collect::<Vec<_>>(), 2u64.to_be_bytes());
        assert_eq!(packets[0], packets[1]);
    }
}

#[test]
fn a_pad_length_beyond_the_packet_is_refused() {
    assert_eq!(trailer(&[]), None);
    assert_eq!(trailer(&[6]), None);
    assert_eq!(trailer(&[0, 6]), Some((0, 6)));
    assert_eq!(trailer(&[1, 6]), None);
}

/// draft-mcgrew-gcm-test-01 §2, the cases with a 128-bit key and 32-bit sequence numbers; the third is the last packet that
/// an SA can carry.
#[test]
fn gcm_in_esp_of_draft_mcgrew() {
    struct Case {
        key: &'static str,
        nonce: &'static str,
        header: &'static str,
        ciphertext: &'static str,
        icv: &'static str,
        payload: &'static str,
    }
    let cases = [
        Case {
            key: "feffe9928665731c6d6a8f9467308308",
            nonce: "cafebabefacedbaddecaf888",
            header: "0000a5f80000000a",
            ciphertext: "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1",
            icv: "83b70d3aa8bc6ee4c309e9d85a41ad4a",
            payload: "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d001000001000000000000037369700963796265726369747902646b0000010001",
        },
        Case {
            key: "00000000000000000000000000000000",
            nonce: "000000000000000000000000",
            header: "0000000000000001",
            ciphertext: "4688daf2f973a392732909c331d56d60f694abaa414b5e7ff5fdcdfff5e9a284456476492719ffb64de7d9dca1e1d894bc3bd57873ed4d181d19d4d5c8c18af3",
            icv: "f821d496eeb096e98ad2b69e4799c71d",
            payload: "4500003c99c500008001cb7a40679318010101010800075c020044006162636465666768696a6b6c6d6e6f7071727374757677616263646566676869",
        },
        Case {
            key: "7d773d00c144c525ac619d18c84a3f47",
            nonce: "d966426743457e9182443bc6",
            header: "335467aeffffffff",
            ciphertext: "437f866b",
            icv: "cb3f699fe9b0822bac961c4504bef270",
            payload: "",
        },
    ];
    for case in cases {
        let nonce = unhex(case.nonce);
        let (salt, iv) = nonce.split_at(4);
        let encryption = Zeroizing::new([&unhex(case.key), salt].concat());
        let header = unhex(case.header);
        let spi = Spi(u32::from_be_bytes(header[..4].try_into().unwrap()));
        let sequence = u32::from_be_bytes(header[4..].try_into().unwrap());
        let keys = EspKeys { encryption, authentication: Zeroizing::new(Vec::new()) };
        let mut sa = InboundSa::new(EspSuite::Aes128Gcm16, spi, &keys);
        let packet = [&header[..], iv, &unhex(case.ciphertext), &unhex(case.icv)].concat();
        let mut payload = Vec::new();
        // The vectors' next header is 1 although their payloads are IPv4 packets.
        assert_eq!(sa.open(&packet, &mut payload), Ok(1));
        assert_eq!(payload, unhex(case.payload));
        assert_eq!(sa.highest(), u64::from(sequence));
    }
}

#[test]
fn a_skipped_number_is_never_on_the_wire() {
    for suite in EspSuite::ALL {
        let (mut outbound, mut inbound) = pair(suite);
        let number = |packet: &[u8]| u32::from_be_bytes(packet[4..8].try_into().unwrap());
        let first = seal(&mut outbound, 6, b"one");
        assert_eq!(outbound.skip(), Ok(2));
        let third = seal(&mut outbound, 6, b"three");
        assert_eq!([number(&first), number(&third)], [1, 3]);
        for packet in [&third, &first] {
            assert_eq!(inbound.open(packet, &mut Vec::new()), Ok(6), "a gap is a loss, no error");
        }
        outbound.sequence = u32::MAX - 1;
        assert_eq!(outbound.skip(), Ok(u32::MAX));
        assert_eq!(outbound.skip(), Err(Exhausted));
        assert_eq!(outbound.seal(6, b"", &mut ChaCha20Rng::seed_from_u64(1), &mut Vec::new()), Err(Exhausted));
    }
}

#[test]
fn an_exhausted_sa_seals_no_more() {
    for suite in EspSuite::ALL {
        let (mut outbound, mut inbound) = pair(suite);
        outbound.sequence = u32::MAX - 1;
        let last = seal(&mut outbound, 6, b"last");
        assert_eq!(inbound.open(&last, &mut Vec::new()), Ok(6));
        let mut out = vec![5];
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        assert_eq!(outbound.seal(6, b"one more", &mut rng, &mut out), Err(Exhausted));
        assert_eq!(out, [5]);
        assert_eq!(outbound.sequence(), u32::MAX);
    }
}

#[test]
fn equal_payloads_never_give_equal_packets() {
    for suite in EspSuite::ALL {
        let (mut outbound, _) = pair(suite);
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut texts = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut packet = Vec::new();
            outbound.seal(6, &[0; 32], &mut rng, &mut packet).unwrap();
            assert!(texts.insert(packet[8..].to_vec()), "IVs differ and so do the ciphertexts");
        }
    }
}

#[test]
fn debug_shows_no_key() {
    for suite in EspSuite::ALL {
        let (outbound, inbound) = pair(suite);
        let text = format!("{outbound:?} {inbound:?} {:?}", keys(suite));
        assert!(text.contains("0x12345678"), "{text}");
        for secret in ["0102", "1, 2", "[", "5a5b"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[test]
fn suite_numbers_are_those_of_rfc_7402() {
    assert_eq!(EspSuite::ALL.map(EspSuite::number), [13, 9, 8]);
    for number in 0..=u16::MAX {
        assert!(EspSuite::from_number(number).is_none_or(|suite| suite.number() == number));
    }
}

/// RFC 4303 §2: SPI and number, initialization vector, padding, trailer and checksum; BEET adds no inner header (RFC 7402 App. B).
#[test]
fn wedge_3_what_esp_adds_to_a_packet() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == "wedge.3").unwrap();
    let inner = vector["input"]["inner"].as_u64().unwrap() as usize;
    let (mut outbound, _) = pair(EspSuite::Aes128CbcHmacSha256);
    let sealed = seal(&mut outbound, 6, &vec![0; inner]);
    assert_eq!(sealed.len() - inner, vector["output"]["bytes"].as_u64().unwrap() as usize);
}

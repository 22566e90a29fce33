//! The cryptography against a base exchange, ESP and signalling recorded between two independent implementations: two hosts with
//! ECDSA P-384 identities, group 8, HIP_CIPHER AES-256-CBC, ESP suite 9. Wire formats are read here by hand, on purpose not
//! by `wire`.

use hip::cipher::HipCipher;
use hip::dh::{Group, SharedSecret};
use hip::esp::{EspSuite, InboundSa, OpenError};
use hip::identity::{HostIdentity, PublicIdentity};
use hip::keymat::{HipKeys, Keymat};
use hip::puzzle;
use hip::rhash::Rhash;
use std::path::PathBuf;
use wire::{Hit, Spi};

const INITIATOR: [u8; 4] = [10, 77, 0, 1];

const I1: u8 = 1;
const R1: u8 = 2;
const I2: u8 = 3;
const R2: u8 = 4;

const ESP_INFO: u16 = 65;
const PUZZLE: u16 = 257;
const SOLUTION: u16 = 321;
const DIFFIE_HELLMAN: u16 = 513;
const HOST_ID: u16 = 705;
const HIP_MAC: u16 = 61505;
const HIP_MAC_2: u16 = 61569;
const HIP_SIGNATURE_2: u16 = 61633;
const HIP_SIGNATURE: u16 = 61697;

fn vector(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/hip/capture-ecdsa-p384").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(name: &str) -> String {
    String::from_utf8(vector(name)).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    let text = text.trim();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// One IPv4 packet of the capture.
struct Captured {
    source: [u8; 4],
    protocol: u8,
    payload: Vec<u8>,
}

/// The classic pcap format with Ethernet frames.
fn capture() -> Vec<Captured> {
    let file = vector("bex_esp_update_close.pcap");
    let swapped = match file[..4] {
        [0xd4, 0xc3, 0xb2, 0xa1] => true,
        [0xa1, 0xb2, 0xc3, 0xd4] => false,
        _ => panic!("not a pcap file"),
    };
    let number = |at: usize| if swapped { u32_at(&file, at).swap_bytes() } else { u32_at(&file, at) };
    assert_eq!(number(20), 1, "Ethernet");
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let len = number(at + 8) as usize;
        let frame = &file[at + 16..at + 16 + len];
        at += 16 + len;
        assert_eq!(u16_at(frame, 12), 0x0800, "IPv4");
        let ip = &frame[14..];
        let (header, total) = (usize::from(ip[0] & 15) * 4, usize::from(u16_at(ip, 2)));
        packets.push(Captured {
            source: ip[12..16].try_into().unwrap(),
            protocol: ip[9],
            payload: ip[header..total].to_vec(),
        });
    }
    packets
}

/// A HIP packet of the capture (RFC 7401 §5.1).
struct HipPacket(Vec<u8>);

impl HipPacket {
    fn kind(&self) -> u8 {
        self.0[2]
    }

    fn sender(&self) -> Hit {
        Hit(self.0[8..24].try_into().unwrap())
    }

    fn receiver(&self) -> Hit {
        Hit(self.0[24..40].try_into().unwrap())
    }

    /// Offset of a parameter and its contents.
    fn parameter(&self, wanted: u16) -> Option<(usize, &[u8])> {
        let mut at = 40;
        while at < self.0.len() {
            let len = usize::from(u16_at(&self.0, at + 2));
            if u16_at(&self.0, at) == wanted {
                return Some((at, &self.0[at + 4..at + 4 + len]));
            }
            at += (4 + len).next_multiple_of(8);
        }
        None
    }

    fn contents(&self, wanted: u16) -> &[u8] {
        self.parameter(wanted).unwrap_or_else(|| panic!("parameter {wanted}")).1
    }

    /// What a MAC or signature in the parameter at `end` covers: all before it, with the header length saying so and a checksum
    /// of zero (RFC 7401 §5.2.12, §5.2.14).
    fn covered(&self, end: usize, extra: &[u8]) -> Vec<u8> {
        let mut bytes = [&self.0[..end], extra].concat();
        bytes[1] = u8::try_from(bytes.len() / 8 - 1).unwrap();
        bytes[4..6].fill(0);
        bytes
    }

    fn host_identity(&self) -> PublicIdentity {
        // HOST_ID: HI length, DI type and length, algorithm, HI (RFC 7401 §5.2.9).
        let host_id = self.contents(HOST_ID);
        let len = usize::from(u16_at(host_id, 0));
        PublicIdentity::from_wire(u16_at(host_id, 4), &host_id[6..6 + len]).unwrap()
    }
}

struct Exchange {
    packets: Vec<HipPacket>,
    keymat: Keymat,
    /// The HIP keys as the Initiator has them.
    keys: HipKeys,
    hit_i: Hit,
    hit_r: Hit,
    rhash: Rhash,
}

impl Exchange {
    fn of_capture() -> Self {
        let packets: Vec<HipPacket> = capture()
            .into_iter()
            .filter(|packet| packet.protocol == 139)
            .map(|packet| HipPacket(packet.payload))
            .collect();
        assert_eq!(packets[..4].iter().map(HipPacket::kind).collect::<Vec<_>>(), [I1, R1, I2, R2]);
        let (hit_i, hit_r) = (packets[2].sender(), packets[2].receiver());
        let rhash = Rhash::of_hit(&hit_r).unwrap();
        let solution = packets[2].contents(SOLUTION);
        let (i, j) = solution[4..].split_at(rhash.len());
        let kij = SharedSecret::from_bytes(&unhex(&text("dh_secret.hex")));
        let keymat = Keymat::new(rhash, &kij, i, j, &hit_i, &hit_r);
        let keys = keymat.hip_keys(HipCipher::Aes256Cbc, &hit_i, &hit_r).unwrap();
        Self { packets, keymat, keys, hit_i, hit_r, rhash }
    }
}

#[test]
fn the_identities_have_the_hits_of_the_capture() {
    let (a, b) = (HostIdentity::from_pem(&text("a.pem")).unwrap(), HostIdentity::from_pem(&text("b.pem")).unwrap());
    let exchange = Exchange::of_capture();
    assert_eq!(a.hit(), exchange.hit_i);
    assert_eq!(b.hit(), exchange.hit_r);
    // As verify.txt has them.
    assert_eq!(a.hit(), Hit(unhex("2001002245829a50b047718c25c168f5").try_into().unwrap()));
    assert_eq!(b.hit(), Hit(unhex("200100220a526e382bc21b75ccfe8f14").try_into().unwrap()));
    assert_eq!(exchange.packets[1].host_identity(), *b.public());
    assert_eq!(exchange.packets[2].host_identity(), *a.public());
    assert_eq!(a.public().algorithm_number(), 7);
    assert_eq!(exchange.packets[1].host_identity().hit(), b.hit());
}

#[test]
fn every_signature_verifies() {
    let exchange = Exchange::of_capture();
    let identities = [exchange.packets[1].host_identity(), exchange.packets[2].host_identity()];
    let mut checked = 0;
    for packet in &exchange.packets {
        let signer = identities.iter().find(|identity| identity.hit() == packet.sender()).unwrap();
        if let Some((at, contents)) = packet.parameter(HIP_SIGNATURE) {
            let message = packet.covered(at, &[]);
            assert_eq!(u16_at(contents, 0), signer.signature_algorithm());
            signer.verify(&message, &contents[2..]).unwrap_or_else(|error| panic!("{}: {error}", packet.kind()));
            // Not the other host's, and not of another message.
            let other = identities.iter().find(|identity| identity.hit() != packet.sender()).unwrap();
            assert!(other.verify(&message, &contents[2..]).is_err());
            assert!(signer.verify(&message[1..], &contents[2..]).is_err());
            checked += 1;
        }
    }
    // I2, R2, UPDATEs, CLOSE, CLOSE_ACK.
    assert_eq!(checked, exchange.packets.len() - 2);
}

#[test]
fn the_signature_of_r1_verifies() {
    let exchange = Exchange::of_capture();
    let r1 = &exchange.packets[1];
    let (at, contents) = r1.parameter(HIP_SIGNATURE_2).unwrap();
    // RFC 7401 §5.2.15: Initiator's HIT, checksum, and the puzzle's opaque data and #I are zero.
    let mut message = r1.covered(at, &[]);
    message[24..40].fill(0);
    let (puzzle_at, puzzle) = r1.parameter(PUZZLE).unwrap();
    message[puzzle_at + 6..puzzle_at + 4 + puzzle.len()].fill(0);
    assert_eq!(r1.host_identity().verify(&message, &contents[2..]), Ok(()));
}

#[test]
fn the_solution_of_i2_solves_the_puzzle_of_r1() {
    let exchange = Exchange::of_capture();
    let (puzzle, solution) = (exchange.packets[1].contents(PUZZLE), exchange.packets[2].contents(SOLUTION));
    let difficulty = puzzle[0];
    let (i, j) = solution[4..].split_at(exchange.rhash.len());
    assert_eq!((difficulty, &puzzle[4..]), (10, i));
    assert!(puzzle::verify(exchange.rhash, i, &exchange.hit_i, &exchange.hit_r, j, difficulty));
    assert!(!puzzle::verify(exchange.rhash, i, &exchange.hit_r, &exchange.hit_i, j, difficulty), "HITs swapped");
}

#[test]
fn the_public_values_have_the_length_of_the_group_and_lie_in_it() {
    use rand_core::SeedableRng;
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
    let exchange = Exchange::of_capture();
    for packet in &exchange.packets[1..3] {
        let contents = packet.contents(DIFFIE_HELLMAN);
        let group = Group::from_number(contents[0]).unwrap();
        assert_eq!(group, Group::P384);
        assert_eq!(usize::from(u16_at(contents, 1)), group.public_value_len());
        let ours = hip::dh::EphemeralSecret::generate(group, &mut rng);
        assert_eq!(ours.agree(&contents[3..]).unwrap().as_bytes().len(), 48);
    }
}

#[test]
fn every_mac_is_that_of_the_keymat() {
    let exchange = Exchange::of_capture();
    let mut checked = 0;
    for packet in &exchange.packets {
        let ours = packet.sender() == exchange.hit_i;
        let keys = if ours { &exchange.keys.ours } else { &exchange.keys.theirs };
        let wrong = if ours { &exchange.keys.theirs } else { &exchange.keys.ours };
        if let Some((at, mac)) = packet.parameter(HIP_MAC) {
            let message = packet.covered(at, &[]);
            assert!(exchange.rhash.hmac_verify(&keys.integrity, &[&message], mac), "packet type {}", packet.kind());
            assert!(!exchange.rhash.hmac_verify(&wrong.integrity, &[&message], mac));
            checked += 1;
        }
        if let Some((at, mac)) = packet.parameter(HIP_MAC_2) {
            // RFC 7401 §6.4.2: over R2 with the Responder's HOST_ID of R1 behind it.
            let r1 = &exchange.packets[1];
            let (host_id_at, host_id) = r1.parameter(HOST_ID).unwrap();
            let parameter = &r1.0[host_id_at..host_id_at + (4 + host_id.len()).next_multiple_of(8)];
            let message = packet.covered(at, parameter);
            assert!(exchange.rhash.hmac_verify(&keys.integrity, &[&message], mac), "HIP_MAC_2 of R2");
            checked += 1;
        }
    }
    assert_eq!(checked, exchange.packets.len() - 2);
}

#[test]
fn the_esp_packets_open_in_order_and_only_once() {
    let exchange = Exchange::of_capture();
    let (info_i, info_r) = (exchange.packets[2].contents(ESP_INFO), exchange.packets[3].contents(ESP_INFO));
    // ESP_INFO: reserved, KEYMAT index, old SPI, new SPI (RFC 7402 §5.1.1).
    let index = u16_at(info_i, 2);
    assert_eq!(index, exchange.keymat.first_esp_index(HipCipher::Aes256Cbc));
    let suite = EspSuite::from_number(9).unwrap();
    let (at_initiator, next) = exchange.keymat.esp_keys(suite, index, &exchange.hit_i, &exchange.hit_r).unwrap();
    let (at_responder, _) = exchange.keymat.esp_keys(suite, index, &exchange.hit_r, &exchange.hit_i).unwrap();
    assert_eq!(next, index + 2 * (32 + 32));
    assert_eq!(at_initiator.outbound.encryption, at_responder.inbound.encryption);
    // As verify.txt has them.
    assert_eq!(
        *at_responder.inbound.encryption,
        unhex("dfac060a23af719b4cbea9a5ea5fec9a07fda2980243426d45c21142c2b8610f")
    );
    assert_eq!(
        *at_initiator.inbound.authentication,
        unhex("cf0c1eda51acce2a91a3c6ed2a6756546d0fbaa2e9e3b967befadaec0c9566bb")
    );
    let mut initiator = InboundSa::new(suite, Spi(u32_at(info_i, 8)), &at_initiator.inbound);
    let mut responder = InboundSa::new(suite, Spi(u32_at(info_r, 8)), &at_responder.inbound);
    let (mut requests, mut replies) = (0, 0);
    for packet in capture().iter().filter(|packet| packet.protocol == 50) {
        let (sa, expected) = if packet.source == INITIATOR {
            requests += 1;
            (&mut responder, 128)
        } else {
            replies += 1;
            (&mut initiator, 129)
        };
        let mut payload = vec![0xee];
        assert_eq!(sa.open(&packet.payload, &mut payload), Ok(58), "ICMPv6");
        assert_eq!(payload[..2], [0xee, expected], "echo request or reply");
        // 14 bytes of padding in a text of 80 bytes, as in verify.txt.
        assert_eq!((packet.payload.len(), payload.len()), (120, 1 + 64));
        assert_eq!(sa.open(&packet.payload, &mut payload), Err(OpenError::Replay));
        assert_eq!(payload.len(), 65, "nothing is appended by a refused packet");
    }
    assert_eq!((requests, replies), (13, 13));
    assert_eq!((initiator.highest(), responder.highest()), (13, 13));
}

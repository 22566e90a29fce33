//! ESP against a second implementation, scapy's: it opens what we seal, we open what it seals, and both refuse what was
//! changed. Needs Python 3 with scapy and cryptography; without them the tests say so and pass, unless
//! SINNET_REQUIRE_TOOLS=1.

use hip::esp::{EspKeys, EspSuite, InboundSa, Numbers, OpenError, OutboundSa};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng};
use std::io::Write as _;
use std::process::{Command, Stdio};
use wire::Spi;
use zeroize::Zeroizing;

/// Reads lines of commands and answers each with a line.
const SCRIPT: &str = r#"
import hashlib, hmac, struct, sys
from scapy.layers.inet import IP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw
from scapy.compat import raw

def association(suite, spi, key, auth, upper):
    key, auth = bytes.fromhex(key.strip('-')), bytes.fromhex(auth.strip('-'))
    long = dict(esn_en=True, esn=int(upper)) if upper != '-' else {}
    if suite == '13':
        return SecurityAssociation(ESP, spi=int(spi), crypt_algo='AES-GCM', crypt_key=key, **long)
    if suite == '11':
        # Its 'AES-CCM' has the ICV of 16 bytes (RFC 4309 section 6).
        return SecurityAssociation(ESP, spi=int(spi), crypt_algo='AES-CCM', crypt_key=key, **long)
    if suite == '7':
        return SecurityAssociation(ESP, spi=int(spi), crypt_algo='NULL', auth_algo='SHA2-256-128', auth_key=auth, **long)
    return SecurityAssociation(ESP, spi=int(spi), crypt_algo='AES-CBC', crypt_key=key,
                               auth_algo='SHA2-256-128', auth_key=auth, **long)

for line in sys.stdin:
    verb, suite, spi, key, auth, upper, *rest = line.split()
    sa = association(suite, spi, key, auth, upper)
    long = dict(esn_en=sa.esn_en, esn=sa.esn)
    # Scapy's HMAC leaves the upper half out (RFC 4303 2.2.1, RFC 4868 2.3).
    by_hand = upper != '-' and suite not in ('11', '13')
    icv = lambda body: hmac.new(bytes.fromhex(auth), body + struct.pack('!L', int(upper)), hashlib.sha256).digest()[:16]
    if verb == 'seal':
        sequence, next_header, payload = rest
        packet = IP(src='192.0.2.1', dst='192.0.2.2', proto=int(next_header)) / Raw(bytes.fromhex(payload.strip('-')))
        sealed = raw(sa.encrypt(packet, seq_num=int(sequence))[ESP])
        print((sealed[:-16] + icv(sealed[:-16]) if by_hand else sealed).hex())
    else:
        packet = ESP(bytes.fromhex(rest[0]))
        try:
            if packet.spi != sa.spi:
                raise ValueError('SPI')
            if by_hand:
                if icv(raw(packet)[:-16]) != raw(packet)[-16:]:
                    raise ValueError('ICV')
            else:
                sa.auth_algo.verify(packet, sa.auth_key, **long)
            plain = sa.crypt_algo.decrypt(sa, packet, sa.crypt_key, sa.crypt_algo.icv_size or sa.auth_algo.icv_size, **long)
            print(plain.nh, plain.data.hex() or '-')
        except Exception as error:
            print('refused', type(error).__name__)
"#;

const SPI: Spi = Spi(0x00c0_ffee);

/// Payload lengths around all multiples that matter, and a full packet.
const LENGTHS: [usize; 14] = [0, 1, 2, 3, 13, 14, 15, 16, 29, 30, 31, 100, 1398, 1400];

/// The first Python that has scapy. None, said aloud, if no one has.
fn python() -> Option<&'static str> {
    let found = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        Command::new(python)
            .args(["-c", "import scapy.layers.ipsec, cryptography"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    if found.is_none() {
        testkit::skip("no Python 3 with scapy and cryptography (python3-scapy, python3-cryptography)");
    }
    found
}

fn scapy(python: &str, commands: &[String]) -> Vec<String> {
    let mut child = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = commands.join("\n") + "\n";
    // The answers are fewer bytes than a pipe holds only by luck, so the commands are written from beside.
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), commands.len());
    answers
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

fn unhex(text: &str) -> Vec<u8> {
    let text = text.trim_matches('-');
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn random(rng: &mut ChaCha20Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn keys(suite: EspSuite, rng: &mut ChaCha20Rng) -> EspKeys {
    EspKeys {
        encryption: Zeroizing::new(random(rng, suite.encryption_key_len())),
        authentication: Zeroizing::new(random(rng, suite.authentication_key_len())),
    }
}

/// `upper`: the upper half of the sequence number, where it has 64 bits.
fn command(verb: &str, suite: EspSuite, keys: &EspKeys, upper: Option<u32>, rest: &str) -> String {
    let upper = upper.map_or_else(|| "-".to_owned(), |upper| upper.to_string());
    let (encryption, authentication) = (hex(&keys.encryption), hex(&keys.authentication));
    format!("{verb} {} {} {encryption} {authentication} {upper} {rest}", suite.number(), SPI.0)
}

#[test]
fn scapy_opens_what_we_seal() {
    let Some(python) = python() else { return };
    let mut rng = ChaCha20Rng::seed_from_u64(0x5ea1);
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    for suite in EspSuite::KNOWN {
        let keys = keys(suite, &mut rng);
        let mut sa = OutboundSa::new(suite, SPI, &keys);
        for (len, next_header) in LENGTHS.into_iter().zip(1u8..) {
            let payload = random(&mut rng, len);
            let mut packet = Vec::new();
            sa.seal(next_header, &payload, &mut rng, &mut packet).unwrap();
            commands.push(command("open", suite, &keys, None, &hex(&packet)));
            expected.push(format!("{next_header} {}", hex(&payload)));
            // And it refuses a changed one, so its checks are real.
            *packet.last_mut().unwrap() ^= 1;
            commands.push(command("open", suite, &keys, None, &hex(&packet)));
            expected.push("refused IPSecIntegrityError".to_owned());
        }
    }
    assert_eq!(scapy(python, &commands), expected);
}

#[test]
fn we_open_what_scapy_seals() {
    let Some(python) = python() else { return };
    let mut rng = ChaCha20Rng::seed_from_u64(0x09e7);
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    for suite in EspSuite::KNOWN {
        let keys = keys(suite, &mut rng);
        for (len, sequence) in LENGTHS.into_iter().zip(1u32..) {
            let payload = random(&mut rng, len);
            // 253 is for experiments (RFC 3692): scapy dissects nothing behind it.
            commands.push(command("seal", suite, &keys, None, &format!("{sequence} 253 {}", hex(&payload))));
            expected.push((suite, keys.clone(), sequence, payload));
        }
    }
    for (answer, (suite, keys, sequence, payload)) in scapy(python, &commands).iter().zip(expected) {
        let packet = unhex(answer);
        assert_eq!(packet.len(), suite.sealed_len(payload.len()), "the same padding as ours");
        let mut sa = InboundSa::new(suite, SPI, &keys);
        let mut opened = Vec::new();
        assert_eq!(sa.open(&packet, &mut opened), Ok(253), "{suite:?}, {} bytes", payload.len());
        assert_eq!((opened, sa.highest()), (payload, u64::from(sequence)));
        assert_eq!(sa.open(&packet, &mut Vec::new()), Err(OpenError::Replay));
    }
}

/// RFC 7402 §3.3.6: of numbers of 64 bits the ICV covers the upper half, which is not sent. Each packet shows which
/// its host has.
#[test]
fn long_numbers_are_scapys_too() {
    let Some(python) = python() else { return };
    let mut rng = ChaCha20Rng::seed_from_u64(0x0e54);
    let (mut commands, mut expected, mut sealed) = (Vec::new(), Vec::new(), Vec::new());
    // Between the third and the fourth the lower half begins anew.
    let numbers: [u64; 5] = [1, 1 << 31, (1 << 32) - 1, (1 << 32) + 1, (7 << 32) + 5];
    for suite in EspSuite::KNOWN {
        let keys = keys(suite, &mut rng);
        for number in numbers {
            let rest = format!("{} 253 {}", number as u32, hex(&random(&mut rng, 40)));
            commands.push(command("seal", suite, &keys, Some((number >> 32) as u32), &rest));
        }
        commands.push(command("seal", suite, &keys, None, "9 253 00"));
        let mut sa = OutboundSa::new(suite, SPI, &keys);
        sa.count_in(Numbers::Long);
        let mut packet = Vec::new();
        sa.seal(253, b"long", &mut rng, &mut packet).unwrap();
        commands.push(command("open", suite, &keys, Some(0), &hex(&packet)));
        commands.push(command("open", suite, &keys, None, &hex(&packet)));
        expected.push(format!("253 {}", hex(b"long")));
        sealed.push((suite, keys));
    }
    let answers = scapy(python, &commands);
    for ((answers, (suite, keys)), expected) in answers.chunks(numbers.len() + 3).zip(sealed).zip(expected) {
        let (packets, ours) = answers.split_at(numbers.len() + 1);
        assert_eq!(ours, [expected, "refused IPSecIntegrityError".to_owned()]);
        let mut sa = InboundSa::new(suite, SPI, &keys);
        assert_eq!(sa.numbers(), None);
        let (short, long) = packets.split_last().unwrap();
        for (packet, number) in long.iter().zip(numbers).take(4) {
            assert_eq!(sa.open(&unhex(packet), &mut Vec::new()), Ok(253), "{suite:?} {number}");
            assert_eq!((sa.highest(), sa.numbers()), (number, Some(Numbers::Long)));
        }
        assert_eq!(sa.open(&unhex(&long[4]), &mut Vec::new()), Err(OpenError::BadIcv), "seven turns ahead");
        assert_eq!(sa.open(&unhex(short), &mut Vec::new()), Err(OpenError::BadIcv), "a turn behind");
        let mut sa = InboundSa::new(suite, SPI, &keys);
        assert_eq!(sa.open(&unhex(short), &mut Vec::new()), Ok(253));
        // A host may try both; but not where it is known to have one.
        assert_eq!(sa.open(&unhex(&long[1]), &mut Vec::new()), Ok(253));
        assert_eq!(sa.numbers(), Some(Numbers::Long));
        let mut sa = InboundSa::new(suite, SPI, &keys);
        sa.expect_numbers(Numbers::Short);
        assert_eq!(sa.open(&unhex(&long[0]), &mut Vec::new()), Err(OpenError::BadIcv));
        assert_eq!(sa.open(&unhex(short), &mut Vec::new()), Ok(253));
    }
}

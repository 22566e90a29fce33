//! The key-log lines against Wireshark: given them, tshark decrypts what we seal and finds every ICV right. Without tshark the
//! tests say so and pass, unless SINNET_REQUIRE_TOOLS=1.

use hip::esp::{EspKeys, EspSuite, InboundSa, OutboundSa};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use wire::Spi;
use zeroize::Zeroizing;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const SOURCE_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const DESTINATION_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));

fn tshark_is_there() -> bool {
    testkit::has("tshark", &["--version"])
}

fn keys(suite: EspSuite) -> EspKeys {
    let bytes = |len: usize, first: u8| Zeroizing::new((first..).take(len).collect::<Vec<u8>>());
    EspKeys {
        encryption: bytes(suite.encryption_key_len(), 3),
        authentication: bytes(suite.authentication_key_len(), 77),
    }
}

/// A UDP datagram to port 7, without a checksum.
fn datagram(text: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + text.len()).unwrap();
    [&[0x30, 0x39, 0, 7], &len.to_be_bytes()[..], &[0, 0], text].concat()
}

/// The packet behind an IP header.
fn ip(source: IpAddr, destination: IpAddr, esp: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let len = u16::try_from(20 + esp.len()).unwrap().to_be_bytes();
            let header = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 50, 0, 0];
            [&header[..], &source.octets(), &destination.octets(), esp].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = u16::try_from(esp.len()).unwrap().to_be_bytes();
            let header = [0x60, 0, 0, 0, len[0], len[1], 50, 64];
            [&header[..], &source.octets(), &destination.octets(), esp].concat()
        }
        _ => panic!("two families"),
    }
}

/// A capture file of link type RAW.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65535, 101u32] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for packet in packets {
        let len = u32::try_from(packet.len()).unwrap();
        for word in [0, 0, len, len] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

#[test]
fn wireshark_decrypts_with_the_keylog() {
    if !tshark_is_there() {
        return;
    }
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (mut packets, mut lines, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let known = EspSuite::KNOWN.into_iter().filter(|suite| *suite != EspSuite::Aes128Ccm16);
    for (suite, spi) in known.zip(0x1000..) {
        let spi = Spi(spi);
        for (source, destination) in [(SOURCE, DESTINATION), (SOURCE_6, DESTINATION_6)] {
            let mut sa = OutboundSa::new(suite, spi, &keys(suite)).logged(keys(suite));
            let text = format!("suite {} to {destination}", suite.number());
            let mut packet = Vec::new();
            sa.seal(17, &datagram(text.as_bytes()), &mut rng, &mut packet).unwrap();
            packets.push(ip(source, destination, &packet));
            let line = sa.keylog_line(source, destination).unwrap();
            let inbound = InboundSa::new(suite, spi, &keys(suite));
            assert_eq!(inbound.keylog_line(source, destination), None, "keys are not kept unless asked for");
            assert_eq!(inbound.logged(keys(suite)).keylog_line(source, destination).unwrap(), line);
            lines.push(line);
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            // UDP port, payload, and that Wireshark found the ICV right.
            expected.push(format!("{spi}|7|{hex}|1"));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("esp.pcap");
    std::fs::write(&path, pcap(&packets)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
    for field in ["esp.spi", "udp.dstport", "udp.payload", "esp.icv_good"] {
        tshark.args(["-e", field]);
    }
    tshark.args(["-o", "esp.enable_encryption_decode:TRUE", "-o", "esp.enable_authentication_check:TRUE"]);
    for line in lines {
        tshark.arg("-o").arg(format!("uat:esp_sa:{line}"));
    }
    let output = tshark.stdin(Stdio::null()).output().unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

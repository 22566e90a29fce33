//! HIP packets of an independent implementation, and packets of any shape.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pcap_file::pcap::PcapReader;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::hip::{
    Builder, Candidate, DiffieHellman, EspInfo, HEADER_LEN, HostId, Locator, Notification, Packet, PacketError,
    PacketKind, Parameter, PeerPermission, Puzzle, RegFailed, RegInfo, Registration, Signature, Solution,
    TransportAddress, kind, lifetime_seconds, set_checksum, set_puzzle, set_receiver,
};
use wire::{Hit, Spi};

const CAPTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/hip/capture-ecdsa-p384/bex_esp_update_close.pcap");

/// The HIP packets of the capture, Ethernet frames with IPv4, and their addresses.
fn captured() -> Vec<(IpAddr, IpAddr, Vec<u8>)> {
    let mut reader = PcapReader::new(File::open(CAPTURE).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let ip = &packet.data[14..];
        if ip[9] == wire::hip::IP_PROTOCOL {
            let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&ip[at..at + 4]).unwrap());
            let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            packets.push((address(12), address(16), ip[usize::from(ip[0] & 15) * 4..total].to_vec()));
        }
    }
    packets
}

#[test]
fn the_packets_of_an_independent_implementation() {
    let packets = captured();
    let mut kinds = Vec::new();
    for (source, destination, bytes) in &packets {
        let packet = Packet::parse(bytes).unwrap();
        kinds.push(packet.kind());
        assert!(packet.checksum_is_right(*source, *destination));
        assert_eq!(packet.unknown_critical(), None);
        // Emitting what was read gives the packet again.
        let mut again = Builder::new(packet.kind(), packet.sender(), packet.receiver()).finish().unwrap();
        packet.parameters().for_each(|parameter| parameter.emit(&mut again));
        again[1] = (again.len() / 8 - 1) as u8;
        set_checksum(&mut again, *source, *destination);
        assert_eq!(again, *bytes, "{:?}", packet.kind());
    }
    use PacketKind::{Close, CloseAck, I1, I2, R1, R2, Update};
    kinds.dedup();
    assert_eq!(kinds, [I1, R1, I2, R2, Update, Close, CloseAck]);
    let r1 =
        packets.iter().map(|(.., bytes)| Packet::parse(bytes).unwrap()).find(|packet| packet.kind() == R1).unwrap();
    assert_eq!(r1.diffie_hellman().unwrap().group, 8);
    assert_eq!(r1.host_id().unwrap().algorithm, 7);
}

#[test]
fn what_an_r1_for_another_initiator_changes_is_not_signed() {
    let (.., bytes) = captured().into_iter().find(|(.., bytes)| bytes[2] == PacketKind::R1 as u8).unwrap();
    let before = Packet::parse(&bytes).unwrap();
    let mut other = bytes.clone();
    set_receiver(&mut other, Hit([7; 16]));
    set_puzzle(&mut other, 0x1234, &[9; 48]);
    let after = Packet::parse(&other).unwrap();
    assert_eq!((after.receiver(), after.puzzle().unwrap().opaque), (Hit([7; 16]), 0x1234));
    assert_eq!(after.puzzle().unwrap().i, [9; 48]);
    assert_eq!(before.covered_by_signature_2(), after.covered_by_signature_2());
}

#[test]
fn order_and_repetition() {
    let packet = |parameters: &[Parameter]| {
        let mut bytes = Builder::new(PacketKind::Update, Hit::NULL, Hit::NULL).finish().unwrap();
        parameters.iter().for_each(|parameter| parameter.emit(&mut bytes));
        bytes[1] = (bytes.len() / 8 - 1) as u8;
        bytes
    };
    let refused = |parameters: &[Parameter]| Packet::parse(&packet(parameters)).unwrap_err();
    assert_eq!(refused(&[Parameter::Ack(vec![1]), Parameter::Seq(1)]), PacketError::OutOfOrder(kind::SEQ));
    assert_eq!(refused(&[Parameter::Seq(1), Parameter::Seq(2)]), PacketError::Duplicate(kind::SEQ));
    // Tolerated: hosts out there do it.
    assert!(Packet::parse(&packet(&[Parameter::Seq(1), Parameter::R1Counter(1)])).is_ok());
    let unknown = |kind| Parameter::Unknown { kind, contents: vec![1] };
    let bytes = packet(&[unknown(1000)]);
    assert_eq!(Packet::parse(&bytes).unwrap().unknown_critical(), None);
    let bytes = packet(&[unknown(1001)]);
    assert_eq!(Packet::parse(&bytes).unwrap().unknown_critical(), Some(1001));
    // RFC 7401 §5.2.1: what is not known and not critical is passed over, however often it comes.
    let bytes = packet(&[Parameter::Seq(1), unknown(1000), unknown(1000)]);
    assert_eq!(Packet::parse(&bytes).unwrap().seq(), Some(&1));
}

/// RFC 8047 §4.2: an UPDATE may be about several security associations. An R2 is about one.
#[test]
fn an_update_has_several_esp_infos() {
    let info = |spi| Parameter::EspInfo(EspInfo { keymat_index: 0, old_spi: Spi(spi), new_spi: Spi(spi) });
    for (kind, expected) in [(PacketKind::Update, 2), (PacketKind::R2, 0)] {
        let builder = Builder::new(kind, Hit::NULL, Hit::NULL).push(&info(1000)).push(&info(2000));
        let bytes = builder.finish().unwrap();
        assert_eq!(Packet::parse(&bytes).map_or(0, |packet| packet.esp_infos().count()), expected);
    }
}

/// RFC 8046 §4: "Each locator MUST have a non-zero lifetime"; the others of the set count.
#[test]
fn a_locator_that_is_good_for_no_time_is_none() {
    let one = |lifetime| Locator { traffic: 0, preferred: true, lifetime, spi: None, address: Ipv6Addr::LOCALHOST };
    let set = Parameter::LocatorSet(vec![one(0), one(7)]);
    let bytes = Builder::new(PacketKind::Update, Hit::NULL, Hit::NULL).push(&set).finish().unwrap();
    assert_eq!(Packet::parse(&bytes).unwrap().locator_set(), Some(&vec![one(7)]));
}

/// RFC 9028 §5.7: a locator of type 2 has seven words after its head.
#[test]
fn candidates_are_locators_of_type_two() {
    let place = TransportAddress::udp("192.0.2.1:10500".parse().unwrap());
    let candidate = Candidate { lifetime: 60, place, kind: 1, priority: 0x6400_01ff };
    let mut bytes = Vec::new();
    Parameter::CandidateSet(vec![candidate]).emit(&mut bytes);
    let head = [0, 193, 0, 36, 0, 2, 7, 0, 0, 0, 0, 60, 0x29, 0x04, 17, 1, 0x64, 0, 1, 0xff, 0, 0, 0, 0];
    assert_eq!(bytes, [&head[..], &place.address.octets()].concat());
    // One that is good for no time is none; beside other locators nothing is lost.
    let set = vec![Candidate { lifetime: 0, ..candidate }, candidate];
    let packet = |set: Parameter| Builder::new(PacketKind::Update, Hit::NULL, Hit::NULL).push(&set).finish().unwrap();
    let bytes = packet(Parameter::CandidateSet(set));
    assert_eq!(Packet::parse(&bytes).unwrap().candidates(), Some(&vec![candidate]));
    assert_eq!(Packet::parse(&bytes).unwrap().locator_set(), None);
    let own = Locator { traffic: 0, preferred: true, lifetime: 7, spi: None, address: Ipv6Addr::LOCALHOST };
    let mut both = packet(Parameter::LocatorSet(vec![own]));
    both.truncate(both.len() - 4);
    Parameter::CandidateSet(vec![candidate]).emit(&mut both);
    // The second one's locator, without a header of its own.
    let at = HEADER_LEN + 4 + 24;
    both.drain(at..at + 4);
    both[HEADER_LEN + 3] = 24 + 36;
    both[1] = (both.len() / 8 - 1) as u8;
    assert_eq!(Packet::parse(&both).unwrap().locator_set(), Some(&vec![own]));
}

/// RFC 8003 §4.1 to §4.4, RFC 8004 §4.2, byte by byte.
#[test]
fn registration_and_rendezvous() {
    let emitted = |parameter: Parameter| {
        let mut bytes = Vec::new();
        parameter.emit(&mut bytes);
        bytes
    };
    let types = vec![1];
    let info = Parameter::RegInfo(RegInfo { min: 85, max: 100, types: types.clone() });
    assert_eq!(emitted(info), [0x03, 0xa2, 0, 3, 85, 100, 1, 0]);
    let asked = Registration { lifetime: 90, types: types.clone() };
    assert_eq!(emitted(Parameter::RegRequest(asked.clone())), [0x03, 0xa4, 0, 2, 90, 1, 0, 0]);
    assert_eq!(emitted(Parameter::RegResponse(asked)), [0x03, 0xa6, 0, 2, 90, 1, 0, 0]);
    assert_eq!(emitted(Parameter::RegFailed(RegFailed { reason: 2, types })), [0x03, 0xa8, 0, 2, 2, 1, 0, 0]);
    let address: Ipv6Addr = "::ffff:192.0.2.1".parse().unwrap();
    let whole = |number: u16| [&number.to_be_bytes()[..], &[0, 16], &address.octets(), &[0; 4]].concat();
    assert_eq!(emitted(Parameter::From(address)), whole(65498));
    assert_eq!(emitted(Parameter::ViaRvs(vec![address])), whole(65502));
    assert_eq!(emitted(Parameter::RvsHmac(vec![7; 4])), [0xff, 0xdc, 0, 4, 7, 7, 7, 7]);
    let place = TransportAddress::udp("192.0.2.1:10500".parse().unwrap());
    let contents = [&[0x29, 0x04, 17, 0][..], &address.octets()].concat();
    let whole = |number: u16| [&number.to_be_bytes()[..], &[0, 20], &contents].concat();
    // RFC 9028 §5.6, §5.12, and its numbers in the registry of HIP parameters.
    assert_eq!(emitted(Parameter::RegFrom(place)), whole(950));
    assert_eq!(emitted(Parameter::MappedAddress(place)), whole(4660));
    assert_eq!(emitted(Parameter::RelayFrom(place)), whole(63998));
    assert_eq!(emitted(Parameter::RelayTo(place)), whole(64002));
    assert_eq!(emitted(Parameter::RelayHmac(vec![7; 4])), [0xff, 0xf0, 0, 4, 7, 7, 7, 7]);
    let peer = TransportAddress::udp("192.0.2.2:4500".parse().unwrap());
    let permission = PeerPermission { relay: place, peer, outbound: Spi(0x0102_0304), inbound: Spi(0x0506_0708) };
    let head = [0x12, 0x48, 0, 48, 0x29, 0x04, 0x11, 0x94, 17, 0, 0, 0];
    let tail = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
    let expected = [&head[..], &address.octets(), &peer.address.octets(), &tail].concat();
    assert_eq!(emitted(Parameter::PeerPermission(permission)), expected);
    assert_eq!(emitted(Parameter::CandidatePriority(0x0102_0304)), [0x12, 0x5c, 0, 4, 1, 2, 3, 4]);
    for lifetime in 1..=u8::MAX {
        let exact = 2_f64.powf((f64::from(lifetime) - 64.0) / 8.0);
        let error = lifetime_seconds(lifetime) as f64 - exact;
        assert!(error <= exact * 1e-5 && error > -1.0 - exact * 1e-5, "{lifetime}");
    }
    assert_eq!(lifetime_seconds(0), 0);
}

/// RFC 7401 §5.1.
#[test]
fn what_follows_a_packet_is_ignored_where_another_header_does() {
    let packet = Builder::new(PacketKind::Update, Hit::NULL, Hit::NULL).push(&Parameter::Seq(1)).finish().unwrap();
    let mut followed = packet.clone();
    followed.extend_from_slice(b"of a later protocol");
    assert_eq!(Packet::parse(&followed).err(), Some(PacketError::TrailingBytes), "59: nothing does");
    followed[0] = 17;
    assert_eq!(Packet::parse(&followed).unwrap().bytes(), &followed[..packet.len()]);
    assert_eq!(Packet::parse(&packet[..packet.len() - 1]).err(), Some(PacketError::Truncated));
}

fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), len)
}

fn locator() -> impl Strategy<Value = Locator> {
    (0..3_u8, any::<bool>(), 1..=u32::MAX, any::<Option<u32>>(), any::<[u8; 16]>()).prop_map(
        |(traffic, preferred, lifetime, spi, address)| Locator {
            traffic,
            preferred,
            lifetime,
            spi: spi.map(Spi),
            address: Ipv6Addr::from(address),
        },
    )
}

fn parameter() -> impl Strategy<Value = Parameter> {
    let signature = || (any::<u16>(), bytes(1..100)).prop_map(|(algorithm, bytes)| Signature { algorithm, bytes });
    let lists = prop_oneof![
        vec(any::<u16>(), 1..6).prop_map(Parameter::HipCipher),
        vec(any::<u16>(), 1..6).prop_map(Parameter::TransportFormatList),
        vec(any::<u16>(), 1..6).prop_map(Parameter::EspTransform),
        vec(any::<u32>(), 1..6).prop_map(Parameter::Ack),
        bytes(1..9).prop_map(Parameter::DhGroupList),
        bytes(1..9).prop_map(Parameter::HitSuiteList),
        vec(locator(), 0..4).prop_map(Parameter::LocatorSet),
    ];
    let strings = prop_oneof![
        bytes(0..40).prop_map(Parameter::Encrypted),
        bytes(0..40).prop_map(Parameter::EchoRequestSigned),
        bytes(0..40).prop_map(Parameter::EchoResponseSigned),
        bytes(0..40).prop_map(Parameter::EchoRequestUnsigned),
        bytes(0..40).prop_map(Parameter::EchoResponseUnsigned),
        bytes(1..60).prop_map(Parameter::HipMac),
        bytes(1..60).prop_map(Parameter::HipMac2),
        signature().prop_map(Parameter::HipSignature),
        signature().prop_map(Parameter::HipSignature2),
        (30_000..60_000_u16, bytes(0..30)).prop_map(|(kind, contents)| Parameter::Unknown { kind, contents }),
    ];
    let structures = prop_oneof![
        (any::<u16>(), any::<u32>(), any::<u32>()).prop_map(|(keymat_index, old, new)| {
            Parameter::EspInfo(EspInfo { keymat_index, old_spi: Spi(old), new_spi: Spi(new) })
        }),
        any::<u64>().prop_map(Parameter::R1Counter),
        any::<u32>().prop_map(Parameter::Seq),
        (any::<u16>(), bytes(0..20))
            .prop_map(|(message, data)| Parameter::Notification(Notification { message, data })),
        (any::<u8>(), any::<u8>(), any::<u16>(), bytes(1..49)).prop_map(|(difficulty, lifetime, opaque, i)| {
            Parameter::Puzzle(Puzzle { difficulty, lifetime, opaque, i })
        }),
        (any::<u8>(), any::<u16>(), vec(any::<(u8, u8)>(), 1..49)).prop_map(|(difficulty, opaque, both)| {
            let (i, j) = both.into_iter().unzip();
            Parameter::Solution(Solution { difficulty, opaque, i, j })
        }),
        (any::<u8>(), bytes(0..97))
            .prop_map(|(group, public)| Parameter::DiffieHellman(DiffieHellman { group, public })),
        (any::<u16>(), bytes(0..97), 0..16_u8, bytes(0..20)).prop_map(|(algorithm, identity, domain_type, domain)| {
            Parameter::HostId(HostId { algorithm, identity, domain_type, domain })
        }),
    ];
    let address = || any::<[u8; 16]>().prop_map(Ipv6Addr::from);
    let registration = || (any::<u8>(), bytes(0..9)).prop_map(|(lifetime, types)| Registration { lifetime, types });
    let services = prop_oneof![
        (any::<u8>(), any::<u8>(), bytes(0..9)).prop_map(|(min, max, types)| Parameter::RegInfo(RegInfo {
            min,
            max,
            types
        })),
        registration().prop_map(Parameter::RegRequest),
        registration().prop_map(Parameter::RegResponse),
        (any::<u8>(), bytes(0..9)).prop_map(|(reason, types)| Parameter::RegFailed(RegFailed { reason, types })),
        address().prop_map(Parameter::From),
        vec(address(), 1..4).prop_map(Parameter::ViaRvs),
        bytes(1..60).prop_map(Parameter::RvsHmac),
        bytes(1..60).prop_map(Parameter::RelayHmac),
        any::<u32>().prop_map(Parameter::CandidatePriority),
    ];
    let place = || {
        let parts = (any::<u16>(), any::<u8>(), address());
        parts.prop_map(|(port, protocol, address)| TransportAddress { port, protocol, address })
    };
    let permission = (place(), place(), any::<u32>(), any::<u32>()).prop_map(|(relay, peer, outbound, inbound)| {
        let peer = TransportAddress { protocol: relay.protocol, ..peer };
        Parameter::PeerPermission(PeerPermission { relay, peer, outbound: Spi(outbound), inbound: Spi(inbound) })
    });
    let candidate = (1_u32.., place(), any::<u8>(), any::<u32>())
        .prop_map(|(lifetime, place, kind, priority)| Candidate { lifetime, place, kind, priority });
    let places = prop_oneof![
        permission,
        place().prop_map(Parameter::RegFrom),
        place().prop_map(Parameter::MappedAddress),
        place().prop_map(Parameter::RelayFrom),
        place().prop_map(Parameter::RelayTo),
        vec(candidate, 1..4).prop_map(Parameter::CandidateSet),
    ];
    prop_oneof![lists, strings, structures, services, places]
}

proptest! {
    #[test]
    fn parse_after_emit_is_the_identity(parameters in vec(parameter(), 0..8), a: [u8; 16], b: [u8; 16]) {
        let mut parameters = parameters;
        parameters.sort_by_key(Parameter::kind);
        parameters.dedup_by_key(|parameter| parameter.kind());
        let builder = Builder::new(PacketKind::I2, Hit(a), Hit(b));
        let bytes = parameters.iter().fold(builder, Builder::push).finish().unwrap();
        let packet = Packet::parse(&bytes).unwrap();
        prop_assert_eq!((packet.sender(), packet.receiver()), (Hit(a), Hit(b)));
        prop_assert!(packet.parameters().eq(&parameters));
    }

    /// A true packet with a few bytes changed gets further than random bytes would.
    #[test]
    fn whatever_parses_can_be_emitted_and_parsed_again(
        changes in vec(any::<(prop::sample::Index, u8)>(), 0..4),
        which: prop::sample::Index,
    ) {
        let packets = captured();
        let mut bytes = which.get(&packets).2.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(packet) = Packet::parse(&bytes) {
            for parameter in packet.parameters() {
                let mut emitted = Vec::new();
                parameter.emit(&mut emitted);
                let len = usize::from(u16::from_be_bytes([emitted[2], emitted[3]]));
                prop_assert_eq!(&Parameter::parse(parameter.kind(), &emitted[4..4 + len]).unwrap(), parameter);
            }
            let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let mut summed = bytes.clone();
            set_checksum(&mut summed, v4, v4);
            prop_assert!(Packet::parse(&summed).unwrap().checksum_is_right(v4, v4));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in bytes(0..400), number: u16) {
        let _ = Packet::parse(&bytes);
        for number in [65, 129, 193, 257, 321, 385, 449, 511, 513, 579, 641, 705, 715, 832, 2049, 4095, 61697, number] {
            let _ = Parameter::parse(number, &bytes);
        }
    }
}

/// Behind MAC and signature nothing protects an R1_COUNTER: whoever adds one could make all later R1s look old.
#[test]
fn an_r1_counter_behind_the_signature_is_refused() {
    let hits = ["2001:20::1", "2001:20::2"].map(|hit| hit.parse().unwrap());
    let signature = Parameter::HipSignature2(wire::hip::Signature { algorithm: 7, bytes: vec![1; 96] });
    let mut bytes = Builder::new(PacketKind::R1, hits[0], hits[1]).push(&signature).finish().unwrap();
    assert!(Packet::parse(&bytes).is_ok());
    assert!(wire::hip::append(&mut bytes, &Parameter::R1Counter(u64::MAX)));
    assert_eq!(Packet::parse(&bytes).err(), Some(wire::hip::PacketError::OutOfOrder(129)));
    // Where hosts out there put it, before the signature, it is taken.
    let mut bytes =
        Builder::new(PacketKind::R1, hits[0], hits[1]).push(&Parameter::HitSuiteList(vec![0x10])).finish().unwrap();
    assert!(wire::hip::append(&mut bytes, &Parameter::R1Counter(7)));
    assert_eq!(Packet::parse(&bytes).unwrap().r1_counter(), Some(&7));
}

/// RFC 8046 §4.1, §5.3: a locator of another type is passed over; if it is a preferred one, its host is to hear of that.
#[test]
fn locators_of_other_types_are_passed_over_and_known() {
    let known = Locator {
        traffic: 0,
        preferred: true,
        lifetime: 60,
        spi: Some(Spi(256)),
        address: Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped(),
    };
    let odd = |preferred: u8| [0, 9, 1, preferred, 0, 0, 0, 60, b'a', b'b', b'c', b'd'];
    let mut set = odd(1).to_vec();
    let mut one = Vec::new();
    Parameter::LocatorSet(vec![known]).emit(&mut one);
    set.extend_from_slice(&one[4..4 + 28]);
    set.extend_from_slice(&odd(0));
    let whole = Parameter::Unknown { kind: kind::LOCATOR_SET, contents: set };
    let packet = Builder::new(PacketKind::Update, Hit::NULL, Hit::NULL).push(&whole).finish().unwrap();
    let packet = Packet::parse(&packet).unwrap();
    assert_eq!(packet.locator_set(), Some(&vec![known]));
    assert_eq!(packet.unsupported_locators(), odd(1));
}

//! The parameters of HIP packets: RFC 7401 §5.2, RFC 7402 §5.1 (ESP), RFC 8046 §4 (LOCATOR_SET), RFC 8003 §4 (registration),
//! RFC 8004 §4.2 (rendezvous).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::Spi;

/// Parameter type numbers. The lowest bit says that a receiver that does not know the parameter must refuse the packet
/// (RFC 7401 §5.2.1).
pub mod kind {
    #![allow(missing_docs, reason = "each is the number of the parameter whose name it has")]
    pub const ESP_INFO: u16 = 65;
    pub const R1_COUNTER: u16 = 129;
    pub const LOCATOR_SET: u16 = 193;
    pub const PUZZLE: u16 = 257;
    pub const SOLUTION: u16 = 321;
    pub const SEQ: u16 = 385;
    pub const ACK: u16 = 449;
    pub const DH_GROUP_LIST: u16 = 511;
    pub const DIFFIE_HELLMAN: u16 = 513;
    pub const HIP_CIPHER: u16 = 579;
    pub const ENCRYPTED: u16 = 641;
    pub const HOST_ID: u16 = 705;
    pub const HIT_SUITE_LIST: u16 = 715;
    pub const NOTIFICATION: u16 = 832;
    pub const ECHO_REQUEST_SIGNED: u16 = 897;
    pub const REG_INFO: u16 = 930;
    pub const REG_REQUEST: u16 = 932;
    pub const REG_RESPONSE: u16 = 934;
    pub const REG_FAILED: u16 = 936;
    pub const REG_FROM: u16 = 950;
    pub const ECHO_RESPONSE_SIGNED: u16 = 961;
    pub const TRANSPORT_FORMAT_LIST: u16 = 2049;
    pub const ESP_TRANSFORM: u16 = 4095;
    pub const MAPPED_ADDRESS: u16 = 4660;
    pub const PEER_PERMISSION: u16 = 4680;
    pub const CANDIDATE_PRIORITY: u16 = 4700;
    pub const HIP_MAC: u16 = 61505;
    pub const HIP_MAC_2: u16 = 61569;
    pub const HIP_SIGNATURE_2: u16 = 61633;
    pub const HIP_SIGNATURE: u16 = 61697;
    pub const ECHO_RESPONSE_UNSIGNED: u16 = 63425;
    pub const ECHO_REQUEST_UNSIGNED: u16 = 63661;
    pub const RELAY_FROM: u16 = 63998;
    pub const RELAY_TO: u16 = 64002;
    pub const FROM: u16 = 65498;
    pub const RVS_HMAC: u16 = 65500;
    pub const VIA_RVS: u16 = 65502;
    pub const RELAY_HMAC: u16 = 65520;
}

/// One parameter of a HIP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of the parameters; the structs say what is inside")]
pub enum Parameter {
    EspInfo(EspInfo),
    /// The generation of the Responder's R1s (RFC 7401 §5.2.3).
    R1Counter(u64),
    LocatorSet(Vec<Locator>),
    /// A LOCATOR_SET of nothing but transport addresses (RFC 9028 §5.7).
    CandidateSet(Vec<Candidate>),
    Puzzle(Puzzle),
    Solution(Solution),
    /// The Update ID of an UPDATE that wants an ACK (RFC 7401 §5.2.16).
    Seq(u32),
    /// The Update IDs acknowledged (RFC 7401 §5.2.17); at least one.
    Ack(Vec<u32>),
    /// Diffie-Hellman group numbers, best first (RFC 7401 §5.2.6).
    DhGroupList(Vec<u8>),
    DiffieHellman(DiffieHellman),
    /// Cipher numbers, best first (RFC 7401 §5.2.8).
    HipCipher(Vec<u16>),
    /// IV and ciphertext as the cipher lays them out, without the reserved word (RFC 7401 §5.2.18).
    Encrypted(Vec<u8>),
    HostId(HostId),
    /// HIT suites as they are on the wire, the number in the four upper bits (RFC 7401 §5.2.10).
    HitSuiteList(Vec<u8>),
    Notification(Notification),
    EchoRequestSigned(Vec<u8>),
    RegInfo(RegInfo),
    RegRequest(Registration),
    RegResponse(Registration),
    RegFailed(RegFailed),
    /// Where a request to be registered has come from (RFC 9028 §5.6).
    RegFrom(TransportAddress),
    EchoResponseSigned(Vec<u8>),
    /// Numbers of transport format parameters, best first (RFC 7401 §5.2.11).
    TransportFormatList(Vec<u16>),
    /// ESP suite numbers, best first (RFC 7402 §5.1.2).
    EspTransform(Vec<u16>),
    /// Where a packet has come from (RFC 9028 §5.12).
    MappedAddress(TransportAddress),
    /// Whose ESP packets a relay is to pass on (RFC 9028 §5.13).
    PeerPermission(PeerPermission),
    /// Of the pair of addresses that a connectivity check goes by (RFC 9028 §5.14).
    CandidatePriority(u32),
    HipMac(Vec<u8>),
    HipMac2(Vec<u8>),
    HipSignature2(Signature),
    HipSignature(Signature),
    EchoResponseUnsigned(Vec<u8>),
    EchoRequestUnsigned(Vec<u8>),
    /// Where a packet has come from that a relay passes on (RFC 9028 §5.6).
    RelayFrom(TransportAddress),
    /// Where a relay is to pass a packet on to, or has passed it on to (RFC 9028 §5.6).
    RelayTo(TransportAddress),
    /// Where an I1 has come from that a rendezvous server passes on (RFC 8004 §4.2.2).
    From(Ipv6Addr),
    /// The rendezvous server's MAC over the I1 that it passes on (RFC 8004 §4.2.1).
    RvsHmac(Vec<u8>),
    /// The rendezvous servers that the I1 came by (RFC 8004 §4.2.3).
    ViaRvs(Vec<Ipv6Addr>),
    /// The MAC between a relay and its client over all before it (RFC 9028 §5.8).
    RelayHmac(Vec<u8>),
    /// A parameter that Sinnet does not read.
    Unknown {
        kind: u16,
        contents: Vec<u8>,
    },
}

/// An ESP security association of the sender: it is reached at `new_spi` (RFC 7402 §5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspInfo {
    /// Where in the KEYMAT the ESP keys begin, bytes.
    pub keymat_index: u16,
    /// The association that is replaced; zero for a new one.
    pub old_spi: Spi,
    /// The new one; zero to give up `old_spi`.
    pub new_spi: Spi,
}

/// An address at which the sender can be reached (RFC 8046 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locator {
    /// 0: signalling and data, 1: signalling only, 2: data only.
    pub traffic: u8,
    /// The preferred one of the set.
    pub preferred: bool,
    /// Seconds, at least 1.
    pub lifetime: u32,
    /// The association that this locator is bound to; absent in a locator of type 0.
    pub spi: Option<Spi>,
    /// IPv4 addresses are in their IPv4-mapped form.
    pub address: Ipv6Addr,
}

/// An address with a port, in use over UDP or another protocol (RFC 9028 §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportAddress {
    /// The port.
    pub port: u16,
    /// The IP protocol number: 17 is UDP.
    pub protocol: u8,
    /// IPv4 addresses are in their IPv4-mapped form.
    pub address: Ipv6Addr,
}

/// UDP's IP protocol number.
const UDP: u8 = 17;

impl TransportAddress {
    /// A place inside UDP.
    pub fn udp(place: SocketAddr) -> Self {
        let address = match place.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self { port: place.port(), protocol: UDP, address }
    }

    /// The place, if it is one inside UDP that somebody can be at.
    pub fn in_udp(&self) -> Option<SocketAddr> {
        (self.protocol == UDP && self.port != 0).then(|| (self.address.to_canonical(), self.port).into())
    }
}

/// A pair of security associations of a relay's client whose packets the relay passes on (RFC 9028 §5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerPermission {
    /// Where the peer's packets come in at the relay.
    pub relay: TransportAddress,
    /// The peer, as the relay sees it. Of the same protocol.
    pub peer: TransportAddress,
    /// The SPI of the client's packets.
    pub outbound: Spi,
    /// The SPI of the peer's.
    pub inbound: Spi,
}

/// A transport address at which the sender may be reached (RFC 9028 §5.7, locator type 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Seconds, at least 1.
    pub lifetime: u32,
    /// Where it is.
    pub place: TransportAddress,
    /// 0: of the host itself; 1: as a server has seen it; 2: as the peer has seen it; 3: at a relay.
    pub kind: u8,
    /// As in RFC 8445 §5.1.2.
    pub priority: u32,
}

/// The Responder's puzzle (RFC 7401 §5.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puzzle {
    /// K: how many bits have to be zero.
    pub difficulty: u8,
    /// The puzzle is good for 2^(lifetime-32) seconds.
    pub lifetime: u8,
    /// Copied into the solution.
    pub opaque: u16,
    /// #I, as long as the Responder's hash.
    pub i: Vec<u8>,
}

/// The Initiator's solution (RFC 7401 §5.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// K as in the puzzle.
    pub difficulty: u8,
    /// From the puzzle.
    pub opaque: u16,
    /// #I from the puzzle.
    pub i: Vec<u8>,
    /// #J, as long as #I.
    pub j: Vec<u8>,
}

/// A public Diffie-Hellman value (RFC 7401 §5.2.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffieHellman {
    /// The group's number.
    pub group: u8,
    /// The public value as the group encodes it.
    pub public: Vec<u8>,
}

/// A public key and, perhaps, a name for it (RFC 7401 §5.2.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostId {
    /// 5 RSA, 7 ECDSA.
    pub algorithm: u16,
    /// The Host Identity, in the encoding that the HIT is computed over.
    pub identity: Vec<u8>,
    /// 0 none, 1 FQDN, 2 NAI.
    pub domain_type: u8,
    /// At most 4095 bytes.
    pub domain: Vec<u8>,
}

/// News for the peer (RFC 7401 §5.2.19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Errors are below 16384.
    pub message: u16,
    /// More about it.
    pub data: Vec<u8>,
}

/// What a registrar offers (RFC 8003 §4.1). Lifetimes are as on the wire: see [`lifetime_seconds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegInfo {
    /// The shortest lifetime.
    pub min: u8,
    /// The longest.
    pub max: u8,
    /// The services: 1 is rendezvous.
    pub types: Vec<u8>,
}

/// What is asked of a registrar, or granted by it (RFC 8003 §4.2, §4.3). A lifetime of 0 ends a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// As on the wire: see [`lifetime_seconds`].
    pub lifetime: u8,
    /// The services: 1 is rendezvous.
    pub types: Vec<u8>,
}

/// What a registrar refuses (RFC 8003 §4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegFailed {
    /// 0: more credentials are needed; 1: there is no such service; 2: there is no room.
    pub reason: u8,
    /// The services.
    pub types: Vec<u8>,
}

/// Seconds of a lifetime of a registration, 2^((lifetime - 64) / 8) (RFC 8003 §4.1): 0.004 to 15,500,000; 0 is none. Rounded down.
pub fn lifetime_seconds(lifetime: u8) -> u64 {
    // 2^(n / 8) for n of 0 to 7, in 65536ths.
    const EIGHTHS: [u64; 8] = [65_536, 71_468, 77_936, 84_990, 92_682, 101_070, 110_218, 120_194];
    match lifetime.checked_sub(64) {
        Some(over) => (EIGHTHS[usize::from(over % 8)] << (over / 8)) >> 16,
        None => 0,
    }
}

/// A signature (RFC 7401 §5.2.14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The number of the algorithm, as in HOST_ID.
    pub algorithm: u16,
    /// Its output.
    pub bytes: Vec<u8>,
}

/// The contents of a parameter do not have the length or shape that its type asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter {kind} is malformed")]
pub struct ParameterError {
    /// The parameter's type number.
    pub kind: u16,
}

impl Parameter {
    /// The parameter's type number.
    pub fn kind(&self) -> u16 {
        match self {
            Self::EspInfo(_) => kind::ESP_INFO,
            Self::R1Counter(_) => kind::R1_COUNTER,
            Self::LocatorSet(_) | Self::CandidateSet(_) => kind::LOCATOR_SET,
            Self::Puzzle(_) => kind::PUZZLE,
            Self::Solution(_) => kind::SOLUTION,
            Self::Seq(_) => kind::SEQ,
            Self::Ack(_) => kind::ACK,
            Self::DhGroupList(_) => kind::DH_GROUP_LIST,
            Self::DiffieHellman(_) => kind::DIFFIE_HELLMAN,
            Self::HipCipher(_) => kind::HIP_CIPHER,
            Self::Encrypted(_) => kind::ENCRYPTED,
            Self::HostId(_) => kind::HOST_ID,
            Self::HitSuiteList(_) => kind::HIT_SUITE_LIST,
            Self::Notification(_) => kind::NOTIFICATION,
            Self::EchoRequestSigned(_) => kind::ECHO_REQUEST_SIGNED,
            Self::RegInfo(_) => kind::REG_INFO,
            Self::RegRequest(_) => kind::REG_REQUEST,
            Self::RegResponse(_) => kind::REG_RESPONSE,
            Self::RegFailed(_) => kind::REG_FAILED,
            Self::RegFrom(_) => kind::REG_FROM,
            Self::EchoResponseSigned(_) => kind::ECHO_RESPONSE_SIGNED,
            Self::TransportFormatList(_) => kind::TRANSPORT_FORMAT_LIST,
            Self::EspTransform(_) => kind::ESP_TRANSFORM,
            Self::MappedAddress(_) => kind::MAPPED_ADDRESS,
            Self::PeerPermission(_) => kind::PEER_PERMISSION,
            Self::CandidatePriority(_) => kind::CANDIDATE_PRIORITY,
            Self::HipMac(_) => kind::HIP_MAC,
            Self::HipMac2(_) => kind::HIP_MAC_2,
            Self::HipSignature2(_) => kind::HIP_SIGNATURE_2,
            Self::HipSignature(_) => kind::HIP_SIGNATURE,
            Self::EchoResponseUnsigned(_) => kind::ECHO_RESPONSE_UNSIGNED,
            Self::EchoRequestUnsigned(_) => kind::ECHO_REQUEST_UNSIGNED,
            Self::RelayFrom(_) => kind::RELAY_FROM,
            Self::RelayTo(_) => kind::RELAY_TO,
            Self::From(_) => kind::FROM,
            Self::RvsHmac(_) => kind::RVS_HMAC,
            Self::ViaRvs(_) => kind::VIA_RVS,
            Self::RelayHmac(_) => kind::RELAY_HMAC,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Reads the contents of a parameter of type `number`.
    ///
    /// # Errors
    /// The contents are too short, too long, or their inner lengths disagree.
    pub fn parse(number: u16, contents: &[u8]) -> Result<Self, ParameterError> {
        let bad = ParameterError { kind: number };
        let mut reader = Reader(contents);
        let parsed = (|| {
            let r = &mut reader;
            Some(match number {
                kind::ESP_INFO => {
                    r.u16()?;
                    Self::EspInfo(EspInfo { keymat_index: r.u16()?, old_spi: Spi(r.u32()?), new_spi: Spi(r.u32()?) })
                }
                kind::R1_COUNTER => {
                    r.u32()?;
                    Self::R1Counter(r.u64()?)
                }
                kind::LOCATOR_SET => locators(r)?,
                kind::PUZZLE => Self::Puzzle(Puzzle {
                    difficulty: r.u8()?,
                    lifetime: r.u8()?,
                    opaque: r.u16()?,
                    i: r.rest_nonempty()?,
                }),
                kind::SOLUTION => {
                    let difficulty = r.u8()?;
                    r.u8()?;
                    let opaque = r.u16()?;
                    let both = r.rest_nonempty()?;
                    if both.len() % 2 != 0 {
                        return None;
                    }
                    let (i, j) = both.split_at(both.len() / 2);
                    Self::Solution(Solution { difficulty, opaque, i: i.to_vec(), j: j.to_vec() })
                }
                kind::SEQ => Self::Seq(r.u32()?),
                kind::ACK => {
                    let mut ids = vec![r.u32()?];
                    while !r.0.is_empty() {
                        ids.push(r.u32()?);
                    }
                    Self::Ack(ids)
                }
                kind::DH_GROUP_LIST => Self::DhGroupList(r.rest_nonempty()?),
                kind::DIFFIE_HELLMAN => {
                    let group = r.u8()?;
                    let len = usize::from(r.u16()?);
                    Self::DiffieHellman(DiffieHellman { group, public: r.take(len)?.to_vec() })
                }
                kind::HIP_CIPHER => Self::HipCipher(numbers(r)?),
                kind::ENCRYPTED => {
                    r.u32()?;
                    Self::Encrypted(r.rest())
                }
                kind::HOST_ID => {
                    let len = usize::from(r.u16()?);
                    let domain = r.u16()?;
                    let algorithm = r.u16()?;
                    Self::HostId(HostId {
                        algorithm,
                        identity: r.take(len)?.to_vec(),
                        domain_type: (domain >> 12) as u8,
                        domain: r.take(usize::from(domain & 0x0fff))?.to_vec(),
                    })
                }
                kind::HIT_SUITE_LIST => Self::HitSuiteList(r.rest_nonempty()?),
                kind::NOTIFICATION => {
                    r.u16()?;
                    Self::Notification(Notification { message: r.u16()?, data: r.rest() })
                }
                kind::ECHO_REQUEST_SIGNED => Self::EchoRequestSigned(r.rest()),
                kind::REG_INFO => Self::RegInfo(RegInfo { min: r.u8()?, max: r.u8()?, types: r.rest() }),
                kind::REG_REQUEST => Self::RegRequest(Registration { lifetime: r.u8()?, types: r.rest() }),
                kind::REG_RESPONSE => Self::RegResponse(Registration { lifetime: r.u8()?, types: r.rest() }),
                kind::REG_FAILED => Self::RegFailed(RegFailed { reason: r.u8()?, types: r.rest() }),
                kind::REG_FROM => Self::RegFrom(r.place()?),
                kind::ECHO_RESPONSE_SIGNED => Self::EchoResponseSigned(r.rest()),
                kind::TRANSPORT_FORMAT_LIST => Self::TransportFormatList(numbers(r)?),
                kind::ESP_TRANSFORM => {
                    r.u16()?;
                    Self::EspTransform(numbers(r)?)
                }
                kind::MAPPED_ADDRESS => Self::MappedAddress(r.place()?),
                kind::PEER_PERMISSION => Self::PeerPermission(r.permission()?),
                kind::CANDIDATE_PRIORITY => Self::CandidatePriority(r.u32()?),
                kind::HIP_MAC => Self::HipMac(r.rest_nonempty()?),
                kind::HIP_MAC_2 => Self::HipMac2(r.rest_nonempty()?),
                kind::HIP_SIGNATURE_2 => Self::HipSignature2(signature(r)?),
                kind::HIP_SIGNATURE => Self::HipSignature(signature(r)?),
                kind::ECHO_RESPONSE_UNSIGNED => Self::EchoResponseUnsigned(r.rest()),
                kind::ECHO_REQUEST_UNSIGNED => Self::EchoRequestUnsigned(r.rest()),
                kind::RELAY_FROM => Self::RelayFrom(r.place()?),
                kind::RELAY_TO => Self::RelayTo(r.place()?),
                kind::FROM => Self::From(r.address()?),
                kind::RVS_HMAC => Self::RvsHmac(r.rest_nonempty()?),
                kind::VIA_RVS => {
                    let mut servers = vec![r.address()?];
                    while !r.0.is_empty() {
                        servers.push(r.address()?);
                    }
                    Self::ViaRvs(servers)
                }
                kind::RELAY_HMAC => Self::RelayHmac(r.rest_nonempty()?),
                _ => Self::Unknown { kind: number, contents: r.rest() },
            })
        })();
        match parsed {
            Some(parameter) if reader.0.is_empty() => Ok(parameter),
            _ => Err(bad),
        }
    }

    /// Appends the parameter with its type, length and padding (RFC 7401 §5.2.1). Lists and byte strings longer than a
    /// packet can hold make a packet that [`super::Builder::finish`] refuses.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.kind().to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        self.emit_contents(out);
        let len = out.len() - start - 4;
        out[start + 2..start + 4].copy_from_slice(&(len as u16).to_be_bytes());
        out.resize(start + padded_len(len), 0);
    }

    fn emit_contents(&self, out: &mut Vec<u8>) {
        match self {
            Self::EspInfo(info) => {
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&info.keymat_index.to_be_bytes());
                out.extend_from_slice(&info.old_spi.0.to_be_bytes());
                out.extend_from_slice(&info.new_spi.0.to_be_bytes());
            }
            Self::R1Counter(counter) => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&counter.to_be_bytes());
            }
            Self::LocatorSet(locators) => {
                for locator in locators {
                    let (kind, words) = if locator.spi.is_some() { (1, 5) } else { (0, 4) };
                    out.extend_from_slice(&[locator.traffic, kind, words, u8::from(locator.preferred)]);
                    out.extend_from_slice(&locator.lifetime.to_be_bytes());
                    if let Some(spi) = locator.spi {
                        out.extend_from_slice(&spi.0.to_be_bytes());
                    }
                    out.extend_from_slice(&locator.address.octets());
                }
            }
            Self::CandidateSet(candidates) => candidates.iter().for_each(|candidate| candidate.emit(out)),
            Self::Puzzle(puzzle) => {
                out.extend_from_slice(&[puzzle.difficulty, puzzle.lifetime]);
                out.extend_from_slice(&puzzle.opaque.to_be_bytes());
                out.extend_from_slice(&puzzle.i);
            }
            Self::Solution(solution) => {
                out.extend_from_slice(&[solution.difficulty, 0]);
                out.extend_from_slice(&solution.opaque.to_be_bytes());
                out.extend_from_slice(&solution.i);
                out.extend_from_slice(&solution.j);
            }
            Self::Seq(id) => out.extend_from_slice(&id.to_be_bytes()),
            Self::Ack(ids) => ids.iter().for_each(|id| out.extend_from_slice(&id.to_be_bytes())),
            Self::DiffieHellman(value) => {
                out.push(value.group);
                out.extend_from_slice(&(value.public.len() as u16).to_be_bytes());
                out.extend_from_slice(&value.public);
            }
            Self::HipCipher(numbers) | Self::TransportFormatList(numbers) => emit_numbers(numbers, out),
            Self::EspTransform(numbers) => {
                out.extend_from_slice(&[0, 0]);
                emit_numbers(numbers, out);
            }
            Self::Encrypted(bytes) => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(bytes);
            }
            Self::HostId(host) => {
                out.extend_from_slice(&(host.identity.len() as u16).to_be_bytes());
                let domain = u16::from(host.domain_type & 0x0f) << 12 | (host.domain.len() as u16 & 0x0fff);
                out.extend_from_slice(&domain.to_be_bytes());
                out.extend_from_slice(&host.algorithm.to_be_bytes());
                out.extend_from_slice(&host.identity);
                out.extend_from_slice(&host.domain);
            }
            Self::Notification(notification) => {
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&notification.message.to_be_bytes());
                out.extend_from_slice(&notification.data);
            }
            Self::RegInfo(info) => {
                out.extend_from_slice(&[info.min, info.max]);
                out.extend_from_slice(&info.types);
            }
            Self::RegRequest(registration) | Self::RegResponse(registration) => {
                out.push(registration.lifetime);
                out.extend_from_slice(&registration.types);
            }
            Self::RegFailed(failed) => {
                out.push(failed.reason);
                out.extend_from_slice(&failed.types);
            }
            Self::RegFrom(place) | Self::MappedAddress(place) | Self::RelayFrom(place) | Self::RelayTo(place) => {
                out.extend_from_slice(&place.port.to_be_bytes());
                out.extend_from_slice(&[place.protocol, 0]);
                out.extend_from_slice(&place.address.octets());
            }
            Self::PeerPermission(PeerPermission { relay, peer, outbound, inbound }) => {
                out.extend_from_slice(&relay.port.to_be_bytes());
                out.extend_from_slice(&peer.port.to_be_bytes());
                out.extend_from_slice(&[relay.protocol, 0, 0, 0]);
                out.extend_from_slice(&relay.address.octets());
                out.extend_from_slice(&peer.address.octets());
                out.extend_from_slice(&outbound.0.to_be_bytes());
                out.extend_from_slice(&inbound.0.to_be_bytes());
            }
            Self::CandidatePriority(priority) => out.extend_from_slice(&priority.to_be_bytes()),
            Self::From(address) => out.extend_from_slice(&address.octets()),
            Self::ViaRvs(servers) => servers.iter().for_each(|server| out.extend_from_slice(&server.octets())),
            Self::HipSignature2(signature) | Self::HipSignature(signature) => {
                out.extend_from_slice(&signature.algorithm.to_be_bytes());
                out.extend_from_slice(&signature.bytes);
            }
            Self::DhGroupList(bytes)
            | Self::HitSuiteList(bytes)
            | Self::EchoRequestSigned(bytes)
            | Self::EchoResponseSigned(bytes)
            | Self::HipMac(bytes)
            | Self::HipMac2(bytes)
            | Self::EchoResponseUnsigned(bytes)
            | Self::EchoRequestUnsigned(bytes)
            | Self::RvsHmac(bytes)
            | Self::RelayHmac(bytes)
            | Self::Unknown { contents: bytes, .. } => out.extend_from_slice(bytes),
        }
    }
}

/// The whole length of a parameter with `len` bytes of contents: header and padding to a multiple of 8 (RFC 7401
/// §5.2.1: 11 + Length - (Length + 3) % 8).
pub(super) fn padded_len(len: usize) -> usize {
    (len + 4).next_multiple_of(8)
}

fn locators(r: &mut Reader<'_>) -> Option<Parameter> {
    let (mut set, mut candidates) = (Vec::new(), Vec::new());
    while !r.0.is_empty() {
        let traffic = r.u8()?;
        let kind = r.u8()?;
        let words = usize::from(r.u8()?);
        let preferred = r.u8()? & 1 != 0;
        let lifetime = r.u32()?;
        let mut body = Reader(r.take(words * 4)?);
        let spi = match kind {
            0 => None,
            1 => Some(Spi(body.u32()?)),
            2 => {
                candidates.extend(Candidate::parse(&mut body, lifetime)?);
                continue;
            }
            // RFC 8046 §4.1: a locator of a type that is not known is passed over.
            _ => continue,
        };
        let address = body.address()?;
        if !body.0.is_empty() {
            return None;
        }
        // RFC 8046 §4: none is good for no time at all.
        if lifetime > 0 {
            set.push(Locator { traffic, preferred, lifetime, spi, address });
        }
    }
    // Where there are both, they are the same places.
    let is_of_candidates = set.is_empty() && !candidates.is_empty();
    Some(if is_of_candidates { Parameter::CandidateSet(candidates) } else { Parameter::LocatorSet(set) })
}

impl Candidate {
    /// What follows the head of a locator of type 2; nothing where it is good for no time at all.
    fn parse(body: &mut Reader<'_>, lifetime: u32) -> Option<Option<Self>> {
        let (port, protocol, kind, priority) = (body.u16()?, body.u8()?, body.u8()?, body.u32()?);
        // The SPI is another parameter's matter.
        body.u32()?;
        let place = TransportAddress { port, protocol, address: body.address()? };
        body.0.is_empty().then_some((lifetime > 0).then_some(Self { lifetime, place, kind, priority }))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 2, 7, 0]);
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        out.extend_from_slice(&self.place.port.to_be_bytes());
        out.extend_from_slice(&[self.place.protocol, self.kind]);
        out.extend_from_slice(&self.priority.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.place.address.octets());
    }
}

/// RFC 8046 §4: type 0 is an address, 1 an SPI and an address.
const LAST_LOCATOR_TYPE: u8 = 1;
/// Bytes of a locator before its address.
const LOCATOR_HEAD: usize = 8;

/// The preferred ones of other types.
pub(super) fn unsupported_locators(mut set: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    while let Some(&[_, kind, words, flags, ..]) = set.first_chunk::<LOCATOR_HEAD>() {
        let Some((one, rest)) = set.split_at_checked(LOCATOR_HEAD + 4 * usize::from(words)) else { break };
        if kind > LAST_LOCATOR_TYPE && flags & 1 != 0 {
            found.extend_from_slice(one);
        }
        set = rest;
    }
    found
}

fn numbers(r: &mut Reader<'_>) -> Option<Vec<u16>> {
    let mut list = vec![r.u16()?];
    while !r.0.is_empty() {
        list.push(r.u16()?);
    }
    Some(list)
}

fn emit_numbers(numbers: &[u16], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
}

fn signature(r: &mut Reader<'_>) -> Option<Signature> {
    Some(Signature { algorithm: r.u16()?, bytes: r.rest_nonempty()? })
}

/// Big-endian numbers off the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Option<Ipv6Addr> {
        self.array::<16>().map(Ipv6Addr::from)
    }

    fn permission(&mut self) -> Option<PeerPermission> {
        let (relay, peer, protocol) = (self.u16()?, self.u16()?, self.u8()?);
        self.take(3)?;
        let relay = TransportAddress { port: relay, protocol, address: self.address()? };
        let peer = TransportAddress { port: peer, protocol, address: self.address()? };
        Some(PeerPermission { relay, peer, outbound: Spi(self.u32()?), inbound: Spi(self.u32()?) })
    }

    fn place(&mut self) -> Option<TransportAddress> {
        let (port, protocol) = (self.u16()?, self.u8()?);
        self.u8()?;
        Some(TransportAddress { port, protocol, address: self.address()? })
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0).to_vec()
    }

    fn rest_nonempty(&mut self) -> Option<Vec<u8>> {
        if self.0.is_empty() { None } else { Some(self.rest()) }
    }
}

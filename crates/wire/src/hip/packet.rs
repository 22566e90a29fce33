//! The checked view of a HIP packet, and the bytes that its MACs and signatures cover.

use std::net::{IpAddr, Ipv6Addr};

use super::parameter::{Parameter, ParameterError, kind, padded_len};
use super::{
    Candidate, DiffieHellman, EspInfo, HEADER_LEN, HostId, Locator, MAX_LEN, Notification, PeerPermission, Puzzle,
    RegInfo, Registration, Signature, Solution, TransportAddress, builder,
};
use crate::Hit;

/// What a packet is for (RFC 7401 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the RFC")]
pub enum PacketKind {
    I1 = 1,
    R1 = 2,
    I2 = 3,
    R2 = 4,
    Update = 16,
    Notify = 17,
    Close = 18,
    CloseAck = 19,
}

/// Why bytes are no HIP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
#[non_exhaustive]
pub enum PacketError {
    #[error("the packet is shorter than its header or its length field says")]
    Truncated,
    #[error("bytes follow the packet's end")]
    TrailingBytes,
    #[error("the fixed bits are not those of HIP version 2")]
    NotHip2,
    #[error("packet type {0} is not known")]
    UnknownKind(u8),
    #[error("parameter {0} comes out of order")]
    OutOfOrder(u16),
    #[error("parameter {0} occurs twice")]
    Duplicate(u16),
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

/// A HIP packet whose header and parameters have been checked: lengths, order, and the shape of every parameter that
/// is known. Nothing about checksum, MAC or signature is checked yet.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    kind: PacketKind,
    /// Each with the place in `bytes` where it begins.
    parameters: Vec<(usize, Parameter)>,
}

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $variant:ident -> $type:ty),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> Option<&$type> {
            self.parameters.iter().find_map(|(_, parameter)| match parameter {
                Parameter::$variant(value) => Some(value),
                _ => None,
            })
        })*
    };
}

/// What is in the header where nothing follows the packet.
const NO_NEXT_HEADER: u8 = 59;

/// The HITs of a HIP packet's sender and receiver, whatever else is in it (RFC 7401 §5.1).
pub fn hits(bytes: &[u8]) -> Option<(Hit, Hit)> {
    let header = bytes.first_chunk::<HEADER_LEN>()?;
    Some((hit_at(header, 8), hit_at(header, 24)))
}

impl<'a> Packet<'a> {
    /// Checks `bytes`, which have to begin with a HIP packet. What follows it is another header's (RFC 7401 §5.1: ignored), unless it
    /// says that none does.
    ///
    /// # Errors
    /// What is wrong with the first thing that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let header = bytes.first_chunk::<HEADER_LEN>().ok_or(PacketError::Truncated)?;
        let len = (usize::from(header[1]) + 1) * 8;
        if len < HEADER_LEN || bytes.len() < len {
            return Err(PacketError::Truncated);
        }
        let bytes = match bytes.split_at_checked(len) {
            Some((packet, rest)) if rest.is_empty() || header[0] != NO_NEXT_HEADER => packet,
            _ => return Err(PacketError::TrailingBytes),
        };
        // RFC 7401 §5.1: version 2, and the two bits fixed for SHIM6; the three reserved bits are ignored.
        if header[2] & 0x80 != 0 || header[3] & 0xf1 != 0x21 {
            return Err(PacketError::NotHip2);
        }
        let kind = match header[2] {
            1 => PacketKind::I1,
            2 => PacketKind::R1,
            3 => PacketKind::I2,
            4 => PacketKind::R2,
            16 => PacketKind::Update,
            17 => PacketKind::Notify,
            18 => PacketKind::Close,
            19 => PacketKind::CloseAck,
            other => return Err(PacketError::UnknownKind(other)),
        };
        Ok(Self { bytes, kind, parameters: parameters(bytes)? })
    }

    /// The whole packet.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What the packet is for.
    pub fn kind(&self) -> PacketKind {
        self.kind
    }

    /// The sender's HIT.
    pub fn sender(&self) -> Hit {
        hit_at(self.bytes, 8)
    }

    /// The receiver's HIT; null in an opportunistic I1.
    pub fn receiver(&self) -> Hit {
        hit_at(self.bytes, 24)
    }

    /// The controls field (RFC 7401 §5.1.2).
    pub fn controls(&self) -> u16 {
        u16_at(self.bytes, 6)
    }

    /// Whether the sender says that its identity is anonymous (RFC 7401 §5.1.2, the A bit).
    pub fn is_anonymous(&self) -> bool {
        self.controls() & 1 == 1
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, 4)
    }

    /// True if the checksum is right for a packet between these two addresses (RFC 7401 §5.1.1).
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr) -> bool {
        builder::checksum(self.bytes, source, destination) == self.checksum()
    }

    /// The parameters in the order of the packet.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().map(|(_, parameter)| parameter)
    }

    /// The first parameter that is critical and not known: the packet must not be acted upon (RFC 7401 §5.2.1).
    pub fn unknown_critical(&self) -> Option<u16> {
        self.parameters().find_map(|parameter| match parameter {
            Parameter::Unknown { kind, .. } if kind & 1 == 1 => Some(*kind),
            _ => None,
        })
    }

    /// The preferred locators of types that are not known, as they stand in LOCATOR_SET. The others of the set count.
    pub fn unsupported_locators(&self) -> Vec<u8> {
        let set = self.parameters.iter().find(|(_, parameter)| parameter.kind() == kind::LOCATOR_SET);
        let Some((at, _)) = set else { return Vec::new() };
        let len = usize::from(u16_at(self.bytes, at + 2));
        super::parameter::unsupported_locators(self.bytes.get(at + 4..at + 4 + len).unwrap_or_default())
    }

    accessors! {
        /// ESP_INFO.
        esp_info: EspInfo -> EspInfo,
        /// R1_COUNTER.
        r1_counter: R1Counter -> u64,
        /// LOCATOR_SET.
        locator_set: LocatorSet -> Vec<Locator>,
        /// PUZZLE.
        puzzle: Puzzle -> Puzzle,
        /// SOLUTION.
        solution: Solution -> Solution,
        /// SEQ.
        seq: Seq -> u32,
        /// ACK.
        ack: Ack -> Vec<u32>,
        /// DH_GROUP_LIST.
        dh_group_list: DhGroupList -> Vec<u8>,
        /// DIFFIE_HELLMAN.
        diffie_hellman: DiffieHellman -> DiffieHellman,
        /// HIP_CIPHER.
        hip_cipher: HipCipher -> Vec<u16>,
        /// ENCRYPTED.
        encrypted: Encrypted -> Vec<u8>,
        /// HOST_ID.
        host_id: HostId -> HostId,
        /// HIT_SUITE_LIST.
        hit_suite_list: HitSuiteList -> Vec<u8>,
        /// NOTIFICATION, the first one.
        notification: Notification -> Notification,
        /// ECHO_REQUEST_SIGNED.
        echo_request_signed: EchoRequestSigned -> Vec<u8>,
        /// REG_INFO.
        reg_info: RegInfo -> RegInfo,
        /// REG_REQUEST.
        reg_request: RegRequest -> Registration,
        /// REG_RESPONSE.
        reg_response: RegResponse -> Registration,
        /// ECHO_RESPONSE_SIGNED.
        echo_response_signed: EchoResponseSigned -> Vec<u8>,
        /// TRANSPORT_FORMAT_LIST.
        transport_format_list: TransportFormatList -> Vec<u16>,
        /// ESP_TRANSFORM.
        esp_transform: EspTransform -> Vec<u16>,
        /// HIP_MAC.
        hip_mac: HipMac -> Vec<u8>,
        /// HIP_MAC_2.
        hip_mac_2: HipMac2 -> Vec<u8>,
        /// HIP_SIGNATURE_2.
        hip_signature_2: HipSignature2 -> Signature,
        /// HIP_SIGNATURE.
        hip_signature: HipSignature -> Signature,
        /// FROM, the first one.
        from: From -> Ipv6Addr,
        /// RVS_HMAC.
        rvs_hmac: RvsHmac -> Vec<u8>,
        /// VIA_RVS.
        via_rvs: ViaRvs -> Vec<Ipv6Addr>,
        /// A LOCATOR_SET of candidates.
        candidates: CandidateSet -> Vec<Candidate>,
        /// REG_FROM.
        reg_from: RegFrom -> TransportAddress,
        /// MAPPED_ADDRESS.
        mapped_address: MappedAddress -> TransportAddress,
        /// PEER_PERMISSION.
        peer_permission: PeerPermission -> PeerPermission,
        /// CANDIDATE_PRIORITY.
        candidate_priority: CandidatePriority -> u32,
        /// RELAY_FROM.
        relay_from: RelayFrom -> TransportAddress,
        /// RELAY_TO.
        relay_to: RelayTo -> TransportAddress,
        /// RELAY_HMAC.
        relay_hmac: RelayHmac -> Vec<u8>,
    }

    /// All ESP_INFOs, of which an UPDATE may have several (RFC 8047 §4.2).
    pub fn esp_infos(&self) -> impl Iterator<Item = &EspInfo> {
        self.parameters().filter_map(|parameter| match parameter {
            Parameter::EspInfo(info) => Some(info),
            _ => None,
        })
    }

    /// What RVS_HMAC covers: everything before it (RFC 8004 §4.2.1).
    pub fn covered_by_rvs_hmac(&self) -> Option<Vec<u8>> {
        self.before(kind::RVS_HMAC).map(builder::cover)
    }

    /// What RELAY_HMAC covers: everything before it (RFC 9028 §5.8).
    pub fn covered_by_relay_hmac(&self) -> Option<Vec<u8>> {
        self.before(kind::RELAY_HMAC).map(builder::cover)
    }

    /// What HIP_MAC covers: everything before it, the checksum zero and the length that of what is covered (RFC 7401
    /// §6.4.1). Nothing where the packet has no HIP_MAC.
    pub fn covered_by_mac(&self) -> Option<Vec<u8>> {
        self.before(kind::HIP_MAC).map(builder::cover)
    }

    /// What HIP_MAC_2 covers: everything before it, and the Responder's HOST_ID (RFC 7401 §6.4.2).
    pub fn covered_by_mac_2(&self, host_id: &HostId) -> Option<Vec<u8>> {
        let mut bytes = self.before(kind::HIP_MAC_2)?;
        Parameter::HostId(host_id.clone()).emit(&mut bytes);
        Some(builder::cover(bytes))
    }

    /// What HIP_SIGNATURE covers: everything before it (RFC 7401 §6.4.1).
    pub fn covered_by_signature(&self) -> Option<Vec<u8>> {
        self.before(kind::HIP_SIGNATURE).map(builder::cover)
    }

    /// What HIP_SIGNATURE_2 covers: everything before it, with the receiver's HIT and the puzzle's opaque and random
    /// parts zero, so that one signature serves all Initiators (RFC 7401 §5.2.15).
    pub fn covered_by_signature_2(&self) -> Option<Vec<u8>> {
        let mut bytes = self.before(kind::HIP_SIGNATURE_2)?;
        builder::set_receiver(&mut bytes, Hit::NULL);
        let puzzle = self.parameters.iter().find(|(_, parameter)| parameter.kind() == kind::PUZZLE);
        if let Some((at, Parameter::Puzzle(puzzle))) = puzzle {
            // Type, length, K and lifetime stay.
            bytes.get_mut(at + 6..at + 8 + puzzle.i.len())?.fill(0);
        }
        Some(builder::cover(bytes))
    }

    fn before(&self, number: u16) -> Option<Vec<u8>> {
        let (at, _) = self.parameters.iter().find(|(_, parameter)| parameter.kind() == number)?;
        self.bytes.get(..*at).map(<[u8]>::to_vec)
    }
}

fn parameters(bytes: &[u8]) -> Result<Vec<(usize, Parameter)>, PacketError> {
    debug_assert!(bytes.len() <= MAX_LEN);
    let mut found = Vec::new();
    let mut at = HEADER_LEN;
    let mut last = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).ok_or(PacketError::Truncated)?;
        let head = rest.first_chunk::<4>().ok_or(PacketError::Truncated)?;
        let number = u16::from_be_bytes([head[0], head[1]]);
        let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let whole = padded_len(len);
        let contents = rest.get(..whole).and_then(|_| rest.get(4..4 + len)).ok_or(PacketError::Truncated)?;
        // RFC 7401 §5.2.1: increasing types, except that transport formats are in the order of preference. Hosts out
        // there put R1_COUNTER at the wrong place; nothing is won by refusing it where MAC and signature cover it.
        let transport = |n: u16| (2048..=4095).contains(&n);
        let misplaced = number == kind::R1_COUNTER && last < kind::HIP_MAC;
        if number < last && !(transport(number) && transport(last)) && !misplaced {
            return Err(PacketError::OutOfOrder(number));
        }
        let parameter = Parameter::parse(number, contents)?;
        let is_unknown = matches!(parameter, Parameter::Unknown { .. });
        let several_paths = number == kind::ESP_INFO && bytes.get(2) == Some(&(PacketKind::Update as u8));
        if !repeatable(number)
            && !several_paths
            && !is_unknown
            && found.iter().any(|(_, other): &(usize, Parameter)| other.kind() == number)
        {
            return Err(PacketError::Duplicate(number));
        }
        found.push((at, parameter));
        last = last.max(number);
        at += whole;
    }
    Ok(found)
}

/// Known parameters that a packet may have several of; two of any other would let one be checked and another be used.
fn repeatable(number: u16) -> bool {
    const CERT: u16 = 768;
    matches!(
        number,
        CERT | kind::NOTIFICATION
            | kind::ECHO_REQUEST_SIGNED
            | kind::ECHO_RESPONSE_SIGNED
            | kind::ECHO_REQUEST_UNSIGNED
            | kind::ECHO_RESPONSE_UNSIGNED
            | kind::REG_FAILED
            | kind::FROM
    )
}

fn hit_at(bytes: &[u8], at: usize) -> Hit {
    bytes.get(at..at + 16).and_then(|slice| slice.try_into().ok()).map_or(Hit::NULL, Hit)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|slice| slice.try_into().ok()).map_or(0, u16::from_be_bytes)
}

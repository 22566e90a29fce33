//! The content of HIP packets as a grammar: parameters of the right shape with values that are near what matters, or far.

use arbitrary::Arbitrary;
use std::net::Ipv6Addr;
use wire::Spi;
use wire::hip::{DiffieHellman, EspInfo, HostId, Locator, Notification, Parameter, Puzzle, Signature, Solution};

/// A number beside one that both hosts know.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Near {
    /// That one.
    Same,
    /// So much greater.
    Ahead(u8),
    /// So much less.
    Back(u8),
    /// Any other.
    Any(u32),
}

impl Near {
    pub fn of(self, known: u32) -> u32 {
        match self {
            Self::Same => known,
            Self::Ahead(by) => known.wrapping_add(by.into()),
            Self::Back(by) => known.wrapping_sub(by.into()),
            Self::Any(number) => number,
        }
    }
}

/// What the last packets have told, for parameters that refer to it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The next Update ID of who speaks.
    pub seq: u32,
    /// The last of who listens.
    pub theirs: u32,
    /// What who listens has asked to be echoed.
    pub echo: Vec<u8>,
    /// SPIs of both.
    pub spis: Vec<Spi>,
    /// Where unused KEYMAT begins, bytes.
    pub keymat: u16,
    /// A Diffie-Hellman value and its group.
    pub public: (u8, Vec<u8>),
    /// The identity of who speaks.
    pub host_id: Option<HostId>,
    /// Bytes of #I.
    pub rhash_len: usize,
}

/// An address that means something in the network of the targets, or does not.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Place {
    /// 10.n.0.h.
    Known(u8, u8),
    /// Any.
    Any([u8; 16]),
}

impl Place {
    fn address(self) -> Ipv6Addr {
        match self {
            Self::Known(net, host) => std::net::Ipv4Addr::new(10, net % 4, 0, host % 4).to_ipv6_mapped(),
            Self::Any(bytes) => bytes.into(),
        }
    }
}

/// One parameter.
#[derive(Arbitrary, Clone, Debug)]
pub enum Part {
    EspInfo { index: Near, old: Option<u8>, new: Option<u8>, fresh: u32 },
    R1Counter(u64),
    LocatorSet(Vec<(Place, u8, Option<u8>, u32)>),
    Puzzle { difficulty: u8, lifetime: u8, opaque: u16, i: Option<Vec<u8>> },
    Solution { difficulty: u8, opaque: u16, i: Vec<u8> },
    Seq(Near),
    Ack(Near, Vec<Near>),
    DhGroupList(Vec<u8>),
    DiffieHellman { group: Option<u8>, public: Option<Vec<u8>> },
    HipCipher(Vec<u16>),
    Encrypted(Vec<u8>),
    HostId { algorithm: Option<u16>, identity: Option<Vec<u8>>, domain: Vec<u8> },
    HitSuiteList(Vec<u8>),
    Notification(u16, Vec<u8>),
    EchoRequestSigned(Vec<u8>),
    EchoResponseSigned(Option<Vec<u8>>),
    TransportFormatList(Vec<u16>),
    EspTransform(Vec<u16>),
    HipSignature(Vec<u8>),
    EchoRequestUnsigned(Vec<u8>),
    Unknown(u16, Vec<u8>),
}

fn cut<T>(mut list: Vec<T>, most: usize) -> Vec<T> {
    list.truncate(most);
    list
}

impl Part {
    /// The parameter, with what it refers to filled in.
    pub fn parameter(self, told: &Told) -> Parameter {
        let spi = |choice: Option<u8>| match choice {
            Some(index) => *told.spis.get(usize::from(index) % told.spis.len().max(1)).unwrap_or(&Spi(0)),
            None => Spi(0),
        };
        match self {
            Self::EspInfo { index, old, new, fresh } => Parameter::EspInfo(EspInfo {
                keymat_index: index.of(told.keymat.into()) as u16,
                old_spi: spi(old),
                new_spi: if new.is_some() { spi(new) } else { Spi(fresh) },
            }),
            Self::R1Counter(counter) => Parameter::R1Counter(counter),
            Self::LocatorSet(locators) => Parameter::LocatorSet(
                cut(locators, 40)
                    .into_iter()
                    .map(|(place, flags, bound, lifetime)| Locator {
                        traffic: flags % 4,
                        preferred: flags & 4 != 0,
                        lifetime,
                        spi: bound.map(|index| spi(Some(index))),
                        address: place.address(),
                    })
                    .collect(),
            ),
            Self::Puzzle { difficulty, lifetime, opaque, i } => Parameter::Puzzle(Puzzle {
                difficulty,
                lifetime,
                opaque,
                i: i.map_or_else(
                    || vec![0; told.rhash_len.max(1)],
                    |i| if i.is_empty() { vec![1] } else { cut(i, 200) },
                ),
            }),
            Self::Solution { difficulty, opaque, i } => {
                let i = if i.is_empty() { vec![1] } else { cut(i, 200) };
                Parameter::Solution(Solution { difficulty, opaque, j: i.clone(), i })
            }
            Self::Seq(near) => Parameter::Seq(near.of(told.seq)),
            Self::Ack(first, more) => {
                Parameter::Ack(std::iter::once(first).chain(cut(more, 100)).map(|near| near.of(told.theirs)).collect())
            }
            Self::DhGroupList(list) => Parameter::DhGroupList(if list.is_empty() { vec![7] } else { cut(list, 100) }),
            Self::DiffieHellman { group, public } => Parameter::DiffieHellman(DiffieHellman {
                group: group.unwrap_or(told.public.0),
                public: public.map_or_else(|| told.public.1.clone(), |public| cut(public, 600)),
            }),
            Self::HipCipher(list) => Parameter::HipCipher(cut(list, 50)),
            Self::Encrypted(bytes) => Parameter::Encrypted(cut(bytes, 600)),
            Self::HostId { algorithm, identity, domain } => {
                let own = told.host_id.clone();
                let (own_algorithm, own_identity) = own.map_or((7, Vec::new()), |own| (own.algorithm, own.identity));
                Parameter::HostId(HostId {
                    algorithm: algorithm.unwrap_or(own_algorithm),
                    identity: identity.map_or(own_identity, |identity| cut(identity, 600)),
                    domain_type: domain.first().copied().unwrap_or(0) % 16,
                    domain: cut(domain, 200),
                })
            }
            Self::HitSuiteList(list) => {
                Parameter::HitSuiteList(if list.is_empty() { vec![0x20] } else { cut(list, 50) })
            }
            Self::Notification(message, data) => {
                Parameter::Notification(Notification { message, data: cut(data, 600) })
            }
            Self::EchoRequestSigned(echo) => Parameter::EchoRequestSigned(cut(echo, 600)),
            Self::EchoResponseSigned(echo) => {
                Parameter::EchoResponseSigned(echo.map_or_else(|| told.echo.clone(), |echo| cut(echo, 600)))
            }
            Self::TransportFormatList(list) => Parameter::TransportFormatList(cut(list, 50)),
            Self::EspTransform(list) => Parameter::EspTransform(cut(list, 50)),
            Self::HipSignature(bytes) => Parameter::HipSignature(Signature { algorithm: 7, bytes: cut(bytes, 200) }),
            Self::EchoRequestUnsigned(echo) => Parameter::EchoRequestUnsigned(cut(echo, 600)),
            Self::Unknown(kind, contents) => {
                // What is known would be read as something else than what was meant.
                let contents = cut(contents, 600);
                Parameter::parse(kind, &contents).unwrap_or(Parameter::Unknown { kind: kind | 0x8000, contents })
            }
        }
    }
}

/// A change of the parameters that an honest packet would have.
#[derive(Arbitrary, Clone, Debug)]
pub enum Edit {
    /// The parameter at this place is left out.
    Remove(u8),
    /// This one is put in the place of one of the same type.
    Replace(Part),
    /// This one comes in addition.
    Insert(Part),
}

/// The parameters after the edits, in the order in which packets have to have them. At most eight edits.
pub fn edited(mut parameters: Vec<Parameter>, edits: &[Edit], told: &Told) -> Vec<Parameter> {
    for edit in edits.iter().take(8) {
        match edit.clone() {
            Edit::Remove(at) if !parameters.is_empty() => drop(parameters.remove(usize::from(at) % parameters.len())),
            Edit::Remove(_) => {}
            Edit::Replace(part) => {
                let new = part.parameter(told);
                parameters.retain(|old| old.kind() != new.kind());
                parameters.push(new);
            }
            Edit::Insert(part) => parameters.push(part.parameter(told)),
        }
    }
    parameters.sort_by_key(Parameter::kind);
    parameters
}

//! The HIP record of the DNS (RFC 8005, type 55): the identity of a host, and the names of its rendezvous servers. The library
//! has no such record, so its data are read and written here; names within it are the library's.

use data_encoding::{BASE64, HEXUPPER};
use hickory_proto::rr::{Name, RecordType};
use hickory_proto::serialize::binary::{BinDecodable as _, BinDecoder, BinEncodable as _};
use hip::identity::{IdentityError, PublicIdentity};
use wire::Hit;

/// The record's type (RFC 8005 §5).
pub const TYPE: RecordType = RecordType::Unknown(55);
/// So many rendezvous servers of a record are read: whoever has more is found by the first ones.
const MOST_SERVERS: usize = 8;

/// What a HIP record says, without having been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HipRecord {
    /// The HIT that the record tells.
    pub hit: Hit,
    /// The number of the key's algorithm: 2 is RSA, 3 ECDSA (RFC 8005 §5.2).
    pub algorithm: u8,
    /// The public key, in the format that the algorithm implies (RFC 8005 §5.5).
    pub key: Vec<u8>,
    /// Rendezvous servers in order of preference (RFC 8005 §5.6), at most 8.
    pub servers: Vec<Name>,
}

/// Why a record is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Its data are not what RFC 8005 §5 says.
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    /// An algorithm that we do not have.
    #[error("its key is of algorithm {0}, which Sinnet does not have: 2 is RSA, 3 is ECDSA")]
    UnknownAlgorithm(u8),
    /// No key.
    #[error("its key is none: {0}")]
    BadKey(IdentityError),
    /// The HIT is another key's.
    #[error("it tells the HIT {told}, but its key has {is}: it is forged, or made wrongly")]
    WrongHit {
        /// What the record says.
        told: Hit,
        /// What follows from its key.
        is: Hit,
    },
}

impl HipRecord {
    /// The record of an identity; nothing for a kind of key that the DNS has no number for.
    pub fn of(identity: &PublicIdentity, servers: Vec<Name>) -> Option<Self> {
        let (algorithm, key) = identity.to_dns()?;
        Some(Self { hit: identity.hit(), algorithm, key: key.to_vec(), servers })
    }

    /// Reads the data of a record.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn parse(data: &[u8]) -> Result<Self, RecordError> {
        // RFC 8005 §5: HIT length, PK algorithm, PK length; HIT, public key, rendezvous servers.
        let ([hit_length, algorithm, high, low], rest) =
            data.split_first_chunk().ok_or(RecordError::Malformed("it is cut off"))?;
        if usize::from(*hit_length) != Hit::NULL.0.len() {
            return Err(RecordError::Malformed("its HIT does not have 16 octets"));
        }
        let (hit, rest) = rest.split_first_chunk().ok_or(RecordError::Malformed("its HIT is cut off"))?;
        let key_length = u16::from_be_bytes([*high, *low]).into();
        let (key, rest) = rest.split_at_checked(key_length).ok_or(RecordError::Malformed("its key is cut off"))?;
        if key.is_empty() {
            return Err(RecordError::Malformed("it has no key"));
        }
        Ok(Self { hit: Hit(*hit), algorithm: *algorithm, key: key.to_vec(), servers: servers(rest)? })
    }

    /// The data of the record.
    ///
    /// # Errors
    /// Where the key is longer than the field of its length can say, or a name cannot be written.
    pub fn to_vec(&self) -> Result<Vec<u8>, String> {
        let key_length = u16::try_from(self.key.len()).map_err(|_| "the key is too long".to_owned())?;
        let mut data = vec![16, self.algorithm];
        data.extend(key_length.to_be_bytes());
        data.extend(self.hit.0);
        data.extend(&self.key);
        for server in &self.servers {
            // Each with a buffer of its own, because names in this record are not compressed (RFC 3597 §4).
            data.extend(server.to_lowercase().to_bytes().map_err(|error| error.to_string())?);
        }
        Ok(data)
    }

    /// The identity, if the HIT is that of the key.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn identity(&self) -> Result<PublicIdentity, RecordError> {
        let identity = PublicIdentity::from_dns(self.algorithm, &self.key).map_err(|error| match error {
            IdentityError::UnknownAlgorithm { .. } => RecordError::UnknownAlgorithm(self.algorithm),
            error => RecordError::BadKey(error),
        })?;
        if identity.hit() == self.hit {
            Ok(identity)
        } else {
            Err(RecordError::WrongHit { told: self.hit, is: identity.hit() })
        }
    }
}

/// As zone files have it, in one line, without owner and class (RFC 8005 §6).
impl std::fmt::Display for HipRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HIP {} {} {}", self.algorithm, HEXUPPER.encode(&self.hit.0), BASE64.encode(&self.key))?;
        self.servers.iter().try_for_each(|server| write!(f, " {server}"))
    }
}

/// Names to the end, none of which points elsewhere.
fn servers(data: &[u8]) -> Result<Vec<Name>, RecordError> {
    let mut decoder = BinDecoder::new(data);
    let mut servers = Vec::new();
    while !decoder.is_empty() {
        let start = decoder.index();
        let wrong = RecordError::Malformed("a rendezvous server has no name");
        let name = Name::read(&mut decoder).map_err(|_| wrong)?;
        // A name that points elsewhere is longer than what is here of it.
        if name.to_bytes().map_or(true, |whole| whole.len() != decoder.index() - start) {
            return Err(RecordError::Malformed("the name of a rendezvous server is compressed"));
        }
        if !name.is_root() && servers.len() < MOST_SERVERS && !servers.contains(&name) {
            servers.push(name);
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hip::identity::{Algorithm, HostIdentity};
    use proptest::prelude::*;

    /// The key and the HIT of the examples of RFC 8005 §7, from before HITs were what they are now.
    const KEY: &str = "AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p9+LrV4e19WzK00+CI6zBCQTdtWsuxKbWIy87UOoJTwkUs7lBu+Upr1gsNrut\
        79ryra+bSRGQb1slImA8YVJyuIDsj7kwzG7jnERNqnWxZ48AWkskmdHaVDP4BcelrTI3rMXdXF5D";
    const HIT: &str = "200100107B1A74DF365639CC39F1D578";

    fn names(names: &[&str]) -> Vec<Name> {
        names.iter().map(|name| Name::from_ascii(name).expect("a name")).collect()
    }

    fn example(servers: &[&str]) -> HipRecord {
        HipRecord {
            hit: Hit(HEXUPPER.decode(HIT.as_bytes()).expect("hex").try_into().expect("16 octets")),
            algorithm: 2,
            key: BASE64.decode(KEY.as_bytes()).expect("base64"),
            servers: names(servers),
        }
    }

    /// The octets are those that RFC 8005 §5 asks for, put together by hand.
    #[test]
    fn the_examples_of_rfc_8005_in_octets_and_in_words() {
        let key = BASE64.decode(KEY.as_bytes()).expect("base64");
        let data = |servers: &[u8]| {
            let hit = HEXUPPER.decode(HIT.as_bytes()).expect("hex");
            [&[16, 2, 0, 132][..], &hit, &key, servers].concat()
        };
        let both = b"\x04rvs1\x07example\x03com\x00\x04rvs2\x07example\x03com\x00";
        for (servers, octets, words) in [
            (&[][..], &[][..], ""),
            (&["rvs.example.com."], b"\x03rvs\x07example\x03com\x00", " rvs.example.com."),
            (&["rvs1.example.com.", "rvs2.example.com."], both, " rvs1.example.com. rvs2.example.com."),
        ] {
            let record = example(servers);
            assert_eq!(record.to_vec(), Ok(data(octets)));
            assert_eq!(HipRecord::parse(&data(octets)), Ok(record.clone()));
            assert_eq!(record.to_string(), format!("HIP 2 {HIT} {KEY}{words}"));
            // 1,024 bits are too few today, and the HIT is of the old kind.
            assert!(matches!(record.identity(), Err(RecordError::BadKey(IdentityError::RsaSize { .. }))));
        }
    }

    #[test]
    fn a_hit_that_is_not_the_keys_is_refused_and_so_are_other_algorithms() {
        let identity = HostIdentity::from_pem(testkit::IDENTITIES[0]).expect("a key");
        let mut record = HipRecord::of(identity.public(), Vec::new()).expect("a record");
        assert_eq!(record.identity().map(|identity| identity.hit()), Ok(identity.hit()));
        record.hit.0[15] ^= 1;
        assert_eq!(record.identity().map(|_| ()), Err(RecordError::WrongHit { told: record.hit, is: identity.hit() }));
        // DSA, EdDSA, and what nobody has registered.
        for algorithm in [0, 1, 4, 200] {
            record.algorithm = algorithm;
            assert_eq!(record.identity().map(|_| ()), Err(RecordError::UnknownAlgorithm(algorithm)));
        }
    }

    #[test]
    fn every_record_that_is_cut_off_is_malformed() {
        let whole = example(&["rvs1.example.com.", "rvs2.example.com."]).to_vec().expect("a record");
        // Where a name ends the record may, too.
        let good: Vec<usize> = (0..=whole.len()).filter(|length| HipRecord::parse(&whole[..*length]).is_ok()).collect();
        assert_eq!(good, [152, 152 + 18, whole.len()]);
    }

    #[test]
    fn names_that_point_elsewhere_or_have_no_end_are_malformed() {
        let start = example(&[]).to_vec().expect("a record");
        for tail in [&b"\xc0\x00"[..], b"\x03rvs\xc0\x00", b"\x03rvs\xc0\x98", b"\x40", b"\x01a\x00\xc0\x98"] {
            let data = [&start, tail].concat();
            assert!(matches!(HipRecord::parse(&data), Err(RecordError::Malformed(_))), "{tail:?}");
        }
        let many = [&start[..], &b"\x01a\x00\x01b\x00\x00".repeat(1000), &b"\x01c\x00".repeat(1000)].concat();
        assert_eq!(HipRecord::parse(&many).map(|record| record.servers), Ok(names(&["a.", "b.", "c."])));
    }

    #[test]
    fn what_is_made_of_each_kind_of_key_is_read_again() {
        let mut random = crate::time::random().expect("randomness");
        for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384] {
            let identity = HostIdentity::generate(algorithm, &mut random).expect("a key");
            let record = HipRecord::of(identity.public(), names(&["rvs.example."])).expect("a record");
            let read = HipRecord::parse(&record.to_vec().expect("octets")).expect("whole");
            assert_eq!(read, record);
            assert_eq!(read.identity().map(|identity| identity.hit()), Ok(identity.hit()));
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_a_record_or_none(data in proptest::collection::vec(any::<u8>(), 0..400)) {
            let start = example(&[]).to_vec().expect("a record");
            for data in [data.clone(), [&start[..], &data].concat()] {
                let Ok(record) = HipRecord::parse(&data) else { continue };
                prop_assert!(record.servers.len() <= MOST_SERVERS);
                let again = HipRecord::parse(&record.to_vec().expect("octets"));
                prop_assert_eq!(again.map(|again| (again.hit, again.key)), Ok((record.hit, record.key.clone())));
                let _ = record.identity();
            }
        }
    }
}

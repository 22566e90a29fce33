//! RHASH, the hash function that a HIT names (RFC 7401 §3.2, §5.2.10), and HMAC with it (RFC 2104).
//!
//! Everything of one association uses the hash of the *Responder's* HIT: the puzzle, KEYMAT, HIP_MAC.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384};
use wire::Hit;

/// A hash function of RFC 7401.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rhash {
    /// HIT suite 1, RSA,DSA/SHA-256.
    Sha256,
    /// HIT suite 2, ECDSA/SHA-384.
    Sha384,
}

impl Rhash {
    /// All that we have.
    pub const ALL: [Self; 2] = [Self::Sha384, Self::Sha256];

    /// The hash of a HIT suite (RFC 7401 §5.2.10): 1 or 2. None for suites we don't have.
    pub fn of_suite(suite: u8) -> Option<Self> {
        match suite {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha384),
            _ => None,
        }
    }

    /// The hash that this HIT names in its four bits after the prefix. None outside 2001:20::/28 and for unknown suites.
    pub fn of_hit(hit: &Hit) -> Option<Self> {
        if hit.is_orchid() { Self::of_suite(hit.suite()) } else { None }
    }

    /// The HIT suite, 1 or 2.
    pub fn suite(self) -> u8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
        }
    }

    /// RHASH_len in bytes: 32 or 48. Also the length of the puzzle's I and J and of HIP_MAC.
    #[expect(clippy::len_without_is_empty, reason = "a constant of the algorithm: no hash is empty")]
    pub fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    /// The hash of the concatenated parts, [`Rhash::len`] bytes.
    pub fn digest(self, parts: &[&[u8]]) -> Vec<u8> {
        fn run<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize().to_vec()
        }
        match self {
            Self::Sha256 => run::<Sha256>(parts),
            Self::Sha384 => run::<Sha384>(parts),
        }
    }

    /// HMAC of the concatenated parts, not truncated (RFC 7401 §5.2.12). Any length of `key` will do.
    pub fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha256 => feed::<Hmac<Sha256>>(key, parts).finalize().into_bytes().to_vec(),
            Self::Sha384 => feed::<Hmac<Sha384>>(key, parts).finalize().into_bytes().to_vec(),
        }
    }

    /// True if `mac` is the HMAC of the parts: all of its bytes, compared in constant time.
    #[must_use]
    pub fn hmac_verify(self, key: &[u8], parts: &[&[u8]], mac: &[u8]) -> bool {
        match self {
            Self::Sha256 => feed::<Hmac<Sha256>>(key, parts).verify_slice(mac).is_ok(),
            Self::Sha384 => feed::<Hmac<Sha384>>(key, parts).verify_slice(mac).is_ok(),
        }
    }
}

fn feed<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> M {
    // RFC 2104 §2: keys of any length.
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 4231 §4.2, §4.3, §4.7: test cases 1, 2 and 6.
    #[test]
    fn hmac_of_rfc_4231() {
        let long_key = [0xaa; 131];
        let cases: [(&[u8], &[u8], &str, &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                &long_key,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952",
            ),
        ];
        for (key, message, sha256, sha384) in cases {
            let (head, tail) = message.split_at(3);
            for (rhash, expected) in [(Rhash::Sha256, sha256), (Rhash::Sha384, sha384)] {
                let mut mac = rhash.hmac(key, &[head, tail]);
                assert_eq!(hex(&mac), expected);
                assert!(rhash.hmac_verify(key, &[message], &mac));
                assert!(!rhash.hmac_verify(key, &[message], &mac[..mac.len() - 1]), "a truncated MAC is no MAC");
                mac[5] ^= 1;
                assert!(!rhash.hmac_verify(key, &[message], &mac));
            }
        }
    }

    /// FIPS 180-4 examples: "abc".
    #[test]
    fn digest_of_abc() {
        assert_eq!(
            hex(&Rhash::Sha256.digest(&[b"a", b"", b"bc"])),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex(&Rhash::Sha384.digest(&[b"abc"])),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
        );
    }

    #[test]
    fn the_hit_names_the_hash() {
        let hit = |text: &str| text.parse::<Hit>().unwrap();
        assert_eq!(Rhash::of_hit(&hit("2001:21::1")), Some(Rhash::Sha256));
        assert_eq!(Rhash::of_hit(&hit("2001:22::1")), Some(Rhash::Sha384));
        assert_eq!(Rhash::of_hit(&hit("2001:23::1")), None);
        assert_eq!(Rhash::of_hit(&hit("2001:12::1")), None);
    }
}

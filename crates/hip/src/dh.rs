//! The Diffie-Hellman exchange (RFC 7401 §5.2.7).
//!
//! The elliptic groups' public values are x | y without a leading byte, and Kij is the x coordinate of the shared point
//! (RFC 5903 §7, §9). The MODP groups' public values and Kij are numbers in network byte order, as long as the modulus.

mod modp;

use modp::{ModpSecret, Modulus};
use p256::elliptic_curve::Generate as _;
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// A group that we have (RFC 7401 §5.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The 1536-bit MODP group of RFC 3526 §2, number 3: some 90 bits of strength, for old peers only.
    Modp1536,
    /// The 3072-bit MODP group of RFC 3526 §4, number 4.
    Modp3072,
    /// The 2048-bit MODP group of RFC 3526 §3, number 11.
    Modp2048,
    /// NIST P-256, number 7.
    P256,
    /// NIST P-384, number 8.
    P384,
    /// NIST P-521, number 9.
    P521,
}

/// Why a peer's public value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DhError {
    /// Not of the group's length.
    #[error("a Diffie-Hellman public value of {len} bytes: this group has {expected}")]
    Length {
        /// The length received, in bytes.
        len: usize,
        /// The group's length, in bytes.
        expected: usize,
    },
    /// Not a point of the curve; for MODP, not from 2 to p - 2.
    #[error("a Diffie-Hellman public value that is not in its group")]
    NotInGroup,
}

/// Our half of one exchange. Overwritten when dropped and not shown by `Debug`. It can be used for several peers, as a
/// Responder does whose R1s are made in advance (RFC 7401 §5.2.7, §6.6.1).
#[derive(Clone)]
pub struct EphemeralSecret(Secret);

#[derive(Clone)]
enum Secret {
    Modp(ModpSecret),
    P256(p256::SecretKey),
    P384(p384::SecretKey),
    P521(p521::SecretKey),
}

/// Kij: what both hosts computed. Overwritten when dropped and not shown by `Debug`.
#[derive(Clone)]
pub struct SharedSecret(Zeroizing<Vec<u8>>);

impl Group {
    /// All groups, the one we prefer first.
    pub const ALL: [Self; 6] = [Self::P384, Self::P256, Self::P521, Self::Modp3072, Self::Modp2048, Self::Modp1536];

    /// The Group ID in DH_GROUP_LIST and DIFFIE_HELLMAN.
    pub fn number(self) -> u8 {
        match self {
            Self::Modp1536 => 3,
            Self::Modp3072 => 4,
            Self::P256 => 7,
            Self::P384 => 8,
            Self::P521 => 9,
            Self::Modp2048 => 11,
        }
    }

    /// The group of a Group ID. None if we don't have it.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.number() == number)
    }

    /// Whether everything takes about a millisecond or less with it.
    pub(crate) fn is_quick(self) -> bool {
        matches!(self, Self::P256 | Self::P384)
    }

    /// Bytes of a public value: of a point two coordinates, or as many as the modulus.
    pub fn public_value_len(self) -> usize {
        match self {
            Self::Modp1536 => Modulus::Bits1536.len(),
            Self::Modp2048 => Modulus::Bits2048.len(),
            Self::Modp3072 => Modulus::Bits3072.len(),
            Self::P256 => 64,
            Self::P384 => 96,
            Self::P521 => 132,
        }
    }
}

impl EphemeralSecret {
    /// A new secret.
    pub fn generate(group: Group, rng: &mut dyn CryptoRng) -> Self {
        Self(match group {
            Group::Modp1536 => Secret::Modp(ModpSecret::generate(Modulus::Bits1536, rng)),
            Group::Modp2048 => Secret::Modp(ModpSecret::generate(Modulus::Bits2048, rng)),
            Group::Modp3072 => Secret::Modp(ModpSecret::generate(Modulus::Bits3072, rng)),
            Group::P256 => Secret::P256(p256::SecretKey::generate_from_rng(rng)),
            Group::P384 => Secret::P384(p384::SecretKey::generate_from_rng(rng)),
            Group::P521 => Secret::P521(p521::SecretKey::generate_from_rng(rng)),
        })
    }

    /// The group that it is of.
    pub fn group(&self) -> Group {
        match &self.0 {
            Secret::Modp(secret) => match secret.modulus {
                Modulus::Bits1536 => Group::Modp1536,
                Modulus::Bits2048 => Group::Modp2048,
                Modulus::Bits3072 => Group::Modp3072,
            },
            Secret::P256(_) => Group::P256,
            Secret::P384(_) => Group::P384,
            Secret::P521(_) => Group::P521,
        }
    }

    /// Our public value for DIFFIE_HELLMAN.
    pub fn public_value(&self) -> Vec<u8> {
        let point = match &self.0 {
            Secret::Modp(secret) => return secret.public_value(),
            Secret::P256(secret) => secret.public_key().to_sec1_bytes(),
            Secret::P384(secret) => secret.public_key().to_sec1_bytes(),
            Secret::P521(secret) => secret.public_key().to_sec1_bytes(),
        };
        // Without SEC1's byte for "uncompressed".
        point.get(1..).unwrap_or_default().to_vec()
    }

    /// Kij with the peer's public value.
    ///
    /// # Errors
    /// [`DhError`] unless the value is a point of the curve other than the identity (NIST SP 800-56A rev. 3 §5.6.2.3.3; all
    /// curves have cofactor 1), or for MODP a number from 2 to p - 2 (§5.6.2.3.1).
    pub fn agree(&self, peer_public: &[u8]) -> Result<SharedSecret, DhError> {
        let expected = self.group().public_value_len();
        if peer_public.len() != expected {
            return Err(DhError::Length { len: peer_public.len(), expected });
        }
        // SEC1 §2.3.3: 04 is "uncompressed"; the identity has no such form.
        let point = [&[4], peer_public].concat();
        let not_in_group = |_| DhError::NotInGroup;
        let x = match &self.0 {
            Secret::Modp(secret) => return secret.agree(peer_public).map(SharedSecret).ok_or(DhError::NotInGroup),
            Secret::P256(secret) => {
                let peer = p256::PublicKey::from_sec1_bytes(&point).map_err(not_in_group)?;
                secret.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
            Secret::P384(secret) => {
                let peer = p384::PublicKey::from_sec1_bytes(&point).map_err(not_in_group)?;
                secret.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
            Secret::P521(secret) => {
                let peer = p521::PublicKey::from_sec1_bytes(&point).map_err(not_in_group)?;
                secret.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
        };
        Ok(SharedSecret(Zeroizing::new(x)))
    }
}

impl SharedSecret {
    /// A secret that was computed elsewhere, for checks against recorded exchanges.
    pub fn from_bytes(kij: &[u8]) -> Self {
        Self(Zeroizing::new(kij.to_vec()))
    }

    /// Kij as [`crate::keymat::Keymat`] takes it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for EphemeralSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EphemeralSecret({:?})", self.group())
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// RFC 5903 §8.1: 256-bit random ECP group.
    #[test]
    fn p256_of_rfc_5903() {
        let i = "C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433";
        let gi = "DAD0B65394221CF9B051E1FECA5787D098DFE637FC90B9EF945D0C37725811805271A0461CDB8252D61F1C456FA3E59AB1F45B33ACCF5F58389E0577B8990BB3";
        let gr = "D12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF6356FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353E74F33039872AB";
        let shared = "D6840F6B42F6EDAFD13116E0E12565202FEF8E9ECE7DCE03812464D04B9442DE";
        let secret = EphemeralSecret(Secret::P256(p256::SecretKey::from_slice(&unhex(i)).unwrap()));
        assert_eq!(secret.public_value(), unhex(gi));
        assert_eq!(secret.agree(&unhex(gr)).unwrap().as_bytes(), unhex(shared));
    }

    /// RFC 5903 §8.2: 384-bit random ECP group.
    #[test]
    fn p384_of_rfc_5903() {
        let i = "099F3C7034D4A2C699884D73A375A67F7624EF7C6B3C0F160647B67414DCE655E35B538041E649EE3FAEF896783AB194";
        let gi = "667842D7D180AC2CDE6F74F37551F55755C7645C20EF73E31634FE72B4C55EE6DE3AC808ACB4BDB4C88732AEE95F41AA9482ED1FC0EEB9CAFC4984625CCFC23F65032149E0E144ADA024181535A0F38EEB9FCFF3C2C947DAE69B4C634573A81C";
        let gr = "E558DBEF53EECDE3D3FCCFC1AEA08A89A987475D12FD950D83CFA41732BC509D0D1AC43A0336DEF96FDA41D0774A3571DCFBEC7AACF3196472169E838430367F66EEBE3C6E70C416DD5F0C68759DD1FFF83FA40142209DFF5EAAD96DB9E6386C";
        let shared = "11187331C279962D93D604243FD592CB9D0A926F422E47187521287E7156C5C4D603135569B9E9D09CF5D4A270F59746";
        let secret = EphemeralSecret(Secret::P384(p384::SecretKey::from_slice(&unhex(i)).unwrap()));
        assert_eq!(secret.public_value(), unhex(gi));
        assert_eq!(secret.agree(&unhex(gr)).unwrap().as_bytes(), unhex(shared));
    }

    #[test]
    fn values_outside_the_group_are_refused() {
        use rand_core::SeedableRng;
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
        for group in Group::ALL {
            let ours = EphemeralSecret::generate(group, &mut rng);
            let theirs = EphemeralSecret::generate(group, &mut rng);
            assert_eq!(
                ours.agree(&theirs.public_value()).unwrap().as_bytes(),
                theirs.agree(&ours.public_value()).unwrap().as_bytes()
            );
            let off = theirs.public_value();
            let len = group.public_value_len();
            assert_eq!(off.len(), len);
            if matches!(group, Group::P256 | Group::P384 | Group::P521) {
                let mut off = off.clone();
                *off.last_mut().unwrap() ^= 1;
                assert_eq!(ours.agree(&off).unwrap_err(), DhError::NotInGroup);
            } else {
                let mut number = vec![0; len];
                number[len - 1] = 1;
                assert_eq!(ours.agree(&number).unwrap_err(), DhError::NotInGroup, "1");
                number[len - 1] = 2;
                assert!(ours.agree(&number).is_ok(), "2");
            }
            assert_eq!(ours.agree(&vec![0; len]).unwrap_err(), DhError::NotInGroup);
            assert_eq!(ours.agree(&vec![0xff; len]).unwrap_err(), DhError::NotInGroup, "not below the prime");
            assert!(matches!(ours.agree(&off[1..]), Err(DhError::Length { .. })));
            assert!(matches!(ours.agree(&[]), Err(DhError::Length { .. })));
        }
    }
}

//! Host Identities: key pairs whose public half is who a host is (RFC 7401 §3).
//!
//! - RSA (algorithm 5): HIT suite 1, encoded as in RFC 3110 §2, RSASSA-PSS with SHA-256 (RFC 8017 §8.1);
//! - ECDSA over NIST P-256 and P-384 (algorithm 7): HIT suite 2, a curve number and the uncompressed point, signatures as
//!   r | s.

use crate::orchid;
use crate::rhash::Rhash;
use p256::ecdsa as ecdsa_p256;
use p256::elliptic_curve::Generate as _;
use p384::ecdsa as ecdsa_p384;
use p384::ecdsa::signature::{DigestVerifier, RandomizedDigestSigner, SignatureEncoding};
use rand_core::CryptoRng;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, LineEnding};
use rsa::traits::PublicKeyParts;
use rsa::{BoxedUint, RsaPrivateKey, RsaPublicKey, pss};
use sha2::{Digest, Sha256, Sha384};
use std::fmt;
use wire::Hit;
use zeroize::Zeroizing;

/// The HOST_ID algorithm of RSA (RFC 7401 §5.2.9).
pub const ALGORITHM_RSA: u16 = 5;
/// The HOST_ID algorithm of ECDSA (RFC 7401 §5.2.9).
pub const ALGORITHM_ECDSA: u16 = 7;

/// The smallest RSA modulus that we generate, load or accept from a peer, in bits: NIST SP 800-131A rev. 2 §3.
const RSA_MIN_BITS: usize = 2048;
/// The largest, in bits: a Host Identity has to fit in a HIP packet of 2008 bytes next to its signature.
const RSA_MAX_BITS: usize = 4096;
/// ECC curve numbers (RFC 7401 §5.2.9).
const CURVE_P256: u16 = 1;
const CURVE_P384: u16 = 2;

/// Which kind of key to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with a modulus of 2048 bits.
    Rsa,
    /// ECDSA over NIST P-256.
    EcdsaP256,
    /// ECDSA over NIST P-384: what we recommend.
    EcdsaP384,
}

/// Why a Host Identity could not be read or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// No PEM block of a private key.
    #[error("no private key in this PEM text: expected PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY")]
    NoPrivateKey,
    /// No PEM block of a public key.
    #[error("no public key in this PEM text: expected PUBLIC KEY, which `openssl pkey -pubout` makes of an identity")]
    NoPublicKey,
    /// A private key stands where a public one should.
    #[error("a private key, which should never leave its host: `openssl pkey -pubout` makes the public one of it")]
    Private,
    /// OpenSSH's own format.
    #[error(
        "a key in OpenSSH's own format: `sinnet keygen` makes one for this host; `ssh-keygen -p -m PKCS8 -f FILE` turns a \
         copy of an ECDSA key on P-256 or P-384, or of an RSA key, into one that can be read"
    )]
    OpenSsh,
    /// The key is encrypted with a passphrase.
    #[error("the private key is encrypted: remove its passphrase, for example with `openssl pkey`")]
    Encrypted,
    /// The block is not a key of a kind we know.
    #[error("not a private key for RSA, ECDSA P-256 or ECDSA P-384")]
    Malformed,
    /// An RSA modulus outside 2048 to 4096 bits.
    #[error("an RSA key of {bits} bits: 2048 to 4096 are accepted")]
    RsaSize {
        /// The modulus' length in bits.
        bits: usize,
    },
    /// A HOST_ID algorithm number, or ECC curve, that we don't have.
    #[error("a Host Identity of an unknown algorithm or curve ({number})")]
    UnknownAlgorithm {
        /// The HOST_ID algorithm or the ECC curve.
        number: u16,
    },
    /// A Host Identity field that is no valid public key, or not in its one canonical form.
    #[error("a Host Identity that is not a valid public key for RSA, ECDSA P-256 or ECDSA P-384")]
    BadPublicKey,
}

/// The signature was not made by this identity over this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not verify")]
pub struct BadSignature;

/// A Host Identity with its private key. The key is overwritten when dropped and not shown by `Debug`.
pub struct HostIdentity {
    public: PublicIdentity,
    secret: SecretKey,
    is_anonymous: bool,
}

/// A Host Identity without its private key: what a HOST_ID parameter carries.
#[derive(Clone)]
pub struct PublicIdentity {
    key: PublicKey,
    encoded: Vec<u8>,
    hit: Hit,
}

enum SecretKey {
    Rsa(Box<pss::SigningKey<Sha256>>),
    P256(ecdsa_p256::SigningKey),
    P384(ecdsa_p384::SigningKey),
}

#[derive(Clone)]
enum PublicKey {
    Rsa(Box<pss::VerifyingKey<Sha256>>),
    P256(ecdsa_p256::VerifyingKey),
    P384(ecdsa_p384::VerifyingKey),
}

impl HostIdentity {
    /// A new key pair. RSA takes seconds.
    ///
    /// # Errors
    /// [`IdentityError::Malformed`] if no RSA key could be made of what `rng` gives (never seen).
    pub fn generate(algorithm: Algorithm, rng: &mut dyn CryptoRng) -> Result<Self, IdentityError> {
        Self::new(match algorithm {
            Algorithm::Rsa => rsa_signer(RsaPrivateKey::new(rng, RSA_MIN_BITS).map_err(|_| IdentityError::Malformed)?),
            Algorithm::EcdsaP256 => SecretKey::P256(ecdsa_p256::SigningKey::generate_from_rng(rng)),
            Algorithm::EcdsaP384 => SecretKey::P384(ecdsa_p384::SigningKey::generate_from_rng(rng)),
        })
    }

    /// The same as one that no directory lists (RFC 7401 §7): the A bit is set in all its packets (§5.1.2), and a host of this
    /// identity answers nobody but whom it has asked.
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { is_anonymous: true, ..self }
    }

    /// Whether no directory lists it.
    pub fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// Reads the first private key of a PEM text: PKCS#8 (`PRIVATE KEY`), SEC1 (`EC PRIVATE KEY`) or PKCS#1
    /// (`RSA PRIVATE KEY`).
    ///
    /// # Errors
    /// [`IdentityError`]: what is wrong with the text or the key.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let (label, block) = private_key_block(pem)?;
        let secret = match label {
            "PRIVATE KEY" => p384::SecretKey::from_pkcs8_pem(block)
                .map(|key| SecretKey::P384(key.into()))
                .or_else(|_| p256::SecretKey::from_pkcs8_pem(block).map(|key| SecretKey::P256(key.into())))
                .or_else(|_| RsaPrivateKey::from_pkcs8_pem(block).map(rsa_signer))
                .map_err(|_| IdentityError::Malformed)?,
            "EC PRIVATE KEY" => p384::SecretKey::from_sec1_pem(block)
                .map(|key| SecretKey::P384(key.into()))
                .or_else(|_| p256::SecretKey::from_sec1_pem(block).map(|key| SecretKey::P256(key.into())))
                .map_err(|_| IdentityError::Malformed)?,
            _ => RsaPrivateKey::from_pkcs1_pem(block).map(rsa_signer).map_err(|_| IdentityError::Malformed)?,
        };
        Self::new(secret)
    }

    /// The key pair as PKCS#8 in PEM.
    pub fn to_pem(&self) -> Zeroizing<String> {
        match &self.secret {
            SecretKey::Rsa(key) => key.as_ref().as_ref().to_pkcs8_pem(LineEnding::LF),
            SecretKey::P256(key) => key.to_pkcs8_pem(LineEnding::LF),
            SecretKey::P384(key) => key.to_pkcs8_pem(LineEnding::LF),
        }
        .expect("a valid key has an encoding of bounded length")
    }

    /// The public half.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }

    /// The HIT of this identity.
    pub fn hit(&self) -> Hit {
        self.public.hit
    }

    /// A signature over `message` as HIP_SIGNATURE carries it. `rng` makes PSS's salt and RSA's blinding, and hedges the
    /// deterministic nonce of ECDSA (RFC 6979 §3.6).
    pub fn sign(&self, rng: &mut dyn CryptoRng, message: &[u8]) -> Vec<u8> {
        // RFC 7401 §5.2.9 names no hash for a curve, but HIT suite 2, the one that ECDSA keys of both curves have, is
        // ECDSA/SHA-384 (§5.2.10): SHA-384 for P-256 too, of which ECDSA takes the first 256 bits.
        let sha384 = |digest: &mut Sha384| {
            digest.update(message);
            Ok(())
        };
        let sha256 = |digest: &mut Sha256| {
            digest.update(message);
            Ok(())
        };
        match &self.secret {
            SecretKey::Rsa(key) => {
                key.try_sign_digest_with_rng(rng, sha256).map(|signature: pss::Signature| signature.to_vec())
            }
            SecretKey::P256(key) => {
                key.try_sign_digest_with_rng(rng, sha384).map(|signature: ecdsa_p256::Signature| signature.to_vec())
            }
            SecretKey::P384(key) => {
                key.try_sign_digest_with_rng(rng, sha384).map(|signature: ecdsa_p384::Signature| signature.to_vec())
            }
        }
        .expect("signing with a valid key and a generator that cannot fail")
    }

    fn new(secret: SecretKey) -> Result<Self, IdentityError> {
        let key = match &secret {
            SecretKey::Rsa(key) => rsa_verifier(key.as_ref().as_ref().to_public_key())?,
            SecretKey::P256(key) => PublicKey::P256(*key.verifying_key()),
            SecretKey::P384(key) => PublicKey::P384(*key.verifying_key()),
        };
        Ok(Self { public: PublicIdentity::new(key), secret, is_anonymous: false })
    }
}

impl PublicIdentity {
    /// From the fields of HOST_ID (RFC 7401 §5.2.9): `algorithm` 5 (RSA) or 7 (ECDSA) and the Host Identity field.
    ///
    /// # Errors
    /// [`IdentityError`] for unknown algorithms and curves, invalid keys, and keys in another form than the canonical one
    /// (an identity has one encoding and so one HIT).
    pub fn from_wire(algorithm: u16, host_identity: &[u8]) -> Result<Self, IdentityError> {
        let key = match algorithm {
            ALGORITHM_RSA => rsa_verifier(decode_rsa(host_identity)?)?,
            ALGORITHM_ECDSA => {
                let (curve, point) = host_identity.split_first_chunk().ok_or(IdentityError::BadPublicKey)?;
                let bad = |_| IdentityError::BadPublicKey;
                // The point is checked to lie on the curve and not to be the identity.
                match u16::from_be_bytes(*curve) {
                    CURVE_P256 => PublicKey::P256(ecdsa_p256::VerifyingKey::from_sec1_bytes(point).map_err(bad)?),
                    CURVE_P384 => PublicKey::P384(ecdsa_p384::VerifyingKey::from_sec1_bytes(point).map_err(bad)?),
                    number => return Err(IdentityError::UnknownAlgorithm { number }),
                }
            }
            number => return Err(IdentityError::UnknownAlgorithm { number }),
        };
        let identity = Self::new(key);
        if identity.encoded == host_identity { Ok(identity) } else { Err(IdentityError::BadPublicKey) }
    }

    /// Reads the first public key of a PEM text (`PUBLIC KEY`, RFC 7468 §13).
    ///
    /// # Errors
    /// [`IdentityError`]: what is wrong with the text or the key; also where a private key is in the text.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
        if pem.contains(" PRIVATE KEY-----") || pem.contains("-BEGIN PRIVATE KEY-----") {
            return Err(IdentityError::Private);
        }
        let block = pem.find(BEGIN).and_then(|start| pem.get(start..)).ok_or(IdentityError::NoPublicKey)?;
        let key = if let Ok(key) = p384::PublicKey::from_public_key_pem(block) {
            PublicKey::P384(key.into())
        } else if let Ok(key) = p256::PublicKey::from_public_key_pem(block) {
            PublicKey::P256(key.into())
        } else {
            rsa_verifier(RsaPublicKey::from_public_key_pem(block).map_err(|_| IdentityError::BadPublicKey)?)?
        };
        Ok(Self::new(key))
    }

    /// HOST_ID's algorithm: 5 or 7.
    pub fn algorithm_number(&self) -> u16 {
        match self.key {
            PublicKey::Rsa(_) => ALGORITHM_RSA,
            PublicKey::P256(_) | PublicKey::P384(_) => ALGORITHM_ECDSA,
        }
    }

    /// The SIG alg field of HIP_SIGNATURE: the number of the key's algorithm (RFC 7401 §5.2.14).
    pub fn signature_algorithm(&self) -> u16 {
        self.algorithm_number()
    }

    /// HOST_ID's Host Identity field.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// The HIT of this identity.
    pub fn hit(&self) -> Hit {
        self.hit
    }

    /// The hash of this identity's HIT suite.
    pub fn rhash(&self) -> Rhash {
        rhash_of(&self.key)
    }

    /// Checks a signature of this identity over `message`.
    ///
    /// # Errors
    /// [`BadSignature`], also for signatures of a wrong length.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let sha384 = |digest: &mut Sha384| {
            digest.update(message);
            Ok(())
        };
        let sha256 = |digest: &mut Sha256| {
            digest.update(message);
            Ok(())
        };
        match &self.key {
            PublicKey::Rsa(key) => {
                pss::Signature::try_from(signature).and_then(|signature| key.verify_digest(sha256, &signature))
            }
            // SHA-384 by the HIT suite (see `sign`); RFC 4754 §3, which RFC 7401 §5.2.9 cites for the algorithm, pairs P-256
            // with SHA-256. Both are sound, so a peer may have read it either way.
            PublicKey::P256(key) => ecdsa_p256::Signature::from_slice(signature).and_then(|signature| {
                key.verify_digest(sha384, &signature).or_else(|_| key.verify_digest(sha256, &signature))
            }),
            PublicKey::P384(key) => {
                ecdsa_p384::Signature::from_slice(signature).and_then(|signature| key.verify_digest(sha384, &signature))
            }
        }
        .map_err(|_| BadSignature)
    }

    fn new(key: PublicKey) -> Self {
        let encoded = encode(&key);
        let hit = orchid::hit_from(rhash_of(&key), &encoded);
        Self { key, encoded, hit }
    }
}

impl PartialEq for PublicIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm_number() == other.algorithm_number() && self.encoded == other.encoded
    }
}

impl Eq for PublicIdentity {}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicIdentity({})", self.hit)
    }
}

impl fmt::Debug for HostIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostIdentity({})", self.hit())
    }
}

fn rhash_of(key: &PublicKey) -> Rhash {
    // RFC 7401 §5.2.10: RSA,DSA/SHA-256 and ECDSA/SHA-384.
    match key {
        PublicKey::Rsa(_) => Rhash::Sha256,
        PublicKey::P256(_) | PublicKey::P384(_) => Rhash::Sha384,
    }
}

fn encode(key: &PublicKey) -> Vec<u8> {
    match key {
        PublicKey::Rsa(key) => encode_rsa(key.as_ref().as_ref()),
        PublicKey::P256(key) => [&CURVE_P256.to_be_bytes(), key.to_sec1_point(false).as_bytes()].concat(),
        PublicKey::P384(key) => [&CURVE_P384.to_be_bytes(), key.to_sec1_point(false).as_bytes()].concat(),
    }
}

fn rsa_signer(key: RsaPrivateKey) -> SecretKey {
    // RFC 7401 §5.2.9 with RFC 8017 §9.1: a salt as long as the hash.
    SecretKey::Rsa(Box::new(pss::SigningKey::new(key)))
}

fn rsa_verifier(key: RsaPublicKey) -> Result<PublicKey, IdentityError> {
    let bits = key.n().bits_vartime() as usize;
    if !(RSA_MIN_BITS..=RSA_MAX_BITS).contains(&bits) {
        return Err(IdentityError::RsaSize { bits });
    }
    // RFC 8017 §8.1.2 with a salt of exactly the hash's length.
    Ok(PublicKey::Rsa(Box::new(pss::VerifyingKey::new(key))))
}

/// RFC 3110 §2: the exponent's length in one byte, or a zero byte and two; exponent; modulus; neither with leading zeros.
fn encode_rsa(key: &RsaPublicKey) -> Vec<u8> {
    let (e, n) = (key.e_bytes(), key.n_bytes());
    let mut encoded = Vec::with_capacity(3 + e.len() + n.len());
    match u8::try_from(e.len()) {
        Ok(len) => encoded.push(len),
        // Unreachable with exponents of at most 33 bits, which is what the library takes; here for the format's sake.
        Err(_) => encoded.extend_from_slice(&[0, (e.len() >> 8) as u8, e.len() as u8]),
    }
    encoded.extend_from_slice(&e);
    encoded.extend_from_slice(&n);
    encoded
}

fn decode_rsa(host_identity: &[u8]) -> Result<RsaPublicKey, IdentityError> {
    let parts = || {
        let (first, rest) = host_identity.split_first()?;
        let (len, rest) = match first {
            0 => rest.split_first_chunk().map(|(len, rest)| (usize::from(u16::from_be_bytes(*len)), rest))?,
            len => (usize::from(*len), rest),
        };
        rest.split_at_checked(len)
    };
    let (e, n) = parts().ok_or(IdentityError::BadPublicKey)?;
    let bits = n.len().saturating_mul(8);
    // Before any arithmetic on a number of a length that the peer chose.
    if bits > RSA_MAX_BITS + 8 || e.len() > n.len() {
        return Err(IdentityError::RsaSize { bits });
    }
    let number = BoxedUint::from_be_slice_vartime;
    RsaPublicKey::new(number(n), number(e)).map_err(|_| IdentityError::BadPublicKey)
}

/// The label and text of the first PEM block that holds a private key. What stands before it (`EC PARAMETERS`, comments)
/// is skipped.
fn private_key_block(pem: &str) -> Result<(&'static str, &str), IdentityError> {
    if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(IdentityError::Encrypted);
    }
    if pem.contains("-----BEGIN OPENSSH PRIVATE KEY-----") {
        return Err(IdentityError::OpenSsh);
    }
    ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"]
        .into_iter()
        .filter_map(|label| pem.find(&format!("-----BEGIN {label}-----")).map(|start| (start, label)))
        .min()
        .map(|(start, label)| (label, &pem[start..]))
        .ok_or(IdentityError::NoPrivateKey)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn p384() -> PublicIdentity {
        HostIdentity::generate(Algorithm::EcdsaP384, &mut ChaCha20Rng::seed_from_u64(1)).unwrap().public().clone()
    }

    #[test]
    fn an_identity_has_one_encoding() {
        let identity = p384();
        let encoded = identity.encoded();
        let (x, y) = encoded[3..].split_at(48);
        // SEC1 §2.3.3: the same point compressed.
        let compressed = [&encoded[..2], &[2 + (y[47] & 1)], x].concat();
        assert_eq!(PublicIdentity::from_wire(ALGORITHM_ECDSA, &compressed), Err(IdentityError::BadPublicKey));
        // The identity element.
        assert_eq!(PublicIdentity::from_wire(ALGORITHM_ECDSA, &[0, 2, 0]), Err(IdentityError::BadPublicKey));
        let unknown = [&[0, 3], &encoded[2..]].concat();
        assert_eq!(
            PublicIdentity::from_wire(ALGORITHM_ECDSA, &unknown),
            Err(IdentityError::UnknownAlgorithm { number: 3 })
        );
        assert_eq!(PublicIdentity::from_wire(3, encoded), Err(IdentityError::UnknownAlgorithm { number: 3 }));

        let rsa = |exponent: &[u8], modulus: &[u8]| {
            let len = u8::try_from(exponent.len()).unwrap();
            PublicIdentity::from_wire(ALGORITHM_RSA, &[&[len], exponent, modulus].concat())
        };
        let modulus = [0xff; 256];
        assert!(rsa(&[1, 0, 1], &modulus).is_ok());
        assert_eq!(rsa(&[0, 1, 0, 1], &modulus), Err(IdentityError::BadPublicKey), "leading zero of e");
        assert_eq!(
            rsa(&[1, 0, 1], &[&[0], &modulus[..]].concat()),
            Err(IdentityError::BadPublicKey),
            "leading zero of n"
        );
        assert_eq!(rsa(&[1, 0, 1], &modulus[..128]), Err(IdentityError::RsaSize { bits: 1024 }));
        assert!(matches!(rsa(&[1, 0, 1], &[0xff; 1000]), Err(IdentityError::RsaSize { .. })));
        assert_eq!(rsa(&[1, 0, 1], &[]), Err(IdentityError::RsaSize { bits: 0 }));
        assert!(rsa(&[1], &modulus).is_err(), "e = 1");
        assert!(rsa(&[], &modulus).is_err());
        let even = [0xfe; 256];
        assert!(rsa(&[1, 0, 1], &even).is_err(), "an even modulus");
        // RFC 3110's long form of a short length is another encoding of the same key.
        let long = [&[0, 0, 3, 1, 0, 1][..], &modulus].concat();
        assert_eq!(PublicIdentity::from_wire(ALGORITHM_RSA, &long), Err(IdentityError::BadPublicKey));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_host_identity_or_refused(algorithm in 4u16..9, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(identity) = PublicIdentity::from_wire(algorithm, &bytes) {
                prop_assert_eq!(identity.encoded(), &bytes[..]);
            }
        }

        #[test]
        fn any_signature_is_refused(message: Vec<u8>, signature in prop::collection::vec(any::<u8>(), 90..100)) {
            prop_assert_eq!(p384().verify(&message, &signature), Err(BadSignature));
        }

        #[test]
        fn any_text_is_a_public_key_or_refused(text in "(-----BEGIN PUBLIC KEY-----\n)?[A-Za-z0-9+/=\n]{0,100}") {
            prop_assert!(PublicIdentity::from_pem(&text).is_err());
        }

        #[test]
        fn any_text_is_a_key_or_refused(text in "(-----BEGIN (EC |RSA |)PRIVATE KEY-----\n)?[A-Za-z0-9+/=\n]{0,100}") {
            prop_assert!(HostIdentity::from_pem(&text).is_err());
        }
    }
}

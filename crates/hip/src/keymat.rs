//! KEYMAT: the keys of an association, drawn from the Diffie-Hellman secret (RFC 7401 §6.5).
//!
//! ```text
//! KEYMAT = HKDF with RHASH (RFC 5869), salt #I | #J, info = the two HITs, the lower first
//! 0:                 HIP-gl encryption, HIP-gl integrity, HIP-lg encryption, HIP-lg integrity
//! from ESP_INFO's    SA-gl encryption, SA-gl authentication, SA-lg encryption, SA-lg authentication
//! keymat index:
//! ```
//!
//! "gl" protects what the host with the greater HIT sends, "lg" what the other sends (HITs compared as numbers in network
//! byte order).

use crate::cipher::HipCipher;
use crate::dh::SharedSecret;
use crate::esp::{EspKeys, EspSuite};
use crate::rhash::Rhash;
use hkdf::Hkdf;
use sha2::{Sha256, Sha384};
use std::cmp::Ordering;
use std::fmt;
use wire::Hit;
use zeroize::Zeroizing;

/// The key material of one association. Overwritten when dropped and not shown by `Debug`.
#[derive(Clone)]
pub struct Keymat {
    rhash: Rhash,
    /// HKDF's pseudorandom key, from which any part of KEYMAT can be expanded again.
    prk: Zeroizing<Vec<u8>>,
    /// #I | #J, which a renewed KEYMAT has as well (RFC 7401 §6.5).
    salt: Vec<u8>,
    info: [u8; 32],
}

/// KEYMAT has no key at this index: a HIP association's holds 255 outputs of RHASH (RFC 5869 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("KEYMAT is exhausted at index {index}: a new Diffie-Hellman exchange is needed")]
pub struct KeymatExhausted {
    /// The index asked for, in bytes.
    pub index: usize,
}

/// The keys of HIP packets in one direction. Overwritten when dropped and not shown by `Debug`.
#[derive(Clone)]
pub struct DirectionKeys {
    /// For ENCRYPTED: as long as the HIP cipher's key, empty for NULL.
    pub encryption: Zeroizing<Vec<u8>>,
    /// For HIP_MAC and HIP_MAC_2: RHASH_len bytes.
    pub integrity: Zeroizing<Vec<u8>>,
}

/// The keys of HIP packets.
#[derive(Clone, Debug)]
pub struct HipKeys {
    /// For what we send.
    pub ours: DirectionKeys,
    /// For what the peer sends.
    pub theirs: DirectionKeys,
}

/// The keys of a pair of ESP SAs.
#[derive(Clone, Debug)]
pub struct EspKeyPair {
    /// For what we send.
    pub outbound: EspKeys,
    /// For what we receive.
    pub inbound: EspKeys,
}

impl Keymat {
    /// `rhash` is that of the Responder's HIT, `i` and `j` are the puzzle's #I
    /// and #J. The order of the HITs does not matter.
    pub fn new(rhash: Rhash, kij: &SharedSecret, i: &[u8], j: &[u8], hit_a: &Hit, hit_b: &Hit) -> Self {
        let salt = [i, j].concat();
        let prk = extract(rhash, &salt, kij.as_bytes());
        // RFC 7401 §6.5: sort(HIT-I | HIT-R), the smaller first.
        let mut info = [0; 32];
        info[..16].copy_from_slice(&hit_a.min(hit_b).0);
        info[16..].copy_from_slice(&hit_a.max(hit_b).0);
        Self { rhash, prk, salt, info }
    }

    /// The KEYMAT of the same association after another Diffie-Hellman exchange (RFC 7401 §6.11.3). ESP keys are drawn
    /// from it from index 0 on; the keys of HIP packets stay those of the first (RFC 7402 §6.10).
    #[must_use]
    pub fn renewed(&self, kij: &SharedSecret) -> Self {
        Self { prk: extract(self.rhash, &self.salt, kij.as_bytes()), salt: self.salt.clone(), ..*self }
    }

    /// Forgets the secret: nothing can be drawn any more, neither by us nor by whoever reads our memory later.
    pub fn erase(&mut self) {
        self.prk = Zeroizing::new(Vec::new());
    }

    /// How many bytes there are: 255 outputs of RHASH (RFC 5869 §2.3), 8,160 or 12,240.
    pub fn len(&self) -> u16 {
        // At most 255 · 48.
        (255 * self.rhash.len()) as u16
    }

    /// Whether the secret is erased.
    pub fn is_empty(&self) -> bool {
        self.prk.is_empty()
    }

    /// The keys of HIP packets between us and the peer, from index 0. Whoever has the greater HIT uses "gl" to send.
    ///
    /// # Errors
    /// Never with the ciphers of RFC 7401; the type is that of [`Keymat::esp_keys`].
    pub fn hip_keys(&self, cipher: HipCipher, ours: &Hit, theirs: &Hit) -> Result<HipKeys, KeymatExhausted> {
        let mut at = 0;
        let mut direction = || -> Result<DirectionKeys, KeymatExhausted> {
            Ok(DirectionKeys {
                encryption: self.draw(&mut at, cipher.key_len())?,
                integrity: self.draw(&mut at, self.rhash.len())?,
            })
        };
        let (greater, lesser) = (direction()?, direction()?);
        Ok(match ours.cmp(theirs) {
            Ordering::Greater => HipKeys { ours: greater, theirs: lesser },
            Ordering::Less | Ordering::Equal => HipKeys { ours: lesser, theirs: greater },
        })
    }

    /// The first index after the keys of HIP packets: where ESP's begin in the base exchange (RFC 7402 §7), 160 for SHA-384 with
    /// AES-256.
    pub fn first_esp_index(&self, cipher: HipCipher) -> u16 {
        // At most 2 · (32 + 48).
        (2 * (cipher.key_len() + self.rhash.len())) as u16
    }

    /// The keys of a pair of SAs drawn at `index` (RFC 7402 §7, in bytes), and the index after them.
    ///
    /// # Errors
    /// [`KeymatExhausted`] if KEYMAT ends before.
    pub fn esp_keys(
        &self,
        suite: EspSuite,
        index: u16,
        ours: &Hit,
        theirs: &Hit,
    ) -> Result<(EspKeyPair, u16), KeymatExhausted> {
        let mut at = usize::from(index);
        let mut direction = || -> Result<EspKeys, KeymatExhausted> {
            Ok(EspKeys {
                encryption: self.draw(&mut at, suite.encryption_key_len())?,
                authentication: self.draw(&mut at, suite.authentication_key_len())?,
            })
        };
        let (greater, lesser) = (direction()?, direction()?);
        let pair = match ours.cmp(theirs) {
            Ordering::Greater => EspKeyPair { outbound: greater, inbound: lesser },
            Ordering::Less | Ordering::Equal => EspKeyPair { outbound: lesser, inbound: greater },
        };
        // The index has 16 bits and KEYMAT at most 255 · 48 bytes.
        let next = u16::try_from(at).map_err(|_| KeymatExhausted { index: at })?;
        Ok((pair, next))
    }

    fn draw(&self, at: &mut usize, len: usize) -> Result<Zeroizing<Vec<u8>>, KeymatExhausted> {
        let index = *at;
        let end = index + len;
        let keymat = expand(self.rhash, &self.prk, &self.info, end).ok_or(KeymatExhausted { index })?;
        *at = end;
        Ok(Zeroizing::new(keymat[index..].to_vec()))
    }
}

impl fmt::Debug for Keymat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keymat({:?})", self.rhash)
    }
}

impl fmt::Debug for DirectionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectionKeys(..)")
    }
}

/// HKDF-Extract (RFC 5869 §2.2).
fn extract(rhash: Rhash, salt: &[u8], secret: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(match rhash {
        Rhash::Sha256 => Hkdf::<Sha256>::extract(Some(salt), secret).0.to_vec(),
        Rhash::Sha384 => Hkdf::<Sha384>::extract(Some(salt), secret).0.to_vec(),
    })
}

/// HKDF-Expand (RFC 5869 §2.3). None if `len` is more than 255 outputs of the hash.
fn expand(rhash: Rhash, prk: &[u8], info: &[u8], len: usize) -> Option<Zeroizing<Vec<u8>>> {
    let mut output = Zeroizing::new(vec![0; len]);
    match rhash {
        Rhash::Sha256 => Hkdf::<Sha256>::from_prk(prk).ok()?.expand(info, &mut output).ok()?,
        Rhash::Sha384 => Hkdf::<Sha384>::from_prk(prk).ok()?.expand(info, &mut output).ok()?,
    }
    Some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5869 Appendix A.1 and A.2.
    #[test]
    fn hkdf_of_rfc_5869() {
        let range = |start: u8, end: u8| (start..=end).collect::<Vec<u8>>();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let prk = extract(Rhash::Sha256, &range(0, 0x0c), &[0x0b; 22]);
        let output = expand(Rhash::Sha256, &prk, &range(0xf0, 0xf9), 42).unwrap();
        assert_eq!(
            hex(&output),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        );
        let prk = extract(Rhash::Sha256, &range(0x60, 0xaf), &range(0, 0x4f));
        let output = expand(Rhash::Sha256, &prk, &range(0xb0, 0xff), 82).unwrap();
        assert_eq!(
            hex(&output),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        );
        assert!(expand(Rhash::Sha256, &prk, &[], 255 * 32).is_some());
        assert!(expand(Rhash::Sha256, &prk, &[], 255 * 32 + 1).is_none());
    }
}

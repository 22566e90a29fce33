//! The MODP groups of RFC 3526, with 2 as generator.
//!
//! The moduli are safe primes p = 2q + 1, so the only subgroups are those of order 1, 2, q and 2q, and refusing 1 and p − 1
//! leaves nothing small (NIST SP 800-56A rev. 3 §5.6.2.3.1).

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd, Resize as _};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Bytes of a secret exponent: twice the strength of the larger group, rounded up generously (RFC 3526 §8 gives 260 to 420
/// bits).
const EXPONENT: usize = 64;

/// Which of the moduli.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modulus {
    Bits1536,
    Bits2048,
    Bits3072,
}

/// A secret exponent.
#[derive(Clone)]
pub(super) struct ModpSecret {
    pub(super) modulus: Modulus,
    exponent: Zeroizing<[u8; EXPONENT]>,
}

impl Modulus {
    /// Bytes of the modulus, of public values and of the shared secret.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Bits1536 => 192,
            Self::Bits2048 => 256,
            Self::Bits3072 => 384,
        }
    }

    fn hex(self) -> &'static str {
        match self {
            Self::Bits1536 => MODP_1536,
            Self::Bits2048 => MODP_2048,
            Self::Bits3072 => MODP_3072,
        }
    }

    fn number(self) -> BoxedUint {
        BoxedUint::from_be_hex(self.hex(), self.bits()).expect("a constant")
    }

    fn bits(self) -> u32 {
        8 * self.len() as u32
    }
}

impl ModpSecret {
    pub(super) fn generate(modulus: Modulus, rng: &mut dyn CryptoRng) -> Self {
        let mut exponent = Zeroizing::new([0; EXPONENT]);
        rng.fill_bytes(exponent.as_mut());
        Self { modulus, exponent }
    }

    /// 2^x mod p, as long as p.
    pub(super) fn public_value(&self) -> Vec<u8> {
        self.power(BoxedUint::from(2u8).resize(self.modulus.bits())).to_vec()
    }

    /// y^x mod p, as long as p. None unless 2 ≤ y ≤ p − 2.
    pub(super) fn agree(&self, peer_public: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let peer = BoxedUint::from_be_slice(peer_public, self.modulus.bits()).ok()?;
        let one = BoxedUint::one_with_precision(self.modulus.bits());
        let greatest = self.modulus.number().wrapping_sub(&one).wrapping_sub(&one);
        (peer > one && peer <= greatest).then(|| self.power(peer))
    }

    fn power(&self, base: BoxedUint) -> Zeroizing<Vec<u8>> {
        let modulus = Odd::new(self.modulus.number()).expect("a prime");
        let params = BoxedMontyParams::new(modulus);
        let bits = 8 * EXPONENT as u32;
        let exponent =
            Zeroizing::new(BoxedUint::from_be_slice(self.exponent.as_ref(), bits).expect("as many bits as bytes"));
        let power = Zeroizing::new(BoxedMontyForm::new(base, &params).pow(&exponent).retrieve());
        Zeroizing::new(power.to_be_bytes().into_vec())
    }
}

/// RFC 3526 §2: 2^1536 - 2^1472 - 1 + 2^64 · ([2^1406 π] + 741804).
const MODP_1536: &str = "\
FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED\
EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F\
83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA237327FFFFFFFFFFFFFFFF";

/// RFC 3526 §3: 2^2048 - 2^1984 - 1 + 2^64 · ([2^1918 π] + 124476).
const MODP_2048: &str = "\
FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED\
EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F\
83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B\
E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
15728E5A8AACAA68FFFFFFFFFFFFFFFF";

/// RFC 3526 §4: 2^3072 - 2^3008 - 1 + 2^64 · ([2^2942 π] + 1690314).
const MODP_3072: &str = "\
FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED\
EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F\
83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B\
E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7\
ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521F2B18177B200C\
BBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF";

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn the_ends_of_the_range_are_refused() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
        for modulus in [Modulus::Bits1536, Modulus::Bits2048, Modulus::Bits3072] {
            let secret = ModpSecret::generate(modulus, &mut rng);
            let one = BoxedUint::one_with_precision(modulus.bits());
            let mut number = modulus.number();
            assert_eq!(number.bits_vartime(), modulus.bits());
            for (name, valid) in [("p", false), ("p - 1", false), ("p - 2", true)] {
                assert_eq!(secret.agree(&number.to_be_bytes()).is_some(), valid, "{name}");
                number = number.wrapping_sub(&one);
            }
        }
    }
}

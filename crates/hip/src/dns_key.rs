//! Host Identities as the DNS has them: the algorithm numbers and key formats of IPSECKEY (RFC 4025 §2.4), which the HIP record
//! has taken over (RFC 8005 §5.2, §5.5). They are not those of HOST_ID.

use crate::identity::{ALGORITHM_ECDSA, ALGORITHM_RSA, IdentityError, PublicIdentity};

/// RSA, in the format of RFC 3110 §2, which is HOST_ID's, too.
const RSA: u8 = 2;
/// ECDSA: the two coordinates one after the other (RFC 6605 §4), whose length says which curve.
const ECDSA: u8 = 3;
/// HOST_ID's curve number, and before the coordinates of a point the octet that says that both are there (SEC 1 §2.3.3).
const BEFORE_P256: [u8; 3] = [0, 1, 4];
const BEFORE_P384: [u8; 3] = [0, 2, 4];

impl PublicIdentity {
    /// From the PK algorithm and the public key of a HIP record.
    ///
    /// # Errors
    /// [`IdentityError::UnknownAlgorithm`] for another algorithm than 2 (RSA) and 3 (ECDSA on P-256 or P-384); otherwise what is
    /// wrong with the key.
    pub fn from_dns(algorithm: u8, key: &[u8]) -> Result<Self, IdentityError> {
        let before = match (algorithm, key.len()) {
            (RSA, _) => return Self::from_wire(ALGORITHM_RSA, key),
            (ECDSA, 64) => BEFORE_P256,
            (ECDSA, 96) => BEFORE_P384,
            (ECDSA, _) => return Err(IdentityError::BadPublicKey),
            (number, _) => return Err(IdentityError::UnknownAlgorithm { number: number.into() }),
        };
        Self::from_wire(ALGORITHM_ECDSA, &[&before, key].concat())
    }

    /// The PK algorithm and the public key for a HIP record; nothing for a kind of key that the DNS has no number for.
    pub fn to_dns(&self) -> Option<(u8, &[u8])> {
        match self.algorithm_number() {
            ALGORITHM_RSA => Some((RSA, self.encoded())),
            ALGORITHM_ECDSA => Some((ECDSA, self.encoded().get(BEFORE_P256.len()..)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Algorithm, HostIdentity};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn every_kind_of_key_comes_back_with_its_hit() {
        let mut rng = ChaCha20Rng::seed_from_u64(8005);
        for (algorithm, number, length) in
            [(Algorithm::EcdsaP256, 3, 64), (Algorithm::EcdsaP384, 3, 96), (Algorithm::Rsa, 2, 260)]
        {
            let identity = HostIdentity::generate(algorithm, &mut rng).unwrap();
            let (told, key) = identity.public().to_dns().unwrap();
            // RFC 6605 §4, and RFC 3110 §2: a length of one octet, 65537, and 2048 bits.
            assert_eq!((told, key.len()), (number, length));
            assert_eq!(PublicIdentity::from_dns(told, key).unwrap().hit(), identity.hit());
            assert!(PublicIdentity::from_dns(told, &key[1..]).is_err());
        }
    }

    #[test]
    fn what_is_no_key_or_of_another_kind_is_told() {
        for number in [0, 1, 4, 255] {
            let error = PublicIdentity::from_dns(number, &[1; 64]).map(|_| ()).unwrap_err();
            assert_eq!(error, IdentityError::UnknownAlgorithm { number: number.into() });
        }
        // Neither on the curve.
        for length in [64, 96] {
            assert!(matches!(PublicIdentity::from_dns(3, &vec![1; length]), Err(IdentityError::BadPublicKey)));
        }
        assert!(matches!(PublicIdentity::from_dns(3, &[]), Err(IdentityError::BadPublicKey)));
        assert!(PublicIdentity::from_dns(2, &[]).is_err());
    }
}

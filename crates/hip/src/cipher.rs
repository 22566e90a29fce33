//! HIP_CIPHER: encryption of parameters inside HIP packets (RFC 7401 §5.2.8, §5.2.18).
//!
//! ENCRYPTED carries IV | ciphertext; with AES the content is padded to whole blocks as PKCS #5 does, n bytes of value n, and
//! that padding belongs to the cipher, not to the parameters inside.

use aes::{Aes128, Aes256};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use rand_core::CryptoRng;

/// Bytes of AES-CBC's IV: a block.
const IV: usize = 16;

/// A cipher for ENCRYPTED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HipCipher {
    /// NULL-ENCRYPT, number 1: for debugging; no IV.
    Null,
    /// AES-128-CBC, number 2: what every HIP host must have.
    Aes128Cbc,
    /// AES-256-CBC, number 4.
    Aes256Cbc,
}

/// The content of ENCRYPTED could not be decrypted. There is one error for all causes: the packet's MAC has been checked
/// before, so this is a peer with other keys or a broken one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of ENCRYPTED cannot be decrypted")]
pub struct CannotDecrypt;

impl HipCipher {
    /// All ciphers that protect something, the one we prefer first. NULL is not offered.
    pub const ALL: [Self; 2] = [Self::Aes256Cbc, Self::Aes128Cbc];

    /// The number in HIP_CIPHER.
    pub fn number(self) -> u16 {
        match self {
            Self::Null => 1,
            Self::Aes128Cbc => 2,
            Self::Aes256Cbc => 4,
        }
    }

    /// The cipher of a number in HIP_CIPHER. None if we don't have it.
    pub fn from_number(number: u16) -> Option<Self> {
        [Self::Null, Self::Aes128Cbc, Self::Aes256Cbc].into_iter().find(|cipher| cipher.number() == number)
    }

    /// Bytes of key that KEYMAT gives: 0, 16 or 32.
    pub fn key_len(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Aes128Cbc => 16,
            Self::Aes256Cbc => 32,
        }
    }

    /// IV | ciphertext of `plain`, as ENCRYPTED carries it after its reserved field.
    ///
    /// # Panics
    /// If `key` has not [`HipCipher::key_len`] bytes ([`crate::keymat`] draws the right ones).
    pub fn encrypt(self, key: &[u8], rng: &mut dyn CryptoRng, plain: &[u8]) -> Vec<u8> {
        match self {
            Self::Null => plain.to_vec(),
            Self::Aes128Cbc => encrypt::<Aes128>(key, rng, plain),
            Self::Aes256Cbc => encrypt::<Aes256>(key, rng, plain),
        }
    }

    /// The plaintext of an ENCRYPTED's IV | ciphertext. Only after the packet's HIP_MAC was found right: what is wrong with
    /// the padding can be measured.
    ///
    /// # Errors
    /// [`CannotDecrypt`].
    pub fn decrypt(self, key: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, CannotDecrypt> {
        match self {
            Self::Null => Ok(encrypted.to_vec()),
            Self::Aes128Cbc => decrypt::<Aes128>(key, encrypted),
            Self::Aes256Cbc => decrypt::<Aes256>(key, encrypted),
        }
    }
}

fn encrypt<C: BlockCipherEncrypt + KeyInit>(key: &[u8], rng: &mut dyn CryptoRng, plain: &[u8]) -> Vec<u8> {
    let mut output = vec![0; IV];
    rng.fill_bytes(&mut output);
    let cipher = cbc::Encryptor::<C>::new_from_slices(key, &output).expect("a key as long as the cipher's");
    output.extend(cipher.encrypt_padded_vec::<Pkcs7>(plain));
    output
}

fn decrypt<C: BlockCipherDecrypt + KeyInit>(key: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, CannotDecrypt> {
    let (iv, text) = encrypted.split_at_checked(IV).ok_or(CannotDecrypt)?;
    let cipher = cbc::Decryptor::<C>::new_from_slices(key, iv).map_err(|_| CannotDecrypt)?;
    cipher.decrypt_padded_vec::<Pkcs7>(text).map_err(|_| CannotDecrypt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// A generator of 00 01 02 …, the IV of NIST's vectors.
    struct Counting;

    impl rand_core::TryRng for Counting {
        type Error = core::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(0)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(0)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
            (0u8..).zip(bytes).for_each(|(value, byte)| *byte = value);
            Ok(())
        }
    }

    impl rand_core::TryCryptoRng for Counting {}

    /// NIST SP 800-38A F.2.1 and F.2.5, the first two blocks; what follows them here is the block of padding.
    #[test]
    fn cbc_of_sp_800_38a() {
        let iv = "000102030405060708090a0b0c0d0e0f";
        let plain = unhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        for (cipher, key, blocks) in [
            (
                HipCipher::Aes128Cbc,
                "2b7e151628aed2a6abf7158809cf4f3c",
                "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
            ),
            (
                HipCipher::Aes256Cbc,
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d",
            ),
        ] {
            let key = unhex(key);
            let encrypted = cipher.encrypt(&key, &mut Counting, &plain);
            assert_eq!(encrypted[..48], unhex(&format!("{iv}{blocks}")));
            assert_eq!(encrypted.len(), 64);
            assert_eq!(cipher.decrypt(&key, &encrypted).unwrap(), plain);
        }
    }

    proptest! {
        #[test]
        fn decryption_inverts_encryption(plain: Vec<u8>, seed: u64) {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            for cipher in [HipCipher::Null, HipCipher::Aes128Cbc, HipCipher::Aes256Cbc] {
                let key = vec![7; cipher.key_len()];
                let encrypted = cipher.encrypt(&key, &mut rng, &plain);
                prop_assert_eq!(&cipher.decrypt(&key, &encrypted).unwrap(), &plain);
            }
        }

        #[test]
        fn any_bytes_are_decrypted_or_refused(bytes: Vec<u8>) {
            let _ = HipCipher::Aes128Cbc.decrypt(&[1; 16], &bytes);
            let _ = HipCipher::Aes256Cbc.decrypt(&[1; 32], &bytes);
            prop_assert_eq!(HipCipher::Aes128Cbc.decrypt(&[1; 15], &bytes), Err(CannotDecrypt));
        }
    }
}

//! Encryption and authentication of one direction, with everything that depends only on the keys prepared once.

use super::suite::{EspKeys, EspSuite, HEADER, ICV};
use aes::{Aes128, Aes128Dec, Aes128Enc, Aes256Dec, Aes256Enc};
use aes_gcm::AesGcm;
use aes_gcm::aead::array::Array;
use aes_gcm::aead::consts::{U11, U12, U16};
use aes_gcm::aead::{AeadInOut, inout::InOutBuf};
use cbc::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What seals packets. The GCM variant is larger than the others; SAs are few and long-lived, and a pointer less is a
/// cache miss less per packet.
#[expect(clippy::large_enum_variant, reason = "few, long-lived, used for every packet")]
pub(super) enum Sealer {
    Gcm(Gcm),
    Ccm(Ccm),
    Null(Hmac<Sha256>),
    Cbc128(Aes128Enc, Hmac<Sha256>),
    Cbc256(Aes256Enc, Hmac<Sha256>),
}

/// What opens packets.
#[expect(clippy::large_enum_variant, reason = "few, long-lived, used for every packet")]
pub(super) enum Opener {
    Gcm(Gcm),
    Ccm(Ccm),
    Null(Hmac<Sha256>),
    Cbc128(Aes128Dec, Hmac<Sha256>),
    Cbc256(Aes256Dec, Hmac<Sha256>),
}

/// AES-GCM and the salt of its nonces.
pub(super) struct Gcm {
    cipher: AesGcm<Aes128, U12>,
    salt: [u8; 4],
    iv: Iv,
}

/// Where the IV of GCM is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iv {
    /// In the packet, behind the header.
    Explicit,
    /// It is the sequence number, of 64 bits in any case (RFC 8750 §4).
    Implicit,
}

/// The keys have not the lengths of the suite.
#[derive(Debug)]
pub(super) struct WrongKeyLength;

impl From<aes::cipher::InvalidLength> for WrongKeyLength {
    fn from(_: aes::cipher::InvalidLength) -> Self {
        Self
    }
}

impl Sealer {
    pub(super) fn new(suite: EspSuite, keys: &EspKeys) -> Result<Self, WrongKeyLength> {
        Ok(match suite {
            EspSuite::Aes128Gcm16 => Self::Gcm(Gcm::new(keys, Iv::Explicit)?),
            EspSuite::Aes128Gcm16Iiv => Self::Gcm(Gcm::new(keys, Iv::Implicit)?),
            EspSuite::Aes128Ccm16 => Self::Ccm(Ccm::new(keys)?),
            EspSuite::NullHmacSha256 => Self::Null(hmac_of(suite, keys)?),
            EspSuite::Aes128CbcHmacSha256 => {
                Self::Cbc128(Aes128Enc::new_from_slice(&keys.encryption)?, hmac_of(suite, keys)?)
            }
            EspSuite::Aes256CbcHmacSha256 => {
                Self::Cbc256(Aes256Enc::new_from_slice(&keys.encryption)?, hmac_of(suite, keys)?)
            }
        })
    }

    /// Encrypts in place a whole packet: header | IV | plaintext of the right alignment | space for the ICV, which is
    /// filled in. `upper`: the upper half of the sequence number, where it has 64 bits.
    pub(super) fn seal(&self, packet: &mut [u8], upper: Option<u32>) {
        let Some((body, icv)) = packet.split_last_chunk_mut::<ICV>() else { return };
        match self {
            Self::Gcm(gcm) => gcm.seal(body, upper, icv),
            Self::Ccm(ccm) => ccm.seal(body, upper, icv),
            Self::Null(hmac) => *icv = icv_of(hmac, body, upper),
            Self::Cbc128(cipher, hmac) => {
                cbc_encrypt(cipher, body);
                *icv = icv_of(hmac, body, upper);
            }
            Self::Cbc256(cipher, hmac) => {
                cbc_encrypt(cipher, body);
                *icv = icv_of(hmac, body, upper);
            }
        }
    }
}

impl Opener {
    pub(super) fn new(suite: EspSuite, keys: &EspKeys) -> Result<Self, WrongKeyLength> {
        Ok(match suite {
            EspSuite::Aes128Gcm16 => Self::Gcm(Gcm::new(keys, Iv::Explicit)?),
            EspSuite::Aes128Gcm16Iiv => Self::Gcm(Gcm::new(keys, Iv::Implicit)?),
            EspSuite::Aes128Ccm16 => Self::Ccm(Ccm::new(keys)?),
            EspSuite::NullHmacSha256 => Self::Null(hmac_of(suite, keys)?),
            EspSuite::Aes128CbcHmacSha256 => {
                Self::Cbc128(Aes128Dec::new_from_slice(&keys.encryption)?, hmac_of(suite, keys)?)
            }
            EspSuite::Aes256CbcHmacSha256 => {
                Self::Cbc256(Aes256Dec::new_from_slice(&keys.encryption)?, hmac_of(suite, keys)?)
            }
        })
    }

    /// Checks the ICV of a packet whose length is a valid one of the suite and, if it is right, appends the plaintext
    /// (payload, padding and trailer) to `out`. False, and `out` unchanged, if it is wrong. `upper`: the upper half of the
    /// sequence number, where it has 64 bits.
    pub(super) fn open(&self, packet: &[u8], upper: Option<u32>, out: &mut Vec<u8>) -> bool {
        let Some((body, icv)) = packet.split_last_chunk::<ICV>() else { return false };
        match self {
            Self::Gcm(gcm) => gcm.open(body, upper, icv, out),
            Self::Ccm(ccm) => ccm.open(body, upper, icv, out),
            Self::Null(hmac) => {
                let right = icv_is_right(hmac, body, upper, icv);
                out.extend(body.get(HEADER..).filter(|_| right).unwrap_or_default());
                right
            }
            Self::Cbc128(cipher, hmac) => icv_is_right(hmac, body, upper, icv) && cbc_decrypt(cipher, body, out),
            Self::Cbc256(cipher, hmac) => icv_is_right(hmac, body, upper, icv) && cbc_decrypt(cipher, body, out),
        }
    }
}

impl Gcm {
    const IV: usize = 8;

    fn new(keys: &EspKeys, iv: Iv) -> Result<Self, WrongKeyLength> {
        let (key, salt) = keys.encryption.split_last_chunk::<4>().ok_or(WrongKeyLength)?;
        if !keys.authentication.is_empty() {
            return Err(WrongKeyLength);
        }
        Ok(Self { cipher: AesGcm::new_from_slice(key)?, salt: *salt, iv })
    }

    /// RFC 4106 §4: nonce = salt | IV.
    fn nonce(&self, iv: &[u8; Self::IV]) -> Array<u8, U12> {
        let mut nonce = Array::default();
        nonce[..4].copy_from_slice(&self.salt);
        nonce[4..].copy_from_slice(iv);
        nonce
    }

    fn seal(&self, body: &mut [u8], upper: Option<u32>, icv: &mut [u8; ICV]) {
        let Some((header, rest)) = body.split_first_chunk_mut::<HEADER>() else { return };
        let Some((iv, text)) = (match self.iv {
            Iv::Implicit => Some((implicit_iv(header, upper), rest)),
            Iv::Explicit => rest.split_first_chunk_mut::<{ Self::IV }>().map(|(iv, text)| (*iv, text)),
        }) else {
            return;
        };
        let long = upper.map(|upper| with_upper(header, upper));
        let data = long.as_ref().map_or(&header[..], |long| &long[..]);
        match self.cipher.encrypt_inout_detached(&self.nonce(&iv), data, InOutBuf::from(text)) {
            Ok(tag) => *icv = tag.0,
            // The limit is 2^36 - 32 bytes of plaintext (NIST SP 800-38D §5.2.1.1); an ESP packet has less than 2^17.
            Err(_) => unreachable!("plaintext longer than GCM's limit"),
        }
    }

    fn open(&self, body: &[u8], upper: Option<u32>, icv: &[u8; ICV], out: &mut Vec<u8>) -> bool {
        let Some((header, rest)) = body.split_first_chunk::<HEADER>() else { return false };
        let Some((iv, text)) = (match self.iv {
            Iv::Implicit => Some((implicit_iv(header, upper), rest)),
            Iv::Explicit => rest.split_first_chunk::<{ Self::IV }>().map(|(iv, text)| (*iv, text)),
        }) else {
            return false;
        };
        let start = out.len();
        out.extend_from_slice(text);
        let buffer = InOutBuf::from(&mut out[start..]);
        let long = upper.map(|upper| with_upper(header, upper));
        let data = long.as_ref().map_or(&header[..], |long| &long[..]);
        let right = self.cipher.decrypt_inout_detached(&self.nonce(&iv), data, buffer, &Array(*icv)).is_ok();
        if !right {
            out.truncate(start);
        }
        right
    }
}

/// AES-CCM and the salt of its nonces.
pub(super) struct Ccm {
    cipher: ccm::Ccm<Aes128, U16, U11>,
    salt: [u8; 3],
}

impl Ccm {
    const IV: usize = 8;

    fn new(keys: &EspKeys) -> Result<Self, WrongKeyLength> {
        let (key, salt) = keys.encryption.split_last_chunk::<3>().ok_or(WrongKeyLength)?;
        if !keys.authentication.is_empty() {
            return Err(WrongKeyLength);
        }
        Ok(Self { cipher: KeyInit::new_from_slice(key)?, salt: *salt })
    }

    /// RFC 4309 §4: nonce = salt | IV.
    fn nonce(&self, iv: &[u8; Self::IV]) -> Array<u8, U11> {
        let mut nonce = Array::default();
        nonce[..3].copy_from_slice(&self.salt);
        nonce[3..].copy_from_slice(iv);
        nonce
    }

    fn seal(&self, body: &mut [u8], upper: Option<u32>, icv: &mut [u8; ICV]) {
        let Some((header, rest)) = body.split_first_chunk_mut::<HEADER>() else { return };
        let Some((iv, text)) = rest.split_first_chunk_mut::<{ Self::IV }>() else { return };
        let long = upper.map(|upper| with_upper(header, upper));
        let data = long.as_ref().map_or(&header[..], |long| &long[..]);
        match self.cipher.encrypt_inout_detached(&self.nonce(iv), data, InOutBuf::from(text)) {
            Ok(tag) => *icv = tag.0,
            // With a nonce of 11 bytes the limit is 2^32 - 1 bytes (RFC 3610 §2.1); an ESP packet has less than 2^17.
            Err(_) => unreachable!("plaintext longer than CCM's limit"),
        }
    }

    fn open(&self, body: &[u8], upper: Option<u32>, icv: &[u8; ICV], out: &mut Vec<u8>) -> bool {
        let Some((header, rest)) = body.split_first_chunk::<HEADER>() else { return false };
        let Some((iv, text)) = rest.split_first_chunk::<{ Self::IV }>() else { return false };
        let start = out.len();
        out.extend_from_slice(text);
        let buffer = InOutBuf::from(&mut out[start..]);
        let long = upper.map(|upper| with_upper(header, upper));
        let data = long.as_ref().map_or(&header[..], |long| &long[..]);
        let right = self.cipher.decrypt_inout_detached(&self.nonce(iv), data, buffer, &Array(*icv)).is_ok();
        if !right {
            out.truncate(start);
        }
        right
    }
}

/// RFC 8750 §4: the sequence number in 64 bits, whether or not it has an upper half.
fn implicit_iv(header: &[u8; HEADER], upper: Option<u32>) -> [u8; Gcm::IV] {
    let mut iv = [0; Gcm::IV];
    iv[..4].copy_from_slice(&upper.unwrap_or(0).to_be_bytes());
    iv[4..].copy_from_slice(&header[4..]);
    iv
}

/// RFC 4106 §5: the additional authenticated data is SPI | sequence number, of 32 or of 64 bits.
fn with_upper(header: &[u8; HEADER], upper: u32) -> [u8; HEADER + 4] {
    let mut data = [0; HEADER + 4];
    data[..4].copy_from_slice(&header[..4]);
    data[4..8].copy_from_slice(&upper.to_be_bytes());
    data[8..].copy_from_slice(&header[4..]);
    data
}

fn hmac_of(suite: EspSuite, keys: &EspKeys) -> Result<Hmac<Sha256>, WrongKeyLength> {
    // HMAC itself takes any length; RFC 4868 §2.1.1 allows only the hash's.
    if keys.authentication.len() != suite.authentication_key_len() {
        return Err(WrongKeyLength);
    }
    Ok(Hmac::new_from_slice(&keys.authentication)?)
}

/// RFC 4303 §3.3.2: encrypt first, then authenticate SPI to ciphertext. RFC 4868 §2.3: the first 128 bits.
fn icv_of(hmac: &Hmac<Sha256>, body: &[u8], upper: Option<u32>) -> [u8; ICV] {
    let mac = mac_of(hmac, body, upper);
    let full = mac.finalize().into_bytes();
    let mut icv = [0; ICV];
    icv.copy_from_slice(&full[..ICV]);
    icv
}

/// RFC 4303 §2.2.1: the upper half of a long sequence number follows what is sent.
fn mac_of(hmac: &Hmac<Sha256>, body: &[u8], upper: Option<u32>) -> Hmac<Sha256> {
    let mut mac = hmac.clone();
    mac.update(body);
    if let Some(upper) = upper {
        mac.update(&upper.to_be_bytes());
    }
    mac
}

fn icv_is_right(hmac: &Hmac<Sha256>, body: &[u8], upper: Option<u32>, icv: &[u8; ICV]) -> bool {
    // Constant time.
    mac_of(hmac, body, upper).verify_truncated_left(icv).is_ok()
}

fn cbc_encrypt<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>>(cipher: &C, body: &mut [u8]) {
    let Some((_, rest)) = body.split_first_chunk_mut::<HEADER>() else { return };
    let Some((iv, text)) = rest.split_first_chunk_mut::<16>() else { return };
    let (blocks, _) = Array::<u8, U16>::slice_as_chunks_mut(text);
    cbc::Encryptor::inner_iv_init(cipher, &Array(*iv)).encrypt_blocks(blocks);
}

fn cbc_decrypt<C>(cipher: &C, body: &[u8], out: &mut Vec<u8>) -> bool
where
    C: BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>,
{
    let Some((_, rest)) = body.split_first_chunk::<HEADER>() else { return false };
    let Some((iv, text)) = rest.split_first_chunk::<16>() else { return false };
    let start = out.len();
    out.extend_from_slice(text);
    let (blocks, _) = Array::<u8, U16>::slice_as_chunks_mut(&mut out[start..]);
    cbc::Decryptor::inner_iv_init(cipher, &Array(*iv)).decrypt_blocks(blocks);
    true
}

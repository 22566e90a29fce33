//! Which algorithms protect ESP, and the keys they take.

use crate::feedback::Features;
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of SPI and sequence number before the IV (RFC 4303 §2).
pub(super) const HEADER: usize = 8;
/// Bytes of ICV of all our suites: HMAC-SHA-256-128 (RFC 4868 §2.3) and the full tags of GCM (RFC 4106 §6)
/// and CCM (RFC 4309 §6).
pub(super) const ICV: usize = 16;
/// Bytes of the pad length and next header fields (RFC 4303 §2.5, §2.6).
pub(super) const TRAILER: usize = 2;

/// An ESP suite of RFC 7402 §5.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EspSuite {
    /// AES-GCM with a 16 octet ICV (RFC 4106), number 13. RFC 7402 gives it no key length: 128 bits, which is what
    /// RFC 8221 §5 asks every ESP implementation to have.
    Aes128Gcm16,
    /// The same with implicit IVs (RFC 8750): what number 13 is between two Sinnet hosts.
    Aes128Gcm16Iiv,
    /// AES-CCM with a 16 octet ICV (RFC 4309), number 11; 128 bits as for GCM.
    Aes128Ccm16,
    /// AES-128-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868), number 8: what every HIP host must have.
    Aes128CbcHmacSha256,
    /// AES-256-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868), number 9.
    Aes256CbcHmacSha256,
    /// NULL (RFC 2410) with HMAC-SHA-256-128, number 7: nothing is encrypted. Only where the user has said so (RFC 7402 §3.3.5).
    NullHmacSha256,
}

impl EspSuite {
    /// The suites that are offered unless something else is configured, the one we prefer first.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm16, Self::Aes256CbcHmacSha256, Self::Aes128CbcHmacSha256];
    /// All that there are: also those that are used only where the user asks for them.
    pub const KNOWN: [Self; 5] = [
        Self::Aes128Gcm16,
        Self::Aes256CbcHmacSha256,
        Self::Aes128CbcHmacSha256,
        Self::Aes128Ccm16,
        Self::NullHmacSha256,
    ];

    /// The Suite ID in ESP_TRANSFORM.
    pub fn number(self) -> u16 {
        match self {
            Self::NullHmacSha256 => 7,
            Self::Aes128CbcHmacSha256 => 8,
            Self::Aes256CbcHmacSha256 => 9,
            Self::Aes128Ccm16 => 11,
            Self::Aes128Gcm16 | Self::Aes128Gcm16Iiv => 13,
        }
    }

    /// The suite of a Suite ID. None if we don't have it.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::KNOWN.into_iter().find(|suite| suite.number() == number)
    }

    /// Whether RFC 7402 §5.1.2 leaves no choice how long its keys are. Of AES-GCM and AES-CCM it does.
    pub fn has_one_key_length(self) -> bool {
        !matches!(self, Self::Aes128Gcm16 | Self::Aes128Gcm16Iiv | Self::Aes128Ccm16)
    }

    /// What becomes of it between two hosts that can do this, if they are Sinnet hosts.
    pub fn between(self, features: Option<Features>) -> Self {
        match self {
            Self::Aes128Gcm16 if features.is_some_and(|features| features.implicit_iv) => Self::Aes128Gcm16Iiv,
            other => other,
        }
    }

    /// Bytes that KEYMAT gives for encryption: the AES key, for GCM followed by 4 bytes of salt (RFC 4106 §8.1), for CCM
    /// by 3 (RFC 4309 §7.1).
    pub fn encryption_key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Gcm16Iiv => 16 + 4,
            Self::Aes128Ccm16 => 16 + 3,
            Self::Aes128CbcHmacSha256 => 16,
            Self::Aes256CbcHmacSha256 => 32,
            Self::NullHmacSha256 => 0,
        }
    }

    /// Bytes that KEYMAT gives for authentication: 32 for HMAC-SHA-256 (RFC 4868 §2.1.1), none for GCM and CCM.
    pub fn authentication_key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Gcm16Iiv | Self::Aes128Ccm16 => 0,
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 | Self::NullHmacSha256 => 32,
        }
    }

    /// Bytes of the whole ESP packet (SPI to ICV) that carries a payload of `payload_len` bytes.
    pub fn sealed_len(self, payload_len: usize) -> usize {
        let text = (payload_len + TRAILER).next_multiple_of(self.alignment());
        HEADER + self.iv_len() + text + ICV
    }

    /// The largest payload in bytes whose ESP packet fits in `space` bytes; 0 if none does.
    pub fn max_payload(self, space: usize) -> usize {
        let text = space.saturating_sub(HEADER + self.iv_len() + ICV);
        (text - text % self.alignment()).saturating_sub(TRAILER)
    }

    /// Bytes of the IV in packets: a block for CBC (RFC 3602 §3), 8 for GCM (RFC 4106 §3.1) and CCM (RFC 4309 §3.1).
    pub(super) fn iv_len(self) -> usize {
        match self {
            Self::NullHmacSha256 | Self::Aes128Gcm16Iiv => 0,
            Self::Aes128Gcm16 | Self::Aes128Ccm16 => 8,
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 => 16,
        }
    }

    /// What the encrypted part's length is a multiple of, in bytes: the block, at least 4 (RFC 4303 §2.4).
    pub fn alignment(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Gcm16Iiv | Self::Aes128Ccm16 | Self::NullHmacSha256 => 4,
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 => 16,
        }
    }
}

/// The keys of one direction. Overwritten when dropped; not shown by `Debug`.
#[derive(Clone)]
pub struct EspKeys {
    /// [`EspSuite::encryption_key_len`] bytes.
    pub encryption: Zeroizing<Vec<u8>>,
    /// [`EspSuite::authentication_key_len`] bytes.
    pub authentication: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for EspKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EspKeys").finish_non_exhaustive()
    }
}

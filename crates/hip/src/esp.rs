//! ESP security associations: packets sealed and opened (RFC 4303 as RFC 7402 uses it).
//!
//! ```text
//! SPI (4) | sequence number (4) | IV (0, 8 or 16) | payload | padding 1 2 3 … | pad length | next header | ICV (16)
//!                                              \____________________ encrypted __________________/
//! ```
//!
//! Sequence numbers start at 1; nothing wraps: an SA that has used 2³² − 1 of them seals no more (RFC 4303 §3.3.3) and a rekey
//! has to come first. RFC 7402 §3.3.6 wants numbers of 64 bits, of which the ICV covers the upper half, and hosts that are
//! about have 32; so [`Numbers`] are found out from what the peer sends. Dummy packets (next header 59, RFC 4303 §2.6) are the caller's to
//! make and to drop.
//!
//! Nothing is allocated per packet beyond growing the output; ciphers and HMAC states are keyed once.

mod protection;
mod replay;
mod suite;

pub use suite::{EspKeys, EspSuite};

use protection::{Opener, Sealer, WrongKeyLength};
use rand_core::CryptoRng;
use replay::ReplayWindow;
use std::fmt;
use std::net::IpAddr;
use suite::{HEADER, ICV, TRAILER};
use wire::Spi;
use zeroize::Zeroize;

/// All 2³² − 1 sequence numbers of this SA are used: nothing can be sent before a rekey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sequence numbers of this security association are exhausted: rekey it")]
pub struct Exhausted;

/// Why a received ESP packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum OpenError {
    /// Shorter than an empty packet, or not a multiple of the cipher's block.
    #[error("the packet's length is not one of this ESP suite")]
    Short,
    /// The SPI is not that of this SA.
    #[error("the packet carries another SPI")]
    UnknownSpi,
    /// The sequence number was seen already or lies before the anti-replay window.
    #[error("the sequence number was seen already or is too old")]
    Replay,
    /// The ICV is wrong: forged, damaged, or made with other keys.
    #[error("the integrity check value is wrong")]
    BadIcv,
    /// The ICV is right, but the padding is not 1, 2, 3, … or longer than the packet.
    #[error("the padding is malformed")]
    BadPadding,
}

/// How long the sequence numbers of an SA are. In a packet is the lower half in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// 32 bits.
    #[default]
    Short,
    /// 64 bits: the ICV covers the upper half, too (RFC 4303 §2.2.1).
    Long,
}

impl Numbers {
    /// The other kind.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Short => Self::Long,
            Self::Long => Self::Short,
        }
    }
}

/// The direction in which we send.
pub struct OutboundSa {
    suite: EspSuite,
    spi: Spi,
    /// On the heap, so that no copies stay where the SA was before it was moved.
    sealer: Box<Sealer>,
    logged: Option<EspKeys>,
    sequence: u32,
    numbers: Numbers,
}

/// The direction in which we receive.
pub struct InboundSa {
    suite: EspSuite,
    spi: Spi,
    /// On the heap, so that no copies stay where the SA was before it was moved.
    opener: Box<Opener>,
    logged: Option<EspKeys>,
    window: ReplayWindow,
    /// Those of the last packet.
    numbers: Option<Numbers>,
    /// No others are taken.
    expected: Option<Numbers>,
}

impl OutboundSa {
    /// An SA that has sent nothing yet. `spi` is the one the receiver chose.
    ///
    /// # Panics
    /// If the keys have not the lengths of the suite ([`crate::keymat`] draws the right ones).
    pub fn new(suite: EspSuite, spi: Spi, keys: &EspKeys) -> Self {
        let sealer = Box::new(keyed(Sealer::new(suite, keys)));
        scrub_stack();
        Self { suite, spi, sealer, logged: None, sequence: 0, numbers: Numbers::Short }
    }

    /// Keeps the keys as well, for [`OutboundSa::keylog_line`].
    #[must_use]
    pub fn logged(mut self, keys: EspKeys) -> Self {
        self.logged = Some(keys);
        self
    }

    /// Appends the ESP packet of `payload` to `out`. `next_header` is the protocol of the payload (RFC 4303 §2.6). `rng`
    /// makes the IV of CBC; GCM's is the sequence number.
    ///
    /// # Errors
    /// [`Exhausted`] after 2³² − 1 packets; `out` is unchanged then.
    #[inline]
    pub fn seal(
        &mut self,
        next_header: u8,
        payload: &[u8],
        rng: &mut dyn CryptoRng,
        out: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        self.seal_parts(next_header, [payload, &[]], rng, out)
    }

    /// The same of a payload in two parts, one behind the other.
    ///
    /// # Errors
    /// As [`OutboundSa::seal`].
    #[inline]
    pub fn seal_parts(
        &mut self,
        next_header: u8,
        payload: [&[u8]; 2],
        rng: &mut dyn CryptoRng,
        out: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        // RFC 4303 §3.3.3: the counter must not cycle.
        let sequence = self.sequence.checked_add(1).ok_or(Exhausted)?;
        self.sequence = sequence;
        let start = out.len();
        let end = start + self.suite.sealed_len(payload.iter().map(|part| part.len()).sum());
        out.reserve(end - start);
        out.extend_from_slice(&self.spi.0.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        match self.suite {
            // RFC 4106 §3.1: never the same IV twice under one key; a counter is the way to do it.
            EspSuite::Aes128Gcm16 | EspSuite::Aes128Ccm16 => {
                out.extend_from_slice(&u64::from(sequence).to_be_bytes());
            }
            // RFC 8750 §4: it is that number, and not sent.
            EspSuite::NullHmacSha256 | EspSuite::Aes128Gcm16Iiv => {}
            // RFC 3602 §3: unpredictable.
            EspSuite::Aes128CbcHmacSha256 | EspSuite::Aes256CbcHmacSha256 => {
                let mut iv = [0; 16];
                rng.fill_bytes(&mut iv);
                out.extend_from_slice(&iv);
            }
        }
        payload.iter().for_each(|part| out.extend_from_slice(part));
        let padding = end - out.len() - TRAILER - ICV;
        // RFC 4303 §2.4: 1, 2, 3, …; less than a block of 16.
        out.extend_from_slice(&PADDING[..padding]);
        out.extend_from_slice(&[padding as u8, next_header]);
        out.extend_from_slice(&[0; ICV]);
        // No number is so great that it would have an upper half.
        let upper = (self.numbers == Numbers::Long).then_some(0);
        self.sealer.seal(&mut out[start..], upper);
        Ok(())
    }

    /// Uses up the next sequence number without sending a packet under it, and tells which one that was: a peer that
    /// says it has received it lies (RFC 9000 §21.4). To the peer it looks like a lost packet.
    ///
    /// # Errors
    /// [`Exhausted`] after 2³² − 1 numbers.
    pub fn skip(&mut self) -> Result<u32, Exhausted> {
        self.sequence = self.sequence.checked_add(1).ok_or(Exhausted)?;
        Ok(self.sequence)
    }

    /// How long the numbers are from now on. [`Numbers::Short`] until this is said.
    pub fn count_in(&mut self, numbers: Numbers) {
        self.numbers = numbers;
    }

    /// How long the numbers are.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// The SPI in the packets of this SA.
    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// The algorithms of this SA.
    pub fn suite(&self) -> EspSuite {
        self.suite
    }

    /// The number of the last packet sealed or skipped; 0 before the first.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Bytes of the ESP packet of a payload of `payload_len` bytes.
    pub fn sealed_len(&self, payload_len: usize) -> usize {
        self.suite.sealed_len(payload_len)
    }

    /// The largest payload in bytes whose ESP packet fits in `space` bytes; 0 if none does.
    pub fn max_payload(&self, space: usize) -> usize {
        self.suite.max_payload(space)
    }

    /// The line of Wireshark's file `esp_sa` with which it decrypts this SA's packets from `src` to `dst`. It holds the
    /// keys: for the user's own eyes only. Nothing where the keys were not kept, which is the rule.
    pub fn keylog_line(&self, src: IpAddr, dst: IpAddr) -> Option<String> {
        self.logged.as_ref().map(|keys| keylog_line(self.suite, self.spi, keys, src, dst))
    }
}

impl InboundSa {
    /// An SA that has received nothing yet. `spi` is the one we chose.
    ///
    /// # Panics
    /// If the keys have not the lengths of the suite ([`crate::keymat`] draws the right ones).
    pub fn new(suite: EspSuite, spi: Spi, keys: &EspKeys) -> Self {
        let opener = Box::new(keyed(Opener::new(suite, keys)));
        scrub_stack();
        Self { suite, spi, opener, logged: None, window: ReplayWindow::new(), numbers: None, expected: None }
    }

    /// Keeps the keys as well, for [`InboundSa::keylog_line`].
    #[must_use]
    pub fn logged(mut self, keys: EspKeys) -> Self {
        self.logged = Some(keys);
        self
    }

    /// Checks an ESP packet (SPI to ICV), appends its payload to `out` and returns the payload's protocol.
    ///
    /// # Errors
    /// [`OpenError`]; `out` is unchanged then. Only a packet with a right ICV moves the anti-replay window.
    #[inline]
    pub fn open(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Result<u8, OpenError> {
        let text = packet.len().checked_sub(HEADER + self.suite.iv_len() + ICV).ok_or(OpenError::Short)?;
        let alignment = self.suite.alignment();
        if text < alignment || !text.is_multiple_of(alignment) {
            return Err(OpenError::Short);
        }
        let ([s0, s1, s2, s3, n0, n1, n2, n3], _) = packet.split_first_chunk().ok_or(OpenError::Short)?;
        if Spi(u32::from_be_bytes([*s0, *s1, *s2, *s3])) != self.spi {
            return Err(OpenError::UnknownSpi);
        }
        let lower = u32::from_be_bytes([*n0, *n1, *n2, *n3]);
        let start = out.len();
        let (numbers, sequence) = self.authentic(packet, lower, out)?;
        self.numbers = Some(numbers);
        self.window.mark(sequence);
        match trailer(&out[start..]) {
            Some((payload_len, next_header)) => {
                out.truncate(start + payload_len);
                Ok(next_header)
            }
            None => {
                out.truncate(start);
                Err(OpenError::BadPadding)
            }
        }
    }

    /// The SPI in the packets of this SA.
    pub fn spi(&self) -> Spi {
        self.spi
    }

    /// The algorithms of this SA.
    pub fn suite(&self) -> EspSuite {
        self.suite
    }

    /// Decrypts a packet whose ICV is right; how long its number is, and which. What the peer has had last comes first. The
    /// other kind is taken as well, or two hosts that follow each other could end up with one kind each way.
    #[inline]
    fn authentic(&self, packet: &[u8], lower: u32, out: &mut Vec<u8>) -> Result<(Numbers, u64), OpenError> {
        let first = self.expected.or(self.numbers).unwrap_or_default();
        let second = self.expected.is_none().then_some(first.other());
        let mut error = OpenError::Replay;
        for numbers in std::iter::once(first).chain(second) {
            let (sequence, upper) = match numbers {
                Numbers::Short => (u64::from(lower), None),
                Numbers::Long => match self.window.whole(lower) {
                    Some(whole) => (whole, Some((whole >> 32) as u32)),
                    None => continue,
                },
            };
            // RFC 4303 §3.4.3: look before the cryptography, update only after it.
            if !self.window.is_fresh(sequence) {
                continue;
            }
            if self.opener.open(packet, upper, out) {
                return Ok((numbers, sequence));
            }
            error = OpenError::BadIcv;
        }
        Err(error)
    }

    /// The peer is known to have such numbers: a packet with others is refused at once.
    pub fn expect_numbers(&mut self, numbers: Numbers) {
        self.expected = Some(numbers);
    }

    /// How long the numbers of the peer's last packet are; not known before its first.
    pub fn numbers(&self) -> Option<Numbers> {
        self.numbers
    }

    /// The highest sequence number accepted; 0 before the first.
    pub fn highest(&self) -> u64 {
        self.window.highest()
    }

    /// Bytes of the ESP packet of a payload of `payload_len` bytes.
    pub fn sealed_len(&self, payload_len: usize) -> usize {
        self.suite.sealed_len(payload_len)
    }

    /// The line of Wireshark's file `esp_sa` with which it decrypts this SA's packets from `src` to `dst`. It holds the
    /// keys: for the user's own eyes only. Nothing where the keys were not kept, which is the rule.
    pub fn keylog_line(&self, src: IpAddr, dst: IpAddr) -> Option<String> {
        self.logged.as_ref().map(|keys| keylog_line(self.suite, self.spi, keys, src, dst))
    }
}

impl fmt::Debug for OutboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, spi, sequence, .. } = self;
        write!(f, "OutboundSa {{ {spi}, {suite:?}, sequence {sequence} }}")
    }
}

impl fmt::Debug for InboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, spi, window, .. } = self;
        write!(f, "InboundSa {{ {spi}, {suite:?}, highest {} }}", window.highest())
    }
}

/// RFC 4303 §2.4: the monotonically increasing padding of up to a block less one byte.
const PADDING: [u8; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Overwrites what keying has left of key schedules in dead stack frames. A best effort: the compiler promises nothing.
#[inline(never)]
fn scrub_stack() {
    let mut frames = [0_u8; 16 << 10];
    std::hint::black_box(&mut frames);
    frames.zeroize();
    std::hint::black_box(&frames);
}

fn keyed<T>(result: Result<T, WrongKeyLength>) -> T {
    result.unwrap_or_else(|WrongKeyLength| panic!("ESP keys of another length than the suite's"))
}

/// Length of the payload and next header of a decrypted text. None if the padding is wrong.
fn trailer(text: &[u8]) -> Option<(usize, u8)> {
    let (rest, [pad_len, next_header]) = text.split_last_chunk()?;
    let payload_len = rest.len().checked_sub(usize::from(*pad_len))?;
    let (_, padding) = rest.split_at(payload_len);
    // RFC 4303 §2.4: the receiver should inspect the padding. Up to 255 bytes, more than our own.
    (1..=u8::MAX).zip(padding).all(|(expected, byte)| *byte == expected).then_some((payload_len, *next_header))
}

/// Wireshark's uat "esp_sa": protocol, source, destination, SPI, encryption, its key, authentication, its key. For
/// AES-GCM it wants the salt behind the key (as we keep it), names the ICV's length in the encryption, and refuses an
/// authentication other than NULL.
fn keylog_line(suite: EspSuite, spi: Spi, keys: &EspKeys, src: IpAddr, dst: IpAddr) -> String {
    let version = if src.is_ipv4() { "IPv4" } else { "IPv6" };
    let (encryption, authentication) = match suite {
        EspSuite::Aes128Gcm16 | EspSuite::Aes128Gcm16Iiv => ("AES-GCM with 16 octet ICV [RFC4106]", "NULL"),
        // Wireshark has no CCM for ESP; whoever reads the line has the keys all the same.
        EspSuite::Aes128Ccm16 => ("AES-CCM with 16 octet ICV [RFC4309]", "NULL"),
        EspSuite::NullHmacSha256 => ("NULL", "HMAC-SHA-256-128 [RFC4868]"),
        EspSuite::Aes128CbcHmacSha256 | EspSuite::Aes256CbcHmacSha256 => {
            ("AES-CBC [RFC3602]", "HMAC-SHA-256-128 [RFC4868]")
        }
    };
    let (encryption_key, authentication_key) = (hex(&keys.encryption), hex(&keys.authentication));
    format!(
        r#""{version}","{src}","{dst}","{spi}","{encryption}","{encryption_key}","{authentication}","{authentication_key}""#
    )
}

fn hex(key: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 + 2 * key.len());
    if !key.is_empty() {
        text.push_str("0x");
    }
    for byte in key {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;

//! From a Host Identity to its HIT: ORCHIDv2 (RFC 7343) as RFC 7401 §3.2 uses it.

use crate::rhash::Rhash;
use wire::Hit;

/// The Context ID of HIP HITs (RFC 7401 §3.2).
const CONTEXT_ID: [u8; 16] =
    [0xf0, 0xef, 0xf0, 0x2f, 0xbf, 0xf4, 0x3d, 0x0f, 0xe7, 0x93, 0x0c, 0x3c, 0x6e, 0x61, 0x74, 0xea];

/// The HIT of a Host Identity (the Host Identity field of HOST_ID, without its header, RFC 7401 §5.2.9) under the HIT
/// suite of `rhash`.
pub fn hit_from(rhash: Rhash, host_identity: &[u8]) -> Hit {
    // RFC 7343 §2: ORCHID = Prefix (28 bits) | OGA ID (4) | Encode_96(Hash(Context ID | Input)).
    let hash = rhash.digest(&[&CONTEXT_ID, host_identity]);
    // Encode_n takes the middle n bits of the output (RFC 7343 §2, RFC 7401 §3.2): bytes 10..22 of 32, 18..30 of 48.
    let start = (hash.len() - 12) / 2;
    let mut hit = [0; 16];
    hit[..4].copy_from_slice(&[0x20, 0x01, 0x00, 0x20 | rhash.suite()]);
    hit[4..].copy_from_slice(&hash[start..start + 12]);
    Hit(hit)
}

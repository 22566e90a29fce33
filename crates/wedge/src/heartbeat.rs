//! Heartbeats on the wire: an ICMPv6 echo request (RFC 4443 §4.1) from HIT to HIT in the path's own security association, which a
//! Sinnet peer answers on the same path. When they are sent, and what they tell, is the business of [`multipath::Heartbeat`].

/// Begins the data of our echo requests.
const MAGIC: [u8; 8] = *b"sinnet\0\x01";
/// Bytes of what an echo says: magic, path, nonce.
const SAID: usize = 18;
/// Bytes of data in an echo. With those behind what it says, ESP is never shorter than the hint with which a peer answers that does
/// not know the SPI any more (see `hip`, `hint.rs`), and which may not be longer.
pub(crate) const DATA: usize = SAID + 8;

/// What an echo of ours carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// The sender's number of the path.
    pub path: u16,
    /// Names this heartbeat.
    pub nonce: u64,
}

impl Beat {
    /// The data of an echo request.
    pub(crate) fn emit(self) -> [u8; DATA] {
        let mut data = [0; DATA];
        let (magic, rest) = data.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        let (path, rest) = rest.split_at_mut(2);
        path.copy_from_slice(&self.path.to_be_bytes());
        let (nonce, _) = rest.split_at_mut(8);
        nonce.copy_from_slice(&self.nonce.to_be_bytes());
        data
    }

    /// Reads the data of an echo request or reply; `None` when it is not one of ours. What follows is the padding of a probe.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (path, rest) = data.strip_prefix(&MAGIC)?.split_first_chunk::<2>()?;
        Some(Self { path: u16::from_be_bytes(*path), nonce: u64::from_be_bytes(*rest.first_chunk()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_after_emit_is_the_identity(path: u16, nonce: u64, padding in 0usize..2_000) {
            let beat = Beat { path, nonce };
            let mut data = beat.emit().to_vec();
            data.resize(DATA + padding, 0);
            prop_assert_eq!(Beat::parse(&data), Some(beat));
            prop_assert_eq!(Beat::parse(&data[..SAID - 1]), None);
        }

        #[test]
        fn other_data_is_not_ours(data in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Beat::parse(&data), None);
        }
    }
}

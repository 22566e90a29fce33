//! A packet for a program, with room in front of it.

use std::ops::{Deref, DerefMut};

/// Bytes of room in front of what came through an association: more than the header that a TUN device wants.
pub const HEADROOM: usize = 16;

/// An IP packet for a program. It may have room in front, in which headers were, or where others are to be put.
#[derive(Clone, Debug, Eq)]
pub struct Packet {
    bytes: Vec<u8>,
    start: usize,
}

impl Packet {
    /// The packet that begins at `start`; an empty one where there is nothing.
    pub(crate) fn behind(bytes: Vec<u8>, start: usize) -> Self {
        let start = start.min(bytes.len());
        Self { bytes, start }
    }

    /// Its memory, and where in it the packet begins.
    pub fn into_parts(self) -> (Vec<u8>, usize) {
        (self.bytes, self.start)
    }
}

impl From<Vec<u8>> for Packet {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, start: 0 }
    }
}

impl Deref for Packet {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }
}

/// What is in the room does not count.
impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

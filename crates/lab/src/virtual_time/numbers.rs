//! Between the positions of simulated TCP, which counts packets, and the sequence numbers of real TCP, which counts bytes.

use transport::expand;

/// The data of one direction of a connection: `total` bytes in packets of `mss` bytes, the last one shorter. Position 0 is the SYN,
/// position *n* the *n*-th packet of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// The initial sequence number.
    pub(crate) isn: u32,
    /// Bytes of a full packet, more than zero.
    pub(crate) mss: u64,
    /// Bytes of data.
    pub(crate) total: u64,
}

impl Numbers {
    /// The data before a packet of data, in bytes.
    pub(crate) fn offset(&self, position: u64) -> u64 {
        position.saturating_sub(1).saturating_mul(self.mss).min(self.total)
    }

    /// The bytes of the packet at a position; none for the SYN.
    pub(crate) fn length(&self, position: u64) -> usize {
        let length = if position == 0 { 0 } else { self.offset(position + 1) - self.offset(position) };
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    /// The first packet that is not wholly among the first `offset` bytes.
    pub(crate) fn position(&self, offset: u64) -> u64 {
        if offset >= self.total { self.total.div_ceil(self.mss) + 1 } else { offset / self.mss + 1 }
    }

    /// The sequence number of the byte at an offset.
    pub(crate) fn sequence(&self, offset: u64) -> u32 {
        // The SYN takes one number (RFC 9293 §3.4).
        self.isn.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// The offset of a sequence number, of those within 2³¹ of `near`.
    pub(crate) fn offset_of(&self, sequence: u32, near: u64) -> u64 {
        expand(sequence.wrapping_sub(self.isn).wrapping_sub(1), near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_cover_the_data_once(isn: u32, mss in 1u64..9000, total in 1u64..1_000_000) {
            let numbers = Numbers { isn, mss, total };
            let mut offset = 0;
            let mut position = 1;
            while offset < total {
                prop_assert_eq!(numbers.offset(position), offset);
                prop_assert_eq!(numbers.position(offset), position);
                offset += numbers.length(position) as u64;
                position += 1;
                // All of it arrived: the next one is missing.
                prop_assert_eq!(numbers.position(offset), position);
            }
            prop_assert_eq!((offset, numbers.length(position), numbers.length(0)), (total, 0, 0));
        }

        #[test]
        fn sequence_numbers_wrap(isn: u32, offset in 0u64..1 << 40, distance in 0u64..1 << 30) {
            let numbers = Numbers { isn, mss: 1400, total: u64::MAX };
            prop_assert_eq!(numbers.offset_of(numbers.sequence(offset), offset + distance), offset);
            prop_assert_eq!(numbers.offset_of(numbers.sequence(offset), offset.saturating_sub(distance)), offset);
        }
    }
}

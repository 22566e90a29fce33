//! What a virtual web server serves: bytes that follow from a seed and their place, so that any part can be made again.

/// The file of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern(pub(crate) u64);

impl Pattern {
    /// Appends `length` bytes from `offset` on.
    pub(crate) fn append(self, offset: u64, length: usize, out: &mut Vec<u8>) {
        let first = offset / 8;
        let skip = (offset % 8) as usize;
        let words = (skip + length).div_ceil(8) as u64;
        let bytes = (first..first + words).flat_map(|word| mix(self.0 ^ mix(word)).to_be_bytes());
        out.extend(bytes.skip(skip).take(length));
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_parts_of_the_whole(seed: u64, offset in 0usize..500, length in 0usize..300) {
            let mut whole = Vec::new();
            Pattern(seed).append(0, 1000, &mut whole);
            let mut part = vec![7];
            Pattern(seed).append(offset as u64, length, &mut part);
            prop_assert_eq!(&part[1..], &whole[offset..offset + length]);
        }
    }
}

//! A histogram whose buckets grow with the values: percentiles of any range within 3 %.

/// Buckets per doubling of the value: each is 1/32 wide.
const BITS: u32 = 5;

/// Counts of whole numbers, such as nanoseconds or packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The bucket of `counts[0]`.
    base: u32,
    counts: Vec<u32>,
    samples: u64,
    sum: f64,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Counts one value. Allocates only for a value outside of all that came before.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.samples == 0 {
            self.base = bucket(value);
            self.min = value;
        }
        self.samples += 1;
        self.sum += value as f64;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let bucket = bucket(value);
        match self.counts.get_mut(bucket.wrapping_sub(self.base) as usize) {
            Some(count) => *count = count.saturating_add(1),
            None => self.widen(bucket),
        }
    }

    /// How many values there were.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The least value; 0 without values.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The greatest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.samples == 0 { 0.0 } else { self.sum / self.samples as f64 }
    }

    /// The value that a share `p` (0 to 1) of all values does not exceed, within the width of a bucket.
    pub fn quantile(&self, p: f64) -> f64 {
        let wanted = (p.clamp(0.0, 1.0) * self.samples as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in (self.base..).zip(&self.counts) {
            seen += u64::from(*count);
            if seen >= wanted {
                return middle(index).clamp(self.min as f64, self.max as f64);
            }
        }
        self.max as f64
    }

    #[cold]
    fn widen(&mut self, bucket: u32) {
        if bucket < self.base {
            // A little more than asked for, because smaller values tend to come in steps.
            let base = bucket.saturating_sub(4);
            let more = (self.base - base) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.base = base;
        }
        let index = (bucket - self.base) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 8, 0);
        }
        self.counts[index] = 1.max(self.counts[index].saturating_add(1));
    }
}

/// Values below 2^BITS have a bucket each; above, BITS bits after the leading one tell the bucket.
#[inline]
fn bucket(value: u64) -> u32 {
    if value < 1 << BITS {
        return value as u32;
    }
    let exponent = 63 - value.leading_zeros();
    let mantissa = (value >> (exponent - BITS)) as u32 & ((1 << BITS) - 1);
    ((exponent - BITS + 1) << BITS) | mantissa
}

fn middle(bucket: u32) -> f64 {
    if bucket < 1 << BITS {
        return f64::from(bucket);
    }
    let shift = (bucket >> BITS) - 1;
    let low = u64::from((1 << BITS) | (bucket & ((1 << BITS) - 1))) << shift;
    low as f64 + ((1_u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The oracle is the sorted list.
        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(0u64..1 << 40, 1..300)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            for p in [0.0, 0.5, 0.95, 0.99, 1.0] {
                let rank = ((p * values.len() as f64).ceil().max(1.0) as usize) - 1;
                let (ours, exact) = (histogram.quantile(p), values[rank] as f64);
                prop_assert!((ours - exact).abs() <= exact / 32.0 + 0.5, "{} is not {}", ours, exact);
            }
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / values.len() as f64;
            prop_assert!((histogram.mean() - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert_eq!(histogram.samples(), values.len() as u64);
        }
    }
}

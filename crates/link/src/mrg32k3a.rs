//! The generator MRG32k3a (P. L'Ecuyer, *Good parameters and implementations for combined multiple recursive random
//! number generators*, Operations Research 47(1), 1999): that of ns-2 and ns-3, whose losses can be had packet by packet.

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

/// Two linear recurrences of order 3, combined.
#[derive(Clone, Debug)]
pub(crate) struct Mrg32k3a {
    first: [u64; 3],
    second: [u64; 3],
}

impl Mrg32k3a {
    /// All six numbers of the state are `seed`, as ns-2 seeds it.
    pub(crate) fn from_seed(seed: u64) -> Self {
        // Below both moduli and not zero: a state of zeros stays there.
        let seed = seed % M2;
        let seed = if seed == 0 { 1 } else { seed };
        Self { first: [seed; 3], second: [seed; 3] }
    }

    /// The next number, in (0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        let [a, b, c] = self.first;
        let p = (1_403_580 * b + (M1 - 810_728) * a % M1) % M1;
        self.first = [b, c, p];
        let [a, b, c] = self.second;
        let q = (527_612 * c + (M2 - 1_370_589) * a % M2) % M2;
        self.second = [b, c, q];
        let difference = if p > q { p - q } else { p + M1 - q };
        difference as f64 / (M1 + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ns-2.35 prints for `RandomVariable/Uniform` on an `RNG` with these seeds, to seven digits.
    #[test]
    fn the_numbers_are_those_of_ns2() {
        for (seed, numbers) in [
            (1, [0.000_339_577_2, 0.555_880_7, 0.014_204_66, 0.088_122_67]),
            (3, [0.001_008_187, 0.667_636_9, 0.042_603_44, 0.264_357_5]),
            (17, [0.005_688_457, 0.449_935_3, 0.241_416, 0.498_022_1]),
        ] {
            let mut generator = Mrg32k3a::from_seed(seed);
            for number in numbers {
                assert!((generator.unit() / number - 1.0).abs() < 5e-7);
            }
        }
    }
}

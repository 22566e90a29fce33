//! Random streams, one per component, all derived from one seed.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator behind every stream: xoshiro256++ (Blackman and Vigna, 2019). Fast and reproducible on every
/// machine, and not for keys.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A generator from a single number. Prefer [`Streams::stream`] for components of a run.
    pub fn from_seed(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number in `[low, high)`; `low` where the range is empty.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low).max(0.0) * self.unit()
    }

    /// A whole number in `[0, bound)`, without modulo bias worth measuring (Lemire's multiplication); 0 for bound 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// The random streams of one run. Each component asks for its own by name, so that adding a component leaves the
/// randomness of all others as it was.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// All the streams of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed that replays the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream of the component called `name`. The same seed and name give the same stream, always.
    pub fn stream(&self, name: &str) -> Rng {
        // FNV-1a over the name, then mixed with the seed by the finaliser of SplitMix64: neighbouring seeds and
        // similar names start far apart.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Rng::from_seed(mix(mix(self.seed) ^ hash))
    }
}

fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_depend_on_each_other() {
        let streams = Streams::new(7);
        let alone: Vec<u64> = {
            let mut rng = streams.stream("flow 1");
            (0..8).map(|_| rng.next_u64()).collect()
        };
        let _other = streams.stream("flow 2").next_u64();
        let mut again = streams.stream("flow 1");
        assert_eq!(alone, (0..8).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_ne!(alone[0], streams.stream("flow 2").next_u64());
        assert_ne!(alone[0], Streams::new(8).stream("flow 1").next_u64());
    }

    #[test]
    fn unit_has_the_mean_and_variance_of_the_uniform_distribution() {
        let mut rng = Rng::from_seed(1);
        let n = 200_000;
        let samples: Vec<f64> = (0..n).map(|_| rng.unit()).collect();
        let mean = samples.iter().sum::<f64>() / f64::from(n);
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        // Standard errors: 1/sqrt(12 n) = 0.00065 for the mean, about 0.00017 for the variance; five of each.
        assert!((mean - 0.5).abs() < 0.0033, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
    }
}

//! The puzzle of the base exchange: what a Responder makes an Initiator compute before it keeps any state
//! (RFC 7401 §4.1.2 and Appendix A).
//!
//! A solution is a J for which the K lowest-order bits of RHASH(I | HIT-I | HIT-R | J) are zero. I and J are as long as
//! RHASH's output.

use crate::rhash::Rhash;
use rand_core::CryptoRng;
use wire::Hit;

/// A puzzle on the way to its solution. The work can be cut in pieces of any size.
#[derive(Clone, Debug)]
pub struct Solver {
    rhash: Rhash,
    i: Vec<u8>,
    hit_i: Hit,
    hit_r: Hit,
    difficulty: u8,
    j: Vec<u8>,
    tried: u64,
}

impl Solver {
    /// Starts at a random J. `i` is #I of PUZZLE, RHASH_len bytes; `difficulty` is its K in bits.
    pub fn new(rhash: Rhash, i: &[u8], hit_i: Hit, hit_r: Hit, difficulty: u8, rng: &mut dyn CryptoRng) -> Self {
        let mut j = vec![0; rhash.len()];
        rng.fill_bytes(&mut j);
        Self { rhash, i: i.to_vec(), hit_i, hit_r, difficulty, j, tried: 0 }
    }

    /// Tries up to `tries` values (a solution takes 2^K on average) and returns J once it is found. None: not yet,
    /// call again.
    pub fn solve(&mut self, tries: u64) -> Option<Vec<u8>> {
        for _ in 0..tries {
            self.tried = self.tried.wrapping_add(1);
            if verify(self.rhash, &self.i, &self.hit_i, &self.hit_r, &self.j, self.difficulty) {
                return Some(self.j.clone());
            }
            // The next J: the whole string as a little-endian number plus one.
            for byte in &mut self.j {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
        None
    }

    /// How many values were tried so far, a hash each.
    pub fn tried(&self) -> u64 {
        self.tried
    }
}

/// A solution within `tries` attempts from a random start, or None.
pub fn solve(
    rhash: Rhash,
    i: &[u8],
    hit_i: Hit,
    hit_r: Hit,
    difficulty: u8,
    tries: u64,
    rng: &mut dyn CryptoRng,
) -> Option<Vec<u8>> {
    Solver::new(rhash, i, hit_i, hit_r, difficulty, rng).solve(tries)
}

/// True if `j` solves the puzzle: one hash. `hit_i` and `hit_r` are the HITs of Initiator and Responder. I and J of
/// another length than RHASH's are refused.
#[must_use]
pub fn verify(rhash: Rhash, i: &[u8], hit_i: &Hit, hit_r: &Hit, j: &[u8], difficulty: u8) -> bool {
    if i.len() != rhash.len() || j.len() != rhash.len() {
        return false;
    }
    // RFC 7401 §4.1.2: Ltrunc(RHASH(I | HIT-I | HIT-R | J), K) == 0.
    lowest_bits_are_zero(&rhash.digest(&[i, &hit_i.0, &hit_r.0, j]), difficulty)
}

/// The hash as a number in network byte order: its lowest-order bits are those of the last bytes.
fn lowest_bits_are_zero(hash: &[u8], bits: u8) -> bool {
    let mut left = u32::from(bits);
    for byte in hash.iter().rev() {
        if left < 8 {
            return byte.trailing_zeros() >= left;
        }
        if *byte != 0 {
            return false;
        }
        left -= 8;
    }
    left == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    const HIT_I: Hit = Hit([1; 16]);
    const HIT_R: Hit = Hit([2; 16]);

    #[test]
    fn solving_in_pieces_ends_and_verifies() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let i = [7; 32];
        let mut solver = Solver::new(Rhash::Sha256, &i, HIT_I, HIT_R, 8, &mut rng);
        // 2^8 tries on average; 2^13 fail with probability e^-32.
        let j = (0..1 << 9).find_map(|_| solver.solve(16)).expect("a solution");
        assert!(verify(Rhash::Sha256, &i, &HIT_I, &HIT_R, &j, 8));
        assert!(!verify(Rhash::Sha256, &i, &HIT_I, &HIT_R, &j[1..], 0), "J of a wrong length");
        assert!(!verify(Rhash::Sha384, &i, &HIT_I, &HIT_R, &j, 0), "I of a wrong length");
    }

    #[test]
    fn difficulty_zero_takes_any_j_and_an_unsolvable_puzzle_stops() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        assert!(solve(Rhash::Sha384, &[0; 48], HIT_I, HIT_R, 0, 1, &mut rng).is_some());
        assert!(solve(Rhash::Sha384, &[0; 48], HIT_I, HIT_R, 255, 100, &mut rng).is_none());
    }

    proptest! {
        /// Against the definition on a u64: hash mod 2^K = 0.
        #[test]
        fn lowest_bits_of_a_number(number: u64, shift in 0u32..64, bits in 0u8..64) {
            let number = number << shift;
            prop_assert_eq!(lowest_bits_are_zero(&number.to_be_bytes(), bits), number % (1u64 << bits) == 0);
        }
    }
}

//! The one place where the daemon reads a clock and the system's randomness. Everything below it takes both as arguments.

use std::io;

use clock::{Duration, Instant};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryRng};
use zeroize::Zeroizing;

/// The monotonic clock, counted from the start of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { origin: read() }
    }

    /// The time since [`Clock::start`].
    pub fn now(&self) -> Instant {
        Instant::ZERO + Duration::from(read().saturating_duration_since(self.origin))
    }
}

#[expect(clippy::disallowed_methods, reason = "the daemon turns real time into the argument of everything below it")]
fn read() -> std::time::Instant {
    std::time::Instant::now()
}

/// Seconds since 1970, for the one number that has to grow from start to start (RFC 7401 §5.2.3).
#[expect(clippy::disallowed_methods, reason = "read once, at the start")]
pub fn seconds_since_1970() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time of processors that this process has used, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A generator for keys and nonces, seeded with 256 bits from the operating system. A stream cipher rather than a system
/// call per number, because every packet of a CBC suite needs an initialisation vector.
///
/// # Errors
/// Where the system has no randomness to give.
pub fn random() -> io::Result<ChaCha20Rng> {
    let mut seed = Zeroizing::new([0_u8; 32]);
    getrandom::SysRng.try_fill_bytes(seed.as_mut_slice()).map_err(io::Error::other)?;
    Ok(ChaCha20Rng::from_seed(*seed))
}

/// How long [`stir`] may be left out.
pub const STIR_AFTER: Duration = Duration::from_millis(100);

/// Mixes fresh randomness from the operating system into the generator. A virtual machine that was cloned, or restored from a
/// snapshot, would otherwise draw the same keys, nonces and SPIs again; the kernel is told of that (vmgenid), we are not. What an
/// established association has, is not helped by it: its next packets carry the numbers that the other copy's carry.
pub fn stir(random: &mut ChaCha20Rng) {
    let mut fresh = Zeroizing::new([0_u8; 32]);
    // Without fresh randomness the old is as good as it was.
    if getrandom::SysRng.try_fill_bytes(fresh.as_mut_slice()).is_ok() {
        let mut seed = Zeroizing::new([0_u8; 32]);
        random.fill_bytes(seed.as_mut_slice());
        seed.iter_mut().zip(fresh.iter()).for_each(|(old, fresh)| *old ^= fresh);
        *random = ChaCha20Rng::from_seed(*seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_copies_of_a_generator_go_their_own_ways_once_stirred() {
        let mut one = ChaCha20Rng::from_seed([7; 32]);
        let mut other = one.clone();
        assert_eq!(one.next_u64(), other.next_u64());
        stir(&mut one);
        stir(&mut other);
        assert_ne!(one.next_u64(), other.next_u64());
    }
}

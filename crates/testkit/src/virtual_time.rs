//! Virtual time: from one event to the next.

use clock::Instant;

/// Events at one instant before time stands still. What is delivered may be answered at once, and that again.
const MOST_AT_ONCE: u32 = 20;
/// Events of one run.
const MOST_EVENTS: u64 = 50_000_000;

/// Hosts, and what joins them.
pub trait World {
    /// Does what is due at `now`.
    fn step(&mut self, now: Instant);
    /// When something is due next; `None`: never again.
    fn next_event(&self) -> Option<Instant>;
}

/// Runs a world from `now` until nothing is due before or at `end`, where the time is `end` then.
///
/// # Panics
/// Where time stands still: a deadline that has passed stays.
pub fn run(world: &mut impl World, now: &mut Instant, end: Instant) {
    let mut still = 0;
    for _ in 0..MOST_EVENTS {
        world.step(*now);
        let Some(next) = world.next_event().filter(|next| *next <= end) else {
            *now = end.max(*now);
            return;
        };
        still = if next > *now { 0 } else { still + 1 };
        assert!(still < MOST_AT_ONCE, "time stands still at {now}: something is due at {next}");
        *now = next.max(*now);
    }
    panic!("{MOST_EVENTS} events until {now}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Duration;

    struct Ticks {
        every: Duration,
        next: Instant,
        seen: Vec<Instant>,
    }

    impl World for Ticks {
        fn step(&mut self, now: Instant) {
            if self.next <= now {
                self.seen.push(now);
                self.next += self.every;
            }
        }
        fn next_event(&self) -> Option<Instant> {
            Some(self.next)
        }
    }

    #[test]
    fn events_come_at_their_time_and_a_standstill_is_noticed() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let (mut now, mut ticks) =
            (Instant::ZERO, Ticks { every: Duration::from_millis(3), next: at(3), seen: Vec::new() });
        run(&mut ticks, &mut now, at(10));
        assert_eq!((now, ticks.seen), (at(10), vec![at(3), at(6), at(9)]));
        let mut still = Ticks { every: Duration::ZERO, next: at(3), seen: Vec::new() };
        let stands = std::panic::catch_unwind(move || run(&mut still, &mut Instant::default(), at(10)));
        assert!(stands.is_err());
    }
}

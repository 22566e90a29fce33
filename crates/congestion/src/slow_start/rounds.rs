//! HyStart's delay test as in Linux (`hystart_update` in net/ipv4/tcp_cubic.c).

use super::{RoundTrip, SAMPLES, threshold};
use clock::Duration;

/// `hystart_low_window`: a smaller window, in packets, does not fill anything.
const LOW_WINDOW: f64 = 16.0;

/// The rounds of one path.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    /// The round ends when this is acknowledged.
    end: u64,
    samples: u32,
    /// The lowest round-trip time of the round.
    lowest: Duration,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { end: 0, samples: 0, lowest: Duration::MAX }
    }
}

impl Rounds {
    pub(super) fn finds_queue(&mut self, packets: f64, base: Duration, sample: &RoundTrip) -> bool {
        if sample.upto > self.end {
            (self.end, self.samples, self.lowest) = (sample.next, 0, sample.rtt);
        }
        self.lowest = self.lowest.min(sample.rtt);
        self.samples += 1;
        packets >= LOW_WINDOW && self.samples > SAMPLES && self.lowest > base + threshold(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that is always in slow start.
    #[derive(Default)]
    struct Start {
        rounds: Rounds,
        base: Option<Duration>,
    }

    impl Start {
        fn ends(&mut self, upto: u64, next: u64, packets: f64, ms: u64) -> bool {
            let rtt = Duration::from_millis(ms);
            let base = self.base.map_or(rtt, |base| base.min(rtt));
            self.base = Some(base);
            self.rounds.finds_queue(packets, base, &RoundTrip { upto, next, rtt })
        }
    }

    /// Rounds of 20 packets; the n-th round takes so many milliseconds.
    fn ends_in_round(rounds: &[u64]) -> Option<usize> {
        let (mut start, mut ack) = (Start::default(), 0);
        rounds.iter().position(|ms| {
            let next = ack + 20;
            (0..20).any(|_| {
                ack += 1;
                start.ends(ack, next.max(ack), 20.0, *ms)
            })
        })
    }

    #[test]
    fn a_round_longer_by_an_eighth_ends_slow_start() {
        // RFC 9406 §4.2: an eighth of the least round-trip time, 4 ms at least and 16 ms at most.
        assert_eq!(ends_in_round(&[60, 60, 67, 67]), None);
        assert_eq!(ends_in_round(&[60, 60, 69]), Some(2));
        assert_eq!(ends_in_round(&[10, 13, 13]), None);
        assert_eq!(ends_in_round(&[10, 15]), Some(1));
        assert_eq!(ends_in_round(&[400, 415, 417]), Some(2));
    }

    #[test]
    fn one_short_round_trip_among_the_first_keeps_it() {
        let mut start = Start::default();
        for ack in 1..=8 {
            assert!(!start.ends(ack, 100, 50.0, 60));
        }
        for ack in 101..=130 {
            let ms = if ack == 103 { 61 } else { 90 };
            assert!(!start.ends(ack, 200, 50.0, ms));
        }
    }

    #[test]
    fn a_small_window_stays_in_slow_start() {
        let mut start = Start::default();
        for ack in 1..1000 {
            assert!(!start.ends(ack, ack + 10, 10.0, ack));
        }
    }
}

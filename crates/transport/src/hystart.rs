//! The end of slow start before the queue is full: the delay test of HyStart (S. Ha and I. Rhee, *Taming the elephants: new TCP
//! slow start*, Computer Networks 55, 2011), with the constants of Linux, which RFC 9406 §4.3 has taken over.

use clock::Duration;

/// Below so many packets the window does not fill anything.
const LOW_WINDOW: f64 = 16.0;
/// Round-trip times that are looked at in each round.
const SAMPLES: u32 = 8;
/// Of the least round-trip time a round may be longer by an eighth, within these bounds.
const LEAST: Duration = Duration::from_millis(4);
const MOST: Duration = Duration::from_millis(16);

/// The rounds of one connection.
#[derive(Clone, Debug)]
pub(crate) struct HyStart {
    /// The round ends when this is acknowledged.
    end: u64,
    samples: u32,
    /// The shortest round trip of the round, and of all.
    current: Duration,
    least: Duration,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        let never = Duration::from_nanos(u64::MAX);
        Self { end: 0, samples: 0, current: never, least: never }
    }

    /// All below `ack` is acknowledged, all below `max` sent, the window is `cwnd` packets: whether slow start should end.
    pub(crate) fn on_ack(&mut self, ack: u64, max: u64, cwnd: f64, rtt: Duration) -> bool {
        if ack > self.end {
            self.end = max;
            self.samples = 0;
            self.current = rtt;
        }
        self.least = self.least.min(rtt);
        self.current = self.current.min(rtt);
        self.samples += 1;
        let margin = Duration::from_nanos(self.least.as_nanos() / 8).max(LEAST).min(MOST);
        cwnd >= LOW_WINDOW && self.samples > SAMPLES && self.current > self.least + margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 20 packets; the n-th round takes so many milliseconds.
    fn ends_in_round(rounds: &[u64]) -> Option<usize> {
        let mut test = HyStart::new();
        let mut ack = 0;
        rounds.iter().position(|ms| {
            let max = ack + 20;
            (0..20).any(|_| {
                ack += 1;
                test.on_ack(ack, max.max(ack), 20.0, Duration::from_millis(*ms))
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
        let mut test = HyStart::new();
        for ack in 1..=8 {
            assert!(!test.on_ack(ack, 100, 50.0, Duration::from_millis(60)));
        }
        for ack in 101..=130 {
            let ms = if ack == 103 { 61 } else { 90 };
            assert!(!test.on_ack(ack, 200, 50.0, Duration::from_millis(ms)));
        }
    }

    #[test]
    fn a_small_window_stays_in_slow_start() {
        let mut test = HyStart::new();
        for ack in 1..1000 {
            assert!(!test.on_ack(ack, ack + 10, 10.0, Duration::from_millis(ack)));
        }
    }
}

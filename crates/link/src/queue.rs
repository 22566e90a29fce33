//! Active queue management: RED (Floyd and Jacobson 1993) with the gentle variant (Floyd 2000), and CoDel (RFC 8289).
//!
//! Only sums, products, quotients and square roots of floats: the same bits on every machine.

use clock::{Duration, Instant, Rng};
use queue::codel;

use crate::{CoDelConfig, QueueConfig, RedConfig};

/// What the queue's discipline decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Pass with a mark of congestion instead of a drop.
    Mark,
    DropEarly,
    DropFull,
}

/// A queue's discipline and its state.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    DropTail { packets: u32, bytes: u64 },
    Red(Box<Red>),
    CoDel(Box<CoDel>),
}

impl Discipline {
    /// RED takes a generator of its own out of `rng`, so that its draws and those of losses do not mix.
    pub(crate) fn new(config: QueueConfig, rng: &mut Rng) -> Self {
        match config {
            QueueConfig::Unlimited => Self::DropTail { packets: u32::MAX, bytes: u64::MAX },
            QueueConfig::Packets(packets) => Self::DropTail { packets, bytes: u64::MAX },
            QueueConfig::Bytes(bytes) => Self::DropTail { packets: u32::MAX, bytes },
            QueueConfig::Red(config) => Self::Red(Box::new(Red::new(config, Rng::from_seed(rng.next_u64())))),
            QueueConfig::CoDel(config) => Self::CoDel(Box::new(CoDel::new(config))),
        }
    }
}

/// Random Early Detection: an average of the queue decides, at arrival.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last drop or mark while the average is between the thresholds; -1 below.
    count: f64,
    idle_since: Option<Instant>,
    rng: Rng,
}

impl Red {
    fn new(config: RedConfig, rng: Rng) -> Self {
        Self { config, average: 0.0, count: -1.0, idle_since: Some(Instant::ZERO), rng }
    }

    /// The transmitter has nothing to do from `now` on.
    pub(crate) fn idle(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// Decides about a packet that arrives when `waiting` packets wait. `rate` tells what could have been sent while
    /// the transmitter was idle.
    pub(crate) fn arrival(&mut self, now: Instant, waiting: u32, rate: Option<u64>, capable: bool) -> Verdict {
        let RedConfig { min, max, limit, probability, weight, gentle, ecn, packet_bytes } = self.config;
        match self.idle_since.take() {
            // As if m small packets had found the queue empty (§4, "m = f(time - q_time)").
            Some(since) => {
                let each = rate.map_or(Duration::ZERO, |rate| Duration::of_transmission(packet_bytes.into(), rate));
                let packets = (now - since).as_nanos() as f64 / each.as_nanos() as f64;
                self.average *= power(1.0 - weight, packets);
            }
            None => self.average += weight * (f64::from(waiting) - self.average),
        }
        let average = self.average;
        let chance = if average < min {
            self.count = -1.0;
            None
        } else if average < max {
            Some(probability * (average - min) / (max - min))
        } else if gentle && average < 2.0 * max {
            Some(probability + (1.0 - probability) * (average - max) / max)
        } else {
            self.count = 0.0;
            return Verdict::DropEarly;
        };
        if waiting >= limit {
            self.count = 0.0;
            return Verdict::DropFull;
        }
        match chance.map(|chance| self.spread(chance)) {
            Some(chance) if self.rng.chance(chance) => {
                self.count = 0.0;
                if ecn && capable { Verdict::Mark } else { Verdict::DropEarly }
            }
            _ => Verdict::Pass,
        }
    }

    /// Makes the gaps between drops uniform instead of geometric (§7, method 2): p / (1 - count · p).
    fn spread(&mut self, chance: f64) -> f64 {
        self.count += 1.0;
        let rest = 1.0 - self.count * chance;
        if rest <= chance { 1.0 } else { chance / rest }
    }
}

/// `base` to a power of at least 0, by squaring, and linearly within the last step: `base` is close to 1 here.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || exponent > 1e9 {
        return 0.0;
    }
    let mut whole = exponent as u64;
    let mut result = 1.0 - (exponent - whole as f64) * (1.0 - base);
    let mut square = base;
    while whole > 0 {
        if whole & 1 == 1 {
            result *= square;
        }
        square *= square;
        whole >>= 1;
    }
    result
}

/// Controlled Delay: the time a packet has waited decides, at departure.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    config: CoDelConfig,
    state: codel::CoDel,
    largest: u32,
}

impl CoDel {
    fn new(config: CoDelConfig) -> Self {
        Self { config, state: codel::CoDel::default(), largest: 0 }
    }

    /// Decides about a packet that arrives when `waiting` packets wait.
    pub(crate) fn arrival(&mut self, waiting: u32, bytes: u32) -> Verdict {
        self.largest = self.largest.max(bytes);
        if waiting >= self.config.limit { Verdict::DropFull } else { Verdict::Pass }
    }

    /// The queue has been found empty.
    pub(crate) fn empty(&mut self) {
        self.state.empty();
    }

    /// Decides about the packet at the head, which has waited for `waited`; `left` bytes wait behind it. Called again
    /// for the next one after a drop.
    pub(crate) fn departure(&mut self, now: Instant, waited: Duration, left: u64, capable: bool) -> Verdict {
        let parameters = codel::Parameters { target: self.config.target, interval: self.config.interval };
        if !self.state.is_due(&parameters, now, waited, left, self.largest.into()) {
            return Verdict::Pass;
        }
        self.state.acted(&parameters, now);
        if self.config.ecn && capable { Verdict::Mark } else { Verdict::DropEarly }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(gentle: bool, ecn: bool) -> Red {
        let config = RedConfig {
            min: 30.0,
            max: 90.0,
            limit: 1000,
            probability: 0.1,
            weight: 0.002,
            gentle,
            ecn,
            packet_bytes: 1500,
        };
        let mut red = Red::new(config, Rng::from_seed(1));
        red.idle_since = None;
        red
    }

    #[test]
    fn vector_red_1() {
        // Average 60: pb = 0.05; after 0, 9 and 18 packets without a drop.
        for (count, expected) in [(0.0, 0.052_631_578_947_4), (9.0, 0.1), (18.0, 1.0)] {
            let mut red = red(false, false);
            red.count = count;
            assert!((red.spread(0.05) - expected).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn vector_red_2() {
        let mut red = red(false, false);
        red.average = 50.0;
        red.idle(Instant::ZERO);
        red.arrival(Instant::from_nanos(500_000_000), 0, Some(50_000_000), false);
        assert!((red.average - 0.771_965_135_067).abs() < 1e-6, "{}", red.average);
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        // Floyd and Jacobson 1993 §7: uniform; with the count taken before the draw on 1 to 1/pb - 1, here 19, so the
        // mean is 10.
        let mut red = red(false, false);
        let mut gaps = [0u32; 21];
        let (mut gap, n) = (0, 200_000);
        for _ in 0..n {
            red.average = 60.0;
            gap += 1;
            if red.arrival(Instant::ZERO, 60, None, false) == Verdict::DropEarly {
                gaps[gap.min(20)] += 1;
                gap = 0;
            }
        }
        let drops: u32 = gaps.iter().sum();
        assert!((f64::from(n) / f64::from(drops) - 10.0).abs() < 0.2, "{drops}");
        for (gap, count) in gaps.iter().enumerate().skip(1).take(19) {
            // Five standard deviations of a share of 1/19 of 20,000.
            assert!((f64::from(*count) - f64::from(drops) / 19.0).abs() < 160.0, "{gap}: {count}");
        }
        assert_eq!((gaps[0], gaps[20]), (0, 0));
    }

    #[test]
    fn above_the_upper_threshold_everything_goes_unless_gentle() {
        for (gentle, average, share) in [(false, 90.0, 1.0), (true, 90.0, 0.1), (true, 135.0, 0.55), (true, 180.0, 1.0)]
        {
            let mut red = red(gentle, false);
            let mut chances = Vec::new();
            for _ in 0..20_000 {
                red.average = average;
                red.count = -1.0; // the plain probability, without spreading
                chances.push(red.arrival(Instant::ZERO, average as u32, None, false) == Verdict::DropEarly);
            }
            let dropped = chances.iter().filter(|dropped| **dropped).count() as f64 / 20_000.0;
            assert!((dropped - share).abs() < 0.02, "{gentle} {average}: {dropped}");
        }
    }
}

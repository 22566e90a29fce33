//! Random Early Detection (Floyd and Jacobson 1993) with the gentle variant (Floyd 2000): an average of the queue decides, at
//! arrival.
//!
//! Only sums, products, quotients and square roots of floats: the same bits on every machine.

use clock::{Duration, Instant, Rng};

use crate::discipline::{ECN, LIMIT, parameters};
use crate::fifo::Fifo;
use crate::reference::Reference;
use crate::{Cause, Dropped, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "red",
    rule: "at arrival, avg = (1−weight)·avg + weight·q: drops or marks with p/(1 − count·p), p = probability·(avg−min)/(max−min), \
           all from max on; if gentle, p rises from probability to 1 between max and 2·max",
    source: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000",
};

/// Random Early Detection (Floyd and Jacobson 1993): drops or marks at arrival, by an average of the waiting packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Average in packets below which everything passes.
    pub min: f64,
    /// Average in packets from which nothing passes (or, with `gentle`, less and less); above `min`.
    pub max: f64,
    /// Most packets that may wait, whatever the average.
    pub limit: u32,
    /// Probability of a drop just below `max`, before it is spread.
    pub probability: f64,
    /// Weight of the newest sample in the average, 0 to 1.
    pub weight: f64,
    /// From `max` to twice `max` the probability rises to 1 instead of jumping there (Floyd 2000).
    pub gentle: bool,
    /// Marks packets that are ECN-capable instead of dropping them, below `max` (RFC 3168 §7), or twice `max` with
    /// `gentle`.
    pub ecn: bool,
    /// A typical packet in bytes: how fast the average sinks while the link is idle.
    pub packet_bytes: u32,
}

impl Default for RedConfig {
    /// The probability and the weight that Floyd recommends (1997), and her example's thresholds of 5 and 15 packets.
    fn default() -> Self {
        Self {
            min: 5.0,
            max: 15.0,
            limit: u32::MAX,
            probability: 0.1,
            weight: 0.002,
            gentle: false,
            ecn: false,
            packet_bytes: 1500,
        }
    }
}

parameters! { RedConfig = "red" {
    min: Average, "Average below which everything passes.", required(), below("max");
    max: Average, "Average from which nothing passes, or less and less if gentle.", required();
    limit: Limit, LIMIT;
    probability: Probability, "Share of drops when the average is just below `max`.";
    weight: Probability, "Weight of the newest sample in the average.";
    gentle: Switch, "From `max` to twice `max` the share of drops rises to 1 instead of jumping there.";
    ecn: Switch, ECN;
}

    fn set_packet_bytes(&mut self, bytes: u32) {
        self.packet_bytes = bytes;
    }
}

/// A queue with Random Early Detection.
#[derive(Clone, Debug)]
pub struct Red<P> {
    fifo: Fifo<P>,
    state: State,
}

#[derive(Clone, Debug)]
struct State {
    config: RedConfig,
    average: f64,
    /// Packets since the last drop or mark while the average is between the thresholds; -1 below.
    count: f64,
    idle_since: Option<Instant>,
    rng: Rng,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop(Cause),
}

impl<P> Red<P> {
    /// An empty queue. It takes a generator of its own out of `rng`, so that its draws and those of losses do not mix.
    pub(crate) fn new(config: RedConfig, rng: &mut Rng) -> Self {
        Self { fifo: Fifo::default(), state: State::new(config, Rng::from_seed(rng.next_u64())) }
    }
}

impl<P> QueueDiscipline<P> for Red<P> {
    fn enqueue(
        &mut self,
        mut packet: Queued<P>,
        _: u64,
        transmitter: Transmitter,
        _: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        match self.state.arrival(packet.since, self.fifo.packets(), transmitter.rate) {
            Verdict::Mark if packet.mark() => {}
            Verdict::Pass => {}
            Verdict::Mark => return Err(self.state.refuse(packet, Cause::Early, transmitter)),
            Verdict::Drop(cause) => return Err(self.state.refuse(packet, cause, transmitter)),
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, _: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        let packet = self.fifo.pop();
        if packet.is_none() {
            self.state.idle_since = Some(now);
        }
        packet
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn clear(&mut self, now: Instant, drop: &mut impl FnMut(Queued<P>)) {
        self.state.idle_since.get_or_insert(now);
        self.fifo.clear(drop);
    }
}

impl State {
    fn new(config: RedConfig, rng: Rng) -> Self {
        Self { config, average: 0.0, count: -1.0, idle_since: Some(Instant::ZERO), rng }
    }

    fn refuse<P>(&mut self, packet: Queued<P>, cause: Cause, transmitter: Transmitter) -> Dropped<P> {
        if transmitter.is_idle {
            self.idle_since = Some(packet.since); // and it stays that
        }
        Dropped { packet, cause }
    }

    /// Decides about a packet that arrives when `waiting` packets wait. `rate` tells what could have been sent while
    /// the transmitter was idle.
    fn arrival(&mut self, now: Instant, waiting: usize, rate: Option<u64>) -> Verdict {
        let RedConfig { min, max, limit, probability, weight, gentle, ecn, packet_bytes } = self.config;
        match self.idle_since.take() {
            // As if m small packets had found the queue empty (§4, "m = f(time - q_time)").
            Some(since) => {
                let each = rate.map_or(Duration::ZERO, |rate| Duration::of_transmission(packet_bytes.into(), rate));
                let packets = (now - since).as_nanos() as f64 / each.as_nanos() as f64;
                self.average *= power(1.0 - weight, packets);
            }
            None => self.average += weight * (waiting as f64 - self.average),
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
            return Verdict::Drop(Cause::Early);
        };
        if waiting >= limit as usize {
            self.count = 0.0;
            return Verdict::Drop(Cause::Full);
        }
        match chance.map(|chance| self.spread(chance)) {
            Some(chance) if self.rng.chance(chance) => {
                self.count = 0.0;
                if ecn { Verdict::Mark } else { Verdict::Drop(Cause::Early) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn red(gentle: bool) -> State {
        let config = RedConfig {
            min: 30.0,
            max: 90.0,
            limit: 1000,
            probability: 0.1,
            weight: 0.002,
            gentle,
            ecn: false,
            packet_bytes: 1500,
        };
        let mut red = State::new(config, Rng::from_seed(1));
        red.idle_since = None;
        red
    }

    #[test]
    fn vector_red_1() {
        // Average 60: pb = 0.05; after 0, 9 and 18 packets without a drop.
        for (count, expected) in [(0.0, 0.052_631_578_947_4), (9.0, 0.1), (18.0, 1.0)] {
            let mut red = red(false);
            red.count = count;
            assert!((red.spread(0.05) - expected).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn vector_red_2() {
        let mut red = red(false);
        red.average = 50.0;
        red.idle_since = Some(Instant::ZERO);
        red.arrival(Instant::from_nanos(500_000_000), 0, Some(50_000_000));
        assert!((red.average - 0.771_965_135_067).abs() < 1e-6, "{}", red.average);
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        // Floyd and Jacobson 1993 §7: uniform; with the count taken before the draw on 1 to 1/pb - 1, here 19, so the
        // mean is 10.
        let mut red = red(false);
        let mut gaps = [0u32; 21];
        let (mut gap, n) = (0, 200_000);
        for _ in 0..n {
            red.average = 60.0;
            gap += 1;
            if red.arrival(Instant::ZERO, 60, None) == Verdict::Drop(Cause::Early) {
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
            let mut red = red(gentle);
            let mut chances = Vec::new();
            for _ in 0..20_000 {
                red.average = average;
                red.count = -1.0; // the plain probability, without spreading
                chances.push(red.arrival(Instant::ZERO, average as usize, None) == Verdict::Drop(Cause::Early));
            }
            let dropped = chances.iter().filter(|dropped| **dropped).count() as f64 / 20_000.0;
            assert!((dropped - share).abs() < 0.02, "{gentle} {average}: {dropped}");
        }
    }
}

//! Proportional Integral controller Enhanced (RFC 8033): a probability that follows the waiting time decides, at arrival.

use clock::{Duration, Instant, Rng};

use crate::discipline::{ECN, LIMIT, TARGET, parameters};
use crate::fifo::Fifo;
use crate::pi::Pi;
use crate::reference::Reference;
use crate::{Cause, Dropped, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "pie",
    rule: "at arrival, drops or marks with a probability that every 15 ms gains 0.125·(t−target) + 1.25·(t−t_before), t in s, scaled down \
           while it is small",
    source: "RFC 8033 §4 and §5",
};

/// How often the probability is adjusted (RFC 8033 §5.1, T_UPDATE).
const PERIOD: Duration = Duration::from_millis(15);
/// Gains in Hz (RFC 8033 §4.2).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// Gains are divided by the second number where the probability is below the first (RFC 8033 §4.2): a small one is to change
/// in small steps.
const SCALES: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// Below this probability packets are marked instead of dropped (RFC 8033 §5.1, mark_ecnth).
const MARKED_BELOW: f64 = 0.1;

/// PIE (RFC 8033).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// Waiting time that is aimed at.
    pub target: Duration,
    /// For so long after the queue was short nothing is dropped.
    pub max_burst: Duration,
    /// Most packets that may wait.
    pub limit: u32,
    /// Marks packets that are ECN-capable instead of dropping them, below a probability of 0.1.
    pub ecn: bool,
    /// A typical packet in bytes: two of them are never too many.
    pub packet_bytes: u32,
}

impl Default for PieConfig {
    /// RFC 8033 §5.1: 15 ms and 150 ms.
    fn default() -> Self {
        let (target, max_burst) = (Duration::from_millis(15), Duration::from_millis(150));
        Self { target, max_burst, limit: u32::MAX, ecn: false, packet_bytes: 1500 }
    }
}

parameters! { PieConfig = "pie" {
    target: Time, TARGET;
    max_burst: Time, "For so long after the queue was short nothing is dropped.";
    limit: Limit, LIMIT;
    ecn: Switch, ECN;
}

    fn set_packet_bytes(&mut self, bytes: u32) {
        self.packet_bytes = bytes;
    }
}

/// A queue that PIE keeps short.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    fifo: Fifo<P>,
    config: PieConfig,
    pi: Pi,
    probability: f64,
    /// The sum of the probabilities of packets since the last drop (RFC 8033 §5.4).
    accumulated: f64,
    burst: Duration,
    rng: Rng,
}

impl<P> Pie<P> {
    /// An empty queue, with a generator of its own out of `rng`.
    pub(crate) fn new(config: PieConfig, rng: &mut Rng) -> Self {
        Self {
            fifo: Fifo::default(),
            config,
            pi: Pi::default(),
            probability: 0.0,
            accumulated: 0.0,
            burst: config.max_burst,
            rng: Rng::from_seed(rng.next_u64()),
        }
    }

    /// Makes up for the steps up to `now`. Until then the queue is as it is, and only its first packet waits longer.
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = {
            let is_at_rest = self.probability == 0.0 && self.pi.previous == 0.0 && self.fifo.packets() == 0;
            self.pi.due(now, PERIOD, is_at_rest)
        } {
            self.step(self.fifo.waited(at).as_secs_f64());
        }
    }

    /// RFC 8033 §4.2.
    fn step(&mut self, waited: f64) {
        let previous = self.pi.previous;
        let scale = SCALES.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, scale)| *scale);
        let mut change = self.pi.step(waited, self.config.target, ALPHA, BETA) / scale;
        if self.probability >= 0.1 {
            change = change.min(0.02); // §5.5
        }
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if waited == 0.0 && previous == 0.0 {
            self.probability *= 0.98;
            if self.probability < 1e-9 {
                self.probability = 0.0;
            }
        }
        // §4.4
        self.burst = self.burst.saturating_sub(PERIOD);
        let half = self.config.target.as_secs_f64() / 2.0;
        if self.probability == 0.0 && waited < half && previous < half {
            self.burst = self.config.max_burst;
        }
    }

    /// Whether a packet that arrives is to be dropped or marked (RFC 8033 §4.1 and §5.4).
    fn is_due(&mut self) -> bool {
        let half = self.config.target.as_secs_f64() / 2.0;
        let is_short = self.fifo.bytes() <= 2 * u64::from(self.config.packet_bytes);
        if !self.burst.is_zero() || is_short || (self.pi.previous < half && self.probability < 0.2) {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        // Neither drops in a row, nor too many packets without one.
        let is_due = self.accumulated >= 8.5 || self.accumulated >= 0.85 && self.rng.chance(self.probability);
        if is_due {
            self.accumulated = 0.0;
        }
        is_due
    }
}

impl<P> QueueDiscipline<P> for Pie<P> {
    fn enqueue(
        &mut self,
        mut packet: Queued<P>,
        _: u64,
        transmitter: Transmitter,
        _: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        self.catch_up(packet.since);
        if self.fifo.packets() >= self.config.limit as usize && !transmitter.is_idle {
            return Err(Dropped { packet, cause: Cause::Full });
        }
        let marks = self.config.ecn && self.probability < MARKED_BELOW;
        if self.is_due() && !(marks && packet.mark()) {
            return Err(Dropped { packet, cause: Cause::Early });
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, _: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        self.catch_up(now);
        self.fifo.pop()
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn clear(&mut self, now: Instant, drop: &mut impl FnMut(Queued<P>)) {
        self.catch_up(now);
        self.fifo.clear(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pie(config: PieConfig) -> Pie<()> {
        Pie::new(config, &mut Rng::from_seed(1))
    }

    /// RFC 8033 §4.2: what a step of a waiting time that stays at 25 ms adds, 10 ms above the target.
    #[test]
    fn small_probabilities_change_in_small_steps() {
        for (probability, divisor) in
            [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (0.05, 2.0), (0.5, 1.0)]
        {
            let mut pie = pie(PieConfig::default());
            (pie.probability, pie.pi.previous) = (probability, 0.025);
            pie.step(0.025);
            let expected = probability + 0.125 * 0.010 / divisor;
            assert!((pie.probability - expected).abs() < 1e-12, "{probability}: {}", pie.probability);
        }
    }

    /// RFC 8033 §5.5: at most 2 % a step from 10 % on; and §4.2: without a queue it decays by 2 % a step.
    #[test]
    fn large_probabilities_rise_slowly_and_sink_when_nothing_waits() {
        let mut pie = pie(PieConfig::default());
        pie.probability = 0.3;
        pie.step(1.0);
        assert!((pie.probability - 0.32).abs() < 1e-12);
        (pie.probability, pie.pi.previous) = (0.3, 0.0);
        pie.step(0.0);
        assert!((pie.probability - (0.3 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    /// RFC 8033 §4.4: whatever the probability, nothing is dropped for `max_burst` after the queue was short.
    #[test]
    fn a_burst_is_spared_for_its_time() {
        let mut pie = pie(PieConfig::default());
        pie.step(0.0);
        (pie.probability, pie.pi.previous) = (1.0, 1.0);
        for ms in 0..400 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let transmitter = Transmitter { is_idle: false, rate: None };
            let result = pie.enqueue(Queued::new((), 1500, now), 0, transmitter, &mut |_| {});
            // Ten steps from 0 on; two packets are no queue, and a probability of 1 drops one of ten at least.
            if ms < 135 {
                assert!(result.is_ok(), "{ms}");
            }
            pie.probability = 1.0;
        }
        assert!(pie.packets() < 180, "{}", pie.packets());
    }
}

//! DualPI2 (RFC 9332 appendix A): two queues with one controller, a short one for senders that answer each mark by little (L4S,
//! RFC 9330), a longer one for the others, and signals in both that give their senders equal rates.

use clock::{Duration, Instant};

use crate::discipline::{LIMIT, TARGET, parameters};
use crate::fifo::Fifo;
use crate::pi::Pi;
use crate::reference::Reference;
use crate::{Cause, Dropped, Ecn, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "dualpi2",
    rule: "p' gains alpha·(t−target) + beta·(t−t_before) per period; classic packets are dropped with p'², L4S packets marked with the \
           larger of coupling·p' and a ramp over the wait in their own queue",
    source: "RFC 9332 §2 and appendix A",
};

/// DualPI2 (RFC 9332).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Waiting time that is aimed at in the classic queue.
    pub target: Duration,
    /// How often the probability is adjusted.
    pub period: Duration,
    /// Gain of the distance from the target, in Hz.
    pub alpha: f64,
    /// Gain of the growth of the waiting time, in Hz.
    pub beta: f64,
    /// The share of L4S packets that are marked is so many times the square root of the share of classic ones that are
    /// dropped, k of RFC 9332 §2.1: 2 gives Reno and DCTCP equal windows.
    pub coupling: f64,
    /// Waiting time in the L4S queue from which packets are marked there.
    pub ramp_start: Duration,
    /// Waiting time from which all of them are; where it is not above `ramp_start` the ramp is a step.
    pub ramp_end: Duration,
    /// The share of the bytes that the classic queue gets at least.
    pub classic_share: f64,
    /// Most packets that may wait in both queues together.
    pub limit: u32,
}

impl Default for DualPi2Config {
    /// RFC 9332 appendix A.1, and the classic queue's tenth of Linux.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            period: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            ramp_start: Duration::from_micros(800),
            ramp_end: Duration::from_micros(1200),
            classic_share: 0.1,
            limit: 10_000,
        }
    }
}

parameters! { DualPi2Config = "dualpi2" {
    target: Time, TARGET;
    period: Time, "How often the probability is adjusted.";
    alpha: Number, "Gain of the distance from the target, in Hz.";
    beta: Number, "Gain of the growth of the waiting time, in Hz.";
    coupling: Number, "Share of L4S packets marked, in square roots of that of classic ones dropped.";
    ramp_start: Time, "Waiting time in the L4S queue from which packets are marked there.";
    ramp_end: Time, "Waiting time from which all of them are; a step where it is not above `ramp_start`.";
    classic_share: Probability, "Share of the bytes that the classic queue gets at least.";
    limit: Limit, LIMIT;
} }

/// The two queues.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    config: DualPi2Config,
    l4s: Fifo<P>,
    classic: Fifo<P>,
    pi: Pi,
    /// p' of RFC 9332: the base probability, from which both shares come.
    base: f64,
    /// What the signals given so far fall short of the shares (RFC 9332 appendix A.1, recur): L4S, classic.
    owed: [f64; 2],
    /// Bytes, times shares, by which the L4S queue is ahead of what is its part.
    ahead: f64,
}

impl<P> DualPi2<P> {
    /// Empty queues.
    pub(crate) fn new(config: DualPi2Config) -> Self {
        let (l4s, classic) = Default::default();
        Self { config, l4s, classic, pi: Pi::default(), base: 0.0, owed: [0.0; 2], ahead: 0.0 }
    }

    /// RFC 9332 §2.1, equation 1: p_CL = k p'.
    fn coupled(&self) -> f64 {
        self.config.coupling * self.base
    }

    /// Makes up for the steps up to `now`. Until then the queues are as they are, and only their first packets wait longer.
    fn catch_up(&mut self, now: Instant) {
        let DualPi2Config { target, period, alpha, beta, .. } = self.config;
        while let Some(at) = {
            let is_at_rest = self.base == 0.0 && self.pi.previous == 0.0 && self.packets() == 0;
            self.pi.due(now, period, is_at_rest)
        } {
            // The longer of both, so that senders who do not answer marks are answered, too.
            let waited = self.classic.waited(at).max(self.l4s.waited(at)).as_secs_f64();
            self.base = (self.base + self.pi.step(waited, target, alpha, beta)).clamp(0.0, 1.0);
        }
    }

    /// Weighted round robin: whether the L4S queue is next.
    fn l4s_is_next(&mut self) -> bool {
        if self.l4s.packets() == 0 || self.classic.packets() == 0 {
            self.ahead = 0.0;
            return self.l4s.packets() > 0;
        }
        self.ahead <= 0.0
    }

    /// The share of L4S packets to be marked after a packet has waited for so long (RFC 9332 appendix A.1, laqm).
    fn ramp(&self, waited: Duration) -> f64 {
        let DualPi2Config { ramp_start, ramp_end, .. } = self.config;
        // A single packet is no queue, however long the one before it takes.
        if waited < ramp_start || self.l4s.packets() == 0 {
            return 0.0;
        }
        if waited >= ramp_end {
            return 1.0;
        }
        (waited - ramp_start).as_secs_f64() / (ramp_end - ramp_start).as_secs_f64()
    }

    /// Lets an L4S packet pass, or says that it has to go.
    fn judge_l4s(&mut self, packet: &mut Queued<P>, waited: Duration) -> bool {
        let coupled = self.coupled();
        if coupled >= 1.0 {
            // Overload: marks do not help, so packets are dropped as classic ones are.
            packet.mark();
            return !recurs(&mut self.owed[0], self.base * self.base);
        }
        let share = coupled.max(self.ramp(waited));
        if recurs(&mut self.owed[0], share) {
            packet.mark();
        }
        true
    }

    /// Lets a classic packet pass, or says that it has to go.
    fn judge_classic(&mut self, packet: &mut Queued<P>) -> bool {
        // p_C = p'^2 (RFC 9332 §2.1).
        let is_overloaded = self.coupled() >= 1.0;
        !recurs(&mut self.owed[1], self.base * self.base) || !is_overloaded && packet.mark()
    }
}

/// Says yes in this share of the calls, as evenly as can be (RFC 9332 appendix A.1, recur).
fn recurs(owed: &mut f64, share: f64) -> bool {
    *owed += share;
    let is_due = *owed >= 1.0;
    if is_due {
        *owed -= 1.0;
    }
    is_due
}

impl<P> QueueDiscipline<P> for DualPi2<P> {
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        _: u64,
        transmitter: Transmitter,
        _: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        self.catch_up(packet.since);
        if self.packets() >= self.config.limit as usize && !transmitter.is_idle {
            return Err(Dropped { packet, cause: Cause::Full });
        }
        match packet.ecn {
            // RFC 9331 §5: of a packet that was marked before nobody knows what it was.
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        self.catch_up(now);
        loop {
            let share = self.config.classic_share;
            let (mut packet, passes) = if self.l4s_is_next() {
                let mut packet = self.l4s.pop()?;
                let waited = now - packet.since;
                let passes = self.judge_l4s(&mut packet, waited);
                self.ahead += share * f64::from(if passes { packet.bytes } else { 0 });
                (packet, passes)
            } else {
                let mut packet = self.classic.pop()?;
                let passes = self.judge_classic(&mut packet);
                self.ahead -= (1.0 - share) * f64::from(if passes { packet.bytes } else { 0 });
                (packet, passes)
            };
            if passes {
                return Some(packet);
            }
            packet.is_marked = false;
            drop(Dropped { packet, cause: Cause::Early });
        }
    }

    fn packets(&self) -> usize {
        self.l4s.packets() + self.classic.packets()
    }

    fn bytes(&self) -> u64 {
        self.l4s.bytes() + self.classic.bytes()
    }

    fn clear(&mut self, now: Instant, drop: &mut impl FnMut(Queued<P>)) {
        self.catch_up(now);
        self.l4s.clear(drop);
        self.classic.clear(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(l4s: usize, classic: usize) -> DualPi2<()> {
        let mut queue = DualPi2::new(DualPi2Config::default());
        let packet = |ecn| Queued::new((), 1500, Instant::ZERO).with_ecn(ecn);
        (0..l4s).for_each(|_| queue.l4s.push(packet(Ecn::Ect1)));
        (0..classic).for_each(|_| queue.classic.push(packet(Ecn::NotEct)));
        queue
    }

    /// A tenth where both wait, everything where it waits alone.
    #[test]
    fn the_classic_queue_gets_its_share() {
        let mut queue = filled(1000, 1000);
        let l4s = (0..1000).filter(|_| queue.dequeue(Instant::ZERO, &mut |_| {}).unwrap().ecn == Ecn::Ect1).count();
        assert_eq!(l4s, 900);
        assert!((0..1000).all(|_| queue.dequeue(Instant::ZERO, &mut |_| {}).is_some()));
        assert!(queue.dequeue(Instant::ZERO, &mut |_| {}).is_none());
    }

    /// RFC 9332 appendix A.1: minTh 800 µs, range 400 µs, and a packet behind which none waits is not marked.
    #[test]
    fn the_ramp_of_the_l4s_queue() {
        let queue = filled(1, 0);
        for (micros, share) in [(0, 0.0), (799, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0), (9000, 1.0)] {
            assert!((queue.ramp(Duration::from_micros(micros)) - share).abs() < 1e-9, "{micros}");
        }
        assert_eq!(filled(0, 5).ramp(Duration::from_millis(9)), 0.0);
    }
}

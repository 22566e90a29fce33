//! What a subflow keeps of its packets for rules that read delays or rates, and what it tells them.

use std::collections::VecDeque;

use clock::Instant;
use congestion::{Controller, Kind, Rule};

use super::{State, Subflow};
use crate::packet::expand;
use crate::rates::Rates;

/// What is kept of each outstanding packet.
#[expect(clippy::large_enum_variant, reason = "it is behind a pointer, and a flow has one")]
#[derive(Clone, Debug)]
pub(super) enum Watch {
    /// For rules that read delays.
    Times(SentTimes),
    /// For rules that read rates.
    Rates(Rates),
}

impl Watch {
    /// What a rule needs.
    pub(super) fn of(kind: Kind) -> Option<Box<Self>> {
        if kind.reads_rate {
            Some(Box::new(Self::Rates(Rates::default())))
        } else {
            kind.reads_delay.then(|| Box::new(Self::Times(SentTimes::default())))
        }
    }
}

/// When packets were sent, for round-trip times without what a receiver waited: those of echoed timestamps, of the first packet
/// that an acknowledgment covers (RFC 7323 §4.3), have tens of milliseconds in them that are no queue. As in Linux, the last
/// packet counts, and one that was acknowledged alone, by a receiver that waits for two, does not.
#[derive(Clone, Debug, Default)]
pub(super) struct SentTimes {
    /// From the first packet that is not acknowledged on; `None` for what was sent more than once.
    times: VecDeque<Option<Instant>>,
    waiting: Waiting,
}

/// Whether a receiver that waits for a second packet has waited in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    /// How many more acknowledgments have covered one packet than several, within [`Waiting::MEMORY`].
    alone: i32,
}

impl Waiting {
    const MEMORY: i32 = 8;

    /// An acknowledgment covers so many packets.
    pub(crate) fn has_waited(&mut self, count: u64) -> bool {
        self.alone = (self.alone + if count == 1 { 1 } else { -1 }).clamp(-Self::MEMORY, Self::MEMORY);
        count == 1 && self.alone <= 0
    }
}

impl SentTimes {
    /// The packet that is `index` beyond the first was sent.
    pub(super) fn sent(&mut self, index: u64, now: Instant) {
        match self.times.get_mut(index as usize) {
            Some(time) => *time = None,
            None => self.times.push_back(Some(now)),
        }
    }

    /// The first `count` are acknowledged: when the last of them was sent, if none of them was sent twice.
    pub(super) fn acknowledged(&mut self, count: u64) -> Option<Instant> {
        let waited = self.waiting.has_waited(count);
        let count = (count as usize).min(self.times.len());
        let last = self.times.drain(..count).reduce(|before, last| before.and(last)).flatten();
        last.filter(|_| !waited)
    }
}

impl Subflow {
    pub(super) fn reads_rate(&self) -> bool {
        matches!(self.watch.as_deref(), Some(Watch::Rates(_)))
    }

    /// Bytes in the network, without headers.
    fn in_flight(&self) -> u64 {
        let packets = match &self.recovery {
            State::Cumulative(_) => self.max - self.una,
            State::Selective(recovery) => recovery.pipe(self.una, self.next, self.max),
        };
        packets * u64::from(self.config.mss())
    }

    /// An acknowledgment, with what it tells of the rate of delivery.
    #[inline(never)]
    pub(super) fn sampled(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[(u32, u32)],
        echo: Instant,
        control: &mut Controller<Rule>,
    ) {
        let (una, mss) = (self.una, u64::from(self.config.mss()));
        let before = self.in_flight();
        let Some(Watch::Rates(rates)) = self.watch.as_deref_mut() else { return };
        rates.begin(before);
        if let State::Selective(recovery) = &mut self.recovery {
            for (left, right) in blocks {
                let (mut from, to) = (expand(*left, una).max(ack), expand(*right, una));
                while let Some(position) = recovery.first_missing(from, to, self.max) {
                    rates.on_selected(now, position, mss);
                    from = position + 1;
                }
            }
        }
        if una > 0 {
            rates.advance(now, ack, mss);
        }
        self.recover(now, ack, blocks, echo, control);
        let Some(Watch::Rates(rates)) = self.watch.as_deref_mut() else { return };
        if una == 0 {
            if ack > 0 {
                control.on_sample(self.index, &rates.on_connected(now), now);
            }
            return;
        }
        if let State::Selective(recovery) = &mut self.recovery {
            rates.lose_below(recovery.lost_edge(), mss, |packet| control.on_lost(self.index, packet, now));
            while let Some((position, packet)) = rates.lost_retransmission(mss) {
                recovery.on_retransmission_lost(position);
                control.on_lost(self.index, &packet, now);
            }
        }
        let in_flight = self.in_flight();
        let Some(Watch::Rates(rates)) = self.watch.as_deref_mut() else { return };
        if control.on_sample(self.index, &rates.sample(in_flight), now) {
            rates.on_app_limited(in_flight);
        }
    }

    /// The application has no more data.
    #[inline]
    pub(crate) fn on_app_limited(&mut self, now: Instant, control: &Controller<Rule>) {
        if self.watch.is_some() && self.una > 0 && self.paced_until <= now + self.ahead {
            let in_flight = self.in_flight();
            if let Some(Watch::Rates(rates)) = self.watch.as_deref_mut()
                && in_flight as f64 + self.mss <= control.cwnd(self.index)
            {
                rates.on_app_limited(in_flight);
            }
        }
    }

    pub(super) fn watch_sent(&mut self, now: Instant, position: u64) {
        let in_flight = if self.reads_rate() { self.in_flight() } else { 0 };
        let more = if position < self.max { 0 } else { u64::from(self.config.mss()) };
        match self.watch.as_deref_mut() {
            Some(Watch::Times(times)) => times.sent(position - self.una, now),
            Some(Watch::Rates(rates)) => rates.on_sent(now, position, in_flight + more),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use clock::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Linux takes the send time of the last packet covered; RFC 6298 §3: none of what was sent twice.
    #[test]
    fn the_last_packet_covered_tells_the_time() {
        let mut times = SentTimes::default();
        (0..9).for_each(|index| times.sent(index, at(index)));
        assert_eq!(times.acknowledged(2), Some(at(1)));
        assert_eq!(times.acknowledged(2), Some(at(3)));
        assert_eq!(times.acknowledged(1), None, "a receiver that waits for two has waited in vain");
        times.sent(0, at(20)); // The fifth, once more.
        assert_eq!(times.acknowledged(2), None);
        assert_eq!(times.acknowledged(2), Some(at(8)));
    }

    #[test]
    fn a_receiver_that_does_not_wait_is_believed() {
        let mut times = SentTimes::default();
        (0..4).for_each(|index| times.sent(index, at(index)));
        for index in 0..4 {
            assert_eq!(times.acknowledged(1), Some(at(index)));
        }
    }
}

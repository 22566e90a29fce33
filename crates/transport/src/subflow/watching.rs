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
    use std::sync::Arc;

    use clock::{Duration, Rng};

    use super::super::Step;
    use super::*;
    use crate::config::TcpConfig;
    use crate::packet::{BlockPool, Packet};
    use crate::receiver::TcpReceiver;

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

    /// A link of a packet of 1,000 bytes in a millisecond, with a round trip of 40 ms, and an application that has written so many
    /// packets by a time. Returns the pace at the end in bit/s.
    fn pace_after(rule: &str, end: u64, told: bool, written: impl Fn(u64) -> u64) -> u64 {
        let rule: Rule = rule.parse().unwrap();
        let tcp = TcpConfig { rule: rule.clone(), packet_size: 1_040, ..TcpConfig::default() };
        let config = Arc::new(tcp);
        let mut control = Controller::new(rule, config.engine);
        let path = control.add_path(config.mss());
        let mut flow = Subflow::new(path, Arc::clone(&config), Rng::from_seed(1));
        let (mut receiver, mut pool) = (TcpReceiver::new(&config), BlockPool::default());
        let (mut there, mut back) = (VecDeque::<(Instant, Packet)>::new(), VecDeque::<(Instant, Packet)>::new());
        let mut free = at(0);
        flow.start(at(0));
        for tick in 0..end * 10 {
            let now = Instant::from_nanos(tick * 100_000);
            while there.front().is_some_and(|(due, _)| *due <= now) {
                receiver.handle_input(now, &there.pop_front().unwrap().1);
                back.extend(receiver.poll_transmit(&mut pool).map(|answer| (now + Duration::from_millis(20), answer)));
            }
            if receiver.poll_timeout().is_some_and(|due| due <= now) {
                receiver.handle_timeout(now);
                back.extend(receiver.poll_transmit(&mut pool).map(|answer| (now + Duration::from_millis(20), answer)));
            }
            while back.front().is_some_and(|(due, _)| *due <= now) {
                let answer = back.pop_front().unwrap().1;
                flow.handle_input(now, &answer, pool.take(answer.blocks).as_slice(), &mut control);
            }
            if flow.send_deadline().min(flow.retransmission_deadline()) <= now {
                flow.handle_timeout(now, &mut control);
            }
            flow.wake();
            loop {
                let more = flow.next() <= written(tick / 10);
                let packet = match flow.poll(now, more, &control) {
                    Step::Send(packet) => packet,
                    Step::New => flow.emit_next(now),
                    Step::Nothing => break,
                };
                free = free.max(now) + Duration::from_millis(1);
                there.push_back((free + Duration::from_millis(20), packet));
            }
            if told && flow.next() > written(tick / 10) {
                flow.on_app_limited(now, &control);
            }
        }
        control.pace(path).unwrap()
    }

    /// After three seconds at 8 Mbit/s the application writes a tenth of that: what is sent then tells nothing of the path, as long as
    /// the rule is told of it.
    #[test]
    fn an_application_with_little_to_send_does_not_lower_the_estimate() {
        let little = |rule: &str, told| {
            let full = pace_after(rule, 2_000, told, |_| u64::MAX) as f64;
            assert!((0.7 * 8e6..1.3 * 8e6).contains(&full), "{rule}: {full}");
            pace_after(rule, 23_000, told, |ms| 2_000.min(ms * 10) + ms.saturating_sub(3_000) / 10) as f64
        };
        for rule in ["bbr", "bbr3"] {
            let [told, untold] = [true, false].map(|told| little(rule, told));
            assert!(told > 0.7 * 8e6 && told < 1.3 * 8e6, "{rule}: {told}");
            assert!(untold < 0.3 * 8e6, "{rule}: {untold}");
        }
    }
}

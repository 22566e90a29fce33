//! A path that carries far less all at once, as one through the air does: what it carries now, and what of its packets another path
//! would deliver sooner. Round trips and the greatest of the last rates tell of it when what is in flight has arrived, a second later.

use super::{Record, SentPackets, State};
use crate::packet::QueuedPacket;
use clock::{Duration, Instant};

/// A rate that is so many times less than it was lately has fallen.
const FALLEN: u64 = 3;
/// The time in which deliveries are counted, and the one before: some reports.
const STRETCH: Duration = Duration::from_millis(40);
/// All round trips that are longer than the least by this, and by this part of it, are those of a queue.
const QUEUE: (Duration, f64) = (Duration::from_millis(10), 0.25);

/// What has arrived in some time.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    began: Instant,
    bytes: u64,
    least_rtt: Duration,
}

impl Stretch {
    fn new(began: Instant) -> Self {
        Self { began, bytes: 0, least_rtt: Duration::MAX }
    }
}

/// What a path has delivered lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lately {
    /// This stretch, and the one before.
    stretches: [Stretch; 2],
    /// The rate has fallen, and packets still wait there.
    has_fallen: bool,
}

impl Lately {
    pub(super) fn new(now: Instant) -> Self {
        Self { stretches: [Stretch::new(now); 2], has_fallen: false }
    }

    /// So many bytes have arrived, after such a round trip, if that was measured. Whether it is time to look what that tells.
    fn arrived(&mut self, now: Instant, bytes: u64, rtt: Option<Duration>) -> bool {
        let [this, _] = &mut self.stretches;
        this.bytes += bytes;
        this.least_rtt = this.least_rtt.min(rtt.unwrap_or(Duration::MAX));
        now - this.began >= STRETCH
    }

    /// So many bytes wait there. What the path carries in bit/s, where it has fallen to that from `rate` just now; `least` is its least
    /// round trip.
    fn fell(&mut self, now: Instant, waiting: u64, (rate, least): (u64, Duration)) -> Option<u64> {
        let [this, before] = &self.stretches;
        let rtt = this.least_rtt.min(before.least_rtt);
        let has_queue = rtt != Duration::MAX && rtt > least + QUEUE.0.max(least.mul_f64(QUEUE.1));
        // The end of what a program had to send arrives at no rate of the path's.
        let has_queue = has_queue && waiting >= this.bytes + before.bytes;
        let current = Self::rate(this.bytes + before.bytes, now - before.began);
        let is_less = current.saturating_mul(FALLEN) < rate;
        self.stretches = [Stretch::new(now), *this];
        self.has_fallen = has_queue && (self.has_fallen || is_less);
        // The first stretch has what arrived before the fall as well.
        (self.has_fallen && current < rate).then_some(current)
    }

    fn rate(bytes: u64, time: Duration) -> u64 {
        (bytes as f64 * 8.0 / time.as_secs_f64().max(1e-6)) as u64
    }

    /// What the path carries now, in bit/s, if it has fallen to that.
    fn fallen_to(&self, now: Instant) -> Option<u64> {
        let [this, before] = &self.stretches;
        let bytes = this.bytes + before.bytes;
        (self.has_fallen && bytes > 0).then(|| Self::rate(bytes, now - before.began).max(1))
    }
}

impl<P> SentPackets<P> {
    /// Whether the path has begun to carry far less, and packets still wait there.
    pub(crate) fn has_fallen(&self) -> bool {
        self.lately.has_fallen
    }

    /// Something has arrived: what the path carries in bit/s, where it has just begun to carry far less, or goes on to.
    pub(super) fn fallen(&mut self, now: Instant, bytes: u64, rtt: Option<Duration>) -> Option<u64> {
        if !self.lately.arrived(now, bytes, rtt) {
            return None;
        }
        let known = (self.full_rate(), self.rtt.min().unwrap_or(Duration::MAX));
        let waiting = if self.lately.has_fallen { self.in_flight as u64 } else { self.overdue(now) };
        self.lately.fell(now, waiting, known)
    }

    /// Bytes in flight for longer than a round trip: what was sent just now has not arrived on any path.
    fn overdue(&self, now: Instant) -> u64 {
        let usual = self.rtt.srtt().unwrap_or_default() + QUEUE.0;
        let overdue = self.packets.iter().take_while(|packet| now - packet.at > usual);
        overdue.filter(|packet| packet.is_in_flight()).map(|packet| u64::from(packet.wire)).sum()
    }

    /// Takes those of the packets in flight that another path would deliver sooner, the oldest first, to be sent there: one that takes
    /// `delay`, carries `rate` bit/s and has room for `room` bytes. They stay in flight here.
    pub(crate) fn overtaken(
        &mut self,
        now: Instant,
        (delay, rate): (Duration, u64),
        room: usize,
    ) -> Vec<QueuedPacket<P>> {
        let own = self.lately.fallen_to(now).filter(|own| own.saturating_mul(FALLEN) < rate);
        let (Some(own), Some(least)) = (own, self.rtt.min()) else { return Vec::new() };
        let (mut ahead, mut there, mut overtaken) = (0, 0, Vec::new());
        for packet in &mut self.packets {
            if packet.state != State::InFlight || packet.kind == Record::Uncounted {
                continue;
            }
            ahead += u64::from(packet.wire);
            let Record::Retransmittable(place) = packet.kind else { continue };
            // It will be acknowledged when all before it are, half a round trip after it has arrived.
            let here = Duration::of_transmission(ahead, own).saturating_sub(least / 2);
            // One that was moved before stays: where all paths fall it would go to and fro.
            let may = self.kept.get(place).is_some_and(|packet| packet.number.is_some() && packet.rescues == 0);
            if !may || here <= delay + Duration::of_transmission(there, rate) {
                continue;
            }
            there += u64::from(packet.wire);
            if there > room as u64 {
                break;
            }
            packet.kind = Record::InFlight;
            overtaken.extend(self.kept.take(place));
        }
        overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::datagram;
    use crate::sent_packets::Kind;
    use crate::{Number, Report};
    use clock::Rng;

    const LEAST: Duration = Duration::from_millis(60);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// What is found while packets of 1500 bytes arrive in such distances for half a second, after such round trips.
    fn found(lately: &mut Lately, from: u64, gap: u64, mut rtt: impl FnMut() -> u64) -> Vec<(u64, u64)> {
        let times = (from..from + 500).step_by(gap as usize);
        let arrives = |now| {
            let is_over = lately.arrived(at(now), 1500, Some(Duration::from_millis(rtt())));
            Some((now, is_over.then(|| lately.fell(at(now), 150_000, (20_000_000, LEAST)))??))
        };
        times.filter_map(arrives).collect()
    }

    #[test]
    fn a_rate_has_fallen_where_packets_wait_and_only_there() {
        // 1500 bytes in 6 ms are 2 Mbit/s.
        let mut lately = Lately::new(at(0));
        assert_eq!(found(&mut lately, 0, 1, || 100), [], "12 of 20 Mbit/s are no fall");
        let fell = found(&mut lately, 500, 6, || 100);
        let rate = fell.last().unwrap().1;
        assert!(fell[0].0 <= 600 && (1_900_000..2_100_000).contains(&rate), "{fell:?}");
        assert!((1_900_000..2_100_000).contains(&lately.fallen_to(at(1000)).unwrap()));
        // Nothing has come since.
        assert!(lately.fallen_to(at(2000)).unwrap() < 200_000);
        assert_eq!(found(&mut lately, 2000, 6, || 61), [], "a program that sends little");
        assert_eq!(lately.fallen_to(at(2500)), None);
    }

    /// From 12 to 2 Mbit/s in the middle of a stretch: the first that is found has what arrived before as well.
    #[test]
    fn a_fallen_rate_is_followed_down() {
        let (mut lately, mut known) = (Lately::new(at(0)), vec![20_000_000]);
        for now in (0..230).chain((230..800).step_by(6)) {
            if lately.arrived(at(now), 1500, Some(Duration::from_millis(100))) {
                known.extend(lately.fell(at(now), 150_000, (*known.last().unwrap(), LEAST)));
            }
        }
        assert!(known[1] > 3_000_000 && *known.last().unwrap() < 2_100_000, "{known:?}");
    }

    /// The last packets that a program had to send have waited behind others, and nothing follows them.
    #[test]
    fn an_end_is_no_fall() {
        let mut lately = Lately::new(at(0));
        for (now, waiting) in
            (0..1_000).step_by(6).zip((0..30_000_u64).rev().step_by(1_500).chain(std::iter::repeat(0)))
        {
            if lately.arrived(at(now), 1500, Some(Duration::from_millis(100))) {
                let fell = lately.fell(at(now), waiting, (20_000_000, LEAST));
                assert!(fell.is_none() || waiting > 15_000, "{now} {waiting} {fell:?}");
            }
        }
        assert_eq!(lately.fallen_to(at(1_000)), None);
    }

    /// A link of 60 ms carries 12 Mbit/s, and is 80 ms long after a handover. Then a program sends fifty packets at once each 400 ms, as it
    /// does while it waits for a distant path.
    #[test]
    fn what_was_sent_just_now_is_no_fall() {
        let mut sent = SentPackets::<()>::new(at(0));
        sent.set_full(0, true);
        let (mut left, mut next) = (std::collections::VecDeque::new(), 0);
        for now in 0..6_000_u64 {
            let (rtt, count) = if now < 500 { (60, 1) } else { (80, if now % 400 == 0 { 50 } else { 0 }) };
            for place in 0..count {
                next += 1;
                sent.sent(at(now), next, 1500, Kind::InFlight);
                left.push_back((now + rtt + place, next));
            }
            // Acknowledgments, and now and then a heartbeat.
            if now >= 500 && now % 30 == 7 {
                next += 1;
                sent.sent(at(now), next, 96, Kind::InFlight);
                left.push_back((now + rtt.max(left.back().map_or(0, |(due, _)| *due).saturating_sub(now)), next));
            }
            while let Some((_, number)) = left.pop_front_if(|(due, _)| *due <= now) {
                let report =
                    Report { highest: number, packets: number, ranges: vec![(1, number)], ..Report::default() };
                sent.on_report(at(now), &report, true).unwrap();
                assert!(!sent.has_fallen(), "{now} ms");
            }
        }
        assert!(sent.full_rate() > 5_000_000, "{}", sent.full_rate());
    }

    /// A program sends 2 Mbit/s, and round trips differ by up to 40 ms.
    #[test]
    fn jitter_is_no_queue() {
        let (mut lately, mut rng) = (Lately::new(at(0)), Rng::from_seed(7));
        assert_eq!(found(&mut lately, 0, 6, || 60 + rng.next_u64() % 41), []);
    }

    #[test]
    fn what_another_path_delivers_sooner_is_taken_once_the_oldest_first() {
        let mut sent = SentPackets::<u32>::new(at(0));
        let number = |value| Number { value, is_early: false };
        let packet = |n: u32| {
            let number = (!n.is_multiple_of(10)).then(|| number(n as u16));
            let rescues = u8::from(n.is_multiple_of(7));
            crate::packet::QueuedPacket { number, rescues, ..datagram(n, None, 1500) }
        };
        let stays = |n: &u32| n.is_multiple_of(10) || n.is_multiple_of(7);
        // 12 Mbit/s, then one packet in 6 ms; nothing is lost.
        let (mut next, mut left) = (0, std::collections::VecDeque::new());
        let mut arrives = 0;
        for now in 0..600 {
            next += 1;
            sent.sent(at(now), next, 1500, Kind::Retransmittable(packet(next)));
            arrives = if now < 200 { now + 60 } else { arrives + 6 };
            left.push_back((arrives, next));
            while left.front().is_some_and(|(due, _)| *due <= now) {
                let (_, number) = left.pop_front().unwrap();
                let report =
                    Report { highest: number, packets: number, ranges: vec![(1, number)], ..Report::default() };
                sent.set_full(0, true);
                sent.on_report(at(now), &report, true).unwrap();
            }
        }
        let now = at(599);
        assert!(sent.has_fallen());
        let first = left.front().unwrap().1;
        let in_flight = sent.in_flight();
        assert!(sent.overtaken(now, (Duration::from_millis(50), 4_000_000), 1 << 20).is_empty(), "one of 4 Mbit/s");
        let other = (Duration::from_millis(50), 48_000_000);
        let taken = sent.overtaken(now, other, 30_000);
        // The one after 50 ms, and 30 ms more because the round trip counts the way back.
        let expected: Vec<u32> = (first + 13..).filter(|n| !stays(n)).take(20).collect();
        let begins = taken[0].payload.abs_diff(expected[0]);
        assert!(taken.len() == 20 && begins <= 2, "{} {:?} {first}", taken.len(), taken[0].payload);
        assert!(taken.windows(2).all(|pair| pair[0].payload < pair[1].payload));
        let more = sent.overtaken(now, other, 1 << 20);
        assert!(more[0].payload > taken[19].payload, "each once");
        let all: Vec<u32> = taken.iter().chain(&more).map(|packet| packet.payload).collect();
        assert!(
            all.iter().all(|n| !stays(n)) && *all.last().unwrap() >= next - 2,
            "what has no number stays, and what was moved before"
        );
        assert_eq!(sent.in_flight(), in_flight);
    }
}

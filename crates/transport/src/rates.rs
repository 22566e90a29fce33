//! What is kept of each packet under way for rules that read the rate of delivery, and what they are told of it.
//!
//! Such rules do not slow down for losses, so many packets are lost with them whose first retransmission is lost, too. RFC 6675 would
//! wait for the retransmission timer each time; here a retransmission is lost when something is delivered that was sent later, and by
//! more than a quarter of the lowest round-trip time (RFC 8985 §6.2; Linux' RACK).

use std::collections::VecDeque;

use clock::{Duration, Instant};
use congestion::{Delivery, LostPacket, RateSample, SentPacket};

use crate::resent::Resent;
use crate::subflow::Waiting;

/// The packets under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates {
    delivery: Delivery,
    /// From `first` on, which is the first packet not acknowledged.
    packets: VecDeque<Entry>,
    first: u64,
    /// Below it losses were counted.
    lost_edge: u64,
    resent: Resent,
    waiting: Waiting,
    /// The round-trip time of the newest packet of the acknowledgment at hand, if it was sent once.
    rtt: Option<(Instant, Duration)>,
    is_ack_delayed: bool,
    prior_in_flight: u64,
    /// The window has kept data waiting in the round trip that ends when this is acknowledged.
    window_limited: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: SentPacket,
    place: Place,
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    UnderWay,
    Lost,
    Delivered,
}

impl Rates {
    /// The packet at `position` is sent, with which so many bytes are in the network.
    pub(crate) fn on_sent(&mut self, now: Instant, position: u64, in_flight: u64) {
        let packet = self.delivery.on_sent(now, self.packets.is_empty(), in_flight);
        let index = position.saturating_sub(self.first) as usize;
        match self.packets.get_mut(index) {
            Some(entry) => {
                *entry = Entry { packet, place: Place::UnderWay, again: true };
                self.resent.on_sent(position, now);
            }
            None => self.packets.push_back(Entry { packet, place: Place::UnderWay, again: false }),
        }
    }

    /// The window keeps data waiting, of which `next` is the first packet.
    pub(crate) fn on_window_limited(&mut self, next: u64) {
        self.window_limited = next;
    }

    /// There are no data, though there is room for them in the window.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.delivery.on_app_limited(in_flight);
    }

    /// The answer to the SYN came: the first round-trip time.
    pub(crate) fn on_connected(&mut self, now: Instant) -> RateSample {
        let syn = self.packets.pop_front();
        self.first = 1;
        self.resent.clear();
        let rtt = syn.filter(|syn| !syn.again).map(|syn| now.saturating_since(syn.packet.sent));
        self.delivery.sample(rtt)
    }

    /// An acknowledgment of packets of `mss` bytes came, when so many bytes were in the network.
    pub(crate) fn begin(&mut self, in_flight: u64) {
        self.prior_in_flight = in_flight;
        self.rtt = None;
        self.is_ack_delayed = false;
    }

    /// All below `ack` is acknowledged.
    pub(crate) fn advance(&mut self, now: Instant, ack: u64, mss: u64) {
        let count = ack.saturating_sub(self.first);
        for _ in 0..count {
            let Some(entry) = self.packets.pop_front() else { break };
            if entry.place != Place::Delivered {
                self.delivered(now, &entry, mss);
            }
        }
        if count > 0 {
            self.first = ack;
            self.is_ack_delayed = self.waiting.has_waited(count);
        }
    }

    /// The packet at `position` is acknowledged, though one before it is not.
    pub(crate) fn on_selected(&mut self, now: Instant, position: u64, mss: u64) {
        let index = position.wrapping_sub(self.first) as usize;
        let Some(entry) = self.packets.get_mut(index) else { return };
        if std::mem::replace(&mut entry.place, Place::Delivered) != Place::Delivered {
            let entry = *entry;
            self.delivered(now, &entry, mss);
        }
    }

    fn delivered(&mut self, now: Instant, entry: &Entry, mss: u64) {
        let sent = entry.packet.sent;
        self.delivery.on_delivered(now, &entry.packet, mss);
        let took = now.saturating_since(sent);
        if !entry.again && self.rtt.is_none_or(|(newest, _)| sent >= newest) {
            self.rtt = Some((sent, took));
        }
        // What comes so soon is the answer to the first transmission.
        if !entry.again || self.delivery.min_rtt().is_some_and(|min| took >= min) {
            self.resent.on_delivered(sent);
        }
    }

    /// What is not delivered below `edge`, and was not counted yet, is lost. `tell` is told of each packet.
    pub(crate) fn lose_below(&mut self, edge: u64, mss: u64, mut tell: impl FnMut(&LostPacket)) {
        for position in self.lost_edge.max(self.first)..edge {
            if let Some(lost) = self.lose(position, mss) {
                tell(&lost);
            }
        }
        self.lost_edge = edge; // It goes back if losses turn out not to be.
    }

    /// All that is under way is lost.
    pub(crate) fn lose_all(&mut self, mss: u64, tell: impl FnMut(&LostPacket)) {
        self.lost_edge = self.first;
        self.resent.clear();
        self.lose_below(self.first + self.packets.len() as u64, mss, tell);
    }

    /// A retransmission that is lost, if there is one.
    pub(crate) fn lost_retransmission(&mut self, mss: u64) -> Option<(u64, LostPacket)> {
        let late = self.delivery.min_rtt()? / 4;
        let Self { packets, first, resent, .. } = self;
        let is_under_way = |position: u64, sent| {
            let entry = position.checked_sub(*first).and_then(|index| packets.get(index as usize));
            entry.is_some_and(|entry| entry.place == Place::UnderWay && entry.packet.sent == sent)
        };
        let position = resent.next_lost(late, is_under_way)?;
        self.lose(position, mss).map(|lost| (position, lost))
    }

    fn lose(&mut self, position: u64, mss: u64) -> Option<LostPacket> {
        let entry = self.packets.get_mut(position.checked_sub(self.first)? as usize)?;
        if entry.place != Place::UnderWay {
            return None;
        }
        entry.place = Place::Lost;
        Some(self.delivery.on_lost(&entry.packet, mss))
    }

    /// What the acknowledgment tells, after which so many bytes are in the network.
    pub(crate) fn sample(&mut self, in_flight: u64) -> RateSample {
        RateSample {
            prior_in_flight: self.prior_in_flight,
            in_flight,
            is_ack_delayed: self.is_ack_delayed,
            is_window_limited: self.first <= self.window_limited,
            ..self.delivery.sample(self.rtt.map(|(_, rtt)| rtt))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Positions 1 to 10, one each millisecond, after a round trip of 100 ms.
    fn ten() -> Rates {
        let mut rates = Rates::default();
        rates.on_sent(at(0), 0, 1);
        assert_eq!(rates.on_connected(at(100)).rtt, Some(Duration::from_millis(100)));
        (1..11).for_each(|position| rates.on_sent(at(100 + position), position, position));
        rates
    }

    #[test]
    fn each_packet_is_delivered_once() {
        let mut rates = ten();
        rates.begin(10);
        rates.on_selected(at(205), 5, 1);
        rates.on_selected(at(205), 5, 1);
        rates.advance(at(205), 3, 1);
        let sample = rates.sample(7);
        assert_eq!((sample.acked, sample.total, sample.rtt), (3, 3, Some(Duration::from_millis(100))));
        rates.begin(7);
        rates.advance(at(206), 7, 1);
        let sample = rates.sample(4);
        assert_eq!((sample.acked, sample.prior_in_flight, sample.in_flight), (3, 7, 4));
    }

    /// RFC 8985 §6.2: sent again at 210 ms; what was sent 25 ms later and no more arrives, then what was sent later than that.
    #[test]
    fn a_retransmission_is_lost_when_what_was_sent_later_has_come() {
        let mut rates = ten();
        rates.begin(10);
        (2..11).for_each(|position| rates.on_selected(at(210), position, 1));
        let mut lost = 0;
        rates.lose_below(8, 1, |packet| lost += packet.bytes);
        assert_eq!((lost, rates.sample(0).newly_lost), (1, 1));
        rates.on_sent(at(210), 1, 1);
        rates.on_sent(at(235), 11, 2);
        rates.on_sent(at(236), 12, 3);
        rates.begin(3);
        rates.on_selected(at(335), 11, 1);
        assert_eq!(rates.lost_retransmission(1), None);
        rates.on_selected(at(336), 12, 1);
        let (position, packet) = rates.lost_retransmission(1).unwrap();
        assert_eq!((position, packet.lost), (1, 1));
        assert_eq!(rates.lost_retransmission(1), None);
    }

    #[test]
    fn after_a_timeout_all_is_lost() {
        let mut rates = ten();
        let mut lost = 0;
        rates.on_selected(at(205), 5, 1);
        rates.lose_all(1, |_| lost += 1);
        assert_eq!(lost, 9);
        rates.lose_all(1, |_| lost += 1);
        assert_eq!(lost, 9, "once");
    }
}

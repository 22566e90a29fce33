//! How fast a path delivers: one sample of the rate with each acknowledgment, for rules that set the window from a model of the
//! path (draft-cheng-iccrg-delivery-rate-estimation, now §4.1 of draft-ietf-ccwg-bbr).
//!
//! A rate is what was delivered between two acknowledgments, over the longer of the time between them and the time in which it was
//! sent: acknowledgments that come together tell of no faster path, and neither does a burst.

use clock::{Duration, Instant};

/// What the owner keeps of a packet until it is delivered or lost: what the connection was like when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// When it was sent.
    pub sent: Instant,
    /// When the packet was sent that was delivered last; the rate of sending counts from it.
    first_sent: Instant,
    /// When that was delivered, and how many bytes had been by then.
    delivered_at: Instant,
    delivered: u64,
    /// Bytes found lost by then.
    lost: u64,
    /// Bytes in the network with this packet.
    in_flight: u64,
    is_app_limited: bool,
}

/// What one acknowledgment tells of the path, in bytes without headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Delivered since the newest of the acknowledged packets was sent.
    pub delivered: u64,
    /// In so long; zero if that tells of no rate.
    pub interval: Duration,
    /// Delivered in all when that packet was sent.
    pub prior_delivered: u64,
    /// Delivered in all now.
    pub total: u64,
    /// Delivered, and found lost, by this acknowledgment.
    pub acked: u64,
    /// See [`Self::acked`].
    pub newly_lost: u64,
    /// Found lost since the newest of the acknowledged packets was sent, and what was in the network with it then.
    pub lost: u64,
    /// See [`Self::lost`].
    pub tx_in_flight: u64,
    /// In the network before this acknowledgment, and after it.
    pub prior_in_flight: u64,
    /// See [`Self::prior_in_flight`].
    pub in_flight: u64,
    /// The round-trip time of the newest packet, if it was sent once.
    pub rtt: Option<Duration>,
    /// The receiver may have waited before it acknowledged.
    pub is_ack_delayed: bool,
    /// There were no data to send when the newest packet was: the rate is the application's.
    pub is_app_limited: bool,
    /// The window kept data waiting in the last round trip.
    pub is_window_limited: bool,
    /// When sending began again after there was nothing to send and nothing under way; told once.
    pub restarted: Option<Instant>,
}

impl RateSample {
    /// The rate in bytes per second, if there is one.
    pub fn rate(&self) -> Option<f64> {
        (!self.interval.is_zero()).then(|| self.delivered as f64 / self.interval.as_secs_f64())
    }
}

/// A packet that was found lost, as it was when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes in the network with it.
    pub tx_in_flight: u64,
    /// Bytes found lost since it was sent, itself included.
    pub lost: u64,
    /// Bytes delivered in all now.
    pub total: u64,
    /// There were no data to send after it.
    pub is_app_limited: bool,
}

/// What a rule makes of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateDecision {
    /// The window in bytes.
    pub cwnd: f64,
    /// What is sent now is less than the path carries, because the rule wants it so: samples of it count as those of an
    /// application that has little to send.
    pub is_low: bool,
}

/// The delivery of a connection's packets on one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// While not more than this is delivered, what is sent is limited by the application.
    app_limited_until: u64,
    restarted: Option<Instant>,
    min_rtt: Option<Duration>,
    /// Of the acknowledgment at hand.
    newest: Option<SentPacket>,
    acked: u64,
    newly_lost: u64,
}

impl Delivery {
    /// A packet is sent now. `is_first` if nothing else is outstanding; `in_flight` counts it, too.
    pub fn on_sent(&mut self, now: Instant, is_first: bool, in_flight: u64) -> SentPacket {
        if is_first {
            // Idle time is no time of sending, nor of delivery.
            (self.first_sent, self.delivered_at) = (now, now);
            if self.is_app_limited() {
                self.restarted = Some(now);
            }
        }
        SentPacket {
            sent: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight,
            is_app_limited: self.is_app_limited(),
        }
    }

    /// The acknowledgment at hand says that `packet` of so many bytes was delivered.
    pub fn on_delivered(&mut self, now: Instant, packet: &SentPacket, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.acked += bytes;
        let is_newer = |newest: &SentPacket| (packet.delivered, packet.sent) > (newest.delivered, newest.sent);
        if self.newest.as_ref().is_none_or(is_newer) {
            self.newest = Some(*packet);
            self.first_sent = packet.sent;
        }
    }

    /// `packet` of so many bytes is lost.
    pub fn on_lost(&mut self, packet: &SentPacket, bytes: u64) -> LostPacket {
        self.lost += bytes;
        self.newly_lost += bytes;
        LostPacket {
            bytes,
            tx_in_flight: packet.in_flight,
            lost: self.lost - packet.lost,
            total: self.delivered,
            is_app_limited: packet.is_app_limited,
        }
    }

    /// There is nothing to send, though window and pace allow it, or nothing more is wanted: what is in flight is no measure of
    /// the path.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// The lowest round-trip time so far.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// All that the acknowledgment at hand told. `rtt` is the round-trip time of its newest packet, if it was sent once.
    pub fn sample(&mut self, rtt: Option<Duration>) -> RateSample {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let mut sample = RateSample {
            total: self.delivered,
            acked: std::mem::take(&mut self.acked),
            newly_lost: std::mem::take(&mut self.newly_lost),
            rtt,
            ..RateSample::default()
        };
        let Some(packet) = self.newest.take() else { return sample };
        sample.prior_delivered = packet.delivered;
        sample.delivered = self.delivered - packet.delivered;
        sample.lost = self.lost - packet.lost;
        sample.tx_in_flight = packet.in_flight;
        sample.is_app_limited = packet.is_app_limited;
        sample.restarted = self.restarted.take();
        let sending = packet.sent.saturating_since(packet.first_sent);
        let interval = sending.max(self.delivered_at.saturating_since(packet.delivered_at));
        // Less than a round trip: the acknowledgment is that of a first transmission, the packet one that was sent again.
        if self.min_rtt.is_some_and(|min| interval >= min) {
            sample.interval = interval;
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Four packets of 1,000 bytes at 0, 10, 20, 30 ms, each acknowledged 100 ms later: the first rate of the connection is that
    /// of the fourth, 4,000 bytes from 0 to 130 ms. What is sent at 100 ms, when the first is acknowledged, is measured by
    /// what came in its round trip: three more packets in 30 ms of acknowledgments, but itself only after 100 ms.
    #[test]
    fn a_rate_is_what_came_between_two_acknowledgments() {
        let mut delivery = Delivery::default();
        let sent: Vec<_> =
            (0..4).map(|index| delivery.on_sent(at(10 * index), index == 0, 1_000 * (index + 1))).collect();
        let mut later = None;
        for (index, packet) in (0..).zip(&sent) {
            delivery.on_delivered(at(100 + 10 * index), packet, 1_000);
            let sample = delivery.sample(Some(ms(100)));
            assert_eq!((sample.delivered, sample.prior_delivered), (1_000 * (index + 1), 0));
            assert_eq!(sample.interval, ms(100 + 10 * index));
            if index == 0 {
                later = Some(delivery.on_sent(at(100), false, 4_000));
            }
        }
        delivery.on_delivered(at(200), &later.unwrap(), 1_000);
        let sample = delivery.sample(Some(ms(100)));
        assert_eq!((sample.prior_delivered, sample.delivered, sample.interval), (1_000, 4_000, ms(100)));
        assert!((sample.rate().unwrap() - 40_000.0).abs() < 1e-6);
    }

    /// §3.1.1 and §3.1.2 of draft-cheng: acknowledgments that were held back and come at once seem faster than the packets were
    /// sent; the rate of sending bounds what they tell.
    #[test]
    fn acknowledgments_at_once_do_not_tell_of_a_faster_path() {
        let mut delivery = Delivery::default();
        let start = delivery.on_sent(at(0), true, 1_000);
        delivery.on_delivered(at(100), &start, 1_000);
        delivery.sample(Some(ms(100)));
        // Ten packets, one each 20 ms; all acknowledgments come at 310 ms.
        let sent: Vec<_> =
            (0..10).map(|index| delivery.on_sent(at(110 + 20 * index), index == 0, 1_000 * (index + 1))).collect();
        sent.iter().for_each(|packet| delivery.on_delivered(at(310), packet, 1_000));
        let sample = delivery.sample(Some(ms(20)));
        assert_eq!((sample.delivered, sample.acked), (10_000, 10_000));
        // 200 ms from the first acknowledgment that could come, 180 ms of sending.
        assert_eq!(sample.interval, ms(200));
        // Sent in 280 ms from the packet on that was acknowledged last when they were, acknowledged in 190: the longer counts.
        let first = delivery.on_sent(at(320), true, 1_000);
        delivery.on_delivered(at(420), &first, 1_000);
        delivery.sample(None);
        let slow: Vec<_> = (0..10).map(|index| delivery.on_sent(at(420 + 20 * index), false, 1_000)).collect();
        delivery.on_delivered(at(600), &slow[0], 1_000);
        delivery.sample(None);
        slow[1..].iter().for_each(|packet| delivery.on_delivered(at(610), packet, 1_000));
        let sample = delivery.sample(None);
        assert_eq!((sample.delivered, sample.interval), (10_000, ms(280)));
    }

    /// What was sent while there was nothing more to send is marked, until all of that is delivered.
    #[test]
    fn what_the_application_limits_is_marked() {
        let mut delivery = Delivery::default();
        let before = delivery.on_sent(at(0), true, 1_000);
        delivery.on_app_limited(1_000);
        let after = delivery.on_sent(at(50), false, 2_000);
        delivery.on_delivered(at(100), &before, 1_000);
        assert!(!delivery.sample(Some(ms(100))).is_app_limited);
        delivery.on_delivered(at(150), &after, 1_000);
        let sample = delivery.sample(Some(ms(100)));
        assert!(sample.is_app_limited && sample.restarted.is_none());
        let free = delivery.on_sent(at(160), true, 1_000);
        assert!(!free.is_app_limited, "all is delivered that was in flight");
        delivery.on_app_limited(1_000);
        delivery.on_delivered(at(260), &free, 1_000);
        delivery.sample(Some(ms(100)));
        let again = delivery.on_sent(at(900), true, 1_000);
        delivery.on_delivered(at(1_000), &again, 1_000);
        let sample = delivery.sample(Some(ms(100)));
        assert_eq!((sample.restarted, sample.interval), (Some(at(900)), ms(100)), "idle time does not count");
    }

    /// A retransmission that seems to be acknowledged within less than a round trip was not needed: no rate.
    #[test]
    fn what_is_ambiguous_is_no_sample() {
        let mut delivery = Delivery::default();
        let first = delivery.on_sent(at(0), true, 1_000);
        delivery.on_delivered(at(100), &first, 1_000);
        delivery.sample(Some(ms(100)));
        let lost = delivery.on_sent(at(110), true, 1_000);
        let told = delivery.on_lost(&lost, 1_000);
        assert_eq!((told.lost, told.tx_in_flight), (1_000, 1_000));
        let again = delivery.on_sent(at(200), true, 1_000);
        delivery.on_delivered(at(210), &again, 1_000);
        let sample = delivery.sample(None);
        assert_eq!((sample.rate(), sample.newly_lost, sample.lost), (None, 1_000, 0));
    }
}

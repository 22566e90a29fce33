//! What losses tell BBR version 3 of the path: bounds for what is in flight and how fast it leaves (draft-ietf-ccwg-bbr §5.5.10 and
//! §5.6.4.7). The long-term bound is what was in flight when probing found more than one packet of fifty lost; short-term bounds
//! follow losses between probes, down to what the last round delivered. In bytes, and bytes per second.

use crate::delivery::{LostPacket, RateSample};
use crate::rules::bbr::LEAST;

/// So much may be lost of what was in flight.
const LOSSES: f64 = 0.02;
/// What a bound is multiplied by.
const BETA: f64 = 0.7;
/// The part of the long-term bound that is left to others while nothing is probed.
const HEADROOM: f64 = 0.15;

/// The bounds of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Infinite until there is one.
    pub(super) long_term: f64,
    pub(super) short_term: f64,
    pub(super) rate: f64,
    /// The three, before the losses at hand.
    before: [f64; 3],
    /// The highest rate, and the most that was delivered, of the last round.
    latest_rate: f64,
    pub(super) latest: f64,
    /// Rounds in which losses are counted: what had been delivered when the present one began, and whether one begins now.
    round_from: u64,
    pub(super) is_round: bool,
    has_losses: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            long_term: f64::INFINITY,
            short_term: f64::INFINITY,
            rate: f64::INFINITY,
            before: [f64::INFINITY; 3],
            latest_rate: 0.0,
            latest: 0.0,
            round_from: 1,
            is_round: false,
            has_losses: false,
        }
    }
}

/// Whether more was lost than a path without too much in flight loses.
pub(super) fn are_too_many(lost: u64, in_flight: u64) -> bool {
    in_flight > 0 && lost as f64 > LOSSES * in_flight as f64
}

/// How much was in flight when one packet of fifty was lost, with a part of `packet`.
pub(super) fn in_flight_at_loss(packet: &LostPacket) -> f64 {
    let in_flight = packet.tx_in_flight.saturating_sub(packet.bytes) as f64;
    let lost = packet.lost.saturating_sub(packet.bytes) as f64;
    in_flight + ((LOSSES * in_flight - lost) / (1.0 - LOSSES)).max(0.0)
}

impl Bounds {
    /// What the sample says of the round.
    pub(super) fn begin(&mut self, sample: &RateSample) {
        self.is_round = false;
        if let Some(rate) = sample.rate() {
            self.latest_rate = self.latest_rate.max(rate);
            self.latest = self.latest.max(sample.delivered as f64);
            if sample.prior_delivered >= self.round_from {
                self.round_from = sample.total;
                self.is_round = true;
            }
        }
    }

    /// The last that is done with the sample.
    pub(super) fn end(&mut self, sample: &RateSample) {
        if self.is_round {
            self.latest_rate = sample.rate().unwrap_or(0.0);
            self.latest = sample.delivered as f64;
        }
    }

    /// A packet is lost: the round of the loss is a whole one.
    pub(super) fn on_lost(&mut self, packet: &LostPacket) {
        if !self.has_losses {
            self.round_from = packet.total;
        }
        self.has_losses = true;
    }

    /// Once a round, if there were losses in it and nothing was probed: neither more than the last round delivered nor than 0.7 of
    /// what was allowed is known to be safe.
    pub(super) fn adapt(&mut self, sample: &RateSample, probes: bool, cwnd: f64, rate: f64) {
        self.has_losses |= sample.newly_lost > 0;
        if !self.is_round {
            return;
        }
        if std::mem::take(&mut self.has_losses) && !probes {
            let (bound, in_flight) = (finite(self.rate, rate), finite(self.short_term, cwnd));
            self.rate = self.latest_rate.max(BETA * bound);
            self.short_term = self.latest.max(BETA * in_flight);
        }
    }

    /// Probing begins: what losses told between probes does not hold.
    pub(super) fn forget_short_term(&mut self) {
        (self.short_term, self.rate) = (f64::INFINITY, f64::INFINITY);
    }

    /// Probing is over: what it did is not to be answered.
    pub(super) fn forget_round(&mut self) {
        self.has_losses = false;
        (self.latest_rate, self.latest) = (0.0, 0.0);
    }

    /// Probing has put too much in flight, and so much was when that showed.
    pub(super) fn cut_long_term(&mut self, in_flight: f64, target: f64) {
        self.long_term = in_flight.max(BETA * target);
    }

    /// The long-term bound, less what is left to others.
    pub(super) fn with_headroom(&self, mss: f64) -> f64 {
        if self.long_term.is_infinite() {
            return self.long_term;
        }
        (self.long_term - (HEADROOM * self.long_term).max(mss)).max(LEAST * mss)
    }

    /// Losses are being answered, perhaps in error.
    pub(super) fn save(&mut self) {
        self.before = [self.long_term, self.short_term, self.rate];
    }

    /// They were none.
    pub(super) fn restore(&mut self) {
        self.has_losses = false;
        let [long_term, short_term, rate] = self.before;
        self.long_term = self.long_term.max(long_term);
        self.short_term = self.short_term.max(short_term);
        self.rate = self.rate.max(rate);
    }
}

fn finite(bound: f64, otherwise: f64) -> f64 {
    if bound.is_finite() { bound } else { otherwise }
}

#[cfg(test)]
mod tests {
    use clock::Duration;

    use super::*;

    /// draft-ietf-ccwg-bbr §5.5.10.2 solves lost/in_flight = 2 %: of 100 packets sent before it one was lost, so that half of the
    /// second loss makes it 2 of 100, at 101.02 packets.
    #[test]
    fn the_bound_is_where_two_of_a_hundred_were_lost() {
        let packet = LostPacket { bytes: 1_000, tx_in_flight: 101_000, lost: 2_000, total: 0, is_app_limited: false };
        let in_flight = in_flight_at_loss(&packet);
        assert!((in_flight - 101_020.408).abs() < 0.001, "{in_flight}");
        assert!(((1_000.0 + in_flight - 100_000.0) / in_flight - 0.02).abs() < 1e-12);
        let packet = LostPacket { lost: 9_000, ..packet };
        assert_eq!(in_flight_at_loss(&packet), 100_000.0, "what was lost before is too much already");
        assert!(are_too_many(3, 149) && !are_too_many(3, 150) && !are_too_many(1, 0));
    }

    /// Once a round to 0.7, but not below what the round delivered.
    #[test]
    fn losses_between_probes_cut_once_a_round() {
        let mut bounds = Bounds::default();
        let mut round = |lost, delivered| {
            let sample = RateSample {
                interval: Duration::from_secs(1),
                newly_lost: lost,
                delivered,
                prior_delivered: u64::MAX,
                ..RateSample::default()
            };
            bounds.begin(&sample);
            bounds.adapt(&sample, false, 10_000.0, 8_000.0);
            bounds.end(&sample);
            (bounds.short_term, bounds.rate)
        };
        assert_eq!(round(0, 5_000), (f64::INFINITY, f64::INFINITY));
        assert_eq!(round(1, 5_000), (7_000.0, 5_600.0));
        assert_eq!(round(0, 5_000), (7_000.0, 5_600.0));
        assert_eq!(round(1, 5_000), (5_000.0, 5_000.0));
        assert_eq!(bounds.with_headroom(100.0), f64::INFINITY);
        bounds.cut_long_term(10_000.0, 20_000.0);
        assert_eq!(bounds.with_headroom(100.0), 11_900.0, "0.85 · 0.7 · 20,000");
    }
}

//! UDP: a source of constant rate, or on and off, and a sink that counts.

use clock::{Duration, Instant, Rng};

use crate::packet::{Flags, NO_BLOCKS, Packet};
use crate::receiver::ReceiverStatistics;

/// One source's options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpConfig {
    /// Bits per second on the wire while it sends, more than 0.
    pub rate: u64,
    /// Bytes of a packet on the wire.
    pub packet_size: u32,
    /// Headers of a packet: 28 for IPv4.
    pub header_size: u32,
    /// Pauses; none if `None`.
    pub pauses: Option<Pauses>,
    /// Data to send in bytes, without headers; unlimited if `None`.
    pub data: Option<u64>,
}

/// Times of sending and of pauses, in turn, beginning with sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Mean time of sending.
    pub on: Duration,
    /// Mean time of a pause.
    pub off: Duration,
    /// Both are drawn from exponential distributions, instead of being always the same.
    pub exponential: bool,
}

/// A source.
#[derive(Clone, Debug)]
pub struct UdpSource {
    config: UdpConfig,
    random: Rng,
    /// When the time of sending began, when it ends, and how many packets went out in it.
    began: Instant,
    ends: Instant,
    count: u64,
    next: Instant,
    due: bool,
    sent: u64,
    last: u64,
}

impl UdpSource {
    /// A source that has not started.
    pub fn new(config: UdpConfig, random: Rng) -> Self {
        let payload = u64::from(config.packet_size.saturating_sub(config.header_size).max(1));
        Self {
            config,
            random,
            began: Instant::ZERO,
            ends: Instant::FAR_FUTURE,
            count: 0,
            next: Instant::FAR_FUTURE,
            due: false,
            sent: 0,
            last: config.data.map_or(u64::MAX, |data| data.div_ceil(payload)),
        }
    }

    /// Begins to send.
    pub fn start(&mut self, now: Instant) {
        self.begin(now);
        self.due = self.sent < self.last;
    }

    /// Ends for good.
    pub fn stop(&mut self) {
        self.next = Instant::FAR_FUTURE;
        self.due = false;
        self.last = self.sent;
    }

    /// Packets sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether all data are sent.
    pub fn is_complete(&self) -> bool {
        self.sent >= self.last
    }

    /// When [`UdpSource::handle_timeout`] is to be called; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub fn send_deadline(&self) -> Instant {
        self.next
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        if now >= self.ends {
            self.begin(now); // The pause is over.
        }
        self.due = true;
    }

    /// The packet to send now, if any. Flow and hop are the caller's to set.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let position = self.sent as u32;
        self.sent += 1;
        self.count += 1;
        if self.sent >= self.last {
            self.next = Instant::FAR_FUTURE;
        } else {
            // From the beginning of this time of sending, so that rounding does not add up.
            let bits = u64::from(self.config.packet_size) * 8 * self.count;
            self.next = self.began + Duration::of_transmission(bits / 8, self.config.rate);
            if self.next >= self.ends
                && let Some(pauses) = self.config.pauses
            {
                let pause = self.draw(pauses.off, pauses.exponential);
                self.next = self.ends.max(now) + pause.max(Duration::from_nanos(1));
            }
        }
        let flags = Flags::default();
        let bytes = self.config.packet_size;
        Some(Packet { time: now, flow: 0, hop: 0, position, blocks: NO_BLOCKS, bytes, flags, path: 0 })
    }

    fn begin(&mut self, now: Instant) {
        self.began = now;
        self.next = now;
        self.count = 0;
        self.ends = match self.config.pauses {
            Some(pauses) => now + self.draw(pauses.on, pauses.exponential),
            None => Instant::FAR_FUTURE,
        };
    }

    fn draw(&mut self, mean: Duration, exponential: bool) -> Duration {
        if exponential { mean.mul_f64(standard_exponential(&mut self.random)) } else { mean }
    }
}

/// A number from the exponential distribution of mean 1, by comparisons alone, so that it is the same on every machine
/// (J. von Neumann, *Various techniques used in connection with random digits*, 1951).
fn standard_exponential(random: &mut Rng) -> f64 {
    let mut whole = 0.0;
    loop {
        let first = random.unit();
        let (mut least, mut length) = (first, 1_u32);
        loop {
            let next = random.unit();
            if next >= least {
                break;
            }
            least = next;
            length += 1;
        }
        // A falling run of odd length accepts.
        if length % 2 == 1 {
            return whole + first;
        }
        whole += 1.0;
    }
}

/// A sink.
#[derive(Clone, Debug, Default)]
pub struct UdpSink {
    high: u64,
    statistics: ReceiverStatistics,
}

impl UdpSink {
    /// Packets that arrived.
    pub fn delivered(&self) -> u64 {
        self.statistics.packets
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// A packet arrived.
    #[inline]
    pub fn handle_input(&mut self, packet: &Packet) {
        let position = crate::packet::expand(packet.position, self.high);
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        self.statistics.marked += u64::from(packet.flags.has(Flags::MARKED));
        if position >= self.high {
            self.high = position + 1;
        } else {
            self.statistics.reordered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(config: UdpConfig, seconds: u64) -> u64 {
        let mut source = UdpSource::new(config, Rng::from_seed(3));
        let mut now = Instant::ZERO;
        source.start(now);
        while now < Instant::ZERO + Duration::from_secs(seconds) {
            while source.poll_transmit(now).is_some() {}
            now = source.send_deadline();
            source.handle_timeout(now);
        }
        source.sent()
    }

    const CONSTANT: UdpConfig =
        UdpConfig { rate: 3_000_000, packet_size: 1250, header_size: 28, pauses: None, data: None };

    #[test]
    fn the_rate_is_the_rate() {
        assert_eq!(run(CONSTANT, 100), 30_000);
    }

    #[test]
    fn pauses_take_their_share() {
        let (on, off) = (Duration::from_millis(200), Duration::from_millis(300));
        let fixed = UdpConfig { pauses: Some(Pauses { on, off, exponential: false }), ..CONSTANT };
        // 60 packets in each of 200 half-seconds.
        assert_eq!(run(fixed, 100), 12_000);
        let random = UdpConfig { pauses: Some(Pauses { on, off, exponential: true }), ..CONSTANT };
        // 4000 cycles: the share of two fifths has a standard error of about 1.1 %; three of them.
        let sent = run(random, 2_000) as f64;
        assert!((sent / 240_000.0 - 1.0).abs() < 0.035, "{sent}");
    }

    #[test]
    fn the_exponential_distribution_has_mean_and_variance_1() {
        let mut random = Rng::from_seed(9);
        let samples: Vec<f64> = (0..100_000).map(|_| standard_exponential(&mut random)).collect();
        let mean = samples.iter().sum::<f64>() / 1e5;
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        // Standard errors 0.0032 and 0.0089; four of each.
        assert!((mean - 1.0).abs() < 0.013 && (variance - 1.0).abs() < 0.036, "{mean} {variance}");
    }
}

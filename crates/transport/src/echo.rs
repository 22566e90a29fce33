//! Echo requests at an even pace, as `ping` sends them, and the answers of the other end.

use clock::{Duration, Histogram, Instant};

use crate::packet::{Flags, NO_BLOCKS, Packet, expand};
use crate::receiver::ReceiverStatistics;

/// One source's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoConfig {
    /// From one request to the next, more than zero.
    pub interval: Duration,
    /// Bytes of a request, and of an answer, on the wire.
    pub packet_size: u32,
    /// Headers of a packet: 48 for IPv6 and ICMPv6.
    pub header_size: u32,
}

impl EchoConfig {
    /// As `ping` does: 56 bytes of data behind an IP header of so many bytes.
    pub fn ping(interval: Duration, ip_header: u32) -> Self {
        let header_size = ip_header + 8;
        Self { interval, packet_size: header_size + 56, header_size }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct EchoSource {
    config: EchoConfig,
    next: Instant,
    is_due: bool,
    sent: u64,
    /// Round-trip times in nanoseconds, since averages began.
    rtt: Histogram,
    latest: Duration,
}

impl EchoSource {
    /// A source that has not started.
    pub fn new(config: EchoConfig) -> Self {
        let (rtt, latest) = (Histogram::default(), Duration::ZERO);
        Self { config, next: Instant::FAR_FUTURE, is_due: false, sent: 0, rtt, latest }
    }

    /// Begins to ask.
    pub fn start(&mut self, now: Instant) {
        (self.next, self.is_due) = (now, true);
    }

    /// Ends for good.
    pub fn stop(&mut self) {
        (self.next, self.is_due) = (Instant::FAR_FUTURE, false);
    }

    /// Requests sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Round-trip times in nanoseconds, one for each answer since [`EchoSource::restart_averages`].
    pub fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// The last of them; zero before the first answer.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The distribution begins anew.
    pub fn restart_averages(&mut self) {
        self.rtt = Histogram::default();
    }

    /// When [`EchoSource::handle_timeout`] is to be called; [`Instant::FAR_FUTURE`] for never.
    pub fn send_deadline(&self) -> Instant {
        self.next
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= now >= self.next;
    }

    /// An answer arrived.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        self.latest = now - packet.time;
        self.rtt.record(self.latest.as_nanos());
    }

    /// The request to send now, if any. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        let position = self.sent as u32;
        self.sent += 1;
        self.next = now + self.config.interval;
        let (bytes, flags) = (self.config.packet_size, Flags::default());
        Some(Packet { time: now, flow: 0, hop: 0, position, blocks: NO_BLOCKS, bytes, flags, path: 0 })
    }
}

/// Who answers.
#[derive(Clone, Debug, Default)]
pub struct EchoSink {
    high: u64,
    answer: Option<Packet>,
    statistics: ReceiverStatistics,
}

impl EchoSink {
    /// Requests that arrived.
    pub fn delivered(&self) -> u64 {
        self.statistics.packets
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }

    /// A request arrived. Ask for the answer with [`EchoSink::poll_transmit`] before the next.
    pub fn handle_input(&mut self, packet: &Packet) {
        let position = expand(packet.position, self.high);
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(packet.bytes);
        self.statistics.reordered += u64::from(position < self.high);
        self.high = self.high.max(position + 1);
        self.answer = Some(Packet { flags: Flags::ACK, blocks: NO_BLOCKS, ..*packet });
    }

    /// The answer to send now, if one is due. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.answer.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_the_pace_and_answers_tell_the_round_trip() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let interval = Duration::from_millis(50);
        let mut source = EchoSource::new(EchoConfig { interval, packet_size: 104, header_size: 48 });
        let mut sink = EchoSink::default();
        source.start(at(10));
        for number in 0..20 {
            let now = at(10 + 50 * number);
            source.handle_timeout(now);
            let request = source.poll_transmit(now).unwrap();
            assert!(source.poll_transmit(now).is_none());
            assert_eq!(source.send_deadline(), at(60 + 50 * number));
            sink.handle_input(&request);
            let answer = sink.poll_transmit().unwrap();
            assert_eq!((answer.bytes, answer.flags, answer.position), (104, Flags::ACK, number as u32));
            source.handle_input(now + Duration::from_millis(7), &answer);
        }
        assert_eq!((source.sent(), sink.delivered(), source.rtt().samples()), (20, 20, 20));
        assert_eq!((source.rtt().min(), source.latest()), (7_000_000, Duration::from_millis(7)));
    }
}

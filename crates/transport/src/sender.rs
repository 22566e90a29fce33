//! The sending side of a TCP connection, without I/O: acknowledgments and time go in, packets and deadlines come out.

use std::sync::Arc;

use clock::{Duration, Histogram, Instant, Rng, Streams};
use congestion::{Controller, Rule};

use crate::config::TcpConfig;
use crate::packet::Packet;
pub use crate::subflow::SenderCounters;
use crate::subflow::{Step, Subflow};

/// Which deadline of a connection is the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// Nothing was acknowledged for too long (RFC 6298).
    Retransmission,
    /// New data have waited their random time.
    Send,
}

/// A sender. After each `handle_…` call, take packets with [`TcpSender::poll_transmit`] until there are none.
#[derive(Clone, Debug)]
pub struct TcpSender {
    flow: Subflow,
    control: Controller<Rule>,
    /// One beyond the last packet.
    end: u64,
    /// Of the receiver, in packets.
    window: u64,
    config: Arc<TcpConfig>,
    /// Round-trip times in nanoseconds, one for each acknowledgment of new data, since averages began.
    rtt: Histogram,
    /// When averages began, and the integral of the window then, in packet-seconds.
    began: (Instant, f64),
}

impl TcpSender {
    /// A sender that has not started. `random` is for [`TcpConfig::send_jitter`], and for rules that draw.
    pub fn new(config: Arc<TcpConfig>, random: Rng) -> Self {
        let mut control = Controller::new(config.rule.clone(), config.engine);
        let path = control.add_path(config.mss());
        control.seed(Streams::new(random.clone().next_u64()).stream("rule"));
        let mss = u64::from(config.mss());
        Self {
            flow: Subflow::new(path, Arc::clone(&config), random),
            control,
            window: u64::from(config.receiver_window).max(1),
            end: config.data.map_or(u64::MAX, |data| data.div_ceil(mss) + 1),
            config,
            rtt: Histogram::default(),
            began: (Instant::ZERO, 0.0),
        }
    }

    /// Opens the connection: a SYN goes out.
    pub fn start(&mut self, now: Instant) {
        self.flow.start(now);
        self.restart_averages(now);
    }

    /// The application has no more data: what is outstanding is still delivered.
    pub fn stop(&mut self) {
        self.end = self.end.min(self.flow.max().max(self.flow.next()));
    }

    /// Whether all data are acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.flow.is_started() && self.flow.una() >= self.end
    }

    /// The congestion window in packets, without what recovery adds to it for a while.
    pub fn cwnd(&self) -> f64 {
        self.control.cwnd(0) / f64::from(self.config.mss())
    }

    /// The slow-start threshold in packets.
    pub fn ssthresh(&self) -> f64 {
        self.control.ssthresh(0) / f64::from(self.config.mss())
    }

    /// Packets outstanding.
    pub fn flight(&self) -> u64 {
        self.flow.flight()
    }

    /// The smoothed round-trip time; zero without a sample.
    pub fn srtt(&self) -> Duration {
        self.flow.srtt()
    }

    /// Counters.
    pub fn counters(&self) -> &SenderCounters {
        self.flow.counters()
    }

    /// Round-trip times in nanoseconds, one for each acknowledgment of new data since the averages began.
    pub fn rtt(&self) -> &Histogram {
        &self.rtt
    }

    /// The window in packets, averaged over the time since the averages began.
    pub fn mean_cwnd(&self, now: Instant) -> f64 {
        let (begin, before) = self.began;
        let time = (now - begin).as_secs_f64();
        if time > 0.0 { (self.flow.cwnd_seconds(now, &self.control) - before) / time } else { self.cwnd() }
    }

    /// Averages begin anew: at the start, and when a warm-up ends.
    pub fn restart_averages(&mut self, now: Instant) {
        self.rtt = Histogram::default();
        self.began = (now, self.flow.cwnd_seconds(now, &self.control));
    }

    /// The acknowledgment of everything below `acked` says that the receiver takes so many packets from there on; no more than
    /// configured count. One that others have overtaken says nothing any more (RFC 9293 §3.10.7.4).
    pub fn set_receiver_window(&mut self, acked: u64, packets: u64) {
        if acked >= self.flow.una() {
            self.window = packets.clamp(1, u64::from(self.config.receiver_window).max(1));
        }
    }

    /// An acknowledgment arrived.
    #[inline]
    pub fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &[(u32, u32)]) {
        if self.flow.handle_input(now, packet, blocks, &mut self.control) {
            self.rtt.record((now - packet.time).as_nanos());
        }
    }

    /// When [`TcpSender::handle_timeout`] is to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerKind)> {
        let (send, retransmit) = (self.send_deadline(), self.retransmission_deadline());
        let (at, kind) =
            if send <= retransmit { (send, TimerKind::Send) } else { (retransmit, TimerKind::Retransmission) };
        (at != Instant::FAR_FUTURE).then_some((at, kind))
    }

    /// When the retransmission timer runs out; [`Instant::FAR_FUTURE`] if it does not run.
    #[inline]
    pub fn retransmission_deadline(&self) -> Instant {
        self.flow.retransmission_deadline()
    }

    /// When waiting data may be sent; [`Instant::FAR_FUTURE`] if none wait.
    #[inline]
    pub fn send_deadline(&self) -> Instant {
        self.flow.send_deadline()
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.flow.handle_timeout(now, &mut self.control);
    }

    /// The next packet to send now, if any. Flow and hop are the caller's to set.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let next = self.flow.next();
        let more = next < self.end && next < self.flow.una() + self.window;
        let mut packet = match self.flow.poll(now, more, &self.control) {
            Step::Send(packet) => packet,
            Step::New => self.flow.emit_next(now),
            Step::Nothing => {
                if next >= self.end {
                    self.flow.on_app_limited(now, &self.control);
                }
                return None;
            }
        };
        if packet.position.wrapping_add(1) == self.end as u32 && self.end == self.flow.max() {
            packet.bytes = self.config.last_size();
        }
        Some(packet)
    }
}

//! Any endpoint, for whoever moves packets between them: a choice that costs a predictable jump, not a virtual call.

use std::sync::Arc;

use clock::{Duration, Histogram, Instant, Rng};

use crate::config::TcpConfig;
use crate::echo::{EchoConfig, EchoSink, EchoSource};
use crate::mhip::{MhipConfig, MhipReceiver, MhipSender, PathArrivals, PathStatus};
use crate::mptcp::{MptcpConfig, MptcpReceiver, MptcpSender};
use crate::packet::{BlockPool, Blocks, Packet};
use crate::receiver::{ReceiverStatistics, TcpReceiver};
use crate::sctp::{SctpConfig, SctpReceiver, SctpSender};
use crate::sender::{SenderCounters, TcpSender};
use crate::udp::{UdpConfig, UdpSink, UdpSource};

/// What a flow is.
#[derive(Clone, Debug)]
pub enum FlowConfig {
    /// A TCP connection. Flows alike share their options.
    Tcp(Arc<TcpConfig>),
    /// A UDP source.
    Udp(UdpConfig),
    /// Echo requests.
    Echo(EchoConfig),
    /// A connection of multipath HIP.
    Mhip(Arc<MhipConfig>),
    /// An association of SCTP, over one or several paths.
    Sctp(Arc<SctpConfig>),
    /// A connection of Multipath TCP.
    Mptcp(Arc<MptcpConfig>),
}

impl FlowConfig {
    /// A full packet on the wire, in bytes.
    pub fn packet_size(&self) -> u32 {
        match self {
            Self::Tcp(config) => config.packet_size,
            Self::Udp(config) => config.packet_size,
            Self::Echo(config) => config.packet_size,
            Self::Mhip(config) => config.tcp.packet_size,
            Self::Sctp(config) => config.packet_size,
            Self::Mptcp(config) => config.tcp.packet_size,
        }
    }

    /// Payload of a full packet, in bytes.
    pub fn payload(&self) -> u32 {
        match self {
            Self::Tcp(config) => config.mss(),
            Self::Udp(config) => config.packet_size.saturating_sub(config.header_size).max(1),
            Self::Echo(config) => config.packet_size.saturating_sub(config.header_size).max(1),
            Self::Mhip(config) => config.tcp.mss(),
            Self::Sctp(config) => config.payload(),
            Self::Mptcp(config) => config.tcp.mss(),
        }
    }

    /// Data to send in bytes, without headers; unlimited if `None`.
    pub fn data(&self) -> Option<u64> {
        match self {
            Self::Tcp(config) => config.data,
            Self::Udp(config) => config.data,
            Self::Echo(_) => None,
            Self::Mhip(config) => config.tcp.data,
            Self::Sctp(config) => config.data,
            Self::Mptcp(config) => config.tcp.data,
        }
    }
}

/// The sending end of a flow.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are TCP; behind a pointer each packet would cost a cache miss"
)]
#[derive(Clone, Debug)]
pub enum Sender {
    /// TCP.
    Tcp(TcpSender),
    /// UDP.
    Udp(UdpSource),
    /// Echo requests.
    Echo(Box<EchoSource>),
    /// Multipath HIP.
    Mhip(Box<MhipSender>),
    /// SCTP.
    Sctp(Box<SctpSender>),
    /// Multipath TCP.
    Mptcp(Box<MptcpSender>),
}

impl Sender {
    /// A sender that has not started.
    pub fn new(config: &FlowConfig, random: Rng) -> Self {
        match config {
            FlowConfig::Tcp(config) => Self::Tcp(TcpSender::new(Arc::clone(config), random)),
            FlowConfig::Udp(config) => Self::Udp(UdpSource::new(*config, random)),
            FlowConfig::Echo(config) => Self::Echo(Box::new(EchoSource::new(*config))),
            FlowConfig::Mhip(config) => Self::Mhip(Box::new(MhipSender::new(config, random))),
            FlowConfig::Sctp(config) => Self::Sctp(Box::new(SctpSender::new(config))),
            FlowConfig::Mptcp(config) => Self::Mptcp(Box::new(MptcpSender::new(config, random))),
        }
    }

    /// Begins.
    pub fn start(&mut self, now: Instant) {
        match self {
            Self::Tcp(sender) => sender.start(now),
            Self::Udp(source) => source.start(now),
            Self::Echo(source) => source.start(now),
            Self::Mhip(sender) => sender.start(now),
            Self::Sctp(sender) => sender.start(now),
            Self::Mptcp(sender) => sender.start(now),
        }
    }

    /// The application has no more data.
    pub fn stop(&mut self) {
        match self {
            Self::Tcp(sender) => sender.stop(),
            Self::Udp(source) => source.stop(),
            Self::Echo(source) => source.stop(),
            Self::Mhip(sender) => sender.stop(),
            Self::Sctp(sender) => sender.stop(),
            Self::Mptcp(sender) => sender.stop(),
        }
    }

    /// An acknowledgment arrived, whose blocks or report are in `pool`.
    #[inline]
    pub fn handle_answer(&mut self, now: Instant, packet: &Packet, pool: &mut BlockPool) {
        match self {
            Self::Tcp(sender) => sender.handle_input(now, packet, pool.take(packet.blocks).as_slice()),
            others => others.handle_answer_of_others(now, *packet, pool),
        }
    }

    // What is not TCP goes out of line, with packets of its own: where the address of a packet leaves the loop that moves
    // packets, every one of them is written to memory and read back.
    #[inline(never)]
    fn handle_answer_of_others(&mut self, now: Instant, packet: Packet, pool: &mut BlockPool) {
        if let Self::Sctp(sender) = self
            && let Some(report) = pool.get_report(packet.blocks)
        {
            sender.handle_input(now, &packet, report);
        }
        let blocks = pool.take(packet.blocks);
        self.handle_input(now, &packet, &blocks);
    }

    /// An acknowledgment arrived.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &Blocks) {
        match self {
            Self::Tcp(sender) => sender.handle_input(now, packet, blocks.as_slice()),
            Self::Udp(_) => {}
            Self::Echo(source) => source.handle_input(now, packet),
            Self::Mhip(sender) => sender.handle_input(now, packet, blocks),
            Self::Sctp(_) => {} // Its acknowledgments are reports.
            Self::Mptcp(sender) => sender.handle_input(now, packet, blocks),
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(sender) => sender.handle_timeout(now),
            Self::Udp(source) => source.handle_timeout(now),
            Self::Echo(source) => source.handle_timeout(now),
            Self::Mhip(sender) => sender.handle_timeout(now),
            Self::Sctp(sender) => sender.handle_timeout(now),
            Self::Mptcp(sender) => sender.handle_timeout(now),
        }
    }

    /// The next packet to send now, if any.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match self {
            Self::Tcp(sender) => sender.poll_transmit(now),
            others => others.poll_transmit_of_others(now),
        }
    }

    #[inline(never)]
    fn poll_transmit_of_others(&mut self, now: Instant) -> Option<Packet> {
        match self {
            Self::Tcp(sender) => sender.poll_transmit(now),
            Self::Udp(source) => source.poll_transmit(now),
            Self::Echo(source) => source.poll_transmit(now),
            Self::Mhip(sender) => sender.poll_transmit(now),
            Self::Sctp(sender) => sender.poll_transmit(now),
            Self::Mptcp(sender) => sender.poll_transmit(now),
        }
    }

    /// When the retransmission timer runs out, and when the next data may be sent; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub fn deadlines(&self) -> [Instant; 2] {
        match self {
            Self::Tcp(sender) => [sender.retransmission_deadline(), sender.send_deadline()],
            others => others.deadlines_of_others(),
        }
    }

    #[inline(never)]
    fn deadlines_of_others(&self) -> [Instant; 2] {
        match self {
            Self::Tcp(sender) => [sender.retransmission_deadline(), sender.send_deadline()],
            Self::Udp(source) => [Instant::FAR_FUTURE, source.send_deadline()],
            Self::Echo(source) => [Instant::FAR_FUTURE, source.send_deadline()],
            Self::Mhip(sender) => sender.deadlines(),
            Self::Sctp(sender) => sender.deadlines(),
            Self::Mptcp(sender) => sender.deadlines(),
        }
    }

    /// Whether all data are sent and, with TCP, acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Tcp(sender) => sender.is_complete(),
            others => others.is_complete_of_others(),
        }
    }

    #[inline(never)]
    fn is_complete_of_others(&self) -> bool {
        match self {
            Self::Tcp(sender) => sender.is_complete(),
            Self::Udp(source) => source.is_complete(),
            Self::Echo(_) => false,
            Self::Mhip(sender) => sender.is_complete(),
            Self::Sctp(sender) => sender.is_complete(),
            Self::Mptcp(sender) => sender.is_complete(),
        }
    }

    /// Counters.
    pub fn counters(&self) -> SenderCounters {
        match self {
            Self::Tcp(sender) => *sender.counters(),
            Self::Udp(source) => SenderCounters { sent: source.sent(), ..SenderCounters::default() },
            Self::Echo(source) => SenderCounters { sent: source.sent(), ..SenderCounters::default() },
            Self::Mhip(sender) => *sender.counters(),
            Self::Sctp(sender) => *sender.counters(),
            Self::Mptcp(sender) => sender.counters(),
        }
    }

    /// Round-trip times, in nanoseconds.
    pub fn rtt(&self) -> Option<&Histogram> {
        match self {
            Self::Tcp(sender) => Some(sender.rtt()),
            Self::Udp(_) => None,
            Self::Echo(source) => Some(source.rtt()),
            Self::Mhip(sender) => Some(sender.rtt()),
            Self::Sctp(sender) => Some(sender.rtt()),
            Self::Mptcp(sender) => Some(sender.rtt()),
        }
    }

    /// The congestion window in packets, averaged since the last [`Sender::restart_averages`]; 0 without one.
    pub fn mean_cwnd(&self, now: Instant) -> f64 {
        match self {
            Self::Tcp(sender) => sender.mean_cwnd(now),
            Self::Udp(_) | Self::Echo(_) => 0.0,
            Self::Mhip(sender) => sender.mean_cwnd(now),
            Self::Sctp(sender) => sender.mean_cwnd(now),
            Self::Mptcp(sender) => sender.mean_cwnd(now),
        }
    }

    /// Averages and distributions begin anew.
    pub fn restart_averages(&mut self, now: Instant) {
        match self {
            Self::Tcp(sender) => sender.restart_averages(now),
            Self::Udp(_) => {}
            Self::Echo(source) => source.restart_averages(),
            Self::Mhip(sender) => sender.restart_averages(now),
            Self::Sctp(sender) => sender.restart_averages(now),
            Self::Mptcp(sender) => sender.restart_averages(now),
        }
    }

    /// Congestion window and threshold in packets, packets outstanding, smoothed round-trip time.
    pub fn state(&self) -> (f64, f64, u64, Duration) {
        match self {
            Self::Tcp(sender) => (sender.cwnd(), sender.ssthresh(), sender.flight(), sender.srtt()),
            Self::Udp(_) => (0.0, 0.0, 0, Duration::ZERO),
            Self::Echo(source) => (0.0, 0.0, 0, source.latest()),
            Self::Mhip(sender) => sender.state(),
            Self::Sctp(sender) => sender.state(),
            Self::Mptcp(sender) => sender.state(),
        }
    }

    /// The paths of a protocol that knows of several; none of one that does not.
    pub fn paths(&self) -> Vec<PathStatus> {
        match self {
            Self::Tcp(_) | Self::Udp(_) | Self::Echo(_) => Vec::new(),
            Self::Mhip(sender) => sender.paths(),
            Self::Sctp(sender) => sender.paths(),
            Self::Mptcp(sender) => sender.paths(),
        }
    }
}

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// TCP.
    Tcp(TcpReceiver),
    /// UDP.
    Udp(UdpSink),
    /// Echo answers.
    Echo(EchoSink),
    /// Multipath HIP.
    Mhip(Box<MhipReceiver>),
    /// SCTP.
    Sctp(Box<SctpReceiver>),
    /// Multipath TCP.
    Mptcp(Box<MptcpReceiver>),
}

impl Receiver {
    /// A receiver that has got nothing yet.
    pub fn new(config: &FlowConfig) -> Self {
        match config {
            FlowConfig::Tcp(config) => Self::Tcp(TcpReceiver::new(config)),
            FlowConfig::Udp(_) => Self::Udp(UdpSink::default()),
            FlowConfig::Echo(_) => Self::Echo(EchoSink::default()),
            FlowConfig::Mhip(config) => Self::Mhip(Box::new(MhipReceiver::new(config))),
            FlowConfig::Sctp(config) => Self::Sctp(Box::new(SctpReceiver::new(config))),
            FlowConfig::Mptcp(config) => Self::Mptcp(Box::new(MptcpReceiver::new(config))),
        }
    }

    /// A data packet arrived.
    #[inline]
    pub fn handle_input(&mut self, now: Instant, packet: &Packet) {
        match self {
            Self::Tcp(receiver) => receiver.handle_input(now, packet),
            others => others.handle_input_of_others(now, *packet),
        }
    }

    #[inline(never)]
    fn handle_input_of_others(&mut self, now: Instant, packet: Packet) {
        match self {
            Self::Tcp(receiver) => receiver.handle_input(now, &packet),
            Self::Udp(sink) => sink.handle_input(&packet),
            Self::Echo(sink) => sink.handle_input(&packet),
            Self::Mhip(receiver) => receiver.handle_input(now, &packet),
            Self::Sctp(receiver) => receiver.handle_input(now, &packet),
            Self::Mptcp(receiver) => receiver.handle_input(now, &packet),
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(receiver) => receiver.handle_timeout(now),
            Self::Sctp(receiver) => receiver.handle_timeout(now),
            Self::Mptcp(receiver) => receiver.handle_timeout(now),
            Self::Udp(_) | Self::Echo(_) | Self::Mhip(_) => {}
        }
    }

    /// The acknowledgment to send now, if one is due.
    #[inline]
    pub fn poll_transmit(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        match self {
            Self::Tcp(receiver) => receiver.poll_transmit(pool),
            others => others.poll_transmit_of_others(pool),
        }
    }

    #[inline(never)]
    fn poll_transmit_of_others(&mut self, pool: &mut BlockPool) -> Option<Packet> {
        match self {
            Self::Tcp(receiver) => receiver.poll_transmit(pool),
            Self::Udp(_) => None,
            Self::Echo(sink) => sink.poll_transmit(),
            Self::Mhip(receiver) => receiver.poll_transmit(pool),
            Self::Sctp(receiver) => receiver.poll_transmit(pool),
            Self::Mptcp(receiver) => receiver.poll_transmit(pool),
        }
    }

    /// When [`Receiver::handle_timeout`] is to be called, if ever.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(receiver) => receiver.poll_timeout(),
            others => others.poll_timeout_of_others(),
        }
    }

    #[inline(never)]
    fn poll_timeout_of_others(&self) -> Option<Instant> {
        match self {
            Self::Tcp(receiver) => receiver.poll_timeout(),
            Self::Sctp(receiver) => receiver.poll_timeout(),
            Self::Mptcp(receiver) => receiver.poll_timeout(),
            Self::Udp(_) | Self::Echo(_) | Self::Mhip(_) => None,
        }
    }

    /// Data packets delivered to the application.
    pub fn delivered(&self) -> u64 {
        match self {
            Self::Tcp(receiver) => receiver.delivered(),
            Self::Udp(sink) => sink.delivered(),
            Self::Echo(sink) => sink.delivered(),
            Self::Mhip(receiver) => receiver.delivered(),
            Self::Sctp(receiver) => receiver.delivered(),
            Self::Mptcp(receiver) => receiver.delivered(),
        }
    }

    /// Counters.
    pub fn statistics(&self) -> &ReceiverStatistics {
        match self {
            Self::Tcp(receiver) => receiver.statistics(),
            Self::Udp(sink) => sink.statistics(),
            Self::Echo(sink) => sink.statistics(),
            Self::Mhip(receiver) => receiver.statistics(),
            Self::Sctp(receiver) => receiver.statistics(),
            Self::Mptcp(receiver) => receiver.statistics(),
        }
    }

    /// What arrived on each path, of a protocol that knows of several.
    pub fn paths(&self) -> &[PathArrivals] {
        match self {
            Self::Tcp(_) | Self::Udp(_) | Self::Echo(_) => &[],
            Self::Mhip(receiver) => receiver.paths(),
            Self::Sctp(receiver) => receiver.paths(),
            Self::Mptcp(receiver) => receiver.paths(),
        }
    }

    /// The most packets that were held out of order at once, where that is counted.
    pub fn most_held(&self) -> u64 {
        match self {
            Self::Tcp(_) | Self::Udp(_) | Self::Echo(_) => 0,
            Self::Mhip(receiver) => receiver.most_held(),
            Self::Sctp(receiver) => receiver.most_held(),
            Self::Mptcp(receiver) => receiver.most_held(),
        }
    }
}

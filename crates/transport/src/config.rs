//! The options of a TCP connection, and the profiles that set many at once.

use clock::Duration;
use congestion::{EngineConfig, InitialWindow, Rule, SlowStart, WindowRounding};
use recovery::{DupThresh, RttConfig};

use crate::timer::TimerConfig;

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// RFC 5681: the first acknowledgment of new data ends recovery.
    Reno,
    /// RFC 6582: partial acknowledgments tell of the next hole.
    NewReno,
    /// RFC 6675, on selective acknowledgments (RFC 2018).
    Sack,
}

/// What tells a sender that a retransmission was not needed, so that the window is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoBy {
    /// Nothing.
    Never,
    /// Timestamps: the acknowledgment echoes the original (RFC 3522, with the response of RFC 4015).
    Eifel,
    /// The receiver's reports of duplicates (RFC 3708).
    DuplicateReports,
}

/// Whose details are followed where the RFCs leave a choice or an implementation differs from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Details {
    /// The RFCs.
    Rfc,
    /// ns-2.35: `Agent/TCP/Newreno` and `Agent/TCP/Sack1`. The window, not what is outstanding, is halved; each
    /// acknowledgment opens the window by one step whatever it covers, also the one that ends recovery; at most two new
    /// packets a duplicate acknowledgment; the scoreboard is forgotten after each recovery.
    Ns2,
}

/// One connection's options. Sizes in bytes on the wire, windows in packets.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// The window's arithmetic; a fresh copy for each connection.
    pub rule: Rule,
    /// Phases, first window, thresholds.
    pub engine: EngineConfig,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Duplicate acknowledgments that mean a loss.
    pub dupthresh: DupThresh,
    /// With [`Recovery::Sack`], a retransmission is lost when what was sent later has arrived (RACK, RFC 8985), and needs not wait for
    /// the timer. Rules that read rates have it always.
    pub rack: bool,
    /// Undo of needless reductions.
    pub undo: UndoBy,
    /// A full packet with its headers.
    pub packet_size: u32,
    /// Headers of a data packet, and the whole of an acknowledgment and of a SYN.
    pub header_size: u32,
    /// Most packets outstanding.
    pub receiver_window: u32,
    /// Acknowledge every second packet, or after so long (RFC 1122 §4.2.3.2: at most 500 ms); every packet if `None`.
    pub delayed_ack: Option<Duration>,
    /// The retransmission timer.
    pub timer: TimerConfig,
    /// Round-trip samples from every acknowledgment by timestamps (RFC 7323), instead of one timed packet a round trip.
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// New data wait a random time up to this before they are sent: the processing time that breaks the lockstep of
    /// flows through a drop-tail queue. Zero for none.
    pub send_jitter: Duration,
    /// Where RFCs and implementations differ.
    pub details: Details,
    /// Data to send in bytes, without headers; unlimited if `None`.
    pub data: Option<u64>,
}

impl Default for TcpConfig {
    /// A current TCP: New Reno's window, SACK, timestamps, first window 10 packets, delayed acknowledgments of 40 ms.
    fn default() -> Self {
        Self {
            rule: Rule::NewReno(congestion::NewReno),
            engine: EngineConfig::default(),
            recovery: Recovery::Sack,
            dupthresh: DupThresh::Fixed(3),
            rack: false,
            undo: UndoBy::Never,
            packet_size: 1500,
            header_size: 40,
            receiver_window: 1 << 20,
            delayed_ack: Some(Duration::from_millis(40)),
            timer: TimerConfig::default(),
            timestamps: true,
            ecn: false,
            send_jitter: Duration::ZERO,
            details: Details::Rfc,
            data: None,
        }
    }
}

impl TcpConfig {
    /// A TCP of Linux with `rule`: it repairs by SACK and RACK, undoes by timestamps (RFC 4015), and has HyStart with CUBIC alone. Packets
    /// of so many bytes with an IP header of `ip_header`, and the TCP header with timestamps (RFC 7323 appendix A).
    pub fn linux(rule: Rule, packet_size: u32, ip_header: u32) -> Self {
        /// The usual most for what a connection may have outstanding, of `tcp_wmem`, in bytes.
        const SEND_BUFFER: u32 = 4 << 20;
        let mut engine = EngineConfig::default();
        if matches!(rule, Rule::Cubic(_)) {
            engine.slow_start = SlowStart::HyStart;
        }
        Self {
            engine,
            rule,
            recovery: Recovery::Sack,
            rack: true,
            undo: UndoBy::Eifel,
            packet_size,
            header_size: ip_header + 20 + 12,
            receiver_window: SEND_BUFFER / packet_size.max(1),
            ..Self::default()
        }
    }

    /// The settings of ns-2.35's `Agent/TCP/Newreno` (or `Sack1`, with [`Recovery::Sack`]) and its sink, as
    /// `vectors/ns2` has them: every packet acknowledged, first window 2, a clock of 10 ms, a timer of 200 ms at least
    /// and 3 s at first, no timestamps, unlimited growth.
    pub fn ns2(recovery: Recovery) -> Self {
        Self {
            engine: EngineConfig {
                initial_window: InitialWindow::Packets(2),
                window_limited_growth: false,
                rounding: WindowRounding::WholePacketThreshold,
                ..EngineConfig::default()
            },
            recovery,
            packet_size: 1250,
            receiver_window: 100_000,
            delayed_ack: None,
            timer: TimerConfig::Coarse(RttConfig {
                initial_rto: Duration::from_secs(3),
                min_rto: Duration::from_millis(200),
                max_rto: Duration::from_secs(60),
                granularity: Duration::from_millis(10),
            }),
            timestamps: false,
            details: Details::Ns2,
            ..Self::default()
        }
    }

    /// Payload of a full packet in bytes, at least 1.
    pub fn mss(&self) -> u32 {
        self.packet_size.saturating_sub(self.header_size).max(1)
    }

    /// The last packet on the wire, in bytes: it carries what is left.
    #[cold]
    pub(crate) fn last_size(&self) -> u32 {
        let mss = u64::from(self.mss());
        let rest = self.data.map_or(mss, |data| data - data.saturating_sub(1) / mss * mss);
        self.header_size + rest.min(mss) as u32
    }
}

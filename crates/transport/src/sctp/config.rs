//! The options of an SCTP association, with one path or several at once.

use clock::Duration;
use congestion::{EngineConfig, InitialWindow, Rule};
use recovery::RttConfig;

/// What lets a window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CwndUpdate {
    /// The cumulative acknowledgment of the association advances (RFC 9260 §7.2.1).
    Cumulative,
    /// CUC: that of the path does, the first of all its unacknowledged chunks (J. R. Iyengar, P. D. Amer, R. Stewart,
    /// *Concurrent multipath transfer using SCTP multihoming over independent end-to-end paths*, IEEE/ACM ToN 14(5),
    /// 2006).
    PathV1,
    /// CUC, version 2: first transmissions and retransmissions have one each, and either may advance.
    PathV2,
}

/// Where lost chunks are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retransmission {
    /// On the path they were lost on.
    Same,
    /// On that of the largest window.
    Cwnd,
    /// On that of the largest slow-start threshold.
    Ssthresh,
    /// On that where they are expected first, by window and round-trip time.
    FastestPathFirst,
}

/// Which buffers are divided among the paths, so that none of them takes all (T. Dreibholz, M. Becke, E. P. Rathgeb,
/// M. Tüxen, *On the use of concurrent multipath transfer over asymmetric paths*, GLOBECOM 2010).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitting {
    /// None.
    None,
    /// The sender's.
    Sender,
    /// The receiver's.
    Receiver,
    /// Both.
    Both,
}

impl Splitting {
    /// Whether the sender's buffer is divided.
    pub fn sender(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    /// Whether the receiver's buffer is divided.
    pub fn receiver(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}

/// One association's options. Sizes and buffers in bytes; a packet carries one DATA chunk.
#[derive(Clone, Debug)]
pub struct SctpConfig {
    /// The windows' arithmetic.
    pub rule: Rule,
    /// Phases, first window, thresholds.
    pub engine: EngineConfig,
    /// How many paths there are, at least one.
    pub paths: usize,
    /// New data go out on all paths at once; otherwise on the first that works, and the others are spare.
    pub concurrent: bool,
    /// SFR: only what was sent later on the same path tells that a chunk is missing.
    pub split_fast_retransmit: bool,
    /// What lets a window grow.
    pub cwnd_update: CwndUpdate,
    /// DAC: acknowledgments are delayed though something is missing, and say how many packets they are for.
    pub delayed_ack_for_cmt: bool,
    /// The last packet of a path may go beyond its window (RFC 9260 §6.1 B) only where the paths together stay within the sum
    /// of theirs: otherwise several paths would exceed several windows, and the bundle take more than one path does. What
    /// INET calls strict booking of windows, by the authors of the papers on CMT.
    pub strict_windows: bool,
    /// Acknowledge every second packet, or after so long (RFC 9260 §6.2: 200 ms); every packet if `None`.
    pub delayed_ack: Option<Duration>,
    /// Non-renegable selective acknowledgments: what the receiver has delivered, the sender need not keep.
    pub nr_sack: bool,
    /// Messages are delivered in order; otherwise as they arrive.
    pub ordered: bool,
    /// What the sender keeps at most of data that may have to be sent again.
    pub send_buffer: u64,
    /// What the receiver holds at most of data that wait for others.
    pub receive_buffer: u64,
    /// Which buffers are divided among the paths.
    pub splitting: Splitting,
    /// Where lost chunks are sent again.
    pub retransmission: Retransmission,
    /// The timer of each path.
    pub timer: RttConfig,
    /// After more timeouts in a row a path is inactive (RFC 9260 §8.2, Path.Max.Retrans).
    pub path_max_retrans: u32,
    /// An inactive path is tried so often (RFC 9260 §16, HB.interval).
    pub heartbeat: Duration,
    /// New packets that one acknowledgment may let out on a path (RFC 9260 §6.1 D, Max.Burst).
    pub max_burst: u32,
    /// Missing reports that mean a loss (RFC 9260 §7.2.4: 3).
    pub missing_reports: u32,
    /// A full packet: IPv4 header, common header, DATA chunk.
    pub packet_size: u32,
    /// Of these, headers: 20 + 12 + 16.
    pub header_size: u32,
    /// Data to send, without headers; unlimited if `None`.
    pub data: Option<u64>,
}

/// Bytes of the receive and send buffers of M. Becke and others, ICC 2012, §VI.
const BUFFER: u64 = 5_000_000;

impl SctpConfig {
    /// SCTP by RFC 9260 over `paths` paths of which one carries data: Reno, ordered delivery, renegable SACK.
    pub fn plain(paths: usize) -> Self {
        Self {
            rule: Rule::RenoSp(congestion::RenoSp::default()),
            engine: EngineConfig::sctp(InitialWindow::Rfc3390, BUFFER),
            paths: paths.max(1),
            concurrent: false,
            split_fast_retransmit: false,
            cwnd_update: CwndUpdate::Cumulative,
            delayed_ack_for_cmt: false,
            strict_windows: false,
            delayed_ack: Some(Duration::from_millis(200)),
            nr_sack: false,
            ordered: true,
            send_buffer: BUFFER,
            receive_buffer: BUFFER,
            splitting: Splitting::None,
            retransmission: Retransmission::Same,
            // RFC 9260 §16 has 1 s for the first timer; RFC 4960 and the papers on CMT 3 s.
            timer: RttConfig {
                initial_rto: Duration::from_secs(3),
                min_rto: Duration::from_secs(1),
                max_rto: Duration::from_secs(60),
                granularity: Duration::from_millis(1),
            },
            path_max_retrans: 5,
            heartbeat: Duration::from_secs(30),
            max_burst: 4,
            missing_reports: 3,
            packet_size: 1500,
            header_size: 48,
            data: None,
        }
    }

    /// CMT-SCTP with `rule` as M. Becke and others have it (ICC 2012, §VI): unordered messages, NR-SACK, both buffers of
    /// 5 MB divided, SFR, CUC (version 2), DAC, retransmissions by threshold.
    pub fn cmt(paths: usize, rule: Rule) -> Self {
        Self {
            rule,
            concurrent: true,
            split_fast_retransmit: true,
            cwnd_update: CwndUpdate::PathV2,
            delayed_ack_for_cmt: true,
            strict_windows: true,
            nr_sack: true,
            ordered: false,
            splitting: Splitting::Both,
            retransmission: Retransmission::Ssthresh,
            ..Self::plain(paths)
        }
    }

    /// Payload of a full packet, at least 1.
    pub fn payload(&self) -> u32 {
        self.packet_size.saturating_sub(self.header_size).max(1)
    }
}

//! The options of an mHIP flow: one set for each generation, and what the papers leave open as named settings.

use clock::{Duration, Instant};
use congestion::Growth;
use recovery::RttConfig;

use crate::config::{Recovery, TcpConfig};
use crate::timer::TimerConfig;

/// Which of the three papers' control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// 2009: TCP New Reno, its packets spread over paths; marking, closing and probing of paths.
    Simple,
    /// 2010: a window for each path, their sum for the whole; cumulative acknowledgments.
    TwoLevel,
    /// The last: two levels, more duplicates before a loss is believed, needless reductions taken back, selective
    /// acknowledgments that tell what triggered them, a bounded receive buffer.
    Final,
}

/// Which acknowledgments count against a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// Every duplicate (M13, rule A).
    AnyPath,
    /// Those of packets that were sent after the hole on the path of the hole (M13, rule B): the split fast retransmit
    /// of CMT (J. R. Iyengar, P. D. Amer, R. Stewart, IEEE/ACM ToN 14(5), 2006).
    SamePath,
}

/// When a marked packet tells of congestion (M1-M3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// Longer than expected by this part of the path's least round-trip time …
    pub part_of_round_trip: f64,
    /// … and by as many transmissions of a packet is noticeable.
    pub transmissions: f64,
}

impl Marking {
    /// More than this later than expected, in seconds, is late, on a path of this least round-trip time, where a packet
    /// takes this long to be sent. What is early tells nothing.
    pub fn noticeable(&self, round_trip: f64, transmission: f64) -> f64 {
        (self.part_of_round_trip * round_trip).max(self.transmissions * transmission)
    }
}

/// What is known of a path from the base exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// How long a full packet takes one way, without its transmission at the bottleneck, through empty queues.
    pub delay: Duration,
    /// How long an acknowledgment takes back.
    pub back: Duration,
    /// Rate of the bottleneck in bit/s; more than 0.
    pub rate: u64,
}

/// One flow's options. [`MhipConfig::new`] gives the set of a generation; the experiments of the papers use these sets.
#[derive(Clone, Debug)]
pub struct MhipConfig {
    /// Which control.
    pub generation: Generation,
    /// What is TCP's: sizes, timer, first window, window of the receiver, amount of data. Generation 1 is this TCP.
    pub tcp: TcpConfig,
    /// The paths; at least one.
    pub paths: Vec<PathConfig>,
    /// The congestion control of paths by marked packets, in generation 1; none if `None`.
    pub marking: Option<Marking>,
    /// Paths that are deemed congested are closed, in generation 1: by marks, by what TCP misses, and by two
    /// timeouts in a row.
    pub closing: bool,
    /// A closed path is probed so often (paper 1, §IV-F: 1 s).
    pub probe_interval: Duration,
    /// A signalling packet on each path so often tells how long the path is (paper 3, §III-B, which §IV-B leaves unchanged),
    /// and in generation 1, in place of data, whether a closed one is free again. None if `None`, as generation 1 has it by
    /// itself: paper 1 probes with data (§IV-F, M5). From generation 2 on every answer to data tells of its path, so that
    /// only paths without data have them: an estimate of somebody else's queue would otherwise outlast the queue, and keep
    /// data away.
    pub heartbeat: Option<Duration>,
    /// The part of an error of the expected delivery time by which the path's delay is corrected, at each packet that
    /// tells of one: heartbeats, marked packets in generation 1, all data in the rest (M3).
    pub gain: f64,
    /// Growth of the windows, from generation 2 on (M7).
    pub growth: Growth,
    /// Paths through one bottleneck, told by their queueing delays, grow as one Reno that a loss halves as a whole. Only with
    /// [`Growth::PerPath`]: the others couple all paths.
    pub per_bottleneck: bool,
    /// Duplicates that mean a loss, from generation 2 on (M11).
    pub dupthresh: u32,
    /// Which duplicates count, from generation 2 on (M13); generation 1 is TCP, for which all do.
    pub attribution: Attribution,
    /// ADDR: a reduction is taken back when what was missing arrives within this part of the least round-trip time of
    /// any path (M12); never if `None`.
    pub addr: Option<f64>,
    /// Packets out of order that the receiver holds (M15); as many as its window if `None`.
    pub receive_buffer: Option<u32>,
}

impl MhipConfig {
    /// The set of parameters of a generation, over the TCP of ns-2 in which the papers have it.
    pub fn new(generation: Generation, paths: Vec<PathConfig>) -> Self {
        let simple = generation == Generation::Simple;
        let last = generation == Generation::Final;
        Self {
            generation,
            tcp: TcpConfig { receiver_window: 720, ..TcpConfig::ns2(Recovery::NewReno) },
            paths,
            marking: simple.then_some(Marking { part_of_round_trip: 0.25, transmissions: 3.0 }),
            closing: simple,
            probe_interval: Duration::from_secs(1),
            heartbeat: (!simple).then_some(Duration::from_millis(50)),
            gain: 0.25,
            growth: Growth::PerPath,
            per_bottleneck: false,
            dupthresh: if last { 6 } else { 3 },
            attribution: if last { Attribution::SamePath } else { Attribution::AnyPath },
            addr: last.then_some(0.9),
            receive_buffer: None,
        }
    }

    /// Generation 1 without its congestion control of paths: New Reno, its packets on the path expected to be the fastest.
    #[must_use]
    pub fn without_marking(self) -> Self {
        Self { marking: None, closing: false, heartbeat: None, ..self }
    }

    /// Packets out of order that the receiver holds.
    pub fn buffer(&self) -> u64 {
        u64::from(self.receive_buffer.unwrap_or(self.tcp.receiver_window))
    }

    /// Bounds of the retransmission timer of each path.
    pub(crate) fn rtt(&self) -> RttConfig {
        match self.tcp.timer {
            TimerConfig::Fine(config) | TimerConfig::Coarse(config) => config,
        }
    }
}

/// What there is to tell of a path at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// Congestion window in packets; of generation 1, which has none for paths, the packets outstanding.
    pub cwnd: f64,
    /// Slow-start threshold in packets.
    pub ssthresh: f64,
    /// Packets outstanding.
    pub flight: u64,
    /// Smoothed round-trip time; zero without a sample.
    pub srtt: Duration,
    /// Whether it is used for more than probes.
    pub open: bool,
    /// Totals.
    pub counters: PathCounters,
}

/// What happened on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathCounters {
    /// Packets sent, retransmissions too.
    pub sent: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Reductions of its window; in generation 1, indications of congestion.
    pub reductions: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Times it was closed.
    pub closings: u64,
    /// Probes sent while it was closed.
    pub probes: u64,
    /// The integral of its window over time, in packet-seconds.
    pub cwnd_seconds: f64,
}

/// Integrates windows over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(pub(crate) Instant);

impl Since {
    /// The time since the last call, in seconds.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant) -> f64 {
        let step = now.saturating_since(self.0).as_secs_f64();
        self.0 = now;
        step
    }
}

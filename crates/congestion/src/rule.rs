//! The arithmetic of one algorithm.

use std::fmt;

use clock::{Duration, Rng};

use crate::delivery::{LostPacket, RateDecision, RateSample};
use crate::engine::Acked;
use crate::group::Group;
use crate::tunable::BadTunable;

/// Why a window shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Duplicate or selective acknowledgments told of a loss.
    Loss,
    /// An explicit congestion mark (RFC 3168).
    Ecn,
    /// The rule itself asked for it because of delays ([`WindowRule::acknowledged`]); nothing is retransmitted.
    Delay,
    /// The retransmission timer ran out. The engine takes the threshold from the rule and the window to one packet.
    Timeout,
}

/// The outcome of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The new window and threshold in bytes, before any floor.
    pub window: f64,
    /// The least threshold in bytes.
    pub floor: f64,
    /// For so long no new data may go out on the path; zero for most rules.
    pub block: Duration,
}

impl Backoff {
    /// A reduction to `window` bytes that blocks nothing.
    pub fn to(window: f64, floor: f64) -> Self {
        Self { window, floor, block: Duration::ZERO }
    }
}

/// What one round-trip time brought. A round ends at the first acknowledgment of a packet that was sent after the
/// previous round ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Lowest round-trip sample of the round; [`Duration::MAX`] without samples.
    pub min_rtt: Duration,
    /// Highest round-trip sample of the round; zero without samples.
    pub max_rtt: Duration,
    /// Sum of the samples of the round.
    pub sum_rtt: Duration,
    /// How many samples there were.
    pub samples: u32,
    /// True if the path is in slow start at its end.
    pub slow_start: bool,
    /// True if the window, not the sender, is the limit at its end; otherwise no window larger than it is will be taken.
    pub full: bool,
}

impl Round {
    /// The mean of the samples in seconds, if there were any.
    pub fn mean_rtt(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_rtt.as_secs_f64() / f64::from(self.samples))
    }
}

/// What a rule makes of a round: `None` leaves a value as it is. In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundDecision {
    /// The new window.
    pub cwnd: Option<f64>,
    /// The new slow-start threshold.
    pub ssthresh: Option<f64>,
    /// Delays told of congestion: counted as a mark of early detection.
    pub early: bool,
}

impl RoundDecision {
    /// A window and threshold, unless they are left as they are.
    pub fn set(cwnd: Option<f64>, ssthresh: Option<f64>) -> Self {
        Self { cwnd, ssthresh, early: false }
    }

    /// Delays told of congestion: window and threshold fall to so much.
    pub fn early(window: f64) -> Self {
        Self { cwnd: Some(window), ssthresh: Some(window), early: true }
    }
}

/// What a host has to know of a rule before it offers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// It couples paths: with one alone it would be some other rule.
    pub couples: bool,
    /// It reads queues from round-trip times: it needs that of nearly every packet, without what the receiver waited.
    pub reads_delay: bool,
    /// It models the path and sets window and pace itself: it needs a [`RateSample`] with every acknowledgment, and a sender that
    /// keeps to its [`WindowRule::pace`].
    pub reads_rate: bool,
    /// Losses that are the link's own are not answered with a reduction, where paths are run by a
    /// [`CoupledController`](crate::CoupledController) that hears of all losses.
    pub bears_random_loss: bool,
    /// What it is written for.
    pub family: Family,
}

/// What a rule is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// TCP: windows are real numbers, and slow start ends at the threshold (RFC 5681 §3.1). It does for any host.
    #[default]
    Tcp,
    /// SCTP: windows in whole bytes, and slow start includes the threshold (RFC 9260 §7.2.1).
    Sctp,
    /// Paths of a tunnel, whose packets are acknowledged one by one.
    Tunnel,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP's",
            Self::Sctp => "SCTP's",
            Self::Tunnel => "multipath HIP's",
        })
    }
}

/// One algorithm. The engine calls it in the right phase and applies what it returns; a rule never asks whether there
/// are several paths, it reads the [`Group`]. State per path is the rule's own, by path index.
pub trait WindowRule {
    /// What a host has to know of it.
    fn kind(&self) -> Kind {
        Kind::default()
    }

    /// A path was added; it is the last of the group. Rules with state per path grow it here.
    fn path_added(&mut self, _path: usize) {}

    /// The route behind a path changed: what was measured on it is void.
    fn path_changed(&mut self, _path: usize) {}

    /// The path's windows are `ratio` times as many packets from now on as before ([`Path::unit`](crate::Path::unit)): what a rule
    /// keeps in packets is multiplied by it.
    fn unit_changed(&mut self, _path: usize, _ratio: f64) {}

    /// The random stream of rules that draw; they start with a fixed one.
    fn seed(&mut self, _rng: Rng) {}

    /// Sets the tunable `name`, in the units that the rule's documentation gives.
    ///
    /// # Errors
    /// There is no such tunable, or the value is not one of its.
    fn tune(&mut self, _name: &str, _value: &str) -> Result<(), BadTunable> {
        Err(BadTunable::Unknown { known: &[] })
    }

    /// Something was acknowledged, in whatever phase; before anything else is done with it. True asks for a reduction
    /// with [`Cause::Delay`], which the engine grants once a window of data, as for a loss.
    fn acknowledged(&mut self, _path: usize, _group: Group<'_>, _acked: &Acked) -> bool {
        false
    }

    /// Bytes to add to the window in slow start when `acked` bytes were acknowledged. `acked` is already limited as
    /// RFC 3465 has it.
    fn slow_start(&mut self, _path: usize, _group: Group<'_>, acked: f64) -> f64 {
        acked
    }

    /// Bytes to add to the window in congestion avoidance; may be negative.
    fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64;

    /// The window after a reduction. The path's `flight` is the FlightSize of RFC 5681 §3.1.
    fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff;

    /// A round ended outside of recovery.
    fn on_round(&mut self, _path: usize, _group: Group<'_>, _round: &Round) -> RoundDecision {
        RoundDecision::default()
    }

    /// `acked` bytes were acknowledged, but the sender, not the window, was the limit, so nothing grows: rules that grow
    /// with time leave this time out.
    fn limited(&mut self, _path: usize, _group: Group<'_>, _acked: f64) {}

    /// A loss reduced nothing: it was the link's own ([`Kind::bears_random_loss`]).
    fn borne(&mut self, _path: usize, _group: Group<'_>) {}

    /// The last reduction is undone.
    fn undone(&mut self, _path: usize, _group: Group<'_>) {}

    /// What an acknowledgment tells of how fast the path delivers, after all else that is done with it; of rules that
    /// [read rates](Kind::reads_rate) only. Their window is what this returns.
    fn sampled(&mut self, path: usize, group: Group<'_>, _sample: &RateSample) -> RateDecision {
        RateDecision { cwnd: group.path(path).cwnd, is_low: false }
    }

    /// A packet was found lost; before the sample that counts it. Of rules that [read rates](Kind::reads_rate) only.
    fn lost(&mut self, _path: usize, _group: Group<'_>, _packet: &LostPacket) {}

    /// The rate in bit/s, with headers, above which nothing leaves on the path, whatever the window; asked before each packet.
    /// Of rules that [read rates](Kind::reads_rate) it is without headers, as their samples are. Simulated TCP and MPTCP keep to it;
    /// a tunnel has a pace of its own.
    fn pace(&self, _path: usize) -> Option<u64> {
        None
    }
}

//! The end of slow start before a loss. What the last doubling of a window sends beyond what the path and its queue hold is lost,
//! and a receiver that puts paths in order waits for it; round-trip times tell of the queue before it is full.
//!
//! The test is that of HyStart (S. Ha and I. Rhee, *Taming the elephants: new TCP slow start*, Computer Networks 55, 2011), with
//! the bounds of RFC 9406 §4.3. The strategies differ in what they take for evidence of a queue, and one of them in that it doubts what it
//! has found for some rounds, as that RFC does: jitter is no queue.

mod consecutive;
mod rounds;

use clock::{Duration, Instant};
use consecutive::Consecutive;
use rounds::Rounds;

/// MIN_RTT_THRESH of RFC 9406 §4.3.
const MIN_THRESHOLD: Duration = Duration::from_millis(4);
/// MAX_RTT_THRESH.
const MAX_THRESHOLD: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR.
const DIVISOR: u64 = 8;
/// N_RTT_SAMPLE: the samples that a verdict takes.
const SAMPLES: u32 = 8;

/// How slow start ends where nothing is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// It does not: RFC 5681 §3.1.
    #[default]
    Standard,
    /// HyStart as Linux has it: when the lowest round-trip time of a round tells of a queue. For senders whose samples contain
    /// what the receiver waited with its acknowledgments.
    HyStart,
    /// When several samples in a row tell of a queue. A round is a round trip old when it is judged, and the window then twice
    /// what fits; samples without a receiver's waiting need no round.
    Consecutive {
        /// They must also span a round trip: samples may have waited for other paths.
        spanning: bool,
    },
}

/// A round-trip sample in slow start.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Everything before this position is acknowledged.
    pub upto: u64,
    /// The next new data has this position.
    pub next: u64,
    /// The sample.
    pub rtt: Duration,
}

/// What a strategy remembers of a path.
#[derive(Clone, Debug)]
pub(crate) enum Search {
    HyStart(Rounds),
    Consecutive(Consecutive),
}

impl SlowStart {
    pub(crate) fn search(self) -> Option<Box<Search>> {
        match self {
            Self::Standard => None,
            Self::HyStart => Some(Box::new(Search::HyStart(Rounds::default()))),
            Self::Consecutive { spanning } => Some(Box::new(Search::Consecutive(Consecutive::new(spanning)))),
        }
    }
}

impl Search {
    /// Whether slow start is to end: the path's window is `packets`, its lowest round-trip time so far `base`.
    pub(crate) fn finds_queue(&mut self, packets: f64, base: Duration, sample: &RoundTrip, now: Instant) -> bool {
        match self {
            Self::HyStart(rounds) => rounds.finds_queue(packets, base, sample),
            Self::Consecutive(samples) => samples.finds_queue(packets, base, sample.rtt, now),
        }
    }

    /// Slow start ends at this sample. Otherwise it would at so many bytes.
    pub(crate) fn ended(&mut self, sample: &RoundTrip, ssthresh: f64) {
        if let Self::Consecutive(samples) = self {
            samples.ended(sample, ssthresh);
        }
    }

    /// The path is not in slow start at this sample. Where it is to go on with that: at how many bytes it ends then.
    pub(crate) fn resumes(&mut self, sample: &RoundTrip, is_full: bool) -> Option<f64> {
        match self {
            Self::Consecutive(samples) => samples.resumes(sample, is_full),
            Self::HyStart(_) => None,
        }
    }

    /// Something was lost.
    pub(crate) fn settle(&mut self) {
        if let Self::Consecutive(samples) = self {
            samples.settle();
        }
    }
}

/// RttThresh of RFC 9406 §4.2: how much longer than `base` a round trip is that met a queue.
fn threshold(base: Duration) -> Duration {
    (base / DIVISOR).max(MIN_THRESHOLD).min(MAX_THRESHOLD)
}

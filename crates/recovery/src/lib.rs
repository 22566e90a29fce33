//! Loss detection, retransmission timing and reordering: what arrived, what is lost, how long to wait.
//!
//! Nothing in here decides a window (that is `congestion`), and nothing knows a packet format: positions are packet
//! numbers that the caller counts.
//!
//! - [`NewRenoRecovery`]: recovery without selective acknowledgments (RFC 5681, RFC 6582).
//! - [`Scoreboard`]: the sender's view of selective acknowledgments (RFC 6675).
//! - [`Reassembly`]: the receiver's side of both (RFC 2018).
//! - [`DupThresh`]: how many duplicate acknowledgments mean a loss.
//! - [`RttEstimator`]: the retransmission timeout (RFC 6298).
//! - [`Resequencer`]: one order out of several paths.
//! - [`BitRing`]: the set of packet numbers beneath them.
//!
//! ```
//! use clock::Duration;
//! use recovery::{RttConfig, RttEstimator, Scoreboard};
//!
//! // RFC 6298 §2: after 100 ms and 140 ms, 7/8 and 1/8 of them, and 3/4 and 1/4 of the variations.
//! let mut estimator = RttEstimator::new(RttConfig::default());
//! estimator.sample(Duration::from_millis(100));
//! estimator.sample(Duration::from_millis(140));
//! assert_eq!(estimator.srtt(), Some(Duration::from_millis(105)));
//! assert_eq!(estimator.rttvar(), Some(Duration::from_micros(47_500)));
//!
//! // RFC 6675: of ten packets the first is missing, and three behind it have arrived.
//! let mut scoreboard = Scoreboard::default();
//! scoreboard.sack(1, 4, 10);
//! assert_eq!(scoreboard.detect(3), 1);
//! assert_eq!(scoreboard.next_lost(), Some(0));
//! ```

mod bit_ring;
mod dupthresh;
mod new_reno;
mod reassembly;
mod resequencer;
mod rtt;
mod scoreboard;
#[cfg(test)]
mod vector;

pub use bit_ring::BitRing;
pub use dupthresh::DupThresh;
pub use new_reno::{Duplicate, NewRenoRecovery, Partial, Progress};
pub use reassembly::{Arrival, MAX_BLOCKS, Reassembly};
pub use resequencer::{Position, Resequencer, ResequencerStatistics, Role};
pub use rtt::{RttConfig, RttEstimator};
pub use scoreboard::Scoreboard;

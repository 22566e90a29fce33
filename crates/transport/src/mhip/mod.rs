//! Multipath HIP as the papers simulate it: an agent that spreads one connection's packets over paths.
//!
//! - \[1\] A. Gurtov and T. Polishchuk, *Secure multipath transport for legacy Internet applications*, BROADNETS 2009.
//! - \[2\] T. Polishchuk and A. Gurtov, *Improving TCP-friendliness for mHIP*, 2010.
//! - \[3\] The same, *Improving TCP-friendliness and fairness for mHIP*.
//!
//! Three generations of control, [`Generation`], are one sender type here; where the papers leave something open, a
//! named setting of [`MhipConfig`] has the choice.

mod config;
mod forecast;
mod heartbeats;
mod outstanding;
mod path_states;
mod receiver;
mod simple;
mod two_level;
mod windows;

use std::sync::Arc;

use clock::{Duration, Histogram, Instant, Rng};

pub use config::{Attribution, Generation, Marking, MhipConfig, PathConfig, PathCounters, PathStatus};
pub use congestion::Growth;
pub use forecast::Expected;
pub use path_states::{Closing, Mark, PathState, PathStates};
pub use receiver::{MhipReceiver, PathArrivals, ReceiveBuffer, Stored};
pub use windows::Windows;

use crate::packet::{Blocks, Packet};
use crate::sender::SenderCounters;
use simple::SimpleSender;
use two_level::TwoLevelSender;

/// The sender of any generation.
#[derive(Clone, Debug)]
pub struct MhipSender(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Simple(SimpleSender),
    TwoLevel(TwoLevelSender),
}

impl MhipSender {
    /// A sender that has not started.
    pub fn new(config: &Arc<MhipConfig>, random: Rng) -> Self {
        Self(match config.generation {
            Generation::Simple => Kind::Simple(SimpleSender::new(config, random)),
            Generation::TwoLevel | Generation::Final => Kind::TwoLevel(TwoLevelSender::new(config, random)),
        })
    }

    /// Opens the connection.
    pub fn start(&mut self, now: Instant) {
        match &mut self.0 {
            Kind::Simple(sender) => sender.start(now),
            Kind::TwoLevel(sender) => sender.start(now),
        }
    }

    /// The application has no more data.
    pub fn stop(&mut self) {
        match &mut self.0 {
            Kind::Simple(sender) => sender.tcp.stop(),
            Kind::TwoLevel(sender) => sender.stop(),
        }
    }

    /// Whether all data are acknowledged.
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            Kind::Simple(sender) => sender.tcp.is_complete(),
            Kind::TwoLevel(sender) => sender.is_complete(),
        }
    }

    /// An acknowledgment arrived.
    pub fn handle_input(&mut self, now: Instant, packet: &Packet, blocks: &Blocks) {
        match &mut self.0 {
            Kind::Simple(sender) => sender.handle_input(now, packet, blocks),
            Kind::TwoLevel(sender) => sender.handle_input(now, packet, blocks),
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.0 {
            Kind::Simple(sender) => sender.handle_timeout(now),
            Kind::TwoLevel(sender) => sender.handle_timeout(now),
        }
    }

    /// The next packet to send now, if any, with its path. Flow and hop are the caller's to set.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        match &mut self.0 {
            Kind::Simple(sender) => sender.poll_transmit(now),
            Kind::TwoLevel(sender) => sender.poll_transmit(now),
        }
    }

    /// When the retransmission timer runs out, and when the next data or heartbeats may be sent; [`Instant::FAR_FUTURE`] for
    /// never.
    pub fn deadlines(&self) -> [Instant; 2] {
        match &self.0 {
            Kind::Simple(sender) => sender.deadlines(),
            Kind::TwoLevel(sender) => sender.deadlines(),
        }
    }

    /// Counters.
    pub fn counters(&self) -> &SenderCounters {
        match &self.0 {
            Kind::Simple(sender) => sender.tcp.counters(),
            Kind::TwoLevel(sender) => sender.counters(),
        }
    }

    /// Round-trip times in nanoseconds.
    pub fn rtt(&self) -> &Histogram {
        match &self.0 {
            Kind::Simple(sender) => sender.tcp.rtt(),
            Kind::TwoLevel(sender) => sender.rtt(),
        }
    }

    /// Averages and distributions begin anew; those of paths are totals and stay.
    pub fn restart_averages(&mut self, now: Instant) {
        match &mut self.0 {
            Kind::Simple(sender) => sender.tcp.restart_averages(now),
            Kind::TwoLevel(sender) => sender.restart_averages(now),
        }
    }

    /// The global window in packets, averaged since the last [`MhipSender::restart_averages`].
    pub fn mean_cwnd(&self, now: Instant) -> f64 {
        match &self.0 {
            Kind::Simple(sender) => sender.tcp.mean_cwnd(now),
            Kind::TwoLevel(sender) => sender.mean_cwnd(now),
        }
    }

    /// Global window and threshold in packets, packets outstanding, smoothed round-trip time.
    pub fn state(&self) -> (f64, f64, u64, Duration) {
        match &self.0 {
            Kind::Simple(sender) => {
                let tcp = &sender.tcp;
                (tcp.cwnd(), tcp.ssthresh(), tcp.flight(), tcp.srtt())
            }
            Kind::TwoLevel(sender) => {
                let windows = sender.windows();
                (windows.total(), windows.total_ssthresh(), sender.flight(), sender.srtt())
            }
        }
    }

    /// The paths.
    pub fn paths(&self) -> Vec<PathStatus> {
        match &self.0 {
            Kind::Simple(sender) => sender.paths().collect(),
            Kind::TwoLevel(sender) => sender.paths().collect(),
        }
    }
}

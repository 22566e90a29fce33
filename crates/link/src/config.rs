//! What a link is configured with, and what may change while it runs.

use clock::{Duration, Instant};
use queue::QueueConfig;

use crate::{JitterConfig, Schedule, Trace};

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, never 0 at the start; `None` is infinitely fast.
    pub rate: Option<u64>,
    /// When it sends, in place of the rate, which is only told then.
    pub trace: Option<Trace>,
    /// How rate and delay change by themselves; without a rate they do not.
    pub schedule: Option<Schedule>,
    /// Propagation delay: from the last bit sent to the packet's arrival.
    pub delay: Duration,
    /// What is added to the delay of each packet.
    pub jitter: JitterConfig,
    /// Whether a packet may overtake those before it, because it takes less time; else it arrives no earlier than they do.
    pub reorder: bool,
    /// What waits for the transmitter, and what is refused.
    pub queue: QueueConfig,
    /// What is lost on the way.
    pub loss: LossConfig,
    /// The largest packet in bytes; larger ones are dropped, and nobody is told. `None` is any.
    pub mtu: Option<u32>,
    /// What changes when, in any order; of changes at the same instant the earlier in the list comes first.
    pub changes: Vec<Change>,
}

/// Which packets are lost after they were sent: a lost packet has taken its time on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// No loss.
    #[default]
    None,
    /// Each packet on its own with this probability, 0 to 1.
    Random(f64),
    /// The same, with the random numbers of ns-2's `ErrorModel`, so that the packets lost are those lost there.
    Ns2 {
        /// The probability, 0 to 1.
        rate: f64,
        /// The seed of ns-2's `RNG`.
        seed: u64,
    },
    /// Two states, good and bad (Gilbert 1960, Elliott 1963); the state may change before each packet. The chain
    /// starts good.
    GilbertElliott {
        /// Probability of a change from good to bad, per packet.
        to_bad: f64,
        /// Probability of a change from bad to good, per packet: the mean burst is 1/`to_good` packets.
        to_good: f64,
        /// Probability that a packet is lost in the good state.
        loss_good: f64,
        /// Probability that a packet is lost in the bad state.
        loss_bad: f64,
    },
}

/// A change at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When it takes effect, before anything else that happens at this instant.
    pub at: Instant,
    /// What changes.
    pub what: ChangeKind,
}

/// What may change while a link runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeKind {
    /// A new rate in bits per second, from the next packet on; the one being sent ends at the old rate. `None` is
    /// infinitely fast; 0 lets everything wait for another rate, where [`ChangeKind::Down`] drops it.
    Rate(Option<u64>),
    /// A new propagation delay, for packets whose last bit is sent from now on. The order of packets stays unless the link
    /// may change it: with a shorter delay a packet arrives no earlier than the one before it.
    Delay(Duration),
    /// Another loss; a Gilbert-Elliott chain starts anew.
    Loss(LossConfig),
    /// Another largest packet, for those that are offered from now on.
    Mtu(Option<u32>),
    /// The link fails. What waits or is being sent is lost, what was sent before still arrives, and what is offered
    /// until [`ChangeKind::Up`] is dropped.
    Down,
    /// The link works again.
    Up,
}

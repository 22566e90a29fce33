//! What a link is configured with, and what may change while it runs.

use clock::{Duration, Instant};

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, never 0 (a link that carries nothing is [`ChangeKind::Down`]); `None` is infinitely fast.
    pub rate: Option<u64>,
    /// Propagation delay: from the last bit sent to the packet's arrival.
    pub delay: Duration,
    /// What waits for the transmitter, and what is refused.
    pub queue: QueueConfig,
    /// What is lost on the way.
    pub loss: LossConfig,
    /// What changes when, in any order; of changes at the same instant the earlier in the list comes first.
    pub changes: Vec<Change>,
}

/// The queue before the transmitter. Limits count what waits, not the packet that is being sent.
///
/// ns-2's drop-tail with `queue-limit` q refuses a packet when q - 1 wait (`length() + 1 >= qlim_` in `drop-tail.cc`):
/// it is `Packets(q - 1)` here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum QueueConfig {
    /// Drop-tail without a limit.
    #[default]
    Unlimited,
    /// Drop-tail: at most so many packets wait.
    Packets(u32),
    /// Drop-tail: the waiting packets have at most so many bytes in sum.
    Bytes(u64),
    /// Random Early Detection.
    Red(RedConfig),
    /// Controlled Delay.
    CoDel(CoDelConfig),
}

/// Random Early Detection (Floyd and Jacobson 1993): drops or marks at arrival, by an average of the waiting packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Average in packets below which everything passes.
    pub min: f64,
    /// Average in packets from which nothing passes (or, with `gentle`, less and less); above `min`.
    pub max: f64,
    /// Most packets that may wait, whatever the average.
    pub limit: u32,
    /// Probability of a drop just below `max`, before it is spread.
    pub probability: f64,
    /// Weight of the newest sample in the average, 0 to 1.
    pub weight: f64,
    /// From `max` to twice `max` the probability rises to 1 instead of jumping there (Floyd 2000).
    pub gentle: bool,
    /// Marks packets that are ECN-capable instead of dropping them, below `max` (RFC 3168 §7), or twice `max` with
    /// `gentle`.
    pub ecn: bool,
    /// A typical packet in bytes: how fast the average sinks while the link is idle.
    pub packet_bytes: u32,
}

/// Controlled Delay (RFC 8289): drops or marks at departure, by the time packets have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Waiting time that is fine; 5 ms in the RFC.
    pub target: Duration,
    /// For so long the waiting time may stay above the target; 100 ms in the RFC.
    pub interval: Duration,
    /// Most packets that may wait.
    pub limit: u32,
    /// Marks packets that are ECN-capable instead of dropping them.
    pub ecn: bool,
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
    /// infinitely fast.
    Rate(Option<u64>),
    /// A new propagation delay, for packets whose last bit is sent from now on. The order of packets stays: with a
    /// shorter delay a packet arrives no earlier than the one before it.
    Delay(Duration),
    /// Another loss; a Gilbert-Elliott chain starts anew.
    Loss(LossConfig),
    /// The link fails. What waits or is being sent is lost, what was sent before still arrives, and what is offered
    /// until [`ChangeKind::Up`] is dropped.
    Down,
    /// The link works again.
    Up,
}

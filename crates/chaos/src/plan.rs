//! A run, written down: hosts, links, traffic, and every fault with its time. A plan needs no seed to be run again, so it
//! can be printed, edited, kept in a file, and made smaller.

use serde::{Deserialize, Serialize};

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed that it was drawn from. Keys, nonces and losses still follow from it.
    pub seed: u64,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// Pairs that are configured as each other's peers.
    pub pairs: Vec<(usize, usize)>,
    /// What programs send besides probes.
    pub flows: Vec<Flow>,
    /// Between two probes of a host to a peer, in milliseconds.
    pub probe_ms: u64,
    /// When the faults are over, in milliseconds.
    pub calm_ms: u64,
    /// What happens when, in order of time.
    pub events: Vec<Event>,
    /// What happens one after the other once all is well again; recovery from each is timed.
    pub epilogue: Vec<Fault>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Its access links.
    pub interfaces: Vec<Access>,
    /// Packets travel natively instead of inside UDP.
    pub native: bool,
    /// It gives and wants reports.
    pub feedback: bool,
    /// The rule for its windows.
    pub congestion: String,
    /// K of its puzzles.
    pub puzzle: u8,
    /// Its ESP suite, by number of the preference.
    pub suite: u8,
    /// How long its R1s are handed out, in milliseconds.
    pub r1_lifetime_ms: u64,
    /// How much faster its clock is, in millionths.
    pub drift_ppm: i32,
    /// A security association that has sent so many packets gets new keys; as configured by default where it is 0.
    #[serde(default)]
    pub renew_at: u32,
    /// Peers that are configured and not there.
    pub idle_peers: u32,
    /// It may lie: nothing is promised to it.
    pub hostile: bool,
}

/// An access link, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// bit/s.
    pub rate: u64,
    /// One way, in microseconds.
    pub delay_us: u64,
    /// Packets that may wait.
    pub queue: u32,
    /// Probability of a loss.
    pub loss: f64,
    /// An address translator stands before it.
    pub nat: Option<Nat>,
    /// The host wants data here only where no other link works.
    pub backup: bool,
}

/// An address translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nat {
    /// A mapping over which nothing goes out for so long is forgotten, in milliseconds.
    pub timeout_ms: u64,
    /// Each remote address has a mapping of its own.
    pub symmetric: bool,
}

/// Packets of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Who sends.
    pub from: usize,
    /// To whom.
    pub to: usize,
    /// A TCP; otherwise datagrams.
    pub tcp: bool,
    /// From HIT to HIT; otherwise from LSI to LSI.
    pub six: bool,
    /// Between two datagrams, in microseconds.
    pub interval_us: u64,
    /// The most bytes in one.
    pub bytes: u16,
    /// It begins then, in milliseconds.
    pub start_ms: u64,
    /// It sends nothing new after so many packets.
    pub packets: u32,
}

/// Something happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds.
    pub at: u64,
    /// What.
    pub fault: Fault,
}

/// Directions of an access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// From the host.
    Out,
    /// To the host.
    In,
    /// Both.
    Both,
}

/// What becomes of an access link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum LinkFault {
    /// It fails.
    Down,
    /// It works again.
    Up,
    /// It loses packets with this probability.
    Loss(f64),
    /// It has another delay, in microseconds.
    Delay(u64),
    /// It has another rate, in bit/s.
    Rate(u64),
}

/// What a firewall drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Block {
    /// Nothing any more.
    Nothing,
    /// HIP packets.
    Hip,
    /// ESP packets.
    Esp,
    /// UPDATEs.
    Updates,
    /// What is longer than this, in bytes.
    LongerThan(u16),
    /// Everything.
    All,
}

/// What may happen. Hosts and interfaces are numbers; those that there are not make an event do nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Fault {
    /// An access link changes.
    Link { host: usize, interface: usize, way: Way, what: LinkFault },
    /// Everywhere, packets arrive twice or late with these probabilities, by so many milliseconds at most.
    Weather { twice: f64, late: f64, late_ms: u64 },
    /// A firewall between two hosts, in one direction.
    Firewall { from: usize, to: usize, block: Block },
    /// The process is killed, and started again later. Its wall clock may have been set back meanwhile, in seconds.
    Restart { host: usize, down_ms: u64, back_s: u64 },
    /// The host closes all its associations.
    Close { host: usize },
    /// A host's clock jumps ahead.
    Jump { host: usize, ms: u64 },
    /// A host sleeps. Its clock may have gone on meanwhile.
    Suspend { host: usize, ms: u64, clock_goes_on: bool },
    /// An access link gets another address; the host notices.
    Readdress { host: usize, interface: usize },
    /// A translator forgets its mappings, and chooses others.
    Rebind { host: usize, interface: usize },
    /// An interface goes away.
    Unplug { host: usize, interface: usize },
    /// It comes back.
    Plug { host: usize, interface: usize },
    /// A burst of datagrams.
    Burst { from: usize, to: usize, packets: u32, bytes: u16 },
    /// Nothing but time passes, in milliseconds.
    Wait { ms: u64 },
    /// Somebody else does something.
    Attack(Attack),
}

/// From where a packet pretends to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// From where the one it speaks for is.
    Claimed,
    /// From an address of somebody who takes no part.
    Bystander(u8),
}

/// A forged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Forgery {
    /// A true I1, which anybody can make who knows two HITs.
    I1,
    /// The kind of a HIP packet with a shape that is right, and MAC and signature that are not.
    Hip(u8),
    /// ESP of an SPI that is somebody's, with a wrong ICV.
    Esp,
    /// Random bytes.
    Noise,
}

/// What an attacker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Attack {
    /// Off the path: sends forged packets that speak for `claims`.
    Forge { to: usize, claims: usize, what: Forgery, source: Source, count: u32, interval_us: u64 },
    /// An observer sends again what was seen: the packet that `pick` names among the last, to whom it was for or to another.
    Replay { pick: u32, to: Option<usize>, source: Source, count: u32 },
    /// On the path: one bit of so many packets from one host to another is changed.
    Corrupt { from: usize, to: usize, packets: u32 },
    /// A hostile peer: its UPDATEs come from a bystander's address first, and then from its own.
    StealAddress { host: usize, bystander: u8 },
    /// A hostile peer: reports that all that was sent on every path has arrived.
    Optimistic { host: usize, victim: usize, reports: u32, interval_us: u64 },
    /// A hostile peer: reports whose content is random.
    Gibberish { host: usize, victim: usize, reports: u32 },
    /// A hostile peer: an authentic packet with this sequence number.
    Sequence { host: usize, victim: usize, number: u32 },
    /// A hostile peer: numbered packets of so many flows with a hole before them, kept waiting with a packet now and then.
    Hoard { host: usize, victim: usize, flows: u16, packets: u16, refresh_ms: u64, times: u32 },
}

impl Plan {
    /// Whether nothing happens but attacks and bursts of datagrams.
    pub fn is_attack_only(&self) -> bool {
        let attack = |event: &Event| matches!(event.fault, Fault::Attack(_));
        let allowed = |event: &Event| attack(event) || matches!(event.fault, Fault::Burst { .. });
        let lossless = self.hosts.iter().flat_map(|host| &host.interfaces).all(|access| access.loss <= 0.0);
        lossless && self.events.iter().any(attack) && self.events.iter().all(allowed)
    }

    /// The same without attacks that are more than packets.
    #[must_use]
    pub fn without_theft(&self) -> Self {
        let honest = |event: &&Event| !matches!(event.fault, Fault::Attack(Attack::StealAddress { .. }));
        Self { events: self.events.iter().filter(honest).cloned().collect(), ..self.clone() }
    }
}

//! What a scenario file says, in plain data: numbers in base units, nodes by index.

use clock::{Duration, Instant, Rng};
use link::{Change, JitterConfig, LossConfig, QueueConfig, Schedule, Trace};

use crate::tcp::TcpSpec;

/// A node by its position in [`Scenario::nodes`](crate::Scenario::nodes).
pub type NodeIndex = usize;

/// One `[[link]]`: one direction or, with `between`, both, alike.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Its name; "a-r1" unless the file gives another.
    pub name: String,
    /// One end; the sending end of a one-way link.
    pub from: NodeIndex,
    /// The other end.
    pub to: NodeIndex,
    /// True for `between`: a second link like this one leads back.
    pub duplex: bool,
    /// Bits per second, of a trace on average; `None` when the file gives no rate: infinitely fast.
    pub rate: Option<u64>,
    /// When it sends, in place of a rate.
    pub trace: Option<Trace>,
    /// How it changes by itself.
    pub schedule: Option<Schedule>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What is added to the delay of each packet.
    pub jitter: JitterConfig,
    /// Whether a packet may overtake another.
    pub reorder: bool,
    /// The queue, still in the file's terms.
    pub queue: QueueSpec,
    /// Random or bursty loss.
    pub loss: LossConfig,
    /// The largest packet, in bytes; larger ones vanish.
    pub mtu: Option<u32>,
    /// What changes when, in order of time.
    pub changes: Vec<Change>,
    /// What is right in it but may not be meant, in sentences.
    pub remarks: Vec<String>,
}

/// A queue in the terms of the file. What depends on rate, round trip and packet size is resolved by
/// [`Scenario::directed`](crate::Scenario::directed).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum QueueSpec {
    /// Drop-tail with a limit.
    DropTail(Limit),
    /// A discipline that manages the length of its queue.
    Managed {
        /// The discipline, with all but the parameters in `limits`.
        config: QueueConfig,
        /// The parameters that are numbers of packets, by name.
        limits: Vec<(&'static str, Limit)>,
    },
    /// Nothing is ever refused.
    #[default]
    Unlimited,
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// "50p"
    Packets(u32),
    /// "64kB"
    Bytes(u64),
    /// "100ms" at the link's rate.
    Time(Duration),
    /// "1.5bdp": times rate and round trip, in whole packets.
    Bdp(f64),
}

/// What a flow speaks. Which of them a laboratory has built, it says itself, with
/// [`Scenario::error_in_flow`](crate::Scenario::error_in_flow).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP from a source of constant rate, or on and off.
    Udp,
    /// Multipath HIP as it ships.
    Sinnet,
    /// Multipath HIP as the papers have it.
    Mhip,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// SCTP with concurrent multipath transfer.
    CmtSctp,
    /// SCTP (RFC 9260): one path at a time, the others are spare.
    Sctp,
}

impl Protocol {
    /// All names as the file spells them.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("tcp", Self::Tcp),
        ("udp", Self::Udp),
        ("sinnet", Self::Sinnet),
        ("mhip", Self::Mhip),
        ("mptcp", Self::Mptcp),
        ("cmt-sctp", Self::CmtSctp),
        ("sctp", Self::Sctp),
    ];

    /// The name as the file spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sinnet => "sinnet",
            Self::Mhip => "mhip",
            Self::Mptcp => "mptcp",
            Self::CmtSctp => "cmt-sctp",
            Self::Sctp => "sctp",
        }
    }
}

/// One `[[flow]]`: `count` flows alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Its name, unique in the file; "flow1" and so on when the file gives none.
    pub name: String,
    /// The node that sends the data.
    pub from: NodeIndex,
    /// The node that receives it.
    pub to: NodeIndex,
    /// What it speaks.
    pub protocol: Protocol,
    /// Congestion control by its name in the registry; the protocol's own when absent.
    pub congestion: Option<String>,
    /// A set of settings by name, such as "ns2"; the keys of the flow override it.
    pub profile: Option<String>,
    /// Scheduler by name; the protocol's own when absent.
    pub scheduler: Option<String>,
    /// Flows alike, at least 1.
    pub count: u32,
    /// The nodes of each path from `from` to `to`. Where the file gives none: the path of fewest links, of several the
    /// one of least delay.
    pub paths: Vec<Vec<NodeIndex>>,
    /// Bytes of a full packet on the wire; the protocol's own when absent.
    pub packet_size: Option<u32>,
    /// What the receiver can hold; the protocol's own when absent.
    pub receiver_window: Option<Amount>,
    /// How much data there is to send; `None` is without end.
    pub amount: Option<Amount>,
    /// When it starts.
    pub start: Moment,
    /// The flow, by position, together with which it starts, where the file says so: `start` is that flow's, and one draw
    /// serves both.
    pub start_with: Option<usize>,
    /// When it stops; `None` is the end of the scenario.
    pub stop: Option<Moment>,
    /// Bits per second of a UDP source, on the wire.
    pub rate: Option<u64>,
    /// Pauses of a UDP source.
    pub on_off: Option<OnOff>,
    /// Options of TCP itself.
    pub tcp: TcpSpec,
    /// What it says about Sinnet.
    pub sinnet: crate::sinnet::SinnetSpec,
    /// What it says about mHIP.
    pub mhip: crate::mhip::MhipSpec,
    /// What it says about MPTCP.
    pub mptcp: crate::mptcp::MptcpSpec,
    /// What it says about SCTP.
    pub sctp: crate::sctp::SctpSpec,
}

impl FlowSpec {
    /// The size of a full packet on the wire, in bytes; 1500 where the file gives none.
    pub fn wire_size(&self) -> u32 {
        self.packet_size.unwrap_or(1500)
    }
}

/// An amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// In full packets.
    Packets(u64),
    /// In bytes.
    Bytes(u64),
    /// Without end.
    Unlimited,
}

/// A time that is fixed or, in each run, drawn from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At this instant.
    At(Instant),
    /// Uniformly from the first up to the second.
    Between(Instant, Instant),
}

impl Moment {
    /// The instant of one run.
    pub fn draw(self, rng: &mut Rng) -> Instant {
        match self {
            Self::At(at) => at,
            Self::Between(first, last) => first + Duration::from_nanos(rng.below((last - first).as_nanos())),
        }
    }
}

/// A source that sends and pauses in turn, beginning with sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// Mean time of sending.
    pub on: Duration,
    /// Mean time of a pause.
    pub off: Duration,
    /// True: both times are drawn from exponential distributions; false: they are always the same.
    pub exponential: bool,
}

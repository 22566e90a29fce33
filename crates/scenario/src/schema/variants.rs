//! Variants of a table, on which it depends which keys it can have: what a flow speaks, of what kind a queue is.

use std::sync::LazyLock;

use link::QueueConfig;

use crate::spec::Protocol;
use text::toml::{self as tree, Value};

use super::Table;

/// A variant of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// A table of which there is one kind.
    Plain,
    /// A flow of TCP.
    Tcp,
    /// A UDP source.
    Udp,
    /// mHIP of the first paper.
    Mhip1,
    /// mHIP of the later papers, which has windows for paths.
    Mhip23,
    /// A flow of Multipath TCP.
    Mptcp,
    /// A flow of SCTP.
    Sctp,
    /// A flow of CMT-SCTP.
    CmtSctp,
    /// The shipped hosts with TCP inside.
    SinnetTcp,
    /// The shipped hosts with UDP inside.
    SinnetUdp,
    /// The shipped hosts with echo requests inside.
    SinnetPing,
    /// A queue of the discipline at this place among [`QueueConfig::NAMES`].
    Queue(u8),
}

/// Some of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variants(u32);

impl Variants {
    /// None.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);
    pub(crate) const TCP: Self = Self::of(Variant::Tcp);
    pub(crate) const UDP: Self = Self::of(Variant::Udp);
    pub(crate) const MHIP_1: Self = Self::of(Variant::Mhip1);
    pub(crate) const MHIP_23: Self = Self::of(Variant::Mhip23);
    pub(crate) const MHIP: Self = Self::MHIP_1.or(Self::MHIP_23);
    pub(crate) const MPTCP: Self = Self::of(Variant::Mptcp);
    pub(crate) const CMT: Self = Self::of(Variant::CmtSctp);
    /// SCTP and CMT-SCTP.
    pub(crate) const SCTP: Self = Self::of(Variant::Sctp).or(Self::CMT);
    pub(crate) const SINNET_TCP: Self = Self::of(Variant::SinnetTcp);
    pub(crate) const SINNET_UDP: Self = Self::of(Variant::SinnetUdp);
    pub(crate) const SINNET_PING: Self = Self::of(Variant::SinnetPing);
    /// The shipped hosts, whatever is inside.
    pub(crate) const SINNET: Self = Self::SINNET_TCP.or(Self::SINNET_UDP).or(Self::SINNET_PING);
    /// All flows of the simulator.
    pub(crate) const OF_SIM: Self =
        Self::TCP.or(Self::UDP).or(Self::SINNET).or(Self::MHIP).or(Self::MPTCP).or(Self::SCTP);
    /// All flows of the lab in virtual time.
    pub(crate) const OF_VIRTUAL_LAB: Self = Self::TCP.or(Self::SINNET);
    /// All flows of the lab in real time: Multipath TCP is the kernel's.
    pub(crate) const OF_LAB: Self = Self::OF_VIRTUAL_LAB.or(Self::MPTCP);

    pub(crate) const fn of(variant: Variant) -> Self {
        let bit = match variant {
            Variant::Plain => 0,
            Variant::Tcp => 1,
            Variant::Udp => 2,
            Variant::Mhip1 => 3,
            Variant::Mhip23 => 4,
            Variant::Mptcp => 5,
            Variant::Sctp => 6,
            Variant::CmtSctp => 7,
            Variant::SinnetTcp => 8,
            Variant::SinnetUdp => 9,
            Variant::SinnetPing => 10,
            Variant::Queue(index) => 16 + index,
        };
        Self(1 << bit)
    }

    /// These and those.
    #[must_use]
    pub const fn or(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without those.
    #[must_use]
    pub(crate) const fn except(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether `variant` is one of them.
    pub const fn has(self, variant: Variant) -> bool {
        self.0 & Self::of(variant).0 != 0
    }

    /// Whether there is none of them.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether there is one of `others` among them.
    pub(super) const fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// What flows of a protocol are.
    pub(super) const fn of_protocol(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Self::TCP,
            Protocol::Udp => Self::UDP,
            Protocol::Mhip => Self::MHIP,
            Protocol::Mptcp => Self::MPTCP,
            Protocol::Sctp => Self::of(Variant::Sctp),
            Protocol::CmtSctp => Self::CMT,
            Protocol::Sinnet => Self::SINNET,
        }
    }

    pub(super) fn has_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// What they are called, what belongs together under one name.
    pub fn names(self) -> Vec<&'static str> {
        if self == Self::ALL {
            return vec!["all"];
        }
        let mut rest = self;
        let mut names = Vec::new();
        let queues = QUEUES.iter().zip(0..).map(|(name, at)| (Self::of(Variant::Queue(at)), name.as_str()));
        for (set, name) in NAMES.into_iter().chain(queues) {
            if rest.has_all(set) {
                names.push(name);
                rest = Self(rest.0 & !set.0);
            }
        }
        names
    }
}

/// The disciplines of queues, as files write them.
static QUEUES: LazyLock<Vec<String>> =
    LazyLock::new(|| QueueConfig::NAMES.iter().map(|name| format!("\"{name}\"")).collect());

/// Names of variants, those of several before those of each.
const NAMES: [(Variants, &str); 13] = [
    (Variants::TCP, "\"tcp\""),
    (Variants::UDP, "\"udp\""),
    (Variants::SINNET, "\"sinnet\""),
    (Variants::SINNET_TCP, "\"sinnet\" with TCP inside"),
    (Variants::SINNET_UDP, "\"sinnet\" with UDP inside"),
    (Variants::SINNET_PING, "\"sinnet\" with echo requests inside"),
    (Variants::MHIP, "\"mhip\""),
    (Variants::MHIP_1, "\"mhip\" of generation 1"),
    (Variants::MHIP_23, "\"mhip\" of generations 2 and 3"),
    (Variants::MPTCP, "\"mptcp\""),
    (Variants::of(Variant::Sctp), "\"sctp\""),
    (Variants::CMT, "\"cmt-sctp\""),
    (Variants::of(Variant::Plain), "all"),
];

impl Variant {
    /// The variants of a flow, each with the least that a file says for a flow to be of it.
    pub const FLOWS: [(Self, &'static str); 10] = [
        (Self::Tcp, "protocol = \"tcp\""),
        (Self::Udp, "protocol = \"udp\"\nrate = \"1Mbit/s\""),
        (Self::Mhip1, "protocol = \"mhip\"\ngeneration = 1"),
        (Self::Mhip23, "protocol = \"mhip\""),
        (Self::Mptcp, "protocol = \"mptcp\""),
        (Self::Sctp, "protocol = \"sctp\""),
        (Self::CmtSctp, "protocol = \"cmt-sctp\""),
        (Self::SinnetTcp, "protocol = \"sinnet\""),
        (Self::SinnetUdp, "protocol = \"sinnet\"\ninside = \"udp\"\nrate = \"1Mbit/s\""),
        (Self::SinnetPing, "protocol = \"sinnet\"\ninside = \"ping\""),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        Variants::of(self).names().first().copied().unwrap_or_default()
    }

    /// The variant of `table`, an element of `kind`; `None` where the key that says it is missing or not understood, which its
    /// reader tells.
    pub(super) fn of_table(kind: Table, table: &tree::Table) -> Option<Self> {
        match kind {
            Table::Flow => Self::of_flow(table),
            Table::Queue => {
                let kind = table.text("kind")?;
                (0..).zip(QueueConfig::NAMES).find(|(_, name)| **name == kind).map(|(at, _)| Self::Queue(at))
            }
            _ => Some(Self::Plain),
        }
    }

    fn of_flow(table: &tree::Table) -> Option<Self> {
        let written = table.text("protocol")?;
        let (_, protocol) = Protocol::NAMES.into_iter().find(|(name, _)| *name == written)?;
        Some(match protocol {
            Protocol::Tcp => Self::Tcp,
            Protocol::Udp => Self::Udp,
            Protocol::Mptcp => Self::Mptcp,
            Protocol::Sctp => Self::Sctp,
            Protocol::CmtSctp => Self::CmtSctp,
            Protocol::Mhip => match table.get("generation").map(|entry| &entry.node.value) {
                Some(Value::Integer(1)) => Self::Mhip1,
                None | Some(Value::Integer(2 | 3)) => Self::Mhip23,
                Some(_) => return None,
            },
            Protocol::Sinnet => match table.get("inside").map(|_| table.text("inside")) {
                None | Some(Some("tcp")) => Self::SinnetTcp,
                Some(Some("udp")) => Self::SinnetUdp,
                Some(Some("ping")) => Self::SinnetPing,
                Some(_) => return None,
            },
        })
    }
}

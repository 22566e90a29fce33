//! What can be told about a wedge: a snapshot, and counters.

use serde::{Deserialize, Serialize};

/// A snapshot of a wedge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// This host's identity.
    pub hit: String,
    /// This host's LSI.
    pub lsi: String,
    /// All identities of this host; the first is that of `hit`.
    pub identities: Vec<IdentityStatus>,
    /// The peers, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// What happened to packets.
    pub counters: Counters,
    /// What happened to control packets.
    pub control: hip::Counters,
}

/// One of the identities of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct IdentityStatus {
    /// What it is called; empty where it has no name.
    pub name: String,
    /// The HIT.
    pub hit: String,
    /// What IPv4 programs call it.
    pub lsi: String,
    /// Whether no directory lists it (RFC 7401 §5.1.2).
    pub anonymous: bool,
}

/// A snapshot of the association with one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PeerStatus {
    /// What it is called.
    pub name: String,
    /// Its identity.
    pub hit: String,
    /// Its LSI.
    pub lsi: String,
    /// The HIT of the identity of this host that speaks with it.
    pub identity: String,
    /// State of the association by RFC 7401 §4.4, in words.
    pub state: String,
    /// How long there has been an association, in seconds; absent without one.
    pub age_s: Option<f64>,
    /// Whether the peer gives feedback; what is measured below is absent without.
    pub feedback: bool,
    /// Of a peer that gives none, where paths are measured by the acknowledgments of the TCP inside: segments in flight.
    pub snooped: Option<usize>,
    /// The rule by which windows grow and shrink.
    pub congestion: Option<String>,
    /// How packets get their paths.
    pub scheduler: String,
    /// What waits because the paths have no room; absent where rates are configured.
    pub send_buffer: Option<SendBufferStatus>,
    /// Flows remembered.
    pub flows: usize,
    /// Packets of the peer that wait for others before them now.
    pub held_packets: usize,
    /// Their bytes, what it takes to keep them included.
    pub held_bytes: usize,
    /// All bytes that are held for the peer.
    pub memory: usize,
    /// Packets that had to wait for others before them.
    pub resequenced: u64,
    /// Holes given up as lost because every path had delivered something younger.
    pub proven_losses: u64,
    /// Holes given up because others had waited long enough.
    pub expired_holes: u64,
    /// The paths.
    pub paths: Vec<PathStatus>,
}

/// A snapshot of the send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SendBufferStatus {
    /// Packets that wait.
    pub packets: usize,
    /// Bytes that wait.
    pub bytes: usize,
    /// How long the packet that left last had waited, in milliseconds.
    pub delay_ms: f64,
    /// Packets dropped because programs sent more than the paths carry.
    pub dropped: u64,
    /// Packets marked in place of that (RFC 3168), for flows that understand it.
    pub marked: u64,
    /// Of the time of the association, the part in which packets waited: the paths' windows were the limit, not the
    /// programs.
    pub paths_bind: f64,
}

/// A snapshot of one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PathStatus {
    /// Its number.
    pub id: u16,
    /// What the local side of it is called.
    pub name: String,
    /// This host's locator.
    pub local: String,
    /// The peer's locator.
    pub remote: String,
    /// ESP leaves as IP protocol 50, though the path was opened inside UDP.
    pub sheds_udp: bool,
    /// Whether it answers heartbeats.
    pub alive: bool,
    /// It carries data only where no other path works: this host or the peer wants it so.
    pub backup: bool,
    /// It is a backup, and others work.
    pub standby: bool,
    /// Configured rate in bit/s, if there is one.
    pub rate: Option<u64>,
    /// Smoothed round-trip time in milliseconds; absent before the first answer.
    pub srtt_ms: Option<f64>,
    /// Bytes of outer IP packets sent, ESP only.
    pub bytes_out: u64,
    /// Bytes of outer IP packets received, ESP only.
    pub bytes_in: u64,
    /// ESP packets sent.
    pub packets_out: u64,
    /// ESP packets received and accepted.
    pub packets_in: u64,
    /// Bytes that wait for the path.
    pub queued: usize,
    /// The largest outer IP packet that goes on it, in bytes: what was found (RFC 8899), or while nothing is, what the interface takes
    /// or the configuration says.
    pub mtu: u16,
    /// The state of the search for it by RFC 8899 §5.2: `disabled`, `base`, `search`, `complete` or `error`.
    pub mtu_state: String,
    /// Probes of that search sent.
    pub mtu_probes: u64,
    /// How often packets of a size that had passed did no longer.
    pub black_holes: u64,
    /// What the peer reports.
    pub measured: Option<Measured>,
}

/// What is known of a path from the peer's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Measured {
    /// Delivery rate in bit/s, outer headers included; the greatest of the last round trips.
    pub delivery_rate: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes, absent before the first loss.
    pub ssthresh: Option<u64>,
    /// Bytes in flight.
    pub in_flight: usize,
    /// Packets sent that are still remembered, so that a late report about them is understood.
    pub remembered: usize,
    /// How many paths, this one included, share its bottleneck.
    pub sharers: u32,
    /// Another path carries instead of it: both go through one bottleneck that has a queue for each flow.
    pub rests: bool,
    /// The variation of the round-trip time in milliseconds.
    pub rttvar_ms: Option<f64>,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Packets taken for lost that arrived after all.
    pub spurious: u64,
    /// Packets that arrived after later ones.
    pub reordered: u64,
    /// Packets marked with Congestion Experienced.
    pub ce: u64,
}

hip::counters! {
/// What happened to packets that were not simply carried, and how many were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counters {
    /// IP packets from local programs.
    pub application_in: u64,
    /// IP packets to local programs.
    pub application_out: u64,
    /// Datagrams and packets from the network.
    pub network_in: u64,
    /// Datagrams and packets to the network.
    pub network_out: u64,
    /// From a program: not a whole IP packet, or one that cannot be translated.
    pub unreadable: u64,
    /// From a program: to an address that is no peer's.
    pub no_peer: u64,
    /// Packets of programs that a policy keeps from passing.
    pub prohibited: u64,
    /// From a program: from an address that is not this host's.
    pub wrong_source: u64,
    /// From a program: larger than the paths carry; answered with ICMP.
    pub too_big: u64,
    /// Segments of TCP cut into several because they were larger than the paths carry and nobody could be told.
    pub segments_cut: u64,
    /// SYNs that announced more than the paths carry, and do not any more.
    pub mss_clamped: u64,
    /// Sent although larger than what is known to pass, and may be cut on the way.
    pub oversized: u64,
    /// Probes of paths' MTUs sent.
    pub mtu_probes_out: u64,
    /// Of those, answered.
    pub mtu_probes_answered: u64,
    /// How often a path did not carry packets any more of a size that it had.
    pub black_holes: u64,
    /// Dropped: more packets were waiting for the base exchange than may.
    pub waiting_full: u64,
    /// Dropped: had waited for the base exchange for more than five seconds.
    pub waited_too_long: u64,
    /// Dropped: the base exchange failed, or the association ended.
    pub no_association: u64,
    /// Dropped: the paths had more to send than they may.
    pub queue_full: u64,
    /// Dropped: a security association had sent all the packets it may.
    pub exhausted: u64,
    /// Moved to another path because theirs died, or carries far less all at once.
    pub rescheduled: u64,
    /// From the network: neither HIP nor ESP.
    pub malformed: u64,
    /// From the network: ESP of an SPI that is not ours.
    pub unknown_spi: u64,
    /// From the network: ESP on a path's SPI from where the path does not lead.
    pub elsewhere: u64,
    /// Paths that have moved to where the peer answered.
    pub paths_moved: u64,
    /// From the network: ESP too short for its suite.
    pub short_esp: u64,
    /// From the network: ESP that was received before.
    pub replayed: u64,
    /// From the network: ESP with a wrong ICV.
    pub bad_icv: u64,
    /// From the network: ESP whose padding is wrong.
    pub bad_padding: u64,
    /// From the network: ESP with content that is no packet.
    pub bad_payload: u64,
    /// From the network: marked with Congestion Experienced although its flow does not understand that (RFC 6040 §4.2).
    pub wrongly_marked: u64,
    /// From peers of whom only answers are taken: what answers nothing.
    pub uninvited: u64,
    /// Refusals of the local stack that were followed by IPv4.
    pub offered_as_ipv4: u64,
    /// Refusals of the local stack that did not reach the peer.
    pub refusals_swallowed: u64,
    /// Reports about paths sent.
    pub feedback_out: u64,
    /// Reports of the peers taken.
    pub feedback_in: u64,
    /// Reports, or records of them, that make no sense.
    pub bad_feedback: u64,
    /// Packets of programs whose headers went in short.
    pub shortened: u64,
    /// Packets with a label that this host does not know.
    pub unknown_labels: u64,
    /// Reports that acknowledged a number under which nothing was sent; each has cost the peer its association.
    pub invented_acknowledgments: u64,
    /// Records about paths that there are not, or not any more.
    pub unknown_feedback: u64,
    /// Packets that a path lost and that were sent again.
    pub repaired: u64,
    /// Packets that were lost again and left to the programs.
    pub given_up: u64,
    /// Paths that answered nothing for a retransmission timeout.
    pub timeouts: u64,
    /// How often the clock had jumped: the machine slept, or the process was stopped.
    pub clock_jumps: u64,
    /// Hints that a peer does not know our packets, and that were checked.
    pub doubts: u64,
    /// How often a peer was looked after because something was due.
    pub peer_turns: u64,
    /// Deadlines that had passed already when all was done, and were put off by a millisecond.
    pub stuck_timers: u64,
    /// Holes in the order of packets given up because their peer held as much as it may.
    pub given_up_for_memory: u64,
    /// Heartbeats sent.
    pub heartbeats_out: u64,
    /// Heartbeats answered by the peer.
    pub heartbeats_answered: u64,
    /// Heartbeats of the peer answered.
    pub heartbeats_in: u64,
}
}

//! The options of a flow of multipath HIP: what it carries, and in the simulator how; the lab has the daemon's own ways.

use clock::Duration;
use diagnostic::Diagnostic;

use crate::reader::{self, Reader};
use crate::spec::{Amount, Protocol};
use crate::tree::{Node, Value};

/// What a flow says about mHIP; `None` leaves a setting as the generation has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MhipSpec {
    /// `inside`: what travels inside.
    pub inside: Inside,
    /// `generation`: 1, 2 or 3, for the three papers.
    pub generation: Option<u8>,
    /// `growth`: how the windows of paths grow.
    pub growth: Option<GrowthSpec>,
    /// `dupthresh`: duplicates that mean a loss.
    pub dupthresh: Option<u32>,
    /// `addr`: reductions are taken back within this part of the least round-trip time; `Some(None)` for never.
    pub addr: Option<Option<f64>>,
    /// `receive_buffer`: packets out of order that the receiver holds.
    pub receive_buffer: Option<Amount>,
    /// `marking`: paths are watched by marked packets, closed when congested, and probed.
    pub marking: Option<bool>,
    /// `probe_interval`: a closed path is probed so often.
    pub probe_interval: Option<Duration>,
}

/// What an mHIP flow carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// A download by TCP.
    #[default]
    Tcp,
    /// UDP at the flow's `rate`.
    Udp,
    /// Echo requests, which the other end answers.
    Ping,
}

/// How the windows of paths grow in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthSpec {
    /// Each as a TCP of its own.
    PerPath,
    /// All together as one TCP.
    Coupled,
    /// RFC 6356.
    Lia,
    /// Those that share a bottleneck as one TCP, others each as one.
    PerBottleneck,
}

const INSIDE: [(&str, Inside); 3] = [("tcp", Inside::Tcp), ("udp", Inside::Udp), ("ping", Inside::Ping)];

const GROWTH: [(&str, GrowthSpec); 4] = [
    ("per_path", GrowthSpec::PerPath),
    ("coupled", GrowthSpec::Coupled),
    ("lia", GrowthSpec::Lia),
    ("per_bottleneck", GrowthSpec::PerBottleneck),
];

/// ADDR where a file says only `addr = true`.
const ADDR: f64 = 0.9;

/// Reads the keys of mHIP from a flow.
pub(crate) fn mhip(
    table: &mut Reader<'_>,
    protocol: Protocol,
    amount: impl Fn(&Node) -> Result<Amount, Diagnostic>,
) -> Result<MhipSpec, Diagnostic> {
    let mut any = None;
    let mut entry = |key| {
        let entry = table.optional(key);
        any = any.or(entry);
        entry.map(|entry| &entry.node)
    };
    let spec = MhipSpec {
        inside: entry("inside").map(|node| reader::word(node, &INSIDE)).transpose()?.unwrap_or_default(),
        generation: entry("generation").map(|node| reader::whole(node, 1, 3)).transpose()?.map(|n| n as u8),
        growth: entry("growth").map(|node| reader::word(node, &GROWTH)).transpose()?,
        dupthresh: entry("dupthresh").map(|node| reader::whole(node, 1, 1000)).transpose()?.map(|n| n as u32),
        addr: entry("addr").map(addr).transpose()?,
        receive_buffer: entry("receive_buffer").map(amount).transpose()?,
        marking: entry("marking").map(reader::boolean).transpose()?,
        probe_interval: match entry("probe_interval") {
            None => None,
            Some(node) => match reader::time(node)? {
                interval if interval.is_zero() => {
                    return Err(node.place.error("a probe at every instant is no probe", None));
                }
                interval => Some(interval),
            },
        },
    };
    match any {
        Some(entry) if protocol != Protocol::Mhip => {
            Err(entry.key_place.error(format!("`{}` is for protocol = \"mhip\"", entry.key), None))
        }
        _ => Ok(spec),
    }
}

fn addr(node: &Node) -> Result<Option<f64>, Diagnostic> {
    match &node.value {
        Value::Boolean(on) => Ok(on.then_some(ADDR)),
        Value::Integer(_) | Value::Float(_) => {
            reader::probability(node).map(|part| Some(part).filter(|part| *part > 0.0))
        }
        other => Err(reader::expected("true, false or a part of the round-trip time", other, node, "addr = 0.9")),
    }
}

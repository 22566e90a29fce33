//! The options of a flow of mHIP as the papers have it.

use clock::Duration;
use text::Diagnostic;

use crate::schema::{Key, Type, UNLIMITED, Variants, flow, names};
use crate::spec::Amount;
use text::reader::{self, Reader};
use text::toml::{Node, Value};

/// What a flow says about mHIP; `None` leaves a setting as the generation has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MhipSpec {
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
    pub marking: Option<MarkingSpec>,
    /// `signalling`: a small packet on each path so often tells how long it is; `Some(None)` for none.
    pub signalling: Option<Option<Duration>>,
    /// `duplicates`: which duplicate acknowledgments count against what is missing.
    pub duplicates: Option<DuplicatesSpec>,
    /// `probe_interval`: a closed path is probed so often.
    pub probe_interval: Option<Duration>,
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

/// Whether and how paths are watched by marked packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkingSpec {
    /// Not.
    Off,
    /// As the generation has it.
    On,
    /// A packet is late by more than this part of the round-trip time.
    Late(f64),
}

/// Which duplicate acknowledgments count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicatesSpec {
    /// All.
    AnyPath,
    /// Those of packets that were sent later on the path of what is missing.
    SamePath,
}

const GROWTH: [(&str, GrowthSpec); 4] = [
    ("per_path", GrowthSpec::PerPath),
    ("coupled", GrowthSpec::Coupled),
    ("lia", GrowthSpec::Lia),
    ("per_bottleneck", GrowthSpec::PerBottleneck),
];

const DUPLICATES: [(&str, DuplicatesSpec); 2] =
    [("any_path", DuplicatesSpec::AnyPath), ("same_path", DuplicatesSpec::SamePath)];

/// ADDR where a file says only `addr = true`.
const ADDR: f64 = 0.9;

/// The rows of mHIP.
pub(crate) const KEYS: &[Key] = &[
    flow("generation", Type::Whole(1, 3), "3", "Which of the three papers' control.").example("2").sim(Variants::MHIP),
    flow("growth", Type::Words(|| names(&GROWTH)), "\"per_path\"", "How the windows of paths grow: each as a TCP, all as one, by RFC 6356, or those that share a bottleneck as one.")
        .example("\"lia\"")
        .sim(Variants::MHIP_23),
    flow("dupthresh", Type::Whole(1, 1000), "6; of generation 2 it is 3", "Duplicates that mean a loss.").example("4").sim(Variants::MHIP_23),
    flow("addr", Type::Either(&[Type::Boolean, Type::Probability]), "true; of generation 2 false", "A reduction is taken back when what was missing arrives within this part of the least round-trip time; true is 0.9.")
        .example("0.5")
        .sim(Variants::MHIP_23),
    flow("receive_buffer", Type::Either(&[Type::Amount, UNLIMITED]), "as large as the window", "Packets out of order that the receiver holds.")
        .example("\"453p\"")
        .sim(Variants::MHIP),
    flow("marking", Type::Either(&[Type::Boolean, Type::Probability]), "true", "Paths are watched by marked packets, closed when congested, and probed; a mark is late by more than this part of the round-trip time, true is 0.25.")
        .example("0.5")
        .sim(Variants::MHIP_1),
    flow("signalling", Type::Either(&[Type::Time, Type::Off]), "\"50ms\"; of \"mhip\" of generation 1 false", "Time between small packets on each path that tell how long it is, and whether a closed one is free; false is none, and data probe.")
        .example("\"200ms\"")
        .sim(Variants::MHIP),
    flow("duplicates", Type::Words(|| names(&DUPLICATES)), "\"same_path\"; of generation 2 \"any_path\"", "Duplicate acknowledgments that count against what is missing: all, or those of later packets on its path.")
        .example("\"any_path\"")
        .sim(Variants::MHIP_23),
    flow("probe_interval", Type::Time, "\"1s\"", "Time between the probes of a closed path.").example("\"2s\"").sim(Variants::MHIP),
];

/// Reads the keys of mHIP from a flow.
pub(crate) fn mhip(
    table: &Reader<'_>,
    amount: impl Fn(&Node) -> Result<Amount, Diagnostic>,
) -> Result<MhipSpec, Diagnostic> {
    Ok(MhipSpec {
        generation: table.read("generation", |node| reader::whole(node, 1, 3))?,
        growth: table.read("growth", |node| reader::word(node, &GROWTH))?,
        dupthresh: table.read("dupthresh", |node| reader::whole(node, 1, 1000))?,
        addr: table.read("addr", addr)?,
        receive_buffer: table.read("receive_buffer", amount)?,
        marking: table.read("marking", marking)?,
        signalling: table.read("signalling", signalling)?,
        duplicates: table.read("duplicates", |node| reader::word(node, &DUPLICATES))?,
        probe_interval: table.read("probe_interval", |node| match reader::time(node)? {
            interval if interval.is_zero() => Err(node.place.error("a probe at every instant is no probe", None)),
            interval => Ok(interval),
        })?,
    })
}

fn addr(node: &Node) -> Result<Option<f64>, Diagnostic> {
    match &node.value {
        Value::Boolean(on) => Ok(on.then_some(ADDR)),
        Value::Integer(_) | Value::Float(_) | Value::String(_) => {
            reader::probability(node).map(|part| Some(part).filter(|part| *part > 0.0))
        }
        other => Err(reader::expected("true, false or a part of the round-trip time", other, node, "addr = 0.9")),
    }
}

fn marking(node: &Node) -> Result<MarkingSpec, Diagnostic> {
    match &node.value {
        Value::Boolean(on) => Ok(if *on { MarkingSpec::On } else { MarkingSpec::Off }),
        Value::Integer(_) | Value::Float(_) | Value::String(_) => reader::probability(node).map(MarkingSpec::Late),
        other => Err(reader::expected("true, false or a part of the round-trip time", other, node, "marking = 0.25")),
    }
}

fn signalling(node: &Node) -> Result<Option<Duration>, Diagnostic> {
    match &node.value {
        Value::Boolean(false) => Ok(None),
        Value::String(_) => match reader::time(node)? {
            interval if interval.is_zero() => Err(node.place.error("no path bears a packet at every instant", None)),
            interval => Ok(Some(interval)),
        },
        other => Err(reader::expected("false or a time", other, node, "signalling = \"50ms\"")),
    }
}

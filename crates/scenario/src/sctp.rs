//! The options of SCTP and CMT-SCTP.

use clock::Duration;
use text::Diagnostic;

use crate::schema::{Key, Type, UNLIMITED, Variants, flow, names};
use crate::spec::Amount;
use text::reader::{self, Reader};
use text::toml::Node;

/// What a flow says about SCTP; `None` leaves a setting as the protocol has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SctpSpec {
    /// `ordered`: messages are delivered in order.
    pub ordered: Option<bool>,
    /// `nr_sack`: acknowledgments that the receiver cannot take back.
    pub nr_sack: Option<bool>,
    /// `sfr`: split fast retransmit.
    pub sfr: Option<bool>,
    /// `cuc`: what lets windows grow.
    pub cuc: Option<CucSpec>,
    /// `dac`: delayed acknowledgments for CMT.
    pub dac: Option<bool>,
    /// `strict_windows`: the paths together stay within the sum of their windows.
    pub strict_windows: Option<bool>,
    /// `splitting`: the buffers that are divided among the paths, the sender's and the receiver's.
    pub splitting: Option<(bool, bool)>,
    /// `rtx`: where lost chunks are sent again.
    pub rtx: Option<RtxSpec>,
    /// `send_buffer`: what the sender keeps at most.
    pub send_buffer: Option<Amount>,
    /// `path_max_retrans`: timeouts in a row after which a path is inactive.
    pub path_max_retrans: Option<u32>,
    /// `heartbeat`: an inactive path is tried so often.
    pub heartbeat: Option<Duration>,
    /// `max_burst`: packets that one acknowledgment lets out on a path.
    pub max_burst: Option<u32>,
}

/// Congestion window update for CMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CucSpec {
    /// None: the cumulative acknowledgment.
    Cumulative,
    /// Version 1.
    V1,
    /// Version 2.
    V2,
}

/// Policies for retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtxSpec {
    /// The same path.
    Same,
    /// The largest window.
    Cwnd,
    /// The largest slow-start threshold.
    Ssthresh,
    /// The earliest arrival.
    Fpf,
}

const CUC: [(&str, CucSpec); 3] = [("none", CucSpec::Cumulative), ("v1", CucSpec::V1), ("v2", CucSpec::V2)];
const RTX: [(&str, RtxSpec); 4] = [
    ("rtx_same", RtxSpec::Same),
    ("rtx_cwnd", RtxSpec::Cwnd),
    ("rtx_ssthresh", RtxSpec::Ssthresh),
    ("rtx_fpf", RtxSpec::Fpf),
];
const SPLITTING: [(&str, (bool, bool)); 4] =
    [("none", (false, false)), ("sender", (true, false)), ("receiver", (false, true)), ("both", (true, true))];

/// The rows of SCTP and CMT-SCTP.
pub(crate) const KEYS: &[Key] = &[
    of_sctp("ordered", Type::Boolean, "true; of \"cmt-sctp\" false", "Messages are delivered in order.")
        .example("false"),
    of_sctp(
        "nr_sack",
        Type::Boolean,
        "false; of \"cmt-sctp\" true",
        "Acknowledgments that the receiver cannot take back.",
    )
    .example("true"),
    of_sctp(
        "rtx",
        Type::Words(|| names(&RTX)),
        "\"rtx_same\"; of \"cmt-sctp\" \"rtx_ssthresh\"",
        "The path on which lost chunks are sent again.",
    )
    .example("\"rtx_cwnd\""),
    of_sctp("send_buffer", AMOUNT, "\"5MB\"", "What the sender keeps at most.").example("\"100p\""),
    of_sctp(
        "path_max_retrans",
        Type::Whole(0, 1000),
        "5",
        "Timeouts in a row after which a path is inactive (RFC 9260 §8.2).",
    )
    .example("2"),
    of_sctp("heartbeat", Type::Time, "\"30s\"", "Time between the heartbeats of an inactive path (RFC 9260 §8.3).")
        .example("\"1s\""),
    of_sctp(
        "max_burst",
        Type::Whole(1, 1_000_000),
        "4",
        "Packets that one acknowledgment lets out on a path (RFC 9260 §6.1).",
    )
    .example("8"),
    of_cmt("sfr", Type::Boolean, "true", "Split fast retransmit.").example("false"),
    of_cmt("cuc", Type::Words(|| names(&CUC)), "\"v2\"", "What lets the windows of paths grow.").example("\"v1\""),
    of_cmt("dac", Type::Boolean, "true", "Delayed acknowledgments for CMT.").example("false"),
    of_cmt("strict_windows", Type::Boolean, "true", "The paths together stay within the sum of their windows.")
        .example("false"),
    of_cmt("splitting", Type::Words(|| names(&SPLITTING)), "\"both\"", "The buffers that are divided among the paths.")
        .example("\"none\""),
];

const AMOUNT: Type = Type::Either(&[Type::Amount, UNLIMITED]);

const fn of_sctp(name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    flow(name, value, default, says).sim(Variants::SCTP)
}

const fn of_cmt(name: &'static str, value: Type, default: &'static str, says: &'static str) -> Key {
    flow(name, value, default, says).sim(Variants::CMT)
}

/// Reads the keys of SCTP from a flow.
pub(crate) fn sctp(
    table: &Reader<'_>,
    amount: impl Fn(&Node) -> Result<Amount, Diagnostic>,
) -> Result<SctpSpec, Diagnostic> {
    Ok(SctpSpec {
        ordered: table.read("ordered", reader::boolean)?,
        nr_sack: table.read("nr_sack", reader::boolean)?,
        sfr: table.read("sfr", reader::boolean)?,
        cuc: table.read("cuc", |node| reader::word(node, &CUC))?,
        dac: table.read("dac", reader::boolean)?,
        strict_windows: table.read("strict_windows", reader::boolean)?,
        splitting: table.read("splitting", |node| reader::word(node, &SPLITTING))?,
        rtx: table.read("rtx", |node| reader::word(node, &RTX))?,
        send_buffer: table.read("send_buffer", amount)?,
        path_max_retrans: table.read("path_max_retrans", |node| reader::whole(node, 0, 1000))?,
        heartbeat: table.read("heartbeat", reader::time)?,
        max_burst: table.read("max_burst", |node| reader::whole(node, 1, 1_000_000))?,
    })
}

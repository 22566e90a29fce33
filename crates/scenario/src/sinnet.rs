//! The options of a flow between hosts with Sinnet as it ships.

use text::Diagnostic;

use crate::schema::{Key, Type, Variants, flow, names};
use text::reader::{self, Reader};

/// What a flow says about Sinnet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinnetSpec {
    /// `inside`: what travels inside.
    pub inside: Inside,
    /// `rates`: how the hosts know what paths carry.
    pub rates: Rates,
    /// `path_congestion`: the rule of the paths' windows, by name, where it is not the usual one.
    pub path_congestion: Option<String>,
    /// `association`: whether it has one to itself.
    pub association: Association,
}

/// With whom a flow shares its association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Association {
    /// With the flows of the same ends and paths, as between two hosts.
    #[default]
    Shared,
    /// With none, as between two hosts of its own.
    Own,
}

/// What travels inside.
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

/// How hosts know what their paths carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rates {
    /// They measure: each path has a window, and the peer reports what arrives.
    #[default]
    Measured,
    /// They are told the rate of each path's slowest link, pace packets at it, and measure nothing.
    Configured,
}

const INSIDE: [(&str, Inside); 3] = [("tcp", Inside::Tcp), ("udp", Inside::Udp), ("ping", Inside::Ping)];
const ASSOCIATIONS: [(&str, Association); 2] = [("shared", Association::Shared), ("own", Association::Own)];
const RATES: [(&str, Rates); 2] = [("measured", Rates::Measured), ("configured", Rates::Configured)];

/// The rows of Sinnet.
pub(crate) const KEYS: &[Key] = &[
    flow("inside", Type::Words(|| names(&INSIDE)), "\"tcp\"", "What travels inside: a download, UDP at `rate`, or echo requests.")
        .example("\"ping\"")
        .sim(Variants::SINNET)
        .lab(Variants::SINNET),
    flow("association", Type::Words(|| names(&ASSOCIATIONS)), "\"shared\"", "Whether flows of the same ends and paths share an association, as between two hosts, or each has its own, as between as many pairs of hosts.")
        .example("\"own\"")
        .sim(Variants::SINNET),
    flow("path_congestion", Type::Text, "\"sinnet\"", "The congestion control of the paths, by name, as `congestion` of the daemon; of the TCP inside, `congestion` is that.")
        .example("\"lia\"")
        .sim(Variants::SINNET)
        .lab(Variants::SINNET),
    flow("rates", Type::Words(|| names(&RATES)), "\"measured\"", "Whether hosts measure what paths carry, as they do unless configured otherwise, or are told the rates of the links.")
        .example("\"configured\"")
        .sim(Variants::SINNET)
        .lab(Variants::SINNET),
];

/// Reads the keys of Sinnet from a flow.
pub(crate) fn sinnet(table: &Reader<'_>) -> Result<SinnetSpec, Diagnostic> {
    Ok(SinnetSpec {
        inside: table.read("inside", |node| reader::word(node, &INSIDE))?.unwrap_or_default(),
        rates: table.read("rates", |node| reader::word(node, &RATES))?.unwrap_or_default(),
        path_congestion: table.read("path_congestion", |node| reader::text(node, "\"lia\"").map(str::to_owned))?,
        association: table.read("association", |node| reader::word(node, &ASSOCIATIONS))?.unwrap_or_default(),
    })
}

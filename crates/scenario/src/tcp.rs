//! The options of a TCP connection that seldom differ from the profile's.

use clock::Duration;
use diagnostic::Diagnostic;

use crate::reader::{self, Reader};
use crate::spec::{Amount, Protocol};
use crate::tree::{Node, Value};

/// What a flow says about TCP itself; `None` leaves a setting as the profile has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSpec {
    /// `delayed_ack`: every second packet is acknowledged, or after so long; `Some(None)` for every packet.
    pub delayed_ack: Option<Option<Duration>>,
    /// `initial_window`: the first congestion window.
    pub initial_window: Option<Amount>,
    /// `ecn`: explicit congestion notification (RFC 3168).
    pub ecn: Option<bool>,
    /// `timestamps`: a round-trip sample from every acknowledgment (RFC 7323).
    pub timestamps: Option<bool>,
    /// `undo`: what tells of a needless reduction.
    pub undo: Option<UndoSpec>,
    /// `min_rto`: the least retransmission timer.
    pub min_rto: Option<Duration>,
    /// `send_jitter`: new data wait a random time up to this before they are sent.
    pub send_jitter: Option<Duration>,
    /// `header_size`: bytes of a packet that are not data, with all options; 20 to 1000.
    pub header_size: Option<u32>,
}

/// What tells a sender that a reduction of its window was needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoSpec {
    /// Nothing.
    Never,
    /// Timestamps (RFC 3522, RFC 4015).
    Eifel,
    /// Reports of duplicates (RFC 3708).
    Dsack,
}

const UNDO: [(&str, UndoSpec); 3] =
    [("never", UndoSpec::Never), ("eifel", UndoSpec::Eifel), ("dsack", UndoSpec::Dsack)];

/// The delay where a file says only `delayed_ack = true`: Linux' usual one (RFC 1122 §4.2.3.2: less than 500 ms).
const DELAY: Duration = Duration::from_millis(40);

/// Of the keys, those that SCTP has too.
const OF_SCTP: [&str; 3] = ["delayed_ack", "initial_window", "min_rto"];

/// Reads the keys of TCP from a flow.
pub(crate) fn tcp(
    table: &mut Reader<'_>,
    protocol: Protocol,
    amount: impl Fn(&Node) -> Result<Amount, Diagnostic>,
) -> Result<TcpSpec, Diagnostic> {
    let mut spec = TcpSpec::default();
    let sctp = matches!(protocol, Protocol::Sctp | Protocol::CmtSctp);
    let mut any = None;
    let mut entry = |key| {
        let entry = table.optional(key);
        if !(sctp && OF_SCTP.contains(&key)) {
            any = any.or(entry);
        }
        entry.map(|entry| &entry.node)
    };
    if let Some(node) = entry("delayed_ack") {
        spec.delayed_ack = Some(match &node.value {
            Value::Boolean(on) => on.then_some(DELAY),
            Value::String(_) => match reader::time(node)? {
                delay if delay > Duration::from_millis(500) => {
                    return Err(node.place.error("an acknowledgment waits for 500 ms at most (RFC 1122)", None));
                }
                delay => (!delay.is_zero()).then_some(delay),
            },
            other => return Err(reader::expected("true, false or a time", other, node, "delayed_ack = \"40ms\"")),
        });
    }
    spec.initial_window =
        entry("initial_window").map(amount).transpose()?.filter(|window| *window != Amount::Unlimited);
    spec.ecn = entry("ecn").map(reader::boolean).transpose()?;
    spec.timestamps = entry("timestamps").map(reader::boolean).transpose()?;
    spec.undo = entry("undo").map(|node| reader::word(node, &UNDO)).transpose()?;
    spec.min_rto = entry("min_rto").map(reader::time).transpose()?;
    spec.send_jitter = entry("send_jitter").map(reader::time).transpose()?;
    spec.header_size =
        entry("header_size").map(|node| reader::whole(node, 20, 1000)).transpose()?.map(|size| size as u32);
    match any {
        Some(entry) if !matches!(protocol, Protocol::Tcp | Protocol::Mhip | Protocol::Mptcp) => {
            Err(entry.key_place.error(format!("`{}` is for protocol = \"tcp\"", entry.key), None))
        }
        _ => Ok(spec),
    }
}

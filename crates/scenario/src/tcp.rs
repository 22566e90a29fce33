//! The options of a TCP connection that seldom differ from the profile's.

use clock::Duration;
use text::Diagnostic;

use crate::schema::{Key, Type, Variants, flow, names};
use crate::spec::Amount;
use text::reader::{self, Reader};
use text::toml::{Node, Value};

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

/// What has a TCP of its own.
const OF_TCP: Variants = Variants::TCP.or(Variants::MPTCP).or(Variants::SINNET_TCP);
/// What takes its timers from a TCP.
const LIKE_TCP: Variants = OF_TCP.or(Variants::MHIP);
/// ... and its sizes; where the daemon says what TCP inside is to hear, it is not its own in all.
const SIZED_AS_TCP: Variants = LIKE_TCP.except(Variants::SINNET_TCP);

/// The rows of TCP.
pub(crate) const KEYS: &[Key] = &[
    flow("delayed_ack", Type::Either(&[Type::Boolean, Type::Time]), "\"40ms\"; with profile \"ns2\" false; of SCTP \"200ms\"", "Every second packet is acknowledged, others after this time, at most 500 ms (RFC 1122 §4.2.3.2); true is 40 ms.")
        .example("\"100ms\"")
        .sim(OF_TCP.or(Variants::SCTP)),
    flow("initial_window", Type::Amount, "\"10p\" (RFC 6928); with profile \"ns2\" \"2p\"; of \"sinnet\" \"2048p\"; of SCTP that of RFC 3390", "The first congestion window.")
        .example("\"4p\"")
        .sim(LIKE_TCP.or(Variants::SCTP)),
    flow("ecn", Type::Boolean, "false", "Explicit congestion notification (RFC 3168).").example("true").sim(OF_TCP),
    flow("timestamps", Type::Boolean, "true; with profile \"ns2\" false", "A round-trip sample from every acknowledgment (RFC 7323).")
        .example("false")
        .sim(OF_TCP.except(Variants::SINNET_TCP).or(Variants::MHIP_1)),
    flow("undo", Type::Words(|| names(&UNDO)), "\"never\"; of \"sinnet\" and with profile \"linux\" \"eifel\"", "What tells of a needless reduction: timestamps (RFC 3522, RFC 4015), or reports of duplicates (RFC 3708).")
        .example("\"eifel\"")
        .sim(OF_TCP.or(Variants::MHIP_1)),
    flow("min_rto", Type::Time, "\"200ms\"; of SCTP \"1s\"", "The least retransmission timer.").example("\"500ms\"").sim(LIKE_TCP.or(Variants::SCTP)),
    flow("send_jitter", Type::Time, "\"0s\"; with profile \"ns2\" and several flows 2 ms or less", "New data wait a random time up to this before they are sent.")
        .example("\"1ms\"")
        .sim(SIZED_AS_TCP),
    flow("header_size", Type::Whole(20, 1000), "40", "Bytes of a packet that are not data, with all options.")
        .example("60")
        .sim(SIZED_AS_TCP),
];

/// Reads the keys of TCP from a flow.
pub(crate) fn tcp(
    table: &Reader<'_>,
    amount: impl Fn(&Node) -> Result<Amount, Diagnostic>,
) -> Result<TcpSpec, Diagnostic> {
    Ok(TcpSpec {
        delayed_ack: table.read("delayed_ack", delayed_ack)?,
        initial_window: table.read("initial_window", amount)?.filter(|window| *window != Amount::Unlimited),
        ecn: table.read("ecn", reader::boolean)?,
        timestamps: table.read("timestamps", reader::boolean)?,
        undo: table.read("undo", |node| reader::word(node, &UNDO))?,
        min_rto: table.read("min_rto", reader::time)?,
        send_jitter: table.read("send_jitter", reader::time)?,
        header_size: table.read("header_size", |node| reader::whole(node, 20, 1000))?,
    })
}

/// For how long, if at all, an acknowledgment waits for a second packet.
fn delayed_ack(node: &Node) -> Result<Option<Duration>, Diagnostic> {
    match &node.value {
        Value::Boolean(on) => Ok(on.then_some(DELAY)),
        Value::String(_) => match reader::time(node)? {
            delay if delay > Duration::from_millis(500) => {
                Err(node.place.error("an acknowledgment waits for 500 ms at most (RFC 1122)", None))
            }
            delay => Ok((!delay.is_zero()).then_some(delay)),
        },
        other => Err(reader::expected("true, false or a time", other, node, "delayed_ack = \"40ms\"")),
    }
}

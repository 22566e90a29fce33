//! The options of a flow of Multipath TCP.

use text::Diagnostic;

use crate::schema::{Key, Type, Variants, flow};
use text::reader::{self, Reader};

/// The rows of MPTCP.
pub(crate) const KEYS: &[Key] = &[flow(
    "opportunistic",
    Type::Boolean,
    "false",
    "Opportunistic retransmission with penalisation, where the receive window is full.",
)
.example("true")
.sim(Variants::MPTCP)];

/// What a flow says about MPTCP; `None` leaves a setting as the protocol has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpSpec {
    /// `opportunistic`: opportunistic retransmission with penalisation.
    pub opportunistic: Option<bool>,
}

/// Reads the keys of MPTCP from a flow.
pub(crate) fn mptcp(table: &Reader<'_>) -> Result<MptcpSpec, Diagnostic> {
    Ok(MptcpSpec { opportunistic: table.read("opportunistic", reader::boolean)? })
}

//! The options of a flow of Multipath TCP.

use diagnostic::Diagnostic;

use crate::reader::{self, Reader};
use crate::spec::Protocol;

/// What a flow says about MPTCP; `None` leaves a setting as the protocol has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpSpec {
    /// `opportunistic`: opportunistic retransmission with penalisation.
    pub opportunistic: Option<bool>,
}

/// Reads the keys of MPTCP from a flow.
pub(crate) fn mptcp(table: &mut Reader<'_>, protocol: Protocol) -> Result<MptcpSpec, Diagnostic> {
    match table.optional("opportunistic") {
        Some(entry) if protocol != Protocol::Mptcp => {
            Err(entry.key_place.error("`opportunistic` is for protocol = \"mptcp\"", None))
        }
        entry => Ok(MptcpSpec { opportunistic: entry.map(|entry| reader::boolean(&entry.node)).transpose()? }),
    }
}

//! SCTP packets in captures: common header and one chunk, RFC 9260 §3. The payload, all zeros, is there:
//! Wireshark reads no chunk that is cut.

/// The chunk of a packet. TSNs are those of the simulator, the first DATA chunk's is 1.
#[derive(Clone, Copy, Debug)]
pub enum Chunk<'a> {
    /// DATA.
    Data {
        /// Its transmission sequence number.
        tsn: u32,
        /// Bytes of payload, all zeros.
        payload: u16,
    },
    /// SACK or, with what is said of its gaps not to be taken back, NR-SACK (draft-natarajan-tsvwg-sctp-nrsack).
    Sack {
        /// The first TSN that is missing.
        next: u32,
        /// Bytes that the receiver has room for.
        window: u32,
        /// What arrived beyond: `left..right` in TSNs.
        gaps: &'a [(u32, u32)],
        /// It is an NR-SACK.
        non_renegable: bool,
    },
    /// HEARTBEAT, and what opens an association in the simulator.
    Heartbeat,
    /// The answer to it.
    HeartbeatAck,
}

/// Bytes of the information that a heartbeat carries.
const INFORMATION: u16 = 40;

/// Appends the packet to `out`.
pub(crate) fn write(out: &mut Vec<u8>, source: u16, destination: u16, chunk: &Chunk<'_>) {
    let start = out.len();
    out.extend_from_slice(&source.to_be_bytes());
    out.extend_from_slice(&destination.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes()); // Verification tag.
    out.extend_from_slice(&[0; 4]);
    let mut head = |kind: u8, flags: u8, length: u16| {
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&length.to_be_bytes());
    };
    match *chunk {
        Chunk::Data { tsn, payload } => {
            // Begin and end of a message in one chunk; unordered, so that stream sequence numbers say nothing.
            head(0, 0b111, 16 + payload);
            out.extend_from_slice(&tsn.to_be_bytes());
            out.extend_from_slice(&[0; 8]);
            let padded = usize::from(payload.next_multiple_of(4));
            out.resize(out.len() + padded, 0);
        }
        Chunk::Sack { next, window, gaps, non_renegable } => {
            let (kind, fixed) = if non_renegable { (16, 20) } else { (3, 16) };
            head(kind, 0, fixed + 4 * gaps.len() as u16);
            out.extend_from_slice(&next.wrapping_sub(1).to_be_bytes());
            out.extend_from_slice(&window.to_be_bytes());
            let count = (gaps.len() as u16).to_be_bytes();
            if non_renegable {
                out.extend_from_slice(&[0, 0, count[0], count[1], 0, 0, 0, 0]);
            } else {
                out.extend_from_slice(&[count[0], count[1], 0, 0]);
            }
            for (left, right) in gaps {
                // Offsets from the cumulative TSN, the last one of a block included.
                for tsn in [left.wrapping_add(1), *right] {
                    out.extend_from_slice(&(tsn.wrapping_sub(next) as u16).to_be_bytes());
                }
            }
        }
        Chunk::Heartbeat | Chunk::HeartbeatAck => {
            head(if matches!(chunk, Chunk::Heartbeat) { 4 } else { 5 }, 0, 4 + INFORMATION);
            out.extend_from_slice(&1u16.to_be_bytes());
            out.extend_from_slice(&INFORMATION.to_be_bytes());
            out.extend_from_slice(&[0; INFORMATION as usize - 4]);
        }
    }
    let sum = crc32c::crc32c(out.get(start..).unwrap_or_default());
    // RFC 9260 appendix A: the checksum is the one field in the order of little ends.
    if let Some(field) = out.get_mut(start + 8..start + 12) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}

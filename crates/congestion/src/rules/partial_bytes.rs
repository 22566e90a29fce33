//! SCTP's way to grow by one packet a window: `partial_bytes_acked` of RFC 9260 §7.2.2, for the rules that have it.

use smallvec::SmallVec;

use crate::group::Path;

/// The counter of every path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialBytes {
    counts: SmallVec<[f64; 2]>,
}

impl PartialBytes {
    pub(crate) fn path_added(&mut self) {
        self.counts.push(0.0);
    }

    /// Slow start and losses begin anew.
    pub(crate) fn clear(&mut self, index: usize) {
        self.counts[index] = 0.0;
    }

    /// Counts `acked` bytes on a path whose window was in full use. True once a window's worth has come together.
    pub(crate) fn count(&mut self, index: usize, path: &Path, acked: f64) -> bool {
        let count = &mut self.counts[index];
        *count += acked;
        let full = *count >= path.cwnd;
        if full {
            *count -= path.cwnd; // The window before it grows: RFC 9260 §7.2.2, ALGORITHMS §13 A6.
        }
        if full && acked >= path.flight {
            // All that was sent is acknowledged. But a window of less than two packets is in full use by one, and if each
            // acknowledgment cleared the count, it would never grow again.
            *count = 0.0;
        }
        full
    }

    /// Counts `acked` bytes on a path whose window was not in full use: up to one window, RFC 9260 §7.2.2.
    pub(crate) fn count_unused(&mut self, index: usize, path: &Path, acked: f64) {
        let count = &mut self.counts[index];
        let idle = acked >= path.flight;
        *count = if idle || path.cwnd <= path.ssthresh { 0.0 } else { (*count + acked).min(path.cwnd) };
    }
}

//! Loss recovery without selective acknowledgments: RFC 5681 §3.2 and RFC 6582, with the limited transmit of RFC 3042.
//!
//! The window of the congestion control is not touched by duplicate acknowledgments: what they add to it is kept here
//! as the *inflation*, in bytes, and what may be outstanding is the sum.

/// Which of the two recoveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// Reno: the first acknowledgment of new data ends recovery (RFC 5681 §3.2).
    EndsRecovery,
    /// New Reno: only one of all that was outstanding does; others tell of the next hole (RFC 6582).
    NextHole,
}

/// What a duplicate acknowledgment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// One new packet, outside of the window (RFC 3042).
    LimitedTransmit,
    /// The first unacknowledged packet, and a reduction of the window.
    FastRetransmit,
    /// Whatever the window allows, now that it is inflated.
    Inflate,
    /// Nothing.
    Nothing,
}

/// What an acknowledgment of new data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was no recovery.
    Ordinary,
    /// Recovery is over.
    Full,
    /// The next packet is lost, too: it is to be sent at once. The window falls by `deficit` bytes, by which the
    /// amount acknowledged exceeds the inflation.
    Partial {
        /// Bytes to take from the window.
        deficit: u64,
        /// The first partial acknowledgment of a recovery restarts the timer, later ones do not: the "impatient" form
        /// of RFC 6582 §4.
        restart_timer: bool,
    },
}

/// The state of the recovery.
#[derive(Clone, Debug)]
pub struct NewRenoRecovery {
    partial: Partial,
    dupacks: u32,
    in_recovery: bool,
    seen_partial: bool,
    /// Everything before must be acknowledged before a recovery ends, and before another one begins.
    recover: u64,
    inflation: u64,
}

impl NewRenoRecovery {
    /// At the start of a connection.
    pub fn new(partial: Partial) -> Self {
        Self { partial, dupacks: 0, in_recovery: false, seen_partial: false, recover: 0, inflation: 0 }
    }

    /// Consecutive duplicate acknowledgments so far.
    #[inline]
    pub fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// Whether a recovery is under way.
    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// Bytes that duplicate acknowledgments add to the window.
    #[inline]
    pub fn inflation(&self) -> u64 {
        self.inflation
    }

    /// A duplicate acknowledgment of all before `una`, with all before `next` sent.
    pub fn on_duplicate(&mut self, una: u64, next: u64, dupthresh: u32, mss: u64) -> Duplicate {
        self.dupacks = self.dupacks.saturating_add(1);
        if self.in_recovery {
            self.inflation += mss; // RFC 5681 §3.2 step 4
            return Duplicate::Inflate;
        }
        if self.dupacks < dupthresh {
            return Duplicate::LimitedTransmit;
        }
        // RFC 6582 §3.2 step 1: not again for holes of a window that was recovered, or timed out, already.
        if self.dupacks == dupthresh && una > self.recover {
            self.in_recovery = true;
            self.seen_partial = false;
            self.recover = next;
            self.inflation = u64::from(dupthresh) * mss; // RFC 5681 §3.2 step 3
            return Duplicate::FastRetransmit;
        }
        Duplicate::Nothing
    }

    /// An acknowledgment of `acked` bytes of new data, up to `una`.
    #[inline]
    pub fn on_progress(&mut self, una: u64, acked: u64, mss: u64) -> Progress {
        if !self.in_recovery {
            self.dupacks = 0;
            return Progress::Ordinary;
        }
        if una >= self.recover || self.partial == Partial::EndsRecovery {
            self.dupacks = 0;
            self.in_recovery = false;
            self.inflation = 0;
            return Progress::Full;
        }
        // RFC 6582 §3.2 step 3: the window falls by what was acknowledged, and rises by one packet.
        let deficit = acked.saturating_sub(self.inflation);
        self.inflation = if self.inflation > acked { self.inflation - acked + mss } else { mss };
        Progress::Partial { deficit, restart_timer: !std::mem::replace(&mut self.seen_partial, true) }
    }

    /// The retransmission timer ran out, with all before `next` sent.
    pub fn on_timeout(&mut self, next: u64) {
        // RFC 6582 §4.
        self.dupacks = 0;
        self.in_recovery = false;
        self.inflation = 0;
        self.recover = next;
    }

    /// The recovery under way was an error.
    pub fn on_spurious(&mut self) {
        self.dupacks = 0;
        self.in_recovery = false;
        self.inflation = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors reno.3 and reno.4 of `vectors/algorithms/vectors.json`.
    #[test]
    fn reno_3_and_4() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let vector = |id: &str| all["vectors"].as_array().unwrap().iter().find(|v| v["id"] == id).unwrap().clone();
        let third = vector("reno.3");
        let mss = third["input"]["mss"].as_u64().unwrap();
        let ssthresh = third["output"]["ssthresh"].as_u64().unwrap();
        let mut recovery = NewRenoRecovery::new(Partial::NextHole);
        assert_eq!(recovery.on_duplicate(1, 50, 3, mss), Duplicate::LimitedTransmit);
        assert_eq!(recovery.on_duplicate(1, 50, 3, mss), Duplicate::LimitedTransmit);
        assert_eq!(recovery.on_duplicate(1, 50, 3, mss), Duplicate::FastRetransmit);
        assert_eq!(ssthresh + recovery.inflation(), third["output"]["cwnd_inflated"].as_u64().unwrap());
        let partial = vector("reno.4");
        assert_eq!(ssthresh + recovery.inflation(), partial["input"]["cwnd"].as_u64().unwrap());
        let progress = recovery.on_progress(3, partial["input"]["acked"].as_u64().unwrap(), mss);
        assert_eq!(progress, Progress::Partial { deficit: 0, restart_timer: true });
        assert_eq!(ssthresh + recovery.inflation(), partial["output"]["cwnd"].as_u64().unwrap());
        // A second partial acknowledgment does not restart the timer, and the last one ends recovery.
        assert!(matches!(recovery.on_progress(4, mss, mss), Progress::Partial { restart_timer: false, .. }));
        assert_eq!(recovery.on_progress(50, 46 * mss, mss), Progress::Full);
        assert_eq!(recovery.on_progress(51, mss, mss), Progress::Ordinary);
    }

    #[test]
    fn a_window_is_recovered_once() {
        let mut recovery = NewRenoRecovery::new(Partial::NextHole);
        recovery.on_timeout(50);
        for una in [10, 50] {
            for _ in 0..5 {
                assert_ne!(recovery.on_duplicate(una, 60, 3, 1), Duplicate::FastRetransmit);
            }
            recovery.on_progress(una + 1, 1, 1);
        }
        for _ in 0..2 {
            recovery.on_duplicate(51, 60, 3, 1);
        }
        assert_eq!(recovery.on_duplicate(51, 60, 3, 1), Duplicate::FastRetransmit);
    }
}

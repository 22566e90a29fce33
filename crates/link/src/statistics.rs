//! What a link has done so far.

use clock::Duration;

use crate::DropReason;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Counters of one direction of a link. At any time `offered` = `delivered` + all `dropped` + what is inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStatistics {
    /// Everything that was offered.
    pub offered: Count,
    /// What the transmitter has sent to the end, lost or not.
    pub sent: Count,
    /// What has been taken out at the far end.
    pub delivered: Count,
    /// Refused because the queue was full.
    pub dropped_full: Count,
    /// Dropped by the queue's discipline before the queue was full.
    pub dropped_early: Count,
    /// Lost after it was sent.
    pub dropped_loss: Count,
    /// Offered, waiting or being sent while the link was down.
    pub dropped_outage: Count,
    /// Larger than the link takes.
    pub dropped_too_big: Count,
    /// Marked by the queue's discipline instead of dropped, counted when they leave the queue.
    pub marked: Count,
    /// Time the transmitter was busy with the packets in `sent`.
    pub busy: Duration,
    /// Most packets that waited at once, without the one being sent.
    pub most_waiting: u32,
}

impl LinkStatistics {
    /// All drops together.
    pub fn dropped(&self) -> Count {
        let all = [self.dropped_full, self.dropped_early, self.dropped_loss, self.dropped_outage, self.dropped_too_big];
        all.iter().fold(Count::default(), |sum, count| Count {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason, bytes: u32) {
        match reason {
            DropReason::QueueFull => self.dropped_full.add(bytes),
            DropReason::Early => self.dropped_early.add(bytes),
            DropReason::Loss => self.dropped_loss.add(bytes),
            DropReason::Outage => self.dropped_outage.add(bytes),
            DropReason::TooBig => self.dropped_too_big.add(bytes),
        }
    }
}

//! What can be told about a sender.

use crate::packet::QueuedPacket;
use crate::path::{PathStatistics, SenderPath};
use crate::sender::Sender;
use clock::{Duration, Instant};
use scheduler::PathId;

/// A snapshot of the send buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BufferStatus {
    /// Packets that wait.
    pub packets: usize,
    /// Bytes that wait to be sent for the first time.
    pub bytes: usize,
    /// How long the packet that left last had waited.
    pub sojourn: Duration,
    /// Packets dropped because programs sent more than the paths carry.
    pub dropped: u64,
    /// Packets marked in place of that, for flows that understand it.
    pub marked: u64,
    /// Of the time of the association, the part in which packets waited.
    pub paths_bind: f64,
}

impl<P> Sender<P> {
    /// The smoothed round-trip time of a path by reports.
    pub fn srtt(&self, id: PathId) -> Option<Duration> {
        self.any_path(id)?.control.as_ref()?.sent.rtt().srtt()
    }

    /// When the peer's reports have told last that something had arrived on a path; what TCP acknowledges inside may have come on
    /// another.
    pub fn delivered_at(&self, id: PathId) -> Option<Instant> {
        let control = self.any_path(id)?.control.as_ref()?;
        (!control.is_snooped).then(|| control.sent.reported_at())
    }

    /// Bytes in flight on a path.
    pub fn in_flight(&self, id: PathId) -> usize {
        self.any_path(id).and_then(|path| path.control.as_ref()).map_or(0, |control| control.sent.in_flight())
    }

    /// Bytes in the queue of a path of configured rate.
    pub fn queued(&self, id: PathId) -> usize {
        self.any_path(id).map_or(0, |path| path.pacer.queued())
    }

    /// What reports have told of a path.
    pub fn path_statistics(&self, id: PathId) -> Option<PathStatistics> {
        let control = self.any_path(id)?.control.as_ref()?;
        let (reductions, undone) = self.windows.reductions(control.slot);
        Some(PathStatistics {
            delivery_rate: control.sent.rate(),
            cwnd: self.windows.window(control.slot),
            ssthresh: self.windows.threshold(control.slot),
            in_flight: control.sent.in_flight(),
            remembered: control.sent.remembered(),
            sharers: self.windows.sharers(control.slot),
            rests: self.windows.rests(control.slot),
            reductions,
            undone,
            rttvar: control.sent.rtt().rttvar(),
            counts: *control.sent.counts(),
        })
    }

    /// A snapshot of the send buffer.
    pub fn buffer_status(&self) -> BufferStatus {
        BufferStatus {
            packets: self.buffer.packets() + self.again.len(),
            bytes: self.buffer.bytes(),
            sojourn: self.buffer.sojourn(),
            dropped: self.buffer.dropped(),
            marked: self.buffer.marked(),
            paths_bind: self.binding.of_paths(),
        }
    }

    /// The name of the rule by which windows grow and shrink.
    pub fn rule(&self) -> &'static str {
        self.windows.rule()
    }

    /// The name of the scheduler.
    pub fn scheduler(&self) -> &'static str {
        self.scheduler.name()
    }

    /// Segments of TCPs that are followed, where that is how it knows what has arrived.
    pub fn snooped_segments(&self) -> usize {
        self.snooping.segments()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        let paths = self.paths.iter().chain(&self.successors).chain(&self.retired);
        let paths: usize = paths.map(SenderPath::memory).sum();
        let again = self.again.len().saturating_mul(size_of::<QueuedPacket<P>>()).saturating_add(self.again_bytes);
        let tables = [self.numbers.memory(), self.reach.memory(), self.snooping.memory()];
        let all = [paths, self.buffer.memory(), again].into_iter().chain(tables);
        all.fold(0, usize::saturating_add)
    }
}

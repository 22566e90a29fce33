//! First in, first out, and what comes to a full queue is refused.

use clock::Instant;

use crate::fifo::Fifo;
use crate::reference::Reference;
use crate::{Cause, Dropped, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "drop-tail",
    rule: "one queue in order of arrival; what comes to a full one is dropped. The packet that is being sent does \
           not count",
    source: "ns-2 drop-tail.cc, whose queue-limit is one more",
};

/// A drop-tail queue.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    fifo: Fifo<P>,
    packets: u32,
    bytes: u64,
}

impl<P> DropTail<P> {
    /// A queue of so many packets, and so many bytes, at most.
    pub fn new(packets: u32, bytes: u64) -> Self {
        Self { fifo: Fifo::default(), packets, bytes }
    }
}

impl<P> QueueDiscipline<P> for DropTail<P> {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        _: u64,
        transmitter: Transmitter,
        _: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        let has_room = self.fifo.packets() < self.packets as usize
            && self.fifo.bytes().saturating_add(packet.bytes.into()) <= self.bytes;
        if !has_room && !transmitter.is_idle {
            return Err(Dropped { packet, cause: Cause::Full });
        }
        self.fifo.push(packet);
        Ok(())
    }

    #[inline]
    fn ignores_idle(&self) -> bool {
        true
    }

    #[inline]
    fn dequeue(&mut self, _: Instant, _: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        self.fifo.pop()
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn clear(&mut self, _: Instant, drop: &mut impl FnMut(Queued<P>)) {
        self.fifo.clear(drop);
    }
}

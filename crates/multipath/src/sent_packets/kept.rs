//! What may have to be sent again, apart from the records of what was sent: far more of those are remembered than packets are in
//! flight, and they are looked at one after the other.

use crate::packet::QueuedPacket;

/// Room for fewer packets than this is not given back.
const LEAST_ROOM: usize = 256;

/// Packets, each at a place of its own. Places are used again, the last that became free first.
#[derive(Clone, Debug)]
pub(super) struct Kept<P> {
    places: Vec<Option<QueuedPacket<P>>>,
    free: Vec<u32>,
    bytes: usize,
}

impl<P> Default for Kept<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), bytes: 0 }
    }
}

impl<P> Kept<P> {
    /// Keeps a packet; its place.
    pub(super) fn put(&mut self, packet: QueuedPacket<P>) -> u32 {
        self.bytes += packet.len();
        if let Some(place) = self.free.pop()
            && let Some(slot) = self.places.get_mut(place as usize)
        {
            *slot = Some(packet);
            return place;
        }
        self.places.push(Some(packet));
        (self.places.len() - 1) as u32
    }

    /// The packet at a place.
    pub(super) fn get(&self, place: u32) -> Option<&QueuedPacket<P>> {
        self.places.get(place as usize)?.as_ref()
    }

    /// Takes the packet at a place, which becomes free.
    pub(super) fn take(&mut self, place: u32) -> Option<QueuedPacket<P>> {
        let packet = self.places.get_mut(place as usize)?.take()?;
        self.bytes -= packet.len();
        self.free.push(place);
        // A burst does not take its room for ever.
        if self.free.len() == self.places.len() && self.places.len() > LEAST_ROOM {
            *self = Self::default();
        }
        Some(packet)
    }

    /// Bytes that the packets take, those of a place for each included: small ones take little else.
    pub(super) fn held(&self) -> usize {
        (self.places.len() - self.free.len()) * size_of::<Option<QueuedPacket<P>>>() + self.bytes
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let (places, free) = (size_of::<Option<QueuedPacket<P>>>(), size_of::<u32>());
        self.places.len().saturating_mul(places).saturating_add(self.free.len().saturating_mul(free)) + self.bytes
    }
}

//! What travels between two endpoints of the laboratory: small plain values.

use clock::Instant;

use crate::sctp::{Report, Reports};

/// No [`Blocks`] belong to a packet.
pub const NO_BLOCKS: u32 = u32::MAX;

/// A packet as links and endpoints hand it on: 32 bytes, copied, never allocated.
///
/// Positions count packets, not bytes: position 0 is the SYN, position *n* the *n*-th packet of data. A packet carries
/// the low 32 bits; [`expand`] restores the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was sent; on an acknowledgment, the time of the packet that it answers (RFC 7323 §4.3).
    pub time: Instant,
    /// The flow that it belongs to.
    pub flow: u32,
    /// Where on its way it is: for whoever carries it, not for endpoints.
    pub hop: u32,
    /// The packet's position; on an acknowledgment, that of the first one missing.
    pub position: u32,
    /// On an acknowledgment, the number of its [`Blocks`], or [`NO_BLOCKS`]. On data of a connection with several sequences
    /// of packets, their place among all its data: the low 32 bits.
    pub blocks: u32,
    /// Size on the wire in bytes, with all headers.
    pub bytes: u32,
    /// Kind and marks.
    pub flags: Flags,
    /// Which of its flow's paths it travels on; an acknowledgment returns on that of the packet that it answers.
    pub path: u8,
}

impl Packet {
    /// The number of the blocks that it has in the pool, or [`NO_BLOCKS`]: data have none.
    #[inline]
    pub fn pooled(&self) -> u32 {
        if self.flags.has(Flags::ACK) { self.blocks } else { NO_BLOCKS }
    }
}

/// The bits of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// An acknowledgment without data.
    pub const ACK: Self = Self(1);
    /// Data sent before.
    pub const RETRANSMISSION: Self = Self(2);
    /// The endpoints understand marks (RFC 3168 ECT).
    pub const ECN_CAPABLE: Self = Self(4);
    /// A queue marked the packet (RFC 3168 CE).
    pub const MARKED: Self = Self(8);
    /// The receiver has seen a mark (RFC 3168 ECE).
    pub const ECHO: Self = Self(16);
    /// The sender has reduced its window (RFC 3168 CWR).
    pub const REDUCED: Self = Self(32);
    /// The packet that is acknowledged had arrived before (RFC 2883).
    pub const DUPLICATE: Self = Self(64);
    /// The packet that is acknowledged was not kept: the receiver had no room for it.
    pub const REFUSED: Self = Self(128);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` set too.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// With the bits of `other` if `condition`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { self.with(other) } else { self }
    }
}

/// The full position whose low 32 bits are `low`, of those within 2³¹ of `near`. Below zero there are none.
#[inline]
pub fn expand(low: u32, near: u64) -> u64 {
    let distance = i64::from(low.wrapping_sub(near as u32).cast_signed());
    near.saturating_add_signed(distance)
}

/// Blocks of selective acknowledgment (RFC 2018): `left..right` in packets, the low 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// How many of `blocks` there are.
    count: u8,
    /// Whether `trigger` says anything.
    smart: bool,
    trigger: u32,
    /// The first place missing among the data of the whole connection, the low 32 bits (RFC 8684 §3.3.2).
    data: u32,
    /// The blocks, the most recent first.
    blocks: [(u32, u32); recovery::MAX_BLOCKS],
}

impl Blocks {
    /// The first `count` of `blocks`.
    pub fn new(count: u8, blocks: [(u32, u32); recovery::MAX_BLOCKS]) -> Self {
        Self { count, blocks, ..Self::default() }
    }

    /// With the packet that triggered the acknowledgment (S. Keshav and S. P. Morgan, *SMART retransmission:
    /// performance with overload and random losses*, INFOCOM 1997).
    #[must_use]
    pub fn with_trigger(self, trigger: Option<u32>) -> Self {
        Self { smart: trigger.is_some(), trigger: trigger.unwrap_or(0), ..self }
    }

    /// The packet that triggered the acknowledgment, if it says so.
    pub fn trigger(&self) -> Option<u32> {
        self.smart.then_some(self.trigger)
    }

    /// The data acknowledgment of a connection with several sequences of packets, the low 32 bits.
    #[inline]
    pub fn data(&self) -> u32 {
        self.data
    }

    /// Those there are.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }
}

/// The blocks of the acknowledgments under way. Few packets carry any, so they are kept beside the packets; places are
/// used again, and nothing is allocated once there are as many as are ever under way at once.
#[derive(Clone, Debug, Default)]
pub struct BlockPool {
    slots: Vec<Blocks>,
    free: Vec<u32>,
    /// Those of SCTP, which say more.
    reports: Reports,
}

impl BlockPool {
    /// A report of SCTP to fill in, and its number.
    pub(crate) fn report(&mut self) -> (u32, &mut Report) {
        self.reports.put()
    }

    /// The report of a packet under way, if it has one.
    pub fn get_report(&self, number: u32) -> Option<&Report> {
        self.reports.get(number)
    }

    /// Keeps `blocks` and returns their number.
    pub fn put(&mut self, blocks: Blocks) -> u32 {
        if let Some(number) = self.free.pop() {
            if let Some(slot) = self.slots.get_mut(number as usize) {
                *slot = blocks;
            }
            return number;
        }
        self.slots.push(blocks);
        u32::try_from(self.slots.len() - 1).unwrap_or(NO_BLOCKS)
    }

    /// Keeps a data acknowledgment with the blocks of `number`, or alone if that is [`NO_BLOCKS`], and returns the number.
    #[inline]
    pub(crate) fn put_data(&mut self, number: u32, data: u32) -> u32 {
        match self.slots.get_mut(number as usize) {
            Some(slot) => {
                slot.data = data;
                number
            }
            None => self.put(Blocks { data, ..Blocks::default() }),
        }
    }

    /// The blocks of a packet under way; none for [`NO_BLOCKS`].
    #[inline]
    pub fn get(&self, number: u32) -> &[(u32, u32)] {
        if let Some(report) = self.reports.get(number) {
            return &report.gaps;
        }
        self.slots.get(number as usize).map_or(&[], Blocks::as_slice)
    }

    /// Takes the blocks of a packet that has arrived, or was dropped; none for [`NO_BLOCKS`].
    #[inline]
    pub fn take(&mut self, number: u32) -> Blocks {
        if number == NO_BLOCKS {
            return Blocks::default();
        }
        if Reports::owns(number) {
            self.reports.release(number);
            return Blocks::default();
        }
        self.free.push(number);
        self.slots.get(number as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_is_small() {
        assert!(size_of::<Packet>() <= 32);
    }

    proptest! {
        #[test]
        fn positions_survive_the_cut_to_32_bits(near in 0u64..1 << 40, distance in -0x7fff_ffff_i64..0x7fff_ffff) {
            if let Some(position) = near.checked_add_signed(distance) {
                prop_assert_eq!(expand(position as u32, near), position);
            }
        }
    }
}

//! What a SACK says beside its cumulative acknowledgment.

/// Most gap blocks that fit a packet of 1500 bytes beside IPv4 header, common header and the NR-SACK chunk: 4 bytes each.
pub const MAX_GAPS: usize = 363;

/// A SACK or NR-SACK (RFC 9260 §3.3.4; P. Natarajan and others, *Non-renegable selective acknowledgments for SCTP*, ICNP
/// 2008), or the answer to a heartbeat, which says the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What arrived beyond the cumulative acknowledgment: `left..right`, ascending, the low 32 bits of TSNs.
    pub gaps: Vec<(u32, u32)>,
    /// What is in `gaps` is delivered to the application: the receiver cannot take it back, the sender may forget it.
    pub delivered: bool,
    /// Data packets since the last SACK (DAC).
    pub packets: u8,
    /// Bytes that the receiver has room for.
    pub window: u64,
    /// It answers a heartbeat, or the INIT.
    pub heartbeat: bool,
}

/// The reports under way; places are used again, so nothing is allocated in the steady state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    slots: Vec<Report>,
    free: Vec<u32>,
}

/// Numbers of reports have this bit, numbers of blocks do not.
const MARK: u32 = 1 << 31;

impl Reports {
    /// Whether `number` is a report's.
    #[inline]
    pub(crate) fn owns(number: u32) -> bool {
        number & MARK != 0 && number != crate::packet::NO_BLOCKS
    }

    /// A report to fill in, with its number. Its gaps are empty.
    pub(crate) fn put(&mut self) -> (u32, &mut Report) {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                self.slots.push(Report::default());
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        slot.gaps.clear();
        (index as u32 | MARK, slot)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Report> {
        if Self::owns(number) { self.slots.get((number & !MARK) as usize) } else { None }
    }

    /// It has been read; its place is free.
    pub(crate) fn release(&mut self, number: u32) {
        if Self::owns(number) && ((number & !MARK) as usize) < self.slots.len() {
            self.free.push(number & !MARK);
        }
    }
}

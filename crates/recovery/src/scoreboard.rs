//! The sender's scoreboard of selective acknowledgments: RFC 6675, in packets.
//!
//! All packets are counted alike (every one but the last of a transfer is full-sized), so that RFC 6675's two tests of
//! `IsLost`, DupThresh discontiguous sequences or more than (DupThresh − 1)·SMSS bytes above, become one: DupThresh
//! packets above. The lost ones are then all that are neither acknowledged nor selectively acknowledged below one
//! position, the *lost edge*, which only moves upward; so `pipe` is kept as counters, and nothing is walked twice.

use crate::bit_ring::BitRing;

/// What is known of the packets from `una` on. Positions are packet numbers.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    una: u64,
    /// One beyond the highest packet selectively acknowledged.
    high: u64,
    /// Everything below that is not selectively acknowledged is lost.
    lost_edge: u64,
    /// No lost packet below this one still waits for its retransmission.
    next_hole: u64,
    sacked: BitRing,
    retransmitted: BitRing,
    /// Counts of packets at or above `una`: selectively acknowledged; lost; retransmitted and not acknowledged since.
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sacked: u64,
    lost: u64,
    retransmitted: u64,
}

impl Scoreboard {
    /// True when nothing but `una` is known: no selective acknowledgment, no loss, no retransmission outstanding.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.counts.sacked == 0 && self.counts.lost == 0 && self.counts.retransmitted == 0
    }

    /// Packets above the cumulative acknowledgment that are selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.counts.sacked
    }

    /// Packets deemed lost (RFC 6675 `IsLost`), whether or not they were retransmitted.
    pub fn lost(&self) -> u64 {
        self.counts.lost
    }

    /// One beyond the highest packet that is selectively acknowledged; not above `una` if there is none.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Whether `packet` is selectively acknowledged.
    pub fn is_sacked(&self, packet: u64) -> bool {
        packet >= self.una && packet < self.high && self.sacked.get(packet)
    }

    /// Whether `packet` was retransmitted since the last [`Scoreboard::forget_retransmissions`].
    pub fn is_retransmitted(&self, packet: u64) -> bool {
        packet >= self.una && self.counts.retransmitted > 0 && self.retransmitted.get(packet)
    }

    /// RFC 6675 §4 `SetPipe`: packets in the network, of those sent below `next`.
    #[inline]
    pub fn pipe(&self, next: u64) -> u64 {
        let outstanding = next.saturating_sub(self.una);
        (outstanding + self.counts.retransmitted).saturating_sub(self.counts.sacked + self.counts.lost)
    }

    /// The cumulative acknowledgment moved to `una`. Returns how many of the packets it covers had been selectively
    /// acknowledged before.
    #[inline]
    pub fn advance(&mut self, una: u64) -> u64 {
        if una <= self.una {
            return 0;
        }
        let from = std::mem::replace(&mut self.una, una);
        if self.is_clear() {
            self.next_hole = self.next_hole.max(una);
            return 0;
        }
        let lost_upto = self.lost_edge.min(una);
        if lost_upto > from {
            let sacked_below = self.sacked.count(from, lost_upto);
            self.counts.lost -= (lost_upto - from) - sacked_below;
        }
        let sacked = if self.high > from { self.sacked.clear_range(from, una.min(self.high)) } else { 0 };
        self.counts.sacked -= sacked;
        if self.counts.retransmitted > 0 {
            self.counts.retransmitted -= self.retransmitted.clear_range(from, una);
        }
        self.next_hole = self.next_hole.max(una);
        sacked
    }

    /// A block of selective acknowledgment, `left..right`, of packets sent below `next`. Returns how many packets are
    /// newly acknowledged by it. What lies outside of what is outstanding is ignored.
    pub fn sack(&mut self, left: u64, right: u64, next: u64) -> u64 {
        let (left, right) = (left.max(self.una), right.min(next));
        if left >= right {
            return 0;
        }
        self.sacked.reserve(self.una, next);
        if self.counts.lost > 0 && left < self.lost_edge {
            let below = right.min(self.lost_edge);
            self.counts.lost -= (below - left) - self.sacked.count(left, below);
        }
        let new = self.sacked.set_range(left, right);
        self.counts.sacked += new;
        if new > 0 && self.counts.retransmitted > 0 {
            self.counts.retransmitted -= self.retransmitted.clear_range(left, right);
        }
        self.high = self.high.max(right);
        new
    }

    /// RFC 6675 §4 `IsLost` for all packets at once: those with `dupthresh` packets above them selectively
    /// acknowledged. Returns how many are newly lost.
    pub fn detect(&mut self, dupthresh: u64) -> u64 {
        if self.counts.sacked < dupthresh {
            return 0;
        }
        let edge = self.sacked.nth_from_top(self.una, self.high, dupthresh).unwrap_or(self.una);
        self.move_lost_edge(edge)
    }

    /// All that is outstanding below `next` and not selectively acknowledged is lost, retransmissions too: what a
    /// retransmission timeout means (RFC 6675 §5.1).
    pub fn all_lost(&mut self, next: u64) {
        self.forget_retransmissions(next);
        self.sacked.reserve(self.una, next);
        self.move_lost_edge(next);
        self.next_hole = self.una;
    }

    /// RFC 6675 §4 `NextSeg` rule (1): the first lost packet that was not retransmitted.
    pub fn next_lost(&mut self) -> Option<u64> {
        let hole = self.sacked.first_absent(self.next_hole.max(self.una), self.lost_edge)?;
        self.next_hole = hole;
        Some(hole)
    }

    /// RFC 6675 §4 `NextSeg` rule (3), and ns-2's only rule: the first packet not retransmitted with anything above it
    /// selectively acknowledged, lost or not.
    pub fn next_hole(&mut self) -> Option<u64> {
        let hole = self.sacked.first_absent(self.next_hole.max(self.una), self.high)?;
        self.next_hole = hole;
        Some(hole)
    }

    /// `packet`, sent before and below `next`, is sent again.
    pub fn on_retransmit(&mut self, packet: u64, next: u64) {
        self.on_rescue(packet, next);
        self.next_hole = self.next_hole.max(packet + 1);
    }

    /// The same for RFC 6675 §4 `NextSeg` rule (4), which does not move `HighRxt`: holes below are still to be filled.
    pub fn on_rescue(&mut self, packet: u64, next: u64) {
        if packet < self.una {
            return;
        }
        self.retransmitted.reserve(self.una, next);
        if !self.retransmitted.get(packet) {
            self.retransmitted.set(packet);
            self.counts.retransmitted += 1;
        }
    }

    /// The retransmission of `packet` is known to be lost, too: it is in the network no longer. To find that out is the caller's
    /// business, RFC 6675 does not.
    pub fn on_retransmission_lost(&mut self, packet: u64) {
        if self.is_retransmitted(packet) {
            self.retransmitted.clear(packet);
            self.counts.retransmitted -= 1;
        }
    }

    /// The first packet of `from..to`, of those sent below `next`, that is not acknowledged in any way.
    pub fn first_missing(&mut self, from: u64, to: u64, next: u64) -> Option<u64> {
        self.sacked.reserve(self.una, next);
        self.sacked.first_absent(from.max(self.una), to.min(next))
    }

    /// Below it, what is not acknowledged in any way is lost.
    pub fn lost_edge(&self) -> u64 {
        self.lost_edge
    }

    /// Retransmissions so far count no longer, as at the start of a new episode. `next` is one beyond all that was sent.
    pub fn forget_retransmissions(&mut self, next: u64) {
        if self.counts.retransmitted > 0 {
            self.retransmitted.clear_range(self.una, next);
            self.counts.retransmitted = 0;
        }
        self.next_hole = self.una;
    }

    /// What was deemed lost is not, after all, and its retransmissions do not count.
    pub fn forget_losses(&mut self, next: u64) {
        self.forget_retransmissions(next);
        self.lost_edge = self.una;
        self.counts.lost = 0;
    }

    /// Forgets everything but the cumulative acknowledgment, as a receiver's reneging would have it, and as ns-2 does
    /// at the end of each recovery. `next` is one beyond all that was sent.
    pub fn clear(&mut self, next: u64) {
        self.forget_retransmissions(next);
        if self.high > self.una {
            self.sacked.clear_range(self.una, self.high);
        }
        self.high = self.una;
        self.lost_edge = self.una;
        self.counts = Counts::default();
    }

    fn move_lost_edge(&mut self, edge: u64) -> u64 {
        let from = self.lost_edge.max(self.una);
        if edge <= from {
            return 0;
        }
        self.lost_edge = edge;
        let new = (edge - from) - self.sacked.count(from, edge);
        self.counts.lost += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Vector sack.1: (discontiguous sequences, bytes above) → lost, of packets of at most 1460 bytes.
    #[test]
    fn sack_1() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let vector = all["vectors"].as_array().unwrap().iter().find(|v| v["id"] == "sack.1").unwrap();
        let mss = vector["input"]["mss"].as_u64().unwrap();
        let dupthresh = vector["input"]["dupthresh"].as_u64().unwrap();
        let cases = vector["input"]["cases"].as_array().unwrap();
        for (case, lost) in cases.iter().zip(vector["output"]["lost"].as_array().unwrap()) {
            // As many sequences, and as few packets that hold the bytes.
            let sequences = case[0].as_u64().unwrap();
            let packets = case[1].as_u64().unwrap().div_ceil(mss).max(sequences);
            let mut board = Scoreboard::default();
            for i in 0..sequences {
                board.sack(1 + 2 * i, 2 + 2 * i, 100);
            }
            board.sack(2 * sequences, 2 * sequences + packets - sequences, 100);
            board.detect(dupthresh);
            assert_eq!(board.lost() > 0, lost.as_bool().unwrap(), "{case}");
        }
    }

    /// The oracle: RFC 6675 §4 word by word, on a list of packets.
    #[derive(Default)]
    struct Model {
        una: u64,
        packets: Vec<(bool, bool)>, // sacked, retransmitted
        timed_out_below: u64,
    }

    impl Model {
        fn is_lost(&self, packet: u64, dupthresh: u64) -> bool {
            let above = self.packets[packet as usize + 1..].iter().filter(|p| p.0).count() as u64;
            packet < self.timed_out_below || above >= dupthresh
        }

        fn pipe(&self, dupthresh: u64) -> u64 {
            let unsacked = (self.una..self.packets.len() as u64).filter(|p| !self.packets[*p as usize].0);
            unsacked.map(|p| u64::from(!self.is_lost(p, dupthresh)) + u64::from(self.packets[p as usize].1)).sum()
        }

        fn next_lost(&self, dupthresh: u64) -> Option<u64> {
            // "greater than HighRxt": of those that were retransmitted, none above is skipped back to.
            let from = (self.una..self.packets.len() as u64).rev().find(|p| self.packets[*p as usize].1);
            (from.map_or(self.una, |p| p + 1)..self.packets.len() as u64)
                .find(|p| !self.packets[*p as usize].0 && self.is_lost(*p, dupthresh))
        }
    }

    /// RFC 6675 §4 rule (4): "HighRxt MUST NOT be updated", so that what is found lost below is still sent again.
    #[test]
    fn a_rescue_hides_no_hole() {
        let mut board = Scoreboard::default();
        board.sack(2, 5, 20);
        board.detect(3);
        assert_eq!(board.next_lost(), Some(0));
        board.on_retransmit(0, 20);
        board.on_rescue(19, 20);
        assert!(board.is_retransmitted(19));
        assert_eq!(board.next_lost(), Some(1));
        board.sack(6, 12, 20);
        board.on_retransmit(1, 20);
        board.detect(3);
        assert_eq!(board.next_lost(), Some(5));
    }

    #[test]
    fn a_lost_retransmission_is_in_the_network_no_longer() {
        let mut board = Scoreboard::default();
        board.sack(2, 8, 10);
        board.detect(3);
        assert_eq!((board.lost_edge(), board.pipe(10)), (5, 2));
        assert_eq!((board.first_missing(0, 8, 10), board.first_missing(2, 10, 10)), (Some(0), Some(8)));
        board.on_retransmit(0, 10);
        board.on_retransmit(1, 10);
        assert_eq!(board.pipe(10), 4);
        board.on_retransmission_lost(0);
        board.on_retransmission_lost(0);
        assert_eq!(board.pipe(10), 3);
        board.on_rescue(0, 10);
        assert_eq!(board.pipe(10), 4);
    }

    proptest! {
        #[test]
        fn counters_agree_with_the_definitions(
            ops in prop::collection::vec((0u8..6, 0u64..40, 1u64..12), 1..120),
        ) {
            let mut board = Scoreboard::default();
            let mut model = Model::default();
            for (op, a, b) in ops {
                let next = model.packets.len() as u64;
                match op {
                    0 => model.packets.extend((0..a).map(|_| (false, false))),
                    1 | 2 => {
                        let left = model.una + a;
                        let right = (left + b).min(next);
                        // The first outstanding packet is never selectively acknowledged: it would be cumulatively.
                        if left > model.una && left < right {
                            board.sack(left, right, next);
                            for p in left..right {
                                model.packets[p as usize] = (true, false);
                            }
                            board.detect(3);
                        }
                    }
                    3 => {
                        let mut una = (model.una + b).min(next);
                        while una < next && model.packets[una as usize].0 {
                            una += 1;
                        }
                        board.advance(una);
                        for p in &mut model.packets[..una as usize] {
                            p.1 = false;
                        }
                        model.una = una;
                        board.detect(3);
                    }
                    4 => if let Some(packet) = board.next_lost() {
                        board.on_retransmit(packet, next);
                        model.packets[packet as usize].1 = true;
                    },
                    _ => {
                        board.all_lost(next);
                        model.packets.iter_mut().for_each(|p| p.1 = false);
                        model.timed_out_below = next;
                    }
                }
                let next = model.packets.len() as u64;
                prop_assert_eq!(board.pipe(next), model.pipe(3));
                prop_assert_eq!(board.next_lost(), model.next_lost(3));
            }
        }
    }
}

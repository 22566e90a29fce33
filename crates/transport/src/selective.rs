//! A sender's loss recovery on selective acknowledgments: RFC 6675, and the variant of ns-2's `Sack1`.

use std::collections::VecDeque;

use clock::{Duration, Instant};
use recovery::{DupThresh, Scoreboard};

use crate::config::Details;
use crate::packet::expand;
use crate::resent::Resent;

/// By what retransmissions that are lost are found (RFC 8985).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rack {
    /// They are not: the timer finds them.
    No,
    /// By the times that acknowledgments echo, here.
    OfEchoes,
    /// By what is kept of each packet for a rule that reads rates: whoever keeps it calls [`Selective::on_retransmission_lost`].
    OfRates,
}

/// What an acknowledgment asks of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It acknowledged new data, and no loss is being repaired.
    Progress,
    /// All that was outstanding at the loss is acknowledged.
    Recovered,
    /// Some of it is.
    Partial,
    /// New signs of a loss: reduce the window and send the first missing packet.
    Loss,
    /// A duplicate; this many so far, outside of recovery.
    Duplicate(u32),
    /// Nothing new, or a duplicate in recovery.
    Nothing,
}

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This packet again.
    Again(u64),
    /// New data, if there are any.
    New,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Selective {
    board: Scoreboard,
    details: Details,
    dupacks: u32,
    in_recovery: bool,
    /// Everything below must be acknowledged before recovery ends and before another begins.
    recover: u64,
    /// RFC 6675 §4 rule (4): one rescue retransmission a recovery, of this packet.
    rescued: Option<u64>,
    /// Since a timeout nothing was acknowledged (ns-2: duplicates do not count meanwhile).
    timed_out: bool,
    /// ns-2's estimate of packets in the network, in recovery only.
    pipe: i64,
    /// Lost retransmissions are found, so those under way count on when the next recovery begins; RFC 6675 §5 (4.2) forgets them
    /// and sends them once more.
    remembers: bool,
    /// Retransmissions under way, with [`Rack::OfEchoes`].
    resent: Option<Resent>,
    /// Packets whose retransmissions are lost, too.
    again: VecDeque<u64>,
    /// When recovery began, the first missing packet was under way again.
    is_under_way: bool,
}

impl Selective {
    pub(crate) fn new(details: Details, rack: Rack) -> Self {
        Self {
            board: Scoreboard::default(),
            details,
            dupacks: 0,
            in_recovery: false,
            recover: 0,
            rescued: None,
            timed_out: false,
            pipe: 0,
            remembers: rack != Rack::No,
            resent: (rack == Rack::OfEchoes).then(Resent::default),
            again: VecDeque::new(),
            is_under_way: false,
        }
    }

    #[inline]
    pub(crate) fn in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// An acknowledgment of all below `ack` with `blocks`, when all below `una` was acknowledged and all below `max`
    /// sent.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        ack: u64,
        blocks: &[(u32, u32)],
        una: u64,
        max: u64,
        dupthresh: DupThresh,
    ) -> Verdict {
        match self.details {
            Details::Rfc => self.rfc_6675(ack, blocks, una, max, dupthresh),
            Details::Ns2 => self.sack1(ack, blocks, una, max, dupthresh),
        }
    }

    /// RFC 6675 §5.
    fn rfc_6675(&mut self, ack: u64, blocks: &[(u32, u32)], una: u64, max: u64, dupthresh: DupThresh) -> Verdict {
        let advanced = ack > una;
        if advanced {
            self.board.advance(ack);
        }
        let new = self.take_blocks(blocks, ack.max(una), max);
        if advanced && blocks.is_empty() && !self.in_recovery && self.board.is_clear() {
            self.dupacks = 0;
            self.timed_out = false;
            return Verdict::Progress; // The usual case.
        }
        let threshold = dupthresh.threshold(max - una);
        if self.board.sacked() > 0 {
            self.board.detect(u64::from(threshold));
        }
        if self.in_recovery {
            if ack >= self.recover {
                self.in_recovery = false;
                self.dupacks = 0;
                return Verdict::Recovered;
            }
            return if advanced { Verdict::Partial } else { Verdict::Nothing };
        }
        if advanced {
            self.dupacks = 0;
            self.timed_out = false;
        } else if new > 0 {
            self.dupacks += 1;
        }
        let una = ack.max(una);
        // §5 step (4), not again for a window that was repaired or timed out already.
        if una > self.recover && (self.dupacks >= threshold || self.board.lost() > 0) {
            self.begin(una, max);
            return Verdict::Loss;
        }
        match (advanced, new > 0) {
            (true, _) => Verdict::Progress,
            (false, true) => Verdict::Duplicate(self.dupacks),
            (false, false) => Verdict::Nothing,
        }
    }

    /// ns-2's `Sack1`: the scoreboard lives from a first duplicate to the end of recovery, the pipe is counted.
    fn sack1(&mut self, ack: u64, blocks: &[(u32, u32)], una: u64, max: u64, dupthresh: DupThresh) -> Verdict {
        let advanced = ack > una;
        if !self.in_recovery {
            if advanced {
                self.dupacks = 0;
                self.timed_out = false;
                self.board.advance(ack);
                self.board.clear(max);
                return Verdict::Progress;
            }
            if self.timed_out || self.take_blocks(blocks, una, max) == 0 {
                return Verdict::Nothing;
            }
            self.dupacks += 1;
            let threshold = dupthresh.threshold(max - una);
            if self.dupacks == threshold && una > self.recover {
                self.begin(una, max);
                self.pipe = (max - una).cast_signed() - i64::from(threshold);
                return Verdict::Loss;
            }
            return if self.dupacks < threshold { Verdict::Duplicate(self.dupacks) } else { Verdict::Nothing };
        }
        self.pipe -= 1;
        if ack >= self.recover {
            self.recover = 0;
            self.in_recovery = false;
            self.dupacks = 0;
            self.timed_out = false;
            self.board.advance(ack);
            self.board.clear(max);
            return Verdict::Recovered;
        }
        if advanced {
            self.pipe -= 1; // The retransmission and the packet it stood for.
            self.board.advance(ack);
        }
        self.take_blocks(blocks, ack.max(una), max);
        if advanced { Verdict::Partial } else { Verdict::Nothing }
    }

    fn begin(&mut self, una: u64, max: u64) {
        self.in_recovery = true;
        self.rescued = None;
        self.recover = max;
        if self.remembers {
            self.is_under_way = self.board.is_retransmitted(una);
        } else {
            self.board.forget_retransmissions(max);
        }
        self.board.on_retransmit(una, max);
    }

    /// Whether the first missing packet was under way again when the recovery began that does.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    fn take_blocks(&mut self, blocks: &[(u32, u32)], near: u64, max: u64) -> u64 {
        let mut new = 0;
        for (left, right) in blocks {
            new += self.board.sack(expand(*left, near), expand(*right, near), max);
        }
        new
    }

    /// The retransmission timer ran out.
    pub(crate) fn on_timeout(&mut self, una: u64, max: u64) {
        self.in_recovery = false;
        self.dupacks = 0;
        self.timed_out = true;
        self.recover = max;
        self.forget_resent();
        self.board.advance(una);
        match self.details {
            Details::Rfc => self.board.all_lost(max),
            Details::Ns2 => self.board.clear(max),
        }
    }

    /// The recovery under way was an error.
    pub(crate) fn on_spurious(&mut self, max: u64) {
        self.in_recovery = false;
        // What proves lost from now on is another matter, and has its own recovery.
        self.recover = 0;
        self.dupacks = 0;
        self.timed_out = false;
        self.forget_resent();
        self.board.forget_losses(max);
    }

    fn forget_resent(&mut self) {
        self.again.clear();
        if let Some(resent) = &mut self.resent {
            resent.clear();
        }
    }

    /// Whether lost retransmissions are found here.
    pub(crate) fn has_rack(&self) -> bool {
        self.resent.is_some()
    }

    /// The packet at `position` is sent again.
    pub(crate) fn on_resent(&mut self, position: u64, now: Instant) {
        if let Some(resent) = &mut self.resent {
            resent.on_sent(position, now);
        }
    }

    /// The packet that an acknowledgment answers was sent at `sent`: retransmissions that left before it by more than `late` are
    /// lost.
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: Instant, late: Duration) {
        let Self { board, resent: Some(resent), again, .. } = self else { return };
        resent.on_delivered(sent);
        while let Some(position) =
            resent.next_lost(late, |position, _| board.is_retransmitted(position) && !board.is_sacked(position))
        {
            board.on_retransmission_lost(position);
            again.push_back(position);
        }
    }

    /// The retransmission of `position` was lost, too: to be sent again before all else.
    pub(crate) fn on_retransmission_lost(&mut self, position: u64) {
        self.board.on_retransmission_lost(position);
        self.again.push_back(position);
    }

    /// See [`Scoreboard::first_missing`].
    pub(crate) fn first_missing(&mut self, from: u64, to: u64, max: u64) -> Option<u64> {
        self.board.first_missing(from, to, max)
    }

    /// See [`Scoreboard::lost_edge`].
    pub(crate) fn lost_edge(&self) -> u64 {
        self.board.lost_edge()
    }

    /// Whether the packet at `position` is selectively acknowledged.
    pub(crate) fn is_sacked(&self, position: u64) -> bool {
        self.board.is_sacked(position)
    }

    /// How many packets are selectively acknowledged.
    pub(crate) fn sacked(&self) -> u64 {
        self.board.sacked()
    }

    /// Packets in the network, as far as sending goes.
    #[inline]
    pub(crate) fn pipe(&self, una: u64, next: u64, max: u64) -> u64 {
        match self.details {
            Details::Rfc => self.board.pipe(max),
            Details::Ns2 if self.in_recovery => self.pipe.max(0).cast_unsigned(),
            Details::Ns2 => next - una,
        }
    }

    /// RFC 6675 §4 `NextSeg`. `has_new` tells whether new data could be sent, `limited` that this is limited transmit.
    #[inline]
    pub(crate) fn next(&mut self, una: u64, max: u64, has_new: bool, limited: bool) -> Next {
        if limited || (self.board.is_clear() && !self.in_recovery) {
            return if has_new { Next::New } else { Next::Nothing };
        }
        while let Some(position) = self.again.front().copied() {
            if position >= una && !self.board.is_sacked(position) && !self.board.is_retransmitted(position) {
                return Next::Again(position);
            }
            self.again.pop_front();
        }
        let again = match self.details {
            Details::Rfc => self.board.next_lost(),
            Details::Ns2 => match self.board.next_hole() {
                // ns-2 knows of the hole before recovery, and then sends neither it nor anything above it.
                Some(_) if !self.in_recovery && self.recover == 0 => return Next::Nothing,
                hole => hole,
            },
        };
        if let Some(position) = again {
            return Next::Again(position);
        }
        if has_new {
            return Next::New;
        }
        if self.details == Details::Rfc && self.in_recovery {
            if let Some(position) = self.board.next_hole() {
                return Next::Again(position); // Rule (3).
            }
            // Rule (4), which Linux does without.
            let last = max - 1;
            if self.resent.is_none()
                && self.rescued.is_none()
                && !self.board.is_sacked(last)
                && !self.board.is_retransmitted(last)
            {
                self.rescued = Some(last);
                return Next::Again(last);
            }
        }
        Next::Nothing
    }

    /// What [`Selective::next`] said was done.
    #[inline]
    pub(crate) fn on_sent(&mut self, position: u64, again: bool, max: u64) {
        if again && self.rescued == Some(position) && !self.board.is_retransmitted(position) {
            self.board.on_rescue(position, max);
        } else if again {
            self.board.on_retransmit(position, max);
        }
        if self.in_recovery {
            self.pipe += 1;
        }
    }
}

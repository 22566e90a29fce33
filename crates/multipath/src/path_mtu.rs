//! The largest packet that a path carries, found by probes (Datagram Packetization Layer Path MTU Discovery, RFC 8899).
//!
//! ICMP is not asked: it is often dropped, and whoever knows two addresses can forge it. What is known of a size is that a padded
//! heartbeat of that size was answered, or that several were not while a small one that left after them was. The owner sends
//! probes without fragmentation, and tells of answers; time is an argument.
//!
//! Probes leave in rounds, largest first, and a small one behind them (the control): a path is a FIFO, so its answer says that
//! the others should have come. A round without that answer says nothing of sizes. The first round asks for the largest alone: mostly
//! it passes, and a burst would keep data waiting. The second asks for the sizes that links usually have; each later one divides
//! what is between the largest that was answered and the smallest that was not into five, and asks again for the latter. So a
//! search takes about six round trips where the path is narrow, and what the second of them has found is used at once.

use crate::path::Overhead;
use crate::report::Report;
use clock::{Duration, Instant};
use std::collections::VecDeque;

/// So many probes of one size have to be lost before it is too large (RFC 8899 §5.1.2, MAX_PROBES).
pub const MAX_PROBES: u8 = 3;
/// What nearly every path carries, in bytes with the IP header (RFC 8899 §5.1.2, BASE_PLPMTU).
pub const BASE_PLPMTU: u16 = 1200;
/// The least that is looked for, in bytes: what every IPv4 host takes (RFC 791 §3.1).
pub const MIN_PLPMTU: u16 = 576;
/// The search ends when what is answered and what is too large differ by no more, in bytes; or by no more than what ESP pads to.
pub const GRANULARITY: u16 = 8;
/// A larger size is looked for again after so long (RFC 8899 §5.1.1, PMTU_RAISE_TIMER).
pub const RAISE_AFTER: Duration = Duration::from_secs(600);

/// Sizes that links have: Ethernet, usual tunnels, the least of IPv6. No more, because the probes of the first round are a burst.
const USUAL: [u16; 4] = [9000, 1500, 1400, 1280];
/// Sizes of a round between what is known to pass and what is not.
const PARTS: u16 = 4;
/// How long a round is waited for while no round-trip time is known (RFC 8899 §5.1.1: no less than a second).
const UNKNOWN_PATIENCE: Duration = Duration::from_secs(1);
/// Timers, and what other packets take on the way.
const SLACK: Duration = Duration::from_millis(50);
/// After the answer to the control, others may be so late, or a fourth of a round-trip time.
const REORDERING: Duration = Duration::from_millis(10);
/// Rounds without an answer are repeated after twice the time, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Where nothing was ever answered it is tried again after so long.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// So many large packets in a row have to be lost, by the peer's reports, before they are suspected.
const LOST_IN_ROW: u8 = 4;
/// Large packets that are watched at one time: samples, one of which is lost in a full queue, too, but seldom all in a row.
const WATCHED: usize = 8;
/// A sample is lost when so many numbers behind it have come (RFC 5681 §3.2).
const BEHIND: u32 = 3;
/// After a suspicion that was wrong the next one waits for so long.
const SUSPECT_AGAIN: Duration = Duration::from_secs(1);

/// The states of RFC 8899 §5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuPhase {
    /// Nothing is looked for: the peer is not known to answer probes.
    Disabled,
    /// No size is known to pass yet.
    Base,
    /// A size passes, and a larger one is looked for.
    Search,
    /// The largest is found.
    Complete,
    /// Not even [`BASE_PLPMTU`] passes, and less is looked for.
    Error,
}

impl MtuPhase {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Base => "base",
            Self::Search => "search",
            Self::Complete => "complete",
            Self::Error => "error",
        }
    }
}

/// A probe to be sent: a heartbeat, padded until its whole outer IP packet has `size` bytes. A size of 0 is a heartbeat as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Bytes of the whole outer packet.
    pub size: u16,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MtuCounts {
    /// Probes sent, controls not included.
    pub probes: u64,
    /// Of those, answered.
    pub answered: u64,
    /// How often a size that had passed did no longer.
    pub black_holes: u64,
}

/// A probe that may be answered.
#[derive(Clone, Copy, Debug)]
struct Sent {
    nonce: u64,
    size: u16,
    is_answered: bool,
}

/// Probes that left together.
#[derive(Clone, Debug, Default)]
struct Round {
    sent: Vec<Sent>,
    at: Instant,
    /// Whether there is one that waits for answers.
    is_open: bool,
}

/// The search of one path.
#[derive(Clone, Debug)]
pub struct PathMtu {
    phase: MtuPhase,
    /// What is around a payload: not every size can be made.
    overhead: Overhead,
    /// The largest that is looked for: what the interface takes, or what is configured.
    most: u16,
    /// The largest that was answered; until then [`MIN_PLPMTU`].
    low: u16,
    is_confirmed: bool,
    /// Sizes that were not answered, ascending, and how often; all above `low`.
    failed: Vec<(u16, u8)>,
    /// The size that had passed is in doubt: the largest that passes by now, if any, and how often that one did not.
    doubt: Option<(Option<u16>, u8)>,
    round: Round,
    /// Answers to older rounds still say that a size passes.
    older: Vec<Sent>,
    /// When the next round leaves, or this one ends.
    next_at: Instant,
    /// When more is looked for again.
    raise_at: Instant,
    /// Rounds without any answer in a row.
    void: u32,
    watched: VecDeque<u32>,
    lost_in_row: u8,
    suspected_at: Option<Instant>,
    counts: MtuCounts,
}

impl PathMtu {
    /// A path that carries packets of no more than `most` bytes, and perhaps less, with so much around their payload. Nothing is
    /// looked for until [`PathMtu::begin`].
    pub fn new(most: u16, overhead: Overhead) -> Self {
        let most = fit(overhead, most);
        Self {
            phase: MtuPhase::Disabled,
            overhead,
            most,
            low: fit(overhead, MIN_PLPMTU).min(most),
            is_confirmed: false,
            failed: Vec::new(),
            doubt: None,
            round: Round::default(),
            older: Vec::new(),
            next_at: Instant::FAR_FUTURE,
            raise_at: Instant::FAR_FUTURE,
            void: 0,
            watched: VecDeque::new(),
            lost_in_row: 0,
            suspected_at: None,
            counts: MtuCounts::default(),
        }
    }

    /// The peer answers probes: the first round is due.
    pub fn begin(&mut self, now: Instant) {
        if self.phase == MtuPhase::Disabled {
            self.restart(now);
        }
    }

    /// The path leads elsewhere: nothing is known of it any more.
    pub fn restart(&mut self, now: Instant) {
        let begun = Self::new(self.most, self.overhead);
        *self = Self { phase: MtuPhase::Base, next_at: now, counts: self.counts, ..begun };
    }

    /// The path leads elsewhere, and is not known to answer there: nothing is looked for until [`PathMtu::begin`].
    /// What is around payloads there, and the most that is looked for, may be others.
    pub fn forget(&mut self, most: u16, overhead: Overhead) {
        *self = Self { counts: self.counts, ..Self::new(most, overhead) };
    }

    /// The interface takes more or less than before, or the configuration says so.
    pub fn set_most(&mut self, now: Instant, most: u16) {
        let most = fit(self.overhead, most);
        let before = std::mem::replace(&mut self.most, most);
        self.low = self.low.min(most);
        if before == most || self.phase == MtuPhase::Disabled {
            return;
        }
        self.failed.retain(|(size, _)| *size <= most);
        if self.phase == MtuPhase::Complete {
            self.phase = MtuPhase::Search;
        }
        if !self.round.is_open {
            self.next_at = now;
        }
    }

    /// The state of the search.
    pub fn phase(&self) -> MtuPhase {
        self.phase
    }

    /// The largest packet that is known to pass, in bytes of the whole outer packet; `None` while none is: then packets of up to
    /// [`PathMtu::most`] go as before there were probes, and may be cut on the way.
    pub fn plpmtu(&self) -> Option<u16> {
        self.is_confirmed.then_some(self.low)
    }

    /// The largest packet that is looked for.
    pub fn most(&self) -> u16 {
        self.most
    }

    /// The largest packet that may be sent now, and may have to be cut on the way if nothing is known.
    pub fn limit(&self) -> u16 {
        self.plpmtu().unwrap_or(self.most)
    }

    /// The largest that the search may still find: what passes if it has ended, otherwise less than what has failed.
    pub fn upper(&self) -> u16 {
        match (self.phase, self.failed.first()) {
            (MtuPhase::Complete, _) => self.low,
            (_, Some((failed, _))) => (failed - 1).max(self.low),
            _ => self.most,
        }
    }

    /// Whether the search has ended, so that programs may be told.
    pub fn is_settled(&self) -> bool {
        self.phase == MtuPhase::Complete
    }

    /// Totals.
    pub fn counts(&self) -> MtuCounts {
        self.counts
    }

    /// When [`PathMtu::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Instant {
        self.next_at
    }

    /// The probes that are to leave now, in this order, the control last; with the path's round-trip time, if that is known.
    /// Each is to be reported by [`PathMtu::sent`].
    pub fn handle_timeout(&mut self, now: Instant, srtt: Option<Duration>) -> Vec<Probe> {
        if self.next_at > now || self.phase == MtuPhase::Disabled {
            return Vec::new();
        }
        if self.round.is_open {
            self.end_round(now);
            if self.next_at > now {
                return Vec::new();
            }
        }
        if self.phase == MtuPhase::Complete && self.doubt.is_none() {
            if self.raise_at > now {
                self.next_at = self.raise_at;
                return Vec::new();
            }
            // RFC 8899 §5.3.3: the path may carry more by now.
            self.failed.clear();
            self.phase = MtuPhase::Search;
        }
        let sizes = self.next_sizes();
        if sizes.is_empty() {
            self.complete(now);
            return Vec::new();
        }
        self.older = std::mem::take(&mut self.round.sent);
        let patience = srtt.map_or(UNKNOWN_PATIENCE, |srtt| srtt * 2 + SLACK);
        let patience = (patience * (1_u64 << self.void.min(6))).min(LONGEST_PAUSE.max(patience));
        self.round = Round { sent: Vec::new(), at: now, is_open: true };
        self.next_at = now + patience;
        sizes.into_iter().chain([0]).map(|size| Probe { size }).collect()
    }

    /// A probe has left with this nonce, which nobody can guess.
    pub fn sent(&mut self, nonce: u64, size: u16) {
        self.counts.probes += u64::from(size > 0);
        self.round.sent.push(Sent { nonce, size, is_answered: false });
    }

    /// A probe could not leave, because what may go to the peer is bounded now: the round says nothing of its size.
    pub fn postpone(&mut self, now: Instant) {
        self.round.is_open = false;
        self.void = (self.void + 1).min(6);
        self.next_at = now + UNKNOWN_PATIENCE;
    }

    /// Whether this is the nonce of a probe that was sent lately.
    pub fn is_asked(&self, nonce: u64) -> bool {
        self.round.sent.iter().chain(&self.older).any(|sent| sent.nonce == nonce)
    }

    /// An answer came.
    pub fn answered(&mut self, now: Instant, nonce: u64) {
        let mut all = self.round.sent.iter_mut().chain(&mut self.older);
        let Some(sent) = all.find(|sent| sent.nonce == nonce && !sent.is_answered) else { return };
        sent.is_answered = true;
        let size = sent.size;
        self.void = 0;
        if size == 0 {
            let is_of_round = self.round.sent.iter().any(|sent| sent.nonce == nonce);
            if self.round.is_open && is_of_round {
                let late = REORDERING.max((now - self.round.at) / 4);
                self.next_at = self.next_at.min(now + late);
            }
            return;
        }
        self.counts.answered += 1;
        if let Some((seen, _)) = &mut self.doubt {
            if size >= self.low {
                self.doubt = None;
                self.lost_in_row = 0;
            } else {
                *seen = Some(seen.map_or(size, |seen| seen.max(size)));
            }
        }
        if size > self.most {
            return;
        }
        if size > self.low || !self.is_confirmed {
            self.low = self.low.max(size);
            self.is_confirmed = true;
            self.failed.retain(|(failed, _)| *failed > size);
            if self.phase != MtuPhase::Complete && (self.low >= BASE_PLPMTU || self.phase != MtuPhase::Error) {
                self.phase = MtuPhase::Search;
            }
        }
        if self.round.is_open && self.round.sent.iter().all(|sent| sent.is_answered || sent.size == 0) {
            // Nothing more is waited for.
            self.next_at = now;
        }
    }

    /// A packet of data of so many bytes has left under this number.
    pub fn on_sent(&mut self, number: u32, wire: usize) {
        let large = usize::from(BASE_PLPMTU.min(self.low));
        if self.is_confirmed && wire > large && wire <= self.low.into() && self.watched.len() < WATCHED {
            self.watched.push_back(number);
        }
    }

    /// The peer reports what has come: large packets that are lost one after the other while others arrive raise doubts
    /// (RFC 8899 §4.3). Probes then decide; a full queue loses packets, too.
    pub fn on_report(&mut self, now: Instant, report: &Report) {
        let Some((oldest, _)) = report.ranges.last().copied() else { return };
        while let Some(number) = self.watched.front().copied() {
            let has_come = report.ranges.iter().any(|(first, last)| (*first..=*last).contains(&number));
            if !has_come && number >= oldest && number.saturating_add(BEHIND) > report.highest {
                break;
            }
            self.watched.pop_front();
            if has_come {
                self.lost_in_row = 0;
            } else if number >= oldest {
                self.lost_in_row = self.lost_in_row.saturating_add(1);
            }
        }
        if self.lost_in_row >= LOST_IN_ROW {
            self.suspect(now);
        }
    }

    /// Something says that packets of the size found do not pass any more: probes find out.
    pub fn suspect(&mut self, now: Instant) {
        let is_early = self.suspected_at.is_some_and(|at| now - at < SUSPECT_AGAIN);
        if !self.is_confirmed || self.doubt.is_some() || is_early {
            return;
        }
        self.lost_in_row = 0;
        self.suspected_at = Some(now);
        self.doubt = Some((None, 0));
        // Answers to what left before say nothing of what passes now.
        self.round = Round::default();
        self.older.clear();
        self.next_at = now;
    }

    /// The keys of the path are new: probes and numbers of the old ones mean nothing.
    pub fn renewed(&mut self, now: Instant) {
        self.older.clear();
        self.watched.clear();
        if self.round.is_open {
            (self.round, self.next_at) = (Round::default(), now);
        }
    }

    /// A round has had its time.
    fn end_round(&mut self, now: Instant) {
        self.round.is_open = false;
        if !self.round.sent.iter().any(|sent| sent.is_answered) {
            self.void = (self.void + 1).min(6);
            return;
        }
        let lost: Vec<u16> =
            self.round.sent.iter().filter(|sent| !sent.is_answered && sent.size > 0).map(|sent| sent.size).collect();
        if let Some((_, failures)) = &mut self.doubt {
            *failures += u8::from(lost.contains(&self.low));
            self.end_doubt(now);
            return;
        }
        for size in lost.into_iter().filter(|size| *size > self.low) {
            match self.failed.iter_mut().find(|(failed, _)| *failed == size) {
                Some((_, failures)) => *failures = failures.saturating_add(1),
                None => self.failed.push((size, 1)),
            }
        }
        self.failed.sort_unstable();
        let base_failed = self.failed.iter().any(|(size, failures)| *size <= BASE_PLPMTU && *failures >= MAX_PROBES);
        if base_failed && self.low < BASE_PLPMTU && self.phase != MtuPhase::Complete {
            self.phase = MtuPhase::Error;
        }
    }

    /// Whether the size that had passed has failed often enough.
    fn end_doubt(&mut self, now: Instant) {
        let Some((seen, failures)) = self.doubt.filter(|(_, failures)| *failures >= MAX_PROBES) else { return };
        self.doubt = None;
        self.counts.black_holes += 1;
        self.failed = vec![(self.low, failures)];
        self.low = seen.unwrap_or(fit(self.overhead, MIN_PLPMTU).min(self.most));
        self.is_confirmed = seen.is_some();
        self.phase = if self.is_confirmed { MtuPhase::Search } else { MtuPhase::Base };
        self.watched.clear();
        self.next_at = now;
    }

    /// What the next round asks for, the largest first; nothing where the search has ended.
    fn next_sizes(&self) -> Vec<u16> {
        let fit = |size: u16| fit(self.overhead, size);
        let usual =
            |above: u16, below: u16| USUAL.map(fit).into_iter().filter(move |size| (above + 1..below).contains(size));
        let mut sizes: Vec<u16> = if self.doubt.is_some() {
            [self.low].into_iter().chain(usual(fit(MIN_PLPMTU), self.low)).collect()
        } else if self.is_confirmed && self.low >= self.most {
            Vec::new()
        } else if let Some((failed, failures)) = self.failed.first().copied() {
            let gap = failed.saturating_sub(self.low);
            let parts = if gap > GRANULARITY { PARTS } else { 0 };
            let part = |part: u16| self.low + (u32::from(gap) * u32::from(part) / u32::from(PARTS + 1)) as u16;
            let parts = (1..=parts).rev().map(part).map(fit).filter(|size| (self.low + 1..failed).contains(size));
            let mut between: Vec<u16> = usual(self.low, failed).collect();
            if self.is_confirmed || failed < self.most || between.is_empty() {
                between = parts.collect();
            }
            (failures < MAX_PROBES).then_some(failed).into_iter().chain(between).collect()
        } else {
            vec![self.most]
        };
        sizes.dedup();
        sizes
    }

    fn complete(&mut self, now: Instant) {
        if self.is_confirmed {
            self.phase = MtuPhase::Complete;
            self.raise_at = if self.low < self.most { now + RAISE_AFTER } else { Instant::FAR_FUTURE };
            self.next_at = self.raise_at;
        } else {
            // Whoever answers small heartbeats and no large ones does not know what they are, or is behind less than anybody has.
            self.failed.clear();
            self.phase = MtuPhase::Base;
            self.next_at = now + TRY_AGAIN;
        }
    }
}

/// The largest packet that can be made of no more than so many bytes; where there is none, so many.
fn fit(overhead: Overhead, size: u16) -> u16 {
    let whole = overhead.wire(overhead.room(size.into()));
    u16::try_from(whole).map_or(size, |whole| whole.min(size))
}

#[cfg(test)]
mod tests;

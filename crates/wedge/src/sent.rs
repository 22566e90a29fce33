//! What a path has sent and what became of it: acknowledged, lost, or under way. From reports follow round-trip times,
//! delivery rates and losses, for any traffic.
//!
//! A path is a FIFO, so a gap is a loss once a few packets from behind it have arrived (RFC 5681 §3.2), or once it is an
//! eighth of a round-trip time older than something that has (RFC 8985 §6.2, RFC 9002 §6.1). Should it arrive after all, the
//! reduction was wrong, and the path is given more time from then on.

use crate::pacing::Waiting;
use crate::report::Record;
use clock::{Duration, Instant};
use recovery::RttEstimator;
use std::collections::VecDeque;

/// Packets from behind a gap that prove a loss, at first and at most.
const THRESHOLD: (u32, u32) = (3, 300);
/// The least time before a gap is a loss by age alone: timers, and the granularity of reports.
const AGE: Duration = Duration::from_millis(10);
/// Delivery rates are the greatest of so many round-trip times.
const RATE_ROUNDS: u64 = 5;
/// Records of packets whose fate is known are kept for so many more, to notice when a loss was none.
const KEPT: usize = 1024;
/// Most records; a peer that does not report cannot make it more.
const MOST: usize = 1 << 16;

/// What a packet is to the window.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A report, or what nothing will be heard of: nobody waits for it.
    Report,
    /// It counts, but is not worth sending again: a heartbeat, a pure acknowledgment.
    Fleeting,
    /// It may be sent again.
    Data(Waiting),
}

#[derive(Clone, Debug)]
struct Sent {
    at: Instant,
    wire: usize,
    content: Content,
    fate: Fate,
    /// Bytes delivered when it was sent, and when the last of them were.
    delivered: (u64, Instant),
    /// The first packet of its flight: where the rate at which they were sent is measured from.
    first_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Delivered,
    Lost,
}

/// The sender's side of one path.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    packets: VecDeque<Sent>,
    /// The sequence number of the first of them.
    base: u32,
    /// The sequence number of the first that is under way.
    open: u32,
    in_flight: usize,
    highest: Option<(u32, Instant)>,
    delivered: u64,
    delivered_at: Instant,
    first_at: Instant,
    threshold: u32,
    rtt: RttEstimator,
    /// The highest sequence number that told a round-trip time.
    timed: u32,
    /// By how much a round-trip time differs from the one before, smoothed.
    jitter: Duration,
    /// Greatest delivery rate of this and the last period, in bit/s, and when this one began.
    rate: (u64, u64, Instant),
    counts: Counts,
    /// Of the last record: packets with CE, and all.
    ce: u32,
    packets_told: u32,
    /// When something was acknowledged last, as if receivers did not wait, or sent after all was.
    progress_at: Instant,
    /// How long it was between acknowledgments lately, the longest counting for some time.
    gap: Duration,
    /// The receiver's own round-trip time.
    remote_rtt: Duration,
    loss_at: Option<Instant>,
    /// What was sent before tells no round-trip time: the clock has jumped since.
    slept_at: Instant,
}

/// Totals of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Packets that the peer has received.
    pub delivered: u64,
    /// Packets taken for lost.
    pub lost: u64,
    /// Of those, packets that arrived after all.
    pub spurious: u64,
    /// Packets behind which others had arrived before.
    pub reordered: u64,
    /// Packets with Congestion Experienced.
    pub ce: u64,
}

/// What a record told.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// In flight before.
    pub flight: u64,
    /// The most that was in flight lately, where the caller knows.
    pub peak: u64,
    /// All before this number is acknowledged or lost.
    pub upto: u32,
    /// A round-trip time.
    pub rtt: Option<Duration>,
    /// Packets lost.
    pub lost: u32,
    /// Of them, what may be sent again.
    pub repair: Vec<Waiting>,
    /// Packets that had been taken for lost.
    pub spurious: u32,
    /// New packets with CE.
    pub ce: u32,
}

/// The record says what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absurd;

impl SentLog {
    /// Nothing yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            packets: VecDeque::new(),
            base: 1,
            open: 1,
            in_flight: 0,
            highest: None,
            delivered: 0,
            delivered_at: now,
            first_at: now,
            threshold: THRESHOLD.0,
            rtt: RttEstimator::default(),
            timed: 0,
            jitter: Duration::ZERO,
            rate: (0, 0, now),
            counts: Counts::default(),
            ce: 0,
            packets_told: 0,
            progress_at: now,
            gap: Duration::ZERO,
            remote_rtt: Duration::ZERO,
            loss_at: None,
            slept_at: Instant::ZERO,
        }
    }

    /// A packet was sealed with this number, the one after the last.
    pub(crate) fn sent(&mut self, now: Instant, sequence: u32, wire: usize, content: Content) {
        if sequence != self.next() {
            // Only if numbers were skipped elsewhere; what was before cannot be matched any more.
            self.packets.clear();
            (self.base, self.open, self.in_flight) = (sequence, sequence, 0);
        }
        let counts = !matches!(content, Content::Report);
        if self.in_flight == 0 && counts {
            (self.first_at, self.delivered_at, self.progress_at) = (now, now, now);
        }
        if counts {
            self.in_flight += wire;
        }
        let delivered = (self.delivered, self.delivered_at);
        let first_at = self.first_at;
        self.packets.push_back(Sent { at: now, wire, content, fate: Fate::UnderWay, delivered, first_at });
        self.prune();
    }

    /// Bytes under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Packets of which there is a record.
    pub(crate) fn remembered(&self) -> usize {
        self.packets.len()
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> u32 {
        self.base.wrapping_add(self.packets.len() as u32)
    }

    /// Round-trip times by reports.
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// By how much a round-trip time differs from the one before, smoothed: a queue that grows steadily is none, though it
    /// is a variation to RFC 6298's estimator.
    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    /// What the peer measures.
    pub(crate) fn remote_rtt(&self) -> Duration {
        self.remote_rtt
    }

    /// The delivery rate in bit/s, zero while it is not known.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.0.max(self.rate.1)
    }

    /// Totals.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How long packets have been under way without anything being acknowledged.
    pub(crate) fn silent_since(&self) -> Option<Instant> {
        (self.in_flight > 0).then_some(self.progress_at)
    }

    /// How long it was between acknowledgments lately.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    /// When the oldest of the packets under way was sent.
    pub(crate) fn oldest_at(&self) -> Option<Instant> {
        self.waiting().next().map(|packet| packet.at)
    }

    /// Whether so many packets are under way.
    pub(crate) fn has_under_way(&self, packets: usize) -> bool {
        self.waiting().take(packets).count() == packets
    }

    fn waiting(&self) -> impl Iterator<Item = &Sent> {
        let open = self.packets.iter().skip((self.open - self.base) as usize);
        open.filter(|packet| packet.fate == Fate::UnderWay && !matches!(packet.content, Content::Report))
    }

    /// When something was acknowledged last.
    pub(crate) fn progress_at(&self) -> Instant {
        self.progress_at
    }

    /// When a gap is old enough to be a loss.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.loss_at
    }

    /// Takes the peer's record of this path; `own_way` if it came back on this path, so that its round trip is the path's.
    pub(crate) fn report(&mut self, now: Instant, record: &Record, own_way: bool) -> Result<News, Absurd> {
        // RFC 9002 §2's "acknowledged what was never sent" is an attack or a fault, on an authentic channel too.
        if record.highest >= self.next() || record.highest == 0 || record.packets > record.highest {
            return Err(Absurd);
        }
        let sent_at = self.packet(record.highest).map(|sent| sent.at);
        // An answer before the question, or a time from the future.
        if sent_at.is_some_and(|at| record.delay > now - at) {
            return Err(Absurd);
        }
        let mut news = News { flight: self.in_flight as u64, ..News::default() };
        let previous = self.highest;
        if previous.is_none_or(|(highest, _)| record.highest > highest) {
            if let Some(at) = sent_at {
                self.highest = Some((record.highest, at));
            }
            // No more can have been marked than have arrived.
            news.ce = record.ce.saturating_sub(self.ce).min(record.packets.saturating_sub(self.packets_told));
            self.counts.ce += u64::from(news.ce);
            (self.ce, self.packets_told) = (record.ce, record.packets);
            self.remote_rtt = record.rtt.min(Duration::from_secs(10));
        }
        // What came back on a slow path tells nothing else that is new, if a fast one has told it before.
        if own_way
            && record.highest > self.timed
            && let Some(at) = sent_at.filter(|at| *at >= self.slept_at)
        {
            self.timed = record.highest;
            let rtt = (now - at).saturating_sub(record.delay);
            if !rtt.is_zero() {
                let before = self.rtt.latest().unwrap_or(rtt);
                self.jitter = (self.jitter * 7 + (rtt.max(before) - rtt.min(before))) / 8;
                self.rtt.sample(rtt);
                news.rtt = Some(rtt);
            }
        }
        let mut newest: Option<(Instant, (u64, Instant), Instant)> = None;
        for (first, last) in &record.ranges {
            // What is below `base` has been settled.
            let (from, to) = (*first.max(&self.base), *last);
            for sequence in from..=to.min(self.next().wrapping_sub(1)) {
                let Some(packet) = self.packets.get_mut(sequence.wrapping_sub(self.base) as usize) else { break };
                let counts = !matches!(packet.content, Content::Report);
                match packet.fate {
                    Fate::Delivered => continue,
                    Fate::Lost => {
                        if counts {
                            news.spurious += 1;
                            self.counts.spurious += 1;
                        }
                    }
                    Fate::UnderWay if counts => {
                        self.in_flight -= packet.wire;
                        news.acked += packet.wire as u64;
                    }
                    Fate::UnderWay => {}
                }
                packet.fate = Fate::Delivered;
                packet.content = if counts { Content::Fleeting } else { Content::Report };
                self.counts.delivered += 1;
                if let Some((highest, _)) = previous.filter(|(highest, _)| sequence < *highest) {
                    self.counts.reordered += 1;
                    // The extent of the reordering, in packets (RFC 4737 §4.2.1).
                    let extent = highest - sequence + 1;
                    self.threshold = self.threshold.max(extent + 1).min(THRESHOLD.1);
                }
                if counts {
                    self.delivered += packet.wire as u64;
                    if newest.is_none_or(|(at, ..)| packet.at >= at) {
                        newest = Some((packet.at, packet.delivered, packet.first_at));
                    }
                }
            }
        }
        if let Some((at, (delivered, delivered_at), first_at)) = newest {
            // A report on another path is late; what it tells of came before.
            let told_at = self.progress_at.max(now - record.delay);
            self.gap = (told_at - self.progress_at).max(self.gap - self.gap / 8);
            self.progress_at = told_at;
            self.delivered_at = now;
            self.first_at = at;
            // draft-cheng-iccrg-delivery-rate-estimation: the slower of sending and acknowledging.
            let interval = (now - delivered_at).max(at - first_at);
            self.sample_rate(now, self.delivered - delivered, interval);
        }
        self.detect(now, &mut news);
        self.prune();
        news.upto = self.open;
        Ok(news)
    }

    /// Finds losses by age.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> News {
        let mut news = News { flight: self.in_flight as u64, upto: self.open, ..News::default() };
        if self.loss_at.is_some_and(|at| at <= now) {
            self.detect(now, &mut news);
            self.prune();
            news.upto = self.open;
        }
        news
    }

    /// Gives all up that is under way: the path is dead or silent. What may be sent again, in order.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<Waiting> {
        let mut stranded = Vec::new();
        for packet in self.packets.iter_mut().filter(|packet| packet.fate == Fate::UnderWay) {
            packet.fate = Fate::Lost;
            match std::mem::replace(&mut packet.content, Content::Fleeting) {
                Content::Report => packet.content = Content::Report,
                Content::Fleeting => self.counts.lost += 1,
                Content::Data(waiting) => {
                    self.counts.lost += 1;
                    stranded.push(waiting);
                }
            }
        }
        self.in_flight = 0;
        self.loss_at = None;
        self.rate = (0, 0, now);
        self.gap = Duration::ZERO;
        self.progress_at = now;
        self.prune();
        stranded
    }

    /// The clock has jumped, or the path was dead: what is under way from before says nothing of it.
    pub(crate) fn slept(&mut self, now: Instant) {
        self.slept_at = now;
        self.progress_at = now;
    }

    fn packet(&self, sequence: u32) -> Option<&Sent> {
        self.packets.get(sequence.checked_sub(self.base)? as usize)
    }

    fn detect(&mut self, now: Instant, news: &mut News) {
        self.loss_at = None;
        let Some((highest, highest_at)) = self.highest else { return };
        let srtt = self.rtt.srtt().unwrap_or(Duration::from_millis(100));
        let patience = AGE.max(srtt / 8) * u64::from(self.threshold / THRESHOLD.0);
        let below = highest.saturating_sub(self.base) as usize;
        for (index, packet) in self.packets.iter_mut().take(below).enumerate() {
            if packet.fate != Fate::UnderWay {
                continue;
            }
            let sequence = self.base + index as u32;
            // By age relative to what has arrived: the time from then on is the path's own.
            let due = highest_at.max(packet.at) + srtt + patience;
            if highest - sequence < self.threshold && due > now {
                self.loss_at = Some(self.loss_at.map_or(due, |at| at.min(due)));
                continue;
            }
            packet.fate = Fate::Lost;
            match std::mem::replace(&mut packet.content, Content::Fleeting) {
                Content::Report => {
                    packet.content = Content::Report;
                    continue;
                }
                Content::Fleeting => {}
                Content::Data(waiting) => news.repair.push(waiting),
            }
            news.lost += 1;
            self.counts.lost += 1;
            self.in_flight -= packet.wire;
        }
    }

    fn sample_rate(&mut self, now: Instant, bytes: u64, interval: Duration) {
        let srtt = self.rtt.srtt().unwrap_or(Duration::from_millis(100)).max(Duration::from_millis(1));
        if now - self.rate.2 > srtt * RATE_ROUNDS {
            self.rate = (0, self.rate.0, now);
        }
        // Shorter than a quarter of a round trip is a burst of reports, not a rate.
        if interval >= srtt / 4 && !interval.is_zero() {
            let rate = (bytes as f64 * 8.0 / interval.as_secs_f64()) as u64;
            self.rate.0 = self.rate.0.max(rate);
        }
    }

    fn prune(&mut self) {
        while self.packet(self.open).is_some_and(|packet| packet.fate != Fate::UnderWay) {
            self.open += 1;
        }
        let settled = (self.open - self.base) as usize;
        let excess = self.packets.len().saturating_sub(MOST);
        for _ in 0..settled.saturating_sub(KEPT).max(excess) {
            let Some(packet) = self.packets.pop_front() else { break };
            self.base += 1;
            if packet.fate == Fate::UnderWay && !matches!(packet.content, Content::Report) {
                self.in_flight -= packet.wire;
            }
        }
        self.open = self.open.max(self.base);
    }
}

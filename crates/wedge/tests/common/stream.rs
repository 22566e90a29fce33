//! A small TCP: slow start, CUBIC-like backing off to 0.7 with linear growth, SACK recovery in the manner of RFC 6675,
//! a retransmission timer. It carries segments of one size from one host to the other for as long as it runs.

use super::{Program, tcp_v6};
use clock::Instant;
use recovery::{RttConfig, RttEstimator};
use std::collections::BTreeSet;
use wire::ip::IpPacket;
use wire::{Hit, tcp};

const PORTS: (u16, u16) = (80, 4000);
/// A SYN's option: windows are shifted by so many bits (RFC 7323 §2.2).
const SHIFT: u8 = 10;
const SCALE: [u8; 4] = [1, 3, 3, SHIFT];
/// The first byte of the first segment has the number 0; the SYN before it this one.
const ISN: u32 = u32::MAX;
/// RFC 6675: so many segments above a hole show that it is a loss.
const DUPTHRESH: u64 = 3;

pub struct Sender {
    hits: (Hit, Hit),
    /// The sender's and the receiver's.
    pub ports: (u16, u16),
    segment: usize,
    /// In segments from here on: first not acknowledged, next to send for the first time.
    una: u64,
    next: u64,
    sacked: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    /// Lost ones sent again.
    again: BTreeSet<u64>,
    cwnd: f64,
    ssthresh: f64,
    /// Bytes that the peer takes beyond what it has acknowledged, as this host is told; nothing before the peer's SYN.
    window: Option<u64>,
    /// Until this is acknowledged the window falls no more.
    recover: Option<u64>,
    /// Recovery has just begun: RFC 6675 §5 (4.3) sends the first lost one again whatever is under way.
    entered: bool,
    rtt: RttEstimator,
    /// When the segment of this number was sent, to measure a round trip.
    timed: Option<(u64, Instant)>,
    timer: Option<Instant>,
    /// The window grows in recovery, too: it began with a timeout.
    slow: bool,
    /// The first segment that was not acknowledged when the timer expired last.
    timed_out: Option<u64>,
    pub retransmissions: u64,
    pub timeouts: u64,
    /// What is left of the window after a loss: CUBIC's 0.7, Reno's 0.5.
    pub beta: f64,
}

impl Sender {
    /// A program's TCP on a Sinnet host: it opens a connection, begins with the window of the route, and hears of the peer's.
    pub fn new(from: Hit, to: Hit, segment: usize) -> Self {
        Self { window: None, cwnd: f64::from(wedge::FIRST_WINDOW), ..Self::elsewhere(from, to, segment) }
    }

    /// A TCP of another host, in the middle of a connection, with a peer that takes whatever comes.
    pub fn elsewhere(from: Hit, to: Hit, segment: usize) -> Self {
        Self {
            hits: (from, to),
            ports: PORTS,
            segment,
            window: Some(u64::MAX),
            una: 0,
            next: 0,
            sacked: BTreeSet::new(),
            lost: BTreeSet::new(),
            again: BTreeSet::new(),
            cwnd: 10.0,
            ssthresh: f64::INFINITY,
            recover: None,
            entered: false,
            rtt: RttEstimator::new(RttConfig::default()),
            timed: None,
            timer: None,
            slow: false,
            timed_out: None,
            retransmissions: 0,
            timeouts: 0,
            beta: 0.7,
        }
    }

    fn pipe(&self) -> u64 {
        (self.next - self.una) - self.sacked.len() as u64 - self.lost.len() as u64 + self.again.len() as u64
    }

    fn syn(&self) -> Vec<u8> {
        let header = tcp::Header {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: ISN,
            flags: tcp::Flags::SYN,
            window: u16::MAX,
            options: &SCALE,
            ..Default::default()
        };
        tcp_v6(self.hits.0, self.hits.1, &header, &[])
    }

    fn packet(&self, number: u64) -> Vec<u8> {
        let header = tcp::Header {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: (number * self.segment as u64) as u32,
            flags: tcp::Flags::ACK,
            ..Default::default()
        };
        tcp_v6(self.hits.0, self.hits.1, &header, &vec![0; self.segment])
    }

    fn number(&self, sequence: u32) -> u64 {
        let base = self.una * self.segment as u64;
        let offset = sequence.wrapping_sub(base as u32) as i32;
        (base as i64 + i64::from(offset)).max(0) as u64 / self.segment as u64
    }

    /// As Linux has it: the least that the variation adds is 200 ms, not the least of the whole.
    fn rto(&self) -> clock::Duration {
        let srtt = self.rtt.srtt().unwrap_or_default();
        self.rtt.rto().max(srtt + clock::Duration::from_millis(200))
    }

    fn reduce(&mut self) {
        self.ssthresh = (self.cwnd * self.beta).max(2.0);
    }
}

impl Program for Sender {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        let view = IpPacket::parse(packet).unwrap();
        let Ok(segment) = tcp::Segment::parse(view.payload()) else { return };
        if segment.dst_port() != self.ports.0 {
            return;
        }
        if segment.flags().contains(tcp::Flags::SYN) {
            // Only the windows of later segments are scaled.
            self.window.get_or_insert(segment.window().into());
            self.timer = None;
            return;
        }
        if self.window.is_some_and(|window| window < u64::MAX) {
            self.window = Some(u64::from(segment.window()) << SHIFT);
        }
        let ack = self.number(segment.ack());
        for block in segment.sack_blocks() {
            (self.number(block.start)..self.number(block.end))
                .filter(|n| *n >= self.una)
                .for_each(|n| _ = self.sacked.insert(n));
        }
        if ack > self.una {
            let newly = ack - self.una;
            if let Some((_, at)) = self.timed.filter(|(number, _)| *number < ack) {
                self.rtt.sample(now - at);
                self.timed = None;
            }
            self.una = ack;
            for set in [&mut self.sacked, &mut self.lost, &mut self.again] {
                *set = set.split_off(&ack);
            }
            if self.recover.is_some_and(|recover| ack >= recover) {
                self.recover = None;
                self.slow = false;
            }
            if self.recover.is_none() || self.slow {
                // RFC 5681 §3.1 with appropriate byte counting.
                // RFC 3465 §2.2: after a timeout one segment at most, for holes that fill acknowledge many at once.
                let newly = if self.slow { 1 } else { newly };
                let growth = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
                self.cwnd += growth * newly as f64;
            }
            self.timer = Some(now + self.rto());
        }
        let sacked: Vec<u64> = self.sacked.iter().rev().copied().collect();
        if let Some(limit) = sacked.get(DUPTHRESH as usize - 1) {
            for n in self.una..*limit {
                if !self.sacked.contains(&n) {
                    self.lost.insert(n);
                }
            }
        }
        for n in &sacked {
            self.lost.remove(n);
            self.again.remove(n);
        }
        if !self.lost.is_empty() && self.recover.is_none() && self.again.is_empty() {
            self.reduce();
            self.cwnd = self.ssthresh;
            self.recover = Some(self.next);
            self.entered = true;
        }
    }

    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let Some(window) = self.window else {
            if self.timer.is_some_and(|timer| timer > now) {
                return Vec::new();
            }
            self.timer = Some(now + self.rto());
            return vec![self.syn()];
        };
        if self.timer.is_some_and(|timer| timer <= now) {
            self.timeouts += 1;
            // RFC 5681 §3.1: held where the timer expires for the same segment again.
            if self.timed_out != Some(self.una) {
                self.timed_out = Some(self.una);
                self.reduce();
            }
            self.cwnd = 1.0;
            self.slow = true;
            self.recover = Some(self.next);
            self.rtt.back_off();
            self.timed = None;
            self.again.clear();
            self.lost = (self.una..self.next).filter(|n| !self.sacked.contains(n)).collect();
            self.timer = Some(now + self.rto());
        }
        let mut out = Vec::new();
        while std::mem::take(&mut self.entered) || (self.pipe() as f64) < self.cwnd.floor() {
            let lost = self.lost.iter().find(|n| !self.again.contains(n)).copied();
            let number = match lost {
                Some(number) => {
                    self.again.insert(number);
                    self.retransmissions += 1;
                    self.timed = None;
                    number
                }
                None if (self.next + 1 - self.una) * self.segment as u64 > window => break,
                None => {
                    self.next += 1;
                    self.timed.get_or_insert((self.next - 1, now));
                    self.next - 1
                }
            };
            out.push(self.packet(number));
        }
        if !out.is_empty() {
            let rto = self.rto();
            self.timer.get_or_insert(now + rto);
        }
        out
    }

    fn deadline(&self) -> Option<Instant> {
        self.timer
    }
}

pub struct Receiver {
    hits: (Hit, Hit),
    /// As [`Sender::ports`].
    pub ports: (u16, u16),
    segment: usize,
    next: u64,
    above: BTreeSet<u64>,
    recent: u64,
    to_send: Vec<Vec<u8>>,
    /// When how many were in order.
    pub progress: Vec<(Instant, u64)>,
}

impl Receiver {
    pub fn new(from: Hit, to: Hit, segment: usize) -> Self {
        Self {
            hits: (from, to),
            ports: PORTS,
            segment,
            next: 0,
            above: BTreeSet::new(),
            recent: 0,
            to_send: Vec::new(),
            progress: vec![(Instant::ZERO, 0)],
        }
    }

    /// bit/s of payload between two instants.
    pub fn goodput(&self, from: Instant, to: Instant) -> f64 {
        let upto = |at: Instant| self.progress.iter().take_while(|(t, _)| *t <= at).last().map_or(0, |(_, n)| *n);
        (upto(to) - upto(from)) as f64 * self.segment as f64 * 8.0 / (to - from).as_secs_f64()
    }

    fn answer(&mut self, ack: u32, flags: tcp::Flags, options: &[u8]) {
        let (src_port, dst_port, window) = (self.ports.1, self.ports.0, u16::MAX);
        let header = tcp::Header { src_port, dst_port, ack, flags, window, options, ..Default::default() };
        self.to_send.push(tcp_v6(self.hits.0, self.hits.1, &header, &[]));
    }

    /// The block of consecutive segments around `n`.
    fn block(&self, n: u64) -> (u64, u64) {
        let (mut start, mut end) = (n, n + 1);
        while self.above.contains(&(start.wrapping_sub(1))) {
            start -= 1;
        }
        while self.above.contains(&end) {
            end += 1;
        }
        (start, end)
    }
}

impl Program for Receiver {
    fn receive(&mut self, now: Instant, packet: &[u8]) {
        let view = IpPacket::parse(packet).unwrap();
        let Ok(segment) = tcp::Segment::parse(view.payload()) else { return };
        if segment.dst_port() != self.ports.1 {
            return;
        }
        assert!(segment.checksum_is_right(view.src(), view.dst()));
        if segment.flags().contains(tcp::Flags::SYN) {
            self.answer(segment.seq().wrapping_add(1), tcp::Flags::SYN | tcp::Flags::ACK, &SCALE);
            return;
        }
        let expected = self.next * self.segment as u64;
        let offset = segment.seq().wrapping_sub(expected as u32) as i32;
        let number = (expected as i64 + i64::from(offset)) as u64 / self.segment as u64;
        if number > self.next {
            self.above.insert(number);
            self.recent = number;
        } else if number == self.next {
            self.next += 1;
            while self.above.remove(&self.next) {
                self.next += 1;
            }
            self.progress.push((now, self.next));
        }
        let mut options = Vec::new();
        if !self.above.is_empty() {
            let mut starts = vec![self.recent, *self.above.first().unwrap(), *self.above.last().unwrap()];
            starts.retain(|n| self.above.contains(n));
            let mut blocks: Vec<_> = starts.iter().map(|n| self.block(*n)).collect();
            blocks.dedup();
            options = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
            for (start, end) in blocks {
                for edge in [start, end] {
                    options.extend(((edge * self.segment as u64) as u32).to_be_bytes());
                }
            }
        }
        self.answer((self.next * self.segment as u64) as u32, tcp::Flags::ACK, &options);
    }

    fn send(&mut self, _now: Instant) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.to_send)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

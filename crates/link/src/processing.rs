//! Random per-packet processing delay at a host (S. Floyd and V. Jacobson, *On traffic phase effects in packet-switched
//! gateways*, 1992), which breaks the phase effects of drop-tail queues: packets of one flow would meet a full queue and those
//! of another never. Kernels on a quiet machine need it as much as simulated hosts: what they take for a packet varies by far
//! less than what a link takes.

use clock::{Duration, Instant, Rng};
use std::collections::{BTreeMap, VecDeque};

/// A packet that fills an Ethernet frame, in bytes.
const FULL_PACKET: u64 = 1500;
/// What hosts take at most, however slow the links are.
const LONGEST_PROCESSING: Duration = Duration::from_millis(1);

/// How long hosts take for a packet that they send, at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processing {
    /// Up to the time of a full packet on the slowest link of the route, and 1 ms: what hosts take.
    #[default]
    Usual,
    /// Up to the time of a full packet on the slowest link of the route, whatever that is.
    Packet,
    /// That, and up to eight times as much which is drawn anew every second or so. Random times of each packet leave the packets
    /// of a flow together, one flow's behind the other's, and whose come a little too early always meet the longer queue: only
    /// what moves one flow against the other lets flows alike share alike.
    Wander,
    /// Up to this.
    AtMost(Duration),
}

/// So many times the longest time of a packet what wanders is at most.
const WANDER: u64 = 8;
/// How long it stays, on average, in seconds.
const MEAN_STAY: f64 = 1.0;

impl Processing {
    /// The times of a host on a route whose slowest link has this rate, in bit/s.
    pub fn on_route(self, slowest: u64) -> ProcessingTimes {
        let packet = Duration::of_transmission(FULL_PACKET, slowest.max(1));
        let longest = match self {
            Self::Usual => packet.min(LONGEST_PROCESSING),
            Self::Packet | Self::Wander => packet,
            Self::AtMost(time) => time,
        };
        let wander = if self == Self::Wander { packet * WANDER } else { Duration::ZERO };
        ProcessingTimes { longest, wander, base: Duration::ZERO, until: Instant::ZERO }
    }
}

/// The random times that a host takes for the packets of a route; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessingTimes {
    longest: Duration,
    wander: Duration,
    base: Duration,
    until: Instant,
}

impl ProcessingTimes {
    /// That of the next packet.
    pub fn draw(&mut self, now: Instant, rng: &mut Rng) -> Duration {
        if !self.wander.is_zero() && now >= self.until {
            self.base = self.wander.mul_f64(rng.unit());
            self.until = now + Duration::from_secs_f64(-MEAN_STAY * (1.0 - rng.unit()).ln());
        }
        self.base + self.longest.mul_f64(rng.unit())
    }
}

/// Packets that one host is processing. They leave in order; how long each takes is the caller's to draw.
#[derive(Debug)]
pub struct ProcessingHost<P> {
    waiting: VecDeque<(Instant, P)>,
    /// When the last one leaves, or has left.
    last: Instant,
}

impl<P> Default for ProcessingHost<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), last: Instant::ZERO }
    }
}

impl<P> ProcessingHost<P> {
    /// It takes `time` for a packet, or longer if one before it is still there.
    pub fn put(&mut self, now: Instant, time: Duration, packet: P) {
        self.last = (now + time).max(self.last);
        self.waiting.push_back((self.last, packet));
    }

    /// When the next packet leaves.
    pub fn next_event(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, _)| *at)
    }

    /// The next packet that leaves by `now`, and when it does.
    pub fn poll(&mut self, now: Instant) -> Option<(Instant, P)> {
        self.next_event().filter(|at| *at <= now)?;
        self.waiting.pop_front()
    }
}

/// Packets `P` that hosts `H` are processing, each host for itself. Of what leaves at the same instant the first comes first.
#[derive(Debug)]
pub struct ProcessingJitter<H, P> {
    hosts: BTreeMap<H, ProcessingHost<(u64, P)>>,
    count: u64,
}

impl<H, P> Default for ProcessingJitter<H, P> {
    fn default() -> Self {
        Self { hosts: BTreeMap::new(), count: 0 }
    }
}

impl<H: Ord, P> ProcessingJitter<H, P> {
    /// See [`ProcessingHost::put`].
    pub fn put(&mut self, now: Instant, host: H, time: Duration, packet: P) {
        self.count += 1;
        self.hosts.entry(host).or_default().put(now, time, (self.count, packet));
    }

    /// When the next packet leaves.
    pub fn next_event(&self) -> Option<Instant> {
        self.hosts.values().filter_map(ProcessingHost::next_event).min()
    }

    /// The next packet that leaves by `now`, and when it does.
    pub fn poll(&mut self, now: Instant) -> Option<(Instant, P)> {
        let due = |host: &ProcessingHost<(u64, P)>| host.waiting.front().map(|(at, (number, _))| (*at, *number));
        let hosts = self.hosts.values_mut().filter_map(|host| Some((due(host)?, host)));
        let (_, first) = hosts.min_by_key(|(due, _)| *due)?;
        first.poll(now).map(|(at, (_, packet))| (at, packet))
    }
}

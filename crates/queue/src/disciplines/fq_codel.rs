//! FlowQueue-CoDel (RFC 8290): a queue for each flow, served in turn, those of flows that send little first, and a CoDel in each.

use clock::{Duration, Instant, Rng};

use crate::discipline::{ECN, INTERVAL, LIMIT, TARGET, parameters};
use crate::disciplines::codel::{Managed, Parameters};
use crate::reference::Reference;
use crate::rounds::Rounds;
use crate::{Cause, Dropped, QueueDiscipline, Queued, Transmitter};

pub(crate) const REFERENCE: Reference = Reference {
    name: "fq_codel",
    rule: "a queue for each flow by a hash, deficit round robin of quantum bytes, new flows first, codel in each; what does not fit is \
           taken from the longest",
    source: "RFC 8290 §4",
};

/// FlowQueue-CoDel (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// Waiting time that is fine.
    pub target: Duration,
    /// For so long the waiting time may stay above the target.
    pub interval: Duration,
    /// Most packets that may wait in all queues together; beyond, the longest loses its first.
    pub limit: u32,
    /// How many queues there are; flows whose numbers fall together share one.
    pub flows: u32,
    /// Bytes that a flow may send in its turn.
    pub quantum: u32,
    /// Marks packets that are ECN-capable instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCoDelConfig {
    /// RFC 8290 §5.2.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            limit: 10_240,
            flows: 1024,
            quantum: 1514,
            ecn: true,
        }
    }
}

parameters! { FqCoDelConfig = "fq_codel" {
    target: Time, TARGET;
    interval: Time, INTERVAL;
    limit: Limit, LIMIT;
    flows: Count, "Number of queues; flows whose numbers fall together share one.";
    quantum: Count, "Bytes that a flow may send in its turn.";
    ecn: Switch, ECN;
} }

/// The queues.
#[derive(Clone, Debug)]
pub struct FqCoDel<P> {
    config: FqCoDelConfig,
    queues: Vec<FlowQueue<P>>,
    rounds: Rounds<usize>,
    /// Which flows share a queue is a matter of chance, or a sender could choose it (RFC 8290 §4.1.1).
    salt: u64,
    packets: usize,
    bytes: u64,
    /// Bytes of the longest packet so far.
    largest: u32,
}

#[derive(Clone, Debug)]
struct FlowQueue<P> {
    managed: Managed<P>,
    is_in_rounds: bool,
}

impl<P> FqCoDel<P> {
    /// Empty queues; `rng` decides which flows share one.
    pub(crate) fn new(config: FqCoDelConfig, rng: &mut Rng) -> Self {
        let empty = || FlowQueue { managed: Managed::default(), is_in_rounds: false };
        Self {
            config,
            queues: std::iter::repeat_with(empty).take(config.flows.max(1) as usize).collect(),
            rounds: Rounds::new(config.quantum),
            salt: rng.next_u64(),
            packets: 0,
            bytes: 0,
            largest: 0,
        }
    }

    fn queue_of(&self, flow: u64) -> usize {
        // The finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit of the flow's number changes half of the others.
        let mut hash = flow.wrapping_add(self.salt);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash ^ hash >> 31) % self.queues.len() as u64) as usize
    }

    fn took(&mut self, packet: &Queued<P>) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes);
    }

    /// The first packet of the longest queue (RFC 8290 §4.1.3).
    fn take_from_longest(&mut self) -> Option<Queued<P>> {
        let longest = self.queues.iter_mut().max_by_key(|queue| queue.managed.fifo.bytes())?;
        let packet = longest.managed.fifo.pop()?;
        self.took(&packet);
        Some(packet)
    }
}

impl<P> QueueDiscipline<P> for FqCoDel<P> {
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        flow: u64,
        transmitter: Transmitter,
        drop: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        let index = self.queue_of(flow);
        let Some(queue) = self.queues.get_mut(index) else { return Err(Dropped { packet, cause: Cause::Full }) };
        self.largest = self.largest.max(packet.bytes);
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        queue.managed.fifo.push(packet);
        if !std::mem::replace(&mut queue.is_in_rounds, true) {
            self.rounds.begin(index);
        }
        while self.packets > self.config.limit as usize && !transmitter.is_idle {
            let Some(packet) = self.take_from_longest() else { break };
            drop(Dropped { packet, cause: Cause::Full });
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        let FqCoDelConfig { target, interval, ecn, .. } = self.config;
        let parameters = Parameters { target, interval };
        while let Some(index) = self.rounds.turn() {
            let queue = self.queues.get_mut(index)?;
            let (packets, bytes) = (queue.managed.fifo.packets(), queue.managed.fifo.bytes());
            let next = queue.managed.pop(now, &parameters, self.largest, ecn, drop);
            self.packets -= packets - queue.managed.fifo.packets();
            self.bytes -= bytes - queue.managed.fifo.bytes();
            if let Some(packet) = next {
                self.rounds.spend(packet.bytes);
                return Some(packet);
            }
            queue.is_in_rounds = !self.rounds.end();
        }
        None
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn clear(&mut self, _: Instant, drop: &mut impl FnMut(Queued<P>)) {
        for queue in &mut self.queues {
            queue.managed.clear(drop);
            queue.is_in_rounds = false;
        }
        self.rounds.clear();
        (self.packets, self.bytes) = (0, 0);
    }
}

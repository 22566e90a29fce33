//! A sender and a receiver of `transport`, and a network between them that the test decides about.

use std::collections::BTreeMap;

use crate::World;
use clock::{Duration, Instant, Rng};
use transport::{BlockPool, Flags, FlowConfig, Packet, Receiver, Sender};

/// Packets that are sent at once: more than any window of a test allows.
const MOST_AT_ONCE: u32 = 10_000;

/// How long a packet travels that is sent now; `None`: it is lost. Asked once for each packet, in the order of sending.
pub type Fate<'a> = dyn FnMut(Instant, &Packet) -> Option<Duration> + 'a;

/// What a test may look at between two packets.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    /// The sender is about to be asked for a packet.
    Asked(&'a Sender),
    /// It has sent this one.
    Sent(&'a Sender, &'a Packet),
    /// The receiver has taken this one.
    Received(&'a Receiver, &'a Packet),
    /// It has answered with this one.
    Answered(&'a Receiver, &'a Packet),
}

/// What has become of a flow.
pub struct Outcome {
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    /// When all data were acknowledged.
    pub finished: Option<Instant>,
}

/// Runs a flow until all data are acknowledged, or for `limit`.
///
/// # Panics
/// Where a deadline that has passed stays, or the sender sends without end.
pub fn connect(config: &FlowConfig, limit: Duration, fate: &mut Fate<'_>) -> Outcome {
    connect_observed(config, limit, fate, &mut |_| ())
}

/// [`connect`], seen by `observer`.
///
/// # Panics
/// As [`connect`], and as the observer does.
pub fn connect_observed(
    config: &FlowConfig,
    limit: Duration,
    fate: &mut Fate<'_>,
    observer: &mut dyn FnMut(Moment<'_>),
) -> Outcome {
    let mut flow = Flow {
        now: Instant::ZERO,
        sender: Sender::new(config, Rng::from_seed(1)),
        receiver: Receiver::new(config),
        pool: BlockPool::default(),
        in_flight: BTreeMap::new(),
        count: 0,
        fate,
        observer,
    };
    flow.sender.start(flow.now);
    let is_complete = flow.run_until(Instant::ZERO + limit, |flow| flow.sender.is_complete());
    Outcome { finished: is_complete.then_some(flow.now), sender: flow.sender, receiver: flow.receiver }
}

struct Flow<'a, 'b> {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    pool: BlockPool,
    /// By arrival, and by a number where that is the same.
    in_flight: BTreeMap<(Instant, u64), Packet>,
    count: u64,
    fate: &'a mut Fate<'b>,
    observer: &'a mut (dyn FnMut(Moment<'_>) + 'a),
}

impl Flow<'_, '_> {
    fn carry(&mut self, packet: Packet) {
        if let Some(delay) = (self.fate)(self.now, &packet) {
            self.count += 1;
            self.in_flight.insert((self.now + delay, self.count), packet);
        } else {
            self.pool.take(packet.pooled());
        }
    }

    fn timer(&self) -> Option<Instant> {
        self.sender.deadlines().into_iter().min().filter(|at| *at != Instant::FAR_FUTURE)
    }
}

impl World for Flow<'_, '_> {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.first_key_value().map(|((at, _), _)| *at)
    }

    /// One packet at a time, so that each answer is sent as it would be.
    fn deliver(&mut self) {
        let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) else { return };
        let packet = entry.remove();
        if packet.flags.has(Flags::ACK) {
            self.sender.handle_answer(self.now, &packet, &mut self.pool);
        } else {
            self.receiver.handle_input(self.now, &packet);
            (self.observer)(Moment::Received(&self.receiver, &packet));
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        [self.timer(), self.receiver.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timers(&mut self) {
        let now = self.now;
        if self.timer().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
            assert!(self.timer().is_none_or(|at| at > now), "a deadline of the sender that has passed stays");
        }
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            self.receiver.handle_timeout(now);
            assert!(self.receiver.poll_timeout().is_none_or(|at| at > now), "a deadline of the receiver stays");
        }
    }

    fn collect(&mut self) {
        for burst in 0.. {
            assert!(burst < MOST_AT_ONCE, "sends without end");
            (self.observer)(Moment::Asked(&self.sender));
            let Some(packet) = self.sender.poll_transmit(self.now) else { break };
            (self.observer)(Moment::Sent(&self.sender, &packet));
            self.carry(packet);
        }
        while let Some(answer) = self.receiver.poll_transmit(&mut self.pool) {
            (self.observer)(Moment::Answered(&self.receiver, &answer));
            self.carry(answer);
        }
    }
}

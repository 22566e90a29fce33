//! The engine: takes the next event, hands packets on, and counts.
//!
//! Components are links and timers, each with at most one pending event that counts. A timer that moves later, as the
//! retransmission timer does with every acknowledgment, keeps its event and is looked at when that comes; only one
//! that moves earlier gets another. Nothing is allocated and nothing looked up by name while the run goes on.
//!
//! What is on the way of packets beside links is a station, see [`crate::stations`].

use std::collections::BTreeMap;

use clock::{Duration, Histogram, Instant, Streams};
use link::{DropReason, Dropped, Ecn, Link, LinkStatistics};
use transport::mhip::{PathArrivals, PathCounters, PathStatus};
use transport::{BlockPool, Flags, Packet, Receiver, ReceiverStatistics, Sender, SenderCounters};

use crate::RunOptions;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::queue::{Event, EventQueue};
use crate::report;
use crate::result::{RunResult, Sample};
use crate::stations::{ProcessingOf, Stations};

/// The end of a route in the table of hops.
const END: u32 = u32::MAX;
/// How often queues are sampled for their percentiles.
const QUEUE_INTERVAL: Duration = Duration::from_millis(10);

/// A run under way.
pub struct Simulation {
    pub(crate) now: Instant,
    pub(crate) end: Instant,
    pub(crate) warm_up: Instant,
    pub(crate) seed: u64,
    pub(crate) links: Vec<LinkSlot>,
    pub(crate) link_infos: Vec<LinkInfo>,
    pub(crate) senders: Vec<SenderSlot>,
    pub(crate) receivers: Vec<ReceiverSlot>,
    pub(crate) flows: Vec<FlowSlot>,
    /// The links of all routes one after the other, each with an [`END`].
    pub(crate) hops: Vec<u32>,
    pub(crate) pool: BlockPool,
    pub(crate) queue: EventQueue,
    pub(crate) stations: Stations,
    /// The components are the timers of flows, stations, and links from this number on.
    first_link: u32,
    agenda: Vec<(Instant, Task)>,
    done: usize,
    pub(crate) digest: u64,
    pub(crate) events: u64,
    pub(crate) series: Vec<Sample>,
}

pub(crate) struct LinkSlot {
    pub(crate) link: Link<Packet>,
    /// The time of its pending event.
    armed: Instant,
}

/// What is seldom needed of a link.
pub(crate) struct LinkInfo {
    pub(crate) name: String,
    pub(crate) queue: Histogram,
    /// Counters when the warm-up ended.
    pub(crate) before: LinkStatistics,
}

pub(crate) struct SenderSlot {
    pub(crate) sender: Sender,
    first_hop: u32,
    armed: [Instant; 2],
}

pub(crate) struct ReceiverSlot {
    pub(crate) receiver: Receiver,
    first_hop: u32,
    armed: Instant,
}

/// What is seldom needed of a flow.
pub(crate) struct FlowSlot {
    pub(crate) name: String,
    pub(crate) start: Instant,
    pub(crate) finished: Option<Instant>,
    /// Measurement begins here: at the start, or when the warm-up ends.
    pub(crate) from: Instant,
    pub(crate) losses: u64,
    pub(crate) headers: u32,
    pub(crate) payload: u32,
    pub(crate) data: Option<u64>,
    pub(crate) before: Before,
    /// Of a flow with several paths.
    pub(crate) paths: Vec<PathSlot>,
    /// The association in which it travels, and its place among the flows there.
    pub(crate) inside: Option<(u32, u32)>,
}

/// One of several paths of a flow.
#[derive(Clone, Default)]
pub(crate) struct PathSlot {
    first_hop: u32,
    first_hop_back: u32,
    /// Data packets lost.
    pub(crate) losses: u64,
    pub(crate) before: PathBefore,
}

/// Counters of a flow when the warm-up ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) delivered: u64,
    pub(crate) losses: u64,
    pub(crate) sender: SenderCounters,
    pub(crate) receiver: ReceiverStatistics,
}

/// Counters of a path when the warm-up ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathBefore {
    pub(crate) losses: u64,
    pub(crate) sender: PathCounters,
    pub(crate) receiver: PathArrivals,
}

/// What happens again and again.
struct Periodic {
    next: Instant,
    interval: Duration,
}

/// What is known to happen from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Start(u32),
    Stop(u32),
    WarmUp,
    Queues,
    Sample,
}

impl Simulation {
    /// Sets `plan` up for a run with `seed`.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let streams = Streams::new(seed);
        let links = plan.links.iter().map(|planned| LinkSlot {
            link: Link::new(planned.config.clone(), streams.stream(&format!("link {}", planned.name)))
                .keeping_discarded(),
            armed: Instant::FAR_FUTURE,
        });
        let link_infos = plan.links.iter().map(|planned| LinkInfo {
            name: planned.name.clone(),
            queue: Histogram::default(),
            before: LinkStatistics::default(),
        });
        let end = Instant::ZERO + plan.duration;
        let mut simulation = Self {
            now: Instant::ZERO,
            end,
            warm_up: Instant::ZERO + plan.warm_up,
            seed,
            links: links.collect(),
            link_infos: link_infos.collect(),
            senders: Vec::with_capacity(plan.flows.len()),
            receivers: Vec::with_capacity(plan.flows.len()),
            flows: Vec::with_capacity(plan.flows.len()),
            hops: Vec::new(),
            pool: BlockPool::default(),
            queue: EventQueue::default(),
            stations: Stations::new(plan, &streams),
            first_link: 0,
            agenda: Vec::new(),
            done: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            events: 0,
            series: Vec::new(),
        };
        simulation.first_link = plan.flows.len() as u32 * TIMERS + simulation.stations.count();
        let mut routes = Routes::default();
        for (index, association) in plan.associations.iter().enumerate() {
            let stations = &simulation.stations;
            let ways = association.paths.iter().enumerate().map(|(path, planned)| {
                [(0, &planned.forward), (1, &planned.reverse)].map(|(end, links)| {
                    let processing = stations.processing(ProcessingOf::Path(index, path, end)).into_iter();
                    routes.add(processing.chain(links.iter().copied()).chain([stations.end(index, 1 - end)]).collect())
                })
            });
            let first_hops = ways.collect();
            simulation.stations.associations[index].first_hops = first_hops;
        }
        for (index, flow) in plan.flows.iter().enumerate() {
            let random = streams.stream(&format!("flow {}", flow.name));
            let path = |(forward, back)| PathSlot { first_hop: forward, first_hop_back: back, ..PathSlot::default() };
            let mut paths: Vec<PathSlot> = match flow.association {
                // All its packets leave at the ends of the association.
                Some(association) => {
                    let into = |end| simulation.stations.end(association as usize, end);
                    vec![path((routes.add(vec![into(0)]), routes.add(vec![into(1)])))]
                }
                None => flow
                    .paths
                    .iter()
                    .enumerate()
                    .map(|(number, planned)| {
                        let mut way = |end, links: &Vec<u32>| {
                            let processing = simulation.stations.processing(ProcessingOf::Flow(index, number, end));
                            routes.add(processing.into_iter().chain(links.iter().copied()).collect())
                        };
                        path((way(0, &planned.forward), way(1, &planned.reverse)))
                    })
                    .collect(),
            };
            if paths.is_empty() {
                paths.push(path((routes.add(Vec::new()), routes.add(Vec::new()))));
            }
            let PathSlot { first_hop, first_hop_back, .. } = paths[0];
            let sender = Sender::new(&flow.traffic, random);
            simulation.senders.push(SenderSlot { sender, first_hop, armed: [Instant::FAR_FUTURE; 2] });
            let receiver = Receiver::new(&flow.traffic);
            let receiver_knows_paths = !receiver.paths().is_empty();
            simulation.receivers.push(ReceiverSlot { receiver, first_hop: first_hop_back, armed: Instant::FAR_FUTURE });
            let inside = flow.association.map(|association| simulation.stations.enter(association, index as u32, flow));
            let index = index as u32;
            simulation.flows.push(FlowSlot {
                name: flow.name.clone(),
                start: flow.start,
                finished: None,
                from: flow.start,
                losses: 0,
                headers: flow.traffic.packet_size().saturating_sub(flow.traffic.payload()),
                payload: flow.traffic.payload(),
                data: flow.traffic.data(),
                before: Before::default(),
                paths: match flow.association {
                    Some(association) => vec![PathSlot::default(); plan.associations[association as usize].paths.len()],
                    None if receiver_knows_paths => paths,
                    None => Vec::new(),
                },
                inside,
            });
            simulation.agenda.push((flow.start, Task::Start(index)));
            if let Some(stop) = flow.stop {
                simulation.agenda.push((stop, Task::Stop(index)));
            }
        }
        simulation.hops = routes.hops;
        if !plan.warm_up.is_zero() {
            simulation.agenda.push((simulation.warm_up, Task::WarmUp));
        }
        simulation
    }

    /// Runs to the end and reports.
    pub fn run(self, options: &RunOptions) -> RunResult {
        self.run_observed(options, &mut ())
    }

    /// Runs to the end, shows every packet to `observer`, and reports.
    pub fn run_observed<O: Observer>(mut self, options: &RunOptions, observer: &mut O) -> RunResult {
        self.agenda.sort_unstable();
        // Not more than a few hundred thousand samples of queues a second, however many links.
        let queues = QUEUE_INTERVAL * (self.links.len() as u64 / 1000 + 1);
        let mut queues = Periodic { next: Instant::ZERO + queues / 2, interval: queues };
        let samples = options.interval.filter(|interval| !interval.is_zero()).unwrap_or(Duration::MAX);
        let mut samples = Periodic { next: Instant::ZERO + samples, interval: samples };
        loop {
            let planned = self.agenda.get(self.done).copied();
            let (at, task) = [Some((queues.next, Task::Queues)), Some((samples.next, Task::Sample)), planned]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or((Instant::FAR_FUTURE, Task::Queues));
            if at > self.end {
                break;
            }
            self.run_until(at, observer);
            self.now = at;
            self.perform(task, observer);
            match task {
                Task::Queues => queues.next += queues.interval,
                Task::Sample => {
                    self.series.push(report::sample(&self, options.flows.as_deref()));
                    samples.next += samples.interval;
                }
                Task::Start(_) | Task::Stop(_) | Task::WarmUp => self.done += 1,
            }
        }
        // What happens at the very end still counts.
        self.run_until(self.end + Duration::from_nanos(1), observer);
        self.now = self.end;
        report::report(&mut self)
    }

    /// Handles all events before `limit`.
    fn run_until<O: Observer>(&mut self, limit: Instant, observer: &mut O) {
        let first_link = self.first_link;
        while let Some(Event { at, component, .. }) = self.queue.pop_before(limit) {
            self.now = at;
            self.events += 1;
            if component >= first_link {
                self.link_event(component - first_link, observer);
            } else {
                self.timer_event(component, observer);
            }
        }
    }

    #[inline]
    fn link_event<O: Observer>(&mut self, index: u32, observer: &mut O) {
        let now = self.now;
        let component = self.first_link + index;
        let slot = &mut self.links[index as usize];
        if slot.armed != now {
            return; // another packet came first, and brought an event of its own
        }
        let packet = slot.link.poll_ecn(now);
        match slot.link.next_event() {
            Some(next) => {
                slot.armed = next;
                self.queue.push_in_turn(next, component);
            }
            None => slot.armed = Instant::FAR_FUTURE,
        }
        if slot.link.has_discarded() {
            self.collect_lost(index, observer);
        }
        if let Some((mut packet, marked)) = packet {
            packet.flags = packet.flags.with_if(Flags::MARKED, marked);
            self.deliver(index, packet, observer);
        }
    }

    #[cold]
    fn collect_lost<O: Observer>(&mut self, index: u32, observer: &mut O) {
        while let Some(Dropped { packet, reason }) = self.links[index as usize].link.poll_discarded(self.now) {
            self.lose(index, &packet, reason, observer);
        }
    }

    #[cold]
    fn lose<O: Observer>(&mut self, link: u32, packet: &Packet, reason: DropReason, observer: &mut O) {
        observer.dropped(self.now, link, packet, reason);
        if self.flows[packet.flow as usize].inside.is_some() {
            return self.lose_outer(packet);
        }
        self.pool.take(packet.pooled());
        let flow = &mut self.flows[packet.flow as usize];
        flow.losses += 1;
        if !packet.flags.has(Flags::ACK)
            && let Some(path) = flow.paths.get_mut(usize::from(packet.path))
        {
            path.losses += 1;
        }
    }

    /// `packet` has come out of `link`: to the next link of its route, or to its endpoint.
    #[inline]
    fn deliver<O: Observer>(&mut self, link: u32, mut packet: Packet, observer: &mut O) {
        observer.delivered(self.now, link, &packet, self.pool.get(packet.pooled()));
        packet.hop += 1;
        while self.hops[packet.hop as usize] != END {
            if !self.carry(&packet, observer) {
                self.offer(packet, observer);
                return;
            }
            packet.hop += 1;
        }
        self.arrive(packet, observer);
    }

    /// `packet` is where its route ends.
    #[inline]
    pub(crate) fn arrive<O: Observer>(&mut self, packet: Packet, observer: &mut O) {
        let what = u64::from(packet.position) << 32 ^ u64::from(packet.flow) << 8 ^ u64::from(packet.flags.0);
        self.digest = (self.digest ^ self.now.as_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ what;
        if packet.flags.has(Flags::ACK) {
            self.acknowledge(packet, observer);
        } else {
            self.receive(packet, observer);
        }
    }

    #[inline]
    fn receive<O: Observer>(&mut self, packet: Packet, observer: &mut O) {
        let now = self.now;
        let slot = &mut self.receivers[packet.flow as usize];
        slot.receiver.handle_input(now, &packet);
        self.answer(packet.flow, observer);
    }

    /// Sends the acknowledgment of a receiver, if one is due, and sets its timer.
    #[inline]
    fn answer<O: Observer>(&mut self, flow: u32, observer: &mut O) {
        let slot = &mut self.receivers[flow as usize];
        if let Some(mut ack) = slot.receiver.poll_transmit(&mut self.pool) {
            ack.flow = flow;
            ack.hop = if ack.path == 0 { slot.first_hop } else { self.route(&ack, |path| path.first_hop_back) };
            self.set_out(ack, observer);
        } else if let Some(at) = slot.receiver.poll_timeout()
            && at < slot.armed
        {
            slot.armed = at;
            let component = flow * TIMERS + TIMER_OF_RECEIVER;
            self.queue.push_timer(at, component);
        }
    }

    #[inline]
    fn acknowledge<O: Observer>(&mut self, packet: Packet, observer: &mut O) {
        let slot = &mut self.senders[packet.flow as usize];
        slot.sender.handle_answer(self.now, &packet, &mut self.pool);
        self.send(packet.flow, observer);
    }

    /// Sends what a sender has to send, and sets its timers.
    #[inline]
    fn send<O: Observer>(&mut self, flow: u32, observer: &mut O) {
        let now = self.now;
        loop {
            let slot = &mut self.senders[flow as usize];
            let Some(mut packet) = slot.sender.poll_transmit(now) else { break };
            packet.flow = flow;
            packet.hop = if packet.path == 0 { slot.first_hop } else { self.route(&packet, |path| path.first_hop) };
            self.set_out(packet, observer);
        }
        let first = flow * TIMERS;
        let slot = &mut self.senders[flow as usize];
        let deadlines = slot.sender.deadlines();
        for (timer, (armed, at)) in (first..).zip(slot.armed.iter_mut().zip(deadlines)) {
            if at < *armed {
                *armed = at;
                self.queue.push_timer(at, timer);
            }
        }
        if slot.sender.is_complete() && self.flows[flow as usize].finished.is_none() {
            self.flows[flow as usize].finished = Some(now);
        }
    }

    /// The first hop of a packet that travels on another path than the first.
    #[inline(never)]
    fn route(&self, packet: &Packet, hop: impl Fn(&PathSlot) -> u32) -> u32 {
        let flow = &self.flows[packet.flow as usize];
        flow.paths.get(usize::from(packet.path)).or(flow.paths.first()).map_or(0, hop)
    }

    /// Gives a packet of an endpoint to the first link that takes time, or else to the last one: what an endpoint sends comes to
    /// no other before it is done.
    #[inline]
    fn set_out<O: Observer>(&mut self, mut packet: Packet, observer: &mut O) {
        let links = self.links.len();
        while self.hops.get(packet.hop as usize + 1).is_some_and(|next| (*next as usize) < links)
            && self.carry(&packet, observer)
        {
            packet.hop += 1;
        }
        self.offer(packet, observer);
    }

    /// Whether `packet` is at the end of its present link already, because that takes no time: an event would cost as much as one
    /// of a link that does.
    #[inline]
    fn carry<O: Observer>(&mut self, packet: &Packet, observer: &mut O) -> bool {
        let index = self.hops[packet.hop as usize];
        let carried =
            self.links.get_mut(index as usize).is_some_and(|slot| slot.link.carry_at_once(self.now, packet.bytes));
        if carried {
            observer.offered(self.now, index, packet);
            observer.delivered(self.now, index, packet, self.pool.get(packet.pooled()));
        }
        carried
    }

    /// Gives `packet` to the link of its present hop.
    #[inline]
    pub(crate) fn offer<O: Observer>(&mut self, packet: Packet, observer: &mut O) {
        let index = self.hops[packet.hop as usize];
        let first_link = self.first_link;
        let Some(slot) = self.links.get_mut(index as usize) else {
            return self.call_at(index, packet, observer);
        };
        observer.offered(self.now, index, &packet);
        match slot.link.offer_of(self.now, packet, packet.bytes, flow_of(&packet), ecn_of(&packet)) {
            Ok(()) => {
                if (slot.armed == Instant::FAR_FUTURE || slot.link.is_unsteady())
                    && let Some(at) = slot.link.next_event().filter(|at| *at < slot.armed)
                {
                    slot.armed = at;
                    self.queue.push_in_turn(at, first_link + index);
                }
            }
            Err(Dropped { packet, reason }) => self.lose(index, &packet, reason, observer),
        }
    }

    #[inline(never)]
    fn timer_event<O: Observer>(&mut self, timer: u32, observer: &mut O) {
        let (now, flow) = (self.now, timer / TIMERS);
        if flow as usize >= self.flows.len() {
            return self.station_event(timer - self.flows.len() as u32 * TIMERS, observer);
        }
        let kind = timer % TIMERS;
        if kind == TIMER_OF_RECEIVER {
            let slot = &mut self.receivers[flow as usize];
            if now >= slot.armed {
                slot.armed = Instant::FAR_FUTURE;
            }
            slot.receiver.handle_timeout(now);
            self.answer(flow, observer);
            return;
        }
        let slot = &mut self.senders[flow as usize];
        let Some(armed) = slot.armed.get_mut(kind as usize) else { return };
        if now >= *armed {
            *armed = Instant::FAR_FUTURE;
        }
        if slot.sender.deadlines().iter().any(|deadline| now >= *deadline) {
            slot.sender.handle_timeout(now);
        }
        self.send(flow, observer);
    }

    fn perform<O: Observer>(&mut self, task: Task, observer: &mut O) {
        let now = self.now;
        match task {
            Task::Start(flow) => {
                self.open_association(flow);
                self.senders[flow as usize].sender.start(now);
                self.send(flow, observer);
            }
            Task::Stop(flow) => self.senders[flow as usize].sender.stop(),
            Task::WarmUp => {
                let flows = self.flows.iter_mut().zip(&mut self.senders).zip(&self.receivers);
                for ((flow, sender), receiver) in flows {
                    flow.from = flow.from.max(now);
                    flow.before = Before {
                        delivered: receiver.receiver.delivered(),
                        losses: flow.losses,
                        sender: sender.sender.counters(),
                        receiver: *receiver.receiver.statistics(),
                    };
                    let known = self.stations.path_states(now, flow.inside);
                    let known = known.unwrap_or_else(|| path_states(sender, receiver));
                    for (path, (status, arrivals)) in flow.paths.iter_mut().zip(known) {
                        let (losses, sender) = (path.losses, status.counters);
                        path.before = PathBefore { losses, sender, receiver: arrivals };
                    }
                    if flow.start < now {
                        sender.sender.restart_averages(now);
                    }
                }
                for (slot, info) in self.links.iter_mut().zip(&mut self.link_infos) {
                    info.before = *slot.link.observe(now);
                    info.queue = Histogram::default();
                }
            }
            Task::Queues => {
                for (slot, info) in self.links.iter_mut().zip(&mut self.link_infos) {
                    slot.link.observe(now);
                    info.queue.record(u64::from(slot.link.waiting_packets()));
                }
                if !observer.go_on(now) {
                    self.end = now;
                }
            }
            Task::Sample => {}
        }
    }
}

/// The places of routes in the table of hops. Routes alike share one, so that it stays small.
#[derive(Default)]
struct Routes {
    places: BTreeMap<Vec<u32>, u32>,
    hops: Vec<u32>,
}

impl Routes {
    /// The place of a route over these links and stations.
    fn add(&mut self, way: Vec<u32>) -> u32 {
        let Self { places, hops } = self;
        *places.entry(way).or_insert_with_key(|way| {
            let start = hops.len() as u32;
            hops.extend_from_slice(way);
            hops.push(END);
            start
        })
    }
}

/// The paths of a flow of a protocol that knows of several.
pub(crate) fn path_states(sender: &SenderSlot, receiver: &ReceiverSlot) -> Vec<(PathStatus, PathArrivals)> {
    sender.sender.paths().into_iter().zip(receiver.receiver.paths().iter().copied()).collect()
}

/// What queues tell apart: the flows, their paths, and there and back.
#[inline]
fn flow_of(packet: &Packet) -> u64 {
    u64::from(packet.flow) | u64::from(packet.path) << 32 | u64::from(packet.flags.has(Flags::ACK)) << 40
}

#[inline]
fn ecn_of(packet: &Packet) -> Ecn {
    match (packet.flags.has(Flags::ECN_CAPABLE), packet.flags.has(Flags::MARKED)) {
        (false, _) => Ecn::NotEct,
        (true, false) => Ecn::Ect0,
        (true, true) => Ecn::Ce,
    }
}

/// Timers of a flow: two of the sender, one of the receiver; one number is left over.
pub(crate) const TIMERS: u32 = 4;
const TIMER_OF_RECEIVER: u32 = 2;

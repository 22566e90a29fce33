//! What is on the way of packets beside links: the ends of associations, where packets of flows go in and outer packets come
//! out, and the desks of hosts that take a random time for each packet. A route names a station by a number after those of
//! the links.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng, Streams};
use transport::mhip::{PathArrivals, PathStatus};
use transport::{Flags, NO_BLOCKS, Packet, Sender};

use crate::association::{Content, End, Inner, Inside, Outer, bare};
use crate::observer::Observer;
use crate::plan::{Plan, PlannedFlow, PlannedPath};
use crate::simulation::{Simulation, TIMERS};

/// A host takes at most the time of so many bytes on the slowest link of a route for a packet ...
const FULL_PACKET: u64 = 1500;
/// ... and at most this.
const LONGEST_PROCESSING: Duration = Duration::from_millis(1);
/// Marks the number of an outer packet, where that of blocks stands in a packet.
const OUTER: u32 = 1 << 30;
/// The ends of an association.
const ENDS: usize = 2;

/// All stations.
pub(crate) struct Stations {
    pub(crate) associations: Vec<AssociationSlot>,
    desks: Vec<Desk>,
    /// Which of the desks is whose, in order.
    places: Vec<DeskOf>,
    /// How many links there are.
    links: u32,
    under_way: Vec<Option<Outer>>,
    free: Vec<u32>,
}

/// Whose a desk is: of one end (0 where data begin) of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeskOf {
    /// Path of an association.
    Path(usize, usize, usize),
    /// Path of a flow that is in none.
    Flow(usize, usize, usize),
}

/// An association.
pub(crate) struct AssociationSlot {
    ends: [End; ENDS],
    inner: Vec<Inner>,
    /// By path, from each end.
    pub(crate) first_hops: Vec<[u32; ENDS]>,
    armed: [Instant; ENDS],
    is_open: bool,
}

/// Where packets of one host wait for their random time. They leave in order.
struct Desk {
    longest: Duration,
    last: Instant,
    rng: Rng,
    waiting: VecDeque<(Instant, Packet)>,
}

impl Stations {
    /// Those that `plan` asks for.
    pub(crate) fn new(plan: &Plan, streams: &Streams) -> Self {
        let mut desks = Vec::new();
        let mut places = Vec::new();
        let mut add = |of: DeskOf, links: &[u32], name: &str, number: usize| {
            let rates = links.iter().filter_map(|link| plan.links.get(*link as usize)?.config.rate);
            let Some(slowest) = rates.min() else { return };
            let longest = Duration::of_transmission(FULL_PACKET, slowest).min(LONGEST_PROCESSING);
            let rng = streams.stream(&format!("desk {name} {number}"));
            desks.push(Desk { longest, last: Instant::ZERO, rng, waiting: VecDeque::new() });
            places.push(of);
        };
        let mut both = |paths: &[PlannedPath], name: &str, of: &dyn Fn(usize, usize) -> DeskOf| {
            for (number, path) in paths.iter().enumerate() {
                add(of(number, 0), &path.forward, name, 2 * number);
                add(of(number, 1), &path.reverse, name, 2 * number + 1);
            }
        };
        for (index, association) in plan.associations.iter().enumerate() {
            both(&association.paths, &association.name, &|path, end| DeskOf::Path(index, path, end));
        }
        for (index, flow) in plan.flows.iter().enumerate().filter(|(_, flow)| flow.processing) {
            both(&flow.paths, &flow.name, &|path, end| DeskOf::Flow(index, path, end));
        }
        let mut flows = vec![0; plan.associations.len()];
        for association in plan.flows.iter().filter_map(|flow| flow.association) {
            flows[association as usize] += 1;
        }
        let associations = plan.associations.iter().zip(flows).map(|(association, flows)| {
            let delay = |links: &[u32]| {
                let links = links.iter().filter_map(|link| plan.links.get(*link as usize));
                links.fold(Duration::ZERO, |sum, link| sum + link.config.delay)
            };
            let ends = [0, 1].map(|end| {
                let way = |path: &PlannedPath| delay(if end == 0 { &path.forward } else { &path.reverse });
                let delays: Vec<Duration> = association.paths.iter().map(way).collect();
                let rng = streams.stream(&format!("association {} {end}", association.name));
                End::new(end, &association.config, &delays, flows, rng)
            });
            let armed = [Instant::FAR_FUTURE; ENDS];
            AssociationSlot { ends, inner: Vec::new(), first_hops: Vec::new(), armed, is_open: false }
        });
        Self {
            associations: associations.collect(),
            desks,
            places,
            links: plan.links.len() as u32,
            under_way: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        (self.associations.len() * ENDS + self.desks.len()) as u32
    }

    /// How routes call an end of an association.
    pub(crate) fn end(&self, association: usize, end: usize) -> u32 {
        self.links + (association * ENDS + end) as u32
    }

    /// How routes call a desk, if the host has one there.
    pub(crate) fn desk(&self, of: DeskOf) -> Option<u32> {
        let place = self.places.binary_search(&of).ok()?;
        Some(self.links + (self.associations.len() * ENDS + place) as u32)
    }

    /// A flow travels in an association; its place there.
    pub(crate) fn enter(&mut self, association: u32, flow: u32, planned: &PlannedFlow) -> (u32, u32) {
        let inner = &mut self.associations[association as usize].inner;
        let number = inner.len() as u32;
        inner.push(Inner::new(flow, number, &planned.traffic));
        (association, number)
    }

    /// The paths of a flow that travels in an association.
    pub(crate) fn path_states(
        &self,
        now: Instant,
        inside: Option<(u32, u32)>,
    ) -> Option<Vec<(PathStatus, PathArrivals)>> {
        let (association, number) = inside?;
        let slot = self.associations.get(association as usize)?;
        let (inner, [from, to]) = (slot.inner.get(number as usize)?, &slot.ends);
        Some(from.path_states(now, inner).into_iter().zip(to.arrivals(inner)).collect())
    }

    fn put(&mut self, outer: Outer) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            (self.under_way.len() - 1) as u32
        });
        self.under_way[index as usize] = Some(outer);
        index | OUTER
    }

    fn take(&mut self, number: u32) -> Option<Outer> {
        let index = number & !OUTER;
        let outer = self.under_way.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(outer)
    }
}

/// Whether a packet at an end of an association comes from the network.
fn is_outer(packet: &Packet) -> bool {
    packet.blocks >> OUTER.trailing_zeros() == 1
}

impl Simulation {
    /// `packet` has come to the station that routes call `index`; if there is none, its route leads nowhere.
    #[inline(never)]
    pub(crate) fn call_at<O: Observer>(&mut self, index: u32, packet: Packet, observer: &mut O) {
        let Some(station) = index.checked_sub(self.links.len() as u32).map(|station| station as usize) else { return };
        let ends = self.stations.associations.len() * ENDS;
        if station >= ends {
            self.process(station - ends, packet);
        } else if is_outer(&packet) {
            self.emerge(station, packet, observer);
        } else {
            self.submerge(station, packet, observer);
        }
    }

    /// The time of a station has come.
    pub(crate) fn station_event<O: Observer>(&mut self, station: u32, observer: &mut O) {
        let (station, now) = (station as usize, self.now);
        let ends = self.stations.associations.len() * ENDS;
        if station >= ends {
            return self.leave_desk(station - ends, observer);
        }
        let Some(slot) = self.stations.associations.get_mut(station / ENDS) else { return };
        let armed = &mut slot.armed[station % ENDS];
        if now >= *armed {
            *armed = Instant::FAR_FUTURE;
        }
        let end = &mut slot.ends[station % ENDS];
        let is_due = end.next_deadline(now, false) <= now;
        if is_due {
            end.handle_timeout(now);
        }
        self.look_after(station, is_due, observer);
    }

    /// The association in which this flow travels is there when its first flow starts.
    pub(crate) fn open_association(&mut self, flow: u32) {
        let (now, Some((association, _))) = (self.now, self.flows[flow as usize].inside) else { return };
        let slot = &mut self.stations.associations[association as usize];
        if std::mem::replace(&mut slot.is_open, true) {
            return;
        }
        for end in 0..ENDS {
            let slot = &mut self.stations.associations[association as usize];
            slot.ends[end].open(now);
            self.arm(association as usize * ENDS + end, false);
        }
    }

    /// An outer packet was dropped: what of a flow was in it is the flow's loss.
    #[cold]
    pub(crate) fn lose_outer(&mut self, packet: &Packet) {
        let Some(Outer { path, content: Content::Data(inside, ..), .. }) = self.stations.take(packet.blocks) else {
            return;
        };
        let flow = &mut self.flows[inside.packet.flow as usize];
        flow.losses += 1;
        if !inside.packet.flags.has(Flags::ACK)
            && let Some(path) = flow.paths.get_mut(usize::from(path))
        {
            path.losses += 1;
        }
    }

    /// A packet of a flow goes into its association.
    fn submerge<O: Observer>(&mut self, station: usize, packet: Packet, observer: &mut O) {
        let Some((_, number)) = self.flows[packet.flow as usize].inside else { return };
        let (now, end) = (self.now, station % ENDS);
        let blocks = (packet.pooled() != NO_BLOCKS).then(|| Box::new(self.pool.take(packet.blocks)));
        let slot = &mut self.stations.associations[station / ENDS];
        let meta = slot.inner[number as usize].meta(end, &packet);
        slot.ends[end].handle_application(now, meta, Inside { packet: bare(packet), blocks });
        self.look_after(station, false, observer);
    }

    /// An outer packet has come to the other end.
    fn emerge<O: Observer>(&mut self, station: usize, packet: Packet, observer: &mut O) {
        let Some(outer) = self.stations.take(packet.blocks) else { return };
        let inside = match &outer.content {
            Content::Data(inside, ..) => self.flows[inside.packet.flow as usize].inside,
            _ => None,
        };
        let slot = &mut self.stations.associations[station / ENDS];
        let inner = inside.and_then(|(_, number)| slot.inner.get(number as usize));
        slot.ends[station % ENDS].handle_network(self.now, outer, packet.flags.has(Flags::MARKED), inner);
        self.look_after(station, false, observer);
    }

    /// Takes what an end has to send and for programs, and sets its timer.
    fn look_after<O: Observer>(&mut self, station: usize, was_called: bool, observer: &mut O) {
        let (association, end) = (station / ENDS, station % ENDS);
        let now = self.now;
        let slot = &mut self.stations.associations[association];
        let flow = slot.inner.first().map_or(0, |inner| inner.flow);
        let mut out = std::mem::take(&mut slot.ends[end].out);
        let mut delivered = std::mem::take(&mut slot.ends[end].delivered);
        for outer in out.drain(..) {
            let slot = &self.stations.associations[association];
            let Some(hops) = slot.first_hops.get(usize::from(outer.path)) else { continue };
            let flags =
                Flags::default().with_if(Flags::ACK, end == 1).with_if(Flags::ECN_CAPABLE, outer.is_ecn_capable());
            let (hop, position, path, bytes) = (hops[end], outer.number, outer.path, outer.wire as u32);
            let blocks = self.stations.put(outer);
            self.offer(Packet { time: now, flow, hop, position, blocks, bytes, flags, path }, observer);
        }
        for Inside { mut packet, blocks } in delivered.drain(..) {
            if let Some(blocks) = blocks {
                packet.blocks = self.pool.put(*blocks);
            }
            if end == 0 {
                self.tell_window(association, &packet);
            }
            self.arrive(packet, observer);
        }
        let slot = &mut self.stations.associations[association];
        slot.ends[end].out = out;
        slot.ends[end].delivered = delivered;
        self.arm(station, was_called);
    }

    /// The TCP that this acknowledgment goes to hears of the window that its host makes of the receiver's.
    fn tell_window(&mut self, association: usize, ack: &Packet) {
        let Some((_, number)) = self.flows[ack.flow as usize].inside else { return };
        let slot = &mut self.stations.associations[association];
        let Sender::Tcp(tcp) = &mut self.senders[ack.flow as usize].sender else { return };
        let inner = &slot.inner[number as usize];
        let bytes = slot.ends[0].window(self.now, inner, ack);
        tcp.set_receiver_window(bytes / u64::from(self.flows[ack.flow as usize].payload));
    }

    fn arm(&mut self, station: usize, was_called: bool) {
        let slot = &mut self.stations.associations[station / ENDS];
        let at = slot.ends[station % ENDS].next_deadline(self.now, was_called);
        let armed = &mut slot.armed[station % ENDS];
        if at < *armed {
            *armed = at;
            let component = self.flows.len() as u32 * TIMERS + station as u32;
            self.queue.push_timer(at, component);
        }
    }

    /// A host takes a random time for a packet that it sends.
    fn process(&mut self, desk: usize, packet: Packet) {
        let Some(here) = self.stations.desks.get_mut(desk) else { return };
        here.last = here.last.max(self.now + here.longest.mul_f64(here.rng.unit()));
        here.waiting.push_back((here.last, packet));
        if here.waiting.len() == 1 {
            self.expect(desk);
        }
    }

    fn leave_desk<O: Observer>(&mut self, desk: usize, observer: &mut O) {
        let now = self.now;
        let next = |stations: &mut Stations| {
            let waiting = &mut stations.desks.get_mut(desk)?.waiting;
            waiting.front().filter(|(at, _)| *at <= now)?;
            waiting.pop_front()
        };
        while let Some((_, mut packet)) = next(&mut self.stations) {
            packet.hop += 1;
            self.offer(packet, observer);
        }
        self.expect(desk);
    }

    /// The first packet at a desk leaves when its time has come.
    fn expect(&mut self, desk: usize) {
        let Some(&(at, _)) = self.stations.desks.get(desk).and_then(|desk| desk.waiting.front()) else { return };
        let station = self.stations.associations.len() * ENDS + desk;
        let component = self.flows.len() as u32 * TIMERS + station as u32;
        self.queue.push_in_turn(at, component);
    }
}

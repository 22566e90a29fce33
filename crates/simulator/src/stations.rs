//! What is on the way of packets beside links: the ends of associations, where packets of flows go in and outer packets come
//! out, and the hosts that take a random time for each packet ([`ProcessingHost`]). A route names a station by a number after
//! those of the links.

use clock::{Duration, Instant, Rng, Streams};
use link::{ProcessingHost, ProcessingTimes};
use transport::mhip::{PathArrivals, PathStatus};
use transport::{Flags, NO_BLOCKS, Packet, Sender};

use crate::association::{Content, End, Inner, Inside, Outer, bare};
use crate::observer::Observer;
use crate::plan::{Plan, PlannedFlow, PlannedPath};
use crate::simulation::{Simulation, TIMERS};

/// Marks the number of an outer packet, where that of blocks stands in a packet.
const OUTER: u32 = 1 << 30;
/// The ends of an association.
const ENDS: usize = 2;

/// All stations.
pub(crate) struct Stations {
    pub(crate) associations: Vec<AssociationSlot>,
    processing: Vec<Processing>,
    /// Which of these is whose, in order.
    places: Vec<ProcessingOf>,
    /// How many links there are.
    links: u32,
    under_way: Vec<Option<Outer>>,
    free: Vec<u32>,
}

/// Which host processes: that of one end (0 where data begin) of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessingOf {
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

/// What one host is processing.
struct Processing {
    times: ProcessingTimes,
    rng: Rng,
    packets: ProcessingHost<Packet>,
}

impl Stations {
    /// Those that `plan` asks for.
    pub(crate) fn new(plan: &Plan, streams: &Streams) -> Self {
        let mut processing = Vec::new();
        let mut places = Vec::new();
        let mut add = |of: ProcessingOf, links: &[u32], name: &str, number: usize| {
            let rates = links.iter().filter_map(|link| plan.links.get(*link as usize)?.config.rate);
            let Some(slowest) = rates.min() else { return };
            let times = plan.processing.on_route(slowest);
            // A stream of another name would draw other times.
            let rng = streams.stream(&format!("desk {name} {number}"));
            processing.push(Processing { times, rng, packets: ProcessingHost::default() });
            places.push(of);
        };
        let mut both = |paths: &[PlannedPath], name: &str, of: &dyn Fn(usize, usize) -> ProcessingOf| {
            for (number, path) in paths.iter().enumerate() {
                add(of(number, 0), &path.forward, name, 2 * number);
                add(of(number, 1), &path.reverse, name, 2 * number + 1);
            }
        };
        for (index, association) in plan.associations.iter().enumerate() {
            both(&association.paths, &association.name, &|path, end| ProcessingOf::Path(index, path, end));
        }
        for (index, flow) in plan.flows.iter().enumerate().filter(|(_, flow)| flow.processing) {
            both(&flow.paths, &flow.name, &|path, end| ProcessingOf::Flow(index, path, end));
        }
        let mut flows = vec![0; plan.associations.len()];
        for association in plan.flows.iter().filter_map(|flow| flow.association) {
            flows[association as usize] += 1;
        }
        let associations = plan.associations.iter().zip(flows).map(|(association, flows)| {
            let delay_and_rate = |links: &[u32]| {
                let links = || links.iter().filter_map(|link| plan.links.get(*link as usize)).map(|link| &link.config);
                let delay = links().fold(Duration::ZERO, |sum, link| sum + link.delay);
                (delay, links().filter_map(|link| link.rate).min())
            };
            let ends = [0, 1].map(|end| {
                let way = |path: &PlannedPath| delay_and_rate(if end == 0 { &path.forward } else { &path.reverse });
                let paths: Vec<_> = association.paths.iter().map(way).collect();
                let rng = streams.stream(&format!("association {} {end}", association.name));
                End::new(end, &association.config, &paths, flows, rng)
            });
            let armed = [Instant::FAR_FUTURE; ENDS];
            AssociationSlot { ends, inner: Vec::new(), first_hops: Vec::new(), armed, is_open: false }
        });
        Self {
            associations: associations.collect(),
            processing,
            places,
            links: plan.links.len() as u32,
            under_way: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        (self.associations.len() * ENDS + self.processing.len()) as u32
    }

    /// How routes call an end of an association.
    pub(crate) fn end(&self, association: usize, end: usize) -> u32 {
        self.links + (association * ENDS + end) as u32
    }

    /// How routes call a host that processes packets, if it takes time there.
    pub(crate) fn processing(&self, of: ProcessingOf) -> Option<u32> {
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
            return self.end_processing(station - ends, observer);
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
        let (acked, bytes) = slot.ends[0].window(self.now, inner, ack);
        tcp.set_receiver_window(acked, bytes / u64::from(self.flows[ack.flow as usize].payload));
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
    fn process(&mut self, place: usize, packet: Packet) {
        let Some(host) = self.stations.processing.get_mut(place) else { return };
        let was_idle = host.packets.next_event().is_none();
        let time = host.times.draw(self.now, &mut host.rng);
        host.packets.put(self.now, time, packet);
        if was_idle {
            self.await_processing(place);
        }
    }

    fn end_processing<O: Observer>(&mut self, place: usize, observer: &mut O) {
        let now = self.now;
        let next = |stations: &mut Stations| stations.processing.get_mut(place)?.packets.poll(now);
        while let Some((_, mut packet)) = next(&mut self.stations) {
            packet.hop += 1;
            self.offer(packet, observer);
        }
        self.await_processing(place);
    }

    /// The first packet that a host is processing leaves when its time has come.
    fn await_processing(&mut self, place: usize) {
        let Some(at) = self.stations.processing.get(place).and_then(|host| host.packets.next_event()) else { return };
        let station = self.stations.associations.len() * ENDS + place;
        let component = self.flows.len() as u32 * TIMERS + station as u32;
        self.queue.push_in_turn(at, component);
    }
}

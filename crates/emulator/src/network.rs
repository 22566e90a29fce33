//! The network between the ports: links, and which links a packet takes. No clock, no sockets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use clock::{Duration, Histogram, Instant, Rng};
use link::{ChangeKind, Link, LinkConfig, LinkStatistics, Processing, ProcessingJitter, ProcessingTimes};

use crate::outer::{addresses, ecn_of, flow_of, mark_congestion};

/// Names one direction of a link of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(usize);

/// Names a route of a [`Network`]: the links from one outer address to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(pub(crate) usize);

/// A packet that has reached the end of its route.
#[derive(Debug)]
pub struct Delivery {
    /// When it arrived, by the links' arithmetic.
    pub at: Instant,
    /// The route it took.
    pub route: RouteId,
    /// The port it leaves at, as given to [`Network::add_route`].
    pub port: usize,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// What a network did with the packets it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets taken in at ports.
    pub received: u64,
    /// Packets that reached the end of their route.
    pub delivered: u64,
    /// Packets that a link dropped (queue, loss or outage).
    pub dropped: u64,
    /// Packets between addresses that no route joins, for instance the neighbour discovery of a kernel.
    pub unroutable: u64,
}

/// Links, and routes over them. Packets move at the instants that the links name, whatever the instants at which [`Network::poll`] is called.
pub struct Network {
    links: Vec<Link<Flight>>,
    routes: Vec<Route>,
    table: BTreeMap<(IpAddr, IpAddr), RouteId>,
    /// Changes to come, the next one last.
    changes: Vec<(Instant, LinkId, ChangeKind)>,
    counts: Counts,
    /// What hosts are about to send, if they take a time for it, and how long that is at most.
    hosts: Processing,
    processing: ProcessingJitter<IpAddr, Flight>,
    /// Decides for how long.
    chance: Option<Rng>,
}

struct Route {
    hops: Vec<LinkId>,
    /// What the sender takes for a packet.
    processing: ProcessingTimes,
    port: usize,
    delivered_bytes: u64,
    transits: Histogram,
}

/// A packet under way, with the hop of its route that it is on.
struct Flight {
    packet: Vec<u8>,
    route: RouteId,
    hop: usize,
    since: Instant,
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Network {
    /// A network without links.
    pub fn new() -> Self {
        Self {
            links: Vec::new(),
            routes: Vec::new(),
            table: BTreeMap::new(),
            changes: Vec::new(),
            counts: Counts::default(),
            hosts: Processing::default(),
            processing: ProcessingJitter::default(),
            chance: None,
        }
    }

    /// The same, but hosts take a random time for each packet that they send, as `hosts` says, which is not counted as time under
    /// way. The packets of an address leave in order. It counts for the routes that are added from now on.
    pub fn with_random_processing(mut self, hosts: Processing, rng: Rng) -> Self {
        self.hosts = hosts;
        self.chance = Some(rng);
        self
    }

    /// Adds one direction of a link; `rng` decides its random losses and delays.
    pub fn add_link(&mut self, config: LinkConfig, rng: Rng) -> LinkId {
        self.links.push(Link::new(config, rng));
        LinkId(self.links.len() - 1)
    }

    /// From now on packets from `from` to `to` travel over `hops` (one at least) and leave at `port`. An earlier route between the same addresses is replaced.
    pub fn add_route(&mut self, from: IpAddr, to: IpAddr, hops: Vec<LinkId>, port: usize) -> RouteId {
        let route = RouteId(self.routes.len());
        let slowest = hops.iter().filter_map(|hop| self.links.get(hop.0)?.rate()).min();
        let processing = slowest.map(|rate| self.hosts.on_route(rate)).unwrap_or_default();
        self.routes.push(Route { hops, processing, port, delivered_bytes: 0, transits: Histogram::default() });
        self.table.insert((from, to), route);
        route
    }

    /// Changes a link at an instant to come. Changes that are part of a [`LinkConfig`] need no call.
    pub fn schedule(&mut self, at: Instant, link: LinkId, what: ChangeKind) {
        let place = self.changes.partition_point(|(other, _, _)| *other > at);
        self.changes.insert(place, (at, link, what));
    }

    /// Takes in a packet that a host sent at `now`. Everything that is due before `now` must have been polled.
    pub fn handle_packet(&mut self, now: Instant, packet: Vec<u8>) {
        self.counts.received += 1;
        let known = addresses(&packet).and_then(|pair| Some((pair.0, *self.table.get(&pair)?)));
        let Some((from, route)) = known else {
            self.counts.unroutable += 1;
            return;
        };
        let flight = Flight { packet, route, hop: 0, since: now };
        match (&mut self.chance, self.routes.get_mut(route.0)) {
            (Some(rng), Some(route)) => self.processing.put(now, from, route.processing.draw(now, rng), flight),
            _ => self.offer(now, flight),
        }
    }

    /// The next packet that has arrived at the end of its route by `now`, in the order of arrival.
    pub fn poll(&mut self, now: Instant) -> Option<Delivery> {
        loop {
            let arrival = self.earliest();
            let (departure, next) = (self.processing.next_event(), arrival.map(|(at, _)| at));
            // A change comes before what else happens at its instant.
            if let Some((at, link, what)) = self
                .changes
                .pop_if(|(at, _, _)| *at <= now && departure.into_iter().chain(next).all(|next| *at <= next))
            {
                if let Some(link) = self.links.get_mut(link.0) {
                    link.change(at, what);
                }
                continue;
            }
            // What arrives makes room for what comes at the same instant.
            if departure.is_some_and(|at| next.is_none_or(|next| at < next))
                && let Some((at, flight)) = self.processing.poll(now)
            {
                self.offer(at, Flight { since: at, ..flight });
                continue;
            }
            let (at, index) = arrival?;
            if at > now {
                return None;
            }
            // A link's event may be internal (a change of rate), in which case nothing arrives.
            while let Some((mut flight, marked)) = self.links.get_mut(index)?.poll_ecn(at) {
                if marked {
                    mark_congestion(&mut flight.packet);
                }
                flight.hop += 1;
                let route = self.routes.get_mut(flight.route.0)?;
                if flight.hop < route.hops.len() {
                    self.offer(at, flight);
                } else {
                    self.counts.delivered += 1;
                    route.delivered_bytes += flight.packet.len() as u64;
                    route.transits.record(at.saturating_since(flight.since).as_nanos());
                    return Some(Delivery { at, route: flight.route, port: route.port, packet: flight.packet });
                }
            }
        }
    }

    /// When something happens next; absent while every link is empty and no change is to come.
    pub fn next_event(&self) -> Option<Instant> {
        let change = self.changes.last().map(|(at, _, _)| *at);
        self.earliest().map(|(at, _)| at).into_iter().chain(change).chain(self.processing.next_event()).min()
    }

    /// When [`Network::poll`] may have a packet next, or a change comes: before that, all that happens is inside, and the
    /// calls to come make up for it. By the delays of now: a link that becomes shorter meanwhile may be noticed later.
    pub fn next_arrival(&self) -> Option<Instant> {
        let delay = |hops: &[LinkId]| {
            hops.iter()
                .filter_map(|hop| self.links.get(hop.0))
                .fold(Duration::ZERO, |sum, link| sum + link.shortest_delay())
        };
        let arrivals = self.routes.iter().flat_map(|Route { hops, .. }| {
            hops.iter().enumerate().filter_map(move |(number, hop)| {
                let at = self.links.get(hop.0)?.next_event()?;
                Some(at + delay(hops.get(number + 1..).unwrap_or_default()))
            })
        });
        let shortest = self.routes.iter().map(|route| delay(&route.hops)).min().unwrap_or_default();
        let departure = self.processing.next_event().map(|at| at + shortest);
        let change = self.changes.last().map(|(at, _, _)| *at);
        arrivals.chain(departure).chain(change).min()
    }

    /// What happened to the packets so far.
    pub fn counts(&self) -> Counts {
        let dropped = self.links.iter().map(|link| link.statistics().dropped().packets).sum();
        Counts { dropped, ..self.counts }
    }

    /// Bytes of the packets that each route delivered so far, in the order of the calls of [`Network::add_route`].
    pub fn delivered_bytes(&self) -> impl Iterator<Item = u64> {
        self.routes.iter().map(|route| route.delivered_bytes)
    }

    /// How long the packets that each route delivered were under way, exact to 0.2 ms up to 2 s, in the order of the calls of
    /// [`Network::add_route`].
    pub fn transits(&self) -> impl Iterator<Item = &Histogram> {
        self.routes.iter().map(|route| &route.transits)
    }

    /// Counts that anew.
    pub fn restart_transits(&mut self) {
        self.routes.iter_mut().for_each(|route| route.transits = Histogram::default());
    }

    /// What one link did so far; absent for a link of another network.
    pub fn link_statistics(&self, link: LinkId) -> Option<&LinkStatistics> {
        self.links.get(link.0).map(Link::statistics)
    }

    fn earliest(&self) -> Option<(Instant, usize)> {
        // A laboratory has a handful of links: a scan is faster than a heap.
        self.links.iter().enumerate().filter_map(|(index, link)| link.next_event().map(|at| (at, index))).min()
    }

    fn offer(&mut self, now: Instant, flight: Flight) {
        let link = self
            .routes
            .get(flight.route.0)
            .and_then(|route| route.hops.get(flight.hop))
            .and_then(|id| self.links.get_mut(id.0));
        let bytes = u32::try_from(flight.packet.len()).unwrap_or(u32::MAX);
        let (flow, ecn) = (flow_of(&flight.packet), ecn_of(&flight.packet));
        // What it drops, it counts itself.
        let _ = link.map(|link| link.offer_of(now, flight, bytes, flow, ecn));
    }
}

//! Hosts on a network in virtual time: who is next, what it does, and where its packets go.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant, VirtualTime};
use emulator::{Capture, Network, RouteId};
use hip::{Route, UDP_PORT};
use rand_chacha::ChaCha20Rng;
use wedge::{Datagram, Transmit, Wedge, WedgeEvent};
use wire::ip::{IpPacket, protocol};
use wire::{tcp, udp};

use super::connection::{CLIENT_PORT, Connection, End, SERVER_PORT};
use super::guest::Download;
use super::probe::Probe;
use crate::LabError;
use crate::error::Step;

/// Between two lines of a host in the trace.
const TRACE: Duration = Duration::from_millis(20);

/// A host with Sinnet, or with nothing but an IP stack.
pub(crate) struct Host {
    pub(crate) wedge: Option<(Wedge, ChaCha20Rng)>,
}

/// Everything there is.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) network: Network,
    pub(crate) hosts: Vec<Host>,
    /// By port of the network, the host there.
    pub(crate) ports: Vec<usize>,
    pub(crate) connections: Vec<Connection>,
    /// Downloads by programs that are no part of the laboratory.
    pub(crate) guests: Vec<Download>,
    /// All but downloads.
    pub(crate) probes: Vec<Probe>,
    /// What is written where.
    pub(crate) captures: Vec<([RouteId; 2], Capture)>,
    pub(crate) keylog: Option<Box<dyn Write>>,
    /// What the hosts tell about themselves, over time.
    pub(crate) trace: Option<Trace>,
}

/// A file with a line of JSON for each host and time: its status, and the bytes that have arrived of each flow.
pub(crate) struct Trace {
    file: Box<dyn Write>,
    next: Instant,
}

impl Trace {
    /// Into this file.
    pub(crate) fn new(file: impl Write + 'static) -> Self {
        Self { file: Box::new(file), next: Instant::ZERO }
    }

    fn write(&mut self, now: Instant, host: usize, wedge: &Wedge, arrived: &[u64]) -> io::Result<()> {
        let (seconds, status) = (now.as_secs_f64(), wedge.status(now));
        let line = serde_json::json!({ "seconds": seconds, "host": host, "arrived": arrived, "status": status });
        writeln!(self.file, "{line}")
    }
}

impl World {
    /// Goes on until `end`, or until `holds` says so.
    pub(crate) fn run(
        &mut self,
        end: Instant,
        mut holds: impl FnMut(&Self) -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let mut time = VirtualTime::new(self.now);
        loop {
            self.settle()?;
            self.trace()?;
            if holds(self)? {
                return Ok(());
            }
            let is_due = time.advance(Some(self.next()), end).map_err(io::Error::other);
            let is_due = is_due.step("running in virtual time")?;
            self.now = time.now();
            if !is_due {
                return Ok(());
            }
        }
    }

    /// Bytes that have arrived, by download.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = u64> {
        self.guests.iter().map(Download::arrived).chain(self.connections.iter().map(Connection::arrived))
    }

    /// Whether all downloads have come to their ends.
    pub(crate) fn is_complete(&self) -> bool {
        self.connections.iter().all(Connection::is_complete) && self.guests.iter().all(Download::is_complete)
    }

    /// Stalls are counted anew from now.
    pub(crate) fn restart_stalls(&mut self) {
        let now = self.now;
        self.connections.iter_mut().for_each(|connection| connection.restart_stalls(now));
        self.guests.iter_mut().for_each(|guest| guest.restart_stalls(now));
    }

    /// The wedge of a host, if it has one.
    pub(crate) fn wedge(&self, host: usize) -> Option<&Wedge> {
        self.hosts.get(host)?.wedge.as_ref().map(|(wedge, _)| wedge)
    }

    /// Notes what the hosts tell, if it is time for that.
    fn trace(&mut self) -> Result<(), LabError> {
        let Some(trace) = self.trace.as_mut().filter(|trace| trace.next <= self.now) else { return Ok(()) };
        trace.next = self.now + TRACE;
        let arrived: Vec<u64> = self.arrived().collect();
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let mut wedges =
            self.hosts.iter().enumerate().filter_map(|(index, host)| Some((index, &host.wedge.as_ref()?.0)));
        wedges.try_for_each(|(host, wedge)| trace.write(self.now, host, wedge, &arrived)).step("writing the trace")
    }

    /// Completes the captures.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        self.trace.map_or(Ok(()), |mut trace| trace.file.flush()).step("writing the trace")?;
        for (_, capture) in self.captures {
            capture.finish().step("writing a capture")?;
        }
        self.keylog.map_or(Ok(()), |mut keylog| keylog.flush()).step("writing the key log")
    }

    /// When something happens next.
    fn next(&self) -> Instant {
        let wedges = self.hosts.iter().filter_map(|host| Some(host.wedge.as_ref()?.0.poll_timeout()?.0));
        let connections = self.connections.iter().map(Connection::poll_timeout);
        wedges
            .chain(connections)
            .chain(self.guests.iter().map(Download::poll_timeout))
            .chain(self.probes.iter().map(Probe::poll_timeout))
            .chain(self.network.next_event())
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// Everything that happens now.
    fn settle(&mut self) -> Result<(), LabError> {
        let now = self.now;
        while let Some(delivery) = self.network.poll(now) {
            for (_, capture) in self.captures.iter_mut().filter(|(routes, _)| routes.contains(&delivery.route)) {
                capture.record(delivery.at, &delivery.packet).step("writing a capture")?;
            }
            let host = self.ports.get(delivery.port).copied().unwrap_or(usize::MAX);
            self.receive(host, &delivery.packet);
        }
        for (wedge, rng) in self.hosts.iter_mut().filter_map(|host| host.wedge.as_mut()) {
            if wedge.poll_timeout().is_some_and(|(at, _)| at <= now) {
                wedge.handle_timeout(now, rng);
            }
        }
        for index in 0..self.connections.len() {
            self.drive(index);
        }
        for index in 0..self.guests.len() {
            if let Some(guest) = self.guests.get_mut(index).filter(|guest| guest.poll_timeout() <= now) {
                guest.handle_timeout(now);
            }
            while let Some(packet) = self.guests.get_mut(index).and_then(|guest| guest.poll_transmit(now)) {
                self.send(packet);
            }
        }
        for index in 0..self.probes.len() {
            while let Some(packet) = self.probes.get_mut(index).and_then(|probe| probe.poll_transmit(now)) {
                self.send(packet);
            }
        }
        for index in 0..self.hosts.len() {
            self.drain(index)?;
        }
        Ok(())
    }

    /// A packet has arrived at a host from the network.
    fn receive(&mut self, host: usize, packet: &[u8]) {
        let Ok(view) = IpPacket::parse(packet) else { return };
        if view.protocol() == protocol::TCP {
            return self.deliver(&view);
        }
        if self.guests.iter_mut().any(|guest| guest.handle_input(self.now, &view)) {
            return;
        }
        let Some((wedge, rng)) = self.hosts.get_mut(host).and_then(|host| host.wedge.as_mut()) else { return };
        let Some(datagram) = udp::Datagram::parse(view.payload()).ok().filter(|_| view.protocol() == protocol::UDP)
        else {
            return;
        };
        // A kernel would drop it, and so would nobody hear of it.
        if !datagram.checksum_is_right(view.src(), view.dst()) || datagram.dst_port() != UDP_PORT {
            return;
        }
        let local = SocketAddr::new(view.dst(), datagram.dst_port());
        let remote = SocketAddr::new(view.src(), datagram.src_port());
        let datagram = Datagram {
            route: Route { local, remote },
            protocol: wedge::Protocol::Udp,
            payload: datagram.payload(),
            ecn: wedge::Ecn::NotEct,
        };
        wedge.handle_network(self.now, rng, &[datagram]);
    }

    /// A packet has arrived at its program.
    fn deliver(&mut self, packet: &IpPacket<'_>) {
        let now = self.now;
        if packet.protocol() != protocol::TCP {
            let _ = self.guests.iter_mut().any(|guest| guest.handle_input(now, packet))
                || self.probes.iter_mut().any(|probe| probe.handle_input(now, packet));
            return;
        }
        let Ok(segment) = tcp::Segment::parse(packet.payload()) else { return };
        let (end, port) = match segment.dst_port() {
            SERVER_PORT => (End::Server, segment.src_port()),
            port if port >= CLIENT_PORT => (End::Client, port),
            _ => return,
        };
        let known =
            self.connections.iter_mut().find(|known| known.client_port() == port && known.address(end) == packet.dst());
        if let Some(connection) = known {
            connection.handle_input(now, end, packet);
        }
    }

    /// Lets a connection do what it can, and carries its packets.
    fn drive(&mut self, index: usize) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(index) else { return };
        if connection.poll_timeout() <= now {
            connection.handle_timeout(now);
        }
        while let Some((_, packet)) = self.connections.get_mut(index).and_then(|known| known.poll_transmit(now)) {
            self.send(packet);
        }
    }

    /// A program sends a packet: the host with its source takes it, into Sinnet if the source is an identity.
    fn send(&mut self, packet: Vec<u8>) {
        let now = self.now;
        let source = IpPacket::parse(&packet).ok().map(|view| view.src());
        let of_host = |host: &&mut Host| {
            host.wedge.as_ref().is_some_and(|(wedge, _)| source == Some(IpAddr::V6(wedge.hit().address())))
        };
        match self.hosts.iter_mut().find(of_host).and_then(|host| host.wedge.as_mut()) {
            Some((wedge, rng)) => wedge.handle_application(now, rng, [packet]),
            None => self.network.handle_packet(now, packet),
        }
    }

    /// Takes what a wedge has to say.
    fn drain(&mut self, index: usize) -> Result<(), LabError> {
        let now = self.now;
        let Some((wedge, _)) = self.hosts.get_mut(index).and_then(|host| host.wedge.as_mut()) else { return Ok(()) };
        let mut transmits = Vec::new();
        let mut packets = Vec::new();
        wedge.poll_transmit(now, &mut transmits);
        wedge.poll_deliver(&mut packets);
        while let Some(event) = wedge.poll_event() {
            if let (WedgeEvent::KeyLog(line), Some(keylog)) = (&event, &mut self.keylog) {
                writeln!(keylog, "{line}").step("writing the key log")?;
            }
            tracing::debug!(%event, at = %now, host = index);
        }
        for Transmit { route: Route { local, remote }, bytes, .. } in transmits {
            let made = udp::packet((local.ip(), local.port()), (remote.ip(), remote.port()), &bytes);
            if let Ok(packet) = made {
                self.network.handle_packet(now, packet);
            }
        }
        for packet in packets {
            if let Ok(view) = IpPacket::parse(&packet) {
                self.deliver(&view);
            }
        }
        Ok(())
    }
}

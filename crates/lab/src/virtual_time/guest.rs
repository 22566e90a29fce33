//! A download by a program that is no part of the laboratory, over UDP: both ends, and what the client got.

use std::net::{IpAddr, SocketAddr};

use clock::{Duration, Instant};
use multipath::Ecn;
use wire::ip::{IpPacket, protocol};
use wire::udp;

use crate::guest::{Conversation, End};

/// The servers' port.
const SERVER_PORT: u16 = 4433;
/// The clients' port.
const CLIENT_PORT: u16 = 50_000;

/// A conversation, its addresses and its progress.
pub(crate) struct Download {
    /// Of the server and the client.
    addresses: [SocketAddr; 2],
    conversation: Box<dyn Conversation>,
    start: Instant,
    /// The largest packet that the hosts' devices take, in bytes.
    mtu: u16,
    bytes: u64,
    first: Option<Instant>,
    last: Instant,
    stall: Duration,
}

impl Download {
    /// The addresses of server and client with the ports of both.
    pub(crate) fn ends(addresses: [IpAddr; 2]) -> [SocketAddr; 2] {
        let [server, client] = addresses;
        [SocketAddr::new(server, SERVER_PORT), SocketAddr::new(client, CLIENT_PORT)]
    }

    /// One that begins at `start`, between hosts whose devices take packets of so many bytes.
    pub(crate) fn new(
        addresses: [SocketAddr; 2],
        conversation: Box<dyn Conversation>,
        start: Instant,
        mtu: u16,
    ) -> Self {
        Self { addresses, conversation, start, mtu, bytes: 0, first: None, last: start, stall: Duration::ZERO }
    }

    /// Bytes that the client's program got.
    pub(crate) fn arrived(&self) -> u64 {
        self.bytes
    }

    /// Whether the client has all that there is.
    pub(crate) fn is_complete(&self) -> bool {
        self.conversation.is_complete()
    }

    /// Whether what arrived is what was sent.
    pub(crate) fn is_identical(&self) -> bool {
        self.conversation.is_intact()
    }

    /// From the first byte to the last, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.first.map_or(0.0, |first| (self.last - first).as_secs_f64())
    }

    /// Stalls are counted anew from now.
    pub(crate) fn restart_stalls(&mut self, now: Instant) {
        (self.stall, self.last) = (Duration::ZERO, now);
    }

    /// The longest time in which nothing arrived, if `end` is the end.
    pub(crate) fn stall(&self, end: Instant) -> Duration {
        let open = if self.is_complete() { Duration::ZERO } else { end.saturating_since(self.last) };
        self.stall.max(open)
    }

    /// When [`Download::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.conversation.poll_timeout().unwrap_or(Instant::FAR_FUTURE).max(self.start)
    }

    /// Does what is due by now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.conversation.handle_timeout(now);
        self.look(now);
    }

    /// The next IP packet. What the device does not take is lost: programs of this kind look for the MTU of the path.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.start {
            return None;
        }
        loop {
            let (end, payload, ecn) = self.conversation.poll_transmit(now)?;
            let [server, client] = self.addresses;
            let (from, to) = if end == End::Server { (server, client) } else { (client, server) };
            let packet = udp::packet_of(ecn.bits(), (from.ip(), from.port()), (to.ip(), to.port()), &payload).ok();
            if let Some(packet) = packet.filter(|packet| packet.len() <= self.mtu.into()) {
                return Some(packet);
            }
        }
    }

    /// A packet for one of the ends; whether it was one of these.
    pub(crate) fn handle_input(&mut self, now: Instant, packet: &IpPacket<'_>) -> bool {
        let Some(datagram) = udp::Datagram::parse(packet.payload()).ok().filter(|_| packet.protocol() == protocol::UDP)
        else {
            return false;
        };
        let to = SocketAddr::new(packet.dst(), datagram.dst_port());
        let Some(end) = self.addresses.iter().position(|address| *address == to) else { return false };
        if datagram.checksum_is_right(packet.src(), packet.dst()) {
            let end = if end == 0 { End::Server } else { End::Client };
            self.conversation.handle_datagram(now, end, datagram.payload(), Ecn::of(packet.ecn()));
            self.look(now);
        }
        true
    }

    /// Notes what has arrived by now.
    fn look(&mut self, now: Instant) {
        let bytes = self.conversation.arrived();
        if bytes == self.bytes {
            return;
        }
        if self.first.is_some() {
            self.stall = self.stall.max(now.saturating_since(self.last));
        }
        self.first.get_or_insert(now);
        (self.bytes, self.last) = (bytes, now);
    }
}

//! Calls and echo requests inside Sinnet: both ends, as programs of the hosts.

use std::net::{IpAddr, Ipv6Addr};

use clock::{Duration, Instant};
use wire::icmp::Echo;
use wire::ip::{self, IpPacket, V6_HEADER, protocol};
use wire::udp;

use crate::datagrams::Datagrams;
use crate::plan::Kind;

/// The port of a call's receiver, and of its sender.
const PORT: u16 = 5004;
/// Data of an echo, as `ping` has it, in bytes.
const ECHO: usize = 56;

/// A call or echo requests.
pub(crate) struct Probe {
    kind: Kind,
    /// Of the end that begins, and of the other.
    addresses: [Ipv6Addr; 2],
    /// What tells it from others: a port, or an echo's identifier.
    name: u16,
    next: Instant,
    interval: Duration,
    datagrams: Datagrams,
    /// Answers that are to be sent.
    answers: Vec<Vec<u8>>,
}

impl Probe {
    /// Number `number`, from `start`; `None` for a download.
    pub(crate) fn new(number: u16, kind: Kind, addresses: [Ipv6Addr; 2], start: Instant) -> Option<Self> {
        let (interval, bytes) = match kind {
            Kind::Download | Kind::ParallelDownloads(_) => return None,
            Kind::ConstantBitRate { bytes, interval } => (interval, bytes),
            Kind::Ping { interval } => (interval, (V6_HEADER + wire::icmp::HEADER + ECHO) as u32),
        };
        let name = PORT.saturating_add(number);
        Some(Self {
            kind,
            addresses,
            name,
            next: start,
            interval,
            datagrams: Datagrams::new(bytes),
            answers: Vec::new(),
        })
    }

    /// What was sent and what arrived.
    pub(crate) fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }

    /// When the next is sent.
    pub(crate) fn poll_timeout(&self) -> Instant {
        if self.answers.is_empty() { self.next } else { Instant::ZERO }
    }

    /// The next IP packet.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if let Some(answer) = self.answers.pop() {
            return Some(answer);
        }
        if self.next > now {
            return None;
        }
        self.next += self.interval;
        let number = self.datagrams.send(since_zero(now));
        match self.kind {
            Kind::ConstantBitRate { bytes, .. } => self.call_packet(number, bytes as usize),
            _ => {
                let mut data = [0; ECHO];
                data[..8].copy_from_slice(&number.to_be_bytes());
                let echo = Echo { request: true, identifier: self.name, sequence: number as u16, data: &data };
                echo_packet(echo, self.addresses)
            }
        }
    }

    /// A packet for one of the ends; whether it was one of these.
    pub(crate) fn handle_input(&mut self, now: Instant, packet: &IpPacket<'_>) -> bool {
        let (IpAddr::V6(from), IpAddr::V6(to)) = (packet.src(), packet.dst()) else { return false };
        let number = |data: &[u8]| data.first_chunk().map(|number| u64::from_be_bytes(*number));
        let mut arrive = |data: &[u8]| {
            if let Some(number) = number(data) {
                self.datagrams.arrive(number, since_zero(now));
            }
            true
        };
        match self.kind {
            Kind::ConstantBitRate { .. } => {
                let Ok(datagram) = udp::Datagram::parse(packet.payload()) else { return false };
                packet.protocol() == protocol::UDP
                    && datagram.dst_port() == self.name
                    && datagram.checksum_is_right(packet.src(), packet.dst())
                    && arrive(datagram.payload())
            }
            _ => {
                let echo = Some(packet.payload()).filter(|_| packet.protocol() == protocol::ICMPV6);
                let echo = echo.and_then(|payload| Echo::parse(payload, from, to));
                let Some(echo) = echo.filter(|echo| echo.identifier == self.name) else { return false };
                if echo.request {
                    self.answers.extend(echo_packet(echo.reply(), [to, from]));
                    return true;
                }
                arrive(echo.data)
            }
        }
    }

    fn call_packet(&self, number: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut payload = vec![0; bytes.saturating_sub(V6_HEADER + udp::HEADER)];
        *payload.first_chunk_mut()? = number.to_be_bytes();
        let [from, to] = self.addresses.map(|address| (IpAddr::V6(address), self.name));
        udp::packet(from, to, &payload).ok()
    }
}

fn echo_packet(echo: Echo<'_>, [from, to]: [Ipv6Addr; 2]) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    echo.emit(from, to, &mut message).ok()?;
    ip::packet(from.into(), to.into(), protocol::ICMPV6, &message).ok()
}

/// Virtual time as the records have it.
pub(crate) fn since_zero(at: Instant) -> std::time::Duration {
    std::time::Duration::from_nanos(at.as_nanos())
}

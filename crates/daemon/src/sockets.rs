//! The sockets towards the network: for each path of this host one UDP socket on port 10500 (RFC 5770, RFC 6078), or two raw
//! sockets for the native protocols 139 (HIP) and 50 (ESP). Each is bound to the path's own address, and to its device if
//! the configuration names one, so that a packet never leaves by another path than the scheduler chose.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use hip::Route;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Socket, Type};
use wedge::{Datagram, Protocol, Transmit};

/// As much as the kernel allows us: a burst of all paths fits.
const BUFFER: usize = 4 << 20;
/// The largest datagram there is.
const LONGEST: usize = 65_535;
/// Datagrams taken from one socket before the others have their turn.
const BATCH: usize = 64;
/// Packets that wait for a socket whose buffer is full; what comes then is lost, as in any queue.
const WAITING: usize = 1024;

/// One socket of one path.
#[derive(Debug)]
pub struct PathSocket {
    socket: Socket,
    local: SocketAddr,
    protocol: Protocol,
    waiting: VecDeque<Transmit>,
    /// Packets that could not be sent.
    lost: u64,
}

/// Datagrams received in one batch.
#[derive(Debug, Default)]
pub struct Received {
    bytes: Vec<u8>,
    entries: Vec<(Route, Protocol, std::ops::Range<usize>)>,
}

impl Received {
    /// Forgets the datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// True for none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The datagrams in the order of their arrival.
    pub fn datagrams(&self) -> Vec<Datagram<'_>> {
        self.entries
            .iter()
            .map(|(route, protocol, range)| Datagram {
                route: *route,
                protocol: *protocol,
                payload: self.bytes.get(range.clone()).unwrap_or_default(),
            })
            .collect()
    }
}

impl PathSocket {
    /// Opens a socket on `local` (port 10500 for UDP, 0 for the native protocols).
    ///
    /// # Errors
    /// Where the address is not this host's, the port is taken, or `CAP_NET_RAW` is missing.
    pub fn open(local: SocketAddr, protocol: Protocol, device: Option<&str>) -> io::Result<Self> {
        let (kind, number) = match protocol {
            Protocol::Udp => (Type::DGRAM, socket2::Protocol::UDP),
            Protocol::Hip => (Type::RAW, socket2::Protocol::from(139)),
            Protocol::Esp => (Type::RAW, socket2::Protocol::from(50)),
        };
        let socket = Socket::new(Domain::for_address(local), kind, Some(number))?;
        // Raw IPv6 sockets have no other way, and the kernel refuses to be told so.
        if local.is_ipv6() && protocol == Protocol::Udp {
            socket.set_only_v6(true)?;
        }
        if let Some(device) = device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        // The kernel may give less.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&local.into())?;
        Ok(Self { socket, local, protocol, waiting: VecDeque::new(), lost: 0 })
    }

    /// True if packets of `protocol` from `local` leave here.
    pub fn serves(&self, local: SocketAddr, protocol: Protocol) -> bool {
        self.local == local && self.protocol == protocol
    }

    /// Packets that could not be sent so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// True while packets wait for room in the kernel.
    pub fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes up to a batch of datagrams from the kernel.
    ///
    /// # Errors
    /// What the kernel says other than 'nothing there'.
    pub fn receive(&self, scratch: &mut [u8], received: &mut Received) -> io::Result<()> {
        for _ in 0..BATCH {
            let (length, source) = match rustix::net::recvfrom(&self.socket, &mut *scratch, RecvFlags::DONTWAIT) {
                Ok((length, _, source)) => (length, source),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some(Ok(remote)) = source.map(SocketAddr::try_from) else { continue };
            let Some(payload) = self.payload(scratch.get(..length).unwrap_or_default()) else { continue };
            let start = received.bytes.len();
            received.bytes.extend_from_slice(payload);
            // A raw socket's port is the protocol's number or zero; a route's is zero.
            let port = if self.protocol == Protocol::Udp { remote.port() } else { 0 };
            let route = Route { local: self.local, remote: SocketAddr::new(unscoped(remote.ip()), port) };
            received.entries.push((route, self.protocol, start..received.bytes.len()));
        }
        Ok(())
    }

    /// A buffer that fits every datagram.
    pub fn scratch() -> Vec<u8> {
        vec![0; LONGEST]
    }

    /// Sends a packet, or keeps it until the kernel has room.
    pub fn send(&mut self, packet: Transmit) {
        if self.is_blocked() {
            self.wait(packet);
        } else {
            self.try_send(packet);
        }
    }

    /// Sends what waits, as far as there is room.
    pub fn flush(&mut self) {
        while let Some(packet) = self.waiting.pop_front() {
            if !self.try_send(packet) {
                return;
            }
        }
    }

    /// False where the packet waits again, in front.
    fn try_send(&mut self, packet: Transmit) -> bool {
        let mut remote = packet.route.remote;
        if self.protocol != Protocol::Udp {
            remote.set_port(0);
        }
        loop {
            match rustix::net::sendto(&self.socket, &packet.bytes, SendFlags::DONTWAIT, &remote) {
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    self.waiting.push_front(packet);
                    return false;
                }
                Err(error) => {
                    // A path that is down is the wedge's business: its heartbeats go unanswered.
                    self.lost += 1;
                    tracing::debug!(local = %self.local, %remote, %error, "a packet could not be sent");
                    return true;
                }
            }
        }
    }

    fn wait(&mut self, packet: Transmit) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(packet);
        } else {
            self.lost += 1;
        }
    }

    /// What follows the IP header: raw IPv4 sockets give it along (raw(7)), raw IPv6 sockets do not (RFC 3542 §3).
    fn payload<'a>(&self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        if self.protocol == Protocol::Udp || self.local.is_ipv6() {
            return Some(datagram);
        }
        let header = usize::from(datagram.first()? & 0x0f) * 4;
        datagram.get(header..)
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// IPv4 stays IPv4, also where it comes as a mapped IPv6 address.
fn unscoped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

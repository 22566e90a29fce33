//! The sockets towards the network: for each path of this host one UDP socket on port 10500 (RFC 5770, RFC 6078), bound to the
//! path's own address. Its interface is said of each packet that leaves (`IP_PKTINFO`), so that none leaves by another path than
//! the scheduler chose. What comes to the address is taken from every interface: of two in one network, Linux answers ARP for
//! both addresses on both, and a router sends to the one whose answer came first.
//!
//! The native protocols 139 (HIP) and 50 (ESP) have one raw socket each for all paths of a family, because opening one takes a
//! privilege that a running daemon has given up; the address is said of each packet, too, and the kernel says it of what comes.
//! So a host takes a new address as it does over UDP.
//!
//! Over UDP, packets of one size to one place go to the kernel in trains, and come in trains (segmentation offload, found and
//! received by `quinn-udp`): one system call and one pass of the network stack for up to 64 of them. `quinn-udp` sends a
//! train from one piece of memory; ours are sent from where they are (`sendmsg`).

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use hip::Route;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Socket, Type};
use wedge::{Datagram, Ecn, Protocol, Transmit};

/// As much as the kernel allows us: a burst of all paths fits.
const BUFFER: usize = 4 << 20;
/// The largest datagram, or train of them, there is.
const LONGEST: usize = 65_535;
/// The longest train that fits, with headers, into an IP packet.
const LONGEST_TRAIN: usize = LONGEST - 128;
/// Datagrams, or trains of them, taken from one socket before the others have their turn.
const BATCH: usize = quinn_udp::BATCH_SIZE;
/// Packets that wait for a socket whose buffer is full; what comes then is lost, as in any queue.
const WAITING: usize = 4096;

/// One socket of one path, or of all paths of a family.
#[derive(Debug)]
pub struct PathSocket {
    socket: Socket,
    /// For UDP only.
    offload: Option<UdpSocketState>,
    is_v4: bool,
    /// Whose packets leave and come here: one path's for UDP, any number's for the native protocols.
    places: Vec<Place>,
    protocol: Protocol,
    waiting: VecDeque<Transmit>,
    /// How many packets can go as one train at most.
    longest_train: usize,
    /// How many of the waiting packets have to go one by one, because they were refused as a train.
    singly: usize,
    /// What leaves may be cut, here or on the way.
    may_fragment: bool,
    /// The kernel has no room.
    full: bool,
    /// Packets that could not be sent.
    lost: u64,
    /// The trouble has been told.
    warned: bool,
}

/// An address of this host, and the interface by which its packets leave; 0 for the kernel's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    local: SocketAddr,
    interface: u32,
}

/// Datagrams that have come, where the kernel has put them.
#[derive(Debug, Default)]
pub struct Received {
    /// One for each socket that had something, used in turn.
    batches: Vec<Batch>,
    used: usize,
}

/// What one socket had.
#[derive(Debug)]
struct Batch {
    /// `LONGEST` bytes for each datagram or train. Memory that none fills is none: the kernel gives pages when they are written.
    bytes: Vec<u8>,
    entries: Vec<(Route, Protocol, Ecn, Range<usize>)>,
}

impl Received {
    /// Forgets the datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.batches.iter_mut().for_each(|batch| batch.entries.clear());
    }

    /// True for none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The datagrams in the order of their arrival.
    pub fn datagrams(&self) -> Vec<Datagram<'_>> {
        let all = self.batches.iter().flat_map(|batch| batch.entries.iter().map(|entry| (entry, &batch.bytes)));
        all.map(|((route, protocol, ecn, range), bytes)| Datagram {
            route: *route,
            protocol: *protocol,
            ecn: *ecn,
            payload: bytes.get(range.clone()).unwrap_or_default(),
        })
        .collect()
    }
}

impl PathSocket {
    /// Opens a UDP socket on `local`. Its packets leave by the interface of this number, or where it is 0 by the one that the
    /// kernel chooses.
    ///
    /// # Errors
    /// Where the address is not this host's, or the port is taken.
    pub fn open(local: SocketAddr, interface: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(socket2::Protocol::UDP))?;
        if local.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        let mut opened = Self::around(socket, Protocol::Udp, local.is_ipv4())?;
        opened.socket.bind(&local.into())?;
        let offload = offload(&opened.socket)?;
        // `quinn-udp` lets no packet be cut, and the first R1 may be longer than the link takes.
        fragmentation(&opened.socket, opened.is_v4, opened.may_fragment)?;
        opened.longest_train = offload.max_gso_segments();
        opened.offload = Some(offload);
        opened.places.push(Place { local, interface });
        Ok(opened)
    }

    /// Opens a raw socket for all addresses of a family. Nothing leaves or is taken before [`PathSocket::join`].
    ///
    /// # Errors
    /// Where `CAP_NET_RAW` is missing, or the machine does not have the family.
    pub fn open_native(protocol: Protocol, is_v4: bool) -> io::Result<Self> {
        let number = if protocol == Protocol::Hip { 139 } else { 50 };
        let domain = if is_v4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::RAW, Some(socket2::Protocol::from(number)))?;
        if is_v4 {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
            // Raw IPv4 sockets see it in the header.
            setsockopt(&socket, sockopt::Ipv6RecvTClass, &true)?;
        }
        Self::around(socket, protocol, is_v4)
    }

    fn around(socket: Socket, protocol: Protocol, is_v4: bool) -> io::Result<Self> {
        // The kernel may give less.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        socket.set_nonblocking(true)?;
        fragmentation(&socket, is_v4, true)?;
        Ok(Self {
            socket,
            offload: None,
            is_v4,
            places: Vec::new(),
            protocol,
            waiting: VecDeque::new(),
            longest_train: 1,
            singly: 0,
            may_fragment: true,
            full: false,
            lost: 0,
            warned: false,
        })
    }

    /// The path that begins at `local` is served from now on, and leaves by the interface of this number unless that is 0. False
    /// where this is not its socket.
    pub fn join(&mut self, local: SocketAddr, interface: u32) -> bool {
        let is_ours = self.offload.is_none() && self.is_v4 == local.is_ipv4();
        if is_ours {
            self.leave(local);
            self.places.push(Place { local, interface });
        }
        is_ours
    }

    /// The path that begins at `local` is gone. True if the socket has none left, and is of no use any more.
    pub fn leave(&mut self, local: SocketAddr) -> bool {
        self.places.retain(|place| place.local != local);
        self.places.is_empty() && self.offload.is_some()
    }

    /// True if packets of `protocol` from `local` leave here.
    pub fn serves(&self, local: SocketAddr, protocol: Protocol) -> bool {
        self.protocol == protocol && self.places.iter().any(|place| place.local == local)
    }

    /// Whose packet it is that has come to an address, by whatever interface: of two in one network either may answer for both
    /// addresses (RFC 1122 §3.3.4.2, the weak host).
    fn place(&self, to: IpAddr) -> Option<SocketAddr> {
        self.places.iter().map(|place| place.local).find(|local| local.ip() == to)
    }

    /// Packets that could not be sent so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// True while packets wait for room in the kernel.
    pub fn is_blocked(&self) -> bool {
        self.full
    }

    /// Takes up to a batch of datagrams from the kernel.
    ///
    /// # Errors
    /// What the kernel says other than 'nothing there'.
    pub fn receive(&self, received: &mut Received) -> io::Result<()> {
        if received.batches.len() <= received.used {
            received.batches.push(Batch { bytes: vec![0; LONGEST * BATCH], entries: Vec::new() });
        }
        let Some(batch) = received.batches.get_mut(received.used) else { return Ok(()) };
        let result = match &self.offload {
            Some(offload) => self.receive_trains(offload, batch),
            None => self.receive_raw(batch),
        };
        // What has come stays where it is until all of it has been taken.
        received.used += usize::from(!batch.entries.is_empty());
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    fn receive_trains(&self, offload: &UdpSocketState, batch: &mut Batch) -> io::Result<()> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut buffers: Vec<_> = batch.bytes.chunks_mut(LONGEST).take(BATCH).map(IoSliceMut::new).collect();
        let Some(local) = self.places.first().map(|place| place.local) else { return Ok(()) };
        let used = buffers.len().min(metas.len());
        let count = offload.recv((&self.socket).into(), &mut buffers, metas.get_mut(..used).unwrap_or_default())?;
        for (at, meta) in metas.iter().enumerate().take(count) {
            let remote = SocketAddr::new(meta.addr.ip(), meta.addr.port());
            let route = Route { local, remote };
            let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::of(ecn as u8));
            let (start, stride) = (at * LONGEST, meta.stride.max(1));
            for from in (0..meta.len).step_by(stride) {
                let to = meta.len.min(from + stride);
                batch.entries.push((route, self.protocol, ecn, start + from..start + to));
            }
        }
        Ok(())
    }

    fn receive_raw(&self, batch: &mut Batch) -> io::Result<()> {
        for start in (0..BATCH).map(|at| at * LONGEST) {
            let room = batch.bytes.get_mut(start..start + LONGEST).unwrap_or_default();
            let Some(One { length, remote, traffic_class, to }) = receive_one(&self.socket, room)? else {
                continue;
            };
            let Some(local) = self.place(to) else { continue };
            let packet = room.get(..length).unwrap_or_default();
            // Raw IPv4 sockets give the IP header along (raw(7)), raw IPv6 sockets do not (RFC 3542 §3).
            let header = if self.is_v4 { packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4) } else { 0 };
            if header > packet.len() {
                continue;
            }
            let traffic_class = if header > 0 { packet.get(1).copied() } else { traffic_class };
            // What a raw socket has instead of a port is no port.
            let route = Route { local, remote: SocketAddr::new(remote, 0) };
            let ecn = Ecn::of(traffic_class.unwrap_or(0));
            batch.entries.push((route, self.protocol, ecn, start + header..start + length));
        }
        Ok(())
    }

    /// Queues a packet for [`PathSocket::flush`].
    pub fn send(&mut self, packet: Transmit) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(packet);
        } else {
            self.lost += 1;
        }
    }

    /// Sends what is queued, as far as the kernel has room.
    pub fn flush(&mut self) {
        self.full = false;
        while let Some(first) = self.waiting.front() {
            if first.may_fragment != self.may_fragment {
                // What cannot be sent as it has to be is lost.
                if let Err(error) = fragmentation(&self.socket, self.is_v4, first.may_fragment) {
                    tracing::debug!(local = %first.route.local, %error, "fragmentation");
                    self.waiting.pop_front();
                    self.lost += 1;
                    continue;
                }
                self.may_fragment = first.may_fragment;
            }
            let count = self.train_of(first);
            match self.send_train(first, count) {
                Ok(()) => {
                    self.waiting.drain(..count);
                    self.singly = self.singly.saturating_sub(count);
                }
                Err(Errno::EAGAIN) => {
                    self.full = true;
                    return;
                }
                // Not every device takes trains, and a device that does not says so in these two ways.
                Err(error) if count > 1 => {
                    self.singly = count;
                    if matches!(error, Errno::EIO | Errno::EINVAL) {
                        self.longest_train = 1;
                    }
                }
                Err(error) => {
                    let local = first.route.local;
                    self.tell(local, error);
                    self.waiting.pop_front();
                    self.singly = self.singly.saturating_sub(1);
                    self.lost += 1;
                }
            }
        }
    }

    /// Sends the first `count` of the waiting packets as one train, from where they are.
    fn send_train(&self, first: &Transmit, count: usize) -> Result<(), Errno> {
        let mut remote = first.route.remote;
        if self.protocol != Protocol::Udp {
            // Linux wants the protocol or zero where a port would be (raw(7)).
            remote.set_port(0);
        }
        let remote = SockaddrStorage::from(remote);
        let bytes: Vec<IoSlice<'_>> =
            self.waiting.iter().take(count).map(|packet| IoSlice::new(&packet.bytes)).collect();
        let (v4, v6) = (first.ecn.bits(), i32::from(first.ecn.bits()));
        let class = match first.route.remote {
            SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&v4),
            SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&v6),
        };
        let size = u16::try_from(first.bytes.len()).unwrap_or(u16::MAX);
        let train = ControlMessage::UdpGsoSegments(&size);
        let (info4, info6);
        let mut control = Vec::with_capacity(3);
        if first.ecn != Ecn::NotEct {
            control.push(class);
        }
        if count > 1 {
            control.push(train);
        }
        let of = |place: &&Place| place.local == first.route.local;
        let interface = self.places.iter().find(of).map_or(0, |place| place.interface);
        // A UDP socket has an address of its own.
        if self.protocol != Protocol::Udp || interface != 0 {
            match first.route.local.ip() {
                IpAddr::V4(address) => {
                    info4 = packet_info_v4(address, interface);
                    control.push(ControlMessage::Ipv4PacketInfo(&info4));
                }
                IpAddr::V6(address) => {
                    info6 = packet_info_v6(address, interface);
                    control.push(ControlMessage::Ipv6PacketInfo(&info6));
                }
            }
        }
        loop {
            match sendmsg(self.socket.as_raw_fd(), &bytes, &control, MsgFlags::MSG_DONTWAIT, Some(&remote)) {
                Err(Errno::EINTR) => {}
                result => return result.map(|_| ()),
            }
        }
    }

    /// How many of the waiting packets can go as one train: all but the last of one size, the last not longer.
    fn train_of(&self, first: &Transmit) -> usize {
        let most = if self.singly == 0 && !first.is_alone { self.longest_train } else { 1 };
        let size = first.bytes.len();
        let fitting = most.min(LONGEST_TRAIN / size.max(1));
        let mut count = 1;
        for packet in self.waiting.iter().skip(1).take(fitting.saturating_sub(1)) {
            let alike = |packet: &Transmit| (packet.route, packet.ecn, packet.may_fragment, packet.is_alone);
            if alike(packet) != alike(first) || packet.bytes.len() > size {
                break;
            }
            count += 1;
            if packet.bytes.len() < size {
                break;
            }
        }
        count
    }

    /// A path that is down is the wedge's business: its heartbeats go unanswered. A packet that is too long has a remedy.
    fn tell(&mut self, local: SocketAddr, error: Errno) {
        if error == Errno::EMSGSIZE && !self.warned {
            self.warned = true;
            tracing::warn!(%local, "packets are too long for this path's interface");
        }
        tracing::debug!(%local, %error, "a packet could not be sent");
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Switches the offloads on.
fn offload(socket: &Socket) -> io::Result<UdpSocketState> {
    let offload = UdpSocketState::new(socket.into())?;
    // `quinn-udp` asks for the time of arrival, and has then no room for the ECN mark of an IPv4 train (MSG_CTRUNC).
    setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
    Ok(offload)
}

/// Says whether what leaves from now on may be cut. Linux has no way to say so of one packet.
///
/// What the wedge knows to pass, and its probes, go with DF and no longer than the interface takes them. Of ICMP nothing is
/// believed: whoever knows two addresses can forge 'fragmentation needed' for a MTU of 552 bytes, and both our ports are known
/// (RFC 8899 §4.6.1 asks for the proof that there is none of here).
///
/// What may be cut leaves as long as the interface takes it, without DF, and an IPv4 router on a smaller link cuts it. In IPv6 no
/// router does, so 'packet too big' has to be believed; what it can do is little, because a link carries 1,280 bytes (RFC 8200
/// §5).
fn fragmentation(socket: &Socket, is_v4: bool, may_fragment: bool) -> io::Result<()> {
    if is_v4 {
        let how = if may_fragment { Ipv4PathMtuDiscovery::OMIT } else { Ipv4PathMtuDiscovery::PROBE };
        return Ok(rustix::net::sockopt::set_ip_mtu_discover(socket, how)?);
    }
    let how = if may_fragment { Ipv6PathMtuDiscovery::WANT } else { Ipv6PathMtuDiscovery::PROBE };
    rustix::net::sockopt::set_ipv6_mtu_discover(socket, how)?;
    Ok(setsockopt(socket, sockopt::Ipv6DontFrag, &!may_fragment)?)
}

/// That a packet is to leave from this address, by this interface.
fn packet_info_v4(from: Ipv4Addr, interface: u32) -> libc::in_pktinfo {
    libc::in_pktinfo {
        ipi_ifindex: i32::try_from(interface).unwrap_or(0),
        ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
        ipi_addr: libc::in_addr { s_addr: 0 },
    }
}

fn packet_info_v6(from: Ipv6Addr, interface: u32) -> libc::in6_pktinfo {
    libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: from.octets() }, ipi6_ifindex: interface }
}

/// What has come to a raw socket.
struct One {
    length: usize,
    remote: IpAddr,
    /// Of IPv6.
    traffic_class: Option<u8>,
    /// The address that it came to.
    to: IpAddr,
}

/// Takes a packet from a raw socket.
fn receive_one(socket: &Socket, scratch: &mut [u8]) -> io::Result<Option<One>> {
    let mut control = nix::cmsg_space!(i32, libc::in6_pktinfo);
    let mut buffers = [IoSliceMut::new(scratch)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut buffers, Some(&mut control), flags)?;
    let (mut traffic_class, mut to) = (None, None);
    for one in message.cmsgs()? {
        match one {
            ControlMessageOwned::Ipv6TClass(class) => traffic_class = u8::try_from(class).ok(),
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                to = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            _ => {}
        }
    }
    let source = message.address.and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    let length = message.bytes;
    Ok(source.zip(to).map(|(remote, to)| One { length, remote, traffic_class, to }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Sends `packets` from one of our sockets to another, and, as the oracle, to an ordinary socket that knows no offloads.
    fn round_trip(local: &str, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let local: SocketAddr = local.parse().expect("an address");
        let open = || PathSocket::open(local, 0).expect("opens");
        let (mut sender, receiver) = (open(), open());
        let ordinary = UdpSocket::bind(local).expect("binds");
        ordinary.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let ours = receiver.socket.local_addr().expect("bound").as_socket().expect("IP");
        let theirs = ordinary.local_addr().expect("bound");

        let mut received = Received::default();
        let mut seen = Vec::new();
        let mut buffer = vec![0; LONGEST];
        for packet in packets {
            for remote in [ours, theirs] {
                sender.send(Transmit {
                    route: Route { local, remote },
                    protocol: Protocol::Udp,
                    bytes: packet.clone(),
                    // Two neighbours alike, then two others: trains end where marks change.
                    ecn: Ecn::of(packet.first().copied().unwrap_or(0) / 2),
                    // And where what may be cut does.
                    may_fragment: packet.first().copied().unwrap_or(0) % 8 < 4,
                    is_alone: false,
                });
            }
        }
        // Neighbours to one place make trains.
        sender.waiting.make_contiguous().sort_by_key(|packet| packet.route.remote);
        sender.flush();
        assert!(!sender.is_blocked() && sender.lost() == 0);
        assert!(sender.longest_train > 1, "trains were refused");
        for _ in packets {
            let length = ordinary.recv(&mut buffer).expect("a datagram");
            seen.push(buffer[..length].to_vec());
        }
        while received.datagrams().len() < packets.len() {
            let mut fds = [rustix::event::PollFd::new(&receiver, rustix::event::PollFlags::IN)];
            let patience = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut fds, Some(&patience)).expect("polls"), 1, "something is missing");
            receiver.receive(&mut received).expect("receives");
        }
        for datagram in received.datagrams() {
            assert_eq!(datagram.ecn, Ecn::of(datagram.payload.first().copied().unwrap_or(0) / 2));
        }
        (seen, received.datagrams().iter().map(|datagram| datagram.payload.to_vec()).collect())
    }

    #[test]
    fn the_first_packet_of_a_socket_may_be_cut() {
        let open = |local: &str| PathSocket::open(local.parse().unwrap(), 0);
        let v4 = open("127.0.0.1:0").unwrap();
        assert_eq!(rustix::net::sockopt::ip_mtu_discover(&v4.socket).unwrap(), Ipv4PathMtuDiscovery::OMIT);
        // A machine may have no IPv6.
        if let Ok(v6) = open("[::1]:0") {
            assert_eq!(rustix::net::sockopt::ipv6_mtu_discover(&v6.socket).unwrap(), Ipv6PathMtuDiscovery::WANT);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn trains_arrive_as_the_packets_they_were(
            sizes in proptest::collection::vec(prop_oneof![Just(1400_usize), Just(1300), 1..1400_usize], 1..80),
            v6 in any::<bool>(),
        ) {
            let packets: Vec<Vec<u8>> =
                sizes.iter().enumerate().map(|(number, size)| vec![number as u8; *size]).collect();
            let (ordinary, ours) = round_trip(if v6 { "[::1]:0" } else { "127.0.0.1:0" }, &packets);
            prop_assert_eq!(&ordinary, &packets);
            prop_assert_eq!(&ours, &packets);
        }
    }

    /// They lie where the kernel has put them, and the next socket must not have that place.
    #[test]
    fn what_several_sockets_had_is_there_together() {
        let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let ordinary = UdpSocket::bind(local).expect("binds");
        let sockets = [(); 3].map(|()| PathSocket::open(local, 0).expect("opens"));
        let mut received = Received::default();
        for round in 0..3 {
            received.clear();
            assert!(received.is_empty() && received.datagrams().is_empty());
            for (number, socket) in (round..).zip(&sockets) {
                socket.receive(&mut received).expect("nothing there");
                let there = socket.socket.local_addr().expect("bound").as_socket().expect("IP");
                ordinary.send_to(&[number; 100], there).expect("sends");
                socket.receive(&mut received).expect("receives");
            }
            let seen: Vec<_> = received.datagrams().iter().map(|datagram| datagram.payload.to_vec()).collect();
            assert_eq!(seen, [vec![round; 100], vec![round + 1; 100], vec![round + 2; 100]]);
        }
        assert_eq!(received.batches.len(), sockets.len());
    }

    #[test]
    fn what_cannot_be_sent_is_counted_and_does_not_stop_the_rest() {
        let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut sender = PathSocket::open(local, 0).expect("opens");
        let ordinary = UdpSocket::bind(local).expect("binds");
        ordinary.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let mut send = |remote: SocketAddr, bytes: Vec<u8>| {
            sender.send(Transmit {
                route: Route { local, remote },
                protocol: Protocol::Udp,
                bytes,
                ecn: Ecn::NotEct,
                may_fragment: true,
                is_alone: false,
            });
        };
        let there = ordinary.local_addr().expect("bound");
        // Port 0 is no destination, and no datagram is that long.
        send("127.0.0.1:0".parse().expect("an address"), vec![1; 10]);
        send(there, vec![2; LONGEST + 1]);
        send(there, vec![3; 30]);
        sender.flush();
        assert_eq!(sender.lost(), 2);
        let mut buffer = [0; 100];
        assert_eq!(ordinary.recv(&mut buffer).expect("a datagram"), 30);
    }

    /// One socket for several addresses: what leaves has the one that it is to have, and what comes to another is nobody's.
    #[test]
    fn native_sockets_serve_the_addresses_that_there_are() {
        for (v4, addresses) in [(true, ["127.0.0.2", "127.0.0.3"]), (false, ["::1", "::1"])] {
            let open = || PathSocket::open_native(Protocol::Esp, v4);
            let (mut left, mut right) = match (open(), open()) {
                (Ok(left), Ok(right)) => (left, right),
                (Err(error), _) | (_, Err(error)) => {
                    // Not everybody may, and not every machine has both families.
                    testkit::skip(&format!("no raw sockets: {error}"));
                    continue;
                }
            };
            let [a, b] = addresses.map(|address| SocketAddr::new(address.parse().expect("an address"), 0));
            assert!(left.join(a, 0) && right.join(b, 0));
            // An address of IPv4 is none of a socket of IPv6.
            assert_eq!(left.join("192.0.2.1:0".parse().expect("one"), 0), v4);
            let mut send = |bytes: &[u8]| {
                left.send(Transmit {
                    route: Route { local: a, remote: b },
                    protocol: Protocol::Esp,
                    bytes: bytes.to_vec(),
                    ecn: Ecn::Ect0,
                    may_fragment: true,
                    is_alone: false,
                });
                left.flush();
                assert_eq!(left.lost(), 0);
            };
            let receive = |right: &PathSocket| {
                let mut received = Received::default();
                right.receive(&mut received).expect("receives");
                let all = received.datagrams();
                all.iter().map(|one| (one.route, one.ecn, one.payload.to_vec())).collect::<Vec<_>>()
            };
            send(b"first");
            assert_eq!(receive(&right), [(Route { local: b, remote: a }, Ecn::Ect0, b"first".to_vec())]);
            // Whatever interface it comes by: there is none of this number.
            right.join(b, 9_999);
            send(b"second");
            assert_eq!(receive(&right).len(), 1);
            assert!(!right.leave(b), "it stays for others");
            send(b"third");
            assert!(receive(&right).is_empty());
        }
    }
}

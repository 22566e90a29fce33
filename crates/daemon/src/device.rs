//! The TUN device: where programs' packets to HITs and LSIs come out of the kernel, and where the peers' packets go in.
//!
//! `tun-rs`, because its synchronous API is safe, sets addresses and MTU, and knows the offloads: TCP segments arrive from
//! the kernel up to 64 KiB long with one system call and are cut into packets here, and the other way round.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, ExpandBuffer, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};
use wedge::{FIRST_WINDOW, Packet};
use wire::{Hit, Lsi};

use crate::netlink;

/// HITs are ORCHIDv2: 2001:20::/28 (RFC 7343 §2).
pub(crate) const HIT_PREFIX: u8 = 28;
const _: () = assert!(wedge::HEADROOM >= VIRTIO_NET_HDR_LEN);
/// The longest packet that the kernel hands over, before it is cut into segments.
const LONGEST: usize = VIRTIO_NET_HDR_LEN + 65_535;

/// What the device must be.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// The interface's name, at most 15 bytes.
    pub name: String,
    /// The host's own identity; programs send from it.
    pub hit: Hit,
    /// The host's own IPv4 stand-in.
    pub lsi: Lsi,
    /// Those of the peers that know this host by that identity.
    pub peers: Vec<Lsi>,
    /// The host's other identities.
    pub others: Vec<OtherIdentity>,
    /// The largest IPv6 packet, in bytes.
    pub mtu: u16,
    /// The largest IPv4 packet, in bytes; less than `mtu`, because the IPv6 header it becomes is longer.
    pub lsi_mtu: u16,
}

/// What the host is for some of its peers.
#[derive(Clone, Debug)]
pub struct OtherIdentity {
    /// Programs send from it to these peers.
    pub hit: Hit,
    /// Likewise, of IPv4.
    pub lsi: Lsi,
    /// Those that know this host by it.
    pub peers: Vec<(Hit, Lsi)>,
}

/// An open TUN device, up, with its addresses and routes. It disappears with this value.
pub struct Device {
    tun: SyncDevice,
    /// One packet or train of segments as the kernel gives it.
    train: Vec<u8>,
    segments: Segments,
    outgoing: Vec<Outgoing>,
    merging: GROTable,
    errors: Errors,
}

/// What went wrong between us and the kernel without an end to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Packets or trains that could not be read.
    pub unread: u64,
    /// Batches that the kernel did not take whole.
    pub undelivered: u64,
}

impl Device {
    /// Creates the device and brings it up.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, without `/dev/net/tun`, where the name is taken, or where IPv6 is off.
    pub fn open(config: &DeviceConfig) -> io::Result<Self> {
        let hit = Ipv6Addr::from(config.hit.0);
        let tun = DeviceBuilder::new()
            .name(&config.name)
            // The prefix makes a route to all HITs, and this address the source towards them.
            .ipv6(hit, HIT_PREFIX)
            .mtu(config.mtu)
            .offload(true)
            .enable(false)
            .build_sync()?;
        tun.set_nonblocking(true)?;
        let index = tun.if_index()?;
        netlink::set_no_link_local_address(index)?;
        // A program chooses its segment size, and so how many segments 64 KiB are; longer trains the kernel cuts itself.
        netlink::set_longest_train(index, IDEAL_BATCH_SIZE)?;
        keep_addresses(&config.name);
        tun.enabled(true)?;
        // Only to LSIs in use, because the range may have other addresses that somebody needs.
        let lead = |own: Lsi, peer: Lsi| {
            let (own, peer) = (own.address(), peer.address());
            netlink::add_address(index, own, Some(peer))?;
            netlink::add_route(index, (peer.into(), 32), Some(own.into()), Some(config.lsi_mtu), FIRST_WINDOW)
        };
        netlink::add_address(index, config.lsi.address(), None)?;
        config.peers.iter().try_for_each(|peer| lead(config.lsi, *peer))?;
        netlink::add_route(index, (hit_prefix(config.hit), HIT_PREFIX), None, None, FIRST_WINDOW)?;
        for other in &config.others {
            // Where nothing else is said the first one is the source of programs: of several the kernel would choose by bits.
            netlink::add_deprecated_address(index, other.hit.address())?;
            netlink::add_address(index, other.lsi.address(), None)?;
            for (hit, lsi) in &other.peers {
                lead(other.lsi, *lsi)?;
                let source = Some(other.hit.address().into());
                netlink::add_route(index, (hit.address().into(), 128), source, None, FIRST_WINDOW)?;
            }
        }
        Ok(Self {
            tun,
            train: vec![0; LONGEST],
            segments: Segments::of(config.mtu.into()),
            outgoing: Vec::new(),
            merging: GROTable::default(),
            errors: Errors::default(),
        })
    }

    /// The interface's name.
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn name(&self) -> io::Result<String> {
        self.tun.name()
    }

    /// What has gone wrong so far.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Something has changed about interfaces: if somebody has raised the MTU there is to be room for longer packets.
    pub fn follow_mtu(&mut self) {
        if let Ok(mtu) = self.tun.mtu() {
            self.segments.make_room(mtu.into());
        }
    }

    /// Reads one train of packets and appends them to `packets` in order; false where there is none. What cannot be read is
    /// counted and is gone: one packet, whoever made it, ends nothing.
    ///
    /// # Errors
    /// Where the device itself is gone.
    pub fn receive(&mut self, packets: &mut Vec<Vec<u8>>) -> io::Result<bool> {
        let Segments { buffers, sizes } = &mut self.segments;
        match self.tun.recv_multiple(&mut self.train, buffers, sizes, 0) {
            Ok(count) => self.segments.take(count, packets),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_gone(&error) => return Err(error),
            Err(error) => {
                self.errors.unread += 1;
                if error.raw_os_error().is_none() {
                    // Somebody may have raised the MTU a moment ago.
                    self.segments.make_room(LONGEST);
                }
                tracing::debug!(%error, "a packet of a program could not be read");
            }
        }
        Ok(true)
    }

    /// Gives packets to the kernel and empties `packets`. Neighbouring segments of a TCP connection go in as one. What the
    /// kernel does not take is lost, as in any full queue, and counted.
    ///
    /// # Errors
    /// Where the device itself is gone.
    pub fn deliver(&mut self, packets: &mut Vec<Packet>) -> io::Result<()> {
        while !packets.is_empty() {
            let batch = packets.len().min(IDEAL_BATCH_SIZE);
            self.outgoing.clear();
            self.outgoing.extend(packets.drain(..batch).map(Outgoing::from));
            match self.tun.send_multiple(&mut self.merging, &mut self.outgoing, VIRTIO_NET_HDR_LEN) {
                Ok(_) => {}
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => {
                    self.errors.undelivered += 1;
                    // A packet that the kernel does not like; or the interface is down, which a person did and can undo.
                    tracing::debug!(%error, "delivering");
                }
            }
        }
        Ok(())
    }
}

/// What a train is cut into: a buffer for each packet, which goes with the packet.
struct Segments {
    buffers: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Segments {
    /// For packets of at most so many bytes.
    fn of(longest: usize) -> Self {
        // Memory that no packet fills is none: the kernel gives pages when they are written.
        let buffers = (0..IDEAL_BATCH_SIZE).map(|_| vec![0; longest]).collect();
        Self { buffers, sizes: vec![0; IDEAL_BATCH_SIZE] }
    }

    /// Room for packets of so many bytes, at the price of a copy where it was for shorter ones.
    fn make_room(&mut self, longest: usize) {
        if self.buffers.first().is_none_or(|buffer| buffer.len() < longest) {
            *self = Self::of(longest);
        }
    }

    /// Hands over the packets in the first `count` buffers, and puts new buffers in their places.
    fn take(&mut self, count: usize, packets: &mut Vec<Vec<u8>>) {
        for (buffer, size) in self.buffers.iter_mut().zip(&self.sizes).take(count) {
            let longest = buffer.len();
            if *size <= longest / 2 {
                // Less to copy than a new buffer has to be cleared, and the packet holds no more memory than it needs.
                packets.push(buffer.get(..*size).unwrap_or_default().to_vec());
                continue;
            }
            let mut packet = std::mem::replace(buffer, vec![0; longest]);
            packet.truncate(*size);
            packet.shrink_to_fit();
            packets.push(packet);
        }
    }
}

/// A packet for the kernel, with the virtio header in the room before it, and the segments that follow it behind it.
struct Outgoing {
    bytes: Vec<u8>,
    /// Of the header.
    start: usize,
}

impl From<Packet> for Outgoing {
    fn from(packet: Packet) -> Self {
        let (mut bytes, start) = packet.into_parts();
        let missing = VIRTIO_NET_HDR_LEN.saturating_sub(start);
        // Errors that we tell programs have no room; they are few.
        bytes.splice(..0, std::iter::repeat_n(0, missing));
        Self { bytes, start: start + missing - VIRTIO_NET_HDR_LEN }
    }
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl AsMut<[u8]> for Outgoing {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }
}

impl ExpandBuffer for Outgoing {
    /// Segments are appended as long as they fit into this: whatever the kernel takes at once.
    fn buf_capacity(&self) -> usize {
        LONGEST
    }

    fn buf_resize(&mut self, new_len: usize, value: u8) {
        self.reserve(new_len);
        self.bytes.resize(self.start + new_len, value);
    }

    fn buf_extend_from_slice(&mut self, src: &[u8]) {
        self.reserve(self.as_ref().len() + src.len());
        self.bytes.extend_from_slice(src);
    }
}

impl Outgoing {
    /// Where another segment follows there are often many: room for all of them, so that they move once.
    fn reserve(&mut self, length: usize) {
        if self.bytes.capacity() < self.start + length {
            self.bytes.reserve_exact((self.start + LONGEST.max(length)).saturating_sub(self.bytes.len()));
        }
    }
}

/// The network address of all HITs.
pub(crate) fn hit_prefix(hit: Hit) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(hit.address().to_bits() & u128::MAX << (128 - HIT_PREFIX)))
}

/// Where the device is set down and up, IPv6 shall keep its address as IPv4 does, and with it the kernel's route: there are no
/// privileges left then to put them back. Where /proc/sys cannot be written the daemon ends in that case.
fn keep_addresses(name: &str) {
    let path = format!("/proc/sys/net/ipv6/conf/{name}/keep_addr_on_down");
    if let Err(error) = std::fs::write(&path, "1") {
        tracing::debug!(%error, path, "addresses will not outlive a device that is down");
    }
}

/// True where no later read or write can go better.
fn is_gone(error: &io::Error) -> bool {
    const ENODEV: i32 = 19;
    const EBADF: i32 = 9;
    const EBADFD: i32 = 77;
    matches!(error.raw_os_error(), Some(ENODEV | EBADF | EBADFD))
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ip, tcp};

    /// What has been cut out of a train is not copied again, and holds no more memory than it needs.
    #[test]
    fn a_packet_takes_its_buffer_along() {
        let mut segments = Segments::of(1_400);
        for round in 0..3 {
            let places: Vec<_> = segments.buffers.iter().map(|buffer| buffer.as_ptr()).collect();
            for (number, buffer) in (round..).zip(&mut segments.buffers) {
                buffer.fill(number);
            }
            segments.sizes[..3].copy_from_slice(&[1_400, 60, 900]);
            let mut packets = Vec::new();
            segments.take(3, &mut packets);
            assert_eq!(packets, [vec![round; 1_400], vec![round + 1; 60], vec![round + 2; 900]]);
            assert!(packets.iter().all(|packet| packet.capacity() == packet.len()));
            assert_eq!(packets[0].as_ptr(), places[0]);
            assert!(segments.buffers.iter().all(|buffer| buffer.len() == 1_400));
            assert!(!segments.buffers.iter().any(|buffer| buffer.as_ptr() == packets[0].as_ptr()));
        }
    }

    fn segment(seq: u32, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let header = tcp::Header {
            src_port: 7,
            dst_port: 8,
            seq,
            ack: 1,
            flags: tcp::Flags::ACK,
            window: 99,
            urgent: 0,
            options: &[],
        };
        let mut segment = Vec::new();
        header.emit(source.into(), destination.into(), &[seq as u8; 1_000], &mut segment).expect("a segment");
        ip::packet(source.into(), destination.into(), ip::protocol::TCP, &segment).expect("a packet")
    }

    /// The first of them, where it is, takes the payloads of the others.
    #[test]
    fn neighbouring_segments_go_to_the_kernel_as_one() {
        let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::from_bits(7));
        let packets = (0..50_u32).map(|number| segment(number * 1_000, source, destination));
        let mut outgoing: Vec<_> = packets
            .map(|packet| {
                let start = 6;
                let mut bytes = vec![0; start + VIRTIO_NET_HDR_LEN];
                bytes.extend_from_slice(&packet);
                Outgoing { bytes, start }
            })
            .collect();
        GROTable::default().apply_gro(&mut outgoing, VIRTIO_NET_HDR_LEN, false).expect("merges");
        let merged = outgoing[0].as_ref();
        let (header, payload) = merged[VIRTIO_NET_HDR_LEN..].split_at(60);
        let expected: Vec<u8> = (0..50_u32).flat_map(|number| [(number * 1_000) as u8; 1_000]).collect();
        assert_eq!(payload, expected);
        // virtio 1.2 §5.1.6: the size of the segments.
        assert_eq!(merged[4..6], 1_000_u16.to_ne_bytes());
        assert_eq!(header[..4], segment(0, source, destination)[..4]);
    }

    /// The header of the device goes into the room before a packet; where there is none, the packet makes room.
    #[test]
    fn a_packet_without_room_gets_it() {
        let packet: Vec<u8> = (1..100).collect();
        let mut outgoing = Outgoing::from(Packet::from(packet.clone()));
        assert_eq!(outgoing.as_ref(), [vec![0; VIRTIO_NET_HDR_LEN], packet].concat());
        outgoing.buf_extend_from_slice(&[7; 3]);
        outgoing.buf_resize(VIRTIO_NET_HDR_LEN + 103, 8);
        assert_eq!(outgoing.as_ref()[VIRTIO_NET_HDR_LEN + 98..], [99, 7, 7, 7, 8]);
    }
}

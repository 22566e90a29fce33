//! The place where a host touches the network: a TUN device in the host's namespace.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

/// Packets that wait in the kernel until they are read. A busy machine may keep the emulator from reading for a twentieth of a
/// second, and the kernel's 500 are full after 30 ms of 200 Mbit/s: it would lose what no link of the network has lost.
const QUEUE: u32 = 10_000;

/// A TUN device. It lives in the namespace of the thread that opened it and is used from any thread; it vanishes when it is dropped.
pub struct Port {
    device: SyncDevice,
}

impl Port {
    /// Opens a TUN device in the network namespace of the calling thread: `name` (at most 15 bytes), its only address, and its MTU in
    /// bytes (1280 and up where IPv6 is used).
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_NET_ADMIN` in this namespace, `NotFound` when the machine has no `/dev/net/tun`.
    pub fn open(name: &str, address: IpAddr, mtu: u16) -> io::Result<Self> {
        let builder = DeviceBuilder::new().name(name).mtu(mtu).with(|linux| {
            linux.packet_information(false).tx_queue_len(QUEUE);
        });
        let device = match address {
            IpAddr::V4(address) => builder.ipv4(address, 32u8, None),
            IpAddr::V6(address) => builder.ipv6(address, 128u8),
        }
        .build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self { device })
    }

    /// Reads one packet that the host has sent; `WouldBlock` when there is none.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.device.recv(into)
    }

    /// Hands a packet to the host. A host that has no room for it (`WouldBlock`) loses it, as a full receive ring would.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(drop)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

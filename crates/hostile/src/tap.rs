//! What an observer on the Ethernet sees.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::Namespace;
use socket2::{Domain, Protocol, Socket, Type};
use wire::Hit;
use wire::hip::PacketKind;

use crate::Failure;

/// The port of HIP and ESP.
pub(crate) const PORT: u16 = 10500;
/// ETH_P_ALL (packet(7)).
const EVERYTHING: u16 = 3;
/// HIP packets that are kept.
const KEPT: usize = 4096;

/// One HIP packet that was seen, as it stood in its datagram.
#[derive(Clone, Debug)]
pub(crate) struct Overheard {
    pub(crate) from: SocketAddrV4,
    pub(crate) bytes: Vec<u8>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) control: Vec<Overheard>,
    /// SPIs by the address that they are sent to, the latest last.
    pub(crate) spis: BTreeMap<Ipv4Addr, Vec<u32>>,
    /// Packets of which source or destination belongs inside a tunnel.
    pub(crate) clear: BTreeSet<String>,
}

/// An observer.
pub(crate) struct Tap {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

impl Tap {
    /// Watches everything that passes through a namespace. `inside` are the IPv4 addresses that belong inside a tunnel.
    pub(crate) fn start(place: &Namespace, inside: &[Ipv4Addr]) -> Result<Self, Failure> {
        let socket = place.run(|| {
            let protocol = Protocol::from(i32::from(EVERYTHING.to_be()));
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
            socket.set_recv_buffer_size(8 << 20)?;
            socket.set_read_timeout(Some(Duration::from_millis(100)))?;
            Ok::<Socket, std::io::Error>(socket)
        })??;
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Seen::default())));
        let (ended, list, inside) = (Arc::clone(&stop), Arc::clone(&seen), inside.to_vec());
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 17];
            while !ended.load(Ordering::Relaxed) {
                let Ok(length) = (&socket).read(&mut buffer) else { continue };
                let mut seen = list.lock().unwrap_or_else(PoisonError::into_inner);
                seen.note(buffer.get(..length).unwrap_or_default(), &inside);
            }
        });
        Ok(Self { stop, seen, thread: Some(thread) })
    }

    /// Ends it and tells what was seen.
    pub(crate) fn stop(mut self) -> Seen {
        self.halt();
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Seen {
    fn note(&mut self, frame: &[u8], inside: &[Ipv4Addr]) {
        let Some((head, packet)) = frame.split_first_chunk::<14>() else { return };
        match (head.get(12..14), packet) {
            (Some([0x08, 0x00]), packet) => self.note_v4(packet, inside),
            (Some([0x86, 0xdd]), packet) => {
                let Some(addresses) = packet.get(8..40) else { return };
                let (from, to) = addresses.split_at(16);
                let read = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from);
                self.note_clear(read(from).into(), read(to).into(), inside);
            }
            _ => {}
        }
    }

    fn note_v4(&mut self, packet: &[u8], inside: &[Ipv4Addr]) {
        let Some(&[a, b, c, d, e, f, g, h]) = packet.get(12..20).and_then(|bytes| bytes.first_chunk()) else { return };
        let (from, to) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h));
        self.note_clear(from.into(), to.into(), inside);
        let Some(&[p, q, r, s, _, _, _, _]) = packet.get(20..28).and_then(|bytes| bytes.first_chunk()) else { return };
        let (source, destination) = (u16::from_be_bytes([p, q]), u16::from_be_bytes([r, s]));
        let Some(content) = packet.get(28..) else { return };
        if packet.get(9) != Some(&17) || (source != PORT && destination != PORT) {
            return;
        }
        match content.first_chunk::<4>() {
            Some([0, 0, 0, 0]) if self.control.len() < KEPT => {
                self.control.push(Overheard { from: SocketAddrV4::new(from, source), bytes: content.to_vec() });
            }
            Some(spi) if *spi != [0; 4] => {
                let (spi, list) = (u32::from_be_bytes(*spi), self.spis.entry(to).or_default());
                if !list.contains(&spi) {
                    list.push(spi);
                }
            }
            _ => {}
        }
    }

    fn note_clear(&mut self, from: IpAddr, to: IpAddr, inside: &[Ipv4Addr]) {
        let belongs = |address: IpAddr| match address {
            IpAddr::V4(address) => inside.contains(&address),
            // RFC 7343 §2: 2001:20::/28.
            IpAddr::V6(address) => address.segments()[0] == 0x2001 && address.segments()[1] & 0xfff0 == 0x20,
        };
        if (belongs(from) || belongs(to)) && self.clear.len() < 100 {
            self.clear.insert(format!("{from} to {to}"));
        }
    }

    /// The HIP packets of one kind to a host, each once.
    pub(crate) fn of_kind(&self, kind: PacketKind, to: Hit) -> Vec<&Overheard> {
        let mut found: Vec<&Overheard> = Vec::new();
        for one in &self.control {
            // Behind the marker: kind at 2, receiver at 24 (RFC 7401 §5.1).
            let matches = one.bytes.get(6) == Some(&(kind as u8)) && one.bytes.get(28..44) == Some(&to.0);
            if matches && !found.iter().any(|other| other.bytes == one.bytes) {
                found.push(one);
            }
        }
        found
    }
}

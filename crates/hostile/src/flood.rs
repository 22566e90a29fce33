//! A paced source of forged packets: whole IPv4 packets out of a raw socket, some dozens with one system call.

use std::io::IoSlice;
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::Namespace;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, sendmmsg};
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Failure;
use crate::clockwork::{doze, now};

/// Packets for one system call.
const BATCH: usize = 64;

/// Makes the datagrams of a flood: from where, to where, and what is inside.
pub(crate) type Forge = Box<dyn FnMut(u64, &mut Vec<u8>) -> (SocketAddrV4, SocketAddrV4) + Send>;

/// A flood that runs.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    begin: std::time::Instant,
    thread: Option<JoinHandle<f64>>,
}

/// What a flood was.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Flooded {
    /// Packets a second.
    pub(crate) rate: f64,
    /// Of one processor, percent.
    pub(crate) cpu: f64,
}

impl Flood {
    /// Begins to send from `host`, `rate` packets a second; 0 for as fast as they can be made.
    pub(crate) fn start(host: &Namespace, rate: u64, forge: Forge) -> Result<Self, Failure> {
        let socket = host.run(raw_socket)??;
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ended, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = std::thread::spawn(move || {
            run(&socket, rate, forge, &count, &ended);
            clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
                .map_or(0.0, |time| std::time::Duration::from(time).as_secs_f64())
        });
        Ok(Self { stop, sent, begin: now(), thread: Some(thread) })
    }

    /// Ends it.
    pub(crate) fn stop(mut self) -> Flooded {
        self.stop.store(true, Ordering::Relaxed);
        let seconds = self.begin.elapsed().as_secs_f64();
        let cpu = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(0.0);
        Flooded { rate: self.sent.load(Ordering::Relaxed) as f64 / seconds, cpu: cpu * 100.0 / seconds }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket that sends IPv4 packets with any source.
pub(crate) fn raw_socket() -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))?;
    socket.set_header_included_v4(true)?;
    let _ = socket.set_send_buffer_size(4 << 20);
    Ok(socket)
}

fn run(socket: &Socket, rate: u64, mut forge: Forge, count: &AtomicU64, stop: &AtomicBool) {
    let (begin, mut sent) = (now(), 0_u64);
    // Packets that a late machine kept us from sending and that are not made up for.
    let mut forgone = 0_u64;
    let mut packets: Vec<Vec<u8>> = vec![Vec::new(); BATCH];
    let mut content = Vec::new();
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    while !stop.load(Ordering::Relaxed) {
        let due = if rate == 0 { u64::MAX } else { (begin.elapsed().as_secs_f64() * rate as f64) as u64 };
        let mut left = if rate == 0 { 1 } else { due.saturating_sub(sent + forgone) };
        if left > rate / 20 && rate > 0 {
            forgone += left - rate / 20;
            left = rate / 20;
        }
        while left > 0 && !stop.load(Ordering::Relaxed) {
            let now = left.min(BATCH as u64);
            let mut destinations = Vec::with_capacity(BATCH);
            for (offset, packet) in (0..now).zip(&mut packets) {
                content.clear();
                let (from, to) = forge(sent + offset, &mut content);
                ipv4_udp(from, to, &content, packet);
                destinations.push(Some(SockaddrIn::from(to)));
            }
            send(socket, &packets, &destinations, &mut headers);
            sent += now;
            count.store(sent, Ordering::Relaxed);
            left -= now;
        }
        if rate > 0 {
            doze(Duration::from_millis(1));
        }
    }
}

fn send(
    socket: &Socket,
    packets: &[Vec<u8>],
    destinations: &[Option<SockaddrIn>],
    headers: &mut MultiHeaders<SockaddrIn>,
) {
    let slices: Vec<[IoSlice<'_>; 1]> = packets.iter().map(|packet| [IoSlice::new(packet)]).collect();
    let none: [ControlMessage<'_>; 0] = [];
    // What a full queue drops is a packet less.
    let _ = sendmmsg(socket.as_raw_fd(), headers, &slices, destinations, none, MsgFlags::empty());
}

/// An IPv4 packet (RFC 791) with a UDP datagram without checksum (RFC 768). The kernel makes the header's checksum.
pub(crate) fn ipv4_udp(from: SocketAddrV4, to: SocketAddrV4, content: &[u8], packet: &mut Vec<u8>) {
    let udp = (8 + content.len()) as u16;
    packet.clear();
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&(20 + udp).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&from.ip().octets());
    packet.extend_from_slice(&to.ip().octets());
    for word in [from.port(), to.port(), udp, 0] {
        packet.extend_from_slice(&word.to_be_bytes());
    }
    packet.extend_from_slice(content);
}

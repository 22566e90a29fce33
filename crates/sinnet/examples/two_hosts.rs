//! Two hosts in one program: they prove their identities to each other over two links of 10 ms, and a datagram travels.
//!
//! The loop is that of any owner of a [`Wedge`]: give it packets and the time, take what it sends, delivers and tells, and
//! call it again when it asks for it.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use sinnet::hip::Route;
use sinnet::hip::identity::{Algorithm, HostIdentity};
use sinnet::rand_core::SeedableRng;
use sinnet::wedge::{Datagram, LocalPath, PeerConfig, Transmit, Wedge, WedgeConfig};
use sinnet::wire::ip::IpPacket;
use sinnet::wire::{Lsi, udp};
use sinnet::{Duration, Instant};

const NAMES: [&str; 2] = ["alice", "bob"];
const LSIS: [Lsi; 2] = [Lsi([198, 18, 0, 1]), Lsi([198, 18, 0, 2])];
const DELAY: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    // A program that talks to others takes its random numbers from the operating system.
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let places: [[SocketAddr; 2]; 2] = [
        ["10.0.0.1:10500".parse()?, "10.1.0.1:10500".parse()?],
        ["10.0.0.2:10500".parse()?, "10.1.0.2:10500".parse()?],
    ];
    let mut hosts = Vec::new();
    for (lsi, [first, second]) in LSIS.into_iter().zip(places) {
        let identity = HostIdentity::generate(Algorithm::EcdsaP256, &mut rng)?;
        let links = vec![LocalPath::new("fibre", first), LocalPath::new("radio", second)];
        hosts.push(Wedge::new(identity, WedgeConfig::new(lsi, links), &mut rng)?);
    }
    let hits = [hosts[0].hit(), hosts[1].hit()];
    for (side, host) in hosts.iter_mut().enumerate() {
        let other = 1 - side;
        host.add_peer(PeerConfig::new(NAMES[other], hits[other], LSIS[other], places[other]));
    }

    // What alice's kernel would give to a TUN device.
    let packet = udp::packet((hits[0].address().into(), 4000), (hits[1].address().into(), 9), b"hello")?;
    hosts[0].handle_application(Instant::ZERO, &mut rng, [packet]);

    // Packets under way, by when they arrive.
    let mut network: BTreeMap<(Instant, u64), (usize, Transmit)> = BTreeMap::new();
    let (mut now, mut sent) = (Instant::ZERO, 0);
    let end = Instant::ZERO + Duration::from_secs(2);
    while now <= end {
        while let Some((key, _)) = network.first_key_value().filter(|((at, _), _)| *at <= now)
            && let Some((to, arrived)) = network.remove(&key.clone())
        {
            let route = Route { local: arrived.route.remote, remote: arrived.route.local };
            let datagram = Datagram { route, protocol: arrived.protocol, payload: &arrived.bytes, ecn: arrived.ecn };
            hosts[to].handle_network(now, &mut rng, &[datagram]);
        }
        for (side, host) in hosts.iter_mut().enumerate() {
            if host.poll_timeout().is_some_and(|(at, _)| at <= now) {
                host.handle_timeout(now, &mut rng);
            }
            let (mut out, mut delivered) = (Vec::new(), Vec::new());
            host.poll_transmit(now, &mut out);
            for transmit in out {
                sent += 1;
                network.insert((now + DELAY, sent), (1 - side, transmit));
            }
            host.poll_deliver(&mut delivered);
            for packet in delivered {
                let packet = IpPacket::parse(&packet)?;
                println!(
                    "{now}: {} receives {} bytes of protocol {}",
                    NAMES[side],
                    packet.payload().len(),
                    packet.protocol()
                );
            }
            while let Some(event) = host.poll_event() {
                println!("{now}: {}: {event}", NAMES[side]);
            }
        }
        let timers = hosts.iter().filter_map(|host| Some(host.poll_timeout()?.0));
        now = timers.chain(network.keys().map(|(at, _)| *at)).min().unwrap_or(end + DELAY).max(now);
    }
    let status = hosts[0].status(now);
    for path in status.peers.iter().flat_map(|peer| &peer.paths) {
        println!("{}: {} bytes out, {} in", path.name, path.bytes_out, path.bytes_in);
    }
    Ok(())
}

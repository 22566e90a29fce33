//! Several identities of one host (RFC 7401 §7) in virtual time: who sees which HIT, and what the anonymous one tells.

use crate::common::{ms, udp_v4, udp_v6};
use clock::{Duration, Instant};
use hip::identity::{Algorithm, HostIdentity};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use wedge::{
    Datagram, Ecn, GuestConfig, Identities, IdentitiesError, LocalPath, PeerConfig, Protocol, Transmit, Wedge,
    WedgeConfig,
};
use wire::ip::IpPacket;
use wire::{Hit, Lsi};

/// Hosts by their number, each at one address, 10 ms from each other.
struct Net {
    now: Instant,
    hosts: Vec<Identities>,
    rng: ChaCha20Rng,
    flying: Vec<(Instant, Transmit)>,
    /// Everything sent: from which host, to which.
    sent: Vec<(usize, usize, Vec<u8>)>,
    /// What programs of each host were given.
    received: Vec<Vec<Vec<u8>>>,
}

fn place(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 10500))
}

fn host_at(place: SocketAddr) -> usize {
    let std::net::IpAddr::V4(address) = place.ip() else { panic!("{place}") };
    usize::from(address.octets()[3]) - 1
}

fn identity(seed: u64) -> HostIdentity {
    HostIdentity::generate(Algorithm::EcdsaP256, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap()
}

fn hit(seed: u64) -> Hit {
    identity(seed).hit()
}

fn config(host: usize, lsi: Lsi) -> WedgeConfig {
    let mut config = WedgeConfig::new(lsi, vec![LocalPath::new("link", place(host))]);
    (config.hip.puzzle_difficulty, config.hip.groups) = (1, vec![hip::dh::Group::P256]);
    config
}

/// What a host calls another: by the host's number and the identity's.
fn lsi(host: usize, identity: u8) -> Lsi {
    Lsi([1, 0, host as u8, identity])
}

/// A host with one identity, of this seed, that knows these: host and HIT.
fn plain(host: usize, seed: u64, peers: &[(usize, Hit)], guests: bool) -> Identities {
    let mut config = config(host, lsi(host, 0));
    config.guests = guests.then(|| GuestConfig::anybody(vec![lsi(0, 100), lsi(0, 101)]));
    let mut wedge = Wedge::new(identity(seed), config, &mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
    for ((other, hit), number) in peers.iter().zip(0..) {
        wedge.add_peer(PeerConfig::new(format!("{other} {number}"), *hit, lsi(*other, number), [place(*other)]));
    }
    wedge.into()
}

/// The host of three identities: 1 and 2, which each know B and one more, and an anonymous one of another seed, which knows D.
fn several(anonymous: u64) -> Identities {
    let all = [identity(1), identity(2), identity(anonymous).anonymous()];
    let mut all = all.into_iter().zip(0..).map(|(identity, number)| (identity, config(0, lsi(0, number))));
    let mut host =
        Identities::new(all.next().unwrap(), all.collect(), &mut ChaCha20Rng::seed_from_u64(anonymous)).unwrap();
    for (number, peer, seed) in [(0, B, 11), (1, B, 11), (1, C, 12), (2, D, 13)] {
        let peer = PeerConfig::new(format!("{number} {peer}"), hit(seed), lsi(peer, 0), [place(peer)]);
        host.get(number).unwrap().add_peer(peer);
    }
    host
}

const B: usize = 1;
const C: usize = 2;
const D: usize = 3;
const ANONYMOUS: u64 = 7;

impl Net {
    fn new() -> Self {
        let hosts = vec![
            several(ANONYMOUS),
            plain(B, 11, &[(0, hit(1)), (0, hit(2))], false),
            plain(C, 12, &[(0, hit(2))], false),
            plain(D, 13, &[], true),
        ];
        let received = vec![Vec::new(); hosts.len()];
        let rng = ChaCha20Rng::seed_from_u64(3);
        Self { now: Instant::ZERO, hosts, rng, flying: Vec::new(), sent: Vec::new(), received }
    }

    /// A program of a host says something.
    fn say(&mut self, host: usize, packet: Vec<u8>) {
        self.hosts[host].handle_application(self.now, &mut self.rng, [packet]);
        self.collect();
    }

    fn collect(&mut self) {
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let (mut out, mut packets) = (Vec::new(), Vec::new());
            host.poll_transmit(self.now, &mut out);
            host.poll_deliver(&mut packets);
            while host.poll_event().is_some() {}
            for transmit in out {
                self.sent.push((number, host_at(transmit.route.remote), transmit.bytes.clone()));
                self.flying.push((self.now + ms(10), transmit));
            }
            self.received[number].extend(packets.iter().map(|packet| packet.to_vec()));
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let arrives = self.flying.iter().map(|(at, _)| *at);
            let due = self.hosts.iter().filter_map(|host| Some(host.poll_timeout()?.0));
            let Some(next) = arrives.chain(due).min().filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            let (come, on): (Vec<_>, Vec<_>) = self.flying.drain(..).partition(|(at, _)| *at <= next);
            self.flying = on;
            for number in 0..self.hosts.len() {
                let mine = come.iter().map(|(_, transmit)| transmit);
                let mine: Vec<_> = mine.filter(|transmit| host_at(transmit.route.remote) == number).collect();
                let datagrams: Vec<_> = mine
                    .iter()
                    .map(|transmit| Datagram {
                        route: hip::Route { local: transmit.route.remote, remote: transmit.route.local },
                        protocol: Protocol::Udp,
                        payload: &transmit.bytes,
                        ecn: Ecn::NotEct,
                    })
                    .collect();
                self.hosts[number].handle_network(self.now, &mut self.rng, &datagrams);
                self.hosts[number].handle_timeout(self.now, &mut self.rng);
            }
            self.collect();
        }
        self.now = until;
    }

    /// Where from and to were the packets that a host's programs have got since the last time, those of UDP.
    fn taken(&mut self, host: usize) -> Vec<(std::net::IpAddr, std::net::IpAddr)> {
        let packets = std::mem::take(&mut self.received[host]);
        let view =
            |packet: &Vec<u8>| IpPacket::parse(packet).map(|view| (view.src(), view.dst(), view.protocol())).unwrap();
        packets.iter().map(view).filter(|(.., protocol)| *protocol == 17).map(|(src, dst, _)| (src, dst)).collect()
    }

    /// The HIP packets from one host to another: type, A bit, sender, receiver (RFC 7401 §5.1; four zeros before, RFC 5770 §4.1).
    fn hip(&self, from: usize, to: usize) -> Vec<(u8, u8, Hit, Hit)> {
        let hit = |bytes: &[u8]| Hit(bytes.try_into().unwrap());
        let all = self.sent.iter().filter(|(one, other, _)| (*one, *other) == (from, to));
        all.filter_map(|(.., bytes)| bytes.strip_prefix(&[0; 4]))
            .map(|hip| (hip[2], hip[7] & 1, hit(&hip[8..24]), hit(&hip[24..40])))
            .collect()
    }
}

/// From which of our HITs, to which of the peers': all of them, in both directions and both families.
fn talk(net: &mut Net, anonymous: u64) {
    let from = |number: u8| [hit(1), hit(2), hit(anonymous)][usize::from(number)];
    let told = |net: &mut Net, host, src: Hit, dst: Hit, what| {
        assert_eq!(net.taken(host), [(src.address().into(), dst.address().into())], "{what:?}");
    };
    for (number, peer, seed) in [(0, B, 11), (1, C, 12), (1, B, 11), (2, D, 13)] {
        net.say(0, udp_v6(from(number), hit(seed), (9, 9), b"there"));
        net.run(ms(2_000));
        told(net, peer, from(number), hit(seed), (number, peer));
        // What the peer has as the LSI of that identity.
        net.say(peer, udp_v6(hit(seed), from(number), (9, 9), b"and back"));
        net.run(ms(100));
        told(net, 0, hit(seed), from(number), (number, peer));
        net.say(0, udp_v4(lsi(0, number), lsi(peer, 0), (8, 8), b"there by LSI"));
        net.run(ms(100));
        told(net, peer, from(number), hit(seed), (number, peer));
    }
}

#[test]
fn each_peer_sees_the_identity_that_speaks_with_it() {
    let mut net = Net::new();
    talk(&mut net, ANONYMOUS);
    let status = net.hosts[0].status(net.now);
    let identities: Vec<_> = status.identities.iter().map(|one| (one.hit.clone(), one.anonymous)).collect();
    let all = [(hit(1), false), (hit(2), false), (hit(ANONYMOUS), true)].map(|(hit, is)| (hit.to_string(), is));
    assert_eq!((identities, status.hit), (all.to_vec(), hit(1).to_string()));
    let peers: Vec<_> = status.peers.iter().map(|peer| (&*peer.name, &*peer.identity, &*peer.state)).collect();
    let own = [1, 2, 2, ANONYMOUS].map(|seed| hit(seed).to_string());
    let names = ["0 1", "1 1", "1 2", "2 3"];
    let expected: Vec<_> = names.iter().zip(&own).map(|(name, own)| (*name, &**own, "ESTABLISHED")).collect();
    assert_eq!(peers, expected);
    // C has never heard of the first.
    let heard = |net: &Net, host| net.hip(0, host).into_iter().map(|(_, _, sender, _)| sender).collect::<Vec<_>>();
    assert!(heard(&net, C).iter().all(|sender| *sender == hit(2)));
    assert!(heard(&net, D).iter().all(|sender| *sender == hit(ANONYMOUS)));
    // Counted together: one program's packet each way for each of the four pairs, and one more by LSI.
    assert_eq!(status.counters.application_in, 8);
    // An address that is none of ours.
    net.say(0, udp_v6(hit(99), hit(11), (9, 9), b"?"));
    net.run(ms(100));
    assert_eq!((net.taken(B), net.hosts[0].status(net.now).counters.wrong_source), (vec![], 1));
}

#[test]
fn only_the_anonymous_identity_has_the_a_bit_and_nobody_finds_it() {
    let mut net = Net::new();
    talk(&mut net, ANONYMOUS);
    let said: Vec<_> = net.hip(0, D).into_iter().map(|(kind, bit, ..)| (kind, bit)).collect();
    assert!(said.contains(&(1, 1)) && said.contains(&(3, 1)) && said.iter().all(|(_, bit)| *bit == 1), "{said:?}");
    for (from, to) in [(0, B), (0, C), (B, 0), (C, 0), (D, 0)] {
        assert!(net.hip(from, to).iter().all(|(_, bit, ..)| *bit == 0));
    }
    // C has heard of it somewhere, and asks; it asks for the second, too, which shows that it can.
    let before = net.sent.len();
    let peers = [(0, hit(ANONYMOUS)), (0, hit(2))];
    net.hosts[C] = plain(C, 12, &peers, false);
    net.say(C, udp_v6(hit(12), hit(ANONYMOUS), (9, 9), b"who is there?"));
    net.say(C, udp_v6(hit(12), hit(2), (9, 9), b"who is there?"));
    net.run(ms(30_000));
    let asked = net.hip(C, 0).iter().filter(|(kind, .., receiver)| (*kind, *receiver) == (1, hit(ANONYMOUS))).count();
    assert!(asked >= 5, "{asked}");
    let mut answers = net.sent.split_off(before);
    answers.retain(|(from, to, bytes)| (*from, *to) == (0, C) && bytes.starts_with(&[0; 4]));
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|(.., bytes)| bytes[12..28] != hit(ANONYMOUS).0));
}

/// SPIs are all that an ESP packet tells of its identity; and where a peer has forgotten us its hint names nobody.
#[test]
fn who_starts_again_finds_the_identity_that_it_had() {
    let mut net = Net::new();
    talk(&mut net, ANONYMOUS);
    // B knows nothing any more, and only who comes: hints to no HIT tell both identities that they have to begin anew.
    net.hosts[B] = plain(B, 11, &[], true);
    net.run(ms(1_000));
    for number in [0, 1_u8] {
        net.say(0, udp_v6(hit(u64::from(number) + 1), hit(11), (9, 9), b"lost with the association"));
    }
    net.run(ms(6_000));
    for number in [0, 1_u8] {
        let from = hit(u64::from(number) + 1);
        net.received[B].clear();
        net.say(0, udp_v6(from, hit(11), (9, 9), b"are you there?"));
        net.run(ms(1_000));
        assert_eq!(net.taken(B), [(from.address().into(), hit(11).address().into())]);
    }
    // We know nothing any more, and come with another anonymous identity.
    net.hosts[B] = plain(B, 11, &[(0, hit(1)), (0, hit(2))], false);
    net.hosts[0] = several(8);
    talk(&mut net, 8);
    assert_ne!(hit(8), hit(ANONYMOUS));
}

#[test]
fn what_cannot_be_together_is_refused() {
    let make = |others: Vec<(u64, u8)>| {
        let others = others.into_iter().map(|(seed, number)| (identity(seed), config(0, lsi(0, number)))).collect();
        let made = Identities::new((identity(1), config(0, lsi(0, 0))), others, &mut ChaCha20Rng::seed_from_u64(1));
        made.err().map(|error| error.to_string())
    };
    assert!(make(vec![(1, 1)]).unwrap().contains(&format!("have the HIT {}", hit(1))));
    assert!(make(vec![(2, 0)]).unwrap().contains("have the LSI 1.0.0.0"));
    let most = Identities::MOST as u8;
    assert_eq!(make((1..most).map(|number| (u64::from(number) + 1, number)).collect()), None);
    let many = make((1..=most).map(|number| (u64::from(number) + 1, number)).collect());
    assert_eq!(many, Some(IdentitiesError::TooMany.to_string()));
}

//! Registration (RFC 8003) and rendezvous (RFC 8004): three hosts, of which one knows where the others are. The oracle is who has
//! told whom which address.

use std::net::SocketAddr;

use crate::common::by_hand::{Hand, locator};
use crate::common::{Side, addresses, config, generated};
use clock::{Duration, Instant};
use hip::identity::Algorithm;
use hip::{Peer, Registrar, Route, State};
use wire::Hit;
use wire::hip::{Builder, Packet, PacketKind, Parameter, RegFailed, RegInfo, Registration, append};

const SECOND: Duration = Duration::from_secs(1);
const RENDEZVOUS: u8 = 1;
/// Initiator, server, and the host that is registered.
const I: usize = 0;
const S: usize = 1;
const R: usize = 2;

/// Hosts with an address each, and what is on its way between them: 20 ms.
struct Net {
    now: Instant,
    sides: Vec<Side>,
    places: Vec<SocketAddr>,
    flying: Vec<(Instant, Route, Vec<u8>)>,
    /// All that was sent: the route as the sender sees it.
    sent: Vec<(Route, Vec<u8>)>,
    /// What is sent from there is lost.
    dead: Option<SocketAddr>,
}

impl Net {
    /// `native`: without UDP.
    fn new(native: bool, registrar: Option<Registrar>, may_register: bool) -> Self {
        let port = if native { 0 } else { 10500 };
        let places = addresses(&["10.0.0.1", "10.0.0.2", "10.0.0.3"], port);
        let identities: Vec<_> = (0..3).map(|seed| generated(Algorithm::EcdsaP256, 40 + seed)).collect();
        let hits: Vec<Hit> = identities.iter().map(hip::identity::HostIdentity::hit).collect();
        let mut sides: Vec<Side> = identities
            .into_iter()
            .zip(&places)
            .zip(0..)
            .map(|((identity, place), seed)| {
                let mut config = config(&[*place]);
                config.registrar = registrar.filter(|_| seed == S as u64);
                Side::new(identity, config, seed)
            })
            .collect();
        // Nobody but the server knows where the registered host is, not even that, before it comes.
        let mut peer = Peer::new(hits[R], Vec::new());
        peer.via = vec![places[S]];
        sides[I].host.add_peer(Instant::ZERO, peer);
        let mut peer = Peer::new(hits[R], Vec::new());
        peer.may_register = may_register;
        sides[S].host.add_peer(Instant::ZERO, peer);
        sides[R].host.add_peer(Instant::ZERO, Peer::new(hits[I], Vec::new()));
        let mut peer = Peer::new(hits[S], vec![places[S]]);
        peer.registers = true;
        sides[R].host.add_peer(Instant::ZERO, peer);
        Self { now: Instant::ZERO, sides, places, flying: Vec::new(), sent: Vec::new(), dead: None }
    }

    fn hit(&self, side: usize) -> Hit {
        self.sides[side].host.hit()
    }

    fn collect(&mut self) {
        for side in &mut self.sides {
            side.take_events();
            while let Some(control) = side.host.poll_transmit() {
                if self.dead == Some(control.route.local) {
                    continue;
                }
                self.sent.push((control.route, control.bytes.clone()));
                let route = Route { local: control.route.remote, remote: control.route.local };
                self.flying.push((self.now + Duration::from_millis(20), route, control.bytes));
            }
        }
    }

    fn connect(&mut self, from: usize, to: usize) {
        let (now, peer, Side { host, rng, .. }) = (self.now, self.hit(to), &mut self.sides[from]);
        host.connect(now, rng, peer).unwrap();
        self.collect();
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        self.collect();
        loop {
            let packet = self.flying.iter().map(|(at, ..)| *at).min();
            let due = self.sides.iter().filter_map(|side| side.host.poll_timeout()).map(|(at, _)| at).min();
            let Some(next) = [packet, due].into_iter().flatten().min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            if packet == Some(next) {
                let at = self.flying.iter().position(|(at, ..)| *at == next).unwrap();
                let (_, route, bytes) = self.flying.remove(at);
                let now = self.now;
                if let Some(to) = self.places.iter().position(|place| *place == route.local) {
                    let Side { host, rng, .. } = &mut self.sides[to];
                    host.handle_packet(now, rng, route, &bytes);
                }
            } else {
                for Side { host, rng, .. } in &mut self.sides {
                    host.handle_timeout(self.now, rng);
                }
            }
            self.collect();
        }
        self.now = until;
    }

    fn state(&self, side: usize, peer: usize) -> State {
        let hit = self.hit(peer);
        self.sides[side].host.associations().find(|view| view.peer == hit).unwrap().state
    }

    fn sent_of(&self, kind: PacketKind) -> Vec<(Route, Packet<'_>)> {
        let all = self.sent.iter().map(|(route, bytes)| (*route, Packet::parse(bytes).unwrap()));
        all.filter(|(_, packet)| packet.kind() == kind).collect()
    }
}

/// RFC 8004 §2, §4.3: the I1 goes by the server, all else straight.
#[test]
fn a_registered_host_is_found_by_its_server() {
    for native in [false, true] {
        let mut net = Net::new(native, Some(Registrar::default()), true);
        net.run(SECOND * 3);
        assert_eq!(net.sides[R].registered.len(), 1, "{:?}", net.sides[R].failed);
        assert_eq!(net.sides[R].registered[0], Ok(Duration::from_secs(304)), "2^((130 - 64) / 8)");
        let place = net.places[R];
        assert_eq!(net.sides[S].host.registrations(net.now).collect::<Vec<_>>(), [(net.hit(R), place)]);
        // RFC 8003 §3: REG_INFO in R1, REG_REQUEST in I2, REG_RESPONSE in R2.
        let info = RegInfo { min: 112, max: 160, types: vec![RENDEZVOUS] };
        assert_eq!(net.sent_of(PacketKind::R1)[0].1.reg_info(), Some(&info));
        let asked = Registration { lifetime: 130, types: vec![RENDEZVOUS] };
        assert_eq!(net.sent_of(PacketKind::I2)[0].1.reg_request(), Some(&asked));
        assert_eq!(net.sent_of(PacketKind::R2)[0].1.reg_response(), Some(&asked));

        net.sent.clear();
        net.connect(I, R);
        net.run(SECOND * 3);
        assert_eq!((net.state(I, R), net.sides[S].host.counters().relayed), (State::Established, 1));
        let [first, second] = &net.sent_of(PacketKind::I1)[..] else { panic!("two I1s") };
        assert_eq!((first.0.local, first.0.remote), (net.places[I], net.places[S]));
        assert_eq!((second.0.local, second.0.remote), (net.places[S], net.places[R]));
        let std::net::IpAddr::V4(from) = net.places[I].ip() else { panic!("IPv4") };
        assert_eq!(second.1.from(), Some(&from.to_ipv6_mapped()));
        assert!(second.1.rvs_hmac().is_some());
        if native {
            assert!(second.1.checksum_is_right(net.places[S].ip(), net.places[R].ip()), "RFC 8004 §4.2.1");
        }
        let (route, r1) = &net.sent_of(PacketKind::R1)[0];
        assert_eq!((route.local, route.remote), (net.places[R], net.places[I]));
        let std::net::IpAddr::V4(server) = net.places[S].ip() else { panic!("IPv4") };
        assert_eq!(r1.via_rvs(), Some(&vec![server.to_ipv6_mapped()]), "RFC 8004 §4.3.1");
        let paths: Vec<Route> = net.sides[I].paths.values().map(|(route, ..)| *route).collect();
        assert_eq!(paths, [Route { local: net.places[I], remote: net.places[R] }]);
    }
}

/// RFC 8003 §3.2, §4.3: it is renewed before it ends, and without renewal it ends.
#[test]
fn a_registration_lasts_as_long_as_it_is_renewed() {
    let mut net = Net::new(false, Some(Registrar::default()), true);
    net.run(SECOND * 1_000);
    let times = net.sides[R].registered.len();
    assert!((4..=6).contains(&times), "every 228 s: {times}");
    assert!(net.sides[R].registered.iter().all(Result::is_ok));
    assert_eq!(net.sides[S].host.registrations(net.now).count(), 1);
    assert!(net.sent_of(PacketKind::Update).iter().any(|(_, update)| update.reg_request().is_some()));
    let counted = net.sides[S].host.counters().registrations;
    assert_eq!(counted as usize, times);
    // The host is gone without a word.
    net.dead = Some(net.places[R]);
    net.run(SECOND * 310);
    assert_eq!(net.sides[S].host.registrations(net.now).count(), 0);
    net.connect(I, R);
    net.run(SECOND * 5);
    assert_eq!(net.sides[S].host.counters().relayed, 0);
}

/// A server that starts again knows nothing; the host registers anew.
#[test]
fn a_registration_comes_back_with_the_association() {
    let mut net = Net::new(false, Some(Registrar::default()), true);
    net.run(SECOND * 3);
    let peer = net.hit(S);
    for (side, peer) in [(S, net.hit(R)), (R, peer)] {
        net.sides[side].host.abandon(peer, "forgotten");
    }
    assert_eq!(net.sides[S].host.registrations(net.now).count(), 0, "it ends with its association");
    net.run(SECOND * 300);
    assert_eq!(net.sides[S].host.registrations(net.now).count(), 1);
    assert!(net.sides[R].registered.len() >= 2);
}

/// RFC 8003 §4.4: who may not hears it, and so does who comes when there is no room.
#[test]
fn a_registration_without_right_or_room_is_refused() {
    let full = {
        let mut limits = Registrar::default();
        limits.most = 0;
        limits
    };
    for (registrar, may_register, reason) in [(Registrar::default(), false, 0), (full, true, 2)] {
        let mut net = Net::new(false, Some(registrar), may_register);
        net.run(SECOND * 1_000);
        let said = &net.sides[R].registered;
        assert!(said.iter().all(|said| *said == Err(reason)) && (3..=5).contains(&said.len()), "{said:?}");
        assert_eq!(net.sides[S].host.registrations(net.now).count(), 0);
        assert_eq!(net.sides[S].host.counters().registrations_refused as usize, said.len());
        net.connect(I, R);
        net.run(SECOND * 5);
        assert_eq!(net.sides[S].host.counters().relayed, 0);
    }
    // One that is no server at all: it is asked once the association is there, and says so.
    let mut net = Net::new(false, None, true);
    net.run(SECOND * 30);
    assert_eq!(net.sides[R].registered, [Err(1)]);
}

fn hand(registrar: Option<Registrar>) -> Hand {
    Hand::new(|config, peer| {
        config.registrar = registrar;
        peer.may_register = true;
    })
}

fn asks(lifetime: u8, types: &[u8]) -> Parameter {
    Parameter::RegRequest(Registration { lifetime, types: types.to_vec() })
}

/// RFC 8003 §4.2 to §4.4, by hand: lifetimes are brought into the range that is offered, 0 ends a registration, and services that
/// are not there are refused.
#[test]
fn lifetimes_have_a_range_and_zero_ends_it() {
    let mut hand = hand(Some(Registrar::default()));
    let r2 = hand.exchange(&[asks(255, &[RENDEZVOUS, 2])]);
    let r2 = Packet::parse(&r2).unwrap();
    let granted = |lifetime| Registration { lifetime, types: vec![RENDEZVOUS] };
    assert_eq!(r2.reg_response(), Some(&granted(160)));
    let refused = RegFailed { reason: 1, types: vec![2] };
    assert!(r2.parameters().any(|parameter| *parameter == Parameter::RegFailed(refused.clone())));
    assert_eq!(hand.side.host.registrations(hand.now).count(), 1);
    let said = |hand: &mut Hand, seq, lifetime| {
        let said = hand.update(vec![asks(lifetime, &[RENDEZVOUS]), Parameter::Seq(seq)]).remove(0).1;
        Packet::parse(&said).unwrap().reg_response().unwrap().lifetime
    };
    assert_eq!(said(&mut hand, 0, 1), 112);
    hand.wait(SECOND * 63);
    assert_eq!(hand.side.host.registrations(hand.now).count(), 1);
    hand.wait(SECOND * 2);
    assert_eq!(hand.side.host.registrations(hand.now).count(), 0, "after 64 s");
    assert_eq!(said(&mut hand, 1, 120), 120);
    assert_eq!(said(&mut hand, 2, 0), 0);
    assert_eq!(hand.side.host.registrations(hand.now).count(), 0, "cancelled");
    // A replay of the request before brings nothing back.
    assert_eq!(said(&mut hand, 3, 120), 120);
    let old = hand.sealed(PacketKind::Update, vec![asks(0, &[RENDEZVOUS]), Parameter::Seq(2)]);
    hand.give(hand.route, &old);
    assert_eq!(hand.side.host.registrations(hand.now).count(), 1);
}

/// A host that does not know of registrations passes REG_REQUEST over (RFC 7401 §5.2.1), and is not asked all the time.
#[test]
fn who_knows_nothing_of_registrations_is_seldom_asked() {
    let mut hand = Hand::new(|_, peer| peer.registers = true);
    hand.exchange(&[]);
    let mut asked = 0;
    for _ in 0..1_000 {
        hand.wait(SECOND);
        let said = std::mem::take(&mut hand.said);
        let updates = said.iter().map(|(_, bytes)| Packet::parse(bytes).unwrap());
        let requests: Vec<u32> = updates
            .filter(|update| update.reg_request().is_some())
            .filter_map(|update| update.seq().copied())
            .collect();
        for seq in requests {
            asked += 1;
            hand.update(vec![Parameter::Ack(vec![seq])]);
        }
    }
    assert!((3..=5).contains(&asked), "{asked}");
}

/// RFC 8004 §4.3.1: FROM is believed of the server that this host is registered with, and of nobody else.
#[test]
fn a_relayed_i1_is_believed_of_the_server_only() {
    let mut net = Net::new(false, Some(Registrar::default()), true);
    net.run(SECOND * 3);
    net.connect(I, R);
    net.run(Duration::from_millis(30));
    let (_, relayed) = net.sent_of(PacketKind::I1).pop().unwrap();
    let relayed = relayed.bytes().to_vec();
    net.flying.clear();
    net.sent.clear();
    let (server, host) = (net.places[S], net.places[R]);
    let honest = Route { local: host, remote: server };
    let answers = |net: &mut Net, route, bytes: &[u8]| {
        let (now, Side { host, rng, .. }) = (net.now, &mut net.sides[R]);
        host.handle_packet(now, rng, route, bytes);
        let mut answers = 0;
        while let Some(control) = net.sides[R].host.poll_transmit() {
            answers += usize::from(Packet::parse(&control.bytes).unwrap().kind() == PacketKind::R1);
        }
        answers
    };
    assert_eq!(answers(&mut net, honest, &relayed), 1);
    let elsewhere = Route { remote: locator("10.0.0.66"), ..honest };
    assert_eq!(answers(&mut net, elsewhere, &relayed), 0, "not from there");
    // Any byte of it that is changed, but those that nobody looks at inside UDP: the checksum, and the padding at the end.
    for at in 0..relayed.len() {
        let mut changed = relayed.clone();
        changed[at] ^= 0x40;
        let said = answers(&mut net, honest, &changed);
        let ignored = (4..6).contains(&at) || at + 4 >= relayed.len();
        assert!(said == 0 || ignored, "byte {at}");
    }
    // FROM without a MAC, and addresses that are no host's.
    let hits = (net.hit(I), net.hit(R));
    for address in ["::ffff:224.0.0.1", "::ffff:10.0.0.1"] {
        let mut i1 =
            Builder::new(PacketKind::I1, hits.0, hits.1).push(&Parameter::DhGroupList(vec![7])).finish().unwrap();
        append(&mut i1, &Parameter::From(address.parse().unwrap()));
        assert_eq!(answers(&mut net, honest, &i1), 0, "{address}");
    }
}

/// What a server passes on costs a MAC, and is as limited as I1s are; two servers in a row are not served.
#[test]
fn a_flood_of_i1s_is_not_passed_on() {
    let mut net = Net::new(false, Some(Registrar::default()), true);
    net.run(SECOND * 3);
    let hits = (net.hit(I), net.hit(R));
    let i1 = Builder::new(PacketKind::I1, hits.0, hits.1).push(&Parameter::DhGroupList(vec![7])).finish().unwrap();
    let route = Route { local: net.places[S], remote: locator("10.66.0.1") };
    for _ in 0..10_000 {
        let (now, Side { host, rng, .. }) = (net.now, &mut net.sides[S]);
        host.handle_packet(now, rng, route, &i1);
    }
    let relayed = net.sides[S].host.counters().relayed;
    assert!((1..=100).contains(&relayed), "{relayed}");
    let mut chained = i1;
    append(&mut chained, &Parameter::From("::ffff:10.0.0.9".parse().unwrap()));
    let other = Route { remote: locator("10.67.0.1"), ..route };
    let (now, Side { host, rng, .. }) = (net.now, &mut net.sides[S]);
    host.handle_packet(now, rng, other, &chained);
    assert_eq!(net.sides[S].host.counters().relayed, relayed);
}

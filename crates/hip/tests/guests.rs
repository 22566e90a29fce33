//! Hosts that nobody has configured: who may come, how many, what they leave, and what it costs. The oracles are the bounds and the
//! counters of operations.

use std::net::SocketAddr;

use crate::common::{Side, addresses, config, generated};
use clock::{Duration, Instant};
use hip::identity::Algorithm;
use hip::{Event, Guests, HostConfig, Peer, Route};
use wire::Hit;
use wire::hip::{Builder, Packet, PacketKind, Parameter};

const SERVER: &str = "10.0.0.1";
/// Before, nobody has any right to be answered.
const BEGIN: Instant = Instant::from_nanos(10_000_000_000);

fn server(tune: impl FnOnce(&mut HostConfig)) -> Side {
    let mut config = config(&addresses(&[SERVER], 10500));
    tune(&mut config);
    Side::new(generated(Algorithm::EcdsaP256, 1), config, 1)
}

fn place(number: u64) -> SocketAddr {
    SocketAddr::from(([10, 1, number as u8, 1], 10500))
}

/// A host that has the server as a peer.
fn guest(server: &Side, number: u64) -> Side {
    let mut guest = Side::new(generated(Algorithm::EcdsaP256, 100 + number), config(&[place(number)]), 100 + number);
    guest.host.add_peer(Instant::ZERO, Peer::new(server.host.hit(), addresses(&[SERVER], 10500)));
    guest
}

/// What the server was told of guests.
#[derive(Debug, Default)]
struct Told {
    admitted: Vec<Hit>,
    departed: Vec<Hit>,
}

/// Carries packets between the two until `now` plus this; keeps the I2s.
fn run(
    now: &mut Instant,
    time: Duration,
    server: &mut Side,
    guest: &mut Side,
    told: &mut Told,
) -> Vec<(Route, Vec<u8>)> {
    let (end, mut i2s) = (*now + time, Vec::new());
    while *now < end {
        // Back and forth until nobody has anything to say.
        let mut is_quiet = false;
        while !std::mem::replace(&mut is_quiet, true) {
            for forwards in [true, false] {
                let (from, to) = if forwards { (&mut *guest, &mut *server) } else { (&mut *server, &mut *guest) };
                while let Some(control) = from.host.poll_transmit() {
                    let route = Route { local: control.route.remote, remote: control.route.local };
                    if Packet::parse(&control.bytes).unwrap().kind() == PacketKind::I2 {
                        i2s.push((route, control.bytes.clone()));
                    }
                    to.host.handle_packet(*now, &mut to.rng, route, &control.bytes);
                    is_quiet = false;
                }
            }
        }
        while let Some(event) = server.host.poll_event() {
            match event {
                Event::Admitted { peer } => told.admitted.push(peer),
                Event::Departed { peer } => told.departed.push(peer),
                _ => {}
            }
        }
        guest.take_events();
        let next = [&*server, &*guest].iter().filter_map(|side| side.host.poll_timeout()).map(|(at, _)| at).min();
        *now = next.map_or(end, |next| next.max(*now + Duration::from_micros(1)).min(end));
        for side in [&mut *server, &mut *guest] {
            side.host.handle_timeout(*now, &mut side.rng);
        }
    }
    i2s
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_host_lets_in_whom_it_may_and_nobody_by_default() {
    let wanted = guest(&server(|_| ()), 7).host.hit();
    let other =
        Hit([wanted.0[0], wanted.0[1], wanted.0[2], wanted.0[3], !wanted.0[4], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (hits, admits) in [
        (None, false),
        (Some(vec![]), true),
        (Some(vec![(wanted, 128)]), true),
        (Some(vec![(other, 40), (wanted, 40)]), true),
        (Some(vec![(other, 40)]), false),
    ] {
        let shown = format!("{hits:?}");
        let mut server = server(|config| {
            config.guests = hits.map(|hits| {
                let mut guests = Guests::anybody(8);
                guests.hits = hits;
                guests
            });
        });
        let mut guest = guest(&server, 7);
        let (mut now, mut told) = (BEGIN, Told::default());
        guest.host.connect(now, &mut guest.rng, server.host.hit()).unwrap();
        run(&mut now, SECOND * 2, &mut server, &mut guest, &mut told);
        assert_eq!((guest.established, told.admitted.len()), (u32::from(admits), usize::from(admits)), "{shown}");
        assert_eq!(server.host.counters().unknown_peer > 0, !admits, "{shown}");
        assert_eq!(
            server.host.associations().count(),
            usize::from(admits),
            "{shown}: nothing is kept of who is refused"
        );
    }
}

/// Only so many are there at a time; who leaves makes room, is forgotten, and may come again.
#[test]
fn places_are_bounded_and_free_again() {
    const MOST: usize = 3;
    let mut server = server(|config| config.guests = Some(Guests::anybody(MOST)));
    let (mut now, mut told) = (BEGIN, Told::default());
    let mut guests: Vec<Side> = (0..5).map(|number| guest(&server, number)).collect();
    let hit = server.host.hit();
    for guest in &mut guests {
        guest.host.connect(now, &mut guest.rng, hit).unwrap();
        run(&mut now, SECOND * 2, &mut server, guest, &mut told);
    }
    let established: Vec<u32> = guests.iter().map(|guest| guest.established).collect();
    assert_eq!(established, [1, 1, 1, 0, 0]);
    assert_eq!(server.host.associations().count(), MOST);
    let leaving = &mut guests[1];
    leaving.host.close(now, &mut leaving.rng, hit);
    // RFC 7401 §4.4.2: CLOSED lasts a while, in which a CLOSE that comes again is answered.
    run(&mut now, SECOND * 40, &mut server, leaving, &mut told);
    assert_eq!(told.departed, [leaving.host.hit()]);
    let [_, again, _, late, _] = &mut guests[..] else { panic!() };
    late.host.connect(now, &mut late.rng, hit).unwrap();
    run(&mut now, SECOND * 20, &mut server, late, &mut told);
    assert_eq!(late.established, 1);
    late.host.close(now, &mut late.rng, hit);
    run(&mut now, SECOND * 40, &mut server, late, &mut told);
    again.host.connect(now, &mut again.rng, hit).unwrap();
    run(&mut now, SECOND * 2, &mut server, again, &mut told);
    assert_eq!((again.established, told.departed.len(), server.host.associations().count()), (2, 2, MOST));
}

/// Who only asks, as ten thousand HITs at once, leaves nothing behind and costs no public-key operation.
#[test]
fn who_only_asks_leaves_nothing() {
    let mut server = server(|config| config.guests = Some(Guests::anybody(8)));
    let hit = server.host.hit();
    let before = server.host.costs();
    for number in 0..10_000_u32 {
        let mut from = guest_hit();
        from.0[12..].copy_from_slice(&number.to_be_bytes());
        let i1 = Builder::new(PacketKind::I1, from, hit).push(&Parameter::DhGroupList(vec![7])).finish().unwrap();
        let route = Route { local: addresses(&[SERVER], 10500)[0], remote: place(u64::from(number) % 200) };
        server.host.handle_packet(BEGIN, &mut server.rng, route, &i1);
    }
    let cost = server.host.costs().since(&before);
    assert_eq!((cost.agreements, cost.signatures, cost.verifications), (0, 0, 0));
    assert_eq!((server.host.associations().count(), server.host.poll_timeout()), (0, None));
}

fn guest_hit() -> Hit {
    generated(Algorithm::EcdsaP256, 55).hit()
}

/// The I2 of an association that is over begins none, however often it comes: who has recorded it takes no place with it.
#[test]
fn an_old_i2_takes_no_place() {
    let mut server = server(|config| config.guests = Some(Guests::anybody(8)));
    let mut guest = guest(&server, 1);
    let (mut now, mut told) = (BEGIN, Told::default());
    let hit = server.host.hit();
    guest.host.connect(now, &mut guest.rng, hit).unwrap();
    let i2s = run(&mut now, SECOND * 2, &mut server, &mut guest, &mut told);
    assert_eq!((guest.established, i2s.len()), (1, 1));
    guest.host.close(now, &mut guest.rng, hit);
    run(&mut now, SECOND * 40, &mut server, &mut guest, &mut told);
    assert_eq!(told.departed.len(), 1);
    for (route, i2) in i2s.iter().cycle().take(20) {
        now += SECOND;
        server.host.handle_packet(now, &mut server.rng, *route, i2);
    }
    assert_eq!(server.host.associations().count(), 0);
    assert!(server.host.counters().bad_puzzle >= 20);
}

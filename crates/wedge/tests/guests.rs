//! Guests in whole hosts and virtual time: who is no peer comes, is a peer while it stays, and goes when nothing is said.

use crate::common::{LSIS, Mailbox, Spec, World, ms, udp_v4, udp_v6};
use clock::{Duration, Instant};
use wedge::{GuestConfig, WedgeEvent};
use wire::Lsi;
use wire::ip::IpPacket;

const IDLE: Duration = Duration::from_secs(20);
const POOL: [Lsi; 2] = [Lsi([1, 0, 7, 1]), Lsi([1, 0, 7, 2])];

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// The second host does not know the first, and lets in whom its LSIs suffice for.
fn world(lsis: Vec<Lsi>) -> World {
    let mut world = World::configured(&[Spec::new(10_000_000, ms(10))], 10500, |config| {
        if config.lsi == LSIS[1] {
            let mut guests = GuestConfig::anybody(lsis.clone());
            guests.idle = IDLE;
            config.guests = Some(guests);
        }
    });
    let (a, now, [_, b], [_, rng]) = (world.hit(0), world.now, &mut world.hosts, &mut world.rngs);
    b.remove_peer(now, rng, a);
    world
}

#[test]
fn a_guest_is_a_peer_until_it_is_silent() {
    let mut world = world(POOL.to_vec());
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let mut last = 0;
    for round in 0..40_u64 {
        let [left, right] = &mut boxes;
        left.received.clear();
        right.received.clear();
        left.to_send.push(udp_v6(a, b, (9, 9), b"from the guest"));
        let begin = at(round * 60_000);
        world.run(begin + ms(2_000), &mut [left, right]);
        assert_eq!(right.received.len(), 1, "{round}");
        let peers = world.hosts[1].status(world.now).peers;
        let known: Vec<_> = peers.iter().filter(|peer| !peer.paths.is_empty()).collect();
        assert_eq!((known.len(), &*known[0].lsi, &*known[0].name), (1, "1.0.7.1", &*a.to_string()), "{round}");
        // In both families.
        right.to_send.push(udp_v6(b, a, (10, 10), b"to the guest"));
        right.to_send.push(udp_v4(LSIS[1], POOL[0], (11, 11), b"to the guest"));
        world.run(begin + ms(4_000), &mut [left, right]);
        let ports =
            left.received.iter().filter_map(|(_, packet)| IpPacket::parse(packet).ok()?.payload().get(3).copied());
        assert_eq!(ports.collect::<Vec<_>>(), [10, 11], "{round}");
        // A packet in time keeps it.
        world.run(begin + ms(20_000), &mut [left, right]);
        left.to_send.push(udp_v6(a, b, (9, 9), b"still there"));
        world.run(begin + ms(38_000), &mut [left, right]);
        let count = |world: &World| {
            let of = |event: &&WedgeEvent| matches!(event, WedgeEvent::Departed { .. });
            world.events[1].iter().filter(of).count()
        };
        assert_eq!(count(&world), last, "{round}: it is there yet");
        world.run(begin + ms(60_000), &mut [left, right]);
        last += 1;
        assert_eq!(count(&world), last, "{round}: it had to go");
        assert_eq!(world.hosts[1].status(world.now).peers.iter().filter(|peer| peer.lsi != "1.0.0.1").count(), 0);
    }
}

#[test]
fn where_there_is_no_place_nobody_comes() {
    let mut world = world(Vec::new());
    let (a, b) = (world.hit(0), world.hit(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    boxes[0].to_send.push(udp_v6(a, b, (9, 9), b"hello"));
    let [left, right] = &mut boxes;
    world.run(at(5_000), &mut [left, right]);
    assert!(right.received.is_empty());
    assert!(!world.events[1].iter().any(|event| matches!(event, WedgeEvent::Admitted { .. })));
}

//! The network in virtual instants. Oracles: the arithmetic of rates and delays, and conservation of packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use clock::{Duration, Instant, Rng};
use emulator::{Delivery, Network};
use link::{ChangeKind, JitterConfig, LinkConfig, LossConfig, Processing, QueueConfig};
use proptest::prelude::*;

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// An IPv4 packet as far as a network looks at it: `length` bytes, with a number in its last four.
fn packet(from: Ipv4Addr, to: Ipv4Addr, length: usize, number: u32) -> Vec<u8> {
    let mut packet = vec![0; length.max(24)];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let end = packet.len();
    packet[end - 4..].copy_from_slice(&number.to_be_bytes());
    packet
}

fn from_a(length: usize, number: u32) -> Vec<u8> {
    packet(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), length, number)
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[packet.len() - 4..].try_into().expect("four bytes"))
}

fn drain(network: &mut Network, until: Instant) -> Vec<Delivery> {
    std::iter::from_fn(|| network.poll(until)).collect()
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn two_hops_take_two_transmissions_and_two_delays_however_late_one_looks() {
    for look_at in [vec![1000], vec![5, 12, 13, 25, 29, 1000]] {
        let mut network = Network::new();
        let link =
            |rate, delay| LinkConfig { rate: Some(rate), delay: Duration::from_millis(delay), ..LinkConfig::default() };
        let hops =
            [link(1_000_000, 5), link(3_000_000, 7)].map(|config| network.add_link(config, Rng::from_seed(1))).to_vec();
        network.add_route(A, B, hops, 4);
        network.handle_packet(Instant::ZERO, from_a(1500, 0));
        let deliveries: Vec<Delivery> = look_at.into_iter().flat_map(|at| drain(&mut network, millis(at))).collect();
        let [delivery] = deliveries.as_slice() else { panic!("one packet") };
        // 1500 bytes: 12 ms at 1 Mbit/s, 4 ms at 3 Mbit/s.
        assert_eq!(delivery.at, millis(12 + 5 + 4 + 7));
        assert_eq!(delivery.port, 4);
        assert_eq!(network.next_event(), None);
        let [transits] = network.transits().collect::<Vec<_>>()[..] else { panic!("one route") };
        assert_eq!((transits.samples(), transits.max()), (1, Duration::from_millis(28).as_nanos()));
    }
}

#[test]
fn random_processing_takes_up_to_a_packets_time_before_the_way_and_keeps_the_order() {
    // A full packet takes 0.3 ms at 40 Mbit/s, and 3 ms at 4 Mbit/s, of which 1 ms counts.
    for (rate, most) in [(40_000_000, 300), (4_000_000, 1000)] {
        let mut network = Network::new().with_random_processing(Processing::Usual, Rng::from_seed(1));
        let config = LinkConfig { rate: Some(rate), delay: Duration::from_millis(5), ..LinkConfig::default() };
        let link = network.add_link(config, Rng::from_seed(1));
        network.add_route(A, B, vec![link], 0);
        let transmission = Duration::of_transmission(500, rate);
        let mut took = Vec::new();
        for at in (0..2000).step_by(20) {
            network.handle_packet(millis(at), from_a(500, 0));
            let [only] = &drain(&mut network, millis(at + 19))[..] else { panic!("one packet") };
            took.push((only.at - millis(at) - Duration::from_millis(5) - transmission).as_nanos() / 1000);
        }
        assert!(took.iter().all(|took| *took <= most));
        // The mean of 100 uniform times is half of the most, within four standard errors.
        let mean = took.iter().sum::<u64>() as f64 / 100.0;
        assert!((mean / most as f64 - 0.5).abs() < 4.0 * 12f64.sqrt().recip() / 10.0, "{mean} of {most}");
        let [transits] = network.transits().collect::<Vec<_>>()[..] else { panic!("one route") };
        assert_eq!(transits.max(), (Duration::from_millis(5) + transmission).as_nanos());
    }
}

#[test]
fn what_no_route_joins_is_counted_and_gone() {
    let mut network = Network::new();
    let link = network.add_link(LinkConfig::default(), Rng::from_seed(1));
    let (a6, b6) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
    network.add_route(a6.into(), b6.into(), vec![link], 0);
    let mut good = vec![0; 60];
    good[0] = 0x60;
    good[8..24].copy_from_slice(&a6.octets());
    good[24..40].copy_from_slice(&b6.octets());
    let mut back = good.clone();
    back[8..24].copy_from_slice(&b6.octets());
    for bytes in [vec![], vec![0x45; 19], vec![0x60; 39], vec![0; 100], from_a(100, 1), back, good] {
        network.handle_packet(Instant::ZERO, bytes);
    }
    assert_eq!(drain(&mut network, millis(1)).len(), 1);
    let counts = network.counts();
    assert_eq!((counts.received, counts.unroutable, counts.delivered), (7, 6, 1));
}

#[test]
fn a_scheduled_cut_and_repair_happen_at_their_instants() {
    let mut network = Network::new();
    let config = LinkConfig { delay: Duration::from_millis(1), ..LinkConfig::default() };
    let link = network.add_link(config, Rng::from_seed(1));
    network.add_route(A, B, vec![link], 0);
    network.schedule(millis(20), link, ChangeKind::Up);
    network.schedule(millis(10), link, ChangeKind::Down);
    assert_eq!(network.next_event(), Some(millis(10)));
    let mut arrived = Vec::new();
    for at in [5, 9, 10, 15, 19, 20, 25] {
        arrived.extend(drain(&mut network, millis(at)));
        network.handle_packet(millis(at), from_a(100, u32::try_from(at).expect("small")));
    }
    arrived.extend(drain(&mut network, millis(100)));
    // What was under way at 10 ms still arrives.
    assert_eq!(arrived.iter().map(|delivery| number(&delivery.packet)).collect::<Vec<_>>(), [5, 9, 20, 25]);
}

proptest! {
    #[test]
    fn packets_are_conserved_and_keep_their_order(
        sends in prop::collection::vec((0u64..5_000, 24usize..1500), 1..200),
        looks in prop::collection::vec(0u64..1_500_000, 0..50),
        queue in 1u32..20,
        loss in prop_oneof![Just(0.0), 0.0..1.0],
        random_processing: bool,
    ) {
        let mut network = Network::new();
        if random_processing {
            network = network.with_random_processing(Processing::Usual, Rng::from_seed(3));
        }
        let config = LinkConfig {
            rate: Some(5_000_000),
            delay: Duration::from_millis(3),
            queue: QueueConfig::Packets(queue),
            loss: LossConfig::Random(loss),
            ..LinkConfig::default()
        };
        let hops = vec![
            network.add_link(config.clone(), Rng::from_seed(1)),
            network.add_link(config, Rng::from_seed(2)),
        ];
        network.add_route(A, B, hops, 0);
        let mut looks = looks;
        looks.sort_unstable();
        let mut looks = looks.into_iter().peekable();
        let (mut at, mut seen) = (0, Vec::new());
        for (index, (gap, length)) in sends.iter().enumerate() {
            at += gap;
            let now = Instant::ZERO + Duration::from_micros(at);
            while let Some(look) = looks.next_if(|look| *look <= at) {
                seen.extend(drain(&mut network, Instant::ZERO + Duration::from_micros(look)));
            }
            seen.extend(drain(&mut network, now));
            network.handle_packet(now, from_a(*length, u32::try_from(index).expect("few")));
        }
        seen.extend(drain(&mut network, millis(1_000_000)));
        prop_assert_eq!(network.next_event(), None);
        let counts = network.counts();
        prop_assert_eq!(counts.delivered, u64::try_from(seen.len()).expect("few"));
        prop_assert_eq!(counts.delivered + counts.dropped, counts.received);
        for pair in seen.windows(2) {
            prop_assert!(pair[0].at <= pair[1].at);
            prop_assert!(number(&pair[0].packet) < number(&pair[1].packet));
        }
        for delivery in &seen {
            let (_, length) = sends[number(&delivery.packet) as usize];
            prop_assert_eq!(delivery.packet.len(), length);
        }
    }

    /// Whoever comes only when something may arrive has every packet at its instant.
    #[test]
    fn nothing_arrives_before_it_is_told_when(
        sends in prop::collection::vec((0u64..5_000, 24usize..1500), 1..200),
        rates in prop::collection::vec(1_000_000u64..50_000_000, 1..4),
        delays in prop::array::uniform3(0u64..10),
        jitter: bool,
        reorder: bool,
        random_processing: bool,
    ) {
        let mut network = Network::new();
        if random_processing {
            network = network.with_random_processing(Processing::Usual, Rng::from_seed(3));
        }
        let links = rates.iter().zip(delays).map(|(rate, delay)| {
            let (rate, delay) = (Some(*rate), Duration::from_millis(delay));
            let jitter = if jitter { JitterConfig::Uniform(delay) } else { JitterConfig::None };
            network.add_link(LinkConfig { rate, delay, jitter, reorder, ..LinkConfig::default() }, Rng::from_seed(1))
        });
        let hops = links.collect();
        network.add_route(A, B, hops, 0);
        let (mut at, mut steps, mut last) = (0, 0, 0);
        let mut count = 0;
        let mut sends = sends.into_iter().peekable();
        loop {
            let sent = sends.peek().map(|(gap, _)| Instant::ZERO + Duration::from_micros(at + gap));
            let Some(now) = sent.into_iter().chain(network.next_arrival()).min() else { break };
            for delivery in drain(&mut network, now) {
                prop_assert_eq!(delivery.at, now);
                prop_assert!(last < number(&delivery.packet) || jitter && reorder);
                last = number(&delivery.packet);
            }
            if sent == Some(now) && let Some((gap, length)) = sends.next() {
                at += gap;
                count += 1;
                network.handle_packet(now, from_a(length, count));
            }
            steps += 1;
            prop_assert!(steps < 100_000);
        }
        prop_assert_eq!(network.next_event(), None);
        prop_assert_eq!(network.counts().delivered, u64::from(count));
    }
}

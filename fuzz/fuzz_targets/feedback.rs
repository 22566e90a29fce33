//! Any bytes as what a peer says about paths, sealed with its keys: no panic, what is under way stays within the windows,
//! and once the peer tells the truth again packets get through.
#![no_main]

use clock::Instant;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../crates/wedge/tests/common/mod.rs"]
mod common;

use common::liar::{Liar, set};
use common::{Mailbox, Spec, World, ms, udp_v6};

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fuzz_target!(|input: Vec<(u8, u32, Vec<u8>)>| {
    let specs = [Spec::new(8_000_000, ms(5)), Spec::new(4_000_000, ms(10))];
    let mut world = World::configured(&specs, 10500, |config| {
        config.keylog = true;
        config.hip.puzzle_difficulty = 0;
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    world.liar = Some(Liar::new(1));
    let mut boxes = [Mailbox::default(), Mailbox::default()];
    let (a, b) = (world.hit(0), world.hit(1));
    let packet = |number: u32| udp_v6(a, b, (7, 9), &[&number.to_be_bytes()[..], &[0; 1000]].concat());
    boxes[0].to_send.push(packet(0));
    let [left, right] = &mut boxes;
    world.run(at(500), &mut [left, right]);
    let mut lies = input.into_iter().take(40);
    world.liar.as_mut().unwrap().lie = Some(Box::new(move |report| {
        let Some((kind, value, bytes)) = lies.next() else { return false };
        match kind % 4 {
            0 => report.splice(1.., bytes).for_each(drop),
            1 if report.len() >= 36 => set(report, usize::from(kind / 4 % 8), value),
            2 => report.truncate(1 + value as usize % report.len()),
            // Behind the words of the first record are its ranges.
            _ => report.splice(36.min(report.len()).., bytes).for_each(drop),
        }
        true
    }));
    for round in 0..8 {
        boxes[0].to_send.extend((0..20).map(|number| packet(1 + 20 * round + number)));
        let [left, right] = &mut boxes;
        world.run(at(500 + 60 * u64::from(round)), &mut [left, right]);
        let peer = world.hosts[0].status(world.now).peers.remove(0);
        for measured in peer.paths.iter().filter_map(|path| path.measured) {
            assert!(measured.cwnd < 1 << 24 && measured.in_flight < 1 << 24, "{measured:?}");
            assert!(measured.ce <= measured.delivered + measured.lost + 100, "{measured:?}");
        }
    }
    world.liar.as_mut().unwrap().lie = None;
    let last = packet(1 << 20);
    for round in 0..20 {
        boxes[0].to_send.push(last.clone());
        let [left, right] = &mut boxes;
        world.run(at(1_500 + 500 * round), &mut [left, right]);
        if boxes[1].received.iter().any(|(_, packet)| *packet == last) {
            return;
        }
    }
    panic!("nothing gets through: {:#?}", world.hosts[0].status(world.now));
});

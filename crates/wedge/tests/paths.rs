//! Paths that come and go, and paths that stand by, under one TCP connection in virtual time. The oracles are the links:
//! what each was given, and what their rates are.

use crate::common::stream::{Receiver, Sender};
use crate::common::{LSIS, Spec, World, locator, ms};
use clock::Instant;
use wedge::LocalPath;

const SEGMENT: usize = 1380;
const RATE: u64 = 8_000_000;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + ms(seconds * 1000)
}

fn path(number: usize, side: usize) -> LocalPath {
    let mut path = LocalPath::new(format!("link{number}"), locator(number, side, 10500));
    (path.rate, path.delay) = (Some(RATE), ms(20));
    path
}

/// Whichever host wants the second path as a backup, it carries data in both directions only while the first is dead.
#[test]
fn a_backup_carries_data_only_where_no_other_path_works() {
    for (owner, sends) in [(0, 0), (1, 0)] {
        let specs = [Spec::new(RATE, ms(20)); 2];
        let world = World::configured(&specs, 10500, |config| {
            let side = LSIS.iter().position(|lsi| *lsi == config.lsi).unwrap();
            config.paths[1].backup = side == owner;
        });
        let mut world = world;
        let (a, b) = (world.hit(sends), world.hit(1 - sends));
        let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
        world.run(at(6), &mut [&mut sender, &mut receiver]);
        for side in 0..2 {
            let status = &world.hosts[side].status(world.now).peers[0];
            let standby: Vec<_> = status.paths.iter().map(|path| (path.alive, path.standby)).collect();
            assert_eq!(standby, [(true, false), (true, true)], "{owner} {side} {status:?}");
        }
        let before = receiver.goodput(at(3), at(6));
        assert!((0.8..1.0).contains(&(before / RATE as f64)), "the first path alone: {before}");
        // Heartbeats every 150 ms and reports on them, in both directions.
        let idle = world.sent[1][0];
        assert!(idle < 6 * 60, "{idle} packets on the backup");

        for side in 0..2 {
            world.links[0][side].set_up(at(6), false);
        }
        world.run(at(10), &mut [&mut sender, &mut receiver]);
        let during = receiver.goodput(at(7), at(10));
        assert!((0.8..1.0).contains(&(during / RATE as f64)), "the backup alone: {during}");

        for side in 0..2 {
            world.links[0][side].set_up(at(10), true);
        }
        world.run(at(11), &mut [&mut sender, &mut receiver]);
        let used = world.sent[1][0];
        world.run(at(15), &mut [&mut sender, &mut receiver]);
        let after = receiver.goodput(at(12), at(15));
        assert!((0.8..1.0).contains(&(after / RATE as f64)), "the first path again: {after}");
        assert!(world.sent[1][0] - used < 4 * 60, "{} packets on the backup", world.sent[1][0] - used);
    }
}

/// The second path's address goes and a third comes, on both sides, in the middle of a transfer.
#[test]
fn a_path_goes_another_comes_and_the_transfer_continues() {
    let specs = [Spec::new(RATE, ms(20)); 3];
    let mut world = World::configured(&specs, 10500, |config| {
        config.paths.pop();
    });
    let (a, b) = (world.hit(0), world.hit(1));
    let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
    world.run(at(6), &mut [&mut sender, &mut receiver]);
    assert_eq!(world.sent[2], [0, 0]);
    for side in 0..2 {
        let (host, rng) = (&mut world.hosts[side], &mut world.rngs[side]);
        host.add_path(at(6), rng, path(2, side)).unwrap();
        assert!(host.add_path(at(6), rng, path(2, side)).is_err(), "twice the same");
        host.remove_path(at(6), rng, locator(1, side, 10500).ip());
    }
    world.run(at(7), &mut [&mut sender, &mut receiver]);
    let old = world.sent[1];
    world.run(at(12), &mut [&mut sender, &mut receiver]);
    assert_eq!(world.sent[1], old, "nothing leaves from where the address is gone");
    let after = receiver.goodput(at(8), at(12));
    assert!(after > 0.85 * 2.0 * RATE as f64, "two paths: {after}");
    // Never without anything for long: the first path went on all the time.
    let between = receiver.goodput(at(6), at(7));
    assert!(between > 0.5 * RATE as f64, "in the second of the change: {between}");
    for side in 0..2 {
        let status = &world.hosts[side].status(world.now).peers[0];
        let names: Vec<_> = status.paths.iter().map(|path| (path.name.as_str(), path.alive)).collect();
        assert_eq!(names, [("link0", true), ("link2", true)]);
    }
}

/// The only address of either host is exchanged for another.
#[test]
fn a_host_that_moves_keeps_its_connection() {
    for mover in 0..2 {
        let specs = [Spec::new(RATE, ms(20)); 2];
        let mut world = World::configured(&specs, 10500, |config| {
            let side = LSIS.iter().position(|lsi| *lsi == config.lsi).unwrap();
            if side == mover {
                config.paths.pop();
            }
        });
        let (a, b) = (world.hit(0), world.hit(1));
        let (mut sender, mut receiver) = (Sender::new(a, b, SEGMENT), Receiver::new(b, a, SEGMENT));
        world.run(at(4), &mut [&mut sender, &mut receiver]);
        let (host, rng) = (&mut world.hosts[mover], &mut world.rngs[mover]);
        host.remove_path(at(4), rng, locator(0, mover, 10500).ip());
        world.run(at(5), &mut [&mut sender, &mut receiver]);
        let (host, rng) = (&mut world.hosts[mover], &mut world.rngs[mover]);
        host.add_path(at(5), rng, path(1, mover)).unwrap();
        // The first pair of locators that is tried may be one that nothing joins; it is given up after 11 s.
        world.run(at(25), &mut [&mut sender, &mut receiver]);
        let after = receiver.goodput(at(20), at(25));
        assert!(after > 0.8 * RATE as f64, "side {mover} moves: {after}");
    }
}

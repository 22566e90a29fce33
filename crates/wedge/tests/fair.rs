//! How much is taken from a TCP that shares a link with paths, by the rule for the windows.

mod common;

use clock::Instant;
use common::stream::{Receiver, Sender};
use common::{Rival, Spec, World, ms};

const SEGMENT: usize = 1390;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + ms(seconds * 1000)
}

struct Outcome {
    /// bit/s of payload through the tunnel.
    bundle: f64,
    /// Of the rival's.
    rival: f64,
    /// bit/s sent on each path, all that ESP carries.
    paths: Vec<f64>,
}

/// Runs a download through the tunnel beside a Reno on link `shared`; paths take the links of `via`.
fn beside_reno(rule: &str, specs: &[Spec], via: &[usize], shared: Option<usize>, seconds: u64) -> Outcome {
    let mut world = World::configured(specs, 10500, |config| {
        config.congestion = rule.parse().unwrap();
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    world.via = via.to_vec();
    let (a, b) = (world.hit(0), world.hit(1));
    if let Some(link) = shared {
        let mut sender = Sender::new(a, b, SEGMENT + 54);
        sender.beta = 0.5;
        world.rivals.push(Rival { link, begins: at(1), sender, receiver: Receiver::new(b, a, SEGMENT + 54) });
    }
    let mut sender = Sender::new(a, b, SEGMENT);
    let mut receiver = Receiver::new(b, a, SEGMENT);
    let warm = at(10);
    world.run(warm, &mut [&mut sender, &mut receiver]);
    let before: Vec<u64> = world.hosts[0].status(world.now).peers[0].paths.iter().map(|path| path.bytes_out).collect();
    world.run(at(seconds), &mut [&mut sender, &mut receiver]);
    let status = world.hosts[0].status(world.now);
    let span = (at(seconds) - warm).as_secs_f64();
    let paths =
        status.peers[0].paths.iter().zip(&before).map(|(path, before)| (path.bytes_out - before) as f64 * 8.0 / span);
    Outcome {
        bundle: receiver.goodput(warm, at(seconds)),
        rival: world.rivals.first().map_or(0.0, |rival| rival.receiver.goodput(warm, at(seconds))),
        paths: paths.collect(),
    }
}

/// What the rule in use makes of 8 + 4 Mbit/s whose rates nobody has told, and of a Reno beside it. The bounds are wider
/// than the aim: both TCPs are small ones that do not pace, and phases of drop-tail queues weigh; kernels are measured in
/// the laboratory.
#[test]
fn the_sum_of_the_paths_is_reached_and_a_reno_beside_them_is_left_its_share() {
    let rule = "mhip";
    let specs = [Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))];
    let alone = beside_reno(rule, &specs, &[0, 1], None, 60);
    let singles: f64 = specs.iter().map(|spec| beside_reno(rule, &[*spec], &[0], None, 60).bundle).sum();
    assert!(alone.bundle >= 0.97 * singles, "{} of {singles}", alone.bundle);
    let friendliness = |outcome: &Outcome, path: usize| outcome.paths[path] * 1390.0 / 1484.0 / outcome.rival;
    let second = beside_reno(rule, &specs, &[0, 1], Some(1), 100);
    let first = beside_reno(rule, &specs, &[0, 1], Some(0), 100);
    let of = [friendliness(&first, 0), friendliness(&second, 1)];
    assert!(of.iter().all(|ff| (0.5..=2.0).contains(ff)), "{of:?}");
    // The other path is not given up for it, and nothing stays unused.
    assert!(second.bundle + second.rival > 0.93 * 11.2e6 && first.bundle + first.rival > 0.93 * 11.2e6);
}

#[test]
fn two_paths_through_one_bottleneck_are_one_tcp() {
    let rule = "mhip";
    let specs = [Spec::new(10_000_000, ms(20)); 2];
    let outcome = beside_reno(rule, &specs, &[0, 0], Some(0), 100);
    let ff = outcome.bundle / outcome.rival;
    assert!((0.7..=1.4).contains(&ff), "{ff}");
}

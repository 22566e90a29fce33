//! How much is taken from a TCP that shares a link with paths, by the rule for the windows.

use crate::common::stream::{Receiver, Sender};
use crate::common::{Rival, Spec, World, ms};
use clock::{Duration, Instant};

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

/// Runs a download through the tunnel beside a Reno on a link, from some time on; paths take the links of `via`.
fn beside_reno(rule: &str, specs: &[Spec], via: &[usize], rival: Option<(usize, Duration)>, seconds: u64) -> Outcome {
    let mut world = World::configured(specs, 10500, |config| {
        config.congestion = rule.parse().unwrap();
        config.paths.iter_mut().for_each(|path| path.rate = None);
    });
    world.via = via.to_vec();
    world.max_processing = ms(1);
    let (a, b) = (world.hit(0), world.hit(1));
    if let Some((link, begins)) = rival {
        let mut sender = Sender::elsewhere(a, b, SEGMENT + 54);
        sender.beta = 0.5;
        world.rivals.push(Rival {
            link,
            begins: Instant::ZERO + begins,
            sender,
            receiver: Receiver::new(b, a, SEGMENT + 54),
        });
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

/// The mean of runs whose rivals begin at other times: one drop-tail queue and a minute are chance, and give a tenth more or
/// less.
fn friendliness(specs: &[Spec], via: &[usize], shared: usize) -> f64 {
    friendliness_of("sinnet", specs, via, shared)
}

fn friendliness_of(rule: &str, specs: &[Spec], via: &[usize], shared: usize) -> f64 {
    let runs = (1..=8).map(|begins| {
        let outcome = beside_reno(rule, specs, via, Some((shared, ms(begins * 700))), 100);
        // Nothing stays unused.
        let links: std::collections::BTreeSet<usize> = via.iter().copied().collect();
        let rate: u64 = links.iter().map(|link| specs[*link].rate).sum();
        assert!(outcome.bundle + outcome.rival > 0.87 * rate as f64, "{} + {}", outcome.bundle, outcome.rival);
        // Of the payload, what went over the shared link.
        let (paths, all) = (outcome.paths.iter().zip(via), outcome.paths.iter().sum::<f64>());
        let there: f64 = paths.filter(|(_, link)| **link == shared).map(|(bytes, _)| bytes).sum();
        outcome.bundle * there / all / outcome.rival
    });
    let runs: Vec<f64> = runs.collect();
    runs.iter().sum::<f64>() / runs.len() as f64
}

const EIGHT_FOUR: [Spec; 2] = [Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))];

/// 8 + 4 Mbit/s whose rates nobody has told.
#[test]
fn the_sum_of_the_paths_is_reached() {
    let goodput = |specs: &[Spec], via: &[usize]| beside_reno("sinnet", specs, via, None, 60).bundle;
    let singles: f64 = EIGHT_FOUR.iter().map(|spec| goodput(&[*spec], &[0])).sum();
    let alone = goodput(&EIGHT_FOUR, &[0, 1]);
    assert!(alone >= 0.99 * singles, "{alone} of {singles}");
}

#[test]
fn a_reno_beside_the_faster_path_is_left_its_share() {
    let ff = friendliness(&EIGHT_FOUR, &[0, 1], 0);
    assert!((0.8..=1.25).contains(&ff), "{ff}");
}

#[test]
fn a_reno_beside_the_slower_path_is_left_its_share() {
    // A paced flow meets a short queue more rarely full than one that sends in bursts does.
    let ff = friendliness(&EIGHT_FOUR, &[0, 1], 1);
    assert!((0.8..=1.4).contains(&ff), "{ff}");
}

#[test]
fn two_paths_through_one_bottleneck_are_one_tcp() {
    let ff = friendliness(&[Spec::new(10_000_000, ms(20)); 2], &[0, 0], 0);
    assert!((0.8..=1.25).contains(&ff), "{ff}");
}

/// Beside the same Reno, two paths of CUBIC through one bottleneck get what one gets alone.
#[test]
fn two_cubic_paths_through_one_bottleneck_are_one_cubic() {
    let spec = Spec::new(10_000_000, ms(20));
    let one = friendliness_of("cubic", &[spec], &[0], 0);
    let two = friendliness_of("cubic", &[spec; 2], &[0, 0], 0);
    assert!((0.8..=1.25).contains(&(two / one)), "{two} and {one}");
}

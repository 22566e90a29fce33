//! One TCP connection over several paths, in virtual time: what the demonstration shows, with a small TCP.

use crate::common::stream::{Receiver, Sender};
use crate::common::{Spec, World, ms};
use clock::Instant;

const SEGMENT: usize = 1380;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + ms(seconds * 1000)
}

#[derive(Debug)]
struct Outcome {
    /// bit/s from second 2, when the paths are open, to the end.
    goodput: f64,
    retransmissions: u64,
    timeouts: u64,
    /// By the sender's queue.
    dropped: u64,
}

fn run_in(mut world: World, seconds: u64) -> Outcome {
    let (a, b) = (world.hit(0), world.hit(1));
    let mut sender = Sender::new(a, b, SEGMENT);
    let mut receiver = Receiver::new(b, a, SEGMENT);
    world.run(at(seconds), &mut [&mut sender, &mut receiver]);
    Outcome {
        goodput: receiver.goodput(at(2), at(seconds)),
        retransmissions: sender.retransmissions,
        timeouts: sender.timeouts,
        dropped: world.hosts[0].counters().queue_full,
    }
}

/// To a plain HIP host and to a Sinnet host.
fn compare(specs: &[Spec]) {
    compare_with(specs, false);
    compare_with(specs, true);
}

/// All together have to reach nine tenths of the sum of each alone, and each alone most of what its link carries.
fn compare_with(specs: &[Spec], feedback: bool) {
    let run = |specs: &[Spec], seconds| {
        run_in(World::configured(specs, 10500, |config| config.hip.feedback = feedback), seconds)
    };
    let alone: Vec<Outcome> = specs.iter().map(|spec| run(&[*spec], 20)).collect();
    for (spec, outcome) in specs.iter().zip(&alone) {
        assert!(outcome.goodput > 0.7 * spec.rate as f64, "{spec:?}: {outcome:?}");
    }
    let sum: f64 = alone.iter().map(|outcome| outcome.goodput).sum();
    let together = run(specs, 20);
    let ratio = together.goodput / sum;
    assert!(ratio >= 0.9, "{ratio}: {together:?} against {alone:?}");
    // Rates are kept on average and nothing is sent that was not needed.
    assert!(together.goodput < specs.iter().map(|spec| spec.rate).sum::<u64>() as f64);
    assert!(together.timeouts <= 2, "{together:?}");
    // Each reduction answers packets that did not fit our queue; reordering is hidden, so nothing else is taken for loss.
    assert!(together.retransmissions <= together.dropped, "{together:?}");
}

#[test]
fn two_paths_give_nine_tenths_of_their_sum() {
    compare(&[Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))]);
}

#[test]
fn three_paths_give_nine_tenths_of_their_sum() {
    compare(&[2, 4, 5].map(|rate| Spec::new(rate * 1_000_000, ms(10))));
}

#[test]
fn paths_of_unequal_delay_give_nine_tenths_of_their_sum() {
    compare(&[Spec::new(6_000_000, ms(10)), Spec::new(4_000_000, ms(50))]);
}

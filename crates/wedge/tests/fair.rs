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
    let outcome = Outcome {
        bundle: receiver.goodput(warm, at(seconds)),
        rival: world.rivals.first().map_or(0.0, |rival| rival.receiver.goodput(warm, at(seconds))),
        paths: paths.collect(),
    };
    if std::env::var_os("SHOW").is_some() {
        let there = &world.hosts[1].status(world.now).peers[0];
        println!(
            "repaired {} given up {} timeouts {} full {} rescheduled {}; there held {} proven {} expired {}",
            status.counters.repaired,
            status.counters.given_up,
            status.counters.timeouts,
            status.counters.queue_full,
            status.counters.rescheduled,
            there.resequenced,
            there.proven_losses,
            there.expired_holes,
        );
        world.events.iter().flatten().for_each(|event| println!("  {event}"));
        println!(
            "{rule:16} {specs:?} bundle {:.2} rival {:.2} paths {:?} rtx {} to {}\n {:?}\n {:?}",
            outcome.bundle / 1e6,
            outcome.rival / 1e6,
            outcome.paths.iter().map(|rate| (rate / 1e4).round() / 100.0).collect::<Vec<_>>(),
            sender.retransmissions,
            sender.timeouts,
            status.peers[0].holding,
            status.peers[0].paths.iter().map(|path| (path.srtt_ms, path.measured)).collect::<Vec<_>>(),
        );
    }
    outcome
}

#[test]
#[ignore = "prints a table"]
fn table() {
    let eight_four = [Spec::new(8_000_000, ms(30)), Spec::new(4_000_000, ms(30))];
    let one = [Spec::new(10_000_000, ms(20)), Spec::new(10_000_000, ms(20))];
    let rules = std::env::var("RULES").unwrap_or("lia,olia,balia,mhip,newreno,cubic,semicoupled".into());
    for rule in rules.split(',') {
        let alone = beside_reno(rule, &eight_four, &[0, 1], None, 60);
        let first = beside_reno(rule, &eight_four[..1], &[0], None, 60);
        let second = beside_reno(rule, &eight_four[1..], &[0], None, 60);
        let shared = beside_reno(rule, &eight_four, &[0, 1], Some(1), 100);
        let shared8 = beside_reno(rule, &eight_four, &[0, 1], Some(0), 100);
        let bottleneck = beside_reno(rule, &one, &[0, 0], Some(0), 100);
        println!(
            "==== {rule:12} alone {:.2} ({:.3} of singles {:.2}+{:.2})  FF shared4 {:.2} (sum {:.2}) shared8 {:.2} (sum {:.2}) one {:.2} (sum {:.2})",
            alone.bundle / 1e6,
            alone.bundle / (first.bundle + second.bundle),
            first.bundle / 1e6,
            second.bundle / 1e6,
            shared.paths[1] * 1390.0 / 1484.0 / shared.rival,
            (shared.bundle + shared.rival) / 1e6,
            shared8.paths[0] * 1390.0 / 1484.0 / shared8.rival,
            (shared8.bundle + shared8.rival) / 1e6,
            bottleneck.bundle / bottleneck.rival,
            (bottleneck.bundle + bottleneck.rival) / 1e6,
        );
    }
}

//! Of paths through one bottleneck that has a queue for each flow one carries, and paths that do not share one all carry.

use clock::{Duration, Instant, Rng, Streams};
use congestion::{Acked, Cause, Congestion, CoupledController, Doubt, EngineConfig, NewReno, Share};
use fairness::Network;

const MSS: u32 = 1500;
const STEP: Duration = Duration::from_millis(20);
/// In bytes per second.
const CAPACITY: f64 = 1e6;

/// Where the packets of two paths meet those of others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bottleneck {
    /// One with a queue for each flow, of which so many are others'.
    FairQueue(usize),
    /// The same with one other, where all always want more, and what the link carries changes for all.
    Changing,
    /// Each path has one, with one flow of others.
    TwoQueues,
    /// Each path has one for itself, and what a program sends more on one it sends less on the other.
    Alone,
    /// The same, but of unequal rates that change by more.
    Unequal,
    /// The first path has hardly anything any more.
    Fallen,
    /// Each path has one, and the first has a sixth of the second's share less, by chance, whenever that carries.
    Chance,
    /// One with one queue, and one flow of others.
    Queue,
}

/// Two paths of which programs use all that they get.
struct Bench {
    paths: CoupledController<NewReno>,
    now: Instant,
    rng: Rng,
    /// What flows would take of a bottleneck, as parts of a fair share: ours, then others'.
    wishes: Vec<f64>,
    /// The level of a queue that all see, in seconds.
    level: f64,
    upto: u64,
}

/// What flows that would take so much have of a bottleneck: max-min shares, where each flow has a link of its own besides.
fn shares(capacity: f64, wishes: &[f64]) -> Vec<f64> {
    let links = [&[capacity], wishes].concat();
    let routes: Vec<Vec<usize>> = (1..links.len()).map(|own| vec![0, own]).collect();
    let network = Network::new(&links, &routes).expect("links and routes");
    network.max_min(&vec![1.0; wishes.len()]).expect("weights")
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut paths = CoupledController::new(NewReno, EngineConfig::default(), Share::Equal);
        for window in [20.0, 40.0] {
            let path = paths.add_path(MSS);
            paths.control_mut().set_cwnd(path, window * f64::from(MSS));
            paths.control_mut().set_ssthresh(path, window * f64::from(MSS));
        }
        let rng = Streams::new(seed).stream("fair queue");
        Self { paths, now: Instant::ZERO, rng, wishes: Vec::new(), level: 0.01, upto: 0 }
    }

    /// The rates of both paths.
    fn rates(&mut self, bottleneck: Bottleneck) -> [f64; 2] {
        let flows = match bottleneck {
            Bottleneck::FairQueue(others) => 2 + others,
            Bottleneck::Changing => 3,
            _ => 4,
        };
        self.wishes.resize(flows, 1.0);
        for wish in &mut self.wishes {
            if self.rng.range(0.0, 1.0) < 0.05 {
                *wish = self.rng.range(0.7, 1.5);
            }
        }
        let of = |path: usize| if self.paths.rests(path) { 0.05 } else { self.wishes[path] };
        let (one, other, others) = (of(0), of(1), &self.wishes[2..]);
        let wish = |flows: f64, wish: f64| wish * CAPACITY / flows;
        match bottleneck {
            Bottleneck::FairQueue(_) => {
                let all = flows as f64;
                let wishes: Vec<f64> = [one, other].iter().chain(others).map(|part| wish(all, *part)).collect();
                // Who is alone grows into what there is.
                let grows = |path: usize| if self.paths.rests(1 - path) { 2.0 } else { 1.0 };
                let given = shares(CAPACITY, &[&[grows(0) * wishes[0], grows(1) * wishes[1]], &wishes[2..]].concat());
                [given[0], given[1]]
            }
            Bottleneck::Changing => {
                let rests = [0, 1].map(|path| self.paths.rests(path));
                let part = if rests.contains(&true) { 0.5 } else { 1.0 / 3.0 };
                let all = self.wishes[2] * CAPACITY;
                rests.map(|rests| all * if rests { 0.02 } else { part })
            }
            Bottleneck::TwoQueues => [(one, others[0]), (other, others[1])]
                .map(|(own, its)| shares(CAPACITY, &[wish(2.0, own), wish(2.0, its)])[0]),
            Bottleneck::Alone => {
                let part = self.rng.range(0.99, 1.0);
                [part, 1.99 - part].map(|part| part * CAPACITY)
            }
            Bottleneck::Unequal => {
                let part = self.rng.range(0.5, 1.0);
                [part, 0.8 - part / 2.0].map(|part| part * CAPACITY)
            }
            Bottleneck::Fallen => [0.1, if self.paths.rests(1) { 0.02 } else { 0.5 }].map(|part| part * CAPACITY),
            Bottleneck::Chance => [if self.paths.rests(1) { 0.63 } else { 0.57 }, 0.33].map(|part| part * CAPACITY),
            Bottleneck::Queue => {
                let both = shares(CAPACITY, &[wish(2.0, self.wishes[0]), wish(2.0, others[0])])[0];
                let part = |path: usize| match (self.paths.rests(path), self.paths.rests(1 - path)) {
                    (true, _) => 0.02,
                    (_, true) => 0.98,
                    _ => 0.5,
                };
                [part(0), part(1)].map(|part| part * both)
            }
        }
    }

    /// For so long; the part of the time in which the second path rested.
    fn run(&mut self, seconds: u64, bottleneck: Bottleneck, silent: Option<usize>) -> f64 {
        let (end, mut rested) = (self.now + Duration::from_secs(seconds), 0.0);
        while self.now < end {
            self.now += STEP;
            self.upto += 1;
            self.level = (self.level + self.rng.range(-1e-3, 1e-3)).clamp(0.0, 0.02);
            let rates = self.rates(bottleneck);
            for path in 0..2 {
                if Some(path) == silent || self.paths.blocked_until(path) > self.now {
                    continue;
                }
                let own = if self.paths.rests(path) { 0.001 } else { self.rng.range(0.005, 0.015) };
                let queue = if bottleneck == Bottleneck::Queue { self.level } else { own };
                self.paths.on_queueing(path, Duration::from_secs_f64(queue), self.now);
                let (flight, srtt) = (self.paths.control().cwnd(path) as u64, Duration::from_millis([40, 60][path]));
                let bytes = (rates[path] * STEP.as_secs_f64()) as u64;
                let acked = Acked { bytes, flight, upto: self.upto, next: self.upto + 1, rtt: Some(srtt), srtt };
                self.paths.on_ack(path, &acked, self.now);
            }
            assert!(!self.paths.rests(0), "the nearer path carries");
            rested += if self.paths.rests(1) { STEP.as_secs_f64() } else { 0.0 };
        }
        rested / seconds as f64
    }
}

#[test]
fn one_path_carries_through_a_bottleneck_with_a_queue_for_each_flow() {
    for (seed, others) in (1..=10).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let mut bench = Bench::new(seed);
        bench.run(60, Bottleneck::FairQueue(others), None);
        let rested = bench.run(240, Bottleneck::FairQueue(others), None);
        assert!(rested > 0.8, "seed {seed}, {others} others: {rested}");
        let is_blocked = [0, 1].map(|path| bench.paths.blocked_until(path) > bench.now);
        assert_eq!(is_blocked, [false, true], "seed {seed}, {others} others");
    }
}

/// Neither has less when the other has more, for the link has more or less for both: but always as much.
#[test]
fn one_path_carries_where_both_rates_are_the_same_for_long() {
    for seed in 1..=10 {
        let mut bench = Bench::new(seed);
        bench.run(120, Bottleneck::Changing, None);
        let rested = bench.run(240, Bottleneck::Changing, None);
        assert!(rested > 0.8, "seed {seed}: {rested}");
    }
}

/// What overflows for both is one queue, whatever rates and delays look like.
#[test]
fn paths_that_lose_together_all_carry() {
    for seed in 1..=10 {
        let mut bench = Bench::new(seed);
        let mut rested = 0.0;
        for _ in 0..200 {
            for path in 0..2 {
                let (flight, next) = (bench.paths.control().cwnd(path), bench.upto + 1);
                let event = Congestion { cause: Cause::Loss, flight, next };
                bench.paths.on_congestion(path, &event, Doubt::NONE, bench.now);
            }
            rested += bench.run(1, Bottleneck::FairQueue(1), None);
        }
        assert_eq!(rested, 0.0, "seed {seed}");
    }
}

/// Trials are few where they find nothing, and there are none where nothing is suspect.
#[test]
fn paths_with_bottlenecks_of_their_own_all_carry() {
    for seed in 1..=20 {
        for (bottleneck, most) in [
            (Bottleneck::TwoQueues, 0.05),
            (Bottleneck::Queue, 0.05),
            (Bottleneck::Alone, 0.0),
            (Bottleneck::Unequal, 0.0),
        ] {
            let rested = Bench::new(seed).run(300, bottleneck, None);
            assert!(rested <= most, "seed {seed}, {bottleneck:?}: {rested}");
        }
    }
}

/// It has the window that it had, and carries at once where nothing is heard of the other or that is closed, soon where the other has
/// hardly anything left, after one of the next visits where it has a bottleneck of its own, and after the first of them where the other has
/// little more without it: a queue for each flow gives that a quarter at the least, beside three others.
#[test]
fn a_path_that_rests_carries_again() {
    let rest = |seed| {
        let mut bench = Bench::new(seed);
        while !bench.paths.rests(1) {
            bench.run(1, Bottleneck::FairQueue(1), None);
        }
        bench.run(20, Bottleneck::FairQueue(1), None);
        assert!(bench.paths.rests(1));
        assert_eq!(bench.paths.control().cwnd(1), 2.0 * f64::from(MSS));
        bench
    };
    let window = 40.0 * f64::from(MSS);
    let mut bench = rest(1);
    bench.run(1, Bottleneck::FairQueue(1), Some(0));
    assert!(!bench.paths.rests(1) && bench.paths.control().cwnd(1) >= window);
    let mut bench = rest(1);
    bench.paths.close(0);
    assert!(!bench.paths.rests(1) && bench.paths.control().cwnd(1) >= window);
    let mut bench = rest(1);
    bench.run(25, Bottleneck::Fallen, None);
    assert!(!bench.paths.rests(1));
    let mut bench = rest(1);
    bench.run(120, Bottleneck::TwoQueues, None);
    assert!(!bench.paths.rests(1));
    let mut bench = rest(1);
    bench.run(40, Bottleneck::Chance, None);
    assert!(!bench.paths.rests(1));
}

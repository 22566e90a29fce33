//! Queue disciplines on a link under load, against what their RFCs and fluid models say.

use std::collections::VecDeque;

use clock::{Duration, Instant, Rng};
use link::{CoDelConfig, DualPi2Config, Ecn, FqCoDelConfig, Link, LinkConfig, LinkStatistics, PieConfig, QueueConfig};

/// A packet takes a millisecond.
const RATE: u64 = 12_000_000;
const BYTES: u32 = 1500;
/// From when a packet leaves the link until its sender hears of it.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// How a sender answers congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// It does not: a packet in each such time.
    Constant(Duration, Ecn),
    /// A window in packets that grows by one in a round trip, and is halved for losses or marks, once in a round trip.
    Reno(Ecn),
    /// A window that grows by one in a round trip, and shrinks by half a packet for each mark: in equilibrium 2 / p packets, as
    /// DCTCP's (RFC 9332 appendix C).
    Scalable,
}

#[derive(Debug)]
struct Sender {
    kind: Kind,
    window: f64,
    in_flight: f64,
    answered_until: Instant,
    next: Instant,
    /// While it was measured: packets sent, arrived, lost, arrived with a mark, and the milliseconds that each that arrived had
    /// waited and been sent.
    sent: f64,
    arrived: f64,
    lost: f64,
    marked: f64,
    times: Vec<f64>,
}

impl Sender {
    fn new(kind: Kind, next: Instant) -> Self {
        let (window, in_flight, answered_until) = (2.0, 0.0, Instant::ZERO);
        let (sent, arrived, lost, marked, times) = (0.0, 0.0, 0.0, 0.0, Vec::new());
        Self { kind, window, in_flight, answered_until, next, sent, arrived, lost, marked, times }
    }

    fn has_something(&mut self, now: Instant) -> bool {
        let Kind::Constant(every, _) = self.kind else { return self.in_flight + 1.0 <= self.window };
        let sends = self.next <= now;
        self.next += if sends { every } else { Duration::ZERO };
        sends
    }

    fn hear(&mut self, now: Instant, is_signal: bool) {
        self.in_flight -= 1.0;
        match self.kind {
            Kind::Constant(..) => {}
            _ if !is_signal => self.window += 1.0 / self.window,
            Kind::Scalable => self.window = (self.window - 0.5).max(1.0),
            Kind::Reno(_) if now >= self.answered_until => {
                self.window = (self.window / 2.0).max(1.0);
                self.answered_until = now + ROUND_TRIP;
            }
            Kind::Reno(_) => {}
        }
    }

    fn mean_time(&self) -> f64 {
        self.times.iter().sum::<f64>() / self.times.len() as f64
    }
}

/// Senders of these kinds over one link for so many seconds, of which all but the first quarter are measured.
fn run(queue: QueueConfig, kinds: &[Kind], seconds: u64) -> (Vec<Sender>, LinkStatistics) {
    let config = LinkConfig { rate: Some(RATE), queue, ..LinkConfig::default() };
    let mut link: Link<(usize, Instant)> = Link::new(config, Rng::from_seed(3)).keeping_discarded();
    let mut rng = Rng::from_seed(4);
    let start = |kind: &Kind| Sender::new(*kind, Instant::from_nanos(rng.below(1_000_000)));
    let mut senders: Vec<Sender> = kinds.iter().map(start).collect();
    let mut answers: VecDeque<(Instant, usize, bool)> = VecDeque::new();
    let from = Instant::ZERO + Duration::from_millis(seconds * 250);
    for tick in 0..seconds * 10_000 {
        let now = Instant::from_nanos(tick * 100_000);
        while let Some(((index, since), is_marked)) = link.poll_ecn(now) {
            let sender: &mut Sender = &mut senders[index];
            if now >= from {
                sender.arrived += 1.0;
                sender.marked += f64::from(u8::from(is_marked));
                sender.times.push((now - since).as_secs_f64() * 1e3);
            }
            answers.push_back((now + ROUND_TRIP, index, is_marked));
        }
        while answers.front().is_some_and(|(at, ..)| *at <= now)
            && let Some((_, index, is_signal)) = answers.pop_front()
        {
            senders[index].hear(now, is_signal);
        }
        for (index, sender) in senders.iter_mut().enumerate() {
            while sender.has_something(now) {
                sender.in_flight += 1.0;
                sender.sent += f64::from(u8::from(now >= from));
                let ecn = match sender.kind {
                    Kind::Constant(_, ecn) | Kind::Reno(ecn) => ecn,
                    Kind::Scalable => Ecn::Ect1,
                };
                let refused = link.offer_of(now, (index, now), BYTES, index as u64, ecn).err();
                if let Some(dropped) = refused {
                    sender.lost += f64::from(u8::from(now >= from));
                    answers.push_back((now + ROUND_TRIP, dropped.packet.0, true));
                }
            }
        }
        while let Some(dropped) = link.poll_discarded(now) {
            let (index, _) = dropped.packet;
            senders[index].lost += f64::from(u8::from(now >= from));
            answers.push_back((now + ROUND_TRIP, index, true));
        }
    }
    let statistics = *link.statistics();
    (senders, statistics)
}

/// So many times the link's rate.
fn load(times: f64, ecn: Ecn) -> Kind {
    Kind::Constant(Duration::from_millis(1).mul_f64(1.0 / times), ecn)
}

/// A controller that integrates rests only where the waiting time is the target, and the share that is dropped is what is too
/// much: 1 - 1/load.
#[test]
fn pie_rests_at_its_target_with_the_share_of_drops_that_a_load_needs() {
    for times in [1.05, 1.25, 2.0] {
        let (senders, statistics) = run(QueueConfig::Pie(PieConfig::default()), &[load(times, Ecn::NotEct)], 120);
        let share = senders[0].lost / senders[0].sent;
        assert!((share - (1.0 - 1.0 / times)).abs() < 0.01, "{times}: {share}");
        // One millisecond is the packet itself.
        let waited = senders[0].mean_time() - 1.0;
        assert!((12.0..18.0).contains(&waited), "{times}: {waited} ms");
        assert_eq!(statistics.dropped_full.packets, 0);
    }
}

/// RFC 8033 §4.4: nothing is dropped from a queue that was short less than `max_burst` ago; and §5.1: marks instead of drops, while
/// the probability is below 0.1.
#[test]
fn pie_spares_a_burst_and_marks_where_it_may() {
    let queue = QueueConfig::Pie(PieConfig::default());
    let mut link = Link::new(LinkConfig { rate: Some(RATE), queue, ..LinkConfig::default() }, Rng::from_seed(1));
    (0..290).for_each(|half| link.offer(Instant::from_nanos(half * 500_000), (), BYTES).unwrap());

    let marking = QueueConfig::Pie(PieConfig { ecn: true, ..PieConfig::default() });
    let (_, statistics) = run(marking, &[Kind::Reno(Ecn::Ect0); 2], 60);
    assert!(statistics.marked.packets > 50 && statistics.dropped().packets == 0, "{statistics:?}");
    let (_, statistics) = run(marking, &[load(1.5, Ecn::Ect0)], 60);
    assert!(statistics.dropped_early.packets > 10 * statistics.marked.packets, "{statistics:?}");
}

/// RFC 9332 §2.1: drops of classic packets are p'², marks of L4S packets k p', so p_C = (p_CL / k)². Classic packets whose sender
/// does not answer fix p'; a trickle of L4S packets, of which none waits behind another, is marked for nothing else.
#[test]
fn dualpi2_couples_marks_to_the_square_root_of_drops() {
    for (coupling, times) in [(2.0, 1.02), (2.0, 1.10), (1.5, 1.10)] {
        let queue = QueueConfig::DualPi2(DualPi2Config { coupling, ..DualPi2Config::default() });
        let (senders, _) = run(queue, &[load(times, Ecn::NotEct), load(0.02, Ecn::Ect1)], 200);
        let dropped = senders[0].lost / senders[0].sent;
        let marked = senders[1].marked / senders[1].arrived;
        assert!((dropped - (1.0 - 0.98 / times)).abs() < 0.005, "{coupling} {times}: {dropped}");
        let expected = coupling * dropped.sqrt();
        assert!((marked - expected).abs() < 0.05 * expected, "{coupling} {times}: {marked}, not {expected}");
        assert_eq!(senders[1].lost, 0.0);
        let waited = senders[0].mean_time() - 1.0;
        assert!((12.0..18.0).contains(&waited), "{waited} ms");
    }
}

/// RFC 9332 §2.1: with marks of p = k p', k = 2, a Reno has a window of sqrt(3/2) / p' and a scalable sender one of 2 (1 - p) / p,
/// each at the round trip that its queue leaves it; and the L4S queue is short all the same.
#[test]
fn dualpi2_gives_reno_and_scalable_senders_like_windows() {
    // The ramp begins above the time of a few packets, which take long here.
    let (ramp_start, ramp_end) = (Duration::from_millis(4), Duration::from_millis(6));
    let queue = QueueConfig::DualPi2(DualPi2Config { ramp_start, ramp_end, ..DualPi2Config::default() });
    let (senders, statistics) = run(queue, &[Kind::Reno(Ecn::NotEct), Kind::Scalable], 300);
    let [reno, scalable] = &senders[..] else { panic!() };
    let marks = scalable.marked / scalable.arrived;
    let windows = 1.5_f64.sqrt() / (1.0 - marks);
    let expected = windows * (20.0 + scalable.mean_time()) / (20.0 + reno.mean_time());
    let ratio = reno.arrived / scalable.arrived;
    assert!((ratio / expected - 1.0).abs() < 0.15, "{ratio}, not {expected}");
    assert!(scalable.mean_time() < 4.0 && reno.mean_time() > 10.0, "{} {}", scalable.mean_time(), reno.mean_time());
    assert!(statistics.busy.as_secs_f64() > 0.9 * 300.0, "{statistics:?}");
}

/// RFC 9332 §4.2: L4S senders that do not answer marks are dropped from as the others are.
#[test]
fn dualpi2_drops_from_an_overload_of_l4s_packets() {
    let queue = QueueConfig::DualPi2(DualPi2Config::default());
    let (senders, statistics) = run(queue, &[load(1.5, Ecn::Ect1)], 120);
    let share = senders[0].lost / senders[0].sent;
    assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
    assert!((12.0..18.0).contains(&(senders[0].mean_time() - 1.0)), "{}", senders[0].mean_time());
    assert_eq!(statistics.dropped_full.packets, 0);
}

/// Jain's index (Jain, Chiu and Hawe 1984).
fn jain(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

/// Loads of which each alone fills the link get equal rates, whatever they send.
#[test]
fn fq_codel_is_fair_to_senders_that_are_not() {
    let loads = [4.0, 2.0, 1.0, 0.5].map(|times| load(times, Ecn::NotEct));
    let rates = |queue| run(queue, &loads, 40).0.iter().map(|sender| sender.arrived).collect::<Vec<_>>();
    let fair = jain(&rates(QueueConfig::FqCoDel(FqCoDelConfig::default())));
    let unfair = jain(&rates(QueueConfig::CoDel(CoDelConfig::default())));
    assert!(fair > 0.999 && unfair < 0.8, "{fair} {unfair}");
}

/// RFC 8290 §4.2: a flow that sends less than its quantum in a round is new whenever it sends, so where the others always have
/// something, a packet of it waits for the one being sent at most.
#[test]
fn fq_codel_lets_a_sparse_flow_wait_for_one_packet_at_most() {
    let kinds = [1.0, 2.0, 0.03].map(|times| load(times, Ecn::NotEct));
    let (senders, _) = run(QueueConfig::FqCoDel(FqCoDelConfig::default()), &kinds, 40);
    let longest = senders[2].times.iter().fold(0.0_f64, |longest, time| longest.max(*time));
    // The rest of the other, the own one, and a step of the clock.
    assert!(longest <= 1.0 + 1.0 + 0.1001, "{longest} ms");
    assert_eq!(senders[2].lost, 0.0);
}

/// RFC 8290 §4.1.3: what is too much goes from the longest queue, at its head.
#[test]
fn fq_codel_drops_from_the_longest_queue() {
    let queue = QueueConfig::FqCoDel(FqCoDelConfig { limit: 100, ..FqCoDelConfig::default() });
    let config = LinkConfig { rate: Some(RATE), queue, ..LinkConfig::default() };
    let mut link = Link::new(config, Rng::from_seed(1)).keeping_discarded();
    for number in 0..111 {
        let flow = u64::from(number % 10 == 0);
        link.offer_of(Instant::ZERO, (flow, number), BYTES, flow, Ecn::NotEct).unwrap();
    }
    // One is being sent and 100 wait; the first ten of the many are gone.
    let dropped: Vec<_> =
        std::iter::from_fn(|| link.poll_discarded(Instant::ZERO)).map(|dropped| dropped.packet).collect();
    assert_eq!(dropped, (1..=11).filter(|number| number % 10 != 0).map(|number| (0, number)).collect::<Vec<_>>());
    assert_eq!((link.waiting_packets(), link.statistics().dropped_full.packets), (100, 10));
}

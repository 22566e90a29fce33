//! Losses that are the link's own, and those that are not, round by round over a link whose arithmetic is known.

use clock::{Duration, Instant, Rng};
use congestion::{Acked, Cause, Congestion, CoupledController, Doubt, EngineConfig, Rule, Share};

const MSS: f64 = 1500.0;
/// Of an empty link.
const RTT: Duration = Duration::from_millis(40);
/// What the link holds, in packets: 50 Mbit/s.
const BDP: f64 = 167.0;

/// A link that holds [`BDP`] packets and so many in its queue. What is more is dropped, and of the rest some at random.
#[derive(Clone, Copy)]
struct Link {
    queue: f64,
    random: f64,
    /// The queue takes what comes in good time to be dropped, and nothing waits: a policer.
    polices: bool,
    /// Up to which round trips differ at random.
    jitter: Duration,
    /// Packets of others on the link, from the hundredth round on.
    standing: f64,
    /// The window in packets at which slow start has ended; it has not where there is none.
    start: Option<f64>,
    /// Packets overtake each other.
    reorders: bool,
    /// Round trips differ, and no packet overtakes another.
    keeps_order: bool,
    /// In the hundredth round nothing arrives for so long, and from then on round trips are longer by so much.
    handover: Option<(Duration, Duration)>,
    /// In the hundredth round the path is silent, and this is done when it answers.
    silence: Option<fn(&mut CoupledController<Rule>, usize)>,
}

const CLEAN: Link = Link {
    queue: 1_000.0,
    random: 0.0,
    polices: false,
    jitter: Duration::ZERO,
    standing: 0.0,
    // As HyStart may.
    start: Some(BDP / 2.0),
    reorders: false,
    keeps_order: false,
    handover: None,
    silence: None,
};

#[derive(Clone, Debug, Default)]
struct Outcome {
    /// The mean window in packets, of the second half.
    window: f64,
    /// The part of all packets that was dropped for the rate.
    dropped: f64,
    reductions: u64,
    undone: u64,
    windows: Vec<f64>,
}

/// So many round trips of a path that always has something to send.
fn run(rule: &str, link: Link, rounds: u64, seed: u64) -> Outcome {
    let mut rng = Rng::from_seed(seed);
    let mut paths = CoupledController::new(rule.parse::<Rule>().unwrap(), EngineConfig::default(), Share::Equal);
    let path = paths.add_path(MSS as u32);
    if let Some(start) = link.start {
        paths.control_mut().set_cwnd(path, start * MSS);
        paths.control_mut().set_ssthresh(path, start * MSS);
    }
    let (mut now, mut next) = (Instant::ZERO + Duration::from_secs(1), 1u64);
    let (mut outcome, mut sent, mut dropped) = (Outcome::default(), 0.0, 0.0);
    let mut before = Duration::ZERO;
    for round in 0..rounds {
        let longer = link.handover.filter(|_| round >= 100).map_or(Duration::ZERO, |(_, longer)| longer);
        let mut paused = link.handover.filter(|_| round == 100).map_or(Duration::ZERO, |(pause, _)| pause);
        now += paused;
        if let Some(begins) = link.silence.filter(|_| round == 100) {
            begins(&mut paths, path);
        }
        let standing = if round < 100 { 0.0 } else { link.standing };
        let window = (paths.control().cwnd(path) / MSS).floor().max(1.0);
        let queue = (standing + window - BDP).clamp(0.0, link.queue);
        let too_many = (standing + window - BDP - link.queue).max(0.0).min(window).floor();
        let waits = if link.polices { Duration::ZERO } else { RTT.mul_f64(queue / BDP) };
        // What is too much is dropped here and there.
        let every = if too_many > 0.0 { (window / too_many).floor() as u64 } else { u64::MAX };
        let mut left = too_many;
        let (base, end) = (next, next + window as u64);
        for number in base..end {
            now += (RTT + waits).mul_f64(1.0 / window);
            let is_dropped = left > 0.0 && (number - base) % every == every - 1;
            left -= f64::from(u8::from(is_dropped));
            let mut rtt = RTT + longer + waits + std::mem::take(&mut paused) + link.jitter.mul_f64(rng.unit());
            if link.keeps_order {
                // It arrives no earlier than the one that left before it.
                rtt = rtt.max(before.saturating_sub((RTT + waits).mul_f64(1.0 / window)));
                before = rtt;
            }
            if link.reorders && number % 2 == 0 {
                paths.on_reordered(path, 1);
            }
            paths.on_rtt(path, rtt, now);
            let flight = paths.control().cwnd(path);
            if is_dropped || rng.chance(link.random) {
                let event = Congestion { cause: Cause::Loss, flight, next: end };
                paths.on_congestion(path, &event, Doubt { missing: 1, until: Instant::FAR_FUTURE }, now);
            } else {
                let (rtt, upto) = (Some(rtt), number);
                let acked = Acked { bytes: MSS as u64, flight: flight as u64, upto, next: end, rtt, srtt: RTT };
                paths.on_ack(path, &acked, now);
                paths.on_arrived(path, 1);
            }
        }
        (sent, dropped, next) = (sent + window, dropped + too_many, end);
        outcome.windows.push(window);
    }
    let half = &outcome.windows[outcome.windows.len() / 2..];
    outcome.window = half.iter().sum::<f64>() / half.len() as f64;
    outcome.dropped = dropped / sent;
    (outcome.reductions, outcome.undone) = paths.control().reductions(path);
    outcome
}

/// The mean of several seeds.
fn mean(rule: &str, link: Link, value: impl Fn(&Outcome) -> f64) -> f64 {
    (1..=10).map(|seed| value(&run(rule, link, 1_000, seed))).sum::<f64>() / 10.0
}

/// Where every loss is answered, M. Mathis and others (CCR 27(3), 1997) have √(3/2p) packets in a window: a fourteenth of the
/// link at 1 %. What fills the link before it is answered has three quarters of it, as any Reno over a short queue.
#[test]
fn random_loss_without_a_queue_is_not_answered() {
    for random in [0.002, 0.005, 0.01, 0.02, 0.05] {
        let link = Link { random, ..CLEAN };
        let mathis = (1.5 / random).sqrt();
        let answered = mean("mhip", link, |outcome| outcome.window);
        assert!((0.7..1.4).contains(&(answered / mathis)), "{random}: {answered} of {mathis}");
        let borne = mean("sinnet", link, |outcome| outcome.window);
        assert!(borne > 0.65 * BDP && borne < 1.1 * BDP, "{random}: {borne}");
    }
}

/// The same where round trips differ by more than the queue of many a link.
#[test]
fn jitter_is_no_queue() {
    for millis in [5, 20] {
        let link = Link { random: 0.01, jitter: Duration::from_millis(millis), ..CLEAN };
        let borne = mean("sinnet", link, |outcome| outcome.window);
        assert!(borne > 0.6 * BDP, "{millis} ms: {borne}");
    }
}

/// The same where no packet overtakes another, so that those behind a late one are late, too. The more packets there are, the more of
/// them are as late as the latest, which is what a queue looks like: so the link is not filled, but the window is larger by half than that of
/// Mathis and others.
#[test]
fn jitter_that_keeps_the_order_is_no_queue() {
    for (millis, random) in [(10, 0.005), (10, 0.02), (20, 0.005)] {
        let link = Link { random, jitter: Duration::from_millis(millis), keeps_order: true, ..CLEAN };
        let borne = mean("sinnet", link, |outcome| outcome.window);
        let mathis = (1.5 / random).sqrt();
        assert!(borne > 1.6 * mathis, "{millis} ms, {random}: {borne} of {mathis}");
    }
}

/// A link that is handed over pauses, and is longer then: that is no queue either.
#[test]
fn a_longer_link_after_a_pause_is_no_queue() {
    let handover = Some((Duration::from_millis(100), Duration::from_millis(12)));
    let link = Link { random: 0.01, handover, ..CLEAN };
    let borne = mean("sinnet", link, |outcome| outcome.window);
    assert!(borne > 0.6 * BDP, "{borne}");
    // Without a pause it may be others that wait.
    let link = Link { random: 0.01, handover: Some((Duration::ZERO, Duration::from_millis(12))), ..CLEAN };
    let answered = mean("sinnet", link, |outcome| outcome.window);
    assert!(answered < 0.3 * BDP, "{answered}");
}

/// The mean window in these rounds, of several seeds.
fn early(link: Link, rounds: std::ops::Range<usize>) -> f64 {
    let of = |seed| run("sinnet", link, 200, seed).windows[rounds.clone()].iter().sum::<f64>() / rounds.len() as f64;
    (1..=20).map(of).sum::<f64>() / 20.0
}

/// Without losses slow start fills the link in five round trips. One that a loss of the link's own has ended goes on once that is
/// known; a Reno that grows from half of where the first loss came, after 1/p packets, has a third of the link in two seconds.
#[test]
fn slow_start_goes_on_where_it_ended_for_nothing() {
    for random in [0.005, 0.02] {
        let window = early(Link { random, start: None, ..CLEAN }, 10..50);
        assert!(window > 0.45 * BDP, "{random}: {window}");
    }
}

/// A first loss has left an eighth of the link. A window that passes the one that lost by a quarter shows that it was no limit, and
/// after the next loss it grows by a quarter in a round trip: from an eighth to all of the link in ten. A Reno grows by a packet, and
/// has a third of the link at best if it loses one packet in 700: √(3/2p) (Mathis) is 32.
#[test]
fn what_lost_is_no_limit_once_it_is_passed() {
    let window = early(Link { random: 0.0015, start: Some(BDP / 8.0), ..CLEAN }, 60..120);
    assert!(window > 0.6 * BDP, "{window}");
}

/// The window of a Reno that loses 2 % is nine packets (Mathis); one that first losses have left there finds out what they are, for
/// so many packets are sent by all who begin.
#[test]
fn a_window_as_small_as_a_first_one_does_not_stay_so() {
    let window = early(Link { random: 0.02, start: Some(5.0), ..CLEAN }, 50..100);
    assert!(window > 0.3 * BDP, "{window}");
}

/// Delays that differ by less than the time in which two packets leave may be a queue's; where packets overtake each other they
/// are not.
#[test]
fn what_overtakes_others_is_no_queue() {
    let link = Link { random: 0.02, jitter: Duration::from_millis(10), reorders: true, start: None, ..CLEAN };
    let window = early(link, 50..200);
    assert!(window > 0.6 * BDP, "{window}");
}

/// Others have half of the link: ours is the other half, all of it, and no more of the queue than twice a twelfth of the least round
/// trip. A window that had to stay below the link to be seen without a queue would leave some of it.
#[test]
fn what_is_free_of_a_lossy_link_is_filled() {
    for random in [0.005, 0.01, 0.02] {
        let free = BDP / 2.0;
        let window = mean("sinnet", Link { random, standing: BDP - free, ..CLEAN }, |outcome| outcome.window);
        assert!((free..free + BDP / 6.0).contains(&window), "{random}: {window} of {free}");
    }
}

/// Now and then more is lost than small windows have told, by chance. A window that was taken for too large because of that is found
/// out not to be: less than a fourteenth of the link stays free after the first four seconds, where an eleventh did for good.
#[test]
fn a_window_that_lost_by_chance_is_not_too_large_for_long() {
    let used = |random, jitter, seed| {
        let link = Link { random, jitter: Duration::from_millis(jitter), reorders: true, start: None, ..CLEAN };
        let windows = &run("sinnet", link, 300, seed).windows[100..];
        windows.iter().map(|window| window.min(BDP) / BDP).sum::<f64>() / windows.len() as f64
    };
    let links = [(0.01, 10), (0.01, 25), (0.02, 10), (0.02, 25)];
    let all: Vec<f64> =
        links.iter().flat_map(|(random, jitter)| (1..=20).map(|seed| used(*random, *jitter, seed))).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean > 1.0 - 1.0 / 14.0, "{mean}");
}

/// A window that was too large because a queue stood is soon near that again. From two thirds of the link, half of what overflows a queue
/// of a third of it, to all of it takes 13 round trips where a window grows by 1/32 in each (ln 1.5 / ln (33/32)), and 56 where it grows by
/// a packet; the mean window is a little less than the link then.
#[test]
fn a_lossy_link_that_was_filled_is_soon_filled_again() {
    for random in [0.01, 0.02] {
        let window = mean("sinnet", Link { random, queue: BDP / 3.0, ..CLEAN }, |outcome| outcome.window);
        assert!(window > 0.95 * BDP, "{random}: {window} of {BDP}");
    }
    for (random, queue) in
        [0.003, 0.01, 0.02].into_iter().flat_map(|random| [20.0, BDP / 3.0, BDP].map(|q| (random, q)))
    {
        let link = Link { random, queue, ..CLEAN };
        let windows = |seed| run("sinnet", link, 1_000, seed).windows.split_off(200);
        let is_free: Vec<Vec<bool>> =
            (1..=10).map(|seed| windows(seed).into_iter().map(|window| window < BDP).collect()).collect();
        let rounds = is_free.iter().flatten().filter(|free| **free).count();
        let falls = is_free.iter().flat_map(|free| free.windows(2)).filter(|pair| !pair[0] && pair[1]).count();
        assert!(rounds < 20 * falls, "{random}, {queue}: {falls} falls, {rounds} round trips below the link");
    }
}

/// A policer or a short queue of less than a first window is answered as by others.
#[test]
fn what_drops_of_a_first_window_for_the_rate_is_answered() {
    for (queue, polices) in [(0.0, true), (0.2 * BDP, false)] {
        let link = Link { queue, polices, standing: BDP - 6.0, ..CLEAN };
        let (ours, reno) =
            (mean("sinnet", link, |outcome| outcome.window), mean("mhip", link, |outcome| outcome.window));
        assert!(ours < 1.3 * reno, "{queue}: {ours} packets where a Reno has {reno}");
    }
}

/// Whatever is dropped for the rate is answered when it is, without a queue as with one of a fifth of a round trip or of five: the
/// window that a Reno begins to lose at is the largest there is, but for what a curve grows by in a round trip, and grows again from half
/// or from seven tenths of it.
#[test]
fn what_drops_for_the_rate_is_answered() {
    for (queue, polices) in [(0.0, true), (0.05 * BDP, true), (0.2 * BDP, false), (BDP, false), (5.0 * BDP, false)] {
        let link = Link { queue, polices, ..CLEAN };
        let (ours, reno) = (run("sinnet", link, 1_000, 1), run("mhip", link, 1_000, 1));
        assert!(reno.reductions > 0, "{queue}");
        assert!(ours.reductions >= reno.reductions, "{queue} {polices}: {} of {}", ours.reductions, reno.reductions);
        let largest = |outcome: &Outcome| outcome.windows.iter().copied().fold(0.0, f64::max);
        assert!(largest(&ours) <= 1.03 * largest(&reno), "{queue} {polices}: {} of {}", largest(&ours), largest(&reno));
        for falls in ours.windows.windows(2).filter(|pair| pair[1] < pair[0]) {
            let part = falls[1] / falls[0];
            assert!((0.49..0.52).contains(&part) || (0.69..0.72).contains(&part), "{queue} {polices}: {falls:?}");
        }
    }
}

/// A policer on a link with losses of its own: no more than twice is dropped for the rate, for they are told apart by how many
/// there are.
#[test]
fn a_policer_on_a_lossy_link_is_found() {
    for random in [0.001, 0.005, 0.01, 0.02] {
        let link = Link { queue: 0.0, random, polices: true, ..CLEAN };
        let dropped = mean("sinnet", link, |outcome| outcome.dropped);
        let clean = mean("mhip", Link { random: 0.0, ..link }, |outcome| outcome.dropped);
        // Beyond what is random nobody can see less than the chance of it.
        assert!(dropped < 2.0 * clean + random / 2.0, "{random}: {dropped} where {clean} is a Reno's");
        let window = mean("sinnet", link, |outcome| outcome.window);
        assert!(window > 0.55 * BDP && window < BDP, "{random}: {window}");
    }
}

/// More than a twentieth is answered, wherever it comes from.
#[test]
fn much_loss_is_answered_whatever_it_is() {
    let link = Link { random: 0.1, ..CLEAN };
    let (ours, reno) = (mean("sinnet", link, |outcome| outcome.window), mean("mhip", link, |outcome| outcome.window));
    assert!(ours < 1.5 * reno, "{ours} packets where a Reno has {reno}");
}

/// What drops at random because a queue is there, as RED and PIE do, is answered.
#[test]
fn random_loss_with_a_queue_is_answered() {
    let link = Link { random: 0.01, standing: BDP + 30.0, ..CLEAN };
    let mut windows = [0.0, 0.0];
    for (window, rule) in windows.iter_mut().zip(["sinnet", "mhip"]) {
        *window = mean(rule, link, |outcome| outcome.window);
    }
    assert!(windows[0] < 1.2 * windows[1], "{windows:?}");
}

/// What is known of a link's own losses holds after a silence: the window is soon where it was. Begun anew it has to be found out.
#[test]
fn a_path_that_answers_again_knows_its_losses() {
    for random in [0.005, 0.01, 0.02] {
        let after = |begins| early(Link { random, silence: Some(begins), ..CLEAN }, 105..125);
        let (knows, learns) = (after(CoupledController::revive), after(CoupledController::restart));
        assert!(knows > 1.2 * learns, "{random}: {knows} and {learns}");
    }
}

/// A packet of the first window is lost for good, and nothing answers that. What is overtaken some round trips later is taken for a loss, and
/// what then comes is the one that was overtaken, not the one of then. One that comes within a round trip is.
#[test]
fn what_was_lost_for_good_does_not_come_in_the_place_of_another() {
    for (wait, comes_back) in [(Duration::from_millis(100), true), (Duration::from_millis(5), false)] {
        let mut paths =
            CoupledController::new("sinnet".parse::<Rule>().unwrap(), EngineConfig::default(), Share::Equal);
        let path = paths.add_path(MSS as u32);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let lost = |paths: &mut CoupledController<Rule>, number: u64, now| {
            let event = Congestion { cause: Cause::Loss, flight: paths.control().cwnd(path), next: number + 10 };
            paths.on_congestion(path, &event, Doubt { missing: 1, until: Instant::FAR_FUTURE }, now)
        };
        let acked = |paths: &mut CoupledController<Rule>, upto: u64, now| {
            let flight = paths.control().cwnd(path) as u64;
            let acked = Acked { bytes: MSS as u64, flight, upto, next: upto + 10, rtt: Some(RTT), srtt: RTT };
            paths.on_rtt(path, RTT, now);
            paths.on_ack(path, &acked, now);
            paths.on_arrived(path, 1);
        };
        paths.on_rtt(path, RTT, now);
        assert!(!lost(&mut paths, 1, now), "a loss of the first window is not answered");
        for number in 2..20 {
            acked(&mut paths, number, now);
        }
        now += wait;
        let before = paths.control().cwnd(path);
        assert!(lost(&mut paths, 40, now));
        assert_eq!(paths.on_late(path, 1, false, now + Duration::from_millis(1)), comes_back, "after {wait:?}");
        if comes_back {
            assert!(paths.on_spurious(path, now));
            assert_eq!(paths.control().cwnd(path), before);
        }
    }
}

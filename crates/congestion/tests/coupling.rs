//! Paths through one bottleneck are one flow together.

use clock::{Duration, Instant};
use congestion::{
    Acked, Backoff, Cause, Congestion, Controller, CoupledController, Cubic, Doubt, EngineConfig, Group, Mhip, NewReno,
    Rule, Share, WindowRule,
};

const MSS: u32 = 1500;
const RTT: Duration = Duration::from_millis(80);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Paths out of slow start with windows of so many packets, whose queues have been known for ten seconds: the same saw-tooth for
/// those of the first `bundled`.
fn coupled<R: WindowRule>(rule: R, share: Share, packets: &[f64], bundled: usize) -> CoupledController<R> {
    let mut paths = CoupledController::new(rule, EngineConfig::default(), share);
    for packets in packets {
        let path = paths.add_path(MSS);
        paths.on_ack(path, &acked(0.0, 0.0, 0), Instant::ZERO);
        paths.control_mut().set_cwnd(path, packets * f64::from(MSS));
        paths.control_mut().set_ssthresh(path, packets * f64::from(MSS));
    }
    for millis in (0..10_000).step_by(10) {
        for path in 0..packets.len() {
            let period = if path < bundled { 2_300 } else { 1_700 };
            paths.on_queueing(path, Duration::from_micros(millis % period * 30), at(millis));
        }
    }
    paths
}

fn windows<R: WindowRule>(paths: &CoupledController<R>) -> Vec<f64> {
    paths.control().paths().iter().map(|path| path.cwnd / f64::from(MSS)).collect()
}

fn acked(bytes: f64, cwnd: f64, upto: u64) -> Acked {
    Acked { bytes: bytes as u64, flight: cwnd as u64, upto, next: upto + 10, rtt: Some(RTT), srtt: RTT }
}

/// What each path alone gains in packets by the acknowledgment of a window of data.
fn growth<R: WindowRule + Clone>(paths: &CoupledController<R>) -> Vec<f64> {
    let growth = |(path, packets): (usize, f64)| {
        let (mut paths, cwnd) = (paths.clone(), packets * f64::from(MSS));
        paths.on_ack(path, &acked(cwnd, cwnd, 1), at(10_000));
        windows(&paths)[path] - packets
    };
    windows(paths).into_iter().enumerate().map(growth).collect()
}

fn lose<R: WindowRule>(paths: &mut CoupledController<R>, path: usize, missing: u32) -> bool {
    let event = Congestion { cause: Cause::Loss, flight: paths.control().cwnd(path), next: 100 };
    paths.on_congestion(path, &event, Doubt { missing, until: at(11_000) }, at(10_000))
}

/// RFC 5681 §3.1 and ALGORITHMS §13 M7: a packet a round trip for the one flow that they are, and another for who is alone.
#[test]
fn a_bundle_of_renos_grows_by_one_packet_in_a_round_trip() {
    for (share, second, expected) in [(Share::Equal, 10.0, [0.5, 0.5, 1.0]), (Share::ByWindow, 30.0, [0.25, 0.75, 1.0])]
    {
        for rule in ["newreno", "mhip"] {
            let paths = coupled(rule.parse::<Rule>().unwrap(), share, &[10.0, second, 20.0], 2);
            for (ours, expected) in growth(&paths).into_iter().zip(expected) {
                assert!((ours - expected).abs() < 1e-9, "{share:?} {rule} {ours} {expected}");
            }
        }
    }
}

/// RFC 6356 §2: together they have what a TCP on the best path has, whose rate is as 1/RTT where windows are equal. Of two paths of 40
/// and 120 ms the farther one adds a third to the rate, so each is three quarters of a TCP.
#[test]
fn paths_that_are_not_equally_far_are_one_tcp_on_the_quickest() {
    for (far, part) in [(40, 0.5), (120, 0.75)] {
        let mut paths = CoupledController::new(NewReno, EngineConfig::default(), Share::Equal);
        for (path, rtt) in [40, far].into_iter().enumerate() {
            paths.add_path(MSS);
            let (rtt, srtt) = (Some(Duration::from_millis(rtt)), Duration::from_millis(rtt));
            paths.on_ack(path, &Acked { rtt, srtt, ..acked(0.0, 0.0, 0) }, Instant::ZERO);
            paths.control_mut().set_ssthresh(path, f64::from(MSS));
        }
        for millis in (0..10_000).step_by(10) {
            for path in 0..2 {
                paths.on_queueing(path, Duration::from_micros(millis % 2_300 * 30), at(millis));
            }
        }
        for path in paths.control().paths() {
            assert!((path.unit / f64::from(MSS) - part).abs() < 1e-9, "{far} ms: {}", path.unit);
        }
    }
}

/// The same where windows have had time to differ, and what one loses both answer: one flow alone on the near path, with a loss at the
/// same times, is as fast as both.
fn two_that_are_not_equally_far<R: WindowRule + Clone>(rule: R, far: u64, seconds_between_losses: u64) -> f64 {
    let rtts = [40, far].map(Duration::from_millis);
    let mut single = Controller::new(rule.clone(), EngineConfig::default());
    let mut pair = CoupledController::new(rule, EngineConfig::default(), Share::Equal);
    pair.answer_all_losses();
    let start = 100.0 * f64::from(MSS);
    single.add_path(MSS);
    single.set_cwnd(0, start);
    single.set_ssthresh(0, start);
    for path in 0..2 {
        pair.add_path(MSS);
        pair.control_mut().set_cwnd(path, start);
        pair.control_mut().set_ssthresh(path, start);
    }
    let (mut rates, between) = ([0.0, 0.0], seconds_between_losses * 1_000);
    let ack = |cwnd: f64, rtt, now: Instant| Acked { rtt: Some(rtt), srtt: rtt, ..acked(cwnd, cwnd, now.as_nanos()) };
    for millis in (0..100 * between).step_by(10) {
        let now = at(millis);
        for (path, rtt) in rtts.into_iter().enumerate() {
            pair.on_queueing(path, Duration::from_micros(millis % 2_300 * 30), now);
            if Duration::from_millis(millis % rtt.as_millis()).is_zero() {
                let cwnd = pair.control().cwnd(path);
                pair.on_ack(path, &ack(cwnd, rtt, now), now);
            }
        }
        if millis % 40 == 0 {
            let cwnd = single.cwnd(0);
            single.on_ack(0, &ack(cwnd, rtts[0], now), now);
        }
        if millis % between == 0 && millis > 0 {
            let path = (millis / between % 2) as usize;
            let lost = |flight| Congestion { cause: Cause::Loss, flight, next: now.as_nanos() + 1 };
            assert!(pair.on_congestion(path, &lost(pair.control().cwnd(path)), Doubt::NONE, now));
            assert!(single.on_congestion(0, &lost(single.cwnd(0)), now));
        }
        if millis > 80 * between {
            let rate = |cwnd: f64, rtt: Duration| cwnd / rtt.as_secs_f64();
            rates[0] += rate(single.cwnd(0), rtts[0]);
            rates[1] += (0..2).map(|path| rate(pair.control().cwnd(path), rtts[path])).sum::<f64>();
        }
    }
    rates[1] / rates[0]
}

#[test]
fn paths_that_lose_together_are_one_tcp_on_the_best() {
    for far in [40, 80, 120, 200] {
        let ratios = [
            two_that_are_not_equally_far(NewReno, far, 2),
            two_that_are_not_equally_far(Cubic::default(), far, 2),
            two_that_are_not_equally_far(Cubic::default(), far, 10),
        ];
        assert!(ratios.iter().all(|ratio| (0.93..1.07).contains(ratio)), "{far} ms: {ratios:?}");
    }
}

/// RFC 9438 §4.6 leaves a flow two packets at the least; two paths that are one flow share them.
#[test]
fn the_least_window_is_that_of_one_flow() {
    let mut paths = coupled(Cubic::default(), Share::Equal, &[2.0, 2.0], 2);
    assert!(lose(&mut paths, 0, 1));
    for window in windows(&paths) {
        assert!((window - 0.7 * 2.0).abs() < 1e-9, "{window}");
    }
}

/// What is left of a bundle grows as a flow of its own once the other path has begun anew.
#[test]
fn a_path_whose_fellow_begins_anew_is_alone() {
    let mut paths = coupled(NewReno, Share::Equal, &[10.0, 10.0], 2);
    assert!((growth(&paths)[0] - 0.5).abs() < 1e-9);
    paths.restart(1);
    for millis in (10_000..11_000).step_by(10) {
        paths.on_queueing(0, Duration::from_micros(millis % 2_300 * 30), at(millis));
    }
    assert!((growth(&paths)[0] - 1.0).abs() < 1e-9);
}

/// A rule that couples paths is left alone, and so is one whose owner asks for it.
#[test]
fn what_couples_itself_is_not_coupled_again() {
    let paths = coupled(Mhip { growth: congestion::Growth::Coupled }, Share::Equal, &[10.0, 10.0], 2);
    assert!(growth(&paths).into_iter().all(|more| (more - 0.5).abs() < 1e-9));
    let mut paths = CoupledController::new(NewReno, EngineConfig::default(), Share::Equal).uncoupled();
    for path in 0..2 {
        paths.add_path(MSS);
        paths.control_mut().set_ssthresh(path, f64::from(MSS));
    }
    for millis in (0..10_000).step_by(10) {
        (0..2).for_each(|path| paths.on_queueing(path, Duration::from_micros(millis % 2_300 * 30), at(millis)));
    }
    assert_eq!(paths.sharers(0), 2, "it is seen all the same");
    let before = windows(&paths)[1];
    assert!(lose(&mut paths, 0, 1));
    assert_eq!(windows(&paths)[1], before);
}

/// A window of CUBIC, its losses and its growth, round by round.
struct Single(Controller<Cubic>);

impl Single {
    fn round(&mut self, now: Instant, loses: bool) -> f64 {
        let cwnd = self.0.cwnd(0);
        let position = now.as_nanos();
        if loses {
            self.0.on_congestion(0, &Congestion { cause: Cause::Loss, flight: cwnd, next: position }, now);
        }
        self.0.on_ack(0, &acked(cwnd, cwnd, position), now);
        self.0.cwnd(0)
    }
}

/// One CUBIC with a window of W, and two paths with W/2 each that lose when it does: RFC 9438 §4.2 is a function of time, so the
/// two are it only if their curve is half as high. Were each a CUBIC, they would have twice its growth (Reno's would do with half
/// the growth and the same curve).
#[test]
fn two_cubics_through_one_bottleneck_are_one() {
    let mut single = Single(Controller::new(Cubic::default(), EngineConfig::default()));
    single.0.add_path(MSS);
    single.0.set_cwnd(0, 400.0 * f64::from(MSS));
    single.0.set_ssthresh(0, 400.0 * f64::from(MSS));
    let mut pair = coupled(Cubic::default(), Share::Equal, &[200.0, 200.0], 2);
    // And neither rests, to see whether each has a queue of its own.
    pair.answer_all_losses();
    let (mut all, mut rounds) = ([0.0, 0.0], 0);
    for round in 0..1_000_u64 {
        let now = at(10_000) + RTT * round;
        // Every 9 s or so, of this path or that; others' traffic decides.
        let loses = round % 113 == 0;
        let one = single.round(now, loses);
        if loses {
            let path = (round / 113 % 2) as usize;
            let event = Congestion { cause: Cause::Loss, flight: pair.control().cwnd(path), next: now.as_nanos() };
            assert!(pair.on_congestion(path, &event, Doubt::NONE, now));
        }
        for path in 0..2 {
            let cwnd = pair.control().cwnd(path);
            pair.on_ack(path, &acked(cwnd, cwnd, now.as_nanos()), now);
        }
        let two: f64 = windows(&pair).iter().sum();
        all = [all[0] + one / f64::from(MSS), all[1] + two];
        rounds += 1;
    }
    let ratio = all[1] / all[0];
    assert!((ratio - 1.0).abs() < 0.02, "{ratio} of one CUBIC's window of {:.0}", all[0] / f64::from(rounds));
}

/// The bundle ends while windows are reduced: what a path keeps in packets is of its own window again.
#[test]
fn a_path_that_is_alone_again_returns_to_its_own_plateau() {
    let mut paths = coupled(Cubic::default(), Share::Equal, &[200.0, 200.0], 2);
    assert!(lose(&mut paths, 0, 1));
    assert_eq!(windows(&paths), [140.0, 140.0]);
    for millis in (10_000..40_000).step_by(10) {
        paths.on_queueing(0, Duration::from_micros(millis % 2_300 * 30), at(millis));
        paths.on_queueing(1, Duration::from_micros(millis % 1_700 * 30), at(millis));
    }
    assert_eq!(paths.sharers(0), 1);
    // RFC 9438 §4.2: K = ∛(60 / 0.4) = 5.3 s after which the window is 200 packets again.
    let mut now = at(40_000);
    let k = Duration::from_secs_f64(150.0_f64.cbrt());
    paths.on_ack(0, &acked(1.0, paths.control().cwnd(0), 200), now);
    let (start, mut upto) = (now, 300);
    while now - start < k {
        now += RTT;
        upto += 100;
        let cwnd = paths.control().cwnd(0);
        paths.on_ack(0, &acked(cwnd, cwnd, upto), now);
    }
    let window = windows(&paths)[0];
    assert!((window - 200.0).abs() < 2.0, "{window}");
}

#[test]
fn what_one_has_lost_all_answer_once_and_what_came_late_is_taken_back() {
    let mut paths = coupled(NewReno, Share::Equal, &[10.0, 10.0, 10.0], 2);
    assert!(lose(&mut paths, 0, 2));
    assert_eq!(windows(&paths), [5.0, 5.0, 10.0]);
    assert!(!lose(&mut paths, 1, 1), "it was in the same queue");
    assert_eq!(windows(&paths), [5.0, 5.0, 10.0]);
    assert!(!paths.on_late(0, 1, false, at(10_100)), "another is missing");
    assert!(!paths.on_late(1, 1, false, at(10_100)), "says nothing of what the first has lost");
    assert!(paths.on_late(0, 1, false, at(10_100)));
    assert!(paths.on_spurious(0, at(10_100)));
    assert_eq!(windows(&paths), [10.0, 10.0, 10.0]);
    assert!(!paths.on_late(0, 1, false, at(10_100)), "once");
}

#[test]
fn what_comes_too_late_shows_nothing() {
    let mut paths = coupled(NewReno, Share::Equal, &[10.0, 10.0], 2);
    assert!(lose(&mut paths, 0, 1));
    assert!(!paths.on_late(0, 1, false, at(11_001)), "it may be a retransmission's");
}

#[test]
fn a_path_that_lost_itself_stays_halved_when_the_other_had_not() {
    let mut paths = coupled(NewReno, Share::Equal, &[10.0, 10.0], 2);
    assert!(lose(&mut paths, 0, 1));
    assert!(!lose(&mut paths, 1, 1));
    assert!(paths.on_late(0, 1, false, at(10_100)) && paths.on_spurious(0, at(10_100)));
    assert_eq!(windows(&paths), [10.0, 5.0]);
}

#[test]
fn a_timeout_is_a_path_s_own() {
    let mut paths = coupled(NewReno, Share::Equal, &[10.0, 10.0], 2);
    let event = Congestion { cause: Cause::Timeout, flight: 15e3, next: 100 };
    assert!(paths.on_congestion(0, &event, Doubt::NONE, at(10_000)));
    assert_eq!(windows(&paths), [1.0, 10.0]);
}

/// A coupled rule moves traffic from one path to another: α of OLIA (Khalili and others, 2013) is negative for
/// the paths with the largest windows.
#[test]
fn a_window_falls_where_its_rule_takes_away() {
    #[derive(Clone, Debug)]
    struct Taking;
    impl WindowRule for Taking {
        fn increase(&mut self, _path: usize, _group: Group<'_>, acked: f64) -> f64 {
            -0.1 * acked
        }
        fn decrease(&mut self, path: usize, group: Group<'_>, _cause: Cause) -> Backoff {
            let path = group.path(path);
            Backoff::to(path.flight / 2.0, 2.0 * path.mss)
        }
    }
    let gained = growth(&coupled(Taking, Share::Equal, &[10.0], 0));
    assert!((gained[0] + 1.0).abs() < 1e-9, "{gained:?}");
}

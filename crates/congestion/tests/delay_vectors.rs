//! The check vectors of the rules that read delays (ALGORITHMS §3.5, §3.6, §5), computed by an independent program, and
//! what those rules do with chance.

use crate::common::{Bench, assert_near, number, numbers, vector};
use clock::Rng;
use congestion::lia::alpha;
use congestion::{Balia, Cause, Cdg, Daimd, DaimdConfig, Hd, Lia, Olia, WindowRule};

#[test]
fn cdg_1() {
    let (input, output) = vector("cdg.1");
    let mut rule = Cdg::default();
    rule.scale = number(&input["G"]);
    for (gradient, p) in numbers(&input["smoothed_gradient_ms"]).into_iter().zip(numbers(&output["p_backoff"])) {
        assert_near(rule.probability(gradient), p);
    }
}

#[test]
fn hd_1() {
    let (input, output) = vector("hd.1");
    let mut rule = Hd::default();
    rule.lowest = number(&input["qmin"]) / 1e3;
    rule.threshold = number(&input["qth"]) / 1e3;
    rule.highest_probability = number(&input["pmax"]);
    for (delay, p) in numbers(&input["q_ms"]).into_iter().zip(numbers(&output["p_per_ack"])) {
        assert_near(rule.probability(delay / 1e3, number(&input["qmax_ms"]) / 1e3), p);
    }
}

/// Cuts by delay are a Bernoulli process with the probability of the formula; one is granted per window of data.
#[test]
fn hd_cuts_as_often_as_its_probability_says() {
    let (mut cuts, trials) = (0_u64, 20_000);
    let mut bench = Bench::new(Hd::default(), 1000, &[(100e3, 100e3, 0.1)]);
    bench.controller.seed(Rng::from_seed(5));
    for _ in 0..2 {
        bench.acked(0, 0, 0.0, Some(0.2)); // The longest queue: 100 ms. It is full, so nothing happens.
    }
    for _ in 0..trials {
        bench.controller.set_cwnd(0, 100e3);
        bench.acked(0, 0, 100e3, Some(0.1125)); // Half way up the rising branch: 0.025.
        if bench.controller.in_recovery(0) {
            cuts += 1;
            assert_eq!(bench.controller.cwnd(0), 50e3);
            bench.acked(0, 0, 100e3, Some(0.12));
            assert_eq!(bench.controller.cwnd(0), 50e3, "one cut a window");
            bench.recovered(0);
        }
    }
    assert_eq!(bench.controller.early_reductions(0), cuts);
    let (mean, deviation) = (0.025 * f64::from(trials), (0.025 * 0.975 * f64::from(trials)).sqrt());
    assert!((cuts as f64 - mean).abs() < 4.0 * deviation, "{cuts} cuts, expected {mean}");
}

/// ALGORITHMS §3.5: at a steady rise by G a round, the average of gradients is k/8·G after k rounds, so that a window
/// survives k rounds with probability exp(−Σ k/8). The mean of the round of the first cut follows.
#[test]
fn cdg_cuts_as_often_as_the_gradient_says() {
    let runs = 2000;
    let mut sum = 0.0;
    for seed in 0..runs {
        let mut bench = Bench::new(Cdg::default(), 1000, &[(100e3, 100e3, 0.1)]);
        bench.controller.seed(Rng::from_seed(seed));
        for round in 1.. {
            bench.round(0, 0.1 + 0.003 * f64::from(round), 3, false);
            if bench.controller.cwnd(0) < 100e3 {
                assert_near(bench.controller.cwnd(0), 70e3);
                assert_near(bench.controller.ssthresh(0), 70e3);
                sum += f64::from(round);
                break;
            }
        }
    }
    let survives: Vec<f64> = (0..60).map(|k| (1..=k).map(|j| (-f64::from(j.min(8)) / 8.0).exp()).product()).collect();
    let mean: f64 = survives.iter().sum();
    let square: f64 = survives.iter().enumerate().map(|(k, p)| (2.0 * k as f64 + 1.0) * p).sum();
    let error = ((square - mean * mean) / runs as f64).sqrt();
    assert!((sum / runs as f64 - mean).abs() < 4.0 * error, "{} is not {mean} ± {error}", sum / runs as f64);
}

/// After five cuts in a row that did not shorten the queue, five are left out. The round after a cut does not count.
#[test]
fn cdg_gives_up_cuts_that_do_not_help() {
    let mut rule = Cdg::default();
    rule.scale = 1e-3; // Every rise is a certain cut.
    let mut bench = Bench::new(rule, 1000, &[(100e3, 1e3, 0.1)]);
    let mut cuts = Vec::new();
    for round in 1..=18 {
        bench.controller.set_cwnd(0, 100e3);
        bench.round(0, 0.1 + 0.003 * f64::from(round), 3, false);
        if bench.controller.cwnd(0) < 100e3 {
            cuts.push(round);
        }
    }
    assert_eq!(cuts, [1, 3, 5, 7, 9, 16, 18]);
}

/// A loss counts where the lowest round-trip time rises and the highest does not any more: the queue is full.
#[test]
fn cdg_halves_for_losses_of_full_queues_only() {
    let mut rule = Cdg::default();
    rule.scale = 1e3; // Next to no cuts.
    let mut bench = Bench::new(rule, 1000, &[(100e3, 1e3, 0.1)]);
    assert!(bench.congestion(0, Cause::Loss));
    assert_eq!(bench.controller.cwnd(0), 100e3, "nothing is known of the queue");
    bench.recovered(0);
    for round in 1..5 {
        bench.acked(0, 0, 0.0, Some(0.2));
        bench.round(0, 0.1 + 0.01 * f64::from(round), 3, false);
    }
    assert!(bench.congestion(0, Cause::Loss));
    assert_eq!(bench.controller.cwnd(0), 50e3);
}

/// A path past its first loss with the window, the lowest and the highest round-trip time of the vector.
fn after_a_loss<R: WindowRule>(rule: R, input: &serde_json::Value) -> Bench<R> {
    let (base, top) = (number(&input["base"]), number(&input["top"]));
    let mut bench = Bench::new(rule, 1000, &[(50e3, 50e3, base), (50e3, 50e3, base)]);
    for rtt in [top, top, top + 0.04] {
        bench.acked(0, 0, 0.0, Some(rtt)); // The last one waited at a receiver, and does not count.
    }
    bench.controller.set_cwnd(0, 100e3);
    bench.round(0, base + 0.9 * (top - base), 3, false);
    assert_near(bench.controller.cwnd(0), 100e3);
    bench.congestion(0, Cause::Loss);
    bench.recovered(0);
    bench.controller.set_cwnd(0, number(&input["cwnd"]) * 1e3);
    bench
}

/// The delay mechanism is the same whatever rule is below.
#[test]
fn daimd_1() {
    fn trace<R: WindowRule>(rule: R) {
        let (input, output) = vector("daimd.1");
        let config = DaimdConfig::default();
        assert_eq!([config.high, config.low, config.delay_factor], ["hi", "lo", "beta"].map(|key| number(&input[key])));
        let mut bench = after_a_loss(Daimd::new(config, rule), &input);
        let trace = output["trace"].as_array().unwrap();
        assert_near(bench.controller.cwnd(0) / 1e3, number(&trace[0][1]));
        let rounds = numbers(&input["round_min_rtt"]);
        assert_eq!(rounds.len() + 1, trace.len());
        for (rtt, step) in rounds.into_iter().zip(&trace[1..]) {
            bench.round(0, rtt, 3, false);
            assert_near(bench.controller.cwnd(0) / 1e3, number(&step[2]));
            assert_eq!(bench.controller.rule().is_armed(0), step[3].as_bool().unwrap());
        }
        assert_eq!(bench.controller.early_reductions(0), 2);
        assert_eq!(bench.controller.early_reductions(1), 0);
        assert_eq!(bench.controller.cwnd(1), 50e3, "the sibling keeps its window");
        assert!(!bench.controller.in_recovery(0));
    }
    trace(Lia);
    trace(Olia::default());
    trace(Balia);
}

#[test]
fn daimd_2() {
    let (input, output) = vector("daimd.2");
    let (w, rtt) = (numbers(&input["w"]), numbers(&input["rtt"]));
    let paths: Vec<_> = (0..2).map(|i| (w[i] * 1e3, w[i] * 1e3, rtt[i])).collect();
    for path in 0..2 {
        let mut bench = Bench::new(Daimd::<Lia>::default(), 1000, &paths);
        assert_near(alpha(bench.controller.group(bench.now)), number(&output["alpha"]));
        let more = bench.grow(path) / 1e3;
        assert!((more - number(&output["inc"][path])).abs() < 1e-9);
        assert!((w[path] * more - number(&output["per_rtt"][path])).abs() < 1e-9);
    }
}

/// A window that fills a queue of one bandwidth-delay product to θ is (1 + θ) bandwidth-delay products, and what the cut
/// leaves of it keeps the link busy from θ = 3/7 on.
#[test]
fn daimd_3() {
    let (input, output) = vector("daimd.3");
    let queue = number(&input["queue_bdp"]);
    for (theta, left) in numbers(&input["theta"]).into_iter().zip(numbers(&output["min_window_over_bdp"])) {
        let config =
            DaimdConfig { high: theta, low: 0.0, delay_factor: number(&input["beta"]), ..DaimdConfig::default() };
        let (base, bdp) = (0.1, 100e3);
        let top = base * (1.0 + queue);
        let input = serde_json::json!({ "base": base, "top": top, "cwnd": (1.0 + theta * queue) * bdp / 1e3 });
        let mut bench = after_a_loss(Daimd::new(config, Lia), &input);
        bench.round(0, base * (1.0 + theta * queue) + 1e-9, 3, false);
        // The vector has 3/7 where it prints 0.4286.
        assert!((bench.controller.cwnd(0) / bdp - left).abs() < 1e-4, "{}", bench.controller.cwnd(0) / bdp);
    }
}

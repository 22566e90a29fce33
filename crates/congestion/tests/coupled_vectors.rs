//! The check vectors of the rules for several paths (ALGORITHMS §3.2 and §4), computed by an independent program.

use crate::common::{Bench, assert_near, mss, number, numbers, seconds, vector};
use congestion::lia::alpha;
use congestion::{
    Balia, Cause, Coupled, Ewtcp, InitialWindow, Lia, LiaByte, Olia, RenoSp, Rp1, Rp2, WindowRule, Wvegas,
};
use serde_json::Value;

/// Paths in congestion avoidance with the windows `c` (bytes) and round-trip times of a vector.
fn avoidance<R: WindowRule>(rule: R, mss: u32, input: &Value) -> Bench<R> {
    let paths: Vec<_> =
        numbers(&input["c"]).into_iter().zip(numbers(&input["rtt"])).map(|(c, rtt)| (c, c, rtt)).collect();
    Bench::new(rule, mss, &paths)
}

/// The same for windows `w` in packets, of 1000 bytes here.
fn packets<R: WindowRule>(rule: R, input: &Value) -> Bench<R> {
    let windows = numbers(&input["w"]);
    let rtts = if input["rtt"].is_null() { vec![0.1; windows.len()] } else { numbers(&input["rtt"]) };
    let paths: Vec<_> = windows.into_iter().zip(rtts).map(|(w, rtt)| (w * 1e3, w * 1e3, rtt)).collect();
    Bench::new(rule, 1000, &paths)
}

/// A whole window acknowledged in two parts, and what it adds: rules that count bytes grow at the second.
fn grow_by_a_window<R: WindowRule>(bench: &mut Bench<R>, path: usize) -> f64 {
    let cwnd = bench.controller.cwnd(path);
    let part = cwnd as u64 / 2;
    bench.acked(path, part, cwnd, None);
    assert_eq!(bench.controller.cwnd(path), cwnd, "not yet");
    bench.acked(path, cwnd as u64 - part, cwnd, None);
    bench.controller.cwnd(path) - cwnd
}

#[test]
fn iw_2() {
    let (input, output) = vector("iw.2");
    for (paths, window) in numbers(&input["paths"]).into_iter().zip(numbers(&output["iw"])) {
        assert_near(InitialWindow::Shared(paths as u32).bytes(number(&input["mtu"])), window);
    }
}

#[test]
fn renosp_1_in_slow_start() {
    let (input, output) = vector("renosp.1");
    let mut bench = Bench::new(RenoSp::default(), mss(&input), &[(number(&input["c"]), number(&input["s"]), 0.1)]);
    bench.acked(0, input["acked"].as_u64().unwrap(), number(&input["outstanding_before"]), None);
    assert_near(bench.controller.cwnd(0), number(&output["c_pba"][0]));
}

#[test]
fn renosp_2_in_congestion_avoidance() {
    let (input, output) = vector("renosp.2");
    let c = number(&input["c"]);
    let mut bench = Bench::new(RenoSp::default(), mss(&input), &[(c, number(&input["s"]), 0.1)]);
    bench.acked(0, input["pba"].as_u64().unwrap(), c, None);
    assert_near(bench.controller.cwnd(0), c);
    bench.acked(0, input["acked"].as_u64().unwrap(), number(&input["outstanding_before"]), None);
    let c = number(&output["c_pba"][0]);
    assert_near(bench.controller.cwnd(0), c);
    // The counter is as the vector says: one byte less than the rest of the window adds nothing yet.
    bench.acked(0, (c - number(&output["c_pba"][1])) as u64 - 1, c, None);
    assert_near(bench.controller.cwnd(0), c);
    bench.acked(0, 1, c, None);
    assert_near(bench.controller.cwnd(0), c + number(&input["mss"]));
}

#[test]
fn renosp_3_losses() {
    let (input, output) = vector("renosp.3");
    for (c, cause, result) in [
        (number(&input["c"]), Cause::Loss, &output["fast"]),
        (number(&input["c"]), Cause::Timeout, &output["timer"]),
        (7000.0, Cause::Loss, &output["small_fast"]),
    ] {
        let mut bench = Bench::new(RenoSp::default(), mss(&input), &[(c, c, 0.1)]);
        assert!(bench.congestion(0, cause));
        assert_near(bench.controller.ssthresh(0), number(&result[0]));
        assert_near(bench.controller.cwnd(0), number(&result[1]));
    }
}

#[test]
fn rp1_1() {
    let (input, output) = vector("rp1.1");
    let paths: Vec<_> = numbers(&input["c"]).into_iter().zip(numbers(&input["s"])).map(|(c, s)| (c, s, 0.1)).collect();
    let new = || Bench::new(Rp1::default(), mss(&input), &paths);
    let path = input["path"].as_u64().unwrap() as usize;
    assert_near(grow_by_a_window(&mut new(), path), number(&output["inc"][1]));
    // In slow start a packet adds the same share. Shares go by thresholds, whatever the windows are.
    let mut bench = new();
    bench.controller.set_cwnd(path, 20_000.0);
    assert_near(bench.grow(path), number(&output["inc"][0]));
    for (path, ssthresh) in numbers(&output["fast_ssthresh"]).into_iter().enumerate() {
        let mut bench = new();
        bench.congestion(path, Cause::Loss);
        assert_near(bench.controller.ssthresh(path), ssthresh);
        assert_near(bench.controller.cwnd(path), ssthresh);
    }
}

#[test]
fn rp2_1() {
    let (input, output) = vector("rp2.1");
    let mut bench = avoidance(Rp2::default(), mss(&input), &input);
    assert_near(bench.controller.rule().share(0, bench.controller.group(bench.now)), number(&output["i_hat"]));
    assert_near(grow_by_a_window(&mut bench, 0), number(&output["inc_ca"]));
    let mut bench = avoidance(Rp2::default(), mss(&input), &input);
    assert_near(grow_by_a_window(&mut bench, 1), number(&output["other_path_inc_ca"]));
    let mut bench = avoidance(Rp2::default(), mss(&input), &input);
    bench.controller.set_ssthresh(0, 1e9);
    assert_near(bench.grow(0), number(&output["inc_ss"]));
}

#[test]
fn rp2_2_losses_and_blocking() {
    let (input, output) = vector("rp2.2");
    for (path, factor) in numbers(&output["d_hat"]).into_iter().enumerate() {
        let result = &output[format!("path{path}")];
        let mut bench = avoidance(Rp2::default(), mss(&input), &input);
        bench.controller.set_rto(path, seconds(0.3));
        assert_near(bench.controller.rule().decrease_factor(path, bench.controller.group(bench.now)), factor);
        bench.congestion(path, Cause::Loss);
        assert_near(bench.controller.ssthresh(path), number(&result["ssthresh"]));
        assert_near(bench.controller.cwnd(path), number(&result["cwnd"]));
        assert_eq!(bench.controller.blocked_until(path), bench.now + seconds(number(&result["block_s"])));

        // Not after timeouts, and not if blocking is off.
        let mut bench = avoidance(Rp2::default(), mss(&input), &input);
        bench.congestion(path, Cause::Timeout);
        assert_near(bench.controller.ssthresh(path), number(&result["ssthresh"]));
        assert_eq!(bench.controller.blocked_until(path), bench.now);
        let mut rule = Rp2::default();
        rule.blocking = false;
        let mut bench = avoidance(rule, mss(&input), &input);
        bench.congestion(path, Cause::Loss);
        assert_eq!(bench.controller.blocked_until(path), bench.now);
    }
}

#[test]
fn rp2_3_unequal_round_trips() {
    let (input, output) = vector("rp2.3");
    let bench = avoidance(Rp2::default(), mss(&input), &input);
    let (rule, group) = (bench.controller.rule(), bench.controller.group(bench.now));
    for path in 0..2 {
        assert_near(rule.share(path, group), number(&output["i_hat"][path]));
        assert_near(rule.decrease_factor(path, group), number(&output["d_hat"][path]));
    }
}

#[test]
fn lia_1_in_bytes() {
    let (input, output) = vector("lia.1");
    let mut bench = avoidance(LiaByte::default(), mss(&input), &input);
    assert_near(alpha(bench.controller.group(bench.now)), number(&output["alpha"]));
    for path in 0..2 {
        let mut bench = avoidance(LiaByte::default(), mss(&input), &input);
        assert_near(grow_by_a_window(&mut bench, path), number(&output["inc_ca"][path]));
    }
    bench.controller.set_ssthresh(0, 1e9);
    assert_near(bench.grow(0), number(&output["inc_ss_path0"]));
    let mut rule = LiaByte::default();
    rule.coupled_slow_start = false;
    let mut bench = avoidance(rule, mss(&input), &input);
    bench.controller.set_ssthresh(0, 1e9);
    assert_near(bench.grow(0), number(&input["mss"]));
}

#[test]
fn lia_2_alpha() {
    let (input, output) = vector("lia.2");
    let bench = avoidance(Lia, 1452, &input);
    assert_near(alpha(bench.controller.group(bench.now)), number(&output["alpha"]));
}

/// What the paper prints, with bytes and packets mixed, is MSS times α (ALGORITHMS §13 A2).
#[test]
fn lia_3_the_slip_of_units() {
    let (input, output) = vector("lia.3");
    let (c, rtt) = (numbers(&input["c"]), numbers(&input["rtt"]));
    let mss = numbers(&input["mss"]);
    let best = (0..2).map(|i| c[i] / mss[i] / (rtt[i] * rtt[i])).fold(0.0, f64::max);
    let rates: f64 = (0..2).map(|i| c[i] / mss[i] / rtt[i]).sum();
    let printed = c.iter().sum::<f64>() * best / (rates * rates);
    assert_near(printed, number(&output["printed_a_hat"]));
    let bench = avoidance(LiaByte::default(), 1452, &input);
    let alpha = alpha(bench.controller.group(bench.now));
    assert_near(printed / alpha, number(&output["ratio_to_alpha"]));
}

#[test]
fn lia_4_losses() {
    let (input, output) = vector("lia.4");
    for (path, c) in numbers(&input["c"]).into_iter().enumerate() {
        let mut bench = Bench::new(LiaByte::default(), mss(&input), &[(c, c, 0.1)]);
        bench.congestion(0, Cause::Loss);
        assert_near(bench.controller.ssthresh(0), number(&output["fast"][path][0]));
        assert_near(bench.controller.cwnd(0), number(&output["fast"][path][1]));
        if path == 0 {
            let mut bench = Bench::new(LiaByte::default(), mss(&input), &[(c, c, 0.1)]);
            bench.congestion(0, Cause::Timeout);
            assert_near(bench.controller.ssthresh(0), number(&output["timer"][0]));
            assert_near(bench.controller.cwnd(0), number(&output["timer"][1]));
        }
    }
}

#[test]
fn lia_5_rfc_6356() {
    let (input, output) = vector("lia.5");
    for (path, more) in numbers(&output["per_ack_inc"]).into_iter().enumerate() {
        assert_near(avoidance(Lia, mss(&input), &input).grow(path), more);
    }
}

#[test]
fn olia_1_and_2() {
    for id in ["olia.1", "olia.2"] {
        let (input, output) = vector(id);
        for (path, more) in numbers(&output["inc_per_ack"]).into_iter().enumerate() {
            let mut bench = packets(Olia::default(), &input);
            // What was acknowledged since the last loss, with no window in use.
            for (path, packets) in numbers(&input["l"]).into_iter().enumerate() {
                bench.acked(path, packets as u64 * 1000, 0.0, None);
            }
            assert_near(bench.controller.rule().per_packet(path, bench.controller.group(bench.now)), more);
            let grown = bench.grow(path) / 1e3;
            assert!((grown - more).abs() < 1e-9, "{grown} is not {more}");
        }
    }
}

#[test]
fn balia_1() {
    let (input, output) = vector("balia.1");
    for (path, w) in numbers(&input["w"]).into_iter().enumerate() {
        let mut bench = packets(Balia, &input);
        assert!((bench.grow(path) / 1e3 - number(&output["inc_per_ack"][path])).abs() < 1e-9);
        let mut bench = packets(Balia, &input);
        bench.congestion(path, Cause::Loss);
        assert_near(w - bench.controller.cwnd(path) / 1e3, number(&output["dec"][path]));
    }
}

#[test]
fn balia_2_with_one_path() {
    let (input, output) = vector("balia.2");
    let mut bench = packets(Balia, &input);
    assert!((bench.grow(0) / 1e3 - number(&output["inc_per_ack"])).abs() < 1e-9);
    let mut bench = packets(Balia, &input);
    bench.congestion(0, Cause::Loss);
    assert_near(number(&input["w"][0]) - bench.controller.cwnd(0) / 1e3, number(&output["dec"]));
}

#[test]
fn ewtcp_1() {
    let (input, output) = vector("ewtcp.1");
    let w = number(&input["w"]) * 1e3;
    let paths = vec![(w, w, 0.1); input["n_paths"].as_u64().unwrap() as usize];
    assert!((Bench::new(Ewtcp, 1000, &paths).grow(2) / 1e3 - number(&output["inc_per_ack"])).abs() < 1e-9);
    let mut bench = Bench::new(Ewtcp, 1000, &paths);
    bench.congestion(2, Cause::Loss);
    assert_near(w - bench.controller.cwnd(2), number(&output["dec"]) * 1e3);
}

#[test]
fn coupled_1() {
    let (input, output) = vector("coupled.1");
    for (path, w) in numbers(&output["w_after_loss"]).into_iter().enumerate() {
        assert!((packets(Coupled, &input).grow(path) / 1e3 - number(&output["inc_per_ack"])).abs() < 1e-9);
        let mut bench = packets(Coupled, &input);
        bench.congestion(path, Cause::Loss);
        assert_near(bench.controller.cwnd(path), w * 1e3);
    }
}

#[test]
fn wvegas_1_and_2() {
    for id in ["wvegas.1", "wvegas.2"] {
        let (input, output) = vector(id);
        let (w, base, rtt) = (numbers(&input["cwnd"]), numbers(&input["base"]), numbers(&input["rtt"]));
        let path = input["path"].as_u64().unwrap() as usize;
        let other = 1 - path;
        let paths: Vec<_> = (0..2).map(|i| (w[i] * 1e3, 2e3, base[i])).collect();
        let mut bench = Bench::new(Wvegas::default(), 1000, &paths);
        // A round of the other path makes its rate known; it keeps fewer packets in the queue than any target.
        bench.round(other, rtt[other], 5, true);
        // A round with few packets makes the lowest queueing delay known and leaves the target alone.
        bench.controller.set_cwnd(path, 10e3);
        bench.round(path, base[path] + number(&input["queue_delay"]), 5, true);
        assert_near(bench.controller.rule().queue_delay(path), number(&input["queue_delay"]));
        assert_near(bench.controller.rule().target(path), number(&input["alpha"][path]));
        bench.controller.set_cwnd(path, w[path] * 1e3);
        bench.round(path, rtt[path], 5, true);
        assert!((bench.controller.cwnd(path) / 1e3 - number(&output["cwnd"])).abs() < 1e-9);
        assert_near(bench.controller.rule().target(path), number(&output["alpha"]));
        assert!((bench.controller.rule().queue_delay(path) - number(&output["queue_delay"])).abs() < 1e-9);
    }
}

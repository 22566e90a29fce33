//! The check vectors of the schedulers, computed by an independent program (`vectors/algorithms`), and what must hold for
//! any paths.

use clock::{Duration, Instant};
use proptest::prelude::*;
use scheduler::{
    Blest, Daps, Decision, Ecf, FastestPathFirst, LowestRtt, Otias, PacketMeta, PathId, PathScheduler, PathView,
    Scheduler, Sttf, Weighted,
};
use serde_json::Value;

fn vector(id: &str) -> (Value, Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/algorithms/vectors.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let vector = all["vectors"].as_array().unwrap().iter().find(|v| v["id"] == id).unwrap();
    (vector["input"].clone(), vector["output"].clone())
}

fn path(id: usize, delay: &Value, rate: &Value) -> PathView {
    PathView {
        id: PathId(id as u16),
        open: true,
        delay: Duration::from_secs_f64(delay.as_f64().unwrap()),
        rate: rate.as_f64().unwrap() as u64,
        ..PathView::default()
    }
}

fn meta(len: usize) -> PacketMeta {
    PacketMeta { len, ..PacketMeta::default() }
}

/// A path by its windows: `srtt` in seconds, the rest in packets.
fn windows(id: u16, srtt: f64, cwnd: u64, in_flight: u64) -> PathView {
    PathView {
        id: PathId(id),
        open: in_flight < cwnd,
        srtt: Duration::from_secs_f64(srtt),
        cwnd,
        in_flight,
        ssthresh: u64::MAX,
        ..PathView::default()
    }
}

fn f(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn u(value: &Value) -> u64 {
    value.as_f64().unwrap() as u64
}

/// Chooses and counts the packet; the path's index and when the packet arrives.
fn send(fpf: &mut FastestPathFirst, paths: &mut [PathView], len: usize, now: Instant) -> (usize, Instant) {
    let Decision::Send(id) = fpf.select(&meta(len), paths, now) else { panic!("blocked") };
    let index = paths.iter().position(|path| path.id == id).unwrap();
    let path = &mut paths[index];
    path.free_at = path.free_at.max(now) + Duration::of_transmission(len as u64, path.rate);
    (index, path.free_at + path.delay)
}

#[test]
fn fpf_1() {
    let (input, output) = vector("fpf.1");
    let specs = input["paths"].as_array().unwrap();
    let mut paths: Vec<_> = specs.iter().enumerate().map(|(i, p)| path(i, &p["D"], &p["B"])).collect();
    let mut fpf = FastestPathFirst::default();
    for expected in output["path_eta"].as_array().unwrap() {
        let (index, eta) = send(&mut fpf, &mut paths, input["S"].as_u64().unwrap() as usize, Instant::ZERO);
        assert_eq!(index as u64, expected[0].as_u64().unwrap());
        assert!((eta.as_secs_f64() - expected[1].as_f64().unwrap()).abs() < 1e-9);
    }
}

#[test]
fn fpf_2() {
    let (input, output) = vector("fpf.2");
    let mut paths: Vec<_> = (0..2).map(|i| path(i, &input["D"][i], &input["B"][i])).collect();
    let mut fpf = FastestPathFirst::default();
    let chosen: Vec<_> = (0..input["n"].as_u64().unwrap())
        .map(|_| send(&mut fpf, &mut paths, input["S"].as_u64().unwrap() as usize, Instant::ZERO).0)
        .collect();
    let first = chosen.iter().position(|index| *index == 1).unwrap();
    assert_eq!(first as u64, output["first_packet_on_path1"].as_u64().unwrap());
}

/// One path, and when it is free as its sender sees it: a propagation delay earlier than at the bottleneck.
#[test]
fn edpf_1() {
    let (input, output) = vector("edpf.1");
    let view = PathView {
        free_at: Instant::ZERO + Duration::from_secs_f64(f(&input["A"]) - f(&input["D"])),
        ..path(0, &input["D"], &input["B"])
    };
    let (_, eta) = send(&mut FastestPathFirst::default(), &mut [view], u(&input["L"]) as usize, Instant::ZERO);
    assert!((eta.as_secs_f64() - f(&output["eta"])).abs() < 1e-9);
}

#[test]
fn lrtt_1() {
    let (input, output) = vector("lrtt.1");
    for (flights, choice) in input["inflight"].as_array().unwrap().iter().zip(output["choice"].as_array().unwrap()) {
        let paths: Vec<_> =
            (0..2).map(|i| windows(i as u16, f(&input["srtt"][i]), u(&input["cwnd"][i]), u(&flights[i]))).collect();
        let expected = choice.as_u64().map_or(Decision::Blocked, |path| Decision::Send(PathId(path as u16)));
        assert_eq!(LowestRtt.select(&meta(1500), &paths, Instant::ZERO), expected);
    }
}

#[test]
fn wrr_1() {
    let (input, output) = vector("wrr.1");
    let weights = input["weights"].as_array().unwrap();
    let paths: Vec<_> = weights
        .iter()
        .enumerate()
        .map(|(i, weight)| PathView { id: PathId(i as u16), open: true, rate: u(weight), ..PathView::default() })
        .collect();
    let mut weighted = Weighted::default();
    for expected in output["path"].as_array().unwrap() {
        let expected = Decision::Send(PathId(u(expected) as u16));
        assert_eq!(weighted.select(&meta(1500), &paths, Instant::ZERO), expected);
    }
}

#[test]
fn blest_1_and_2() {
    for id in ["blest.1", "blest.2"] {
        let (input, output) = vector(id);
        let cwnd = u(&input["cwnd_fast"]);
        let fast = windows(0, f(&input["rtt_fast"]), cwnd, cwnd);
        let slow = windows(1, f(&input["rtt_slow"]), 100, u(&input["inflight_slow"]));
        let mut blest = Blest::default();
        assert_eq!(blest.lambda(), f(&input["lam"]));
        let packet = PacketMeta { len: u(&input["mss"]) as usize, unscheduled: 1, window: u(&input["send_window"]) };
        let expected =
            if output["wait_for_fast"].as_bool().unwrap() { Decision::Wait } else { Decision::Send(PathId(1)) };
        assert_eq!(blest.select(&packet, &[fast, slow], Instant::ZERO), expected, "{id}");
    }
}

/// ALGORITHMS §7: up by 0.04 after a round trip in which the window was the limit, else down by 0.01, from 1 to 1.3.
#[test]
fn blest_corrects_its_estimate() {
    let mut blest = Blest::default();
    let paths = [windows(0, 0.02, 10, 10), windows(1, 0.1, 100, 5)];
    let mut now = Instant::ZERO;
    let mut step = |limited: bool| {
        now += Duration::from_millis(20);
        if limited {
            blest.on_window_limited(now);
        }
        blest.select(&meta(1400), &paths, now);
        blest.lambda()
    };
    assert!((step(true) - 1.04).abs() < 1e-12);
    assert!((step(true) - 1.08).abs() < 1e-12);
    assert!((step(false) - 1.07).abs() < 1e-12);
    assert_eq!((0..20).map(|_| step(true)).last(), Some(1.3));
    assert_eq!((0..50).map(|_| step(false)).last(), Some(1.0));
}

#[test]
fn ecf_1_to_3() {
    for id in ["ecf.1", "ecf.2", "ecf.3"] {
        let (input, output) = vector(id);
        let several = input["waiting"].is_array();
        for case in 0..if several { 2 } else { 1 } {
            let waiting = if several { &input["waiting"][case] } else { &input["waiting"] }.as_bool().unwrap();
            let result = if several { &output["r"][case] } else { &output["r"] };
            let path = |i: usize, full: bool| {
                let cwnd = u(&input["cwnd"][i]);
                let rttvar = Duration::from_secs_f64(f(&input["sigma"][i]));
                PathView { rttvar, ..windows(i as u16, f(&input["rtt"][i]), cwnd, if full { cwnd } else { 0 }) }
            };
            let mut ecf = Ecf::new(waiting);
            let packet = PacketMeta { unscheduled: u(&input["k"]), ..meta(1500) };
            let decision = ecf.select(&packet, &[path(0, true), path(1, false)], Instant::ZERO);
            let expected = if result[0] == "wait_fast" { Decision::Wait } else { Decision::Send(PathId(1)) };
            assert_eq!((decision, ecf.is_waiting()), (expected, result[1].as_bool().unwrap()), "{id}");
        }
    }
}

#[test]
fn sttf_1() {
    let (input, output) = vector("sttf.1");
    for case in 0..3 {
        let view = PathView {
            queued: u(&input["queued"][case]),
            ssthresh: u(&input["ssthresh"][case]),
            ..windows(0, f(&input["rtt"]), u(&input["cwnd"]), u(&input["inflight"][case]))
        };
        assert!((Sttf::transfer_time(&view).as_secs_f64() - f(&output["tt"][case])).abs() < 1e-9);
    }
}

#[test]
fn otias_1() {
    let (input, output) = vector("otias.1");
    for case in 0..3 {
        let view = PathView {
            queued: u(&input["queued"][case]),
            ..windows(0, f(&input["srtt"][case]), u(&input["cwnd"][case]), u(&input["inflight"][case]))
        };
        assert!((Otias::transfer_time(&view).as_secs_f64() - f(&output["T"][case])).abs() < 1e-9);
    }
}

#[test]
fn daps_1() {
    let (input, output) = vector("daps.1");
    let paths: Vec<_> = (0..2).map(|i| windows(i as u16, 2.0 * f(&input["owd"][i]), u(&input["cwnd"][i]), 0)).collect();
    let mut daps = Daps::default();
    for expected in output["path_by_segment"].as_array().unwrap() {
        let expected = Decision::Send(PathId(u(expected) as u16));
        assert_eq!(daps.select(&meta(1500), &paths, Instant::ZERO), expected);
    }
}

#[test]
fn round_robin_takes_turns_and_skips_what_is_closed() {
    let mut scheduler = "round-robin".parse::<Scheduler>().unwrap();
    let mut paths: Vec<_> = (0..3).map(|i| windows(i, 0.1, 10, 0)).collect();
    let mut take = |paths: &[PathView], n: usize| -> Vec<Decision> {
        (0..n).map(|_| scheduler.select(&meta(1500), paths, Instant::ZERO)).collect()
    };
    let on = |ids: &[u16]| ids.iter().map(|id| Decision::Send(PathId(*id))).collect::<Vec<_>>();
    assert_eq!(take(&paths, 4), on(&[0, 1, 2, 0]));
    paths[1].open = false;
    assert_eq!(take(&paths, 3), on(&[2, 0, 2]));
}

proptest! {
    /// No scheduler names a path that it was not shown, or sends on one that is not open. All but those that may wait by
    /// design send whenever a path is open, and when only one path is there and open, all do.
    #[test]
    fn decisions_are_possible(
        name in prop::sample::select(Scheduler::NAMES.to_vec()),
        specs in prop::collection::vec((any::<bool>(), 1u64..300, 1u64..50, 0u64..60, 0u64..40, 1u64..1_000_000), 0..5),
        window in 0u64..1_000_000,
        unscheduled in 1u64..1000,
    ) {
        let mut scheduler = name.parse::<Scheduler>().unwrap();
        let mut paths: Vec<_> = specs.iter().enumerate().map(|(i, (open, srtt, cwnd, in_flight, queued, rate))| PathView {
            open: *open, rate: *rate, queued: *queued, delay: Duration::from_millis(*srtt / 2), ssthresh: 30,
            ..windows(i as u16, *srtt as f64 / 1e3, *cwnd, *in_flight)
        }).collect();
        let packet = PacketMeta { len: 1500, unscheduled, window };
        for _ in 0..20 {
            let any = paths.iter().any(|path| path.open);
            match scheduler.select(&packet, &paths, Instant::ZERO) {
                Decision::Send(id) => prop_assert!(paths.iter().any(|path| path.id == id && path.open)),
                Decision::Enqueue(id) => {
                    prop_assert!(["sttf", "otias", "daps"].contains(&name));
                    prop_assert!(paths.iter().any(|path| path.id == id && !path.open));
                    for path in paths.iter_mut().filter(|path| path.id == id) {
                        path.queued += 1;
                    }
                }
                Decision::Wait => {
                    prop_assert!(any && ["blest", "ecf"].contains(&name));
                    // It waits for a path that is there and full.
                    prop_assert!(paths.iter().any(|path| !path.open));
                }
                _ => prop_assert!(!any),
            }
        }
        if let Some(open) = paths.iter().find(|path| path.open) {
            prop_assert_eq!(scheduler.select(&packet, &[*open], Instant::ZERO), Decision::Send(open.id));
        }
    }

    /// The definition itself: no other open path would have delivered the packet earlier. And for packets of one size
    /// arrivals are then in order.
    #[test]
    fn no_other_path_is_faster(
        specs in prop::collection::vec((0u64..200, 100_000u64..1_000_000_000), 1..6),
        gaps in prop::collection::vec(0u64..20_000_000, 1..100),
        len in 40usize..1500,
    ) {
        let mut paths: Vec<_> = specs.iter().enumerate().map(|(i, (delay, rate))| PathView {
            id: PathId(i as u16), open: true, delay: Duration::from_millis(*delay), rate: *rate, ..PathView::default()
        }).collect();
        let mut fpf = FastestPathFirst::default();
        let mut now = Instant::ZERO;
        let mut latest = Instant::ZERO;
        for gap in gaps {
            now += Duration::from_nanos(gap);
            let before = paths.clone();
            let (_, eta) = send(&mut fpf, &mut paths, len, now);
            for other in before {
                let alternative = other.free_at.max(now).as_nanos() + other.delay.as_nanos()
                    + (len as u64 * 8_000_000_000).div_ceil(other.rate);
                prop_assert!(eta.as_nanos() <= alternative);
            }
            prop_assert!(eta >= latest);
            latest = eta;
        }
    }
}

/// What a full buffer adds to the round-trip time of those behind it: that of its transmission, of which forecasts are made.
#[test]
fn wedge_1_a_full_buffer_takes_long_to_drain() {
    let (input, output) = vector("wedge.1");
    let rate = (input["drain_mbps"].as_f64().unwrap() * 1e6) as u64;
    let delay = Duration::of_transmission(input["rwin_bytes"].as_u64().unwrap(), rate);
    let expected = output["max_queue_delay_s"].as_f64().unwrap();
    assert!((delay.as_secs_f64() - expected).abs() < 1e-9, "{delay}");
}

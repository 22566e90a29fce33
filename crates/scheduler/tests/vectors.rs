//! The check vectors `fpf.*`, computed by an independent program (`vectors/algorithms`), and what must hold for any
//! paths.

use clock::{Duration, Instant};
use proptest::prelude::*;
use scheduler::{Decision, FastestPathFirst, PacketMeta, PathId, PathScheduler, PathView};
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
        free_at: Instant::ZERO,
    }
}

/// Chooses and counts the packet; the path's index and when the packet arrives.
fn send(fpf: &mut FastestPathFirst, paths: &mut [PathView], len: usize, now: Instant) -> (usize, Instant) {
    let Decision::Send(id) = fpf.select(&PacketMeta { len }, paths, now) else { panic!("blocked") };
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

proptest! {
    /// The definition itself: no other open path would have delivered the packet earlier. And for packets of one size
    /// arrivals are then in order.
    #[test]
    fn no_other_path_is_faster(
        specs in prop::collection::vec((0u64..200, 100_000u64..1_000_000_000), 1..6),
        gaps in prop::collection::vec(0u64..20_000_000, 1..100),
        len in 40usize..1500,
    ) {
        let mut paths: Vec<_> = specs.iter().enumerate().map(|(i, (delay, rate))| PathView {
            id: PathId(i as u16), open: true, delay: Duration::from_millis(*delay), rate: *rate, free_at: Instant::ZERO,
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

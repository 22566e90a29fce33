//! Every check vector is somebody's test.

use std::path::Path;

/// The vectors of this room, by the part of their names before the dot.
const OURS: [&str; 19] = [
    "iw", "reno", "renosp", "rp1", "rp2", "lia", "olia", "balia", "ewtcp", "coupled", "vegas", "wvegas", "cubic",
    "cdg", "hd", "ctcp", "daimd", "mhip2", "eifel",
];

/// Of [`OURS`], but the part of another room.
const NOT_OURS: [&str; 1] = ["reno.4"];

/// Vectors of rooms that do not have them yet. A line goes when its room has the test.
const PENDING: &[&str] = &[
    "rto.1",
    "edpf.1",
    "mark.1",
    "mhip.ff",
    "mhip.bdp",
    "lrtt.1",
    "blest.1",
    "blest.2",
    "ecf.1",
    "ecf.2",
    "ecf.3",
    "sttf.1",
    "otias.1",
    "daps.1",
    "sfr.1",
    "bufsplit.1",
    "mhip.dup",
    "rbuf.1",
    "reseq.1",
    "cuc.1",
    "dac.1",
    "wrr.1",
    "wedge.1",
    "wedge.2",
    "wedge.3",
    "rack.1",
    "rack.2",
    "ncr.1",
    "rrtcp.1",
    "blanton.1",
    "red.1",
    "red.2",
    "fair.s1",
    "fair.s2",
    "fair.s3",
    "fair.s3b",
    "netfair.1",
    "netfair.2",
];

/// The text of every Rust file below `folder`.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("coverage.rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
    text
}

#[test]
fn every_vector_is_named_by_a_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read_to_string(here.join("../../vectors/algorithms/vectors.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&file).unwrap();
    let (ours, everyones) = (sources(here), sources(&here.join("..")));
    let ids = all["vectors"].as_array().unwrap().iter().map(|vector| vector["id"].as_str().unwrap());
    let missing: Vec<&str> = ids
        .filter(|id| {
            let is_ours = OURS.contains(&id.split('.').next().unwrap_or(id)) && !NOT_OURS.contains(id);
            let named = if is_ours { &ours } else { &everyones }.contains(&format!("\"{id}\""));
            !named && !PENDING.contains(id)
        })
        .collect();
    assert!(missing.is_empty(), "no test names the vectors {missing:?}");
}

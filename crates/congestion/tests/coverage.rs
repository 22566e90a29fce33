//! Every check vector is somebody's test.

use std::path::Path;

/// The vectors of this room, by the part of their names before the dot.
const OURS: [&str; 19] = [
    "iw", "reno", "renosp", "rp1", "rp2", "lia", "olia", "balia", "ewtcp", "coupled", "vegas", "wvegas", "cubic",
    "cdg", "hd", "ctcp", "daimd", "mhip2", "eifel",
];

/// Of [`OURS`], but the part of another room.
const NOT_OURS: [&str; 1] = ["reno.4"];

/// Vectors that no test reads, and why. An entry that a test names is stale.
const UNREAD: [(&str, &str); 3] = [
    ("red.1", "`vector_red_1` has its numbers"),
    ("red.2", "`vector_red_2` has its numbers"),
    ("wedge.2", "`vector_wedge_2` has its numbers"),
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
    let ids: Vec<&str> =
        all["vectors"].as_array().unwrap().iter().map(|vector| vector["id"].as_str().unwrap()).collect();
    let is_named = |id: &str| {
        let is_ours = OURS.contains(&id.split('.').next().unwrap_or(id)) && !NOT_OURS.contains(&id);
        if is_ours { &ours } else { &everyones }.contains(&format!("\"{id}\""))
    };
    let is_unread = |id: &str| UNREAD.iter().any(|(unread, _)| *unread == id);
    let missing: Vec<&&str> = ids.iter().filter(|id| !is_named(id) && !is_unread(id)).collect();
    assert!(missing.is_empty(), "no test names the vectors {missing:?}");
    for (id, why) in UNREAD {
        assert!(ids.contains(&id), "there is no vector {id} ({why})");
        assert!(!is_named(id), "a test names {id}: its exemption ({why}) is stale");
    }
}

//! `sinnet papers` as a person uses it.

use std::process::{Command, Output};

fn sinnet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sinnet")).arg("papers").args(arguments).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn list_run_and_report() {
    let list = sinnet(&["list"]);
    assert!(list.status.success());
    assert!(String::from_utf8_lossy(&list.stdout).contains("mhip-friendliness/final"));

    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("papers");
    let directory = out.to_str().unwrap();
    let run = sinnet(&["run", "secure-multipath/ideal-three-path", "--seeds", "2", "--json", "--out", directory]);
    assert!(run.status.success(), "{}", told(&run));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&run.stdout).unwrap();
    let row = rows.iter().find(|row| row["quantity"] == "goodput, single path 2").unwrap();
    assert_eq!(row["published"], 1.91);
    assert_eq!(row["accept"], serde_json::json!([1.85, 1.97]));
    assert_eq!((&row["seeds"], &row["ok"]), (&serde_json::json!(2), &serde_json::json!(true)));
    assert!(row["low"].as_f64().unwrap() <= row["mean"].as_f64().unwrap());
    assert!(row["high"].as_f64().unwrap() >= row["mean"].as_f64().unwrap());

    let report = sinnet(&["report", "secure-multipath/ideal-three-path", "--seeds", "2", "--out", directory]);
    assert!(report.status.success(), "{}", told(&report));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Three ideal paths") && page.contains("<svg"));
}

#[test]
fn what_cannot_be_run_is_a_sentence() {
    let unknown = sinnet(&["run", "mhip-friendliness/finale"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(told(&unknown).contains("did you mean \"mhip-friendliness/final\"?"), "{}", told(&unknown));

    // As many runs as are taken at all, on one processor: hours on any machine.
    let long = sinnet(&["run", "beyond/growth", "--seeds", "250000", "--threads", "1"]);
    assert_eq!(long.status.code(), Some(2));
    assert!(told(&long).contains("say --yes"), "{}", told(&long));
    let longer = sinnet(&["run", "secure-multipath/ideal-two-path", "--seeds", "1000000", "--yes"]);
    assert_eq!(longer.status.code(), Some(2));
    assert!(told(&longer).contains("take fewer seeds"), "{}", told(&longer));
    assert_eq!(sinnet(&["run", "--seeds", "0"]).status.code(), Some(2));
}

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

    // Nothing of this experiment is red, nor on the list.
    let check = sinnet(&["run", "secure-multipath/ideal-three-path", "--seeds", "2", "--check", "--out", directory]);
    assert!(check.status.success(), "{}", told(&check));

    let report = sinnet(&["report", "secure-multipath/ideal-three-path", "--seeds", "2", "--out", directory]);
    assert!(report.status.success(), "{}", told(&report));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Three ideal paths") && page.contains("<svg"));
}

/// One run cannot show that a goodput comes out right to a thousandth, but that the list is compared.
#[test]
fn what_is_red_has_to_be_on_the_list() {
    let out = tempfile::tempdir().unwrap();
    let directory = out.path().to_str().unwrap();
    // Nothing is measured of an experiment that is only computed.
    let computed = sinnet(&["run", "multipath-fairness/expected", "--seeds", "1", "--check", "--out", directory]);
    assert!(computed.status.success(), "{}", told(&computed));
    let known = sinnet(&["run", "secure-multipath/ideal-two-path", "--seeds", "1", "--check", "--out", directory]);
    assert!(known.status.success(), "{}", told(&known));
    assert!(String::from_utf8_lossy(&known.stdout).contains("RED  goodput, 10 + 10"));
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

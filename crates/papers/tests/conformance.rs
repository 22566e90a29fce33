//! `docs/papers.md`, the table of all that the papers say, held against the experiments and the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use papers::{Column, Reason};

/// Rows of each part of the table: what was found in the papers when they were read.
const ROWS: [(&str, usize); 6] = [("S1", 51), ("S2", 2), ("S3", 15), ("S2+S3", 26), ("S4", 35), ("S5", 26)];

struct Row {
    id: String,
    text: [String; 3],
    shown: Vec<String>,
    verdict: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("docs/papers.md")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("| S") && line.contains('-'));
    let rows = lines.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, place, published, measured, shown, verdict] = cells[..] else { return None };
        let shown = shown.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let text = [place, published, measured].map(str::to_owned);
        Some(Row { id: id.to_owned(), text, shown, verdict: verdict.to_owned() })
    });
    rows.collect()
}

/// Why rows of the papers' mHIP are red; the table says nothing of what ships.
fn reasons() -> Vec<Reason> {
    papers::reasons().unwrap().into_iter().filter(|reason| reason.column == Column::Measured).collect()
}

fn experiment(name: &str) -> Option<&'static papers::Experiment> {
    papers::all().find(|experiment| experiment.id == name)
}

/// What is wrong with a row, in a sentence.
fn wrong(row: &Row, reasons: &[Reason]) -> Option<String> {
    if row.text.iter().any(String::is_empty) {
        return Some("a cell is empty".to_owned());
    }
    if let Some(unknown) = row.shown.iter().find(|name| experiment(name).is_none() && !root().join(name).exists()) {
        return Some(format!("\"{unknown}\" is neither an experiment nor a file"));
    }
    // What no paper prints does not make a row red.
    let shows = |reason: &Reason| row.shown.contains(&reason.id) && !reason.id.starts_with("beyond/");
    let known = reasons.iter().any(shows);
    let red = reasons.iter().any(|reason| shows(reason) && !reason.red.is_empty());
    let sentence = match row.verdict.as_str() {
        "red" if !known => "no row of these experiments is on the list of reds",
        "as published" if red => "an experiment that shows it has reds",
        "as published" | "red" if row.shown.is_empty() => "nothing shows it",
        "open" if !row.shown.is_empty() => "what is not there cannot be shown",
        "as published" | "red" | "argued" | "open" => return None,
        _ => "this is no verdict",
    };
    Some(sentence.to_owned())
}

#[test]
fn the_table_and_the_experiments_agree() {
    let (rows, reasons) = (rows(), reasons());
    let mut counts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in &rows {
        let (paper, _) = row.id.rsplit_once('-').unwrap();
        assert!(counts.entry(paper).or_default().insert(&row.id), "{} is there twice", row.id);
    }
    let found: BTreeMap<&str, usize> = counts.into_iter().map(|(paper, rows)| (paper, rows.len())).collect();
    assert_eq!(found, BTreeMap::from(ROWS));
    let wrong: Vec<_> = rows.iter().filter_map(|row| Some(format!("{}: {}", row.id, wrong(row, &reasons)?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every experiment of a paper is in the table, and every one with reds is called red somewhere.
    for published in papers::published().unwrap() {
        assert!(rows.iter().any(|row| row.shown.contains(&published.id)), "{} is in no row", published.id);
        if reasons.iter().any(|reason| reason.id == published.id && !reason.red.is_empty()) {
            let told = rows.iter().any(|row| row.verdict == "red" && row.shown.contains(&published.id));
            assert!(told, "{} has reds and no row says so", published.id);
        }
    }
}

#[test]
fn what_does_not_agree_is_told() {
    let row = |shown: &str, verdict: &str| Row {
        id: "S1-1".to_owned(),
        text: ["I", "a", "b"].map(str::to_owned),
        shown: vec![shown.to_owned()],
        verdict: verdict.to_owned(),
    };
    let reasons = reasons();
    for (shown, verdict, told) in [
        ("mhip-friendliness/finale", "as published", "neither an experiment nor a file"),
        ("secure-multipath/ideal-three-path", "red", "no row of these"),
        ("secure-multipath/ideal-two-path", "as published", "has reds"),
        ("Cargo.toml", "open", "cannot be shown"),
        ("Cargo.toml", "fine", "no verdict"),
    ] {
        assert!(wrong(&row(shown, verdict), &reasons).is_some_and(|wrong| wrong.contains(told)), "{shown} {verdict}");
    }
    assert_eq!(wrong(&row("Cargo.toml", "as published"), &reasons), None);
}

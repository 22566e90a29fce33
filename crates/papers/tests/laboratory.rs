//! Running experiments, being stopped, and going on.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use campaign::Origin;
use papers::{Laboratory, Results, Row, Settings};

const ID: &str = "secure-multipath/ideal-three-path";
const SEEDS: NonZeroU32 = NonZeroU32::new(2).unwrap();

fn settings(out: &Path) -> Settings {
    Settings {
        seeds: SEEDS,
        threads: NonZeroUsize::new(2).unwrap(),
        out: out.to_owned(),
        origin: Origin { version: "test".into(), program: "test".into() },
    }
}

fn run(out: &Path, stop: bool) -> Results {
    let experiments = papers::find(&[ID.to_owned()]).unwrap();
    let laboratory = Laboratory::prepare(&experiments, SEEDS).unwrap();
    laboratory.run(&settings(out), &AtomicBool::new(stop), |_| {}).unwrap()
}

fn rows(results: &Results) -> Vec<Row> {
    let published = papers::published().unwrap();
    let experiment = papers::find(&[ID.to_owned()]).unwrap()[0];
    papers::evaluate(experiment, published.iter().find(|published| published.id == ID), results).0
}

#[test]
fn what_is_finished_is_kept_and_what_is_missing_is_red() {
    let out = tempfile::tempdir().unwrap();
    // Stopped before the first run: nothing is measured, and nothing of it is hidden.
    let nothing = rows(&run(out.path(), true));
    let published = papers::published().unwrap();
    let printed = &published.iter().find(|published| published.id == ID).unwrap().quantities;
    assert!(nothing.len() > printed.len());
    let judged = |row: &Row| row.accept.is_some() || row.relation;
    assert!(nothing.iter().all(|row| row.mean.is_none() && row.ok == judged(row).then_some(false)), "{nothing:?}");
    assert!(nothing.iter().filter(|row| judged(row)).count() > printed.len());

    let first = rows(&run(out.path(), false));
    assert!(first.iter().all(|row| row.relation || row.mean.is_some()));
    // A second start that may not simulate anything gives the same from what is kept.
    assert_eq!(serde_json::to_value(rows(&run(out.path(), true))).unwrap(), serde_json::to_value(&first).unwrap());

    // No more than the payload of 1250 of 1290 bytes at the link's rate; of an ideal path after 10 s not much less.
    for (name, rate) in [("single path 2", 2.0), ("single path 4", 4.0), ("single path 5", 5.0)] {
        let row = first.iter().find(|row| row.quantity.ends_with(name)).unwrap();
        let most = rate * 1250.0 / 1290.0;
        let mean = row.mean.unwrap();
        assert!(mean <= most && mean > 0.97 * most, "{name}: {mean} of {most}");
        assert_eq!((row.seeds, row.ok), (2, Some(true)));
    }
}

#[test]
fn names_that_fit_nothing_are_told() {
    let told = papers::find(&["secure-multipath/ideal-tree-path".to_owned()]).unwrap_err().to_string();
    assert!(told.contains("did you mean \"secure-multipath/ideal-three-path\"?"), "{told}");
    let group = papers::find(&["secure-multipath".to_owned(), ID.to_owned()]).unwrap();
    assert_eq!(group.len(), 3);
}

/// The work that is estimated grows with the seeds and does not depend on what is asked first.
#[test]
fn an_estimate_grows_with_the_seeds() {
    let experiments = papers::find(&[ID.to_owned()]).unwrap();
    let out = tempfile::tempdir().unwrap();
    let few = Laboratory::prepare(&experiments, SEEDS).unwrap();
    let many = Laboratory::prepare(&experiments, NonZeroU32::new(2000).unwrap()).unwrap();
    let (few, many) = (few.estimate(&settings(out.path())).unwrap(), many.estimate(&settings(out.path())).unwrap());
    // The same work a thousand times; the timed run varies with the machine's load.
    assert!(many > 50.0 * few, "{few} {many}");
}

/// Every scenario is one that the simulator takes, with the keys as written.
#[test]
fn every_scenario_is_one() {
    let experiments: Vec<_> = papers::all().collect();
    let laboratory = Laboratory::prepare(&experiments, NonZeroU32::MIN).unwrap();
    assert!(laboratory.runs() > 500);
}

/// What takes seconds of the papers' experiments, against the list of what is known to be red. `make papers` has the rest.
#[test]
fn what_is_red_is_known() {
    const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();
    let out = tempfile::tempdir().unwrap();
    let groups = ["secure-multipath", "mhip-friendliness", "daimd"].map(str::to_owned);
    let experiments = papers::find(&groups).unwrap();
    let laboratory = Laboratory::prepare(&experiments, THREE).unwrap();
    let settings = Settings { seeds: THREE, ..settings(out.path()) };
    let results = laboratory.run(&settings, &AtomicBool::new(false), |_| {}).unwrap();
    let published = papers::published().unwrap();
    let rows: Vec<Row> = experiments
        .iter()
        .flat_map(|one| papers::evaluate(one, published.iter().find(|published| published.id == one.id), &results).0)
        .collect();
    let differences = papers::differences(&rows, &papers::reasons().unwrap());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

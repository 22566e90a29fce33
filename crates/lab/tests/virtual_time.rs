//! The laboratory in virtual time. Oracles: what the links carry less the bytes of headers, SHA-256, and that a run can be replayed.

use lab::{Options, Progress, Report};

const TWO_PATHS: &str = include_str!("../../../scenarios/lab/two-paths.toml");
const THREE_PATHS: &str = include_str!("../../../scenarios/lab/three-paths.toml");
const CUT: &str = include_str!("../../../scenarios/lab/cut.toml");

fn run(text: &str) -> Report {
    let scenario = scenario::parse(text, "scenario.toml").expect("a scenario");
    let options = Options { directory: None, executable: "sinnet".into(), virtual_time: true, together: false };
    lab::run(&scenario, &options, &mut Progress::silent()).expect("a report")
}

#[test]
fn together_the_paths_carry_their_sum() {
    for (text, links) in [(TWO_PATHS, vec![8.0, 4.0]), (THREE_PATHS, vec![2.0, 4.0, 5.0])] {
        let report = run(text);
        assert!(report.virtual_time && report.sha256_equal, "{report:?}");
        assert_eq!(report.single_mbps.len(), links.len());
        for (single, link) in report.single_mbps.iter().zip(&links) {
            // Headers outside and inside of ESP take 9 % of full packets at most; slow start and its losses take the rest.
            assert!((0.7 * link..*link).contains(single), "{report:?}");
        }
        assert!(report.together_mbps < links.iter().sum(), "{report:?}");
        assert!(report.ratio.is_some_and(|ratio| ratio >= 0.9), "{report:?}");
    }
}

#[test]
fn a_cut_is_survived() {
    let report = run(CUT);
    assert!(report.disturbed && report.sha256_equal, "{report:?}");
    assert!((4.0..12.0).contains(&report.together_mbps), "{report:?}");
    assert!(report.longest_stall_ms > 0.0);
}

#[test]
fn a_seed_replays_a_run() {
    let short =
        TWO_PATHS.replace("duration = \"12s\"", "duration = \"3s\"").replace("queue =", "loss = 0.002\nqueue =");
    let other = short.replace("seed = 1", "seed = 2");
    assert_eq!(run(&short), run(&short));
    assert_ne!(run(&short).together_mbps.to_bits(), run(&other).together_mbps.to_bits());
}

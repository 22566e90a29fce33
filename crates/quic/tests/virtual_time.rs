//! QUIC in virtual time. Oracles: what links carry less the bytes of headers, the bytes of the file, and that a run can be replayed.

use lab::{Hosts, Options, Progress, Report};
use quic::Quic;

const TWO_PATHS: &str = include_str!("../../../scenarios/lab/two-paths.toml");

fn run(text: &str) -> Report {
    let scenario = scenario::parse(text, "scenario.toml").expect("a scenario");
    let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together: true };
    let guest = Quic::default();
    lab::run_with(&scenario, &options, Some(&guest), &mut Progress::silent()).expect("a report")
}

/// The two paths for some seconds, or in the open one of them.
fn timed(sinnet: bool) -> String {
    let text = TWO_PATHS.replace("duration = \"12s\"", "duration = \"8s\"\nwarm_up = \"2s\"");
    if sinnet { text } else { alone(&text) }
}

/// In the open over the first of two paths.
fn alone(text: &str) -> String {
    let text = text.replace("protocol = \"sinnet\"", "protocol = \"tcp\"");
    text.replace("paths = [[\"b\", \"r1\", \"a\"], [\"b\", \"r2\", \"a\"]]", "paths = [[\"b\", \"r1\", \"a\"]]")
}

#[test]
fn in_the_open_it_fills_a_link() {
    let report = run(&timed(false));
    assert!(report.sha256_equal, "{report:?}");
    assert_eq!(report.flows[0].congestion, "quic-cubic");
    // IPv4, UDP, QUIC's short header, its frame and its check value take 20 + 8 + 12 + 8 + 16 bytes at most, of 1200 and more.
    assert!((0.93 * 8.0..8.0).contains(&report.together_mbps), "{report:?}");
}

#[test]
fn inside_it_has_both_paths() {
    let report = run(&timed(true));
    assert!(report.sha256_equal, "{report:?}");
    assert!((8.5..12.0).contains(&report.together_mbps), "{report:?}");
}

#[test]
fn a_file_comes_to_its_end() {
    let report = run(&TWO_PATHS.replace("duration = \"12s\"", "duration = \"3s\""));
    assert!(report.sha256_equal && report.flows[0].complete == 1, "{report:?}");
    assert!((6.0..12.0).contains(&report.together_mbps), "{report:?}");
}

#[test]
fn a_seed_replays_a_run() {
    let short =
        timed(true).replace("duration = \"8s\"", "duration = \"4s\"").replace("queue =", "loss = 0.002\nqueue =");
    let other = short.replace("seed = 1", "seed = 2");
    assert_eq!(run(&short), run(&short));
    assert_ne!(run(&short).together_mbps.to_bits(), run(&other).together_mbps.to_bits());
}

/// It leaves slow start where it hears of the first packet too many, and then its window grows slowly: it is not to hear of one while
/// the windows of paths that lose a packet in fifty are still to be found.
#[test]
fn where_links_lose_at_random_it_has_most_of_them() {
    let lossy = include_str!("../../../scenarios/field/loss-2.toml").replace("50Mbit/s", "20Mbit/s");
    for seed in [3, 5] {
        let report = run(&lossy.replace("seed = 1", &format!("seed = {seed}")));
        assert!(report.together_mbps > 0.6 * 40.0, "seed {seed}: {report:?}");
    }
}

/// The same where packets overtake each other besides: what the links carry is 35 Mbit/s.
#[test]
fn where_links_lose_at_random_and_jitter_it_has_most_of_them() {
    let congested = include_str!("../../../scenarios/field/congested.toml");
    let of = |seed| run(&congested.replace("seed = 1", &format!("seed = {seed}"))).together_mbps;
    let mean = (5..=8).map(of).sum::<f64>() / 4.0;
    assert!(mean > 0.6 * 35.0, "{mean}");
}

/// Its window is too small for the distant path, and it fills the near one, whose queue brings the distant path no nearer. Headers leave
/// 1420 of 1480 bytes, where it has 1452 without Sinnet, and reports and heartbeats take half a percent at most.
#[test]
fn a_path_that_is_too_far_away_costs_nothing_when_the_near_one_has_a_queue() {
    let distant = include_str!("../../../scenarios/field/rtt-320.toml");
    let (near, both) = (run(&alone(distant)), run(distant));
    let least = (1420.0 / 1452.0 - 0.005) * near.together_mbps;
    assert!(both.sha256_equal && both.together_mbps >= least, "{} of {least}", both.together_mbps);
}

/// A path whose rate falls to a tenth keeps a long queue of what was sent before. Its window of 1.25 MB is to be where rates have risen.
/// Within 20 s the links offer 70, 52, 7 and 25 Mbit/s for 5 s each.
#[test]
fn where_rates_change_tenfold_it_has_nine_tenths_of_what_they_offer() {
    let changes = include_str!("../../../scenarios/field/rate-changes.toml").replace("65s", "45s");
    for seed in [1, 2] {
        let report = run(&changes.replace("seed = 1", &format!("seed = {seed}")));
        assert!(report.together_mbps >= 0.9 * 38.5, "seed {seed}: {report:?}");
    }
}

//! Friendliness over random networks: what bounds it, and going on from what is kept.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use campaign::Origin;
use clock::Duration;
use papers::friendliness::{How, Measurement, Outcome, Shared, lines};

fn measure(only: Option<Shared>, out: Option<&Path>, stop: bool) -> Vec<Outcome> {
    let senders = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    let measurement = Measurement {
        seed: 3,
        networks: 4,
        only,
        tested: senders(&["sinnet", "tcp:cubic"]),
        beside: senders(&["tcp:reno"]),
        inside: vec!["cubic".to_owned(), "bbr".to_owned()],
        rivals: 2,
        warm_up: Duration::from_secs(2),
        measured: Duration::from_secs(6),
        processing: "wander".to_owned(),
    };
    let how = How {
        threads: NonZeroUsize::MIN,
        out: out.map(Path::to_owned),
        origin: Origin { version: "test".into(), program: "test".into() },
    };
    measurement.run(&how, &AtomicBool::new(stop), |_| {}).unwrap()
}

/// The rate of the shared bottleneck is what all together get at most, and nearly that: none of its queues starve it.
#[test]
fn what_competes_shares_the_bottleneck() {
    let outcomes = measure(None, None, false);
    // Four networks, with each TCP inside and with a TCP in its place.
    assert_eq!(outcomes.len(), 12);
    for outcome in &outcomes {
        let (rate, _) = outcome.about.split_once(" Mbit/s").unwrap();
        let rate: f64 = rate.parse().unwrap();
        assert!(outcome.sum < 1.02 * rate && outcome.sum > 0.6 * rate, "{outcome:?}");
        // Of three the tested one has f/(f + 2), and Jain's index is at most that of equal rivals.
        let f = outcome.factor;
        assert!(outcome.jain <= (f + 2.0).powi(2) / (3.0 * (f * f + 2.0)) + 1e-9, "{outcome:?}");
    }
    assert_eq!(lines(&outcomes, false).len(), 3);
}

#[test]
fn what_is_finished_is_kept() {
    let out = tempfile::tempdir().unwrap();
    assert!(measure(Some(Shared::All), Some(out.path()), true).is_empty(), "stopped before the first run");
    let first = measure(Some(Shared::All), Some(out.path()), false);
    assert_eq!(first.len(), 6, "two of four networks");
    // A second start that may not simulate anything gives the same from what is kept.
    let second = measure(Some(Shared::All), Some(out.path()), true);
    assert_eq!(format!("{second:?}"), format!("{first:?}"));
}

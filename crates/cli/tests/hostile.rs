//! Attacks on real daemons, short: floods of forged packets at a pace that even a busy machine keeps, a local user who asks
//! and never reads, and SIGKILL of either side. The oracles are the kernels' TCP and the process's memory. How much 50,000
//! packets a second cost is for `tools/hostile`, on a quiet machine.
//!
//! Its main function takes the process into a user namespace before there are threads, which the usual harness cannot.

use std::io::Write as _;
use std::process::ExitCode;

use hostile::{Options, Outcome, Row};

/// Forged packets a second. A daemon that answered each with a public-key operation would be busy all the time.
const RATE: u64 = 1_000;
/// Of the goodput so much has to be left, percent; other tests run at the same time.
const KEPT: f64 = 50.0;
/// A machine on which not even the undisturbed download, of 50 Mbit/s, comes to this says nothing about the attack.
const TOO_BUSY: f64 = 20.0;
/// A transfer goes on after a restart within this time, in seconds; on a quiet machine within two.
const PATIENCE: f64 = 15.0;
/// What the daemon's memory may grow by, kB.
const GROWN: u64 = 16 << 10;

/// The floods, each with the counters of which one has to have seen it.
const FLOODS: [(&str, &[&str]); 4] = [
    ("notify", &["bad_signature", "over_budget"]),
    ("update", &["bad_mac"]),
    ("close", &["bad_mac"]),
    ("esp", &["bad_icv", "replayed"]),
];

fn main() -> ExitCode {
    if let Err(error) = lab::become_root() {
        say(&format!("not tried: {error}"));
        return ExitCode::SUCCESS;
    }
    let mut options = Options::default();
    options.sinnet = env!("CARGO_BIN_EXE_sinnet").into();
    (options.seconds, options.rate, options.restarts, options.patience) = (2.0, RATE, 4, PATIENCE);
    let more = ["deaf-client", "silent-clients", "restart", "restart-nat"];
    let names: Vec<&str> = FLOODS.iter().map(|(name, _)| *name).chain(more).collect();
    // Each has its own namespaces; most of the time is spent waiting.
    let threads: Vec<_> = names
        .into_iter()
        .map(|name| {
            let options = options.clone();
            (name, std::thread::spawn(move || hostile::attack(name, &options)))
        })
        .collect();
    let mut failed = false;
    for (name, thread) in threads {
        let wrong = match thread.join() {
            Ok(Ok(row)) => wrong_with(name, &row),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it panicked".to_owned()),
        };
        // Once more, alone: other tests may have had the processors.
        let wrong = wrong.and_then(|_| match hostile::attack(name, &options) {
            Ok(row) => wrong_with(name, &row),
            Err(error) => Some(error.to_string()),
        });
        match &wrong {
            Some(wrong) => say(&format!("{name}: FAILED: {wrong}")),
            None => say(&format!("{name}: ok")),
        }
        failed |= wrong.is_some();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What is not as it has to be, if anything is.
fn wrong_with(name: &str, row: &Row) -> Option<String> {
    if let Outcome::NotTried(why) = &row.outcome {
        return Some(format!("not tried: {why}"));
    }
    let counters = FLOODS.iter().find(|(flood, _)| *flood == name).map(|(_, counters)| *counters);
    if let (None, None, Outcome::Harmed(harm)) = (counters, row.kept_percent, &row.outcome) {
        return Some(format!("{harm}; {}", row.note));
    }
    let kept = row.kept_percent?;
    if row.quiet.is_some_and(|quiet| quiet.mbps < TOO_BUSY) {
        say(&format!("{name}: this machine is too busy"));
        return None;
    }
    let [before, after] = row.rss_kb.unwrap_or([0, u64::MAX]);
    let seen = counters.is_none_or(|counters| {
        counters.iter().any(|counter| row.counters.get(*counter).is_some_and(|count| *count > 100))
    });
    if kept < KEPT {
        Some(format!("only {kept:.0} % of the goodput is left: {row:?}"))
    } else if after > before + GROWN {
        Some(format!("the daemon's memory has grown from {before} to {after} kB"))
    } else if !seen {
        Some(format!("none of {counters:?} has counted the flood: {:?}", row.counters))
    } else {
        None
    }
}

fn say(text: &str) {
    // Where even that fails there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

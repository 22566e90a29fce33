//! Attacks on real daemons, short: floods at a pace that even a busy machine keeps and that took the tunnel away as long as each
//! packet of them cost a public-key operation, a local user who asks and never reads, and SIGKILL of either side. The oracles
//! are the kernels' TCP and the process's memory. What 50,000 packets a second do, and floods that are cheap to refuse, are
//! for `tools/hostile`, on a quiet machine.
//!
//! Its main function takes the process into a user namespace before there are threads, which the usual harness cannot.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hostile::{Options, Outcome, Row};

/// Forged packets a second. A daemon that checked a signature for each would be busy all the time.
const RATE: u64 = 1_000;
/// Of the goodput so much has to be left, percent; other tests run at the same time. With a signature checked for each packet
/// it was less than ten.
const KEPT: f64 = 50.0;
/// Where the undisturbed download, of 50 Mbit/s, does not come to this, nothing can be said about the attack.
const TOO_BUSY: f64 = 4.0;
/// A transfer goes on after a restart within this time, in seconds; on a quiet machine within two.
const PATIENCE: f64 = 15.0;
/// What the daemon's memory may grow by, kB.
const GROWN: u64 = 16 << 10;
/// How often what went wrong is tried again, alone, as long as it has not taken too long: other tests may have had the
/// processors.
const AGAIN: usize = 2;
const TOO_LONG: Duration = Duration::from_secs(50);
/// After this it has failed, whatever it waits for. What runs ends with the process.
const END: Duration = Duration::from_secs(90);

/// The floods, each with the counters that have to have seen it.
const FLOODS: [(&str, &[&str]); 3] = [
    ("notify", &["bad_signature", "over_budget", "over_share"]),
    ("update-replayed", &["replayed"]),
    ("close-replayed", &["replayed"]),
];
const OTHERS: [&str; 4] = ["deaf-client", "silent-clients", "restart", "restart-nat"];

fn main() -> ExitCode {
    if let Err(error) = lab::become_root() {
        testkit::skip(&error.to_string());
        return ExitCode::SUCCESS;
    }
    let begin = now();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Nothing is received where the end did not come in time.
        let _ = done.send(all(begin));
    });
    match ended.recv_timeout(END) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("FAILED: no end after {END:?}: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether all of them held.
fn all(begin: Instant) -> bool {
    let mut options = Options::default();
    options.sinnet = env!("CARGO_BIN_EXE_sinnet").into();
    (options.seconds, options.rate, options.restarts, options.patience) = (2.0, RATE, 2, PATIENCE);
    // Each has its own namespaces; most of the time is spent waiting.
    let names = FLOODS.iter().map(|(name, _)| *name).chain(OTHERS);
    let threads: Vec<_> = names
        .map(|name| {
            let options = options.clone();
            (name, std::thread::spawn(move || wrong_with(name, &options)))
        })
        .collect();
    let first: Vec<_> = threads
        .into_iter()
        .map(|(name, thread)| (name, thread.join().unwrap_or_else(|_| Some("it panicked".to_owned()))))
        .collect();
    let mut held = true;
    for (name, mut wrong) in first {
        for _ in 0..AGAIN {
            if let Some(why) = wrong.as_ref().filter(|_| begin.elapsed() < TOO_LONG) {
                say(&format!("{name}: once more: {why}"));
                wrong = wrong_with(name, &options);
            }
        }
        match &wrong {
            Some(wrong) => say(&format!("{name}: FAILED: {wrong}")),
            None => say(&format!("{name}: ok")),
        }
        held &= wrong.is_none();
    }
    held
}

/// What is not as it has to be, if anything is.
fn wrong_with(name: &str, options: &Options) -> Option<String> {
    match hostile::attack(name, options) {
        Ok(row) => judge(name, &row),
        Err(error) => Some(error.to_string()),
    }
}

fn judge(name: &str, row: &Row) -> Option<String> {
    if let Outcome::NotTried(why) = &row.outcome {
        return Some(format!("not tried: {why}"));
    }
    let (Some(kept), Some([before, after])) = (row.kept_percent, row.rss_kb) else {
        // It has no download that could be measured: it has judged itself.
        return match &row.outcome {
            Outcome::Held => None,
            outcome => Some(format!("{outcome:?}; {}", row.note)),
        };
    };
    let counters = FLOODS.iter().find(|(flood, _)| *flood == name).map(|(_, counters)| *counters);
    let count: i64 = counters.unwrap_or_default().iter().filter_map(|counter| row.counters.get(*counter)).sum();
    if !row.quiet.is_some_and(|quiet| quiet.mbps >= TOO_BUSY) {
        Some(format!("this machine is too busy: {row:?}"))
    } else if kept < KEPT {
        Some(format!("only {kept:.0} % of the goodput is left: {row:?}"))
    } else if after > before + GROWN {
        Some(format!("the daemon's memory has grown from {before} to {after} kB"))
    } else if counters.is_some() && count < 500 {
        Some(format!("the flood was counted {count} times only: {:?}", row.counters))
    } else {
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "attacks happen in real time")]
fn now() -> Instant {
    Instant::now()
}

fn say(text: &str) {
    // Where even that fails there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

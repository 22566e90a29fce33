//! Programs that tests call where they are installed.

use std::process::{Command, Stdio};

/// Says that a test is skipped for want of `what`.
///
/// # Panics
/// Where `SINNET_REQUIRE_TOOLS=1` forbids that, as in continuous integration: a suite that skips itself is green for nothing.
#[expect(clippy::print_stderr, reason = "whoever reads the test's output must know")]
pub fn skip(what: &str) {
    let required = std::env::var("SINNET_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "SINNET_REQUIRE_TOOLS=1 allows no skipped tests: {what}");
    eprintln!("skipped: {what}");
}

/// Whether a program is there and says so when called with these arguments; if not, the test is [skipped](skip).
///
/// # Panics
/// As [`skip`].
pub fn has(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        skip(&format!("`{program} {}` does not work here", arguments.join(" ")));
    }
    there
}

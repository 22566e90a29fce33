//! Any text as a scenario: it is read, or an error points into it; what is read can be read again with a key set anew. The
//! first line is what is set.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (assignment, text) = input.split_once('\n').unwrap_or(("", input));
    if let Err(error) = scenario::parse(text, "scenario.toml") {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(mut document) = scenario::Document::parse(text, "scenario.toml") {
        let _ = document.set(assignment);
        let _ = document.scenario();
        let _ = document.points();
    }
});

//! All integration tests in one program, so that they are linked once and wait side by side.

mod between_nats;
mod closed;
mod commands;
mod common;
mod dissectors;
mod fairness;
mod guests;
mod identities;
mod interfaces;
mod lab;
mod local_users;
mod manual;
mod mistakes;
mod names;
mod papers;
mod path_mtu;
mod programs;
mod rendezvous;
mod resolved;
mod roaming;
mod sim;
mod strangers;
mod trains;
mod two_hosts;
mod two_nats;

/// A file that no `all.rs` names would never run.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut parts = 0;
    for folder in std::fs::read_dir(crates).expect("the crates").map(|entry| entry.expect("a crate").path()) {
        let Ok(all) = std::fs::read_to_string(folder.join("tests/all.rs")) else { continue };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for file in std::fs::read_dir(folder.join("tests")).expect("tests").map(|entry| entry.expect("a file").path()) {
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
            if file.extension().is_some_and(|kind| kind == "rs") && name != "all" {
                let is_own = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
                let is_part = all.contains(&format!("\nmod {name};\n")) || is_own;
                assert!(is_part, "{} is not part of all.rs", file.display());
                parts += 1;
            }
        }
    }
    assert!(parts > 80, "{parts} files of tests");
}

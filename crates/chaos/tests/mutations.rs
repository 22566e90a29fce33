//! The scripts of `tools/mutations` put defects back into files of other crates: where such a file moves or changes, a script
//! must not silently change nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_mutation_changes_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scripts = fs::read_dir(root.join("crates/chaos/mutations")).unwrap();
    let mut count = 0;
    for script in scripts.map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&script).unwrap();
        let file = text.lines().find_map(|line| line.strip_prefix("# file:")).unwrap().trim();
        let before = fs::read(root.join(file)).unwrap_or_else(|error| panic!("{}: {file}: {error}", script.display()));
        let output = Command::new("sed").arg("-f").arg(&script).arg(root.join(file)).output().unwrap();
        assert!(output.status.success() && output.stdout != before, "{} changes nothing in {file}", script.display());
        count += 1;
    }
    assert_eq!(count, 5);
}

//! The manual against the program: pages that it makes, and commands that are printed with what they say.

use std::fs;
use std::path::Path;
use std::process::Command;

use campaign::SECTIONS;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).expect(name)
}

fn sinnet(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sinnet")).args(arguments).output().expect("the program");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    out.into_owned() + &error
}

#[test]
fn the_references_are_what_the_program_says() {
    for (topic, name) in [("algorithms", "rules.md"), ("results", "metrics.md")] {
        let said = sinnet(&["help", topic, "--markdown"]);
        assert!(said == page(name), "docs/{name} is old: sinnet help {topic} --markdown >docs/{name} makes it anew");
    }
}

#[test]
fn one_of_a_reference_is_told() {
    assert!(sinnet(&["help", "algorithms"]).contains("  fq_codel "));
    let told = sinnet(&["help", "algorithms", "olia"]);
    assert!(told.contains("Khalili") && told.contains("olia:ranking=l/rtt2"), "{told}");
    assert!(sinnet(&["help", "algorithms", "olai"]).contains("no algorithm is called olai: did you mean olia?"));
    let told = sinnet(&["help", "results", "jain"]);
    assert!(told.contains("(Σx)² / (n·Σx²)"), "{told}");
    assert!(sinnet(&["help", "results", "gooodput_mbps"]).contains("did you mean goodput_mbps?"));
    assert!(sinnet(&["help", "results"]).contains("rtt_p99_ms"));
}

/// The fields that the reference of metrics names as sources are there.
#[test]
fn sources_of_metrics_exist() {
    let results = include_str!("../../simulator/src/result.rs");
    let mut found = 0;
    for column in SECTIONS.iter().flat_map(|section| section.columns) {
        let Some((kind, field)) =
            column.source.split_once("::").filter(|(kind, _)| kind.starts_with(char::is_uppercase))
        else {
            continue;
        };
        let (_, rest) = results.split_once(&format!("pub struct {kind} {{")).expect(column.source);
        let (fields, _) = rest.split_once("\n}").expect(column.source);
        assert!(fields.contains(&format!("pub {field}: ")), "{}", column.source);
        found += 1;
    }
    assert!(found > 60, "{found}");
}

/// A fenced block: what stands after ```, and its lines.
struct Block {
    kind: String,
    /// The line before, which names the file that the block is.
    before: String,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut is_open, mut before) = (false, String::new());
    for line in text.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(_), true) => is_open = false,
            (Some(kind), false) => {
                is_open = true;
                blocks.push(Block { kind: kind.to_owned(), before: before.clone(), lines: Vec::new() });
            }
            (None, true) => blocks.last_mut().expect("a block").lines.push(line.to_owned()),
            (None, false) if !line.is_empty() => before = line.to_owned(),
            (None, false) => {}
        }
    }
    blocks
}

/// The name of the file that a block is, from "… `name.toml`:".
fn file(block: &Block) -> Option<&str> {
    block.before.strip_suffix("`:").and_then(|line| line.rsplit('`').next()).filter(|name| name.ends_with(".toml"))
}

/// Processor time is the one thing that is different each time; nobody sees spaces at the end.
fn steady(line: &str) -> &str {
    let line = line.trim_end();
    if line.contains(" of processor time") { line.split(" packets, ").next().unwrap_or(line) } else { line }
}

/// Files and commands of a page, one after the other in one directory: `$ command`, and below it all that it says.
fn run_as_printed(page: &str) -> usize {
    let directory = tempfile::tempdir().expect("a directory");
    let program = Path::new(env!("CARGO_BIN_EXE_sinnet")).parent().expect("its directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut ran = 0;
    for block in blocks(page) {
        if let (Some(name), "toml") = (file(&block), block.kind.as_str()) {
            fs::write(directory.path().join(name), block.lines.join("\n") + "\n").expect("writes");
        }
        if block.kind != "console" {
            continue;
        }
        for printed in (block.lines.join("\n") + "\n").split("$ ").skip(1) {
            let (command, expected) = printed.split_once('\n').expect("a command");
            // Both as they come.
            let output = Command::new("bash")
                .args(["-c", &format!("exec 2>&1; {command}")])
                .current_dir(directory.path())
                .env("PATH", &path)
                .output()
                .expect("bash");
            let said = String::from_utf8_lossy(&output.stdout);
            let (said, expected): (Vec<&str>, Vec<&str>) =
                (said.lines().map(steady).collect(), expected.lines().map(steady).collect());
            assert_eq!(said, expected, "{command}");
            ran += 1;
        }
    }
    ran
}

/// The page of campaigns goes on with the tutorial's files.
#[test]
fn commands_say_what_is_printed() {
    assert!(run_as_printed(&(page("tutorial.md") + &page("campaigns.md"))) >= 15);
}

#[test]
fn the_citation_is_of_this_version() {
    let citation = include_str!("../../../CITATION.cff");
    assert!(citation.contains(concat!("\nversion: ", env!("CARGO_PKG_VERSION"), "\n")), "{citation}");
}

/// Code that a page shows stands in the file that it names.
#[test]
fn code_is_that_of_the_repository() {
    for name in ["own-rule.md", "own-scheduler.md"] {
        let text = page(name);
        let shown: Vec<Block> = blocks(&text).into_iter().filter(|block| block.kind == "rust").collect();
        assert_eq!(shown.len(), 1, "{name}");
        for block in shown {
            let file = block.before.strip_suffix("`:").and_then(|line| line.rsplit('`').next()).expect("its file");
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
            assert!(
                fs::read_to_string(path).expect(file).contains(&block.lines.join("\n")),
                "{name} shows other code than {file}"
            );
        }
    }
}

/// The tests that the page of validation names are there.
#[test]
fn named_tests_exist() {
    let text = page("validation.md");
    let mut found = 0;
    for row in text.lines().filter(|line| line.starts_with('|')) {
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [test, file] = names[..] else { continue };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        assert!(fs::read_to_string(path).expect(file).contains(&format!("fn {test}(")), "{row}");
        found += 1;
    }
    assert!(found >= 10, "{found}");
}

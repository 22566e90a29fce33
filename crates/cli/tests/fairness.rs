//! `sinnet fairness` as a person uses it, and what is said about rules and networks that make no sense.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Scenario 3 of M. Becke and others, ICC 2012: a path of one's own, and one that a flow of one path shares.
const NETWORK: &str = r#"
name = "a path of one's own"
duration = "12s"
warm_up = "2s"
[[link]]
name = "own"
between = ["s", "r1"]
rate = "2Mbit/s"
delay = "10ms"
queue = "1bdp"
[[link]]
between = ["r1", "d"]
[[link]]
between = ["s", "r2"]
[[link]]
between = ["t", "r2"]
[[link]]
name = "shared"
between = ["r2", "r3"]
rate = "4Mbit/s"
delay = "10ms"
queue = "1bdp"
[[link]]
between = ["r3", "d"]
[[link]]
between = ["r3", "u"]
[[flow]]
name = "several"
from = "s"
to = "d"
protocol = "mptcp"
congestion = "lia"
paths = [["s", "r1", "d"], ["s", "r2", "r3", "d"]]
[[flow]]
name = "one"
from = "t"
to = "u"
protocol = "tcp"
"#;

fn sinnet(text: &str, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scenario.toml");
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinnet"));
    command.args(arguments).arg(&path).stdin(Stdio::null()).output().unwrap()
}

/// The paper's own numbers for alpha = 2 and beta = 4: B00, B01, B10 are 2, 1, 3, and link-centric 2, 2, 2.
#[test]
fn every_notion_stands_beside_what_was_measured() {
    let output = sinnet(NETWORK, &["fairness"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |name: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    for (name, expected) in [
        ("several", [4.0, 4.0, 3.0]),
        ("s.1 r1", [2.0, 2.0, 2.0]),
        ("s.2 r2", [2.0, 2.0, 1.0]),
        ("one", [2.0, 2.0, 3.0]),
    ] {
        let row = row(name);
        assert_eq!(row[..3], expected, "{text}");
        assert_eq!(row.len(), 5, "three notions of the paper, proportional fairness, and what was measured: {text}");
        assert!(row[4] > 0.1 && row[4] < 6.0, "{text}");
    }
    for word in ["network", "proportional", "measured", "Jain's index", "RFC 6356"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let output = sinnet(NETWORK, &["fairness", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json.is_object() || json.is_array(), "{json}");
}

#[test]
fn what_makes_no_sense_is_told_in_a_sentence() {
    let of_sctp = |rule: &str| {
        NETWORK.replace("\"mptcp\"\ncongestion = \"lia\"", &format!("\"cmt-sctp\"\ncongestion = \"{rule}\""))
    };
    let one_path = |protocol: &str| {
        let paths = "paths = [[\"s\", \"r1\", \"d\"], [\"s\", \"r2\", \"r3\", \"d\"]]";
        NETWORK.replace(paths, "paths = [[\"s\", \"r1\", \"d\"]]").replace("\"mptcp\"", &format!("\"{protocol}\""))
    };
    let node = "[[node]]\nname = \"r1\"\nlocators = [\"x\"]\n[[node]]\nname = \"r2\"\nlocators = [\"x\"]\n";
    let source = "[[flow]]\nname = \"source\"\nfrom = \"t\"\nto = \"u\"\nprotocol = \"udp\"\nrate = \"5Mbit/s\"\n";
    for (text, sentence) in [
        // A rule that needs feedback the protocol does not give.
        (of_sctp("daimd"), "\"daimd\" needs the round-trip time of every packet"),
        (of_sctp("chd"), "\"chd\" needs the round-trip time of every packet"),
        // A coupled rule with one path.
        (one_path("mptcp"), "\"lia\" couples the paths of a flow, and here there is one"),
        (one_path("cmt-sctp"), "\"lia\" couples the paths that are in use at once, and here there is one"),
        (one_path("tcp"), "\"lia\" couples paths, and TCP has one"),
        // A network in which a locator is of two nodes.
        (format!("{NETWORK}{node}"), "the locator \"x\" belongs to \"r1\" already"),
        // A demand that no allocation meets.
        (format!("{NETWORK}{source}"), "sources send 5 Mbit/s over the link from r2 to r3, which has 4"),
    ] {
        let output = sinnet(&text, &["fairness"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(sentence), "{said}");
        assert!(output.stdout.is_empty());
    }
}

//! QUIC between kernels. Oracles: what a link carries less the bytes of headers, and the bytes of the file.

use std::process::Command;

use serde_json::Value;

const ONE_PATH: &str = r#"
name = "one path"
duration = "4s"
warm_up = "1s"
[[link]]
between = ["a", "b"]
rate = "8Mbit/s"
delay = "10ms"
queue = "1.5bdp"
[[flow]]
protocol = "tcp"
from = "b"
to = "a"
paths = [["b", "a"]]
"#;

/// The report of a scenario, where namespaces are allowed.
fn run(scenario: &str) -> Option<Value> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("scenario.toml");
    std::fs::write(&file, scenario).expect("a file");
    let program = env!("CARGO_BIN_EXE_quic");
    // There is no Sinnet in these scenarios, so that any program does for its daemons.
    let ended =
        Command::new(program).args(["lab", "--together", "--real", program]).arg(file).output().expect("it runs");
    let told = String::from_utf8_lossy(&ended.stderr);
    if told.contains("Run it as root") {
        testkit::skip(&told);
        return None;
    }
    assert!(ended.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&ended.stdout).expect("a report");
    assert_eq!((&report["virtual"], &report["sha256_equal"]), (&false.into(), &true.into()), "{report}");
    assert_eq!(report["flows"][0]["congestion"], "quic-cubic");
    Some(report)
}

#[test]
fn in_the_open_it_fills_a_link() {
    let Some(report) = run(ONE_PATH) else { return };
    // IPv4, UDP, QUIC's short header, its frame and its check value take 20 + 8 + 12 + 8 + 16 bytes at most, of 1200 and more. A machine
    // that does something else at the same time takes some more of it.
    let rate = report["together_mbps"].as_f64().expect("a rate");
    assert!((0.7 * 8.0..8.0).contains(&rate), "{report}");
}

/// Only the main flow is QUIC's: what competes with it is a TCP of the kernel's, which says by what it sends.
#[test]
fn beside_it_a_tcp_is_one() {
    let (_, flow) = ONE_PATH.split_once("[[flow]]").expect("a flow");
    let Some(report) = run(&format!("{ONE_PATH}[[flow]]{flow}")) else { return };
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(available).expect("what the kernel has");
    let used = report["flows"][1]["congestion"].as_str().expect("a name");
    assert!(available.split_whitespace().any(|name| name == used), "{report}");
}

#[test]
fn what_is_not_served_is_a_sentence() {
    let missing = ["fetch", "127.0.0.1", "/nowhere/copy", "--port", "9", "--certificate", "/nowhere/certificate"];
    let ended = Command::new(env!("CARGO_BIN_EXE_quic")).args(missing).output().expect("it runs");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && told.starts_with("quic: /nowhere/certificate: "), "{told}");
}

//! Random networks with QUIC inside. Oracles: the rate of the bottleneck, and the formula of Jain's index.

use std::process::Command;

use serde_json::Value;

fn run(arguments: &[&str]) -> (bool, String, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_quic")).arg("friendliness").args(arguments).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.success(), text(&ended.stdout), text(&ended.stderr))
}

#[test]
fn what_competes_shares_the_bottleneck() {
    let arguments = ["--networks", "2", "--beside", "tcp:cubic", "--warm-up", "2s", "--duration", "6s", "--json"];
    let (is_well, out, error) = run(&arguments);
    assert!(is_well, "{error}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let networks = told["networks"].as_array().expect("networks");
    assert_eq!(networks.len(), 4, "two, and with a TCP in its place");
    for network in networks {
        let (rate, _) = network["about"].as_str().and_then(|about| about.split_once(" Mbit/s")).expect("a rate");
        let rate: f64 = rate.parse().expect("a rate");
        let [factor, sum, jain] = ["factor", "sum", "jain"].map(|key| network[key].as_f64().expect("a number"));
        assert!(sum < 1.02 * rate && sum > 0.6 * rate, "{network}");
        let of_two = (factor + 1.0).powi(2) / (2.0 * (factor * factor + 1.0));
        assert!((jain - of_two).abs() < 1e-9, "{network}");
    }
    assert_eq!(networks[0]["inside"], "quic-cubic");
    assert_eq!(told["lines"].as_array().map(Vec::len), Some(2));
}

#[test]
fn who_is_not_known_is_a_sentence() {
    let (is_well, _, error) = run(&["--beside", "udp"]);
    assert!(!is_well && error.starts_with("quic: no sender is called \"udp\""), "{error}");
}

//! The built program, as a person or a script uses it: exit statuses, what goes where, and what is said.

use std::fs;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

fn sinnet(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sinnet"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("SINNET_LOG")
        .output()
        .expect("the program starts")
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_key_is_made_once_and_its_hit_is_an_orchid() {
    let directory = tempfile::tempdir().expect("a directory");
    let keygen = |more: &[&str]| told(&sinnet(directory.path(), &[&["keygen", "--out", "a.pem"], more].concat()));
    let (status, hit, error) = keygen(&["--algorithm", "ecdsa-p256"]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    let address: Ipv6Addr = hit.trim().parse().expect("an IPv6 address");
    // RFC 7343 §2: 2001:20::/28.
    assert_eq!(u128::from(address) >> 100, 0x200_1002);
    let key = directory.path().join("a.pem");
    assert_eq!(fs::metadata(&key).expect("there").permissions().mode() & 0o777, 0o600);
    let before = fs::read(&key).expect("a key");
    assert!(before.starts_with(b"-----BEGIN PRIVATE KEY-----"));

    let (status, hit, error) = keygen(&[]);
    assert_eq!((status, hit.as_str()), (Some(2), ""));
    assert!(error.contains("a.pem exists") && error.contains("--force"), "{error}");
    assert_eq!(fs::read(&key).expect("a key"), before);

    let (status, json, _) = keygen(&["--force", "--json"]);
    assert_eq!(status, Some(0));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["hit"].as_str().expect("a HIT").parse::<Ipv6Addr>().is_ok());
    assert_ne!(fs::read(&key).expect("a key"), before);
}

#[test]
fn a_configuration_is_checked_without_starting_anything() {
    let directory = tempfile::tempdir().expect("a directory");
    let text =
        "identity = \"a.pem\"\n[[path]]\nname = \"x\"\ninterface = \"eth0\"\nrate = \"8Mbit/s\"\ndelay = \"3ms\"\n";
    fs::write(directory.path().join("a.toml"), text).expect("writes");
    let check = || told(&sinnet(directory.path(), &["check", "a.toml"]));

    let (status, out, error) = check();
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("a.toml:1:12: ") && error.contains("`sinnet keygen --out a.pem` makes one"), "{error}");

    let (_, hit, _) = told(&sinnet(directory.path(), &["keygen", "--out", "a.pem"]));
    let (status, out, error) = check();
    assert_eq!((status, error.as_str()), (Some(0), ""));
    assert!(out.contains("1 path, 0 peers") && out.contains(hit.trim()), "{out}");

    fs::write(directory.path().join("a.toml"), text.replace("rate", "rat")).expect("writes");
    let (status, _, error) = check();
    assert_eq!(status, Some(2));
    assert!(error.contains("a.toml:5:1: ") && error.contains("did you mean `rate`?"), "{error}");
    assert!(error.contains("5 | rat = \"8Mbit/s\""), "{error}");
}

#[test]
fn what_is_not_there_is_said_with_a_remedy() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| told(&sinnet(directory.path(), arguments));
    let (status, _, error) = run(&["up", "-c", "none.toml"]);
    assert_eq!(status, Some(2));
    assert!(error.contains("the configuration none.toml cannot be read"), "{error}");
    for command in ["status", "down"] {
        let (status, out, error) = run(&[command, "--control", "none.sock"]);
        assert_eq!((status, out.as_str()), (Some(1), ""));
        assert!(error.contains("no Sinnet answers at none.sock") && error.contains("sinnet up"), "{error}");
    }
    // clap's own messages.
    assert_eq!(run(&["up"]).0, Some(2));
    assert_eq!(run(&["dance"]).0, Some(2));
    assert_eq!(run(&["--version"]).0, Some(0));
}

/// For programs of hosts whose resolver does not ask Sinnet: hosts(5).
#[test]
fn names_are_printed_for_etc_hosts() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| told(&sinnet(directory.path(), arguments));
    let (_, hit, _) = run(&["keygen", "--out", "a.pem"]);
    let text = "identity = \"a.pem\"\n[[peer]]\nname = \"b.hip\"\nhit = \"2001:22::b\"\nlsi = \"198.18.0.11\"\n";
    fs::write(directory.path().join("a.toml"), text).expect("writes");
    let (status, out, _) = run(&["hosts", "-c", "a.toml"]);
    assert_eq!(status, Some(0));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], format!("# {} is this host", hit.trim()));
    assert!(lines[1].starts_with("# 198.1"), "{out}");
    assert_eq!(lines[2..], ["2001:22::b b.hip", "198.18.0.11 b.hip"]);
    fs::write(directory.path().join("a.toml"), format!("name = \"a.hip\"\n{text}")).expect("writes");
    assert!(run(&["hosts", "-c", "a.toml"]).1.starts_with(&format!("{} a.hip\n", hit.trim())));
}

#[test]
fn manual_pages_and_completions_come_from_the_commands() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| told(&sinnet(directory.path(), arguments));
    assert_eq!(run(&["man", "man1"]).0, Some(0));
    let page = |name: &str| fs::read_to_string(directory.path().join("man1").join(name)).expect("a page");
    assert!(page("sinnet.1").starts_with(".ie") && page("sinnet-sim.1").contains("SCENARIO.toml"));
    for (shell, word) in [("bash", "_sinnet()"), ("zsh", "#compdef sinnet"), ("fish", "complete -c sinnet")] {
        let (status, out, _) = run(&["completions", shell]);
        assert!(status == Some(0) && out.contains(word) && out.contains("keygen"), "{shell}: {out}");
    }
}

#[test]
fn the_reference_of_the_configuration_is_what_the_program_says() {
    let (_, out, _) = told(&sinnet(Path::new("."), &["help", "config", "--markdown"]));
    assert_eq!(
        out,
        include_str!("../../../docs/configuration.md"),
        "sinnet help config --markdown >docs/configuration.md"
    );
}

#[test]
fn keys_of_scenarios_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| told(&sinnet(directory.path(), arguments));
    let (status, out, _) = run(&["help", "scenario"]);
    assert_eq!(status, Some(0));
    for key in ["[[link]]", "queue", "[[flow]]", "congestion", "rates"] {
        assert!(out.contains(key), "{key}: {out}");
    }
    let (status, out, _) = run(&["help", "scenario", "association"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("\"shared\", \"own\"") && out.contains("not honoured: an error there"), "{out}");
    let (status, out, error) = run(&["help", "scenario", "quee"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("did you mean queue?"), "{error}");

    let (status, out, _) = run(&["help", "config", "rekey"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("[esp]") && out.contains("\"1h\""), "{out}");
    assert!(run(&["help", "config"]).1.contains("[[path]]"));
    assert!(run(&["help", "config", "loccators"]).2.contains("did you mean locators?"));

    let (_, schema, _) = run(&["help", "scenario", "--json-schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["$defs"]["Flow"]["properties"]["congestion"].is_object());
    let (_, schema, _) = run(&["help", "config", "--json-schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    assert!(schema["$defs"]["peer"]["properties"]["locators"].is_object());
    assert!(run(&["help", "scenario", "--markdown"]).1.starts_with("# Scenario files"));

    // Of commands, as before.
    assert!(run(&["help"]).1.contains("keygen"));
    assert!(run(&["help", "sim"]).1.contains("--seeds"));
    assert_eq!(run(&["help", "dance"]).0, Some(2));
    assert_eq!(run(&["help", "sim", "queue"]).0, Some(2));
}

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
    let check = || told(&sinnet(directory.path(), &["up", "-c", "a.toml", "--check"]));

    let (status, out, error) = check();
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(error.contains("a.toml:1:12: ") && error.contains("`sinnet keygen --out a.pem` makes one"), "{error}");

    let (_, hit, _) = told(&sinnet(directory.path(), &["keygen", "--out", "a.pem"]));
    let (status, out, error) = check();
    assert_eq!((status, error.as_str()), (Some(0), ""));
    assert!(out.contains("1 paths, 0 peers") && out.contains(hit.trim()), "{out}");

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

#[test]
fn keys_of_scenarios_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| told(&sinnet(directory.path(), arguments));
    let (status, out, _) = run(&["help", "scenario"]);
    assert_eq!(status, Some(0));
    for key in ["[[link]]", "queue", "[[flow]]", "congestion", "rates"] {
        assert!(out.contains(key), "{key}: {out}");
    }
    let (status, out, _) = run(&["help", "scenario", "rates"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("\"measured\", \"configured\"") && out.contains("not honoured: an error there"), "{out}");
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

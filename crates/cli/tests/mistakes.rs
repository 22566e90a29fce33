//! What people get wrong in their first hour, in configurations and in scenarios, and the sentences that answer: where it is, what is
//! wrong, and what would be right. Each row was made by somebody who had only the README.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Everything in it is right. The key is made by the test.
const CONFIGURATION: &str = r#"identity = "a.pem"
metrics = "127.0.0.1:9480"
[[path]]
name = "dsl"
interface = "lo"
rate = "8Mbit/s"
[[peer]]
name = "b.hip"
hit = "2001:22:0:1::b"
locators = ["198.51.100.7", "203.0.113.7"]
"#;

/// (what to replace, by what, where the sentence points, words of it)
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const IN_CONFIGURATIONS: &[Row] = &[
    ("rate =", "raet =", "6:1", &["[[path]] has no key `raet`", "did you mean `rate`?"]),
    ("[[peer]]", "[[pear]]", "7:3", &["the file has no key `pear`", "did you mean `peer`?"]),
    ("\"a.pem\"", "\"none.pem\"", "1:12", &["cannot be read", "sinnet keygen --out"]),
    ("\"a.pem\"", "\"garbage.pem\"", "1:12", &["is no host identity", "sinnet keygen --out"]),
    ("\"a.pem\"", "\"public.pem\"", "1:12", &["no private key in this PEM text", "sinnet keygen --out"]),
    ("\"a.pem\"", "\"ed25519.pem\"", "1:12", &["not a private key for RSA, ECDSA P-256 or ECDSA P-384"]),
    ("\"a.pem\"", "\"openssh.pem\"", "1:12", &["OpenSSH's own format", "ssh-keygen -p -m PKCS8"]),
    ("\"a.pem\"", "\"open.pem\"", "1:12", &["other users of this machine can read", "chmod 600"]),
    ("2001:22:0:1::b", "2001:22:0:1:", "9:7", &["is no HIT", "2001:20::/28"]),
    ("2001:22:0:1::b", "2001:db8::b", "9:7", &["an IPv6 address but no HIT", "sinnet keygen"]),
    ("2001:22:0:1::b", "OWN HIT", "9:7", &["the HIT of this host's own identity", "on the peer's machine"]),
    ("\"203.0.113.7\"", "\"vps.example.com\"", "10:29", &["is no IP address", "192.0.2.10"]),
    ("\"203.0.113.7\"", "\"203.0.113.7:0\"", "10:29", &["no port that packets could go to", ":4500"]),
    ("\"203.0.113.7\"", "\"198.51.100.7\"", "10:29", &["has the address 198.51.100.7 twice", "once"]),
    ("\"203.0.113.7\"", "\"127.0.0.1\"", "10:29", &["127.0.0.1 is this host itself"]),
    ("\"203.0.113.7\"", "\"198.18.3.4\"", "10:29", &["198.18.3.4 is an identity", "no place in the network"]),
    ("\"203.0.113.7\"", "\"2001:22::b\"", "10:29", &["2001:22::b is an identity", "no place in the network"]),
    ("[\"198.51.100.7\", \"203.0.113.7\"]", "\"198.51.100.7\"", "10:12", &["a list is needed here", "locators = ["]),
    ("name = \"dsl\"", "name = \"dsl", "4:12", &[]),
    ("8Mbit/s", "8 apples", "6:8", &["is not a rate", "8Mbit/s"]),
    ("[[path]]", "[interfaces]\nignore = []\n[[path]]", "3:1", &["[interfaces] is for files without [[path]]"]),
    ("127.0.0.1:9480", "9480", "2:11", &["no address with a port", "127.0.0.1:9480"]),
    ("127.0.0.1:9480", "0.0.0.0:9480", "2:11", &["would read with whom this host talks", "metrics_exposed = true"]),
    ("metrics =", "congestion = \"cubik\"\nmetrics =", "2:14", &["\"cubik\"", "cubic"]),
    (
        "[[peer]]",
        "[[path]]\nname = \"lte\"\ninterface = \"lo\"\n[[peer]]",
        "9:13",
        &["\"dsl\" and \"lte\" are on one interface"],
    ),
];

const SCENARIO: &str = r#"name = "one flow"
duration = "5s"
[[link]]
between = ["s", "d"]
rate = "2Mbit/s"
delay = "30ms"
queue = "1bdp"
[[flow]]
name = "f"
from = "s"
to = "d"
protocol = "tcp"
"#;

const IN_SCENARIOS: &[Row] = &[
    ("delay =", "dealy =", "6:1", &["did you mean `delay`?"]),
    ("\"30ms\"", "30", "6:9", &["30ms"]),
    ("\"30ms\"", "\"30\"", "6:9", &["\"30\"", "ns, us, ms, s, min or h"]),
    ("\"2Mbit/s\"", "\"0Mbit/s\"", "5:8", &["zero"]),
    ("\"1bdp\"", "\"many\"", "7:9", &["many", "1.5bdp"]),
    ("to = \"d\"", "to = \"e\"", "11:6", &["no link leads to a node \"e\""]),
    ("\"tcp\"", "\"tpc\"", "12:12", &["did you mean \"tcp\""]),
    ("protocol = \"tcp\"", "protocol = \"tcp\"\ncongestion = \"newrono\"", "13:14", &["did you mean \"newreno\""]),
    ("protocol = \"tcp\"", "protocol = \"udp\"", "8:1", &["a UDP source needs its `rate`", "1Mbit/s"]),
    ("duration = \"5s\"\n", "", "1:1", &["a scenario needs `duration`", "duration ="]),
    ("[\"s\", \"d\"]", "[\"s\", \"s\"]", "4:11", &["a link from \"s\" to itself"]),
];

fn check(directory: &Path, text: &str) -> (Option<i32>, String, String) {
    fs::write(directory.join("x.toml"), text).expect("writes");
    let output = Command::new(env!("CARGO_BIN_EXE_sinnet"))
        .args(["check", "x.toml"])
        .current_dir(directory)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn answered(directory: &Path, right: &str, rows: &[Row], own: &str) {
    let (status, out, error) = check(directory, right);
    assert_eq!((status, error.as_str()), (Some(0), ""), "{out}");
    let mut failures = Vec::new();
    for (old, new, place, words) in rows {
        assert!(right.contains(old), "{old}");
        let (status, _, told) = check(directory, &right.replacen(old, &new.replace("OWN HIT", own), 1));
        let points = told.starts_with(&format!("sinnet: x.toml:{place}: "));
        if status != Some(2) || !points || words.iter().any(|word| !told.contains(word)) || told.contains("panicked") {
            failures.push(format!("{new}: expected {place}, {words:?}, got {status:?} and\n{told}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn in_configurations() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    let keygen = Command::new(env!("CARGO_BIN_EXE_sinnet"))
        .args(["keygen", "--out", "a.pem"])
        .current_dir(directory.path())
        .output()
        .expect("the program starts");
    let own = String::from_utf8(keygen.stdout).expect("UTF-8");
    file("garbage.pem", "nonsense", 0o600);
    file("public.pem", "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n", 0o600);
    // RFC 8410 §10.3.
    let ed25519 = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC";
    file("ed25519.pem", &format!("-----BEGIN PRIVATE KEY-----\n{ed25519}\n-----END PRIVATE KEY-----\n"), 0o600);
    file("openssh.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n", 0o600);
    file("open.pem", &fs::read_to_string(directory.path().join("a.pem")).expect("a key"), 0o644);
    answered(directory.path(), CONFIGURATION, IN_CONFIGURATIONS, own.trim());
}

#[test]
fn in_scenarios() {
    let directory = tempfile::tempdir().expect("a directory");
    answered(directory.path(), SCENARIO, IN_SCENARIOS, "");
}

/// What is right, but may not be meant.
#[test]
fn remarks() {
    let directory = tempfile::tempdir().expect("a directory");
    let keygen = Command::new(env!("CARGO_BIN_EXE_sinnet"))
        .args(["keygen", "--out", "a.pem"])
        .current_dir(directory.path())
        .status();
    assert!(keygen.is_ok_and(|status| status.success()));
    let (status, out, _) = check(directory.path(), &CONFIGURATION.replace("b.hip", "www.google.com"));
    assert_eq!(status, Some(0));
    assert!(out.contains("x.toml:8:8: ") && out.contains("if somebody else has that name in the DNS"), "{out}");
    assert!(!check(directory.path(), CONFIGURATION).1.contains("somebody else"));
    let (status, out, _) = check(directory.path(), &CONFIGURATION.replace("\"lo\"", "\"nothing9\""));
    assert_eq!(status, Some(0));
    assert!(out.contains("no interface \"nothing9\"") && out.contains("becomes a path when it is there"), "{out}");
    assert!(out.contains("is right: 1 path, 1 peer, HIT 2001:2"), "{out}");
    // A server need not know where its clients are.
    let without = CONFIGURATION.replace("locators = [\"198.51.100.7\", \"203.0.113.7\"]\n", "");
    assert_eq!(check(directory.path(), &without).0, Some(0));
    // For whom a scenario is.
    let (_, out, _) = check(directory.path(), SCENARIO);
    assert!(out.contains("`sinnet sim`"), "{out}");
    let (_, out, _) = check(directory.path(), &SCENARIO.replace("\"tcp\"", "\"tcp\"\nprofile = \"ns2\""));
    assert!(out.contains("is right: `sinnet sim`\nnot for `sinnet lab --virtual`: "), "{out}");
}

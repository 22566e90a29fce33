//! Any text as the daemon's configuration, and texts made of its keys: it is read, or an error says what is wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;

const HEADS: [&str; 9] =
    ["", "[[path]]", "[[peer]]", "[interfaces]", "[tun]", "[esp]", "[hip]", "[dns]", "[[peer.routes]]"];
const KEYS: [&str; 28] = [
    "identity",
    "name",
    "lsi",
    "control",
    "metrics",
    "metrics_exposed",
    "congestion",
    "address",
    "interface",
    "rate",
    "delay",
    "mtu",
    "backup",
    "ignore",
    "hit",
    "locators",
    "routes",
    "enabled",
    "suites",
    "ciphers",
    "groups",
    "puzzle_difficulty",
    "encapsulation",
    "port",
    "local",
    "remote",
    "feedback",
    "forward",
];
const VALUES: [&str; 20] = [
    "\"a.pem\"",
    "\"a.hip\"",
    "\"1.0.0.2\"",
    "\"127.0.0.1:9480\"",
    "true",
    "false",
    "\"lia\"",
    "\"192.0.2.10\"",
    "\"eth0\"",
    "\"8Mbit/s\"",
    "\"30ms\"",
    "1500",
    "-1",
    "[\"192.0.2.1\", \"2001:db8::1\"]",
    "[]",
    "\"2001:21:1111:2222:3:4:5555:6667\"",
    "{}",
    "1e400",
    "\"\\u0000\"",
    "[{ address = \"192.0.2.7\", rate = \"1Gbit/s\" }]",
];

fuzz_target!(|input: (Vec<(u8, u8, u8, Option<String>)>, String)| {
    let (lines, tail) = input;
    let mut text = String::from("identity = \"a.pem\"\n");
    for (head, key, value, other) in lines.into_iter().take(40) {
        if let Some(head) = HEADS.get(usize::from(head)) {
            text += &format!("{head}\n");
        }
        let key = KEYS[usize::from(key) % KEYS.len()];
        let value = other.unwrap_or_else(|| VALUES[usize::from(value) % VALUES.len()].to_owned());
        text += &format!("{key} = {value}\n");
    }
    text += &tail;
    match daemon::config::parse(&text, "sinnet.toml") {
        Ok(config) => {
            let own = wire::Hit([0x20, 1, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            let _ = config.assign_lsis(own);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

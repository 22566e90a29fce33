//! Two network namespaces for tests of two daemons. Where they are not allowed a test says so and does nothing.

use std::process::Command;

/// Begins each script: `$far` is a process in the other namespace, `$there` runs a command in it; `host x` makes one more, with
/// `$x_pid` and `$x`. `masquerade` makes a namespace a router with a NAT, and `only_answers` lets nothing through it that was not asked
/// for. `up_on_both` brings the daemons of a.toml here and b.toml there up until both are ready, as `$a` and `$b`. `wait_for` waits until
/// a command succeeds, and ends the test with all logs where it does not; `refused` has a command fail, where bash would go on after
/// `! command` whatever it says. `$sinnet` is the program. Nothing outlives the script.
const BEGIN: &str = r#"
set -eu
sinnet=$1; shift
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
host() { # variable: another namespace, as what begins a command there
    unshare --net sleep 200 & local pid=$!
    for _ in $(seq 50); do # until it is there
        [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break; sleep 0.1
    done
    eval "$1='nsenter --net=/proc/$pid/ns/net'; $1_pid=$pid"
    eval "\$$1 ip link set lo up"
}
masquerade() { # what begins a command there, and options of the NAT; its device to the Internet is wan
    $1 sysctl -qw net.ipv4.ip_forward=1
    $1 nft "add table ip nat; add chain ip nat out { type nat hook postrouting priority 100; }
        add rule ip nat out oifname wan masquerade ${2:-}"
}
only_answers() { # what begins a command there, and to where: forward, or input for the router itself
    $1 nft "add chain ip nat $2 { type filter hook $2 priority 0; }
        add rule ip nat $2 iifname wan ct state { new, invalid } drop"
}
ip link set lo up
host there; far=$there_pid
wait_for() { # command, tenths of a second
    for _ in $(seq ${2:-300}); do eval "$1" && return; sleep 0.1; done
    echo "not in time: $1"; cat *.log; exit 1
}
refused() { if "$@"; then echo "not refused: $*"; exit 1; fi; }
up_on_both() {
    $sinnet up -c a.toml --control a.sock --esp-keylog a.keys 2>a.log & a=$!
    $there $sinnet up -c b.toml --control b.sock 2>b.log & b=$!
    for _ in $(seq 100); do
        grep -q ' ready ' a.log && grep -q ' ready ' b.log && break
        kill -0 $a $b || { cat a.log b.log; exit 1; }
        sleep 0.1
    done
}
"#;

/// Runs `script` by bash as root of a user namespace, in a directory of its own, with `arguments` from $1 on, for at most so
/// many seconds. It has to end with `echo "all went well"`.
pub(crate) fn in_namespaces(script: &str, seconds: u32, arguments: &[&str]) {
    run(&["--user", "--map-root-user"], script, seconds, arguments);
}

/// As [`in_namespaces`], by the machine's root, who has all its users.
pub(crate) fn in_namespaces_of_root(script: &str, seconds: u32, arguments: &[&str]) {
    run(&[], script, seconds, arguments);
}

#[expect(clippy::print_stdout, reason = "what was measured, for who asks to see it")]
fn run(users: &[&str], script: &str, seconds: u32, arguments: &[&str]) {
    let unshare = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(users).args(["--net", "--mount", "--kill-child", "--fork"]).args(command);
        unshare
    };
    // Who is root here may also become others.
    let possible = if users.is_empty() { &["setpriv", "--reuid", "64998", "true"][..] } else { &["true"] };
    if !unshare(possible).output().is_ok_and(|output| output.status.success()) {
        return testkit::skip("this machine does not allow namespaces, or not to this user");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let seconds = seconds.to_string();
    let script = format!("{BEGIN}{script}");
    let output = unshare(&["timeout", &seconds, "bash", "-c", &script, "in_namespaces", env!("CARGO_BIN_EXE_sinnet")])
        .args(arguments)
        .current_dir(directory.path())
        .output()
        .expect("unshare starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let log = |name| std::fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    let logs = format!("{}\n{}", log("a.log"), log("b.log"));
    assert!(output.status.success() && out.contains("all went well"), "{out}\n{error}\n{logs}");
    print!("{out}");
}

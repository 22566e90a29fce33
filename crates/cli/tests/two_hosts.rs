//! Two daemons in two network namespaces, joined by two cables, over each family and each encapsulation. The oracle is the
//! kernel on both sides: its `ping` and its TCP. Where namespaces are not allowed the test says so and does nothing.

use std::process::Command;

/// Run by bash as root of a user namespace, in a directory of its own: $1 is the program, $2 the encapsulation, $3 and $4 the
/// beginnings of the addresses of the two cables, $5 the prefix length, $6 an option of `ip addr add`.
const SCRIPT: &str = r#"
set -eu
sinnet=$1 encapsulation=$2 one=$3 two=$4 prefix=$5 option=$6
unshare --net sleep 60 & far=$!
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
for _ in $(seq 50); do # until the other namespace is there
    [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break; sleep 0.1
done
there="nsenter --net=/proc/$far/ns/net"
ip link set lo up; $there ip link set lo up
for i in 1 2; do
    [ $i = 1 ] && net=$one || net=$two
    ip link add e$i type veth peer name f$i
    ip link set f$i netns $far
    ip addr add ${net}1/$prefix dev e$i $option; $there ip addr add ${net}2/$prefix dev f$i $option
    ip link set e$i up; $there ip link set f$i up
done
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
configure() { # host, interface letter, peer's name, peer's HIT, peer's number
    printf 'identity = "%s.pem"\nname = "%s.hip"\n[esp]\nencapsulation = "%s"\n' $1 $1 $encapsulation
    for i in 1 2; do
        printf '[[path]]\nname = "p%s"\ninterface = "%s%s"\nrate = "50Mbit/s"\ndelay = "1ms"\n' $i $2 $i
    done
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlocators = ["%s%s", "%s%s"]\n' $3 $4 $one $5 $two $5
}
configure a e b $B 2 >a.toml; configure b f a $A 1 >b.toml
$sinnet up -c a.toml --control a.sock --esp-keylog a.keys 2>a.log & a=$!
$there $sinnet up -c b.toml --control b.sock 2>b.log & b=$!
for _ in $(seq 100); do
    grep -q ' ready ' a.log && grep -q ' ready ' b.log && break
    kill -0 $a $b || { cat a.log b.log; exit 1; }
    sleep 0.1
done
field() { $sinnet status --control a.sock --json | grep -o "\"$1\": *[^,]*" | tail -1 | cut -d: -f2- | tr -d ' "'; }
[ "$(field ready)" = true ]
ping -c 3 -i 0.2 -W 5 $B
# Both paths, each with an SA in each direction.
for _ in $(seq 50); do [ "$(grep -c 'is up' a.log)" = 2 ] && break; sleep 0.1; done
[ "$(grep -c 'is up' a.log)" = 2 ]; [ "$(wc -l <a.keys)" = 4 ]
lsi=$($sinnet status --control a.sock | sed -n 's/^  .*LSI //p')
ping -c 2 -i 0.2 -W 5 $lsi
grep -q 'CapEff:.*0000000000000000' /proc/$a/status
head -c 3000000 /dev/urandom >file
$there bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 &
for host in "[$B]" $lsi; do
    curl -sS --retry 20 --retry-connrefused --retry-delay 1 --max-time 20 -o got "http://$host:8000/file"
    cmp file got
done
$sinnet down --control a.sock; wait $a
for _ in $(seq 20); do grep -q 'closed by the peer' b.log && break; sleep 0.1; done
grep -q 'closed by the peer' b.log
kill -TERM $b; wait $b
[ ! -e a.sock ] && [ ! -e b.sock ]
echo "all went well"
"#;

#[expect(clippy::print_stderr, reason = "a test that did not run must not look like one that did")]
fn two_hosts(encapsulation: &str, addresses: [&str; 4]) {
    let unshare = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--net", "--mount", "--kill-child", "--fork"]).args(command);
        unshare
    };
    if !unshare(&["true"]).output().is_ok_and(|output| output.status.success()) {
        eprintln!("not tried: this machine does not allow user namespaces");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let output =
        unshare(&["timeout", "60", "bash", "-c", SCRIPT, "two_hosts", env!("CARGO_BIN_EXE_sinnet"), encapsulation])
            .args(addresses)
            .current_dir(directory.path())
            .output()
            .expect("unshare starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let log = |name| std::fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    let logs = format!("{}\n{}", log("a.log"), log("b.log"));
    assert!(output.status.success() && out.contains("all went well"), "{out}\n{error}\n{logs}");
}

const IPV4: [&str; 4] = ["10.1.0.", "10.2.0.", "24", ""];
const IPV6: [&str; 4] = ["fd01::", "fd02::", "64", "nodad"];

#[test]
fn in_udp_over_ipv4() {
    two_hosts("udp", IPV4);
}

#[test]
fn in_udp_over_ipv6() {
    two_hosts("udp", IPV6);
}

#[test]
fn natively_over_ipv4() {
    two_hosts("native", IPV4);
}

#[test]
fn natively_over_ipv6() {
    two_hosts("native", IPV6);
}

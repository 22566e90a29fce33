//! What others make of our packets: hosts that meet by a relay through NATs, add a path, move, change their keys and end, and
//! natively hosts that meet by a rendezvous server; what was on the wire is given to tshark, scapy and, where it is installed,
//! pypcapkit, with the keys (`dissect.py`). None of them may have a remark. Where namespaces are not allowed the test says so and
//! does nothing.

use crate::common;
use std::process::{Command, Stdio};

/// What `common::in_namespaces` runs, with the Python that has scapy as $1 and "pypcapkit" as $2 where it has that, too.
const SCRIPT: &str = r#"
python=$1; kit=$2
cat >dissect.py <<'PYTHON'
@DISSECT@
PYTHON
# The Ethernet of the relay and of the native hosts is the Internet, and what is captured. A train of packets is taken apart before.
$there ip link add br0 type bridge; $there ip link set br0 up gso_max_segs 1; $there ip addr add 198.51.100.7/24 dev br0
host b; here=$$
uplink() { # side, number, namespace's process, as what begins a command there
    local side=$1 i=$2 pid=$3 in=$4 n=$1$2
    host nat
    ip link add x$n type veth peer name y$n
    ip link set x$n netns $pid; ip link set y$n netns $nat_pid
    $in ip link set x$n name e$i gso_max_segs 1; $in ip addr add 10.$n.0.2/24 dev e$i
    $nat ip link set y$n name lan; $nat ip addr add 10.$n.0.1/24 dev lan; $nat ip link set lan up
    $there ip link add n$n type veth peer name wan netns $nat_pid
    $there ip link set n$n master br0; $there ip link set n$n up
    $nat ip addr add 198.51.100.$n/24 dev wan; $nat ip link set wan up
    masquerade "$nat"; only_answers "$nat" forward; only_answers "$nat" input
}
for i in 1 2; do uplink 1 $i $here ""; uplink 2 $i $b_pid "$b"; done
up() { $2 ip link set e$3 up; $2 ip route add default via 10.$1$3.0.1 metric $3; } # side, in, number
for n in 31 32 33; do
    host h; eval "h$n=\$h"
    $there ip link add n$n type veth peer name eth0 netns $h_pid
    $there ip link set n$n master br0; $there ip link set n$n up
    $h ip addr add 198.51.100.$n/24 dev eth0; $h ip link set eth0 up gso_max_segs 1
done

A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem); R=$($sinnet keygen --out r.pem)
C=$($sinnet keygen --out c.pem); D=$($sinnet keygen --out d.pem); S=$($sinnet keygen --out s.pem --algorithm rsa)
peer() { printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\n%s\n' "$@"; }
{ printf 'identity = "r.pem"\n'; peer a $A ''; peer b $B ''; } >r.toml
relay='locators = ["198.51.100.7"]
register = true'
fast='[esp]
rekey = "10s"'
{ printf 'identity = "a.pem"\n%s\n' "$fast"; peer r $R "$relay"; peer b $B 'via = ["198.51.100.7"]'; } >a.toml
{ printf 'identity = "b.pem"\n%s\n' "$fast"; peer r $R "$relay"; peer a $A 'via = ["198.51.100.7"]'; } >b.toml
native="$fast
encapsulation = \"native\""
{ printf 'identity = "c.pem"\n%s\n' "$native"; peer d $D 'via = ["198.51.100.33"]'; peer s $S 'locators = ["198.51.100.33"]'; } >c.toml
{ printf 'identity = "d.pem"\n%s\n' "$native"; peer c $C ''; peer s $S 'locators = ["198.51.100.33"]
register = true'; } >d.toml
{ printf 'identity = "s.pem"\n%s\n[rendezvous]\nclients = ["d.hip"]\n' "$native"; peer c $C ''; peer d $D ''; } >s.toml

$there tshark -q -i br0 -w wire.pcap 2>/dev/null & shark=$!
wait_for '[ -s wire.pcap ]'
$there $sinnet relay -c r.toml --control r.sock 2>r.log & r=$!
$h33 $sinnet up -c s.toml --control s.sock --esp-keylog s.keys 2>s.log & s=$!
wait_for 'grep -q " ready " r.log && grep -q " ready " s.log'
up 1 "" 1; up 2 "$b" 1
$sinnet up -c a.toml --control a.sock --esp-keylog a.keys 2>a.log & a=$!
$b $sinnet up -c b.toml --control b.sock --esp-keylog b.keys 2>b.log & b_up=$!
$h31 $sinnet up -c c.toml --control c.sock --esp-keylog c.keys 2>c.log & c=$!
$h32 $sinnet up -c d.toml --control d.sock --esp-keylog d.keys 2>d.log & d=$!
for log in a b d; do wait_for "grep -q 'passes on to us' $log.log"; done

# By the relay through the NATs, and natively by the rendezvous server.
ping -i 0.1 $B >ping.ab & ping_ab=$!
$h31 ping -i 0.1 $D >ping.cd & ping_cd=$!
wait_for 'grep -q "to b.hip is up: e1, .* → 198.51.100.21" a.log'
wait_for 'grep -q "to d.hip is up" c.log'
head -c 300000 /dev/urandom >file
$b python3 -m http.server --bind :: 8000 >/dev/null 2>&1 &
$h32 python3 -m http.server --bind :: 8000 >/dev/null 2>&1 &
get() { wait_for "curl -sS --max-time 5 -o got 'http://[$B]:8000/file' 2>/dev/null"; cmp got file
    wait_for "$h31 curl -sS --max-time 5 -o got 'http://[$D]:8000/file' 2>/dev/null"; cmp got file; }
get
# A second path.
up 1 "" 2; up 2 "$b" 2
wait_for 'grep -q "to b.hip is up: e2, .* → 198.51.100.2[12]" a.log'
get
# Both move: one behind its NAT, with the other path staying, one with all it has.
ip addr del 10.11.0.2/24 dev e1; ip addr add 10.11.0.9/24 dev e1
ip route replace default via 10.11.0.1 metric 1
$h31 ip addr del 198.51.100.31/24 dev eth0; $h31 ip addr add 198.51.100.41/24 dev eth0
wait_for 'grep -q "to b.hip is up: e1, 10.11.0.9 " a.log'
wait_for '$h32 $sinnet status --control d.sock | grep -q 198.51.100.41'
get
# New keys.
sleep 11
get
ends() { kill -INT $1; wait $1 || true; grep -q ' 0% packet loss' $2 || tail -3 $2; }
ends $ping_ab ping.ab; ends $ping_cd ping.cd
$sinnet down --control a.sock; wait $a; $h31 $sinnet down --control c.sock; wait $c
$b $sinnet down --control b.sock; wait $b_up; $h32 $sinnet down --control d.sock; wait $d
kill $r $s; wait $r || true; wait $s || true
sleep 1.5; kill $shark; wait $shark || true
[ -z "${KEEP:-}" ] || cp wire.pcap ?.keys ?.log ?.toml dissect.py $KEEP
$python dissect.py wire.pcap $kit ?.keys
echo "all went well"
"#;

/// The Python that `make dissect` has made, or the first that has scapy; and whether it has pypcapkit.
fn python() -> Option<(String, bool)> {
    let works = |python: &str, imports: &str| {
        let mut command = Command::new(python);
        command.args(["-c", imports]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let made = std::env::var("SINNET_DISSECT_PYTHON").ok();
    let candidates = made.into_iter().chain(["python3".to_owned(), "/usr/bin/python3".to_owned()]);
    let mut able = candidates.filter(|python| works(python, "import scapy.layers.ipsec, cryptography"));
    let found = able.next().map(|python| (python.clone(), works(&python, "import pcapkit")));
    if found.is_none() {
        testkit::skip("no Python 3 with scapy and cryptography (python3-scapy, python3-cryptography)");
    }
    found
}

#[test]
fn nobody_has_a_remark_about_any_packet_of_a_long_scenario() {
    let programs = [("tshark", "--version"), ("curl", "-V"), ("nft", "-v")];
    if !programs.iter().all(|(program, version)| testkit::has(program, &[version])) {
        return;
    }
    let Some((python, has_kit)) = python() else { return };
    let script = SCRIPT.replace("@DISSECT@", include_str!("dissect.py"));
    common::in_namespaces(&script, 110, &[&python, if has_kit { "pypcapkit" } else { "no" }]);
}

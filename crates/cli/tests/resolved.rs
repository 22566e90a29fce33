//! systemd-resolved itself, with a D-Bus of its own in a network namespace and nothing else of systemd: it asks the daemon as long as
//! that runs, and whom it asked before when the daemon has ended or was killed. The oracles are its answers to resolvectl and, through
//! its stub, to the C library. Where namespaces are not allowed, or it is not there, the test says so and does nothing.
//!
//! Installed, it takes over the machine's /etc/resolv.conf, so the test need not be run everywhere. Unpacked is enough:
//!
//! ```sh
//! apt-get download systemd-resolved && dpkg -x systemd-resolved_*.deb /tmp/resolved
//! SINNET_RESOLVED=/tmp/resolved cargo test -p sinnet-cli --test all resolved
//! ```

use crate::common;
use std::path::Path;

/// What `common::in_namespaces` runs, with systemd-resolved as $1, and the folder of its resolvectl as $2.
const SCRIPT: &str = r#"
resolved=$1; PATH=$2:$PATH
ip link add eth0 type veth peer name eth0 netns $far
ip addr add 198.51.100.1/24 dev eth0; ip link set eth0 up
$there ip addr add 198.51.100.7/24 dev eth0; $there ip link set eth0 up

# Two name servers that have the same address for all names, and each another.
cat >server.py <<'END'
import socket, sys
port, address = int(sys.argv[1]), bytes(map(int, sys.argv[2].split(".")))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", port))
while True:
    query, client = server.recvfrom(4096)
    end = query.index(0, 12) + 5
    is_a = query[end - 4:end - 2] == b"\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + address if is_a else b""
    server.sendto(query[:2] + b"\x85\x80\0\1\0" + bytes([is_a]) + b"\0\0\0\0" + query[12:end] + answer, client)
END
python3 server.py 5301 192.0.2.1 & python3 server.py 5302 192.0.2.2 &

mkdir etc etc/systemd run run/dbus run/systemd
printf 'root:x:0:0::/:/bin/sh\nsystemd-resolve:x:0:0::/:/bin/sh\n' >etc/passwd; printf 'root:x:0:\nsystemd-resolve:x:0:\n' >etc/group
printf 'passwd: files\ngroup: files\nhosts: dns\n' >etc/nsswitch.conf
printf 'nameserver 127.0.0.53\n' >etc/resolv.conf
printf '[Resolve]\nDNS=127.0.0.1:5302\nFallbackDNS=\nDNSSEC=no\nLLMNR=no\nMulticastDNS=no\nCache=no\n' >etc/systemd/resolved.conf
cp -r etc before
cat >bus.conf <<'END'
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_type="method_call"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
END
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
{ printf 'identity = "a.pem"\nlsi = "198.18.0.1"\n[dns]\nupstream = ["127.0.0.1:5301"]\nresolver = "systemd-resolved"\n'
  printf '[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["198.51.100.7"]\n' $B; } >a.toml
mount --bind etc /etc; mount --bind run /run
# Where it does not run.
refused $sinnet up -c a.toml --control a.sock 2>told; grep -q 'systemd-resolved cannot be told to ask us' told
dbus-daemon --config-file=$PWD/bus.conf --nofork --nopidfile 2>bus.log &
wait_for '[ -S /run/dbus/system_bus_socket ]'
start_resolved() { $resolved 2>resolved.log & r=$!; wait_for 'resolvectl dns >/dev/null 2>&1'; }
start_resolved

hit=$(python3 -c "import ipaddress; print(ipaddress.ip_address('$B'))")
address() { getent ahostsv4 $1 | sed -n '1s, .*,,p'; }
asks() { [ "$(address plain.example)" = $1 ]; }
knows_the_peer() { [ "$(getent ahostsv6 b.hip | sed -n '1s, .*,,p')" = $hit ]; }
asks 192.0.2.2; refused knows_the_peer
up() { $sinnet up -c a.toml --control a.sock 2>c.log & a=$!; wait_for 'grep -q " ready " c.log'; }
is_ours() {
    asks 192.0.2.1; knows_the_peer
    resolvectl query b.hip | grep 'link: sinnet0'
    resolvectl dns sinnet0 | grep ': 198.18.0.1$'
    resolvectl domain sinnet0 | grep ': ~\.$'
}
is_as_before() {
    wait_for 'asks 192.0.2.2'
    refused knows_the_peer
    refused ip link show sinnet0 2>/dev/null
    refused resolvectl dns sinnet0 2>/dev/null
    diff -r before etc
}
up; is_ours
$sinnet down --control a.sock; wait $a; is_as_before
up; is_ours
kill -9 $a; wait $a || true; is_as_before
up; is_ours
# It begins anew, and has kept what it was told.
kill $r; wait $r || true; start_resolved; is_ours
$sinnet down --control a.sock; wait $a; is_as_before
echo "all went well"
"#;

#[test]
#[expect(clippy::print_stderr, reason = "whoever reads the test's output must know")]
fn systemd_resolved_asks_the_daemon_as_long_as_that_runs() {
    let root = std::env::var("SINNET_RESOLVED").unwrap_or_default();
    let places = ["usr/lib", "lib"].map(|library| format!("{root}/{library}/systemd/systemd-resolved"));
    let Some(resolved) = places.iter().find(|place| Path::new(place).exists()) else {
        return eprintln!("skipped: no systemd-resolved");
    };
    let programs = [("dbus-daemon", "--version"), ("python3", "--version")];
    if programs.iter().all(|(program, version)| testkit::has(program, &[version])) {
        common::in_namespaces(SCRIPT, 90, &[resolved, &format!("{root}/usr/bin")]);
    }
}

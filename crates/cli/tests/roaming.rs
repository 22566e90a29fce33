//! A client that walks through twenty addresses under a download, in network namespaces: it leaves one network and is in the
//! next a moment later, or it has the next before it leaves the last; inside UDP, and with the native protocols. The oracles are
//! the bytes that arrive, a clock beside them, and the log that knows of one base exchange. Where namespaces are not allowed the
//! test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs, with the encapsulation as $1, "break" (before make) or "make" (before break) as $2, and the
/// seconds from one address to the next as $3.
const SCRIPT: &str = r#"
encapsulation=$1; order=$2; pause=$3
# The networks are beside the server's, each with a router that is the server, too.
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 198.51.100.7/24 dev br0
for i in 1 2; do
    ip link add e$i type veth peer name f$i; ip link set f$i netns $far
    $there ip link set f$i master br0; ip link set e$i up; $there ip link set f$i up
    $there tc qdisc add dev f$i root tbf rate 20mbit burst 20k latency 100ms
done
join() { # network, interface
    $there ip addr add 10.1.$1.254/24 dev br0
    ip addr add 10.1.$1.1/24 dev e$2
    ip route replace default via 10.1.$1.254 dev e$2 metric $2
}
leave() { ip addr del 10.1.$1.1/24 dev e$2; $there ip addr del 10.1.$1.254/24 dev br0; }
join 1 1
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
esp=$(printf '[esp]\nencapsulation = "%s"' $encapsulation)
printf 'identity = "a.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["198.51.100.7"]\n%s\n' $B "$esp" >a.toml
printf 'identity = "b.pem"\n[[path]]\nname = "b"\naddress = "198.51.100.7"\n' >b.toml
printf '[[peer]]\nname = "a.hip"\nhit = "%s"\n%s\n' $A "$esp" >>b.toml
up_on_both
ping -c 3 -i 0.2 -W 5 $B
cat >stream.py <<'END'
import os, socket, sys, time
# Known bytes, of which no shift is the same.
cycle = bytes(str(list(range(100_000))), "ascii")
if sys.argv[1] == "serve":
    server = socket.create_server(("::", 8000), family=socket.AF_INET6)
    open("serves", "w").close()
    connection, _ = server.accept()
    try:
        while True: connection.sendall(cycle)
    except OSError: os._exit(0)
connection = socket.create_connection((sys.argv[2], 8000), timeout=20)
place, last, longest = 0, time.monotonic(), (0, 0)
begin = last
while not os.path.exists("enough"):
    data = connection.recv(1 << 16)
    now = time.monotonic()
    longest, last = max(longest, (now - last, now - begin)), now
    assert data, "the connection ended"
    while data:
        known = cycle[place:place + len(data)]
        assert data.startswith(known), "another byte than was sent"
        data, place = data[len(known):], (place + len(known)) % len(cycle)
    if longest[1] == now - begin and longest[0] > 0.3: print("stall of %.3f s at %.3f s" % longest, flush=True)
print("longest stall: %d ms" % (longest[0] * 1000))
END
$there python3 stream.py serve & server=$!
wait_for '[ -e serves ]'
python3 stream.py get $B >got 2>&1 & client=$!
sleep 1
at=1; on=1
for next in $(seq 2 20); do
    case $order in
        break) leave $at $on; sleep 0.05; join $next 1;;
        make) to=$((3 - on)); join $next $to; sleep 0.3; leave $at $on; on=$to;;
    esac
    at=$next
    sleep $pause
    kill -0 $client || { cat got; exit 1; }
done
touch enough; wait $client || { cat got; exit 1; }
cat got
[ "$(sed -n 's/^longest stall: \([0-9]*\) ms$/\1/p' got)" -lt 1000 ]
# One association, and it knows where its client is.
grep -c 'has proved its identity' a.log | grep -qx 1
$there $sinnet status --control b.sock | grep -q '10.1.20.1'
[ "$encapsulation" = udp ] || refused grep ':10500' <<<"$($sinnet status --control a.sock)"
$sinnet down --control a.sock; wait $a
$there $sinnet down --control b.sock; wait $b
echo "all went well"
"#;

fn walk(encapsulation: &str, order: &str, pause: &str) {
    common::in_namespaces(SCRIPT, 120, &[encapsulation, order, pause]);
}

#[test]
fn twenty_addresses_one_after_the_other() {
    walk("udp", "break", "1.5");
}

#[test]
fn twenty_addresses_each_before_the_last_is_gone() {
    walk("udp", "make", "1");
}

/// Raw sockets cannot be opened any more by a daemon that runs; each address is served without a restart.
#[test]
fn twenty_addresses_with_the_native_protocols() {
    walk("native", "break", "1");
    walk("native", "make", "1");
}

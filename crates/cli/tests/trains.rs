//! Programs that choose tiny segments, and a person who changes the device's MTU, under two daemons in two network namespaces.
//! A program on one host decides how many segments a train on the other one has (RFC 9293 §3.7.1), so none of that may end a
//! daemon. The oracle is the file that arrives, at the one end and at the other.

use crate::common;

/// What `common::in_namespaces` runs. `tcp.py` is a program that serves or fetches with the option TCP_MAXSEG.
const SCRIPT: &str = r#"
ip link add e1 type veth peer name f1; ip link set f1 netns $far
ip addr add 10.1.0.1/24 dev e1; $there ip addr add 10.1.0.2/24 dev f1
ip link set e1 up; $there ip link set f1 up
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
configure() { # host, peer's name, peer's HIT, peer's number
    printf 'identity = "%s.pem"\nname = "%s.hip"\n' $1 $1
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlocators = ["10.1.0.%s"]\n' $2 $3 $4
}
configure a b $B 2 >a.toml; configure b a $A 1 >b.toml
cat >tcp.py <<'P'
import socket, sys
what, address, port, segment = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
s.settimeout(20)
if segment: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment)
if what == 'serve':
    s.bind((address, port)); s.listen(); print('listening', flush=True)
    c, _ = s.accept(); c.settimeout(20); c.sendall(open('file', 'rb').read()); c.shutdown(1); c.recv(1)
else:
    s.connect((address, port))
    with open(sys.argv[5], 'wb') as out:
        while data := s.recv(1 << 16): out.write(data)
P
up_on_both
ping -c 3 -i 0.2 -W 5 $B
lsi() { $sinnet status --control $1.sock | sed -n 's/^  .*LSI //p'; }
head -c 1500000 /dev/urandom >file
port=8000
# The segment size is the wish of who fetches, or of who serves; both directions, both families.
fetch() { # segment size of who serves, of who fetches
    for side in there here; do
        port=$((port + 1))
        if [ $side = there ]; then serves=$there fetches= address=$B; else serves= fetches=$there address=$A; fi
        rm -f serving
        $serves python3 tcp.py serve :: $port $1 >serving & server=$!
        for _ in $(seq 50); do grep -qs listening serving && break; sleep 0.1; done
        $fetches python3 tcp.py fetch $address $port $2 got
        cmp file got; wait $server
    done
    kill -0 $a; kill -0 $b
}
fetch 0 500; fetch 0 88; fetch 500 0; fetch 88 88
# IPv4 programs.
rm serving
$there python3 tcp.py serve 0.0.0.0 7999 0 >serving & server=$!
for _ in $(seq 50); do grep -qs listening serving && break; sleep 0.1; done
python3 tcp.py fetch $(lsi a) 7999 88 got; cmp file got; wait $server
# A longer MTU than at the start, and packets that fill it. They do not fit, and the programs hear that (Packet Too Big).
ip link set sinnet0 mtu 9000
ping -c 3 -i 0.2 -W 1 -s 4000 $B || true
ping -c 1 -W 1 -M do -s 8900 $B || true
fetch 0 0
ip link set sinnet0 mtu 65535
ping -c 2 -i 0.2 -W 1 -s 60000 $B || true
ping -c 2 -i 0.2 -W 5 $B
fetch 0 88
grep -c 'has proved its identity' a.log | grep -qx 1
$sinnet status --control a.sock --json | grep -q '"unread": *0'
$sinnet down --control a.sock; wait $a
kill -TERM $b; wait $b
echo "all went well"
"#;

#[test]
fn tiny_segments_and_a_longer_mtu_end_no_daemon() {
    common::in_namespaces(SCRIPT, 90, &[]);
}
